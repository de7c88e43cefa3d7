// SPDX-License-Identifier: GPL-2.0
/*
 * What a read takes out of a pipe: all that is there, or a packet; nothing is
 * lost by a read that fails.  Readers that wait, and how they are woken up.
 */
#include "pipe_test.h"

#include <sys/epoll.h>

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

/* Data come out as they went in, in reads and writes of any length. */
TEST_F(pipe, roundtrip)
{
	const ssize_t chunks[] = { 509, PIPE_BUF - 1, psz - 1, psz, psz + 1,
				   3 * psz + 5, 20 * psz };
	const ssize_t lens[] = { 1, 2, 3, PIPE_BUF, psz, 2 * psz, 15 * psz,
				 16 * psz };
	ssize_t i, j, len, pos, n;

	for (i = 0; i < NR(lens); i++) {
		for (len = lens[i] - 2; len <= lens[i]; len++) {
			if (len <= 0)
				continue;
			for (j = 0; j < NR(chunks); j++) {
				ASSERT_EQ(len, put(self->p[1], len, j, 0));
				ASSERT_EQ(len, bytes_in(self->p[0]));
				for (pos = 0; pos < len; pos += n) {
					n = chunks[j];
					if (n > len - pos)
						n = len - pos;
					ASSERT_EQ(n, get(self->p[0], chunks[j],
							 j, pos));
				}
				ASSERT_FALSE(polls(self->p[0], POLLIN));
			}
		}
	}
}

/* End of file is after the data, and after the last writer has closed. */
TEST_F(pipe, end_of_file)
{
	int other = reopen(self->p[1], O_WRONLY);

	ASSERT_GE(other, 0);
	ASSERT_EQ(psz + 1, put(self->p[1], psz + 1, 1, 0));
	ASSERT_EQ(0, close(self->p[1]));
	ASSERT_FALSE(polls(self->p[0], POLLHUP));
	ASSERT_EQ(0, close(other));
	ASSERT_TRUE(polls(self->p[0], POLLHUP));
	ASSERT_EQ(1000, get(self->p[0], 1000, 1, 0));
	ASSERT_EQ(psz - 999, get(self->p[0], 2 * psz, 1, 1000));
	ASSERT_FALSE(polls(self->p[0], POLLIN));
	ASSERT_EQ(0, get(self->p[0], 1, 1, 0));
	ASSERT_TRUE(polls(self->p[0], POLLHUP));
}

/* A read of nothing does nothing: it does not wait, nor look at its buffer. */
TEST_F(pipe, nothing)
{
	unsigned char *bad = guarded(_metadata, 0);

	ASSERT_EQ(0, read(self->p[0], bad, 0));
	ASSERT_EQ(100, put(self->p[1], 100, 1, 0));
	ASSERT_EQ(0, read(self->p[0], bad, 0));
	ASSERT_EQ(100, get(self->p[0], 200, 1, 0));
	set_flag(self->p[0], O_NONBLOCK, true);
	ASSERT_EQ(-EAGAIN, do_read(self->p[0], bad, 1));
	expect_works(_metadata, self->p);
}

/*
 * A read into memory that cannot be accessed to its end takes whole slots as
 * far as it can, or fails, and loses nothing.
 */
TEST_F(pipe, bad_memory)
{
	const struct {
		ssize_t slots[3];	/* in the pipe */
		ssize_t good, len;	/* of the buffer, and of the read */
		ssize_t ret;
	} tests[] = {
		{ { 100 }, 0, 1, -EFAULT },
		{ { 100 }, 99, 100, -EFAULT },
		{ { 100 }, 100, 2 * psz, 100 },
		{ { 100 }, 50, 50, 50 },
		{ { psz, 100 }, psz - 1, 2 * psz, -EFAULT },
		{ { psz, 100 }, psz, 2 * psz, psz },
		{ { psz, 100 }, psz + 99, 2 * psz, psz },
		{ { psz, psz, 100 }, 2 * psz + 100, 8 * psz, 2 * psz + 100 },
		{ { psz, psz, 100 }, 2 * psz + 1, 2 * psz + 1, 2 * psz + 1 },
		{ { psz, psz, 100 }, 2 * psz + 1, 2 * psz + 2, 2 * psz },
	};
	ssize_t i, j, sum, ret;
	unsigned char *buf;

	for (i = 0; i < NR(tests); i++) {
		for (j = sum = 0; j < 3 && tests[i].slots[j]; j++)
			sum += tests[i].slots[j];
		ASSERT_EQ(sum, put(self->p[1], sum, i, 0));
		buf = guarded(_metadata, tests[i].good);
		ret = do_read(self->p[0], buf, tests[i].len);
		ASSERT_EQ(tests[i].ret, ret) {
			TH_LOG("line %zd", i);
		}
		if (ret < 0)
			ret = 0;
		ASSERT_TRUE(matches(buf, ret, i, 0));
		ASSERT_EQ(sum - ret, bytes_in(self->p[0]));
		if (sum > ret)
			ASSERT_EQ(sum - ret,
				  get(self->p[0], 8 * psz, i, ret));
		expect_works(_metadata, self->p);
	}
}

