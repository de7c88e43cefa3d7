// SPDX-License-Identifier: GPL-2.0
/*
 * What small buffered reads of page cache files return.
 *
 * filemap_read() and shmem_file_read_iter() may serve a small read without a
 * reference to the folio: they copy to a buffer on the stack and look at a
 * sequence count again before they hand anything out.  Nothing of that may be
 * visible from user space, so nail down what is visible: the data, the count,
 * the position, the errors, the access time, and what reclaim thinks of a file
 * which is read like that.  The expectations are those of Linux 7.3.
 *
 * All data are patterns in which every byte depends on who wrote it and on its
 * position.  All data are compared with a model of the file which is kept in
 * memory, and every read also checks that the bytes around the part of the
 * buffer which was read to are left alone.
 *
 * Every test runs on a number of file systems.  The variant "dir" uses the
 * directory in the environment variable SMALL_READ_DIR, or else TMPDIR or /tmp.
 * The others mount a file system in a private mount namespace: tmpfs and ramfs,
 * and, as root, ext4 and XFS on a loop device.  SMALL_READ_EXT4_DEV and
 * SMALL_READ_XFS_DEV may name a block device to use instead; unless it holds
 * such a file system already it is formatted.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS	64
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Signed, as are all lengths here, because of what they are compared with. */
#define ARRAY_SIZE(arr)		((ssize_t)(sizeof(arr) / sizeof((arr)[0])))

#include "kselftest_harness.h"
#include "ring.h"

/* RWF_DONTCACHE, which has no plain type in the headers which have it at all */
#define DONTCACHE		0x00000080

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE		25
#endif

#ifndef FALLOC_FL_KEEP_SIZE
#define FALLOC_FL_KEEP_SIZE	0x01
#define FALLOC_FL_PUNCH_HOLE	0x02
#endif
#ifndef FALLOC_FL_COLLAPSE_RANGE
#define FALLOC_FL_COLLAPSE_RANGE 0x08
#define FALLOC_FL_ZERO_RANGE	0x10
#define FALLOC_FL_INSERT_RANGE	0x20
#endif

#ifndef OVERLAYFS_SUPER_MAGIC
#define OVERLAYFS_SUPER_MAGIC	0x794c7630
#endif

#define KIB			1024L
#define MIB			(1024L * KIB)

/* No test makes a file which is larger than that, except for sparse ones. */
#define MAX_FILE		(8 * MIB)
/* No single read is larger than that. */
#define MAX_READ		(2 * psz + 8 * KIB)

/* What is around and in a buffer before the read */
#define GUARD			64
#define CANARY			0xa5

/* How long to wait for something which ought to happen at once. */
#define WAIT_MS			20000
/* For tests which do more work; emulation with KASAN is very slow. */
#define LONG_TIMEOUT		180

/*
 * How many of the bytes in front of an address which faults may be missing in
 * the count.  Only some architectures copy up to the very last byte.
 */
#if defined(__x86_64__)
#define FAULT_SLACK		0
#else
#define FAULT_SLACK		64
#endif

static ssize_t psz;

static ssize_t max(ssize_t a, ssize_t b)
{
	return a > b ? a : b;
}

static ssize_t min(ssize_t a, ssize_t b)
{
	return a < b ? a : b;
}

static unsigned char pattern(unsigned int seed, off_t pos)
{
	return (((uint32_t)pos + seed * 40503u) * 2654435761u) >> 24;
}

static void fill(unsigned char *buf, ssize_t len, unsigned int seed, off_t pos)
{
	ssize_t i;

	for (i = 0; i < len; i++)
		buf[i] = pattern(seed, pos + i);
}

/* A word which tells its position in the file, and which is never zero */
static __u64 word_at(off_t pos)
{
	return (__u64)pos ^ 0xa5c3f00d00000000ull;
}

/* The index of the first byte which differs, or -1 */
static ssize_t mismatch(const unsigned char *a, const unsigned char *b, ssize_t len)
{
	ssize_t i;

	if (!memcmp(a, b, len))
		return -1;
	for (i = 0; a[i] == b[i]; i++)
		;
	return i;
}

/* Whether all of @buf is @c */
static bool all_are(const unsigned char *buf, ssize_t len, unsigned char c)
{
	return !len || (buf[0] == c && !memcmp(buf, buf + 1, len - 1));
}

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/*
 * File systems
 *
 * They are mounted before the first test and in a mount namespace of this
 * program, so they go away with it, whatever happens to the tests.
 */

enum fs_id {
	FS_DIR,
	FS_TMPFS,
	FS_TMPFS_HUGE,
	FS_RAMFS,
	FS_EXT4,
	FS_XFS,
	FS_CGROUP2,
	NR_FS,
};

struct fs {
	const char *name;
	const char *type;
	const char *opts;
	/* For those on a block device */
	const char *mkfs;
	const char *mkfs_opt;
	const char *dev_env;
	char dir[PATH_MAX / 4];
	/* Why it is not there; empty if it is */
	char why[160];
	/* Whether it is ours, so that it may be remounted */
	bool mounted;
};

static struct fs fs_table[NR_FS] = {
	[FS_DIR] = { .name = "dir" },
	[FS_TMPFS] = { .name = "tmpfs", .type = "tmpfs", .opts = "huge=never" },
	[FS_TMPFS_HUGE] = {
		.name = "tmpfs_huge", .type = "tmpfs", .opts = "huge=always",
	},
	[FS_RAMFS] = { .name = "ramfs", .type = "ramfs" },
	[FS_EXT4] = {
		.name = "ext4", .type = "ext4", .mkfs = "mkfs.ext4",
		.mkfs_opt = "-F", .dev_env = "SMALL_READ_EXT4_DEV",
	},
	[FS_XFS] = {
		.name = "xfs", .type = "xfs", .mkfs = "mkfs.xfs",
		.mkfs_opt = "-f", .dev_env = "SMALL_READ_XFS_DEV",
	},
	[FS_CGROUP2] = { .name = "cgroup2", .type = "cgroup2" },
};

static char work_dir[PATH_MAX / 8];
static pid_t main_pid;

static void fs_fails(struct fs *fs, const char *what)
{
	snprintf(fs->why, sizeof(fs->why), "%s: %s: %s", fs->name, what,
		 strerror(errno));
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

static int read_str(const char *path, char *val, ssize_t size)
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

static int run_mkfs(const struct fs *fs, const char *dev)
{
	pid_t pid;
	int status, null;

	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		null = open("/dev/null", O_RDWR);
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin", 1);
		execlp(fs->mkfs, fs->mkfs, "-q", fs->mkfs_opt, dev, NULL);
		_exit(errno == ENOENT ? 127 : 126);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	errno = WIFEXITED(status) && WEXITSTATUS(status) == 127 ? ENOENT : EIO;
	return -1;
}

/*
 * Attach a new sparse file to a loop device.  The device goes away when the
 * last user is gone, and the file does so with it, as it has no name any more.
 * Returns a descriptor which keeps the device until it is mounted.
 */
static int make_loop(struct fs *fs, char *dev, ssize_t size)
{
	struct loop_config config = {
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	char path[PATH_MAX / 4];
	int ctl, fd = -1, nr, tries;

	snprintf(path, sizeof(path), "%s/image", work_dir);
	config.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if ((int)config.fd < 0) {
		fs_fails(fs, "create of an image");
		return -1;
	}
	unlink(path);
	if (ftruncate(config.fd, 512 * MIB)) {
		fs_fails(fs, "size of the image");
		goto out_image;
	}

	ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (ctl < 0) {
		fs_fails(fs, "/dev/loop-control");
		goto out_image;
	}
	/* Somebody else may take the same one in between. */
	for (tries = 0; fd < 0 && tries < 16; tries++) {
		nr = ioctl(ctl, LOOP_CTL_GET_FREE);
		if (nr < 0)
			break;
		snprintf(dev, size, "/dev/loop%d", nr);
		fd = open(dev, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			break;
		if (ioctl(fd, LOOP_CONFIGURE, &config)) {
			int err = errno;

			close(fd);
			errno = err;
			fd = -1;
			if (err != EBUSY)
				break;
		}
	}
	if (fd < 0)
		fs_fails(fs, "loop device");
	close(ctl);
out_image:
	close(config.fd);
	return fd;
}

static void mount_on_disk(struct fs *fs)
{
	const char *env = getenv(fs->dev_env);
	char dev[PATH_MAX / 4];
	int fd = -1;

	if (env) {
		snprintf(dev, sizeof(dev), "%s", env);
		fs->mounted = !mount(dev, fs->dir, fs->type, 0, NULL);
		if (fs->mounted)
			return;
	} else {
		fd = make_loop(fs, dev, sizeof(dev));
		if (fd < 0)
			return;
	}

	if (run_mkfs(fs, dev))
		fs_fails(fs, fs->mkfs);
	else if (mount(dev, fs->dir, fs->type, 0, NULL))
		fs_fails(fs, "mount");
	else
		fs->mounted = true;
	if (fd >= 0)
		close(fd);
}

static void prepare_dir(void)
{
	struct fs *fs = &fs_table[FS_DIR];
	const char *dir = getenv("SMALL_READ_DIR") ?: getenv("TMPDIR") ?: "/tmp";

	if (snprintf(fs->dir, sizeof(fs->dir), "%s", dir) >= (int)sizeof(fs->dir)) {
		errno = ENAMETOOLONG;
		fs_fails(fs, dir);
	}
}

/*
 * Anybody may mount tmpfs and ramfs in a user namespace of their own.  Only
 * without privileges, though, because that loses the other file systems.
 */
static int enter_namespaces(void)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			return -1;
		write_str("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (write_str("/proc/self/uid_map", map))
			return -1;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (write_str("/proc/self/gid_map", map))
			return -1;
	}
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static void prepare_mounts(void)
{
	const char *tmp = getenv("TMPDIR") ?: "/tmp";
	bool private;
	int i;

	snprintf(work_dir, sizeof(work_dir), "%s/small_read_long.XXXXXX", tmp);
	if (!mkdtemp(work_dir)) {
		for (i = FS_TMPFS; i < NR_FS; i++)
			fs_fails(&fs_table[i], "mkdtemp");
		work_dir[0] = '\0';
		return;
	}
	private = !enter_namespaces();
	for (i = FS_TMPFS; i < NR_FS; i++) {
		struct fs *fs = &fs_table[i];

		if (!private) {
			fs_fails(fs, "private mount namespace");
			continue;
		}
		snprintf(fs->dir, sizeof(fs->dir), "%s/%s", work_dir, fs->name);
		if (mkdir(fs->dir, 0755))
			fs_fails(fs, "mkdir");
		else if (fs->mkfs)
			mount_on_disk(fs);
		else if (mount(fs->type, fs->dir, fs->type, 0, fs->opts))
			fs_fails(fs, "mount");
		else
			fs->mounted = true;
	}
}

static void undo_mounts(void)
{
	int i;

	/* Children may exit, too. */
	if (getpid() != main_pid)
		return;
	for (i = FS_TMPFS; i < NR_FS; i++) {
		if (fs_table[i].mounted)
			umount2(fs_table[i].dir, MNT_DETACH);
		rmdir(fs_table[i].dir);
	}
	if (work_dir[0])
		rmdir(work_dir);
}

/*
 * A file and what is in it.  Beyond @size, @data is all zeroes.
 */

struct file {
	char path[PATH_MAX / 2];
	int fd;
	unsigned char *data;
	ssize_t size;
};

static void file_open(struct __test_metadata *_metadata, struct file *f,
		      const struct fs *fs, const char *name)
{
	snprintf(f->path, sizeof(f->path), "%s/%s.%d", fs->dir, name, getpid());
	f->size = 0;
	f->data = mmap(NULL, MAX_FILE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, f->data);
	f->fd = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ASSERT_GE(f->fd, 0) {
		TH_LOG("%s: %s", f->path, strerror(errno));
	}
}

static void file_write(struct __test_metadata *_metadata, struct file *f,
		       off_t pos, ssize_t len, unsigned int seed)
{
	ASSERT_LE(pos + len, MAX_FILE);
	fill(f->data + pos, len, seed, pos);
	ASSERT_EQ(len, pwrite(f->fd, f->data + pos, len, pos)) {
		TH_LOG("write of %zd bytes at %lld: %s", len, (long long)pos,
		       strerror(errno));
	}
	f->size = max(f->size, pos + len);
}

static void file_truncate(struct __test_metadata *_metadata, struct file *f,
			  ssize_t size)
{
	ASSERT_LE(size, MAX_FILE);
	ASSERT_EQ(0, ftruncate(f->fd, size));
	if (size < f->size)
		memset(f->data + size, 0, f->size - size);
	f->size = size;
}

/* Returns an errno if the file system does not do that. */
static int file_fallocate(struct __test_metadata *_metadata, struct file *f,
			  int mode, off_t pos, ssize_t len)
{
	unsigned char *p = f->data + pos;
	ssize_t tail = f->size - pos;

	if (fallocate(f->fd, mode, pos, len)) {
		ASSERT_TRUE(errno == EOPNOTSUPP) {
			TH_LOG("mode %#x at %lld, %zd bytes: %s", mode,
			       (long long)pos, len, strerror(errno));
		}
		return errno;
	}
	switch (mode & ~FALLOC_FL_KEEP_SIZE) {
	case FALLOC_FL_PUNCH_HOLE:
	case FALLOC_FL_ZERO_RANGE:
		memset(p, 0, len);
		if (!(mode & FALLOC_FL_KEEP_SIZE))
			f->size = max(f->size, pos + len);
		break;
	case FALLOC_FL_COLLAPSE_RANGE:
		memmove(p, p + len, tail - len);
		memset(p + tail - len, 0, len);
		f->size -= len;
		break;
	case FALLOC_FL_INSERT_RANGE:
		memmove(p + len, p, tail);
		memset(p, 0, len);
		f->size += len;
		break;
	}
	return 0;
}

/* Write back and drop what is cached, as far as the file system can do that. */
static void file_drop(struct __test_metadata *_metadata, struct file *f)
{
	ASSERT_EQ(0, fsync(f->fd));
	ASSERT_EQ(0, posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED));
}

/* How many pages of the first @size bytes are cached */
static ssize_t nr_cached(struct __test_metadata *_metadata, int fd, ssize_t size)
{
	ssize_t i, nr = 0, pages = (size + psz - 1) / psz;
	unsigned char *vec;
	void *map;

	if (!pages)
		return 0;
	vec = malloc(pages);
	ASSERT_NE(NULL, vec);
	map = mmap(NULL, pages * psz, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, mincore(map, pages * psz, vec));
	for (i = 0; i < pages; i++)
		nr += vec[i] & 1;
	munmap(map, pages * psz);
	free(vec);
	return nr;
}

/*
 * Ways to read
 */

typedef ssize_t (*read_fn)(int fd, void *buf, ssize_t len, off_t pos);

/* Three pieces, one of them empty, which together are the whole buffer */
static int split_iov(struct iovec *iov, void *buf, ssize_t len)
{
	ssize_t first = len / 3;

	iov[0].iov_base = buf;
	iov[0].iov_len = first;
	iov[1].iov_base = NULL;
	iov[1].iov_len = 0;
	iov[2].iov_base = (char *)buf + first;
	iov[2].iov_len = len - first;
	return 3;
}

static ssize_t by_pread(int fd, void *buf, ssize_t len, off_t pos)
{
	return pread(fd, buf, len, pos);
}

static ssize_t by_read(int fd, void *buf, ssize_t len, off_t pos)
{
	if (lseek(fd, pos, SEEK_SET) != pos)
		return -1;
	return read(fd, buf, len);
}

static ssize_t by_readv(int fd, void *buf, ssize_t len, off_t pos)
{
	struct iovec iov[3];

	if (lseek(fd, pos, SEEK_SET) != pos)
		return -1;
	return readv(fd, iov, split_iov(iov, buf, len));
}

static ssize_t by_preadv(int fd, void *buf, ssize_t len, off_t pos)
{
	struct iovec iov[3];

	return preadv(fd, iov, split_iov(iov, buf, len), pos);
}

static ssize_t by_preadv2(int fd, void *buf, ssize_t len, off_t pos)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };

	return preadv2(fd, &iov, 1, pos, 0);
}

