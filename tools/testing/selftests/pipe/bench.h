/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What pipe_load and pipe_ladder have in common: strict option parsing,
 * workers that are threads or processes and start together, pinning, a
 * log-linear latency histogram, and one-line JSON output.
 *
 * Include this before any other header: it asks for the same integer types
 * on every architecture, so that "%llu" is right for __u64 everywhere.
 */
#ifndef SELFTESTS_PIPE_BENCH_H
#define SELFTESTS_PIPE_BENCH_H

#ifndef __SANE_USERSPACE_TYPES__
#define __SANE_USERSPACE_TYPES__
#endif

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/types.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BENCH_OK	0
#define BENCH_FAIL	1	/* a system call failed, or data was damaged */
#define BENCH_USAGE	2
#define BENCH_SKIP	4	/* KSFT_SKIP: the kernel lacks something */

#define BENCH_NSEC	1000000000ULL
#define BENCH_LIST_MAX	32

#define BENCH_ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- leaving ---- */

static const char *bench_name = "bench";
static pid_t bench_main_pid;
static unsigned int bench_leaving;

/*
 * What must not outlive the program. Run, last one first, from exit() and
 * from the handler of fatal signals, hence restricted to async-signal-safe
 * calls; each has to do nothing when there is nothing (left) to undo.
 */
static void (*bench_cleanups[4])(void);
static unsigned int bench_nr_cleanups;

static inline void bench_cleanup(void)
{
	unsigned int i;

	if (getpid() != bench_main_pid)
		return;
	for (i = bench_nr_cleanups; i > 0; i--)
		bench_cleanups[i - 1]();
}

static inline void bench_at_exit(void (*fn)(void))
{
	bench_cleanups[bench_nr_cleanups] = fn;
	bench_nr_cleanups++;
}

static char bench_msg[2 * PATH_MAX];

/* exit() is for one thread; let any other wait for it to finish */
static inline void bench_leave_begin(void)
{
	if (__atomic_exchange_n(&bench_leaving, 1, __ATOMIC_ACQ_REL))
		for (;;)
			pause();
}

static inline noreturn void bench_leave_end(int status, int err)
{
	fprintf(stderr, "%s: %s%s%s%s\n", bench_name, bench_msg, err ? ": " : "",
		err ? strerror(err) : "", status == BENCH_USAGE ? " (see --help)" : "");
	if (getpid() != bench_main_pid)
		_exit(status);
	exit(status);
}

/* Print one sentence (and the error, if any) to stderr and leave */
#define bench_leave(status, err, ...)					\
do {									\
	const int bench_err = (err);					\
									\
	bench_leave_begin();						\
	snprintf(bench_msg, sizeof(bench_msg), __VA_ARGS__);		\
	bench_leave_end(status, bench_err);				\
} while (0)

#define bench_die(...)		bench_leave(BENCH_FAIL, 0, __VA_ARGS__)
#define bench_die_errno(...)	bench_leave(BENCH_FAIL, errno, __VA_ARGS__)
#define bench_usage(...)	bench_leave(BENCH_USAGE, 0, __VA_ARGS__)
#define bench_skip(...)		bench_leave(BENCH_SKIP, 0, __VA_ARGS__)

static inline void bench_on_signal(int sig)
{
	bench_cleanup();
	/* SA_RESETHAND: this time it is fatal */
	raise(sig);
}

static inline void bench_on_child(int sig)
{
	/* Only there to interrupt the sleep of the main thread */
	(void)sig;
}

static inline void bench_init(const char *name)
{
	struct sigaction fatal = { .sa_handler = bench_on_signal, .sa_flags = SA_RESETHAND };
	struct sigaction child = { .sa_handler = bench_on_child, .sa_flags = SA_RESTART };

	bench_name = name;
	bench_main_pid = getpid();
	sigaction(SIGHUP, &fatal, NULL);
	sigaction(SIGINT, &fatal, NULL);
	sigaction(SIGTERM, &fatal, NULL);
	sigaction(SIGCHLD, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (atexit(bench_cleanup))
		bench_die("atexit() failed");
}

/* Results that cannot be delivered are an error too */
static inline int bench_finish(void)
{
	if (fflush(stdout) || ferror(stdout))
		bench_die_errno("cannot write the results");
	return BENCH_OK;
}

/* ---- small things ---- */

static inline __u64 bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * BENCH_NSEC + ts.tv_nsec;
}

static inline size_t bench_page_size(void)
{
	static size_t size;

	if (!size)
		size = sysconf(_SC_PAGESIZE);
	return size;
}

