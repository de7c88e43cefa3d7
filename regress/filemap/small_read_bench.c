// SPDX-License-Identifier: GPL-2.0
/*
 * Small buffered reads of a cached file, one by one and marked, for the tools
 * that count what each costs (--count), and (--delete) the same of taking
 * pages out of the cache. Time is for the kernel's pread_bench.
 *
 * Every byte is checked, outside of what is counted. Wrong data, a read of a
 * wrong length, or pages that are where they should not be are an error.
 */
#include "bench.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>

#define MAX_SIZE		65536
#define MAX_FILE_SIZE		(1024 * 1024 * 1024ULL)
#define WRITE_SIZE		(1024 * 1024U)

/* How often to read all pages of a file, so that it is as hot as it gets */
#define HEAT_PASSES		8

/* How often to try to drop a page that somebody may just be looking at */
#define DROP_TRIES		100

enum op { OP_PREAD, OP_READ };
enum offsets { OFFSETS_HOT, OFFSETS_RANDOM, OFFSETS_SEQUENTIAL, OFFSETS_END, OFFSETS_FIRST,
	       OFFSETS_MISS };
enum buffer { BUFFER_THERE, BUFFER_HALF, BUFFER_GONE };
enum delete { DELETE_NONE, DELETE_TRUNCATE, DELETE_DONTNEED };

static const char *const op_names[] = { "pread", "read", NULL };
static const char *const offsets_names[] = {
	"hot", "random", "sequential", "end", "first", "miss", NULL
};
static const char *const buffer_names[] = { "there", "half", "gone", NULL };
static const char *const delete_names[] = { "none", "truncate", "dontneed", NULL };

static struct {
	struct bench_list sizes;
	struct bench_list file_sizes;
	struct bench_list ops;
	const char *dir;
	unsigned int warmup;
	unsigned int heat;
	unsigned int write_size;
	enum offsets offsets;
	enum buffer buffer;
	enum delete delete;
	__u64 count;
	bool corrupt;
	bool everywhere;
	bool busy;
	bool large;
	bool json;
	bool marker;
} cfg = {
	.sizes = { 6, { 1, 64, 256, 1024, 4096, 65536 } },
	.file_sizes = { 2, { 4096, 1 << 20 } },
	.ops = { 1, { OP_PREAD } },
	.dir = "/tmp",
	.count = 1000,
	.warmup = 1000,
	.heat = HEAT_PASSES,
	.write_size = WRITE_SIZE,
};

static size_t page_size;

static void mark(const char *what, size_t size, __u64 file_size, const char *op)
{
	bench_mark("%s size=%zu file_size=%llu op=%s offsets=%s\n", what, size, file_size, op,
		   offsets_names[cfg.offsets]);
}

static void report(size_t size, __u64 file_size, const char *op, __u64 ops)
{
	if (!cfg.json) {
		printf("%llu of %s, %zu bytes, file of %llu, %s\n", ops, op, size, file_size,
		       offsets_names[cfg.offsets]);
		return;
	}
	bench_json_begin("small_read_bench");
	bench_json_u64("size", size);
	bench_json_u64("file_size", file_size);
	bench_json_str("op", op);
	bench_json_str("offsets", offsets_names[cfg.offsets]);
	bench_json_str("buffer", buffer_names[cfg.buffer]);
	bench_json_u64("heat", cfg.heat);
	bench_json_bool("everywhere", cfg.everywhere);
	bench_json_bool("busy", cfg.busy);
	bench_json_bool("large", cfg.large);
	bench_json_u64("ops", ops);
	bench_json_u64("count", cfg.count);
	bench_json_end();
}

/* ---- files ---- */

/* What is at a position: neither the next byte nor the next page is alike */
static inline unsigned char pattern(__u64 pos)
{
	return (pos * 0x9e3779b97f4a7c15ULL) >> 56;
}

static void write_at(int fd, const void *buf, size_t len, __u64 pos)
{
	ssize_t ret = pwrite(fd, buf, len, pos);

	if (ret < 0)
		bench_die_errno("cannot write to a file in %s", cfg.dir);
	if ((size_t)ret != len)
		bench_die("%zd bytes were written instead of %zu", ret, len);
}

