# SPDX-License-Identifier: GPL-2.0
"""What the survey makes of what bpftrace sees, with a bpftrace that is a shell
script."""

import json
import sys
from unittest import mock

from support import Case, put

# isort: split
from measure import survey

SYMBOLS = ("anon_pipe_write", "mutex_lock", "filemap_read")


def buckets(*pairs: tuple[int, int]) -> list[dict]:
    """A histogram of (least value, how many) as bpftrace prints it."""
    return [{"min": least, "max": 2 * least - 1, "count": count} for least, count in pairs]


class Verdicts(Case):
    """The verdicts, pure functions of maps and seconds."""

    def begins(self, verdict: str, *words: str) -> None:
        """Expect @verdict to begin with the first of @words and have the others."""
        self.assertTrue(verdict.startswith(words[0] + ":"), verdict)
        for word in words[1:]:
            self.assertIn(word, verdict)

    def test_pipe(self):
        """Large writes and a mutex that is waited for are what gains."""
        sizes = {"@bytes": buckets((64, 50), (4096, 30), (65536, 20))}
        seen = {"@wait_ns": {"anon_pipe_write": buckets((1024, 9))}, "@held_ns": {"anon_pipe_write": 4e6}}
        waited = {"@waited_ns": {"anon_pipe_write": 3e6, "anon_pipe_read": 1e6}}
        self.begins(survey.pipe_verdict({**sizes, **seen, **waited}, 2),
                    "yes", "50 % of 50 writes a second", "waited for 2 ms in each second, and held 2 ms")
        self.begins(survey.pipe_verdict({**sizes, **seen, "@waited_ns": {"anon_pipe_write": 1e6}}, 2), "hardly", "50 %")
        self.begins(survey.pipe_verdict({**sizes, "@write_ns": buckets((1024, 9)), "@in_write_ns": 5e6}, 1), "perhaps",
                    "5 ms", "cannot be told apart")
        self.begins(survey.pipe_verdict(sizes, 1), "perhaps", "not seen")
        self.begins(survey.pipe_verdict({"@bytes": buckets((2048, 10))}, 1), "hardly", "0 % of 10 writes",
                    "patches 2 and 3")
        self.begins(survey.pipe_verdict({}, 1), "no", "nobody wrote")
        self.begins(survey.pipe_verdict({"@write_ns": buckets((1024, 9)), "@in_write_ns": 5}, 1), "cannot tell")

    def test_pid(self):
        """Waiting for the lock gains most, many tasks a little."""
        self.begins(survey.pid_verdict({"@tasks": 4000, "@waits": 100, "@waited_ns": 8e6}, 4), "yes",
                    "1,000 tasks a second", "waited for 25 times and 2 ms")
        self.begins(survey.pid_verdict({"@tasks": 40000}, 4), "a little", "10,000 tasks a second", "0 times")
        self.begins(survey.pid_verdict({"@tasks": 40}, 4), "hardly")
        self.begins(survey.pid_verdict({}, 4), "hardly", "0 tasks a second")
        self.begins(survey.pid_verdict({"@made": 40000}, 4), "perhaps", "10,000 tasks a second", "not seen here")
        self.begins(survey.pid_verdict({"@made": 39999}, 4), "hardly")

    def test_filemap(self):
        """Small reads gain, if there are many, and most where CPUs share files."""
        def verdict(hits: int, small: dict) -> str:
            """Of that many hits, and small ones by file and CPU, in a second."""
            return survey.filemap_verdict({"@hits": hits, "@small": small}, 1)

        self.begins(verdict(40000, {"18446,0": 10000, "18446,1": 10000, "77,0": 10000}), "yes", "75 % of 40,000 reads",
                    "67 % of these of files that several CPUs read")
        self.begins(verdict(40000, {"1,0": 19900, "2,1": 50, "2,0": 50}), "a little", "less than 1 % of these")
        self.begins(verdict(40000, {"1,0": 900, "1,1": 900}), "hardly", "few")
        self.begins(verdict(40000, {}), "no", "0 %")
        maps = {"@hits": 40000, "@small": {}, "@page": {"1,0": 20000, "1,1": 20000}}
        self.begins(survey.filemap_verdict(maps, 1), "no", "64 bytes")
        self.begins(survey.pageguard_verdict(maps, 1), "yes", "100 % of 40,000", "4,096 bytes")
        self.begins(survey.filemap_verdict({"@misses": 4}, 1), "no", "page cache")

    def test_fault(self):
        """Faults that wait for mmap_lock after I/O gain."""
        self.begins(survey.fault_verdict({"@faults": 1000, "@retries_after_io": 20, "@waited_ns": 3e6}, 2), "yes",
                    "10 of 500 faults", "1.5 ms in each second")
        self.begins(survey.fault_verdict({"@faults": 1000, "@retries_after_io": 20, "@waited_ns": 3e3}, 2), "hardly")
        self.begins(survey.fault_verdict({"@faults": 9000, "@retries_after_io": 8000}, 2), "hardly", "4,000 of 4,500")
        self.begins(survey.fault_verdict({"@faults": 1000}, 2), "no", "0 of 500")
        self.begins(survey.fault_verdict({}, 2), "no", "no page fault")

    def test_merged(self):
        """What two probes count under the same name is added up."""
        self.assertEqual(survey.merged({"@hits": 2, "@small": {"1,0": 3}, "@hit_bytes": buckets((1, 2))},
                                       {"@hits": 3, "@small": {"1,0": 1, "2,0": 4}, "@hit_bytes": buckets((1, 5))}),
                         {"@hits": 5, "@small": {"1,0": 4, "2,0": 4}, "@hit_bytes": buckets((1, 2), (1, 5))})


