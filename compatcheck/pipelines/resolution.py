"""Ask uv whether what the files require can be installed, as ``check --resolve`` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from compatcheck.advice import resolver
from compatcheck.advice.model import Place
from compatcheck.environment import Environment
from compatcheck.errors import NothingInspectedError
from compatcheck.project.reading import requirements_among


def with_resolution(environment: Environment, paths: Sequence[str]) -> Environment:
    """The environment with ``unsolvable``: each file that has no solution, with uv's reason.

    Files are resolved one by one, for the Python and the platform that are stated. Raises `NothingInspectedError`
    where no file lists requirements, and what the resolver raises.
    """
    files = requirements_among(paths) if paths else ()
    if not files:
        raise NothingInspectedError(
            "resolving", ", ".join(paths) or ".", "no file there lists requirements", "name a requirements file"
        )
    python = environment.facts.get("python")
    platform = resolver.platform_of(environment.section("platform"))
    place = Place(sys.executable, python if isinstance(python, str) else None, platform)
    reasons = [(path, resolver.why_unsolvable(path, place)) for path in files]
    unsolvable = [{"file": path, "reason": reason} for path, reason in reasons if reason is not None]
    return environment.with_fact("unsolvable", unsolvable)
