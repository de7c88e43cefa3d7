// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults that have to wait for I/O, and what happens meanwhile.
 *
 * A fault that finds its page being read drops the lock it came with, waits, and
 * is tried again from the beginning.  Which lock the second attempt takes is a
 * matter of performance only, and nothing of it may be visible from user space.
 * So nail down what is visible: the data, the signals, who is told by
 * userfaultfd, and what is counted as a major fault.
 *
 * All data are patterns in which every word depends on who wrote it and on its
 * position, and all pages are compared with them word by word.
 *
 * Faults wait long enough for others to get in only if the device is slow.  One
 * is made from null_blk by way of configfs: it keeps what is written, and
 * completes each request some milliseconds late.  The variants "slow_*" use an
 * ext4 on it, in a private mount namespace, "swap" uses another such device to
 * swap to, and "dir_*" use the directory in FAULT_RACE_DIR, or else TMPDIR or
 * /tmp, whatever it is on, without any privileges.
 *
 * FAULT_RACE_DEV may name a slow block device with an ext4 to use instead of
 * null_blk, e.g. of dm-delay, and FAULT_RACE_DELAY_MS sets how slow ours are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS	64
#endif
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT		21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1
#endif
#ifndef FALLOC_FL_KEEP_SIZE
#define FALLOC_FL_KEEP_SIZE	0x01
#define FALLOC_FL_PUNCH_HOLE	0x02
#endif

/* How late requests complete: long for the program, short for the tester */
#define DELAY_MS		20
/* Memory is taken only for what is written to these */
#define FS_MIB			96
#define SWAP_MIB		96

/* Pages that are faulted in, one by one */
#define NR_PAGES		48
#define NR_THREADS		4

/* How many pages there are races about, and how many threads fault on each */
#define NR_ROUNDS		12
#define NR_RACERS		3
#define NR_KILLS		6
/* So late that nobody dies by accident only then */
#define STUCK_MS		3000
#define STUCK_MIB		4
#define NR_STUCK		3

/* How much of it fits: a third */
#define THRASH_BYTES		(12UL << 20)
#define THRASH_LIMIT		"4194304"
#define THRASH_TOUCHES		200

/* How long to wait for something that ought to happen at once */
#define WAIT_MS			20000
/* How long to watch for faults that wait */
#define WATCH_MS		200
/* Emulation with KASAN is very slow */
#define LONG_TIMEOUT		300

/* Who wrote it: what was there first, what is put in its place, what threads write */
enum { SEED_NONE, SEED_OLD, SEED_OTHER, SEED_NEW, SEED_THREAD };

/* The words that threads write: neither the first of a page nor in a row with it */
#define FIRST_WORD		9

static size_t psz;
static size_t words;		/* in a page */

/* Exactly one access */
static __u64 load(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static __u64 word(unsigned int seed, off_t pos)
{
	if (seed == SEED_NONE)
		return 0;
	/* Odd, so never zero, and never that of another position or seed */
	return (((__u64)pos >> 3) * 512 + seed) * 0x9e3779b97f4a7c15ULL | 1;
}

static void fill(void *buf, size_t len, unsigned int seed, off_t pos)
{
	__u64 *p = buf;
	size_t i;

	for (i = 0; i < len / sizeof(*p); i++)
		p[i] = word(seed, pos + i * sizeof(*p));
}

/* What is to be found where threads write */
enum want { WANT_OLD, WANT_NEW, WANT_ANY };

/*
 * The first word of a page that is wrong, or -1.  @want has an element for each
 * of @nr threads, or is NULL if none of them wrote to it.
 */
static ssize_t bad_word(const void *page, unsigned int seed, off_t pos, const enum want *want,
			unsigned int nr)
{
	const __u64 *p = page;
	__u64 val, old, new;
	unsigned int thread;
	size_t i;

	for (i = 0; i < words; i++) {
		val = load(&p[i]);
		old = word(seed, pos + i * sizeof(*p));
		thread = i - FIRST_WORD;
		if (!want || i < FIRST_WORD || thread >= nr || want[thread] == WANT_OLD) {
			if (val != old)
				return i;
			continue;
		}
		new = word(SEED_THREAD + thread, pos + i * sizeof(*p));
		if (val != new && (want[thread] == WANT_NEW || val != old))
			return i;
	}
	return -1;
}

static void sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

static __u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static int write_str(const char *path, const char *val)
{
	ssize_t ret;
	int fd, err;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ret = write(fd, val, strlen(val));
	err = errno;
	close(fd);
	errno = err;
	return ret < 0 ? -1 : 0;
}

static int read_str(const char *path, char *val, size_t size)
{
	ssize_t ret;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ret = read(fd, val, size - 1);
	err = errno;
	close(fd);
	errno = err;
	if (ret < 0)
		return -1;
	val[ret] = '\0';
	return 0;
}

/*
 * Places: made before the first test, and gone with this program
 */

enum place_id { IN_DIR, IN_SLOW, IN_SWAP, IN_STUCK, IN_CGROUP, NR_PLACES };

struct place {
	const char *name;
	char dir[PATH_MAX / 4];
	char dev[64];
	char item[PATH_MAX / 4];	/* of null_blk, in configfs */
	char why[160];			/* Why it is not there; empty if it is */
	bool used;			/* mounted, or swapped to */
};

static struct place places[NR_PLACES] = {
	[IN_DIR] = { .name = "dir" },
	[IN_SLOW] = { .name = "slow" },
	[IN_SWAP] = { .name = "swap" },
	[IN_STUCK] = { .name = "stuck" },
	[IN_CGROUP] = { .name = "cgroup2" },
};

static char work_dir[PATH_MAX / 8];
static char config_dir[PATH_MAX / 4];	/* where we have mounted configfs */
static bool memory_enabled;		/* by us, so to be disabled by us */
static pid_t main_pid;

static void place_fails(struct place *place, const char *what)
{
	snprintf(place->why, sizeof(place->why), "%s: %s: %s", place->name, what,
		 strerror(errno));
}

static int run(const char *fmt, ...)
{
	char cmd[PATH_MAX];
	va_list args;
	int status;

	va_start(args, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, args);
	va_end(args);
	status = system(cmd);
	if (status == -1)
		return -1;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	/* What the shell says if there is no such program */
	errno = WIFEXITED(status) && WEXITSTATUS(status) == 127 ? ENOENT : EIO;
	return -1;
}

static const char *null_blk_dir(void)
{
	static char dir[PATH_MAX / 4 + 8];

	snprintf(dir, sizeof(dir), "/sys/kernel/config/nullb");
	if (!access(dir, F_OK))
		return dir;
	if (!config_dir[0]) {
		snprintf(config_dir, sizeof(config_dir), "%s/config", work_dir);
		if (mkdir(config_dir, 0755) ||
		    mount("configfs", config_dir, "configfs", 0, NULL)) {
			int err = errno;

			rmdir(config_dir);
			config_dir[0] = '\0';
			errno = err;
			return NULL;
		}
	}
	snprintf(dir, sizeof(dir), "%s/nullb", config_dir);
	if (access(dir, F_OK))
		run("modprobe -q null_blk nr_devices=0 >/dev/null 2>&1");
	return access(dir, F_OK) ? NULL : dir;
}

static int set_item(const struct place *place, const char *name, unsigned long val)
{
	char path[PATH_MAX / 2], str[32];

	snprintf(path, sizeof(path), "%s/%s", place->item, name);
	snprintf(str, sizeof(str), "%lu", val);
	return write_str(path, str);
}

/* A device that keeps what is written, and takes its time */
static int make_disk(struct place *place, unsigned int mib, unsigned long delay_ms)
{
	const char *dir = null_blk_dir();
	__u64 deadline;
	char name[32];

	if (!dir) {
		place_fails(place, "null_blk with configfs");
		return -1;
	}
	/* The name of the disk, of up to 31 characters */
	snprintf(name, sizeof(name), "fault_race_%s_%d", place->name, getpid());
	snprintf(place->item, sizeof(place->item), "%.200s/%s", dir, name);
	if (mkdir(place->item, 0755)) {
		place_fails(place, "mkdir in configfs");
		place->item[0] = '\0';
		return -1;
	}
	if (set_item(place, "memory_backed", 1) || set_item(place, "size", mib) ||
	    set_item(place, "irqmode", 2) ||
	    set_item(place, "completion_nsec", delay_ms * 1000000) ||
	    set_item(place, "power", 1)) {
		place_fails(place, "configuration of null_blk");
		return -1;
	}
	snprintf(place->dev, sizeof(place->dev), "/dev/%s", name);
	for (deadline = now_ms() + WAIT_MS; access(place->dev, F_OK); sleep_ms(1)) {
		if (now_ms() < deadline)
			continue;
		place_fails(place, place->dev);
		return -1;
	}
	return 0;
}

static int make_slow_disk(struct place *place, unsigned int mib)
{
	const char *env = getenv("FAULT_RACE_DELAY_MS");

	return make_disk(place, mib, env ? strtoul(env, NULL, 10) : DELAY_MS);
}

static void prepare_slow(struct place *place)
{
	const char *env = getenv("FAULT_RACE_DEV");

	if (env) {
		snprintf(place->dev, sizeof(place->dev), "%s", env);
	} else {
		if (make_slow_disk(place, FS_MIB))
			return;
		/* All of it now: nothing is to go on in the background */
		if (run("mkfs.ext4 -q -F -E %s %s >/dev/null 2>&1",
			"lazy_itable_init=0,lazy_journal_init=0", place->dev)) {
			place_fails(place, "mkfs.ext4");
			return;
		}
	}
	snprintf(place->dir, sizeof(place->dir), "%s/slow", work_dir);
	if (mkdir(place->dir, 0755))
		place_fails(place, "mkdir");
	else if (mount(place->dev, place->dir, "ext4", MS_NOATIME, NULL))
		place_fails(place, "mount");
	else
		place->used = true;
}

static void prepare_swap(struct place *place)
{
	char swaps[4096];

	if (!make_slow_disk(place, SWAP_MIB)) {
		if (run("mkswap %s >/dev/null 2>&1", place->dev))
			place_fails(place, "mkswap");
		else if (swapon(place->dev, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK))
			place_fails(place, "swapon");
		else
			place->used = true;
	}
	/* Swap of others is as good, if it is not as slow: a line after the first? */
	if (!place->used && !read_str("/proc/swaps", swaps, sizeof(swaps)) &&
	    strchr(swaps, '\n') && strchr(swaps, '\n')[1])
		place->why[0] = '\0';
}

static void prepare_cgroup(struct place *place)
{
	char path[PATH_MAX / 2], list[1024];

	snprintf(place->dir, sizeof(place->dir), "%s/cgroup2", work_dir);
	if (mkdir(place->dir, 0755) ||
	    mount("cgroup2", place->dir, "cgroup2", 0, NULL)) {
		place_fails(place, "mount");
		return;
	}
	place->used = true;
	snprintf(path, sizeof(path), "%s/cgroup.controllers", place->dir);
	if (read_str(path, list, sizeof(list))) {
		place_fails(place, "cgroup.controllers");
		return;
	}
	if (!strstr(list, "memory")) {
		errno = EOPNOTSUPP;
		place_fails(place, "memory controller");
		return;
	}
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", place->dir);
	if (!read_str(path, list, sizeof(list)) && strstr(list, "memory"))
		return;
	if (write_str(path, "+memory"))
		place_fails(place, "cgroup.subtree_control");
	else
		memory_enabled = true;
}

static void prepare_dir(struct place *place)
{
	const char *dir = getenv("FAULT_RACE_DIR") ?: getenv("TMPDIR") ?: "/tmp";

	if (snprintf(place->dir, sizeof(place->dir), "%s", dir) < (int)sizeof(place->dir))
		return;
	errno = ENAMETOOLONG;
	place_fails(place, "directory");
}

static void prepare_places(void)
{
	const char *tmp = getenv("TMPDIR") ?: "/tmp";
	int i;

	prepare_dir(&places[IN_DIR]);
	snprintf(work_dir, sizeof(work_dir), "%s/fault_race_test.XXXXXX", tmp);
	if (!mkdtemp(work_dir) || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		for (i = 0; i < NR_PLACES; i++)
			if (i != IN_DIR)
				place_fails(&places[i], "private mount namespace");
		return;
	}
	prepare_slow(&places[IN_SLOW]);
	prepare_swap(&places[IN_SWAP]);
	make_disk(&places[IN_STUCK], STUCK_MIB, STUCK_MS);
	prepare_cgroup(&places[IN_CGROUP]);
}

/* What has been killed may take a while to let go of a mount or a device */
static void retry_busy(int (*fn)(const char *arg), const char *arg)
{
	__u64 deadline = now_ms() + WAIT_MS;

	while (fn(arg) && errno == EBUSY && now_ms() < deadline)
		sleep_ms(10);
}

static void undo_places(void)
{
	char path[PATH_MAX / 2];
	int i;

	/* Children may exit, too. */
	if (getpid() != main_pid)
		return;
	if (memory_enabled) {
		snprintf(path, sizeof(path), "%s/cgroup.subtree_control", places[IN_CGROUP].dir);
		write_str(path, "-memory");
	}
	for (i = 0; i < NR_PLACES; i++) {
		struct place *place = &places[i];

		if (i == IN_DIR)
			continue;
		if (place->used && i == IN_SWAP)
			swapoff(place->dev);
		else if (place->used)
			retry_busy(umount, place->dir);
		if (place->dir[0])
			rmdir(place->dir);
		if (place->item[0])
			retry_busy(rmdir, place->item);
	}
	if (config_dir[0]) {
		umount(config_dir);
		rmdir(config_dir);
	}
	rmdir(work_dir);
}

static void on_exit_signal(int sig)
{
	/* Not async-signal-safe, but the device would stay otherwise */
	undo_places();
	signal(sig, SIG_DFL);
	raise(sig);
}

/*
 * Memory whose pages are out, be it on disk or in swap
 */

enum kind { SHARED, PRIVATE, ANON };

struct mem {
	enum kind kind;
	const struct place *place;
	char path[PATH_MAX / 2];
	char memcg[PATH_MAX / 2];	/* empty if there is none */
	int fd;				/* -1 if anonymous */
	unsigned char *base;
	size_t len;
	size_t step;			/* from one page to the next */
	size_t pages;
};

static void *page_of(const struct mem *m, size_t nr)
{
	return m->base + nr * m->step;
}

static __u64 *word_of(const struct mem *m, size_t nr, unsigned int thread)
{
	return (__u64 *)page_of(m, nr) + FIRST_WORD + thread;
}

static __u64 old_word(size_t nr, unsigned int thread)
{
	return word(SEED_OLD, nr * psz + (FIRST_WORD + thread) * sizeof(__u64));
}

static __u64 new_word(size_t nr, unsigned int thread)
{
	return word(SEED_THREAD + thread, nr * psz + (FIRST_WORD + thread) * sizeof(__u64));
}

/* How many pages of this range do not need any I/O to be faulted in */
static ssize_t nr_resident(struct __test_metadata *_metadata, void *addr, size_t len)
{
	unsigned char *vec = malloc(len / psz);
	ssize_t nr = 0;
	size_t i;

	ASSERT_NE(NULL, vec);
	ASSERT_EQ(0, mincore(addr, len, vec));
	for (i = 0; i < len / psz; i++)
		nr += vec[i] & 1;
	free(vec);
	return nr;
}

static int write_memcg(const struct mem *m, const char *name, const char *val)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", m->memcg, name);
	return write_str(path, val);
}

