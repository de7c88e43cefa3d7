#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Time kernels of hotpaths on this machine: each runs as a program, as User-Mode
Linux, without root, KVM, reboot or compiler.

In each lap all kernels are booted once with the same number of CPUs, the base
twice, in random order; the first lap of each number is dropped.  What was measured
is written after each lap: Ctrl-C keeps it, and the same command goes on with it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "lib"))
from reports import laps as tables  # noqa: E402
from core import machine  # noqa: E402
from reports import stats  # noqa: E402

# What a guest is given, and what has to be free beside it, in bytes.
MEMORY, BESIDE = 768 << 20, 256 << 20
MOST_CPUS = 64              # NR_CPUS of the kernels
PATIENCE = 60               # seconds that a boot may take
OLDEST = (5, 9)             # of Linux, for close_range()
GET_SECCOMP = 21            # PR_GET_SECCOMP
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FORMAT = 1


class Stop(Exception):
    """What ends the program: one sentence with the next step."""


class Died(Exception):
    """A guest that did not come to its end; the text is why."""


def say(text: str) -> None:
    """One line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def status(text: str) -> None:
    """A line of progress that the next one replaces, on a terminal alone."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)


# ---- what the machine has ----

def seccomp_problem(release: str, mode: int) -> str:
    """Why no guest can run on the kernel @release, for which prctl() says @mode, or
    nothing."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        return f"Linux {release} is too old: boot {OLDEST[0]}.{OLDEST[1]} or a later one."
    if mode < 0:
        return "This kernel has no seccomp: boot one with CONFIG_SECCOMP_FILTER=y, as distributions have it."
    return ""


def available(text: str) -> int:
    """The bytes that the /proc/meminfo @text calls available."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB", text, re.MULTILINE)
    return int(found[1]) << 10 if found else 0


def room(directory: Path) -> int:
    """The bytes that may be written to @directory as memory of a guest; 0 where that
    cannot be: it is not there, not ours, or mounted noexec."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return 0
    if not os.access(directory, os.W_OK | os.X_OK) or found.f_flag & os.ST_NOEXEC:
        return 0
    return found.f_bavail * found.f_frsize


def memory_place(places: list[Path]) -> Path:
    """The first of @places that has room for a guest's memory; Stop where none has."""
    for place in places:
        if room(place) >= MEMORY:
            return place
    raise Stop(f"None of {', '.join(map(str, places))} has {MEMORY >> 20} MB free and may run programs: make room in "
               "one, or set TMPDIR to a directory that has them.")


def check(out: Path) -> Path:
    """See that a guest can run here and @out can be written; where its memory is to
    lie.  Says what it found; raises Stop."""
    mode = ctypes.CDLL(None).prctl(GET_SECCOMP, 0, 0, 0, 0)
    problem = seccomp_problem(platform.release(), mode)
    if platform.machine() != "x86_64":
        problem = f"This machine is {platform.machine()}: the kernels are for x86-64."
    if re.search(r"[\s,]", str(HERE)):
        problem = f"The path {HERE} has a space or a comma: unpack it elsewhere."
    if problem:
        raise Stop(problem)
    say("seccomp: there" + (", and this is a container that filters calls: the first boot will tell" if mode else ""))
    free = available(machine.text(Path("/proc/meminfo")))
    if free < MEMORY + BESIDE:
        raise Stop(f"{free >> 20} MB of memory are available, and it takes {MEMORY + BESIDE >> 20}: stop what "
                   "uses it, or take a larger machine.")
    own = os.environ.get("TMPDIR")
    place = memory_place([Path(name) for name in ([own] if own else []) + ["/dev/shm", "/tmp", "/var/tmp"]])
    say(f"memory: {free >> 20} MB are available, and the guests' memory is in {place}")
    if not os.access(out.parent, os.W_OK):
        raise Stop(f"{out.parent} cannot be written: go to a directory of yours, or give --out FILE.")
    return place


def quota(text: str) -> float:
    """The CPUs that the cpu.max @text of a control group allows; infinite if all."""
    words = text.split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdigit() else float("inf")


