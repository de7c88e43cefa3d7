#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does pid_bench work? Time is not judged.

cd "$(dirname "$0")" || exit 1

nr=0
failed=0

result()
{
	nr=$((nr + 1))
	if [ "$1" = 0 ]; then
		echo "ok $nr $2"
	else
		echo "not ok $nr $2"
		failed=1
	fi
}

# expect <lines> <name> <options>: so many results, each with operations in it
expect()
{
	lines=$1
	name=$2
	shift 2
	./pid_bench --json --seconds 0.05 "$@" > "$out"
	status=$?
	if [ $status = 4 ]; then
		nr=$((nr + 1))
		echo "ok $nr $name # SKIP it takes root"
		return
	fi
	[ $status = 0 ] && [ "$(wc -l < "$out")" = "$lines" ] &&
		[ "$(grep -c '"ops": [1-9].*"p50_ns": [1-9].*"p99_ns": [1-9]' "$out")" = "$lines" ]
	result $? "$name"
}

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

echo "TAP version 13"
echo "1..5"
expect 6 "threads and processes, 1, 2 and 4 at once"
expect 1 "each worker on a CPU" --op thread --tasks 2 --pin
expect 1 "three levels of namespaces" --op vfork --tasks 2 --level 3
./pid_bench --op spoon > /dev/null 2>&1
[ $? = 2 ]
result $? "an operation that there is not"
./pid_bench --seconds 0.05 --tasks 1 --op vfork | grep -q "^vfork .* op/s .* p99 "
result $? "for people"
exit $failed
