#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Before the tests of xfstests: its users, and what runs a test ($2) on a file system ($1)
# that is made anew.

export RESULT_BASE=/tmp/results TEST_DIR=/tmp/test SCRATCH_MNT=/tmp/scratch
# No guest has udev, so dmsetup makes the nodes of its devices.
export DM_DISABLE_UDEV=1
mkdir "$RESULT_BASE" "$TEST_DIR" "$SCRATCH_MNT"
{ cat /etc/passwd; echo "fsgqa:x:6001:6001::/tmp:/bin/bash"; echo "123456-fsgqa:x:6002:6001::/tmp:/bin/bash"
	echo "fsgqa2:x:6003:6001::/tmp:/bin/bash"; } > /tmp/passwd && mount --bind /tmp/passwd /etc/passwd
{ cat /etc/group; echo "fsgqa:x:6001:"; } > /tmp/group && mount --bind /tmp/group /etc/group
xfstest() {
	export FSTYP=$1 TEST_DEV=test SCRATCH_DEV=scratch
	if [ "$1" != tmpfs ]; then
		losetup -D
		rm -f /tmp/test.img /tmp/scratch.img
		truncate -s 1G /tmp/test.img /tmp/scratch.img
		TEST_DEV=$(losetup -f --show /tmp/test.img)
		SCRATCH_DEV=$(losetup -f --show /tmp/scratch.img)
		"mkfs.$1" -q "$TEST_DEV" || return
	fi
	cd "$SUITE/xfstests" && ./check -T "$2"
}
export -f xfstest
