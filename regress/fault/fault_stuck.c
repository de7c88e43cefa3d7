// SPDX-License-Identifier: GPL-2.0
/*
 * What completes while a page fault waits for a device that does not answer.
 *
 * A thread, the victim, touches a page whose read is held back until all has been
 * counted. It is a page of a file, or one that is swapped out. Or else it is read
 * for the second or third time: once a read is answered, somebody takes the page out
 * of the page cache, before the victim can map it. Meanwhile a writer,
 * if there is to be one, changes the address space, and then others try what is
 * counted. All these are threads of one process, which is made for each case.
 *
 * How long something takes decides nothing. A thread has either done its operation,
 * or it sleeps while all others sleep, too, and the device has nothing to do; this
 * must not change for SETTLE samples. Whoever looks at that is another process, as
 * nearly everything that a process does itself may need the locks that this is about.
 * For the same reason the threads write to nothing but shared memory that is there
 * already: fork() would let them fault otherwise.
 *
 * The device is a FUSE server, in a process of its own: a file of it is mapped, and
 * another one is below the loop device that has the swap.
 */
#include "stuck_device.h"

#include <pthread.h>
#include <sys/wait.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT		21
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

#define FAULTS		16U	/* that are tried by a thread each, half below the victim's VMA */
#define STRIDE		32U	/* pages from one to the next: more than a fault maps around it */
#define AREA		((FAULTS + 1) * STRIDE)
#define NEIGHBOUR	16U	/* the page of the victim's VMA that is changed */
#define STACK		(64U << 10)
#define PATIENCE	120	/* seconds until something is wrong */
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
#define VMAS		1200U	/* that the process has at least */
#define SETTLE		30	/* samples in which nothing happens */
#define RECLAIM_TRIES	2000

enum kind { FILE_FIRST, FILE_SECOND, FILE_THIRD, SWAP, SHMEM };
static const char *const kind_names[] = {
	"file", "file-second", "file-third", "swap", "shmem", NULL
};

/* How often the victim's page is taken */
static unsigned int takes(enum kind kind)
{
	return kind == FILE_SECOND ? 1 : kind == FILE_THIRD ? 2 : 0;
}

static bool swaps(enum kind kind)
{
	return kind == SWAP || kind == SHMEM;
}

enum op {
	NONE, FAULT_SAME, FAULT_OTHER, FAULT_IO, MPROTECT_PAGE, MPROTECT_VMA, MPROTECT_OTHER,
	MUNMAP_VMA, MUNMAP_OTHER, FORK, NR_OPS, TAKE = NR_OPS
};

static const char *const op_names[] = {
	"none", "fault-same", "fault-other", "fault-io", "mprotect-page", "mprotect-vma",
	"mprotect-other", "munmap-vma", "munmap-other", "fork", NULL
};

static struct {
	struct bench_list kinds, writers, probes;
} cfg = {
	.kinds = { 5, { FILE_FIRST, FILE_SECOND, FILE_THIRD, SWAP, SHMEM } },
	.writers = { 1, { NONE } },
	.probes = { NR_OPS - 1, { 1, 2, 3, 4, 5, 6, 7, 8, 9 } },
};

/* Who does something, and the shared memory in which that is told */
#define TAKERS 2
enum { VICTIM, WRITER, TAKER, PROBE = TAKER + TAKERS, NR_THREADS = PROBE + FAULTS };
enum state { IDLE, DONE, WRONG };

struct thread {
	unsigned int go;
	unsigned int state;
	unsigned int error;
	pid_t tid;
	enum op op;
	unsigned int nth;
};

static struct control {
	struct thread thread[NR_THREADS];
	unsigned int ready;	/* threads that wait for their turn */
	unsigned int end;
} *ctl;

static pid_t testee;

/* ---- the process in which somebody is stuck ---- */

static enum kind kind;
static unsigned char *stuck;			/* AREA pages: the first one is the victim's */
static unsigned char *other[FAULTS + 1];	/* two pages of own memory, a VMA each */
static unsigned char *live[FAULTS];		/* a page of a file that can be read */
static unsigned char *stacks;

