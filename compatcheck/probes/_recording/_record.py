"""What one case writes down: values in the order in which they came."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from compatcheck.probes._criterion import Module, Row, Tensor
from compatcheck.probes._recording._sketch import number, sketch
from compatcheck.probes._recording._weights import common_name

TensorsByName = Dict[str, Tensor]


class Record:
    """Values of one run of a case, each with what it is, its name and its step; the step is 0 before any."""

    def __init__(self) -> None:
        self.values: List[Row] = []
        self.step = 0

    def tensor(self, what: str, name: str, value: Tensor) -> None:
        """Write down a tensor; an empty ``name`` is the whole model's."""
        self.values.append({"what": what, "name": name, "step": self.step, **sketch(value)})

    def number(self, what: str, value: float, name: str = "") -> None:
        """Write down a number."""
        self.values.append({"what": what, "name": name, "step": self.step, **number(float(value))})

    def text(self, what: str, value: str, name: str = "") -> None:
        """Write down a word, which is equal or is not."""
        self.values.append({"what": what, "name": name, "step": self.step, "text": value})

    def gradients(self, model: Module) -> None:
        """Write down the gradient of each parameter to train."""
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and parameter.grad is not None:
                self.tensor("gradient", common_name(name), parameter.grad)

    def trainables(self, model: Module) -> None:
        """Write down which parameters are trained, by number and dtype."""
        dtypes: Dict[str, int] = {}
        for _, parameter in model.named_parameters():
            if parameter.requires_grad:
                key = str(parameter.dtype).replace("torch.", "")
                dtypes[key] = dtypes.get(key, 0) + parameter.numel()
        for key in sorted(dtypes):
            self.text("trained parameters", f"{dtypes[key]} {key}", key)

    def updates(self, before: TensorsByName, model: Module) -> None:
        """Write down how far each parameter to train has moved from ``before``."""
        for name, parameter in model.named_parameters():
            if name in before:
                self.tensor("update", common_name(name), parameter.detach().double() - before[name])


def copies(model: Module) -> TensorsByName:
    """Float64 copies of the parameters to train."""
    return {name: value.detach().double().clone() for name, value in model.named_parameters() if value.requires_grad}


class Watcher:
    """Writes down the output of every module while it is entered; positions of padding count as 0."""

    def __init__(self, record: Record, model: Module, mask: Optional[Tensor]) -> None:
        self.record, self.model, self.mask = record, model, mask
        self.handles: List[Any] = []

    def __enter__(self) -> Watcher:
        for name, module in self.model.named_modules():
            if name:
                self.handles.append(module.register_forward_hook(self._hook(common_name(name))))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _hook(self, name: str) -> Any:
        def note(module: Module, inputs: object, output: object) -> None:
            import torch

            if isinstance(output, (tuple, list)) and output:
                output = output[0]
            if isinstance(output, torch.Tensor) and output.is_floating_point():
                self.record.tensor("output", name, masked(output, self.mask))

        return note


def masked(output: Tensor, mask: Optional[Tensor]) -> Tensor:
    """The output with 0 at padding, where it has a row for each token."""
    if mask is None or output.dim() < 2 or output.shape[:2] != mask.shape:
        return output
    kept = mask.reshape(*mask.shape, *([1] * (output.dim() - 2))).bool()
    return output.detach().masked_fill(~kept.expand_as(output), 0.0)
