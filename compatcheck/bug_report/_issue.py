"""A report as GitHub gives it: its text, the day on which it was written, and the package whose repository it is in.

Read are ``gh issue view N --json title,body,url,createdAt,author,comments``, the REST API's issue with or without the
list of its comments (https://docs.github.com/en/rest/issues/issues#get-an-issue), lists of issues and search results,
and a discussion as GraphQL gives it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from compatcheck.bug_report._names import distribution_of
from compatcheck.environment import Environment
from compatcheck.files import limits
from compatcheck.files.lazy_patterns import LazyPattern

_PLACE = LazyPattern(
    r"https://(?:api\.)?github\.com/(?:repos/)?([\w.-]+/[\w.-]+)/(?:issues|pull|discussions)/\d+",
    marks=("github.com/",),
)
_WRAPPERS = ("data", "repository", "issue", "discussion", "pullRequest", "items", "nodes", "issues", "search")


class Issue(NamedTuple):
    text: str
    facts: Environment


def read(text: str) -> tuple[Issue, ...]:
    """The reports in a JSON document; none where the text is no JSON, or not of an issue."""
    if not text.lstrip().startswith(("{", "[")):
        return ()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return tuple(_issue(each) for each in _threads(document))


def is_thread(document: Any) -> bool:
    """Whether a JSON document holds a report."""
    return next(_threads(document), None) is not None


def _issue(document: Mapping[str, Any]) -> Issue:
    place = _PLACE.match(str(document.get("html_url") or document.get("url") or ""))
    day = str(document.get("createdAt") or document.get("created_at") or "")[:10]
    known = report_facts(day, place[1] if place else None)
    return Issue("\n\n".join(_texts(document)), Environment(known))


def _threads(document: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Each report with its comments; what follows a report in a list and has no title is a comment of it."""
    if isinstance(document, list):
        yield from _threads_of_list([each for each in document if isinstance(each, dict)])
    elif isinstance(document, dict) and isinstance(document.get("body"), str):
        yield document
    elif isinstance(document, dict) and depth < limits.ISSUE_DEPTH:
        inner = (document[key] for key in _WRAPPERS if isinstance(document.get(key), (dict, list)))
        for each in inner:
            yield from _threads(each, depth + 1)


def _threads_of_list(listed: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    written = [each for each in listed if isinstance(each.get("body"), str)]
    starts = [index for index, each in enumerate(written) if isinstance(each.get("title"), str)] or [0]
    for start, end in zip(starts, [*starts[1:], len(written)]):
        if start < end:
            own = _comments(written[start])
            yield {**written[start], "comments": [*own, *written[start + 1 : end]]}


def _comments(document: Mapping[str, Any]) -> list[Any]:
    comments = document.get("comments")
    nodes = comments.get("nodes") if isinstance(comments, dict) else comments
    return nodes if isinstance(nodes, list) else []


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
    for comment in _comments(document):
        if isinstance(comment, dict) and isinstance(comment.get("body"), str) and _author(comment) == _author(document):
            yield comment["body"]


def _author(document: Mapping[str, object]) -> object:
    writer = document.get("author") or document.get("user")
    return writer.get("login") if isinstance(writer, dict) else None
