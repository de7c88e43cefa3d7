// SPDX-License-Identifier: GPL-2.0
/*
 * How a process is found again by its pidfs inode number.
 *
 * name_to_handle_at() turns a pidfd into a file handle, which is nothing but
 * the 64-bit inode number of the struct pid, and open_by_handle_at() looks that
 * number up.  A process may be found until it is reaped, no matter how it came
 * into pidfs, whether there is still a pidfd of it, and what else is created,
 * exits or is reaped at the same time.  It must not be found later, even if its
 * pid lives on as that of a process group or session, and under no
 * circumstances may a number lead to another process.  Before 7.0, it may be
 * found for as long as its pid lives on.
 *
 * A process which never had a pidfd has no handle either.  Whether its number
 * can be guessed is up to the kernel, so nothing here relies on that.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "pidfd/pidfd.h"
#include "kselftest_harness.h"
#include "release.h"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD		76
#endif

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD		77
#endif

#ifndef SCM_PIDFD
#define SCM_PIDFD		0x04
#endif

/* The type of the handles of pidfs, and what user space may add to a type. */
#define PIDFS_HANDLE_TYPE	0xfe
#define TYPE_IS_CONNECTABLE	0x10000
#define TYPE_IS_DIR		0x20000
#define TYPE_INVALID_FLAG	0x40000

/* For tests which do more work; emulation with KASAN is very slow. */
#define LONG_TIMEOUT		180

/* How long to wait for something which ought to happen soon. */
#define WAIT_MS			20000
#define MAX_TRIES		5000

#define TEMP_DIR		"/tmp/pidfs_lookup.XXXXXX"

#define NR_MANY			300
#define NR_GENERATIONS		2
#define NR_RECYCLED		40
#define NR_THREADS		16
#define NR_FAILED_FORKS		4000
#define NR_KNOWN		8
#define NR_RACED		1000
#define NR_LOOKERS		3
#define MAX_SPINS		2000
#define NR_OPENERS		4
#define NR_ROUNDS		150

/* struct file_handle of a size that suits pidfs and is never too small */
struct pid_handle {
	__u32 bytes;
	__s32 type;
	__u64 ino;
	unsigned char rest[MAX_HANDLE_SZ - sizeof(__u64)];
};

/* All that a pidfd tells about its process */
struct ident {
	__u64 ino;
	__u64 mask;
	__u64 coredump_mask;
	pid_t pid;
	pid_t tgid;
	int exit_code;
	long fdinfo_pid;
	long inner_pid;
};

/* What went wrong in any thread or process of a test; shared by all of them. */
struct complaints {
	atomic_int nr;
	char first[256];
};

static struct complaints *wrong;
/* No child outlives the test, which has the only open write end of this. */
static int life[2];

static __printf(1, 2) bool complain(const char *fmt, ...)
{
	va_list ap;

	if (!atomic_fetch_add(&wrong->nr, 1)) {
		va_start(ap, fmt);
		vsnprintf(wrong->first, sizeof(wrong->first), fmt, ap);
		va_end(ap);
	}
	return false;
}

static bool nothing_wrong(void)
{
	int nr = atomic_load(&wrong->nr);

	if (nr)
		ksft_print_msg("%d complaints, the first one: %s\n", nr,
			       wrong->first);
	return !nr;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000L + ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
	struct timespec ts = { .tv_nsec = ms * 1000000 };

	nanosleep(&ts, NULL);
}

/* Poll for a condition; evaluates to whether it came true in time. */
#define WAIT_FOR(cond) ({					\
	long __end = now_ms() + WAIT_MS;			\
	bool __ok;						\
								\
	while (!(__ok = (cond)) && now_ms() < __end)		\
		pause_ms(1);					\
	__ok;							\
})

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void shuffle(int *order, int nr, unsigned int *state)
{
	int i, j, tmp;

	for (i = nr - 1; i > 0; i--) {
		j = next_random(state) % (i + 1);
		tmp = order[i];
		order[i] = order[j];
		order[j] = tmp;
	}
}

static int cmp_ino(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/*
 * Handles.  All of these return a negative errno if they fail.
 */

static int get_handle(int fd, struct pid_handle *h)
{
	int mnt_id;

	memset(h, 0, sizeof(*h));
	h->bytes = sizeof(h->ino) + sizeof(h->rest);
	if (syscall(__NR_name_to_handle_at, fd, "", h, &mnt_id, AT_EMPTY_PATH))
		return -errno;
	return 0;
}

static int open_handle_flags(const struct pid_handle *h, int flags)
{
	int fd = syscall(__NR_open_by_handle_at, FD_PIDFS_ROOT, h, flags);

	return fd < 0 ? -errno : fd;
}

static struct pid_handle make_handle(__u64 ino)
{
	struct pid_handle h = {
		.bytes	= sizeof(ino),
		.type	= PIDFS_HANDLE_TYPE,
		.ino	= ino,
	};

	return h;
}

static int open_ino(__u64 ino)
{
	struct pid_handle h = make_handle(ino);

	return open_handle_flags(&h, O_CLOEXEC);
}

static int open_pid(pid_t pid, unsigned int flags)
{
	int fd = sys_pidfd_open(pid, flags);

	return fd < 0 ? -errno : fd;
}

/* For what has to fail, but would be a leak if it did not */
static int error_of(int fd)
{
	if (fd < 0)
		return -fd;
	close(fd);
	return 0;
}

/*
 * Identity
 */

static bool read_fdinfo(int fd, struct ident *id)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return complain("cannot open %s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Pid: %ld", &id->fdinfo_pid) == 1)
			found = true;
		else if (sscanf(line, "NSpid: %*d %ld", &id->inner_pid) == 1)
			break;
	}
	fclose(f);
	return found || complain("no pid in %s", path);
}

/* The number in all its disguises: of the inode, in its handle, of its info */
static bool identify(int fd, struct ident *id)
{
	struct pidfd_info info = {
		.mask = PIDFD_INFO_EXIT | PIDFD_INFO_COREDUMP,
	};
	struct pid_handle h;
	struct stat st;
	__u32 gen = 0;
	int ret, tries = 0;

	memset(id, 0, sizeof(*id));
	ret = get_handle(fd, &h);
	if (ret)
		return complain("no handle of a pidfd: %s", strerror(-ret));
	if (h.bytes != sizeof(h.ino) || h.type != PIDFS_HANDLE_TYPE)
		return complain("handle of %u bytes of type %d", h.bytes, h.type);
	id->ino = h.ino;

	if (fstat(fd, &st))
		return complain("cannot stat a pidfd: %s", strerror(errno));
	if (ioctl(fd, FS_IOC_GETVERSION, &gen))
		return complain("no generation: %s", strerror(errno));
	/* 32-bit kernels have the upper half in the generation. */
	if ((st.st_ino != h.ino || gen) &&
	    (st.st_ino != (__u32)h.ino || gen != h.ino >> 32))
		return complain("inode %llu generation %u, but handle %llu",
				(unsigned long long)st.st_ino, gen,
				(unsigned long long)h.ino);

	/* There is a moment when the task is still there, but has no pid. */
	while (ioctl(fd, PIDFD_GET_INFO, &info)) {
		if (errno != ESRCH || ++tries > MAX_TRIES)
			return complain("no info: %s", strerror(errno));
		pause_ms(1);
	}
	id->mask = info.mask;
	if (info.mask & PIDFD_INFO_PID) {
		id->pid = info.pid;
		id->tgid = info.tgid;
	}
	if (info.mask & PIDFD_INFO_EXIT)
		id->exit_code = info.exit_code;
	if (info.mask & PIDFD_INFO_COREDUMP)
		id->coredump_mask = info.coredump_mask;
	return read_fdinfo(fd, id);
}

