// SPDX-License-Identifier: GPL-2.0
/*
 * Small reads that race with everything that takes folios out of the page cache, or
 * puts others in their place: what the kernel's small_read_test does in short, for
 * as long as one likes, with any number of readers, and with more antagonists.
 *
 * The first half of the file never changes. The second half is written in
 * generations, between increments of begun and ended. A read that meets none of these
 * returns all of one generation. Else bytes may be of any of those that it met, or
 * zero, and a read may be short.
 */
#define _FILE_OFFSET_BITS 64
#include <linux/mempolicy.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>

#include "kselftest.h"
#include "small_read.h"

#define MOST_READERS	256
#define CONTROLS	20
#define MIN_ROUNDS	20
#define PUNCH		(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
/* A test is stuck if it takes that long beyond its time. */
#define STUCK_SECONDS	300

static struct {
	unsigned int reads, seconds, readers, seed;
	const char *fs, *how;
} opt = { .reads = 6000, .readers = 2, .seed = 1 };

static enum fs_id fs;
static int fd;
static ssize_t size, half, huge_size;
static int control_fd;			/* of the antagonist */
static uint32_t seed, begun, ended, rounds;
static uint32_t stop;
static int nodes[2];

/* What a race hands over, in shared memory */
static struct result {
	uint64_t reads, met;
	long tried, taken;
	unsigned int rounds;
	char wrong[128], skip[96];
} *result;

static void fails(const char *what, ssize_t pos, uint64_t got)
{
	if (ADD(&stop, 1) == 1)
		snprintf(result->wrong, sizeof(result->wrong), "%s at %zd: %#jx", what, pos,
			 (uintmax_t)got);
}

/* ---- readers ---- */

/* @gone: two pages, of which the second comes and goes */
static ssize_t do_read(int own, void *buf, ssize_t len, ssize_t pos, unsigned int turn, char *gone)
{
	struct iovec iov[2] = {
		{ .iov_base = buf, .iov_len = len / 3 },
		{ .iov_base = buf + len / 3, .iov_len = len - len / 3 },
	};
	ssize_t ret;

	if (turn % 16 == 3)
		return preadv(own, iov, 2, pos);
	if (turn % 16 == 11) {
		/* The end of the buffer, or all of it, is not there: a copy stops. */
		gone -= turn / 16 % (len + 1);
		madvise(gone + turn / 16 % (len + 1), psz, MADV_DONTNEED);
		ret = pread(own, gone, len, pos);
		memcpy(buf, gone, MAX(ret, 0));
		return ret;
	}
	if (turn % 16 != 7)
		return pread(own, buf, len, pos);
	/* Such a read may find less, or nothing at all. */
	ret = preadv2(own, iov, 2, pos, RWF_NOWAIT);
	return ret < 0 && (errno == EAGAIN || errno == EOPNOTSUPP) ? 0 : ret;
}

static void *read_words(void *unused)
{
	static const int words[] = { 1, 1, 2, 4, 5, 8, 8, 9, 16, 32, 512 };
	uint32_t state = ADD(&seed, 77), round, turn = 0;
	ssize_t page = 0, pos, len, ret, i;
	int own = reopen(fd, O_RDONLY);
	uint64_t buf[512];
	uint8_t from, to;
	char *gone = mmap(NULL, 2 * psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);

	while (!LOAD(&stop)) {
		/* Often the same page again, so that it is known as used */
		if (!(turn++ % 16))
			page = rand_r(&state) % (size / psz) * psz;
		pos = page + rand_r(&state) % (psz / WORD) * WORD;
		len = MIN(words[turn % 11] * WORD, size - pos);
		round = LOAD(&rounds);
		from = LOAD(&ended);
		ret = do_read(own, buf, len, pos, turn, gone + psz);
		to = LOAD(&begun);
		if (round % 2 || LOAD(&rounds) != round)
			ADD(&result->met, 1);
		ADD(&result->reads, 1);
		if (ret < 0 || (ret < len && turn % 16 != 7 &&
				(from == to || pos + len <= half)))
			fails("a count", pos, ret < 0 ? errno : ret);
		for (i = 0; i < ret / WORD; i++, pos += WORD)
			if (!good_word(buf[i], pos, pos < half ? 0 : from, pos < half ? 0 : to))
				fails(buf[i] == SECRET ? "the secret" : "a word", pos, buf[i]);
	}
	close(own);
	return unused;
}

