"""What a log states of its environment, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compatcheck import symptoms

LOGS = Path(__file__).parent / "logs"
SETTING = "[2024-09-15 00:13:21,400] [INFO] [config.py:1003:print]   "


def facts(text: str, tmp_path: Path) -> Any:
    path = tmp_path / "train.log"
    path.write_text(text, encoding="utf-8")
    return symptoms.read(str(path)).facts


@pytest.mark.parametrize(
    ("line", "versions"),
    [
        (
            "[INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.16.4, git-hash=unknown",
            "deepspeed 0.16.4",
        ),
        ("- `transformers` version: 4.48.0", "transformers 4.48.0"),
        ("- PyTorch version: 2.5.1+cu121 (GPU)", "torch 2.5.1+cu121"),
        ("    PyTorch: 2.1.0", "torch 2.1.0"),
        ("transformers.__version__: 4.40.2, torch.__version__: 2.3.1", "transformers 4.40.2, torch 2.3.1"),
        ("this model requires transformers version 4.46 or newer", ""),
        ("transformers version >= 4.46 is needed", ""),
        ('  "transformers_version": "4.31.0",', ""),
    ],
)
def test_versions_count_where_a_line_says_plainly_whose_they_are(line: str, versions: str, tmp_path: Path) -> None:
    known = facts(f"{line}\n", tmp_path)
    expected = dict(part.split() for part in versions.split(", ")) if versions else {}
    assert known.section("distributions") == expected
    assert all(known.locations[f"distributions.{name}"].line == 1 for name in expected)


def test_deepspeeds_printed_configuration_is_read(tmp_path: Path) -> None:
    text = "".join(
        SETTING + line + "\n"
        for line in (
            "bfloat16_enabled ............. True",
            "fp16_enabled ................. False",
            "gradient_accumulation_steps .. 4",
            "train_micro_batch_size_per_gpu  2",
            "world_size ................... 8",
            "zero_config .................. stage=2 contiguous_gradients=True reduce_scatter=True "
            "reduce_bucket_size=500,000,000 use_multi_rank_bucket_allreduce=True overlap_comm=True "
            "offload_param=None offload_optimizer=DeepSpeedZeroOffloadOptimizerConfig(device='cpu', pin_memory=False)",
            "zero_optimization_stage ...... 2",
        )
    )
    training = facts(text, tmp_path).facts["training"]
    assert training == {
        "dtype": "bfloat16",
        "gradient_accumulation_steps": 4,
        "per_device_train_batch_size": 2,
        "world_size": 8,
        "deepspeed": {
            "zero_stage": 2,
            "contiguous_gradients": True,
            "reduce_scatter": True,
            "reduce_bucket_size": 500_000_000,
            "use_multi_rank_bucket_allreduce": True,
            "overlap_comm": True,
        },
    }


def test_the_trainers_summary_gives_batch_accumulation_and_processes(tmp_path: Path) -> None:
    text = """***** Running training *****
  Num examples = 1,010
  Instantaneous batch size per device = 2
  Total train batch size (w. parallel, distributed & accumulation) = 64
  Gradient Accumulation steps = 4
"""
    training = facts(text, tmp_path).facts["training"]
    assert training == {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "world_size": 8}
    parallel = text.replace("  Total", "  Training with DataParallel so batch size has been adjusted to: 16\n  Total")
    assert "world_size" not in facts(parallel, tmp_path).facts["training"]


def test_a_dump_of_training_arguments_is_read_with_its_lines() -> None:
    log = symptoms.read(str(LOGS / "transformers-4.48-labels-masked.log"))
    training = log.facts.facts["training"]
    assert training["optimizer"] == "adamw_torch" and training["gradient_checkpointing"] is False
    assert "dtype" not in training
    line = log.facts.locations["training.optimizer"].line
    assert line is not None
    assert Path(log.path).read_bytes().decode().split("\n")[line - 1].startswith("optim=")


def test_what_was_observed_becomes_facts_with_their_place() -> None:
    log = symptoms.read(str(LOGS / "trainer_state-nan-from-step-16.json"))
    observed = log.facts.facts["training"]["observed"]
    assert (observed["loss"], observed["nonfinite"], observed["onset_step"]) == (0.0, True, 16)
    assert log.facts.locations["training.observed.loss"].line == log.runs[-1].onset.location.line  # type: ignore[union-attr]
