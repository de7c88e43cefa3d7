// SPDX-License-Identifier: GPL-2.0
/*
 * What a write puts into a pipe: which bytes are merged, how many slots the
 * rest takes, what a partial write counts, which error wins.
 */
#include "pipe_test.h"

#include <sys/stat.h>

#ifndef O_NOTIFICATION_PIPE
#define O_NOTIFICATION_PIPE	O_EXCL
#endif
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL		0x00000100
#endif

FIXTURE(pipe) { int p[2]; };

FIXTURE_VARIANT(pipe) { ssize_t segment; };

FIXTURE_VARIANT_ADD(pipe, flat) { };
FIXTURE_VARIANT_ADD(pipe, segments) { .segment = 777 };
FIXTURE_VARIANT_ADD(pipe, large_segments) { .segment = 4999 };

FIXTURE_SETUP(pipe)
{
	segment = variant->segment;
	make_pipe(_metadata, self->p, SLOTS);
}

FIXTURE_TEARDOWN(pipe) { }

/*
 * The first len % page size bytes of a write go to the end of the last slot if
 * all of them fit there; if not, they come last.  The rest takes a slot a page.
 * A slot is written as a whole or not at all.  No room comes before bad memory.
 */
TEST_F(pipe, layout)
{
	const struct layout {
		ssize_t used;		/* pages that come first */
		ssize_t before;		/* bytes of the next slot, then... */
		ssize_t len, hole;	/* ...a write whose end is bad memory */
		ssize_t err;		/* the result, if nothing was written */
		ssize_t slots[4];	/* what comes after the pages then */
	} tests[] = {
		{ 0, 100, psz + 200, 0, 0, { 300, psz } },
		{ 0, psz - 1, 1, 0, 0, { psz } },
		{ 0, psz - 1, 2, 0, 0, { psz - 1, 2 } },
		{ 0, psz - 1, psz + 1, 0, 0, { psz, psz } },
		{ 0, psz - 1, psz + 2, 0, 0, { psz - 1, psz, 2 } },
		{ 0, psz + 10, psz + 20, 0, 0, { psz, 30, psz } },
		{ 0, psz + 10, 2 * psz - 5, 0, 0, { psz, 10, psz, psz - 5 } },
		/* No slot is free, or some are. */
		{ 16, 0, 2 * psz, 2 * psz, -EAGAIN, { } },
		{ 16, 0, 100, 100, -EAGAIN, { } },
		{ 15, 100, 50, 0, 0, { 150 } },
		{ 15, 100, 2 * psz + 30, 0, 0, { 130 } },
		{ 15, 100, psz, psz, -EAGAIN, { 100 } },
		{ 15, 100, psz - 50, psz - 50, -EAGAIN, { 100 } },
		{ 15, 100, psz + 20, psz + 20, -EFAULT, { 100 } },
		{ 15, 100, 20, 20, -EFAULT, { 100 } },
		{ 14, 0, 16 * psz + 33, 0, 0, { psz, psz } },
		{ 13, 100, 16 * psz + 33, 0, 0, { 133, psz, psz } },
		{ 14, 0, 7 * psz, 5 * psz, 0, { psz, psz } },
		/* There is room, but the end of the buffer is bad. */
		{ 0, 0, 16 * psz, 14 * psz + 1, 0, { psz } },
		{ 0, 0, 1, 1, -EFAULT, { } },
		{ 0, 0, 100, 1, -EFAULT, { } },
		{ 0, 0, psz, 1, -EFAULT, { } },
		{ 0, 0, 3 * psz + 100, 100, 0, { psz, psz, psz } },
		{ 0, 50, 3 * psz + 100, 100, 0, { 150, psz, psz } },
		{ 0, 50, 100, 1, -EFAULT, { 50 } },
		{ 0, 50, 2 * psz + 100, 2 * psz, 0, { 150 } },
		{ 0, 50, 2 * psz + 100, 2 * psz + 1, -EFAULT, { 50 } },
		{ 0, psz - 50, 2 * psz + 100, 2 * psz, -EFAULT, { psz - 50 } },
	};
	ssize_t i, nr, sum, good;
	unsigned char *buf;

	for (i = 0; i < NR(tests); i++) {
		const struct layout *t = &tests[i];

		/* Without blocking, unless there is room for all */
		set_flag(self->p[1], O_NONBLOCK, t->used || i & 1);
		ASSERT_EQ(t->used, move_pages(put, self->p[1], t->used));
		if (t->before)
			ASSERT_EQ(t->before, put(self->p[1], t->before, i, 0));
		for (nr = 0, sum = 0; nr < NR(t->slots) && t->slots[nr]; nr++)
			sum += t->slots[nr];
		good = t->len - t->hole;
		buf = fill(guarded(_metadata, good), good, i, t->before);
		ASSERT_EQ(t->err ?: sum - t->before,
			  do_write(self->p[1], buf, t->len)) {
			TH_LOG("line %zd: %zd bytes after %zd", i, t->len,
			       t->before);
		}
		ASSERT_EQ(t->used, move_pages(get, self->p[0], t->used));
		expect_slots(_metadata, self->p, i, t->slots, nr);
	}
}

