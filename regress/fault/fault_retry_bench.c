// SPDX-License-Identifier: GPL-2.0
/*
 * What page faults cost that have to wait for I/O, and how long they keep a
 * neighbour waiting who wants to change the address space meanwhile.
 *
 * Workers are threads that share a mapping. In each round, the pages they are
 * going to touch are taken out of memory first, and then each worker touches
 * its own: every touch is a fault that waits. Only the touches are between the
 * marks, so that what is counted by tracepoints there can be divided by their
 * number.
 *
 * The neighbour is a thread that changes a mapping of its own, or forks, again
 * and again while the workers fault. The bystander is a thread that has faults,
 * too, but in a mapping of its own, and does not wait for any I/O.
 *
 * Nothing here passes or fails on time. Wrong data, or pages that are in memory
 * when they should not be, are an error.
 */
#include "bench.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT		21
#endif

#define MAX_SIZE		(1024 * 1024 * 1024ULL)
#define MAX_THREADS		96	/* FILE_MISSES, as each of them has one at least */
#define DEFAULT_SECONDS		1
#define WRITE_SIZE		(1024 * 1024U)

/*
 * Touches this far apart are not read together with others: twice what is read
 * around a fault in a file, which is this much unless the device says otherwise,
 * and twice what swap does.
 */
#define READ_AHEAD_KB		128U
#define SWAP_PAGES		16

/*
 * An open file that has had more misses than this is not read ahead any more,
 * so "file" would turn into "random". Files are opened anew for each round.
 */
#define FILE_MISSES		96

/* In a round, for the others: it takes that many pages of memory for the swap cache */
#define MAX_ROUND		1024

/* How often to try to get rid of pages, some of which are being written */
#define EVICT_TRIES		4000
#define EVICT_PAUSE_US		5000

enum mode { MODE_FILE, MODE_RANDOM, MODE_SWAP, MODE_MEMCG };
enum neighbour {
	NEIGHBOUR_NONE, NEIGHBOUR_MPROTECT, NEIGHBOUR_MPROTECT_ALL, NEIGHBOUR_MUNMAP, NEIGHBOUR_FORK
};

enum verify { VERIFY_SAMPLE, VERIFY_FULL };

static const char *const mode_names[] = { "file", "random", "swap", "memcg", NULL };
static const char *const neighbour_names[] = {
	"none", "mprotect", "mprotect-all", "munmap", "fork", NULL
};

static const char *const verify_names[] = { "sample", "full", NULL };

static struct {
	struct bench_list modes;
	const char *dir;
	unsigned int threads;
	unsigned int warmup;
	unsigned int pause_us;
	enum neighbour neighbour;
	enum verify verify;
	__u64 file_size;
	__u64 stride;		/* 0: by mode */
	__u64 faults;		/* per thread; 0: limited by time */
	double seconds;		/* 0: limited by number */
	bool bystander;
	bool corrupt;
	bool json;
	bool marker;
	bool pin;
} cfg = {
	.modes = { 1, { MODE_FILE } },
	.dir = "/tmp",
	.threads = 4,
	.warmup = 1,
	.pause_us = 1000,
	.file_size = 32 * 1024 * 1024,
};

static size_t page_size;

/* ---- marks in the kernel's trace ---- */

static void mark(const char *what, enum mode mode, __u64 faults)
{
	bench_mark("%s mode=%s threads=%u neighbour=%s faults=%llu\n", what, mode_names[mode],
		   cfg.threads, neighbour_names[cfg.neighbour], faults);
}

/* ---- data ---- */

/* What is at a position: no two words are alike, and none is zero */
static inline __u64 word_at(__u64 pos)
{
	return (pos + 1) * 0x9e3779b97f4a7c15ULL;
}

static void pattern_fill(void *buf, __u64 pos, size_t len)
{
	__u64 *p = buf;
	size_t i;

	for (i = 0; i < len / sizeof(*p); i++)
		p[i] = word_at(pos + i * sizeof(*p));
}

/* ---- small files of the kernel's ---- */

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

/* What /proc/vmstat counts in the whole system: others fault, too */
static const char *const events[] = { "pgmajfault", "vma_lock_success", "vma_lock_retry" };
enum { PGMAJFAULT, VMA_LOCK_SUCCESS, VMA_LOCK_RETRY, NR_EVENTS };

/* Only a kernel that is configured to counts what is done under VMA locks */
static bool counted[NR_EVENTS];

static void read_events(__u64 *val)
{
	FILE *file = fopen("/proc/vmstat", "re");
	unsigned long long count;
	char line[256], name[64];
	unsigned int i;

	if (!file)
		bench_skip("/proc/vmstat cannot be read");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %llu", name, &count) != 2)
			continue;
		for (i = 0; i < NR_EVENTS; i++) {
			if (strcmp(name, events[i]))
				continue;
			val[i] = count;
			counted[i] = true;
		}
	}
	fclose(file);
	if (!counted[PGMAJFAULT])
		bench_skip("the kernel does not count major faults");
}

/* ---- memory cgroup ---- */

/* Made and removed by the parent of the process that measures */
static char memcg[PATH_MAX];