/* A new file without a name */
static int file_create(void)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/small_read_XXXXXX", cfg.dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0 || unlink(path))
		bench_die_errno("cannot create a file in %s", cfg.dir);
	return fd;
}

/*
 * A read of a hot page leaves the page's state as it is. A page gets hot by
 * several reads; some of what they do waits in a batch of this CPU, which
 * MADV_COLD, of any page, drains.
 */
static void file_heat(int fd, __u64 size)
{
	void *map = bench_map(page_size, MAP_PRIVATE);
	unsigned int i;
	__u64 pos;
	char byte;

	for (i = 0; i < cfg.heat; i++) {
		for (pos = 0; pos < size; pos += page_size)
			if (pread(fd, &byte, 1, pos) != 1)
				bench_die_errno("cannot read a file in %s", cfg.dir);
		if (madvise(map, page_size, MADV_COLD))
			bench_die_errno("MADV_COLD");
	}
	munmap(map, page_size);
}

static int advise(int fd, __u64 pos, __u64 len, int advice)
{
	int err = posix_fadvise(fd, pos, len, advice);

	if (err)
		bench_leave(BENCH_FAIL, err, "posix_fadvise");
	return fd;
}

/* How many pages of a range are in the page cache? */
static size_t resident(int fd, __u64 pos, size_t len)
{
	size_t i, pages = (len + page_size - 1) / page_size, nr = 0;
	unsigned char *vec = bench_map(pages, MAP_PRIVATE);
	void *map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, pos);

	if (map == MAP_FAILED || mincore(map, len, vec))
		bench_die_errno("cannot look at the cache of a file in %s", cfg.dir);
	for (i = 0; i < pages; i++)
		nr += vec[i] & 1;
	munmap(map, len);
	munmap(vec, pages);
	return nr;
}

/* Advice is not taken for a page that somebody is just looking at. */
static void drop(int fd, __u64 pos, size_t len)
{
	unsigned int tries;

	for (tries = 0; tries < DROP_TRIES; tries++) {
		advise(fd, pos, len, POSIX_FADV_DONTNEED);
		if (!resident(fd, pos, len))
			return;
	}
	bench_skip("the file system of %s does not let go of cached pages", cfg.dir);
}

/* One of @file_size bytes, of which one is damaged in each block of @len, if so asked */
static int file_make(__u64 file_size, size_t len)
{
	unsigned char *buf = bench_map(cfg.write_size, MAP_PRIVATE);
	__u64 pos, part, i;
	int fd, own;

	fd = file_create();
	for (pos = 0; pos < file_size; pos += part) {
		part = cfg.write_size < file_size - pos ? cfg.write_size : file_size - pos;
		for (i = 0; i < part; i++)
			buf[i] = pattern(pos + i) ^
				 (cfg.corrupt && len && (pos + i) % len == len / 2);
		write_at(fd, buf, part, pos);
	}
	/* Writing back is not to happen while it is read. */
	if (fsync(fd))
		bench_die_errno("cannot write back a file in %s", cfg.dir);
	own = bench_reopen(fd, O_RDONLY);
	close(fd);
	/* A folio that has both what is to stay and what is to go would stay. */
	if (cfg.offsets == OFFSETS_MISS)
		advise(advise(own, 0, 0, POSIX_FADV_DONTNEED), 0, 0, POSIX_FADV_RANDOM);
	else
		file_heat(own, file_size);
	munmap(buf, cfg.write_size);
	return own;
}

/* ---- reading ---- */

struct reader {
	int fd;
	enum op op;
	size_t size;		/* what is asked for */
	size_t len;		/* what there is */
	__u64 file_size;
	__u64 next;		/* sequential, miss: block number */
	__u64 file_pos;		/* of the file descriptor */
	__u64 random;
	unsigned char *buf;
	unsigned char *gone;	/* from here on it is not there before a read */
	size_t gone_size;
};

/* What is not there before a read begins with a page. */
static void reader_buffer(struct reader *r)
{
	size_t there = r->size, room;

	if (cfg.buffer == BUFFER_HALF)
		there = r->size / 2;
	else if (cfg.buffer == BUFFER_GONE)
		there = 0;
	room = (there + page_size - 1) / page_size * page_size;
	r->gone_size = r->size - there;
	r->gone = (unsigned char *)bench_map(room + r->gone_size, MAP_PRIVATE) + room;
	r->buf = r->gone - there;
}