/* Bytes that were read make no room for others in the same slot. */
TEST_F(pipe, merge_after_read)
{
	for (ssize_t len = 100; len <= 101; len++) {
		ASSERT_EQ(psz - 100, put(self->p[1], psz - 100, 1, 0));
		ASSERT_EQ(psz - 200, get(self->p[0], psz - 200, 1, 0));
		ASSERT_EQ(len, put(self->p[1], len, 1, psz - 100));
		ASSERT_EQ(len == 100 ? SLOTS - 1 : SLOTS - 2,
			  fill_up(self->p[1]));
		ASSERT_EQ(100 + len,
			  get(self->p[0], 100 + len, 1, psz - 200));
		ASSERT_EQ(SLOTS - 2, move_pages(get, self->p[0], SLOTS - 2));
		if (len == 100)
			ASSERT_EQ(1, move_pages(get, self->p[0], 1));
		expect_works(_metadata, self->p);
	}
}

/* A packet per read, and a slot per packet; what does not fit is lost. */
TEST_F(pipe, packets)
{
	ssize_t i;

	set_flag(self->p[1], O_NONBLOCK | O_DIRECT, true);
	ASSERT_EQ(100, put(self->p[1], 100, 1, 0));
	ASSERT_EQ(2 * psz + 10, put(self->p[1], 2 * psz + 10, 2, 0));
	ASSERT_EQ(10, get(self->p[0], 10, 1, 0));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(i < 2 ? psz : 10,
			  get(self->p[0], 8 * psz, 2, i * psz));
	for (i = 1; i < SLOTS; i++)
		ASSERT_EQ(i, put(self->p[1], i, i, 0));
	ASSERT_EQ(psz, put(self->p[1], psz + 5, 40, 0));
	ASSERT_EQ(-EAGAIN, put(self->p[1], 1, 41, 0));
	for (i = 1; i < SLOTS; i++)
		ASSERT_EQ(i, get(self->p[0], psz, i, 0));
	ASSERT_EQ(psz, get(self->p[0], 8 * psz, 40, 0));
	set_flag(self->p[1], O_DIRECT, false);
	expect_works(_metadata, self->p);
}

/* Whether a write makes packets, and is merged, depends on its own time. */
TEST_F(pipe, packets_and_stream)
{
	set_flag(self->p[0], O_NONBLOCK, true);
	ASSERT_EQ(psz, put(self->p[1], psz, 1, 0));
	set_flag(self->p[1], O_DIRECT, true);
	ASSERT_EQ(30, put(self->p[1], 30, 1, psz));
	ASSERT_EQ(40, put(self->p[1], 40, 2, 0));
	set_flag(self->p[1], O_DIRECT, false);
	ASSERT_EQ(50, put(self->p[1], 50, 3, 0));
	ASSERT_EQ(60, put(self->p[1], 60, 3, 50));
	ASSERT_EQ(SLOTS - 4, fill_up(self->p[1]));
	/* A read does not end before a packet, but after it. */
	ASSERT_EQ(psz + 30, get(self->p[0], 8 * psz, 1, 0));
	ASSERT_EQ(20, get(self->p[0], 20, 2, 0));
	ASSERT_EQ(110, get(self->p[0], 110, 3, 0));
	ASSERT_EQ(SLOTS - 4, move_pages(get, self->p[0], SLOTS));
	/* The first bytes of a packet are merged with those of a stream. */
	ASSERT_EQ(10, put(self->p[1], 10, 4, 0));
	set_flag(self->p[1], O_DIRECT, true);
	ASSERT_EQ(psz + 20, put(self->p[1], psz + 20, 4, 10));
	ASSERT_EQ(psz + 30, get(self->p[0], 8 * psz, 4, 0));
	/* What was a packet, or the page of one, is a stream's slot again. */
	set_flag(self->p[1], O_DIRECT, false);
	ASSERT_EQ(SLOTS * psz, put(self->p[1], SLOTS * psz, 5, 0));
	for (ssize_t i = 0; i < SLOTS * psz; i += psz / 2)
		ASSERT_EQ(psz / 2, get(self->p[0], psz / 2, 5, i));
	expect_works(_metadata, self->p);
}

