"""What follows from stated facts: a GPU's compute capability, torch's CUDA runtime, what a model's name tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from datetime import date
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.argument_defaults import CALLS, argument_defaults, precision
from compatcheck.inference.cuda_build import default_build, has_cuda, libraries
from compatcheck.inference.default_attention import default_attention
from compatcheck.inference.image_contents import contents_of_image
from compatcheck.inference.inferred import Inference, Inferred, InferredFacts, Judged, Limit, Table, with_inference
from compatcheck.inference.packed_samples import padding_free_packing
from compatcheck.inference.report_date import day_of_report, limits_by_day, newest_by_day
from compatcheck.inference.required_packages import required
from compatcheck.inference.torch_builds import backend_of, minor, runtime_of
from compatcheck.inference.unsloth_loggers import unsloth_loggers
from compatcheck.inference.zero_stage import zero_stage
from compatcheck.language import marked
from compatcheck.packages.frameworks import framework_of
from compatcheck.packages.known_releases import bounds
from compatcheck.packages.names import normalised
from compatcheck.packages.required_python import accepted_pythons, lowest_python
from compatcheck.packages.versions import contains, final_release, is_vendor_build, parse_range, parse_version

_DEEPSPEED_DEFAULTS = {"contiguous_gradients": True, "reduce_scatter": True}
_FAMILY_FACTS = ("type", "remote_code", "torch_dtype")
_QUANTISED_BY = {
    "awq": ("awq", date(2025, 4, 29)),
    "bnb": ("bitsandbytes", date.max),
    "gptq": ("gptq", date(2024, 8, 8)),
}
_BUILDS = "tables/torch-cuda-builds"
_NPU = re.compile(r"(?:Huawei )?Ascend", re.IGNORECASE)
_WITHOUT_CUDA = (
    (_NPU, marked("the accelerators are Ascend NPUs")),
    (re.compile(r"AMD |(?:AMD )?(?:Radeon|Instinct)\b", re.IGNORECASE), marked("the GPUs are from AMD")),
)


class _Given(NamedTuple):
    """What rules read besides the facts: the tables, the packages that entries name, the limits by the report's day."""

    table: Table
    packages: Container[str]
    limits: Mapping[str, Limit]


class _Rule(Protocol):
    def __call__(self, view: Environment, given: _Given) -> InferredFacts: ...


def infer(stated: Environment, table: Table, packages: Container[str]) -> Judged:
    """The environment with what its own facts imply and nobody stated; ``packages`` are those that entries name.

    Each rule sees what the ones before it found. What is stated stays as it is: inferring again gives the same.
    """
    facts: dict[str, Inference] = {}
    view = stated
    for rule in rules(stated, table, packages):
        for path, inference in rule(view):
            facts[path] = inference
            view = with_inference(view, path, inference)
    is_built = is_cuda_build(view, facts.get("cuda.runtime"))
    return Judged(stated, bounds_of(view, table)._replace(facts=facts, has_cuda=is_built), view)


def rules(
    stated: Environment, table: Table, packages: Container[str]
) -> tuple[Callable[[Environment], InferredFacts], ...]:
    """The rules in their order; each takes the environment with what the ones before it found."""
    given = _Given(table, packages, limits_by_day(stated, table))
    return tuple(partial(rule, given=given) for rule in _RULES)


def bounds_of(view: Environment, table: Table) -> Inferred:
    """What bounds the versions that stay unknown, where an environment has all facts that follow."""
    return Inferred(
        limits=limits_by_day(view, table), required=required(view, table), python_range=python_range(view, table)
    )


def _releases_for_python(view: Environment, given: _Given) -> InferredFacts:
    """What is required without a version is at most the newest release with a file for the Python."""
    python = view.get("python")
    if not isinstance(python, str) or "requirements" not in view.facts:
        return
    from packaging.specifiers import SpecifierSet

    required = {each["name"] for each in view.facts["requirements"]}
    for name, asked in view.section("distribution_ranges").items():
        newest = bounds(name, python, given.table).newest if name in required else None
        if newest is None or not isinstance(view.get(f"distributions.{name}"), Unknown):
            continue
        limit = f"<={newest}"
        try:
            excluded = SpecifierSet(asked).is_disjoint(SpecifierSet(limit))
        except ValueError:
            continue
        if limit not in asked and not excluded:
            why = marked("the newest release with a file for this Python")
            path = f"distribution_ranges.{name}"
            sources = ("python", path, "tables/installable-releases")
            at = view.locations.get(f"distributions.{name}")
            yield path, Inference(",".join(filter(None, (asked, limit))), why, sources, at)


