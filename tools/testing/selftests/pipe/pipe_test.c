// SPDX-License-Identifier: GPL-2.0
/*
 * What user space relies on in pipes: which bytes arrive, which error wins, what
 * a partial write counts, how writes are laid out in slots, who is woken up.
 *
 * The tests of stuck want what pipes do since they copy without pipe->mutex; before
 * that, they time out.  The others nail down what pipes have always done.
 *
 * Each byte of the data depends on a seed and on its position.  Functions return
 * -errno on failure.  Each test is a process; its end frees what it has used.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define NR(array)	((ssize_t)ARRAY_SIZE(array))
#define SLOTS		16	/* of a pipe, unless a test wants another number */
#define TIMEOUT		120	/* seconds; debug kernels in emulators are slow */
#define WAIT_MS		10000	/* for what should happen at once */

/* Whether a condition comes true in time */
#define WAIT_FOR(cond) ({				\
	int __ms = WAIT_MS;				\
							\
	while (!(cond) && --__ms)			\
		usleep(1000);				\
	__ms > 0;					\
})

static ssize_t psz;
static unsigned char *scratch;

static void __attribute__((constructor)) init(void)
{
	psz = sysconf(_SC_PAGESIZE);
	scratch = malloc(256 * psz);
}

static ssize_t result(ssize_t ret)
{
	return ret < 0 ? -errno : ret;
}

static unsigned char pattern(unsigned int seed, ssize_t pos)
{
	return (((unsigned int)pos + seed * 40503u) * 2654435761u) >> 24;
}

static unsigned char *fill(unsigned char *buf, ssize_t len, unsigned int seed, ssize_t pos)
{
	for (ssize_t i = 0; i < len; i++)
		buf[i] = pattern(seed, pos + i);
	return buf;
}

static bool matches(const unsigned char *buf, ssize_t len, unsigned int seed, ssize_t pos)
{
	ssize_t i = 0;

	while (i < len && buf[i] == pattern(seed, pos + i))
		i++;
	return i == len;
}

static ssize_t put(int fd, ssize_t len, unsigned int seed, ssize_t pos)
{
	return result(write(fd, fill(scratch, len, seed, pos), len));
}

/* One read; an error if it brings something else. */
static ssize_t get(int fd, ssize_t len, unsigned int seed, ssize_t pos)
{
	ssize_t ret = result(read(fd, scratch, len));

	return ret > 0 && !matches(scratch, ret, seed, pos) ? -EILSEQ : ret;
}

static ssize_t bytes_in(int fd)
{
	int n, ret = ioctl(fd, FIONREAD, &n);

	return ret < 0 ? -errno : n;
}

static bool writable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 0) == 1;
}

static void set_flag(int fd, int flag, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, on ? flags | flag : flags & ~flag);
}

/* Users may not have as many as they like. */
static void set_slots(struct __test_metadata *_metadata, int fd, ssize_t slots)
{
	ssize_t size = result(fcntl(fd, F_SETPIPE_SZ, slots * psz));

	if (size == -EPERM)
		SKIP(exit(KSFT_SKIP), "%zd slots: %s", slots, strerror(EPERM));
	ASSERT_EQ(slots * psz, size);
}

static void make_pipe(struct __test_metadata *_metadata, int p[2], ssize_t slots)
{
	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	set_slots(_metadata, p[1], slots);
}

/* Move whole pages, which take a slot each, one by one; returns how many. */
static ssize_t move_pages(ssize_t (*move)(int, ssize_t, unsigned int, ssize_t), int fd, ssize_t nr)
{
	ssize_t n = 0;

	while (n < nr && move(fd, psz, 1000, 0) == psz)
		n++;
	return n;
}

/* Returns how many slots were free. */
static ssize_t fill_up(int fd)
{
	ssize_t n = 0;

	/* With room for it, a write does not block. */
	while (writable(fd))
		n += move_pages(put, fd, 1);
	return n;
}

/*
 * Expect exactly these slots, and read them.  A pipe that is full can be written
 * to when the last byte of a slot was read, and not before.
 */
