#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The first program of the arm64 guest: mount what a guest under virtme-ng has,
# run the script that the host left in the run's directory, tell its status.
# Where one of the mounts fails it ends, and so does the guest.
set -e

/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ TERM=dumb
mount -t sysfs sysfs /sys
mount -t debugfs debugfs /sys/kernel/debug
mount -t configfs configfs /sys/kernel/config
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t devtmpfs devtmpfs /dev
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mkdir /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 run /mnt

# Pages of files in /tmp are to be read from a disk, and not at once: one in
# memory that takes a millisecond for each request.
mkdir /sys/kernel/config/nullb/nullb_tmp
cd /sys/kernel/config/nullb/nullb_tmp
echo 1 > memory_backed
echo 96 > size
echo 2 > irqmode
echo 1000000 > completion_nsec
echo 1 > power
mkfs.ext4 /dev/nullb_tmp
mount -t ext4 /dev/nullb_tmp /tmp
chmod 1777 /tmp

set +e
cd /mnt && {
	sh script.sh > output.log 2>&1 < /dev/null
	echo $? > status
	sync
}
poweroff -f
