// SPDX-License-Identifier: GPL-2.0
/*
 * A task waits for a page of its buffer, in the middle of a read or a write,
 * and no other one waits for it.
 */
#include "pipe_lazy.h"

#define TIMEOUT		60	/* seconds */

FIXTURE(stuck) {
	int p[2];
	struct lazy l;
	struct io io;
};

FIXTURE_VARIANT(stuck) {
	ssize_t len;		/* bytes, and pages more */
	ssize_t pages;
	ssize_t offset;		/* of the buffer */
	ssize_t missing;	/* from this page on, all are */
	ssize_t before;		/* bytes in the pipe */
	ssize_t slots;
	ssize_t segment;
};

FIXTURE_VARIANT_ADD(stuck, byte) { .len = 1 };
FIXTURE_VARIANT_ADD(stuck, small) { .len = 100 };
FIXTURE_VARIANT_ADD(stuck, small_merged) { .len = 100, .before = 50 };

FIXTURE_VARIANT_ADD(stuck, small_warm) {
	.len = 100, .offset = -50, .missing = 1
};

FIXTURE_VARIANT_ADD(stuck, small_segments) {
	.len = 100, .offset = -50, .missing = 1, .segment = 9
};

FIXTURE_VARIANT_ADD(stuck, large) { .len = 3000 };

FIXTURE_VARIANT_ADD(stuck, large_warm) {
	.len = 3000, .offset = -1000, .missing = 1
};

FIXTURE_VARIANT_ADD(stuck, page) { .pages = 1 };

FIXTURE_VARIANT_ADD(stuck, page_warm) {
	.pages = 1, .offset = -50, .missing = 1
};

FIXTURE_VARIANT_ADD(stuck, page_segments) {
	.pages = 1, .offset = -50, .missing = 1, .segment = 999
};

FIXTURE_VARIANT_ADD(stuck, pages) { .pages = 16 };
FIXTURE_VARIANT_ADD(stuck, pages_warm) { .pages = 16, .missing = 1 };
FIXTURE_VARIANT_ADD(stuck, pages_last) { .pages = 16, .missing = 15 };

FIXTURE_VARIANT_ADD(stuck, pages_merged) {
	.pages = 2, .len = 100, .before = 50
};

FIXTURE_VARIANT_ADD(stuck, pages_merged_warm) {
	.pages = 2, .len = 100, .before = 50, .missing = 1
};

FIXTURE_VARIANT_ADD(stuck, pages_segments) {
	.pages = 16, .len = 7, .missing = 9, .segment = 3001
};

FIXTURE_VARIANT_ADD(stuck, many) { .pages = 40, .slots = 64 };

FIXTURE_VARIANT_ADD(stuck, many_last) {
	.pages = 40, .slots = 64, .missing = 39
};

FIXTURE_VARIANT_ADD(stuck, mega) { .pages = 256, .slots = 256 };

FIXTURE_VARIANT_ADD(stuck, mega_warm) {
	.pages = 256, .slots = 256, .missing = 1
};

FIXTURE_VARIANT_ADD(stuck, mega_last) {
	.pages = 256, .slots = 256, .missing = 255
};

FIXTURE_VARIANT_ADD(stuck, small_pipe) { .pages = 2, .slots = 2 };

FIXTURE_SETUP(stuck)
{
	ssize_t len = variant->pages * psz + variant->len;
	ssize_t offset = variant->offset + (variant->offset < 0 ? psz : 0);
	ssize_t nr = (offset + len + psz - 1) / psz;

	segment = variant->segment;
	make_pipe(_metadata, self->p, variant->slots ?: 2 * SLOTS);
	/* Byte @before of the data is the first of the buffer. */
	lazy_alloc(_metadata, &self->l, nr + 1, variant->before - offset,
		   variant->missing, nr + 1);
	self->io = (struct io){ .fd = self->p[1], .len = len,
				.buf = self->l.map + offset };
}

FIXTURE_TEARDOWN(stuck) { }

/* A writer that is stuck: all messages pass, and its data come later. */
TEST_F_TIMEOUT(stuck, writer, TIMEOUT)
{
	if (variant->before)
		ASSERT_EQ(variant->before,
			  put(self->p[1], variant->before, 1, 0));
	start_stuck(_metadata, &self->io, &self->l);
	expect_pass(_metadata, self->p, variant->before, 1, 0);
	ASSERT_FALSE(io_done(&self->io));
	lazy_provide(&self->l, 0, self->l.nr);
	drain(_metadata, self->p[0], self->io.len, 1, variant->before);
	ASSERT_EQ(self->io.len, io_join(&self->io));
	expect_works(_metadata, self->p);
}

