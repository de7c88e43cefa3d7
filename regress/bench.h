/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a benchmark needs besides what it measures: strict option parsing,
 * pinning, waiting for others, marks in the kernel's trace, a log-linear
 * latency histogram, and one-line JSON output.
 *
 * Include this before any other header: it asks for the same integer types
 * on every architecture, so that "%llu" is right for __u64 everywhere.
 */
#ifndef REGRESS_BENCH_H
#define REGRESS_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef __SANE_USERSPACE_TYPES__
#define __SANE_USERSPACE_TYPES__
#endif

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/types.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "marks.h"

#define BENCH_OK	0
#define BENCH_FAIL	1	/* a system call failed, or a check did */
#define BENCH_USAGE	2
#define BENCH_SKIP	4	/* KSFT_SKIP: the kernel or a privilege is lacking */

#define BENCH_NSEC	1000000000ULL
#define BENCH_LIST_MAX	32

#ifndef __printf
#define __printf(a, b)	__attribute__((format(printf, a, b)))
#endif

#define BENCH_ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- leaving ---- */

static const char *bench_name = "bench";

/*
 * The process that has something to undo when it leaves, by atexit(); 0 if
 * there is none. All others leave by _exit(): they may be children that have
 * a copy of the buffers of stdio, or share them, or one of several threads.
 */
static pid_t bench_main_pid;
static unsigned int bench_leaving;

/* Print one sentence (and the error, if any) to stderr and leave */
static inline noreturn __printf(3, 4)
void bench_leave(int status, int err, const char *fmt, ...)
{
	char msg[2 * PATH_MAX];
	va_list args;

	/* One thread has the last word; let any other wait for it to leave */
	if (__atomic_exchange_n(&bench_leaving, 1, __ATOMIC_ACQ_REL))
		for (;;)
			pause();
	va_start(args, fmt);
	vsnprintf(msg, sizeof(msg), fmt, args);
	va_end(args);
	/* At once: others may write there, too */
	fprintf(stderr, "%s: %s%s%s%s\n", bench_name, msg, err ? ": " : "",
		err ? strerror(err) : "", status == BENCH_USAGE ? " (see --help)" : "");
	if (getpid() != bench_main_pid)
		_exit(status);
	exit(status);
}

#define bench_die(...)		bench_leave(BENCH_FAIL, 0, __VA_ARGS__)
#define bench_die_errno(...)	bench_leave(BENCH_FAIL, errno, __VA_ARGS__)
#define bench_usage(...)	bench_leave(BENCH_USAGE, 0, __VA_ARGS__)
#define bench_skip(...)		bench_leave(BENCH_SKIP, 0, __VA_ARGS__)

/* Results that cannot be delivered are an error too */
static inline int bench_finish(void)
{
	if (fflush(stdout) || ferror(stdout))
		bench_die_errno("cannot write the results");
	return BENCH_OK;
}

/* For a child: it is not to outlive its parent, not even by chance */
static inline void bench_die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(BENCH_FAIL);
}

/* ---- small things ---- */

static inline __u64 bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * BENCH_NSEC + ts.tv_nsec;
}

/* Zeroed pages that come when they are touched; see bench_map() */
static inline void *bench_map_lazily(size_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED)
		bench_die_errno("cannot map %zu bytes", size);
	return p;
}

/*
 * Zeroed pages, present from the start. @flags: MAP_SHARED, with processes
 * forked later, or MAP_PRIVATE.
 */
static inline void *bench_map(size_t size, int flags)
{
	return bench_map_lazily(size, flags | MAP_POPULATE);
}

/* Another open file for what an O_PATH descriptor keeps alive */
static inline int bench_reopen(int path_fd, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		bench_die_errno("cannot open a file again by %s", path);
	return fd;
}

/* ---- options ---- */

