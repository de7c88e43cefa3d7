// SPDX-License-Identifier: GPL-2.0
/*
 * What small buffered reads of cached files return, beside what the kernel's
 * small_read_test looks at: positions, errors, access times, other ways to read, and
 * what reclaim thinks of a file that is read like that. The expectations are those of
 * Linux 7.3.
 */
#define _FILE_OFFSET_BITS 64
#include <limits.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>

#include "kselftest_harness.h"
#include "ring.h"
#include "small_read.h"

#define GUARD			64
#define CANARY			0xa5
/* Emulation with KASAN is very slow. */
#define LONG_TIMEOUT		180
#define WAIT_MS			20000

static const ssize_t sizes[] = { 1, 8, 31, 32, 33, 64, 65, 128, 256, 1024, 4096 };

static bool all_are(const unsigned char *buf, ssize_t len, unsigned char c)
{
	return !len || (buf[0] == c && !memcmp(buf, buf + 1, len - 1));
}

FIXTURE(small_read)
{
	int fd;
	unsigned char *data;	/* what is in it */
	ssize_t size;
};

FIXTURE_VARIANT(small_read)
{
	enum fs_id fs;
};

FIXTURE_VARIANT_ADD(small_read, tmpfs) { .fs = TMPFS };
FIXTURE_VARIANT_ADD(small_read, ramfs) { .fs = RAMFS };
FIXTURE_VARIANT_ADD(small_read, ext4) { .fs = EXT4 };
FIXTURE_VARIANT_ADD(small_read, xfs) { .fs = XFS };

FIXTURE_SETUP(small_read)
{
	self->fd = make_file(variant->fs);
	if (self->fd < 0)
		SKIP(return, "cannot make and mount %s", fs_table[variant->fs].name);
	self->size = 16 * psz + 99;
	self->data = malloc(self->size);
	ASSERT_TRUE(write_words(self->fd, 0, 17 * psz, 0, 0));
	ASSERT_EQ(0, ftruncate(self->fd, self->size));
	ASSERT_EQ(self->size, pread(self->fd, self->data, self->size, 0));
	ASSERT_EQ(word_at(psz, 0), *(uint64_t *)(self->data + psz));
}

FIXTURE_TEARDOWN(small_read)
{
}

/* Read, and see that what was read is right and what is around it was left alone. */
static void check_read(struct __test_metadata *_metadata, int fd, const unsigned char *data,
		       ssize_t len, off_t pos)
{
	size_t room = MAX(len, 4096) + 2 * GUARD;
	unsigned char *buf = malloc(room);

	memset(buf, CANARY, room);
	ASSERT_EQ(len, pread(fd, buf + GUARD, len, pos));
	ASSERT_EQ(0, memcmp(buf + GUARD, data + pos, len));
	ASSERT_TRUE(all_are(buf, GUARD, CANARY));
	ASSERT_TRUE(all_are(buf + GUARD + len, room - GUARD - len, CANARY));
	free(buf);
}

/* read() goes on where it ended, and pread() does not move that. */
TEST_F(small_read, position)
{
	unsigned char buf[4096];
	ssize_t pos = 0, ret, len;
	unsigned int i;

	for (i = 0; pos < self->size; i++) {
		len = sizes[i % ARRAY_SIZE(sizes)];
		ret = read(self->fd, buf, len);
		ASSERT_EQ(MIN(len, self->size - pos), ret);
		ASSERT_EQ(0, memcmp(buf, self->data + pos, ret));
		pos += ret;
		ASSERT_EQ(8, pread(self->fd, buf, 8, psz - 3));
		ASSERT_EQ(pos, lseek(self->fd, 0, SEEK_CUR));
	}
	ASSERT_EQ(0, read(self->fd, buf, 64));
	ASSERT_EQ(0, pread(self->fd, buf, 64, LLONG_MAX - 64));
	ASSERT_EQ(-1, pread(self->fd, buf, 64, -1));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(0, pread(self->fd, buf, 0, 0));
}

