// SPDX-License-Identifier: GPL-2.0
/*
 * Random operations on a pipe, and the same on a model of what Linux 7.3.4 does:
 * writes and reads of all lengths, with buffers that cannot be accessed to their end
 * or are not in memory, packets, resizing, tee(), splice() and vmsplice().  After
 * each operation, what it returned, the bytes in the pipe (FIONREAD), whether it is
 * full, and the data have to be those of the model, and now and then the number of
 * slots in use, which a copy by tee() tells without a change to the pipe.
 *
 * One thread does all of it, so nothing depends on luck; what happened before a
 * difference is printed with the seed that brings it about again:
 *
 *	pipe_model_test [seed [operations]]
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kselftest.h"

#define MAX_SLOTS	64u	/* of the pipe, and of its copies */
#define ARENA		80	/* pages that buffers are in; behind them is nothing */
#define SEEDS		13
#define OPERATIONS	20000
#define HISTORY		24

enum { CAN_MERGE = 1, PACKET = 2 };

struct slot {
	unsigned char *data;
	ssize_t offset, len;
	int flags;
};

struct state {
	/* The model */
	struct slot slots[MAX_SLOTS];
	unsigned int head, tail, max;

	/* The pipe: its read end, and its write end as stream and for packets */
	int in[2], out[2][2];	/* [blocking, or not] */
	int teed;		/* a copy of what was in it, or -1 */
	unsigned char *teed_data;
	ssize_t teed_len;

	unsigned char *arena;
	int file;
	unsigned int rnd;
	unsigned char next;	/* so that no two writes are alike */
	char history[HISTORY][128];
	unsigned long nr_ops;
};

static ssize_t psz;

static unsigned int below(struct state *s, unsigned int n)
{
	s->rnd ^= s->rnd << 13;
	s->rnd ^= s->rnd >> 17;
	s->rnd ^= s->rnd << 5;
	return s->rnd % n;
}

static ssize_t result(ssize_t ret)
{
	return ret < 0 ? -errno : ret;
}

static void must(bool ok, const char *what)
{
	if (!ok)
		ksft_exit_fail_msg("%s: %s\n", what, strerror(errno));
}

__attribute__((format(printf, 2, 3)))
static void note(struct state *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->history[s->nr_ops % HISTORY], sizeof(s->history[0]), format, args);
	va_end(args);
}

/* Print what led to a difference; always false. */
__attribute__((format(printf, 2, 3)))
static bool differs(struct state *s, const char *format, ...)
{
	unsigned long i = s->nr_ops < HISTORY ? 0 : s->nr_ops + 1 - HISTORY;
	char text[256];
	va_list args;

	for (; i <= s->nr_ops; i++)
		ksft_print_msg("operation %lu: %s\n", i, s->history[i % HISTORY]);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ksft_print_msg("%s\n", text);
	return false;
}

/*
 * The model
 */

static unsigned int used(const struct state *s)
{
	return s->head - s->tail;
}

static struct slot *slot(struct state *s, unsigned int i)
{
	return &s->slots[i % MAX_SLOTS];
}

static ssize_t bytes(struct state *s)
{
	ssize_t sum = 0;
	unsigned int i;

	for (i = s->tail; i != s->head; i++)
		sum += slot(s, i)->len;
	return sum;
}

static void add_slot(struct state *s, const unsigned char *data, ssize_t len, int flags)
{
	struct slot *new = slot(s, s->head++);

	memcpy(new->data, data, len);
	new->offset = 0;
	new->len = len;
	new->flags = flags;
}

/* Of @len bytes, @good can be accessed. *@full: whether it has to wait for room. */
static ssize_t model_write(struct state *s, const unsigned char *data, ssize_t len,
			   ssize_t good, bool packets, bool *full)
{
	ssize_t odd = len % psz, ret = 0, n;
	struct slot *last = slot(s, s->head - 1);

	*full = false;
	if (odd && used(s) && last->flags & CAN_MERGE && last->offset + last->len + odd <= psz) {
		if (good < odd)
			return -EFAULT;
		memcpy(last->data + last->offset + last->len, data, odd);
		last->len += odd;
		ret = odd;
	}
	for (; ret < len; ret += n) {
		if (used(s) >= s->max) {
			*full = true;
			return ret ?: -EAGAIN;
		}
		n = len - ret < psz ? len - ret : psz;
		if (good - ret < n)
			return ret ?: -EFAULT;
		add_slot(s, data + ret, n, packets ? PACKET : CAN_MERGE);
	}
	return ret;
}