static int memcg_write(const char *name, const char *val)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", memcg, name);
	return write_str(path, val);
}

static void memcg_make(void)
{
	char line[PATH_MAX], type[64], root[PATH_MAX / 2], path[PATH_MAX];
	FILE *file = fopen("/proc/self/mounts", "re");
	bool found = false;

	if (!file)
		bench_die_errno("/proc/self/mounts");
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*s %2047s %63s", root, type) == 2 &&
			!strcmp(type, "cgroup2");
	fclose(file);
	if (!found)
		bench_skip("there is no cgroup2");
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", root);
	if (write_str(path, "+memory"))
		bench_skip("cgroups cannot limit memory here: %s", strerror(errno));
	snprintf(memcg, sizeof(memcg), "%s/fault_retry_bench.%d", root, getpid());
	if (mkdir(memcg, 0755))
		bench_die_errno("cannot create %s", memcg);
}

static void memcg_remove(void)
{
	unsigned int i;

	/* Who has been killed may not be gone yet */
	for (i = 0; i < EVICT_TRIES && rmdir(memcg) && errno == EBUSY; i++)
		usleep(EVICT_PAUSE_US);
}

/* ---- the memory that faults are about ---- */

struct area {
	enum mode mode;
	int path_fd;		/* O_PATH, or -1 */
	unsigned char *map;
	size_t len;
	size_t stride;		/* from one page that is touched to the next */
	size_t slots;		/* how many of them there are */
	size_t round;		/* how many each thread touches in a round */
	unsigned char *vec;
};

static void write_at(int fd, const void *buf, size_t len, __u64 pos)
{
	ssize_t ret = pwrite(fd, buf, len, pos);

	if (ret < 0)
		bench_die_errno("cannot write to a file in %s", cfg.dir);
	if ((size_t)ret != len)
		bench_die("%zd bytes were written instead of %zu", ret, len);
}

/* Where damage is done: in every page that is touched */
static __u64 corrupt_pos(const struct area *area, size_t slot)
{
	return slot * area->stride +
	       (cfg.verify == VERIFY_FULL ? page_size / 2 : page_size - sizeof(__u64));
}

/* A new file without a name, which only this descriptor keeps alive */
static void file_make(struct area *area)
{
	unsigned char *buf = bench_map(WRITE_SIZE, MAP_PRIVATE);
	char path[PATH_MAX];
	size_t len, i;
	__u64 pos, bad;
	int fd;

	if (snprintf(path, sizeof(path), "%s/fault_retry_XXXXXX", cfg.dir) >= (int)sizeof(path))
		bench_die("the name of the directory is too long");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		bench_die_errno("cannot create a file in %s", cfg.dir);
	area->path_fd = open(path, O_PATH | O_CLOEXEC);
	if (area->path_fd < 0)
		bench_die_errno("cannot open %s", path);
	if (unlink(path))
		bench_die_errno("cannot remove %s", path);
	for (pos = 0; pos < area->len; pos += len) {
		len = WRITE_SIZE;
		if (len > area->len - pos)
			len = area->len - pos;
		pattern_fill(buf, pos, len);
		write_at(fd, buf, len, pos);
	}
	for (i = 0; cfg.corrupt && i < area->slots; i++) {
		pos = corrupt_pos(area, i);
		bad = ~word_at(pos);
		write_at(fd, &bad, sizeof(bad), pos);
	}
	if (fsync(fd))
		bench_die_errno("cannot write back a file in %s", cfg.dir);
	close(fd);
	munmap(buf, WRITE_SIZE);
}

static size_t resident(const struct area *area, void *map)
{
	size_t i, nr = 0;

	if (mincore(map, area->len, area->vec))
		bench_die_errno("mincore");
	for (i = 0; i < area->len / page_size; i++)
		nr += area->vec[i] & 1;
	return nr;
}

/* A new mapping of a file that has no pages in the page cache */
static void file_stage(struct area *area)
{
	int fd = bench_reopen(area->path_fd, O_RDWR);
	unsigned int tries;
	size_t left = 0;
	int err;

	area->map = mmap(NULL, area->len, PROT_READ, MAP_SHARED, fd, 0);
	if (area->map == MAP_FAILED)
		bench_die_errno("cannot map a file in %s", cfg.dir);
	for (tries = 0; tries < EVICT_TRIES; tries++) {
		err = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (err)
			bench_leave(BENCH_FAIL, err, "posix_fadvise");
		left = resident(area, area->map);
		if (!left)
			break;
		/* A file system that keeps all does so at once */
		if (tries > 100 && left == area->len / page_size)
			break;
		usleep(1000);
	}
	if (left)
		bench_skip("the file system of %s does not let go of cached pages", cfg.dir);
	if (area->mode == MODE_RANDOM && madvise(area->map, area->len, MADV_RANDOM))
		bench_die_errno("MADV_RANDOM");
	close(fd);
}

static bool have_swap(void)
{
	FILE *file = fopen("/proc/swaps", "re");
	char line[256];
	unsigned int nr;

	if (!file)
		return false;
	for (nr = 0; nr < 2 && fgets(line, sizeof(line), file); nr++)
		;
	fclose(file);
	/* The first is a heading */
	return nr == 2;
}

