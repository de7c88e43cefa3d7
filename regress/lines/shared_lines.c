// SPDX-License-Identifier: GPL-2.0
/*
 * Do the same operation on several CPUs, a worker pinned to each, between the
 * marks that scripts/tcg/lines.c counts memory accesses by. Without that
 * plugin the operations are done and nothing comes of it: nothing is timed.
 *
 * Workers take turns: "pause" after each operation gives the processor to the
 * next virtual CPU, where QEMU runs them by turns. Else one would do most of
 * its operations before the next one begins, and memory that is freed and
 * allocated again would stay with one CPU for no other reason.
 */
#include "bench.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

#define DEFAULT_COUNT	100
#define DEFAULT_WARMUP	20
#define DEFAULT_SIZE	64
#define MAX_COUNT	10000
#define MAX_CPUS	64
#define MAX_SIZE	65536

/* A fault maps up to so much of a file around it, and the next one is behind that */
#define FILE_STRIDE	65536
/* What one page of page tables maps */
#define TABLE_SPAN	(2UL << 20)
/* How often a page is read before, so that the LRU leaves it alone afterwards */
#define HEAT_PASSES	8
/* Some thousand instructions */
#define NOTHING_LOOPS	1000

struct worker;

/* A kind of operation. Workers are threads or processes */
struct op {
	bool threads;
	bool files;	/* --dir matters */
	bool pairs;	/* takes an even number of workers */
	void (*open)(void);			/* what all workers share */
	void (*prepare)(struct worker *worker);
	void (*run)(struct worker *worker, unsigned int nth);
};

/* Of a page of its own, so that workers share no line of it */
struct worker {
	unsigned int index;
	const struct op *op;
	int fd;
	int other_fd;
	char *map;
	size_t stride;
	char *buf;
};

/* In shared memory, and not touched between the first operation and the last */
struct team {
	unsigned int ready;	/* workers that are warm */
	unsigned int open;	/* a futex: start */
	unsigned int running;	/* workers that have seen that */
	unsigned int done;
	unsigned int finished;	/* a futex: all are done */
	unsigned int closed;	/* a futex: the window is written down */
};

static struct {
	struct bench_list ops;
	struct bench_list cpus;
	const char *dir;
	unsigned int count;
	unsigned int warmup;
	size_t size;
	bool json;
} cfg = {
	.cpus = { 1, { 2 } },
	.dir = "/tmp",
	.count = DEFAULT_COUNT,
	.warmup = DEFAULT_WARMUP,
	.size = DEFAULT_SIZE,
};

static struct team *team;
static unsigned int nr_workers;
static size_t page_size;
/* Made by main before there are workers, see struct op */
static int common_fd;
static int pipes[MAX_CPUS / 2][2];

/* ---- files ---- */

static int new_file(size_t size)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/shared_lines_XXXXXX", cfg.dir) >= (int)sizeof(path))
		bench_die("the name of the directory is too long");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		bench_die_errno("cannot create a file in %s", cfg.dir);
	if (unlink(path))
		bench_die_errno("cannot remove %s", path);
	while (size) {
		static const char zeroes[MAX_SIZE];
		ssize_t ret = write(fd, zeroes, size < MAX_SIZE ? size : MAX_SIZE);

		if (ret <= 0)
			bench_die_errno("cannot write to a file in %s", cfg.dir);
		size -= ret;
	}
	/* Nobody is to write it back while it is read */
	if (fsync(fd))
		bench_die_errno("cannot write back a file in %s", cfg.dir);
	return fd;
}

static void pread_once(struct worker *worker, unsigned int nth)
{
	(void)nth;
	if (pread(worker->fd, worker->buf, cfg.size, 0) != (ssize_t)cfg.size)
		bench_die_errno("cannot read %zu bytes of a file in %s", cfg.size, cfg.dir);
}

/* What a CPU still has to tell the LRU about pages, MADV_COLD of any page tells */
static void heat(struct worker *worker)
{
	void *map = bench_map(page_size, MAP_PRIVATE);
	unsigned int i;

	for (i = 0; i < HEAT_PASSES; i++) {
		pread_once(worker, 0);
		if (madvise(map, page_size, MADV_COLD))
			bench_die_errno("MADV_COLD");
	}
	munmap(map, page_size);
}

static void open_common(void)
{
	common_fd = new_file(MAX_SIZE);
}

static void read_one_prepare(struct worker *worker)
{
	worker->fd = bench_reopen(common_fd, O_RDONLY);
	heat(worker);
}

