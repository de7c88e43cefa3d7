// SPDX-License-Identifier: GPL-2.0
/*
 * A writer waits for a page of its buffer, and the pipe is another one when it goes on:
 * drained, with something to merge with, full, of another size, without a reader, for
 * packets, or not to wait any more.  Its data come in order, and what it returns is what
 * is in the pipe.  On a kernel that copies with pipe->mutex held, nobody can change the
 * pipe, and the tests are skipped.  Also: a pipe is readable while its size changes.
 */
#include "pipe/pipe_lazy.h"
#include "release.h"

#define TIMEOUT	120	/* seconds; emulators with KASAN are slow */

/* A writer's guess is about the pipe as it was; there is room for both. */
FIXTURE(since) {
	int p[2];
	struct lazy l;
	struct io io;
	ssize_t before;
};

FIXTURE_VARIANT(since) {
	ssize_t pages, odd;	/* of the write */
	ssize_t missing;	/* its first page that is */
	ssize_t before;		/* bytes in the pipe that could be merged with */
};

FIXTURE_VARIANT_ADD(since, small) { .odd = 100 };
FIXTURE_VARIANT_ADD(since, small_merge) { .odd = 100, .before = 50 };
FIXTURE_VARIANT_ADD(since, page) { .pages = 1 };
FIXTURE_VARIANT_ADD(since, odd) { .pages = 2, .odd = 100 };
FIXTURE_VARIANT_ADD(since, odd_merge) { .pages = 2, .odd = 100, .before = 50 };
FIXTURE_VARIANT_ADD(since, odd_merge_last) { .pages = 2, .odd = 100, .missing = 2, .before = 50 };
FIXTURE_VARIANT_ADD(since, odd_last) { .pages = 5, .odd = 100, .missing = 5 };
FIXTURE_VARIANT_ADD(since, many) { .pages = 14, .odd = 7, .missing = 3 };

