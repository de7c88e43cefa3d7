#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Before the programs of UnixBench, which lie in $SUITE: "copies 2 pipe 1" runs two copies of
# "pipe 1" at once, and prints what they did a second; it fails where a copy fails or counts
# nothing.  The last line COUNT|<done>|<seconds>|<unit> of each tells, as UnixBench's own Run
# takes it: what was done in the time that passed or, with 0 seconds, in each second.

export UB_BINDIR=$SUITE
copy() {
	local begin=${EPOCHREALTIME/./} said took
	said=$("$SUITE/$1" "${@:2}" 2>&1 > /dev/null) || { echo "$said" >&2; return 1; }
	took=$((${EPOCHREALTIME/./} - begin))
	echo "$(grep '^COUNT|' <<< "$said" | tail -n 1)|$took"
}
copies() {
	( for ((turn = 0; turn < $1; turn++)); do copy "${@:2}" & done; wait ) | awk -F '|' -v copies="$1" '
		$1 == "COUNT" && $2 > 0 { sum += $3 > 0 ? $2 * $3 * 1e6 / $5 : $2; counted++ }
		END { if (counted != copies) exit 1; printf "%.1f\n", sum }'
}
export -f copy copies