static void read_shared_prepare(struct worker *worker)
{
	worker->fd = common_fd;
	heat(worker);
}

static void read_own_prepare(struct worker *worker)
{
	worker->fd = new_file(MAX_SIZE);
	heat(worker);
}

/* ---- pipes ---- */

static void pipe_write(struct worker *worker, unsigned int nth)
{
	(void)nth;
	if (write(worker->other_fd, worker->buf, cfg.size) != (ssize_t)cfg.size)
		bench_die_errno("cannot write %zu bytes to a pipe", cfg.size);
}

static void pipe_read(struct worker *worker, unsigned int nth)
{
	size_t got = 0;

	(void)nth;
	while (got < cfg.size) {
		ssize_t ret = read(worker->fd, worker->buf, cfg.size - got);

		if (ret <= 0)
			bench_die_errno("cannot read from a pipe");
		got += ret;
	}
}

static void pipe_own_prepare(struct worker *worker)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		bench_die_errno("cannot make a pipe");
	worker->fd = fd[0];
	worker->other_fd = fd[1];
}

static void pipe_own_run(struct worker *worker, unsigned int nth)
{
	pipe_write(worker, nth);
	pipe_read(worker, nth);
}

static void pipe_pair_open(void)
{
	unsigned int i;

	for (i = 0; i < nr_workers / 2; i++)
		if (pipe2(pipes[i], O_CLOEXEC))
			bench_die_errno("cannot make a pipe");
}

static void pipe_pair_prepare(struct worker *worker)
{
	worker->fd = pipes[worker->index / 2][0];
	worker->other_fd = pipes[worker->index / 2][1];
}

static void pipe_pair_run(struct worker *worker, unsigned int nth)
{
	if (worker->index % 2)
		pipe_read(worker, nth);
	else
		pipe_write(worker, nth);
}

/* ---- tasks ---- */

static void clone_run(struct worker *worker, unsigned int nth)
{
	pid_t pid = vfork();
	int status;

	(void)worker;
	(void)nth;
	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		bench_die_errno("cannot create a process and wait for it");
}

/* ---- faults ---- */

/*
 * Memory of an own VMA with own page tables: what is around it cannot be
 * merged with it.
 */
