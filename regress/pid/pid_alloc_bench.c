// SPDX-License-Identifier: GPL-2.0
/*
 * What the creation of a task costs: creating one, its exit and reaping it,
 * as one operation, by worker processes that do nothing else.
 *
 * Each operation is one alloc_pid() and one free_pid(), whose work under
 * pidmap_lock grows with the level of the pid namespace: the task gets a
 * number in its own namespace and in every one above (--levels). The lock is
 * global, so more workers (--procs) show how they wait for each other.
 *
 * Nothing here passes or fails on time. A task that is lost, created twice,
 * returns what it was not told to, or is in the wrong namespace is an error.
 */
#include "bench.h"

#include <linux/membarrier.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD			3
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD		0x00001000
#endif

#define MAX_PROCS		1024
#define MAX_LEVEL		30
#define MAX_IDLE		4096
#define DEFAULT_IDLE		16
#define DEFAULT_SECONDS		1
#define DEFAULT_WARMUP		100
#define STACK_SIZE		(64 * 1024)

static struct {
	struct bench_list ops;
	struct bench_list levels;
	unsigned int procs;
	unsigned int idle;
	unsigned int warmup;
	__u64 count;		/* 0: limited by time */
	double seconds;		/* 0: limited by count */
	bool corrupt;
	bool json;
	bool marker;
} cfg = {
	.levels = { 1, { 0 } },
	.procs = 1,
	.idle = DEFAULT_IDLE,
	.warmup = DEFAULT_WARMUP,
};

static pid_t main_pid;
static unsigned int base_nspids;

/* What a worker hands over; in shared memory */
struct result {
	__u64 ops;
	__u64 tasks;		/* counted by the tasks themselves */
	__u64 end_ns;
	struct bench_hist hist;
};

/* In shared memory; only 32-bit words are atomic on every architecture */
struct team {
	unsigned int ready;	/* workers that are warm */
	unsigned int open;	/* a futex: start */
	unsigned int done;	/* workers that have finished */
	unsigned int closed;	/* a futex: the end has been marked */
	__u64 start_ns;
	const struct op *op;
	unsigned int level;	/* where the workers are to be */
	unsigned int depth;	/* where we have got so far */
	unsigned char *stacks;	/* of the keepers, by level */
	struct result result[];
};

struct worker {
	unsigned int index;
	unsigned int value;	/* what the next task is to return */
	unsigned int damage;
	struct team *team;
	const struct op *op;	/* of the team, whose cache line others write to */
	struct result *result;
	unsigned char *stack;
};

struct op {
	/* Create a task and reap it; returns what it returned */
	unsigned int (*run)(struct worker *worker);
	/* Wait until the last task is gone, if run() does not; not timed */
	void (*settle)(void);
};

/* ---- the operations ---- */

/* What every task does. Those that share no memory still share the result */
static unsigned int task(struct worker *worker)
{
	worker->result->tasks++;
	return worker->value ^ worker->damage;
}

static int task_fn(void *arg)
{
	return task(arg);
}

static void *task_thread(void *arg)
{
	return (void *)(uintptr_t)task(arg);
}

