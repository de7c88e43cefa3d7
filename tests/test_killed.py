# SPDX-License-Identifier: GPL-2.0
"""Steps that are killed at any moment, and the same command again."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from support import SCRIPTS, KernelCase, contents, git, put

# isort: split
from core import locks
from source import tree

# A step on the checkout and the base of the test, as a program of its own.
PROGRAM = """import sys
sys.path.insert(0, {scripts!r})
from pathlib import Path
from core import memo
from core import model
from core.ktap import PASSED, Result
from prove import check
from send import export, mirrors
from source import build
from source import fetch
from source import tree
model.ROOT = export.ROOT = mirrors.ROOT = Path({root!r})
build.KCONFIG = Path({kconfig!r})
base = model.find_base("v0")
topic = model.find_topic("alpha")
repo = fetch.repository(base, {kdir!r})
def boots():
    open({log!r}, "a").write("booted\\n")
    yield Result("a", PASSED)
{step}
"""
KILLS = 8


class Killed(KernelCase):
    """Each step is killed with SIGKILL at random moments of its run, and then
    run to its end."""

    def setUp(self):
        super().setUp()
        self.random = random.Random(4)
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"),
                               ("tools/testing/selftests/alpha/test.c", "", "a test\n"))
        put(self.dir / "kconfig/common.config", "CONFIG_A=y\n")
        put(self.dir / "kconfig/bench.config", "CONFIG_B=y\n")

    def killed(self, step: str) -> None:
        """Run @step to its end, and before that, KILLS times for a part of the
        time that it takes."""
        program = put(self.dir / "program.py", PROGRAM.format(
            scripts=str(SCRIPTS), root=str(self.root), kdir=str(self.kdir), kconfig=str(self.dir / "kconfig"),
            log=str(self.dir / "boots"), step=step))
        for attempt in range(KILLS + 1):
            begin = time.monotonic()
            with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  start_new_session=True, text=True) as child:
                if attempt == KILLS:
                    said = child.communicate()[0]
                    self.assertEqual(child.returncode, 0, said)
                    return
                # Nothing is done in the time that the program takes to start.
                time.sleep(self.random.uniform(0.05, 0.5))
                # git that the step has started may go on, as it does in life.
                child.send_signal(signal.SIGKILL)
            self.assertLess(time.monotonic() - begin, 60)

    def test_fetch(self):
        """The repository is there as a whole, or not at all."""
        self.killed("print(repo)")
        (repo,) = (locks.cache() / "git").iterdir()
        self.assertEqual(git("rev-parse", "v9.1.2^{tree}", cwd=repo), git("rev-parse", "main^{tree}", cwd=self.kdir))

    def test_tree_and_export(self):
        """The edited tree has the series, and exporting it gives the same
        patches and mirrors as without a kill."""
        self.killed("path = tree.edit_tree(repo, base, topic)")
        self.killed("path = tree.edit_tree(repo, base, topic)\n"
                    "export.write_patches(path, topic, base, base.tag, 'HEAD')\nmirrors.write(repo, base)")
        first = contents(self.root)
        self.assertEqual(len(self.one.patches(self.base)), 2)
        self.assertEqual((self.root / "tools/testing/selftests/alpha/test.c").read_text(), "a test\n")
        self.assertEqual([path for path in first if ".new" in path or ".old" in path], [])
        (repo,) = (locks.cache() / "git").iterdir()
        tree.apply(repo, self.base, [self.one])

    def test_build(self):
        """A kernel is kept as a whole, or not at all, and is that of its
        source."""
        self.fake("gcc", "echo gcc 12\n")
        self.fake("make", """for word; do
	case "$word" in O=*) out=${word#O=} ;; */tree/*) source=$word ;; esac
done
sleep 0.05
case "$*" in
*tinyconfig*) echo CONFIG_A=y > "$out/.config"; echo CONFIG_B=y >> "$out/.config" ;;
*bzImage*) mkdir -p "$out/arch/x86/boot"; cat "$source/fs/pipe.c" > "$out/arch/x86/boot/bzImage"
	echo > "$out/vmlinux" ;;
esac
""")
        self.fake("objcopy", 'cp "$2" "$3"\n')
        for name in ("kconfig/merge_config.sh", "decode_stacktrace.sh"):
            put(self.kdir / "scripts" / name, "#!/bin/sh\n", 0o755)
        self.commit_kdir("Have scripts")
        self.killed("build.kernel(repo, base, tree.apply(repo, base, [topic]), 'bench', 'patched')")
        (image,) = (locks.cache() / "kernel").glob("*/bzImage")
        self.assertIn("line seven\n", image.read_text())

    def test_check(self):
        """What passed is remembered once it was all seen, and only then."""
        self.killed("list(memo.results('a guest', ['inputs'], boots, False))")
        boots = Path(self.dir / "boots").read_text().count("booted")
        self.killed("list(memo.results('a guest', ['inputs'], boots, False))")
        self.assertEqual(Path(self.dir / "boots").read_text().count("booted"), boots)

    def row(self, topic: str, number: int) -> dict:
        """A row of summary.json."""
        return {"topic": topic, "metric": "count", "unit": "", "condition": f"{number}", "evidence": "counter",
                "values": {"patched": number}}

    def test_bench(self):
        """A run is written as a whole, and nothing is left of those that were killed."""
        rows = [self.row("alpha", number) for number in range(8000)]
        out = self.root / "results/v9/2026-02-03"
        step = f"""import json
from reports import runs
rows = json.loads(Path({str(put(self.dir / "rows.json", json.dumps(rows)))!r}).read_text())
out = Path({str(out)!r})
if not out.exists():
    runs.write_run(out, {{"environment.json": {{}}, "summary.json": rows, "suites.json": rows}})
"""
        self.killed(step)
        self.assertEqual(json.loads((out / "summary.json").read_text()), rows)
        self.assertEqual(sorted(path.name for path in out.parent.iterdir()), [out.name])
