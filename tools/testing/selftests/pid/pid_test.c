// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers of processes: which ones are given out, which errors come first, and
 * that a number is not found, but can be used again, as soon as wait() returns.
 *
 * Each test runs as the init of a PID namespace of its own, so nobody else takes
 * numbers there. Without privileges that is in a user namespace as well.
 */
#define _GNU_SOURCE
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
static int skip(const char *what, int err)
{
	say("# skipped: %s: %s\n", what, strerror(err));
	return KSFT_SKIP;
}

/* Returns the number, 0 in the child, or -errno. */
static long clone_tids(uint64_t flags, unsigned int nr, const pid_t *tids)
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
static long zombie2(pid_t inner, pid_t outer)
{
	pid_t tids[] = { inner, outer };
	long pid = clone_tids(0, !!inner + !!outer, inner ? tids : NULL);

	if (!pid)
		_exit(0);
	return pid;
}

#define zombie(tid)	zombie2(tid, 0)

static void reap(pid_t pid)
{
	int status;

	CHECK_EQ(pid, waitpid(pid, &status, __WALL));
	CHECK_EQ(0, status);
}

static int sys_pidfd_open(pid_t pid)
{
	return syscall(__NR_pidfd_open, pid, 0);
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool write_number(const char *path, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	return write_file(path, text);
}

static void *map_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pin(unsigned int nr)
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
static int run_as_init(void (*fn)(void), bool proc)
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
static int set_pid_max(int max)
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

/* Numbers follow each other, whether or not those before are in use. */
NS_TEST(sequence, false)
{
	int i;

	for (i = 2; i < 100; i++) {
		CHECK_EQ(i, zombie(0));
		if (i % 3)
			reap(i);
	}
	/* To ask for one does not change what is next. */
	CHECK_EQ(5, zombie(5));
	CHECK_EQ(700, zombie(700));
	CHECK_EQ(100, zombie(0));
	CHECK_EQ(-EEXIST, zombie(700));
}

/* The last one is followed by RESERVED_PIDS, and numbers in use are skipped. */
NS_TEST(wrap, true)
{
	const int max = set_pid_max(RESERVED_PIDS + 10);
	int i;

	for (i = 2; i < max; i++) {
		CHECK_EQ(i, zombie(0));
		if (i != RESERVED_PIDS + 1 && i != max - 1)
			reap(i);
	}
	CHECK_EQ(RESERVED_PIDS, zombie(0));
	CHECK_EQ(RESERVED_PIDS + 2, zombie(0));
	reap(RESERVED_PIDS + 1);
	for (i = RESERVED_PIDS + 3; i < max - 1; i++)
		CHECK_EQ(i, zombie(0));
	CHECK_EQ(RESERVED_PIDS + 1, zombie(0));
	/* Now all of them are in use, but not those below. */
	CHECK_EQ(-EAGAIN, zombie(0));
	CHECK_EQ(77, zombie(77));
	CHECK_EQ(-EAGAIN, zombie(0));
}

/* If there is no number left, one that was reaped is good at once. */
NS_TEST(exhausted, true)
{
	const int max = set_pid_max(RESERVED_PIDS + 40);
	int i, nr;

	for (i = 2; i < max; i++)
		CHECK_EQ(i, zombie(0));
	for (i = 0; i < 300; i++) {
		CHECK_EQ(-EAGAIN, zombie(0));
		nr = RESERVED_PIDS + i * 7 % 40;
		reap(nr);
		CHECK_EQ(nr, zombie(0));
	}
	/* All of them at once, more than what the kernel keeps for later */
	CHECK_EQ(-EAGAIN, zombie(0));
	for (i = RESERVED_PIDS; i < max; i++)
		reap(i);
	for (i = RESERVED_PIDS; i < max; i++)
		CHECK(zombie(0) >= RESERVED_PIDS);
	CHECK_EQ(-EAGAIN, zombie(0));
}

/* What checkpoint/restore did before set_tid: the next one is the one after. */
NS_TEST(ns_last_pid, true)
{
	char text[16] = "";
	int i, fd, nr;

	if (access(NS_LAST_PID, W_OK))
		_exit(skip(NS_LAST_PID, errno));
	for (i = 0; i < 300; i++) {
		nr = 400 + i % 3;
		CHECK(write_number(NS_LAST_PID, nr - 1));
		CHECK_EQ(nr, zombie(0));
		fd = open(NS_LAST_PID, O_RDONLY);
		CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
		close(fd);
		CHECK_EQ(nr, atoi(text));
		/* In use: it is not skipped once it is reaped. */
		if (i % 2) {
			CHECK(write_number(NS_LAST_PID, nr - 1));
			CHECK_EQ(nr + 1, zombie(0));
			reap(nr + 1);
		}
		reap(nr);
	}
}

/*
 * After wait() a number is not found any more. F_SETOWN and TIOCSPGRP tell that
 * from one whose task is gone.
 */
static int pty = -1;

static void expect_gone(pid_t pid)
{
	char path[32];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t pgrp = pid;

	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_SETOWN, pid) == -1 && errno == ESRCH);
	CHECK(fcntl(fd, F_SETOWN, -pid) == -1 && errno == ESRCH);
	close(fd);
	CHECK(kill(pid, 0) == -1 && errno == ESRCH);
	CHECK(kill(-pid, 0) == -1 && errno == ESRCH);
	CHECK(sys_pidfd_open(pid) == -1 && errno == ESRCH);
	CHECK(getpgid(pid) == -1 && errno == ESRCH);
	CHECK(sched_getscheduler(pid) == -1 && errno == ESRCH);
	if (pty >= 0)
		CHECK(ioctl(pty, TIOCSPGRP, &pgrp) == -1 && errno == ESRCH);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	CHECK(access(path, F_OK) == -1 && errno == ENOENT);
}

