from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck.environment import Target

Install = Callable[..., Path]


@pytest.fixture
def install(site: Path) -> Install:
    """Lay a ``.dist-info`` as pip does: ``install("torch-2.5.0", "numpy>=1.17")``."""

    def lay(stem: str, *requires: str, into: Path = site, suffix: str = ".dist-info") -> Path:
        name, _, version = stem.partition("-")
        folder = into / f"{stem}{suffix}"
        folder.mkdir(parents=True)
        fields = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        fields += [f"Requires-Dist: {line}" for line in requires]
        file = "METADATA" if suffix == ".dist-info" else "PKG-INFO"
        (folder / file).write_text("\n".join(fields) + "\n\nRequires-Dist: only-a-description\n")
        return folder

    return lay


@pytest.fixture
def target(site: Path) -> Target:
    return Target("/nowhere/bin/python", "3.11.7", "/nowhere", (str(site),), "--python")
