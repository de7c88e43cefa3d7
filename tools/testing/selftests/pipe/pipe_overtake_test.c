// SPDX-License-Identifier: GPL-2.0
/*
 * A task waits for a page of its buffer, and others that slept beside it go on:
 * it keeps no wakeup, no packet, and no mutex when its memory is bad.
 */
#include "pipe_lazy.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#define TIMEOUT		60	/* seconds */

FIXTURE(pipe) {
	int p[2];
	struct lazy l;
	struct io io;
};

FIXTURE_VARIANT(pipe) {
	ssize_t len;		/* bytes, and pages more */
	ssize_t pages;
	ssize_t missing;	/* from this page on, all are */
};

FIXTURE_VARIANT_ADD(pipe, small) { .len = 100 };
FIXTURE_VARIANT_ADD(pipe, page) { .pages = 1 };
FIXTURE_VARIANT_ADD(pipe, pages) { .pages = 12 };
FIXTURE_VARIANT_ADD(pipe, pages_warm) { .pages = 12, .missing = 1 };
FIXTURE_VARIANT_ADD(pipe, pages_odd) { .pages = 2, .len = 100 };

FIXTURE_SETUP(pipe)
{
	ssize_t nr = variant->pages + 1;

	make_pipe(_metadata, self->p, SLOTS);
	lazy_alloc(_metadata, &self->l, nr, 0, variant->missing, nr);
	self->io = (struct io){ .fd = self->p[1], .buf = self->l.map };
	self->io.len = variant->pages * psz + variant->len;
}

FIXTURE_TEARDOWN(pipe) { }

/* Only one of the writers that wait is woken up.  It must not keep that. */
TEST_F_TIMEOUT(pipe, writer_behind_writer, TIMEOUT)
{
	struct io other = writer(self->p[1], 4 * psz, 2, 0);
	struct io reader = { .fd = self->p[0], .is_read = true, .call = psz };

	set_slots(_metadata, self->p[1], 2);
	ASSERT_EQ(2, move_pages(put, self->p[1], 2));
	io_start_blocked(_metadata, &self->io);
	/* It waits for room, and not for its buffer. */
	ASSERT_EQ(-1, lazy_fault(&self->l));
	io_start_blocked(_metadata, &other);
	reader.len = 2 * psz + self->io.len + other.len;
	reader.buf = malloc(reader.len);
	io_start(_metadata, &reader);
	ASSERT_TRUE(COMES_TRUE(io_done(&other)));
	ASSERT_EQ(other.len, io_join(&other));
	ASSERT_FALSE(io_done(&self->io));
	lazy_provide(&self->l, 0, self->l.nr);
	ASSERT_EQ(self->io.len, io_join(&self->io));
	ASSERT_TRUE(WAIT_FOR(bytes_in(self->p[0]) == 0));
	ASSERT_EQ(0, close(self->p[1]));
	ASSERT_EQ(reader.len, io_join(&reader));
}

/* Two readers sleep, and the one that is woken up lacks its memory. */
TEST_F_TIMEOUT(pipe, reader_behind_reader, TIMEOUT)
{
	struct io other = { .fd = self->p[0], .is_read = true,
			    .len = self->io.len, .buf = malloc(20 * psz) };
	ssize_t len = self->io.len;
	long switches;

	self->io.fd = self->p[0];
	self->io.is_read = true;
	io_start_blocked(_metadata, &self->io);
	io_start_blocked(_metadata, &other);
	ASSERT_EQ(len, put(self->p[1], len, 1, 0));
	ASSERT_TRUE(COMES_TRUE(io_done(&other)));
	ASSERT_EQ(len, io_join(&other));
	ASSERT_TRUE(matches(other.buf, len, 1, 0));
	/* The race took place: it has been woken up, and waits for a page. */
	ASSERT_TRUE(WAIT_FOR(lazy_fault(&self->l) >= 0));
	ASSERT_FALSE(io_done(&self->io));
	expect_pass(_metadata, self->p, 0, 0, 0);
	/* It finds the pipe empty, and waits for more. */
	switches = io_switches(&self->io);
	lazy_provide(&self->l, 0, self->l.nr);
	ASSERT_TRUE(WAIT_FOR(io_switches(&self->io) != switches));
	ASSERT_FALSE(io_done(&self->io));
	ASSERT_EQ(len, put(self->p[1], len, 5, 0));
	ASSERT_EQ(len, io_join(&self->io));
	ASSERT_TRUE(matches(self->io.buf, len, 5, 0));
}

