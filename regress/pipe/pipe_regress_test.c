// SPDX-License-Identifier: GPL-2.0
/*
 * Semantics of pipes which user space relies on, at greater length than the
 * kernel's pipe_test: faults at each page of a buffer, failing allocations,
 * signals, resizing, pages which are shared by tee(), splice() and vmsplice(),
 * charges of memory cgroups.  The expectations are those of Linux 6.18, which did
 * all of it with pipe->mutex held, including the odd ones.
 */
#include "pipe_regress.h"

TEST_F(pipe, roundtrip_lengths)
{
	const ssize_t chunks[] = {
		1, 7, 509, PIPE_BUF - 1, psz - 1, psz, psz + 1, 3 * psz + 5,
	};
	const ssize_t around[] = { PIPE_BUF, psz, 2 * psz, 3 * psz, 15 * psz,
				  16 * psz, 17 * psz };
	ssize_t slots = set_big(self->p[1]);
	unsigned int seed = 1;
	ssize_t i, len;

	for (i = 0; i < ARRAY_SIZE(around); i++) {
		for (len = around[i] - 2; len <= around[i] + 2; len++) {
			ssize_t chunk = chunks[seed % ARRAY_SIZE(chunks)];

			if ((len + psz - 1) / psz > slots)
				continue;
			/* Byte by byte is too slow for the longer ones. */
			if (len > 4 * psz)
				chunk = max(chunk, 509);
			put(_metadata, self->p[1], len, seed, 0);
			ASSERT_EQ(len, nr_bytes(_metadata, self->p[0]));
			get_chunks(_metadata, self->p[0], len, seed, 0, chunk);
			expect_empty(_metadata, self->p[0]);
			seed++;
		}
	}
	for (len = 1; len <= 3; len++) {
		put(_metadata, self->p[1], len, seed, 0);
		get(_metadata, self->p[0], len, seed, 0);
		expect_empty(_metadata, self->p[0]);
		seed++;
	}
}

/* End of file comes after the data, and not before the last writer is gone. */
TEST_F(pipe, end_of_file)
{
	int dup_fd = dup(self->p[1]);
	char c;

	ASSERT_GE(dup_fd, 0);
	put(_metadata, self->p[1], psz + 1, 1, 0);
	ASSERT_EQ(0, close(self->p[1]));
	ASSERT_FALSE(polls(self->p[0], POLLHUP));
	ASSERT_EQ(0, close(dup_fd));
	ASSERT_TRUE(polls(self->p[0], POLLHUP));
	ASSERT_TRUE(polls(self->p[0], POLLIN));
	get_chunks(_metadata, self->p[0], psz + 1, 1, 0, 1000);
	ASSERT_EQ(0, read(self->p[0], &c, 1));
	ASSERT_TRUE(polls(self->p[0], POLLHUP));
	ASSERT_FALSE(polls(self->p[0], POLLIN));
}

TEST_F(pipe, zero_length)
{
	struct guarded g;
	char c;

	count_signals(_metadata, SIGPIPE, 0);
	guarded_alloc(_metadata, &g, 0, psz, false);

	/* Neither blocks on an empty pipe, nor looks at the buffer. */
	ASSERT_EQ(0, read(self->p[0], &c, 0));
	ASSERT_EQ(0, read(self->p[0], g.buf, 0));
	ASSERT_EQ(0, write(self->p[1], &c, 0));
	ASSERT_EQ(0, write(self->p[1], g.buf, 0));
	expect_empty(_metadata, self->p[0]);

	/* Nor does it block on a full one. */
	fill_slots(_metadata, self->p[1]);
	ASSERT_EQ(0, write(self->p[1], &c, 0));
	ASSERT_EQ(0, read(self->p[0], &c, 0));

	/* Nor is it an error if there is nobody to read it. */
	ASSERT_EQ(0, close(self->p[0]));
	ASSERT_EQ(0, write(self->p[1], &c, 0));
	ASSERT_EQ(0, signals());
	guarded_free(&g);
}

/*
 * How writes are laid out in slots.  A write first puts its first
 * len % page size bytes at the end of the last slot, if all of them fit, and
 * then takes a slot per page.
 */
TEST_F(pipe, merge_layout)
{
	ssize_t unit = psz / 8;
	ssize_t i;

	set_slots(_metadata, self->p[1], DEF_SLOTS);

	/* Small writes share a slot, until it is full. */
	for (i = 0; i < 9; i++)
		put(_metadata, self->p[1], unit, 1, i * unit);
	ASSERT_EQ(9 * unit, nr_bytes(_metadata, self->p[0]));
	EXPECT_LAYOUT(self->p, 1, 0, psz, unit);

	/* It is the first bytes of a large write which are merged. */
	put(_metadata, self->p[1], 100, 2, 0);
	put(_metadata, self->p[1], psz + 200, 2, 100);
	EXPECT_LAYOUT(self->p, 2, 0, 300, psz);

	/* They just fit. */
	put(_metadata, self->p[1], psz - 1, 3, 0);
	put(_metadata, self->p[1], 2 * psz + 1, 3, psz - 1);
	EXPECT_LAYOUT(self->p, 3, 0, psz, psz, psz);

	/* They just do not fit: all or nothing. */
	put(_metadata, self->p[1], psz - 1, 4, 0);
	put(_metadata, self->p[1], 2 * psz + 2, 4, psz - 1);
	EXPECT_LAYOUT(self->p, 4, 0, psz - 1, psz, psz, 2);

	put(_metadata, self->p[1], 100, 5, 0);
	put(_metadata, self->p[1], psz - 99, 5, 100);
	EXPECT_LAYOUT(self->p, 5, 0, 100, psz - 99);

	/* Whole pages are never merged. */
	put(_metadata, self->p[1], 100, 6, 0);
	put(_metadata, self->p[1], 2 * psz, 6, 100);
	EXPECT_LAYOUT(self->p, 6, 0, 100, psz, psz);

	/* With nothing to merge with, the odd bytes come last... */
	put(_metadata, self->p[1], psz + 10, 7, 0);
	/* ...where the next write can be merged with them. */
	put(_metadata, self->p[1], psz + 20, 7, psz + 10);
	EXPECT_LAYOUT(self->p, 7, 0, psz, 30, psz);

	put(_metadata, self->p[1], psz + 10, 8, 0);
	put(_metadata, self->p[1], 3 * psz - 5, 8, psz + 10);
	put(_metadata, self->p[1], 5, 8, 4 * psz + 5);
	put(_metadata, self->p[1], 1, 8, 4 * psz + 10);
	EXPECT_LAYOUT(self->p, 8, 0, psz, 10, psz, psz, psz, 1);
}

/* Bytes which were read do not make room for others in the same slot. */
TEST_F(pipe, merge_after_read)
{
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	put(_metadata, self->p[1], psz - 100, 1, 0);
	get(_metadata, self->p[0], psz - 200, 1, 0);
	put(_metadata, self->p[1], 101, 1, psz - 100);
	EXPECT_LAYOUT(self->p, 1, psz - 200, 100, 101);

	put(_metadata, self->p[1], psz - 100, 2, 0);
	get(_metadata, self->p[0], psz - 200, 2, 0);
	put(_metadata, self->p[1], 100, 2, psz - 100);
	EXPECT_LAYOUT(self->p, 2, psz - 200, 200);

	/* Nor does anything remain of a slot which was read altogether. */
	put(_metadata, self->p[1], 100, 3, 0);
	get(_metadata, self->p[0], 100, 3, 0);
	put(_metadata, self->p[1], psz - 50, 3, 100);
	EXPECT_LAYOUT(self->p, 3, 100, psz - 50);
}

/* A pipe with no free slots can still have room for a merge. */
TEST_F(pipe, merge_into_full_pipe)
{
	ssize_t slots = DEF_SLOTS;
	ssize_t bytes = 100;
	struct guarded bad;
	ssize_t i;

	set_slots(_metadata, self->p[1], slots);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	guarded_alloc(_metadata, &bad, 0, 2 * psz, false);

	for (i = 0; i < slots - 1; i++)
		put(_metadata, self->p[1], psz, FILLER, 0);
	put(_metadata, self->p[1], 100, 1, 0);
	ASSERT_FALSE(polls(self->p[1], POLLOUT));

	put(_metadata, self->p[1], 50, 1, bytes);
	bytes += 50;

	/* A large write is cut short after the part which is merged. */
	ASSERT_EQ(30, try_put(_metadata, self->p[1], 2 * psz + 30, 1, bytes));
	bytes += 30;

	ASSERT_EQ(-1, try_put(_metadata, self->p[1], psz, 1, bytes));
	ASSERT_EQ(EAGAIN, errno);
	ASSERT_EQ(-1, try_put(_metadata, self->p[1], psz - bytes + 1, 1, bytes));
	ASSERT_EQ(EAGAIN, errno);

	/* It looks at the buffer only if it could be merged. */
	ASSERT_EQ(-1, write(self->p[1], bad.buf, 20));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(-1, write(self->p[1], bad.buf, psz + 20));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(-1, write(self->p[1], bad.buf, psz));
	ASSERT_EQ(EAGAIN, errno);
	ASSERT_EQ(-1, write(self->p[1], bad.buf, psz - bytes + 1));
	ASSERT_EQ(EAGAIN, errno);

	put(_metadata, self->p[1], psz - bytes, 1, bytes);

	drain_filler(_metadata, self->p[0], slots - 1);
	get(_metadata, self->p[0], psz, 1, 0);
	expect_works(_metadata, self->p);
	guarded_free(&bad);
}

TEST_F(pipe, packets)
{
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	int p[2];
	ssize_t i;

	ASSERT_EQ(0, pipe2(p, O_CLOEXEC | O_DIRECT | O_NONBLOCK));
	set_slots(_metadata, p[1], DEF_SLOTS);

	/* A packet per read, and what does not fit the buffer is lost. */
	put(_metadata, p[1], 100, 1, 0);
	put(_metadata, p[1], 50, 2, 0);
	put(_metadata, p[1], 20, 3, 0);
	ASSERT_EQ(170, nr_bytes(_metadata, p[0]));
	ASSERT_EQ(10, read(p[0], buf, 10));
	ASSERT_EQ(-1, mismatch(buf, 10, 1, 0));
	ASSERT_EQ(50, read(p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, 50, 2, 0));
	ASSERT_EQ(20, read(p[0], buf, 20));
	ASSERT_EQ(-1, mismatch(buf, 20, 3, 0));
	expect_empty(_metadata, p[0]);

	/* A large write makes several. */
	put(_metadata, p[1], 3 * psz + 10, 4, 0);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(psz, read(p[0], buf, 8 * psz));
		ASSERT_EQ(-1, mismatch(buf, psz, 4, i * psz));
	}
	ASSERT_EQ(10, read(p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, 10, 4, 3 * psz));
	expect_empty(_metadata, p[0]);

	/* No merging: every packet takes a slot, however small it is. */
	for (i = 0; i < DEF_SLOTS; i++)
		put(_metadata, p[1], 1 + i, 5 + i, 0);
	ASSERT_EQ(-1, write(p[1], "x", 1));
	ASSERT_EQ(EAGAIN, errno);
	/* Room for two pages: a packet each, and the rest is not written. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1 + i, read(p[0], buf, psz));
		ASSERT_EQ(-1, mismatch(buf, 1 + i, 5 + i, 0));
	}
	ASSERT_EQ(2 * psz, try_put(_metadata, p[1], 3 * psz + 5, 40, 0));
	for (; i < DEF_SLOTS; i++) {
		ASSERT_EQ(1 + i, read(p[0], buf, psz));
		ASSERT_EQ(-1, mismatch(buf, 1 + i, 5 + i, 0));
	}
	ASSERT_EQ(psz, read(p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz, 40, 0));
	ASSERT_EQ(psz, read(p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz, 40, psz));
	expect_empty(_metadata, p[0]);
	free(buf);
}

/* O_DIRECT can be set and cleared at any time, and is looked at by write(). */
TEST_F(pipe, packets_setfl)
{
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	set_flag(_metadata, self->p[0], O_NONBLOCK, true);

	put(_metadata, self->p[1], psz, 1, 0);
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	put(_metadata, self->p[1], 30, 2, 0);
	put(_metadata, self->p[1], 40, 3, 0);
	set_flag(_metadata, self->p[1], O_DIRECT, false);
	put(_metadata, self->p[1], 50, 4, 0);
	put(_metadata, self->p[1], 60, 4, 50);

	/* One page, three slots: the last two writes share one. */
	ASSERT_EQ(DEF_SLOTS - 4, fill_slots(_metadata, self->p[1]));

	/* A read does not stop in front of a packet, but after it. */
	ASSERT_EQ(psz + 30, read(self->p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz, 1, 0));
	ASSERT_EQ(-1, mismatch(buf + psz, 30, 2, 0));
	ASSERT_EQ(20, read(self->p[0], buf, 20));
	ASSERT_EQ(-1, mismatch(buf, 20, 3, 0));
	get(_metadata, self->p[0], 110, 4, 0);
	drain_filler(_metadata, self->p[0], DEF_SLOTS - 4);
	expect_empty(_metadata, self->p[0]);

	/*
	 * Whether to merge depends on the last slot only, so the first packet
	 * after bytes which are not a packet is not one either.
	 */
	put(_metadata, self->p[1], 10, 5, 0);
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	put(_metadata, self->p[1], psz + 20, 5, 10);
	put(_metadata, self->p[1], 40, 6, 0);
	ASSERT_EQ(10, read(self->p[0], buf, 10));
	ASSERT_EQ(-1, mismatch(buf, 10, 5, 0));
	/* The rest of the merged slot, then the packet of one page */
	ASSERT_EQ(psz + 20, read(self->p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz + 20, 5, 10));
	ASSERT_EQ(40, read(self->p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, 40, 6, 0));
	expect_empty(_metadata, self->p[0]);

	set_flag(_metadata, self->p[1], O_DIRECT, false);
	expect_works(_metadata, self->p);
	free(buf);
}

