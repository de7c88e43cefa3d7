// SPDX-License-Identifier: GPL-2.0
/*
 * What a small buffered read of a cached file costs, by workers that do
 * nothing else, and (--delete) what it costs to take pages out of the cache.
 *
 * Copying a few bytes is cheap, so what is seen is the way to the folio and,
 * with several workers on the same file, how they wait for the cache line of
 * its reference count.
 *
 * Nothing here passes or fails on time. Wrong data, a read of a wrong length,
 * or pages that are where they should not be are an error.
 */
#include "bench.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MAX_SIZE		65536
#define MAX_FILE_SIZE		(1024 * 1024 * 1024ULL)
#define MAX_WORKERS		256
#define DEFAULT_SECONDS		1
#define DEFAULT_WARMUP		1000
#define WRITE_SIZE		(1024 * 1024U)

/*
 * What is timed is a batch of operations, as reading the clock may cost as
 * much as a read. Before every batch, one operation for each 20 in it is timed
 * on its own, for the histogram.
 */
#define BATCH_OPS		200U
#define BATCH_BYTES		(200U << 10)
#define BATCH_SAMPLES		20U
#define MAX_ROUND		(BATCH_OPS + BATCH_OPS / BATCH_SAMPLES)

/* How often to read all pages of a file, so that it is as hot as it gets */
#define HEAT_PASSES		8

/* How often to try to drop a page that somebody may just be looking at */
#define DROP_TRIES		100

enum offsets { OFFSETS_HOT, OFFSETS_RANDOM, OFFSETS_SEQUENTIAL, OFFSETS_END, OFFSETS_FIRST };
enum fd_mode { FD_OWN, FD_SHARED };
enum verify { VERIFY_SAMPLE, VERIFY_FULL };
enum buffer { BUFFER_THERE, BUFFER_HALF, BUFFER_GONE };
enum delete { DELETE_NONE, DELETE_TRUNCATE, DELETE_DONTNEED };

static const char *const offsets_names[] = {
	"hot", "random", "sequential", "end", "first", NULL
};
static const char *const fd_names[] = { "own", "shared", NULL };
static const char *const verify_names[] = { "sample", "full", NULL };
static const char *const buffer_names[] = { "there", "half", "gone", NULL };
static const char *const delete_names[] = { "none", "truncate", "dontneed", NULL };

static struct {
	struct bench_list sizes;
	struct bench_list file_sizes;
	struct bench_list ops;
	const char *dir;
	unsigned int workers;
	unsigned int warmup;
	unsigned int hit_ratio;
	unsigned int heat;
	unsigned int write_size;
	enum offsets offsets;
	enum fd_mode fd;
	enum verify verify;
	enum buffer buffer;
	enum delete delete;
	__u64 count;		/* 0: limited by time */
	double seconds;		/* 0: limited by count */
	bool processes;
	bool different;
	bool corrupt;
	bool everywhere;
	bool json;
	bool marker;
	bool pin;
} cfg = {
	.sizes = { 6, { 1, 64, 256, 1024, 4096, 65536 } },
	.ops = { 1, { 0 } },
	.dir = "/tmp",
	.workers = 1,
	.warmup = DEFAULT_WARMUP,
	.hit_ratio = 100,
	.heat = HEAT_PASSES,
	.write_size = WRITE_SIZE,
};

static pid_t main_pid;
static size_t page_size;

/* What a worker hands over */
struct result {
	__u64 ops;
	__u64 bytes;
	__u64 misses;		/* pages that were not in the cache when asked for */
	__u64 busy_ns;		/* spent in what is timed */
	struct bench_hist hist;
};

struct op;

/* In shared memory; only 32-bit words are atomic on every architecture */
struct team {
	unsigned int ready;	/* workers that are warm */
	unsigned int open;	/* a futex: start */
	unsigned int done;	/* workers that have finished */
	unsigned int closed;	/* a futex: the end has been marked */
	__u64 start_ns;
	const struct op *op;
	size_t size;		/* what is asked for */
	size_t len;		/* what there is: less, if the file is smaller, or nothing */
	__u64 file_size;
	__u64 hot_size;		/* the part of the file that stays in the cache */
	int *files;		/* one, or one each; O_PATH */
	int shared_fd;		/* or -1 */
	struct result result[];
};

struct worker {
	unsigned int index;
	int fd;
	unsigned char seed;	/* of the data in the file */
	struct team *team;
	unsigned char *buf;
	struct iovec iov;
	void *area;		/* that buf is in */
	size_t area_size;
	unsigned char *gone;	/* from here on it is not there before a read */
	size_t gone_size;
	__u64 file_pos;		/* of this fd, if it is moved */
	__u64 next;		/* sequential: block number */
	__u64 random;
	unsigned int batch;
	unsigned int samples;
	/* Reads that miss go to slots of whole pages */
	unsigned int miss_due;	/* percent of a read */
	__u64 miss_pos;
	size_t slot;
	__u64 slots;
	void *miss_map;		/* never touched, only to look at the cache */
	unsigned char *miss_vec;
	__u64 pos[MAX_ROUND];
	struct result result;
};

struct op {
	ssize_t (*run)(struct worker *worker, __u64 pos);
};

/* ---- marks in the kernel's trace ---- */

static void mark(const char *what, size_t size, __u64 file_size, const char *op)
{
	bench_mark("%s size=%zu threads=%u file_size=%llu op=%s offsets=%s\n", what, size,
		   cfg.workers, file_size, op, offsets_names[cfg.offsets]);
}

/* ---- data ---- */

/* What is at a position: neither the next byte nor the next page is alike */
static inline unsigned char pattern(unsigned char seed, __u64 pos)
{
	return ((pos * 0x9e3779b97f4a7c15ULL) >> 56) ^ seed;
}

static void pattern_fill(unsigned char *buf, unsigned char seed, __u64 pos, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = pattern(seed, pos + i);
}

/* ---- files ---- */

/* A new file without a name, which only this descriptor keeps alive */
static int file_create(int *path_fd)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/small_read_XXXXXX", cfg.dir) >= (int)sizeof(path))
		bench_die("the name of the directory is too long");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		bench_die_errno("cannot create a file in %s", cfg.dir);
	*path_fd = open(path, O_PATH | O_CLOEXEC);
	if (*path_fd < 0)
		bench_die_errno("cannot open %s", path);
	if (unlink(path))
		bench_die_errno("cannot remove %s", path);
	return fd;
}

