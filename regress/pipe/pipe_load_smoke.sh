#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Do the benchmarks work? Each is run for a fixed and very small amount of
# work. What they measure is not looked at.

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

# status LINES NAME COMMAND...: does it end with this status? If this is 0,
# does it print that many lines, all of them flat JSON objects with the
# results that every benchmark has?
expect()
{
	status=$1
	lines=$2
	name=$3
	shift 3

	"$@" >"$out" 2>"$err"
	ret=$?
	# Wrong usage has to be noticed before something is found to be missing
	if [ "$ret" -eq "$ksft_skip" ] && [ "$status" -ne 2 ]; then
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
		good=$(grep -E "$object" "$out" | grep '"page_size":' | grep '"writes":' |
		       grep '"bytes":' | grep '"seconds":' | grep '"mb_per_s":' |
		       grep -c '"ns_per_op":')
		all=$(wc -l <"$out")
		if [ "$good" -ne "$lines" ] || [ "$all" -ne "$lines" ]; then
			echo "# $*: $all lines, $good of them good, instead of $lines"
			result 1 "$name"
			return
		fi
	elif [ "$(wc -l <"$err")" -lt 1 ]; then
		echo "# $*: failed without a word"
		result 1 "$name"
		return
	fi
	result 0 "$name"
}

echo "TAP version 13"
if ! [ -x ./pipe_load ] || ! [ -x ./pipe_ladder ]; then
	echo "1..0 # SKIP pipe_load and pipe_ladder have not been built"
	exit "$ksft_skip"
fi
echo "1..34"

bench()
{
	./pipe_load --json --count 40 "$@"
}

ladder()
{
	./pipe_ladder --json --bytes 4M "$@"
}

expect 0 7 "pair" bench --pair
expect 0 3 "pair, full verification, pinned" bench --pair --sizes 1,4K,64K --verify=full --pin
expect 0 3 "pair, bytes that stay" bench --pair --residue 100 --sizes 101,4K,10001
expect 1 0 "pair, bytes that stay: damage" bench --pair --residue 100 -s 10001 --corrupt
expect 0 2 "pair, buffers that are not mapped" bench --pair --cold --sizes 4K,64K
expect 1 0 "pair: damage is noticed" bench --pair --sizes 4K --corrupt
expect 2 0 "pair: a message larger than the pipe" bench --pair -s 64K -p 4K

expect 0 9 "sweep, threads" bench --threads
expect 0 1 "sweep, processes" bench --processes -w 2 -r 5
expect 0 1 "sweep, full verification" bench -w 5 -r 10 --verify=full
expect 0 1 "sweep, full verification, processes" bench -w 5 -r 5 --verify=full --processes
expect 0 6 "sweep, sizes of all kinds" bench -w 2 -r 3 --sizes 1,64,1000,4K,6000,10001
expect 0 1 "sweep, small pipe, pinned" bench -w 2 -r 2 -p 4K --pin
expect 0 1 "sweep, fixed time" ./pipe_load --json --seconds 0.05 -w 2 -r 2
expect 0 1 "sweep, memory cgroup" bench -w 2 -r 2 --memcg
expect 1 0 "sweep: damage to a page is noticed" bench -w 2 -r 2 --corrupt
expect 1 0 "sweep: damage to a small message is noticed" bench -w 2 -r 2 -s 64 --corrupt
expect 1 0 "sweep: damage to a word is noticed" bench -w 2 -r 2 -s 6000 --corrupt
expect 1 0 "sweep: damage to a byte is noticed" bench -w 2 -r 2 -s 9 --processes --corrupt

# Where the stuck writer holds the mutex, each size takes all of the time
expect 0 1 "stuck" bench --stuck --seconds 0.2
expect 0 1 "stuck, full verification, pinned" bench --stuck --seconds 0.2 --verify=full --pin
expect 0 6 "stuck, sizes of all kinds" bench --stuck --seconds 0.1 --sizes 1,64,1000,4K,6000,10001
expect 0 1 "stuck, a message larger than the pipe" bench --stuck --seconds 0.2 -p 4K
expect 1 0 "stuck: damage to a page is noticed" bench --stuck --seconds 0.2 --corrupt
expect 1 0 "stuck: damage to a small message is noticed" bench --stuck --seconds 0.2 -s 64 --corrupt
expect 2 0 "stuck: wrong usage" bench --stuck --processes

expect 0 5 "ladder, processes" ladder
expect 0 5 "ladder, threads" ladder --threads --verify=full
expect 0 1 "ladder, fixed time" ./pipe_ladder --json --seconds 0.05 --step 2
expect 1 0 "ladder: damage to write/read is noticed" ladder --step 1 --corrupt
expect 1 0 "ladder: damage to vmsplice/read is noticed" ladder --step 2 --corrupt
expect 1 0 "ladder: a lost byte is noticed" ladder --step 3 --corrupt

expect 2 0 "pipe_load: wrong usage" bench --sizes 64K,12x
expect 2 0 "pipe_ladder: wrong usage" ladder --seconds 1

echo "# Totals: pass:$((nr - failed - skipped)) fail:$failed xfail:0 xpass:0 skip:$skipped error:0"
[ "$failed" -eq 0 ]
