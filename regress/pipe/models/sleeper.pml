/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fs/pipe.c: a write wakes rd_wait only if wq_has_sleeper(). A CPU's stores stay in its
 * store buffer until a full barrier, until somebody takes the lock that it released, or
 * for some time; loads look at memory. One task waits for data, in a read or in poll().
 *
 * Given with -D: WRITES of each of two writers; POLLS, whether the task polls; WITHOUT,
 * a step to take out:
 */
#define MB_OF_WRITER	1	/* smp_mb() in wq_has_sleeper() */
#define MB_OF_READER	2	/* that of set_current_state() */
#define MB_OF_POLL	3	/* that of poll_wait() */

#define WITH(step) (WITHOUT != step)


byte head, tail;			/* under the mutex */
byte seen;				/* pipe->head in memory */
bool queued, listed;			/* the task is on rd_wait: really, in memory */
bool asleep, mutex, stop;

inline mutex_lock() { !mutex -> mutex = true; seen = head }
inline mutex_unlock() { mutex = false }
inline smp_mb_writer() { seen = head }
inline smp_mb_waiter() { listed = queued }

/* A store buffer may be written to memory at any time. */
active proctype store_buffers() {
	do
	:: seen != head -> seen = head
	:: listed != queued -> listed = queued
	:: stop -> break
	od
}

/* Takes rd_wait.lock, and so sees the task that is queued. */
inline wake_up() {
	d_step {
		if :: queued -> asleep = false :: else fi;
		listed = queued
	}
}

active [2] proctype anon_pipe_write() {
	byte n;
	bool was_empty;

	do
	:: n == WRITES -> break
	:: n < WRITES ->
		atomic {
			mutex_lock();
			was_empty = head == tail;
			head++; n++;
			mutex_unlock()
		}
		if
		:: was_empty ->			/* wq_has_sleeper() */
			if :: WITH(MB_OF_WRITER) -> smp_mb_writer() :: else fi;
			if
			:: listed -> wake_up()
			:: else
			fi
		:: else
		fi
	od
}

active proctype anon_pipe_read() {
	do
	:: POLLS || tail == 2 * WRITES -> break
	:: else ->
		atomic {
			mutex_lock();
			if
			:: head != tail -> tail = head; mutex_unlock()
			:: else -> mutex_unlock(); goto wait
			fi
		}
		goto next;
wait:		do
		:: atomic { queued = true; asleep = true }
		   if :: WITH(MB_OF_READER) -> smp_mb_waiter() :: else fi;
		   if
		   :: seen != tail -> break
		   :: else -> !asleep
		   fi
		od;
		atomic { queued = false; listed = false; asleep = false }
next:		skip
	od;
	stop = true
}

active proctype pipe_poll() {
	if
	:: POLLS ->
		atomic { queued = true; asleep = true }	/* poll_wait() */
		if :: WITH(MB_OF_POLL) -> smp_mb_waiter() :: else fi;
		if
		:: seen != tail
		:: else -> !asleep
		fi
	:: else
	fi
}
