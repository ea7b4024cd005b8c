"""Which tables that are still open are worth telling: what must speak for one, and what counts as nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from compatcheck.environment import Environment, lookup
from compatcheck.environment.paths import distribution_of
from compatcheck.packages.frameworks import framework_of_distribution

if TYPE_CHECKING:
    from compatcheck.matrix.matching.match import Verdict

_OFF_UNLESS_ASKED = (
    "training.deepspeed.compile",
    "training.deepspeed.offload_optimizer_device",
    "training.deepspeed.stage3_gather_16bit_weights_on_model_save",
    "training.fill_uninitialized_memory",
    "training.deepspeed.zero_hpz_partition_size",
    "training.deepspeed.zero_quantized_gradients",
    "training.deepspeed.zero_quantized_weights",
    "training.fsdp",
    "training.gradient_checkpointing",
    "training.lora.use_dora",
    "training.lora.use_rslora",
    "training.neftune_noise_alpha",
    "training.optimizer",
    "training.packing",
    "training.padding_free",
    "training.quantization.bits",
    "training.quantization.method",
    "training.torch_compile",
    "training.unsloth",
    "training.use_liger_kernel",
    "training.use_vllm",
)
_OF_NO_TRAINING = ("traits", "training.predict_with_generate", "training.use_cache")
_SPOKEN_OF = ("model.", "traits", "training.observed.", "every_gpu.", "torch_build.hip", *_OFF_UNLESS_ASKED)
_SUGGESTED_BY = {
    "training.deepspeed.stage3_gather_16bit_weights_on_model_save": ("training.deepspeed.zero_stage",),
    "training.use_liger_kernel": ("distributions.liger-kernel",),
    "training.optimizer": ("distributions.bitsandbytes",),
    "training.unsloth": ("distributions.unsloth", "distributions.unsloth-zoo"),
    "training.use_vllm": ("distributions.vllm", "training.objective"),
}
_CHOSEN_BY_FEW: dict[str, tuple[str | int, ...]] = {
    "platform.machine": ("aarch64", "arm64", "ppc64le"),
    "platform.system": ("Darwin", "Windows"),
    "training.attention": ("flex_attention", "xformers"),
    "training.deepspeed.optimizer": ("muon",),
    "training.deepspeed.zero_stage": (0,),
    "training.framework": ("alpaca-lora",),
    "training.load_dtype": ("bfloat16",),
    "training.lora.target_modules": ("all-linear",),
    "training.method": (*("prompt_tuning", "prompt-tuning", "p_tuning", "p-tuning", "prefix_tuning", "prefix-tuning"),),
    "training.objective": ("ppo",),
    "training.optimizer": ("adagrad", "lion_8bit", "lion_32bit", "paged_lion_8bit", "paged_lion_32bit"),
}
_PROGRAMS = frozenset(
    (
        *("ai2-olmo", "chattts", "colbert-ai", "coqui-tts", "ctranslate2", "deepfilternet", "infinity-emb"),
        *("instructlab", "llava", "llmcompressor", "lmflow", "minicons", "neural-cherche", "oumi", "qwen-asr"),
        *("qwen-tts", "rank-llm", "safe-mol", "salesforce-lavis", "sgl-kernel", "sglang", "silero-vad"),
        *("transformer-lens", "tts", "xinference"),
    )
)
"""Packages that somebody runs as they are, or builds a whole program on."""

_USED_WHERE: dict[str, tuple[str, str | bool]] = {
    "liger-kernel": ("training.use_liger_kernel", True),
    "unsloth": ("training.unsloth", True),
    "unsloth-zoo": ("training.unsloth", True),
    "vllm": ("training.use_vllm", True),
}
_OWN_SETTINGS = {"deepspeed": "training.deepspeed", "peft": "training.lora", "bitsandbytes": "training.quantization"}
_KINDS = {
    "gpu": "hardware",
    "every_gpu": "hardware",
    "cuda.driver": "hardware",
    "cuda.driver_api": "hardware",
    "training": "setting",
    "model": "model",
    "environ": "variable",
    "traits": "relation",
}
_TOLD_OF_MANY = ("training.framework", "training.runs_on", "training.objective", "training.method")


def rare_choices(conditions: Mapping[str, object]) -> frozenset[str]:
    """The facts of which a table asks for what few choose: each value it allows, or a variable that has to be set."""
    return frozenset(
        path
        for path, condition in conditions.items()
        if (path.startswith("environ.") and condition != "absent")
        or (path in _CHOSEN_BY_FEW and set(_CHOSEN_BY_FEW[path]).issuperset(_allowed(condition)))
    )


def _allowed(condition: object) -> list[Any]:
    return condition if isinstance(condition, list) else [condition]


def is_narrowed(parts: Mapping[str, Verdict], rare: frozenset[str], environment: Environment) -> bool:
    """Whether a table that is still open is worth telling; the first of these that speaks decides.

    - Yes, where a trait was seen somewhere, or holds by something singular.
    - No, where no more than the model's type or a suspected trait is singular, and more is missing than what a run
      without training would not state.
    - No, where what the entry is about is not known to be there: the model, a trait, what was seen in a log, a class of
      GPU, a build for AMD's, what is off unless asked for, or a choice that only few make (``rare``). A package that
      serves few switches speaks for them, and an objective that needs rollouts for vllm.
    - No, where a package is not known to be there, unless a setting that only this package has is stated, the run is
      known to use it, or facts of two kinds single the case out already: a GPU and a setting, a model and a setting.
    - Yes, where something singular holds beside the GPU, of which every machine has one: a setting, a trait, or a
      version below an upper bound. That a package is there, or newer than some release, is true of almost everyone.

    A range that is asked for counts as a version where its bad part is worth telling.
    """
    if any(path == "traits" and (part.occurrences or (part.holds and part.narrowed)) for path, part in parts.items()):
        return True
    holding = [path for path, part in parts.items() if part.holds is not False and part.narrowed]
    kinds = {_kind(path) for path in holding if parts[path].holds is True} - {None}
    open_still = [path for path, part in parts.items() if part.holds is None and path not in _OF_NO_TRAINING]
    if open_still and all(path == "traits" or path.startswith("model.") for path in holding):
        return False
    for path in (path for path, part in parts.items() if part.holds is None and not (part.narrowed or part.expected)):
        suggested = any(each in holding for each in _SUGGESTED_BY.get(path, ()))
        if path in rare or (path.startswith(_SPOKEN_OF) and not suggested):
            return False
        name = distribution_of(path)
        if name is None or len(kinds) > 1 or _is_used(name, environment):
            continue
        if not _has_settings(name, holding):
            return False
    return any(_kind(path) != "hardware" for path in holding)


def is_one_package_away(parts: Mapping[str, Verdict], rare: frozenset[str], environment: Environment) -> bool:
    """Whether a table would be worth telling if one package were known to be there; one fact more may lack.

    A framework or a program is not left out of a report: whoever runs one names it. Nor does anybody run a release that
    was old by the day of the report and say nothing of it.
    """
    lacking = [path for path, part in parts.items() if part.holds is None]
    packages = [
        path
        for path in lacking
        if path.startswith("distributions.") and parts[path].missing and not parts[path].expected
    ]
    if len(packages) != 1 or len(lacking) > 2 or parts[packages[0]].unlikely:
        return False
    name = distribution_of(packages[0])
    if name is None or name in _PROGRAMS or _is_program(name):
        return False
    there = {**parts, packages[0]: parts[packages[0]]._replace(expected=True)}
    return is_narrowed(there, rare, environment)


def _is_used(name: str, environment: Environment) -> bool:
    """Whether the run itself is known to go through the package, of which only the version is not known."""
    if name in _USED_WHERE:
        path, value = _USED_WHERE[name]
        return bool(lookup(environment, path) == value)
    framework = framework_of_distribution(name)
    if framework is None or not (framework.commands or framework.scripts):
        return False
    return bool(lookup(environment, "training.framework") == framework.name)


def _is_program(name: str) -> bool:
    framework = framework_of_distribution(name)
    return framework is not None and framework.program


def _has_settings(name: str, holding: Iterable[str]) -> bool:
    """Whether one of the facts is a setting that only the named package has."""
    settings = _OWN_SETTINGS.get(name)
    return settings is not None and any(stated.startswith(settings) for stated in holding)


def _kind(path: str) -> str | None:
    """What a fact is about: the machine, a setting, the model; None for versions and for what is said of many runs."""
    if path in _TOLD_OF_MANY:
        return None
    return _KINDS.get(path) or _KINDS.get(path.partition(".")[0])
