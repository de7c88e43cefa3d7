/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mm/filemap.c, mm/folio.c: CPUs read a folio of the page cache under a guard, while
 * others truncate, migrate and reclaim it, and fill the file again. What is copied is
 * the file's until the copy ends, and in the end, after lru_add_drain_all(), each folio
 * that left the page cache is free. The litmus tests are about the order of memory
 * accesses; here each step is seen by all at once, but for GUARD_SEEN.
 *
 * Given with -D: NR CPUs that read the file READS times each; TAKEN, what the other
 * tasks do, a digit each: 1 truncates, 2 migrates, 3 reclaims, 4 swaps a folio of tmpfs
 * out, fails, and cannot put it back to i_pages; then each fills the page again;
 * BATCH, folios of a batch; NOW, whether they look at once, as for large folios; BACK,
 * whether what was left with a guard too late is taken back; NF, folios; WITHOUT, a step to
 * take out:
 */
#define GUARD_SEEN	1	/* (A): the guard is seen before the look at the folio */
#define FROZEN_LEFT	2	/* a frozen folio is not read */
#define RELOADED	3	/* nor is one that is not in i_pages any more */
#define MARK_FIRST	4	/* the mark is set before the first guard */
#define MARK_LOCKED	5	/* and is tested with i_pages locked by what removes */
#define FREEZE_LOOKS	6	/* folio_ref_freeze() fails on a guarded folio */
#define LEFT		7	/* the reference to a guarded folio is left with the guard */
#define AGAIN		8	/* one that was left there before is looked at, too */
#define LEFT_LOOKS	9	/* what a reader finds with its guard may be read by others */
#define KEPT_DRAINED	10	/* lru_add_drain_all() puts what is left with guards */
#define BATCH_DRAINED	11	/* and what is in batches */
#define BACK_LOOKS	12	/* what is taken back from a guard may be read by others */
#define NOT_ASKED	13	/* a look does not ask ->mapping whether a folio was removed */

#define WITH(step) (WITHOUT != step)
#define OTHERS (TAKEN > 9 -> 2 : 1)
#define CPUS (NR + 2)

byte slot = 1;			/* of i_pages, and its lock */
bool xa_lock, marked;		/* AS_GUARDED */
byte count[NF + 1];		/* of each folio; 0 is none */
bool mapped[NF + 1];		/* ->mapping */
bool ours[NF + 1];		/* the memory is not free */
byte guard[CPUS], kept[CPUS];
byte batch[CPUS * BATCH];
byte ended;
hidden byte idx;

inline lock() { atomic { !xa_lock -> xa_lock = true } }
inline unlock() { xa_lock = false }

inline folio_put(f) {
	d_step {
		assert(count[f]);
		count[f]--;
		if :: !count[f] -> assert(!mapped[f]); ours[f] = false :: else fi
	}
}

/* The batch of CPU @me, of which each CPU's guard is looked at in a step. */
inline folios_leave_guarded() {
	again = true;
	do
	:: !again -> break
	:: else ->
		again = false; cpu = 0;
		do
		:: cpu == NR -> cpu = 0; break
		:: else ->
			d_step {
				found = guard[cpu];
				if :: !WITH(NOT_ASKED) && mapped[found] -> found = 0 :: else fi;
				i = 0
			}
			do
			:: i == BATCH || !found -> i = 0; found = 0; break
			:: else ->
				if
				:: batch[me * BATCH + i] == found && WITH(LEFT) ->
					atomic { old = kept[cpu]; kept[cpu] = found }	/* xchg() */
					over = BACK && guard[cpu] != found;
					atomic {
						if
						:: over && kept[cpu] == found ->	/* cmpxchg() */
							kept[cpu] = old;
							again = again || WITH(BACK_LOOKS)
						:: else ->
							batch[me * BATCH + i] = old;
							again = again || (old && WITH(AGAIN))
						fi;
						old = 0; over = false; i = BATCH
					}
				:: else -> i++
				fi
			od;
			cpu++
		od
	od;
}

inline folios_put() {
	i = 0;
	do
	:: i == BATCH -> i = 0; break
	:: else ->
		if
		:: batch[me * BATCH + i] ->
			atomic { folio_put(batch[me * BATCH + i]); batch[me * BATCH + i] = 0 }
		:: else
		fi;
		i++
	od
}

inline folio_put_guarded(f, now) {
	atomic {
		i = 0;
		do
		:: batch[me * BATCH + i] -> i++
		:: else -> break
		od;
		batch[me * BATCH + i] = f;
		flush = i == BATCH - 1 || now;
		i = 0; f = 0
	}
	if :: flush -> folios_leave_guarded(); folios_put() :: else fi;
	flush = false
}

inline folio_put_kept() {
	atomic { f = kept[me]; kept[me] = 0 }	/* xchg() */
	if
	:: f && WITH(LEFT_LOOKS) -> folio_put_guarded(f, true)
	:: f && !WITH(LEFT_LOOKS) -> atomic { folio_put(f); f = 0 }
	:: else
	fi
}

