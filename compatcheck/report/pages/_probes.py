"""What probes measured: one line of all, each error against its bound, and below them each probe on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.language import gettext as _
from compatcheck.language import marked, ngettext
from compatcheck.report.pages import _error_bars
from compatcheck.report.pages._verdict import Verdict, banner, footer
from compatcheck.report.pages.markup import Html, joined, section, tag
from compatcheck.report.subjects import probes as subject
from compatcheck.results.findings import Outcome, ProbeResult

_WORST_FIRST: tuple[Outcome, ...] = ("fail", "crash", "timeout", "watch", "pass", "skip")


def body(results: Sequence[ProbeResult]) -> Iterator[str | None]:
    ordered = sorted(results, key=lambda result: _WORST_FIRST.index(result.outcome))
    yield banner(verdict(results))
    yield section(_("Each probe"), tag("p", _(_READING)), tag("div", _table(ordered), class_="wide"))
    yield section(_("What was measured"), *map(_each, ordered))
    yield footer()


_READING = marked(
    "Each bar is the largest error of a probe on a logarithmic scale, in units of the "
    "expected rounding error. A bar that ends before the first line is healthy. A bar that "
    "ends between the lines is worth watching. A bar that crosses the second line is a fault."
)


def verdict(results: Sequence[ProbeResult]) -> Verdict:
    outcomes = [result.outcome for result in results]
    more = (tag("p", subject.summary(results)), *(tag("p", line) for line in subject.next_steps(results)))
    failed, broken = outcomes.count("fail"), sum(outcome in ("crash", "timeout") for outcome in outcomes)
    ran = failed + outcomes.count("pass") + outcomes.count("watch")
    if failed:
        return Verdict(_("{count} of {total} probes failed here").format(count=failed, total=ran), "bad", more)
    if broken:
        return Verdict(
            _("{count} of {total} probes could not finish").format(count=broken, total=len(results)), "bad", more
        )
    if not ran:
        return Verdict(_("No probe could run"), "may", more)
    if "watch" in outcomes:
        return Verdict(
            _("No probe fails here; {count} worth watching").format(count=outcomes.count("watch")), "may", more
        )
    passed = ngettext("The probe passes", "All {count} probes that ran pass", ran).format(count=ran)
    return Verdict(passed, "good", more)


def sign(outcome: Outcome) -> Html:
    kind, symbol = _error_bars.OUTCOME_SIGNS[outcome]
    return tag("span", symbol, class_=f"sign {kind}-sign", aria_hidden="true")


def _table(results: Sequence[ProbeResult]) -> Html:
    heads = [tag("th", words, scope="col") for words in (_("Probe"), _("Outcome"))]
    rows = [
        tag(
            "tr",
            tag("th", tag("code", result.probe), scope="row"),
            tag("td", sign(result.outcome), " ", _(result.outcome), class_="number"),
            _error_bars.error_cell(_error_bars.worst(_error_bars.bars_of(result.measured))),
        )
        for result in results
    ]
    head = tag("thead", tag("tr", *heads, _error_bars.head()))
    return tag("table", tag("caption", _("The largest error of each probe")), head, tag("tbody", *rows), class_="bars")


def _each(result: ProbeResult) -> Html:
    charts = _error_bars.details(result)
    name = joined(
        (sign(result.outcome), " ", tag("code", result.probe), f" {_(result.outcome)}, {result.seconds:.1f} s")
    )
    is_open = result.outcome not in ("pass", "skip")
    return tag("details", tag("summary", name), tag("p", _(result.why)), charts, open=is_open)
