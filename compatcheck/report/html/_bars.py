"""What probes measured, as bars on a logarithmic scale with the bound as a line; each bar is a row of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from compatcheck.model import Outcome, ProbeResult
from compatcheck.report._markup import Html, joined, tag

BOUND, FAILS = 1.0, 4.0
"""An error in units of what rounding explains: healthy up to the first, a fault beyond the second."""
RATIO_BOUND, RATIO_FAILS = 2.0, 4.0
"""The same for the error over that of the plain formula."""

_LEAST = 1e-3
_MOST_BARS, _MOST_CASES = 24, 10
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
    """Every error that a probe judged; those of other implementations are only compared with."""
    rows = measured.get("rows")
    return [_bar(row) for row in rows if _is_error(row)] if isinstance(rows, Sequence) else []


def _is_error(row: Any) -> bool:
    return isinstance(row, Mapping) and {"theta", "variant", "dtype", "case"} <= set(row) and "recorded" not in row


def _bar(row: Mapping[str, Any]) -> Bar:
    dtype, variant, case = (str(row[key]) for key in ("dtype", "variant", "case"))
    return Bar(dtype, variant, case, float(row["theta"]), float(row.get("rho", 0)), bool(row.get("control")))


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
        for group in (list(each) for _, each in groupby(by_kind, lambda bar: (bar.compared, bar.variant, bar.dtype)))
    ]
    nearest = sorted((bar for bar in bars if not bar.compared), key=lambda bar: (-_size(bar), bar.case, bar.variant))
    shown = sorted(kinds, key=lambda bar: (bar.compared, -_size(bar)))[:_MOST_BARS]
    cases = [bar._replace(cases=1) for bar in nearest[:_MOST_CASES]]
    left = f" The {len(kinds) - len(shown)} smallest are left out." if len(kinds) > len(shown) else ""
    caption = f"Largest error of each implementation and type, over {len(bars)} measured.{left}"
    more = tag(
        "details",
        tag("summary", f"The shapes nearest to the bound ({len(cases)} of {len(nearest)})"),
        table(cases, "The largest errors", by_case=True),
    )
    return joined((table(shown, caption), more if len(nearest) > 1 else None))


def table(bars: Sequence[Bar], caption: str, *, by_case: bool = False) -> Html:
    end = _end(bars)
    heads = [
        *(["Shape"] if by_case else []),
        "Implementation",
        "Type",
        "Error over its bound",
        "Over the plain formula's",
    ]
    cells = [tag("th", words, scope="col", class_="bar-head" if "bound" in words else None) for words in heads]
    cells[-2] = tag("th", "Error over its bound", axis(end), scope="col", class_="bar-head")
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", *cells)),
            tag("tbody", *(_row(bar, end, by_case) for bar in bars)),
            class_="bars",
        ),
        class_="wide",
    )


def _row(bar: Bar, end: float, by_case: bool) -> Html:
    kind = " (for comparison)" if bar.compared else ""
    return tag(
        "tr",
        tag("td", bar.case) if by_case else None,
        tag("th", f"{bar.variant}{kind}", scope="row"),
        tag("td", bar.dtype),
        tag("td", drawn(bar.theta, end, "none" if bar.compared else OUTCOME_SIGNS[bar.outcome][0]), " ", said(bar)),
        tag("td", number(bar.rho), class_="number"),
        class_="compared" if bar.compared else None,
    )


def said(bar: Bar) -> Html:
    """The number beside a bar, with what it means where that is not health."""
    words = {"fail": "fails", "watch": "watch"}.get(bar.outcome, "") if not bar.compared else ""
    return tag("span", number(bar.theta), tag("strong", f" {words}") if words else None, class_="number")


def number(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "not finite"


def _end(bars: Iterable[Bar]) -> float:
    """The right end of the scale: room for the largest finite error, and for the bounds."""
    largest = max((bar.theta for bar in bars if math.isfinite(bar.theta)), default=FAILS)
    return float(10 ** math.ceil(math.log10(max(largest, FAILS) * 1.2)))


def scale_of(bars: Iterable[Bar]) -> float:
    return _end(bars)


def _place(value: float, end: float) -> float:
    """Where a value stands, in hundredths of the width."""
    if not math.isfinite(value):
        return 100.0
    share = (math.log10(max(value, _LEAST)) - math.log10(_LEAST)) / (math.log10(end) - math.log10(_LEAST))
    return round(min(share, 1.0) * 100, 1)


def drawn(value: float, end: float, kind: str) -> Html:
    """A bar from the left end of the scale, and a line at the bound and where a fault begins."""
    width = max(_place(value, end), 0.5)
    beyond = tag("rect", class_="hatch", x="96%", y=3, width="4%", height=12) if not math.isfinite(value) else None
    return tag(
        "svg",
        tag("rect", class_="track", x=0, y=3, width="100%", height=12),
        tag("rect", class_=f"{kind}-bar", x=0, y=3, width=f"{width}%", height=12),
        beyond,
        *_lines(end),
        class_="bar",
        width="100%",
        height=18,
        aria_hidden="true",
        focusable="false",
    )


def _lines(end: float) -> Iterator[Html]:
    for value, kind in ((BOUND, "bound"), (FAILS, "fault")):
        place = f"{_place(value, end)}%"
        yield tag("line", class_=kind, x1=place, x2=place, y1=0, y2=18)


def axis(end: float) -> Html:
    """The scale above the bars."""
    least, most = round(math.log10(_LEAST)), round(math.log10(end))
    powers = [power for power in range(least, most + 1) if power % 2 == 0 or most - least < 6]
    ticks = [
        tag("text", _power(power), x=f"{_place(10.0**power, end)}%", y=12, text_anchor=_anchor(power, least, most))
        for power in powers
        if power not in (0, least)
    ]
    bound = tag("text", "bound 1", x=f"{_place(BOUND, end)}%", y=12, text_anchor="middle", class_="bound-name")
    return tag("svg", *ticks, bound, class_="axis", width="100%", height=16, aria_hidden="true", focusable="false")


def _anchor(power: int, least: int, most: int) -> str:
    return "start" if power == least else "end" if power == most else "middle"


def _power(power: int) -> str:
    return f"{10.0**power:g}"
