// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that are reclaimed before the fault that read them has mapped them: threads
 * of one process map a device of their own, of 2 MiB, read each page of it and unmap it,
 * in turns, for a while.  The first argument is how the devices' names begin.  To be run in a memory
 * cgroup that has less memory than all of that.  Prints a line of JSON: the pages that
 * were touched, by all threads and by those that did least and most, and the pages that
 * the device read meanwhile.
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PART	(2UL << 20)

static const char *prefix;
static atomic_bool stop;
static atomic_ulong touched[1000];

static void *fault(void *number)
{
	const unsigned long psz = sysconf(_SC_PAGESIZE);
	char path[256];
	int fd;

	prctl(PR_SET_NAME, "fault");
	snprintf(path, sizeof(path), "/dev/%s%lu", prefix, (unsigned long)number);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		err(1, "%s", path);
	while (!stop) {
		char *at = mmap(NULL, PART, PROT_READ, MAP_SHARED, fd, 0);

		if (at == MAP_FAILED)
			err(1, "mmap");
		madvise(at, PART, MADV_RANDOM);
		for (unsigned long i = 0; i < PART && !stop; i += psz) {
			(void)*(volatile char *)(at + i);
			touched[(unsigned long)number]++;
		}
		munmap(at, PART);
	}
	return NULL;
}

/* Sectors that the devices have read */
static unsigned long sectors(unsigned long devices)
{
	unsigned long found, sum = 0;
	char path[64];
	FILE *file;

	for (unsigned long i = 0; i < devices; i++) {
		snprintf(path, sizeof(path), "/sys/block/%s%lu/stat", prefix, i);
		file = fopen(path, "r");
		if (!file || fscanf(file, "%*u %*u %lu", &found) != 1)
			err(1, "%s", path);
		fclose(file);
		sum += found;
	}
	return sum;
}

int main(int argc, char **argv)
{
	unsigned long threads, before, sum = 0, least = -1UL, most = 0;
	pthread_t thread;

	if (argc != 4)
		errx(2, "usage: lost_pages prefix threads seconds");
	prefix = argv[1];
	threads = strtoul(argv[2], NULL, 0);
	if (threads > sizeof(touched) / sizeof(*touched))
		errx(2, "too many threads");
	before = sectors(threads);
	for (unsigned long i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, fault, (void *)i))
			errx(1, "pthread_create");
	sleep(strtoul(argv[3], NULL, 0));
	stop = true;
	for (unsigned long i = 0; i < threads; i++) {
		sum += touched[i];
		least = touched[i] < least ? touched[i] : least;
		most = touched[i] > most ? touched[i] : most;
	}
	printf("{\"bench\":\"lost_pages\",\"threads\":%lu,\"touched\":%lu,\"least\":%lu,\"most\":%lu,\"read\":%lu}\n",
	       threads, sum, least, most,
	       (sectors(threads) - before) * 512 / sysconf(_SC_PAGESIZE));
	return 0;
}