static void expect_slots(struct __test_metadata *_metadata, const int p[2],
			 unsigned int seed, const ssize_t *lens, ssize_t nr)
{
	ssize_t i, pos = 0, slots = fcntl(p[1], F_GETPIPE_SZ) / psz;

	ASSERT_EQ(slots - nr, fill_up(p[1]));
	for (i = 0; i < nr; pos += lens[i++]) {
		if (lens[i] > 1)
			ASSERT_EQ(lens[i] - 1, get(p[0], lens[i] - 1, seed, pos));
		ASSERT_FALSE(writable(p[1]));
		ASSERT_EQ(1, get(p[0], 1, seed, pos + lens[i] - 1));
		ASSERT_EQ(1, fill_up(p[1]));
	}
	ASSERT_EQ(slots, move_pages(get, p[0], slots));
	ASSERT_EQ(0, bytes_in(p[0]));
}

/* After an error, a pipe must be as good as new. */
static void expect_works(struct __test_metadata *_metadata, const int p[2])
{
	const ssize_t lens[] = { psz, psz, 77 };

	ASSERT_EQ(2 * psz + 77, put(p[1], 2 * psz + 77, 99, 0));
	expect_slots(_metadata, p, 99, lens, NR(lens));
}

/* A buffer of @good bytes that ends where nothing can be accessed. */
static unsigned char *guarded(struct __test_metadata *_metadata, ssize_t good)
{
	ssize_t len = (good + psz - 1) / psz * psz, hole = 20 * psz;
	int fd = memfd_create("empty", MFD_CLOEXEC);
	unsigned char *map = mmap(NULL, len + hole, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	ASSERT_NE(MAP_FAILED, map);
	/* Beyond the end of a file, so that nothing else is mapped there. */
	ASSERT_EQ(map + len, mmap(map + len, hole, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, fd, 0));
	close(fd);
	return map + len - good;
}

/* Reads and writes in threads */
struct io {
	int fd;
	unsigned char *buf;
	ssize_t len;
	ssize_t call;		/* repeat calls of this length until all is done */
	bool is_read;
	pthread_t thread;
	pid_t tid;
	ssize_t ret;
	ssize_t nr_full;	/* how often there was no room */
	bool done;
};

static void *io_thread(void *arg)
{
	struct io *io = arg;
	ssize_t sum = 0, len, ret;

	__atomic_store_n(&io->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	do {
		len = io->call ?: io->len;
		ret = result(io->is_read ? read(io->fd, io->buf + sum, len) :
					   write(io->fd, io->buf + sum, len));
		if (ret > 0)
			sum += ret;
		else if (ret == -EAGAIN)
			io->nr_full += poll(&(struct pollfd){ io->fd, POLLOUT, 0 }, 1, -1);
	} while (io->call && (ret > 0 || ret == -EAGAIN) && sum < io->len);
	io->ret = ret < 0 ? ret : sum;
	__atomic_store_n(&io->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool io_done(struct io *io)
{
	return __atomic_load_n(&io->done, __ATOMIC_ACQUIRE);
}

/* Neither running nor waiting for a mutex */
static bool io_sleeps(struct io *io)
{
	char name[64], state = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", __atomic_load_n(&io->tid, __ATOMIC_ACQUIRE));
	f = fopen(name, "r");
	if (f && (fscanf(f, "%*d (%*[^)]) %c", &state) != 1 || fclose(f)))
		return false;
	return state == 'S';
}

static void io_start(struct __test_metadata *_metadata, struct io *io)
{
	io->done = false;
	io->tid = 0;
	ASSERT_EQ(0, pthread_create(&io->thread, NULL, io_thread, io));
}

static void io_start_blocked(struct __test_metadata *_metadata, struct io *io)
{
	io_start(_metadata, io);
	ASSERT_TRUE(WAIT_FOR(io_sleeps(io)));
	ASSERT_FALSE(io_done(io));
}

static ssize_t io_join(struct io *io)
{
	if (!WAIT_FOR(io_done(io)))
		return -ETIMEDOUT;
	pthread_join(io->thread, NULL);
	return io->ret;
}

/* A buffer some of whose pages are missing; who needs them waits. */
struct lazy {
	int uffd;
	unsigned char *map, *src;
};

/* Pages that are there stay. */
static void lazy_provide(struct lazy *l, ssize_t first, ssize_t end)
{
	struct uffdio_copy copy = { .len = psz };

	for (; first < end; first++) {
		copy.dst = (unsigned long)l->map + first * psz;
		copy.src = (unsigned long)l->src + first * psz;
		ioctl(l->uffd, UFFDIO_COPY, &copy);
	}
}

/* Of @nr pages, those from @first to @end are missing. */
static void lazy_alloc(struct __test_metadata *_metadata, struct lazy *l, ssize_t nr,
		       ssize_t pos, ssize_t first, ssize_t end)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };

	l->uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (l->uffd < 0)
		SKIP(exit(KSFT_SKIP), "userfaultfd: %s", strerror(errno));
	ASSERT_EQ(0, ioctl(l->uffd, UFFDIO_API, &api));
	l->map = mmap(NULL, nr * psz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, l->map);
	l->src = fill(malloc(nr * psz), nr * psz, 1, pos);
	reg.range.start = (unsigned long)l->map;
	reg.range.len = nr * psz;
	ASSERT_EQ(0, ioctl(l->uffd, UFFDIO_REGISTER, &reg));
	lazy_provide(l, 0, first);
	lazy_provide(l, end, nr);
}

/* The page that somebody waits for, or -1 */
static ssize_t lazy_fault(const struct lazy *l)
{
	struct uffd_msg msg;

	if (read(l->uffd, &msg, sizeof(msg)) != sizeof(msg))
		return -1;
	return (ssize_t)(msg.arg.pagefault.address - (unsigned long)l->map) / psz;
}

static int nr_signals;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&nr_signals, 1, __ATOMIC_SEQ_CST);
}

