// SPDX-License-Identifier: GPL-2.0
/*
 * Wakeups of blocked writers, and of requests of io_uring.
 */
#include "pipe_lazy.h"

#include <linux/io_uring.h>

FIXTURE(pipe) { int p[2]; };

FIXTURE_SETUP(pipe) { make_pipe(_metadata, self->p, SLOTS); }
FIXTURE_TEARDOWN(pipe) { }

static void start_writers(struct __test_metadata *_metadata, struct io *io,
			  int nr, int fd, ssize_t len)
{
	for (int i = 0; i < nr; i++) {
		io[i] = writer(fd, len, i, 0);
		io_start_blocked(_metadata, &io[i]);
	}
}

/* Which of @nr writers' pages it is; they are not in @found yet. */
static void expect_page(struct __test_metadata *_metadata,
			const unsigned char *page, int nr, unsigned int *found)
{
	int i = 0;

	while (i < nr && (*found & (1 << i) || !matches(page, psz, i, 0)))
		i++;
	ASSERT_LT(i, nr);
	*found |= 1 << i;
}

/* One writer is woken up when there is room, and wakes the next. */
TEST_F(pipe, writers_wake_writers)
{
	unsigned int found = 0;
	struct io io[4];
	ssize_t i;

	ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
	start_writers(_metadata, io, NR(io), self->p[1], psz);
	/* One read, one wakeup, but room for all */
	ASSERT_EQ(SLOTS * psz, read(self->p[0], scratch, SLOTS * psz));
	for (i = 0; i < NR(io); i++)
		ASSERT_EQ(psz, io_join(&io[i]));
	ASSERT_EQ(NR(io) * psz, read(self->p[0], scratch, SLOTS * psz));
	for (i = 0; i < NR(io); i++)
		expect_page(_metadata, scratch + i * psz, NR(io), &found);
	expect_works(_metadata, self->p);
}

static ssize_t nr_done(struct io *io, int nr)
{
	ssize_t n = 0;

	while (nr--)
		n += io_done(&io[nr]);
	return n;
}

/* Where there is room for one write, the other writers are left asleep. */
TEST_F(pipe, one_slot_one_writer)
{
	unsigned int found = 0;
	struct io io[4];
	ssize_t i, round;
	long switches[4];

	ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
	start_writers(_metadata, io, NR(io), self->p[1], psz);
	for (round = 1; round <= NR(io); round++) {
		for (i = 0; i < NR(io); i++)
			switches[i] = io_done(&io[i]) ? 0 : io_switches(&io[i]);
		ASSERT_EQ(1, move_pages(get, self->p[0], 1));
		ASSERT_TRUE(WAIT_FOR(nr_done(io, NR(io)) == round));
		ASSERT_EQ(SLOTS * psz, bytes_in(self->p[0]));
		for (i = 0; i < NR(io); i++) {
			if (io_done(&io[i]))
				continue;
			ASSERT_TRUE(io_sleeps(&io[i]));
			ASSERT_EQ(switches[i], io_switches(&io[i]));
		}
	}
	ASSERT_EQ(SLOTS - NR(io), move_pages(get, self->p[0], SLOTS - NR(io)));
	ASSERT_EQ(NR(io) * psz, read(self->p[0], scratch, SLOTS * psz));
	for (i = 0; i < NR(io); i++)
		expect_page(_metadata, scratch + i * psz, NR(io), &found);
	expect_works(_metadata, self->p);
}

/* More slots are as good as a reader, and wake up all that can go on. */
TEST_F(pipe, resize_wakes_writers)
{
	unsigned int found = 0;
	struct io io[4];
	ssize_t i;

	ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
	start_writers(_metadata, io, NR(io), self->p[1], psz);
	set_slots(_metadata, self->p[1], 2 * SLOTS);
	for (i = 0; i < NR(io); i++)
		ASSERT_EQ(psz, io_join(&io[i]));
	ASSERT_EQ(SLOTS, move_pages(get, self->p[0], SLOTS));
	ASSERT_EQ(NR(io) * psz, read(self->p[0], scratch, SLOTS * psz));
	for (i = 0; i < NR(io); i++)
		expect_page(_metadata, scratch + i * psz, NR(io), &found);
}

/* A signal ends a write that waits, which counts what is in the pipe. */
TEST_F(pipe, signal_blocked_writer)
{
	const ssize_t odds[] = { 0, 33 };
	ssize_t i, used;
	struct io io;

	for (i = 0; i < 2 * NR(odds); i++) {
		used = i < 2 ? SLOTS : SLOTS - 3;
		count_signals(SIGUSR1, 0);
		ASSERT_EQ(used, move_pages(put, self->p[1], used));
		io = writer(self->p[1], 9 * psz + odds[i % 2], 1, 0);
		io_start_blocked(_metadata, &io);
		pthread_kill(io.thread, SIGUSR1);
		ASSERT_EQ((SLOTS - used) * psz ?: -EINTR, io_join(&io));
		ASSERT_EQ(used, move_pages(get, self->p[0], used));
		if (used < SLOTS)
			ASSERT_EQ(3 * psz, get(self->p[0], SLOTS * psz, 1, 0));
		expect_works(_metadata, self->p);
	}
	/* With SA_RESTART, one that has written nothing goes on waiting. */
	nr_signals = 0;
	count_signals(SIGUSR1, SA_RESTART);
	ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
	io = writer(self->p[1], 2 * psz, 1, 0);
	io_start_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	ASSERT_TRUE(WAIT_FOR(nr_signals == 1 && io_sleeps(&io)));
	ASSERT_FALSE(io_done(&io));
	ASSERT_EQ(SLOTS, move_pages(get, self->p[0], SLOTS));
	ASSERT_EQ(2 * psz, io_join(&io));
	ASSERT_EQ(2 * psz, get(self->p[0], SLOTS * psz, 1, 0));
}

