"""Curves of a run, with the step at which a symptom began: as lines of a terminal, and as a self-contained SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from statistics import median

from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.results.logs import Curve
from compatcheck.terminal.cells import cells, padded

_BLOCKS = "▁▂▃▄▅▆▇█"
_NOT_FINITE = "×"
_LABELS = {"grad_norm": marked("grad norm"), "eval_loss": marked("eval loss")}
_AXES = {"step": marked("step"), "reading": marked("reading no."), "module": marked("module no.")}
_MARGIN, _FEWEST_COLUMNS = 13, 12
_PLOT_WIDTH, _PLOT_HEIGHT, _LEFT, _TOP, _GAP = 640, 120, 70, 40, 46
_STYLE = """
.compatcheck-curves { background: #fff; font: 12px system-ui, sans-serif; }
.compatcheck-curves text { fill: #333; }
.compatcheck-curves .frame { fill: none; stroke: #bbb; }
.compatcheck-curves .line { fill: none; stroke: #1f5fbf; stroke-width: 1.5; }
.compatcheck-curves .dot { fill: #1f5fbf; }
.compatcheck-curves .gone { stroke: #c22; stroke-width: 1.5; }
.compatcheck-curves .onset { stroke: #c22; stroke-dasharray: 4 3; }
.compatcheck-curves .onset-label { fill: #c22; }
@media (prefers-color-scheme: dark) {
.compatcheck-curves { background: #16181d; }
.compatcheck-curves text { fill: #ddd; }
.compatcheck-curves .frame { stroke: #555; }
.compatcheck-curves .line { stroke: #7fb2ff; }
.compatcheck-curves .dot { fill: #7fb2ff; }
.compatcheck-curves .gone, .compatcheck-curves .onset { stroke: #ff7a7a; }
.compatcheck-curves .onset-label { fill: #ff7a7a; }
}
"""


def terminal(curves: Sequence[Curve], width: int = 86) -> str:
    """One row of blocks a curve, an × where a value is not finite, and the onset below; empty without curves.

    Where ``width`` has no room for them, the values at both ends are left out.
    """
    drawn = [each for curve in curves for each in (curve, curve.beside) if each and each.points]
    if not drawn:
        return ""
    first = min(curve.points[0][0] for curve in drawn)
    last = max(curve.points[-1][0] for curve in drawn)
    ranges = [_range(curve, _NOT_FINITE) for curve in drawn]
    room = width - _MARGIN - 2 - max(map(cells, ranges))
    if room < _FEWEST_COLUMNS:
        ranges, room = [""] * len(drawn), width - _MARGIN
    columns = min(max(room, _FEWEST_COLUMNS), max(len(curve.points) for curve in drawn))
    rows = [_blocks(_buckets(curve, first, last, columns), curve.bounds) for curve in drawn]
    lines = [f"{padded(_label(curve), _MARGIN)}{row}  {text}".rstrip() for curve, row, text in zip(drawn, rows, ranges)]
    onset = next((curve.onset for curve in drawn if curve.onset is not None), None)
    if onset is not None:
        began = _("began at {step}").format(step=f"{onset:g}")
        lines.append(f"{'':{_MARGIN}}{' ' * _place(onset, first, last, columns)}^ {began}")
    left, right = f"{first:g}", f"{last:g}"
    lines.append(f"{padded(_axis(drawn[0]), _MARGIN)}{left:<{max(columns - len(right), len(left) + 1)}}{right}")
    return "\n".join(lines)


def svg(curves: Sequence[Curve], title: str = "") -> str:
    """A picture of its own, light or dark as the reader's screen is, with a description for those who hear it."""
    drawn = [curve for curve in curves if curve.points]
    width, height = _size(drawn)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="compatcheck-curves" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="curves-title curves-desc">',
        f'<title id="curves-title">{_text(title or _("training curves"))}</title>',
        f'<desc id="curves-desc">{_text(_described(drawn))}</desc>',
        f"<style>{_STYLE}</style>",
        *_plots(drawn),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def embedded(curves: Sequence[Curve], title: str) -> str:
    """The picture for a page that has a style for it and room of its own; empty without curves."""
    drawn = [curve for curve in curves if curve.points]
    if not drawn:
        return ""
    width, height = _size(drawn)
    named = _text(f"{title}: {_described(drawn)}").replace('"', "&quot;")
    head = f'<svg class="curves" viewBox="0 0 {width} {height}" role="img" aria-label="{named}">'
    return "".join((head, *_plots(drawn), "</svg>"))


def _size(drawn: Sequence[Curve]) -> tuple[int, int]:
    return _LEFT + _PLOT_WIDTH + 20, _TOP + len(drawn) * (_PLOT_HEIGHT + _GAP)


def _described(drawn: Sequence[Curve]) -> str:
    shown = [each for curve in drawn for each in (curve, curve.beside) if each]
    text = _("; ").join(f"{_label(curve)}: {_range(curve)}" for curve in shown) or _("nothing was logged")
    onset = next((curve.onset for curve in drawn if curve.onset is not None), None)
    if onset is None:
        return text
    return text + _("; the symptom began at {axis} {step}").format(axis=_axis(drawn[0]), step=f"{onset:g}")


def _plots(drawn: Sequence[Curve]) -> Iterator[str]:
    steps = [step for curve in drawn for step, _ in curve.points]
    ends = (min(steps, default=0.0), max(steps, default=0.0))
    for number, curve in enumerate(drawn):
        yield from _plot(curve, number, *ends)


def _plot(curve: Curve, number: int, first: float, last: float) -> Iterator[str]:
    """One curve on the axis that all of them share."""
    top = _TOP + number * (_PLOT_HEIGHT + _GAP)
    low, high = _bounds(curve)

    def at(step: float) -> float:
        return round(_LEFT + _PLOT_WIDTH * ((step - first) / (last - first) if last > first else 0.5), 1)

    def up(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low) if high > low else 0.5
        return round(top + _PLOT_HEIGHT * (1 - share), 1)

    unit = f" ({curve.unit})" if curve.unit else ""
    title = f"{_label(curve)}, {_label(curve.beside)} - - -" if curve.beside else _label(curve)
    yield f'<text x="{_LEFT}" y="{top - 6}">{_text(title + unit)}</text>'
    yield f'<rect class="frame" x="{_LEFT}" y="{top}" width="{_PLOT_WIDTH}" height="{_PLOT_HEIGHT}"/>'
    for value in dict.fromkeys((high, low)):
        yield f'<text x="{_LEFT - 6}" y="{up(value) + 4}" text-anchor="end">{value:.4g}</text>'
    for step, anchor, label in ((first, "start", f"{_axis(curve)} {first:g}"), (last, "end", f"{last:g}")):
        yield f'<text x="{at(step)}" y="{top + _PLOT_HEIGHT + 14}" text-anchor="{anchor}">{_text(label)}</text>'
    lines = [(curve.points, ""), *([(curve.beside.points, ' stroke-dasharray="6 4"')] if curve.beside else [])]
    for points, dashes in lines:
        for stretch in _finite_stretches(points):
            if len(stretch) == 1:
                yield f'<circle class="dot" cx="{at(stretch[0][0])}" cy="{up(stretch[0][1])}" r="2"/>'
            else:
                yield f'<polyline class="line"{dashes} points="{" ".join(f"{at(x)},{up(y)}" for x, y in stretch)}"/>'
    gone = [step for points, _dashes in lines for step, value in points if not math.isfinite(value)]
    for x in dict.fromkeys(map(at, gone)):
        yield f'<line class="gone" x1="{x}" y1="{top + 2}" x2="{x}" y2="{top + 10}"/>'
    if curve.onset is not None and first <= curve.onset <= last:
        x = at(curve.onset)
        yield f'<line class="onset" x1="{x}" y1="{top}" x2="{x}" y2="{top + _PLOT_HEIGHT}"/>'
        anchor = "end" if x > _LEFT + _PLOT_WIDTH / 2 else "start"
        began = _text(_("began at {step}").format(step=f"{curve.onset:g}"))
        yield f'<text class="onset-label" x="{x}" y="{top - 6}" text-anchor="{anchor}">{began}</text>'


def _finite_stretches(points: Iterable[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    stretch: list[tuple[float, float]] = []
    for step, value in points:
        if math.isfinite(value):
            stretch.append((step, value))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _finite(curve: Curve) -> list[float]:
    return [value for _, value in curve.points if math.isfinite(value)]


def _bounds(curve: Curve) -> tuple[float, float]:
    """The range drawn: that of the finite values, where a few spikes do not flatten all the rest."""
    if curve.bounds is not None:
        return curve.bounds
    values = sorted(_finite(curve)) or [0.0]
    low, high = values[0], values[-1]
    usual = values[min(int(len(values) * 0.98), len(values) - 1)]
    spread = usual - low
    if len(values) >= 50 and spread > 0 and high - usual > 10 * spread:
        high = usual + spread
    return low, high


def _buckets(curve: Curve, first: float, last: float, columns: int) -> list[float | None]:
    """The curve in columns of equal length in steps: the median of each, NaN where a value is not finite.

    A column without points takes what stands before it, unless the curve has few points at all: then it is None.
    """
    gathered: list[list[float]] = [[] for _ in range(columns)]
    for step, value in curve.points:
        gathered[_place(step, first, last, columns)].append(value)
    sparse = len(curve.points) * 2 < columns
    result: list[float | None] = []
    for values in gathered:
        if not values:
            result.append(result[-1] if result and not sparse else None)
        else:
            result.append(median(values) if all(map(math.isfinite, values)) else math.nan)
    return result


def _place(step: float, first: float, last: float, columns: int) -> int:
    if last <= first:
        return 0
    return max(min(int((step - first) / (last - first) * columns), columns - 1), 0)


def _blocks(buckets: Sequence[float | None], bounds: tuple[float, float] | None = None) -> str:
    values = [value for value in buckets if value is not None and math.isfinite(value)]
    low, high = bounds or (min(values, default=0.0), max(values, default=0.0))

    def block(value: float | None) -> str:
        if value is None:
            return " "
        if not math.isfinite(value):
            return _NOT_FINITE
        share = (value - low) / (high - low) if high > low else 0.0
        return _BLOCKS[min(max(int(share * len(_BLOCKS)), 0), len(_BLOCKS) - 1)]

    return "".join(map(block, buckets))


def _range(curve: Curve, not_finite: str = "") -> str:
    values = _finite(curve)
    gone = len(curve.points) - len(values)
    unit = f" {curve.unit}" if curve.unit else ""
    if not values:
        return _("never finite")
    text = _("{first} to {last}").format(first=f"{values[0]:.4g}", last=f"{values[-1]:.4g}") + unit
    return text + (f", {gone} {not_finite or _('not finite')}" if gone else "")


def _label(curve: Curve) -> str:
    return _(_LABELS.get(curve.name, curve.name))


def _axis(curve: Curve) -> str:
    return _(_AXES.get(curve.axis, curve.axis))


def _text(text: str) -> str:
    """XML forbids most control characters, which a log may well hold."""
    return escape("".join(char if char >= " " else " " for char in text), quote=False)
