// SPDX-License-Identifier: GPL-2.0
/*
 * How long pids stay in the list of those that were freed, if nobody creates a
 * process, and how many. User space does not see it: the kernel has to have
 * pid_knockout/freed in debugfs, which knockout.patch adds.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define FREED		"/sys/kernel/debug/pid_knockout/freed"
#define ROUNDS		4
#define MANY		200
/* The list is emptied at 32; other processes may add some while that is done. */
#define MOST		40
#define LONGEST_MS	2500	/* a second, and time to run */
#define STEP_MS		50

FIXTURE(list)
{
};

/* The file gives its value once. */
static int freed(void)
{
	int fd = open(FREED, O_RDONLY | O_CLOEXEC);
	char text[16] = "";
	int got;

	if (fd < 0)
		return -1;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	return got > 0 ? atoi(text) : -1;
}

FIXTURE_SETUP(list)
{
	if (access(FREED, R_OK))
		SKIP(return, "no " FREED " (%s): the kernel is not one of make knockout", strerror(errno));
	ASSERT_LE(0, freed());
}

FIXTURE_TEARDOWN(list)
{
}

/* Kernel threads that are created empty the list, too: so not always. */
TEST_F_TIMEOUT(list, idle, 60)
{
	unsigned int round, seen = 0, ms;
	int status;
	pid_t pid;

	for (round = 0; round < ROUNDS; round++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(0);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		seen += freed() > 0;
		for (ms = 0; freed() > 0 && ms < LONGEST_MS; ms += STEP_MS)
			usleep(STEP_MS * 1000);
		EXPECT_EQ(0, freed()) {
			TH_LOG("%d are there after %u ms", freed(), ms);
		}
	}
	EXPECT_TRUE(seen);
}

TEST_F_TIMEOUT(list, many, 60)
{
	pid_t pids[MANY];
	int status, most = 0, now;
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i])
			_exit(0);
	}
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		now = freed();
		if (now > most)
			most = now;
	}
	EXPECT_LT(0, most);
	EXPECT_GE(MOST, most);
}

TEST_HARNESS_MAIN
