#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Does pipe_bench work? Time is not judged.

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

# expect <lines> <pattern> <name> <options>: so many lines that match
expect()
{
	lines=$1
	pattern=$2
	name=$3
	shift 3
	./pipe_bench -d 1 "$@" > "$out" 2> /dev/null &&
		[ "$(grep -c "$pattern" "$out")" = "$lines" ]
	result $? "$name"
}

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

echo "TAP version 13"
echo "1..6"
expect 1 '"writes": [1-9].*"lat_p50_ns_upper": [1-9].*[0-9]}$' "one size" \
	-w 2 -r 3 --json
expect 3 '"bind": "apart".*"writes": [1-9]' \
	"sizes, bound" -w 1 -r 1 -s 1,4096,100000 --bind=apart --json
expect 1 '"small_writes": [1-9].*"small_lat_p99_ns_upper": [1-9]' \
	"small messages beside large ones" -w 1 -r 1 -S 100 --bind --json
expect 2 '"pairs": [1-9].*"ns_per_pair": [0-9.]*}$' "one task" \
	-s 64,65536 --pair --json
expect 1 '^switches_per_write: [0-9.]*$' "for people" -w 2
! ./pipe_bench -s 64,x > /dev/null 2>&1
result $? "a size that is none"
exit $failed