static void write_at(int fd, const void *buf, size_t len, __u64 pos)
{
	ssize_t ret = pwrite(fd, buf, len, pos);

	if (ret < 0)
		bench_die_errno("cannot write to a file in %s", cfg.dir);
	if ((size_t)ret != len)
		bench_die("%zd bytes were written instead of %zu", ret, len);
}

/* Damage one byte of every block, where the checks in use are to see it */
static void file_corrupt(int fd, unsigned char seed, const struct team *team)
{
	size_t at = cfg.verify == VERIFY_FULL ? team->len / 2 : team->len - 1;
	unsigned char byte;
	__u64 pos;

	for (pos = at; pos < team->file_size; pos += team->len) {
		byte = pattern(seed, pos) ^ 0x10;
		write_at(fd, &byte, 1, pos);
	}
}

/*
 * A read of a hot page leaves the page's state as it is. A page gets hot by
 * several reads; some of what they do waits in a batch of this CPU, which
 * MADV_COLD, of any page, drains.
 */
static void file_heat(int fd, __u64 size)
{
	unsigned int i;
	void *map;
	__u64 pos;
	char byte;

	map = mmap(NULL, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		bench_die_errno("cannot map memory");
	for (i = 0; i < cfg.heat; i++) {
		for (pos = 0; pos < size; pos += page_size)
			if (pread(fd, &byte, 1, pos) != 1)
				bench_die_errno("cannot read a file in %s", cfg.dir);
		if (madvise(map, page_size, MADV_COLD))
			bench_die_errno("MADV_COLD");
	}
	munmap(map, page_size);
}

static int file_make(const struct team *team, unsigned int index, bool corrupt)
{
	unsigned char *buf = bench_map(cfg.write_size, MAP_PRIVATE);
	int fd, path_fd;
	size_t len;
	__u64 pos;

	fd = file_create(&path_fd);
	for (pos = 0; pos < team->file_size; pos += len) {
		len = cfg.write_size;
		if (len > team->file_size - pos)
			len = team->file_size - pos;
		pattern_fill(buf, index, pos, len);
		write_at(fd, buf, len, pos);
	}
	if (corrupt)
		file_corrupt(fd, index, team);
	/* Writing back is not to happen while it is read */
	if (fsync(fd))
		bench_die_errno("cannot write back a file in %s", cfg.dir);
	close(fd);

	fd = bench_reopen(path_fd, O_RDONLY);
	/* A folio that has both what is to stay and what is to go would stay */
	if (cfg.hit_ratio < 100 && (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ||
				    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM)))
		bench_die("posix_fadvise() failed");
	file_heat(fd, team->hot_size);
	close(fd);
	munmap(buf, cfg.write_size);
	return path_fd;
}

/* How many pages of this mapping are in the page cache? */
static size_t resident(void *map, size_t len, unsigned char *vec)
{
	size_t i, nr = 0;

	if (mincore(map, len, vec))
		bench_die_errno("mincore");
	for (i = 0; i < (len + page_size - 1) / page_size; i++)
		nr += vec[i] & 1;
	return nr;
}

/* ---- reading ---- */

static ssize_t op_pread(struct worker *worker, __u64 pos)
{
	return pread(worker->fd, worker->buf, worker->iov.iov_len, pos);
}

static ssize_t op_read(struct worker *worker, __u64 pos)
{
	ssize_t ret;

	if (worker->file_pos != pos && lseek(worker->fd, pos, SEEK_SET) < 0)
		return -1;
	ret = read(worker->fd, worker->buf, worker->iov.iov_len);
	worker->file_pos = pos + ret;
	return ret;
}

static ssize_t op_preadv2(struct worker *worker, __u64 pos)
{
	return preadv2(worker->fd, &worker->iov, 1, pos, 0);
}

/* Leaves what is at position 0, to measure all but the system call */
enum { OP_PREAD, OP_READ, OP_PREADV2 };

static const char *const op_names[] = { "pread", "read", "preadv2", NULL };

static const struct op ops[] = {
	[OP_PREAD]	= { op_pread },
	[OP_READ]	= { op_read },
	[OP_PREADV2]	= { op_preadv2 },
};

static noreturn void bad_read(const struct worker *worker, __u64 pos, ssize_t ret)
{
	const struct team *team = worker->team;
	unsigned char want;
	size_t i;

	if (ret < 0)
		bench_die_errno("reading %zu bytes at %llu failed", team->size, pos);
	if ((size_t)ret != team->len)
		bench_die("reading %zu bytes at %llu gave %zd instead of %zu", team->size, pos,
			  ret, team->len);
	for (i = 0; i < team->len - 1; i++)
		if (worker->buf[i] != pattern(worker->seed, pos + i))
			break;
	want = pattern(worker->seed, pos + i);
	bench_die("reading %zu bytes at %llu: byte %zu is %#x instead of %#x", team->size, pos, i,
		  worker->buf[i], want);
}

static bool all_good(const struct worker *worker, __u64 pos)
{
	size_t i;

	for (i = 0; i < worker->team->len; i++)
		if (worker->buf[i] != pattern(worker->seed, pos + i))
			return false;
	/* Nobody has any business behind what was read, which comes as zeroes or not */
	for (; i < worker->team->size; i++)
		if (worker->buf[i] != (worker->buf + i < worker->gone ? 0xff : 0))
			return false;
	return true;
}

/* Spoil the buffer, so that data of the read before cannot pass for good */
static inline void read_one(struct worker *worker, const struct op *op, __u64 pos)
{
	size_t last = worker->team->len - 1;
	unsigned char first_want = pattern(worker->seed, pos);
	unsigned char last_want = pattern(worker->seed, pos + last);
	ssize_t ret;

	if (worker->gone_size && madvise(worker->gone, worker->gone_size, MADV_DONTNEED))
		bench_die_errno("MADV_DONTNEED");
	if (worker->buf < worker->gone)
		worker->buf[0] = ~first_want;
	if (worker->buf + last < worker->gone)
		worker->buf[last] = ~last_want;
	MARK(MARK_OP);
	ret = op->run(worker, pos);
	MARK(MARK_END);
	if (ret != (ssize_t)last + 1 || worker->buf[0] != first_want ||
	    worker->buf[last] != last_want)
		bad_read(worker, pos, ret);
}