/* Is this a pidfd of that process, which has not been reaped? */
static bool is_process(int fd, __u64 ino, pid_t pid, pid_t tgid)
{
	struct ident id;

	if (fd < 0)
		return complain("no pidfd of %d: %s", pid, strerror(-fd));
	if (!identify(fd, &id))
		return false;
	if (ino && id.ino != ino)
		return complain("%d has number %llu, not %llu", pid,
				(unsigned long long)id.ino,
				(unsigned long long)ino);
	if (!(id.mask & PIDFD_INFO_PID) || id.mask & PIDFD_INFO_EXIT)
		return complain("%d has info %llx", pid,
				(unsigned long long)id.mask);
	if (id.pid != pid || id.tgid != tgid || id.fdinfo_pid != pid)
		return complain("%d/%d is %d/%d, %ld in fdinfo", pid, tgid,
				id.pid, id.tgid, id.fdinfo_pid);
	return true;
}

/* Is this a pidfd of that process, which has been reaped with this status? */
static bool is_reaped(int fd, __u64 ino, int status)
{
	struct pidfd_info info = { .mask = PIDFD_INFO_PID };
	struct ident id;

	if (fd < 0)
		return complain("no pidfd of %llu: %s",
				(unsigned long long)ino, strerror(-fd));
	if (!identify(fd, &id))
		return false;
	if (ino && id.ino != ino)
		return complain("%llu became %llu", (unsigned long long)ino,
				(unsigned long long)id.ino);
	if (!(id.mask & PIDFD_INFO_EXIT) || id.mask & PIDFD_INFO_PID)
		return complain("reaped %llu has info %llx",
				(unsigned long long)id.ino,
				(unsigned long long)id.mask);
	if (id.exit_code != status)
		return complain("%llu exited with %x, not %x",
				(unsigned long long)id.ino, id.exit_code, status);
	if (id.fdinfo_pid != -1)
		return complain("reaped %llu is still %ld",
				(unsigned long long)id.ino, id.fdinfo_pid);
	/* Nothing but the exit information is left. */
	if (!ioctl(fd, PIDFD_GET_INFO, &info) || errno != ESRCH)
		return complain("info of a reaped process: %s", strerror(errno));
	if (!sys_pidfd_send_signal(fd, 0, NULL, 0) || errno != ESRCH)
		return complain("signal to a reaped process: %s", strerror(errno));
	return true;
}

