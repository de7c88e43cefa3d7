/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What our tests of pipes have in common: patterns, threads, buffers with missing
 * pages, memory cgroups.
 *
 * Most tests run twice.  With __GFP_ACCOUNT, some ways to allocate pages
 * (e.g. alloc_pages_bulk()) behave differently once a memory cgroup other than
 * the root exists, so the child_memcg variant runs in one of its own, while
 * the root_memcg variant runs in the root if it may go there, or else in
 * whatever cgroup it was started in.
 *
 * All data are patterns in which every byte depends on who wrote it and on its
 * position, and all data are verified.
 */
#ifndef PIPE_REGRESS_H
#define PIPE_REGRESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Signed, as are all lengths here, because of what they are compared with. */
#define ARRAY_SIZE(arr)		((ssize_t)(sizeof(arr) / sizeof((arr)[0])))

#include "kselftest_harness.h"

/* No program needs all of these. */
#pragma GCC diagnostic ignored "-Wunused-function"

#ifndef O_NOTIFICATION_PIPE
#define O_NOTIFICATION_PIPE	O_EXCL
#endif

#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL		0x00000100
#endif

/* What a pipe has by default, and what an unprivileged user may ask for. */
#define DEF_SLOTS		16
#define MAX_SIZE		(1024 * 1024)
#define BIG_SLOTS		256

/* How long to wait for something which ought to happen at once. */
#define WAIT_MS			20000
/* For tests which do more work; emulation with KASAN is very slow. */
#define LONG_TIMEOUT		180

/* The pattern of the pages which are only written to fill up a pipe. */
#define FILLER			0xf111u

static ssize_t psz;

static ssize_t max(ssize_t a, ssize_t b)
{
	return a > b ? a : b;
}

static ssize_t min(ssize_t a, ssize_t b)
{
	return a < b ? a : b;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000L + ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
	struct timespec ts = { .tv_nsec = ms * 1000000 };

	nanosleep(&ts, NULL);
}

/* Poll for a condition; evaluates to whether it came true in time. */
#define WAIT_FOR(cond) ({					\
	long __end = now_ms() + WAIT_MS;			\
	bool __ok;						\
								\
	while (!(__ok = (cond)) && now_ms() < __end)		\
		pause_ms(1);					\
	__ok;							\
})

/*
 * Patterns
 */

static unsigned char pattern(unsigned int seed, ssize_t pos)
{
	return (((uint32_t)pos + seed * 40503u) * 2654435761u) >> 24;
}

static void fill(unsigned char *buf, ssize_t len, unsigned int seed, ssize_t pos)
{
	ssize_t i;

	for (i = 0; i < len; i++)
		buf[i] = pattern(seed, pos + i);
}

/* The index of the first wrong byte, or -1 */
static ssize_t mismatch(const unsigned char *buf, ssize_t len, unsigned int seed,
			ssize_t pos)
{
	ssize_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != pattern(seed, pos + i))
			return i;
	return -1;
}

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/*
 * Small files: cgroup, debugfs and proc
 */

static int write_file_at(const char *dir, const char *name, const char *val)
{
	char path[PATH_MAX];
	ssize_t ret;
	int fd, err;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, val, strlen(val));
	err = errno;
	close(fd);
	return ret < 0 ? -err : 0;
}

static int read_file_at(const char *dir, const char *name, char *val, ssize_t size)
{
	char path[PATH_MAX];
	ssize_t ret;
	int fd, err;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = read(fd, val, size - 1);
	err = errno;
	close(fd);
	if (ret < 0)
		return -err;
	val[ret] = '\0';
	return 0;
}

static bool has_word(const char *list, const char *word)
{
	ssize_t len = strlen(word);
	const char *p = list;

	while ((p = strstr(p, word))) {
		if ((p == list || isspace((unsigned char)p[-1])) &&
		    (!p[len] || isspace((unsigned char)p[len])))
			return true;
		p += len;
	}
	return false;
}

/* A file system which is mounted somewhere, or a private mount of it. */
struct fs_mount {
	char path[128];
	bool mounted;
};

static bool find_mount(const char *type, struct fs_mount *m)
{
	char fstype[64], line[1024];
	bool found = false;
	FILE *f;

	f = fopen("/proc/self/mounts", "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %127s %63s", m->path, fstype) == 2 &&
			!strcmp(fstype, type);
	fclose(f);
	return found;
}

