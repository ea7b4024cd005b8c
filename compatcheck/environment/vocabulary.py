"""The facts of an environment, each declared once.

From this table are made: the check of a snapshot and its JSON Schema (`schema`), the keys of conditions and how they
are compared (`kind_of`), the names that ``--assume`` takes, the keys and defaults of a DeepSpeed file, the Python that
advice prints, and docs/reference/facts.md. A path as declared here has ``*`` for a name and ``[]`` for the entries of a
list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from compatcheck.environment import paths

Kind = Literal["version", "number", "text", "flag", "labels"]


class Type(NamedTuple):
    """What a fact may hold: in words, as JSON Schema, and how a condition compares it by default."""

    words: str
    schema: Mapping[str, Any]
    compared: Kind | None = None


def _choice(*words: str) -> Type:
    return Type(f"one of {', '.join(words)}", {"enum": list(words)}, "text")


TEXT = Type("a string", {"type": "string"}, "text")
VERSION = Type("a string that holds a version", {"type": "string", "pattern": r"^\S*\d\S*$"}, "version")
CAPABILITY = Type("a string such as '8.0'", {"type": "string", "pattern": r"^\d{1,2}\.\d$"}, "version")
DAY = Type("a string with a date such as '2025-01-31'", {"type": "string", "format": "date"}, "text")
FLAG = Type("true or false", {"type": "boolean"}, "flag")
NUMBER = Type("a number", {"type": "number"}, "number")
WHOLE = Type("a whole number", {"type": "integer"}, "number")
LABELS = Type("a list of strings", {"type": "array", "items": {"type": "string", "description": TEXT.words}}, "labels")
TEXT_OR_FLAG = Type("a string, true or false", {"type": ["string", "boolean"]}, "text")
DTYPE = _choice("bfloat16", "float16", "float32", "float64")
ATTENTION_RULE = _choice("default")
ATTENTION = _choice("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", "xformers")
SIDE = _choice("left", "right")
DTYPE_RULE = _choice("bfloat16-if-supported")
INTERFACE_ERROR = _choice(
    *("missing-name", "unexpected-keyword", "missing-argument", "too-many-positionals", "no-attribute", "wrong-kind")
)
SECTION = Type("a dictionary", {"type": "object"}, "text")
ANY = Type("a dictionary or a list", {"type": ["object", "array"]})


class Fact(NamedTuple):
    """One fact: where it stands, what it may hold, and who reads it.

    ``compared`` is how a condition compares it where that is not the type's way. ``used_by`` names what reads it where
    conditions cannot. A ``required`` fact stands in every section of its kind, and is never null. ``deepspeed`` is its
    path in a DeepSpeed file, ``default`` its value where such a file is silent; ``python`` is the code that sets it,
    with ``{}`` for the value. ``meaning`` tells it from a fact that is easily taken for it.
    """

    path: str
    type: Type
    compared: Kind | None = None
    used_by: str = ""
    required: bool = False
    deepspeed: str = ""
    default: object = None
    python: str = ""
    meaning: str = ""

    @property
    def kind(self) -> Kind | None:
        """How a condition compares it, or None for a fact that no condition can speak of."""
        return None if self.used_by else self.compared or self.type.compared

    @property
    def keys(self) -> tuple[str, ...]:
        """Its paths in a condition; one that ends in a dot goes on with any name."""
        if not self.kind:
            return ()
        if self.path.startswith(_GPUS):
            return tuple(f"{gpus}{self.path[len(_GPUS) :]}" for gpus in EVERY_GPU)
        return (self.path.removesuffix("*"),)


_GPUS = "gpus[]."
EVERY_GPU = ("gpu.", "every_gpu.")
"""Begin the paths of conditions on any one GPU, and on all of them."""
COMPUTED: dict[str, Kind] = {"traits": "labels", "training.runs_on": "text"}
"""The keys of conditions that are no facts: they are computed from facts and tables."""


def _each(section: str, type_: Type, names: str, **rest: Any) -> tuple[Fact, ...]:
    return tuple(Fact(f"{section}.{name}", type_, **rest) for name in names.split())


def _zero(name: str, type_: Type, default: object = None, key: str = "") -> Fact:
    given_as = f"zero_optimization.{key or name}"
    return Fact(f"training.deepspeed.{name}", type_, deepspeed=given_as, default=default)


def _arguments(type_: Type, names: str) -> Iterator[Fact]:
    """Arguments of the transformers Trainer as they are given."""
    for name in names.split():
        yield Fact(f"training.arguments.{name}", type_, python=f"TrainingArguments(..., {name}={{}})")


def _asks(section: str) -> tuple[Fact, ...]:
    """What code of the user's own asks of packages."""
    asks, reader = f"{section}.asks[]", "traits"
    return (
        *_each(asks, TEXT, "kind target file", used_by=reader, required=True),
        Fact(f"{asks}.line", WHOLE, used_by=reader, required=True),
        Fact(f"{asks}.name", TEXT, used_by=reader),
        Fact(f"{asks}.places", WHOLE, used_by=reader),
        *_each(asks, LABELS, "keywords given conditions", used_by=reader),
        Fact(f"{asks}.lines", ANY, used_by=reader, meaning="the line of each keyword"),
    )