/* @suffix: it may end in K, M or G */
static inline __u64 bench_parse_u64(const char *opt, const char *str, __u64 min,
				    __u64 max, bool suffix)
{
	unsigned int shift = 0;
	const char *p = str;
	__u64 val = 0;

	if (*p < '0' || *p > '9')
		bench_usage("%s wants a number, not '%s'", opt, str);
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(val, 10, &val) ||
		    __builtin_add_overflow(val, *p - '0', &val))
			bench_usage("%s: '%s' is too large", opt, str);
	if (suffix && *p) {
		switch (*p) {
		case 'k':
		case 'K':
			shift = 10;
			break;
		case 'm':
		case 'M':
			shift = 20;
			break;
		case 'g':
		case 'G':
			shift = 30;
			break;
		}
		if (shift)
			p++;
	}
	if (*p)
		bench_usage("%s: trailing garbage in '%s'", opt, str);
	if (__builtin_mul_overflow(val, 1ULL << shift, &val))
		bench_usage("%s: '%s' is too large", opt, str);
	if (val < min || val > max)
		bench_usage("%s must be between %llu and %llu, not '%s'", opt, min, max, str);
	return val;
}

static inline double bench_parse_seconds(const char *opt, const char *str, double min)
{
	char *end;
	double val;

	/* strtod() alone would take "inf", "nan", hexadecimal and blanks */
	if (!*str || strspn(str, "0123456789.") != strlen(str))
		bench_usage("%s wants a number of seconds, not '%s'", opt, str);
	val = strtod(str, &end);
	if (end == str || *end)
		bench_usage("%s wants a number of seconds, not '%s'", opt, str);
	if (val < min || val > 86400)
		bench_usage("%s must be between %g and 86400, not '%s'", opt, min, str);
	return val;
}

/* Which of these names is it? The last one is NULL */
static inline unsigned int bench_parse_name(const char *opt, const char *str,
					    const char *const *names)
{
	unsigned int i;

	for (i = 0; names[i] && strcmp(names[i], str); i++)
		;
	if (!names[i])
		bench_usage("%s: there is no '%s'", opt, str);
	return i;
}

struct bench_list {
	unsigned int nr;
	__u64 val[BENCH_LIST_MAX];
};

/* What an item of a list may be: a number, or the place of one of the names */
struct bench_items {
	__u64 min;
	__u64 max;
	bool suffix;
	const char *const *names;
};

static inline void bench_parse_items(struct bench_list *list, const char *opt, const char *str,
				     const struct bench_items *items)
{
	const char *p = str;
	char item[32];
	size_t len;

	list->nr = 0;
	for (;;) {
		len = strcspn(p, ",");
		if (!len || len >= sizeof(item))
			bench_usage("%s wants a comma separated list, not '%s'", opt, str);
		if (list->nr == BENCH_LIST_MAX)
			bench_usage("%s takes at most %d values", opt, BENCH_LIST_MAX);
		memcpy(item, p, len);
		item[len] = '\0';
		if (items->names)
			list->val[list->nr] = bench_parse_name(opt, item, items->names);
		else
			list->val[list->nr] = bench_parse_u64(opt, item, items->min, items->max,
							      items->suffix);
		list->nr++;
		p += len;
		if (!*p)
			return;
		p++;
	}
}

static inline void bench_parse_list(struct bench_list *list, const char *opt, const char *str,
				    __u64 min, __u64 max, bool suffix)
{
	const struct bench_items items = { .min = min, .max = max, .suffix = suffix };

	bench_parse_items(list, opt, str, &items);
}

static inline void bench_parse_names(struct bench_list *list, const char *opt, const char *str,
				     const char *const *names)
{
	const struct bench_items items = { .names = names };

	bench_parse_items(list, opt, str, &items);
}

/* Above what can be a short option */
#define BENCH_OPT_HELP	256
#define BENCH_OPT_BASE	257	/* the first one of the program itself */

/*
 * The next option, or -1 after the last one. Deals with -h, --help and every
 * usage error itself.
 */
static inline int bench_getopt(int argc, char **argv, const char *shorts,
			       const struct option *options, const char *help)
{
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, shorts, options, NULL);
	switch (c) {
	case -1:
		if (optind < argc)
			bench_usage("unexpected argument '%s'", argv[optind]);
		return -1;
	case ':':
		bench_usage("option '%s' needs a value", argv[optind - 1]);
	case '?':
		if (optopt >= BENCH_OPT_HELP)
			bench_usage("option '%s' takes no value", argv[optind - 1]);
		if (optopt)
			bench_usage("unknown option '-%c'", optopt);
		bench_usage("unknown or ambiguous option '%s'", argv[optind - 1]);
	case 'h':
	case BENCH_OPT_HELP:
		fputs(help, stdout);
		exit(bench_finish());
	}
	return c;
}

