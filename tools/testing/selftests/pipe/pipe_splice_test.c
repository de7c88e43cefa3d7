// SPDX-License-Identifier: GPL-2.0
/*
 * Pipes under splice(), tee(), vmsplice() and F_SETPIPE_SZ: pages that others
 * have, too, are not written to, and writers that wait are woken up.
 */
#include "pipe_test.h"

#include <sys/stat.h>
#include <sys/wait.h>

FIXTURE(pipe) { int p[2], q[2]; };

FIXTURE_SETUP(pipe)
{
	make_pipe(_metadata, self->p, SLOTS);
	make_pipe(_metadata, self->q, SLOTS);
}

FIXTURE_TEARDOWN(pipe) { }

static ssize_t do_splice(int in, int out, ssize_t len)
{
	return result(splice(in, NULL, out, NULL, len, 0));
}

/* A page that another pipe has, too, is not written to, now or later. */
TEST_F(pipe, tee_and_recycle)
{
	const ssize_t lens[] = { 1, psz, 2 * psz + 5, 10 * psz };
	ssize_t i, len;

	for (i = 0; i < 2 * NR(lens); i++) {
		int *first = i & 1 ? self->p : self->q;
		int *last = i & 1 ? self->q : self->p;

		len = lens[i / 2];
		ASSERT_EQ(len, put(self->p[1], len, i, 0));
		ASSERT_EQ(len, tee(self->p[0], self->q[1], len, 0));
		/* The first goes on with the same slot, then other pages. */
		ASSERT_EQ(10, put(first[1], 10, i, len));
		ASSERT_EQ(len + 10, get(first[0], len + 10, i, 0));
		ASSERT_EQ(12, move_pages(put, first[1], 12));
		ASSERT_EQ(len, get(last[0], len, i, 0));
		ASSERT_EQ(12, move_pages(get, first[0], 12));
	}
}

/* A short buffer that another pipe gives is merged with, also if there is no room. */
TEST_F(pipe, merge_with_moved)
{
	const ssize_t odd = 3000 % psz, len = (SLOTS - 1) * psz + odd;
	unsigned char *buf;
	int full;

	for (full = 0; full < 2; full++) {
		ASSERT_EQ(SLOTS - 1, full ? move_pages(put, self->q[1], SLOTS - 1) : SLOTS - 1);
		ASSERT_EQ(100, put(self->p[1], 100, 1, 0));
		ASSERT_EQ(100, do_splice(self->p[0], self->q[1], 100));
		set_flag(self->q[1], O_NONBLOCK, true);
		ASSERT_EQ(full ? odd : len, put(self->q[1], len, 2, 0));
		set_flag(self->q[1], O_NONBLOCK, false);
		ASSERT_EQ(SLOTS - 1, full ? move_pages(get, self->q[0], SLOTS - 1) : SLOTS - 1);
		ASSERT_EQ(100, get(self->q[0], 100, 1, 0));
		ASSERT_EQ(full ? odd : len, get(self->q[0], full ? odd : len, 2, 0));
	}
	/* What is merged is written, though the memory ends behind it. */
	buf = fill(guarded(_metadata, 2000), 2000, 2, 0);
	ASSERT_EQ(100, put(self->p[1], 100, 1, 0));
	ASSERT_EQ(100, do_splice(self->p[0], self->q[1], 100));
	ASSERT_EQ(100, do_write(self->q[1], buf, psz + 100));
	ASSERT_EQ(100, get(self->q[0], 100, 1, 0));
	ASSERT_EQ(100, get(self->q[0], psz, 2, 0));
	expect_works(_metadata, self->q);
}