/* Pages come first in packets, and the odd bytes are the last one. */
TEST_F(copy, packets_large)
{
	const ssize_t lens[] = {
		psz + 1, psz + 200, 2 * psz, 3 * psz - 1, 16 * psz, 16 * psz + 5,
		17 * psz + 9, 40 * psz + 77,
	};
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	ssize_t i, pos;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		ssize_t len = lens[i / 2];

		/* A packet is not merged with another. */
		if (i & 1)
			put(_metadata, self->p[1], 30, 2, 0);
		put(_metadata, self->p[1], len, 1, 0);
		put(_metadata, self->p[1], psz + 40, 3, 0);
		if (i & 1) {
			ASSERT_EQ(30, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, 30, 2, 0));
		}
		for (pos = 0; pos < len; pos += psz) {
			ssize_t want = min(psz, len - pos);

			ASSERT_EQ(want, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, want, 1, pos));
		}
		ASSERT_EQ(psz, read(self->p[0], buf, 8 * psz));
		ASSERT_EQ(-1, mismatch(buf, psz, 3, 0));
		ASSERT_EQ(40, read(self->p[0], buf, 8 * psz));
		ASSERT_EQ(-1, mismatch(buf, 40, 3, psz));
		expect_empty(_metadata, self->p[0]);
	}

	/* After stream bytes, the odd bytes are the first, and no packet. */
	for (i = 0; i < 4; i++) {
		ssize_t rest = i & 1 ? 0 : 60;

		set_flag(_metadata, self->p[1], O_DIRECT, false);
		put(_metadata, self->p[1], 100, 1, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, true);
		put(_metadata, self->p[1], (1 + i) * psz + 200, 1, 100);
		if (rest) {
			put(_metadata, self->p[1], rest, 2, 0);
			ASSERT_EQ(300, read(self->p[0], buf, 300));
		} else {
			/* A read does not stop before a packet. */
			ASSERT_EQ(psz + 300, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf + 300, psz, 1, 300));
		}
		ASSERT_EQ(-1, mismatch(buf, 300, 1, 0));
		for (pos = rest ? 0 : 1; pos <= i; pos++) {
			ASSERT_EQ(psz, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, psz, 1, pos * psz + 300));
		}
		if (rest) {
			ASSERT_EQ(rest, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, rest, 2, 0));
		}
		expect_empty(_metadata, self->p[0]);
	}
	set_flag(_metadata, self->p[1], O_DIRECT, false);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	free(buf);
}

/*
 * A slot must not keep flags from its former use: stream bytes would be
 * thrown away like the rest of a packet, packets would be merged, and what
 * follows a page of a file would be written to the file.
 */
TEST_F(pipe, slot_flags_are_fresh)
{
	unsigned char *buf = alloc_buf(_metadata, psz);
	unsigned int i;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	set_flag(_metadata, self->p[0], O_NONBLOCK, true);

	/* Every slot has been a packet ... */
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	for (i = 0; i < DEF_SLOTS; i++)
		put(_metadata, self->p[1], 30, i, 0);
	for (i = 0; i < DEF_SLOTS; i++)
		get(_metadata, self->p[0], 30, i, 0);
	set_flag(_metadata, self->p[1], O_DIRECT, false);

	/* ... and is a page of a stream now, that is read bit by bit ... */
	put(_metadata, self->p[1], DEF_SLOTS * psz, 77, 0);
	for (i = 0; i < 2 * DEF_SLOTS; i++) {
		ASSERT_EQ(psz / 2, read(self->p[0], buf, psz / 2));
		ASSERT_EQ(-1, mismatch(buf, psz / 2, 77, i * (psz / 2)));
	}
	expect_empty(_metadata, self->p[0]);

	/* ... and then a packet again, which nothing is merged into. */
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	for (i = 0; i < DEF_SLOTS; i++)
		put(_metadata, self->p[1], 40, i, 0);
	for (i = 0; i < DEF_SLOTS; i++) {
		ASSERT_EQ(40, read(self->p[0], buf, psz));
		ASSERT_EQ(-1, mismatch(buf, 40, i, 0));
	}
	expect_empty(_metadata, self->p[0]);

	set_flag(_metadata, self->p[1], O_DIRECT, false);
	expect_works(_metadata, self->p);
	free(buf);
}

/* Without blocking, writes of up to PIPE_BUF are all or nothing. */
TEST_F(pipe, nonblock_all_or_nothing)
{
	ssize_t room = min(PIPE_BUF, psz) / 2;
	ssize_t i;

	set_slots(_metadata, self->p[1], 4);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	for (i = 0; i < 3; i++)
		put(_metadata, self->p[1], psz, FILLER, 0);
	put(_metadata, self->p[1], psz - room, 1, 0);

	for (i = room + 1; i <= PIPE_BUF; i += 97) {
		ASSERT_EQ(-1, try_put(_metadata, self->p[1], i, 1, psz - room));
		ASSERT_EQ(EAGAIN, errno);
	}
	ASSERT_EQ(-1, try_put(_metadata, self->p[1], PIPE_BUF, 1, psz - room));
	ASSERT_EQ(EAGAIN, errno);
	ASSERT_EQ(4 * psz - room, nr_bytes(_metadata, self->p[0]));

	put(_metadata, self->p[1], room, 1, psz - room);
	ASSERT_EQ(-1, try_put(_metadata, self->p[1], 1, 1, psz));
	ASSERT_EQ(EAGAIN, errno);

	/* One slot is enough for any. */
	drain_filler(_metadata, self->p[0], 1);
	put(_metadata, self->p[1], PIPE_BUF, 2, 0);
	drain_filler(_metadata, self->p[0], 2);
	get(_metadata, self->p[0], psz, 1, 0);
	get(_metadata, self->p[0], PIPE_BUF, 2, 0);
	expect_works(_metadata, self->p);
}

static void contiguous_records(struct __test_metadata *_metadata, const int p[2],
			       unsigned int count, ssize_t min_len, ssize_t max_len)
{
	unsigned int next_seq[MAX_WRITERS] = {};
	struct record_writer w[3] = {};
	const unsigned int rounds = 10;
	unsigned int round, i;

	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].fd = p[1];
		w[i].count = count;
		w[i].min_len = min_len;
		w[i].max_len = max_len;
	}

	for (round = 0; round < rounds; round++) {
		pthread_barrier_t barrier;
		unsigned char *data;
		ssize_t got, total;

		total = start_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);
		data = alloc_buf(_metadata, total);
		pthread_barrier_wait(&barrier);
		join_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);

		ASSERT_EQ(total, nr_bytes(_metadata, p[0]));
		for (got = 0; got < total; ) {
			ssize_t ret = read(p[0], data + got, total - got);

			ASSERT_GT(ret, 0);
			got += ret;
		}
		expect_records(_metadata, data, total, next_seq);
		expect_empty(_metadata, p[0]);
		free(data);
	}
	for (i = 0; i < ARRAY_SIZE(w); i++)
		ASSERT_EQ(rounds * w[i].count, next_seq[i]);
}

/*
 * A write for which there is room is not interleaved with others, whatever its
 * length.  POSIX does not promise that, but it has always been so.
 */
TEST_F_TIMEOUT(pipe, contiguous_large_writes, LONG_TIMEOUT)
{
	ssize_t slots = set_big(self->p[1]);
	ssize_t pages = 16;

	/* Three writers, and a slot more than pages, if nothing can be merged */
	if (slots < 3 * 4 * (pages + 1))
		pages = slots / (3 * 4) - 1;
	if (slots < 3 * 4 * 3)
		SKIP(return, "cannot make a pipe of more than %zd pages", slots);
	contiguous_records(_metadata, self->p, 4, (pages - 1) * psz + 1, pages * psz);
}

/* The same with more than is copied at a time */
TEST_F_TIMEOUT(copy, contiguous_huge_writes, LONG_TIMEOUT)
{
	ssize_t slots = set_big(self->p[1]);

	if (slots < 3 * 2 * 42)
		SKIP(return, "cannot make a pipe of more than %zd pages", slots);
	contiguous_records(_metadata, self->p, 2, 40 * psz - 333, 40 * psz + 333);
	contiguous_records(_metadata, self->p, 2, 40 * psz, 40 * psz);
	contiguous_records(_metadata, self->p, 4, 16 * psz - 20, 17 * psz + 20);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
}

/* To look for room comes before to look at the buffer. */
TEST_F(pipe, nonblock_full)
{
	const ssize_t lens[] = { 1, 100, psz, psz + 1, 16 * psz, 16 * psz + 1 };
	struct guarded bad;
	ssize_t i;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	guarded_alloc(_metadata, &bad, 0, 17 * psz, false);

	ASSERT_EQ(DEF_SLOTS, fill_slots(_metadata, self->p[1]));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		ASSERT_EQ(-1, try_put(_metadata, self->p[1], lens[i], 1, 0));
		ASSERT_EQ(EAGAIN, errno);
		ASSERT_EQ(-1, write(self->p[1], bad.buf, lens[i]));
		ASSERT_EQ(EAGAIN, errno);
		ASSERT_EQ(DEF_SLOTS * psz, nr_bytes(_metadata, self->p[0]));
	}

	/* A slot which was read in part is not free. */
	get(_metadata, self->p[0], psz - 1, FILLER, 0);
	ASSERT_EQ(-1, try_put(_metadata, self->p[1], 1, 1, 0));
	ASSERT_EQ(EAGAIN, errno);
	get(_metadata, self->p[0], 1, FILLER, psz - 1);
	ASSERT_EQ(-1, write(self->p[1], bad.buf, 1));
	ASSERT_EQ(EFAULT, errno);
	put(_metadata, self->p[1], 1, 1, 0);

	drain_filler(_metadata, self->p[0], DEF_SLOTS - 1);
	get(_metadata, self->p[0], 1, 1, 0);

	set_flag(_metadata, self->p[0], O_NONBLOCK, true);
	ASSERT_EQ(-1, read(self->p[0], bad.buf, psz));
	ASSERT_EQ(EAGAIN, errno);
	expect_works(_metadata, self->p);
	guarded_free(&bad);
}

/* With room for k pages, k pages are written. */
TEST_F(pipe, nonblock_partial)
{
	struct guarded g;
	ssize_t k;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);

	for (k = 1; k < DEF_SLOTS; k++) {
		ssize_t used = DEF_SLOTS - k;
		ssize_t i;

		for (i = 0; i < used; i++)
			put(_metadata, self->p[1], psz, FILLER, 0);
		ASSERT_EQ(k * psz,
			  try_put(_metadata, self->p[1], DEF_SLOTS * psz, k, 0));
		drain_filler(_metadata, self->p[0], used);
		get(_metadata, self->p[0], k * psz, k, 0);
		expect_empty(_metadata, self->p[0]);

		/* The odd bytes go first if they can be merged. */
		for (i = 0; i < used - 1; i++)
			put(_metadata, self->p[1], psz, FILLER, 0);
		put(_metadata, self->p[1], 100, k, 0);
		ASSERT_EQ(k * psz + 33,
			  try_put(_metadata, self->p[1], DEF_SLOTS * psz + 33, k, 100));
		drain_filler(_metadata, self->p[0], used - 1);
		get(_metadata, self->p[0], k * psz + 133, k, 0);
		expect_empty(_metadata, self->p[0]);

		/* Otherwise they would be the last. */
		for (i = 0; i < used; i++)
			put(_metadata, self->p[1], psz, FILLER, 0);
		ASSERT_EQ(k * psz,
			  try_put(_metadata, self->p[1], k * psz + 33, k, 0));
		drain_filler(_metadata, self->p[0], used);
		get(_metadata, self->p[0], k * psz, k, 0);
		expect_empty(_metadata, self->p[0]);
	}

	/* What there is no room for need not be accessible. */
	guarded_alloc(_metadata, &g, 3 * psz, 4 * psz, false);
	fill(g.buf, 3 * psz, 50, 0);
	for (k = 0; k < DEF_SLOTS - 3; k++)
		put(_metadata, self->p[1], psz, FILLER, 0);
	ASSERT_EQ(3 * psz, write(self->p[1], g.buf, 7 * psz));
	drain_filler(_metadata, self->p[0], DEF_SLOTS - 3);
	get(_metadata, self->p[0], 3 * psz, 50, 0);
	expect_works(_metadata, self->p);
	guarded_free(&g);
}

