// SPDX-License-Identifier: GPL-2.0
/*
 * How many preads of cached files are done a second, and how long one takes.
 *
 * Each of some threads, or processes, reads again and again for a fixed time:
 * the beginning of a file or random records, of one file or one of its own,
 * through one open file or one of its own.  One read in 64 is timed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"

#define MOST_TASKS	1024
#define LARGEST_READ	(64 << 10)
#define TIMED		64
/* Of each worker, these many times that were taken last are kept. */
#define SAMPLES		4096

struct worker {
	pthread_t thread;
	unsigned int nr;
	int fd;
	uint64_t ops, timed;
	uint32_t sample[SAMPLES];
};

static struct shared {
	size_t size;
	unsigned int ready;
	int phase;		/* 0: wait, 1: warm up, 2: measure, 3: end */
	struct worker worker[MOST_TASKS];
} *shared;

static struct {
	const char *dir;
	double seconds;
	size_t file_size;
	int processes, own_files, one_open, random, pin, json;
} opt = { .dir = ".", .seconds = 1, .file_size = 1 << 20 };

static void fail_if(bool failed, const char *what)
{
	if (failed)
		ksft_exit_fail_perror(what);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int compare(const void *one, const void *two)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;

	return a < b ? -1 : a > b;
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

static unsigned char byte_at(size_t pos)
{
	return (uint32_t)pos * 2654435761u >> 24;
}

/* A new file, which is cached, or @file, opened once more */
static int open_file(int file)
{
	unsigned char *data;
	char path[4096];
	size_t i;

	if (file >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
		file = open(path, O_RDONLY);
		fail_if(file < 0, path);
		return file;
	}
	snprintf(path, sizeof(path), "%s/pread_bench.XXXXXX", opt.dir);
	file = mkstemp(path);
	data = malloc(opt.file_size);
	fail_if(file < 0 || unlink(path) || !data, path);
	for (i = 0; i < opt.file_size; i++)
		data[i] = byte_at(i);
	fail_if(write(file, data, i) != (ssize_t)i || fsync(file), "write");
	free(data);
	return file;
}

static void *work(void *arg)
{
	static __thread unsigned char buf[LARGEST_READ];
	struct worker *mine = arg;
	size_t size = shared->size, pos = 0;
	uint32_t seed = mine->nr + 1;
	uint64_t from = 0;
	int phase;

	if (opt.pin)
		pin(mine->nr);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->phase, __ATOMIC_ACQUIRE))
		usleep(100);
	do {
		phase = __atomic_load_n(&shared->phase, __ATOMIC_RELAXED);
		if (opt.random) {
			seed = seed * 1664525u + 1013904223u;
			pos = (seed >> 8) % (opt.file_size / size) * size;
		}
		if (mine->ops % TIMED == 0)
			from = now();
		fail_if(pread(mine->fd, buf, size, pos) != (ssize_t)size ||
			buf[0] != byte_at(pos) ||
			buf[size - 1] != byte_at(pos + size - 1), "pread");
		if (phase == 2 && mine->ops++ % TIMED == 0)
			mine->sample[mine->timed++ % SAMPLES] = now() - from;
	} while (phase < 3);
	return NULL;
}

static void start(struct worker *worker)
{
	pid_t pid = -1;

	if (opt.processes)
		pid = fork();
	else
		errno = pthread_create(&worker->thread, NULL, work, worker);
	fail_if(opt.processes ? pid < 0 : errno, "worker");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(worker);
		_exit(0);
	}
}

static void print(size_t size, unsigned int tasks, double ops, double ns,
		  const uint32_t *sorted, size_t samples)
{
	const char *who = opt.processes ? "processes" : "threads";
	const char *file = opt.own_files ? "own" : "one";
	const char *open = opt.one_open ? "one" : "own";
	const char *where = opt.random ? "random" : "hot";
	uint32_t p50 = sorted[samples / 2], p99 = sorted[samples * 99 / 100];
	double rate = ops * 1e9 / ns;

	if (opt.json) {
		printf("{\"bench\": \"pread_bench\", \"size\": %zu, ", size);
		printf("\"tasks\": %u, \"workers\": \"%s\", ", tasks, who);
		printf("\"file\": \"%s\", \"open\": \"%s\", ", file, open);
		printf("\"offsets\": \"%s\", \"ops\": %.0f, ", where, ops);
		printf("\"seconds\": %.3f, \"ops_per_s\": %.1f, ", ns / 1e9,
		       rate);
		printf("\"p50_ns\": %u, \"p99_ns\": %u}\n", p50, p99);
	} else {
		printf("%5zu B %-6s %4u %s, %s file, %s open: ", size, where,
		       tasks, who, file, open);
		printf("%10.0f op/s  p50 %6u ns  p99 %6u ns\n", rate, p50, p99);
	}
	fflush(stdout);
}

