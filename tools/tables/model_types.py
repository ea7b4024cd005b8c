"""Which model types each release of transformers knows: writes ``matrix/tables/transformers-model-types.toml``.

    python tools/tables/model_types.py [FOLDER]     some 150 wheels, one after the other; 10 minutes

The names are read from the syntax trees of the published wheels, which are never imported. FOLDER keeps what was read:
a later run reads the new releases alone; the wheels themselves are deleted. It needs an interpreter with pip.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

OLDEST = Version("4.20.0")
TABLE = Path(__file__).parents[2] / "matrix" / "tables" / "transformers-model-types.toml"
_SOURCES = ("auto_mappings.py", "configuration_auto.py")
_NAMES = "CONFIG_MAPPING_NAMES"
_DEFINING = re.compile(r"transformers/models/.+/configuration_\w+\.py")
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_HEADER = """\
# The model types that releases of transformers know: the first release that has one in CONFIG_MAPPING_NAMES, and for
# those that are gone again the last. Written by tools/tables/model_types.py from the published wheels. A type of the
# oldest release may be older still; one whose class is older than its place in the mapping has no row under first.
"""


def releases() -> list[Version]:
    """The final releases from the oldest one that counts, in order.

    The index does not list those that were withdrawn; the first of a minor version is read all the same, since it
    brought the new types and is still installed.
    """
    told = subprocess.run(
        [sys.executable, "-m", "pip", "index", "versions", "transformers"], check=True, capture_output=True, text=True
    ).stdout
    listed = next(line for line in told.splitlines() if line.startswith("Available versions:"))
    found = sorted(Version(each.strip()) for each in listed.partition(":")[2].split(","))
    kept = [each for each in found if each >= OLDEST and not each.is_prerelease]
    return sorted({*kept, *(Version(f"{each.major}.{each.minor}.0") for each in kept)})


class Release(NamedTuple):
    """What one release knows: the class by model type, and the names of all configuration classes it defines."""

    types: dict[str, str]
    classes: frozenset[str]


def downloaded(version: Version, cache: Path) -> Release | None:
    """What a release knows, from the folder where it was kept or from its wheel; None where there is no wheel."""
    kept = cache / f"{version}.json"
    if not kept.is_file():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*command, "--dest", folder, f"transformers=={version}"], check=version.micro != 0)
            for wheel in Path(folder).glob("transformers-*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    found = known_in(archive)
                    kept.write_text(json.dumps([found.types, sorted(found.classes)]), encoding="utf-8")
    if not kept.is_file():
        return None
    types, classes = json.loads(kept.read_text(encoding="utf-8"))
    return Release(types, frozenset(classes))


def known_in(archive: zipfile.ZipFile) -> Release:
    """What one wheel knows. Raises ValueError where the names are not where they are looked for."""
    present = set(archive.namelist())
    files = [name for each in _SOURCES if (name := f"transformers/models/auto/{each}") in present]
    types = dict(itertools.chain.from_iterable(named(archive.read(name).decode()) for name in files))
    if len(types) < 50:
        raise ValueError(f"{archive.filename}: {len(types)} model types in {files}; read how they are written now")
    definitions = (archive.read(name).decode() for name in sorted(present) if _DEFINING.fullmatch(name))
    return Release(types, frozenset(itertools.chain.from_iterable(map(_CLASS.findall, definitions))))


def named(source: str, mapping: str = _NAMES) -> Iterator[tuple[str, str]]:
    """The model types that the module maps, each with its class, in whichever form the mapping is written."""
    for statement in ast.parse(source).body:
        if not _is_about(statement, mapping):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Dict):
                yield from filter(None, map(_pair, node.keys, node.values))
            elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
                yield from filter(None, (_pair(*node.elts),))


def _pair(key: ast.expr | None, value: ast.expr) -> tuple[str, str] | None:
    if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, str):
        return str(key.value), value.value
    return None


def _is_about(statement: ast.stmt, mapping: str) -> bool:
    if isinstance(statement, ast.Assign):
        return any(isinstance(each, ast.Name) and each.id == mapping for each in statement.targets)
    call = statement.value if isinstance(statement, ast.Expr) else None
    changed = call.func if isinstance(call, ast.Call) else None
    return isinstance(changed, ast.Attribute) and isinstance(changed.value, ast.Name) and changed.value.id == mapping


def first_and_last(known: dict[Version, Release]) -> tuple[dict[str, str], dict[str, str]]:
    """By type the first release that has it, and for those the newest lacks the last one that has it.

    A type whose class is older than its place in the mapping is left out: the class itself could be loaded before, as
    the text and vision halves of larger models are.
    """
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    late: set[str] = set()
    defined: frozenset[str] = frozenset()
    for version, release in known.items():
        for each, name in release.types.items():
            if each not in first and name in defined:
                late.add(each)
            first.setdefault(each, str(version))
            last[each] = str(version)
        defined |= release.classes
    newest = known[max(known)].types
    gone = {each: version for each, version in last.items() if each not in newest}
    return {each: version for each, version in first.items() if each not in late}, gone


def write(known: dict[Version, Release]) -> str:
    """The table as text."""
    first, last = first_and_last(known)
    lines = [
        _HEADER + f"reviewed = {datetime.now(timezone.utc).date()}",
        'sources = ["https://pypi.org/project/transformers/#files"]',
        f'oldest = "{min(known)}"',
        f'newest = "{max(known)}"',
        "",
        "[first]",
        *_rows(first),
        "",
        "[last]",
        *_rows(last),
    ]
    return "\n".join(lines) + "\n"


def _rows(values: dict[str, str]) -> Iterator[str]:
    for name, version in sorted(values.items(), key=lambda item: (Version(item[1]), item[0])):
        yield f'"{name}" = "{version}"'


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", metavar="FOLDER", type=Path)
    cache = parser.parse_args().folder or Path(tempfile.mkdtemp())
    cache.mkdir(parents=True, exist_ok=True)
    known = {each: release for each in releases() if (release := downloaded(each, cache))}
    TABLE.write_text(write(known), encoding="utf-8")


if __name__ == "__main__":
    main()
