// SPDX-License-Identifier: GPL-2.0
/* The in-tree benchmark, beside the tests of regress/filemap. */
#include "../../tools/testing/selftests/filemap/pread_bench.c"
