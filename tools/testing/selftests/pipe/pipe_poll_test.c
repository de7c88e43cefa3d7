// SPDX-License-Identifier: GPL-2.0
/*
 * Events of data and of room: poll(), epoll, SIGIO.
 */
#include "pipe_lazy.h"

#include <sys/epoll.h>

FIXTURE(pipe) { int p[2]; };

FIXTURE_SETUP(pipe) { make_pipe(_metadata, self->p, SLOTS); }
FIXTURE_TEARDOWN(pipe) { }

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

/* So there is while a write is blocked that has its next pages ready. */
TEST_F(pipe, epollet_beside_blocked)
{
	struct io io = writer(self->p[1], 8 * SLOTS * psz, 1, 0);
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC), edges = 0;
	ssize_t got = 0;

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[1], &ev));
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	io_start_blocked(_metadata, &io);
	/* The write may have filled the pipe again before the look. */
	while (!edges && got < io.len - SLOTS * psz) {
		ASSERT_TRUE(WAIT_FOR(io_sleeps(&io) &&
				     bytes_in(self->p[0]) == SLOTS * psz));
		ASSERT_EQ(psz, get(self->p[0], psz, 1, got));
		edges = epoll_wait(ep, &ev, 1, 0);
		got += psz;
	}
	EXPECT_EQ(1, edges);
	for (; got < io.len; got += psz)
		ASSERT_EQ(psz, get(self->p[0], psz, 1, got));
	ASSERT_EQ(io.len, io_join(&io));
	expect_works(_metadata, self->p);
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
	for (i = 0; i < NR(io); i++) {
		io[i] = writer(self->p[1], 4 * psz, i, 0);
		io_start_blocked(_metadata, &io[i]);
	}
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
 * so nobody polls, and there are no more signals either.
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
	if (missing) {
		ASSERT_EQ(0, epoll_ctl(ep_out, EPOLL_CTL_ADD, p[1], &out));
		ASSERT_EQ(1, epoll_wait(ep_out, &ev, 1, 0));
	}
	io_start(_metadata, &io);
	do {
		done = io_done(&io);
		page = lazy_fault(&l);
		nr_in += epoll_wait(ep_in, &ev, 1, 0);
		nr_out += epoll_wait(ep_out, &ev, 1, 0);
		if (page >= 0) {
			lazy_provide(&l, page, page + 1);
		} else if (io_sleeps(&io) && (missing ? !polls(p[1], POLLOUT) :
						bytes_in(p[0]) == size)) {
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

TEST_HARNESS_MAIN
