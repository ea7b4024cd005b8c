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
    "every_gpu.compute_capability": "version",
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
    "training.tf32": "flag",
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
    "training.deepspeed.optimizer": "text",
    "training.deepspeed.scheduler": "text",
    "training.deepspeed.bf16.check_grad_overflow": "flag",
    "training.deepspeed.fp16.enabled": "flag",
    "training.deepspeed.bf16.enabled": "flag",
    "training.deepspeed.allgather_partitions": "flag",
    "training.deepspeed.round_robin_gradients": "flag",
    "training.deepspeed.sub_group_size": "number",
    "training.deepspeed.offload_optimizer_device": "text",
    "training.deepspeed.offload_param_device": "text",
    "training.deepspeed.stage3_gather_16bit_weights_on_model_save": "flag",
    "training.deepspeed.zero_hpz_partition_size": "number",
    "training.deepspeed.zero_quantized_weights": "flag",
    "training.deepspeed.zero_quantized_gradients": "flag",
    "training.objective": "text",
    "training.mixed_precision": "text",
    "training.unquantized_dtype": "text",
    "training.max_length": "number",
    "training.learning_rate": "number",
    "training.max_grad_norm": "number",
    "training.neftune_noise_alpha": "number",
    "training.use_liger_kernel": "flag",
    "training.unsloth": "flag",
    "training.group_by_length": "flag",
    "training.use_cache": "flag",
    "training.predict_with_generate": "flag",
    "training.use_vllm": "flag",
    "training.save_safetensors": "flag",
    "training.resume_from_checkpoint": "flag",
    "training.padding_free": "flag",
    "training.gradient_checkpointing_kwargs.use_reentrant": "flag",
    "training.fsdp": "text",
    "training.fsdp.version": "number",
    "training.fsdp.sharding_strategy": "text",
    "training.fsdp.offload": "flag",
    "training.fsdp.cpu_ram_efficient_loading": "flag",
    "training.fsdp.use_orig_params": "flag",
    "training.lora.use_dora": "flag",
    "training.lora.use_rslora": "flag",
    "training.quantization.method": "text",
    "training.quantization.quant_storage": "text",
    "training.observed.loss": "number",
    "training.observed.grad_norm": "number",
    "training.observed.eval_loss": "number",
    "training.observed.nonfinite": "flag",
    "training.observed.onset_step": "number",
    "traits": "labels",
}
_FREE: dict[str, Kind] = {"distributions.": "version", "environ.": "text"}


def kind_of(path: str) -> Kind | None:
    """How the fact at a path is compared, or None for a path this version of compatcheck does not know."""
    for prefix, kind in _FREE.items():
        if path.startswith(prefix) and len(path) > len(prefix):
            return kind
    return _EXACT.get(path)


def keys() -> dict[str, Kind]:
    """Every path with its kind; one that ends in a dot may go on with any name."""
    return {**_FREE, **_EXACT}