/*
 * Pages between those that are touched are not there at all, so that nothing is
 * read together with these. What is paged out to a slow device stays in the swap
 * cache until it is reclaimed.
 */
static void swap_stage(struct area *area)
{
	unsigned int tries;
	char amount[64];
	__u64 *bad;
	size_t i;

	if (!have_swap())
		bench_skip("there is no swap");
	area->map = mmap(NULL, area->len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area->map == MAP_FAILED)
		bench_die_errno("cannot map %zu bytes", area->len);
	/* An error means that there are no huge pages to begin with */
	if (madvise(area->map, area->len, MADV_NOHUGEPAGE) && errno != EINVAL)
		bench_die_errno("MADV_NOHUGEPAGE");
	for (i = 0; i < area->slots; i++) {
		pattern_fill(area->map + i * area->stride, i * area->stride, page_size);
		if (!cfg.corrupt)
			continue;
		bad = (__u64 *)(area->map + corrupt_pos(area, i));
		*bad = ~*bad;
	}
	snprintf(amount, sizeof(amount), "%zu", 4 * area->slots * page_size);
	for (tries = 0; tries < EVICT_TRIES; tries++) {
		if (madvise(area->map, area->len, MADV_PAGEOUT))
			bench_skip("MADV_PAGEOUT: %s", strerror(errno));
		/* It fails if it did not get as much, which is to be expected */
		if (memcg_write("memory.reclaim", amount) && errno == ENOENT)
			bench_skip("there is no memory.reclaim");
		if (!resident(area, area->map))
			return;
		usleep(EVICT_PAUSE_US);
	}
	bench_skip("pages are not swapped out: is there room for them?");
}

static void area_stage(struct area *area)
{
	if (area->mode == MODE_SWAP)
		swap_stage(area);
	else
		file_stage(area);
}

static void area_unstage(struct area *area)
{
	munmap(area->map, area->len);
}

static size_t file_stride(void)
{
	size_t kb = READ_AHEAD_KB, stride;
	char path[128];
	struct stat st;
	FILE *file;

	if (stat(cfg.dir, &st))
		bench_die_errno("%s", cfg.dir);
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major(st.st_dev),
		 minor(st.st_dev));
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%zu", &kb) != 1)
			kb = READ_AHEAD_KB;
		fclose(file);
	}
	stride = 2 * kb * 1024 / page_size * page_size;
	return stride ? stride : page_size;
}

static void area_make(struct area *area, enum mode mode)
{
	size_t most = MAX_ROUND;

	area->mode = mode;
	area->path_fd = -1;
	area->len = cfg.file_size / page_size * page_size;
	area->stride = cfg.stride;
	if (!area->stride && mode == MODE_FILE)
		area->stride = file_stride();
	if (!area->stride && mode == MODE_SWAP)
		area->stride = SWAP_PAGES * page_size;
	if (!area->stride)
		area->stride = page_size;
	if (area->stride % page_size)
		bench_usage("--stride must be a multiple of the page size, %zu", page_size);
	area->slots = area->len / area->stride;
	if (mode == MODE_FILE)
		most = FILE_MISSES / cfg.threads;
	area->round = area->slots / cfg.threads;
	if (area->round > most)
		area->round = most;
	if (cfg.faults && area->round > cfg.faults)
		area->round = cfg.faults;
	if (!area->round && !cfg.stride && mode == MODE_FILE)
		bench_skip("%zu bytes are too small for what the device of %s reads ahead",
			   area->len, cfg.dir);
	if (!area->round)
		bench_usage("there is nothing to touch for each of %u threads in %zu bytes",
			    cfg.threads, area->len);
	/* What nobody touches need not be swapped out */
	if (mode == MODE_SWAP) {
		area->slots = area->round * cfg.threads;
		area->len = area->slots * area->stride;
	}
	area->vec = bench_map(area->len / page_size, MAP_PRIVATE);
	if (mode != MODE_SWAP)
		file_make(area);
}

static void area_free(struct area *area)
{
	munmap(area->vec, area->len / page_size);
	if (area->path_fd >= 0)
		close(area->path_fd);
}

/* ---- workers ---- */

struct result {
	__u64 faults;		/* touches, each of which ought to be one */
	__u64 majflt;
	__u64 minflt;
	struct bench_hist hist;
};

struct team {
	struct area *area;
	unsigned int generation;	/* a futex: of the round that may begin */
	unsigned int arrived;		/* a futex: how many are through with the last one */
	unsigned int over;
	unsigned int busy;		/* the neighbour goes on until this is 0 */
	bool warm;
	__u64 nr;			/* touches of each thread in this round */
	struct result *results;
	struct bench_hist *neighbour;
	struct bench_hist *bystander;
	unsigned int others;		/* threads beside the workers */
};

struct worker {
	pthread_t thread;
	unsigned int index;
	struct team *team;
	__u64 random;
};