inline mapping_set_guarded() {
	if
	:: !marked -> lock(); atomic { marked = true; unlock() }
	:: else
	fi
}

/* filemap_read_guarded() */
proctype reader(byte me) {
	byte reads, f, cpu, i, found, old;
	bool again, flush, fine, over;

	do
	:: reads == READS -> break
	:: else ->
		reads++;
		if :: WITH(MARK_FIRST) -> mapping_set_guarded() :: else fi;
		f = slot;
		if :: WITH(GUARD_SEEN) -> guard[me] = f :: else fi;
		fine = f && (count[f] || !WITH(FROZEN_LEFT));
		fine = fine && (slot == f || !WITH(RELOADED));
		if :: !WITH(GUARD_SEEN) -> guard[me] = f :: else fi;
		if
		:: fine ->
			assert(ours[f]);	/* the copy begins */
			assert(ours[f])		/* and ends */
		:: else
		fi;
		fine = false;
		if	/* what is left with the guard is looked for too early, or not */
		:: f = kept[me]; guard[me] = 0
		:: guard[me] = 0; f = kept[me]
		fi;
		if :: !WITH(MARK_FIRST) -> mapping_set_guarded() :: else fi;
		if :: f -> folio_put_kept() :: else fi
	od;
	ended++
}

/* A new folio, or 0. */
inline alloc(f) {
	d_step {
		for (idx : 1 .. NF) {
			if :: !f && !ours[idx] && !count[idx] -> f = idx :: else fi
		}
		idx = 0;
		if :: f -> ours[f] = true; mapped[f] = true; count[f] = 1 :: else fi
	}
}

proctype other(byte me; byte what) {
	byte f, new, cpu, i, found, old;
	bool again, flush, guarded, ok, over;

	if :: !WITH(MARK_LOCKED) -> guarded = marked :: else fi;
	lock();
	f = slot;
	if
	:: f && what == 1 ->		/* truncate_inode_folio() */
		atomic { slot = 0; mapped[f] = false; if :: WITH(MARK_LOCKED) -> guarded = marked :: else fi }
		unlock()
	:: f && what == 2 ->		/* __folio_migrate_mapping() */
		if	/* folio_ref_freeze() */
		:: atomic { count[f] == 1 -> count[f] = 0 }
			ok = true;
			cpu = 0;
			do
			:: cpu == NR || !marked || !WITH(FREEZE_LOOKS) -> cpu = 0; break
			:: else -> ok = ok && guard[cpu] != f; cpu++
			od;
			if :: ok -> alloc(new) :: else fi;
			if
			:: new -> atomic { slot = new; mapped[f] = false }
			:: else
			fi;
			count[f] = 1		/* folio_ref_unfreeze() */
		:: count[f] != 1
		fi;
		unlock();
		atomic {
			if :: new -> folio_put(f) :: else fi;
			f = 0; new = 0; ok = false
		}
	:: f && what == 3 ->		/* shrink_folio_list() */
		if
		:: atomic { count[f] == 1 -> count[f] = 0 }
			atomic {
				slot = 0; mapped[f] = false;
				if :: WITH(MARK_LOCKED) -> guarded = marked :: else fi
			}
			count[f] = 1
		:: count[f] != 1 -> f = 0
		fi;
		unlock()
	:: f && what == 4 ->		/* shmem_delete_from_page_cache() */
		atomic { count[f]++; new = f; slot = 0; mapped[f] = false; guarded = marked }
		unlock()
	:: !f -> unlock()
	fi;
	if
	:: f && guarded -> folio_put_guarded(f, NOW)
	:: f && !guarded -> atomic { folio_put(f); f = 0 }
	:: else
	fi;
	if
	:: new -> mapped[new] = true;	/* shmem_add_to_page_cache() */
		mapped[new] = false;
		atomic { folio_put(new); new = 0 }
	:: else
	fi;
	lock();				/* fill the page again */
	if
	:: !slot -> alloc(new); slot = new; new = 0
	:: else
	fi;
	atomic { unlock(); ended++ }
}

/* lru_add_drain_all(): each CPU drains its batch, then one drains all guards. */
proctype drain() {
	byte me, f, cpu, i, found, old;
	bool again, flush, over;

	ended == NR + OTHERS;
	do
	:: me == CPUS -> break
	:: else ->
		if :: WITH(BATCH_DRAINED) -> folios_leave_guarded(); folios_put() :: else fi;
		me++
	od;
	me = 0;
	do
	:: me == CPUS -> break
	:: else ->
		if :: WITH(KEPT_DRAINED) -> folio_put_kept() :: else fi;
		me++
	od;
	me = 0;
	d_step {
		for (idx : 1 .. NF) {
			assert(ours[idx] == (idx == slot) && count[idx] == (idx == slot))
		}
		idx = 0
	}
}

init {
	byte n;

	atomic {
		count[1] = 1; mapped[1] = true; ours[1] = true;
		for (n : 0 .. NR - 1) { run reader(n) }
		run other(NR, TAKEN % 10);
		if :: TAKEN > 9 -> run other(NR + 1, TAKEN / 10) :: else fi;
		run drain()
	}
}