static ssize_t by_nowait(int fd, void *buf, ssize_t len, off_t pos)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };

	return preadv2(fd, &iov, 1, pos, RWF_NOWAIT);
}

static ssize_t by_dontcache(int fd, void *buf, ssize_t len, off_t pos)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };

	return preadv2(fd, &iov, 1, pos, DONTCACHE);
}

static const struct way {
	const char *name;
	read_fn fn;
	bool moves;
} ways[] = {
	{ "pread", by_pread, false },
	{ "read", by_read, true },
	{ "readv", by_readv, true },
	{ "preadv", by_preadv, false },
	{ "preadv2", by_preadv2, false },
};

/* How many bytes a read has to return */
static ssize_t expected(const struct file *f, ssize_t len, off_t pos)
{
	return pos >= f->size ? 0 : min(len, f->size - pos);
}

/* A buffer for @len bytes with canaries around and in it */
static unsigned char *guarded_buf(struct __test_metadata *_metadata, ssize_t len)
{
	static unsigned char *area;
	static unsigned int calls;

	ASSERT_LE(len, MAX_READ);
	if (!area) {
		area = malloc(MAX_READ + 3 * GUARD);
		ASSERT_NE(NULL, area);
	}
	/* Another alignment every time */
	calls += 13;
	memset(area, CANARY, len + 3 * GUARD);
	return area + GUARD + calls % GUARD;
}

/* Verify what a read of @len bytes at @pos returned */
static void check_result(struct __test_metadata *_metadata, const struct file *f,
			 const unsigned char *buf, ssize_t len, off_t pos,
			 ssize_t want, ssize_t ret)
{
	ASSERT_EQ(want, ret) {
		TH_LOG("read of %zd bytes at %lld, file of %zd: %s", len,
		       (long long)pos, f->size, ret < 0 ? strerror(errno) : "count");
	}
	ASSERT_EQ(-1, mismatch(buf, f->data + pos, max(ret, 0))) {
		TH_LOG("read of %zd bytes at %lld, file of %zd: wrong byte %zd",
		       len, (long long)pos, f->size,
		       mismatch(buf, f->data + pos, ret));
	}
	ASSERT_TRUE(all_are(buf - GUARD, GUARD, CANARY)) {
		TH_LOG("bytes in front of the buffer are gone");
	}
	ASSERT_TRUE(all_are(buf + max(ret, 0), len - max(ret, 0) + GUARD, CANARY)) {
		TH_LOG("bytes behind %zd of %zd are gone", ret, len);
	}
}

static void check_fn(struct __test_metadata *_metadata, const struct file *f,
		     int fd, read_fn fn, ssize_t len, off_t pos)
{
	unsigned char *buf = guarded_buf(_metadata, len);

	check_result(_metadata, f, buf, len, pos, expected(f, len, pos),
		     fn(fd, buf, len, pos));
}

static void check_read(struct __test_metadata *_metadata, const struct file *f,
		       ssize_t len, off_t pos)
{
	check_fn(_metadata, f, f->fd, by_pread, len, pos);
}

static void check_way(struct __test_metadata *_metadata, const struct file *f,
		      const struct way *way, ssize_t len, off_t pos)
{
	check_fn(_metadata, f, f->fd, way->fn, len, pos);
	if (!way->moves)
		return;
	ASSERT_EQ(pos + expected(f, len, pos), lseek(f->fd, 0, SEEK_CUR)) {
		TH_LOG("%s of %zd bytes at %lld", way->name, len, (long long)pos);
	}
}

/* The bytes from @from to @to and whatever is there at the end of the file */
static void check_range(struct __test_metadata *_metadata, const struct file *f,
			off_t from, off_t to, ssize_t piece)
{
	off_t pos;

	for (pos = max(from, 0); pos < to; pos += piece)
		check_read(_metadata, f, piece, pos);
}

static void check_all(struct __test_metadata *_metadata, const struct file *f,
		      ssize_t piece)
{
	check_range(_metadata, f, 0, f->size + 2 * piece, piece);
}

/* Small reads which begin or end at, or contain, or are next to @pos */
static void check_around(struct __test_metadata *_metadata, const struct file *f,
			 off_t pos)
{
	static const ssize_t lens[] = { 1, 8, 64, 127, 128, 129, 257, 768, 1025 };
	ssize_t i, len;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		len = lens[i];
		check_range(_metadata, f, pos - len - 1, pos - len + 2, 1);
		check_read(_metadata, f, len, max(pos - len, 0));
		check_read(_metadata, f, len, max(pos - len / 2, 0));
		check_read(_metadata, f, len, max(pos - 1, 0));
		check_read(_metadata, f, len, pos);
		check_read(_metadata, f, len, pos + 1);
	}
}

/*
 * Fixture
 */

FIXTURE(small_read)
{
	struct file f;
	/* Unlinked by the parent, so that a failed test leaves nothing. */
	struct file other;
	const struct fs *fs;
};

FIXTURE_VARIANT(small_read)
{
	enum fs_id fs;
};

FIXTURE_VARIANT_ADD(small_read, dir)
{
	.fs = FS_DIR,
};

FIXTURE_VARIANT_ADD(small_read, tmpfs)
{
	.fs = FS_TMPFS,
};

FIXTURE_VARIANT_ADD(small_read, tmpfs_huge)
{
	.fs = FS_TMPFS_HUGE,
};

FIXTURE_VARIANT_ADD(small_read, ramfs)
{
	.fs = FS_RAMFS,
};

FIXTURE_VARIANT_ADD(small_read, ext4)
{
	.fs = FS_EXT4,
};

FIXTURE_VARIANT_ADD(small_read, xfs)
{
	.fs = FS_XFS,
};

FIXTURE_SETUP(small_read)
{
	self->fs = &fs_table[variant->fs];
	if (self->fs->why[0])
		SKIP(return, "%s", self->fs->why);
	file_open(_metadata, &self->f, self->fs, "file");
}

FIXTURE_TEARDOWN_PARENT(small_read)
{
	if (self->f.path[0])
		unlink(self->f.path);
	if (self->other.path[0])
		unlink(self->other.path);
}

/*
 * Data, counts and positions
 */

static const ssize_t small_sizes[] = {
	1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 255, 256, 257, 383, 384,
	385, 511, 512, 513, 767, 768, 769, 1023, 1024, 1025, 2047, 2048, 2049,
	4095, 4096, 4097,
};

static const ssize_t deltas[] = {
	-4097, -4096, -4095, -1025, -1024, -769, -768, -767, -513, -512, -257,
	-256, -255, -129, -128, -127, -65, -64, -63, -33, -32, -31, -8, -7, -1, 0, 1, 7, 8,
	31, 32, 33, 63, 64, 65, 127, 128, 1000,
};

