"""Ask uv whether what the files require can be installed, as ``check --resolve`` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from compatcheck.advice import resolver, wanted
from compatcheck.advice.model import Place
from compatcheck.environment import Environment
from compatcheck.errors import NothingInspectedError
from compatcheck.pipelines.environment import Subject
from compatcheck.project.package_lists import requirements_of


def with_resolutions(subjects: Sequence[Subject]) -> tuple[Subject, ...]:
    """The subjects with ``unsolvable``: each file of theirs that has no solution, with uv's reason.

    Files are resolved one by one, for the Python and the platform that are stated. Raises `NothingInspectedError`
    where no file lists requirements, and what the resolver raises.
    """
    lists = [requirements_of(subject.project) if subject.project else () for subject in subjects]
    if not any(lists):
        where = ", ".join(filter(None, (subject.folder for subject in subjects))) or "."
        raise NothingInspectedError("resolving", where, "no file there lists requirements", "pass a requirements file")
    return tuple(
        subject._replace(environment=_resolved(subject.environment, files)) if files else subject
        for subject, files in zip(subjects, lists)
    )


def _resolved(environment: Environment, files: Sequence[str]) -> Environment:
    python = environment.facts.get("python")
    platform = resolver.platform_of(environment.section("platform"))
    place = Place(sys.executable, python if isinstance(python, str) else None, platform)
    reasons = [(path, resolver.why_unsolvable(path, wanted.read([path], None), place)) for path in files]
    unsolvable = [{"file": path, "reason": reason} for path, reason in reasons if reason is not None]
    return environment.with_fact("unsolvable", unsolvable)
