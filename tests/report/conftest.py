from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from tests.conftest import run_command
from tests.report import browser as chromium
from tests.report.browser import Browser


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the whole matrix, built by the command."""
    folder = tmp_path_factory.mktemp("built")
    done = run_command(sys.executable, "matrix", "site", "site", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="session")
def entries() -> list[dict[str, Any]]:
    """Every entry in force."""
    return matrix.all_entries(matrix.load())


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium.find()
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(chromium.NAMES)} is on the path, and CHROMIUM names none")
    with chromium.started(program, tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    started.resize(1280, 900)
    yield started
    assert started.complaints() == []
    assert all(address.startswith(("file:", "about:")) for address in started.requested())