static void count_signals(int sig)
{
	sigaction(sig, &(struct sigaction){ .sa_handler = on_signal }, NULL);
}

FIXTURE(pipe) { int p[2]; };

FIXTURE_SETUP(pipe) { make_pipe(_metadata, self->p, SLOTS); }
FIXTURE_TEARDOWN(pipe) { }

/*
 * The first len % page size bytes of a write go to the end of the last slot if
 * all of them fit there; if not, they come last.  The rest takes a slot a page.
 * A slot is written as a whole or not at all.  No room comes before bad memory.
 */
TEST_F(pipe, write_layout)
{
	const struct layout {
		ssize_t used;		/* pages that come first */
		ssize_t before;		/* bytes in the next slot, then a write... */
		ssize_t len, hole;	/* ...whose last bytes cannot be accessed */
		ssize_t err;		/* the result, if nothing was written */
		ssize_t slots[4];	/* what comes after the pages then */
	} tests[] = {
		{ 0, 100, psz + 200, 0, 0, { 300, psz } },
		{ 0, psz - 1, 1, 0, 0, { psz } },
		{ 0, psz - 1, 2, 0, 0, { psz - 1, 2 } },
		{ 0, psz - 1, psz + 1, 0, 0, { psz, psz } },
		{ 0, psz - 1, psz + 2, 0, 0, { psz - 1, psz, 2 } },
		{ 0, psz + 10, psz + 20, 0, 0, { psz, 30, psz } },
		{ 0, psz + 10, 2 * psz - 5, 0, 0, { psz, 10, psz, psz - 5 } },
		/* No slot is free, or some are. */
		{ 16, 0, 2 * psz, 2 * psz, -EAGAIN, { } },
		{ 15, 100, 50, 0, 0, { 150 } },
		{ 15, 100, 2 * psz + 30, 0, 0, { 130 } },
		{ 15, 100, psz, psz, -EAGAIN, { 100 } },
		{ 15, 100, psz + 20, psz + 20, -EFAULT, { 100 } },
		{ 14, 0, 16 * psz + 33, 0, 0, { psz, psz } },
		{ 13, 100, 16 * psz + 33, 0, 0, { 133, psz, psz } },
		{ 14, 0, 7 * psz, 5 * psz, 0, { psz, psz } },
		/* There is room, but the end of the buffer is bad. */
		{ 0, 0, 16 * psz, 14 * psz + 1, 0, { psz } },
		{ 0, 0, 100, 1, -EFAULT, { } },
		{ 0, 0, 3 * psz + 100, 100, 0, { psz, psz, psz } },
		{ 0, 50, 3 * psz + 100, 100, 0, { 150, psz, psz } },
		{ 0, 50, 100, 1, -EFAULT, { 50 } },
		{ 0, 50, 2 * psz + 100, 2 * psz, 0, { 150 } },
		{ 0, 50, 2 * psz + 100, 2 * psz + 1, -EFAULT, { 50 } },
		{ 0, psz - 50, 2 * psz + 100, 2 * psz, -EFAULT, { psz - 50 } },
	};
	ssize_t i, nr, sum, good;
	unsigned char *buf;

	for (i = 0; i < NR(tests); i++) {
		const struct layout *t = &tests[i];

		/* Without blocking, unless there is room for all */
		set_flag(self->p[1], O_NONBLOCK, t->used || i & 1);
		ASSERT_EQ(t->used, move_pages(put, self->p[1], t->used));
		ASSERT_EQ(t->before, put(self->p[1], t->before, i, 0));
		for (nr = 0, sum = 0; nr < NR(t->slots) && t->slots[nr]; nr++)
			sum += t->slots[nr];
		good = t->len - t->hole;
		buf = fill(guarded(_metadata, good), good, i, t->before);
		ASSERT_EQ(t->err ?: sum - t->before, result(write(self->p[1], buf, t->len))) {
			TH_LOG("line %zd: %zd bytes after %zd", i, t->len, t->before);
		}
		ASSERT_EQ(t->used, move_pages(get, self->p[0], t->used));
		/* A read that fails loses nothing. */
		if (nr)
			ASSERT_EQ(-EFAULT, result(read(self->p[0], guarded(_metadata, 0), psz)));
		expect_slots(_metadata, self->p, i, t->slots, nr);
	}
}