static void *place(void *at, size_t pages, int prot, int flags, int fd, size_t from)
{
	void *p = mmap(at, pages * page, prot, flags, fd, from * page);

	if (p == MAP_FAILED)
		bench_die_errno("cannot map %zu pages", pages);
	/* An error means that there are no huge pages to begin with */
	madvise(p, pages * page, MADV_NOHUGEPAGE);
	return p;
}

/* Half of what is beside the victim's VMA, below it or above it; returns the end */
static unsigned char *place_half(unsigned char *at, unsigned int half, int live_fd)
{
	unsigned int i, n, nr = FAULTS / 2 + half;

	/* With what is between them, which cannot be touched */
	for (i = 0; i < VMAS / 4; i++, at += 2 * page)
		place(at, 1, PROT_READ | PROT_WRITE, ANON | MAP_FIXED, -1, 0);
	for (i = 0; i < nr; i++, at += 3 * page) {
		n = half * FAULTS / 2 + i;
		other[n] = place(at, 2, PROT_READ | PROT_WRITE, ANON | MAP_FIXED, -1, 0);
		/* The first write to a VMA takes the mmap_lock */
		*other[n] = 1;
	}
	for (i = 0; i < FAULTS / 2; i++, at += 2 * page) {
		n = half * FAULTS / 2 + i;
		live[n] = place(at, 1, PROT_READ, MAP_PRIVATE | MAP_FIXED, live_fd, n * STRIDE);
	}
	return at;
}

static bool resident(void *addr)
{
	unsigned char vec;

	if (mincore(addr, page, &vec))
		bench_die_errno("mincore");
	return vec & 1;
}

/* The victim's page leaves the memory, and the swap cache as well */
static void swap_out(void)
{
	unsigned int tries;

	for (tries = 0; tries < RECLAIM_TRIES; tries++) {
		if (madvise(stuck, page, MADV_PAGEOUT))
			bench_die_errno("MADV_PAGEOUT");
		if (!resident(stuck))
			return;
		/* It fails if it did not get as much, which is to be expected */
		write_str(GROUP "/memory.reclaim", "1M");
		usleep(SAMPLE_MS * 1000);
	}
	bench_die("a page does not leave the memory");
}

