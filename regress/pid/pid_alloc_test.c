// SPDX-License-Identifier: GPL-2.0
/*
 * Allocation of pids over all levels of nested pid namespaces.
 *
 * alloc_pid() allocates one number per level and either gets all of them or
 * none.  Nail down what user space can see of that: which numbers are given,
 * which error wins if several levels would fail, that failures leave nothing
 * behind, that numbers are unique, that nobody sees a half-made process, and
 * that a namespace's init comes first and that nobody joins after it died.
 *
 * The rule for errors: the levels are looked at from the innermost one
 * outwards, twice, and the first one which fails decides.  At first, all tids
 * which are asked for are checked: whether a tid is bad (EINVAL), and then
 * whether there are the privileges for it (EPERM).  Then the numbers are
 * allocated (EEXIST, EAGAIN or ENOMEM), and a task that is not the first one of a
 * namespace needs an init there (EINVAL).  Dead namespaces come last (ENOMEM).
 *
 * Most tests are a script which the test process carries out by remote
 * control: "agents" are processes in all kinds of namespaces, which make the
 * system calls they are told to make and report what came out.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "release.h"

#ifndef PIDFS_IOCTL_MAGIC
#define PIDFS_IOCTL_MAGIC	0xFF
#endif

#ifndef PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE
#define PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE	_IO(PIDFS_IOCTL_MAGIC, 6)
#endif

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE	40
#endif

/* These are not in any header for user space. */
#define MAX_PID_NS_LEVEL	32

/* For tests which do more work; emulation with KASAN is very slow. */
#define LONG_TIMEOUT		180

#define MAX_AGENTS		24
#define MAX_TIDS		(MAX_PID_NS_LEVEL + 2)

/*
 * What is shared by the test process and all agents
 */

enum child {
	CHILD_BARE,	/* exits at once and is waited for */
	CHILD_EXIT,	/* reports its pids, exits and is waited for */
	CHILD_ZOMBIE,	/* reports its pids and exits; not waited for */
	CHILD_SLEEP,	/* reports its pids and sleeps */
	CHILD_AGENT,	/* becomes agent number @slot */
};

/* The pids of a task, outermost namespace which can be seen first */
struct pids {
	int nr;
	pid_t nr_ns[MAX_TIDS];
};

/* Arguments of a clone3() and what came out */
struct spawn {
	enum child kind;
	unsigned long flags;
	unsigned int size;
	pid_t tid[MAX_TIDS];
	void *pidfd;
	unsigned int slot;
	unsigned int fail_nth;

	struct pids pids;
	bool injected;
};

enum kind { FREE, TAKEN, ZERO, NEGATIVE, TOO_LARGE, NR_KINDS };

struct level {
	pid_t tid[NR_KINDS];
	unsigned int spread;	/* so many tids below tid[FREE] are free, too */
	pid_t pid_max;
	bool has_init;
	bool capable;
};

/* What to try with set_tid; level[0] is the innermost one. */
struct matrix {
	unsigned long flags;
	unsigned int nr;
	struct level level[4];
	bool dead;

	int failures;
	int successes;
};

struct agent {
	int sock[2];	/* the test process's end and the agent's */
	int pidfd;	/* in the test process */
	struct agent *by;
	pid_t pid;	/* as seen by the one which created it */
	struct pids pids;
	bool busy;

	long (*fn)(struct agent *a);
	long long arg;
	long ret;

	struct spawn spawn;
	struct matrix matrix;
	int procfd;
	int uffd;
	void *page;
};

struct shared {
	struct agent agents[MAX_AGENTS];
	int nr_agents;
	int complaints;
};

static struct shared *shared;

/* How many levels /proc shows above the one of the test */
static int proc_base;

/* What an agent has to say, as the macros of the harness are not for them. */
static void __printf(1, 2) complain(const char *fmt, ...)
{
	char msg[256];
	va_list ap;

	if (__atomic_fetch_add(&shared->complaints, 1, __ATOMIC_SEQ_CST) >= 20)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	fprintf(stderr, "# complaint: %s\n", msg);
}

#define CHECK(cond, fmt, ...) do {					\
	if (!(cond))							\
		complain("%d: " fmt, __LINE__, ##__VA_ARGS__);		\
} while (0)

/*
 * System calls
 */

static pid_t sys_clone3(unsigned long flags, const pid_t *tid, size_t size,
			void *pidfd)
{
	struct clone_args args = {
		.flags = flags,
		.exit_signal = SIGCHLD,
		.pidfd = (uintptr_t)pidfd,
		.set_tid = (uintptr_t)tid,
		.set_tid_size = size,
	};

	return syscall(__NR_clone3, &args, sizeof(args));
}

static int sys_pidfd_open(pid_t pid)
{
	return syscall(__NR_pidfd_open, pid, 0);
}

static int write_at(int dir, const char *name, const char *val)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, val, strlen(val)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static int write_num(const char *name, long val)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%ld", val);
	return write_at(AT_FDCWD, name, buf);
}

static int read_at(int dir, const char *name, char *val, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t ret;
	int err;

	if (fd < 0)
		return -errno;
	ret = read(fd, val, size - 1);
	err = errno;
	close(fd);
	if (ret < 0)
		return -err;
	val[ret] = '\0';
	return 0;
}

