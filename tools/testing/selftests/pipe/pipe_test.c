// SPDX-License-Identifier: GPL-2.0
/*
 * Semantics of anonymous pipes which user space relies on.
 *
 * Whether anon_pipe_write() and anon_pipe_read() allocate, copy and free pages
 * under pipe->mutex or without it must not be visible from user space, so nail
 * down everything which is visible: which bytes arrive, which errors win over
 * which, what a partial write counts, how writes are laid out in the slots of
 * the ring, who is woken up when, and that pages shared with somebody else are
 * never written to.  The expectations are those of Linux 6.18, which did all
 * of it under the mutex, including the odd ones.
 *
 * There is one exception: a write of a page or more has its data copied before
 * it takes the mutex, so that nobody has to wait for its page faults.  Where
 * that is not so, stuck_writer and stuck_waiter fail, and so do those of the same
 * name with _huge if only a part is copied before.  The wrong_guess tests change
 * the pipe between the copy and the mutex, and are skipped.
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

#include "../kselftest_harness.h"

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

/* The same for a reader of up to a page; it holds the mutex meanwhile. */
static void lazy_start_read(struct __test_metadata *_metadata, struct lazy *l,
			    int uffd, int fd, size_t len)
{
	lazy_alloc(_metadata, l, uffd, len, 0, 0);
	l->writer.is_read = true;
	lazy_start(_metadata, l, fd, 1);
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
	int n;

	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_start(_metadata, &l, p[1], 1ull << page);
	io_init_query(&query, p[0]);
	io_start(_metadata, &query);
	/* Nobody else uses the pipe, so no mutex should be in its way. */
	for (n = 0; n < 1000 && !io_done(&query); n++) {
		pause_ms(1);
		if (io_state(&query) != 'D')
			n = 0;
	}
	ret = io_done(&query);
	lazy_resolve(_metadata, &l);
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

/*
 * The tests
 */

TEST_F(pipe, roundtrip_lengths)
{
	const ssize_t chunks[] = {
		1, 7, 509, PIPE_BUF - 1, psz - 1, psz, psz + 1, 3 * psz + 5,
	};
	const ssize_t around[] = { PIPE_BUF, psz, 2 * psz, 3 * psz, 15 * psz,
				  16 * psz, 17 * psz };
	ssize_t slots = set_big(self->p[1]);
	unsigned int seed = 1;
	ssize_t i, len;

	for (i = 0; i < ARRAY_SIZE(around); i++) {
		for (len = around[i] - 2; len <= around[i] + 2; len++) {
			ssize_t chunk = chunks[seed % ARRAY_SIZE(chunks)];

			if ((len + psz - 1) / psz > slots)
				continue;
			/* Byte by byte is too slow for the longer ones. */
			if (len > 4 * psz)
				chunk = max(chunk, 509);
			put(_metadata, self->p[1], len, seed, 0);
			ASSERT_EQ(len, nr_bytes(_metadata, self->p[0]));
			get_chunks(_metadata, self->p[0], len, seed, 0, chunk);
			expect_empty(_metadata, self->p[0]);
			seed++;
		}
	}
	for (len = 1; len <= 3; len++) {
		put(_metadata, self->p[1], len, seed, 0);
		get(_metadata, self->p[0], len, seed, 0);
		expect_empty(_metadata, self->p[0]);
		seed++;
	}
}

/* End of file comes after the data, and not before the last writer is gone. */
TEST_F(pipe, end_of_file)
{
	int dup_fd = dup(self->p[1]);
	char c;

	ASSERT_GE(dup_fd, 0);
	put(_metadata, self->p[1], psz + 1, 1, 0);
	ASSERT_EQ(0, close(self->p[1]));
	ASSERT_FALSE(polls(self->p[0], POLLHUP));
	ASSERT_EQ(0, close(dup_fd));
	ASSERT_TRUE(polls(self->p[0], POLLHUP));
	ASSERT_TRUE(polls(self->p[0], POLLIN));
	get_chunks(_metadata, self->p[0], psz + 1, 1, 0, 1000);
	ASSERT_EQ(0, read(self->p[0], &c, 1));
	ASSERT_TRUE(polls(self->p[0], POLLHUP));
	ASSERT_FALSE(polls(self->p[0], POLLIN));
}

TEST_F(pipe, zero_length)
{
	struct guarded g;
	char c;

	count_signals(_metadata, SIGPIPE, 0);
	guarded_alloc(_metadata, &g, 0, psz, false);

	/* Neither blocks on an empty pipe, nor looks at the buffer. */
	ASSERT_EQ(0, read(self->p[0], &c, 0));
	ASSERT_EQ(0, read(self->p[0], g.buf, 0));
	ASSERT_EQ(0, write(self->p[1], &c, 0));
	ASSERT_EQ(0, write(self->p[1], g.buf, 0));
	expect_empty(_metadata, self->p[0]);

	/* Nor does it block on a full one. */
	fill_slots(_metadata, self->p[1]);
	ASSERT_EQ(0, write(self->p[1], &c, 0));
	ASSERT_EQ(0, read(self->p[0], &c, 0));

	/* Nor is it an error if there is nobody to read it. */
	ASSERT_EQ(0, close(self->p[0]));
	ASSERT_EQ(0, write(self->p[1], &c, 0));
	ASSERT_EQ(0, signals());
	guarded_free(&g);
}

/*
 * How writes are laid out in slots.  A write first puts its first
 * len % page size bytes at the end of the last slot, if all of them fit, and
 * then takes a slot per page.
 */
TEST_F(pipe, merge_layout)
{
	ssize_t unit = psz / 8;
	ssize_t i;

	set_slots(_metadata, self->p[1], DEF_SLOTS);

	/* Small writes share a slot, until it is full. */
	for (i = 0; i < 9; i++)
		put(_metadata, self->p[1], unit, 1, i * unit);
	ASSERT_EQ(9 * unit, nr_bytes(_metadata, self->p[0]));
	EXPECT_LAYOUT(self->p, 1, 0, psz, unit);

	/* It is the first bytes of a large write which are merged. */
	put(_metadata, self->p[1], 100, 2, 0);
	put(_metadata, self->p[1], psz + 200, 2, 100);
	EXPECT_LAYOUT(self->p, 2, 0, 300, psz);

	/* They just fit. */
	put(_metadata, self->p[1], psz - 1, 3, 0);
	put(_metadata, self->p[1], 2 * psz + 1, 3, psz - 1);
	EXPECT_LAYOUT(self->p, 3, 0, psz, psz, psz);

	/* They just do not fit: all or nothing. */
	put(_metadata, self->p[1], psz - 1, 4, 0);
	put(_metadata, self->p[1], 2 * psz + 2, 4, psz - 1);
	EXPECT_LAYOUT(self->p, 4, 0, psz - 1, psz, psz, 2);

	put(_metadata, self->p[1], 100, 5, 0);
	put(_metadata, self->p[1], psz - 99, 5, 100);
	EXPECT_LAYOUT(self->p, 5, 0, 100, psz - 99);

	/* Whole pages are never merged. */
	put(_metadata, self->p[1], 100, 6, 0);
	put(_metadata, self->p[1], 2 * psz, 6, 100);
	EXPECT_LAYOUT(self->p, 6, 0, 100, psz, psz);

	/* With nothing to merge with, the odd bytes come last... */
	put(_metadata, self->p[1], psz + 10, 7, 0);
	/* ...where the next write can be merged with them. */
	put(_metadata, self->p[1], psz + 20, 7, psz + 10);
	EXPECT_LAYOUT(self->p, 7, 0, psz, 30, psz);

	put(_metadata, self->p[1], psz + 10, 8, 0);
	put(_metadata, self->p[1], 3 * psz - 5, 8, psz + 10);
	put(_metadata, self->p[1], 5, 8, 4 * psz + 5);
	put(_metadata, self->p[1], 1, 8, 4 * psz + 10);
	EXPECT_LAYOUT(self->p, 8, 0, psz, 10, psz, psz, psz, 1);
}

/* Bytes which were read do not make room for others in the same slot. */
TEST_F(pipe, merge_after_read)
{
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	put(_metadata, self->p[1], psz - 100, 1, 0);
	get(_metadata, self->p[0], psz - 200, 1, 0);
	put(_metadata, self->p[1], 101, 1, psz - 100);
	EXPECT_LAYOUT(self->p, 1, psz - 200, 100, 101);

	put(_metadata, self->p[1], psz - 100, 2, 0);
	get(_metadata, self->p[0], psz - 200, 2, 0);
	put(_metadata, self->p[1], 100, 2, psz - 100);
	EXPECT_LAYOUT(self->p, 2, psz - 200, 200);

	/* Nor does anything remain of a slot which was read altogether. */
	put(_metadata, self->p[1], 100, 3, 0);
	get(_metadata, self->p[0], 100, 3, 0);
	put(_metadata, self->p[1], psz - 50, 3, 100);
	EXPECT_LAYOUT(self->p, 3, 100, psz - 50);
}

/* A pipe with no free slots can still have room for a merge. */
TEST_F(pipe, merge_into_full_pipe)
{
	ssize_t slots = DEF_SLOTS;
	ssize_t bytes = 100;
	struct guarded bad;
	ssize_t i;

	set_slots(_metadata, self->p[1], slots);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	guarded_alloc(_metadata, &bad, 0, 2 * psz, false);

	for (i = 0; i < slots - 1; i++)
		put(_metadata, self->p[1], psz, FILLER, 0);
	put(_metadata, self->p[1], 100, 1, 0);
	ASSERT_FALSE(polls(self->p[1], POLLOUT));

	put(_metadata, self->p[1], 50, 1, bytes);
	bytes += 50;

	/* A large write is cut short after the part which is merged. */
	ASSERT_EQ(30, try_put(_metadata, self->p[1], 2 * psz + 30, 1, bytes));
	bytes += 30;

	ASSERT_EQ(-1, try_put(_metadata, self->p[1], psz, 1, bytes));
	ASSERT_EQ(EAGAIN, errno);
	ASSERT_EQ(-1, try_put(_metadata, self->p[1], psz - bytes + 1, 1, bytes));
	ASSERT_EQ(EAGAIN, errno);

	/* It looks at the buffer only if it could be merged. */
	ASSERT_EQ(-1, write(self->p[1], bad.buf, 20));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(-1, write(self->p[1], bad.buf, psz + 20));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(-1, write(self->p[1], bad.buf, psz));
	ASSERT_EQ(EAGAIN, errno);
	ASSERT_EQ(-1, write(self->p[1], bad.buf, psz - bytes + 1));
	ASSERT_EQ(EAGAIN, errno);

	put(_metadata, self->p[1], psz - bytes, 1, bytes);

	drain_filler(_metadata, self->p[0], slots - 1);
	get(_metadata, self->p[0], psz, 1, 0);
	expect_works(_metadata, self->p);
	guarded_free(&bad);
}

TEST_F(pipe, packets)
{
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	int p[2];
	ssize_t i;

	ASSERT_EQ(0, pipe2(p, O_CLOEXEC | O_DIRECT | O_NONBLOCK));
	set_slots(_metadata, p[1], DEF_SLOTS);

	/* A packet per read, and what does not fit the buffer is lost. */
	put(_metadata, p[1], 100, 1, 0);
	put(_metadata, p[1], 50, 2, 0);
	put(_metadata, p[1], 20, 3, 0);
	ASSERT_EQ(170, nr_bytes(_metadata, p[0]));
	ASSERT_EQ(10, read(p[0], buf, 10));
	ASSERT_EQ(-1, mismatch(buf, 10, 1, 0));
	ASSERT_EQ(50, read(p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, 50, 2, 0));
	ASSERT_EQ(20, read(p[0], buf, 20));
	ASSERT_EQ(-1, mismatch(buf, 20, 3, 0));
	expect_empty(_metadata, p[0]);

	/* A large write makes several. */
	put(_metadata, p[1], 3 * psz + 10, 4, 0);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(psz, read(p[0], buf, 8 * psz));
		ASSERT_EQ(-1, mismatch(buf, psz, 4, i * psz));
	}
	ASSERT_EQ(10, read(p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, 10, 4, 3 * psz));
	expect_empty(_metadata, p[0]);

	/* No merging: every packet takes a slot, however small it is. */
	for (i = 0; i < DEF_SLOTS; i++)
		put(_metadata, p[1], 1 + i, 5 + i, 0);
	ASSERT_EQ(-1, write(p[1], "x", 1));
	ASSERT_EQ(EAGAIN, errno);
	/* Room for two pages: a packet each, and the rest is not written. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1 + i, read(p[0], buf, psz));
		ASSERT_EQ(-1, mismatch(buf, 1 + i, 5 + i, 0));
	}
	ASSERT_EQ(2 * psz, try_put(_metadata, p[1], 3 * psz + 5, 40, 0));
	for (; i < DEF_SLOTS; i++) {
		ASSERT_EQ(1 + i, read(p[0], buf, psz));
		ASSERT_EQ(-1, mismatch(buf, 1 + i, 5 + i, 0));
	}
	ASSERT_EQ(psz, read(p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz, 40, 0));
	ASSERT_EQ(psz, read(p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz, 40, psz));
	expect_empty(_metadata, p[0]);
	free(buf);
}

/* O_DIRECT can be set and cleared at any time, and is looked at by write(). */
TEST_F(pipe, packets_setfl)
{
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	set_flag(_metadata, self->p[0], O_NONBLOCK, true);

	put(_metadata, self->p[1], psz, 1, 0);
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	put(_metadata, self->p[1], 30, 2, 0);
	put(_metadata, self->p[1], 40, 3, 0);
	set_flag(_metadata, self->p[1], O_DIRECT, false);
	put(_metadata, self->p[1], 50, 4, 0);
	put(_metadata, self->p[1], 60, 4, 50);

	/* One page, three slots: the last two writes share one. */
	ASSERT_EQ(DEF_SLOTS - 4, fill_slots(_metadata, self->p[1]));

	/* A read does not stop in front of a packet, but after it. */
	ASSERT_EQ(psz + 30, read(self->p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz, 1, 0));
	ASSERT_EQ(-1, mismatch(buf + psz, 30, 2, 0));
	ASSERT_EQ(20, read(self->p[0], buf, 20));
	ASSERT_EQ(-1, mismatch(buf, 20, 3, 0));
	get(_metadata, self->p[0], 110, 4, 0);
	drain_filler(_metadata, self->p[0], DEF_SLOTS - 4);
	expect_empty(_metadata, self->p[0]);

	/*
	 * Whether to merge depends on the last slot only, so the first packet
	 * after bytes which are not a packet is not one either.
	 */
	put(_metadata, self->p[1], 10, 5, 0);
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	put(_metadata, self->p[1], psz + 20, 5, 10);
	put(_metadata, self->p[1], 40, 6, 0);
	ASSERT_EQ(10, read(self->p[0], buf, 10));
	ASSERT_EQ(-1, mismatch(buf, 10, 5, 0));
	/* The rest of the merged slot, then the packet of one page */
	ASSERT_EQ(psz + 20, read(self->p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz + 20, 5, 10));
	ASSERT_EQ(40, read(self->p[0], buf, 8 * psz));
	ASSERT_EQ(-1, mismatch(buf, 40, 6, 0));
	expect_empty(_metadata, self->p[0]);

	set_flag(_metadata, self->p[1], O_DIRECT, false);
	expect_works(_metadata, self->p);
	free(buf);
}

/* Pages come first in packets, and the odd bytes are the last one. */
TEST_F(copy, packets_large)
{
	const ssize_t lens[] = {
		psz + 1, psz + 200, 2 * psz, 3 * psz - 1, 16 * psz, 16 * psz + 5,
		17 * psz + 9, 40 * psz + 77,
	};
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	ssize_t i, pos;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		ssize_t len = lens[i / 2];

		/* A packet is not merged with another. */
		if (i & 1)
			put(_metadata, self->p[1], 30, 2, 0);
		put(_metadata, self->p[1], len, 1, 0);
		put(_metadata, self->p[1], psz + 40, 3, 0);
		if (i & 1) {
			ASSERT_EQ(30, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, 30, 2, 0));
		}
		for (pos = 0; pos < len; pos += psz) {
			ssize_t want = min(psz, len - pos);

			ASSERT_EQ(want, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, want, 1, pos));
		}
		ASSERT_EQ(psz, read(self->p[0], buf, 8 * psz));
		ASSERT_EQ(-1, mismatch(buf, psz, 3, 0));
		ASSERT_EQ(40, read(self->p[0], buf, 8 * psz));
		ASSERT_EQ(-1, mismatch(buf, 40, 3, psz));
		expect_empty(_metadata, self->p[0]);
	}

	/* After stream bytes, the odd bytes are the first, and no packet. */
	for (i = 0; i < 4; i++) {
		ssize_t rest = i & 1 ? 0 : 60;

		set_flag(_metadata, self->p[1], O_DIRECT, false);
		put(_metadata, self->p[1], 100, 1, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, true);
		put(_metadata, self->p[1], (1 + i) * psz + 200, 1, 100);
		if (rest) {
			put(_metadata, self->p[1], rest, 2, 0);
			ASSERT_EQ(300, read(self->p[0], buf, 300));
		} else {
			/* A read does not stop before a packet. */
			ASSERT_EQ(psz + 300, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf + 300, psz, 1, 300));
		}
		ASSERT_EQ(-1, mismatch(buf, 300, 1, 0));
		for (pos = rest ? 0 : 1; pos <= i; pos++) {
			ASSERT_EQ(psz, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, psz, 1, pos * psz + 300));
		}
		if (rest) {
			ASSERT_EQ(rest, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, rest, 2, 0));
		}
		expect_empty(_metadata, self->p[0]);
	}
	set_flag(_metadata, self->p[1], O_DIRECT, false);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	free(buf);
}

/*
 * A slot must not keep flags from its former use: stream bytes would be
 * thrown away like the rest of a packet, packets would be merged, and what
 * follows a page of a file would be written to the file.
 */
TEST_F(pipe, slot_flags_are_fresh)
{
	unsigned char *buf = alloc_buf(_metadata, psz);
	unsigned int i;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	set_flag(_metadata, self->p[0], O_NONBLOCK, true);

	/* Every slot has been a packet ... */
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	for (i = 0; i < DEF_SLOTS; i++)
		put(_metadata, self->p[1], 30, i, 0);
	for (i = 0; i < DEF_SLOTS; i++)
		get(_metadata, self->p[0], 30, i, 0);
	set_flag(_metadata, self->p[1], O_DIRECT, false);

	/* ... and is a page of a stream now, that is read bit by bit ... */
	put(_metadata, self->p[1], DEF_SLOTS * psz, 77, 0);
	for (i = 0; i < 2 * DEF_SLOTS; i++) {
		ASSERT_EQ(psz / 2, read(self->p[0], buf, psz / 2));
		ASSERT_EQ(-1, mismatch(buf, psz / 2, 77, i * (psz / 2)));
	}
	expect_empty(_metadata, self->p[0]);

	/* ... and then a packet again, which nothing is merged into. */
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	for (i = 0; i < DEF_SLOTS; i++)
		put(_metadata, self->p[1], 40, i, 0);
	for (i = 0; i < DEF_SLOTS; i++) {
		ASSERT_EQ(40, read(self->p[0], buf, psz));
		ASSERT_EQ(-1, mismatch(buf, 40, i, 0));
	}
	expect_empty(_metadata, self->p[0]);

	set_flag(_metadata, self->p[1], O_DIRECT, false);
	expect_works(_metadata, self->p);
	free(buf);
}

