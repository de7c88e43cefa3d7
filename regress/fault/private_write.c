// SPDX-License-Identifier: GPL-2.0
/*
 * A write to a private page of a file fails under the VMA lock if the VMA has no
 * anon_vma and another task has the mmap_lock.  It has read nothing by then, and does
 * not do so with the VMA lock held.  For a kernel with knockout.patch, where the first
 * attempt finds the mmap_lock taken.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "kselftest_harness.h"
#include "../../tools/testing/selftests/mm/dm_hold.h"

#define KNOBS		"/sys/kernel/debug/fault_knockout/skip"
#define OFFSET		(1UL << 20)

enum { READY = 1, WRITE, CHANGE };
static struct {
	int step, tid, changed, done;
	long seen;
} *testee;
static char *at;
static const char *missing;
static unsigned long psz;

static void *write_one(void *arg)
{
	(void)arg;
	store(&testee->tid, syscall(SYS_gettid));
	while (load(&testee->step) < WRITE)
		usleep(1000);
	store(at + psz - 1, 1);
	testee->seen = *(long *)at;
	store(&testee->done, 1);
	return NULL;
}

static void run_testee(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(guard[1]);
	at = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[DATA], OFFSET);
	pthread_create(&thread, NULL, write_one, NULL);
	comes(load(&testee->tid));
	store(&testee->step, READY);
	while (load(&testee->step) != CHANGE)
		usleep(1000);
	store(&testee->changed, madvise(at, psz, MADV_DONTFORK) ? -1 : 1);
	for (;;)
		pause();
}

FIXTURE(private_write) {};
FIXTURE_SETUP(private_write) {}
FIXTURE_TEARDOWN(private_write) {}

/* A change of the VMA does not wait for the device, though a fault in it does */
TEST_F_TIMEOUT(private_write, change_does_not_wait, 120)
{
	pid_t pid;

	if (missing || access(KNOBS, F_OK))
		SKIP(return, "%s", missing ?: "no knockout.patch");
	pid = fork();
	if (!pid)
		run_testee();
	ASSERT_TRUE(comes(load(&testee->step) == READY));
	fsync(fds[DATA]);
	ASSERT_EQ(0, posix_fadvise(fds[DATA], 0, 0, POSIX_FADV_DONTNEED));
	suspend(DATA, true);
	store(&testee->step, WRITE);
	EXPECT_TRUE(waits_in('D', testee->tid));
	store(&testee->step, CHANGE);
	EXPECT_TRUE(comes(load(&testee->changed) == 1));
	EXPECT_EQ(0, load(&testee->done));
	suspend(DATA, false);
	EXPECT_TRUE(comes(load(&testee->done)));
	EXPECT_EQ(~OFFSET, (unsigned long)testee->seen);
	kill(pid, SIGKILL);
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
}

int main(int argc, char **argv)
{
	int ret;

	psz = sysconf(_SC_PAGESIZE);
	testee = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE,
		      -1, 0);
	missing = make_devices(psz);
	ret = test_harness_run(argc, argv);
	remove_devices();
	return ret;
}
