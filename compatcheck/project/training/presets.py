"""The DeepSpeed configurations that frameworks carry under a name; only what no release of theirs has changed.

XTuner: https://github.com/InternLM/xtuner/tree/main/xtuner/configs/deepspeed, since 0.1.4.
ms-swift: https://github.com/modelscope/ms-swift/tree/main/swift/config; its ``overlap_comm`` went from true to false
in March 2025 (https://github.com/modelscope/ms-swift/pull/3625), and up to 3.0.0 its files named an optimizer and a
scheduler.
"""

from __future__ import annotations

from typing import Any

from compatcheck.project.python_values import Open
from compatcheck.project.training.document import Document

_AUTO = {"enabled": "auto"}
_CHANGED = Open("ms-swift changed the value between releases")
_NUMBERS = {
    "gradient_accumulation_steps": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_clipping": "auto",
    "fp16": _AUTO,
    "bf16": _AUTO,
}
_CPU = {"device": "cpu"}


def _xtuner(stage: int, **more: object) -> dict[str, object]:
    return {**_NUMBERS, "zero_optimization": {"stage": stage, "overlap_comm": True, **more}}


def _swift(stage: int, **more: Any) -> dict[str, Any]:
    zero = {"stage": stage, "overlap_comm": _CHANGED, "contiguous_gradients": True, **more}
    return {**_NUMBERS, "optimizer": _CHANGED, "scheduler": _CHANGED, "zero_optimization": zero}


_BUCKETS = {"reduce_bucket_size": 200_000_000, "allgather_bucket_size": 200_000_000}
_SIZED = {"reduce_bucket_size": "auto"}
_PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "xtuner": {
        "deepspeed_zero1": _xtuner(1),
        "deepspeed_zero2": _xtuner(2),
        "deepspeed_zero2_offload": _xtuner(2, offload_optimizer=_CPU),
        "deepspeed_zero3": _xtuner(3),
        "deepspeed_zero3_offload": _xtuner(3, offload_optimizer=_CPU, offload_param=_CPU),
    },
    "ms-swift": {
        "zero0": _swift(0, **_BUCKETS),
        "zero1": _swift(1, **_BUCKETS),
        "zero2": _swift(2, **_BUCKETS),
        "zero2_offload": _swift(2, **_BUCKETS, offload_optimizer=_CPU),
        "zero3": _swift(3, **_SIZED),
        "zero3_offload": _swift(3, **_SIZED, offload_optimizer=_CPU, offload_param=_CPU),
    },
}


def preset(framework: object, name: str) -> Document | None:
    """The DeepSpeed configuration of this name that a framework carries; it has no place on disk."""
    value = _PRESETS.get(str(framework), {}).get(name.replace("-", "_"))
    return None if value is None else Document(f"the preset {name} of {framework}", "", value, {})