static __u64 next_pos(struct reader *r)
{
	__u64 blocks = r->len ? r->file_size / r->len : 0, pos;

	switch (cfg.offsets) {
	case OFFSETS_END:
		return r->file_size;
	case OFFSETS_RANDOM:
		r->random ^= r->random << 13;
		r->random ^= r->random >> 7;
		r->random ^= r->random << 17;
		return r->random % blocks * r->len;
	case OFFSETS_SEQUENTIAL:
		return r->next++ % blocks * r->len;
	case OFFSETS_MISS:
		pos = r->next++ % (r->file_size / page_size) * page_size;
		drop(r->fd, pos, page_size);
		return pos;
	case OFFSETS_FIRST:
		/* A file that was just written, so that it is cached, and nobody has read */
		close(r->fd);
		r->fd = file_make(r->file_size, r->len);
		r->file_pos = 0;
		return 0;
	default:
		return 0;
	}
}

static void read_one(struct reader *r)
{
	__u64 pos = next_pos(r);
	size_t len = r->len, i;
	ssize_t ret;

	/* Spoil the buffer, so that what is there cannot pass for good. */
	for (i = 0; r->buf + i < r->gone; i++)
		r->buf[i] = i < len ? ~pattern(pos + i) : 0xff;
	if (r->gone_size && madvise(r->gone, r->gone_size, MADV_DONTNEED))
		bench_die_errno("MADV_DONTNEED");
	if (r->op == OP_READ && r->file_pos != pos && lseek(r->fd, pos, SEEK_SET) < 0)
		bench_die_errno("lseek");
	MARK(MARK_OP);
	if (r->op == OP_READ)
		ret = read(r->fd, r->buf, r->size);
	else
		ret = pread(r->fd, r->buf, r->size, pos);
	MARK(MARK_END);
	if (ret < 0)
		bench_die_errno("reading %zu bytes at %llu failed", r->size, pos);
	if ((size_t)ret != len)
		bench_die("reading %zu bytes at %llu gave %zd instead of %zu", r->size, pos, ret,
			  len);
	for (i = 0; i < len; i++)
		if (r->buf[i] != pattern(pos + i))
			bench_die("reading %zu bytes at %llu: byte %zu is %#x instead of %#x",
				  r->size, pos, i, r->buf[i], pattern(pos + i));
	/* Nobody has any business behind what was read, which comes as zeroes or not. */
	for (; i < r->size; i++)
		if (r->buf[i] != (r->buf + i < r->gone ? 0xff : 0))
			bench_die("reading %zu bytes at %llu changed byte %zu", r->size, pos, i);
	r->file_pos = pos + ret;
}

static void run_reads(enum op op, size_t size, __u64 file_size)
{
	struct reader r = {
		.op = op, .size = size, .len = size < file_size ? size : file_size,
		.file_size = file_size, .random = 0x2545f4914f6cdd1dULL,
	};
	__u64 i;

	if (cfg.offsets == OFFSETS_MISS && (size > page_size || file_size < 2 * page_size))
		bench_usage("reads of up to a page miss, of a file that is larger than that");
	if (cfg.offsets == OFFSETS_END)
		r.len = 0;
	r.fd = file_make(file_size, r.len);
	reader_buffer(&r);
	for (i = 0; i < cfg.warmup; i++)
		read_one(&r);
	mark("begin", size, file_size, op_names[op]);
	MARK(MARK_OPEN);
	for (i = 0; i < cfg.count; i++)
		read_one(&r);
	MARK(MARK_CLOSE);
	mark("end", size, file_size, op_names[op]);
	report(size, file_size, op_names[op], cfg.count);
	close(r.fd);
}

/* ---- taking pages out of the cache ---- */

/*
 * The file is all hole, as for the file system to allocate and free blocks is no
 * matter of the page cache. Where reading a hole leaves no page in the cache
 * (tmpfs), pages are written. Page by page and without readahead, so that there
 * are as many folios as pages.
 */
