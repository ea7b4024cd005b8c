"""The types of the snapshot's known keys; keys it does not know are let through."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

Text = StrictStr | None
Dtype = Literal["bfloat16", "float16", "float32", "float64"] | None
Capability = Annotated[str, Field(strict=True, pattern=r"^\d{1,2}\.\d$")] | None
Version = Annotated[str, Field(strict=True, pattern=r"^\S*\d\S*$")] | None
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
    runtime: Version = None
    driver: Version = None
    driver_api: Version = None
    toolkit: Version = None
    cudnn: Version = None
    nccl: Version = None


class Gpu(_Section):
    name: Text = None
    compute_capability: Capability = None
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


class Observed(_Section):
    loss: Number = None
    grad_norm: Number = None
    nonfinite: Flag = None


class Training(_Section):
    framework: Text = None
    method: Text = None
    per_device_train_batch_size: Number = None
    gradient_accumulation_steps: Number = None
    dtype: Dtype = None
    load_dtype: Dtype = None
    attention: (
        Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", "xformers"] | None
    ) = None
    padding_side: Literal["left", "right"] | None = None
    packing: Flag = None
    optimizer: Text = None
    torch_compile: Flag = None
    gradient_checkpointing: Flag = None
    world_size: Number = None
    kbit_prepared: Flag = None
    observed: Observed | None = None
    quantization: Quantization | None = None
    lora: Lora | None = None
    deepspeed: DeepSpeed | None = None


class TorchBuild(_Section):
    cuda: Text = None
    hip: Text = None
    git_version: Text = None
    architectures: Labels = None


class Target(_Section):
    executable: Text = None
    prefix: StrictStr
    selected_by: StrictStr


class Problem(_Section):
    path: StrictStr
    problem: StrictStr


class Unmet(_Section):
    distribution: StrictStr
    version: Text = None
    requirement: StrictStr
    installed: Text = None


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
    distribution_problems: list[Problem] = []
    unmet_requirements: list[Unmet] | None = None
    cuda: Cuda | None = None
    torch_build: TorchBuild | None = None
    gpus: list[Gpu] | None = None
    environ: dict[str, Text] | None = None
    model: Model | None = None
    training: Training | None = None
    target: Target | None = None
    unknown: dict[str, StrictStr] = {}
    locations: dict[str, Place] = {}


def unknown_name(path: str) -> str | None:
    """The part of a dotted path that no known section has, or None where every part is known or free."""
    model: type[BaseModel] | None = Snapshot
    for part in path.split("."):
        if model is None:
            return None
        field = model.model_fields.get(part)
        if field is None:
            return part
        model = next((each for each in _classes(field.annotation) if issubclass(each, BaseModel)), None)
    return None


def _classes(annotation: object) -> list[type]:
    """The classes that an annotation such as ``Cuda | None`` or ``list[Gpu] | None`` is made of."""
    if isinstance(annotation, type) and not get_args(annotation):
        return [annotation]
    return [each for part in get_args(annotation) for each in _classes(part)]
