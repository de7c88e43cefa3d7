// SPDX-License-Identifier: GPL-2.0
/*
 *  linux/fs/pipe.c
 *
 *  Copyright (C) 1991, 1992, 1999  Linus Torvalds
 */

#include <linux/mm.h>
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/module.h>
#include <linux/init.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/magic.h>
#include <linux/pipe_fs_i.h>
#include <linux/uio.h>
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/audit.h>
#include <linux/syscalls.h>
#include <linux/fcntl.h>
#include <linux/memcontrol.h>
#include <linux/watch_queue.h>
#include <linux/sysctl.h>
#include <linux/sort.h>
#include <linux/sizes.h>

#include <linux/uaccess.h>
#include <asm/ioctls.h>

#include "internal.h"

/*
 * New pipe buffers will be restricted to this size while the user is exceeding
 * their pipe buffer quota. The general pipe use case needs at least two
 * buffers: one for data yet to be read, and one for new data. If this is less
 * than two, then a write to a non-empty pipe may block even if the pipe is not
 * full. This can occur with GNU make jobserver or similar uses of pipes as
 * semaphores: multiple processes may be waiting to write tokens back to the
 * pipe before reading tokens: https://lore.kernel.org/lkml/1628086770.5rn8p04n6j.none@localhost/.
 *
 * Users can reduce their pipe buffers with F_SETPIPE_SZ below this at their
 * own risk, namely: pipe writes to non-full pipes may block until the pipe is
 * emptied.
 */
#define PIPE_MIN_DEF_BUFFERS 2

/*
 * The max size that a non-root user is allowed to grow the pipe. Can
 * be set by root in /proc/sys/fs/pipe-max-size
 */
static unsigned int pipe_max_size = 1048576;

/* Maximum allocatable pages per user. Hard limit is unset by default, soft
 * matches default values.
 */
static unsigned long pipe_user_pages_hard;
static unsigned long pipe_user_pages_soft = PIPE_DEF_BUFFERS * INR_OPEN_CUR;

/*
 * We use head and tail indices that aren't masked off, except at the point of
 * dereference, but rather they're allowed to wrap naturally.  This means there
 * isn't a dead spot in the buffer, but the ring has to be a power of two and
 * <= 2^31.
 * -- David Howells 2019-09-23.
 *
 * Reads with count = 0 should always return 0.
 * -- Julian Bradfield 1999-06-07.
 *
 * FIFOs and Pipes now generate SIGIO for both readers and writers.
 * -- Jeremy Elson <jelson@circlemud.org> 2001-08-16
 *
 * pipe_read & write cleanup
 * -- Manfred Spraul <manfred@colorfullife.com> 2002-05-09
 */

#ifdef CONFIG_PROVE_LOCKING
static int pipe_lock_cmp_fn(const struct lockdep_map *a,
			    const struct lockdep_map *b)
{
	return cmp_int((unsigned long) a, (unsigned long) b);
}
#endif

void pipe_lock(struct pipe_inode_info *pipe)
{
	if (pipe->files)
		mutex_lock(&pipe->mutex);
}
EXPORT_SYMBOL(pipe_lock);

void pipe_unlock(struct pipe_inode_info *pipe)
{
	if (pipe->files)
		mutex_unlock(&pipe->mutex);
}
EXPORT_SYMBOL(pipe_unlock);

void pipe_double_lock(struct pipe_inode_info *pipe1,
		      struct pipe_inode_info *pipe2)
{
	BUG_ON(pipe1 == pipe2);

	if (pipe1 > pipe2)
		swap(pipe1, pipe2);

	pipe_lock(pipe1);
	pipe_lock(pipe2);
}

static inline bool anon_pipe_nonblock(const struct kiocb *iocb)
{
	return (iocb->ki_filp->f_flags & O_NONBLOCK) ||
		(iocb->ki_flags & IOCB_NOWAIT);
}

/* The most pages that a call prepares or puts off: those of a default pipe. */
#define ANON_PIPE_PAGES_MAX	PIPE_DEF_BUFFERS

/* The most that one writer at a time prepares if there is room: 1 MiB. */
#define ANON_PIPE_PAGES_LARGE	max(SZ_1M / PAGE_SIZE, ANON_PIPE_PAGES_MAX)

/*
 * Pages on their way out of a pipe, owned by the task on whose stack this is.
 * pages[] is valid up to count, and is never initialized beyond: this is on the
 * path of every one-byte read.
 */
struct anon_pipe_pages {
	unsigned int count;
	struct page *pages[ANON_PIPE_PAGES_MAX];
};

/*
 * Pages on their way into a pipe, likewise.  Those from @next on have the next
 * @bytes of user data in them, which the iterator is past already; those from
 * @filled to @count are empty.  @faulted says that a copy came out short, and
 * @would_block that there was no room, and the next page could not be had or
 * filled without waiting.  If @merge is not 0, that many bytes are in the next
 * page, which are meant to be merged with what is in the pipe.  @pages is @few,
 * or if the writer @may_grow, an array.  Either has room for @max pages and that
 * of @merge.
 */
struct anon_pipe_prep {
	unsigned int next, filled, count, merge, max;
	bool faulted, would_block, may_grow;
	size_t bytes;
	struct page **pages;
	struct page *few[ANON_PIPE_PAGES_MAX + 1];
};

static struct page *anon_pipe_prealloc_pop(struct anon_pipe_prealloc *prealloc)
{
	if (!prealloc->count)
		return NULL;

	prealloc->count--;

	return prealloc->pages[prealloc->count];
}

/* Push a page to the prealloc pool. Returns true if added, false if full. */
static bool anon_pipe_prealloc_push(struct anon_pipe_prealloc *prealloc,
				    struct page *page)
{
	if (prealloc->count >= PIPE_PREALLOC_MAX)
		return false;
	prealloc->pages[prealloc->count++] = page;
	return true;
}

/*
 * Pages of larger writes have a cache of their own, pipe->spare_page[], whose
 * users do not need pipe->mutex to take them.  Smaller writes should not pay
 * for that: they go on with pipe->prealloc, which needs no atomics.
 */
static inline bool anon_pipe_wants_spares(size_t len)
{
	return len >= PAGE_SIZE;
}

/* pipe->mutex need not be held.  Only those who hold it add pages. */
static struct page *anon_pipe_take_spare(struct pipe_inode_info *pipe)
{
	for (int i = 0; i < ARRAY_SIZE(pipe->spare_page); i++) {
		struct page *page;

		/* The xchg() would take the cache line from others for nothing. */
		if (!atomic_long_read(&pipe->spare_page[i]))
			continue;
		/* Pairs with the release in anon_pipe_put_spare(). */
		page = (struct page *)atomic_long_xchg(&pipe->spare_page[i], 0);
		if (page)
			return page;
	}

	return NULL;
}

/* Free what is not kept, after pipe->mutex was dropped. */
static void anon_pipe_free_pages(struct page **pages, unsigned int count)
{
	/* A batch does not pay for a page or two. */
	if (count > 2) {
		release_pages(pages, count);
		return;
	}
	while (count)
		put_page(pages[--count]);
}

/* The free slots, as far as can be seen without pipe->mutex. */
static unsigned int anon_pipe_room(const struct pipe_inode_info *pipe)
{
	union pipe_index idx = { .head_tail = READ_ONCE(pipe->head_tail) };
	unsigned int used = pipe_occupancy(idx.head, idx.tail);
	unsigned int max_usage = READ_ONCE(pipe->max_usage);

	return used < max_usage ? max_usage - used : 0;
}

/*
 * If not @wait, there is no reclaim, nor for the memory cgroup.  That is not
 * worth a warning, as the page is asked for again.
 */
static struct page *anon_pipe_alloc_page(bool wait)
{
	gfp_t gfp = GFP_HIGHUSER | __GFP_ACCOUNT;

	if (!wait)
		gfp = (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_NOWARN;

	return alloc_page(gfp);
}

static struct page *anon_pipe_new_page(struct pipe_inode_info *pipe, bool wait)
{
	struct page *page = anon_pipe_take_spare(pipe);

	return page ?: anon_pipe_alloc_page(wait);
}

/*
 * How many pages a write may put into @pipe, which has @room for so many now, as
 * far as can be seen without pipe->mutex.  One that does not block can use the
 * free slots and no more, so that trying to write to a full pipe costs next to
 * nothing.  A blocking write goes on until everything is written, whatever there
 * is room for right now; but it may sleep for long with what there is no room
 * for, so that is limited.
 */
static unsigned int anon_pipe_usable(const struct pipe_inode_info *pipe,
				     const struct kiocb *iocb, unsigned int room)
{
	if (!READ_ONCE(pipe->readers))
		return 0;
	if (anon_pipe_nonblock(iocb))
		return room;

	return max(room, min(READ_ONCE(pipe->max_usage), ANON_PIPE_PAGES_MAX));
}

/*
 * A write that fits has to go into the pipe under one hold of pipe->mutex, so
 * what is not prepared before that is copied with it held.  That is why a
 * writer may prepare more than ANON_PIPE_PAGES_MAX; but only one at a time, or
 * else each of many would have pages for the same free slots.
 */
static void anon_pipe_grow_prep(struct pipe_inode_info *pipe,
				struct anon_pipe_prep *prep, unsigned int max)
{
	struct page **pages;

