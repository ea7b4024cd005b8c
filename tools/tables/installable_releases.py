"""Write ``matrix/tables/installable-releases.toml``: withdrawn releases, and those that a Python or a platform gets.

    python tools/tables/installable_releases.py [NAME...]

uv is asked offline, so all of it comes from the pages of the index that uv has in its cache: a package that is to be
in the table is resolved once before, ``uv pip compile --no-deps``. Without names: the packages of release-history
whose page is there. A release that a page lists and release-history does not was withdrawn, or is
older than that table.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from packaging.utils import InvalidSdistFilename, parse_sdist_filename
from packaging.version import Version
from uv import find_uv_bin

sys.path.insert(0, str(Path(__file__).parents[2]))

from compatcheck.matrix.compile import read_toml
from tools.tables import _toml
from tools.tables.release_history import TABLE as HISTORY
from tools.tables.release_history import version_of

TABLE = HISTORY.with_name("installable-releases.toml")
PYTHONS = [f"3.{minor}" for minor in range(7, 16)]
_PATCH = "99"
"""Of each the last patch release, which the lower bound of no release excludes."""
PLATFORMS = {
    "linux-x86_64": "x86_64-manylinux_2_40",
    "linux-aarch64": "aarch64-manylinux_2_40",
    "darwin-arm64": "aarch64-apple-darwin",
    "darwin-x86_64": "x86_64-apple-darwin",
    "windows-amd64": "x86_64-pc-windows-msvc",
}
_WHAT = """Which releases can be installed. `withdrawn`: those of which every file was withdrawn (yanked), with the
reason that is given; a package that has a section here had its whole page read. `older`: those between that
release-history lacks, most of which came out before it begins. `newest` and `oldest`: the last and the
first release that has a file for a Python, and `newest_on` and `oldest_on` for a platform, where these are not those of
release-history. Only what has no source archive has an oldest and platforms. An upper bound that a release sets on
Python is not read."""
_URL = re.compile(rb"https?://[\x21-\x7e]*?/([A-Za-z0-9._%+!-]+?\.(?:whl|tar\.gz|zip))")
_REASON = re.compile(r'is yanked \(reason: "(.*?)\s*"\)')
_LONGEST = 120
_CHOSEN = re.compile(r"^[\w.-]+==(\S+)", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    history = read_toml(HISTORY)
    cache = next(Path(_uv("cache", "dir").strip()).glob("simple-v*")) / "pypi"
    pages = {path.stem: path.read_bytes() for path in sorted(cache.glob("*.rkyv"))}
    names = sorted(set(parser.parse_args().names or history["releases"]) & pages.keys() & history["releases"].keys())
    TABLE.write_text(render(names, pages, history["releases"], history["reviewed"]), encoding="utf-8")


def render(
    names: Iterable[str], pages: Mapping[str, bytes], releases: Mapping[str, Mapping[str, object]], day: object
) -> str:
    """The table as TOML; ``day`` is that of release-history, with which it belongs together."""
    sections: dict[str, dict[str, dict[str, str]]] = {"withdrawn": {}, "newest": {}, "oldest": {}}
    sections |= {"newest_on": {}, "oldest_on": {}}
    older: dict[str, list[str]] = {}
    for name in names:
        known = [Version(each) for each in releases[name]]
        files = files_in(pages[name])
        reasons = {str(each): _reason(name, each) for each in beyond(filter(None, map(version_of, files)), known)}
        sections["withdrawn"][name] = {each: why for each, why in reasons.items() if why is not None}
        older[name] = [each for each, why in reasons.items() if why is None]
        sections["newest"][name] = _notable(_ends(name, "newest"), known, "newest")
        if not any(map(_is_source, files)):
            sections["oldest"][name] = _notable(_ends(name, "oldest"), known, "oldest")
            for end, best in (("newest", max), ("oldest", min)):
                by_platform = {each: _ends(name, end, triple) for each, triple in PLATFORMS.items()}
                whole = {each: best(found.values()) for each, found in by_platform.items() if found}
                sections[f"{end}_on"][name] = _notable(whole, known, end)
        print(name, flush=True)
    header = _toml.header(_WHAT, "python tools/tables/installable_releases.py", ["https://pypi.org/simple/"])
    header = re.sub(r"(?m)^reviewed = .*", f"reviewed = {day}", header)
    parts = [
        _toml.section(f"{section}.{name}", row)
        for section, by_name in sections.items()
        for name, row in by_name.items()
        if row or section == "withdrawn"
    ]
    return header + "".join([_toml.section("older", {name: [row] for name, row in older.items() if row}), *parts])


def files_in(page: bytes) -> list[str]:
    """The names of the files that a page of uv's cache links to, whatever the form it is kept in."""
    return list(dict.fromkeys(unquote(found.decode()) for found in _URL.findall(page)))


def beyond(listed: Iterable[Version], known: Collection[Version]) -> list[Version]:
    """The final releases of a page that release-history lacks, between its first and its last.

    They were withdrawn, or came out before it begins, in front of one with a lower number.
    """
    between = {each for each in listed if min(known) < each < max(known) and not each.is_prerelease}
    return sorted(between - set(known))


def _is_source(file: str) -> bool:
    try:
        return parse_sdist_filename(file) is not None
    except InvalidSdistFilename:
        return False


def _reason(name: str, release: Version) -> str | None:
    """Why a release was withdrawn, empty where its project gave no reason; None where it was not."""
    asked = f"{name}=={release}"
    said = _uv("pip", "compile", "--offline", "--no-deps", "--no-header", "-", stdin=asked, stream="stderr")
    words = " ".join(said.split())
    found = _REASON.search(words)
    if found:
        return found[1].split(". ")[0][:_LONGEST]
    return "" if "yanked" in words else None


def _ends(name: str, end: str, triple: str = "") -> dict[str, Version]:
    """By Python the newest or the oldest release with a file for it, as far as there is one."""
    found = {}
    for python in PYTHONS:
        arguments = ["--python-version", f"{python}.{_PATCH}", *(["--python-platform", triple] if triple else [])]
        arguments += ["--resolution", "lowest"] if end == "oldest" else []
        said = _uv("pip", "compile", "--offline", "--no-deps", "--no-header", *arguments, "-", stdin=name)
        if chosen := _CHOSEN.search(said):
            found[python] = Version(chosen[1])
    return found


def _notable(ends: Mapping[str, Version], known: Collection[Version], end: str) -> dict[str, str]:
    """Those that are not the newest or the oldest of all."""
    whole = max(known) if end == "newest" else min(known)
    return {
        key: str(version) for key, version in ends.items() if (version < whole if end == "newest" else version > whole)
    }


def _uv(*arguments: str, stdin: str = "", stream: str = "stdout") -> str:
    environ = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "26.0"}
    command = [find_uv_bin(), *arguments]
    done = subprocess.run(command, input=stdin, env=environ, capture_output=True, text=True, check=False)
    return done.stderr if stream == "stderr" else done.stdout


if __name__ == "__main__":
    main()
