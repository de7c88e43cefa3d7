#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The first process of a User-Mode Linux guest: mounts what tests need over the
# host's root, which is read-only, runs the script of the run's directory ($1),
# and powers off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp TERM=dumb
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts
mount -t devpts devpts /dev/pts
for dir in /dev/shm /run /tmp /var/tmp; do
	mount -t tmpfs -o mode=1777 tmpfs "$dir"
done
mount -t debugfs debugfs /sys/kernel/debug
mount -t configfs configfs /sys/kernel/config
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t hostfs -o "$1" hostfs /mnt
ln -sfT /proc/self/fd /dev/fd
ln -sf /proc/self/fd/1 /dev/stdout
ln -sf /proc/self/fd/2 /dev/stderr
cd /mnt || exit
bash script.sh > output.log 2>&1 < /dev/null
echo $? > status
sync
echo o > /proc/sysrq-trigger
sleep 60