/* Buffers that nobody may write to, and pieces of which the second is none */
TEST_F(small_read, bad_buffer)
{
	unsigned char *map, *end, *read_only, good[8];
	struct iovec iov[2] = { { good, sizeof(good) } };
	ssize_t ret;
	unsigned int i;

	map = mmap(NULL, 2 * psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	end = map + psz;
	ASSERT_EQ(0, munmap(end, psz));
	read_only = mmap(NULL, psz, PROT_READ, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, read_only);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(100, lseek(self->fd, 100, SEEK_SET));
		ASSERT_EQ(-1, read(self->fd, end, sizes[i]));
		ASSERT_EQ(EFAULT, errno);
		/* An error does not move, and the end comes first. */
		ASSERT_EQ(100, lseek(self->fd, 0, SEEK_CUR));
		ASSERT_EQ(0, pread(self->fd, end, sizes[i], self->size));
		ASSERT_EQ(-1, pread(self->fd, read_only, MIN(sizes[i], psz), 100));
		ASSERT_EQ(EFAULT, errno);
		/* Not every architecture copies up to the last byte. */
		ret = pread(self->fd, end - 100, 100 + sizes[i], 10);
		ASSERT_TRUE(ret > 0 && ret <= 100);
		ASSERT_EQ(0, memcmp(end - 100, self->data + 10, ret));
		iov[1] = (struct iovec){ end, sizes[i] };
		ASSERT_EQ(8, preadv(self->fd, iov, 2, psz - 4));
		ASSERT_EQ(0, memcmp(good, self->data + psz - 4, 8));
	}
	ASSERT_EQ(0, memcmp(read_only, self->data, psz));
}

/* The buffer is in the very page that is read. */
TEST_F(small_read, buffer_in_same_page)
{
	unsigned int i, prot = PROT_READ | PROT_WRITE;
	unsigned char *map;
	ssize_t len;

	for (i = 0; sizes[i] <= 1024; i++) {
		len = sizes[i];
		/* Not mapped yet, so it is the copy that faults it in. */
		map = mmap(NULL, psz, prot, MAP_SHARED, self->fd, 0);
		ASSERT_EQ(len, pread(self->fd, map + psz / 2 + 3, len, 5 + i));
		memcpy(self->data + psz / 2 + 3, self->data + 5 + i, len);
		ASSERT_EQ(len, pread(self->fd, map + 100, len, 100));
		munmap(map, psz);
		check_read(_metadata, self->fd, self->data, psz, 0);
		/* A private copy leaves the file alone. */
		map = mmap(NULL, psz, prot, MAP_PRIVATE, self->fd, 0);
		ASSERT_EQ(len, pread(self->fd, map + 9, len, 77));
		ASSERT_EQ(0, memcmp(map + 9, self->data + 77, len));
		munmap(map, psz);
		check_read(_metadata, self->fd, self->data, psz, 0);
	}
}

/* A page that somebody provides only while the read waits for it */
struct provider {
	int uffd, fd, err;
	unsigned char *page, seen[64];
};

static void *provide(void *arg)
{
	struct provider *p = arg;
	struct pollfd pfd = { .fd = p->uffd, .events = POLLIN };
	struct uffdio_copy copy = { .len = psz, .src = (unsigned long)p->page };
	struct uffd_msg msg;

	p->err = EINVAL;
	if (poll(&pfd, 1, WAIT_MS) != 1 || read(p->uffd, &msg, sizeof(msg)) != sizeof(msg) ||
	    msg.event != UFFD_EVENT_PAGEFAULT)
		return NULL;
	/* Whatever the reader holds must not stop this. */
	pread(p->fd, p->seen, sizeof(p->seen), 0);
	posix_fadvise(p->fd, 0, 0, POSIX_FADV_DONTNEED);
	copy.dst = msg.arg.pagefault.address & ~(psz - 1);
	p->err = ioctl(p->uffd, UFFDIO_COPY, &copy) ? errno : 0;
	return NULL;
}