	if (atomic_read(&pipe->large_prep) || atomic_xchg(&pipe->large_prep, 1))
		return;

	/* Without the array, more is copied under the mutex: not worth a wait. */
	pages = kmalloc_objs(*pages, max + 1,
			     GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!pages) {
		atomic_set(&pipe->large_prep, 0);
		return;
	}
	memcpy(pages, prep->few, prep->count * sizeof(*pages));
	prep->pages = pages;
	prep->max = max;
}

/* Let another writer do that. */
static void anon_pipe_end_large_prep(struct pipe_inode_info *pipe,
				     struct anon_pipe_prep *prep)
{
	atomic_set(&pipe->large_prep, 0);
	kfree(prep->pages);
}

/*
 * Before a writer sleeps or gives way: give back the array, and if somebody
 * else has taken the room, what it would not have prepared if there had been
 * none.
 */
static void anon_pipe_trim_prep(struct pipe_inode_info *pipe,
				struct anon_pipe_prep *prep,
				struct iov_iter *from)
{
	unsigned int keep = prep->next + ANON_PIPE_PAGES_MAX + !!prep->merge;

	if (prep->filled > keep) {
		size_t bytes = prep->merge + ANON_PIPE_PAGES_MAX * PAGE_SIZE;

		iov_iter_revert(from, prep->bytes - bytes);
		prep->bytes = bytes;
		prep->filled = keep;
	}
	if (prep->count > keep) {
		anon_pipe_free_pages(prep->pages + keep, prep->count - keep);
		prep->count = keep;
	}
	if (prep->pages != prep->few) {
		prep->filled -= prep->next;
		prep->count -= prep->next;
		memcpy(prep->few, prep->pages + prep->next,
		       prep->count * sizeof(prep->few[0]));
		anon_pipe_end_large_prep(pipe, prep);
		prep->pages = prep->few;
		prep->max = ANON_PIPE_PAGES_MAX;
		prep->next = 0;
	}
	prep->may_grow = false;
}

/* In the end, give back what is left, after pipe->mutex was dropped. */
static void anon_pipe_end_prep(struct pipe_inode_info *pipe,
			       struct anon_pipe_prep *prep,
			       struct iov_iter *from)
{
	if (unlikely(prep->bytes))
		iov_iter_revert(from, prep->bytes);
	anon_pipe_free_pages(prep->pages + prep->next, prep->count - prep->next);
	if (unlikely(prep->pages != prep->few))
		anon_pipe_end_large_prep(pipe, prep);
}

/*
 * Whether a write may give up pipe->mutex before the pipe is full, to prepare
 * more, with @len bytes left to be written.  That is decided under the mutex:
 * what there is room for goes into the pipe under one hold, and so does what a
 * write can have that does not block.  One that has to wait for room has others
 * in between in any case.
 */
static bool anon_pipe_may_split(const struct pipe_inode_info *pipe,
				const struct kiocb *iocb, size_t len)
{
	unsigned int used = pipe_occupancy(pipe->head, pipe->tail);

	return used + DIV_ROUND_UP(len, PAGE_SIZE) > pipe->max_usage &&
	       !anon_pipe_nonblock(iocb);
}

/*
 * Whether a writer has prepared more, or would if there were room.  If not, and
 * something is left, anon_pipe_write() finds out why.
 */
static bool anon_pipe_can_prepare(const struct anon_pipe_prep *prep)
{
	return (prep->bytes || prep->would_block) && !prep->faulted;
}

/*
 * The buffer that the first @odd bytes of a write are merged with, or NULL.
 * Under pipe->mutex; the pipe is not empty.
 */
static struct pipe_buffer *anon_pipe_merge_buf(const struct pipe_inode_info *pipe,
					       unsigned int odd)
{
	struct pipe_buffer *buf = pipe_buf(pipe, pipe->head - 1);

	if ((buf->flags & PIPE_BUF_FLAG_CAN_MERGE) &&
	    buf->offset + buf->len + odd <= PAGE_SIZE)
		return buf;

	return NULL;
}

/*
 * Whether they will be merged, of a write of @len bytes.  That takes a look at a
 * buffer, and only pipe->mutex keeps the array of buffers where it is.  While
 * somebody else has the mutex, there is no telling.  That is not worth waiting
 * for if there is room for the write in any case: one that is not merged is not
 * wrong, it only takes a slot more.
 */
static bool anon_pipe_will_merge(struct pipe_inode_info *pipe, unsigned int odd,
				 size_t len)
{
	union pipe_index idx = { .head_tail = READ_ONCE(pipe->head_tail) };
	unsigned int used = pipe_occupancy(idx.head, idx.tail);
	bool ret;

	if (!used)
		return false;
	if (!mutex_trylock(&pipe->mutex)) {
		if (used + DIV_ROUND_UP(len, PAGE_SIZE) <= READ_ONCE(pipe->max_usage))
			return false;
		mutex_lock(&pipe->mutex);
	}
	ret = pipe->readers && !pipe_is_empty(pipe) &&
	      anon_pipe_merge_buf(pipe, odd);
	mutex_unlock(&pipe->mutex);
	return ret;
}

/*
 * Under pipe->mutex: whether a write has not prepared all that there is room
 * for, because there was less when it looked, or no memory, or another writer
 * had large_prep.
 */
static bool anon_pipe_missed_room(const struct pipe_inode_info *pipe,
				  const struct anon_pipe_prep *prep)
{
	unsigned int used = pipe_occupancy(pipe->head, pipe->tail);
	unsigned int slots = prep->filled - !!prep->merge;
	unsigned int max = prep->max;

	if (prep->pages == prep->few && !atomic_read(&pipe->large_prep))
		max = ANON_PIPE_PAGES_LARGE;

	return slots < max && used + slots < pipe->max_usage &&
	       pipe->readers && !prep->faulted;
}

/*
 * Do as much as possible of a write of a page or more before it takes
 * pipe->mutex: get pages, and copy user data into them.  An allocation charges
 * a memory cgroup and may reclaim, a copy may fault and wait for I/O or for
 * another task, and everybody else on this pipe would wait for that.
 *
 * Nothing here is binding.  The pipe is looked at without the mutex, so what
 * is seen may be out of date by the time the mutex is taken, and
 * anon_pipe_write() copes with any number of prepared pages, none included.
 * It is also what reports -EPIPE, -EAGAIN, -ENOMEM and -EFAULT, as it always
 * did: what fails here is left to it, and it comes to the same point if it gets
 * that far.  All this has to do is to guess right often, and cheaply.
 *
 * Until what there is room for is in the pipe, nothing is waited for but that:
 * the rest may take for ever, or may only come when a reader had the first of
 * it, and without room a writer sleeps interruptibly.  So what is beyond is
 * allocated without reclaim, and copied without page faults.  Where that fails,
 * it is left alone until there is room: if the memory has failed, each time is
 * a machine check.  What is merged needs no room.
 *
 * @odd is how many bytes from the start may be merged, 0 if none.  @room is what
 * there is at least: who gives up the mutex although there is a slot has to come
 * back with a page for it, or others could be faster each time.
 */
static void anon_pipe_prepare(struct pipe_inode_info *pipe,
			      struct anon_pipe_prep *prep,
			      const struct kiocb *iocb, struct iov_iter *from,
			      unsigned int odd, unsigned int room)
{
	size_t len = iov_iter_count(from);
	bool merge = odd && anon_pipe_will_merge(pipe, odd, len);
	unsigned int want, usable;

	room = max(room, anon_pipe_room(pipe));

	/* Pages that were prepared before this writer had to wait */
	if (prep->next) {
		prep->filled -= prep->next;
		prep->count -= prep->next;
		memmove(prep->pages, prep->pages + prep->next,
			prep->count * sizeof(prep->pages[0]));
		prep->next = 0;
	}

	/* What is merged has a page of its own, but no slot. */
	want = prep->filled - !!prep->merge +
	       DIV_ROUND_UP(merge ? len - odd : len, PAGE_SIZE);
	want = min3(want, READ_ONCE(pipe->max_usage), ANON_PIPE_PAGES_LARGE);
	usable = anon_pipe_usable(pipe, iocb, room);
	if (prep->may_grow && min(want, usable) > prep->max)
		anon_pipe_grow_prep(pipe, prep, want);
	want = min3(want, usable, prep->max) + (merge || prep->merge);
	/* What has faulted is not touched again, but by anon_pipe_write(). */
	while (prep->filled < want && !prep->faulted) {
		size_t chunk = merge ? odd : min(iov_iter_count(from), PAGE_SIZE);
		bool wait = merge || prep->filled - !!prep->merge < room;
		struct page *page;
		size_t copied;

		if (!wait && prep->would_block)
			break;

		/* Until it is known better */
		prep->would_block = !wait;
		if (prep->filled == prep->count) {
			/* Merging takes none, but the rest does if there is room. */
			page = anon_pipe_new_page(pipe, wait && (!merge || room));
			if (!page)
				break;
			prep->pages[prep->count++] = page;
		}

		page = prep->pages[prep->filled];
		if (wait)
			copied = copy_page_from_iter(page, 0, chunk, from);
		else
			copied = copy_folio_from_iter_atomic(page_folio(page), 0,
							     chunk, from);
		if (unlikely(copied < chunk)) {
			iov_iter_revert(from, copied);
			prep->faulted = wait;
			break;
		}
		prep->would_block = false;
		prep->filled++;
		prep->bytes += copied;
		if (merge) {
			prep->merge = odd;
			merge = false;
		}
	}
}

/*
 * A write of less than a page is merged as a whole, or needs one page.  Which
 * of them is known with pipe->mutex held, so its data are copied there; but it
 * should not be the first to see that pipe->prealloc is empty.  One that is about
 * to sleep does not @wait for it.
 */
static void anon_pipe_prefill(struct pipe_inode_info *pipe,
			      struct anon_pipe_prep *prep,
			      const struct kiocb *iocb, bool wait)
{
	if (prep->count || !anon_pipe_usable(pipe, iocb, anon_pipe_room(pipe)))
		return;

	prep->pages = prep->few;
	prep->few[0] = anon_pipe_new_page(pipe, wait);
	if (prep->few[0])
		prep->count = 1;
}

/* A page for what is not prepared, under pipe->mutex. */
static struct page *anon_pipe_get_page(struct pipe_inode_info *pipe,
				       struct anon_pipe_prep *prep)
{
	struct page *page;

