"""Stage 3, the door: small numeric experiments run in the target's own interpreter."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from compatcheck.errors import InputError
from compatcheck.language import gettext as _
from compatcheck.language.suggestion import did_you_mean
from compatcheck.probes import _units
from compatcheck.probes._criterion import FAIL_THETA, UNIT_ROUNDOFF, Request
from compatcheck.probes._joint_rank import JOINT, JointRanks, Order, RankProcess, joint_cases, joint_ranks, joint_result
from compatcheck.probes._recording._judge import (
    Recording,
    Row,
    first_difference,
    not_compared,
    pairs,
    theta_at,
    trajectory,
)
from compatcheck.probes._recording._run import record
from compatcheck.probes._run import Memory, run, run_all

__all__ = [
    "DEVICES",
    "FAIL_THETA",
    "JOINT",
    "JointRanks",
    "PROFILES",
    "Card",
    "Memory",
    "Order",
    "RankProcess",
    "Recording",
    "Row",
    "card",
    "choose",
    "describe",
    "first_difference",
    "joint_cases",
    "joint_ranks",
    "joint_result",
    "names",
    "not_compared",
    "pairs",
    "parse_request",
    "record",
    "require_device",
    "run",
    "run_all",
    "theta_at",
    "trajectory",
]

PROFILES = ("smoke", "quick", "deep")
_JSON_ADVICE = 'pass JSON such as {"dtype": "float16"}'
_KINDS = {"seed": int, "device": str, "dtype": str, "config": dict, "training": dict, "model_folder": str}
_WORDS = {int: "a whole number", str: "a string", dict: "an object"}
DEVICES = ("auto", "cpu", "cuda")


class Card(NamedTuple):
    """What a probe says of itself: ``profile`` is the smallest that runs it, ``seconds`` are typical of 2 cores.

    ``asked_by`` are the dotted keys of a request that bring a deep probe into the quick profile.
    """

    name: str
    title: str
    profile: str
    seconds: float
    needs: Mapping[str, str]
    asked_by: tuple[str, ...]


def names() -> tuple[str, ...]:
    """Every probe, sorted."""
    return tuple(_units.paths())


def describe(name: str) -> tuple[str, str]:
    """A probe's title and explanation: first line and rest of its docstring."""
    source = _units.paths()[name].read_text(encoding="utf-8")
    title, _, body = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    return title, body.strip()


def card(name: str) -> Card:
    """Read a probe's own constants."""
    unit = _units.unit(name)
    asked_by = getattr(unit, "ASKED_BY", ())
    return Card(
        name,
        describe(name)[0],
        unit.PROFILE,
        unit.SECONDS,
        unit.NEEDS,
        asked_by,
    )


def choose(named: Iterable[str], profile: str, request: Request) -> tuple[str, ...]:
    """The probes named, or those of the profile where none is, with the deep ones that the request asks for.

    Raises InputError for a name that no probe has.
    """
    chosen, existing = tuple(named), names()
    for name in chosen:
        if name not in existing:
            advice = did_you_mean(name, existing, _("`compatcheck probe --list` lists them"))
            raise InputError("running the probe", name, "unknown probe", advice)
    return chosen or tuple(each.name for each in map(card, existing) if _belongs(each, profile, request))


def _belongs(each: Card, profile: str, request: Request) -> bool:
    asked = profile == "quick" and any(_states(request, key) for key in each.asked_by)
    return asked or PROFILES.index(each.profile) <= PROFILES.index(profile)


def _states(request: object, key: str) -> bool:
    """Whether a request has something at a dotted key."""
    for part in key.split("."):
        request = request.get(part) if isinstance(request, Mapping) else None
    return request not in (None, False)


def require_device(device: str) -> str:
    """The device; raises InputError where there is none of this name."""
    if device not in DEVICES:
        raise InputError("running probes on", device, "there is no such device", f"choose from {', '.join(DEVICES)}")
    return device


def parse_request(text: str) -> dict[str, Any]:
    """What the user asks of a probe, as a JSON object. Raises InputError where it is none."""
    try:
        request = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("reading --request", f"{text:.80}", str(error), _JSON_ADVICE) from None
    if not isinstance(request, dict):
        raise InputError("reading --request", f"{text:.80}", "the value is not an object", _JSON_ADVICE)
    for key, kind in _KINDS.items():
        if not isinstance(request.get(key, kind()), kind):
            raise InputError("reading --request", key, f"{request[key]!r:.80} is not {_WORDS[kind]}", _JSON_ADVICE)
    dtype = request.get("dtype", "float32")
    if dtype not in UNIT_ROUNDOFF:
        raise InputError(
            "reading --request", f"{dtype:.80}", "there is no such dtype", f"choose from {', '.join(UNIT_ROUNDOFF)}"
        )
    return request
