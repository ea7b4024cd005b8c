"""Each format reads the lines that its project really writes; the values are ours."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest

from compatcheck import symptoms
from compatcheck.symptoms import _scan
from compatcheck.symptoms._reading import Reading
from compatcheck.symptoms.formats import deepspeed, mmengine, piped, plain, records, torchtune

LOGS = Path(__file__).parent / "logs"

LINES = [
    (
        records,
        "{'loss': 2.3101, 'grad_norm': 0.73, 'learning_rate': 2e-05, 'epoch': 0.01}",
        Reading(loss=2.3101, grad_norm=0.73, learning_rate=2e-05, epoch=0.01),
    ),
    (
        records,
        "{'loss': '4.164', 'grad_norm': '1.027', 'learning_rate': '0.001', 'epoch': '0.025'}",
        Reading(loss=4.164, grad_norm=1.027, learning_rate=0.001, epoch=0.025),
    ),
    (
        records,
        '{"current_steps": 10, "total_steps": 45, "loss": 1.2, "lr": 5e-05, "epoch": 0.66, "percentage": 22.22, '
        '"elapsed_time": "0:00:31", "remaining_time": "0:01:48", "vram_allocated": 2.0}',
        Reading(loss=1.2, learning_rate=5e-05, epoch=0.66, step=10, memory_mib=2048),
    ),
    (
        records,
        "{'loss': 1.04, 'token_acc': 0.7, 'grad_norm': 1.37, 'learning_rate': 1.5e-06, 'memory(GiB)': 43.5, "
        "'train_speed(iter/s)': 0.06, 'epoch': 3.7, 'global_step/max_steps': '205/270', 'percentage': '75.93%', "
        "'elapsed_time': '54m 1s'}",
        Reading(loss=1.04, grad_norm=1.37, learning_rate=1.5e-06, epoch=3.7, step=205, memory_mib=43.5 * 1024),
    ),
    (
        records,
        "{'loss': 1.17, 'grad_norm': 0.4, 'learning_rate': 2e-4, 'memory/max_active (GiB)': 9.5, 'epoch': 0.2}",
        Reading(loss=1.17, grad_norm=0.4, learning_rate=2e-4, epoch=0.2, memory_mib=9.5 * 1024),
    ),
    (
        records,
        '{"lr": 2e-05, "data_time": 0.01, "loss": 1.5, "time": 3.2, "iter": 10, "memory": 12345, "step": 10}',
        Reading(loss=1.5, learning_rate=2e-05, step=10, memory_mib=12345),
    ),
    (records, "{'eval_loss': 1.9, 'eval_runtime': 3.1, 'epoch': 1.0}", Reading(eval_loss=1.9, epoch=1.0)),
    (records, "{'train_runtime': 10.4, 'train_steps_per_second': 3.8, 'train_loss': 1.52, 'epoch': 1.0}", None),
    (records, "{'loss': 'sigmoid', 'beta': 0.1}", None),
    (
        mmengine,
        "07/15 12:03:04 - mmengine - INFO - Iter(train) [  10/3000]  lr: 1.8017e-05  eta: 2:37:01  time: 3.1510  "
        "data_time: 0.0100  memory: 21345  loss: 1.8250  tflops: 0.5  tokens_per_sec: 51.3",
        Reading(loss=1.825, learning_rate=1.8017e-05, step=10, memory_mib=21345),
    ),
    (
        mmengine,
        "2024/05/01 10:00:00 - mmengine - INFO - Epoch(train)   [2][ 20/100]  lr: 1.0e-04  loss: nan  grad_norm: nan",
        Reading(loss=math.nan, grad_norm=math.nan, learning_rate=1e-4, step=120),
    ),
    (mmengine, "07/15 12:03:04 - mmengine - INFO - Epoch(val) [1][10/10]    accuracy: 0.5", None),
    (torchtune, "Step 7 | loss:1.25 lr:2e-05 tokens_per_second_per_gpu:512.5 grad_norm:0.5 peak_memory_active:8.0 ",
     Reading(loss=1.25, learning_rate=2e-05, grad_norm=0.5, step=7, memory_mib=8192)),
    (torchtune, "1|7|Loss: 1.25:  10%|█         | 7/70 [00:01<00:09,  6.5it/s]", Reading(loss=1.25, step=7)),
    (
        piped,
        " iteration       10/  500000 | consumed samples:          80 | elapsed time per iteration (ms): 900.1 | "
        "learning rate: 1.5E-05 | global batch size:     8 | lm loss: 1.084E+01 | loss scale: 65536.0 | "
        "grad norm: 3.20 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        Reading(loss=10.84, learning_rate=1.5e-05, grad_norm=3.2, loss_scale=65536.0, step=10),
    ),
    (
        piped,
        "Training epoch 0, iteration 17/99 | lr: 2.699e-06 | global_batch_size: 128 | global_step: 17 | "
        "reduced_train_loss: 11.03 | train_step_timing in s: 12.64 | consumed_samples: 2304",
        Reading(loss=11.03, learning_rate=2.699e-06, step=17),
    ),
    (
        deepspeed,
        "[2024-09-15 00:13:28,261] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping "
        "step. Attempted loss scale: 65536, reducing to 32768",
        Reading(skipped=True, loss_scale=32768.0),
    ),
    (deepspeed, "[WARNING] [log_dist] [Rank 0] [deepspeed] OVERFLOW! Skipping step. Gradients are non-finite, weights",
     Reading(skipped=True, loss_scale=1.0)),
    (deepspeed, "[INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=6, lr=[9e-06]", Reading(went_on=True)),
    (deepspeed, "[INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=10, lr=[9e-06]", None),
    (piped, " iteration 5426/ 250000 | loss scale: 1.0 | grad norm: nan | number of nan iterations: 0 |",
     Reading(grad_norm=math.nan, loss_scale=1.0, step=5426)),
    (plain, "Epoch 0/1 | Batch 12/15582 | Train Loss nan", Reading(loss=math.nan, step=12, epoch=0)),
    (plain, "[step 10] loss=0.5 grad_norm=1.25 lr=1e-4",
     Reading(loss=0.5, grad_norm=1.25, learning_rate=1e-4, step=10)),
    (plain, "step:3, loss:5.453125", Reading(loss=5.453125, step=3)),
    (plain, "iter 40: val loss 2.5", Reading(eval_loss=2.5, step=40)),
    (plain, "Epoch 0:   3%|3         | 30/1000 [00:10<05:00,  3.1it/s, v_num=0, loss=2.375]",
     Reading(loss=2.375, step=30, epoch=0)),
    (plain, "the loss 3.5 was better with a step of that size than before", None),
    (plain, "using loss scale 65536 from the configuration", None),
    (plain, "loss weight: 0.5", None),
]  # fmt: skip


def plainly(reading: Reading | None) -> list[str] | None:
    """A reading that can be compared, NaN and all."""
    return reading and [repr(value if value is None else float(value)) for value in reading]


@pytest.mark.parametrize(("unit", "line", "expected"), LINES, ids=lambda value: getattr(value, "__name__", None))
def test_a_line_of_the_format_is_read(unit: object, line: str, expected: Reading | None) -> None:
    found = unit.read(line) if any(mark in line for mark in unit.MARKS) else None  # type: ignore[attr-defined]
    assert plainly(found) == plainly(expected)


@pytest.mark.parametrize("line", [line for unit, line, expected in LINES if expected is not None and unit is not plain])
def test_a_log_of_such_lines_is_recognised_without_being_told_the_format(line: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(f"loading\n{line}\n", encoding="utf-8")
    if "OVERFLOW" not in line and "skipped" not in line:
        (run,) = symptoms.read(str(path)).runs
        assert (run.first_line, run.last_line) in ((1, 2), (2, 2))


def test_every_format_is_found_and_what_reads_anybodys_lines_comes_last() -> None:
    names = [unit.__name__.rpartition(".")[2] for unit in _scan.line_formats()]  # type: ignore[attr-defined]
    assert names == ["deepspeed", "mmengine", "piped", "records", "torchtune", "plain"]


@pytest.mark.parametrize("indent", [2, None])
def test_a_trainer_state_is_read_in_any_layout_with_lines_and_steps(indent: int | None, tmp_path: Path) -> None:
    text = (LOGS / "trainer_state-nan-from-step-16.json").read_text(encoding="utf-8")
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(json.loads(text), indent=indent), encoding="utf-8")
    (run,) = symptoms.read(str(path)).runs
    assert run.signature.name == "nan-gradients-filtered"
    assert run.onset is not None and (run.onset.step, run.onset.about) == (16, False)
    assert run.readings == 40


def test_an_event_file_is_read_with_its_steps(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    for step in range(1, 9):
        loss, gradient = (2.0 / step, 1.0 + step / 10) if step < 5 else (0.0, math.nan)
        for tag, value in (("train/loss", loss), ("train/grad_norm", gradient)):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(Event(step=step, wall_time=float(step), summary=summary))
    writer.close()
    (path,) = tmp_path.glob("*tfevents*")
    (run,) = symptoms.read(str(path)).runs
    assert (run.signature.name, run.readings) == ("nan-gradients-filtered", 8)
    assert run.onset is not None and run.onset.step == 5


def _records_of(*records: bytes, claim: int | None = None) -> bytes:
    """An event file; the last record claims ``claim`` bytes."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    content = b""
    for position, record in enumerate(records, 1):
        length = struct.pack("<Q", claim if claim is not None and position == len(records) else len(record))
        content += length + struct.pack("<I", masked_crc32c(length)) + record
        content += struct.pack("<I", masked_crc32c(record))
    return content