/* ---- antagonists: each round returns 0, or -errno ---- */

static bool stored(void)
{
	return fs == EXT4 || fs == XFS;
}

static ssize_t pick(ssize_t from, ssize_t unit)
{
	return from + rand_r(&seed) % ((size - from) / unit) * unit;
}

static void took(long before, long after)
{
	result->tried += before;
	result->taken += MAX(before - after, 0);
}

/* Change the second half: @gone is what takes some of it away first. */
static int change(int (*gone)(ssize_t pos), ssize_t unit, int flags)
{
	ssize_t pos = pick(half, unit);
	long before = nr_cached(fd, pos, unit);
	int err;

	ADD(&begun, 1);
	err = gone ? gone(pos) : 0;
	took(before, gone ? nr_cached(fd, pos, unit) : 0);
	reuse(unit);
	/* Also where nothing could be taken: this is a new generation. */
	if (!write_words(fd, half, half, begun, flags) && !err)
		err = -errno;
	ADD(&ended, 1);
	return err;
}

static int cut_off(ssize_t pos)
{
	return ftruncate(fd, pos + rand_r(&seed) % 3 * WORD) ? -errno : 0;
}

static int punch_out(ssize_t pos)
{
	return fallocate(fd, PUNCH, pos, SPAN) ? -errno : 0;
}

static int zero_out(ssize_t pos)
{
	return fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, pos, SPAN) ? -errno : 0;
}

/* Folios of fallocate() take the place, which are huge if tmpfs can */
static int punch_huge(ssize_t pos)
{
	if (fallocate(fd, PUNCH, pos, half))
		return -errno;
	reuse(SPAN);
	return fallocate(fd, 0, pos, half) ? -errno : 0;
}

static int drop(ssize_t pos)
{
	fdatasync(fd);
	return -posix_fadvise(fd, pos, SPAN, POSIX_FADV_DONTNEED);
}

static int round_overwrite(void)
{
	return change(NULL, SPAN, 0);
}

static int round_truncate(void)
{
	return change(cut_off, SPAN, 0);
}

static int round_punch(void)
{
	return change(punch_out, SPAN, 0);
}

static int round_zero(void)
{
	return change(zero_out, SPAN, 0);
}

static int round_prealloc(void)
{
	return change(punch_huge, half, 0);
}

/* By RWF_DONTCACHE, and read by it */
static int round_dontcache(void)
{
	ssize_t pos = pick(0, SPAN);
	char buf[4096];
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
	int err = change(drop, SPAN, DONTCACHE);
	long before;

	if (err || fdatasync(fd))
		return err ?: -errno;
	drop(pos);
	before = nr_cached(fd, pos, SPAN);
	if (preadv2(fd, &iov, 1, pos, DONTCACHE) < 0)
		return -errno;
	took(before + 1, nr_cached(fd, pos, SPAN));
	reuse(SPAN);
	return 0;
}

/* Writes of O_DIRECT drop what is cached. */
static int round_direct(void)
{
	long before = nr_cached(fd, half, SPAN);
	int own = reopen(fd, O_RDWR | O_DIRECT), err = 0;

	if (own < 0)
		return -errno;
	ADD(&begun, 1);
	if (!write_words(own, half, half, begun, 0))
		err = -errno;
	ADD(&ended, 1);
	took(before, nr_cached(fd, half, SPAN));
	reuse(SPAN);
	close(own);
	return err;
}

