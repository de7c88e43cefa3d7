/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel/pid_nr.c: numbers are taken and given back without a lock, chunks are added
 * and removed with the XArray's. Each task takes a number, publishes its pid, looks it
 * up and gives the number back, again and again. No two have a number at a time, each
 * finds its own pid, nobody touches a chunk that was freed, -EAGAIN and -EEXIST are
 * exact, and in the end free numbers can be found and empty chunks are gone.
 *
 * Given with -D: NT tasks that do this ROUNDS times, with numbers from FIRST (after a
 * wrap, from RESERVED) to LAST; TID, a number that the first task asks for, or 0;
 * SET_NEXT, where another one moves ns->next by ns_last_pid, or 0; HELD, a number that
 * is taken all the time, or 0; BITS, numbers of a chunk; WITHOUT, a step to take out:
 */
#define BIT_TESTED	1	/* a number whose bit is set is not taken */
#define SLOT_FIRST	2	/* free_pid_nr() clears the slot, then the bit, */
#define FULL_AFTER	3	/* then it looks at ->full */
#define NEXT_AFTER	4	/* and at ns->next */
#define NEXT_LOCKED	5	/* a search keeps others from claiming numbers */
#define RECHECK		6	/* mark_full() looks again after it has set ->full */
#define MARK		7	/* a chunk that is not full any more gets its mark */
#define TRIM_EMPTY	8	/* free_pid_nr() has an empty chunk removed */
#define TRIM_LEFT	9	/* and so does what moves ns->next out of one */
#define ONE_STEP	10	/* ->used goes from 0 to ~0UL in one step */
#define GONE		11	/* nothing is taken in what was removed */
#define CHUNK_CLEARED	12	/* ns->chunk is not what was removed */
#define RCU		13	/* a chunk is freed after a grace period */
#define INDEX_TESTED	14	/* ns->chunk may be another chunk */

#define WITH(step) (WITHOUT != step)
#define ALL ((1 << BITS) - 1)	/* ~0UL */
#define CHUNKS (LAST / BITS + 2)	/* that ns->next can be in */
#define NC (CHUNKS + NT + 3)	/* that there is memory for, and NULL */
#define ENOMEM 100
#define EAGAIN 101
#define EEXIST 102
#define IS_SET(c, nr) ((used[c] >> ((nr) % BITS)) & 1)

byte next = FIRST;		/* ns->next, and PID_NEXT_LOCKED */
bool next_locked, xa_lock;
byte chunk;			/* ns->chunk */
byte slots[CHUNKS];		/* ns->chunks, and where XA_FREE_MARK is clear */
bool unmarked[CHUNKS];

byte used[NC], indexes[NC];	/* of each chunk */
bool is_full[NC], live[NC], dying[NC];
byte pids[NC * BITS];
byte readers;			/* in rcu_read_lock() */

byte owner[LAST + 1];		/* a task + 1 */
byte busy[LAST + 1];		/* tasks that have claimed or taken it, and not given it back */
byte wanted[NT];		/* what each asks for, and whether all of that was busy */
bool exact[NT];
hidden byte idx, sum;

inline lock() { atomic { !xa_lock -> xa_lock = true } }
inline unlock() { xa_lock = false }

inline rcu_read_lock() { readers++ }
inline rcu_read_unlock() {
	d_step {
		readers--;
		for (idx : 1 .. NC - 1) {
			if :: !readers && dying[idx] -> dying[idx] = false; live[idx] = false :: else fi
		}
		idx = 0
	}
}

/* See for all calls whether an error would be right at this moment. */
inline note() {
	d_step {
		sum = 0;
		for (idx : RESERVED .. LAST) {
			if :: busy[idx] -> sum++ :: else fi
		}
		for (idx : 0 .. NT - 1) {
			exact[idx] = exact[idx] || (wanted[idx] -> busy[wanted[idx]] : sum == LAST - RESERVED + 1)
		}
		idx = 0; sum = 0
	}
}

inline set_bit(c, n) {
	assert(!owner[n] && live[c] && indexes[c] == n / BITS && slots[n / BITS] == c);
	used[c] = used[c] | (1 << (n % BITS));
	owner[n] = me + 1
}

inline mark_full(c) {
	if
	:: is_full[c] || used[c] != ALL
	:: else ->
		is_full[c] = true;
		if
		:: used[c] == ALL || !WITH(RECHECK) -> unmarked[indexes[c]] = true
		:: else -> is_full[c] = false
		fi
	fi
}