/* Beyond the last byte there is nothing to check */
static inline void read_end(struct worker *worker, const struct op *op, __u64 pos)
{
	ssize_t ret;

	MARK(MARK_OP);
	ret = op->run(worker, pos);
	MARK(MARK_END);
	if (ret < 0)
		bench_die_errno("reading %zu bytes at %llu failed", worker->team->size, pos);
	if (ret)
		bench_die("reading at %llu, the end, gave %zd bytes", pos, ret);
}

/* The same with every byte checked, which takes longer than most reads */
static void read_one_fully(struct worker *worker, const struct op *op, __u64 pos)
{
	size_t i;

	for (i = 0; i < worker->team->len; i++)
		worker->buf[i] = ~pattern(worker->seed, pos + i);
	memset(worker->buf + i, 0xff, worker->team->size - i);
	read_one(worker, op, pos);
	if (!all_good(worker, pos))
		bad_read(worker, pos, worker->team->len);
}

static __u64 read_some(struct worker *worker, const struct op *op, unsigned int from,
		       unsigned int to)
{
	__u64 start = bench_now();
	unsigned int i;

	if (cfg.offsets == OFFSETS_END)
		for (i = from; i < to; i++)
			read_end(worker, op, worker->pos[i]);
	else if (cfg.verify == VERIFY_FULL)
		for (i = from; i < to; i++)
			read_one_fully(worker, op, worker->pos[i]);
	else
		for (i = from; i < to; i++)
			read_one(worker, op, worker->pos[i]);
	return bench_now() - start;
}

/* ---- where to read ---- */

static __u64 hit_pos(struct worker *worker)
{
	const struct team *team = worker->team;
	__u64 blocks = team->len ? team->hot_size / team->len : 0;

	switch (cfg.offsets) {
	case OFFSETS_END:
		return team->file_size;
	case OFFSETS_RANDOM:
		worker->random ^= worker->random << 13;
		worker->random ^= worker->random >> 7;
		worker->random ^= worker->random << 17;
		return worker->random % blocks * team->len;
	case OFFSETS_SEQUENTIAL:
		if (worker->next >= blocks)
			worker->next = 0;
		return worker->next++ * team->len;
	default:
		return 0;
	}
}

static void drop_misses(const struct worker *worker)
{
	int err = posix_fadvise(worker->fd, worker->miss_pos, worker->slots * worker->slot,
				POSIX_FADV_DONTNEED);

	if (err)
		bench_leave(BENCH_FAIL, err, "cannot drop a part of the file from the cache");
}

/* A file that was just written, so that its pages are cached, and nobody has read */
static void renew_file(struct worker *worker)
{
	int path_fd = file_make(worker->team, worker->seed, cfg.corrupt);

	close(worker->fd);
	worker->fd = bench_reopen(path_fd, O_RDONLY);
	worker->file_pos = 0;
	close(path_fd);
}

/* Decide about the next reads, up to that many; all that is not timed */
static void plan(struct worker *worker, unsigned int nr)
{
	unsigned int misses = 0, i;
	size_t len;

	if (cfg.offsets == OFFSETS_FIRST)
		renew_file(worker);
	for (i = 0; i < nr; i++) {
		worker->miss_due += 100 - cfg.hit_ratio;
		if (worker->miss_due < 100) {
			worker->pos[i] = hit_pos(worker);
			continue;
		}
		worker->miss_due -= 100;
		worker->pos[i] = worker->miss_pos + misses * worker->slot;
		misses++;
	}
	if (!misses)
		return;
	drop_misses(worker);
	/* What could not be dropped right now is a hit, and not counted */
	len = misses * worker->slot;
	worker->result.misses += len / page_size - resident(worker->miss_map, len,
							    worker->miss_vec);
}

/* Can this file system miss at all? */
static void check_misses(const struct worker *worker)
{
	unsigned int i;

	for (i = 0; i < DROP_TRIES; i++) {
		drop_misses(worker);
		if (!resident(worker->miss_map, worker->slots * worker->slot, worker->miss_vec))
			return;
	}
	bench_skip("the file system of %s does not let go of cached pages", cfg.dir);
}

/* The part of the file where misses are is shared out among the workers */
static __u64 miss_slots(size_t size, __u64 file_size)
{
	__u64 slot = (size + page_size - 1) / page_size * page_size;
	__u64 half = file_size / 2 / page_size * page_size;
	unsigned int sharers = cfg.different ? 1 : cfg.workers;

	return (file_size - half) / slot / sharers;
}

static void worker_init_misses(struct worker *worker)
{
	const struct team *team = worker->team;
	unsigned int share = cfg.different ? 0 : worker->index;
	__u64 limit;
	size_t len;

	worker->slot = (team->size + page_size - 1) / page_size * page_size;
	worker->slots = miss_slots(team->size, team->file_size);
	/* No page is to be asked for twice in a round */
	limit = worker->slots * 100 / (100 - cfg.hit_ratio);
	if (worker->batch + worker->samples > limit) {
		worker->samples = limit < BATCH_SAMPLES ? 1 : limit / BATCH_SAMPLES;
		worker->batch = limit - worker->samples;
	}
	len = worker->slots * worker->slot;
	worker->miss_pos = team->hot_size + share * len;
	worker->miss_vec = bench_map(len / page_size, MAP_PRIVATE);
	worker->miss_map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, worker->fd, worker->miss_pos);
	if (worker->miss_map == MAP_FAILED)
		bench_die_errno("cannot map a file in %s", cfg.dir);
	if (posix_fadvise(worker->fd, 0, 0, POSIX_FADV_RANDOM))
		bench_die("posix_fadvise() failed");
	check_misses(worker);
}

/* ---- workers ---- */

/* Where reads go: what is not there before a read begins with a page */
static void worker_init_buffer(struct worker *worker)
{
	size_t size = worker->team->size, there = size, room;

	if (cfg.buffer == BUFFER_HALF)
		there = size / 2;
	else if (cfg.buffer == BUFFER_GONE)
		there = 0;
	room = (there + page_size - 1) / page_size * page_size;
	worker->gone_size = size - there;
	worker->area_size = room + worker->gone_size;
	worker->area = bench_map(worker->area_size, MAP_PRIVATE);
	worker->gone = worker->area + room;
	worker->buf = worker->gone - there;
}

