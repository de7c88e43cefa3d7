// SPDX-License-Identifier: GPL-2.0
/*
 * Writers of a pipe that is full.  While one sleeps, its data are nobody's
 * business, or half of them are in the pipe: readers, signals, a change of size
 * or the last close come before it has run.
 */
#include "pipe_lazy.h"

#define TIMEOUT	120	/* seconds; debug kernels in emulators are slow */
#define TRIES	20

/*
 * A blocking write, and what of it there is room for.  That has to be in the
 * pipe before the writer waits for the rest of its buffer, which may not come
 * before a reader has read it.
 */
FIXTURE(fits) {
	int p[2];
	struct lazy l;
	struct io io;
	ssize_t filler, fits;
};

FIXTURE_VARIANT(fits) {
	ssize_t used;		/* slots */
	ssize_t before;		/* bytes in the last of them, if not a page */
	ssize_t pages, odd;	/* to be written */
	ssize_t freed;		/* slots, while it sleeps */
};

FIXTURE_VARIANT_ADD(fits, some) { .used = 15, .pages = 2 };

FIXTURE_VARIANT_ADD(fits, some_merged) {
	.used = 15, .before = 50, .pages = 2, .odd = 100
};

FIXTURE_VARIANT_ADD(fits, many) { .used = 6, .pages = 20, .odd = 100 };
FIXTURE_VARIANT_ADD(fits, none) { .used = 16, .pages = 2, .freed = 1 };

FIXTURE_VARIANT_ADD(fits, none_odd) {
	.used = 16, .pages = 2, .odd = 100, .freed = 1
};

FIXTURE_VARIANT_ADD(fits, merged) {
	.used = 16, .before = 50, .pages = 2, .odd = 9, .freed = 1
};

FIXTURE_VARIANT_ADD(fits, none_yet) { .used = 16, .pages = 2 };
FIXTURE_VARIANT_ADD(fits, none_many) { .used = 16, .pages = 20, .freed = 5 };

/* The writer sleeps, and not for a page of its buffer. */
static void expect_in_pipe(struct __test_metadata *_metadata, struct io *io,
			   const struct lazy *l, ssize_t bytes)
{
	ASSERT_TRUE(WAIT_FOR(io_sleeps(io) && bytes_in(io->fd) == bytes));
	ASSERT_EQ(-1, lazy_fault(l));
	ASSERT_FALSE(io_done(io));
}

FIXTURE_SETUP(fits)
{
	ssize_t before = variant->before, nr = variant->pages + 1, bytes;

	make_pipe(_metadata, self->p, SLOTS);
	self->filler = variant->used - !!before;
	self->fits = (SLOTS - variant->used) * psz;
	if (before)
		self->fits += variant->odd;
	bytes = self->filler * psz + before;
	ASSERT_EQ(self->filler, move_pages(put, self->p[1], self->filler));
	ASSERT_EQ(before, put(self->p[1], before, 1, 0));
	/* All is missing that has found no room when it sleeps again. */
	lazy_alloc(_metadata, &self->l, nr, before,
		   variant->freed + (self->fits + psz - 1) / psz, nr);
	self->io = (struct io){ .fd = self->p[1], .buf = self->l.map };
	self->io.len = variant->pages * psz + variant->odd;
	io_start(_metadata, &self->io);
	expect_in_pipe(_metadata, &self->io, &self->l, bytes + self->fits);
	ASSERT_EQ(variant->freed,
		  move_pages(get, self->p[0], variant->freed));
	expect_in_pipe(_metadata, &self->io, &self->l, bytes + self->fits);
	self->filler -= variant->freed;
	self->fits += variant->freed * psz;
}

FIXTURE_TEARDOWN(fits) { }

/* When a reader has made room, the writer goes on to the end. */
TEST_F_TIMEOUT(fits, read, TIMEOUT)
{
	ssize_t filler = self->filler * psz;
	ssize_t bytes = variant->before + self->fits;

	/* In one read: with room, it may wait with the mutex held. */
	ASSERT_EQ(filler + bytes, read(self->p[0], scratch, filler + bytes));
	ASSERT_TRUE(matches(scratch + filler, bytes, 1, 0));
	ASSERT_TRUE(WAIT_FOR(lazy_fault(&self->l) >= 0));
	lazy_provide(&self->l, 0, variant->pages + 1);
	ASSERT_EQ(self->io.len, io_join(&self->io));
	ASSERT_EQ(self->io.len - self->fits,
		  get(self->p[0], self->io.len, 1, bytes));
	expect_works(_metadata, self->p);
}