def _package_of_repository(view: Environment, given: _Given) -> InferredFacts:
    """The package that bears the name of the repository a report is in is there, in some version."""
    repository = view.get("report.repository")
    name = normalised(repository.rpartition("/")[2]) if isinstance(repository, str) else ""
    listed = name in view.section("distribution_ranges")
    if name in given.packages and not listed and view.get(f"distributions.{name}") == Unknown():
        why = marked("the report is in this package's repository")
        yield f"distribution_ranges.{name}", Inference("", why, ("report.repository",))


def _newest_releases(view: Environment, given: _Given) -> InferredFacts:
    yield from newest_by_day(view, given.table)


def _image_contents(view: Environment, given: _Given) -> InferredFacts:
    yield from contents_of_image(view, given.table)


def _compute_capabilities(view: Environment, given: _Given) -> InferredFacts:
    gpus = view.facts.get("gpus") or ()
    if all(gpu.get("compute_capability") for gpu in gpus):
        return
    rows = given.table("gpu-compute-capability")["compute_capability"]
    for number, gpu in enumerate(gpus):
        found = None if gpu.get("compute_capability") else value_for_name(gpu.get("name") or "", rows)
        if found:
            why = marked("from the GPU's name")
            sources = (f"gpus.{number}.name", "tables/gpu-compute-capability")
            yield f"gpus.{number}.compute_capability", Inference(found, why, sources)


def _gfx_targets(view: Environment, given: _Given) -> InferredFacts:
    """The target of an AMD GPU by its name; one of another maker has none."""
    for number, gpu in enumerate(view.facts.get("gpus") or ()):
        name = gpu.get("name") or ""
        if "gfx" in gpu:
            continue
        if gpu.get("compute_capability") or _NPU.match(name):
            yield f"gpus.{number}.gfx", Inference(None, marked("the GPU is not from AMD"), (f"gpus.{number}",))
        elif found := value_for_name(name, given.table("amd-gpu-targets")["gfx"]):
            sources = (f"gpus.{number}.name", "tables/amd-gpu-targets")
            yield f"gpus.{number}.gfx", Inference(found, marked("from the GPU's name"), sources)


def _no_cuda_elsewhere(view: Environment, given: _Given) -> InferredFacts:
    """A machine whose accelerators are all of another maker has no compute capability, NVIDIA driver and CUDA."""
    gpus = view.facts.get("gpus") or ()
    made_by = (why for maker, why in _WITHOUT_CUDA if all(maker.match(gpu.get("name") or "") for gpu in gpus))
    why = next(made_by, None) if gpus else None
    if why is None:
        return
    for number, gpu in enumerate(gpus):
        if "compute_capability" not in gpu:
            yield f"gpus.{number}.compute_capability", Inference(None, why, ("gpus",))
    labelled = isinstance(runtime_of(view.section("distributions")), str)
    for fact in ("runtime", "driver", "driver_api", "toolkit", "cudnn", "nccl"):
        if isinstance(view.get(f"cuda.{fact}"), Unknown) and not (labelled and fact == "runtime"):
            yield f"cuda.{fact}", Inference(None, why, ("gpus",))


def _model_of_repository(view: Environment, given: _Given) -> InferredFacts:
    """A report that names no model, in the repository of one, is about that; not before transformers knew its type.

    A repository that has been renamed for a later model holds reports on the earlier ones.
    """
    repository = view.get("report.repository")
    if view.facts.get("model", {}) != {} or not isinstance(repository, str) or "transformers" not in given.limits:
        return
    from compatcheck.inference.model_families import family_of

    name, types = repository.rpartition("/")[2], given.table("transformers-model-types")
    family = family_of(name, given.table("model-families"))
    first, newest = types["first"].get(family and family.get("type")), given.limits["transformers"].newest
    if family is None or (first and (newest is None or Version(first) > Version(newest))):
        return
    why = marked("the report is in this model's repository")
    yield "model.name", Inference(name, why, ("report.repository", "report.date", "tables/model-families"))


def _model_family(view: Environment, given: _Given) -> InferredFacts:
    """What all models of a published family share, for a model of which no more than its name is known."""
    model = view.section("model")
    name = model.get("name")
    if not isinstance(name, str) or any(model.get(fact) for fact in ("type", "architectures", "files", "source")):
        return
    from compatcheck.inference.model_families import family_of, type_of_class

    class_type = type_of_class(name, given.table("transformers-model-types"))
    family = {"type": class_type} if class_type else family_of(name, given.table("model-families")) or {}
    table = "transformers-model-types" if class_type else "model-families"
    for fact in _FAMILY_FACTS:
        if fact in family and model.get(fact) is None:
            why = marked("all models of this family share the value")
            yield f"model.{fact}", Inference(family[fact], why, ("model.name", f"tables/{table}"))