class Fitted(Case):
    """Scripts for other kernels."""

    def test_names(self):
        """Functions that have other names there, and nothing else."""
        mutex = (survey.SCRIPTS / "pipe_mutex.bt").read_text()
        self.assertEqual(survey.fitted_script(mutex, set(SYMBOLS)), mutex)
        old = survey.fitted_script(mutex, {"pipe_write", "mutex_lock_nested"})
        self.assertIn("\nkprobe:pipe_write,\nkprobe:pipe_read\n", old)
        self.assertEqual(old.count("mutex_lock_nested\n"), 2)
        self.assertIn("kfunc:mutex_unlock\n", old)

    def test_fault_series(self):
        """With the series, what handles all faults under a VMA lock is looked at."""
        fault = (survey.SCRIPTS / "fault_retry.bt").read_text()
        self.assertEqual(survey.fitted_script(fault, set(SYMBOLS)), fault)
        fitted = survey.fitted_script(fault, {*SYMBOLS, "handle_vma_fault"})
        self.assertIn("\nkprobe:handle_vma_fault\n{\n", fitted)
        self.assertIn("\nkretprobe:handle_vma_fault\n", fitted)
        self.assertNotIn("handle_mm_fault", fitted)

    def test_every_script(self):
        """Each script is run by a survey."""
        named = {name for one in survey.SURVEYS.values() for probe in one.probes
                 for name in (probe.name, probe.instead) if name}
        self.assertEqual(named, {path.stem for path in survey.SCRIPTS.glob("*.bt")})


