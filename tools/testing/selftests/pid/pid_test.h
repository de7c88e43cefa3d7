/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of pids have in common. Each test runs as the init of a PID
 * namespace of its own, so nobody else takes numbers there. Without privileges
 * that is in a user namespace as well.
 */
#ifndef SELFTESTS_PID_PID_TEST_H
#define SELFTESTS_PID_PID_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define RESERVED_PIDS	300
/* How long a test may take that goes on for as long as it likes */
#define LOOP_MS		12000

#define say(...)	dprintf(STDERR_FILENO, __VA_ARGS__)

/* For processes that are not the one that runs the test */
#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			say("# line %d: %s: %m\n", __LINE__, #cond);	\
			_exit(EXIT_FAILURE);				\
		}							\
	} while (0)

#define CHECK_EQ(expected, seen)					\
	do {								\
		long __e = (expected), __s = (seen);			\
									\
		if (__e != __s) {					\
			say("# line %d: %s is %ld, not %ld\n",		\
			    __LINE__, #seen, __s, __e);			\
			_exit(EXIT_FAILURE);				\
		}							\
	} while (0)

/* What to exit with if something is not there */
static inline int skip(const char *what, int err)
{
	say("# skipped: %s: %s\n", what, strerror(err));
	return KSFT_SKIP;
}

/* Returns the number, 0 in the child, or -errno. */
static inline long clone_tids(uint64_t flags, unsigned int nr, const pid_t *tids)
{
	struct clone_args args = {
		.flags		= flags,
		.exit_signal	= SIGCHLD,
		.set_tid	= (uintptr_t)tids,
		.set_tid_size	= nr,
	};
	long ret = syscall(__NR_clone3, &args, sizeof(args));

	return ret < 0 ? -errno : ret;
}

/*
 * A child that is a zombie soon, with this number, and that one level further out,
 * unless they are 0; returns its number, or -errno.
 */
static inline long zombie2(pid_t inner, pid_t outer)
{
	pid_t tids[] = { inner, outer };
	long pid = clone_tids(0, !!inner + !!outer, inner ? tids : NULL);

	if (!pid)
		_exit(0);
	return pid;
}

#define zombie(tid)	zombie2(tid, 0)

static inline void reap(pid_t pid)
{
	int status;

	CHECK_EQ(pid, waitpid(pid, &status, __WALL));
	CHECK_EQ(0, status);
}

static inline int sys_pidfd_open(pid_t pid)
{
	return syscall(__NR_pidfd_open, pid, 0);
}

static inline bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static inline bool write_number(const char *path, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	return write_file(path, text);
}

static inline void *map_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static inline long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void pin(unsigned int nr)
{
	cpu_set_t set, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	nr %= CPU_COUNT(&set);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set) || nr--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

/*
 * Run a function as the init of a new namespace. With @proc, its /proc is there:
 * the namespace's pid_max and ns_last_pid, too.
 */
static inline int run_as_init(void (*fn)(void), bool proc)
{
	bool root = !geteuid();
	char map[32];
	int status;
	long pid;

	snprintf(map, sizeof(map), "0 %d 1", geteuid());
	pid = clone_tids(CLONE_NEWPID | CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER), 0, NULL);
	/* But for these, it is not about pids: there are no namespaces for us. */
	if (pid < 0 && pid != -EAGAIN && pid != -ENOMEM)
		return skip("clone3() of a namespace", -pid);
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if ((!root && (!write_file("/proc/self/setgroups", "deny") ||
			       !write_file("/proc/self/uid_map", map))) ||
		    (proc && (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			      mount("proc", "/proc", "proc", 0, NULL))))
			_exit(skip("uid_map, or /proc", errno));
		fn();
		_exit(0);
	}
	CHECK_EQ(pid, waitpid(pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

FIXTURE(pid) { };
FIXTURE_SETUP(pid) { }
FIXTURE_TEARDOWN(pid) { }

#define NS_TEST(name, proc)						\
	static void name##_body(void);					\
	TEST_F_TIMEOUT(pid, name, 120)					\
	{								\
		int ret = run_as_init(name##_body, proc);		\
									\
		if (ret == KSFT_SKIP)					\
			SKIP(return, "what it needs is not there, see above");	\
		EXPECT_EQ(0, ret);					\
	}								\
	static void name##_body(void)

#define NS_LAST_PID	"/proc/sys/kernel/ns_last_pid"
#define PID_MAX		"/proc/sys/kernel/pid_max"

/* Let numbers end at @max, or later where there are many CPUs; returns where. */
static inline int set_pid_max(int max)
{
	struct rlimit limit;

	while (!write_number(PID_MAX, max)) {
		CHECK(errno == EINVAL && max < 1 << 16);
		max += 8;
	}
	if (!getrlimit(RLIMIT_NPROC, &limit) && limit.rlim_cur < (rlim_t)max + 100)
		_exit(skip("RLIMIT_NPROC", EAGAIN));
	return max;
}

#endif
