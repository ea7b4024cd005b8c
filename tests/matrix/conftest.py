from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck import matrix

SOURCES = Path(__file__).parents[2] / "matrix"


@pytest.fixture(scope="session")
def known() -> matrix.Matrix:
    return matrix.load(str(SOURCES))