/* When the last reader goes, all writers that wait end, and are told why. */
TEST_F(pipe, close_wakes_writers)
{
	struct io io[4];
	ssize_t i;

	count_signals(SIGPIPE, 0);
	ASSERT_EQ(SLOTS - 2, move_pages(put, self->p[1], SLOTS - 2));
	start_writers(_metadata, io, 1, self->p[1], 5 * psz);
	start_writers(_metadata, io + 1, NR(io) - 1, self->p[1], 100);
	ASSERT_EQ(0, close(self->p[0]));
	ASSERT_EQ(2 * psz, io_join(&io[0]));
	for (i = 1; i < NR(io); i++)
		ASSERT_EQ(-EPIPE, io_join(&io[i]));
	ASSERT_EQ(NR(io), nr_signals);
}

/* io_uring, as far as it is needed here: one request at a time */
struct ring {
	int fd;
	struct io_uring_params params;
	unsigned char *rings;
	struct io_uring_sqe *sqes;
};

static unsigned int *ring_word(struct ring *ring, unsigned int offset)
{
	return (unsigned int *)(ring->rings + offset);
}

static void ring_submit(struct __test_metadata *_metadata, struct ring *ring,
			int op, int fd, unsigned char *buf, unsigned int len)
{
	unsigned int *tail = ring_word(ring, ring->params.sq_off.tail);

	memset(ring->sqes, 0, sizeof(*ring->sqes));
	ring->sqes->opcode = op;
	ring->sqes->fd = fd;
	ring->sqes->addr = (unsigned long)buf;
	ring->sqes->len = len;
	ring->sqes->off = -1;
	*ring_word(ring, ring->params.sq_off.array +
		   4 * (*tail & (ring->params.sq_entries - 1))) = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	ASSERT_EQ(1, syscall(__NR_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0));
}

/* The result of the request, or -EINPROGRESS */
static int ring_result(struct ring *ring)
{
	unsigned int *head = ring_word(ring, ring->params.cq_off.head);
	unsigned int *tail = ring_word(ring, ring->params.cq_off.tail);
	struct io_uring_cqe *cqes = (void *)(ring->rings +
					     ring->params.cq_off.cqes);
	int ret;

	/* Completions are made when the task comes by. */
	syscall(__NR_io_uring_enter, ring->fd, 0, 0, IORING_ENTER_GETEVENTS,
		NULL, 0);
	if (*head == __atomic_load_n(tail, __ATOMIC_ACQUIRE))
		return -EINPROGRESS;
	ret = cqes[*head & (ring->params.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return ret;
}

/* Requests of io_uring wait for data and for room without a task that does. */
TEST_F(pipe, io_uring)
{
	unsigned char *buf = malloc(4 * psz);
	struct ring ring = { };
	int ret;

	ring.fd = syscall(__NR_io_uring_setup, 4, &ring.params);
	if (ring.fd < 0)
		SKIP(return, "io_uring: %s", strerror(errno));
	ring.rings = mmap(NULL, 16 * psz, PROT_READ | PROT_WRITE, MAP_SHARED,
			  ring.fd, IORING_OFF_SQ_RING);
	ASSERT_NE(MAP_FAILED, ring.rings);
	ring.sqes = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
			 IORING_OFF_SQES);
	ASSERT_NE(MAP_FAILED, ring.sqes);

	ring_submit(_metadata, &ring, IORING_OP_READ, self->p[0], buf, 4 * psz);
	ASSERT_EQ(-EINPROGRESS, ring_result(&ring));
	ASSERT_EQ(2 * psz + 9, put(self->p[1], 2 * psz + 9, 1, 0));
	ASSERT_TRUE(WAIT_FOR((ret = ring_result(&ring)) != -EINPROGRESS));
	ASSERT_EQ(2 * psz + 9, ret);
	ASSERT_TRUE(matches(buf, ret, 1, 0));

	ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
	fill(buf, 4 * psz, 2, 0);
	ring_submit(_metadata, &ring, IORING_OP_WRITE, self->p[1], buf,
		    4 * psz);
	ASSERT_EQ(-EINPROGRESS, ring_result(&ring));
	ASSERT_EQ(SLOTS * psz, bytes_in(self->p[0]));
	ASSERT_EQ(SLOTS * psz, read(self->p[0], scratch, SLOTS * psz));
	ASSERT_TRUE(WAIT_FOR((ret = ring_result(&ring)) != -EINPROGRESS));
	ASSERT_EQ(4 * psz, ret);
	ASSERT_EQ(4 * psz, get(self->p[0], SLOTS * psz, 2, 0));
	expect_works(_metadata, self->p);
}

TEST_HARNESS_MAIN