/* RWF_NOWAIT is O_NONBLOCK for one call.  Only anonymous pipes know it. */
TEST_F(pipe, rwf_nowait)
{
	unsigned char *buf = alloc_buf(_metadata, DEF_SLOTS * psz);
	struct iovec iov = { .iov_base = buf, .iov_len = 5 * psz };
	struct guarded bad;
	ssize_t ret;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	ret = preadv2(self->p[0], &iov, 1, -1, RWF_NOWAIT);
	if (ret < 0 && errno == EOPNOTSUPP)
		SKIP(return, "no RWF_NOWAIT for pipes");
	ASSERT_EQ(-1, ret);
	ASSERT_EQ(EAGAIN, errno);

	fill(buf, 5 * psz, 1, 0);
	ASSERT_EQ(5 * psz, pwritev2(self->p[1], &iov, 1, -1, RWF_NOWAIT));
	put(_metadata, self->p[1], 8 * psz, 1, 5 * psz);
	fill(buf, 5 * psz, 1, 13 * psz);
	ASSERT_EQ(3 * psz, pwritev2(self->p[1], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(-1, pwritev2(self->p[1], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(EAGAIN, errno);

	guarded_alloc(_metadata, &bad, 0, psz, false);
	iov.iov_base = bad.buf;
	iov.iov_len = psz;
	ASSERT_EQ(-1, pwritev2(self->p[1], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(EAGAIN, errno);

	iov.iov_base = buf;
	iov.iov_len = DEF_SLOTS * psz;
	ASSERT_EQ(DEF_SLOTS * psz,
		  preadv2(self->p[0], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(-1, mismatch(buf, DEF_SLOTS * psz, 1, 0));
	ASSERT_EQ(-1, preadv2(self->p[0], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(EAGAIN, errno);
	expect_works(_metadata, self->p);
	guarded_free(&bad);
	free(buf);
}

/* That nobody reads comes first: before the buffer, and before a full pipe. */
TEST_F(pipe, epipe_wins)
{
	const ssize_t lens[] = { 1, psz - 1, psz, psz + 1, 5 * psz + 3 };
	struct guarded bad;
	struct iovec iov;
	int pass, n = 0;
	ssize_t ret;
	ssize_t i;

	count_signals(_metadata, SIGPIPE, 0);
	guarded_alloc(_metadata, &bad, 0, 6 * psz, false);

	for (pass = 0; pass < 3; pass++) {
		int p[2];

		ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
		/* Empty, with something to merge with, and full */
		if (pass == 1)
			put(_metadata, p[1], 10, 1, 0);
		else if (pass == 2)
			fill_slots(_metadata, p[1]);
		ASSERT_EQ(0, close(p[0]));
		ASSERT_TRUE(polls(p[1], POLLERR));

		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			ASSERT_EQ(-1, try_put(_metadata, p[1], lens[i], 1, 0));
			ASSERT_EQ(EPIPE, errno);
			ASSERT_EQ(++n, signals());
			ASSERT_EQ(-1, write(p[1], bad.buf, lens[i]));
			ASSERT_EQ(EPIPE, errno);
			ASSERT_EQ(++n, signals());
		}
		set_flag(_metadata, p[1], O_NONBLOCK, true);
		ASSERT_EQ(-1, write(p[1], bad.buf, psz));
		ASSERT_EQ(EPIPE, errno);
		ASSERT_EQ(++n, signals());

		iov.iov_base = bad.buf;
		iov.iov_len = psz + 1;
		ret = pwritev2(p[1], &iov, 1, -1, RWF_NOSIGNAL);
		ASSERT_EQ(-1, ret);
		/* Older kernels do not know the flag. */
		if (errno != EOPNOTSUPP)
			ASSERT_EQ(EPIPE, errno);
		ASSERT_EQ(n, signals());
		ASSERT_EQ(0, close(p[1]));
	}
	guarded_free(&bad);
}

/* The last reader goes away while a writer waits. */
TEST_F(pipe, epipe_blocked)
{
	struct io io;

	count_signals(_metadata, SIGPIPE, 0);
	set_slots(_metadata, self->p[1], 2);
	fill_slots(_metadata, self->p[1]);

	io_init_write(_metadata, &io, self->p[1], 3 * psz, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	ASSERT_EQ(0, close(self->p[0]));
	io_join(_metadata, &io);
	ASSERT_EQ(-1, io.ret);
	ASSERT_EQ(EPIPE, io.err);
	ASSERT_EQ(1, signals());
	free(io.buf);
}

TEST_F(pipe, epipe_blocked_partial)
{
	struct io io;

	count_signals(_metadata, SIGPIPE, 0);
	set_slots(_metadata, self->p[1], 2);

	io_init_write(_metadata, &io, self->p[1], 5 * psz, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	ASSERT_EQ(2 * psz, nr_bytes(_metadata, self->p[0]));
	ASSERT_EQ(0, close(self->p[0]));
	io_join(_metadata, &io);
	/* It gets both, the count and the signal. */
	ASSERT_EQ(2 * psz, io.ret);
	ASSERT_EQ(1, signals());

	ASSERT_EQ(-1, write(self->p[1], "x", 1));
	ASSERT_EQ(EPIPE, errno);
	ASSERT_EQ(2, signals());
	free(io.buf);
}

/*
 * A write which hits memory it cannot access counts the pages which came before
 * the page with the fault; of that page, nothing is written.  Only if there was
 * none, it fails.
 */
TEST_F(pipe, efault_write_pages)
{
	const ssize_t offsets[] = { 0, 1, 100, psz - 1 };
	ssize_t i, k;

	set_slots(_metadata, self->p[1], DEF_SLOTS);

	for (k = 0; k <= 16; k++) {
		for (i = 0; i < ARRAY_SIZE(offsets); i++) {
			ssize_t len = 16 * psz;
			ssize_t good = k * psz + offsets[i];
			ssize_t expected = k * psz;
			struct guarded g;
			ssize_t ret;

			if (good > len)
				continue;
			guarded_alloc(_metadata, &g, good, 17 * psz, k & 1);
			fill(g.buf, good, k + 1, 0);
			ret = write(self->p[1], g.buf, len);
			if (expected) {
				ASSERT_EQ(expected, ret);
				get(_metadata, self->p[0], expected, k + 1, 0);
			} else {
				ASSERT_EQ(-1, ret);
				ASSERT_EQ(EFAULT, errno);
			}
			expect_empty(_metadata, self->p[0]);
			guarded_free(&g);
		}
	}
	expect_works(_metadata, self->p);
}

TEST_F(pipe, efault_write_tail)
{
	struct guarded g;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	guarded_alloc(_metadata, &g, 3 * psz, psz, false);

	/* The odd bytes at the end are not accessible... */
	fill(g.buf, 3 * psz, 1, 0);
	ASSERT_EQ(3 * psz, write(self->p[1], g.buf, 3 * psz + 100));
	EXPECT_LAYOUT(self->p, 1, 0, psz, psz, psz);

	/* ...but here, odd bytes from the start are merged. */
	put(_metadata, self->p[1], 50, 2, 0);
	fill(g.buf, 3 * psz, 2, 50);
	ASSERT_EQ(2 * psz + 100, write(self->p[1], g.buf, 3 * psz + 100));
	EXPECT_LAYOUT(self->p, 2, 0, 150, psz, psz);

	expect_works(_metadata, self->p);
	guarded_free(&g);
}

TEST_F(pipe, efault_write_merge)
{
	struct guarded g, h;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	guarded_alloc(_metadata, &g, 60, 3 * psz, false);
	guarded_alloc(_metadata, &h, 100, 3 * psz, true);
	fill(g.buf, 60, 7, 0);

	/* What cannot be merged altogether fails the write... */
	put(_metadata, self->p[1], 50, 1, 0);
	ASSERT_EQ(-1, write(self->p[1], g.buf, 100));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(-1, write(self->p[1], g.buf, 2 * psz + 100));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(50, nr_bytes(_metadata, self->p[0]));

	/* ...but what was merged before a later fault counts. */
	fill(h.buf, 100, 1, 50);
	ASSERT_EQ(100, write(self->p[1], h.buf, 2 * psz + 100));
	ASSERT_EQ(150, nr_bytes(_metadata, self->p[0]));

	/* No trace of the bytes of the failed writes */
	put(_metadata, self->p[1], psz + 30, 1, 150);
	EXPECT_LAYOUT(self->p, 1, 0, 180, psz);

	/* With no room to merge, nothing of it is written. */
	put(_metadata, self->p[1], psz - 50, 2, 0);
	ASSERT_EQ(-1, write(self->p[1], h.buf, 2 * psz + 100));
	ASSERT_EQ(EFAULT, errno);
	put(_metadata, self->p[1], 50, 2, psz - 50);
	EXPECT_LAYOUT(self->p, 2, 0, psz);

	expect_works(_metadata, self->p);
	guarded_free(&g);
	guarded_free(&h);
}

TEST_F(pipe, efault_writev)
{
	unsigned char *buf = alloc_buf(_metadata, 4 * psz);
	struct iovec iov[3];
	struct guarded bad;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	guarded_alloc(_metadata, &bad, 0, psz, false);
	fill(buf, 4 * psz, 1, 0);

	iov[0].iov_base = buf;
	iov[1].iov_base = bad.buf;
	iov[2].iov_base = buf + 2 * psz;

	iov[0].iov_len = 2 * psz;
	iov[1].iov_len = psz;
	iov[2].iov_len = psz;
	ASSERT_EQ(2 * psz, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 1, 0, psz, psz);

	iov[0].iov_len = psz + 100;
	iov[1].iov_len = 10;
	ASSERT_EQ(psz, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 1, 0, psz);

	iov[0].iov_len = 100;
	ASSERT_EQ(-1, writev(self->p[1], iov, 3));
	ASSERT_EQ(EFAULT, errno);
	expect_empty(_metadata, self->p[0]);

	/* The 110 odd bytes reach into the bad segment, or 100 do not. */
	put(_metadata, self->p[1], 30, 2, 0);
	fill(buf, 100, 2, 30);
	ASSERT_EQ(-1, writev(self->p[1], iov, 3));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(30, nr_bytes(_metadata, self->p[0]));
	iov[1].iov_len = psz;
	ASSERT_EQ(100, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 2, 0, 130);

	/* A bad segment of no length is none. */
	fill(buf, 4 * psz, 3, 0);
	iov[0].iov_len = 2 * psz;
	iov[1].iov_len = 0;
	iov[2].iov_len = 2 * psz;
	ASSERT_EQ(4 * psz, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 3, 0, psz, psz, psz, psz);

	/* Many small segments make whole pages. */
	iov[0].iov_len = psz / 2;
	iov[1].iov_base = buf + psz / 2;
	iov[1].iov_len = 3;
	iov[2].iov_base = buf + psz / 2 + 3;
	iov[2].iov_len = psz;
	ASSERT_EQ(psz + psz / 2 + 3, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 3, 0, psz, psz / 2 + 3);

	expect_works(_metadata, self->p);
	guarded_free(&bad);
	free(buf);
}

/*
 * What an odd write of @len bytes to a pipe with @before bytes returns if only
 * @good bytes are accessible, or 0 for EFAULT
 */
static ssize_t efault_count(ssize_t before, ssize_t len, ssize_t good)
{
	ssize_t odd = len % psz;

	if (good >= len)
		return len;
	if (!before || before + odd > psz)
		odd = 0;
	if (good < odd)
		return 0;
	return odd + (good - odd) / psz * psz;
}

static void efault_odd_write(struct __test_metadata *_metadata, const int p[2],
			     ssize_t before, ssize_t len, ssize_t good)
{
	ssize_t expected = efault_count(before, len, good);
	struct guarded g;
	ssize_t ret;

	guarded_alloc(_metadata, &g, good, len, good & 1);
	fill(g.buf, good, 1, before);
	/* The last byte of the buffer is as good as the others. */
	put(_metadata, p[1], before, 1, 0);
	ret = write(p[1], g.buf, len);
	if (expected) {
		ASSERT_EQ(expected, ret) {
			TH_LOG("%zd bytes, %zd of them good, after %zd", len, good, before);
		}
	} else {
		ASSERT_EQ(-1, ret);
		ASSERT_EQ(EFAULT, errno);
	}
	ASSERT_EQ(before + expected, nr_bytes(_metadata, p[0]));
	get(_metadata, p[0], before + expected, 1, 0);
	expect_empty(_metadata, p[0]);
	guarded_free(&g);
}

TEST_F_TIMEOUT(copy, efault_write_odd, LONG_TIMEOUT)
{
	const ssize_t lens[] = {
		psz + 1, 2 * psz + 100, 4 * psz - 1, 16 * psz + 7, 20 * psz + 21,
	};
	const ssize_t before[] = { 0, 50, psz - 20 };
	ssize_t i, j, k, off;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	for (i = 0; i < ARRAY_SIZE(before); i++) {
		for (j = 0; j < ARRAY_SIZE(lens); j++) {
			ssize_t len = lens[j], odd = len % psz;

			set_flag(_metadata, self->p[1], O_NONBLOCK, (i + j) & 1);
			/* Pages of the stream start at 0, or after the odd bytes. */
			for (k = 0; k <= len / psz; k++) {
				for (off = -1; off <= 1; off++) {
					ssize_t good = k * psz + off;

					if (good >= 0)
						efault_odd_write(_metadata, self->p,
								 before[i], len,
								 min(good, len));
					good += odd;
					efault_odd_write(_metadata, self->p, before[i],
							 len, min(max(good, 0), len));
				}
			}
		}
		set_flag(_metadata, self->p[1], O_NONBLOCK, false);
		expect_works(_metadata, self->p);
	}
}

/* Segments, each on pages of its own */
struct segments {
	unsigned char *map;
	ssize_t stride;
	ssize_t len;
	ssize_t nr;
};

/* All of them, but for the first @done bytes */
static ssize_t write_segments(int fd, const struct segments *s, ssize_t done)
{
	struct iovec iov[64];
	ssize_t i, n = 0;

	for (i = done / s->len; i < s->nr; i++, n++) {
		ssize_t off = i == done / s->len ? done % s->len : 0;

		/* They neither start nor end at the boundary of a page. */
		iov[n].iov_base = s->map + i * s->stride + 13 + off;
		iov[n].iov_len = s->len - off;
	}
	return writev(fd, iov, n);
}

/* Whatever the count is that a write returns, to go on from there is right. */
TEST_F_TIMEOUT(copy, efault_writev_retry, LONG_TIMEOUT)
{
	const ssize_t lens[] = { psz / 4 + 1, psz - 3, psz + 5, 2 * psz + 77 };
	const ssize_t before[] = { 0, 50, psz - 20 };
	ssize_t i, j, k, bad;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	for (j = 0; j < ARRAY_SIZE(lens); j++) {
		struct segments s = {
			.len = lens[j],
			.stride = (lens[j] / psz + 2) * psz,
			.nr = min(11, 20 * psz / lens[j]),
		};
		const ssize_t len = s.nr * s.len;

		s.map = mmap(NULL, s.nr * s.stride, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		ASSERT_NE(MAP_FAILED, s.map);

		for (i = 0; i < 2 * ARRAY_SIZE(before); i++) {
			ssize_t pos = before[i / 2];

			set_flag(_metadata, self->p[1], O_NONBLOCK, i & 1);
			for (k = 0; k < s.nr; k++)
				fill(s.map + k * s.stride + 13, s.len, 1,
				     pos + k * s.len);
			for (bad = 0; bad < s.nr; bad++) {
				ssize_t expected = efault_count(pos, len, bad * s.len);
				ssize_t ret;

				put(_metadata, self->p[1], pos, 1, 0);
				map_nothing_at(_metadata, s.map + bad * s.stride, s.stride);
				ret = write_segments(self->p[1], &s, 0);
				if (expected) {
					ASSERT_EQ(expected, ret);
				} else {
					ASSERT_EQ(-1, ret);
					ASSERT_EQ(EFAULT, errno);
				}
				ASSERT_EQ(pos + expected, nr_bytes(_metadata, self->p[0]));
				map_at(_metadata, s.map + bad * s.stride, s.stride);
				fill(s.map + bad * s.stride + 13, s.len, 1,
				     pos + bad * s.len);
				ASSERT_EQ(len - expected,
					  write_segments(self->p[1], &s, expected));
				get(_metadata, self->p[0], pos + len, 1, 0);
				expect_empty(_metadata, self->p[0]);
			}
		}
		munmap(s.map, s.nr * s.stride);
	}
	set_flag(_metadata, self->p[1], O_NONBLOCK, false);
	expect_works(_metadata, self->p);
}

/*
 * Memory which was not accessible when a writer came to it first may be by the
 * time it has the mutex: then it is written, and from where it begins. Somebody
 * else has the mutex meanwhile, a reader who is stuck in its own buffer.
 */
TEST_F(copy, efault_then_mapped)
{
	const ssize_t lens[] = { psz, 2 * psz, 2 * psz + 100, 16 * psz };
	const char *reason;
	ssize_t i;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], 2 * DEF_SLOTS);

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		/* The last page is not accessible, from within a page of the pipe. */
		ssize_t good = lens[i] - psz / 4;
		struct io writer = { .fd = self->p[1], .len = lens[i] };
		struct lazy reader;
		struct guarded g;
		struct io query;

		put(_metadata, self->p[1], 50, 9, 0);
		lazy_start_read(_metadata, &reader, uffd, self->p[0], 50);
		if (!holds_mutex(_metadata, self->p[0], &query))
			SKIP(return, "a reader who is stuck does not hold the mutex");

		guarded_alloc(_metadata, &g, good, psz / 4, false);
		fill(g.buf, good, i + 1, 0);
		writer.buf = g.buf;
		io_start(_metadata, &writer);
		ASSERT_TRUE(WAIT_FOR(io_done(&writer) || io_state(&writer) == 'D'));
		/* It may still be on its way to the mutex. */
		pause_ms(100);
		ASSERT_FALSE(io_done(&writer)) {
			TH_LOG("returned %zd (%s) while the mutex was held",
			       writer.ret, strerror(writer.err));
		}
		map_at(_metadata, g.buf + good, psz);
		fill(g.buf + good, lens[i] - good, i + 1, good);

		lazy_resolve(_metadata, &reader);
		io_join(_metadata, &query);
		io_join(_metadata, &reader.writer);
		ASSERT_EQ(50, reader.writer.ret);
		ASSERT_EQ(-1, mismatch(reader.map, 50, 9, 0));
		io_join(_metadata, &writer);
		ASSERT_EQ(lens[i], writer.ret);
		get(_metadata, self->p[0], lens[i], i + 1, 0);
		expect_works(_metadata, self->p);
		guarded_free(&g);
		lazy_free(&reader);
	}
	close(uffd);
}

/*
 * A writer which has found such memory returns what it has written before. It
 * must not let others go first, who may leave no room for it to find that out:
 * here, one who waits for the mutex, too, and then fills the pipe.
 */
TEST_F(copy, efault_not_giving_way)
{
	const char *reason;
	unsigned int i;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	for (i = 0; i < 10; i++) {
		struct io writer = { .fd = self->p[1], .len = (DEF_SLOTS + 4) * psz };
		struct lazy reader;
		struct guarded g;
		struct io other;
		struct io query;

		put(_metadata, self->p[1], 50, 9, 0);
		lazy_start_read(_metadata, &reader, uffd, self->p[0], 50);
		if (!holds_mutex(_metadata, self->p[0], &query))
			SKIP(return, "a reader who is stuck does not hold the mutex");

		guarded_alloc(_metadata, &g, 2 * psz, writer.len - 2 * psz, false);
		fill(g.buf, 2 * psz, 1, 0);
		writer.buf = g.buf;
		io_start(_metadata, &writer);
		ASSERT_TRUE(WAIT_FOR(io_state(&writer) == 'D'));
		pause_ms(20);
		io_init_write(_metadata, &other, self->p[1], (DEF_SLOTS - 2) * psz, 2, 0);
		io_start(_metadata, &other);
		ASSERT_TRUE(WAIT_FOR(io_state(&other) == 'D'));
		pause_ms(20);

		lazy_resolve(_metadata, &reader);
		io_join(_metadata, &query);
		io_join(_metadata, &reader.writer);
		ASSERT_EQ(50, reader.writer.ret);
		ASSERT_EQ(-1, mismatch(reader.map, 50, 9, 0));
		ASSERT_TRUE(WAIT_FOR(io_done(&writer))) {
			TH_LOG("waits for a reader to return %zd bytes", 2 * psz);
		}
		io_join(_metadata, &writer);
		ASSERT_EQ(2 * psz, writer.ret);
		io_join(_metadata, &other);
		ASSERT_EQ(other.len, other.ret);
		get(_metadata, self->p[0], writer.ret, 1, 0);
		get(_metadata, self->p[0], other.len, 2, 0);
		expect_works(_metadata, self->p);
		free(other.buf);
		guarded_free(&g);
		lazy_free(&reader);
	}
	close(uffd);
}

/* Count the page faults of the thread @tid; -1 and a reason if that cannot be. */
static int count_faults(pid_t tid, const char **reason)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
	};
	char id[32];
	int fd;

	/* That leaves out those which are not handled, as faults are disabled. */
	if (!read_file_at("/sys/kernel/tracing/events/exceptions/page_fault_kernel",
			  "id", id, sizeof(id)) ||
	    !read_file_at("/sys/kernel/debug/tracing/events/exceptions/page_fault_kernel",
			  "id", id, sizeof(id))) {
		attr.type = PERF_TYPE_TRACEPOINT;
		attr.config = atoi(id);
	}
	fd = syscall(__NR_perf_event_open, &attr, tid, -1, -1, 0);
	if (fd < 0)
		*reason = errno == EACCES || errno == EPERM ?
			"the page faults of the kernel cannot be counted without CAP_PERFMON" :
			"the kernel has no CONFIG_PERF_EVENTS";
	return fd;
}

/*
 * A writer which has found memory that cannot be accessed may try it once before
 * each wait, no more often: if the memory is broken, each time is a machine check.
 * One more time is needed to find out what to return, with the mutex held.
 */
TEST_F(copy, efault_not_repeated)
{
	const char *reason = "";
	struct io writer = { };
	uint64_t faults = 0;
	struct guarded g;
	ssize_t n, i;
	int fd;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	n = fill_slots(_metadata, self->p[1]);
	guarded_alloc(_metadata, &g, (n - 1) * psz, psz, false);
	fill(g.buf, (n - 1) * psz, 1, 0);
	writer.fd = self->p[1];
	writer.buf = g.buf;
	writer.len = n * psz;
	io_start(_metadata, &writer);
	io_wait_blocked(_metadata, &writer);
	fd = count_faults(writer.tid, &reason);

	/* It fills each slot that gets free, and waits for the next. */
	for (i = 0; i < n - 1; i++) {
		drain_filler(_metadata, self->p[0], 1);
		ASSERT_TRUE(WAIT_FOR(nr_bytes(_metadata, self->p[0]) == n * psz));
		io_wait_blocked(_metadata, &writer);
	}
	drain_filler(_metadata, self->p[0], 1);
	io_join(_metadata, &writer);
	EXPECT_EQ((n - 1) * psz, writer.ret);
	get(_metadata, self->p[0], (n - 1) * psz, 1, 0);
	expect_works(_metadata, self->p);
	guarded_free(&g);

	if (fd < 0)
		SKIP(return, "%s", reason);
	ASSERT_EQ((ssize_t)sizeof(faults), read(fd, &faults, sizeof(faults)));
	close(fd);
	/* A copy which comes out short may have been tried byte by byte, too. */
	EXPECT_GE(n + 4, (ssize_t)faults) {
		TH_LOG("%zd page faults while it waited for %zd slots",
		       (ssize_t)faults, n);
	}
}

/* A read which fails must not lose a byte. */
TEST_F(pipe, efault_read)
{
	unsigned char *buf = alloc_buf(_metadata, psz);
	struct guarded g, bad;
	struct iovec iov[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	guarded_alloc(_metadata, &bad, 0, 4 * psz, false);
	guarded_alloc(_metadata, &g, psz + psz / 2, 4 * psz, true);

	put(_metadata, self->p[1], 4 * psz, 1, 0);
	ASSERT_EQ(-1, read(self->p[0], bad.buf, 1));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(-1, read(self->p[0], bad.buf, 4 * psz));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(4 * psz, nr_bytes(_metadata, self->p[0]));

	/* Slots count which were copied altogether. */
	ASSERT_EQ(psz, read(self->p[0], g.buf, 4 * psz));
	ASSERT_EQ(-1, mismatch(g.buf, psz, 1, 0));
	ASSERT_EQ(3 * psz, nr_bytes(_metadata, self->p[0]));

	/* The rest of one which was read in part also does. */
	get(_metadata, self->p[0], psz - 10, 1, psz);
	ASSERT_EQ(psz + 10, read(self->p[0], g.buf, 2 * psz));
	ASSERT_EQ(-1, mismatch(g.buf, psz + 10, 1, 2 * psz - 10));
	ASSERT_EQ(psz, nr_bytes(_metadata, self->p[0]));

	iov[0].iov_base = buf;
	iov[0].iov_len = 100;
	iov[1].iov_base = bad.buf;
	iov[1].iov_len = 100;
	ASSERT_EQ(-1, readv(self->p[0], iov, 2));
	ASSERT_EQ(EFAULT, errno);
	EXPECT_LAYOUT(self->p, 1, 3 * psz, psz);

	put(_metadata, self->p[1], 100, 2, 0);
	put(_metadata, self->p[1], psz, 2, 100);
	ASSERT_EQ(100, readv(self->p[0], iov, 2));
	ASSERT_EQ(-1, mismatch(buf, 100, 2, 0));
	/* It still can be merged with. */
	put(_metadata, self->p[1], 7, 2, psz + 100);
	ASSERT_EQ(-1, read(self->p[0], bad.buf, psz));
	ASSERT_EQ(EFAULT, errno);
	put(_metadata, self->p[1], 8, 2, psz + 107);
	EXPECT_LAYOUT(self->p, 2, 100, psz, 15);

	/* Neither is a packet lost. */
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	put(_metadata, self->p[1], 200, 3, 0);
	ASSERT_EQ(-1, readv(self->p[0], iov, 2));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(200, nr_bytes(_metadata, self->p[0]));
	ASSERT_EQ(100, read(self->p[0], buf, 100));
	ASSERT_EQ(-1, mismatch(buf, 100, 3, 0));
	set_flag(_metadata, self->p[1], O_DIRECT, false);

	expect_works(_metadata, self->p);
	guarded_free(&g);
	guarded_free(&bad);
	free(buf);
}

/*
 * A read that was woken leaves something to read, because it fails, or since it asked
 * for less.  Its buffer is not there when it begins, so it may drop the mutex first.  The
 * write has woken it alone, so it has to wake the next one who waits: here, one that polls
 * with EPOLLEXCLUSIVE.
 */
TEST_F(pipe, efault_read_wakes_next)
{
	struct epoll_event in = { .events = EPOLLIN | EPOLLEXCLUSIVE }, ev;
	struct io reader;
	struct guarded g;
	int ep, i;

	for (i = 0; i < 20; i++) {
		bool fails = i & 1;

		ep = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_LE(0, ep);
		guarded_alloc(_metadata, &g, psz, psz, false);
		ASSERT_EQ(0, madvise(g.map, psz, MADV_DONTNEED));
		reader = (struct io){
			.fd = self->p[0], .is_read = true,
			.buf = fails ? g.map + psz : g.map,
			.len = fails ? psz : 4,
		};
		io_start(_metadata, &reader);
		io_wait_blocked(_metadata, &reader);
		/* Behind the reader in the queue */
		ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[0], &in));
		put(_metadata, self->p[1], 10, 1, 0);
		io_join(_metadata, &reader);
		ASSERT_EQ(fails ? -1 : 4, reader.ret);
		if (fails) {
			ASSERT_EQ(EFAULT, reader.err);
		} else {
			ASSERT_EQ(-1, mismatch(g.map, 4, 1, 0));
		}
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 1000)) {
			TH_LOG("nobody was told of what a read has left");
		}
		get(_metadata, self->p[0], fails ? 10 : 6, 1, fails ? 0 : 4);
		close(ep);
		guarded_free(&g);
	}
	expect_works(_metadata, self->p);
}

/*
 * Fail every page allocation of a large write in turn.  How many there are, and
 * which of them matter, is up to the kernel.
 */
TEST_F_TIMEOUT(pipe, enomem, LONG_TIMEOUT)
{
	const ssize_t nr = 20;
	unsigned char *buf = alloc_buf(_metadata, nr * psz + 100);
	int fd, ret, nth, pass, hits = 0;
	ssize_t i;

	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		SKIP(return, "no fault injection: %s", strerror(errno));
	ret = get_mount("debugfs", &self->debugfs);
	if (ret)
		SKIP(return, "no debugfs: %s", strerror(-ret));
	snprintf(self->fault_dir, sizeof(self->fault_dir), "%s/fail_page_alloc",
		 self->debugfs.path);
	if (access(self->fault_dir, F_OK))
		SKIP(return, "no fail_page_alloc: %s", strerror(errno));

	/* Nothing fails but in this thread: fail-nth overrides probability. */
	for (i = 0; i < ARRAY_SIZE(fault_knobs); i++) {
		char old[32];

		if (read_file_at(self->fault_dir, fault_knobs[i], old, sizeof(old)))
			SKIP(return, "cannot read %s", fault_knobs[i]);
		memcpy(self->fault_saved[i], old, sizeof(old));
		ret = write_file_at(self->fault_dir, fault_knobs[i],
				    strstr(fault_knobs[i], "ignore") ? "N" : "0");
		if (ret)
			SKIP(return, "cannot write %s", fault_knobs[i]);
	}

	set_slots(_metadata, self->p[1], 2 * DEF_SLOTS);
	/* Page faults of the buffer must not be what fails. */
	fill(buf, nr * psz + 100, 0, 0);
	mlock(buf, nr * psz + 100);

	for (pass = 0; pass < 2; pass++) {
		/* The second time with bytes to merge first */
		ssize_t before = pass ? 50 : 0;
		ssize_t merged = pass ? 100 : 0;
		bool hit = true;

		for (nth = 1; hit && nth < 500; nth++) {
			char val[16];
			ssize_t len;
			int err;

			put(_metadata, self->p[1], before, nth, 0);
			fill(buf, nr * psz + 100, nth, before);

			snprintf(val, sizeof(val), "%d", nth);
			ASSERT_LT(0, pwrite(fd, val, strlen(val), 0));
			len = write(self->p[1], buf, nr * psz + 100);
			err = errno;
			memset(val, 0, sizeof(val));
			/* If there is a fault left, then it may hit this. */
			hit = pread(fd, val, sizeof(val) - 1, 0) > 0 && atoi(val) == 0;
			ASSERT_EQ(1, pwrite(fd, "0", 1, 0));

			if (len < 0) {
				ASSERT_TRUE(hit);
				/* User copies can fail to order, too. */
				if (err != EFAULT) {
					ASSERT_EQ(ENOMEM, err);
					ASSERT_EQ(0, merged);
				}
				len = 0;
			} else if (len != nr * psz + 100) {
				ASSERT_TRUE(hit);
				ASSERT_EQ(merged, len % psz);
			}
			hits += hit;
			ASSERT_EQ(before + len, nr_bytes(_metadata, self->p[0]));
			get(_metadata, self->p[0], before + len, nth, 0);
			expect_works(_metadata, self->p);
		}
		ASSERT_FALSE(hit);
	}
	ASSERT_GT(hits, 0);
	close(fd);
	free(buf);
}

TEST_F(pipe, signal_blocked_writer)
{
	struct io io;

	count_signals(_metadata, SIGUSR1, 0);
	set_slots(_metadata, self->p[1], 2);

	/* Nothing was written. */
	fill_slots(_metadata, self->p[1]);
	io_init_write(_metadata, &io, self->p[1], 3 * psz + 5, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(-1, io.ret);
	ASSERT_EQ(EINTR, io.err);
	drain_filler(_metadata, self->p[0], 2);
	expect_empty(_metadata, self->p[0]);

	/* Some pages were written. */
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(2 * psz, io.ret);
	get(_metadata, self->p[0], 2 * psz, 1, 0);
	expect_empty(_metadata, self->p[0]);
	free(io.buf);

	/* Only what could be merged was written. */
	put(_metadata, self->p[1], psz, FILLER, 0);
	put(_metadata, self->p[1], 100, 2, 0);
	io_init_write(_metadata, &io, self->p[1], psz + 50, 2, 100);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	ASSERT_EQ(psz + 150, nr_bytes(_metadata, self->p[0]));
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(50, io.ret);
	drain_filler(_metadata, self->p[0], 1);
	get(_metadata, self->p[0], 150, 2, 0);
	ASSERT_EQ(3, signals());
	expect_empty(_metadata, self->p[0]);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	free(io.buf);
}

TEST_F(pipe, signal_restart_writer)
{
	struct io io;

	count_signals(_metadata, SIGUSR1, SA_RESTART);
	set_slots(_metadata, self->p[1], 2);

	/* Only a write of nothing is restarted... */
	fill_slots(_metadata, self->p[1]);
	io_init_write(_metadata, &io, self->p[1], 4 * psz + 5, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	ASSERT_TRUE(WAIT_FOR(signals() == 1));
	io_wait_blocked(_metadata, &io);
	drain_filler(_metadata, self->p[0], 2);
	get_chunks(_metadata, self->p[0], 4 * psz + 5, 1, 0, 777);
	io_join(_metadata, &io);
	ASSERT_EQ(4 * psz + 5, io.ret);
	expect_empty(_metadata, self->p[0]);

	/* ...while a part is returned as such. */
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(2, signals());
	ASSERT_EQ(2 * psz, io.ret);
	get(_metadata, self->p[0], 2 * psz, 1, 0);
	expect_empty(_metadata, self->p[0]);
	free(io.buf);
}

TEST_F(pipe, signal_blocked_reader)
{
	struct io io;

	count_signals(_metadata, SIGUSR1, 0);
	io_init_read(_metadata, &io, self->p[0], 3 * psz);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(-1, io.ret);
	ASSERT_EQ(EINTR, io.err);

	count_signals(_metadata, SIGUSR1, SA_RESTART);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	ASSERT_TRUE(WAIT_FOR(signals() == 1));
	io_wait_blocked(_metadata, &io);
	put(_metadata, self->p[1], 2 * psz, 1, 0);
	io_join(_metadata, &io);
	ASSERT_EQ(2 * psz, io.ret);
	ASSERT_EQ(-1, mismatch(io.buf, io.ret, 1, 0));
	expect_works(_metadata, self->p);
	free(io.buf);
}

/*
 * Waiting is exclusive, so whoever is woken up and leaves something behind has
 * to wake up the next one.
 */
TEST_F(pipe, two_blocked_readers)
{
	struct io io[2];
	int i;

	for (i = 0; i < 2; i++) {
		io_init_read(_metadata, &io[i], self->p[0], psz + 10);
		io[i].all = true;
		io_start(_metadata, &io[i]);
		io_wait_blocked(_metadata, &io[i]);
	}
	put(_metadata, self->p[1], 2 * psz + 20, 1, 0);
	for (i = 0; i < 2; i++) {
		io_join(_metadata, &io[i]);
		ASSERT_EQ(psz + 10, io[i].ret);
	}
	i = io[0].buf[0] == pattern(1, 0) ? 0 : 1;
	ASSERT_EQ(-1, mismatch(io[i].buf, psz + 10, 1, 0));
	ASSERT_EQ(-1, mismatch(io[!i].buf, psz + 10, 1, psz + 10));
	expect_works(_metadata, self->p);
	free(io[0].buf);
	free(io[1].buf);
}

TEST_F(pipe, resize)
{
	ssize_t i, pos = 0;

	set_slots(_metadata, self->p[1], 4);

	/* Move on by a few slots, so that the ring wraps around. */
	put(_metadata, self->p[1], 3 * psz, 1, 0);
	get(_metadata, self->p[0], 3 * psz, 1, 0);

	put(_metadata, self->p[1], 2 * psz + 100, 2, 0);
	ASSERT_EQ(-1, fcntl(self->p[1], F_SETPIPE_SZ, (int)psz));
	ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(-1, fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * psz)));
	ASSERT_EQ(EBUSY, errno);
	/* Rounded up to a power of two */
	ASSERT_EQ((int)(4 * psz), fcntl(self->p[0], F_SETPIPE_SZ, (int)(2 * psz + 1)));
	set_slots(_metadata, self->p[1], 8);
	/* The last slot can still be merged with. */
	put(_metadata, self->p[1], 4 * psz + 50, 2, 2 * psz + 100);
	EXPECT_LAYOUT(self->p, 2, 0, psz, psz, 150, psz, psz, psz, psz);

	put(_metadata, self->p[1], 100, 3, 0);
	set_slots(_metadata, self->p[1], 1);
	put(_metadata, self->p[1], 50, 3, 100);
	EXPECT_LAYOUT(self->p, 3, 0, 150);

	/* Grow and shrink a ring which is never empty. */
	put(_metadata, self->p[1], psz, 4, 0);
	for (i = 0; i < 12; i++) {
		ssize_t slots = 2 << (i % 4);

		set_slots(_metadata, self->p[1], slots);
		put(_metadata, self->p[1], psz * (slots - 1), 4, pos + psz);
		get(_metadata, self->p[0], psz * (slots - 1), 4, pos);
		pos += psz * (slots - 1);
	}
	get(_metadata, self->p[0], psz, 4, pos);
	expect_works(_metadata, self->p);
}

struct resizer {
	int fd;
	int size;	/* or 0: from 1 slot to 64, in an order which is not monotonic */
	bool stop;
	int ok;
	int busy;
	int bad;
};

static void *resize_thread(void *arg)
{
	struct resizer *r = arg;
	unsigned int i = 0;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		int size = r->size ?: psz << (i++ * 3 % 7);

		if (fcntl(r->fd, F_SETPIPE_SZ, size) == size)
			__atomic_store_n(&r->ok, r->ok + 1, __ATOMIC_RELAXED);
		else if (errno == EBUSY)
			r->busy++;
		else
			r->bad++;
		if (!r->size)
			sched_yield();
	}
	return NULL;
}

TEST_F_TIMEOUT(pipe, resize_during_writes, LONG_TIMEOUT)
{
	struct resizer r = { .fd = self->p[1] };
	const ssize_t len = 40 * psz + 123;
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	unsigned int round, rnd = 1;
	pthread_t thread;
	struct io io;

	/* More is for the privileged; 64 slots of large pages may be, too. */
	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));

	ASSERT_EQ(0, pthread_create(&thread, NULL, resize_thread, &r));
	for (round = 0; round < 8; round++) {
		ssize_t got = 0;

		io_init_write(_metadata, &io, self->p[1], len, round, 0);
		io_start(_metadata, &io);
		while (got < len) {
			ssize_t want = 1 + next_random(&rnd) % (8 * psz);
			ssize_t ret = read(self->p[0], buf, min(want, len - got));

			ASSERT_GT(ret, 0);
			ASSERT_EQ(-1, mismatch(buf, ret, round, got));
			got += ret;
		}
		io_join(_metadata, &io);
		ASSERT_EQ(len, io.ret);
		expect_empty(_metadata, self->p[0]);
		free(io.buf);
	}
	ASSERT_TRUE(WAIT_FOR(__atomic_load_n(&r.ok, __ATOMIC_RELAXED) > 7));
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, r.bad);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	free(buf);
}