/* A private mount which does not appear anywhere; returns its root. */
static int detached_mount(const char *type)
{
	int fs, mnt, err;

	fs = syscall(__NR_fsopen, type, FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	if (syscall(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)) {
		err = errno;
		close(fs);
		return -err;
	}
	mnt = syscall(__NR_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	err = errno;
	close(fs);
	return mnt < 0 ? -err : mnt;
}

/* Parse the numbers of one line of a status file. */
static int parse_line(const char *status, const char *name, pid_t *nr)
{
	const char *p = strstr(status, name);
	int n = 0;
	int len;

	if (!p)
		return 0;
	p += strlen(name);
	while (n < MAX_TIDS && *p == '\t' && sscanf(p, "%d%n", &nr[n], &len) == 1) {
		p += len;
		n++;
	}
	return n;
}

static int read_pids(int dir, const char *name, struct pids *pids)
{
	char status[4096];
	int ret;

	pids->nr = 0;
	ret = read_at(dir, name, status, sizeof(status));
	if (!ret)
		pids->nr = parse_line(status, "\nNSpid:", pids->nr_ns);
	return ret;
}

/* The pid in the namespace @up levels further out than the innermost one */
static pid_t pid_up(const struct pids *pids, int up)
{
	return up < pids->nr ? pids->nr_ns[pids->nr - 1 - up] : -1;
}

/*
 * Agents
 */

static void __noreturn agent_main(struct agent *a)
{
	char c;

	while (read(a->sock[1], &c, 1) == 1) {
		a->ret = a->fn(a);
		if (write(a->sock[1], "", 1) != 1)
			break;
	}
	_exit(0);
}

static void __noreturn child_main(struct spawn *s, int ready)
{
	struct agent *a;

	/* Nobody gets lost if the test is killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	read_pids(AT_FDCWD, "/proc/self/status", &s->pids);
	if (s->kind == CHILD_AGENT) {
		a = &shared->agents[s->slot];
		a->pids = s->pids;
		close(ready);
		agent_main(a);
	}
	if (s->kind == CHILD_SLEEP) {
		close(ready);
		for (;;)
			pause();
	}
	_exit(0);
}

static pid_t clone3_injected(struct spawn *s)
{
	const char *name = "/proc/thread-self/fail-nth";
	int fd = open(name, O_RDWR | O_CLOEXEC);
	char buf[32] = "";
	int len, err;
	pid_t pid;

	len = snprintf(buf, sizeof(buf), "%u", s->fail_nth);
	if (fd < 0 || write(fd, buf, len) != len) {
		complain("cannot use %s: %m", name);
		close(fd);
		errno = EIO;
		return -1;
	}
	pid = sys_clone3(s->flags, s->size ? s->tid : NULL, s->size, s->pidfd);
	if (!pid)
		return 0;
	err = errno;
	CHECK(pread(fd, buf, sizeof(buf) - 1, 0) > 0, "cannot read %s", name);
	CHECK(pwrite(fd, "0", 1, 0) == 1, "cannot reset %s", name);
	s->injected = !atoi(buf);
	close(fd);
	errno = err;
	return pid;
}

/* Returns the child's pid or an error. */
static long do_spawn(struct agent *a)
{
	struct spawn *s = &a->spawn;
	siginfo_t info;
	int ready[2];
	int status;
	pid_t pid;
	char c;

	s->pids.nr = 0;
	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	if (s->fail_nth)
		pid = clone3_injected(s);
	else
		pid = sys_clone3(s->flags, s->size ? s->tid : NULL, s->size,
				 s->pidfd);
	if (!pid) {
		if (s->kind == CHILD_BARE)
			_exit(0);
		child_main(s, ready[1]);
	}
	if (pid < 0)
		pid = -errno;
	close(ready[1]);

	/* It closes the pipe at the latest by dying. */
	if (pid > 0 && read(ready[0], &c, 1) != 0)
		pid = -EIO;
	close(ready[0]);
	if (pid < 0)
		return pid;
	if (s->flags & CLONE_PIDFD)
		close(*(int *)s->pidfd);

	switch (s->kind) {
	case CHILD_BARE:
	case CHILD_EXIT:
		if (waitpid(pid, &status, 0) != pid || status)
			complain("child %d: status %#x", pid, status);
		break;
	case CHILD_ZOMBIE:
		if (waitid(P_PID, pid, &info, WEXITED | WNOWAIT))
			complain("child %d: %m", pid);
		break;
	default:
		break;
	}
	return pid;
}

static void call_start(struct agent *a, long (*fn)(struct agent *a),
		       long long arg)
{
	a->fn = fn;
	a->arg = arg;
	a->ret = -ENXIO;
	a->busy = a->pidfd >= 0 && write(a->sock[0], "", 1) == 1;
}

/* -ENXIO if the agent died, or else what the function returned. */
static long call_wait(struct agent *a)
{
	struct pollfd pfd[2] = {
		{ .fd = a->sock[0], .events = POLLIN },
		{ .fd = a->pidfd, .events = POLLIN },
	};
	char c;

	if (!a->busy)
		return -ENXIO;
	while (poll(pfd, 2, -1) < 0 && errno == EINTR)
		;
	a->busy = false;
	if (!(pfd[0].revents & POLLIN) || read(a->sock[0], &c, 1) != 1)
		return -ENXIO;
	return a->ret;
}

static long call(struct agent *a, long (*fn)(struct agent *a), long long arg)
{
	call_start(a, fn, arg);
	return call_wait(a);
}

static void spawn_prepare(struct agent *a, enum child kind, unsigned long flags,
			  const pid_t *tid, unsigned int size)
{
	memset(&a->spawn, 0, sizeof(a->spawn));
	a->spawn.kind = kind;
	a->spawn.flags = flags;
	a->spawn.size = size;
	memcpy(a->spawn.tid, tid, size * sizeof(*tid));
}

static long spawn_array(struct agent *a, enum child kind, unsigned long flags,
			const pid_t *tid, unsigned int size)
{
	spawn_prepare(a, kind, flags, tid, size);
	return call(a, do_spawn, 0);
}

static long spawn(struct agent *a, enum child kind, unsigned long flags)
{
	return spawn_array(a, kind, flags, NULL, 0);
}

/* The tids which are asked for, innermost first */
#define spawn_tids(a, kind, flags, ...)					\
	spawn_array(a, kind, flags, (const pid_t []){ __VA_ARGS__ },	\
		    sizeof((const pid_t []){ __VA_ARGS__ }) / sizeof(pid_t))

static struct agent *alloc_agent(struct __test_metadata *_metadata)
{
	ASSERT_LT(shared->nr_agents, MAX_AGENTS);
	return &shared->agents[shared->nr_agents++];
}

/* As soon as the agent runs */
static void agent_created(struct __test_metadata *_metadata, struct agent *a)
{
	ASSERT_GT(a->pids.nr, proc_base);
	a->pidfd = sys_pidfd_open(a->pids.nr_ns[proc_base]);
	ASSERT_GE(a->pidfd, 0);
}

static struct agent *new_agent(struct __test_metadata *_metadata,
			       struct agent *by, unsigned long flags)
{
	struct agent *a = alloc_agent(_metadata);

	spawn_prepare(by, CHILD_AGENT, flags, NULL, 0);
	by->spawn.slot = a - shared->agents;
	a->by = by;
	a->pid = call(by, do_spawn, 0);
	ASSERT_GT(a->pid, 0) {
		TH_LOG("clone3: %s", strerror(-a->pid));
	}
	agent_created(_metadata, a);
	return a;
}

static void wait_dead(struct __test_metadata *_metadata, int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	ASSERT_EQ(1, poll(&pfd, 1, -1));
}

/*
 * What agents can do
 */

static long do_kill(struct agent *a)
{
	return kill(a->arg, SIGKILL) ? -errno : 0;
}

static long do_signal_0(struct agent *a)
{
	return kill(a->arg, 0) ? -errno : 0;
}

/* Returns the status. */
static long do_reap(struct agent *a)
{
	int status;

	return waitpid(a->arg, &status, __WALL) < 0 ? -errno : status;
}

static long do_pidfd_open(struct agent *a)
{
	int fd = sys_pidfd_open(a->arg);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static long do_unshare(struct agent *a)
{
	return unshare(a->arg) ? -errno : 0;
}

/* Have children in the pid namespace in which process @arg is. */
static long do_join(struct agent *a)
{
	int fd = sys_pidfd_open(a->arg);
	int ret;

	if (fd < 0)
		return -errno;
	ret = setns(fd, CLONE_NEWPID) ? -errno : 0;
	close(fd);
	return ret;
}

/*
 * Get the pid namespace in which process @arg has its children, which need not
 * have an init yet.  Returns the fd.
 */
static long do_get_children_ns(struct agent *a)
{
	int fd = sys_pidfd_open(a->arg);
	int ret;

	if (fd < 0)
		return -errno;
	ret = ioctl(fd, PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE, 0);
	if (ret < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static long do_setns(struct agent *a)
{
	int ret = setns(a->arg, CLONE_NEWPID) ? -errno : 0;

	close(a->arg);
	return ret;
}

/* Set it to @arg and return that; before 6.14 it is the machine's, and stays. */
static long do_pid_max(struct agent *a)
{
	char buf[32];

	if (getpid() != 1)
		return -EINVAL;
	if (kernel_before(6, 14))
		return read_at(AT_FDCWD, "/proc/sys/kernel/pid_max", buf,
			       sizeof(buf)) ?: atoi(buf);
	return write_num("/proc/sys/kernel/pid_max", a->arg) ?: a->arg;
}

static long do_set_last_pid(struct agent *a)
{
	return write_num("/proc/sys/kernel/ns_last_pid", a->arg);
}

/* Keep these capabilities only. */
static long do_capset(struct agent *a)
{
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	unsigned long long caps = a->arg;
	struct __user_cap_data_struct data[2] = {
		{ .effective = caps, .permitted = caps },
		{ .effective = caps >> 32, .permitted = caps >> 32 },
	};

	return syscall(__NR_capset, &hdr, data) ? -errno : 0;
}

static long do_open_proc(struct agent *a)
{
	a->procfd = detached_mount("proc");
	return a->procfd < 0 ? a->procfd : 0;
}

static long do_read_pids(struct agent *a)
{
	char name[32];

	snprintf(name, sizeof(name), "%lld/status", a->arg);
	return read_pids(a->procfd, name, &a->spawn.pids);
}

/*
 * The fixture: the first agent is in the namespace of the test, and root in
 * its own user namespace if the test is not root.
 */

static int become_root(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (!unshare(CLONE_NEWNS))
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	write_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (write_at(AT_FDCWD, "/proc/self/uid_map", map))
		return -EPERM;
	snprintf(map, sizeof(map), "0 %u 1", gid);
	if (write_at(AT_FDCWD, "/proc/self/gid_map", map))
		return -EPERM;
	return 0;
}

static long do_become_root(struct agent *a)
{
	int ret = become_root();

	(void)a;
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return ret;
}

FIXTURE(pid)
{
	struct agent *top;
	int depth;	/* the number of levels @top has */
	int capable;	/* in how many of those it may set tids */
};

FIXTURE_SETUP(pid)
{
	struct spawn s = { .kind = CHILD_AGENT };
	pid_t tid[MAX_TIDS];
	struct pids pids;
	int ready[2];
	long ret;
	int i;
	char c;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
	for (i = 0; i < MAX_AGENTS; i++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
					shared->agents[i].sock));
		shared->agents[i].pidfd = -1;
	}
	if (read_pids(AT_FDCWD, "/proc/self/status", &pids) || !pids.nr)
		SKIP(return, "no NSpid in /proc/self/status");
	proc_base = pids.nr - 1;

	ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
	self->top = alloc_agent(_metadata);
	self->top->pid = fork();
	ASSERT_GE(self->top->pid, 0);
	if (!self->top->pid) {
		/* Have agents notice if the test is gone. */
		for (i = 0; i < MAX_AGENTS; i++)
			close(shared->agents[i].sock[0]);
		child_main(&s, ready[1]);
	}
	close(ready[1]);
	ASSERT_EQ(0, read(ready[0], &c, 1));
	close(ready[0]);
	agent_created(_metadata, self->top);

	ret = call(self->top, do_become_root, 0);
	if (ret)
		SKIP(return, "neither root nor user namespaces");
	ret = spawn(self->top, CHILD_BARE, CLONE_NEWPID);
	if (ret == -EINVAL || ret == -EPERM)
		SKIP(return, "no pid namespaces");
	ASSERT_GT(ret, 0);

	/* Pid 1 is taken everywhere; too many levels are refused before. */
	for (i = 0; i < MAX_TIDS; i++)
		tid[i] = 1;
	for (i = 1; i <= MAX_PID_NS_LEVEL; i++) {
		ret = spawn_array(self->top, CHILD_BARE, 0, tid, i);
		if (ret == -EINVAL)
			break;
		ASSERT_TRUE(ret == -EEXIST || ret == -EPERM);
		if (ret == -EEXIST)
			self->capable = i;
		self->depth = i;
	}
	ASSERT_GT(self->depth, 0);
}

FIXTURE_TEARDOWN(pid)
{
	int i;

	/* First those which were created last; a dead one does not mind. */
	for (i = shared->nr_agents; i-- > 0;) {
		struct agent *a = &shared->agents[i];

		if (a->pidfd >= 0) {
			syscall(__NR_pidfd_send_signal, a->pidfd, SIGKILL,
				NULL, 0);
			if (a->by && !a->by->busy)
				call(a->by, do_reap, a->pid);
			close(a->pidfd);
		}
	}
	if (shared->agents[0].pid > 0)
		waitpid(shared->agents[0].pid, NULL, 0);
	EXPECT_EQ(0, shared->complaints);
	munmap(shared, sizeof(*shared));
}

/* Kill an agent and wait until it is gone. */
static void end_agent(struct __test_metadata *_metadata, struct agent *a)
{
	ASSERT_EQ(0, call(a->by, do_kill, a->pid));
	ASSERT_EQ(SIGKILL, call(a->by, do_reap, a->pid));
	close(a->pidfd);
	a->pidfd = -1;
}

/*
 * The model, and all combinations of tids
 */

static int expected(const struct matrix *m, const pid_t *tid, unsigned int size)
{
	unsigned int i;

	for (i = 0; i < size; i++) {
		const struct level *l = &m->level[i];

		if (tid[i] < 1 || tid[i] >= l->pid_max)
			return -EINVAL;
		if (!l->capable)
			return -EPERM;
	}
	for (i = 0; i < size; i++) {
		const struct level *l = &m->level[i];

		if (l->has_init && (tid[i] == 1 || tid[i] == l->tid[TAKEN]))
			return -EEXIST;
		if (!l->has_init && tid[i] != 1)
			return -EINVAL;
	}
	return m->dead ? -ENOMEM : 0;
}

static bool got_tids(const struct spawn *s, long pid)
{
	unsigned int up = s->flags & CLONE_NEWPID ? 1 : 0;
	unsigned int i;

	for (i = 0; i < s->size; i++)
		if (pid_up(&s->pids, i) != s->tid[i])
			return false;
	return pid_up(&s->pids, up) == pid;
}

static void matrix_try(struct agent *a, const pid_t *tid, unsigned int size)
{
	struct matrix *m = &a->matrix;
	int want = expected(m, tid, size);
	long ret;

	spawn_prepare(a, CHILD_EXIT, m->flags, tid, size);
	ret = do_spawn(a);
	if (ret < 0)
		m->failures++;
	else
		m->successes++;
	CHECK(want ? ret == want : ret > 0 && got_tids(&a->spawn, ret),
	      "size %u, tids %d %d %d %d: %ld, expected %d", size, tid[0],
	      tid[1], tid[2], tid[3], ret, want);
}

static pid_t free_tid(const struct level *l, unsigned int seq)
{
	return l->tid[FREE] - (l->spread ? seq % l->spread : 0);
}

static long do_matrix(struct agent *a)
{
	struct matrix *m = &a->matrix;
	unsigned int size, i, n, combination, nr = 1, seq = 0;
	pid_t tid[4], free[4];

	for (size = 0; size <= m->nr; size++, nr *= NR_KINDS) {
		for (combination = 0; combination < nr; combination++, seq++) {
			memset(tid, 0, sizeof(tid));
			memset(free, 0, sizeof(free));
			for (i = 0, n = combination; i < size; i++) {
				free[i] = free_tid(&m->level[i], seq);
				tid[i] = n % NR_KINDS == FREE ? free[i] :
					m->level[i].tid[n % NR_KINDS];
				n /= NR_KINDS;
			}
			matrix_try(a, tid, size);

			/*
			 * Nothing must be left of such tids.  It takes a few
			 * rounds to come by all of them.
			 */
			if (seq % 4)
				continue;
			for (i = size; i && expected(m, free, i); i--)
				;
			if (i)
				matrix_try(a, free, i);
		}
	}
	return 0;
}

/*
 * Three namespaces of our own within each other, ns[0] being the innermost.
 * Level @userns belongs to a user namespace of its own, from which there are
 * no privileges in the levels further out.
 */
struct nest {
	struct agent *ns[3];
	struct agent *worker;
};

static void make_nest(struct __test_metadata *_metadata, struct agent *top,
		      struct nest *nest, int userns)
{
	pid_t pid_max[] = { 10000, 20000, 30000 };
	static const pid_t pinned[] = { 71, 72, 73 };
	struct agent *by = top;
	struct matrix *m;
	int i;

	for (i = 2; i >= 0; i--) {
		nest->ns[i] = new_agent(_metadata, by, CLONE_NEWPID |
					(i == userns ? CLONE_NEWUSER : 0));
		by = nest->ns[i];
		ASSERT_EQ(1, pid_up(&by->pids, 0));
		pid_max[i] = call(by, do_pid_max, pid_max[i]);
		ASSERT_LT(1000, pid_max[i]);
	}
	nest->worker = new_agent(_metadata, by, 0);
	m = &nest->worker->matrix;
	m->nr = 3;
	for (i = 0; i < 3; i++) {
		m->level[i] = (struct level) {
			.tid = { pid_max[i] - 1, pinned[i], 0, -1, pid_max[i] },
			.spread = 5,
			.pid_max = pid_max[i],
			.has_init = true,
			.capable = userns < 0 || i <= userns,
		};
	}
	/* One by one, as no process may have privileges in all levels. */
	for (i = 0; i < 3; i++)
		ASSERT_EQ(pinned[i], spawn_tids(nest->ns[i], CHILD_SLEEP, 0,
						pinned[i]));
}

static void run_matrix(struct __test_metadata *_metadata, struct agent *a)
{
	ASSERT_EQ(0, call(a, do_matrix, 0));
	EXPECT_EQ(0, shared->complaints);
	EXPECT_GT(a->matrix.failures, 0);
}

TEST_F_TIMEOUT(pid, set_tid_errors, LONG_TIMEOUT)
{
	struct nest nest;

	make_nest(_metadata, self->top, &nest, -1);
	run_matrix(_metadata, nest.worker);
	EXPECT_GT(nest.worker->matrix.successes, 30);
}

/* More levels than those of our own, and more than there are */
TEST_F(pid, set_tid_outer_levels)
{
	pid_t tid[MAX_TIDS];
	struct nest nest;
	int levels, i, last;

	make_nest(_metadata, self->top, &nest, -1);
	levels = self->depth + 3;
	for (i = 0; i < MAX_TIDS; i++)
		tid[i] = 1;
	tid[0] = 500;
	tid[1] = 600;
	tid[2] = 700;
	EXPECT_EQ(500, spawn_array(nest.worker, CHILD_EXIT, 0, tid, 3));

	/* There is a pid 1 outside, too. */
	for (i = 4; i <= levels; i++) {
		last = i - 3 <= self->capable ? -EEXIST : -EPERM;
		EXPECT_EQ(last, spawn_array(nest.worker, CHILD_EXIT, 0, tid, i));
	}
	tid[3] = 0;
	for (i = 4; i <= levels; i++)
		EXPECT_EQ(-EINVAL,
			  spawn_array(nest.worker, CHILD_EXIT, 0, tid, i));
	tid[3] = 1;

	/* Too many are refused whatever the tids. */
	for (i = levels + 1; i < MAX_TIDS; i++) {
		tid[0] = 500;
		EXPECT_EQ(-EINVAL,
			  spawn_array(nest.worker, CHILD_EXIT, 0, tid, i));
		tid[0] = 1;
		EXPECT_EQ(-EINVAL,
			  spawn_array(nest.worker, CHILD_EXIT, 0, tid, i));
	}

	tid[0] = 500;
	EXPECT_EQ(500, spawn_array(nest.worker, CHILD_EXIT, 0, tid, 3));
	EXPECT_TRUE(got_tids(&nest.worker->spawn, 500));
}

/* Privileges in the innermost levels only, which is the only way around */
TEST_F_TIMEOUT(pid, set_tid_capable_in_inner_two, LONG_TIMEOUT)
{
	struct nest nest;

	make_nest(_metadata, self->top, &nest, 1);
	run_matrix(_metadata, nest.worker);
	EXPECT_GT(nest.worker->matrix.successes, 20);
}

TEST_F_TIMEOUT(pid, set_tid_capable_in_innermost, LONG_TIMEOUT)
{
	struct nest nest;

	make_nest(_metadata, self->top, &nest, 0);
	run_matrix(_metadata, nest.worker);
	EXPECT_GT(nest.worker->matrix.successes, 20);
}

TEST_F_TIMEOUT(pid, set_tid_not_capable, LONG_TIMEOUT)
{
	struct nest nest;
	unsigned int i;

	make_nest(_metadata, self->top, &nest, -1);
	for (i = 0; i < 3; i++)
		nest.worker->matrix.level[i].capable = false;

	/* All but those two */
	ASSERT_EQ(0, call(nest.worker, do_capset,
			  ((1ULL << CAP_CHECKPOINT_RESTORE) - 1) &
			  ~(1ULL << CAP_SYS_ADMIN)));
	run_matrix(_metadata, nest.worker);
	/* Only without set_tid */
	EXPECT_EQ(1, nest.worker->matrix.successes);
}

TEST_F_TIMEOUT(pid, set_tid_checkpoint_restore, LONG_TIMEOUT)
{
	struct nest nest;

	make_nest(_metadata, self->top, &nest, -1);
	ASSERT_EQ(0, call(nest.worker, do_capset,
			  1ULL << CAP_CHECKPOINT_RESTORE));
	run_matrix(_metadata, nest.worker);
	EXPECT_GT(nest.worker->matrix.successes, 30);
}

/*
 * A namespace which is still to come
 */

/* Put a namespace without init into the matrix, in front of the others. */
static void add_new_level(struct matrix *m)
{
	m->level[2] = m->level[1];
	m->level[1] = m->level[0];
	m->level[0] = (struct level) {
		.tid = { 1, 2, 0, -1, INT_MAX },
		.pid_max = INT_MAX,
		.capable = true,
	};
}

TEST_F_TIMEOUT(pid, new_namespace, LONG_TIMEOUT)
{
	struct nest nest;

	make_nest(_metadata, self->top, &nest, -1);
	add_new_level(&nest.worker->matrix);
	nest.worker->matrix.flags = CLONE_NEWPID;
	run_matrix(_metadata, nest.worker);
	EXPECT_GT(nest.worker->matrix.successes, 20);
}

/* The creator of a user namespace may do anything in there, but only there. */
TEST_F_TIMEOUT(pid, new_namespace_new_user, LONG_TIMEOUT)
{
	struct nest nest;
	struct matrix *m;

	make_nest(_metadata, self->top, &nest, -1);
	m = &nest.worker->matrix;
	add_new_level(m);
	m->flags = CLONE_NEWPID | CLONE_NEWUSER;
	m->level[1].capable = false;
	m->level[2].capable = false;
	ASSERT_EQ(0, call(nest.worker, do_capset, 0));
	run_matrix(_metadata, nest.worker);
	EXPECT_GT(nest.worker->matrix.successes, 5);
}

/* Without any privileges, EPERM comes before EINVAL for the lack of an init. */
TEST_F_TIMEOUT(pid, new_namespace_not_capable, LONG_TIMEOUT)
{
	struct nest nest;
	struct matrix *m;
	unsigned int i;

	make_nest(_metadata, self->top, &nest, -1);
	m = &nest.worker->matrix;
	add_new_level(m);
	for (i = 0; i < 3; i++)
		m->level[i].capable = false;
	ASSERT_EQ(0, call(nest.worker, do_unshare, CLONE_NEWPID));
	ASSERT_EQ(0, call(nest.worker, do_capset, 0));
	EXPECT_EQ(-EPERM, spawn_tids(nest.worker, CHILD_EXIT, 0, 2));
	EXPECT_EQ(-EPERM, spawn_tids(nest.worker, CHILD_EXIT, 0, 1));
	EXPECT_EQ(-EPERM, spawn_tids(nest.worker, CHILD_EXIT, 0, 2, 0));
	EXPECT_EQ(-EPERM, spawn_tids(nest.worker, CHILD_EXIT, 0, 1, 0));
	EXPECT_EQ(-EINVAL, spawn_tids(nest.worker, CHILD_EXIT, 0, 0, 1));

	/* None of that stands in the way of init. */
	EXPECT_LT(0, spawn(nest.worker, CHILD_EXIT, 0));
	EXPECT_EQ(1, pid_up(&nest.worker->spawn.pids, 0));
}

/*
 * Which numbers are given
 */

/*
 * Namespaces whose init has died
 */

TEST_F_TIMEOUT(pid, dead_namespace, LONG_TIMEOUT)
{
	struct agent *outer, *init, *q, *weak;
	struct matrix *m;
	int zombie, i;

	/* Children of @q are in the namespace of @init, but not @q itself. */
	outer = new_agent(_metadata, self->top, CLONE_NEWPID);
	init = new_agent(_metadata, outer, CLONE_NEWPID);
	q = new_agent(_metadata, outer, 0);
	ASSERT_EQ(0, call(q, do_join, init->pid));
	weak = new_agent(_metadata, outer, 0);
	ASSERT_EQ(0, call(weak, do_join, init->pid));
	ASSERT_EQ(0, call(weak, do_capset, 0));
	ASSERT_EQ(70, spawn_tids(q, CHILD_SLEEP, 0, 5, 70));
	ASSERT_EQ(5, pid_up(&q->spawn.pids, 0));
	zombie = sys_pidfd_open(q->spawn.pids.nr_ns[proc_base]);
	ASSERT_GE(zombie, 0);

	/* As long as that child is not reaped, init cannot be reaped, either. */
	ASSERT_EQ(0, call(outer, do_kill, init->pid));
	wait_dead(_metadata, zombie);
	close(zombie);
	EXPECT_EQ(-ENOMEM, spawn(q, CHILD_EXIT, 0));
	EXPECT_EQ(-ENOMEM, spawn_tids(q, CHILD_EXIT, 0, 6));
	EXPECT_EQ(-EEXIST, spawn_tids(q, CHILD_EXIT, 0, 5));
	EXPECT_EQ(-EEXIST, spawn_tids(q, CHILD_EXIT, 0, 1));
	EXPECT_EQ(-EINVAL, spawn_tids(q, CHILD_EXIT, 0, 0));
	EXPECT_EQ(-ENOMEM, spawn_tids(q, CHILD_EXIT, 0, 6, 71));
	EXPECT_EQ(-EEXIST, spawn_tids(q, CHILD_EXIT, 0, 6, 70));
	EXPECT_EQ(-EINVAL, spawn_tids(q, CHILD_EXIT, 0, 6, 0));

	m = &q->matrix;
	m->dead = true;
	m->nr = 2;
	m->level[0] = (struct level) {
		.tid = { 90, 5, 0, -1, INT_MAX },
		.spread = 5,
		.pid_max = INT_MAX,
		.has_init = true,
		.capable = true,
	};
	m->level[1] = m->level[0];
	m->level[1].tid[TAKEN] = 70;
	run_matrix(_metadata, q);
	EXPECT_EQ(0, m->successes);
	weak->matrix = *m;
	for (i = 0; i < 2; i++)
		weak->matrix.level[i].capable = false;
	run_matrix(_metadata, weak);
	EXPECT_EQ(0, weak->matrix.successes);

	/* None of that got in the way of the end. */
	EXPECT_EQ(SIGKILL, call(q, do_reap, 70));
	EXPECT_EQ(SIGKILL, call(outer, do_reap, init->pid));
	EXPECT_EQ(-ENOMEM, spawn(q, CHILD_EXIT, 0));
	EXPECT_EQ(-ENOMEM, spawn_tids(q, CHILD_EXIT, 0, 5));
	EXPECT_EQ(-ENOMEM, spawn_tids(q, CHILD_EXIT, 0, 1));
	EXPECT_EQ(-EINVAL, spawn_tids(q, CHILD_EXIT, 0, 0));
	EXPECT_EQ(-EEXIST, spawn_tids(q, CHILD_EXIT, 0, 5, q->pid));
	EXPECT_EQ(70, spawn_tids(outer, CHILD_EXIT, 0, 70));
}

TEST_F(pid, dead_unshared_namespace)
{
	struct agent *a;
	int i;

	a = new_agent(_metadata, self->top, 0);
	ASSERT_EQ(0, call(a, do_unshare, CLONE_NEWPID));
	ASSERT_LT(0, spawn(a, CHILD_EXIT, 0));
	ASSERT_EQ(1, pid_up(&a->spawn.pids, 0));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(-ENOMEM, spawn(a, CHILD_EXIT, 0));
	EXPECT_EQ(-EINVAL, spawn_tids(a, CHILD_EXIT, 0, 0));
	EXPECT_EQ(-ENOMEM, spawn_tids(a, CHILD_EXIT, 0, 1));
}

/* The namespace itself never had an init, but the one around it is dead. */
TEST_F(pid, dead_parent_namespace)
{
	struct agent *init, *x, *outside;
	long fd;
	int i;

	init = new_agent(_metadata, self->top, CLONE_NEWPID);
	x = new_agent(_metadata, init, 0);
	outside = new_agent(_metadata, self->top, 0);
	ASSERT_EQ(0, call(x, do_unshare, CLONE_NEWPID));
	fd = call(outside, do_get_children_ns, x->pids.nr_ns[proc_base]);
	if (fd == -ENOTTY)
		SKIP(return, "no PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE");
	ASSERT_GE(fd, 0);

	end_agent(_metadata, init);
	ASSERT_EQ(0, call(outside, do_setns, fd));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(-EINVAL, spawn_tids(outside, CHILD_BARE, 0, 2));
		EXPECT_EQ(-ENOMEM, spawn(outside, CHILD_BARE, 0));
	}
}

/*
 * The first process of a namespace
 */

/* @child is known to be the first one; have it prove that it really is init. */
static void expect_init(struct __test_metadata *_metadata, struct agent *init)
{
	int orphan;

	EXPECT_EQ(1, pid_up(&init->pids, 0));
	EXPECT_EQ(2, spawn(init, CHILD_EXIT, 0));
	EXPECT_EQ(3, spawn(init, CHILD_SLEEP, 0));
	EXPECT_EQ(5, spawn_tids(init, CHILD_EXIT, 0, 5));
	ASSERT_EQ(4, spawn(init, CHILD_SLEEP, 0));
	orphan = sys_pidfd_open(init->spawn.pids.nr_ns[proc_base]);
	ASSERT_GE(orphan, 0);

	/* It takes its children along. */
	end_agent(_metadata, init);
	wait_dead(_metadata, orphan);
	close(orphan);
	EXPECT_EQ(-ENOMEM, spawn(init->by, CHILD_EXIT, 0));
}

/*
 * Stop clone3() at its very end: CLONE_PIDFD has it write to a page which is
 * not there until userfaultfd says so.
 */

static long do_make_page(struct agent *a)
{
	struct uffdio_api api = { .api = UFFD_API, .features = a->arg };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	long size = sysconf(_SC_PAGESIZE);

	a->uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (a->uffd < 0 || ioctl(a->uffd, UFFDIO_API, &api))
		return -EOPNOTSUPP;
	a->page = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->page == MAP_FAILED)
		return -errno;
	reg.range.start = (uintptr_t)a->page;
	reg.range.len = size;
	return ioctl(a->uffd, UFFDIO_REGISTER, &reg) ? -errno : 0;
}

struct stalled {
	struct agent *agent;
	int uffd;
};

/* Returns false if that is not possible here. */
static bool stall_prepare(struct __test_metadata *_metadata, struct stalled *st,
			  struct agent *a, uint64_t features)
{
	long ret = call(a, do_make_page, features);

	if (ret == -EOPNOTSUPP)
		return false;
	ASSERT_EQ(0, ret);
	st->agent = a;
	st->uffd = syscall(__NR_pidfd_getfd, a->pidfd, a->uffd, 0);
	ASSERT_GE(st->uffd, 0);
	return true;
}

static void stall(struct __test_metadata *_metadata, struct stalled *st,
		  enum child kind, const pid_t *tid, unsigned int size)
{
	struct agent *a = st->agent;
	struct pollfd pfd[2] = {
		{ .fd = st->uffd, .events = POLLIN },
		{ .fd = a->sock[0], .events = POLLIN },
	};
	struct uffd_msg msg;

	spawn_prepare(a, kind, CLONE_PIDFD, tid, size);
	a->spawn.pidfd = a->page;
	if (kind == CHILD_AGENT)
		a->spawn.slot = alloc_agent(_metadata) - shared->agents;
	call_start(a, do_spawn, 0);
	ASSERT_LE(1, poll(pfd, 2, -1));
	ASSERT_FALSE(pfd[1].revents) {
		TH_LOG("clone3 did not stop: %ld", a->ret);
	}
	ASSERT_EQ((ssize_t)sizeof(msg), read(st->uffd, &msg, sizeof(msg)));
	ASSERT_EQ(UFFD_EVENT_PAGEFAULT, msg.event);
	ASSERT_EQ((uintptr_t)a->page, msg.arg.pagefault.address);
}

/* Let it go on; returns what came out. */
static long resume(struct __test_metadata *_metadata, struct stalled *st)
{
	struct uffdio_zeropage zero = {
		.range.start = (uintptr_t)st->agent->page,
		.range.len = sysconf(_SC_PAGESIZE),
	};

	ASSERT_EQ(0, ioctl(st->uffd, UFFDIO_ZEROPAGE, &zero));
	close(st->uffd);
	return call_wait(st->agent);
}

/* Let it fail; returns what came out. */
static long resume_efault(struct __test_metadata *_metadata, struct stalled *st)
{
	struct uffdio_poison poison = {
		.range.start = (uintptr_t)st->agent->page,
		.range.len = sysconf(_SC_PAGESIZE),
	};

	ASSERT_EQ(0, ioctl(st->uffd, UFFDIO_POISON, &poison));
	close(st->uffd);
	return call_wait(st->agent);
}

/*
 * @a has a namespace for its children which @b shares.  All are in @outer,
 * in whose namespace they look around.
 */
struct init_race {
	struct agent *outer;
	struct agent *a;
	struct agent *b;
	struct stalled st;
};

/* Whether the kernel is a process itself. */
static bool user_mode_linux(void)
{
	char line[256];
	bool found = false;
	FILE *file = fopen("/proc/cpuinfo", "r");

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, "User Mode Linux");
	if (file)
		fclose(file);
	return found;
}

/* Returns why it is not possible, or NULL. */
static const char *init_race_prepare(struct __test_metadata *_metadata,
				     struct agent *top, struct init_race *r,
				     uint64_t features)
{
	long fd;

	if ((features & UFFD_FEATURE_POISON) && user_mode_linux())
		return "User-Mode Linux does not survive a fault on poisoned memory";
	r->outer = new_agent(_metadata, top, CLONE_NEWPID);
	r->a = new_agent(_metadata, r->outer, 0);
	r->b = new_agent(_metadata, r->outer, 0);
	ASSERT_EQ(0, call(r->a, do_unshare, CLONE_NEWPID));
	fd = call(r->b, do_get_children_ns, r->a->pid);
	if (fd == -ENOTTY)
		return "no PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE";
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, call(r->b, do_setns, fd));
	if (!stall_prepare(_metadata, &r->st, r->a, features))
		return "no userfaultfd for faults of the kernel, or no UFFDIO_POISON";
	return NULL;
}