/* A packet per read, and a slot per packet; what does not fit the buffer is lost. */
TEST_F(pipe, packets)
{
	ssize_t i;

	set_flag(self->p[1], O_NONBLOCK | O_DIRECT, true);
	ASSERT_EQ(100, put(self->p[1], 100, 1, 0));
	ASSERT_EQ(2 * psz + 10, put(self->p[1], 2 * psz + 10, 2, 0));
	ASSERT_EQ(10, get(self->p[0], 10, 1, 0));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(i < 2 ? psz : 10, get(self->p[0], 8 * psz, 2, i * psz));
	for (i = 1; i < SLOTS; i++)
		ASSERT_EQ(i, put(self->p[1], i, i, 0));
	ASSERT_EQ(psz, put(self->p[1], psz + 5, 40, 0));
	for (i = 1; i < SLOTS; i++)
		ASSERT_EQ(i, get(self->p[0], psz, i, 0));
	ASSERT_EQ(psz, get(self->p[0], 8 * psz, 40, 0));
	set_flag(self->p[1], O_DIRECT, false);
	expect_works(_metadata, self->p);
}

/* Writes of up to PIPE_BUF are not mixed with others, even if they have to wait. */
static void atomic_writes(struct __test_metadata *_metadata, const int p[2], ssize_t slots,
			  ssize_t len, bool nonblock)
{
	ssize_t pos[3] = { }, have, ret, nr_full = 0, changes = 0, last = 0, i, n;
	struct io io[3] = { };

	set_slots(_metadata, p[1], slots);
	set_flag(p[1], O_NONBLOCK, nonblock);
	for (i = 0; i < NR(io); i++) {
		io[i] = (struct io){ .fd = p[1], .len = 200 * len, .call = len };
		io[i].buf = fill(malloc(io[i].len), io[i].len, i, 0);
		io_start(_metadata, &io[i]);
	}
	for (n = 0; n < NR(io) * 200; n++, pos[i] += len, last = i) {
		/* Have all of them wait now and then. */
		for (i = 0; i < NR(io) && n % 8 == 0; i++)
			ASSERT_TRUE(WAIT_FOR(io_done(&io[i]) || io_sleeps(&io[i])));
		for (have = 0; have < len; have += ret) {
			ret = result(read(p[0], scratch + have, len - have));
			ASSERT_GT(ret, 0);
		}
		for (i = 0; i < NR(io) && !matches(scratch, len, i, pos[i]); i++)
			;
		ASSERT_LT(i, NR(io));
		changes += i != last;
	}
	for (i = 0; i < NR(io); i++) {
		ASSERT_EQ(io[i].len, io_join(&io[i]));
		nr_full += io[i].nr_full;
	}
	/* Have they met, and found no room? */
	ASSERT_GE(changes, 20);
	ASSERT_EQ(nonblock, nr_full > 20);
}