static void atomic_records(struct __test_metadata *_metadata, const int p[2],
			   ssize_t slots, bool nonblock)
{
	unsigned int next_seq[MAX_WRITERS] = {};
	struct record_writer w[3] = {};
	pthread_barrier_t barrier;
	ssize_t got = 0, total;
	unsigned char *data;
	unsigned int i;

	set_slots(_metadata, p[1], slots);
	set_flag(_metadata, p[1], O_NONBLOCK, nonblock);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].fd = p[1];
		w[i].count = 24;
		w[i].min_len = sizeof(struct record);
		w[i].max_len = PIPE_BUF;
	}
	total = start_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);
	data = alloc_buf(_metadata, total);

	/* An odd size, so that slots are left with a part of a record. */
	pthread_barrier_wait(&barrier);
	while (got < total) {
		ssize_t ret = read(p[0], data + got, min(total - got, psz + 333));

		ASSERT_GT(ret, 0);
		got += ret;
	}
	join_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);

	expect_records(_metadata, data, got, next_seq);
	for (i = 0; i < ARRAY_SIZE(w); i++)
		ASSERT_EQ(w[i].count, next_seq[i]);
	expect_empty(_metadata, p[0]);
	free(data);
}

/* Writes of up to PIPE_BUF are never interleaved, even if they have to wait. */
TEST_F_TIMEOUT(pipe, atomic_up_to_pipe_buf, LONG_TIMEOUT)
{
	atomic_records(_metadata, self->p, 1, false);
	atomic_records(_metadata, self->p, 4, false);
	atomic_records(_metadata, self->p, DEF_SLOTS, false);
}

TEST_F_TIMEOUT(pipe, atomic_up_to_pipe_buf_nonblock, LONG_TIMEOUT)
{
	atomic_records(_metadata, self->p, 2, true);
}

/* Without blocking, writes of up to PIPE_BUF are all or nothing. */
TEST_F(pipe, nonblock_all_or_nothing)
{
	ssize_t room = min(PIPE_BUF, psz) / 2;
	ssize_t i;

	set_slots(_metadata, self->p[1], 4);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	for (i = 0; i < 3; i++)
		put(_metadata, self->p[1], psz, FILLER, 0);
	put(_metadata, self->p[1], psz - room, 1, 0);

	for (i = room + 1; i <= PIPE_BUF; i += 97) {
		ASSERT_EQ(-1, try_put(_metadata, self->p[1], i, 1, psz - room));
		ASSERT_EQ(EAGAIN, errno);
	}
	ASSERT_EQ(-1, try_put(_metadata, self->p[1], PIPE_BUF, 1, psz - room));
	ASSERT_EQ(EAGAIN, errno);
	ASSERT_EQ(4 * psz - room, nr_bytes(_metadata, self->p[0]));

	put(_metadata, self->p[1], room, 1, psz - room);
	ASSERT_EQ(-1, try_put(_metadata, self->p[1], 1, 1, psz));
	ASSERT_EQ(EAGAIN, errno);

	/* One slot is enough for any. */
	drain_filler(_metadata, self->p[0], 1);
	put(_metadata, self->p[1], PIPE_BUF, 2, 0);
	drain_filler(_metadata, self->p[0], 2);
	get(_metadata, self->p[0], psz, 1, 0);
	get(_metadata, self->p[0], PIPE_BUF, 2, 0);
	expect_works(_metadata, self->p);
}

static void contiguous_records(struct __test_metadata *_metadata, const int p[2],
			       unsigned int count, ssize_t min_len, ssize_t max_len)
{
	unsigned int next_seq[MAX_WRITERS] = {};
	struct record_writer w[3] = {};
	const unsigned int rounds = 10;
	unsigned int round, i;

	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].fd = p[1];
		w[i].count = count;
		w[i].min_len = min_len;
		w[i].max_len = max_len;
	}

	for (round = 0; round < rounds; round++) {
		pthread_barrier_t barrier;
		unsigned char *data;
		ssize_t got, total;

		total = start_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);
		data = alloc_buf(_metadata, total);
		pthread_barrier_wait(&barrier);
		join_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);

		ASSERT_EQ(total, nr_bytes(_metadata, p[0]));
		for (got = 0; got < total; ) {
			ssize_t ret = read(p[0], data + got, total - got);

			ASSERT_GT(ret, 0);
			got += ret;
		}
		expect_records(_metadata, data, total, next_seq);
		expect_empty(_metadata, p[0]);
		free(data);
	}
	for (i = 0; i < ARRAY_SIZE(w); i++)
		ASSERT_EQ(rounds * w[i].count, next_seq[i]);
}

/*
 * A write for which there is room is not interleaved with others, whatever its
 * length.  POSIX does not promise that, but it has always been so.
 */
TEST_F_TIMEOUT(pipe, contiguous_large_writes, LONG_TIMEOUT)
{
	ssize_t slots = set_big(self->p[1]);
	ssize_t pages = 16;

	/* Three writers, and a slot more than pages, if nothing can be merged */
	if (slots < 3 * 4 * (pages + 1))
		pages = slots / (3 * 4) - 1;
	if (slots < 3 * 4 * 3)
		SKIP(return, "cannot make a pipe of more than %zd pages", slots);
	contiguous_records(_metadata, self->p, 4, (pages - 1) * psz + 1, pages * psz);
}

/* The same with more than is copied at a time */
TEST_F_TIMEOUT(copy, contiguous_huge_writes, LONG_TIMEOUT)
{
	ssize_t slots = set_big(self->p[1]);

	if (slots < 3 * 2 * 42)
		SKIP(return, "cannot make a pipe of more than %zd pages", slots);
	contiguous_records(_metadata, self->p, 2, 40 * psz - 333, 40 * psz + 333);
	contiguous_records(_metadata, self->p, 2, 40 * psz, 40 * psz);
	contiguous_records(_metadata, self->p, 4, 16 * psz - 20, 17 * psz + 20);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
}

/* To look for room comes before to look at the buffer. */
TEST_F(pipe, nonblock_full)
{
	const ssize_t lens[] = { 1, 100, psz, psz + 1, 16 * psz, 16 * psz + 1 };
	struct guarded bad;
	ssize_t i;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	guarded_alloc(_metadata, &bad, 0, 17 * psz, false);

	ASSERT_EQ(DEF_SLOTS, fill_slots(_metadata, self->p[1]));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		ASSERT_EQ(-1, try_put(_metadata, self->p[1], lens[i], 1, 0));
		ASSERT_EQ(EAGAIN, errno);
		ASSERT_EQ(-1, write(self->p[1], bad.buf, lens[i]));
		ASSERT_EQ(EAGAIN, errno);
		ASSERT_EQ(DEF_SLOTS * psz, nr_bytes(_metadata, self->p[0]));
	}

	/* A slot which was read in part is not free. */
	get(_metadata, self->p[0], psz - 1, FILLER, 0);
	ASSERT_EQ(-1, try_put(_metadata, self->p[1], 1, 1, 0));
	ASSERT_EQ(EAGAIN, errno);
	get(_metadata, self->p[0], 1, FILLER, psz - 1);
	ASSERT_EQ(-1, write(self->p[1], bad.buf, 1));
	ASSERT_EQ(EFAULT, errno);
	put(_metadata, self->p[1], 1, 1, 0);

	drain_filler(_metadata, self->p[0], DEF_SLOTS - 1);
	get(_metadata, self->p[0], 1, 1, 0);

	set_flag(_metadata, self->p[0], O_NONBLOCK, true);
	ASSERT_EQ(-1, read(self->p[0], bad.buf, psz));
	ASSERT_EQ(EAGAIN, errno);
	expect_works(_metadata, self->p);
	guarded_free(&bad);
}

/* With room for k pages, k pages are written. */
TEST_F(pipe, nonblock_partial)
{
	struct guarded g;
	ssize_t k;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);

	for (k = 1; k < DEF_SLOTS; k++) {
		ssize_t used = DEF_SLOTS - k;
		ssize_t i;

		for (i = 0; i < used; i++)
			put(_metadata, self->p[1], psz, FILLER, 0);
		ASSERT_EQ(k * psz,
			  try_put(_metadata, self->p[1], DEF_SLOTS * psz, k, 0));
		drain_filler(_metadata, self->p[0], used);
		get(_metadata, self->p[0], k * psz, k, 0);
		expect_empty(_metadata, self->p[0]);

		/* The odd bytes go first if they can be merged. */
		for (i = 0; i < used - 1; i++)
			put(_metadata, self->p[1], psz, FILLER, 0);
		put(_metadata, self->p[1], 100, k, 0);
		ASSERT_EQ(k * psz + 33,
			  try_put(_metadata, self->p[1], DEF_SLOTS * psz + 33, k, 100));
		drain_filler(_metadata, self->p[0], used - 1);
		get(_metadata, self->p[0], k * psz + 133, k, 0);
		expect_empty(_metadata, self->p[0]);

		/* Otherwise they would be the last. */
		for (i = 0; i < used; i++)
			put(_metadata, self->p[1], psz, FILLER, 0);
		ASSERT_EQ(k * psz,
			  try_put(_metadata, self->p[1], k * psz + 33, k, 0));
		drain_filler(_metadata, self->p[0], used);
		get(_metadata, self->p[0], k * psz, k, 0);
		expect_empty(_metadata, self->p[0]);
	}

	/* What there is no room for need not be accessible. */
	guarded_alloc(_metadata, &g, 3 * psz, 4 * psz, false);
	fill(g.buf, 3 * psz, 50, 0);
	for (k = 0; k < DEF_SLOTS - 3; k++)
		put(_metadata, self->p[1], psz, FILLER, 0);
	ASSERT_EQ(3 * psz, write(self->p[1], g.buf, 7 * psz));
	drain_filler(_metadata, self->p[0], DEF_SLOTS - 3);
	get(_metadata, self->p[0], 3 * psz, 50, 0);
	expect_works(_metadata, self->p);
	guarded_free(&g);
}

