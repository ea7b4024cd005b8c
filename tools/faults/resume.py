"""Faults of saving and resuming: state that is lost, kept too narrow, or given to another parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tools.faults._plant import Fault, Plant, replaced

PROBE = "optimizer_resume"
F32 = {"dtype": "float32"}


def loaded(change: Callable[[Any], None]) -> Plant:
    """``change(optimizer)`` after every loading of an optimizer's state."""

    @contextmanager
    def plant() -> Iterator[None]:
        import torch

        def make(original: Any) -> Any:
            def candidate(self: Any, state: Any) -> Any:
                found = original(self, state)
                change(self)
                return found

            return candidate

        with replaced(torch.optim.Optimizer, "load_state_dict", make):
            yield

    return plant


def tensors(optimizer: Any, *names: str) -> Iterator[Any]:
    for state in optimizer.state.values():
        yield from (state[name] for name in names if name in state)


def second_moment_lost(optimizer: Any) -> None:
    for moment in tensors(optimizer, "exp_avg_sq"):
        moment.zero_()


def step_count_lost(optimizer: Any) -> None:
    for state in optimizer.state.values():
        if "step" in state:
            state["step"] = 0 * state["step"]


def moments_in_bfloat16(optimizer: Any) -> None:
    for moment in tensors(optimizer, "exp_avg", "exp_avg_sq"):
        moment.copy_(moment.bfloat16())


def moments_exchanged(optimizer: Any) -> None:
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    first, last = parameters[0], parameters[-2]
    states = optimizer.state
    if first in states and first.shape == last.shape:
        states[first], states[last] = states[last], states[first]


def one_row_off(optimizer: Any) -> None:
    for moment in tensors(optimizer, "exp_avg"):
        moment[0] *= 1.01


def momentum_lost(optimizer: Any) -> None:
    for momentum in tensors(optimizer, "momentum_buffer"):
        momentum.zero_()


def rate_lost(optimizer: Any) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group.get("initial_lr", group["lr"])


def decay_lost(optimizer: Any) -> None:
    for group in optimizer.param_groups:
        group["weight_decay"] = 0.0


def largest_second_moment_lost(optimizer: Any) -> None:
    for moment in tensors(optimizer, "max_exp_avg_sq"):
        moment.zero_()


def scales_of_state_lost(optimizer: Any) -> None:
    for scale in tensors(optimizer, "absmax1"):
        scale.copy_(scale.roll(1))


def eight_bit_scales_shifted() -> AbstractContextManager[None]:
    from bitsandbytes.optim.optimizer import Optimizer8bit

    def make(original: Any) -> Any:
        def candidate(self: Any, state: Any, *args: Any, **options: Any) -> Any:
            found = original(self, state, *args, **options)
            scales_of_state_lost(self)
            return found

        return candidate

    return replaced(Optimizer8bit, "load_state_dict", make)


def schedule_begins_anew() -> AbstractContextManager[None]:
    import torch

    schedules = torch.optim.lr_scheduler
    owner = getattr(schedules, "LRScheduler", schedules._LRScheduler)

    def make(original: Any) -> Any:
        return lambda self, state: original(self, {**state, "last_epoch": 0})

    return replaced(owner, "load_state_dict", make)


@contextmanager
def random_state_forgotten() -> Iterator[None]:
    import torch

    with replaced(torch, "set_rng_state", lambda original: lambda state: None):
        yield


def planted(name: str, change: Callable[[Any], None], quick: bool = False, needs: tuple[str, ...] = ()) -> Fault:
    return Fault(f"{name} on resuming", PROBE, loaded(change), F32, needs=needs, quick=quick)


FAULTS = (
    planted("second moment lost", second_moment_lost, quick=True),
    planted("step count lost", step_count_lost),
    planted("moments kept in bfloat16", moments_in_bfloat16),
    planted("moments of two parameters exchanged", moments_exchanged),
    planted("one row of the first moment 1 % too large", one_row_off),
    planted("momentum of SGD lost", momentum_lost),
    planted("first learning rate set again", rate_lost),
    planted("weight decay lost", decay_lost),
    planted("largest second moment of AMSGrad lost", largest_second_moment_lost),
    Fault("scales of 8-bit state shifted by a block", PROBE, eight_bit_scales_shifted, F32, needs=("bitsandbytes",)),
    Fault("scheduler begins anew on resuming", PROBE, schedule_begins_anew, F32),
    Fault("random state forgotten on resuming", PROBE, random_state_forgotten, F32, needs=("accelerate",)),
)