TEST_F_TIMEOUT(small_read, sizes_and_offsets, LONG_TIMEOUT)
{
	ssize_t edges[] = { 0, psz, 2 * psz, 16 * psz, 20 * psz + 123 };
	struct file *f = &self->f;
	ssize_t e, d, s, w = 0;

	file_write(_metadata, f, 0, edges[ARRAY_SIZE(edges) - 1], 1);
	for (e = 0; e < ARRAY_SIZE(edges); e++) {
		for (d = 0; d < ARRAY_SIZE(deltas); d++) {
			off_t pos = edges[e] + deltas[d];

			if (pos < 0)
				continue;
			for (s = 0; s < ARRAY_SIZE(small_sizes); s++)
				check_way(_metadata, f,
					  &ways[w++ % ARRAY_SIZE(ways)],
					  small_sizes[s], pos);
		}
	}
}

TEST_F_TIMEOUT(small_read, every_size, LONG_TIMEOUT)
{
	struct file *f = &self->f;
	ssize_t len;

	file_write(_metadata, f, 0, 4 * psz, 1);
	for (len = 1; len <= 4097; len++) {
		/* In a page, and across the border of two */
		check_read(_metadata, f, len, 2 * psz + len % 7);
		check_read(_metadata, f, len, psz - len / 2);
	}
	check_read(_metadata, f, psz, 1);
	check_read(_metadata, f, psz + 1, psz - 1);
}

TEST_F_TIMEOUT(small_read, end_of_file, LONG_TIMEOUT)
{
	const ssize_t sizes[] = {
		1, 7, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 1000, psz - 64, psz - 1, psz,
		psz + 1, psz + 64, 3 * psz - 1, 3 * psz, 3 * psz + 300,
	};
	struct file *f = &self->f;
	ssize_t i, s, before, w = 0;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		file_write(_metadata, f, 0, sizes[i], i + 1);
		ASSERT_EQ(sizes[i], f->size);
		for (s = 0; s < ARRAY_SIZE(small_sizes); s++) {
			for (before = -2; before < 70; before += 3) {
				const struct way *way;

				if (before > sizes[i])
					break;
				way = &ways[w++ % ARRAY_SIZE(ways)];
				check_way(_metadata, f, way, small_sizes[s],
					  sizes[i] - before);
			}
			check_read(_metadata, f, small_sizes[s], sizes[i]);
			check_read(_metadata, f, small_sizes[s], sizes[i] + psz);
		}
		file_truncate(_metadata, f, 0);
	}
}

TEST_F(small_read, empty_file)
{
	struct file *f = &self->f;
	ssize_t s, w;

	for (s = 0; s < ARRAY_SIZE(small_sizes); s++) {
		for (w = 0; w < ARRAY_SIZE(ways); w++) {
			check_way(_metadata, f, &ways[w], small_sizes[s], 0);
			check_way(_metadata, f, &ways[w], small_sizes[s], 1);
			check_way(_metadata, f, &ways[w], small_sizes[s], psz);
		}
	}

	/* No byte of a page which is cached from before may show up. */
	file_write(_metadata, f, 0, 2 * psz, 1);
	check_all(_metadata, f, 64);
	file_truncate(_metadata, f, 0);
	check_range(_metadata, f, 0, 2 * psz, 64);
}

TEST_F(small_read, zero_length)
{
	struct file *f = &self->f;
	ssize_t w;

	file_write(_metadata, f, 0, 100, 1);
	for (w = 0; w < ARRAY_SIZE(ways); w++) {
		check_way(_metadata, f, &ways[w], 0, 0);
		check_way(_metadata, f, &ways[w], 0, 50);
		check_way(_metadata, f, &ways[w], 0, 100);
	}
	/* Nothing is copied, so there is nothing to fault on. */
	ASSERT_EQ(0, pread(f->fd, NULL, 0, 10));
}

TEST_F_TIMEOUT(small_read, holes, LONG_TIMEOUT)
{
	struct file *f = &self->f;
	ssize_t i;

	/* Pages with data, in part and in full, and holes between them */
	file_write(_metadata, f, psz, psz, 1);
	file_write(_metadata, f, 3 * psz + 100, 50, 2);
	file_write(_metadata, f, 4 * psz - 10, 20, 3);
	file_write(_metadata, f, 64 * psz, 10, 4);
	/* A tail without data which ends in the middle of a page */
	file_truncate(_metadata, f, 70 * psz + 77);

	for (i = 0; i < 2; i++) {
		ssize_t page;

		for (page = 0; page <= 6; page++)
			check_around(_metadata, f, page * psz);
		check_around(_metadata, f, 3 * psz + 100);
		check_around(_metadata, f, 3 * psz + 150);
		check_around(_metadata, f, 64 * psz);
		check_around(_metadata, f, 64 * psz + 10);
		check_around(_metadata, f, f->size);
		check_all(_metadata, f, 1000);
		file_drop(_metadata, f);
	}

	/* A hole which was read before is filled. */
	file_write(_metadata, f, 10 * psz + 5, 300, 5);
	check_around(_metadata, f, 10 * psz);
	check_around(_metadata, f, 10 * psz + 305);
}

/* Neither the offset nor the page index may be cut to 32 bits. */
TEST_F(small_read, far_offsets)
{
	const off_t bases[] = {
		1LL << 31, 1LL << 32, 5LL << 32, 1LL << 43, (1LL << 44) + psz,
	};
	unsigned char want[600], *buf;
	struct file *f = &self->f;
	ssize_t i, shift;
	int tested = 0;

	file_write(_metadata, f, 0, 2 * psz, 1);
	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		off_t pos = bases[i] - 300;

		fill(want, sizeof(want), 10 + i, pos);
		if (pwrite(f->fd, want, sizeof(want), pos) < 0) {
			ASSERT_TRUE(errno == EFBIG || errno == EINVAL);
			continue;
		}
		tested++;
		for (shift = 0; shift < 600; shift += 11) {
			buf = guarded_buf(_metadata, 64);
			ASSERT_EQ(min(64, 600 - shift),
				  pread(f->fd, buf, 64, pos + shift));
			ASSERT_EQ(-1, mismatch(buf, want + shift,
					       min(64, 600 - shift)));
		}
		buf = guarded_buf(_metadata, 64);
		ASSERT_EQ(64, pread(f->fd, buf, 64, pos - 64));
		ASSERT_TRUE(all_are(buf, 64, 0));
		ASSERT_EQ(0, pread(f->fd, buf, 64, pos + 600));
		ASSERT_EQ(64, pread(f->fd, buf, 64, 17));
		ASSERT_EQ(-1, mismatch(buf, f->data + 17, 64));
	}
	ASSERT_GT(tested, 0);

	buf = guarded_buf(_metadata, 64);
	ASSERT_EQ(0, pread(f->fd, buf, 64, LLONG_MAX - 4096));
	ASSERT_EQ(-1, pread(f->fd, buf, 64, -1));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(-1, pread(f->fd, buf, 64, -psz));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_TRUE(all_are(buf, 64, CANARY));
}

TEST_F(small_read, position)
{
	struct file *f = &self->f;
	int dupfd, fd2, fd3;
	char path[64];
	unsigned char buf[256];

	file_write(_metadata, f, 0, 1000, 1);
	ASSERT_EQ(0, lseek(f->fd, 0, SEEK_SET));
	ASSERT_EQ(100, read(f->fd, buf, 100));
	/* Reads at a position do not use it. */
	ASSERT_EQ(64, pread(f->fd, buf, 64, 500));
	ASSERT_EQ(100, lseek(f->fd, 0, SEEK_CUR));

	/* It is shared with duplicates, but with nobody else. */
	dupfd = dup(f->fd);
	ASSERT_GE(dupfd, 0);
	fd2 = open(f->path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd2, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd3 = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd3, 0);
	ASSERT_EQ(64, read(dupfd, buf, 64));
	ASSERT_EQ(-1, mismatch(buf, f->data + 100, 64));
	ASSERT_EQ(32, read(f->fd, buf, 32));
	ASSERT_EQ(-1, mismatch(buf, f->data + 164, 32));
	ASSERT_EQ(10, read(fd2, buf, 10));
	ASSERT_EQ(-1, mismatch(buf, f->data, 10));
	ASSERT_EQ(20, read(fd3, buf, 20));
	ASSERT_EQ(-1, mismatch(buf, f->data, 20));
	ASSERT_EQ(196, lseek(dupfd, 0, SEEK_CUR));
	ASSERT_EQ(10, lseek(fd2, 0, SEEK_CUR));
	ASSERT_EQ(20, lseek(fd3, 0, SEEK_CUR));

	/* At the end it stays there, and goes on when there is more. */
	ASSERT_EQ(950, lseek(f->fd, 950, SEEK_SET));
	ASSERT_EQ(50, read(f->fd, buf, 64));
	ASSERT_EQ(-1, mismatch(buf, f->data + 950, 50));
	ASSERT_EQ(0, read(f->fd, buf, 64));
	ASSERT_EQ(1000, lseek(f->fd, 0, SEEK_CUR));
	file_write(_metadata, f, 1000, 30, 2);
	ASSERT_EQ(30, read(f->fd, buf, 64));
	ASSERT_EQ(-1, mismatch(buf, f->data + 1000, 30));
	/* Beyond the end it stays, too. */
	ASSERT_EQ(5000, lseek(f->fd, 5000, SEEK_SET));
	ASSERT_EQ(0, read(f->fd, buf, 64));
	ASSERT_EQ(5000, lseek(f->fd, 0, SEEK_CUR));

	close(fd3);
	fd3 = open(path, O_WRONLY | O_CLOEXEC);
	ASSERT_GE(fd3, 0);
	ASSERT_EQ(-1, read(fd3, buf, 64));
	ASSERT_EQ(EBADF, errno);
	close(fd3);
	close(fd2);
	close(dupfd);
}

/*
 * Changes of the file
 */

TEST_F(small_read, two_descriptors)
{
	struct file *f = &self->f;
	unsigned int rnd = 1;
	int fd2, i;

	fd2 = open(f->path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd2, 0);
	file_write(_metadata, f, 0, 4 * psz, 1);
	for (i = 0; i < 1000; i++) {
		off_t pos = next_random(&rnd) % (4 * psz);
		ssize_t len = 1 + next_random(&rnd) % 300;

		file_write(_metadata, f, pos, len, i + 2);
		check_fn(_metadata, f, fd2, by_read, len, pos);
		check_fn(_metadata, f, fd2, by_pread, len + 20, max(pos - 10, 0));
	}
	/* Neither a new name nor none makes a difference. */
	unlink(f->path);
	file_write(_metadata, f, 100, 100, 7);
	check_fn(_metadata, f, fd2, by_pread, 300, 0);
	close(fd2);
}

TEST_F_TIMEOUT(small_read, truncate, LONG_TIMEOUT)
{
	const ssize_t downs[] = {
		0, 1, 63, 64, 100, 255, 256, psz - 1, psz, psz + 1, 2 * psz - 300,
		5 * psz + 17, 16 * psz, 16 * psz + 1, 31 * psz - 1,
	};
	struct file *f = &self->f;
	ssize_t i;

	for (i = 0; i < ARRAY_SIZE(downs); i++) {
		file_write(_metadata, f, 0, 32 * psz, i + 1);
		check_around(_metadata, f, downs[i]);
		file_truncate(_metadata, f, downs[i]);
		check_around(_metadata, f, downs[i]);
		check_range(_metadata, f, downs[i], downs[i] + psz, 64);
		/* Whatever was there is zero when it comes back. */
		file_truncate(_metadata, f, downs[i] + 30);
		check_around(_metadata, f, downs[i]);
		check_around(_metadata, f, f->size);
		file_truncate(_metadata, f, 33 * psz + 5);
		check_around(_metadata, f, downs[i]);
		check_around(_metadata, f, f->size);
		check_all(_metadata, f, 512);
		/* The same with a write instead of an extending truncate */
		file_truncate(_metadata, f, downs[i]);
		file_write(_metadata, f, downs[i] + 200, 10, i + 100);
		check_around(_metadata, f, downs[i]);
		check_around(_metadata, f, f->size);
	}

	/* Through another descriptor */
	file_write(_metadata, f, 0, 2 * psz, 50);
	close(open(f->path, O_RDWR | O_TRUNC | O_CLOEXEC));
	file_truncate(_metadata, f, 0);
	check_range(_metadata, f, 0, psz, 64);
}

