"""Findings as JUnit XML, which most CI servers show as tests.

The elements are those of https://github.com/testmoapp/junitxml, a description of what servers and tools agree on.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from compatcheck.files import repository
from compatcheck.language import gettext as _
from compatcheck.report import areas
from compatcheck.report._places import place
from compatcheck.report._plain_text import lines, undecided
from compatcheck.report.document import Document
from compatcheck.results.findings import BAD, Finding, Report
from compatcheck.terminal.cells import spelled_out, visible
from compatcheck.terminal.screen import Screen

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(document: Document, screen: Screen) -> str:
    """A test for each finding: failed where it is certain, skipped where facts are missing or it was set aside.

    Where there is none, one test that passed says so, since servers take a report without tests for a broken run.
    """
    report, root = document.findings, repository.root()
    suite = Element("testsuite", {"name": "compatcheck"})
    _add_areas(suite, report)
    for finding in report.findings:
        case = _case(suite, finding, report, root)
        if finding.status in BAD:
            _reason(case, "failure", finding.title, finding).set("type", finding.status)
        elif finding.status == "possible":
            _reason(case, "skipped", f"{_('possible')}: {undecided(finding)}", finding)
    for aside in report.suppressed:
        case = _case(suite, aside.finding, report, root)
        SubElement(case, "skipped", {"message": _clean(f"{_(aside.by)}: {aside.why}")})
    if suite.find("testcase") is None:
        SubElement(suite, "testcase", {"classname": "compatcheck", "name": _clean(areas.all_clear(report))})
    counts = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": 0,
        "skipped": len(suite.findall("testcase/skipped")),
    }
    top = Element("testsuites", {key: str(count) for key, count in counts.items()})
    suite.attrib.update(top.attrib)
    top.append(suite)
    indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(top, encoding="unicode")}\n'


def _add_areas(suite: Element, report: Report) -> None:
    """What was judged, area by area, as properties of the suite."""
    if report.areas:
        properties = SubElement(suite, "properties")
        for area in report.areas:
            SubElement(properties, "property", {"name": area.name, "value": _clean(areas.text(area, report))})


def _case(suite: Element, finding: Finding, report: Report, root: str) -> Element:
    at = place(finding, report, root)
    line = {"line": str(at.line)} if at.line else {}
    named = {"classname": f"compatcheck.{finding.impact}", "name": _clean(f"{finding.id} {finding.title}")}
    return SubElement(suite, "testcase", {**named, "file": _clean(at.path), **line})


def _reason(case: Element, kind: str, message: str, finding: Finding) -> Element:
    reason = SubElement(case, kind, {"message": _clean(message)})
    reason.text = _clean("\n".join(map(visible, (*lines(finding), *finding.evidence))))
    return reason


def _clean(text: str) -> str:
    """XML has no way to write most control characters."""
    return _NOT_IN_XML.sub("\ufffd", spelled_out(text))