static int make_temp_dir(char *path, ssize_t size)
{
	const char *tmp = getenv("TMPDIR");

	if (snprintf(path, size, "%s/pipe_test.XXXXXX", tmp ?: "/tmp") >= (int)size)
		return -ENAMETOOLONG;
	return mkdtemp(path) ? 0 : -errno;
}

static int get_mount(const char *type, struct fs_mount *m)
{
	int ret;

	if (find_mount(type, m))
		return 0;

	ret = make_temp_dir(m->path, sizeof(m->path));
	if (ret)
		return ret;
	if (mount(type, m->path, type, 0, NULL)) {
		ret = -errno;
		rmdir(m->path);
		return ret;
	}
	m->mounted = true;
	return 0;
}

static void put_mount(struct fs_mount *m)
{
	if (!m->mounted)
		return;
	umount2(m->path, MNT_DETACH);
	rmdir(m->path);
	m->mounted = false;
}

/*
 * Fixture
 */

static const char * const fault_knobs[] = {
	"min-order", "ignore-gfp-highmem", "ignore-gfp-wait", "verbose",
};

struct child {
	struct fs_mount cgroup;
	char memcg[256];
	bool memory_enabled;
};

FIXTURE(pipe)
{
	int p[2];
	struct child child;
	/* Undone by the parent, so that a failed assertion leaves no traces. */
	struct fs_mount debugfs;
	char fault_dir[256];
	char fault_saved[ARRAY_SIZE(fault_knobs)][32];
	char temp_dir[128];
};

FIXTURE_VARIANT(pipe)
{
	bool child_memcg;
};

FIXTURE_VARIANT_ADD(pipe, root_memcg)
{
	.child_memcg = false,
};

FIXTURE_VARIANT_ADD(pipe, child_memcg)
{
	.child_memcg = true,
};

static void memcg_cleanup(struct child *child)
{
	if (child->memcg[0]) {
		write_file_at(child->memcg, "cgroup.kill", "1");
		(void)WAIT_FOR(!rmdir(child->memcg) || errno != EBUSY);
		child->memcg[0] = '\0';
	}
	if (child->memory_enabled) {
		write_file_at(child->cgroup.path, "cgroup.subtree_control", "-memory");
		child->memory_enabled = false;
	}
	put_mount(&child->cgroup);
}

/* Returns NULL, or which step failed, with the error in errno. */
static const char *memcg_enter(struct child *child)
{
	char buf[1024];
	int ret;

	ret = get_mount("cgroup2", &child->cgroup);
	if (ret) {
		errno = -ret;
		return "mount of cgroup2";
	}

	ret = read_file_at(child->cgroup.path, "cgroup.controllers", buf, sizeof(buf));
	if (!ret && !has_word(buf, "memory"))
		ret = -EOPNOTSUPP;
	if (ret) {
		errno = -ret;
		return "look for the memory controller in cgroup2";
	}

	/*
	 * The root cgroup may have processes of its own and still enable
	 * controllers for its children.  If this is merely the root of a
	 * cgroup namespace with processes in it, then this fails.
	 */
	ret = read_file_at(child->cgroup.path, "cgroup.subtree_control", buf, sizeof(buf));
	if (!ret && !has_word(buf, "memory")) {
		ret = write_file_at(child->cgroup.path, "cgroup.subtree_control",
				    "+memory");
		child->memory_enabled = !ret;
	}
	if (ret) {
		errno = -ret;
		return "enable of the memory controller";
	}

	snprintf(buf, sizeof(buf), "%s/pipe_test.%d", child->cgroup.path, getpid());
	if (mkdir(buf, 0755))
		return "mkdir of a memory cgroup";
	memcpy(child->memcg, buf, sizeof(child->memcg) - 1);

	ret = write_file_at(child->memcg, "cgroup.procs", "0");
	if (ret) {
		errno = -ret;
		return "move to the memory cgroup";
	}
	return NULL;
}

FIXTURE_SETUP(pipe)
{
	psz = sysconf(_SC_PAGESIZE);

	if (variant->child_memcg) {
		const char *step = memcg_enter(&self->child);

		if (step) {
			int err = errno;

			/* There is no teardown after a setup which skips. */
			memcg_cleanup(&self->child);
			SKIP(return, "%s failed: %s", step, strerror(err));
		}
	} else if (find_mount("cgroup2", &self->child.cgroup)) {
		/* Only root can, and it does not matter much. */
		write_file_at(self->child.cgroup.path, "cgroup.procs", "0");
	}

	ASSERT_EQ(0, pipe2(self->p, O_CLOEXEC));
}

