/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of pipes have in common.
 *
 * Each byte of the data depends on a seed and on its position.  Functions
 * return -errno on failure.  Each test is a process; its end frees what it has
 * used.
 */
#ifndef _PIPE_TEST_H
#define _PIPE_TEST_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define NR(array)	((ssize_t)ARRAY_SIZE(array))
#define SLOTS		16	/* of a pipe, unless a test wants another nr */
#define MAX_SEGS	64
#define WAIT_MS		10000	/* for what should happen at once */

/* Whether a condition comes true in time */
#define WAIT_FOR(cond) ({				\
	int __ms = WAIT_MS;				\
							\
	while (!(cond) && --__ms)			\
		usleep(1000);				\
	__ms > 0;					\
})

static ssize_t psz;
static unsigned char *scratch;
static ssize_t segment;	/* readv() and writev() of segments of this length */

static void __attribute__((constructor)) init(void)
{
	psz = sysconf(_SC_PAGESIZE);
	scratch = malloc(256 * psz);
}

static inline ssize_t result(ssize_t ret)
{
	return ret < 0 ? -errno : ret;
}

static inline unsigned char pattern(unsigned int seed, ssize_t pos)
{
	return (((unsigned int)pos + seed * 40503u) * 2654435761u) >> 24;
}

static inline unsigned char *fill(unsigned char *buf, ssize_t len,
				  unsigned int seed, ssize_t pos)
{
	for (ssize_t i = 0; i < len; i++)
		buf[i] = pattern(seed, pos + i);
	return buf;
}

static inline bool matches(const unsigned char *buf, ssize_t len,
			   unsigned int seed, ssize_t pos)
{
	ssize_t i = 0;

	while (i < len && buf[i] == pattern(seed, pos + i))
		i++;
	return i == len;
}

/* The last segment takes the rest. */
static inline int segments(struct iovec *iov, unsigned char *buf, ssize_t len,
			   ssize_t seg)
{
	int n = 0;

	do {
		iov[n].iov_base = buf;
		iov[n].iov_len = n == MAX_SEGS - 1 || len < seg ? len : seg;
		buf += iov[n].iov_len;
		len -= iov[n].iov_len;
	} while (++n < MAX_SEGS && len);
	return n;
}

static inline ssize_t do_write(int fd, unsigned char *buf, ssize_t len)
{
	struct iovec iov[MAX_SEGS];

	if (!segment)
		return result(write(fd, buf, len));
	return result(writev(fd, iov, segments(iov, buf, len, segment)));
}

static inline ssize_t do_read(int fd, unsigned char *buf, ssize_t len)
{
	struct iovec iov[MAX_SEGS];

	if (!segment)
		return result(read(fd, buf, len));
	return result(readv(fd, iov, segments(iov, buf, len, segment)));
}

static inline ssize_t put(int fd, ssize_t len, unsigned int seed, ssize_t pos)
{
	return do_write(fd, fill(scratch, len, seed, pos), len);
}

/* One read; an error if it brings something else. */
static inline ssize_t get(int fd, ssize_t len, unsigned int seed, ssize_t pos)
{
	ssize_t ret = do_read(fd, scratch, len);

	return ret > 0 && !matches(scratch, ret, seed, pos) ? -EILSEQ : ret;
}

static inline ssize_t bytes_in(int fd)
{
	int n, ret = ioctl(fd, FIONREAD, &n);

	return ret < 0 ? -errno : n;
}

static inline bool polls(int fd, short event)
{
	struct pollfd pfd = { .fd = fd, .events = event };

	return poll(&pfd, 1, 0) == 1 && pfd.revents & event;
}

static inline void set_flag(int fd, int flag, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, on ? flags | flag : flags & ~flag);
}

/* Users may not have as many as they like. */
static inline void set_slots(struct __test_metadata *_metadata, int fd,
			     ssize_t slots)
{
	ssize_t size = result(fcntl(fd, F_SETPIPE_SZ, slots * psz));

	if (size == -EPERM)
		SKIP(exit(KSFT_SKIP), "%zd slots: %s", slots, strerror(EPERM));
	ASSERT_EQ(slots * psz, size);
}

static inline void make_pipe(struct __test_metadata *_metadata, int p[2],
			     ssize_t slots)
{
	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	set_slots(_metadata, p[1], slots);
}

/* The same end of the pipe, opened again: with flags of its own */
static inline int reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

/* Move whole pages, which take a slot each, one by one; returns how many. */
static inline ssize_t move_pages(ssize_t (*move)(int fd, ssize_t len,
						 unsigned int seed,
						 ssize_t pos),
				 int fd, ssize_t nr)
{
	ssize_t n = 0;

	while (n < nr && move(fd, psz, 1000, 0) == psz)
		n++;
	return n;
}

/* Returns how many slots were free. */
static inline ssize_t fill_up(int fd)
{
	ssize_t n = 0;

	/* With room for it, a write does not block. */
	while (polls(fd, POLLOUT))
		n += move_pages(put, fd, 1);
	return n;
}

/*
 * Expect exactly these slots, and read them.  A pipe that is full can be
 * written to when the last byte of a slot was read, and not before.
 */
static inline void expect_slots(struct __test_metadata *_metadata,
				const int p[2], unsigned int seed,
				const ssize_t *lens, ssize_t nr)
{
	ssize_t i, pos = 0, slots = fcntl(p[1], F_GETPIPE_SZ) / psz;

	ASSERT_EQ(slots - nr, fill_up(p[1]));
	for (i = 0; i < nr; pos += lens[i++]) {
		if (lens[i] > 1)
			ASSERT_EQ(lens[i] - 1,
				  get(p[0], lens[i] - 1, seed, pos));
		ASSERT_FALSE(polls(p[1], POLLOUT));
		ASSERT_EQ(1, get(p[0], 1, seed, pos + lens[i] - 1));
		ASSERT_EQ(1, fill_up(p[1]));
	}
	ASSERT_EQ(slots, move_pages(get, p[0], slots));
	ASSERT_EQ(0, bytes_in(p[0]));
}