/*
 * Pages that are paged out to a slow device stay in the swap cache, and are not
 * found by MADV_PAGEOUT any more, so it takes reclaim to get rid of them.
 */
static bool swap_out(struct __test_metadata *_metadata, struct mem *m)
{
	__u64 deadline = now_ms() + WAIT_MS;
	char amount[64], most[32];

	snprintf(most, sizeof(most), "%zu", 4 * m->len);
	snprintf(amount, sizeof(amount), "%s swappiness=max", most);
	do {
		madvise(m->base, m->len, MADV_PAGEOUT);
		/* It fails if it did not get as much, which is to be expected */
		if (write_memcg(m, "memory.reclaim", amount) && errno == EINVAL)
			write_memcg(m, "memory.reclaim", most);
		if (!nr_resident(_metadata, m->base, m->len))
			return true;
		sleep_ms(5);
	} while (now_ms() < deadline);
	return false;
}

/* Make a file what it was at first, with nothing of it in the page cache */
static bool reset_file(struct __test_metadata *_metadata, struct mem *m)
{
	size_t size = m->pages * psz;
	ssize_t left = 0;
	void *buf, *map;
	int tries;

	buf = malloc(size);
	ASSERT_NE(NULL, buf);
	fill(buf, size, SEED_OLD, 0);
	ASSERT_EQ(0, ftruncate(m->fd, size));
	ASSERT_EQ((ssize_t)size, pwrite(m->fd, buf, size, 0));
	free(buf);
	for (tries = 0; tries < 100; tries++) {
		ASSERT_EQ(0, fsync(m->fd));
		ASSERT_EQ(0, posix_fadvise(m->fd, 0, 0, POSIX_FADV_DONTNEED));
		map = mmap(NULL, size, PROT_READ, MAP_SHARED, m->fd, 0);
		ASSERT_NE(MAP_FAILED, map);
		left = nr_resident(_metadata, map, size);
		munmap(map, size);
		if (!left)
			return true;
		sleep_ms(1);
	}
	TH_LOG("%zd of %zu pages stay in the page cache", left, m->pages);
	return false;
}

static void unstage(struct mem *m)
{
	if (m->base)
		munmap(m->base, m->len);
	m->base = NULL;
}

/*
 * Map @pages pages with the first contents, none of which is in memory.  With
 * @apart, each has a VMA of its own, so that none is read together with others
 * and what happens to one does not touch others.  False: cannot be done here.
 */
static bool stage(struct __test_metadata *_metadata, struct mem *m, size_t pages, bool apart)
{
	int prot = PROT_READ | PROT_WRITE;
	size_t i;

	unstage(m);
	m->pages = pages;
	m->step = apart ? 2 * psz : psz;
	m->len = pages * m->step;
	if (m->fd >= 0 && !reset_file(_metadata, m))
		return false;
	m->base = mmap(NULL, m->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);
	ASSERT_NE(MAP_FAILED, m->base);
	for (i = 0; i < (apart ? pages : 1); i++) {
		size_t len = apart ? psz : m->len;
		int flags = MAP_FIXED | (m->kind == SHARED ? MAP_SHARED : MAP_PRIVATE);

		if (m->fd < 0)
			flags |= MAP_ANONYMOUS;
		ASSERT_EQ(page_of(m, i), mmap(page_of(m, i), len, prot, flags, m->fd,
					      m->fd < 0 ? 0 : i * psz));
		if (m->fd >= 0 && apart)
			ASSERT_EQ(0, madvise(page_of(m, i), psz, MADV_RANDOM));
		if (m->fd < 0)
			madvise(page_of(m, i), len, MADV_NOHUGEPAGE);
	}
	if (m->fd >= 0)
		return true;
	for (i = 0; i < pages; i++)
		fill(page_of(m, i), psz, SEED_OLD, i * psz);
	if (swap_out(_metadata, m))
		return true;
	TH_LOG("%zd of %zu pages are not swapped out", nr_resident(_metadata, m->base, m->len),
	       pages);
	return false;
}

#define NOT_STAGED	"pages cannot be taken out of memory here"

