/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Block devices that answer nothing while they are suspended: device-mapper over
 * null_blk.  They go away at the end, even if the test is killed.  One is swap that
 * is used first: not for a machine that swaps.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#define NULLB		"/sys/kernel/config/nullb/fault_retry"
#define SIZE		(8UL << 20)
#define load(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define comes(cond)	/* within some ten seconds */		\
({	int left_ = 10000;					\
	while (!(cond) && left_--)				\
		usleep(1000);					\
	left_ >= 0; })

enum { DATA, HOLD, SWAP, NR_DEVS };
static const unsigned long part[] = { 0, SIZE, SIZE * 2, SIZE * 6 };
static char path[NR_DEVS][32];
static int fds[NR_DEVS], control, guard[2];
static pid_t guardian;

/* Whether a task waits in this state, and for nothing that is short */
static inline bool waits_in(char wanted, pid_t tid)
{
	char file[32], state = 0;
	int quiet = 0;
	FILE *stat;

	snprintf(file, sizeof(file), "/proc/%d/stat", tid);
	return comes(({
		stat = fopen(file, "r");
		if (!stat || fscanf(stat, "%*d %*s %c", &state) != 1 || state != wanted)
			quiet = 0;
		if (stat)
			fclose(stat);
		quiet++ > 20; }));
}

static int dm(int dev, unsigned int cmd, unsigned int flags)
{
	struct { struct dm_ioctl io; struct dm_target_spec spec; char to[64]; } arg = {
		.io = { { 4 }, sizeof(arg), sizeof(arg.io), 1, .flags = flags },
		.spec = { 0, (part[dev + 1] - part[dev]) / 512, .target_type = "linear" },
	};

	snprintf(arg.io.name, sizeof(arg.io.name), "fault_retry%d", dev);
	snprintf(arg.to, sizeof(arg.to), "/dev/fault_retry %lu", part[dev] / 512);
	return ioctl(control, cmd, &arg) ? -1 :
	       (int)((arg.io.dev & 0xff) | (arg.io.dev >> 12 & 0xfff00));
}

static void suspend(int dev, bool on)
{
	dm(dev, DM_DEV_SUSPEND, on ? DM_SUSPEND_FLAG | DM_SKIP_LOCKFS_FLAG : 0);
}

static bool put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);
	bool ret = write(fd, text, strlen(text)) > 0;

	close(fd);
	return ret;
}

/* KiB in use of SWAP, or -1 */
static inline long swap_used(void)
{
	FILE *swaps = fopen("/proc/swaps", "r");
	char line[256], name[128];
	long used = -1, one;

	while (swaps && fgets(line, sizeof(line), swaps))
		if (sscanf(line, "%127s %*s %*u %ld", name, &one) == 2 &&
		    !strcmp(name, path[SWAP]))
			used = one;
	if (swaps)
		fclose(swaps);
	return used;
}

/*
 * A process of its own, from before there are devices: when the test has ended, it
 * sees the end of the pipe, and finds what there is by name.
 */
static void guard_devices(void)
{
	int dev;

	setsid();
	close(guard[1]);
	while (read(guard[0], &dev, 1) > 0)
		;
	for (dev = DATA; dev < NR_DEVS; dev++)
		suspend(dev, false);
	snprintf(path[SWAP], sizeof(*path), "/dev/dm-%d", dm(SWAP, DM_DEV_STATUS, 0));
	swapoff(path[SWAP]);
	for (dev = DATA; dev < NR_DEVS; dev++)
		comes(dm(dev, DM_DEV_REMOVE, 0) >= 0 || errno != EBUSY);
	rmdir(NULLB);
	_exit(0);
}

/* Why there are none, or NULL.  Each page of DATA holds the complement of its offset */
static const char *make_devices(unsigned long psz)
{
	char header[65536] = {};
	unsigned long pos;
	bool made;

	mount("none", "/sys/kernel/config", "configfs", 0, NULL);
	control = open("/dev/mapper/control", O_RDWR);
	if (control < 0 || pipe(guard))
		return "no root, or device-mapper";
	comes(access(NULLB, F_OK));	/* the guardian of a run that has ended is not done */
	if (mkdir(NULLB, 0700))
		return errno == EEXIST ? NULLB " is there: another run has it, or left it" :
		       "no root, or null_blk";
	guardian = fork();
	if (guardian < 0) {
		rmdir(NULLB);
		return "no process to guard the devices";
	}
	if (!guardian)
		guard_devices();
	made = put(NULLB "/memory_backed", "1") && put(NULLB "/size", "48") &&
	       put(NULLB "/irqmode", "0") && put(NULLB "/power", "1") &&
	       /* ->page_mkwrite() is to wait for writeback */
	       put("/sys/block/fault_retry/queue/stable_writes", "1");
	for (int dev = DATA; dev < NR_DEVS; dev++) {
		snprintf(path[dev], sizeof(*path), "/dev/dm-%d", dm(dev, DM_DEV_CREATE, 0));
		dm(dev, DM_TABLE_LOAD, 0);
		suspend(dev, false);
		fds[dev] = open(path[dev], O_RDWR);
	}
	for (pos = 0; pos < SIZE; pos += psz)
		pwrite(fds[DATA], (long []) { ~pos }, sizeof(pos), pos);
	memcpy(header + 1024, (int []) { 1, SIZE * 4 / psz - 1 }, 8);
	memcpy(header + psz - 10, "SWAPSPACE2", 10);
	pwrite(fds[SWAP], header, psz, 0);
	made = made && !fsync(fds[DATA]) && !fsync(fds[SWAP]) &&
	       !swapon(path[SWAP], SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK);
	return made ? NULL : "no swap on dm-linear";
}

static void remove_devices(void)
{
	for (int dev = DATA; dev < NR_DEVS; dev++)
		close(fds[dev]);
	close(guard[1]);
	if (guardian > 0)
		waitpid(guardian, NULL, 0);
}
