"""Wheels of a few hundred bytes, as a folder of links or an index would serve the real ones."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path


def write_wheel(
    folder: Path, name: str, version: str, requires: Sequence[str] = (), tag: str = "py3-none-any", code: str = ""
) -> Path:
    """A wheel that pip and uv install; ``code`` is the module's own."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = "".join(f"Requires-Dist: {each}\n" for each in requires)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}/__init__.py", code or f"__version__ = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")
    return path