static bool finds(__u64 ino, pid_t pid, pid_t tgid)
{
	int fd = open_ino(ino);
	bool ok = is_process(fd, ino, pid, tgid);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool is_stale(__u64 ino)
{
	return error_of(open_ino(ino)) == ESTALE;
}

static bool finds_nothing(__u64 ino)
{
	int err = error_of(open_ino(ino));

	return err == ESTALE || complain("stale %llu: %s",
					 (unsigned long long)ino, strerror(err));
}

/* The number behind a pidfd, which is closed: only the handle is left. */
static __u64 number_of(int fd, pid_t pid, pid_t tgid)
{
	struct pid_handle h = {};

	if (is_process(fd, 0, pid, tgid))
		get_handle(fd, &h);
	if (fd >= 0)
		close(fd);
	return h.ino;
}

static __u64 register_pid(pid_t pid)
{
	return number_of(open_pid(pid, 0), pid, pid);
}

/*
 * Children
 */

static void live(void)
{
	char c;

	while (read(life[0], &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* Not glibc's fork(), in order that there is nothing to be done in a child. */
static pid_t clone_child(struct __clone_args *args)
{
	pid_t pid = syscall(__NR_clone3, args, sizeof(*args));

	if (!pid)
		close(life[1]);
	return pid < 0 ? -errno : pid;
}

static pid_t spawn(int *pidfd)
{
	struct __clone_args args = {
		.flags		= pidfd ? CLONE_PIDFD : 0,
		.exit_signal	= SIGCHLD,
		.pidfd		= ptr_to_u64(pidfd),
	};
	pid_t pid = clone_child(&args);

	if (!pid)
		live();
	if (pid < 0)
		complain("cannot create a child: %s", strerror(-pid));
	return pid;
}

/* Run something in a new child, which goes on living; wait for the former. */
static pid_t spawn_body(void (*body)(void *), void *arg)
{
	struct __clone_args args = { .exit_signal = SIGCHLD };
	int ready[2];
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	pid = clone_child(&args);
	if (!pid) {
		close(ready[0]);
		body(arg);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		close(ready[1]);
		live();
	}
	close(ready[1]);
	if (pid < 0)
		complain("cannot create a child: %s", strerror(-pid));
	else if (read_nointr(ready[0], &c, 1) != 1)
		complain("child %d died", pid);
	close(ready[0]);
	return pid;
}

static int reap(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, __WALL) != pid) {
		if (errno != EINTR) {
			complain("cannot wait for %d: %s", pid, strerror(errno));
			break;
		}
	}
	return status;
}

/* The signal by which a process died tells one exit status from another. */
static int kill_and_reap(pid_t pid, int sig)
{
	int status;

	if (pid <= 0)
		return -1;
	if (kill(pid, sig))
		complain("cannot kill %d: %s", pid, strerror(errno));
	status = reap(pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != sig)
		complain("%d died with status %x", pid, status);
	return status;
}

static bool make_zombie(pid_t pid, int sig)
{
	siginfo_t info;

	return (!kill(pid, sig) &&
		!sys_waitid(P_PID, pid, &info, WEXITED | WNOWAIT)) ||
		complain("cannot kill %d: %s", pid, strerror(errno));
}

/*
 * Fixture
 */

/* After a failure or SKIP() in here, there is no teardown. */
static bool common_setup(struct __test_metadata *_metadata)
{
	struct pid_handle h;
	int fd, ret;

	wrong = mmap(NULL, sizeof(*wrong), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, wrong);
	ASSERT_EQ(0, pipe2(life, O_CLOEXEC));

	fd = open_pid(getpid(), 0);
	if (fd < 0)
		SKIP(return false, "no pidfd_open(): %s", strerror(-fd));
	ret = get_handle(fd, &h);
	close(fd);
	if (ret)
		SKIP(return false, "no handles of pidfds: %s", strerror(-ret));
	ret = error_of(open_ino(h.ino));
	if (ret)
		SKIP(return false, "cannot open handles of pidfds: %s", strerror(ret));
	return true;
}

static void common_teardown(void)
{
	close(life[1]);
	signal(SIGCHLD, SIG_DFL);
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
	close(life[0]);
	munmap(wrong, sizeof(*wrong));
}

FIXTURE(pidfs)
{
};

FIXTURE_SETUP(pidfs)
{
	common_setup(_metadata);
}

FIXTURE_TEARDOWN(pidfs)
{
	common_teardown();
}

/*
 * Lookups of many processes in any order, none of which has a pidfd any more.
 */
TEST_F_TIMEOUT(pidfs, many_processes, LONG_TIMEOUT)
{
	static __u64 all[NR_MANY * NR_GENERATIONS];
	unsigned int seed = 1;
	pid_t pid[NR_MANY];
	int order[NR_MANY];
	int gen, i, k;

	for (gen = 0; gen < NR_GENERATIONS; gen++) {
		__u64 *ino = all + gen * NR_MANY;

		for (i = 0; i < NR_MANY; i++) {
			order[i] = i;
			pid[i] = spawn(NULL);
			ASSERT_TRUE(nothing_wrong());
		}
		/* The order of the numbers need not be that of the lookups. */
		shuffle(order, NR_MANY, &seed);
		for (k = 0; k < NR_MANY; k++)
			ino[order[k]] = register_pid(pid[order[k]]);
		ASSERT_TRUE(nothing_wrong());

		shuffle(order, NR_MANY, &seed);
		for (k = 0; k < NR_MANY; k++)
			finds(ino[order[k]], pid[order[k]], pid[order[k]]);
		ASSERT_TRUE(nothing_wrong());

		/* Removing some must not lose others. */
		shuffle(order, NR_MANY, &seed);
		for (k = 0; k < NR_MANY / 2; k++) {
			kill_and_reap(pid[order[k]], SIGKILL);
			finds_nothing(ino[order[k]]);
			i = order[NR_MANY - 1 - k];
			finds(ino[i], pid[i], pid[i]);
		}
		ASSERT_TRUE(nothing_wrong());
		for (; k < NR_MANY; k++) {
			i = order[k];
			finds(ino[i], pid[i], pid[i]);
			kill_and_reap(pid[i], SIGKILL);
		}
		ASSERT_TRUE(nothing_wrong());
	}

	for (i = 0; i < NR_MANY * NR_GENERATIONS; i++)
		finds_nothing(all[i]);
	qsort(all, NR_MANY * NR_GENERATIONS, sizeof(*all), cmp_ino);
	for (i = 1; i < NR_MANY * NR_GENERATIONS; i++)
		ASSERT_LT(all[i - 1], all[i]);
	EXPECT_TRUE(nothing_wrong());
}

/* The same pid again and again, but never the same inode number */
TEST_F_TIMEOUT(pidfs, recycled_numbers, LONG_TIMEOUT)
{
	const pid_t inner = 500;
	pid_t set_tid[2] = { inner };
	__u64 ino[NR_RECYCLED];
	pid_t init, pid;
	int i, k, recycled = 0;

	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		SKIP(return, "no pid namespace: %s", strerror(errno));
	init = spawn(NULL);
	ASSERT_LT(0, init);

	for (i = 0; i < NR_RECYCLED; i++) {
		struct __clone_args args = {
			.exit_signal	= SIGCHLD,
			.set_tid	= ptr_to_u64(set_tid),
			.set_tid_size	= i ? 2 : 1,
		};
		struct ident id;
		int fd;

		pid = clone_child(&args);
		if (pid == -EPERM || pid == -EEXIST) {
			/* The outer number is not ours to choose. */
			args.set_tid_size = 1;
			pid = clone_child(&args);
		}
		if (!pid)
			live();
		if (pid == -EPERM || pid == -E2BIG)
			SKIP(goto out, "no set_tid: %s", strerror(-pid));
		ASSERT_LT(0, pid);
		recycled += pid == set_tid[1];
		set_tid[1] = pid;

		/* Not every one of them gets a pidfd. */
		if (i % 4 == 3) {
			ino[i] = 0;
		} else {
			fd = open_pid(pid, 0);
			ASSERT_TRUE(is_process(fd, 0, pid, pid))
				TH_LOG("%s", wrong->first);
			ASSERT_TRUE(identify(fd, &id));
			ASSERT_EQ(inner, id.inner_pid);
			close(fd);
			ino[i] = id.ino;
			finds(ino[i], pid, pid);
		}
		for (k = 0; k < i; k++) {
			if (!ino[k])
				continue;
			ASSERT_NE(ino[k], ino[i]);
			finds_nothing(ino[k]);
		}
		kill_and_reap(pid, SIGKILL);
		ASSERT_TRUE(nothing_wrong());
	}
	if (!recycled)
		TH_LOG("only the inner number was chosen");
out:
	kill_and_reap(init, SIGKILL);
	EXPECT_TRUE(nothing_wrong());
}

static bool thread_exists(pid_t tid)
{
	return !syscall(__NR_tgkill, getpid(), tid, 0);
}

struct sleeper {
	pthread_t thread;
	pid_t tid;
	sem_t go;
	sem_t *ready;
};

static void *sleeper_fn(void *arg)
{
	struct sleeper *s = arg;

	s->tid = syscall(__NR_gettid);
	sem_post(s->ready);
	while (sem_wait(&s->go))
		;
	return NULL;
}

TEST_F(pidfs, threads)
{
	struct sleeper s[NR_THREADS];
	__u64 ino[NR_THREADS];
	int held[NR_THREADS];
	sem_t ready;
	int i, k;

	ASSERT_EQ(0, sem_init(&ready, 0, 0));
	for (i = 0; i < NR_THREADS; i++) {
		s[i].ready = &ready;
		ASSERT_EQ(0, sem_init(&s[i].go, 0, 0));
		ASSERT_EQ(0, pthread_create(&s[i].thread, NULL, sleeper_fn,
					    &s[i]));
	}
	for (i = 0; i < NR_THREADS; i++)
		while (sem_wait(&ready))
			;

	for (i = 0; i < NR_THREADS; i++) {
		/* What fails must not do harm to what comes after it. */
		EXPECT_EQ(ENOENT, error_of(open_pid(s[i].tid, 0)));
		ino[i] = number_of(open_pid(s[i].tid, PIDFD_THREAD), s[i].tid,
				   getpid());
		for (k = 0; k < i; k++)
			EXPECT_NE(ino[k], ino[i]);
		/* Every second one is kept open. */
		held[i] = -1;
		if (i % 2)
			held[i] = open_ino(ino[i]);
	}
	ASSERT_TRUE(nothing_wrong());

	for (i = NR_THREADS - 1; i >= 0; i--) {
		for (k = 0; k <= i; k++)
			finds(ino[k], s[k].tid, getpid());
		sem_post(&s[i].go);
		pthread_join(s[i].thread, NULL);
		/* A thread is joined before it has been released. */
		EXPECT_TRUE(WAIT_FOR(is_stale(ino[i])));
		EXPECT_TRUE(WAIT_FOR(!thread_exists(s[i].tid)));
		if (held[i] >= 0) {
			is_reaped(held[i], ino[i], 0);
			close(held[i]);
			finds_nothing(ino[i]);
		}
	}
	finds(register_pid(getpid()), getpid(), getpid());
	EXPECT_TRUE(nothing_wrong());
}

/* A pidfd outlives the process, but does not make it be found. */
TEST_F(pidfs, zombie_and_reaped)
{
	const int sigs[] = { SIGKILL, SIGTERM, SIGUSR1, SIGHUP };
	int fd, other, status;
	struct pid_handle h;
	unsigned int i;
	__u64 ino;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(sigs); i++) {
		bool hold = i % 2;

		pid = spawn(&fd);
		ASSERT_TRUE(is_process(fd, 0, pid, pid))
			TH_LOG("%s", wrong->first);
		ASSERT_EQ(0, get_handle(fd, &h));
		ino = h.ino;
		if (!hold)
			close(fd);

		make_zombie(pid, sigs[i]);
		finds(ino, pid, pid);
		EXPECT_EQ(ino, register_pid(pid));

		status = reap(pid);
		EXPECT_EQ(sigs[i], status);
		finds_nothing(ino);
		EXPECT_EQ(ESRCH, error_of(open_pid(pid, 0)));
		EXPECT_EQ(ESRCH, error_of(open_pid(pid, PIDFD_THREAD)));
		if (hold) {
			is_reaped(fd, ino, status);
			finds_nothing(ino);
			/* It may still go round by other means. */
			other = dup(fd);
			close(fd);
			is_reaped(other, ino, status);
			close(other);
			finds_nothing(ino);
		}
	}

	/* The first pidfd of a zombie */
	pid = spawn(NULL);
	make_zombie(pid, SIGALRM);
	ino = register_pid(pid);
	finds(ino, pid, pid);
	fd = open_ino(ino);
	status = reap(pid);
	is_reaped(fd, ino, status);
	close(fd);
	finds_nothing(ino);
	EXPECT_TRUE(nothing_wrong());
}

/* Attributes stay with a process even without any pidfd, and are its own. */
TEST_F(pidfs, attributes_persist)
{
	char name[2][16], val[16];
	__u64 ino[2];
	pid_t pid[2];
	int i, fd;

	for (i = 0; i < 2; i++) {
		pid[i] = spawn(NULL);
		fd = open_pid(pid[i], 0);
		snprintf(name[i], sizeof(name[i]), "trusted.%d", i);
		if (fsetxattr(fd, name[i], "x", i + 1, 0))
			SKIP(return, "no xattr: %s", strerror(errno));
		ino[i] = number_of(fd, pid[i], pid[i]);
	}
	for (i = 0; i < 2; i++) {
		fd = open_ino(ino[i]);
		is_process(fd, ino[i], pid[i], pid[i]);
		EXPECT_EQ(i + 1, fgetxattr(fd, name[i], val, sizeof(val)));
		EXPECT_EQ(-1, fgetxattr(fd, name[!i], val, sizeof(val)));
		EXPECT_EQ(ENODATA, errno);
		/* They are still there after the process is not. */
		kill_and_reap(pid[i], SIGKILL);
		EXPECT_EQ(i + 1, fgetxattr(fd, name[i], val, sizeof(val)));
		close(fd);
		finds_nothing(ino[i]);
	}
	EXPECT_TRUE(nothing_wrong());
}

/*
 * All the ways in which a process gets its first entry in pidfs.
 *
 * The entry may well precede the first pidfd: sockets keep the pid of the peer,
 * and messages that of the sender, so that a pidfd can be had even later than
 * the process exists.
 */

struct way {
	pid_t pid;
	int sock;
	int child_sock;
	struct sockaddr_un addr;
	socklen_t addr_len;
};

static bool make_pair(struct way *w, int opt)
{
	int sv[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return complain("no socketpair: %s", strerror(errno));
	w->sock = sv[0];
	w->child_sock = sv[1];
	return !opt || !setsockopt(w->sock, SOL_SOCKET, opt, &on, sizeof(on)) ||
		complain("no socket option %d: %s", opt, strerror(errno));
}

/* An address in the abstract name space, which leaves nothing behind */
static int make_bound(struct way *w)
{
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	w->addr.sun_family = AF_UNIX;
	if (s < 0 || bind(s, (struct sockaddr *)&w->addr, sizeof(sa_family_t)))
		complain("no bound socket: %s", strerror(errno));
	w->addr_len = sizeof(w->addr);
	if (getsockname(s, (struct sockaddr *)&w->addr, &w->addr_len))
		complain("no address: %s", strerror(errno));
	return s;
}

static int make_connected(struct way *w)
{
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0 || connect(s, (struct sockaddr *)&w->addr, w->addr_len))
		complain("not connected: %s", strerror(errno));
	return s;
}

/* Send a byte with a control message, if any; errno or 0 */
static int send_control(int sock, int type, const void *data, size_t len)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} u = {};
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (data) {
		struct cmsghdr *cmsg;

		msg.msg_control = u.buf;
		msg.msg_controllen = CMSG_SPACE(len);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = type;
		cmsg->cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(cmsg), data, len);
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == 1 ? 0 : errno;
}