/* RWF_NOWAIT is O_NONBLOCK for one call.  Only anonymous pipes know it. */
TEST_F(pipe, rwf_nowait)
{
	unsigned char *buf = alloc_buf(_metadata, DEF_SLOTS * psz);
	struct iovec iov = { .iov_base = buf, .iov_len = 5 * psz };
	struct guarded bad;
	ssize_t ret;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	ret = preadv2(self->p[0], &iov, 1, -1, RWF_NOWAIT);
	if (ret < 0 && errno == EOPNOTSUPP)
		SKIP(return, "no RWF_NOWAIT for pipes");
	ASSERT_EQ(-1, ret);
	ASSERT_EQ(EAGAIN, errno);

	fill(buf, 5 * psz, 1, 0);
	ASSERT_EQ(5 * psz, pwritev2(self->p[1], &iov, 1, -1, RWF_NOWAIT));
	put(_metadata, self->p[1], 8 * psz, 1, 5 * psz);
	fill(buf, 5 * psz, 1, 13 * psz);
	ASSERT_EQ(3 * psz, pwritev2(self->p[1], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(-1, pwritev2(self->p[1], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(EAGAIN, errno);

	guarded_alloc(_metadata, &bad, 0, psz, false);
	iov.iov_base = bad.buf;
	iov.iov_len = psz;
	ASSERT_EQ(-1, pwritev2(self->p[1], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(EAGAIN, errno);

	iov.iov_base = buf;
	iov.iov_len = DEF_SLOTS * psz;
	ASSERT_EQ(DEF_SLOTS * psz,
		  preadv2(self->p[0], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(-1, mismatch(buf, DEF_SLOTS * psz, 1, 0));
	ASSERT_EQ(-1, preadv2(self->p[0], &iov, 1, -1, RWF_NOWAIT));
	ASSERT_EQ(EAGAIN, errno);
	expect_works(_metadata, self->p);
	guarded_free(&bad);
	free(buf);
}

/* That nobody reads comes first: before the buffer, and before a full pipe. */
TEST_F(pipe, epipe_wins)
{
	const ssize_t lens[] = { 1, psz - 1, psz, psz + 1, 5 * psz + 3 };
	struct guarded bad;
	struct iovec iov;
	int pass, n = 0;
	ssize_t ret;
	ssize_t i;

	count_signals(_metadata, SIGPIPE, 0);
	guarded_alloc(_metadata, &bad, 0, 6 * psz, false);

	for (pass = 0; pass < 3; pass++) {
		int p[2];

		ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
		/* Empty, with something to merge with, and full */
		if (pass == 1)
			put(_metadata, p[1], 10, 1, 0);
		else if (pass == 2)
			fill_slots(_metadata, p[1]);
		ASSERT_EQ(0, close(p[0]));
		ASSERT_TRUE(polls(p[1], POLLERR));

		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			ASSERT_EQ(-1, try_put(_metadata, p[1], lens[i], 1, 0));
			ASSERT_EQ(EPIPE, errno);
			ASSERT_EQ(++n, signals());
			ASSERT_EQ(-1, write(p[1], bad.buf, lens[i]));
			ASSERT_EQ(EPIPE, errno);
			ASSERT_EQ(++n, signals());
		}
		set_flag(_metadata, p[1], O_NONBLOCK, true);
		ASSERT_EQ(-1, write(p[1], bad.buf, psz));
		ASSERT_EQ(EPIPE, errno);
		ASSERT_EQ(++n, signals());

		iov.iov_base = bad.buf;
		iov.iov_len = psz + 1;
		ret = pwritev2(p[1], &iov, 1, -1, RWF_NOSIGNAL);
		ASSERT_EQ(-1, ret);
		/* Older kernels do not know the flag. */
		if (errno != EOPNOTSUPP)
			ASSERT_EQ(EPIPE, errno);
		ASSERT_EQ(n, signals());
		ASSERT_EQ(0, close(p[1]));
	}
	guarded_free(&bad);
}

/* The last reader goes away while a writer waits. */
TEST_F(pipe, epipe_blocked)
{
	struct io io;

	count_signals(_metadata, SIGPIPE, 0);
	set_slots(_metadata, self->p[1], 2);
	fill_slots(_metadata, self->p[1]);

	io_init_write(_metadata, &io, self->p[1], 3 * psz, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	ASSERT_EQ(0, close(self->p[0]));
	io_join(_metadata, &io);
	ASSERT_EQ(-1, io.ret);
	ASSERT_EQ(EPIPE, io.err);
	ASSERT_EQ(1, signals());
	free(io.buf);
}

TEST_F(pipe, epipe_blocked_partial)
{
	struct io io;

	count_signals(_metadata, SIGPIPE, 0);
	set_slots(_metadata, self->p[1], 2);

	io_init_write(_metadata, &io, self->p[1], 5 * psz, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	ASSERT_EQ(2 * psz, nr_bytes(_metadata, self->p[0]));
	ASSERT_EQ(0, close(self->p[0]));
	io_join(_metadata, &io);
	/* It gets both, the count and the signal. */
	ASSERT_EQ(2 * psz, io.ret);
	ASSERT_EQ(1, signals());

	ASSERT_EQ(-1, write(self->p[1], "x", 1));
	ASSERT_EQ(EPIPE, errno);
	ASSERT_EQ(2, signals());
	free(io.buf);
}

/*
 * A write which hits memory it cannot access counts the pages which came before
 * the page with the fault; of that page, nothing is written.  Only if there was
 * none, it fails.
 */
TEST_F(pipe, efault_write_pages)
{
	const ssize_t offsets[] = { 0, 1, 100, psz - 1 };
	ssize_t i, k;

	set_slots(_metadata, self->p[1], DEF_SLOTS);

	for (k = 0; k <= 16; k++) {
		for (i = 0; i < ARRAY_SIZE(offsets); i++) {
			ssize_t len = 16 * psz;
			ssize_t good = k * psz + offsets[i];
			ssize_t expected = k * psz;
			struct guarded g;
			ssize_t ret;

			if (good > len)
				continue;
			guarded_alloc(_metadata, &g, good, 17 * psz, k & 1);
			fill(g.buf, good, k + 1, 0);
			ret = write(self->p[1], g.buf, len);
			if (expected) {
				ASSERT_EQ(expected, ret);
				get(_metadata, self->p[0], expected, k + 1, 0);
			} else {
				ASSERT_EQ(-1, ret);
				ASSERT_EQ(EFAULT, errno);
			}
			expect_empty(_metadata, self->p[0]);
			guarded_free(&g);
		}
	}
	expect_works(_metadata, self->p);
}

TEST_F(pipe, efault_write_tail)
{
	struct guarded g;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	guarded_alloc(_metadata, &g, 3 * psz, psz, false);

	/* The odd bytes at the end are not accessible... */
	fill(g.buf, 3 * psz, 1, 0);
	ASSERT_EQ(3 * psz, write(self->p[1], g.buf, 3 * psz + 100));
	EXPECT_LAYOUT(self->p, 1, 0, psz, psz, psz);

	/* ...but here, odd bytes from the start are merged. */
	put(_metadata, self->p[1], 50, 2, 0);
	fill(g.buf, 3 * psz, 2, 50);
	ASSERT_EQ(2 * psz + 100, write(self->p[1], g.buf, 3 * psz + 100));
	EXPECT_LAYOUT(self->p, 2, 0, 150, psz, psz);

	expect_works(_metadata, self->p);
	guarded_free(&g);
}

TEST_F(pipe, efault_write_merge)
{
	struct guarded g, h;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	guarded_alloc(_metadata, &g, 60, 3 * psz, false);
	guarded_alloc(_metadata, &h, 100, 3 * psz, true);
	fill(g.buf, 60, 7, 0);

	/* What cannot be merged altogether fails the write... */
	put(_metadata, self->p[1], 50, 1, 0);
	ASSERT_EQ(-1, write(self->p[1], g.buf, 100));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(-1, write(self->p[1], g.buf, 2 * psz + 100));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(50, nr_bytes(_metadata, self->p[0]));

	/* ...but what was merged before a later fault counts. */
	fill(h.buf, 100, 1, 50);
	ASSERT_EQ(100, write(self->p[1], h.buf, 2 * psz + 100));
	ASSERT_EQ(150, nr_bytes(_metadata, self->p[0]));

	/* No trace of the bytes of the failed writes */
	put(_metadata, self->p[1], psz + 30, 1, 150);
	EXPECT_LAYOUT(self->p, 1, 0, 180, psz);

	/* With no room to merge, nothing of it is written. */
	put(_metadata, self->p[1], psz - 50, 2, 0);
	ASSERT_EQ(-1, write(self->p[1], h.buf, 2 * psz + 100));
	ASSERT_EQ(EFAULT, errno);
	put(_metadata, self->p[1], 50, 2, psz - 50);
	EXPECT_LAYOUT(self->p, 2, 0, psz);

	expect_works(_metadata, self->p);
	guarded_free(&g);
	guarded_free(&h);
}

TEST_F(pipe, efault_writev)
{
	unsigned char *buf = alloc_buf(_metadata, 4 * psz);
	struct iovec iov[3];
	struct guarded bad;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	guarded_alloc(_metadata, &bad, 0, psz, false);
	fill(buf, 4 * psz, 1, 0);

	iov[0].iov_base = buf;
	iov[1].iov_base = bad.buf;
	iov[2].iov_base = buf + 2 * psz;

	iov[0].iov_len = 2 * psz;
	iov[1].iov_len = psz;
	iov[2].iov_len = psz;
	ASSERT_EQ(2 * psz, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 1, 0, psz, psz);

	iov[0].iov_len = psz + 100;
	iov[1].iov_len = 10;
	ASSERT_EQ(psz, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 1, 0, psz);

	iov[0].iov_len = 100;
	ASSERT_EQ(-1, writev(self->p[1], iov, 3));
	ASSERT_EQ(EFAULT, errno);
	expect_empty(_metadata, self->p[0]);

	/* The 110 odd bytes reach into the bad segment, or 100 do not. */
	put(_metadata, self->p[1], 30, 2, 0);
	fill(buf, 100, 2, 30);
	ASSERT_EQ(-1, writev(self->p[1], iov, 3));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(30, nr_bytes(_metadata, self->p[0]));
	iov[1].iov_len = psz;
	ASSERT_EQ(100, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 2, 0, 130);

	/* A bad segment of no length is none. */
	fill(buf, 4 * psz, 3, 0);
	iov[0].iov_len = 2 * psz;
	iov[1].iov_len = 0;
	iov[2].iov_len = 2 * psz;
	ASSERT_EQ(4 * psz, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 3, 0, psz, psz, psz, psz);

	/* Many small segments make whole pages. */
	iov[0].iov_len = psz / 2;
	iov[1].iov_base = buf + psz / 2;
	iov[1].iov_len = 3;
	iov[2].iov_base = buf + psz / 2 + 3;
	iov[2].iov_len = psz;
	ASSERT_EQ(psz + psz / 2 + 3, writev(self->p[1], iov, 3));
	EXPECT_LAYOUT(self->p, 3, 0, psz, psz / 2 + 3);

	expect_works(_metadata, self->p);
	guarded_free(&bad);
	free(buf);
}

/*
 * What an odd write of @len bytes to a pipe with @before bytes returns if only
 * @good bytes are accessible, or 0 for EFAULT
 */
static ssize_t efault_count(ssize_t before, ssize_t len, ssize_t good)
{
	ssize_t odd = len % psz;

	if (good >= len)
		return len;
	if (!before || before + odd > psz)
		odd = 0;
	if (good < odd)
		return 0;
	return odd + (good - odd) / psz * psz;
}

static void efault_odd_write(struct __test_metadata *_metadata, const int p[2],
			     ssize_t before, ssize_t len, ssize_t good)
{
	ssize_t expected = efault_count(before, len, good);
	struct guarded g;
	ssize_t ret;

	guarded_alloc(_metadata, &g, good, len, good & 1);
	fill(g.buf, good, 1, before);
	/* The last byte of the buffer is as good as the others. */
	put(_metadata, p[1], before, 1, 0);
	ret = write(p[1], g.buf, len);
	if (expected) {
		ASSERT_EQ(expected, ret) {
			TH_LOG("%zd bytes, %zd of them good, after %zd", len, good, before);
		}
	} else {
		ASSERT_EQ(-1, ret);
		ASSERT_EQ(EFAULT, errno);
	}
	ASSERT_EQ(before + expected, nr_bytes(_metadata, p[0]));
	get(_metadata, p[0], before + expected, 1, 0);
	expect_empty(_metadata, p[0]);
	guarded_free(&g);
}

TEST_F_TIMEOUT(copy, efault_write_odd, LONG_TIMEOUT)
{
	const ssize_t lens[] = {
		psz + 1, 2 * psz + 100, 4 * psz - 1, 16 * psz + 7, 20 * psz + 21,
	};
	const ssize_t before[] = { 0, 50, psz - 20 };
	ssize_t i, j, k, off;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	for (i = 0; i < ARRAY_SIZE(before); i++) {
		for (j = 0; j < ARRAY_SIZE(lens); j++) {
			ssize_t len = lens[j], odd = len % psz;

			set_flag(_metadata, self->p[1], O_NONBLOCK, (i + j) & 1);
			/* Pages of the stream start at 0, or after the odd bytes. */
			for (k = 0; k <= len / psz; k++) {
				for (off = -1; off <= 1; off++) {
					ssize_t good = k * psz + off;

					if (good >= 0)
						efault_odd_write(_metadata, self->p,
								 before[i], len,
								 min(good, len));
					good += odd;
					efault_odd_write(_metadata, self->p, before[i],
							 len, min(max(good, 0), len));
				}
			}
		}
		set_flag(_metadata, self->p[1], O_NONBLOCK, false);
		expect_works(_metadata, self->p);
	}
}

/* Segments, each on pages of its own */
struct segments {
	unsigned char *map;
	ssize_t stride;
	ssize_t len;
	ssize_t nr;
};

/* All of them, but for the first @done bytes */
static ssize_t write_segments(int fd, const struct segments *s, ssize_t done)
{
	struct iovec iov[64];
	ssize_t i, n = 0;

	for (i = done / s->len; i < s->nr; i++, n++) {
		ssize_t off = i == done / s->len ? done % s->len : 0;

		/* They neither start nor end at the boundary of a page. */
		iov[n].iov_base = s->map + i * s->stride + 13 + off;
		iov[n].iov_len = s->len - off;
	}
	return writev(fd, iov, n);
}

/* Whatever the count is that a write returns, to go on from there is right. */
TEST_F_TIMEOUT(copy, efault_writev_retry, LONG_TIMEOUT)
{
	const ssize_t lens[] = { psz / 4 + 1, psz - 3, psz + 5, 2 * psz + 77 };
	const ssize_t before[] = { 0, 50, psz - 20 };
	ssize_t i, j, k, bad;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	for (j = 0; j < ARRAY_SIZE(lens); j++) {
		struct segments s = {
			.len = lens[j],
			.stride = (lens[j] / psz + 2) * psz,
			.nr = min(11, 20 * psz / lens[j]),
		};
		const ssize_t len = s.nr * s.len;

		s.map = mmap(NULL, s.nr * s.stride, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		ASSERT_NE(MAP_FAILED, s.map);

		for (i = 0; i < 2 * ARRAY_SIZE(before); i++) {
			ssize_t pos = before[i / 2];

			set_flag(_metadata, self->p[1], O_NONBLOCK, i & 1);
			for (k = 0; k < s.nr; k++)
				fill(s.map + k * s.stride + 13, s.len, 1,
				     pos + k * s.len);
			for (bad = 0; bad < s.nr; bad++) {
				ssize_t expected = efault_count(pos, len, bad * s.len);
				ssize_t ret;

				put(_metadata, self->p[1], pos, 1, 0);
				map_nothing_at(_metadata, s.map + bad * s.stride, s.stride);
				ret = write_segments(self->p[1], &s, 0);
				if (expected) {
					ASSERT_EQ(expected, ret);
				} else {
					ASSERT_EQ(-1, ret);
					ASSERT_EQ(EFAULT, errno);
				}
				ASSERT_EQ(pos + expected, nr_bytes(_metadata, self->p[0]));
				map_at(_metadata, s.map + bad * s.stride, s.stride);
				fill(s.map + bad * s.stride + 13, s.len, 1,
				     pos + bad * s.len);
				ASSERT_EQ(len - expected,
					  write_segments(self->p[1], &s, expected));
				get(_metadata, self->p[0], pos + len, 1, 0);
				expect_empty(_metadata, self->p[0]);
			}
		}
		munmap(s.map, s.nr * s.stride);
	}
	set_flag(_metadata, self->p[1], O_NONBLOCK, false);
	expect_works(_metadata, self->p);
}

/*
 * Memory which was not accessible when a writer came to it first may be by the
 * time it has the mutex: then it is written, and from where it begins. Somebody
 * else has the mutex meanwhile, a reader who is stuck in its own buffer.
 */
TEST_F(copy, efault_then_mapped)
{
	const ssize_t lens[] = { psz, 2 * psz, 2 * psz + 100, 16 * psz };
	const char *reason;
	ssize_t i;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], 2 * DEF_SLOTS);

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		/* The last page is not accessible, from within a page of the pipe. */
		ssize_t good = lens[i] - psz / 4;
		struct io writer = { .fd = self->p[1], .len = lens[i] };
		struct lazy reader;
		struct guarded g;

		put(_metadata, self->p[1], 50, 9, 0);
		lazy_start_read(_metadata, &reader, uffd, self->p[0], 50);

		guarded_alloc(_metadata, &g, good, psz / 4, false);
		fill(g.buf, good, i + 1, 0);
		writer.buf = g.buf;
		io_start(_metadata, &writer);
		ASSERT_TRUE(WAIT_FOR(io_done(&writer) || io_state(&writer) == 'D'));
		/* It may still be on its way to the mutex. */
		pause_ms(100);
		ASSERT_FALSE(io_done(&writer)) {
			TH_LOG("returned %zd (%s) while the mutex was held",
			       writer.ret, strerror(writer.err));
		}
		map_at(_metadata, g.buf + good, psz);
		fill(g.buf + good, lens[i] - good, i + 1, good);

		lazy_resolve(_metadata, &reader);
		io_join(_metadata, &reader.writer);
		ASSERT_EQ(50, reader.writer.ret);
		ASSERT_EQ(-1, mismatch(reader.map, 50, 9, 0));
		io_join(_metadata, &writer);
		ASSERT_EQ(lens[i], writer.ret);
		get(_metadata, self->p[0], lens[i], i + 1, 0);
		expect_works(_metadata, self->p);
		guarded_free(&g);
		lazy_free(&reader);
	}
	close(uffd);
}

/*
 * A writer which has found such memory returns what it has written before. It
 * must not let others go first, who may leave no room for it to find that out:
 * here, one who waits for the mutex, too, and then fills the pipe.
 */
TEST_F(copy, efault_not_giving_way)
{
	const char *reason;
	unsigned int i;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	for (i = 0; i < 10; i++) {
		struct io writer = { .fd = self->p[1], .len = (DEF_SLOTS + 4) * psz };
		struct lazy reader;
		struct guarded g;
		struct io other;

		put(_metadata, self->p[1], 50, 9, 0);
		lazy_start_read(_metadata, &reader, uffd, self->p[0], 50);

		guarded_alloc(_metadata, &g, 2 * psz, writer.len - 2 * psz, false);
		fill(g.buf, 2 * psz, 1, 0);
		writer.buf = g.buf;
		io_start(_metadata, &writer);
		ASSERT_TRUE(WAIT_FOR(io_state(&writer) == 'D'));
		pause_ms(20);
		io_init_write(_metadata, &other, self->p[1], (DEF_SLOTS - 2) * psz, 2, 0);
		io_start(_metadata, &other);
		ASSERT_TRUE(WAIT_FOR(io_state(&other) == 'D'));
		pause_ms(20);

		lazy_resolve(_metadata, &reader);
		io_join(_metadata, &reader.writer);
		ASSERT_EQ(50, reader.writer.ret);
		ASSERT_EQ(-1, mismatch(reader.map, 50, 9, 0));
		ASSERT_TRUE(WAIT_FOR(io_done(&writer))) {
			TH_LOG("waits for a reader to return %zd bytes", 2 * psz);
		}
		io_join(_metadata, &writer);
		ASSERT_EQ(2 * psz, writer.ret);
		io_join(_metadata, &other);
		ASSERT_EQ(other.len, other.ret);
		get(_metadata, self->p[0], writer.ret, 1, 0);
		get(_metadata, self->p[0], other.len, 2, 0);
		expect_works(_metadata, self->p);
		free(other.buf);
		guarded_free(&g);
		lazy_free(&reader);
	}
	close(uffd);
}

/* Count the page faults of the thread @tid; -1 and a reason if that cannot be. */
static int count_faults(pid_t tid, const char **reason)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
	};
	char id[32];
	int fd;

	/* That leaves out those which are not handled, as faults are disabled. */
	if (!read_file_at("/sys/kernel/tracing/events/exceptions/page_fault_kernel",
			  "id", id, sizeof(id)) ||
	    !read_file_at("/sys/kernel/debug/tracing/events/exceptions/page_fault_kernel",
			  "id", id, sizeof(id))) {
		attr.type = PERF_TYPE_TRACEPOINT;
		attr.config = atoi(id);
	}
	fd = syscall(__NR_perf_event_open, &attr, tid, -1, -1, 0);
	if (fd < 0)
		*reason = errno == EACCES || errno == EPERM ?
			"the page faults of the kernel cannot be counted without CAP_PERFMON" :
			"the kernel has no CONFIG_PERF_EVENTS";
	return fd;
}

/*
 * A writer which has found memory that cannot be accessed must not try it again
 * before each wait: if the memory is broken, each time is a machine check. One
 * more time is needed to find out what to return, with the mutex held.
 */
TEST_F(copy, efault_not_repeated)
{
	const char *reason = "";
	struct io writer = { };
	uint64_t faults = 0;
	struct guarded g;
	ssize_t n, i;
	int fd;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	n = fill_slots(_metadata, self->p[1]);
	guarded_alloc(_metadata, &g, (n - 1) * psz, psz, false);
	fill(g.buf, (n - 1) * psz, 1, 0);
	writer.fd = self->p[1];
	writer.buf = g.buf;
	writer.len = n * psz;
	io_start(_metadata, &writer);
	io_wait_blocked(_metadata, &writer);
	fd = count_faults(writer.tid, &reason);

	/* It fills each slot that gets free, and waits for the next. */
	for (i = 0; i < n - 1; i++) {
		drain_filler(_metadata, self->p[0], 1);
		ASSERT_TRUE(WAIT_FOR(nr_bytes(_metadata, self->p[0]) == n * psz));
		io_wait_blocked(_metadata, &writer);
	}
	drain_filler(_metadata, self->p[0], 1);
	io_join(_metadata, &writer);
	EXPECT_EQ((n - 1) * psz, writer.ret);
	get(_metadata, self->p[0], (n - 1) * psz, 1, 0);
	expect_works(_metadata, self->p);
	guarded_free(&g);

	if (fd < 0)
		SKIP(return, "%s", reason);
	ASSERT_EQ((ssize_t)sizeof(faults), read(fd, &faults, sizeof(faults)));
	close(fd);
	/* A copy which comes out short may have been tried byte by byte, too. */
	EXPECT_GE(4, (ssize_t)faults) {
		TH_LOG("%zd page faults while it waited for %zd slots",
		       (ssize_t)faults, n);
	}
}

/* A read which fails must not lose a byte. */
TEST_F(pipe, efault_read)
{
	unsigned char *buf = alloc_buf(_metadata, psz);
	struct guarded g, bad;
	struct iovec iov[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	guarded_alloc(_metadata, &bad, 0, 4 * psz, false);
	guarded_alloc(_metadata, &g, psz + psz / 2, 4 * psz, true);

	put(_metadata, self->p[1], 4 * psz, 1, 0);
	ASSERT_EQ(-1, read(self->p[0], bad.buf, 1));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(-1, read(self->p[0], bad.buf, 4 * psz));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(4 * psz, nr_bytes(_metadata, self->p[0]));

	/* Slots count which were copied altogether. */
	ASSERT_EQ(psz, read(self->p[0], g.buf, 4 * psz));
	ASSERT_EQ(-1, mismatch(g.buf, psz, 1, 0));
	ASSERT_EQ(3 * psz, nr_bytes(_metadata, self->p[0]));

	/* The rest of one which was read in part also does. */
	get(_metadata, self->p[0], psz - 10, 1, psz);
	ASSERT_EQ(psz + 10, read(self->p[0], g.buf, 2 * psz));
	ASSERT_EQ(-1, mismatch(g.buf, psz + 10, 1, 2 * psz - 10));
	ASSERT_EQ(psz, nr_bytes(_metadata, self->p[0]));

	iov[0].iov_base = buf;
	iov[0].iov_len = 100;
	iov[1].iov_base = bad.buf;
	iov[1].iov_len = 100;
	ASSERT_EQ(-1, readv(self->p[0], iov, 2));
	ASSERT_EQ(EFAULT, errno);
	EXPECT_LAYOUT(self->p, 1, 3 * psz, psz);

	put(_metadata, self->p[1], 100, 2, 0);
	put(_metadata, self->p[1], psz, 2, 100);
	ASSERT_EQ(100, readv(self->p[0], iov, 2));
	ASSERT_EQ(-1, mismatch(buf, 100, 2, 0));
	/* It still can be merged with. */
	put(_metadata, self->p[1], 7, 2, psz + 100);
	ASSERT_EQ(-1, read(self->p[0], bad.buf, psz));
	ASSERT_EQ(EFAULT, errno);
	put(_metadata, self->p[1], 8, 2, psz + 107);
	EXPECT_LAYOUT(self->p, 2, 100, psz, 15);

	/* Neither is a packet lost. */
	set_flag(_metadata, self->p[1], O_DIRECT, true);
	put(_metadata, self->p[1], 200, 3, 0);
	ASSERT_EQ(-1, readv(self->p[0], iov, 2));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(200, nr_bytes(_metadata, self->p[0]));
	ASSERT_EQ(100, read(self->p[0], buf, 100));
	ASSERT_EQ(-1, mismatch(buf, 100, 3, 0));
	set_flag(_metadata, self->p[1], O_DIRECT, false);

	expect_works(_metadata, self->p);
	guarded_free(&g);
	guarded_free(&bad);
	free(buf);
}

/*
 * Fail every page allocation of a large write in turn.  How many there are, and
 * which of them matter, is up to the kernel.
 */
TEST_F_TIMEOUT(pipe, enomem, LONG_TIMEOUT)
{
	const ssize_t nr = 20;
	unsigned char *buf = alloc_buf(_metadata, nr * psz + 100);
	int fd, ret, nth, pass, hits = 0;
	ssize_t i;

	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		SKIP(return, "no fault injection: %s", strerror(errno));
	ret = get_mount("debugfs", &self->debugfs);
	if (ret)
		SKIP(return, "no debugfs: %s", strerror(-ret));
	snprintf(self->fault_dir, sizeof(self->fault_dir), "%s/fail_page_alloc",
		 self->debugfs.path);
	if (access(self->fault_dir, F_OK))
		SKIP(return, "no fail_page_alloc: %s", strerror(errno));

	/* Nothing fails but in this thread: fail-nth overrides probability. */
	for (i = 0; i < ARRAY_SIZE(fault_knobs); i++) {
		char old[32];

		if (read_file_at(self->fault_dir, fault_knobs[i], old, sizeof(old)))
			SKIP(return, "cannot read %s", fault_knobs[i]);
		memcpy(self->fault_saved[i], old, sizeof(old));
		ret = write_file_at(self->fault_dir, fault_knobs[i],
				    strstr(fault_knobs[i], "ignore") ? "N" : "0");
		if (ret)
			SKIP(return, "cannot write %s", fault_knobs[i]);
	}

	set_slots(_metadata, self->p[1], 2 * DEF_SLOTS);
	/* Page faults of the buffer must not be what fails. */
	fill(buf, nr * psz + 100, 0, 0);
	mlock(buf, nr * psz + 100);

	for (pass = 0; pass < 2; pass++) {
		/* The second time with bytes to merge first */
		ssize_t before = pass ? 50 : 0;
		ssize_t merged = pass ? 100 : 0;
		bool hit = true;

		for (nth = 1; hit && nth < 500; nth++) {
			char val[16];
			ssize_t len;
			int err;

			put(_metadata, self->p[1], before, nth, 0);
			fill(buf, nr * psz + 100, nth, before);

			snprintf(val, sizeof(val), "%d", nth);
			ASSERT_LT(0, pwrite(fd, val, strlen(val), 0));
			len = write(self->p[1], buf, nr * psz + 100);
			err = errno;
			memset(val, 0, sizeof(val));
			/* If there is a fault left, then it may hit this. */
			hit = pread(fd, val, sizeof(val) - 1, 0) > 0 && atoi(val) == 0;
			ASSERT_EQ(1, pwrite(fd, "0", 1, 0));

			if (len < 0) {
				ASSERT_TRUE(hit);
				/* User copies can fail to order, too. */
				if (err != EFAULT) {
					ASSERT_EQ(ENOMEM, err);
					ASSERT_EQ(0, merged);
				}
				len = 0;
			} else if (len != nr * psz + 100) {
				ASSERT_TRUE(hit);
				ASSERT_EQ(merged, len % psz);
			}
			hits += hit;
			ASSERT_EQ(before + len, nr_bytes(_metadata, self->p[0]));
			get(_metadata, self->p[0], before + len, nth, 0);
			expect_works(_metadata, self->p);
		}
		ASSERT_FALSE(hit);
	}
	ASSERT_GT(hits, 0);
	close(fd);
	free(buf);
}

TEST_F(pipe, signal_blocked_writer)
{
	struct io io;

	count_signals(_metadata, SIGUSR1, 0);
	set_slots(_metadata, self->p[1], 2);

	/* Nothing was written. */
	fill_slots(_metadata, self->p[1]);
	io_init_write(_metadata, &io, self->p[1], 3 * psz + 5, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(-1, io.ret);
	ASSERT_EQ(EINTR, io.err);
	drain_filler(_metadata, self->p[0], 2);
	expect_empty(_metadata, self->p[0]);

	/* Some pages were written. */
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(2 * psz, io.ret);
	get(_metadata, self->p[0], 2 * psz, 1, 0);
	expect_empty(_metadata, self->p[0]);
	free(io.buf);

	/* Only what could be merged was written. */
	put(_metadata, self->p[1], psz, FILLER, 0);
	put(_metadata, self->p[1], 100, 2, 0);
	io_init_write(_metadata, &io, self->p[1], psz + 50, 2, 100);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	ASSERT_EQ(psz + 150, nr_bytes(_metadata, self->p[0]));
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(50, io.ret);
	drain_filler(_metadata, self->p[0], 1);
	get(_metadata, self->p[0], 150, 2, 0);
	ASSERT_EQ(3, signals());
	expect_empty(_metadata, self->p[0]);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	free(io.buf);
}

TEST_F(pipe, signal_restart_writer)
{
	struct io io;

	count_signals(_metadata, SIGUSR1, SA_RESTART);
	set_slots(_metadata, self->p[1], 2);

	/* Only a write of nothing is restarted... */
	fill_slots(_metadata, self->p[1]);
	io_init_write(_metadata, &io, self->p[1], 4 * psz + 5, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	ASSERT_TRUE(WAIT_FOR(signals() == 1));
	io_wait_blocked(_metadata, &io);
	drain_filler(_metadata, self->p[0], 2);
	get_chunks(_metadata, self->p[0], 4 * psz + 5, 1, 0, 777);
	io_join(_metadata, &io);
	ASSERT_EQ(4 * psz + 5, io.ret);
	expect_empty(_metadata, self->p[0]);

	/* ...while a part is returned as such. */
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(2, signals());
	ASSERT_EQ(2 * psz, io.ret);
	get(_metadata, self->p[0], 2 * psz, 1, 0);
	expect_empty(_metadata, self->p[0]);
	free(io.buf);
}

TEST_F(pipe, signal_blocked_reader)
{
	struct io io;

	count_signals(_metadata, SIGUSR1, 0);
	io_init_read(_metadata, &io, self->p[0], 3 * psz);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	io_join(_metadata, &io);
	ASSERT_EQ(-1, io.ret);
	ASSERT_EQ(EINTR, io.err);

	count_signals(_metadata, SIGUSR1, SA_RESTART);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	pthread_kill(io.thread, SIGUSR1);
	ASSERT_TRUE(WAIT_FOR(signals() == 1));
	io_wait_blocked(_metadata, &io);
	put(_metadata, self->p[1], 2 * psz, 1, 0);
	io_join(_metadata, &io);
	ASSERT_EQ(2 * psz, io.ret);
	ASSERT_EQ(-1, mismatch(io.buf, io.ret, 1, 0));
	expect_works(_metadata, self->p);
	free(io.buf);
}

/*
 * Waiting is exclusive, so whoever is woken up and leaves something behind has
 * to wake up the next one.
 */
TEST_F(pipe, two_blocked_readers)
{
	struct io io[2];
	int i;

	for (i = 0; i < 2; i++) {
		io_init_read(_metadata, &io[i], self->p[0], psz + 10);
		io[i].all = true;
		io_start(_metadata, &io[i]);
		io_wait_blocked(_metadata, &io[i]);
	}
	put(_metadata, self->p[1], 2 * psz + 20, 1, 0);
	for (i = 0; i < 2; i++) {
		io_join(_metadata, &io[i]);
		ASSERT_EQ(psz + 10, io[i].ret);
	}
	i = io[0].buf[0] == pattern(1, 0) ? 0 : 1;
	ASSERT_EQ(-1, mismatch(io[i].buf, psz + 10, 1, 0));
	ASSERT_EQ(-1, mismatch(io[!i].buf, psz + 10, 1, psz + 10));
	expect_works(_metadata, self->p);
	free(io[0].buf);
	free(io[1].buf);
}

TEST_F(pipe, two_blocked_writers)
{
	unsigned char *buf = alloc_buf(_metadata, 2 * psz);
	struct io io[2];
	int i;

	set_slots(_metadata, self->p[1], 2);
	fill_slots(_metadata, self->p[1]);
	for (i = 0; i < 2; i++) {
		io_init_write(_metadata, &io[i], self->p[1], psz, i + 1, 0);
		io_start(_metadata, &io[i]);
		io_wait_blocked(_metadata, &io[i]);
	}
	ASSERT_EQ(2 * psz, read(self->p[0], buf, 2 * psz));
	ASSERT_EQ(-1, mismatch(buf, psz, FILLER, 0));
	ASSERT_EQ(-1, mismatch(buf + psz, psz, FILLER, 0));
	for (i = 0; i < 2; i++) {
		io_join(_metadata, &io[i]);
		ASSERT_EQ(psz, io[i].ret);
	}
	ASSERT_EQ(2 * psz, read(self->p[0], buf, 2 * psz));
	i = buf[0] == pattern(1, 0) ? 0 : 1;
	ASSERT_EQ(-1, mismatch(buf, psz, i + 1, 0));
	ASSERT_EQ(-1, mismatch(buf + psz, psz, !i + 1, 0));
	expect_empty(_metadata, self->p[0]);
	free(io[0].buf);
	free(io[1].buf);
	free(buf);
}

TEST_F(pipe, resize)
{
	ssize_t i, pos = 0;

	set_slots(_metadata, self->p[1], 4);

	/* Move on by a few slots, so that the ring wraps around. */
	put(_metadata, self->p[1], 3 * psz, 1, 0);
	get(_metadata, self->p[0], 3 * psz, 1, 0);

	put(_metadata, self->p[1], 2 * psz + 100, 2, 0);
	ASSERT_EQ(-1, fcntl(self->p[1], F_SETPIPE_SZ, (int)psz));
	ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(-1, fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * psz)));
	ASSERT_EQ(EBUSY, errno);
	/* Rounded up to a power of two */
	ASSERT_EQ((int)(4 * psz), fcntl(self->p[0], F_SETPIPE_SZ, (int)(2 * psz + 1)));
	set_slots(_metadata, self->p[1], 8);
	/* The last slot can still be merged with. */
	put(_metadata, self->p[1], 4 * psz + 50, 2, 2 * psz + 100);
	EXPECT_LAYOUT(self->p, 2, 0, psz, psz, 150, psz, psz, psz, psz);

	put(_metadata, self->p[1], 100, 3, 0);
	set_slots(_metadata, self->p[1], 1);
	put(_metadata, self->p[1], 50, 3, 100);
	EXPECT_LAYOUT(self->p, 3, 0, 150);

	/* Grow and shrink a ring which is never empty. */
	put(_metadata, self->p[1], psz, 4, 0);
	for (i = 0; i < 12; i++) {
		ssize_t slots = 2 << (i % 4);

		set_slots(_metadata, self->p[1], slots);
		put(_metadata, self->p[1], psz * (slots - 1), 4, pos + psz);
		get(_metadata, self->p[0], psz * (slots - 1), 4, pos);
		pos += psz * (slots - 1);
	}
	get(_metadata, self->p[0], psz, 4, pos);
	expect_works(_metadata, self->p);
}

/* More slots are as good as a reader. */
TEST_F(pipe, resize_wakes_writer)
{
	struct io io;

	set_slots(_metadata, self->p[1], 2);
	io_init_write(_metadata, &io, self->p[1], 6 * psz + 7, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	set_slots(_metadata, self->p[1], 4);
	ASSERT_TRUE(WAIT_FOR(nr_bytes(_metadata, self->p[0]) == 4 * psz));
	io_wait_blocked(_metadata, &io);
	ASSERT_EQ(-1, fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * psz)));
	ASSERT_EQ(EBUSY, errno);
	set_slots(_metadata, self->p[1], 8);
	io_join(_metadata, &io);
	ASSERT_EQ(6 * psz + 7, io.ret);
	EXPECT_LAYOUT(self->p, 1, 0, psz, psz, psz, psz, psz, psz, 7);
	free(io.buf);
}

struct resizer {
	int fd;
	bool stop;
	int ok;
	int busy;
	int bad;
};

static void *resize_thread(void *arg)
{
	struct resizer *r = arg;
	unsigned int i = 0;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		/* From 1 slot to 64, in an order which is not monotonic */
		int size = psz << (i++ * 3 % 7);

		if (fcntl(r->fd, F_SETPIPE_SZ, size) == size)
			r->ok++;
		else if (errno == EBUSY)
			r->busy++;
		else
			r->bad++;
		sched_yield();
	}
	return NULL;
}

TEST_F_TIMEOUT(pipe, resize_during_writes, LONG_TIMEOUT)
{
	struct resizer r = { .fd = self->p[1] };
	const ssize_t len = 40 * psz + 123;
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	unsigned int round, rnd = 1;
	pthread_t thread;
	struct io io;

	/* More is for the privileged; 64 slots of large pages may be, too. */
	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));

	ASSERT_EQ(0, pthread_create(&thread, NULL, resize_thread, &r));
	for (round = 0; round < 8; round++) {
		ssize_t got = 0;

		io_init_write(_metadata, &io, self->p[1], len, round, 0);
		io_start(_metadata, &io);
		while (got < len) {
			ssize_t want = 1 + next_random(&rnd) % (8 * psz);
			ssize_t ret = read(self->p[0], buf, min(want, len - got));

			ASSERT_GT(ret, 0);
			ASSERT_EQ(-1, mismatch(buf, ret, round, got));
			got += ret;
		}
		io_join(_metadata, &io);
		ASSERT_EQ(len, io.ret);
		expect_empty(_metadata, self->p[0]);
		free(io.buf);
	}
	ASSERT_TRUE(WAIT_FOR(__atomic_load_n(&r.ok, __ATOMIC_RELAXED) > 7));
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, r.bad);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	free(buf);
}

/*
 * A writer whose buffer somebody else has to provide first, while it is being
 * copied from.  The reader must get all of the pages; that it gets none of them
 * before the last one is there is what stuck_writer looks at.
 */
static void uffd_write(struct __test_metadata *_metadata, const int p[2], int uffd,
		       ssize_t before, ssize_t len, uint64_t missing)
{
	struct io reader;
	struct lazy l;
	int faults = 0;
	long end;

	lazy_alloc(_metadata, &l, uffd, len, 1, before);
	lazy_arm(_metadata, &l, missing);
	put(_metadata, p[1], before, 1, 0);
	l.writer.fd = p[1];
	io_init_read(_metadata, &reader, p[0], before + len);
	reader.all = true;
	io_start(_metadata, &l.writer);

	end = now_ms() + WAIT_MS;
	while (!io_done(&l.writer)) {
		ssize_t page = lazy_fault(_metadata, &l);

		ASSERT_LT(now_ms(), end);
		if (page < 0) {
			pause_ms(1);
			continue;
		}
		if (!faults++)
			io_start(_metadata, &reader);
		lazy_provide(_metadata, &l, 1ull << page);
	}
	io_join(_metadata, &l.writer);
	ASSERT_EQ(len, l.writer.ret);
	ASSERT_GT(faults, 0);
	io_join(_metadata, &reader);
	ASSERT_EQ(before + len, reader.ret);
	ASSERT_EQ(-1, mismatch(reader.buf, before + len, 1, 0));
	expect_works(_metadata, p);
	free(reader.buf);
	lazy_free(&l);
}

TEST_F(pipe, userfaultfd_writer)
{
	const char *reason;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	uffd_write(_metadata, self->p, uffd, 0, 100, 1);
	uffd_write(_metadata, self->p, uffd, 0, 4 * psz, 1);
	uffd_write(_metadata, self->p, uffd, 0, 4 * psz, 4);
	uffd_write(_metadata, self->p, uffd, 0, 4 * psz, 15);
	/* Missing is what is merged, or what comes after that. */
	uffd_write(_metadata, self->p, uffd, 50, 100, 1);
	uffd_write(_metadata, self->p, uffd, 50, 2 * psz + 100, 1);
	uffd_write(_metadata, self->p, uffd, 50, 2 * psz + 100, 2);
	uffd_write(_metadata, self->p, uffd, 50, 2 * psz + 100, 4);
	close(uffd);
}

/* What others write while a writer is stuck: large messages and small ones */
#define MESSAGE		65536
#define NR_MESSAGES	50

static void init_messages(struct __test_metadata *_metadata, struct io *messages)
{
	static const ssize_t calls[] = { MESSAGE, 100, 100 };

	io_init_write(_metadata, messages, -1, NR_MESSAGES * (MESSAGE + 200), 2, 0);
	messages->all = true;
	messages->lens = calls;
	messages->nr_lens = ARRAY_SIZE(calls);
}

/*
 * @l has a writer who is stuck.  There are @before bytes in the pipe, and it has
 * not written anything yet, and is in nobody's way.
 */
static void pass_stuck_writer(struct __test_metadata *_metadata, const int p[2],
			      struct lazy *l, const struct io *messages, ssize_t before)
{
	struct io query, reader, writer = *messages;
	ssize_t len = l->writer.len;
	bool ok;

	io_init_query(&query, p[0]);
	io_start(_metadata, &query);
	ok = WAIT_FOR(io_done(&query));
	writer.fd = p[1];
	io_start(_metadata, &writer);
	io_init_read(_metadata, &reader, p[0], before + writer.len);
	reader.all = true;
	io_start(_metadata, &reader);
	ok = ok && WAIT_FOR(io_done(&writer) && io_done(&reader));

	if (!ok) {
		lazy_resolve(_metadata, l);
		io_join(_metadata, &query);
		TH_LOG("nobody can use the pipe while a writer of %zd bytes is stuck", len);
		ASSERT_TRUE(ok);
	}

	ASSERT_FALSE(io_done(&l->writer));
	io_join(_metadata, &query);
	io_join(_metadata, &writer);
	io_join(_metadata, &reader);
	ASSERT_EQ(before, query.ret);
	ASSERT_EQ(writer.len, writer.ret);
	ASSERT_EQ(before + writer.len, reader.ret);
	ASSERT_EQ(-1, mismatch(reader.buf, before, 1, 0));
	ASSERT_EQ(0, memcmp(reader.buf + before, writer.buf, writer.len));
	expect_empty(_metadata, p[0]);

	lazy_resolve(_metadata, l);
	io_join(_metadata, &l->writer);
	ASSERT_EQ(len, l->writer.ret);
	ASSERT_EQ(len, nr_bytes(_metadata, p[0]));
	get(_metadata, p[0], len, 1, before);
	expect_works(_metadata, p);
	free(reader.buf);
}

static void stuck_writer(struct __test_metadata *_metadata, const int p[2], int uffd,
			 const struct io *messages, ssize_t before, ssize_t len,
			 ssize_t missing, bool nonblock)
{
	int fd = nonblock ? reopen_nonblock(_metadata, p[1]) : p[1];
	struct lazy l;

	put(_metadata, p[1], before, 1, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, before);
	lazy_start(_metadata, &l, fd, 1ull << missing);
	pass_stuck_writer(_metadata, p, &l, messages, before);
	if (nonblock)
		close(fd);
	lazy_free(&l);
}

static void stuck_writers(struct __test_metadata *_metadata, const int p[2], int uffd,
			  const ssize_t *lens, ssize_t nr_lens)
{
	struct io messages;
	ssize_t i, j;

	init_messages(_metadata, &messages);
	for (i = 0; i < nr_lens; i++) {
		ssize_t nr = (lens[i] + psz - 1) / psz;
		const ssize_t pages[] = { 0, nr / 2, nr - 1 };

		for (j = 0; j < 4 * min(nr, ARRAY_SIZE(pages)); j++)
			stuck_writer(_metadata, p, uffd, &messages, j & 1 ? 50 : 0,
				     lens[i], pages[j / 4], j & 2);
	}
	free(messages.buf);
}

/* A writer which waits for a page of its buffer does not stall the others. */
TEST_F_TIMEOUT(copy, stuck_writer, LONG_TIMEOUT)
{
	const ssize_t lens[] = { psz, 2 * psz + 100, 16 * psz };
	const char *reason;
	int uffd;

	/* Room for all of it if there is something in the pipe */
	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	stuck_writers(_metadata, self->p, uffd, lens, ARRAY_SIZE(lens));
	close(uffd);
}

/*
 * Whether writes of more than a pipe has room for by default are prepared, too:
 * that ends at a mebibyte.
 */
static bool prepares_huge(void)
{
	return 2 * DEF_SLOTS * psz <= 1 << 20;
}

/* The same if there is more to write than a pipe has room for by default */
TEST_F_TIMEOUT(copy, stuck_writer_huge, LONG_TIMEOUT)
{
	const ssize_t lens[] = { 17 * psz, 20 * psz + 100 };
	const char *reason;
	int uffd;

	if (!prepares_huge())
		SKIP(return, "pages are too large");
	/* Room for all of it if there is something in the pipe */
	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	stuck_writers(_metadata, self->p, uffd, lens, ARRAY_SIZE(lens));
	close(uffd);
}

/*
 * A writer who is stuck while it prepares for the room that it saw, and then, if
 * that is not all of what there is by the time it gets the mutex, for the rest.
 */
static void stuck_writer_late(struct __test_metadata *_metadata, const int p[2], int uffd,
			      const struct io *messages, ssize_t len, ssize_t room,
			      ssize_t missing, bool nonblock)
{
	int fd = nonblock ? reopen_nonblock(_metadata, p[1]) : p[1];
	ssize_t slots = fill_slots(_metadata, p[1]);
	struct lazy l;

	drain_filler(_metadata, p[0], room);
	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_start(_metadata, &l, fd, 1ull << 1 | 1ull << missing);
	drain_filler(_metadata, p[0], slots - room);
	lazy_provide(_metadata, &l, 1ull << 1);
	lazy_wait_stuck(_metadata, &l);
	pass_stuck_writer(_metadata, p, &l, messages, 0);
	if (nonblock)
		close(fd);
	lazy_free(&l);
}

TEST_F_TIMEOUT(copy, stuck_writer_late, LONG_TIMEOUT)
{
	struct io messages;
	const char *reason;
	int uffd;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	init_messages(_metadata, &messages);
	/* More than it would get in without waiting */
	stuck_writer_late(_metadata, self->p, uffd, &messages, 6 * psz, 2, 3, true);
	stuck_writer_late(_metadata, self->p, uffd, &messages, 3 * psz + 100, 2, 3, true);
	if (prepares_huge()) {
		stuck_writer_late(_metadata, self->p, uffd, &messages, 20 * psz, 2, 19, true);
		/* More than a writer prepares if it sees no room for that */
		stuck_writer_late(_metadata, self->p, uffd, &messages, 20 * psz, 2, 18, false);
		stuck_writer_late(_metadata, self->p, uffd, &messages, 32 * psz, 18, 31, false);
	}
	free(messages.buf);
	close(uffd);
}

/* When it goes on, its data are still not mixed with those of others. */
TEST_F_TIMEOUT(copy, stuck_writer_contiguous, LONG_TIMEOUT)
{
	const ssize_t lens[] = { psz, 2 * psz + 100, 16 * psz };
	unsigned int next_seq[MAX_WRITERS] = {};
	ssize_t slots = set_big(self->p[1]);
	struct record_writer w[2] = {};
	unsigned int round, i;
	const char *reason;
	int uffd;

	/* There must be room for all of it. */
	if (slots < ARRAY_SIZE(w) * 8 * 4 + 17)
		SKIP(return, "cannot make a pipe of more than %zd pages", slots);
	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);

	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].fd = self->p[1];
		w[i].count = 8;
		w[i].min_len = psz;
		w[i].max_len = 4 * psz;
	}
	for (round = 0; round < 12; round++) {
		ssize_t len = lens[round % ARRAY_SIZE(lens)];
		pthread_barrier_t barrier;
		unsigned char *data;
		ssize_t got, total;
		struct lazy l;

		lazy_alloc(_metadata, &l, uffd, len, 0, 0);
		record_fill(l.src, len, ARRAY_SIZE(w), round);
		lazy_start(_metadata, &l, self->p[1], 1ull << round % l.nr);
		total = start_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);
		total += len;
		data = alloc_buf(_metadata, total);
		pthread_barrier_wait(&barrier);
		lazy_resolve(_metadata, &l);
		join_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);

		ASSERT_EQ(total, nr_bytes(_metadata, self->p[0]));
		for (got = 0; got < total; ) {
			ssize_t ret = read(self->p[0], data + got, total - got);

			ASSERT_GT(ret, 0);
			got += ret;
		}
		expect_records(_metadata, data, total, next_seq);
		ASSERT_EQ(round + 1, next_seq[ARRAY_SIZE(w)]);
		free(data);
		lazy_free(&l);
	}
	expect_works(_metadata, self->p);
	close(uffd);
}