/* What is written to the last page beyond the end is not for readers. */
TEST_F(small_read, mmap_beyond_eof)
{
	struct file *f = &self->f;
	ssize_t size;
	unsigned char *map;

	file_write(_metadata, f, 0, psz + 1000, 1);
	map = mmap(NULL, 2 * psz, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	for (size = psz + 900; size > psz; size -= 90) {
		file_truncate(_metadata, f, size);
		ASSERT_TRUE(all_are(map + size, 2 * psz - size, 0));
		memset(map + size, 0x77, 2 * psz - size);
		check_around(_metadata, f, size);
		/* A truncate which cuts these bytes off clears them. */
		memset(map + size, 0x77, 2 * psz - size);
	}
	munmap(map, 2 * psz);
	file_truncate(_metadata, f, psz);
	file_truncate(_metadata, f, 2 * psz);
	check_around(_metadata, f, psz);
	check_around(_metadata, f, 2 * psz);
}

/* Returns an errno if the file system cannot do it. */
static int try_fallocate(struct __test_metadata *_metadata, struct file *f,
			 int mode, ssize_t unit)
{
	const ssize_t sizes[] = { unit, 2 * unit, 5 * unit };
	const ssize_t starts[] = { 0, unit, 7 * unit };
	ssize_t i, j, len;
	int err;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (j = 0; j < ARRAY_SIZE(starts); j++) {
			off_t pos = starts[j];

			len = sizes[i];
			file_truncate(_metadata, f, 0);
			file_write(_metadata, f, 0, 16 * max(unit, psz) + 100, 1 + j);
			check_around(_metadata, f, pos);
			err = file_fallocate(_metadata, f, mode, pos, len);
			if (err)
				return err;
			check_around(_metadata, f, pos);
			check_around(_metadata, f, pos + len);
			check_around(_metadata, f, f->size);
			file_drop(_metadata, f);
			check_all(_metadata, f, 1000);
		}
	}
	return 0;
}

TEST_F_TIMEOUT(small_read, punch_hole, LONG_TIMEOUT)
{
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	int err;

	err = try_fallocate(_metadata, &self->f, mode, psz);
	if (err)
		SKIP(return, "FALLOC_FL_PUNCH_HOLE: %s", strerror(err));
	/* Parts of pages */
	ASSERT_EQ(0, try_fallocate(_metadata, &self->f, mode, 100));
	ASSERT_EQ(0, try_fallocate(_metadata, &self->f, mode, psz - 1));
	ASSERT_EQ(0, try_fallocate(_metadata, &self->f, mode, psz + 1));
}

TEST_F_TIMEOUT(small_read, zero_range, LONG_TIMEOUT)
{
	const int mode = FALLOC_FL_ZERO_RANGE;
	int err;

	err = try_fallocate(_metadata, &self->f, mode, psz);
	if (err)
		SKIP(return, "FALLOC_FL_ZERO_RANGE: %s", strerror(err));
	ASSERT_EQ(0, try_fallocate(_metadata, &self->f, mode, 100));
	ASSERT_EQ(0, try_fallocate(_metadata, &self->f, mode, psz + 1));
}

/* Those two only work on whole blocks. */
static ssize_t block_size(struct __test_metadata *_metadata, const struct file *f)
{
	struct stat st;

	ASSERT_EQ(0, fstat(f->fd, &st));
	return max(psz, st.st_blksize <= 64 * KIB ? st.st_blksize : 0);
}

TEST_F_TIMEOUT(small_read, collapse_range, LONG_TIMEOUT)
{
	ssize_t unit = block_size(_metadata, &self->f);
	int err;

	err = try_fallocate(_metadata, &self->f, FALLOC_FL_COLLAPSE_RANGE, unit);
	if (err)
		SKIP(return, "FALLOC_FL_COLLAPSE_RANGE: %s", strerror(err));
}

TEST_F_TIMEOUT(small_read, insert_range, LONG_TIMEOUT)
{
	ssize_t unit = block_size(_metadata, &self->f);
	int err;

	err = try_fallocate(_metadata, &self->f, FALLOC_FL_INSERT_RANGE, unit);
	if (err)
		SKIP(return, "FALLOC_FL_INSERT_RANGE: %s", strerror(err));
}

static void random_change(struct __test_metadata *_metadata, struct file *f,
			  unsigned int *rnd, ssize_t limit)
{
	off_t pos = next_random(rnd) % limit;
	ssize_t len = 1 + next_random(rnd) % (3 * psz);
	unsigned char *map;

	switch (next_random(rnd) % 8) {
	case 0:
		file_truncate(_metadata, f, pos);
		break;
	case 1:
		file_fallocate(_metadata, f,
			       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, pos, len);
		break;
	case 2:
		file_fallocate(_metadata, f, FALLOC_FL_ZERO_RANGE, pos, len);
		break;
	case 3:
		file_drop(_metadata, f);
		break;
	case 4:
		if (pos >= f->size)
			break;
		map = mmap(NULL, MAX_FILE, PROT_READ | PROT_WRITE, MAP_SHARED,
			   f->fd, 0);
		ASSERT_NE(MAP_FAILED, map);
		len = min(len, f->size - pos);
		fill(f->data + pos, len, next_random(rnd), pos);
		memcpy(map + pos, f->data + pos, len);
		munmap(map, MAX_FILE);
		break;
	default:
		file_write(_metadata, f, pos, len, next_random(rnd));
		break;
	}
}

TEST_F_TIMEOUT(small_read, random_changes, LONG_TIMEOUT)
{
	const ssize_t limit = 40 * psz;
	struct file *f = &self->f;
	unsigned int rnd = 42;
	int i, j;

	file_write(_metadata, f, 0, limit, 1);
	for (i = 0; i < 600; i++) {
		random_change(_metadata, f, &rnd, limit);
		for (j = 0; j < 20; j++) {
			ssize_t len = 1 + next_random(&rnd) % 1030;

			check_way(_metadata, f, &ways[j % ARRAY_SIZE(ways)], len,
				  next_random(&rnd) % (limit + psz));
		}
		check_read(_metadata, f, 256, max(f->size - 128, 0));
	}
	check_all(_metadata, f, 700);
}

/*
 * Large folios
 */

static void write_large(struct __test_metadata *_metadata, struct file *f,
			ssize_t size, unsigned int seed)
{
	off_t pos;

	for (pos = 0; pos < size; pos += MIB)
		file_write(_metadata, f, pos, MIB, seed);
}

TEST_F_TIMEOUT(small_read, large_folios, LONG_TIMEOUT)
{
	const ssize_t pieces[] = { 64, 321, 768, 1021 };
	struct file *f = &self->f;
	ssize_t i;
	off_t pos;
	int drop;

	write_large(_metadata, f, 4 * MIB, 1);
	for (drop = 0; drop < 2; drop++) {
		for (i = 0; i < ARRAY_SIZE(pieces); i++)
			check_range(_metadata, f, 1 + i * MIB, (i + 1) * MIB,
				    pieces[i]);
		/* Every alignment around where folios may begin */
		for (pos = 2 * MIB - 300; pos < 2 * MIB + 300; pos++) {
			check_read(_metadata, f, 64, pos);
			check_read(_metadata, f, 257, pos);
		}
		for (pos = MIB - psz / 2; pos < MIB + psz / 2; pos++)
			check_read(_metadata, f, 64, pos);
		/* Again, with the folios which readahead makes */
		file_drop(_metadata, f);
	}
}

/*
 * A folio which is split has the same data in more folios, and their offsets
 * count from another page.
 */
TEST_F_TIMEOUT(small_read, split_folios, LONG_TIMEOUT)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct file *f = &self->f;
	off_t pos;

	write_large(_metadata, f, 4 * MIB, 1);
	check_range(_metadata, f, 0, 4 * MIB, 4000);

	file_fallocate(_metadata, f, punch, MIB + psz, psz);
	for (pos = MIB - 2 * psz; pos <= MIB + 4 * psz; pos += psz)
		check_around(_metadata, f, pos);
	file_fallocate(_metadata, f, punch, 3 * MIB - 100, psz);
	for (pos = 3 * MIB - 2 * psz; pos <= 3 * MIB + 4 * psz; pos += psz)
		check_around(_metadata, f, pos);
	check_range(_metadata, f, 0, 4 * MIB, 4000);

	file_truncate(_metadata, f, 3 * MIB + 300 * KIB + 123);
	for (pos = f->size - 3 * psz; pos <= f->size + psz; pos += psz)
		check_around(_metadata, f, pos);
	file_truncate(_metadata, f, MIB + 100);
	check_around(_metadata, f, f->size);
	file_truncate(_metadata, f, 4 * MIB);
	check_around(_metadata, f, MIB + 100);
	check_range(_metadata, f, 0, 4 * MIB, 1000);
}