static void check_mapping(struct __test_metadata *_metadata, const struct mem *m, size_t nr,
			  unsigned int seed, const enum want *want, unsigned int threads)
{
	ssize_t bad = bad_word(page_of(m, nr), seed, nr * psz, want, threads);

	ASSERT_EQ(-1, bad) {
		TH_LOG("page %zu, word %zd: %#llx", nr, bad,
		       (unsigned long long)((__u64 *)page_of(m, nr))[bad]);
	}
}

/* What is in the file: @want of what is mapped shared, the first contents of others */
static void check_file(struct __test_metadata *_metadata, const struct mem *m, size_t nr,
		       unsigned int seed, const enum want *want, unsigned int threads)
{
	__u64 buf[words];
	ssize_t bad;

	if (m->fd < 0)
		return;
	ASSERT_EQ((ssize_t)psz, pread(m->fd, buf, psz, nr * psz));
	if (m->kind == SHARED)
		bad = bad_word(buf, seed, nr * psz, want, threads);
	else
		bad = bad_word(buf, SEED_OLD, nr * psz, NULL, 0);
	ASSERT_EQ(-1, bad) {
		TH_LOG("page %zu of the file, word %zd: %#llx", nr, bad,
		       (unsigned long long)buf[bad]);
	}
}

static void check_all(struct __test_metadata *_metadata, const struct mem *m,
		      unsigned int seed, const enum want *want, unsigned int threads)
{
	size_t i;

	for (i = 0; i < m->pages; i++) {
		check_mapping(_metadata, m, i, seed, want, threads);
		check_file(_metadata, m, i, seed, want, threads);
	}
}

static const char *mem_init(struct mem *m, enum place_id id, enum kind kind)
{
	const struct place *cgroup = &places[IN_CGROUP];

	m->kind = kind;
	m->place = &places[id];
	m->fd = -1;
	if (m->place->why[0])
		return m->place->why;
	if (!cgroup->why[0]) {
		snprintf(m->memcg, sizeof(m->memcg), "%s/fault_race_test.%d", cgroup->dir,
			 getpid());
		if (mkdir(m->memcg, 0755) || write_memcg(m, "cgroup.procs", "0")) {
			rmdir(m->memcg);
			m->memcg[0] = '\0';
			return "a memory cgroup cannot be made";
		}
	}
	if (kind == ANON)
		return m->memcg[0] ? NULL : cgroup->why;
	snprintf(m->path, sizeof(m->path), "%s/fault_race.%d", m->place->dir, getpid());
	m->fd = open(m->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (m->fd >= 0)
		return NULL;
	m->path[0] = '\0';
	return "a file cannot be created";
}

/* By the parent, so that a test that fails leaves nothing */
static void mem_exit(struct mem *m)
{
	if (m->path[0])
		unlink(m->path);
	if (m->memcg[0])
		retry_busy(rmdir, m->memcg);
}

/*
 * Accesses that may fault for good
 */

static __thread void *escape;	/* a sigjmp_buf */

static void on_fault(int sig)
{
	if (escape)
		siglongjmp(*(sigjmp_buf *)escape, sig);
	/* Nobody expected it: die of it */
	signal(sig, SIG_DFL);
}

static void catch_faults(struct __test_metadata *_metadata)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	ASSERT_EQ(0, sigaction(SIGSEGV, &action, NULL));
	ASSERT_EQ(0, sigaction(SIGBUS, &action, NULL));
}

/* The signal, or 0 */
static int try_load(const __u64 *p, __u64 *val)
{
	sigjmp_buf env;
	int sig;

	sig = sigsetjmp(env, 1);
	if (!sig) {
		escape = &env;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		*val = load(p);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	escape = NULL;
	return sig;
}

static int try_store(__u64 *p, __u64 val)
{
	sigjmp_buf env;
	int sig;

	sig = sigsetjmp(env, 1);
	if (!sig) {
		escape = &env;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(p, val, __ATOMIC_RELAXED);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	escape = NULL;
	return sig;
}

/*
 * A crowd of threads that fault on all pages
 */

enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_BOTH };

struct member {
	pthread_t thread;
	unsigned int index;
	unsigned int nr;		/* how many there are */
	bool write;
	const struct mem *m;
	pthread_barrier_t *gate;
	/* Results: threads must not use the macros of the harness */
	size_t page;
	ssize_t bad;			/* word of this page, or -1 */
	int sig;
	long majflt;
	long minflt;
};

static void member_work(struct member *one)
{
	const struct mem *m = one->m;
	enum want want[NR_THREADS];
	size_t i, nr;
	__u64 val;

	for (i = 0; i < one->nr; i++)
		want[i] = WANT_ANY;
	want[one->index] = one->write ? WANT_NEW : WANT_OLD;
	for (i = 0; i < m->pages; i++) {
		/* Pairs meet at the same page, and are apart from other pairs */
		nr = (i + one->index / 2 * 2 * m->pages / one->nr) % m->pages;
		one->page = nr;
		if (one->write)
			one->sig = try_store(word_of(m, nr, one->index),
					     new_word(nr, one->index));
		else
			one->sig = try_load(word_of(m, nr, one->index), &val);
		if (one->sig)
			return;
		if (!one->write && val != old_word(nr, one->index))
			one->bad = FIRST_WORD + one->index;
		else
			one->bad = bad_word(page_of(m, nr), SEED_OLD, nr * psz, want, one->nr);
		if (one->bad >= 0)
			return;
	}
}

static void *member_main(void *arg)
{
	struct member *one = arg;
	struct rusage before, after;

	pthread_barrier_wait(one->gate);
	getrusage(RUSAGE_THREAD, &before);
	member_work(one);
	getrusage(RUSAGE_THREAD, &after);
	one->majflt = after.ru_majflt - before.ru_majflt;
	one->minflt = after.ru_minflt - before.ru_minflt;
	return NULL;
}

static void run_crowd(struct __test_metadata *_metadata, struct mem *m, struct member *crowd,
		      unsigned int nr, enum access access)
{
	enum want want[NR_THREADS];
	pthread_barrier_t gate;
	unsigned int i;

	ASSERT_EQ(0, pthread_barrier_init(&gate, NULL, nr));
	for (i = 0; i < nr; i++) {
		crowd[i] = (struct member) {
			.index = i, .nr = nr, .m = m, .gate = &gate, .bad = -1,
			.write = access == ACCESS_WRITE || (access == ACCESS_BOTH && i % 2),
		};
		want[i] = crowd[i].write ? WANT_NEW : WANT_OLD;
		ASSERT_EQ(0, pthread_create(&crowd[i].thread, NULL, member_main, &crowd[i]));
	}
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, pthread_join(crowd[i].thread, NULL));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, crowd[i].sig) {
			TH_LOG("thread %u, page %zu", i, crowd[i].page);
		}
		ASSERT_EQ(-1, crowd[i].bad) {
			TH_LOG("thread %u, page %zu", i, crowd[i].page);
		}
	}
	pthread_barrier_destroy(&gate);
	check_all(_metadata, m, SEED_OLD, want, nr);
}

FIXTURE(fault)
{
	struct mem m;
};

FIXTURE_VARIANT(fault)
{
	enum place_id place;
	enum kind kind;
};

FIXTURE_VARIANT_ADD(fault, dir_shared)
{
	.place = IN_DIR, .kind = SHARED,
};

FIXTURE_VARIANT_ADD(fault, dir_private)
{
	.place = IN_DIR, .kind = PRIVATE,
};

FIXTURE_VARIANT_ADD(fault, slow_shared)
{
	.place = IN_SLOW, .kind = SHARED,
};

FIXTURE_VARIANT_ADD(fault, slow_private)
{
	.place = IN_SLOW, .kind = PRIVATE,
};

FIXTURE_VARIANT_ADD(fault, swap)
{
	.place = IN_SWAP, .kind = ANON,
};

static void setup(struct __test_metadata *_metadata, struct mem *m, enum place_id place,
		  enum kind kind)
{
	const char *why = mem_init(m, place, kind);

	if (why) {
		/* There is no teardown after a setup which skips, and we are in it */
		if (m->memcg[0]) {
			char root[PATH_MAX / 2];

			snprintf(root, sizeof(root), "%s/cgroup.procs", places[IN_CGROUP].dir);
			write_str(root, "0");
			mem_exit(m);
		}
		SKIP(return, "%s", why);
	}
	catch_faults(_metadata);
}

FIXTURE_SETUP(fault)
{
	setup(_metadata, &self->m, variant->place, variant->kind);
}

FIXTURE_TEARDOWN_PARENT(fault)
{
	mem_exit(&self->m);
}

static const struct {
	const char *name;
	int advice;
} advices[] = {
	{ "normal", MADV_NORMAL },
	{ "random", MADV_RANDOM },
	{ "sequential", MADV_SEQUENTIAL },
};

static void fault_all(struct __test_metadata *_metadata, struct mem *m, enum access access)
{
	static const unsigned int crowds[] = { 1, NR_THREADS };
	struct member crowd[NR_THREADS];
	unsigned int a, c;

	for (a = 0; a < ARRAY_SIZE(advices); a++) {
		for (c = 0; c < ARRAY_SIZE(crowds); c++) {
			if (!stage(_metadata, m, NR_PAGES, false))
				SKIP(return, NOT_STAGED);
			ASSERT_EQ(0, madvise(m->base, m->len, advices[a].advice));
			TH_LOG("%s, %u threads", advices[a].name, crowds[c]);
			run_crowd(_metadata, m, crowd, crowds[c], access);
		}
	}
}

TEST_F_TIMEOUT(fault, read, LONG_TIMEOUT)
{
	fault_all(_metadata, &self->m, ACCESS_READ);
}

/* Shared with the file, or copied from it, or swapped in to be written to */
TEST_F_TIMEOUT(fault, write, LONG_TIMEOUT)
{
	fault_all(_metadata, &self->m, ACCESS_WRITE);
}

TEST_F_TIMEOUT(fault, read_and_write, LONG_TIMEOUT)
{
	fault_all(_metadata, &self->m, ACCESS_BOTH);
}

