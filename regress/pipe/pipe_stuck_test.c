// SPDX-License-Identifier: GPL-2.0
/*
 * Writers of pipes whose buffers are not there: userfaultfd holds them in the
 * middle of a copy.  Others go on using the pipe meanwhile (stuck_*), what there is
 * room for is in it before (fits_first), and what such a writer has seen of the
 * pipe is not so any more when it goes on (wrong_guess_*): drained, filled, resized,
 * without readers, in packet mode.  The last are skipped where a writer copies with
 * pipe->mutex held, as nobody can change the pipe then.
 */
#include "pipe_regress.h"

/* What others write while a writer is stuck: large messages and small ones */
#define MESSAGE		65536
#define NR_MESSAGES	50

static void init_messages(struct __test_metadata *_metadata, struct io *messages)
{
	static const ssize_t calls[] = { MESSAGE, 100, 100 };

	io_init_write(_metadata, messages, -1, NR_MESSAGES * (MESSAGE + 200), 2, 0);
	messages->all = true;
	messages->lens = calls;
	messages->nr_lens = ARRAY_SIZE(calls);
}

/* Let it go on, and say what holds_mutex() said before; @query has ended then. */
static bool held_while_stuck(struct __test_metadata *_metadata, int fd, struct lazy *l,
			     struct io *query)
{
	bool held = holds_mutex(_metadata, fd, query);

	lazy_resolve(_metadata, l);
	if (held)
		io_join(_metadata, query);
	return held;
}

/*
 * @l has a writer who is stuck.  There are @before bytes in the pipe, and it has
 * not written anything yet, and is in nobody's way.
 */
static void pass_stuck_writer(struct __test_metadata *_metadata, const int p[2],
			      struct lazy *l, const struct io *messages, ssize_t before)
{
	struct io query, reader, writer = *messages;
	ssize_t len = l->writer.len;
	bool ok;

	io_init_query(&query, p[0]);
	io_start(_metadata, &query);
	ok = WAIT_FOR(io_done(&query));
	writer.fd = p[1];
	io_start(_metadata, &writer);
	io_init_read(_metadata, &reader, p[0], before + writer.len);
	reader.all = true;
	io_start(_metadata, &reader);
	ok = ok && WAIT_FOR(io_done(&writer) && io_done(&reader));

	if (!ok) {
		lazy_resolve(_metadata, l);
		io_join(_metadata, &query);
		TH_LOG("nobody can use the pipe while a writer of %zd bytes is stuck", len);
		ASSERT_TRUE(ok);
	}

	ASSERT_FALSE(io_done(&l->writer));
	io_join(_metadata, &query);
	io_join(_metadata, &writer);
	io_join(_metadata, &reader);
	ASSERT_EQ(before, query.ret);
	ASSERT_EQ(writer.len, writer.ret);
	ASSERT_EQ(before + writer.len, reader.ret);
	ASSERT_EQ(-1, mismatch(reader.buf, before, 1, 0));
	ASSERT_EQ(0, memcmp(reader.buf + before, writer.buf, writer.len));
	expect_empty(_metadata, p[0]);

	lazy_resolve(_metadata, l);
	io_join(_metadata, &l->writer);
	ASSERT_EQ(len, l->writer.ret);
	ASSERT_EQ(len, nr_bytes(_metadata, p[0]));
	get(_metadata, p[0], len, 1, before);
	expect_works(_metadata, p);
	free(reader.buf);
}

static void stuck_writer(struct __test_metadata *_metadata, const int p[2], int uffd,
			 const struct io *messages, ssize_t before, ssize_t len,
			 ssize_t missing, bool nonblock)
{
	int fd = nonblock ? reopen_nonblock(_metadata, p[1]) : p[1];
	struct lazy l;

	put(_metadata, p[1], before, 1, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, before);
	lazy_start(_metadata, &l, fd, 1ull << missing);
	pass_stuck_writer(_metadata, p, &l, messages, before);
	if (nonblock)
		close(fd);
	lazy_free(&l);
}

static void stuck_writers(struct __test_metadata *_metadata, const int p[2], int uffd,
			  const ssize_t *lens, ssize_t nr_lens)
{
	struct io messages;
	ssize_t i, j;

	init_messages(_metadata, &messages);
	for (i = 0; i < nr_lens; i++) {
		ssize_t nr = (lens[i] + psz - 1) / psz;
		const ssize_t pages[] = { 0, nr / 2, nr - 1 };

		for (j = 0; j < 4 * min(nr, ARRAY_SIZE(pages)); j++)
			stuck_writer(_metadata, p, uffd, &messages, j & 1 ? 50 : 0,
				     lens[i], pages[j / 4], j & 2);
	}
	free(messages.buf);
}

/* A writer which waits for a page of its buffer does not stall the others. */
TEST_F_TIMEOUT(copy, stuck_writer, LONG_TIMEOUT)
{
	const ssize_t lens[] = { psz, 2 * psz + 100, 16 * psz };
	const char *reason;
	int uffd;

	/* Room for all of it if there is something in the pipe */
	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * DEF_SLOTS * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	stuck_writers(_metadata, self->p, uffd, lens, ARRAY_SIZE(lens));
	close(uffd);
}

/* When it goes on, its data are still not mixed with those of others. */
TEST_F_TIMEOUT(copy, stuck_writer_contiguous, LONG_TIMEOUT)
{
	const ssize_t lens[] = { psz, 2 * psz + 100, 16 * psz };
	unsigned int next_seq[MAX_WRITERS] = {};
	ssize_t slots = set_big(self->p[1]);
	struct record_writer w[2] = {};
	unsigned int round, i;
	const char *reason;
	int uffd;

	/* There must be room for all of it. */
	if (slots < ARRAY_SIZE(w) * 8 * 4 + 17)
		SKIP(return, "cannot make a pipe of more than %zd pages", slots);
	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);

	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].fd = self->p[1];
		w[i].count = 8;
		w[i].min_len = psz;
		w[i].max_len = 4 * psz;
	}
	for (round = 0; round < 12; round++) {
		ssize_t len = lens[round % ARRAY_SIZE(lens)];
		pthread_barrier_t barrier;
		unsigned char *data;
		ssize_t got, total;
		struct lazy l;

		lazy_alloc(_metadata, &l, uffd, len, 0, 0);
		record_fill(l.src, len, ARRAY_SIZE(w), round);
		lazy_start(_metadata, &l, self->p[1], 1ull << round % l.nr);
		total = start_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);
		total += len;
		data = alloc_buf(_metadata, total);
		pthread_barrier_wait(&barrier);
		lazy_resolve(_metadata, &l);
		join_record_writers(_metadata, w, ARRAY_SIZE(w), &barrier);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);

		ASSERT_EQ(total, nr_bytes(_metadata, self->p[0]));
		for (got = 0; got < total; ) {
			ssize_t ret = read(self->p[0], data + got, total - got);

			ASSERT_GT(ret, 0);
			got += ret;
		}
		expect_records(_metadata, data, total, next_seq);
		ASSERT_EQ(round + 1, next_seq[ARRAY_SIZE(w)]);
		free(data);
		lazy_free(&l);
	}
	expect_works(_metadata, self->p);
	close(uffd);
}