FIXTURE_TEARDOWN_PARENT(pipe)
{
	ssize_t i;

	for (i = 0; i < ARRAY_SIZE(fault_knobs); i++)
		if (self->fault_saved[i][0])
			write_file_at(self->fault_dir, fault_knobs[i],
				      self->fault_saved[i]);
	put_mount(&self->debugfs);

	if (self->temp_dir[0]) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/fifo", self->temp_dir);
		unlink(path);
		rmdir(self->temp_dir);
	}

	memcg_cleanup(&self->child);
}

/* What is about copying is the same in every memory cgroup. */
FIXTURE(copy)
{
	int p[2];
};

FIXTURE_SETUP(copy)
{
	psz = sysconf(_SC_PAGESIZE);
	ASSERT_EQ(0, pipe2(self->p, O_CLOEXEC));
}

FIXTURE_TEARDOWN(copy)
{
	close(self->p[0]);
	close(self->p[1]);
}

/*
 * Helpers which work on a pipe
 */

static void set_flag(struct __test_metadata *_metadata, int fd, int flag, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	ASSERT_GE(flags, 0);
	flags = on ? flags | flag : flags & ~flag;
	ASSERT_EQ(0, fcntl(fd, F_SETFL, flags));
}

static ssize_t nr_slots(int fd)
{
	return fcntl(fd, F_GETPIPE_SZ) / psz;
}

/* Some tests need to know the size of the ring, so do not rely on defaults. */
static void set_slots(struct __test_metadata *_metadata, int fd, ssize_t nr)
{
	ASSERT_EQ((int)(nr * psz), fcntl(fd, F_SETPIPE_SZ, (int)(nr * psz)));
	ASSERT_EQ(nr, nr_slots(fd));
}

/* As large as it gets, but not larger than BIG_SLOTS */
static ssize_t set_big(int fd)
{
	if (fcntl(fd, F_SETPIPE_SZ, (int)(BIG_SLOTS * psz)) < 0)
		(void)fcntl(fd, F_SETPIPE_SZ, (int)max(MAX_SIZE, psz));
	return nr_slots(fd);
}

static ssize_t nr_bytes(struct __test_metadata *_metadata, int fd)
{
	int n = -1;

	ASSERT_EQ(0, ioctl(fd, FIONREAD, &n));
	ASSERT_GE(n, 0);
	return n;
}

static unsigned char *alloc_buf(struct __test_metadata *_metadata, ssize_t len)
{
	unsigned char *buf = malloc(len + 1);

	ASSERT_NE(NULL, buf);
	return buf;
}

/* Write a piece of a pattern; returns what write() returned. */
static ssize_t try_put(struct __test_metadata *_metadata, int fd, ssize_t len,
		       unsigned int seed, ssize_t pos)
{
	unsigned char *buf = alloc_buf(_metadata, len);
	ssize_t ret;
	int err;

	fill(buf, len, seed, pos);
	ret = write(fd, buf, len);
	err = errno;
	free(buf);
	errno = err;
	return ret;
}

static void put(struct __test_metadata *_metadata, int fd, ssize_t len,
		unsigned int seed, ssize_t pos)
{
	ssize_t ret = try_put(_metadata, fd, len, seed, pos);

	ASSERT_EQ(len, ret) {
		TH_LOG("write of %zd bytes: %s", len, ret < 0 ? strerror(errno) : "short");
	}
}

/* Read exactly @len bytes in reads of at most @chunk bytes and verify them. */
static void get_chunks(struct __test_metadata *_metadata, int fd, ssize_t len,
		       unsigned int seed, ssize_t pos, ssize_t chunk)
{
	unsigned char *buf = alloc_buf(_metadata, chunk);
	ssize_t done = 0;

	while (done < len) {
		ssize_t want = min(len - done, chunk);
		ssize_t ret = read(fd, buf, want);

		ASSERT_GT(ret, 0) {
			TH_LOG("at %zd of %zd bytes: %s", done, len,
			       ret ? strerror(errno) : "end of file");
		}
		ASSERT_LE(ret, want);
		ASSERT_EQ(-1, mismatch(buf, ret, seed, pos + done)) {
			TH_LOG("wrong byte at %zd of %zd",
			       done + mismatch(buf, ret, seed, pos + done), len);
		}
		done += ret;
	}
	free(buf);
}

