// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults that wait for a device, and what they and others wait for besides.
 *
 * --mode apart: threads touch random pages of a --file, which may be a device or a
 * directory to make one in, beside a "UI thread", and a --neighbour that maps or forks.
 * Each touch counts, also of a page that is mapped by then: have a file that is larger
 * than what can be read.  Beyond MOST samples of all threads, touches are not counted.
 * --mode same: all touch the same page, one page after the other.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/types.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"

#define load(p)	__atomic_load_n(p, __ATOMIC_RELAXED)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define RW	(PROT_READ | PROT_WRITE)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS)
#define BIG	(32UL << 20)	/* what --neighbour map maps */
#define MOST	1048576UL	/* samples */

enum mode { APART, SAME };
enum neighbour { NONE, MAP, FORK };
static const char *const modes[] = { "apart", "same", NULL };
static const char *const neighbours[] = { "none", "map", "fork", NULL };
static const char *path, *swap;
static int mode, neighbour, fd;
static bool json, write_to, random_access;
static unsigned long threads = 16, faults = 1000, vmas, seconds = 5, size, fill, psz, pages, page;
static char *map;
static __u64 deadline;
static pthread_barrier_t gate;

struct samples { __u64 *v; size_t n, max; };
static struct samples *waits, ui, forks;
static long fork_sleeps;

static __u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void *memory(size_t size, int flags)
{
	void *at = mmap(NULL, size, RW, ANON | flags, -1, 0);

	if (at == MAP_FAILED)
		err(1, "mmap");
	return at;
}

static void prepare(struct samples *s, size_t max)
{
	*s = (struct samples) { memory(max * sizeof(*s->v), MAP_POPULATE), 0, max };
}

static void add(struct samples *s, __u64 since)
{
	if (s->n < s->max)
		s->v[s->n++] = now() - since;
}

static void touch(unsigned long nr)
{
	unsigned long *at = (unsigned long *)(map + nr * psz);

	if (write_to)
		store(at + 1, 1);
	if (load(at) != (swap || (fill && nr % fill == 0) ? nr : 0))
		errx(1, "page %lu has the data of another", nr);
}

/* For tracing of a thread while it faults, but not its exit */
static void name(const char *text)
{
	prctl(PR_SET_NAME, text);
}

static void *fault_apart(void *arg)
{
	unsigned long id = (unsigned long)arg;
	__u64 x = 88172645463325252ULL + id * 77, begin;

	name("fault");
	while (now() < deadline) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		begin = now();
		touch(x % pages);
		add(&waits[id], begin);
	}
	name("done");
	return NULL;
}

static void *fault_same(void *arg)
{
	unsigned long i;
	__u64 begin;

	name("fault");
	for (i = 0; i < faults; i++) {
		pthread_barrier_wait(&gate);
		begin = now();
		touch(page);
		add(&waits[(unsigned long)arg], begin);
		pthread_barrier_wait(&gate);
	}
	name("done");
	return NULL;
}

/* What the thread that draws may do now and then */
static void *be_ui(void *arg)
{
	__u64 begin;
	char *at;

	name("ui");
	while (now() < deadline) {
		begin = now();
		at = memory(BIG / 32, 0);
		at[0] = 1;
		mprotect(at, psz, PROT_READ);
		munmap(at, BIG / 32);
		add(&ui, begin);
		usleep(5000);
	}
	return NULL;
}