#define STALLED_PID	1234

TEST_F(pid, init_is_first)
{
	const pid_t tids[] = { 1, STALLED_PID };
	struct agent *init;
	struct init_race r;
	const char *why;
	pid_t next;

	why = init_race_prepare(_metadata, self->top, &r, 0);
	if (why)
		SKIP(return, "%s", why);
	stall(_metadata, &r.st, CHILD_AGENT, tids, 2);

	/* It is going to be init, and until it is, nobody else can be there. */
	EXPECT_EQ(-EINVAL, spawn(r.b, CHILD_BARE, 0));
	EXPECT_EQ(-EEXIST, spawn_tids(r.b, CHILD_BARE, 0, 1));
	EXPECT_EQ(-EEXIST, spawn_tids(r.b, CHILD_BARE, 0, 1, 900));
	EXPECT_EQ(-EINVAL, spawn_tids(r.b, CHILD_BARE, 0, 7));
	EXPECT_EQ(-EINVAL, spawn_tids(r.b, CHILD_BARE, 0, 7, STALLED_PID));
	EXPECT_EQ(-EEXIST, spawn_tids(r.outer, CHILD_BARE, 0, STALLED_PID));
	EXPECT_EQ(900, spawn_tids(r.outer, CHILD_BARE, 0, 900));

	EXPECT_EQ(STALLED_PID, resume(_metadata, &r.st));
	init = &shared->agents[r.a->spawn.slot];
	init->by = r.a;
	init->pid = STALLED_PID;
	ASSERT_EQ(1, pid_up(&init->pids, 0));
	EXPECT_EQ(STALLED_PID, pid_up(&init->pids, 1));
	agent_created(_metadata, init);

	/* Now everybody can. */
	EXPECT_EQ(-EEXIST, spawn_tids(r.b, CHILD_EXIT, 0, 1));
	EXPECT_LT(0, spawn_tids(r.b, CHILD_EXIT, 0, 7));
	EXPECT_EQ(7, pid_up(&r.b->spawn.pids, 0));
	/* In sequence, though the one that came too early may have used up 2. */
	EXPECT_LT(0, spawn(r.b, CHILD_EXIT, 0));
	next = pid_up(&r.b->spawn.pids, 0);
	EXPECT_LE(2, next);
	EXPECT_GE(3, next);
	EXPECT_LT(0, spawn(r.a, CHILD_EXIT, 0));
	EXPECT_EQ(next + 1, pid_up(&r.a->spawn.pids, 0));
	/* It was given back. */
	EXPECT_LT(0, spawn_tids(r.b, CHILD_EXIT, 0, 2));
	EXPECT_EQ(2, pid_up(&r.b->spawn.pids, 0));
	end_agent(_metadata, init);
	EXPECT_EQ(-ENOMEM, spawn(r.b, CHILD_EXIT, 0));
}

