"""A report as GitHub gives it: its text, the day on which it was written, and the package whose repository it is in.

Both forms are read: that of ``gh issue view N --json title,body,url,createdAt,author,comments`` and that of the REST
API, https://docs.github.com/en/rest/issues/issues#get-an-issue
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from compatcheck.bug_report._names import distribution_of
from compatcheck.environment import Environment

_PLACE = re.compile(r"https://(?:api\.)?github\.com/(?:repos/)?([\w.-]+/[\w.-]+)/(?:issues|pull|discussions)/\d+")


class Issue(NamedTuple):
    text: str
    facts: Environment


def read(text: str) -> Issue | None:
    """The report in a JSON document; None where the text is no JSON, or not one of an issue."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document.get("body"), str):
        return None
    place = _PLACE.match(str(document.get("html_url") or document.get("url") or ""))
    day = str(document.get("createdAt") or document.get("created_at") or "")[:10]
    known = report_facts(day, place[1] if place else None)
    return Issue("\n\n".join(_texts(document)), Environment(known))


def report_facts(day: str, repository: str | None) -> dict[str, Any]:
    """What the day and the repository of a report tell: the package of the repository is there, in some version."""
    said = {"date": day if _is_day(day) else None, "repository": repository}
    known: dict[str, Any] = {"report": {name: value for name, value in said.items() if value}}
    package = repository and distribution_of(repository)
    return known | ({"distribution_ranges": {package: ""}} if package else {})


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _texts(document: Mapping[str, Any]) -> Iterator[str]:
    """The title, the report, and what the reporter added."""
    yield from (document[part] for part in ("title", "body") if isinstance(document.get(part), str))
    comments = document.get("comments")
    for comment in comments if isinstance(comments, list) else ():
        if isinstance(comment, dict) and isinstance(comment.get("body"), str) and _author(comment) == _author(document):
            yield comment["body"]


def _author(document: Mapping[str, object]) -> object:
    writer = document.get("author") or document.get("user")
    return writer.get("login") if isinstance(writer, dict) else None
