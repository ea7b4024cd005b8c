"""Which areas of a run were judged, and from where."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence

from compatcheck.environment import Environment, Unknown
from compatcheck.environment.paths import distribution_of, is_within
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.results.areas import Area, Given, Source
from compatcheck.results.findings import Finding, HeldFact, Report

_UNDECIDED = ("skip", "crash", "timeout")
_NOT_HERE = marked("this environment is not installed here")


def areas_of(report: Report, given: Given, in_matrix: Collection[str], *, probes: bool) -> tuple[Area, ...]:
    """The areas of a report in their order; ``in_matrix`` are the packages that entries speak of.

    ``probes`` tells that they were to run.
    """
    environment = report.environment
    return (
        _packages(environment, given, in_matrix),
        _gpu(environment, given),
        _training(environment, given),
        _model(environment, given),
        _imports(environment, given),
        _numerics(report.findings, probes),
    )


def with_assumed(report: Report, given: Given) -> Report:
    """The report, in which the facts that findings rest on say so where the user has stated them."""

    def attributed(held: HeldFact) -> HeldFact:
        fact = held.fact.removeprefix("every_")
        stated = any(is_within(fact, path.removeprefix("every_")) for path in given.assumed)
        return held._replace(why="--assume") if stated and held.location is None else held

    findings = (each._replace(because=tuple(map(attributed, each.because))) for each in report.findings)
    return report._replace(findings=tuple(findings))


def unrun(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings whose probe has not decided."""
    return tuple(
        finding
        for finding in findings
        if finding.probe_name and (not finding.probe or finding.probe.outcome in _UNDECIDED)
    )


def _packages(environment: Environment, given: Given, in_matrix: Collection[str]) -> Area:
    versions, ranges = environment.section("distributions"), environment.section("distribution_ranges")
    present = [name for name, version in versions.items() if version is not None]
    if not any(name in in_matrix for name in (*present, *ranges)):
        why = (
            _("the matrix has no entry about any of these packages")
            if present or ranges
            else environment.reasons.get("distributions", "")
        )
        return Area("packages", False, why=why)
    named = {name: at.file for path, at in environment.locations.items() if (name := distribution_of(path))}
    listed, pinned = Counter(named.values()), Counter(named[name] for name in present if name in named)
    wished = "report" not in environment.facts
    files = [Source(file, count, pinned[file] if wished else None) for file, count in listed.items()]
    installed = [name for name in present if name not in named]
    if installed:
        files.append(Source(_interpreter(environment, given), len(installed)))
    return Area("packages", True, tuple(files))


def _interpreter(environment: Environment, given: Given) -> str:
    if given.snapshot:
        return given.snapshot
    target = environment.section("target")
    if not target:
        return "--assume"
    prefix = _(target["prefix"])
    inside = prefix.startswith(os.path.join(os.getcwd(), ""))
    return f"{os.path.relpath(prefix) if inside else prefix} ({_(target['selected_by'])})"


def _gpu(environment: Environment, given: Given) -> Area:
    gpus, driver = environment.get("gpus"), environment.get("cuda.driver")
    if isinstance(gpus, Unknown) and not isinstance(driver, str):
        return Area("gpu", False, why=_reason(environment, "gpus", "cuda.driver"))
    return Area("gpu", True, _sources(environment, given, "gpus", "gpu", "every_gpu", "cuda"))


def _training(environment: Environment, given: Given) -> Area:
    if not environment.section("training"):
        return Area("training", False, why=_reason(environment, "training"))
    return Area("training", True, _sources(environment, given, "training", "trainer"))


def _model(environment: Environment, given: Given) -> Area:
    model = environment.section("model")
    if not any(model.get(key) for key in ("type", "architectures", "files")):
        only_name = _("only the name of the model is known: {name}").format(name=model.get("name"))
        return Area("model", False, why=only_name if model.get("name") else _reason(environment, "model"))
    folder = environment.locations.get("model")
    return Area("model", True, (Source(folder.file),) if folder else _sources(environment, given, "model"))


def _imports(environment: Environment, given: Given) -> Area:
    if {"unresolved_imports", "missing_names", "interface_errors"} & environment.facts.keys():
        return Area("imports", True)
    here = "target" in environment.facts and not given.snapshot
    return Area(
        "imports",
        False,
        why=_("not followed (--imports)") if here else _("not followed: {why}").format(why=_(_NOT_HERE)),
    )


def _numerics(findings: Sequence[Finding], probes: bool) -> Area:
    left = unrun(findings)
    if not left:
        return Area("numerics", True)
    entry = left[0].id
    if not probes:
        why = _("the probe of {entry} was not run (--no-probe)").format(entry=entry)
    elif any(finding.probe for finding in findings):
        why = _("the probe of {entry} could not run").format(entry=entry)
    else:
        why = _("the probe of {entry} could not run: {why}").format(entry=entry, why=_(_NOT_HERE))
    return Area("numerics", False, why=why)


def _reason(environment: Environment, *paths: str) -> str:
    return next((_(environment.reasons[path]) for path in paths if path in environment.reasons), "")


def _sources(environment: Environment, given: Given, *sections: str) -> tuple[Source, ...]:
    """Where facts of these sections come from; none, where it is this machine itself."""
    if given.snapshot:
        return (Source(given.snapshot),)
    places = environment.locations.items()
    files = dict.fromkeys(at.file for path, at in places if any(is_within(path, each) for each in sections))
    assumed = any(is_within(path, each) for path in given.assumed for each in sections)
    return tuple(map(Source, (*files, *(("--assume",) if assumed else ()))))
