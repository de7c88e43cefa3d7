/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffers some of whose pages are missing: tasks that need them wait for
 * userfaultfd, in the middle of a copy.
 */
#ifndef _PIPE_LAZY_H
#define _PIPE_LAZY_H

#include "pipe_test.h"

struct lazy {
	int uffd;
	ssize_t nr;
	unsigned char *map, *src;
};

/* Put pages in place.  Those that are there stay. */
static inline void lazy_provide(struct lazy *l, ssize_t first, ssize_t end)
{
	struct uffdio_copy copy = { .len = psz };

	for (; first < end; first++) {
		copy.dst = (unsigned long)l->map + first * psz;
		copy.src = (unsigned long)l->src + first * psz;
		ioctl(l->uffd, UFFDIO_COPY, &copy);
	}
}

/* The system call may be for faults of user space only, the device is not. */
static inline int uffd_open(struct __test_metadata *_metadata)
{
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK), err, dev;
	struct uffdio_api api = { .api = UFFD_API };

	err = errno;
	if (fd < 0) {
		dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
		if (dev >= 0) {
			fd = ioctl(dev, USERFAULTFD_IOC_NEW,
				   O_CLOEXEC | O_NONBLOCK);
			close(dev);
		}
	}
	if (fd < 0)
		SKIP(exit(KSFT_SKIP),
		     "userfaultfd for faults of the kernel: %s (see sysctl vm.unprivileged_userfaultfd)",
		     strerror(err));
	ASSERT_EQ(0, ioctl(fd, UFFDIO_API, &api));
	return fd;
}

static inline void lazy_register(struct __test_metadata *_metadata,
				 struct lazy *l)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	reg.range.start = (unsigned long)l->map;
	reg.range.len = l->nr * psz;
	ASSERT_EQ(0, ioctl(l->uffd, UFFDIO_REGISTER, &reg));
}

/* Of @nr pages, those from @first to @end are missing. */
static inline void lazy_alloc(struct __test_metadata *_metadata,
			      struct lazy *l, ssize_t nr, ssize_t pos,
			      ssize_t first, ssize_t end)
{
	l->uffd = uffd_open(_metadata);
	l->nr = nr;
	l->map = map_pages(_metadata, nr);
	l->src = fill(malloc(nr * psz), nr * psz, 1, pos);
	lazy_register(_metadata, l);
	lazy_provide(l, 0, first);
	lazy_provide(l, end, nr);
}

/* The page that a task waits for, or -1 */
static inline ssize_t lazy_fault(const struct lazy *l)
{
	struct uffd_msg msg;

	if (read(l->uffd, &msg, sizeof(msg)) != sizeof(msg))
		return -1;
	return (ssize_t)(msg.arg.pagefault.address - (unsigned long)l->map) /
		psz;
}

#define STALL_MS	2500	/* without a message: no more will come */
#define MESSAGES	1000

/* Whether a condition comes true, if nobody has to wait for a page */
#define COMES_TRUE(cond) ({				\
	int __stall = STALL_MS;				\
							\
	while (!(cond) && --__stall)			\
		usleep(1000);				\
	__stall > 0;					\
})

/* Another task writes messages and reads them, and changes the pipe's size. */
struct others {
	int *p;
	ssize_t before;		/* what is there has seed @seed... */
	unsigned int seed;
	ssize_t pos;		/* ...from there on */
	ssize_t passed;
	ssize_t error;
	pthread_t thread;
};

static inline bool pass_message(struct others *o, ssize_t i)
{
	ssize_t len = i % 8 == 7 ? psz + 10 : 100;

	o->error = put(o->p[1], len, i, 0);
	if (o->error == len)
		o->error = bytes_in(o->p[0]);
	if (o->error == len)
		o->error = get(o->p[0], 2 * psz, i, 0);
	return o->error == len;
}

static inline void *pass_messages(void *arg)
{
	ssize_t slots, i, ret, got;
	struct others *o = arg;

	for (got = 0; got < o->before; got += ret) {
		ret = get(o->p[0], o->before - got, o->seed, o->pos + got);
		if (ret <= 0) {
			o->error = ret;
			return NULL;
		}
	}
	slots = fcntl(o->p[1], F_GETPIPE_SZ) / psz;
	for (i = 0; i < MESSAGES && pass_message(o, i); i++) {
		if (i == MESSAGES / 2) {
			fcntl(o->p[1], F_SETPIPE_SZ, slots / 2 * psz);
			fcntl(o->p[1], F_SETPIPE_SZ, slots * psz);
		}
		__atomic_store_n(&o->passed, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static inline void expect_pass(struct __test_metadata *_metadata, int p[2],
			       ssize_t before, unsigned int seed, ssize_t pos)
{
	struct others *o = calloc(1, sizeof(*o));
	ssize_t ms, passed = -1, now = 0;

	*o = (struct others){ .p = p, .before = before, .seed = seed,
			      .pos = pos };
	ASSERT_EQ(0, pthread_create(&o->thread, NULL, pass_messages, o));
	for (ms = 0; ms < STALL_MS && now < MESSAGES; passed = now) {
		usleep(1000);
		now = __atomic_load_n(&o->passed, __ATOMIC_ACQUIRE);
		ms = now == passed ? ms + 1 : 0;
	}
	ASSERT_EQ(MESSAGES, now) {
		TH_LOG("messages pass no more: %zd", o->error);
	}
	pthread_join(o->thread, NULL);
}

static inline void drain(struct __test_metadata *_metadata, int fd,
			 ssize_t len, unsigned int seed, ssize_t pos)
{
	ssize_t got, ret;

	for (got = 0; got < len; got += ret) {
		ret = get(fd, len - got, seed, pos + got);
		ASSERT_GT(ret, 0);
	}
}

/* Start a read or a write, and wait until it needs a page that is missing. */
static inline void start_stuck(struct __test_metadata *_metadata,
			       struct io *io, const struct lazy *l)
{
	io_start(_metadata, io);
	ASSERT_TRUE(WAIT_FOR(lazy_fault(l) >= 0));
	ASSERT_FALSE(io_done(io));
}

#endif /* _PIPE_LAZY_H */
