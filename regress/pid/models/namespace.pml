/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel/pid.c and zap_pid_ns_processes(): the init of a pid namespace exits, while tasks
 * are cloned into it from outside and exit. It waits until no pid but its own is
 * counted, and then there is none that a lookup finds, and none comes. The namespace is
 * destroyed when it has no number. A task exits when it is killed, or by itself.
 *
 * Given with -D: NT tasks; LEVELS namespaces that each is in, the outermost of which, 0,
 * is the one that dies; WITHOUT, a step to take out:
 */
#define COUNT_TESTED	1	/* count_pid() tests PIDNS_ADDING and adds in one step */
#define ALL_UNCOUNTED	2	/* it takes back what it has added if another is shut down */
#define ASKED_AGAIN	3	/* copy_process() tests PIDNS_ADDING under tasklist_lock */
#define NUMBER_FIRST	4	/* free_pid() counts after the number is free */
#define REAPER_WOKEN	5	/* and wakes init */
#define RCU		6	/* which stays meanwhile */
#define ADDING_CLEARED	7	/* nothing is added when init looks for tasks to kill */

#define WITH(step) (WITHOUT != step)

bool adding[LEVELS] = true;		/* PIDNS_ADDING, and the rest of ->pid_allocated */
byte allocated[LEVELS];
byte refs = NT + 1;			/* of the namespace: of tasks that clone, and init's */
byte taken, readers;			/* numbers; rcu_read_lock() */
bool found[NT], attached[NT], killed[NT];
bool tasklist_lock, asleep, reaped, freed, destroyed;
hidden byte idx;

inline put_pid_ns() {
	refs--;
	if :: !refs -> assert(!taken); destroyed = true :: else fi
}
inline rcu_read_unlock() {
	readers--;
	if :: reaped && !readers -> freed = true :: else fi
}

/* The namespaces from @level on, 0 is the outermost here. */
inline uncount_pid(level) {
	n = level;
	readers++;
	do
	:: n == LEVELS -> break
	:: n < LEVELS ->
		atomic {
			allocated[n]--;
			wake = !adding[n] && (allocated[n] == 1 || allocated[n] == 2) && WITH(REAPER_WOKEN)
		}
		if
		:: wake && !WITH(RCU) -> assert(!reaped); asleep = false
		:: wake && WITH(RCU) -> assert(!freed); asleep = false
		:: else
		fi;
		n++
	od;
	atomic { n = 0; wake = false; rcu_read_unlock() }
}

proctype copy_process(byte me) {
	byte n;
	bool wake;

	atomic {				/* alloc_pid() */
		refs++; taken++
	}
	n = LEVELS;
	do					/* count_pid() */
	:: n == 0 -> break
	:: else ->
		if
		:: WITH(COUNT_TESTED) ->
			atomic {
				if :: !adding[n - 1] -> goto dying :: else -> allocated[n - 1]++ fi
			}
		:: else ->
			if :: !adding[n - 1] -> goto dying :: else -> allocated[n - 1]++ fi
		fi;
		n--
	od;
	found[me] = true;			/* publish_pid_nr() */

	atomic { !tasklist_lock -> tasklist_lock = true }
	attached[me] = adding[0] || !WITH(ASKED_AGAIN);
	tasklist_lock = false;
	if
	:: !attached[me]
	:: attached[me]				/* exits by itself */
	:: attached[me] -> killed[me]
	fi;
	atomic { put_pid_ns() }			/* the parent's */
	atomic { !tasklist_lock -> attached[me] = false }

	if					/* free_pid() */
	:: WITH(NUMBER_FIRST) -> atomic { found[me] = false; taken-- } uncount_pid(0)
	:: else -> uncount_pid(0); atomic { found[me] = false; taken-- }
	fi;
	goto put;

dying:	if :: WITH(ALL_UNCOUNTED) -> uncount_pid(n) :: else fi;
	atomic { taken--; put_pid_ns() }
put:	atomic { put_pid_ns() }
}

proctype zap_pid_ns_processes() {
	byte n;
	bool wake;

	if :: WITH(ADDING_CLEARED) -> adding[0] = false :: else fi;
	atomic { !tasklist_lock -> tasklist_lock = true }
	d_step {				/* find_ge_pid() */
		for (idx : 0 .. NT - 1) { killed[idx] = found[idx] && attached[idx] }
		idx = 0
	}
	tasklist_lock = false;
	adding[0] = false;
	do
	:: asleep = true;
	   if
	   :: allocated[0] == 1 -> break
	   :: else -> !asleep
	   fi
	od;
	asleep = false;
	d_step {
		for (idx : 0 .. NT - 1) { assert(!found[idx] && !attached[idx]) }
		idx = 0
	}
	taken--;				/* its own free_pid() */
	uncount_pid(0);
	atomic { put_pid_ns(); reaped = true; freed = !readers }
	_nr_pr == 2;
	d_step {
		assert(destroyed);
		for (idx : 0 .. LEVELS - 1) { assert(!allocated[idx]) }
		idx = 0
	}
}

init {
	atomic {
		d_step {
			for (idx : 0 .. LEVELS - 1) { allocated[idx] = 1 }
			idx = 0; taken = 1
		}
		run zap_pid_ns_processes();
		for (idx : 0 .. NT - 1) { run copy_process(idx) }
	}
}
