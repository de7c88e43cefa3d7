// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults that have to wait for a device, and what others can do meanwhile.
 *
 * The device is a FUSE server, in a process of its own, which answers when the test says so.  It
 * has files that are mapped, and one below a loop device that is swapped out to.  Another process,
 * the testee, has threads that do one thing each when they are told to.  What is tested is not how
 * long something takes, but whether it is done before the device answers or others unlock.
 *
 * Nobody gets stuck for good: neither the server nor who runs the test needs the device or a lock
 * of the testee.  At the end, swap is turned off, and the server killed: what waits for it fails.
 * This takes root.  Others may be swapped out to the device, too, where memory is scarce.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/loop.h>
#include <linux/mman.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../kselftest_harness.h"

#define NR_PAGES	64		/* of the files, and of what is mapped */
#define SWAP_SIZE	(512 * psz)
#define size_of(node)	((node) == SWAP ? SWAP_SIZE : NR_PAGES * psz)
#define MAX_WRITE	(128U << 10)
#define PATIENCE_MS	30000		/* until what ought to happen does not */
#define QUIET_MS	100		/* who sleeps for as long waits */
#define TIMEOUT		240		/* seconds for a test: emulation is slow */
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
#define RW		(PROT_READ | PROT_WRITE)
#define load(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define comes(p)	until(load(p))
#define until(cond)					\
({	bool ok_; time_t end_ = time(NULL) + PATIENCE_MS / 1000; \
	while (!(ok_ = (cond)) && time(NULL) < end_)	\
		usleep(1000);				\
	ok_; })

enum node { DATA = FUSE_ROOT_ID + 1, BLOCK, SWAP, NR_NODES };
static const char *const names[NR_NODES] = { [DATA] = "data", [BLOCK] = "block", [SWAP] = "swap" };

/* Shared with the server: what it does with reads of a file, and what it has seen */
static struct policy {
	int fail;	/* as many fail first */
	int hold;	/* the next one is not answered until this is another number */
	int held;
	int reads;
} *policy;

static size_t psz;
static int fuse_fd, release_fd, cluster_fd, group_fd;
static pid_t main_pid, server, tester, testee;
static char dir[32] = "/tmp/fault_retry.XXXXXX", group[32] = "cgroup/fault_retry.XXXXXX";
static char swap_dev[32], cluster[8];
static const char *no_fuse, *no_swap;
static char *image[NR_NODES];

static unsigned long word(size_t pos)
{
	return (pos + 1) * 0x9e3779b97f4a7c15ULL | 1;
}

static void on_end(void (*handler)(int))
{
	static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM };

	for (unsigned int i = 0; i < ARRAY_SIZE(ends); i++)
		signal(ends[i], handler);
}

/* ---- the server ---- */

/* The read of a file that is not answered yet; others are not held */
static struct read {
	__u64 unique;
	enum node node;
	struct fuse_read_in in;
} held[NR_NODES];

static void answer(__u64 unique, int error, const void *data, size_t len)
{
	struct fuse_out_header out = { sizeof(out) + len, -error, unique };
	struct iovec iov[] = { { &out, sizeof(out) }, { (void *)data, len } };

	/* Whoever asked may have been killed */
	if (writev(fuse_fd, iov, len ? 2 : 1) < 0 && errno != ENOENT)
		_exit(1);
}

static void answer_read(const struct read *one)
{
	size_t size = size_of(one->node), at = one->in.offset, len = at < size ? size - at : 0;

	answer(one->unique, 0, image[one->node] + at, len < one->in.size ? len : one->in.size);
}

static void serve_read(__u64 unique, enum node node, const struct fuse_read_in *in)
{
	const struct read one = { unique, node, *in };
	struct policy *p = &policy[node];

	store(&p->reads, p->reads + 1);
	if (load(&p->fail)) {
		store(&p->fail, p->fail - 1);
		answer(unique, EIO, NULL, 0);
	} else if (load(&p->hold) && !p->held) {
		held[node] = one;
		store(&p->held, load(&p->hold));
	} else {
		answer_read(&one);
	}
}