static int round_dontneed(void)
{
	ssize_t pos = pick(0, SPAN);
	long before = nr_cached(fd, pos, SPAN);
	int err = drop(pos);

	took(before, nr_cached(fd, pos, SPAN));
	reuse(SPAN);
	return err;
}

static int round_drop_caches(void)
{
	long before;

	fdatasync(fd);
	before = nr_cached(fd, 0, size);
	if (pwrite(control_fd, "1", 1, 0) != 1)
		return -errno;
	took(before, nr_cached(fd, 0, size));
	reuse(SPAN);
	return 0;
}

static const char *setup_drop_caches(void)
{
	control_fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	return control_fd < 0 ? "cannot write to drop_caches" : NULL;
}

static int round_reclaim(void)
{
	long before;
	char buf[32];

	fdatasync(fd);
	before = nr_cached(fd, 0, size);
	snprintf(buf, sizeof(buf), "%zd", half);
	/* EAGAIN: there was less to reclaim. */
	if (write(control_fd, buf, strlen(buf)) < 0 && errno != EAGAIN)
		return -errno;
	result->tried += MIN(before, half / psz);
	result->taken += MIN(MAX(before - nr_cached(fd, 0, size), 0), MIN(before, half / psz));
	reuse(SPAN);
	return 0;
}

static const char *setup_reclaim(void)
{
	struct sysinfo info;
	const char *dir;
	char path[96];

	if (!stored() && (fs == RAMFS || sysinfo(&info) || !info.freeswap))
		return "the page cache is the storage, and there is no swap";
	dir = enter_cgroup("max");
	if (!dir)
		return "no cgroup2 with the memory controller";
	snprintf(path, sizeof(path), "%s/memory.reclaim", dir);
	control_fd = open(path, O_WRONLY);
	return control_fd < 0 ? "no memory.reclaim" : NULL;
}

static int round_compact(void)
{
	unsigned long moved = number("/proc/vmstat", "pgmigrate_success ");
	unsigned long failed = number("/proc/vmstat", "pgmigrate_fail ");

	/* Without free pages between them, pages have nowhere to move to. */
	drop(pick(0, SPAN));
	if (pwrite(control_fd, "1", 1, 0) != 1)
		return -errno;
	moved = number("/proc/vmstat", "pgmigrate_success ") - moved;
	failed = number("/proc/vmstat", "pgmigrate_fail ") - failed;
	took(moved + failed, failed);
	reuse(SPAN);
	return 0;
}

static const char *setup_compact(void)
{
	control_fd = open("/proc/sys/vm/compact_memory", O_WRONLY);
	return control_fd < 0 ? "cannot write to compact_memory" : NULL;
}

static int round_move(void)
{
	char *map = mmap(NULL, SPAN, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, pick(0, SPAN));
	int to[16], status[16], n = SPAN / psz, i, moved = 0;
	void *pages[16];

	for (i = 0; i < n; i++) {
		pages[i] = map + i * psz;
		to[i] = nodes[rounds / 2 % 2];
		status[i] = -EIO;
	}
	if (syscall(__NR_move_pages, 0, n, pages, to, status, MPOL_MF_MOVE) < 0)
		return -errno;
	munmap(map, SPAN);
	for (i = 0; i < n; i++)
		moved += status[i] == to[i];
	took(n, n - moved);
	reuse(SPAN);
	return 0;
}

static const char *setup_move(void)
{
	char buf[64] = "", *last;
	int own = open("/sys/devices/system/node/has_memory", O_RDONLY);

	if (own < 0 || read(own, buf, sizeof(buf) - 1) < 0 || !strpbrk(buf, ",-"))
		return "less than two nodes have memory";
	last = MAX(strrchr(buf, '-'), strrchr(buf, ','));
	nodes[0] = atoi(buf);
	nodes[1] = atoi(last + 1);
	close(own);
	return NULL;
}