/* Pages that have to be read one by one, each in a VMA of its own */
TEST_F_TIMEOUT(fault, many_vmas, LONG_TIMEOUT)
{
	struct member crowd[NR_THREADS];
	enum access access;

	for (access = ACCESS_READ; access <= ACCESS_BOTH; access++) {
		if (!stage(_metadata, &self->m, NR_PAGES, true))
			SKIP(return, NOT_STAGED);
		run_crowd(_metadata, &self->m, crowd, NR_THREADS, access);
	}
}

/*
 * MADV_POPULATE_*, which faults with the mmap_lock held, meets a thread that
 * does not.
 */

static void *populate_reader(void *arg)
{
	struct member *one = arg;

	pthread_barrier_wait(one->gate);
	member_work(one);
	return NULL;
}

static void populate(struct __test_metadata *_metadata, struct mem *m, int advice, bool company)
{
	pthread_barrier_t gate;
	struct member one = { .nr = 1, .m = m, .gate = &gate, .bad = -1 };
	int ret;

	if (!stage(_metadata, m, NR_PAGES, false))
		SKIP(return, NOT_STAGED);
	if (company) {
		ASSERT_EQ(0, pthread_barrier_init(&gate, NULL, 2));
		ASSERT_EQ(0, pthread_create(&one.thread, NULL, populate_reader, &one));
		pthread_barrier_wait(&gate);
	}
	ret = madvise(m->base, m->len, advice) ? errno : 0;
	if (company)
		ASSERT_EQ(0, pthread_join(one.thread, NULL));
	if (ret == EINVAL)
		SKIP(return, "no MADV_POPULATE_READ here");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, one.sig);
	ASSERT_EQ(-1, one.bad);
	ASSERT_EQ(NR_PAGES, nr_resident(_metadata, m->base, m->len));
	check_all(_metadata, m, SEED_OLD, NULL, 0);
}

TEST_F_TIMEOUT(fault, populate_read, LONG_TIMEOUT)
{
	populate(_metadata, &self->m, MADV_POPULATE_READ, false);
	populate(_metadata, &self->m, MADV_POPULATE_READ, true);
}

TEST_F_TIMEOUT(fault, populate_write, LONG_TIMEOUT)
{
	populate(_metadata, &self->m, MADV_POPULATE_WRITE, false);
	populate(_metadata, &self->m, MADV_POPULATE_WRITE, true);
}

/*
 * Accounting
 */

/* An event of this memory cgroup, or if there is none, of the system */
static long nr_events(struct __test_metadata *_metadata, const struct mem *m, const char *name)
{
	char path[PATH_MAX], *stat, *p;
	long val = -1;
	FILE *file;
	size_t size = 0;

	if (m->memcg[0])
		snprintf(path, sizeof(path), "%s/memory.stat", m->memcg);
	else
		snprintf(path, sizeof(path), "/proc/vmstat");
	file = fopen(path, "r");
	ASSERT_NE(NULL, file);
	stat = NULL;
	while (getline(&stat, &size, file) >= 0) {
		p = stat + strlen(name);
		if (!strncmp(stat, name, strlen(name)) && *p == ' ')
			val = strtol(p, NULL, 10);
	}
	free(stat);
	fclose(file);
	return val;
}

/* Pages of our own text and stack are not to be faulted in while we count */
static void fault_in_ourselves(void)
{
	if (!mlockall(MCL_CURRENT))
		munlockall();
}

/* A page that is read from disk is a major fault, and only one */
TEST_F_TIMEOUT(fault, major_faults, LONG_TIMEOUT)
{
	struct rusage before, after, again;
	struct mem *m = &self->m;
	long events, want;
	int tries, bad = 0;
	size_t i;

	fault_in_ourselves();
	if (!stage(_metadata, m, NR_PAGES, true))
		SKIP(return, NOT_STAGED);
	events = nr_events(_metadata, m, "pgmajfault");
	/* Twice, so that the page it is written to is there */
	getrusage(RUSAGE_THREAD, &before);
	getrusage(RUSAGE_THREAD, &before);
	for (i = 0; i < NR_PAGES; i++)
		bad += load(page_of(m, i)) != word(SEED_OLD, i * psz);
	getrusage(RUSAGE_THREAD, &after);
	for (i = 0; i < NR_PAGES; i++)
		bad += load(page_of(m, i)) != word(SEED_OLD, i * psz);
	getrusage(RUSAGE_THREAD, &again);

	ASSERT_EQ(0, bad);
	EXPECT_EQ(NR_PAGES, after.ru_majflt - before.ru_majflt);
	/* Attempts that are retried do not count; what does is our own stack */
	EXPECT_LE(after.ru_minflt - before.ru_minflt, 2);
	EXPECT_EQ(0, again.ru_majflt - after.ru_majflt);
	EXPECT_LE(again.ru_minflt - after.ru_minflt, 2);
	if (events < 0)
		return;
	want = events + NR_PAGES;
	if (!m->memcg[0]) {
		/* Others fault, too */
		EXPECT_LE(want, nr_events(_metadata, m, "pgmajfault"));
		return;
	}
	/* Small numbers are summed up every two seconds only */
	for (tries = 0; tries < 50 && nr_events(_metadata, m, "pgmajfault") < want; tries++)
		sleep_ms(100);
	sleep_ms(2500);
	EXPECT_EQ(want, nr_events(_metadata, m, "pgmajfault"));
}

/* Who waits for a page that another one reads may count it, but not twice */
TEST_F_TIMEOUT(fault, major_faults_of_many, LONG_TIMEOUT)
{
	struct member crowd[NR_THREADS];
	long sum = 0;
	int i;

	fault_in_ourselves();
	if (!stage(_metadata, &self->m, NR_PAGES, true))
		SKIP(return, NOT_STAGED);
	run_crowd(_metadata, &self->m, crowd, NR_THREADS, ACCESS_READ);
	for (i = 0; i < NR_THREADS; i++) {
		EXPECT_LE(crowd[i].majflt, NR_PAGES);
		sum += crowd[i].majflt;
	}
	TH_LOG("%ld major faults of %d threads on %d pages", sum, NR_THREADS, NR_PAGES);
	EXPECT_GE(sum, NR_PAGES);
}

/*
 * Others who fault for us: with the mmap_lock held, some without waiting, and
 * in the kernel.  None of them comes with the VMA lock.
 */