static void serve_one(const struct fuse_in_header *in)
{
	const void *arg = in + 1;
	const struct fuse_write_in *wr = arg;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
		.flags = FUSE_ASYNC_READ | FUSE_ASYNC_DIO | FUSE_BIG_WRITES,
		.max_readahead = psz, .max_write = MAX_WRITE, .max_background = 64,
	};
	struct fuse_entry_out entry = { .entry_valid = 86400, .attr_valid = 86400,
					.attr = { .mode = S_IFREG | 0600, .nlink = 1 } };
	unsigned int i = in->nodeid;
	struct fuse_open_out open = { 0, i == SWAP ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE, 0 };
	struct fuse_write_out written = { .size = wr->size };

	switch (in->opcode) {
	case FUSE_INIT:
		return answer(in->unique, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		for (i = DATA; i < SWAP && strcmp(arg, names[i]); i++)
			;
		entry.nodeid = i;
		entry.attr.size = size_of(i);
		return answer(in->unique, 0, &entry, sizeof(entry));
	case FUSE_OPEN:
		return answer(in->unique, 0, &open, sizeof(open));
	case FUSE_READ:
		return serve_read(in->unique, i, arg);
	case FUSE_WRITE:
		memcpy(image[i] + wr->offset, wr + 1, wr->size);
		return answer(in->unique, 0, &written, sizeof(written));
	}
	if (in->opcode != FUSE_INTERRUPT)
		answer(in->unique, EOPNOTSUPP, NULL, 0);
}

static void serve(void)
{
	struct pollfd fds[] = { { fuse_fd, POLLIN, 0 }, { release_fd, POLLIN, 0 } };
	static __u64 buf[(MAX_WRITE + 65536) / sizeof(__u64)];
	eventfd_t count;
	ssize_t len;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	on_end(SIG_IGN);	/* It is needed to clean up */
	/* What is swapped out comes here: nothing of this may be swapped out */
	if (getppid() != main_pid || mlockall(MCL_CURRENT | MCL_FUTURE))
		_exit(1);
	while (poll(fds, 2, -1) > 0) {
		if (fds[1].revents && !eventfd_read(release_fd, &count))
			for (int i = DATA; i < NR_NODES; i++)
				if (policy[i].held && policy[i].held != load(&policy[i].hold)) {
					store(&policy[i].held, 0);
					answer_read(&held[i]);
				}
		if (!fds[0].revents)
			continue;
		len = read(fuse_fd, buf, sizeof(buf));
		if (len >= (ssize_t)sizeof(struct fuse_in_header))
			serve_one((void *)buf);
		else if (errno != ENOENT && errno != EINTR && errno != EAGAIN)
			break;
	}
	_exit(0);
}

/* What the server holds of this file, it answers; what comes later, too, if @hold is 0 */
static void release(enum node node, int hold)
{
	store(&policy[node].fail, 0);
	store(&policy[node].hold, hold);
	eventfd_write(release_fd, 1);
}

static void release_all(void)
{
	for (int node = DATA; node < NR_NODES && !no_fuse; node++)
		release(node, 0);
}

/* ---- the device: made before the first test ---- */

static int write_str(int at, const char *path, const char *val)
{
	int fd = openat(at, path, O_WRONLY | O_CLOEXEC);
	ssize_t ret = fd < 0 ? -1 : write(fd, val, strlen(val));

	close(fd);
	return ret < 0 ? -1 : 0;
}

static int open_node(enum node node)
{
	char path[32];

	snprintf(path, sizeof(path), "fuse/%s", names[node]);
	return open(path, O_RDWR | O_CLOEXEC);
}