/*
 * A pipe with data is readable, also while it is resized: nobody would wake up who
 * found that it is not.
 */
TEST_F_TIMEOUT(pipe, resize_and_poll, LONG_TIMEOUT)
{
	struct resizer r = { .fd = self->p[1], .size = DEF_SLOTS * psz };
	long polled = 0, unreadable = 0, end;
	pthread_t thread;

	/* Full, so that the slot behind the last one may be the first one later. */
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	put(_metadata, self->p[1], DEF_SLOTS * psz, 1, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, resize_thread, &r));
	ASSERT_TRUE(WAIT_FOR(__atomic_load_n(&r.ok, __ATOMIC_RELAXED) > 0));
	for (end = now_ms() + 3000; now_ms() < end; polled++)
		unreadable += !polls(self->p[0], POLLIN);
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, unreadable) {
		TH_LOG("not readable %ld times of %ld, resized %d times", unreadable, polled,
		       r.ok);
	}
	ASSERT_EQ(0, r.busy + r.bad);
	ASSERT_GT(r.ok, 100);
	ASSERT_GT(polled, 100);
	get(_metadata, self->p[0], DEF_SLOTS * psz, 1, 0);
	expect_works(_metadata, self->p);
}

/*
 * A writer whose buffer somebody else has to provide first, while it is being
 * copied from.  The reader must get all of the pages; that it gets none of them
 * before the last one is there is what stuck_writer looks at.
 */