static void measure(size_t size, unsigned int tasks)
{
	uint32_t *sorted = malloc(tasks * sizeof(shared->worker[0].sample));
	size_t samples = 0, kept;
	uint64_t from, ns, ops = 0;
	struct worker *worker;
	unsigned int i;
	int status = 0;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fail_if(shared == MAP_FAILED || !sorted, "memory");
	worker = shared->worker;
	shared->size = size;
	for (i = 0; i < tasks; i++) {
		worker[i].nr = i;
		worker[i].fd = i && opt.one_open ? worker[0].fd :
			open_file(i && !opt.own_files ? worker[0].fd : -1);
	}
	for (i = 0; i < tasks; i++)
		start(&worker[i]);
	while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) < tasks)
		fail_if(opt.processes && waitpid(-1, &status, WNOHANG), "wait");
	__atomic_store_n(&shared->phase, 1, __ATOMIC_RELEASE);
	usleep(50000);
	from = now();
	__atomic_store_n(&shared->phase, 2, __ATOMIC_RELAXED);
	usleep(opt.seconds * 1e6);
	ns = now() - from;
	__atomic_store_n(&shared->phase, 3, __ATOMIC_RELAXED);
	for (i = 0; i < tasks; i++)
		fail_if(opt.processes ? wait(&status) < 0 || status :
			pthread_join(worker[i].thread, NULL), "worker");
	for (i = 0; i < tasks; i++) {
		ops += worker[i].ops;
		kept = MIN(worker[i].timed, SAMPLES);
		memcpy(sorted + samples, worker[i].sample, 4 * kept);
		samples += kept;
		if (!i || !opt.one_open)
			close(worker[i].fd);
	}
	fail_if(!samples, "no read was done in time");
	qsort(sorted, samples, sizeof(*sorted), compare);
	print(size, tasks, ops, ns, sorted, samples);
	free(sorted);
	munmap(shared, sizeof(*shared));
}

static void usage(void)
{
	fputs("--size 1,64,1024,4096 --tasks 1,2,4 --dir . --seconds 1 --pin\n"
	      "--processes --own-files --one-open --random --json\n"
	      "--file-size 1048576\n", stderr);
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
		{ "size", 1, NULL, 's' }, { "tasks", 1, NULL, 't' },
		{ "file-size", 1, NULL, 'f' }, { "dir", 1, NULL, 'd' },
		{ "seconds", 1, NULL, 'n' }, { "pin", 0, &opt.pin, 1 },
		{ "processes", 0, &opt.processes, 1 },
		{ "own-files", 0, &opt.own_files, 1 },
		{ "one-open", 0, &opt.one_open, 1 },
		{ "random", 0, &opt.random, 1 }, { "json", 0, &opt.json, 1 },
		{ },
	};
	const char *sizes = "1,64,1024,4096", *tasks = "1,2,4";
	char *size, *task, *end, *end_task;
	size_t bytes;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 's')
			sizes = optarg;
		else if (c == 't')
			tasks = optarg;
		else if (c == 'f')
			opt.file_size = number(optarg, 1, 1 << 30);
		else if (c == 'd')
			opt.dir = optarg;
		else if (c == 'n')
			opt.seconds = number(optarg, 0.01, 3600);
		else if (c)
			usage();
	}
	if (optind != argc || (opt.own_files && opt.one_open))
		usage();
	size = strtok_r(strdup(sizes), ",", &end);
	for (; size; size = strtok_r(NULL, ",", &end)) {
		bytes = number(size, 1, MIN(LARGEST_READ, opt.file_size));
		task = strtok_r(strdup(tasks), ",", &end_task);
		for (; task; task = strtok_r(NULL, ",", &end_task))
			measure(bytes, number(task, 1, MOST_TASKS));
	}
	return 0;
}
