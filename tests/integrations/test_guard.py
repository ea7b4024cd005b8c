"""The guard in loops of the user's own on a CPU: each planted fault is named, and a healthy loop costs little."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F
from torch import nn

from compatcheck.errors import CompatcheckError
from compatcheck.integrations.guard import Guard, TrainingStopped

pytestmark = pytest.mark.stack

QUIET: dict[str, Any] = {"check": False, "memory": False, "every": 1, "report": None}


def network(*middle: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), *middle, nn.Linear(16, 4))


def train(model: nn.Module, optimizer: Any, guard: Guard, steps: int = 8, act: Any = None) -> list[str]:
    for number in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(8, 12)), torch.randint(0, 4, (8,)))
        loss.backward()
        if act is not None:
            act(number)
        optimizer.step()
        guard.step(loss)
    guard.close()
    return [alarm.signature for alarm in guard.alarms]


def test_healthy_loop_raises_no_alarm_and_is_judged() -> None:
    model = network(nn.Dropout(0.1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, **QUIET)
    assert train(model, optimizer, guard) == []
    assert guard.notes["parameters"] == "4 of 4 trained parameters that were read changed"
    assert guard.notes["gradients"] == "gradients are cleared between steps"
    assert guard.notes["trainable"].startswith("276 of 276 elements") and guard.unknown == {}


def test_hooks_are_gone_after_close() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, Guard(model, optimizer, **QUIET), steps=2)
    assert not model._forward_hooks and not model._forward_pre_hooks
    assert not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks
    assert not any(each._backward_hooks for each in model.parameters())


def test_step_without_effect_is_named() -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, **QUIET)
    before: list[torch.Tensor] = []

    def restore(number: int) -> None:
        with torch.no_grad():
            before.extend(each.clone() for each in model.parameters()) if not before else None
            for own, kept in zip(model.parameters(), before):
                own.copy_(kept)

    for number in range(6):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 12)), torch.randint(0, 4, (8,))).backward()
        restore(number)
        optimizer.step()
        restore(number)
    assert [alarm.signature for alarm in guard.alarms] == ["nothing-changes"]


def test_head_replaced_after_optimizer_is_named() -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model[2] = nn.Linear(16, 4)
    assert train(model, optimizer, Guard(model, optimizer, **QUIET)) == ["parameters-outside-optimizer"]


def test_parameter_that_one_hook_restores_is_named() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = Guard(model, optimizer, **QUIET)
    kept = model[0].weight.detach().clone()
    optimizer.register_step_post_hook(lambda *_: model[0].weight.data.copy_(kept))
    assert train(model, optimizer, guard) == ["parameters-do-not-change"]
    assert "0.weight" in guard.alarms[0].seen


def test_parameters_without_gradient_are_named_and_stop() -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, on="stop", **QUIET)
    with pytest.raises(TrainingStopped, match="no-gradient"):
        train(model, optimizer, guard, act=lambda number: optimizer.zero_grad())
    assert not optimizer._optimizer_step_pre_hooks


def test_dropout_in_evaluation_is_named() -> None:
    class Careless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(12, 16), nn.Linear(16, 4)

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return self.last(F.dropout(self.first(batch), 0.2))

    model = Careless()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, **QUIET)
    model.eval()
    model(torch.randn(4, 12))
    model.train()
    assert train(model, optimizer, guard) == ["dropout-in-evaluation"]


@pytest.mark.parametrize(("asked", "told"), [("full", ["trainable-fraction"]), (0.2, []), (None, [])])
def test_fraction_that_trains_is_held_against_what_was_asked(asked: Any, told: list[str]) -> None:
    model = network()
    model[0].requires_grad_(False)
    optimizer = torch.optim.AdamW(model[2].parameters(), lr=1e-3)
    assert train(model, optimizer, Guard(model, optimizer, trainable=asked, **QUIET)) == told


def test_nan_of_a_loss_is_named_with_its_explanations_in_a_report(tmp_path: Path, capsys: Any) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = tmp_path / "out" / "guard.md"
    guard = Guard(model, optimizer, memory=False, every=1, report=str(path), fail_on="confirmed")

    def poison(number: int) -> None:
        if number == 2:
            model[0].weight.data.fill_(float("nan"))

    assert train(model, optimizer, guard, act=poison)[0] == "loss-nan"
    told = capsys.readouterr().err
    assert "compatcheck: step 4: loss-nan: loss nan" in told and f"compatcheck:   report: {path}" in told
    assert path.read_text(encoding="utf-8").startswith("# step 4: loss-nan")


def test_ignored_signature_raises_nothing() -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, ignore=["no-gradient"], **QUIET)
    assert train(model, optimizer, guard, act=lambda number: optimizer.zero_grad()) == []


def test_failing_check_is_told_once_and_training_goes_on(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from compatcheck.integrations.checks import parameters

    def fail(*_: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(parameters.Check, "_rows", fail)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, **QUIET)
    assert train(model, optimizer, guard) == [] and guard.unknown == {"parameters": "broken"}
    assert capsys.readouterr().err.count("the guard's check parameters failed: broken") == 1


@pytest.mark.parametrize("options", [{"on": "halt"}, {"share": 0}, {"trainable": "most"}, {"window": 2}])
def test_option_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(CompatcheckError, match="setting up the guard"):
        Guard(network(), None, **options)


class Language(nn.Module):
    """A language model that returns its loss, in one of several forms."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.table, self.head = nn.Embedding(40, 16), nn.Linear(16, 40)

    def forward(self, input_ids: Any, labels: Any, attention_mask: Any = None) -> dict[str, Any]:
        logits = self.head(self.table(input_ids))
        skip = {"right": 1, "twice": 2, "none": 0}[self.form]
        scores, targets = logits[:, : logits.shape[1] - skip], labels[:, skip:]
        loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=-100)
        return {"loss": loss, "logits": logits}


