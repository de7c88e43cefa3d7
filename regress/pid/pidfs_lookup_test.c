// SPDX-License-Identifier: GPL-2.0
/*
 * How a process is found again by its pidfs inode number, while others are
 * created, exit and are reaped, and while a fork fails.
 *
 * name_to_handle_at() turns a pidfd into a file handle, which is the 64-bit inode
 * number of the struct pid, and open_by_handle_at() looks that number up.  A
 * process that had a pidfd is found until it is reaped.  It is not found later,
 * and no number leads to another process.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "pidfd/pidfd.h"
#include "kselftest_harness.h"
#include "release.h"

#ifndef PIDFD_INFO_COREDUMP
/* Nothing finds a process by such a number there. */
TEST(handles)
{
	SKIP(return, "the headers of this kernel have no file handles of pidfs");
}
#else

/* The type of the handles of pidfs */
#define PIDFS_HANDLE_TYPE	0xfe

/* For tests which do more work; emulation with KASAN is very slow. */
#define LONG_TIMEOUT		180

/* How long to wait for something which ought to happen soon. */
#define WAIT_MS			20000
#define MAX_TRIES		5000

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
	if (ret && ret != ESTALE)
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

#endif /* PIDFD_INFO_COREDUMP */

TEST_HARNESS_MAIN