TEST_F_TIMEOUT(fault, process_vm, LONG_TIMEOUT)
{
	struct mem *m = &self->m;
	size_t len = NR_PAGES * psz, i;
	struct iovec local = { malloc(len), len };
	struct iovec remote = { NULL, len };

	if (process_vm_readv(getpid(), NULL, 0, NULL, 0, 0))
		SKIP(return, "process_vm_readv: %s", strerror(errno));
	ASSERT_NE(NULL, local.iov_base);
	if (!stage(_metadata, m, NR_PAGES, false))
		SKIP(return, NOT_STAGED);
	remote.iov_base = m->base;
	ASSERT_EQ((ssize_t)len, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	for (i = 0; i < NR_PAGES; i++)
		ASSERT_EQ(-1, bad_word((char *)local.iov_base + i * psz, SEED_OLD, i * psz,
				       NULL, 0));
	check_all(_metadata, m, SEED_OLD, NULL, 0);

	if (!stage(_metadata, m, NR_PAGES, false))
		SKIP(return, NOT_STAGED);
	remote.iov_base = m->base;
	fill(local.iov_base, len, SEED_NEW, 0);
	ASSERT_EQ((ssize_t)len, process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	check_all(_metadata, m, SEED_NEW, NULL, 0);
	free(local.iov_base);
}

TEST_F_TIMEOUT(fault, proc_mem, LONG_TIMEOUT)
{
	struct mem *m = &self->m;
	size_t len = NR_PAGES * psz, i;
	char *buf = malloc(len);
	int fd;

	ASSERT_NE(NULL, buf);
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	if (!stage(_metadata, m, NR_PAGES, false))
		SKIP(return, NOT_STAGED);
	ASSERT_EQ((ssize_t)len, pread(fd, buf, len, (uintptr_t)m->base));
	for (i = 0; i < NR_PAGES; i++)
		ASSERT_EQ(-1, bad_word(buf + i * psz, SEED_OLD, i * psz, NULL, 0));
	if (!stage(_metadata, m, NR_PAGES, false))
		SKIP(return, NOT_STAGED);
	fill(buf, len, SEED_NEW, 0);
	ASSERT_EQ((ssize_t)len, pwrite(fd, buf, len, (uintptr_t)m->base));
	check_all(_metadata, m, SEED_NEW, NULL, 0);
	close(fd);
	free(buf);
}

/* Another file, without a name, beside ours; of which place, if ours is none? */
static int other_file(struct __test_metadata *_metadata, const struct mem *m, int flags,
		      unsigned int seed)
{
	const struct place *place = m->place;
	size_t len = NR_PAGES * psz;
	char path[PATH_MAX], *buf;
	int fd, ret;

	if (m->kind == ANON)
		place = &places[places[IN_SLOW].why[0] ? IN_DIR : IN_SLOW];
	snprintf(path, sizeof(path), "%s/fault_race_other.%d", place->dir, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ASSERT_GE(fd, 0);
	buf = malloc(len);
	ASSERT_NE(NULL, buf);
	fill(buf, len, seed, 0);
	ASSERT_EQ((ssize_t)len, pwrite(fd, buf, len, 0));
	ASSERT_EQ(0, fsync(fd));
	free(buf);
	ret = open(path, O_RDWR | O_CLOEXEC | flags);
	unlink(path);
	close(fd);
	return ret;
}

static void check_other(struct __test_metadata *_metadata, int fd, unsigned int seed)
{
	size_t len = NR_PAGES * psz, i;
	char *buf;

	/* Aligned, as it may be read directly */
	ASSERT_EQ(0, posix_memalign((void **)&buf, psz, len));
	ASSERT_EQ((ssize_t)len, pread(fd, buf, len, 0));
	for (i = 0; i < NR_PAGES; i++)
		ASSERT_EQ(-1, bad_word(buf + i * psz, seed, i * psz, NULL, 0));
	free(buf);
}

static void read_and_write(struct __test_metadata *_metadata, struct mem *m, int flags)
{
	size_t len = NR_PAGES * psz;
	int fd;

	fd = other_file(_metadata, m, flags, SEED_NEW);
	if (fd < 0)
		SKIP(return, "files cannot be opened like that here");
	if (!stage(_metadata, m, NR_PAGES, false))
		SKIP(return, NOT_STAGED);
	ASSERT_EQ((ssize_t)len, pread(fd, m->base, len, 0));
	check_all(_metadata, m, SEED_NEW, NULL, 0);

	if (!stage(_metadata, m, NR_PAGES, false))
		SKIP(return, NOT_STAGED);
	ASSERT_EQ((ssize_t)len, pwrite(fd, m->base, len, 0));
	check_other(_metadata, fd, SEED_OLD);
	close(fd);
}

TEST_F_TIMEOUT(fault, system_calls, LONG_TIMEOUT)
{
	read_and_write(_metadata, &self->m, 0);
}

TEST_F_TIMEOUT(fault, direct_io, LONG_TIMEOUT)
{
	read_and_write(_metadata, &self->m, O_DIRECT);
}

TEST_F_TIMEOUT(fault, vmsplice, LONG_TIMEOUT)
{
	struct mem *m = &self->m;
	struct iovec iov = { .iov_len = psz };
	__u64 buf[words];
	int fds[2];
	size_t i;

	if (!stage(_metadata, m, NR_PAGES, false))
		SKIP(return, NOT_STAGED);
	ASSERT_EQ(0, pipe2(fds, O_CLOEXEC));
	for (i = 0; i < NR_PAGES; i++) {
		iov.iov_base = page_of(m, i);
		ASSERT_EQ((ssize_t)psz, vmsplice(fds[1], &iov, 1, 0));
		ASSERT_EQ((ssize_t)psz, read(fds[0], buf, psz));
		ASSERT_EQ(-1, bad_word(buf, SEED_OLD, i * psz, NULL, 0));
	}
	check_all(_metadata, m, SEED_OLD, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

/* An io_uring with one request at a time */
struct ring {
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
	char *rings;
	int fd;
};

static int ring_init(struct ring *r)
{
	size_t len, cq_len;

	memset(r, 0, sizeof(*r));
	r->fd = syscall(__NR_io_uring_setup, 4, &r->p);
	if (r->fd < 0)
		return -1;
	len = r->p.sq_off.array + r->p.sq_entries * sizeof(__u32);
	cq_len = r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe);
	if (cq_len > len)
		len = cq_len;
	r->rings = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
			IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, r->p.sq_entries * sizeof(struct io_uring_sqe),
		       PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
	if (r->rings != MAP_FAILED && r->sqes != MAP_FAILED)
		return 0;
	close(r->fd);
	return -1;
}

/* The whole file from or to @buf.  The result of the request, or -errno */
static int ring_rw(struct ring *r, int op, int fd, void *buf, size_t len)
{
	__u32 *sq_tail = (__u32 *)(r->rings + r->p.sq_off.tail);
	__u32 *array = (__u32 *)(r->rings + r->p.sq_off.array);
	__u32 *cq_head = (__u32 *)(r->rings + r->p.cq_off.head);
	struct io_uring_cqe *cqes = (void *)(r->rings + r->p.cq_off.cqes);
	__u32 tail = *sq_tail, head = *cq_head;
	__u32 index = tail & (r->p.sq_entries - 1);
	struct io_uring_sqe *sqe = &r->sqes[index];
	int ret;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)buf;
	sqe->len = len;
	array[index] = index;
	__atomic_store_n(sq_tail, tail + 1, __ATOMIC_RELEASE);
	ret = 1;
	do {
		ret = syscall(__NR_io_uring_enter, r->fd, ret, 1, IORING_ENTER_GETEVENTS, NULL,
			      0);
		if (ret < 0 && errno != EINTR)
			return -errno;
		/* Submitted already if the wait was interrupted */
		ret = 0;
	} while (__atomic_load_n((__u32 *)(r->rings + r->p.cq_off.tail), __ATOMIC_ACQUIRE) ==
		 head);
	ret = cqes[head & (r->p.cq_entries - 1)].res;
	__atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
	return ret;
}

TEST_F_TIMEOUT(fault, io_uring, LONG_TIMEOUT)
{
	static const int flags[] = { 0, O_DIRECT };
	struct mem *m = &self->m;
	struct iovec iov = { .iov_len = NR_PAGES * psz };
	struct ring ring;
	unsigned int i;
	int fd;

	if (ring_init(&ring))
		SKIP(return, "io_uring_setup: %s", strerror(errno));
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		fd = other_file(_metadata, m, flags[i], SEED_NEW);
		if (fd < 0)
			SKIP(return, "files cannot be opened like that here");

		if (!stage(_metadata, m, NR_PAGES, false))
			SKIP(return, NOT_STAGED);
		ASSERT_EQ((int)iov.iov_len, ring_rw(&ring, IORING_OP_READ, fd, m->base,
						    iov.iov_len));
		check_all(_metadata, m, SEED_NEW, NULL, 0);

		if (!stage(_metadata, m, NR_PAGES, false))
			SKIP(return, NOT_STAGED);
		ASSERT_EQ((int)iov.iov_len, ring_rw(&ring, IORING_OP_WRITE, fd, m->base,
						    iov.iov_len));
		check_other(_metadata, fd, SEED_OLD);
		close(fd);
		if (m->kind == SHARED)
			continue;

		/* These pages are pinned for long, which those of files may not be */
		fd = other_file(_metadata, m, flags[i], SEED_NEW);
		ASSERT_GE(fd, 0);
		if (!stage(_metadata, m, NR_PAGES, false))
			SKIP(return, NOT_STAGED);
		iov.iov_base = m->base;
		ASSERT_EQ(0, syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS,
				     &iov, 1)) {
			TH_LOG("IORING_REGISTER_BUFFERS: %s", strerror(errno));
		}
		check_all(_metadata, m, SEED_OLD, NULL, 0);
		ASSERT_EQ((int)iov.iov_len, ring_rw(&ring, IORING_OP_READ_FIXED, fd, m->base,
						    iov.iov_len));
		check_all(_metadata, m, SEED_NEW, NULL, 0);
		ASSERT_EQ(0, syscall(__NR_io_uring_register, ring.fd,
				     IORING_UNREGISTER_BUFFERS, NULL, 0));
		close(fd);
	}
	close(ring.fd);
}

/*
 * Pages are reclaimed almost as fast as they are read: each fault must come to
 * an end, nonetheless, and with the right page.
 */

struct thrasher {
	pthread_t thread;
	const struct mem *m;
	unsigned int random;
	int touched;
	ssize_t bad;			/* page, or -1 */
};

static void *thrash(void *arg)
{
	struct thrasher *one = arg;
	size_t nr;

	for (; one->touched < THRASH_TOUCHES && one->bad < 0; one->touched++) {
		one->random = one->random * 1664525u + 1013904223u;
		nr = (one->random >> 8) % one->m->pages;
		if (bad_word(page_of(one->m, nr), SEED_OLD, nr * psz, NULL, 0) >= 0)
			one->bad = nr;
	}
	return NULL;
}

TEST_F_TIMEOUT(fault, thrash, LONG_TIMEOUT)
{
	struct thrasher crowd[NR_THREADS];
	struct mem *m = &self->m;
	int i;

	if (!m->memcg[0])
		SKIP(return, "%s", places[IN_CGROUP].why);
	if (!stage(_metadata, m, THRASH_BYTES / psz, false))
		SKIP(return, NOT_STAGED);
	ASSERT_EQ(0, write_memcg(m, "memory.max", THRASH_LIMIT));
	for (i = 0; i < NR_THREADS; i++) {
		crowd[i] = (struct thrasher) { .m = m, .random = i, .bad = -1 };
		ASSERT_EQ(0, pthread_create(&crowd[i].thread, NULL, thrash, &crowd[i]));
	}
	for (i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, pthread_join(crowd[i].thread, NULL));
	for (i = 0; i < NR_THREADS; i++) {
		EXPECT_EQ(-1, crowd[i].bad);
		EXPECT_EQ(THRASH_TOUCHES, crowd[i].touched);
	}
	ASSERT_EQ(0, write_memcg(m, "memory.max", "max"));
}

/*
 * Races: threads fault on a page, and while they wait for it, something happens
 * to the page or to its place in the address space
 */

struct racer {
	pthread_t thread;
	struct race *race;
	unsigned int index;
	pid_t tid;
	__u64 val;
	int sig;
	int done;
};

struct race {
	struct mem *m;
	size_t nr;			/* of the page */
	bool write;
	bool over;
	pthread_barrier_t begin;
	pthread_barrier_t end;
	struct racer racer[NR_RACERS];
	unsigned int raced;		/* rounds in which a fault was seen to wait */
	int other;			/* a memfd with something else in it */
};

static void *racer_main(void *arg)
{
	struct racer *one = arg;
	struct race *race = one->race;
	__u64 *p;

	one->tid = syscall(SYS_gettid);
	for (;;) {
		pthread_barrier_wait(&race->begin);
		if (race->over)
			return NULL;
		p = word_of(race->m, race->nr, one->index);
		if (race->write)
			one->sig = try_store(p, new_word(race->nr, one->index));
		else
			one->sig = try_load(p, &one->val);
		__atomic_store_n(&one->done, 1, __ATOMIC_RELEASE);
		pthread_barrier_wait(&race->end);
	}
}

/* Is this task in a sleep that only a fatal signal ends, such as for I/O? */
static bool is_waiting(pid_t pid, pid_t tid)
{
	char path[64], stat[256], *p;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (read_str(path, stat, sizeof(stat)))
		return false;
	p = strrchr(stat, ')');
	return p && p[1] && p[2] == 'D';
}

static bool is_done(const struct racer *one)
{
	return __atomic_load_n(&one->done, __ATOMIC_ACQUIRE);
}

static bool all_done(const struct race *race)
{
	int i;

	for (i = 0; i < NR_RACERS; i++)
		if (!is_done(&race->racer[i]))
			return false;
	return true;
}

/* Let them fault, and go on when all of them wait, or one does not any more */
static void race_begin(struct race *race, size_t nr, bool write)
{
	__u64 deadline = now_ms() + WATCH_MS;
	unsigned int waiting, done;
	int i;

	race->nr = nr;
	race->write = write;
	for (i = 0; i < NR_RACERS; i++) {
		race->racer[i].done = 0;
		race->racer[i].sig = 0;
		race->racer[i].val = 0;
	}
	pthread_barrier_wait(&race->begin);
	do {
		waiting = 0;
		done = 0;
		for (i = 0; i < NR_RACERS; i++) {
			done += is_done(&race->racer[i]);
			waiting += is_waiting(getpid(), race->racer[i].tid);
		}
		/* For userfaultfd, they wait in another way, and we are to end that */
	} while (waiting < NR_RACERS && !done && now_ms() < deadline);
	if (waiting)
		race->raced++;
}

static void race_end(struct race *race)
{
	pthread_barrier_wait(&race->end);
}

static void race_init(struct __test_metadata *_metadata, struct race *race, struct mem *m)
{
	size_t len = NR_ROUNDS * psz;
	char *buf;
	int i;

	/* On the heap of whoever calls, and zeroed */
	race->m = m;
	race->other = memfd_create("fault_retry", MFD_CLOEXEC);
	ASSERT_GE(race->other, 0);
	buf = malloc(len);
	ASSERT_NE(NULL, buf);
	fill(buf, len, SEED_OTHER, 0);
	ASSERT_EQ((ssize_t)len, write(race->other, buf, len));
	free(buf);
	ASSERT_EQ(0, pthread_barrier_init(&race->begin, NULL, NR_RACERS + 1));
	ASSERT_EQ(0, pthread_barrier_init(&race->end, NULL, NR_RACERS + 1));
	for (i = 0; i < NR_RACERS; i++) {
		race->racer[i].race = race;
		race->racer[i].index = i;
		ASSERT_EQ(0, pthread_create(&race->racer[i].thread, NULL, racer_main,
					    &race->racer[i]));
	}
}

static void race_exit(struct __test_metadata *_metadata, struct race *race)
{
	int i;

	race->over = true;
	pthread_barrier_wait(&race->begin);
	for (i = 0; i < NR_RACERS; i++)
		ASSERT_EQ(0, pthread_join(race->racer[i].thread, NULL));
	close(race->other);
}

FIXTURE(race)
{
	struct mem m;
	struct race race;
};

FIXTURE_VARIANT(race)
{
	enum place_id place;
	enum kind kind;
};

FIXTURE_VARIANT_ADD(race, dir_shared)
{
	.place = IN_DIR, .kind = SHARED,
};

FIXTURE_VARIANT_ADD(race, dir_private)
{
	.place = IN_DIR, .kind = PRIVATE,
};

FIXTURE_VARIANT_ADD(race, slow_shared)
{
	.place = IN_SLOW, .kind = SHARED,
};

FIXTURE_VARIANT_ADD(race, slow_private)
{
	.place = IN_SLOW, .kind = PRIVATE,
};

FIXTURE_VARIANT_ADD(race, swap)
{
	.place = IN_SWAP, .kind = ANON,
};

FIXTURE_SETUP(race)
{
	setup(_metadata, &self->m, variant->place, variant->kind);
}

FIXTURE_TEARDOWN_PARENT(race)
{
	mem_exit(&self->m);
}

/* One round: what happens during the fault, and what has to come out of it */
typedef void (*round_fn)(struct __test_metadata *_metadata, struct race *race);

/* What each thread must have left behind, if only those that got a signal did not write */
static void wants(const struct race *race, enum want *want)
{
	int i;

	for (i = 0; i < NR_RACERS; i++)
		want[i] = race->write && !race->racer[i].sig ? WANT_NEW : WANT_OLD;
}

static void check_racers(struct __test_metadata *_metadata, const struct race *race, int sig,
			 __u64 other_seed)
{
	int i;

	for (i = 0; i < NR_RACERS; i++) {
		const struct racer *one = &race->racer[i];
		off_t pos = race->nr * psz + (FIRST_WORD + i) * sizeof(__u64);

		if (one->sig) {
			ASSERT_EQ(sig, one->sig) {
				TH_LOG("thread %d, page %zu", i, race->nr);
			}
			continue;
		}
		if (race->write || one->val == old_word(race->nr, i))
			continue;
		ASSERT_EQ(word(other_seed, pos), one->val) {
			TH_LOG("thread %d, page %zu", i, race->nr);
		}
	}
}

/*
 * Rounds from the last page to the first, as truncation has it, and first all
 * that read, then all that write
 */
static void run_race(struct __test_metadata *_metadata, struct mem *m, struct race *race,
		     round_fn round)
{
	int write;
	size_t i;

	race_init(_metadata, race, m);
	for (write = 0; write < 2; write++) {
		if (!stage(_metadata, m, NR_ROUNDS, true))
			SKIP(return, NOT_STAGED);
		for (i = NR_ROUNDS; i-- > 0; ) {
			race_begin(race, i, write);
			round(_metadata, race);
		}
	}
	race_exit(_metadata, race);
	TH_LOG("faults were waiting in %u of %u rounds", race->raced, 2 * NR_ROUNDS);
	if (!race->raced)
		SKIP(return, "no fault was seen to wait: the device is too fast");
}

static void round_munmap(struct __test_metadata *_metadata, struct race *race)
{
	enum want want[NR_RACERS];

	ASSERT_EQ(0, munmap(page_of(race->m, race->nr), psz));
	race_end(race);
	check_racers(_metadata, race, SIGSEGV, SEED_OLD);
	wants(race, want);
	check_file(_metadata, race->m, race->nr, SEED_OLD, want, NR_RACERS);
}

TEST_F_TIMEOUT(race, munmap, LONG_TIMEOUT)
{
	run_race(_metadata, &self->m, &self->race, round_munmap);
}

/* The access is not allowed any more, and then it is again */
static void round_protect(struct __test_metadata *_metadata, struct race *race, int prot)
{
	void *page = page_of(race->m, race->nr);
	enum want want[NR_RACERS];

	ASSERT_EQ(0, mprotect(page, psz, prot));
	race_end(race);
	check_racers(_metadata, race, race->write || !prot ? SIGSEGV : 0, SEED_OLD);
	ASSERT_EQ(0, mprotect(page, psz, PROT_READ | PROT_WRITE));
	wants(race, want);
	check_mapping(_metadata, race->m, race->nr, SEED_OLD, want, NR_RACERS);
	check_file(_metadata, race->m, race->nr, SEED_OLD, want, NR_RACERS);
}

static void round_protect_none(struct __test_metadata *_metadata, struct race *race)
{
	round_protect(_metadata, race, PROT_NONE);
}

static void round_protect_read(struct __test_metadata *_metadata, struct race *race)
{
	round_protect(_metadata, race, PROT_READ);
}

TEST_F_TIMEOUT(race, mprotect_none, LONG_TIMEOUT)
{
	run_race(_metadata, &self->m, &self->race, round_protect_none);
}

TEST_F_TIMEOUT(race, mprotect_read, LONG_TIMEOUT)
{
	run_race(_metadata, &self->m, &self->race, round_protect_read);
}

/* Something else is mapped there: each access is to the one or to the other */
static void round_replace(struct __test_metadata *_metadata, struct race *race)
{
	struct mem *m = race->m;
	void *page = page_of(m, race->nr);
	off_t pos = race->nr * psz;
	enum want want[NR_RACERS];
	__u64 buf[words];
	int i;

	ASSERT_EQ(page, mmap(page, psz, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			     race->other, pos));
	race_end(race);
	/* There was always something mapped, so no signal */
	check_racers(_metadata, race, 0, SEED_OTHER);
	for (i = 0; i < NR_RACERS; i++)
		want[i] = race->write ? WANT_ANY : WANT_OLD;
	ASSERT_EQ(-1, bad_word(page, SEED_OTHER, pos, want, NR_RACERS));
	check_file(_metadata, m, race->nr, SEED_OLD, want, NR_RACERS);
	if (!race->write || m->kind != SHARED)
		return;
	ASSERT_EQ((ssize_t)psz, pread(m->fd, buf, psz, pos));
	for (i = 0; i < NR_RACERS; i++) {
		__u64 new = new_word(race->nr, i);

		ASSERT_EQ(1, (buf[FIRST_WORD + i] == new) + (*word_of(m, race->nr, i) == new)) {
			TH_LOG("thread %d wrote to both, or to none", i);
		}
	}
}

TEST_F_TIMEOUT(race, map_fixed, LONG_TIMEOUT)
{
	run_race(_metadata, &self->m, &self->race, round_replace);
}

/* It is mapped somewhere else, where there was nothing */
static void round_move(struct __test_metadata *_metadata, struct race *race)
{
	struct mem *m = race->m;
	char *page = page_of(m, race->nr), *to = page + psz;
	enum want want[NR_RACERS];
	ssize_t bad;

	ASSERT_EQ(to, mremap(page, psz, psz, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	race_end(race);
	check_racers(_metadata, race, SIGSEGV, SEED_OLD);
	wants(race, want);
	bad = bad_word(to, SEED_OLD, race->nr * psz, want, NR_RACERS);
	ASSERT_EQ(-1, bad) {
		TH_LOG("page %zu, word %zd: %#llx", race->nr, bad,
		       (unsigned long long)((__u64 *)to)[bad]);
	}
	check_file(_metadata, m, race->nr, SEED_OLD, want, NR_RACERS);
}

TEST_F_TIMEOUT(race, mremap, LONG_TIMEOUT)
{
	run_race(_metadata, &self->m, &self->race, round_move);
}

static void round_truncate(struct __test_metadata *_metadata, struct race *race)
{
	__u64 val;

	ASSERT_EQ(0, ftruncate(race->m->fd, race->nr * psz));
	race_end(race);
	check_racers(_metadata, race, SIGBUS, SEED_OLD);
	ASSERT_EQ(SIGBUS, try_load(page_of(race->m, race->nr), &val));
}

TEST_F_TIMEOUT(race, truncate, LONG_TIMEOUT)
{
	if (variant->kind == ANON)
		SKIP(return, "there is no file");
	run_race(_metadata, &self->m, &self->race, round_truncate);
}

static void round_punch(struct __test_metadata *_metadata, struct race *race)
{
	struct mem *m = race->m;
	enum want want[NR_RACERS];
	int ret, i;

	ret = fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, race->nr * psz, psz);
	ASSERT_EQ(0, ret);
	race_end(race);
	check_racers(_metadata, race, 0, SEED_NONE);
	for (i = 0; i < NR_RACERS; i++)
		want[i] = race->write ? WANT_ANY : WANT_OLD;
	/* What has been copied before stays copied */
	if (m->kind == SHARED || !race->write)
		check_mapping(_metadata, m, race->nr, SEED_NONE, want, NR_RACERS);
}

TEST_F_TIMEOUT(race, punch_hole, LONG_TIMEOUT)
{
	struct mem *m = &self->m;

	if (variant->kind == ANON)
		SKIP(return, "there is no file");
	if (fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, psz))
		SKIP(return, "there are no holes here: %s", strerror(errno));
	run_race(_metadata, m, &self->race, round_punch);
}

static void round_dontneed(struct __test_metadata *_metadata, struct race *race)
{
	struct mem *m = race->m;
	enum want want[NR_RACERS];
	unsigned int seed;
	int i;

	ASSERT_EQ(0, madvise(page_of(m, race->nr), psz, MADV_DONTNEED));
	race_end(race);
	seed = m->kind == ANON ? SEED_NONE : SEED_OLD;
	check_racers(_metadata, race, 0, seed);
	/* A private page that has been written to may be dropped with what was written */
	for (i = 0; i < NR_RACERS; i++)
		want[i] = !race->write ? WANT_OLD : m->kind == SHARED ? WANT_NEW : WANT_ANY;
	check_mapping(_metadata, m, race->nr, seed, want, NR_RACERS);
	check_file(_metadata, m, race->nr, SEED_OLD, want, NR_RACERS);
}

TEST_F_TIMEOUT(race, dontneed, LONG_TIMEOUT)
{
	run_race(_metadata, &self->m, &self->race, round_dontneed);
}

/* Signals that are not fatal end the attempt, and the access is made again */
static unsigned int nr_signals;

static void on_usr1(int sig)
{
	(void)sig;
	__atomic_add_fetch(&nr_signals, 1, __ATOMIC_RELAXED);
}

static void round_signal(struct __test_metadata *_metadata, struct race *race)
{
	enum want want[NR_RACERS];
	int i;

	while (!all_done(race)) {
		for (i = 0; i < NR_RACERS; i++)
			if (!is_done(&race->racer[i]))
				ASSERT_EQ(0, syscall(SYS_tgkill, getpid(), race->racer[i].tid,
						     SIGUSR1));
		sleep_ms(1);
	}
	race_end(race);
	check_racers(_metadata, race, 0, SEED_OLD);
	wants(race, want);
	check_mapping(_metadata, race->m, race->nr, SEED_OLD, want, NR_RACERS);
	check_file(_metadata, race->m, race->nr, SEED_OLD, want, NR_RACERS);
}

TEST_F_TIMEOUT(race, signals, LONG_TIMEOUT)
{
	struct sigaction action = { .sa_handler = on_usr1, .sa_flags = SA_RESTART };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	run_race(_metadata, &self->m, &self->race, round_signal);
	TH_LOG("%u signals", nr_signals);
}

static int reap(struct __test_metadata *_metadata, pid_t pid, int *status)
{
	__u64 deadline = now_ms() + WAIT_MS;
	pid_t ret;

	while (!(ret = waitpid(pid, status, WNOHANG)) && now_ms() < deadline)
		sleep_ms(1);
	if (!ret) {
		TH_LOG("process %d does not die", pid);
		return -1;
	}
	return ret == pid ? 0 : -1;
}

/* The child has the same page, and what it does with it is its own business */
static void round_fork(struct __test_metadata *_metadata, struct race *race)
{
	struct mem *m = race->m;
	enum want want[NR_RACERS];
	int i, status;
	pid_t pid;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		for (i = 0; i < NR_RACERS; i++)
			want[i] = race->write ? WANT_ANY : WANT_OLD;
		_exit(bad_word(page_of(m, race->nr), SEED_OLD, race->nr * psz, want,
			       NR_RACERS) >= 0);
	}
	race_end(race);
	ASSERT_EQ(0, reap(_metadata, pid, &status));
	ASSERT_TRUE(WIFEXITED(status)) {
		TH_LOG("page %zu: the child died of signal %d", race->nr, WTERMSIG(status));
	}
	ASSERT_EQ(0, WEXITSTATUS(status)) {
		TH_LOG("page %zu is wrong in the child", race->nr);
	}
	check_racers(_metadata, race, 0, SEED_OLD);
	wants(race, want);
	check_mapping(_metadata, m, race->nr, SEED_OLD, want, NR_RACERS);
	check_file(_metadata, m, race->nr, SEED_OLD, want, NR_RACERS);
}

