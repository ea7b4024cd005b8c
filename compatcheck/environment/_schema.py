"""The types of the snapshot's known keys; keys it does not know are let through."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

Text = StrictStr | None
Dtype = Literal["bfloat16", "float16", "float32", "float64"] | None
Capability = Annotated[str, Field(strict=True, pattern=r"^\d{1,2}\.\d$")] | None
Version = Annotated[str, Field(strict=True, pattern=r"^\S*\d\S*$")] | None
Labels = list[StrictStr] | None
Number = StrictInt | StrictFloat | None
Flag = StrictBool | None


def _require_day(text: str) -> str:
    return date.fromisoformat(text).isoformat()


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
    machine_code: Flag = None


class Image(_Section):
    name: Text = None
    release: Text = None


class Report(_Section):
    date: Annotated[StrictStr, AfterValidator(_require_day)] | None = None
    repository: Text = None
    newest: dict[str, Flag] | None = None


class MissingName(_Section):
    module: StrictStr
    name: Text = None


class ImportedName(MissingName):
    file: StrictStr
    line: StrictInt


class Trainer(_Section):
    traits: Labels = None
    suspected: Labels = None
    imported_names: list[ImportedName] | None = None


class Gpu(_Section):
    name: Text = None
    compute_capability: Capability = None
    memory_mib: Number = None
    uuid: Text = None
    uncounted: Flag = None


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
    source: Text = None
    transformers_version: Text = None
    code_from: Labels = None
    files: dict[str, ModelFile] | None = None
    traits: Labels = None
    imported_names: list[ImportedName] | None = None


class Quantization(_Section):
    bits: Number = None
    type: Text = None
    method: Text = None
    compute_dtype: Text = None
    double_quant: Flag = None
    quant_storage: Text = None


class Lora(_Section):
    target_modules: Labels = None
    modules_to_save: Labels = None
    autocast_adapter_dtype: Flag = None
    r: Number = None
    lora_alpha: Number = None
    use_dora: Flag = None
    use_rslora: Flag = None
    init_lora_weights: StrictBool | StrictStr | None = None
    bias: Text = None


class Bf16(_Section):
    enabled: Flag = None
    check_grad_overflow: Flag = None


class Fp16(_Section):
    enabled: Flag = None
    loss_scale: Number = None
    initial_scale_power: Number = None


class ActivationCheckpointing(_Section):
    partition_activations: Flag = None
    cpu_checkpointing: Flag = None


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
    fp16: Fp16 | None = None
    allgather_partitions: Flag = None
    allgather_bucket_size: Number = None
    round_robin_gradients: Flag = None
    sub_group_size: Number = None
    offload_optimizer_device: Text = None
    offload_param_device: Text = None
    stage3_max_live_parameters: Number = None
    stage3_max_reuse_distance: Number = None
    stage3_prefetch_bucket_size: Number = None
    stage3_param_persistence_threshold: Number = None
    stage3_gather_16bit_weights_on_model_save: Flag = None
    zero_hpz_partition_size: Number = None
    zero_quantized_weights: Flag = None
    zero_quantized_gradients: Flag = None
    zero_quantized_nontrainable_weights: Flag = None
    zero_allow_untested_optimizer: Flag = None
    leaf_modules: Flag = None
    activation_checkpointing: ActivationCheckpointing | None = None


class GradientCheckpointing(_Section):
    use_reentrant: Flag = None


class Fsdp(_Section):
    version: Number = None
    sharding_strategy: Text = None
    offload: Flag = None
    cpu_ram_efficient_loading: Flag = None
    use_orig_params: Flag = None
    state_dict_type: Text = None
    auto_wrap_policy: Text = None
    activation_checkpointing: Flag = None
    reshard_after_forward: Flag = None


class Observed(_Section):
    loss: Number = None
    grad_norm: Number = None
    eval_loss: Number = None
    nonfinite: Flag = None
    onset_step: Number = None


class Training(_Section):
    framework: Text = None
    launcher: Text = None
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
    several_ranks: Flag = None
    kbit_prepared: Flag = None
    objective: Text = None
    mixed_precision: Text = None
    dtype_rule: Literal["bfloat16-if-supported"] | None = None
    unquantized_dtype: Dtype = None
    max_length: Number = None
    learning_rate: Number = None
    max_grad_norm: Number = None
    num_train_epochs: Number = None
    max_steps: Number = None
    warmup_steps: Number = None
    neftune_noise_alpha: Number = None
    per_device_eval_batch_size: Number = None
    use_liger_kernel: Flag = None
    unsloth: Flag = None
    group_by_length: Flag = None
    use_cache: Flag = None
    predict_with_generate: Flag = None
    use_vllm: Flag = None
    save_safetensors: Flag = None
    resume_from_checkpoint: Flag = None
    padding_free: Flag = None
    ddp_find_unused_parameters: Flag = None
    tf32: Flag = None
    cudnn_sdp: Flag = None
    deterministic: Flag = None
    fill_uninitialized_memory: Flag = None
    model_accepts_loss_kwargs: Flag = None
    downcast_bf16: Flag = None
    template: Text = None
    gradient_checkpointing_kwargs: GradientCheckpointing | None = None
    fsdp: Fsdp | None = None
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


class Unresolved(_Section):
    distribution: Text = None
    version: Text = None
    file: Text = None
    line: StrictInt | None = None
    module: StrictStr
    name: Text = None
    provider: Text = None
    provider_version: Text = None
    error: Text = None
    says: Text = None
    statement: StrictStr
    statements: Labels = None
    chain: Labels = None


class Place(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file: StrictStr
    line: StrictInt | None = None


class Snapshot(_Section):
    """One snapshot; every key may be missing, and ``null`` is "known to be absent"."""

    python: Text = None
    platform: Platform | None = None
    image: Image | None = None
    report: Report | None = None
    distributions: dict[str, Text] | None = None
    distributions_complete: StrictBool = False
    distribution_ranges: dict[str, StrictStr] | None = None
    distribution_problems: list[Problem] = []
    unmet_requirements: list[Unmet] | None = None
    unresolved_imports: list[Unresolved] | None = None
    missing_names: list[MissingName] | None = None
    cuda: Cuda | None = None
    torch_build: TorchBuild | None = None
    gpus: list[Gpu] | None = None
    environ: dict[str, Text] | None = None
    model: Model | None = None
    trainer: Trainer | None = None
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
