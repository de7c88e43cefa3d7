#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Do pipe_load and pipe_ladder work?

cd "$(dirname "$0")" || exit 1

# shellcheck source=regress/smoke.sh
. ../smoke.sh

keys='"page_size": "writes": "bytes": "seconds": "mb_per_s": "ns_per_op":'
plan 37 pipe_load pipe_ladder

bench()
{
	./pipe_load --json --count 40 "$@"
}

ladder()
{
	./pipe_ladder --json --bytes 4M "$@"
}

expect 0 7 "" "pair" bench --pair
expect 0 3 "" "pair, full verification, pinned" bench --pair --sizes 1,4K,64K --verify=full --pin
expect 0 3 "" "pair, bytes that stay" bench --pair --residue 100 --sizes 101,4K,10001
expect 1 0 "" "pair, bytes that stay: damage" bench --pair --residue 100 -s 10001 --corrupt
expect 0 2 "" "pair, buffers that are not mapped" bench --pair --cold --sizes 4K,64K
expect 0 1 "" "pair, buffers of which the first page is mapped" bench --pair --cold=rest --sizes 64K
expect 0 1 "" "pair, spliced to /dev/null" bench --pair --splice --sizes 64K
expect 2 0 "" "pair, messages without another page" bench --pair --cold=rest --sizes 4K
expect 1 0 "" "pair: damage is noticed" bench --pair --sizes 4K --corrupt
expect 2 0 "" "pair: a message larger than the pipe" bench --pair -s 64K -p 4K

expect 0 9 "" "sweep, threads" bench --threads
expect 0 1 "" "sweep, processes" bench --processes -w 2 -r 5
expect 0 1 "" "sweep, full verification" bench -w 5 -r 10 --verify=full
expect 0 1 "" "sweep, full verification, processes" bench -w 5 -r 5 --verify=full --processes
expect 0 6 "" "sweep, sizes of all kinds" bench -w 2 -r 3 --sizes 1,64,1000,4K,6000,10001
expect 0 1 "" "sweep, small pipe, pinned" bench -w 2 -r 2 -p 4K --pin
expect 0 1 "" "sweep, fixed time" ./pipe_load --json --seconds 0.05 -w 2 -r 2
expect 0 1 "" "sweep, memory cgroup" bench -w 2 -r 2 --memcg
expect 1 0 "" "sweep: damage to a page is noticed" bench -w 2 -r 2 --corrupt
expect 1 0 "" "sweep: damage to a small message is noticed" bench -w 2 -r 2 -s 64 --corrupt
expect 1 0 "" "sweep: damage to a word is noticed" bench -w 2 -r 2 -s 6000 --corrupt
expect 1 0 "" "sweep: damage to a byte is noticed" bench -w 2 -r 2 -s 9 --processes --corrupt

# Where the stuck writer holds the mutex, each size takes all of the time
expect 0 1 "" "stuck" bench --stuck --seconds 0.2
expect 0 1 "" "stuck, full verification, pinned" bench --stuck --seconds 0.2 --verify=full --pin
expect 0 6 "" "stuck, sizes of all kinds" bench --stuck --seconds 0.1 --sizes 1,64,1000,4K,6000,10001
expect 0 1 "" "stuck, a message larger than the pipe" bench --stuck --seconds 0.2 -p 4K
expect 1 0 "" "stuck: damage to a page is noticed" bench --stuck --seconds 0.2 --corrupt
expect 1 0 "" "stuck: damage to a small message is noticed" bench --stuck --seconds 0.2 -s 64 --corrupt
expect 2 0 "" "stuck: wrong usage" bench --stuck --processes

expect 0 5 "" "ladder, processes" ladder
expect 0 5 "" "ladder, threads" ladder --threads --verify=full
expect 0 1 "" "ladder, fixed time" ./pipe_ladder --json --seconds 0.05 --step 2
expect 1 0 "" "ladder: damage to write/read is noticed" ladder --step 1 --corrupt
expect 1 0 "" "ladder: damage to vmsplice/read is noticed" ladder --step 2 --corrupt
expect 1 0 "" "ladder: a lost byte is noticed" ladder --step 3 --corrupt

expect 2 0 "" "pipe_load: wrong usage" bench --sizes 64K,12x
expect 2 0 "" "pipe_ladder: wrong usage" ladder --seconds 1

finish
