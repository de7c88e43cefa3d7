// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults that have waited end under the VMA lock, also while the mmap_lock is
 * held for writing, and notice what was done to the mapping.  Devices of device-mapper over
 * null_blk answer nothing while they are suspended.  The threads of the testee, a
 * process of its own, do one thing each when they are told to.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "kselftest_harness.h"
#include "dm_hold.h"

/* ARCH_SUPPORTS_PER_VMA_LOCK, of powerpc on pseries and powernv */
#if defined(__x86_64__) || defined(__aarch64__) || defined(__arm__) || defined(__riscv) || \
	defined(__s390x__) || defined(__loongarch__) || defined(__powerpc64__)
#define VMA_LOCKS	true
#else
#define VMA_LOCKS	false
#endif

#define RW		(PROT_READ | PROT_WRITE)
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
#define TARGET		(2UL << 20)		/* the fault is here in it */
#define HOLD_AT		((char *)0x100000)	/* fork() comes here first */

enum { FIRST, SECOND, HOLDER, CHANGER, RESOLVER, NR_ACTORS };
enum { READY = 1, SKIPPED, FAILED };
enum { PROTECT_HOLD, FORK, UNMAP, NO_ACCESS, READ_ONLY, REPLACE, DROP, REMAP, MOVE, NR_CHANGES };
static struct actor {
	int go, tid, begun, done, code, majflt;
	char *at;
	unsigned long seen;
} *actors;
static struct how { int flags, advice, write, swap, uffd; } how;
static int uffd, *staged, *changing;
static char *area, *at, *spare;
static unsigned long psz;
static const char *missing;
static pid_t testee;
static __thread struct actor *me;

static int change(int what)
{
	struct uffdio_move move = { (long)spare, (long)at, psz };

	switch (what) {
	case PROTECT_HOLD:
		return mprotect(HOLD_AT, psz, PROT_READ);
	case FORK:
		return fork() ?: (_exit(0), 0);
	case UNMAP:
		return munmap(at, psz);
	case NO_ACCESS:
		return mprotect(at, psz, PROT_NONE);
	case READ_ONLY:
		return mprotect(at, psz, PROT_READ);
	case REPLACE:	/* vm_flags are the same */
		return -(mmap(at, psz, RW, MAP_FIXED | how.flags, fds[DATA], 0) != at);
	case DROP:
		return madvise(at, psz, MADV_DONTNEED);
	case REMAP:
		return -(mremap(at, psz, psz, MREMAP_MAYMOVE | MREMAP_FIXED, spare) != spare);
	}
	/* Nothing is there before: if it is then, a second attempt of the kernel says so */
	while (ioctl(uffd, UFFDIO_MOVE, &move))
		if (errno != EAGAIN)
			return -(errno != EEXIST);
	return 0;
}

/* Of a thread that has done its own, or as a handler of SIGSEGV */
static void end(int sig, siginfo_t *info, void *context)
{
	if (sig)
		me->code = info->si_code;
	store(&me->done, 1);
	for (;;)
		pause();
}

static void resolve(void)
{
	struct uffdio_rwprotect unprotect = { { (long)at, psz }, 0 };
	struct uffdio_copy copy = { (long)at, (long)spare, psz };
	struct uffd_msg msg;

	read(uffd, &msg, sizeof(msg));
	me->seen = msg.arg.pagefault.flags;
	if (me->seen & UFFD_PAGEFAULT_FLAG_RWP)
		me->code = ioctl(uffd, UFFDIO_RWPROTECT, &unprotect);
	else
		me->code = ioctl(uffd, UFFDIO_COPY, &copy);
}

static void *act(void *arg)
{
	struct rusage before, after;

	me = arg;
	store(&me->tid, syscall(SYS_gettid));
	while (!load(&me->go))
		usleep(1000);
	store(&me->begun, 1);
	if (me == &actors[CHANGER]) {
		me->code = change(*changing) < 0 ? errno : 0;
	} else if (me == &actors[RESOLVER]) {
		resolve();
	} else {
		getrusage(RUSAGE_THREAD, &before);
		if (how.write || me == &actors[HOLDER])
			store(me->at + psz - 1, 1);
		me->seen = load((unsigned long *)me->at);
		getrusage(RUSAGE_THREAD, &after);
		me->majflt = after.ru_majflt - before.ru_majflt;
	}
	end(0, NULL, NULL);
	return NULL;
}