/* A process that is stuck, and killed, ends, and leaves a pipe that works. */
TEST_F_TIMEOUT(pipe, killed, TIMEOUT)
{
	int status, round, ready[2];
	ssize_t rest;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(ready));
	for (round = 0; round < 2; round++) {
		if (round)
			ASSERT_EQ(self->io.len,
				  put(self->p[1], self->io.len, 3, 0));
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			lazy_alloc(_metadata, &self->l, self->l.nr, 0,
				   variant->missing, self->l.nr);
			self->io.buf = self->l.map;
			self->io.fd = self->p[!round];
			self->io.is_read = round;
			start_stuck(_metadata, &self->io, &self->l);
			(void)!write(ready[1], "", 1);
			pause();
		}
		ASSERT_EQ(1, read(ready[0], &c, 1));
		kill(pid, SIGKILL);
		ASSERT_TRUE(WAIT_FOR(waitpid(pid, &status, WNOHANG) == pid));
		ASSERT_TRUE(WIFSIGNALED(status));
		/* It may have come as far as the page that was missing. */
		rest = round ? self->io.len - bytes_in(self->p[0]) :
			       bytes_in(self->p[0]);
		ASSERT_LE(rest, variant->missing * psz);
		if (round)
			drain(_metadata, self->p[0], self->io.len - rest, 3,
			      rest);
		else
			drain(_metadata, self->p[0], rest, 1, 0);
		expect_works(_metadata, self->p);
	}
}