/* Nobody can find a process before it is complete. */
TEST_F(pid, half_made_is_invisible)
{
	/* A number that has no task yet; 6.18 is the first release that calls it none. */
	const long none = kernel_before(6, 18) ? -EINVAL : -ESRCH;
	const pid_t tids[] = { 1, STALLED_PID };
	struct init_race r;
	const char *why;
	long ret;

	why = init_race_prepare(_metadata, self->top, &r, 0);
	if (why)
		SKIP(return, "%s", why);
	ret = call(r.outer, do_open_proc, 0);
	if (ret == -EPERM)
		SKIP(return, "cannot mount proc");
	ASSERT_EQ(0, ret);

	EXPECT_EQ(-ENOENT, call(r.outer, do_read_pids, STALLED_PID));
	stall(_metadata, &r.st, CHILD_SLEEP, tids, 2);
	EXPECT_EQ(-ESRCH, call(r.outer, do_signal_0, STALLED_PID));
	EXPECT_EQ(none, call(r.outer, do_pidfd_open, STALLED_PID));
	EXPECT_EQ(-ENOENT, call(r.outer, do_read_pids, STALLED_PID));
	/* Not found is not the same as free. */
	EXPECT_EQ(-EEXIST, spawn_tids(r.outer, CHILD_BARE, 0, STALLED_PID));

	EXPECT_EQ(STALLED_PID, resume(_metadata, &r.st));
	EXPECT_EQ(0, call(r.outer, do_signal_0, STALLED_PID));
	EXPECT_EQ(0, call(r.outer, do_pidfd_open, STALLED_PID));
	EXPECT_EQ(0, call(r.outer, do_read_pids, STALLED_PID));
	EXPECT_EQ(2, r.outer->spawn.pids.nr);
	EXPECT_EQ(STALLED_PID, pid_up(&r.outer->spawn.pids, 1));
	EXPECT_EQ(1, pid_up(&r.outer->spawn.pids, 0));

	/* And nobody can any more after it is gone. */
	EXPECT_EQ(0, call(r.a, do_kill, STALLED_PID));
	EXPECT_EQ(SIGKILL, call(r.a, do_reap, STALLED_PID));
	EXPECT_EQ(-ESRCH, call(r.outer, do_signal_0, STALLED_PID));
	EXPECT_EQ(-ESRCH, call(r.outer, do_pidfd_open, STALLED_PID));
	EXPECT_EQ(-ENOENT, call(r.outer, do_read_pids, STALLED_PID));
	EXPECT_EQ(STALLED_PID, spawn_tids(r.outer, CHILD_EXIT, 0, STALLED_PID));
}

