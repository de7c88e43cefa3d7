// SPDX-License-Identifier: GPL-2.0
/*
 * The first and the last process of a PID namespace.
 */
#define _GNU_SOURCE
#include "pid_test.h"

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
 * written: the next one is number 1.
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
	/* RCU may put off its callbacks for longer than that. */
	lazy = fopen("/sys/module/rcutree/parameters/enable_rcu_lazy", "re");
	if (slow * 2 >= i && lazy && fgetc(lazy) == 'Y')
		_exit(skip("RCU is lazy", ETIME));
	CHECK(slow * 2 < i);
}

TEST_HARNESS_MAIN