static ssize_t model_read(struct state *s, unsigned char *data, ssize_t len, ssize_t good)
{
	ssize_t ret = 0;

	while (ret < len && used(s)) {
		struct slot *first = slot(s, s->tail);
		ssize_t n = len - ret < first->len ? len - ret : first->len;

		if (good - ret < n)
			return ret ?: -EFAULT;
		memcpy(data + ret, first->data + first->offset, n);
		first->offset += n;
		first->len -= n;
		ret += n;
		if (!first->len || first->flags & PACKET)
			s->tail++;
		if (first->flags & PACKET)
			break;
	}
	return ret || !len ? ret : -EAGAIN;
}

/* Like read, but packets are nothing special. */
static ssize_t model_splice(struct state *s, unsigned char *data, ssize_t len)
{
	ssize_t ret = 0;

	while (ret < len && used(s)) {
		struct slot *first = slot(s, s->tail);
		ssize_t n = len - ret < first->len ? len - ret : first->len;

		memcpy(data + ret, first->data + first->offset, n);
		first->offset += n;
		first->len -= n;
		ret += n;
		if (!first->len)
			s->tail++;
	}
	return ret ?: -EAGAIN;
}

/*
 * The pipe
 */

static bool is_writable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, 0) == 1 && pfd.revents & POLLOUT;
}

static bool is_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1 && pfd.revents & POLLIN;
}

/* A length: often small, or close to a number of pages */
static ssize_t any_length(struct state *s)
{
	ssize_t max = below(s, 8) ? 20 : ARENA - 2;

	switch (below(s, 4)) {
	case 0:
		return below(s, 200) + 1;
	case 1:
		return below(s, psz) + 1;
	case 2:
		return (below(s, max) + 1) * psz + below(s, 5) - 2;
	default:
		return below(s, max * psz) + 1;
	}
}

/* A buffer of @len bytes, *@good of which can be accessed */
static unsigned char *any_buffer(struct state *s, ssize_t len, ssize_t *good)
{
	unsigned int page = below(s, ARENA);

	/* Some of it has to be faulted in first. */
	if (!below(s, 4))
		madvise(s->arena + page * psz, (ARENA - page) * psz, MADV_DONTNEED);
	*good = len;
	if (!len || below(s, 6))
		return s->arena + below(s, ARENA * psz - len + 1);
	switch (below(s, 4)) {
	case 0:
		*good = 0;
		break;
	case 1:
		*good = below(s, len / psz + 1) * psz;
		break;
	case 2:
		*good = len % psz + below(s, len / psz + 1) * psz;
		break;
	default:
		*good = below(s, len);
	}
	return s->arena + ARENA * psz - *good;
}

static bool op_write(struct state *s)
{
	ssize_t len = any_length(s), good, expected, ret, i;
	unsigned char *buf = any_buffer(s, len, &good);
	bool packets = !below(s, 5), full, nonblock;

	for (i = 0; i < good; i++)
		buf[i] = s->next + i * 7 + (i >> 8);
	s->next += 59;
	/* Unmap again what that has mapped. */
	if (!below(s, 4))
		madvise(s->arena, below(s, ARENA) * psz + psz, MADV_DONTNEED);
	expected = model_write(s, buf, len, good, packets, &full);
	nonblock = full || below(s, 2);
	if (!below(s, 4))
		madvise(s->arena, below(s, ARENA) * psz + psz, MADV_DONTNEED);
	if (len > 1 && good == len && !below(s, 3)) {
		ssize_t first = below(s, len);
		struct iovec iov[] = {
			{ .iov_base = buf, .iov_len = first },
			{ .iov_base = buf + first, .iov_len = len - first },
		};

		ret = result(writev(s->out[packets][nonblock], iov, 2));
	} else {
		ret = result(write(s->out[packets][nonblock], buf, len));
	}
	note(s, "write of %zd bytes, %zd of them good%s%s: %zd", len, good,
	     packets ? ", packets" : "", nonblock ? ", nonblocking" : "", ret);
	return ret == expected || differs(s, "expected %zd", expected);
}

static bool op_read(struct state *s)
{
	static unsigned char *data;
	ssize_t len = below(s, 50) ? any_length(s) : 0, good, expected, ret;
	unsigned char *buf = any_buffer(s, len, &good);

	if (!data)
		data = malloc(ARENA * psz);
	/* A fault in the copy may leave anything in the buffer. */
	expected = model_read(s, data, len, good);
	ret = result(read(s->in[expected == -EAGAIN || below(s, 2)], buf, len));
	note(s, "read of %zd bytes, %zd of them good: %zd", len, good, ret);
	if (ret != expected)
		return differs(s, "expected %zd", expected);
	return ret <= 0 || !memcmp(buf, data, ret) || differs(s, "wrong data");
}

