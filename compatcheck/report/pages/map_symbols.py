"""The signs of a version map: what is known of two versions beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compatcheck.language import marked
from compatcheck.report.pages.markup import Html, listed, tag

LEGEND = (
    ("bad-wrong", "≠", marked("known bad: trains wrong silently, or diverges")),
    ("bad-stop", "×", marked("known bad: fails or hangs")),
    ("bad-slow", "~", marked("known bad: slow")),
    ("may", "?", marked("may be bad: it depends on facts that are not given")),
    ("good", "✓", marked("the probe of an entry was measured here and passed")),
    ("none", " ", marked("nothing known, which does not mean good")),
)
_KINDS = {"silent-wrong": "bad-wrong", "divergence": "bad-wrong", "slow": "bad-slow"}


def kind_of(bad: Iterable[str], possible: bool) -> str:
    """The kind of sign for the impacts of what is known bad, and for whether something may be: the worst of them."""
    kinds = {_KINDS.get(impact, "bad-stop") for impact in bad}
    return next((kind for kind, _, _ in LEGEND if kind in kinds), "may" if possible else "none")


def symbol(kind: str) -> str:
    return next(each for name, each, _ in LEGEND if name == kind)


def legend(kinds: Iterable[str] = (), translate: Callable[[str], str] = str) -> Html:
    """What the signs mean: all of them, or those of some kinds."""
    wanted = set(kinds) or {kind for kind, _, _ in LEGEND}
    marks = [
        Html(tag("span", each, class_=f"cell {kind}", aria_hidden="true") + tag("span", f" {translate(words)}"))
        for kind, each, words in LEGEND
        if kind in wanted
    ]
    return listed(marks, class_="legend", aria_label=translate(marked("What the symbols mean")))