TEST_F_TIMEOUT(pipe, atomic_up_to_pipe_buf, TIMEOUT)
{
	for (int i = 0; i < 4; i++)
		atomic_writes(_metadata, self->p, 1 + i / 2, PIPE_BUF / (1 + i / 2) + i / 2, i % 2);
}

/* That nobody reads comes first, whatever else is wrong. */
TEST_F(pipe, epipe_wins)
{
	const ssize_t lens[] = { 1, psz - 1, psz, psz + 1, 5 * psz + 3 };
	unsigned char *bad = guarded(_metadata, 0);
	ssize_t i, used;

	count_signals(SIGPIPE);
	for (used = 0; used <= SLOTS; used += SLOTS) {
		make_pipe(_metadata, self->p, SLOTS);
		ASSERT_EQ(used, move_pages(put, self->p[1], used));
		ASSERT_EQ(0, close(self->p[0]));
		for (i = 0; i < NR(lens); i++) {
			ASSERT_EQ(-EPIPE, put(self->p[1], lens[i], 1, 0));
			ASSERT_EQ(-EPIPE, result(write(self->p[1], bad, lens[i])));
		}
	}
	ASSERT_EQ(2 * 2 * NR(lens), nr_signals);
}

/* One writer is woken up when there is room, and wakes the next. */
TEST_F(pipe, two_blocked_writers)
{
	struct io io[2];
	int i, pass;

	for (pass = 0; pass < 2; pass++) {
		ASSERT_EQ(SLOTS, fill_up(self->p[1]));
		for (i = 0; i < 2; i++) {
			io[i] = (struct io){ .fd = self->p[1], .len = psz };
			io[i].buf = fill(malloc(psz), psz, i, 0);
			io_start_blocked(_metadata, &io[i]);
		}
		/* More slots are as good as a reader. */
		if (pass)
			set_slots(_metadata, self->p[1], 2 * SLOTS);
		else
			ASSERT_EQ(SLOTS * psz, read(self->p[0], scratch, SLOTS * psz));
		ASSERT_EQ(psz, io_join(&io[0]));
		ASSERT_EQ(psz, io_join(&io[1]));
		ASSERT_EQ(pass * SLOTS, move_pages(get, self->p[0], pass * SLOTS));
		ASSERT_EQ(2 * psz, result(read(self->p[0], scratch, SLOTS * psz)));
		i = matches(scratch, psz, 1, 0);
		ASSERT_TRUE(matches(scratch, psz, i, 0) && matches(scratch + psz, psz, !i, 0));
	}
}

/* A page that another pipe has, too, is not written to, now or later. */
TEST_F(pipe, tee_and_recycle)
{
	const ssize_t lens[] = { 1, psz, 2 * psz + 5, 10 * psz };
	ssize_t i, len;
	int q[2];

	make_pipe(_metadata, q, SLOTS);
	for (i = 0; i < 2 * NR(lens); i++) {
		int *first = i & 1 ? self->p : q, *last = i & 1 ? q : self->p;

		len = lens[i / 2];
		ASSERT_EQ(len, put(self->p[1], len, i, 0));
		ASSERT_EQ(len, result(tee(self->p[0], q[1], len, 0)));
		/* The first one goes on with the same slot, then with other pages. */
		ASSERT_EQ(10, put(first[1], 10, i, len));
		ASSERT_EQ(len + 10, get(first[0], len + 10, i, 0));
		ASSERT_EQ(12, move_pages(put, first[1], 12));
		ASSERT_EQ(len, get(last[0], len, i, 0));
		ASSERT_EQ(12, move_pages(get, first[0], 12));
	}
}

/* Programs rely on an edge for every write, even if nobody has read the last. */
TEST_F(pipe, epollet_every_write)
{
	const ssize_t lens[] = { 1, 1, psz, 100, psz - 100, 2 * psz + 5, 7 };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[0], &ev));
	for (ssize_t i = 0; i < NR(lens); i++) {
		ASSERT_EQ(lens[i], put(self->p[1], lens[i], 1, 0));
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
		ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	}
}

