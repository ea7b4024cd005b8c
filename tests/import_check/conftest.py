from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from compatcheck.environment import Target
from compatcheck.import_check._finder import Finder
from compatcheck.import_check._interpreter import Interpreter

Fails = Callable[..., "tuple[str, str | None] | None"]


def install(site: Path, name: str, version: str, files: Mapping[str, str | bytes]) -> None:
    """A distribution as an installer leaves it: its files, its metadata and its record."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n", encoding="utf-8")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files), encoding="utf-8")
    for path, content in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(content.encode() if isinstance(content, str) else content)


def target_of(site: Path, version: str = "3.11.7") -> Target:
    return Target("python", version, str(site.parent), (str(site),), "the test")


@pytest.fixture
def fails(site: Path) -> Fails:
    """What a statement is said to miss, module and name; None where nothing is said of it."""

    def run(statement: str, version: str = "3.11.7") -> tuple[str, str | None] | None:
        error = Interpreter(Finder(target_of(site, version)), version).statement(statement)
        if error is None:
            return None
        return tuple(error.missing) if error.missing else (error.text, None)

    return run