/* Rounds of some reads that are timed one by one, and then a batch */
static void work(struct worker *worker, __u64 count, double seconds)
{
	__u64 deadline = worker->team->start_ns + (__u64)(seconds * BENCH_NSEC);
	struct result *result = &worker->result;
	unsigned int nr, samples, i;
	__u64 ns;

	do {
		nr = worker->samples + worker->batch;
		if (count && nr > count - result->ops)
			nr = count - result->ops;
		samples = worker->samples < nr ? worker->samples : nr;
		plan(worker, nr);
		for (i = 0; i < samples; i++) {
			ns = read_some(worker, worker->team->op, i, i + 1);
			bench_hist_add(&result->hist, ns);
			result->busy_ns += ns;
		}
		if (nr > samples) {
			ns = read_some(worker, worker->team->op, samples, nr);
			result->busy_ns += ns;
		}
		result->ops += nr;
	} while (count ? result->ops < count : bench_now() < deadline);
}

/*
 * The marks are written by the worker that is warm last, before any other
 * goes on, and by the one that has finished last, before any other exits. So
 * nothing but the reads, and what it takes to miss, happens between them.
 */
static void worker_main(struct team *team, unsigned int index)
{
	/* Not on the stack or before a fork(): all pages are to be there */
	struct worker *worker = bench_map(sizeof(*worker), MAP_PRIVATE);

	if (cfg.pin)
		bench_pin(index);
	worker->index = index;
	worker->seed = cfg.different ? index : 0;
	worker->team = team;
	worker_init_buffer(worker);
	worker->iov.iov_base = worker->buf;
	worker->iov.iov_len = team->size;
	worker->random = 0x2545f4914f6cdd1dULL + index;
	worker->fd = team->shared_fd;
	if (worker->fd < 0)
		worker->fd = bench_reopen(team->files[cfg.different ? index : 0], O_RDONLY);
	worker->batch = BATCH_BYTES / team->size;
	if (worker->batch > BATCH_OPS)
		worker->batch = BATCH_OPS;
	worker->samples = worker->batch < BATCH_SAMPLES ? 1 : worker->batch / BATCH_SAMPLES;
	if (cfg.offsets == OFFSETS_FIRST) {
		worker->batch = 0;
		worker->samples = 1;
	}
	if (cfg.hit_ratio < 100)
		worker_init_misses(worker);

	work(worker, cfg.warmup, 0);
	memset(&worker->result, 0, sizeof(worker->result));

	if (bench_arrive(&team->ready, cfg.workers)) {
		mark("begin", team->size, team->file_size, op_names[team->op - ops]);
		MARK(MARK_OPEN);
		team->start_ns = bench_now();
		bench_event_set(&team->open, cfg.workers > 1);
	} else {
		bench_event_wait(&team->open);
	}
	work(worker, cfg.count, cfg.seconds);
	if (bench_arrive(&team->done, cfg.workers)) {
		MARK(MARK_CLOSE);
		mark("end", team->size, team->file_size, op_names[team->op - ops]);
		bench_event_set(&team->closed, cfg.workers > 1);
	} else {
		bench_event_wait(&team->closed);
	}

	worker->result.bytes = worker->result.ops * team->len;
	team->result[index] = worker->result;
	if (worker->miss_map) {
		munmap(worker->miss_map, worker->slots * worker->slot);
		munmap(worker->miss_vec, worker->slots * worker->slot / page_size);
	}
	if (worker->fd != team->shared_fd)
		close(worker->fd);
	munmap(worker->area, worker->area_size);
	munmap(worker, sizeof(*worker));
}

struct start {
	struct team *team;
	unsigned int index;
	pthread_t thread;
	pid_t pid;		/* 0: reaped, or a thread */
};

static void *worker_thread(void *arg)
{
	struct start *start = arg;

	worker_main(start->team, start->index);
	return NULL;
}

static void run_threads(struct start *start)
{
	unsigned int i;
	int err;

	for (i = 0; i < cfg.workers; i++) {
		err = pthread_create(&start[i].thread, NULL, worker_thread, &start[i]);
		if (err)
			bench_leave(BENCH_FAIL, err, "cannot start worker %u", i);
	}
	for (i = 0; i < cfg.workers; i++)
		pthread_join(start[i].thread, NULL);
}

static void kill_workers(const struct start *start)
{
	unsigned int i;

	for (i = 0; i < cfg.workers; i++)
		if (start[i].pid > 0)
			kill(start[i].pid, SIGKILL);
	for (i = 0; i < cfg.workers; i++)
		if (start[i].pid > 0)
			waitpid(start[i].pid, NULL, 0);
}

static void run_processes(struct start *start)
{
	unsigned int i, left;
	int status, err;
	pid_t pid;

	for (i = 0; i < cfg.workers; i++) {
		start[i].pid = fork();
		if (!start[i].pid) {
			bench_die_with(main_pid);
			worker_main(start[i].team, i);
			_exit(BENCH_OK);
		}
		if (start[i].pid < 0) {
			err = errno;
			kill_workers(start);
			bench_leave(BENCH_FAIL, err, "cannot fork worker %u", i);
		}
	}
	for (left = cfg.workers; left; left--) {
		pid = waitpid(-1, &status, 0);
		if (pid < 0)
			bench_die_errno("waitpid");
		for (i = 0; i < cfg.workers; i++)
			if (start[i].pid == pid)
				start[i].pid = 0;
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			continue;
		kill_workers(start);
		if (WIFSIGNALED(status))
			bench_die("a worker was killed by signal %d", WTERMSIG(status));
		/* The worker itself has said what was wrong */
		_exit(WEXITSTATUS(status));
	}
}

/*
 * One worker is this very thread: the kernel counts the users of an open file
 * only where threads share their files, and the C library prepares to be
 * cancelled only where there are threads.
 */
static void run_team(struct team *team)
{
	struct start *start;
	unsigned int i;

	if (cfg.workers == 1) {
		worker_main(team, 0);
		return;
	}
	start = calloc(cfg.workers, sizeof(*start));
	if (!start)
		bench_die_errno("cannot allocate the workers");
	for (i = 0; i < cfg.workers; i++) {
		start[i].team = team;
		start[i].index = i;
	}
	if (cfg.processes)
		run_processes(start);
	else
		run_threads(start);
	free(start);
}

/* ---- results ---- */

struct report {
	size_t size;
	__u64 file_size;
	const char *op;
	__u64 ops;
	__u64 bytes;
	__u64 misses;
	double seconds;
	unsigned int per;	/* operations in what the histogram has */
	struct bench_hist hist;
};

static const struct {
	double percent;
	const char *key;
} percentiles[] = {
	{ 50, "p50_ns" }, { 90, "p90_ns" }, { 99, "p99_ns" },
};

