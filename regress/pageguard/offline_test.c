// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is taken offline while a file in it is read under a guard. It takes memory
 * of ZONE_MOVABLE, which a part of the boot memory is with movablecore=.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define BLOCKS		"/sys/devices/system/memory"
#define DELAY		"/sys/kernel/debug/pageguard_knockout/delay"
/* To take a block offline takes a second or two where the kernel is emulated. */
#define PATIENCE	60
#define WORD		((unsigned long)0x4141414141414141)

#define MOST		4096	/* blocks */
#define TRIES		128
#define STEP		(8L << 20)

/* A batch: code that removes it looks at the guards once. */
static char pages[31 * 4096];
static int fd, turn, stop;
static bool removable[MOST];
static uint64_t seen, reads;

static bool write_file(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t ret = file < 0 ? -1 : write(file, value, strlen(value));

	if (file >= 0)
		close(file);
	return ret == (ssize_t)strlen(value);
}

static bool read_file(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t ret = file < 0 ? -1 : read(file, text, size - 1);

	if (file >= 0)
		close(file);
	text[ret < 0 ? 0 : ret] = '\0';
	return ret > 0;
}

/* The block of memory that has the first page of @file, or -1. */
static long block(int file)
{
	unsigned long size = 0;
	uint64_t entry = 0;
	char text[32];
	char *map = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, file, 0);
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (map != MAP_FAILED && *(volatile char *)map &&
	    pread(pagemap, &entry, 8, (uintptr_t)map / getpagesize() * 8) != 8)
		entry = 0;
	close(pagemap);
	munmap(map, getpagesize());
	entry &= (1ull << 55) - 1;
	if (read_file(BLOCKS "/block_size_bytes", text, sizeof(text)))
		size = strtoul(text, NULL, 16);
	return size && entry ? (long)(entry * getpagesize() / size) : -1;
}

static bool set_state(long nr, const char *state)
{
	char path[96];
	bool done;

	snprintf(path, sizeof(path), BLOCKS "/memory%ld/state", nr);
	alarm(PATIENCE);
	done = write_file(path, state);
	alarm(0);
	return done;
}

/* Boot memory of the kernel may lie in the same block: see which go without a reader. */
static int find_removable(void)
{
	char path[96], zone[64];
	int nr, found = 0;

	for (nr = 0; nr < MOST; nr++) {
		snprintf(path, sizeof(path), BLOCKS "/memory%d/valid_zones", nr);
		if (!read_file(path, zone, sizeof(zone)) || strncmp(zone, "Movable", 7))
			continue;
		removable[nr] = set_state(nr, "offline") && set_state(nr, "online_movable");
		found += removable[nr];
	}
	return found;
}

/*
 * Make the file anew until it begins in a block that can go.  What was tried is kept
 * until then, and more: the same pages would come again.  Which block, or -1.
 */
static long make_removable(void)
{
	int tried[TRIES], nr_tried = 0;
	long nr = -1;

	while (nr_tried < TRIES) {
		int next = memfd_create("offline", MFD_CLOEXEC);

		if (next < 0)
			break;
		tried[nr_tried++] = next;
		if (pwrite(next, pages, sizeof(pages), 0) != sizeof(pages))
			break;
		nr = block(next);
		if (nr >= 0 && nr < MOST && removable[nr]) {
			dup2(next, fd);
			break;
		}
		nr = -1;
		if (fallocate(next, 0, sizeof(pages), STEP))
			break;
	}
	while (nr_tried)
		close(tried[--nr_tried]);
	return nr;
}

static void ignore(int sig)
{
	(void)sig;
}

/* A small read each time that it is this thread's turn, or always if @turn is below 0. */
static void *read_words(void *cpu)
{
	uint64_t word;
	int now;

	sched_setaffinity(0, sizeof(cpu_set_t), cpu);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
		if (!now)
			continue;
		if (pread(fd, &word, sizeof(word), 0) == sizeof(word))
			__atomic_fetch_or(&seen, word, __ATOMIC_RELAXED);
		__atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
		if (now > 0)
			__atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

FIXTURE(offline)
{
	pthread_t thread;
	cpu_set_t one[2];
};

FIXTURE_SETUP(offline)
{
	struct sigaction action = { .sa_handler = ignore };
	int cpu, nr = 0;
	cpu_set_t all;

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
	for (cpu = 0; cpu < CPU_SETSIZE && nr < 2; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &self->one[nr++]);
	memset(pages, 0x41, sizeof(pages));
	fd = memfd_create("offline", MFD_CLOEXEC);
	ASSERT_GE(fd, 0);
	/* Without SA_RESTART: the signal ends what does not end by itself. */
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	if (nr < 2 || !find_removable())
		SKIP(return, "needs root, two CPUs and a block of movable memory");
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(self->one[0]), &self->one[0]));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, read_words, &self->one[1]));
}

FIXTURE_TEARDOWN(offline)
{
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(self->thread, NULL);
	EXPECT_EQ(WORD, seen);
}

/* A page that another CPU reads all the time goes elsewhere. */
TEST_F_TIMEOUT(offline, read, 10 * PATIENCE)
{
	uint64_t before;
	long nr;
	int i;

	__atomic_store_n(&turn, -1, __ATOMIC_RELEASE);
	for (i = 0; i < 3; i++) {
		nr = make_removable();
		ASSERT_LE(0, nr);
		before = __atomic_load_n(&reads, __ATOMIC_RELAXED);
		ASSERT_TRUE(set_state(nr, "offline"));
		EXPECT_NE(nr, block(fd));
		EXPECT_LT(before, __atomic_load_n(&reads, __ATOMIC_RELAXED));
		ASSERT_TRUE(set_state(nr, "online_movable"));
	}
}

/* A page that was removed while another CPU read it does not keep its block online. */
TEST_F_TIMEOUT(offline, removed, 10 * PATIENCE)
{
	long nr;
	int i;

	/* With knockout.patch, the copy of half of the reads waits. */
	write_file(DELAY, "3000");
	for (i = 0; i < 5; i++) {
		nr = make_removable();
		ASSERT_LE(0, nr);
		__atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
		usleep(100);
		ASSERT_EQ(0, ftruncate(fd, 0));
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE))
			sched_yield();
		EXPECT_TRUE(set_state(nr, "offline")) {
			TH_LOG("block %ld stays", nr);
			break;
		}
		ASSERT_TRUE(set_state(nr, "online_movable"));
	}
	write_file(DELAY, "0");
}

TEST_HARNESS_MAIN