/* A read that fails takes no packet either. */
TEST_F(pipe, bad_memory_packet)
{
	ssize_t good[] = { 0, 1, 99, psz - 1 }, i, n;

	set_flag(self->p[1], O_DIRECT, true);
	for (i = 0; i < NR(good); i++) {
		n = i < 3 ? 100 : psz;
		ASSERT_EQ(n, put(self->p[1], n, i, 0));
		ASSERT_EQ(50, put(self->p[1], 50, 9, 0));
		ASSERT_EQ(-EFAULT, do_read(self->p[0],
					   guarded(_metadata, good[i]),
					   2 * psz));
		ASSERT_EQ(n + 50, bytes_in(self->p[0]));
		/* What is good of the buffer is as much as it asks for. */
		n = good[i] ?: psz;
		ASSERT_EQ(good[i] ?: 100, get(self->p[0], n, i, 0));
		ASSERT_EQ(50, get(self->p[0], psz, 9, 0));
	}
	set_flag(self->p[1], O_DIRECT, false);
	expect_works(_metadata, self->p);
}

/* Of readers that wait, one gets the data; what it leaves is for the next. */
TEST_F(pipe, two_blocked_readers)
{
	struct io io[2];
	ssize_t i, first;

	for (i = 0; i < 2; i++) {
		io[i] = (struct io){ .fd = self->p[0], .is_read = true,
				     .buf = malloc(3 * psz), .len = 3 * psz };
		io_start_blocked(_metadata, &io[i]);
	}
	ASSERT_EQ(100, put(self->p[1], 100, 1, 0));
	ASSERT_TRUE(WAIT_FOR(io_done(&io[0]) || io_done(&io[1])));
	first = io_done(&io[1]);
	ASSERT_EQ(100, io_join(&io[first]));
	ASSERT_TRUE(matches(io[first].buf, 100, 1, 0));
	ASSERT_FALSE(io_done(&io[!first]));

	/* 6 pages in one write wake up one of two, and it wakes the other. */
	io_start_blocked(_metadata, &io[first]);
	ASSERT_EQ(6 * psz, put(self->p[1], 6 * psz, 2, 0));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(3 * psz, io_join(&io[i]));
	first = matches(io[1].buf, 3 * psz, 2, 0);
	ASSERT_TRUE(matches(io[first].buf, 3 * psz, 2, 0));
	ASSERT_TRUE(matches(io[!first].buf, 3 * psz, 2, 3 * psz));
	expect_works(_metadata, self->p);
}

/*
 * A reader that was woken up, and takes less than there is, or nothing since
 * its memory is bad, wakes the next one that waits: here, one that polls.
 */
TEST_F(pipe, leftovers_wake_next)
{
	struct epoll_event in = { .events = EPOLLIN | EPOLLEXCLUSIVE }, ev;
	struct io io;
	ssize_t good;
	int ep;

	for (good = 0; good < 10; good += 4) {
		ep = epoll_create1(EPOLL_CLOEXEC);
		io = (struct io){ .fd = self->p[0], .is_read = true };
		io.len = good ?: 8;
		io.buf = guarded(_metadata, good);
		if (good)
			madvise(io.buf + good - psz, psz, MADV_DONTNEED);
		io_start_blocked(_metadata, &io);
		/* Behind the reader in the queue */
		ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[0], &in));
		ASSERT_EQ(10, put(self->p[1], 10, 1, 0));
		ASSERT_EQ(good ?: -EFAULT, io_join(&io));
		ASSERT_TRUE(matches(io.buf, good, 1, 0));
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, WAIT_MS));
		ASSERT_EQ(10 - good, get(self->p[0], psz, 1, good));
		close(ep);
	}
	expect_works(_metadata, self->p);
}

/* A signal ends a read that waits; it has taken nothing. */
TEST_F(pipe, signal_blocked_reader)
{
	struct io io = { .fd = self->p[0], .is_read = true, .len = psz,
			 .buf = malloc(psz) };

	count_signals(SIGUSR1, 0);
	io_start_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	ASSERT_EQ(-EINTR, io_join(&io));
	ASSERT_EQ(1, nr_signals);

	/* With SA_RESTART, it goes on waiting. */
	count_signals(SIGUSR1, SA_RESTART);
	io_start_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	ASSERT_TRUE(WAIT_FOR(nr_signals == 2 && io_sleeps(&io)));
	ASSERT_FALSE(io_done(&io));
	ASSERT_EQ(100, put(self->p[1], 100, 1, 0));
	ASSERT_EQ(100, io_join(&io));
	ASSERT_TRUE(matches(io.buf, 100, 1, 0));
	expect_works(_metadata, self->p);
}

/*
 * Readers that share a pipe of records get a record each, as long as all of
 * them read with the same length, and records are as long as that.
 */
