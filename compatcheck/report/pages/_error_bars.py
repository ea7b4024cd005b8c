"""What probes measured, as bars on a logarithmic scale with the bound as a line; each bar is a row of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from compatcheck.language import gettext as _
from compatcheck.report.pages.markup import Html, joined, tag
from compatcheck.results.findings import Outcome, ProbeResult

BOUND, FAILS = 1.0, 4.0
"""An error in units of what rounding explains: healthy up to the first, a fault beyond the second."""
RATIO_BOUND, RATIO_FAILS = 2.0, 4.0
"""The same for the error over that of the plain formula."""

_LEAST, _MOST = 1e-3, 1e3
_MOST_BARS, _MOST_CASES = 16, 6
OUTCOME_SIGNS: dict[Outcome, tuple[str, str]] = {
    "pass": ("good", "✓"),
    "watch": ("may", "!"),
    "fail": ("bad", "×"),
    "skip": ("none", "–"),
    "crash": ("bad", "×"),
    "timeout": ("bad", "×"),
}


class Bar(NamedTuple):
    """One measured error: ``theta`` over its bound, ``rho`` over the plain formula's; ``cases`` lie behind it."""

    dtype: str
    variant: str
    case: str
    theta: float
    rho: float
    compared: bool = False
    cases: int = 1

    @property
    def outcome(self) -> Outcome:
        if not (self.theta <= FAILS and self.rho <= RATIO_FAILS):
            return "fail"
        return "pass" if self.theta <= BOUND and self.rho <= RATIO_BOUND else "watch"


def bars_of(measured: Mapping[str, Any]) -> list[Bar]:
    """Every error that a probe measured; those that only prove the inputs, or are not judged, are compared with."""
    rows = measured.get("rows")
    return [_bar(row) for row in rows if _is_error(row)] if isinstance(rows, Sequence) else []


def _is_error(row: Any) -> bool:
    return isinstance(row, Mapping) and {"theta", "variant", "dtype", "case"} <= set(row)


def _bar(row: Mapping[str, Any]) -> Bar:
    dtype, variant, case = (str(row[key]) for key in ("dtype", "variant", "case"))
    return Bar(
        dtype,
        variant,
        case,
        float(row["theta"]),
        float(row.get("rho", 0)),
        bool(row.get("control")) or "recorded" in row or "by_design" in row,
    )


def _size(bar: Bar) -> float:
    return math.inf if math.isnan(bar.theta) else bar.theta


def worst(bars: Iterable[Bar]) -> Bar | None:
    """The judged error that is nearest to its bound, or furthest beyond it."""
    return max((bar for bar in bars if not bar.compared), key=_size, default=None)


def details(result: ProbeResult, heading: str = "h4") -> Html:
    """The errors of one probe by type and implementation, and below them the shapes that come nearest to the bound."""
    bars = bars_of(result.measured)
    if not bars:
        return Html()
    by_kind = sorted(bars, key=lambda bar: (bar.compared, bar.variant, bar.dtype))
    kinds = [
        max(group, key=_size)._replace(cases=len(group))
        for group in (list(each) for kind, each in groupby(by_kind, lambda bar: (bar.compared, bar.variant, bar.dtype)))
    ]
    nearest = sorted((bar for bar in bars if not bar.compared), key=lambda bar: (-_size(bar), bar.case, bar.variant))
    shown = sorted(kinds, key=lambda bar: (bar.compared, -_size(bar)))[:_MOST_BARS]
    cases = [bar._replace(cases=1) for bar in nearest[:_MOST_CASES]]
    caption = _("The largest error of each implementation and type, out of {count} measured errors.").format(
        count=len(bars)
    )
    if len(kinds) > len(shown):
        caption += " " + _("The {count} smallest are left out.").format(count=len(kinds) - len(shown))
    more = tag(
        "details",
        tag(
            "summary",
            _("The shapes nearest to the bound ({count} of {total})").format(count=len(cases), total=len(nearest)),
        ),
        table(cases, _("The largest errors"), by_case=True),
    )
    return joined((table(shown, caption), more if len(nearest) > 1 else None))


def table(bars: Sequence[Bar], caption: str, *, by_case: bool = False) -> Html:
    heads = [*([_("Shape")] if by_case else []), _("Implementation"), _("Type")]
    cells = [tag("th", words, scope="col") for words in heads]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag(
                "thead",
                tag(
                    "tr",
                    *cells,
                    head(),
                    tag("th", _("Error relative to the error of the plain formula"), scope="col", class_="ratio"),
                ),
            ),
            tag("tbody", *(_row(bar, by_case) for bar in bars)),
            class_="bars",
        ),
        class_="wide",
    )


def _row(bar: Bar, by_case: bool) -> Html:
    kind = _(" (for comparison)") if bar.compared else ""
    return tag(
        "tr",
        tag("td", bar.case) if by_case else None,
        tag("th", f"{bar.variant}{kind}", scope="row"),
        tag("td", bar.dtype),
        error_cell(bar),
        tag("td", number(bar.rho), class_="number ratio"),
        class_="compared" if bar.compared else None,
    )


def head() -> Html:
    """The scale above the bars."""
    ticks = [
        tag("text", words, x=f"{_place(value)}%", y=11, text_anchor=anchor)
        for value, words, anchor in (
            (_LEAST, "0.001", "start"),
            (BOUND, _("bound 1"), "middle"),
            (_MOST, "1000", "end"),
        )
    ]
    scale = tag("svg", *ticks, class_="axis", aria_hidden="true", focusable="false")
    return tag("th", _("Error relative to its bound"), scale, scope="col", class_="error")


def error_cell(bar: Bar | None) -> Html:
    """The error as a bar, with the bound and where a fault begins as lines, and the number beside it in words."""
    if bar is None:
        return tag("td", class_="error")
    words = {"fail": _(" fails"), "watch": _(" watch")}.get(bar.outcome) if not bar.compared else None
    kind = "none" if bar.compared else OUTCOME_SIGNS[bar.outcome][0]
    drawing = tag(
        "svg",
        tag("rect", class_="track"),
        tag("rect", class_=f"{kind}-bar", width=f"{max(_place(bar.theta), 0.5):g}%"),
        tag("rect", class_="bound"),
        tag("rect", class_="fault"),
        class_="bar",
        aria_hidden="true",
        focusable="false",
    )
    value = tag("span", number(bar.theta), tag("strong", words) if words else None, class_="number")
    return tag("td", tag("div", drawing, value), class_="error")


def number(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else _("not finite")


def _place(value: float) -> float:
    """Where a value stands on the scale, in hundredths of its width; what is beyond it ends with it."""
    if not math.isfinite(value):
        return 100.0
    share = (math.log10(max(value, _LEAST)) - math.log10(_LEAST)) / (math.log10(_MOST) - math.log10(_LEAST))
    return round(min(share, 1.0) * 100, 1)
