"""The pages that name places of the source tree: each place is there, and each room is on the map."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

MAP = ROOT / "docs" / "explanation" / "architecture.md"
PAGES = (
    MAP,
    ROOT / ".github" / "CONTRIBUTING.md",
    ROOT / "docs" / "how-to" / "probe.md",
    ROOT / "docs" / "how-to" / "entry.md",
)
_NAMED = re.compile(r"`(?:python )?((?:compatcheck|tools|tests|matrix|docs|\.github)/[^`\s]*)")


def places(text: str) -> list[str]:
    """The paths that a page names; ``<name>`` stands for any."""
    return [re.sub(r"<[^>]*>", "*", named) for named in _NAMED.findall(re.sub(r"<([^<>]*) ([^<>]*)>", r"<\1>", text))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_place_that_a_page_names_is_there(page: Path) -> None:
    named = places(page.read_text(encoding="utf-8"))
    assert named
    assert not [place for place in named if not any(ROOT.glob(place.rstrip("/")))]


def test_every_room_is_on_the_map() -> None:
    rooms = {path.parent.name for path in (ROOT / "compatcheck").glob("*/__init__.py")}
    table = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", MAP.read_text(encoding="utf-8"), re.M)
    assert rooms <= {room for row in table for room in re.findall(r"\w+", row)}
