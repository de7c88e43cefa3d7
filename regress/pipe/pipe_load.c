// SPDX-License-Identifier: GPL-2.0
/*
 * Throughput and write latency of anonymous pipes.
 *
 * The default is a sweep over numbers of writers and readers that share one
 * pipe, which shows how long pipe->mutex is held: a write() of many pages is
 * what the others have to wait for. --pair is the opposite: one thread, no
 * waiting and no scheduling, for the bare cost of a write() and a read().
 * --stuck shows what is left of a pipe while one writer is in a page fault
 * that takes long: if it has taken pipe->mutex before it touches its data,
 * nobody else gets anything done.
 *
 * Page allocation under the mutex behaves differently in a memory cgroup and
 * when memory is short, so either can be asked for (--memcg,
 * --memory-pressure).
 *
 * Nothing here passes or fails on time. Lost, damaged, duplicated or
 * reordered data is an error.
 */
#include "pipe.h"

#include <linux/userfaultfd.h>
#include <mntent.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define MAX_WORKERS		255
#define KIB			1024ULL
#define MAX_SIZE		(1024 * 1024 * KIB)
#define DEFAULT_PIPE_SIZE	(1024 * KIB)
#define DEFAULT_SIZE		(64 * KIB)
#define DEFAULT_SECONDS		3
#define DEFAULT_PAIRS		10000
#define DEFAULT_STUCK		1000
#define DEFAULT_WARMUP		32
#define PRESSURE	"stress-ng", "--quiet", "--vm", "2", "--vm-bytes", "50%", "--vm-keep", \
			"--vm-method", "all"
#define SETTLE		2	/* seconds until the memory is full */


/* --stuck: seconds until the writer must have come to the missing page */
#define STUCK_PATIENCE		10

static struct bench_opts opts = { .verify = BENCH_VERIFY_CHEAP };

static struct {
	struct bench_list sizes;
	struct bench_list writers;
	struct bench_list readers;
	__u64 count;		/* 0: limited by time */
	unsigned int pipe_size;
	unsigned int warmup;
	bool pair;
	__u64 residue;		/* --pair: bytes that stay in the pipe */
	bool cold;		/* --pair: buffers are not mapped when they are used */
	__u64 warm;		/* --cold: bytes of them that are mapped */
	int sink;		/* --splice: where messages go to, else 0 */
	bool stuck;
	bool marker;
	bool pressure;
	bool memcg;
} cfg = {
	.writers = { 3, { 1, 2, 5 } },
	.readers = { 3, { 1, 5, 10 } },
	.pipe_size = DEFAULT_PIPE_SIZE,
	.warmup = DEFAULT_WARMUP,
};

struct result {
	__u64 size;
	unsigned int pipe_size;
	unsigned int writers;
	unsigned int readers;
	__u64 writes;
	double seconds;
	const struct bench_hist *hist;
};

static const char *mode_name(void)
{
	return cfg.pair ? "pair" : cfg.stuck ? "stuck" : "sweep";
}

/* ---- marks in the kernel's trace ---- */

static void mark(const char *what, __u64 size, unsigned int writers, unsigned int readers)
{
	bench_mark("%s mode=%s size=%llu writers=%u readers=%u\n", what, mode_name(), size,
		   writers, readers);
}

/* ---- memory pressure ---- */

static pid_t guard_pid;

/* Is there an executable of that name in $PATH? */
static bool in_path(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];
	int len;

	while (path && *path) {
		len = strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s/%s", len, path, name);
		if (len && !access(file, X_OK))
			return true;
		path += len;
		path += *path == ':';
	}
	return false;
}

static noreturn void stress_exec(void)
{
	static char *const argv[] = { PRESSURE, NULL };
	sigset_t none;

	/* PR_SET_PDEATHSIG has been taken care of; the rest is defaults */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* Our stdout may be read by a program; and it wants a writable cwd */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	if (chdir("/tmp"))
		fprintf(stderr, "%s: cannot enter /tmp: %s\n", bench_name, strerror(errno));
	execvp(argv[0], argv);
	bench_die_errno("cannot run stress-ng");
}

/* Kill the children of this process, including those that were orphaned */
static void guard_kill_children(pid_t stress)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	unsigned int tries;
	long pid;
	FILE *f;

	kill(-stress, SIGKILL);
	for (tries = 0; tries < 500; tries++) {
		do {
			pid = waitpid(-1, NULL, WNOHANG);
		} while (pid > 0);
		if (pid < 0 && errno == ECHILD)
			return;
		/* A process that left the process group has become our child */
		f = fopen("/proc/thread-self/children", "r");
		while (f && fscanf(f, "%ld", &pid) == 1)
			kill(pid, SIGKILL);
		if (f)
			fclose(f);
		nanosleep(&pause, NULL);
	}
}

/*
 * stress-ng is a tree of processes, of which PR_SET_PDEATHSIG would only
 * reach the root. So a guard stands in between: it adopts the orphans of the
 * tree, and kills everything when told to or when the benchmark dies in
 * whatever way, SIGKILL included.
 */
static noreturn void guard_main(const sigset_t *sigs)
{
	pid_t stress;
	int sig;

	setpgid(0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != bench_main_pid)
		_exit(BENCH_FAIL);

	stress = fork();
	if (stress < 0)
		bench_die_errno("cannot fork stress-ng");
	if (!stress) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stress_exec();
	}
	/* On both sides, so that it is done whichever runs first */
	setpgid(stress, stress);

	for (;;) {
		if (sigwait(sigs, &sig))
			continue;
		if (sig == SIGTERM) {
			guard_kill_children(stress);
			_exit(BENCH_OK);
		}
		if (sig == SIGCHLD && waitpid(stress, NULL, WNOHANG) == stress) {
			guard_kill_children(stress);
			_exit(BENCH_FAIL);
		}
	}
}

static void pressure_stop(void)
{
	if (guard_pid <= 0)
		return;
	kill(guard_pid, SIGTERM);
	while (waitpid(guard_pid, NULL, 0) < 0 && errno == EINTR)
		;
	guard_pid = 0;
}

/* Figures taken without the pressure must not pass for figures under it */
static void pressure_check(void)
{
	if (guard_pid > 0 && waitpid(guard_pid, NULL, WNOHANG) == guard_pid) {
		guard_pid = 0;
		bench_die("stress-ng has ended early");
	}
}

