#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What measure/fault.py runs in a guest, in the directory that has kselftest/: it
# appends a call of one of the functions, and has prepared trace_start, trace_stop.
set -e
echo 0 > /proc/sys/kernel/randomize_va_space
echo 0 > /proc/sys/vm/page-cluster
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
# While the host is asked for a page of a program, virtual time runs away.
cp kselftest/mm/fault_bench kselftest/regress/fault/fault_minor_bench kselftest/regress/fault/lost_pages /tmp

# A device of $2 MiB called $1 that takes $3 us for each request
device() {
	mkdir "/sys/kernel/config/nullb/$1"
	( cd "/sys/kernel/config/nullb/$1"
	echo 1 > memory_backed; echo "$2" > size; echo 2 > irqmode
	echo $(($3 * 1000)) > completion_nsec; echo 1 > power )
}

# $1: how the results are called; the rest: options
bench() {
	local name=$1
	shift
	trace_start
	/tmp/fault_bench --json "$@" > "$name.json"
	trace_stop "$name.trace"
}

# Threads that read random pages, beside others that change the address space
virtual() {
	local vmas neighbour
	device slow 512 5000
	for vmas in "$@"; do
		for neighbour in map fork; do
			bench "$neighbour-$vmas" --file /dev/slow --fill 16 --random --threads 16 --seconds 6 \
				--vmas "$vmas" --neighbour "$neighbour"
		done
	done
}

instructions() {
	device quick 64 100
	trace_start
	/tmp/fault_minor_bench /dev/quick > minor.json
	trace_stop minor.trace
}

# A memory cgroup with some 14 MiB for the file, and others that use the CPU meanwhile
thrash() {
	device fast 512 200
	mkdir -p /tmp/cgroup
	mount -t cgroup2 none /tmp/cgroup
	echo +memory > /tmp/cgroup/cgroup.subtree_control
	mkdir /tmp/cgroup/small
	echo 24M > /tmp/cgroup/small/memory.max
	local hogs=()
	for _ in 1 2 3 4 5 6 7 8; do
		while :; do :; done &
		hogs+=($!)
	done
	( echo 0 > /tmp/cgroup/small/cgroup.procs
	bench thrash --file /dev/fast --random --threads 200 --seconds 4
	bench thrash-fork --file /dev/fast --random --threads 200 --seconds 8 --neighbour fork )
	kill "${hogs[@]}"
}

# Threads that each map, read and unmap 2 MiB in turns, with memory for a tenth
lost() {
	local number
	for number in $(seq 0 119); do
		device "f$number" 2 200
	done
	mkdir -p /tmp/cgroup
	mount -t cgroup2 none /tmp/cgroup
	echo +memory > /tmp/cgroup/cgroup.subtree_control
	mkdir /tmp/cgroup/small
	echo 24M > /tmp/cgroup/small/memory.max
	trace_start
	( echo 0 > /tmp/cgroup/small/cgroup.procs
	/tmp/lost_pages f 120 4 > lost.json )
	trace_stop lost.trace
}

# Threads that fault on one page at a time; 5000 faults or more
same_page() {
	local threads write
	device slow 256 1000
	device swap 256 1000
	mkswap /dev/swap > swap.log
	swapon -p 32767 /dev/swap
	mkdir -p /tmp/cgroup
	mount -t cgroup2 none /tmp/cgroup
	echo +memory > /tmp/cgroup/cgroup.subtree_control
	mkdir /tmp/cgroup/own
	echo 0 > /tmp/cgroup/own/cgroup.procs
	for threads in 1 2 8; do
		set -- --mode same --threads $threads --faults $((5600 / threads))
		bench "around-$threads" --file /dev/slow --fill 16 "$@"
		bench "random-$threads" --file /dev/slow --fill 16 --random "$@"
		for write in "" --write; do
			bench "swap$write-$threads" --swap /tmp/cgroup/own/memory.reclaim $write "$@"
		done
	done
}

# What ends while somebody has the mmap_lock for writing
beside_writer() {
	cd kselftest/mm
	./fault_retry -t ends_beside_writer > ../../writer.ktap || true
}
