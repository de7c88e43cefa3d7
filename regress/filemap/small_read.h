/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of small reads have in common: file systems to run on, and files
 * in which each word tells its place and its generation.
 */
#ifndef SMALL_READ_H
#define SMALL_READ_H

#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define WORD		8L
#define SPAN		(64L << 10)
#define MAX_SPAN	(4L << 20)
#define SECRET		0x2153454352455421ull
/* RWF_DONTCACHE, which has no plain type in the headers that have it at all */
#define DONTCACHE	0x80

#define LOAD(p)		__atomic_load_n(p, __ATOMIC_SEQ_CST)
#define ADD(p, v)	__atomic_add_fetch(p, v, __ATOMIC_SEQ_CST)

static ssize_t psz;

static inline uint64_t word_at(ssize_t pos, uint8_t generation)
{
	return (pos / WORD + 1) * 0x9e3779b97f4a7c15ull << 8 | generation;
}

/*
 * If it may be of several generations, or a hole, a word may tear, but where it has
 * bits, they have to be of its place.
 */
static inline bool good_word(uint64_t word, ssize_t pos, uint8_t from, uint8_t to)
{
	if (from == to)
		return word == word_at(pos, from);
	if ((uint8_t)word && (uint8_t)(word - from) > (uint8_t)(to - from))
		return false;
	return !(word & ~word_at(pos, 0xff));
}

/* @flags: of pwritev2() */
static inline bool write_words(int fd, ssize_t pos, ssize_t len, int gen, int flags)
{
	static __thread uint64_t words[SPAN / WORD] __attribute__((aligned(4096)));
	struct iovec iov = { .iov_base = words };
	int i;

	for (; len > 0; pos += SPAN, len -= SPAN) {
		iov.iov_len = MIN(len, SPAN);
		for (i = 0; i < SPAN / WORD; i++)
			words[i] = word_at(pos + i * WORD, gen);
		if (pwritev2(fd, &iov, 1, pos, flags) != MIN(len, SPAN))
			return false;
	}
	return true;
}

/* Another open file of the same file */
static inline int reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

/* Fill the pages that this CPU has freed just now, and free others after it. */
static inline void reuse(ssize_t size)
{
	static __thread void *last = MAP_FAILED;
	static __thread ssize_t last_size;
	uint64_t *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ssize_t i;

	madvise(area, size, MADV_NOHUGEPAGE);
	for (i = 0; area != MAP_FAILED && i < size / WORD; i++)
		area[i] = SECRET;
	munmap(last, last_size);
	last = area;
	last_size = size;
}

static inline long nr_cached(int fd, ssize_t pos, ssize_t len)
{
	struct cachestat_range range = { pos, len };
	struct cachestat now = {};

	syscall(__NR_cachestat, fd, &range, &now, 0);
	return now.nr_cache;
}

static inline bool write_str(const char *path, const char *val)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, val, strlen(val)) == (ssize_t)strlen(val);

	close(fd);
	return ok;
}

/* The number in a file, on the line that begins with @key; 0 if there is none */
static inline unsigned long number(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	unsigned long ret = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			ret = strtoul(line + strlen(key), NULL, 0);
	if (f)
		fclose(f);
	return ret;
}

/*
 * File systems.  They are mounted in /tmp, in a mount namespace that goes away with
 * the program.  Without privileges there is a tmpfs alone.
 */
enum fs_id { TMPFS, TMPFS_HUGE, RAMFS, EXT4, XFS, CGROUP2, TRACEFS, DEBUGFS, NR_FS };

static struct {
	const char *name, *type, *opts;
	bool mounted;
} fs_table[NR_FS] = {
	[TMPFS] = { "tmpfs", "tmpfs", "size=64m,huge=never", false },
	[TMPFS_HUGE] = { "tmpfs-huge", "tmpfs", "size=64m,huge=always", false },
	[RAMFS] = { "ramfs", "ramfs", NULL, false },
	[EXT4] = { "ext4", NULL, "mkfs.ext4 -q -F -b 4096", false },
	[XFS] = { "xfs", NULL, "mkfs.xfs -q -f", false },
	[CGROUP2] = { "cgroup2", "cgroup2", NULL, false },
	[TRACEFS] = { "tracefs", "tracefs", NULL, false },
	[DEBUGFS] = { "debugfs", "debugfs", NULL, false },
};

static inline const char *fs_path(enum fs_id id, const char *name)
{
	static __thread char path[2][160];
	static __thread int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "/tmp/%s/%s", fs_table[id].name, name);
	return path[turn];
}

static inline void mount_all(void)
{
	char cmd[400], dir[32];
	int i;

	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, "size=600m,huge=never"))
		return;
	for (i = 0; i < NR_FS; i++) {
		snprintf(dir, sizeof(dir), "/tmp/%s", fs_table[i].name);
		mkdir(dir, 0755);
		if (fs_table[i].type) {
			fs_table[i].mounted = !mount(fs_table[i].type, dir, fs_table[i].type, 0,
						     fs_table[i].opts);
			continue;
		}
		snprintf(cmd, sizeof(cmd), "cd /tmp && truncate -s 320M %s.img && %s %s.img && "
			 "mount -o loop %s.img %s", fs_table[i].name, fs_table[i].opts,
			 fs_table[i].name, fs_table[i].name, fs_table[i].name);
		fs_table[i].mounted = !system(cmd);
	}
}

/* A file without a name on one of them, or -1 */
static inline int make_file(enum fs_id id)
{
	return fs_table[id].mounted ? open(fs_path(id, ""), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
}

/*
 * A memory cgroup of this process, with a limit: its path, or NULL.  rmdir() it once
 * the process is gone.
 */
static inline const char *enter_cgroup(const char *limit)
{
	static char dir[64];
	char path[96];

	snprintf(dir, sizeof(dir), "/tmp/cgroup2/small_read.%d", getpid());
	if (!fs_table[CGROUP2].mounted)
		return NULL;
	write_str("/tmp/cgroup2/cgroup.subtree_control", "+memory");
	if (mkdir(dir, 0755))
		return NULL;
	snprintf(path, sizeof(path), "%s/memory.max", dir);
	if (!write_str(path, limit))
		return NULL;
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	return write_str(path, "0") ? dir : NULL;
}

#endif /* SMALL_READ_H */
