"""Padding-free training that trl turns on for packed samples."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Inference, InferredFacts
from compatcheck.language import marked

_FLAG, _STRATEGY, _ARGUMENTS = "training.padding_free", "training.packing_strategy", "training.calls.trl.SFTConfig"
_WHOLE_SAMPLES = ("ffd", "bfd", "bfd_split")
"""Strategies that turn padding-free training on, unlike ``wrapped`` and, in 0.29, ``bfd-requeue``."""


def padding_free_packing(view: Environment) -> InferredFacts:
    """Padding-free if trl's SFTTrainer packs whole samples and nothing else is stated; since 0.19.0.

    The default of ``padding_free`` gives way: https://github.com/huggingface/trl/blob/v0.19.0/trl/trainer/sft_trainer.py
    """
    is_packed = view.get("training.packing") is True and view.get("training.framework") == "trl"
    if not is_packed or view.get(_STRATEGY) not in _WHOLE_SAMPLES:
        return
    arguments = view.get(_ARGUMENTS)
    is_default = isinstance(arguments, list) and "padding_free" not in arguments
    if is_default or isinstance(view.get(_FLAG), Unknown):
        why = marked("trl trains packed samples without padding")
        yield _FLAG, Inference(True, why, ("training.packing", _STRATEGY), view.locations.get("training.packing"))
