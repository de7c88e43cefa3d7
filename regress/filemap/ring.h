/* SPDX-License-Identifier: GPL-2.0 */
/* An io_uring with one request at a time, for tests with the kselftest harness. */
#ifndef RING_H
#define RING_H

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct ring {
	int fd;
	unsigned char *rings;
	struct io_uring_sqe *sqe;
	struct io_uring_params p;
};

static unsigned int *ring_field(struct ring *r, unsigned int offset)
{
	return (unsigned int *)(r->rings + offset);
}

/*
 * Set up @r with the @len bytes at @buf as its registered buffer.  Returns 0, or the errno
 * that says why there is no io_uring.
 */
static int ring_setup(struct __test_metadata *_metadata, struct ring *r, void *buf,
		      size_t len)
{
	struct iovec fixed = { buf, len };
	size_t sq_len, cq_len;

	memset(r, 0, sizeof(*r));
	r->fd = syscall(__NR_io_uring_setup, 1, &r->p);
	if (r->fd < 0)
		return errno;
	if (!(r->p.features & IORING_FEAT_SINGLE_MMAP)) {
		close(r->fd);
		return EOPNOTSUPP;
	}
	sq_len = r->p.sq_off.array + r->p.sq_entries * sizeof(unsigned int);
	cq_len = r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe);
	r->rings = mmap(NULL, sq_len > cq_len ? sq_len : cq_len, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	ASSERT_NE(MAP_FAILED, r->rings);
	r->sqe = mmap(NULL, sizeof(*r->sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		      r->fd, IORING_OFF_SQES);
	ASSERT_NE(MAP_FAILED, r->sqe);
	ASSERT_EQ(0, syscall(__NR_io_uring_register, r->fd, IORING_REGISTER_BUFFERS, &fixed, 1)) {
		TH_LOG("IORING_REGISTER_BUFFERS: %s", strerror(errno));
	}
	return 0;
}

/* Wait for the request @sqe; its result, or -1 and errno */
static ssize_t ring_wait(struct __test_metadata *_metadata, struct ring *r,
			 struct io_uring_sqe sqe)
{
	static unsigned int cookie;
	unsigned int *sq_head = ring_field(r, r->p.sq_off.head);
	unsigned int *sq_tail = ring_field(r, r->p.sq_off.tail);
	unsigned int *cq_head = ring_field(r, r->p.cq_off.head);
	unsigned int *cq_tail = ring_field(r, r->p.cq_off.tail);
	struct io_uring_cqe *cqe = (void *)(r->rings + r->p.cq_off.cqes);
	ssize_t res;
	int ret;

	*r->sqe = sqe;
	r->sqe->user_data = ++cookie;
	ring_field(r, r->p.sq_off.array)[0] = 0;
	__atomic_store_n(sq_tail, *sq_tail + 1, __ATOMIC_RELEASE);
	do {
		unsigned int todo = *sq_tail - __atomic_load_n(sq_head, __ATOMIC_ACQUIRE);

		ret = syscall(__NR_io_uring_enter, r->fd, todo, 1, IORING_ENTER_GETEVENTS,
			      NULL, 0);
		ASSERT_TRUE(ret >= 0 || errno == EINTR);
	} while (*cq_head == __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE));

	cqe += *cq_head & *ring_field(r, r->p.cq_off.ring_mask);
	ASSERT_EQ(cookie, cqe->user_data);
	res = cqe->res;
	__atomic_store_n(cq_head, *cq_head + 1, __ATOMIC_RELEASE);
	if (res < 0) {
		errno = -res;
		return -1;
	}
	return res;
}

#endif
