// SPDX-License-Identifier: GPL-2.0-only
/*
 * The numbers of a pid namespace, BITS_PER_LONG at a time, in an XArray.
 *
 * Numbers are taken and given back by atomic operations, without a lock. The
 * XArray's own lock is for what is done once for many numbers:
 *
 * - A chunk is added together with the first number in it.
 * - It is removed when the last number is given back, unless ns->next is in it.
 *   The operation that finds ->used 0 makes it ~0UL, so no number is taken in a
 *   chunk that is gone.
 * - XA_FREE_MARK is cleared, and ->full set, when a search finds no free number in a
 *   chunk, or the lock's owner moves ns->next out of one that has none. It is set
 *   again before free_pid_nr() returns, unless its number is taken by then.
 *
 * While a number is searched for under the lock, PID_NEXT_LOCKED is set, and none
 * is claimed without the lock. So -EAGAIN and -EEXIST are exact.
 *
 * Documentation/core-api/pid-allocation.rst has the order of all this.
 */
#include <linux/bitops.h>
#include <linux/export.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include "pid_nr.h"

struct pid_chunk {
	struct pid __rcu *pid[BITS_PER_LONG];	/* what lookups find */
	unsigned long used;			/* numbers that are taken */
	unsigned int index;			/* in ns->chunks */
	bool full;				/* XA_FREE_MARK is clear */
	struct rcu_head rcu;
};

static struct kmem_cache *pid_chunk_cachep;

/* The chunk of number @nr, which stays as long as a number in it is taken */
static struct pid_chunk *find_pid_chunk(struct pid_namespace *ns, unsigned int nr)
{
	struct pid_chunk *chunk;

	chunk = rcu_dereference(ns->chunk);
	if (!chunk || chunk->index != nr / BITS_PER_LONG)
		chunk = xa_load(&ns->chunks, nr / BITS_PER_LONG);
	return chunk;
}

/*
 * Take the next number without the lock. Returns 0 if the lock is needed; @claimed
 * is the number that is to be tried first under it, if it is not 0.
 */
static int take_next_nr(struct pid_namespace *ns, unsigned int *claimed)
{
	int nr = atomic_read(&ns->next);
	struct pid_chunk *chunk;

	guard(rcu)();
	/* With PID_NEXT_LOCKED it is negative. */
	while (nr > 0 && nr < READ_ONCE(ns->pid_max)) {
		chunk = rcu_dereference(ns->chunk);
		if (!chunk || chunk->index != nr / BITS_PER_LONG ||
		    test_bit(nr % BITS_PER_LONG, &chunk->used))
			break;
		/* Pairs with free_pid_nr(): it sees ->next, or its bit is seen below. */
		if (!atomic_try_cmpxchg(&ns->next, &nr, nr + 1))
			continue;
		if (!test_and_set_bit(nr % BITS_PER_LONG, &chunk->used))
			return nr;
		/* A search has taken it, or the chunk is gone. */
		*claimed = nr;
		break;
	}
	return 0;
}

/* Clear the mark of a chunk that has no free number. */
static void mark_full(struct xa_state *xas, struct pid_chunk *chunk)
{
	if (chunk->full || READ_ONCE(chunk->used) != ~0UL)
		return;
	/* Pairs with free_pid_nr(): it sees ->full, or its bit is seen here. */
	smp_store_mb(chunk->full, true);
	if (READ_ONCE(chunk->used) == ~0UL)
		xas_clear_mark(xas, XA_FREE_MARK);
	else
		WRITE_ONCE(chunk->full, false);
}

/* Take the first free number of @from to @last; a chunk that is missing is @new. */
static int take_free_nr(struct xa_state *xas, unsigned int from, unsigned int last,
			struct pid_chunk **new)
{
	unsigned int bit = from % BITS_PER_LONG;
	struct pid_chunk *chunk;
	unsigned long used;

