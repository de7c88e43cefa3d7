// SPDX-License-Identifier: GPL-2.0
/*
 * Small buffered reads which race with everything that takes folios out of the
 * page cache, or puts others in their place.
 *
 * A read which copies from a folio without holding a reference to it must find
 * out, before it returns, if the memory ceased to belong to the file while it
 * was being copied.  If it does not, then it returns somebody else's data, or
 * data of another position or of another time.  So let threads read a file
 * whose contents can be checked byte by byte, while others remove folios, and
 * while a process fills whatever memory becomes free with a secret pattern.
 *
 * Contents: a file consists of 64-byte records.  Every 8-byte word of a record
 * has a constant half, which depends on the file and on the position.  Most of
 * the other halves depend on the generation of the record, and the last one is
 * a checksum.  The record is a function of (file, position, generation), thus
 * any part of it can be checked if the set of possible generations is known.
 *
 * Generations: each change of a record is given the next number, no matter
 * whether it is an update, which writes a record with that generation, or
 * zeroing, which is what truncation and hole punching do.  For each record,
 * there are two words of shared memory, and a change of the record
 *
 *	1. sets started[] to the new number, and whether it is zeroing,
 *	2. executes a full barrier,
 *	3. does the system call(s),
 *	4. executes a full barrier,
 *	5. sets done[] to the new number.
 *
 * All changes are made under a lock, so that a record has one writer at a
 * time, and the numbers never decrease.  A reader
 *
 *	1. loads lo = done[],
 *	2. executes a full barrier,
 *	3. reads,
 *	4. executes a full barrier,
 *	5. loads hi = started[].
 *
 * The system call which made change number lo ended before the read began, so
 * the read must not return anything older.  If the read returned any data of
 * change number n, then it came after the barrier in step 2 of that change, so
 * step 5 of the reader sees n or a later number.  That is, what was read is
 * from the changes lo to hi, inclusive.  This relies on nothing but what any
 * local file system guarantees: a read which begins after a write has returned
 * sees the new data.  It does not rely on reads being atomic:
 *
 * If lo equals hi, then nobody changed the record during the read, and there is
 * just one right answer.  Otherwise, file systems which do not lock reads may
 * return a mix of the changes lo to hi.  Such a torn record is accepted only if
 * each of its bytes is what one of these changes has put there.  Because of the
 * constant halves, foreign data do not pass for a torn record.
 *
 * Two more pairs of counters of the same kind say whether the file may have
 * been shorter than usual during the read (or else a short read is an error),
 * and whether a range may have been cut out of it, in which case a position may
 * also show the record which is usually behind it by the length of that range.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <linux/types.h>
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
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE		0x00000080
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE		25
#endif
#ifndef MPOL_MF_MOVE
#define MPOL_MF_MOVE		0x2
#endif
#ifndef FALLOC_FL_COLLAPSE_RANGE
#define FALLOC_FL_COLLAPSE_RANGE	0x08
#endif
#ifndef FALLOC_FL_ZERO_RANGE
#define FALLOC_FL_ZERO_RANGE	0x10
#endif
#ifndef FALLOC_FL_INSERT_RANGE
#define FALLOC_FL_INSERT_RANGE	0x20
#endif

#define KB			1024u
#define MB			(1024u * KB)

#define REC			64u
#define REC_MAGIC		0x5ea1f00du
#define SECRET			"!SECRET!"
#define SECRET_LEN		8u

#define FILE_SIZE		MB
/* Truncation cuts off at most that much. */
#define TAIL			(128 * KB)
/* What is collapsed and inserted; a multiple of any block size. */
#define SHIFT			(64 * KB)
/* The largest range which is changed, or evicted, at once. */
#define SPAN			(64 * KB)
#define DIO_ALIGN		(4 * KB)
/* Larger files would not be hit often enough. */
#define MAX_PMD			(4 * MB)
#define MAX_LEN			(4 * KB)
#define MAX_READERS		64
#define BATCH			64
/* A reader does fewer than that many reads of the same page in a row. */
#define STAY			16
/* How often an antagonist must have run at least. */
#define MIN_ROUNDS		5
/* After that many times without effect, it will not have any. */
#define MAX_IDLE		60

#define REUSE_SIZE		(128 * KB)
#define SECRET_SIZE		(256 * KB)
/* A test is stuck if even that many reads per second had ended that long ago. */
#define SLOW_READS		100
#define STUCK_SECONDS		300

static struct {
	unsigned long reads;
	unsigned int seconds;
	unsigned int readers;
	size_t len;
	unsigned int seed;
	const char *fs;
	const char *antagonist;
} opt = {
	.reads = 6000,
	.readers = 2,
	.seed = 1,
};

static size_t psz;
/* 0 if there are no transparent huge pages. */
static size_t pmd_size;

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Small things
 */

static void barrier_full(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define LOAD(p)		__atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v)	__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define ADD(p, v)	__atomic_add_fetch(p, v, __ATOMIC_RELAXED)

static __u32 mix(__u32 a, __u32 b)
{
	__u32 h = a * 0x9e3779b1u ^ b;

	h = (h ^ h >> 16) * 0x85ebca6bu;
	h = (h ^ h >> 13) * 0xc2b2ae35u;
	return h ^ h >> 16;
}

static unsigned int rnd(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return mix(*state, 0);
}

static unsigned int below(unsigned int *state, unsigned int limit)
{
	return rnd(state) % limit;
}