static bool resident(void)
{
	unsigned char vec = 0;

	return mincore(at, psz, &vec) || (vec & 1);
}

/* A CPU that has used another swap device fills its cluster there first */
static bool swaps_to_device(void)
{
	const size_t chunk = psz * 64, size = chunk * 32;
	char *filler = mmap(NULL, size, RW, ANON, -1, 0);
	const long used = swap_used();
	bool ret;

	madvise(filler, size, MADV_NOHUGEPAGE);
	for (size_t pos = 0; pos < size && swap_used() == used; pos += chunk) {
		memset(filler + pos, 1, chunk);
		madvise(filler + pos, chunk, MADV_PAGEOUT);
	}
	ret = swap_used() > used;
	munmap(filler, size);
	return ret;
}

/* The page at @at has to be read or resolved; no other page has to be */
static int stage(void)
{
	const bool rwp = how.uffd == UFFDIO_REGISTER_MODE_RWP, move = how.uffd && how.swap && !rwp;
	struct uffdio_rwprotect protect = { { (long)at, psz }, UFFDIO_RWPROTECT_MODE_RWP };
	struct uffdio_api api = { UFFD_API, rwp ? UFFD_FEATURE_RWP : 0 };
	struct uffdio_register reg = { { (long)area, SIZE }, how.uffd };
	cpu_set_t cpu = {};
	char byte;

	if (move)
		reg.range = (struct uffdio_range) { (long)spare, psz };
	mmap(HOLD_AT, psz, RW, MAP_SHARED | MAP_FIXED_NOREPLACE, fds[HOLD], 0);
	mmap(area, SIZE, RW, how.flags | MAP_FIXED, fds[DATA], 0);
	mmap(spare, psz, RW, ANON | MAP_FIXED, -1, 0);
	if (madvise(area, SIZE, how.advice))
		return SKIPPED;
	if (how.flags & MAP_PRIVATE)	/* The first copy in a VMA takes the mmap_lock */
		area[SIZE - 1] = 1;
	if (how.swap || how.uffd)
		*(long *)(how.swap ? at : spare) = ~TARGET;
	CPU_SET(sched_getcpu(), &cpu);	/* LRU batches are a CPU's own */
	sched_setaffinity(0, sizeof(cpu), &cpu);
	if (how.swap && !swaps_to_device())
		return SKIPPED;
	/* madvise() has a plug: the page stays in the swap cache, and is clean then */
	if (how.swap && !madvise(at, psz, MADV_PAGEOUT))
		load((long *)at);
	if (how.uffd) {
		uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
		if (ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &reg) ||
		    (rwp && ioctl(uffd, UFFDIO_RWPROTECT, &protect)))
			return SKIPPED;
	}
	/* Wait for the read of a task that was killed: its page is not dropped before */
	pread(fds[DATA], &byte, 1, TARGET);
	return comes(!(how.swap ? madvise(at, psz, MADV_PAGEOUT) : fsync(fds[DATA]) ?:
		       posix_fadvise(fds[DATA], 0, 0, POSIX_FADV_DONTNEED)) && !resident()) ?
	       READY : FAILED;
}

static void be_tested(void)
{
	struct sigaction action = { .sa_sigaction = end, .sa_flags = SA_SIGINFO };
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(guard[1]);	/* It may be stuck until the devices are resumed */
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < NR_ACTORS; i++) {
		actors[i].at = i == HOLDER ? HOLD_AT : at;
		pthread_create(&thread, NULL, act, &actors[i]);
		comes(load(&actors[i].tid));
	}
	store(staged, stage());
	for (;;)
		pause();
}

static bool zswap_on(void)
{
	char on = 'N';
	int fd = open("/sys/module/zswap/parameters/enabled", O_RDONLY);

	read(fd, &on, 1);
	close(fd);
	return on == 'Y';
}