static void stage(void)
{
	int live_fd = open_node(LIVE), fd = -1;
	unsigned char *at;
	unsigned int i;
	__u64 word;

	if (posix_fadvise(live_fd, 0, 0, POSIX_FADV_DONTNEED))
		bench_die("POSIX_FADV_DONTNEED failed");
	at = place(NULL, VMAS + AREA + 8 * FAULTS, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
	at = place_half(at, 0, live_fd) + page;
	if (swaps(kind)) {
		if (write_str(GROUP "/cgroup.procs", "0"))
			bench_die_errno("cannot join a cgroup");
		if (kind == SHMEM) {
			fd = memfd_create("fault_stuck", MFD_CLOEXEC);
			if (fd < 0 || ftruncate(fd, AREA * page))
				bench_die_errno("memfd");
		}
		stuck = place(at, AREA, PROT_READ | PROT_WRITE,
			      MAP_FIXED | (kind == SHMEM ? MAP_SHARED : ANON), fd, 0);
		*(__u64 *)stuck = word_at(STUCK, 0);
		swap_out();
		if (write_str("cgroup/cgroup.procs", "0"))
			bench_die_errno("cannot leave a cgroup");
	} else {
		fd = open_node(STUCK);
		if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			bench_die("POSIX_FADV_DONTNEED failed");
		stuck = place(at, AREA, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE, fd, 0);
		/* Not read ahead, which looks if the page is still there */
		if (takes(kind) && madvise(stuck, AREA * page, MADV_RANDOM))
			bench_die_errno("MADV_RANDOM");
	}
	/* The pages of the victim's file that are there, but not mapped */
	for (i = 1; fd >= 0 && i <= FAULTS; i++) {
		word = word_at(STUCK, i * STRIDE * page);
		if ((kind == SHMEM ? pwrite(fd, &word, sizeof(word), i * STRIDE * page) :
		     pread(fd, &word, sizeof(word), i * STRIDE * page)) != sizeof(word))
			bench_die_errno("cannot bring pages of a file into memory");
	}
	place_half(at + (AREA + 1) * page, 1, live_fd);
	for (i = 0; i < FAULTS; i++)
		if (resident(live[i]))
			bench_die("a page that is to be read is there already");
	if (resident(stuck))
		bench_die("the victim's page is there already");
	close(live_fd);
	if (fd >= 0)
		close(fd);
}

static int child(void *arg)
{
	(void)arg;
	syscall(SYS_exit_group, 0);
	return 0;
}

/*
 * A direct write takes the victim's page out of the page cache, whoever has a
 * reference to it, and waits for its lock first, that is, for the read.
 */
static void take(void)
{
	int fd = open("fuse/stuck", O_RDWR | O_DIRECT | O_CLOEXEC);

	*(__u64 *)other[0] = word_at(STUCK, 0);
	if (fd < 0 || pwrite(fd, other[0], page, 0) != (ssize_t)page)
		bench_die_errno("cannot write to a file");
	close(fd);
}

static enum state try(struct thread *me)
{
	unsigned char *last = other[FAULTS], *at;
	int ret = 0;

	switch (me->op) {
	case NONE:	/* the victim */
		return *(volatile __u64 *)stuck == word_at(STUCK, 0) ? DONE : WRONG;
	case FAULT_SAME:
		at = stuck + (me->nth + 1) * STRIDE * page;
		if (kind != SWAP)
			return *(volatile __u64 *)at == word_at(STUCK, at - stuck) ? DONE : WRONG;
		*(volatile unsigned char *)at = 1;
		return DONE;
	case FAULT_OTHER:
		*(volatile unsigned char *)(other[me->nth] + page) = 1;
		return DONE;
	case FAULT_IO:
		return *(volatile __u64 *)live[me->nth] ==
		       word_at(LIVE, me->nth * STRIDE * page) ? DONE : WRONG;
	case TAKE:
		if (me->nth < takes(kind))
			take();
		return DONE;
	case MPROTECT_PAGE:
		ret = mprotect(stuck, page, PROT_READ);
		break;
	case MPROTECT_VMA:
		ret = mprotect(stuck + NEIGHBOUR * page, page, PROT_READ);
		break;
	case MPROTECT_OTHER:
		ret = mprotect(last, page, PROT_READ);
		break;
	case MUNMAP_VMA:
		ret = munmap(stuck + NEIGHBOUR * page, page);
		break;
	case MUNMAP_OTHER:
		ret = munmap(last, page);
		break;
	case FORK:
		/* Not on the same stack, which is shared */
		ret = clone(child, stacks + (NR_THREADS + 1 + (me != &ctl->thread[WRITER])) * STACK,
			    SIGCHLD, NULL);
		if (ret > 0)
			ret = 0;
		break;
	default:
		break;
	}
	me->error = ret ? errno : 0;
	return ret ? WRONG : DONE;
}

static void *thread(void *arg)
{
	struct thread *me = arg;

	me->tid = syscall(SYS_gettid);
	__atomic_add_fetch(&ctl->ready, 1, __ATOMIC_ACQ_REL);
	bench_event_wait(&me->go);
	store(&me->state, try(me));
	bench_event_wait(&ctl->end);
	return NULL;
}

static noreturn void be_tested(unsigned int nr)
{
	size_t size = (NR_THREADS + 2) * STACK;
	pthread_t threads[NR_THREADS];
	pthread_attr_t attr;
	unsigned int i;

	bench_die_with(bench_main_pid);
	/* Everything that is there by now stays there, and cannot fault again */
	stacks = bench_map(size, MAP_SHARED);
	if (mlockall(MCL_CURRENT) || madvise(stacks, size, MADV_POPULATE_WRITE))
		bench_die_errno("cannot keep pages in memory");
	stage();
	for (i = 0; i < nr; i++) {
		pthread_attr_init(&attr);
		if (pthread_attr_setstack(&attr, stacks + i * STACK, STACK) ||
		    pthread_create(&threads[i], &attr, thread, &ctl->thread[i]))
			bench_die("cannot start a thread");
	}
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	while (wait(NULL) > 0)
		;
	_exit(0);
}

/* ---- who looks at it ---- */

static void leave(void)
{
	if (testee) {
		kill(testee, SIGKILL);
		device_release();
		waitpid(testee, NULL, 0);
	}
}

static noreturn void lost(const char *what)
{
	int status;

	if (waitpid(testee, &status, WNOHANG) == testee) {
		testee = 0;
		bench_die("the process that was to be stuck has ended with %#x", status);
	}
	bench_die("%s, in %d seconds", what, PATIENCE);
}

/* What a thread has done, as a number; 0 if it does something at the moment */
static __u64 sleeping(const struct thread *t)
{
	unsigned long long switches = 1, count;
	char path[64], line[128], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", testee, t->tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "State: %c", &state);
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %llu", &count) == 1)
			switches += count;
	}
	fclose(file);
	return state == 'D' || state == 'S' ? switches : 0;
}

