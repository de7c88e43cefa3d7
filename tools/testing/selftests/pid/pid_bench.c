// SPDX-License-Identifier: GPL-2.0
/*
 * How many tasks are created and reaped a second, and how long one takes.
 *
 * Each of some processes creates a thread or a child, waits until it is gone,
 * checks what came of it, and begins again, for a fixed time. They are in the PID
 * namespace of the caller, or so many levels below, which takes root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"

/* Buckets of 1/16 of a power of two, and the least that is in one */
#define PARTS_SHIFT	4
#define PARTS		16
#define BUCKETS		(40 * PARTS)

struct worker {
	uint64_t ops, longest;
	uint64_t count[BUCKETS];
};

struct shared {
	int ready;
	int phase;		/* 0: wait, 1: warm up, 2: measure, 3: end */
	struct worker worker[];
};

static struct {
	unsigned int level;
	double seconds;
	bool pin, json;
} opt = { .seconds = 1 };

static void fail_if(bool failed, const char *what)
{
	if (failed)
		ksft_exit_fail_perror(what);
}

static void *thread(void *arg)
{
	return (char *)arg + 1;
}

static bool do_thread(void)
{
	static char token;
	pthread_t id;
	void *ret;

	return !pthread_create(&id, NULL, thread, &token) && !pthread_join(id, &ret) &&
	       ret == &token + 1;
}

static bool reaped(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 7;
}

static bool do_vfork(void)
{
	pid_t pid = vfork();

	return pid ? reaped(pid) : (_exit(7), false);
}

static const struct op {
	const char *name;
	bool (*fn)(void);
} ops[] = { { "thread", do_thread }, { "vfork", do_vfork } };

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static unsigned int bucket(uint64_t ns)
{
	unsigned int shift = ns < PARTS ? 0 : 63 - __builtin_clzll(ns) - PARTS_SHIFT;
	unsigned int nr = shift * PARTS + (ns >> shift);

	return nr < BUCKETS ? nr : BUCKETS - 1;
}

static double floor_of(unsigned int nr)
{
	return nr < PARTS ? nr : (PARTS + nr % PARTS) * (double)(1ull << (nr / PARTS - 1));
}

/* What is not longer than a percentile, as though a bucket were filled evenly */
static double percentile(const struct worker *sum, double part)
{
	double want = part * sum->ops, seen = 0;
	unsigned int i;

	for (i = 0; i < BUCKETS; i++) {
		if (sum->count[i] && seen + sum->count[i] >= want)
			return floor_of(i) + (floor_of(i + 1) - floor_of(i)) *
			       (want - seen) / sum->count[i];
		seen += sum->count[i];
	}
	return sum->longest;
}