/*
 * Only one of the writers which wait is woken up when there is room.  It must
 * use that, and not wait for a page of its buffer first, or else the others
 * would sleep on, too.
 */
static void stuck_waiter(struct __test_metadata *_metadata, const int p[2], int uffd,
			 ssize_t slots, ssize_t missing)
{
	const ssize_t calls[] = { psz, 2 * psz, slots * psz };
	const ssize_t len = min(4 * slots, 64) * psz;
	ssize_t pages[2] = {}, i;
	struct io writer, reader;
	struct lazy l;
	bool ok;

	set_slots(_metadata, p[1], slots);
	fill_slots(_metadata, p[1]);
	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_arm(_metadata, &l, 1ull << missing);
	l.writer.fd = p[1];
	io_start(_metadata, &l.writer);
	io_wait_blocked(_metadata, &l.writer);
	/* What waits for room is not stuck yet. */
	ASSERT_EQ(-1, lazy_fault(_metadata, &l));
	io_init_write(_metadata, &writer, p[1], len, 2, 0);
	io_start(_metadata, &writer);
	io_wait_blocked(_metadata, &writer);

	io_init_read(_metadata, &reader, p[0], slots * psz + 2 * len);
	reader.all = true;
	reader.lens = calls;
	reader.nr_lens = ARRAY_SIZE(calls);
	io_start(_metadata, &reader);
	ok = WAIT_FOR(io_done(&writer));
	if (ok) {
		lazy_wait_stuck(_metadata, &l);
		ASSERT_EQ(writer.len, writer.ret);
		ASSERT_FALSE(io_done(&reader));
	}
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &writer);
	io_join(_metadata, &l.writer);
	io_join(_metadata, &reader);
	ASSERT_TRUE(ok) {
		TH_LOG("a writer sleeps while another is stuck in page %zd", missing);
	}
	ASSERT_EQ(writer.len, writer.ret);
	ASSERT_EQ(l.writer.len, l.writer.ret);
	ASSERT_EQ(reader.len, reader.ret);

	for (i = 0; i < reader.len / psz; i++) {
		unsigned char *page = reader.buf + i * psz;

		if (i < slots) {
			ASSERT_EQ(-1, mismatch(page, psz, FILLER, 0));
		} else if (mismatch(page, psz, 1, pages[0] * psz) < 0) {
			pages[0]++;
		} else {
			ASSERT_EQ(-1, mismatch(page, psz, 2, pages[1] * psz));
			pages[1]++;
		}
	}
	ASSERT_EQ(len, pages[0] * psz);
	ASSERT_EQ(len, pages[1] * psz);
	set_slots(_metadata, p[1], DEF_SLOTS);
	expect_works(_metadata, p);
	free(writer.buf);
	free(reader.buf);
	lazy_free(&l);
}

/*
 * A blocking write, and what of it there is room for.  That has to be in the pipe
 * before the writer waits for the rest of its buffer, which may only come when
 * somebody has read it, or never.
 */
struct fits {
	ssize_t used;		/* slots in use when the write begins */
	ssize_t before;		/* bytes in the last of them; if 0, a page */
	ssize_t len;
	ssize_t seg;		/* writev() of segments of this length */
	bool packets;
	ssize_t freed;		/* slots that become free while it sleeps */
};

/* How it goes on: all is read, there is a signal, or the reader goes away. */
enum fits_end { FITS_READ, FITS_SIGNAL, FITS_CLOSE, FITS_NR_ENDS };

/* The writer sleeps, with @bytes in the pipe, and not for a page of its buffer. */
static void expect_fits(struct __test_metadata *_metadata, const int p[2],
			const struct fits *t, struct lazy *l, ssize_t bytes)
{
	bool ok = WAIT_FOR(nr_bytes(_metadata, p[0]) == bytes && io_sleeps(&l->writer));
	ssize_t found = nr_bytes(_metadata, p[0]);
	ssize_t page = lazy_fault(_metadata, l);

	ASSERT_TRUE(ok && page < 0) {
		TH_LOG("%zd bytes onto %zd slots: %zd in the pipe, not %zd, fault on page %zd",
		       t->len, t->used, found, bytes, page);
	}
	ASSERT_FALSE(io_done(&l->writer));
}

static void fits_first(struct __test_metadata *_metadata, int uffd, const struct fits *t,
		       enum fits_end end)
{
	ssize_t filler = (t->used - !!t->before) * psz;
	ssize_t fits = (DEF_SLOTS - t->used) * psz;
	unsigned char *data;
	struct lazy l;
	ssize_t i;
	int p[2];

	if (t->before)
		fits += t->len % psz;
	ASSERT_EQ(0, pipe2(p, O_CLOEXEC));
	set_slots(_metadata, p[1], DEF_SLOTS);
	for (i = 0; i < filler; i += psz)
		put(_metadata, p[1], psz, FILLER, 0);
	put(_metadata, p[1], t->before, 1, 0);
	if (t->packets)
		set_flag(_metadata, p[1], O_DIRECT, true);

	/* All that comes after what will have found room is missing. */
	lazy_alloc(_metadata, &l, uffd, t->len, 1, t->before);
	lazy_arm(_metadata, &l, ~0ull << (fits + t->freed * psz + psz - 1) / psz);
	l.writer.fd = p[1];
	l.writer.seg = t->seg;
	io_start(_metadata, &l.writer);
	expect_fits(_metadata, p, t, &l, filler + t->before + fits);
	drain_filler(_metadata, p[0], t->freed);
	filler -= t->freed * psz;
	fits += t->freed * psz;
	expect_fits(_metadata, p, t, &l, filler + t->before + fits);

	switch (end) {
	case FITS_READ:
		/* In one read, or else the writer may have the mutex meanwhile. */
		data = alloc_buf(_metadata, filler + t->before + fits);
		ASSERT_EQ(filler + t->before + fits,
			  read(p[0], data, filler + t->before + fits));
		for (i = 0; i < filler; i += psz)
			ASSERT_EQ(-1, mismatch(data + i, psz, FILLER, 0));
		ASSERT_EQ(-1, mismatch(data + filler, t->before + fits, 1, 0));
		free(data);
		lazy_wait_stuck(_metadata, &l);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(t->len, l.writer.ret);
		get(_metadata, p[0], t->len - fits, 1, t->before + fits);
		set_flag(_metadata, p[1], O_DIRECT, false);
		expect_works(_metadata, p);
		break;
	case FITS_SIGNAL:
		count_signals(_metadata, SIGUSR1, 0);
		pthread_kill(l.writer.thread, SIGUSR1);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(fits ?: -1, l.writer.ret);
		ASSERT_EQ(fits ? 0 : EINTR, l.writer.err);
		ASSERT_EQ(1, signals());
		drain_filler(_metadata, p[0], filler / psz);
		get(_metadata, p[0], t->before + fits, 1, 0);
		set_flag(_metadata, p[1], O_DIRECT, false);
		expect_works(_metadata, p);
		break;
	default:
		count_signals(_metadata, SIGPIPE, 0);
		close(p[0]);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(fits ?: -1, l.writer.ret);
		ASSERT_EQ(fits ? 0 : EPIPE, l.writer.err);
		ASSERT_EQ(1, signals());
	}
	/* Nobody else has waited for it. */
	ASSERT_EQ(-1, lazy_fault(_metadata, &l));
	if (end != FITS_CLOSE)
		close(p[0]);
	close(p[1]);
	lazy_free(&l);
}