inline trim_pid_chunk(index) {
	atomic {
		c = slots[index];
		emptied = c && index != next / BITS && !used[c];
		if :: emptied && WITH(ONE_STEP) && WITH(GONE) -> used[c] = ALL :: else fi
	}
	if
	:: emptied ->
		if :: !WITH(ONE_STEP) -> used[c] = ALL :: else fi;
		if :: chunk == c && WITH(CHUNK_CLEARED) -> chunk = 0 :: else fi;
		atomic {
			slots[index] = 0; unmarked[index] = false;
			if	/* kfree_rcu() */
			:: readers && WITH(RCU) -> dying[c] = true
			:: else -> live[c] = false
			fi
		}
	:: !emptied && c && used[c] == ALL -> mark_full(c)
	:: !emptied && c && used[c] != ALL ->
		if :: is_full[c] && WITH(MARK) -> unmarked[index] = false; is_full[c] = false :: else fi
	:: else
	fi;
	c = 0; emptied = false
}

inline pid_ns_set_next(to) {
	atomic { old = next / BITS; next = to; next_locked = false }
	if :: old != to / BITS && WITH(TRIM_LEFT) -> trim_pid_chunk(old) :: else fi;
	old = 0
}

inline find_pid_chunk() {
	atomic { rcu_read_lock(); c = chunk }
	atomic {
		if :: !c || (indexes[c] != nr / BITS && WITH(INDEX_TESTED)) -> c = slots[nr / BITS] :: else fi;
		assert(c && live[c])
	}
}

inline take_next_nr() {
	atomic { rcu_read_lock(); nr = (next_locked -> 0 : next) }
	do
	:: !nr || nr > LAST -> nr = 0; break
	:: else ->
		atomic {
			c = chunk;
			assert(!c || live[c]);
			if
			:: !c || (indexes[c] != nr / BITS && WITH(INDEX_TESTED)) || IS_SET(c, nr) -> nr = 0; break
			:: else
			fi
		}
		atomic {		/* atomic_try_cmpxchg() */
			if
			:: next == nr && !next_locked ->
				next++; claim = true; first = nr; busy[nr]++; note()
			:: else -> nr = (next_locked -> 0 : next)
			fi
		}
		if
		:: claim ->
			atomic {	/* test_and_set_bit() */
				assert(live[c]);
				if
				:: !IS_SET(c, nr) || !WITH(BIT_TESTED) -> set_bit(c, nr); claim = false; first = 0
				:: else -> nr = 0
				fi
			}
			break
		:: else
		fi
	od;
	atomic { c = 0; rcu_read_unlock() }
}

/* @nr: the first free number of @low to @last, 0 or ENOMEM. */
inline take_free_nr() {
	atomic { nr = 0; index = low / BITS; pos = low % BITS }
	do
	:: index > last / BITS || low > last -> break
	:: else ->			/* xas_find_marked() */
		atomic {
			c = slots[index];
			do
			:: c && pos < BITS && IS_SET(c, pos) -> pos++
			:: else -> break
			od
		}
		if
		:: unmarked[index] -> index++; pos = 0
		:: !unmarked[index] ->
			if
			:: index * BITS + pos > last -> break
			:: index * BITS + pos <= last && !c ->
				if
				:: !new -> nr = ENOMEM
				:: else ->
					atomic {
						indexes[new] = index; slots[index] = new;
						nr = index * BITS + pos; busy[nr]++;
						set_bit(new, nr); new = 0; note()
					}
				fi;
				break
			:: else ->
				if
				:: pos == BITS -> mark_full(c); index++; pos = 0
				:: pos < BITS ->
					atomic {
						if
						:: !IS_SET(c, pos) || !WITH(BIT_TESTED) ->
							nr = index * BITS + pos; busy[nr]++;
							set_bit(c, nr); note()
						:: else
						fi
					}
					if :: nr -> mark_full(c); break :: else fi
				fi
			fi
		fi
	od;
	atomic { c = 0; index = 0; pos = 0 }
}