/*
 * Until each of these threads has done what it was told to, or sleeps while
 * nothing happens any more. Returns how many are done.
 */
static unsigned int settle(unsigned int first, unsigned int nr)
{
	unsigned int same = 0, i, done;
	__u64 before[NR_THREADS] = {}, now, since = bench_now();
	bool quiet;

	do {
		if (bench_now() - since > PATIENCE * BENCH_NSEC)
			lost("nothing was decided");
		usleep(SAMPLE_MS * 1000);
		quiet = !load(&device->answering);
		for (i = first, done = 0; i < first + nr; i++) {
			if (load(&ctl->thread[i].state)) {
				done++;
				continue;
			}
			now = sleeping(&ctl->thread[i]);
			quiet = quiet && now && now == before[i];
			before[i] = now;
		}
		same = quiet ? same + 1 : 0;
	} while (done < nr && same < SETTLE);
	return done;
}

static void go(unsigned int i)
{
	bench_event_set(&ctl->thread[i].go, true);
}

/* Who takes a page runs as soon as it is unlocked, and the victim only then */
static void takers_go_first(void)
{
	struct sched_param prio = { .sched_priority = 1 };
	struct thread *taker = &ctl->thread[TAKER];
	unsigned int i;
	cpu_set_t cpu;
	int err;

	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	err = sched_setaffinity(ctl->thread[VICTIM].tid, sizeof(cpu), &cpu);
	for (i = 0; i < TAKERS && !err; i++)
		err = sched_setaffinity(taker[i].tid, sizeof(cpu), &cpu) ?:
		      sched_setscheduler(taker[i].tid, SCHED_FIFO, &prio);
	if (err)
		bench_die_errno("cannot let a thread go first");
}

/* Answer the victim's read, but let its page be taken before it goes on */
static void answer_and_take(unsigned int taker)
{
	go(taker);
	if (settle(taker, 1))
		bench_die("the victim's page is taken while it is read");
	device_answer();
	settle(VICTIM, 1);
}

static void test(enum kind this, enum op writer, enum op probe)
{
	unsigned int probes = probe <= FAULT_IO ? FAULTS : 1, nr = PROBE + probes;
	unsigned int i, held, done, waits = 0;
	struct thread *t = ctl->thread;
	__u64 since = bench_now();
	int status;

	memset(t, 0, sizeof(ctl->thread));
	store(&ctl->ready, 0);
	store(&ctl->end, 0);
	kind = this;
	t[WRITER].op = writer;
	for (i = 0; i < TAKERS; i++) {
		t[TAKER + i].op = TAKE;
		t[TAKER + i].nth = i;
	}
	for (i = 0; i < probes; i++) {
		t[PROBE + i].op = probe;
		t[PROBE + i].nth = i;
	}
	testee = fork();
	if (testee < 0)
		bench_die_errno("fork");
	if (!testee)
		be_tested(nr);
	while (load(&ctl->ready) < nr) {
		if (waitpid(testee, &status, WNOHANG) == testee) {
			testee = 0;
			bench_die("%s: there is nothing to be stuck in", kind_names[kind]);
		}
		if (bench_now() - since > PATIENCE * BENCH_NSEC)
			lost("the threads did not begin");
		usleep(SAMPLE_MS * 1000);
	}

	store(&device->hold_node, swaps(kind) ? SWAPPED : STUCK);
	go(VICTIM);
	settle(VICTIM, 1);
	if (takes(kind))
		takers_go_first();
	for (i = 0; i < takes(kind); i++)
		answer_and_take(TAKER + i);
	held = load(&device->held);
	if (!held)
		bench_die("%s: the victim %s", kind_names[kind], load(&t[VICTIM].state) == IDLE ?
			  "waits, but not for the device" : "does not wait for the device");
	if (writer != NONE) {
		go(WRITER);
		waits = !settle(WRITER, 1);
	}
	for (i = PROBE; i < nr; i++)
		go(i);
	done = settle(PROBE, probes);

	device_release();
	go(WRITER);
	for (i = 0; i < TAKERS; i++)
		go(TAKER + i);
	since = bench_now();
	for (i = 0; i < nr; i++)
		while (!load(&t[i].state)) {
			if (bench_now() - since > PATIENCE * BENCH_NSEC)
				lost("not everything went on when the device did");
			usleep(SAMPLE_MS * 1000);
		}
	for (i = 0; i < nr; i++)
		if (t[i].state == WRONG)
			bench_leave(BENCH_FAIL, t[i].error, "%s: thread %u, %s, has failed",
				    kind_names[kind], i, op_names[t[i].op]);
	bench_event_set(&ctl->end, true);
	if (waitpid(testee, &status, 0) != testee || status)
		bench_die("the process that was stuck has ended with %#x", status);
	testee = 0;

	bench_json_begin("fault_stuck");
	bench_json_str("kind", kind_names[kind]);
	bench_json_str("writer", op_names[writer]);
	bench_json_str("probe", op_names[probe]);
	bench_json_bool("stuck", held);
	bench_json_bool("writer_waits", waits);
	bench_json_u64("done", done);
	bench_json_u64("of", probes);
	bench_json_end();
}