/* The pipe is full by then: its data come later, or with O_NONBLOCK, never. */
TEST_F_TIMEOUT(stuck, full_by_then, TIMEOUT)
{
	ssize_t before = variant->before, first = variant->missing, nonblock;
	ssize_t rest = ((variant->slots ?: 2 * SLOTS) - !!before) * psz;
	struct io filler = writer(self->p[1], rest, 2, 0);

	for (nonblock = 0; nonblock < 2; nonblock++) {
		if (before)
			ASSERT_EQ(before, put(self->p[1], before, 1, 0));
		madvise(self->l.map + first * psz,
			(self->l.nr - first) * psz, MADV_DONTNEED);
		segment = variant->segment;
		start_stuck(_metadata, &self->io, &self->l);
		segment = 0;
		io_start(_metadata, &filler);
		ASSERT_TRUE(COMES_TRUE(io_done(&filler)));
		ASSERT_EQ(rest, io_join(&filler));
		set_flag(self->p[1], O_NONBLOCK, nonblock);
		/* Once it goes on, it sleeps for want of room alone. */
		lazy_provide(&self->l, first + 1, self->l.nr);
		lazy_provide(&self->l, first, first + 1);
		ASSERT_TRUE(WAIT_FOR(io_done(&self->io) ||
				     io_sleeps(&self->io)));
		if (nonblock)
			ASSERT_EQ(-EAGAIN, io_join(&self->io));
		ASSERT_EQ(nonblock, io_done(&self->io));
		ASSERT_EQ(before + rest, bytes_in(self->p[0]));
		drain(_metadata, self->p[0], before, 1, 0);
		drain(_metadata, self->p[0], rest, 2, 0);
		if (!nonblock) {
			drain(_metadata, self->p[0], self->io.len, 1, before);
			ASSERT_EQ(self->io.len, io_join(&self->io));
		}
		ASSERT_EQ(0, bytes_in(self->p[0]));
	}
	free(filler.buf);
	set_flag(self->p[1], O_NONBLOCK, false);
	expect_works(_metadata, self->p);
}

/* A reader that is stuck: another one reads what it would have read. */
TEST_F_TIMEOUT(stuck, reader, TIMEOUT)
{
	self->io.fd = self->p[0];
	self->io.is_read = true;
	if (variant->before)
		ASSERT_EQ(variant->before,
			  put(self->p[1], variant->before, 3, 0));
	ASSERT_EQ(self->io.len - variant->before,
		  put(self->p[1], self->io.len - variant->before, 3,
		      variant->before));
	start_stuck(_metadata, &self->io, &self->l);
	expect_pass(_metadata, self->p, self->io.len, 3, 0);
	ASSERT_FALSE(io_done(&self->io));
	ASSERT_EQ(1, put(self->p[1], 1, 4, 0));
	lazy_provide(&self->l, 0, self->l.nr);
	ASSERT_EQ(1, io_join(&self->io));
	ASSERT_TRUE(matches(self->io.buf, 1, 4, 0));
	expect_works(_metadata, self->p);
}

/* A reader that nobody overtakes gets its data, and maybe what came since. */
TEST_F_TIMEOUT(stuck, reader_first, TIMEOUT)
{
	ssize_t len = self->io.len, ret;
	struct io io;

	self->io.fd = self->p[0];
	self->io.is_read = true;
	ASSERT_EQ(len, put(self->p[1], len, 3, 0));
	self->io.len += psz;
	start_stuck(_metadata, &self->io, &self->l);
	io = writer(self->p[1], 100, 3, len);
	io_start(_metadata, &io);
	lazy_provide(&self->l, 0, self->l.nr);
	ret = io_join(&self->io);
	ASSERT_TRUE(ret == len || ret == len + 100);
	ASSERT_TRUE(matches(self->io.buf, ret, 3, 0));
	ASSERT_EQ(100, io_join(&io));
	if (ret == len)
		ASSERT_EQ(100, get(self->p[0], 200, 3, len));
	expect_works(_metadata, self->p);
}

/*
 * A read of pages of a file copies each of them once to missing memory, until it
 * has all of that, and then maybe all again.
 */
