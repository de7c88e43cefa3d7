#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Build Debian packages of a base's kernel without and with some series, in the
configuration of the machine that runs this or in a given one, to be installed
beside the kernels that are there."""

import re
from pathlib import Path

from core import machine
from core.command import arguments, run
from core.install import need
from core.locks import cache, data_home, lock, room_for_builds
from core.model import Base, chosen_topics
from core.process import Failure, logged, say
from source.build import REPRODUCIBLE, checked_out, make_jobs, mark_built
from source.fetch import repository
from source.tree import apply, commit_of, tree_of

# What a distribution's configuration names and only its own source has: the
# keys that its modules are signed with.
FOREIGN = {"CONFIG_SYSTEM_TRUSTED_KEYS": '""', "CONFIG_SYSTEM_REVOCATION_KEYS": '""',
           "CONFIG_MODULE_SIG_KEY": '"certs/signing_key.pem"'}
# Not the packages of debugging symbols and of headers, which take long.
PROFILES = "pkg.linux-upstream.nokerneldbg pkg.linux-upstream.nokernelheaders"


def package_config(config: str, name: str) -> str:
    """@config for a kernel whose release ends in -@name, without what only a
    distribution's own source has.  An option that is not in it stays so."""
    wanted = {**{key: value for key, value in FOREIGN.items() if f"\n{key}=" in f"\n{config}"},
              "CONFIG_LOCALVERSION": f'"-{name}"'}
    kept = [line for line in config.splitlines()
            if line.split("=", 1)[0] not in wanted and "CONFIG_LOCALVERSION_AUTO" not in line]
    return "\n".join([*kept, "# CONFIG_LOCALVERSION_AUTO is not set",
                      *(f"{key}={value}" for key, value in wanted.items())]) + "\n"


def given(path: Path | None) -> str:
    """The configuration in the file @path, or of the kernel that is booted;
    Failure where there is none."""
    config = path.read_text() if path else machine.config()
    if not re.search(r"^CONFIG_\w+=", config, re.MULTILINE):
        raise Failure(f"{path} is no kernel configuration: give another one with CONFIG=" if path else
                      "the configuration of the kernel that is booted cannot be read: give a file with CONFIG=")
    return config


def build_package(repo: Path, base: Base, revision: str, config: str, label: str, out: Path) -> Path:
    """Build the kernel of @revision in @config as a package whose release names
    @label and the source; its path in @out."""
    # So that the packages of two states of a series differ in name.
    name = f"hotpaths-{label}-{tree_of(repo, revision)[:7]}"
    place = cache() / "build" / f"{repo.name}-deb"
    objects = place / "out"
    with lock(f"{repo.name}-build"):
        source = checked_out(repo, objects, commit_of(repo, revision))
        log = cache() / "log" / f"deb-{name}.log"
        # make leaves them beside its objects.
        for old in place.glob("*.deb"):
            old.unlink()
        (objects / ".config").write_text(package_config(config, name))
        words = ["make", "-C", source, f"O={objects}"]
        logged("olddefconfig", [*words, "olddefconfig"], log)
        say(f"deb: {base.tag} {name} (log: {log})")
        logged(f"package {name}", [*words, make_jobs(), "bindeb-pkg"], log, append=True,
               env={**REPRODUCIBLE, "KDEB_PKGVERSION": f"{base.version}-1", "DEB_BUILD_PROFILES": PROFILES})
        mark_built(objects, source)
        found = [path for path in place.glob("linux-image-*.deb") if f"-{name}_" in path.name]
        if len(found) != 1:
            raise Failure(f"make bindeb-pkg left no linux-image package of {name} in {place}: its log is {log}")
        out.mkdir(parents=True, exist_ok=True)
        partial = out / f"{found[0].name}.part"
        partial.write_bytes(found[0].read_bytes())
        return partial.rename(out / found[0].name)


def main() -> None:
    parser = arguments(__doc__, topics="some")
    parser.add_argument("--config", type=Path,
                        help="a kernel configuration (default: the configuration of the booted kernel)")
    parser.add_argument("--out", type=Path, help="where to write (default: ~/.local/share/hotpaths/packages/<base>)")
    args = parser.parse_args()
    base, topics = args.base, chosen_topics(args.topic, args.base)
    config = given(args.config)
    need("source", "build", "deb")
    room_for_builds("make deb")
    repo = repository(base, args.kdir)
    out = args.out or data_home() / "packages" / base.name
    series = "-".join(topic.name for topic in topics)
    made = [build_package(repo, base, base.tag, config, "base", out),
            build_package(repo, base, apply(repo, base, topics), config, series, out)]
    say(f"deb: 'sudo dpkg -i {' '.join(map(str, made))}' installs both, beside the kernels that are there")


if __name__ == "__main__":
    run(main)
