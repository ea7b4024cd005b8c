"""What probes measured, and which there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from compatcheck.language import comma_list, marked
from compatcheck.language import gettext as _
from compatcheck.report.document import STYLES, Document, rows
from compatcheck.report.shapes import probe_shape
from compatcheck.results.findings import ProbeResult
from compatcheck.terminal.lines import Line

_KINDS = (marked("importing"), marked("compiling"), marked("measuring"))
_NEXT = {
    "fail": marked("next: compatcheck explain {probe} explains the failure, compatcheck check shows what to change"),
    "watch": marked("next: compatcheck probe {probe} --fresh measures again, compatcheck explain {probe} explains it"),
}


class Card(Protocol):
    """What a probe says of itself."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def profile(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def needs(self) -> Mapping[str, str]: ...
    @property
    def asked_by(self) -> tuple[str, ...]: ...


def document(results: Sequence[ProbeResult], *, verbose: bool = False) -> Document:
    """Outcome, probe, seconds and reason of each; ``verbose`` adds what each of them took its time for."""
    width = max((len(each.probe) for each in results), default=0)
    body = (_row(each, width, _times_text(each) if verbose else "") for each in results)
    total = summary(results)
    title = Line(total, "bold", plain=total)
    ending = (title, *(Line(line, "dim", plain=line) for line in next_steps(results)))
    return Document(title, tuple(body), partial(_shape, results), (ending,), page=partial(_page, results))


def _row(each: ProbeResult, width: int, times: str) -> Line:
    plain = f"{each.outcome:<8}{each.probe:<{width}} {each.seconds:6.1f} s  {_(each.why)}{times}"
    return Line(f"{each.probe}, {each.seconds:.1f} s: {_(each.why)}{times}", "", *_margin(each), plain=plain)


def failing(results: Sequence[ProbeResult]) -> Document:
    """A row for each and nothing else."""
    return rows(Line(f"{each.probe}: {_(each.why)}", "", *_margin(each)) for each in results)


def _page(results: Sequence[ProbeResult]) -> Iterator[str | None]:
    from compatcheck.report.pages import _probes

    return _probes.body(results)


def _shape(results: Sequence[ProbeResult]) -> Mapping[str, object]:
    probes = [probe_shape(each) for each in results]
    return {"probes": probes, "seconds": _seconds(results), "times": _times(results)}


def _margin(result: ProbeResult) -> tuple[str, str, int]:
    return result.outcome, STYLES[result.outcome], 8


def _times_text(result: ProbeResult) -> str:
    """What the time went into, in seconds by the kind of work."""
    times = comma_list(f"{_(kind)} {seconds:.1f} s" for kind, seconds in _times([result]).items() if seconds)
    return f" ({times})" if times else ""


def next_steps(results: Sequence[ProbeResult]) -> tuple[str, ...]:
    """What to do next about the first of the worst."""
    wrong = [(outcome, each.probe) for outcome in _NEXT for each in results if each.outcome == outcome]
    return tuple(_(_NEXT[outcome]).format(probe=name) for outcome, name in wrong[:1])


def summary(results: Sequence[ProbeResult]) -> str:
    counts = Counter(result.outcome for result in results)
    counted = comma_list(f"{count} {_(outcome)}" for outcome, count in counts.items())
    times = _times(results)
    spent = sum(times.values())
    shares = (
        comma_list(f"{times[kind] / spent:.0%} {_(kind)}" for kind in _KINDS) if spent else _("nothing measured now")
    )
    text = _("{counts}; {seconds} s in total ({shares})")
    return text.format(counts=counted, seconds=f"{_seconds(results):.1f}", shares=shares)


def _seconds(results: Sequence[ProbeResult]) -> float:
    return round(sum(result.seconds for result in results), 3)


def _times(results: Sequence[ProbeResult]) -> dict[str, float]:
    """Seconds by kind of work over the results that were not remembered."""
    times = [r.measured.get("child", {}).get("times", {}) for r in results if "remembered" not in r.measured]
    return {kind: round(sum(each.get(kind, 0.0) for each in times), 3) for kind in _KINDS}


def document_of_cards(cards: Sequence[Card]) -> Document:
    """Name, profile, typical seconds, title and needs of each probe."""
    width = max((len(each.name) for each in cards), default=0)
    body = (_card_row(each, width) for each in cards)
    return Document(Line(), tuple(body), lambda: {"probes": [_card_shape(each) for each in cards]})


def _card_row(each: Card, width: int) -> Line:
    about = f"{_(each.title)} {_needs(each)}"
    plain = f"{each.name:<{width}} {each.profile:<5} {each.seconds:5.1f} s  {about}"
    return Line(f"{each.profile}, {each.seconds:g} s. {about}", "", each.name, "bold", width + 2, plain=plain)


def _card_shape(each: Card) -> dict[str, object]:
    keys = ("name", "title", "profile", "seconds", "needs", "asked_by")
    return {key: getattr(each, key) for key in keys}


def _needs(each: Card) -> str:
    needs = comma_list(f"{name}{clauses}" for name, clauses in each.needs.items())
    entries = comma_list(each.asked_by)
    asked = " " + _("Used by {entries}.").format(entries=entries) if each.asked_by else ""
    return (_("Needs {packages}.").format(packages=needs) if needs else _("Needs no package.")) + asked