TEST_F_TIMEOUT(stuck, file_pages, TIMEOUT)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	ssize_t len = variant->pages * psz, i, j, again = 0;
	unsigned char *map = self->l.map;
	loff_t pos = 0;

	if (!variant->pages || variant->len || variant->missing)
		SKIP(return, "not of whole pages, all of which are missing");
	ASSERT_EQ(len, put(fd, len, 3, 0));
	ASSERT_EQ(len, splice(fd, &pos, self->p[1], NULL, len, 0));
	self->io.fd = self->p[0];
	self->io.is_read = true;
	io_start(_metadata, &self->io);
	for (i = 0; i < variant->pages; i++) {
		ASSERT_TRUE(WAIT_FOR(lazy_fault(&self->l) == i));
		for (j = 0; j + 1 < i; j++)
			again += map[j * psz] == pattern(3, j * psz);
		if (i)
			map[j * psz] = ~pattern(3, j * psz);
		lazy_provide(&self->l, i, i + 1);
	}
	ASSERT_EQ(len, io_join(&self->io));
	EXPECT_EQ(0, again);
	for (j = 0; j < variant->pages; j++)
		map[j * psz] = pattern(3, j * psz);
	ASSERT_TRUE(matches(map, len, 3, 0));
	expect_works(_metadata, self->p);
}

/*
 * A read ends although one of two pages of its memory is taken away each time that
 * the other comes.
 */
TEST_F_TIMEOUT(stuck, memory_goes_away, TIMEOUT)
{
	ssize_t len = variant->pages * psz, page, nr = 0;

	if (variant->pages < 3 || variant->len || variant->missing)
		SKIP(return, "not of whole pages, all of which are missing");
	ASSERT_EQ(len, put(self->p[1], len, 1, 0));
	self->io.fd = self->p[0];
	self->io.is_read = true;
	io_start(_metadata, &self->io);
	do {
		page = lazy_fault(&self->l);
		if (page == 0 || page == 1)
			madvise(self->l.map + !page * psz, psz, MADV_DONTNEED);
		if (page >= 0)
			lazy_provide(&self->l, page, page + 1);
		nr += page == 0;
		ASSERT_GT(100, nr);
	} while (!io_done(&self->io));
	ASSERT_EQ(len, io_join(&self->io));
	ASSERT_LE(1, nr);
	ASSERT_TRUE(matches(self->l.map + psz, len - psz, 1, psz));
	expect_works(_metadata, self->p);
}

static void *do_close(void *arg)
{
	struct io *io = arg;

	close(io->fd);
	__atomic_store_n(&io->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The last reader can close, and the writer is told when it goes on. */
TEST_F_TIMEOUT(stuck, close, TIMEOUT)
{
	struct io io = { .fd = self->p[0] };

	count_signals(SIGPIPE, 0);
	start_stuck(_metadata, &self->io, &self->l);
	ASSERT_EQ(0, pthread_create(&io.thread, NULL, do_close, &io));
	ASSERT_TRUE(COMES_TRUE(io_done(&io)));
	ASSERT_FALSE(io_done(&self->io));
	lazy_provide(&self->l, 0, self->l.nr);
	ASSERT_EQ(-EPIPE, io_join(&self->io));
	ASSERT_EQ(1, nr_signals);
}

/* A writer without readers is told so before it waits for its memory. */
TEST_F_TIMEOUT(stuck, no_reader, TIMEOUT)
{
	count_signals(SIGPIPE, 0);
	ASSERT_EQ(0, close(self->p[0]));
	io_start(_metadata, &self->io);
	ASSERT_EQ(-EPIPE, io_join(&self->io));
	ASSERT_EQ(-1, lazy_fault(&self->l));
	ASSERT_EQ(1, nr_signals);
}

/*
 * Memory that is gone when the writer goes on: it fails, or has written the
 * pages before, and nobody waits for it either.
 */
TEST_F_TIMEOUT(stuck, memory_gone, TIMEOUT)
{
	struct uffdio_range range = { .len = psz };
	ssize_t gone = variant->missing, good, ret;

	start_stuck(_metadata, &self->io, &self->l);
	make_hole(_metadata, self->l.map + gone * psz,
		  (self->l.nr - gone) * psz);
	range.start = (unsigned long)self->l.map + gone * psz;
	ioctl(self->l.uffd, UFFDIO_WAKE, &range);
	ret = io_join(&self->io);
	/* A slot is written as a whole or not at all. */
	good = self->l.map + gone * psz - self->io.buf;
	ASSERT_EQ(good > 0 ? good / psz * psz ?: -EFAULT : -EFAULT, ret);
	if (ret > 0)
		drain(_metadata, self->p[0], ret, 1, variant->before);
	expect_pass(_metadata, self->p, 0, 0, 0);
	expect_works(_metadata, self->p);
}

TEST_HARNESS_MAIN
