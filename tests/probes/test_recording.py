"""What compare records, and which differences it sees: in real processes, with faults that are planted in one."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from compatcheck import probes
from compatcheck.installed.target import find_target
from compatcheck.probes._recording._sketch import counters, drawn, sketch

EVALUATION = "llama, sdpa, right padding: evaluation"
ACCUMULATION = "llama, Trainer, gradient accumulation"
LORA = "llama, LoRA"
DTYPE = "float32"
COUNTERS = [1919785564, 1597913475, 795706724]


def row(*values: dict[str, Any], moved: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"case": "a case", "dtype": DTYPE, "values": list(values), "moved": list(moved)}


def value(number: float, **others: Any) -> dict[str, Any]:
    return {"what": "loss", "name": "", "step": 0, "norm": abs(number), "size": 1, "sketch": [number], **others}


def test_rounding_is_no_difference_and_more_is() -> None:
    assert probes.first_difference(row(value(5.0)), row(value(5.0 * (1 + 2**-23)))) is None
    found = probes.first_difference(row(value(5.0)), row(value(5.001)))
    assert found is not None and (found.what, found.old, found.new) == ("loss", 5.0, 5.001)
    assert found.relative == pytest.approx(2e-4, rel=0.01) and found.theta > 4


def test_values_of_one_name_are_compared_in_turn() -> None:
    twice = row(value(5.0), value(3.0))
    assert probes.first_difference(twice, twice) is None
    found = probes.first_difference(twice, row(value(5.0), value(4.0)))
    assert found is not None and (found.old, found.new) == (3.0, 4.0)
    assert probes.theta_at(twice, row(value(5.0), value(4.0)), found) == found.theta


def test_what_one_rounding_moves_widens_the_budget() -> None:
    moved = ([5.001],)
    assert probes.first_difference(row(value(5.0), moved=moved), row(value(5.001))) is None
    assert probes.first_difference(row(value(5.0), moved=moved), row(value(5.1))) is not None


def test_nan_on_one_side_is_a_difference_and_on_both_is_none() -> None:
    lost = value(0.0, nonfinite=1)
    found = probes.first_difference(row(value(5.0)), row(lost))
    assert found is not None and math.isinf(found.theta) and math.isnan(float(found.new))
    assert probes.first_difference(row(lost), row(lost)) is None


def test_parameters_that_are_no_longer_trained_are_a_difference() -> None:
    trained = {"what": "trained parameters", "name": "float16", "step": 0, "text": "512 float16"}
    found = probes.first_difference(row(trained), row())
    assert found is not None and (found.old, found.new) == ("512 float16", "0")


def test_weights_and_batches_are_the_same_numbers_in_every_release() -> None:
    torch = pytest.importorskip("torch")
    assert counters(3, 1).tolist() == COUNTERS
    whole = drawn([100, 100], "a.weight", 0)
    assert abs(float(whole.mean())) < 0.03 and abs(float(whole.std()) - 1) < 0.03
    assert torch.equal(whole, drawn([100, 100], "a.weight", 0))
    assert not torch.equal(whole, drawn([100, 100], "b.weight", 0))


def test_distance_of_two_sketches_estimates_that_of_the_tensors() -> None:
    pytest.importorskip("torch")
    tensor, noise = drawn([64, 64], "a", 0), drawn([64, 64], "noise", 0) * 1e-3
    one, other = sketch(tensor)["sketch"], sketch(tensor + noise)["sketch"]
    distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(one, other)) / len(one))
    assert 0.3 < distance / float(noise.norm()) < 2


@pytest.fixture(scope="module")
def healthy() -> probes.Recording:
    pytest.importorskip("transformers")
    return record(spread=True)


def record(*cases: str, spread: bool = False) -> probes.Recording:
    only = cases or (EVALUATION, ACCUMULATION, LORA)
    recording = probes.record(find_target(sys.executable, {}), {"only": only, "spread": spread})
    assert not recording.failure
    return recording


def difference(healthy: probes.Recording, other: probes.Recording) -> Any:
    found = [probes.first_difference(one, two) for one, two in probes.pairs(healthy, other)]
    assert found, probes.not_compared(healthy, other)
    return next((each for each in found if each), None)


@pytest.mark.slow
@pytest.mark.stack
def test_one_environment_twice_has_no_difference(healthy: probes.Recording) -> None:
    assert [row.get("error") for row in healthy.rows] == [None] * len(healthy.rows)
    assert {"torch", "transformers"} <= healthy.distributions
    assert difference(healthy, record()) is None


FAULTS = {
    EVALUATION: (
        "import torch\nplain = torch.nn.functional.silu\n"
        "torch.nn.functional.silu = lambda x, inplace=False: plain(x) * 1.001\n",
        ("output", "model.layers.0.mlp.act_fn", 0),
    ),
    ACCUMULATION: (
        "import torch\nplain = torch.Tensor.backward\n"
        "torch.Tensor.backward = lambda self, *a, **k: plain(self * 4, *a, **k)\n",
        ("gradient", "model.embed_tokens.weight", 1),
    ),
}


@pytest.mark.slow
@pytest.mark.stack
@pytest.mark.parametrize("case", FAULTS)
def test_first_difference_names_where_a_fault_is_planted(
    case: str, healthy: probes.Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, where = FAULTS[case]
    (tmp_path / "sitecustomize.py").write_text(fault, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = difference(healthy, record(case))
    assert found is not None and (found.what, found.name, found.step) == where