static void pin(unsigned int nr)
{
	cpu_set_t set, one;
	int cpu;

	fail_if(sched_getaffinity(0, sizeof(set), &set), "sched_getaffinity");
	nr %= CPU_COUNT(&set);
	for (cpu = 0; !CPU_ISSET(cpu, &set) || nr--; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	fail_if(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

static void work(struct shared *shared, unsigned int nr, const struct op *op)
{
	struct worker *mine = &shared->worker[nr];
	uint64_t from, took;
	int phase;

	if (opt.pin)
		pin(nr);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->phase, __ATOMIC_ACQUIRE))
		usleep(100);
	while ((phase = __atomic_load_n(&shared->phase, __ATOMIC_RELAXED)) < 3) {
		from = now();
		if (!op->fn())
			ksft_exit_fail_msg("%s failed: %s\n", op->name, strerror(errno));
		took = now() - from;
		if (phase < 2)
			continue;
		mine->ops++;
		mine->count[bucket(took)]++;
		if (took > mine->longest)
			mine->longest = took;
	}
	_exit(0);
}

/* Go down one level, whose init ends as its only child does; returns there */
static void nest(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		ksft_exit_skip("unshare(CLONE_NEWPID): %s\n", strerror(errno));
	pid = fork();
	fail_if(pid < 0, "fork");
	if (!pid)
		return (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	fail_if(waitpid(pid, &status, 0) != pid, "waitpid");
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : KSFT_FAIL);
}

static void print(const struct op *op, unsigned int tasks, const struct worker *sum, double ns)
{
	double p50 = percentile(sum, 0.5), p99 = percentile(sum, 0.99), max = sum->longest;
	double rate = sum->ops * 1e9 / ns;

	if (opt.json) {
		printf("{\"bench\": \"pid_bench\", \"op\": \"%s\", \"level\": %u, \"tasks\": %u, ",
		       op->name, opt.level, tasks);
		printf("\"seconds\": %.3f, \"ops\": %ju, \"ops_per_s\": %.1f, ",
		       ns / 1e9, (uintmax_t)sum->ops, rate);
		printf("\"p50_ns\": %.0f, \"p99_ns\": %.0f, \"max_ns\": %.0f}\n", p50, p99, max);
	} else {
		printf("%-6s level %-2u %4u at once: ", op->name, opt.level, tasks);
		printf("%10.0f op/s  p50 %8.1f us  p99 %8.1f us  max %8.1f us\n",
		       rate, p50 / 1e3, p99 / 1e3, max / 1e3);
	}
	fflush(stdout);
}

static void measure(const struct op *op, unsigned int tasks)
{
	size_t size = sizeof(struct shared) + tasks * sizeof(struct worker);
	struct shared *shared = mmap(NULL, size, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct worker sum = {};
	unsigned int i, k;
	uint64_t from, to;
	int status;
	pid_t pid;

	fail_if(shared == MAP_FAILED, "mmap");
	for (i = 0; i < tasks; i++) {
		pid = fork();
		fail_if(pid < 0, "fork");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(shared, i, op);
		}
	}
	while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) < (int)tasks)
		fail_if(waitpid(-1, &status, WNOHANG), "worker");
	__atomic_store_n(&shared->phase, 1, __ATOMIC_RELEASE);
	usleep(50000);
	from = now();
	__atomic_store_n(&shared->phase, 2, __ATOMIC_RELAXED);
	usleep(opt.seconds * 1e6);
	to = now();
	__atomic_store_n(&shared->phase, 3, __ATOMIC_RELAXED);
	for (i = 0; i < tasks; i++)
		fail_if(wait(&status) < 0 || status, "worker");
	for (i = 0; i < tasks; i++) {
		sum.ops += shared->worker[i].ops;
		for (k = 0; k < BUCKETS; k++)
			sum.count[k] += shared->worker[i].count[k];
		if (shared->worker[i].longest > sum.longest)
			sum.longest = shared->worker[i].longest;
	}
	print(op, tasks, &sum, to - from);
}

static void usage(void)
{
	fputs("--op thread|vfork --tasks 1,2,4 --level 0 --seconds 1 --pin --json\n", stderr);
	exit(2);
}

static double number(const char *text, double least, double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= least && value <= most))
		usage();
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "op", 1, NULL, 'o' }, { "tasks", 1, NULL, 't' }, { "level", 1, NULL, 'l' },
		{ "seconds", 1, NULL, 's' }, { "pin", 0, NULL, 'p' }, { "json", 0, NULL, 'j' }, { },
	};
	char list[64] = "1,2,4", again[64], *tasks, *next;
	const char *name = NULL;
	unsigned int i, known = 0, depth = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'o')
			name = optarg;
		else if (c == 't')
			snprintf(list, sizeof(list), "%s", optarg);
		else if (c == 'l')
			opt.level = number(optarg, 0, 30);
		else if (c == 's')
			opt.seconds = number(optarg, 0.01, 3600);
		else if (c == 'p')
			opt.pin = true;
		else if (c == 'j')
			opt.json = true;
		else
			usage();
	}
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		known += !name || !strcmp(name, ops[i].name);
	if (optind != argc || !known)
		usage();
	while (depth++ < opt.level)
		nest();
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		if (known == 1 && strcmp(ops[i].name, name))
			continue;
		strcpy(again, list);
		for (tasks = strtok_r(again, ",", &next); tasks; tasks = strtok_r(NULL, ",", &next))
			measure(&ops[i], number(tasks, 1, 1024));
	}
	return 0;
}
