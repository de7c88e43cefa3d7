/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs here have in common: options, threads that begin and stop
 * together, ways of doing one thing that are timed in turns, and their table.
 *
 *	cc -O2 -pthread -o guard guard.c && ./guard [--threads 1,2,4] [--ms 100] [--json]
 */
#ifndef PORTABLE_H
#define PORTABLE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS	1024
#define MOST_WAYS	3
#define TURNS		5
#define LINE		__attribute__((aligned(128)))

/* How many there are, and which of the ways is timed. */
static int threads, way;
static LINE atomic_bool started, stopped;

/*
 * What a program has: begin() comes first, work() is done by each thread until done()
 * says that the time is over, and returns how many operations that were; beside() is
 * called beside them, some 100 microseconds apart, and once more when it is over.
 */
static void begin(void);
static unsigned long work(int thread);
static void beside(void);

static inline bool done(void)
{
	return atomic_load_explicit(&stopped, memory_order_relaxed);
}

/* Now and then, let others go on where that hurts a way that is wrong. */
static inline void held_up(void)
{
	static __thread unsigned int calls;

	if (!(++calls % 65521))
		sched_yield();
}

/* @right, or what was copied, or the owner of a number, is wrong: so is the way. */
static inline void must(bool right, const char *what)
{
	if (!right)
		errx(1, "%s", what);
}

struct thread {
	pthread_t id;
	int number;
	unsigned long ops;
};

static void *thread_main(void *data)
{
	struct thread *thread = data;
	cpu_set_t allowed, one;
	int cpu, left;

	/* To a CPU each, by turns, of those that there are. */
	sched_getaffinity(0, sizeof(allowed), &allowed);
	left = thread->number % CPU_COUNT(&allowed);
	for (cpu = 0; !CPU_ISSET(cpu, &allowed) || left--; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	while (!atomic_load(&started))
		sched_yield();
	thread->ops = work(thread->number);
	return NULL;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* Million operations a second. */
static double timed(double seconds)
{
	static struct thread all[MOST_THREADS];
	unsigned long ops = 0;
	double start, took;
	int i;

	atomic_store(&started, false);
	atomic_store(&stopped, false);
	begin();
	for (i = 0; i < threads; i++) {
		all[i] = (struct thread){ .number = i };
		if (pthread_create(&all[i].id, NULL, thread_main, &all[i]))
			errx(1, "there is no room for %d threads: give fewer with --threads", threads);
	}
	start = now();
	atomic_store(&started, true);
	while (now() - start < seconds) {
		usleep(100);
		beside();
	}
	took = now() - start;
	atomic_store(&stopped, true);
	beside();
	for (i = 0; i < threads; i++) {
		pthread_join(all[i].id, NULL);
		ops += all[i].ops;
	}
	return ops / took / 1e6;
}

static int compare(const void *a, const void *b)
{
	return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b);
}

/* The medians of @number ways, which take turns, as a line for people or @json. */
static void tell(const char *const *names, int number, double seconds, bool json)
{
	double found[MOST_WAYS][TURNS];
	int turn, i;

	for (turn = 0; turn < TURNS; turn++)
		for (way = 0; way < number; way++)
			found[way][turn] = timed(seconds);
	printf(json ? "{\"threads\": %d" : "%7d", threads);
	for (i = 0; i < number; i++) {
		qsort(found[i], TURNS, sizeof(double), compare);
		if (json)
			printf(", \"%s\": %.4g", names[i], found[i][TURNS / 2]);
		else
			printf("  %16.4g", found[i][TURNS / 2]);
	}
	if (!json)
		printf("  %9.2f", found[number - 1][TURNS / 2] / found[0][TURNS / 2]);
	printf(json ? "}\n" : "\n");
	fflush(stdout);
}

/*
 * main() of a program: @what its operations are, the @names of the @number of ways, the
 * first of which is how Linux does it.
 */
static int portable(int argc, char **argv, const char *what, const char *const *names, int number)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), list[64], count = 0, i;
	double seconds = 0.1;
	bool json = false;
	char *end;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--ms") && i + 1 < argc) {
			seconds = strtod(argv[++i], &end) / 1000;
			if (*end || seconds < 0.001 || seconds > 100)
				errx(2, "--ms takes 1 to 100000");
		} else if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
			for (end = argv[++i]; count < 64; end++) {
				list[count++] = strtol(end, &end, 10);
				if (list[count - 1] < 1 || list[count - 1] > MOST_THREADS)
					errx(2, "--threads takes 1 to %d", MOST_THREADS);
				if (*end != ',')
					break;
			}
			if (*end)
				errx(2, "--threads takes a list like 1,2,4");
		} else {
			errx(2, "usage: %s [--threads 1,2,4] [--ms 100] [--json]", argv[0]);
		}
	}
	for (i = 1; !count || (list[count - 1] < cpus && i); i *= 2)
		list[count++] = i < cpus ? i : cpus;
	if (!json) {
		printf("%s, million a second; %d CPUs\n%7s", what, cpus, "threads");
		for (i = 0; i < number; i++)
			printf("  %16s", names[i]);
		printf("  last/first\n");
	}
	for (i = 0; i < count; i++) {
		threads = list[i];
		tell(names, number, seconds, json);
	}
	return 0;
}

#endif