TEST_F_TIMEOUT(copy, fits_first, LONG_TIMEOUT)
{
	const struct fits tests[] = {
		/* There is room for a part of it... */
		{ .used = 15, .len = 2 * psz },
		{ .used = 15, .len = 2 * psz + 100 },
		{ .used = 15, .len = psz + 100 },
		{ .used = 15, .len = 2 * psz, .seg = psz / 2 + 100 },
		{ .used = 15, .len = 2 * psz + 100, .seg = psz / 2 + 100 },
		{ .used = 15, .len = 2 * psz, .packets = true },
		{ .used = 15, .len = psz + 100, .packets = true },
		{ .used = 15, .before = 50, .len = 2 * psz + 100 },
		{ .used = 10, .len = 8 * psz },
		{ .used = 10, .before = 50, .len = 20 * psz + 100 },
		/* ...or for nothing, at first... */
		{ .used = 16, .len = 2 * psz, .freed = 1 },
		{ .used = 16, .len = 2 * psz + 100, .freed = 1 },
		{ .used = 16, .len = psz + 100, .freed = 1 },
		{ .used = 16, .len = 2 * psz, .seg = psz / 2 + 100, .freed = 1 },
		{ .used = 16, .len = 2 * psz + 100, .seg = psz / 2 + 100, .freed = 1 },
		{ .used = 16, .len = 2 * psz, .packets = true, .freed = 1 },
		{ .used = 16, .len = psz + 100, .packets = true, .freed = 1 },
		{ .used = 16, .before = 50, .len = 2 * psz + 100, .freed = 1 },
		{ .used = 16, .len = 20 * psz, .freed = 5 },
		/* ...or for nothing, or only for what is merged. */
		{ .used = 16, .len = 100 },
		{ .used = 16, .len = psz },
		{ .used = 16, .len = 2 * psz + 100 },
		{ .used = 16, .len = psz, .packets = true },
		{ .used = 16, .before = 50, .len = psz + 100 },
		{ .used = 16, .before = 50, .len = psz + 100, .seg = psz / 60 + 2 },
	};
	enum fits_end end;
	const char *reason;
	ssize_t i;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		for (end = 0; end < FITS_NR_ENDS; end++)
			fits_first(_metadata, uffd, &tests[i], end);
	}
	close(uffd);
}

TEST_F_TIMEOUT(copy, stuck_waiter, LONG_TIMEOUT)
{
	const char *reason;
	ssize_t page;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	for (page = 0; page < 8; page++)
		stuck_waiter(_metadata, self->p, uffd, 2, page);
	for (page = 1; page < 16; page += 3)
		stuck_waiter(_metadata, self->p, uffd, 4, page);
	close(uffd);
}

/*
 * Have who is started from now on run only when this task sleeps, on its CPU.
 * Returns false without the right to a real-time policy.
 */
static bool run_after_me(struct __test_metadata *_metadata)
{
	const struct sched_param param = { .sched_priority = 1 };
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpu), &cpu));
	return !sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param);
}

/*
 * A writer that was woken, and has to wait for its memory first, wakes the next one.
 * That is no event for those who poll: they have seen that there is room.
 */
TEST_F_TIMEOUT(copy, stuck_waiter_no_event, LONG_TIMEOUT)
{
	struct epoll_event out = { .events = EPOLLOUT | EPOLLET }, ev;
	unsigned char *buf = alloc_buf(_metadata, DEF_SLOTS * psz);
	int ep = epoll_create1(EPOLL_CLOEXEC), round, in_between = 0;
	const char *reason;
	struct lazy l;
	int uffd;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	if (!run_after_me(_metadata))
		SKIP(return, "no real-time policy: %s", strerror(errno));
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[1], &out));
	for (round = 0; round < 100 && in_between < 10; round++) {
		put(_metadata, self->p[1], DEF_SLOTS * psz, 2, 0);
		epoll_wait(ep, &ev, 1, 0);
		lazy_alloc(_metadata, &l, uffd, 2 * psz, 1, 0);
		lazy_arm(_metadata, &l, 3);
		l.writer.fd = self->p[1];
		io_start(_metadata, &l.writer);
		io_wait_blocked(_metadata, &l.writer);

		ASSERT_EQ(DEF_SLOTS * psz, read(self->p[0], buf, DEF_SLOTS * psz));
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
		/* It has not run yet, or else two events may have been one. */
		if (io_state(&l.writer) == 'R' && lazy_fault(_metadata, &l) < 0) {
			in_between++;
			lazy_wait_stuck(_metadata, &l);
			ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
		}
		ASSERT_EQ(-1, mismatch(buf, DEF_SLOTS * psz, 2, 0));
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(l.writer.len, l.writer.ret);
		get(_metadata, self->p[0], l.writer.len, 1, 0);
		lazy_free(&l);
	}
	ASSERT_EQ(10, in_between);
	expect_works(_metadata, self->p);
	free(buf);
	close(ep);
	close(uffd);
}

/*
 * A write of more than there is room for ends early if there is a signal, even
 * if the reader keeps up, so that the pipe is never full.
 */
TEST_F_TIMEOUT(copy, signal_busy_writer, LONG_TIMEOUT)
{
	const ssize_t piece = DEF_SLOTS * psz;
	const char *reason;
	struct lazy l;
	bool ended;
	int uffd;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(2 * piece)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	count_signals(_metadata, SIGUSR1, 0);

	/* It has to wait, until all room is there at once; then it does a piece. */
	put(_metadata, self->p[1], 2 * piece, 2, 0);
	lazy_alloc(_metadata, &l, uffd, 4 * piece - psz, 1, 0);
	lazy_arm(_metadata, &l, 1ull << DEF_SLOTS | 1ull << 2 * DEF_SLOTS);
	l.writer.fd = self->p[1];
	io_start(_metadata, &l.writer);
	io_wait_blocked(_metadata, &l.writer);
	get(_metadata, self->p[0], 2 * piece, 2, 0);
	lazy_wait_stuck(_metadata, &l);
	ASSERT_EQ(piece, nr_bytes(_metadata, self->p[0]));
	get(_metadata, self->p[0], piece, 1, 0);

	pthread_kill(l.writer.thread, SIGUSR1);
	lazy_provide(_metadata, &l, 1ull << DEF_SLOTS);
	ASSERT_TRUE(WAIT_FOR(io_done(&l.writer) || lazy_fault(_metadata, &l) > DEF_SLOTS));
	ended = io_done(&l.writer);
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_TRUE(ended);
	ASSERT_EQ(1, signals());
	ASSERT_EQ(2 * piece, l.writer.ret);
	get(_metadata, self->p[0], piece, 1, piece);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	lazy_free(&l);
	close(uffd);
}

/*
 * There was no room for all of a write when it began, so it has not waited for what
 * is beyond.  There is when it has the mutex: then it waits without it.
 */