static int write_file(const char *path, const char *val)
{
	int fd, ret = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, val, strlen(val)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static int read_file(const char *path, char *val, size_t size)
{
	ssize_t ret;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = read(fd, val, size - 1);
	if (ret < 0)
		ret = -errno;
	else
		val[ret] = '\0';
	close(fd);
	return ret < 0 ? ret : 0;
}

static unsigned long long read_number(const char *path)
{
	char buf[32];

	return read_file(path, buf, sizeof(buf)) ? 0 : strtoull(buf, NULL, 10);
}

static unsigned long event_count(const char *name)
{
	unsigned long val, ret = 0;
	char key[64];
	FILE *f;

	f = fopen("/proc/vmstat", "re");
	if (!f)
		return 0;
	while (fscanf(f, "%63s %lu", key, &val) == 2)
		if (!strcmp(key, name))
			ret = val;
	fclose(f);
	return ret;
}

/* How many folios of any size have been split. */
static unsigned long count_splits(void)
{
	unsigned long ret = 0;
	size_t i;
	glob_t g;

	if (glob("/sys/kernel/mm/transparent_hugepage/hugepages-*/stats/split", 0, NULL, &g))
		return event_count("thp_split_page");
	for (i = 0; i < g.gl_pathc; i++)
		ret += read_number(g.gl_pathv[i]);
	globfree(&g);
	return ret;
}

/* Where a file system of that type is mounted. */
static bool find_mount(const char *type, char *path)
{
	char fstype[64], line[1024];
	bool found = false;
	FILE *f;

	f = fopen("/proc/self/mounts", "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %127s %63s", path, fstype) == 2 &&
			!strcmp(fstype, type);
	fclose(f);
	return found;
}

static void fill_secret(char *buf, size_t len)
{
	size_t i;

	for (i = 0; i + SECRET_LEN <= len; i += SECRET_LEN)
		memcpy(buf + i, SECRET, SECRET_LEN);
}

/* Whether @least bytes in a row are of fill_secret(), wherever they begin in it */
static bool has_secret(const void *buf, size_t len, size_t least)
{
	const char *p = buf;
	size_t i, start, phase;

	for (start = 0; start + least <= len; start++) {
		for (phase = 0; phase < SECRET_LEN; phase++) {
			for (i = 0; i < least; i++)
				if (p[start + i] != SECRET[(phase + i) % SECRET_LEN])
					break;
			if (i == least)
				return true;
		}
	}
	return false;
}

/*
 * Records and their versions
 */

struct record {
	__u32 magic;
	__u32 file;
	__u64 pos;
	struct {
		__u32 tag;
		__u32 val;
	} word[6];
};

#define GEN_WORD	0
#define SUM_WORD	5

static __u32 checksum(const struct record *r)
{
	__u32 sum = mix(r->magic, r->file);
	int i;

	sum = mix(sum, (__u32)r->pos);
	sum = mix(sum, (__u32)(r->pos >> 32));
	for (i = 0; i < SUM_WORD; i++)
		sum = mix(mix(sum, r->word[i].tag), r->word[i].val);
	return sum;
}

static void encode(struct record *r, __u32 file, size_t rec, __u32 gen)
{
	__u32 i, id = mix(file, rec);

	r->magic = REC_MAGIC;
	r->file = file;
	r->pos = (__u64)rec * REC;
	for (i = 0; i <= SUM_WORD; i++) {
		r->word[i].tag = mix(id, i);
		r->word[i].val = mix(mix(id, gen), i);
	}
	r->word[GEN_WORD].val = gen;
	r->word[SUM_WORD].val = checksum(r);
}

/*
 * The state of a record is the number of the last change of it (24 bits), and
 * for each of the last eight changes, whether it was an update (8 bits).
 */
enum kind { ZEROING, UPDATE };

#define HISTORY		8
#define NR_MASK		0xffffffu

static __u32 state_nr(__u32 state)
{
	return state >> HISTORY;
}

static __u32 next_state(__u32 state, enum kind kind)
{
	return (state_nr(state) + 1) << HISTORY | ((state << 1 | kind) & 0xff);
}

/* Whether the change that far back may have been of that kind. */
static bool may_be(__u32 state, __u32 back, enum kind kind)
{
	return back >= HISTORY || (state >> back & 1) == kind;
}

/* What a piece of a record may contain. */
struct view {
	struct {
		size_t rec;
		__u32 lo;
		__u32 hi;
	} src[2];
	int nr_src;
	bool zeroes;
};

enum verdict { GOOD, ZEROES, TORN, BAD };

struct check {
	const unsigned char *buf;
	size_t off;
	size_t len;
	unsigned int candidates;
	bool covered[REC];
};

static bool candidate(struct check *ck, const void *image)
{
	const unsigned char *want = (const unsigned char *)image + ck->off;
	size_t i;

	ck->candidates++;
	if (!memcmp(want, ck->buf, ck->len))
		return true;
	for (i = 0; i < ck->len; i++)
		ck->covered[i] |= want[i] == ck->buf[i];
	return false;
}

/* Check a piece of a record, which begins at offset @off of it. */
static enum verdict check_piece(__u32 file, const struct view *v, size_t off,
				const void *buf, size_t len)
{
	static const struct record zeroes;
	struct check ck = { .buf = buf, .off = off, .len = len };
	bool zero = v->zeroes;
	struct record r;
	__u32 back, nr;
	size_t i;
	int s;

	for (s = 0; s < v->nr_src; s++) {
		nr = (state_nr(v->src[s].hi) - state_nr(v->src[s].lo)) & NR_MASK;
		for (back = 0; back <= nr; back++) {
			zero |= may_be(v->src[s].hi, back, ZEROING);
			if (!may_be(v->src[s].hi, back, UPDATE))
				continue;
			encode(&r, file, v->src[s].rec,
			       (state_nr(v->src[s].hi) - back) & NR_MASK);
			if (candidate(&ck, &r))
				return GOOD;
		}
	}
	if (zero && candidate(&ck, &zeroes))
		return ZEROES;

	/* Just one candidate means that nobody was writing. */
	if (ck.candidates < 2 || has_secret(buf, len, SECRET_LEN))
		return BAD;
	for (i = 0; i < len; i++)
		if (!ck.covered[i])
			return BAD;
	return TORN;
}

/*
 * A race
 */

enum fail { FAIL_NONE, FAIL_ERROR, FAIL_SHORT, FAIL_SECRET, FAIL_RECORD };

/* What the process of a test tells its parent; in shared memory. */
struct result {
	enum fail fail;
	bool skip;
	char text[2048];
	unsigned long long reads;
	unsigned long long pieces;
	unsigned long long zeroes;
	unsigned long long torn;
	unsigned long long cut;
	unsigned int rounds;
	unsigned long effect;
	unsigned long tried;
	unsigned int updates;
	char cgroup[PATH_MAX];
};

struct antagonist;

struct race {
	const struct antagonist *ant;
	struct result *res;
	char path[PATH_MAX + 32];
	char secret_path[PATH_MAX + 32];
	__u32 file;
	size_t size;
	unsigned int fs_type;
	bool huge;
	bool stored;
	int fd;

	/* See the comment at the top. */
	pthread_mutex_t lock;
	pthread_cond_t next;
	unsigned int tickets, turn;
	__u32 *started;
	__u32 *done;
	__u32 short_started, short_done;
	__u32 shift_started, shift_done;
	bool shifts;

	/* Where the antagonist is active, for readers to go there. */
	unsigned long hot_pos;
	unsigned long hot_len;

	bool stop;
	bool failed;
	unsigned int batches;
	unsigned int rounds;
	unsigned int updates;
	unsigned long effect;
	unsigned long tried;
	struct timespec end;

	/* What the antagonists need. */
	int dio_fd;
	int drop_fd;
	int reclaim_fd;
	int compact_fd;
	int split_fd;
	int nodes[2];
	const struct antagonist *mix[16];
	unsigned int nr_mix;
};

/* A thread, or the like, which changes or removes things. */
struct actor {
	struct race *race;
	pthread_t thread;
	unsigned int seed;
	char *reuse;		/* two areas, one of which has memory */
	bool reuse_second;
	char *buf;
	bool contents;
};

struct reader {
	struct race *race;
	pthread_t thread;
	unsigned int seed;
	unsigned int stay;	/* so many more reads of this page */
	size_t page;
	int fd;
	unsigned long long reads, pieces, zeroes, torn, cut;
};

#define ANT_CONTENTS	0x01		/* changes the contents */
#define ANT_STORED	0x02		/* the page cache must not be the storage */
#define ANT_THP		0x04		/* works on PMD sized ranges */
#define ANT_RDONLY	0x08		/* no writer, except on tmpfs */
#define ANT_EFFECT	0x10		/* proves nothing unless race::effect > 0 */
#define ANT_MOVES	0x20		/* of no use on ramfs */
#define ANT_PLANT	0x40		/* breaks the rules */

struct antagonist {
	const char *name;
	unsigned int flags;
	int arg;
	/* Returns why it cannot run, or NULL. */
	const char *(*setup)(struct race *race);
	int (*round)(struct race *race, struct actor *a, int arg);
	/* What race::effect counts, out of race::tried where that is not 0. */
	const char *effect;
	/* What a plant must be found out as. */
	enum fail expect;
};

/* The first failure is the one which is reported. */
static __printf(3, 4) void fail_race(struct race *race, enum fail fail, const char *fmt, ...)
{
	va_list ap;

	if (!__atomic_exchange_n(&race->failed, true, __ATOMIC_ACQ_REL)) {
		va_start(ap, fmt);
		vsnprintf(race->res->text, sizeof(race->res->text), fmt, ap);
		va_end(ap);
		race->res->fail = fail;
	}
	STORE(&race->stop, true);
}

/* Whoever changes the contents takes turns; a mutex alone is not fair. */
static void lock_contents(struct race *race)
{
	unsigned int ticket;

	pthread_mutex_lock(&race->lock);
	ticket = race->tickets++;
	while (race->turn != ticket)
		pthread_cond_wait(&race->next, &race->lock);
	pthread_mutex_unlock(&race->lock);
}

static void unlock_contents(struct race *race)
{
	pthread_mutex_lock(&race->lock);
	race->turn++;
	pthread_cond_broadcast(&race->next);
	pthread_mutex_unlock(&race->lock);
}

/* Steps 1 and 2 of a change, and 4 and 5, for a range of records. */
static void begin_change(struct race *race, size_t pos, size_t len, enum kind kind)
{
	size_t i;

	for (i = pos / REC; i < (pos + len) / REC; i++)
		STORE(&race->started[i], next_state(race->started[i], kind));
	barrier_full();
}

static void end_change(struct race *race, size_t pos, size_t len)
{
	size_t i;

	barrier_full();
	for (i = pos / REC; i < (pos + len) / REC; i++)
		STORE(&race->done[i], race->started[i]);
}

static void begin_event(__u32 *started)
{
	STORE(started, *started + 1);
	barrier_full();
}

static void end_event(const __u32 *started, __u32 *done)
{
	barrier_full();
	STORE(done, *started);
}

/* Update records; the caller holds the lock. */
static int update(struct race *race, int fd, size_t pos, size_t len, char *buf, int flags)
{
	struct record *r = (struct record *)buf;
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	ssize_t ret;
	size_t i;

	begin_change(race, pos, len, UPDATE);
	for (i = 0; i < len / REC; i++)
		encode(&r[i], race->file, pos / REC + i,
		       state_nr(race->started[pos / REC + i]));
	if (flags)
		ret = pwritev2(fd, &iov, 1, pos, flags);
	else
		ret = pwrite(fd, buf, len, pos);
	if (ret != (ssize_t)len)
		return ret < 0 ? -errno : -EIO;
	end_change(race, pos, len);
	return 0;
}

static void set_hot(struct race *race, size_t pos, size_t len)
{
	STORE(&race->hot_len, REC);
	STORE(&race->hot_pos, pos);
	STORE(&race->hot_len, len);
}

/* A range of at most SPAN bytes, and tell the readers. */
static void pick_range(struct race *race, struct actor *a, size_t align,
		       size_t *pos, size_t *len)
{
	*pos = below(&a->seed, race->size / align) * align;
	*len = (1 + below(&a->seed, SPAN / align)) * align;
	*len = min(*len, race->size - *pos);
	set_hot(race, *pos, *len);
}

/* Half of the ranges begin and end within a page. */
static size_t pick_align(struct actor *a)
{
	return below(&a->seed, 2) ? REC : min(psz, SPAN);
}

/*
 * Take pages which this CPU has just freed, and put the secret into them; a
 * process of its own could hardly be as fast.
 */
static void reuse_much(struct actor *a, size_t size)
{
	a->reuse_second = !a->reuse_second;
	fill_secret(a->reuse + a->reuse_second * MAX_PMD, size);
	/* Only now, or else these pages would be the ones that are taken. */
	madvise(a->reuse + !a->reuse_second * MAX_PMD, MAX_PMD, MADV_DONTNEED);
}

static void reuse(struct actor *a)
{
	reuse_much(a, REUSE_SIZE);
}

static size_t nr_cached(struct race *race, size_t pos, size_t len)
{
	struct cachestat_range range = { .off = pos, .len = len };
	struct cachestat cs;

	if (syscall(__NR_cachestat, race->fd, &range, &cs, 0))
		return 0;
	return cs.nr_cache;
}

/*
 * The antagonists
 */

static int round_truncate(struct race *race, struct actor *a, int arg)
{
	size_t cut = (1 + below(&a->seed, TAIL / REC)) * REC;
	size_t pos;
	int ret = 0;

	(void)arg;
	if (pick_align(a) != REC && cut > psz)
		cut -= cut % psz;
	pos = race->size - cut;
	set_hot(race, pos, cut);

	begin_change(race, pos, cut, ZEROING);
	begin_event(&race->short_started);
	if (ftruncate(race->fd, pos))
		return -errno;
	/* Not always, or else most of the reads hit the end of the file. */
	if (!below(&a->seed, 4))
		reuse(a);
	if (ftruncate(race->fd, race->size))
		return -errno;
	reuse(a);
	end_event(&race->short_started, &race->short_done);
	end_change(race, pos, cut);

	/* Leave some of the hole to the writer. */
	if (below(&a->seed, 4))
		ret = update(race, race->fd, pos, cut, a->buf, 0);
	return ret;
}

static const char *setup_fallocate(struct race *race, int mode)
{
	static char why[64];

	if (!fallocate(race->fd, mode, 0, SHIFT))
		return NULL;
	snprintf(why, sizeof(why), "fallocate() with mode 0x%x: %s", mode, strerror(errno));
	return why;
}

static const char *setup_punch(struct race *race)
{
	return setup_fallocate(race, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

static const char *setup_zero(struct race *race)
{
	return setup_fallocate(race, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
}

static int round_fallocate(struct race *race, struct actor *a, int mode)
{
	size_t pos, len;
	int ret = 0;

	pick_range(race, a, pick_align(a), &pos, &len);
	begin_change(race, pos, len, ZEROING);
	if (fallocate(race->fd, mode, pos, len))
		return -errno;
	reuse(a);
	end_change(race, pos, len);

	if (below(&a->seed, 4))
		ret = update(race, race->fd, pos, len, a->buf, 0);
	return ret;
}

/* Replace folios by ones from fallocate(), which are huge if tmpfs can. */
static int round_prealloc(struct race *race, struct actor *a, int arg)
{
	size_t unit = race->huge && pmd_size && pmd_size < race->size ? pmd_size : SPAN;
	size_t pos = below(&a->seed, race->size / unit) * unit;
	size_t at, part;
	int ret;

	(void)arg;
	set_hot(race, pos, unit);
	begin_change(race, pos, unit, ZEROING);
	if (fallocate(race->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, pos, unit))
		return -errno;
	reuse(a);
	if (fallocate(race->fd, 0, pos, unit))
		return -errno;
	end_change(race, pos, unit);

	for (at = pos; at < pos + unit; at += part) {
		part = min(SPAN, pos + unit - at);
		ret = update(race, race->fd, at, part, a->buf, 0);
		if (ret)
			return ret;
	}

	/* Part of a huge folio goes again, and the rest of it is split. */
	if (unit > SPAN) {
		at = pos + below(&a->seed, unit / SPAN) * SPAN;
		set_hot(race, at, SPAN);
		begin_change(race, at, SPAN, ZEROING);
		if (fallocate(race->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, SPAN))
			return -errno;
		reuse(a);
		end_change(race, at, SPAN);
		return update(race, race->fd, at, SPAN, a->buf, 0);
	}
	return 0;
}

static const char *setup_shift(struct race *race)
{
	const char *why;

	why = setup_fallocate(race, FALLOC_FL_COLLAPSE_RANGE) ?:
	      setup_fallocate(race, FALLOC_FL_INSERT_RANGE);
	race->shifts |= !why;
	return why;
}

/* Cut out a range, and insert a hole in its place. */
static int round_shift(struct race *race, struct actor *a, int arg)
{
	size_t pos = below(&a->seed, race->size / SHIFT - 1) * SHIFT;

	(void)arg;
	set_hot(race, pos, race->size - pos);

	begin_change(race, pos, SHIFT, ZEROING);
	begin_event(&race->short_started);
	begin_event(&race->shift_started);
	if (fallocate(race->fd, FALLOC_FL_COLLAPSE_RANGE, pos, SHIFT))
		return -errno;
	reuse(a);
	if (fallocate(race->fd, FALLOC_FL_INSERT_RANGE, pos, SHIFT))
		return -errno;
	reuse(a);
	end_event(&race->shift_started, &race->shift_done);
	end_event(&race->short_started, &race->short_done);
	end_change(race, pos, SHIFT);

	return update(race, race->fd, pos, SHIFT, a->buf, 0);
}

static const char *setup_direct(struct race *race)
{
	race->dio_fd = open(race->path, O_RDWR | O_DIRECT | O_CLOEXEC);
	return race->dio_fd < 0 ? "no O_DIRECT" : NULL;
}

static int round_direct(struct race *race, struct actor *a, int arg)
{
	size_t pos, len, before, after;
	int ret;

	(void)arg;
	pick_range(race, a, DIO_ALIGN, &pos, &len);
	before = nr_cached(race, pos, len);
	ret = update(race, race->dio_fd, pos, len, a->buf, 0);
	if (ret)
		return ret;
	after = nr_cached(race, pos, len);
	reuse(a);
	ADD(&race->effect, before > after ? before - after : 0);
	return 0;
}

static void evict(struct race *race, size_t pos, size_t len)
{
	fdatasync(race->fd);
	posix_fadvise(race->fd, pos, len, POSIX_FADV_DONTNEED);
}

static const char *setup_dontcache(struct race *race)
{
	char c;
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };

	return preadv2(race->fd, &iov, 1, 0, RWF_DONTCACHE) == 1 ? NULL : "no RWF_DONTCACHE";
}

static int round_dontcache(struct race *race, struct actor *a, int arg)
{
	struct iovec iov = { .iov_base = a->buf };
	size_t pos, len, nr;
	int ret;

	(void)arg;
	pick_range(race, a, min(psz, SPAN), &pos, &len);
	nr = (len + psz - 1) / psz;

	/*
	 * Only folios which it has brought in are dropped, and that only if no
	 * other reader has come across them.
	 */
	evict(race, pos, len);
	reuse(a);
	iov.iov_len = len;
	if (preadv2(race->fd, &iov, 1, pos, RWF_DONTCACHE) < 0)
		return -errno;
	reuse(a);
	ADD(&race->effect, nr - min(nr, nr_cached(race, pos, len)));

	evict(race, pos, len);
	ret = update(race, race->fd, pos, len, a->buf, RWF_DONTCACHE);
	if (ret)
		return ret;
	if (fdatasync(race->fd))
		return -errno;
	ADD(&race->effect, nr - min(nr, nr_cached(race, pos, len)));
	reuse(a);
	return 0;
}

static const char *setup_drop(struct race *race)
{
	race->drop_fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	return race->drop_fd < 0 ? "cannot write to drop_caches" : NULL;
}

/* Where the cgroup2 file system is, and whether the parent turned on memory. */
static char cgroup_root[128];
static bool cgroup_enabled;

/* Called in the process of the test, which is single-threaded so far. */
static const char *setup_reclaim(struct race *race)
{
	char path[PATH_MAX];
	struct sysinfo info;

	if (race->fs_type == RAMFS_MAGIC)
		return "ramfs is not reclaimed";
	if (!race->stored && (sysinfo(&info) || !info.freeswap))
		return "the page cache is the storage, and there is no swap";
	if (!cgroup_root[0])
		return "no cgroup2 with the memory controller";
	snprintf(race->res->cgroup, sizeof(race->res->cgroup), "%s/small_read_race.%d",
		 cgroup_root, (int)getpid());
	if (mkdir(race->res->cgroup, 0755))
		return "cannot create a cgroup";
	snprintf(path, sizeof(path), "%.200s/cgroup.procs", race->res->cgroup);
	if (write_file(path, "0"))
		return "cannot move to a cgroup";
	snprintf(path, sizeof(path), "%.200s/memory.reclaim", race->res->cgroup);
	race->reclaim_fd = open(path, O_WRONLY | O_CLOEXEC);
	return race->reclaim_fd < 0 ? "no memory.reclaim" : NULL;
}

enum evict { EVICT_DONTNEED, EVICT_DROP, EVICT_RECLAIM };

/* Memory becomes scarce, or is made to look like it. */
static int round_evict(struct race *race, struct actor *a, int how)
{
	bool quiet = below(&a->seed, 2);
	size_t pos, len, before, after, tried;
	char buf[32];
	int ret = 0;

	pick_range(race, a, min(psz, SPAN), &pos, &len);
	/* Folios of which the writer makes use are dirty, and stay. */
	if (quiet)
		lock_contents(race);
	fdatasync(race->fd);
	before = nr_cached(race, 0, race->size);
	tried = before;
	switch (how) {
	case EVICT_DONTNEED:
		tried = nr_cached(race, pos, len);
		ret = posix_fadvise(race->fd, pos, len, POSIX_FADV_DONTNEED);
		ret = -ret;
		break;
	case EVICT_DROP:
		ret = pwrite(race->drop_fd, "1", 1, 0) == 1 ? 0 : -errno;
		break;
	case EVICT_RECLAIM:
		tried = min(before, race->size / 2 / psz);
		snprintf(buf, sizeof(buf), "%zu", race->size / 2);
		/* EAGAIN means that there was less to reclaim. */
		if (write(race->reclaim_fd, buf, strlen(buf)) < 0 && errno != EAGAIN)
			ret = -errno;
		break;
	}
	after = nr_cached(race, 0, race->size);
	reuse(a);
	if (quiet)
		unlock_contents(race);
	ADD(&race->effect, before > after ? before - after : 0);
	ADD(&race->tried, tried);
	return ret;
}

static const char *setup_compact(struct race *race)
{
	race->compact_fd = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC);
	return race->compact_fd < 0 ? "cannot write to compact_memory" : NULL;
}

static int round_compact(struct race *race, struct actor *a, int arg)
{
	unsigned long before = event_count("pgmigrate_success");
	unsigned long failed = event_count("pgmigrate_fail");
	unsigned long moved;
	size_t pos, len;

	(void)arg;
	/* Without free pages between them, pages have nowhere to move to. */
	pick_range(race, a, min(psz, SPAN), &pos, &len);
	evict(race, pos, len);
	if (pwrite(race->compact_fd, "1", 1, 0) != 1)
		return -errno;
	reuse(a);
	moved = event_count("pgmigrate_success") - before;
	ADD(&race->effect, moved);
	ADD(&race->tried, moved + event_count("pgmigrate_fail") - failed);
	return 0;
}

static const char *setup_move(struct race *race)
{
	char buf[256], *last;
	int ret;

	ret = read_file("/sys/devices/system/node/has_memory", buf, sizeof(buf));
	if (ret || !strpbrk(buf, ",-"))
		return "less than two nodes have memory";
	last = strrchr(buf, '-');
	if (!last || (strrchr(buf, ',') && strrchr(buf, ',') > last))
		last = strrchr(buf, ',');
	race->nodes[0] = atoi(buf);
	race->nodes[1] = atoi(last + 1);
	return NULL;
}

static int round_move(struct race *race, struct actor *a, int arg)
{
	int nodes[64], status[64];
	size_t pos, len, nr, i;
	void *pages[64];
	char *map;
	long ret;
	int fd;

	(void)arg;
	pick_range(race, a, min(psz, SPAN), &pos, &len);
	if (pos % psz)
		return 0;
	nr = min((len + psz - 1) / psz, 64);
	/* Where others may write to a mapping, some machines flush caches to read. */
	fd = open(race->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	map = mmap(NULL, nr * psz, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, pos);
	close(fd);
	if (map == MAP_FAILED)
		return -errno;
	for (i = 0; i < nr; i++) {
		pages[i] = map + i * psz;
		nodes[i] = race->nodes[LOAD(&race->rounds) % 2];
		status[i] = -EIO;
	}
	ret = syscall(SYS_move_pages, 0, nr, pages, nodes, status, MPOL_MF_MOVE);
	ret = ret < 0 ? -errno : 0;
	munmap(map, nr * psz);
	reuse(a);
	for (i = 0; i < nr; i++)
		ADD(&race->effect, status[i] == nodes[i]);
	ADD(&race->tried, nr);
	return ret;
}

static const char *setup_thp(struct race *race)
{
	if (!pmd_size)
		return "no transparent huge pages";
	return race->size < 2 * pmd_size ? "huge pages are too large" : NULL;
}

/* Map a range of the size of a PMD, aligned such that a huge page fits. */
static char *map_pmd(int fd, size_t pos)
{
	char *area, *map;

	area = mmap(NULL, 2 * pmd_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return NULL;
	map = (char *)(((uintptr_t)area + pmd_size - 1) & ~((uintptr_t)pmd_size - 1));
	if (map > area)
		munmap(area, map - area);
	if (map < area + pmd_size)
		munmap(map + pmd_size, area + pmd_size - map);
	area = mmap(map, pmd_size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, pos);
	if (area == MAP_FAILED) {
		munmap(map, pmd_size);
		return NULL;
	}
	return map;
}

/*
 * Replace small folios by a huge one.  After that, tmpfs splits it because of a
 * hole, while other file systems drop it, and what is read again is small.  Some
 * kernels drop it, too, when somebody opens the file to write.
 */
static int round_collapse(struct race *race, struct actor *a, int arg)
{
	size_t pos = below(&a->seed, race->size / pmd_size) * pmd_size;
	size_t at = pos + below(&a->seed, pmd_size / SPAN) * SPAN;
	unsigned long before;
	int fd, ret;
	char *map;

	(void)arg;
	set_hot(race, pos, pmd_size);
	fd = open(race->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	map = map_pmd(fd, pos);
	close(fd);
	if (!map)
		return -ENOMEM;
	/* It succeeds, too, if there is a huge folio already. */
	before = event_count("thp_collapse_alloc");
	if (!madvise(map, pmd_size, MADV_COLLAPSE))
		ADD(&race->effect, event_count("thp_collapse_alloc") != before);
	munmap(map, pmd_size);
	reuse_much(a, pmd_size);

	if (race->stored) {
		fd = open(race->path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close(fd);
		evict(race, pos, pmd_size);
		reuse(a);
		return 0;
	}

	lock_contents(race);
	set_hot(race, at, SPAN);
	begin_change(race, at, SPAN, ZEROING);
	ret = fallocate(race->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, SPAN);
	ret = ret ? -errno : 0;
	reuse(a);
	if (!ret) {
		end_change(race, at, SPAN);
		ret = update(race, race->fd, at, SPAN, a->buf, 0);
	}
	unlock_contents(race);
	return ret;
}

static const char *setup_split(struct race *race)
{
	char dir[128], path[192];
	const char *why;

	why = setup_thp(race);
	if (why)
		return why;
	if (!race->stored && !race->huge)
		return "no large folios";
	if (!find_mount("debugfs", dir))
		return "no debugfs";
	snprintf(path, sizeof(path), "%s/split_huge_pages", dir);
	race->split_fd = open(path, O_WRONLY | O_CLOEXEC);
	return race->split_fd < 0 ? "cannot write to split_huge_pages" : NULL;
}

/* Get large folios into the page cache. */
static int grow_folios(struct race *race, struct actor *a, size_t pos)
{
	size_t at;
	char *map;
	int ret;

	if (race->stored) {
		evict(race, pos, pmd_size);
		reuse(a);
		map = map_pmd(race->fd, pos);
		if (!map)
			return -ENOMEM;
		/* Readahead by a fault obeys MADV_HUGEPAGE. */
		madvise(map, pmd_size, MADV_HUGEPAGE);
		LOAD(map);
		munmap(map, pmd_size);
		return 0;
	}

	lock_contents(race);
	begin_change(race, pos, pmd_size, ZEROING);
	ret = fallocate(race->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, pos, pmd_size);
	ret = ret ? -errno : 0;
	if (!ret)
		end_change(race, pos, pmd_size);
	for (at = pos; !ret && at < pos + pmd_size; at += SPAN)
		ret = update(race, race->fd, at, SPAN, a->buf, 0);
	unlock_contents(race);
	return ret;
}

static int round_split(struct race *race, struct actor *a, int arg)
{
	size_t pos = below(&a->seed, race->size / pmd_size) * pmd_size;
	static const int orders[] = { 0, 0, 2, 4 };
	unsigned long before;
	char cmd[256];
	int ret;

	(void)arg;
	set_hot(race, pos, pmd_size);
	ret = grow_folios(race, a, pos);
	if (ret)
		return ret;
	snprintf(cmd, sizeof(cmd), "%.200s,0x%zx,0x%zx,%d", race->path, pos / psz,
		 (pos + pmd_size) / psz, orders[below(&a->seed, ARRAY_SIZE(orders))]);
	/* Into folios of different orders, as small as that around one page. */
	if (below(&a->seed, 2))
		snprintf(cmd + strlen(cmd), 16, ",%u", below(&a->seed, pmd_size / psz));
	before = count_splits();
	/* Folios which are in use are not split, that is fine. */
	if (write(race->split_fd, cmd, strlen(cmd)) < 0 && errno != EAGAIN && errno != EBUSY)
		return -errno;
	reuse(a);
	ADD(&race->effect, count_splits() - before);
	return 0;
}

/*
 * Plants: what the readers must find out
 */

enum plant {
	PLANT_SECRET,
	PLANT_CORRUPT,
	PLANT_STALE,
	PLANT_MISPLACED,
	PLANT_ZEROES,
	PLANT_SHORT,
};

static int round_plant(struct race *race, struct actor *a, int what)
{
	size_t pos = race->size / 2;
	struct record r;
	int ret;

	/* So that the previous generation is too old. */
	set_hot(race, pos, REC);
	ret = update(race, race->fd, pos, REC, a->buf, 0);
	if (ret)
		return ret;

	encode(&r, race->file, pos / REC, state_nr(race->done[pos / REC]));
	switch (what) {
	case PLANT_SECRET:
		fill_secret((char *)&r, sizeof(r));
		break;
	case PLANT_CORRUPT:
		((unsigned char *)&r)[below(&a->seed, REC)] ^= 1u << below(&a->seed, 8);
		break;
	case PLANT_STALE:
		encode(&r, race->file, pos / REC, state_nr(race->done[pos / REC]) - 1);
		break;
	case PLANT_MISPLACED:
		encode(&r, race->file, pos / REC + 1, state_nr(race->done[pos / REC]));
		break;
	case PLANT_ZEROES:
		memset(&r, 0, sizeof(r));
		break;
	case PLANT_SHORT:
		set_hot(race, race->size - REC, REC);
		return ftruncate(race->fd, race->size - REC) ? -errno : 0;
	}
	return pwrite(race->fd, &r, sizeof(r), pos) == sizeof(r) ? 0 : -EIO;
}

static int round_mixed(struct race *race, struct actor *a, int arg);
static const char *setup_mixed(struct race *race);

#define PUNCH	(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO	(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)

static const struct antagonist antagonists[] = {
	{ "truncate", ANT_CONTENTS, 0, NULL, round_truncate, NULL, 0 },
	{ "punch_hole", ANT_CONTENTS, PUNCH, setup_punch, round_fallocate, NULL, 0 },
	{ "zero_range", ANT_CONTENTS, ZERO, setup_zero, round_fallocate, NULL, 0 },
	{ "prealloc", ANT_CONTENTS | ANT_THP, 0, setup_punch, round_prealloc, NULL, 0 },
	{ "collapse_insert", ANT_CONTENTS, 0, setup_shift, round_shift, NULL, 0 },
	{ "direct", ANT_CONTENTS | ANT_STORED | ANT_EFFECT, 0, setup_direct, round_direct,
	  "pages invalidated", 0 },
	{ "dontcache", ANT_CONTENTS | ANT_STORED | ANT_EFFECT, 0, setup_dontcache,
	  round_dontcache, "pages dropped", 0 },
	{ "dontneed", ANT_STORED | ANT_EFFECT, EVICT_DONTNEED, NULL, round_evict,
	  "pages evicted", 0 },
	{ "drop_caches", ANT_STORED | ANT_EFFECT, EVICT_DROP, setup_drop, round_evict,
	  "pages evicted", 0 },
	{ "reclaim", ANT_EFFECT, EVICT_RECLAIM, setup_reclaim, round_evict,
	  "pages reclaimed", 0 },
	{ "compact", ANT_MOVES | ANT_EFFECT, 0, setup_compact, round_compact,
	  "pages migrated, of any kind", 0 },
	{ "move_pages", ANT_MOVES | ANT_EFFECT, 0, setup_move, round_move, "pages migrated", 0 },
	{ "madv_collapse", ANT_MOVES | ANT_THP | ANT_RDONLY | ANT_EFFECT, 0, setup_thp,
	  round_collapse, "huge folios collapsed", 0 },
	{ "split", ANT_MOVES | ANT_THP | ANT_EFFECT, 0, setup_split, round_split,
	  "folios split", 0 },
	{ "mixed", ANT_THP, 0, setup_mixed, round_mixed, NULL, 0 },
};

static const struct antagonist plants[] = {
	{ "secret", ANT_CONTENTS | ANT_PLANT, PLANT_SECRET, NULL, round_plant, NULL,
	  FAIL_SECRET },
	{ "corrupt", ANT_CONTENTS | ANT_PLANT, PLANT_CORRUPT, NULL, round_plant, NULL,
	  FAIL_RECORD },
	{ "stale", ANT_CONTENTS | ANT_PLANT, PLANT_STALE, NULL, round_plant, NULL,
	  FAIL_RECORD },
	{ "misplaced", ANT_CONTENTS | ANT_PLANT, PLANT_MISPLACED, NULL, round_plant, NULL,
	  FAIL_RECORD },
	{ "zeroes", ANT_CONTENTS | ANT_PLANT, PLANT_ZEROES, NULL, round_plant, NULL,
	  FAIL_RECORD },
	{ "short", ANT_CONTENTS | ANT_PLANT, PLANT_SHORT, NULL, round_plant, NULL,
	  FAIL_SHORT },
};

/* Returns why the antagonist cannot run, or NULL. */
static const char *setup_antagonist(struct race *race, const struct antagonist *ant)
{
	if ((ant->flags & ANT_STORED) && !race->stored)
		return "the page cache is the storage";
	if ((ant->flags & ANT_MOVES) && race->fs_type == RAMFS_MAGIC)
		return "ramfs has neither migration nor large folios";
	return ant->setup ? ant->setup(race) : NULL;
}

static const char *setup_mixed(struct race *race)
{
	const struct antagonist *ant;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(antagonists); i++) {
		ant = &antagonists[i];
		if (ant->round == round_mixed)
			continue;
		/* The writer of this test leaves dirty folios, which stay small. */
		if ((ant->flags & ANT_RDONLY) && race->stored)
			continue;
		if (!setup_antagonist(race, ant))
			race->mix[race->nr_mix++] = ant;
	}
	return NULL;
}

/* Of two threads, one does what needs the lock, and the other one the rest. */
static int round_mixed(struct race *race, struct actor *a, int arg)
{
	const struct antagonist *ant;
	unsigned int i;

	(void)arg;
	for (i = 0; i < 32; i++) {
		ant = race->mix[below(&a->seed, race->nr_mix)];
		if (!!(ant->flags & ANT_CONTENTS) == a->contents)
			return ant->round(race, a, ant->arg);
	}
	sched_yield();
	return 0;
}

/*
 * The threads
 */

static int init_actor(struct actor *a, struct race *race, unsigned int nr)
{
	a->race = race;
	a->seed = mix(opt.seed, 1000 + nr);
	a->reuse = mmap(NULL, 2 * MAX_PMD, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->reuse == MAP_FAILED)
		return -errno;
	/* It is small pages that are freed. */
	madvise(a->reuse, 2 * MAX_PMD, MADV_NOHUGEPAGE);
	if (posix_memalign((void **)&a->buf, DIO_ALIGN, TAIL))
		return -ENOMEM;
	return 0;
}

static void *antagonist_thread(void *arg)
{
	struct actor *a = arg;
	struct race *race = a->race;
	const struct antagonist *ant = race->ant;
	int ret;

	while (!LOAD(&race->stop)) {
		if (a->contents)
			lock_contents(race);
		ret = ant->round(race, a, ant->arg);
		if (a->contents)
			unlock_contents(race);
		if (ret) {
			fail_race(race, FAIL_ERROR, "%s: %s\n", ant->name, strerror(-ret));
			break;
		}
		ADD(&race->rounds, 1);
		if (ant->flags & ANT_PLANT)
			break;
	}
	return NULL;
}

/* Updates single records, most of them where the antagonist is. */
static void *writer_thread(void *arg)
{
	struct actor *a = arg;
	struct race *race = a->race;
	size_t pos, len;
	int i, ret = 0;

	while (!LOAD(&race->stop) && !ret) {
		lock_contents(race);
		for (i = 0; i < 8 && !ret; i++) {
			pos = LOAD(&race->hot_pos);
			len = LOAD(&race->hot_len);
			if (!below(&a->seed, 4)) {
				pos = 0;
				len = race->size;
			}
			pos += below(&a->seed, len / REC) * REC;
			ret = update(race, race->fd, min(pos, race->size - REC), REC, a->buf, 0);
		}
		unlock_contents(race);
		if (ret)
			fail_race(race, FAIL_ERROR, "writer: %s\n", strerror(-ret));
		ADD(&race->updates, 8);
	}
	return NULL;
}

static void dump(char *text, size_t size, const char *what, const void *buf, size_t len)
{
	const unsigned char *p = buf;
	size_t i, n;

	n = strlen(text);
	snprintf(text + n, size - n, "%s:\n", what);
	for (i = 0; i < len; i++) {
		n = strlen(text);
		snprintf(text + n, size - n, "%s%02x%s", i % 16 ? " " : "  ", p[i],
			 i % 16 == 15 || i == len - 1 ? "\n" : "");
	}
}

/* Say as much as possible about a piece which is bad. */
static void report_piece(struct race *race, const struct view *v, size_t off,
			 const unsigned char *buf, size_t len, size_t pos, size_t got)
{
	/* A read of a few bytes may have less of it than a whole period. */
	bool secret = has_secret(buf, len, min(len, SECRET_LEN));
	struct record r, want;
	char text[1400];
	size_t n;

	n = snprintf(text, sizeof(text),
		     "%s at %zu (record at %zu, bytes %zu to %zu), read of %zu at %zu\n"
		     "allowed: changes %u to %u%s, history 0x%02x\n",
		     secret ? "secret found" : "bad data", v->src[0].rec * REC + off,
		     v->src[0].rec * REC, off, off + len - 1, got, pos,
		     state_nr(v->src[0].lo), state_nr(v->src[0].hi),
		     v->nr_src > 1 ? ", or those of the record behind" : "",
		     v->src[0].hi & 0xff);
	if (len == REC) {
		memcpy(&r, buf, sizeof(r));
		if (r.magic == REC_MAGIC && r.word[SUM_WORD].val == checksum(&r))
			snprintf(text + n, sizeof(text) - n,
				 "found a valid record: %s file, position %llu, change %u\n",
				 r.file == race->file ? "this" : "another",
				 (unsigned long long)r.pos, r.word[GEN_WORD].val);
	}
	dump(text, sizeof(text), "found", buf, len);
	encode(&want, race->file, v->src[0].rec, state_nr(v->src[0].hi));
	if (!may_be(v->src[0].hi, 0, UPDATE))
		memset(&want, 0, sizeof(want));
	dump(text, sizeof(text), "expected (last change)", (char *)&want + off, len);
	fail_race(race, secret ? FAIL_SECRET : FAIL_RECORD, "%s", text);
}

static const unsigned short lengths[] = { 64, 64, 64, 8, 192, 256, 768 };

static void pick_read(struct reader *rd, size_t *pos, size_t *len)
{
	struct race *race = rd->race;
	size_t start, range, align;

	*len = opt.len ?: lengths[below(&rd->seed, ARRAY_SIZE(lengths))];
	start = LOAD(&race->hot_pos);
	range = LOAD(&race->hot_len);
	if (rd->stay) {
		/*
		 * Another read of the same page changes nothing about it, and
		 * needs no reference.
		 */
		rd->stay--;
		start = rd->page;
		range = psz;
	} else if (!below(&rd->seed, 4)) {
		start = 0;
		range = race->size;
	}
	if (below(&rd->seed, 8))
		align = *len < REC ? 8 : REC;
	else
		align = 1;
	*pos = start + below(&rd->seed, range / align) * align;
	/* Both ends of the hot range are worth a look from outside, too. */
	if (*pos >= *len && !below(&rd->seed, 8))
		*pos -= *len / align * align;
	*pos = min(*pos, race->size - *len);

	if (!rd->stay) {
		rd->page = (*pos + *len - 1) / psz * psz;
		rd->stay = below(&rd->seed, STAY);
	}
}

static ssize_t do_read(struct reader *rd, unsigned char *buf, size_t len, size_t pos, bool *nowait)
{
	size_t split = below(&rd->seed, len + 1);
	struct iovec iov[2] = {
		{ .iov_base = buf, .iov_len = split },
		{ .iov_base = buf + split, .iov_len = len - split },
	};
	ssize_t ret;

	*nowait = false;
	switch (below(&rd->seed, 16)) {
	case 0:
		ret = preadv(rd->fd, iov, 2, pos);
		break;
	case 1:
		*nowait = true;
		ret = preadv2(rd->fd, iov, 2, pos, RWF_NOWAIT);
		if (ret < 0 && (errno == EAGAIN || errno == EOPNOTSUPP))
			return 0;
		break;
	default:
		ret = pread(rd->fd, buf, len, pos);
	}
	return ret < 0 ? -errno : ret;
}

/* Read something, and check it. */
static void read_once(struct reader *rd)
{
	struct view views[MAX_LEN / REC + 2];
	struct race *race = rd->race;
	__u32 short_done, shift_done;
	size_t pos, len, at, off, part, rec, i, nr, shifted;
	unsigned char buf[MAX_LEN];
	bool nowait, shifts;
	ssize_t got;

	pick_read(rd, &pos, &len);
	rec = pos / REC;
	nr = (pos + len - 1) / REC - rec + 1;
	memset(buf, 0x5a, len);

	for (i = 0; i < nr; i++) {
		views[i].src[0].rec = rec + i;
		views[i].src[0].lo = LOAD(&race->done[rec + i]);
		shifted = rec + i + SHIFT / REC;
		if (race->shifts && shifted < race->size / REC) {
			views[i].src[1].rec = shifted;
			views[i].src[1].lo = LOAD(&race->done[shifted]);
		}
	}
	short_done = LOAD(&race->short_done);
	shift_done = LOAD(&race->shift_done);
	barrier_full();
	got = do_read(rd, buf, len, pos, &nowait);
	barrier_full();
	shifts = race->shifts && LOAD(&race->shift_started) != shift_done;
	for (i = 0; i < nr; i++) {
		views[i].src[0].hi = LOAD(&race->started[rec + i]);
		views[i].nr_src = 1;
		views[i].zeroes = shifts;
		shifted = rec + i + SHIFT / REC;
		if (shifts && shifted < race->size / REC) {
			views[i].src[1].hi = LOAD(&race->started[shifted]);
			views[i].nr_src = 2;
		}
	}

	if (got < 0) {
		fail_race(race, FAIL_ERROR, "read of %zu at %zu: %s\n", len, pos,
			  strerror(-got));
		return;
	}
	/* Such a read may find nothing at all, which is not a check. */
	if (nowait && !got)
		return;
	rd->reads++;
	if ((size_t)got < len && !nowait) {
		rd->cut++;
		if (LOAD(&race->short_started) == short_done || pos + got < race->size - TAIL) {
			fail_race(race, FAIL_SHORT, "short read at %zu: %zd of %zu\n",
				  pos, got, len);
			return;
		}
	}

	for (at = 0; at < (size_t)got; at += part) {
		off = (pos + at) % REC;
		part = min(REC - off, got - at);
		i = (pos + at) / REC - rec;
		rd->pieces++;
		switch (check_piece(race->file, &views[i], off, buf + at, part)) {
		case GOOD:
			break;
		case ZEROES:
			rd->zeroes++;
			break;
		case TORN:
			rd->torn++;
			break;
		case BAD:
			report_piece(race, &views[i], off, buf + at, part, pos, got);
			return;
		}
	}
	/* Nor must the secret be in what was not counted. */
	if (has_secret(buf + got, len - got, SECRET_LEN))
		fail_race(race, FAIL_SECRET, "secret found behind a short read at %zu\n", pos);
}

static bool finished(struct race *race)
{
	unsigned int batches = ADD(&race->batches, 1);
	unsigned int rounds = LOAD(&race->rounds);
	struct timespec now;

	if (rounds < (race->ant->flags & ANT_PLANT ? 1 : MIN_ROUNDS))
		return false;
	if ((race->ant->flags & ANT_EFFECT) && !LOAD(&race->effect) && rounds < MAX_IDLE)
		return false;
	if (!opt.seconds)
		return batches >= opt.reads / BATCH;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > race->end.tv_sec ||
		(now.tv_sec == race->end.tv_sec && now.tv_nsec >= race->end.tv_nsec);
}

static void *reader_thread(void *arg)
{
	struct reader *rd = arg;
	struct race *race = rd->race;
	int i;

	while (!LOAD(&race->stop)) {
		for (i = 0; i < BATCH && !LOAD(&race->stop); i++)
			read_once(rd);
		if (finished(race))
			STORE(&race->stop, true);
	}
	return NULL;
}

/*
 * Until it is killed, this process puts the secret into whatever becomes free:
 * as anonymous memory, as pages of a pipe, and as the page cache of a file.
 */
static void secret_process(struct race *race, pid_t parent)
{
	static char buf[SECRET_SIZE];
	int fd, pipe_fds[2];
	ssize_t ret;
	char *anon;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fill_secret(buf, sizeof(buf));
	anon = mmap(NULL, SECRET_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	fd = open(race->secret_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (anon == MAP_FAILED || fd < 0 || pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC))
		_exit(1);

	for (;;) {
		fill_secret(anon, SECRET_SIZE);
		ret = write(pipe_fds[1], buf, sizeof(buf));
		madvise(anon, SECRET_SIZE, MADV_DONTNEED);
		if (pwrite(fd, buf, sizeof(buf), 0) < 0 && errno != ENOSPC)
			_exit(1);
		while (ret > 0)
			ret = read(pipe_fds[0], anon, SECRET_SIZE);
		if (ftruncate(fd, 0))
			_exit(1);
		sched_yield();
	}
}

static int start_thread(struct race *race, pthread_t *thread, void *(*fn)(void *), void *arg)
{
	int ret = pthread_create(thread, NULL, fn, arg);

	if (ret)
		fail_race(race, FAIL_ERROR, "pthread_create: %s\n", strerror(ret));
	return ret;
}

/* Start everybody, and wait for the readers to have read enough. */
static void run_threads(struct race *race)
{
	bool writer, mixed = race->ant->round == round_mixed;
	struct actor actors[3] = {};
	struct reader readers[MAX_READERS] = {};
	unsigned int i, nr_actors = 0, nr_readers = 0;
	bool ok = true;

	writer = !(race->ant->flags & ANT_PLANT) &&
		!((race->ant->flags & ANT_RDONLY) && race->stored);
	for (i = 0; i < ARRAY_SIZE(actors); i++)
		ok &= !init_actor(&actors[i], race, i);
	if (!ok) {
		fail_race(race, FAIL_ERROR, "no memory\n");
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &race->end);
	race->end.tv_sec += opt.seconds;

	actors[0].contents = mixed || (race->ant->flags & ANT_CONTENTS);
	ok = !start_thread(race, &actors[0].thread, antagonist_thread, &actors[0]);
	nr_actors += ok;
	if (ok && mixed) {
		ok = !start_thread(race, &actors[1].thread, antagonist_thread, &actors[1]);
		nr_actors += ok;
	}
	if (ok && writer) {
		ok = !start_thread(race, &actors[nr_actors].thread, writer_thread,
				   &actors[nr_actors]);
		nr_actors += ok;
	}
	for (i = 0; ok && i < opt.readers; i++) {
		readers[i].race = race;
		readers[i].seed = mix(opt.seed, i);
		/* Some share an open file, and some have one of their own. */
		if (i % 2)
			readers[i].fd = dup(readers[i - 1].fd);
		else
			readers[i].fd = open(race->path, O_RDONLY | O_CLOEXEC);
		ok = readers[i].fd >= 0 &&
			!start_thread(race, &readers[i].thread, reader_thread, &readers[i]);
		nr_readers += ok;
	}
	if (!ok)
		fail_race(race, FAIL_ERROR, "cannot start: %s\n", strerror(errno));

	for (i = 0; i < nr_readers; i++) {
		pthread_join(readers[i].thread, NULL);
		race->res->reads += readers[i].reads;
		race->res->pieces += readers[i].pieces;
		race->res->zeroes += readers[i].zeroes;
		race->res->torn += readers[i].torn;
		race->res->cut += readers[i].cut;
	}
	STORE(&race->stop, true);
	for (i = 0; i < nr_actors; i++)
		pthread_join(actors[i].thread, NULL);
	race->res->rounds = race->rounds;
	race->res->effect = race->effect;
	race->res->tried = race->tried;
	race->res->updates = race->updates;
}

/* The process of a test. */
static void run_race(const struct antagonist *ant, const char *dir, bool huge,
		     struct result *res)
{
	struct race race = {
		.ant = ant,
		.res = res,
		.huge = huge,
		.size = FILE_SIZE,
		.hot_len = REC,
	};
	int status, ret = 0;
	pid_t self = getpid();
	struct statfs fs;
	struct stat st;
	const char *why;
	char *buf;
	pid_t pid;
	size_t at;

	alarm(opt.seconds + opt.reads / SLOW_READS + STUCK_SECONDS);
	pthread_mutex_init(&race.lock, NULL);
	pthread_cond_init(&race.next, NULL);
	snprintf(race.path, sizeof(race.path), "%s/race.%d", dir, (int)getppid());
	snprintf(race.secret_path, sizeof(race.secret_path), "%s/secret.%d", dir, (int)getppid());
	if ((ant->flags & ANT_THP) && pmd_size >= SPAN && pmd_size <= MAX_PMD)
		race.size = 2 * pmd_size;
	race.started = calloc(race.size / REC, sizeof(*race.started));
	race.done = calloc(race.size / REC, sizeof(*race.done));
	buf = malloc(SPAN);
	race.fd = open(race.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (race.fd < 0 || !race.started || !race.done || !buf ||
	    fstat(race.fd, &st) || fstatfs(race.fd, &fs) || ftruncate(race.fd, race.size)) {
		fail_race(&race, FAIL_ERROR, "cannot set up %s: %s\n", race.path,
			  strerror(errno));
		return;
	}
	race.file = mix(st.st_ino, opt.seed);
	race.fs_type = fs.f_type;
	race.stored = race.fs_type != RAMFS_MAGIC && race.fs_type != TMPFS_MAGIC;

	/* This may write zeroes, so the records come later. */
	why = setup_antagonist(&race, ant);
	if (why) {
		res->skip = true;
		snprintf(res->text, sizeof(res->text), "%s\n", why);
		return;
	}
	for (at = 0; !ret && at < race.size; at += SPAN)
		ret = update(&race, race.fd, at, SPAN, buf, 0);
	if (!ret && fsync(race.fd))
		ret = -errno;
	if (ret) {
		fail_race(&race, FAIL_ERROR, "cannot write %s: %s\n", race.path,
			  strerror(-ret));
		return;
	}
	if ((ant->flags & ANT_RDONLY) && race.stored) {
		close(race.fd);
		race.fd = open(race.path, O_RDONLY | O_CLOEXEC);
	}

	pid = fork();
	if (!pid)
		secret_process(&race, self);
	if (pid < 0) {
		fail_race(&race, FAIL_ERROR, "fork: %s\n", strerror(errno));
		return;
	}
	run_threads(&race);
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		fail_race(&race, FAIL_ERROR, "the process with the secret gave up\n");

	if (res->fail == FAIL_NONE && (ant->flags & ANT_EFFECT) && !res->effect) {
		res->skip = true;
		snprintf(res->text, sizeof(res->text), "it ran %u times without effect\n",
			 res->rounds);
	}
}

/*
 * The file systems
 */

struct fs {
	char name[64];
	char dir[PATH_MAX];
	char why[128];		/* why it is not available */
	bool mounted;
	bool huge;
};

#define MAX_FS		16

static struct fs filesystems[MAX_FS];
static unsigned int nr_filesystems;
static char base_dir[PATH_MAX];
static bool base_mounted;

static struct fs *add_fs(const char *name)
{
	struct fs *fs;

	if (nr_filesystems == MAX_FS)
		ksft_exit_fail_msg("too many directories\n");
	fs = &filesystems[nr_filesystems++];
	snprintf(fs->name, sizeof(fs->name), "%s", name);
	return fs;
}

/* A private mount namespace, in which this process may mount something. */
static bool enter_namespace(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			return false;
		write_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (write_file("/proc/self/uid_map", map))
			return false;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (write_file("/proc/self/gid_map", map))
			return false;
	}
	return !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static void mount_fs(struct fs *fs, const char *dev, const char *type, const char *data)
{
	if (mount(dev, fs->dir, type, 0, data))
		snprintf(fs->why, sizeof(fs->why), "cannot mount %s: %s", fs->name,
			 strerror(errno));
	else
		fs->mounted = true;
}

/* Make a file system in a file, and mount that. */
static void mount_image(struct fs *fs, const char *type, off_t size, const char *mkfs)
{
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	char image[PATH_MAX + 16], cmd[PATH_MAX + 128], dev[32];
	int fd, ctl, loop = -1, nr, try, ret;

	snprintf(image, sizeof(image), "%s.img", fs->dir);
	fd = open(image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, size)) {
		snprintf(fs->why, sizeof(fs->why), "no image: %s", strerror(errno));
		return;
	}
	snprintf(cmd, sizeof(cmd), "%s %s >/dev/null 2>&1", mkfs, image);
	ret = system(cmd);
	if (ret) {
		snprintf(fs->why, sizeof(fs->why), "mkfs.%s: %s", type,
			 WIFEXITED(ret) && WEXITSTATUS(ret) == 127 ? "not found" : "failed");
		close(fd);
		return;
	}

	ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	config.fd = fd;
	/* Somebody else may be faster and take the device. */
	for (try = 0; ctl >= 0 && loop < 0 && try < 8; try++) {
		nr = ioctl(ctl, LOOP_CTL_GET_FREE);
		if (nr < 0)
			break;
		snprintf(dev, sizeof(dev), "/dev/loop%d", nr);
		loop = open(dev, O_RDWR | O_CLOEXEC);
		if (loop >= 0 && ioctl(loop, LOOP_CONFIGURE, &config)) {
			close(loop);
			loop = -1;
		}
	}
	if (loop < 0) {
		snprintf(fs->why, sizeof(fs->why), "no loop device: %s", strerror(errno));
	} else {
		mount_fs(fs, dev, type, NULL);
		close(loop);
	}
	if (ctl >= 0)
		close(ctl);
	close(fd);
}

static void find_cgroup(void)
{
	char path[256], val[256];

	if (!find_mount("cgroup2", cgroup_root)) {
		snprintf(cgroup_root, sizeof(cgroup_root), "%.100s/cgroup", base_dir);
		if (mkdir(cgroup_root, 0755) || mount("cgroup2", cgroup_root, "cgroup2", 0, NULL)) {
			cgroup_root[0] = '\0';
			return;
		}
	}
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", cgroup_root);
	if (!read_file(path, val, sizeof(val)) && strstr(val, "memory"))
		return;
	if (write_file(path, "+memory"))
		cgroup_root[0] = '\0';
	else
		cgroup_enabled = true;
}

/* Mount what can be mounted; everything is gone with the last process. */
static void mount_all(void)
{
	static const char * const names[] = { "tmpfs", "tmpfs-huge", "ramfs", "ext4", "xfs" };
	const char *tmp = getenv("TMPDIR") ?: "/tmp";
	char dir[PATH_MAX];
	struct fs *fs;
	size_t i;

	snprintf(base_dir, sizeof(base_dir), "%s/small_read_race.XXXXXX", tmp);
	if (!mkdtemp(base_dir))
		ksft_exit_fail_msg("mkdtemp %s: %s\n", base_dir, strerror(errno));
	base_mounted = enter_namespace() &&
		!mount("tmpfs", base_dir, "tmpfs", 0, "size=512m,huge=never");

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		fs = add_fs(names[i]);
		if (!base_mounted) {
			snprintf(fs->why, sizeof(fs->why), "cannot mount anything");
			continue;
		}
		snprintf(fs->dir, sizeof(fs->dir), "%.200s/%s", base_dir, names[i]);
		if (mkdir(fs->dir, 0755)) {
			snprintf(fs->why, sizeof(fs->why), "mkdir: %s", strerror(errno));
			continue;
		}
		if (opt.fs && strcmp(opt.fs, names[i]))
			continue;
		if (!strcmp(names[i], "tmpfs")) {
			mount_fs(fs, "tmpfs", "tmpfs", "size=64m,huge=never");
		} else if (!strcmp(names[i], "tmpfs-huge")) {
			mount_fs(fs, "tmpfs", "tmpfs", "size=64m,huge=always");
			fs->huge = true;
		} else if (!strcmp(names[i], "ramfs")) {
			mount_fs(fs, "ramfs", "ramfs", NULL);
		} else if (!strcmp(names[i], "ext4")) {
			mount_image(fs, "ext4", 96 * MB, "mkfs.ext4 -q -F -b 4096");
		} else {
			mount_image(fs, "xfs", 320 * MB, "mkfs.xfs -q -f");
		}
	}

	if (!base_mounted) {
		fs = add_fs("dir");
		snprintf(fs->dir, sizeof(fs->dir), "%s", base_dir);
		return;
	}
	find_cgroup();
	if (!find_mount("debugfs", dir)) {
		snprintf(dir, sizeof(dir), "%.200s/debug", base_dir);
		if (!mkdir(dir, 0755))
			(void)!mount("debugfs", dir, "debugfs", 0, NULL);
	}
}

static void unmount_all(void)
{
	char path[256];
	unsigned int i;

	if (cgroup_enabled) {
		snprintf(path, sizeof(path), "%s/cgroup.subtree_control", cgroup_root);
		write_file(path, "-memory");
	}
	if (!base_dir[0])
		return;
	for (i = 0; i < nr_filesystems; i++)
		if (filesystems[i].mounted)
			umount2(filesystems[i].dir, MNT_DETACH);
	if (base_mounted)
		umount2(base_dir, MNT_DETACH);
	rmdir(base_dir);
}

/*
 * Running and reporting
 */

static struct result *result;

/* Run a race in a process of its own; returns whether it came to an end. */
static bool run_child(const struct antagonist *ant, const struct fs *fs)
{
	char path[PATH_MAX + 32];
	int status;
	pid_t pid;

	memset(result, 0, sizeof(*result));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_race(ant, fs->dir, fs->huge, result);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		ksft_exit_fail_msg("no process: %s\n", strerror(errno));

	snprintf(path, sizeof(path), "%s/race.%d", fs->dir, (int)getpid());
	unlink(path);
	snprintf(path, sizeof(path), "%s/secret.%d", fs->dir, (int)getpid());
	unlink(path);
	if (result->cgroup[0])
		rmdir(result->cgroup);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	snprintf(result->text, sizeof(result->text), "%s\n",
		 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "died");
	return false;
}

static void print_text(void)
{
	char *line, *next;

	for (line = result->text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		ksft_print_msg("%s\n", line);
	}
}

static void test_race(const struct antagonist *ant, const struct fs *fs)
{
	if (fs->why[0]) {
		ksft_test_result_skip("%s %s: %s\n", fs->name, ant->name, fs->why);
		return;
	}
	if (!run_child(ant, fs)) {
		print_text();
		ksft_test_result_fail("%s %s\n", fs->name, ant->name);
		return;
	}
	if (result->skip) {
		result->text[strcspn(result->text, "\n")] = '\0';
		ksft_test_result_skip("%s %s: %s\n", fs->name, ant->name, result->text);
		return;
	}
	print_text();
	ksft_print_msg("%s %s: %llu reads checked, %llu of them short\n", fs->name, ant->name,
		       result->reads, result->cut);
	ksft_print_msg("%s %s: %llu pieces of records, %llu zeroes, %llu torn\n", fs->name,
		       ant->name, result->pieces, result->zeroes, result->torn);
	ksft_print_msg("%s %s: antagonist ran %u times, %u records updated by the writer\n",
		       fs->name, ant->name, result->rounds, result->updates);
	if (ant->effect && result->tried)
		ksft_print_msg("%s %s: %lu of %lu %s\n", fs->name, ant->name, result->effect,
			       result->tried, ant->effect);
	else if (ant->effect)
		ksft_print_msg("%s %s: %lu %s\n", fs->name, ant->name, result->effect,
			       ant->effect);
	ksft_test_result(result->fail == FAIL_NONE, "%s %s\n", fs->name, ant->name);
}

/* The readers must find out what was planted, and what it is. */
static void test_plant(const struct antagonist *ant, const struct fs *fs)
{
	bool ok = run_child(ant, fs) && result->fail == ant->expect;

	if (!ok)
		print_text();
	ksft_test_result(ok, "self-check: plant %s\n", ant->name);
}

/* The file whose records test_checker() makes */
#define SELF_FILE	4711

/* An expectation of test_checker() */
static bool expect(int line, enum verdict want, const struct view *v, const struct record *r,
		   size_t off, size_t len)
{
	enum verdict verdict = check_piece(SELF_FILE, v, off, (const char *)r + off, len);

	if (verdict != want)
		ksft_print_msg("line %d: verdict %d, not %d\n", line, verdict, want);
	return verdict == want;
}

#define EXPECT(want, off, len)	(ok &= expect(__LINE__, want, &v, &r, off, len))

/* The checker on its own. */
static void test_checker(void)
{
	const __u32 file = SELF_FILE, rec = 42;
	/* Changes 1 to 5: update, update, zeroing, update, update. */
	static const enum kind kinds[] = { UPDATE, UPDATE, ZEROING, UPDATE, UPDATE };
	__u32 state[6] = {};
	struct view v = { .nr_src = 1, .src[0].rec = rec };
	struct record r, other;
	unsigned int i;
	bool ok = true;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		state[i + 1] = next_state(state[i], kinds[i]);

	/* Nobody is writing: just this generation. */
	v.src[0].lo = state[5];
	v.src[0].hi = state[5];
	encode(&r, file, rec, 5);
	EXPECT(GOOD, 0, REC);
	EXPECT(GOOD, 13, 29);
	for (i = 0; i < REC; i += 8)
		EXPECT(GOOD, i, 8);
	for (i = 0; i < REC * 8; i++) {
		((unsigned char *)&r)[i / 8] ^= 1u << i % 8;
		EXPECT(BAD, 0, REC);
		EXPECT(BAD, i / 64 * 8, 8);
		((unsigned char *)&r)[i / 8] ^= 1u << i % 8;
	}
	for (i = 0; i < REC; i += 8) {
		memcpy((char *)&r + i, SECRET, 8);
		EXPECT(BAD, 0, REC);
		EXPECT(BAD, i, 8);
		encode(&r, file, rec, 5);
	}
	encode(&r, file, rec, 4);
	EXPECT(BAD, 0, REC);
	encode(&r, file, rec, 6);
	EXPECT(BAD, 0, REC);
	encode(&r, file, rec + 1, 5);
	EXPECT(BAD, 0, REC);
	EXPECT(BAD, 8, 8);
	encode(&r, file + 1, rec, 5);
	EXPECT(BAD, 0, REC);
	memset(&r, 0, sizeof(r));
	EXPECT(BAD, 0, REC);
	EXPECT(BAD, 8, 8);

	/* A mix of two generations needs a writer. */
	encode(&r, file, rec, 5);
	encode(&other, file, rec, 4);
	memcpy((char *)&r + 32, (char *)&other + 32, 32);
	EXPECT(BAD, 0, REC);
	v.src[0].lo = state[4];
	EXPECT(TORN, 0, REC);
	EXPECT(GOOD, 0, 32);
	EXPECT(GOOD, 32, 32);
	/* But neither one with another record, nor with the secret or zeroes. */
	encode(&other, file, rec + 1, 4);
	memcpy((char *)&r + 32, (char *)&other + 32, 32);
	EXPECT(BAD, 0, REC);
	encode(&r, file, rec, 5);
	memcpy((char *)&r + 32, SECRET, 8);
	EXPECT(BAD, 0, REC);
	encode(&r, file, rec, 5);
	memset((char *)&r + 32, 0, 32);
	EXPECT(BAD, 0, REC);

	/* Zeroes are fine only where there is zeroing. */
	memset(&r, 0, sizeof(r));
	EXPECT(BAD, 0, REC);
	v.src[0].lo = state[3];
	EXPECT(ZEROES, 0, REC);
	v.src[0].lo = state[3];
	v.src[0].hi = state[3];
	EXPECT(ZEROES, 0, REC);
	encode(&r, file, rec, 3);
	EXPECT(BAD, 0, REC);
	encode(&r, file, rec, 2);
	EXPECT(BAD, 0, REC);
	v.src[0].lo = state[2];
	EXPECT(GOOD, 0, REC);
	memset((char *)&r + 48, 0, 16);
	EXPECT(TORN, 0, REC);

	ksft_test_result(ok, "self-check: checker\n");
}

static void add_dir(const char *dir)
{
	struct fs *fs = add_fs(dir);

	if (!realpath(dir, fs->dir))
		snprintf(fs->why, sizeof(fs->why), "%s", strerror(errno));
}

static __noreturn void show_usage(void)
{
	printf("usage: small_read_race [-n reads] [-s seconds] [-r readers] [-b bytes]\n"
	       "	[-S seed] [-d directory]... [-f file system] [-t antagonist]\n"
	       "Each test does that many reads (-n), or reads for that long (-s).  With -d,\n"
	       "files are created there, rather than in file systems mounted for the tests.\n"
	       "Environment: SMALL_READ_RACE_READS, SMALL_READ_RACE_SECONDS,\n"
	       "SMALL_READ_RACE_DIRS (separated by colons)\n");
	exit(KSFT_FAIL);
}

static void parse_options(int argc, char **argv)
{
	char *env, *dir, *save;
	int c;

	env = getenv("SMALL_READ_RACE_READS");
	if (env)
		opt.reads = strtoul(env, NULL, 0);
	env = getenv("SMALL_READ_RACE_SECONDS");
	if (env)
		opt.seconds = strtoul(env, NULL, 0);

	while ((c = getopt(argc, argv, "n:s:r:b:S:d:f:t:")) != -1) {
		switch (c) {
		case 'n':
			opt.reads = strtoul(optarg, NULL, 0);
			break;
		case 's':
			opt.seconds = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			opt.readers = strtoul(optarg, NULL, 0);
			break;
		case 'b':
			opt.len = strtoul(optarg, NULL, 0);
			if (!opt.len)
				show_usage();
			break;
		case 'S':
			opt.seed = strtoul(optarg, NULL, 0);
			break;
		case 'd':
			add_dir(optarg);
			break;
		case 'f':
			opt.fs = optarg;
			break;
		case 't':
			opt.antagonist = optarg;
			break;
		default:
			show_usage();
		}
	}
	if (optind != argc || !opt.readers || opt.readers > MAX_READERS || opt.len > MAX_LEN)
		show_usage();

	env = getenv("SMALL_READ_RACE_DIRS");
	if (env && !nr_filesystems) {
		env = strdup(env);
		for (dir = strtok_r(env, ":", &save); dir; dir = strtok_r(NULL, ":", &save))
			add_dir(dir);
		free(env);
	}
}

static bool selected(const struct fs *fs, const struct antagonist *ant)
{
	return (!opt.fs || !strcmp(opt.fs, fs->name)) &&
		(!opt.antagonist || !strcmp(opt.antagonist, ant->name));
}

int main(int argc, char **argv)
{
	const struct fs *fs, *first = NULL;
	unsigned int i, j, plan = 1;

	psz = sysconf(_SC_PAGESIZE);
	pmd_size = read_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
	parse_options(argc, argv);

	ksft_print_header();
	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (result == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	if (!nr_filesystems)
		mount_all();

	for (i = 0; i < nr_filesystems; i++) {
		fs = &filesystems[i];
		if (!fs->why[0] && !first && (!opt.fs || !strcmp(opt.fs, fs->name)))
			first = fs;
		for (j = 0; j < ARRAY_SIZE(antagonists); j++)
			plan += selected(fs, &antagonists[j]);
	}
	if (first)
		plan += ARRAY_SIZE(plants);
	ksft_set_plan(plan);

	test_checker();
	for (j = 0; first && j < ARRAY_SIZE(plants); j++)
		test_plant(&plants[j], first);
	for (i = 0; i < nr_filesystems; i++)
		for (j = 0; j < ARRAY_SIZE(antagonists); j++)
			if (selected(&filesystems[i], &antagonists[j]))
				test_race(&antagonists[j], &filesystems[i]);

	unmount_all();
	ksft_finished();
}
