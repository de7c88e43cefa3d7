// SPDX-License-Identifier: GPL-2.0
/*
 * How much faster a pipe gets when the copies, then the page table walks and
 * then the sleeping are taken out of it, one step at a time:
 *
 *	1  write() and read(): two copies, and a page allocated for each page
 *	2  vmsplice() and read(): the writer lends its pages to the pipe
 *	3  vmsplice() and splice() to /dev/null: nothing is copied
 *	4  as 3, from huge pages: finding the pages is cheaper
 *	5  as 4, both sides polling instead of sleeping
 *
 * The steps are those of the article "How fast are Linux pipes anyway?"
 * (Francesco Mazzoli, https://mazzo.li/posts/fast-pipes.html).
 *
 * A page that was given to vmsplice() is still shared with the pipe when the
 * call returns, so the writer must not change it until the reader is done
 * with it, and nobody tells it when. Hence the buffer has two halves that are
 * used in turn, and the pipe has exactly as many slots as a half has pages:
 * once one half is in the pipe completely, no slot can be left for the other,
 * which has therefore been consumed and may be changed. For this the half has
 * to be a power of two, or the pipe would be rounded up and hold more.
 *
 * This holds for readers that copy and for /dev/null, which drops the pages.
 * A reader that splices to a socket or another pipe, or uses tee(), may keep
 * pages after their slots are free, and the writer would change data in
 * flight.
 *
 * All steps use the same halves and the same pipe size, so that they differ
 * in nothing but what is named above.
 */
#include "pipe.h"

#include <sys/uio.h>

#define KIB			1024ULL
#define MAX_BUFFER		(1024 * 1024 * KIB)
#define DEFAULT_BUFFER		(256 * KIB)
#define DEFAULT_SECONDS		1
#define NR_STEPS		5
#define WARMUP_HALVES		16
#define GIB			(1024.0 * 1024 * 1024)

/* If the kernel does not say: only matters for the alignment */
#define DEFAULT_THP		(2048 * KIB)

static struct bench_opts opts = { .verify = BENCH_VERIFY_CHEAP, .processes = true };

static struct {
	size_t half;
	__u64 bytes;		/* 0: limited by time */
	struct bench_list steps;
} cfg = {
	.half = DEFAULT_BUFFER / 2,
	.steps = { NR_STEPS, { 1, 2, 3, 4, 5 } },
};

static const struct step {
	const char *name;
	bool vmsplice;
	bool splice;
	bool huge;
	bool busy;
} steps[NR_STEPS + 1] = {
	[1] = { .name = "write/read" },
	[2] = { .name = "vmsplice/read", .vmsplice = true },
	[3] = { .name = "vmsplice/splice", .vmsplice = true, .splice = true },
	[4] = { .name = "+ huge pages", .vmsplice = true, .splice = true, .huge = true },
	[5] = { .name = "+ busy loop", .vmsplice = true, .splice = true, .huge = true,
		.busy = true },
};

/* What a worker has done */
struct side {
	__u64 bytes;		/* with warm-up */
	__u64 calls;
	__u64 again;		/* how often there was nothing to do (step 5) */
	__u64 end_ns;
	char pad[256];		/* not in a cache line with anything of the other */
};

/* In shared memory */
struct shared {
	struct side writer;
	struct side reader;
	__u64 huge_bytes;	/* of the buffer, backed by huge pages */
	bool no_thp;		/* the kernel does not know MADV_HUGEPAGE */
};

struct buffer {
	unsigned char *half[2];
	void *map;
	size_t map_len;
};

struct run {
	const struct step *step;
	struct bench_pipe pipe;
	struct shared *shared;
};

/* ---- the buffer ---- */

static size_t thp_size(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
	unsigned long size = 0;

	if (f) {
		if (fscanf(f, "%lu", &size) != 1)
			size = 0;
		fclose(f);
	}
	return size ? size : DEFAULT_THP;
}