static void victim_fill(int fd, __u64 file_size, bool write)
{
	size_t part = cfg.large ? MAX_SIZE : page_size;
	static unsigned char buf[MAX_SIZE], want[MAX_SIZE];
	__u64 pos;

	for (pos = 0; pos < file_size; pos += part) {
		if (pread(fd, buf, part, pos) != (ssize_t)part)
			bench_die_errno("cannot read a file in %s", cfg.dir);
		/* All that was in the file is gone, so it reads as zeroes. */
		if (memcmp(buf, want, part))
			bench_die("there is data at %llu, which was deleted", pos);
	}
	memset(buf, 0xa5, page_size);
	for (pos = 0; write && pos < file_size; pos += page_size)
		write_at(fd, buf, page_size, pos);
	file_heat(fd, file_size);
}

static void delete_pages(int fd, __u64 file_size, bool counted)
{
	const char *op = delete_names[cfg.delete];
	size_t pages = file_size / page_size, left = resident(fd, 0, file_size);
	bool forget = counted && cfg.corrupt;

	if (left != pages)
		bench_die("%zu pages are cached instead of %zu", left, pages);
	if (counted)
		mark("begin", page_size, file_size, op);
	MARK(MARK_OP);
	if (forget)
		;
	else if (cfg.delete == DELETE_DONTNEED)
		advise(fd, 0, 0, POSIX_FADV_DONTNEED);
	else if (ftruncate(fd, 0))
		bench_die_errno("cannot truncate a file in %s", cfg.dir);
	MARK(MARK_END);
	if (counted)
		mark("end", page_size, file_size, op);
	/* The cache can only be looked at below the size. */
	if (ftruncate(fd, file_size))
		bench_die_errno("cannot set the size of a file in %s", cfg.dir);
	left = resident(fd, 0, file_size);
	if (left && (forget || cfg.delete == DELETE_TRUNCATE))
		bench_die("%zu pages are cached that were deleted", left);
	if (left)
		drop(fd, 0, file_size);
}

static unsigned int busy_stop;

/* Read a page of a file of its own on the CPU that @arg tells, over and over. */
static void *busy_reader(void *arg)
{
	char page[page_size];
	int fd;

	bench_pin((uintptr_t)arg);
	fd = file_make(page_size, 0);
	while (!__atomic_load_n(&busy_stop, __ATOMIC_RELAXED))
		if (pread(fd, page, page_size, 0) != (ssize_t)page_size)
			bench_die_errno("cannot read a file in %s", cfg.dir);
	close(fd);
	return NULL;
}

/* Keep all CPUs but the first reading, or stop those that @threads tells. */
static void busy_readers(pthread_t *threads, bool start)
{
	unsigned int i, nr = bench_cpus(NULL);

	__atomic_store_n(&busy_stop, !start, __ATOMIC_RELAXED);
	for (i = 1; i < nr; i++)
		if (start ? pthread_create(&threads[i], NULL, busy_reader, (void *)(uintptr_t)i) :
			    pthread_join(threads[i], NULL))
			bench_die("cannot start or stop a reader");
}

static void run_delete(__u64 file_size)
{
	pthread_t threads[CPU_SETSIZE];
	unsigned int cpu, cpus = bench_cpus(NULL);
	int fd = file_create();
	bool write = false;
	char byte;
	__u64 i;

	if (file_size % page_size)
		bench_usage("--delete takes files of whole pages");
	if (cfg.large && file_size % MAX_SIZE)
		bench_usage("--large takes files of multiples of 64K");
	if (ftruncate(fd, file_size))
		bench_die_errno("cannot set the size of a file in %s", cfg.dir);
	advise(fd, 0, 0, POSIX_FADV_RANDOM);
	victim_fill(fd, file_size, false);
	if (resident(fd, 0, file_size) != file_size / page_size) {
		write = true;
		victim_fill(fd, file_size, true);
	}
	/* The kernel may remember of a file which CPUs have read it. */
	for (cpu = 0; cfg.everywhere && cpu < cpus; cpu++) {
		bench_pin(cpu);
		if (pread(fd, &byte, 1, 0) != 1)
			bench_die_errno("cannot read a file in %s", cfg.dir);
	}
	bench_pin(0);
	if (cfg.busy)
		busy_readers(threads, true);
	for (i = 0; i < cfg.warmup; i += file_size / page_size) {
		delete_pages(fd, file_size, false);
		victim_fill(fd, file_size, write);
	}
	MARK(MARK_OPEN);
	for (i = 0; i < cfg.count; i++) {
		delete_pages(fd, file_size, true);
		victim_fill(fd, file_size, write);
	}
	MARK(MARK_CLOSE);
	if (cfg.busy)
		busy_readers(threads, false);
	report(page_size, file_size, delete_names[cfg.delete],
	       cfg.count * (file_size / page_size));
	close(fd);
}

