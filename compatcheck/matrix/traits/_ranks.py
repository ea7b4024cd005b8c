"""Does training run on more than one rank."""

from __future__ import annotations

from collections.abc import Mapping

from compatcheck.environment import Environment, Unknown
from compatcheck.matrix.matching.match import TraitVerdict

_ZERO_STAGE, _WORLD_SIZE = "training.deepspeed.zero_stage", "training.world_size"
_SEVERAL = "training.several_ranks"


def several_ranks(environment: Environment) -> TraitVerdict:
    """Whoever trains with DeepSpeed does so on several ranks unless something says otherwise.

    A single GPU says so much that the question stays open, unless a report names it without saying how many there are;
    no GPU says only that training runs on another machine.
    """
    stage, size = environment.get(_ZERO_STAGE), environment.get(_WORLD_SIZE)
    if size == 1 or stage is None:
        return TraitVerdict(False)
    unsaid = isinstance(environment.get("distributions.deepspeed"), Unknown) and not _has_settings(environment)
    if isinstance(stage, Unknown) and unsaid:
        return TraitVerdict(None, missing=(_ZERO_STAGE,))
    if environment.get(_SEVERAL) is True:
        return TraitVerdict(True)
    gpus = environment.get("gpus")
    alone = not isinstance(gpus, Unknown) and len(gpus or ()) == 1 and not gpus[0].get("uncounted")
    if isinstance(size, Unknown) and alone:
        return TraitVerdict(None, missing=(_WORLD_SIZE,))
    return TraitVerdict(True, presumed=isinstance(size, Unknown))


def _has_settings(environment: Environment) -> bool:
    """Whether a setting of DeepSpeed is stated, which is known without the stage where a report names one alone."""
    stated = environment.get("training.deepspeed")
    return isinstance(stated, Mapping) and any(value is not None for value in stated.values())
