"""The verdict on one environment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from compatcheck.environment import Environment, Unknown
from compatcheck.language import comma_list, marked
from compatcheck.language import gettext as _
from compatcheck.report import areas
from compatcheck.report.document import NO_EXIT, STYLES, Document, Exit, Findings, rows
from compatcheck.report.shapes import area_shape, finding_shape, inferred_shape, matrix_shape
from compatcheck.report.subjects._environment import head, host, stale
from compatcheck.report.subjects._unknown import area_of, by_reason, problems, without_reason
from compatcheck.results.areas import Area
from compatcheck.results.exit_status import REQUIRED_MISSING
from compatcheck.results.findings import STATUSES, Finding, Report, Status
from compatcheck.terminal.lines import Line

_FILES = {"training": marked("a training configuration"), "model": marked("a model folder")}
_MOST_REASONS = 8
_MOST_PATHS = 4


def document(report: Report, exit: Exit = NO_EXIT, *, refuted: bool = False, verbose: bool = False) -> Document:
    """``verbose`` adds where each finding is documented, what was refuted, and every open fact."""
    shown = report.findings if refuted or verbose else tuple(f for f in report.findings if f.status != "refuted")
    verdict = (*_required(exit), *_verdict(report))
    return Document(
        verdict[0],
        (*_findings(report, shown, verbose), Line()),
        partial(_shape, report, exit),
        (verdict, tuple(_set_aside(report)), tuple(_open(report, verbose))),
        judged=tuple(_judged(report, verbose)),
        repeats_title=True,
        report=report._replace(findings=shown),
        exit=exit,
        page=partial(_page, report, exit, refuted or verbose),
    )


def _judged(report: Report, verbose: bool) -> Iterator[Line]:
    yield head(report)
    yield from areas.lines(report, verbose)
    if verbose and host(report.environment):
        yield Line(host(report.environment), "dim", f"  {_('host')}", "dim", areas.INDENT)


def _required(exit: Exit) -> Iterator[Line]:
    """That an area is missing which must be there."""
    if exit.status == REQUIRED_MISSING:
        yield Line(exit.reason, "bold red")


def failing(report: Report, statuses: Collection[Status]) -> Document:
    """A row for each finding of these statuses, with its file and line first, as editors read it."""
    return rows(
        Line(f"{finding.id} {finding.title}", "", f"{_prefix(finding)}{finding.status} ", STYLES[finding.status])
        for finding in report.findings
        if finding.status in statuses
    )


def _prefix(finding: Finding) -> str:
    return f"{finding.location}: " if finding.location else ""


def _page(report: Report, exit: Exit, refuted: bool) -> Iterator[str | None]:
    from compatcheck.report.pages import _check

    return _check.body(report, exit_reason=exit.reason, refuted=refuted)


def _shape(report: Report, exit: Exit) -> Mapping[str, object]:
    return {
        "matrix": matrix_shape(report),
        "environment": report.environment.dump(),
        "inferred": inferred_shape(report.inferred),
        "areas": [area_shape(area) for area in report.areas],
        "findings": [finding_shape(finding) for finding in report.findings],
        "suppressed": [
            {"by": each.by, "why": each.why, "finding": finding_shape(each.finding)} for each in report.suppressed
        ],
        "remarks": [
            {"text": each.text, "location": each.location._asdict() if each.location else None}
            for each in report.remarks
        ],
        "exit_reason": exit.reason,
    }


def _findings(report: Report, shown: Collection[Finding], verbose: bool) -> Iterator[Findings]:
    leads = {
        "possible": _("may apply; the missing facts below decide"),
        "refuted": _("matched, but the probe passed on this machine"),
    }
    if report.bad:
        yield Findings(report.bad, verbose=verbose)
    for status, lead in leads.items():
        found = tuple(finding for finding in shown if finding.status == status)
        if found:
            yield Findings(found, lead, verbose)


def _verdict(report: Report) -> tuple[Line, ...]:
    """What it comes to, and what to do next where something is to be done."""
    counted = Counter(finding.status for finding in report.findings)
    bad = report.bad
    summary = comma_list(f"{counted[status]} {_(status)}" for status in STATUSES if counted[status])
    if bad:
        return Line(summary, "bold red"), Line(
            _("next: {command}").format(command=f"compatcheck explain {bad[0].id}"), "dim"
        )
    failed = [f for f in report.findings if f.probe and f.probe.outcome == "fail"]
    if failed:
        found = _("a probe found a fault on this machine that may affect your run")
        text = _("next: --assume {fact}=VALUE (absent if there is none)").format(fact=failed[0].missing[0])
        return Line(_("; ").join((summary, found)), "bold yellow"), Line(text, "dim")
    return (Line(areas.all_clear(report), "bold green" if areas.is_certain(report) else "bold yellow"),)


def _open(report: Report, verbose: bool) -> Iterator[Line]:
    """What is not known, and how it can be made known."""
    told = [] if verbose else [area for area in report.areas if not area.judged or area.name == "gpu"]
    unknown = list(_unknown(report.judged.view, told, None if verbose else _MOST_REASONS))
    if verbose:
        yield from _inferred(report)
        yield from (Line(each, "dim", "" if at else _("not known:"), "dim", 11) for at, each in enumerate(unknown))
    elif unknown:
        yield Line(_("; ").join(unknown), "dim", _("not known:"), "dim", 11)
    wanted = [_(file) for path, file in _FILES.items() if isinstance(report.judged.view.get(path), Unknown)]
    yield from stale(report)
    if wanted:
        text = _("pass {files}, or supply facts: --assume training.attention=sdpa")
        yield Line(text.format(files=_(" or ").join(wanted)), "dim")


def _inferred(report: Report) -> Iterator[Line]:
    """What follows from the environment, each fact with the reason."""
    for number, (path, inference) in enumerate(report.inferred.facts.items()):
        value = "unknown" if isinstance(inference.value, Unknown) else _value_text(inference.value)
        yield Line(f"{path} = {value} ({_(inference.why)})", "dim", "" if number else _("inferred:"), "dim", 11)


def _value_text(value: object) -> str:
    return "absent" if value is None else json.dumps(value, ensure_ascii=False)


def _set_aside(report: Report) -> Iterator[Line]:
    """How much the user has set aside, and what of that wants a look."""
    counted = Counter(each.by for each in report.suppressed)
    ignored = _("{count} ignored").format(count=counted["ignore"]) if counted["ignore"] else ""
    known = _("{count} known in the baseline").format(count=counted["baseline"]) if counted["baseline"] else ""
    if counted:
        yield Line(_("suppressed: {parts}").format(parts=comma_list(filter(None, (ignored, known)))), "dim")
    for remark in report.remarks:
        yield Line(str(remark), "yellow", _("note"), "yellow", 10)


def _listed(paths: Sequence[str], most: int | None) -> str:
    """The paths that one reason covers, the first few where it must be short."""
    shown = list(paths) if most is None else list(paths[:_MOST_PATHS])
    more = len(paths) - len(shown)
    return comma_list((*shown, *((_("{count} more").format(count=more),) if more else ())))


def _unknown(environment: Environment, told: Collection[Area], most: int | None) -> Iterator[str]:
    """What is not known and that the lines of the areas have not ``told``: what most entries need, and what was looked
    for with its reason."""
    areas_told = {area.name for area in told}
    yield from (path for path in without_reason(environment) if area_of(path) not in areas_told)
    reasons = [
        f"{_listed(paths, most)} ({reason})"
        for reason, paths in by_reason(environment).items()
        if not any(area_of(path) in areas_told for path in paths)
    ]
    yield from reasons[:most]
    if most is not None and len(reasons) > most:
        yield _("{count} more, see them with --verbose").format(count=len(reasons) - most)
    yield from (f"{path} ({problem})" for path, problem in problems(environment))