TEST_F_TIMEOUT(small_read, collapse_folios, LONG_TIMEOUT)
{
	struct file *f = &self->f;
	off_t pos;
	void *map;
	int ret, i;

	/* Small folios first: page by page, and backwards */
	file_truncate(_metadata, f, 4 * MIB);
	for (pos = 4 * MIB - psz; pos >= 0; pos -= psz)
		file_write(_metadata, f, pos, psz, 1);
	check_range(_metadata, f, 0, 4 * MIB, 3000);

	map = mmap(NULL, 4 * MIB, PROT_READ, MAP_SHARED, f->fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	ret = madvise(map, 4 * MIB, MADV_COLLAPSE);
	if (ret) {
		/* Busy pages may be left for later. */
		for (i = 0; ret && errno == EAGAIN && i < 10; i++)
			ret = madvise(map, 4 * MIB, MADV_COLLAPSE);
		if (ret)
			SKIP(return, "MADV_COLLAPSE: %s", strerror(errno));
	}
	for (pos = 2 * MIB - 2 * psz; pos <= 2 * MIB + 2 * psz; pos += psz)
		check_around(_metadata, f, pos);
	check_range(_metadata, f, 0, 4 * MIB, 1000);
	file_write(_metadata, f, 2 * MIB - 50, 100, 2);
	check_around(_metadata, f, 2 * MIB);
	munmap(map, 4 * MIB);
}

/*
 * Buffers which fault
 */

struct window {
	unsigned char *map;
	/* The first byte which cannot be written to */
	unsigned char *end;
};

/*
 * Some pages, and one behind them which cannot be accessed.  It stays mapped
 * lest something else is mapped there.
 */
static struct window make_window(struct __test_metadata *_metadata)
{
	ssize_t len = 4 * psz;
	struct window w;

	w.map = mmap(NULL, len + psz, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, w.map);
	w.end = w.map + len;
	ASSERT_EQ(0, mprotect(w.end, psz, PROT_NONE));
	memset(w.map, CANARY, len);
	return w;
}

static void check_partial(struct __test_metadata *_metadata, struct file *f,
			  const struct window *w, const struct way *way,
			  ssize_t len, ssize_t room, off_t pos)
{
	unsigned char *buf = w->end - room;
	ssize_t ret, want = expected(f, len, pos);
	unsigned char rest[4097];

	memset(buf - GUARD, CANARY, room + GUARD);
	errno = 0;
	ret = way->fn(f->fd, buf, len, pos);
	if (ret < 0) {
		ASSERT_EQ(EFAULT, errno);
		ASSERT_LE(room, FAULT_SLACK);
		ret = 0;
	} else {
		ASSERT_LE(ret, min(room, want));
		ASSERT_GE(ret, min(room, want) - FAULT_SLACK);
		/* Nothing at all is not the end of the file. */
		ASSERT_GT(ret, 0);
	}
	ASSERT_EQ(-1, mismatch(buf, f->data + pos, ret)) {
		TH_LOG("%s of %zd bytes at %lld to %zd bytes: byte %zd", way->name,
		       len, (long long)pos, room,
		       mismatch(buf, f->data + pos, ret));
	}
	ASSERT_TRUE(all_are(buf - GUARD, GUARD, CANARY));
	if (!way->moves)
		return;

	/* The position is where the rest is. */
	ASSERT_EQ(pos + ret, lseek(f->fd, 0, SEEK_CUR));
	ASSERT_EQ(want - ret, read(f->fd, rest, want - ret));
	ASSERT_EQ(-1, mismatch(rest, f->data + pos + ret, want - ret));
}

TEST_F_TIMEOUT(small_read, fault_partial, LONG_TIMEOUT)
{
	const ssize_t rooms[] = { 0, 1, 7, 8, 9, 31, 63, 64, 65, 100, 255, 300, 767 };
	struct window win = make_window(_metadata);
	struct file *f = &self->f;
	ssize_t s, r, w, p;

	file_write(_metadata, f, 0, 4 * psz + 50, 1);
	const off_t poses[] = { 0, 3, psz - 100, psz - 8, 2 * psz, 4 * psz - 10 };

	for (s = 0; s < ARRAY_SIZE(small_sizes); s++)
		for (r = 0; r < ARRAY_SIZE(rooms); r++)
			for (p = 0; p < ARRAY_SIZE(poses); p++)
				for (w = 0; w < ARRAY_SIZE(ways); w++)
					if (rooms[r] < expected(f, small_sizes[s],
								poses[p]))
						check_partial(_metadata, f, &win,
							      &ways[w],
							      small_sizes[s],
							      rooms[r], poses[p]);
	/* Only bytes which are there need room. */
	check_partial(_metadata, f, &win, &ways[0], 1024, 60, 4 * psz - 10);
	check_partial(_metadata, f, &win, &ways[1], 256, 50, 4 * psz);
}

TEST_F(small_read, fault_bad_buffer)
{
	struct window win = make_window(_metadata);
	struct file *f = &self->f;
	unsigned char *read_only;
	ssize_t s, w;

	file_write(_metadata, f, 0, 3 * psz, 1);
	read_only = mmap(NULL, 3 * psz, PROT_READ, MAP_PRIVATE, f->fd, 0);
	ASSERT_NE(MAP_FAILED, read_only);
	for (s = 0; s < ARRAY_SIZE(small_sizes); s++) {
		for (w = 0; w < ARRAY_SIZE(ways); w++) {
			const struct way *way = &ways[w];
			ssize_t len = min(small_sizes[s], psz);

			ASSERT_EQ(-1, way->fn(f->fd, win.end, len, psz - 40));
			ASSERT_EQ(EFAULT, errno);
			ASSERT_EQ(-1, way->fn(f->fd, read_only + 8, len, psz - 40));
			ASSERT_EQ(EFAULT, errno);
			/* An error does not move, and the end comes first. */
			if (way->moves)
				ASSERT_EQ(psz - 40, lseek(f->fd, 0, SEEK_CUR));
			ASSERT_EQ(0, way->fn(f->fd, win.end, len, 3 * psz));
		}
	}
	ASSERT_EQ(-1, mismatch(read_only, f->data, 3 * psz));
	ASSERT_EQ(-1, by_pread(f->fd, (void *)-4096L, 64, 0));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(0, munmap(win.end, psz));
	ASSERT_EQ(-1, by_pread(f->fd, win.end, 64, 0));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(8, by_pread(f->fd, win.end - 8, 8, 0));
}

TEST_F(small_read, fault_iovec)
{
	struct window win = make_window(_metadata);
	struct file *f = &self->f;
	unsigned char good[64], *buf;
	struct iovec iov[3] = {
		{ .iov_base = good, .iov_len = sizeof(good) },
		{ .iov_base = win.end, .iov_len = 32 },
		{ .iov_base = win.map, .iov_len = 64 },
	};
	off_t pos;

	file_write(_metadata, f, 0, 2 * psz, 1);
	for (pos = psz - 200; pos < psz + 10; pos++) {
		memset(win.map, CANARY, 64);
		ASSERT_EQ(pos, lseek(f->fd, pos, SEEK_SET));
		ASSERT_EQ(64, readv(f->fd, iov, 3));
		ASSERT_EQ(-1, mismatch(good, f->data + pos, 64));
		ASSERT_TRUE(all_are(win.map, 64, CANARY));
		ASSERT_EQ(pos + 64, lseek(f->fd, 0, SEEK_CUR));
		ASSERT_EQ(-1, preadv(f->fd, iov + 1, 2, pos));
		ASSERT_EQ(EFAULT, errno);
		ASSERT_TRUE(all_are(win.map, 64, CANARY));
	}

	/* Buffers in the wrong order, and one which is used twice */
	buf = guarded_buf(_metadata, 150);
	iov[0] = (struct iovec){ .iov_base = buf + 100, .iov_len = 50 };
	iov[1] = (struct iovec){ .iov_base = buf, .iov_len = 100 };
	ASSERT_EQ(150, preadv(f->fd, iov, 2, psz - 70));
	ASSERT_EQ(-1, mismatch(buf + 100, f->data + psz - 70, 50));
	ASSERT_EQ(-1, mismatch(buf, f->data + psz - 20, 100));
	iov[1] = iov[0];
	ASSERT_EQ(100, preadv(f->fd, iov, 2, psz - 70));
	ASSERT_EQ(-1, mismatch(buf + 100, f->data + psz - 20, 50));
}

/* A page which somebody provides only while the read is waiting for it */
struct provider {
	int uffd;
	int file_fd;
	unsigned char *page;
	unsigned char seen[64];
	ssize_t seen_ret;
	int faults;
	int err;
};

static void *provide(void *arg)
{
	struct provider *p = arg;
	struct pollfd pfd = { .fd = p->uffd, .events = POLLIN };
	struct uffdio_copy copy = { .len = psz };
	struct uffd_msg msg;

	if (poll(&pfd, 1, WAIT_MS) != 1 ||
	    read(p->uffd, &msg, sizeof(msg)) != sizeof(msg) ||
	    msg.event != UFFD_EVENT_PAGEFAULT) {
		p->err = EINVAL;
		return NULL;
	}
	p->faults++;
	/* Whatever the reader holds must not stop us from doing these. */
	p->seen_ret = pread(p->file_fd, p->seen, sizeof(p->seen), 0);
	posix_fadvise(p->file_fd, 0, 0, POSIX_FADV_DONTNEED);
	copy.dst = msg.arg.pagefault.address & ~(psz - 1);
	copy.src = (unsigned long)p->page;
	if (ioctl(p->uffd, UFFDIO_COPY, &copy))
		p->err = errno;
	return NULL;
}

static void uffd_read(struct __test_metadata *_metadata, struct file *f, int uffd,
		      ssize_t before, ssize_t len, off_t pos)
{
	struct uffdio_register reg = {
		.range.len = psz,
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct provider p = { .uffd = uffd, .file_fd = f->fd };
	unsigned char *map, *buf;
	pthread_t thread;

	p.page = mmap(NULL, psz, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, p.page);
	memset(p.page, CANARY, psz);
	map = mmap(NULL, 2 * psz, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	/* A huge page would provide the missing one, too. */
	madvise(map, 2 * psz, MADV_NOHUGEPAGE);
	memset(map, CANARY, psz);
	reg.range.start = (unsigned long)map + psz;
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_REGISTER, &reg));
	ASSERT_EQ(0, pthread_create(&thread, NULL, provide, &p));

	buf = map + psz - before;
	ASSERT_EQ(len, pread(f->fd, buf, len, pos));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, p.err);
	ASSERT_EQ(1, p.faults);
	ASSERT_EQ((ssize_t)sizeof(p.seen), p.seen_ret);
	ASSERT_EQ(-1, mismatch(p.seen, f->data, sizeof(p.seen)));
	ASSERT_EQ(-1, mismatch(buf, f->data + pos, len));
	ASSERT_TRUE(all_are(map, psz - before, CANARY));
	ASSERT_TRUE(all_are(buf + len, psz - (len - before), CANARY));
	munmap(map, 2 * psz);
	munmap(p.page, psz);
}

TEST_F(small_read, fault_userfaultfd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct file *f = &self->f;
	int uffd;

	uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0)
		SKIP(return, "userfaultfd: %s", strerror(errno));
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_API, &api));
	file_write(_metadata, f, 0, 4 * psz, 1);

	uffd_read(_metadata, f, uffd, 0, 64, 10);
	uffd_read(_metadata, f, uffd, 0, 1, psz - 1);
	uffd_read(_metadata, f, uffd, 32, 64, 10);
	uffd_read(_metadata, f, uffd, 32, 64, psz - 32);
	uffd_read(_metadata, f, uffd, 100, 256, psz - 128);
	uffd_read(_metadata, f, uffd, 255, 256, 2 * psz);
	uffd_read(_metadata, f, uffd, 1, 768, psz + 5);
	uffd_read(_metadata, f, uffd, 1000, 2000, 3 * psz - 999);
	close(uffd);
}

/* The buffer is in the very page which is read. */
TEST_F(small_read, buffer_in_same_page)
{
	const ssize_t lens[] = { 1, 8, 64, 256, 700, 1024 };
	struct file *f = &self->f;
	unsigned char *map;
	ssize_t i;
	int prot = PROT_READ | PROT_WRITE;

	file_write(_metadata, f, 0, 2 * psz, 1);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		ssize_t len = lens[i];
		off_t to = psz / 2 + 3;

		/* Not mapped yet, so it is the copy which faults it in. */
		map = mmap(NULL, 2 * psz, prot, MAP_SHARED, f->fd, 0);
		ASSERT_NE(MAP_FAILED, map);
		ASSERT_EQ(len, pread(f->fd, map + to, len, 5 + i));
		memcpy(f->data + to, f->data + 5 + i, len);
		munmap(map, 2 * psz);
		check_all(_metadata, f, 512);

		/* To itself */
		map = mmap(NULL, 2 * psz, prot, MAP_SHARED, f->fd, 0);
		ASSERT_NE(MAP_FAILED, map);
		ASSERT_EQ(len, pread(f->fd, map + 100, len, 100));
		munmap(map, 2 * psz);
		check_all(_metadata, f, 512);

		/* To a private copy, which leaves the file alone */
		map = mmap(NULL, 2 * psz, prot, MAP_PRIVATE, f->fd, 0);
		ASSERT_NE(MAP_FAILED, map);
		ASSERT_EQ(len, pread(f->fd, map + psz + 9, len, psz + 77));
		ASSERT_EQ(-1, mismatch(map + psz + 9, f->data + psz + 77, len));
		munmap(map, 2 * psz);
		check_all(_metadata, f, 512);
	}
}

/*
 * Other ways to read
 */

