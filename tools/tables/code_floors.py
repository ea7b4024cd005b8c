"""Print the lowest versions of other packages that training libraries name in their own code, release by release.

    python tools/tables/code_floors.py FOLDER...

No metadata carries them, and they are checked when a run starts: entries cite them. The folders hold unpacked packages
beside their ``*.dist-info`` (a virtual environment, the cache of uv). Constants are read with `ast`:
``ACCELERATE_MIN_VERSION = "0.26.0"``, ``MIN_PEFT_VERSION = "0.5.0"``, and the like inside functions.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.tables import _metadata, _toml

PACKAGES = ("transformers", "accelerate", "peft", "trl")
SOURCES = tuple(f"https://pypi.org/project/{package}/" for package in PACKAGES)
_DIST_INFO = re.compile(rf"({'|'.join(PACKAGES)})-([\w.]+)\.dist-info\Z")
_NAME = re.compile(r"_*(?:([A-Z0-9_]+?)_MIN(?:IMUM)?_VERSION|MIN(?:IMUM)?_([A-Z0-9_]+?)_VERSION(?:_FOR_[A-Z]+)?)\Z")
_MENTIONED = re.compile(r"MIN(IMUM)?_VERSION|MIN(IMUM)?_[A-Z0-9_]+_VERSION")
_WHAT = """The lowest version of another package that a library names in its own code, by module and constant:
the first and the last release of a run, and the version. A release between two runs was not read."""


def render(folders: Sequence[Path]) -> str:
    """The table as TOML."""
    floors: dict[str, dict[str, dict[Version, str]]] = {package: defaultdict(dict) for package in PACKAGES}
    for package, version, folder in _releases(folders):
        for constant, least in _constants(folder / package):
            floors[package][constant][version] = least
    for of_package in floors.values():
        every = {version for values in of_package.values() for version in values}
        for values in of_package.values():
            values.update(dict.fromkeys(every - set(values), ""))
    parts = [_toml.header(_WHAT, "python tools/tables/code_floors.py FOLDER...", SOURCES)]
    for package, constants in floors.items():
        rows = {name: _metadata.runs(values) for name, values in sorted(constants.items())}
        parts += [_toml.section(package, rows)] if rows else []
    return "".join(parts)


def _releases(folders: Sequence[Path]) -> Iterator[tuple[str, Version, Path]]:
    for top in folders:
        for path in (*top.glob("*.dist-info"), *top.glob("*/*.dist-info")):
            match = _DIST_INFO.match(path.name)
            if match is None or not (path.parent / match[1]).is_dir():
                continue
            version = Version(match[2])
            if not version.is_prerelease:
                yield match[1], version, path.parent


def _constants(package: Path) -> Iterator[tuple[str, str]]:
    for where, folders, names in os.walk(package):
        folders[:] = sorted(set(folders) - {"models", "__pycache__"})
        for path in (Path(where, name) for name in sorted(names) if name.endswith(".py")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if not _MENTIONED.search(text):
                continue
            module = path.relative_to(package).with_suffix("").as_posix().replace("/", ".")
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    least = _text(node.value)
                    if _NAME.match(node.targets[0].id) and least:
                        yield f"{module}.{node.targets[0].id}", least


def _text(value: ast.expr) -> str | None:
    """The version in ``"0.5.0"`` or ``version.parse("0.5.0")``."""
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    is_version = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return value.value if is_version and re.match(r"\d", value.value) else None  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.stdout.write(render([Path(folder) for folder in sys.argv[1:]]))
