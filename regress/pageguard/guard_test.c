// SPDX-License-Identifier: GPL-2.0
/*
 * Which reads take a reference, as the tracepoints of the count tell, and what becomes of
 * folios that are removed, as knockout.patch lets debugfs tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "filemap/ring.h"

#define MOST	8	/* segments that are read to under a guard */
#define READS	100
#define KNOBS	"/sys/kernel/debug/pageguard_knockout"
#define WORD	((unsigned long)0x4141414141414141)

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

/* A file of @pages pages in a ramfs, whose reads are filemap_read()'s, mounted at @dir. */
static int ramfs_file(struct __test_metadata *_metadata, const char *dir, unsigned int pages)
{
	char path[96];
	int fd;

	ASSERT_EQ(0, mount("ramfs", dir, "ramfs", 0, NULL));
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ASSERT_EQ(0, umount2(dir, MNT_DETACH));
	ASSERT_GE(fd, 0);
	while (pages--) {
		char data[4096];

		memset(data, 's', sizeof(data));
		ASSERT_EQ((ssize_t)sizeof(data), write(fd, data, sizeof(data)));
	}
	return fd;
}

FIXTURE(traced)
{
	char tracefs[64], dir[128];
	bool mounted;
	int fd;
};

FIXTURE_SETUP(traced)
{
	char path[192], pid[16], data[128];

	snprintf(self->tracefs, sizeof(self->tracefs), "/tmp/guard.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->tracefs));
	self->mounted = !mount("tracefs", self->tracefs, "tracefs", 0, NULL);
	snprintf(path, sizeof(path), "%s/events/page_ref", self->tracefs);
	if (!self->mounted || access(path, F_OK))
		SKIP(return, "no page_ref tracepoints: needs root and CONFIG_DEBUG_PAGE_REF");
	snprintf(self->dir, sizeof(self->dir), "%s/instances/guard", self->tracefs);
	ASSERT_EQ(0, mkdir(self->dir, 0755));
	snprintf(pid, sizeof(pid), "%d", getpid());
	ASSERT_TRUE(write_file(self->dir, "set_event_pid", pid));

	self->fd = memfd_create("guard", MFD_CLOEXEC);
	ASSERT_GE(self->fd, 0);
	memset(data, 's', sizeof(data));
	ASSERT_EQ((ssize_t)sizeof(data), write(self->fd, data, sizeof(data)));
}

FIXTURE_TEARDOWN_PARENT(traced)
{
	if (self->dir[0])
		rmdir(self->dir);
	if (self->mounted)
		umount2(self->tracefs, MNT_DETACH);
	rmdir(self->tracefs);
}

static void trace_start(struct __test_metadata *_metadata, const char *dir)
{
	ASSERT_TRUE(write_file(dir, "trace", "0"));
	ASSERT_TRUE(write_file(dir, "events/page_ref/enable", "1"));
}

/* How often the count of a folio has changed since trace_start(). */
static long trace_stop(struct __test_metadata *_metadata, const char *dir)
{
	static char trace[1 << 20];
	ssize_t ret, size = 0;
	char path[192], *at;
	long events = 0;
	int tfd;

	ASSERT_TRUE(write_file(dir, "events/page_ref/enable", "0"));
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
	unsigned char own[4 * MOST] = "", *buf = r ? r->buf : own;
	struct iovec iov[2 * MOST];
	struct io_uring_sqe sqe = { .opcode = IORING_OP_READV_FIXED, .fd = fd,
				    .addr = (unsigned long)iov, .len = nr, .off = 1 };
	ssize_t ret = 0;
	int i;

	/* Not one behind the other, so that they stay segments. */
	for (i = 0; i < nr; i++) {
		buf[2 * i] = 0;
		iov[i] = (struct iovec){ buf + 2 * i, 1 };
	}
	trace_start(_metadata, dir);
	for (i = 0; i < READS; i++)
		ret = r ? ring_wait(_metadata, &r->ring, sqe) : preadv(fd, iov, nr, 1);
	ASSERT_EQ(nr, ret);
	for (i = 0; i < nr; i++)
		ASSERT_EQ('s', buf[2 * i]);
	return trace_stop(_metadata, dir);
}

static void few_segments(struct __test_metadata *_metadata, const char *dir, int fd,
			 struct registered *r)
{
	/* The first read takes a reference. */
	references(_metadata, dir, fd, 1, r);
	EXPECT_LT(references(_metadata, dir, fd, 1, r), READS / 10);
	EXPECT_LT(references(_metadata, dir, fd, MOST, r), READS / 10);
	/* One is taken and put. */
	EXPECT_GE(references(_metadata, dir, fd, MOST + 1, r), 2 * READS);
}

/* A read into many segments of an iovec takes a reference: preemption is off for few. */
TEST_F(traced, iovec)
{
	few_segments(_metadata, self->dir, self->fd, NULL);
}

/* So does one into many segments of a buffer that io_uring has registered. */
TEST_F(traced, registered)
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

/* How often a pread of @len bytes at @pos changes the count. */
static long changes(struct __test_metadata *_metadata, const char *dir, int fd, size_t len,
		    off_t pos)
{
	char *buf = malloc(len);

	ASSERT_NE(NULL, buf);
	trace_start(_metadata, dir);
	ASSERT_EQ((ssize_t)len, pread(fd, buf, len, pos));
	free(buf);
	return trace_stop(_metadata, dir);
}

/* The second small read of an open file takes no reference, nor does any later one. */
TEST_F(traced, second)
{
	int fd = ramfs_file(_metadata, self->tracefs, 2);

	EXPECT_LE(2, changes(_metadata, self->dir, fd, 64, 0));
	EXPECT_EQ(0, changes(_metadata, self->dir, fd, 64, 0));
	EXPECT_EQ(0, changes(_metadata, self->dir, fd, 4096, 4096));
	EXPECT_EQ(0, changes(_metadata, self->dir, fd, 4096, 2048));
	EXPECT_LE(2, changes(_metadata, self->dir, fd, 4097, 0));
}

/* Reading a file once in small pieces, one behind the other, goes on with references. */
TEST_F(traced, once)
{
	int fd = ramfs_file(_metadata, self->tracefs, 16), i;

	for (i = 0; i < 16; i++)
		EXPECT_LE(2, changes(_metadata, self->dir, fd, 4096, i * 4096));
}

static int open_again(struct __test_metadata *_metadata, int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	return fd;
}

/* So does reading it once after each open. */
TEST_F(traced, opened)
{
	int fd = ramfs_file(_metadata, self->tracefs, 1), own, i;

	for (i = 0; i < 4; i++) {
		own = open_again(_metadata, fd);
		EXPECT_LE(2, changes(_metadata, self->dir, own, 64, 0));
		close(own);
	}
}

/* Large reads are no small ones, nor is what is left of them at the end of the file. */
TEST_F(traced, large)
{
	int fd = ramfs_file(_metadata, self->tracefs, 16), i;
	char *buf = malloc(1 << 20);

	ASSERT_NE(NULL, buf);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(16 * 4096, pread(fd, buf, 1 << 20, 0));
	free(buf);
	fd = open_again(_metadata, fd);
	EXPECT_LE(2, changes(_metadata, self->dir, fd, 64, 0));
	EXPECT_EQ(0, changes(_metadata, self->dir, fd, 64, 0));
}

static long knob(const char *name)
{
	char path[96], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s", KNOBS, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return strtol(text, NULL, 0);
}

/* Read the first page of @fd under a guard, which the kernel tells if it can. */
static void read_guarded(struct __test_metadata *_metadata, int fd)
{
	long served = knob("served");
	char byte;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(1, pread(fd, &byte, 1, 0));
	if (served >= 0)
		ASSERT_LT(served, knob("served"));
}

/* Stay on the CPU that this task runs on. */
static int stay_here(void)
{
	cpu_set_t one = {};

	CPU_SET(sched_getcpu(), &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

/*
 * lru_add_drain_all(): pages that are mapped stay, whatever is advised. What is dropped of
 * the program after that is held back until the second time.
 */
static void drain(struct __test_metadata *_metadata)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	ASSERT_EQ(0, posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	close(fd);
}

/* Folios that are held back are less than a batch, and lru_add_drain_all() frees them. */
TEST(held)
{
	int fd, i;

	if (knob("held") < 0)
		SKIP(return, "needs knockout.patch");
	ASSERT_EQ(0, stay_here());
	drain(_metadata);
	EXPECT_EQ(0, knob("held"));
	for (i = 0; i < 40; i++) {
		fd = memfd_create("guard", MFD_CLOEXEC);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(1, write(fd, "s", 1));
		read_guarded(_metadata, fd);
		ASSERT_EQ(0, ftruncate(fd, 0));
		close(fd);
		if (!i)
			EXPECT_EQ(1, knob("held"));
		EXPECT_GT(31, knob("held"));
	}
	EXPECT_EQ(40 - 31, knob("held"));
	drain(_metadata);
	EXPECT_EQ(0, knob("held"));
}

static int shared_fd;
static int stop;
static unsigned long seen;

static void *read_page(void *unused)
{
	unsigned long word;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (pread(shared_fd, &word, sizeof(word), 0) == sizeof(word) && word)
			__atomic_fetch_or(&seen, word, __ATOMIC_RELAXED);
	return unused;
}

FIXTURE(removed) { };
FIXTURE_SETUP(removed) { }
FIXTURE_TEARDOWN(removed) { }

/* A page that several CPUs read when it is removed is freed after the last of them. */
TEST_F_TIMEOUT(removed, shared, 120)
{
	pthread_t threads[3];
	time_t end = time(NULL) + (knob("served") < 0 ? 2 : 90);
	static char pages[31 * 4096];	/* a batch, so that each truncation looks at the guards */
	int i, nr = sysconf(_SC_NPROCESSORS_ONLN) - 1;

	if (nr < 2)
		SKIP(return, "needs three CPUs");
	nr = nr > 3 ? 3 : nr;
	memset(pages, 0x41, sizeof(pages));
	shared_fd = memfd_create("guard", MFD_CLOEXEC);
	ASSERT_GE(shared_fd, 0);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, read_page, NULL));
	for (i = 0; time(NULL) < end && !(__atomic_load_n(&seen, __ATOMIC_RELAXED) & ~WORD); i++) {
		ASSERT_EQ((ssize_t)sizeof(pages), pwrite(shared_fd, pages, sizeof(pages), 0));
		ASSERT_EQ(0, ftruncate(shared_fd, 0));
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	while (nr--)
		ASSERT_EQ(0, pthread_join(threads[nr], NULL));
	EXPECT_EQ(WORD, seen) {
		TH_LOG("after %d truncations", i);
	}
}

static int turn;

/* One read each time that it is this thread's turn, until @stop. */
static void *read_in_turn(void *cpu)
{
	unsigned long word;

	sched_setaffinity(0, sizeof(cpu_set_t), cpu);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		if (!__atomic_load_n(&turn, __ATOMIC_ACQUIRE))
			continue;
		if (pread(shared_fd, &word, sizeof(word), 0) == sizeof(word))
			__atomic_fetch_or(&seen, word, __ATOMIC_RELAXED);
		__atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* What is left with a guard stays no longer than until lru_add_drain_all(). */
TEST(left)
{
	static char pages[31 * 4096];	/* a batch: the guards are looked at */
	cpu_set_t all, one[2];
	int i, cpu, nr = 0;
	pthread_t thread;
	long kept;

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one[0]);
	CPU_ZERO(&one[1]);
	for (cpu = 0; cpu < CPU_SETSIZE && nr < 2; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one[nr++]);
	if (nr < 2 || knob("kept") < 0)
		SKIP(return, "needs two CPUs and knockout.patch");
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(one[0]), &one[0]));
	drain(_metadata);
	memset(pages, 0x41, sizeof(pages));
	shared_fd = memfd_create("guard", MFD_CLOEXEC);
	ASSERT_GE(shared_fd, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_in_turn, &one[1]));
	kept = knob("kept");
	ASSERT_TRUE(write_file(KNOBS, "delay", "3000"));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ((ssize_t)sizeof(pages), pwrite(shared_fd, pages, sizeof(pages), 0));
		__atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
		usleep(100);
		ASSERT_EQ(0, ftruncate(shared_fd, 0));
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE))
			sched_yield();
		drain(_metadata);
		EXPECT_EQ(0, knob("held"));
	}
	ASSERT_TRUE(write_file(KNOBS, "delay", "0"));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	/* It was left there at all. */
	EXPECT_LT(kept, knob("kept"));
	EXPECT_EQ(WORD, seen);
}