/* Receive a file, either a pidfd of the sender or what it sent */
static int recv_fd(int sock, int type)
{
	union {
		char buf[256];
		struct cmsghdr align;
	} u = {};
	char c;
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov	= &iov,
		.msg_iovlen	= 1,
		.msg_control	= u.buf,
		.msg_controllen	= sizeof(u.buf),
	};
	struct cmsghdr *cmsg;
	int fd = -ENOMSG;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
		return -errno;
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg))
		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == type)
			memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

static int get_by_open(struct way *w)
{
	return open_pid(w->pid, 0);
}

static int get_by_open_thread(struct way *w)
{
	return open_pid(w->pid, PIDFD_THREAD);
}

static int get_peer(struct way *w)
{
	int fd = -1;
	socklen_t len = sizeof(fd);

	if (getsockopt(w->sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len))
		return -errno;
	return fd;
}

static int get_sender(struct way *w)
{
	int on = 1;

	if (setsockopt(w->sock, SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on)))
		return -errno;
	return recv_fd(w->sock, SCM_PIDFD);
}

static void start_plain(struct way *w)
{
	w->pid = spawn(NULL);
}

static void start_pidfd(struct way *w)
{
	int fd = -1;

	w->pid = spawn(&fd);
	if (fd >= 0)
		close(fd);
}

static void body_connect(void *arg)
{
	make_connected(arg);
}

static void start_connect(struct way *w)
{
	int s = make_bound(w);

	if (listen(s, 1))
		complain("not listening: %s", strerror(errno));
	w->pid = spawn_body(body_connect, w);
	w->sock = accept4(s, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	close(s);
}

static void body_listen(void *arg)
{
	struct way *w = arg;

	if (listen(w->child_sock, 1))
		complain("not listening: %s", strerror(errno));
}

static void start_listen(struct way *w)
{
	w->child_sock = make_bound(w);
	w->pid = spawn_body(body_listen, w);
	w->sock = make_connected(w);
}

static void body_pair(void *arg)
{
	struct way *w = arg;
	int sv[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv)) {
		complain("no socketpair: %s", strerror(errno));
		return;
	}
	err = send_control(w->child_sock, SCM_RIGHTS, &sv[0], sizeof(sv[0]));
	if (err)
		complain("not sent: %s", strerror(err));
}

static void start_pair(struct way *w)
{
	int s;

	make_pair(w, 0);
	w->pid = spawn_body(body_pair, w);
	s = w->sock;
	w->sock = recv_fd(s, SCM_RIGHTS);
	close(s);
}

/* As many messages as the tests want to have pidfds */
#define NR_MESSAGES		3

static void body_send(void *arg)
{
	struct way *w = arg;
	int i, err;

	for (i = 0; i < NR_MESSAGES; i++) {
		err = send_control(w->child_sock, 0, NULL, 0);
		if (err)
			complain("not sent: %s", strerror(err));
	}
}

static void start_pass_pidfd(struct way *w)
{
	make_pair(w, SO_PASSPIDFD);
	w->pid = spawn_body(body_send, w);
}

static void start_pass_cred(struct way *w)
{
	make_pair(w, SO_PASSCRED);
	w->pid = spawn_body(body_send, w);
}

static int send_creds(int sock, pid_t pid)
{
	struct ucred creds = { .pid = pid, .uid = getuid(), .gid = getgid() };

	return send_control(sock, SCM_CREDENTIALS, &creds, sizeof(creds));
}

static void body_send_creds(void *arg)
{
	struct way *w = arg;
	int i, err;

	for (i = 0; i < NR_MESSAGES; i++) {
		err = send_creds(w->child_sock, syscall(__NR_getpid));
		if (err)
			complain("not sent: %s", strerror(err));
	}
}

static void start_send_creds(struct way *w)
{
	make_pair(w, 0);
	w->pid = spawn_body(body_send_creds, w);
}

/* The sender may claim to be another process, which does not know of that. */
static void start_claim_creds(struct way *w)
{
	int i, err;

	make_pair(w, 0);
	w->pid = spawn(NULL);
	for (i = 0; i < NR_MESSAGES; i++) {
		err = send_creds(w->child_sock, w->pid);
		if (err == EPERM) {
			kill_and_reap(w->pid, SIGKILL);
			w->pid = 0;
			return;
		}
		if (err)
			complain("not sent: %s", strerror(err));
	}
}