/* A read waits for its destination, holds nothing meanwhile, and is complete. */
TEST_F(small_read, userfaultfd)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING, .range.len = psz };
	struct provider p = { .fd = self->fd };
	struct uffdio_api api = { .api = UFFD_API };
	static const int before[] = { 0, 0, 1, 20, 32, 100 };
	unsigned char *map;
	pthread_t thread;
	unsigned int i;

	p.uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (p.uffd < 0)
		SKIP(return, "userfaultfd: %s", strerror(errno));
	ASSERT_EQ(0, ioctl(p.uffd, UFFDIO_API, &api));
	p.page = mmap(NULL, psz, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	memset(p.page, CANARY, psz);
	for (i = 0; i < ARRAY_SIZE(before); i++) {
		ssize_t len = 1 + 63 * !!i, there = MIN(before[i], len);

		map = mmap(NULL, 2 * psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		/* A huge page would provide the missing one, too. */
		madvise(map, 2 * psz, MADV_NOHUGEPAGE);
		memset(map, CANARY, psz);
		if (there == len)
			there = len - 1;
		reg.range.start = (unsigned long)map + psz;
		ASSERT_EQ(0, ioctl(p.uffd, UFFDIO_REGISTER, &reg));
		ASSERT_EQ(0, pthread_create(&thread, NULL, provide, &p));
		ASSERT_EQ(len, pread(self->fd, map + psz - there, len, psz - 32 + i));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(0, p.err);
		ASSERT_EQ(0, memcmp(p.seen, self->data, sizeof(p.seen)));
		ASSERT_EQ(0, memcmp(map + psz - there, self->data + psz - 32 + i, len));
		ASSERT_TRUE(all_are(map, psz - there, CANARY));
		ASSERT_TRUE(all_are(map + psz - there + len, psz + there - len, CANARY));
		munmap(map, 2 * psz);
	}
}

/* With RWF_NOWAIT, what is cached is there, and what is not is EAGAIN, or all of it. */
TEST_F(small_read, nowait)
{
	unsigned char buf[4096];
	struct iovec iov = { .iov_base = buf };
	ssize_t ret = 0;
	unsigned int i, tries;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		iov.iov_len = sizes[i];
		/* It may get dropped just before, so try again. */
		for (tries = 0; tries < 100; tries++) {
			check_read(_metadata, self->fd, self->data, sizes[i], psz - 9);
			ret = preadv2(self->fd, &iov, 1, psz - 9, RWF_NOWAIT);
			if (ret >= 0 || errno != EAGAIN)
				break;
		}
		if (ret < 0 && errno == EOPNOTSUPP)
			SKIP(return, "RWF_NOWAIT is not supported here");
		ASSERT_EQ(sizes[i], ret);
		ASSERT_EQ(0, memcmp(buf, self->data + psz - 9, ret));
		fdatasync(self->fd);
		posix_fadvise(self->fd, 0, 0, POSIX_FADV_DONTNEED);
		ret = preadv2(self->fd, &iov, 1, psz - 9, RWF_NOWAIT);
		ASSERT_TRUE(ret > 0 || (ret < 0 && errno == EAGAIN));
		ASSERT_EQ(0, memcmp(buf, self->data + psz - 9, MAX(ret, 0)));
	}
}