/* Zeroed pages, shared with the processes forked later or private */
static inline void *bench_map(size_t size, bool shared)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);

	if (p == MAP_FAILED)
		bench_die_errno("cannot map %zu bytes", size);
	return p;
}

/* A strong mixer (the finalizer of splitmix64), for checksums */
static inline __u64 bench_mix(__u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* ---- options ---- */

static inline __u64 bench_parse_u64(const char *opt, const char *str, __u64 min,
				    __u64 max, bool suffix)
{
	unsigned int shift = 0;
	const char *p = str;
	__u64 val = 0;

	if (*p < '0' || *p > '9')
		bench_usage("%s wants a number, not '%s'", opt, str);
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(val, 10, &val) ||
		    __builtin_add_overflow(val, *p - '0', &val))
			bench_usage("%s: '%s' is too large", opt, str);
	if (suffix && *p) {
		switch (*p) {
		case 'k':
		case 'K':
			shift = 10;
			break;
		case 'm':
		case 'M':
			shift = 20;
			break;
		case 'g':
		case 'G':
			shift = 30;
			break;
		}
		if (shift)
			p++;
	}
	if (*p)
		bench_usage("%s: trailing garbage in '%s'", opt, str);
	if (__builtin_mul_overflow(val, 1ULL << shift, &val))
		bench_usage("%s: '%s' is too large", opt, str);
	if (val < min || val > max)
		bench_usage("%s must be between %llu and %llu, not '%s'", opt, min, max, str);
	return val;
}

static inline double bench_parse_seconds(const char *opt, const char *str, double min)
{
	char *end;
	double val;

	/* strtod() alone would take "inf", "nan", hexadecimal and blanks */
	if (!*str || strspn(str, "0123456789.") != strlen(str))
		bench_usage("%s wants a number of seconds, not '%s'", opt, str);
	val = strtod(str, &end);
	if (end == str || *end)
		bench_usage("%s wants a number of seconds, not '%s'", opt, str);
	if (val < min || val > 86400)
		bench_usage("%s must be between %g and 86400, not '%s'", opt, min, str);
	return val;
}

struct bench_list {
	unsigned int nr;
	__u64 val[BENCH_LIST_MAX];
};

static inline void bench_parse_list(struct bench_list *list, const char *opt, const char *str,
				    __u64 min, __u64 max, bool suffix)
{
	const char *p = str;
	char item[32];
	size_t len;

	list->nr = 0;
	for (;;) {
		len = strcspn(p, ",");
		if (!len || len >= sizeof(item))
			bench_usage("%s wants a comma separated list, not '%s'", opt, str);
		if (list->nr == BENCH_LIST_MAX)
			bench_usage("%s takes at most %d values", opt, BENCH_LIST_MAX);
		memcpy(item, p, len);
		item[len] = '\0';
		list->val[list->nr] = bench_parse_u64(opt, item, min, max, suffix);
		list->nr++;
		p += len;
		if (!*p)
			return;
		p++;
	}
}

enum bench_verify {
	BENCH_VERIFY_NONE,
	BENCH_VERIFY_CHEAP,
	BENCH_VERIFY_FULL,
};

/* Options both programs have */
struct bench_opts {
	bool json;
	bool pin;
	bool processes;
	bool workers_set;	/* --threads or --processes was given */
	bool corrupt;
	enum bench_verify verify;
	double seconds;		/* 0: not limited by time */
};

#define BENCH_OPT_BASE	256
#define BENCH_OPTS_MAX	40

enum {
	BENCH_OPT_CORRUPT = BENCH_OPT_BASE,
	BENCH_OPT_HELP,
	BENCH_OPT_JSON,
	BENCH_OPT_NO_VERIFY,
	BENCH_OPT_PIN,
	BENCH_OPT_PROCESSES,
	BENCH_OPT_SECONDS,
	BENCH_OPT_THREADS,
	BENCH_OPT_VERIFY,
	BENCH_OPT_OWN,		/* the first one of the program itself */
};

static const struct option bench_common_options[] = {
	{ "corrupt",	no_argument,		NULL, BENCH_OPT_CORRUPT },
	{ "help",	no_argument,		NULL, BENCH_OPT_HELP },
	{ "json",	no_argument,		NULL, BENCH_OPT_JSON },
	{ "no-verify",	no_argument,		NULL, BENCH_OPT_NO_VERIFY },
	{ "pin",	no_argument,		NULL, BENCH_OPT_PIN },
	{ "processes",	no_argument,		NULL, BENCH_OPT_PROCESSES },
	{ "seconds",	required_argument,	NULL, BENCH_OPT_SECONDS },
	{ "threads",	no_argument,		NULL, BENCH_OPT_THREADS },
	{ "verify",	optional_argument,	NULL, BENCH_OPT_VERIFY },
};