TEST_F_TIMEOUT(copy, room_since, LONG_TIMEOUT)
{
	const ssize_t slots = 2 * DEF_SLOTS, used = 12, room = 3, missing = 5;
	struct io reader, query;
	struct lazy holder, l;
	const char *reason;
	int uffd[2], fd;
	bool held;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(slots * psz)) < 0)
		SKIP(return, "cannot make a pipe of 32 pages: %s", strerror(errno));
	uffd[0] = uffd_open_unlocked(_metadata, &reason);
	if (uffd[0] < 0)
		SKIP(return, "%s", reason);
	uffd[1] = uffd_open(_metadata, &reason);
	ASSERT_GE(uffd[1], 0);

	/* Pages after the 16th of a write that does not block hold the mutex. */
	fd = reopen_nonblock(_metadata, self->p[1]);
	put(_metadata, self->p[1], used * psz, 1, 0);
	lazy_alloc(_metadata, &holder, uffd[0], (slots - used) * psz, 1, used * psz);
	lazy_start(_metadata, &holder, fd, 1ull << (slots - used - room));
	/* They get it in this order. */
	io_init_read(_metadata, &reader, self->p[0], slots * psz);
	io_start(_metadata, &reader);
	ASSERT_TRUE(WAIT_FOR(io_state(&reader) == 'D'));
	lazy_alloc(_metadata, &l, uffd[1], 2 * missing * psz, 2, 0);
	lazy_arm(_metadata, &l, 1ull << missing);
	l.writer.fd = self->p[1];
	io_start(_metadata, &l.writer);
	ASSERT_TRUE(WAIT_FOR(io_state(&l.writer) == 'D'));
	ASSERT_EQ(-1, lazy_fault(_metadata, &l));

	lazy_resolve(_metadata, &holder);
	io_join(_metadata, &holder.writer);
	ASSERT_EQ(holder.writer.len, holder.writer.ret);
	io_join(_metadata, &reader);
	ASSERT_EQ(slots * psz, reader.ret);
	ASSERT_EQ(-1, mismatch(reader.buf, slots * psz, 1, 0));
	lazy_wait_stuck(_metadata, &l);
	held = held_while_stuck(_metadata, self->p[0], &l, &query);
	io_join(_metadata, &l.writer);
	ASSERT_FALSE(held);
	ASSERT_EQ(0, query.ret);
	ASSERT_EQ(l.writer.len, l.writer.ret);
	get(_metadata, self->p[0], l.writer.len, 2, 0);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	free(reader.buf);
	lazy_free(&holder);
	lazy_free(&l);
	close(fd);
	close(uffd[0]);
	close(uffd[1]);
}

/*
 * A pipe is full, and the odd bytes of a write do not fit behind its last bytes, so that
 * they are not prepared.  When the write has the mutex, the pipe is full again, and they
 * do fit.  They may not be there yet, and nobody is to wait for that.  Returns whether all
 * came in this order.
 */
static bool merge_since(struct __test_metadata *_metadata, const int p[2], int fd,
			const int uffd[2])
{
	const ssize_t before = DEF_SLOTS * psz - 60, held_up = 50, added = 20;
	struct io reader, other, query;
	struct lazy holder, l;
	bool held = false, met;
	ssize_t left;

	put(_metadata, p[1], before, 1, 0);
	/* A small write is merged with the mutex held. */
	lazy_alloc(_metadata, &holder, uffd[0], held_up, 1, before);
	lazy_start(_metadata, &holder, p[1], 1);
	io_init_read(_metadata, &reader, p[0], psz);
	io_start(_metadata, &reader);
	ASSERT_TRUE(WAIT_FOR(io_state(&reader) == 'D'));
	io_init_write(_metadata, &other, fd, added, 1, before + held_up);
	io_start(_metadata, &other);
	ASSERT_TRUE(WAIT_FOR(io_state(&other) == 'D'));
	lazy_alloc(_metadata, &l, uffd[1], psz + 100, 2, 0);
	lazy_arm(_metadata, &l, 1);
	l.writer.fd = fd;
	io_start(_metadata, &l.writer);
	ASSERT_TRUE(WAIT_FOR(io_state(&l.writer) == 'D'));
	ASSERT_EQ(-1, lazy_fault(_metadata, &l));

	lazy_resolve(_metadata, &holder);
	io_join(_metadata, &holder.writer);
	ASSERT_EQ(held_up, holder.writer.ret);
	io_join(_metadata, &reader);
	ASSERT_EQ(psz, reader.ret);
	ASSERT_EQ(-1, mismatch(reader.buf, psz, 1, 0));
	io_join(_metadata, &other);
	met = other.ret == added;
	while (!io_done(&l.writer) && !held) {
		if (lazy_fault(_metadata, &l) < 0)
			pause_ms(1);
		else
			held = held_while_stuck(_metadata, p[0], &l, &query);
	}
	io_join(_metadata, &l.writer);
	ASSERT_FALSE(held);
	met = met && l.writer.ret == -1 && l.writer.err == EAGAIN;
	left = nr_bytes(_metadata, p[0]) - max(l.writer.ret, 0);
	get(_metadata, p[0], left, 1, psz);
	get(_metadata, p[0], max(l.writer.ret, 0), 2, 0);
	expect_works(_metadata, p);
	free(reader.buf);
	free(other.buf);
	lazy_free(&holder);
	lazy_free(&l);
	return met;
}

TEST_F_TIMEOUT(copy, merge_since, LONG_TIMEOUT)
{
	const char *reason;
	int uffd[2], fd, tries = 0;

	uffd[0] = uffd_open_unlocked(_metadata, &reason);
	if (uffd[0] < 0)
		SKIP(return, "%s", reason);
	uffd[1] = uffd_open(_metadata, &reason);
	ASSERT_GE(uffd[1], 0);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fd = reopen_nonblock(_metadata, self->p[1]);
	/* As a rule they get the mutex in the order in which they wait for it. */
	while (!merge_since(_metadata, self->p, fd, uffd))
		ASSERT_LT(tries++, 20);
	close(fd);
	close(uffd[0]);
	close(uffd[1]);
}

/*
 * What a writer saw of the pipe before it copied its data may be out of date
 * when it takes the mutex.  Get it stuck in between, and change the pipe.
 */
struct guess {
	ssize_t before;	/* bytes in the pipe at first */
	ssize_t drain;	/* of these, are read */
	ssize_t add;	/* are written by another writer then */
};

static void wrong_guess(struct __test_metadata *_metadata, const int p[2], int fd,
			int uffd, const struct guess *g, ssize_t len, ssize_t missing)
{
	ssize_t used, total = g->before - g->drain + g->add + len;
	struct lazy l;

	put(_metadata, p[1], g->before, 1, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, g->before + g->add);
	lazy_start(_metadata, &l, fd, 1ull << missing);
	get(_metadata, p[0], g->drain, 1, 0);
	put(_metadata, p[1], g->add, 1, g->before);
	ASSERT_EQ(total - len, nr_bytes(_metadata, p[0]));
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(len, l.writer.ret) {
		TH_LOG("before %zd, drain %zd, add %zd, page %zd: %s", g->before,
		       g->drain, g->add, missing, strerror(l.writer.err));
	}
	ASSERT_EQ(total, nr_bytes(_metadata, p[0]));

	/* No more slots than it takes if nothing is merged */
	used = DEF_SLOTS - fill_slots(_metadata, p[1]);
	ASSERT_LE(used, (g->before + psz - 1) / psz + (g->add + psz - 1) / psz +
			(len + psz - 1) / psz);
	get(_metadata, p[0], total, 1, g->drain);
	drain_filler(_metadata, p[0], DEF_SLOTS - used);
	expect_works(_metadata, p);
	lazy_free(&l);
}

