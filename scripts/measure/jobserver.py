# SPDX-License-Identifier: GPL-2.0
"""Builds that share the tokens of a job server, which are bytes in a pipe."""

from pathlib import Path

from core.process import bash

# Bash that makes a makefile of 48 jobs, for four makes.
JOBS = bash(Path(__file__).with_suffix(".sh"))
