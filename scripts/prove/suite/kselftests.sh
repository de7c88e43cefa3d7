#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The root of the guest has no shared maps of files, which tests of mm make where they run.
# khugepaged moves maps to just below 1 GB, where the heap of a program that is not
# position-independent may be: now and then it died of what it had done to its own.

echo 1 > /proc/sys/kernel/randomize_va_space
on_loop ext4 512M /tmp/disk