static void *be_neighbour(void *arg)
{
	struct rusage before, after;
	__u64 begin;
	size_t i;
	pid_t pid;
	char *at;

	name("neighbour");
	while (now() < deadline) {
		if (neighbour == FORK) {
			usleep(300000);
			getrusage(RUSAGE_THREAD, &before);
			begin = now();
			pid = fork();
			if (!pid)
				_exit(0);
			add(&forks, begin);
			getrusage(RUSAGE_THREAD, &after);
			fork_sleeps += after.ru_nvcsw - before.ru_nvcsw;
			waitpid(pid, NULL, 0);
		} else {
			at = memory(BIG, 0);
			madvise(at, BIG, MADV_NOHUGEPAGE);
			for (i = 0; i < BIG; i += psz)
				at[i] = 1;
			mprotect(at, BIG, PROT_READ);
			munmap(at, BIG);
			usleep(20000);
		}
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	__u64 x = *(__u64 *)a, y = *(__u64 *)b;

	return x < y ? -1 : x > y;
}

static void show(const char *what, struct samples *s)
{
	uintmax_t sum = 0;
	size_t i;

	if (!s->n)
		return;
	qsort(s->v, s->n, sizeof(*s->v), compare);
	for (i = 0; i < s->n; i++)
		sum += s->v[i];
	printf(json ? ", \"%s\": {\"number\": %zu, \"mean_ns\": %ju" :
		      "%-8s %8zu times, ns: mean %ju", what, s->n, sum / s->n);
	printf(json ? ", \"p50_ns\": %ju, \"p99_ns\": %ju, \"max_ns\": %ju}" :
		      ", p50 %ju, p99 %ju, max %ju\n", (uintmax_t)s->v[s->n / 2],
	       (uintmax_t)s->v[s->n * 99 / 100], (uintmax_t)s->v[s->n - 1]);
}

/* All of it is to be on swap: what MADV_PAGEOUT leaves in the swap cache, reclaim frees */
static void swap_out(void)
{
	unsigned char *in = malloc(faults);
	int tries, reclaim = open(swap, O_WRONLY);

	for (page = 0; page < faults; page++)
		*(unsigned long *)(map + page * psz) = page;
	for (tries = 0; tries < 1000; tries++) {
		madvise(map, faults * psz, MADV_PAGEOUT);
		if (write(reclaim, "4M swappiness=max", 17) < 0 && errno != EAGAIN)
			err(1, "%s", swap);
		usleep(10000);
		mincore(map, faults * psz, in);
		for (page = 0; page < faults && !(in[page] & 1); page++)
			;
		if (page == faults)
			break;
	}
	if (tries == 1000)
		errx(1, "page %lu stays in memory", page);
	close(reclaim);
	free(in);
}

static void run_threads(void)
{
	struct samples all;
	pthread_t thread[threads + 2];
	void *(*fault)(void *) = mode == SAME ? fault_same : fault_apart;
	unsigned long i, n = 0;

	waits = calloc(threads, sizeof(*waits));
	for (i = 0; i < threads; i++)
		prepare(&waits[i], mode == SAME ? faults : MOST / threads);
	prepare(&ui, 1 << 16);
	prepare(&forks, 1 << 12);
	if (swap)
		swap_out();
	for (i = 0; i < vmas; i += 2)
		if (mprotect(memory(2 * psz, 0), psz, PROT_READ))
			err(1, "mprotect");
	pthread_barrier_init(&gate, NULL, threads + 1);
	deadline = now() + seconds * 1000000000ULL;
	for (i = 0; i < threads; i++)
		pthread_create(&thread[n++], NULL, fault, (void *)i);
	if (mode == APART) {
		pthread_create(&thread[n++], NULL, be_ui, NULL);
		if (neighbour != NONE)
			pthread_create(&thread[n++], NULL, be_neighbour, NULL);
	}
	for (i = 0; mode == SAME && i < faults; i++) {
		page = swap ? i : (i * 64 + 7) % pages;
		if (!swap && (madvise(map, size, MADV_DONTNEED) ||
			      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)))
			errx(1, "cannot drop the cache of %s", path);
		pthread_barrier_wait(&gate);
		pthread_barrier_wait(&gate);
	}
	while (n)
		pthread_join(thread[--n], NULL);
	prepare(&all, threads * waits[0].max);
	for (i = 0; i < threads; i++) {
		memcpy(all.v + all.n, waits[i].v, waits[i].n * sizeof(*all.v));
		all.n += waits[i].n;
	}
	if (json)
		printf(", \"operations\": %zu", all.n);
	show("faults", &all);
	show("ui", &ui);
	show("forks", &forks);
	if (forks.n)
		printf(json ? ", \"fork_sleeps\": %ld" : "forks slept %ld times\n", fork_sleeps);
}