static const char help[] =
"Usage: fault_stuck [OPTION]...\n"
"Count what completes while a page fault waits for a device that is stuck: a JSON\n"
"object a line.\n"
"\n"
"  -k, --kind LIST     what the fault waits for: file, file-second, file-third (to be\n"
"                      read for that time), swap, shmem (default: all)\n"
"  -w, --writer LIST   what a writer does before: none (default), or an operation\n"
"  -p, --probe LIST    the operations that are counted (default: all): fault-same,\n"
"                      fault-other, fault-io, mprotect-page, mprotect-vma,\n"
"                      mprotect-other, munmap-vma, munmap-other, fork\n"
"  -h, --help          show this\n";

static const struct option options[] = {
	{ "kind",	required_argument,	NULL, 'k' },
	{ "writer",	required_argument,	NULL, 'w' },
	{ "probe",	required_argument,	NULL, 'p' },
	{ "help",	no_argument,		NULL, BENCH_OPT_HELP },
	{}
};

int main(int argc, char **argv)
{
	unsigned int k, w, p;
	bool any = false, swap = false;
	int c;

	bench_name = "fault_stuck";
	while ((c = bench_getopt(argc, argv, ":k:w:p:h", options, help)) != -1) {
		switch (c) {
		case 'k':
			bench_parse_names(&cfg.kinds, "--kind", optarg, kind_names);
			break;
		case 'w':
			bench_parse_names(&cfg.writers, "--writer", optarg, op_names);
			break;
		case 'p':
			bench_parse_names(&cfg.probes, "--probe", optarg, op_names);
			break;
		}
	}
	for (w = 0; w < cfg.writers.nr; w++)
		if (cfg.writers.val[w] >= FAULT_SAME && cfg.writers.val[w] <= FAULT_IO)
			bench_usage("--writer: a fault changes nothing");
	for (p = 0; p < cfg.probes.nr; p++)
		if (cfg.probes.val[p] == NONE)
			bench_usage("--probe: there is nothing to count of 'none'");
	ctl = bench_map(sizeof(*ctl), MAP_SHARED);
	for (k = 0; k < cfg.kinds.nr; k++)
		swap = swap || swaps(cfg.kinds.val[k]);
	device_make(swap);
	atexit(leave);
	for (k = 0; k < cfg.kinds.nr; k++) {
		if (!have_swap && swaps(cfg.kinds.val[k])) {
			fprintf(stderr, "%s: no %s: %s\n", bench_name,
				kind_names[cfg.kinds.val[k]], no_swap);
			continue;
		}
		any = true;
		for (w = 0; w < cfg.writers.nr; w++)
			for (p = 0; p < cfg.probes.nr; p++)
				test(cfg.kinds.val[k], cfg.writers.val[w], cfg.probes.val[p]);
	}
	if (!any)
		bench_skip("there is no swap: %s", no_swap);
	return bench_finish();
}