static void get(struct __test_metadata *_metadata, int fd, ssize_t len,
		unsigned int seed, ssize_t pos)
{
	get_chunks(_metadata, fd, len, seed, pos, len ?: 1);
}

static bool polls(int fd, short event)
{
	struct pollfd pfd = { .fd = fd, .events = event };

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & event);
}

static void expect_empty(struct __test_metadata *_metadata, int fd)
{
	ASSERT_EQ(0, nr_bytes(_metadata, fd));
	ASSERT_FALSE(polls(fd, POLLIN));
}

/*
 * Write whole pages until the pipe is full; returns how many.  Whole pages are
 * never merged, so this is the number of free slots.
 */
static ssize_t fill_slots(struct __test_metadata *_metadata, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	ssize_t n = 0;
	ssize_t ret;

	set_flag(_metadata, fd, O_NONBLOCK, true);
	while ((ret = try_put(_metadata, fd, psz, FILLER, 0)) == psz)
		n++;
	ASSERT_EQ(-1, ret);
	ASSERT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, fcntl(fd, F_SETFL, flags));
	return n;
}

static void drain_filler(struct __test_metadata *_metadata, int fd, ssize_t n)
{
	while (n--)
		get(_metadata, fd, psz, FILLER, 0);
}

/*
 * Expect that the pipe holds exactly @nr slots with these lengths and the
 * pattern from @pos on, and consume them.
 *
 * A slot becomes free, and with it a full pipe becomes writable, when its last
 * byte is read.
 */
static void expect_layout(struct __test_metadata *_metadata, const int p[2],
			  unsigned int seed, ssize_t pos, const ssize_t *lens,
			  ssize_t nr)
{
	ssize_t slots = nr_slots(p[1]);
	ssize_t i;

	ASSERT_EQ(slots - nr, fill_slots(_metadata, p[1]));

	for (i = 0; i < nr; i++) {
		get(_metadata, p[0], lens[i] - 1, seed, pos);
		ASSERT_FALSE(polls(p[1], POLLOUT)) {
			TH_LOG("slot %zd is shorter than %zd", i, lens[i]);
		}
		get(_metadata, p[0], 1, seed, pos + lens[i] - 1);
		ASSERT_TRUE(polls(p[1], POLLOUT)) {
			TH_LOG("slot %zd is longer than %zd", i, lens[i]);
		}
		ASSERT_EQ(1, fill_slots(_metadata, p[1]));
		pos += lens[i];
	}

	drain_filler(_metadata, p[0], slots);
	expect_empty(_metadata, p[0]);
}

#define EXPECT_LAYOUT(p, seed, pos, ...) do {				\
	const ssize_t __lens[] = { __VA_ARGS__ };			\
									\
	expect_layout(_metadata, p, seed, pos, __lens, ARRAY_SIZE(__lens)); \
} while (0)

/* After an error, the pipe must be as good as new. */
static void expect_works(struct __test_metadata *_metadata, const int p[2])
{
	expect_empty(_metadata, p[0]);
	put(_metadata, p[1], 2 * psz + 77, 99, 0);
	EXPECT_LAYOUT(p, 99, 0, psz, psz, 77);
}

/* User-Mode Linux reads what is mapped, whatever its protection. */
static bool prot_none_faults(struct __test_metadata *_metadata)
{
	unsigned char *map = mmap(NULL, psz, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	bool ret;
	int p[2];

	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, mprotect(map, psz, PROT_NONE));
	ASSERT_EQ(0, pipe(p));
	ret = write(p[1], map, 1) < 0;
	close(p[0]);
	close(p[1]);
	munmap(map, psz);
	return ret;
}

/* Accesses fail, and nobody else is given the place: a file which has no pages. */
static void map_nothing_at(struct __test_metadata *_metadata, void *addr, ssize_t len)
{
	int fd = memfd_create("nothing", MFD_CLOEXEC);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(addr, mmap(addr, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0));
	close(fd);
}

/* Make memory accessible which was not; what it had is gone. */
static void map_at(struct __test_metadata *_metadata, void *addr, ssize_t len)
{
	ASSERT_EQ(addr, mmap(addr, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0));
}