static const char *make_swap(void)
{
	struct loop_config config = { .block_size = psz, .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	int fd, nr;

	/* To mount cgroup2 without the options that it has would change them for all */
	if (mkdir("cgroup", 0700) || ((mount("/sys/fs/cgroup", "cgroup", NULL, MS_BIND, NULL) ||
				       access("cgroup/cgroup.procs", F_OK)) &&
				      mount("none", "cgroup", "cgroup2", 0, NULL)) ||
	    write_str(AT_FDCWD, "cgroup/cgroup.subtree_control", "+memory") || !mkdtemp(group))
		return "no memory controller in cgroup2";
	group_fd = open(group, O_PATH | O_CLOEXEC);
	write_str(group_fd, "memory.zswap.max", "0");
	fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	nr = ioctl(fd, LOOP_CTL_GET_FREE);
	close(fd);
	snprintf(swap_dev, sizeof(swap_dev), "/dev/loop%d", nr);
	fd = open(swap_dev, O_RDWR | O_CLOEXEC);
	config.fd = open_node(SWAP);
	if (ioctl(fd, LOOP_CONFIGURE, &config) ||
	    swapon(swap_dev, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK))
		swap_dev[0] = '\0';
	close(config.fd);
	close(fd);
	return swap_dev[0] ? NULL : "no swap on loop";
}

static const char *make_device(void)
{
	char options[96];
	size_t pos;
	int node;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return "this takes root";
	fuse_fd = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	release_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	for (node = DATA; node < NR_NODES; node++) {
		image[node] = mmap(NULL, size_of(node), RW, ANON, -1, 0);
		for (pos = 0; node != SWAP && pos < size_of(node); pos += psz)
			*(unsigned long *)(image[node] + pos) = word(pos);
	}
	memcpy(image[SWAP] + 1024, (__u32 []) { 1, SWAP_SIZE / psz - 1 }, 8);
	memcpy(image[SWAP] + psz - 10, "SWAPSPACE2", 10);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse_fd);
	if (!mkdtemp(dir) || mount("none", dir, "tmpfs", 0, NULL) || chdir(dir) ||
	    mkdir("fuse", 0700) || mount("none", "fuse", "fuse", MS_NODEV | MS_NOSUID, options))
		return "no FUSE";
	server = fork();
	if (!server)
		serve();
	close(fuse_fd);
	no_swap = make_swap();
	/* Nothing is read ahead, or it would not be waited for */
	cluster_fd = open("/proc/sys/vm/page-cluster", O_RDWR | O_CLOEXEC);
	if (pread(cluster_fd, cluster, 7, 0) <= 0 || pwrite(cluster_fd, "0", 1, 0) < 0)
		no_swap = "no page-cluster";
	return server < 0 ? "cannot fork" : NULL;
}

static void remove_device(void)
{
	if (getpid() != main_pid)	/* Children exit, too */
		return;
	on_end(SIG_IGN);
	if (server > 0)
		release_all();
	if (cluster[0] && pwrite(cluster_fd, cluster, strlen(cluster), 0) < 0)
		perror("page-cluster");
	/* What is swapped out needs the server; a testee may be about to exit */
	while (swapoff(swap_dev) && (errno == ENOMEM || errno == EINTR))
		sleep(1);
	until(!rmdir(group) || errno != EBUSY);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	if (server > 0)
		kill(server, SIGKILL);
}

/* ---- the testee ---- */

/* Somebody in the testee, and what came of it */
enum who { VICTIM, SECOND, HOLDER, WRITER, CHANGER, NR_ACTORS };
static struct actor {
	int (*fn)(struct actor *me);	/* 0, or an errno */
	int arg, go, done, tid, err, sig, code;
	long majflt;
	unsigned long seen;
} *actors;
static int *staged;

/* What is to be staged: a mapping of the file, or of memory that is swapped out */
static struct how {
	bool swap, private, write, shared, pin;	/* @pin, as LRU batches are a CPU's own */
	int advice;
} how;

static char *stuck, *block, *other;	/* NR_PAGES; one page of BLOCK; two of nothing special */
static __thread sigjmp_buf escape;
static __thread int code;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	code = info->si_code;
	siglongjmp(escape, sig);
}

/* As many pages as @arg says */
static int touch(struct actor *me)
{
	struct rusage before, after;
	unsigned long *p;
	int i;

	getrusage(RUSAGE_THREAD, &before);
	for (i = 0; i < me->arg; i++) {
		p = (unsigned long *)(stuck + i * psz);
		me->sig = sigsetjmp(escape, 1);
		if (me->sig)
			break;
		if (how.write)
			store(p + 1, 1);
		me->seen = load(p);
		if (i && me->seen != word(i * psz))
			return 1;
	}
	getrusage(RUSAGE_THREAD, &after);
	me->majflt = after.ru_majflt - before.ru_majflt;
	me->code = code;
	return 0;
}

/* What is done to the page that is waited for; then to others, of which two are in its VMA */
enum change { MUNMAP, NO_ACCESS, READONLY, PKEY, REPLACE, DONTNEED, FORK, NR_CHANGES,
	      MUNMAP_BESIDE = NR_CHANGES, READONLY_BESIDE, READONLY_OTHER, POPULATE_BLOCK,
	      WRITE_DIRECT };