static void pressure_start(void)
{
	sigset_t sigs, old;
	__u64 end;

	if (!in_path("stress-ng"))
		bench_skip("--memory-pressure needs stress-ng, which is not in $PATH");

	/* Blocked early, so that the guard cannot miss one */
	sigemptyset(&sigs);
	sigaddset(&sigs, SIGTERM);
	sigaddset(&sigs, SIGCHLD);
	sigaddset(&sigs, SIGINT);
	sigaddset(&sigs, SIGHUP);
	sigprocmask(SIG_BLOCK, &sigs, &old);
	fflush(stdout);
	guard_pid = fork();
	if (guard_pid < 0)
		bench_die_errno("cannot fork");
	if (!guard_pid)
		guard_main(&sigs);
	bench_at_exit(pressure_stop);
	sigprocmask(SIG_SETMASK, &old, NULL);

	for (end = bench_now() + SETTLE * BENCH_NSEC; bench_now() < end;) {
		const struct timespec pause = { .tv_nsec = 50000000 };

		nanosleep(&pause, NULL);
		pressure_check();
	}
}

/* ---- memory cgroup ---- */

static struct {
	char mnt[PATH_MAX / 4];
	char dir[PATH_MAX / 2];
	/* Made in advance, as snprintf() is not for signal handlers */
	char home_procs[PATH_MAX];
	char root_procs[PATH_MAX];
	char kill[PATH_MAX];
	char control[PATH_MAX];
	bool mounted, enabled, made;
} cg;

static bool put_file(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	ssize_t ret;
	int err;

	if (fd < 0)
		return false;
	ret = write(fd, text, strlen(text));
	err = errno;
	close(fd);
	errno = err;
	return ret == (ssize_t)strlen(text);
}

/* Does the blank separated list in the file have this word? */
static bool file_has_word(const char *dir, const char *name, const char *word)
{
	char path[PATH_MAX], item[64];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	while (f && !found && fscanf(f, "%63s", item) == 1)
		found = !strcmp(item, word);
	if (f)
		fclose(f);
	return found;
}

static void memcg_leave(void)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	unsigned int tries;

	if (cg.made) {
		/* Out of it first, then end what may still be in there */
		if (!put_file(cg.home_procs, "0"))
			put_file(cg.root_procs, "0");
		put_file(cg.kill, "1");
		for (tries = 0; tries < 500 && rmdir(cg.dir) && errno == EBUSY; tries++)
			nanosleep(&pause, NULL);
		cg.made = false;
	}
	if (cg.enabled) {
		put_file(cg.control, "-memory");
		cg.enabled = false;
	}
	if (cg.mounted) {
		umount2(cg.mnt, MNT_DETACH);
		rmdir(cg.mnt);
		cg.mounted = false;
	}
}

static bool memcg_find_mount(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;

	while (f && (m = getmntent(f))) {
		if (strcmp(m->mnt_type, "cgroup2") || strlen(m->mnt_dir) >= sizeof(cg.mnt))
			continue;
		snprintf(cg.mnt, sizeof(cg.mnt), "%s", m->mnt_dir);
		break;
	}
	if (f)
		endmntent(f);
	return cg.mnt[0];
}

/* Mount the cgroup2 file system where nobody else sees it */
static void memcg_mount(void)
{
	snprintf(cg.mnt, sizeof(cg.mnt), "/tmp/pipe_load.XXXXXX");
	if (unshare(CLONE_NEWNS))
		bench_skip("--memcg: no cgroup2 is mounted, and no mount namespace to be had: %s",
			   strerror(errno));
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		bench_die_errno("--memcg: cannot make the mounts private");
	if (!mkdtemp(cg.mnt))
		bench_die_errno("--memcg: cannot make %s", cg.mnt);
	if (mount("none", cg.mnt, "cgroup2", 0, NULL)) {
		int err = errno;

		rmdir(cg.mnt);
		bench_skip("--memcg: cannot mount cgroup2: %s", strerror(err));
	}
	cg.mounted = true;
}

static void memcg_enter(void)
{
	char file[PATH_MAX], line[PATH_MAX / 2], home[PATH_MAX / 2] = "/";
	FILE *f;

	if (geteuid())
		bench_skip("--memcg needs root");
	bench_at_exit(memcg_leave);
	if (!memcg_find_mount())
		memcg_mount();
	if (!file_has_word(cg.mnt, "cgroup.controllers", "memory"))
		bench_skip("--memcg: the memory controller is not available to cgroup2");

	/*
	 * The first memory cgroup besides the root turns the accounting of
	 * kernel memory on, for good: what runs after this without --memcg is
	 * not the same as what ran before it.
	 */
	snprintf(cg.control, sizeof(cg.control), "%s/cgroup.subtree_control", cg.mnt);
	if (!file_has_word(cg.mnt, "cgroup.subtree_control", "memory")) {
		if (!put_file(cg.control, "+memory"))
			bench_skip("--memcg: cannot enable the memory controller: %s",
				   strerror(errno));
		cg.enabled = true;
	}

	f = fopen("/proc/self/cgroup", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::/", 4))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(home, sizeof(home), "%s", line + 3);
	}
	if (f)
		fclose(f);
	snprintf(cg.home_procs, sizeof(cg.home_procs), "%s%s/cgroup.procs", cg.mnt, home);
	snprintf(cg.root_procs, sizeof(cg.root_procs), "%s/cgroup.procs", cg.mnt);
	snprintf(cg.dir, sizeof(cg.dir), "%s/pipe_load.%d", cg.mnt, getpid());
	snprintf(cg.kill, sizeof(cg.kill), "%s/cgroup.kill", cg.dir);
	if (mkdir(cg.dir, 0755))
		bench_die_errno("--memcg: cannot make %s", cg.dir);
	cg.made = true;

	snprintf(file, sizeof(file), "%s/cgroup.procs", cg.dir);
	if (!put_file(file, "0"))
		bench_die_errno("--memcg: cannot enter %s", cg.dir);
}

/* ---- what is in a message ---- */

/*
 * Readers that share a pipe tear messages apart, and messages larger than
 * PIPE_BUF may be interleaved. So a message consists of units that cannot be
 * torn, and each unit tells where it belongs:
 *
 * - Pages, if the size is a multiple of the page size. The slots of a pipe
 *   are pages, and a write() that finds room for only a part of its data
 *   fills whole slots.
 * - The message, if it is not larger than PIPE_BUF: this is written at once
 *   and, as every message in the pipe has the size of the buffers it is read
 *   with, read at once.
 * - 64-bit words, if that divides the size: then nothing, neither a slot nor
 *   a read(), ends in between.
 * - Bytes otherwise, of which only number and sum can be compared.
 *
 * The writers keep totals of what they write and the readers of what they
 * read, by writer. At the end these have to be the same.
 */
enum unit_kind { UNIT_BLOCK, UNIT_WORD, UNIT_BYTE };

/* A page, or a whole message of at least the size of this. Ends in ~key */
struct block {
	__u64 id;		/* magic, writer, which unit of the message */
	__u64 seq;
	__u64 key;		/* a checksum of the two */
	__u64 body[];
};

#define BLOCK_MIN		(sizeof(struct block) + sizeof(__u64))
#define BLOCK_MAGIC		0x9bedULL
#define BODY_STEP		0x9e3779b97f4a7c15ULL

