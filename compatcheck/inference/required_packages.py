"""Packages that a report says nothing of and that must be there, since what it names asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Table
from compatcheck.packages.frameworks import framework_of
from compatcheck.packages.release_rows import Row, rows_of
from compatcheck.packages.versions import final_release

_UNVERSIONED = (("peft", "transformers"), ("unsloth", "unsloth-zoo"))
"""What releases demand in any version, which the table does not hold."""


def required(view: Environment, table: Table) -> dict[str, str]:
    """The range in which each package must be there that a report says nothing of, by the metadata or the run.

    Training needs torch. Nothing is required where all distributions are known, or nobody reported anything.
    """
    if "report" not in view.facts or view.facts.get("distributions_complete"):
        return {}
    ranges: dict[str, str] = {}
    for name, asked in _required(view, table):
        if isinstance(view.get(f"distributions.{name}"), Unknown):
            clauses = [*ranges.get(name, "").split(","), *asked.split(",")]
            ranges[name] = ",".join(filter(None, dict.fromkeys(clauses)))
    return ranges


def _required(environment: Environment, table: Table) -> Iterator[tuple[str, str]]:
    demands = table("declared-requirements")
    stated = environment.section("distributions")
    for name, version in stated.items():
        release = final_release(version)
        if release is not None:
            rows = _usual(demands.get(name, {}), table)
            yield from ((other, asked) for other, (_, _, asked) in rows_of(release, rows))
    asked_for = environment.section("distribution_ranges")
    for name in asked_for:
        yield from ((other, "") for other in _newest_requirements(_usual(demands.get(name, {}), table)))
    for name, other in _UNVERSIONED:
        if isinstance(stated.get(name), str) or name in asked_for:
            yield other, ""
    if environment.get("training.unsloth") is True:
        yield "unsloth-zoo", ""
    training = environment.section("training")
    if training:
        yield "torch", ""
        framework = framework_of(training.get("framework"))
        yield from ((name, "") for name in (framework.needs if framework else ()))


def _usual(rows: Mapping[str, Sequence[Row]], table: Table) -> Mapping[str, Sequence[Row]]:
    usual = table("relevance")["required"]
    return {other: listed for other, listed in rows.items() if other in usual}


def _newest_requirements(rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """What the newest release demands that was looked up."""
    newest = max((Version(listed[-1][1]) for listed in rows.values()), default=None)
    return (other for other, listed in rows.items() if Version(listed[-1][1]) == newest)
