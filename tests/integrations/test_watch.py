"""Logs in the Trainer's own form: which signature each shows, and which healthy runs show none."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.integrations._diagnosis import explain, render_alarm
from compatcheck.integrations._watch import Alarm, LogWatch, Pass, PassWatch

NAN = math.nan


def alarms(*logs: dict[str, Any], patience: int = 1, seen_finite: bool = False) -> list[Alarm]:
    watch = LogWatch(patience)
    return [alarm for step, log in enumerate(logs, 1) for alarm in watch.feed(step, log, seen_finite)]


def signatures(*logs: dict[str, Any], **options: Any) -> list[str]:
    return list(dict.fromkeys(alarm.signature for alarm in alarms(*logs, **options)))


@pytest.mark.parametrize(
    ("log", "times", "signature"),
    [
        ({"loss": NAN, "grad_norm": NAN}, 1, "loss-nan"),
        ({"loss": math.inf}, 1, "loss-nan"),
        ({"loss": "nan", "grad_norm": "nan"}, 1, "loss-nan"),
        ({"loss": 0.0, "grad_norm": NAN}, 1, "grad-norm-nan"),
        ({"loss": 1.65, "grad_norm": math.inf}, 1, "grad-norm-nan"),
        ({"loss": 0.0, "grad_norm": 0.0}, 3, "grad-norm-zero"),
        ({"loss": 0.0, "grad_norm": 1.4142135}, 3, "grad-norm-constant"),
        ({"loss": 0.0, "grad_norm": 1.0}, 3, "grad-norm-constant"),
        ({"loss": 0.0, "learning_rate": 1e-5}, 3, "loss-zero"),
        ({"loss": 1.3, "grad_norm": 0.0}, 5, "grad-norm-zero"),
        ({"eval_loss": NAN}, 1, "eval-loss-nan"),
    ],
)
def test_a_log_shows_its_signature_as_soon_as_it_can_be_told(log: dict[str, Any], times: int, signature: str) -> None:
    assert signatures(*[log] * times) == [signature]
    assert signatures(*[log] * (times - 1)) == []


def test_an_alarm_names_the_first_step_it_can_be_sure_of_and_what_was_observed() -> None:
    first = alarms({"loss": 1.2, "grad_norm": 0.4}, {"loss": 0.0, "grad_norm": NAN})[0]
    assert first.step == 2 and first.symptoms == ("grad-norm-nan", "loss-zero") and first.stops
    assert first.observed["nonfinite"] is True and first.observed["onset_step"] == 2 and first.observed["loss"] == 0


def test_a_loss_scaler_may_meet_nan_norms_while_it_looks_for_its_scale() -> None:
    overflow, fine = {"loss": 2.1, "grad_norm": NAN}, {"loss": 2.1, "grad_norm": 0.7}
    assert signatures(*[overflow] * 16, fine, *[overflow] * 16, patience=24) == []
    assert signatures(*[overflow] * 24, patience=24) == ["grad-norm-nan"]


def test_a_loss_that_really_is_zero_is_no_fault_where_the_passes_showed_it() -> None:
    assert signatures(*[{"loss": 0.0, "grad_norm": 0.0}] * 9, seen_finite=True) == []


def test_a_changing_gradient_norm_beside_a_rounded_loss_is_no_fault() -> None:
    assert signatures(*[{"loss": 0.0, "grad_norm": 1.0 / n} for n in range(1, 30)]) == []


def curve(kind: str, seed: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    shapes = {
        "falling": lambda n: 2.5 * math.exp(-n / 60) + 0.8,
        "falling to nothing": lambda n: 3 * 0.9**n,
        "flat": lambda n: 0.69,
        "spiky": lambda n: 1.5 + 4 * (n % 37 == 36),
        "in stairs by epoch": lambda n: 2.0 - 0.5 * (n // 60),
        "rising at a curriculum": lambda n: 1.0 + 0.4 * (n > 100),
        "around zero": lambda n: 0.0,
    }
    noise = 0.02 if kind == "around zero" else 0.1
    return [
        {
            "loss": round(shapes[kind](n) * dice.gauss(1, noise) + dice.gauss(0, noise / 10), 4),
            "grad_norm": dice.lognormvariate(0, 1),
        }
        for n in range(200)
    ]


KINDS = [
    "falling",
    "falling to nothing",
    "flat",
    "spiky",
    "in stairs by epoch",
    "rising at a curriculum",
    "around zero",
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_healthy_curve_raises_an_alarm(kind: str) -> None:
    assert not [seed for seed in range(20) if alarms(*curve(kind, seed))]


def test_a_run_that_climbs_above_its_start_and_stays_there_diverges() -> None:
    healthy = [
        {"loss": loss, "grad_norm": 1.3} for loss in (2.5, 2.4, 2.2, 2.1, 2.0, 1.9, 1.8, 1.8, 1.7, 1.7, 1.6, 1.6)
    ]
    found = alarms(*healthy, *[{"loss": loss, "grad_norm": 9.5} for loss in (4.5, 6.1, 9.0)])
    assert [(alarm.signature, alarm.step) for alarm in found] == [("loss-diverging", 15)]
    assert found[0].observed["nonfinite"] is False


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["loss", "grad_norm", "eval_loss"]), st.floats() | st.sampled_from(["nan", "", "-inf", "x"])
        )
    )
)
def test_whatever_is_logged_is_survived(logs: list[dict[str, Any]]) -> None:
    for alarm in alarms(*logs):
        assert alarm.seen and alarm.symptoms


def test_one_masked_batch_is_told_and_most_masked_batches_stop() -> None:
    one = list(PassWatch(1).feed([*[Pass(n, False, False) for n in range(9)], Pass(9, True, True)]))
    assert [(alarm.signature, alarm.step, alarm.stops) for alarm in one] == [("labels-all-masked", 9, False)]
    all_of_them = list(PassWatch(1).feed([Pass(n, True, True) for n in range(3)]))
    assert all_of_them[-1].stops


def test_a_masked_micro_batch_whose_loss_is_a_number_is_no_fault_of_its_own() -> None:
    passes = [Pass(n, False, n == 5) for n in range(16)]
    assert list(PassWatch(1).feed(passes)) == []


def test_a_nan_loss_with_labels_is_told_at_its_step() -> None:
    found = list(PassWatch(1).feed([Pass(1, False, False), Pass(2, True, False)]))
    assert [(alarm.signature, alarm.step, alarm.stops) for alarm in found] == [("loss-nan", 2, True)]


def test_the_signature_finds_the_entry_that_explains_it() -> None:
    alarm = alarms(*[{"loss": 0.0, "grad_norm": 0.0}] * 3)[-1]
    environment = Environment(
        {"distributions": {"transformers": "4.44.0", "torch": "2.4.0"}, "training": {"objective": "sft"}}
    )
    diagnosis = explain(environment, matrix.load(), alarm)
    first = diagnosis.explanations[0]
    assert (first.finding.id, first.finding.status, first.band) == ("CC-2024-0005", "affected", "likely")
    assert "next: compatcheck explain CC-2024-0005" in "\n".join(render_alarm(alarm, diagnosis))


def test_nan_norms_under_zero_2_with_overlap_name_the_deepspeed_entry() -> None:
    alarm = alarms({"loss": 0.0, "grad_norm": NAN})[0]
    deepspeed = {"zero_stage": 2, "overlap_comm": True, "contiguous_gradients": True}
    environment = Environment(
        {
            "distributions": {"deepspeed": "0.16.4", "torch": "2.5.1", "transformers": "4.48.1"},
            "training": {"dtype": "bfloat16", "deepspeed": deepspeed, "world_size": 8, "method": "full"},
        }
    )
    told = "\n".join(render_alarm(alarm, explain(environment, matrix.load(), alarm)))
    assert "plausible CC-2024-0021" in told


def test_what_no_entry_explains_is_said_so() -> None:
    alarm = Alarm("memory-growth", 40, "12 KiB more", ("memory-growth",), {}, True)
    diagnosis = explain(Environment({"distributions": {"torch": "2.9.0"}}), matrix.load(), alarm)
    assert "no matrix entry explains this alarm" in render_alarm(alarm, diagnosis)[-1]