static double percentile(const struct report *r, unsigned int nr)
{
	return bench_hist_percentile(&r->hist, percentiles[nr].percent) / r->per;
}

static void report_json(const struct report *r)
{
	unsigned int i;

	bench_json_begin("small_read_bench");
	bench_json_u64("size", r->size);
	bench_json_u64("threads", cfg.workers);
	bench_json_u64("file_size", r->file_size);
	bench_json_str("op", r->op);
	bench_json_str("workers", cfg.processes ? "processes" : "threads");
	bench_json_str("files", cfg.different ? "different" : "same");
	bench_json_str("fd", fd_names[cfg.fd]);
	bench_json_str("offsets", offsets_names[cfg.offsets]);
	bench_json_u64("hit_ratio", cfg.hit_ratio);
	bench_json_u64("heat", cfg.heat);
	bench_json_str("verify", verify_names[cfg.verify]);
	bench_json_str("buffer", buffer_names[cfg.buffer]);
	bench_json_bool("pinned", cfg.pin);
	bench_json_bool("everywhere", cfg.everywhere);
	bench_json_u64("write_size", cfg.write_size);
	bench_json_u64("page_size", page_size);
	bench_json_u64_or_null("count", cfg.count);
	bench_json_double_or_null("time_limit", cfg.seconds, 3);
	bench_json_u64("warmup", cfg.warmup);
	bench_json_u64("ops", r->ops);
	bench_json_u64("bytes", r->bytes);
	bench_json_u64("misses", r->misses);
	bench_json_double("seconds", r->seconds, 9);
	bench_json_double("mb_per_s", r->bytes / r->seconds / 1e6, 3);
	bench_json_double("ns_per_op", r->seconds * BENCH_NSEC / r->ops, 3);
	for (i = 0; i < BENCH_ARRAY_SIZE(percentiles); i++)
		bench_json_double(percentiles[i].key, percentile(r, i), 1);
	bench_json_double("max_ns", (double)r->hist.max / r->per, 1);
	bench_json_end();
}

static void report_table(const struct report *r)
{
	static bool header_done;
	unsigned int i;

	if (!header_done) {
		printf("# %u %s%s%s, in %s; times in ns\n", cfg.workers,
		       cfg.processes ? "process" : "thread",
		       cfg.workers == 1 ? "" : cfg.processes ? "es" : "s",
		       cfg.pin ? ", pinned" : "", cfg.dir);
		printf("#%8s %9s %10s %10s %9s %9s %9s %9s %9s %10s\n", "op", "size",
		       "file size", "ops", "MB/s", "ns/op", "p50", "p90", "p99", "max");
		header_done = true;
	}
	printf("%9s %9zu %10llu %10llu %9.1f %9.1f", r->op, r->size, r->file_size, r->ops,
	       r->bytes / r->seconds / 1e6, r->seconds * BENCH_NSEC / r->ops);
	for (i = 0; i < BENCH_ARRAY_SIZE(percentiles); i++)
		printf(" %9.1f", percentile(r, i));
	printf(" %10.1f\n", (double)r->hist.max / r->per);
	fflush(stdout);
}

static void report_result(const struct report *r)
{
	if (cfg.json)
		report_json(r);
	else
		report_table(r);
}

/* ---- taking pages out of the cache ---- */

/*
 * The file is all hole, as for the file system to allocate and free blocks
 * is no matter of the page cache. Where reading a hole leaves no page in the
 * cache (tmpfs), pages are written. Page by page and without readahead, so
 * that there are as many folios as pages.
 */
struct victim {
	int fd;
	__u64 file_size;
	size_t pages;
	bool write;
	unsigned char *vec;
	unsigned char *page;
};

static size_t victim_resident(const struct victim *victim)
{
	void *map = mmap(NULL, victim->file_size, PROT_READ, MAP_PRIVATE, victim->fd, 0);
	size_t nr;

	if (map == MAP_FAILED)
		bench_die_errno("cannot map a file in %s", cfg.dir);
	nr = resident(map, victim->file_size, victim->vec);
	munmap(map, victim->file_size);
	return nr;
}

/* All that was in the file is gone, so it reads as zeroes */
static void victim_fill(const struct victim *victim)
{
	size_t len, i;
	ssize_t ret;
	__u64 pos;

	for (pos = 0; pos < victim->file_size; pos += page_size) {
		len = page_size;
		if (len > victim->file_size - pos)
			len = victim->file_size - pos;
		ret = pread(victim->fd, victim->page, len, pos);
		if (ret < 0)
			bench_die_errno("cannot read a file in %s", cfg.dir);
		if ((size_t)ret != len)
			bench_die("reading %zu bytes at %llu gave %zd", len, pos, ret);
		for (i = 0; i < len; i++)
			if (victim->page[i])
				bench_die("there is data at %llu, which was deleted", pos + i);
		if (victim->write) {
			pattern_fill(victim->page, 1, pos, len);
			write_at(victim->fd, victim->page, len, pos);
		}
	}
	file_heat(victim->fd, victim->file_size);
}

static void victim_make(struct victim *victim, __u64 file_size)
{
	int path_fd;

	victim->fd = file_create(&path_fd);
	close(path_fd);
	victim->file_size = file_size;
	victim->pages = (file_size + page_size - 1) / page_size;
	victim->vec = bench_map(victim->pages, MAP_PRIVATE);
	victim->page = bench_map(page_size, MAP_PRIVATE);
	if (ftruncate(victim->fd, file_size))
		bench_die_errno("cannot set the size of a file in %s", cfg.dir);
	if (posix_fadvise(victim->fd, 0, 0, POSIX_FADV_RANDOM))
		bench_die("posix_fadvise() failed");
	victim_fill(victim);
	if (victim_resident(victim) == victim->pages)
		return;
	victim->write = true;
	victim_fill(victim);
	if (victim_resident(victim) != victim->pages)
		bench_skip("the file system of %s does not cache files", cfg.dir);
}

static void delete_pages(int fd)
{
	int err;

	if (cfg.delete == DELETE_TRUNCATE) {
		if (ftruncate(fd, 0))
			bench_die_errno("cannot truncate a file in %s", cfg.dir);
		return;
	}
	err = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (err)
		bench_leave(BENCH_FAIL, err, "posix_fadvise");
}