/*
 * getopt_long() over the options of the program and the common ones. Returns
 * the next option of the program, or -1 after the last one; deals with the
 * common options and with every usage error itself.
 */
static inline int bench_getopt(int argc, char **argv, const char *shorts,
			       const struct option *own, unsigned int nr_own,
			       struct bench_opts *opts, const char *help)
{
	const unsigned int nr_common = BENCH_ARRAY_SIZE(bench_common_options);
	struct option all[BENCH_OPTS_MAX + 1] = { 0 };
	bool want;
	int c;

	if (nr_own + nr_common > BENCH_OPTS_MAX)
		bench_die("too many options");
	memcpy(all, own, nr_own * sizeof(*own));
	memcpy(all + nr_own, bench_common_options, sizeof(bench_common_options));
	opterr = 0;

	for (;;) {
		c = getopt_long(argc, argv, shorts, all, NULL);
		switch (c) {
		case -1:
			if (optind < argc)
				bench_usage("unexpected argument '%s'", argv[optind]);
			return -1;
		case ':':
			bench_usage("option '%s' needs a value", argv[optind - 1]);
		case '?':
			if (optopt >= BENCH_OPT_BASE)
				bench_usage("option '%s' takes no value", argv[optind - 1]);
			if (optopt)
				bench_usage("unknown option '-%c'", optopt);
			bench_usage("unknown or ambiguous option '%s'", argv[optind - 1]);
		case 'h':
		case BENCH_OPT_HELP:
			fputs(help, stdout);
			exit(bench_finish());
		case BENCH_OPT_CORRUPT:
			opts->corrupt = true;
			break;
		case BENCH_OPT_JSON:
			opts->json = true;
			break;
		case BENCH_OPT_NO_VERIFY:
			opts->verify = BENCH_VERIFY_NONE;
			break;
		case BENCH_OPT_PIN:
			opts->pin = true;
			break;
		case BENCH_OPT_THREADS:
		case BENCH_OPT_PROCESSES:
			want = c == BENCH_OPT_PROCESSES;
			if (opts->workers_set && opts->processes != want)
				bench_usage("--threads and --processes exclude each other");
			opts->workers_set = true;
			opts->processes = want;
			break;
		case BENCH_OPT_SECONDS:
			opts->seconds = bench_parse_seconds("--seconds", optarg, 0.001);
			break;
		case BENCH_OPT_VERIFY:
			if (!optarg || !strcmp(optarg, "cheap"))
				opts->verify = BENCH_VERIFY_CHEAP;
			else if (!strcmp(optarg, "full"))
				opts->verify = BENCH_VERIFY_FULL;
			else
				bench_usage("--verify is 'cheap' or 'full', not '%s'", optarg);
			break;
		default:
			return c;
		}
	}
}

static inline const char *bench_verify_name(enum bench_verify verify)
{
	static const char *const name[] = { "none", "cheap", "full" };

	return name[verify];
}

/* ---- pinning ---- */

/* The CPUs this process may run on; returns how many */
static inline unsigned int bench_cpus(int **cpus)
{
	static unsigned int nr;
	static int *list;
	unsigned int max, i;
	cpu_set_t *set;
	size_t size;

	/* The kernel refuses a mask that is smaller than its own */
	for (max = 1024; !list; max *= 2) {
		set = CPU_ALLOC(max);
		size = CPU_ALLOC_SIZE(max);
		if (!set)
			bench_die_errno("cannot allocate a CPU mask");
		if (!sched_getaffinity(0, size, set)) {
			list = calloc(CPU_COUNT_S(size, set), sizeof(*list));
			if (!list)
				bench_die_errno("cannot allocate the list of CPUs");
			for (i = 0; i < max; i++)
				if (CPU_ISSET_S(i, size, set))
					list[nr++] = i;
		} else if (errno != EINVAL || max > 1 << 20) {
			bench_die_errno("sched_getaffinity");
		}
		CPU_FREE(set);
	}
	if (cpus)
		*cpus = list;
	return nr;
}

