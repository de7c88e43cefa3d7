/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device that does not answer before it is told to: a FUSE server in a process
 * of its own. It has two files, and a third one that lies below a loop device,
 * which is swapped out to.
 *
 * Reads of device->hold_node are held until device_answer() or device_release(),
 * one at a time. All of it is gone at exit.
 *
 * Nobody but the server keeps /dev/fuse open, or else who has files of it open
 * could wait at exit for a server that is gone.
 */
#ifndef REGRESS_FAULT_STUCK_DEVICE_H
#define REGRESS_FAULT_STUCK_DEVICE_H

#include "bench.h"

#include <linux/fuse.h>
#include <linux/loop.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>

#define SWAP_SIZE	(8U << 20)
#define FILE_SIZE	(4U << 20)
#define ANSWER		(1U << 20)	/* the most that is read at once */
#define GROUP		"cgroup/fault_stuck"	/* what is swapped out belongs to it, for a while */
#define SAMPLE_MS	10

#ifndef __aligned
#define __aligned(n)	__attribute__((__aligned__(n)))
#endif
#define load(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)

/* Shared by all processes */
static struct device {
	unsigned int hold_node;	/* or 0 */
	unsigned int held;	/* is a read held? */
	unsigned int answering;	/* does the server do anything? */
} *device;

static size_t page;
static int fuse_fd, release_fd;
static pid_t server;
static char dir[] = "/tmp/fault_stuck.XXXXXX";	/* in which all of us are */
static char swap_dev[32];
static bool have_swap;
static const char *no_swap;	/* why */

enum node { ROOT = FUSE_ROOT_ID, STUCK, LIVE, SWAPPED, NR_NODES };
static const char *const node_names[NR_NODES] = {
	[STUCK] = "stuck", [LIVE] = "live", [SWAPPED] = "swap"
};

/* What the pages of files begin with */
static __u64 word_at(enum node node, __u64 pos)
{
	return (pos + node) * 0x9e3779b97f4a7c15ULL;
}

static void answer(__u64 unique, int error, const void *data, size_t len)
{
	struct fuse_out_header out = {
		.len = sizeof(out) + len, .error = -error, .unique = unique
	};
	struct iovec iov[] = { { &out, sizeof(out) }, { (void *)data, len } };

	/* Whoever asked may have been killed */
	if (writev(fuse_fd, iov, len ? 2 : 1) < 0 && errno != ENOENT)
		bench_die_errno("cannot answer the kernel");
}

static struct fuse_attr attr_of(enum node node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = page };

	attr.mode = node == ROOT ? S_IFDIR | 0755 : S_IFREG | 0600;
	attr.size = node == SWAPPED ? SWAP_SIZE : FILE_SIZE;
	return attr;
}

static void serve_read(char *image, __u64 unique, enum node node, const struct fuse_read_in *in)
{
	__u64 size = attr_of(node).size, pos, word;
	char *data = node == SWAPPED ? image + in->offset : image + SWAP_SIZE;
	size_t len = in->offset >= size ? 0 : in->size;

	if (len > size - in->offset)
		len = size - in->offset;
	for (pos = 0; node != SWAPPED && pos < len; pos += page) {
		word = word_at(node, in->offset + pos);
		memcpy(data + pos, &word, sizeof(word));
	}
	answer(unique, 0, data, len);
}

/* @image: what is swapped out; behind it is room for an answer */
static noreturn void serve(char *image)
{
	struct { __u64 unique; enum node node; struct fuse_read_in in; } held;
	static char buf[ANSWER + 4096] __aligned(16);
	const struct fuse_in_header *in = (void *)buf;
	const void *arg = in + 1;
	struct pollfd fds[] = { { fuse_fd, POLLIN, 0 }, { release_fd, POLLIN, 0 } };
	const struct fuse_write_in *wr;
	unsigned int i;
	__u64 count;
	ssize_t len;

	for (;;) {
		store(&device->answering, 0);
		if (poll(fds, 2, -1) < 0)
			bench_die_errno("poll");
		store(&device->answering, 1);
		if (fds[1].revents) {
			if (read(release_fd, &count, sizeof(count)) < 0)
				bench_die_errno("eventfd");
			if (load(&device->held))
				serve_read(image, held.unique, held.node, &held.in);
			store(&device->held, 0);
		}
		if (!fds[0].revents)
			continue;
		len = read(fuse_fd, buf, sizeof(buf));
		if (len < 0 && errno == ENODEV)
			_exit(0);
		if (len < 0 && (errno == ENOENT || errno == EINTR || errno == EAGAIN))
			continue;
		if (len < (ssize_t)sizeof(*in))
			bench_die_errno("cannot read what the kernel asks for");
		switch (in->opcode) {
		case FUSE_INIT: {
			/* One page is read at a time, and several at once */
			struct fuse_init_out out = {
				.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
				.flags = FUSE_ASYNC_READ | FUSE_ASYNC_DIO | FUSE_BIG_WRITES,
				.max_readahead = page, .max_write = 128 << 10,
				.max_background = 64, .congestion_threshold = 64,
			};

			answer(in->unique, 0, &out, sizeof(out));
			break;
		}
		case FUSE_LOOKUP: {
			struct fuse_entry_out out = { .entry_valid = 86400, .attr_valid = 86400 };

			for (i = STUCK; i < NR_NODES && strcmp(arg, node_names[i]); i++)
				;
			out.nodeid = i;
			out.attr = attr_of(i);
			answer(in->unique, i < NR_NODES ? 0 : ENOENT, &out,
			       i < NR_NODES ? sizeof(out) : 0);
			break;
		}
		case FUSE_GETATTR: {
			struct fuse_attr_out out = {
				.attr_valid = 86400, .attr = attr_of(in->nodeid),
			};

			answer(in->unique, 0, &out, sizeof(out));
			break;
		}
		case FUSE_OPEN: {
			struct fuse_open_out out = {
				.open_flags = in->nodeid == SWAPPED ? FOPEN_DIRECT_IO :
								      FOPEN_KEEP_CACHE,
			};

			answer(in->unique, 0, &out, sizeof(out));
			break;
		}
		case FUSE_READ:
			if (load(&device->hold_node) != in->nodeid) {
				serve_read(image, in->unique, in->nodeid, arg);
			} else if (load(&device->held)) {
				bench_die("more than the victim's page is read");
			} else {
				held.unique = in->unique;
				held.node = in->nodeid;
				held.in = *(const struct fuse_read_in *)arg;
				store(&device->held, 1);
			}
			break;
		case FUSE_WRITE: {
			struct fuse_write_out out = {};

			wr = arg;
			if (wr->offset + wr->size > attr_of(in->nodeid).size) {
				answer(in->unique, EIO, NULL, 0);
				break;
			}
			/* What is in other files is known */
			if (in->nodeid == SWAPPED)
				memcpy(image + wr->offset, wr + 1, wr->size);
			out.size = wr->size;
			answer(in->unique, 0, &out, sizeof(out));
			break;
		}
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			answer(in->unique, ENOSYS, NULL, 0);
		}
	}
}