/* After a truncation to 0: the cache can only be looked at below the size */
static void victim_grow(const struct victim *victim)
{
	struct stat st;

	if (fstat(victim->fd, &st))
		bench_die_errno("fstat");
	if (st.st_size)
		bench_die("the size is %lld after a truncation", (long long)st.st_size);
	if (ftruncate(victim->fd, victim->file_size))
		bench_die_errno("cannot set the size of a file in %s", cfg.dir);
}

/* Time one round, from a full cache to an empty one. False: did not get there */
static bool delete_once(const struct victim *victim, bool warm, __u64 *ns)
{
	const char *op = delete_names[cfg.delete];
	bool forget = warm && cfg.corrupt;
	unsigned int tries;
	__u64 start;
	size_t left;

	left = victim_resident(victim);
	if (left != victim->pages)
		bench_die("%zu pages are cached instead of %zu", left, victim->pages);
	if (warm)
		mark("begin", page_size, victim->file_size, op);
	start = bench_now();
	MARK(MARK_OP);
	if (!forget)
		delete_pages(victim->fd);
	MARK(MARK_END);
	*ns = bench_now() - start;
	if (warm)
		mark("end", page_size, victim->file_size, op);
	if (cfg.delete == DELETE_TRUNCATE && !forget)
		victim_grow(victim);
	left = victim_resident(victim);
	if (!left)
		return true;
	if (cfg.delete == DELETE_TRUNCATE || forget)
		bench_die("%zu pages are cached that were deleted", left);
	/* Advice is not taken for a page that somebody is just looking at */
	for (tries = 0; tries < DROP_TRIES && left; tries++) {
		delete_pages(victim->fd);
		left = victim_resident(victim);
	}
	if (left && warm)
		bench_die("%zu pages cannot be dropped any more", left);
	if (left)
		bench_skip("the file system of %s does not let go of cached pages", cfg.dir);
	return false;
}

/* Read the file once on each CPU, which the kernel may remember of the file */
static void victim_everywhere(const struct victim *victim)
{
	unsigned int i, nr = bench_cpus(NULL);
	char byte;

	for (i = 0; i < nr; i++) {
		bench_pin(i);
		if (pread(victim->fd, &byte, 1, 0) != 1)
			bench_die_errno("cannot read a file in %s", cfg.dir);
	}
	bench_pin(0);
}

static void run_delete(__u64 file_size)
{
	struct report report = {
		.size = page_size, .file_size = file_size, .op = delete_names[cfg.delete],
	};
	struct result *result = bench_map(sizeof(*result), MAP_PRIVATE);
	struct victim victim = { 0 };
	__u64 deadline, rounds = 0;
	unsigned int i;
	__u64 ns;

	if (cfg.pin)
		bench_pin(0);
	victim_make(&victim, file_size);
	if (cfg.everywhere)
		victim_everywhere(&victim);

	/* As many pages as there would be reads, but once at least */
	for (i = 0; i < cfg.warmup; i += victim.pages) {
		delete_once(&victim, false, &ns);
		victim_fill(&victim);
	}
	MARK(MARK_OPEN);
	deadline = bench_now() + (__u64)(cfg.seconds * BENCH_NSEC);
	for (;;) {
		if (delete_once(&victim, true, &ns)) {
			bench_hist_add(&result->hist, ns);
			result->busy_ns += ns;
			rounds++;
		}
		if (cfg.count ? rounds >= cfg.count : rounds && bench_now() >= deadline)
			break;
		victim_fill(&victim);
	}
	MARK(MARK_CLOSE);

	report.per = victim.pages;
	report.ops = rounds * victim.pages;
	report.bytes = report.ops * page_size;
	report.seconds = (double)result->busy_ns / BENCH_NSEC;
	report.hist = result->hist;
	report_result(&report);
	close(victim.fd);
	munmap(victim.vec, victim.pages);
	munmap(victim.page, page_size);
	munmap(result, sizeof(*result));
}

/* ---- running ---- */

static void run_reads(unsigned int op, size_t size, __u64 file_size)
{
	size_t team_size = sizeof(struct team) + cfg.workers * sizeof(struct result);
	struct report report = {
		.size = size, .file_size = file_size, .op = op_names[op], .per = 1,
	};
	unsigned int nr_files = cfg.different ? cfg.workers : 1;
	struct team *team = bench_map(team_size, MAP_SHARED);
	unsigned int i;
	__u64 busy = 0;

	team->op = &ops[op];
	team->size = size;
	team->len = size < file_size ? size : file_size;
	if (cfg.offsets == OFFSETS_END)
		team->len = 0;
	team->file_size = file_size;
	team->hot_size = file_size;
	if (cfg.hit_ratio < 100)
		team->hot_size = file_size / 2 / page_size * page_size;
	team->files = calloc(nr_files, sizeof(*team->files));
	if (!team->files)
		bench_die_errno("cannot allocate the list of files");
	for (i = 0; i < nr_files; i++)
		team->files[i] = file_make(team, i, cfg.corrupt && i == nr_files - 1);
	team->shared_fd = cfg.fd == FD_SHARED ? bench_reopen(team->files[0], O_RDONLY) : -1;
	run_team(team);

	for (i = 0; i < cfg.workers; i++) {
		const struct result *result = &team->result[i];

		bench_hist_merge(&report.hist, &result->hist);
		report.ops += result->ops;
		report.bytes += result->bytes;
		report.misses += result->misses;
		busy += result->busy_ns;
	}
	/* On average, as not all may end at the same time */
	report.seconds = (double)busy / cfg.workers / BENCH_NSEC;
	report_result(&report);

	if (team->shared_fd >= 0)
		close(team->shared_fd);
	for (i = 0; i < nr_files; i++)
		close(team->files[i]);
	free(team->files);
	munmap(team, team_size);
}