class LanguageForCausalLM(Language):
    pass


@pytest.mark.parametrize(
    ("form", "told"), [("right", []), ("twice", ["labels-shifted-twice"]), ("none", ["labels-not-shifted"])]
)
def test_loss_is_computed_again_from_logits_and_labels(form: str, told: list[str]) -> None:
    torch.manual_seed(0)
    model = LanguageForCausalLM(form)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, **QUIET)
    for _ in range(4):
        tokens = torch.randint(0, 40, (2, 9))
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens)["loss"].backward()
        optimizer.step()
    assert [alarm.signature for alarm in guard.alarms] == told


def test_labels_of_padding_are_named() -> None:
    model = LanguageForCausalLM("right")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, **QUIET)
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 4:] = 0
    for _ in range(4):
        tokens = torch.randint(1, 40, (2, 9)) * mask
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens, attention_mask=mask)["loss"].backward()
        optimizer.step()
    assert [alarm.signature for alarm in guard.alarms] == ["padding-in-labels"]


def test_layer_initialised_again_after_loading_is_named(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 40}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 32}
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads)).save_pretrained(tmp_path)
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path)
    nn.init.normal_(model.model.layers[1].mlp.up_proj.weight, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, **QUIET)
    tokens = torch.randint(0, 40, (2, 9))
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    assert [alarm.signature for alarm in guard.alarms] == ["weights-not-loaded"]
    assert "model.layers.1.mlp.up_proj.weight" in guard.alarms[0].seen


def test_checks_take_their_share_of_a_step_once_the_first_are_over() -> None:
    model = network(nn.Linear(16, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, **{**QUIET, "every": 10})
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 12)), torch.randint(0, 4, (8,))).backward()
        time.sleep(0.02)
        optimizer.step()
    elapsed = time.perf_counter() - guard.began
    looks, _last = guard.looks[id(optimizer)]
    assert 5 <= looks <= 5 + 60 // guard.every
    assert looks == 5 or guard.spent <= 2 * guard.share * elapsed
