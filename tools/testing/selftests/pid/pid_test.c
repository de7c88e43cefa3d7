// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers of processes: which ones are given out, and which errors come first.
 */
#define _GNU_SOURCE
#include "pid_test.h"

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
	/* All of them at once */
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

TEST_HARNESS_MAIN
