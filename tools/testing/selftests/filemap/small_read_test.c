// SPDX-License-Identifier: GPL-2.0
/*
 * What small reads of cached files return, whatever happens to the folios.
 *
 * In a race, threads read a file in which each word tells its place and its
 * generation, while folios are taken away and their memory is given a secret.
 * The first half of the file never changes.  The second half is written in
 * generations, between increments of begun and ended.  A read that meets none
 * of these returns all of one generation.  Else bytes may be of any of those
 * that it met, or zero, and a read may be short.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/mman.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "kselftest_harness.h"

#define WORD		8L
#define SECRET		0x2153454352455421ull
#define SPAN		(64L << 10)
#define SIZE		(16 * SPAN)
#define HALF		(SIZE / 2)
#define RECORD		64L
#define NR_RECORDS	4000
#define TIMEOUT		150

#define LOAD(p)		__atomic_load_n(p, __ATOMIC_SEQ_CST)
#define ADD(p, v)	__atomic_add_fetch(p, v, __ATOMIC_SEQ_CST)

enum action { WRITE, TRUNCATE, PUNCH, DONTCACHE, DONTNEED, RECLAIM, MIGRATE };

static ssize_t psz;
static int fd;			/* the file, a new one for each test */
static char path[32];		/* opens it again */
static uint32_t seed, begun, ended;
static uint32_t rounds;		/* odd while folios are taken away */
static uint32_t met, stop;	/* met: reads beside a round */
static char wrong[128];

static uint64_t word_at(ssize_t pos, uint8_t generation)
{
	return (pos / WORD + 1) * 0x9e3779b97f4a7c15ull << 8 | generation;
}

/* A word may tear, but where it has bits, they have to be of its place. */
static bool good_word(uint64_t word, ssize_t pos, uint8_t from, uint8_t to)
{
	if (from == to)
		return word == word_at(pos, from);
	if ((uint8_t)word && (uint8_t)(word - from) > (uint8_t)(to - from))
		return false;
	return !(word & ~word_at(pos, 0xff));
}

static bool write_file(int to, ssize_t pos, ssize_t len, int gen, int flags)
{
	uint64_t words[SPAN / WORD];
	struct iovec iov = { .iov_base = words };
	int i;

	for (; len > 0; pos += SPAN, len -= SPAN) {
		iov.iov_len = MIN(len, SPAN);
		for (i = 0; i < SPAN / WORD; i++)
			words[i] = word_at(pos + i * WORD, gen);
		if (pwritev2(to, &iov, 1, pos, flags) != MIN(len, SPAN))
			return false;
	}
	return true;
}

static void fails(const char *what, ssize_t pos, uint64_t got)
{
	if (ADD(&stop, 1) == 1)
		snprintf(wrong, sizeof(wrong), "a %s at %zd: %#jx", what, pos,
			 (uintmax_t)got);
}

static void *read_words(void *unused)
{
	static const int words[] = { 1, 1, 2, 4, 5, 8, 8, 9, 32, 512 };
	uint32_t state = ADD(&seed, 77), round, stay = 0;
	ssize_t page = 0, pos, len, ret, i;
	int own = open(path, O_RDONLY);
	uint64_t buf[512];
	uint8_t from, to;

	while (!LOAD(&stop)) {
		/* Often the same page again, so that it is known as used */
		if (!(stay++ % 16))
			page = rand_r(&state) % (SIZE / psz) * psz;
		pos = page + rand_r(&state) % (psz / WORD) * WORD;
		len = MIN(words[stay % 10] * WORD, SIZE - pos);

		round = LOAD(&rounds);
		from = LOAD(&ended);
		ret = pread(own, buf, len, pos);
		to = LOAD(&begun);
		if (round % 2 || LOAD(&rounds) != round)
			ADD(&met, 1);
		if (ret < 0 || (ret < len && (from == to || pos + len <= HALF)))
			fails("count", pos, ret);
		for (i = 0; i < ret / WORD; i++, pos += WORD)
			if (!good_word(buf[i], pos, pos < HALF ? 0 : from,
				       pos < HALF ? 0 : to))
				fails(buf[i] == SECRET ? "secret" : "word", pos,
				      buf[i]);
	}
	return unused;
}