static unsigned int reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		bench_die_errno("waitpid(%d)", pid);
	if (!WIFEXITED(status))
		bench_die("a task was killed by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static unsigned int op_thread(struct worker *worker)
{
	pthread_t thread;
	void *value;
	int err;

	err = pthread_create(&thread, NULL, task_thread, worker);
	if (err)
		bench_leave(BENCH_FAIL, err, "pthread_create");
	err = pthread_join(thread, &value);
	if (err)
		bench_leave(BENCH_FAIL, err, "pthread_join");
	return (uintptr_t)value;
}

/*
 * A thread that has been joined may still be about to exit: pthread_join()
 * returns when the thread has let go of its memory. It then takes itself off
 * the thread group, which the number of links of /proc/self/task (two and the
 * threads) shows, and calls free_pid() a moment later, without a sleep in
 * between: a grace period of RCU does not end before that.
 */
static void settle_threads(void)
{
	struct stat st;

	do {
		sched_yield();
		if (stat("/proc/self/task", &st))
			bench_die_errno("cannot look at /proc/self/task");
	} while (st.st_nlink > 3);
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

static unsigned int op_vfork(struct worker *worker)
{
	pid_t pid = vfork();

	if (!pid)
		_exit(task(worker));
	if (pid < 0)
		bench_die_errno("vfork");
	return reap(pid);
}

static unsigned int op_fork(struct worker *worker)
{
	pid_t pid = fork();

	if (!pid)
		_exit(task(worker));
	if (pid < 0)
		bench_die_errno("fork");
	return reap(pid);
}

static unsigned int op_clone3(struct worker *worker)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid = syscall(SYS_clone3, &args, sizeof(args));

	if (!pid)
		_exit(task(worker));
	if (pid < 0)
		bench_die_errno("clone3");
	return reap(pid);
}

/*
 * Not clone3(): a child that shares memory and returns from syscall() would
 * need a stack made by assembly. What the kernel does is the same.
 */
static unsigned int op_pidfd(struct worker *worker)
{
	siginfo_t info = { 0 };
	int pidfd = -1;
	pid_t pid;

	pid = clone(task_fn, worker->stack + STACK_SIZE,
		    CLONE_PIDFD | CLONE_VM | CLONE_VFORK | SIGCHLD, worker, &pidfd);
	if (pid < 0)
		bench_die_errno("clone with CLONE_PIDFD");
	if (waitid(P_PIDFD, pidfd, &info, WEXITED))
		bench_die_errno("waitid(P_PIDFD)");
	if (info.si_pid != pid || info.si_code != CLD_EXITED)
		bench_die("the pidfd of task %d gave task %d, code %d", pid, info.si_pid,
			  info.si_code);
	if (close(pidfd))
		bench_die_errno("cannot close the pidfd");
	return info.si_status;
}

enum { OP_THREAD, OP_VFORK, OP_FORK, OP_CLONE3, OP_PIDFD };

static const char *const op_names[] = {
	"thread", "vfork", "fork", "clone3", "pidfd", NULL
};

static const struct op ops[] = {
	[OP_THREAD]	= { op_thread,		settle_threads },
	[OP_VFORK]	= { op_vfork,		NULL },
	[OP_FORK]	= { op_fork,		NULL },
	[OP_CLONE3]	= { op_clone3,		NULL },
	[OP_PIDFD]	= { op_pidfd,		NULL },
};

static const char *op_name(const struct op *op)
{
	return op_names[op - ops];
}

/* ---- marks in the kernel's trace ---- */

static void mark(const char *what, const struct team *team)
{
	bench_mark("%s op=%s level=%u procs=%u\n", what, op_name(team->op), team->level,
		   cfg.procs);
}

/* ---- workers ---- */

/*
 * In how many pid namespaces, from that of the /proc in use, does this process
 * have a number? 0 if the kernel does not tell.
 */
static unsigned int nspids(pid_t *last)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned int nr = 0;
	char line[512];
	char *word;

	if (!f)
		bench_skip("cannot read /proc/self/status: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		for (word = strtok(line + 6, "\t\n"); word; word = strtok(NULL, "\t\n")) {
			*last = atoi(word);
			nr++;
		}
	}
	fclose(f);
	return nr;
}

/* Is this worker where its tasks are to be? */
static void check_level(const struct team *team)
{
	pid_t last = getpid();
	unsigned int nr;

	nr = nspids(&last);
	if (nr != base_nspids + team->level)
		bench_die("a process at level %u has %u numbers instead of %u", team->level, nr,
			  base_nspids + team->level);
	if (last != getpid())
		bench_die("NSpid ends in %d, but this is process %d", last, getpid());
}

static void run_task(struct worker *worker, __u64 nr)
{
	unsigned int value;

	worker->value = 1 + (nr + worker->index) % 251;
	value = worker->op->run(worker);
	if (value != worker->value)
		bench_die("%s, level %u: a task returned %u instead of %u",
			  op_name(worker->op), worker->team->level, value, worker->value);
}

