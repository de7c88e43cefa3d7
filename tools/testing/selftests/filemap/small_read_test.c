// SPDX-License-Identifier: GPL-2.0
/*
 * Small reads of files that are in the page cache.
 *
 * However it is done, a read must return what is in the file, while the folio is
 * truncated, reclaimed, migrated, collapsed or split, and its memory given to
 * somebody else.  So let threads read a file in which each word says where it
 * belongs and how often it was written, while another one takes its folios away
 * and fills what it gets instead with a secret.
 *
 * The first half of the file never changes.  The second half is cut off or
 * punched out, and written again, in generations.  A change increments
 * race::started before its first system call, and race::done after its last.
 * A reader looks at race::done before its read, and at race::started after it:
 * each word is of one of the generations from the former to the latter, or, if
 * these are not the same, torn, zero or missing.
 *
 * This says nothing about which way a read went.  no_reference does, where the
 * kernel has tracepoints for it.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/mman.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "../kselftest_harness.h"

#define SMAPS			"/proc/self/smaps_rollup"
#define WORD			sizeof(uint64_t)
#define SECRET			0x2153454352455421ull
/* A multiple of the page size; a huge page has to fit in half of it. */
#define MAX_FILE		(8UL << 20)
#define SPAN			(64UL << 10)
#define READERS			2
/* When a race is over: that many reads and rounds, and a time. */
#define MIN_READS		20000
#define MIN_ROUNDS		20
#define MIN_SECONDS		1
#define MAX_SECONDS		60
#define TIMEOUT			150

static size_t psz, pmd_size;
static time_t seconds = MIN_SECONDS;

#define LOAD(p)			__atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v)		__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define ADD(p, v)		__atomic_add_fetch(p, v, __ATOMIC_RELAXED)
#define FENCE()			__atomic_thread_fence(__ATOMIC_SEQ_CST)

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static uint32_t rnd(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* The word at @pos of the file, a multiple of its size, in that generation. */
static uint64_t word_at(size_t pos, uint32_t generation)
{
	return (uint64_t)((pos / WORD + 1) * 2654435761u & 0xffffffffu) << 32 | generation;
}

static bool write_file(const char *path, const char *val)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, val, strlen(val)) == (ssize_t)strlen(val);

	close(fd);
	return ok;
}

/* The number in a file of /proc or /sys, on the line that begins with @key; or 0 */
static unsigned long number(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	unsigned long ret = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			ret = strtoul(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return ret;
}

/*
 * File systems.  They are mounted before the first test, in a mount namespace of
 * this program, so that they go away with it, whatever happens to the tests.
 */

enum fs_id { TMPFS, TMPFS_HUGE, EXT4, XFS, TRACEFS, DEBUGFS, NR_FS };

struct fs {
	const char *name, *type, *opts;
	/* How to make it in a file; NULL if it is not on a disk. */
	const char *mkfs;
	char dir[80];
	char why[96];
};

static struct fs fs_table[NR_FS] = {
	[TMPFS] = { .name = "tmpfs", .type = "tmpfs", .opts = "size=64m,huge=never" },
	[TMPFS_HUGE] = { .name = "tmpfs_huge", .type = "tmpfs", .opts = "size=64m,huge=always" },
	[EXT4] = { .name = "ext4", .type = "ext4", .mkfs = "mkfs.ext4 -q -F -b 4096" },
	[XFS] = { .name = "xfs", .type = "xfs", .mkfs = "mkfs.xfs -q -f" },
	[TRACEFS] = { .name = "tracefs", .type = "tracefs" },
	[DEBUGFS] = { .name = "debugfs", .type = "debugfs" },
};

static char work_dir[48], instance[160];
static pid_t main_pid;

static void mount_one(struct fs *fs)
{
	char cmd[600];

	snprintf(fs->dir, sizeof(fs->dir), "%s/%s", work_dir, fs->name);
	if (mkdir(fs->dir, 0755)) {
		snprintf(fs->why, sizeof(fs->why), "mkdir: %s", strerror(errno));
	} else if (fs->mkfs) {
		snprintf(cmd, sizeof(cmd),
			 "cd %s && truncate -s 320M %s.img && %s %s.img && mount -o loop %s.img %s",
			 work_dir, fs->name, fs->mkfs, fs->name, fs->name, fs->name);
		if (system(cmd))
			snprintf(fs->why, sizeof(fs->why), "cannot make and mount %s", fs->name);
	} else if (mount(fs->type, fs->dir, fs->type, 0, fs->opts)) {
		snprintf(fs->why, sizeof(fs->why), "mount of %s: %s", fs->name, strerror(errno));
	}
}

static void undo_mounts(void)
{
	if (getpid() != main_pid)	/* Children may exit, too. */
		return;
	for (int tries = 0; rmdir(instance) && errno == EBUSY && tries < 1000; tries++)
		usleep(1000);
	umount2(work_dir, MNT_DETACH);
	rmdir(work_dir);
}

static void prepare_mounts(void)
{
	const char *why = NULL;
	int i;

	snprintf(work_dir, sizeof(work_dir), "/tmp/small_read_test.XXXXXX");
	main_pid = getpid();
	atexit(undo_mounts);
	if (!mkdtemp(work_dir))
		why = "no directory in /tmp";
	else if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		 mount("tmpfs", work_dir, "tmpfs", 0, "size=400m,huge=never"))
		why = "mounting takes root";
	for (i = 0; i < NR_FS; i++)
		if (why)
			snprintf(fs_table[i].why, sizeof(fs_table[i].why), "%s", why);
		else
			mount_one(&fs_table[i]);
	snprintf(instance, sizeof(instance), "%s/instances/%s", fs_table[TRACEFS].dir,
		 work_dir + strlen("/tmp/"));
}

