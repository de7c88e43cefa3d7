// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that take the next free number for a pointer and give it back, as each
 * clone() and exit() do with a pid. Numbers follow each other and wrap. They are
 *
 *  - in a tree of 64 slots a node, which one lock protects (as pidmap_lock does),
 *  - or bits in chunks, which are set and cleared by atomic operations (pid).
 *
 * See portable.h for the options.
 */
#include "portable.h"

#define SLOTS		64
#define CHUNKS		512
#define NUMBERS		(CHUNKS * SLOTS)
#define ALL		(~0UL)

struct chunk {
	LINE atomic_ulong used;
	_Atomic(void *) slot[SLOTS];
};

/* The tree: @full has a bit for each chunk without a free number. */
static struct {
	LINE pthread_spinlock_t lock;
	unsigned int next;
	unsigned long full[CHUNKS / SLOTS];
} tree;

static LINE atomic_uint next;
static struct chunk chunks[CHUNKS];

static void begin(void)
{
	static bool once;

	once = once || !pthread_spin_init(&tree.lock, PTHREAD_PROCESS_PRIVATE);
	tree.next = 0;
	atomic_store(&next, 0);
	memset(tree.full, 0, sizeof(tree.full));
	memset(chunks, 0, sizeof(chunks));
}

static void beside(void)
{
}

/* The first chunk from @chunk on that has a free number, or CHUNKS. */
static unsigned int find_chunk(unsigned int chunk)
{
	unsigned long free;

	for (; chunk < CHUNKS; chunk = (chunk / SLOTS + 1) * SLOTS) {
		free = ~tree.full[chunk / SLOTS] & ALL << chunk % SLOTS;
		if (free)
			return chunk / SLOTS * SLOTS + __builtin_ctzl(free);
	}
	return CHUNKS;
}

static unsigned int take_locked(void *owner)
{
	unsigned int from, chunk;
	unsigned long used, free;

	pthread_spin_lock(&tree.lock);
	for (from = tree.next % NUMBERS;; from = chunk < CHUNKS ? (chunk + 1) * SLOTS % NUMBERS : 0) {
		chunk = find_chunk(from / SLOTS);
		if (chunk == CHUNKS)
			continue;
		used = atomic_load_explicit(&chunks[chunk].used, memory_order_relaxed);
		free = ~used & (chunk == from / SLOTS ? ALL << from % SLOTS : ALL);
		if (free)
			break;
	}
	from = chunk * SLOTS + __builtin_ctzl(free);
	used |= 1UL << from % SLOTS;
	atomic_store_explicit(&chunks[chunk].used, used, memory_order_relaxed);
	if (used == ALL)
		tree.full[chunk / SLOTS] |= 1UL << chunk % SLOTS;
	atomic_store_explicit(&chunks[chunk].slot[from % SLOTS], owner, memory_order_relaxed);
	tree.next = from + 1;
	pthread_spin_unlock(&tree.lock);
	return from;
}

static void give_locked(unsigned int number)
{
	struct chunk *chunk = &chunks[number / SLOTS];

	pthread_spin_lock(&tree.lock);
	atomic_store_explicit(&chunk->slot[number % SLOTS], NULL, memory_order_relaxed);
	atomic_store_explicit(&chunk->used, atomic_load_explicit(&chunk->used, memory_order_relaxed) &
			      ~(1UL << number % SLOTS), memory_order_relaxed);
	tree.full[number / SLOTS / SLOTS] &= ~(1UL << number / SLOTS % SLOTS);
	pthread_spin_unlock(&tree.lock);
}

static unsigned int take_bit(void *owner)
{
	unsigned int number = atomic_load_explicit(&next, memory_order_relaxed);
	unsigned long bit;

	for (;;) {
		if (!atomic_compare_exchange_weak(&next, &number, (number + 1) % NUMBERS))
			continue;
		bit = 1UL << number % SLOTS;
		if (!(atomic_fetch_or(&chunks[number / SLOTS].used, bit) & bit))
			break;
		/* It is taken still: the next one. */
		number = atomic_load_explicit(&next, memory_order_relaxed);
	}
	atomic_store_explicit(&chunks[number / SLOTS].slot[number % SLOTS], owner, memory_order_release);
	return number;
}

/* The slot before the bit, so that it is the next owner's that stays. */
static void give_bit(unsigned int number)
{
	atomic_store_explicit(&chunks[number / SLOTS].slot[number % SLOTS], NULL, memory_order_relaxed);
	atomic_fetch_and(&chunks[number / SLOTS].used, ~(1UL << number % SLOTS));
}

static inline unsigned long numbers(unsigned int (*take)(void *), void (*give)(unsigned int))
{
	unsigned int number, owner;
	unsigned long ops;

	for (ops = 0; !done(); ops++) {
		number = take(&owner);
		held_up();
		must(atomic_load(&chunks[number / SLOTS].slot[number % SLOTS]) == &owner,
		     "a number has two owners");
		give(number);
	}
	return ops;
}

static unsigned long work(int thread)
{
	(void)thread;
	return way ? numbers(take_bit, give_bit) : numbers(take_locked, give_locked);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "lock and tree", "chunks" };

	return portable(argc, argv, "numbers taken and given back", names, 2);
}