def _quantization_of_name(view: Environment, given: _Given) -> InferredFacts:
    """Weights that a report calls GPTQ, AWQ or bnb are stored so.

    Since its first release LLM Compressor stores GPTQ in a form of its own, and AWQ since 0.5.1: a name says less then.
    https://pypi.org/project/llmcompressor/0.5.1/
    """
    name, day = view.get("model.name"), day_of_report(view)
    if not isinstance(name, str) or day is None or view.get("training.quantization") != Unknown():
        return
    words = re.split(r"[^a-z\d]+", name.rpartition("/")[2].lower())
    methods = {method for word, (method, until) in _QUANTISED_BY.items() if word in words and day < until}
    if len(methods) == 1:
        why = marked("from the model's name")
        yield "training.quantization.method", Inference(methods.pop(), why, ("model.name", "report.date"))


def _dtype(view: Environment, given: _Given) -> InferredFacts:
    """A launcher that takes bfloat16 where it is supported does so if every GPU has compute capability 8.0 or more.

    On older GPUs ``torch.cuda.is_bf16_supported()`` says no up to torch 2.2; from 2.3 it tries whether they can
    emulate the type, which is not known here: https://github.com/pytorch/pytorch/blob/v2.3.0/torch/cuda/__init__.py
    """
    rule, dtype = view.get("training.dtype_rule"), view.get("training.dtype")
    if rule != "bfloat16-if-supported" or not isinstance(dtype, Unknown):
        return
    capabilities = [gpu.get("compute_capability") for gpu in view.facts.get("gpus") or ()]
    if not capabilities or not all(capabilities):
        return
    native = [float(capability) >= 8 for capability in capabilities]
    sources = ("training.dtype_rule", "gpus")
    if all(native):
        why = marked("every GPU supports bfloat16, so the launcher selects it")
        yield "training.dtype", Inference("bfloat16", why, sources)
    elif not any(native) and _is_release(view, "torch", "<2.3.0"):
        why = marked("no GPU supports bfloat16, and this torch release does not emulate it")
        yield "training.dtype", Inference("float16", why, (*sources, "distributions.torch"))


def _unquantized_dtype(view: Environment, given: _Given) -> InferredFacts:
    """What bitsandbytes leaves unquantized is float16 where no dtype was given, up to transformers 4.57.

    https://github.com/huggingface/transformers/blob/v4.57.6/src/transformers/quantizers/quantizer_bnb_4bit.py
    """
    method = view.get("training.quantization.method")
    if isinstance(method, str) and method != "bitsandbytes":
        return
    bits, given_dtype = view.get("training.quantization.bits"), view.get("training.load_dtype")
    stated = view.get("training.unquantized_dtype")
    if bits not in (4, 8) or isinstance(given_dtype, Unknown) or not isinstance(stated, Unknown):
        return
    sources = ("training.quantization", "training.load_dtype")
    if given_dtype is not None:
        why = marked("the model is loaded in this dtype")
        yield "training.unquantized_dtype", Inference(given_dtype, why, sources)
    elif _is_release(view, "transformers", ">=4.30.0,<5.0.0"):
        why = marked("default of transformers 4 for quantized models")
        yield "training.unquantized_dtype", Inference("float16", why, (*sources, "distributions.transformers"))


def _flash_attn(view: Environment, given: _Given) -> InferredFacts:
    """A run with ``flash_attention_2`` has some release of FlashAttention 2, where nothing is said of flash-attn.

    Some frameworks go on with another attention where the package is missing.
    """
    ranges = view.section("distribution_ranges")
    known = ranges.get("flash-attn") or not isinstance(view.get("distributions.flash-attn"), Unknown)
    if known or view.get("training.attention") != "flash_attention_2":
        return
    framework = framework_of(view.get("training.framework"))
    if framework and "flash-attn" in framework.does_without:
        return
    why = marked("flash_attention_2 requires flash-attn 2")
    yield "distribution_ranges.flash-attn", Inference(">=2.0.0", why, ("training.attention",))