FACTS: tuple[Fact, ...] = (
    Fact("python", TEXT, compared="version"),
    *_each("platform", TEXT, "system machine libc"),
    *_each("image", TEXT, "name release", used_by="inference and traits"),
    Fact("report.date", DAY, used_by="inference"),
    Fact("report.repository", TEXT, used_by="inference"),
    Fact("report.newest.*", FLAG, used_by="inference"),
    Fact(
        "report.cuda",
        VERSION,
        used_by="inference",
        meaning="a CUDA version in a report that does not say whether it is torch's, the driver's or the toolkit's",
    ),
    Fact("distributions.*", TEXT, compared="version"),
    Fact("distributions_complete", FLAG, used_by="conditions on distributions", required=True),
    Fact(
        "distributions_requested",
        LABELS,
        used_by="traits",
        meaning="distributions that the user told an installer to install, or that no other distribution requires",
        required=True,
    ),
    Fact("distribution_ranges.*", TEXT, used_by="conditions on distributions", required=True),
    *_each("distribution_problems[]", TEXT, "path problem", used_by="report", required=True),
    *_each("requirements[]", TEXT, "name specifier command", used_by="traits", required=True),
    *_each("requirements[]", TEXT, "file", used_by="traits"),
    Fact("requirements[].line", WHOLE, used_by="traits"),
    Fact(
        "requirements[].constraint",
        FLAG,
        used_by="traits",
        meaning="a constraint: it limits the version but does not require the package",
    ),
    Fact(
        "requirements[].elsewhere",
        FLAG,
        used_by="traits",
        meaning="the line names another index or a file for the package",
    ),
    *_each("unsolvable[]", TEXT, "file reason", used_by="traits", required=True),
    *_each("unmet_requirements[]", TEXT, "distribution requirement", used_by="traits", required=True),
    *_each("unmet_requirements[]", TEXT, "version installed", used_by="traits"),
    *_each("unresolved_imports[]", TEXT, "module statement", used_by="traits", required=True),
    *_each(
        "unresolved_imports[]",
        TEXT,
        "distribution version file name provider provider_version error says",
        used_by="traits",
    ),
    Fact("unresolved_imports[].line", WHOLE, used_by="traits"),
    *_each("unresolved_imports[]", LABELS, "statements chain", used_by="traits"),
    Fact("missing_names[].module", TEXT, used_by="traits", required=True),
    Fact("missing_names[].name", TEXT, used_by="traits"),
    Fact("interface_errors[].error", INTERFACE_ERROR, used_by="traits", required=True),
    *_each("interface_errors[]", TEXT, "module name callable keyword owner use", used_by="traits"),
    Fact("interface_errors[].names", LABELS, used_by="traits"),
    *_each("interface_errors[]", WHOLE, "takes given", used_by="traits"),
    *_each("interface_errors[]", TEXT, "file function code", used_by="traits"),
    Fact("interface_errors[].named", LABELS, used_by="traits", meaning="packages that the text around the error names"),
    *_each("cuda", VERSION, "runtime driver driver_api toolkit cudnn nccl"),
    Fact("cuda.driver_present", FLAG, meaning="whether the machine that was read has an NVIDIA driver"),
    Fact("cuda.machine_code", FLAG, used_by="traits"),
    Fact("npu.cann", VERSION, meaning="release of CANN on an Ascend machine, such as 8.0.rc3"),
    Fact("npu.driver", VERSION, used_by="report", meaning="release of the Ascend NPU driver, as npu-smi prints it"),
    Fact("rocm.version", VERSION, meaning="release of ROCm on an AMD machine, such as 6.4.1"),
    Fact(
        "cuda.forward_compatibility",
        TEXT,
        meaning="whether a newer libcuda.so of a compatibility package is `used` or `refused`",
    ),
    Fact("cuda.fabric_manager", TEXT, meaning="state of NVIDIA's fabric manager: `running`, `stopped` or `failed`"),
    Fact("build.package", TEXT, meaning="distribution that an installer compiles"),
    Fact(
        "build.isolated",
        FLAG,
        meaning="whether it is compiled in an environment with only its declared build requirements",
    ),
    Fact("torch_build.hip", TEXT, compared="version"),
    Fact("torch_build.cuda", TEXT, used_by="inference and traits"),
    Fact("torch_build.git_version", TEXT, used_by="comparison of machines"),
    Fact("torch_build.architectures", LABELS, used_by="traits"),
    *(
        Fact(
            f"{name}_build.cuda",
            TEXT,
            used_by="traits",
            meaning=f"CUDA version that {name} is compiled for; absent for a CPU build",
        )
        for name in ("torchvision", "torchaudio")
    ),
    Fact("gpus[].name", TEXT),
    Fact("gpus[].compute_capability", CAPABILITY),
    Fact("gpus[].gfx", TEXT, meaning="LLVM target of an AMD GPU, such as `gfx90a`"),
    Fact("gpus[].memory_mib", NUMBER),
    Fact("gpus[].uuid", TEXT, used_by="report"),
    Fact("gpus[].uncounted", FLAG, used_by="traits"),
    Fact("environ.*", TEXT),
    *_each("model", TEXT, "name type torch_dtype"),
    Fact("model.architectures", LABELS),
    Fact("model.remote_code", FLAG),
    Fact("model.attn_implementation", TEXT, used_by="inference", meaning="attention set in the model's configuration"),
    *_each("model", TEXT, "revision source transformers_version", used_by="report"),
    Fact("model.code_from", LABELS, used_by="report"),
    Fact("model.files.*.sha256", TEXT, used_by="report"),
    Fact("model.files.*.size", WHOLE, used_by="report"),
    *_each("model", ANY, "file_problems tokenizer weights", used_by="report"),
    Fact("model.traits", LABELS, used_by="traits"),
    *_asks("model"),
    *_each("trainer", LABELS, "traits suspected", used_by="traits"),
    *_asks("trainer"),
    *_asks("training"),
    Fact(
        "training.asks[].is_possible",
        FLAG,
        used_by="traits",
        meaning="whether other code may change the arguments first",
    ),
    *_each("training", TEXT, "framework launcher"),
    Fact("training.script", TEXT, used_by="report", meaning="a script that may train but cannot be read"),
    Fact("training.model_class", TEXT, meaning="the class of transformers that loads the model in a script"),
    Fact("training.labels", TEXT, meaning="`inputs` if the collator of transformers copies the input tokens as labels"),
    Fact("training.method", TEXT, meaning="which weights are trained: `full`, `lora`, `qlora` or another name"),
    Fact("training.objective", TEXT, meaning="what is optimized: `sft`, `dpo`, `grpo` or another name"),
    Fact("training.mixed_precision", TEXT, meaning="`bf16`, `fp16` or `no`: whether autocast or FSDP casts to `dtype`"),
    Fact(
        "training.optimizer",
        TEXT,
        meaning="the name that transformers uses, such as `adamw_torch_fused`, if it has one",
    ),
    Fact("training.template", TEXT),
    Fact(
        "training.calls.*",
        LABELS,
        meaning=(
            "names of all arguments passed to a class, such as `transformers.TrainingArguments`; for "
            "the model, to `transformers.from_pretrained`"
        ),
    ),
    Fact(
        "training.dtype", DTYPE, python="TrainingArguments(..., {})", meaning="dtype in which the forward pass computes"
    ),
    Fact(
        "training.load_dtype",
        DTYPE,
        python="from_pretrained(..., torch_dtype=torch.{})",
        meaning="dtype in which the weights are loaded, before any cast to `dtype`",
    ),
    Fact("training.unquantized_dtype", DTYPE, meaning="dtype of the layers that are not quantized"),
    Fact("training.dtype_rule", DTYPE_RULE, used_by="inference"),
    Fact("training.attention", ATTENTION, python="from_pretrained(..., attn_implementation={})"),
    Fact(
        "training.attention_rule",
        ATTENTION_RULE,
        used_by="inference",
        meaning="what chooses the attention if no setting does: transformers, by the type of the model",
    ),
    Fact("training.padding_side", SIDE, python="tokenizer.padding_side = {}"),
    Fact(
        "training.per_device_train_batch_size",
        WHOLE,
        deepspeed="train_micro_batch_size_per_gpu",
        meaning="rows that one rank processes in one step, before accumulation",
    ),
    Fact(
        "training.gradient_accumulation_steps",
        WHOLE,
        deepspeed="gradient_accumulation_steps",
        python="TrainingArguments(..., gradient_accumulation_steps={})",
    ),
    Fact("training.per_device_eval_batch_size", NUMBER),
    Fact("training.world_size", NUMBER, meaning="number of ranks on all machines, including every kind of parallelism"),
    *_each("training", NUMBER, "max_length learning_rate max_grad_norm"),
    *_each("training", NUMBER, "num_train_epochs max_steps warmup_steps neftune_noise_alpha"),
    Fact(
        "training.gradient_checkpointing",
        FLAG,
        python="TrainingArguments(..., gradient_checkpointing={})",
        meaning="whether some or all layers recompute their activations",
    ),
    Fact("training.gradient_checkpointing_kwargs", SECTION),
    Fact("training.gradient_checkpointing_kwargs.use_reentrant", FLAG),
    Fact("training.torch_compile", FLAG, python="TrainingArguments(..., torch_compile={})"),
    Fact(
        "training.neat_packing",
        FLAG,
        meaning="whether LLaMA-Factory packs samples so that they do not attend to each other",
    ),
    *_each("training", FLAG, "packing padding_free group_by_length use_cache predict_with_generate use_vllm unsloth"),
    Fact("training.packing_strategy", TEXT, meaning="how trl packs: `bfd`, `bfd_split`, `ffd` or `wrapped`"),
    Fact("training.loss_type", TEXT, meaning="the loss that a trainer of trl computes, such as `dapo` or `sigmoid`"),
    Fact(
        "training.steps_per_generation",
        WHOLE,
        meaning="number of micro-batches into which an online trainer of trl splits the answers of one round",
    ),
    Fact("training.sampling", SECTION),
    *_each(
        "training.sampling",
        NUMBER,
        "temperature top_p top_k min_p repetition_penalty",
        meaning="a sampling setting of the rollouts of online training",
    ),
    Fact(
        "training.sampling.importance_correction",
        FLAG,
        meaning="whether losses are weighted by the ratio of the trainer's to the rollout engine's probabilities",
    ),
    *_arguments(FLAG, "fp16 bf16 fp16_full_eval bf16_full_eval load_best_model_at_end"),
    *_arguments(TEXT, "eval_strategy save_strategy"),
    *_arguments(NUMBER, "eval_steps save_steps weight_decay"),
    Fact(
        "training.arguments.complete",
        FLAG,
        used_by="the DeepSpeed reader",
        meaning="whether all arguments are known; arguments that are not given then have their defaults",
    ),
    Fact("training.arguments.auto_find_batch_size", FLAG, used_by="the DeepSpeed reader"),
    *_each(
        "training.arguments",
        NUMBER,
        "adam_beta1 adam_beta2 adam_epsilon",
        used_by="the DeepSpeed reader",
    ),
    *_each(
        "training.contradictions[]", TEXT, "rule setting value other other_value file", used_by="traits", required=True
    ),
    Fact("training.contradictions[].line", WHOLE, used_by="traits"),
    Fact("training.contradictions[].other_file", TEXT, used_by="traits"),
    Fact("training.contradictions[].other_line", WHOLE, used_by="traits"),
    Fact(
        "training.several_ranks",
        FLAG,
        used_by="conditions on training.world_size",
        meaning="whether more than one rank is certain although the number is unknown",
    ),
    *_each("training", FLAG, "kbit_prepared use_liger_kernel save_safetensors resume_from_checkpoint"),
    *_each("training", FLAG, "tf32 cudnn_sdp deterministic fill_uninitialized_memory downcast_bf16"),
    *_each("training", FLAG, "ddp_find_unused_parameters average_tokens_across_devices model_accepts_loss_kwargs"),
    Fact(
        "training.report_to",
        LABELS,
        python="TrainingArguments(..., report_to={})",
        meaning="loggers of the Trainer, such as `wandb`; `all` is every installed logger, `none` is no logger",
    ),
    Fact("training.quantization", SECTION, meaning="quantization of the stored weights; float8 matmuls do not count"),
    Fact("training.quantization.bits", NUMBER),
    *_each("training.quantization", TEXT, "type method compute_dtype quant_storage"),
    Fact("training.quantization.double_quant", FLAG),
    Fact("training.lora", SECTION),
    *_each("training.lora", NUMBER, "r lora_alpha"),
    *_each("training.lora", LABELS, "target_modules modules_to_save"),
    Fact("training.lora.autocast_adapter_dtype", FLAG, python="get_peft_model(..., autocast_adapter_dtype={})"),
    *_each("training.lora", FLAG, "use_dora use_rslora"),
    Fact("training.lora.init_lora_weights", TEXT_OR_FLAG),
    Fact("training.lora.bias", TEXT),
    Fact("training.fsdp", SECTION),
    Fact("training.fsdp.version", NUMBER),
    *_each("training.fsdp", TEXT, "sharding_strategy state_dict_type auto_wrap_policy"),
    *_each("training.fsdp", FLAG, "offload cpu_ram_efficient_loading use_orig_params activation_checkpointing"),
    Fact("training.fsdp.reshard_after_forward", FLAG),
    *_each("training.observed", NUMBER, "loss grad_norm eval_loss onset_step"),
    Fact("training.observed.nonfinite", FLAG),
    Fact(
        "training.observed.symptoms",
        LABELS,
        meaning="observed symptoms, by their names in `matrix/tables/symptoms.toml`",
    ),
    Fact("training.deepspeed", SECTION),
    Fact(
        "training.deepspeed_file",
        TEXT,
        used_by="inference",
        meaning="the DeepSpeed configuration that a run names but that was not found",
    ),
    _zero("zero_stage", WHOLE, 0, key="stage"),
    _zero("overlap_comm", FLAG),
    _zero("contiguous_gradients", FLAG, True),
    _zero("reduce_scatter", FLAG, True),
    _zero("reduce_bucket_size", WHOLE, 500_000_000),
    _zero("allgather_bucket_size", WHOLE, 500_000_000),
    _zero("use_multi_rank_bucket_allreduce", FLAG, True),
    _zero("allgather_partitions", FLAG, True),
    _zero("round_robin_gradients", FLAG, False),
    _zero("sub_group_size", WHOLE, 1_000_000_000),
    _zero("stage3_max_live_parameters", WHOLE),
    _zero("stage3_max_reuse_distance", WHOLE),
    _zero("stage3_prefetch_bucket_size", WHOLE),
    _zero("stage3_param_persistence_threshold", WHOLE),
    _zero("stage3_gather_16bit_weights_on_model_save", FLAG),
    _zero("zero_hpz_partition_size", WHOLE),
    _zero("zero_quantized_weights", FLAG),
    _zero("zero_quantized_gradients", FLAG),
    _zero("zero_quantized_nontrainable_weights", FLAG),
    _zero("offload_optimizer_device", TEXT, key="offload_optimizer.device"),
    _zero("offload_param_device", TEXT, key="offload_param.device"),
    Fact("training.deepspeed.fp16.enabled", FLAG, deepspeed="fp16.enabled"),
    Fact("training.deepspeed.fp16.loss_scale", NUMBER, deepspeed="fp16.loss_scale"),
    Fact("training.deepspeed.fp16.initial_scale_power", WHOLE, deepspeed="fp16.initial_scale_power"),
    Fact("training.deepspeed.bf16.enabled", FLAG, deepspeed="bf16.enabled"),
    Fact("training.deepspeed.bf16.check_grad_overflow", FLAG, deepspeed="bf16.check_grad_overflow"),
    Fact("training.deepspeed.gradient_clipping", NUMBER, deepspeed="gradient_clipping"),
    *(
        Fact(f"training.deepspeed.{path}", FLAG, deepspeed=path)
        for path in (
            "activation_checkpointing.partition_activations",
            "activation_checkpointing.cpu_checkpointing",
            "zero_allow_untested_optimizer",
        )
    ),
    Fact("training.deepspeed.compile", FLAG, deepspeed="compile.deepcompile"),
    Fact("training.deepspeed.offload", TEXT),
    Fact("training.deepspeed.leaf_modules", FLAG),
    *_each("training.deepspeed", TEXT, "optimizer scheduler"),
)

