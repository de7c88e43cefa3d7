// SPDX-License-Identifier: GPL-2.0
/* The series' own benchmark, for make bench-host. */
#include "../../tools/testing/selftests/mm/fault_bench.c"