/*
 * A buffer of @good bytes which ends right before memory which cannot be
 * accessed, either because of its protection or because there is nothing.
 * It is not a kernel address, which would be refused before the pipe sees it.
 */
struct guarded {
	unsigned char *map;
	ssize_t map_len;
	unsigned char *buf;
};

static void guarded_alloc(struct __test_metadata *_metadata, struct guarded *g,
			  ssize_t good, ssize_t bad, bool unmap)
{
	ssize_t good_len = (good + psz - 1) / psz * psz;
	ssize_t bad_len = (bad + psz - 1) / psz * psz;
	int ret = 0;

	g->map_len = good_len + bad_len;
	g->map = mmap(NULL, g->map_len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, g->map);
	if (unmap)
		ret = munmap(g->map + good_len, bad_len);
	else if (prot_none_faults(_metadata))
		ret = mprotect(g->map + good_len, bad_len, PROT_NONE);
	else
		map_nothing_at(_metadata, g->map + good_len, bad_len);
	ASSERT_EQ(0, ret);
	g->buf = g->map + good_len - good;
}

static void guarded_free(struct guarded *g)
{
	munmap(g->map, g->map_len);
}

/*
 * Threads: one system call, or a loop of reads, in the background.
 */

struct io {
	pthread_t thread;
	int fd;
	unsigned char *buf;
	ssize_t len;
	bool is_read;
	bool is_query;	/* how many bytes there are, with FIONREAD */
	bool all;	/* repeat until all of @len is done */
	const ssize_t *lens;	/* of the calls, in turn */
	ssize_t nr_lens;
	ssize_t seg;	/* writev() of segments of this length */
	ssize_t ret;
	int err;
	pid_t tid;
	bool done;
};

static ssize_t write_in_segments(int fd, unsigned char *buf, ssize_t len, ssize_t seg)
{
	struct iovec iov[256];
	ssize_t n = 0;
	ssize_t pos;

	for (pos = 0; pos < len && n < ARRAY_SIZE(iov); pos += seg, n++) {
		iov[n].iov_base = buf + pos;
		iov[n].iov_len = min(seg, len - pos);
	}
	return writev(fd, iov, n);
}