TEST_F_TIMEOUT(race, fork, LONG_TIMEOUT)
{
	run_race(_metadata, &self->m, &self->race, round_fork);
}

/* How many threads of this process are waiting */
static unsigned int nr_waiting(pid_t pid)
{
	struct dirent *entry;
	unsigned int nr = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			nr += is_waiting(pid, atoi(entry->d_name));
	closedir(dir);
	return nr;
}

static void *touch_all(void *arg)
{
	struct mem *m = arg;
	__u64 val;
	size_t i;

	for (i = 0; i < m->pages; i++)
		try_load(page_of(m, i), &val);
	return NULL;
}

/* Whoever is killed while it waits is gone soon, and takes nothing with it */
TEST_F_TIMEOUT(race, kill, LONG_TIMEOUT)
{
	unsigned int killed = 0, round, i;
	struct mem *m = &self->m;
	__u64 deadline;
	pthread_t thread;
	int status;
	pid_t pid;

	for (round = 0; round < NR_KILLS; round++) {
		if (!stage(_metadata, m, NR_PAGES, true))
			SKIP(return, NOT_STAGED);
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (i = 0; i < NR_THREADS; i++)
				if (pthread_create(&thread, NULL, touch_all, m))
					_exit(1);
			for (;;)
				pause();
		}
		deadline = now_ms() + 1000;
		while (!nr_waiting(pid) && now_ms() < deadline)
			;
		killed += !!nr_waiting(pid);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(0, reap(_metadata, pid, &status));
		ASSERT_TRUE(WIFSIGNALED(status));
		ASSERT_EQ(SIGKILL, WTERMSIG(status));
		check_all(_metadata, m, SEED_OLD, NULL, 0);
	}
	TH_LOG("killed while waiting in %u of %u rounds", killed, NR_KILLS);
	if (!killed)
		SKIP(return, "no fault was seen to wait: the device is too fast");
}