FIXTURE(way)
{
	struct way w;
};

FIXTURE_VARIANT(way)
{
	void (*start)(struct way *w);
	int (*get)(struct way *w);
	/* Can this be had when the process has been reaped? */
	bool late;
};

FIXTURE_VARIANT_ADD(way, pidfd_open) {
	.start = start_plain,
	.get = get_by_open,
};

FIXTURE_VARIANT_ADD(way, pidfd_open_thread) {
	.start = start_plain,
	.get = get_by_open_thread,
};

FIXTURE_VARIANT_ADD(way, clone_pidfd) {
	.start = start_pidfd,
	.get = get_by_open,
};

FIXTURE_VARIANT_ADD(way, peer_connected) {
	.start = start_connect,
	.get = get_peer,
	.late = true,
};

FIXTURE_VARIANT_ADD(way, peer_listening) {
	.start = start_listen,
	.get = get_peer,
	.late = true,
};

FIXTURE_VARIANT_ADD(way, peer_socketpair) {
	.start = start_pair,
	.get = get_peer,
	.late = true,
};

FIXTURE_VARIANT_ADD(way, sender_pass_pidfd) {
	.start = start_pass_pidfd,
	.get = get_sender,
	.late = true,
};

FIXTURE_VARIANT_ADD(way, sender_pass_cred) {
	.start = start_pass_cred,
	.get = get_sender,
	.late = true,
};

FIXTURE_VARIANT_ADD(way, sender_creds) {
	.start = start_send_creds,
	.get = get_sender,
	.late = true,
};

FIXTURE_VARIANT_ADD(way, sender_claims) {
	.start = start_claim_creds,
	.get = get_sender,
	.late = true,
};

FIXTURE_SETUP(way)
{
	if (!common_setup(_metadata))
		return;
	memset(&self->w, 0, sizeof(self->w));
	self->w.sock = -1;
	self->w.child_sock = -1;
	variant->start(&self->w);
	ASSERT_TRUE(nothing_wrong());
	if (!self->w.pid)
		SKIP(return, "may not send the credentials of others");
}

FIXTURE_TEARDOWN(way)
{
	if (self->w.sock >= 0)
		close(self->w.sock);
	if (self->w.child_sock >= 0)
		close(self->w.child_sock);
	common_teardown();
}

TEST_F(way, alive)
{
	struct way *w = &self->w;
	__u64 ino;

	ino = number_of(variant->get(w), w->pid, w->pid);
	ASSERT_TRUE(nothing_wrong());
	finds(ino, w->pid, w->pid);
	/* Whatever comes next finds what is there already. */
	EXPECT_EQ(ino, number_of(variant->get(w), w->pid, w->pid));
	EXPECT_EQ(ino, register_pid(w->pid));
	finds(ino, w->pid, w->pid);
	kill_and_reap(w->pid, SIGKILL);
	/* The pid itself is still referred to by most sockets. */
	finds_nothing(ino);
	EXPECT_EQ(ESRCH, error_of(open_pid(w->pid, 0)));
	EXPECT_TRUE(nothing_wrong());
}

TEST_F(way, zombie)
{
	struct way *w = &self->w;
	__u64 ino;

	make_zombie(w->pid, SIGTERM);
	ino = number_of(variant->get(w), w->pid, w->pid);
	ASSERT_TRUE(nothing_wrong());
	finds(ino, w->pid, w->pid);
	reap(w->pid);
	finds_nothing(ino);
	EXPECT_TRUE(nothing_wrong());
}

/* The entry goes while the pid stays, and a late pidfd does not revive it. */
TEST_F(way, reaped)
{
	struct way *w = &self->w;
	struct ident id = {};
	int fd, i, status;
	__u64 ino = 0;

	if (!variant->late)
		SKIP(return, "a reaped process cannot be had this way");

	status = kill_and_reap(w->pid, SIGUSR2);
	for (i = 0; i < NR_MESSAGES; i++) {
		fd = variant->get(w);
		ASSERT_TRUE(is_reaped(fd, ino, status))
			TH_LOG("%s", wrong->first);
		ASSERT_TRUE(identify(fd, &id));
		ino = id.ino;
		finds_nothing(ino);
		close(fd);
		finds_nothing(ino);
	}
	EXPECT_EQ(ESRCH, error_of(open_pid(w->pid, 0)));
	EXPECT_TRUE(nothing_wrong());
}

/*
 * Processes which never came into being
 */

struct known {
	pid_t pid[NR_KNOWN];
	__u64 ino[NR_KNOWN];
	/* Around which numbers to look */
	atomic_ullong around;
	atomic_bool stop;
};

/* Whatever is found, it must not be confused with anything that is known. */
static void check_guess(struct known *k, __u64 ino)
{
	int fd = open_ino(ino), i;
	struct ident id;

	if (fd < 0) {
		if (fd != -ESTALE)
			complain("guessed number: %s", strerror(-fd));
		for (i = 0; i < NR_KNOWN; i++)
			if (k->ino[i] == ino)
				complain("known number %llu not found",
					 (unsigned long long)ino);
		return;
	}
	if (identify(fd, &id)) {
		if (id.ino != ino)
			complain("%llu leads to %llu", (unsigned long long)ino,
				 (unsigned long long)id.ino);
		for (i = 0; i < NR_KNOWN; i++) {
			bool same_pid = k->pid[i] == id.pid;
			bool same_ino = k->ino[i] == ino;

			if (same_pid != same_ino)
				complain("%llu leads to %d",
					 (unsigned long long)ino, id.pid);
		}
	}
	close(fd);
}

static void *guess_fn(void *arg)
{
	struct known *k = arg;
	unsigned int seed = 7;

	while (!atomic_load(&k->stop)) {
		check_guess(k, atomic_load(&k->around) +
			       next_random(&seed) % 16);
		check_guess(k, k->ino[next_random(&seed) % NR_KNOWN]);
	}
	return NULL;
}

static void start_known(struct known *k)
{
	int i;

	memset(k, 0, sizeof(*k));
	for (i = 0; i < NR_KNOWN; i++) {
		k->pid[i] = spawn(NULL);
		k->ino[i] = register_pid(k->pid[i]);
	}
}

static void end_known(struct known *k)
{
	int i;

	for (i = 0; i < NR_KNOWN; i++) {
		finds(k->ino[i], k->pid[i], k->pid[i]);
		kill_and_reap(k->pid[i], SIGKILL);
		finds_nothing(k->ino[i]);
	}
}

