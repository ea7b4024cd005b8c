"""The facts a condition may speak of, and how each is compared."""

from __future__ import annotations

from typing import Literal

Kind = Literal["version", "number", "text", "flag", "labels"]

_EXACT: dict[str, Kind] = {
    "python": "version",
    "platform.system": "text",
    "platform.machine": "text",
    "platform.libc": "text",
    "cuda.runtime": "version",
    "cuda.driver": "version",
    "cuda.driver_api": "version",
    "cuda.toolkit": "version",
    "cuda.cudnn": "version",
    "cuda.nccl": "version",
    "gpu.name": "text",
    "gpu.compute_capability": "version",
    "gpu.memory_mib": "number",
    "torch_build.hip": "version",
    "model.name": "text",
    "model.type": "text",
    "model.architectures": "labels",
    "model.remote_code": "flag",
    "model.torch_dtype": "text",
    "training.framework": "text",
    "training.method": "text",
    "training.per_device_train_batch_size": "number",
    "training.gradient_accumulation_steps": "number",
    "training.dtype": "text",
    "training.load_dtype": "text",
    "training.attention": "text",
    "training.padding_side": "text",
    "training.packing": "flag",
    "training.optimizer": "text",
    "training.torch_compile": "flag",
    "training.gradient_checkpointing": "flag",
    "training.world_size": "number",
    "training.kbit_prepared": "flag",
    "training.quantization": "text",
    "training.quantization.bits": "number",
    "training.quantization.type": "text",
    "training.quantization.compute_dtype": "text",
    "training.lora": "text",
    "training.lora.target_modules": "labels",
    "training.lora.modules_to_save": "labels",
    "training.lora.autocast_adapter_dtype": "flag",
    "training.deepspeed": "text",
    "training.deepspeed.zero_stage": "number",
    "training.deepspeed.overlap_comm": "flag",
    "training.deepspeed.contiguous_gradients": "flag",
    "training.deepspeed.reduce_scatter": "flag",
    "training.deepspeed.reduce_bucket_size": "number",
    "training.deepspeed.use_multi_rank_bucket_allreduce": "flag",
    "training.deepspeed.offload": "text",
    "training.deepspeed.gradient_clipping": "number",
    "training.deepspeed.compile": "flag",
    "training.deepspeed.bf16.check_grad_overflow": "flag",
    "training.observed.loss": "number",
    "training.observed.grad_norm": "number",
    "training.observed.nonfinite": "flag",
    "traits": "labels",
}
_FREE: dict[str, Kind] = {"distributions.": "version", "environ.": "text"}


def kind_of(path: str) -> Kind | None:
    """How the fact at a path is compared, or None for a path this version of compatcheck does not know."""
    for prefix, kind in _FREE.items():
        if path.startswith(prefix) and len(path) > len(prefix):
            return kind
    return _EXACT.get(path)
