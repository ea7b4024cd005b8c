"""Compare the bounds of entries with the sources of all releases.

    python -m tools.code_bounds FOLDER [ID]...

matrix/records/code-bounds.toml states the code by which a release has an entry's fault. FOLDER contains the sources of
releases, as `python -m tools.tables.release_sources FOLDER PACKAGE` keeps them. Every release there is read, also those
far from a bound. The releases that have the code are written to matrix/records/code-bounds.json. A release that has it
outside the entry's range, or lacks it inside, is printed, and the exit status is 1.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from packaging.version import Version
from pydantic import BaseModel, ConfigDict

from compatcheck import matrix
from compatcheck.files import storage
from compatcheck.files.toml_text import parse_toml
from compatcheck.packages.versions import contains, is_range, parse_range

RECORDS = Path(__file__).parents[1] / "matrix" / "records"
STATED, READ = RECORDS / "code-bounds.toml", RECORDS / "code-bounds.json"


class Code(BaseModel):
    """The code of a fault: ``contains`` and ``lacks`` are searched in ``within`` (a function or class) of a file."""

    model_config = ConfigDict(extra="forbid")

    entry: str
    package: str
    file: str | list[str]
    """Where the code is in the wheel; of several, each release's first one counts."""
    within: str = ""
    """`function`, `Class` or `Class.method`."""
    contains: list[str] = []
    lacks: list[str] = []
    tables: list[int] = []
    """Which `[[affected]]` tables state the range, from 1; default: all that bound the package."""
    elsewhere: dict[str, str] = {}
    """Ranges in which the code does not decide, each with the reason."""

    @property
    def files(self) -> dict[str, None]:
        return dict.fromkeys([self.file] if isinstance(self.file, str) else self.file)

    def is_in(self, sources: Mapping[str, str]) -> bool:
        """Whether a release with these files has the code."""
        text = next((sources[name] for name in self.files if name in sources), None)
        text = part(text, self.within) if text is not None and self.within else text
        if text is None:
            return False
        found = {each for each in (*self.contains, *self.lacks) if re.search(each, text, re.MULTILINE)}
        return found.issuperset(self.contains) and not found.intersection(self.lacks)

    def is_ignored(self, version: Version) -> bool:
        """Whether something else than the code decides in that release."""
        return any(contains(parse_range(text), version) for text in self.elsewhere)


def part(text: str, name: str) -> str | None:
    """The source of a function, class or method; None where the module does not define it."""
    node: ast.AST = _parsed(text)
    for each in name.split("."):
        inside = (child for child in ast.walk(node) if getattr(child, "name", None) == each)
        found = next((child for child in inside if isinstance(child, _DEFINITIONS)), None)
        if found is None:
            return None
        node = found
    return ast.get_source_segment(text, node)


_parsed = functools.lru_cache(maxsize=8)(ast.parse)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def read(path: Path = STATED) -> list[Code]:
    """The code of all entries that state it."""
    return [Code.model_validate(row) for row in parse_toml(path.read_text(encoding="utf-8"))["code"]]


def releases_with(codes: Sequence[Code], archives: Path) -> list[dict[Version, bool]]:
    """For each code of one package, whether each release in the folder has it, in order; a release is opened once."""
    found: list[dict[Version, bool]] = [{} for _ in codes]
    paths = {Version(path.stem): path for path in archives.glob("*.zip")}
    for version in sorted(paths):
        with zipfile.ZipFile(paths[version]) as opened:
            names = set(opened.namelist())
            sources = {
                name: opened.read(name).decode("utf-8", "replace")
                for code in codes
                for name in code.files
                if name in names
            }
        for code, has in zip(codes, found):
            has[version] = code.is_in(sources)
    return found


def expected(code: Code, entry: Mapping[str, Any], version: Version) -> bool:
    """Whether the entry's range of the package contains the release."""
    chosen = [table for place, table in enumerate(entry["affected"], 1) if not code.tables or place in code.tables]
    texts = [table.get(f"distributions.{code.package}", "") for table in chosen]
    return any(contains(parse_range(text), version) for text in texts if is_range(text))


def deviations(code: Code, entry: Mapping[str, Any], found: Mapping[Version, bool]) -> Iterator[str]:
    """What the releases have against the entry's range, in a line for each run of releases."""
    wrong = {
        version: has and "have the code outside the range" or "lack the code inside the range"
        for version, has in found.items()
        if has != expected(code, entry, version) and not code.is_ignored(version)
    }
    for what in sorted(set(wrong.values())):
        yield f"{', '.join(runs(found, (version for version in wrong if wrong[version] == what)))} {what}"


def runs(every: Iterable[Version], chosen: Iterable[Version]) -> Iterator[str]:
    """The chosen ones of all releases as `1.0 to 1.4`."""
    taken = set(chosen)
    for is_taken, group in groupby(every, taken.__contains__):
        first, *rest = group
        if is_taken:
            yield f"{first} to {rest[-1]}" if rest else str(first)


def shape(found: Mapping[Version, bool]) -> dict[str, Any]:
    """What is kept of reading."""
    return {
        "read": next(runs(found, found), ""),
        "with the code": list(runs(found, (version for version, has in found.items() if has))),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def keep(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Put the records in the place of older ones of the same entries and packages."""
    before = json.loads(READ.read_text(encoding="utf-8")) if READ.is_file() else {}
    lines = ",\n".join(
        f"{json.dumps(each)}: {json.dumps(rows)}" for each, rows in sorted({**before, **records}.items())
    )
    storage.write(str(READ), f"{{\n{lines}\n}}\n")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("ids", nargs=-1, metavar="[ID]...")
def command(folder: Path, ids: tuple[str, ...]) -> None:
    """Compare the bounds of the entries ID with the sources in FOLDER. Default: every entry that states its code."""
    known = matrix.load()
    records: dict[str, list[dict[str, Any]]] = {}
    problems = 0
    chosen = sorted((code for code in read() if not ids or code.entry in ids), key=attrgetter("package"))
    for package, group in groupby(chosen, attrgetter("package")):
        codes = list(group)
        for code, found in zip(codes, releases_with(codes, folder / package)):
            if not found:
                click.echo(f"{code.entry}: no sources of {package} in {folder}", err=True)
                continue
            records.setdefault(f"{code.entry} {package}", []).append(shape(found))
            for line in deviations(code, matrix.find_entry(known, code.entry), found):
                problems += 1
                click.echo(f"{code.entry}: {package} {line}")
    keep(records)
    click.echo(f"{len(records)} bounds read, {problems} deviations", err=True)
    sys.exit(problems > 0)


if __name__ == "__main__":
    command()