/* Into a registered buffer, which is not addressed as user memory, and others */
TEST_F_TIMEOUT(small_read, io_uring, LONG_TIMEOUT)
{
	unsigned char *area = mmap(NULL, 2 * psz, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), *buf;
	struct ring ring;
	unsigned int i, turn;
	off_t pos;
	int err;

	err = ring_setup(_metadata, &ring, area, psz);
	if (err)
		SKIP(return, "io_uring_setup: %s", strerror(err));
	for (turn = 0; turn < 4; turn++) {
		for (i = 0; sizes[i] < psz - 2 * GUARD; i++) {
			buf = area + GUARD + i;
			pos = psz - 20 * turn;
			memset(area, CANARY, psz);
			ASSERT_EQ(sizes[i], ring_wait(_metadata, &ring, (struct io_uring_sqe){
				.opcode = turn & 1 ? IORING_OP_READ : IORING_OP_READ_FIXED,
				.fd = self->fd, .addr = (unsigned long)buf, .len = sizes[i],
				.off = pos }));
			ASSERT_EQ(0, memcmp(buf, self->data + pos, sizes[i]));
			ASSERT_TRUE(all_are(area, buf - area, CANARY));
			ASSERT_TRUE(all_are(buf + sizes[i], area + psz - buf - sizes[i], CANARY));
		}
		if (turn == 1)
			posix_fadvise(self->fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	ASSERT_EQ(0, munmap(area + psz, psz));
	ASSERT_EQ(-1, ring_wait(_metadata, &ring, (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .fd = self->fd, .len = 64,
		.addr = (unsigned long)area + psz }));
	ASSERT_EQ(EFAULT, errno);
}

/* A write that waits for its memory, with the inode of XFS locked, for a while */
struct slow_write {
	int fd, uffd, waits;
	unsigned char *map;
	ssize_t ret;
};

static void *slow_write(void *arg)
{
	struct slow_write *w = arg;

	w->ret = pwrite(w->fd, w->map, 100, 8 * psz);
	return NULL;
}

static void *provide_late(void *arg)
{
	struct slow_write *w = arg;
	struct uffdio_zeropage zero = { .range = { (unsigned long)w->map, psz } };
	struct pollfd pfd = { .fd = w->uffd, .events = POLLIN };
	struct uffd_msg msg;

	if (poll(&pfd, 1, WAIT_MS) == 1 && read(w->uffd, &msg, sizeof(msg)) == sizeof(msg))
		ADD(&w->waits, 1);
	usleep(50000);
	ioctl(w->uffd, UFFDIO_ZEROPAGE, &zero);
	return NULL;
}

/*
 * io_uring repeats a read without IOCB_NOWAIT if it could not lock the inode. If only
 * its first page is cached then, it ends, and with all data.
 */
TEST(io_uring_part)
{
	unsigned char *area = mmap(NULL, psz, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct slow_write w = { .fd = make_file(XFS) };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING, .range.len = psz };
	struct uffdio_api api = { .api = UFFD_API };
	unsigned char data[200], buf[64];
	const ssize_t pos = psz - 96, len = 200, small = 64;
	struct ring ring;
	pthread_t thread[2];
	int err, i, part = 0;

	w.uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (w.fd < 0 || w.uffd < 0)
		SKIP(return, "no XFS, or no userfaultfd");
	err = ring_setup(_metadata, &ring, area, psz);
	if (err)
		SKIP(return, "io_uring_setup: %s", strerror(err));
	ASSERT_EQ(0, ioctl(w.uffd, UFFDIO_API, &api));
	/* Small writes make small folios. */
	for (i = 0; i < 16; i++)
		ASSERT_TRUE(write_words(w.fd, i * psz, psz, 0, 0));
	ASSERT_EQ(len, pread(w.fd, data, len, pos));
	for (i = 0; i < 8; i++) {
		w.waits = 0;
		w.map = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		reg.range.start = (unsigned long)w.map;
		ASSERT_EQ(0, ioctl(w.uffd, UFFDIO_REGISTER, &reg));
		ASSERT_EQ(0, fsync(w.fd));
		posix_fadvise(w.fd, psz, 7 * psz, POSIX_FADV_DONTNEED);
		/* Not in sequence, so that pageguard reads this file without references. */
		ASSERT_EQ(small, pread(w.fd, buf, small, 2000));
		ASSERT_EQ(small, pread(w.fd, buf, small, 100));
		ASSERT_EQ(0, pthread_create(&thread[0], NULL, slow_write, &w));
		ASSERT_EQ(0, pthread_create(&thread[1], NULL, provide_late, &w));
		while (!LOAD(&w.waits))
			usleep(1000);
		part += nr_cached(w.fd, 0, psz) && !nr_cached(w.fd, psz, psz);
		ASSERT_EQ(len, ring_wait(_metadata, &ring, (struct io_uring_sqe){
			.opcode = IORING_OP_READ, .fd = w.fd, .addr = (unsigned long)area,
			.len = len, .off = pos }));
		ASSERT_EQ(0, memcmp(data, area, len));
		pthread_join(thread[0], NULL);
		pthread_join(thread[1], NULL);
		ASSERT_EQ(100, w.ret);
		munmap(w.map, psz);
	}
	EXPECT_NE(0, part);
}

static bool touches(int fd, ssize_t len)
{
	/* A machine without a clock is in 1970 as well. */
	struct timespec past[2] = { { .tv_sec = 1 }, { .tv_nsec = UTIME_OMIT } };
	unsigned char buf[4096];
	struct stat st;

	return !futimens(fd, past) && pread(fd, buf, len, 20) == len && !fstat(fd, &st) &&
	       st.st_atim.tv_sec != 1;
}

/* A read sets the access time, unless the file is opened with O_NOATIME. */
TEST_F(small_read, atime)
{
	int own = reopen(self->fd, O_RDONLY | O_NOATIME);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_TRUE(touches(self->fd, sizes[i]));
		ASSERT_FALSE(touches(own, sizes[i]));
	}
}

/* What is stored to a mapping is what is read. */
TEST_F_TIMEOUT(small_read, mmap_writer, LONG_TIMEOUT)
{
	unsigned char *map = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	uint32_t seed = 3;
	uint64_t i, got;
	off_t pos;

	ASSERT_NE(MAP_FAILED, map);
	for (i = 1; i <= 3000; i++) {
		pos = rand_r(&seed) % (psz / 8) * 8;
		__atomic_store_n((uint64_t *)(map + pos), i, __ATOMIC_RELAXED);
		memcpy(self->data + pos, &i, 8);
		ASSERT_EQ(8, pread(self->fd, &got, 8, pos));
		ASSERT_EQ(i, got);
		check_read(_metadata, self->fd, self->data, 64, MAX(pos - 30, 0));
		/* Also while the page is clean and not mapped to be written */
		if (i % 100 == 0)
			ASSERT_EQ(0, msync(map, psz, MS_SYNC));
	}
}

struct sharer {
	int fd;
	unsigned char *claims;
	const char *wrong;
};

static void *claim(void *arg)
{
	uint64_t words[8];
	struct sharer *s = arg;
	off_t pos;
	int i;

	while (read(s->fd, words, sizeof(words)) == sizeof(words)) {
		for (pos = 0; pos < 16 * psz && words[0] != word_at(pos, 0); pos += 64)
			;
		for (i = 0; i < 8; i++)
			if (pos == 16 * psz || words[i] != word_at(pos + i * 8, 0))
				s->wrong = "a record";
		if (!s->wrong)
			ADD(&s->claims[pos / 64], 1);
	}
	return NULL;
}

/* With one position for all, each record goes to exactly one of them. */
TEST_F_TIMEOUT(small_read, shared_position, LONG_TIMEOUT)
{
	struct sharer s = { .fd = self->fd, .claims = calloc(16 * psz / 64, 1) };
	pthread_t threads[3];
	ssize_t i;

	ASSERT_EQ(0, ftruncate(self->fd, 16 * psz));
	ASSERT_EQ(0, lseek(self->fd, 0, SEEK_SET));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, claim, &s));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	ASSERT_EQ(NULL, s.wrong);
	for (i = 0; i < 16 * psz / 64; i++)
		ASSERT_EQ(1, s.claims[i]);
}