	if (prep->count > prep->filled)
		return prep->pages[--prep->count];

	page = anon_pipe_prealloc_pop(&pipe->prealloc);
	if (page)
		return page;

	return anon_pipe_new_page(pipe, true);
}

/* Under pipe->mutex, or else two could put pages into the same slot. */
static bool anon_pipe_put_spare(struct pipe_inode_info *pipe, struct page *page)
{
	for (int i = 0; i < ARRAY_SIZE(pipe->spare_page); i++) {
		if (!atomic_long_read(&pipe->spare_page[i])) {
			/*
			 * What was read from the page comes before what the
			 * writer stores there who finds it.  Pairs with the
			 * xchg() in anon_pipe_take_spare().  Not just
			 * smp_store_release(): that could be lost where xchg()
			 * is a load and a store under a lock.
			 */
			atomic_long_set_release(&pipe->spare_page[i],
						(unsigned long)page);
			return true;
		}
	}

	return false;
}

/*
 * Keep @page for another write, under pipe->mutex: with the spare pages if a
 * write had it that takes these.  Returns false if it cannot be kept.
 */
static inline bool anon_pipe_cache_page(struct pipe_inode_info *pipe,
					struct page *page, bool spare)
{
	if (page_count(page) != 1)
		return false;
	if (spare)
		return anon_pipe_put_spare(pipe, page);

	return anon_pipe_prealloc_push(&pipe->prealloc, page);
}

/* Keep what a writer has left, under pipe->mutex. */
static void anon_pipe_cache_pages(struct pipe_inode_info *pipe,
				  struct anon_pipe_prep *prep, bool spares)
{
	while (prep->count > prep->next &&
	       anon_pipe_cache_page(pipe, prep->pages[prep->count - 1], spares))
		prep->count--;
}

static void anon_pipe_buf_release(struct pipe_inode_info *pipe,
				  struct pipe_buffer *buf)
{
	if (!anon_pipe_cache_page(pipe, buf->page, buf->flags & PIPE_BUF_FLAG_SPARE))
		put_page(buf->page);
}

static bool anon_pipe_buf_try_steal(struct pipe_inode_info *pipe,
		struct pipe_buffer *buf)
{
	struct page *page = buf->page;

	if (page_count(page) != 1)
		return false;
	memcg_kmem_uncharge_page(page, 0);
	__SetPageLocked(page);
	return true;
}

/**
 * generic_pipe_buf_try_steal - attempt to take ownership of a &pipe_buffer
 * @pipe:	the pipe that the buffer belongs to
 * @buf:	the buffer to attempt to steal
 *
 * Description:
 *	This function attempts to steal the &struct page attached to
 *	@buf. If successful, this function returns 0 and returns with
 *	the page locked. The caller may then reuse the page for whatever
 *	he wishes; the typical use is insertion into a different file
 *	page cache.
 */
bool generic_pipe_buf_try_steal(struct pipe_inode_info *pipe,
		struct pipe_buffer *buf)
{
	struct page *page = buf->page;

	/*
	 * A reference of one is golden, that means that the owner of this
	 * page is the only one holding a reference to it. lock the page
	 * and return OK.
	 */
	if (page_count(page) == 1) {
		lock_page(page);
		return true;
	}
	return false;
}
EXPORT_SYMBOL(generic_pipe_buf_try_steal);

/**
 * generic_pipe_buf_get - get a reference to a &struct pipe_buffer
 * @pipe:	the pipe that the buffer belongs to
 * @buf:	the buffer to get a reference to
 *
 * Description:
 *	This function grabs an extra reference to @buf. It's used in
 *	the tee() system call, when we duplicate the buffers in one
 *	pipe into another.
 */
bool generic_pipe_buf_get(struct pipe_inode_info *pipe, struct pipe_buffer *buf)
{
	return try_get_page(buf->page);
}
EXPORT_SYMBOL(generic_pipe_buf_get);

/**
 * generic_pipe_buf_release - put a reference to a &struct pipe_buffer
 * @pipe:	the pipe that the buffer belongs to
 * @buf:	the buffer to put a reference to
 *
 * Description:
 *	This function releases a reference to @buf.
 */
void generic_pipe_buf_release(struct pipe_inode_info *pipe,
			      struct pipe_buffer *buf)
{
	put_page(buf->page);
}
EXPORT_SYMBOL(generic_pipe_buf_release);

static const struct pipe_buf_operations anon_pipe_buf_ops = {
	.release	= anon_pipe_buf_release,
	.try_steal	= anon_pipe_buf_try_steal,
	.get		= generic_pipe_buf_get,
};

/* Done while waiting without holding the pipe lock - thus the READ_ONCE() */
static inline bool pipe_readable(const struct pipe_inode_info *pipe)
{
	union pipe_index idx = { .head_tail = READ_ONCE(pipe->head_tail) };
	unsigned int writers = READ_ONCE(pipe->writers);

	return !pipe_empty(idx.head, idx.tail) || !writers;
}

/*
 * Release a buffer that anon_pipe_read() has emptied.  A page that is not kept
 * goes to @drained, to be freed without pipe->mutex; only when that is full
 * too is it freed here.
 */
static inline void anon_pipe_drain_buf(struct pipe_inode_info *pipe,
				       struct pipe_buffer *buf,
				       struct anon_pipe_pages *drained)
{
	struct page *page = buf->page;

	if (buf->ops != &anon_pipe_buf_ops) {
		pipe_buf_release(pipe, buf);
		return;
	}

	buf->ops = NULL;
	if (anon_pipe_cache_page(pipe, page, buf->flags & PIPE_BUF_FLAG_SPARE))
		return;
	if (drained->count < ANON_PIPE_PAGES_MAX)
		drained->pages[drained->count++] = page;
	else
		put_page(page);
}

static inline unsigned int pipe_update_tail(struct pipe_inode_info *pipe,
					    struct pipe_buffer *buf,
					    unsigned int tail,
					    struct anon_pipe_pages *drained)
{
	anon_pipe_drain_buf(pipe, buf, drained);

	/*
	 * If the pipe has a watch_queue, we need additional protection
	 * by the spinlock because notifications get posted with only
	 * this spinlock, no mutex
	 */
	if (pipe_has_watch_queue(pipe)) {
		spin_lock_irq(&pipe->rd_wait.lock);
#ifdef CONFIG_WATCH_QUEUE
		if (buf->flags & PIPE_BUF_FLAG_LOSS)
			pipe->note_loss = true;
#endif
		pipe->tail = ++tail;
		spin_unlock_irq(&pipe->rd_wait.lock);
		return tail;
	}

