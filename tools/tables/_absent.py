"""What a release imports as soon as it is imported, and neither it nor what it requires declares."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from compatcheck.installed.declared import requires_dist
from compatcheck.interfaces.summary import Ask
from compatcheck.matrix.compile import read_toml
from tools.tables._interface_packages import owners, packages

_TABLES = Path(__file__).parents[2] / "matrix" / "tables"
_HIDDEN = frozenset({"setuptools", "pip", "wheel", "distribute"})
"""What `pip freeze` leaves out, so that no list tells whether it is there."""
_OF_IMAGES = frozenset({"numpy", "torch", "torchaudio", "torchvision"})
"""What container images bring, so that lists of what is installed into them leave it out."""
_ANY_OF_SEVERAL = frozenset({"apex", "attr", "cv2", "flash_attn", "google", "onnxruntime", "tensorflow", "triton"})
"""Modules that more than one distribution brings."""
_MODULES = {"yaml": "pyyaml", "PIL": "pillow", "sklearn": "scikit-learn", "soundfile": "soundfile"}


class Undeclared:
    """The modules that the releases of one package import undeclared."""

    def __init__(self, folder: Path, package: str) -> None:
        self._folder, self._package = folder / package, package
        self._declared: dict[Version, frozenset[str] | None] = {}

    def distribution(self, version: Version, ask: Ask, own_tops: Sequence[str]) -> str | None:
        """The distribution of a module that is imported with the release, if nothing that is declared brings it."""
        top = ask.target.partition(".")[0]
        if ask.kind != "import" or ask.scope or top in own_tops or top in _ANY_OF_SEVERAL:
            return None
        name = distributions().get(top)
        if name is None or name in _HIDDEN | _OF_IMAGES or name == self._package or f"+{name}" in ask.conditions:
            return None
        if version not in self._declared:
            declared = _metadata(self._folder / f"{version}.zip")
            self._declared[version] = None if declared is None else frozenset(_closed(declared))
        known = self._declared[version]
        return None if known is None or name in known else name


@cache
def distributions() -> Mapping[str, str]:
    """The distribution of each module whose name is known to be that of one distribution alone."""
    known: list[str] = [*read_toml(_TABLES / "package-names.toml")["known"], *_declared()]
    return {**{name.replace("-", "_"): name for name in known}, **owners(packages()), **_MODULES}


@cache
def _declared() -> Mapping[str, Mapping[str, Any]]:
    table = read_toml(_TABLES / "declared-requirements.toml")
    rows = {name: row for name, row in table.items() if isinstance(row, dict) and name not in ("where", "at_start")}
    return {name: {**row, **table["where"].get(name, {})} for name, row in rows.items()}


def _metadata(archive: Path) -> set[str] | None:
    """What a release requires without extras, on any platform; None where an archive of sources does not tell."""
    with zipfile.ZipFile(archive) as kept:
        places = [name for name in kept.namelist() if name.endswith(".dist-info/METADATA")]
        header = kept.read(places[0]).partition(b"\n\n")[0] if places else b""
    lines = requires_dist(header)
    if not places or (not lines and places[0].startswith("sdist.")):
        return None
    return {canonicalize_name(Requirement(line).name) for line in lines}


def _closed(names: set[str]) -> set[str]:
    """The names with all that any release of theirs requires in turn, as far as tables tell."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [other for other in _declared().get(name, ()) if other != "python"]
    return found