/* After an error, a pipe must be as good as new. */
static inline void expect_works(struct __test_metadata *_metadata,
				const int p[2])
{
	const ssize_t lens[] = { psz, psz, 77 };

	ASSERT_EQ(0, bytes_in(p[0]));
	if (fcntl(p[1], F_GETPIPE_SZ) < NR(lens) * psz)
		set_slots(_metadata, p[1], SLOTS);
	ASSERT_EQ(2 * psz + 77, put(p[1], 2 * psz + 77, 99, 0));
	expect_slots(_metadata, p, 99, lens, NR(lens));
}

/* Nothing can be accessed there, and nothing else is mapped there. */
static inline void make_hole(struct __test_metadata *_metadata,
			     unsigned char *addr, ssize_t len)
{
	int fd = memfd_create("empty", MFD_CLOEXEC);

	ASSERT_EQ(addr, mmap(addr, len, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, fd, 0));
	close(fd);
}

static inline unsigned char *map_pages(struct __test_metadata *_metadata,
				       ssize_t nr)
{
	unsigned char *map = mmap(NULL, nr * psz, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, map);
	/* A huge page would bring all of them. */
	madvise(map, nr * psz, MADV_NOHUGEPAGE);
	return map;
}

/* A buffer of @good bytes that ends where nothing can be accessed. */
static inline unsigned char *guarded(struct __test_metadata *_metadata,
				     ssize_t good)
{
	ssize_t nr = (good + psz - 1) / psz;
	unsigned char *map = map_pages(_metadata, nr + 20);

	memset(map, 0, nr * psz);
	make_hole(_metadata, map + nr * psz, 20 * psz);
	return map + nr * psz - good;
}

/* Reads and writes in threads */
struct io {
	int fd;
	unsigned char *buf;
	ssize_t len;
	ssize_t call;		/* repeat calls of this length to the end */
	bool is_read;
	bool idle;		/* run only when nobody else wants the CPU */
	pthread_t thread;
	pid_t tid;
	ssize_t ret;
	ssize_t nr_full;	/* how often there was no room */
	bool done;
};

static inline void *io_thread(void *arg)
{
	struct io *io = arg;
	ssize_t sum = 0, len, ret;

	if (io->idle)
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ });
	__atomic_store_n(&io->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	do {
		len = io->call ?: io->len;
		ret = io->is_read ? do_read(io->fd, io->buf + sum, len) :
				    do_write(io->fd, io->buf + sum, len);
		if (ret > 0)
			sum += ret;
		else if (ret == -EAGAIN && io->call)
			io->nr_full += poll(&(struct pollfd){
					    io->fd, POLLOUT, 0 }, 1, -1);
	} while (io->call && (ret > 0 || ret == -EAGAIN) && sum < io->len);
	io->ret = ret < 0 ? ret : sum;
	__atomic_store_n(&io->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static inline bool io_done(struct io *io)
{
	return __atomic_load_n(&io->done, __ATOMIC_ACQUIRE);
}

/* A line of what the kernel says about a task: what follows @key, or -1 */
static inline long task_status(pid_t tid, const char *key, bool as_char)
{
	char name[64], line[256];
	ssize_t len = strlen(key);
	long ret = -1;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", tid);
	f = tid ? fopen(name, "r") : NULL;
	while (f && ret < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len))
			ret = as_char ? line[len] : atol(line + len);
	if (f)
		fclose(f);
	return ret;
}

/* Neither running nor waiting for a mutex */
static inline bool io_sleeps(struct io *io)
{
	pid_t tid = __atomic_load_n(&io->tid, __ATOMIC_ACQUIRE);

	return task_status(tid, "State:\t", true) == 'S';
}

/* How often it has gone off the CPU */
static inline long io_switches(struct io *io)
{
	return task_status(io->tid, "voluntary_ctxt_switches:", false) +
	       task_status(io->tid, "nonvoluntary_ctxt_switches:", false);
}

static inline void io_start(struct __test_metadata *_metadata, struct io *io)
{
	io->done = false;
	io->tid = 0;
	ASSERT_EQ(0, pthread_create(&io->thread, NULL, io_thread, io));
}

static inline void io_start_blocked(struct __test_metadata *_metadata,
				    struct io *io)
{
	io_start(_metadata, io);
	ASSERT_TRUE(WAIT_FOR(io_sleeps(io)));
	ASSERT_FALSE(io_done(io));
}

static inline ssize_t io_join(struct io *io)
{
	if (!WAIT_FOR(io_done(io)))
		return -ETIMEDOUT;
	pthread_join(io->thread, NULL);
	return io->ret;
}

static inline struct io writer(int fd, ssize_t len, unsigned int seed,
			       ssize_t pos)
{
	unsigned char *buf = fill(malloc(len), len, seed, pos);

	return (struct io){ .fd = fd, .buf = buf, .len = len };
}

static inline int write_file(const char *dir, const char *name,
			     const char *text)
{
	char path[128];
	ssize_t ret;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ret = result(fd < 0 ? fd : write(fd, text, strlen(text)));
	if (fd >= 0)
		close(fd);
	return ret < 0 ? ret : 0;
}

static int nr_signals;

static inline void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&nr_signals, 1, __ATOMIC_SEQ_CST);
}

static inline void count_signals(int sig, int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(sig, &sa, NULL);
}

#endif /* _PIPE_TEST_H */