/* ---- marks in the kernel's trace ---- */

static int bench_marker_fd = -1;

static inline void bench_marker_open(void)
{
	static const char *const path[] = {
		"/sys/kernel/tracing/trace_marker",
		"/sys/kernel/debug/tracing/trace_marker",
	};
	unsigned int i;

	for (i = 0; i < BENCH_ARRAY_SIZE(path) && bench_marker_fd < 0; i++)
		bench_marker_fd = open(path[i], O_WRONLY | O_CLOEXEC);
	if (bench_marker_fd < 0)
		fprintf(stderr, "%s: no marks: cannot open %s: %s\n", bench_name, path[0],
			strerror(errno));
}

/* A line after the name of the benchmark, if bench_marker_open() has opened it */
static inline __printf(1, 2)
void bench_mark(const char *fmt, ...)
{
	char msg[192];
	struct iovec iov = { .iov_base = msg };
	va_list args;

	if (bench_marker_fd < 0)
		return;
	iov.iov_len = snprintf(msg, sizeof(msg), "%s: ", bench_name);
	va_start(args, fmt);
	iov.iov_len += vsnprintf(msg + iov.iov_len, sizeof(msg) - iov.iov_len, fmt, args);
	va_end(args);
	if (iov.iov_len >= sizeof(msg))
		bench_die("a mark is too long");
	/*
	 * Not by write(), which may be what is counted between the marks.
	 * Tracing may have been turned off meanwhile: not our business.
	 */
	if (writev(bench_marker_fd, &iov, 1) < 0)
		return;
}

/* ---- pinning ---- */

/* The CPUs this process may run on; returns how many */
static inline unsigned int bench_cpus(int **cpus)
{
	static unsigned int nr;
	static int *list;
	unsigned int max, i;
	cpu_set_t *set;
	size_t size;

	/* The kernel refuses a mask that is smaller than its own */
	for (max = 1024; !list; max *= 2) {
		set = CPU_ALLOC(max);
		size = CPU_ALLOC_SIZE(max);
		if (!set)
			bench_die_errno("cannot allocate a CPU mask");
		if (!sched_getaffinity(0, size, set)) {
			list = calloc(CPU_COUNT_S(size, set), sizeof(*list));
			if (!list)
				bench_die_errno("cannot allocate the list of CPUs");
			for (i = 0; i < max; i++)
				if (CPU_ISSET_S(i, size, set))
					list[nr++] = i;
		} else if (errno != EINVAL || max > 1 << 20) {
			bench_die_errno("sched_getaffinity");
		}
		CPU_FREE(set);
	}
	if (cpus)
		*cpus = list;
	return nr;
}

/* Pin the calling thread to the nth CPU of the allowed set, modulo its size */
static inline void bench_pin(unsigned int nth)
{
	unsigned int nr;
	cpu_set_t *set;
	size_t size;
	int *cpus;

	nr = bench_cpus(&cpus);
	size = CPU_ALLOC_SIZE(cpus[nr - 1] + 1);
	set = CPU_ALLOC(cpus[nr - 1] + 1);
	if (!set)
		bench_die_errno("cannot allocate a CPU mask");
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpus[nth % nr], size, set);
	if (sched_setaffinity(0, size, set))
		bench_die_errno("cannot pin a worker to CPU %d", cpus[nth % nr]);
	CPU_FREE(set);
}

/* ---- waiting for others ---- */

/* Words are in memory that all of them share: only 32 bits are atomic everywhere */
static inline void bench_futex(unsigned int *addr, int op, unsigned int val)
{
	/* Never with a timeout, so the flavour of timespec does not matter */
#ifdef SYS_futex
	syscall(SYS_futex, addr, op, val, NULL, NULL, 0);
#else
	syscall(SYS_futex_time64, addr, op, val, NULL, NULL, 0);
#endif
}

/* @waiters: may anybody be waiting? Else no system call looks at the page */
static inline void bench_event_set(unsigned int *event, bool waiters)
{
	__atomic_store_n(event, 1, __ATOMIC_RELEASE);
	if (waiters)
		bench_futex(event, FUTEX_WAKE, INT_MAX);
}

static inline void bench_event_wait(unsigned int *event)
{
	while (!__atomic_load_n(event, __ATOMIC_ACQUIRE))
		bench_futex(event, FUTEX_WAIT, 0);
}

