"""Weights are those of the checkpoint they were loaded from.

Read before the first step, from the safetensors files of the folder that the configuration names. A weight counts as
re-initialised only if its values are unrelated to the file's and spread as those of a fresh layer do, while most others
equal theirs: adapters that were merged and models that were trained since stay close to their file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compatcheck.integrations._samples import is_readable, local
from compatcheck.integrations._training_run import TrainingRun
from compatcheck.integrations._watch import Alarm
from compatcheck.integrations.checks._check import QuietCheck
from compatcheck.language import gettext as _

_VALUES = 64
_MOST_TENSORS = 256
_UNRELATED = 0.3
_SPREAD = 1.5
_MOST_EQUAL = 0.5
_LEAST_TENSORS = 4
_MOST_NAMES = 3


class Check(QuietCheck):
    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        self.done = False

    def before_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        if self.done:
            return
        self.done = True
        for root in self.run.roots:
            base = root.get_base_model() if hasattr(root, "get_base_model") else root
            folder = getattr(getattr(base, "config", None), "_name_or_path", None)
            files = _files(folder) if isinstance(folder, str) else []
            if files and all(is_readable(each) for each in list(base.parameters())[:8]):
                yield from self._compare(base, files)

    def _compare(self, base: Any, files: list[str]) -> Iterator[Alarm]:
        try:
            from safetensors import safe_open
        except ImportError:
            self.run.unknown["weights"] = "safetensors is not installed"
            return
        held = {name.replace(".base_layer", ""): each for name, each in base.named_parameters()}
        equal, unrelated = 0, []
        for path in files:
            with safe_open(path, framework="pt") as stream:
                names = list(stream.keys())
                for name in names[:: 1 + len(names) // _MOST_TENSORS]:
                    parameter = _match(name, held, getattr(base, "base_model_prefix", ""))
                    if parameter is None or not is_readable(parameter):
                        continue
                    kind = _relation(local(parameter), stream.get_slice(name), _fresh_spreads(base, parameter))
                    equal += kind == "equal"
                    if kind == "unrelated":
                        unrelated.append(name)
        compared = equal + len(unrelated)
        if equal:
            self.run.notes["weights"] = f"{equal} of {compared} tensors that were read equal their file"
        if compared >= _LEAST_TENSORS and unrelated and equal >= _MOST_EQUAL * compared:
            shown = ", ".join(unrelated[:_MOST_NAMES])
            if len(unrelated) > _MOST_NAMES:
                shown = _("{names} and {count} more").format(names=shown, count=len(unrelated) - _MOST_NAMES)
            seen = _(
                "{count} of {all} tensors differ from the checkpoint that the model was loaded from: "
                "{names} were initialised again"
            ).format(count=len(unrelated), all=compared, names=shown)
            yield self.alarm("weights-not-loaded", seen, "weights-not-loaded", "lower-accuracy", stops=False)


def _files(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".safetensors"))


def _match(name: str, held: Mapping[str, Any], prefix: str) -> Any:
    """The parameter of a name in the file, with the prefix of the base model or without."""
    without = name.removeprefix(f"{prefix}.") if prefix else name
    return next((held[each] for each in (name, f"{prefix}.{name}", without) if each in held), None)


def _fresh_spreads(base: Any, parameter: Any) -> tuple[float, ...]:
    """The standard deviations of a fresh weight: that of the configuration, and that of a layer of torch."""
    stated = getattr(getattr(base, "config", None), "initializer_range", None)
    inputs = parameter[0].numel() if parameter.dim() > 1 else 1
    return (stated if isinstance(stated, float) else 0.02, (3 * inputs) ** -0.5, 1.0)


def _relation(parameter: Any, stored: Any, fresh: tuple[float, ...]) -> str:
    """How a parameter stands to the tensor of the file: equal, related, unrelated, or other in shape or type."""
    import torch

    shape = list(stored.get_shape())
    if shape != list(parameter.shape) or not shape:
        return "other"
    saved = (stored[:1] if len(shape) > 1 else stored[:]).flatten()[: 64 * _VALUES]
    held = (parameter[:1] if len(shape) > 1 else parameter).flatten()[: 64 * _VALUES].cpu()
    if not saved.is_floating_point():
        return "other"
    step = max(1, saved.numel() // _VALUES)
    saved, held = saved[::step].to(parameter.dtype).to(torch.float64), held[::step].to(torch.float64)
    if bool((saved == held).all()):
        return "equal"
    if saved.numel() < 8 or len(shape) < 2 or not bool(saved.any()):
        return "related"
    both = torch.linalg.vector_norm(saved) * torch.linalg.vector_norm(held)
    apart = not bool(both) or abs(float(saved @ held / both)) < _UNRELATED
    spread = float(held.std())
    new = spread == 0 or any(each / _SPREAD < spread < each * _SPREAD for each in fresh)
    return "unrelated" if apart and new else "related"
