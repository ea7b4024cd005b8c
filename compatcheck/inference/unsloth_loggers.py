"""The logger that unsloth chooses for the trainers of trl."""

from __future__ import annotations

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference._releases import release_in
from compatcheck.inference.argument_defaults import CALLS
from compatcheck.inference.inferred import Inference, InferredFacts
from compatcheck.language import marked

_FACT, _FIRST = "training.report_to", Version("2025.12.6")
_WHY = marked("unsloth turns logging off by default since 2025.12.6")
_UNCLEAR = marked("not set, and its default depends on the unsloth release")


def unsloth_loggers(view: Environment) -> InferredFacts:
    """No logger where unsloth replaces the configuration of a trainer and none is given.

    https://github.com/unslothai/unsloth/blob/main/unsloth/models/rl.py
    """
    if view.get("training.unsloth") is not True or view.get(_FACT) != Unknown():
        return
    if not any(name.startswith("trl.") and _is_default(given) for name, given in view.section(CALLS).items()):
        return
    release = release_in(view, "unsloth")
    if release is None or release >= _FIRST:
        sources = ("training.unsloth", "distributions.unsloth")
        value, why = (["none"], _WHY) if release else (Unknown(_UNCLEAR), _UNCLEAR)
        yield _FACT, Inference(value, why, sources)


def _is_default(given: object) -> bool:
    return isinstance(given, list) and "report_to" not in given
