"""Make compatcheck one file that Python runs, for machines where nothing can be installed.

    python .github/build_zipapp.py dist/compatcheck-0.1.0-py3-none-any.whl --platform linux-x86_64 --out dist
    python .github/build_zipapp.py dist/compatcheck-0.1.0-py3-none-any.whl --sbom --out dist
    python .github/build_zipapp.py --lock

What goes in is pinned by hash in zipapp-requirements.txt, which ``--lock`` makes anew from pyproject.toml; a file with
another hash is refused. ``--sbom`` lists the same in CycloneDX's form.

One file serves one platform and every Python of `--python`: what is compiled for each of them lies side by side under
its own name. Extras are left out, so that `pin` takes the uv on PATH. Needs uv, shiv and, for ``--sbom``,
cyclonedx-bom beside the interpreter that runs this.

The first start unpacks the file into ~/.shiv, or below SHIV_ROOT; name a local disk there where the home is on a
network or cannot be written. Two starts at once do not disturb one another.
"""

from __future__ import annotations

import argparse
import filecmp
import os
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
PINNED = Path(__file__).with_name("zipapp-requirements.txt")
HEADER = "# Made by: python .github/build_zipapp.py --lock\n"
ROOT = """[project]
name = "compatcheck"
version = "{version}"
description = "Find the combinations of versions, GPUs, settings and model files that break language-model training"
license = "Apache-2.0"
"""
"""What the bill of materials is of."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the file and print its path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--lock", action="store_true", help="pin the newest dependencies by hash")
    parser.add_argument("--sbom", action="store_true", help="write the bill of materials")
    parser.add_argument("--pinned", type=Path, default=PINNED, help=argparse.SUPPRESS)
    parser.add_argument("--platform", choices=PLATFORMS, default="linux-x86_64")
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="VERSION", help="oldest first")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    given = parser.parse_args(arguments)
    if given.lock:
        lock(given.pinned)
        return
    if given.wheel is None:
        parser.error("give the wheel, or --lock")
    version = given.wheel.name.split("-")[1]
    given.out.mkdir(parents=True, exist_ok=True)
    name = f"{version}.cdx.json" if given.sbom else f"{version}-{given.platform}.pyz"
    target = given.out.resolve() / f"compatcheck-{name}"
    with tempfile.TemporaryDirectory(prefix="compatcheck-zipapp-") as folder:
        if given.sbom:
            write_sbom(given.pinned, version, Path(folder), target)
        else:
            build(given.wheel.resolve(), given.pinned, PLATFORMS[given.platform], given.python, Path(folder), target)
    print(target)


def lock(pinned: Path) -> None:
    """Resolve the dependencies of pyproject.toml for every platform and Python, with the hashes of all their files."""
    compiled = _run(
        *("uv", "pip", "compile", "--universal", "--fork-strategy", "fewest", "--python-version", PYTHONS[0]),
        *("--generate-hashes", "--no-annotate", "--no-header"),
        str(Path(__file__).parents[1] / "pyproject.toml"),
    )
    pinned.write_text(HEADER + compiled, encoding="utf-8")


def write_sbom(pinned: Path, version: str, folder: Path, target: Path) -> None:
    """Write what the file holds, the same bytes for the same pins."""
    root = folder / "pyproject.toml"
    root.write_text(ROOT.format(version=version), encoding="utf-8")
    _run(
        *("cyclonedx-py", "requirements", "--pyproject", str(root), "--output-reproducible", "--spec-version", "1.6"),
        *("--index-url", "https://pypi.org/simple", "--output-file", str(target), str(pinned)),
    )


def build(wheel: Path, pinned: Path, platform: str, pythons: Sequence[str], folder: Path, target: Path) -> None:
    """Install the wheel and its pinned dependencies for each Python, lay them over one another, and pack them."""
    merged = folder / "merged"
    for python in reversed(pythons):
        installed = folder / python
        for what in (("--require-hashes", "--requirements", str(pinned)), (str(wheel),)):
            _run(
                *("uv", "pip", "install", "--no-deps", "--only-binary", ":all:", "--link-mode", "copy"),
                *("--python-version", python, "--python-platform", platform, "--target", str(installed), *what),
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