/*
 * A task that is killed does not wait for what it was waiting for: neither the
 * thread that reads the page, nor those that wait for it to be read.
 */

FIXTURE(stuck)
{
	int fd;
	void *map;
};

FIXTURE_SETUP(stuck)
{
	const struct place *place = &places[IN_STUCK];

	if (place->why[0])
		SKIP(return, "%s", place->why);
	self->fd = open(place->dev, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(self->fd, 0);
	self->map = mmap(NULL, (size_t)STUCK_MIB << 20, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->map);
	ASSERT_EQ(0, madvise(self->map, (size_t)STUCK_MIB << 20, MADV_RANDOM));
}

FIXTURE_TEARDOWN(stuck)
{
	munmap(self->map, (size_t)STUCK_MIB << 20);
	close(self->fd);
}

static void *touch_one(void *arg)
{
	__u64 val;

	try_load(arg, &val);
	return NULL;
}

TEST_F_TIMEOUT(stuck, kill, LONG_TIMEOUT)
{
	unsigned int early = 0, round, i;
	__u64 deadline;
	pthread_t thread;
	int status;
	char *page;
	pid_t pid;

	for (round = 0; round < NR_STUCK; round++) {
		/* Neither the first page, which has been looked at, nor beside another */
		page = (char *)self->map + (round + 1) * 64 * psz;
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (i = 0; i < NR_THREADS; i++)
				if (pthread_create(&thread, NULL, touch_one, page))
					_exit(1);
			for (;;)
				pause();
		}
		deadline = now_ms() + STUCK_MS / 2;
		while (nr_waiting(pid) < NR_THREADS && now_ms() < deadline)
			sleep_ms(1);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(0, reap(_metadata, pid, &status));
		ASSERT_TRUE(WIFSIGNALED(status));
		ASSERT_EQ(SIGKILL, WTERMSIG(status));
		/* If it had waited, the page would be there */
		early += !nr_resident(_metadata, page, psz);
	}
	TH_LOG("gone before the page was read in %u of %u rounds", early, NR_STUCK);
	EXPECT_NE(0U, early);
}

/*
 * userfaultfd
 */

