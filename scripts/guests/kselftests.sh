#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Run the installed kselftests.  Each program may take half an hour: the kernel's own tests are
# not made for emulated machines.  The runner opens /dev/stdout again for each test: give it a
# pipe.  Each line gets the time at which it came.

( cd kselftest && ./run_kselftest.sh -o 1800 2>&1 ) |
	while IFS= read -r line; do printf '%s %s\n' "$EPOCHREALTIME" "$line"; done > ktap
cat /proc/lockdep_stats > lockdep_stats 2> /dev/null
