#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does small_read_bench work? The first argument is the directory whose file
# system to use (default /tmp).

dir=$(realpath "${1:-/tmp}") && cd "$(dirname "$0")" || exit 1

# shellcheck source=regress/smoke.sh
. ../smoke.sh

keys='"bench":"small_read_bench" "size": "threads": "file_size": "op":
"seconds": "p50_ns": "p99_ns":
"max_ns": "mb_per_s": "ns_per_op":'
counts=ops
plan 69 small_read_bench

bench()
{
	./small_read_bench --json --warmup 10 --dir "$dir" "$@"
}

expect 0 12 300 "all sizes, both files" bench --count 300
expect 0 1 2000 "several batches" bench --sizes 64 --file-size 4K --count 2000
expect 0 1 1 "one read" bench --sizes 64 --file-size 4K --count 1
expect 0 1 300 "a file of one byte" bench --sizes 64 --file-size 1 --count 300
also '"bytes":300,' "short reads are counted as such"

for op in pread read preadv2; do
	for offsets in hot random sequential; do
		expect 0 5 300 "$op, $offsets, full verification" \
			bench --op $op --offsets $offsets --sizes 1,100,4K,6000,64K \
			--file-size 100001 --count 300 --verify=full
	done
done
expect 0 3 300 "all operations, marked, pinned" \
	bench --op pread,read,preadv2 --sizes 1 --file-size 4K --count 300 --marker --pin
expect 0 2 "" "fixed time" bench --sizes 64,256 --file-size 4K --seconds 0.02
expect 0 2 "" "fixed time, 3 threads" \
	bench --sizes 64,256 --file-size 4K --seconds 0.02 --threads 3
expect 0 1 300 "files written by pages" \
	bench --sizes 64 --file-size 1M --write-size 4K --offsets random --count 300

for workers in --threads --procs; do
	for files in --same --different "--fd shared"; do
		# shellcheck disable=SC2086 # an option and its value
		expect 0 2 900 "$workers, $files" bench $workers 3 $files --sizes 64,4K \
			--file-size 64K --offsets random --count 300 --verify
	done
done

expect 0 2 300 "at the end of the file" \
	bench --offsets end --op pread,read --sizes 64 --file-size 100 --count 300
for buffer in gone half; do
	expect 0 4 300 "memory that is $buffer" \
		bench --buffer $buffer --sizes 1,100,4K,64K --file-size 100001 --count 300 --verify
	also '"buffer":"'$buffer'",' "it is"
done
expect 0 1 300 "memory that is there by half, for more than there is" \
	bench --buffer half --sizes 4K --file-size 3000 --count 300 --verify
expect 0 1 300 "more is asked for than there is" \
	bench --sizes 4K --file-size 100 --count 300 --verify
expect 0 2 300 "half of the reads miss" \
	bench --hit-ratio 50 --sizes 64,4K --file-size 1M --count 300 --verify
also '"misses":(1[0-4][0-9]|150),' "they do miss"
expect 0 1 300 "all reads miss" bench --hit-ratio 0 --sizes 6000 --count 300
expect 0 1 900 "3 threads, a tenth of the reads misses" \
	bench --hit-ratio 90 --sizes 64 --offsets random --threads 3 --count 300
expect 0 1 300 "pages that are cold" \
	bench --heat 0 --sizes 64 --file-size 1M --offsets random --write-size 4K --count 300
also '"heat":0,' "they are not read before"
expect 0 4 300 "the first read of a file" \
	bench --offsets first --op pread,read --sizes 64,4K --file-size 4K --count 300 --verify
expect 0 1 300 "3 threads, the first read of a file" \
	bench --offsets first --threads 3 --sizes 64 --file-size 1M --count 100
# The initramfs of the arm64 guest has no getconf, and its pages have 4 KiB.
page=$(getconf PAGESIZE 2>/dev/null || echo 4096)
expect 0 1 3 "a file with room for one miss" \
	bench --hit-ratio 0 --sizes 64 --file-size "$((page * 2))" --count 3

expect 0 1 5 "truncate, one page" bench --delete --file-size "$page" --count 5
expect 0 1 80 "truncate, 16 pages, marked" \
	bench --delete --file-size "$((page * 16))" --count 5 --marker --pin
expect 0 1 50 "truncate, 9 pages and a part" \
	bench --delete=truncate --file-size "$((page * 9 + 10))" --count 5
expect 0 1 80 "dontneed, 16 pages" bench --delete=dontneed --file-size "$((page * 16))" --count 5
also '"heat":0,' "they were not read before"
expect 0 1 80 "dontneed, 16 pages that were read" \
	bench --delete=dontneed --heat 2 --file-size "$((page * 16))" --count 5
also '"heat":2,' "they were"
also '"everywhere":false,' "and on one CPU"
expect 0 1 5 "dontneed, read everywhere" \
	bench --delete=dontneed --everywhere --file-size "$page" --count 5
also '"everywhere":true,' "and on all CPUs"
expect 0 2 "" "truncate, fixed time" bench --delete --seconds 0.02

expect 1 0 "" "damage is noticed" bench --sizes 64 --count 300 --corrupt
said 'reading 64 bytes at 0: byte 63 is 0x' "it is in the last byte"
expect 1 0 "" "damage to single bytes is noticed" bench --sizes 1 --count 300 --corrupt
expect 1 0 "" "damage in the middle is noticed" \
	bench --sizes 4K --offsets random --count 300 --verify=full --corrupt
said ': byte 2048 is 0x' "it is in the middle"
expect 1 0 "" "damage is noticed in memory that is not there before" \
	bench --buffer gone --sizes 64 --count 300 --corrupt
expect 1 0 "" "damage is noticed by a thread" \
	bench --sizes 64 --threads 3 --different --seconds 60 --corrupt
expect 1 0 "" "damage is noticed by a process" \
	bench --sizes 64 --procs 3 --different --seconds 60 --corrupt
expect 1 0 "" "damage to a new file is noticed" \
	bench --offsets first --sizes 64 --count 300 --corrupt
expect 1 0 "" "pages that stay are noticed" bench --delete --count 5 --corrupt
said 'pages are cached that were deleted' "it is the pages"

expect 2 0 "" "wrong usage: size" bench --sizes 64,65537
expect 2 0 "" "wrong usage: count and seconds" bench --count 1 --seconds 1
expect 2 0 "" "wrong usage: one position for several" \
	bench --op read --threads 2 --fd shared
expect 2 0 "" "wrong usage: no room to miss" bench --hit-ratio 50 --file-size 4K
expect 2 0 "" "wrong usage: the end misses" bench --offsets end --hit-ratio 50 --file-size 1M
expect 2 0 "" "wrong usage: what was read is not new" bench --offsets first --heat 1
expect 2 0 "" "wrong usage: reads and deletions" bench --delete --sizes 64

finish