static int open_uffd(struct __test_metadata *_metadata, __u64 features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd;

	fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd < 0) {
		TH_LOG("userfaultfd: %s", strerror(errno));
		return -1;
	}
	if (ioctl(fd, UFFDIO_API, &api) || (api.features & features) != features) {
		TH_LOG("UFFDIO_API: %s", strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

static void uffd_register(struct __test_metadata *_metadata, const struct mem *m, int uffd,
			  __u64 mode)
{
	struct uffdio_register reg = { .mode = mode };
	size_t i;

	for (i = 0; i < m->pages; i++) {
		reg.range.start = (uintptr_t)page_of(m, i);
		reg.range.len = psz;
		ASSERT_EQ(0, ioctl(uffd, UFFDIO_REGISTER, &reg));
	}
}

static int uffd_protect(int uffd, void *page, bool protect)
{
	struct uffdio_writeprotect wp = {
		.range = { .start = (uintptr_t)page, .len = psz },
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(uffd, UFFDIO_WRITEPROTECT, &wp);
}

/* The next message, if there is one within a few milliseconds */
static bool uffd_next(struct __test_metadata *_metadata, int uffd, struct uffd_msg *msg)
{
	struct pollfd pollfd = { .fd = uffd, .events = POLLIN };

	if (poll(&pollfd, 1, 2) <= 0)
		return false;
	if (read(uffd, msg, sizeof(*msg)) != sizeof(*msg)) {
		/* The thread may have been told otherwise meanwhile */
		ASSERT_EQ(EAGAIN, errno);
		return false;
	}
	ASSERT_EQ(UFFD_EVENT_PAGEFAULT, msg->event);
	return true;
}

/* A child that shares our pages reads this one as soon as it is told to go */
static pid_t fork_reader(struct __test_metadata *_metadata, const struct mem *m, size_t nr,
			 const __u64 *go)
{
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!load(go))
		;
	_exit(bad_word(page_of(m, nr), SEED_OLD, nr * psz, NULL, 0) >= 0);
}

/*
 * A page that is write-protected by userfaultfd and swapped out: reading it is
 * nobody's business, and writing to it has to be allowed by us.  A fault that
 * must not be retried any more cannot wait for us, and ends with SIGBUS.  This
 * would be one that has met somebody who had locked the page just to map it,
 * such as children, who have the same page but no userfaultfd.
 */
TEST_F_TIMEOUT(race, uffd_wp, LONG_TIMEOUT)
{
	struct race *race = &self->race;
	struct mem *m = &self->m;
	enum want want[NR_RACERS];
	unsigned int messages;
	struct uffd_msg msg;
	__u64 deadline;
	pid_t child[NR_RACERS];
	int uffd, read, status;
	size_t i, j;
	__u64 *go;

	if (variant->kind != ANON)
		SKIP(return, "this is about swap");
	go = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, go);
	uffd = open_uffd(_metadata, UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	if (uffd < 0)
		SKIP(return, "there is no userfaultfd that write-protects");
	race_init(_metadata, race, m);
	for (read = 0; read < 2; read++) {
		if (!stage(_metadata, m, NR_ROUNDS, true))
			SKIP(return, NOT_STAGED);
		uffd_register(_metadata, m, uffd, UFFDIO_REGISTER_MODE_WP);
		/* Once with the page in memory and once with it in swap */
		for (i = 0; i < NR_ROUNDS; i++) {
			if (i % 2)
				check_mapping(_metadata, m, i, SEED_OLD, NULL, 0);
			ASSERT_EQ(0, uffd_protect(uffd, page_of(m, i), true));
		}
		if (!swap_out(_metadata, m))
			SKIP(return, NOT_STAGED);
		for (i = NR_ROUNDS; i-- > 0; ) {
			if (read) {
				race_begin(race, i, false);
				race_end(race);
				check_racers(_metadata, race, 0, SEED_OLD);
				ASSERT_FALSE(uffd_next(_metadata, uffd, &msg));
			}
			__atomic_store_n(go, 0, __ATOMIC_RELAXED);
			for (j = 0; j < ARRAY_SIZE(child); j++)
				child[j] = fork_reader(_metadata, m, i, go);
			__atomic_store_n(go, 1, __ATOMIC_RELAXED);
			race_begin(race, i, true);
			messages = 0;
			deadline = now_ms() + WAIT_MS;
			while (!all_done(race) && now_ms() < deadline) {
				if (!uffd_next(_metadata, uffd, &msg))
					continue;
				messages++;
				ASSERT_EQ((__u64)UFFD_PAGEFAULT_FLAG_WP |
					  UFFD_PAGEFAULT_FLAG_WRITE,
					  msg.arg.pagefault.flags);
				ASSERT_EQ((uintptr_t)page_of(m, i),
					  msg.arg.pagefault.address & ~(__u64)(psz - 1));
				/* Nobody has written before the first is allowed to */
				if (messages == 1)
					check_mapping(_metadata, m, i, SEED_OLD, NULL, 0);
				ASSERT_EQ(0, uffd_protect(uffd, page_of(m, i), false));
			}
			ASSERT_TRUE(all_done(race));
			race_end(race);
			for (j = 0; j < ARRAY_SIZE(child); j++) {
				ASSERT_EQ(0, reap(_metadata, child[j], &status));
				ASSERT_EQ(0, status) {
					TH_LOG("page %zu is wrong in a child", i);
				}
			}
			check_racers(_metadata, race, 0, SEED_OLD);
			ASSERT_NE(0U, messages);
			wants(race, want);
			check_mapping(_metadata, m, i, SEED_OLD, want, NR_RACERS);
		}
	}
	race_exit(_metadata, race);
	munmap(go, psz);
	close(uffd);
}

/* The page is dropped while it is swapped in: whoever comes back must ask for it */
TEST_F_TIMEOUT(race, uffd_missing, LONG_TIMEOUT)
{
	struct race *race = &self->race;
	struct mem *m = &self->m;
	unsigned int messages = 0;
	struct uffdio_copy copy;
	enum want want[NR_RACERS];
	__u64 other[words];
	struct uffd_msg msg;
	__u64 deadline;
	int uffd, write, j;
	size_t i;

	if (variant->kind != ANON)
		SKIP(return, "this is about swap");
	uffd = open_uffd(_metadata, 0);
	if (uffd < 0)
		SKIP(return, "there is no userfaultfd");
	race_init(_metadata, race, m);
	for (write = 0; write < 2; write++) {
		if (!stage(_metadata, m, NR_ROUNDS, true))
			SKIP(return, NOT_STAGED);
		uffd_register(_metadata, m, uffd, UFFDIO_REGISTER_MODE_MISSING);
		for (i = NR_ROUNDS; i-- > 0; ) {
			fill(other, psz, SEED_OTHER, i * psz);
			race_begin(race, i, write);
			ASSERT_EQ(0, madvise(page_of(m, i), psz, MADV_DONTNEED));
			deadline = now_ms() + WAIT_MS;
			while (!all_done(race) && now_ms() < deadline) {
				if (!uffd_next(_metadata, uffd, &msg))
					continue;
				messages++;
				copy = (struct uffdio_copy) {
					.dst = (uintptr_t)page_of(m, i),
					.src = (uintptr_t)other,
					.len = psz,
				};
				/* Each of the threads asks, and all are served at once */
				if (ioctl(uffd, UFFDIO_COPY, &copy))
					ASSERT_EQ(EEXIST, errno);
			}
			ASSERT_TRUE(all_done(race));
			race_end(race);
			check_racers(_metadata, race, 0, SEED_OTHER);
			/*
			 * Is there anything now? If not, looking at it would be
			 * a fault that we would have to serve ourselves.
			 */
			if (!nr_resident(_metadata, page_of(m, i), psz))
				continue;
			for (j = 0; j < NR_RACERS; j++)
				want[j] = write ? WANT_ANY : WANT_OLD;
			check_mapping(_metadata, m, i, SEED_OTHER, want, NR_RACERS);
		}
	}
	race_exit(_metadata, race);
	close(uffd);
	TH_LOG("%u messages, faults were waiting in %u rounds", messages, race->raced);
}

/*
 * What has its own way to wait: faults in shmem while a hole is punched, and hugetlb
 */

static void write_all(struct __test_metadata *_metadata, char *map, size_t step, int fd)
{
	int round, status;
	pid_t pid;
	size_t i;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		for (round = 1; round < 100; round++) {
			for (i = 0; i < NR_PAGES; i++) {
				__atomic_store_n(&map[i * step], round, __ATOMIC_RELAXED);
				/* What is punched out is zero, what is not is there */
				if (fd < 0 && map[i * step] != round)
					_exit(1);
			}
		}
		_exit(map[1] != 0);
	}
	while (!waitpid(pid, &status, WNOHANG))
		if (fd >= 0)
			ASSERT_EQ(0, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					       0, NR_PAGES * step));
	EXPECT_EQ(0, status);
}

TEST(shmem_hole)
{
	int fd = memfd_create("fault_race", MFD_CLOEXEC);
	char *map;

	ASSERT_EQ(0, ftruncate(fd, NR_PAGES * psz));
	map = mmap(NULL, NR_PAGES * psz, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	write_all(_metadata, map, psz, fd);
}

TEST(hugetlb)
{
	size_t size = 4UL << 20;
	char *map;

	if (write_str("/proc/sys/vm/nr_hugepages", "4"))
		SKIP(return, "no hugetlb");
	map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (map == MAP_FAILED)
		SKIP(return, "no huge pages: %s", strerror(errno));
	write_all(_metadata, map, size / NR_PAGES, -1);
	munmap(map, size);
	write_str("/proc/sys/vm/nr_hugepages", "0");
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	unsigned int i;

	psz = sysconf(_SC_PAGESIZE);
	words = psz / sizeof(__u64);
	main_pid = getpid();
	atexit(undo_places);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], on_exit_signal);
	prepare_places();
	return test_harness_run(argc, argv);
}