/* The first one fails late; the next one becomes init. */
static void init_fails(struct __test_metadata *_metadata, struct agent *top,
		       bool other)
{
	const pid_t tids[] = { 1, STALLED_PID };
	struct init_race r;
	const char *why;

	why = init_race_prepare(_metadata, top, &r, UFFD_FEATURE_POISON);
	if (why)
		SKIP(return, "%s", why);
	stall(_metadata, &r.st, CHILD_EXIT, tids, 2);
	EXPECT_EQ(-EEXIST, spawn_tids(r.b, CHILD_BARE, 0, 1));
	ASSERT_EQ(-EFAULT, resume_efault(_metadata, &r.st));
	EXPECT_EQ(STALLED_PID, spawn_tids(r.outer, CHILD_EXIT, 0, STALLED_PID));
	expect_init(_metadata, new_agent(_metadata, other ? r.b : r.a, 0));
}

TEST_F(pid, init_fails_and_other_task_is_next)
{
	init_fails(_metadata, self->top, true);
}

TEST_F(pid, init_fails_and_same_task_is_next)
{
	init_fails(_metadata, self->top, false);
}

/* Init dies when somebody else is about to join its namespace. */
TEST_F(pid, init_dies_during_clone)
{
	struct agent *outer, *init, *q;
	struct stalled st;
	int other;

	outer = new_agent(_metadata, self->top, CLONE_NEWPID);
	init = new_agent(_metadata, outer, CLONE_NEWPID);
	q = new_agent(_metadata, outer, 0);
	ASSERT_EQ(0, call(q, do_join, init->pid));
	if (!stall_prepare(_metadata, &st, q, 0))
		SKIP(return, "no userfaultfd for faults of the kernel");
	ASSERT_EQ(60, spawn_tids(q, CHILD_SLEEP, 0, 6, 60));
	other = sys_pidfd_open(q->spawn.pids.nr_ns[proc_base]);
	ASSERT_GE(other, 0);

	stall(_metadata, &st, CHILD_EXIT, (pid_t []){ 5, 50 }, 2);
	EXPECT_EQ(-EEXIST, spawn_tids(init, CHILD_BARE, 0, 5));
	ASSERT_EQ(0, call(outer, do_kill, init->pid));
	wait_dead(_metadata, other);
	close(other);

	/* Still in use */
	EXPECT_EQ(-EEXIST, spawn_tids(outer, CHILD_BARE, 0, 50));
	EXPECT_EQ(-ENOMEM, resume(_metadata, &st));
	EXPECT_EQ(50, spawn_tids(outer, CHILD_EXIT, 0, 50));
	EXPECT_EQ(-ENOMEM, spawn(q, CHILD_EXIT, 0));
	EXPECT_EQ(SIGKILL, call(q, do_reap, 60));
	EXPECT_EQ(SIGKILL, call(outer, do_reap, init->pid));
}