static void uffd_write(struct __test_metadata *_metadata, const int p[2], int uffd,
		       ssize_t before, ssize_t len, uint64_t missing)
{
	struct io reader;
	struct lazy l;
	int faults = 0;
	long end;

	lazy_alloc(_metadata, &l, uffd, len, 1, before);
	lazy_arm(_metadata, &l, missing);
	put(_metadata, p[1], before, 1, 0);
	l.writer.fd = p[1];
	io_init_read(_metadata, &reader, p[0], before + len);
	reader.all = true;
	io_start(_metadata, &l.writer);

	end = now_ms() + WAIT_MS;
	while (!io_done(&l.writer)) {
		ssize_t page = lazy_fault(_metadata, &l);

		ASSERT_LT(now_ms(), end);
		if (page < 0) {
			pause_ms(1);
			continue;
		}
		if (!faults++)
			io_start(_metadata, &reader);
		lazy_provide(_metadata, &l, 1ull << page);
	}
	io_join(_metadata, &l.writer);
	ASSERT_EQ(len, l.writer.ret);
	ASSERT_GT(faults, 0);
	io_join(_metadata, &reader);
	ASSERT_EQ(before + len, reader.ret);
	ASSERT_EQ(-1, mismatch(reader.buf, before + len, 1, 0));
	expect_works(_metadata, p);
	free(reader.buf);
	lazy_free(&l);
}

TEST_F(pipe, userfaultfd_writer)
{
	const char *reason;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	uffd_write(_metadata, self->p, uffd, 0, 100, 1);
	uffd_write(_metadata, self->p, uffd, 0, 4 * psz, 1);
	uffd_write(_metadata, self->p, uffd, 0, 4 * psz, 4);
	uffd_write(_metadata, self->p, uffd, 0, 4 * psz, 15);
	/* Missing is what is merged, or what comes after that. */
	uffd_write(_metadata, self->p, uffd, 50, 100, 1);
	uffd_write(_metadata, self->p, uffd, 50, 2 * psz + 100, 1);
	uffd_write(_metadata, self->p, uffd, 50, 2 * psz + 100, 2);
	uffd_write(_metadata, self->p, uffd, 50, 2 * psz + 100, 4);
	close(uffd);
}

/*
 * Some programs rely on an event from edge-triggered epoll for every write,
 * even if nobody read what was there already.
 */
