"""AdamW, gradient clipping and 8-bit optimisers: right here, and convicted with a planted defect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import run
from compatcheck.probes._criterion import verdict
from compatcheck.probes.operators import adamw, gradient_clipping
from tests.probes.inside import measured

torch = pytest.importorskip("torch")

Step = Callable[..., Any]


def coupled_decay(step: Step) -> Step:
    """L2 regularisation under the name of decoupled decay."""

    def stepped(self: Any, *args: Any) -> Any:
        for group in self.param_groups:
            decay, group["weight_decay"] = group["weight_decay"], 0.0
            for parameter in group["params"]:
                parameter.grad.add_(parameter.detach(), alpha=decay)
        step(self, *args)
        self.param_groups[0]["weight_decay"] = decay

    return stepped


def last_tensor_forgotten(step: Step) -> Step:
    def stepped(self: Any, *args: Any) -> Any:
        self.param_groups[0]["params"][-1].grad = None
        return step(self, *args)

    return stepped


def no_bias_correction(step: Step) -> Step:
    def stepped(self: Any, *args: Any) -> Any:
        step(self, *args)
        for state in self.state.values():
            state["step"].fill_(1000.0)

    return stepped


@pytest.mark.parametrize("seed", range(3))
def test_adamw_is_right_here_in_every_implementation(seed: int) -> None:
    found = measured(adamw, seed=seed)
    outcome, why = adamw.judge(found)
    assert outcome == "pass", why
    variants = {row["variant"] for row in found["rows"]}
    assert {"default", "for loop", "foreach"} <= variants
    assert found["facts"]["moved_in_50_steps"]["bfloat16"] == 0.0
    assert found["facts"]["after_a_zero_gradient"]["float16"] != found["facts"]["after_a_zero_gradient"]["float16"]


def test_corrections_in_float32_are_healthy_and_a_wrong_step_count_is_not() -> None:
    """Fused and capturable count their steps in float32; an H200 erred 8.1 times the bound that left this out."""
    given = adamw._draw({"seed": 0}, "float32", "cpu", "contiguous")

    def verdicts(lost: int) -> dict[str, str]:
        def run(_: adamw.Given, options: Mapping[str, bool]) -> list[Any]:
            steps = given.gradients[lost:] if options.get("fused") else given.gradients
            return adamw._written_out(given, steps, "cpu", float32_steps=options.get("fused", False))

        rows = adamw._rows("contiguous", given, run, {}, {})
        return {row["variant"]: verdict(row["theta"], row["rho"]) for row in rows}

    assert set(verdicts(0).values()) == {"pass"}
    assert verdicts(1) == {**verdicts(0), "fused": "fail"}


@pytest.mark.parametrize("fault", [coupled_decay, last_tensor_forgotten, no_bias_correction])
def test_a_wrong_step_is_convicted_beside_the_recurrence_written_out(
    fault: Callable[[Step], Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.optim.AdamW, "step", fault(torch.optim.AdamW.step))
    outcome, why = adamw.judge(measured(adamw))
    assert (outcome, "passing there: written out" in why) == ("fail", True), why


def test_a_fused_step_that_takes_an_inf_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this torch has no gradient scaler for CPUs")
    monkeypatch.setattr(
        torch.amp.GradScaler, "_maybe_opt_step", lambda self, optimizer, *rest, **kept: optimizer.step()
    )
    outcome, why = adamw.judge(measured(adamw))
    assert outcome == "fail" and "are not finite (an inf under a GradScaler" in why


def test_transposed_gradients_are_judged_where_they_are_asked_for() -> None:
    """torch 2.4.1 to 2.13.0: the fused CPU kernel reads them in the wrong order."""
    found = measured(adamw, transposed_gradients=True)
    outcome, why = adamw.judge(found)
    if not any(row["variant"] == "fused" for row in found["rows"]):
        pytest.skip("this torch has no fused kernel for CPUs")
    assert outcome in ("pass", "fail")
    assert outcome == "pass" or "transposed gradients, fused" in why


@pytest.mark.parametrize("seed", range(3))
def test_clipping_is_right_here(seed: int) -> None:
    found = measured(gradient_clipping, seed=seed)
    outcome, why = gradient_clipping.judge(found)
    assert outcome == "pass", why
    facts = found["facts"]
    assert facts["inf_becomes"] != facts["inf_becomes"]
    assert (facts["the_rest_becomes"], facts["float16_gradient_becomes"]) == (0.0, 0.0)


def test_a_norm_that_misses_a_tensor_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    clip = torch.nn.utils.clip_grad_norm_
    partial = lambda parameters, *args, **options: clip(list(parameters)[:-1], *args, **options)  # noqa: E731
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", partial)
    outcome, why = gradient_clipping.judge(measured(gradient_clipping))
    assert (outcome, "passing there: plain formula" in why) == ("fail", True), why


def test_an_inf_that_passes_in_silence_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    clip = torch.nn.utils.clip_grad_norm_
    silent = lambda *args, error_if_nonfinite=False, foreach=None, **options: clip(*args, **options)  # noqa: E731
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", silent)
    outcome, why = gradient_clipping.judge(measured(gradient_clipping))
    assert outcome == "fail" and "although the norm is inf" in why, why


def test_both_run_in_a_child(stack: Target) -> None:
    for name in ("adamw", "gradient_clipping"):
        result = run(name, stack, {"device": "cpu"})
        assert result.outcome == "pass", result.why