static int change(struct actor *me)
{
	enum change what = me->arg;
	int ret = what == PKEY ? syscall(SYS_pkey_alloc, 0, 0) : 0;
	char *at = what < NR_CHANGES ? stuck : what == READONLY_OTHER ? other :
		   what == POPULATE_BLOCK ? block : stuck + NR_PAGES / 2 * psz;

	if (what == FORK)
		ret = fork();
	else if (what == WRITE_DIRECT)	/* Takes the page out of the page cache */
		ret = pwrite(open("fuse/data", O_RDWR | O_DIRECT), other, psz, 0) - psz;
	else if (what == PKEY)	/* To others than who has made it, it allows nothing */
		ret = ret < 0 ? ret : syscall(SYS_pkey_mprotect, at, psz, RW, ret);
	else if (what == REPLACE)
		ret = -(mmap(at, psz, RW, ANON | MAP_FIXED, -1, 0) == MAP_FAILED);
	else if (what == MUNMAP || what == MUNMAP_BESIDE)
		ret = munmap(at, psz);
	else if (what == DONTNEED || what == POPULATE_BLOCK)
		ret = madvise(at, psz, what == DONTNEED ? MADV_DONTNEED : MADV_POPULATE_READ);
	else
		ret = mprotect(at, psz, what == NO_ACCESS ? PROT_NONE : PROT_READ);
	if (what == FORK && !ret)
		_exit(0);
	return ret < 0 ? errno : 0;
}

static void *actor(void *arg)
{
	struct actor *me = arg;

	store(&me->tid, syscall(SYS_gettid));
	/* No system call that may need a lock of the mm */
	while (!load(&me->go))
		usleep(1000);
	me->err = me->fn(me);
	store(&me->done, 1);
	for (;;)
		pause();
	return NULL;
}

static bool resident(const char *at, size_t pages)
{
	unsigned char vec[NR_PAGES] = {};

	return mincore((void *)at, pages * psz, vec) || memchr(vec, 1, pages);
}

static bool empty(const char *map, int fd)
{
	static char stat[8192];

	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (map != MAP_FAILED)
		return !resident(map, NR_PAGES);
	/* Drains LRU batches, too, at its last attempt.  The numbers are some 2 s old */
	write_str(group_fd, "memory.reclaim", "1M swappiness=max");
	sleep(3);
	return pread(fd, stat, sizeof(stat) - 1, 0) > 0 && strstr(stat, "\nactive_anon 0\n") &&
	       strstr(stat, "\ninactive_anon 0\n");
}

/* Nothing of it is in memory then, unless somebody has a reference */
static bool drop(enum node node)
{
	int fd = node == SWAP ? openat(group_fd, "memory.stat", O_RDONLY) : open_node(node);
	char *map = mmap(NULL, NR_PAGES * psz, PROT_READ, MAP_SHARED, fd, 0);
	bool ret = until(empty(map, fd));

	munmap(map, NR_PAGES * psz);
	close(fd);
	return ret;
}

static bool stage_swap(void)
{
	size_t pages = how.shared ? NR_PAGES : 1, i;

	if (write_str(group_fd, "cgroup.procs", "0"))
		return false;
	mmap(stuck, NR_PAGES * psz, RW, ANON | MAP_FIXED, -1, 0);
	madvise(stuck, NR_PAGES * psz, MADV_NOHUGEPAGE);
	for (i = 0; i < pages; i++)
		*(unsigned long *)(stuck + i * psz) = word(i * psz);
	if (how.shared && !fork())
		_exit(0);
	wait(NULL);
	for (int tries = 0; tries < 2000 && resident(stuck, pages); tries++) {
		madvise(stuck, pages * psz, MADV_PAGEOUT);
		/* They stay in the swap cache.  This fails if it does not get as much */
		write_str(group_fd, "memory.reclaim", "1M swappiness=max");
		usleep(5000);
	}
	return !resident(stuck, pages) && !write_str(AT_FDCWD, "cgroup/cgroup.procs", "0");
}

