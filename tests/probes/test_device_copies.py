"""Copies between GPUs: skipped without two, every bit compared where there are some."""

from __future__ import annotations

import pytest

from compatcheck.probes.operators import device_copies
from tests.probes.inside import measured

pytestmark = pytest.mark.stack


def test_one_machine_without_gpus_is_skipped() -> None:
    outcome, why = device_copies.judge(measured(device_copies))
    assert (outcome, why) == ("skip", "copies between GPUs need two GPUs, but 0 can be used here")


def test_every_pair_is_tried_in_both_directions_and_every_way() -> None:
    found = measured(device_copies, devices=["cpu", "cpu"])
    assert device_copies.judge(found)[0] == "pass"
    assert {row["variant"] for row in found["rows"]} == {
        "direct, to",
        "direct, copy_ on a side stream",
        "through the host",
    }
    assert all(row["sizes"] == list(device_copies.SIZES) for row in found["rows"])


def test_zeros_name_the_pair_and_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_copies, "_to", lambda value, target: value * int(value.numel() < 512))
    found = measured(device_copies, devices=["cpu", "cpu"])
    outcome, why = device_copies.judge(found)
    assert outcome == "fail"
    assert "cpu to cpu, direct, to: zeros in 512 of 512 words of a copy of 4096 bytes" in why


def test_a_promise_that_is_not_kept_is_told() -> None:
    fine = {"theta": 0.0, "rho": 0.0, "dtype": "bytes", "nonfinite": 0, "tensor": "", "says": ""}
    case = "cuda:0 to cuda:1"
    rows = [
        {**fine, "case": case, "variant": "direct, to", "direct": True, "theta": float("inf"), "says": "zeros"},
        {**fine, "case": case, "variant": "through the host", "direct": False},
    ]
    outcome, why = device_copies.judge({"rows": rows, "peer_access": {case: True}})
    assert outcome == "fail" and "1 of 1 pairs fail; can_device_access_peer reports" in why
    outcome, why = device_copies.judge({"rows": rows, "peer_access": {case: False}})
    assert outcome == "fail" and "promises" not in why


def test_failure_of_every_way_suspects_the_hardware() -> None:
    row = {"theta": float("inf"), "rho": 0.0, "dtype": "bytes", "nonfinite": 0, "tensor": "", "says": "zeros"}
    rows = [{**row, "case": "cuda:0 to cuda:1", "variant": name, "direct": True} for name in ("to", "host")]
    assert device_copies.judge({"rows": rows, "peer_access": {}})[0] == "watch"
