"""The Python sources of a package's releases, from the published wheels; nothing of them is imported or run."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from packaging.version import Version

_PIP = [sys.executable, "-m", "pip"]


def write_table(table: Path, about: str | None, write: Callable[[Path], str]) -> None:
    """Run a script that is called with the FOLDER that keeps the wheels' files, and write its table."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    table.write_text(write(folder), encoding="utf-8")


def final_releases(package: str, oldest: str) -> list[Version]:
    """The final releases from the oldest that counts, in order; the first of a minor version even if it is yanked."""
    told = subprocess.run([*_PIP, "index", "versions", package], check=True, capture_output=True, text=True).stdout
    listed = next(line for line in told.splitlines() if line.startswith("Available versions:"))
    found = sorted(Version(each.strip()) for each in listed.partition(":")[2].split(","))
    kept = [each for each in found if each >= Version(oldest) and not each.is_prerelease]
    return sorted({*kept, *(Version(f"{each.major}.{each.minor}.0") for each in kept)})


def sources(package: str, version: Version, folder: Path, wanted: re.Pattern[str]) -> dict[str, str] | None:
    """The files of a release whose name in the wheel matches, as text; None for a release that has no wheel.

    The folder keeps them, so that a later run downloads the new releases alone.
    """
    kept = folder / f"{package}-{version}.zip"
    if not kept.is_file():
        command = [*_PIP, "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary", ":all:"]
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([*command, "--dest", place, f"{package}=={version}"], check=version.micro != 0)
            for wheel in Path(place).glob("*.whl"):
                _keep(wheel, kept, wanted)
    if not kept.is_file():
        return None
    with zipfile.ZipFile(kept) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def _keep(wheel: Path, kept: Path, wanted: re.Pattern[str]) -> None:
    part = kept.with_suffix(".part")
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as some:
        for name in filter(wanted.fullmatch, whole.namelist()):
            some.writestr(name, whole.read(name))
    part.rename(kept)
