"""Text as people read it: coloured and folded on a terminal, plain and stable in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.language import clauses, comma_list, marked
from compatcheck.language import gettext as _
from compatcheck.report import because, excerpt
from compatcheck.report.document import ENDLESS, STYLES, Block, Curves, Document, Table
from compatcheck.report.steps import explains_more, step_text
from compatcheck.report.triage import doubles_of, open_question
from compatcheck.results.findings import Finding, Remedy
from compatcheck.terminal.lines import Line, written
from compatcheck.terminal.screen import Screen

UNCONFIRMED = marked("based on unconfirmed reports only")
_ROOMY = 60
_MOST_FACTS, _MOST_FACTS_IN_BRIEF = 5, 3
_MOST_POSSIBLE = 5


def render(document: Document, screen: Screen) -> str:
    width = ENDLESS if document.width == ENDLESS else min(document.width, screen.width)
    return written(_lines(document, screen), screen._replace(width=width))


def _lines(document: Document, screen: Screen) -> Iterator[Line]:
    """Yield the verdict of a long document first, and on a terminal, which scrolls, at the end too."""
    if document.repeats_title:
        yield document.title
    yield from document.judged
    for block in document.body:
        yield from _block(block, screen)
    for part in reversed(document.ending) if document.repeats_title else document.ending:
        yield from part
    if document.repeats_title and screen.is_terminal and not document.ending:
        yield document.title


def _block(block: Block, screen: Screen) -> Iterator[Line]:
    if isinstance(block, Line):
        yield block
    elif isinstance(block, Table):
        yield from block.lines
    elif isinstance(block, Curves):
        from compatcheck.report import curves

        margin = block.indent if screen.width >= _ROOMY else 0
        drawn = curves.terminal(block.curves, width=screen.width - margin - 4)
        yield from (Line(), *(Line(head=f"{'':{margin}}{row}") for row in drawn.splitlines())) if drawn else ()
    elif block.lead:
        yield from _brief_lines(block.findings, block.lead, block.verbose)
    else:
        doubles = {} if block.verbose else doubles_of(block.findings)
        told = [finding for finding in block.findings if finding.id not in doubles]
        for above, finding in zip([None, *told], told):
            if above is None or (above.id, above.status) != (finding.id, finding.status):
                yield Line()
                yield from _full_lines(finding, block.verbose, screen)
                yield from (_also(each) for each in block.findings if doubles.get(each.id) == finding.id)
            else:
                yield from _again(finding, above, screen)


def _also(finding: Finding) -> Line:
    text = _("{title}; the same fix applies").format(title=finding.title)
    return Line(text, "dim", f"{'':10}{_('also')}   {finding.id}  ", "dim", 31)


def _full_lines(finding: Finding, verbose: bool, screen: Screen) -> Iterator[Line]:
    links = _links(finding)
    yield Line(finding.title, "bold", f"{finding.status:<10}{finding.id}", STYLES[finding.status], 24, links)
    place = (str(finding.location),) if finding.location else ()
    about = clauses(_(finding.impact), _(finding.confidence), " ".join(finding.packages), *place)
    yield Line(about, "dim", indent=10, links=links)
    yield from _excerpt(finding, screen)
    if rests_on := because.sentence(finding, None if verbose else _MOST_FACTS):
        yield Line(rests_on, "dim", indent=10)
    yield Line(finding.summary, indent=10)
    for number, remedy in enumerate(finding.remedies):
        yield from _remedy(_("or") if number else _("fix"), remedy, "" if number else "green")
    if finding.probe:
        yield _labelled(_("probe"), f"{finding.probe.probe}: {clauses(finding.probe.outcome, _(finding.probe.why))}")
    for number, address in enumerate(finding.evidence if verbose else ()):
        yield _labelled("" if number else _("see"), address)


def _excerpt(finding: Finding, screen: Screen) -> Iterator[Line]:
    source, *carets = (*excerpt.rows(finding, screen.width), "")
    if carets:
        yield Line(head=source)
        yield Line(head=carets[0], head_style="red")


def _again(finding: Finding, above: Finding, screen: Screen) -> Iterator[Line]:
    """One more place where the entry above applies, and what differs there: what is seen, and its own way out."""
    if finding.location and finding.location != above.location:
        yield Line(str(finding.location), "dim", indent=10, links=_links(finding))
        yield from _excerpt(finding, screen)
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


def _brief_lines(findings: Sequence[Finding], lead: str, verbose: bool) -> Iterator[Line]:
    status = findings[0].status
    yield Line()
    yield Line(lead, "dim", status, STYLES[status], 10)
    shown = findings if verbose else findings[:_MOST_POSSIBLE]
    for finding in shown:
        yield Line(finding.title, "", f"{'':10}{finding.id}", "", 24, _links(finding))
        if finding.seen:
            yield Line(finding.summary, "", indent=24)
        detail = _(finding.probe.why) if finding.probe and status == "refuted" else _missing(finding)
        rests_on = because.sentence(finding, None if verbose else _MOST_FACTS_IN_BRIEF)
        if rests_on or detail:
            yield Line(_("; ").join(filter(None, (rests_on, detail))), "dim", indent=24)
        yield from (Line(address, "dim", indent=24) for address in (finding.evidence if verbose else ()))
    if len(shown) < len(findings):
        yield Line(_("{count} more: --verbose").format(count=len(findings) - len(shown)), "dim", indent=10)
    if status == "possible" and (asked := open_question(findings)):
        fact, count = asked
        text = _("{count} of {all} depend on {fact}: --assume {fact}=VALUE (absent if there is none)")
        yield Line(text.format(fact=fact, count=count, all=len(findings)), "", f"{'':10}{_('ask')}", "bold", 17)


def _missing(finding: Finding) -> str:
    paths = dict.fromkeys(finding.missing)
    facts = (f"{path} ({finding.partly[path]})" if path in finding.partly else path for path in paths)
    unconfirmed = _(UNCONFIRMED) if finding.confidence == "reported" or not finding.seen else ""
    missing = _("missing: {facts}").format(facts=comma_list(facts)) if paths else unconfirmed
    if finding.probe is None:
        return missing
    if finding.probe.outcome == "fail":
        known = _("fails on this machine; the missing facts decide whether your run is affected")
    else:
        known = clauses(finding.probe.outcome, _(finding.probe.why))
    return missing + _("; probe {probe}: {outcome}").format(probe=finding.probe.probe, outcome=known)