static void expect_found(pid_t pid)
{
	char path[32];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(0, fcntl(fd, F_SETOWN, pid));
	close(fd);
	CHECK_EQ(0, kill(pid, 0));
	fd = sys_pidfd_open(pid);
	CHECK(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	CHECK_EQ(0, access(path, F_OK));
}

NS_TEST(reaped_is_gone, true)
{
	pid_t pids[100];
	int i, j;

	/* Without one, only TIOCSPGRP is not tried. */
	setsid();
	pty = open("/dev/ptmx", O_RDWR | O_CLOEXEC);
	if (pty >= 0 && ioctl(pty, TIOCSCTTY, 0)) {
		close(pty);
		pty = -1;
	}

	for (i = 0; i < 200; i++) {
		pids[0] = zombie(0);
		expect_found(pids[0]);
		reap(pids[0]);
		expect_gone(pids[0]);
	}
	/* One after the other, with no clone() in between */
	for (i = 0; i < 100; i++)
		pids[i] = zombie(0);
	for (i = 0; i < 100; i++) {
		reap(pids[i]);
		expect_gone(pids[i]);
		for (j = i + 1; j < 100; j += 13)
			expect_found(pids[j]);
	}
	for (i = 0; i < 100; i++)
		expect_gone(pids[i]);
}

/* A process group and a session keep their number after the leader is reaped. */
NS_TEST(leader_is_reaped, true)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int go[2];
	pid_t leader;
	char c;

	CHECK_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	CHECK_EQ(0, pipe(go));
	leader = fork();
	CHECK(leader >= 0);
	if (!leader) {
		setsid();
		if (!fork()) {
			close(go[1]);
			CHECK_EQ(0, read(go[0], &c, 1));
		}
		_exit(0);
	}
	reap(leader);
	CHECK(kill(leader, 0) == -1 && errno == ESRCH);
	CHECK(sys_pidfd_open(leader) == -1);
	CHECK_EQ(0, kill(-leader, 0));
	CHECK_EQ(0, fcntl(fd, F_SETOWN, -leader));
	CHECK_EQ(-EEXIST, zombie(leader));
	close(go[1]);
	CHECK_EQ(leader + 1, waitpid(-1, NULL, 0));
	expect_gone(leader);
	CHECK_EQ(leader, zombie(leader));
}