proctype task(byte me) {
	byte round, nr, tid, first, from, left, low, last, pass, old, new, c, index, pos;
	bool claim, wrap, emptied, trim, away;

again:	atomic {
		if :: round == ROUNDS -> goto done :: else -> round++ fi;
		tid = (me == 0 -> TID : 0);
		wanted[me] = tid; exact[me] = false; note()
	}
	if :: !tid -> take_next_nr() :: else fi;
	if :: nr -> goto taken :: else fi;

retry:	atomic {				/* alloc_pid_nr() */
		lock();
		from = next; left = next / BITS; next_locked = WITH(NEXT_LOCKED);
		pass = (tid || first -> 0 : 1)
	}
search:	atomic {
		low = (from > RESERVED -> RESERVED : 1); last = LAST; wrap = pass == 1 && from > low;
		if
		:: !pass -> low = (tid -> tid : first); last = low
		:: wrap -> low = from
		:: else
		fi
	}
	take_free_nr();
	atomic {
		if :: claim && nr != ENOMEM -> busy[first]--; claim = false :: else fi;
		if
		:: !nr && tid -> nr = EEXIST
		:: !nr && !tid && (!pass || wrap) -> pass++; goto search
		:: !nr && pass && !wrap -> nr = EAGAIN
		:: nr && nr <= LAST && pass ->
			from = nr + 1;
			if :: chunk -> left = indexes[chunk] :: else fi;
			chunk = slots[nr / BITS]
		:: else
		fi
	}
	pid_ns_set_next(from);
	if :: left != from / BITS -> trim_pid_chunk(left) :: else fi;
	unlock();
	if
	:: nr == ENOMEM && !new ->		/* kmem_cache_zalloc() */
		d_step {
			new = 1;
			do
			:: live[new] -> new++
			:: else -> break
			od;
			live[new] = true; used[new] = 0; is_full[new] = false
		}
		goto retry
	:: else
	fi;
	if :: new -> d_step { live[new] = false; new = 0 } :: else fi;

taken:	atomic {
		assert(nr <= LAST || exact[me]);
		wanted[me] = 0; exact[me] = false;
		tid = 0; first = 0; from = 0; wrap = false; left = 0; low = 0; last = 0; pass = 0;
		if :: nr > LAST -> nr = 0; goto again :: else fi
	}
	find_pid_chunk();			/* publish_pid_nr() */
	atomic { pids[c * BITS + nr % BITS] = me + 1; rcu_read_unlock() }
	d_step {				/* find_pid_ns() */
		c = slots[nr / BITS];
		assert(c && live[c] && pids[c * BITS + nr % BITS] == me + 1);
		c = 0
	}

	find_pid_chunk();			/* free_pid_nr() */
	atomic {
		index = nr / BITS;
		if :: !WITH(FULL_AFTER) -> trim = is_full[c] :: else fi;
		if :: !WITH(NEXT_AFTER) -> away = index != next / BITS :: else fi;
		if :: WITH(SLOT_FIRST) -> pids[c * BITS + nr % BITS] = 0 :: else fi
	}
	atomic {				/* test_and_clear_bit() */
		assert(live[c] && IS_SET(c, nr) && owner[nr] == me + 1);
		used[c] = used[c] & ~(1 << (nr % BITS));
		owner[nr] = 0
	}
	if :: !WITH(SLOT_FIRST) -> pids[c * BITS + nr % BITS] = 0 :: else fi;
	if :: WITH(FULL_AFTER) -> trim = is_full[c] :: else fi;
	emptied = !used[c];
	atomic {
		if :: WITH(NEXT_AFTER) -> away = index != next / BITS :: else fi;
		trim = trim || (emptied && away && WITH(TRIM_EMPTY));
		c = 0; emptied = false; away = false;
		rcu_read_unlock()
	}
	if
	:: trim -> lock(); trim_pid_chunk(index); unlock()
	:: else
	fi;
	atomic { busy[nr]--; nr = 0; index = 0; trim = false; goto again }
done:	skip
}

/* ns_last_pid */
proctype pid_ns_ctl_handler() {
	byte old, c;
	bool emptied;

	lock();
	pid_ns_set_next(SET_NEXT);
	unlock()
}

init {
	byte k, old, c;
	bool emptied;

	atomic {
		if
		:: HELD ->
			chunk = 1; slots[HELD / BITS] = 1; indexes[1] = HELD / BITS; live[1] = true;
			used[1] = 1 << (HELD % BITS); busy[HELD] = 1; owner[HELD] = NT + 1
		:: else
		fi;
		for (k : 0 .. NT - 1) { run task(k) }
		if :: SET_NEXT -> run pid_ns_ctl_handler() :: else fi
	}
	_nr_pr == 1;
	/* No number is taken but HELD. */
	d_step {
		for (k : 0 .. CHUNKS - 1) {
			assert(!unmarked[k] && (!slots[k] || !is_full[slots[k]]))
		}
	}
	atomic {
		used[slots[HELD / BITS]] = 0;
		if :: HELD && HELD / BITS != next / BITS -> trim_pid_chunk(HELD / BITS) :: else fi;
		pid_ns_set_next(CHUNKS * BITS)	/* destroy_pid_namespace() */
	}
	d_step {
		for (k : 0 .. CHUNKS - 1) { assert(!slots[k]) }
		for (k : 1 .. NC - 1) { assert(!live[k]) }
	}
}
