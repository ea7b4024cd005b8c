"""A few elements of each parameter, read without copying it, and where a parameter lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

ELEMENTS = 8
"""Elements that are read of a parameter."""

MOST_PARAMETERS = 400
"""Parameters that are read of a model; of a larger one they are spread evenly over it."""


class Named(NamedTuple):
    """A parameter and its name in the model."""

    name: str
    parameter: Any


def unwrapped(module: Any) -> Any:
    """The module inside DistributedDataParallel, DataParallel and what accelerate compiled."""
    while True:
        if type(module).__name__ in ("DistributedDataParallel", "DataParallel") and hasattr(module, "module"):
            module = module.module
        elif type(module).__name__ == "OptimizedModule" and hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            return module


def torch_optimizer(optimizer: Any) -> Any:
    """The optimizer inside wrappers such as accelerate's AcceleratedOptimizer."""
    while "param_groups" in dir(optimizer) and hasattr(getattr(optimizer, "optimizer", None), "param_groups"):
        optimizer = optimizer.optimizer
    return optimizer


def local(tensor: Any) -> Any:
    """The part of a DTensor that is on this rank, or the tensor itself, without its graph."""
    tensor = tensor.detach()
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def is_readable(parameter: Any) -> bool:
    """Whether the values are here: not sharded away, quantised, sparse or on the meta device."""
    tensor = local(parameter)
    dense = not tensor.is_sparse and tensor.device.type != "meta"
    return bool(dense and tensor.numel() > 0 and tensor.is_floating_point())


def spread(items: Sequence[Any], most: int = MOST_PARAMETERS) -> list[Any]:
    """At most ``most`` of the items, evenly spread, the same ones for the same length."""
    if len(items) <= most:
        return list(items)
    return [items[number * len(items) // most] for number in range(most)]


def samples(tensors: Iterable[Any]) -> list[Any]:
    """`ELEMENTS` values of each tensor in double precision, on the CPU; short tensors repeat theirs, None stays None.

    All of one type on one device are gathered by one kernel and moved by one transfer.
    """
    import torch

    listed = list(tensors)
    alike: dict[Any, list[tuple[int, Any]]] = {}
    for number, tensor in enumerate(listed):
        if tensor is not None:
            values = _view(local(tensor))
            alike.setdefault((values.device, values.dtype), []).append((number, values))
    found: list[Any] = [None] * len(listed)
    for rows in alike.values():
        gathered = torch.stack([values for _, values in rows]).cpu().to(torch.float64)
        for (number, _), row in zip(rows, gathered):
            found[number] = row
    return found


def _view(tensor: Any) -> Any:
    """Elements of a tensor at even distances, without a copy where it is dense and long enough."""
    import torch

    count = tensor.numel()
    stride = count // ELEMENTS
    if stride and tensor.is_contiguous():
        return tensor.as_strided((ELEMENTS,), (stride,), tensor.storage_offset() + stride // 2)
    places = [((2 * number + 1) * count) // (2 * ELEMENTS) for number in range(ELEMENTS)]
    index = torch.tensor(places, device=tensor.device)
    return tensor.view(-1)[index] if tensor.is_contiguous() else tensor[_unravelled(index, tensor.shape)]


def _unravelled(index: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    places = []
    for size in reversed(shape):
        places.append(index % size)
        index = index // size
    return tuple(reversed(places))


def named_parameters(models: Sequence[Any]) -> Iterator[Named]:
    """Every parameter of the models once, under its first name."""
    seen: set[int] = set()
    for number, model in enumerate(models):
        prefix = f"model {number}: " if len(models) > 1 else ""
        for name, parameter in unwrapped(model).named_parameters():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield Named(prefix + name, parameter)