TEST_F_TIMEOUT(copy, wrong_guess_merge, LONG_TIMEOUT)
{
	/* The write has 200 bytes which may be merged. */
	const struct guess guesses[] = {
		{ 100, 0, 0 },
		/* There was something to merge with, but it is gone... */
		{ 100, 100, 0 },
		/* ...or is less, which does not make more room... */
		{ 100, 50, 0 },
		{ psz - 200, psz - 201, 0 },
		{ psz - 199, psz - 200, 0 },
		/* ...or there is just room, or no more, or another page. */
		{ 100, 0, psz - 300 },
		{ 100, 0, psz - 299 },
		{ 100, 0, psz - 100 },
		{ 100, 0, psz },
		{ 100, 0, psz + 100 },
		{ 100, 0, 2 * psz - 100 },
		{ 100, 100, 300 },
		{ 100, 100, psz - 1 },
		/* There was nothing to merge with, or no room, but is now. */
		{ 0, 0, 1 },
		{ 0, 0, 100 },
		{ 0, 0, psz },
		{ 0, 0, 3 * psz + 50 },
		{ psz - 199, 0, psz },
		{ psz - 199, 0, psz + 20 },
		{ psz - 199, psz - 199, 20 },
	};
	ssize_t i, page, len = 2 * psz + 200;
	const char *reason;
	int uffd, fd;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fd = reopen_nonblock(_metadata, self->p[1]);
	for (i = 0; i < ARRAY_SIZE(guesses); i++) {
		for (page = 0; page < 3; page++) {
			wrong_guess(_metadata, self->p, self->p[1], uffd,
				    &guesses[i], len, page);
			wrong_guess(_metadata, self->p, fd, uffd, &guesses[i],
				    len, page);
		}
		/* Nothing is prepared but what is merged, or all of it. */
		wrong_guess(_metadata, self->p, fd, uffd, &guesses[i], psz + 200, 0);
		wrong_guess(_metadata, self->p, fd, uffd, &guesses[i], 2 * psz, 1);
	}
	close(fd);
	close(uffd);
}

TEST_F_TIMEOUT(copy, wrong_guess_resize, LONG_TIMEOUT)
{
	const ssize_t slots[] = { 1, 2, 4, 16, 64 };
	const char *reason;
	ssize_t i, j, k;
	int uffd;

	if (fcntl(self->p[1], F_SETPIPE_SZ, (int)(64 * psz)) < 0)
		SKIP(return, "cannot make a pipe of 64 pages: %s", strerror(errno));
	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		for (j = 0; j < ARRAY_SIZE(slots); j++) {
			for (k = 0; k < 4; k++) {
				const ssize_t before = k & 1 ? 100 : 0;
				const ssize_t len = 20 * psz + 200;
				ssize_t page = k & 2 ? slots[i] - 1 : 0;
				struct lazy l;

				set_slots(_metadata, self->p[1], slots[i]);
				put(_metadata, self->p[1], before, 1, 0);
				lazy_alloc(_metadata, &l, uffd, len, 1, before);
				/* At most what fits is copied so far. */
				lazy_start(_metadata, &l, self->p[1],
					   1ull << min(page, 15));
				set_slots(_metadata, self->p[1], slots[j]);
				lazy_resolve(_metadata, &l);
				if (slots[j] < 20)
					io_wait_blocked(_metadata, &l.writer);
				get(_metadata, self->p[0], before + len, 1, 0);
				io_join(_metadata, &l.writer);
				ASSERT_EQ(len, l.writer.ret);
				expect_empty(_metadata, self->p[0]);
				lazy_free(&l);
			}
		}
	}
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	expect_works(_metadata, self->p);
	close(uffd);
}

/* Write what is left of a write which was cut short, and expect all of it. */
static void expect_retry(struct __test_metadata *_metadata, const int p[2],
			 struct lazy *l, ssize_t before)
{
	ssize_t done = max(l->writer.ret, 0);

	ASSERT_EQ(before + done, nr_bytes(_metadata, p[0]));
	ASSERT_EQ(l->writer.len - done,
		  write(p[1], l->map + done, l->writer.len - done));
	get(_metadata, p[0], before + l->writer.len, 1, 0);
	expect_works(_metadata, p);
	lazy_free(l);
}

/* There was room for all, but now there is for fewer pages: @room. */
static void full_nonblock(struct __test_metadata *_metadata, const int p[2], int fd,
			  int uffd, ssize_t len, ssize_t page, ssize_t room)
{
	ssize_t slots = nr_slots(p[1]);
	struct lazy l;

	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_start(_metadata, &l, fd, 1ull << page);
	ASSERT_EQ(slots, fill_slots(_metadata, p[1]));
	drain_filler(_metadata, p[0], room);
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	if (room) {
		ASSERT_EQ(room * psz, l.writer.ret);
	} else {
		ASSERT_EQ(-1, l.writer.ret);
		ASSERT_EQ(EAGAIN, l.writer.err);
	}
	drain_filler(_metadata, p[0], slots - room);
	expect_retry(_metadata, p, &l, 0);
}

