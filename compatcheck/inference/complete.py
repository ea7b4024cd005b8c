"""Facts that follow from others: a GPU's compute capability, torch's CUDA runtime, what a model's name tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from packaging.version import Version

from compatcheck.environment import Environment, Unknown, lookup
from compatcheck.inference.image_contents import with_contents_of_image
from compatcheck.inference.report_date import day_of_report, with_limits
from compatcheck.inference.required_packages import with_required
from compatcheck.inference.torch_builds import backend_of, minor, runtime_of
from compatcheck.matrix.loading import Matrix
from compatcheck.packages.names import normalised
from compatcheck.packages.versions import contains, is_vendor_build, parse_range, parse_version

_DEEPSPEED_DEFAULTS = {"contiguous_gradients": True, "reduce_scatter": True}
_OF_FAMILY = ("type", "remote_code", "torch_dtype")
_WITHOUT_LEAVES = ("transformers", "trl", "llama-factory", "ms-swift", "openrlhf", "axolotl")
_QUANTISED_BY = {
    "awq": ("awq", date(2025, 4, 29)),
    "bnb": ("bitsandbytes", date.max),
    "gptq": ("gptq", date(2024, 8, 8)),
}
_WITHOUT_FLASH_ATTN = ("llama-factory", "unsloth", "xtuner")


def complete(matrix: Matrix, environment: Environment) -> Environment:
    """The environment with what its own facts imply and nobody stated."""
    stated = _with_python_range(
        matrix, with_contents_of_image(matrix, with_limits(matrix, _with_repository(matrix, environment)))
    )
    known = _with_model_family(matrix, _with_model_of_repository(matrix, _with_compute_capabilities(matrix, stated)))
    built = _with_hip(_with_runtime(_with_gpus_in_use(_without_foreign_runtime(matrix, known))))
    completed = _with_switches(_with_deepspeed_defaults(_with_quantization_of_name(built)))
    return with_required(matrix, _with_flash_attn(_with_unquantized_dtype(_with_dtype(_with_reentry(completed)))))


def _with_repository(matrix: Matrix, environment: Environment) -> Environment:
    """The package that bears the name of the repository a report is in is there, in some version."""
    repository = lookup(environment, "report.repository")
    name = normalised(repository.rpartition("/")[2]) if isinstance(repository, str) else ""
    if name not in matrix.guards or lookup(environment, f"distributions.{name}") != Unknown():
        return environment
    ranges = {name: "", **(environment.facts.get("distribution_ranges") or {})}
    return environment._replace(facts={**environment.facts, "distribution_ranges": ranges})


def _with_python_range(matrix: Matrix, environment: Environment) -> Environment:
    """Where nothing is said of Python, it is older than the first one that the stated torch has no wheels for."""
    torch = _released(environment, "torch")
    if torch is None or torch.is_prerelease or not isinstance(lookup(environment, "python"), Unknown):
        return environment
    first = matrix.table("torch-cuda-builds").get("first_for_python", ())
    lacking = [Version(python) for python, release in first if torch < Version(release)]
    if not lacking:
        return environment
    return environment._replace(facts={**environment.facts, "python_range": f"<{min(lacking)}"})


def _with_model_of_repository(matrix: Matrix, environment: Environment) -> Environment:
    """A report that names no model, in the repository of one, is about that; not before transformers knew its type.

    A repository that has been renamed for a later model holds reports on the earlier ones.
    """
    repository, limits = lookup(environment, "report.repository"), environment.facts.get("distribution_limits") or {}
    if environment.facts.get("model") or not isinstance(repository, str) or "transformers" not in limits:
        return environment
    from compatcheck.inference.model_families import family_of

    name, types = repository.rpartition("/")[2], matrix.table("transformers-model-types")
    family = family_of(name, matrix.table("model-families"))
    first, newest = types["first"].get(family and family.get("type")), limits["transformers"].newest
    if family is None or (first and (newest is None or Version(first) > Version(newest))):
        return environment
    return environment._replace(facts={**environment.facts, "model": {"name": name}})


def _with_model_family(matrix: Matrix, environment: Environment) -> Environment:
    """What all models of a published family share, for a model of which no more than its name is known."""
    model = environment.facts.get("model") or {}
    name = model.get("name")
    if not isinstance(name, str) or any(model.get(fact) for fact in ("type", "architectures", "files", "source")):
        return environment
    from compatcheck.inference.model_families import family_of, type_of_class

    of_class = type_of_class(name, matrix.table("transformers-model-types"))
    family = {"type": of_class} if of_class else family_of(name, matrix.table("model-families")) or {}
    implied = {fact: family[fact] for fact in _OF_FAMILY if fact in family and model.get(fact) is None}
    return environment._replace(facts={**environment.facts, "model": {**model, **implied}}) if implied else environment


def _with_quantization_of_name(environment: Environment) -> Environment:
    """Weights that a report calls GPTQ, AWQ or bnb are stored so.

    Since its first release LLM Compressor stores GPTQ in a form of its own, and AWQ since 0.5.1: a name says less then.
    https://pypi.org/project/llmcompressor/0.5.1/
    """
    name, day = lookup(environment, "model.name"), day_of_report(environment)
    if not isinstance(name, str) or day is None or lookup(environment, "training.quantization") != Unknown():
        return environment
    words = re.split(r"[^a-z\d]+", name.rpartition("/")[2].lower())
    methods = {method for word, (method, until) in _QUANTISED_BY.items() if word in words and day < until}
    if len(methods) != 1:
        return environment
    return _with_training(environment, "quantization", {"method": methods.pop()})


def _with_dtype(environment: Environment) -> Environment:
    """A launcher that takes bfloat16 where it is supported does so if every GPU has compute capability 8.0 or more.

    On older GPUs ``torch.cuda.is_bf16_supported()`` says no up to torch 2.2; from 2.3 it tries whether they can
    emulate the type, which is not known here: https://github.com/pytorch/pytorch/blob/v2.3.0/torch/cuda/__init__.py
    """
    training = environment.facts.get("training") or {}
    if training.get("dtype_rule") != "bfloat16-if-supported" or not isinstance(
        lookup(environment, "training.dtype"), Unknown
    ):
        return environment
    gpus = environment.facts.get("gpus") or ()
    capabilities = [gpu.get("compute_capability") for gpu in gpus]
    if not capabilities or not all(capabilities):
        return environment
    native = [float(capability) >= 8 for capability in capabilities]
    if all(native):
        return _with_training(environment, "dtype", "bfloat16")
    torch = lookup(environment, "distributions.torch")
    parsed = parse_version(torch) if isinstance(torch, str) else None
    if any(native) or parsed is None or not contains(parse_range("<2.3.0"), parsed):
        return environment
    return _with_training(environment, "dtype", "float16")


def _with_unquantized_dtype(environment: Environment) -> Environment:
    """What bitsandbytes leaves unquantized is float16 where no dtype was given, up to transformers 4.57.

    https://github.com/huggingface/transformers/blob/v4.57.6/src/transformers/quantizers/quantizer_bnb_4bit.py
    """
    if isinstance(lookup(environment, "training.quantization.method"), str) and (
        lookup(environment, "training.quantization.method") != "bitsandbytes"
    ):
        return environment
    bits, given = lookup(environment, "training.quantization.bits"), lookup(environment, "training.load_dtype")
    stated = lookup(environment, "training.unquantized_dtype")
    if bits not in (4, 8) or isinstance(given, Unknown) or not isinstance(stated, Unknown):
        return environment
    if given is not None:
        return _with_training(environment, "unquantized_dtype", given)
    version = lookup(environment, "distributions.transformers")
    parsed = parse_version(version) if isinstance(version, str) else None
    if parsed is None or not contains(parse_range(">=4.30.0,<5.0.0"), parsed):
        return environment
    return _with_training(environment, "unquantized_dtype", "float16")


def _with_flash_attn(environment: Environment) -> Environment:
    """A run with ``flash_attention_2`` has some release of FlashAttention 2, where nothing is said of flash-attn.

    The launchers in ``_WITHOUT_FLASH_ATTN`` go on with another attention where the package is missing:
    https://github.com/hiyouga/LLaMA-Factory/blob/v0.9.3/src/llamafactory/model/model_utils/attention.py
    """
    ranges = environment.facts.get("distribution_ranges") or {}
    said = ranges.get("flash-attn") or not isinstance(lookup(environment, "distributions.flash-attn"), Unknown)
    if said or lookup(environment, "training.attention") != "flash_attention_2":
        return environment
    if lookup(environment, "training.framework") in _WITHOUT_FLASH_ATTN:
        return environment
    return environment._replace(facts={**environment.facts, "distribution_ranges": {**ranges, "flash-attn": ">=2.0.0"}})


def _with_training(environment: Environment, fact: str, value: Any) -> Environment:
    training = {**(environment.facts.get("training") or {}), fact: value}
    reasons = {path: why for path, why in environment.reasons.items() if path != f"training.{fact}"}
    return environment._replace(facts={**environment.facts, "training": training}, reasons=reasons)


def _with_deepspeed_defaults(environment: Environment) -> Environment:
    """A ZeRO stage that is stated brings the settings whose default no release of DeepSpeed has changed."""
    training = environment.facts.get("training") or {}
    stated = training.get("deepspeed")
    if not isinstance(stated, Mapping) or stated.get("zero_stage") is None:
        return environment
    silent = {
        name: default
        for name, default in _DEEPSPEED_DEFAULTS.items()
        if lookup(environment, f"training.deepspeed.{name}") == Unknown()
    }
    completed = {**training, "deepspeed": {**silent, **stated}}
    return environment._replace(facts={**environment.facts, "training": completed}) if silent else environment


def _with_switches(environment: Environment) -> Environment:
    """What a training script alone can switch is as its library has it, unless somebody says otherwise.

    - Attention may use cuDNN: https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cuda.enable_cudnn_sdp
    - Deterministic mode, once on, fills new tensors: https://docs.pytorch.org/docs/stable/deterministic.html
    - The Trainer finds out by itself whether a model takes ``num_items_in_batch``:
      https://github.com/huggingface/transformers/blob/v4.49.0/src/transformers/trainer.py
    - A launcher marks no modules as leaves for ZeRO-3; a loop of one's own may.
    """
    training = environment.facts.get("training")
    if not training:
        return environment
    implied = {
        "cudnn_sdp": True,
        "model_accepts_loss_kwargs": True,
        "fill_uninitialized_memory": training.get("deterministic"),
    }
    for fact, value in implied.items():
        if value is not None and lookup(environment, f"training.{fact}") == Unknown():
            environment = _with_training(environment, fact, value)
    sharded = training.get("deepspeed")
    if isinstance(sharded, Mapping) and "leaf_modules" not in sharded and training.get("framework") in _WITHOUT_LEAVES:
        environment = _with_training(environment, "deepspeed", {**sharded, "leaf_modules": False})
    return environment


def _with_reentry(environment: Environment) -> Environment:
    """Checkpointing of which the arguments say no more is reentrant up to transformers 4, and not from 5.0.0 on.

    TRL has defaults of its own from 0.27.0 on, which hang on the trainer: there it stays what was not said. Before, its
    scripts choose one form or the other, and it is not known.
    https://github.com/huggingface/trl/blob/v0.12.0/trl/commands/scripts/sft_vlm.py
    https://github.com/huggingface/transformers/blob/v5.0.0/src/transformers/modeling_utils.py
    https://github.com/huggingface/trl/blob/v0.27.0/trl/trainer/dpo_config.py
    """
    training = environment.facts.get("training") or {}
    if lookup(environment, "training.gradient_checkpointing_kwargs.use_reentrant") is not None:
        return environment
    framework = training.get("framework")
    trl, transformers = (_released(environment, name) for name in ("trl", "transformers"))
    if framework == "trl" and trl is not None and trl >= Version("0.27"):
        return environment
    said = {}
    if framework == "transformers" and transformers is not None:
        said["use_reentrant"] = transformers < Version("5.0")
    return _with_training(environment, "gradient_checkpointing_kwargs", said)


def _released(environment: Environment, name: str) -> Version | None:
    version = lookup(environment, f"distributions.{name}")
    return parse_version(version) if isinstance(version, str) else None


def _without_foreign_runtime(matrix: Matrix, environment: Environment) -> Environment:
    """A runtime that no build of this torch has is the driver's or nvcc's number, unless torch itself was read.

    It is kept as ``cuda.foreign_runtime``: that torch is built with CUDA it still tells.
    """
    cuda, torch = environment.facts.get("cuda") or {}, lookup(environment, "distributions.torch")
    runtime = cuda.get("runtime")
    if not (isinstance(runtime, str) and isinstance(torch, str)) or environment.facts.get("torch_build"):
        return environment
    builds = matrix.table("torch-cuda-builds")["builds"].get(minor(torch))
    if builds is None or minor(runtime) in builds or is_vendor_build(torch):
        return environment
    kept = {fact: value for fact, value in cuda.items() if fact != "runtime"} | {"foreign_runtime": runtime}
    reason = f"given as {runtime}, which no build of torch {torch} has"
    reasons = {**environment.reasons, "cuda.runtime": reason}
    return environment._replace(facts={**environment.facts, "cuda": kept}, reasons=reasons)


def _with_gpus_in_use(environment: Environment) -> Environment:
    """A run on named NVIDIA GPUs has a torch built with CUDA, where nothing is said of torch."""
    training, gpus = environment.facts.get("training"), environment.facts.get("gpus") or ()
    facts = ("distributions.torch", "torch_build.cuda", "cuda.runtime")
    if not training or any(not isinstance(lookup(environment, fact), Unknown) for fact in facts):
        return environment
    if not gpus or not all(gpu.get("compute_capability") for gpu in gpus):
        return environment
    cuda = {**(environment.facts.get("cuda") or {}), "foreign_runtime": "that of the GPUs"}
    return environment._replace(facts={**environment.facts, "cuda": cuda})


def _with_runtime(environment: Environment) -> Environment:
    if not isinstance(lookup(environment, "cuda.runtime"), Unknown):
        return environment
    runtime = runtime_of(environment.facts.get("distributions") or {})
    if isinstance(runtime, Unknown):
        return environment
    cuda = {**(environment.facts.get("cuda") or {}), "runtime": runtime}
    return environment._replace(facts={**environment.facts, "cuda": cuda})


def _with_hip(environment: Environment) -> Environment:
    """The label of torch tells ROCm's version, as ``+rocm6.1`` does; that of another backend, that there is none."""
    torch, build = lookup(environment, "distributions.torch"), environment.facts.get("torch_build") or {}
    backend = backend_of(torch) if isinstance(torch, str) else None
    if backend is None or not isinstance(lookup(environment, "torch_build.hip"), Unknown):
        return environment
    hip = backend.removeprefix("rocm") if backend.startswith("rocm") else None
    return environment._replace(facts={**environment.facts, "torch_build": {**build, "hip": hip}})


def _with_compute_capabilities(matrix: Matrix, environment: Environment) -> Environment:
    gpus = environment.facts.get("gpus")
    if not gpus or all(gpu.get("compute_capability") for gpu in gpus):
        return environment
    rows = matrix.table("gpu-compute-capability")["compute_capability"]
    return environment._replace(facts={**environment.facts, "gpus": [_completed(gpu, rows) for gpu in gpus]})


def _completed(gpu: Mapping[str, Any], rows: Mapping[str, str]) -> Mapping[str, Any]:
    found = None if gpu.get("compute_capability") else compute_capability(gpu.get("name") or "", rows)
    return {**gpu, "compute_capability": found} if found else gpu


def compute_capability(name: str, rows: Mapping[str, str]) -> str | None:
    """The capability of the longest row whose words stand in the name, or None for a name the table does not know."""
    words = _words(name)
    matching = [row for row in rows if _stands_in(_words(row), words)]
    return rows[max(matching, key=lambda row: len(_words(row)))] if matching else None


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+\d+[a-z]*|\d+|[a-z]+", text.lower())


def _stands_in(row: list[str], words: list[str]) -> bool:
    remaining = iter(words)
    return all(word in remaining for word in row)
