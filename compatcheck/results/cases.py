"""Frozen values for a case: what a person gave of a fault, and how each part of it was said; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.results.logs import Hit

How = Literal["stated", "failed", "worked", "tried", "asked", "advised", "elsewhere"]
"""How a value is mentioned: as a fact, as what fails, as what works, as what was tried without saying how it ended, in
a question, as advice, or of another machine or person."""

FACTUAL: tuple[How, ...] = ("stated", "failed")
"""The ways of a claim that describes the environment at fault."""


class Said(NamedTuple):
    """One mention of a fact; a value of None is "known to be absent". ``doubt`` says why it settles nothing."""

    path: str
    value: Any
    location: Location
    how: How = "stated"
    doubt: str | None = None


class Contrast(NamedTuple):
    """Two values of one fact: the fault is there with ``failed`` and not with ``worked``; None is not known."""

    path: str
    failed: Any
    worked: Any
    location: Location


class Account(NamedTuple):
    """What a text states of the environment at fault.

    ``environment`` joins the factual claims; what they contradict is unknown there, and ``variants`` holds each other
    reading of it as values by path. ``said`` holds every mention in the order of the text.
    """

    environment: Environment
    said: tuple[Said, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    variants: tuple[Mapping[str, Any], ...] = ()


class Sighting(NamedTuple):
    """A symptom, by its name in `matrix/tables/symptoms.toml`, and the words or readings that show it.

    ``origin`` tells words of a person from readings and errors of a program. ``change`` is what the symptom came with,
    as far as it is said: ``batch-above-one``, ``several-ranks``, ``resume``, ``upgrade``, ...
    """

    symptom: str
    text: str
    location: Location
    origin: Literal["words", "readings", "error"]
    change: str = ""


class Case(NamedTuple):
    """Everything that was given of one fault, joined.

    ``environment`` is as it was stated. ``texts`` holds what people wrote and programs printed, by source; of a large
    log only the lines of its errors.
    """

    environment: Environment
    said: tuple[Said, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    variants: tuple[Mapping[str, Any], ...] = ()
    sightings: tuple[Sighting, ...] = ()
    hits: tuple[Hit, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