TEST_F(small_read, nowait_cached)
{
	struct file *f = &self->f;
	ssize_t s, d;

	file_write(_metadata, f, 0, 4 * psz + 99, 1);
	if (by_nowait(f->fd, guarded_buf(_metadata, 64), 64, 0) < 0 &&
	    errno == EOPNOTSUPP)
		SKIP(return, "RWF_NOWAIT is not supported here");
	for (s = 0; s < ARRAY_SIZE(small_sizes); s++) {
		for (d = 0; d < ARRAY_SIZE(deltas); d++) {
			off_t pos = 2 * psz + deltas[d];
			unsigned char *buf = NULL;
			ssize_t ret = -1;
			int tries;

			/* It may get dropped just before, so try again. */
			for (tries = 0; tries < 100; tries++) {
				check_read(_metadata, f, small_sizes[s], pos);
				buf = guarded_buf(_metadata, small_sizes[s]);
				ret = by_nowait(f->fd, buf, small_sizes[s], pos);
				if (ret >= 0 || errno != EAGAIN)
					break;
			}
			check_result(_metadata, f, buf, small_sizes[s], pos,
				     expected(f, small_sizes[s], pos), ret);
		}
		check_fn(_metadata, f, f->fd, by_nowait, small_sizes[s], f->size);
	}
}

/* Without the data, it must say so, or return what there is and no more. */
TEST_F(small_read, nowait_uncached)
{
	struct file *f = &self->f;
	unsigned char *buf;
	ssize_t ret, len;
	int again = 0;

	file_write(_metadata, f, 0, 64 * psz, 1);
	if (by_nowait(f->fd, guarded_buf(_metadata, 64), 64, 0) < 0 &&
	    errno == EOPNOTSUPP)
		SKIP(return, "RWF_NOWAIT is not supported here");
	file_drop(_metadata, f);
	if (nr_cached(_metadata, f->fd, f->size) == 64)
		SKIP(return, "nothing can be dropped from the cache here");
	for (len = 1; len < 2000; len += 97) {
		off_t pos = 32 * psz - len / 2;

		file_drop(_metadata, f);
		buf = guarded_buf(_metadata, len);
		ret = by_nowait(f->fd, buf, len, pos);
		if (ret < 0) {
			ASSERT_EQ(EAGAIN, errno);
			again++;
			ret = -1;
		} else {
			/* A fast disk, or only the first of two pages */
			ASSERT_GT(ret, 0);
			ASSERT_TRUE(ret == len || ret == len / 2);
		}
		check_result(_metadata, f, buf, len, pos, ret, ret);
		check_read(_metadata, f, len, pos);
	}
	TH_LOG("EAGAIN from %d reads", again);
}

TEST_F(small_read, dontcache)
{
	struct file *f = &self->f;
	ssize_t s;
	off_t pos;

	file_write(_metadata, f, 0, 64 * psz + 10, 1);
	if (by_dontcache(f->fd, guarded_buf(_metadata, 64), 64, 0) < 0 &&
	    (errno == EOPNOTSUPP || errno == EINVAL))
		SKIP(return, "RWF_DONTCACHE is not supported here");
	for (s = 0; s < ARRAY_SIZE(small_sizes); s++) {
		ssize_t len = small_sizes[s];

		file_drop(_metadata, f);
		for (pos = psz - 300; pos < psz + 10; pos += 31) {
			check_fn(_metadata, f, f->fd, by_dontcache, len, pos);
			check_read(_metadata, f, len, pos);
			check_fn(_metadata, f, f->fd, by_dontcache, len, pos + 1);
		}
		/* Dirty data must not get lost. */
		file_write(_metadata, f, 3 * psz + 50, 100, s + 2);
		check_fn(_metadata, f, f->fd, by_dontcache, len, 3 * psz);
		check_fn(_metadata, f, f->fd, by_dontcache, len, f->size - 5);
	}
	file_drop(_metadata, f);
	check_all(_metadata, f, 768);
}

TEST_F_TIMEOUT(small_read, direct_io, LONG_TIMEOUT)
{
	struct file *f = &self->f;
	ssize_t unit = max(psz, 4096);
	unsigned char *buf;
	int fd, i;

	fd = open(f->path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		SKIP(return, "O_DIRECT: %s", strerror(errno));
	buf = aligned_alloc(unit, unit);
	ASSERT_NE(NULL, buf);
	file_write(_metadata, f, 0, 8 * unit + 200, 1);
	for (i = 0; i < 50; i++) {
		off_t pos = (i % 7) * unit;

		/* The page is cached, and then written to behind its back. */
		check_around(_metadata, f, pos + unit);
		fill(buf, unit, i + 2, pos);
		ASSERT_EQ(unit, pwrite(fd, buf, unit, pos));
		memcpy(f->data + pos, buf, unit);
		check_range(_metadata, f, pos - 100, pos + unit + 100, 256);

		/* Dirty pages are visible to direct reads. */
		file_write(_metadata, f, pos + 77, 60, i + 200);
		memset(buf, 0, unit);
		ASSERT_EQ(unit, pread(fd, buf, unit, pos));
		ASSERT_EQ(-1, mismatch(buf, f->data + pos, unit));
		check_read(_metadata, f, 64, pos + 70);
	}
	/* Short at the end */
	ASSERT_EQ(200, pread(fd, buf, unit, 8 * unit));
	ASSERT_EQ(-1, mismatch(buf, f->data + 8 * unit, 200));
	check_around(_metadata, f, f->size);
	free(buf);
	close(fd);
}

static ssize_t ring_read(struct __test_metadata *_metadata, struct ring *r, int op,
			 int fd, void *buf, ssize_t len, off_t pos)
{
	return ring_wait(_metadata, r, (struct io_uring_sqe){
		.opcode = op, .fd = fd, .addr = (unsigned long)buf, .len = len, .off = pos });
}

TEST_F_TIMEOUT(small_read, io_uring, LONG_TIMEOUT)
{
	struct file *f = &self->f;
	struct window win = make_window(_metadata);
	struct ring ring;
	ssize_t s, d;
	int err, drop, op;

	/* A registered buffer is not addressed as user memory. */
	err = ring_setup(_metadata, &ring, win.map, win.end - win.map);
	if (err)
		SKIP(return, "io_uring_setup: %s", strerror(err));

	file_write(_metadata, f, 0, 2 * psz + 300, 1);
	for (drop = 0; drop < 2; drop++) {
		for (s = 0; s < ARRAY_SIZE(small_sizes); s++) {
			ssize_t len = min(small_sizes[s], 2 * psz);

			for (d = 0; d < ARRAY_SIZE(deltas); d++) {
				off_t pos = psz + max(deltas[d], -psz);
				unsigned char *buf;

				op = d & 1 ? IORING_OP_READ : IORING_OP_READ_FIXED;
				buf = win.map + GUARD + d;
				memset(win.map, CANARY, len + 3 * GUARD);
				check_result(_metadata, f, buf, len, pos,
					     expected(f, len, pos),
					     ring_read(_metadata, &ring, op, f->fd,
						       buf, len, pos));
			}
		}
		file_drop(_metadata, f);
	}

	/* The position of the file */
	ASSERT_EQ(100, lseek(f->fd, 100, SEEK_SET));
	ASSERT_EQ(64, ring_read(_metadata, &ring, IORING_OP_READ, f->fd, win.map,
				64, -1));
	ASSERT_EQ(-1, mismatch(win.map, f->data + 100, 64));
	ASSERT_EQ(164, lseek(f->fd, 0, SEEK_CUR));

	ASSERT_EQ(-1, ring_read(_metadata, &ring, IORING_OP_READ, f->fd, win.end,
				64, 0));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(0, ring_read(_metadata, &ring, IORING_OP_READ, f->fd, win.map,
			       64, f->size));
	close(ring.fd);
}

TEST_F(small_read, splice)
{
	struct file *f = &self->f;
	ssize_t s, d;
	int p[2];

	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	file_write(_metadata, f, 0, 3 * psz + 40, 1);
	for (s = 0; s < ARRAY_SIZE(small_sizes); s++) {
		ssize_t len = small_sizes[s];

		for (d = 0; d < ARRAY_SIZE(deltas); d++) {
			loff_t off = 2 * psz + deltas[d];
			off_t pos = off;
			ssize_t want = expected(f, len, pos), done = 0;
			unsigned char *buf = guarded_buf(_metadata, len);

			while (done < want) {
				ssize_t ret = splice(f->fd, &off, p[1], NULL,
						     want - done, 0);

				ASSERT_GT(ret, 0);
				ASSERT_EQ(ret, read(p[0], buf + done, ret));
				done += ret;
				ASSERT_EQ(pos + done, off);
			}
			check_result(_metadata, f, buf, len, pos, want, done);
			check_read(_metadata, f, len, pos);
		}
	}
	close(p[0]);
	close(p[1]);
}

TEST_F_TIMEOUT(small_read, sendfile_and_copy, LONG_TIMEOUT)
{
	struct file *f = &self->f, *out = &self->other;
	ssize_t s, d, ret;
	bool copies = true;

	file_open(_metadata, out, self->fs, "out");
	file_write(_metadata, f, 0, 3 * psz + 40, 1);
	for (s = 0; s < ARRAY_SIZE(small_sizes); s++) {
		ssize_t len = small_sizes[s];

		for (d = 0; d < ARRAY_SIZE(deltas); d++) {
			off_t pos = 2 * psz + deltas[d];
			ssize_t want = expected(f, len, pos);
			loff_t from = pos, to = 10;
			unsigned char *buf;

			ASSERT_EQ(0, ftruncate(out->fd, 0));
			ASSERT_EQ(0, lseek(out->fd, 0, SEEK_SET));
			ASSERT_EQ(want, sendfile(out->fd, f->fd, &from, len));
			ASSERT_EQ(pos + want, from);
			buf = guarded_buf(_metadata, len);
			check_result(_metadata, f, buf, len, pos, want,
				     pread(out->fd, buf, len, 0));

			if (!copies)
				continue;
			from = pos;
			ret = copy_file_range(f->fd, &from, out->fd, &to, len, 0);
			if (ret < 0 && (errno == EOPNOTSUPP || errno == EXDEV)) {
				copies = false;
				continue;
			}
			ASSERT_EQ(want, ret);
			ASSERT_EQ(10 + want, to);
			buf = guarded_buf(_metadata, len);
			check_result(_metadata, f, buf, len, pos, want,
				     pread(out->fd, buf, len, 10));
		}
	}
}

/* The kernel itself reads the beginning of a script. */
TEST_F(small_read, exec_script)
{
	static const char script[] = "#!/bin/sh\nexit 42\n";
	const ssize_t lens[] = { sizeof(script) - 1, 64, 255, 256, 257, 1000, psz };
	struct file *out = &self->other;
	unsigned char *text;
	ssize_t i;

	text = malloc(psz);
	ASSERT_NE(NULL, text);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		int status;
		pid_t pid;

		memset(text, '#', psz);
		memcpy(text, script, sizeof(script) - 1);
		file_open(_metadata, out, self->fs, "script");
		ASSERT_EQ(lens[i], write(out->fd, text, lens[i]));
		close(out->fd);
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			execl(out->path, out->path, NULL);
			_exit(errno == EACCES ? 77 : 99);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFEXITED(status));
		ASSERT_EQ(0, unlink(out->path));
		if (WEXITSTATUS(status) == 77)
			SKIP(return, "nothing may be executed here");
		ASSERT_EQ(42, WEXITSTATUS(status));
		munmap(out->data, MAX_FILE);
	}
	free(text);
}

/*
 * Readahead and the cache
 */

static void stream(struct __test_metadata *_metadata, struct file *f, int advice,
		   ssize_t piece)
{
	unsigned char *buf;
	ssize_t ret;
	off_t pos = 0;

	int fd = open(f->path, O_RDONLY | O_CLOEXEC);

	ASSERT_GE(fd, 0);
	file_drop(_metadata, f);
	ASSERT_EQ(0, posix_fadvise(fd, 0, 0, advice));
	do {
		buf = guarded_buf(_metadata, piece);
		ret = read(fd, buf, piece);
		check_result(_metadata, f, buf, piece, pos,
			     expected(f, piece, pos), ret);
		pos += ret;
	} while (ret);
	ASSERT_EQ(f->size, pos);
	close(fd);
}

