"""What a model computes with: no dropout in evaluation, and matrix products in the type that autocast asks for.

The functions of torch that two passes call are seen through a `TorchFunctionMode`, one in training and one in
evaluation. Compiled models are left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compatcheck.integrations._samples import unwrapped
from compatcheck.integrations._training_run import TrainingRun, is_compiled, untraced
from compatcheck.integrations._watch import Alarm
from compatcheck.integrations.checks._check import QuietCheck
from compatcheck.language import gettext as _

_PRODUCTS = ("linear", "matmul", "__matmul__", "mm", "bmm", "addmm", "baddbmm", "einsum", "conv1d", "conv2d", "conv3d")
_ATTENTION = "scaled_dot_product_attention"
_MOST = 0.9
_LEAST_PRODUCTS = 4
_SKIPPED_PASSES = 1
"""Passes in training before one is watched: whatever compiles has compiled then."""


class Check(QuietCheck):
    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        self.found: list[Alarm] = []
        self.watching: Any = None
        self.passes: Counter[bool] = Counter()
        self.handles: list[Any] = []
        for root in map(unwrapped, run.models):
            self.handles.append(root.register_forward_pre_hook(untraced(self._enter), with_kwargs=True))
            self.handles.append(root.register_forward_hook(untraced(self._leave), with_kwargs=True, always_call=True))

    def pending(self) -> Iterable[Alarm]:
        found, self.found = self.found, []
        return found

    def close(self) -> Iterable[Alarm]:
        for handle in self.handles:
            handle.remove()
        self.handles = []
        if self.watching is not None:
            self.watching.__exit__(None, None, None)
            self.watching = None
        return ()

    def _enter(self, module: Any, args: Any, kwargs: Mapping[str, Any]) -> None:
        training = bool(module.training)
        self.passes[training] += 1
        due = self.passes[training] == (1 + _SKIPPED_PASSES if training else 1)
        if self.watching is not None or not due or _is_traced(module):
            return
        self.watching = _call_log()
        self.watching.root = module
        device = next((each.device.type for each in module.parameters()), "cpu")
        self.watching.entered = training and _autocasts(device)
        self.watching.__enter__()

    def _leave(self, module: Any, args: Any, kwargs: Mapping[str, Any], output: Any) -> None:
        log = self.watching
        if log is None or log.root is not module:
            return
        log.__exit__(None, None, None)
        self.watching = None
        self.found.extend(self._types(log) if module.training else self._dropout(log, module))
        if self.passes[True] > _SKIPPED_PASSES and self.passes[False]:
            self.close()

    def _types(self, log: Any) -> Iterator[Alarm]:
        total = sum(log.work.values())
        single = sum(work for (_, dtype), work in log.work.items() if dtype == "float32")
        asked = sum(work for (cast, _), work in log.work.items() if cast)
        if log.products < _LEAST_PRODUCTS or not total:
            return
        share = {dtype for _, dtype in log.work}
        self.run.notes["products"] = f"matrix products of a pass are in {', '.join(sorted(share))}"
        if (log.entered or asked >= _MOST * total) and single >= _MOST * total:
            seen = _("autocast is on, but {share} % of the work in matrix products still runs in float32").format(
                share=f"{100 * single / total:.0f}"
            )
            yield self.alarm("autocast-without-effect", seen, "setting-ignored", "slow", stops=False)

    def _dropout(self, log: Any, module: Any) -> Iterator[Alarm]:
        mixed = [name for name, each in module.named_modules() if each.training]
        if mixed:
            if log.dropped:
                self.run.unknown["dropout"] = f"{mixed[0]} is in training mode while the model is evaluated"
            return
        if log.dropped:
            name, rate = log.dropped[0]
            seen = _(
                "dropout is on in evaluation: {name} was called {count} times with a rate of {rate} while every module"
                " is in evaluation mode"
            ).format(name=name, count=len(log.dropped), rate=f"{rate:g}")
            symptoms = ("wrong-output", "lower-accuracy", "loss-differs")
            yield self.alarm("dropout-in-evaluation", seen, *symptoms, stops=False)


def _is_traced(module: Any) -> bool:
    import torch

    return is_compiled(module) or bool(torch.jit.is_tracing() or isinstance(module, torch.jit.ScriptModule))


def _call_log() -> Any:
    """A mode that notes matrix products by type and autocast, and dropout that is on; what it runs is unchanged."""
    from torch.overrides import TorchFunctionMode

    class CallLog(TorchFunctionMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.work: Counter[tuple[bool, str]] = Counter()
            self.products = 0
            self.dropped: list[tuple[str, float]] = []
            self.root: Any = None
            self.entered = False

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            output = func(*args, **kwargs)
            name = getattr(func, "__name__", "")
            if name in _PRODUCTS:
                self._add(output, args)
            elif "dropout" in name or name == _ATTENTION:
                rate = _rate(name, args, kwargs)
                if rate:
                    self.dropped.append((name, rate))
            return output

        def _add(self, output: Any, args: Any) -> None:
            dtype = str(getattr(output, "dtype", "")).removeprefix("torch.")
            inner = getattr(args[0], "shape", (1,)) if args else (1,)
            if dtype.startswith(("float", "bfloat")) and hasattr(output, "numel"):
                self.products += 1
                self.work[_autocasts(output.device.type), dtype] += output.numel() * (inner[-1] if len(inner) else 1)

    return CallLog()


def _rate(name: str, args: Any, kwargs: Mapping[str, Any]) -> float:
    """The rate of dropout that a call applies; 0.0 if none, or if that cannot be read from the call."""
    if name == _ATTENTION:
        rate = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
        return float(rate) if isinstance(rate, (int, float)) else 0.0
    rate = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    default = name != "alpha_dropout"
    training = kwargs.get("training", kwargs.get("train", args[2] if len(args) > 2 else default))
    return float(rate) if training is True and isinstance(rate, (int, float)) else 0.0


def _autocasts(kind: str) -> bool:
    """Whether autocast is on for a type of device."""
    import torch

    try:
        return bool(torch.is_autocast_enabled(kind))
    except TypeError:  # before torch 2.4 each device had a function of its own
        return bool(torch.is_autocast_enabled() if kind == "cuda" else torch.is_autocast_cpu_enabled())