/* The pidfd is made, but its number cannot be told to user space. */
TEST_F_TIMEOUT(pidfs, fork_fails_late, LONG_TIMEOUT)
{
	struct __clone_args args = {
		.flags		= CLONE_PIDFD | CLONE_VM | CLONE_VFORK,
		.exit_signal	= SIGCHLD,
	};
	__u64 ino = 0, last;
	pthread_t thread;
	struct known k;
	void *none;
	pid_t pid;
	int i, n;

	none = mmap(NULL, getpagesize(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	ASSERT_NE(MAP_FAILED, none);
	start_known(&k);
	ASSERT_TRUE(nothing_wrong());
	atomic_store(&k.around, k.ino[NR_KNOWN - 1] + 1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, guess_fn, &k));

	for (i = 0; i < NR_FAILED_FORKS && !atomic_load(&wrong->nr); i++) {
		args.pidfd = i % 2 ? ptr_to_u64(none) : ULONG_MAX - 4095;
		pid = syscall(__NR_clone3, &args, sizeof(args));
		if (!pid)
			_exit(1);
		if (pid > 0 || errno != EFAULT) {
			complain("fork with a bad pointer: %d", pid);
			break;
		}
		if (i % 100)
			continue;

		/* The next one which does not fail is in order. */
		pid = spawn(NULL);
		last = ino;
		ino = register_pid(pid);
		atomic_store(&k.around, ino + 1);
		finds(ino, pid, pid);
		if (ino == last)
			complain("same number again");
		for (n = 1; n < 8; n++)
			check_guess(&k, ino - n);
		kill_and_reap(pid, SIGKILL);
		finds_nothing(ino);
	}
	atomic_store(&k.stop, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(NR_FAILED_FORKS, i);
	EXPECT_TRUE(nothing_wrong());
	end_known(&k);
	munmap(none, getpagesize());
	EXPECT_TRUE(nothing_wrong());
}

/* There is a pid, but no pidfd of it could be made. */
TEST_F_TIMEOUT(pidfs, fork_fails_early, LONG_TIMEOUT)
{
	int pidfd = -1, i, n, g, fd, err;
	struct __clone_args args = {
		.flags		= CLONE_PIDFD | CLONE_VM | CLONE_VFORK,
		.exit_signal	= SIGCHLD,
		.pidfd		= ptr_to_u64(&pidfd),
	};
	struct rlimit lim, none;
	struct known k;
	__u64 ino;
	pid_t pid;

	start_known(&k);
	ASSERT_TRUE(nothing_wrong());
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &lim));
	fd = dup(life[0]);
	ASSERT_LE(0, fd);
	close(fd);

	for (i = 0; i < NR_FAILED_FORKS && !atomic_load(&wrong->nr); i += n) {
		none = lim;
		none.rlim_cur = fd;
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
		for (n = 0; n < 50; n++) {
			pid = syscall(__NR_clone3, &args, sizeof(args));
			if (!pid)
				_exit(1);
			if (pid > 0 || errno != EMFILE)
				complain("fork without a free file: %d", pid);
			err = error_of(open_ino(k.ino[n % NR_KNOWN]));
			if (err != EMFILE)
				complain("open without a free file: %d", err);
		}
		ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &lim));

		pid = spawn(NULL);
		ino = register_pid(pid);
		finds(ino, pid, pid);
		for (g = 1; g < 16; g++)
			check_guess(&k, ino - g);
		kill_and_reap(pid, SIGKILL);
		finds_nothing(ino);
	}
	end_known(&k);
	EXPECT_TRUE(nothing_wrong());
}

/*
 * Lookups and first registrations against exit and reaping
 */

enum state {
	UNBORN,
	ALIVE,
	DYING,		/* Is going to be reaped, or has been. */
	REAPED,		/* Has certainly been reaped. */
};

struct raced {
	atomic_int state;
	pid_t pid;
	pid_t tgid;
	atomic_ullong ino;
	/* For threads */
	pthread_t thread;
	sem_t go;
	sem_t ready;
};

struct race {
	struct raced p[NR_RACED];
	atomic_int head;
	atomic_int tail;
	atomic_bool stop;
	unsigned int open_flags;
	/* How often it could be seen in which state */
	atomic_int opened[REAPED + 1], found[REAPED + 1], gone[REAPED + 1];
};

/* One pidfd, however it was come by: the first one tells the number. */
static void race_check_fd(struct raced *p, int fd)
{
	unsigned long long first = 0;
	struct ident id;

	if (!identify(fd, &id))
		return;
	if (!atomic_compare_exchange_strong(&p->ino, &first, id.ino) &&
	    first != id.ino)
		complain("%d had %llu, now %llu", p->pid, first,
			 (unsigned long long)id.ino);
	if (id.mask & PIDFD_INFO_PID &&
	    (id.pid != p->pid || id.tgid != p->tgid))
		complain("%llu is %d/%d, not %d/%d", (unsigned long long)id.ino,
			 id.pid, id.tgid, p->pid, p->tgid);
	/*
	 * PIDFD_GET_INFO of 6.18 looks for the exit code before the task, and so
	 * may miss both once.
	 */
	if (!(id.mask & (PIDFD_INFO_PID | PIDFD_INFO_EXIT)) && kernel_before(7, 0) &&
	    !identify(fd, &id))
		return;
	/* It is registered, so one of them must be there. */
	if (!(id.mask & (PIDFD_INFO_PID | PIDFD_INFO_EXIT)))
		complain("%d has neither a task nor an exit code", p->pid);
	if (id.fdinfo_pid != p->pid && id.fdinfo_pid != -1)
		complain("%d is %ld in fdinfo", p->pid, id.fdinfo_pid);
	if (atomic_load(&p->state) == ALIVE && id.fdinfo_pid != p->pid)
		complain("%d was reaped by nobody", p->pid);
}

static void race_open(struct race *r, struct raced *p)
{
	int before = atomic_load(&p->state), after, fd;

	/* The number may be that of somebody else by now. */
	if (before != ALIVE && before != DYING)
		return;
	fd = open_pid(p->pid, r->open_flags);
	after = atomic_load(&p->state);
	if (fd >= 0) {
		if (after != REAPED)
			race_check_fd(p, fd);
		atomic_fetch_add(&r->opened[before], 1);
		close(fd);
	} else if (fd != -ESRCH || after == ALIVE) {
		complain("cannot open %d: %s", p->pid, strerror(-fd));
	}
}

static void race_find(struct race *r, struct raced *p)
{
	__u64 ino = atomic_load(&p->ino);
	int before = atomic_load(&p->state), after, fd;

	if (!ino || before == UNBORN)
		return;
	fd = open_ino(ino);
	after = atomic_load(&p->state);
	if (fd >= 0) {
		if (before == REAPED)
			complain("%d found though reaped", p->pid);
		race_check_fd(p, fd);
		atomic_fetch_add(&r->found[before], 1);
		close(fd);
	} else {
		if (fd != -ESTALE || after == ALIVE)
			complain("%d not found: %s", p->pid, strerror(-fd));
		atomic_fetch_add(&r->gone[before], 1);
	}
}

static void *race_fn(void *arg)
{
	static atomic_uint seeds;
	struct race *r = arg;
	unsigned int seed = atomic_fetch_add(&seeds, 1) + 1;

	while (!atomic_load(&r->stop)) {
		int head = atomic_load(&r->head), i, spins;

		if (!head) {
			sched_yield();
			continue;
		}
		/* Mostly the one which is next to die, or one of the others */
		i = atomic_load(&r->tail);
		if (next_random(&seed) % 4 == 0)
			i = head - 1 - next_random(&seed) % 6;
		if (next_random(&seed) % 8 == 0)
			i = next_random(&seed) % head;
		if (i < 0 || i >= head)
			continue;
		/* Every second one has no pidfd before it is about to go. */
		for (spins = 0; i % 2 && spins < MAX_SPINS &&
		     atomic_load(&r->p[i].state) == ALIVE; spins++)
			;
		if (i % 2 && atomic_load(&r->p[i].state) == ALIVE)
			continue;
		if (next_random(&seed) % 2)
			race_open(r, &r->p[i]);
		race_find(r, &r->p[i]);
	}
	return NULL;
}

enum reaper {
	BY_WAIT,
	BY_ITSELF,
	AS_THREAD,
};

static void *raced_fn(void *arg)
{
	struct raced *p = arg;

	p->pid = syscall(__NR_gettid);
	sem_post(&p->ready);
	while (sem_wait(&p->go))
		;
	return NULL;
}