@pytest.mark.parametrize("damage", ["wire", "length", "type", "shape", "text", "large"])
def test_damaged_event_keeps_earlier_readings(damage: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event

    def event(step: int, **values: float) -> Event:
        made = Event(wall_time=1.0, step=step)
        for tag, value in values.items():
            made.summary.value.add(tag=tag, simple_value=value)
        return made

    odd = event(9)
    if damage in ("type", "shape", "text"):
        tensor = odd.summary.value.add(tag="loss").tensor
        tensor.dtype = {"type": 0, "shape": 1, "text": 7}[damage]
        if damage == "shape":
            tensor.tensor_shape.dim.add(size=1 << 40)
            tensor.float_val.append(1.0)
        if damage == "text":
            tensor.string_val.append(b"password")
    elif damage == "large":
        odd.summary.value.add(tag="loss" * 30_000, simple_value=1.0)
    last = {"wire": b"\xff" * 50}.get(damage, odd.SerializeToString())
    first = [event(step, loss=2.0 / step).SerializeToString() for step in range(1, 9)]
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(_records_of(*first, last, claim=1 << 40 if damage == "length" else None))
    (run,) = symptoms.read(str(path)).runs
    assert run.readings == 8


def test_without_the_tensorboard_package_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from compatcheck.errors import InputError

    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(b"\x18\0\0\0\0\0\0\0")
    with pytest.raises(InputError, match="pip install tensorboard"):
        symptoms.read(str(path))
