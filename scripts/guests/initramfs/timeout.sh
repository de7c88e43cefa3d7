#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# busybox's timeout for the kselftest runner, which gives it an option of
# coreutils' that only matters on a terminal.
[ "$1" = --foreground ] && shift
exec /bin/timeout "$@"
