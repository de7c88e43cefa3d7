#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Before the programs of fsx: a file system of each kind in /tmp, and what drops the page
# cache all the while, so that reads race with that.

mkdir /tmp/tmpfs
mount -t tmpfs tmpfs /tmp/tmpfs
for system in ext4 xfs; do
	on_loop $system 512M /tmp/$system > $system.log 2>&1
done
dropping() {
	while echo 1 > /proc/sys/vm/drop_caches; do sleep 0.5; done &
}
export -f dropping