/* Fill the pages that this CPU has freed just now, and free others after it. */
static void reuse(void)
{
	static void *last = MAP_FAILED;
	uint64_t *area = mmap(NULL, SPAN, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	for (i = 0; area != MAP_FAILED && i < SPAN / WORD; i++)
		area[i] = SECRET;
	munmap(last, SPAN);
	last = area;
}

static long nr_cached(ssize_t pos)
{
	struct cachestat_range range = { pos, SPAN };
	struct cachestat now = {};

	syscall(__NR_cachestat, fd, &range, &now, 0);
	return now.nr_cache;
}

/* Move the pages of a mapping to a node; returns how many have moved. */
static int move_to(char *map, int node)
{
	int to[16], old[16] = {}, new[16] = {}, n = SPAN / psz, i, moved = 0;
	void *pages[16];

	for (i = 0; i < n; i++) {
		pages[i] = map + i * psz;
		to[i] = node;
	}
	syscall(__NR_move_pages, 0, n, pages, NULL, old, 0);
	syscall(__NR_move_pages, 0, n, pages, to, new, MPOL_MF_MOVE);
	for (i = 0; i < n; i++)
		moved += old[i] == !node && new[i] == node;
	return moved;
}

/* Returns how many pages were taken away, or -1. */
static long do_round(enum action how)
{
	ssize_t from = how <= DONTCACHE ? HALF : 0, pos;
	int ret = 0, moved = 1;
	long taken;
	void *map;

	pos = from + rand_r(&seed) % ((SIZE - from) / SPAN) * SPAN;
	fdatasync(fd);
	taken = nr_cached(pos);
	if (from)
		ADD(&begun, 1);
	if (how == TRUNCATE)
		ret = ftruncate(fd, pos + rand_r(&seed) % 3 * WORD);
	if (how == PUNCH || how == DONTCACHE)	/* and KEEP_SIZE */
		ret = fallocate(fd, FALLOC_FL_PUNCH_HOLE | 1, pos, SPAN);
	if (how == DONTCACHE && !ret)		/* RWF_DONTCACHE */
		ret = !write_file(fd, pos, SPAN, begun, 0x80) || fdatasync(fd);
	if (how == DONTNEED)
		ret = posix_fadvise(fd, pos, SPAN, POSIX_FADV_DONTNEED);
	if (how == RECLAIM || how == MIGRATE) {
		map = mmap(NULL, SPAN, PROT_READ, MAP_SHARED | MAP_POPULATE,
			   fd, pos);
		if (how == RECLAIM)
			madvise(map, SPAN, MADV_PAGEOUT);
		else
			moved = move_to(map, rounds / 2 % 2);
		munmap(map, SPAN);
	}
	taken -= nr_cached(pos);
	reuse();
	if (from) {
		ret |= !write_file(fd, HALF, HALF, begun, 0);
		ADD(&ended, 1);
	}
	if (ret)
		return -1;
	return how == WRITE || how == MIGRATE ? moved : MAX(taken, 0);
}

/* Readers must not see what is not theirs, nor keep it from being taken. */
static void run(struct __test_metadata *_metadata, enum action how)
{
	time_t end = time(NULL) + TIMEOUT / 2;
	long taken = 0, last = 0;
	pthread_t threads[2];
	int i;

	for (i = 0; i < 10 && !last; i++)
		last = do_round(how);
	if (last <= 0)	/* not supported, one node, no swap, ... */
		SKIP(return, "it takes nothing away without readers, either");
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], 0, read_words, 0));
	do {
		ADD(&rounds, 1);
		last = do_round(how);
		ADD(&rounds, 1);
		taken += last;
	} while (last >= 0 && !LOAD(&stop) && time(NULL) < end &&
		 (LOAD(&met) < 20000 || rounds < 50 || !taken));
	ADD(&stop, 1);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	ASSERT_STREQ("", wrong);
	ASSERT_GE(last, 0);
	TH_LOG("%u reads met rounds, which took %ld pages", met, taken);
	EXPECT_GT(taken, 0);
	EXPECT_NE(met, 0U);
}

