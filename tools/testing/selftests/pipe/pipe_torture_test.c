// SPDX-License-Identifier: GPL-2.0
/*
 * Several writers and readers of writes of all sizes at once, some of which
 * poll(), with signals, changes of size, and ends that are closed and opened
 * again: no byte is lost, doubled or out of order, and nobody sleeps for good.
 */
#include "pipe_test.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define WRITERS		4
#define READERS		3
#define WORKERS		(WRITERS + READERS)
#define LARGEST		(1024 * 1024)
#define VALUES		61	/* of a writer's bytes; no power of two */
#define TIMEOUT		180

struct worker {
	int id;			/* of a writer, or -1 */
	int end;		/* of the pipe, which it opens again */
	bool nonblock, edges, reopen, one_reader;
	bool polls_first;	/* and writes only if there is room */
	int ep;			/* with @edges, epoll tells when to go on */
	ssize_t quota;		/* bytes, or 0 for: until @stop */
	ssize_t size;		/* of each call, or 0 for any */
	unsigned int rnd;
	pthread_t thread;
	ssize_t bytes;		/* written or read so far */
	ssize_t count[WRITERS];	/* read of each writer's */
	int next[WRITERS];	/* the value that has to come now, or -1 */
	long waited;		/* how often it slept, or found no room */
	int error;		/* what ended it */
	bool stop, done;
};

static unsigned int any(struct worker *w, unsigned int n)
{
	w->rnd = w->rnd * 1664525u + 1013904223u;
	return (w->rnd >> 8) % n;
}

static ssize_t any_size(struct worker *w)
{
	unsigned int kind = any(w, 32);

	if (w->size)
		return w->size;
	if (kind < 10)
		return 1 + any(w, 200);
	if (kind < 16)
		return 1 + any(w, PIPE_BUF);
	if (kind < 24)
		return (1 + any(w, 20)) * psz + any(w, 3) - 1;
	return 1 + any(w, kind < 31 ? 20 * psz : LARGEST);
}

/* A reader sees each writer's values in turn, also across what others write. */
static bool check(struct worker *w, const unsigned char *buf, ssize_t len)
{
	/* What another reader gets in between is not known. */
	for (int i = 0; i < WRITERS && !w->one_reader; i++)
		w->next[i] = -1;
	for (ssize_t i = 0; i < len; i++) {
		int id = buf[i] / (VALUES + 1), value = buf[i] % (VALUES + 1);

		if (id >= WRITERS || value == VALUES ||
		    (w->next[id] >= 0 && w->next[id] != value))
			return false;
		w->next[id] = (value + 1) % VALUES;
		w->count[id]++;
	}
	return true;
}

static int open_end(struct worker *w)
{
	int fd = reopen(w->end, (w->id < 0 ? O_RDONLY : O_WRONLY) |
				(w->nonblock ? O_NONBLOCK : 0));
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET };

	if (w->edges)
		epoll_ctl(w->ep, EPOLL_CTL_ADD, fd, &ev);
	return fd;
}

/* Returns -errno, or 0 at the end of file. */
static ssize_t one_call(struct worker *w, int fd, unsigned char *buf)
{
	short event = w->id < 0 ? POLLIN : POLLOUT;
	struct epoll_event ev;
	ssize_t len = any_size(w), ret;

	/* The buffer of a writer has its values over and over. */
	if (w->id >= 0 && w->quota && len > w->quota - w->bytes)
		len = w->quota - w->bytes;
	if (w->polls_first)
		poll(&(struct pollfd){ .fd = fd, .events = event }, 1, -1);
	ret = w->id < 0 ? do_read(fd, buf, len) :
			  do_write(fd, buf + w->bytes % VALUES, len);
	if (ret == -EAGAIN && w->edges)
		epoll_wait(w->ep, &ev, 1, -1);
	else if (ret == -EAGAIN)
		poll(&(struct pollfd){ .fd = fd, .events = event }, 1, -1);
	if (ret == -EAGAIN) {
		w->waited++;
		return -EINTR;
	}
	if (ret > 0 && w->id >= 0 && len <= PIPE_BUF && ret != len)
		return -EMSGSIZE;
	if (ret > 0 && w->id < 0 && !check(w, buf, ret))
		return -EILSEQ;
	return ret;
}