/* How much of this mapping is in huge pages, in bytes */
static __u64 huge_bytes(const void *start, size_t len)
{
	unsigned long from = (unsigned long)start, begin, end;
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long long kib, sum = 0;
	bool inside = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			inside = begin < from + len && end > from;
		else if (inside && sscanf(line, "AnonHugePages: %llu kB", &kib) == 1)
			sum += kib * KIB;
	}
	if (f)
		fclose(f);
	return sum;
}

/*
 * Two halves, in one piece. Made by the writer itself: if it was shared with
 * a forked reader, the first change of each page would be a copy on write.
 */
static void buffer_alloc(struct buffer *buf, const struct step *step, struct shared *sh)
{
	const size_t huge = thp_size(), want = 2 * cfg.half;
	const size_t len = (want + huge - 1) / huge * huge;
	unsigned char *start;

	buf->map_len = len + huge;
	buf->map = bench_map_lazily(buf->map_len, MAP_PRIVATE);
	start = buf->map;
	start += (huge - (unsigned long)start % huge) % huge;
	if (step->huge) {
		if (madvise(start, len, MADV_HUGEPAGE))
			sh->no_thp = true;
	} else {
		/* In case they are set to "always"; no matter if unknown */
		madvise(start, len, MADV_NOHUGEPAGE);
	}
	memset(start, 'X', len);
	if (step->huge)
		sh->huge_bytes = huge_bytes(start, len);
	buf->half[0] = start;
	buf->half[1] = start + cfg.half;
}

/*
 * The first and the last word of each page tell which half of the stream this
 * is and which page of it. A page that is changed too early, or comes twice,
 * or not at all, shows.
 */
static __u64 stamp(__u64 generation, size_t page)
{
	return bench_mix((generation << 24) + page);
}

static void half_stamp(unsigned char *half, __u64 generation)
{
	const size_t size = bench_page_size();
	size_t off;

	for (off = 0; off < cfg.half; off += size) {
		*(__u64 *)(half + off) = stamp(generation, off / size);
		*(__u64 *)(half + off + size - sizeof(__u64)) = ~stamp(generation, off / size);
	}
}

static void half_check(const unsigned char *half, __u64 generation)
{
	const size_t size = bench_page_size();
	size_t off, i;

	for (off = 0; off < cfg.half; off += size) {
		const __u64 want = stamp(generation, off / size);

		if (*(const __u64 *)(half + off) != want ||
		    *(const __u64 *)(half + off + size - sizeof(__u64)) != ~want)
			bench_die("data damaged: page %zu of half %llu", off / size, generation);
		if (opts.verify != BENCH_VERIFY_FULL)
			continue;
		for (i = sizeof(__u64); i < size - sizeof(__u64); i++)
			if (half[off + i] != 'X')
				bench_die("data damaged: byte %zu of half %llu", off + i,
					  generation);
	}
}

/* ---- the two workers ---- */

static void spin(void)
{
	/* With a single CPU, what we wait for cannot happen while we spin */
	if (bench_cpus(NULL) == 1)
		sched_yield();
}

static void put_half(const struct run *run, int fd, unsigned char *half)
{
	struct side *side = &run->shared->writer;
	struct iovec iov = { .iov_base = half, .iov_len = cfg.half };
	ssize_t ret;

	while (iov.iov_len) {
		if (run->step->vmsplice)
			ret = vmsplice(fd, &iov, 1, run->step->busy ? SPLICE_F_NONBLOCK : 0);
		else
			ret = write(fd, iov.iov_base, iov.iov_len);
		if (ret < 0) {
			if (errno != EAGAIN || !run->step->busy)
				bench_die_errno(run->step->vmsplice ? "vmsplice" : "write");
			side->again++;
			spin();
			continue;
		}
		side->calls++;
		side->bytes += ret;
		iov.iov_base = (char *)iov.iov_base + ret;
		iov.iov_len -= ret;
	}
}