/*
 * The race
 */

struct race {
	const struct fs *fs;
	char path[224];
	size_t size;
	/* To map it: where others may write to a mapping, some machines flush caches. */
	int fd, map_fd;
	uint32_t seed;
	/* See the comment at the top. */
	uint32_t started, done;
	/* Odd while folios are being taken away. */
	uint32_t rounds;
	/* Reads, those that a round came upon, and what rounds did. */
	unsigned long reads, met, effect;
	bool stop;
	/* The first thing that went wrong. */
	char wrong[160];
	uint64_t *secret;
	bool second_secret;
};

static void wrong(struct race *race, const char *what, size_t pos, uint64_t got)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!race->wrong[0])
		snprintf(race->wrong, sizeof(race->wrong), "%s at %zu: %#llx%s", what, pos,
			 (unsigned long long)got, got == SECRET ? ", which is the secret" : "");
	pthread_mutex_unlock(&lock);
	STORE(&race->stop, true);
}

/* Take the pages that were freed last, on this CPU, and write the secret there. */
static void reuse(struct race *race, size_t size)
{
	uint64_t *area;
	size_t i;

	race->second_secret = !race->second_secret;
	area = race->secret + race->second_secret * MAX_FILE / WORD;
	for (i = 0; i < size / WORD; i++)
		area[i] = SECRET;
	/* Only now, or else these pages would be the ones that are taken. */
	area = race->secret + !race->second_secret * MAX_FILE / WORD;
	madvise(area, MAX_FILE, MADV_DONTNEED);
}

static bool write_range(struct race *race, size_t pos, size_t len, uint32_t generation)
{
	uint64_t words[SPAN / WORD];
	size_t i, part;

	for (; len; pos += part, len -= part) {
		part = min(len, sizeof(words));
		for (i = 0; i < part / WORD; i++)
			words[i] = word_at(pos + i * WORD, generation);
		if (pwrite(race->fd, words, part, pos) != (ssize_t)part)
			return false;
	}
	return true;
}

/* If a word is written meanwhile, its bytes may be of any of the generations, or 0. */
static bool good_word(uint64_t word, size_t pos, uint32_t lo, uint32_t hi)
{
	unsigned int good = 0, byte;
	uint32_t gen = lo;
	uint64_t differ;

	for (;; gen++) {
		differ = word ^ word_at(pos, gen);
		if (!differ || lo == hi)
			return !differ;
		for (byte = 0; byte < WORD; byte++, differ >>= 8)
			good |= !(differ & 0xff) << byte | !(word >> 8 * byte & 0xff) << byte;
		if (gen == hi)
			return good == 0xff;
	}
}