/* With room for k pages, k pages are written, and odd bytes that fit. */
TEST_F(pipe, nonblock_partial)
{
	ssize_t k, n, odd;

	set_flag(self->p[1], O_NONBLOCK, true);
	for (k = 1; k < SLOTS; k++) {
		for (odd = 0; odd < 2; odd++) {
			n = SLOTS - k - odd;
			ASSERT_EQ(n, move_pages(put, self->p[1], n));
			if (odd)
				ASSERT_EQ(100, put(self->p[1], 100, k, 0));
			ASSERT_EQ(k * psz + 33 * odd,
				  put(self->p[1], SLOTS * psz + 33 * odd, k,
				      100 * odd));
			ASSERT_EQ(-EAGAIN, put(self->p[1], psz, k, 0));
			ASSERT_EQ(n, move_pages(get, self->p[0], n));
			ASSERT_EQ(k * psz + 133 * odd,
				  get(self->p[0], SLOTS * psz, k, 0));
		}
	}
	expect_works(_metadata, self->p);
}

/* RWF_NOWAIT is O_NONBLOCK for one call. */
TEST_F(pipe, nowait)
{
	struct iovec iov[MAX_SEGS];
	unsigned char *buf = fill(malloc(SLOTS * psz), SLOTS * psz, 1, 0);
	ssize_t seg = segment ?: SLOTS * psz;
	int n = segments(iov, buf, 10 * psz, seg);
	ssize_t ret = result(preadv2(self->p[0], iov, n, -1, RWF_NOWAIT));

	if (ret == -EOPNOTSUPP)
		SKIP(return, "RWF_NOWAIT: %s", strerror(EOPNOTSUPP));
	ASSERT_EQ(-EAGAIN, ret);
	ASSERT_EQ(10 * psz, pwritev2(self->p[1], iov, n, -1, RWF_NOWAIT));
	n = segments(iov, buf + 10 * psz, 6 * psz, seg);
	ASSERT_EQ(4 * psz, put(self->p[1], 4 * psz, 1, 10 * psz));
	ASSERT_EQ(2 * psz, pwritev2(self->p[1], iov, n, -1, RWF_NOWAIT));
	ASSERT_EQ(-EAGAIN,
		  result(pwritev2(self->p[1], iov, n, -1, RWF_NOWAIT)));
	ASSERT_EQ(14 * psz, get(self->p[0], 14 * psz, 1, 0));
	ASSERT_EQ(2 * psz, preadv2(self->p[0], iov, n, -1, RWF_NOWAIT));
	ASSERT_TRUE(matches(buf + 10 * psz, 2 * psz, 1, 10 * psz));
	ASSERT_EQ(-EAGAIN, result(preadv2(self->p[0], iov, n, -1,
					  RWF_NOWAIT)));
	expect_works(_metadata, self->p);
}

/* That nobody reads comes first, whatever else is wrong, and signals. */
TEST_F(pipe, epipe_wins)
{
	const ssize_t lens[] = { 1, psz - 1, psz, psz + 1, 5 * psz + 3 };
	unsigned char *bad = guarded(_metadata, 0);
	struct iovec iov = { .iov_base = bad, .iov_len = psz };
	ssize_t i, used;

	count_signals(SIGPIPE, 0);
	for (used = 0; used <= SLOTS; used += SLOTS / 2) {
		make_pipe(_metadata, self->p, SLOTS);
		ASSERT_EQ(used, move_pages(put, self->p[1], used));
		if (used == SLOTS / 2)
			ASSERT_EQ(10, put(self->p[1], 10, 1, 0));
		ASSERT_EQ(0, close(self->p[0]));
		ASSERT_TRUE(polls(self->p[1], POLLERR));
		nr_signals = 0;
		for (i = 0; i < NR(lens); i++) {
			ASSERT_EQ(-EPIPE, put(self->p[1], lens[i], 1, 0));
			ASSERT_EQ(-EPIPE, do_write(self->p[1], bad, lens[i]));
		}
		ASSERT_EQ(2 * NR(lens), nr_signals);
		ASSERT_EQ(0, write(self->p[1], bad, 0));
		ASSERT_EQ(-EPIPE, result(pwritev2(self->p[1], &iov, 1, -1,
						  RWF_NOSIGNAL)));
		ASSERT_EQ(2 * NR(lens), nr_signals);
	}
}

/* Pipes for notifications are not written to, whatever else is wrong. */
TEST_F(pipe, notification_pipe)
{
	unsigned char *bad = guarded(_metadata, 0);
	int p[2], ret = result(pipe2(p, O_NOTIFICATION_PIPE));

	if (ret)
		SKIP(return, "notification pipe: %s", strerror(-ret));
	ASSERT_EQ(-EXDEV, put(p[1], 1, 1, 0));
	ASSERT_EQ(-EXDEV, do_write(p[1], bad, 2 * psz));
	ASSERT_EQ(0, close(p[0]));
	ASSERT_EQ(-EXDEV, put(p[1], psz, 1, 0));
}

