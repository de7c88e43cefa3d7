#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does fault_stuck work? What completes depends on the kernel; what must, without
# anybody who changes the address space, is looked at, and what must not.

cd "$(dirname "$0")" || exit 1

# shellcheck source=regress/smoke.sh
. ../smoke.sh

keys='"bench":"fault_stuck" "stuck": "writer_waits":'
counts="done"
any='[0-9]*'
plan 17 fault_stuck

for kind in file file-second file-third swap shmem; do
	if [ "${kind#file-}" != $kind ] && ! uname -v | grep -q PREEMPT; then
		for name in faults "somebody is stuck" "a writer before"; do
			skip "$kind: $name" "the page is mapped before it can be taken"
		done
		continue
	fi
	expect 0 3 16 "$kind: faults" \
		./fault_stuck --kind $kind --probe fault-same,fault-other,fault-io
	also '"stuck":true' "$kind: somebody is stuck"
	expect 0 3 "$any" "$kind: a writer before" ./fault_stuck --kind $kind --writer fork \
		--probe fault-io,mprotect-page,munmap-other
done
name="file-third: who changes a mapping waits, as no attempt under the VMA lock is left"
if uname -v | grep -q PREEMPT; then
	expect 0 1 0 "$name" ./fault_stuck --kind file-third --probe mprotect-other
else
	skip "$name" "the page is mapped before it can be taken"
fi
expect 2 0 "" "wrong usage: a fault as a writer" ./fault_stuck --writer fault-io

finish
