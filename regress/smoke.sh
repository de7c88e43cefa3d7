# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0
#
# What the smoke tests of the benchmarks share; they source it. Does a benchmark
# work? It is run for a fixed and very small amount of work. What it measures is
# not looked at.
#
# Before the first expect(): $keys, patterns that each line of results matches,
# $counts, the key of the number of operations, and plan().

ksft_skip=4
nr=0
failed=0
skipped=0
keys=
counts=
out=$(mktemp) && err=$(mktemp) || exit 1
trap 'rm -f "$out" "$err"' EXIT

number='-?[0-9]+(\.[0-9]+)?'
value="(\"[^\"]*\"|$number|true|false|null)"
object="^\{\"[a-z0-9_]+\":$value(,\"[a-z0-9_]+\":$value)*\}\$"

# plan COUNT PROGRAM...: begin with the plan, or leave where one is not there
plan()
{
	planned=$1
	shift
	echo "TAP version 13"
	for program; do
		if ! [ -x "./$program" ]; then
			echo "1..0 # SKIP $program has not been built"
			exit "$ksft_skip"
		fi
	done
	echo "1..$planned"
}

result()
{
	nr=$((nr + 1))
	if [ "$1" -ne 0 ]; then
		failed=$((failed + 1))
		sed 's/^/# /' "$out" "$err"
		printf 'not '
	fi
	echo "ok $nr $2"
}

skip()
{
	nr=$((nr + 1))
	skipped=$((skipped + 1))
	echo "ok $nr $1 # SKIP $2"
}

# The number of lines of $out that are flat JSON objects and match all of $keys
# and the pattern $1
good_lines()
{
	text=$(grep -E "$object" "$out" | grep -- "$1")
	for key in $keys; do
		text=$(printf '%s\n' "$text" | grep -- "$key")
	done
	printf '%s' "$text" | grep -c ''
}

# expect STATUS LINES COUNT NAME COMMAND...: does it end with this status? If this
# is 0, does it print that many good lines, of that many operations (""
# if they are not counted or limited by time)?
expect()
{
	status=$1
	lines=$2
	count=${counts:+\"$counts\":${3:-[1-9][0-9]*},}
	name=$4
	shift 4

	"$@" >"$out" 2>"$err"
	ret=$?
	# Wrong usage has to be noticed before something is found to be missing
	if [ "$ret" -eq "$ksft_skip" ] && [ "$status" -ne 2 ]; then
		skip "$name" "$(cat "$err")"
		return
	fi
	if [ "$ret" -ne "$status" ]; then
		echo "# $*: status $ret instead of $status"
		result 1 "$name"
		return
	fi
	if [ "$status" -eq 0 ]; then
		good=$(good_lines "$count")
		all=$(wc -l <"$out")
		if [ "$good" -ne "$lines" ] || [ "$all" -ne "$lines" ]; then
			echo "# $*: $all lines, $good of them good, instead of $lines"
			result 1 "$name"
			return
		fi
	elif [ "$(wc -l <"$err")" -lt 1 ]; then
		echo "# $*: failed without a word"
		result 1 "$name"
		return
	fi
	result 0 "$name"
}

# also PATTERN NAME: did the last run say so on each line?
also()
{
	if [ "$ret" -ne 0 ]; then
		skip "$2" "there is no result"
	elif [ "$(grep -cE "$1" "$out")" -ne "$lines" ]; then
		echo "# not on every line: $1"
		result 1 "$2"
	else
		result 0 "$2"
	fi
}

# said PATTERN NAME: did the last run complain about that?
said()
{
	if [ "$ret" -eq "$ksft_skip" ]; then
		skip "$2" "it did not run"
		return
	fi
	grep -qE "$1" "$err"
	result $? "$2"
}

# The totals, and the exit status
finish()
{
	echo "# Totals: pass:$((nr - failed - skipped)) fail:$failed xfail:0 xpass:0 skip:$skipped error:0"
	[ "$failed" -eq 0 ]
}