static bool race_start(struct raced *p, enum reaper reaper)
{
	p->tgid = getpid();
	if (reaper == AS_THREAD) {
		if (sem_init(&p->go, 0, 0) || sem_init(&p->ready, 0, 0) ||
		    pthread_create(&p->thread, NULL, raced_fn, p))
			return complain("no thread: %s", strerror(errno));
		while (sem_wait(&p->ready))
			;
	} else {
		p->pid = spawn(NULL);
		if (p->pid < 0)
			return false;
		p->tgid = p->pid;
	}
	atomic_store(&p->state, ALIVE);
	return true;
}

static void race_end(struct raced *p, enum reaper reaper)
{
	static unsigned int seed = 5;
	int spins;

	/* While it is a zombie, it is as good as alive. */
	if (reaper == BY_WAIT)
		make_zombie(p->pid, SIGKILL);
	atomic_store(&p->state, DYING);
	/* Let some of the lookers come first. */
	if (next_random(&seed) % 2)
		sched_yield();
	spins = next_random(&seed) % (4 * MAX_SPINS);
	while (spins-- && atomic_load(&p->state) == DYING)
		;
	switch (reaper) {
	case BY_WAIT:
		reap(p->pid);
		atomic_store(&p->state, REAPED);
		break;
	case BY_ITSELF:
		kill(p->pid, SIGKILL);
		break;
	case AS_THREAD:
		sem_post(&p->go);
		pthread_join(p->thread, NULL);
		break;
	}
}

FIXTURE(race)
{
};

FIXTURE_VARIANT(race)
{
	enum reaper reaper;
};

FIXTURE_VARIANT_ADD(race, reaped_by_parent) {
	.reaper = BY_WAIT,
};

FIXTURE_VARIANT_ADD(race, reaped_by_itself) {
	.reaper = BY_ITSELF,
};

FIXTURE_VARIANT_ADD(race, threads) {
	.reaper = AS_THREAD,
};

FIXTURE_SETUP(race)
{
	common_setup(_metadata);
}

FIXTURE_TEARDOWN(race)
{
	common_teardown();
}

TEST_F_TIMEOUT(race, lookup_and_exit, LONG_TIMEOUT)
{
	enum reaper reaper = variant->reaper;
	pthread_t looker[NR_LOOKERS];
	int i, tail = 0, numbers = 0;
	static struct race r;
	unsigned int seed = 3;

	if (reaper == AS_THREAD)
		r.open_flags = PIDFD_THREAD;
	if (reaper == BY_ITSELF)
		ASSERT_NE(SIG_ERR, signal(SIGCHLD, SIG_IGN));
	for (i = 0; i < NR_LOOKERS; i++)
		ASSERT_EQ(0, pthread_create(&looker[i], NULL, race_fn, &r));

	for (i = 0; i < NR_RACED && !atomic_load(&wrong->nr); i++) {
		int keep = next_random(&seed) % 6;

		if (!race_start(&r.p[i], reaper))
			break;
		atomic_store(&r.head, i + 1);
		/* Some are gone at once, some live for a while. */
		for (; tail <= i - keep; tail++) {
			atomic_store(&r.tail, tail);
			race_end(&r.p[tail], reaper);
		}
	}
	for (; tail < i; tail++) {
		atomic_store(&r.tail, tail);
		race_end(&r.p[tail], reaper);
	}
	atomic_store(&r.stop, true);
	for (i = 0; i < NR_LOOKERS; i++)
		pthread_join(looker[i], NULL);
	ASSERT_TRUE(nothing_wrong());
	ASSERT_EQ(NR_RACED, tail);

	for (i = 0; i < NR_RACED; i++) {
		__u64 ino = atomic_load(&r.p[i].ino);

		if (!ino)
			continue;
		numbers++;
		if (reaper == BY_WAIT)
			finds_nothing(ino);
		else
			EXPECT_TRUE(WAIT_FOR(is_stale(ino)));
	}
	TH_LOG("%d of %d had a number; opened %d/%d, found %d/%d, gone %d/%d",
	       numbers, NR_RACED, r.opened[ALIVE], r.opened[DYING],
	       r.found[ALIVE], r.found[DYING], r.gone[DYING], r.gone[REAPED]);
	EXPECT_LT(0, numbers);
	EXPECT_TRUE(nothing_wrong());
}

/*
 * First registrations of the same process at the same time
 */

struct openers {
	atomic_int round;
	atomic_int done;
	pid_t pid;
	bool xattr;
	__u64 ino[NR_OPENERS];
};

struct opener {
	struct openers *all;
	pthread_t thread;
	int nr;
};

static void *opener_fn(void *arg)
{
	struct opener *me = arg;
	struct openers *all = me->all;
	char name[16];
	int i, fd;

	snprintf(name, sizeof(name), "trusted.%d", me->nr);
	for (i = 1; i <= NR_ROUNDS; i++) {
		while (atomic_load(&all->round) != i)
			sched_yield();
		fd = open_pid(all->pid, me->nr % 2 ? PIDFD_THREAD : 0);
		if (fd >= 0 && all->xattr &&
		    fsetxattr(fd, name, name, sizeof(name), XATTR_CREATE))
			complain("no xattr: %s", strerror(errno));
		all->ino[me->nr] = number_of(fd, all->pid, all->pid);
		atomic_fetch_add(&all->done, 1);
	}
	return NULL;
}

/* The process registers itself, and then lives as long as the test. */
static pid_t spawn_connected(void)
{
	struct __clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid = clone_child(&args);
	int sv[2];

	if (!pid) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
			complain("no socketpair: %s", strerror(errno));
		live();
	}
	return pid;
}

TEST_F_TIMEOUT(pidfs, concurrent_first_opens, LONG_TIMEOUT)
{
	struct opener opener[NR_OPENERS];
	static __u64 ino[NR_ROUNDS];
	struct openers all = {};
	char name[16], val[16];
	int i, k, fd;

	fd = open_pid(getpid(), 0);
	ASSERT_LE(0, fd);
	all.xattr = !fsetxattr(fd, "trusted.self", "", 1, 0);
	close(fd);
	for (k = 0; k < NR_OPENERS; k++) {
		opener[k].all = &all;
		opener[k].nr = k;
		ASSERT_EQ(0, pthread_create(&opener[k].thread, NULL, opener_fn,
					    &opener[k]));
	}

	for (i = 0; i < NR_ROUNDS; i++) {
		all.pid = i % 2 ? spawn_connected() : spawn(NULL);
		atomic_store(&all.done, 0);
		atomic_store(&all.round, i + 1);
		while (atomic_load(&all.done) != NR_OPENERS)
			sched_yield();
		if (all.pid <= 0)
			continue;

		for (k = 1; k < NR_OPENERS; k++)
			if (all.ino[k] != all.ino[0])
				complain("%d has more than one number", all.pid);
		ino[i] = all.ino[0];
		fd = open_ino(ino[i]);
		is_process(fd, ino[i], all.pid, all.pid);
		/* If an entry replaced another one, then something is lost. */
		for (k = 0; all.xattr && k < NR_OPENERS; k++) {
			snprintf(name, sizeof(name), "trusted.%d", k);
			if (fgetxattr(fd, name, val, sizeof(val)) !=
			    sizeof(name) || strcmp(name, val))
				complain("%d lost %s", all.pid, name);
		}
		if (fd >= 0)
			close(fd);
		kill_and_reap(all.pid, SIGKILL);
		finds_nothing(ino[i]);
	}
	for (k = 0; k < NR_OPENERS; k++)
		pthread_join(opener[k].thread, NULL);
	qsort(ino, NR_ROUNDS, sizeof(*ino), cmp_ino);
	for (i = 1; i < NR_ROUNDS; i++)
		EXPECT_LT(ino[i - 1], ino[i]);
	EXPECT_TRUE(nothing_wrong());
}

