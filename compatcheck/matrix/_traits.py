"""Traits: named relations between facts, each computed by one unit in ``traits/``."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any

from compatcheck.environment import Environment, Unknown, lookup
from compatcheck.inference.report_date import day_of_report
from compatcheck.inference.torch_builds import Table as Table
from compatcheck.matrix.matching.match import TraitFinder, TraitVerdict

READ_FROM_CODE = (
    "added-tokens-inside-vocabulary",
    "cache-get-max-length",
    "cache-indexed-as-tuple",
    "cache-legacy-conversion",
    "cache-usable-length",
    "calls-get-extended-attention-mask",
    "calls-get-head-mask",
    "chat-template-returns-nested-list",
    "checkpoints-without-reentry",
    "forward-lacks-cache-position",
    "forward-takes-no-kwargs",
    "gradient-checkpointing-noop",
    "imports-flash-attn-check",
    "imports-logits-warper",
    "imports-loss-kwargs",
    "imports-mask-helpers",
    "imports-merged-attention-classes",
    "imports-pruning-helper",
    "imports-torch-fx-check",
    "imports-torch-version-flags",
    "imports-whisper-attention-classes",
    "inner-model-lacks-generation-mixin",
    "llama-attention-without-position-embeddings",
    "looks-up-default-rope",
    "masks-given-cache-position",
    "masks-given-inputs-embeds",
    "past-extracted-as-one-value",
    "past-extracted-by-inherited-method",
    "past-extracted-in-standard-format",
    "post-init-never-called",
    "prepares-generation-itself",
    "processor-lacks-patch-size",
    "reads-generation-settings-from-config",
    "reads-values-while-built",
    "registers-aimv2",
    "rotary-base-of-all-layers",
    "rotary-scaling-of-all-layers",
    "rotary-settings-by-layer-type",
    "rotary-settings-of-transformers-5",
    "safetensors-without-metadata",
    "sdpa-support-asked-of-submodel",
    "set-gradient-checkpointing-takes-value",
    "tied-weights-keys-as-list",
    "tokenizer-filled-after-init",
    "tokenizer-merges-as-pairs",
    "tokenizer-pad-lacks-padding-side",
)
"""The traits that reading a model's own files decides; any other one is known only where a snapshot states it."""

READ_FROM_TRAINERS = (
    "arguments-gone-in-transformers-5",
    "checkpoint-saved-with-metrics",
    "compute-loss-lacks-num-items",
    "evaluation-strategy-given",
    "train-sampler-takes-no-dataset",
    "trainer-given-tokenizer",
    "trainer-log-lacks-start-time",
    "training-step-lacks-num-items",
)
"""The traits that reading the user's own subclass of the Trainer decides."""

_READ_FROM_OTHER_FILES = (
    "added-tokens-inside-vocabulary",
    "processor-lacks-patch-size",
    "rotary-base-of-all-layers",
    "rotary-scaling-of-all-layers",
    "rotary-settings-by-layer-type",
    "rotary-settings-of-transformers-5",
    "safetensors-without-metadata",
    "tokenizer-merges-as-pairs",
)
"""Those of the former that a model without code of its own can have as well."""

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "traits")


@cache
def computed_traits() -> tuple[str, ...]:
    """The names of the traits that are computed from facts and tables: one per unit file."""
    return tuple(
        sorted(
            name[:-3].replace("_", "-")
            for name in os.listdir(_FOLDER)
            if name.endswith(".py") and not name.startswith("_")
        )
    )


def trait_finder(table: Table) -> TraitFinder:
    """A function that tells whether an environment has a trait, computing each one at most once."""
    known: dict[str, TraitVerdict] = {}

    def find(name: str, environment: Environment) -> TraitVerdict:
        if name not in known:
            known[name] = _find(name, environment, table)
        return known[name]

    return find


def _find(name: str, environment: Environment, table: Table) -> TraitVerdict:
    if name in computed_traits():
        unit = importlib.import_module(f"compatcheck.matrix.traits.{name.replace('-', '_')}")
        verdict: TraitVerdict = unit.find(environment, table)
        return verdict
    if name in READ_FROM_TRAINERS:
        return _of_trainer(name, environment)
    family = _family(environment, table)
    if name in family.get("weights", ()):
        return TraitVerdict(True, presumed=True)
    of_model = lookup(environment, "model.traits")
    if not isinstance(of_model, Unknown) and (name in (of_model or ()) or name in READ_FROM_CODE):
        return TraitVerdict(name in (of_model or ()))
    if name not in READ_FROM_CODE:
        return TraitVerdict(None, missing=("model.traits",))
    if name in family.get("traits", ()):
        held = _held_until(name, family) >= (day_of_report(environment) or date.max)
        return TraitVerdict(True) if held else TraitVerdict(None, missing=("model.traits",), suspected=True)
    if name not in _READ_FROM_OTHER_FILES and lookup(environment, "model.remote_code") is False:
        return TraitVerdict(False)
    return TraitVerdict(None, missing=("model.traits",))


def _of_trainer(name: str, environment: Environment) -> TraitVerdict:
    """What all of the user's scripts have is certain, and what one of several has is suspected."""
    suspected = lookup(environment, "trainer.suspected")
    if not isinstance(suspected, Unknown) and name in (suspected or ()):
        return TraitVerdict(None, missing=("trainer.script",), suspected=True)
    traits = lookup(environment, "trainer.traits")
    known = not isinstance(traits, Unknown)
    return TraitVerdict(name in (traits or ())) if known else TraitVerdict(None, missing=("trainer.traits",))


def _held_until(name: str, family: Mapping[str, Any]) -> date:
    """The last day up to which every published revision of the family's code had the habit, as far as is known."""
    day = family.get("until", {}).get(name, date.min)
    return date.fromisoformat(day) if isinstance(day, str) else day


def _family(environment: Environment, table: Table) -> Mapping[str, Any]:
    """The published family that the model's name tells, or nothing where no name is known or it is of none."""
    name = lookup(environment, "model.name")
    if not isinstance(name, str):
        return {}
    from compatcheck.inference.model_families import family_of

    return family_of(name, table("model-families")) or {}