/* A signal ends it without the rest of its buffer. */
TEST_F_TIMEOUT(fits, signal, TIMEOUT)
{
	count_signals(SIGUSR1, 0);
	pthread_kill(self->io.thread, SIGUSR1);
	ASSERT_EQ(self->fits ?: -EINTR, io_join(&self->io));
	ASSERT_EQ(self->filler, move_pages(get, self->p[0], self->filler));
	if (variant->before + self->fits)
		ASSERT_EQ(variant->before + self->fits,
			  get(self->p[0], SLOTS * psz, 1, 0));
	expect_works(_metadata, self->p);
}

/* So does the last reader's close. */
TEST_F_TIMEOUT(fits, close, TIMEOUT)
{
	count_signals(SIGPIPE, 0);
	ASSERT_EQ(0, close(self->p[0]));
	ASSERT_EQ(self->fits ?: -EPIPE, io_join(&self->io));
	ASSERT_EQ(1, nr_signals);
}

/* More slots are as good as a reader, and no data are lost or doubled. */
TEST_F_TIMEOUT(fits, resize, TIMEOUT)
{
	ssize_t bytes = variant->before + self->fits;

	set_slots(_metadata, self->p[1], 4 * SLOTS);
	ASSERT_TRUE(WAIT_FOR(lazy_fault(&self->l) >= 0));
	lazy_provide(&self->l, 0, variant->pages + 1);
	ASSERT_EQ(self->io.len, io_join(&self->io));
	ASSERT_EQ(self->filler, move_pages(get, self->p[0], self->filler));
	bytes += self->io.len - self->fits;
	ASSERT_EQ(bytes, get(self->p[0], bytes, 1, 0));
	set_slots(_metadata, self->p[1], SLOTS);
	expect_works(_metadata, self->p);
}

/*
 * A writer that does not run before this task sleeps: both have the same CPU,
 * and the writer has the policy SCHED_IDLE.  What happens now comes between a
 * read, which may take the writer's data in its stead, and its wakeup.
 */
struct asleep {
	int p[2];
	struct io io;
	long switches;
	ssize_t filler;
	int tries;
	bool met;
};

FIXTURE(asleep) {
	struct asleep a;
	ssize_t len;
};

FIXTURE_VARIANT(asleep) {
	ssize_t pages, odd;	/* of the writer */
	ssize_t reads;		/* slots, one by one */
};

FIXTURE_VARIANT_ADD(asleep, none) { .pages = 4 };
FIXTURE_VARIANT_ADD(asleep, some) { .pages = 4, .reads = 2 };
FIXTURE_VARIANT_ADD(asleep, some_of_many) { .pages = 40, .reads = 3 };
FIXTURE_VARIANT_ADD(asleep, some_odd) { .pages = 3, .odd = 77, .reads = 3 };
FIXTURE_VARIANT_ADD(asleep, all) { .pages = 4, .reads = 4 };
FIXTURE_VARIANT_ADD(asleep, all_odd) { .pages = 2, .odd = 77, .reads = 3 };
FIXTURE_VARIANT_ADD(asleep, room_left) { .pages = 4, .reads = 12 };
FIXTURE_VARIANT_ADD(asleep, small) { .odd = 100, .reads = 1 };

static int stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

FIXTURE_SETUP(asleep)
{
	ASSERT_EQ(0, stay_here());
	self->len = variant->pages * psz + variant->odd;
}

FIXTURE_TEARDOWN(asleep) { }

/* Repeat what the test does until it was in time. */
static bool again(struct __test_metadata *_metadata, struct asleep *a)
{
	if (!a->met && a->tries++ == TRIES)
		SKIP(exit(KSFT_SKIP), "the writer has always run before");
	return !a->met;
}

/* Nobody has woken it up, or it has not run since. */
static bool still_asleep(struct asleep *a)
{
	return !io_done(&a->io) && io_switches(&a->io) == a->switches;
}

/*
 * Have a writer of @len bytes sleep in a new pipe, and read @reads slots.
 * Returns how many bytes have room there.
 */
