"""One more unit of each kind takes the files that the recipes name, and no others."""

from __future__ import annotations

import pytest

from tests.conftest import ROOT
from tools.unit_cost import KINDS, Kind, dry_run


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_unit_is_live_with_the_files_of_its_recipe(kind: Kind) -> None:
    assert dry_run(kind) is None


def test_a_unit_without_its_file_is_not_live() -> None:
    kind = KINDS["probe"]
    kept = {place: source for place, source in kind.files.items() if not place.endswith("operators/dry_run.py")}
    assert "AssertionError" in str(dry_run(kind._replace(files=kept)))


def test_what_a_dry_run_starts_from_is_there() -> None:
    models = {model for kind in KINDS.values() for model, _ in kind.files.values()}
    assert not [model for model in models if not (ROOT / model).is_file()]