static void *hold_mutex(void *arg)
{
	struct io *io = arg;
	struct iovec iov = { .iov_base = io->buf, .iov_len = io->len };

	io->ret = result(vmsplice(io->fd, &iov, 1, 0));
	__atomic_store_n(&io->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * Memory that is bad when a writer comes to it, and comes late when it is tried
 * again: the writer fails, or tries again where nobody waits for it.  Another
 * task has the mutex meanwhile: vmsplice() copies with it held.
 */
TEST_F_TIMEOUT(pipe, bad_then_late, TIMEOUT)
{
	struct lazy held;
	struct io holder;
	ssize_t ret;

	ASSERT_EQ(psz, put(self->p[1], psz, 3, 0));
	lazy_alloc(_metadata, &held, 1, 0, 0, 1);
	holder = (struct io){ .fd = self->p[0], .buf = held.map, .len = psz };
	ASSERT_EQ(0, pthread_create(&holder.thread, NULL, hold_mutex,
				    &holder));
	ASSERT_TRUE(WAIT_FOR(lazy_fault(&held) >= 0));

	make_hole(_metadata, self->l.map, self->l.nr * psz);
	io_start(_metadata, &self->io);
	if (!WAIT_FOR(io_done(&self->io) ||
		      task_status(self->io.tid, "State:\t", true) == 'D') ||
	    io_done(&self->io)) {
		lazy_provide(&held, 0, 1);
		SKIP(return, "vmsplice() does not hold the mutex");
	}
	usleep(10000);
	ASSERT_EQ(self->l.map, mmap(self->l.map, self->l.nr * psz,
				    PROT_READ | PROT_WRITE, MAP_PRIVATE |
				    MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	lazy_register(_metadata, &self->l);
	lazy_provide(&held, 0, 1);
	ASSERT_EQ(psz, io_join(&holder));
	ASSERT_TRUE(matches(held.map, psz, 1, 0) ||
		    matches(held.map, psz, 3, 0));
	expect_pass(_metadata, self->p, 0, 0, 0);
	lazy_provide(&self->l, 0, self->l.nr);
	ret = io_join(&self->io);
	ASSERT_TRUE(ret == -EFAULT || ret == self->io.len);
	if (ret > 0)
		drain(_metadata, self->p[0], ret, 1, 0);
	expect_works(_metadata, self->p);
}

FIXTURE(read) { int p[2]; };
FIXTURE_SETUP(read) { make_pipe(_metadata, self->p, SLOTS); }
FIXTURE_TEARDOWN(read) { }

/* A reader waits for no memory that it does not need. */
TEST_F_TIMEOUT(read, needs_no_more, TIMEOUT)
{
	struct io io = { .fd = self->p[0], .is_read = true, .len = 4 * psz };
	const ssize_t lens[] = { 1, 100, psz, psz + 10, 2 * psz };
	struct lazy l;
	ssize_t i, n;

	for (i = 0; i < 2 * NR(lens); i++) {
		n = lens[i / 2];
		lazy_alloc(_metadata, &l, 4, 0,
			   i % 2 ? 0 : (n + psz - 1) / psz, 4);
		io.buf = l.map;
		/* More is in the pipe, but a packet is all that it gets. */
		set_flag(self->p[1], O_DIRECT, i % 2);
		if (i % 2 && n > psz)
			continue;
		ASSERT_EQ(n, put(self->p[1], n, i, 0));
		if (i % 2)
			ASSERT_EQ(3 * psz, put(self->p[1], 3 * psz, 50, 0));
		io_start(_metadata, &io);
		if (i % 2) {
			ASSERT_TRUE(WAIT_FOR(lazy_fault(&l) == 0));
			lazy_provide(&l, 0, 1);
		}
		ASSERT_TRUE(COMES_TRUE(io_done(&io)));
		ASSERT_EQ(n, io_join(&io));
		ASSERT_TRUE(matches(io.buf, n, i, 0));
		for (n = 0; n < 3 && i % 2; n++)
			ASSERT_EQ(psz, get(self->p[0], psz, 50, n * psz));
	}
}

/*
 * A reader of packets is stuck, and others read so many that those of a kernel
 * of 32 bits are counted from 0 again: of the packet that is in the place of
 * its own then, nothing is lost.
 */
TEST_F_TIMEOUT(read, packets_come_round, TIMEOUT)
{
	struct io io = { .fd = self->p[0], .is_read = true, .len = psz };
	struct io other = io;
	struct lazy l;
	ssize_t i;

	lazy_alloc(_metadata, &l, 1, 0, 0, 1);
	io.buf = l.map;
	other.buf = malloc(psz);
	set_flag(self->p[1], O_DIRECT, true);
	ASSERT_EQ(10, put(self->p[1], 10, 1, 0));
	start_stuck(_metadata, &io, &l);
	io_start(_metadata, &other);
	ASSERT_TRUE(COMES_TRUE(io_done(&other)));
	ASSERT_EQ(10, io_join(&other));
	for (i = 1; i < 65536; i++) {
		ASSERT_EQ(1, put(self->p[1], 1, 1, 0));
		ASSERT_EQ(1, get(self->p[0], psz, 1, 0));
	}
	ASSERT_EQ(100, put(self->p[1], 100, 2, 0));
	ASSERT_FALSE(io_done(&io));
	lazy_provide(&l, 0, 1);
	ASSERT_EQ(100, io_join(&io));
	ASSERT_TRUE(matches(io.buf, 100, 2, 0));
	ASSERT_EQ(0, bytes_in(self->p[0]));
}

/* Bad memory is an error when there is room for what it should have, not before. */
TEST_F_TIMEOUT(read, error_in_turn, TIMEOUT)
{
	struct io filler = writer(self->p[1], SLOTS * psz, 2, 0);
	struct io io = { .fd = self->p[1], .len = 2 * psz };
	struct lazy l;
	long switches;

	lazy_alloc(_metadata, &l, 2, 0, 0, 1);
	make_hole(_metadata, l.map + psz, psz);
	io.buf = l.map;
	start_stuck(_metadata, &io, &l);
	io_start(_metadata, &filler);
	ASSERT_TRUE(COMES_TRUE(io_done(&filler)));
	ASSERT_EQ(filler.len, io_join(&filler));
	switches = io_switches(&io);
	lazy_provide(&l, 0, 1);
	ASSERT_TRUE(WAIT_FOR(io_switches(&io) != switches));
	switches = io_switches(&io);
	ASSERT_EQ(psz, get(self->p[0], psz, 2, 0));
	/* The page that is there has been put in, and the pipe is full. */
	ASSERT_TRUE(WAIT_FOR(io_switches(&io) != switches || io_done(&io)));
	ASSERT_EQ(SLOTS * psz, bytes_in(self->p[0]));
	ASSERT_FALSE(io_done(&io));
	ASSERT_EQ(psz, get(self->p[0], psz, 2, psz));
	ASSERT_TRUE(WAIT_FOR(io_done(&io)));
	ASSERT_EQ(psz, io_join(&io));
	drain(_metadata, self->p[0], (SLOTS - 2) * psz, 2, 2 * psz);
	drain(_metadata, self->p[0], psz, 1, 0);
	expect_works(_metadata, self->p);
}

/* A write that fits when its first page has come is not put in without the rest. */
TEST_F_TIMEOUT(read, fits_by_then, TIMEOUT)
{
	struct io io = { .fd = self->p[1], .len = 4 * psz };
	ssize_t before = (SLOTS - 1) * psz;
	struct lazy l;

	ASSERT_EQ(before, put(self->p[1], before, 3, 0));
	lazy_alloc(_metadata, &l, 4, 0, 0, 4);
	io.buf = l.map;
	start_stuck(_metadata, &io, &l);
	expect_pass(_metadata, self->p, before, 3, 0);
	lazy_provide(&l, 0, 1);
	ASSERT_TRUE(WAIT_FOR(lazy_fault(&l) == 1));
	ASSERT_EQ(0, bytes_in(self->p[0]));
	lazy_provide(&l, 1, 4);
	ASSERT_EQ(io.len, io_join(&io));
	drain(_metadata, self->p[0], io.len, 1, 0);
}

/*
 * Two readers sleep, and a write is for both: one reads all that there is, puts in
 * the rest, and wakes the other.
 */
TEST_F_TIMEOUT(read, rest_for_next_reader, TIMEOUT)
{
	struct io r[2], w = writer(self->p[1], 2 * SLOTS * psz, 1, 0);
	struct sched_param prio;
	bool met = false;
	cpu_set_t set;
	int i, tries;
	ssize_t sum;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	for (tries = 0; !met && tries < 50; tries++) {
		prio.sched_priority = 1;
		for (i = 0; i < 2; i++) {
			r[i] = (struct io){ .fd = self->p[0], .is_read = true,
					    .len = SLOTS * psz, .idle = true };
			/* One that faults would wake the other, too. */
			r[i].buf = fill(malloc(r[i].len), r[i].len, 9, 0);
			io_start_blocked(_metadata, &r[i]);
		}
		w.done = false;
		/* The writer runs until it sleeps. */
		if (sched_setscheduler(0, SCHED_FIFO, &prio))
			SKIP(return, "SCHED_FIFO: %s", strerror(errno));
		io_start(_metadata, &w);
		prio.sched_priority = 0;
		sched_setscheduler(0, SCHED_OTHER, &prio);
		ASSERT_TRUE(WAIT_FOR(io_done(&r[0]) && io_done(&r[1])));
		for (i = 0; i < 2; i++)
			io_join(&r[i]);
		/* Which was first? */
		i = !matches(r[0].buf, r[0].ret, 1, 0);
		ASSERT_TRUE(matches(r[i].buf, r[i].ret, 1, 0));
		ASSERT_TRUE(matches(r[!i].buf, r[!i].ret, 1, r[i].ret));
		sum = r[0].ret + r[1].ret;
		met = sum == w.len;
		drain(_metadata, self->p[0], w.len - sum, 1, sum);
		ASSERT_EQ(w.len, io_join(&w));
		free(r[0].buf);
		free(r[1].buf);
	}
	ASSERT_TRUE(met);
}

/* A read into a stack that is yet to grow makes it grow, and no noise. */
TEST_F(read, stack_to_grow)
{
	unsigned long start = 0, end, addr;
	char line[1024], name[32];
	ssize_t ret;
	int kmsg;
	FILE *f;

	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (kmsg >= 0)
		lseek(kmsg, 0, SEEK_END);
	f = fopen("/proc/self/maps", "r");
	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %31s", &addr, &end,
			   name) == 3 && !strcmp(name, "[stack]"))
			start = addr;
	fclose(f);
	if (!start)
		SKIP(return, "no stack that grows");
	ASSERT_EQ(psz, put(self->p[1], psz, 7, 0));
	addr = start - 4 * psz;
	ASSERT_EQ(psz, result(syscall(__NR_read, self->p[0], addr, psz)));
	ASSERT_TRUE(matches((unsigned char *)addr, psz, 7, 0));
	if (kmsg < 0)
		SKIP(return, "/dev/kmsg: %s", strerror(errno));
	/* It is said once an hour. */
	while ((ret = read(kmsg, line, sizeof(line) - 1)) > 0) {
		line[ret] = 0;
		ASSERT_EQ(NULL, strstr(line, "GUP no longer grows"));
	}
}

TEST_HARNESS_MAIN
