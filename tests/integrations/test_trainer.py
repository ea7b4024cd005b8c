"""The guard in the real Trainer on a CPU: planted faults are named at their step, healthy runs are left alone."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from compatcheck.environment import Environment
from compatcheck.integrations import _passes
from compatcheck.integrations._running import with_trainer
from compatcheck.integrations.transformers import CompatGuard, TrainingRefused

pytestmark = pytest.mark.stack

STEPS = 12
Rows = list[dict[str, Any]]
STILL: dict[str, Any] = {"check": False, "memory": False, "every": 1}


def model(**options: Any) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 32}
    return LlamaForCausalLM(LlamaConfig(**{**sizes, **heads, **options}))


def rows(count: int = STEPS) -> Rows:
    tokens = torch.randint(0, 32, (count, 8), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": row, "labels": row.clone()} for row in tokens]


def train(
    guard: CompatGuard, folder: Path, data: Rows | None = None, net: Any = None, *more: Any, **options: Any
) -> Any:
    stated = {"per_device_train_batch_size": 1, "logging_steps": 1, "max_steps": STEPS, **options}
    arguments = TrainingArguments(
        output_dir=str(folder), report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, seed=3, **stated
    )
    trainer = Trainer(net or model(), arguments, train_dataset=data or rows(), callbacks=[guard, *more])
    trainer._get_train_sampler = lambda *_: None
    trainer.train()
    return trainer


def signatures(guard: CompatGuard) -> list[tuple[str, int]]:
    return [(alarm.signature, alarm.step) for alarm in guard.alarms]


class Saboteur(TrainerCallback):
    """Does something before one step, or before every one."""

    def __init__(self, act: Any, at: int | None = None) -> None:
        self.act, self.at = act, at

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.at is None or state.global_step + 1 == self.at:
            self.act(kwargs["model"])


def poison(net: Any) -> None:
    with torch.no_grad():
        next(net.parameters()).fill_(float("nan"))


def test_a_healthy_run_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guard = CompatGuard(on="stop", check=False, every=1, window=9)
    trainer = train(guard, tmp_path, rows(60), max_steps=60)
    assert signatures(guard) == [] and trainer.state.global_step == 60
    assert "step" not in capsys.readouterr().err


def test_an_injected_nan_is_named_at_its_step_and_ends_the_run(tmp_path: Path, capsys: Any) -> None:
    guard = CompatGuard(on="stop", **STILL)
    trainer = train(guard, tmp_path, None, None, Saboteur(poison, at=5))
    assert signatures(guard)[0] == ("loss-nan", 5) and trainer.state.global_step == 5
    told = capsys.readouterr().err
    assert "compatcheck: step 5: loss-nan" in told
    assert told.splitlines()[-1] == "compatcheck: the training ends after this step because of loss-nan"


def test_a_guard_that_warns_tells_each_signature_once_and_lets_the_run_go_on(tmp_path: Path, capsys: Any) -> None:
    guard = CompatGuard(on="warn", **STILL)
    trainer = train(guard, tmp_path, None, None, Saboteur(poison, at=5))
    assert trainer.state.global_step == STEPS
    assert capsys.readouterr().err.count("loss-nan:") == 1


def test_a_nan_that_the_filter_hides_is_seen_between_two_logs(tmp_path: Path) -> None:
    guard = CompatGuard(on="stop", **STILL)
    trainer = train(guard, tmp_path, None, None, Saboteur(poison, at=5), logging_steps=500)
    assert signatures(guard) == [("loss-nan", 5)] and trainer.state.global_step == 5


def test_without_a_hook_the_logs_alone_still_show_the_nan(tmp_path: Path) -> None:
    class Deaf(CompatGuard):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            super().on_train_begin(args, state, control, **{**kwargs, "model": None, "optimizer": None})

    guard = Deaf(on="stop", **STILL)
    train(guard, tmp_path, None, None, Saboteur(poison, at=5))
    assert [(name, step) for name, step in signatures(guard)] == [("grad-norm-nan", 5)]


def test_one_all_masked_batch_is_told_and_explained(tmp_path: Path, capsys: Any) -> None:
    data = rows()
    data[6]["labels"] = torch.full((8,), -100)
    guard = CompatGuard(on="stop", memory=False, every=1, fail_on="confirmed")
    trainer = train(guard, tmp_path, data)
    assert signatures(guard) == [("labels-all-masked", 7)] and trainer.state.global_step == STEPS
    assert "CC-2024-0005 Every label is masked" in capsys.readouterr().err


@pytest.mark.parametrize("index", ["", "[]", '{"format": 1', "{}", None], ids=str)
def test_a_damaged_matrix_is_told_in_a_line_and_the_watch_goes_on(
    index: str | None, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compatcheck.matrix.loading._COMPILED", str(tmp_path))
    about = {"format": 1, "revision": "x", "entries": 1, "date": "2026-11-21"}
    keys = {**about, "environ": None, "guards": [], "unguarded": {}, "of_model": []}
    (tmp_path / "index.json").write_text(json.dumps(keys) if index is None else index, encoding="utf-8")
    for name in ("conditions", "entries", "patterns"):
        (tmp_path / f"{name}.jsonl").write_text("", encoding="utf-8")
    guard = CompatGuard(on="stop", memory=False, every=1)
    trainer = train(guard, tmp_path, None, None, Saboteur(poison, at=5))
    told = capsys.readouterr().err.splitlines()
    assert "the guard could not judge this environment" in told[0]
    assert told[1:] == [
        "compatcheck: step 5: loss-nan: the model returned a loss that is not a number",
        "compatcheck: the training ends after this step because of loss-nan",
    ]
    assert trainer.state.global_step == 5


def test_a_run_with_nothing_but_masked_labels_is_ended(tmp_path: Path) -> None:
    data = [{**row, "labels": torch.full((8,), -100)} for row in rows()]
    guard = CompatGuard(on="stop", **STILL)
    trainer = train(guard, tmp_path, data)
    assert signatures(guard)[0] == ("labels-all-masked", 1) and trainer.state.global_step <= 3


def test_a_leak_of_tensors_is_told_and_ends_the_run(tmp_path: Path) -> None:
    kept: list[Any] = []
    guard = CompatGuard(on="stop", check=False, every=1, window=10)
    leak = Saboteur(lambda net: kept.append(torch.ones(2 << 20)))
    trainer = train(guard, tmp_path, rows(60), None, leak, max_steps=60)
    assert [name for name, _ in signatures(guard)] == ["memory-growth"] and trainer.state.global_step < 60
    kib = int(guard.alarms[0].seen.removeprefix("memory grows by ").split()[0])
    assert kib == pytest.approx(8 << 10, rel=0.2)


def test_the_check_refuses_what_cannot_train(tmp_path: Path, capsys: Any) -> None:
    peft = pytest.importorskip("peft")
    net = model().half()
    adapted = peft.get_peft_model(net, peft.LoraConfig(target_modules=["q_proj"]), autocast_adapter_dtype=False)
    with pytest.raises(TrainingRefused, match="CC-2024-0042"):
        train(CompatGuard(on="stop", memory=False), tmp_path, None, adapted)
    assert "fix" in capsys.readouterr().err


def test_the_facts_are_those_of_the_objects_in_use(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    adapted = peft.get_peft_model(model().bfloat16(), peft.LoraConfig(target_modules=["q_proj"], r=4))
    guard = CompatGuard(memory=False, fail_on="confirmed")
    options = {"gradient_accumulation_steps": 2, "max_steps": 2, "bf16": True}
    train(guard, tmp_path, None, adapted, **options)
    training, known = guard.environment.facts["training"], guard.environment.facts["model"]
    assert training["method"] == "lora" and training["lora"]["target_modules"] == ["q_proj"]
    assert (training["dtype"], training["load_dtype"]) == ("bfloat16", "bfloat16")
    assert training["lora"]["autocast_adapter_dtype"] is True and training["deepspeed"] is None
    assert training["attention"] == "sdpa" and training["gradient_accumulation_steps"] == 2
    assert known["type"] == "llama" and known["traits"] == [] and known["remote_code"] is False
    assert guard.environment.facts["distributions"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert guard.alarms == []


def test_the_deepspeed_configuration_of_the_trainer_is_read(tmp_path: Path) -> None:
    arguments = TrainingArguments(output_dir=str(tmp_path), report_to=[], use_cpu=True)
    zero = {"stage": 2, "overlap_comm": True, "contiguous_gradients": True}
    arguments.hf_deepspeed_config = SimpleNamespace(config={"zero_optimization": zero, "bf16": {"enabled": True}})
    environment = with_trainer(Environment({}), arguments, model(), None)
    deepspeed = environment.facts["training"]["deepspeed"]
    assert (deepspeed["zero_stage"], deepspeed["overlap_comm"]) == (2, True)
    assert environment.facts["training"]["dtype"] == "bfloat16"
    assert not [place for place in environment.locations.values() if "deepspeed.json" in place.file]


def test_checkpointing_that_was_asked_for_and_is_off_is_a_trait(tmp_path: Path) -> None:
    net = model()
    net.gradient_checkpointing_enable = lambda *_, **__: None
    guard = CompatGuard(on="warn", memory=False)
    train(guard, tmp_path, None, net, max_steps=1, gradient_checkpointing=True)
    assert guard.environment.facts["model"]["traits"] == ["gradient-checkpointing-noop"]


def test_a_failure_of_the_guard_is_one_line_and_the_training_goes_on(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": 3}', encoding="utf-8")
    net = model()
    net.config._name_or_path = str(folder)
    guard = CompatGuard(on="stop", memory=False)
    trainer = train(guard, tmp_path, None, net, max_steps=2)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("compatcheck:")]
    assert trainer.state.global_step == 2 and len(told) == 1 and "config.json" in told[0]


def test_another_rank_than_the_first_is_silent_and_what_it_alone_sees_does_not_stop_it(
    tmp_path: Path, capsys: Any
) -> None:
    class OfMany(CompatGuard):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            super().on_train_begin(args, state, control, **kwargs)
            assert self.guard is not None
            self.guard.book.alone = self.guard.book.speaks = False

    guard = OfMany(on="stop", **STILL)
    trainer = train(guard, tmp_path, None, None, Saboteur(poison, at=5), logging_steps=4)
    assert signatures(guard)[0] == ("loss-nan", 5)
    assert trainer.state.global_step == 8 and "compatcheck: step" not in capsys.readouterr().err


def test_the_hook_is_gone_when_the_training_is_over(tmp_path: Path) -> None:
    net = model()
    train(CompatGuard(**STILL), tmp_path, None, net, max_steps=1)
    assert not net._forward_hooks


def test_a_pass_is_watched_for_a_small_part_of_a_millisecond() -> None:
    net = model()
    watch = _passes.ForwardWatch(net)
    output, labels = {"loss": torch.tensor(1.0)}, torch.ones(4, 512, dtype=torch.long)
    started = time.perf_counter()
    for _ in range(200):
        watch._note(net, (), {"labels": labels}, output)
    watch.drain()
    _passes.process_bytes()
    each = (time.perf_counter() - started) / 200
    print(f"{each * 1e6:.0f} microseconds a pass", file=sys.stderr)
    assert each < 2e-3


def test_optimizer_of_other_parameters_ends_the_run(tmp_path: Path, capsys: Any) -> None:
    class Mistaken(Trainer):
        def create_optimizer(self, *_: Any) -> Any:
            self.optimizer = torch.optim.AdamW(model().parameters(), lr=1e-3)
            return self.optimizer

    guard = CompatGuard(on="stop", **STILL)
    arguments = TrainingArguments(
        output_dir=str(tmp_path), report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, max_steps=STEPS
    )
    trainer = Mistaken(model(), arguments, train_dataset=rows(), callbacks=[guard])
    trainer.train()
    assert signatures(guard) == [("optimizer-holds-other-parameters", 4)] and trainer.state.global_step == 4
    assert "nothing" not in capsys.readouterr().out