static bool op_resize(struct state *s)
{
	unsigned int slots = 1u << below(s, 7);
	ssize_t expected = slots < used(s) ? -EBUSY : (ssize_t)slots * psz, ret;

	ret = result(fcntl(s->in[0], F_SETPIPE_SZ, (int)(slots * psz)));
	note(s, "resize to %u slots, %u in use: %zd", slots, used(s), ret);
	if (ret != expected)
		return differs(s, "expected %zd", expected);
	if (ret > 0)
		s->max = slots;
	return true;
}

/* A part of one page of a file, or of user memory, is not merged with. */
static bool op_splice_in(struct state *s)
{
	loff_t offset = below(s, 4) * psz + below(s, psz - 1);
	ssize_t len = below(s, psz - offset % psz) + 1, expected = len, ret;
	bool user = below(s, 2);
	static unsigned char *map;

	if (!map) {
		map = mmap(NULL, 4 * psz, PROT_READ, MAP_SHARED, s->file, 0);
		must(map != MAP_FAILED, "mmap");
	}
	if (used(s) < s->max)
		add_slot(s, map + offset, len, 0);
	else
		expected = -EAGAIN;
	if (user) {
		struct iovec iov = { .iov_base = map + offset, .iov_len = len };

		ret = result(vmsplice(s->out[0][1], &iov, 1, SPLICE_F_NONBLOCK));
	} else {
		ret = result(splice(s->file, &offset, s->out[0][1], NULL, len, SPLICE_F_NONBLOCK));
	}
	note(s, "%s of %zd bytes: %zd", user ? "vmsplice" : "splice in", len, ret);
	return ret == expected || differs(s, "expected %zd", expected);
}

static void make_pipe(int p[2], unsigned int slots)
{
	must(!pipe2(p, O_CLOEXEC | O_NONBLOCK), "pipe2");
	must(fcntl(p[1], F_SETPIPE_SZ, (int)(slots * psz)) == (int)(slots * psz), "F_SETPIPE_SZ");
}

/* Read all from @fd, and compare. */
static bool drain(struct state *s, int fd, const unsigned char *data, ssize_t len)
{
	unsigned char *buf = malloc(len + 1);
	ssize_t got, ret;
	bool ok;

	for (got = 0; got < len; got += ret) {
		ret = result(read(fd, buf + got, len - got));
		if (ret <= 0)
			break;
	}
	ok = got == len && !memcmp(buf, data, len);
	free(buf);
	return ok || differs(s, "%zd bytes of another pipe are wrong", len);
}

static bool op_splice_out(struct state *s)
{
	ssize_t len = any_length(s), expected, ret;
	unsigned char *data = malloc(len);
	bool ok;
	int q[2];

	make_pipe(q, MAX_SLOTS);
	expected = model_splice(s, data, len);
	ret = result(splice(s->in[1], NULL, q[1], NULL, len, SPLICE_F_NONBLOCK));
	note(s, "splice out of %zd bytes: %zd", len, ret);
	ok = ret == expected ? ret <= 0 || drain(s, q[0], data, ret) :
			       differs(s, "expected %zd", expected);
	close(q[0]);
	close(q[1]);
	free(data);
	return ok;
}

/* The copy of some operations ago has not changed. */
static bool check_teed(struct state *s)
{
	bool ok = s->teed < 0 || drain(s, s->teed, s->teed_data, s->teed_len);

	if (s->teed >= 0)
		close(s->teed);
	s->teed = -1;
	free(s->teed_data);
	s->teed_data = NULL;
	return ok;
}

/* How many slots are in use? Those that a copy does not have can be written to. */
static bool op_tee(struct state *s)
{
	ssize_t len = bytes(s), ret, n, pos = 0;
	unsigned char page[psz];
	unsigned int i;
	int q[2];

	if (!check_teed(s))
		return false;
	make_pipe(q, MAX_SLOTS);
	ret = result(tee(s->in[1], q[1], INT_MAX, SPLICE_F_NONBLOCK));
	note(s, "tee: %zd", ret);
	if (ret != (len ?: -EAGAIN))
		return differs(s, "expected %zd", len ?: -EAGAIN);
	memset(page, 0, psz);
	for (n = 0; write(q[1], page, psz) == psz; n++)
		;
	close(q[1]);
	if (n != (ssize_t)(MAX_SLOTS - used(s)))
		return differs(s, "%zd slots in use, expected %u", MAX_SLOTS - n, used(s));
	s->teed = q[0];
	s->teed_len = len;
	s->teed_data = malloc(len + 1);
	for (i = s->tail; i != s->head; i++) {
		struct slot *this = slot(s, i);

		memcpy(s->teed_data + pos, this->data + this->offset, this->len);
		pos += this->len;
	}
	return true;
}

