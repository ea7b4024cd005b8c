"""The text report: the verdict a person reads, coloured and fitted to a terminal, plain and stable in a pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from compatcheck import __version__
from compatcheck.environment import Environment, Unknown, lookup
from compatcheck.language import gettext as _
from compatcheck.language import marked, ngettext
from compatcheck.report._unknown import by_reason, problems, without_reason
from compatcheck.report.steps import explains_more, step_text
from compatcheck.results.findings import Finding, Remedy, Report, Status
from compatcheck.terminal.lines import Line, unfolded, written
from compatcheck.terminal.screen import PLAIN, Screen

if TYPE_CHECKING:
    from compatcheck.results.cluster import ClusterReport
    from compatcheck.results.logs import Diagnosis

_UNCONFIRMED = marked("it stands on reports that nobody has confirmed yet")
_STYLES: dict[Status, str] = {"confirmed": "bold red", "affected": "bold red", "possible": "yellow", "refuted": "green"}
NAMED_DISTRIBUTIONS = ("torch", "transformers", "deepspeed", "peft", "accelerate", "bitsandbytes")
_FILES = {"training": marked("a training configuration"), "model": marked("a model folder")}
_MOST_REASONS = 8


def render(
    report: Report, *, exit_reason: str, refuted: bool = False, screen: Screen = PLAIN, verbose: bool = False
) -> str:
    """The whole report; ``verbose`` adds where each finding is documented, what was refuted, and every open fact."""
    return written(_lines(report, refuted or verbose, verbose, verdict_first=screen.is_terminal), screen)


def render_failing(report: Report, failing: Collection[Status], screen: Screen = PLAIN) -> str:
    """A row for each finding of these statuses and nothing else, with its file and line first, as editors read it."""
    lines = (
        Line(f"{finding.id} {finding.title}", "", f"{_prefix(finding)}{finding.status} ", _STYLES[finding.status])
        for finding in report.findings
        if finding.status in failing
    )
    return written(lines, unfolded(screen))


def _prefix(finding: Finding) -> str:
    return f"{finding.location}: " if finding.location else ""


def _lines(report: Report, refuted: bool, verbose: bool, verdict_first: bool) -> Iterator[Line]:
    """On a terminal the verdict stands at both ends, so that it is seen however long the report is."""
    if verdict_first:
        yield _judgement(report)[0]
    yield head(report)
    for label, text in described(report.environment):
        yield Line(text, "dim", label, "dim", 13)
    bad = report.bad
    for above, finding in zip([None, *bad], bad):
        if above is None or (above.id, above.status) != (finding.id, finding.status):
            yield Line()
            yield from _in_full(finding, verbose)
        else:
            yield from _again(finding, above)
    yield from _in_brief(
        report, "possible", _("these fit as far as the facts go; those that are missing decide"), verbose
    )
    if refuted:
        yield from _in_brief(report, "refuted", _("matched, but the probe passed on this machine"), verbose)
    yield Line()
    ending = (_judgement(report), tuple(_set_aside(report)), tuple(_open(report, verbose)))
    for part in reversed(ending) if verdict_first else ending:
        yield from part


def head(judged: Report | Diagnosis | ClusterReport) -> Line:
    """Which compatcheck and which matrix have judged."""
    dated = _(" of {date}").format(date=judged.matrix_date) if judged.matrix_date else ""
    matrix = _("matrix {revision}{dated}, {count} entries")
    matrix = matrix.format(revision=judged.matrix_revision, dated=dated, count=judged.matrix_entries)
    return Line(f"compatcheck {__version__}, {matrix}", "dim")


def stale(judged: Report | Diagnosis | ClusterReport) -> Iterator[Line]:
    """That nobody has looked at the matrix for long, and what to do about it; nothing where somebody has."""
    if judged.matrix_stale:
        said = _("the matrix was last reviewed on {date}, more than 90 days ago: compatcheck matrix update")
        yield Line(said.format(date=judged.matrix_date), "dim")


def described(environment: Environment) -> Iterator[tuple[str, str]]:
    """What was judged: the environment, its host and its packages, each behind its label."""
    target = environment.facts.get("target")
    if target:
        yield _("environment"), f"{_(target['prefix'])} ({_(target['selected_by'])})"
    platform = environment.facts.get("platform") or {}
    host = " ".join(str(platform[key]) for key in ("system", "machine", "libc") if platform.get(key))
    python = environment.facts.get("python")
    parts = (python and f"Python {python}", host, *_devices(environment))
    yield _("host"), ", ".join(part for part in parts if part)
    distributions = environment.facts.get("distributions") or {}
    named = [f"{name} {distributions[name]}" for name in NAMED_DISTRIBUTIONS if distributions.get(name)]
    ranges = environment.facts.get("distribution_ranges") or {}
    asked = [name for name in NAMED_DISTRIBUTIONS if name in ranges and not distributions.get(name)]
    others = len(distributions) - len(named)
    named += [f"{name} {ranges[name] or _('of any version')}" for name in asked]
    if others or not named:
        rest = _("{count} more") if named else ngettext("{count} distribution", "{count} distributions", others)
        named.append(rest.format(count=others))
    yield _("packages"), ", ".join(named)
    pinned = {at.file for path, at in environment.locations.items() if path.startswith("distributions.")}
    if pinned:
        yield _("read from"), ", ".join(sorted(pinned))


def _devices(environment: Environment) -> Iterator[str]:
    driver, gpus = lookup(environment, "cuda.driver"), lookup(environment, "gpus")
    if isinstance(driver, str):
        yield _("driver {version}").format(version=driver)
    if not isinstance(gpus, Unknown):
        counted = Counter((gpu.get("name") or "GPU", bool(gpu.get("uncounted"))) for gpu in gpus or ())
        said = [name if uncounted else f"{count} x {name}" for (name, uncounted), count in counted.items()]
        yield ", ".join(said) or _("no GPU")


def _in_full(finding: Finding, verbose: bool) -> Iterator[Line]:
    links = _links(finding)
    yield Line(finding.title, "bold", f"{finding.status:<10}{finding.id}", _STYLES[finding.status], 24, links)
    place = f", {finding.location}" if finding.location else ""
    about = f"{_(finding.impact)}, {_(finding.confidence)}, {' '.join(finding.packages)}{place}"
    yield Line(about, "dim", indent=10, links=links)
    yield Line(finding.summary, indent=10)
    for number, remedy in enumerate(finding.remedies):
        yield from _remedy(_("or") if number else _("fix"), remedy, "" if number else "green")
    if finding.probe:
        yield _labelled(_("probe"), f"{finding.probe.probe}: {finding.probe.outcome}, {finding.probe.why}")
    for number, address in enumerate(finding.evidence if verbose else ()):
        yield _labelled("" if number else _("see"), address)


def _again(finding: Finding, above: Finding) -> Iterator[Line]:
    """One more place where the entry above applies, and what differs there: what is seen, and its own way out."""
    if finding.location and finding.location != above.location:
        yield Line(str(finding.location), "dim", indent=10, links=_links(finding))
    if (finding.summary, finding.remedies) != (above.summary, above.remedies):
        yield Line(finding.summary, indent=10)
        for step in finding.remedies[0].steps:
            yield _labelled(_("fix"), step_text(step), "green")


def _links(finding: Finding) -> tuple[tuple[str, str], ...]:
    """Where the id and the place of a finding lead: to its first evidence, and to the file."""
    documented = ((finding.id, finding.evidence[0]),) if finding.evidence else ()
    return (*documented, (str(finding.location), finding.location.file)) if finding.location else documented


def _remedy(label: str, remedy: Remedy, style: str) -> Iterator[Line]:
    for number, step in enumerate(remedy.steps):
        yield _labelled(label if not number else _("and"), step_text(step), style)
    if explains_more(remedy):
        yield _labelled("", remedy.why, style)


def _labelled(label: str, text: str, style: str = "") -> Line:
    return Line(text, style, f"{'':10}{label}", style, 17)


def _in_brief(report: Report, status: Status, meaning: str, verbose: bool) -> Iterator[Line]:
    findings = [finding for finding in report.findings if finding.status == status]
    if findings:
        yield Line()
        yield Line(meaning, "dim", status, _STYLES[status], 10)
    for finding in findings:
        yield Line(finding.title, "", f"{'':10}{finding.id}", "", 24, _links(finding))
        if finding.seen:
            yield Line(finding.summary, "", indent=24)
        detail = finding.probe.why if finding.probe and status == "refuted" else _missing(finding)
        yield Line(detail, "dim", indent=24)
        yield from (Line(address, "dim", indent=24) for address in (finding.evidence if verbose else ()))


def _missing(finding: Finding) -> str:
    paths = dict.fromkeys(finding.missing)
    told = (f"{path} ({finding.partly[path]})" if path in finding.partly else path for path in paths)
    missing = _("missing: {facts}").format(facts=", ".join(told)) if paths else _(_UNCONFIRMED)
    if finding.probe is None:
        return missing
    if finding.probe.outcome == "fail":
        known = _("fails on this machine; the missing facts say whether your run meets it")
    else:
        known = f"{finding.probe.outcome}, {finding.probe.why}"
    return missing + _("; probe {probe}: {outcome}").format(probe=finding.probe.probe, outcome=known)


def _judgement(report: Report) -> tuple[Line, ...]:
    """What it comes to, and what to do next where something is to be done."""
    counted = Counter(finding.status for finding in report.findings)
    bad = report.bad
    summary = ", ".join(f"{counted[status]} {_(status)}" for status in _STYLES if counted[status])
    if bad:
        return Line(summary, "bold red"), Line(
            _("next: {command}").format(command=f"compatcheck explain {bad[0].id}"), "dim"
        )
    failed = [f for f in report.findings if f.probe and f.probe.outcome == "fail"]
    if failed:
        found = _("a probe found a fault on this machine that your run may meet")
        said = _("next: --assume {fact}=VALUE (absent where there is none)").format(fact=failed[0].missing[0])
        return Line(f"{summary}; {found}", "bold yellow"), Line(said, "dim")
    return (Line(_("no known fault") + (f" ({summary})" if summary else ""), "bold green"),)


def _open(report: Report, verbose: bool) -> Iterator[Line]:
    """What is not known, and how it can be made known."""
    unknown = list(_unknown(report.environment, None if verbose else _MOST_REASONS))
    if verbose:
        yield from (Line(each, "dim", "" if at else _("not known:"), "dim", 11) for at, each in enumerate(unknown))
    elif unknown:
        yield Line("; ".join(unknown), "dim", _("not known:"), "dim", 11)
    wanted = [_(file) for path, file in _FILES.items() if isinstance(lookup(report.environment, path), Unknown)]
    yield from stale(report)
    if wanted:
        said = _("name {files}, or state facts: --assume training.attention=sdpa")
        yield Line(said.format(files=_(" or ").join(wanted)), "dim")


def _set_aside(report: Report) -> Iterator[Line]:
    """How much the user has set aside, and what of that wants a look."""
    counted = Counter(each.by for each in report.suppressed)
    ignored = _("{count} ignored").format(count=counted["ignore"]) if counted["ignore"] else ""
    known = _("{count} known in the baseline").format(count=counted["baseline"]) if counted["baseline"] else ""
    if counted:
        yield Line(_("set aside: {parts}").format(parts=", ".join(filter(None, (ignored, known)))), "dim")
    for remark in report.remarks:
        where = f"{remark.location}: " if remark.location else ""
        yield Line(f"{where}{remark.text}", "yellow", _("note"), "yellow", 10)


def _unknown(environment: Environment, most: int | None) -> Iterator[str]:
    """What nobody could tell: with the reason where something was looked for, and what most entries ask for."""
    yield from without_reason(environment)
    reasons = [f"{', '.join(paths)} ({reason})" for reason, paths in by_reason(environment).items()]
    yield from reasons[:most]
    if most is not None and len(reasons) > most:
        yield _("{count} more, see them with --verbose").format(count=len(reasons) - most)
    yield from (f"{path} ({problem})" for path, problem in problems(environment))