static void *reader(void *arg)
{
	/* From one word to a page: what is copied in one way, and in the other. */
	static const size_t words[] = { 1, 4, 8, 8, 8, 15, 16, 17, 40, 512 };
	struct race *race = arg;
	uint32_t seed = ADD(&race->seed, 77), lo, hi, round;
	size_t pos = 0, at, len, i, half = race->size / 2;
	unsigned int stay = 0;
	uint64_t buf[512];
	ssize_t ret;
	int fd;

	fd = open(race->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		wrong(race, "cannot open", 0, errno);
	while (!LOAD(&race->stop)) {
		/* Often the same page again, so that it is known as used. */
		if (!stay--) {
			pos = rnd(&seed) % race->size / psz * psz;
			stay = rnd(&seed) % 16;
		}
		len = words[rnd(&seed) % ARRAY_SIZE(words)] * WORD;
		pos = pos / psz * psz + rnd(&seed) % (psz / WORD) * WORD;
		len = min(len, race->size - pos);

		round = LOAD(&race->rounds);
		lo = LOAD(&race->done);
		FENCE();
		ret = pread(fd, buf, len, pos);
		FENCE();
		hi = LOAD(&race->started);
		ADD(&race->reads, 1);
		if (round % 2 || LOAD(&race->rounds) != round)
			ADD(&race->met, 1);

		if (ret < 0) {
			wrong(race, strerror(errno), pos, ret);
			break;
		}
		if (ret != (ssize_t)len && (pos + len <= half || lo == hi || ret % WORD))
			wrong(race, "a short read", pos, ret);
		for (i = 0, at = pos; i < ret / WORD; i++, at += WORD)
			if (!good_word(buf[i], at, at < half ? 0 : lo, at < half ? 0 : hi))
				wrong(race, "a word", at, buf[i]);
	}
	close(fd);
	return NULL;
}

/* Begin and end a change of the second half. */
static void begin_change(struct race *race)
{
	STORE(&race->started, race->started + 1);
	FENCE();
}

static bool end_change(struct race *race, size_t pos, size_t len)
{
	bool ok = write_range(race, pos, len, race->started);

	FENCE();
	STORE(&race->done, race->started);
	return ok;
}

/* A range of the second half, or of all of the file */
static void pick(struct race *race, size_t from, size_t *pos, size_t *len)
{
	*len = (1 + rnd(&race->seed) % (SPAN / psz)) * psz;
	*pos = from + rnd(&race->seed) % ((race->size - from - *len) / psz + 1) * psz;
}

static size_t nr_cached(struct race *race, size_t pos, size_t len)
{
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, race->map_fd, pos);
	unsigned char vec[MAX_FILE / 4096];
	size_t i, nr = 0;

	if (map == MAP_FAILED)
		return 0;
	if (!mincore(map, len, vec))
		for (i = 0; i < len / psz; i++)
			nr += vec[i] & 1;
	munmap(map, len);
	return nr;
}

/* How many pages are in another frame than @pagemap says, which is made that of now */
static long moved(const char *map, size_t len, uint64_t *pagemap)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t i, size = len / psz * WORD;
	uint64_t now[SPAN / 4096];
	long nr = 0;

	if (pread(fd, now, size, (uintptr_t)map / psz * WORD) == (ssize_t)size) {
		for (i = 0; i < len / psz; i++)
			nr += now[i] & pagemap[i] & 1ULL << 63 && (now[i] ^ pagemap[i]) << 9;
		memcpy(pagemap, now, size);
	}
	close(fd);
	return nr;
}

/* Rounds: each returns how many folios it took, or -1 with an error in errno. */
typedef long (*round_fn)(struct race *race);