/* The odd bytes cannot be merged any more, either. */
static void full_nonblock_merge(struct __test_metadata *_metadata, const int p[2],
				int fd, int uffd, ssize_t len, ssize_t page)
{
	ssize_t slots = nr_slots(p[1]);
	struct lazy l;

	put(_metadata, p[1], 100, 2, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	lazy_start(_metadata, &l, fd, 1ull << page);
	ASSERT_EQ(slots - 1, fill_slots(_metadata, p[1]));
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(-1, l.writer.ret);
	ASSERT_EQ(EAGAIN, l.writer.err);
	get(_metadata, p[0], 100, 2, 0);
	drain_filler(_metadata, p[0], slots - 1);
	expect_retry(_metadata, p, &l, 0);
}

/* They can, but then there are fewer slots. */
static void full_nonblock_shrink(struct __test_metadata *_metadata, const int p[2],
				 int fd, int uffd, ssize_t len, ssize_t page,
				 ssize_t room)
{
	ssize_t slots = nr_slots(p[1]);
	ssize_t used = slots / 2 - 1 - room;
	struct lazy l;
	ssize_t i;

	for (i = 0; i < used; i++)
		put(_metadata, p[1], psz, FILLER, 0);
	put(_metadata, p[1], 100, 1, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, 100);
	lazy_start(_metadata, &l, fd, 1ull << page);
	set_slots(_metadata, p[1], slots / 2);
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(room * psz + len % psz, l.writer.ret);
	drain_filler(_metadata, p[0], used);
	set_slots(_metadata, p[1], slots);
	expect_retry(_metadata, p, &l, 100);
}

/* A write that blocks has to wait, with room for some or for nothing. */
static void full_block(struct __test_metadata *_metadata, const int p[2], int uffd,
		       ssize_t before, ssize_t len, ssize_t page, ssize_t room)
{
	ssize_t used = nr_slots(p[1]) - (before ? 1 : 0);
	ssize_t bytes;
	struct lazy l;

	put(_metadata, p[1], before, 2, 0);
	lazy_alloc(_metadata, &l, uffd, len, 1, 0);
	/* What it does not keep prepared, it has to find in its segments again. */
	l.writer.seg = room & 1 ? psz / 3 + 1 : 0;
	lazy_start(_metadata, &l, p[1], 1ull << page);
	ASSERT_EQ(used, fill_slots(_metadata, p[1]));
	if (room) {
		get(_metadata, p[0], before, 2, 0);
		drain_filler(_metadata, p[0], before ? room - 1 : room);
		used -= before ? room - 1 : room;
		before = 0;
	}
	lazy_resolve(_metadata, &l);
	io_wait_blocked(_metadata, &l.writer);
	bytes = nr_bytes(_metadata, p[0]) - used * psz - before;
	/* Which of its bytes come first depends on what was prepared. */
	if (bytes != room * psz)
		ASSERT_EQ(max(room - 1, 0) * psz + len % psz, bytes);
	get(_metadata, p[0], before, 2, 0);
	drain_filler(_metadata, p[0], used);
	get(_metadata, p[0], len, 1, 0);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(len, l.writer.ret);
	expect_works(_metadata, p);
	lazy_free(&l);
}

TEST_F_TIMEOUT(copy, wrong_guess_full, LONG_TIMEOUT)
{
	const char *reason;
	int uffd, fd;
	ssize_t i;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	fd = reopen_nonblock(_metadata, self->p[1]);

	/* Every page is missing once for each number of slots that are free. */
	for (i = 0; i < 5 * 5; i++) {
		ssize_t len = 4 * psz + 200, page = i / 5, room = i % 5;

		full_nonblock(_metadata, self->p, fd, uffd, len, page, room);
		full_block(_metadata, self->p, uffd, 0, len, page, room);
		full_block(_metadata, self->p, uffd, 100, len, page, room);
		if (room < 4)
			full_nonblock_shrink(_metadata, self->p, fd, uffd, len,
					     page, room);
		if (!room)
			full_nonblock_merge(_metadata, self->p, fd, uffd, len, page);
	}
	close(fd);
	close(uffd);
}

TEST_F_TIMEOUT(copy, wrong_guess_no_reader, LONG_TIMEOUT)
{
	const char *reason;
	int uffd, i, n = 0;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	count_signals(_metadata, SIGPIPE, 0);
	for (i = 0; i < 24; i++) {
		struct lazy l;
		int p[2];

		ASSERT_EQ(0, pipe2(p, O_CLOEXEC | (i & 1 ? O_NONBLOCK : 0)));
		put(_metadata, p[1], i & 2 ? 100 : 0, 1, 0);
		lazy_alloc(_metadata, &l, uffd, 2 * psz + (i & 4 ? 200 : 0), 1, 100);
		lazy_start(_metadata, &l, p[1], 1ull << i / 8 % l.nr);
		ASSERT_EQ(0, close(p[0]));
		ASSERT_EQ(n, signals());
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(-1, l.writer.ret);
		ASSERT_EQ(EPIPE, l.writer.err);
		ASSERT_EQ(++n, signals());
		lazy_free(&l);

		/* Nothing was added to what there was. */
		ASSERT_EQ(i & 2 ? 100 : 0, nr_bytes(_metadata, p[1]));
		close(p[1]);
	}
	expect_works(_metadata, self->p);
	close(uffd);
}

TEST_F_TIMEOUT(copy, wrong_guess_packets, LONG_TIMEOUT)
{
	unsigned char *buf = alloc_buf(_metadata, 8 * psz);
	const ssize_t len = 2 * psz + 200;
	const char *reason;
	struct lazy l;
	ssize_t page;
	int uffd, i;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	for (i = 0; i < 12; i++) {
		ssize_t before = i & 1 ? 100 : 0;
		bool to_packets = i & 2;

		page = i / 4;
		/* What is in the pipe is stream bytes in any case. */
		put(_metadata, self->p[1], before, 1, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, !to_packets);
		lazy_alloc(_metadata, &l, uffd, len, 1, before);
		lazy_start(_metadata, &l, self->p[1], 1ull << page);
		set_flag(_metadata, self->p[1], O_DIRECT, to_packets);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);

		/* 300 or no stream bytes, and two or three packets. */
		if (to_packets && before) {
			ASSERT_EQ(psz + 300, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, psz + 300, 1, 0));
			ASSERT_EQ(psz, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, psz, 1, psz + 300));
		} else if (to_packets) {
			for (ssize_t pos = 0; pos < len; pos += psz) {
				ssize_t want = min(psz, len - pos);

				ASSERT_EQ(want, read(self->p[0], buf, 8 * psz));
				ASSERT_EQ(-1, mismatch(buf, want, 1, pos));
			}
		} else {
			ASSERT_EQ(before + len, read(self->p[0], buf, 8 * psz));
			ASSERT_EQ(-1, mismatch(buf, before + len, 1, 0));
		}
		set_flag(_metadata, self->p[1], O_DIRECT, false);
		expect_works(_metadata, self->p);
		lazy_free(&l);
	}

	/*
	 * Packets all along, but the stream bytes are gone which the odd bytes
	 * were to be merged with.  How long the packets are is unspecified.
	 */
	for (page = 0; page < 3; page++) {
		ssize_t got = 0;

		put(_metadata, self->p[1], 100, 1, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, true);
		lazy_alloc(_metadata, &l, uffd, len, 1, 100);
		lazy_start(_metadata, &l, self->p[1], 1ull << page);
		get(_metadata, self->p[0], 100, 1, 0);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);
		for (i = 0; i < 3; i++) {
			ssize_t ret = read(self->p[0], buf, 8 * psz);

			ASSERT_GT(ret, 0);
			ASSERT_LE(ret, psz);
			ASSERT_EQ(-1, mismatch(buf, ret, 1, 100 + got));
			got += ret;
		}
		ASSERT_EQ(len, got);
		set_flag(_metadata, self->p[1], O_DIRECT, false);
		expect_works(_metadata, self->p);
		lazy_free(&l);
	}

	/* The only slot which can be merged with becomes a packet. */
	for (page = 0; page < 3; page++) {
		put(_metadata, self->p[1], 100, 1, 0);
		lazy_alloc(_metadata, &l, uffd, len, 1, 0);
		lazy_start(_metadata, &l, self->p[1], 1ull << page);
		get(_metadata, self->p[0], 100, 1, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, true);
		put(_metadata, self->p[1], 30, 2, 0);
		set_flag(_metadata, self->p[1], O_DIRECT, false);
		lazy_resolve(_metadata, &l);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);
		ASSERT_EQ(30, read(self->p[0], buf, 8 * psz));
		ASSERT_EQ(-1, mismatch(buf, 30, 2, 0));
		get(_metadata, self->p[0], len, 1, 0);
		expect_works(_metadata, self->p);
		lazy_free(&l);
	}
	close(uffd);
	free(buf);
}

