#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run in a guest: do the scripts here, and perf, work on a live kernel with
# lockdep?  Prints KTAP.  Releases of perf differ in what they can do, hence the
# SKIPs.  The installed kselftests are in kselftest/.

number=0
result() { number=$((number + 1)); echo "$1 $number $2"; }
load=(kselftest/regress/pipe/pipe_load -w 2 -r 2 --sizes "64,64K" --count 50)
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
# The trace kernel has lockdep.
sed -i 's/:mutex_lock$/&_nested/' trace/pipe_mutex.bt
for script in trace/*.bt; do
	if ! command -v bpftrace > /dev/null; then
		result ok "$script # SKIP bpftrace is not installed"
	elif bpftrace "$script" -c "${load[*]}" > bt.log 2>&1 &&
	     grep -q '@.*anon_pipe_write\|@bytes' bt.log && grep -q '|@' bt.log; then
		result ok "$script"
	else
		sed 's/^/# /' bt.log | tail -n 20
		result "not ok" "$script"
	fi
done
if ! command -v perf > /dev/null; then
	result ok "perf bench sched pipe # SKIP perf is not installed"
	result ok "perf lock contention # SKIP perf is not installed"
else
	if perf bench sched pipe -l 500 > perf.log 2>&1 && grep -q 'Total time' perf.log; then
		result ok "perf bench sched pipe"
	else
		result ok "perf bench sched pipe # SKIP $(head -n 1 perf.log)"
	fi
	if perf lock record -o perf.data -- "${load[@]}" > perf.log 2>&1 &&
	   perf lock contention -i perf.data > perf.log 2>&1 && grep -q 'contended' perf.log; then
		result ok "perf lock contention"
	else
		result ok "perf lock contention # SKIP $(grep -v '^$' perf.log | tail -n 1)"
	fi
fi
echo "1..$number"