struct pounder {
	int fd;
	ssize_t size;
	uint32_t reads, stop;
	const char *wrong;
};

/* Read all pages, of which every eighth one has data. */
static void *pound(void *arg)
{
	struct pounder *p = arg;
	uint64_t words[8];
	off_t pos;
	int i;

	for (pos = 0; !LOAD(&p->stop); pos = (pos + psz) % p->size) {
		if (pread(p->fd, words, sizeof(words), pos) != sizeof(words))
			p->wrong = "a count";
		for (i = 0; i < 8; i++)
			if (words[i] != (pos / psz % 8 ? 0 : word_at(pos + i * 8, 0)))
				p->wrong = "data";
		ADD(&p->reads, 1);
	}
	return NULL;
}

/*
 * fallocate() of tmpfs that runs out of space removes what it has added, and only
 * that, also while others read what was there before.
 */
TEST(failed_fallocate)
{
	struct pounder p = { .size = 64 * psz };
	uint32_t before, overlaps = 0, rounds;
	struct stat st, now;
	pthread_t thread;
	char opts[64];
	off_t pos;

	if (!fs_table[TMPFS].mounted)
		SKIP(return, "cannot mount tmpfs");
	snprintf(opts, sizeof(opts), "size=%zd,huge=never", 64 * psz);
	ASSERT_EQ(0, mount("tmpfs", "/tmp/tmpfs", "tmpfs", 0, opts));
	p.fd = make_file(TMPFS);
	/* Another file has what would be missing. */
	ASSERT_TRUE(write_words(make_file(TMPFS), 0, 16 * psz, 0, 0));
	for (pos = 0; pos < p.size; pos += 8 * psz)
		ASSERT_TRUE(write_words(p.fd, pos, psz, 0, 0));
	ASSERT_EQ(0, ftruncate(p.fd, p.size));
	/* What an earlier one has added is not to go, either. */
	ASSERT_EQ(0, fallocate(p.fd, 0, psz, psz));
	ASSERT_EQ(0, fstat(p.fd, &st));
	ASSERT_EQ(0, pthread_create(&thread, NULL, pound, &p));
	for (rounds = 0; rounds < 200 || (overlaps < 20 && rounds < 100000); rounds++) {
		before = LOAD(&p.reads);
		ASSERT_EQ(-1, fallocate(p.fd, 0, 0, p.size));
		ASSERT_EQ(ENOSPC, errno);
		overlaps += LOAD(&p.reads) > before + 1;
		ASSERT_EQ(0, fstat(p.fd, &now));
		ASSERT_EQ(st.st_blocks, now.st_blocks);
		ASSERT_EQ(9, nr_cached(p.fd, 0, p.size));
	}
	ADD(&p.stop, 1);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(NULL, p.wrong);
	ASSERT_LE(20U, overlaps);
}