/*
 * The namespace itself never had an init.  The one around it dies when somebody
 * outside of both is about to create that, whom nobody would kill afterwards.
 */
TEST_F(pid, parent_init_dies_during_clone)
{
	struct agent *outer, *init, *x, *q;
	struct stalled st;
	long fd;

	outer = new_agent(_metadata, self->top, CLONE_NEWPID);
	init = new_agent(_metadata, outer, CLONE_NEWPID);
	x = new_agent(_metadata, init, 0);
	q = new_agent(_metadata, outer, 0);
	ASSERT_EQ(0, call(x, do_unshare, CLONE_NEWPID));
	fd = call(q, do_get_children_ns, pid_up(&x->pids, 1));
	if (fd == -ENOTTY)
		SKIP(return, "no PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE");
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, call(q, do_setns, fd));
	if (!stall_prepare(_metadata, &st, q, 0))
		SKIP(return, "no userfaultfd for faults of the kernel");

	stall(_metadata, &st, CHILD_EXIT, (pid_t []){ 1, 40, 50 }, 3);
	EXPECT_EQ(-EEXIST, spawn_tids(init, CHILD_BARE, 0, 40));
	ASSERT_EQ(0, call(outer, do_kill, init->pid));
	wait_dead(_metadata, x->pidfd);

	/* Still in use, and that is what the dying init waits for */
	EXPECT_EQ(-EEXIST, spawn_tids(outer, CHILD_BARE, 0, 50));
	EXPECT_EQ(-ENOMEM, resume(_metadata, &st));
	EXPECT_EQ(SIGKILL, call(outer, do_reap, init->pid));
	EXPECT_EQ(50, spawn_tids(outer, CHILD_EXIT, 0, 50));
	EXPECT_EQ(-ENOMEM, spawn(q, CHILD_EXIT, 0));
}