static bool stage(void)
{
	int fd = open_node(BLOCK);

	other = mmap(NULL, (NR_PAGES + 7) * psz, PROT_NONE, ANON, -1, 0);
	mmap(other, 2 * psz, RW, ANON | MAP_FIXED, -1, 0);
	block = other + 3 * psz;
	stuck = block + 2 * psz;
	*(unsigned long *)other = word(0);
	if (mmap(block, psz, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    madvise(block, psz, MADV_RANDOM) || !drop(BLOCK) || !drop(DATA))
		return false;
	if (how.swap)
		return stage_swap();
	fd = open_node(DATA);
	mmap(stuck, NR_PAGES * psz, RW, MAP_FIXED | (how.private ? MAP_PRIVATE : MAP_SHARED),
	     fd, 0);
	madvise(stuck, NR_PAGES * psz, how.advice);
	/* The first copy in a VMA takes the mmap_lock */
	if (how.private)
		stuck[(NR_PAGES - 1) * psz] = 1;
	return !resident(stuck, 1);
}

static void be_tested(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	for (int i = 0; i < NR_ACTORS; i++)
		if (pthread_create(&thread, NULL, actor, &actors[i]) || !comes(&actors[i].tid))
			_exit(1);
	/* What is there stays there: nobody faults but who is told to */
	if (getppid() != tester || mlockall(MCL_CURRENT))
		_exit(1);
	store(staged, stage() ? 1 : 2);
	for (;;)
		pause();
}

/* Does this thread do nothing for a while, and is not done? */
static bool waits(enum who who)
{
	char path[64], state;
	int ms, quiet = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", testee, actors[who].tid);
	for (ms = 0; quiet < QUIET_MS && ms < PATIENCE_MS; ms += 10, quiet += 10) {
		usleep(10000);
		file = fopen(path, "re");
		if (!file || fscanf(file, "%*d %*s %c", &state) != 1 || state != 'D')
			quiet = -10;
		if (file)
			fclose(file);
	}
	return quiet >= QUIET_MS && !load(&actors[who].done);
}

static void go(enum who who, int (*fn)(struct actor *me), int arg)
{
	actors[who].fn = fn;
	actors[who].arg = arg;
	store(&actors[who].go, 1);
}

static long event(const char *name)
{
	FILE *file = fopen("/proc/vmstat", "re");
	long val, ret = -1;
	char key[128];

	while (file && fscanf(file, "%127s %ld", key, &val) == 2)
		if (!strcmp(key, name))
			ret = val;
	if (file)
		fclose(file);
	return ret;
}

/* False: the test is skipped */
static bool begin(struct __test_metadata *_metadata, struct how as, bool vma_locks)
{
	cpu_set_t cpu = {};

	if (no_fuse || (as.swap && no_swap))
		SKIP(return false, "%s", no_fuse ?: no_swap);
	if (vma_locks && event("vma_lock_success") < 0)
		SKIP(return false, "there is no CONFIG_PER_VMA_LOCK_STATS");
	CPU_SET(sched_getcpu(), &cpu);
	if (as.pin)
		ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpu), &cpu));
	how = as;
	release_all();
	memset(actors, 0, psz);
	ASSERT_EQ(0, mlockall(MCL_CURRENT));	/* Who tests does not wait for the device */
	tester = getpid();
	testee = fork();
	if (!testee)
		be_tested();
	ASSERT_EQ(1, comes(staged) ? *staged : 0);
	memset(policy, 0, psz);
	return true;
}

static bool ended(void)
{
	kill(testee, SIGKILL);
	return until(waitpid(testee, NULL, WNOHANG) == testee);
}

/* After a test, nobody waits, and the reference to a page of the file is gone */
static void end(struct __test_metadata *_metadata)
{
	release_all();
	ASSERT_TRUE(ended());
	ASSERT_TRUE(drop(DATA));
}

static void stick(struct __test_metadata *_metadata, struct policy *p)
{
	store(&p->fail, p == &policy[BLOCK]);
	store(&p->hold, 1);
	if (p == &policy[BLOCK])
		go(HOLDER, change, POPULATE_BLOCK);
	else
		go(VICTIM, touch, 1);
	ASSERT_TRUE(comes(&p->held));
}

FIXTURE(fault) {};
FIXTURE_VARIANT(fault) { struct how how; };
FIXTURE_VARIANT_ADD(fault, file_read) { .how = { .advice = MADV_NORMAL } };
FIXTURE_VARIANT_ADD(fault, file_read_random) { .how = { .advice = MADV_RANDOM } };
FIXTURE_VARIANT_ADD(fault, file_write) { .how = { .advice = MADV_RANDOM, .write = true } };
FIXTURE_VARIANT_ADD(fault, file_copy) { .how = { .private = true, .write = true } };
FIXTURE_VARIANT_ADD(fault, swap_read) { .how = { .swap = true } };
FIXTURE_VARIANT_ADD(fault, swap_write) { .how = { .swap = true, .write = true } };
FIXTURE_SETUP(fault) {}
FIXTURE_TEARDOWN(fault) { release_all(); }

