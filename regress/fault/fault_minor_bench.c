// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults that do not wait: the mean time of one, or under QEMU's -icount
 * shift=0, its instructions, as a line of JSON.  Before that, a thread called
 * "fault" reads 16 MiB of the file or device that is its argument through a mapping.
 */
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PAGES	4096UL
#define ROUNDS	8
#define RW	(PROT_READ | PROT_WRITE)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS)

static unsigned long psz, size;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static char *map(int flags, int fd)
{
	char *at = mmap(NULL, size, RW, flags, fd, 0);

	if (at == MAP_FAILED)
		err(1, "mmap");
	madvise(at, size, MADV_NOHUGEPAGE);
	return at;
}

static void minor(const char *what, char *at, unsigned long pages, bool write)
{
	const unsigned long stride = pages * psz, count = size / stride;
	uint64_t begin, sum = 0;
	unsigned long i;

	/* The first fault in a VMA does more, and the first round may */
	at[0] = at[0];
	for (int round = 0; round <= ROUNDS; round++) {
		madvise(at, size, MADV_DONTNEED);
		begin = now();
		for (i = 0; i < count; i++)
			if (write)
				*(volatile char *)(at + i * stride) = 1;
			else
				(void)*(volatile char *)(at + i * stride);
		sum += round ? now() - begin : 0;
	}
	printf("%c\"%s\": {\"number\": %lu, \"mean_ns\": %.1f}", *what == 'a' && !write ? '{' : ',',
	       what, count * ROUNDS, (double)sum / (count * ROUNDS));
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR) : -1, shmem = memfd_create("fault_minor_bench", 0);
	char *anon, *shared, *private, *file;

	psz = sysconf(_SC_PAGESIZE);
	size = PAGES * psz;
	if (fd < 0 || ftruncate(shmem, size))
		err(1, "give a file of %lu MiB", size >> 20);
	anon = map(ANON, -1);
	shared = map(MAP_SHARED, shmem);
	private = map(MAP_PRIVATE, shmem);
	file = map(MAP_SHARED, fd);
	memset(shared, 1, size);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	prctl(PR_SET_NAME, "fault");
	for (unsigned long i = 0; i < size; i += psz)
		(void)*(volatile char *)(file + i);
	minor("anonymous read", anon, 1, false);
	minor("anonymous write", anon, 1, true);
	minor("shmem shared write", shared, 1, true);
	minor("shmem private write", private, 1, true);
	minor("shmem read around", shared, 16, false);
	minor("file read around", file, 16, false);
	printf("}\n");
	return 0;
}
