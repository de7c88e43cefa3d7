# SPDX-License-Identifier: GPL-2.0
"""The frame of every command: its arguments, and how it ends."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys

from core.model import find_base, find_topic, reference
from core.process import Failure


def arguments(description: str, base: bool = True, topics: str = "", accel: bool = False,
              fresh: bool = False) -> argparse.ArgumentParser:
    """A parser with the options that several commands have.  @base: --base, a
    Base, and --kdir, whose default is $KDIR; @topics: --topic, "one" Topic that
    has to be given, or a list of "some", None for all; @accel, @fresh: the
    options of these names.  What is not known raises Failure."""
    parser = argparse.ArgumentParser(description=description)
    if base:
        parser.add_argument("--base", type=find_base, default=reference().name,
                            help="a base of bases.toml (default: %(default)s)")
        parser.add_argument("--kdir", default=os.environ.get("KDIR"), help="your own kernel tree")
    if topics == "one":
        parser.add_argument("--topic", type=find_topic, required=True, help="a directory of patches/")
    elif topics:
        # "pipe pid" names two.
        parser.add_argument("--topic", type=lambda names: [find_topic(name) for name in names.split()],
                            action="extend", help="one or more (default: all)")
    if accel:
        parser.add_argument("--accel", default="auto", choices=("auto", "kvm", "tcg"), help="default: %(default)s")
    if fresh:
        parser.add_argument("--fresh", action="store_true", help="do also what was seen to pass with the same inputs")
    return parser


def at_least(least: int, most: int | None = None):
    """The type of an argument that is a whole number from @least to @most, for
    argparse."""
    def number(text: str) -> int:
        """@text as a number; argparse prints the reason where it is none."""
        if not re.fullmatch(r"\d{1,9}", text) or int(text) < least or (most is not None and int(text) > most):
            span = f"of {least} or more" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number {span}")
        return int(text)

    return number


def run(main) -> None:
    """Run a step's main() as a program: a Failure or an interrupt becomes one
    message on standard error and exit status 1 or 130.  A signal that ends it
    ends its builds and guests, too."""
    def stop(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup has SIGHUP ignored.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, stop)
    try:
        sys.exit(main() or 0)
    except Failure as err:
        print(f"error: {err}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("error: interrupted: run the same command again, what was downloaded or built is kept",
              file=sys.stderr)
        sys.exit(130)
    except subprocess.CalledProcessError as err:
        print(f"error: {err}: fix this and run the same command again", file=sys.stderr)
        sys.exit(1)
    except OSError as err:
        print(f"error: {err.strerror or err} ({err.filename}): fix this and run the same command "
              "again", file=sys.stderr)
        sys.exit(1)