TEST_F(pipe, epollet_every_write)
{
	const ssize_t lens[] = { 1, 1, psz, 100, psz - 100, 2 * psz + 5, 7 };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	ssize_t i, pos = 0;
	int ep;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_GE(ep, 0);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[0], &ev));
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		put(_metadata, self->p[1], lens[i], 1, pos);
		pos += lens[i];
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0)) {
			TH_LOG("no event for write %zd", i);
		}
		ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	}

	/* A write which is cut short is one, too. */
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	ASSERT_GT(try_put(_metadata, self->p[1], DEF_SLOTS * psz, 1, pos), 0);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	get(_metadata, self->p[0], nr_bytes(_metadata, self->p[0]), 1, 0);
	put(_metadata, self->p[1], 1, 2, 0);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	get(_metadata, self->p[0], 1, 2, 0);
	close(ep);
	expect_works(_metadata, self->p);
}

TEST_F(pipe, pollout_after_drain)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	struct io io;
	int ep;

	set_slots(_metadata, self->p[1], 4);
	ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_GE(ep, 0);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[1], &ev));
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));

	ASSERT_TRUE(polls(self->p[1], POLLOUT));
	ASSERT_FALSE(polls(self->p[0], POLLIN));
	fill_slots(_metadata, self->p[1]);
	ASSERT_FALSE(polls(self->p[1], POLLOUT));
	ASSERT_TRUE(polls(self->p[0], POLLIN));
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));

	/* A part of a slot is not enough. */
	get(_metadata, self->p[0], psz - 1, FILLER, 0);
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	ASSERT_FALSE(polls(self->p[1], POLLOUT));
	get(_metadata, self->p[0], 1, FILLER, psz - 1);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	ASSERT_TRUE(polls(self->p[1], POLLOUT));

	/* The same with a full pipe which is drained at once */
	drain_filler(_metadata, self->p[0], 3);
	fill_slots(_metadata, self->p[1]);
	(void)epoll_wait(ep, &ev, 1, 0);
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	drain_filler(_metadata, self->p[0], 4);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));

	/* A writer which waits takes the slots, so there is no POLLOUT. */
	io_init_write(_metadata, &io, self->p[1], 6 * psz, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	ASSERT_FALSE(polls(self->p[1], POLLOUT));
	get(_metadata, self->p[0], 6 * psz, 1, 0);
	io_join(_metadata, &io);
	ASSERT_EQ(6 * psz, io.ret);
	ASSERT_TRUE(polls(self->p[1], POLLOUT));
	free(io.buf);

	close(ep);
	expect_works(_metadata, self->p);
}

TEST_F(pipe, sigio)
{
	int i;

	count_signals(_metadata, SIGIO, 0);
	ASSERT_EQ(0, fcntl(self->p[0], F_SETOWN, getpid()));
	set_flag(_metadata, self->p[0], O_ASYNC, true);
	for (i = 1; i <= 3; i++) {
		put(_metadata, self->p[1], i * psz - 1, i, 0);
		ASSERT_EQ(i, signals());
	}
	set_flag(_metadata, self->p[0], O_ASYNC, false);

	count_signals(_metadata, SIGIO, 0);
	ASSERT_EQ(0, fcntl(self->p[1], F_SETOWN, getpid()));
	set_flag(_metadata, self->p[1], O_ASYNC, true);
	for (i = 1; i <= 3; i++) {
		get(_metadata, self->p[0], i * psz - 1, i, 0);
		ASSERT_EQ(i, signals());
	}
	set_flag(_metadata, self->p[1], O_ASYNC, false);
	expect_works(_metadata, self->p);
}

/*
 * How often a reader finds something of a large write if he reads all that there is:
 * each time that the pipe is full, and in the end. In a larger pipe than a write
 * prepares for at once, DEF_SLOTS, he may come between, but no more often than that.
 */
static void eager_reader(struct __test_metadata *_metadata, const int p[2], ssize_t slots)
{
	unsigned char *buf = alloc_buf(_metadata, slots * psz);
	ssize_t got, ret, reads = 0;
	struct io io;

	set_slots(_metadata, p[1], slots);
	io_init_write(_metadata, &io, p[1], 3 * slots * psz, 1, 0);
	io_start(_metadata, &io);
	for (got = 0; got < io.len; got += ret, reads++) {
		ret = read(p[0], buf, slots * psz);
		ASSERT_GT(ret, 0);
		ASSERT_EQ(-1, mismatch(buf, ret, 1, got));
	}
	io_join(_metadata, &io);
	EXPECT_GE(3 * slots / DEF_SLOTS, reads) {
		TH_LOG("with %zd slots", slots);
	}
	free(io.buf);
	free(buf);
}

TEST_F(copy, eager_reader)
{
	eager_reader(_metadata, self->p, DEF_SLOTS);
	eager_reader(_metadata, self->p, 2 * DEF_SLOTS);
	eager_reader(_metadata, self->p, 4 * DEF_SLOTS);
}

static void make_pipe(struct __test_metadata *_metadata, int p[2])
{
	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	set_slots(_metadata, p[1], DEF_SLOTS);
}

/* Pages which two pipes share: nobody may see what the other writes. */
TEST_F(pipe, tee_and_merge)
{
	int q[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	make_pipe(_metadata, q);

	put(_metadata, self->p[1], psz + 100, 1, 0);
	ASSERT_EQ(psz + 100, tee(self->p[0], q[1], 2 * psz, 0));
	/* Both after byte 100, but the copy must not merge. */
	put(_metadata, self->p[1], 50, 1, psz + 100);
	put(_metadata, q[1], 70, 2, 0);
	put(_metadata, self->p[1], psz + 20, 1, psz + 150);
	put(_metadata, q[1], psz + 30, 2, 70);

	ASSERT_EQ(DEF_SLOTS - 4, fill_slots(_metadata, q[1]));
	get(_metadata, q[0], psz + 100, 1, 0);
	get(_metadata, q[0], psz + 100, 2, 0);
	drain_filler(_metadata, q[0], DEF_SLOTS - 4);
	expect_empty(_metadata, q[0]);
	EXPECT_LAYOUT(self->p, 1, 0, psz, 170, psz);

	/* And the same while the original is gone already. */
	put(_metadata, self->p[1], 100, 3, 0);
	ASSERT_EQ(100, tee(self->p[0], q[1], psz, 0));
	get(_metadata, self->p[0], 100, 3, 0);
	put(_metadata, q[1], 10, 4, 0);
	put(_metadata, self->p[1], 200, 5, 0);
	get(_metadata, q[0], 100, 3, 0);
	get(_metadata, q[0], 10, 4, 0);
	get(_metadata, self->p[0], 200, 5, 0);

	expect_works(_metadata, self->p);
	expect_works(_metadata, q);
}

/* A page which somebody else holds must not be used again for a write. */
TEST_F(pipe, tee_and_recycle)
{
	const ssize_t lens[] = { 1, 100, psz, 2 * psz + 5, 10 * psz };
	unsigned int seed = 1;
	ssize_t i, j;
	int q[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	make_pipe(_metadata, q);

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		for (j = 0; j < 2; j++, seed += 3) {
			const int *first = j ? self->p : q;
			const int *last = j ? q : self->p;

			put(_metadata, self->p[1], lens[i], seed, 0);
			ASSERT_EQ(lens[i], tee(self->p[0], q[1], lens[i], 0));
			get(_metadata, first[0], lens[i], seed, 0);
			/* Would overwrite the pages the other still has. */
			put(_metadata, first[1], 12 * psz, seed + 1, 0);
			get(_metadata, last[0], lens[i], seed, 0);
			put(_metadata, last[1], 12 * psz, seed + 2, 0);
			get(_metadata, first[0], 12 * psz, seed + 1, 0);
			get(_metadata, last[0], 12 * psz, seed + 2, 0);
			expect_empty(_metadata, self->p[0]);
			expect_empty(_metadata, q[0]);
		}
	}
}

/* Whole slots move to the other pipe; of the last one, they get a part each. */
TEST_F(pipe, splice_to_pipe)
{
	int q[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	make_pipe(_metadata, q);

	put(_metadata, self->p[1], 2 * psz + 100, 1, 0);
	ASSERT_EQ(2 * psz + 60,
		  splice(self->p[0], NULL, q[1], NULL, 2 * psz + 60, 0));
	put(_metadata, q[1], 30, 2, 0);
	put(_metadata, self->p[1], 50, 1, 2 * psz + 100);
	get(_metadata, q[0], 2 * psz + 60, 1, 0);
	get(_metadata, q[0], 30, 2, 0);
	get(_metadata, self->p[0], 90, 1, 2 * psz + 60);
	expect_works(_metadata, self->p);
	expect_works(_metadata, q);

	/* Pages of one pipe are now used again by the other. */
	put(_metadata, self->p[1], 6 * psz + 100, 3, 0);
	ASSERT_EQ(6 * psz + 100,
		  splice(self->p[0], NULL, q[1], NULL, 7 * psz, 0));
	put(_metadata, self->p[1], 6 * psz, 4, 0);
	put(_metadata, q[1], 200, 3, 6 * psz + 100);
	get(_metadata, q[0], 6 * psz + 300, 3, 0);
	put(_metadata, q[1], 6 * psz, 5, 0);
	get(_metadata, self->p[0], 6 * psz, 4, 0);
	get(_metadata, q[0], 6 * psz, 5, 0);
	expect_works(_metadata, self->p);
	expect_works(_metadata, q);
}

static int make_memfd(struct __test_metadata *_metadata)
{
	int fd = memfd_create("pipe_test", MFD_CLOEXEC);

	ASSERT_GE(fd, 0);
	return fd;
}

TEST_F(pipe, splice_to_file)
{
	const ssize_t len = 10 * psz + 33;
	unsigned char *buf = alloc_buf(_metadata, len);
	int fd = make_memfd(_metadata);
	ssize_t done = 0;
	int q[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	make_pipe(_metadata, q);

	put(_metadata, self->p[1], len, 1, 0);
	ASSERT_EQ(len, tee(self->p[0], q[1], len, 0));
	while (done < len) {
		ssize_t ret = splice(self->p[0], NULL, fd, NULL, len - done,
				     SPLICE_F_MOVE);

		ASSERT_GT(ret, 0);
		done += ret;
	}
	ASSERT_EQ(len, done);
	expect_empty(_metadata, self->p[0]);
	put(_metadata, self->p[1], DEF_SLOTS * psz, 2, 0);

	ASSERT_EQ(len, pread(fd, buf, len, 0));
	ASSERT_EQ(-1, mismatch(buf, len, 1, 0));
	get(_metadata, q[0], len, 1, 0);
	get(_metadata, self->p[0], DEF_SLOTS * psz, 2, 0);
	expect_works(_metadata, self->p);
	expect_works(_metadata, q);
	close(fd);
	free(buf);
}

/*
 * A page of the page cache is in the pipe, in a slot which had been writable
 * before.  A write must not be merged with it: see CVE-2022-0847.
 */
TEST_F(pipe, splice_from_file)
{
	unsigned char *buf = alloc_buf(_metadata, 3 * psz);
	const ssize_t lens[] = { 1, 200, psz - 1, psz, psz + 1, 3 * psz + 5 };
	int fd = make_memfd(_metadata);
	ssize_t i;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fill(buf, 3 * psz, 1, 0);
	ASSERT_EQ(3 * psz, write(fd, buf, 3 * psz));

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		loff_t off = psz + 1;

		fill_slots(_metadata, self->p[1]);
		drain_filler(_metadata, self->p[0], DEF_SLOTS);

		ASSERT_EQ(1, splice(fd, &off, self->p[1], NULL, 1, 0));
		put(_metadata, self->p[1], lens[i], 2 + i, 0);
		ASSERT_EQ(DEF_SLOTS - 1 - (lens[i] + psz - 1) / psz,
			  fill_slots(_metadata, self->p[1]));

		ASSERT_EQ(3 * psz, pread(fd, buf, 3 * psz, 0));
		ASSERT_EQ(-1, mismatch(buf, 3 * psz, 1, 0));
		get(_metadata, self->p[0], 1, 1, psz + 1);
		get(_metadata, self->p[0], lens[i], 2 + i, 0);
		drain_filler(_metadata, self->p[0],
			     DEF_SLOTS - 1 - (lens[i] + psz - 1) / psz);
		expect_empty(_metadata, self->p[0]);
	}

	/* Nor may a page of the file be used again once it was read. */
	for (i = 0; i < 3; i++) {
		loff_t off = 0;

		ASSERT_EQ(2 * psz,
			  splice(fd, &off, self->p[1], NULL, 2 * psz, 0));
		get(_metadata, self->p[0], 2 * psz, 1, 0);
		put(_metadata, self->p[1], 4 * psz, 9, 0);
		get(_metadata, self->p[0], 4 * psz, 9, 0);
		ASSERT_EQ(3 * psz, pread(fd, buf, 3 * psz, 0));
		ASSERT_EQ(-1, mismatch(buf, 3 * psz, 1, 0));
	}
	expect_works(_metadata, self->p);
	close(fd);
	free(buf);
}

/* The same with pages of user space */
TEST_F(pipe, vmsplice)
{
	unsigned char *map;
	struct iovec iov;
	ssize_t i;

	map = mmap(NULL, 2 * psz, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fill(map, 2 * psz, 1, 0);

	for (i = 0; i < 3; i++) {
		fill_slots(_metadata, self->p[1]);
		drain_filler(_metadata, self->p[0], DEF_SLOTS);

		iov.iov_base = map;
		iov.iov_len = psz + 100;
		ASSERT_EQ(psz + 100, vmsplice(self->p[1], &iov, 1, 0));
		put(_metadata, self->p[1], 50, 2, 0);
		put(_metadata, self->p[1], psz + 50, 2, 50);
		ASSERT_EQ(DEF_SLOTS - 4, fill_slots(_metadata, self->p[1]));
		ASSERT_EQ(-1, mismatch(map, 2 * psz, 1, 0));
		get(_metadata, self->p[0], psz + 100, 1, 0);
		get(_metadata, self->p[0], psz + 100, 2, 0);
		drain_filler(_metadata, self->p[0], DEF_SLOTS - 4);
		put(_metadata, self->p[1], 4 * psz, 3, 0);
		ASSERT_EQ(-1, mismatch(map, 2 * psz, 1, 0));
		get(_metadata, self->p[0], 4 * psz, 3, 0);
	}
	expect_works(_metadata, self->p);
	munmap(map, 2 * psz);
}

/* Pages are used again, so look for what was in them before. */
TEST_F(pipe, recycled_pages)
{
	const ssize_t lens[] = {
		16 * psz, 1, 100, psz - 1, psz, 8 * psz + 77, psz + 1, 3 * psz, 2,
	};
	ssize_t in = 0, out = 0;
	unsigned int i, rnd = 1;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	for (i = 0; i < 3 * ARRAY_SIZE(lens); i++) {
		ssize_t len = lens[i % ARRAY_SIZE(lens)];

		put(_metadata, self->p[1], len, i, 0);
		get_chunks(_metadata, self->p[0], len, i, 0, 2 * psz + 9 * i);
	}
	expect_empty(_metadata, self->p[0]);

	/* A stream which fills and drains the pipe at random */
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	for (i = 0; i < 200; i++) {
		ssize_t len = 1 + next_random(&rnd) % (i % 3 ? 200 : 6 * psz);
		ssize_t ret = try_put(_metadata, self->p[1], len, 77, in);

		if (ret < 0) {
			ASSERT_EQ(EAGAIN, errno);
			ret = 0;
		}
		in += ret;
		ASSERT_EQ(in - out, nr_bytes(_metadata, self->p[0]));
		len = next_random(&rnd) % (i % 5 ? 3 * psz : 16 * psz);
		len = min(len, in - out);
		get(_metadata, self->p[0], len, 77, out);
		out += len;
	}
	get(_metadata, self->p[0], in - out, 77, out);
	expect_works(_metadata, self->p);
}

/* A pipe for notifications is not for write(), whatever else is wrong. */
TEST_F(pipe, notification_pipe)
{
	const ssize_t lens[] = { 0, 1, psz, 5 * psz };
	unsigned char *buf = alloc_buf(_metadata, 5 * psz);
	struct guarded bad;
	ssize_t i;
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NOTIFICATION_PIPE))
		SKIP(return, "O_NOTIFICATION_PIPE: %s", strerror(errno));

	count_signals(_metadata, SIGPIPE, 0);
	guarded_alloc(_metadata, &bad, 0, 5 * psz, false);
	memset(buf, 0, 5 * psz);
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		ssize_t len = lens[i % ARRAY_SIZE(lens)];

		if (i == ARRAY_SIZE(lens)) {
			ASSERT_EQ(-1, fcntl(p[1], F_SETPIPE_SZ, (int)psz));
			ASSERT_EQ(EBUSY, errno);
			ASSERT_EQ(0, close(p[0]));
		}
		/* Even if there is nothing to write */
		ASSERT_EQ(-1, write(p[1], buf, len));
		ASSERT_EQ(EXDEV, errno);
		ASSERT_EQ(-1, write(p[1], bad.buf, len));
		ASSERT_EQ(EXDEV, errno);
		ASSERT_EQ(0, nr_bytes(_metadata, p[1]));
	}
	ASSERT_EQ(0, signals());
	ASSERT_EQ(0, close(p[1]));
	guarded_free(&bad);
	free(buf);
}

