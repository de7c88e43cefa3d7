// SPDX-License-Identifier: GPL-2.0
/* The benchmark that is kept in the tree, for make bench-host. */
#include "../../tools/testing/selftests/filemap/pread_bench.c"
