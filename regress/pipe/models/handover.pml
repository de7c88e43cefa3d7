/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fs/pipe.c: which tasks sleep in anon_pipe_read() and anon_pipe_write(), and which
 * wake them. A page of data is a writer and a number. Readers read until the last
 * writer has closed, so a lost wakeup is an end state in which a task sleeps. A task
 * whose memory is not there waits for it until nothing else moves, and then looks for
 * others that sleep and should not.
 *
 * Given with -D: RING slots; NW writers, two of SIZE0 and SIZE1 pages, or of that many
 * writes of less than a page each if SMALL0 and SMALL1, and a third of one; POLLS, the
 * writer that is O_NONBLOCK and polls, or NW, and whether it does so with EPOLLET (EDGE),
 * or before it writes (LOOKS); NR readers of up to READ pages at a time, which close after
 * READS reads if that is not 0; how many FAULTS, ERRORS and SIGNALS there may be; WITHOUT,
 * a step to take out:
 */
#define WAKE_OF_DONE	1	/* a writer whose pages are all in is woken, */
#define LOOK_AT_LIST	2	/* and stops waiting for room */
#define LIST_DEL	3	/* a writer that stops waiting is queued no more */
#define WAKE_OF_NEXT	4	/* new data that a read put in wake the next reader */
#define WAKE_OF_READER	5	/* a reader that was woken and leaves data wakes the next, */
#define WAKE_BEFORE_COPY 6	/* also before it waits for memory */
#define WAKE_OF_WRITER	7	/* a writer that was woken and leaves room wakes the next, */
#define WAKE_OF_BLOCKED	8	/* also before it waits for memory */
#define WAKE_BEFORE_FILL 9	/* a writer wakes readers before it waits for memory */
#define RESTART		10	/* a read that waited for memory starts over */
#define UNLOCK		11	/* memory is waited for without the mutex */
#define WAKE_AT_CLOSE	12	/* the last close wakes all */
#define ROOM_WANTED	13	/* a read leaves the room once it was asked for: */
#define POLL_ASKS	14	/* by a poller, */
#define WRITE_ASKS	15	/* and by an O_NONBLOCK write, */
#define ASKS_AGAIN	16	/* before each sleep: splice() waits as a poller does */

#define WITH(step) (WITHOUT != step)
#define TASKS (NW + NR)
#define FULL (len(ring) == RING)
#define EMPTY (len(ring) == 0)
#define READABLE (!EMPTY || !writers)
#define WRITABLE (!FULL || !readers)
#define ON(list, t) (list??[eval(t)])

chan ring = [RING] of { byte };
chan blocked = [NW] of { byte };	/* pipe->blocked */
chan rd_wait = [NR] of { byte };	/* exclusive waiters, in order */
chan wr_wait = [NW] of { byte };
bool polling, wants;			/* one polls for room; it has asked for it */
bool mutex;
byte room_wanted;			/* how many reads leave the room */
byte readers = NR, writers = NW, consumed;
byte faults = FAULTS, errors = ERRORS, signals = SIGNALS;

bool asleep[TASKS];			/* TASK_INTERRUPTIBLE */
bool wake_q[NW];			/* task->wake_q is in use */
bool sig[NW], failed[NW];		/* signal_pending(), prep->error */
bool waits[NW];				/* in anon_pipe_wait(): others may use prep */
byte nr[NW], left[NW], done[NW];	/* prep->nr, iov_iter_count(), prep->done */
byte seq[NW], got[NW];			/* pages that went in, and came out */
hidden byte idx, task, page, found, was_full;

/* Nothing moves but tasks that wait for their memory. */
inline quiet() {
	d_step {
		assert(!mutex);
		for (idx : 0 .. NW - 1) {
			assert(!asleep[idx] || FULL);
			assert(!asleep[idx] || idx == POLLS || nr[idx] + left[idx])
		}
		for (idx : NW .. TASKS - 1) {
			assert(!asleep[idx] || EMPTY)
		}
		idx = 0
	}
}

inline page_fault() {
	if
	:: true
	:: true -> timeout; quiet()
	fi
}

inline mutex_lock() { !mutex -> mutex = true }
inline mutex_unlock() { mutex = false }

/* __wake_up(): the first exclusive waiter that sleeps, and on wr_wait the poller. */
inline wake_up(queue, polled) {
	d_step {
		if :: polled -> asleep[POLLS] = false :: else fi;
		idx = len(queue); found = false;
		do
		:: idx ->
			idx--; queue?task;
			if
			:: !found && asleep[task] -> asleep[task] = false; found = true
			:: else -> queue!task
			fi
		:: else -> break
		od; task = 0; found = false
	}
}