static void *query(void *arg)
{
	struct io *io = arg;

	__atomic_store_n(&io->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	io->ret = bytes_in(io->fd);
	__atomic_store_n(&io->done, true, __ATOMIC_RELEASE);
	return NULL;
}

FIXTURE_SETUP(since)
{
	ssize_t nr = variant->pages + 1, n;
	struct io other = { };

	make_pipe(_metadata, self->p, SLOTS);
	if (variant->before)
		ASSERT_EQ(variant->before, put(self->p[1], variant->before, 9, 0));
	lazy_alloc(_metadata, &self->l, nr, 0, variant->missing, nr);
	self->io = (struct io){ .fd = self->p[1], .buf = self->l.map };
	self->io.len = variant->pages * psz + variant->odd;
	start_stuck(_metadata, &self->io, &self->l);
	other.fd = self->p[0];
	ASSERT_EQ(0, pthread_create(&other.thread, NULL, query, &other));
	/* Nobody else uses the pipe, so no mutex should be in its way. */
	for (n = 0; n < 300 && !io_done(&other); n++) {
		usleep(1000);
		if (task_status(other.tid, "State:\t", true) != 'D')
			n = 0;
	}
	if (!io_done(&other))
		SKIP(exit(KSFT_SKIP), "this kernel copies with the mutex held");
	pthread_join(other.thread, NULL);
	ASSERT_EQ(variant->before, other.ret);
}

FIXTURE_TEARDOWN(since) { }

static ssize_t go_on(FIXTURE_DATA(since) *self)
{
	lazy_provide(&self->l, 0, self->l.nr);
	return io_join(&self->io);
}

/*
 * Its data come in order, and no page is torn.  Odd bytes that were to be merged may
 * have a slot of their own, and others may not be merged although they could be.
 */
static void expect(struct __test_metadata *_metadata, FIXTURE_DATA(since) *self, ssize_t len)
{
	drain(_metadata, self->p[0], len, 1, 0);
	expect_works(_metadata, self->p);
}

/* All was read: there is nothing to merge with. */
TEST_F_TIMEOUT(since, drained, TIMEOUT)
{
	drain(_metadata, self->p[0], variant->before, 9, 0);
	ASSERT_EQ(self->io.len, go_on(self));
	expect(_metadata, self, self->io.len);
}

/* There is something else to merge with. */
TEST_F_TIMEOUT(since, refilled, TIMEOUT)
{
	drain(_metadata, self->p[0], variant->before, 9, 0);
	ASSERT_EQ(70, put(self->p[1], 70, 8, 0));
	ASSERT_EQ(self->io.len, go_on(self));
	drain(_metadata, self->p[0], 70, 8, 0);
	expect(_metadata, self, self->io.len);
}

/* The last slot has no room for the odd bytes any more. */
TEST_F_TIMEOUT(since, last_slot_full, TIMEOUT)
{
	drain(_metadata, self->p[0], variant->before, 9, 0);
	ASSERT_EQ(psz - 1, put(self->p[1], psz - 1, 8, 0));
	ASSERT_EQ(self->io.len, go_on(self));
	drain(_metadata, self->p[0], psz - 1, 8, 0);
	expect(_metadata, self, self->io.len);
}

/* No room, and it is not to wait: nothing is written. */
TEST_F_TIMEOUT(since, full, TIMEOUT)
{
	drain(_metadata, self->p[0], variant->before, 9, 0);
	ASSERT_EQ(SLOTS, fill_up(self->p[1]));
	set_flag(self->p[1], O_NONBLOCK, true);
	ASSERT_EQ(-EAGAIN, go_on(self));
	set_flag(self->p[1], O_NONBLOCK, false);
	ASSERT_EQ(SLOTS, move_pages(get, self->p[0], SLOTS));
	expect_works(_metadata, self->p);
}

/* Room for one slot: a page, or the odd bytes, and not to wait for more */
TEST_F_TIMEOUT(since, one_slot, TIMEOUT)
{
	ssize_t ret;

	drain(_metadata, self->p[0], variant->before, 9, 0);
	ASSERT_EQ(SLOTS - 1, move_pages(put, self->p[1], SLOTS - 1));
	set_flag(self->p[1], O_NONBLOCK, true);
	ret = go_on(self);
	ASSERT_TRUE((variant->pages && ret == psz) || (variant->odd && ret == variant->odd));
	set_flag(self->p[1], O_NONBLOCK, false);
	ASSERT_EQ(SLOTS - 1, move_pages(get, self->p[0], SLOTS - 1));
	expect(_metadata, self, ret);
}

/* No room, and it waits: all comes through, in order. */
TEST_F_TIMEOUT(since, full_waits, TIMEOUT)
{
	drain(_metadata, self->p[0], variant->before, 9, 0);
	ASSERT_EQ(SLOTS, fill_up(self->p[1]));
	lazy_provide(&self->l, 0, self->l.nr);
	ASSERT_TRUE(WAIT_FOR(io_sleeps(&self->io)));
	ASSERT_EQ(SLOTS, move_pages(get, self->p[0], SLOTS));
	ASSERT_EQ(self->io.len, io_join(&self->io));
	drain(_metadata, self->p[0], self->io.len, 1, 0);
	expect_works(_metadata, self->p);
}

/* Fewer slots, and more of them */
TEST_F_TIMEOUT(since, resized, TIMEOUT)
{
	drain(_metadata, self->p[0], variant->before, 9, 0);
	set_slots(_metadata, self->p[1], 1);
	lazy_provide(&self->l, 0, self->l.nr);
	drain(_metadata, self->p[0], self->io.len, 1, 0);
	ASSERT_EQ(self->io.len, io_join(&self->io));
	set_slots(_metadata, self->p[1], 4 * SLOTS);
	expect_works(_metadata, self->p);
}

/* No reader: it is told so, and by a signal. */
TEST_F_TIMEOUT(since, no_reader, TIMEOUT)
{
	count_signals(SIGPIPE, 0);
	ASSERT_EQ(0, close(self->p[0]));
	ASSERT_EQ(-EPIPE, go_on(self));
	ASSERT_EQ(1, nr_signals);
}

/* Packets: each page is one, and so are the odd bytes. */
TEST_F_TIMEOUT(since, packets, TIMEOUT)
{
	ssize_t pos, ret, nr = 0;

	drain(_metadata, self->p[0], variant->before, 9, 0);
	set_flag(self->p[1], O_DIRECT, true);
	ASSERT_EQ(30, put(self->p[1], 30, 8, 0));
	ASSERT_EQ(self->io.len, go_on(self));
	ASSERT_EQ(30, get(self->p[0], psz, 8, 0));
	for (pos = 0; pos < self->io.len; pos += ret, nr++) {
		ret = get(self->p[0], 20 * psz, 1, pos);
		ASSERT_TRUE(ret == psz || (variant->odd && ret == variant->odd));
	}
	ASSERT_EQ(variant->pages + !!variant->odd, nr);
	set_flag(self->p[1], O_DIRECT, false);
	expect_works(_metadata, self->p);
}

FIXTURE(resize) { int p[2]; };
FIXTURE_SETUP(resize) { make_pipe(_metadata, self->p, SLOTS); }
FIXTURE_TEARDOWN(resize) { }

struct resizer {
	int *p;
	long rounds;
	bool stop, wrong;
	pthread_t thread;
};

/* Each time, its indices begin at zero again: let the last page be where the first was. */
static void *resize_thread(void *arg)
{
	struct resizer *r = arg;
	int i;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		fcntl(r->p[1], F_SETPIPE_SZ, 4 * SLOTS * psz);
		for (i = 0; i < SLOTS; i++)
			r->wrong |= move_pages(get, r->p[0], 1) + move_pages(put, r->p[1], 1) != 2;
		fcntl(r->p[1], F_SETPIPE_SZ, SLOTS * psz);
		__atomic_add_fetch(&r->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A pipe with data is readable at any time: no other wakeup would come for a reader. */
TEST_F_TIMEOUT(resize, readable, TIMEOUT)
{
	struct pollfd reader = { .fd = self->p[0], .events = POLLIN };
	struct resizer r = { .p = self->p };
	long polled = 0, unreadable = 0;
	/* Before 6.14, poll() may see the pipe in the middle of the change, and is woken. */
	int ms = kernel_before(6, 14) ? WAIT_MS : 0;

	ASSERT_EQ(SLOTS, fill_up(self->p[1]));
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, resize_thread, &r));
	while (polled < 2000 || __atomic_load_n(&r.rounds, __ATOMIC_RELAXED) < 2000) {
		unreadable += poll(&reader, 1, ms) != 1;
		polled++;
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(r.thread, NULL);
	ASSERT_FALSE(r.wrong);
	ASSERT_EQ(0, unreadable);
	ASSERT_EQ(SLOTS, move_pages(get, self->p[0], SLOTS));
	expect_works(_metadata, self->p);
}

TEST_HARNESS_MAIN