/*
 * Claims: a fault that has waited for I/O comes to its end without the mmap_lock, and does not
 * read again.  Nobody gets that lock: somebody has it for reading, whom the device keeps waiting,
 * and somebody waits for it.  But ->page_mkwrite() is called with it, as it may wait as well.
 */
TEST_F_TIMEOUT(fault, no_mmap_lock, TIMEOUT)
{
	bool mkwrite = variant->how.write && !variant->how.private && !variant->how.swap;
	struct policy *p = &policy[variant->how.swap ? SWAP : DATA];

	if (!begin(_metadata, variant->how, true))
		return;
	stick(_metadata, p);
	stick(_metadata, &policy[BLOCK]);
	go(WRITER, change, READONLY_OTHER);
	ASSERT_TRUE(waits(WRITER));
	ASSERT_EQ(0, load(&actors[VICTIM].done));
	release(p - policy, 0);
	EXPECT_TRUE(mkwrite ? waits(VICTIM) : comes(&actors[VICTIM].done));
	EXPECT_EQ(0, load(&actors[WRITER].done));
	release(BLOCK, 0);
	ASSERT_TRUE(comes(&actors[VICTIM].done) && comes(&actors[WRITER].done));
	EXPECT_EQ(0, actors[VICTIM].sig);
	EXPECT_EQ(word(0), actors[VICTIM].seen);
	EXPECT_EQ(1, actors[VICTIM].majflt);
	EXPECT_EQ(1, p->reads);
	end(_metadata);
	EXPECT_TRUE(drop(p - policy));
}

/* Who changes the page that is waited for does not wait, and the fault sees the change */
TEST_F_TIMEOUT(fault, changed_meanwhile, TIMEOUT)
{
	struct policy *p = &policy[variant->how.swap ? SWAP : DATA];
	struct actor *victim = &actors[VICTIM];
	unsigned long seen;
	int what, code;

	for (what = 0; what < NR_CHANGES; what++) {
		if (!begin(_metadata, variant->how, false))
			return;
		stick(_metadata, p);
		go(CHANGER, change, what);
		ASSERT_TRUE(comes(&actors[CHANGER].done));
		EXPECT_TRUE(what == PKEY || !actors[CHANGER].err);
		EXPECT_EQ(0, load(&victim->done));
		release(p - policy, 0);
		ASSERT_TRUE(comes(&victim->done));
		code = what == MUNMAP ? SEGV_MAPERR : 0;
		if (what == NO_ACCESS || (what == READONLY && variant->how.write))
			code = SEGV_ACCERR;
		if (what == PKEY && !actors[CHANGER].err)
			code = SEGV_PKUERR;
		EXPECT_EQ(code ? SIGSEGV : 0, victim->sig);
		EXPECT_EQ(code, victim->code);
		seen = what == REPLACE || (what == DONTNEED && variant->how.swap) ? 0 : word(0);
		EXPECT_EQ(victim->sig ? 0 : seen, victim->seen)
			TH_LOG("change %d", what);
		end(_metadata);
	}
}

/* Who is killed does not wait for the device any more */
TEST_F_TIMEOUT(fault, killed, TIMEOUT)
{
	struct policy *p = &policy[variant->how.swap ? SWAP : DATA];

	if (variant->how.advice == MADV_RANDOM)
		SKIP(return, "who reads from FUSE without readahead waits for the server");
	if (!begin(_metadata, variant->how, false))
		return;
	stick(_metadata, p);
	go(SECOND, touch, 1);
	ASSERT_TRUE(waits(SECOND));
	EXPECT_TRUE(ended() && load(&p->held));
	release(p - policy, 0);
	EXPECT_TRUE(drop(p - policy));
}

static const struct how random_file = { .advice = MADV_RANDOM };
static const struct how taken_file = { .advice = MADV_RANDOM, .pin = true };
static const struct how shared_swap = { .swap = true, .write = true, .shared = true, .pin = true };
FIXTURE(one) {};
FIXTURE_SETUP(one) {}
FIXTURE_TEARDOWN(one) { release_all(); }