	if (from > last)
		return -ENOSPC;
	xas_set(xas, from / BITS_PER_LONG);
	for (;;) {
		chunk = xas_find_marked(xas, last / BITS_PER_LONG, XA_FREE_MARK);
		if (xas->xa_index > from / BITS_PER_LONG)
			bit = 0;
again:
		if (chunk) {
			used = READ_ONCE(chunk->used);
			bit = find_next_zero_bit(&used, BITS_PER_LONG, bit);
		}
		if (xas->xa_index * BITS_PER_LONG + bit > last)
			return -ENOSPC;
		if (!chunk)
			break;
		if (bit < BITS_PER_LONG) {
			if (test_and_set_bit(bit, &chunk->used))
				goto again;
			mark_full(xas, chunk);
			return xas->xa_index * BITS_PER_LONG + bit;
		}
		mark_full(xas, chunk);
	}

	if (!*new)
		return -ENOMEM;
	(*new)->index = xas->xa_index;
	(*new)->used = BIT(bit);
	xas_store(xas, *new);
	if (xas_error(xas))
		return xas_error(xas);
	*new = NULL;
	return xas->xa_index * BITS_PER_LONG + bit;
}

/* Remove the chunk at @index if it has no number, or make its mark agree with it. */
static void trim_pid_chunk(struct pid_namespace *ns, unsigned long index)
{
	XA_STATE(xas, &ns->chunks, index);
	struct pid_chunk *chunk = xas_load(&xas);

	if (!chunk)
		return;
	if (index != pid_ns_next(ns) / BITS_PER_LONG && !cmpxchg(&chunk->used, 0UL, ~0UL)) {
		if (rcu_access_pointer(ns->chunk) == chunk)
			RCU_INIT_POINTER(ns->chunk, NULL);
		xas_store(&xas, NULL);
		kfree_rcu(chunk, rcu);
	} else if (READ_ONCE(chunk->used) == ~0UL) {
		mark_full(&xas, chunk);
	} else if (chunk->full) {
		xas_set_mark(&xas, XA_FREE_MARK);
		WRITE_ONCE(chunk->full, false);
	}
}

/* Set ns->next, and clear PID_NEXT_LOCKED. */
static void __pid_ns_set_next(struct pid_namespace *ns, unsigned int next)
{
	/* Pairs with free_pid_nr(): it sees @next, or its bit is seen when trimmed. */
	unsigned int old = atomic_xchg(&ns->next, next) & ~PID_NEXT_LOCKED;

	if (old / BITS_PER_LONG != next / BITS_PER_LONG)
		trim_pid_chunk(ns, old / BITS_PER_LONG);
}

void pid_ns_set_next(struct pid_namespace *ns, unsigned int next)
{
	xa_lock(&ns->chunks);
	__pid_ns_set_next(ns, next);
	xa_unlock(&ns->chunks);
}

/*
 * Take number @tid, or the next one in sequence if that is 0. Returns it, -EEXIST
 * if @tid is taken, -EAGAIN if no number is free, or -ENOMEM.
 */
int alloc_pid_nr(struct pid_namespace *ns, unsigned int tid)
{
	unsigned int next, min, last, left, claimed = 0;
	XA_STATE(xas, &ns->chunks, 0);
	struct pid_chunk *chunk, *new = NULL;
	int nr;

	if (!tid && likely(READ_ONCE(ns->child_reaper))) {
		nr = take_next_nr(ns, &claimed);
		if (likely(nr))
			return nr;
	}
retry:
	xa_lock(&ns->chunks);
	next = atomic_fetch_or(PID_NEXT_LOCKED, &ns->next);
	left = next / BITS_PER_LONG;
	/* For the case when the previous attempt to create init failed */
	if (!READ_ONCE(ns->child_reaper) && atomic_read(&ns->pid_allocated) == PIDNS_ADDING)
		next = 0;
	nr = -ENOSPC;
	if (tid || claimed)
		nr = take_free_nr(&xas, tid ?: claimed, tid ?: claimed, &new);
	if (nr == -ENOSPC && tid) {
		nr = -EEXIST;
	} else if (nr == -ENOSPC) {
		/*
		 * init really needs pid 1, but after reaching the
		 * maximum wrap back to RESERVED_PIDS
		 */
		min = next > RESERVED_PIDS ? RESERVED_PIDS : 1;
		last = READ_ONCE(ns->pid_max) - 1;
		nr = take_free_nr(&xas, max(next, min), last, &new);
		if (nr == -ENOSPC && next > min)
			nr = take_free_nr(&xas, min, last, &new);
		if (nr == -ENOSPC)
			nr = -EAGAIN;
		if (nr > 0) {
			next = nr + 1;
			chunk = rcu_dereference_protected(ns->chunk, true);
			if (chunk)
				left = chunk->index;
			rcu_assign_pointer(ns->chunk, xas_reload(&xas));
		}
	}
	__pid_ns_set_next(ns, next);
	if (left != next / BITS_PER_LONG)
		trim_pid_chunk(ns, left);
	xa_unlock(&ns->chunks);

	/* A chunk, then a node for it; xas_nomem() frees one that was not needed. */
	if (nr == -ENOMEM && !new) {
		new = kmem_cache_zalloc(pid_chunk_cachep, GFP_KERNEL);
		if (new)
			goto retry;
	}
	if (xas_nomem(&xas, GFP_KERNEL))
		goto retry;
	if (new)
		kmem_cache_free(pid_chunk_cachep, new);
	return nr;
}