	/*
	 * Without a watch_queue, we can simply increment the tail
	 * without the spinlock - the mutex is enough.
	 */
	pipe->tail = ++tail;
	return tail;
}

static ssize_t
anon_pipe_read(struct kiocb *iocb, struct iov_iter *to)
{
	size_t total_len = iov_iter_count(to);
	struct file *filp = iocb->ki_filp;
	struct pipe_inode_info *pipe = filp->private_data;
	bool wake_writer = false, wake_next_reader = false;
	struct anon_pipe_pages drained __uninitialized; /* but for count */
	ssize_t ret;

	/* Null read succeeds. */
	if (unlikely(total_len == 0))
		return 0;

	ret = 0;
	drained.count = 0;
	mutex_lock(&pipe->mutex);

	/*
	 * We only wake up writers if the pipe was full when we started reading
	 * and it is no longer full after reading to avoid unnecessary wakeups.
	 *
	 * But when we do wake up writers, we do so using a sync wakeup
	 * (WF_SYNC), because we want them to get going and generate more
	 * data for us.
	 */
	for (;;) {
		/* Read ->head with a barrier vs post_one_notification() */
		unsigned int head = smp_load_acquire(&pipe->head);
		unsigned int tail = pipe->tail;

#ifdef CONFIG_WATCH_QUEUE
		if (pipe->note_loss) {
			struct watch_notification n;

			if (total_len < 8) {
				if (ret == 0)
					ret = -ENOBUFS;
				break;
			}

			n.type = WATCH_TYPE_META;
			n.subtype = WATCH_META_LOSS_NOTIFICATION;
			n.info = watch_sizeof(n);
			if (copy_to_iter(&n, sizeof(n), to) != sizeof(n)) {
				if (ret == 0)
					ret = -EFAULT;
				break;
			}
			ret += sizeof(n);
			total_len -= sizeof(n);
			pipe->note_loss = false;
		}
#endif

		if (!pipe_empty(head, tail)) {
			struct pipe_buffer *buf = pipe_buf(pipe, tail);
			size_t chars = buf->len;
			size_t written;
			int error;

			if (chars > total_len) {
				if (buf->flags & PIPE_BUF_FLAG_WHOLE) {
					if (ret == 0)
						ret = -ENOBUFS;
					break;
				}
				chars = total_len;
			}

			error = pipe_buf_confirm(pipe, buf);
			if (error) {
				if (!ret)
					ret = error;
				break;
			}

			written = copy_page_to_iter(buf->page, buf->offset, chars, to);
			if (unlikely(written < chars)) {
				if (!ret)
					ret = -EFAULT;
				break;
			}
			ret += chars;
			buf->offset += chars;
			buf->len -= chars;

			/* Was it a packet buffer? Clean up and exit */
			if (buf->flags & PIPE_BUF_FLAG_PACKET) {
				total_len = chars;
				buf->len = 0;
			}

			if (!buf->len) {
				wake_writer |= pipe_full(head, tail, pipe->max_usage);
				tail = pipe_update_tail(pipe, buf, tail, &drained);
			}
			total_len -= chars;
			if (!total_len)
				break;	/* common path: read succeeded */
			if (!pipe_empty(head, tail))	/* More to do? */
				continue;
		}

		if (!pipe->writers)
			break;
		if (ret)
			break;
		if (anon_pipe_nonblock(iocb)) {
			ret = -EAGAIN;
			break;
		}
		mutex_unlock(&pipe->mutex);
		/* Nobody makes anonymous buffers of length 0, but if so: */
		if (unlikely(drained.count)) {
			anon_pipe_free_pages(drained.pages, drained.count);
			drained.count = 0;
		}
		/*
		 * We only get here if we didn't actually read anything.
		 *
		 * But because we didn't read anything, at this point we can
		 * just return directly with -ERESTARTSYS if we're interrupted,
		 * since we've done any required wakeups and there's no need
		 * to mark anything accessed. And we've dropped the lock.
		 */
		if (wait_event_interruptible_exclusive(pipe->rd_wait, pipe_readable(pipe)) < 0)
			return -ERESTARTSYS;

		wake_next_reader = true;
		mutex_lock(&pipe->mutex);
	}
	if (pipe_is_empty(pipe))
		wake_next_reader = false;
	mutex_unlock(&pipe->mutex);

	/* Before a writer is woken, who is about to need pages. */
	if (drained.count)
		anon_pipe_free_pages(drained.pages, drained.count);

	if (wake_writer)
		wake_up_interruptible_sync_poll(&pipe->wr_wait, EPOLLOUT | EPOLLWRNORM);
	if (wake_next_reader)
		wake_up_interruptible_sync_poll(&pipe->rd_wait, EPOLLIN | EPOLLRDNORM);
	if (unlikely(READ_ONCE(pipe->fasync_writers)))
		kill_fasync(&pipe->fasync_writers, SIGIO, POLL_OUT);
	return ret;
}

static ssize_t
fifo_pipe_read(struct kiocb *iocb, struct iov_iter *to)
{
	int ret = anon_pipe_read(iocb, to);
	if (ret > 0)
		file_accessed(iocb->ki_filp);
	return ret;
}

static inline int is_packetized(struct file *file)
{
	return (file->f_flags & O_DIRECT) != 0;
}

/* All flags of a new buffer: what its slot had before must not remain. */
static inline unsigned int anon_pipe_buf_flags(struct file *file, bool spares)
{
	unsigned int flags = is_packetized(file) ? PIPE_BUF_FLAG_PACKET :
						   PIPE_BUF_FLAG_CAN_MERGE;

	return spares ? flags | PIPE_BUF_FLAG_SPARE : flags;
}

/*
 * Merge the first prepared bytes with what is in @buf, under pipe->mutex.
 * Their page is empty then: it goes to the empty ones.  Returns how many bytes.
 */
static noinline unsigned int
anon_pipe_merge_page(struct pipe_buffer *buf, struct anon_pipe_prep *prep)
{
	struct page *page = prep->pages[prep->next];
	unsigned int odd = prep->merge;

	memcpy_page(buf->page, buf->offset + buf->len, page, 0, odd);
	prep->bytes -= odd;
	prep->merge = 0;
	prep->filled--;
	memmove(prep->pages + prep->next, prep->pages + prep->next + 1,
		(prep->filled - prep->next) * sizeof(prep->pages[0]));
	prep->pages[prep->filled] = page;
	return odd;
}

/*
 * Put prepared pages into the ring, under pipe->mutex, as long as there is room
 * for them.  There is for one.  Returns the length of the data in them.
 * Inlined, it would take the registers of smaller writes.
 */
static noinline size_t anon_pipe_link_pages(struct pipe_inode_info *pipe,
					    struct anon_pipe_prep *prep,
					    unsigned int flags)
{
	unsigned int head = pipe->head;
	size_t bytes = prep->bytes;

	do {
		struct pipe_buffer *buf = pipe_buf(pipe, head++);

		buf->page = prep->pages[prep->next++];
		buf->ops = &anon_pipe_buf_ops;
		buf->offset = 0;
		buf->len = prep->merge ?: min(prep->bytes, PAGE_SIZE);
		buf->flags = flags;
		prep->merge = 0;
		prep->bytes -= buf->len;
	} while (prep->bytes && !pipe_full(head, pipe->tail, pipe->max_usage));

	pipe->head = head;
	return bytes - prep->bytes;
}

/* Done while waiting without holding the pipe lock - thus the READ_ONCE() */
static inline bool pipe_writable(const struct pipe_inode_info *pipe)
{
	union pipe_index idx = { .head_tail = READ_ONCE(pipe->head_tail) };
	unsigned int max_usage = READ_ONCE(pipe->max_usage);

	return !pipe_full(idx.head, idx.tail, max_usage) ||
		!READ_ONCE(pipe->readers);
}

static ssize_t
anon_pipe_write(struct kiocb *iocb, struct iov_iter *from)
{
	struct file *filp = iocb->ki_filp;
	struct pipe_inode_info *pipe = filp->private_data;
	unsigned int head;
	ssize_t ret = 0, told = 0;
	size_t total_len = iov_iter_count(from);
	bool spares = anon_pipe_wants_spares(total_len);
	ssize_t chars;
	bool was_empty = false, full;
	bool wake_next_writer = false;
	bool split = false;
	struct anon_pipe_prep prep __uninitialized; /* but for its counts */

	/*
	 * Reject writing to watch queue pipes before the point where we lock
	 * the pipe.
	 * Otherwise, lockdep would be unhappy if the caller already has another
	 * pipe locked.
	 * If we had to support locking a normal pipe and a notification pipe at
	 * the same time, we could set up lockdep annotations for that, but
	 * since we don't actually need that, it's simpler to just bail here.
	 */
	if (pipe_has_watch_queue(pipe))
		return -EXDEV;

	/* Null write succeeds. */
	if (unlikely(total_len == 0))
		return 0;

	chars = total_len & (PAGE_SIZE - 1);
	prep.next = 0;
	prep.filled = 0;
	prep.count = 0;
	prep.bytes = 0;
	if (spares) {
		prep.pages = prep.few;
		prep.max = ANON_PIPE_PAGES_MAX;
		prep.may_grow = true;
		prep.faulted = false;
		prep.would_block = false;
		prep.merge = 0;
		anon_pipe_prepare(pipe, &prep, iocb, from, chars, 0);
	} else if (!READ_ONCE(pipe->prealloc.count)) {
		anon_pipe_prefill(pipe, &prep, iocb, true);
	}

	mutex_lock(&pipe->mutex);

	/*
	 * A writer who waits for the mutex often waits for a reader who makes
	 * room. There is nothing of this write in the pipe yet that others must
	 * not come behind: let it prepare for that room, too, once.
	 */
	if (spares && iov_iter_count(from) && anon_pipe_missed_room(pipe, &prep)) {
		mutex_unlock(&pipe->mutex);
		anon_pipe_prepare(pipe, &prep, iocb, from,
				  prep.bytes ? 0 : chars, 0);
		mutex_lock(&pipe->mutex);
	}

	if (!pipe->readers) {
		if ((iocb->ki_flags & IOCB_NOSIGNAL) == 0)
			send_sig(SIGPIPE, current, 0);
		ret = -EPIPE;
		goto out;
	}

	/*
	 * If it wasn't empty we try to merge new data into
	 * the last buffer.
	 *
	 * That naturally merges small writes, but it also
	 * page-aligns the rest of the writes for large writes
	 * spanning multiple pages.
	 */
	head = pipe->head;
	was_empty = pipe_empty(head, pipe->tail);
	if (chars && !was_empty && (!prep.bytes || prep.merge)) {
		struct pipe_buffer *buf = anon_pipe_merge_buf(pipe, chars);

		if (buf) {
			ret = pipe_buf_confirm(pipe, buf);
			if (ret)
				goto out;

			if (prep.bytes) {
				ret = anon_pipe_merge_page(buf, &prep);
			} else {
				ret = copy_page_from_iter(buf->page,
							  buf->offset + buf->len,
							  chars, from);
				if (unlikely(ret < chars)) {
					ret = -EFAULT;
					goto out;
				}
			}

			buf->len += ret;
			if (!prep.bytes && !iov_iter_count(from))
				goto out;
		}
	}

	/* If the next copy faults, there is nothing to give way for. */
	if (spares && anon_pipe_can_prepare(&prep))
		split = anon_pipe_may_split(pipe, iocb,
					    prep.bytes + iov_iter_count(from));

	for (;;) {
		if (!pipe->readers) {
			if ((iocb->ki_flags & IOCB_NOSIGNAL) == 0)
				send_sig(SIGPIPE, current, 0);
			if (!ret)
				ret = -EPIPE;
			break;
		}

		head = pipe->head;
		full = pipe_full(head, pipe->tail, pipe->max_usage);
		if (!full && prep.bytes) {
			ret += anon_pipe_link_pages(pipe, &prep,
						    anon_pipe_buf_flags(filp, spares));
			if (!prep.bytes && !iov_iter_count(from))
				break;
			continue;
		}

		if (!full && !split) {
			struct pipe_buffer *buf;
			struct page *page;
			int copied;

			page = anon_pipe_get_page(pipe, &prep);
			if (unlikely(!page)) {
				if (!ret)
					ret = -ENOMEM;
				break;
			}

			copied = copy_page_from_iter(page, 0, PAGE_SIZE, from);
			if (unlikely(copied < PAGE_SIZE && iov_iter_count(from))) {
				if (!anon_pipe_cache_page(pipe, page, spares))
					put_page(page);
				if (!ret)
					ret = -EFAULT;
				break;
			}

			pipe->head = head + 1;
			/* Insert it into the buffer array */
			buf = pipe_buf(pipe, head);
			buf->page = page;
			buf->ops = &anon_pipe_buf_ops;
			buf->offset = 0;
			buf->flags = anon_pipe_buf_flags(filp, spares);

			buf->len = copied;
			ret += copied;

			if (!iov_iter_count(from))
				break;

			prep.faulted = false;
			prep.would_block = false;
			continue;
		}

		/*
		 * Wait for buffer space to become available, or only give way.
		 * With a reader that keeps up, the latter is all that a long
		 * write does, so it has to look for signals there, too.
		 */
		if (full && anon_pipe_nonblock(iocb)) {
			if (!ret)
				ret = -EAGAIN;
			break;
		}
		if (signal_pending(current)) {
			if (!ret)
				ret = -ERESTARTSYS;
			break;
		}

		/*
		 * We're going to release the pipe lock and wait for more
		 * space. We wake up any readers if necessary, and then
		 * after waiting we need to re-check whether the pipe
		 * become empty while we dropped the lock.
		 *
		 * There is nothing new for them if this writer was woken only
		 * to find that it has to prepare the next page first. It is not
		 * a 'sync' wakeup if we are not about to sleep.
		 */
		mutex_unlock(&pipe->mutex);
		if (full || ret > told) {
			if (was_empty && full)
				wake_up_interruptible_sync_poll(&pipe->rd_wait,
								EPOLLIN | EPOLLRDNORM);
			else if (was_empty)
				wake_up_interruptible_poll(&pipe->rd_wait,
							   EPOLLIN | EPOLLRDNORM);
			kill_fasync(&pipe->fasync_readers, SIGIO, POLL_IN);
			told = ret;
		}
		if (spares)
			anon_pipe_trim_prep(pipe, &prep, from);
		/*
		 * Prepare more before the wait, not after: whoever is woken was
		 * picked from all writers that wait, and the others sleep on
		 * until it has written. So it should not have to wait for
		 * anything else by then; and if there is room for more, or for
		 * what could not be prepared without waiting, it is their turn
		 * while this one prepares it.
		 */
		if (!full)
			wake_up_interruptible_poll(&pipe->wr_wait, EPOLLOUT | EPOLLWRNORM);
		if (spares)
			anon_pipe_prepare(pipe, &prep, iocb, from, 0, !full);
		else if (!READ_ONCE(pipe->prealloc.count))
			anon_pipe_prefill(pipe, &prep, iocb, false);
		if (full)
			wait_event_interruptible_exclusive(pipe->wr_wait, pipe_writable(pipe));
		mutex_lock(&pipe->mutex);
		was_empty = pipe_is_empty(pipe);
		wake_next_writer = true;
		/*
		 * A write that there was no room for need not be contiguous, so
		 * it may give up the mutex to prepare what there is room for by
		 * now. But if nothing can be prepared, go on here, which finds
		 * out why.
		 */
		split = spares && anon_pipe_can_prepare(&prep);
	}
out:
	if (pipe_is_full(pipe))
		wake_next_writer = false;
	anon_pipe_cache_pages(pipe, &prep, spares);
	mutex_unlock(&pipe->mutex);

	/*
	 * If we do do a wakeup event, we do a 'sync' wakeup, because we
	 * want the reader to start processing things asap, rather than
	 * leave the data pending.
	 *
	 * This is particularly important for small writes, because of
	 * how (for example) the GNU make jobserver uses small writes to
	 * wake up pending jobs
	 *
	 * ->pseudo_edgetrigger enables per-write wakeups, see pipe_poll()
	 *
	 * The barrier in wq_has_sleeper() orders the stores above, to ->head,
	 * before its look at the queue. It pairs with set_current_state() in
	 * prepare_to_wait_event() and with smp_mb() in poll_wait(), which order
	 * the store to the queue before the load of ->head.
	 */
	if ((was_empty || READ_ONCE(pipe->pseudo_edgetrigger)) &&
	    wq_has_sleeper(&pipe->rd_wait))
		wake_up_interruptible_sync_poll(&pipe->rd_wait, EPOLLIN | EPOLLRDNORM);
	if (unlikely(READ_ONCE(pipe->fasync_readers)))
		kill_fasync(&pipe->fasync_readers, SIGIO, POLL_IN);
	if (wake_next_writer)
		wake_up_interruptible_sync_poll(&pipe->wr_wait, EPOLLOUT | EPOLLWRNORM);
	if (spares || prep.count)
		anon_pipe_end_prep(pipe, &prep, from);
	return ret;
}

static ssize_t
fifo_pipe_write(struct kiocb *iocb, struct iov_iter *from)
{
	int ret = anon_pipe_write(iocb, from);
	if (ret > 0) {
		struct file *filp = iocb->ki_filp;
		if (sb_start_write_trylock(file_inode(filp)->i_sb)) {
			int err = file_update_time(filp);
			if (err)
				ret = err;
			sb_end_write(file_inode(filp)->i_sb);
		}
	}
	return ret;
}

static long pipe_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct pipe_inode_info *pipe = filp->private_data;
	unsigned int count, head, tail;