/* The page that was read is taken before it can be mapped, and so has to be read again */
static bool lose_page(struct __test_metadata *_metadata, enum who who, int hold)
{
	const struct sched_param prio = { .sched_priority = 1 };

	ASSERT_EQ(0, sched_setscheduler(actors[who].tid, SCHED_FIFO, &prio));
	go(who, change, WRITE_DIRECT);
	ASSERT_TRUE(waits(who));
	release(DATA, hold);
	ASSERT_TRUE(until(load(&policy[DATA].held) == hold || load(&actors[VICTIM].done)));
	return !load(&actors[VICTIM].done);
}

/*
 * Claim: the second attempt does not hold a lock while it waits, either.  The third does, so
 * that a fault comes to an end, however often its page is taken: that is the last change.
 */
TEST_F_TIMEOUT(one, second_attempt_waits, TIMEOUT)
{
	static const enum change all[] = { MUNMAP_BESIDE, READONLY_BESIDE, FORK, MUNMAP_BESIDE };
	bool last;

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		if (!begin(_metadata, taken_file, true))
			return;
		stick(_metadata, &policy[DATA]);
		last = i == ARRAY_SIZE(all) - 1;
		if (!lose_page(_metadata, SECOND, 2) ||
		    (last && !lose_page(_metadata, WRITER, 3)))
			SKIP(return, "the page is mapped before it can be taken");
		go(CHANGER, change, all[i]);
		ASSERT_TRUE(last ? waits(CHANGER) : comes(&actors[CHANGER].done)) {
			TH_LOG("change %u", i);
		}
		ASSERT_EQ(0, load(&actors[VICTIM].done));
		release(DATA, 0);
		ASSERT_TRUE(comes(&actors[VICTIM].done) && comes(&actors[CHANGER].done));
		ASSERT_EQ(0, actors[VICTIM].sig);
		ASSERT_EQ(word(0), actors[VICTIM].seen);
		end(_metadata);
	}
}

/* A fault comes to an end if it cannot get its page, and reads as often as it ever did */
TEST_F_TIMEOUT(one, bounded, TIMEOUT)
{
	if (!begin(_metadata, random_file, false))
		return;
	store(&policy[DATA].fail, 1000000);
	go(VICTIM, touch, 1);
	EXPECT_TRUE(comes(&actors[VICTIM].done));
	EXPECT_EQ(SIGBUS, actors[VICTIM].sig);
	EXPECT_EQ(2, policy[DATA].reads);
	end(_metadata);
}

/*
 * Claim: nobody takes the page away before the fault comes back for it.  A fault that
 * waits for the mmap_lock loses it, as may one that finds it locked: allow for some.
 */
TEST_F_TIMEOUT(one, not_read_again, TIMEOUT)
{
	int fd, round, again = 0;
	time_t limit;

	for (round = 0; round < 8 && again <= 4; round++) {
		if (!begin(_metadata, random_file, true))
			return;
		stick(_metadata, &policy[BLOCK]);
		go(WRITER, change, READONLY_OTHER);
		ASSERT_TRUE(waits(WRITER));
		fd = open_node(DATA);
		go(VICTIM, touch, 1);
		for (limit = time(NULL) + 10; !load(&actors[VICTIM].done) && time(NULL) < limit;)
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
		release(BLOCK, 0);
		ASSERT_TRUE(comes(&actors[VICTIM].done));
		EXPECT_EQ(word(0), actors[VICTIM].seen);
		again += policy[DATA].reads > 1;
		end(_metadata);
	}
	EXPECT_GE(4, again);
}

/* Swapped in to be written to, pages are not copied, but for a few (others are counted, too) */
TEST_F_TIMEOUT(one, reused, TIMEOUT)
{
	long before;

	if (!begin(_metadata, shared_swap, false))
		return;
	before = event("pgreuse");
	go(VICTIM, touch, NR_PAGES);
	EXPECT_TRUE(comes(&actors[VICTIM].done) && !actors[VICTIM].err);
	EXPECT_LT(NR_PAGES / 2, event("pgreuse") - before);
	end(_metadata);
}

int main(int argc, char **argv)
{
	psz = sysconf(_SC_PAGESIZE);
	main_pid = getpid();
	policy = mmap(NULL, psz, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	actors = mmap(NULL, psz, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	staged = (void *)((char *)actors + psz - sizeof(*staged));
	mlockall(MCL_CURRENT | MCL_FUTURE);
	atexit(remove_device);
	on_end(exit);
	no_fuse = make_device();
	return test_harness_run(argc, argv);
}
