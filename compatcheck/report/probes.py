"""What probes run by hand have to say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from compatcheck.report.json import SCHEMA_VERSION, finite, probe_shape
from compatcheck.results.findings import Outcome, ProbeResult
from compatcheck.terminal.lines import Line, unfolded, written
from compatcheck.terminal.screen import PLAIN, Screen

_STYLES: dict[Outcome, str] = {
    "pass": "green",
    "watch": "yellow",
    "fail": "bold red",
    "skip": "dim",
    "crash": "bold red",
    "timeout": "bold red",
}
_KINDS = ("importing", "compiling", "measuring")
_NEXT = {
    "fail": "next: compatcheck explain {0} says what that means, compatcheck check what to change",
    "watch": "next: compatcheck probe {0} --fresh measures again, compatcheck explain {0} says what it means",
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


def render(results: Sequence[ProbeResult], format_name: str, screen: Screen = PLAIN, *, verbose: bool = False) -> str:
    """Outcome, probe, seconds and reason of each, and a line on all of them; folded to a terminal.

    ``verbose`` adds what each of them took its time for.
    """
    if format_name == "html":
        from compatcheck.report import html

        return html.render_probes(results)
    if format_name == "json":
        shape = {"probes": [probe_shape(each) for each in results], "seconds": _seconds(results)}
        return _json({**shape, "times": _times(results)})
    if not screen.is_terminal:
        width = max((len(each.probe) for each in results), default=0)
        lines = (
            f"{each.outcome:<8}{each.probe:<{width}} {each.seconds:6.1f} s  {each.why}{_spent(each, verbose)}\n"
            for each in results
        )
        return "".join(lines) + "".join(f"{line}\n" for line in (summary(results), *next_steps(results)))
    told = (
        Line(f"{each.probe}, {each.seconds:.1f} s: {each.why}{_spent(each, verbose)}", "", *_margin(each))
        for each in results
    )
    advice = (Line(line, "dim") for line in next_steps(results))
    return written((*told, Line(summary(results), "bold"), *advice), screen)


def render_failing(results: Sequence[ProbeResult], screen: Screen = PLAIN) -> str:
    """A row for each and nothing else."""
    return written((Line(f"{each.probe}: {each.why}", "", *_margin(each)) for each in results), unfolded(screen))


def _margin(result: ProbeResult) -> tuple[str, str, int]:
    return result.outcome, _STYLES[result.outcome], 8


def _spent(result: ProbeResult, verbose: bool) -> str:
    """What the time went into, in seconds by the kind of work."""
    times = _times([result]) if verbose else {}
    told = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in times.items() if seconds)
    return f" ({told})" if told else ""


def next_steps(results: Sequence[ProbeResult]) -> tuple[str, ...]:
    """What to do next about the first of the worst."""
    wrong = [(outcome, each.probe) for outcome in _NEXT for each in results if each.outcome == outcome]
    return tuple(_NEXT[outcome].format(name) for outcome, name in wrong[:1])


def summary(results: Sequence[ProbeResult]) -> str:
    counts = Counter(result.outcome for result in results)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    times = _times(results)
    spent = sum(times.values())
    shares = ", ".join(f"{times[kind] / spent:.0%} {kind}" for kind in _KINDS) if spent else "nothing measured now"
    return f"{counted}; {_seconds(results):.1f} s in all ({shares})"


def _seconds(results: Sequence[ProbeResult]) -> float:
    return round(sum(result.seconds for result in results), 3)


def _times(results: Sequence[ProbeResult]) -> dict[str, float]:
    """Seconds by kind of work over the results that were not remembered."""
    told = [r.measured.get("child", {}).get("times", {}) for r in results if "remembered" not in r.measured]
    return {kind: round(sum(times.get(kind, 0.0) for times in told), 3) for kind in _KINDS}


def render_list(cards: Sequence[Card], format_name: str, screen: Screen = PLAIN) -> str:
    """Name, profile, typical seconds, title and needs of each probe; folded to a terminal."""
    if format_name == "json":
        return _json({"probes": [_card_shape(each) for each in cards]})
    width = max((len(each.name) for each in cards), default=0)
    if screen.is_terminal:
        told = (f"{each.profile}, {each.seconds:g} s. {each.title} {_needs(each)}" for each in cards)
        return written((Line(text, "", each.name, "bold", width + 2) for text, each in zip(told, cards)), screen)
    return "".join(
        f"{each.name:<{width}} {each.profile:<5} {each.seconds:5.1f} s  {each.title} {_needs(each)}\n" for each in cards
    )


def _card_shape(each: Card) -> dict[str, Any]:
    keys = ("name", "title", "profile", "seconds", "needs", "asked_by")
    return {key: getattr(each, key) for key in keys}


def _needs(each: Card) -> str:
    needs = ", ".join(f"{name}{clauses}" for name, clauses in each.needs.items()) or "nothing"
    return f"Needs {needs}." + (f" Asked for by {', '.join(each.asked_by)}." if each.asked_by else "")


def _json(shape: Mapping[str, Any]) -> str:
    return json.dumps(finite({"schema_version": SCHEMA_VERSION, **shape}), indent=2, ensure_ascii=False) + "\n"
