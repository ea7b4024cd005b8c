"""The map for contributors: each place that it and its neighbours name is there, each room is on it, its code runs."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Unknown
from compatcheck.project.training.document import parse_document
from tests.conftest import ROOT
from tests.docs.sessions import fences

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


def test_the_reader_of_the_recipe_reads() -> None:
    code = next(fence.text for fence in fences(MAP.read_text(encoding="utf-8")) if fence.kind == "python")
    reader: dict[str, Any] = {}
    exec(textwrap.dedent(code), reader)
    text = (
        "[job]\n[training]\nlocal_batch_size = 8\nseq_len = 4096\n[compile]\nenable = true\n[optimizer]\nlr = '${LR}'\n"
    )
    document = parse_document("run.toml", text)
    assert reader["recognises"](document)
    facts = reader["read"](document).facts
    names = ("framework", "per_device_train_batch_size", "max_length", "torch_compile")
    assert [facts.get(f"training.{name}") for name in names] == ["torchtitan", 8, 4096, True]
    assert isinstance(facts.get("training.learning_rate"), Unknown)
