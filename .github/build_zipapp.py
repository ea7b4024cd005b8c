"""Make compatcheck one file that Python runs, for machines where nothing can be installed.

    python .github/build_zipapp.py dist/compatcheck-0.1.0-py3-none-any.whl --platform linux-x86_64 --out dist

One file serves one platform and every Python of `--python`: what is compiled for each of them lies side by side under
its own name. Left out are uv, which is larger than all the rest and needed by `pin` alone (it
takes the one on PATH), and hf-xet, which fetches large model files. Needs uv and shiv beside the interpreter that runs
this.

The first start unpacks the file into ~/.shiv, or below SHIV_ROOT; name a local disk there where the home is on a
network or cannot be written. Two starts at once do not disturb one another.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PLATFORMS = {
    "linux-x86_64": "x86_64-manylinux_2_17",
    "linux-aarch64": "aarch64-manylinux_2_17",
    "macos-arm64": "aarch64-apple-darwin",
    "windows-x86_64": "x86_64-pc-windows-msvc",
}
"""The names of the files, and what uv calls the same platform."""

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LEFT_OUT = re.compile(r"(uv|hf-xet)==")


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the file and print its path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--platform", choices=PLATFORMS, default="linux-x86_64")
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="VERSION", help="oldest first")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    given = parser.parse_args(arguments)
    version = given.wheel.name.split("-")[1]
    given.out.mkdir(parents=True, exist_ok=True)
    target = given.out.resolve() / f"compatcheck-{version}-{given.platform}.pyz"
    with tempfile.TemporaryDirectory(prefix="compatcheck-zipapp-") as folder:
        build(given.wheel.resolve(), PLATFORMS[given.platform], given.python, Path(folder), target)
    print(target)


def build(wheel: Path, platform: str, pythons: Sequence[str], folder: Path, target: Path) -> None:
    """Install the wheel and one set of its dependencies for each Python, lay them over one another, and pack them."""
    asked, pinned, merged = folder / "asked.txt", folder / "pinned.txt", folder / "merged"
    asked.write_text(f"compatcheck @ {wheel.as_uri()}\n", encoding="utf-8")
    compiled = _run(
        *("uv", "pip", "compile", "--universal", "--fork-strategy", "fewest", "--python-version", pythons[0]),
        *("--no-annotate", "--no-header", str(asked)),
    )
    kept = [line for line in compiled.splitlines() if not LEFT_OUT.match(line)]
    pinned.write_text("\n".join(kept) + "\n", encoding="utf-8")
    for python in reversed(pythons):
        installed = folder / python
        _run(
            *("uv", "pip", "install", "--no-deps", "--only-binary", ":all:", "--link-mode", "copy"),
            *("--python-version", python, "--python-platform", platform),
            *("--target", str(installed), "--requirements", str(pinned)),
        )
        lay_over(installed, merged)
    shutil.rmtree(merged / "bin", ignore_errors=True)
    _run(
        *("shiv", "--site-packages", str(merged), "--console-script", "compatcheck", "--compressed"),
        *("--reproducible", "--python", "/usr/bin/env python3", "--output-file", str(target)),
    )


def lay_over(source: Path, target: Path) -> None:
    """Add what is not there yet; what two Pythons both bring must be the same, but for a wheel's own records."""
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        if path.is_dir() or inside.parts[0] == "bin":
            continue
        there = target / inside
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, there)
        elif not inside.parts[0].endswith(".dist-info") and not filecmp.cmp(path, there, shallow=False):
            sys.exit(f"build_zipapp: {inside} is not the same for every Python")


def _run(*command: str) -> str:
    beside = str(Path(sys.executable).parent)
    environ = {**os.environ, "PATH": os.pathsep.join([beside, os.environ.get("PATH", "")])}
    program = shutil.which(command[0], path=environ["PATH"]) or sys.exit(f"build_zipapp: no {command[0]} is installed")
    done = subprocess.run([program, *command[1:]], env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"build_zipapp: {command[0]} failed\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