/*
 * Reclaim
 *
 * A file that is read all the time in small pieces has to stay in the cache while
 * another one, much larger than the limit of the cgroup, streams through. Both kinds
 * of LRU learn about the use of a folio from folio_mark_accessed().
 */

#define LRU_GEN			"/sys/kernel/mm/lru_gen/enabled"
#define HOT_PAGES		64
#define LRU_LIMIT		(24L << 20)
#define LRU_STREAM		(6 * LRU_LIMIT)

FIXTURE(small_read_lru)
{
	int fd[3];		/* hot, cold, big */
	unsigned long was;	/* of lru_gen */
	char cgroup[64];
};

FIXTURE_VARIANT(small_read_lru)
{
	enum fs_id fs;
	bool mglru;
};

FIXTURE_VARIANT_ADD(small_read_lru, ext4_classic) { .fs = EXT4 };
FIXTURE_VARIANT_ADD(small_read_lru, ext4_mglru) { .fs = EXT4, .mglru = true };
FIXTURE_VARIANT_ADD(small_read_lru, xfs_classic) { .fs = XFS };
FIXTURE_VARIANT_ADD(small_read_lru, xfs_mglru) { .fs = XFS, .mglru = true };

FIXTURE_SETUP(small_read_lru)
{
	int i;

	self->was = number(LRU_GEN, "");
	for (i = 0; i < 3; i++) {
		self->fd[i] = make_file(variant->fs);
		if (self->fd[i] < 0)
			SKIP(return, "cannot make and mount %s", fs_table[variant->fs].name);
	}
	if ((self->was & 1) != variant->mglru && !write_str(LRU_GEN, variant->mglru ? "7" : "0"))
		SKIP(return, "cannot choose the LRU");
}

