#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does small_read_bench work? The first argument is the directory whose file
# system to use (default /tmp).

dir=$(realpath "${1:-/tmp}") && cd "$(dirname "$0")" || exit 1

# shellcheck source=regress/smoke.sh
. ../smoke.sh

keys='"bench":"small_read_bench" "size": "file_size": "op": "count":'
counts=ops
plan 27 small_read_bench

bench()
{
	./small_read_bench --json --warmup 10 --dir "$dir" "$@"
}

# The initramfs of the arm64 guest has no getconf.
while read -r key kib _; do
	[ "$key" = KernelPageSize: ] && break
done </proc/self/smaps
page=$((kib * 1024))

expect 0 12 30 "all sizes, both files, marked" bench --count 30 --marker
expect 0 1 30 "a file of one byte" bench --sizes 64 --file-size 1 --count 30
for offsets in hot random sequential end; do
	expect 0 10 30 "$offsets" bench --op pread,read --offsets $offsets \
		--sizes 1,100,4K,6000,64K --file-size 100001 --count 30
done
expect 0 2 30 "the first read of a file" \
	bench --offsets first --sizes 64,4K --file-size 4K --count 30
expect 0 2 30 "reads that miss" \
	bench --offsets miss --sizes 64,4K --file-size "$((page * 4))" --count 30
for buffer in gone half; do
	expect 0 4 30 "memory that is $buffer" \
		bench --buffer $buffer --sizes 1,100,4K,64K --file-size 100001 --count 30
done
expect 0 1 30 "pages that are cold" \
	bench --heat 0 --sizes 64 --file-size 1M --offsets random --write-size 4K --count 30
also '"heat":0,' "they are not read before"
expect 0 1 5 "truncate, one page" bench --delete --file-size "$page" --count 5
expect 0 1 80 "dontneed, 16 pages that were read" \
	bench --delete=dontneed --heat 2 --file-size "$((page * 16))" --count 5
also '"heat":2,' "they were"
expect 0 1 5 "dontneed, read everywhere, marked" \
	bench --delete=dontneed --everywhere --file-size "$page" --count 5 --marker
also '"everywhere":true,' "and on all CPUs"
expect 0 1 "$((5 * 131072 / page))" "truncate, read by 64K" \
	bench --delete --large --file-size 128K --count 5
also '"large":true,' "and in large pieces"
expect 0 1 5 "truncate beside readers" bench --delete --busy --file-size "$page" --count 5

for buffer in there gone; do
	expect 1 0 "" "damage is noticed, memory that is $buffer" \
		bench --buffer $buffer --sizes 64 --count 30 --corrupt
done
expect 1 0 "" "damage to a new file is noticed" \
	bench --offsets first --sizes 64 --count 30 --corrupt
expect 1 0 "" "pages that stay are noticed" \
	bench --delete --file-size "$page" --count 5 --corrupt
said 'pages are cached that were deleted' "it is the pages"

expect 2 0 "" "wrong usage: size" bench --sizes 64,65537
expect 2 0 "" "wrong usage: a file without room to miss" \
	bench --offsets miss --sizes 64 --file-size 4K

finish
