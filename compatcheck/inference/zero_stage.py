"""The stage of ZeRO that the name of a DeepSpeed configuration tells."""

from __future__ import annotations

import re

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Inference, InferredFacts
from compatcheck.language import marked

FILE = "training.deepspeed_file"
_STAGE = "training.deepspeed.zero_stage"
_NAMED = re.compile(r"(?:(?<![a-z])z|zero|stage)[-_ ]?(?:stage[-_ ]?)?([0-3])(?![\d])", re.I)


def zero_stage(view: Environment) -> InferredFacts:
    """The stage of a configuration that is not at hand, as ``ds_z3_config.json`` and ``deepspeed_zero2`` have it.

    What else it sets stays unknown.
    """
    name = view.get(FILE)
    if not isinstance(name, str) or not isinstance(view.get(_STAGE), Unknown):
        return
    stages = set(_NAMED.findall(re.split(r"[/\\]", name)[-1]))
    if len(stages) == 1:
        why = marked("from the file name of the DeepSpeed configuration; the file itself is missing")
        yield _STAGE, Inference(int(stages.pop()), why, (FILE,), view.locations.get(FILE))
