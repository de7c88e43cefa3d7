// SPDX-License-Identifier: GPL-2.0
/*
 * What the tables of numbers cost beside clone() and exit().
 *
 *	readdir <processes> <count>	operations of reading /proc with so many in it
 *	lookup <processes> <count>	kill(pid, 0) of the first of so many
 *	memory <namespaces> <visits>	bytes of nodes and chunks for each of so many
 *					namespaces with ten processes, and after so many
 *					numbers, far apart, were taken and given back
 *
 * Prints one JSON object. The processes share the memory of this one.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../marks.h"

#define STACK		4096
#define INHABITANTS	10
#define FURTHEST	(4 << 20)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int idle(void *unused)
{
	(void)unused;
	for (;;)
		syscall(__NR_pause);
	return 0;
}

static void table(int processes, int count, bool lookup)
{
	char *stacks = mmap(NULL, (size_t)processes * STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int *pids = calloc(processes, sizeof(*pids));
	int i, seen = 0, fd;
	char buf[32768];
	long got;

	if (stacks == MAP_FAILED || !pids)
		die("memory");
	for (i = 0; i < processes; i++) {
		pids[i] = clone(idle, stacks + (size_t)(i + 1) * STACK,
				CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
		if (pids[i] < 0)
			die("clone");
	}
	for (i = -2; lookup && i < count; i++) {
		if (!i)
			MARK(MARK_OPEN);
		if (i >= 0)
			MARK(MARK_OP);
		if (kill(pids[0], 0))
			die("kill");
	}
	for (i = -2; !lookup && i < count; i++) {
		fd = open("/proc", O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			die("/proc");
		if (!i)
			MARK(MARK_OPEN);
		if (i >= 0)
			MARK(MARK_OP);
		while ((got = syscall(__NR_getdents64, fd, buf, sizeof(buf))) > 0)
			if (i < 0)
				for (long at = 0; at < got; at += *(unsigned short *)(buf + at + 16))
					seen += buf[at + 19] >= '1' && buf[at + 19] <= '9';
		close(fd);
	}
	MARK(MARK_END);
	MARK(MARK_CLOSE);
	for (i = 0; i < processes; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	if (!lookup && seen < 2 * processes) {
		fprintf(stderr, "%d of %d processes were seen\n", seen / 2, processes);
		exit(1);
	}
	printf("{\"op\":\"%s\",\"level\":0,\"processes\":%d,\"count\":%d}\n",
	       lookup ? "lookup" : "readdir", processes, count);
}

/* Caches may be merged: one that has the same directory in sysfs stands for it. */
static bool same_cache(const char *a, const char *b)
{
	char path[128], to_a[PATH_MAX], to_b[PATH_MAX];

	if (!strcmp(a, b))
		return true;
	snprintf(path, sizeof(path), "/sys/kernel/slab/%s", a);
	if (!realpath(path, to_a))
		return false;
	snprintf(path, sizeof(path), "/sys/kernel/slab/%s", b);
	return realpath(path, to_b) && !strcmp(to_a, to_b);
}

/* Free objects that CPUs keep count as active: have them given back */
static void shrink(const char *cache)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", cache);
	file = fopen(path, "w");
	if (!file && errno == ENOENT)	/* a kernel without it */
		return;
	if (!file || fputs("1", file) < 0 || fclose(file))
		die(path);
}

/* What nodes and chunks take, with what else is in the same caches */
static long table_bytes(void)
{
	long active, all, size, sum = 0;
	char line[512], name[64];
	FILE *file;

	shrink("radix_tree_node");
	shrink("pid_chunk");
	file = fopen("/proc/slabinfo", "r");
	if (!file)
		die("/proc/slabinfo");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %ld %ld %ld", name, &active, &all, &size) == 4 &&
		    (same_cache("radix_tree_node", name) || same_cache("pid_chunk", name)))
			sum += active * size;
	fclose(file);
	return sum;
}

static void command(int fd, char what)
{
	if (write(fd, &what, 1) != 1 || read(fd, &what, 1) != 1)
		die("init");
}

/* The init of a namespace: does what it is told over @fd */
static void init_main(int fd, int visits)
{
	char what;
	int i;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, &what, 1) == 1) {
		for (i = 1; what == 'p' && i < INHABITANTS; i++)
			if (!fork())
				idle(NULL);
		for (i = 0; what == 'v' && i < visits; i++) {
			pid_t tid = 1000 + (long)i * (FURTHEST - 2000) / visits;
			struct clone_args args = { .exit_signal = SIGCHLD,
				.set_tid = (uintptr_t)&tid, .set_tid_size = 1 };

			pid = syscall(__NR_clone3, &args, sizeof(args));
			if (!pid)
				_exit(0);
			if (pid != tid || waitpid(pid, NULL, 0) != pid)
				die("clone3");
		}
		if (write(fd, &what, 1) != 1)
			break;
	}
	_exit(0);
}

static void settle(void)
{
	usleep(1500000);
}

static void memory(int namespaces, int visits)
{
	int (*pair)[2] = calloc(namespaces, sizeof(*pair)), i;
	long before, few, many;

	for (i = 0; i < namespaces; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]))
			die("socketpair");
	settle();
	before = table_bytes();
	for (i = 0; i < namespaces; i++) {
		struct clone_args args = { .flags = CLONE_NEWPID, .exit_signal = SIGCHLD };
		pid_t pid = syscall(__NR_clone3, &args, sizeof(args));

		if (pid < 0)
			die("clone3");
		if (!pid)
			init_main(pair[i][1], visits);
		command(pair[i][0], 'p');
	}
	settle();
	few = table_bytes();
	for (i = 0; i < namespaces; i++)
		command(pair[i][0], 'v');
	settle();
	many = table_bytes();
	printf("{\"op\":\"memory\",\"namespaces\":%d,\"few\":%.1f,\"many\":%.1f}\n", namespaces,
	       (double)(few - before) / namespaces, (double)(many - before) / namespaces);
}

int main(int argc, char **argv)
{
	int first = argc == 4 ? atoi(argv[2]) : 0, second = argc == 4 ? atoi(argv[3]) : 0;

	if (first < 1 || second < 1) {
		fputs("usage: pid_table_bench readdir|lookup|memory <number> <number>\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "readdir") || !strcmp(argv[1], "lookup"))
		table(first, second, argv[1][0] == 'l');
	else
		memory(first, second);
	return 0;
}
