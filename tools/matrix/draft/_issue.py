"""The body that GitHub makes of the issue form, taken apart again. Its text is data: nothing in it is followed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from compatcheck.bug_report import read_report, read_text_of_report
from compatcheck.environment import Environment
from compatcheck.environment.snapshot import load_snapshot
from compatcheck.errors import InputError

LABELS = {
    "title": "What breaks, in one line",
    "package": "Package at fault",
    "impact": "What happens",
    "summary": "What you see",
    "error": "Error text",
    "environment": "Environment",
    "fails": "Versions that fail",
    "works": "Versions that work",
    "model": "Model",
    "gpu": "GPU",
    "training": "Training settings",
    "evidence": "Links",
    "helps": "What helps",
}
"""The fields of ``.github/ISSUE_TEMPLATE/matrix-entry.yml`` by id; there a label goes on in Chinese after a slash."""

_LARGEST = 1 << 18
_DOING = "reading the issue"
_ADVICE = "give the body of an issue made with the form, or `gh issue view N --json body,title,url`"
_HEADING = re.compile(r"(?m)^###[ \t]+(.{1,120}?)[ \t]*$")
_FENCED = re.compile(r"\A(`{3,}|~{3,})[^\n]*\n(.*?)\n?\1\s*\Z", re.DOTALL)
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
_NO_RESPONSE = "_No response_"
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|[\ud800-\udfff]")


class Issue(NamedTuple):
    """What the reporter filled in by field, empty where nothing; the address, and the environment as facts."""

    fields: Mapping[str, str]
    url: str
    environment: Environment


def read(path: str) -> Issue:
    """The issue in a file, ``-`` being standard input. Raises InputError where it is none or larger than 256 KiB."""
    text, source = read_text_of_report(path)
    if len(text) > _LARGEST:
        raise InputError(_DOING, source, "too large for an issue", _ADVICE)
    body, title, url = _parts(text, source)
    fields = _fields(_CONTROLS.sub("", body.replace("\r\n", "\n")))
    if not any(fields.values()):
        raise InputError(_DOING, source, "no heading of the issue form found", _ADVICE)
    fields["title"] = fields["title"] or _CONTROLS.sub("", title)
    return Issue(fields, url, _environment(fields, source))


def _parts(text: str, source: str) -> tuple[str, str, str]:
    """Body, title and address: of Markdown the first alone, of JSON as ``gh`` or the event of a workflow has them."""
    if not text.lstrip().startswith("{"):
        return text, "", ""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(_DOING, source, f"it begins as JSON but is none: {error}", _ADVICE) from None
    issue = document.get("issue", document)
    if not isinstance(issue, dict) or not isinstance(issue.get("body"), str):
        raise InputError(_DOING, source, "its JSON has no body", _ADVICE)
    title, url = issue.get("title"), issue.get("html_url") or issue.get("url")
    return issue["body"], title if isinstance(title, str) else "", url if isinstance(url, str) else ""


def _fields(body: str) -> dict[str, str]:
    """The text below each heading of the form; the first counts, and other headings belong to the text."""
    by_label = {label.casefold(): field for field, label in LABELS.items()}
    found = [
        (field, match)
        for match in _HEADING.finditer(body)
        if (field := by_label.get(match[1].partition(" / ")[0].strip().casefold()))
    ]
    fields = dict.fromkeys(LABELS, "")
    ends = [match.start() for _, match in found[1:]] + [len(body)]
    for (field, match), end in zip(found, ends):
        fields[field] = fields[field] or _answer(body[match.end() : end])
    return fields


def _answer(text: str) -> str:
    bare = text.strip()
    fenced = _FENCED.match(bare)
    bare = fenced[2].strip() if fenced else bare
    return "" if bare == _NO_RESPONSE else bare


def _environment(fields: Mapping[str, str], source: str) -> Environment:
    """The facts of all fields; what the environment itself says counts over what was typed beside it."""
    typed = [fields["training"]]
    typed += [f"GPU: {fields['gpu']}"] if fields["gpu"] else []
    beside = read_report("\n\n".join(typed), source)
    if _MODEL.fullmatch(fields["model"]):
        beside = beside.overlay(Environment({"model": {"name": fields["model"]}}))
    pasted = fields["environment"]
    if pasted.startswith("{") and '"schema_version"' in pasted:
        stated = load_snapshot(pasted, f"the environment in {source}")
    else:
        stated = read_report(pasted, source)
    return beside.overlay(Environment(stated.facts, stated.reasons))