/*
 * A blocking write, and what of it there is room for.  That has to be in the pipe
 * before the writer waits for the rest of its buffer, which may not come before
 * somebody has read it.
 */
FIXTURE(fits) {
	int p[2];
	struct lazy l;
	struct io io;
	ssize_t filler, fits;
};

FIXTURE_VARIANT(fits) {
	ssize_t used;		/* slots */
	ssize_t before;		/* bytes in the last of them, if not a page */
	ssize_t pages, odd;	/* to be written */
	ssize_t freed;		/* slots, while it sleeps */
};

FIXTURE_VARIANT_ADD(fits, some) { .used = 15, .pages = 2 };
FIXTURE_VARIANT_ADD(fits, some_merged) { .used = 15, .before = 50, .pages = 2, .odd = 100 };
FIXTURE_VARIANT_ADD(fits, many) { .used = 6, .pages = 20, .odd = 100 };
FIXTURE_VARIANT_ADD(fits, none) { .used = 16, .pages = 2, .freed = 1 };
FIXTURE_VARIANT_ADD(fits, none_odd) { .used = 16, .pages = 2, .odd = 100, .freed = 1 };
FIXTURE_VARIANT_ADD(fits, merged) { .used = 16, .before = 50, .pages = 2, .odd = 9, .freed = 1 };
FIXTURE_VARIANT_ADD(fits, none_yet) { .used = 16, .pages = 2 };
FIXTURE_VARIANT_ADD(fits, none_many) { .used = 16, .pages = 20, .freed = 5 };

/* The writer sleeps, and not for a page of its buffer. */
static void expect_in_pipe(struct __test_metadata *_metadata, struct io *io,
			   const struct lazy *l, ssize_t bytes)
{
	ASSERT_TRUE(WAIT_FOR(io_sleeps(io) && bytes_in(io->fd) == bytes));
	ASSERT_EQ(-1, lazy_fault(l));
	ASSERT_FALSE(io_done(io));
}

FIXTURE_SETUP(fits)
{
	ssize_t before = variant->before, nr = variant->pages + 1, bytes;

	make_pipe(_metadata, self->p, SLOTS);
	self->filler = variant->used - !!before;
	self->fits = (SLOTS - variant->used) * psz + (before ? variant->odd : 0);
	bytes = self->filler * psz + before;
	ASSERT_EQ(self->filler, move_pages(put, self->p[1], self->filler));
	ASSERT_EQ(before, put(self->p[1], before, 1, 0));
	/* All is missing that will not have found room when it sleeps again. */
	lazy_alloc(_metadata, &self->l, nr, before, variant->freed + (self->fits + psz - 1) / psz,
		   nr);
	self->io = (struct io){ .fd = self->p[1], .buf = self->l.map };
	self->io.len = variant->pages * psz + variant->odd;
	io_start(_metadata, &self->io);
	expect_in_pipe(_metadata, &self->io, &self->l, bytes + self->fits);
	ASSERT_EQ(variant->freed, move_pages(get, self->p[0], variant->freed));
	expect_in_pipe(_metadata, &self->io, &self->l, bytes + self->fits);
	self->filler -= variant->freed;
	self->fits += variant->freed * psz;
}

FIXTURE_TEARDOWN(fits) { }

TEST_F_TIMEOUT(fits, read, TIMEOUT)
{
	ssize_t filler = self->filler * psz, bytes = variant->before + self->fits;

	/* In one read: as soon as there is room, it may wait with the mutex held. */
	ASSERT_EQ(filler + bytes, result(read(self->p[0], scratch, filler + bytes)));
	ASSERT_TRUE(matches(scratch + filler, bytes, 1, 0));
	ASSERT_TRUE(WAIT_FOR(lazy_fault(&self->l) >= 0));
	lazy_provide(&self->l, 0, variant->pages + 1);
	ASSERT_EQ(self->io.len, io_join(&self->io));
	ASSERT_EQ(self->io.len - self->fits, get(self->p[0], self->io.len, 1, bytes));
	expect_works(_metadata, self->p);
}