static void map_pages(void)
{
	int flags = swap ? ANON : MAP_SHARED;

	fd = swap ? -1 : open(path, size ? O_TMPFILE | O_RDWR : O_RDWR, 0600);
	if (size) {
		fill = 1;
		size <<= 20;
		if (ftruncate(fd, size))
			err(1, "%s", path);
	} else {
		size = swap ? faults * psz : (unsigned long)lseek(fd, 0, SEEK_END);
	}
	pages = size / psz;
	for (page = 0; fill && page < pages; page += fill)
		if (pwrite(fd, &page, sizeof(page), page * psz) != sizeof(page))
			err(1, "%s, page %lu", path, page);
	if (!swap && (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)))
		err(1, "%s", path);
	map = mmap(NULL, size, RW, flags, fd, 0);
	if (map == MAP_FAILED || madvise(map, size, random_access ? MADV_RANDOM : MADV_NORMAL))
		err(1, "cannot map %lu bytes", size);
}

/* Options with a number, one of some words, any text, and nothing */
static const struct {
	const char *name;
	unsigned long *number, least, most;
	int *word;
	const char *const *words;
	const char **text;
	bool *set;
} options[] = {
	{ "threads", &threads, 1, 256 }, { "faults", &faults, 1, 1 << 20 },
	{ "seconds", &seconds, 1, 3600 }, { "vmas", &vmas, 0, 60000 },
	{ "size", &size, 1, 65536 }, { "fill", &fill, 1, 65536 },
	{ "mode", .word = &mode, .words = modes },
	{ "neighbour", .word = &neighbour, .words = neighbours },
	{ "file", .text = &path }, { "swap", .text = &swap },
	{ "random", .set = &random_access }, { "write", .set = &write_to },
	{ "json", .set = &json },
};

static void take(int option, const char *text)
{
	unsigned long n, most = options[option].most;
	int word = -1;
	char *end;

	if (options[option].set)
		*options[option].set = true;
	if (options[option].text)
		*options[option].text = text;
	if (options[option].word) {
		while (options[option].words[++word] && strcmp(options[option].words[word], text))
			;
		if (!options[option].words[word])
			errx(2, "there is no %s '%s'", options[option].name, text);
		*options[option].word = word;
	}
	if (options[option].number) {
		errno = 0;
		n = strtoul(text, &end, 10);
		if (errno || *end || end == text || *text == '-' ||
		    n < options[option].least || n > most)
			errx(2, "--%s is from %lu to %lu, not '%s'", options[option].name,
			     options[option].least, most, text);
		*options[option].number = n;
	}
}

int main(int argc, char **argv)
{
	struct option longs[ARRAY_SIZE(options) + 1] = {};
	int i, found;

	psz = sysconf(_SC_PAGESIZE);
	for (i = 0; i < (int)ARRAY_SIZE(options); i++)
		longs[i] = (struct option) { options[i].name, !options[i].set, NULL, 0 };
	while ((found = getopt_long_only(argc, argv, "", longs, &i)) == 0)
		take(i, optarg);
	if (found != -1 || optind < argc || !path == !swap || (swap && (size || mode != SAME)))
		errx(2, "give --file FILE, --file DIR --size MIB, or --mode same --swap RECLAIM");
	map_pages();
	printf(json ? "{\"mode\": \"%s\", \"neighbour\": \"%s\", \"threads\": %lu, \"vmas\": %lu" :
		      "%s, neighbour %s, %lu threads, %lu VMAs\n",
	       modes[mode], neighbours[neighbour], threads, vmas);
	run_threads();
	printf(json ? "}\n" : "");
	return 0;
}
