// SPDX-License-Identifier: GPL-2.0
/*
 * A number is not found, but can be used again, as soon as wait() returns.
 */
#define _GNU_SOURCE
#include "pid_test.h"

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