def _deepspeed_defaults(view: Environment, given: _Given) -> InferredFacts:
    """A ZeRO stage that is stated brings the settings whose default no release of DeepSpeed has changed."""
    stated = view.section("training").get("deepspeed")
    named_alone = view.states("training.deepspeed_file")
    if named_alone or not isinstance(stated, Mapping) or stated.get("zero_stage") is None:
        return
    for name, default in _DEEPSPEED_DEFAULTS.items():
        if view.get(f"training.deepspeed.{name}") == Unknown():
            why = marked("default of DeepSpeed")
            yield f"training.deepspeed.{name}", Inference(default, why, ("training.deepspeed.zero_stage",))


def _switches(view: Environment, given: _Given) -> InferredFacts:
    """What a training script alone can switch is as its library has it, unless somebody says otherwise.

    - Attention may use cuDNN: https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cuda.enable_cudnn_sdp
    - Deterministic mode, once on, fills new tensors: https://docs.pytorch.org/docs/stable/deterministic.html
    - The Trainer finds out by itself whether a model takes ``num_items_in_batch``:
      https://github.com/huggingface/transformers/blob/v4.49.0/src/transformers/trainer.py
    - No setting of a launcher marks modules as leaves for ZeRO-3; a loop of one's own may. What some mark by themselves
      is for entries to tell, by their releases.
    """
    training = view.facts.get("training")
    if not training:
        return
    defaults = {
        "cudnn_sdp": Inference(True, marked("default of torch"), ("training",)),
        "model_accepts_loss_kwargs": Inference(True, marked("default of the Trainer, which detects it"), ("training",)),
        "fill_uninitialized_memory": Inference(
            training.get("deterministic"),
            marked("default of torch in deterministic mode"),
            ("training.deterministic",),
        ),
    }
    for fact, inference in defaults.items():
        if inference.value is not None and view.get(f"training.{fact}") == Unknown():
            yield f"training.{fact}", inference
    framework, leaves = framework_of(training.get("framework")), "training.deepspeed.leaf_modules"
    sharded = isinstance(training.get("deepspeed"), Mapping)
    if sharded and isinstance(view.get(leaves), Unknown) and framework and leaves in framework.never_sets:
        why = marked("no setting of this framework marks modules as ZeRO-3 leaves")
        yield leaves, Inference(False, why, ("training.framework",))


def _reentry(view: Environment, given: _Given) -> InferredFacts:
    """Checkpointing of which the arguments say no more is reentrant up to transformers 4, and not from 5.0.0 on.

    TRL has defaults of its own from 0.27.0 on, which hang on the trainer: there it stays what was not said. Before, its
    scripts choose one form or the other, and it is not known.
    https://github.com/huggingface/trl/blob/v0.12.0/trl/commands/scripts/sft_vlm.py
    https://github.com/huggingface/transformers/blob/v5.0.0/src/transformers/modeling_utils.py
    https://github.com/huggingface/trl/blob/v0.27.0/trl/trainer/dpo_config.py
    """
    section = "training.gradient_checkpointing_kwargs"
    path = f"{section}.use_reentrant"
    training = view.facts.get("training")
    if not isinstance(training, Mapping) or view.get(path) is not None:
        return
    framework = training.get("framework")
    trl, transformers = (_release(view, name) for name in ("trl", "transformers"))
    if framework == "trl" and trl is not None and trl >= Version("0.27"):
        return
    if framework == "transformers" and transformers is not None:
        why = marked("default of this transformers release")
        sources = (path, "training.framework", "distributions.transformers")
        yield path, Inference(transformers < Version("5.0"), why, sources)
    else:
        why = marked("the arguments set no value, and the default is unknown")
        yield section if view.get(section) is None else path, Inference(Unknown(), why, (path,))


def _foreign_runtime(view: Environment, given: _Given) -> InferredFacts:
    """A runtime that no build of this torch has is the driver's or nvcc's number, unless torch itself was read."""
    runtime, torch = view.get("cuda.runtime"), view.get("distributions.torch")
    if not (isinstance(runtime, str) and isinstance(torch, str)) or view.facts.get("torch_build"):
        return
    builds = given.table("torch-cuda-builds")["builds"].get(minor(torch))
    if builds is None or minor(runtime) in builds or is_vendor_build(torch):
        return
    reason = f"the given value is {runtime}, but no build of torch {torch} has it"
    yield "cuda.runtime", Inference(Unknown(reason), reason, ("cuda.runtime", "distributions.torch", _BUILDS))


def _runtime(view: Environment, given: _Given) -> InferredFacts:
    versions = view.section("distributions")
    runtime = runtime_of(versions)
    if isinstance(view.get("cuda.runtime"), Unknown) and not isinstance(runtime, Unknown):
        why = marked("from torch's version label or the installed CUDA packages")
        yield "cuda.runtime", Inference(runtime, why, ("distributions",))