static bool check_state(struct state *s)
{
	int n;

	must(!ioctl(s->in[0], FIONREAD, &n), "FIONREAD");
	if (n != bytes(s))
		return differs(s, "%d bytes in the pipe, expected %zd", n, bytes(s));
	if (is_writable(s->out[0][0]) != (used(s) < s->max))
		return differs(s, "%u of %u slots in use, but it is%s full", used(s), s->max,
			       used(s) < s->max ? "" : " not");
	if (is_readable(s->in[0]) != (used(s) > 0))
		return differs(s, "%u slots in use, but it is%s empty", used(s),
			       used(s) ? "" : " not");
	return true;
}

static int reopen(int fd, int flags, int more)
{
	char path[32];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = open(path, flags | O_CLOEXEC);
	must(ret >= 0, path);
	/* open() does not know O_DIRECT for pipes. */
	must(!more || !fcntl(ret, F_SETFL, fcntl(ret, F_GETFL) | more), "F_SETFL");
	return ret;
}

static void run(unsigned int seed, unsigned long operations)
{
	struct state *s = calloc(1, sizeof(*s));
	bool ok = true;
	unsigned int i;
	int p[2];

	must(s, "calloc");
	s->rnd = seed * 2654435761u + 1;
	s->max = 16;
	s->teed = -1;
	for (i = 0; i < MAX_SLOTS; i++)
		s->slots[i].data = malloc(psz);
	must(!pipe2(p, O_CLOEXEC), "pipe2");
	must(fcntl(p[1], F_SETPIPE_SZ, (int)(s->max * psz)) > 0, "F_SETPIPE_SZ");
	s->in[0] = p[0];
	s->in[1] = reopen(p[0], O_RDONLY | O_NONBLOCK, 0);
	s->out[0][0] = p[1];
	s->out[0][1] = reopen(p[1], O_WRONLY | O_NONBLOCK, 0);
	s->out[1][0] = reopen(p[1], O_WRONLY, O_DIRECT);
	s->out[1][1] = reopen(p[1], O_WRONLY | O_NONBLOCK, O_DIRECT);

	s->file = memfd_create("arena", MFD_CLOEXEC);
	must(s->file >= 0 && !ftruncate(s->file, ARENA * psz), "memfd");
	s->arena = mmap(NULL, 2 * ARENA * psz, PROT_READ | PROT_WRITE, MAP_SHARED, s->file, 0);
	must(s->arena != MAP_FAILED, "mmap");
	/* Pages of a file that are spliced must not change with the arena. */
	s->file = memfd_create("file", MFD_CLOEXEC);
	must(s->file >= 0, "memfd");
	for (i = 0; i < (size_t)psz * 4; i++)
		s->arena[i] = i * 11 + (i >> 8);
	must(write(s->file, s->arena, 4 * psz) == 4 * psz, "write");

	for (; ok && s->nr_ops < operations; s->nr_ops++) {
		switch (below(s, 32)) {
		case 0 ... 13:
			ok = op_write(s);
			break;
		case 14 ... 24:
			ok = op_read(s);
			break;
		case 25 ... 26:
			ok = op_splice_in(s);
			break;
		case 27:
			ok = op_splice_out(s);
			break;
		case 28 ... 29:
			ok = op_resize(s);
			break;
		default:
			ok = op_tee(s);
		}
		ok = ok && check_state(s);
		if (!ok)
			break;
	}
	ok = ok && check_teed(s);
	ksft_test_result(ok, "seed %u, %lu operations\n", seed, s->nr_ops);
	for (i = 0; i < 4; i++)
		close(s->out[i / 2][i % 2]);
	close(s->in[0]);
	close(s->in[1]);
	close(s->file);
	munmap(s->arena, 2 * ARENA * psz);
	for (i = 0; i < MAX_SLOTS; i++)
		free(s->slots[i].data);
	free(s);
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long ret = strtoul(text, &end, 10);

	if (!*text || *end || !ret) {
		fprintf(stderr, "usage: pipe_model_test [seed [operations]]\n");
		exit(2);
	}
	return ret;
}

int main(int argc, char **argv)
{
	unsigned long operations = argc > 2 ? number(argv[2]) : OPERATIONS;
	unsigned long seed = argc > 1 ? number(argv[1]) : 0;
	unsigned int i;

	psz = sysconf(_SC_PAGESIZE);
	ksft_print_header();
	ksft_set_plan(seed ? 1 : SEEDS);
	if (seed)
		run(seed, operations);
	for (i = 1; !seed && i <= SEEDS; i++)
		run(i, operations);
	ksft_finished();
}
