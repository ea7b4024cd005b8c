"""A baseline: an earlier JSON report, whose findings are known already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import read_text
from compatcheck.results.findings import Finding, Report, Suppressed, fingerprint

_SCHEMA_VERSION = 1
_RANKS = {"confirmed": 0, "affected": 0, "possible": 1, "refuted": 2}
_WRITE = "write the report with compatcheck --format json -o FILE"


def hold_against(report: Report, baseline: str) -> Report:
    """The report with every finding among the suppressed that the baseline knows as at least as bad.

    What was only possible then and is affected now is new; a probe that confirms what was affected adds no finding.
    Raises `InputError` where the file is no JSON report of this version.
    """
    ranks = _read(baseline)

    def is_known(finding: Finding) -> bool:
        before = ranks.get(fingerprint(finding))
        return finding.status != "refuted" and before is not None and before <= _RANKS[finding.status]

    known = [finding for finding in report.findings if is_known(finding)]
    return report._replace(
        findings=tuple(finding for finding in report.findings if not is_known(finding)),
        suppressed=(*report.suppressed, *(Suppressed(each, "baseline", f"known in {baseline}") for each in known)),
    )


def _read(path: str) -> dict[str, int]:
    """How bad each finding was, by fingerprint; what that report had set aside as known stays known."""
    ranks: dict[str, int] = {}
    for row in (row for report in _reports(path) for row in _rows(path, report)):
        mark, status = (row.get("fingerprint"), row.get("status")) if isinstance(row, Mapping) else (None, None)
        if not isinstance(mark, str) or not isinstance(status, str) or status not in _RANKS:
            _refuse(path, "a finding in the file has no fingerprint or no status", f"the report may be older; {_WRITE}")
        ranks[mark] = min(_RANKS[status], ranks.get(mark, 2))
    return ranks


def _rows(path: str, report: object) -> list[object]:
    """The findings of one report, and those that it had set aside as known."""
    found, earlier = (report.get("findings"), report.get("suppressed", [])) if isinstance(report, Mapping) else (0, 0)
    if not isinstance(found, list) or not isinstance(earlier, list):
        _refuse(path, "the file is not a compatcheck report", _WRITE)
    return [
        *found,
        *(row.get("finding") for row in earlier if isinstance(row, Mapping) and row.get("by") == "baseline"),
    ]


def _reports(path: str) -> list[object]:
    """The report that a file is, or those of the projects that it holds."""
    value = _document(path)
    several = value.get("projects")
    return several if isinstance(several, list) else [value]


def _document(path: str) -> Mapping[str, object]:
    text = read_text(path, limits.BASELINE_BYTES)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        cut = " and appears truncated" if text.strip() and error.pos >= len(text.rstrip()) - 1 else ""
        seen = f"line {error.lineno}: the text is not JSON{cut}" if text.strip() else "the file is empty"
        _refuse(path, seen, _WRITE)
    except RecursionError:
        _refuse(path, "the content is nested too deeply", _WRITE)
    except ValueError:
        _refuse(path, "a number with thousands of digits", _WRITE)
    version = value.get("schema_version") if isinstance(value, Mapping) else None
    if version is None or not value.keys() & {"findings", "projects"}:
        _refuse(path, "the file is not a compatcheck report", _WRITE)
    if version != _SCHEMA_VERSION:
        _refuse(path, f"the schema_version is {version!r}, and this compatcheck reads {_SCHEMA_VERSION}", _WRITE)
    shape: Mapping[str, Any] = value
    return shape


def _refuse(path: str, seen: str, advice: str) -> NoReturn:
    raise InputError("reading the baseline", path, seen, advice)