/* A page of the buffer is not accessible, but what was copied before counts. */
TEST_F_TIMEOUT(copy, wrong_guess_efault, LONG_TIMEOUT)
{
	const char *reason;
	ssize_t i;
	int uffd;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);

	for (i = 0; i < 6; i++) {
		ssize_t before = i & 1 ? 100 : 0;
		ssize_t bad = 1 + i / 2;
		struct lazy l;

		put(_metadata, self->p[1], 100, 1, 0);
		lazy_alloc(_metadata, &l, uffd, 3 * psz + 200, 1, before);
		lazy_arm(_metadata, &l, 1);
		map_nothing_at(_metadata, l.map + bad * psz, psz);
		l.writer.fd = self->p[1];
		io_start(_metadata, &l.writer);
		lazy_wait_stuck(_metadata, &l);
		/* Either it cannot be merged any more, or not with the first. */
		get(_metadata, self->p[0], 100, 1, 0);
		put(_metadata, self->p[1], before, 1, 0);
		lazy_provide(_metadata, &l, ~(1ull << bad));
		io_join(_metadata, &l.writer);

		/* Pages of the stream are those of the buffer, or are not. */
		if (before || l.writer.ret != bad * psz)
			ASSERT_EQ((bad - 1) * psz + 200, l.writer.ret);
		map_at(_metadata, l.map + bad * psz, psz);
		memcpy(l.map + bad * psz, l.src + bad * psz, psz);
		expect_retry(_metadata, self->p, &l, before);
	}
	close(uffd);
}

/*
 * A reader who is stuck before it has read anything, and is overtaken by others, starts
 * over: it gets all of what is there then, and not as little as there was.  It notices
 * that if the pipe was @resized as well, twice, so that its slots may be where they were.
 */
static void overtaken_reader(struct __test_metadata *_metadata, const int p[2], int uffd,
			     ssize_t len, ssize_t taken, bool packets, bool resized)
{
	struct io query;
	struct lazy l;

	set_flag(_metadata, p[1], O_DIRECT, packets);
	set_slots(_metadata, p[1], DEF_SLOTS);
	put(_metadata, p[1], taken, 1, 0);
	lazy_start_read(_metadata, &l, uffd, p[0], 2 * psz);
	if (holds_mutex(_metadata, p[0], &query))
		SKIP(exit(KSFT_SKIP), "this kernel reads with the mutex held");
	ASSERT_EQ(taken, query.ret);

	get(_metadata, p[0], taken, 1, 0);
	if (resized) {
		set_slots(_metadata, p[1], DEF_SLOTS);
		set_slots(_metadata, p[1], DEF_SLOTS);
	}
	put(_metadata, p[1], len, 2, 0);
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(min(len, 2 * psz), l.writer.ret);
	ASSERT_EQ(-1, mismatch(l.map, l.writer.ret, 2, 0));
	ASSERT_EQ(len - l.writer.ret, nr_bytes(_metadata, p[0]));
	get(_metadata, p[0], len - l.writer.ret, 2, l.writer.ret);
	set_flag(_metadata, p[1], O_DIRECT, false);
	expect_works(_metadata, p);
	lazy_free(&l);
}

TEST_F_TIMEOUT(copy, stuck_reader_overtaken, LONG_TIMEOUT)
{
	const ssize_t taken[] = { 1, psz / 2, psz };
	const char *reason;
	ssize_t i;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	for (i = 0; i < 2 * ARRAY_SIZE(taken); i++) {
		const ssize_t len = taken[i / 2];
		const bool resized = i & 1;

		overtaken_reader(_metadata, self->p, uffd, len, len, false, resized);
		overtaken_reader(_metadata, self->p, uffd, psz, len, true, resized);
		overtaken_reader(_metadata, self->p, uffd, 5 * psz, len, false, resized);
	}
	close(uffd);
}

/*
 * Readers who share a pipe of records get one each, although they are longer than a
 * page, and one of the readers is stuck in the middle.
 */
TEST_F_TIMEOUT(copy, stuck_reader_in_frame, LONG_TIMEOUT)
{
	const ssize_t len = psz + psz / 2;
	struct io other, query;
	const char *reason;
	ssize_t before;
	struct lazy l;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	/* The record begins with a buffer, or in the middle of one. */
	for (before = 0; before <= len; before += len) {
		put(_metadata, self->p[1], before, 3, 0);
		put(_metadata, self->p[1], len, 1, 0);
		put(_metadata, self->p[1], len, 2, 0);
		get(_metadata, self->p[0], before, 3, 0);
		lazy_alloc(_metadata, &l, uffd, len, 0, 0);
		l.writer.is_read = true;
		lazy_start(_metadata, &l, self->p[0], 2);
		io_init_read(_metadata, &other, self->p[0], len);
		io_start(_metadata, &other);
		held_while_stuck(_metadata, self->p[0], &l, &query);
		io_join(_metadata, &l.writer);
		io_join(_metadata, &other);
		ASSERT_EQ(len, l.writer.ret);
		ASSERT_EQ(len, other.ret);
		ASSERT_EQ(-1, mismatch(l.map, len, 1, 0));
		ASSERT_EQ(-1, mismatch(other.buf, len, 2, 0));
		expect_works(_metadata, self->p);
		lazy_free(&l);
		free(other.buf);
	}
	close(uffd);
}

/*
 * A reader waits for no memory that it does not need: the end of a buffer that is
 * longer than what there is, or than a packet, may never come.
 */
TEST_F_TIMEOUT(copy, stuck_reader_needs, LONG_TIMEOUT)
{
	const ssize_t lens[] = { 1, 10, 100, psz };
	const char *reason;
	struct lazy l;
	ssize_t i;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		const ssize_t len = lens[i / 2], more = i & 1 ? 3 * psz : 0;

		/* The pipe has no more, or it has other packets. */
		set_flag(_metadata, self->p[1], O_DIRECT, more);
		put(_metadata, self->p[1], len, 1, 0);
		put(_metadata, self->p[1], more, 2, 0);
		lazy_alloc(_metadata, &l, uffd, 4 * psz, 0, 0);
		l.writer.is_read = true;
		/* The end of the first page, so that less than a page is in two. */
		l.writer.buf = l.map + psz - len;
		l.writer.len = 3 * psz;
		lazy_start(_metadata, &l, self->p[0], ~0ull);
		lazy_provide(_metadata, &l, 1);
		io_join(_metadata, &l.writer);
		ASSERT_EQ(len, l.writer.ret);
		ASSERT_EQ(-1, mismatch(l.writer.buf, len, 1, 0));
		ASSERT_EQ(more, nr_bytes(_metadata, self->p[0]));
		while (nr_bytes(_metadata, self->p[0]))
			ASSERT_EQ(psz, read(self->p[0], l.src, psz));
		lazy_free(&l);
	}
	close(uffd);
}

