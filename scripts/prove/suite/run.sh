#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What runs the programs of a suite in a guest, one by one.  Each has its output in
# out/, and leaves a line in "began" and one in "ended": name, exit status, begin and
# end in seconds.  The kernel's log says as well which of them runs.
export HERE=$PWD SUITE=$PWD/kselftest WORK=/tmp/work
mkdir -p out "$WORK"
export PATH=$PATH:/usr/sbin:/sbin
echo on > /proc/sys/kernel/printk_devkmsg
# A file system of type $1 and size $2 in the file $3.img, at the directory $3.
on_loop() {
	mkdir "$3"
	truncate -s "$2" "$3.img"
	"mkfs.$1" -q "$3.img" && mount -o loop "$3.img" "$3"
}
program() {
	local begin=$EPOCHREALTIME status
	echo "$1" >> began
	echo "hotpaths: $1 begins" > /dev/kmsg
	# shellcheck disable=SC2016
	( cd "$WORK" && exec setsid -w bash -c 'echo $$ > "$HERE/session"; exec timeout -k 5 "$0" bash -c "$1"' \
		"$2" "$3" ) < /dev/null > "out/$1" 2>&1
	status=$?
	# What it has left behind would run beside the next one.
	pkill -KILL -s "$(cat session)"
	find "$WORK" -mindepth 1 -xdev -delete 2> /dev/null
	printf '%s\t%s\t%s\t%s\n' "$1" "$status" "$begin" "$EPOCHREALTIME" >> ended
}