/* Word: writer 8, sequence number 20, offset 20, checksum 16 bits */
#define WORD_FIELD		((1ULL << 20) - 1)

struct tally {
	__u64 units;
	__u64 sum;
	__u64 xor;
	__u64 next;		/* the block we expect, or later with several readers */
};

struct message {
	size_t size;
	size_t unit;
	enum unit_kind kind;
	unsigned int writers;
	unsigned int readers;
};

static void message_init(struct message *m, size_t size, unsigned int writers,
			 unsigned int readers)
{
	size_t page = bench_page_size();

	m->size = size;
	m->writers = writers;
	m->readers = readers;
	m->kind = UNIT_BLOCK;
	if (!(size % page)) {
		m->unit = page;
	} else if (size <= PIPE_BUF && size >= BLOCK_MIN && !(size % sizeof(__u64))) {
		m->unit = size;
	} else if (!(size % sizeof(__u64)) && size / sizeof(__u64) <= WORD_FIELD) {
		m->kind = UNIT_WORD;
		m->unit = sizeof(__u64);
	} else {
		m->kind = UNIT_BYTE;
		m->unit = 1;
	}
}

static void tally_add(struct tally *t, __u64 val)
{
	t->units++;
	t->sum += val;
	t->xor ^= val;
}

static __u64 block_key(const struct block *b)
{
	return bench_mix(b->id + bench_mix(b->seq));
}

static __u64 word_check(__u64 word)
{
	return bench_mix(word >> 16) & 0xffff;
}

/* What never changes, done once so that it costs the writers no time */
static void message_prepare(const struct message *m, unsigned char *buf)
{
	size_t i;

	for (i = 0; i < m->size; i++)
		buf[i] = i * 167 + 13;
}

static void message_stamp(const struct message *m, unsigned char *buf, unsigned int writer,
			  __u64 seq, struct tally *t)
{
	const size_t words = m->unit / sizeof(__u64);
	__u64 *word = (__u64 *)buf;
	size_t i, off, nr_body;
	struct block *b;

	switch (m->kind) {
	case UNIT_BLOCK:
		nr_body = (m->unit - BLOCK_MIN) / sizeof(__u64);
		for (off = 0; off < m->size; off += m->unit) {
			b = (struct block *)(buf + off);
			b->id = BLOCK_MAGIC << 48 | (__u64)writer << 32 | off / m->unit;
			b->seq = seq;
			b->key = block_key(b);
			if (opts.verify == BENCH_VERIFY_FULL)
				for (i = 0; i < nr_body; i++)
					b->body[i] = b->key + (i + 1) * BODY_STEP;
			((__u64 *)b)[words - 1] = ~b->key;
			tally_add(t, b->key);
		}
		break;
	case UNIT_WORD:
		for (i = 0; i < m->size / sizeof(__u64); i++) {
			word[i] = (__u64)writer << 56 | (seq & WORD_FIELD) << 36 | i << 16;
			word[i] |= word_check(word[i]);
			tally_add(t, word[i]);
		}
		break;
	case UNIT_BYTE:
		buf[0] = seq + writer;
		buf[m->size - 1] = seq * 7 + writer;
		for (i = 0; i < m->size; i++)
			t->sum += buf[i];
		t->units += m->size;
		break;
	}
}

static void check_block(const struct message *m, const struct block *b, struct tally *tally)
{
	const unsigned int writer = b->id >> 32 & 0xffff;
	const __u64 units = m->size / m->unit;
	const __u64 unit = b->id & 0xffffffff;
	const __u64 pos = b->seq * units + unit;
	size_t i;

	if (b->id >> 48 != BLOCK_MAGIC || writer >= m->writers || unit >= units ||
	    b->key != block_key(b))
		bench_die("data damaged: bad header (id %#llx, seq %llu)", b->id, b->seq);
	if (((const __u64 *)b)[m->unit / sizeof(__u64) - 1] != ~b->key)
		bench_die("data damaged: bad end of unit %llu of writer %u", pos, writer);
	if (opts.verify == BENCH_VERIFY_FULL)
		for (i = 0; i < (m->unit - BLOCK_MIN) / sizeof(__u64); i++)
			if (b->body[i] != b->key + (i + 1) * BODY_STEP)
				bench_die("data damaged: word %zu of unit %llu of writer %u", i,
					  pos, writer);
	/* A reader among others sees gaps, but never goes back */
	if (pos < tally[writer].next || (pos > tally[writer].next && m->readers == 1))
		bench_die("out of order: unit %llu of writer %u instead of %llu",
			  pos, writer, tally[writer].next);
	tally[writer].next = pos + 1;
	tally_add(&tally[writer], b->key);
}

static void message_check(const struct message *m, const unsigned char *buf, size_t len,
			  struct tally *tally)
{
	const __u64 *word = (const __u64 *)buf;
	size_t i;

	if (len % m->unit)
		bench_die("a read returned %zu bytes, which tears a unit of %zu", len, m->unit);
	switch (m->kind) {
	case UNIT_BLOCK:
		for (i = 0; i < len; i += m->unit)
			check_block(m, (const struct block *)(buf + i), tally);
		break;
	case UNIT_WORD:
		for (i = 0; i < len / sizeof(__u64); i++) {
			if ((word[i] & 0xffff) != word_check(word[i]) ||
			    word[i] >> 56 >= m->writers)
				bench_die("data damaged: bad word %#llx", word[i]);
			tally_add(&tally[word[i] >> 56], word[i]);
		}
		break;
	case UNIT_BYTE:
		/* The writer of a byte cannot be told: all go to the first */
		for (i = 0; i < len; i++)
			tally[0].sum += buf[i];
		tally[0].units += len;
		break;
	}
}

/* ---- the sweep ---- */

struct writer {
	struct tally tally;
	__u64 bytes;		/* with warm-up */
	__u64 writes;		/* without */
	__u64 end_ns;
	struct bench_hist hist;
};

struct reader {
	__u64 bytes;
	__u64 end_ns;
	struct tally tally[MAX_WORKERS];
};

/* The pointers lead to shared memory */
struct sweep {
	struct message msg;
	struct bench_pipe pipe;
	unsigned int warmup;	/* messages of each writer */
	struct writer *writer;
	struct reader *reader;
};

