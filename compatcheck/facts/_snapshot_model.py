"""The types of the snapshot's known keys; keys it does not know are let through."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, StrictBool, StrictFloat, StrictInt, StrictStr

Text = StrictStr | None
Labels = list[StrictStr] | None
Number = StrictInt | StrictFloat | None
Flag = StrictBool | None


class _Section(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


class Platform(_Section):
    system: Text = None
    machine: Text = None
    libc: Text = None


class Cuda(_Section):
    runtime: Text = None
    driver: Text = None
    driver_api: Text = None
    toolkit: Text = None
    cudnn: Text = None
    nccl: Text = None


class Gpu(_Section):
    name: Text = None
    compute_capability: Text = None
    memory_mib: Number = None
    uuid: Text = None


class ModelFile(_Section):
    sha256: Text = None
    size: StrictInt | None = None


class Model(_Section):
    name: Text = None
    type: Text = None
    architectures: Labels = None
    revision: Text = None
    torch_dtype: Text = None
    remote_code: Flag = None
    files: dict[str, ModelFile] | None = None
    traits: Labels = None


class Quantization(_Section):
    bits: Number = None
    type: Text = None
    compute_dtype: Text = None


class Lora(_Section):
    target_modules: Labels = None
    modules_to_save: Labels = None
    autocast_adapter_dtype: Flag = None


class Bf16(_Section):
    enabled: Flag = None
    check_grad_overflow: Flag = None


class DeepSpeed(_Section):
    zero_stage: Number = None
    overlap_comm: Flag = None
    contiguous_gradients: Flag = None
    reduce_scatter: Flag = None
    reduce_bucket_size: Number = None
    use_multi_rank_bucket_allreduce: Flag = None
    offload: Text = None
    gradient_clipping: Number = None
    compile: Flag = None
    bf16: Bf16 | None = None


class Training(_Section):
    framework: Text = None
    method: Text = None
    per_device_train_batch_size: Number = None
    gradient_accumulation_steps: Number = None
    dtype: Text = None
    load_dtype: Text = None
    attention: Text = None
    padding_side: Text = None
    packing: Flag = None
    optimizer: Text = None
    torch_compile: Flag = None
    gradient_checkpointing: Flag = None
    world_size: Number = None
    quantization: Quantization | None = None
    lora: Lora | None = None
    deepspeed: DeepSpeed | None = None


class TorchBuild(_Section):
    cuda: Text = None
    hip: Text = None
    git_version: Text = None
    architectures: Labels = None


class Place(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file: StrictStr
    line: StrictInt | None = None


class Snapshot(_Section):
    """One snapshot; every key may be missing, and ``null`` is "known to be absent"."""

    python: Text = None
    platform: Platform | None = None
    distributions: dict[str, Text] | None = None
    distributions_complete: StrictBool = False
    distribution_problems: list[dict[str, StrictStr]] = []
    unmet_requirements: list[dict[str, Any]] = []
    cuda: Cuda | None = None
    torch_build: TorchBuild | None = None
    gpus: list[Gpu] | None = None
    environ: dict[str, Text] | None = None
    model: Model | None = None
    training: Training | None = None
    target: dict[str, Any] | None = None
    unknown: dict[str, StrictStr] = {}
    locations: dict[str, Place] = {}
