// SPDX-License-Identifier: GPL-2.0
/* The benchmark of the series, built for the guests of every side. */
#include "../../tools/testing/selftests/mm/fault_bench.c"