/*
 * Fault injection: whatever fails, it can be done again.
 */

static const char * const fault_knobs[] = {
	"ignore-gfp-wait", "cache-filter", "verbose",
};

#define FAULT_DIR		"failslab"
#define MAX_FAULTS		1000

struct faults {
	char dir[64];
	bool mounted;
	int fd;
	char saved[ARRAY_SIZE(fault_knobs)][32];
};

FIXTURE(faults)
{
	struct faults f;
};

enum fault_op {
	FAULT_OPEN,
	FAULT_FIND,
	FAULT_CLONE,
	FAULT_PAIR,
};

FIXTURE_VARIANT(faults)
{
	enum fault_op op;
};

FIXTURE_VARIANT_ADD(faults, pidfd_open) {
	.op = FAULT_OPEN,
};

FIXTURE_VARIANT_ADD(faults, open_by_handle_at) {
	.op = FAULT_FIND,
};

FIXTURE_VARIANT_ADD(faults, clone_pidfd) {
	.op = FAULT_CLONE,
};

FIXTURE_VARIANT_ADD(faults, socketpair) {
	.op = FAULT_PAIR,
};

static int knob_open(const char *dir, unsigned int i, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/" FAULT_DIR "/%s", dir, fault_knobs[i]);
	return open(path, flags | O_CLOEXEC);
}

static bool knob_write(const char *dir, unsigned int i, const char *val)
{
	int fd = knob_open(dir, i, O_WRONLY);
	bool ok = fd >= 0 && write(fd, val, strlen(val)) > 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool knob_read(const char *dir, unsigned int i, char *val, size_t size)
{
	int fd = knob_open(dir, i, O_RDONLY);
	ssize_t len = fd < 0 ? -1 : read(fd, val, size - 1);

	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return false;
	val[len] = '\0';
	return true;
}

FIXTURE_SETUP(faults)
{
	if (!common_setup(_metadata))
		return;
	memset(self->f.saved, 0, sizeof(self->f.saved));
	self->f.mounted = false;
	self->f.fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (self->f.fd < 0)
		SKIP(return, "no fault injection: %s", strerror(errno));
}

FIXTURE_TEARDOWN(faults)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fault_knobs); i++)
		if (self->f.saved[i][0])
			knob_write(self->f.dir, i, self->f.saved[i]);
	if (self->f.mounted) {
		umount(self->f.dir);
		rmdir(self->f.dir);
	}
	if (self->f.fd >= 0)
		close(self->f.fd);
	common_teardown();
}

/* Returns what is missing, if anything. */
static const char *prepare_faults(struct faults *f)
{
	unsigned int i;

	snprintf(f->dir, sizeof(f->dir), "/sys/kernel/debug");
	if (!knob_read(f->dir, 0, f->saved[0], sizeof(f->saved[0]))) {
		/* Not mounted there, so have it for as long as this runs. */
		snprintf(f->dir, sizeof(f->dir), "%s", TEMP_DIR);
		if (!mkdtemp(f->dir))
			return "temporary directory";
		f->mounted = true;
		if (mount("debugfs", f->dir, "debugfs", 0, NULL))
			return "debugfs";
	}
	for (i = 0; i < ARRAY_SIZE(fault_knobs); i++)
		if (!knob_read(f->dir, i, f->saved[i],
			       sizeof(f->saved[i])) ||
		    !knob_write(f->dir, i, "0"))
			return fault_knobs[i];
	return NULL;
}

static bool set_fault(int fd, int nth)
{
	char val[16];

	snprintf(val, sizeof(val), "%d", nth);
	return pwrite(fd, val, strlen(val), 0) > 0 ||
		complain("cannot set a fault: %s", strerror(errno));
}

/* Stop injecting; was there a fault? */
static bool end_fault(int fd)
{
	char val[16] = {};
	bool hit = pread(fd, val, sizeof(val) - 1, 0) > 0 && !atoi(val);

	set_fault(fd, 0);
	return hit;
}

struct pair_arg {
	int nth;
	int err;
	bool hit;
};

/* The child registers itself, and tells in shared memory how that went. */
static void body_fault_pair(void *data)
{
	struct pair_arg *a = data;
	int fd, sv[2] = { -1, -1 };

	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0 || !set_fault(fd, a->nth))
		_exit(1);
	a->err = socketpair(AF_UNIX, SOCK_STREAM, 0, sv) ? errno : 0;
	a->hit = end_fault(fd);
	close(fd);
}

TEST_F_TIMEOUT(faults, sweep, LONG_TIMEOUT)
{
	int fd, nth, err = 0, hits = 0, failed = 0;
	const char *missing = prepare_faults(&self->f);
	struct pair_arg *arg;
	bool hit = true;
	__u64 ino, other;
	pid_t pid = -1;

	if (missing)
		SKIP(return, "no %s: %s", missing, strerror(errno));
	arg = mmap(NULL, sizeof(*arg), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, arg);

	for (nth = 1; hit && nth < MAX_FAULTS; nth++) {
		struct __clone_args args = {
			.flags		= CLONE_PIDFD,
			.exit_signal	= SIGCHLD,
			.pidfd		= ptr_to_u64(&fd),
		};

		fd = -1;
		ino = 0;
		switch (variant->op) {
		case FAULT_OPEN:
			pid = spawn(NULL);
			ASSERT_TRUE(set_fault(self->f.fd, nth));
			fd = open_pid(pid, 0);
			hit = end_fault(self->f.fd);
			err = fd < 0 ? -fd : 0;
			break;
		case FAULT_FIND:
			pid = spawn(NULL);
			ino = register_pid(pid);
			ASSERT_TRUE(set_fault(self->f.fd, nth));
			fd = open_ino(ino);
			hit = end_fault(self->f.fd);
			err = fd < 0 ? -fd : 0;
			break;
		case FAULT_CLONE:
			ASSERT_TRUE(set_fault(self->f.fd, nth));
			pid = syscall(__NR_clone3, &args, sizeof(args));
			if (!pid) {
				close(life[1]);
				live();
			}
			err = pid < 0 ? errno : 0;
			hit = end_fault(self->f.fd);
			if (pid < 0) {
				/* Nothing may be left of it. */
				ASSERT_EQ(-1, waitpid(-1, NULL, WNOHANG));
				ASSERT_EQ(ECHILD, errno);
				pid = spawn(NULL);
			}
			break;
		case FAULT_PAIR:
			memset(arg, 0, sizeof(*arg));
			arg->nth = nth;
			pid = spawn_body(body_fault_pair, arg);
			err = arg->err;
			hit = arg->hit;
			break;
		}
		ASSERT_TRUE(nothing_wrong());

		hits += hit;
		if (err) {
			failed++;
			ASSERT_TRUE(hit);
			/* User copies fail, too, and sockets in their own way. */
			if (err != ENOMEM && err != EFAULT && err != EAGAIN)
				ASSERT_EQ(ENFILE, err);
			fd = -1;
		}
		if (fd >= 0) {
			other = number_of(fd, pid, pid);
			ASSERT_TRUE(!ino || ino == other);
			ino = other;
			finds(ino, pid, pid);
		}
		other = register_pid(pid);
		ASSERT_TRUE(!ino || ino == other);
		finds(other, pid, pid);
		kill_and_reap(pid, SIGKILL);
		finds_nothing(other);
		ASSERT_TRUE(nothing_wrong());
	}
	ASSERT_FALSE(hit);
	ASSERT_LT(0, hits);
	ASSERT_LT(0, failed);
	munmap(arg, sizeof(*arg));
}

TEST_HARNESS_MAIN