static void settle(const struct team *team)
{
	if (team->op->settle)
		team->op->settle();
}

/* Nothing but the operations, each timed */
static void work(struct worker *worker)
{
	__u64 deadline = worker->team->start_ns + (__u64)(cfg.seconds * BENCH_NSEC);
	struct result *result = worker->result;
	__u64 start, now;

	do {
		start = bench_now();
		MARK(MARK_OP);
		run_task(worker, result->ops);
		now = bench_now();
		bench_hist_add(&result->hist, now - start);
		result->ops++;
	} while (cfg.count ? result->ops < cfg.count : now < deadline);
	MARK(MARK_END);
	result->end_ns = now;
}

/*
 * The marks are written by the worker that is warm last, before any other
 * goes on, and by the one that has finished last, before any other exits. So
 * nothing but the operations creates or frees tasks between them.
 */
static void worker_main(struct team *team, unsigned int index)
{
	struct worker worker = {
		.index = index,
		.team = team,
		.op = team->op,
		.result = &team->result[index],
	};
	unsigned int i;

	check_level(team);
	/*
	 * Leave as many pages for fork() to copy at every level: only the last
	 * stack, which this process runs on, is in use.
	 */
	if (team->level && munmap(team->stacks, team->level * STACK_SIZE))
		bench_die_errno("munmap");
	worker.stack = bench_map(STACK_SIZE, MAP_PRIVATE);
	for (i = 0; i < cfg.warmup; i++)
		run_task(&worker, i);
	settle(team);
	if (worker.result->tasks != cfg.warmup)
		bench_die("%llu tasks have run instead of %u", worker.result->tasks, cfg.warmup);
	worker.result->tasks = 0;
	/* The last of the workers, so that the others have to be taken down */
	worker.damage = cfg.corrupt && index == cfg.procs - 1;

	if (bench_arrive(&team->ready, cfg.procs)) {
		mark("begin", team);
		MARK(MARK_OPEN);
		team->start_ns = bench_now();
		bench_event_set(&team->open, cfg.procs > 1);
	} else {
		bench_event_wait(&team->open);
	}
	work(&worker);
	settle(team);
	if (bench_arrive(&team->done, cfg.procs)) {
		MARK(MARK_CLOSE);
		mark("end", team);
		bench_event_set(&team->closed, cfg.procs > 1);
	} else {
		bench_event_wait(&team->closed);
	}

	if (worker.result->tasks != worker.result->ops)
		bench_die("%llu tasks have run instead of %llu", worker.result->tasks,
			  worker.result->ops);
}