static void *work(void *arg)
{
	unsigned char *buf = malloc(LARGEST + VALUES);
	struct worker *w = arg;
	struct rusage usage;
	ssize_t ret = 1;
	int fd = -1, i;

	for (i = 0; i < LARGEST + VALUES && w->id >= 0; i++)
		buf[i] = w->id * (VALUES + 1) + i % VALUES;
	for (i = 0; i < WRITERS; i++)
		w->next[i] = w->one_reader ? 0 : -1;
	w->ep = epoll_create1(EPOLL_CLOEXEC);
	while (ret && (!w->quota || w->bytes < w->quota) &&
	       !__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		if (fd < 0)
			fd = open_end(w);
		ret = one_call(w, fd, buf);
		if (ret < 0 && ret != -EINTR)
			break;
		if (ret > 0)
			__atomic_add_fetch(&w->bytes, ret, __ATOMIC_RELAXED);
		if (w->reopen && !any(w, 16)) {
			close(fd);
			fd = -1;
		}
	}
	close(fd);
	close(w->ep);
	w->error = ret < 0 && ret != -EINTR ? ret : 0;
	getrusage(RUSAGE_THREAD, &usage);
	w->waited += usage.ru_nvcsw;
	free(buf);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

FIXTURE(torture) {
	int p[2];
	struct worker workers[WORKERS];
};

FIXTURE_VARIANT(torture) {
	int readers;
	bool poll, signals, resize, reopen, segments, fifo;
	bool starve;		/* one polls, beside others without an end... */
	bool polls_first;	/* ...and never writes in vain */
	ssize_t slots, size;
};

FIXTURE_VARIANT_ADD(torture, one_reader) { .readers = 1 };
FIXTURE_VARIANT_ADD(torture, many_readers) { .readers = 3 };
FIXTURE_VARIANT_ADD(torture, fifo) { .readers = 2, .fifo = true };
FIXTURE_VARIANT_ADD(torture, segments) { .readers = 1, .segments = true };
FIXTURE_VARIANT_ADD(torture, small_pipe) { .readers = 3, .slots = 1 };
FIXTURE_VARIANT_ADD(torture, large_pipe) { .readers = 2, .slots = 256 };
FIXTURE_VARIANT_ADD(torture, one_size) { .readers = 3, .size = 65536 };
FIXTURE_VARIANT_ADD(torture, poll) { .readers = 2, .poll = true };
FIXTURE_VARIANT_ADD(torture, signals) { .readers = 1, .signals = true };
FIXTURE_VARIANT_ADD(torture, resize) { .readers = 1, .resize = true };
FIXTURE_VARIANT_ADD(torture, reopen) { .readers = 3, .reopen = true };

FIXTURE_VARIANT_ADD(torture, starve) {
	.readers = 2, .starve = true, .size = 65536
};

FIXTURE_VARIANT_ADD(torture, starve_poll) {
	.readers = 2, .starve = true, .polls_first = true, .size = 65536
};

FIXTURE_VARIANT_ADD(torture, all) {
	.readers = 3, .poll = true, .signals = true, .resize = true,
	.reopen = true
};

static void start(struct __test_metadata *_metadata, struct worker *w)
{
	ASSERT_EQ(0, pthread_create(&w->thread, NULL, work, w));
}

static void make_fifo(struct __test_metadata *_metadata, int p[2])
{
	char name[64];

	snprintf(name, sizeof(name), "/tmp/pipe_torture_test.%d", getpid());
	ASSERT_EQ(0, mkfifo(name, 0600));
	p[0] = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	p[1] = open(name, O_WRONLY | O_CLOEXEC);
	unlink(name);
	ASSERT_LE(0, p[0]);
	ASSERT_LE(0, p[1]);
}

FIXTURE_SETUP(torture)
{
	make_pipe(_metadata, self->p, variant->slots ?: SLOTS);
	if (variant->fifo)
		make_fifo(_metadata, self->p);
	segment = variant->segments ? 10007 : 0;
	count_signals(SIGUSR1, 0);
	for (int i = 0; i < WRITERS + variant->readers; i++) {
		struct worker *w = &self->workers[i];

		w->id = i < WRITERS ? i : -1;
		w->end = self->p[i < WRITERS];
		w->nonblock = variant->poll && i % 2;
		w->edges = w->nonblock && i > 1;
		w->reopen = variant->reopen;
		w->one_reader = variant->readers == 1;
		w->size = variant->size;
		w->quota = w->id < 0 || variant->starve ? 0 : 4 * LARGEST;
		w->rnd = i + 1;
	}
	if (variant->starve) {
		self->workers[0].nonblock = true;
		self->workers[0].polls_first = variant->polls_first;
		self->workers[0].size = psz;
		self->workers[0].quota = 60 * psz;
	}
}

FIXTURE_TEARDOWN(torture) { }

static bool all_done(struct worker *w, int nr)
{
	while (nr && __atomic_load_n(&w[nr - 1].done, __ATOMIC_ACQUIRE))
		nr--;
	return !nr;
}

/* Whether something has moved since the last time */
static bool moves(struct worker *w, int nr, ssize_t *last)
{
	ssize_t sum = 0, old = *last;

	while (nr--)
		sum += __atomic_load_n(&w[nr].bytes, __ATOMIC_RELAXED);
	*last = sum;
	return sum != old;
}

/* All of the data come through, and nobody is left asleep. */
TEST_F_TIMEOUT(torture, stream, TIMEOUT)
{
	int nr = WRITERS + variant->readers, i, j, ms = 0, resizes = 0;
	struct worker *w = self->workers, me = { .rnd = 77 };
	ssize_t last = 0, sum, waited = 0;

	/* The first one, which may have to starve, comes last. */
	for (i = nr - 1; i >= 0; i--) {
		while (variant->starve && !i && last < LARGEST)
			moves(w, nr, &last);
		start(_metadata, &w[i]);
	}
	while (!all_done(w, variant->starve ? 1 : WRITERS)) {
		usleep(1000);
		ms = moves(w, variant->starve ? 1 : nr, &last) ? 0 : ms + 1;
		ASSERT_LT(ms, WAIT_MS) {
			TH_LOG("asleep: %zd bytes in the pipe, %sfull",
			       bytes_in(self->p[0]),
			       polls(self->p[1], POLLOUT) ? "not " : "");
		}
		if (variant->signals)
			pthread_kill(w[any(&me, nr)].thread, SIGUSR1);
		if (variant->resize)
			resizes += fcntl(self->p[1], F_SETPIPE_SZ,
					 psz << any(&me, 7)) > 0;
	}
	for (i = 0; i < WRITERS; i++)
		__atomic_store_n(&w[i].stop, true, __ATOMIC_RELAXED);
	ASSERT_TRUE(WAIT_FOR(all_done(w, WRITERS)));
	/* The end of file ends the readers. */
	ASSERT_EQ(0, close(self->p[1]));
	ASSERT_TRUE(WAIT_FOR(all_done(w, nr)));
	for (i = 0; i < nr; i++) {
		pthread_join(w[i].thread, NULL);
		ASSERT_EQ(0, w[i].error);
		waited += i < WRITERS && (!i || !variant->starve) ?
			  w[i].waited : 0;
	}
	for (i = 0; i < WRITERS; i++) {
		for (j = WRITERS, sum = 0; j < nr; j++)
			sum += w[j].count[i];
		ASSERT_EQ(w[i].bytes, sum);
	}
	/* Writers had to wait, and what was to disturb them did. */
	ASSERT_GT(waited, 0);
	ASSERT_EQ(variant->signals, nr_signals > 0);
	ASSERT_EQ(variant->resize, resizes > 0);
}

FIXTURE(race) { };
FIXTURE_SETUP(race) { }
FIXTURE_TEARDOWN(race) { }

/*
 * The last readers close while writers write, or wait: each of these ends, and
 * was told by a signal, one for each call that has found no reader.
 */
TEST_F_TIMEOUT(race, last_close, TIMEOUT)
{
	ssize_t last, nr = WRITERS + 2;
	struct worker w[WORKERS];
	int p[2], i, round;

	count_signals(SIGPIPE, 0);
	for (round = 0; round < 40; round++) {
		make_pipe(_metadata, p, SLOTS);
		memset(w, 0, sizeof(w));
		for (i = 0; i < nr; i++) {
			w[i].id = i < WRITERS ? i : -1;
			w[i].end = p[i < WRITERS];
			w[i].nonblock = i == 1;
			w[i].rnd = round * 16 + i + 1;
			start(_metadata, &w[i]);
		}
		last = 0;
		while (last < LARGEST / 4)
			moves(w + WRITERS, 2, &last);
		nr_signals = 0;
		for (i = WRITERS; i < nr; i++)
			__atomic_store_n(&w[i].stop, true, __ATOMIC_RELAXED);
		ASSERT_TRUE(WAIT_FOR(all_done(w + WRITERS, 2)));
		/* Every other time, the pipe is full then, and writers wait. */
		if (round % 2)
			ASSERT_TRUE(WAIT_FOR(!polls(p[1], POLLOUT)));
		ASSERT_EQ(0, close(p[0]));
		ASSERT_TRUE(WAIT_FOR(all_done(w, WRITERS)));
		for (i = 0; i < nr; i++) {
			pthread_join(w[i].thread, NULL);
			ASSERT_EQ(i < WRITERS ? -EPIPE : 0, w[i].error);
		}
		ASSERT_LE(WRITERS, nr_signals);
		ASSERT_GE(2 * WRITERS, nr_signals);
		close(p[1]);
	}
}

TEST_HARNESS_MAIN
