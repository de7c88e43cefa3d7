#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does fault_retry_bench work? The first argument is the directory whose file
# system to use (default /tmp). If this is tmpfs, whose pages do not leave memory
# for a file, root makes an ext4 there.

dir=$(realpath "${1:-/tmp}") && cd "$(dirname "$0")" || exit 1

# shellcheck source=regress/smoke.sh
. ../smoke.sh

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

keys='"bench":"fault_retry_bench" "mode": "threads": "rounds":[1-9] "majflt":
"pgmajfault": "seconds": "p50_ns": "p99_ns": "neighbour_p99_ns":
"neighbour_max_ns": "bystander_p99_ns":'
counts=faults
plan 50 fault_retry_bench

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

finish