/* Pin the calling thread to the nth CPU of the allowed set, modulo its size */
static inline void bench_pin(unsigned int nth)
{
	unsigned int nr;
	cpu_set_t *set;
	size_t size;
	int *cpus;

	nr = bench_cpus(&cpus);
	size = CPU_ALLOC_SIZE(cpus[nr - 1] + 1);
	set = CPU_ALLOC(cpus[nr - 1] + 1);
	if (!set)
		bench_die_errno("cannot allocate a CPU mask");
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpus[nth % nr], size, set);
	if (sched_setaffinity(0, size, set))
		bench_die_errno("cannot pin a worker to CPU %d", cpus[nth % nr]);
	CPU_FREE(set);
}

/* ---- workers ---- */

/* In shared memory; only 32-bit words are atomic on every architecture */
struct bench_gate {
	unsigned int ready;	/* workers waiting at the gate */
	unsigned int open;	/* a futex */
	unsigned int stop;	/* the time is up, or somebody failed */
};

struct bench_worker {
	unsigned int index;
	struct bench_team *team;
	pthread_t thread;
	pid_t pid;		/* 0: reaped, or a thread */
};

struct bench_team {
	struct bench_gate *gate;
	struct bench_worker *workers;
	unsigned int nr;
	bool processes;
	bool pin;
	/* Returns when the work is done; does not return on failure */
	void (*fn)(struct bench_worker *worker);
	void *arg;
	__u64 start_ns;		/* when the gate opened */
};

static inline void bench_futex(unsigned int *addr, int op, unsigned int val)
{
	/* Never with a timeout, so the flavour of timespec does not matter */
#ifdef SYS_futex
	syscall(SYS_futex, addr, op, val, NULL, NULL, 0);
#else
	syscall(SYS_futex_time64, addr, op, val, NULL, NULL, 0);
#endif
}

static inline bool bench_stopped(const struct bench_gate *gate)
{
	return __atomic_load_n(&gate->stop, __ATOMIC_RELAXED);
}

/* Called by every worker after its warm-up */
static inline void bench_gate_wait(struct bench_gate *gate)
{
	__atomic_add_fetch(&gate->ready, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&gate->open, __ATOMIC_ACQUIRE))
		bench_futex(&gate->open, FUTEX_WAIT, 0);
}

static inline void *bench_thread(void *arg)
{
	struct bench_worker *worker = arg;
	sigset_t all;

	/* Signals are for the main thread, else writes would be cut short */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (worker->team->pin)
		bench_pin(worker->index);
	worker->team->fn(worker);
	return NULL;
}

static inline void bench_child(struct bench_worker *worker)
{
	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != bench_main_pid)
		_exit(BENCH_FAIL);
	if (worker->team->pin)
		bench_pin(worker->index);
	worker->team->fn(worker);
	_exit(BENCH_OK);
}

/* One worker process has gone wrong: take down the others and leave */
static inline noreturn void bench_team_abort(struct bench_team *team, int status)
{
	unsigned int i;

	for (i = 0; i < team->nr; i++)
		if (team->workers[i].pid)
			kill(team->workers[i].pid, SIGKILL);
	for (i = 0; i < team->nr; i++)
		if (team->workers[i].pid)
			waitpid(team->workers[i].pid, NULL, 0);
	if (WIFSIGNALED(status))
		bench_die("a worker was killed by signal %d", WTERMSIG(status));
	/* The worker itself has said what was wrong */
	exit(WEXITSTATUS(status));
}

/* Reap worker processes: those that have ended so far, or all of them */
static inline void bench_team_reap(struct bench_team *team, bool all)
{
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; i < team->nr; i++) {
		if (!team->workers[i].pid)
			continue;
		do {
			pid = waitpid(team->workers[i].pid, &status, all ? 0 : WNOHANG);
		} while (pid < 0 && errno == EINTR);
		if (pid < 0)
			bench_die_errno("waitpid");
		if (!pid)
			continue;
		team->workers[i].pid = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			bench_team_abort(team, status);
	}
}