static void ladder_write(struct bench_worker *worker, struct run *run)
{
	struct bench_gate *gate = worker->team->gate;
	int fd = bench_pipe_get(&run->pipe, BENCH_WR);
	const bool stamped = opts.verify && !run->step->splice;
	__u64 generation, last = ~0ULL;
	unsigned char *half;
	struct buffer buf;

	buffer_alloc(&buf, run->step, run->shared);
	if (cfg.bytes)
		last = WARMUP_HALVES + (cfg.bytes + cfg.half - 1) / cfg.half;
	for (generation = 0; generation < last; generation++) {
		if (generation == WARMUP_HALVES)
			bench_gate_wait(gate);
		if (generation >= WARMUP_HALVES && bench_stopped(gate))
			break;
		half = buf.half[generation % 2];
		/* The other half is in the pipe, so this one is ours again */
		if (stamped)
			half_stamp(half, generation);
		if (opts.corrupt && generation == WARMUP_HALVES)
			half[0] ^= 1;
		put_half(run, fd, half);
	}
	bench_pipe_put(&run->pipe, BENCH_WR);
	munmap(buf.map, buf.map_len);
}

static void read_halves(struct bench_gate *gate, struct run *run, int fd)
{
	struct side *side = &run->shared->reader;
	unsigned char *buf = bench_map_lazily(cfg.half, MAP_PRIVATE);
	__u64 generation;
	size_t done;
	ssize_t ret;

	memset(buf, 0, cfg.half);
	for (generation = 0;; generation++) {
		if (generation == WARMUP_HALVES)
			bench_gate_wait(gate);
		for (done = 0; done < cfg.half; done += ret) {
			ret = read(fd, buf + done, cfg.half - done);
			if (ret < 0)
				bench_die_errno("read");
			if (!ret)
				break;
			side->calls++;
			side->bytes += ret;
		}
		if (!done)
			break;
		if (done != cfg.half)
			bench_die("end of file after %zu of %zu bytes of half %llu", done,
				  cfg.half, generation);
		if (opts.verify)
			half_check(buf, generation);
	}
	munmap(buf, cfg.half);
}

static void splice_halves(struct bench_gate *gate, struct run *run, int fd)
{
	const __u64 ration = WARMUP_HALVES * (__u64)cfg.half;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct side *side = &run->shared->reader;
	size_t len = cfg.half;
	ssize_t ret;

	if (null < 0)
		bench_die_errno("cannot open /dev/null");
	for (;;) {
		if (side->bytes < ration) {
			/* Not into what is measured */
			len = ration - side->bytes < cfg.half ? ration - side->bytes : cfg.half;
		} else if (side->bytes == ration) {
			bench_gate_wait(gate);
			len = cfg.half;
		}
		do {
			ret = splice(fd, NULL, null, NULL, len,
				     run->step->busy ? SPLICE_F_NONBLOCK : 0);
			if (ret < 0 && (errno != EAGAIN || !run->step->busy))
				bench_die_errno("splice");
			if (ret < 0) {
				side->again++;
				spin();
			}
		} while (ret < 0);
		if (!ret)
			break;
		side->calls++;
		side->bytes += ret;
	}
	if (opts.corrupt)
		side->bytes--;
	close(null);
}

static void ladder_read(struct bench_worker *worker, struct run *run)
{
	int fd = bench_pipe_get(&run->pipe, BENCH_RD);

	if (run->step->splice)
		splice_halves(worker->team->gate, run, fd);
	else
		read_halves(worker->team->gate, run, fd);
	run->shared->reader.end_ns = bench_now();
	bench_pipe_put(&run->pipe, BENCH_RD);
}

static void ladder_worker(struct bench_worker *worker)
{
	struct run *run = worker->team->arg;

	if (!worker->index)
		ladder_write(worker, run);
	else
		ladder_read(worker, run);
}

/* ---- results ---- */