TEST_F(pipe, records_for_readers)
{
	const ssize_t len = 2 * psz - 96, nr = 60;
	unsigned char seen[60] = { };
	struct io io[3], w;
	ssize_t i, j, n;

	for (i = 0; i < NR(io); i++) {
		io[i] = (struct io){ .fd = self->p[0], .is_read = true,
				     .len = nr * len / NR(io), .call = len };
		io[i].buf = malloc(io[i].len);
		io_start_blocked(_metadata, &io[i]);
	}
	/* Each record has its own seed, and takes two slots or fewer. */
	w = writer(self->p[1], nr * len, 0, 0);
	for (i = 0; i < nr; i++)
		fill(w.buf + i * len, len, i, 0);
	w.call = len;
	io_start(_metadata, &w);
	ASSERT_EQ(nr * len, io_join(&w));
	for (i = 0; i < NR(io); i++) {
		ASSERT_EQ(io[i].len, io_join(&io[i]));
		for (j = 0; j < io[i].len; j += len) {
			for (n = 0; n < nr; n++)
				if (!seen[n] && matches(io[i].buf + j, len,
							n, 0))
					break;
			ASSERT_LT(n, nr);
			seen[n] = 1;
		}
	}
	expect_works(_metadata, self->p);
}

FIXTURE(wake) { };
FIXTURE_SETUP(wake) { }
FIXTURE_TEARDOWN(wake) { }

struct echo {
	int in, out, how, ep;
	long rounds;
	unsigned int rnd;
};

/* Wait for a byte in one of three ways, in which a wakeup could get lost. */
static bool wait_byte(struct echo *e)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	struct pollfd pfd = { .fd = e->in, .events = POLLIN };
	char c;

	for (int n = e->rnd++ % 97 * 8; n > 0; n--)
		__asm__ volatile("" : : : "memory");
	if (e->how == 1)
		poll(&pfd, 1, -1);
	if (e->how == 2) {
		epoll_ctl(e->ep, EPOLL_CTL_ADD, e->in, &ev);
		epoll_wait(e->ep, &ev, 1, -1);
		epoll_ctl(e->ep, EPOLL_CTL_DEL, e->in, &ev);
	}
	return read(e->in, &c, 1) == 1;
}

static void *echo(void *arg)
{
	struct echo *e = arg;

	while (wait_byte(e) && write(e->out, "", 1) == 1)
		__atomic_add_fetch(&e->rounds, 1, __ATOMIC_RELAXED);
	return NULL;
}

/*
 * Two tasks wake each other, and each looks for the other's byte just when it
 * comes: neither sleeps although the byte is there.
 */
TEST_F_TIMEOUT(wake, ping_pong, 120)
{
	pthread_t threads[2];
	long last, rounds;
	int p[2], q[2], how, ms;

	for (how = 0; how < 3; how++) {
		struct echo e[2] = { };

		make_pipe(_metadata, p, SLOTS);
		make_pipe(_metadata, q, SLOTS);
		e[0] = (struct echo){ .in = p[0], .out = q[1], .how = how };
		e[1] = (struct echo){ .in = q[0], .out = p[1], .how = how };
		for (int i = 0; i < 2; i++) {
			e[i].ep = epoll_create1(0);
			ASSERT_EQ(0, pthread_create(&threads[i], NULL, echo,
						    &e[i]));
		}
		ASSERT_EQ(1, write(p[1], "", 1));
		for (ms = 0, last = -1; last < 2000; last = rounds) {
			usleep(1000);
			rounds = __atomic_load_n(&e[0].rounds,
						 __ATOMIC_RELAXED);
			ms = rounds == last ? ms + 1 : 0;
			ASSERT_LT(ms, WAIT_MS);
		}
		pthread_cancel(threads[0]);
		pthread_cancel(threads[1]);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
	}
}

FIXTURE(signals) { int p[2]; };
FIXTURE_SETUP(signals) { make_pipe(_metadata, self->p, SLOTS); }
FIXTURE_TEARDOWN(signals) { }

/* A reader that reads a part each time that SIGIO tells it to gets all. */
TEST_F_TIMEOUT(signals, sigio_drives_reader, 120)
{
	struct io io = writer(self->p[1], 64 * psz, 1, 0);
	struct timespec now = { };
	ssize_t pos, ret;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ASSERT_EQ(0, fcntl(self->p[0], F_SETOWN, getpid()));
	set_flag(self->p[0], O_ASYNC | O_NONBLOCK, true);
	io_start(_metadata, &io);
	for (pos = 0; pos < io.len; pos += ret) {
		ASSERT_TRUE(WAIT_FOR(sigtimedwait(&set, NULL, &now) == SIGIO ||
				     io_done(&io)));
		ret = get(self->p[0], 4 * psz, 1, pos);
		ASSERT_GT(ret, 0);
	}
	ASSERT_EQ(io.len, io_join(&io));
	set_flag(self->p[0], O_ASYNC | O_NONBLOCK, false);
	expect_works(_metadata, self->p);
}

TEST_HARNESS_MAIN