/*
 * Only one of the writers which wait is woken up when there is room.  It must
 * use that, and not wait for a page of its buffer first, or else the others
 * would sleep on, too.
 */
static void stuck_waiter(struct __test_metadata *_metadata, const int p[2], int uffd,
			 ssize_t slots, ssize_t missing)
{
	const ssize_t calls[] = { psz, 2 * psz, slots * psz };
	const ssize_t len = min(4 * slots, 64) * psz;
	ssize_t pages[2] = {}, i;
	struct io writer, reader;
	struct lazy l;
	bool ok;

	set_slots(_metadata, p[1], slots);
	fill_slots(_metadata, p[1]);
	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_arm(_metadata, &l, 1ull << missing);
	l.writer.fd = p[1];
	io_start(_metadata, &l.writer);
	io_wait_blocked(_metadata, &l.writer);
	/* What waits for room is not stuck yet. */
	ASSERT_EQ(-1, lazy_fault(_metadata, &l));
	io_init_write(_metadata, &writer, p[1], len, 2, 0);
	io_start(_metadata, &writer);
	io_wait_blocked(_metadata, &writer);

	io_init_read(_metadata, &reader, p[0], slots * psz + 2 * len);
	reader.all = true;
	reader.lens = calls;
	reader.nr_lens = ARRAY_SIZE(calls);
	io_start(_metadata, &reader);
	ok = WAIT_FOR(io_done(&writer));
	if (ok) {
		lazy_wait_stuck(_metadata, &l);
		ASSERT_EQ(writer.len, writer.ret);
		ASSERT_FALSE(io_done(&reader));
	}
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &writer);
	io_join(_metadata, &l.writer);
	io_join(_metadata, &reader);
	ASSERT_TRUE(ok) {
		TH_LOG("a writer sleeps while another is stuck in page %zd", missing);
	}
	ASSERT_EQ(writer.len, writer.ret);
	ASSERT_EQ(l.writer.len, l.writer.ret);
	ASSERT_EQ(reader.len, reader.ret);

	for (i = 0; i < reader.len / psz; i++) {
		unsigned char *page = reader.buf + i * psz;

		if (i < slots) {
			ASSERT_EQ(-1, mismatch(page, psz, FILLER, 0));
		} else if (mismatch(page, psz, 1, pages[0] * psz) < 0) {
			pages[0]++;
		} else {
			ASSERT_EQ(-1, mismatch(page, psz, 2, pages[1] * psz));
			pages[1]++;
		}
	}
	ASSERT_EQ(len, pages[0] * psz);
	ASSERT_EQ(len, pages[1] * psz);
	set_slots(_metadata, p[1], DEF_SLOTS);
	expect_works(_metadata, p);
	free(writer.buf);
	free(reader.buf);
	lazy_free(&l);
}