TEST_F_TIMEOUT(fits, signal, TIMEOUT)
{
	count_signals(SIGUSR1);
	pthread_kill(self->io.thread, SIGUSR1);
	ASSERT_EQ(self->fits ?: -EINTR, io_join(&self->io));
	ASSERT_EQ(self->filler, move_pages(get, self->p[0], self->filler));
	if (variant->before + self->fits)
		ASSERT_EQ(variant->before + self->fits, get(self->p[0], SLOTS * psz, 1, 0));
	expect_works(_metadata, self->p);
}

TEST_F_TIMEOUT(fits, close, TIMEOUT)
{
	count_signals(SIGPIPE);
	ASSERT_EQ(0, close(self->p[0]));
	ASSERT_EQ(self->fits ?: -EPIPE, io_join(&self->io));
	ASSERT_EQ(1, nr_signals);
}

/* Somebody waits for a page of his buffer, and nobody else waits for him. */
FIXTURE(stuck) {
	int p[2];
	struct lazy l;
	struct io io;
};

FIXTURE_VARIANT(stuck) {
	ssize_t pages, odd, first, end;	/* from first to end they are missing */
};

FIXTURE_VARIANT_ADD(stuck, one_page) { .pages = 1, .first = 0, .end = 1 };
FIXTURE_VARIANT_ADD(stuck, all) { .pages = 16, .first = 0, .end = 16 };
FIXTURE_VARIANT_ADD(stuck, last) { .pages = 16, .first = 15, .end = 16 };
FIXTURE_VARIANT_ADD(stuck, odd) { .pages = 2, .odd = 100, .first = 0, .end = 1 };

FIXTURE_SETUP(stuck)
{
	make_pipe(_metadata, self->p, 2 * SLOTS);
	lazy_alloc(_metadata, &self->l, variant->pages + 1, variant->odd, variant->first,
		   variant->end);
	self->io = (struct io){ .buf = self->l.map, .len = variant->pages * psz + variant->odd };
}

FIXTURE_TEARDOWN(stuck) { }

/* Others use the pipe, which has no more than @bytes. */
static void start_stuck(struct __test_metadata *_metadata, struct io *io,
			const struct lazy *l, int fd, ssize_t bytes)
{
	io_start(_metadata, io);
	ASSERT_TRUE(WAIT_FOR(lazy_fault(l) >= 0));
	ASSERT_GE(bytes, bytes_in(fd));
	ASSERT_EQ(psz + 10, put(fd, psz + 10, 2, 0));
}

TEST_F_TIMEOUT(stuck, writer, TIMEOUT / 4)
{
	ASSERT_EQ(variant->odd, put(self->p[1], variant->odd, 1, 0));
	self->io.fd = self->p[1];
	start_stuck(_metadata, &self->io, &self->l, self->p[1], variant->odd);
	if (variant->odd)
		ASSERT_EQ(variant->odd, get(self->p[0], variant->odd, 1, 0));
	ASSERT_EQ(psz + 10, get(self->p[0], psz + 10, 2, 0));
	ASSERT_FALSE(io_done(&self->io));
	lazy_provide(&self->l, 0, variant->pages + 1);
	ASSERT_EQ(self->io.len, io_join(&self->io));
	ASSERT_EQ(self->io.len, get(self->p[0], 20 * psz, 1, variant->odd));
	expect_works(_metadata, self->p);
}

TEST_F_TIMEOUT(stuck, reader, TIMEOUT / 4)
{
	const ssize_t len = variant->pages * psz - variant->odd;

	ASSERT_EQ(len, put(self->p[1], len, 3, 0));
	/* It waits before it reads, and for no memory but for what it has found. */
	madvise(self->l.map, (variant->pages + 1) * psz, MADV_DONTNEED);
	self->io = (struct io){ .fd = self->p[0], .is_read = true, .buf = self->l.map,
				.len = (variant->pages + 1) * psz };
	start_stuck(_metadata, &self->io, &self->l, self->p[1], len);
	ASSERT_EQ(0, close(self->p[1]));
	lazy_provide(&self->l, 0, variant->pages);
	ASSERT_EQ(len, io_join(&self->io));
	ASSERT_TRUE(matches(self->l.map, len, 3, 0));
	ASSERT_EQ(psz + 10, get(self->p[0], 2 * psz, 2, 0));
	ASSERT_EQ(0, get(self->p[0], 1, 0, 0));
}

