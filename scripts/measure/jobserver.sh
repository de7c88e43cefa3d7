#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A makefile of 48 jobs for four makes, which share the tokens of a job server.

cat > /tmp/jobs.mk << 'END'
part := $(addprefix part, 1 2 3 4)
job := $(addprefix job, 1 2 3 4 5 6 7 8 9 10 11 12)
all: $(part)
$(part):; +@$(MAKE) --no-print-directory -f /tmp/jobs.mk jobs
jobs: $(job)
$(job):; @/bin/true $@ > /dev/null
.PHONY: all jobs $(part) $(job)
END
