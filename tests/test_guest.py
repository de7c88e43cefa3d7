# SPDX-License-Identifier: GPL-2.0
"""What a guest is given, and what becomes of its log."""

from unittest import mock

from support import Case, put

# isort: split
from core.model import Topic
from guests import guest
from guests import watch


class Boot(Case):
    """guest.boot() with guests that only leave their logs."""

    def boot(self, config: str, log: str, **more) -> tuple[watch.Ran, dict]:
        """What came out of a guest of the configuration @config whose kernel
        says @log, and what it was given."""
        given = {}

        def ended(_image, run_dir, _script, **options):
            given.update(options)
            put(run_dir / "console.log", log)
            return watch.Ran(0, run_dir)

        put(self.dir / "tests/run_kselftest.sh", "")
        put(self.dir / "kernel/decode_stacktrace.sh", "#!/bin/sh\necho \"$CROSS_COMPILE $1\"; sed 's/0x1/file.c:7/'\n",
            0o755)
        image = mock.Mock(config=config, path=self.dir / "kernel")
        with mock.patch.object(guest.arm64, "boot", ended), mock.patch.object(guest.um, "boot", ended), \
                mock.patch.object(guest.qemu, "boot", ended):
            return guest.boot(image, self.dir / "tests", "x", "true", "label", **more), given

    def test_beside(self):
        """The tests, the checks of tracing tools and the tooling are in the run's
        directory, and each kind of guest is given what it knows."""
        for config, words in (("trace", {"accel", "icount", "round_robin", "plugin"}), ("um", set()), ("arm64", set())):
            ran, given = self.boot(config, "nothing\n")
            self.assertEqual(set(given), {"cpus", "timeout", "label"} | words)
            self.assertTrue((ran.path / "kselftest/run_kselftest.sh").exists())
            self.assertTrue((ran.path / "trace/check.sh").exists())
            self.assertTrue((ran.path / "scripts/measure/survey.py").exists())
            self.assertFalse((ran.path / "console-decoded.log").exists())
        self.assertEqual(self.boot("um", "", memory="3G")[1]["memory"], "3G")

    def test_decoded(self):
        """A log with a report in it is there with source lines, too."""
        ran, _ = self.boot("arm64", "BUG: KASAN: here\n f+0x1\n")
        self.assertEqual((ran.path / "console-decoded.log").read_text(),
                         f"aarch64-linux-gnu- {self.dir}/kernel/vmlinux\nBUG: KASAN: here\n f+file.c:7\n")

    def test_prepare(self):
        """A directory of tests that topics share is built once, and for the
        architecture whose programs run there."""
        asked = []
        topics = [Topic(name, "", kselftest, "", neighbours=(f"of {name}",))
                  for name, kselftest in (("a", "a"), ("b", "b"), ("c", "a"))]
        with mock.patch.object(guest, "kernel", lambda *_: "image"), \
                mock.patch.object(guest, "kselftests", lambda *args: asked.append(args[2:])):
            for config in ("um", "check", "arm64"):
                guest.build_guest(self.dir, None, "HEAD", config, topics, "label")
            guest.build_guest(self.dir, None, "HEAD", "um", topics[:1], "label", neighbours=True)
        self.assertEqual(asked, [*((["a", "b"], guest.arch(name), ("a", "b", "c"))
                                   for name in ("check", "check", "arm64")),
                                 (["a", "of a"], guest.arch("check"), ("a",))])