/* What follows a page of a file, or of a task, goes to a page of its own. */
TEST_F(pipe, foreign_pages)
{
	int fd = memfd_create("file", MFD_CLOEXEC), i;
	struct iovec iov = { .iov_len = 100 };
	unsigned char *map;
	loff_t pos = 0;

	ASSERT_EQ(2 * psz, put(fd, 2 * psz, 1, 0));
	map = mmap(NULL, 2 * psz, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	iov.iov_base = map;
	for (i = 0; i < 2; i++, pos = 0) {
		/* Each slot has had a page that is merged with. */
		ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
		ASSERT_EQ(SLOTS, move_pages(get, self->p[0], SLOTS));
		ASSERT_EQ(100, i ? vmsplice(self->p[1], &iov, 1, 0) :
				   splice(fd, &pos, self->p[1], NULL, 100, 0));
		ASSERT_EQ(50, put(self->p[1], 50, 2, 0));
		ASSERT_TRUE(matches(map, 2 * psz, 1, 0));
		ASSERT_EQ(SLOTS - 2, fill_up(self->p[1]));
		ASSERT_EQ(100, get(self->p[0], 100, 1, 0));
		ASSERT_EQ(50, get(self->p[0], 50, 2, 0));
		ASSERT_EQ(SLOTS - 2, move_pages(get, self->p[0], SLOTS - 2));
		ASSERT_TRUE(matches(map, 2 * psz, 1, 0));
	}
	expect_works(_metadata, self->p);
}

/* Whole slots move to the other pipe; of the last one, each gets a part. */
TEST_F(pipe, splice_moves_slots)
{
	const ssize_t lens[] = { psz, psz, 10 };

	ASSERT_EQ(4 * psz, put(self->p[1], 4 * psz, 1, 0));
	ASSERT_EQ(2 * psz + 10,
		  do_splice(self->p[0], self->q[1], 2 * psz + 10));
	expect_slots(_metadata, self->q, 1, lens, NR(lens));
	ASSERT_EQ(psz - 10, get(self->p[0], psz - 10, 1, 2 * psz + 10));
	ASSERT_EQ(psz, get(self->p[0], psz, 1, 3 * psz));
	expect_works(_metadata, self->p);
	expect_works(_metadata, self->q);
}

/* A writer waits for room, and splice() to another pipe or file makes it. */
TEST_F(pipe, splice_wakes_writer)
{
	const ssize_t lens[] = { 100, psz, 40 * psz + 9 };
	int fd = memfd_create("file", MFD_CLOEXEC);
	ssize_t i, pos, ret, total;
	struct io io;

	for (i = 0; i < 2 * NR(lens); i++) {
		int out = i % 2 ? fd : self->q[1];
		int in = i % 2 ? fd : self->q[0];

		ASSERT_EQ(SLOTS, move_pages(put, self->p[1], SLOTS));
		io = writer(self->p[1], lens[i / 2], i, 0);
		io_start_blocked(_metadata, &io);
		total = SLOTS * psz + io.len;
		lseek(fd, 0, SEEK_SET);
		ASSERT_EQ(0, ftruncate(fd, 0));
		for (pos = 0; pos < total; pos += ret) {
			ret = do_splice(self->p[0], out, total - pos);
			ASSERT_GT(ret, 0);
			if (i % 2)
				lseek(fd, pos, SEEK_SET);
			ASSERT_EQ(ret, read(in, scratch + pos, ret));
		}
		for (pos = 0; pos < SLOTS * psz; pos += psz)
			ASSERT_TRUE(matches(scratch + pos, psz, 1000, 0));
		ASSERT_TRUE(matches(scratch + pos, io.len, i, 0));
		ASSERT_EQ(io.len, io_join(&io));
		expect_works(_metadata, self->p);
	}
}

struct splicer {
	int in, out;
	ssize_t len, moved;
	ssize_t error;
	pthread_t thread;
	bool stop, done;
};

static void *splice_thread(void *arg)
{
	struct splicer *s = arg;
	ssize_t ret;

	while (s->moved < s->len && !__atomic_load_n(&s->stop,
						     __ATOMIC_RELAXED)) {
		ret = do_splice(s->in, s->out, s->len - s->moved);
		if (ret <= 0 && ret != -EAGAIN) {
			s->error = ret;
			break;
		}
		if (ret > 0)
			__atomic_add_fetch(&s->moved, ret, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&s->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool splicer_moves(struct splicer *s)
{
	return __atomic_load_n(&s->moved, __ATOMIC_RELAXED) > 0;
}

/* A splice() that waits for room is not forgotten beside a writer. */
TEST_F(pipe, splice_waits_beside_writers)
{
	struct splicer s = { .in = self->p[0], .out = self->q[1], .len = psz };
	ssize_t seen[3] = { }, i, pos, round;
	struct io io[2];

	for (round = 0; round < 3; round++) {
		s.done = false;
		s.moved = 0;
		ASSERT_EQ(SLOTS, move_pages(put, self->q[1], SLOTS));
		ASSERT_EQ(psz, put(self->p[1], psz, 2, 0));
		for (i = 0; i < 2; i++)
			io[i] = writer(self->q[1], psz, i, 0);
		if (round < 2)
			io_start_blocked(_metadata, &io[0]);
		ASSERT_EQ(0, pthread_create(&s.thread, NULL, splice_thread,
					    &s));
		ASSERT_TRUE(WAIT_FOR(bytes_in(self->p[0]) == psz));
		usleep(10000);
		ASSERT_FALSE(s.done);
		if (round == 2)
			io_start_blocked(_metadata, &io[0]);
		io_start_blocked(_metadata, &io[1]);
		for (i = 0; i < SLOTS; i++)
			ASSERT_EQ(1, move_pages(get, self->q[0], 1));
		/* All three come without more room being made for them. */
		ASSERT_TRUE(WAIT_FOR(bytes_in(self->q[0]) == 3 * psz));
		ASSERT_TRUE(WAIT_FOR(s.done));
		pthread_join(s.thread, NULL);
		ASSERT_EQ(psz, s.moved);
		ASSERT_EQ(psz, io_join(&io[0]));
		ASSERT_EQ(psz, io_join(&io[1]));
		ASSERT_EQ(3 * psz, read(self->q[0], scratch, SLOTS * psz));
		for (pos = 0; pos < 3; pos++)
			for (i = 0; i < 3; i++)
				seen[i] += matches(scratch + pos * psz, psz, i,
						   0);
		for (i = 0; i < 3; i++)
			ASSERT_EQ(round + 1, seen[i]);
	}
}

/*
 * Two pipes with blocked writers each, and splice() from each to the other at
 * once: no deadlock, and no page is lost, doubled or torn.
 */
TEST_F_TIMEOUT(pipe, splice_between_full_pipes, 120)
{
	const ssize_t nr = 300;
	struct splicer s[2] = {
		{ .in = self->p[0], .out = self->q[1], .len = SSIZE_MAX },
		{ .in = self->q[0], .out = self->p[1], .len = SSIZE_MAX },
	};
	unsigned char seen[2 * 300] = { };
	ssize_t i, n, got = 0, ret;
	struct io io[2];

	for (i = 0; i < 2; i++) {
		int *pipe = i ? self->q : self->p;

		ASSERT_EQ(SLOTS, move_pages(put, pipe[1], SLOTS));
		io[i] = writer(pipe[1], nr * psz, 0, 0);
		for (n = 0; n < nr; n++)
			fill(io[i].buf + n * psz, psz, i * nr + n, 0);
		io_start_blocked(_metadata, &io[i]);
		set_flag(pipe[0], O_NONBLOCK, true);
	}
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&s[i].thread, NULL, splice_thread,
					    &s[i]));
	for (n = 0; got < 2 * nr + 2 * SLOTS; n++) {
		ASSERT_LT(n, 60000);
		ret = result(read((n & 1 ? self->q : self->p)[0], scratch,
				  psz));
		if (ret == -EAGAIN) {
			usleep(1000);
			continue;
		}
		ASSERT_EQ(psz, ret);
		/* With room in one, pages go round: both splice() did it. */
		if (++got == 2 * nr + SLOTS)
			ASSERT_TRUE(WAIT_FOR(splicer_moves(&s[0]) &&
					     splicer_moves(&s[1])));
		if (matches(scratch, psz, 1000, 0))
			continue;
		for (i = 0; i < 2 * nr; i++)
			if (!seen[i] && matches(scratch, psz, i, 0))
				break;
		ASSERT_LT(i, 2 * nr);
		seen[i] = 1;
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(nr * psz, io_join(&io[i]));
		__atomic_store_n(&s[i].stop, true, __ATOMIC_RELAXED);
	}
	ASSERT_TRUE(WAIT_FOR(s[0].done && s[1].done));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, s[i].error);
}

/* At any place of its ring, a pipe can become larger, and as small as full. */
TEST_F(pipe, resize)
{
	ssize_t at, used, slots;

	for (at = 0; at < SLOTS; at++) {
		for (used = 0; used <= SLOTS; used += 5) {
			if (used)
				ASSERT_EQ(used * psz,
					  put(self->p[1], used * psz, at, 0));
			for (slots = 4 * SLOTS; slots > 1 && slots / 2 >= used;
			     slots /= 2)
				set_slots(_metadata, self->p[1], slots);
			if (used > 1)
				ASSERT_EQ(-EBUSY,
					  result(fcntl(self->p[1],
						       F_SETPIPE_SZ,
						       (used - 1) / 2 * psz +
						       1)));
			set_slots(_metadata, self->p[1], SLOTS);
			if (used)
				ASSERT_EQ(used * psz, get(self->p[0],
							  used * psz, at, 0));
		}
		ASSERT_EQ(1, move_pages(put, self->p[1], 1));
		ASSERT_EQ(1, move_pages(get, self->p[0], 1));
	}
	expect_works(_metadata, self->p);
}

/*
 * A writer in a memory cgroup that is at its limit is killed, or fails, and
 * leaves a pipe that works, with what it has written before.
 */
TEST_F_TIMEOUT(pipe, memcg_limit, 120)
{
	char dir[64];
	int status, err, i;
	ssize_t got, ret;
	pid_t pid;

	snprintf(dir, sizeof(dir), "/sys/fs/cgroup/pipe_test.%d", getpid());
	write_file("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");
	err = result(mkdir(dir, 0700)) ?: write_file(dir, "memory.max", "4M");
	if (err) {
		rmdir(dir);
		SKIP(return, "memory cgroup: %s", strerror(-err));
	}
	write_file(dir, "memory.swap.max", "0");
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (write_file(dir, "cgroup.procs", "0"))
			_exit(1);
		/* The first pipe's data are looked at, others' are not. */
		while (put(self->p[1], 9 * psz + 7, 1, 0) > 0) {
			for (i = 0; i < 64 && !pipe(self->q); i++) {
				set_flag(self->q[1], O_NONBLOCK, true);
				put(self->q[1], 100 * psz, 2, 0);
			}
			pipe2(self->p, O_NONBLOCK);
		}
		_exit(2);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 2);
	set_flag(self->p[0], O_NONBLOCK, true);
	for (got = 0; (ret = do_read(self->p[0], scratch, SLOTS * psz)) > 0;
	     got += ret)
		EXPECT_TRUE(matches(scratch, ret, 1, got));
	EXPECT_TRUE(got == 9 * psz + 7 || !got);
	expect_works(_metadata, self->p);
	/* Nothing is charged to it any more, so that it can go. */
	EXPECT_TRUE(WAIT_FOR(!rmdir(dir)));
}

TEST_HARNESS_MAIN