/*
 * A blocking write, and what of it there is room for.  That has to be in the pipe
 * before the writer waits for the rest of its buffer, which may only come when
 * somebody has read it, or never.
 */
struct fits {
	ssize_t used;		/* slots in use when the write begins */
	ssize_t before;		/* bytes in the last of them; if 0, a page */
	ssize_t len;
	ssize_t seg;		/* writev() of segments of this length */
	bool packets;
	ssize_t freed;		/* slots that become free while it sleeps */
};

/* How it goes on: all is read, there is a signal, or the reader goes away. */
enum fits_end { FITS_READ, FITS_SIGNAL, FITS_CLOSE, FITS_NR_ENDS };

/* The writer sleeps, with @bytes in the pipe, and not for a page of its buffer. */
static void expect_fits(struct __test_metadata *_metadata, const int p[2],
			const struct fits *t, struct lazy *l, ssize_t bytes)
{
	bool ok = WAIT_FOR(nr_bytes(_metadata, p[0]) == bytes && io_sleeps(&l->writer));
	ssize_t found = nr_bytes(_metadata, p[0]);
	ssize_t page = lazy_fault(_metadata, l);

	ASSERT_TRUE(ok && page < 0) {
		TH_LOG("%zd bytes onto %zd slots: %zd in the pipe, not %zd, fault on page %zd",
		       t->len, t->used, found, bytes, page);
	}
	ASSERT_FALSE(io_done(&l->writer));
}

static void fits_first(struct __test_metadata *_metadata, int uffd, const struct fits *t,
		       enum fits_end end)
{
	ssize_t filler = (t->used - !!t->before) * psz;
	ssize_t fits = (DEF_SLOTS - t->used) * psz;
	unsigned char *data;
	struct lazy l;
	ssize_t i;
	int p[2];

	if (t->before)
		fits += t->len % psz;
	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	set_slots(_metadata, p[1], DEF_SLOTS);
	for (i = 0; i < filler; i += psz)
		put(_metadata, p[1], psz, FILLER, 0);
	put(_metadata, p[1], t->before, 1, 0);
	if (t->packets)
		set_flag(_metadata, p[1], O_DIRECT, true);

	/* All that comes after what will have found room is missing. */
	lazy_alloc(_metadata, &l, uffd, t->len, 1, t->before);
	lazy_arm(_metadata, &l, ~0ull << (fits + t->freed * psz + psz - 1) / psz);
	l.writer.fd = p[1];
	l.writer.seg = t->seg;
	io_start(_metadata, &l.writer);
	expect_fits(_metadata, p, t, &l, filler + t->before + fits);
	drain_filler(_metadata, p[0], t->freed);
	filler -= t->freed * psz;
	fits += t->freed * psz;
	expect_fits(_metadata, p, t, &l, filler + t->before + fits);

	switch (end) {
	case FITS_READ:
		/* In one read, or else the writer may have the mutex meanwhile. */
		data = alloc_buf(_metadata, filler + t->before + fits);
		ASSERT_EQ(filler + t->before + fits,
			  read(p[0], data, filler + t->before + fits));
		for (i = 0; i < filler; i += psz)
			ASSERT_EQ(-1, mismatch(data + i, psz, FILLER, 0));
		ASSERT_EQ(-1, mismatch(data + filler, t->before + fits, 1, 0));
		free(data);
		lazy_wait_stuck(_metadata, &l);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(t->len, l.writer.ret);
		get(_metadata, p[0], t->len - fits, 1, t->before + fits);
		set_flag(_metadata, p[1], O_DIRECT, false);
		expect_works(_metadata, p);
		break;
	case FITS_SIGNAL:
		count_signals(_metadata, SIGUSR1, 0);
		pthread_kill(l.writer.thread, SIGUSR1);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(fits ?: -1, l.writer.ret);
		ASSERT_EQ(fits ? 0 : EINTR, l.writer.err);
		ASSERT_EQ(1, signals());
		drain_filler(_metadata, p[0], filler / psz);
		get(_metadata, p[0], t->before + fits, 1, 0);
		set_flag(_metadata, p[1], O_DIRECT, false);
		expect_works(_metadata, p);
		break;
	default:
		count_signals(_metadata, SIGPIPE, 0);
		close(p[0]);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(fits ?: -1, l.writer.ret);
		ASSERT_EQ(fits ? 0 : EPIPE, l.writer.err);
		ASSERT_EQ(1, signals());
	}
	/* Nobody else has waited for it. */
	ASSERT_EQ(-1, lazy_fault(_metadata, &l));
	if (end != FITS_CLOSE)
		close(p[0]);
	close(p[1]);
	lazy_free(&l);
}

TEST_F_TIMEOUT(copy, fits_first, LONG_TIMEOUT)
{
	const struct fits tests[] = {
		/* There is room for a part of it... */
		{ .used = 15, .len = 2 * psz },
		{ .used = 15, .len = 2 * psz + 100 },
		{ .used = 15, .len = psz + 100 },
		{ .used = 15, .len = 2 * psz, .seg = psz / 2 + 100 },
		{ .used = 15, .len = 2 * psz + 100, .seg = psz / 2 + 100 },
		{ .used = 15, .len = 2 * psz, .packets = true },
		{ .used = 15, .len = psz + 100, .packets = true },
		{ .used = 15, .before = 50, .len = 2 * psz + 100 },
		{ .used = 10, .len = 8 * psz },
		{ .used = 10, .before = 50, .len = 20 * psz + 100 },
		/* ...or for nothing, at first... */
		{ .used = 16, .len = 2 * psz, .freed = 1 },
		{ .used = 16, .len = 2 * psz + 100, .freed = 1 },
		{ .used = 16, .len = psz + 100, .freed = 1 },
		{ .used = 16, .len = 2 * psz, .seg = psz / 2 + 100, .freed = 1 },
		{ .used = 16, .len = 2 * psz + 100, .seg = psz / 2 + 100, .freed = 1 },
		{ .used = 16, .len = 2 * psz, .packets = true, .freed = 1 },
		{ .used = 16, .len = psz + 100, .packets = true, .freed = 1 },
		{ .used = 16, .before = 50, .len = 2 * psz + 100, .freed = 1 },
		{ .used = 16, .len = 20 * psz, .freed = 5 },
		/* ...or for nothing, or only for what is merged. */
		{ .used = 16, .len = 100 },
		{ .used = 16, .len = psz },
		{ .used = 16, .len = 2 * psz + 100 },
		{ .used = 16, .len = psz, .packets = true },
		{ .used = 16, .before = 50, .len = psz + 100 },
		{ .used = 16, .before = 50, .len = psz + 100, .seg = psz / 60 + 2 },
	};
	enum fits_end end;
	const char *reason;
	ssize_t i;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		for (end = 0; end < FITS_NR_ENDS; end++)
			fits_first(_metadata, uffd, &tests[i], end);
	}
	close(uffd);
}

TEST_F_TIMEOUT(copy, stuck_waiter, LONG_TIMEOUT)
{
	const char *reason;
	ssize_t page;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	for (page = 0; page < 8; page++)
		stuck_waiter(_metadata, self->p, uffd, 2, page);
	for (page = 1; page < 16; page += 3)
		stuck_waiter(_metadata, self->p, uffd, 4, page);
	close(uffd);
}

/* A waiter has not as much prepared as there may be room for later. */
TEST_F_TIMEOUT(copy, stuck_waiter_huge, LONG_TIMEOUT)
{
	const char *reason;
	ssize_t page;
	int uffd;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	for (page = DEF_SLOTS; page < 64; page += page < 20 ? 1 : 9)
		stuck_waiter(_metadata, self->p, uffd, 32, page);
	close(uffd);
}

/*
 * What a write gets in that does not block is contiguous, even if it has seen
 * less room than there is by the time it has the mutex, twice.
 */
TEST_F_TIMEOUT(copy, nonblock_contiguous, LONG_TIMEOUT)
{
	/* One that there is room for by then, and one that there is not */
	const ssize_t lens[] = { 8 * psz, 20 * psz };
	const char *reason;
	struct io writer;
	struct lazy l;
	int uffd, fd;
	ssize_t i;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fd = reopen_nonblock(_metadata, self->p[1]);

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		ssize_t fits = min(lens[i], DEF_SLOTS * psz);

		/* It sees room for two pages, and is stuck in the second... */
		fill_slots(_metadata, self->p[1]);
		drain_filler(_metadata, self->p[0], 2);
		lazy_alloc(_metadata, &l, uffd, lens[i], 1, 0);
		lazy_start(_metadata, &l, fd, 1ull << 1 | 1ull << 3 | 1ull << 5);

		/* ...then for two more, and is stuck in the fourth... */
		drain_filler(_metadata, self->p[0], 2);
		lazy_provide(_metadata, &l, 1ull << 1);
		lazy_wait_stuck(_metadata, &l);

		/* ...and then in the sixth, when the pipe is empty. */
		drain_filler(_metadata, self->p[0], DEF_SLOTS - 4);
		lazy_provide(_metadata, &l, 1ull << 3);
		lazy_wait_stuck(_metadata, &l);
		io_init_write(_metadata, &writer, self->p[1], psz, 2, 0);
		io_start(_metadata, &writer);
		ASSERT_TRUE(WAIT_FOR(io_done(&writer) || io_state(&writer) == 'D'));
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(fits, l.writer.ret);
		get(_metadata, self->p[0], fits, 1, 0);
		io_join(_metadata, &writer);
		ASSERT_EQ(psz, writer.ret);
		get(_metadata, self->p[0], psz, 2, 0);
		expect_works(_metadata, self->p);
		free(writer.buf);
		lazy_free(&l);
	}
	close(fd);
	close(uffd);
}

/*
 * A write of more than there is room for ends early if there is a signal, even
 * if the reader keeps up, so that the pipe is never full.
 */
TEST_F_TIMEOUT(copy, signal_busy_writer, LONG_TIMEOUT)
{
	const ssize_t piece = DEF_SLOTS * psz;
	const char *reason;
	struct lazy l;
	bool ended;
	int uffd;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * piece)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	count_signals(_metadata, SIGUSR1, 0);

	/* It has to wait, until all room is there at once; then it does a piece. */
	put(_metadata, self->p[1], 2 * piece, 2, 0);
	lazy_alloc(_metadata, &l, uffd, 4 * piece - psz, 1, 0);
	lazy_arm(_metadata, &l, 1ull << DEF_SLOTS | 1ull << 2 * DEF_SLOTS);
	l.writer.fd = self->p[1];
	io_start(_metadata, &l.writer);
	io_wait_blocked(_metadata, &l.writer);
	get(_metadata, self->p[0], 2 * piece, 2, 0);
	lazy_wait_stuck(_metadata, &l);
	ASSERT_EQ(piece, nr_bytes(_metadata, self->p[0]));
	get(_metadata, self->p[0], piece, 1, 0);

	pthread_kill(l.writer.thread, SIGUSR1);
	lazy_provide(_metadata, &l, 1ull << DEF_SLOTS);
	ASSERT_TRUE(WAIT_FOR(io_done(&l.writer) || lazy_fault(_metadata, &l) > DEF_SLOTS));
	ended = io_done(&l.writer);
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_TRUE(ended);
	ASSERT_EQ(1, signals());
	ASSERT_EQ(2 * piece, l.writer.ret);
	get(_metadata, self->p[0], piece, 1, piece);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	lazy_free(&l);
	close(uffd);
}

