"""Models in float64 throughout, as the exact reference of a lower precision.

Model code asks for float32 in norms, rotary embeddings, softmax and the loss, so a model converted to
float64 is only as exact as float32. Inside `float64_everywhere` each such request is answered with
float64: the gradients of one batch, padded or not, then agree to about 1e-15.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator

NARROWING_METHODS = ("float", "half", "bfloat16")


@contextlib.contextmanager
def float64_everywhere() -> Iterator[None]:
    """Turn every request for a narrower float into one for float64; tensors made inside are float64 by default.

    A function mode of torch (1.13 and later): it sees the calls of this thread only, and no module that
    is compiled.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    narrow = {torch.float32, torch.float16, torch.bfloat16}
    methods = {getattr(torch.Tensor, name) for name in NARROWING_METHODS}

    def widened(value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in narrow else value

    class Widening(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            options: Dict[str, Any] = {key: widened(value) for key, value in (kwargs or {}).items()}
            if function in methods:
                return args[0].double()
            return function(*[widened(value) for value in args], **options)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Widening():
            yield
    finally:
        torch.set_default_dtype(before)