/* Fill in nr, processes, pin, fn and arg first */
static inline void bench_team_spawn(struct bench_team *team)
{
	unsigned int i;
	int err;

	team->gate = bench_map(sizeof(*team->gate), true);
	team->workers = calloc(team->nr, sizeof(*team->workers));
	if (!team->workers)
		bench_die_errno("cannot allocate the workers");
	bench_cpus(NULL);	/* fills its cache before there are threads */
	fflush(stdout);		/* or the children would have a copy */

	for (i = 0; i < team->nr; i++) {
		struct bench_worker *worker = &team->workers[i];

		worker->index = i;
		worker->team = team;
		if (team->processes) {
			worker->pid = fork();
			if (!worker->pid)
				bench_child(worker);
			if (worker->pid < 0) {
				err = errno;
				worker->pid = 0;
				errno = err;
				bench_die_errno("cannot fork worker %u", i);
			}
		} else {
			err = pthread_create(&worker->thread, NULL, bench_thread, worker);
			if (err)
				bench_leave(BENCH_FAIL, err, "cannot start worker %u", i);
		}
	}
}

/* Wait until all workers are warm. Not timed, hence plain polling */
static inline void bench_team_ready(struct bench_team *team)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	while (__atomic_load_n(&team->gate->ready, __ATOMIC_ACQUIRE) != team->nr) {
		bench_team_reap(team, false);
		nanosleep(&ms, NULL);
	}
}

static inline void bench_team_open(struct bench_team *team)
{
	team->start_ns = bench_now();
	__atomic_store_n(&team->gate->open, 1, __ATOMIC_RELEASE);
	bench_futex(&team->gate->open, FUTEX_WAKE, INT_MAX);
}

/* Let the workers run for a time, then tell them to stop */
static inline void bench_team_run_for(struct bench_team *team, double seconds)
{
	__u64 end = team->start_ns + (__u64)(seconds * BENCH_NSEC);
	struct timespec ts = { .tv_sec = end / BENCH_NSEC, .tv_nsec = end % BENCH_NSEC };

	/* SIGCHLD interrupts: a worker that ends before it is told to failed */
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		bench_team_reap(team, false);
	__atomic_store_n(&team->gate->stop, 1, __ATOMIC_RELAXED);
}

static inline void bench_team_join(struct bench_team *team)
{
	unsigned int i;

	if (team->processes)
		bench_team_reap(team, true);
	else
		for (i = 0; i < team->nr; i++)
			pthread_join(team->workers[i].thread, NULL);
	free(team->workers);
	munmap(team->gate, sizeof(*team->gate));
}

/* ---- the pipe ---- */

enum { BENCH_RD, BENCH_WR };

struct bench_pipe {
	int fd[2];
	unsigned int *users;	/* of either end, when these are threads */
	unsigned int size;	/* what the kernel made of the wish, in bytes */
	bool processes;
};

static inline void bench_pipe_open(struct bench_pipe *p, unsigned int size, bool processes,
				   unsigned int readers, unsigned int writers)
{
	int ret;

	if (pipe2(p->fd, O_CLOEXEC))
		bench_die_errno("pipe2");
	if (fcntl(p->fd[BENCH_WR], F_SETPIPE_SZ, size) < 0)
		bench_die_errno("cannot set the pipe size to %u bytes%s", size,
				errno == EPERM ? " (see /proc/sys/fs/pipe-max-size)" : "");
	ret = fcntl(p->fd[BENCH_WR], F_GETPIPE_SZ);
	if (ret < 0)
		bench_die_errno("F_GETPIPE_SZ");
	p->size = ret;
	p->processes = processes;
	p->users = bench_map(2 * sizeof(*p->users), true);
	p->users[BENCH_RD] = readers;
	p->users[BENCH_WR] = writers;
}

/* A worker picks its end of the pipe */
static inline int bench_pipe_get(struct bench_pipe *p, int end)
{
	/* A reader that keeps a write end would never see the end of file */
	if (p->processes)
		close(p->fd[!end]);
	return p->fd[end];
}

/* A worker is done with its end; the last of several threads closes it */
static inline void bench_pipe_put(struct bench_pipe *p, int end)
{
	if (p->processes || !__atomic_sub_fetch(&p->users[end], 1, __ATOMIC_ACQ_REL))
		close(p->fd[end]);
}

/* The main process gives up its own ends once the workers have theirs */
static inline void bench_pipe_handed_over(struct bench_pipe *p)
{
	if (p->processes) {
		close(p->fd[BENCH_RD]);
		close(p->fd[BENCH_WR]);
	}
}

static inline void bench_pipe_free(struct bench_pipe *p)
{
	munmap(p->users, 2 * sizeof(*p->users));
}

/* Returns how much there was before the end of file */
static inline size_t bench_read_full(int fd, void *buf, size_t len)
{
	size_t done = 0;
	ssize_t ret;

	while (done < len) {
		ret = read(fd, (char *)buf + done, len - done);
		if (ret < 0)
			bench_die_errno("read");
		if (!ret)
			break;
		done += ret;
	}
	return done;
}