/*
 * What a writer saw of the pipe before it copied its data may be out of date
 * when it takes the mutex.  Get it stuck in between, and change the pipe.
 */
struct guess {
	ssize_t before;	/* bytes in the pipe at first */
	ssize_t drain;	/* of these, are read */
	ssize_t add;	/* are written by another writer then */
};

static void wrong_guess(struct __test_metadata *_metadata, const int p[2], int fd,
			int uffd, const struct guess *g, ssize_t len, ssize_t missing)
{
	ssize_t used, total = g->before - g->drain + g->add + len;
	struct lazy l;

	put(_metadata, p[1], g->before, 1, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, g->before + g->add);
	lazy_start(_metadata, &l, fd, 1ull << missing);
	get(_metadata, p[0], g->drain, 1, 0);
	put(_metadata, p[1], g->add, 1, g->before);
	ASSERT_EQ(total - len, nr_bytes(_metadata, p[0]));
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(len, l.writer.ret) {
		TH_LOG("before %zd, drain %zd, add %zd, page %zd: %s", g->before,
		       g->drain, g->add, missing, strerror(l.writer.err));
	}
	ASSERT_EQ(total, nr_bytes(_metadata, p[0]));

	/* No more slots than it takes if nothing is merged */
	used = DEF_SLOTS - fill_slots(_metadata, p[1]);
	ASSERT_LE(used, (g->before + psz - 1) / psz + (g->add + psz - 1) / psz +
			(len + psz - 1) / psz);
	get(_metadata, p[0], total, 1, g->drain);
	drain_filler(_metadata, p[0], DEF_SLOTS - used);
	expect_works(_metadata, p);
	lazy_free(&l);
}

TEST_F_TIMEOUT(copy, wrong_guess_merge, LONG_TIMEOUT)
{
	/* The write has 200 bytes which may be merged. */
	const struct guess guesses[] = {
		{ 100, 0, 0 },
		/* There was something to merge with, but it is gone... */
		{ 100, 100, 0 },
		/* ...or is less, which does not make more room... */
		{ 100, 50, 0 },
		{ psz - 200, psz - 201, 0 },
		{ psz - 199, psz - 200, 0 },
		/* ...or there is just room, or no more, or another page. */
		{ 100, 0, psz - 300 },
		{ 100, 0, psz - 299 },
		{ 100, 0, psz - 100 },
		{ 100, 0, psz },
		{ 100, 0, psz + 100 },
		{ 100, 0, 2 * psz - 100 },
		{ 100, 100, 300 },
		{ 100, 100, psz - 1 },
		/* There was nothing to merge with, or no room, but is now. */
		{ 0, 0, 1 },
		{ 0, 0, 100 },
		{ 0, 0, psz },
		{ 0, 0, 3 * psz + 50 },
		{ psz - 199, 0, psz },
		{ psz - 199, 0, psz + 20 },
		{ psz - 199, psz - 199, 20 },
	};
	ssize_t i, page, len = 2 * psz + 200;
	const char *reason;
	int uffd, fd;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fd = reopen_nonblock(_metadata, self->p[1]);
	for (i = 0; i < ARRAY_SIZE(guesses); i++) {
		for (page = 0; page < 3; page++) {
			wrong_guess(_metadata, self->p, self->p[1], uffd,
				    &guesses[i], len, page);
			wrong_guess(_metadata, self->p, fd, uffd, &guesses[i],
				    len, page);
		}
		/* Nothing is prepared but what is merged, or all of it. */
		wrong_guess(_metadata, self->p, fd, uffd, &guesses[i], psz + 200, 0);
		wrong_guess(_metadata, self->p, fd, uffd, &guesses[i], 2 * psz, 1);
	}
	close(fd);
	close(uffd);
}

TEST_F_TIMEOUT(copy, wrong_guess_resize, LONG_TIMEOUT)
{
	const ssize_t slots[] = { 1, 2, 4, 16, 64 };
	const char *reason;
	ssize_t i, j, k;
	int uffd;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));
	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		for (j = 0; j < ARRAY_SIZE(slots); j++) {
			for (k = 0; k < 4; k++) {
				const ssize_t before = k & 1 ? 100 : 0;
				const ssize_t len = 20 * psz + 200;
				ssize_t page = k & 2 ? slots[i] - 1 : 0;
				struct lazy l;

				set_slots(_metadata, self->p[1], slots[i]);
				put(_metadata, self->p[1], before, 1, 0);
				lazy_alloc(_metadata, &l, uffd, len, 1, before);
				/* At most what fits is copied so far. */
				lazy_start(_metadata, &l, self->p[1],
					   1ull << min(page, 15));
				set_slots(_metadata, self->p[1], slots[j]);
				lazy_resolve(_metadata, &l);
				if (slots[j] < 20)
					io_wait_blocked(_metadata, &l.writer);
				get(_metadata, self->p[0], before + len, 1, 0);
				io_join(_metadata, &l.writer);
				ASSERT_EQ(len, l.writer.ret);
				expect_empty(_metadata, self->p[0]);
				lazy_free(&l);
			}
		}
	}
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	close(uffd);
}

/* Write what is left of a write which was cut short, and expect all of it. */
static void expect_retry(struct __test_metadata *_metadata, const int p[2],
			 struct lazy *l, ssize_t before)
{
	ssize_t done = max(l->writer.ret, 0);

	ASSERT_EQ(before + done, nr_bytes(_metadata, p[0]));
	ASSERT_EQ(l->writer.len - done,
		  write(p[1], l->map + done, l->writer.len - done));
	get(_metadata, p[0], before + l->writer.len, 1, 0);
	expect_works(_metadata, p);
	lazy_free(l);
}

/* There was room for all, but now there is for fewer pages: @room. */
static void full_nonblock(struct __test_metadata *_metadata, const int p[2], int fd,
			  int uffd, ssize_t len, ssize_t page, ssize_t room)
{
	ssize_t slots = nr_slots(p[1]);
	struct lazy l;

	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_start(_metadata, &l, fd, 1ull << page);
	ASSERT_EQ(slots, fill_slots(_metadata, p[1]));
	drain_filler(_metadata, p[0], room);
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	if (room) {
		ASSERT_EQ(room * psz, l.writer.ret);
	} else {
		ASSERT_EQ(-1, l.writer.ret);
		ASSERT_EQ(EAGAIN, l.writer.err);
	}
	drain_filler(_metadata, p[0], slots - room);
	expect_retry(_metadata, p, &l, 0);
}

/* The odd bytes cannot be merged any more, either. */
static void full_nonblock_merge(struct __test_metadata *_metadata, const int p[2],
				int fd, int uffd, ssize_t len, ssize_t page)
{
	ssize_t slots = nr_slots(p[1]);
	struct lazy l;

	put(_metadata, p[1], 100, 2, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_start(_metadata, &l, fd, 1ull << page);
	ASSERT_EQ(slots - 1, fill_slots(_metadata, p[1]));
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(-1, l.writer.ret);
	ASSERT_EQ(EAGAIN, l.writer.err);
	get(_metadata, p[0], 100, 2, 0);
	drain_filler(_metadata, p[0], slots - 1);
	expect_retry(_metadata, p, &l, 0);
}

/* They can, but then there are fewer slots. */
static void full_nonblock_shrink(struct __test_metadata *_metadata, const int p[2],
				 int fd, int uffd, ssize_t len, ssize_t page,
				 ssize_t room)
{
	ssize_t slots = nr_slots(p[1]);
	ssize_t used = slots / 2 - 1 - room;
	struct lazy l;
	ssize_t i;

	for (i = 0; i < used; i++)
		put(_metadata, p[1], psz, FILLER, 0);
	put(_metadata, p[1], 100, 1, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, 100);
	lazy_start(_metadata, &l, fd, 1ull << page);
	set_slots(_metadata, p[1], slots / 2);
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(room * psz + len % psz, l.writer.ret);
	drain_filler(_metadata, p[0], used);
	set_slots(_metadata, p[1], slots);
	expect_retry(_metadata, p, &l, 100);
}

/* A write that blocks has to wait, with room for some or for nothing. */
static void full_block(struct __test_metadata *_metadata, const int p[2], int uffd,
		       ssize_t before, ssize_t len, ssize_t page, ssize_t room)
{
	ssize_t used = nr_slots(p[1]) - (before ? 1 : 0);
	ssize_t bytes;
	struct lazy l;

	put(_metadata, p[1], before, 2, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	/* What it does not keep prepared, it has to find in its segments again. */
	l.writer.seg = room & 1 ? psz / 3 + 1 : 0;
	lazy_start(_metadata, &l, p[1], 1ull << page);
	ASSERT_EQ(used, fill_slots(_metadata, p[1]));
	if (room) {
		get(_metadata, p[0], before, 2, 0);
		drain_filler(_metadata, p[0], before ? room - 1 : room);
		used -= before ? room - 1 : room;
		before = 0;
	}
	lazy_resolve(_metadata, &l);
	io_wait_blocked(_metadata, &l.writer);
	bytes = nr_bytes(_metadata, p[0]) - used * psz - before;
	/* Which of its bytes come first depends on what was prepared. */
	if (bytes != room * psz)
		ASSERT_EQ(max(room - 1, 0) * psz + len % psz, bytes);
	get(_metadata, p[0], before, 2, 0);
	drain_filler(_metadata, p[0], used);
	get(_metadata, p[0], len, 1, 0);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(len, l.writer.ret);
	expect_works(_metadata, p);
	lazy_free(&l);
}

TEST_F_TIMEOUT(copy, wrong_guess_full, LONG_TIMEOUT)
{
	const char *reason;
	int uffd, fd;
	ssize_t i;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fd = reopen_nonblock(_metadata, self->p[1]);

	/* Every page is missing once for each number of slots that are free. */
	for (i = 0; i < 5 * 5; i++) {
		ssize_t len = 4 * psz + 200, page = i / 5, room = i % 5;

		full_nonblock(_metadata, self->p, fd, uffd, len, page, room);
		full_block(_metadata, self->p, uffd, 0, len, page, room);
		full_block(_metadata, self->p, uffd, 100, len, page, room);
		if (room < 4)
			full_nonblock_shrink(_metadata, self->p, fd, uffd, len,
					     page, room);
		if (!room)
			full_nonblock_merge(_metadata, self->p, fd, uffd, len, page);
	}
	close(fd);
	close(uffd);
}

/* The same with more pages than what a writer keeps while it waits */
TEST_F_TIMEOUT(copy, wrong_guess_full_huge, LONG_TIMEOUT)
{
	const ssize_t pages[] = { 0, 15, 16, 30 };
	const ssize_t rooms[] = { 0, 1, 14, 15, 16, 17, 29 };
	const char *reason;
	int uffd, fd;
	ssize_t i;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));
	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	fd = reopen_nonblock(_metadata, self->p[1]);

	/* Else the pipe cannot be changed while the last pages are missing. */
	if (!stuck_is_unlocked(_metadata, self->p, uffd, 30 * psz + 200, 30))
		SKIP(return, "this kernel copies some with the mutex held");

	for (i = 0; i < ARRAY_SIZE(pages) * ARRAY_SIZE(rooms); i++) {
		ssize_t page = pages[i / ARRAY_SIZE(rooms)];
		ssize_t room = rooms[i % ARRAY_SIZE(rooms)];
		ssize_t len = 30 * psz + 200;

		full_nonblock(_metadata, self->p, fd, uffd, len, page, room);
		full_block(_metadata, self->p, uffd, 0, len, page, room);
		full_block(_metadata, self->p, uffd, 100, len, page, room);
		full_nonblock_shrink(_metadata, self->p, fd, uffd, len, page, room);
		if (!room)
			full_nonblock_merge(_metadata, self->p, fd, uffd, len, page);
	}
	close(fd);
	close(uffd);
}

TEST_F_TIMEOUT(copy, wrong_guess_no_reader, LONG_TIMEOUT)
{
	const char *reason;
	int uffd, i, n = 0;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	count_signals(_metadata, SIGPIPE, 0);
	for (i = 0; i < 24; i++) {
		struct lazy l;
		int p[2];

		ASSERT_EQ(0, pipe2(p, O_CLOEXEC | (i & 1 ? O_NONBLOCK : 0)));
		put(_metadata, p[1], i & 2 ? 100 : 0, 1, 0);
		lazy_alloc(_metadata, &l, uffd, 2 * psz + (i & 4 ? 200 : 0), 1, 100);
		lazy_start(_metadata, &l, p[1], 1ull << i / 8 % l.nr);
		ASSERT_EQ(0, close(p[0]));
		ASSERT_EQ(n, signals());
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(-1, l.writer.ret);
		ASSERT_EQ(EPIPE, l.writer.err);
		ASSERT_EQ(++n, signals());
		lazy_free(&l);

		/* Nothing was added to what there was. */
		ASSERT_EQ(i & 2 ? 100 : 0, nr_bytes(_metadata, p[1]));
		close(p[1]);
	}
	expect_works(_metadata, self->p);
	close(uffd);
}

TEST_F_TIMEOUT(copy, wrong_guess_packets, LONG_TIMEOUT)
{
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	const ssize_t len = 2 * psz + 200;
	const char *reason;
	struct lazy l;
	ssize_t page;
	int uffd, i;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	for (i = 0; i < 12; i++) {
		ssize_t before = i & 1 ? 100 : 0;
		bool to_packets = i & 2;

		page = i / 4;
		/* What is in the pipe is stream bytes in any case. */
		put(_metadata, self->p[1], before, 1, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, !to_packets);
		lazy_alloc(_metadata, &l, uffd, len, 1, before);
		lazy_start(_metadata, &l, self->p[1], 1ull << page);
		set_flag(_metadata, self->p[1], O_DIRECT, to_packets);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);

		/* 300 or no stream bytes, and two or three packets. */
		if (to_packets && before) {
			ASSERT_EQ(psz + 300, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, psz + 300, 1, 0));
			ASSERT_EQ(psz, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, psz, 1, psz + 300));
		} else if (to_packets) {
			for (ssize_t pos = 0; pos < len; pos += psz) {
				ssize_t want = min(psz, len - pos);

				ASSERT_EQ(want, read(self->p[0], buf, 8 * psz));
				ASSERT_EQ(-1, mismatch(buf, want, 1, pos));
			}
		} else {
			ASSERT_EQ(before + len, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, before + len, 1, 0));
		}
		set_flag(_metadata, self->p[1], O_DIRECT, false);
		expect_works(_metadata, self->p);
		lazy_free(&l);
	}

	/*
	 * Packets all along, but the stream bytes are gone which the odd bytes
	 * were to be merged with.  How long the packets are is unspecified.
	 */
	for (page = 0; page < 3; page++) {
		ssize_t got = 0;

		put(_metadata, self->p[1], 100, 1, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, true);
		lazy_alloc(_metadata, &l, uffd, len, 1, 100);
		lazy_start(_metadata, &l, self->p[1], 1ull << page);
		get(_metadata, self->p[0], 100, 1, 0);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);
		for (i = 0; i < 3; i++) {
			ssize_t ret = read(self->p[0], buf, 8 * psz);

			ASSERT_GT(ret, 0);
			ASSERT_LE(ret, psz);
			ASSERT_EQ(-1, mismatch(buf, ret, 1, 100 + got));
			got += ret;
		}
		ASSERT_EQ(len, got);
		set_flag(_metadata, self->p[1], O_DIRECT, false);
		expect_works(_metadata, self->p);
		lazy_free(&l);
	}

	/* The only slot which can be merged with becomes a packet. */
	for (page = 0; page < 3; page++) {
		put(_metadata, self->p[1], 100, 1, 0);
		lazy_alloc(_metadata, &l, uffd, len, 1, 0);
		lazy_start(_metadata, &l, self->p[1], 1ull << page);
		get(_metadata, self->p[0], 100, 1, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, true);
		put(_metadata, self->p[1], 30, 2, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, false);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);
		ASSERT_EQ(30, read(self->p[0], buf, 8 * psz));
		ASSERT_EQ(-1, mismatch(buf, 30, 2, 0));
		get(_metadata, self->p[0], len, 1, 0);
		expect_works(_metadata, self->p);
		lazy_free(&l);
	}
	close(uffd);
	free(buf);
}

/* A page of the buffer is not accessible, but what was copied before counts. */
TEST_F_TIMEOUT(copy, wrong_guess_efault, LONG_TIMEOUT)
{
	const char *reason;
	ssize_t i;
	int uffd;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	for (i = 0; i < 6; i++) {
		ssize_t before = i & 1 ? 100 : 0;
		ssize_t bad = 1 + i / 2;
		struct lazy l;

		put(_metadata, self->p[1], 100, 1, 0);
		lazy_alloc(_metadata, &l, uffd, 3 * psz + 200, 1, before);
		lazy_arm(_metadata, &l, 1);
		map_nothing_at(_metadata, l.map + bad * psz, psz);
		l.writer.fd = self->p[1];
		io_start(_metadata, &l.writer);
		lazy_wait_stuck(_metadata, &l);
		/* Either it cannot be merged any more, or not with the first. */
		get(_metadata, self->p[0], 100, 1, 0);
		put(_metadata, self->p[1], before, 1, 0);
		lazy_provide(_metadata, &l, ~(1ull << bad));
		io_join(_metadata, &l.writer);

		/* Pages of the stream are those of the buffer, or are not. */
		if (before || l.writer.ret != bad * psz)
			ASSERT_EQ((bad - 1) * psz + 200, l.writer.ret);
		map_at(_metadata, l.map + bad * psz, psz);
		memcpy(l.map + bad * psz, l.src + bad * psz, psz);
		expect_retry(_metadata, self->p, &l, before);
	}
	close(uffd);
}

/*
 * Some programs rely on an event from edge-triggered epoll for every write,
 * even if nobody read what was there already.
 */
