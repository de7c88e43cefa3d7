#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does pread_bench work? Time is not judged.

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

# expect <lines> <name> <options>: so many results, each with reads in it
expect()
{
	lines=$1
	name=$2
	shift 2
	./pread_bench --json --seconds 0.05 --dir /tmp "$@" > "$out" &&
		[ "$(wc -l < "$out")" = "$lines" ] &&
		[ "$(grep -c '"ops": [1-9].*"p50_ns": [1-9].*"p99_ns": [1-9]' \
			"$out")" = "$lines" ]
	result $? "$name"
}

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

echo "TAP version 13"
echo "1..6"
expect 12 "four sizes, by 1, 2 and 4 threads"
expect 1 "processes that share an open file" \
	--processes --one-open --tasks 2 --size 1
expect 1 "random records of a file each, each task on a CPU" \
	--own-files --random --pin --tasks 2 --size 100
expect 1 "the largest read" --tasks 1 --size 65536
./pread_bench --size 65537 > /dev/null 2>&1
[ $? = 2 ]
result $? "a read that is too large"
./pread_bench --seconds 0.05 --dir /tmp --tasks 1 --size 64 |
	grep -q "^ *64 B hot .* op/s .* p99 "
result $? "for people"
exit $failed