/* Writes of nothing do nothing, with room or without it. */
TEST_F(pipe, nothing)
{
	unsigned char *bad = guarded(_metadata, 0);

	ASSERT_EQ(0, write(self->p[1], bad, 0));
	ASSERT_EQ(0, bytes_in(self->p[0]));
	ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
	ASSERT_EQ(0, write(self->p[1], bad, 0));
	ASSERT_EQ(SLOTS, move_pages(get, self->p[0], SLOTS));
	expect_works(_metadata, self->p);
}

/* A named pipe is written to and read like any other. */
TEST_F(pipe, fifo)
{
	char name[] = "/tmp/pipe_write_test.XXXXXX";
	char path[64];
	int p[2];

	ASSERT_NE(NULL, mkdtemp(name));
	snprintf(path, sizeof(path), "%s/fifo", name);
	ASSERT_EQ(0, mkfifo(path, 0600));
	p[0] = open(path, O_RDONLY | O_NONBLOCK);
	p[1] = open(path, O_WRONLY);
	unlink(path);
	rmdir(name);
	ASSERT_GE(p[0], 0);
	ASSERT_GE(p[1], 0);
	set_slots(_metadata, p[1], SLOTS);
	ASSERT_EQ(3 * psz + 9, put(p[1], 3 * psz + 9, 1, 0));
	ASSERT_EQ(3 * psz + 9, get(p[0], 8 * psz, 1, 0));
	ASSERT_EQ(-EAGAIN, get(p[0], 1, 1, 0));
	expect_works(_metadata, p);
	ASSERT_EQ(0, close(p[1]));
	ASSERT_EQ(0, get(p[0], 1, 1, 0));
}

/* Writes of up to PIPE_BUF are not mixed with others, even if they wait. */
static void atomic_writes(struct __test_metadata *_metadata, const int p[2],
			  ssize_t slots, ssize_t len, bool nonblock)
{
	ssize_t pos[3] = { }, have, ret, i, n;
	struct io io[3] = { };

	set_slots(_metadata, p[1], slots);
	set_flag(p[1], O_NONBLOCK, nonblock);
	for (i = 0; i < NR(io); i++) {
		io[i] = writer(p[1], 60 * len, i, 0);
		io[i].call = len;
		io_start(_metadata, &io[i]);
	}
	for (n = 0; n < NR(io) * 60; n++, pos[i] += len) {
		/*
		 * They meet: each one is at its end, or has found no room.  At
		 * first, all three have found none.
		 */
		for (i = 0; i < NR(io) && n % 8 == 0; i++)
			ASSERT_TRUE(WAIT_FOR(io_sleeps(&io[i]) ||
					     (n && io_done(&io[i]))));
		for (have = 0; have < len; have += ret) {
			ret = do_read(p[0], scratch + have, len - have);
			ASSERT_GT(ret, 0);
		}
		for (i = 0; i < NR(io); i++)
			if (matches(scratch, len, i, pos[i]))
				break;
		ASSERT_LT(i, NR(io));
	}
	for (i = 0; i < NR(io); i++) {
		ASSERT_EQ(io[i].len, io_join(&io[i]));
		ASSERT_EQ(nonblock, io[i].nr_full > 0);
	}
	set_flag(p[1], O_NONBLOCK, false);
}

TEST_F_TIMEOUT(pipe, atomic_up_to_pipe_buf, 120)
{
	for (int i = 0; i < 4; i++)
		atomic_writes(_metadata, self->p, 1 + i / 2,
			      PIPE_BUF / (1 + i / 2) + i / 2, i % 2);
	set_slots(_metadata, self->p[1], SLOTS);
	expect_works(_metadata, self->p);
}

/*
 * A write for which there is room is not mixed with others, whatever its
 * length: POSIX does not promise that, but it has always been so.
 */
TEST_F_TIMEOUT(pipe, contiguous, 120)
{
	const ssize_t lens[] = { 15 * psz + 7, 40 * psz - 333, 40 * psz + 333 };
	ssize_t len, i, round, first;
	struct io io[3];

	set_slots(_metadata, self->p[1], 256);
	for (round = 0; round < 30; round++) {
		len = lens[round % NR(lens)];
		for (i = 0; i < NR(io); i++)
			io[i] = writer(self->p[1], len, i, 0);
		for (i = 0; i < NR(io); i++)
			io_start(_metadata, &io[i]);
		for (i = 0; i < NR(io); i++) {
			ASSERT_EQ(len, io_join(&io[i]));
			free(io[i].buf);
		}
		for (i = 0; i < NR(io); i++) {
			ASSERT_EQ(len, do_read(self->p[0], scratch, len));
			for (first = 0; first < NR(io); first++)
				if (matches(scratch, len, first, 0))
					break;
			ASSERT_LT(first, NR(io));
		}
	}
	set_slots(_metadata, self->p[1], SLOTS);
	expect_works(_metadata, self->p);
}

TEST_HARNESS_MAIN
