"""Initial weights that depend on the names and shapes of parameters alone, in the layout of any release.

Releases of transformers 5 hold the experts of a layer in one tensor where earlier ones have a layer for each. Both
get the same numbers: the names are those of single experts.
"""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from compatcheck.probes._criterion import Module, Tensor
from compatcheck.probes._recording._sketch import drawn
from compatcheck.probes.training._model import plain_name

NOISE = 0.1
_SAME = (
    (re.compile(r"\bblock_sparse_moe\b"), "mlp"),
    (re.compile(r"(experts\.\d+)\.w1\b"), r"\1.gate_proj"),
    (re.compile(r"(experts\.\d+)\.w3\b"), r"\1.up_proj"),
    (re.compile(r"(experts\.\d+)\.w2\b"), r"\1.down_proj"),
    (re.compile(r"(mlp)\.router\.weight$"), r"\1.gate.weight"),
)


def common_name(name: str) -> str:
    """The name of a parameter or module as every release spells it."""
    name = plain_name(name)
    for pattern, replacement in _SAME:
        name = pattern.sub(replacement, name)
    return name


def fill(model: Module, seed: int, shift: float = 0.0) -> None:
    """Give every parameter its value; ``shift`` moves each by as much, relative, up or down.

    Matrices have the variance 1 / fan-in. Vectors keep the mean that the model gives them, with noise.
    """
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.is_floating_point():
                value = _value(common_name(name), parameter, seed)
                if shift:
                    value = value * (1 + shift * drawn(list(value.shape), common_name(name), seed + 1).sign())
                parameter.copy_(value.to(parameter.device, parameter.dtype))


def _value(name: str, parameter: Tensor, seed: int) -> Tensor:
    import torch

    shape = list(parameter.shape)
    if parameter.dim() == 3 and ".experts." in name:
        return torch.stack([torch.cat(list(_expert(name, shape[1:], number, seed))) for number in range(shape[0])])
    if parameter.dim() > 1:
        return drawn(shape, name, seed) / shape[-1] ** 0.5
    mean = parameter.detach().double().cpu()
    plain = torch.where((mean - mean.mean()).abs() <= 1e-3, mean, torch.zeros_like(mean))
    return plain + NOISE * drawn(shape, name, seed)


def _expert(name: str, shape: Sequence[int], number: int, seed: int) -> Iterator[Tensor]:
    """The matrices of one expert in the order in which a fused tensor holds them, (out, in) each."""
    before, _, last = name.rpartition(".experts.")
    parts = ["gate_proj", "up_proj"] if last.startswith("gate_up_proj") else [last.split(".")[0]]
    rows = shape[0] // len(parts)
    for part in parts:
        own = f"{before}.experts.{number}.{part}.weight"
        yield drawn([rows, *shape[1:]], own, seed) / shape[-1] ** 0.5