static const char help_text[] =
"Usage: small_read_bench [OPTION]...\n"
"Read cached files, or take pages out of the cache, and mark each operation.\n"
"\n"
"A LIST is separated by commas; sizes may end in K, M or G. Every combination of file\n"
"size, operation and size is run, one after the other.\n"
"\n"
"      --sizes LIST      bytes to ask for, 1 to 64K (default 1,64,256,1K,4K,64K). From\n"
"                        a file that is smaller, all of it is read\n"
"      --file-size LIST  sizes of the files, up to 1G (default 4K,1M)\n"
"      --dir DIR         where to make them, without names (default: /tmp)\n"
"      --write-size N    write them by N bytes at a time (default 1M), which in many\n"
"                        file systems decides how large the folios are\n"
"      --op LIST         pread (default) or read\n"
"      --offsets WHICH   hot (always 0, the default), random or sequential, multiples\n"
"                        of the size; end: behind the last byte; first: at 0, once, of\n"
"                        a new file that nobody has read; miss: of a page that was\n"
"                        dropped from the cache\n"
"      --heat N          read each page N times before (default 8; 0 with --delete and\n"
"                        with first). With 0, the LRU thinks that pages are cold\n"
"      --buffer WHICH    what to read into: there (default), gone: memory that is not\n"
"                        there before each read, or half: the last half of it is not\n"
"      --delete[=HOW]    do not read, but take all pages of a file out of the cache at\n"
"                        once: truncate (to 0, the default) or dontneed (by\n"
"                        posix_fadvise()). Each page is a folio\n"
"      --everywhere      with --delete: first, and once, read the file on each CPU\n"
"      --large           with --delete: read the file by 64K before, not by pages\n"
"      --busy            with --delete: on the first CPU, while each other one reads a\n"
"                        page of a file of its own\n"
"      --count N         N reads, or N times all pages (default 1000)\n"
"      --warmup N        N operations that do not count (default 1000)\n"
"      --corrupt         damage a byte of each block of a file, or do not delete, to see\n"
"                        that it is noticed\n"
"      --json            one JSON object per line, file size, operation and size\n"
"      --marker          write marks to tracefs (trace_marker) around each run, or\n"
"                        around each deletion of all pages\n"
"  -h, --help            this text\n"
"\n"
"Exit status: 0 success, 1 failure or a wrong result, 2 wrong usage, 4 not supported\n"
"here.\n";

enum {
	OPT_BUFFER = BENCH_OPT_BASE,
	OPT_BUSY,
	OPT_CORRUPT,
	OPT_COUNT,
	OPT_DELETE,
	OPT_DIR,
	OPT_EVERYWHERE,
	OPT_FILE_SIZE,
	OPT_HEAT,
	OPT_JSON,
	OPT_LARGE,
	OPT_MARKER,
	OPT_OFFSETS,
	OPT_OP,
	OPT_SIZES,
	OPT_WARMUP,
	OPT_WRITE_SIZE,
};