static void *io_thread(void *arg)
{
	struct io *io = arg;
	ssize_t sum = 0;
	ssize_t i = 0;
	ssize_t ret;

	__atomic_store_n(&io->tid, (pid_t)syscall(__NR_gettid), __ATOMIC_RELEASE);
	do {
		ssize_t len = io->len - sum;
		int n;

		if (io->nr_lens)
			len = min(len, io->lens[i++ % io->nr_lens]);
		if (io->is_query)
			ret = ioctl(io->fd, FIONREAD, &n) ? -1 : n;
		else if (io->is_read)
			ret = read(io->fd, io->buf + sum, len);
		else if (io->seg)
			ret = write_in_segments(io->fd, io->buf + sum, len, io->seg);
		else
			ret = write(io->fd, io->buf + sum, len);
		io->err = ret < 0 ? errno : 0;
		if (ret > 0)
			sum += ret;
	} while (io->all && ret > 0 && sum < io->len);
	io->ret = ret < 0 ? ret : sum;
	__atomic_store_n(&io->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void io_start(struct __test_metadata *_metadata, struct io *io)
{
	io->done = false;
	io->tid = 0;
	ASSERT_EQ(0, pthread_create(&io->thread, NULL, io_thread, io));
}

static bool io_done(struct io *io)
{
	return __atomic_load_n(&io->done, __ATOMIC_ACQUIRE);
}

static char task_state(pid_t tid)
{
	char name[64], stat[512], *p;

	snprintf(name, sizeof(name), "%d/stat", tid);
	if (!tid || read_file_at("/proc", name, stat, sizeof(stat)))
		return '\0';
	p = strrchr(stat, ')');
	return p && p[1] == ' ' ? p[2] : '\0';
}

/* Interruptible sleep is what waiting for a pipe is; a mutex shows as D. */
static char io_state(struct io *io)
{
	return task_state(__atomic_load_n(&io->tid, __ATOMIC_ACQUIRE));
}

static bool io_sleeps(struct io *io)
{
	return io_state(io) == 'S';
}

static void io_wait_blocked(struct __test_metadata *_metadata, struct io *io)
{
	ASSERT_TRUE(WAIT_FOR(io_done(io) || io_sleeps(io)));
	ASSERT_FALSE(io_done(io)) {
		TH_LOG("did not block: %zd (%s)", io->ret, strerror(io->err));
	}
}

static void io_join(struct __test_metadata *_metadata, struct io *io)
{
	ASSERT_TRUE(WAIT_FOR(io_done(io)));
	ASSERT_EQ(0, pthread_join(io->thread, NULL));
}

static void io_init_write(struct __test_metadata *_metadata, struct io *io, int fd,
			  ssize_t len, unsigned int seed, ssize_t pos)
{
	memset(io, 0, sizeof(*io));
	io->fd = fd;
	io->len = len;
	io->buf = alloc_buf(_metadata, len);
	fill(io->buf, len, seed, pos);
}

static void io_init_read(struct __test_metadata *_metadata, struct io *io, int fd,
			 ssize_t len)
{
	memset(io, 0, sizeof(*io));
	io->fd = fd;
	io->len = len;
	io->buf = alloc_buf(_metadata, len);
	memset(io->buf, 0, len);
	io->is_read = true;
}

static void io_init_query(struct io *io, int fd)
{
	memset(io, 0, sizeof(*io));
	io->fd = fd;
	io->is_query = true;
}

/*
 * Writers which are stuck: pages of their buffers are missing, and page faults
 * wait for userfaultfd.
 */

struct lazy {
	int uffd;
	unsigned char *map;
	unsigned char *src;	/* what the pages of map are to contain */
	ssize_t nr;
	struct io writer;
};

/* Returns -1, and why in *reason. */
static int uffd_open(struct __test_metadata *_metadata, const char **reason)
{
	struct uffdio_api api = { .api = UFFD_API };
	int uffd;

	/* For faults of the kernel, that takes privileges. */
	uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0)
		*reason = errno == EPERM ? "userfaultfd is not permitted" :
					   "there is no userfaultfd";
	else
		ASSERT_EQ(0, ioctl(uffd, UFFDIO_API, &api));
	return uffd;
}

/* Put pages in place, and let those go on who wait for them. */
static void lazy_provide(struct __test_metadata *_metadata, struct lazy *l,
			 uint64_t pages)
{
	ssize_t i;

	for (i = 0; i < l->nr; i++) {
		struct uffdio_copy copy = {
			.dst = (unsigned long)l->map + i * psz,
			.src = (unsigned long)l->src + i * psz,
			.len = psz,
		};

		if (pages & (1ull << i) && ioctl(l->uffd, UFFDIO_COPY, &copy))
			ASSERT_EQ(EEXIST, errno);
	}
}

/* The buffer of a write of @len bytes of a pattern */
static void lazy_alloc(struct __test_metadata *_metadata, struct lazy *l, int uffd,
		       ssize_t len, unsigned int seed, ssize_t pos)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	memset(l, 0, sizeof(*l));
	l->uffd = uffd;
	l->nr = (len + psz - 1) / psz;
	ASSERT_LE(l->nr, 64);
	l->map = mmap(NULL, l->nr * psz, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, l->map);
	/* A huge page would provide the missing ones, too. */
	madvise(l->map, l->nr * psz, MADV_NOHUGEPAGE);
	l->src = alloc_buf(_metadata, l->nr * psz);
	fill(l->src, l->nr * psz, seed, pos);
	reg.range.start = (unsigned long)l->map;
	reg.range.len = l->nr * psz;
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_REGISTER, &reg));
	l->writer.buf = l->map;
	l->writer.len = len;
}

static void lazy_free(struct lazy *l)
{
	munmap(l->map, l->nr * psz);
	free(l->src);
}

/* Have all pages in place but the @missing. */
static void lazy_arm(struct __test_metadata *_metadata, struct lazy *l,
		     uint64_t missing)
{
	ASSERT_EQ(0, madvise(l->map, l->nr * psz, MADV_DONTNEED));
	lazy_provide(_metadata, l, ~missing);
}

/* The page for which somebody waits, or -1 */
static ssize_t lazy_fault(struct __test_metadata *_metadata, struct lazy *l)
{
	struct uffd_msg msg;

	if (read(l->uffd, &msg, sizeof(msg)) != sizeof(msg)) {
		ASSERT_EQ(EAGAIN, errno);
		return -1;
	}
	ASSERT_EQ(UFFD_EVENT_PAGEFAULT, msg.event);
	return (ssize_t)(msg.arg.pagefault.address - (unsigned long)l->map) / psz;
}

