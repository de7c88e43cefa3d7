// SPDX-License-Identifier: GPL-2.0
/*
 * Small reads of a page that is in use leave its count of references alone: what
 * filemap and pageguard are for, and what fails on kernels without. The kernel tells
 * it by its page_ref tracepoints.
 */
#define _FILE_OFFSET_BITS 64
#include "kselftest_harness.h"
#include "small_read.h"

#define READS	100

static char instance[64];

static bool set(const char *name, const char *val)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", instance, name);
	return write_str(path, val);
}

/* How often this task changes a count in READS reads of @len bytes; -1: cannot tell */
static long references(int fd, ssize_t len, off_t pos)
{
	static char trace[1 << 20], buf[8192];
	char val[32], path[128], *at;
	ssize_t ret, size = 0;
	int i, own;
	long events = 0;

	snprintf(instance, sizeof(instance), "/tmp/tracefs/instances/reference.%d", getpid());
	snprintf(val, sizeof(val), "%d", (int)syscall(__NR_gettid));
	/* Nothing else is to fault when it counts. */
	memset(buf, 1, sizeof(buf));
	if (mkdir(instance, 0755) || !set("set_event_pid", val) ||
	    !set("events/page_ref/enable", "1"))
		return -1;
	for (i = 0; i < READS; i++)
		ret = pread(fd, buf, len, pos);
	set("events/page_ref/enable", "0");
	snprintf(path, sizeof(path), "%s/trace", instance);
	own = open(path, O_RDONLY);
	while ((ret = read(own, trace + size, sizeof(trace) - 1 - size)) > 0)
		size += ret;
	close(own);
	trace[size] = '\0';
	for (at = trace; (at = strstr(at, ": page_ref_")); at++)
		events++;
	rmdir(instance);
	return events;
}

FIXTURE(reference)
{
	int fd;
};

FIXTURE_VARIANT(reference)
{
	enum fs_id fs;
};

FIXTURE_VARIANT_ADD(reference, tmpfs) { .fs = TMPFS };
FIXTURE_VARIANT_ADD(reference, ext4) { .fs = EXT4 };
FIXTURE_VARIANT_ADD(reference, xfs) { .fs = XFS };

FIXTURE_SETUP(reference)
{
	cpu_set_t one;

	self->fd = make_file(variant->fs);
	if (self->fd < 0)
		SKIP(return, "cannot make and mount %s", fs_table[variant->fs].name);
	if (access("/tmp/tracefs/events/page_ref", F_OK))
		SKIP(return, "no page_ref tracepoints: needs CONFIG_DEBUG_PAGE_REF");
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

FIXTURE_TEARDOWN(reference)
{
}

static void check(struct __test_metadata *_metadata, int fd, ssize_t len, off_t pos)
{
	void *map = mmap(NULL, psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[4096];
	long refs;
	int i;

	/* Often enough to be known as used; this advice lets the LRU see it. */
	for (i = 0; i < 64; i++) {
		ASSERT_GE(pread(fd, buf, len, pos), 1);
		madvise(map, psz, MADV_COLD);
	}
	refs = references(fd, len, pos);
	munmap(map, psz);
	ASSERT_GE(refs, 0);
	/* One for each read would be a hundred. */
	EXPECT_LT(refs, READS / 10) {
		TH_LOG("%d reads of %zd bytes at %ld changed it %ld times", READS, len, (long)pos,
		       refs);
	}
}

/* A file of up to 64 bytes, of which much more is asked for, or less */
TEST_F(reference, small_file)
{
	static const ssize_t lens[] = { 1, 32, 64, 4096 };
	unsigned int i;

	ASSERT_TRUE(write_words(self->fd, 0, 64, 0, 0));
	for (i = 0; i < ARRAY_SIZE(lens); i++)
		check(_metadata, self->fd, lens[i], 0);
}

/* Records of a large file, in which a folio may have many pages */
TEST_F(reference, large_file)
{
	ASSERT_TRUE(write_words(self->fd, 0, 1 << 20, 0, 0));
	check(_metadata, self->fd, 64, 0);
	check(_metadata, self->fd, 64, 3 * psz + 128);
	check(_metadata, self->fd, 1, 200 * psz - 1);
	/* What is larger than a page takes references, or there is nothing to see. */
	ASSERT_GT(references(self->fd, 8192, 0), READS / 2);
}

int main(int argc, char **argv)
{
	psz = sysconf(_SC_PAGESIZE);
	mount_all();
	return test_harness_run(argc, argv);
}
