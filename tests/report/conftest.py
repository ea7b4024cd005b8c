from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from tests.conftest import run_command


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the whole matrix, built by the command."""
    folder = tmp_path_factory.mktemp("built")
    done = run_command(sys.executable, "matrix", "site", "site", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="session")
def entries() -> list[dict[str, Any]]:
    """Every entry that is not withdrawn."""
    return [entry for entry in matrix.all_entries(matrix.load()) if not entry.get("withdrawn")]
