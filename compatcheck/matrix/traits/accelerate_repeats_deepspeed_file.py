"""An accelerate configuration names a DeepSpeed file, and has settings of its own that belong into that file."""

from __future__ import annotations

from compatcheck.environment import Environment
from compatcheck.language import gettext as _
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._contradictions import contradictions, is_open, place

_RULE = "accelerate-repeats-deepspeed-file"


def find(environment: Environment, table: Table) -> TraitVerdict:
    if environment.get("training.deepspeed") is None:
        return TraitVerdict(False)
    if is_open(environment):
        return TraitVerdict(None, missing=("training.contradictions",))
    found = list(contradictions(environment, _RULE))
    if not found:
        return TraitVerdict(False)
    settings = ", ".join(f"{each['setting']} ({place(each)})" for each in found)
    seen = _("accelerate raises ValueError: {settings} cannot be set together with deepspeed_config_file {file}.")
    summary = seen.format(settings=settings, file=found[0]["other_value"])
    return TraitVerdict(True, (Occurrence(summary, ("accelerate",), location=place(found[0])),))