/* Private futexes do not look at the page they are on, and so never fault */
static void wait_while(unsigned int *addr, unsigned int val)
{
	while (__atomic_load_n(addr, __ATOMIC_ACQUIRE) == val)
		bench_futex(addr, FUTEX_WAIT_PRIVATE, val);
}

static void arrive(struct team *team)
{
	__atomic_add_fetch(&team->arrived, 1, __ATOMIC_ACQ_REL);
	bench_futex(&team->arrived, FUTEX_WAKE_PRIVATE, INT_MAX);
}

static void wait_for_all(struct team *team, unsigned int nr)
{
	unsigned int arrived;

	while ((arrived = __atomic_load_n(&team->arrived, __ATOMIC_ACQUIRE)) < nr)
		bench_futex(&team->arrived, FUTEX_WAIT_PRIVATE, arrived);
}

static noreturn void bad_data(const struct area *area, __u64 pos, __u64 val)
{
	bench_die("%s: the word at %llu is %#llx instead of %#llx", mode_names[area->mode], pos,
		  val, word_at(pos));
}

/* Which of the places that it may touch is the next one? */
static size_t next_slot(struct worker *worker, __u64 i)
{
	const struct area *area = worker->team->area;

	if (area->mode != MODE_MEMCG)
		return worker->index * area->round + i;
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return worker->random % area->slots;
}

static void touch(const struct area *area, struct bench_hist *hist, size_t slot)
{
	const __u64 *page;
	__u64 pos = slot * area->stride, start, val;
	size_t nr = page_size / sizeof(val), i;

	page = (const __u64 *)(area->map + pos);
	start = bench_now();
	val = __atomic_load_n(page, __ATOMIC_RELAXED);
	bench_hist_add(hist, bench_now() - start);
	if (val != word_at(pos))
		bad_data(area, pos, val);
	for (i = cfg.verify == VERIFY_FULL ? 1 : nr - 1; i < nr; i++) {
		val = page[i];
		if (val != word_at(pos + i * sizeof(val)))
			bad_data(area, pos + i * sizeof(val), val);
	}
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct team *team = worker->team;
	struct result *result = &team->results[worker->index];
	struct rusage before, after;
	unsigned int generation = 0;
	__u64 i;

	/* Traces are filtered by name */
	prctl(PR_SET_NAME, "fault_retry");
	if (cfg.pin)
		bench_pin(worker->index);
	for (;;) {
		wait_while(&team->generation, generation);
		generation++;
		if (team->over)
			return NULL;
		getrusage(RUSAGE_THREAD, &before);
		for (i = 0; i < team->nr; i++)
			touch(team->area, &result->hist, next_slot(worker, i));
		getrusage(RUSAGE_THREAD, &after);
		result->faults += team->nr;
		result->majflt += after.ru_majflt - before.ru_majflt;
		result->minflt += after.ru_minflt - before.ru_minflt;
		arrive(team);
	}
}

/* ---- the neighbour ---- */

static void *neighbour_map(void)
{
	void *page = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (page == MAP_FAILED)
		bench_die_errno("the neighbour cannot map a page");
	__atomic_store_n((char *)page, 1, __ATOMIC_RELAXED);
	return page;
}

/* Time one operation that changes the address space */
static __u64 neighbour_once(const struct area *area, void *page)
{
	int prot = PROT_READ | (area->mode == MODE_SWAP ? PROT_WRITE : 0);
	__u64 start = bench_now(), ns;
	int status;
	pid_t pid;

	switch (cfg.neighbour) {
	case NEIGHBOUR_MPROTECT:
		if (mprotect(page, page_size, PROT_READ) ||
		    mprotect(page, page_size, PROT_READ | PROT_WRITE))
			bench_die_errno("mprotect");
		return bench_now() - start;
	case NEIGHBOUR_MPROTECT_ALL:
		/* Always readable, and one mapping as before */
		if (mprotect(area->map, area->len, prot ^ PROT_WRITE) ||
		    mprotect(area->map, area->len, prot))
			bench_die_errno("mprotect");
		return bench_now() - start;
	case NEIGHBOUR_MUNMAP:
		if (munmap(neighbour_map(), page_size))
			bench_die_errno("munmap");
		return bench_now() - start;
	case NEIGHBOUR_FORK:
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid < 0)
			bench_die_errno("fork");
		ns = bench_now() - start;
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
			bench_die("a child of the neighbour did not exit as it should");
		return ns;
	default:
		return 0;
	}
}

static void *neighbour_main(void *arg)
{
	struct team *team = arg;
	unsigned int generation = 0;
	void *page;
	__u64 ns;

	prctl(PR_SET_NAME, "fault_neighbour");
	page = neighbour_map();
	for (;;) {
		wait_while(&team->generation, generation);
		generation++;
		if (team->over)
			break;
		while (__atomic_load_n(&team->busy, __ATOMIC_ACQUIRE)) {
			ns = neighbour_once(team->area, page);
			if (team->warm)
				bench_hist_add(team->neighbour, ns);
			if (cfg.pause_us)
				usleep(cfg.pause_us);
		}
		arrive(team);
	}
	if (__atomic_load_n((char *)page, __ATOMIC_RELAXED) != 1)
		bench_die("the neighbour's page has changed");
	return NULL;
}

