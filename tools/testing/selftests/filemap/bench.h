/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a benchmark needs besides what it measures: strict option parsing,
 * pinning, a log-linear latency histogram, and one-line JSON output.
 *
 * Include this before any other header: it asks for the same integer types
 * on every architecture, so that "%llu" is right for __u64 everywhere.
 */
#ifndef SELFTESTS_FILEMAP_BENCH_H
#define SELFTESTS_FILEMAP_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef __SANE_USERSPACE_TYPES__
#define __SANE_USERSPACE_TYPES__
#endif

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <linux/types.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BENCH_OK	0
#define BENCH_FAIL	1	/* a system call failed, or a check did */
#define BENCH_USAGE	2
#define BENCH_SKIP	4	/* KSFT_SKIP: the kernel or a privilege is lacking */

#define BENCH_NSEC	1000000000ULL
#define BENCH_LIST_MAX	32

#define BENCH_ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- leaving ---- */

static const char *bench_name = "bench";
static unsigned int bench_leaving;

/* One thread has the last word; let any other wait for it to leave */
static inline void bench_leave_begin(void)
{
	if (__atomic_exchange_n(&bench_leaving, 1, __ATOMIC_ACQ_REL))
		for (;;)
			pause();
}

/*
 * Print one sentence (and the error, if any) to stderr and leave. By _exit(),
 * as this may be a child with a copy of the buffers of stdio, or one of
 * several threads.
 */
#define bench_leave(status, err, ...)					\
do {									\
	const int bench_status = (status), bench_err = (err);		\
									\
	bench_leave_begin();						\
	fprintf(stderr, "%s: ", bench_name);				\
	fprintf(stderr, __VA_ARGS__);					\
	fprintf(stderr, "%s%s%s\n", bench_err ? ": " : "",		\
		bench_err ? strerror(bench_err) : "",			\
		bench_status == BENCH_USAGE ? " (see --help)" : "");	\
	_exit(bench_status);						\
} while (0)

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

/* ---- small things ---- */

static inline __u64 bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * BENCH_NSEC + ts.tv_nsec;
}

/* Zeroed pages, present from the start, shared with processes forked later or not */
static inline void *bench_map(size_t size, bool shared)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_ANONYMOUS | MAP_POPULATE | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);

	if (p == MAP_FAILED)
		bench_die_errno("cannot map %zu bytes", size);
	return p;
}

/* ---- options ---- */

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

struct bench_list {
	unsigned int nr;
	__u64 val[BENCH_LIST_MAX];
};

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

/* Items are sizes in this range or, if there are names, places in these */
static inline void bench_parse_list(struct bench_list *list, const char *opt, const char *str,
				    __u64 min, __u64 max, const char *const *names)
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
		list->val[list->nr] = names ? bench_parse_name(opt, item, names) :
					      bench_parse_u64(opt, item, min, max, true);
		list->nr++;
		p += len;
		if (!*p)
			return;
		p++;
	}
}

#define BENCH_OPT_BASE	256	/* above what can be a short option */

/*
 * The next option, or -1 after the last one. Deals with -h and with every
 * usage error itself.
 */
static inline int bench_getopt(int argc, char **argv, const struct option *options,
			       const char *help)
{
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, ":h", options, NULL);
	switch (c) {
	case -1:
		if (optind < argc)
			bench_usage("unexpected argument '%s'", argv[optind]);
		return -1;
	case ':':
		bench_usage("option '%s' needs a value", argv[optind - 1]);
	case '?':
		if (optopt >= BENCH_OPT_BASE)
			bench_usage("option '%s' takes no value", argv[optind - 1]);
		if (optopt)
			bench_usage("unknown option '-%c'", optopt);
		bench_usage("unknown or ambiguous option '%s'", argv[optind - 1]);
	case 'h':
		fputs(help, stdout);
		exit(bench_finish());
	}
	return c;
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

#endif /* SELFTESTS_FILEMAP_BENCH_H */