static void sweep_write(struct bench_worker *worker, struct sweep *s)
{
	struct bench_gate *gate = worker->team->gate;
	struct writer *w = &s->writer[worker->index];
	const __u64 limit = cfg.count ? cfg.count : ~0ULL;
	const size_t size = s->msg.size;
	unsigned char *buf = bench_map_lazily(size, MAP_PRIVATE);
	int fd = bench_pipe_get(&s->pipe, BENCH_WR);
	__u64 seq, before;

	message_prepare(&s->msg, buf);
	for (seq = 0; seq < s->warmup; seq++) {
		if (opts.verify)
			message_stamp(&s->msg, buf, worker->index, seq, &w->tally);
		bench_write_full(fd, buf, size);
	}
	bench_gate_wait(gate);

	for (; w->writes < limit && !bench_stopped(gate); seq++) {
		if (opts.verify)
			message_stamp(&s->msg, buf, worker->index, seq, &w->tally);
		if (opts.corrupt && !worker->index && !w->writes)
			buf[size - 1] ^= 1;
		before = bench_now();
		bench_write_full(fd, buf, size);
		bench_hist_add(&w->hist, bench_now() - before);
		w->writes++;
	}
	w->bytes = seq * size;
	w->end_ns = bench_now();
	bench_pipe_put(&s->pipe, BENCH_WR);
	munmap(buf, size);
}

static void sweep_read(struct bench_worker *worker, struct sweep *s)
{
	const unsigned int index = worker->index - s->msg.writers;
	const unsigned int total = s->warmup * s->msg.writers;
	struct reader *r = &s->reader[index];
	const size_t size = s->msg.size;
	unsigned char *buf = bench_map_lazily(size, MAP_PRIVATE);
	int fd = bench_pipe_get(&s->pipe, BENCH_RD);
	__u64 ration;
	ssize_t ret;

	/*
	 * Warm-up: together the readers take exactly what the writers put in,
	 * so none of them waits for more and the pipe is empty afterwards.
	 */
	ration = (__u64)(total / s->msg.readers + (index < total % s->msg.readers)) * size;
	memset(buf, 0, size);
	for (;;) {
		if (r->bytes == ration)
			bench_gate_wait(worker->team->gate);
		ret = read(fd, buf, r->bytes < ration && ration - r->bytes < size ?
			   ration - r->bytes : size);
		if (ret < 0)
			bench_die_errno("read");
		if (!ret)
			break;
		r->bytes += ret;
		if (opts.verify)
			message_check(&s->msg, buf, ret, r->tally);
	}
	if (r->bytes < ration)
		bench_die("end of file within the warm-up");
	r->end_ns = bench_now();
	bench_pipe_put(&s->pipe, BENCH_RD);
	munmap(buf, size);
}

static void sweep_worker(struct bench_worker *worker)
{
	struct sweep *s = worker->team->arg;

	if (worker->index < s->msg.writers)
		sweep_write(worker, s);
	else
		sweep_read(worker, s);
}

/* What came out of the pipe is what went in */
static void sweep_compare(const struct sweep *s)
{
	const bool by_writer = s->msg.kind != UNIT_BYTE;
	struct tally in = { 0 }, out = { 0 };
	__u64 written = 0, read = 0;
	unsigned int i, j;

	for (i = 0; i < s->msg.writers; i++)
		written += s->writer[i].bytes;
	for (j = 0; j < s->msg.readers; j++)
		read += s->reader[j].bytes;
	if (written != read)
		bench_die("%llu bytes written but %llu read", written, read);

	for (i = 0; i < s->msg.writers; i++) {
		in.units += s->writer[i].tally.units;
		in.sum += s->writer[i].tally.sum;
		in.xor ^= s->writer[i].tally.xor;
		for (j = 0; j < s->msg.readers; j++) {
			out.units += s->reader[j].tally[i].units;
			out.sum += s->reader[j].tally[i].sum;
			out.xor ^= s->reader[j].tally[i].xor;
		}
		if (!by_writer && i < s->msg.writers - 1)
			continue;
		if (in.units != out.units || in.sum != out.sum || in.xor != out.xor)
			bench_die("data damaged: totals of writer %u differ (units: %llu, %llu)",
				  i, in.units, out.units);
		if (by_writer) {
			memset(&in, 0, sizeof(in));
			memset(&out, 0, sizeof(out));
		}
	}
}

static void sweep_run(__u64 size, unsigned int writers, unsigned int readers,
		      void (*report)(const struct result *res))
{
	struct sweep s = { .warmup = cfg.warmup };
	struct bench_team team = {
		.nr = writers + readers,
		.processes = opts.processes,
		.pin = opts.pin,
		.fn = sweep_worker,
		.arg = &s,
	};
	struct result res = { .size = size, .writers = writers, .readers = readers };
	const size_t writers_len = writers * sizeof(*s.writer);
	const size_t readers_len = readers * sizeof(*s.reader);
	static struct bench_hist hist;
	__u64 end = 0;
	unsigned int i;

	message_init(&s.msg, size, writers, readers);
	bench_pipe_open(&s.pipe, cfg.pipe_size, opts.processes, readers, writers);
	s.writer = bench_map_lazily(writers_len, MAP_SHARED);
	s.reader = bench_map_lazily(readers_len, MAP_SHARED);

	pressure_check();
	bench_team_spawn(&team);
	bench_pipe_handed_over(&s.pipe);
	bench_team_ready(&team);
	mark("begin", size, writers, readers);
	bench_team_open(&team);
	if (opts.seconds > 0)
		bench_team_run_for(&team, opts.seconds);
	bench_team_join(&team);
	mark("end", size, writers, readers);
	pressure_check();
	sweep_compare(&s);

	memset(&hist, 0, sizeof(hist));
	for (i = 0; i < writers; i++) {
		bench_hist_merge(&hist, &s.writer[i].hist);
		res.writes += s.writer[i].writes;
		if (s.writer[i].end_ns > end)
			end = s.writer[i].end_ns;
	}
	for (i = 0; i < readers; i++)
		if (s.reader[i].end_ns > end)
			end = s.reader[i].end_ns;
	res.seconds = (double)(end - team.start_ns) / BENCH_NSEC;
	res.hist = &hist;
	res.pipe_size = s.pipe.size;
	report(&res);

	munmap(s.writer, writers_len);
	munmap(s.reader, readers_len);
	bench_pipe_free(&s.pipe);
}

/* ---- one thread, a write and a read at a time ---- */

/* Nothing but the two system calls is between the marks */
static __u64 pair_loop(int wfd, int rfd, void *in, void *out, ssize_t size, __u64 count)
{
	__u64 i;

	for (i = 0; i < count; i++) {
		/* What is in shared memory remains, and is mapped by page faults. */
		if (cfg.cold && (madvise((char *)in + cfg.warm, size - cfg.warm, MADV_DONTNEED) ||
				 madvise((char *)out + cfg.warm, size - cfg.warm, MADV_DONTNEED)))
			break;
		MARK(MARK_OP);
		if (write(wfd, in, size) != size ||
		    (cfg.sink ? splice(rfd, NULL, cfg.sink, NULL, size, 0) :
				read(rfd, out, size)) != size)
			break;
		MARK(MARK_END);
	}
	return i;
}

/*
 * The last bytes of a message stay in the pipe, and what is read begins with
 * those of the message before. They are the same in all messages.
 */