static void map_own(struct worker *worker, int fd, size_t stride)
{
	size_t len = (cfg.warmup + cfg.count) * stride;
	size_t room = len + 2 * TABLE_SPAN;
	uintptr_t at;
	void *map;

	map = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		bench_die_errno("cannot map %zu bytes", room);
	at = ((uintptr_t)map + TABLE_SPAN) / TABLE_SPAN * TABLE_SPAN;
	map = mmap((void *)at, len, fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ,
		   MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (map == MAP_FAILED)
		bench_die_errno("cannot map %zu bytes", len);
	worker->map = map;
	worker->stride = stride;
}

static void fault_anon_prepare(struct worker *worker)
{
	map_own(worker, -1, page_size);
	/* Where the kernel has no huge pages it does not know the advice */
	if (madvise(worker->map, (cfg.warmup + cfg.count) * page_size, MADV_NOHUGEPAGE) &&
	    errno != EINVAL)
		bench_die_errno("MADV_NOHUGEPAGE");
}

static void fault_anon_run(struct worker *worker, unsigned int nth)
{
	*(volatile char *)(worker->map + nth * worker->stride) = 1;
}

static void fault_file_prepare(struct worker *worker)
{
	map_own(worker, new_file((cfg.warmup + cfg.count) * FILE_STRIDE), FILE_STRIDE);
}

static void fault_file_run(struct worker *worker, unsigned int nth)
{
	(void)*(volatile char *)(worker->map + nth * worker->stride);
}

/* ---- what is common to all ---- */

static void nothing_prepare(struct worker *worker)
{
	(void)worker;
}

static void nothing_run(struct worker *worker, unsigned int nth)
{
	volatile unsigned int i;

	(void)worker;
	(void)nth;
	for (i = 0; i < NOTHING_LOOPS; i++)
		;
}

static void nothing_open(void)
{
}

static const char *const op_names[] = {
	"nothing", "read-one", "read-shared", "read-own", "pipe-own", "pipe-pair", "clone",
	"fault-anon", "fault-file", NULL
};

/* In the order of their names */
static const struct op ops[] = {
	{ .open = nothing_open, .prepare = nothing_prepare, .run = nothing_run },
	{ .open = open_common, .prepare = read_one_prepare, .run = pread_once, .files = true },
	{ .open = open_common, .prepare = read_shared_prepare, .run = pread_once, .files = true,
	  .threads = true },
	{ .open = nothing_open, .prepare = read_own_prepare, .run = pread_once, .files = true },
	{ .open = nothing_open, .prepare = pipe_own_prepare, .run = pipe_own_run },
	{ .open = pipe_pair_open, .prepare = pipe_pair_prepare, .run = pipe_pair_run,
	  .pairs = true },
	{ .open = nothing_open, .prepare = nothing_prepare, .run = clone_run },
	{ .open = nothing_open, .prepare = fault_anon_prepare, .run = fault_anon_run,
	  .threads = true },
	{ .open = nothing_open, .prepare = fault_file_prepare, .run = fault_file_run, .files = true,
	  .threads = true },
};

static void take_turns(void)
{
#ifdef __x86_64__
	__asm__ volatile("pause" : : : "memory");
#endif
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	unsigned int i;

	bench_pin(worker->index);
	worker->op->prepare(worker);
	for (i = 0; i < cfg.warmup; i++)
		worker->op->run(worker, i);
	bench_arrive(&team->ready, nr_workers);
	bench_futex(&team->ready, FUTEX_WAKE, 1);
	bench_event_wait(&team->open);
	/* Those that are woken last are to begin together with the first */
	bench_arrive(&team->running, nr_workers);
	while (__atomic_load_n(&team->running, __ATOMIC_ACQUIRE) < nr_workers)
		sched_yield();
	for (; i < cfg.warmup + cfg.count; i++) {
		MARK(MARK_OP);
		worker->op->run(worker, i);
		take_turns();
	}
	MARK(MARK_END);
	if (bench_arrive(&team->done, nr_workers))
		bench_event_set(&team->finished, true);
	/* What leaving takes is no part of it */
	bench_event_wait(&team->closed);
	return NULL;
}

static struct worker *new_worker(unsigned int index, const struct op *op)
{
	struct worker *worker = bench_map(page_size, MAP_PRIVATE);

	worker->index = index;
	worker->op = op;
	worker->buf = bench_map(MAX_SIZE, MAP_PRIVATE);
	return worker;
}

static void report(const char *name, const struct op *op)
{
	const char *fs = strrchr(cfg.dir, '/');

	if (!cfg.json) {
		printf("%-12s %2u CPUs, %u operations each\n", name, nr_workers, cfg.count);
		return;
	}
	bench_json_begin(bench_name);
	bench_json_str("op", name);
	bench_json_str("dir", op->files ? (fs ? fs + 1 : cfg.dir) : NULL);
	bench_json_u64("cpus", nr_workers);
	bench_json_u64("size", cfg.size);
	bench_json_u64("count", cfg.count);
	bench_json_end();
}

/* A worker that leaves before that has failed, and has said so */
static void worker_left(int signal)
{
	(void)signal;
	if (!__atomic_load_n(&team->closed, __ATOMIC_ACQUIRE))
		_exit(BENCH_FAIL);
}

static void run_op(const char *name, const struct op *op)
{
	pid_t parent = getpid(), pid[MAX_CPUS];
	pthread_t thread[MAX_CPUS];
	unsigned int i, ready;
	int status;

	team = bench_map(sizeof(*team), MAP_SHARED);
	common_fd = -1;
	op->open();
	fflush(stdout);
	signal(SIGCHLD, worker_left);
	for (i = 0; i < nr_workers; i++) {
		if (op->threads) {
			errno = pthread_create(&thread[i], NULL, work, new_worker(i, op));
			if (errno)
				bench_die_errno("cannot create a thread");
			continue;
		}
		pid[i] = fork();
		if (pid[i] < 0)
			bench_die_errno("cannot create a process");
		if (!pid[i]) {
			bench_die_with(parent);
			/* Operations have children of their own */
			signal(SIGCHLD, SIG_DFL);
			work(new_worker(i, op));
			_exit(BENCH_OK);
		}
	}
	while ((ready = __atomic_load_n(&team->ready, __ATOMIC_ACQUIRE)) < nr_workers)
		bench_futex(&team->ready, FUTEX_WAIT, ready);
	MARK(MARK_OPEN);
	bench_event_set(&team->open, true);
	bench_event_wait(&team->finished);
	MARK(MARK_CLOSE);
	bench_event_set(&team->closed, true);
	for (i = 0; i < nr_workers; i++) {
		if (op->threads)
			pthread_join(thread[i], NULL);
		else if (waitpid(pid[i], &status, 0) != pid[i] || status)
			bench_die("worker %u failed", i);
	}
	if (common_fd >= 0)
		close(common_fd);
	for (i = 0; op->pairs && i < nr_workers / 2; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	munmap(team, sizeof(*team));
	report(name, op);
}

/* ---- options ---- */

static const char help_text[] =
"Usage: shared_lines [OPTION]...\n"
"Do operations on several CPUs, between marks by which a plugin of QEMU counts the\n"
"cache lines that these CPUs share (make bench of hotpaths does that).\n"
"\n"
"A LIST is separated by commas. Every combination is run, one after the other.\n"
"\n"
"      --op LIST      what each worker does again and again (default: nothing):\n"
"                       nothing      a loop in user space\n"
"                       read-one     pread of a file that all have opened, from position 0\n"
"                       read-shared  the same by threads, with one open file for all\n"
"                       read-own     pread of a file of its own\n"
"                       pipe-own     write to and read from a pipe of its own\n"
"                       pipe-pair    even workers write to a pipe, the next one reads\n"
"                       clone        vfork(), _exit() and waitpid()\n"
"                       fault-anon   touch the next page of anonymous memory of its own,\n"
"                                    by threads\n"
"                       fault-file   the next 64 KiB of a mapped file of its own, by threads\n"
"      --cpus LIST    workers, each pinned to a CPU, up to 64 (default: 2)\n"
"      --count N      operations of each worker (default: 100)\n"
"      --warmup N     operations that do not count, before (default: 20)\n"
"      --size N       bytes of a read or write, up to 64K (default: 64)\n"
"      --dir DIR      where files are made (default: /tmp)\n"
"      --json         a JSON object for each combination, in the order of the windows\n"
"  -h, --help         this text\n"
"\n"
"Exit status: 0 success, 1 failure, 2 wrong usage, 4 fewer CPUs than asked for.\n";

enum { OPT_COUNT = BENCH_OPT_BASE, OPT_CPUS, OPT_DIR, OPT_JSON, OPT_OP, OPT_SIZE, OPT_WARMUP };

static const struct option options[] = {
	{ "count",	required_argument,	NULL, OPT_COUNT },
	{ "cpus",	required_argument,	NULL, OPT_CPUS },
	{ "dir",	required_argument,	NULL, OPT_DIR },
	{ "help",	no_argument,		NULL, BENCH_OPT_HELP },
	{ "json",	no_argument,		NULL, OPT_JSON },
	{ "op",		required_argument,	NULL, OPT_OP },
	{ "size",	required_argument,	NULL, OPT_SIZE },
	{ "warmup",	required_argument,	NULL, OPT_WARMUP },
	{ 0 },
};

static void parse(int argc, char **argv)
{
	unsigned int i, j;
	int c;

	cfg.ops.nr = 1;
	while ((c = bench_getopt(argc, argv, ":h", options, help_text)) != -1) {
		switch (c) {
		case OPT_COUNT:
			cfg.count = bench_parse_u64("--count", optarg, 1, MAX_COUNT, false);
			break;
		case OPT_CPUS:
			bench_parse_list(&cfg.cpus, "--cpus", optarg, 1, MAX_CPUS, false);
			break;
		case OPT_DIR:
			cfg.dir = optarg;
			break;
		case OPT_JSON:
			cfg.json = true;
			break;
		case OPT_OP:
			bench_parse_names(&cfg.ops, "--op", optarg, op_names);
			break;
		case OPT_SIZE:
			cfg.size = bench_parse_u64("--size", optarg, 1, MAX_SIZE, true);
			break;
		case OPT_WARMUP:
			cfg.warmup = bench_parse_u64("--warmup", optarg, 0, MAX_COUNT, false);
			break;
		}
	}
	for (i = 0; i < cfg.cpus.nr; i++) {
		if (cfg.cpus.val[i] > bench_cpus(NULL))
			bench_skip("there are %u CPUs", bench_cpus(NULL));
		for (j = 0; j < cfg.ops.nr; j++)
			if (ops[cfg.ops.val[j]].pairs && cfg.cpus.val[i] % 2)
				bench_usage("pairs take an even number of workers");
	}
}

int main(int argc, char **argv)
{
	unsigned int i, j;

	bench_name = "shared_lines";
	page_size = sysconf(_SC_PAGESIZE);
	parse(argc, argv);
	for (i = 0; i < cfg.ops.nr; i++) {
		for (j = 0; j < cfg.cpus.nr; j++) {
			nr_workers = cfg.cpus.val[j];
			run_op(op_names[cfg.ops.val[i]], &ops[cfg.ops.val[i]]);
		}
	}
	return bench_finish();
}
