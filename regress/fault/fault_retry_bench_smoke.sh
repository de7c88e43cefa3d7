#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does the benchmark work? It is run for a fixed and very small amount of
# work. What it measures is not looked at.
#
# The first argument is the directory whose file system to use (default /tmp).
# If this is tmpfs, whose pages do not leave memory for a file, root makes an
# ext4 there.

dir=$(realpath "${1:-/tmp}") && cd "$(dirname "$0")" || exit 1

ksft_skip=4
nr=0
failed=0
skipped=0
out=$(mktemp) && err=$(mktemp) || exit 1
image=
leave()
{
	[ -z "$image" ] || umount "$image.d" 2>/dev/null
	[ -z "$image" ] || rmdir "$image.d"
	rm -f "$out" "$err" "$image"
}
trap leave EXIT

if [ "$(id -u)" -eq 0 ] && [ "$(stat -f -c %T "$dir")" = tmpfs ]; then
	image=$(mktemp "$dir/fault_retry.XXXXXX") && mkdir "$image.d" || exit 1
	if truncate -s 96M "$image" && mkfs.ext4 -q -F "$image" >/dev/null 2>&1 &&
	   mount -o loop "$image" "$image.d"; then
		dir=$image.d
	fi
fi

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

skip()
{
	nr=$((nr + 1))
	skipped=$((skipped + 1))
	echo "ok $nr $1 # SKIP $2"
}

# status LINES FAULTS NAME COMMAND...: does it end with this status? If this is
# 0, does it print that many lines, all of them flat JSON objects with the
# results that every mode has, of that many faults ("" if limited by time)?
expect()
{
	status=$1
	lines=$2
	faults=${3:-[1-9][0-9]*}
	name=$4
	shift 4

	"$@" >"$out" 2>"$err"
	ret=$?
	if [ "$ret" -eq "$ksft_skip" ] && [ "$status" -ne 2 ]; then
		skip "$name" "$(cat "$err")"
		return
	fi
	if [ "$ret" -ne "$status" ]; then
		echo "# $*: status $ret instead of $status"
		result 1 "$name"
		return
	fi
	if [ "$status" -eq 0 ]; then
		good=$(grep -E "$object" "$out" | grep '"bench":"fault_retry_bench"' |
		       grep "\"faults\":$faults," | grep '"mode":' | grep '"threads":' |
		       grep '"rounds":[1-9]' | grep '"majflt":' | grep '"pgmajfault":' |
		       grep '"seconds":' | grep '"p50_ns":' | grep '"p99_ns":' |
		       grep '"neighbour_p99_ns":' | grep '"neighbour_max_ns":' |
		       grep -c '"bystander_p99_ns":')
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

# PATTERN NAME: did the last run say so on each line?
also()
{
	if [ "$ret" -ne 0 ]; then
		skip "$2" "there is no result"
	elif [ "$(grep -cE "$1" "$out")" -ne "$lines" ]; then
		echo "# not on every line: $1"
		result 1 "$2"
	else
		result 0 "$2"
	fi
}

# PATTERN NAME: did the last run complain about that?
said()
{
	if [ "$ret" -eq "$ksft_skip" ]; then
		skip "$2" "it did not run"
		return
	fi
	grep -qE "$1" "$err"
	result $? "$2"
}

echo "TAP version 13"
if ! [ -x ./fault_retry_bench ]; then
	echo "1..0 # SKIP fault_retry_bench has not been built"
	exit "$ksft_skip"
fi
echo "1..50"

# Where files do not leave memory, the benchmark finds that out, but slowly.
case $(stat -f -c %T "$dir") in
tmpfs|ramfs|overlayfs)	keeps=1 ;;
*)			keeps=0 ;;
esac

bench()
{
	case "$keeps $status $*" in
	"1 "[01]" --mode swap "*)
		;;
	"1 "[01]" "*)
		echo "the file system of $dir keeps its pages" >&2
		return "$ksft_skip"
		;;
	esac
	./fault_retry_bench --json --dir "$dir" --file-size 8M "$@"
}

for mode in file random swap memcg; do
	expect 0 1 16 "$mode, 2 threads" bench --mode $mode --threads 2 --faults 8
	also '"neighbour_p99_ns":null' "$mode: there is no neighbour"
	for neighbour in mprotect mprotect-all munmap fork; do
		expect 0 1 24 "$mode, neighbour: $neighbour, full verification" \
			bench --mode $mode --threads 3 --faults 8 --neighbour $neighbour --verify
	done
	expect 0 1 "" "$mode, fixed time" \
		bench --mode $mode --threads 1 --file-size 16M --seconds 0.02
	expect 1 0 "" "$mode: damage is noticed" bench --mode $mode --faults 8 --corrupt
	said "$mode: the word at [0-9]+ is " "$mode: it is in a word"
done

expect 0 2 16 "two modes, marked, pinned" \
	bench --mode file,random --threads 2 --faults 8 --marker --pin
expect 0 1 2000 "several rounds" \
	bench --mode random --threads 2 --faults 1000 --file-size 1M --warmup 2
also '"majflt":[1-9]' "there are major faults"
also '"rounds":([2-9]|[1-9][0-9]+),' "there are several rounds"
expect 0 1 64 "a neighbour and a bystander" \
	bench --mode random --faults 16 --neighbour fork --bystander
also '"bystander_p99_ns":[0-9.]+,' "the bystander has had faults"
expect 0 1 64 "a neighbour without a pause" \
	bench --mode random --faults 16 --neighbour munmap --pause 0
expect 0 1 32 "one page after the other" bench --mode random --threads 1 --faults 32 --stride 64K
expect 2 0 "" "wrong usage: mode" bench --mode file,tape
expect 2 0 "" "wrong usage: faults and seconds" bench --faults 1 --seconds 1
expect 2 0 "" "wrong usage: neighbour" bench --neighbour both
expect 2 0 "" "wrong usage: too small" bench --mode random --threads 4 --file-size 8K
expect 2 0 "" "wrong usage: half a page" bench --mode random --stride 6K
expect 2 0 "" "wrong usage: too many threads" bench --threads 97

echo "# Totals: pass:$((nr - failed - skipped)) fail:$failed xfail:0 xpass:0 skip:$skipped error:0"
[ "$failed" -eq 0 ]