static const char *setup_huge(void)
{
	return huge_size && half == huge_size ? NULL : "no huge pages that fit";
}

static char *map_half(char **area)
{
	int own = reopen(fd, O_RDONLY);
	char *map;

	*area = mmap(NULL, 2 * half, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	map = (char *)(((uintptr_t)*area + half - 1) / half * half);
	map = mmap(map, half, PROT_READ, MAP_SHARED | MAP_FIXED, own, half);
	close(own);
	return map;
}

/* Small folios become a huge one, which a hole splits. */
static int round_collapse(void)
{
	unsigned long before = number("/proc/vmstat", "thp_collapse_alloc ");
	char *area, *map = map_half(&area);

	if (!madvise(map, half, MADV_COLLAPSE))
		took(number("/proc/vmstat", "thp_collapse_alloc ") - before, 0);
	munmap(area, 2 * half);
	reuse(half);
	return change(punch_out, SPAN, 0);
}

static const char *setup_collapse(void)
{
	return stored() || fs == RAMFS ? "what is tried is tmpfs" : setup_huge();
}

static const char *setup_split(void)
{
	if (setup_huge() || (fs != TMPFS_HUGE && !stored()))
		return "no large folios";
	control_fd = open(fs_path(DEBUGFS, "split_huge_pages"), O_WRONLY);
	return control_fd < 0 ? "no split_huge_pages" : NULL;
}

/* How many folios of any size have been split */
static unsigned long splits(void)
{
	unsigned long nr = 0, kb;
	char path[96];

	for (kb = 8; kb <= (unsigned long)half >> 10; kb *= 2) {
		snprintf(path, sizeof(path),
			 "/sys/kernel/mm/transparent_hugepage/hugepages-%lukB/stats/split", kb);
		nr += number(path, "");
	}
	return nr;
}

static int round_split(void)
{
	static const int orders[] = { 0, 0, 2, 4 };
	unsigned long before;
	char *area, *map, cmd[96];
	int err = 0;

	/* Get large folios into the page cache: readahead by a fault obeys the advice. */
	if (stored()) {
		fdatasync(fd);
		posix_fadvise(fd, half, half, POSIX_FADV_DONTNEED);
		map = map_half(&area);
		madvise(map, half, MADV_HUGEPAGE);
		(void)LOAD(map);
		munmap(area, 2 * half);
	} else {
		err = change(punch_huge, half, 0);
	}
	/* Into folios of different orders, as small as that around one page */
	snprintf(cmd, sizeof(cmd), "/proc/%d/fd/%d,0x%zx,0x%zx,%d", getpid(), fd, half / psz,
		 size / psz, orders[rand_r(&seed) % 4]);
	if (rand_r(&seed) % 2)
		snprintf(cmd + strlen(cmd), 16, ",%zd", rand_r(&seed) % (half / psz));
	before = splits();
	/* Folios that are in use are not split. */
	if (write(control_fd, cmd, strlen(cmd)) < 0 && errno != EAGAIN && errno != EBUSY)
		return -errno;
	took(splits() - before, 0);
	reuse(SPAN);
	return err;
}

/* What takes content away, and what takes folios away, by turns */
static int round_mixed(void)
{
	static int (*const all[])(void) = {
		round_truncate, round_dontneed, round_punch, round_overwrite, round_dontneed,
	};
	int err = all[rand_r(&seed) % ARRAY_SIZE(all)]();

	return err == -EOPNOTSUPP ? 0 : err;	/* ramfs has no holes */
}

static const struct antagonist {
	const char *name;
	int (*round)(void);
	const char *(*setup)(void);
	bool stored;		/* only where the page cache is not the storage */
	const char *taken;	/* what it takes */
	bool huge;		/* a huge page is to fit in half of the file */
} antagonists[] = {
	{ "overwrite", round_overwrite, NULL, false, NULL, false },
	{ "truncate", round_truncate, NULL, false, "pages truncated", false },
	{ "punch_hole", round_punch, NULL, false, "pages punched out", false },
	{ "zero_range", round_zero, NULL, true, NULL, false },
	{ "prealloc", round_prealloc, NULL, false, NULL, true },
	{ "direct", round_direct, NULL, true, "pages invalidated", false },
	{ "dontcache", round_dontcache, NULL, true, "pages dropped", false },
	{ "dontneed", round_dontneed, NULL, true, "pages evicted", false },
	{ "drop_caches", round_drop_caches, setup_drop_caches, true, "pages evicted", false },
	{ "reclaim", round_reclaim, setup_reclaim, false, "pages reclaimed", false },
	{ "compact", round_compact, setup_compact, false, "pages migrated, of any kind", false },
	{ "move_pages", round_move, setup_move, false, "pages migrated", false },
	{ "madv_collapse", round_collapse, setup_collapse, false, "pages collapsed", true },
	{ "split", round_split, setup_split, false, "pages split", true },
	{ "mixed", round_mixed, NULL, false, NULL, false },
};

/* ---- running ---- */

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/*
 * Until it is killed, this process puts the secret into whatever becomes free: as
 * anonymous memory, and as the page cache of a file.
 */
static pid_t start_secret(void)
{
	pid_t parent = getpid(), pid = fork();
	static uint64_t buf[SPAN / WORD];
	size_t i;
	int own;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	own = make_file(fs);
	for (i = 0; i < ARRAY_SIZE(buf); i++)
		buf[i] = SECRET;
	for (;;) {
		reuse(SPAN);
		if (pwrite(own, buf, SPAN, 0) < 0 || ftruncate(own, 0))
			_exit(1);
		sched_yield();
	}
}

static void run_race(const struct antagonist *ant)
{
	pthread_t threads[MOST_READERS];
	const char *why;
	unsigned int i;
	time_t end;
	pid_t pid;
	int err = 0;

	alarm(opt.seconds + opt.reads / 100 + STUCK_SECONDS);
	half = ant->huge && huge_size && huge_size <= MAX_SPAN ? huge_size : 8 * SPAN;
	size = 2 * half;
	seed = opt.seed;
	fd = make_file(fs);
	/* The file's pages are of the cgroup that is set up. */
	why = ant->setup ? ant->setup() : NULL;
	if (fd < 0 || !write_words(fd, 0, size, 0, 0)) {
		fails("no file", 0, errno);
		return;
	}
	if (ant->stored && !stored())
		why = "the page cache is the storage";
	/* What takes nothing without readers need not beside them. */
	for (i = 0; !why && i < CONTROLS && !err && !result->taken; i++)
		err = ant->round();
	if (!why && (err == -EOPNOTSUPP || (!err && ant->taken && !result->taken)))
		why = "it takes nothing without readers, either";
	if (why) {
		snprintf(result->skip, sizeof(result->skip), "%s", why);
		return;
	}
	result->tried = 0;
	result->taken = 0;
	pid = start_secret();
	for (i = 0; i < opt.readers; i++)
		if (pthread_create(&threads[i], NULL, read_words, NULL))
			fails("no thread", i, errno);
	end = now() + opt.seconds;
	while (!err && !LOAD(&stop)) {
		ADD(&rounds, 1);
		err = ant->round();
		ADD(&rounds, 1);
		if (rounds / 2 >= MIN_ROUNDS && now() >= end &&
		    (opt.seconds || LOAD(&result->reads) >= opt.reads) &&
		    (!ant->taken || result->taken || rounds / 2 > 200))
			break;
	}
	if (err)
		fails(ant->name, 0, -err);
	ADD(&stop, 1);
	for (i = 0; i < opt.readers; i++)
		pthread_join(threads[i], NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	result->rounds = rounds / 2;
	if (!result->wrong[0] && !result->met)
		snprintf(result->wrong, sizeof(result->wrong), "no read met a round");
	if (result->wrong[0] || !ant->taken || result->taken)
		return;
	/* Compaction may find nothing to move: then it finds nothing without readers, either. */
	for (i = 0; i < CONTROLS && !result->taken; i++)
		ant->round();
	if (result->taken)
		snprintf(result->wrong, sizeof(result->wrong), "nothing was taken beside readers");
	else
		snprintf(result->skip, sizeof(result->skip), "it takes nothing any more");
}

/* In a process of its own */
static void test_race(const struct antagonist *ant)
{
	const char *name = fs_table[fs].name;
	char cgroup[64];
	int status = 0;
	pid_t pid;

	if (!fs_table[fs].mounted) {
		ksft_test_result_skip("%s %s: not mounted\n", name, ant->name);
		return;
	}
	memset(result, 0, sizeof(*result));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_race(ant);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	snprintf(cgroup, sizeof(cgroup), "/tmp/cgroup2/small_read.%d", pid);
	rmdir(cgroup);
	if (result->skip[0] && !status) {
		ksft_test_result_skip("%s %s: %s\n", name, ant->name, result->skip);
		return;
	}
	ksft_print_msg("%s %s: %ju reads, of which %ju met one of %u rounds\n", name, ant->name,
		       (uintmax_t)result->reads, (uintmax_t)result->met, result->rounds);
	if (ant->taken)
		ksft_print_msg("%s %s: %ld of %ld %s\n", name, ant->name, result->taken,
			       result->tried, ant->taken);
	if (status || result->wrong[0])
		ksft_print_msg("%s %s: %s, status %#x\n", name, ant->name, result->wrong, status);
	ksft_test_result(!status && !result->wrong[0], "%s %s\n", name, ant->name);
}

static void usage(void)
{
	printf("usage: small_read_race [-n reads] [-s seconds] [-r readers] [-S seed]\n"
	       "	[-f file system] [-t antagonist]\n"
	       "Each race does that many reads, or reads for that long. In the environment:\n"
	       "SMALL_READ_RACE_READS, SMALL_READ_RACE_SECONDS\n");
	exit(KSFT_FAIL);
}

int main(int argc, char **argv)
{
	const char *reads = getenv("SMALL_READ_RACE_READS");
	const char *seconds = getenv("SMALL_READ_RACE_SECONDS");
	unsigned int i, plan = 0, turn;
	int c;

	if (reads)
		opt.reads = strtoul(reads, NULL, 0);
	if (seconds)
		opt.seconds = strtoul(seconds, NULL, 0);
	while ((c = getopt(argc, argv, "n:s:r:S:f:t:")) != -1) {
		if (c == 'n')
			opt.reads = strtoul(optarg, NULL, 0);
		else if (c == 's')
			opt.seconds = strtoul(optarg, NULL, 0);
		else if (c == 'r')
			opt.readers = strtoul(optarg, NULL, 0);
		else if (c == 'S')
			opt.seed = strtoul(optarg, NULL, 0);
		else if (c == 'f')
			opt.fs = optarg;
		else if (c == 't')
			opt.how = optarg;
		else
			usage();
	}
	if (optind != argc || !opt.readers || opt.readers > MOST_READERS)
		usage();
	psz = sysconf(_SC_PAGESIZE);
	huge_size = number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "");
	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	ksft_print_header();
	mount_all();
	for (turn = 0; turn < 2; turn++) {
		for (fs = TMPFS; fs <= XFS; fs++) {
			for (i = 0; i < ARRAY_SIZE(antagonists); i++) {
				if ((opt.fs && strcmp(opt.fs, fs_table[fs].name)) ||
				    (opt.how && strcmp(opt.how, antagonists[i].name)))
					continue;
				if (turn)
					test_race(&antagonists[i]);
				else
					plan++;
			}
		}
		if (!turn)
			ksft_set_plan(plan);
	}
	ksft_finished();
}