/* Let the read go on that is held; the next one is held again */
static void device_answer(void)
{
	__u64 one = 1;

	if (write(release_fd, &one, sizeof(one)) < 0)
		bench_die_errno("eventfd");
}

/* Let all reads go on */
static void device_release(void)
{
	store(&device->hold_node, 0);
	device_answer();
}

static int open_node(enum node node)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "fuse/%s", node_names[node]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		bench_die_errno("cannot open %s", path);
	return fd;
}

static int write_str(const char *path, const char *val)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err;
	ssize_t ret;

	if (fd < 0)
		return -1;
	ret = write(fd, val, strlen(val));
	err = errno;
	close(fd);
	errno = err;
	return ret < 0 ? -1 : 0;
}

/* Runs at exit, also when something has gone wrong in the middle */
static void device_remove(void)
{
	int fd, i;

	device_release();
	if (have_swap && swapoff(swap_dev))
		fprintf(stderr, "%s: swapoff %s: %s\n", bench_name, swap_dev, strerror(errno));
	fd = *swap_dev ? open(swap_dev, O_RDWR | O_CLOEXEC) : -1;
	if (fd >= 0) {
		ioctl(fd, LOOP_CLR_FD);
		close(fd);
	}
	/* Who has been killed may not be gone yet */
	for (i = 0; i < 500 && rmdir(GROUP) && errno == EBUSY; i++)
		usleep(SAMPLE_MS * 1000);
	umount2("cgroup", MNT_DETACH);
	rmdir("cgroup");
	umount2("fuse", MNT_DETACH);
	rmdir("fuse");
	rmdir(dir);
	if (server) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
}

static void make_swap(void)
{
	struct loop_config config = { .block_size = page };
	int nr, fd;

	if (mkdir("cgroup", 0700) || mount("none", "cgroup", "cgroup2", 0, NULL) ||
	    write_str("cgroup/cgroup.subtree_control", "+memory")) {
		no_swap = "there is no cgroup2 with memory";
		return;
	}
	if (mkdir(GROUP, 0755))
		bench_die_errno("cannot create a cgroup");
	fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	nr = fd < 0 ? -1 : ioctl(fd, LOOP_CTL_GET_FREE);
	if (nr < 0) {
		no_swap = "there is no loop device";
		return;
	}
	close(fd);
	snprintf(swap_dev, sizeof(swap_dev), "/dev/loop%d", nr);
	fd = open(swap_dev, O_RDWR | O_CLOEXEC);
	config.fd = open_node(SWAPPED);
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config))
		bench_die_errno("cannot set %s up", swap_dev);
	close(config.fd);
	if (swapon(swap_dev, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK))
		bench_die_errno("swapon %s", swap_dev);
	have_swap = true;
	close(fd);
}

/* @swap: the swap, too, if that can be; see no_swap */
static void device_make(bool swap)
{
	char *image = bench_map_lazily(SWAP_SIZE + ANSWER, MAP_PRIVATE);
	__u32 header[] = { 1, 0, 0 };	/* version, last page, bad pages */
	char options[96];

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		bench_skip("this takes root: %s", strerror(errno));
	page = sysconf(_SC_PAGESIZE);
	device = bench_map(sizeof(*device), MAP_SHARED);
	fuse_fd = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fuse_fd < 0)
		bench_skip("there is no FUSE: %s", strerror(errno));
	release_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (release_fd < 0 || !mkdtemp(dir) || chdir(dir))
		bench_die_errno("cannot set the device up");
	bench_main_pid = getpid();
	atexit(device_remove);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse_fd);
	if (mkdir("fuse", 0700) ||
	    mount("fault_stuck", "fuse", "fuse", MS_NODEV | MS_NOSUID, options))
		bench_die_errno("cannot mount FUSE");
	header[1] = SWAP_SIZE / page - 1;
	memcpy(image + 1024, header, sizeof(header));
	memcpy(image + page - 10, "SWAPSPACE2", 10);
	server = fork();
	if (server < 0)
		bench_die_errno("fork");
	if (!server) {
		bench_die_with(bench_main_pid);
		/* What is swapped out goes to itself */
		if (mlockall(MCL_CURRENT))
			bench_die_errno("mlockall");
		serve(image);
	}
	close(fuse_fd);
	munmap(image, SWAP_SIZE + ANSWER);
	if (swap)
		make_swap();
}

#endif /* REGRESS_FAULT_STUCK_DEVICE_H */