	switch (cmd) {
	case FIONREAD:
		mutex_lock(&pipe->mutex);
		count = 0;
		head = pipe->head;
		tail = pipe->tail;

		while (!pipe_empty(head, tail)) {
			count += pipe_buf(pipe, tail)->len;
			tail++;
		}
		mutex_unlock(&pipe->mutex);

		return put_user(count, (int __user *)arg);

#ifdef CONFIG_WATCH_QUEUE
	case IOC_WATCH_QUEUE_SET_SIZE: {
		int ret;
		mutex_lock(&pipe->mutex);
		ret = watch_queue_set_size(pipe, arg);
		mutex_unlock(&pipe->mutex);
		return ret;
	}

	case IOC_WATCH_QUEUE_SET_FILTER:
		return watch_queue_set_filter(
			pipe, (struct watch_notification_filter __user *)arg);
#endif

	default:
		return -ENOIOCTLCMD;
	}
}

static __poll_t
pipe_poll(struct file *filp, poll_table *wait)
{
	__poll_t mask;
	struct pipe_inode_info *pipe = filp->private_data;
	union pipe_index idx;

	/*
	 * Legacy epoll(EPOLLET) users depend on historical per-write wakeups,
	 * see 3a34b13a88ca ("pipe: make pipe writes always wake up readers")
	 * and the ->pseudo_edgetrigger check in anon_pipe_write().
	 * Currently io_uring sets EPOLLET for multishot polls, so it gets the
	 * same behaviour.
	 */
	if ((filp->f_mode & FMODE_READ) &&
	    wait && (wait->_key & EPOLLET) &&
	    unlikely(!READ_ONCE(pipe->pseudo_edgetrigger)))
		WRITE_ONCE(pipe->pseudo_edgetrigger, true);

	/*
	 * Reading pipe state only -- no need for acquiring the semaphore.
	 *
	 * But because this is racy, the code has to add the
	 * entry to the poll table _first_ ..
	 */
	if (filp->f_mode & FMODE_READ)
		poll_wait(filp, &pipe->rd_wait, wait);
	if (filp->f_mode & FMODE_WRITE)
		poll_wait(filp, &pipe->wr_wait, wait);

	/*
	 * .. and only then can you do the racy tests. That way,
	 * if something changes and you got it wrong, the poll
	 * table entry will wake you up and fix it.
	 */
	idx.head_tail = READ_ONCE(pipe->head_tail);

	mask = 0;
	if (filp->f_mode & FMODE_READ) {
		if (!pipe_empty(idx.head, idx.tail))
			mask |= EPOLLIN | EPOLLRDNORM;
		if (!pipe->writers && filp->f_pipe != pipe->w_counter)
			mask |= EPOLLHUP;
	}

	if (filp->f_mode & FMODE_WRITE) {
		if (!pipe_full(idx.head, idx.tail, pipe->max_usage))
			mask |= EPOLLOUT | EPOLLWRNORM;
		/*
		 * Most Unices do not set EPOLLERR for FIFOs but on Linux they
		 * behave exactly like pipes for poll().
		 */
		if (!pipe->readers)
			mask |= EPOLLERR;
	}

	return mask;
}

