"""The top and the end of every page: the one line to take away, and what judged."""

from __future__ import annotations

from typing import Literal, NamedTuple

from compatcheck import __version__
from compatcheck.report.pages.markup import Html, tag

_SIGNS = {"bad": "×", "may": "?", "good": "✓"}


class Verdict(NamedTuple):
    """The line, whether what it tells is bad, may be bad or is good, and what stands below it."""

    words: str
    kind: Literal["bad", "may", "good"]
    more: tuple[str | None, ...] = ()


class Judge(NamedTuple):
    """The matrix that judged."""

    revision: str
    entries: int
    date: str
    stale: bool


def banner(verdict: Verdict) -> Html:
    sign = tag("span", _SIGNS[verdict.kind], class_=f"sign {verdict.kind}-sign", aria_hidden="true")
    return tag(
        "header",
        tag("p", "compatcheck", class_="brand"),
        tag("h1", sign, " ", verdict.words),
        *verdict.more,
        class_=f"verdict {verdict.kind}-verdict",
    )


def footer(judge: Judge | None = None, exit_reason: str = "") -> Html:
    told = f"compatcheck {__version__}"
    if judge:
        dated = f" of {judge.date}" if judge.date else ""
        told += f", matrix {judge.revision}{dated}, {judge.entries} entries."
        told += " It was last reviewed more than 90 days ago: compatcheck matrix update." if judge.stale else ""
    result = f" Result: {exit_reason}." if exit_reason else ""
    return tag("footer", tag("p", f"{told}{result}"))