/* Cut off, in the middle of a page or not, or punched out */
static long round_truncate(struct race *race)
{
	size_t half = race->size / 2, pos, len;
	int ret;

	pick(race, half, &pos, &len);
	begin_change(race);
	if (rnd(&race->seed) % 2)
		ret = ftruncate(race->fd, pos + rnd(&race->seed) % 3 * 8 * WORD);
	else
		ret = fallocate(race->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, pos, len);
	if (ret)
		return -1;
	reuse(race, len);
	/* All of the half is of the new generation. */
	return end_change(race, half, half) ? 1 : -1;
}

static long round_dontneed(struct race *race)
{
	/* All of a folio, or it stays. */
	size_t pos = rnd(&race->seed) % (race->size / SPAN) * SPAN, len = SPAN, before;

	fdatasync(race->fd);
	before = nr_cached(race, pos, len);
	errno = posix_fadvise(race->fd, pos, len, POSIX_FADV_DONTNEED);
	if (errno)
		return -1;
	before -= min(before, nr_cached(race, pos, len));
	reuse(race, len);
	return before;
}

/* Have it reclaimed: dropped, or on tmpfs swapped out. */
static long round_pageout(struct race *race)
{
	long nr, swapped;
	size_t pos, len;
	char *map;

	pick(race, 0, &pos, &len);
	fdatasync(race->fd);
	map = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, race->map_fd, pos);
	if (map == MAP_FAILED)
		return -1;
	nr = nr_cached(race, pos, len);
	swapped = number(SMAPS, "Swap:");
	if (madvise(map, len, MADV_PAGEOUT))
		return -1;
	nr -= min(nr, nr_cached(race, pos, len));
	/* What has left the file for swap may still be in memory. */
	swapped = number(SMAPS, "Swap:") - swapped;
	munmap(map, len);
	reuse(race, len);
	return nr + (swapped > 0);
}

/* To the other node and back */
static long round_migrate(struct race *race)
{
	int nodes[SPAN / 4096], status[SPAN / 4096];
	uint64_t pagemap[SPAN / 4096] = {};
	void *pages[SPAN / 4096];
	size_t pos, len, i;
	char *map;
	long nr;

	pick(race, 0, &pos, &len);
	map = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, race->map_fd, pos);
	if (map == MAP_FAILED)
		return -1;
	for (i = 0; i < len / psz; i++) {
		pages[i] = map + i * psz;
		nodes[i] = race->rounds / 2 % 2;
	}
	moved(map, len, pagemap);
	syscall(__NR_move_pages, 0, len / psz, pages, nodes, status, MPOL_MF_MOVE);
	nr = moved(map, len, pagemap);
	munmap(map, len);
	reuse(race, len);
	return nr;
}

/* Map a range of the size of a huge page, where one fits. */
static char *map_pmd(struct race *race, size_t pos, char **area)
{
	char *map;

	*area = mmap(NULL, 2 * pmd_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*area == MAP_FAILED)
		return MAP_FAILED;
	map = (char *)(((uintptr_t)*area + pmd_size - 1) & ~(pmd_size - 1));
	return mmap(map, pmd_size, PROT_READ, MAP_SHARED | MAP_FIXED, race->map_fd, pos);
}

/* Is there a huge folio in the second half?  It would be mapped as one. */
static bool is_huge(struct race *race, bool collapse)
{
	char *area, *map = map_pmd(race, race->size / 2, &area);
	bool huge;

	if (map == MAP_FAILED)
		return false;
	if (collapse)
		madvise(map, pmd_size, MADV_COLLAPSE);
	(void)LOAD(map);
	huge = number(SMAPS, "ShmemPmdMapped:");
	munmap(area, 2 * pmd_size);
	return huge;
}

/* Small folios of the second half become a huge one, and that small ones again. */
static long round_collapse(struct race *race)
{
	bool took = !is_huge(race, false) && is_huge(race, true);
	size_t half = race->size / 2;

	reuse(race, pmd_size);
	begin_change(race);
	if (fallocate(race->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, half, SPAN) ||
	    !end_change(race, half, half))
		return -1;
	return took;
}

