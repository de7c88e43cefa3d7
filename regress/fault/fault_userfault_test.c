// SPDX-License-Identifier: GPL-2.0
/*
 * A fault that has waited for swap, and then waits for user space, keeps its page
 * from nobody.
 *
 * A page that userfaultfd write-protects is swapped out, and written to.  The fault
 * waits for the device, comes back, maps the page, and waits until somebody takes
 * the protection away.  Meanwhile the page is swapped out once more, which fails for
 * as long as anybody has a reference to it.
 *
 * All is done on one CPU: the LRU batches of others are not drained.
 */
#include "stuck_device.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "kselftest.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif
#define RECLAIM_TRIES	200
#define FILLER		(SWAP_SIZE / 2)
#define WORD		0x6b8b4567327b23c6ULL
#define PATIENCE_MS	60000

static __u64 *stuck;
static bool done;

static void *write_to_it(void *arg)
{
	store(&stuck[1], 1);
	store(&done, true);
	return arg;
}

/* Is it in swap, and nowhere else? */
static bool page_out(void)
{
	unsigned char there = 1;
	int i;

	for (i = 0; i < RECLAIM_TRIES && there & 1; i++) {
		madvise(stuck, page, MADV_PAGEOUT);
		/* It stays in the swap cache.  This fails if it does not get as much */
		write_str(GROUP "/memory.reclaim", "1M");
		usleep(SAMPLE_MS * 1000);
		mincore(stuck, page, &there);
	}
	return !(there & 1);
}

/*
 * A CPU goes on in the cluster of the swap that it used last, whatever the priority
 * of others, until that is full.  So fill it, to get to our device.
 */
static void come_to_our_swap(void)
{
	char *filler = mmap(NULL, FILLER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(filler, FILLER, MADV_NOHUGEPAGE);
	memset(filler, 1, FILLER);
	madvise(filler, FILLER, MADV_PAGEOUT);
}

static void protect(int uffd, __u64 mode)
{
	struct uffdio_writeprotect wp = {
		.range = { (unsigned long)stuck, page }, .mode = mode,
	};

	if (ioctl(uffd, UFFDIO_WRITEPROTECT, &wp))
		ksft_exit_fail_perror("UFFDIO_WRITEPROTECT");
}

static int make_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register reg = {
		.range = { (unsigned long)stuck, page }, .mode = UFFDIO_REGISTER_MODE_WP,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &reg))
		ksft_exit_skip("there is no write protection by userfaultfd: %s\n", strerror(errno));
	return uffd;
}

int main(void)
{
	struct pollfd fds = { .events = POLLIN };
	struct uffd_msg msg;
	cpu_set_t cpu = {};
	pthread_t thread;
	int ms;

	bench_name = "fault_userfault_test";
	ksft_print_header();
	device_make(true);
	if (!have_swap)
		ksft_exit_skip("%s\n", no_swap);
	ksft_set_plan(4);
	CPU_SET(sched_getcpu(), &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu) || write_str(GROUP "/cgroup.procs", "0"))
		ksft_exit_fail_perror("cannot stay on a CPU, in a cgroup");
	come_to_our_swap();
	stuck = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(stuck, page, MADV_NOHUGEPAGE);
	stuck[0] = WORD;
	fds.fd = make_uffd();
	protect(fds.fd, UFFDIO_WRITEPROTECT_MODE_WP);
	if (!page_out())
		ksft_exit_fail_msg("the page is not swapped out\n");

	store(&device->hold_node, SWAPPED);
	if (pthread_create(&thread, NULL, write_to_it, NULL))
		ksft_exit_fail_perror("pthread_create");
	for (ms = 0; !load(&device->held) && ms < PATIENCE_MS; ms++)
		usleep(1000);
	ksft_test_result(load(&device->held), "the fault waits for the device\n");
	device_release();

	ksft_test_result(poll(&fds, 1, PATIENCE_MS) == 1 &&
			 read(fds.fd, &msg, sizeof(msg)) == sizeof(msg) &&
			 msg.event == UFFD_EVENT_PAGEFAULT &&
			 (msg.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP) && !load(&done),
			 "it comes back, and waits for user space\n");
	ksft_test_result(page_out(), "the page can be reclaimed meanwhile\n");
	protect(fds.fd, 0);
	pthread_join(thread, NULL);
	ksft_test_result(stuck[0] == WORD && stuck[1] == 1 && load(&done),
			 "the data are what was written\n");
	/* A cgroup is removed when nobody is in it */
	write_str("cgroup/cgroup.procs", "0");
	ksft_finished();
}