static bool begin(struct __test_metadata *_metadata, struct how as)
{
	if (missing || (as.swap && zswap_on()))
		SKIP(return false, "%s", missing ?: "zswap is on");
	for (int dev = DATA; dev < NR_DEVS; dev++)
		suspend(dev, false);
	how = as;
	memset(actors, 0, psz);
	testee = fork();
	if (!testee)
		be_tested();
	ASSERT_TRUE(comes(load(staged)));
	if (*staged == SKIPPED)
		SKIP(return false, "no such userfaultfd, large folios, or swap");
	ASSERT_EQ(READY, *staged);
	return true;
}

static bool done(int who)
{
	return comes(load(&actors[who].done));
}

/* It waits for a page */
static bool waits(int who)
{
	const char wanted = how.uffd && !how.swap && who <= SECOND ? 'S' : 'D';

	store(&actors[who].go, 1);
	return comes(load(&actors[who].begun)) && waits_in(wanted, actors[who].tid) &&
	       !load(&actors[who].done);
}

static bool killed(void)
{
	return !kill(testee, SIGKILL) && comes(waitpid(testee, NULL, WNOHANG) == testee);
}

FIXTURE(fault) {};
FIXTURE_VARIANT(fault) { struct how how; };
FIXTURE_VARIANT_ADD(fault, file) { .how = { .flags = MAP_SHARED } };
FIXTURE_VARIANT_ADD(fault, file_random) { .how = { .flags = MAP_SHARED, .advice = MADV_RANDOM } };
FIXTURE_VARIANT_ADD(fault, file_large) { .how = { .flags = MAP_SHARED, .advice = MADV_HUGEPAGE } };
FIXTURE_VARIANT_ADD(fault, file_write) { .how = { .flags = MAP_SHARED, .write = 1 } };
FIXTURE_VARIANT_ADD(fault, file_copy) { .how = { .flags = MAP_PRIVATE, .write = 1 } };
FIXTURE_VARIANT_ADD(fault, swap) { .how = { .flags = ANON, .swap = 1 } };
FIXTURE_VARIANT_ADD(fault, swap_write) { .how = { .flags = ANON, .swap = 1, .write = 1 } };
FIXTURE_VARIANT_ADD(fault, userfaultfd) {
	.how = { .flags = ANON, .uffd = UFFDIO_REGISTER_MODE_MISSING }
};

FIXTURE_SETUP(fault) {}
FIXTURE_TEARDOWN(fault) {}

/*
 * Two threads that have waited for one page have it while the mmap_lock is held
 * for writing: by mprotect(), or fork(), that waits for a third that has the lock
 * of another VMA while it is in ->page_mkwrite().  The swap slot is free then.
 */
TEST_F_TIMEOUT(fault, ends_beside_writer, 120)
{
	const int dev = variant->how.swap ? SWAP : DATA;
	struct utsname uts;
	long before;

	uname(&uts);
	if (!VMA_LOCKS || !strstr(uts.version, "SMP"))
		SKIP(return, "a VMA has no lock of its own");
	for (int what = PROTECT_HOLD; what <= FORK; what++) {
		before = swap_used();
		if (!begin(_metadata, variant->how))
			return;
		suspend(dev, true);
		ASSERT_TRUE(waits(FIRST) && waits(SECOND));
		pwrite(fds[HOLD], &what, sizeof(what), 0);
		suspend(HOLD, true);
		ASSERT_EQ(0, sync_file_range(fds[HOLD], 0, psz, SYNC_FILE_RANGE_WRITE));
		ASSERT_TRUE(waits(HOLDER));
		*changing = what;
		ASSERT_TRUE(waits(CHANGER));
		ASSERT_FALSE(load(&actors[FIRST].done) || load(&actors[SECOND].done));
		suspend(dev, false);
		if (variant->how.uffd)
			store(&actors[RESOLVER].go, 1);
		EXPECT_TRUE(done(FIRST) && done(SECOND));
		EXPECT_FALSE(load(&actors[CHANGER].done));
		suspend(HOLD, false);
		for (int i = FIRST; i <= CHANGER; i++)
			ASSERT_TRUE(done(i));
		for (int i = FIRST; i <= SECOND; i++) {
			EXPECT_EQ(0, actors[i].code);
			EXPECT_EQ(~TARGET, actors[i].seen);
		}
		if (!variant->how.uffd)		/* that has read the page */
			EXPECT_EQ(1, actors[FIRST].majflt);
		if (variant->how.write && variant->how.swap)
			EXPECT_TRUE(comes(swap_used() >= 0 && swap_used() <= before));
		if (variant->how.advice == MADV_HUGEPAGE)
			EXPECT_EQ(1, preadv2(fds[DATA], &(struct iovec) { &what, 1 }, 1,
					     TARGET * 2 - psz, RWF_NOWAIT));
		ASSERT_TRUE(killed());
	}
}

