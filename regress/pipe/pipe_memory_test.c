// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of pipes, of which the kernel's own tests see nothing: each allocation
 * of a write fails in turn; pages are charged to the memory cgroup of the writer, and
 * none is lost by writes that fail, are killed, or find another pipe than the one
 * that they have prepared for; writers that wait hold few, and no more than their user
 * may have; a page that is used again is nobody else's.  Each test runs in a memory cgroup of its own.
 */
#include "pipe/pipe_lazy.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define TIMEOUT	180	/* seconds; emulators with KASAN are slow */
#define CGROUPS	"/sys/fs/cgroup"
#define FAULTS	"/sys/kernel/debug/fail_page_alloc"
#define SYSCTL	"/proc/sys/fs"
#define SOFT	"pipe-user-pages-soft"
#define NOBODY	65534

FIXTURE(memory) {
	int p[2];
	char memcg[64];
	char soft[16];		/* what the limit was, once it is changed */
};

FIXTURE_SETUP(memory)
{
	cpu_set_t set;
	int ret;

	snprintf(self->memcg, sizeof(self->memcg), CGROUPS "/pipe_memory.%d", getpid());
	write_file(CGROUPS, "cgroup.subtree_control", "+memory");
	ret = result(mkdir(self->memcg, 0700)) ?: write_file(self->memcg, "memory.max", "max") ?:
	      write_file(self->memcg, "cgroup.procs", "0");
	if (ret) {
		rmdir(self->memcg);
		SKIP(return, "memory cgroup: %s", strerror(-ret));
	}
	/* A CPU keeps some charges: stay on one, and look at many more than that. */
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	make_pipe(_metadata, self->p, SLOTS);
}

/* Also after a failed assertion */
FIXTURE_TEARDOWN_PARENT(memory)
{
	if (self->soft[0])
		write_file(SYSCTL, SOFT, self->soft);
	write_file(self->memcg, "cgroup.kill", "1");
	(void)!WAIT_FOR(!rmdir(self->memcg) || errno != EBUSY);
}

/* In pages */
static long charged(struct __test_metadata *_metadata, const char *memcg)
{
	char path[128];
	long bytes = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.current", memcg);
	f = fopen(path, "r");
	ASSERT_NE(NULL, f);
	ASSERT_EQ(1, fscanf(f, "%ld", &bytes));
	fclose(f);
	return bytes / psz;
}

/* What is written is charged, until it is read, or nobody can read it. */
TEST_F_TIMEOUT(memory, charge, TIMEOUT)
{
	const ssize_t slots = 256;
	int p[4][2], i;
	long before;

	/* The buffer of put() is charged, too. */
	fill(scratch, slots * psz, 1, 0);
	before = charged(_metadata, self->memcg);
	for (i = 0; i < 4; i++) {
		make_pipe(_metadata, p[i], slots);
		ASSERT_EQ(slots * psz, put(p[i][1], slots * psz, 1, 0));
	}
	ASSERT_GE(charged(_metadata, self->memcg) - before, 3 * slots);
	for (i = 0; i < 4; i++) {
		if (i & 1)
			drain(_metadata, p[i][0], slots * psz, 1, 0);
		else
			ASSERT_EQ(0, close(p[i][0]) | close(p[i][1]));
	}
	ASSERT_TRUE(WAIT_FOR(charged(_metadata, self->memcg) < before + slots / 2)) {
		TH_LOG("was %ld, is %ld pages", before, charged(_metadata, self->memcg));
	}
}

struct small_writer {
	struct io io;
	int gate;		/* closed when it may go on */
	bool writes;
};