class Looked(Case):
    """survey.py as a whole."""

    def setUp(self):
        super().setUp()
        put(self.dir / "kallsyms", "".join(f"0000000000000000 t {name}\n" for name in SYMBOLS))
        self.enterContext(mock.patch.object(survey, "KALLSYMS", self.dir / "kallsyms"))
        self.enterContext(mock.patch.object(survey.os, "geteuid", lambda: 0))

    def bpftrace(self, **outputs: dict | str) -> None:
        """A bpftrace that prints these maps for the scripts of these names; one
        that has an error message instead, or no output, fails."""
        for name, what in outputs.items():
            lines = what if isinstance(what, str) else "".join(
                json.dumps({"type": "hist" if isinstance(value, list) else "map", "data": {key: value}}) + "\n"
                for key, value in what.items())
            put(self.dir / f"outputs/{name}.bt", lines)
        self.fake("bpftrace", f"""echo "$@" >> {self.dir}/ran
cp "$3" {self.dir}
answer={self.dir}/outputs/$(basename "$3")
echo '{{"type":"attached_probes","data":{{"probes":2}}}}'
grep -q ERROR "$answer" && {{ sed "s,^,$3:1: ," "$answer" >&2; exit 1; }}
cat "$answer"
""")

    def survey(self, *words: str) -> str:
        """What the command prints with these arguments."""
        before = len(self.said.getvalue())
        with mock.patch.object(sys, "argv", ["survey.py", *words]):
            survey.main()
        return self.said.getvalue()[before:]

    def test_verdict(self):
        """Both scripts of a topic run for the given time, and their maps make the
        verdict."""
        self.bpftrace(pipe_write_size={"@bytes": buckets((4096, 100))},
                      pipe_mutex={"@wait_ns": {"w": buckets((1, 1))}, "@waited_ns": {"w": 9e6}})
        text = self.survey("--topic", "pipe", "--duration", "3")
        self.assertIn("pipe: yes: 100 % of 33 writes a second are of a page or more", text)
        self.assertIn("interval:s:3\n", (self.dir / "pipe_mutex.bt").read_text())
        self.assertEqual(len((self.dir / "ran").read_text().splitlines()), 2)

    def test_command(self):
        """With a command, it is looked at while that runs."""
        self.bpftrace(pid_lock={"@tasks": 5})
        self.assertIn("pid: hardly", self.survey("--topic", "pid", "--exec", "sh all"))
        self.assertIn("-c sh all", (self.dir / "ran").read_text())
        self.assertNotIn("interval", (self.dir / "pid_lock.bt").read_text())

    def test_missing(self):
        """A probe that does not work is one sentence, and what else there is is
        used."""
        self.bpftrace(pipe_write_size={"@bytes": buckets((4096, 100))}, pipe_mutex="ERROR: no such kfunc",
                      pipe_write_time={"@write_ns": buckets((1, 1)), "@in_write_ns": 4e6},
                      pid_lock="ERROR: no such tracepoint", pid_tasks="ERROR: none")
        text = self.survey("--topic", "pipe pid", "--duration", "1")
        self.assertIn("pipe: waits for pipe->mutex cannot be seen here: pipe_mutex.bt does not work "
                      "(pipe_mutex.bt:1: ERROR: no such kfunc)\n", text)
        self.assertIn("pipe: perhaps:", text)
        self.assertIn("pid: cannot tell: this kernel does not let it be seen.", text)
        self.bpftrace(pipe_write_time="ERROR: no kprobe")
        self.assertIn("nor does pipe_write_time.bt (", self.survey("--topic", "pipe"))

    def test_shared_probe(self):
        """A script of two topics runs once, and both have what it saw."""
        self.bpftrace(filemap_read={"@hits": 40000, "@small": {}, "@page": {"1,0": 40000, "1,1": 1}}, shmem_read={})
        text = self.survey("--topic", "pageguard filemap", "--duration", "1")
        self.assertIn("pageguard: yes", text)
        self.assertIn("filemap: no", text)
        self.assertEqual(len((self.dir / "ran").read_text().splitlines()), 2)

    def test_refused(self):
        """Without root or bpftrace, or for an unknown topic, nothing is run."""
        self.bpftrace()
        with self.fails("no survey for 'x'", "pipe, pid"):
            self.survey("--topic", "x")
        for command, words in (("/none/here 'a b'", "no program '/none/here'"), (" ", "no program"),
                               ("sh 'open", "no command (No closing quotation)")):
            with self.subTest(command=command), self.fails(words):
                self.survey("--exec", command)
        with mock.patch.object(survey.os, "geteuid", lambda: 1), self.fails("sudo make survey"):
            self.survey()
        with mock.patch.object(survey.shutil, "which", lambda _name: None), self.fails("install"):
            self.survey()
        self.assertFalse((self.dir / "ran").exists())