FIXTURE(ext4)
{
	int fd;		/* a file of PAGES pages */
	char root[32];	/* where cgroup2 is mounted, if a test needs it */
};

/* mkfs.ext4 and mount take long where the kernel is emulated. */
#define EXT4_TIMEOUT	180
#define PAGES		16

FIXTURE_SETUP(ext4)
{
	char dir[] = "/tmp/guard.XXXXXX", command[256], path[96], *data;
	const ssize_t size = PAGES * getpagesize();
	int ret;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_NE(NULL, mkdtemp(dir));
	snprintf(command, sizeof(command), "truncate -s 16M %s.img && mkfs.ext4 -q -b 4096 %s.img && "
		 "mount -o loop %s.img %s", dir, dir, dir, dir);
	ret = system(command);
	snprintf(path, sizeof(path), "%s/file", dir);
	self->fd = ret ? -1 : open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	snprintf(command, sizeof(command), "umount -l %s; rmdir %s; rm -f %s.img", dir, dir, dir);
	ret = system(command);
	if (self->fd < 0)
		SKIP(return, "no ext4");
	data = malloc(size);
	ASSERT_NE(NULL, data);
	memset(data, 's', size);
	ASSERT_EQ(size, write(self->fd, data, size));
	ASSERT_EQ(0, fsync(self->fd));
	free(data);
}