/* What huge=always has made is split, into folios of some size. */
static long round_split(struct race *race)
{
	static const int orders[] = { 0, 0, 2, 4 };
	size_t half = race->size / 2;
	char file[192], cmd[512];
	bool took;

	begin_change(race);
	if (fallocate(race->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, half, half) ||
	    !end_change(race, half, half))
		return -1;
	snprintf(file, sizeof(file), "%s/split_huge_pages", fs_table[DEBUGFS].dir);
	snprintf(cmd, sizeof(cmd), "%s,0x%zx,0x%zx,%d", race->path, half / psz, race->size / psz,
		 orders[rnd(&race->seed) % ARRAY_SIZE(orders)]);
	took = is_huge(race, false);
	/* Folios that are in use are not split, that is fine. */
	write_file(file, cmd);
	took &= !is_huge(race, false);
	reuse(race, SPAN);
	return took;
}

FIXTURE(small_read) { struct race race; };
FIXTURE_VARIANT(small_read) { enum fs_id fs; };
FIXTURE_VARIANT_ADD(small_read, tmpfs) { .fs = TMPFS };
FIXTURE_VARIANT_ADD(small_read, tmpfs_huge) { .fs = TMPFS_HUGE };
FIXTURE_VARIANT_ADD(small_read, ext4) { .fs = EXT4 };
FIXTURE_VARIANT_ADD(small_read, xfs) { .fs = XFS };

FIXTURE_SETUP(small_read)
{
	struct race *race = &self->race;

	race->fs = &fs_table[variant->fs];
	if (race->fs->why[0])
		SKIP(return, "%s", race->fs->why);
	race->size = variant->fs == TMPFS_HUGE && pmd_size ? 2 * pmd_size : 1UL << 20;
	if (race->size > MAX_FILE || psz > SPAN)
		SKIP(return, "pages are too large");
	race->seed = 1;
	snprintf(race->path, sizeof(race->path), "%s/race", race->fs->dir);
	race->fd = open(race->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ASSERT_GE(race->fd, 0);
	race->map_fd = open(race->path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(race->map_fd, 0);
	ASSERT_TRUE(write_range(race, 0, race->size, 0));
	race->secret = mmap(NULL, 2 * MAX_FILE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)race->secret);
	madvise(race->secret, 2 * MAX_FILE, MADV_NOHUGEPAGE);
}

FIXTURE_TEARDOWN_PARENT(small_read)
{
	unlink(self->race.path);
	rmdir(instance);
}

static void run(struct __test_metadata *_metadata, struct race *race, round_fn round)
{
	pthread_t threads[READERS];
	time_t begin = time(NULL);
	int i, err = 0;
	long nr = 0;

	if ((round == round_collapse || round == round_split) &&
	    (!pmd_size || race->fs != &fs_table[TMPFS_HUGE]))
		SKIP(return, "huge pages are tried on tmpfs_huge, where there are any");
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, reader, race));
	while (!LOAD(&race->stop) && nr >= 0 && time(NULL) - begin < MAX_SECONDS + seconds) {
		ADD(&race->rounds, 1);
		nr = round(race);
		err = nr < 0 ? errno : 0;
		ADD(&race->rounds, 1);
		race->effect += nr > 0 ? nr : 0;
		if (LOAD(&race->reads) >= MIN_READS && race->rounds >= 2 * MIN_ROUNDS &&
		    time(NULL) - begin >= seconds)
			break;
	}
	STORE(&race->stop, true);
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));

	ASSERT_STREQ("", race->wrong);
	if (err == EOPNOTSUPP || err == EPERM)
		SKIP(return, "%s: %s", race->fs->name, strerror(err));
	ASSERT_EQ(0, err);
	if (!race->effect)
		SKIP(return, "%u rounds took nothing away", race->rounds / 2);
	TH_LOG("%lu reads, %lu of them during one of %u rounds, which took %lu folios",
	       race->reads, race->met, race->rounds / 2, race->effect);
	ASSERT_NE(0UL, race->met);
}

TEST_F_TIMEOUT(small_read, truncate, TIMEOUT)
{
	run(_metadata, &self->race, round_truncate);
}

