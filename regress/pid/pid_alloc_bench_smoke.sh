#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does pid_alloc_bench work?

cd "$(dirname "$0")" || exit 1

# shellcheck source=regress/smoke.sh
. ../smoke.sh

keys='"bench":"pid_alloc_bench" "level": "procs": "seconds": "ops_per_s":
"p50_ns": "p99_ns": "max_ns": "ns_per_op":'
counts=ops
plan 43 pid_alloc_bench

bench()
{
	./pid_alloc_bench --json --idle 2 --warmup 2 "$@"
}

for op in thread vfork fork clone3 pidfd; do
	for level in 0 1 3; do
		expect 0 1 12 "$op, level $level" bench --op $op --levels $level --count 12
		expect 0 1 20 "$op, level $level, 4 workers" \
			bench --op $op --levels $level --procs 4 --count 5
	done
done

expect 0 5 "" "all operations, fixed time" bench --seconds 0.02
expect 0 2 "" "levels, fixed time, 4 workers" \
	bench --op vfork --levels 2,0 --procs 4 --seconds 0.02
expect 0 5 3 "all operations, marked" bench --marker --count 3
expect 0 1 40 "the default of idle processes" \
	./pid_alloc_bench --json --warmup 2 --op pidfd --count 40
expect 0 1 1 "no idle process, one operation" \
	./pid_alloc_bench --json --warmup 1 --idle 0 --op pidfd --count 1

expect 1 0 "" "thread: a wrong value is noticed" bench --op thread --count 3 --corrupt
expect 1 0 "" "vfork: a wrong status is noticed" bench --op vfork --count 3 --corrupt
expect 1 0 "" "pidfd: a wrong status is noticed" bench --op pidfd --count 3 --corrupt
expect 1 0 "" "fork, 4 workers: a wrong status is noticed" \
	bench --op fork --procs 4 --seconds 60 --corrupt

expect 2 0 "" "wrong usage: operation" bench --op vfork,spoon
expect 2 0 "" "wrong usage: level" bench --levels 31
expect 2 0 "" "wrong usage: count and seconds" bench --count 1 --seconds 1
expect 2 0 "" "wrong usage: trailing garbage" bench --procs 4x

finish
