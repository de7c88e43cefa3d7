#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run in a guest: does the survey, and does perf, work on a live kernel with
# lockdep?  Prints KTAP.  Releases of perf differ in what they can do, hence the
# SKIPs.  The installed kselftests are in kselftest/, the tooling in scripts/.

number=0
result() { number=$((number + 1)); echo "$1 $number $2"; }
failed() { sed 's/^/# /' "$2" | tail -n 30; result "not ok" "$1"; }
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
truncate -s 96M /tmp/survey.img
mkdir -p /tmp/survey
mkfs.ext4 -q /tmp/survey.img && mount -o loop /tmp/survey.img /tmp/survey || exit 1
load=(kselftest/regress/pipe/pipe_load -w 2 -r 2 --sizes "64,64K" --count 50)

# survey TOPIC WORDS COMMAND...: does each script of the topic work while the
# command runs, and does it see what the words, a regular expression, say?
survey()
{
	local topic=$1 words=$2
	shift 2
	if ! [ -x "$1" ]; then
		result ok "survey $topic # SKIP $1 has not been built"
	elif python3 scripts survey --topic "$topic" --exec "$*" > "survey-$topic.log" 2>&1 &&
	     ! grep -q 'cannot' "survey-$topic.log" && grep -Eq "^$topic: .*$words" "survey-$topic.log"; then
		result ok "survey $topic"
	else
		failed "survey $topic" "survey-$topic.log"
	fi
}
if ! command -v bpftrace > /dev/null; then
	result ok "survey # SKIP bpftrace is not installed"
else
	survey pipe 'of a page or more, (and|but) the mutex is waited for' "${load[@]}"
	survey pid '[1-9][0-9,]* tasks a second' \
		kselftest/regress/pid/pid_alloc_bench --op vfork,thread --procs 4 --count 300
	for topic in filemap pageguard; do
		survey $topic '[1-9][0-9]* % of [1-9][0-9,]* reads a second that hit' \
			kselftest/regress/filemap/pread_bench --dir /tmp/survey --size 64,4096 --tasks 2 --seconds 2
	done
	# How many come back depends on whether the series is there.
	survey fault 'of [1-9][0-9.,]* faults a second' \
		kselftest/regress/fault/fault_bench --file /tmp/survey --size 4 --random --threads 2 --seconds 2
fi
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