static inline void bench_write_full(int fd, const void *buf, size_t len)
{
	size_t done = 0;
	ssize_t ret;

	while (done < len) {
		ret = write(fd, (const char *)buf + done, len - done);
		if (ret < 0)
			bench_die_errno("write");
		done += ret;
	}
}

/* ---- latency histogram ---- */

/*
 * Log-linear: every power of two is divided into 64 buckets, so that the
 * bucket of a value is at most 1/64 of it wide. Values below 128 have a
 * bucket of their own.
 */
#define BENCH_SUB_BITS	6
#define BENCH_SUB	64U
#define BENCH_BUCKETS	((64 - BENCH_SUB_BITS + 1) * BENCH_SUB)

struct bench_hist {
	__u64 count;
	__u64 sum;
	__u64 min;
	__u64 max;
	__u64 bucket[BENCH_BUCKETS];
};

static inline unsigned int bench_hist_index(__u64 val)
{
	unsigned int shift;

	if (val < BENCH_SUB)
		return val;
	shift = 63 - __builtin_clzll(val) - BENCH_SUB_BITS;
	return shift * BENCH_SUB + (unsigned int)(val >> shift);
}

static inline void bench_hist_add(struct bench_hist *h, __u64 val)
{
	h->bucket[bench_hist_index(val)]++;
	h->sum += val;
	if (!h->count || val < h->min)
		h->min = val;
	if (val > h->max)
		h->max = val;
	h->count++;
}

static inline void bench_hist_merge(struct bench_hist *to, const struct bench_hist *from)
{
	unsigned int i;

	if (!from->count)
		return;
	for (i = 0; i < BENCH_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
	if (!to->count || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->sum += from->sum;
}

static inline double bench_hist_mean(const struct bench_hist *h)
{
	return h->count ? (double)h->sum / h->count : 0;
}

/* Values are taken to be spread evenly over the bucket the rank falls into */
static inline double bench_hist_percentile(const struct bench_hist *h, double percent)
{
	double rank = percent / 100 * h->count;
	double low, width, val;
	unsigned int i, shift;
	__u64 seen = 0;

	for (i = 0; i < BENCH_BUCKETS; i++) {
		if (h->bucket[i] && seen + h->bucket[i] >= rank)
			break;
		seen += h->bucket[i];
	}
	if (!h->count || i == BENCH_BUCKETS)
		return h->max;
	shift = i < 2 * BENCH_SUB ? 0 : i / BENCH_SUB - 1;
	low = (double)((__u64)(i - shift * BENCH_SUB) << shift);
	/* What is recorded is whole nanoseconds: [low, low + width - 1] */
	width = (double)((1ULL << shift) - 1);
	val = low + width * (rank - seen) / h->bucket[i];
	if (val < h->min)
		return h->min;
	return val > h->max ? h->max : val;
}

/* ---- JSON: one flat object per line ---- */

static bool bench_json_first;

static inline void bench_json_key(const char *key)
{
	printf("%s\"%s\":", bench_json_first ? "{" : ",", key);
	bench_json_first = false;
}

static inline void bench_json_begin(const char *bench)
{
	bench_json_first = true;
	bench_json_key("bench");
	printf("\"%s\"", bench);
}

/* For our own words only: nothing is escaped. NULL gives null */
static inline void bench_json_str(const char *key, const char *val)
{
	bench_json_key(key);
	if (val)
		printf("\"%s\"", val);
	else
		printf("null");
}

static inline void bench_json_bool(const char *key, bool val)
{
	bench_json_key(key);
	printf("%s", val ? "true" : "false");
}

static inline void bench_json_u64(const char *key, __u64 val)
{
	bench_json_key(key);
	printf("%llu", val);
}

/* For limits where zero means that there is none */
static inline void bench_json_u64_or_null(const char *key, __u64 val)
{
	if (val)
		bench_json_u64(key, val);
	else
		bench_json_str(key, NULL);
}

static inline void bench_json_double(const char *key, double val, int digits)
{
	bench_json_key(key);
	printf("%.*f", digits, val);
}

static inline void bench_json_double_or_null(const char *key, double val, int digits)
{
	if (val > 0)
		bench_json_double(key, val, digits);
	else
		bench_json_str(key, NULL);
}

static inline void bench_json_end(void)
{
	printf("}\n");
	fflush(stdout);
}

#endif /* SELFTESTS_PIPE_BENCH_H */