TEST_F_TIMEOUT(small_read, streaming, LONG_TIMEOUT)
{
	struct file *f = &self->f;
	off_t pos;

	file_write(_metadata, f, 0, MIB + 321, 1);
	stream(_metadata, f, POSIX_FADV_NORMAL, 64);
	stream(_metadata, f, POSIX_FADV_SEQUENTIAL, 256);
	stream(_metadata, f, POSIX_FADV_RANDOM, 500);

	/* Backwards, and with a stride */
	file_drop(_metadata, f);
	for (pos = f->size - 64; pos >= 0; pos -= 100)
		check_read(_metadata, f, 64, pos);
	file_drop(_metadata, f);
	for (pos = 10; pos < f->size; pos += psz + 64)
		check_read(_metadata, f, 64, pos);
}

TEST_F(small_read, dropped_cache)
{
	struct file *f = &self->f;
	unsigned int rnd = 7;
	int i;

	file_write(_metadata, f, 0, 32 * psz, 1);
	for (i = 0; i < 200; i++) {
		off_t pos = next_random(&rnd) % f->size;

		if (i % 4 == 0)
			file_drop(_metadata, f);
		check_read(_metadata, f, 64, pos);
		check_read(_metadata, f, 300, pos);
		/* Only a part of the pages is dropped. */
		posix_fadvise(f->fd, pos & -psz, 2 * psz, POSIX_FADV_DONTNEED);
		check_read(_metadata, f, 700, max(pos - 350, 0));
	}
}

/*
 * Access times
 */

static const struct timespec past = { .tv_sec = 1000000000 };
static const struct timespec less_past = { .tv_sec = 1100000000 };

static struct timespec get_atime(struct __test_metadata *_metadata, int fd)
{
	struct stat st;

	ASSERT_EQ(0, fstat(fd, &st));
	return st.st_atim;
}

/* Whether a read changes an access time of @atime */
static bool touches(struct __test_metadata *_metadata, int fd, struct timespec atime,
		    ssize_t len, off_t pos)
{
	const struct timespec times[2] = { atime, less_past };
	struct timespec now;
	unsigned char *buf = guarded_buf(_metadata, len);

	ASSERT_EQ(0, futimens(fd, times));
	now = get_atime(_metadata, fd);
	ASSERT_EQ(atime.tv_sec, now.tv_sec);
	ASSERT_GE(pread(fd, buf, len, pos), 0);
	now = get_atime(_metadata, fd);
	return now.tv_sec != atime.tv_sec;
}

/*
 * With relatime, the time is updated if it is older than the last change, here
 * that of the inode by futimens(), or a day.  A time which is neither, which is
 * one in the near future, stays.
 */
static void check_atime(struct __test_metadata *_metadata, struct file *f)
{
	struct timespec future;
	struct statvfs fs;
	bool noatime, relatime;
	ssize_t i;
	int fd;

	fd = open(f->path, O_RDWR | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, fstatvfs(fd, &fs));
	noatime = fs.f_flag & ST_NOATIME;
	relatime = fs.f_flag & ST_RELATIME;
	clock_gettime(CLOCK_REALTIME, &future);
	future.tv_sec += 3600;

	for (i = 0; i < ARRAY_SIZE(small_sizes); i++) {
		ssize_t len = small_sizes[i];

		ASSERT_EQ(!noatime, touches(_metadata, fd, past, len, 0));
		ASSERT_EQ(!noatime, touches(_metadata, fd, past, len, psz - 1));
		/* At the end, too */
		ASSERT_EQ(!noatime, touches(_metadata, fd, past, len, f->size - 1));
		ASSERT_EQ(!noatime, touches(_metadata, fd, past, len, f->size));
		ASSERT_EQ(!noatime && !relatime,
			  touches(_metadata, fd, future, len, 20));
	}

	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_NOATIME));
	for (i = 0; i < ARRAY_SIZE(small_sizes); i++)
		ASSERT_FALSE(touches(_metadata, fd, past, small_sizes[i], 20));
	close(fd);
}

TEST_F(small_read, atime)
{
	static const unsigned long modes[] = {
		MS_RELATIME, MS_STRICTATIME, MS_NOATIME,
	};
	struct file *f = &self->f;
	struct statfs st;
	ssize_t i;

	ASSERT_EQ(0, fstatfs(f->fd, &st));
	if (st.f_type == OVERLAYFS_SUPER_MAGIC)
		SKIP(return, "the access time is up to the lower mount");
	file_write(_metadata, f, 0, 2 * psz, 1);
	check_atime(_metadata, f);
	if (!self->fs->mounted)
		return;

	/* Only for this process */
	ASSERT_EQ(0, unshare(CLONE_NEWNS));
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		ASSERT_EQ(0, mount(NULL, self->fs->dir, NULL,
				   MS_REMOUNT | MS_BIND | modes[i], NULL)) {
			TH_LOG("remount of %s: %s", self->fs->dir, strerror(errno));
		}
		check_atime(_metadata, f);
	}
}

/*
 * Somebody else writes
 */

TEST_F_TIMEOUT(small_read, mmap_writer, LONG_TIMEOUT)
{
	struct file *f = &self->f;
	unsigned char *map;
	unsigned int rnd = 3;
	__u64 i, got;
	off_t pos;

	file_write(_metadata, f, 0, 16 * psz, 1);
	map = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	for (i = 1; i <= 3000; i++) {
		pos = next_random(&rnd) % (f->size / 8) * 8;
		__atomic_store_n((__u64 *)(map + pos), i, __ATOMIC_RELAXED);
		memcpy(f->data + pos, &i, 8);
		ASSERT_EQ(8, pread(f->fd, &got, 8, pos));
		ASSERT_EQ(i, got);
		check_read(_metadata, f, 100, max(pos - 50, 0));
		/* Also while the page is clean and not mapped writable */
		if (i % 100 == 0)
			ASSERT_EQ(0, msync(map, f->size, MS_SYNC));
		if (i % 150 == 0)
			file_drop(_metadata, f);
	}
	munmap(map, f->size);
	check_all(_metadata, f, 600);
}

#define RECORD			64
#define NR_RECORDS		4000

struct appender {
	int fd;
	int err;
};

static void *append(void *arg)
{
	__u64 record[RECORD / 8];
	struct appender *a = arg;
	int i, j;

	for (i = 0; i < NR_RECORDS; i++) {
		for (j = 0; j < RECORD / 8; j++)
			record[j] = word_at(i * RECORD + j * 8);
		if (write(a->fd, record, RECORD) != RECORD)
			a->err = errno ?: EIO;
	}
	return NULL;
}

/*
 * The size only grows when the data are there.  So whatever a reader gets is
 * complete, even if it got there before the writer did.
 */
TEST_F_TIMEOUT(small_read, append_writer, LONG_TIMEOUT)
{
	const off_t total = (off_t)NR_RECORDS * RECORD;
	struct file *f = &self->f;
	struct appender a = { .err = 0 };
	__u64 words[4 * RECORD / 8];
	pthread_t thread;
	ssize_t i, ret, ask = RECORD;
	off_t pos = 0;

	a.fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	ASSERT_GE(a.fd, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, append, &a));
	while (pos < total) {
		struct stat st;

		memset(words, 0, sizeof(words));
		ret = pread(f->fd, words, ask, pos);
		ASSERT_GE(ret, 0);
		ASSERT_EQ(0, ret % RECORD);
		ASSERT_EQ(0, fstat(f->fd, &st));
		ASSERT_LE(pos + ret, st.st_size);
		for (i = 0; i < ret / 8; i++) {
			ASSERT_EQ(word_at(pos + i * 8), words[i]) {
				TH_LOG("wrong word at %lld",
				       (long long)pos + i * 8);
			}
		}
		pos += ret;
		ask = ask % (ssize_t)sizeof(words) + RECORD;
		if (!ret) {
			ASSERT_EQ(0, __atomic_load_n(&a.err, __ATOMIC_RELAXED));
			sched_yield();
		}
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, a.err);
	ASSERT_EQ(0, pread(f->fd, words, RECORD, total));
	close(a.fd);
}

struct sharer {
	int fd;
	off_t limit;
	unsigned int *claims;
	ssize_t bytes;
	const char *wrong;
};

static void *claim(void *arg)
{
	__u64 words[RECORD / 8];
	struct sharer *s = arg;
	ssize_t ret;
	__u64 pos;
	int i;

	while ((ret = read(s->fd, words, RECORD)) > 0) {
		pos = words[0] ^ word_at(0);
		if (ret != RECORD || pos % RECORD || pos >= (__u64)s->limit) {
			s->wrong = "a record";
			break;
		}
		for (i = 0; i < RECORD / 8; i++)
			if (words[i] != word_at(pos + i * 8))
				s->wrong = "a word of a record";
		__atomic_fetch_add(&s->claims[pos / RECORD], 1, __ATOMIC_RELAXED);
		s->bytes += ret;
	}
	if (ret < 0)
		s->wrong = "an error";
	return NULL;
}

/* With one position for all, each record goes to exactly one of them. */
TEST_F_TIMEOUT(small_read, shared_position, LONG_TIMEOUT)
{
	struct appender a = { .fd = self->f.fd };
	struct sharer s[3];
	pthread_t threads[3];
	unsigned int *claims;
	ssize_t i, bytes = 0;

	claims = calloc(NR_RECORDS, sizeof(*claims));
	ASSERT_NE(NULL, claims);
	append(&a);
	ASSERT_EQ(0, a.err);
	ASSERT_EQ(0, lseek(self->f.fd, 0, SEEK_SET));
	for (i = 0; i < 3; i++) {
		s[i] = (struct sharer) {
			.fd = self->f.fd,
			.limit = (off_t)NR_RECORDS * RECORD,
			.claims = claims,
		};
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, claim, &s[i]));
	}
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		ASSERT_EQ(NULL, s[i].wrong) {
			TH_LOG("thread %zd: %s", i, s[i].wrong);
		}
		bytes += s[i].bytes;
	}
	ASSERT_EQ(NR_RECORDS * RECORD, bytes);
	for (i = 0; i < NR_RECORDS; i++)
		ASSERT_EQ(1U, claims[i]);
	free(claims);
}

#define SMALL_FS		64	/* pages */
#define OVERLAPS		20U
/* On one CPU, most rounds end before the thread runs. */
#define MIN_ROUNDS		200U
#define MAX_SECONDS		60

struct pounder {
	const struct file *f;
	unsigned long reads;
	const char *wrong;
	bool stop;
};

/* Read all pages, of which every eighth one has data */
static void *pound(void *arg)
{
	unsigned char *buf = malloc(psz);
	struct pounder *p = arg;
	off_t pos = 0;

	while (buf && !p->wrong && !__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		if (pread(p->f->fd, buf, psz, pos) != psz)
			p->wrong = "a count";
		else if (memcmp(buf, p->f->data + pos, psz))
			p->wrong = "data";
		pos = (pos + psz) % p->f->size;
		__atomic_fetch_add(&p->reads, 1, __ATOMIC_RELAXED);
	}
	if (!buf)
		p->wrong = "no memory";
	free(buf);
	return NULL;
}

FIXTURE(small_fs)
{
	struct fs fs;
	struct file f;
};