/* Let lookups find @pid by number @nr, which is taken for it. */
void publish_pid_nr(struct pid_namespace *ns, unsigned int nr, struct pid *pid)
{
	guard(rcu)();
	rcu_assign_pointer(find_pid_chunk(ns, nr)->pid[nr % BITS_PER_LONG], pid);
}

/* Give a number back. It is not found any more, and somebody else may get it. */
void free_pid_nr(struct pid_namespace *ns, unsigned int nr)
{
	unsigned int index = nr / BITS_PER_LONG;
	struct pid_chunk *chunk;
	bool trim;

	rcu_read_lock();
	chunk = find_pid_chunk(ns, nr);
	RCU_INIT_POINTER(chunk->pid[nr % BITS_PER_LONG], NULL);
	/*
	 * A full barrier. Pairs with test_and_set_bit(): the next owner's pid is
	 * stored after NULL. Pairs with smp_store_mb() in mark_full(), and with
	 * atomic_xchg() and atomic_try_cmpxchg() of ns->next: what they have stored
	 * is seen here, or the bit is seen there.
	 */
	test_and_clear_bit(nr % BITS_PER_LONG, &chunk->used);
	trim = READ_ONCE(chunk->full) ||
	       (!READ_ONCE(chunk->used) && index != pid_ns_next(ns) / BITS_PER_LONG);
	rcu_read_unlock();

	if (unlikely(trim)) {
		xa_lock(&ns->chunks);
		trim_pid_chunk(ns, index);
		xa_unlock(&ns->chunks);
	}
}

struct pid *find_pid_ns(int nr, struct pid_namespace *ns)
{
	struct pid_chunk *chunk = xa_load(&ns->chunks, (unsigned int)nr / BITS_PER_LONG);

	/* Not by ns->chunk, whose line clone() and exit have to themselves. */
	return chunk ? rcu_dereference_raw(chunk->pid[(unsigned int)nr % BITS_PER_LONG]) : NULL;
}
EXPORT_SYMBOL_GPL(find_pid_ns);

/*
 * Used by proc to find the first pid that is greater than or equal to nr.
 *
 * If there is a pid at nr this function is exactly the same as find_pid_ns.
 */
struct pid *find_ge_pid(int nr, struct pid_namespace *ns)
{
	unsigned long start = (unsigned int)nr / BITS_PER_LONG, index;
	unsigned int bit = (unsigned int)nr % BITS_PER_LONG;
	struct pid_chunk *chunk;
	struct pid *pid;

	xa_for_each_start(&ns->chunks, index, chunk, start) {
		unsigned long used = READ_ONCE(chunk->used);

		if (index > start)
			bit = 0;
		for_each_set_bit_from(bit, &used, BITS_PER_LONG) {
			pid = rcu_dereference(chunk->pid[bit]);
			if (pid)
				return pid;
		}
	}
	return NULL;
}
EXPORT_SYMBOL_GPL(find_ge_pid);

void __init pid_nr_init(void)
{
	pid_chunk_cachep = kmem_cache_create("pid_chunk", sizeof(struct pid_chunk), 0,
					     SLAB_HWCACHE_ALIGN | SLAB_PANIC, NULL);
}