static long memcg_current(struct __test_metadata *_metadata, const char *memcg)
{
	char val[64];

	ASSERT_EQ(0, read_file_at(memcg, "memory.current", val, sizeof(val)));
	return atol(val);
}

/*
 * Charges are taken from and returned to a stock of some pages per CPU, so stay
 * on one of them, and look at many more pages than that.
 */
static void pin_to_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

TEST_F(pipe, memcg_charge)
{
	unsigned char *buf;
	ssize_t slots, total;
	long before, grown;
	int p[4][2];
	ssize_t i;

	if (!variant->child_memcg)
		SKIP(return, "needs a memory cgroup of its own");

	pin_to_cpu();
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		ASSERT_EQ(0, pipe2(p[i], O_CLOEXEC));
		slots = set_big(p[i][1]);
	}
	total = ARRAY_SIZE(p) * slots * psz;
	if (ARRAY_SIZE(p) * slots < 4 * DEF_SLOTS * DEF_SLOTS)
		SKIP(return, "cannot make pipes of more than %zd pages", slots);

	buf = alloc_buf(_metadata, slots * psz);
	fill(buf, slots * psz, 1, 0);
	before = memcg_current(_metadata, self->child.memcg);

	for (i = 0; i < ARRAY_SIZE(p); i++)
		ASSERT_EQ(slots * psz, write(p[i][1], buf, slots * psz));
	grown = memcg_current(_metadata, self->child.memcg) - before;
	ASSERT_GE(grown, (long)(total / 4 * 3));

	/* Whether they are drained or closed, little may remain. */
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		if (i & 1) {
			get_chunks(_metadata, p[i][0], slots * psz, 1, 0, 7 * psz);
		} else {
			ASSERT_EQ(0, close(p[i][0]));
			ASSERT_EQ(0, close(p[i][1]));
		}
	}
	ASSERT_TRUE(WAIT_FOR(memcg_current(_metadata, self->child.memcg) <
			     before + (long)(total / 4))) {
		TH_LOG("was %ld, grew by %ld, is %ld", before, grown,
		       memcg_current(_metadata, self->child.memcg));
	}
	free(buf);
}

enum { NR_SMALL = 256, SMALL = 100 };

struct small_writer {
	struct io io;
	int gate;	/* A pipe that is closed when they may go on */
	bool writes;
};

