#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does the benchmark work? It is run for a fixed and very small amount of
# work. What it measures is not looked at.

cd "$(dirname "$0")" || exit 1

ksft_skip=4
nr=0
failed=0
skipped=0
out=$(mktemp) && err=$(mktemp) || exit 1
trap 'rm -f "$out" "$err"' EXIT

number='-?[0-9]+(\.[0-9]+)?'
value="(\"[^\"]*\"|$number|true|false|null)"
object="^\{\"[a-z0-9_]+\":$value(,\"[a-z0-9_]+\":$value)*\}\$"

result()
{
	nr=$((nr + 1))
	if [ "$1" -ne 0 ]; then
		failed=$((failed + 1))
		sed 's/^/# /' "$out" "$err"
		printf 'not '
	fi
	echo "ok $nr $2"
}

# status LINES OPS NAME COMMAND...: does it end with this status? If this is 0,
# does it print that many lines, all of them flat JSON objects with the results
# that every operation has, of that many operations ("" if limited by time)?
expect()
{
	status=$1
	lines=$2
	ops=${3:-[1-9][0-9]*}
	name=$4
	shift 4

	"$@" >"$out" 2>"$err"
	ret=$?
	if [ "$ret" -eq "$ksft_skip" ] && [ "$status" -eq 0 ]; then
		nr=$((nr + 1))
		skipped=$((skipped + 1))
		echo "ok $nr $name # SKIP $(cat "$err")"
		return
	fi
	if [ "$ret" -ne "$status" ]; then
		echo "# $*: status $ret instead of $status"
		result 1 "$name"
		return
	fi
	if [ "$status" -eq 0 ]; then
		good=$(grep -E "$object" "$out" | grep '"bench":"pid_alloc_bench"' |
		       grep "\"ops\":$ops," | grep '"level":' | grep '"procs":' |
		       grep '"seconds":' | grep '"ops_per_s":' | grep '"best_ns_per_op":' |
		       grep '"p50_ns":' | grep '"p99_ns":' | grep '"max_ns":' |
		       grep -c '"ns_per_op":')
		all=$(wc -l <"$out")
		if [ "$good" -ne "$lines" ] || [ "$all" -ne "$lines" ]; then
			echo "# $*: $all lines, $good of them good, instead of $lines"
			result 1 "$name"
			return
		fi
	elif [ "$(wc -l <"$err")" -ne 1 ]; then
		echo "# $*: failed without a word, or with too many"
		result 1 "$name"
		return
	fi
	result 0 "$name"
}

echo "TAP version 13"
if ! [ -x ./pid_alloc_bench ]; then
	echo "1..0 # SKIP pid_alloc_bench has not been built"
	exit "$ksft_skip"
fi
echo "1..49"

bench()
{
	./pid_alloc_bench --json --idle 2 --warmup 2 "$@"
}

for op in thread vfork fork clone3 clone-vm pidfd; do
	for level in 0 1 3; do
		expect 0 1 12 "$op, level $level" bench --op $op --levels $level --count 12
		expect 0 1 20 "$op, level $level, 4 workers" \
			bench --op $op --levels $level --procs 4 --count 5
	done
done

expect 0 6 "" "all operations, fixed time" bench --seconds 0.02
expect 0 2 "" "levels, fixed time, 4 workers, pinned" \
	bench --op vfork --levels 2,0 --procs 4 --pin --seconds 0.02
expect 0 6 3 "all operations, marked" bench --marker --count 3
expect 0 1 40 "a batch, with the default of idle processes" \
	./pid_alloc_bench --json --warmup 2 --op clone-vm --count 40
expect 0 1 1 "no idle process, one operation" \
	./pid_alloc_bench --json --warmup 1 --idle 0 --op clone-vm --count 1

expect 1 0 "" "thread: a wrong value is noticed" bench --op thread --count 3 --corrupt
expect 1 0 "" "vfork: a wrong status is noticed" bench --op vfork --count 3 --corrupt
expect 1 0 "" "pidfd: a wrong status is noticed" bench --op pidfd --count 3 --corrupt
expect 1 0 "" "fork, 4 workers: a wrong status is noticed" \
	bench --op fork --procs 4 --seconds 60 --corrupt

expect 2 0 "" "wrong usage: operation" bench --op vfork,spoon
expect 2 0 "" "wrong usage: level" bench --levels 31
expect 2 0 "" "wrong usage: count and seconds" bench --count 1 --seconds 1
expect 2 0 "" "wrong usage: trailing garbage" bench --procs 4x

echo "# Totals: pass:$((nr - failed - skipped)) fail:$failed xfail:0 xpass:0 skip:$skipped error:0"
[ "$failed" -eq 0 ]
