"""The formulas behind the probes of TRL's trainers, which the installed release need not have."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import pytest

from compatcheck.probes._criterion import Unusable, judge_rows

DEFAULTS = ("completion_only_loss", "disable_dropout", "packing_strategy")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from compatcheck.probes.training import _trl, trl_dpo, trl_grpo, trl_reward, trl_sft  # noqa: E402


def exact(loss: _trl.Loss, scores: bool = False) -> _trl.Step:
    return _trl.written_out(_trl.model(0, scores=scores), loss, True)


def test_supervised_formula_is_the_loss_of_the_model() -> None:
    _, learned = trl_sft._data("texts", 0)
    model = _trl.model(0)
    told = exact(partial(trl_sft._loss, learned=learned))
    ids = torch.zeros(len(learned), max(len(tokens) for tokens, _ in learned), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (tokens, _) in enumerate(learned):
        ids[row, : len(tokens)], mask[row, : len(tokens)] = torch.tensor(tokens), 1
    loss = model(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss
    assert told.loss == pytest.approx(float(loss.detach()), rel=1e-5)


def test_completions_start_after_their_prompts() -> None:
    rows, learned = trl_sft._data("completions", 0)
    for row, (tokens, start) in zip(rows, learned):
        assert tokens[start:] == _trl.ids_of(row["completion"]) and tokens[-1] == _trl.END_ID


def test_equal_models_have_no_preference() -> None:
    pairs = [trl_dpo.Pair([5, 6], [7, 8, 2], [9, 2])]
    told = exact(partial(trl_dpo._loss, reference=_trl.model(0), pairs=pairs))
    assert told.loss == pytest.approx(float(torch.tensor(2.0).log()))


def test_reward_formula_is_antisymmetric() -> None:
    texts = [{"chosen": "w1 w2 </s>", "rejected": "w3 </s>"}]
    swapped = [{"chosen": "w3 </s>", "rejected": "w1 w2 </s>"}]
    one, other = (exact(partial(trl_reward._loss, texts=each), scores=True).loss for each in (texts, swapped))
    assert torch.tensor([-one, -other]).exp().sum().item() == pytest.approx(1.0)


def test_answers_of_equal_reward_have_no_advantage() -> None:
    scored = [("p", f"a{place}", 1.0) for place in range(trl_grpo.GROUP)]
    scored += [("q", f"b{place}", float(place)) for place in range(trl_grpo.GROUP)]
    found = trl_grpo._advantages(scored)
    assert found["p", "a0"] == 0 and found["q", "b3"] == pytest.approx(1.1618, abs=1e-3)


def test_a_wrong_gradient_convicts_and_the_right_one_passes() -> None:
    loss = partial(trl_sft._loss, learned=trl_sft._data("texts", 0)[1])
    right = _trl.written_out(_trl.model(0), loss, False)
    halved = right._replace(gradients={name: value / 2 for name, value in right.gradients.items()})
    lost = right._replace(gradients=dict(list(right.gradients.items())[1:]))
    nowhere = right._replace(loss=float("nan"))
    outcomes = {}
    for name, told in {"right": right, "halved": halved, "lost": lost, "nowhere": nowhere}.items():
        outcomes[name] = judge_rows(_trl.compared("batch", told, _trl.model(0), [loss]))
    assert outcomes["right"][0] == "pass"
    assert {outcomes[name][0] for name in ("halved", "lost", "nowhere")} == {"fail"}
    assert "0.5 times the right length" in outcomes["halved"][1] and "get no gradient" in outcomes["lost"][1]


def test_a_nearer_formula_counts() -> None:
    learned = trl_sft._data("texts", 0)[1]
    right, other = (partial(trl_sft._loss, learned=each) for each in (learned, learned[1:]))
    told = _trl.written_out(_trl.model(0), right, False)
    assert judge_rows(_trl.compared("batch", told, _trl.model(0), [other, right]))[0] == "pass"


def test_the_direction_of_the_gradient_chooses_the_formula() -> None:
    learned = trl_sft._data("texts", 0)[1]
    right, other = (partial(trl_sft._loss, learned=each) for each in (learned, learned[1:]))
    told = _trl.written_out(_trl.model(0), right, False)
    fourfold = told._replace(gradients={name: value * 4 for name, value in told.gradients.items()})
    rows = _trl.compared("batch", fourfold, _trl.model(0), [other, right])
    assert rows[0]["ratio"] == pytest.approx(4) and rows[1]["theta"] < 1


def test_trainer_that_raises_fails() -> None:
    def raises() -> _trl.Row:
        raise FileNotFoundError("no cache")

    outcome, why = judge_rows(_trl.measured("batch", 0, raises)["rows"])
    assert outcome == "fail" and "raised FileNotFoundError: no cache" in why


def test_model_that_cannot_be_built_is_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    def refuse(config: object) -> None:
        raise TypeError("argument of type 'NoneType' is not iterable")

    monkeypatch.setattr(transformers, "LlamaForCausalLM", refuse)
    with pytest.raises(Unusable, match="a Llama cannot be built: TypeError"):
        _trl.measured("batch", 0, lambda: {"model": _trl.model(0)})


def test_settings_go_where_a_release_takes_them() -> None:
    class Config:
        def __init__(self, output_dir: str, use_cpu: bool, beta: float = 0.0) -> None:
            self.beta = beta

    class Trainer:
        def __init__(self, args: Config, model: Any, processing_class: Any, packing: bool = False) -> None:
            self.given = (args.beta, model, processing_class, packing)

    settings = {"output_dir": "x", "beta": 0.5, "packing": True, "unknown": 1}
    made = _trl.made(Trainer, Config, settings, ("packing",), model="m", tokenizer="t", peft_config=None)
    assert made.given == (0.5, "m", "t", True)
    with pytest.raises(_trl.Refused, match="no unknown"):
        _trl.made(Trainer, Config, settings, ("unknown",), model="m", tokenizer="t")


@pytest.mark.parametrize("unit", [trl_sft, trl_dpo, trl_reward, trl_grpo])
def test_every_setting_that_a_case_needs_is_one_it_sets(unit: Any) -> None:
    for name, trial in unit.TRIALS.items():
        assert set(trial.needs) <= {*trial.settings, *DEFAULTS}, name
    assert "cases" in (inspect.getdoc(unit) or "")
