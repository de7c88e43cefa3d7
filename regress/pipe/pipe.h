/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What pipe_load and pipe_ladder have in common: undoing what must not outlive
 * them, options, workers that are threads or processes and start together, and
 * the ends of a pipe.
 *
 * Include this before any other header, as bench.h has to be.
 */
#ifndef REGRESS_PIPE_H
#define REGRESS_PIPE_H

#include "bench.h"

#include <pthread.h>
#include <sys/wait.h>

/* ---- leaving ---- */

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

/* ---- small things ---- */

static inline size_t bench_page_size(void)
{
	static size_t size;

	if (!size)
		size = sysconf(_SC_PAGESIZE);
	return size;
}

/* A strong mixer (the finalizer of splitmix64), for checksums */
static inline __u64 bench_mix(__u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* ---- options ---- */

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

#define BENCH_OPTS_MAX	40

enum {
	BENCH_OPT_CORRUPT = BENCH_OPT_BASE,
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
 * bench_getopt() over the options of the program and the common ones. Returns
 * the next option of the program, or -1 after the last one; deals with the
 * common options itself.
 */
static inline int pipe_getopt(int argc, char **argv, const char *shorts,
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

	for (;;) {
		c = bench_getopt(argc, argv, shorts, all, help);
		switch (c) {
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

static inline bool bench_stopped(const struct bench_gate *gate)
{
	return __atomic_load_n(&gate->stop, __ATOMIC_RELAXED);
}

/* Called by every worker after its warm-up */
static inline void bench_gate_wait(struct bench_gate *gate)
{
	__atomic_add_fetch(&gate->ready, 1, __ATOMIC_ACQ_REL);
	bench_event_wait(&gate->open);
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
	bench_die_with(bench_main_pid);
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

	team->gate = bench_map_lazily(sizeof(*team->gate), MAP_SHARED);
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
	bench_event_set(&team->gate->open, true);
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
	p->users = bench_map_lazily(2 * sizeof(*p->users), MAP_SHARED);
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

#endif /* REGRESS_PIPE_H */