static void report(unsigned int nr, const struct run *run, double seconds)
{
	const struct shared *sh = run->shared;
	const __u64 bytes = sh->writer.bytes - WARMUP_HALVES * (__u64)cfg.half;
	const double rate = bytes / seconds;
	static double first;
	static bool header_done;

	if (first <= 0)
		first = rate;

	if (opts.json) {
		bench_json_begin("pipe_ladder");
		bench_json_u64("step", nr);
		bench_json_str("mode", run->step->name);
		bench_json_u64("size", cfg.half);
		bench_json_u64("buffer", 2 * cfg.half);
		bench_json_u64("pipe_size", run->pipe.size);
		bench_json_u64("writers", 1);
		bench_json_u64("readers", 1);
		bench_json_str("workers", opts.processes ? "processes" : "threads");
		bench_json_bool("pinned", opts.pin);
		bench_json_u64_or_null("byte_limit", cfg.bytes);
		bench_json_double_or_null("time_limit", opts.seconds, 3);
		bench_json_str("verify", bench_verify_name(opts.verify));
		bench_json_u64("page_size", bench_page_size());
		bench_json_u64("huge_bytes", sh->huge_bytes);
		bench_json_u64("writes", bytes / cfg.half);
		bench_json_u64("bytes", bytes);
		bench_json_double("seconds", seconds, 9);
		bench_json_double("mb_per_s", rate / 1e6, 3);
		bench_json_double("gib_per_s", rate / GIB, 4);
		bench_json_double("ns_per_op", bytes ? seconds * BENCH_NSEC / bytes * cfg.half : 0,
				  3);
		bench_json_double("ratio", rate / first, 4);
		bench_json_u64("calls_written", sh->writer.calls);
		bench_json_u64("calls_read", sh->reader.calls);
		bench_json_u64("again_written", sh->writer.again);
		bench_json_u64("again_read", sh->reader.again);
		bench_json_end();
		return;
	}

	if (!header_done) {
		printf("# %s, two halves and a pipe of %u bytes, pages of %zu bytes, verify %s\n",
		       opts.processes ? "processes" : "threads", run->pipe.size,
		       bench_page_size(), bench_verify_name(opts.verify));
		printf("#step %-16s %10s %8s %12s %s\n", "", "GiB/s", "ratio", "MiB", "huge pages");
		header_done = true;
	}
	printf("%5u %-16s %10.3f %8.2f %12.1f ", nr, run->step->name, rate / GIB, rate / first,
	       bytes / 1048576.0);
	if (!run->step->huge)
		printf("-\n");
	else if (sh->huge_bytes)
		printf("%llu KiB\n", sh->huge_bytes / KIB);
	else
		printf("wanted, but none given\n");
	fflush(stdout);
}

static void ladder_run(unsigned int nr)
{
	struct run run = { .step = &steps[nr] };
	struct bench_team team = {
		.nr = 2,
		.processes = opts.processes,
		.pin = opts.pin,
		.fn = ladder_worker,
		.arg = &run,
	};

	bench_pipe_open(&run.pipe, cfg.half, opts.processes, 1, 1);
	if (run.pipe.size != cfg.half)
		bench_die("the pipe has %u instead of %zu bytes, which makes two halves unsafe",
			  run.pipe.size, cfg.half);
	run.shared = bench_map_lazily(sizeof(*run.shared), MAP_SHARED);

	bench_team_spawn(&team);
	bench_pipe_handed_over(&run.pipe);
	bench_team_ready(&team);
	if (run.shared->no_thp && cfg.steps.nr == 1) {
		/* Nothing else was asked for, so there is nothing to show */
		bench_team_open(&team);
		bench_team_run_for(&team, 0);
		bench_team_join(&team);
		bench_skip("this kernel has no transparent huge pages, which step %u needs", nr);
	}
	bench_team_open(&team);
	if (opts.seconds > 0)
		bench_team_run_for(&team, opts.seconds);
	bench_team_join(&team);

	if (run.shared->writer.bytes != run.shared->reader.bytes)
		bench_die("%llu bytes written but %llu read", run.shared->writer.bytes,
			  run.shared->reader.bytes);
	report(nr, &run, (double)(run.shared->reader.end_ns - team.start_ns) / BENCH_NSEC);
	munmap(run.shared, sizeof(*run.shared));
	bench_pipe_free(&run.pipe);
}