TEST_F(pipe, epollet_every_write)
{
	const ssize_t lens[] = { 1, 1, psz, 100, psz - 100, 2 * psz + 5, 7 };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	ssize_t i, pos = 0;
	int ep;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_GE(ep, 0);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[0], &ev));
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		put(_metadata, self->p[1], lens[i], 1, pos);
		pos += lens[i];
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0)) {
			TH_LOG("no event for write %zd", i);
		}
		ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	}

	/* A write which is cut short is one, too. */
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	ASSERT_GT(try_put(_metadata, self->p[1], DEF_SLOTS * psz, 1, pos), 0);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	get(_metadata, self->p[0], nr_bytes(_metadata, self->p[0]), 1, 0);
	put(_metadata, self->p[1], 1, 2, 0);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	get(_metadata, self->p[0], 1, 2, 0);
	close(ep);
	expect_works(_metadata, self->p);
}

TEST_F(pipe, pollout_after_drain)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	struct io io;
	int ep;

	set_slots(_metadata, self->p[1], 4);
	ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_GE(ep, 0);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[1], &ev));
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));

	ASSERT_TRUE(polls(self->p[1], POLLOUT));
	ASSERT_FALSE(polls(self->p[0], POLLIN));
	fill_slots(_metadata, self->p[1]);
	ASSERT_FALSE(polls(self->p[1], POLLOUT));
	ASSERT_TRUE(polls(self->p[0], POLLIN));
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));

	/* A part of a slot is not enough. */
	get(_metadata, self->p[0], psz - 1, FILLER, 0);
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	ASSERT_FALSE(polls(self->p[1], POLLOUT));
	get(_metadata, self->p[0], 1, FILLER, psz - 1);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
	ASSERT_TRUE(polls(self->p[1], POLLOUT));

	/* The same with a full pipe which is drained at once */
	drain_filler(_metadata, self->p[0], 3);
	fill_slots(_metadata, self->p[1]);
	(void)epoll_wait(ep, &ev, 1, 0);
	ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	drain_filler(_metadata, self->p[0], 4);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));

	/* A writer which waits takes the slots, so there is no POLLOUT. */
	io_init_write(_metadata, &io, self->p[1], 6 * psz, 1, 0);
	io_start(_metadata, &io);
	io_wait_blocked(_metadata, &io);
	ASSERT_FALSE(polls(self->p[1], POLLOUT));
	get(_metadata, self->p[0], 6 * psz, 1, 0);
	io_join(_metadata, &io);
	ASSERT_EQ(6 * psz, io.ret);
	ASSERT_TRUE(polls(self->p[1], POLLOUT));
	free(io.buf);

	close(ep);
	expect_works(_metadata, self->p);
}

TEST_F(pipe, sigio)
{
	int i;

	count_signals(_metadata, SIGIO, 0);
	ASSERT_EQ(0, fcntl(self->p[0], F_SETOWN, getpid()));
	set_flag(_metadata, self->p[0], O_ASYNC, true);
	for (i = 1; i <= 3; i++) {
		put(_metadata, self->p[1], i * psz - 1, i, 0);
		ASSERT_EQ(i, signals());
	}
	set_flag(_metadata, self->p[0], O_ASYNC, false);

	count_signals(_metadata, SIGIO, 0);
	ASSERT_EQ(0, fcntl(self->p[1], F_SETOWN, getpid()));
	set_flag(_metadata, self->p[1], O_ASYNC, true);
	for (i = 1; i <= 3; i++) {
		get(_metadata, self->p[0], i * psz - 1, i, 0);
		ASSERT_EQ(i, signals());
	}
	set_flag(_metadata, self->p[1], O_ASYNC, false);
	expect_works(_metadata, self->p);
}

static void make_pipe(struct __test_metadata *_metadata, int p[2])
{
	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	set_slots(_metadata, p[1], DEF_SLOTS);
}

/* Pages which two pipes share: nobody may see what the other writes. */
TEST_F(pipe, tee_and_merge)
{
	int q[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	make_pipe(_metadata, q);

	put(_metadata, self->p[1], psz + 100, 1, 0);
	ASSERT_EQ(psz + 100, tee(self->p[0], q[1], 2 * psz, 0));
	/* Both after byte 100, but the copy must not merge. */
	put(_metadata, self->p[1], 50, 1, psz + 100);
	put(_metadata, q[1], 70, 2, 0);
	put(_metadata, self->p[1], psz + 20, 1, psz + 150);
	put(_metadata, q[1], psz + 30, 2, 70);

	ASSERT_EQ(DEF_SLOTS - 4, fill_slots(_metadata, q[1]));
	get(_metadata, q[0], psz + 100, 1, 0);
	get(_metadata, q[0], psz + 100, 2, 0);
	drain_filler(_metadata, q[0], DEF_SLOTS - 4);
	expect_empty(_metadata, q[0]);
	EXPECT_LAYOUT(self->p, 1, 0, psz, 170, psz);

	/* And the same while the original is gone already. */
	put(_metadata, self->p[1], 100, 3, 0);
	ASSERT_EQ(100, tee(self->p[0], q[1], psz, 0));
	get(_metadata, self->p[0], 100, 3, 0);
	put(_metadata, q[1], 10, 4, 0);
	put(_metadata, self->p[1], 200, 5, 0);
	get(_metadata, q[0], 100, 3, 0);
	get(_metadata, q[0], 10, 4, 0);
	get(_metadata, self->p[0], 200, 5, 0);

	expect_works(_metadata, self->p);
	expect_works(_metadata, q);
}

/* A page which somebody else holds must not be used again for a write. */
TEST_F(pipe, tee_and_recycle)
{
	const ssize_t lens[] = { 1, 100, psz, 2 * psz + 5, 10 * psz };
	unsigned int seed = 1;
	ssize_t i, j;
	int q[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	make_pipe(_metadata, q);

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		for (j = 0; j < 2; j++, seed += 3) {
			const int *first = j ? self->p : q;
			const int *last = j ? q : self->p;

			put(_metadata, self->p[1], lens[i], seed, 0);
			ASSERT_EQ(lens[i], tee(self->p[0], q[1], lens[i], 0));
			get(_metadata, first[0], lens[i], seed, 0);
			/* Would overwrite the pages the other still has. */
			put(_metadata, first[1], 12 * psz, seed + 1, 0);
			get(_metadata, last[0], lens[i], seed, 0);
			put(_metadata, last[1], 12 * psz, seed + 2, 0);
			get(_metadata, first[0], 12 * psz, seed + 1, 0);
			get(_metadata, last[0], 12 * psz, seed + 2, 0);
			expect_empty(_metadata, self->p[0]);
			expect_empty(_metadata, q[0]);
		}
	}
}

/* Whole slots move to the other pipe; of the last one, they get a part each. */
TEST_F(pipe, splice_to_pipe)
{
	int q[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	make_pipe(_metadata, q);

	put(_metadata, self->p[1], 2 * psz + 100, 1, 0);
	ASSERT_EQ(2 * psz + 60,
		  splice(self->p[0], NULL, q[1], NULL, 2 * psz + 60, 0));
	put(_metadata, q[1], 30, 2, 0);
	put(_metadata, self->p[1], 50, 1, 2 * psz + 100);
	get(_metadata, q[0], 2 * psz + 60, 1, 0);
	get(_metadata, q[0], 30, 2, 0);
	get(_metadata, self->p[0], 90, 1, 2 * psz + 60);
	expect_works(_metadata, self->p);
	expect_works(_metadata, q);

	/* Pages of one pipe are now used again by the other. */
	put(_metadata, self->p[1], 6 * psz + 100, 3, 0);
	ASSERT_EQ(6 * psz + 100,
		  splice(self->p[0], NULL, q[1], NULL, 7 * psz, 0));
	put(_metadata, self->p[1], 6 * psz, 4, 0);
	put(_metadata, q[1], 200, 3, 6 * psz + 100);
	get(_metadata, q[0], 6 * psz + 300, 3, 0);
	put(_metadata, q[1], 6 * psz, 5, 0);
	get(_metadata, self->p[0], 6 * psz, 4, 0);
	get(_metadata, q[0], 6 * psz, 5, 0);
	expect_works(_metadata, self->p);
	expect_works(_metadata, q);
}

static int make_memfd(struct __test_metadata *_metadata)
{
	int fd = memfd_create("pipe_test", MFD_CLOEXEC);

	ASSERT_GE(fd, 0);
	return fd;
}

TEST_F(pipe, splice_to_file)
{
	const ssize_t len = 10 * psz + 33;
	unsigned char *buf = alloc_buf(_metadata, len);
	int fd = make_memfd(_metadata);
	ssize_t done = 0;
	int q[2];

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	make_pipe(_metadata, q);

	put(_metadata, self->p[1], len, 1, 0);
	ASSERT_EQ(len, tee(self->p[0], q[1], len, 0));
	while (done < len) {
		ssize_t ret = splice(self->p[0], NULL, fd, NULL, len - done,
				     SPLICE_F_MOVE);

		ASSERT_GT(ret, 0);
		done += ret;
	}
	ASSERT_EQ(len, done);
	expect_empty(_metadata, self->p[0]);
	put(_metadata, self->p[1], DEF_SLOTS * psz, 2, 0);

	ASSERT_EQ(len, pread(fd, buf, len, 0));
	ASSERT_EQ(-1, mismatch(buf, len, 1, 0));
	get(_metadata, q[0], len, 1, 0);
	get(_metadata, self->p[0], DEF_SLOTS * psz, 2, 0);
	expect_works(_metadata, self->p);
	expect_works(_metadata, q);
	close(fd);
	free(buf);
}

/*
 * A page of the page cache is in the pipe, in a slot which had been writable
 * before.  A write must not be merged with it: see CVE-2022-0847.
 */
TEST_F(pipe, splice_from_file)
{
	unsigned char *buf = alloc_buf(_metadata, 3 * psz);
	const ssize_t lens[] = { 1, 200, psz - 1, psz, psz + 1, 3 * psz + 5 };
	int fd = make_memfd(_metadata);
	ssize_t i;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fill(buf, 3 * psz, 1, 0);
	ASSERT_EQ(3 * psz, write(fd, buf, 3 * psz));

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		loff_t off = psz + 1;

		fill_slots(_metadata, self->p[1]);
		drain_filler(_metadata, self->p[0], DEF_SLOTS);

		ASSERT_EQ(1, splice(fd, &off, self->p[1], NULL, 1, 0));
		put(_metadata, self->p[1], lens[i], 2 + i, 0);
		ASSERT_EQ(DEF_SLOTS - 1 - (lens[i] + psz - 1) / psz,
			  fill_slots(_metadata, self->p[1]));

		ASSERT_EQ(3 * psz, pread(fd, buf, 3 * psz, 0));
		ASSERT_EQ(-1, mismatch(buf, 3 * psz, 1, 0));
		get(_metadata, self->p[0], 1, 1, psz + 1);
		get(_metadata, self->p[0], lens[i], 2 + i, 0);
		drain_filler(_metadata, self->p[0],
			     DEF_SLOTS - 1 - (lens[i] + psz - 1) / psz);
		expect_empty(_metadata, self->p[0]);
	}

	/* Nor may a page of the file be used again once it was read. */
	for (i = 0; i < 3; i++) {
		loff_t off = 0;

		ASSERT_EQ(2 * psz,
			  splice(fd, &off, self->p[1], NULL, 2 * psz, 0));
		get(_metadata, self->p[0], 2 * psz, 1, 0);
		put(_metadata, self->p[1], 4 * psz, 9, 0);
		get(_metadata, self->p[0], 4 * psz, 9, 0);
		ASSERT_EQ(3 * psz, pread(fd, buf, 3 * psz, 0));
		ASSERT_EQ(-1, mismatch(buf, 3 * psz, 1, 0));
	}
	expect_works(_metadata, self->p);
	close(fd);
	free(buf);
}

/* The same with pages of user space */
TEST_F(pipe, vmsplice)
{
	unsigned char *map;
	struct iovec iov;
	ssize_t i;

	map = mmap(NULL, 2 * psz, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fill(map, 2 * psz, 1, 0);

	for (i = 0; i < 3; i++) {
		fill_slots(_metadata, self->p[1]);
		drain_filler(_metadata, self->p[0], DEF_SLOTS);

		iov.iov_base = map;
		iov.iov_len = psz + 100;
		ASSERT_EQ(psz + 100, vmsplice(self->p[1], &iov, 1, 0));
		put(_metadata, self->p[1], 50, 2, 0);
		put(_metadata, self->p[1], psz + 50, 2, 50);
		ASSERT_EQ(DEF_SLOTS - 4, fill_slots(_metadata, self->p[1]));
		ASSERT_EQ(-1, mismatch(map, 2 * psz, 1, 0));
		get(_metadata, self->p[0], psz + 100, 1, 0);
		get(_metadata, self->p[0], psz + 100, 2, 0);
		drain_filler(_metadata, self->p[0], DEF_SLOTS - 4);
		put(_metadata, self->p[1], 4 * psz, 3, 0);
		ASSERT_EQ(-1, mismatch(map, 2 * psz, 1, 0));
		get(_metadata, self->p[0], 4 * psz, 3, 0);
	}
	expect_works(_metadata, self->p);
	munmap(map, 2 * psz);
}

/* Pages are used again, so look for what was in them before. */
TEST_F(pipe, recycled_pages)
{
	const ssize_t lens[] = {
		16 * psz, 1, 100, psz - 1, psz, 8 * psz + 77, psz + 1, 3 * psz, 2,
	};
	ssize_t in = 0, out = 0;
	unsigned int i, rnd = 1;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	for (i = 0; i < 3 * ARRAY_SIZE(lens); i++) {
		ssize_t len = lens[i % ARRAY_SIZE(lens)];

		put(_metadata, self->p[1], len, i, 0);
		get_chunks(_metadata, self->p[0], len, i, 0, 2 * psz + 9 * i);
	}
	expect_empty(_metadata, self->p[0]);

	/* A stream which fills and drains the pipe at random */
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	for (i = 0; i < 200; i++) {
		ssize_t len = 1 + next_random(&rnd) % (i % 3 ? 200 : 6 * psz);
		ssize_t ret = try_put(_metadata, self->p[1], len, 77, in);

		if (ret < 0) {
			ASSERT_EQ(EAGAIN, errno);
			ret = 0;
		}
		in += ret;
		ASSERT_EQ(in - out, nr_bytes(_metadata, self->p[0]));
		len = next_random(&rnd) % (i % 5 ? 3 * psz : 16 * psz);
		len = min(len, in - out);
		get(_metadata, self->p[0], len, 77, out);
		out += len;
	}
	get(_metadata, self->p[0], in - out, 77, out);
	expect_works(_metadata, self->p);
}

/* A pipe for notifications is not for write(), whatever else is wrong. */
TEST_F(pipe, notification_pipe)
{
	const ssize_t lens[] = { 0, 1, psz, 5 * psz };
	unsigned char *buf = alloc_buf(_metadata, 5 * psz);
	struct guarded bad;
	ssize_t i;
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NOTIFICATION_PIPE))
		SKIP(return, "O_NOTIFICATION_PIPE: %s", strerror(errno));

	count_signals(_metadata, SIGPIPE, 0);
	guarded_alloc(_metadata, &bad, 0, 5 * psz, false);
	memset(buf, 0, 5 * psz);
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		ssize_t len = lens[i % ARRAY_SIZE(lens)];

		if (i == ARRAY_SIZE(lens)) {
			ASSERT_EQ(-1, fcntl(p[1], F_SETPIPE_SZ, (int)psz));
			ASSERT_EQ(EBUSY, errno);
			ASSERT_EQ(0, close(p[0]));
		}
		/* Even if there is nothing to write */
		ASSERT_EQ(-1, write(p[1], buf, len));
		ASSERT_EQ(EXDEV, errno);
		ASSERT_EQ(-1, write(p[1], bad.buf, len));
		ASSERT_EQ(EXDEV, errno);
		ASSERT_EQ(0, nr_bytes(_metadata, p[1]));
	}
	ASSERT_EQ(0, signals());
	ASSERT_EQ(0, close(p[1]));
	guarded_free(&bad);
	free(buf);
}

static long memcg_current(struct __test_metadata *_metadata, const char *memcg)
{
	char val[64];

	ASSERT_EQ(0, read_file_at(memcg, "memory.current", val, sizeof(val)));
	return atol(val);
}

/*
 * Charges are taken from and returned to a stock of some pages per CPU, so stay
 * on one of them, and look at many more pages than that.
 */
static void pin_to_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

TEST_F(pipe, memcg_charge)
{
	unsigned char *buf;
	ssize_t slots, total;
	long before, grown;
	int p[4][2];
	ssize_t i;

	if (!variant->child_memcg)
		SKIP(return, "needs a memory cgroup of its own");

	pin_to_cpu();
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		ASSERT_EQ(0, pipe2(p[i], O_CLOEXEC));
		slots = set_big(p[i][1]);
	}
	total = ARRAY_SIZE(p) * slots * psz;
	if (ARRAY_SIZE(p) * slots < 4 * DEF_SLOTS * DEF_SLOTS)
		SKIP(return, "cannot make pipes of more than %zd pages", slots);

	buf = alloc_buf(_metadata, slots * psz);
	fill(buf, slots * psz, 1, 0);
	before = memcg_current(_metadata, self->child.memcg);

	for (i = 0; i < ARRAY_SIZE(p); i++)
		ASSERT_EQ(slots * psz, write(p[i][1], buf, slots * psz));
	grown = memcg_current(_metadata, self->child.memcg) - before;
	ASSERT_GE(grown, (long)(total / 4 * 3));

	/* Whether they are drained or closed, little may remain. */
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		if (i & 1) {
			get_chunks(_metadata, p[i][0], slots * psz, 1, 0, 7 * psz);
		} else {
			ASSERT_EQ(0, close(p[i][0]));
			ASSERT_EQ(0, close(p[i][1]));
		}
	}
	ASSERT_TRUE(WAIT_FOR(memcg_current(_metadata, self->child.memcg) <
			     before + (long)(total / 4))) {
		TH_LOG("was %ld, grew by %ld, is %ld", before, grown,
		       memcg_current(_metadata, self->child.memcg));
	}
	free(buf);
}