TEST_F_TIMEOUT(small_read, dontneed, TIMEOUT)
{
	run(_metadata, &self->race, round_dontneed);
}

TEST_F_TIMEOUT(small_read, pageout, TIMEOUT)
{
	run(_metadata, &self->race, round_pageout);
}

TEST_F_TIMEOUT(small_read, migrate, TIMEOUT)
{
	run(_metadata, &self->race, round_migrate);
}

TEST_F_TIMEOUT(small_read, collapse, TIMEOUT)
{
	run(_metadata, &self->race, round_collapse);
}

TEST_F_TIMEOUT(small_read, split, TIMEOUT)
{
	run(_metadata, &self->race, round_split);
}

/*
 * What a read returns, and what it leaves alone
 */

/* A read of @len bytes at @pos of a file of @size bytes, and of nothing else */
static void check_read(struct __test_metadata *_metadata, int fd, const unsigned char *data,
		       size_t size, size_t len, size_t pos)
{
	size_t want = pos < size ? min(len, size - pos) : 0, i;
	static unsigned char buf[32 << 10];

	ASSERT_LE(len + 128, sizeof(buf));
	memset(buf, 0xa5, len + 128);
	ASSERT_EQ((ssize_t)want, pread(fd, buf + 64, len, pos)) {
		TH_LOG("%zu bytes at %zu of %zu: %s", len, pos, size, strerror(errno));
	}
	ASSERT_EQ(0, memcmp(buf + 64, data + pos, want)) {
		TH_LOG("%zu bytes at %zu of %zu", len, pos, size);
	}
	for (i = 0; i < len + 128; i++)
		if (i < 64 || i >= 64 + want)
			ASSERT_EQ(0xa5, buf[i]);
}

static const size_t lengths[] = {
	1, 7, 8, 9, 31, 32, 33, 64, 96, 97, 127, 128, 129, 160, 255, 256, 257, 1024, 4096, 4097,
};

/* What a file has is what counts, and not how much was asked for. */
TEST_F_TIMEOUT(small_read, end_of_file, TIMEOUT)
{
	const size_t sizes[] = { 2 * psz + 64, psz + 1, psz, psz - 1, 129, 128, 127, 100, 1, 0 };
	uint64_t *data = malloc(4 * psz);
	int fd = self->race.fd;
	size_t i, s, at;

	ASSERT_NE(NULL, data);
	for (i = 0; i < 4 * psz / WORD; i++)
		data[i] = word_at(i * WORD, 0);
	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		ASSERT_EQ(0, ftruncate(fd, sizes[s]));
		for (i = 0; i < ARRAY_SIZE(lengths); i++) {
			/* Where a page begins or ends, too, if the file is that long */
			for (at = sizes[s] - min(sizes[s], 200); at < sizes[s] + 3; at++)
				check_read(_metadata, fd, (void *)data, sizes[s], lengths[i], at);
			check_read(_metadata, fd, (void *)data, sizes[s], lengths[i], 3 * psz);
		}
	}
}

/* Read into memory that is not there yet, or ends before all has been copied. */
TEST_F(small_read, faults)
{
	char want[256], *map, *at;
	size_t i, n, room;
	ssize_t ret;

	map = mmap(NULL, 4 * psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, munmap(map + psz, psz));
	ASSERT_EQ((ssize_t)sizeof(want), pread(self->race.fd, want, sizeof(want), 11));
	for (i = 0; lengths[i] <= sizeof(want); i++) {
		for (n = 0; n < 2 * lengths[i] + 2; n++) {
			room = n / 2;
			/* There, or gone */
			memset(map, 0, psz);
			if (n % 2)
				ASSERT_EQ(0, madvise(map, psz, MADV_DONTNEED));
			ret = pread(self->race.fd, map + psz - room, lengths[i], 11);
			/* Not every architecture copies up to the last byte. */
			ASSERT_TRUE(ret < 0 ? errno == EFAULT : ret > 0 && ret <= (ssize_t)room);
			ASSERT_TRUE(room < lengths[i] || ret == (ssize_t)room);
			ASSERT_EQ(0, memcmp(map + psz - room, want, ret > 0 ? ret : 0));
		}
		at = map + 3 * psz - lengths[i] / 2;
		ASSERT_EQ(0, madvise(map + 2 * psz, 2 * psz, MADV_DONTNEED));
		map[2 * psz] = 0;	/* The first half is there. */
		ASSERT_EQ((ssize_t)lengths[i], pread(self->race.fd, at, lengths[i], 11));
		ASSERT_EQ(0, memcmp(at, want, lengths[i]));
	}
}