static const char help_text[] =
"Usage: pipe_ladder [OPTION]...\n"
"Measure how fast one writer and one reader move data through a pipe, in five steps:\n"
"\n"
"  1  write() and read()\n"
"  2  vmsplice() and read()\n"
"  3  vmsplice() and splice() to /dev/null\n"
"  4  as 3, from huge pages\n"
"  5  as 4, polling instead of sleeping\n"
"\n"
"Sizes are in bytes and take the suffixes K, M and G (powers of 1024); a LIST is\n"
"separated by commas. GiB are 2^30 bytes, and the ratio is that to the first step run.\n"
"\n"
"      --step LIST       run these steps, in this order (default 1,2,3,4,5)\n"
"      --buffer SIZE     size of the buffer, a power of two and at least two pages\n"
"                        (default 256K). It is used in halves, and the pipe has the\n"
"                        size of a half\n"
"      --bytes SIZE      fixed work: move that much, rounded up to whole halves\n"
"      --seconds S       fixed time: S seconds per step, fractions allowed (default 1)\n"
"      --processes       two processes (the default)\n"
"      --threads         two threads\n"
"      --pin             pin the writer to the first allowed CPU, the reader to the next\n"
"      --verify[=cheap]  the default. In all steps, the number of bytes that arrive is\n"
"                        the number written. Where the reader sees the data (steps 1 and\n"
"                        2), the first and last 8 bytes of every page tell which half of\n"
"                        the stream and which page of it this is, and are checked\n"
"      --verify=full     check all other bytes, too\n"
"      --no-verify       only count bytes\n"
"      --corrupt         damage one byte, or the count of steps that have no check of\n"
"                        the data, to see that it is noticed\n"
"      --json            one JSON object per line and step\n"
"  -h, --help            this text\n"
"\n"
"If there are no huge pages for steps 4 and 5, this is reported with the result.\n"
"\n"
"Exit status: 0 success, 1 failure or damaged data, 2 wrong usage, 4 not supported here.\n";

enum {
	OPT_BUFFER = BENCH_OPT_OWN,
	OPT_BYTES,
	OPT_STEP,
};

static const struct option own_options[] = {
	{ "buffer",	required_argument,	NULL, OPT_BUFFER },
	{ "bytes",	required_argument,	NULL, OPT_BYTES },
	{ "step",	required_argument,	NULL, OPT_STEP },
};

static void parse(int argc, char **argv)
{
	__u64 val;
	int c;

	while ((c = pipe_getopt(argc, argv, ":h", own_options, BENCH_ARRAY_SIZE(own_options),
				&opts, help_text)) != -1) {
		switch (c) {
		case OPT_BUFFER:
			val = bench_parse_u64("--buffer", optarg, 2 * bench_page_size(),
					      MAX_BUFFER, true);
			if (val & (val - 1))
				bench_usage("--buffer must be a power of two, not '%s'", optarg);
			cfg.half = val / 2;
			break;
		case OPT_BYTES:
			cfg.bytes = bench_parse_u64("--bytes", optarg, 1, 1ULL << 50, true);
			break;
		case OPT_STEP:
			bench_parse_list(&cfg.steps, "--step", optarg, 1, NR_STEPS, false);
			break;
		}
	}
	if (cfg.bytes && opts.seconds > 0)
		bench_usage("--bytes and --seconds exclude each other");
	if (opts.corrupt && !opts.verify)
		bench_usage("--corrupt would go unnoticed with --no-verify");
	if (!cfg.bytes && opts.seconds <= 0)
		opts.seconds = DEFAULT_SECONDS;
}

int main(int argc, char **argv)
{
	unsigned int i;

	bench_init("pipe_ladder");
	parse(argc, argv);
	/* The default is two slots or more, but pages may be as large as 64K */
	if (cfg.half < bench_page_size())
		cfg.half = bench_page_size();
	for (i = 0; i < cfg.steps.nr; i++)
		ladder_run(cfg.steps.val[i]);
	return bench_finish();
}
