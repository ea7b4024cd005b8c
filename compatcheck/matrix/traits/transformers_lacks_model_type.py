"""This release of transformers does not know the model's type yet, or no longer.

A model that brings code of its own is loaded all the same, and so is one whose class is registered by another package.
"""

from __future__ import annotations

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.packages.versions import is_vendor_build, parse_version

_OWN_MODELS = ("nemo", "torchtune")
_REGISTERED_ELSEWHERE = ("llava", "mamba", "mpt")
"""Types that the published training code of a model registered before transformers had them:
https://github.com/haotian-liu/LLaVA/blob/v1.1.3/llava/model/language_model/llava_llama.py
"""


def find(environment: Environment, table: Table) -> TraitVerdict:
    facts = ("distributions.transformers", "model.type")
    installed, model_type = (environment.get(fact) for fact in facts)
    remote = environment.get("model.remote_code")
    if remote is True or environment.get("training.framework") in _OWN_MODELS:
        return TraitVerdict(False)
    missing = tuple(fact for fact, value in zip(facts, (installed, model_type)) if isinstance(value, Unknown))
    if missing or not installed or not model_type:
        return TraitVerdict(None if missing else False, missing=missing)
    version = parse_version(installed)
    if version is None or is_vendor_build(installed) or _is_registered_elsewhere(environment, model_type):
        return TraitVerdict(None, missing=facts[:1])
    known = table("transformers-model-types")
    first, last = known["first"].get(model_type), known["last"].get(model_type)
    if first and first != known["oldest"] and version < Version(first):
        if version.release == Version(first).release:
            return TraitVerdict(None, missing=facts[:1])
        return _verdict(f"transformers {first} introduced it", installed, model_type, f">={first}", remote)
    if last and version > Version(last):
        return _verdict(f"transformers {last} was the last release with it", installed, model_type, f"<={last}", remote)
    return TraitVerdict(False)


def _is_registered_elsewhere(environment: Environment, model_type: str) -> bool:
    """vLLM brings classes for types that are new, and registers them:

    https://github.com/vllm-project/vllm/blob/v0.9.2/vllm/transformers_utils/config.py
    """
    has_vllm = isinstance(environment.get("distributions.vllm"), str)
    return has_vllm or model_type in _REGISTERED_ELSEWHERE


def _verdict(why: str, installed: str, model_type: str, pin: str, remote: object) -> TraitVerdict:
    summary = f"transformers {installed} does not support the model type {model_type}: {why}."
    occurrence = Occurrence(summary, ("transformers",), {"transformers": pin})
    if isinstance(remote, Unknown):
        return TraitVerdict(None, (occurrence,), ("model.remote_code",), suspected=True)
    return TraitVerdict(True, (occurrence,))
