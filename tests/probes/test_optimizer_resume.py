"""Optimizers resumed from files go on bit for bit; what is lost is named."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.probes.training import optimizer_resume
from tests.probes.inside import measured

pytestmark = [pytest.mark.stack, pytest.mark.slow]


@pytest.fixture(scope="module")
def healthy() -> dict[str, Any]:
    return measured(optimizer_resume)


def test_every_optimizer_goes_on_as_without_a_break(healthy: dict[str, Any]) -> None:
    outcome, why = optimizer_resume.judge(healthy)
    assert outcome == "pass", why
    cases = {row["case"] for row in healthy["rows"]}
    assert {"AdamW", "AdamW, one parameter at a time", "SGD with momentum", "Adagrad", "OneCycleLR"} <= cases
    exact = [row for row in healthy["rows"] if row["dtype"] == "float32"]
    assert {row["theta"] for row in exact} == {0.0}


def test_state_of_another_dtype_shows_in_bfloat16(healthy: dict[str, Any]) -> None:
    """torch gives loaded state the dtype of the parameter, so NAdam's product of momenta loses bits."""
    found = {row["case"]: row for row in healthy["rows"] if row["dtype"] == "bfloat16" and not row.get("control")}
    assert found["AdamW"]["theta"] == 0.0 < found["NAdam"]["theta"] < 1


def test_missing_packages_are_told(healthy: dict[str, Any]) -> None:
    assert all(healthy["skipped"].values())


def test_a_refused_package_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("bitsandbytes")
    import bitsandbytes

    def refuse(*args: Any, **options: Any) -> Any:
        raise RuntimeError("8-bit optimizers are not supported on CPU")

    monkeypatch.setattr(bitsandbytes.optim, "AdamW8bit", refuse)
    found = measured(optimizer_resume, dtype="float32")
    assert found["skipped"] == {"AdamW8bit": "RuntimeError: 8-bit optimizers are not supported on CPU"}
    assert optimizer_resume.judge(found)[0] == "pass"


def test_an_optimizer_that_cannot_step_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def broken(self: Any, *args: Any, **options: Any) -> Any:
        raise RuntimeError("planted")

    monkeypatch.setattr(torch.optim.RMSprop, "step", broken)
    outcome, why = optimizer_resume.judge(measured(optimizer_resume, dtype="float32"))
    assert outcome == "fail"
    assert why.startswith("raised RuntimeError: planted (RMSprop, first step, float32; passing there: step by hand")