/* ---- the bystander ---- */

/* Anonymous memory, of which one page after the other is touched, and all dropped again */
#define BYSTANDER_PAGES		64

static void *bystander_main(void *arg)
{
	struct team *team = arg;
	size_t len = BYSTANDER_PAGES * page_size;
	unsigned int generation = 0, i;
	char *map;
	__u64 start;

	prctl(PR_SET_NAME, "fault_bystander");
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		bench_die_errno("the bystander cannot map memory");
	/* An error means that there are no huge pages to begin with */
	if (madvise(map, len, MADV_NOHUGEPAGE) && errno != EINVAL)
		bench_die_errno("MADV_NOHUGEPAGE");
	for (;;) {
		wait_while(&team->generation, generation);
		generation++;
		if (team->over)
			return NULL;
		for (i = 0; __atomic_load_n(&team->busy, __ATOMIC_ACQUIRE); i++) {
			i %= BYSTANDER_PAGES;
			if (!i && madvise(map, len, MADV_DONTNEED))
				bench_die_errno("MADV_DONTNEED");
			start = bench_now();
			__atomic_store_n(&map[i * page_size], 1, __ATOMIC_RELAXED);
			if (team->warm)
				bench_hist_add(team->bystander, bench_now() - start);
			if (cfg.pause_us)
				usleep(cfg.pause_us);
		}
		arrive(team);
	}
}

/* ---- running ---- */

struct report {
	enum mode mode;
	const struct area *area;
	__u64 rounds;
	__u64 ns;
	__u64 events[NR_EVENTS];
	struct result all;
	struct bench_hist neighbour;
	struct bench_hist bystander;
};

/*
 * One round. All workers wait for the round to begin when the first mark is
 * written, and for the next one when the other is, by the main thread, which has
 * another name. So nothing but the faults is between them.
 */
static __u64 run_round(struct team *team, struct report *report)
{
	__u64 before[NR_EVENTS] = { 0 }, after[NR_EVENTS] = { 0 }, start, ns;
	unsigned int i;

	area_stage(team->area);
	team->arrived = 0;
	team->busy = 1;
	read_events(before);
	if (team->warm)
		mark("begin", team->area->mode, team->nr * cfg.threads);
	start = bench_now();
	__atomic_add_fetch(&team->generation, 1, __ATOMIC_ACQ_REL);
	bench_futex(&team->generation, FUTEX_WAKE_PRIVATE, INT_MAX);
	wait_for_all(team, cfg.threads);
	ns = bench_now() - start;
	if (team->warm)
		mark("end", team->area->mode, team->nr * cfg.threads);
	read_events(after);
	for (i = 0; i < NR_EVENTS; i++)
		report->events[i] += after[i] - before[i];
	__atomic_store_n(&team->busy, 0, __ATOMIC_RELEASE);
	wait_for_all(team, cfg.threads + team->others);
	report->rounds++;
	area_unstage(team->area);
	return ns;
}

static void run_rounds(struct team *team, struct report *report, __u64 faults, double seconds)
{
	__u64 budget = seconds * BENCH_NSEC, left = faults;

	do {
		team->nr = team->area->round;
		if (faults && team->nr > left)
			team->nr = left;
		left -= team->nr;
		report->ns += run_round(team, report);
	} while (faults ? left : report->ns < budget);
}

/* What a thread beside the workers has waited for, if there is one */
static void report_other(const char *who, const struct bench_hist *hist)
{
	static const double percents[] = { 50, 99 };
	char name[64];
	unsigned int i;

	snprintf(name, sizeof(name), "%s_ops", who);
	bench_json_u64(name, hist->count);
	for (i = 0; i < BENCH_ARRAY_SIZE(percents); i++) {
		snprintf(name, sizeof(name), "%s_p%.0f_ns", who, percents[i]);
		if (hist->count)
			bench_json_double(name, bench_hist_percentile(hist, percents[i]), 1);
		else
			bench_json_str(name, NULL);
	}
	snprintf(name, sizeof(name), "%s_max_ns", who);
	if (hist->count)
		bench_json_u64(name, hist->max);
	else
		bench_json_str(name, NULL);
}