static void *small_writer(void *arg)
{
	struct small_writer *w = arg;
	char none;

	__atomic_store_n(&w->io.tid, (pid_t)syscall(__NR_gettid), __ATOMIC_RELEASE);
	(void)!read(w->gate, &none, 1);
	__atomic_store_n(&w->writes, true, __ATOMIC_RELEASE);
	w->io.ret = write(w->io.fd, w->io.buf, SMALL);
	__atomic_store_n(&w->io.done, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * Writes of less than a page that wait for room leave the cached pages where they are: if
 * each took one before it sleeps, all but two would allocate theirs, though there is no
 * room, and hold it.
 */
TEST_F_TIMEOUT(pipe, memcg_small_writers, LONG_TIMEOUT)
{
	static struct small_writer writers[NR_SMALL];
	unsigned char small[SMALL], *buf;
	struct iovec iov = { .iov_len = DEF_SLOTS * psz };
	long before, grown;
	int gate[2], i;

	if (!variant->child_memcg)
		SKIP(return, "needs a memory cgroup of its own");

	pin_to_cpu();
	ASSERT_EQ(0, pipe(gate));
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	buf = aligned_alloc(psz, DEF_SLOTS * psz);
	ASSERT_NE(NULL, buf);
	iov.iov_base = buf;
	fill(buf, DEF_SLOTS * psz, 1, 0);
	fill(small, SMALL, 2, 0);
	for (i = 0; i < NR_SMALL; i++) {
		struct small_writer *w = &writers[i];

		*w = (struct small_writer){ .io = { .fd = self->p[1], .buf = small },
					    .gate = gate[0] };
		ASSERT_EQ(0, pthread_create(&w->io.thread, NULL, small_writer, w));
		ASSERT_TRUE(WAIT_FOR(io_sleeps(&w->io)));
	}
	/* Two pages are cached, and the pipe is full of others that nothing is merged with. */
	put(_metadata, self->p[1], 4 * psz, 1, 0);
	get(_metadata, self->p[0], 4 * psz, 1, 0);
	ASSERT_EQ(DEF_SLOTS * psz, vmsplice(self->p[1], &iov, 1, 0));
	before = memcg_current(_metadata, self->child.memcg);

	close(gate[1]);
	for (i = 0; i < NR_SMALL; i++)
		ASSERT_TRUE(WAIT_FOR(__atomic_load_n(&writers[i].writes, __ATOMIC_ACQUIRE) &&
				     io_sleeps(&writers[i].io)));
	grown = memcg_current(_metadata, self->child.memcg) - before;
	EXPECT_LT(grown, (long)(NR_SMALL / 2 * psz));

	get(_metadata, self->p[0], DEF_SLOTS * psz, 1, 0);
	for (i = 0; i < NR_SMALL; i++)
		get(_metadata, self->p[0], SMALL, 2, 0);
	for (i = 0; i < NR_SMALL; i++) {
		io_join(_metadata, &writers[i].io);
		ASSERT_EQ(SMALL, writers[i].io.ret);
	}
	expect_works(_metadata, self->p);
	free(buf);
}

/* Pages which were meant for a write which failed are not lost. */
TEST_F_TIMEOUT(pipe, memcg_failed_writes, LONG_TIMEOUT)
{
	const int loops = 512;
	struct guarded bad, half;
	struct io io;
	long before;
	int i, p[2];

	if (!variant->child_memcg)
		SKIP(return, "needs a memory cgroup of its own");

	pin_to_cpu();
	signal(SIGPIPE, SIG_IGN);
	count_signals(_metadata, SIGUSR1, 0);
	set_slots(_metadata, self->p[1], 2);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	guarded_alloc(_metadata, &bad, 0, 16 * psz, false);
	guarded_alloc(_metadata, &half, 8 * psz, 8 * psz, false);
	fill(half.buf, 8 * psz, 1, 0);
	io_init_write(_metadata, &io, self->p[1], 16 * psz, 1, 0);
	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	ASSERT_EQ(0, close(p[0]));
	before = memcg_current(_metadata, self->child.memcg);

	for (i = 0; i < loops; i++) {
		ASSERT_EQ(-1, write(self->p[1], bad.buf, 16 * psz));
		ASSERT_EQ(EFAULT, errno);
		ASSERT_EQ(-1, write(p[1], io.buf, 16 * psz));
		ASSERT_EQ(EPIPE, errno);
	}
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	for (i = 0; i < loops / 8; i++) {
		ASSERT_EQ(8 * psz, write(self->p[1], half.buf, 16 * psz));
		get(_metadata, self->p[0], 8 * psz, 1, 0);
	}
	fill_slots(_metadata, self->p[1]);
	for (i = 0; i < loops; i++) {
		ASSERT_EQ(-1, write(self->p[1], io.buf, 16 * psz));
		ASSERT_EQ(EAGAIN, errno);
	}
	set_flag(_metadata, self->p[1], O_NONBLOCK, false);
	for (i = 0; i < loops / 16; i++) {
		io_start(_metadata, &io);
		io_wait_blocked(_metadata, &io);
		pthread_kill(io.thread, SIGUSR1);
		io_join(_metadata, &io);
		ASSERT_EQ(-1, io.ret);
		ASSERT_EQ(EINTR, io.err);
	}
	drain_filler(_metadata, self->p[0], DEF_SLOTS);
	ASSERT_TRUE(WAIT_FOR(memcg_current(_metadata, self->child.memcg) <
			     before + (long)(loops / 2 * psz))) {
		TH_LOG("was %ld, is %ld", before, memcg_current(_metadata, self->child.memcg));
	}
	guarded_free(&bad);
	guarded_free(&half);
	free(io.buf);
}

/*
 * A process of its own, so that it can be killed, but with this memory.  It must
 * not touch errno, nor anything else of this thread.
 */
static int victim_main(void *arg)
{
	struct io *io = arg;

	syscall(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	syscall(__NR_write, io->fd, io->buf, io->len);
	return 0;
}

static pid_t victim_start(struct __test_metadata *_metadata, struct io *io,
			  unsigned char *stack_end)
{
	pid_t pid = clone(victim_main, stack_end, CLONE_VM | SIGCHLD, io);

	ASSERT_GT(pid, 0);
	return pid;
}

static void victim_kill(struct __test_metadata *_metadata, pid_t pid)
{
	int status;

	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	ASSERT_EQ(SIGKILL, WTERMSIG(status));
}

/* Writes which end early, each in its own way, @loops times */
static void mixed_failures(struct __test_metadata *_metadata, int uffd, bool unlocked,
			   int loops)
{
	const ssize_t stack_len = 64 * 1024, len = 3 * psz + 200;
	unsigned char *stack = alloc_buf(_metadata, stack_len) + stack_len;
	struct guarded bad;
	struct lazy l;
	int p[2], q[2];
	int fd, i;

	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(q, O_CLOEXEC));
	close(q[0]);
	set_slots(_metadata, p[1], 4);
	fd = reopen_nonblock(_metadata, p[1]);
	lazy_alloc(_metadata, &l, uffd, len, 1, 100);
	/* The third page is bad. */
	guarded_alloc(_metadata, &bad, 2 * psz + 50, 2 * psz, false);
	fill(bad.buf, 2 * psz + 50, 1, 100);

	for (i = 0; i < loops; i++) {
		ssize_t odd = i & 1 ? 200 : 0;
		ssize_t before = i & 2 ? 100 : 0;
		pid_t pid;

		l.writer.len = 3 * psz + odd;

		/* Killed while it is stuck, in any page */
		put(_metadata, p[1], before, 1, 0);
		lazy_arm(_metadata, &l, 1ull << i % 3);
		l.writer.fd = p[1];
		pid = victim_start(_metadata, &l.writer, stack);
		ASSERT_TRUE(WAIT_FOR(lazy_fault(_metadata, &l) >= 0));
		victim_kill(_metadata, pid);
		lazy_resolve(_metadata, &l);
		/* On old kernels, what it had merged or the pages before count. */
		get(_metadata, p[0], before, 1, 0);
		get(_metadata, p[0], nr_bytes(_metadata, p[0]), 1, 100);

		/* Killed while it waits for room */
		ASSERT_EQ(4, fill_slots(_metadata, p[1]));
		pid = victim_start(_metadata, &l.writer, stack);
		ASSERT_TRUE(WAIT_FOR(task_state(pid) == 'S'));
		victim_kill(_metadata, pid);
		drain_filler(_metadata, p[0], 4);
		expect_empty(_metadata, p[0]);

		/* EFAULT after two pages, and EPIPE and EAGAIN */
		put(_metadata, p[1], before, 1, 0);
		ASSERT_EQ((before ? psz : 2 * psz) + (before ? 200 : 0),
			  write(fd, bad.buf, 2 * psz + 200));
		get(_metadata, p[0], before, 1, 0);
		get(_metadata, p[0], nr_bytes(_metadata, p[0]), 1, 100);
		ASSERT_EQ(-1, write(q[1], l.map, l.writer.len));
		ASSERT_EQ(EPIPE, errno);
		ASSERT_EQ(4, fill_slots(_metadata, p[1]));
		ASSERT_EQ(-1, write(fd, l.map, l.writer.len));
		ASSERT_EQ(EAGAIN, errno);
		drain_filler(_metadata, p[0], 4);

		/* Large and odd writes which succeed */
		put(_metadata, p[1], before, 1, 0);
		ASSERT_EQ(l.writer.len - psz, write(fd, l.map, l.writer.len - psz));
		get(_metadata, p[0], before, 1, 0);
		get(_metadata, p[0], l.writer.len - psz, 1, 100);
		expect_empty(_metadata, p[0]);
		if (!unlocked)
			continue;

		/* The pipe became full, or nobody reads it any more. */
		put(_metadata, p[1], before, 1, 0);
		lazy_start(_metadata, &l, fd, 1ull << i % 3);
		get(_metadata, p[0], before, 1, 0);
		ASSERT_EQ(4, fill_slots(_metadata, p[1]));
		if (i & 4)
			drain_filler(_metadata, p[0], 1);
		if (i & 8)
			close(p[0]);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		if (i & 8) {
			ASSERT_EQ(-1, l.writer.ret);
			ASSERT_EQ(EPIPE, l.writer.err);
			close(p[1]);
			close(fd);
			ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
			set_slots(_metadata, p[1], 4);
			fd = reopen_nonblock(_metadata, p[1]);
			continue;
		}
		drain_filler(_metadata, p[0], i & 4 ? 3 : 4);
		if (i & 4) {
			/* What was meant to be merged may be a slot. */
			ASSERT_GT(l.writer.ret, 0);
			get(_metadata, p[0], l.writer.ret, 1, 100);
		} else {
			ASSERT_EQ(-1, l.writer.ret);
			ASSERT_EQ(EAGAIN, l.writer.err);
		}
		expect_empty(_metadata, p[0]);
	}
	set_slots(_metadata, p[1], DEF_SLOTS);
	expect_works(_metadata, p);
	close(p[0]);
	close(p[1]);
	close(q[1]);
	close(fd);
	guarded_free(&bad);
	lazy_free(&l);
	free(stack - stack_len);
}

/*
 * The same as memcg_failed_writes with writers which are killed, or find another
 * pipe than they had prepared for.
 */
TEST_F_TIMEOUT(pipe, memcg_mixed_failures, 2 * LONG_TIMEOUT)
{
	const int loops = 512;
	const char *reason;
	bool unlocked;
	long before;
	int uffd;

	if (!variant->child_memcg)
		SKIP(return, "needs a memory cgroup of its own");
	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);

	unlocked = copies_unlocked(_metadata, uffd);
	pin_to_cpu();
	signal(SIGPIPE, SIG_IGN);
	/* Whatever is allocated only once should not count. */
	mixed_failures(_metadata, uffd, unlocked, 16);
	before = memcg_current(_metadata, self->child.memcg);
	mixed_failures(_metadata, uffd, unlocked, loops);
	ASSERT_TRUE(WAIT_FOR(memcg_current(_metadata, self->child.memcg) <
			     before + (long)(loops / 4 * psz))) {
		TH_LOG("was %ld, is %ld", before, memcg_current(_metadata, self->child.memcg));
	}
	close(uffd);
}

/* Named pipes are written to by the same code. */
TEST_F(pipe, fifo)
{
	const ssize_t lens[] = { 1, psz - 1, psz + 1, 16 * psz };
	char path[PATH_MAX];
	struct io io;
	int p[2], ret;
	ssize_t i;

	ret = make_temp_dir(self->temp_dir, sizeof(self->temp_dir));
	if (ret) {
		self->temp_dir[0] = '\0';
		SKIP(return, "no temporary directory: %s", strerror(-ret));
	}
	snprintf(path, sizeof(path), "%s/fifo", self->temp_dir);
	if (mkfifo(path, 0600))
		SKIP(return, "mkfifo: %s", strerror(errno));

	p[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_GE(p[0], 0);
	p[1] = open(path, O_WRONLY | O_CLOEXEC);
	ASSERT_GE(p[1], 0);
	set_flag(_metadata, p[0], O_NONBLOCK, false);
	set_slots(_metadata, p[1], DEF_SLOTS);

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		put(_metadata, p[1], lens[i], i, 0);
		get_chunks(_metadata, p[0], lens[i], i, 0, 4091);
		expect_empty(_metadata, p[0]);
	}
	put(_metadata, p[1], 100, 1, 0);
	put(_metadata, p[1], psz + 200, 1, 100);
	EXPECT_LAYOUT(p, 1, 0, 300, psz);

	io_init_write(_metadata, &io, p[1], 100 * psz + 17, 2, 0);
	io_start(_metadata, &io);
	get_chunks(_metadata, p[0], 100 * psz + 17, 2, 0, 3 * psz + 41);
	io_join(_metadata, &io);
	ASSERT_EQ(100 * psz + 17, io.ret);
	expect_works(_metadata, p);
	free(io.buf);
}

/* A write which is much larger than the pipe */
TEST_F_TIMEOUT(pipe, blocking_stream, LONG_TIMEOUT)
{
	const ssize_t len = 256 * psz + 333;
	unsigned char *buf = alloc_buf(_metadata, 5 * psz);
	unsigned int rnd = 1;
	ssize_t got = 0;
	struct io io;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	io_init_write(_metadata, &io, self->p[1], len, 1, 0);
	io_start(_metadata, &io);
	while (got < len) {
		ssize_t want = min(1 + next_random(&rnd) % (5 * psz), len - got);
		ssize_t ret;

		/* A slow reader, every now and then */
		if (next_random(&rnd) % 16 == 0 && len - got > 17 * psz)
			io_wait_blocked(_metadata, &io);
		ret = read(self->p[0], buf, want);
		ASSERT_GT(ret, 0);
		ASSERT_EQ(-1, mismatch(buf, ret, 1, got));
		got += ret;
	}
	io_join(_metadata, &io);
	ASSERT_EQ(len, io.ret);
	expect_works(_metadata, self->p);
	free(io.buf);
	free(buf);
}

/*
 * Several writers of @len bytes each: they are interleaved somehow, but each
 * keeps its order.
 */
static void blocking_streams(struct __test_metadata *_metadata, const int p[2],
			     ssize_t nr, ssize_t len, const ssize_t *lens,
			     ssize_t nr_lens)
{
	unsigned char *buf = alloc_buf(_metadata, 5 * psz);
	ssize_t pos[MAX_WRITERS] = {}, got = 0, i, j;
	struct io io[MAX_WRITERS];
	unsigned int rnd = 1;

	ASSERT_LE(nr, MAX_WRITERS);
	for (i = 0; i < nr; i++) {
		io_init_write(_metadata, &io[i], p[1], len, i, 0);
		/* The top bits tell whose byte it is. */
		for (j = 0; j < len; j++)
			io[i].buf[j] = (io[i].buf[j] & 0x3f) | i << 6;
		io[i].all = true;
		io[i].lens = lens;
		io[i].nr_lens = nr_lens;
	}
	for (i = 0; i < nr; i++)
		io_start(_metadata, &io[i]);
	while (got < nr * len) {
		ssize_t want = min(1 + next_random(&rnd) % (5 * psz), nr * len - got);
		ssize_t ret = read(p[0], buf, want);

		ASSERT_GT(ret, 0);
		for (j = 0; j < ret; j++) {
			i = buf[j] >> 6;
			if (i >= nr || pos[i] >= len || buf[j] != io[i].buf[pos[i]])
				break;
			pos[i]++;
		}
		ASSERT_EQ(ret, j) {
			TH_LOG("a byte is wrong, which may be that of writer %zd", i);
		}
		got += ret;
	}
	for (i = 0; i < nr; i++) {
		io_join(_metadata, &io[i]);
		ASSERT_EQ(len, io[i].ret);
		free(io[i].buf);
	}
	free(buf);
}

TEST_F_TIMEOUT(pipe, two_blocking_streams, LONG_TIMEOUT)
{
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	blocking_streams(_metadata, self->p, 2, 40 * psz + 77, NULL, 0);
	expect_works(_metadata, self->p);
}

/* Writes whose odd bytes may be merged, or not any more */
TEST_F_TIMEOUT(copy, odd_streams, LONG_TIMEOUT)
{
	const ssize_t lens[] = {
		psz + 1, 2 * psz - 3, 100, 3 * psz + 500, psz, 2 * psz + 9,
		psz / 2 + 1, psz + psz / 2,
	};
	struct resizer r = { .fd = self->p[1] };
	pthread_t thread;
	ssize_t i;

	for (i = 2; i <= DEF_SLOTS; i *= 2) {
		set_slots(_metadata, self->p[1], i);
		blocking_streams(_metadata, self->p, 3, 60 * psz + 77, lens,
				 ARRAY_SIZE(lens));
		expect_empty(_metadata, self->p[0]);
	}

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));
	ASSERT_EQ(0, pthread_create(&thread, NULL, resize_thread, &r));
	for (i = 0; i < 4; i++) {
		blocking_streams(_metadata, self->p, 3, 100 * psz + 77, lens,
				 ARRAY_SIZE(lens));
		expect_empty(_metadata, self->p[0]);
	}
	ASSERT_TRUE(WAIT_FOR(__atomic_load_n(&r.ok, __ATOMIC_RELAXED) > 7));
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, r.bad);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
}

/*
 * Writers of whole pages, each of which is a record.  They use pages again which
 * were read a moment ago.
 */
struct page_writer {
	struct __test_metadata *_metadata;
	pthread_t thread;
	int fd;
	unsigned int id;
	unsigned int count;
	unsigned int pages;	/* per write */
};

static void *page_writer_thread(void *arg)
{
	struct page_writer *w = arg;
	struct __test_metadata *_metadata = w->_metadata;
	unsigned char *buf = alloc_buf(_metadata, w->pages * psz);
	unsigned int seq, i;

	for (seq = 0; seq < w->count; seq += w->pages) {
		for (i = 0; i < w->pages; i++)
			record_fill(buf + i * psz, psz, w->id, seq + i);
		ASSERT_EQ((ssize_t)(w->pages * psz), write(w->fd, buf, w->pages * psz));
	}
	free(buf);
	return NULL;
}

/* Read @len bytes, which are whole pages, and verify them. */
static void get_pages(struct __test_metadata *_metadata, int fd, unsigned char *buf,
		      ssize_t len, ssize_t chunk, unsigned int *next_seq)
{
	ssize_t got = 0;

	while (got < len) {
		ssize_t ret = read(fd, buf + got, min(chunk, len - got));

		ASSERT_GT(ret, 0);
		got += ret;
	}
	expect_records(_metadata, buf, len, next_seq);
}

/* With @q, copies of some pages are kept there for a while. */
static void page_writers(struct __test_metadata *_metadata, const int p[2],
			 const int *q, ssize_t slots)
{
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	unsigned char *copy = alloc_buf(_metadata, 8 * psz);
	unsigned char *held = alloc_buf(_metadata, 8 * psz);
	const unsigned int pages[] = { 1, 2, 1 };
	struct page_writer w[ARRAY_SIZE(pages)];
	unsigned int next_seq[MAX_WRITERS] = {};
	ssize_t total = 0, got = 0, kept = 0;
	unsigned int i, rnd = slots;

	set_slots(_metadata, p[1], slots);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i]._metadata = _metadata;
		w[i].fd = p[1];
		w[i].id = i;
		w[i].pages = pages[i];
		w[i].count = 600;
		total += w[i].count * psz;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, page_writer_thread, &w[i]));
	}
	while (got < total) {
		ssize_t len = psz * (1 + next_random(&rnd) % 8);
		/* One page of two is emptied by more than one read. */
		ssize_t chunk = next_random(&rnd) % 2 ? psz / 2 + 1 : 8 * psz;

		len = min(len, total - got);
		if (q && !kept) {
			kept = tee(p[0], q[1], len, 0);
			ASSERT_GT(kept, 0);
			ASSERT_EQ(0, kept % psz);
			get_pages(_metadata, p[0], held, kept, chunk, next_seq);
			got += kept;
		} else {
			get_pages(_metadata, p[0], buf, len, chunk, next_seq);
			got += len;
			/* The writers had the time to overwrite it. */
			if (kept && next_random(&rnd) % 3 == 0) {
				ASSERT_EQ(kept, read(q[0], copy, 8 * psz));
				ASSERT_EQ(0, memcmp(copy, held, kept));
				kept = 0;
			}
		}
	}
	if (kept) {
		ASSERT_EQ(kept, read(q[0], copy, 8 * psz));
		ASSERT_EQ(0, memcmp(copy, held, kept));
	}
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		ASSERT_EQ(w[i].count, next_seq[i]);
	}
	free(held);
	free(copy);
	free(buf);
	expect_empty(_metadata, p[0]);
}

TEST_F_TIMEOUT(copy, recycled_pages_race, LONG_TIMEOUT)
{
	page_writers(_metadata, self->p, NULL, 2);
	page_writers(_metadata, self->p, NULL, 4);
	page_writers(_metadata, self->p, NULL, DEF_SLOTS);
	expect_works(_metadata, self->p);
}

TEST_F_TIMEOUT(copy, recycled_pages_race_tee, LONG_TIMEOUT)
{
	int q[2];

	make_pipe(_metadata, q);
	page_writers(_metadata, self->p, q, 2);
	page_writers(_metadata, self->p, q, 4);
	page_writers(_metadata, self->p, q, DEF_SLOTS);
	expect_works(_metadata, self->p);
	expect_works(_metadata, q);
}

TEST_HARNESS_MAIN