static ssize_t arrange(struct __test_metadata *_metadata, struct asleep *a,
		       ssize_t len, ssize_t reads)
{
	make_pipe(_metadata, a->p, SLOTS);
	ASSERT_EQ(SLOTS, move_pages(put, a->p[1], SLOTS));
	a->io = writer(a->p[1], len, 1, 0);
	a->io.idle = true;
	io_start_blocked(_metadata, &a->io);
	a->switches = io_switches(&a->io);
	ASSERT_EQ(reads, move_pages(get, a->p[0], reads));
	a->filler = SLOTS - reads;
	return reads * psz < len ? reads * psz : len;
}

/* What comes after the filler: read to its end, and check. */
static void read_all(struct __test_metadata *_metadata, struct asleep *a,
		     ssize_t len)
{
	ssize_t pos, ret;

	ASSERT_EQ(a->filler, move_pages(get, a->p[0], a->filler));
	for (pos = 0; pos < len; pos += ret) {
		ret = get(a->p[0], len - pos, 1, pos);
		ASSERT_GT(ret, 0);
	}
}

/* A signal: the write counts what is in the pipe. */
TEST_F_TIMEOUT(asleep, signal, TIMEOUT)
{
	struct asleep *a = &self->a;
	ssize_t bytes;

	count_signals(SIGUSR1, 0);
	while (again(_metadata, a)) {
		bytes = arrange(_metadata, a, self->len, variant->reads);
		pthread_kill(a->io.thread, SIGUSR1);
		a->met = still_asleep(a);
		ASSERT_EQ(bytes ?: -EINTR, io_join(&a->io));
		read_all(_metadata, a, bytes);
		expect_works(_metadata, a->p);
	}
}

/* The last close: the write counts what was in the pipe before. */
TEST_F_TIMEOUT(asleep, close, TIMEOUT)
{
	struct asleep *a = &self->a;
	ssize_t bytes, ret;

	count_signals(SIGPIPE, 0);
	while (again(_metadata, a)) {
		arrange(_metadata, a, self->len, variant->reads);
		bytes = bytes_in(a->p[1]) - a->filler * psz;
		nr_signals = 0;
		ASSERT_EQ(0, close(a->p[0]));
		a->met = still_asleep(a);
		ret = io_join(&a->io);
		if (a->met)
			ASSERT_EQ(bytes ?: -EPIPE, ret);
		ASSERT_EQ(ret != a->io.len, nr_signals);
	}
}

/* More slots, or fewer: the write goes on, in order. */
TEST_F_TIMEOUT(asleep, resize, TIMEOUT)
{
	struct asleep *a = &self->a;

	while (again(_metadata, a)) {
		arrange(_metadata, a, self->len, variant->reads);
		set_slots(_metadata, a->p[1],
			  variant->reads > SLOTS / 2 ? SLOTS / 2 : 2 * SLOTS);
		a->met = still_asleep(a);
		read_all(_metadata, a, a->io.len);
		ASSERT_EQ(a->io.len, io_join(&a->io));
		expect_works(_metadata, a->p);
	}
}

/* More reads: they find the data in order, in the pipe or in its hands. */
TEST_F_TIMEOUT(asleep, read, TIMEOUT)
{
	struct asleep *a = &self->a;
	ssize_t pos, ret;

	while (again(_metadata, a)) {
		arrange(_metadata, a, self->len, variant->reads);
		set_flag(a->p[0], O_NONBLOCK, true);
		read_all(_metadata, a, 0);
		for (pos = 0; pos < a->io.len; pos += ret) {
			ret = get(a->p[0], psz, 1, pos);
			if (ret == -EAGAIN)
				break;
			ASSERT_GT(ret, 0);
		}
		a->met = still_asleep(a);
		set_flag(a->p[0], O_NONBLOCK, false);
		for (; pos < a->io.len; pos += ret) {
			ret = get(a->p[0], psz, 1, pos);
			ASSERT_GT(ret, 0);
		}
		ASSERT_EQ(a->io.len, io_join(&a->io));
		expect_works(_metadata, a->p);
	}
}

