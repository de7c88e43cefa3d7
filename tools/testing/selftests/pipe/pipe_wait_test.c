// SPDX-License-Identifier: GPL-2.0
/*
 * Who is woken up, and told: blocked writers, poll(), epoll, SIGIO, io_uring.
 */
#include "pipe_lazy.h"

#include <linux/io_uring.h>
#include <sys/epoll.h>

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

/* Programs rely on an edge for every write, even if the last is not read. */
TEST_F(pipe, epollet_every_write)
{
	const ssize_t lens[] = { 1, 1, psz, 100, psz - 100, 2 * psz + 5, 7 };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC), level = epoll_create1(0);
	ssize_t i, sum = 0;

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[0], &ev));
	ev.events = EPOLLIN;
	ASSERT_EQ(0, epoll_ctl(level, EPOLL_CTL_ADD, self->p[0], &ev));
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	ASSERT_EQ(0, epoll_wait(level, &ev, 1, 0));
	for (i = 0; i < NR(lens); sum += lens[i++]) {
		ASSERT_EQ(lens[i], put(self->p[1], lens[i], 1, sum));
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
		ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
		ASSERT_EQ(1, epoll_wait(level, &ev, 1, 0));
	}
	ASSERT_EQ(sum, get(self->p[0], SLOTS * psz, 1, 0));
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	ASSERT_EQ(0, epoll_wait(level, &ev, 1, 0));
}

/* There is an edge for writers when a full pipe gets room, and only then. */
TEST_F(pipe, epollet_room)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[1], &ev));
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
		ASSERT_FALSE(polls(self->p[1], POLLOUT));
		ASSERT_EQ(psz - 1, get(self->p[0], psz - 1, 1000, 0));
		ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
		ASSERT_EQ(1, get(self->p[0], 1, 1000, psz - 1));
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
		ASSERT_TRUE(polls(self->p[1], POLLOUT));
		ASSERT_EQ(SLOTS - 1, move_pages(get, self->p[0], SLOTS - 1));
		ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	}
}