static void kill_children(const pid_t *pids)
{
	unsigned int i;

	for (i = 0; i < cfg.idle + cfg.procs; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	for (i = 0; i < cfg.idle + cfg.procs; i++)
		if (pids[i] > 0)
			waitpid(pids[i], NULL, 0);
}

/* Exit as a child has, if this was a failure; it has said why */
static void check_status(int status)
{
	if (WIFSIGNALED(status))
		bench_die("a worker was killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status))
		_exit(WEXITSTATUS(status));
}

static noreturn void child_main(struct team *team, unsigned int index, pid_t parent)
{
	bench_die_with(parent);
	if (index >= cfg.idle) {
		worker_main(team, index - cfg.idle);
		_exit(BENCH_OK);
	}
	for (;;)
		raise(SIGSTOP);
}

/* Start idle processes and workers as children of this one, in that order */
static void team_run(struct team *team)
{
	pid_t *pids = calloc(cfg.idle + cfg.procs, sizeof(*pids));
	pid_t parent = getpid();
	unsigned int i, left;
	int status, err;
	pid_t pid;

	if (!pids)
		bench_die_errno("cannot allocate the list of processes");
	for (i = 0; i < cfg.idle + cfg.procs; i++) {
		pids[i] = fork();
		if (!pids[i])
			child_main(team, i, parent);
		if (pids[i] < 0) {
			err = errno;
			kill_children(pids);
			bench_leave(BENCH_FAIL, err, "cannot fork worker %u", i);
		}
		/* Until it has stopped */
		if (i < cfg.idle && waitpid(pids[i], &status, WUNTRACED) != pids[i])
			bench_die_errno("waitpid");
	}
	for (left = cfg.procs; left; ) {
		pid = waitpid(-1, &status, 0);
		if (pid < 0)
			bench_die_errno("waitpid");
		/* The init of a namespace also gets the tasks of dead workers */
		for (i = 0; i < cfg.idle + cfg.procs && pids[i] != pid; i++)
			;
		if (i == cfg.idle + cfg.procs)
			continue;
		pids[i] = 0;
		left--;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			kill_children(pids);
			check_status(status);
		}
	}
	kill_children(pids);
	free(pids);
}

/* ---- pid namespaces ---- */

static int keeper_main(void *arg);

/*
 * Start a keeper: the parent of the workers, or on the way to it. It shares
 * its memory with the main process, and only one of all runs at a time. Were
 * each a fork() of the one above, the fork() of a worker would cost more at
 * every level, for what is no matter of the pid.
 */
static void keeper_run(struct team *team, int flags)
{
	unsigned char *stack = team->stacks + (team->depth + 1) * STACK_SIZE;
	int status;
	pid_t pid;

	flags |= CLONE_VM | CLONE_VFORK | SIGCHLD;
	pid = clone(keeper_main, stack, flags, team);
	if (pid < 0 && errno == EPERM)
		pid = clone(keeper_main, stack, flags | CLONE_NEWUSER, team);
	if (pid < 0 && flags & CLONE_NEWPID)
		bench_skip("cannot make a pid namespace: %s", strerror(errno));
	if (pid < 0)
		bench_die_errno("clone");
	if (waitpid(pid, &status, 0) != pid)
		bench_die_errno("waitpid");
	check_status(status);
}

/* At every level but 0, this is the init of a new namespace */
static int keeper_main(void *arg)
{
	struct team *team = arg;

	/* Such an init never sees its parent, which is 0 for it */
	bench_die_with(team->depth ? 0 : main_pid);
	if (team->depth < team->level) {
		team->depth++;
		keeper_run(team, CLONE_NEWPID);
	} else {
		team_run(team);
	}
	return BENCH_OK;
}

/* ---- results ---- */

struct report {
	const char *op;
	unsigned int level;
	__u64 ops;
	double seconds;
	struct bench_hist hist;
};

static const struct {
	double percent;
	const char *key;
} percentiles[] = {
	{ 50, "p50_ns" }, { 90, "p90_ns" }, { 99, "p99_ns" }, { 99.9, "p99_9_ns" },
};

static void report_json(const struct report *r)
{
	unsigned int i;

	bench_json_begin("pid_alloc_bench");
	bench_json_str("op", r->op);
	bench_json_u64("level", r->level);
	bench_json_u64("procs", cfg.procs);
	bench_json_u64("idle", cfg.idle);
	bench_json_u64_or_null("count", cfg.count);
	bench_json_double_or_null("time_limit", cfg.seconds, 3);
	bench_json_u64("warmup", cfg.warmup);
	bench_json_u64("ops", r->ops);
	bench_json_double("seconds", r->seconds, 9);
	bench_json_double("ops_per_s", r->ops / r->seconds, 3);
	bench_json_double("ns_per_op", r->seconds * BENCH_NSEC / r->ops, 3);
	bench_json_double("mean_ns", bench_hist_mean(&r->hist), 1);
	for (i = 0; i < BENCH_ARRAY_SIZE(percentiles); i++)
		bench_json_double(percentiles[i].key,
				  bench_hist_percentile(&r->hist, percentiles[i].percent), 1);
	bench_json_u64("min_ns", r->hist.min);
	bench_json_u64("max_ns", r->hist.max);
	bench_json_end();
}

static void report_table(const struct report *r)
{
	static bool header_done;
	unsigned int i;

	if (!header_done) {
		printf("# %u worker%s, latencies in ns\n", cfg.procs, cfg.procs == 1 ? "" : "s");
		printf("#%9s %5s %9s %10s %10s %10s %10s %10s %10s %10s %10s\n", "op", "level",
		       "ops", "ops/s", "ns/op", "mean", "p50", "p90", "p99", "p99.9", "max");
		header_done = true;
	}
	printf("%10s %5u %9llu %10.0f %10.0f ", r->op, r->level, r->ops, r->ops / r->seconds,
	       r->seconds * BENCH_NSEC / r->ops);
	printf(" %10.0f", bench_hist_mean(&r->hist));
	for (i = 0; i < BENCH_ARRAY_SIZE(percentiles); i++)
		printf(" %10.0f", bench_hist_percentile(&r->hist, percentiles[i].percent));
	printf(" %10llu\n", r->hist.max);
	fflush(stdout);
}

static void run(const struct op *op, unsigned int level)
{
	size_t size = sizeof(struct team) + cfg.procs * sizeof(struct result);
	struct team *team = bench_map(size, MAP_SHARED);
	struct report report = { .op = op_name(op), .level = level };
	__u64 end = 0;
	unsigned int i;

	team->op = op;
	team->level = level;
	team->stacks = bench_map((level + 1) * STACK_SIZE, MAP_PRIVATE);
	keeper_run(team, 0);

	for (i = 0; i < cfg.procs; i++) {
		const struct result *result = &team->result[i];

		bench_hist_merge(&report.hist, &result->hist);
		report.ops += result->ops;
		if (result->end_ns > end)
			end = result->end_ns;
	}
	report.seconds = (double)(end - team->start_ns) / BENCH_NSEC;
	if (cfg.json)
		report_json(&report);
	else
		report_table(&report);
	munmap(team->stacks, (level + 1) * STACK_SIZE);
	munmap(team, size);
}

static const char help_text[] =
"Usage: pid_alloc_bench [OPTION]...\n"
"Measure what it costs to create a task, to let it exit and to reap it.\n"
"\n"
"A LIST is separated by commas. Every combination of operation and level is run,\n"
"one after the other.\n"
"\n"
"What to run:\n"
"      --op LIST         operations (default: all)\n"
"                          thread    pthread_create() and pthread_join()\n"
"                          vfork     vfork(), _exit() and waitpid()\n"
"                          fork      the same with fork()\n"
"                          clone3    the same with clone3() and no flags\n"
"                          pidfd     clone(CLONE_VM|CLONE_VFORK|CLONE_PIDFD),\n"
"                                    waitid(P_PIDFD) and close()\n"
"      --levels LIST     how many new pid namespaces to descend into, 0 to 30\n"
"                        (default 0; others need root or user namespaces)\n"
"      --procs N         N worker processes, 1 to 1024 (default 1)\n"
"      --idle N          N stopped processes alongside (default 16). The kernel keeps\n"
"                        all pids in a tree, and how much of it one more or less\n"
"                        touches depends on those that were made last: let these be\n"
"                        the same every time\n"
"\n"
"How long:\n"
"      --count N         fixed work: N operations per worker\n"
"      --seconds S       fixed time: S seconds each, fractions allowed (default 1)\n"
"      --warmup N        N operations per worker that do not count (default 100)\n"
"\n"
"Checks (never of time):\n"
"      --corrupt         let a task return a wrong value, to see that it is noticed.\n"
"                        There is no option to turn the checks off: of the value each\n"
"                        task returns, of the number of tasks, which the tasks count\n"
"                        themselves, and of the level a worker is at.\n"
"\n"
"Output:\n"
"      --json            one JSON object per line, operation and level\n"
"      --marker          write \"pid_alloc_bench: begin ...\" and \"pid_alloc_bench:\n"
"                        end ...\" to tracefs (trace_marker) around each measurement\n"
"  -h, --help            this text\n"
"\n"
"Latencies are those of whole operations as one worker sees them, while ns_per_op is\n"
"the time of all divided by the number of operations.\n"
"A thread that has been joined may still be about to exit: the last one is waited for\n"
"before the end is marked, but this is not timed.\n"
"\n"
"Exit status: 0 success, 1 failure or a wrong result, 2 wrong usage, 4 not supported\n"
"here.\n";

enum {
	OPT_CORRUPT = BENCH_OPT_BASE,
	OPT_COUNT,
	OPT_IDLE,
	OPT_JSON,
	OPT_LEVELS,
	OPT_MARKER,
	OPT_OP,
	OPT_PROCS,
	OPT_SECONDS,
	OPT_WARMUP,
};

static const struct option options[] = {
	{ "corrupt",	no_argument,		NULL, OPT_CORRUPT },
	{ "count",	required_argument,	NULL, OPT_COUNT },
	{ "help",	no_argument,		NULL, BENCH_OPT_HELP },
	{ "idle",	required_argument,	NULL, OPT_IDLE },
	{ "json",	no_argument,		NULL, OPT_JSON },
	{ "levels",	required_argument,	NULL, OPT_LEVELS },
	{ "marker",	no_argument,		NULL, OPT_MARKER },
	{ "op",		required_argument,	NULL, OPT_OP },
	{ "procs",	required_argument,	NULL, OPT_PROCS },
	{ "seconds",	required_argument,	NULL, OPT_SECONDS },
	{ "warmup",	required_argument,	NULL, OPT_WARMUP },
	{ 0 },
};

static void parse(int argc, char **argv)
{
	unsigned int i;
	int c;

	while ((c = bench_getopt(argc, argv, ":h", options, help_text)) != -1) {
		switch (c) {
		case OPT_CORRUPT:
			cfg.corrupt = true;
			break;
		case OPT_COUNT:
			cfg.count = bench_parse_u64("--count", optarg, 1, 1ULL << 40, false);
			break;
		case OPT_IDLE:
			cfg.idle = bench_parse_u64("--idle", optarg, 0, MAX_IDLE, false);
			break;
		case OPT_JSON:
			cfg.json = true;
			break;
		case OPT_LEVELS:
			bench_parse_list(&cfg.levels, "--levels", optarg, 0, MAX_LEVEL, false);
			break;
		case OPT_MARKER:
			cfg.marker = true;
			break;
		case OPT_OP:
			bench_parse_names(&cfg.ops, "--op", optarg, op_names);
			break;
		case OPT_PROCS:
			cfg.procs = bench_parse_u64("--procs", optarg, 1, MAX_PROCS, false);
			break;
		case OPT_SECONDS:
			cfg.seconds = bench_parse_seconds("--seconds", optarg, 0.001);
			break;
		case OPT_WARMUP:
			cfg.warmup = bench_parse_u64("--warmup", optarg, 1, 1000000, false);
			break;
		}
	}

	if (cfg.count && cfg.seconds > 0)
		bench_usage("--count and --seconds exclude each other");
	if (!cfg.count && cfg.seconds <= 0)
		cfg.seconds = DEFAULT_SECONDS;
	if (!cfg.ops.nr)
		for (i = 0; i < BENCH_ARRAY_SIZE(ops); i++)
			cfg.ops.val[cfg.ops.nr++] = i;
}

/*
 * How much a fork() has to copy, and how much of a file is mapped at the first
 * touch, should not depend on the whims of address space randomisation and of
 * the page cache. Where this is not allowed, results only vary more from one
 * run to the next.
 */
static void calm_down(char **argv)
{
	int old = personality(0xffffffff);

	if (old >= 0 && !(old & ADDR_NO_RANDOMIZE) && personality(old | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
	if (!mlockall(MCL_CURRENT))
		munlockall();
}

int main(int argc, char **argv)
{
	unsigned int i, j;
	pid_t self;

	bench_name = "pid_alloc_bench";
	parse(argc, argv);
	calm_down(argv);
	main_pid = getpid();
	/* Traces are filtered by name, and execv() has made this "exe" */
	prctl(PR_SET_NAME, bench_name);
	base_nspids = nspids(&self);
	bench_cpus(NULL);	/* fills its cache before there are workers */
	if (cfg.marker)
		bench_marker_open();
	for (i = 0; i < cfg.ops.nr; i++)
		for (j = 0; j < cfg.levels.nr; j++)
			run(&ops[cfg.ops.val[i]], cfg.levels.val[j]);
	return bench_finish();
}