/* Changes of the page that is waited for do not wait, and the fault sees them */
TEST_F_TIMEOUT(fault, sees_change, 120)
{
	const int dev = variant->how.swap ? SWAP : DATA;
	struct actor *first = &actors[FIRST];
	struct how as = variant->how;
	unsigned long seen;
	int what, code;

	if (as.uffd)
		SKIP(return, "what waits for userfaultfd waits for no device");
	for (what = UNMAP; what <= (as.swap ? MOVE : REMAP); what++) {
		if (what == MOVE)
			as.uffd = UFFDIO_REGISTER_MODE_MISSING;
		if (!begin(_metadata, as))
			return;
		suspend(dev, true);
		ASSERT_TRUE(waits(FIRST));
		*changing = what;
		store(&actors[CHANGER].go, 1);
		ASSERT_TRUE(what == MOVE || done(CHANGER));
		ASSERT_FALSE(load(&first->done));
		suspend(dev, false);
		ASSERT_TRUE(done(FIRST) && done(CHANGER));
		EXPECT_EQ(0, actors[CHANGER].code);
		code = what == UNMAP || what == REMAP ? SEGV_MAPERR :
		       what == NO_ACCESS || (what == READ_ONLY && as.write) ? SEGV_ACCERR : 0;
		EXPECT_EQ(code, first->code);
		seen = what == REPLACE && !as.swap ? ~0UL : what == REPLACE ||
		       (what == DROP && as.swap) ? 0 : ~TARGET;
		EXPECT_TRUE(code || first->seen == seen || (what == MOVE && !first->seen));
		if (what == REMAP || what == MOVE) {
			actors[SECOND].at = spare;
			store(&actors[SECOND].go, 1);
			EXPECT_TRUE(done(SECOND) && actors[SECOND].seen == ~TARGET);
		}
		ASSERT_TRUE(killed());
	}
}

/* A task that is killed does not wait for the device any more */
TEST_F_TIMEOUT(fault, killed, 120)
{
	if (!begin(_metadata, variant->how))
		return;
	suspend(DATA, true);
	suspend(SWAP, true);
	ASSERT_TRUE(waits(FIRST) && waits(SECOND));
	EXPECT_TRUE(killed());
}

/* A fault that has waited for swap asks userfaultfd, if reads of the page are to */
TEST(read_protected)
{
	const struct how as = { .flags = ANON, .swap = 1, .uffd = UFFDIO_REGISTER_MODE_RWP };

	if (!begin(_metadata, as))
		return;
	suspend(SWAP, true);
	ASSERT_TRUE(waits(FIRST));
	suspend(SWAP, false);
	store(&actors[RESOLVER].go, 1);
	ASSERT_TRUE(done(FIRST) && done(RESOLVER));
	EXPECT_EQ(0, actors[RESOLVER].code);
	EXPECT_EQ(UFFD_PAGEFAULT_FLAG_RWP, actors[RESOLVER].seen);
	EXPECT_EQ(~TARGET, actors[FIRST].seen);
	ASSERT_TRUE(killed());
}

int main(int argc, char **argv)
{
	int ret;

	psz = sysconf(_SC_PAGESIZE);
	actors = mmap(NULL, psz, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	staged = (void *)&actors[NR_ACTORS];
	changing = staged + 1;
	area = mmap(NULL, SIZE + TARGET * 2, PROT_NONE, ANON, -1, 0);
	area = (char *)(((unsigned long)area | (TARGET - 1)) + 1);
	at = area + TARGET;
	spare = area + SIZE;
	missing = make_devices(psz);
	ret = test_harness_run(argc, argv);
	remove_devices();
	return ret;
}