static bool pair_same(const unsigned char *in, const unsigned char *out, size_t size)
{
	const size_t rest = size - cfg.residue;

	return !memcmp(out, in + rest, cfg.residue) && !memcmp(out + cfg.residue, in, rest);
}

/* A write and a read whose result is compared; not timed */
static void pair_verified(int wfd, int rfd, unsigned char *in, unsigned char *out, size_t size,
			  bool corrupt)
{
	int left;

	in[0]++;
	memset(out, ~in[0], size);
	bench_write_full(wfd, in, size);
	if (bench_read_full(rfd, out, size) != size)
		bench_die("end of file from a pipe that is open for writing");
	if (corrupt)
		out[size - 1] ^= 1;
	if (opts.verify && !pair_same(in, out, size))
		bench_die("data damaged in a message of %zu bytes", size);
	if (ioctl(rfd, FIONREAD, &left))
		bench_die_errno("FIONREAD");
	if (left != (int)cfg.residue)
		bench_die("%d bytes left in a pipe that should have %llu", left, cfg.residue);
}

static void pair_run(__u64 size, void (*report)(const struct result *res))
{
	struct message msg = { .size = size };
	struct result res = { .size = size, .writers = 1, .readers = 1 };
	__u64 batch, start, ns, total = 0;
	unsigned char *in, *out;
	struct bench_pipe pipe;
	unsigned int i;
	int wfd, rfd;

	bench_pipe_open(&pipe, cfg.pipe_size, false, 1, 1);
	if (size + cfg.residue > pipe.size - (cfg.residue ? bench_page_size() : 0))
		bench_usage("--pair: a message of %llu bytes does not fit into a pipe of %u",
			    size, pipe.size);
	if (cfg.residue >= size)
		bench_usage("--residue must be less than the message of %llu bytes", size);
	wfd = bench_pipe_get(&pipe, BENCH_WR);
	rfd = bench_pipe_get(&pipe, BENCH_RD);
	in = bench_map_lazily(size, cfg.cold ? MAP_SHARED : MAP_PRIVATE);
	out = bench_map_lazily(size, cfg.cold ? MAP_SHARED : MAP_PRIVATE);
	message_prepare(&msg, in);
	bench_write_full(wfd, in + size - cfg.residue, cfg.residue);
	for (i = 0; i < cfg.warmup; i++)
		pair_verified(wfd, rfd, in, out, size, false);

	pressure_check();
	mark("begin", size, 1, 1);
	MARK(MARK_OPEN);
	while (opts.seconds > 0 ? total < opts.seconds * BENCH_NSEC : res.writes < cfg.count) {
		/* Short against a second but long against reading the clock */
		batch = opts.seconds > 0 ? 500 : cfg.count;
		start = bench_now();
		if (pair_loop(wfd, rfd, in, out, size, batch) != batch)
			bench_die_errno("a write or a read was cut short or failed");
		ns = bench_now() - start;
		total += ns;
		res.writes += batch;
	}
	MARK(MARK_CLOSE);
	mark("end", size, 1, 1);
	pressure_check();

	if (opts.verify && !cfg.sink && !pair_same(in, out, size))
		bench_die("data damaged in a message of %llu bytes", size);
	pair_verified(wfd, rfd, in, out, size, opts.corrupt);

	res.seconds = (double)total / BENCH_NSEC;
	res.pipe_size = pipe.size;
	report(&res);
	munmap(in, size);
	munmap(out, size);
	bench_pipe_put(&pipe, BENCH_WR);
	bench_pipe_put(&pipe, BENCH_RD);
	bench_pipe_free(&pipe);
}

/* ---- others beside a writer that is stuck ---- */

static int uffd = -1;

/* Two writers, of which the first gets stuck, and one reader; all threads */
struct stuck {
	struct sweep sweep;
	unsigned char *buf;	/* what the first one writes; its first page is missing */
	unsigned int received;	/* whole messages; as long as it is stuck, of the other one */
};

static void stuck_open(void)
{
	struct uffdio_api api = { .api = UFFD_API };

	/* poll() wants O_NONBLOCK. Faults of the kernel have to be reported as well */
	uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0)
		bench_skip("--stuck: no userfaultfd to be had: %s", strerror(errno));
	if (ioctl(uffd, UFFDIO_API, &api))
		bench_skip("--stuck: userfaultfd cannot be used: %s", strerror(errno));
}

static size_t stuck_buf_len(const struct message *m)
{
	const size_t page = bench_page_size();

	return (m->size + page - 1) / page * page;
}