FIXTURE_SETUP(small_fs)
{
	const struct fs *below = &fs_table[FS_TMPFS];
	struct fs *fs = &self->fs;
	char opts[64];

	if (below->why[0])
		SKIP(return, "%s", below->why);
	snprintf(fs->dir, sizeof(fs->dir), "%s", below->dir);
	snprintf(opts, sizeof(opts), "size=%zd,huge=never", SMALL_FS * psz);
	ASSERT_EQ(0, mount("tmpfs", fs->dir, "tmpfs", 0, opts));
	fs->mounted = true;
	file_open(_metadata, &self->f, fs, "file");
}

/* In the parent, so that it is done after a timeout, too */
FIXTURE_TEARDOWN_PARENT(small_fs)
{
	if (self->fs.mounted)
		umount2(self->fs.dir, MNT_DETACH);
}

/*
 * fallocate() of tmpfs which runs out of space removes what it has added, and
 * only that, also while others read what was there before.
 */
TEST_F_TIMEOUT(small_fs, failed_fallocate, LONG_TIMEOUT)
{
	struct pounder p = { .f = &self->f };
	time_t end = time(NULL) + MAX_SECONDS;
	unsigned int rounds, overlaps = 0;
	struct file *f = &self->f;
	struct stat st, now;
	unsigned long before;
	struct file other;
	pthread_t thread;
	off_t pos;

	file_open(_metadata, &other, &self->fs, "other");
	file_write(_metadata, &other, 0, SMALL_FS / 4 * psz, 2);
	for (pos = 0; pos < SMALL_FS * psz; pos += 8 * psz)
		file_write(_metadata, f, pos, psz, 1);
	file_truncate(_metadata, f, SMALL_FS * psz);
	/* What an earlier one has added is not to go, either. */
	ASSERT_EQ(0, fallocate(f->fd, 0, psz, psz));
	ASSERT_EQ(0, fstat(f->fd, &st));

	ASSERT_EQ(0, pthread_create(&thread, NULL, pound, &p));
	for (rounds = 0; (rounds < MIN_ROUNDS || overlaps < OVERLAPS) &&
	     time(NULL) < end; rounds++) {
		before = __atomic_load_n(&p.reads, __ATOMIC_RELAXED);
		ASSERT_EQ(-1, fallocate(f->fd, 0, 0, f->size));
		ASSERT_EQ(ENOSPC, errno);
		if (__atomic_load_n(&p.reads, __ATOMIC_RELAXED) > before + 1)
			overlaps++;
		ASSERT_EQ(0, fstat(f->fd, &now));
		ASSERT_EQ(st.st_blocks, now.st_blocks);
		ASSERT_EQ(SMALL_FS / 8 + 1, nr_cached(_metadata, f->fd, f->size));
	}
	__atomic_store_n(&p.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(NULL, p.wrong) {
		TH_LOG("%s of a read is wrong", p.wrong);
	}
	ASSERT_LE(OVERLAPS, overlaps) {
		TH_LOG("the thread read in %u of %u rounds only", overlaps, rounds);
	}
	check_all(_metadata, f, 600);
}

/*
 * Reclaim
 *
 * A file which is read all the time in small pieces has to stay in the cache
 * while another one, much larger than the limit of the cgroup, streams through.
 * Both kinds of LRU learn about the use of a folio from folio_mark_accessed().
 */

#define LRU_GEN			"/sys/kernel/mm/lru_gen/enabled"
#define HOT_PAGES		64
#define LRU_LIMIT		(24 * MIB)
#define LRU_STREAM		(6 * LRU_LIMIT)
#define LRU_CHUNK		(64 * KIB)

struct lru {
	struct file hot, cold, big;
	char memcg[PATH_MAX / 2];
	/* What was enabled before, if that is not what is now */
	char lru_gen[32];
	bool memory_enabled;
};

FIXTURE(small_read_lru)
{
	struct lru lru;
};

FIXTURE_VARIANT(small_read_lru)
{
	enum fs_id fs;
	bool mglru;
};

FIXTURE_VARIANT_ADD(small_read_lru, dir_classic)
{
	.fs = FS_DIR,
	.mglru = false,
};

FIXTURE_VARIANT_ADD(small_read_lru, dir_mglru)
{
	.fs = FS_DIR,
	.mglru = true,
};

FIXTURE_VARIANT_ADD(small_read_lru, ext4_classic)
{
	.fs = FS_EXT4,
	.mglru = false,
};

FIXTURE_VARIANT_ADD(small_read_lru, ext4_mglru)
{
	.fs = FS_EXT4,
	.mglru = true,
};

FIXTURE_VARIANT_ADD(small_read_lru, xfs_classic)
{
	.fs = FS_XFS,
	.mglru = false,
};

FIXTURE_VARIANT_ADD(small_read_lru, xfs_mglru)
{
	.fs = FS_XFS,
	.mglru = true,
};

static int write_memcg(const char *memcg, const char *name, const char *val)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", memcg, name);
	return write_str(path, val);
}

/* Returns NULL, or which step failed, with the error in errno. */
static const char *choose_lru(struct lru *lru, bool mglru)
{
	char now[32];

	if (read_str(LRU_GEN, now, sizeof(now)))
		return mglru ? LRU_GEN : NULL;
	if (!!(strtoul(now, NULL, 0) & 1) == mglru)
		return NULL;
	if (write_str(LRU_GEN, mglru ? "7" : "0"))
		return LRU_GEN;
	memcpy(lru->lru_gen, now, sizeof(now));
	return NULL;
}

static const char *make_memcg(struct lru *lru)
{
	const char *root = fs_table[FS_CGROUP2].dir;
	char path[PATH_MAX], list[1024], limit[32];

	snprintf(path, sizeof(path), "%s/cgroup.controllers", root);
	if (read_str(path, list, sizeof(list)))
		return "cgroup.controllers";
	errno = EOPNOTSUPP;
	if (!strstr(list, "memory"))
		return "memory controller in cgroup2";
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", root);
	if (read_str(path, list, sizeof(list)))
		return "cgroup.subtree_control";
	if (!strstr(list, "memory")) {
		if (write_str(path, "+memory"))
			return "enable of the memory controller";
		lru->memory_enabled = true;
	}
	snprintf(lru->memcg, sizeof(lru->memcg), "%s/small_read_long.%d", root,
		 getpid());
	if (mkdir(lru->memcg, 0755)) {
		lru->memcg[0] = '\0';
		return "mkdir of a memory cgroup";
	}
	snprintf(limit, sizeof(limit), "%ld", LRU_LIMIT);
	if (write_memcg(lru->memcg, "memory.max", limit))
		return "memory.max";
	return NULL;
}

static void lru_cleanup(struct lru *lru)
{
	struct file *files[] = { &lru->hot, &lru->cold, &lru->big };
	ssize_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i]->path[0])
			unlink(files[i]->path);
	if (lru->memcg[0])
		rmdir(lru->memcg);
	if (lru->memory_enabled)
		write_memcg(fs_table[FS_CGROUP2].dir, "cgroup.subtree_control",
			    "-memory");
	if (lru->lru_gen[0])
		write_str(LRU_GEN, lru->lru_gen);
}

FIXTURE_SETUP(small_read_lru)
{
	const struct fs *fs = &fs_table[variant->fs];
	const struct fs *cgroup2 = &fs_table[FS_CGROUP2];
	const char *step;

	if (fs->why[0])
		SKIP(return, "%s", fs->why);
	if (cgroup2->why[0])
		SKIP(return, "%s", cgroup2->why);
	step = make_memcg(&self->lru);
	if (!step)
		step = choose_lru(&self->lru, variant->mglru);
	if (step) {
		int err = errno;

		/* There is no teardown after a setup which skips. */
		lru_cleanup(&self->lru);
		SKIP(return, "%s: %s", step, strerror(err));
	}
	file_open(_metadata, &self->lru.hot, fs, "hot");
	file_open(_metadata, &self->lru.cold, fs, "cold");
	file_open(_metadata, &self->lru.big, fs, "big");
}

FIXTURE_TEARDOWN_PARENT(small_read_lru)
{
	lru_cleanup(&self->lru);
}

/*
 * Bring a file into the cache, and onto the lists of the LRU.  A folio that is
 * marked accessed before it gets there may count as hot after one read, as it
 * does to MGLRU in 7.3.  What is read next puts the last few there.
 */
static void fill_cache(struct __test_metadata *_metadata, const struct file *f)
{
	int i;

	ASSERT_EQ(0, posix_fadvise(f->fd, 0, 0, POSIX_FADV_WILLNEED));
	for (i = 0; i < 1000 && nr_cached(_metadata, f->fd, f->size) < HOT_PAGES; i++)
		usleep(10000);
	ASSERT_EQ(HOT_PAGES, nr_cached(_metadata, f->fd, f->size));
}

/* One small read of each page, always of another part of it */
static void read_pages(struct __test_metadata *_metadata, const struct file *f,
		       int pass)
{
	ssize_t i;

	for (i = 0; i < HOT_PAGES; i++)
		check_read(_metadata, f, 64, i * psz + (pass * 192 + i * 64) % psz);
}

TEST_F_TIMEOUT(small_read_lru, hot_file_stays, LONG_TIMEOUT)
{
	struct file *hot = &self->lru.hot, *cold = &self->lru.cold;
	struct file *files[] = { hot, cold };
	int big = self->lru.big.fd;
	ssize_t i, missing = 0;
	unsigned char *buf;
	int pass;
	off_t pos;

	buf = malloc(LRU_CHUNK);
	ASSERT_NE(NULL, buf);
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		file_write(_metadata, files[i], 0, HOT_PAGES * psz, i);
		file_drop(_metadata, files[i]);
		if (nr_cached(_metadata, files[i]->fd, files[i]->size))
			SKIP(return, "the cache cannot be dropped here");
		/* One folio for each page, as marks are made for each folio. */
		ASSERT_EQ(0, posix_fadvise(files[i]->fd, 0, 0, POSIX_FADV_RANDOM));
	}
	ASSERT_EQ(0, ftruncate(big, LRU_STREAM));

	/* From now on, the cache is charged to the cgroup. */
	ASSERT_EQ(0, write_memcg(self->lru.memcg, "cgroup.procs", "0"));
	fill_cache(_metadata, cold);
	fill_cache(_metadata, hot);
	read_pages(_metadata, cold, 0);
	for (pass = 0; pass < 8; pass++)
		read_pages(_metadata, hot, pass);
	ASSERT_EQ(HOT_PAGES, nr_cached(_metadata, hot->fd, hot->size));
	ASSERT_EQ(HOT_PAGES, nr_cached(_metadata, cold->fd, cold->size));

	for (pos = 0; pos < LRU_STREAM; pos += LRU_CHUNK) {
		ASSERT_EQ(LRU_CHUNK, pread(big, buf, LRU_CHUNK, pos));
		if (pos / LRU_CHUNK % 4)
			continue;
		missing += HOT_PAGES - nr_cached(_metadata, hot->fd, hot->size);
		read_pages(_metadata, hot, pass++);
	}

	/* There was reclaim, and it took what is not used. */
	ASSERT_LT(nr_cached(_metadata, big, LRU_STREAM),
		  LRU_LIMIT / psz + 1);
	ASSERT_LT(nr_cached(_metadata, cold->fd, cold->size),
		  HOT_PAGES / 2);
	ASSERT_LT(missing, HOT_PAGES / 2) {
		TH_LOG("%zd of %d pages had to be read again", missing, HOT_PAGES);
	}
	free(buf);
}

int main(int argc, char **argv)
{
	psz = sysconf(_SC_PAGESIZE);
	main_pid = getpid();
	atexit(undo_mounts);
	prepare_dir();
	prepare_mounts();
	return test_harness_run(argc, argv);
}