static void *wait_for_event(void *arg)
{
	struct epoll_event ev;
	struct io *io = arg;

	__atomic_store_n(&io->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	io->ret = epoll_wait(io->fd, &ev, 1, -1);
	__atomic_store_n(&io->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* An exclusive poller is told of room when the writers before it had some. */
TEST_F(pipe, epollexclusive_room)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLEXCLUSIVE };
	struct io io[20], poller = { .fd = epoll_create1(EPOLL_CLOEXEC) };
	ssize_t i, page, pos[NR(io) + 1] = { };

	ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
	start_writers(_metadata, io, NR(io), self->p[1], 4 * psz);
	ASSERT_EQ(0, epoll_ctl(poller.fd, EPOLL_CTL_ADD, self->p[1], &ev));
	ASSERT_EQ(0, pthread_create(&poller.thread, NULL, wait_for_event,
				    &poller));
	ASSERT_TRUE(WAIT_FOR(io_sleeps(&poller)));
	for (page = 0; page <= SLOTS + 4 * NR(io); page++) {
		ASSERT_TRUE(page <= NR(io) || io_done(&poller));
		ASSERT_EQ(psz, read(self->p[0], scratch, psz));
		for (i = page < SLOTS ? NR(io) + 1 : 0; i <= NR(io); i++)
			if (matches(scratch, psz, i, pos[i]))
				break;
		ASSERT_EQ(page < SLOTS, i > NR(io));
		if (page >= SLOTS)
			pos[i] += psz;
		if (page > NR(io))
			continue;
		ASSERT_TRUE(WAIT_FOR(io_done(&poller) ||
				     bytes_in(self->p[0]) == SLOTS * psz));
		/* The room is for what was told of it, and writers sleep. */
		if (page == NR(io))
			ASSERT_EQ(psz, put(self->p[1], psz, NR(io), 0));
	}
	ASSERT_EQ(1, io_join(&poller));
	for (i = 0; i < NR(io); i++)
		ASSERT_EQ(4 * psz, io_join(&io[i]));
	expect_works(_metadata, self->p);
}

/* SIGIO tells readers of each write, and writers of each read. */
TEST_F(pipe, sigio)
{
	ssize_t i, fd;

	count_signals(SIGIO, 0);
	for (i = 0; i < 2; i++) {
		fd = self->p[i];
		ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
		set_flag(fd, O_ASYNC, true);
		nr_signals = 0;
		for (int n = 1; n <= 3; n++) {
			ASSERT_EQ(n * psz, put(self->p[1], n * psz, n, 0));
			ASSERT_EQ(i ? n - 1 : n, nr_signals);
			ASSERT_EQ(n * psz, get(self->p[0], n * psz, n, 0));
			ASSERT_EQ(n, nr_signals);
		}
		set_flag(fd, O_ASYNC, false);
		ASSERT_EQ(1, put(self->p[1], 1, 1, 0));
		ASSERT_EQ(1, get(self->p[0], 1, 1, 0));
		ASSERT_EQ(3, nr_signals);
	}
}

/*
 * A large write brings no fewer events than there have always been: for the
 * reader, one each time that the pipe is full, and one in the end; for writers,
 * one each time that it is full no more.  With @missing, the buffer comes page
 * by page, so that no two of them are taken for one.  Without, edges may be,
 * and there are no more signals either.
 */
static void events(struct __test_metadata *_metadata, const int p[2],
		   ssize_t slots, bool missing)
{
	ssize_t page, got = 0, size = slots * psz, nr_sig = 0;
	struct epoll_event ev, in = { .events = EPOLLIN | EPOLLET };
	struct epoll_event out = { .events = EPOLLOUT | EPOLLET };
	int ep_in = epoll_create1(0), ep_out = epoll_create1(0);
	struct io io = { .fd = p[1], .len = 3 * size };
	int nr_in = 0, nr_out = 0;
	struct lazy l;
	sigset_t set;
	bool done;

	set_slots(_metadata, p[1], slots);
	lazy_alloc(_metadata, &l, 3 * slots, 0, 0, missing ? 3 * slots : 0);
	io.buf = l.map;

	/* Real-time signals are queued, so that none gets lost. */
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ASSERT_EQ(0, fcntl(p[0], F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(p[0], F_SETSIG, SIGRTMIN));
	set_flag(p[0], O_ASYNC, true);
	ASSERT_EQ(0, epoll_ctl(ep_in, EPOLL_CTL_ADD, p[0], &in));
	ASSERT_EQ(0, epoll_ctl(ep_out, EPOLL_CTL_ADD, p[1], &out));
	ASSERT_EQ(1, epoll_wait(ep_out, &ev, 1, 0));
	io_start(_metadata, &io);
	do {
		done = io_done(&io);
		page = lazy_fault(&l);
		nr_in += epoll_wait(ep_in, &ev, 1, 0);
		nr_out += epoll_wait(ep_out, &ev, 1, 0);
		if (page >= 0) {
			lazy_provide(&l, page, page + 1);
		} else if (io_sleeps(&io) && !polls(p[1], POLLOUT)) {
			nr_in += epoll_wait(ep_in, &ev, 1, 0);
			ASSERT_EQ(size, read(p[0], scratch, size));
			nr_out += epoll_wait(ep_out, &ev, 1, 0);
			ASSERT_TRUE(matches(scratch, size, 1, got));
			got += size;
		}
	} while (!done);
	ASSERT_EQ(io.len, io_join(&io));
	while (sigtimedwait(&set, NULL, &(struct timespec){ }) > 0)
		nr_sig++;
	EXPECT_LE(3, nr_sig);
	if (missing) {
		EXPECT_LE(3, nr_in);
		EXPECT_LE(2, nr_out);
	} else {
		EXPECT_EQ(3, nr_sig);
	}
	set_flag(p[0], O_ASYNC, false);
	ASSERT_EQ(io.len - got, get(p[0], size, 1, got));
}

TEST_F_TIMEOUT(pipe, events, 120)
{
	for (int i = 0; i < 4; i++)
		events(_metadata, self->p, i < 2 ? SLOTS : 4 * SLOTS, i % 2);
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
