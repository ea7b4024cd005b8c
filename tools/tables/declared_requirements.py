"""Write matrix/tables/declared-requirements.toml: what releases demand of Python and of each other.

    python tools/tables/declared_requirements.py FOLDER... > TABLE
    python tools/tables/declared_requirements.py --onto FOLDER... > TABLE

The folders hold metadata as `_metadata` reads it. With ``--onto`` what the table holds already stays, and the releases
read now are added; none that neither of the two read is taken to be like its neighbours.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parents[2]))

from compatcheck.matrix.compile import read_toml
from tools.tables import _metadata, _toml

TABLE = Path(__file__).parents[2] / "matrix" / "tables" / "declared-requirements.toml"
HISTORY = TABLE.with_name("release-history.toml")

PYTHON = "python"
IN_ANOTHER_TABLE = {("torchvision", "torch"), ("torchaudio", "torch"), ("torch", "triton")}
"""torch-companions holds what belongs to which torch."""
CUDA_LIBRARIES = ("nvidia-", "cuda-")
"""Each CUDA build of torch demands its own, and only one of them is on the package index."""
TOLD_BY_ENTRIES = {
    "accelerate": ("huggingface-hub",),
    "llamafactory": ("accelerate", "peft", "transformers", "trl"),
    "transformers": ("huggingface-hub", "safetensors", "tokenizers"),
}
"""Checked at start-up: entries tell these with what is printed then, and only ranges in lists are held against them."""
HARMLESS = {("xformers", "0.0.34", "torch")}
"""Its notes say that it loads beside later releases of torch, too."""
_WHAT = """What releases demand of Python and of each other in their metadata, without extras: the first and the last
release of a run, and what it demands. A release between two runs was not read. `where` holds, with its marker, what is
demanded on some platforms or Pythons only. `at_start` holds what a package compares when it is imported, which entries
tell."""
_COMMAND = "python tools/tables/declared_requirements.py --onto FOLDER..."
_GROUPS = ("", "where", "at_start")
Key = tuple[str, str]
"""What is demanded, and the marker under which it is: an empty one holds everywhere."""
Demands = Mapping[Key, Mapping[Version, str]]
Runs = Sequence[Sequence[str]]


def render(folders: Sequence[Path], kept: Mapping[str, Any] | None = None) -> str:
    """The table as TOML, on top of the one that is given."""
    read, known = _read(folders), _kept(kept or {})
    sections: dict[str, dict[str, dict[str, list[list[str]]]]] = {group: {} for group in _GROUPS}
    for package in sorted({*read, *known}):
        for (other, marker), values in sorted(_joined(known.get(package, {}), read.get(package, {})).items()):
            told = not marker and other in TOLD_BY_ENTRIES.get(package, ())
            group = "where" if marker else "at_start" if told else ""
            if rows := [[*run, marker] if marker else [*run] for run in _metadata.runs(values)]:
                sections[group].setdefault(package, {}).setdefault(other, []).extend(rows)
    written = (
        _toml.section(f"{group}.{package}" if group else package, rows)
        for group, by_package in sections.items()
        for package, rows in by_package.items()
    )
    return "".join([_toml.header(_WHAT, _COMMAND, _metadata.SOURCES), *written])


def _read(folders: Sequence[Path]) -> dict[str, dict[Key, dict[Version, str]]]:
    """What each release demands; an empty text says that it was read and demands nothing."""
    releases: dict[str, dict[Version, dict[Key, str]]] = defaultdict(dict)
    pythons: dict[str, dict[Version, str]] = defaultdict(dict)
    for name, version, requires, python in _metadata.releases(folders):
        pythons[name][version] = _normalised(python)
        if requires is not None:
            found = _metadata.conditional(requires)
            releases[name][version] = {key: text for key, text in found.items() if _is_held(name, version, key[0])}
    demands: dict[str, dict[Key, dict[Version, str]]] = {}
    for name, python_of in pythons.items():
        keys = {key for found in releases[name].values() for key in found}
        demands[name] = {key: {each: found.get(key, "") for each, found in releases[name].items()} for key in keys}
        demands[name][PYTHON, ""] = python_of
    return demands


def _is_held(package: str, version: Version, other: str) -> bool:
    of_a_build = package == "torch" and other.startswith(CUDA_LIBRARIES)
    listed = (package, other) in IN_ANOTHER_TABLE or (package, str(version), other) in HARMLESS
    return not of_a_build and not listed


def _normalised(python: str) -> str:
    """The range of Pythons in one order of its clauses; nothing for one that installers cannot read either."""
    try:
        return ",".join(
            sorted(
                map(str, SpecifierSet(re.sub(r"(?<=\d)\.\*(?=,|\s|$)", "", python) if "!=" not in python else python))
            )
        )
    except InvalidSpecifier:
        return ""


def _kept(table: Mapping[str, Any]) -> dict[str, dict[Key, dict[Version, str]]]:
    """What each release demands by the rows of a table; nothing for those that no run encloses."""
    found: dict[str, dict[Key, list[Sequence[str]]]] = defaultdict(lambda: defaultdict(list))
    for package, other, row in _rows(table):
        found[package][other, row[3] if len(row) > 3 else ""].append(row)
    history = read_toml(HISTORY)["releases"]
    return {
        package: {key: _values(runs, history.get(package, ())) for key, runs in by_key.items()}
        for package, by_key in found.items()
    }


def _rows(table: Mapping[str, Any]) -> Iterator[tuple[str, str, Sequence[str]]]:
    plain = {name: rows for name, rows in table.items() if isinstance(rows, dict) and name not in _GROUPS}
    for group in (plain, table.get("where", {}), table.get("at_start", {})):
        for package, others in group.items():
            yield from ((package, other, row) for other, rows in others.items() for row in rows)


def _values(runs: Runs, history: Sequence[str]) -> dict[Version, str]:
    ends = {Version(end) for run in runs for end in run[:2]}
    values = dict.fromkeys({*map(Version, history), *ends}, "")
    for first, last, demand, *_ in runs:
        values.update({each: demand for each in values if Version(first) <= each <= Version(last)})
    return values


def _joined(kept: Demands, read: Demands) -> dict[Key, dict[Version, str]]:
    """Both together. A release that was read now demands no more than what was read of it."""
    every = {version for key, values in read.items() if key != (PYTHON, "") for version in values}
    joined = {}
    for key in {*kept, *read}:
        now = read.get(key) or dict.fromkeys(every, "")
        joined[key] = {**kept.get(key, {}), **now}
    return joined


if __name__ == "__main__":
    onto = sys.argv[1] == "--onto"
    sys.stdout.write(render([Path(folder) for folder in sys.argv[1 + onto :]], read_toml(TABLE) if onto else None))