/* The first error decides; the level that the error is at comes second. */
NS_TEST(order_of_errors, false)
{
	pid_t tids[33] = { 7, 500 };
	long pid;

	CHECK_EQ(-EINVAL, zombie(-1));
	CHECK_EQ(-EINVAL, zombie(1 << 30));
	CHECK_EQ(-EEXIST, zombie(1));
	CHECK_EQ(500, zombie(500));
	CHECK_EQ(-EEXIST, zombie(500));
	/* Not that many levels are known, or allowed */
	CHECK_EQ(-EINVAL, clone_tids(0, 33, tids));

	/* In a namespace without an init the first one is number 1. */
	CHECK_EQ(0, unshare(CLONE_NEWPID));
	CHECK_EQ(-EINVAL, zombie(2));
	CHECK_EQ(-EINVAL, zombie2(7, 501));
	CHECK_EQ(-EEXIST, zombie2(1, 500));
	reap(500);
	/* None of them left anything behind. */
	pid = clone_tids(0, 2, (pid_t []){ 1, 500 });
	if (!pid) {
		CHECK_EQ(1, getpid());
		CHECK_EQ(7, zombie(7));
		/* All ranges are checked before any number is looked for. */
		CHECK_EQ(-EINVAL, zombie2(7, -5));
		CHECK_EQ(-EEXIST, zombie2(7, 501));
		CHECK_EQ(-EEXIST, zombie2(8, 500));
		CHECK_EQ(8, zombie2(8, 501));
		reap(8);
		CHECK_EQ(8, zombie2(8, 501));
		_exit(0);
	}
	CHECK_EQ(500, pid);
	reap(500);
	/* Its init is gone. */
	CHECK_EQ(-ENOMEM, zombie(0));
	/* But what is wrong with the numbers is told first. */
	CHECK_EQ(-EINVAL, zombie(-1));
}

/*
 * Two processes on different CPUs take turns with one number: as soon as one has
 * reaped its child, or knows that it is gone, the other can have the number, no
 * matter what a third one that creates processes all the time is about to do.
 */
struct turns {
	int turn;
	int end;
	unsigned int taken[2];
	long until;
	bool nested;
};

#define TURNS		2000
/* Where that takes longer than a test may, as in an emulator, so many suffice. */
#define TURNS_LEAST	100
#define LOOP_MS		12000

static void take_turns(struct turns *t, int me)
{
	long pid;

	pin(me);
	if (t->nested)
		CHECK_EQ(0, unshare(CLONE_NEWPID));
	if (t->nested && !clone_tids(0, 0, NULL)) {
		/* Lives for as long as its parent does */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	while (t->taken[me] < TURNS && now_ms() < t->until) {
		if (__atomic_load_n(&t->turn, __ATOMIC_ACQUIRE) != me) {
			sched_yield();
			continue;
		}
		pid = t->nested ? zombie2(100 + me, 555) : zombie(555);
		CHECK_EQ(555, pid);
		reap(pid);
		t->taken[me]++;
		__atomic_store_n(&t->turn, !me, __ATOMIC_RELEASE);
	}
	_exit(0);
}

static void take_another(struct turns *t)
{
	while (!__atomic_load_n(&t->end, __ATOMIC_RELAXED)) {
		CHECK_EQ(777, zombie(777));
		reap(777);
	}
	_exit(0);
}

static void turns(bool nested)
{
	struct turns *t = map_shared(sizeof(*t));
	pid_t pids[3];
	int i;

	t->nested = nested;
	t->until = now_ms() + LOOP_MS;
	for (i = 0; i < 3; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (!pids[i] && i == 2)
			take_another(t);
		if (!pids[i])
			take_turns(t, i);
	}
	for (i = 0; i < 2; i++)
		reap(pids[i]);
	t->end = 1;
	reap(pids[2]);
	say("# number 555 taken %u and %u times\n", t->taken[0], t->taken[1]);
	/* Or the machine is too slow, or too busy, to say anything. */
	if (t->taken[0] < TURNS_LEAST || t->taken[1] < TURNS_LEAST)
		_exit(skip("turns", ETIME));
}

NS_TEST(reused_at_once, false)
{
	turns(false);
}

NS_TEST(reused_at_once_nested, false)
{
	turns(true);
}

/*
 * Children that reap themselves while the init of their namespace dies. Init is
 * gone only after all of them, however they died, and that does not take
 * anybody else's clone() or exit().
 */
#define ROUNDS		152
#define ROUNDS_LEAST	16
#define CHILDREN	24
#define SLOW_MS		500

struct death {
	int ready;
	int go;
	unsigned int left;
};

static void die_sometime(struct death *d, int nr, int round)
{
	unsigned int i;

	__atomic_add_fetch(&d->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&d->go, __ATOMIC_ACQUIRE))
		sched_yield();
	for (i = 0; i < (unsigned int)(nr * (round % 16)) * 8; i++)
		__asm__ volatile("" : : : "memory");
	__atomic_add_fetch(&d->left, 1, __ATOMIC_RELAXED);
	_exit(0);
}