/*
 * Failing allocations
 */

#define FAILSLAB(name)	"failslab/" name
#define NODE_CACHE	"kernel/slab/radix_tree_node/failslab"

static const char * const debugfs_knobs[] = {
	/* The one that makes it fail comes last, when that is undone. */
	FAILSLAB("ignore-gfp-wait"),
	FAILSLAB("cache-filter"),
	FAILSLAB("task-filter"),
	FAILSLAB("verbose"),
	FAILSLAB("interval"),
	FAILSLAB("space"),
	FAILSLAB("times"),
	FAILSLAB("probability"),
};

#define NR_KNOBS	ARRAY_SIZE(debugfs_knobs)

/* Settings of the whole machine, restored by a process which survives us */
struct injection {
	int debugfs;
	int sysfs;
	int alive;
	pid_t keeper;
	char old[NR_KNOBS][32];
	char old_cache[32];
	bool cache;
};

static void __noreturn keeper_main(struct injection *inj, int fd)
{
	unsigned int i;
	int ret = 0;
	char c;

	/* A test which takes too long is killed together with its group. */
	setsid();
	while (read(fd, &c, 1) < 0 && errno == EINTR)
		;
	for (i = NR_KNOBS; i-- > 0;)
		ret |= write_at(inj->debugfs, debugfs_knobs[i], inj->old[i]);
	if (inj->cache)
		ret |= write_at(inj->sysfs, NODE_CACHE, inj->old_cache);
	_exit(!!ret);
}