static const struct option options[] = {
	{ "buffer",	required_argument,	NULL, OPT_BUFFER },
	{ "busy",	no_argument,		NULL, OPT_BUSY },
	{ "corrupt",	no_argument,		NULL, OPT_CORRUPT },
	{ "count",	required_argument,	NULL, OPT_COUNT },
	{ "delete",	optional_argument,	NULL, OPT_DELETE },
	{ "dir",	required_argument,	NULL, OPT_DIR },
	{ "everywhere",	no_argument,		NULL, OPT_EVERYWHERE },
	{ "file-size",	required_argument,	NULL, OPT_FILE_SIZE },
	{ "heat",	required_argument,	NULL, OPT_HEAT },
	{ "help",	no_argument,		NULL, BENCH_OPT_HELP },
	{ "json",	no_argument,		NULL, OPT_JSON },
	{ "large",	no_argument,		NULL, OPT_LARGE },
	{ "marker",	no_argument,		NULL, OPT_MARKER },
	{ "offsets",	required_argument,	NULL, OPT_OFFSETS },
	{ "op",		required_argument,	NULL, OPT_OP },
	{ "sizes",	required_argument,	NULL, OPT_SIZES },
	{ "warmup",	required_argument,	NULL, OPT_WARMUP },
	{ "write-size",	required_argument,	NULL, OPT_WRITE_SIZE },
	{ 0 },
};

static void parse(int argc, char **argv)
{
	bool heated = false;
	int c;

	while ((c = bench_getopt(argc, argv, ":h", options, help_text)) != -1) {
		switch (c) {
		case OPT_BUFFER:
			cfg.buffer = bench_parse_name("--buffer", optarg, buffer_names);
			break;
		case OPT_BUSY:
			cfg.busy = true;
			break;
		case OPT_CORRUPT:
			cfg.corrupt = true;
			break;
		case OPT_COUNT:
			cfg.count = bench_parse_u64("--count", optarg, 1, 1ULL << 40, false);
			break;
		case OPT_DELETE:
			cfg.delete = DELETE_TRUNCATE;
			if (optarg)
				cfg.delete += bench_parse_name("--delete", optarg,
							       &delete_names[DELETE_TRUNCATE]);
			break;
		case OPT_DIR:
			cfg.dir = optarg;
			break;
		case OPT_EVERYWHERE:
			cfg.everywhere = true;
			break;
		case OPT_FILE_SIZE:
			bench_parse_list(&cfg.file_sizes, "--file-size", optarg, 1, MAX_FILE_SIZE,
					 true);
			break;
		case OPT_HEAT:
			heated = true;
			cfg.heat = bench_parse_u64("--heat", optarg, 0, 1000, false);
			break;
		case OPT_JSON:
			cfg.json = true;
			break;
		case OPT_LARGE:
			cfg.large = true;
			break;
		case OPT_MARKER:
			cfg.marker = true;
			break;
		case OPT_OFFSETS:
			cfg.offsets = bench_parse_name("--offsets", optarg, offsets_names);
			break;
		case OPT_OP:
			bench_parse_names(&cfg.ops, "--op", optarg, op_names);
			break;
		case OPT_SIZES:
			bench_parse_list(&cfg.sizes, "--sizes", optarg, 1, MAX_SIZE, true);
			break;
		case OPT_WARMUP:
			cfg.warmup = bench_parse_u64("--warmup", optarg, 1, 100000000, false);
			break;
		case OPT_WRITE_SIZE:
			cfg.write_size = bench_parse_u64("--write-size", optarg, 1, 1 << 30, true);
			break;
		}
	}
	/* Most files are deleted that nobody has read from the cache. */
	if ((cfg.delete || cfg.offsets == OFFSETS_FIRST) && !heated)
		cfg.heat = 0;
	if ((cfg.everywhere || cfg.busy || cfg.large) && !cfg.delete)
		bench_usage("--everywhere, --busy and --large are for --delete");
}

int main(int argc, char **argv)
{
	unsigned int i, j, k;

	bench_name = "small_read_bench";
	page_size = sysconf(_SC_PAGESIZE);
	parse(argc, argv);
	/* Traces are filtered by name, and only 15 characters of it are kept. */
	prctl(PR_SET_NAME, "small_read");
	/* What is touched for the first time must not fault while it is counted. */
	if (!mlockall(MCL_CURRENT))
		munlockall();
	if (cfg.marker)
		bench_marker_open();
	for (i = 0; i < cfg.file_sizes.nr; i++) {
		if (cfg.delete) {
			run_delete(cfg.file_sizes.val[i]);
			continue;
		}
		for (j = 0; j < cfg.ops.nr; j++)
			for (k = 0; k < cfg.sizes.nr; k++)
				run_reads(cfg.ops.val[j], cfg.sizes.val[k],
					  cfg.file_sizes.val[i]);
	}
	return bench_finish();
}