static void put_pipe_info(struct inode *inode, struct pipe_inode_info *pipe)
{
	int kill = 0;

	spin_lock(&inode->i_lock);
	if (!--pipe->files) {
		inode->i_pipe = NULL;
		kill = 1;
	}
	spin_unlock(&inode->i_lock);

	if (kill)
		free_pipe_info(pipe);
}

static int
pipe_release(struct inode *inode, struct file *file)
{
	struct pipe_inode_info *pipe = file->private_data;

	mutex_lock(&pipe->mutex);
	if (file->f_mode & FMODE_READ)
		pipe->readers--;
	if (file->f_mode & FMODE_WRITE)
		pipe->writers--;

	/* Was that the last reader or writer, but not the other side? */
	if (!pipe->readers != !pipe->writers) {
		wake_up_interruptible_all(&pipe->rd_wait);
		wake_up_interruptible_all(&pipe->wr_wait);
		kill_fasync(&pipe->fasync_readers, SIGIO, POLL_IN);
		kill_fasync(&pipe->fasync_writers, SIGIO, POLL_OUT);
	}
	mutex_unlock(&pipe->mutex);

	put_pipe_info(inode, pipe);
	return 0;
}

static int
pipe_fasync(int fd, struct file *filp, int on)
{
	struct pipe_inode_info *pipe = filp->private_data;
	int retval = 0;

	mutex_lock(&pipe->mutex);
	if (filp->f_mode & FMODE_READ)
		retval = fasync_helper(fd, filp, on, &pipe->fasync_readers);
	if ((filp->f_mode & FMODE_WRITE) && retval >= 0) {
		int read_ret = retval;

		retval = fasync_helper(fd, filp, on, &pipe->fasync_writers);
		/* Undo only a reader entry added by this call. */
		if (retval < 0 && read_ret > 0)
			fasync_helper(-1, filp, 0, &pipe->fasync_readers);
	}
	mutex_unlock(&pipe->mutex);
	return retval;
}

unsigned long account_pipe_buffers(struct user_struct *user,
				   unsigned long old, unsigned long new)
{
	return atomic_long_add_return(new - old, &user->pipe_bufs);
}

bool too_many_pipe_buffers_soft(unsigned long user_bufs)
{
	unsigned long soft_limit = READ_ONCE(pipe_user_pages_soft);

	return soft_limit && user_bufs > soft_limit;
}

bool too_many_pipe_buffers_hard(unsigned long user_bufs)
{
	unsigned long hard_limit = READ_ONCE(pipe_user_pages_hard);

	return hard_limit && user_bufs > hard_limit;
}

bool pipe_is_unprivileged_user(void)
{
	return !capable(CAP_SYS_RESOURCE) && !capable(CAP_SYS_ADMIN);
}

struct pipe_inode_info *alloc_pipe_info(void)
{
	struct pipe_inode_info *pipe;
	unsigned long pipe_bufs = PIPE_DEF_BUFFERS;
	struct user_struct *user = get_current_user();
	unsigned long user_bufs;
	unsigned int max_size = READ_ONCE(pipe_max_size);

	pipe = kzalloc_obj(struct pipe_inode_info, GFP_KERNEL_ACCOUNT);
	if (pipe == NULL)
		goto out_free_uid;

	if (pipe_bufs * PAGE_SIZE > max_size && !capable(CAP_SYS_RESOURCE))
		pipe_bufs = max_size >> PAGE_SHIFT;

	user_bufs = account_pipe_buffers(user, 0, pipe_bufs);

	if (too_many_pipe_buffers_soft(user_bufs) && pipe_is_unprivileged_user()) {
		user_bufs = account_pipe_buffers(user, pipe_bufs, PIPE_MIN_DEF_BUFFERS);
		pipe_bufs = PIPE_MIN_DEF_BUFFERS;
	}

	if (too_many_pipe_buffers_hard(user_bufs) && pipe_is_unprivileged_user())
		goto out_revert_acct;

	pipe->bufs = kzalloc_objs(struct pipe_buffer, pipe_bufs,
				  GFP_KERNEL_ACCOUNT);

	if (pipe->bufs) {
		init_waitqueue_head(&pipe->rd_wait);
		init_waitqueue_head(&pipe->wr_wait);
		pipe->r_counter = pipe->w_counter = 1;
		pipe->max_usage = pipe_bufs;
		pipe->ring_size = pipe_bufs;
		pipe->nr_accounted = pipe_bufs;
		pipe->user = user;
		mutex_init(&pipe->mutex);
		lock_set_cmp_fn(&pipe->mutex, pipe_lock_cmp_fn, NULL);
		return pipe;
	}

out_revert_acct:
	(void) account_pipe_buffers(user, pipe_bufs, 0);
	kfree(pipe);
out_free_uid:
	free_uid(user);
	return NULL;
}

void free_pipe_info(struct pipe_inode_info *pipe)
{
	unsigned int i;

#ifdef CONFIG_WATCH_QUEUE
	if (pipe->watch_queue)
		watch_queue_clear(pipe->watch_queue);
#endif

	(void) account_pipe_buffers(pipe->user, pipe->nr_accounted, 0);
	free_uid(pipe->user);
	for (i = 0; i < pipe->ring_size; i++) {
		struct pipe_buffer *buf = pipe->bufs + i;
		if (buf->ops)
			pipe_buf_release(pipe, buf);
	}
#ifdef CONFIG_WATCH_QUEUE
	if (pipe->watch_queue)
		put_watch_queue(pipe->watch_queue);
#endif
	for (i = 0; i < pipe->prealloc.count; i++)
		__free_page(pipe->prealloc.pages[i]);
	for (i = 0; i < ARRAY_SIZE(pipe->spare_page); i++) {
		struct page *page = (struct page *)atomic_long_read(&pipe->spare_page[i]);

		if (page)
			__free_page(page);
	}
	kfree(pipe->bufs);
	kfree(pipe);
}

static struct vfsmount *pipe_mnt __ro_after_init;

/*
 * pipefs_dname() is called from d_path().
 */
static char *pipefs_dname(struct dentry *dentry, char *buffer, int buflen)
{
	return dynamic_dname(buffer, buflen, "pipe:[%llu]",
				d_inode(dentry)->i_ino);
}

static const struct dentry_operations pipefs_dentry_operations = {
	.d_dname	= pipefs_dname,
};

static const struct file_operations pipeanon_fops;

static struct inode * get_pipe_inode(void)
{
	struct inode *inode = new_inode_pseudo(pipe_mnt->mnt_sb);
	struct pipe_inode_info *pipe;

	if (!inode)
		goto fail_inode;

	inode->i_ino = get_next_ino();

	pipe = alloc_pipe_info();
	if (!pipe)
		goto fail_iput;

	inode->i_pipe = pipe;
	pipe->files = 2;
	pipe->readers = pipe->writers = 1;
	inode->i_fop = &pipeanon_fops;

	/*
	 * Mark the inode dirty from the very beginning,
	 * that way it will never be moved to the dirty
	 * list because "mark_inode_dirty()" will think
	 * that it already _is_ on the dirty list.
	 */
	inode_state_assign_raw(inode, I_DIRTY);
	inode->i_mode = S_IFIFO | S_IRUSR | S_IWUSR;
	inode->i_uid = current_fsuid();
	inode->i_gid = current_fsgid();
	simple_inode_init_ts(inode);

	return inode;

fail_iput:
	iput(inode);

fail_inode:
	return NULL;
}

