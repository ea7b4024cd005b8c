"""Findings as SARIF 2.1.0, for code scanning and for editors.

The format is that of https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, filled so that GitHub takes it
(https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from compatcheck import __version__
from compatcheck.files import repository
from compatcheck.files.json_text import written_json
from compatcheck.files.secrets import without_secrets
from compatcheck.language import gettext as _
from compatcheck.report import because
from compatcheck.report._places import Place, below, place
from compatcheck.report._plain_text import first_fix, more, probe_text, undecided
from compatcheck.report.document import Document, Exit
from compatcheck.report.formats import _markdown
from compatcheck.report.shapes import area_shape, finite, held_fact_shape
from compatcheck.report.steps import step_texts
from compatcheck.results.findings import Finding, Report, Status, Suppressed, fingerprint
from compatcheck.terminal.screen import Screen

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_LEVELS: dict[Status, str] = {"confirmed": "error", "affected": "error", "possible": "note", "refuted": "none"}
_PRECISION = {"reproduced": "very-high", "upstream-fixed": "high", "corroborated": "high", "reported": "medium"}
_LONGEST_DESCRIPTION = 1024
"""GitHub's limit."""


def render(document: Document, screen: Screen) -> str:
    """One run. A finding that was set aside is a result with its suppression, and one that a probe refuted a pass.

    GitHub does not heed suppressions: what is uploaded there should hold none, or each becomes an open alert.
    """
    report, root = document.findings, repository.root()
    shown = report.findings
    everything = [*shown, *(each.finding for each in report.suppressed)]
    rules = list({finding.id: _rule(finding) for finding in reversed(everything)}.values())[::-1]
    run = {
        "tool": {"driver": _driver(report, rules)},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {_ROOT: {"uri": f"{_file_uri(root)}/"}},
        "invocations": [_invocation(report, document.exit, root)],
        "results": list(_results(report, shown, [rule["id"] for rule in rules], root)),
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return written_json(without_secrets(finite(log)))


def _driver(report: Report, rules: list[dict[str, object]]) -> dict[str, Any]:
    matrix = {
        "matrixRevision": report.matrix_revision,
        "matrixDate": report.matrix_date,
        "matrixEntries": report.matrix_entries,
    }
    return {"name": "compatcheck", "version": __version__, "rules": rules, "properties": matrix}


def _rule(finding: Finding) -> dict[str, Any]:
    """What the entry says of itself, and the ways out as they are spelled for these files."""
    address = next((each for each in finding.evidence if each.startswith("https://")), None)
    return {
        "id": finding.id,
        "shortDescription": {"text": finding.title},
        "fullDescription": {"text": finding.summary[:_LONGEST_DESCRIPTION]},
        "help": {"text": "\n".join(_help_text(finding)), "markdown": "\n".join(_help_markdown(finding))},
        **({"helpUri": address} if address else {}),
        "defaultConfiguration": {"level": "error"},
        "properties": {
            "tags": list(dict.fromkeys((finding.impact, finding.confidence, *finding.packages))),
            "precision": _PRECISION.get(finding.confidence, "medium"),
            "problem.severity": "error",
        },
    }


def _help_text(finding: Finding) -> Iterator[str]:
    yield from (finding.summary, "", _("Why"), finding.mechanism, "", _("What to do, best first"))
    for remedy in finding.remedies:
        yield _("; ").join(dict.fromkeys((*step_texts(remedy), remedy.why)))
    yield from (
        "",
        _("Evidence"),
        *finding.evidence,
        "",
        _("more: {command}").format(command=f"compatcheck explain {finding.id}"),
    )


def _help_markdown(finding: Finding) -> Iterator[str]:
    yield from (_markdown.cell(finding.summary), "", f"## {_('Why')}", "", _markdown.cell(finding.mechanism))
    yield from ("", f"## {_('What to do, best first')}", "", *_markdown.ways_out(finding))
    yield from (f"## {_('Evidence')}", "", *_markdown.evidence(finding.evidence))
    yield from ("", more(finding, _markdown.code))


def _invocation(report: Report, exit: Exit, root: str) -> dict[str, object]:
    """How the run ended. One that found something has done its work; one whose probe could not run has not."""
    notes = [
        {
            "level": "warning",
            "message": {"text": remark.text},
            **({"locations": [_location(below(remark.location, root))]} if remark.location else {}),
        }
        for remark in report.remarks
    ]
    return {
        "executionSuccessful": exit.status in (None, 0, 1),
        **({} if exit.status is None else {"exitCode": exit.status}),
        "exitCodeDescription": exit.reason,
        **({"properties": {"areas": list(map(area_shape, report.areas))}} if report.areas else {}),
        **({"toolConfigurationNotifications": notes} if notes else {}),
    }


def _results(report: Report, shown: Iterable[Finding], rules: list[str], root: str) -> Iterator[dict[str, object]]:
    compared = any(each.by == "baseline" for each in report.suppressed)
    pairs: list[tuple[Finding, Suppressed | None]] = [(finding, None) for finding in shown]
    pairs += [(each.finding, each) for each in report.suppressed]
    seen: Counter[str] = Counter()
    for finding, aside in pairs:
        mark = fingerprint(finding)
        seen[mark] += 1
        at = place(finding, report, root)
        yield {
            "ruleId": finding.id,
            "ruleIndex": rules.index(finding.id),
            "kind": "pass" if finding.status == "refuted" else "fail",
            "level": _LEVELS[finding.status],
            "message": {"text": " ".join(_message(finding))},
            "locations": [_location(at)],
            "partialFingerprints": _fingerprints(mark, seen[mark], at),
            **({"baselineState": _baseline_state(aside)} if compared else {}),
            **({"suppressions": [_suppression(aside)]} if aside else {}),
            "properties": _properties(finding),
        }


def _message(finding: Finding) -> Iterator[str]:
    """The title as its first sentence, which is all that is shown where room is short."""
    yield f"{finding.title}."
    yield finding.summary
    if text := because.sentence(finding):
        yield f"{text[0].upper()}{text[1:]}."
    if finding.status == "possible":
        text = undecided(finding)
        yield f"{text[0].upper()}{text[1:]}."
    if finding.probe:
        text = probe_text(finding.probe)
        yield f"{text[0].upper()}{text[1:]}."
    if finding.remedies:
        yield first_fix(finding)


def _fingerprints(mark: str, number: int, at: Place) -> dict[str, str]:
    """GitHub knows a finding again by ``primaryLocationLineHash`` alone.

    Where there is a line its upload action computes it and warns of any other value, elsewhere it leaves it out
    (https://github.com/github/codeql-action/blob/v4.36.2/src/fingerprints.ts).
    """
    return {"compatcheck/v1": mark, **({} if at.line else {"primaryLocationLineHash": f"{mark}:{number}"})}


def _baseline_state(aside: Suppressed | None) -> str:
    return "unchanged" if aside and aside.by == "baseline" else "new"


def _suppression(aside: Suppressed) -> dict[str, str]:
    return {"kind": "external", "status": "accepted", "justification": aside.why}


def _properties(finding: Finding) -> dict[str, Any]:
    return {
        "status": finding.status,
        "impact": finding.impact,
        "confidence": finding.confidence,
        "packages": list(finding.packages),
        "because": [held_fact_shape(fact) for fact in finding.because],
        "missing": list(finding.missing),
    }


def _location(at: Place) -> dict[str, object]:
    artifact = {"uri": quote(os.fsencode(at.path)), "uriBaseId": _ROOT} if at.is_inside else {"uri": _file_uri(at.path)}
    region = {"region": {"startLine": at.line}} if at.line else {}
    note = {} if at.stated else {"message": {"text": _("No file states this; versions are pinned here.")}}
    return {"physicalLocation": {"artifactLocation": artifact, **region}, **note}


def _file_uri(path: str) -> str:
    """An absolute path as an address; one with a drive gets the slash before it that addresses have."""
    return "file:///" + quote(os.fsencode(path.replace(os.sep, "/").lstrip("/")), safe="/:")