/* Only one of the writers that wait is woken up.  It must not keep that. */
TEST_F_TIMEOUT(stuck, waiter, TIMEOUT / 4)
{
	struct io other = { .fd = self->p[1], .len = 4 * psz };
	struct io reader = { .fd = self->p[0], .is_read = true, .call = psz };

	set_slots(_metadata, self->p[1], 2);
	ASSERT_EQ(2, fill_up(self->p[1]));
	self->io.fd = self->p[1];
	self->io.len = variant->pages * psz;
	io_start_blocked(_metadata, &self->io);
	/* It waits for room, and not for its buffer. */
	ASSERT_EQ(-1, lazy_fault(&self->l));
	other.buf = fill(malloc(other.len), other.len, 2, 0);
	io_start_blocked(_metadata, &other);
	reader.len = 2 * psz + self->io.len + other.len;
	reader.buf = malloc(reader.len);
	io_start(_metadata, &reader);
	ASSERT_EQ(other.len, io_join(&other));
	ASSERT_FALSE(io_done(&self->io));
	lazy_provide(&self->l, 0, variant->pages + 1);
	ASSERT_EQ(self->io.len, io_join(&self->io));
	ASSERT_EQ(reader.len, io_join(&reader));
}

/*
 * Events of a large write are no more than there have always been: for the reader,
 * one each time that the pipe is full, and one in the end; for writers, one each
 * time that it is full no more.  The buffer comes page by page, so that no two of
 * them are taken for one.
 */
static void events(struct __test_metadata *_metadata, const int p[2], ssize_t slots)
{
	ssize_t page, got = 0, size = slots * psz, nr_in = 0, nr_out = 0, nr_sig = 0;
	struct epoll_event ev, in = { .events = EPOLLIN | EPOLLET };
	struct epoll_event out = { .events = EPOLLOUT | EPOLLET };
	int ep_in = epoll_create1(EPOLL_CLOEXEC), ep_out = epoll_create1(EPOLL_CLOEXEC);
	struct io io = { .fd = p[1], .len = 3 * size };
	struct lazy l;
	bool done;
	sigset_t set;

	set_slots(_metadata, p[1], slots);
	lazy_alloc(_metadata, &l, 3 * slots, 0, 0, 3 * slots);
	io.buf = l.map;

	/* Real-time signals are queued, so that none gets lost. */
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ASSERT_EQ(0, fcntl(p[0], F_SETOWN, getpid()) | fcntl(p[0], F_SETSIG, SIGRTMIN));
	set_flag(p[0], O_ASYNC, true);
	ASSERT_EQ(0, epoll_ctl(ep_in, EPOLL_CTL_ADD, p[0], &in));
	ASSERT_EQ(0, epoll_ctl(ep_out, EPOLL_CTL_ADD, p[1], &out));
	ASSERT_EQ(1, epoll_wait(ep_out, &ev, 1, 0));
	io_start(_metadata, &io);
	do {
		done = io_done(&io);
		page = lazy_fault(&l);
		nr_in += epoll_wait(ep_in, &ev, 1, 0);
		nr_out += epoll_wait(ep_out, &ev, 1, 0);
		if (page >= 0) {
			lazy_provide(&l, page, page + 1);
		} else if (io_sleeps(&io) && !writable(p[1])) {
			nr_in += epoll_wait(ep_in, &ev, 1, 0);
			ASSERT_EQ(size, read(p[0], scratch, size));
			nr_out += epoll_wait(ep_out, &ev, 1, 0);
			ASSERT_TRUE(matches(scratch, size, 1, got));
			got += size;
		}
	} while (!done);
	ASSERT_EQ(io.len, io_join(&io));
	while (sigtimedwait(&set, NULL, &(struct timespec){ }) > 0)
		nr_sig++;
	EXPECT_EQ(3, nr_in);
	EXPECT_EQ(3, nr_sig);
	EXPECT_EQ(2, nr_out);
	ASSERT_EQ(io.len - got, get(p[0], size, 1, got));
}

TEST_F_TIMEOUT(pipe, events, TIMEOUT)
{
	events(_metadata, self->p, SLOTS);
	events(_metadata, self->p, 4 * SLOTS);
}

TEST_HARNESS_MAIN