int create_pipe_files(struct file **res, int flags)
{
	struct inode *inode = get_pipe_inode();
	struct file *f;
	int error;

	if (!inode)
		return -ENFILE;

	if (flags & O_NOTIFICATION_PIPE) {
		error = watch_queue_init(inode->i_pipe);
		if (error) {
			free_pipe_info(inode->i_pipe);
			iput(inode);
			return error;
		}
	}

	f = alloc_file_pseudo(inode, pipe_mnt, "",
				O_WRONLY | (flags & (O_NONBLOCK | O_DIRECT)),
				&pipeanon_fops);
	if (IS_ERR(f)) {
		free_pipe_info(inode->i_pipe);
		iput(inode);
		return PTR_ERR(f);
	}

	f->private_data = inode->i_pipe;
	f->f_pipe = 0;

	res[0] = alloc_file_clone(f, O_RDONLY | (flags & O_NONBLOCK),
				  &pipeanon_fops);
	if (IS_ERR(res[0])) {
		put_pipe_info(inode, inode->i_pipe);
		fput(f);
		return PTR_ERR(res[0]);
	}
	res[0]->private_data = inode->i_pipe;
	res[0]->f_pipe = 0;
	res[1] = f;
	stream_open(inode, res[0]);
	stream_open(inode, res[1]);

	/* pipe groks IOCB_NOWAIT */
	res[0]->f_mode |= FMODE_NOWAIT;
	res[1]->f_mode |= FMODE_NOWAIT;

	/*
	 * Disable permission and pre-content events, but enable legacy
	 * inotify events for legacy users.
	 */
	file_set_fsnotify_mode(res[0], FMODE_NONOTIFY_PERM);
	file_set_fsnotify_mode(res[1], FMODE_NONOTIFY_PERM);
	return 0;
}

static int __do_pipe_flags(int *fd, struct file **files, int flags)
{
	int error;
	int fdw, fdr;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT | O_NOTIFICATION_PIPE))
		return -EINVAL;

	error = create_pipe_files(files, flags);
	if (error)
		return error;

	error = get_unused_fd_flags(flags);
	if (error < 0)
		goto err_read_pipe;
	fdr = error;

	error = get_unused_fd_flags(flags);
	if (error < 0)
		goto err_fdr;
	fdw = error;

	audit_fd_pair(fdr, fdw);
	fd[0] = fdr;
	fd[1] = fdw;
	return 0;

 err_fdr:
	put_unused_fd(fdr);
 err_read_pipe:
	fput(files[0]);
	fput(files[1]);
	return error;
}

int do_pipe_flags(int *fd, int flags)
{
	struct file *files[2];
	int error = __do_pipe_flags(fd, files, flags);
	if (!error) {
		fd_install(fd[0], files[0]);
		fd_install(fd[1], files[1]);
	}
	return error;
}

/*
 * sys_pipe() is the normal C calling standard for creating
 * a pipe. It's not the way Unix traditionally does this, though.
 */
static int do_pipe2(int __user *fildes, int flags)
{
	struct file *files[2];
	int fd[2];
	int error;

	error = __do_pipe_flags(fd, files, flags);
	if (!error) {
		if (unlikely(copy_to_user(fildes, fd, sizeof(fd)))) {
			fput(files[0]);
			fput(files[1]);
			put_unused_fd(fd[0]);
			put_unused_fd(fd[1]);
			error = -EFAULT;
		} else {
			fd_install(fd[0], files[0]);
			fd_install(fd[1], files[1]);
		}
	}
	return error;
}

SYSCALL_DEFINE2(pipe2, int __user *, fildes, int, flags)
{
	return do_pipe2(fildes, flags);
}

SYSCALL_DEFINE1(pipe, int __user *, fildes)
{
	return do_pipe2(fildes, 0);
}

/*
 * This is the stupid "wait for pipe to be readable or writable"
 * model.
 *
 * See pipe_read/write() for the proper kind of exclusive wait,
 * but that requires that we wake up any other readers/writers
 * if we then do not end up reading everything (ie the whole
 * "wake_next_reader/writer" logic in pipe_read/write()).
 */
void pipe_wait_readable(struct pipe_inode_info *pipe)
{
	pipe_unlock(pipe);
	wait_event_interruptible(pipe->rd_wait, pipe_readable(pipe));
	pipe_lock(pipe);
}

void pipe_wait_writable(struct pipe_inode_info *pipe)
{
	pipe_unlock(pipe);
	wait_event_interruptible(pipe->wr_wait, pipe_writable(pipe));
	pipe_lock(pipe);
}

/*
 * This depends on both the wait (here) and the wakeup (wake_up_partner)
 * holding the pipe lock, so "*cnt" is stable and we know a wakeup cannot
 * race with the count check and waitqueue prep.
 *
 * Normally in order to avoid races, you'd do the prepare_to_wait() first,
 * then check the condition you're waiting for, and only then sleep. But
 * because of the pipe lock, we can check the condition before being on
 * the wait queue.
 *
 * We use the 'rd_wait' waitqueue for pipe partner waiting.
 */
static int wait_for_partner(struct pipe_inode_info *pipe, unsigned int *cnt)
{
	DEFINE_WAIT(rdwait);
	int cur = *cnt;

	while (cur == *cnt) {
		prepare_to_wait(&pipe->rd_wait, &rdwait, TASK_INTERRUPTIBLE);
		pipe_unlock(pipe);
		schedule();
		finish_wait(&pipe->rd_wait, &rdwait);
		pipe_lock(pipe);
		if (signal_pending(current))
			break;
	}
	return cur == *cnt ? -ERESTARTSYS : 0;
}

static void wake_up_partner(struct pipe_inode_info *pipe)
{
	wake_up_interruptible_all(&pipe->rd_wait);
}

static int fifo_open(struct inode *inode, struct file *filp)
{
	bool is_pipe = inode->i_fop == &pipeanon_fops;
	struct pipe_inode_info *pipe;
	int ret;

	filp->f_pipe = 0;

	spin_lock(&inode->i_lock);
	if (inode->i_pipe) {
		pipe = inode->i_pipe;
		pipe->files++;
		spin_unlock(&inode->i_lock);
	} else {
		spin_unlock(&inode->i_lock);
		pipe = alloc_pipe_info();
		if (!pipe)
			return -ENOMEM;
		pipe->files = 1;
		spin_lock(&inode->i_lock);
		if (unlikely(inode->i_pipe)) {
			inode->i_pipe->files++;
			spin_unlock(&inode->i_lock);
			free_pipe_info(pipe);
			pipe = inode->i_pipe;
		} else {
			inode->i_pipe = pipe;
			spin_unlock(&inode->i_lock);
		}
	}
	filp->private_data = pipe;
	/* OK, we have a pipe and it's pinned down */

	mutex_lock(&pipe->mutex);

	/* We can only do regular read/write on fifos */
	stream_open(inode, filp);

	switch (filp->f_mode & (FMODE_READ | FMODE_WRITE)) {
	case FMODE_READ:
	/*
	 *  O_RDONLY
	 *  POSIX.1 says that O_NONBLOCK means return with the FIFO
	 *  opened, even when there is no process writing the FIFO.
	 */
		pipe->r_counter++;
		if (pipe->readers++ == 0)
			wake_up_partner(pipe);

		if (!is_pipe && !pipe->writers) {
			if ((filp->f_flags & O_NONBLOCK)) {
				/* suppress EPOLLHUP until we have
				 * seen a writer */
				filp->f_pipe = pipe->w_counter;
			} else {
				if (wait_for_partner(pipe, &pipe->w_counter))
					goto err_rd;
			}
		}
		break;

	case FMODE_WRITE:
	/*
	 *  O_WRONLY
	 *  POSIX.1 says that O_NONBLOCK means return -1 with
	 *  errno=ENXIO when there is no process reading the FIFO.
	 */
		ret = -ENXIO;
		if (!is_pipe && (filp->f_flags & O_NONBLOCK) && !pipe->readers)
			goto err;

		pipe->w_counter++;
		if (!pipe->writers++)
			wake_up_partner(pipe);

		if (!is_pipe && !pipe->readers) {
			if (wait_for_partner(pipe, &pipe->r_counter))
				goto err_wr;
		}
		break;

	case FMODE_READ | FMODE_WRITE:
	/*
	 *  O_RDWR
	 *  POSIX.1 leaves this case "undefined" when O_NONBLOCK is set.
	 *  This implementation will NEVER block on a O_RDWR open, since
	 *  the process can at least talk to itself.
	 */

		pipe->readers++;
		pipe->writers++;
		pipe->r_counter++;
		pipe->w_counter++;
		if (pipe->readers == 1 || pipe->writers == 1)
			wake_up_partner(pipe);
		break;

	default:
		ret = -EINVAL;
		goto err;
	}

	/* Ok! */
	mutex_unlock(&pipe->mutex);
	return 0;

err_rd:
	if (!--pipe->readers)
		wake_up_interruptible(&pipe->wr_wait);
	ret = -ERESTARTSYS;
	goto err;

err_wr:
	if (!--pipe->writers)
		wake_up_interruptible_all(&pipe->rd_wait);
	ret = -ERESTARTSYS;
	goto err;

err:
	mutex_unlock(&pipe->mutex);

	put_pipe_info(inode, pipe);
	return ret;
}

const struct file_operations pipefifo_fops = {
	.open		= fifo_open,
	.read_iter	= fifo_pipe_read,
	.write_iter	= fifo_pipe_write,
	.poll		= pipe_poll,
	.unlocked_ioctl	= pipe_ioctl,
	.release	= pipe_release,
	.fasync		= pipe_fasync,
	.splice_write	= iter_file_splice_write,
};