static void death_of_init(struct death *d, int round, bool deeper)
{
	int i, inner;

	signal(SIGCHLD, SIG_IGN);
	/* Half of them two levels down */
	if (deeper) {
		inner = clone_tids(CLONE_NEWPID, 0, NULL);
		CHECK(inner >= 0);
		if (!inner)
			signal(SIGCHLD, SIG_IGN);
	}
	for (i = 0; i < CHILDREN / (deeper ? 2 : 1); i++)
		if (!fork())
			die_sometime(d, i, round);
	for (;;)
		pause();
}

NS_TEST(death_of_a_namespace, false)
{
	struct death *d = map_shared(sizeof(*d));
	unsigned int round, some = 0, all = 0, slow[2] = {};
	int status;
	long init, from, until = now_ms() + LOOP_MS;
	cpu_set_t set;
	bool before;

	for (round = 0; round < ROUNDS && (round < ROUNDS_LEAST || now_ms() < until); round++) {
		memset(d, 0, sizeof(*d));
		init = clone_tids(CLONE_NEWPID, 0, NULL);
		CHECK(init >= 0);
		if (!init)
			death_of_init(d, round, round % 2);
		while (__atomic_load_n(&d->ready, __ATOMIC_ACQUIRE) < CHILDREN)
			sched_yield();
		/* Once in a while all of them are gone before init is. */
		before = round % 4 >= 2;
		from = now_ms();
		__atomic_store_n(&d->go, 1, __ATOMIC_RELEASE);
		while (before && __atomic_load_n(&d->left, __ATOMIC_RELAXED) < CHILDREN)
			sched_yield();
		if (before) {
			usleep(20000);
			from = now_ms();
		}
		CHECK_EQ(0, kill(init, SIGKILL));
		CHECK_EQ(init, waitpid(init, &status, 0));
		CHECK_EQ(SIGKILL, status);
		slow[before] += now_ms() - from >= SLOW_MS;
		some += !before && d->left > 0 && d->left < CHILDREN;
		all += !before && d->left == CHILDREN;
	}
	say("# of %u rounds, some were killed in %u, and none in %u; slow %u, %u of the others\n",
	    round / 2, some, all, slow[0], slow[1]);
	/* Half of each kind: what does wait for something else does so in all rounds. */
	CHECK(slow[0] < round / 4 && slow[1] < round / 4);
	/* Or it did not test what it is for. */
	CHECK(some || (!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1));
}

/*
 * The init of a namespace fails late, at CLONE_PIDFD's page that cannot be
 * written: whoever is next is number 1.
 */