/* A copy of the message, of which the first page is left to us to provide */
static unsigned char *stuck_buf(const struct message *m, const unsigned char *data)
{
	const size_t page = bench_page_size();
	const size_t len = stuck_buf_len(m);
	unsigned char *buf = bench_map_lazily(len, MAP_PRIVATE);
	struct uffdio_register reg = {
		.range.start = (unsigned long)buf,
		.range.len = len,
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	/* A huge page would provide the first one together with the others */
	madvise(buf, len, MADV_NOHUGEPAGE);
	if (m->size > page)
		memcpy(buf + page, data + page, m->size - page);
	if (ioctl(uffd, UFFDIO_REGISTER, &reg))
		bench_die_errno("UFFDIO_REGISTER");
	return buf;
}

static void stuck_await_fault(void)
{
	const __u64 end = bench_now() + STUCK_PATIENCE * BENCH_NSEC;
	struct pollfd pfd = { .fd = uffd, .events = POLLIN };
	struct uffd_msg msg;

	while (poll(&pfd, 1, 100) != 1 || read(uffd, &msg, sizeof(msg)) != sizeof(msg))
		if (bench_now() > end)
			bench_die("no page fault of the writer within %d seconds", STUCK_PATIENCE);
	if (msg.event != UFFD_EVENT_PAGEFAULT)
		bench_die("userfaultfd has event %#x instead of a page fault", msg.event);
}

static void stuck_resolve(unsigned char *buf, const unsigned char *data)
{
	struct uffdio_copy copy = {
		.dst = (unsigned long)buf,
		.src = (unsigned long)data,
		.len = bench_page_size(),
	};

	while (ioctl(uffd, UFFDIO_COPY, &copy))
		if (errno != EAGAIN)
			bench_die_errno("UFFDIO_COPY");
}

static void stuck_write(struct bench_worker *worker, struct stuck *st)
{
	struct sweep *s = &st->sweep;
	int fd = bench_pipe_get(&s->pipe, BENCH_WR);

	/* Ready, but not to wait at the gate: that opens once this is stuck */
	__atomic_add_fetch(&worker->team->gate->ready, 1, __ATOMIC_ACQ_REL);
	bench_write_full(fd, st->buf, s->msg.size);
	s->writer[0].bytes = s->msg.size;
	bench_pipe_put(&s->pipe, BENCH_WR);
}

static void stuck_read(struct bench_worker *worker, struct stuck *st)
{
	struct sweep *s = &st->sweep;
	const size_t size = s->msg.size;
	struct reader *r = &s->reader[0];
	unsigned char *buf = bench_map_lazily(size, MAP_PRIVATE);
	int fd = bench_pipe_get(&s->pipe, BENCH_RD);
	unsigned int received;
	ssize_t ret;

	memset(buf, 0, size);
	bench_gate_wait(worker->team->gate);
	for (;;) {
		ret = read(fd, buf, size);
		if (ret < 0)
			bench_die_errno("read");
		if (!ret)
			break;
		r->bytes += ret;
		if (opts.verify)
			message_check(&s->msg, buf, ret, r->tally);
		received = r->bytes / size;
		if (received == cfg.count && !r->end_ns)
			r->end_ns = bench_now();
		__atomic_store_n(&st->received, received, __ATOMIC_RELEASE);
	}
	bench_pipe_put(&s->pipe, BENCH_RD);
	munmap(buf, size);
}

static void stuck_worker(struct bench_worker *worker)
{
	struct stuck *st = worker->team->arg;

	if (!worker->index)
		stuck_write(worker, st);
	else if (worker->index < st->sweep.msg.writers)
		sweep_write(worker, &st->sweep);
	else
		stuck_read(worker, st);
}

static void stuck_run(__u64 size, void (*report)(const struct result *res))
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct stuck st = { 0 };
	struct sweep *s = &st.sweep;
	struct bench_team team = {
		.nr = 3,
		.pin = opts.pin,
		.fn = stuck_worker,
		.arg = &st,
	};
	struct result res = { .size = size, .writers = 2, .readers = 1 };
	const size_t writers_len = res.writers * sizeof(*s->writer);
	const size_t readers_len = res.readers * sizeof(*s->reader);
	unsigned char *data;
	__u64 now, limit;
	bool done;

	message_init(&s->msg, size, res.writers, res.readers);
	bench_pipe_open(&s->pipe, cfg.pipe_size, false, res.readers, res.writers);
	s->writer = bench_map_lazily(writers_len, MAP_PRIVATE);
	s->reader = bench_map_lazily(readers_len, MAP_PRIVATE);
	data = bench_map_lazily(size, MAP_PRIVATE);
	message_prepare(&s->msg, data);
	if (opts.verify)
		message_stamp(&s->msg, data, 0, 0, &s->writer[0].tally);
	if (opts.corrupt)
		data[size - 1] ^= 1;
	st.buf = stuck_buf(&s->msg, data);

	pressure_check();
	bench_team_spawn(&team);
	bench_team_ready(&team);
	stuck_await_fault();
	/* From here to the end of the fault, anything done to the pipe may block */
	mark("begin", size, res.writers, res.readers);
	bench_team_open(&team);
	limit = team.start_ns + (__u64)(opts.seconds * BENCH_NSEC);
	for (;;) {
		res.writes = __atomic_load_n(&st.received, __ATOMIC_ACQUIRE);
		/* The other writer has also left if only the stuck one has the pipe */
		done = res.writes == cfg.count &&
		       __atomic_load_n(&s->pipe.users[BENCH_WR], __ATOMIC_ACQUIRE) == 1;
		now = bench_now();
		if (done || now >= limit)
			break;
		nanosleep(&ms, NULL);
	}
	mark("end", size, res.writers, res.readers);
	/* The polling is coarse, these are not */
	if (done)
		now = s->reader[0].end_ns > s->writer[1].end_ns ?
		      s->reader[0].end_ns : s->writer[1].end_ns;

	stuck_resolve(st.buf, data);
	bench_team_join(&team);
	pressure_check();
	sweep_compare(s);

	res.seconds = (double)(now - team.start_ns) / BENCH_NSEC;
	res.pipe_size = s->pipe.size;
	report(&res);

	munmap(st.buf, stuck_buf_len(&s->msg));
	munmap(data, size);
	munmap(s->writer, writers_len);
	munmap(s->reader, readers_len);
	bench_pipe_free(&s->pipe);
}

/* ---- results ---- */

static const struct {
	double percent;
	const char *key;
} percentiles[] = {
	{ 50, "p50_ns" }, { 90, "p90_ns" }, { 99, "p99_ns" }, { 99.9, "p99_9_ns" },
};

static double mb_per_s(const struct result *res)
{
	return res->writes * res->size / 1e6 / res->seconds;
}

static double ns_per_op(const struct result *res)
{
	return res->writes ? res->seconds * BENCH_NSEC / res->writes : 0;
}

static void report_json(const struct result *res)
{
	unsigned int i;

	bench_json_begin("pipe_load");
	bench_json_str("mode", mode_name());
	bench_json_u64("size", res->size);
	bench_json_u64("pipe_size", res->pipe_size);
	bench_json_u64("residue", cfg.residue);
	bench_json_bool("cold", cfg.cold);
	bench_json_u64("warm", cfg.warm);
	bench_json_u64("writers", res->writers);
	bench_json_u64("readers", res->readers);
	bench_json_str("workers", cfg.pair ? "one thread" :
		       opts.processes ? "processes" : "threads");
	bench_json_bool("pinned", opts.pin);
	bench_json_u64_or_null("count", cfg.count);
	bench_json_double_or_null("time_limit", opts.seconds, 3);
	bench_json_u64_or_null("warmup", cfg.warmup);
	bench_json_str("verify", bench_verify_name(opts.verify));
	bench_json_u64("page_size", bench_page_size());
	bench_json_bool("memcg", cfg.memcg);
	bench_json_bool("pressure", cfg.pressure);
	if (cfg.stuck)
		bench_json_u64("beside", res->writes);
	else
		bench_json_str("beside", NULL);
	bench_json_u64("writes", res->writes);
	bench_json_u64("bytes", res->writes * res->size);
	bench_json_double("seconds", res->seconds, 9);
	bench_json_double("mb_per_s", mb_per_s(res), 3);
	bench_json_double_or_null("ns_per_op", ns_per_op(res), 3);
	if (res->hist) {
		bench_json_double("mean_ns", bench_hist_mean(res->hist), 1);
		for (i = 0; i < BENCH_ARRAY_SIZE(percentiles); i++)
			bench_json_double(percentiles[i].key,
					  bench_hist_percentile(res->hist, percentiles[i].percent),
					  1);
		bench_json_u64("max_ns", res->hist->max);
	} else {
		bench_json_str("mean_ns", NULL);
		for (i = 0; i < BENCH_ARRAY_SIZE(percentiles); i++)
			bench_json_str(percentiles[i].key, NULL);
		bench_json_str("max_ns", NULL);
	}
	bench_json_end();
}