static const struct file_operations pipeanon_fops = {
	.open		= fifo_open,
	.read_iter	= anon_pipe_read,
	.write_iter	= anon_pipe_write,
	.poll		= pipe_poll,
	.unlocked_ioctl	= pipe_ioctl,
	.release	= pipe_release,
	.fasync		= pipe_fasync,
	.splice_write	= iter_file_splice_write,
};

/*
 * Currently we rely on the pipe array holding a power-of-2 number
 * of pages. Returns 0 on error.
 */
unsigned int round_pipe_size(unsigned int size)
{
	if (size > (1U << 31))
		return 0;

	/* Minimum pipe size, as required by POSIX */
	if (size < PAGE_SIZE)
		return PAGE_SIZE;

	return roundup_pow_of_two(size);
}

/*
 * Resize the pipe ring to a number of slots.
 *
 * Note the pipe can be reduced in capacity, but only if the current
 * occupancy doesn't exceed nr_slots; if it does, EBUSY will be
 * returned instead.
 */
int pipe_resize_ring(struct pipe_inode_info *pipe, unsigned int nr_slots)
{
	struct pipe_buffer *bufs;
	unsigned int head, tail, mask, n;

	/* nr_slots larger than limits of pipe->{head,tail} */
	if (unlikely(nr_slots > (pipe_index_t)-1u))
		return -EINVAL;

	bufs = kzalloc_objs(*bufs, nr_slots, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (unlikely(!bufs))
		return -ENOMEM;

	spin_lock_irq(&pipe->rd_wait.lock);
	mask = pipe->ring_size - 1;
	head = pipe->head;
	tail = pipe->tail;

	n = pipe_occupancy(head, tail);
	if (nr_slots < n) {
		spin_unlock_irq(&pipe->rd_wait.lock);
		kfree(bufs);
		return -EBUSY;
	}

	/*
	 * The pipe array wraps around, so just start the new one at zero
	 * and adjust the indices.
	 */
	if (n > 0) {
		unsigned int h = head & mask;
		unsigned int t = tail & mask;
		if (h > t) {
			memcpy(bufs, pipe->bufs + t,
			       n * sizeof(struct pipe_buffer));
		} else {
			unsigned int tsize = pipe->ring_size - t;
			if (h > 0)
				memcpy(bufs + tsize, pipe->bufs,
				       h * sizeof(struct pipe_buffer));
			memcpy(bufs, pipe->bufs + t,
			       tsize * sizeof(struct pipe_buffer));
		}
	}

	head = n;
	tail = 0;

	kfree(pipe->bufs);
	pipe->bufs = bufs;
	pipe->ring_size = nr_slots;
	if (pipe->max_usage > nr_slots)
		pipe->max_usage = nr_slots;
	pipe->tail = tail;
	pipe->head = head;

	if (!pipe_has_watch_queue(pipe)) {
		pipe->max_usage = nr_slots;
		pipe->nr_accounted = nr_slots;
	}

	spin_unlock_irq(&pipe->rd_wait.lock);

	/* This might have made more room for writers */
	wake_up_interruptible(&pipe->wr_wait);
	return 0;
}

/*
 * Allocate a new array of pipe buffers and copy the info over. Returns the
 * pipe size if successful, or return -ERROR on error.
 */
static long pipe_set_size(struct pipe_inode_info *pipe, unsigned int arg)
{
	unsigned long user_bufs;
	unsigned int nr_slots, size;
	long ret = 0;

	if (pipe_has_watch_queue(pipe))
		return -EBUSY;

	size = round_pipe_size(arg);
	nr_slots = size >> PAGE_SHIFT;

	if (!nr_slots)
		return -EINVAL;

	/*
	 * If trying to increase the pipe capacity, check that an
	 * unprivileged user is not trying to exceed various limits
	 * (soft limit check here, hard limit check just below).
	 * Decreasing the pipe capacity is always permitted, even
	 * if the user is currently over a limit.
	 */
	if (nr_slots > pipe->max_usage &&
			size > pipe_max_size && !capable(CAP_SYS_RESOURCE))
		return -EPERM;

	user_bufs = account_pipe_buffers(pipe->user, pipe->nr_accounted, nr_slots);

	if (nr_slots > pipe->max_usage &&
			(too_many_pipe_buffers_hard(user_bufs) ||
			 too_many_pipe_buffers_soft(user_bufs)) &&
			pipe_is_unprivileged_user()) {
		ret = -EPERM;
		goto out_revert_acct;
	}

	ret = pipe_resize_ring(pipe, nr_slots);
	if (ret < 0)
		goto out_revert_acct;

	return pipe->max_usage * PAGE_SIZE;

out_revert_acct:
	(void) account_pipe_buffers(pipe->user, nr_slots, pipe->nr_accounted);
	return ret;
}

/*
 * Note that i_pipe and i_cdev share the same location, so checking ->i_pipe is
 * not enough to verify that this is a pipe.
 */
struct pipe_inode_info *get_pipe_info(struct file *file, bool for_splice)
{
	struct pipe_inode_info *pipe = file->private_data;

	if (!pipe)
		return NULL;
	if (file->f_op != &pipefifo_fops && file->f_op != &pipeanon_fops)
		return NULL;
	if (for_splice && pipe_has_watch_queue(pipe))
		return NULL;
	return pipe;
}

long pipe_fcntl(struct file *file, unsigned int cmd, unsigned int arg)
{
	struct pipe_inode_info *pipe;
	long ret;

	pipe = get_pipe_info(file, false);
	if (!pipe)
		return -EBADF;

	mutex_lock(&pipe->mutex);

	switch (cmd) {
	case F_SETPIPE_SZ:
		ret = pipe_set_size(pipe, arg);
		break;
	case F_GETPIPE_SZ:
		ret = pipe->max_usage * PAGE_SIZE;
		break;
	default:
		ret = -EINVAL;
		break;
	}

	mutex_unlock(&pipe->mutex);
	return ret;
}

static const struct super_operations pipefs_ops = {
	.destroy_inode = free_inode_nonrcu,
	.statfs = simple_statfs,
};

/*
 * pipefs should _never_ be mounted by userland - too much of security hassle,
 * no real gain from having the whole file system mounted. So we don't need
 * any operations on the root directory. However, we need a non-trivial
 * d_name - pipe: will go nicely and kill the special-casing in procfs.
 */

static int pipefs_init_fs_context(struct fs_context *fc)
{
	struct pseudo_fs_context *ctx = init_pseudo(fc, PIPEFS_MAGIC);
	if (!ctx)
		return -ENOMEM;
	ctx->ops = &pipefs_ops;
	ctx->dops = &pipefs_dentry_operations;
	return 0;
}

static struct file_system_type pipe_fs_type = {
	.name		= "pipefs",
	.init_fs_context = pipefs_init_fs_context,
	.kill_sb	= kill_anon_super,
};

#ifdef CONFIG_SYSCTL

static ulong round_pipe_size_ul(ulong size)
{
	return round_pipe_size(size);
}

static int u2k_pipe_maxsz(const ulong *u_ptr, uint *k_ptr)
{
	return proc_uint_u2k_conv_uop(u_ptr, k_ptr, round_pipe_size_ul);
}

static int do_proc_uint_conv_pipe_maxsz(bool *negp, ulong *u_ptr, uint *k_ptr,
					int dir, const struct ctl_table *table)
{
	return proc_uint_conv(u_ptr, k_ptr, dir, table, true,
			      u2k_pipe_maxsz,
			      proc_uint_k2u_conv);
}

static int proc_dopipe_max_size(const struct ctl_table *table, int write,
				void *buffer, size_t *lenp, loff_t *ppos)
{
	return proc_douintvec_conv(table, write, buffer, lenp, ppos,
				   do_proc_uint_conv_pipe_maxsz);
}

static const struct ctl_table fs_pipe_sysctls[] = {
	{
		.procname	= "pipe-max-size",
		.data		= &pipe_max_size,
		.maxlen		= sizeof(pipe_max_size),
		.mode		= 0644,
		.proc_handler	= proc_dopipe_max_size,
		.extra1		= SYSCTL_ONE,
	},
	{
		.procname	= "pipe-user-pages-hard",
		.data		= &pipe_user_pages_hard,
		.maxlen		= sizeof(pipe_user_pages_hard),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
	},
	{
		.procname	= "pipe-user-pages-soft",
		.data		= &pipe_user_pages_soft,
		.maxlen		= sizeof(pipe_user_pages_soft),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
	},
};
#endif

static int __init init_pipe_fs(void)
{
	int err = register_filesystem(&pipe_fs_type);

	if (!err) {
		pipe_mnt = kern_mount(&pipe_fs_type);
		if (IS_ERR(pipe_mnt)) {
			err = PTR_ERR(pipe_mnt);
			unregister_filesystem(&pipe_fs_type);
		}
	}
#ifdef CONFIG_SYSCTL
	register_sysctl_init("fs", fs_pipe_sysctls);
#endif
	return err;
}

fs_initcall(init_pipe_fs);
