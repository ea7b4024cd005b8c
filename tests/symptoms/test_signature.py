"""Which signature a run has, when it began, and what is no fault."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from compatcheck import symptoms
from compatcheck.results.logs import Log, Run
from compatcheck.symptoms._log_growth import grows

LOGS = Path(__file__).parent / "logs"


def log_of(records: Iterable[dict[str, object]], tmp_path: Path) -> Log:
    path = tmp_path / "train.log"
    path.write_text("".join(f"{record}\n" for record in records), encoding="utf-8")
    return symptoms.read(str(path))


def run_of(records: Iterable[dict[str, object]], tmp_path: Path) -> Run:
    (run,) = log_of(records, tmp_path).runs
    return run


def steps(*stretches: tuple[int, object, object], rate: float = 1e-4) -> list[dict[str, object]]:
    """Readings of so many steps with a loss and a gradient norm; a function of the step gives changing values."""
    records: list[dict[str, object]] = []
    for count, loss, gradient in stretches:
        for _ in range(count):
            step = len(records) + 1
            made = {"loss": loss, "grad_norm": gradient}
            values = {name: value(step) if callable(value) else value for name, value in made.items()}
            records.append({**{k: v for k, v in values.items() if v is not None}, "learning_rate": rate, "step": step})
    return records


def falling(step: int) -> float:
    return round(2.0 / (1 + step / 50) + 0.01 * ((step * 7919) % 13), 4)


def wavy(step: int) -> float:
    return round(0.8 + 0.05 * ((step * 31) % 11), 4)


NAN = math.nan
HEALTHY = (30, falling, wavy)
CASES = [
    ("healthy", [HEALTHY], None),
    ("labels-masked", [(10, 0.0, 0.0)], 1),
    ("labels-masked", [HEALTHY, (5, 0.0, 0.0)], 31),
    ("nan-gradients-filtered", [(1, 2.3101, NAN), (9, 0.0, NAN)], 1),
    ("nan-gradients-filtered", [HEALTHY, (9, 0.0, NAN)], 31),
    ("deepspeed-sentinel", [HEALTHY, (9, 0.0, 1.4142135623730951)], 31),
    ("deepspeed-sentinel", [(9, 0.0, 1.0)], 1),
    ("deepspeed-sentinel", [(9, 0.0, 1.732)], 1),
    ("loss-zero-with-gradient", [HEALTHY, (9, 0.0, wavy)], 31),
    ("loss-zero-with-gradient", [HEALTHY, (9, 0.0, 1.3)], 31),
    ("loss-zero", [(30, falling, None), (9, 0.0, None)], 31),
    ("loss-rounds-to-zero", [(40, lambda step: round(2.0 / 2**step, 4), 0.01)], 16),
    ("loss-nan", [HEALTHY, (9, NAN, NAN)], 31),
    ("loss-nan", [HEALTHY, (2, math.inf, 1e9)], 31),
    ("grad-norm-nan", [(20, falling, NAN)], 1),
    ("grad-norm-zero", [HEALTHY, (9, wavy, 0.0)], 31),
    ("loss-constant", [HEALTHY, (40, 0.6931, wavy)], 31),
    ("divergence", [(100, falling, wavy), (100, lambda step: 7.0 + wavy(step), 30.0)], None),
]


@pytest.mark.parametrize(("name", "stretches", "onset"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)])
def test_a_run_has_the_signature_of_its_readings_from_its_first_step(
    name: str, stretches: list[tuple[int, object, object]], onset: int | None, tmp_path: Path
) -> None:
    run = run_of(steps(*stretches), tmp_path)
    assert run.signature.name == name
    assert (run.onset.step if run.onset else None) == onset
    if onset == 31 and not run.signature.benign and name != "loss-constant":
        assert run.healthy is not None and run.healthy.step == 30


@pytest.mark.parametrize(
    ("name", "stretches"),
    [
        ("a scaler that skips single steps", [HEALTHY, (1, falling, NAN), HEALTHY, (2, falling, NAN), HEALTHY]),
        ("a skip at the very end", [HEALTHY, (1, falling, NAN)]),
        ("a spike that recovers", [HEALTHY, (1, 30.0, 900.0), HEALTHY]),
        ("a constant loss while the rate is zero", []),
        ("a rising start", [(100, lambda step: 1.0 + step / 500, wavy)]),
    ],
)
def test_what_is_no_fault_is_healthy(name: str, stretches: list[tuple[int, object, object]], tmp_path: Path) -> None:
    records = steps(*stretches) or steps((40, 0.7, wavy), rate=0.0)
    run = run_of(records, tmp_path)
    assert run.signature.name == "healthy", name


def test_a_policy_gradients_loss_of_zero_is_normal(tmp_path: Path) -> None:
    records = [
        {"loss": 0.0, "grad_norm": 0.3 + step / 100, "reward": 1.0, "kl": 0.0, "step": step} for step in range(20)
    ]
    assert run_of(records, tmp_path).signature.name == "healthy"


def test_single_batches_without_labels_are_told_from_all_of_them(tmp_path: Path) -> None:
    log = log_of(steps(HEALTHY, (1, 0.0, 0.0), HEALTHY), tmp_path)
    assert log.runs[0].signature.name == "labels-masked-sometimes"
    assert "loss" not in log.facts.facts["training"]["observed"]


def test_an_evaluation_that_is_nan_beside_a_finite_loss_is_told(tmp_path: Path) -> None:
    records = [*steps(HEALTHY), {"eval_loss": NAN, "step": 30}, *steps(HEALTHY)[:0]]
    run = run_of(records, tmp_path)
    assert run.signature.name == "eval-loss-nan"
    assert run.onset is not None and run.onset.step == 30


def test_steps_that_are_all_skipped_for_overflow_are_told(tmp_path: Path) -> None:
    line = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n"
    path = tmp_path / "train.log"
    path.write_text("".join(line.format(2**n, 2 ** (n - 1)) for n in range(16, 1, -1)), encoding="utf-8")
    (run,) = symptoms.read(str(path)).runs
    assert run.signature.name == "overflow-at-every-step"
    with path.open("a", encoding="utf-8") as stream:
        stream.write('Traceback (most recent call last):\n  File "t.py", line 3, in step\n    scaler.update()\n')
        stream.write("Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n")
    (run,) = symptoms.read(str(path)).runs
    assert run.crash is not None and run.crash.kind == "loss-scale-minimum"


@pytest.mark.parametrize(
    "ending",
    ["", "[INFO] [logging.py:96:log_dist] [Rank 0] step=510, skipped=16, lr=[9e-06], mom=[(0.9, 0.95)]\n"],
    ids=["while the scale is high", "and then steps were taken"],
)
def test_a_loss_scale_that_is_being_found_is_no_fault(ending: str, tmp_path: Path) -> None:
    line = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n"
    lowest = 0 if ending else 10
    path = tmp_path / "train.log"
    skips = "".join(line.format(2**n, 2 ** (n - 1)) for n in range(16, lowest, -1))
    path.write_text(skips + ending, encoding="utf-8")
    (run,) = symptoms.read(str(path)).runs
    assert run.signature.name == "no-readings" and [note.name for note in run.notes] == ["overflow-skips"]


def test_a_stand_in_for_the_norm_beside_a_real_loss_is_where_it_began(tmp_path: Path) -> None:
    run = run_of(steps(HEALTHY, (1, 18.2, 1.7320508075688772), (5, 0.0, 1.7320508075688772)), tmp_path)
    assert run.signature.name == "deepspeed-sentinel" and run.onset is not None and run.healthy is not None
    assert (run.onset.step, run.healthy.step) == (31, 30)


def test_batches_that_each_epoch_counts_anew_are_one_run(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    losses = [3.0, 2.5, 2.2, 2.1, 2.0, 1.9, math.nan, math.nan, math.nan]
    lines = [f"Epoch {n // 3}, Batch {n % 3 * 100}, Loss: {loss}, lr: 1e-4\n" for n, loss in enumerate(losses)]
    path.write_text("".join(lines), encoding="utf-8")
    (run,) = symptoms.read(str(path)).runs
    assert run.signature.name == "loss-nan" and run.onset is not None and run.healthy is not None
    assert (run.onset.location.line, run.healthy.location.line) == (7, 6)
    (curve,) = run.curves
    assert [x for x, _ in curve.points] == sorted(x for x, _ in curve.points) and curve.onset == 400


def test_what_the_guard_says_between_the_lines_of_the_trainer_is_of_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "{'loss': '4.157', 'grad_norm': '1.525', 'learning_rate': '0.0009', 'epoch': '0.1562'}\n"
        "{'loss': '4.164', 'grad_norm': '1.502', 'learning_rate': '0.0008', 'epoch': '0.3125'}\n"
        "compatcheck: step 12: loss-nan: the model returned a loss that is not a number\n"
        "compatcheck: step 15: grad-norm-nan: loss 3.99, grad_norm nan\n"
        "{'loss': '3.99', 'grad_norm': 'nan', 'learning_rate': '0.0007', 'epoch': '0.4688'}\n"
        "{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '0.0006', 'epoch': '0.625'}\n",
        encoding="utf-8",
    )
    (run,) = symptoms.read(str(path)).runs
    assert run.signature.name == "loss-nan" and run.onset is not None and run.onset.step == 12


def test_curves_of_a_log_without_steps_count_its_readings(tmp_path: Path) -> None:
    records = [{k: v for k, v in record.items() if k != "step"} | {"epoch": 0.5} for record in steps((9, 0.0, 0.0))]
    run = run_of(records, tmp_path)
    assert {curve.axis for curve in run.curves} == {"reading"} and run.curves[0].onset == 1
    assert {curve.axis for curve in run_of(steps(HEALTHY), tmp_path).curves} == {"step"}


def test_runs_in_one_log_are_told_apart_and_the_last_one_is_judged(tmp_path: Path) -> None:
    masked, healthy = steps((10, 0.0, 0.0)), steps(HEALTHY)
    log = log_of([*masked, *healthy], tmp_path)
    assert [run.signature.name for run in log.runs] == ["labels-masked", "healthy"]
    assert (log.runs[1].first_line, log.runs[1].readings) == (11, 30)


def test_a_run_that_is_resumed_from_a_checkpoint_is_another_run(tmp_path: Path) -> None:
    before, after = steps((100, falling, wavy)), steps((140, falling, wavy))[80:]
    log = log_of([*before, *after], tmp_path)
    assert [(run.readings, run.signature.name) for run in log.runs] == [(100, "healthy"), (60, "healthy")]


def test_a_log_that_is_started_again_and_again_stays_small(tmp_path: Path) -> None:
    log = log_of(steps(HEALTHY)[:4] * 300 + steps((3, NAN, NAN)), tmp_path)
    assert len(log.runs) == 50 and log.runs[-1].signature.name == "loss-nan"


def test_a_step_is_taken_from_the_trainers_bar_and_not_from_that_of_an_evaluation(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    bar, line = "\r  5%|▌         | {} [00:01<00:09,  1.00it/s]", "{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.1}"
    path.write_text(bar.format("7/40") + line + "\n", encoding="utf-8")
    (run,) = symptoms.read(str(path)).runs
    assert run.onset is not None and (run.onset.step, run.onset.about) == (7, True)
    good = "{'loss': 1.5, 'grad_norm': 1.0, 'epoch': 0.05}\n"
    evaluation = bar.format("6/40") + good + bar.format("3/3") + line + "\n"
    path.write_text(evaluation, encoding="utf-8")
    (run,) = symptoms.read(str(path)).runs
    assert run.onset is not None and (run.onset.step, run.onset.epoch) == (None, 0.1)


def test_another_ranks_late_line_is_no_new_run(tmp_path: Path) -> None:
    records = steps((20, falling, wavy))
    records.insert(11, records[9])
    assert len(log_of(records, tmp_path).runs) == 1


@pytest.mark.parametrize(
    ("name", "values", "leaks"),
    [
        ("steady growth", lambda rng: [1000 + 5 * n + rng.random() for n in range(200)], True),
        ("flat with noise", lambda rng: [1000 + rng.random() * 8 for n in range(200)], False),
        ("late settling", lambda rng: [1000 + 200 * (1 - math.exp(-n / 20)) for n in range(200)], False),
        ("dying down", lambda rng: [1000 + 200 * math.log(n + 1) for n in range(200)], False),
        ("one step up", lambda rng: [1000 if n < 90 else 1500 for n in range(200)], False),
        ("alternating", lambda rng: [1000 + 100 * (n % 2) for n in range(200)], False),
        ("too few", lambda rng: [1000 + 5 * n for n in range(30)], False),
    ],
)
def test_memory_that_grows_without_end_is_told_from_what_settles(name: str, values: object, leaks: bool) -> None:
    for seed in range(5):
        assert (grows(values(random.Random(seed))) is not None) == leaks, name  # type: ignore[operator]


def test_growing_memory_in_a_log_is_a_signature_of_its_own(tmp_path: Path) -> None:
    records = [{**record, "memory": 9000 + 11 * n} for n, record in enumerate(steps((120, falling, wavy)))]
    assert run_of(records, tmp_path).signature.name == "memory-growth"


def test_the_curves_stay_small_and_keep_what_was_not_finite(tmp_path: Path) -> None:
    records = steps((20_000, falling, wavy))
    records[12_345]["loss"] = NAN
    run = run_of(records, tmp_path)
    loss = next(curve for curve in run.curves if curve.name == "loss")
    assert len(loss.points) <= 1300
    assert any(not math.isfinite(value) and step == 12_346 for step, value in loss.points)


@pytest.mark.parametrize(
    ("file", "name", "line", "about"),
    [
        ("transformers-5-labels-masked.log", "labels-masked", 13, True),
        ("transformers-4.48-labels-masked.log", "labels-masked", None, True),
        ("transformers-4.48-nan-from-step-16.log", "nan-gradients-filtered", None, True),
        ("transformers-5-nan-from-step-16-without-bar.log", "nan-gradients-filtered", None, False),
        ("transformers-5-healthy.log", "healthy", None, False),
    ],
)
def test_real_logs_of_the_trainer(file: str, name: str, line: int | None, about: bool) -> None:
    (run,) = symptoms.read(str(LOGS / file)).runs
    assert (run.signature.name, run.readings) == (name, 40)
    if run.onset:
        text = (LOGS / file).read_bytes().decode().split("\n")[(run.onset.location.line or 0) - 1]
        assert "'loss': " in text and ("nan" in text or "'0'" in text or "0.0," in text)
        assert line in (None, run.onset.location.line)
        assert run.onset.about == about
    if "16" in file and about:
        assert run.onset is not None and run.onset.step == 16


@pytest.mark.parametrize(
    ("stretches", "name", "words"),
    [
        (((5, 2.0, 1.0), (1, math.nan, 1.0), (30, 1.5, 1.0)), "loss-nan-sometimes", "not finite at 1 of 36 steps"),
        (((5, 2.0, 1.0), (3, math.nan, math.nan), (1, 1.5, 1.0)), "loss-nan-sometimes", "not finite at 3 of 9 steps"),
        (((1, math.nan, None), (1, 1.5, None)), "loss-nan-sometimes", "not finite at 1 of 2 steps"),
        (((5, 2.0, 1.0), (1, 2.0, 4.2e6), (5, 2.0, 1.0)), "grad-norm-large", "grad_norm reaches 4.2e+06"),
        (((5, 2.0, 99_000.0), (5, 1.9, 2.0)), "healthy", "healthy"),
        (((1, 2.0, 1.0),), "too-few-readings", "too few steps"),
        (((2, 2.0, 1.0),), "healthy", "healthy"),
    ],
)
def test_one_bad_step_makes_a_run_unhealthy(
    stretches: tuple[tuple[int, object, object], ...], name: str, words: str, tmp_path: Path
) -> None:
    signature = run_of(steps(*stretches), tmp_path).signature
    assert signature.name == name and words in signature.words
    assert signature.benign == (name in ("healthy", "too-few-readings"))


def test_last_healthy_step_lies_before_the_first_nan(tmp_path: Path) -> None:
    bad = [(4, 2.0, 1.0), (1, math.nan, 1.0), (6, 1.8, 1.0), (1, math.nan, 1.0), (6, 1.8, 1.0)]
    run = run_of(steps(*bad), tmp_path)
    assert run.onset is not None and run.onset.step == 5
    assert run.healthy is not None and run.healthy.step == 4


@pytest.mark.parametrize(
    "text",
    [
        "At step 10 the loss was 2.4 and after that at step 20 it is, the loss is 2.1, so I stopped.",
        "The first was good: at step 10 the loss is 2.4, fine.\nThen I changed it and at step 20 the loss is 2.1, ok.",
    ],
)
def test_sentence_is_no_healthy_run(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text(text, encoding="utf-8")
    assert [run.signature.name for run in symptoms.read(str(path)).runs] == ["too-few-readings"]
