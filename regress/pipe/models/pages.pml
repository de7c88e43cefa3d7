/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fs/pipe.c: where a page is. Writers take pages from pipe->spare_page or allocate them,
 * and fill them; readers copy, without the mutex if they have to wait for memory, and
 * keep or put what is empty. Each page is in one place, what a reader copies is what was
 * written, and in the end none is lost.
 *
 * Given with -D: NW writers of PAGES each, NR readers, PP pages that there are, RING
 * slots, SPARE of spare_page; WITHOUT, a step to take out:
 */
#define XCHG	1		/* a spare page is taken in one step */
#define PUT_LOCKED	2		/* one is kept with the mutex held */
#define COUNT	3		/* a page that somebody else has is not kept */
#define GET	4		/* a reader that copies without the mutex has a reference */

#define WITH(step) (WITHOUT != step)

chan ring = [RING] of { byte, byte };	/* a page, and what was written to it */
byte spare[SPARE];			/* pipe->spare_page */
byte refs[PP + 1], data[PP + 1];	/* page_count(), content; page 0 is NULL */
bool mutex;
byte out;				/* pages that were read */

inline alloc_page() {
	d_step {
		page = 1;
		do
		:: refs[page] -> page++
		:: else -> break
		od;
		refs[page] = 1
	}
}

inline put_page() {
	d_step {
		assert(refs[page]);
		refs[page]--;
		page = 0
	}
}

inline anon_pipe_get_page() {
	slot = 0;
	do
	:: slot == SPARE -> alloc_page(); break
	:: slot < SPARE ->
		if
		:: spare[slot] && WITH(XCHG) -> d_step { page = spare[slot]; spare[slot] = 0 }
		:: spare[slot] && !WITH(XCHG) -> page = spare[slot]; spare[slot] = 0
		:: else
		fi;
		if :: page -> break :: else -> slot++ fi
	od;
	slot = 0
}

/* Clears @page if it is kept. */
inline anon_pipe_cache_page() {
	slot = 0;
	do
	:: slot == SPARE -> break
	:: slot < SPARE ->
		if
		:: !spare[slot] -> spare[slot] = page; page = 0
		:: else
		fi;
		if :: page -> slot++ :: else -> break fi
	od;
	slot = 0
}

inline anon_pipe_buf_release() {
	if
	:: refs[page] == 1 || !WITH(COUNT) -> anon_pipe_cache_page()
	:: else
	fi;
	if :: page -> put_page() :: else fi
}

proctype anon_pipe_write(byte w) {
	byte page, slot, n;

	do
	:: n == PAGES -> break
	:: n < PAGES ->
		anon_pipe_get_page();
		assert(refs[page] == 1);
		data[page] = w * PAGES + n + 1;		/* anon_pipe_copy_in() */
		assert(data[page] == w * PAGES + n + 1);
		atomic {
			!mutex && len(ring) < RING -> mutex = true;
			ring!page, w * PAGES + n + 1;
			assert(data[page] == w * PAGES + n + 1);
			page = 0;
			mutex = false
		}
		n++
	od
}

proctype anon_pipe_read() {
	byte page, slot, what, drained;

again:	atomic {
		if
		:: out == NW * PAGES -> goto done
		:: len(ring) && !mutex -> mutex = true
		fi;
		ring?<page, what>;
		assert(data[page] == what);
		if
		:: goto consume
		:: true				/* anon_pipe_copy_unlocked() */
		fi;
		if :: WITH(GET) -> refs[page]++ :: else fi;
		mutex = false
	}
	assert(data[page] == what);
	if
	:: WITH(GET) && WITH(PUT_LOCKED) -> put_page()
	:: WITH(GET) && !WITH(PUT_LOCKED) -> anon_pipe_buf_release()
	:: else
	fi;
	page = 0;
	what = 0;
	goto again;

consume:					/* pipe_update_tail() */
	if
	:: refs[page] == 1 ->
		anon_pipe_cache_page();
		drained = page;
		page = 0
	:: else -> anon_pipe_buf_release()
	fi;
	atomic { ring?_, _; out++; what = 0; mutex = false }
	page = drained;
	drained = 0;
	if :: page -> put_page() :: else fi;
	goto again;
done:	skip
}

init {
	byte k;

	atomic {
		for (k : 0 .. NW - 1) { run anon_pipe_write(k) }
		for (k : 1 .. NR) { run anon_pipe_read() }
	}
	_nr_pr == 1;
	/* What is not free is kept, once. */
	d_step {
		for (k : 0 .. SPARE - 1) {
			if :: spare[k] -> refs[spare[k]]-- :: else fi
		}
		for (k : 1 .. PP) { assert(!refs[k]) }
	}
}