FIXTURE(small_read) { };
FIXTURE_TEARDOWN(small_read) { }
FIXTURE_VARIANT(small_read) { const char *dir; };
FIXTURE_VARIANT_ADD(small_read, tmpfs) { };
FIXTURE_VARIANT_ADD(small_read, ext4) { .dir = "/tmp/ext4" };
FIXTURE_VARIANT_ADD(small_read, xfs) { .dir = "/tmp/xfs" };

FIXTURE_SETUP(small_read)
{
	if (variant->dir && access(variant->dir, W_OK))
		SKIP(return, "cannot make and mount %s", variant->dir);
	fd = variant->dir ? open(variant->dir, O_TMPFILE | O_RDWR, 0600) :
			    (int)memfd_create("small_read", 0);
	ASSERT_GE(fd, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ASSERT_TRUE(write_file(fd, 0, SIZE, 0, 0));
}

#define RACE(name, how)					\
	static const enum action name##_how = how;	\
	TEST_F_TIMEOUT(small_read, name, TIMEOUT)	\
	{						\
		run(_metadata, name##_how);		\
	}

/* A read beside a write returns old or new data. */
RACE(overwrite, WRITE)
/* A read beside a truncation returns data up to the old or the new end. */
RACE(truncate, TRUNCATE)
/* A read of what becomes a hole returns data or zeroes. */
RACE(punch, PUNCH)
/* Data that leave the cache once they are written come back from the disk. */
RACE(dontcache, DONTCACHE)
/* Data that are dropped on advice come back from the disk. */
RACE(dontneed, DONTNEED)
/* Data that are reclaimed come back from the disk, or from swap. */
RACE(reclaim, RECLAIM)
/* A folio that moves to another node keeps its data. */
RACE(migrate, MIGRATE)

/* A read ends where the file does, and leaves alone what is around it. */
TEST_F_TIMEOUT(small_read, end_of_file, TIMEOUT)
{
	const int sizes[] = { 2 * psz + 1, psz + 40, psz, psz - 1, 129, 65, 64,
			      63, 33, 32, 31, 8, 1, 0 };
	const int lens[] = { 1, 7, 8, 9, 31, 32, 33, 64, 65, 129, psz };
	char *want = malloc(SIZE), *buf = malloc(SIZE), *at = buf + 64;
	ssize_t s, l, pos, n, i;

	ASSERT_EQ(SIZE, pread(fd, want, SIZE, 0));
	for (s = 0; s < (ssize_t)ARRAY_SIZE(sizes); s++) {
		ASSERT_EQ(0, ftruncate(fd, sizes[s]));
		for (i = 0; i < 75 * (ssize_t)ARRAY_SIZE(lens); i++) {
			l = lens[i / 75];
			pos = sizes[s] + 5 - MIN(sizes[s] + 5, i % 75);
			n = MIN(l, sizes[s] - MIN(sizes[s], pos));
			memset(buf, 0xa5, l + 128);
			ASSERT_EQ(n, pread(fd, at, l, pos));
			ASSERT_EQ(0, memcmp(at, want + pos, n));
			memset(at, 0xa5, n);
			ASSERT_EQ(0, memcmp(buf, buf + 1, l + 127));
		}
	}
}

/* A read is complete although parts of its destination have to be faulted in. */
TEST_F_TIMEOUT(small_read, faults, TIMEOUT)
{
	int memory = memfd_create("destination", 0), i;
	struct rusage before, now;
	char *map, *seen, want[256];
	ssize_t len, at;

	ASSERT_EQ(0, ftruncate(memory, 2 * psz));
	/* What is taken from the one mapping is still there in the other. */
	map = mmap(NULL, 2 * psz, PROT_WRITE, MAP_SHARED, memory, 0);
	seen = mmap(NULL, 2 * psz, PROT_READ, MAP_SHARED, memory, 0);
	ASSERT_EQ(256, pread(fd, want, 256, 11));
	getrusage(RUSAGE_THREAD, &before);
	for (i = 0; i < 2000; i++) {
		len = 1 + i % 256;
		at = psz - i / 7 % len;
		/* The first page, the second one, or both are not there. */
		madvise(map + i % 3 / 2 * psz, (1 + i % 3 % 2) * psz,
			MADV_DONTNEED);
		ASSERT_EQ(len, pread(fd, map + at, len, 11));
		ASSERT_EQ(0, memcmp(seen + at, want, len));
	}
	getrusage(RUSAGE_THREAD, &now);
	EXPECT_GT(now.ru_minflt, before.ru_minflt + 500);
}

static void *append(void *unused)
{
	int own = open(path, O_WRONLY | O_APPEND), i = 0;

	while (i < NR_RECORDS && write_file(own, i * RECORD, RECORD, 0, 0))
		i++;
	ADD(&stop, 1);
	return unused;
}

/* A file that grows has whole records wherever it ends at the time. */
TEST_F_TIMEOUT(small_read, append, TIMEOUT)
{
	ssize_t pos = 0, ask = 0, ret, i, waited = 0;
	uint64_t words[4 * RECORD / WORD];
	pthread_t thread;
	bool last;

	ASSERT_EQ(0, ftruncate(fd, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, append, NULL));
	do {
		ask = ask % (4 * RECORD) + RECORD;
		last = LOAD(&stop);
		ret = pread(fd, words, ask, pos);
		ASSERT_TRUE(ret >= 0 && ret % RECORD == 0);
		for (i = 0; i < ret / WORD; i++, pos += WORD)
			ASSERT_EQ(word_at(pos, 0), words[i]);
		waited += !ret;
	} while (ret || !last);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(NR_RECORDS * RECORD, pos);
	EXPECT_GT(waited, 1);
}

/* What was spliced into a pipe stays there when the file loses it. */
TEST_F(small_read, splice)
{
	uint64_t words[RECORD / WORD];
	off_t pos = 3 * psz;
	int ends[2], i;

	ASSERT_EQ(0, pipe(ends));
	ASSERT_EQ(RECORD, splice(fd, &pos, ends[1], NULL, RECORD, 0));
	ASSERT_EQ(0, ftruncate(fd, 0));
	reuse();
	ASSERT_EQ(RECORD, read(ends[0], words, sizeof(words)));
	for (i = 0; i < RECORD / WORD; i++)
		ASSERT_EQ(word_at(3 * psz + i * WORD, 0), words[i]);
}

int main(int argc, char **argv)
{
	static const char * const steps[] = {
		"truncate -s 320M ext4.img && mkfs.ext4 -q ext4.img",
		"truncate -s 320M xfs.img && mkfs.xfs -q xfs.img",
		"mkdir ext4 && mount -o loop ext4.img ext4 || rmdir ext4",
		"mkdir xfs && mount -o loop xfs.img xfs || rmdir xfs",
	};
	unsigned int i;

	psz = sysconf(_SC_PAGESIZE);
	if (!unshare(CLONE_NEWNS) &&
	    !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("tmpfs", "/tmp", "tmpfs", 0, NULL) && !chdir("/tmp"))
		for (i = 0; i < ARRAY_SIZE(steps); i++)
			if (system(steps[i]))
				ksft_print_msg("%s failed\n", steps[i]);
	return test_harness_run(argc, argv);
}