def topology(cpus: list[int]) -> list[int]:
    """@cpus in the order in which they are given to a guest: one of each core first,
    a socket after the other; and how many cores they are, as the last member."""
    cores: dict[tuple, list[int]] = {}
    for cpu in cpus:
        where = machine.SYS / f"devices/system/cpu/cpu{cpu}/topology"
        own = tuple(machine.text(where / name) for name in ("physical_package_id", "core_id"))
        cores.setdefault(own if machine.UNKNOWN not in own else (cpu,), []).append(cpu)
    depth = max(map(len, cores.values()))
    return [own[turn] for turn in range(depth) for own in cores.values() if turn < len(own)] + [len(cores)]


def points(wanted: list[int], cpus: list[int], cores: int, most: float) -> list[dict]:
    """For each of the @wanted numbers of CPUs, the "host" CPUs of @cpus that the guest
    is bound to, and whether two of the guest's have to "share" one of them, or a
    "core" of @cores; @most: that may be busy at once."""
    return [{"cpus": number, "host": cpus[:number], "share": number > min(len(cpus), most), "core": number > cores}
            for number in wanted]


def default_cpus(number: int) -> list[int]:
    """1, 2, 4, ... up to the @number of CPUs that there are, and that."""
    number = min(number, MOST_CPUS)
    return [*(1 << bit for bit in range(number.bit_length()) if 1 << bit < number), number]


# ---- a boot ----

def measured(text: str, jobs: dict, wanted: list[str], cpus: int) -> dict[str, float]:
    """Operations a second by row, as a guest with @cpus CPUs that did the jobs @wanted
    of @jobs printed them in @text; Died where one is missing."""
    done: dict[tuple, list[int]] = {}
    single: dict[tuple, float] = {}
    for line in text.replace("\r", "").splitlines():
        found = re.match(r"hotpaths: (\w+) (\d+) (\d+) (\d+)$", line)
        if found:
            total = done.setdefault((found[1], int(found[2])), [0, 0])
            total[0] += int(found[3])
            total[1] += int(found[4])
        found = re.match(r"hotpaths: (\w+) (\d+) (\{.*\})$", line)
        if found:
            single[found[1], int(found[2])] = json.loads(found[3])["ops_per_s"]
    if f"hotpaths: cpus {cpus}\n" not in text.replace("\r", ""):
        raise Died(f"it does not have the {cpus} CPUs that it was given")
    rows = {}
    for job in wanted:
        for row in jobs[job]:
            key = (job, row["line"])
            if key in single:
                value = single[key]
            elif done.get(key, [0])[0]:
                # Of pipes bytes are counted.
                value = done[key][0] / row.get("bytes", 1) / done[key][1] * 1e9
            else:
                raise Died(f"nothing was done in '{row['row']}'")
            rows[row["row"]] = float(f"{value:.6g}")
    return rows


def why_died(text: str, code: int) -> str:
    """The reason that what a guest printed, @text, gives for its end with @code."""
    text = text.replace("\r", "")
    if re.search(r"seccomp filters can be installed\.\.\.(missing|error)", text):
        return ("a seccomp filter is refused here, as in some containers: run it outside of the container, or start "
                "that with --security-opt seccomp=unconfined")
    if "must be not mounted noexec" in text:
        return "its memory lies where no program may be run: set TMPDIR to another directory"
    if code == -signal.SIGBUS or "No space left" in text:
        return "there was no room for its memory: set TMPDIR to a directory with more"
    told = [line for line in text.splitlines() if line.startswith("hotpaths: failed: ") or "Kernel panic" in line]
    last = (told or [line for line in text.splitlines() if line.strip()] or ["nothing was printed"])[-1]
    return f"{'signal' if code < 0 else 'status'} {abs(code)}, and it said last: {last.strip()[:200]}"