static const char help_text[] =
"Usage: small_read_bench [OPTION]...\n"
"Measure what small buffered reads of cached files cost.\n"
"\n"
"A LIST is separated by commas; sizes may end in K, M or G. Every combination of file\n"
"size, operation and size is run, one after the other.\n"
"\n"
"What to read:\n"
"      --sizes LIST      bytes to ask for, 1 to 64K (default 1,64,256,1K,4K,64K). From\n"
"                        a file that is smaller, all of it is read\n"
"      --file-size LIST  sizes of the files, up to 1G (default 4K,1M)\n"
"      --dir DIR         where to make them, without names (default: /tmp)\n"
"      --write-size N    write them by N bytes at a time (default 1M), which in many\n"
"                        file systems decides how large the folios are\n"
"      --offsets WHICH   hot (always 0, the default), random or sequential, multiples\n"
"                        of the size, end: always behind the last byte, or first:\n"
"                        at 0, once, of a new file that nobody has read\n"
"      --hit-ratio P     let P percent of the reads hit the cache (default 100). Hits\n"
"                        are to the first half of the file, and all others to a page\n"
"                        of the second half, which is dropped again and again\n"
"      --heat N          read each page N times before (default 8; 0 with --delete).\n"
"                        With 0, pages are those that were just written, which the LRU\n"
"                        thinks cold\n"
"\n"
"How:\n"
"      --op LIST         pread (default), read or preadv2. Where a read() does not go\n"
"                        on where the last one has ended, the time of an lseek() is in\n"
"      --threads N       N threads, 1 to 256 (default 1, which is the main thread)\n"
"      --procs N         N processes instead\n"
"      --same            all read the same file (default)\n"
"      --different       each has a file of its own\n"
"      --fd WHICH        own (default) or shared: an open file for each, or one for all\n"
"      --buffer WHICH    what to read into: there (default), gone: memory that is not\n"
"                        there before each read, so that it is faulted in, or half: the\n"
"                        last half of it is not. The time to let go of it counts\n"
"      --pin             pin worker i to the i-th allowed CPU, modulo their number\n"
"\n"
"Something else:\n"
"      --delete[=HOW]    do not read, but take all pages of a file out of the cache at\n"
"                        once: truncate (to 0, the default) or dontneed (by\n"
"                        posix_fadvise()). An operation is the deletion of one page,\n"
"                        and each page is a folio\n"
"      --everywhere      with --delete: first, and once, read the file on each allowed\n"
"                        CPU, then go on on the first one\n"
"\n"
"How long:\n"
"      --count N         fixed work: N reads per worker, or N times all pages\n"
"      --seconds S       fixed time: S seconds each, fractions allowed (default 1)\n"
"      --warmup N        N operations per worker that do not count (default 1000)\n"
"\n"
"Checks (never of time):\n"
"      --verify[=HOW]    sample (default): the first and the last byte of every read, or\n"
"                        full (if just --verify): all, which takes longer than reading\n"
"      --corrupt         damage a byte of each block of a file, or do not delete, to see\n"
"                        that it is noticed\n"
"\n"
"Output:\n"
"      --json            one JSON object per line, file size, operation and size\n"
"      --marker          write \"small_read_bench: begin ...\" and \"small_read_bench:\n"
"                        end ...\" to tracefs (trace_marker) around each measurement, or\n"
"                        around each deletion of all pages\n"
"  -h, --help            this text\n"
"\n"
"Reads are timed in batches of 200, fewer if larger than 1K, and before each batch a\n"
"twentieth as many on their own: these are what percentiles and max_ns are about, with\n"
"the time it takes to read the clock in them. ns_per_op is the time spent in all of it,\n"
"on average of the workers, divided by the number of operations of all workers.\n"
"With --delete, a batch is all pages of the file, and so is what is in the percentiles.\n"
"\n"
"Exit status: 0 success, 1 failure or a wrong result, 2 wrong usage, 4 not supported\n"
"here.\n";

enum {
	OPT_BUFFER = BENCH_OPT_BASE,
	OPT_CORRUPT,
	OPT_COUNT,
	OPT_DELETE,
	OPT_DIFFERENT,
	OPT_DIR,
	OPT_EVERYWHERE,
	OPT_FD,
	OPT_FILE_SIZE,
	OPT_HEAT,
	OPT_HIT_RATIO,
	OPT_JSON,
	OPT_MARKER,
	OPT_OFFSETS,
	OPT_OP,
	OPT_PIN,
	OPT_PROCS,
	OPT_SAME,
	OPT_SECONDS,
	OPT_SIZES,
	OPT_THREADS,
	OPT_VERIFY,
	OPT_WARMUP,
	OPT_WRITE_SIZE,
};

static const struct option options[] = {
	{ "buffer",	required_argument,	NULL, OPT_BUFFER },
	{ "corrupt",	no_argument,		NULL, OPT_CORRUPT },
	{ "count",	required_argument,	NULL, OPT_COUNT },
	{ "delete",	optional_argument,	NULL, OPT_DELETE },
	{ "different",	no_argument,		NULL, OPT_DIFFERENT },
	{ "dir",	required_argument,	NULL, OPT_DIR },
	{ "everywhere",	no_argument,		NULL, OPT_EVERYWHERE },
	{ "fd",		required_argument,	NULL, OPT_FD },
	{ "file-size",	required_argument,	NULL, OPT_FILE_SIZE },
	{ "heat",	required_argument,	NULL, OPT_HEAT },
	{ "help",	no_argument,		NULL, BENCH_OPT_HELP },
	{ "hit-ratio",	required_argument,	NULL, OPT_HIT_RATIO },
	{ "json",	no_argument,		NULL, OPT_JSON },
	{ "marker",	no_argument,		NULL, OPT_MARKER },
	{ "offsets",	required_argument,	NULL, OPT_OFFSETS },
	{ "op",		required_argument,	NULL, OPT_OP },
	{ "pin",	no_argument,		NULL, OPT_PIN },
	{ "procs",	required_argument,	NULL, OPT_PROCS },
	{ "same",	no_argument,		NULL, OPT_SAME },
	{ "seconds",	required_argument,	NULL, OPT_SECONDS },
	{ "sizes",	required_argument,	NULL, OPT_SIZES },
	{ "threads",	required_argument,	NULL, OPT_THREADS },
	{ "verify",	optional_argument,	NULL, OPT_VERIFY },
	{ "warmup",	required_argument,	NULL, OPT_WARMUP },
	{ "write-size",	required_argument,	NULL, OPT_WRITE_SIZE },
	{ 0 },
};

