#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Before the tests of LTP: where it is.  Debug kernels are slow, so tests get three times the
# time that they give themselves, and a tenth of it if they would go on for minutes.

export LTPROOT=$SUITE PATH=$PATH:$SUITE/testcases/bin TMPDIR=$WORK LTP_TIMEOUT_MUL=3
export LTP_RUNTIME_MUL=0.1 LTP_COLORIZE_OUTPUT=n KCONFIG_PATH=$SUITE/../kernel.config LTP_SINGLE_FS_TYPE=ext4