/*
 * Which way a read goes
 */

/* How often this task changes a page's count of references in @nr reads, or touches */
static long count_references(struct __test_metadata *_metadata, int fd, size_t len, int nr)
{
	static char trace[1 << 20], buf[8192];
	char *map, *at, path[300], val[32];
	ssize_t ret, size = 0;
	int i, tfd, events = 0;

	ASSERT_EQ(0, mkdir(instance, 0755));
	snprintf(path, sizeof(path), "%s/set_event_pid", instance);
	snprintf(val, sizeof(val), "%d", (int)syscall(__NR_gettid));
	ASSERT_TRUE(write_file(path, val));
	/* Nothing else is to fault when it counts. */
	memset(buf, 1, sizeof(buf));
	map = mmap(NULL, psz, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	snprintf(path, sizeof(path), "%s/events/page_ref/enable", instance);
	ASSERT_TRUE(write_file(path, "1"));
	for (i = 0; len && i < nr; i++)
		ret = pread(fd, buf, len, 0);
	if (!len)
		(void)LOAD(map);
	ASSERT_TRUE(write_file(path, "0"));
	munmap(map, psz);

	snprintf(path, sizeof(path), "%s/trace", instance);
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
	rmdir(instance);
	return events;
}

/*
 * Small reads of a page that is in use leave its count of references alone.
 * This is what the rest is for, and what fails on kernels that cannot do so.
 */
TEST_F(small_read, no_reference)
{
	static const size_t asked[] = { 1, 64, 100, 128, 4096 };
	const int nr = 100;
	struct utsname os = {};
	char path[256], buf[128];
	size_t i, size = 100;
	cpu_set_t one;
	void *map;
	long refs;

	snprintf(path, sizeof(path), "%s/events/page_ref/enable", fs_table[TRACEFS].dir);
	if (fs_table[TRACEFS].why[0] || access(path, W_OK))
		SKIP(return, "no page_ref tracepoints: needs CONFIG_DEBUG_PAGE_REF");
	if (!uname(&os) && strstr(os.version, "PREEMPT_RT") && sizeof(long) == 4)
		SKIP(return, "with PREEMPT_RT, what is in highmem is read with a reference");
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);

	/* The file is all of what is asked for, or less than that. */
	ASSERT_EQ(0, ftruncate(self->race.fd, size));
	map = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	/* Often enough to be known as used; this advice lets the LRU see it. */
	for (i = 0; i < 64; i++) {
		ASSERT_EQ((ssize_t)size, pread(self->race.fd, buf, sizeof(buf), 0));
		madvise(map, psz, MADV_COLD);
	}
	/* Mapping the page changes it, or there would be nothing to see. */
	ASSERT_GT(count_references(_metadata, self->race.fd, 0, 1), 0);
	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		refs = count_references(_metadata, self->race.fd, asked[i], nr);
		/* One for each read would be a hundred. */
		EXPECT_LT(refs, nr / 10) {
			TH_LOG("%d reads of %zu bytes changed it %ld times", nr, asked[i], refs);
		}
	}
	munmap(map, psz);
}

int main(int argc, char **argv)
{
	const char *env = getenv("SMALL_READ_SECONDS");

	psz = sysconf(_SC_PAGESIZE);
	pmd_size = number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "");
	if (env)
		seconds = strtoul(env, NULL, 10);
	signal(SIGINT, exit);
	signal(SIGTERM, exit);
	prepare_mounts();
	return test_harness_run(argc, argv);
}