static void report_json(const struct report *r)
{
	unsigned int i;

	bench_json_begin("fault_retry_bench");
	bench_json_str("mode", mode_names[r->mode]);
	bench_json_u64("threads", cfg.threads);
	bench_json_str("neighbour", neighbour_names[cfg.neighbour]);
	bench_json_u64("pause_us", cfg.pause_us);
	bench_json_u64("file_size", r->area->len);
	bench_json_u64("stride", r->area->stride);
	bench_json_u64("page_size", page_size);
	bench_json_str("verify", verify_names[cfg.verify]);
	bench_json_bool("pinned", cfg.pin);
	bench_json_u64_or_null("faults_per_thread", cfg.faults);
	bench_json_double_or_null("time_limit", cfg.seconds, 3);
	bench_json_u64("warmup", cfg.warmup);
	bench_json_u64("rounds", r->rounds);
	bench_json_u64("faults", r->all.faults);
	bench_json_u64("majflt", r->all.majflt);
	bench_json_u64("minflt", r->all.minflt);
	for (i = 0; i < NR_EVENTS; i++) {
		if (counted[i])
			bench_json_u64(events[i], r->events[i]);
		else
			bench_json_str(events[i], NULL);
	}
	bench_json_double("seconds", (double)r->ns / BENCH_NSEC, 9);
	bench_json_double("faults_per_s", r->all.faults * (double)BENCH_NSEC / r->ns, 3);
	bench_json_double("p50_ns", bench_hist_percentile(&r->all.hist, 50), 1);
	bench_json_double("p99_ns", bench_hist_percentile(&r->all.hist, 99), 1);
	bench_json_u64("max_ns", r->all.hist.max);
	report_other("neighbour", &r->neighbour);
	report_other("bystander", &r->bystander);
	bench_json_end();
}

static void report_table(const struct report *r)
{
	static bool header_done;

	if (!header_done) {
		printf("# %u thread%s%s, neighbour: %s, in %s; times in us\n", cfg.threads,
		       cfg.threads == 1 ? "" : "s", cfg.pin ? ", pinned" : "",
		       neighbour_names[cfg.neighbour], cfg.dir);
		printf("#%7s %8s %8s %8s %10s %9s %9s %9s %8s %9s %9s %9s\n", "mode", "faults",
		       "majflt", "pgmaj", "faults/s", "p50", "p99", "max", "nb ops", "nb p50",
		       "nb p99", "nb max");
		header_done = true;
	}
	printf("%8s %8llu %8llu %8llu %10.1f %9.1f %9.1f %9.1f", mode_names[r->mode],
	       r->all.faults, r->all.majflt, r->events[PGMAJFAULT],
	       r->all.faults * (double)BENCH_NSEC / r->ns,
	       bench_hist_percentile(&r->all.hist, 50) / 1000,
	       bench_hist_percentile(&r->all.hist, 99) / 1000, r->all.hist.max / 1000.0);
	if (r->neighbour.count)
		printf(" %8llu %9.1f %9.1f %9.1f\n", r->neighbour.count,
		       bench_hist_percentile(&r->neighbour, 50) / 1000,
		       bench_hist_percentile(&r->neighbour, 99) / 1000,
		       r->neighbour.max / 1000.0);
	else
		printf(" %8s %9s %9s %9s\n", "-", "-", "-", "-");
	fflush(stdout);
}

static void run_team(enum mode mode)
{
	struct report *report = bench_map(sizeof(*report), MAP_PRIVATE);
	struct area area = { 0 };
	struct team team = {
		.area = &area,
		.results = bench_map(cfg.threads * sizeof(*team.results), MAP_PRIVATE),
		.neighbour = bench_map(sizeof(*team.neighbour), MAP_PRIVATE),
		.bystander = bench_map(sizeof(*team.bystander), MAP_PRIVATE),
	};
	struct worker *workers;
	pthread_t neighbour, bystander;
	unsigned int i;
	int err;

	area_make(&area, mode);
	workers = calloc(cfg.threads, sizeof(*workers));
	if (!workers)
		bench_die_errno("cannot allocate the workers");
	for (i = 0; i < cfg.threads; i++) {
		workers[i].index = i;
		workers[i].team = &team;
		workers[i].random = 0x2545f4914f6cdd1dULL + i;
		err = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
		if (err)
			bench_leave(BENCH_FAIL, err, "cannot start worker %u", i);
	}
	if (cfg.neighbour) {
		err = pthread_create(&neighbour, NULL, neighbour_main, &team);
		if (err)
			bench_leave(BENCH_FAIL, err, "cannot start the neighbour");
		team.others++;
	}
	if (cfg.bystander) {
		err = pthread_create(&bystander, NULL, bystander_main, &team);
		if (err)
			bench_leave(BENCH_FAIL, err, "cannot start the bystander");
		team.others++;
	}

	/* Whole rounds: stacks, and what else is touched for the first time */
	for (i = 0; i < cfg.warmup; i++) {
		team.nr = area.round;
		run_round(&team, report);
	}
	memset(report, 0, sizeof(*report));
	memset(team.results, 0, cfg.threads * sizeof(*team.results));
	team.warm = true;
	run_rounds(&team, report, cfg.faults, cfg.seconds);

	team.over = 1;
	__atomic_add_fetch(&team.generation, 1, __ATOMIC_ACQ_REL);
	bench_futex(&team.generation, FUTEX_WAKE_PRIVATE, INT_MAX);
	for (i = 0; i < cfg.threads; i++)
		pthread_join(workers[i].thread, NULL);
	if (cfg.neighbour)
		pthread_join(neighbour, NULL);
	if (cfg.bystander)
		pthread_join(bystander, NULL);

	report->mode = mode;
	report->area = &area;
	for (i = 0; i < cfg.threads; i++) {
		report->all.faults += team.results[i].faults;
		report->all.majflt += team.results[i].majflt;
		report->all.minflt += team.results[i].minflt;
		bench_hist_merge(&report->all.hist, &team.results[i].hist);
	}
	report->neighbour = *team.neighbour;
	report->bystander = *team.bystander;
	if (cfg.json)
		report_json(report);
	else
		report_table(report);

	free(workers);
	area_free(&area);
	munmap(team.bystander, sizeof(*team.bystander));
	munmap(team.neighbour, sizeof(*team.neighbour));
	munmap(team.results, cfg.threads * sizeof(*team.results));
	munmap(report, sizeof(*report));
}

