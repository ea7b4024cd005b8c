"""A DeepSpeed JSON gives values other than the arguments of the transformers Trainer, which compares the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compatcheck.environment import Environment
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._contradictions import contradictions, is_open, place

_RULE = "deepspeed-json-contradicts-trainer"
_WHY = marked("the Trainer fills in the values of its own arguments")


def find(environment: Environment, table: Table) -> TraitVerdict:
    if environment.get("training.deepspeed") is None:
        return TraitVerdict(False)
    if is_open(environment):
        return TraitVerdict(None, missing=("training.contradictions",))
    files: dict[str, list[Mapping[str, Any]]] = {}
    for each in contradictions(environment, _RULE):
        files.setdefault(each["file"], []).append(each)
    return TraitVerdict(bool(files), tuple(_occurrence(file, found) for file, found in files.items()))


def _occurrence(file: str, found: Sequence[Mapping[str, Any]]) -> Occurrence:
    summary = _("The Trainer raises ValueError before the first step: {pairs}.").format(
        pairs="; ".join(map(_pair, found))
    )
    config = {f"training.deepspeed.{each['setting']}": "auto" for each in found} if file.endswith(".json") else {}
    return Occurrence(summary, ("transformers",), why=_WHY, location=place(found[0]), config=config)


def _pair(contradiction: Mapping[str, Any]) -> str:
    return _("{setting} is {value} ({place}), but the argument {other} is {other_value} ({other_place})").format(
        **contradiction,
        place=place(contradiction),
        other_place=place(contradiction, "other_") or _("its default"),
    )