static void lazy_wait_stuck(struct __test_metadata *_metadata, struct lazy *l)
{
	ssize_t page = -1;

	ASSERT_TRUE(WAIT_FOR((page = lazy_fault(_metadata, l)) >= 0 ||
			     io_done(&l->writer)));
	ASSERT_GE(page, 0) {
		TH_LOG("did not need the page: %zd (%s)", l->writer.ret,
		       strerror(l->writer.err));
	}
	ASSERT_LT(page, l->nr);
	ASSERT_FALSE(io_done(&l->writer));
}

/* Start the write, and wait until it is stuck. */
static void lazy_start(struct __test_metadata *_metadata, struct lazy *l, int fd,
		       uint64_t missing)
{
	lazy_arm(_metadata, l, missing);
	l->writer.fd = fd;
	io_start(_metadata, &l->writer);
	lazy_wait_stuck(_metadata, l);
}

/* The same for a reader of up to a page; old kernels hold the mutex meanwhile. */
static void lazy_start_read(struct __test_metadata *_metadata, struct lazy *l,
			    int uffd, int fd, size_t len)
{
	lazy_alloc(_metadata, l, uffd, len, 0, 0);
	l->writer.is_read = true;
	lazy_start(_metadata, l, fd, 1);
}

/*
 * Whether who is stuck holds the mutex: then @query, a thread that asks how many
 * bytes there are, waits for it, and is to be joined in the end.
 */
static bool holds_mutex(struct __test_metadata *_metadata, int fd, struct io *query)
{
	int n;

	io_init_query(query, fd);
	io_start(_metadata, query);
	/* Nobody else uses the pipe, so no mutex should be in its way. */
	for (n = 0; n < 1000 && !io_done(query); n++) {
		pause_ms(1);
		if (io_state(query) != 'D')
			n = 0;
	}
	if (!io_done(query))
		return true;
	io_join(_metadata, query);
	return false;
}

/* Let it go on. */
static void lazy_resolve(struct __test_metadata *_metadata, struct lazy *l)
{
	lazy_provide(_metadata, l, ~0ull);
}

/* For a writer which does not block, while others do */
static int reopen_nonblock(struct __test_metadata *_metadata, int fd)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_GE(ret, 0);
	return ret;
}

/*
 * Whether a writer copies its data, that on @page in any case, without the mutex,
 * so that others can use the pipe while it is stuck.  It must be empty.
 */
static bool stuck_is_unlocked(struct __test_metadata *_metadata, const int p[2],
			      int uffd, ssize_t len, ssize_t page)
{
	struct io query;
	struct lazy l;
	bool ret;

	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_start(_metadata, &l, p[1], 1ull << page);
	ret = !holds_mutex(_metadata, p[0], &query);
	lazy_resolve(_metadata, &l);
	if (!ret)
		io_join(_metadata, &query);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(len, l.writer.ret);
	get(_metadata, p[0], len, 1, 0);
	lazy_free(&l);
	return ret;
}

static bool copies_unlocked(struct __test_metadata *_metadata, int uffd)
{
	bool ret;
	int p[2];

	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	ret = stuck_is_unlocked(_metadata, p, uffd, psz, 0);
	close(p[0]);
	close(p[1]);
	return ret;
}

/* For tests which change the pipe while a writer is stuck */
static int uffd_open_unlocked(struct __test_metadata *_metadata, const char **reason)
{
	int uffd = uffd_open(_metadata, reason);

	if (uffd >= 0 && !copies_unlocked(_metadata, uffd)) {
		close(uffd);
		*reason = "this kernel copies with the mutex held";
		return -1;
	}
	return uffd;
}

/*
 * Signals
 */

static int nr_signals;

static void count_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&nr_signals, 1, __ATOMIC_SEQ_CST);
}

static int signals(void)
{
	return __atomic_load_n(&nr_signals, __ATOMIC_SEQ_CST);
}

static void count_signals(struct __test_metadata *_metadata, int sig, int flags)
{
	struct sigaction sa = {
		.sa_handler = count_signal,
		.sa_flags = flags,
	};

	ASSERT_EQ(0, sigaction(sig, &sa, NULL));
	__atomic_store_n(&nr_signals, 0, __ATOMIC_SEQ_CST);
}