def _hip(view: Environment, given: _Given) -> InferredFacts:
    """The label of torch tells ROCm's version, as ``+rocm6.1`` does; that of another backend, that there is none."""
    torch = view.get("distributions.torch")
    backend = backend_of(torch) if isinstance(torch, str) else None
    if backend is not None and isinstance(view.get("torch_build.hip"), Unknown):
        hip = backend.removeprefix("rocm") if backend.startswith("rocm") else None
        yield "torch_build.hip", Inference(hip, marked("from torch's version label"), ("distributions.torch",))


def _default_build(view: Environment, given: _Given) -> InferredFacts:
    yield from default_build(view, given.table)


def _cuda_libraries(view: Environment, given: _Given) -> InferredFacts:
    yield from libraries(view)


def _zero_stage(view: Environment, given: _Given) -> InferredFacts:
    yield from zero_stage(view)


def _unsloth_loggers(view: Environment, given: _Given) -> InferredFacts:
    yield from unsloth_loggers(view)


def _argument_defaults(view: Environment, given: _Given) -> InferredFacts:
    if view.section(CALLS):
        yield from argument_defaults(view, given.table)


def _padding_free_packing(view: Environment, given: _Given) -> InferredFacts:
    yield from padding_free_packing(view)


def _precision(view: Environment, given: _Given) -> InferredFacts:
    if view.section(CALLS):
        yield from precision(view, given.table)


def _default_attention(view: Environment, given: _Given) -> InferredFacts:
    if view.facts.get("training"):
        yield from default_attention(view, given.table)


_RULES: tuple[_Rule, ...] = (
    _releases_for_python,
    _package_of_repository,
    _newest_releases,
    _image_contents,
    _compute_capabilities,
    _gfx_targets,
    _no_cuda_elsewhere,
    _model_of_repository,
    _model_family,
    _foreign_runtime,
    _runtime,
    _hip,
    _default_build,
    _cuda_libraries,
    _quantization_of_name,
    _zero_stage,
    _deepspeed_defaults,
    _unsloth_loggers,
    _argument_defaults,
    _padding_free_packing,
    _precision,
    _default_attention,
    _switches,
    _reentry,
    _dtype,
    _unquantized_dtype,
    _flash_attn,
)


def python_range(view: Environment, table: Table) -> str | None:
    """Where nothing is said of Python: each release takes it, and it is older than the first that torch lacks."""
    if not isinstance(view.get("python"), Unknown):
        return None
    bounds = [*_lowest_python(view, table), *_python_without_torch(view, table)]
    return ",".join(bounds) or None


def _lowest_python(view: Environment, table: Table) -> Iterator[str]:
    releases = {name: final_release(version) for name, version in view.section("distributions").items()}
    accepted = (accepted_pythons(name, release, table) for name, release in releases.items() if release)
    lowest = max(filter(None, map(lowest_python, accepted)), default=None)
    if lowest is not None:
        yield f">={lowest}"


def _python_without_torch(view: Environment, table: Table) -> Iterator[str]:
    torch = _release(view, "torch")
    if torch is not None and not torch.is_prerelease:
        first = table("torch-cuda-builds").get("first_for_python", ())
        lacking = [Version(python) for python, release in first if torch < Version(release)]
        if lacking:
            yield f"<{min(lacking)}"


def is_cuda_build(view: Environment, runtime: Inference | None) -> bool:
    """Whether torch is built with a CUDA of unknown version: with a runtime that is set aside, or as a run shows.

    ``runtime`` is what follows for the version of CUDA.
    """
    return has_cuda(view) if runtime is None else isinstance(runtime.value, Unknown)


def _release(view: Environment, name: str) -> Version | None:
    version = view.get(f"distributions.{name}")
    return parse_version(version) if isinstance(version, str) else None


def _is_release(view: Environment, name: str, versions: str) -> bool:
    release = _release(view, name)
    return release is not None and contains(parse_range(versions), release)


def value_for_name(name: str, rows: Mapping[str, str]) -> str | None:
    """The value of the longest row whose words stand in the name, or None for a name the table does not know."""
    words = _words(name)
    matching = [row for row in rows if _stands_in(_words(row), words)]
    return rows[max(matching, key=lambda row: len(_words(row)))] if matching else None


@lru_cache(maxsize=1000)
def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z]+\d+[a-z]*|\d+|[a-z]+", text.lower()))


@lru_cache(maxsize=10_000)
def _stands_in(row: tuple[str, ...], words: tuple[str, ...]) -> bool:
    remaining = iter(words)
    return all(word in remaining for word in row)