static void report_table(const struct result *res)
{
	static bool header_done;
	unsigned int i;

	if (!header_done) {
		printf("# %s, pipe of %u bytes, pages of %zu bytes, verify %s%s%s\n",
		       cfg.pair ? "one thread" : opts.processes ? "processes" : "threads",
		       res->pipe_size, bench_page_size(), bench_verify_name(opts.verify),
		       cfg.memcg ? ", memory cgroup" : "",
		       cfg.pressure ? ", memory pressure" : "");
		if (cfg.pair)
			printf("#%9s %10s %10s %12s\n", "size", "pairs", "MB/s", "ns/pair");
		else if (cfg.stuck)
			printf("#%9s %10s %10s %10s %10s\n", "size", "messages", "beside",
			       "seconds", "MB/s");
		else
			printf("#%9s %3s %3s %10s %10s %10s %10s %10s %10s %10s %10s\n", "size",
			       "w", "r", "writes", "MB/s", "mean ns", "p50", "p90", "p99",
			       "p99.9", "max");
		header_done = true;
	}
	if (cfg.pair) {
		printf("%10llu %10llu %10.1f %12.1f\n", res->size, res->writes,
		       mb_per_s(res), ns_per_op(res));
	} else if (cfg.stuck) {
		printf("%10llu %10llu %10llu %10.6f %10.1f\n", res->size, cfg.count,
		       res->writes, res->seconds, mb_per_s(res));
	} else {
		printf("%10llu %3u %3u %10llu %10.1f %10.0f", res->size, res->writers,
		       res->readers, res->writes, mb_per_s(res), bench_hist_mean(res->hist));
		for (i = 0; i < BENCH_ARRAY_SIZE(percentiles); i++)
			printf(" %10.0f",
			       bench_hist_percentile(res->hist, percentiles[i].percent));
		printf(" %10llu\n", res->hist->max);
	}
	fflush(stdout);
}

static const char help_text[] =
"Usage: pipe_load [OPTION]...\n"
"Measure throughput and write latency of an anonymous pipe.\n"
"\n"
"Sizes are in bytes and take the suffixes K, M and G (powers of 1024); a LIST is\n"
"separated by commas. MB are 10^6 bytes. Without --pair or --stuck, every combination\n"
"of message size, writers and readers is run, one after the other.\n"
"\n"
"What to run:\n"
"      --pair            one thread writes a message and reads it back, without any\n"
"                        other worker (default sizes 1,64,1K,4K,8K,16K,64K)\n"
"      --residue N       with --pair: N bytes stay in the pipe all the time, so that a\n"
"                        write finds data that it may have to be merged with\n"
"      --cold[=rest]     with --pair: no page of the buffers (rest: but the first) is\n"
"                        mapped when a write or a\n"
"                        read begins, so that it faults on each (each page on its own\n"
"                        only if fault_around_bytes in debugfs is that of a page)\n"
"      --splice          with --pair: splice() each message to /dev/null instead\n"
"      --stuck           one writer is stuck in a page fault on the first page of its\n"
"                        message, while another writer and a reader use the pipe: how\n"
"                        many messages get through beside it? (needs userfaultfd)\n"
"  -w, --writers LIST    numbers of writers, 1 to 255 (default 1,2,5)\n"
"  -r, --readers LIST    numbers of readers, 1 to 255 (default 1,5,10)\n"
"  -s, --size SIZE       message size (default 64K)\n"
"      --sizes LIST      several message sizes\n"
"  -p, --pipe-size SIZE  size of the pipe, which the kernel rounds up (default 1M)\n"
"      --threads         workers are threads (the default)\n"
"      --processes       workers are processes\n"
"      --pin             pin worker i to the i-th allowed CPU, modulo their number;\n"
"                        the writers come first\n"
"\n"
"How long:\n"
"      --count N         fixed work: N writes per writer, or N pairs (default with\n"
"                        --pair: 10000); with --stuck, N messages of the other\n"
"                        writer (default 1000)\n"
"      --seconds S       fixed time: S seconds per configuration, fractions allowed\n"
"                        (default without --pair: 3); with --stuck, the fault is\n"
"                        resolved after S seconds if not all N messages have got\n"
"                        through before\n"
"      --warmup N        N messages per writer that do not count (default 32; at\n"
"                        least one for each reader); not with --stuck\n"
"\n"
"Conditions:\n"
"      --memory-pressure run stress-ng alongside, outside of the memory cgroup\n"
"      --memcg           run in a new child memory cgroup (cgroup v2; needs root)\n"
"\n"
"Checks (never of time):\n"
"      --verify[=cheap]  the default. The number of bytes read is the number written.\n"
"                        Each page of a message, or the message itself if that is not\n"
"                        larger than PIPE_BUF, begins with the number of its writer, a\n"
"                        sequence number, its place in the message and a checksum of\n"
"                        these, and ends with the inverted checksum; all are checked,\n"
"                        as is that no reader gets the data of a writer out of order,\n"
"                        and that count, sum and xor of the checksums are the same on\n"
"                        both sides for each writer. Messages of other sizes: every\n"
"                        64-bit word is numbered and has a checksum, order is not\n"
"                        checked; if the size is not a multiple of 8, only the number\n"
"                        and the sum of the bytes are compared. With --pair: all bytes\n"
"                        are compared, in the warm-up and after the timed loop.\n"
"      --verify=full     in addition, every word in between is written and checked\n"
"      --no-verify       only count bytes\n"
"      --corrupt         damage one byte, to see that it is noticed\n"
"\n"
"Output:\n"
"      --json            one JSON object per line and configuration\n"
"      --marker          write \"pipe_load: begin ...\" and \"pipe_load: end ...\" to\n"
"                        tracefs (trace_marker) around each measurement\n"
"  -h, --help            this text\n"
"\n"
"Latencies are those of write(), in ns; in --json, ns_per_op is the time of the whole\n"
"configuration divided by the number of writes (or pairs), and seconds lasts until the\n"
"last reader has seen the end of file. With --stuck, writes (and beside) are the\n"
"messages received while the one writer was stuck, and seconds lasts until the other\n"
"one and the reader were done with all of them, or until the fault was resolved.\n"
"\n"
"Exit status: 0 success, 1 failure or damaged data, 2 wrong usage, 4 not supported here.\n";

enum {
	OPT_COLD = BENCH_OPT_OWN,
	OPT_COUNT,
	OPT_MARKER,
	OPT_MEMCG,
	OPT_PAIR,
	OPT_PRESSURE,
	OPT_RESIDUE,
	OPT_SIZES,
	OPT_SPLICE,
	OPT_STUCK,
	OPT_WARMUP,
};

