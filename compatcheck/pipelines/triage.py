"""The pipeline of `compatcheck triage`: what a bug report says of the environment it is about."""

from __future__ import annotations

from collections.abc import Sequence

from compatcheck.bug_report import read_report_file
from compatcheck.environment import Environment
from compatcheck.environment.assumptions import assume_all
from compatcheck.errors import NothingInspectedError


def described_environment(file: str, assume: Sequence[str] = ()) -> Environment:
    """The environment that a report describes, with what is assumed over it; - is standard input.

    Raises `NothingInspectedError` where it states no fact.
    """
    found = assume_all(read_report_file(file), assume)
    if found.facts:
        return found
    seen = "nothing in it is a fact about an environment"
    if found.reasons:
        path, why = next(iter(found.reasons.items()))
        seen = f"no fact in it is certain; {path} is unknown: {why}"
    source = "standard input" if file == "-" else file
    raise NothingInspectedError("reading the report", source, seen, "paste versions, or supply facts with --assume")