FIXTURE_TEARDOWN_PARENT(small_read_lru)
{
	rmdir(self->cgroup);
	write_str(LRU_GEN, self->was & 1 ? "7" : "0");
}

/*
 * Bring a file into the cache, and onto the lists of the LRU. A folio that is marked
 * accessed before it gets there may count as hot after one read, as it does to MGLRU
 * in 7.3. What is read next puts the last few there.
 */
static void fill_cache(struct __test_metadata *_metadata, int fd)
{
	int i;

	/* One call brings no more than the device reads at once. */
	for (i = 0; i < HOT_PAGES; i++)
		ASSERT_EQ(0, posix_fadvise(fd, i * psz, psz, POSIX_FADV_WILLNEED));
	for (i = 0; i < 1000 && nr_cached(fd, 0, HOT_PAGES * psz) < HOT_PAGES; i++)
		usleep(10000);
	ASSERT_EQ(HOT_PAGES, nr_cached(fd, 0, HOT_PAGES * psz));
}

/* One small read of each page, always of another part of it */
static void read_pages(struct __test_metadata *_metadata, int fd, int pass)
{
	uint64_t word;
	ssize_t i, pos;

	for (i = 0; i < HOT_PAGES; i++) {
		pos = i * psz + (pass * 192 + i * 64) % psz;
		ASSERT_EQ(8, pread(fd, &word, 8, pos));
		ASSERT_EQ(word_at(pos, 0), word);
	}
}

/* What is read in small pieces is hot to reclaim, and what is not read is not. */
TEST_F_TIMEOUT(small_read_lru, hot_file_stays, LONG_TIMEOUT)
{
	int hot = self->fd[0], cold = self->fd[1], big = self->fd[2], i, pass;
	ssize_t missing = 0, len = HOT_PAGES * psz;
	static char buf[SPAN];
	const char *cgroup;
	off_t pos;

	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(write_words(self->fd[i], 0, len, 0, 0));
		ASSERT_EQ(0, fsync(self->fd[i]));
		ASSERT_EQ(0, posix_fadvise(self->fd[i], 0, 0, POSIX_FADV_DONTNEED));
		/* One folio for each page, as marks are made for each folio */
		ASSERT_EQ(0, posix_fadvise(self->fd[i], 0, 0, POSIX_FADV_RANDOM));
	}
	ASSERT_EQ(0, ftruncate(big, LRU_STREAM));
	/* From now on, the cache is charged to the cgroup. */
	cgroup = enter_cgroup("24M");
	if (!cgroup)
		SKIP(return, "no cgroup2 with the memory controller");
	snprintf(self->cgroup, sizeof(self->cgroup), "%s", cgroup);
	fill_cache(_metadata, cold);
	fill_cache(_metadata, hot);
	read_pages(_metadata, cold, 0);
	for (pass = 0; pass < 8; pass++)
		read_pages(_metadata, hot, pass);
	ASSERT_EQ(HOT_PAGES, nr_cached(hot, 0, len));
	for (pos = 0; pos < LRU_STREAM; pos += SPAN) {
		ASSERT_EQ(SPAN, pread(big, buf, SPAN, pos));
		if (pos / SPAN % 4)
			continue;
		missing += HOT_PAGES - nr_cached(hot, 0, len);
		read_pages(_metadata, hot, pass++);
	}
	/* There was reclaim, and it took what is not used. */
	ASSERT_LT(nr_cached(big, 0, LRU_STREAM), LRU_LIMIT / psz + 1);
	ASSERT_LT(nr_cached(cold, 0, len), HOT_PAGES / 2);
	ASSERT_LT(missing, HOT_PAGES / 2) {
		TH_LOG("%zd of %d pages had to be read again", missing, HOT_PAGES);
	}
}

int main(int argc, char **argv)
{
	psz = sysconf(_SC_PAGESIZE);
	mount_all();
	return test_harness_run(argc, argv);
}
