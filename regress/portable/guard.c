// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that read 64 bytes of one object, which is replaced every now and then.
 * It must not be taken away from a reader, so each of them
 *  - counts itself in the object, by compare and swap (as folio_try_get() does),
 *  - or by fetch and add, with a bit that says that the object is gone,
 *  - or says in a line of its own which object it reads (pageguard).
 * The last writes nothing that other readers touch. See portable.h for the options.
 */
#include "portable.h"

#define BYTES		64
#define GONE		0x40000000
#define GOOD		0x5a
#define POISON		0xff

struct object {
	LINE atomic_int count;
	LINE unsigned char data[BYTES];
};

static struct object objects[2];
static LINE _Atomic(struct object *) current;
static struct { LINE _Atomic(struct object *) object; } guards[MOST_THREADS];

static void begin(void)
{
	objects[0].count = 1;
	objects[1].count = GONE;
	memset(objects[0].data, GOOD, BYTES);
	current = &objects[0];
}

static void copy(struct object *object)
{
	unsigned char bytes[BYTES];

	held_up();
	memcpy(bytes, object->data, BYTES);
	__asm__ volatile("" :: "r"(bytes) : "memory");
	must(bytes[0] == GOOD && bytes[BYTES - 1] == GOOD, "a reader has got an object that is gone");
}

static bool get_swap(struct object *object)
{
	int count = atomic_load_explicit(&object->count, memory_order_relaxed);

	while (!(count & GONE))
		if (atomic_compare_exchange_weak(&object->count, &count, count + 1))
			return true;
	return false;
}

static bool get_add(struct object *object)
{
	if (!(atomic_fetch_add(&object->count, 1) & GONE))
		return true;
	return !atomic_fetch_sub(&object->count, 1);
}

static inline unsigned long read_counted(bool (*get)(struct object *))
{
	struct object *object;
	unsigned long ops = 0;

	while (!done()) {
		object = atomic_load(&current);
		held_up();
		if (!get(object))
			continue;
		/* It may have gone and come back before it was counted. */
		if (object == atomic_load(&current)) {
			copy(object);
			ops++;
		}
		atomic_fetch_sub(&object->count, 1);
	}
	return ops;
}

static unsigned long read_guard(int thread)
{
	struct object *object;
	unsigned long ops = 0;

	while (!done()) {
		object = atomic_load_explicit(&current, memory_order_relaxed);
		held_up();
		atomic_store_explicit(&guards[thread].object, object, memory_order_relaxed);
		/* Pairs with the fence of replace_guarded(). */
		atomic_thread_fence(memory_order_seq_cst);
		if (object == atomic_load(&current)) {
			copy(object);
			ops++;
		}
		atomic_store_explicit(&guards[thread].object, NULL, memory_order_release);
	}
	return ops;
}

/* Let readers find the other object; the one that they had. */
static struct object *publish(void)
{
	struct object *old = atomic_load(&current), *new = &objects[old == objects];

	memset(new->data, GOOD, BYTES);
	atomic_fetch_add(&new->count, 1 - GONE);
	atomic_store(&current, new);
	return old;
}

static void replace_counted(void)
{
	struct object *old = publish();
	int one;

	while (one = 1, !atomic_compare_exchange_weak(&old->count, &one, GONE))
		;
	memset(old->data, POISON, BYTES);
}

static void replace_guarded(void)
{
	struct object *old = publish();
	int i;

	atomic_thread_fence(memory_order_seq_cst);
	for (i = 0; i < threads; i++)
		while (atomic_load_explicit(&guards[i].object, memory_order_acquire) == old)
			;
	atomic_store(&old->count, GONE);
	memset(old->data, POISON, BYTES);
}

static unsigned long work(int thread)
{
	return way == 2 ? read_guard(thread) : read_counted(way ? get_add : get_swap);
}

static void beside(void)
{
	way == 2 ? replace_guarded() : replace_counted();
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "compare and swap", "fetch and add", "guard" };

	return portable(argc, argv, "reads of 64 bytes of one object", names, 3);
}