/* Another write of up to PIPE_BUF behind it: not torn, and tears no page. */
TEST_F_TIMEOUT(asleep, other_writer, TIMEOUT)
{
	struct asleep *a = &self->a;
	ssize_t sum, ret, pos;
	struct io other;

	while (again(_metadata, a)) {
		arrange(_metadata, a, self->len, variant->reads);
		other = writer(a->p[1], 100, 2, 0);
		other.idle = true;
		a->met = still_asleep(a);
		io_start(_metadata, &other);
		read_all(_metadata, a, 0);
		sum = a->io.len + other.len;
		for (pos = 0; pos < sum; pos += ret) {
			ret = read(a->p[0], scratch + pos, sum - pos);
			ASSERT_GT(ret, 0);
		}
		ASSERT_EQ(a->io.len, io_join(&a->io));
		ASSERT_EQ(other.len, io_join(&other));
		for (pos = 0; !matches(scratch + pos, 100, 2, 0); pos += ret) {
			ret = a->io.len - pos < psz ? a->io.len - pos :
							 psz;
			ASSERT_GT(ret, 0);
		}
		ASSERT_TRUE(matches(scratch, pos, 1, 0));
		ASSERT_TRUE(matches(scratch + pos + 100, a->io.len - pos,
				    1, pos));
		expect_works(_metadata, a->p);
	}
}

/* Of writers that wait, a short one has its turn before a long one behind it. */
TEST(asleep_in_turn)
{
	struct asleep a = { };
	struct io other;

	ASSERT_EQ(0, stay_here());
	while (again(_metadata, &a)) {
		arrange(_metadata, &a, 100, 0);
		other = writer(a.p[1], 4 * psz, 2, 0);
		other.idle = true;
		io_start_blocked(_metadata, &other);
		ASSERT_EQ(1, move_pages(get, a.p[0], 1));
		a.filler--;
		a.met = still_asleep(&a);
		read_all(_metadata, &a, a.io.len);
		ASSERT_EQ(a.io.len, io_join(&a.io));
		for (ssize_t pos = 0; pos < other.len; pos += psz)
			ASSERT_EQ(psz, get(a.p[0], psz, 2, pos));
		ASSERT_EQ(other.len, io_join(&other));
	}
}

/* Put in the first page of pattern 1, or @page, which has it, without a wait. */
static ssize_t put_at_once(int fd, struct iovec *page)
{
	return page ? result(vmsplice(fd, page, 1, SPLICE_F_NONBLOCK)) : put(fd, psz, 1, 0);
}

/* A writer that does not block, and found no room, has that which comes next. */
TEST(asleep_beside_nonblock)
{
	struct iovec page = { .iov_base = map_pages(_metadata, 1), .iov_len = psz };
	int fd, spliced;
	ssize_t ret;

	fill(page.iov_base, psz, 1, 0);
	ASSERT_EQ(0, stay_here());
	for (spliced = 0; spliced < 2; spliced++) {
		struct asleep a = { };

		while (again(_metadata, &a)) {
			arrange(_metadata, &a, psz, 0);
			fd = reopen(a.p[1], O_WRONLY | O_NONBLOCK);
			ASSERT_EQ(-EAGAIN, put_at_once(fd, spliced ? &page : NULL));
			ASSERT_EQ(1, move_pages(get, a.p[0], 1));
			ret = put_at_once(fd, spliced ? &page : NULL);
			a.filler--;
			a.met = still_asleep(&a);
			read_all(_metadata, &a, psz);
			ASSERT_EQ(psz, io_join(&a.io));
			if (a.met)
				ASSERT_EQ(psz, ret);
			if (ret > 0)
				ASSERT_EQ(psz, get(a.p[0], psz, 1, 0));
		}
	}
}

/* A reader puts in what a writer that sleeps has ready, as there is room. */
TEST_F_TIMEOUT(asleep, handed_over, TIMEOUT)
{
	struct asleep *a = &self->a;
	ssize_t bytes = 0;

	if (!variant->pages || !variant->reads)
		SKIP(return, "there is nothing to put in, or no room");
	while (again(_metadata, a)) {
		bytes = arrange(_metadata, a, self->len, variant->reads);
		bytes += a->filler * psz - bytes_in(a->p[0]);
		a->met = still_asleep(a);
		/* It need not wait for another read. */
		if (variant->reads * psz >= self->len)
			ASSERT_TRUE(WAIT_FOR(io_done(&a->io)));
		read_all(_metadata, a, self->len);
		ASSERT_EQ(self->len, io_join(&a->io));
	}
	ASSERT_EQ(0, bytes);
}

TEST_HARNESS_MAIN
