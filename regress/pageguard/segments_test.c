// SPDX-License-Identifier: GPL-2.0
/*
 * A read under a guard has preemption off, and who truncates the folio waits for it.
 * So it copies to few segments of memory: each is a copy of its own, and may be far from
 * the others.  A read into more of them takes a reference, which the tracepoints of the
 * count tell: segments of an iovec, and of a buffer that io_uring has registered, which
 * the kernel reads to as pieces of pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "filemap/ring.h"

#define MOST	8	/* segments that are read to under a guard */
#define READS	100

FIXTURE(segments)
{
	char tracefs[64], dir[128];
	bool mounted;
	int fd;
};

static bool write_file(const char *dir, const char *name, const char *value)
{
	char path[256];
	ssize_t ret;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ret = write(fd, value, strlen(value));
	close(fd);
	return ret == (ssize_t)strlen(value);
}

FIXTURE_SETUP(segments)
{
	char path[192], pid[16], data[128];

	snprintf(self->tracefs, sizeof(self->tracefs), "/tmp/segments.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->tracefs));
	self->mounted = !mount("tracefs", self->tracefs, "tracefs", 0, NULL);
	snprintf(path, sizeof(path), "%s/events/page_ref", self->tracefs);
	if (!self->mounted || access(path, F_OK))
		SKIP(return, "no page_ref tracepoints: needs root and CONFIG_DEBUG_PAGE_REF");
	snprintf(self->dir, sizeof(self->dir), "%s/instances/segments", self->tracefs);
	ASSERT_EQ(0, mkdir(self->dir, 0755));
	snprintf(pid, sizeof(pid), "%d", getpid());
	ASSERT_TRUE(write_file(self->dir, "set_event_pid", pid));

	self->fd = memfd_create("segments", MFD_CLOEXEC);
	ASSERT_GE(self->fd, 0);
	memset(data, 's', sizeof(data));
	ASSERT_EQ((ssize_t)sizeof(data), write(self->fd, data, sizeof(data)));
}

FIXTURE_TEARDOWN_PARENT(segments)
{
	if (self->dir[0])
		rmdir(self->dir);
	if (self->mounted)
		umount2(self->tracefs, MNT_DETACH);
	rmdir(self->tracefs);
}

/* Where reads by io_uring go: it, and the buffer that it has registered */
struct registered {
	struct ring ring;
	unsigned char *buf;
};

/*
 * How often READS reads into @nr segments of a byte change the count of the page, where
 * @r is given, by its io_uring into its buffer
 */
static long references(struct __test_metadata *_metadata, const char *dir, int fd, int nr,
		       struct registered *r)
{
	static char trace[1 << 20];
	unsigned char own[4 * MOST] = "", *buf = r ? r->buf : own;
	struct iovec iov[2 * MOST];
	struct io_uring_sqe sqe = { .opcode = IORING_OP_READV_FIXED, .fd = fd,
				    .addr = (unsigned long)iov, .len = nr, .off = 1 };
	ssize_t ret, size = 0;
	char path[192], *at;
	long events = 0;
	int i, tfd;

	/* Not one behind the other, so that they stay segments. */
	for (i = 0; i < nr; i++) {
		buf[2 * i] = 0;
		iov[i] = (struct iovec){ buf + 2 * i, 1 };
	}
	ASSERT_TRUE(write_file(dir, "trace", "0"));
	ASSERT_TRUE(write_file(dir, "events/page_ref/enable", "1"));
	for (i = 0; i < READS; i++)
		ret = r ? ring_wait(_metadata, &r->ring, sqe) : preadv(fd, iov, nr, 1);
	ASSERT_TRUE(write_file(dir, "events/page_ref/enable", "0"));
	ASSERT_EQ(nr, ret);
	for (i = 0; i < nr; i++)
		ASSERT_EQ('s', buf[2 * i]);

	snprintf(path, sizeof(path), "%s/trace", dir);
	tfd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(tfd, 0);
	do {
		ret = read(tfd, trace + size, sizeof(trace) - 1 - size);
		size += ret > 0 ? ret : 0;
	} while (ret > 0);
	close(tfd);
	trace[size] = '\0';
	for (at = trace; (at = strstr(at, ": page_ref_")); at++)
		events++;
	return events;
}

static void few_segments(struct __test_metadata *_metadata, const char *dir, int fd,
			 struct registered *r)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
	/* The first read of this CPU takes a reference. */
	references(_metadata, dir, fd, 1, r);
	EXPECT_LT(references(_metadata, dir, fd, 1, r), READS / 10);
	EXPECT_LT(references(_metadata, dir, fd, MOST, r), READS / 10);
	/* One is taken and put. */
	EXPECT_GE(references(_metadata, dir, fd, MOST + 1, r), 2 * READS);
}

TEST_F(segments, iovec)
{
	few_segments(_metadata, self->dir, self->fd, NULL);
}

TEST_F(segments, registered)
{
	struct registered r;
	int err;

	r.buf = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	ASSERT_NE(MAP_FAILED, r.buf);
	err = ring_setup(_metadata, &r.ring, r.buf, getpagesize());
	if (err)
		SKIP(return, "io_uring_setup: %s", strerror(err));
	few_segments(_metadata, self->dir, self->fd, &r);
}

TEST_HARNESS_MAIN