/* wait_event_interruptible_exclusive() */
inline wait_event(queue, me, condition, signal) {
	do
	:: atomic {				/* prepare_to_wait_event() */
		interrupted = signal;
		if
		:: !interrupted && !ON(queue, me) -> queue!me
		:: interrupted && ON(queue, me) -> queue??eval(me)
		:: else
		fi; asleep[me] = !interrupted
	   }
	   if
	   :: condition || interrupted -> break
	   :: else -> !asleep[me]		/* schedule() */
	   fi
	od;
	atomic {				/* finish_wait() */
		asleep[me] = false; interrupted = false;
		if :: ON(queue, me) -> queue??eval(me) :: else fi
	}
}

inline pipe_release(count) {
	atomic {
		mutex_lock();
		count--;
		if
		:: !readers != !writers && WITH(WAKE_AT_CLOSE) ->
			d_step {
				for (idx : 0 .. TASKS - 1) { asleep[idx] = false }
				idx = 0
			}
		:: else
		fi;
		mutex_unlock()
	}
}

inline anon_pipe_link(w) {
	do
	:: nr[w] && !FULL -> ring!(w * 16 + seq[w]); seq[w]++; done[w]++; nr[w]--
	:: else -> break
	od
}

/* @new: whether there are new data. */
inline anon_pipe_hand_over() {
	new = false;
	if
	:: room_wanted && WITH(ROOM_WANTED) -> wants = false; room_wanted--
	:: else ->
		do
		:: !len(blocked) -> break
		:: else ->
			blocked?<task>;
			assert(waits[task]);
			if :: !nr[task] -> break :: else -> new = true fi;
			anon_pipe_link(task);
			if :: nr[task] -> break :: else -> blocked?task fi;
			/* wake_q_add(): if it is in use, that wakeup has yet to come. */
			if
			:: !wake_q[task] && WITH(WAKE_OF_DONE) -> wake_q[task] = true; woken[task] = true
			:: else
			fi
		od
	fi; task = 0
}

proctype anon_pipe_read(byte me) {
	bool wake_writer, wake_next_reader, new, interrupted, woken[NW];
	byte want, tail, reads;

next:	if
	:: READS && reads == READS -> goto close
	:: else -> reads = (READS -> reads + 1 : 0)
	fi;
	atomic {
		mutex_lock();
		select(want : 1 .. READ);
again:		if
		:: EMPTY && !writers -> mutex_unlock(); goto close
		:: EMPTY && writers -> mutex_unlock(); goto wait
		:: !EMPTY -> tail = consumed
		fi;
		if
		:: true				/* anon_pipe_copy() */
		:: faults -> faults--; goto fault
		:: errors -> errors--; goto out
		fi;
consume:	wake_writer = FULL;		/* anon_pipe_consume() */
		assert(tail == consumed);
		do
		:: want && !EMPTY ->
			ring?page;
			assert(page % 16 == got[page / 16]);
			got[page / 16]++; consumed++; want--
		:: else -> break
		od; page = 0
	}
out:	atomic {
		found = EMPTY;
		was_full = wake_writer && wants;
		if :: wake_writer -> anon_pipe_hand_over() :: else fi;
		wake_next_reader = (found -> new && WITH(WAKE_OF_NEXT) : wake_next_reader);
		wake_writer = wake_writer && !FULL;
		assert(!was_full || wake_writer);	/* a poller has asked */
		was_full = 0; found = 0; new = false; want = 0; tail = 0;
		mutex_unlock()
	}
	if
	:: woken[0] || woken[1] || woken[NW - 1] ->	/* wake_up_q() */
		d_step {
			for (idx : 0 .. NW - 1) {
				if
				:: woken[idx] -> wake_q[idx] = false; woken[idx] = false; asleep[idx] = false
				:: else
				fi
			}
			idx = 0
		}
	:: else
	fi;
	if :: wake_writer -> wake_up(wr_wait, polling) :: else fi;
	if :: wake_next_reader && WITH(WAKE_OF_READER) -> wake_up(rd_wait, false) :: else fi;
	atomic { wake_writer = false; wake_next_reader = false; goto next }

wait:	wait_event(rd_wait, me, READABLE, false);
	atomic { wake_next_reader = true; mutex_lock(); goto again }

fault:	if :: WITH(UNLOCK) -> mutex_unlock() :: else fi;	/* anon_pipe_copy_unlocked() */
	if :: wake_next_reader && WITH(WAKE_BEFORE_COPY) -> wake_up(rd_wait, false) :: else fi;
	page_fault();
	atomic {
		if :: WITH(UNLOCK) -> mutex_lock() :: else fi;
		if :: WITH(RESTART) -> goto again :: else -> goto consume fi
	}

close:	pipe_release(readers)
}

/* Prepare what there is room for, and wait for memory; then what is there. */
inline anon_pipe_fill(w) {
	atomic {
		room = (small -> 1 : RING - len(ring));
		do
		:: nr[w] < room && left[w] && !failed[w] ->
			if
			:: nr[w]++; left[w]--
			:: faults -> faults--; page_fault()
			:: errors -> errors--; failed[w] = true
			fi
		:: else -> break
		od;
		do
		:: !small && w != POLLS && left[w] && !failed[w] -> nr[w]++; left[w]--
		:: break
		od; room = 0
	}
}