NS_TEST(second_try_of_init, false)
{
	struct clone_args args = {
		.flags		= CLONE_PIDFD,
		.exit_signal	= SIGCHLD,
		.pidfd		= 1,
	};
	pid_t pid;
	int i;

	for (i = 0; i < 50; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			CHECK_EQ(0, unshare(CLONE_NEWPID));
			CHECK(syscall(__NR_clone3, &args, sizeof(args)) == -1 && errno == EFAULT);
			if (i % 2)
				CHECK_EQ(-EINVAL, zombie(2));
			CHECK(syscall(__NR_clone3, &args, sizeof(args)) == -1 && errno == EFAULT);
			pid = fork();
			if (!pid)
				_exit(getpid() == 1 ? 0 : 1);
			reap(pid);
			_exit(0);
		}
		reap(pid);
	}
}

/*
 * The pid of such a clone() is all that is left of a new namespace. The user may
 * have only one, and soon can have another one, though nobody calls alloc_pid().
 */
NS_TEST(namespace_without_init_is_freed, true)
{
	struct clone_args args = {
		.flags		= CLONE_PIDFD | CLONE_NEWPID,
		.exit_signal	= SIGCHLD,
		.pidfd		= 1,
	};
	long from, until = now_ms() + LOOP_MS;
	unsigned int i, slow = 0;
	FILE *lazy;

	if (unshare(CLONE_NEWUSER) || !write_file("/proc/self/setgroups", "deny") ||
	    !write_file("/proc/self/uid_map", "0 0 1") ||
	    !write_number("/proc/sys/user/max_pid_namespaces", 1))
		_exit(skip("user namespace", errno));
	for (i = 0; i < 20 && now_ms() < until; i++) {
		from = now_ms();
		while (syscall(__NR_clone3, &args, sizeof(args)) == -1 && errno == ENOSPC)
			usleep(1000);
		CHECK_EQ(EFAULT, errno);
		slow += now_ms() - from >= SLOW_MS;
	}
	/* RCU may put off its callbacks for much longer than the kernel keeps a pid. */
	lazy = fopen("/sys/module/rcutree/parameters/enable_rcu_lazy", "re");
	if (slow * 2 >= i && lazy && fgetc(lazy) == 'Y')
		_exit(skip("RCU is lazy", ETIME));
	CHECK(slow * 2 < i);
}

/* Lookups beside processes and threads that come and go */
#define CHURN	400

static void *nothing(void *arg)
{
	return arg;
}

static void churn(void)
{
	pthread_t thread;
	pid_t pid;
	int i;

	for (i = 0; i < CHURN; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			if (i % 2 && !pthread_create(&thread, NULL, nothing, NULL))
				pthread_join(thread, NULL);
			_exit(0);
		}
		reap(pid);
		CHECK(kill(pid, 0) == -1);
	}
	_exit(0);
}

/* Which number was the last one to be given out */
static pid_t last_pid(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	int last;

	CHECK(file && fscanf(file, "%*s %*s %*s %*s %d", &last) == 1);
	fclose(file);
	return last;
}

static bool look_up(pid_t pid)
{
	char path[64], buf[2048] = "", *p;
	int pidfd, fd;

	pidfd = sys_pidfd_open(pid);
	if (pidfd < 0) {
		CHECK(errno == ESRCH || errno == ENOENT || errno == EINVAL);
		return false;
	}
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, buf, sizeof(buf) - 1) > 0);
	p = strstr(buf, "\nPid:");
	CHECK(p && (atoi(p + 5) == pid || atoi(p + 5) == -1));
	close(fd);
	close(pidfd);
	return true;
}

NS_TEST(lookups_beside_churn, true)
{
	unsigned int found = 0, gone = 0;
	int i, status, left = 2;
	pid_t pids[2], last;

	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (!pids[i]) {
			pin(i);
			churn();
		}
	}
	while (left) {
		last = last_pid();
		for (i = -3; i < 3; i++) {
			if (last + i <= pids[1])
				continue;
			if (look_up(last + i))
				found++;
			else
				gone++;
		}
		while (left && waitpid(-1, &status, WNOHANG) > 0) {
			CHECK_EQ(0, status);
			left--;
		}
	}
	say("# %u found, %u not\n", found, gone);
	CHECK(found && gone);
}

TEST_HARNESS_MAIN
