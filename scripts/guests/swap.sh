#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Give the guest swap to reclaim tmpfs to: a block device in memory.

[ -d /sys/kernel/config/nullb ] || mount -t configfs configfs /sys/kernel/config
mkdir /sys/kernel/config/nullb/nullb_swap
( cd /sys/kernel/config/nullb/nullb_swap && echo 1 > memory_backed && echo 256 > size && echo 1 > power &&
	mkswap /dev/nullb_swap && swapon /dev/nullb_swap ) > swap.log 2>&1 || exit 1