_BY_PATH = {fact.path: fact for fact in FACTS}
_KINDS: dict[str, Kind] = COMPUTED | {key: fact.kind for fact in FACTS for key in fact.keys if fact.kind}
_FREE = tuple(key for key in _KINDS if key.endswith("."))


def keys() -> Mapping[str, Kind]:
    """Every path that a condition may have with its kind; one that ends in a dot goes on with any name."""
    return _KINDS


def kind_of(path: str) -> Kind | None:
    """How a condition compares the fact at a path, or None for a path it cannot speak of."""
    for prefix in _FREE:
        if path.startswith(prefix) and len(path) > len(prefix):
            return _KINDS[prefix]
    return _KINDS.get(path)


def fact_at(path: str) -> Fact | None:
    """The declaration of the fact at a path of an environment, or of a condition; None for a section and a stranger."""
    if path in _BY_PATH:
        return _BY_PATH[path]
    for gpus in EVERY_GPU:
        if path.startswith(gpus):
            return _BY_PATH.get(_GPUS + path[len(gpus) :])
    section = ".".join(paths.parts(path)[:-1])
    return _BY_PATH.get(f"{section}.*") if section else None


def is_text(path: str) -> bool:
    """Whether the fact at a path is a string however it looks."""
    fact = fact_at(path)
    return fact is not None and (fact.type.schema.get("type") == "string" or "enum" in fact.type.schema)


def stranger_in(path: str) -> str | None:
    """The first part of a path that no declared section has, or None where every part is declared or free."""
    sections: set[str] = set()
    for fact in FACTS:
        parts = fact.path.replace("[]", "").split(".")
        sections.update(".".join(parts[:number]) for number in range(1, len(parts) + 1))
    above = ""
    for part in paths.parts(re.sub(r"^(every_)?gpu\.", "gpus.", path)):
        below = [f"{above}.{each}".lstrip(".") for each in (part, "*")]
        if (known := next((each for each in below if each in sections), None)) is None:
            return part
        if (declared := _BY_PATH.get(known)) and declared.type is ANY:
            return None
        above = known
    return None


def in_deepspeed_file() -> Iterator[Fact]:
    """The facts that a DeepSpeed file gives, in the table's order."""
    return (fact for fact in FACTS if fact.deepspeed)