static void *small_writer(void *arg)
{
	struct small_writer *w = arg;
	char none;

	__atomic_store_n(&w->io.tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	(void)!read(w->gate, &none, 1);
	__atomic_store_n(&w->writes, true, __ATOMIC_RELEASE);
	w->io.ret = do_write(w->io.fd, w->io.buf, w->io.len);
	__atomic_store_n(&w->io.done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Writers that wait for room, of less than a page each, hold no page each. */
TEST_F_TIMEOUT(memory, waiting_writers, TIMEOUT)
{
	struct iovec iov = { .iov_len = SLOTS * psz };
	unsigned char *small = fill(malloc(100), 100, 2, 0);
	static struct small_writer w[256];
	int gate[2], i;
	long before;

	ASSERT_EQ(0, pipe(gate));
	for (i = 0; i < NR(w); i++) {
		w[i].io = (struct io){ .fd = self->p[1], .buf = small, .len = 100 };
		w[i].gate = gate[0];
		ASSERT_EQ(0, pthread_create(&w[i].io.thread, NULL, small_writer, &w[i]));
		ASSERT_TRUE(WAIT_FOR(io_sleeps(&w[i].io)));
	}
	/* No page is cached; the pipe is full of such that nothing is merged with. */
	iov.iov_base = fill(map_pages(_metadata, SLOTS), SLOTS * psz, 1, 0);
	ASSERT_EQ(SLOTS * psz, vmsplice(self->p[1], &iov, 1, 0));
	before = charged(_metadata, self->memcg);
	close(gate[1]);
	for (i = 0; i < NR(w); i++)
		ASSERT_TRUE(WAIT_FOR(__atomic_load_n(&w[i].writes, __ATOMIC_ACQUIRE) &&
				     io_sleeps(&w[i].io)));
	EXPECT_LT(charged(_metadata, self->memcg) - before, NR(w) / 2);
	drain(_metadata, self->p[0], SLOTS * psz, 1, 0);
	for (i = 0; i < NR(w); i++)
		drain(_metadata, self->p[0], 100, 2, 0);
	for (i = 0; i < NR(w); i++)
		ASSERT_EQ(100, io_join(&w[i].io));
	expect_works(_metadata, self->p);
}

/* In this thread only, and such that it can be undone */
static void set_user(struct __test_metadata *_metadata, uid_t uid)
{
	ASSERT_EQ(0, syscall(__NR_setresuid, uid, uid, 0));
}

/* How many slots a user gets that may have so many pages in all of its pipes */
static int slots_of_new(struct __test_metadata *_metadata, int limit)
{
	char text[16];
	int p[2], ret;

	snprintf(text, sizeof(text), "%d", limit);
	set_user(_metadata, 0);
	ASSERT_EQ(0, write_file(SYSCTL, SOFT, text));
	set_user(_metadata, NOBODY);
	ASSERT_EQ(0, pipe(p));
	ret = fcntl(p[0], F_GETPIPE_SZ) / psz;
	ASSERT_EQ(0, close(p[0]) | close(p[1]));
	return ret;
}

static void remember_soft(struct __test_metadata *_metadata, char *soft)
{
	FILE *f = fopen(SYSCTL "/" SOFT, "r");

	ASSERT_NE(NULL, f);
	ASSERT_EQ(1, fscanf(f, "%15s", soft));
	fclose(f);
}

struct blocked_pipe {
	int p[2];
	struct io w;
};

/* A pipe that is full */
static void fill_pipe(struct __test_metadata *_metadata, struct blocked_pipe *b)
{
	make_pipe(_metadata, b->p, SLOTS);
	ASSERT_EQ(SLOTS * psz, put(b->p[1], SLOTS * psz, 1, 0));
}

/* A writer that has as much ready as a full pipe has */
static void block_writer(struct __test_metadata *_metadata, struct blocked_pipe *b)
{
	b->w = writer(b->p[1], SLOTS * psz, 2, 0);
	io_start_blocked(_metadata, &b->w);
}

static void drain_pipe(struct __test_metadata *_metadata, struct blocked_pipe *b)
{
	drain(_metadata, b->p[0], SLOTS * psz, 1, 0);
	drain(_metadata, b->p[0], SLOTS * psz, 2, 0);
	ASSERT_EQ(SLOTS * psz, io_join(&b->w));
}

/*
 * What writers that wait have ready counts as their user's: new pipes are small then.
 * Above the limit, they give it back.
 */
TEST_F_TIMEOUT(memory, soft_limit, TIMEOUT)
{
	const int nr = 32, limit = nr * SLOTS + nr / 2 * SLOTS;
	struct blocked_pipe b[nr];
	int i;

	remember_soft(_metadata, self->soft);
	ASSERT_EQ(SLOTS, slots_of_new(_metadata, limit));
	for (i = 0; i < nr; i++)
		fill_pipe(_metadata, &b[i]);
	ASSERT_EQ(SLOTS, slots_of_new(_metadata, limit));
	for (i = 0; i < nr; i++)
		block_writer(_metadata, &b[i]);
	EXPECT_GT(SLOTS, slots_of_new(_metadata, limit));
	EXPECT_EQ(SLOTS, slots_of_new(_metadata, limit + SLOTS));
	for (i = 0; i < nr; i++)
		drain_pipe(_metadata, &b[i]);
	EXPECT_EQ(SLOTS, slots_of_new(_metadata, (nr + 1) * SLOTS));
	set_user(_metadata, 0);
}

/* It counts as the writer's, not as that of the user that made the pipe. */
TEST_F_TIMEOUT(memory, other_user, TIMEOUT)
{
	const int nr = 4, limit = (nr + 1) * SLOTS;
	struct blocked_pipe b[nr];
	int i;

	remember_soft(_metadata, self->soft);
	ASSERT_EQ(SLOTS, slots_of_new(_metadata, limit));
	for (i = 0; i < nr; i++)
		fill_pipe(_metadata, &b[i]);
	set_user(_metadata, 0);
	for (i = 0; i < nr; i++)
		block_writer(_metadata, &b[i]);
	EXPECT_EQ(SLOTS, slots_of_new(_metadata, limit));
	for (i = 0; i < nr; i++)
		drain_pipe(_metadata, &b[i]);
	set_user(_metadata, 0);
}

/* A writer that has given its pages back writes what is before a bad address. */
TEST_F_TIMEOUT(memory, soft_limit_error, TIMEOUT)
{
	struct io w = { .fd = self->p[1], .buf = guarded(_metadata, 2 * psz), .len = 4 * psz };

	fill(w.buf, 2 * psz, 2, 0);
	remember_soft(_metadata, self->soft);
	ASSERT_GT(SLOTS, slots_of_new(_metadata, 1));
	ASSERT_EQ(SLOTS * psz, put(self->p[1], SLOTS * psz, 1, 0));
	io_start_blocked(_metadata, &w);
	drain(_metadata, self->p[0], SLOTS * psz, 1, 0);
	EXPECT_EQ(2 * psz, io_join(&w));
	drain(_metadata, self->p[0], 2 * psz, 2, 0);
	expect_works(_metadata, self->p);
	set_user(_metadata, 0);
}

/* Each way for a write to end early, by turns */
static void fail_writes(struct __test_metadata *_metadata, int p[2], struct lazy *l, int loops)
{
	struct io io = writer(p[1], 16 * psz, 1, 0), stuck = { .fd = p[1], .buf = l->map };
	unsigned char *bad = guarded(_metadata, 0), *half = guarded(_metadata, 8 * psz);
	int other[2], i, status;
	pid_t pid;

	fill(half, 8 * psz, 1, 0);
	stuck.len = 3 * psz + 200;
	for (i = 0; i < loops; i++) {
		/* Bad memory, no reader, no room */
		set_flag(p[1], O_NONBLOCK, true);
		ASSERT_EQ(-EFAULT, do_write(p[1], bad, 16 * psz));
		ASSERT_EQ(8 * psz, do_write(p[1], half, 16 * psz));
		drain(_metadata, p[0], 8 * psz, 1, 0);
		make_pipe(_metadata, other, SLOTS);
		close(other[0]);
		ASSERT_EQ(-EPIPE, do_write(other[1], io.buf, io.len));
		close(other[1]);
		ASSERT_EQ(SLOTS, fill_up(p[1]));
		ASSERT_EQ(-EAGAIN, do_write(p[1], io.buf, io.len));
		set_flag(p[1], O_NONBLOCK, false);

		/* A signal, and a kill, while it waits for room */
		io_start_blocked(_metadata, &io);
		pthread_kill(io.thread, SIGUSR1);
		ASSERT_EQ(-EINTR, io_join(&io));
		pid = fork();
		if (!pid) {
			do_write(p[1], io.buf, io.len);
			_exit(1);
		}
		ASSERT_TRUE(WAIT_FOR(task_status(pid, "State:\t", true) == 'S'));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(SLOTS, move_pages(get, p[0], SLOTS));

		/* Stuck, at any page */
		madvise(l->map, l->nr * psz, MADV_DONTNEED);
		lazy_provide(l, 0, i % 3);
		start_stuck(_metadata, &stuck, l);
		lazy_provide(l, 0, l->nr);
		ASSERT_EQ(stuck.len, io_join(&stuck));
		drain(_metadata, p[0], stuck.len, 1, 0);
	}
	free(io.buf);
}

/* Pages that were meant for writes that fail are given back. */
TEST_F_TIMEOUT(memory, failed_writes, 2 * TIMEOUT)
{
	const int loops = 128;
	struct lazy l;
	long before;

	signal(SIGPIPE, SIG_IGN);
	count_signals(SIGUSR1, 0);
	lazy_alloc(_metadata, &l, 4, 0, 0, 4);
	/* What is allocated only once does not count. */
	fail_writes(_metadata, self->p, &l, 8);
	before = charged(_metadata, self->memcg);
	fail_writes(_metadata, self->p, &l, loops);
	ASSERT_TRUE(WAIT_FOR(charged(_metadata, self->memcg) < before + loops / 2)) {
		TH_LOG("was %ld, is %ld pages", before, charged(_metadata, self->memcg));
	}
	expect_works(_metadata, self->p);
}

static const char *const knobs[] = { "min-order", "ignore-gfp-highmem", "ignore-gfp-wait", "verbose" };

/*
 * Fail every allocation of pages of a large write in turn.  How many there are, and
 * which of them matter, is up to the kernel; what it returns is what is in the pipe.
 */
TEST_F_TIMEOUT(memory, each_allocation_fails, TIMEOUT)
{
	const ssize_t len = 20 * psz + 100;
	unsigned char *buf = malloc(len);
	int fd, nth, hits = 0, pass;
	char text[16];
	ssize_t ret;
	bool hit;

	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		SKIP(return, "fault injection: %s", strerror(errno));
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	/* Nothing fails but in this thread: fail-nth comes before the probability. */
	for (nth = 0; nth < NR(knobs); nth++) {
		ret = write_file(FAULTS, knobs[nth], strstr(knobs[nth], "ignore") ? "N" : "0");
		if (ret)
			SKIP(return, "fail_page_alloc: %s", strerror(-ret));
	}
	set_slots(_metadata, self->p[1], 2 * SLOTS);
	/* Faults of the buffer are not what is to fail. */
	mlock(buf, len);
	for (pass = 0; pass < 2; pass++) {
		/* The second time with bytes to merge first */
		ssize_t before = pass ? 50 : 0;

		for (nth = 1, hit = true; hit && nth < 500; nth++) {
			if (before)
				ASSERT_EQ(before, put(self->p[1], before, nth, 0));
			fill(buf, len, nth, before);
			snprintf(text, sizeof(text), "%d", nth);
			ASSERT_LT(0, pwrite(fd, text, strlen(text), 0));
			ret = result(write(self->p[1], buf, len));
			/* If there is a fault left, it may hit this. */
			memset(text, 0, sizeof(text));
			hit = pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
			ASSERT_EQ(1, pwrite(fd, "0", 1, 0));
			ASSERT_TRUE(hit || ret == len);
			/* User copies can be told to fail, too. */
			if (ret < 0) {
				ASSERT_TRUE(ret == -EFAULT || (ret == -ENOMEM && !pass));
				ret = 0;
			}
			ASSERT_TRUE(!ret || ret == len || ret % psz == (pass ? 100 : 0));
			hits += hit;
			ASSERT_EQ(before + ret, bytes_in(self->p[0]));
			drain(_metadata, self->p[0], before + ret, nth, 0);
			expect_works(_metadata, self->p);
		}
		ASSERT_FALSE(hit);
	}
	ASSERT_GT(hits, 0);
}

struct page_writer {
	int *p, *q;
	unsigned int seed;
	bool stop;
	ssize_t error;
	long rounds;
	pthread_t thread;
};

/* Write and read pages of one pipe, and have another pipe share them for a while. */
static void *write_pages(void *arg)
{
	unsigned char *buf = malloc(4 * psz), *back = malloc(4 * psz);
	struct page_writer *w = arg;
	ssize_t ret = 0, len;

	for (; !__atomic_load_n(&w->stop, __ATOMIC_RELAXED); w->rounds++) {
		unsigned int seed = w->seed + w->rounds * 2;

		len = (1 + w->rounds % 4) * psz - w->rounds % 3;
		ret = do_write(w->p[1], fill(buf, len, seed, 0), len);
		if (ret != len || tee(w->p[0], w->q[1], len, 0) != len)
			break;
		/* The same pages are read here first, or there. */
		for (int i = 0; i < 2; i++) {
			ret = do_read((w->rounds + i) % 2 ? w->p[0] : w->q[0], back, 4 * psz);
			if (ret != len || !matches(back, len, seed, 0)) {
				w->error = ret < 0 ? ret : -EILSEQ;
				return NULL;
			}
		}
	}
	return NULL;
}

/* Tasks that use pages again, of pipes that share them: each finds its own data. */
TEST_F_TIMEOUT(memory, used_again, TIMEOUT)
{
	struct page_writer w[4] = { };
	int p[4][2][2], i;

	for (i = 0; i < 4; i++) {
		make_pipe(_metadata, p[i][0], SLOTS);
		make_pipe(_metadata, p[i][1], SLOTS);
		w[i] = (struct page_writer){ .p = p[i][0], .q = p[i][1], .seed = i * 100000 };
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, write_pages, &w[i]));
	}
	sleep(2);
	for (i = 0; i < 4; i++) {
		__atomic_store_n(&w[i].stop, true, __ATOMIC_RELAXED);
		pthread_join(w[i].thread, NULL);
		ASSERT_EQ(0, w[i].error);
		ASSERT_LT(10, w[i].rounds);
	}
}

TEST_HARNESS_MAIN