/*
 * In a memory cgroup, so that there is a limit, or that something can be made to
 * leave. It is removed by the parent, whatever happens to the child.
 */
static void run_in_memcg(enum mode mode)
{
	char limit[32];
	int status, sig;
	sigset_t set;
	pid_t pid;

	memcg_make();
	fflush(stdout);
	/* The cgroup would stay if we were interrupted; the child is, and we go on */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid = fork();
	if (!pid) {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		if (memcg_write("cgroup.procs", "0"))
			bench_die_errno("cannot enter %s", memcg);
		if (mode == MODE_MEMCG) {
			snprintf(limit, sizeof(limit), "%llu", cfg.file_size / 3);
			if (memcg_write("memory.max", limit))
				bench_die_errno("cannot set memory.max");
		}
		run_team(mode);
		_exit(bench_finish());
	}
	if (pid < 0) {
		status = errno;
		memcg_remove();
		bench_leave(BENCH_FAIL, status, "cannot fork");
	}
	/* Not the name of those who are traced */
	prctl(PR_SET_NAME, "fault_parent");
	/* SIGTERM is to us only, as a rule */
	while (!waitpid(pid, &status, WNOHANG)) {
		const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };

		sig = sigtimedwait(&set, NULL, &pause);
		if (sig > 0)
			kill(pid, sig);
	}
	prctl(PR_SET_NAME, "fault_retry_bench");
	memcg_remove();
	if (WIFSIGNALED(status))
		bench_die("a process was killed by signal %d", WTERMSIG(status));
	/* The child itself has said what was wrong */
	if (WEXITSTATUS(status))
		_exit(WEXITSTATUS(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static const char help_text[] =
"Usage: fault_retry_bench [OPTION]...\n"
"Measure page faults that wait for I/O, and a neighbour who wants the mmap_lock.\n"
"\n"
"Sizes may end in K, M or G. There has to be a slow file system, or slow swap: where\n"
"I/O takes no time, faults do not wait.\n"
"\n"
"What to fault on:\n"
"      --mode LIST       separated by commas:\n"
"                        file    a mapped file, with what is read around each fault\n"
"                                (default)\n"
"                        random  the same with MADV_RANDOM\n"
"                        swap    anonymous memory that is swapped out (needs root)\n"
"                        memcg   a file, anywhere, and again and again, in a memory\n"
"                                cgroup that has room for a third of it (needs root)\n"
"      --dir DIR         where to make the file, without a name (default: /tmp)\n"
"      --file-size N     its size, or that of the memory, up to 1G (default 32M)\n"
"      --stride N        from one page that is touched to the next (default: for file,\n"
"                        twice the read_ahead_kb of the device, 16 pages for swap, and 1\n"
"                        page for others)\n"
"\n"
"How:\n"
"      --threads N       N threads, 1 to 96, of one process (default 4)\n"
"      --neighbour WHAT  what another thread does meanwhile: none (default), mprotect\n"
"                        (a page of its own, twice), mprotect-all (what is faulted\n"
"                        on, twice), munmap (after mmap), or fork\n"
"      --bystander       yet another thread has faults in memory of its own, none of\n"
"                        which waits for I/O\n"
"      --pause US        microseconds between two of the operations of either (default\n"
"                        1000)\n"
"      --pin             pin worker i to the i-th allowed CPU, modulo their number\n"
"\n"
"How long:\n"
"      --faults N        fixed work: N faults per thread\n"
"      --seconds S       fixed time: S seconds of faulting, fractions allowed (default\n"
"                        1). Rounds are not cut short\n"
"      --warmup N        N rounds that do not count (default 1)\n"
"\n"
"Checks (never of time):\n"
"      --verify[=HOW]    sample (default): the first and the last word of every page, or\n"
"                        full (if just --verify): all\n"
"      --corrupt         damage a word of each page, to see that it is noticed\n"
"\n"
"Output:\n"
"      --json            one JSON object per line and mode\n"
"      --marker          write \"fault_retry_bench: begin ...\" and \"fault_retry_bench:\n"
"                        end ...\" to tracefs (trace_marker) around each round. The\n"
"                        threads that fault are called fault_retry, no other is\n"
"  -h, --help            this text\n"
"\n"
"All pages are taken out of memory before each round, which is not measured. faults is\n"
"the number of pages touched; majflt and minflt is what the kernel has counted for these\n"
"threads, pgmajfault what it has counted for the system, and with --json, so are\n"
"vma_lock_success and vma_lock_retry, of faults and of attempts under VMA locks. p50,\n"
"p99 and max are about single faults, and those of the neighbour (neighbour_...) about\n"
"single operations. The bystander (bystander_...) is in the JSON only.\n"
"\n"
"Exit status: 0 success, 1 failure or a wrong result, 2 wrong usage, 4 not supported\n"
"here.\n";

enum {
	OPT_BYSTANDER = BENCH_OPT_BASE,
	OPT_CORRUPT,
	OPT_DIR,
	OPT_FAULTS,
	OPT_FILE_SIZE,
	OPT_JSON,
	OPT_MARKER,
	OPT_MODE,
	OPT_NEIGHBOUR,
	OPT_PAUSE,
	OPT_PIN,
	OPT_SECONDS,
	OPT_STRIDE,
	OPT_THREADS,
	OPT_VERIFY,
	OPT_WARMUP,
};

static const struct option options[] = {
	{ "bystander",	no_argument,		NULL, OPT_BYSTANDER },
	{ "corrupt",	no_argument,		NULL, OPT_CORRUPT },
	{ "dir",	required_argument,	NULL, OPT_DIR },
	{ "faults",	required_argument,	NULL, OPT_FAULTS },
	{ "file-size",	required_argument,	NULL, OPT_FILE_SIZE },
	{ "help",	no_argument,		NULL, BENCH_OPT_HELP },
	{ "json",	no_argument,		NULL, OPT_JSON },
	{ "marker",	no_argument,		NULL, OPT_MARKER },
	{ "mode",	required_argument,	NULL, OPT_MODE },
	{ "neighbour",	required_argument,	NULL, OPT_NEIGHBOUR },
	{ "pause",	required_argument,	NULL, OPT_PAUSE },
	{ "pin",	no_argument,		NULL, OPT_PIN },
	{ "seconds",	required_argument,	NULL, OPT_SECONDS },
	{ "stride",	required_argument,	NULL, OPT_STRIDE },
	{ "threads",	required_argument,	NULL, OPT_THREADS },
	{ "verify",	optional_argument,	NULL, OPT_VERIFY },
	{ "warmup",	required_argument,	NULL, OPT_WARMUP },
	{ 0 },
};

static void parse(int argc, char **argv)
{
	int c;

	while ((c = bench_getopt(argc, argv, ":h", options, help_text)) != -1) {
		switch (c) {
		case OPT_BYSTANDER:
			cfg.bystander = true;
			break;
		case OPT_CORRUPT:
			cfg.corrupt = true;
			break;
		case OPT_DIR:
			cfg.dir = optarg;
			break;
		case OPT_FAULTS:
			cfg.faults = bench_parse_u64("--faults", optarg, 1, 1ULL << 32, false);
			break;
		case OPT_FILE_SIZE:
			cfg.file_size = bench_parse_u64("--file-size", optarg, page_size, MAX_SIZE,
							true);
			break;
		case OPT_JSON:
			cfg.json = true;
			break;
		case OPT_MARKER:
			cfg.marker = true;
			break;
		case OPT_MODE:
			bench_parse_names(&cfg.modes, "--mode", optarg, mode_names);
			break;
		case OPT_NEIGHBOUR:
			cfg.neighbour = bench_parse_name("--neighbour", optarg, neighbour_names);
			break;
		case OPT_PAUSE:
			cfg.pause_us = bench_parse_u64("--pause", optarg, 0, 1000000, false);
			break;
		case OPT_PIN:
			cfg.pin = true;
			break;
		case OPT_SECONDS:
			cfg.seconds = bench_parse_seconds("--seconds", optarg, 0.001);
			break;
		case OPT_STRIDE:
			cfg.stride = bench_parse_u64("--stride", optarg, page_size, MAX_SIZE, true);
			break;
		case OPT_THREADS:
			cfg.threads = bench_parse_u64("--threads", optarg, 1, MAX_THREADS, false);
			break;
		case OPT_VERIFY:
			cfg.verify = VERIFY_FULL;
			if (optarg)
				cfg.verify = bench_parse_name("--verify", optarg, verify_names);
			break;
		case OPT_WARMUP:
			cfg.warmup = bench_parse_u64("--warmup", optarg, 1, 1000000, false);
			break;
		}
	}
	if (cfg.faults && cfg.seconds > 0)
		bench_usage("--faults and --seconds exclude each other");
	if (!cfg.faults && cfg.seconds <= 0)
		cfg.seconds = DEFAULT_SECONDS;
}

int main(int argc, char **argv)
{
	unsigned int i;

	bench_name = "fault_retry_bench";
	page_size = sysconf(_SC_PAGESIZE);
	parse(argc, argv);
	/* What else there is of us must not fault while it is measured */
	if (!mlockall(MCL_CURRENT))
		munlockall();
	bench_cpus(NULL);	/* fills its cache before there are workers */
	if (cfg.marker)
		bench_marker_open();
	for (i = 0; i < cfg.modes.nr; i++) {
		if (cfg.modes.val[i] == MODE_SWAP || cfg.modes.val[i] == MODE_MEMCG)
			run_in_memcg(cfg.modes.val[i]);
		else
			run_team(cfg.modes.val[i]);
	}
	return bench_finish();
}