/* The task that arrives last, of @nr, is told so */
static inline bool bench_arrive(unsigned int *arrived, unsigned int nr)
{
	return __atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL) == nr;
}

/* ---- latency histogram ---- */

/*
 * Log-linear: every power of two is divided into 64 buckets, so that the
 * bucket of a value is at most 1/64 of it wide. Values below 128 have a
 * bucket of their own.
 */
#define BENCH_SUB_BITS	6
#define BENCH_SUB	64U
#define BENCH_BUCKETS	((64 - BENCH_SUB_BITS + 1) * BENCH_SUB)

struct bench_hist {
	__u64 count;
	__u64 sum;
	__u64 min;
	__u64 max;
	__u64 bucket[BENCH_BUCKETS];
};

static inline unsigned int bench_hist_index(__u64 val)
{
	unsigned int shift;

	if (val < BENCH_SUB)
		return val;
	shift = 63 - __builtin_clzll(val) - BENCH_SUB_BITS;
	return shift * BENCH_SUB + (unsigned int)(val >> shift);
}

static inline void bench_hist_add(struct bench_hist *h, __u64 val)
{
	h->bucket[bench_hist_index(val)]++;
	h->sum += val;
	if (!h->count || val < h->min)
		h->min = val;
	if (val > h->max)
		h->max = val;
	h->count++;
}

static inline void bench_hist_merge(struct bench_hist *to, const struct bench_hist *from)
{
	unsigned int i;

	if (!from->count)
		return;
	for (i = 0; i < BENCH_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
	if (!to->count || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->sum += from->sum;
}

static inline double bench_hist_mean(const struct bench_hist *h)
{
	return h->count ? (double)h->sum / h->count : 0;
}

/* Values are taken to be spread evenly over the bucket the rank falls into */
static inline double bench_hist_percentile(const struct bench_hist *h, double percent)
{
	double rank = percent / 100 * h->count;
	double low, width, val;
	unsigned int i, shift;
	__u64 seen = 0;

	for (i = 0; i < BENCH_BUCKETS; i++) {
		if (h->bucket[i] && seen + h->bucket[i] >= rank)
			break;
		seen += h->bucket[i];
	}
	if (!h->count || i == BENCH_BUCKETS)
		return h->max;
	shift = i < 2 * BENCH_SUB ? 0 : i / BENCH_SUB - 1;
	low = (double)((__u64)(i - shift * BENCH_SUB) << shift);
	/* What is recorded is whole nanoseconds: [low, low + width - 1] */
	width = (double)((1ULL << shift) - 1);
	val = low + width * (rank - seen) / h->bucket[i];
	if (val < h->min)
		return h->min;
	return val > h->max ? h->max : val;
}

/* ---- JSON: one flat object per line ---- */

static bool bench_json_first;

static inline void bench_json_key(const char *key)
{
	printf("%s\"%s\":", bench_json_first ? "{" : ",", key);
	bench_json_first = false;
}

static inline void bench_json_begin(const char *bench)
{
	bench_json_first = true;
	bench_json_key("bench");
	printf("\"%s\"", bench);
}

/* For our own words only: nothing is escaped. NULL gives null */
static inline void bench_json_str(const char *key, const char *val)
{
	bench_json_key(key);
	if (val)
		printf("\"%s\"", val);
	else
		printf("null");
}

static inline void bench_json_bool(const char *key, bool val)
{
	bench_json_key(key);
	printf("%s", val ? "true" : "false");
}

static inline void bench_json_u64(const char *key, __u64 val)
{
	bench_json_key(key);
	printf("%llu", val);
}

/* For limits where zero means that there is none */
static inline void bench_json_u64_or_null(const char *key, __u64 val)
{
	if (val)
		bench_json_u64(key, val);
	else
		bench_json_str(key, NULL);
}

static inline void bench_json_double(const char *key, double val, int digits)
{
	bench_json_key(key);
	printf("%.*f", digits, val);
}

static inline void bench_json_double_or_null(const char *key, double val, int digits)
{
	if (val > 0)
		bench_json_double(key, val, digits);
	else
		bench_json_str(key, NULL);
}

static inline void bench_json_end(void)
{
	printf("}\n");
	fflush(stdout);
}

#endif /* REGRESS_BENCH_H */