/* @more: more has to be prepared; @stop: the error is what comes next. */
inline anon_pipe_put(w) {
	room = RING - len(ring); more = false;
	if
	:: small && !nr[w] && !failed[w] && room ->
		if
		:: nr[w] = 1; left[w] = 0; anon_pipe_link(w)
		:: more = true
		fi
	:: else ->
		if
		:: left[w] && !failed[w] && (!done[w] || !nr[w]) && nr[w] < room -> more = true
		:: else ->
			if
			:: failed[w] && !nr[w] && room -> stop = true
			:: else -> anon_pipe_link(w)
			fi
		fi
	fi; room = 0
}

proctype anon_pipe_write(byte w; byte todo; bool small) {
	bool was_empty, wake_next_writer, more, stop, interrupted, asked;
	byte room;

	if
	:: EDGE && w == POLLS -> atomic { polling = true; asleep[w] = true }
	:: LOOKS && w == POLLS -> polling = true; goto poll
	:: else
	fi;
next:	if
	:: !todo || stop -> goto close
	:: else -> d_step { left[w] = (small -> 1 : todo); was_empty = false; wake_next_writer = false }
	fi;
	if :: !small -> anon_pipe_fill(w) :: else fi;
	atomic {
		mutex_lock();
again:		if
		:: !(nr[w] + left[w]) -> goto out
		:: !readers && (nr[w] + left[w]) -> stop = true; goto out
		:: else -> was_empty = was_empty || EMPTY
		fi;
		anon_pipe_put(w);
		if
		:: stop -> goto out
		:: !stop && !more && (!FULL || !(nr[w] + left[w])) -> goto again
		:: else
		fi;
		if
		:: !more && w == POLLS ->
			room_wanted = (WITH(WRITE_ASKS) -> 1 : room_wanted);
			wants = EDGE;
			goto out
		:: !more && sig[w] -> goto out
		:: else -> was_empty = was_empty && !EMPTY
		fi;
		if
		:: more && wake_next_writer && !FULL && len(blocked) && WITH(WAKE_OF_BLOCKED) ->
			blocked?<task>; asleep[task] = false; task = 0
		:: else
		fi;
		if :: WITH(UNLOCK) -> mutex_unlock() :: else fi
	}
	if :: was_empty && WITH(WAKE_BEFORE_FILL) -> wake_up(rd_wait, false) :: else fi;
	if :: more || !(nr[w] || small) -> anon_pipe_fill(w) :: else fi;
	atomic {
		if :: WITH(UNLOCK) -> mutex_lock() :: else fi;
		was_empty = false;
		if
		:: !more && FULL && readers ->	/* anon_pipe_wait() */
			if :: left[w] = left[w] + nr[w]; nr[w] = 0 :: true fi;
			blocked!w; waits[w] = true;
			mutex_unlock()
		:: else -> wake_next_writer = wake_next_writer || !more; goto again
		fi
	}
	wait_event(wr_wait, w, WRITABLE || (!ON(blocked, w) && WITH(LOOK_AT_LIST)), sig[w]);
	atomic {
		mutex_lock();
		waits[w] = false;
		if :: ON(blocked, w) && WITH(LIST_DEL) -> blocked??eval(w) :: else fi;
		wake_next_writer = true;
		goto again
	}
out:	atomic {
		wake_next_writer = wake_next_writer && !FULL;
		todo = todo - done[w]; left[w] = 0; nr[w] = 0; done[w] = 0; sig[w] = false;
		mutex_unlock()
	}
	if :: was_empty -> wake_up(rd_wait, false) :: else fi;
	if :: wake_next_writer && WITH(WAKE_OF_WRITER) -> wake_up(wr_wait, polling) :: else fi;
	if
	:: !todo || stop || w != POLLS -> goto next
	:: else
	fi;
	if :: EDGE -> goto sleep :: else -> polling = true fi;
poll:	asleep[w] = true;			/* pipe_poll(), pipe_writable_or_wanted() */
	if
	:: WRITABLE -> atomic { wants = false; polling = EDGE; asleep[w] = EDGE; goto next }
	:: else ->
		d_step {
			room_wanted = (WITH(POLL_ASKS) && (WITH(ASKS_AGAIN) || !asked) -> 1 : room_wanted);
			wants = true; asked = true
		}
	fi;
sleep:	!asleep[w];
	goto poll;
close:	if
	:: EDGE && w == POLLS -> atomic { polling = false; asleep[w] = false }
	:: else
	fi;
	pipe_release(writers)
}

active proctype signal_wake_up() {
	do
	:: signals -> d_step { signals--; sig[0] = true; asleep[0] = false }
	:: break
	od
}

init {
	atomic {
		run anon_pipe_write(0, SIZE0, SMALL0);
		run anon_pipe_write(1, SIZE1, SMALL1);
		if :: NW == 3 -> run anon_pipe_write(NW - 1, 1, true) :: else fi;
		for (idx : NW .. TASKS - 1) { run anon_pipe_read(idx) }
	}
}