static int injection_set(struct injection *inj, const char *name,
			 const char *val)
{
	return write_at(inj->debugfs, name, val);
}

/* Returns why it is not possible, or NULL.  All agents must exist already. */
static const char *injection_start(struct __test_metadata *_metadata,
				   struct injection *inj)
{
	unsigned int i;
	int fd[2];

	memset(inj, 0, sizeof(*inj));
	inj->debugfs = detached_mount("debugfs");
	if (inj->debugfs < 0)
		return "cannot mount debugfs";
	inj->sysfs = detached_mount("sysfs");
	if (inj->sysfs < 0)
		return "cannot mount sysfs";
	for (i = 0; i < NR_KNOBS; i++)
		if (read_at(inj->debugfs, debugfs_knobs[i], inj->old[i],
			    sizeof(inj->old[i])))
			return "no failslab in debugfs";
	if (access("/proc/thread-self/fail-nth", W_OK))
		return "no fail-nth in /proc";
	inj->cache = !read_at(inj->sysfs, NODE_CACHE, inj->old_cache,
			      sizeof(inj->old_cache));

	ASSERT_EQ(0, pipe2(fd, O_CLOEXEC));
	inj->keeper = fork();
	ASSERT_GE(inj->keeper, 0);
	if (!inj->keeper) {
		close(fd[1]);
		keeper_main(inj, fd[0]);
	}
	close(fd[0]);
	inj->alive = fd[1];
	return NULL;
}

static void injection_end(struct __test_metadata *_metadata,
			  struct injection *inj)
{
	int status = -1;

	close(inj->alive);
	EXPECT_EQ(inj->keeper, waitpid(inj->keeper, &status, 0));
	EXPECT_EQ(0, status);
}

/* Have the 1st, 2nd, 3rd... allocation fail.  Returns how many there are. */
static long do_sweep(struct agent *a)
{
	unsigned int plain, size = a->arg, n, i;
	pid_t tid[2], before;
	bool injected;
	long ret;

	for (n = 1, injected = true; injected; n++) {
		if (n > 5000)
			return -E2BIG;
		injected = false;
		for (plain = 0; plain < 2; plain++) {
			unsigned int tids = plain ? 0 : size;

			/* In places in which nothing has been before */
			tid[0] = 3000 + n * 4096;
			tid[1] = 5000 + n * 4096;
			spawn_prepare(a, CHILD_EXIT, 0, tid, tids);
			a->spawn.fail_nth = n;
			ret = do_spawn(a);
			injected |= a->spawn.injected;
			CHECK(ret > 0 || ((ret == -ENOMEM || ret == -EAGAIN) &&
					  a->spawn.injected),
			      "allocation %u: %ld", n, ret);
			if (ret > 0)
				CHECK(got_tids(&a->spawn, ret) &&
				      pid_up(&a->spawn.pids, 1) > 0,
				      "allocation %u: got %ld", n, ret);

			/* Nothing is left, and it does work. */
			spawn_prepare(a, CHILD_EXIT, 0, tid, size);
			ret = do_spawn(a);
			CHECK(ret == tid[0] && got_tids(&a->spawn, ret),
			      "after allocation %u: %ld", n, ret);
			spawn_prepare(a, CHILD_EXIT, 0, NULL, 0);
			ret = do_spawn(a);
			before = pid_up(&a->spawn.pids, 0);
			CHECK(ret > 0 && before == ret,
			      "after allocation %u: %ld", n, ret);
			for (i = 0; i < 2; i++)
				CHECK(pid_up(&a->spawn.pids, i) > 0,
				      "after allocation %u: level %u", n, i);
		}
	}
	return n;
}

TEST_F_TIMEOUT(pid, fail_nth, LONG_TIMEOUT)
{
	struct agent *outer, *inner;
	struct injection inj;
	const char *why;
	long nr;

	outer = new_agent(_metadata, self->top, CLONE_NEWPID);
	inner = new_agent(_metadata, outer, CLONE_NEWPID);
	why = injection_start(_metadata, &inj);
	if (why)
		SKIP(return, "%s", why);
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("verbose"), "0"));
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("cache-filter"), "N"));
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("ignore-gfp-wait"), "N"));
	nr = call(inner, do_sweep, 2);
	injection_end(_metadata, &inj);
	/* There is at least one for each of the larger structures. */
	EXPECT_GT(nr, 10);
}

static long do_make_it_fail(struct agent *a)
{
	return write_num("/proc/self/make-it-fail", a->arg);
}

#define DEEP		8
#define MANY_TIMES	1000000

/*
 * Have all atomic allocations of the nodes of the pid tables fail, so that
 * only those serve which can wait for memory.
 */
TEST_F_TIMEOUT(pid, nodes_for_all_levels, LONG_TIMEOUT)
{
	struct agent *ns[DEEP], *worker;
	struct injection inj;
	long ret = 0, times;
	const char *why;
	pid_t tid[DEEP];
	bool last_pid;
	char buf[32];
	int i, n;

	for (i = DEEP - 1; i >= 0; i--)
		ns[i] = new_agent(_metadata, i == DEEP - 1 ? self->top : ns[i + 1],
				  CLONE_NEWPID);
	worker = new_agent(_metadata, ns[0], 0);
	why = injection_start(_metadata, &inj);
	if (!why && !inj.cache) {
		injection_end(_metadata, &inj);
		why = "no failslab of radix_tree_node in sysfs";
	}
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, call(worker, do_make_it_fail, 1));

	EXPECT_EQ(0, write_at(inj.sysfs, NODE_CACHE, "1"));
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("verbose"), "0"));
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("cache-filter"), "Y"));
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("ignore-gfp-wait"), "Y"));
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("task-filter"), "Y"));
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("interval"), "1"));
	EXPECT_EQ(0, injection_set(&inj, FAILSLAB("space"), "0"));

	for (n = 0; n < 20; n++) {
		/* Both ways to get to numbers which are far away */
		last_pid = n % 2;
		for (i = 0; i < DEEP; i++) {
			tid[i] = 4000000 - n * 8192 - i * 101;
			if (last_pid)
				ret = call(ns[i], do_set_last_pid, tid[i] - 1);
			if (ret)
				break;
		}
		if (ret)
			break;
		snprintf(buf, sizeof(buf), "%d", MANY_TIMES);
		EXPECT_EQ(0, injection_set(&inj, FAILSLAB("times"), buf));
		EXPECT_EQ(0, injection_set(&inj, FAILSLAB("probability"), "100"));
		ret = spawn_array(worker, CHILD_EXIT, 0, tid, last_pid ? 0 : DEEP);
		EXPECT_EQ(0, injection_set(&inj, FAILSLAB("probability"), "0"));
		EXPECT_EQ(tid[0], ret) {
			TH_LOG("round %d", n);
		}
		for (i = 0; i < DEEP; i++)
			EXPECT_EQ(tid[i], pid_up(&worker->spawn.pids, i)) {
				TH_LOG("round %d, level %d", n, i);
			}
		ret = 0;

		/* At least one for each level was asked for in vain. */
		EXPECT_EQ(0, read_at(inj.debugfs, FAILSLAB("times"), buf,
				     sizeof(buf)));
		times = MANY_TIMES - atol(buf);
		EXPECT_LE(DEEP, times) {
			TH_LOG("round %d", n);
		}
	}
	injection_end(_metadata, &inj);
	EXPECT_EQ(0, ret);
}

TEST_HARNESS_MAIN
