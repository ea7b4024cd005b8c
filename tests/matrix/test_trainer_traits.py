"""What a Trainer of the user's own overrides, beside the release of transformers that is there."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment

LACKS = ["train-sampler-takes-no-dataset"]


@pytest.mark.parametrize(
    ("transformers", "trainer", "status"),
    [
        ("4.52.4", {"traits": LACKS}, "affected"),
        ("4.51.3", {"traits": LACKS}, None),
        ("4.52.4", {"traits": []}, None),
        ("4.52.4", {"suspected": LACKS}, "possible"),
        ("4.52.4", {"traits": [], "suspected": LACKS}, "possible"),
        ("4.52.4", {"suspected": []}, None),
        ("4.52.4", None, None),
    ],
)
def test_an_override_is_told_where_it_is_known(
    known: matrix.Matrix, transformers: str, trainer: dict[str, Any] | None, status: str | None
) -> None:
    facts = {"distributions": {"transformers": transformers}, **({"trainer": trainer} if trainer else {})}
    found = {each.id: each.status for each in matrix.judge(known, Environment(facts)).findings}
    assert found.get("CC-2026-3701") == status