def prepare(cpus: list[int]) -> None:
    """In the new process of a guest: no cores are dumped, it has @cpus of its own, and may
    be ended."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.sched_setaffinity(0, cpus)
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)


def finished(argv: list[str], cpus: list[int], place: Path) -> tuple[str, int]:
    """What the guest @argv printed, which runs on @cpus with its memory in @place, and
    its exit status; all that it runs is ended."""
    # If an interrupt came while it starts, it would be left behind.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                             start_new_session=True, preexec_fn=lambda: prepare(cpus),
                             env={**os.environ, "TMPDIR": str(place)})
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
        return child.communicate(timeout=PATIENCE)[0].decode(errors="replace"), child.returncode
    except subprocess.TimeoutExpired:
        raise Died(f"it took more than {PATIENCE} s") from None
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        child.stdout.close()


def boot(bundle: dict, kernel: dict, point: dict, jobs: list[str], place: Path) -> dict[str, float]:
    """What @kernel of @bundle does of @jobs, by row, with the CPUs of @point and its
    memory in @place; Died where it does not come to its end."""
    with tempfile.TemporaryDirectory(prefix="hotpaths-", dir=place) as scratch:
        printed, code = finished([
            str(HERE / kernel["file"]), f"mem={MEMORY >> 20}M", f"ncpus={point['cpus']}", "seccomp=on",
            f"uml_dir={scratch}/", "root=/dev/root", "rootfstype=hostfs", f"rootflags={HERE / 'root'}", "ro",
            "init=/init", "con=null", "con0=fd:0,fd:1", "quiet", "panic=-1",
            *(["bench_spin=0"] if point["share"] else []), "--", *jobs], point["host"], place)
    if "hotpaths: done" not in printed:
        raise Died(why_died(printed, code))
    return measured(printed, bundle["jobs"], jobs, point["cpus"])


# ---- the file ----

def machine_name(found: dict) -> str:
    """What the machine @found, as machine.machine() has it, is called in the names of
    files: its CPU and their number."""
    words = re.sub(r"\((R|TM|tm|r)\)|CPU|Processor|@.*", " ", found["CPU model"])
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") + f"-{found['CPUs']}cpus"


def new_record(bundle: dict) -> dict:
    """What is known before anything is measured with @bundle, whose kernels and rows it
    names."""
    return {"format": FORMAT, **{name: bundle[name] for name in ("bundle", "base", "tag", "jobs", "kernels")},
            "machine": machine.machine(), "virtual": machine.is_virtual(),
            "host kernel": platform.release(), "begun": time.strftime("%Y-%m-%d %H:%M"), "points": [], "laps": []}


def same(one: dict, other: dict) -> bool:
    """Whether two records are of one bundle and one machine."""
    return all(one.get(key) == other.get(key) for key in ("format", "bundle", "machine", "host kernel"))


def resumed(path: Path, fresh: dict) -> dict:
    """What the file @path has, if that is of the same bundle and machine as @fresh; or
    @fresh, where it is not there.  Stop where it is of something else."""
    if not path.exists():
        return fresh
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as err:
        raise Stop(f"{path} cannot be read ({err}): move it away, or give --out FILE.") from err
    if not isinstance(found, dict) or not same(found, fresh):
        raise Stop(f"{path} is of another bundle, machine or host kernel: move it away, or give --out FILE.")
    say(f"going on with the {len(found['laps'])} laps of {path}")
    return found


def write(path: Path, record: dict) -> str:
    """Write @record to @path, all or nothing; why that was not possible, or nothing."""
    partial = path.with_name(path.name + ".part")
    text = json.dumps({**record, "laps": []}, indent=1)
    laps = ",\n".join(json.dumps(lap) for lap in record["laps"])
    try:
        with open(partial, "w") as stream:
            stream.write(text.replace('"laps": []', f'"laps": [\n{laps}\n]') + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as err:
        try:
            partial.unlink()
        except OSError:
            pass
        return err.strerror or str(err)
    return ""


# ---- all of it ----

class Session:
    """Laps until the time is over: @record is what they add to, @bundle what is
    measured, with the CPUs of @chosen; @place where guests have their memory, @minutes
    how long."""

    def __init__(self, bundle: dict, record: dict, out: Path, chosen: list[dict], place: Path, minutes: float):
        self.bundle, self.record, self.out, self.place = bundle, record, out, place
        self.begin, self.length = time.monotonic(), minutes * 60
        self.points = chosen
        self.took: list[float] = []     # seconds of each lap
        self.unwritten = 0
        self.told = 0
        self.order = random.Random(len(record["laps"]))

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.begin

    def laps_in_all(self) -> int:
        """How many laps there will be, by the time that those so far took."""
        if len(self.took) < len(self.points):
            return (tables.LEAST + 1) * len(self.points)
        left = max(0.0, self.length - self.elapsed)
        return len(self.took) + round(left * len(self.took) / sum(self.took))

    def lap(self, point: dict) -> dict | None:
        """One lap with the CPUs of @point; None if the time was over before its end."""
        names = [kernel["name"] for kernel in self.bundle["kernels"]]
        order = self.order.sample([*names, stats.AGAIN], len(names) + 1)
        values = {}
        for number, name in enumerate(order, 1):
            if self.elapsed >= self.length:
                return None
            kernel = next(one for one in self.bundle["kernels"]
                          if one["name"] == (tables.BASE if name == stats.AGAIN else name))
            status(f"{self.elapsed / 60:.1f} of {self.length / 60:g} minutes: lap {len(self.took) + 1} of about "
                   f"{self.laps_in_all()}, {tables.head(point)}, boot {number} of {len(order)}: {name}")
            values[name] = boot(self.bundle, kernel, point, kernel["jobs"], self.place)
        return {"cpus": point["cpus"], "values": values}

    def keep(self, lap: dict) -> None:
        """Add @lap to the record, and write that."""
        self.record["laps"].append(lap)
        problem = write(self.out, self.record)
        if problem and not self.unwritten:
            say(f"{self.out} cannot be written ({problem}) and is as it was: make room; each lap tries again")
        self.unwritten = self.unwritten + 1 if problem else 0

    def drop(self, point: dict, err: Died) -> None:
        """Go on without the number of CPUs of @point; Stop where none is left."""
        self.points.remove(point)
        say(f"with {tables.head(point)} a kernel did not run: {err}")
        if not self.points:
            raise Stop("No number of CPUs is left: see the reason above, or give others with --cpus.")

    def round(self, cold: bool) -> bool:
        """A lap of each number of CPUs, in random order; whether there is time for more.
        @cold: they are thrown away, since caches are cold."""
        for point in self.order.sample(self.points, len(self.points)):
            before = self.elapsed
            try:
                lap = self.lap(point)
            except Died as err:
                self.drop(point, err)
                continue
            if lap is None:
                return False
            self.took.append(self.elapsed - before)
            if not cold:
                self.keep(lap)
            status("")
            say(f"lap {len(self.took)} of about {self.laps_in_all()}: {tables.head(point)}, {self.took[-1]:.0f} s"
                + (", to warm up: not counted" if cold else ""))
        return self.elapsed < self.length

    def tell(self) -> None:
        """Print the table, if there is one that was not printed."""
        if self.told == len(self.record["laps"]):
            return
        self.told = len(self.record["laps"])
        rows = [row["row"] for job in self.bundle["jobs"].values() for row in job]
        names = [kernel["name"] for kernel in self.bundle["kernels"] if kernel["name"] != tables.BASE]
        text = tables.table(self.record["laps"], rows, names, self.record["points"])
        print("\n" + (text or f"There are fewer than {tables.LEAST} laps of each number of CPUs: no table.") + "\n",
              flush=True)

    def warn(self) -> None:
        """Say if the time is too short for a table."""
        needed = (tables.LEAST + 1) * len(self.points) * sum(self.took) / max(1, len(self.took)) / 60
        if needed > self.length / 60:
            say(f"a table takes {needed:.0f} minutes: give --minutes {needed + 1:.0f}, or fewer numbers with --cpus")

    def run(self) -> None:
        """All laps; the table as soon as there are LEAST of each number of CPUs."""
        more = self.round(cold=True)
        self.warn()
        while more:
            more = self.round(cold=False)
            if not self.told and all(len(tables.of_cpus(self.record["laps"], point["cpus"])) >= tables.LEAST
                                     for point in self.points):
                self.tell()


def parse(argv: list[str], number: int, default: float) -> argparse.Namespace:
    """The command line @argv on a machine with @number CPUs; @default: minutes."""
    def cpus(text: str) -> list[int]:
        """'1,2,4' as numbers."""
        if not re.fullmatch(r"\d{1,3}(,\d{1,3})*", text) or not all(1 <= int(one) <= MOST_CPUS
                                                                      for one in text.split(",")):
            raise argparse.ArgumentTypeError(f"'{text}' is not a list like 1,2,4 of numbers from 1 to {MOST_CPUS}")
        return sorted({int(one) for one in text.split(",")})

    def minutes(text: str) -> float:
        """A time."""
        if not re.fullmatch(r"\d{1,4}(\.\d+)?", text) or not float(text):
            raise argparse.ArgumentTypeError(f"'{text}' is not a number of minutes")
        return float(text)

    parser = argparse.ArgumentParser(prog="./run", description=__doc__)
    parser.add_argument("--cpus", type=cpus, default=default_cpus(number),
                        help=f"CPUs of the guests (default: {','.join(map(str, default_cpus(number)))})")
    parser.add_argument("--minutes", type=minutes, default=default, help="how long (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="the file that is written (default: a name of this machine, here)")
    return parser.parse_args(argv)


def start(argv: list[str]) -> int:
    """Measure, as @argv says; the exit status."""
    allowed = sorted(os.sched_getaffinity(0))
    *order, cores = topology(allowed)
    bundle = json.loads((HERE / "bundle.json").read_text())
    args = parse(argv, len(allowed), bundle["minutes"])
    fresh = new_record(bundle)
    out = (args.out or Path(f"hotpaths-{bundle['base']}-{machine_name(fresh['machine'])}.json")).absolute()
    place = check(out)
    record = resumed(out, fresh)
    limit = quota(machine.text(Path("/sys/fs/cgroup/cpu.max")))
    chosen = points(args.cpus, order, cores, limit)
    beyond = [str(one["cpus"]) for one in chosen if one["share"]]
    if beyond:
        say(f"{', '.join(beyond)} CPUs are more than the {min(len(order), limit):g} of this machine: these rows are "
            "marked with *")
    kinds = {one["cpus"]: one for one in [*record["points"], *chosen]}
    record["points"] = [kinds[cpus] for cpus in sorted(kinds)]
    session = Session(bundle, record, out, chosen, place, args.minutes)
    base = next(one for one in bundle["kernels"] if one["name"] == tables.BASE)
    try:
        boot(bundle, base, chosen[0], [], place)
    except Died as err:
        raise Stop(f"A guest does not run here: {err}.") from err
    say(f"{len(bundle['kernels'])} kernels, {args.minutes:g} minutes; Ctrl-C keeps what was measured, in {out}")
    ended = 0
    try:
        session.run()
    except KeyboardInterrupt:
        status("")
        say("interrupted: the same command goes on")
        ended = 130
    if not record["laps"]:
        raise Stop("Nothing was measured yet: a lap of each number of CPUs, to warm up, comes first.")
    session.tell()
    problem = write(out, record)
    if problem:
        say(f"{out} cannot be written ({problem}), and lacks {session.unwritten} laps")
        out = place / out.name
        problem = write(out, record)
    if problem:
        raise Stop(f"{out} cannot be written either ({problem}): make room, and run the same command again, which goes "
                   "on with what is there.")
    say(f"written: {out}: send this file, or take it in with 'make report ADD={out}'")
    return ended


def stop(_number: int, _frame: object) -> None:
    """What ends the program otherwise does what Ctrl-C does."""
    raise KeyboardInterrupt


def main() -> None:
    """Run as a program: a Stop is one sentence."""
    for number in ENDS[1:]:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, stop)
    try:
        sys.exit(start(sys.argv[1:]))
    except (Stop, OSError) as err:
        sys.exit(f"\nerror: {err}" if sys.stdout.isatty() else f"error: {err}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
