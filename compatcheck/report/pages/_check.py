"""What a check has to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compatcheck.language import comma_list, ngettext
from compatcheck.language import gettext as _
from compatcheck.report.areas import all_clear, is_certain
from compatcheck.report.pages import _environment, _findings, _map
from compatcheck.report.pages._verdict import Judge, Verdict, banner, footer
from compatcheck.report.pages.markup import Html, impact_mark, joined, listed, tag
from compatcheck.report.steps import step_text
from compatcheck.results.findings import STATUSES, Finding, Report


def body(report: Report, *, exit_reason: str, refuted: bool) -> Iterator[str | None]:
    bad = report.bad
    possible = [finding for finding in report.findings if finding.status == "possible"]
    refuted_findings = [finding for finding in report.findings if finding.status == "refuted"]
    yield banner(verdict(report))
    yield _environment.areas(report)
    yield _environment.glance(report.judged)
    yield _findings.cards(_("What is wrong, and what to do"), bad)
    yield _findings.cards(_("What may be wrong"), possible, _("may apply; the missing facts below decide"))
    yield _map.render(report.maps)
    yield _findings.remarks(report.remarks)
    yield _findings.set_aside(report.suppressed)
    if refuted:
        yield _findings.cards(_("Refuted here"), refuted_findings, _("matched, but the probe passed on this machine"))
    yield _environment.unknown(report.judged.view)
    yield _environment.everything(report.environment, report.inferred)
    judge = Judge(report.matrix_revision, report.matrix_entries, report.matrix_date, report.matrix_stale)
    yield footer(judge, exit_reason)


def verdict(report: Report) -> Verdict:
    counted = Counter(finding.status for finding in report.findings)
    counts_text = comma_list(f"{counted[status]} {_(status)}" for status in STATUSES if counted[status])
    bad = report.bad
    distinct = {finding.id for finding in bad}
    counts = tag("p", counts_text, class_="meta") if counts_text else None
    if bad:
        faults = ngettext("{count} known fault", "{count} known faults", len(distinct)).format(count=len(distinct))
        return Verdict(faults, "bad", (_faults(bad), counts))
    if any(finding.probe and finding.probe.outcome == "fail" for finding in report.findings):
        return Verdict(_("A probe found a fault on this machine that may affect your run"), "may", (counts,))
    words = all_clear(report)
    shown = f"{words[:1].upper()}{words[1:]}"
    return Verdict(shown, "good" if is_certain(report) else "may", (counts,))


def _faults(bad: Sequence[Finding]) -> Html:
    """Each fault in a line with its first way out."""
    rows = []
    for finding in {finding.id: finding for finding in reversed(bad)}.values():
        steps = next((remedy.steps for remedy in finding.remedies if remedy.steps), ())
        way = joined((": ", tag("code", step_text(steps[0])))) if steps else None
        rows.append(joined((impact_mark(finding.impact, _(finding.impact)), " ", finding.title, way)))
    return listed(reversed(rows), class_="faults")