/*
 * Records, for tests with several writers
 */

struct record {
	unsigned int magic;
	unsigned int writer;
	unsigned int seq;
	unsigned int len;
};

#define RECORD_MAGIC	0x50495045u

static unsigned int record_seed(const struct record *r)
{
	return r->writer * 1000003 + r->seq * 7 + r->len;
}

static void record_fill(unsigned char *buf, ssize_t len, unsigned int writer,
			unsigned int seq)
{
	struct record r = {
		.magic = RECORD_MAGIC, .writer = writer, .seq = seq, .len = len,
	};

	memcpy(buf, &r, sizeof(r));
	fill(buf + sizeof(r), len - sizeof(r), record_seed(&r), sizeof(r));
}

#define MAX_WRITERS	4u

/* Take @data apart into whole, undamaged records which are in order. */
static void expect_records(struct __test_metadata *_metadata,
			   const unsigned char *data, ssize_t len,
			   unsigned int *next_seq)
{
	while (len) {
		struct record r;

		ASSERT_GE(len, (ssize_t)sizeof(r));
		memcpy(&r, data, sizeof(r));
		ASSERT_EQ(RECORD_MAGIC, r.magic);
		ASSERT_LT(r.writer, MAX_WRITERS);
		ASSERT_EQ(next_seq[r.writer], r.seq);
		ASSERT_GE(r.len, sizeof(r));
		ASSERT_LE(r.len, len);
		ASSERT_EQ(-1, mismatch(data + sizeof(r), r.len - sizeof(r),
				       record_seed(&r), sizeof(r))) {
			TH_LOG("writer %u, record %u of %u bytes is torn",
			       r.writer, r.seq, r.len);
		}
		next_seq[r.writer]++;
		data += r.len;
		len -= r.len;
	}
}

struct record_writer {
	struct __test_metadata *_metadata;
	pthread_t thread;
	pthread_barrier_t *barrier;
	int fd;
	unsigned int id;
	unsigned int seq;
	unsigned int count;
	ssize_t min_len;
	ssize_t max_len;
};

static ssize_t record_len(const struct record_writer *w, unsigned int seq)
{
	unsigned int rnd = w->id * 77 + seq;

	/* The limit itself is the most interesting length. */
	if (seq % 4 == 3)
		return w->max_len;
	return w->min_len + next_random(&rnd) % (w->max_len - w->min_len + 1);
}

static void *record_thread(void *arg)
{
	struct record_writer *w = arg;
	struct __test_metadata *_metadata = w->_metadata;
	unsigned char *buf = alloc_buf(_metadata, w->count * w->max_len);
	unsigned int i;

	/* Have everything ready, in order to collide with the others. */
	for (i = 0; i < w->count; i++)
		record_fill(buf + i * w->max_len, record_len(w, w->seq + i),
			    w->id, w->seq + i);

	pthread_barrier_wait(w->barrier);
	for (i = 0; i < w->count; i++, w->seq++) {
		ssize_t len = record_len(w, w->seq);
		ssize_t ret;

		while ((ret = write(w->fd, buf + i * w->max_len, len)) < 0) {
			struct pollfd pfd = { .fd = w->fd, .events = POLLOUT };

			/* Only if the pipe is not blocking */
			ASSERT_EQ(EAGAIN, errno);
			ASSERT_EQ(1, poll(&pfd, 1, WAIT_MS));
		}
		ASSERT_EQ(len, ret);
	}
	free(buf);
	return NULL;
}

/* Returns how many bytes they are going to write. */
static ssize_t start_record_writers(struct __test_metadata *_metadata,
				    struct record_writer *w, unsigned int nr,
				    pthread_barrier_t *barrier)
{
	ssize_t total = 0;
	unsigned int i, j;

	ASSERT_EQ(0, pthread_barrier_init(barrier, NULL, nr + 1));
	for (i = 0; i < nr; i++) {
		w[i]._metadata = _metadata;
		w[i].barrier = barrier;
		w[i].id = i;
		for (j = 0; j < w[i].count; j++)
			total += record_len(&w[i], w[i].seq + j);
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, record_thread, &w[i]));
	}
	return total;
}

static void join_record_writers(struct __test_metadata *_metadata,
				struct record_writer *w, unsigned int nr,
				pthread_barrier_t *barrier)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
	pthread_barrier_destroy(barrier);
}

#endif
