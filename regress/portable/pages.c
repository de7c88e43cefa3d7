// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that pass 64 KiB at a time through one ring of pages, as through a pipe;
 * half of them write. A writer allocates pages and copies into them, a reader
 * copies from them and frees them. Allocating, the writer's copy and freeing are done
 *
 *  - with the ring's mutex held (as fs/pipe.c does),
 *  - or without it: pages are linked when they are full, and freed later (pipe).
 *
 * See portable.h for the options; of 1 thread, there is one more that reads.
 */
#include "portable.h"

#define PAGE		4096
#define PAGES		16		/* of a write, or of a read at most */
#define RING		64

static struct {
	LINE pthread_mutex_t lock;
	pthread_cond_t readable, writable;
	unsigned char *page[RING];
	unsigned int head, tail;
} ring = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.readable = PTHREAD_COND_INITIALIZER,
	.writable = PTHREAD_COND_INITIALIZER,
};

static void begin(void)
{
	while (ring.tail != ring.head)
		free(ring.page[ring.tail++ % RING]);
}

/* When the time is over, wake the threads that wait. */
static void beside(void)
{
	if (!done())
		return;
	pthread_mutex_lock(&ring.lock);
	pthread_cond_broadcast(&ring.readable);
	pthread_cond_broadcast(&ring.writable);
	pthread_mutex_unlock(&ring.lock);
}

static unsigned char *filled(const unsigned char *from)
{
	unsigned char *page = malloc(PAGE);

	must(page, "there is no memory");
	memcpy(page, from, PAGE);
	return page;
}

static unsigned long writer(bool before)
{
	unsigned char data[PAGES * PAGE], *pages[PAGES];
	unsigned long ops;
	int i;

	memset(data, 0x5a, sizeof(data));
	for (ops = 0; !done(); ops++) {
		for (i = 0; before && i < PAGES; i++)
			pages[i] = filled(data + i * PAGE);
		pthread_mutex_lock(&ring.lock);
		for (i = 0; i < PAGES; i++) {
			while (ring.head - ring.tail == RING && !done())
				pthread_cond_wait(&ring.writable, &ring.lock);
			if (done())
				break;
			ring.page[ring.head % RING] = before ? pages[i] : filled(data + i * PAGE);
			if (ring.head++ == ring.tail)
				pthread_cond_signal(&ring.readable);
		}
		pthread_mutex_unlock(&ring.lock);
		for (; before && i < PAGES; i++)
			free(pages[i]);
	}
	return ops;
}

static void reader(bool after)
{
	unsigned char data[PAGES * PAGE], *pages[PAGES];
	int i, had;

	while (!done()) {
		pthread_mutex_lock(&ring.lock);
		while (ring.head == ring.tail && !done())
			pthread_cond_wait(&ring.readable, &ring.lock);
		for (had = 0; had < PAGES && ring.head != ring.tail; had++) {
			pages[had] = ring.page[ring.tail % RING];
			memcpy(data + had * PAGE, pages[had], PAGE);
			if (!after)
				free(pages[had]);
			if (ring.head - ring.tail++ == RING)
				pthread_cond_signal(&ring.writable);
		}
		pthread_mutex_unlock(&ring.lock);
		for (i = 0; i < had; i++) {
			must(data[i * PAGE] == 0x5a && data[i * PAGE + PAGE - 1] == 0x5a,
			     "a reader has got other bytes");
			if (after)
				free(pages[i]);
		}
	}
}

static void *alone(void *unused)
{
	reader(way);
	return unused;
}

static unsigned long work(int thread)
{
	unsigned long ops = 0;
	pthread_t other;

	if (threads == 1)
		must(!pthread_create(&other, NULL, alone, NULL), "there is no room for a thread");
	if (thread % 2)
		reader(way);
	else
		ops = writer(way);
	if (threads == 1)
		pthread_join(other, NULL);
	return ops;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "under the mutex", "before and after" };

	return portable(argc, argv, "writes of 64 KiB to one ring", names, 2);
}
