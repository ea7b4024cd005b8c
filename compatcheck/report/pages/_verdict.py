"""The top and the end of every page: the one line to take away, and what judged."""

from __future__ import annotations

from typing import Literal, NamedTuple

from compatcheck import __version__
from compatcheck.language import gettext as _
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
    parts = [f"compatcheck {__version__}"]
    if judge:
        dated = _(" of {date}").format(date=judge.date) if judge.date else ""
        matrix = _("matrix {revision}{dated}, {count} entries")
        parts[0] += ", " + matrix.format(revision=judge.revision, dated=dated, count=judge.entries) + "."
        if judge.stale:
            parts.append(_("The matrix was last reviewed more than 90 days ago; run compatcheck matrix update."))
    if exit_reason:
        parts.append(_("Result: {reason}.").format(reason=exit_reason))
    return tag("footer", tag("p", " ".join(parts)))