static void check_combinations(bool same, bool heated)
{
	unsigned int i, j;

	if (cfg.count && cfg.seconds > 0)
		bench_usage("--count and --seconds exclude each other");
	if (same && cfg.different)
		bench_usage("--same and --different exclude each other");
	if (cfg.fd == FD_SHARED && cfg.different)
		bench_usage("--fd shared and --different exclude each other");
	if (cfg.offsets == OFFSETS_END && cfg.hit_ratio < 100)
		bench_usage("--offsets end and --hit-ratio exclude each other");
	if (cfg.offsets == OFFSETS_FIRST && (cfg.hit_ratio < 100 || cfg.fd == FD_SHARED || heated))
		bench_usage("--offsets first excludes --hit-ratio, --fd shared and --heat");
	for (i = 0; i < cfg.ops.nr; i++)
		if (cfg.ops.val[i] == OP_READ && cfg.fd == FD_SHARED && cfg.workers > 1)
			bench_usage("--op read of several workers needs --fd own");
	for (i = 0; i < cfg.file_sizes.nr && cfg.hit_ratio < 100; i++)
		for (j = 0; j < cfg.sizes.nr; j++)
			if (cfg.sizes.val[j] > cfg.file_sizes.val[i] / 2 ||
			    cfg.file_sizes.val[i] / 2 < page_size ||
			    !miss_slots(cfg.sizes.val[j], cfg.file_sizes.val[i]))
				bench_usage("no room to miss %llu bytes in a file of %llu",
					    cfg.sizes.val[j], cfg.file_sizes.val[i]);
}

static void parse(int argc, char **argv)
{
	const char *read_only = NULL;
	bool heated = false;
	bool same = false;
	int c, workers = 0;

	while ((c = bench_getopt(argc, argv, ":h", options, help_text)) != -1) {
		switch (c) {
		case OPT_BUFFER:
			read_only = "--buffer";
			cfg.buffer = bench_parse_name("--buffer", optarg, buffer_names);
			break;
		case OPT_CORRUPT:
			cfg.corrupt = true;
			break;
		case OPT_COUNT:
			cfg.count = bench_parse_u64("--count", optarg, 1, 1ULL << 40, false);
			break;
		case OPT_DELETE:
			cfg.delete = DELETE_TRUNCATE;
			if (optarg)
				cfg.delete += bench_parse_name("--delete", optarg,
							       &delete_names[DELETE_TRUNCATE]);
			break;
		case OPT_DIFFERENT:
			read_only = "--different";
			cfg.different = true;
			break;
		case OPT_DIR:
			cfg.dir = optarg;
			break;
		case OPT_EVERYWHERE:
			cfg.everywhere = true;
			break;
		case OPT_FD:
			read_only = "--fd";
			cfg.fd = bench_parse_name("--fd", optarg, fd_names);
			break;
		case OPT_FILE_SIZE:
			bench_parse_list(&cfg.file_sizes, "--file-size", optarg, 1, MAX_FILE_SIZE,
					 true);
			break;
		case OPT_HEAT:
			heated = true;
			cfg.heat = bench_parse_u64("--heat", optarg, 0, 1000, false);
			break;
		case OPT_HIT_RATIO:
			read_only = "--hit-ratio";
			cfg.hit_ratio = bench_parse_u64("--hit-ratio", optarg, 0, 100, false);
			break;
		case OPT_JSON:
			cfg.json = true;
			break;
		case OPT_MARKER:
			cfg.marker = true;
			break;
		case OPT_OFFSETS:
			read_only = "--offsets";
			cfg.offsets = bench_parse_name("--offsets", optarg, offsets_names);
			break;
		case OPT_OP:
			read_only = "--op";
			bench_parse_names(&cfg.ops, "--op", optarg, op_names);
			break;
		case OPT_PIN:
			cfg.pin = true;
			break;
		case OPT_PROCS:
		case OPT_THREADS:
			if (workers && workers != c)
				bench_usage("--threads and --procs exclude each other");
			workers = c;
			cfg.processes = c == OPT_PROCS;
			cfg.workers = bench_parse_u64(cfg.processes ? "--procs" : "--threads",
						      optarg, 1, MAX_WORKERS, false);
			break;
		case OPT_SAME:
			read_only = "--same";
			same = true;
			break;
		case OPT_SECONDS:
			cfg.seconds = bench_parse_seconds("--seconds", optarg, 0.001);
			break;
		case OPT_SIZES:
			read_only = "--sizes";
			bench_parse_list(&cfg.sizes, "--sizes", optarg, 1, MAX_SIZE, true);
			break;
		case OPT_VERIFY:
			read_only = "--verify";
			cfg.verify = VERIFY_FULL;
			if (optarg)
				cfg.verify = bench_parse_name("--verify", optarg, verify_names);
			break;
		case OPT_WARMUP:
			cfg.warmup = bench_parse_u64("--warmup", optarg, 1, 100000000, false);
			break;
		case OPT_WRITE_SIZE:
			read_only = "--write-size";
			cfg.write_size = bench_parse_u64("--write-size", optarg, 1, 1 << 30, true);
			break;
		}
	}

	if (!cfg.count && cfg.seconds <= 0)
		cfg.seconds = DEFAULT_SECONDS;
	if (!cfg.file_sizes.nr) {
		/* The small one has no room for misses */
		if (cfg.hit_ratio == 100)
			cfg.file_sizes.val[cfg.file_sizes.nr++] = 4096;
		cfg.file_sizes.val[cfg.file_sizes.nr++] = 1 << 20;
	}
	/* Most files are deleted that nobody has read from the cache */
	if ((cfg.delete || cfg.offsets == OFFSETS_FIRST) && !heated)
		cfg.heat = 0;
	if (cfg.delete && read_only)
		bench_usage("%s means nothing with --delete", read_only);
	if (cfg.delete && cfg.workers > 1)
		bench_usage("--delete is for one worker");
	if (cfg.everywhere && !cfg.delete)
		bench_usage("--everywhere is for --delete");
	check_combinations(same, heated);
}

int main(int argc, char **argv)
{
	unsigned int i, j, k;

	bench_name = "small_read_bench";
	page_size = sysconf(_SC_PAGESIZE);
	parse(argc, argv);
	main_pid = getpid();
	/* Traces are filtered by name, and only 15 characters of it are kept */
	prctl(PR_SET_NAME, "small_read");
	/* What is touched for the first time must not fault while it is timed */
	if (!mlockall(MCL_CURRENT))
		munlockall();
	bench_cpus(NULL);	/* fills its cache before there are workers */
	if (cfg.marker)
		bench_marker_open();
	for (i = 0; i < cfg.file_sizes.nr; i++) {
		if (cfg.delete) {
			run_delete(cfg.file_sizes.val[i]);
			continue;
		}
		for (j = 0; j < cfg.ops.nr; j++)
			for (k = 0; k < cfg.sizes.nr; k++)
				run_reads(cfg.ops.val[j], cfg.sizes.val[k],
					  cfg.file_sizes.val[i]);
	}
	return bench_finish();
}