FIXTURE_TEARDOWN(ext4)
{
	char dir[64];

	if (!self->root[0])
		return;
	write_file(self->root, "cgroup.procs", "0");
	snprintf(dir, sizeof(dir), "%s/guard", self->root);
	rmdir(dir);
	umount2(self->root, MNT_DETACH);
	rmdir(self->root);
}

/* Reclaim drops pages of a file that was read under a guard, and discards anonymous ones. */
TEST_F_TIMEOUT(ext4, reclaimed, EXT4_TIMEOUT)
{
	const size_t psz = getpagesize();
	char dir[64], byte;
	unsigned int i, gone = 0;
	long frozen = knob("frozen");
	char *anon;

	/* LRU batches are a CPU's own: MADV_FREE passes over pages in that of another. */
	ASSERT_EQ(0, stay_here());
	snprintf(self->root, sizeof(self->root), "/tmp/guard.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->root));
	snprintf(dir, sizeof(dir), "%s/guard", self->root);
	if (mount("cgroup2", self->root, "cgroup2", 0, NULL) ||
	    !write_file(self->root, "cgroup.subtree_control", "+memory") || mkdir(dir, 0755))
		SKIP(return, "needs memory cgroups");
	ASSERT_TRUE(write_file(dir, "cgroup.procs", "0"));
	/* Pages belong to the cgroup of the task that brings them in. */
	ASSERT_EQ(0, posix_fadvise(self->fd, 0, 0, POSIX_FADV_DONTNEED));
	anon = mmap(NULL, PAGES * psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, anon);
	memset(anon, 'a', PAGES * psz);
	read_guarded(_metadata, self->fd);
	for (i = 0; i < PAGES; i++)
		ASSERT_EQ(1, pread(self->fd, &byte, 1, i * psz));
	ASSERT_EQ(0, madvise(anon, PAGES * psz, MADV_FREE));
	/* It fails where it reclaims less. */
	for (i = 0; i < 3; i++)
		write_file(dir, "memory.reclaim", "1M");
	for (i = 0; i < PAGES; i++) {
		gone += !anon[i * psz];
		EXPECT_TRUE(!anon[i * psz] || anon[i * psz] == 'a');
		ASSERT_EQ(1, pread(self->fd, &byte, 1, i * psz));
		EXPECT_EQ('s', byte);
	}
	EXPECT_LT(0U, gone);
	/* Both were in one batch. */
	if (frozen >= 0)
		EXPECT_LT(frozen, knob("frozen"));
}

/* memory_failure() finds no reference but its own to a page that was read under a guard. */
TEST_F_TIMEOUT(ext4, poisoned, EXT4_TIMEOUT)
{
	int err = 0;
	char *map;

	read_guarded(_metadata, self->fd);
	map = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ('s', map[0]);
	if (madvise(map, getpagesize(), MADV_HWPOISON))
		err = errno;
	if (err == EINVAL)
		SKIP(return, "needs CONFIG_MEMORY_FAILURE");
	EXPECT_EQ(0, err) {
		TH_LOG("the page is still in use: %s", strerror(err));
	}
}

TEST_HARNESS_MAIN