/* Pages which were meant for a write which failed are not lost. */
TEST_F_TIMEOUT(pipe, memcg_failed_writes, LONG_TIMEOUT)
{
	const int loops = 512;
	struct guarded bad, half;
	struct io io;
	long before;
	int i, p[2];

	if (!variant->child_memcg)
		SKIP(return, "needs a memory cgroup of its own");

	pin_to_cpu();
	signal(SIGPIPE, SIG_IGN);
	count_signals(_metadata, SIGUSR1, 0);
	set_slots(_metadata, self->p[1], 2);
	set_flag(_metadata, self->p[1], O_NONBLOCK, true);
	guarded_alloc(_metadata, &bad, 0, 16 * psz, false);
	guarded_alloc(_metadata, &half, 8 * psz, 8 * psz, false);
	fill(half.buf, 8 * psz, 1, 0);
	io_init_write(_metadata, &io, self->p[1], 16 * psz, 1, 0);
	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	ASSERT_EQ(0, close(p[0]));
	before = memcg_current(_metadata, self->child.memcg);

	for (i = 0; i < loops; i++) {
		ASSERT_EQ(-1, write(self->p[1], bad.buf, 16 * psz));
		ASSERT_EQ(EFAULT, errno);
		ASSERT_EQ(-1, write(p[1], io.buf, 16 * psz));
		ASSERT_EQ(EPIPE, errno);
	}
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	for (i = 0; i < loops / 8; i++) {
		ASSERT_EQ(8 * psz, write(self->p[1], half.buf, 16 * psz));
		get(_metadata, self->p[0], 8 * psz, 1, 0);
	}
	fill_slots(_metadata, self->p[1]);
	for (i = 0; i < loops; i++) {
		ASSERT_EQ(-1, write(self->p[1], io.buf, 16 * psz));
		ASSERT_EQ(EAGAIN, errno);
	}
	set_flag(_metadata, self->p[1], O_NONBLOCK, false);
	for (i = 0; i < loops / 16; i++) {
		io_start(_metadata, &io);
		io_wait_blocked(_metadata, &io);
		pthread_kill(io.thread, SIGUSR1);
		io_join(_metadata, &io);
		ASSERT_EQ(-1, io.ret);
		ASSERT_EQ(EINTR, io.err);
	}
	drain_filler(_metadata, self->p[0], DEF_SLOTS);
	ASSERT_TRUE(WAIT_FOR(memcg_current(_metadata, self->child.memcg) <
			     before + (long)(loops / 2 * psz))) {
		TH_LOG("was %ld, is %ld", before, memcg_current(_metadata, self->child.memcg));
	}
	guarded_free(&bad);
	guarded_free(&half);
	free(io.buf);
}

/*
 * A process of its own, so that it can be killed, but with this memory.  It must
 * not touch errno, nor anything else of this thread.
 */
static int victim_main(void *arg)
{
	struct io *io = arg;

	syscall(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	syscall(__NR_write, io->fd, io->buf, io->len);
	return 0;
}

static pid_t victim_start(struct __test_metadata *_metadata, struct io *io,
			  unsigned char *stack_end)
{
	pid_t pid = clone(victim_main, stack_end, CLONE_VM | SIGCHLD, io);

	ASSERT_GT(pid, 0);
	return pid;
}

static void victim_kill(struct __test_metadata *_metadata, pid_t pid)
{
	int status;

	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	ASSERT_EQ(SIGKILL, WTERMSIG(status));
}

/* Writes which end early, each in its own way, @loops times */
static void mixed_failures(struct __test_metadata *_metadata, int uffd, bool unlocked,
			   int loops)
{
	const ssize_t stack_len = 64 * 1024, len = 3 * psz + 200;
	unsigned char *stack = alloc_buf(_metadata, stack_len) + stack_len;
	struct guarded bad;
	struct lazy l;
	int p[2], q[2];
	int fd, i;

	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(q, O_CLOEXEC));
	close(q[0]);
	set_slots(_metadata, p[1], 4);
	fd = reopen_nonblock(_metadata, p[1]);
	lazy_alloc(_metadata, &l, uffd, len, 1, 100);
	/* The third page is bad. */
	guarded_alloc(_metadata, &bad, 2 * psz + 50, 2 * psz, false);
	fill(bad.buf, 2 * psz + 50, 1, 100);

	for (i = 0; i < loops; i++) {
		ssize_t odd = i & 1 ? 200 : 0;
		ssize_t before = i & 2 ? 100 : 0;
		pid_t pid;

		l.writer.len = 3 * psz + odd;

		/* Killed while it is stuck, in any page */
		put(_metadata, p[1], before, 1, 0);
		lazy_arm(_metadata, &l, 1ull << i % 3);
		l.writer.fd = p[1];
		pid = victim_start(_metadata, &l.writer, stack);
		ASSERT_TRUE(WAIT_FOR(lazy_fault(_metadata, &l) >= 0));
		victim_kill(_metadata, pid);
		lazy_resolve(_metadata, &l);
		/* On old kernels, what it had merged or the pages before count. */
		get(_metadata, p[0], before, 1, 0);
		get(_metadata, p[0], nr_bytes(_metadata, p[0]), 1, 100);

		/* Killed while it waits for room */
		ASSERT_EQ(4, fill_slots(_metadata, p[1]));
		pid = victim_start(_metadata, &l.writer, stack);
		ASSERT_TRUE(WAIT_FOR(task_state(pid) == 'S'));
		victim_kill(_metadata, pid);
		drain_filler(_metadata, p[0], 4);
		expect_empty(_metadata, p[0]);

		/* EFAULT after two pages, and EPIPE and EAGAIN */
		put(_metadata, p[1], before, 1, 0);
		ASSERT_EQ((before ? psz : 2 * psz) + (before ? 200 : 0),
			  write(fd, bad.buf, 2 * psz + 200));
		get(_metadata, p[0], before, 1, 0);
		get(_metadata, p[0], nr_bytes(_metadata, p[0]), 1, 100);
		ASSERT_EQ(-1, write(q[1], l.map, l.writer.len));
		ASSERT_EQ(EPIPE, errno);
		ASSERT_EQ(4, fill_slots(_metadata, p[1]));
		ASSERT_EQ(-1, write(fd, l.map, l.writer.len));
		ASSERT_EQ(EAGAIN, errno);
		drain_filler(_metadata, p[0], 4);

		/* Large and odd writes which succeed */
		put(_metadata, p[1], before, 1, 0);
		ASSERT_EQ(l.writer.len - psz, write(fd, l.map, l.writer.len - psz));
		get(_metadata, p[0], before, 1, 0);
		get(_metadata, p[0], l.writer.len - psz, 1, 100);
		expect_empty(_metadata, p[0]);
		if (!unlocked)
			continue;

		/* The pipe became full, or nobody reads it any more. */
		put(_metadata, p[1], before, 1, 0);
		lazy_start(_metadata, &l, fd, 1ull << i % 3);
		get(_metadata, p[0], before, 1, 0);
		ASSERT_EQ(4, fill_slots(_metadata, p[1]));
		if (i & 4)
			drain_filler(_metadata, p[0], 1);
		if (i & 8)
			close(p[0]);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		if (i & 8) {
			ASSERT_EQ(-1, l.writer.ret);
			ASSERT_EQ(EPIPE, l.writer.err);
			close(p[1]);
			close(fd);
			ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
			set_slots(_metadata, p[1], 4);
			fd = reopen_nonblock(_metadata, p[1]);
			continue;
		}
		drain_filler(_metadata, p[0], i & 4 ? 3 : 4);
		if (i & 4) {
			/* What was meant to be merged may be a slot. */
			ASSERT_GT(l.writer.ret, 0);
			get(_metadata, p[0], l.writer.ret, 1, 100);
		} else {
			ASSERT_EQ(-1, l.writer.ret);
			ASSERT_EQ(EAGAIN, l.writer.err);
		}
		expect_empty(_metadata, p[0]);
	}
	set_slots(_metadata, p[1], DEF_SLOTS);
	expect_works(_metadata, p);
	close(p[0]);
	close(p[1]);
	close(q[1]);
	close(fd);
	guarded_free(&bad);
	lazy_free(&l);
	free(stack - stack_len);
}

/*
 * The same as memcg_failed_writes with writers which are killed, or find another
 * pipe than they had prepared for.
 */
TEST_F_TIMEOUT(pipe, memcg_mixed_failures, 2 * LONG_TIMEOUT)
{
	const int loops = 512;
	const char *reason;
	bool unlocked;
	long before;
	int uffd;

	if (!variant->child_memcg)
		SKIP(return, "needs a memory cgroup of its own");
	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);

	unlocked = copies_unlocked(_metadata, uffd);
	pin_to_cpu();
	signal(SIGPIPE, SIG_IGN);
	/* Whatever is allocated only once should not count. */
	mixed_failures(_metadata, uffd, unlocked, 16);
	before = memcg_current(_metadata, self->child.memcg);
	mixed_failures(_metadata, uffd, unlocked, loops);
	ASSERT_TRUE(WAIT_FOR(memcg_current(_metadata, self->child.memcg) <
			     before + (long)(loops / 4 * psz))) {
		TH_LOG("was %ld, is %ld", before, memcg_current(_metadata, self->child.memcg));
	}
	close(uffd);
}

/* Named pipes are written to by the same code. */
TEST_F(pipe, fifo)
{
	const ssize_t lens[] = { 1, psz - 1, psz + 1, 16 * psz };
	char path[PATH_MAX];
	struct io io;
	int p[2], ret;
	ssize_t i;

	ret = make_temp_dir(self->temp_dir, sizeof(self->temp_dir));
	if (ret) {
		self->temp_dir[0] = '\0';
		SKIP(return, "no temporary directory: %s", strerror(-ret));
	}
	snprintf(path, sizeof(path), "%s/fifo", self->temp_dir);
	if (mkfifo(path, 0600))
		SKIP(return, "mkfifo: %s", strerror(errno));

	p[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_GE(p[0], 0);
	p[1] = open(path, O_WRONLY | O_CLOEXEC);
	ASSERT_GE(p[1], 0);
	set_flag(_metadata, p[0], O_NONBLOCK, false);
	set_slots(_metadata, p[1], DEF_SLOTS);

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		put(_metadata, p[1], lens[i], i, 0);
		get_chunks(_metadata, p[0], lens[i], i, 0, 4091);
		expect_empty(_metadata, p[0]);
	}
	put(_metadata, p[1], 100, 1, 0);
	put(_metadata, p[1], psz + 200, 1, 100);
	EXPECT_LAYOUT(p, 1, 0, 300, psz);

	io_init_write(_metadata, &io, p[1], 100 * psz + 17, 2, 0);
	io_start(_metadata, &io);
	get_chunks(_metadata, p[0], 100 * psz + 17, 2, 0, 3 * psz + 41);
	io_join(_metadata, &io);
	ASSERT_EQ(100 * psz + 17, io.ret);
	expect_works(_metadata, p);
	free(io.buf);
}

/* A write which is much larger than the pipe */
TEST_F_TIMEOUT(pipe, blocking_stream, LONG_TIMEOUT)
{
	const ssize_t len = 256 * psz + 333;
	unsigned char *buf = alloc_buf(_metadata, 5 * psz);
	unsigned int rnd = 1;
	ssize_t got = 0;
	struct io io;

	set_slots(_metadata, self->p[1], DEF_SLOTS);
	io_init_write(_metadata, &io, self->p[1], len, 1, 0);
	io_start(_metadata, &io);
	while (got < len) {
		ssize_t want = min(1 + next_random(&rnd) % (5 * psz), len - got);
		ssize_t ret;

		/* A slow reader, every now and then */
		if (next_random(&rnd) % 16 == 0 && len - got > 17 * psz)
			io_wait_blocked(_metadata, &io);
		ret = read(self->p[0], buf, want);
		ASSERT_GT(ret, 0);
		ASSERT_EQ(-1, mismatch(buf, ret, 1, got));
		got += ret;
	}
	io_join(_metadata, &io);
	ASSERT_EQ(len, io.ret);
	expect_works(_metadata, self->p);
	free(io.buf);
	free(buf);
}

/*
 * Several writers of @len bytes each: they are interleaved somehow, but each
 * keeps its order.
 */
static void blocking_streams(struct __test_metadata *_metadata, const int p[2],
			     ssize_t nr, ssize_t len, const ssize_t *lens,
			     ssize_t nr_lens)
{
	unsigned char *buf = alloc_buf(_metadata, 5 * psz);
	ssize_t pos[MAX_WRITERS] = {}, got = 0, i, j;
	struct io io[MAX_WRITERS];
	unsigned int rnd = 1;

	ASSERT_LE(nr, MAX_WRITERS);
	for (i = 0; i < nr; i++) {
		io_init_write(_metadata, &io[i], p[1], len, i, 0);
		/* The top bits tell whose byte it is. */
		for (j = 0; j < len; j++)
			io[i].buf[j] = (io[i].buf[j] & 0x3f) | i << 6;
		io[i].all = true;
		io[i].lens = lens;
		io[i].nr_lens = nr_lens;
	}
	for (i = 0; i < nr; i++)
		io_start(_metadata, &io[i]);
	while (got < nr * len) {
		ssize_t want = min(1 + next_random(&rnd) % (5 * psz), nr * len - got);
		ssize_t ret = read(p[0], buf, want);

		ASSERT_GT(ret, 0);
		for (j = 0; j < ret; j++) {
			i = buf[j] >> 6;
			if (i >= nr || pos[i] >= len || buf[j] != io[i].buf[pos[i]])
				break;
			pos[i]++;
		}
		ASSERT_EQ(ret, j) {
			TH_LOG("a byte is wrong, which may be that of writer %zd", i);
		}
		got += ret;
	}
	for (i = 0; i < nr; i++) {
		io_join(_metadata, &io[i]);
		ASSERT_EQ(len, io[i].ret);
		free(io[i].buf);
	}
	free(buf);
}

TEST_F_TIMEOUT(pipe, two_blocking_streams, LONG_TIMEOUT)
{
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	blocking_streams(_metadata, self->p, 2, 40 * psz + 77, NULL, 0);
	expect_works(_metadata, self->p);
}

/* Writes whose odd bytes may be merged, or not any more */
TEST_F_TIMEOUT(copy, odd_streams, LONG_TIMEOUT)
{
	const ssize_t lens[] = {
		psz + 1, 2 * psz - 3, 100, 3 * psz + 500, psz, 2 * psz + 9,
		psz / 2 + 1, psz + psz / 2,
	};
	struct resizer r = { .fd = self->p[1] };
	pthread_t thread;
	ssize_t i;

	for (i = 2; i <= DEF_SLOTS; i *= 2) {
		set_slots(_metadata, self->p[1], i);
		blocking_streams(_metadata, self->p, 3, 60 * psz + 77, lens,
				 ARRAY_SIZE(lens));
		expect_empty(_metadata, self->p[0]);
	}

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));
	ASSERT_EQ(0, pthread_create(&thread, NULL, resize_thread, &r));
	for (i = 0; i < 4; i++) {
		blocking_streams(_metadata, self->p, 3, 100 * psz + 77, lens,
				 ARRAY_SIZE(lens));
		expect_empty(_metadata, self->p[0]);
	}
	ASSERT_TRUE(WAIT_FOR(__atomic_load_n(&r.ok, __ATOMIC_RELAXED) > 7));
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, r.bad);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
}

/*
 * Writers of whole pages, each of which is a record.  They use pages again which
 * were read a moment ago.
 */
struct page_writer {
	struct __test_metadata *_metadata;
	pthread_t thread;
	int fd;
	unsigned int id;
	unsigned int count;
	unsigned int pages;	/* per write */
};

static void *page_writer_thread(void *arg)
{
	struct page_writer *w = arg;
	struct __test_metadata *_metadata = w->_metadata;
	unsigned char *buf = alloc_buf(_metadata, w->pages * psz);
	unsigned int seq, i;

	for (seq = 0; seq < w->count; seq += w->pages) {
		for (i = 0; i < w->pages; i++)
			record_fill(buf + i * psz, psz, w->id, seq + i);
		ASSERT_EQ((ssize_t)(w->pages * psz), write(w->fd, buf, w->pages * psz));
	}
	free(buf);
	return NULL;
}

/* Read @len bytes, which are whole pages, and verify them. */
static void get_pages(struct __test_metadata *_metadata, int fd, unsigned char *buf,
		      ssize_t len, ssize_t chunk, unsigned int *next_seq)
{
	ssize_t got = 0;

	while (got < len) {
		ssize_t ret = read(fd, buf + got, min(chunk, len - got));

		ASSERT_GT(ret, 0);
		got += ret;
	}
	expect_records(_metadata, buf, len, next_seq);
}

/* With @q, copies of some pages are kept there for a while. */
static void page_writers(struct __test_metadata *_metadata, const int p[2],
			 const int *q, ssize_t slots)
{
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	unsigned char *copy = alloc_buf(_metadata, 8 * psz);
	unsigned char *held = alloc_buf(_metadata, 8 * psz);
	const unsigned int pages[] = { 1, 2, 1 };
	struct page_writer w[ARRAY_SIZE(pages)];
	unsigned int next_seq[MAX_WRITERS] = {};
	ssize_t total = 0, got = 0, kept = 0;
	unsigned int i, rnd = slots;

	set_slots(_metadata, p[1], slots);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i]._metadata = _metadata;
		w[i].fd = p[1];
		w[i].id = i;
		w[i].pages = pages[i];
		w[i].count = 600;
		total += w[i].count * psz;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, page_writer_thread, &w[i]));
	}
	while (got < total) {
		ssize_t len = psz * (1 + next_random(&rnd) % 8);
		/* One page of two is emptied by more than one read. */
		ssize_t chunk = next_random(&rnd) % 2 ? psz / 2 + 1 : 8 * psz;

		len = min(len, total - got);
		if (q && !kept) {
			kept = tee(p[0], q[1], len, 0);
			ASSERT_GT(kept, 0);
			ASSERT_EQ(0, kept % psz);
			get_pages(_metadata, p[0], held, kept, chunk, next_seq);
			got += kept;
		} else {
			get_pages(_metadata, p[0], buf, len, chunk, next_seq);
			got += len;
			/* The writers had the time to overwrite it. */
			if (kept && next_random(&rnd) % 3 == 0) {
				ASSERT_EQ(kept, read(q[0], copy, 8 * psz));
				ASSERT_EQ(0, memcmp(copy, held, kept));
				kept = 0;
			}
		}
	}
	if (kept) {
		ASSERT_EQ(kept, read(q[0], copy, 8 * psz));
		ASSERT_EQ(0, memcmp(copy, held, kept));
	}
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		ASSERT_EQ(w[i].count, next_seq[i]);
	}
	free(held);
	free(copy);
	free(buf);
	expect_empty(_metadata, p[0]);
}

TEST_F_TIMEOUT(copy, recycled_pages_race, LONG_TIMEOUT)
{
	page_writers(_metadata, self->p, NULL, 2);
	page_writers(_metadata, self->p, NULL, 4);
	page_writers(_metadata, self->p, NULL, DEF_SLOTS);
	expect_works(_metadata, self->p);
}

TEST_F_TIMEOUT(copy, recycled_pages_race_tee, LONG_TIMEOUT)
{
	int q[2];

	make_pipe(_metadata, q);
	page_writers(_metadata, self->p, q, 2);
	page_writers(_metadata, self->p, q, 4);
	page_writers(_metadata, self->p, q, DEF_SLOTS);
	expect_works(_metadata, self->p);
	expect_works(_metadata, q);
}

TEST_HARNESS_MAIN