/* Who was overtaken, and slept for data then, does not wait with the mutex held. */
TEST_F_TIMEOUT(copy, stuck_reader_again, LONG_TIMEOUT)
{
	const char *reason;
	struct io query;
	struct lazy l;
	bool held;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	put(_metadata, self->p[1], 10, 1, 0);
	lazy_start_read(_metadata, &l, uffd, self->p[0], psz);
	if (holds_mutex(_metadata, self->p[0], &query)) {
		lazy_resolve(_metadata, &l);
		SKIP(return, "this kernel reads with the mutex held");
	}
	get(_metadata, self->p[0], 10, 1, 0);
	lazy_resolve(_metadata, &l);
	io_wait_blocked(_metadata, &l.writer);
	ASSERT_EQ(0, madvise(l.map, psz, MADV_DONTNEED));
	put(_metadata, self->p[1], 20, 2, 0);
	lazy_wait_stuck(_metadata, &l);
	held = held_while_stuck(_metadata, self->p[0], &l, &query);
	io_join(_metadata, &l.writer);
	ASSERT_FALSE(held);
	ASSERT_EQ(20, query.ret);
	ASSERT_EQ(20, l.writer.ret);
	ASSERT_EQ(-1, mismatch(l.map, 20, 2, 0));
	expect_works(_metadata, self->p);
	lazy_free(&l);
	close(uffd);
}

/*
 * A reader that was woken, and has to wait for its memory first, leaves the data to
 * the next one, if there is another.  That is no event for those who poll: the writer
 * has told them.
 */
TEST_F_TIMEOUT(copy, stuck_reader_no_event, LONG_TIMEOUT)
{
	struct epoll_event in = { .events = EPOLLIN | EPOLLET }, ev;
	int ep = epoll_create1(EPOLL_CLOEXEC), round, in_between[2] = { 0 };
	struct io other, query;
	const char *reason;
	struct lazy l;
	int uffd;

	uffd = uffd_open(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	if (!run_after_me(_metadata))
		SKIP(return, "no real-time policy: %s", strerror(errno));
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->p[0], &in));
	for (round = 0; round < 200 && min(in_between[0], in_between[1]) < 10; round++) {
		bool two = round & 1;

		lazy_alloc(_metadata, &l, uffd, psz, 0, 0);
		lazy_arm(_metadata, &l, 1);
		l.writer.is_read = true;
		l.writer.fd = self->p[0];
		io_start(_metadata, &l.writer);
		io_wait_blocked(_metadata, &l.writer);
		io_init_read(_metadata, &other, self->p[0], psz);
		if (two) {
			io_start(_metadata, &other);
			io_wait_blocked(_metadata, &other);
		}

		epoll_wait(ep, &ev, 1, 0);
		put(_metadata, self->p[1], 10, 1, 0);
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 0));
		/* It has not run yet, or else two events may have been one. */
		if (io_state(&l.writer) == 'R' && lazy_fault(_metadata, &l) < 0) {
			in_between[two]++;
			lazy_wait_stuck(_metadata, &l);
			if (holds_mutex(_metadata, self->p[0], &query))
				SKIP(exit(KSFT_SKIP), "this kernel reads with the mutex held");
			if (two) {
				ASSERT_TRUE(WAIT_FOR(io_done(&other)));
			} else {
				ASSERT_EQ(0, epoll_wait(ep, &ev, 1, 0));
			}
		}
		lazy_resolve(_metadata, &l);
		ASSERT_TRUE(WAIT_FOR(!nr_bytes(_metadata, self->p[0])));
		if (two) {
			put(_metadata, self->p[1], 20, 1, 10);
			io_join(_metadata, &other);
		}
		io_join(_metadata, &l.writer);
		ASSERT_EQ(two ? 30 : 10, l.writer.ret + (two ? other.ret : 0));
		ASSERT_EQ(-1, mismatch(l.map, l.writer.ret, 1, l.writer.ret == 20 ? 10 : 0));
		if (two) {
			ASSERT_EQ(-1, mismatch(other.buf, other.ret, 1,
					       other.ret == 20 ? 10 : 0));
		}
		expect_works(_metadata, self->p);
		lazy_free(&l);
		free(other.buf);
	}
	ASSERT_LE(10, min(in_between[0], in_between[1]));
	close(ep);
	close(uffd);
}

/*
 * Odd bytes that were to be merged, but cannot be any more, take the only slot
 * there is: the writer does not wait for the page behind them.  It has seen what it
 * could merge with when another one was about to fill that up, with the mutex held,
 * and a reader takes a page before it is its turn.
 */
TEST_F_TIMEOUT(copy, odd_takes_slot, LONG_TIMEOUT)
{
	const ssize_t odd = 100, last = 100, merged = psz - last - odd + 1;
	struct lazy other, l;
	struct io reader;
	const char *reason;
	int uffd, uffd2;

	uffd = uffd_open_unlocked(_metadata, &reason);
	if (uffd < 0)
		SKIP(return, "%s", reason);
	uffd2 = uffd_open(_metadata, &reason);
	ASSERT_GE(uffd2, 0);
	set_slots(_metadata, self->p[1], DEF_SLOTS);
	put(_metadata, self->p[1], (DEF_SLOTS - 1) * psz, 1, 0);
	put(_metadata, self->p[1], last, 2, 0);

	/* Less than a page is copied with the mutex held. */
	lazy_alloc(_metadata, &other, uffd, merged, 2, last);
	lazy_start(_metadata, &other, self->p[1], 1);
	io_init_read(_metadata, &reader, self->p[0], psz);
	io_start(_metadata, &reader);
	ASSERT_TRUE(WAIT_FOR(io_state(&reader) == 'D'));
	lazy_alloc(_metadata, &l, uffd2, psz + odd, 3, 0);
	lazy_arm(_metadata, &l, 2);
	l.writer.fd = self->p[1];
	l.writer.buf = l.map;
	io_start(_metadata, &l.writer);
	ASSERT_TRUE(WAIT_FOR(io_state(&l.writer) == 'D'));

	lazy_resolve(_metadata, &other);
	io_join(_metadata, &other.writer);
	io_join(_metadata, &reader);
	ASSERT_EQ(merged, other.writer.ret);
	ASSERT_EQ(psz, reader.ret);
	ASSERT_TRUE(WAIT_FOR(nr_bytes(_metadata, self->p[0]) ==
			     (DEF_SLOTS - 2) * psz + last + merged + odd));
	io_wait_blocked(_metadata, &l.writer);
	ASSERT_EQ(-1, lazy_fault(_metadata, &l));

	get(_metadata, self->p[0], (DEF_SLOTS - 2) * psz, 1, psz);
	get(_metadata, self->p[0], last + merged, 2, 0);
	get(_metadata, self->p[0], odd, 3, 0);
	lazy_wait_stuck(_metadata, &l);
	lazy_resolve(_metadata, &l);
	io_join(_metadata, &l.writer);
	ASSERT_EQ(psz + odd, l.writer.ret);
	get(_metadata, self->p[0], psz, 3, odd);
	lazy_free(&other);
	lazy_free(&l);
	close(uffd);
	close(uffd2);
}

TEST_HARNESS_MAIN