static const struct option own_options[] = {
	{ "cold",		optional_argument,	NULL, OPT_COLD },
	{ "count",		required_argument,	NULL, OPT_COUNT },
	{ "marker",		no_argument,		NULL, OPT_MARKER },
	{ "memcg",		no_argument,		NULL, OPT_MEMCG },
	{ "memory-pressure",	no_argument,		NULL, OPT_PRESSURE },
	{ "pair",		no_argument,		NULL, OPT_PAIR },
	{ "pipe-size",		required_argument,	NULL, 'p' },
	{ "readers",		required_argument,	NULL, 'r' },
	{ "residue",		required_argument,	NULL, OPT_RESIDUE },
	{ "size",		required_argument,	NULL, 's' },
	{ "sizes",		required_argument,	NULL, OPT_SIZES },
	{ "splice",		no_argument,		NULL, OPT_SPLICE },
	{ "stuck",		no_argument,		NULL, OPT_STUCK },
	{ "warmup",		required_argument,	NULL, OPT_WARMUP },
	{ "writers",		required_argument,	NULL, 'w' },
};

static void parse(int argc, char **argv)
{
	static const struct bench_list pair_sizes = {
		7, { 1, 64, KIB, 4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB }
	};
	bool sweep_only = false, warmup_set = false;
	unsigned int i;
	int c;

	while ((c = pipe_getopt(argc, argv, ":hp:r:s:w:", own_options,
				BENCH_ARRAY_SIZE(own_options), &opts, help_text)) != -1) {
		switch (c) {
		case OPT_COLD:
			cfg.cold = true;
			if (optarg && strcmp(optarg, "rest"))
				bench_usage("--cold is nothing or 'rest', not '%s'", optarg);
			cfg.warm = optarg ? bench_page_size() : 0;
			break;
		case OPT_COUNT:
			cfg.count = bench_parse_u64("--count", optarg, 1, 1ULL << 40, false);
			break;
		case OPT_MARKER:
			cfg.marker = true;
			break;
		case OPT_MEMCG:
			cfg.memcg = true;
			break;
		case OPT_PAIR:
			cfg.pair = true;
			break;
		case OPT_PRESSURE:
			cfg.pressure = true;
			break;
		case 'p':
			cfg.pipe_size = bench_parse_u64("--pipe-size", optarg, 1, MAX_SIZE, true);
			break;
		case 's':
		case OPT_SIZES:
			if (cfg.sizes.nr)
				bench_usage("--size and --sizes can be given only once");
			bench_parse_list(&cfg.sizes, c == 's' ? "--size" : "--sizes", optarg, 1,
					 MAX_SIZE, true);
			if (c == 's' && cfg.sizes.nr > 1)
				bench_usage("--size takes one value; use --sizes for several");
			break;
		case 'r':
			bench_parse_list(&cfg.readers, "--readers", optarg, 1, MAX_WORKERS, false);
			sweep_only = true;
			break;
		case 'w':
			bench_parse_list(&cfg.writers, "--writers", optarg, 1, MAX_WORKERS, false);
			sweep_only = true;
			break;
		case OPT_SPLICE:
			cfg.sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
			if (cfg.sink < 0)
				bench_die_errno("/dev/null");
			break;
		case OPT_STUCK:
			cfg.stuck = true;
			break;
		case OPT_RESIDUE:
			cfg.residue = bench_parse_u64("--residue", optarg, 1, MAX_SIZE, true);
			break;
		case OPT_WARMUP:
			cfg.warmup = bench_parse_u64("--warmup", optarg, 1, 1000000, false);
			warmup_set = true;
			break;
		}
	}

	if (cfg.pair && (sweep_only || opts.workers_set))
		bench_usage("--pair has one thread, so there are no workers to choose");
	if (cfg.residue && !cfg.pair)
		bench_usage("--residue needs --pair");
	if (cfg.cold && !cfg.pair)
		bench_usage("--cold needs --pair");
	if (cfg.sink && !cfg.pair)
		bench_usage("--splice needs --pair");
	if (cfg.warm && !cfg.sizes.nr)
		bench_usage("--cold=rest takes --sizes");
	for (i = 0; i < cfg.sizes.nr; i++)
		if (cfg.warm >= cfg.sizes.val[i] && cfg.warm)
			bench_usage("--cold=rest takes messages of more than a page");
	if (cfg.pair && cfg.stuck)
		bench_usage("--pair and --stuck exclude each other");
	if (cfg.stuck && (sweep_only || opts.processes))
		bench_usage("--stuck has two writers and a reader, all of them threads");
	if (cfg.stuck && warmup_set)
		bench_usage("--stuck has no warm-up");
	if (cfg.stuck && cfg.count > UINT_MAX)
		bench_usage("--stuck takes a --count of at most %u", UINT_MAX);
	if (cfg.count && opts.seconds > 0 && !cfg.stuck)
		bench_usage("--count and --seconds exclude each other");
	if (opts.corrupt && !opts.verify)
		bench_usage("--corrupt would go unnoticed with --no-verify");
	for (i = 0; i < cfg.readers.nr && !cfg.pair && !cfg.stuck; i++)
		if (cfg.warmup < cfg.readers.val[i])
			bench_usage("--warmup must be at least the number of readers");

	if (!cfg.sizes.nr && cfg.pair) {
		cfg.sizes = pair_sizes;
	} else if (!cfg.sizes.nr) {
		cfg.sizes.nr = 1;
		cfg.sizes.val[0] = DEFAULT_SIZE;
	}
	if (cfg.stuck) {
		cfg.warmup = 0;
		if (!cfg.count)
			cfg.count = DEFAULT_STUCK;
		if (opts.seconds <= 0)
			opts.seconds = DEFAULT_SECONDS;
	} else if (!cfg.count && opts.seconds <= 0) {
		if (cfg.pair)
			cfg.count = DEFAULT_PAIRS;
		else
			opts.seconds = DEFAULT_SECONDS;
	}
}

int main(int argc, char **argv)
{
	void (*report)(const struct result *res);
	unsigned int i, j, k;

	bench_init("pipe_load");
	parse(argc, argv);
	report = opts.json ? report_json : report_table;

	/* First, as it may not be possible and nothing has been changed yet */
	if (cfg.stuck)
		stuck_open();
	/* stress-ng is started from outside of the cgroup it is to squeeze */
	if (cfg.pressure)
		pressure_start();
	if (cfg.memcg)
		memcg_enter();
	if (cfg.marker)
		bench_marker_open();
	if (cfg.pair && opts.pin)
		bench_pin(0);

	for (i = 0; i < cfg.sizes.nr; i++) {
		if (cfg.pair) {
			pair_run(cfg.sizes.val[i], report);
			continue;
		}
		if (cfg.stuck) {
			stuck_run(cfg.sizes.val[i], report);
			continue;
		}
		for (j = 0; j < cfg.writers.nr; j++)
			for (k = 0; k < cfg.readers.nr; k++)
				sweep_run(cfg.sizes.val[i], cfg.writers.val[j],
					  cfg.readers.val[k], report);
	}
	return bench_finish();
}
