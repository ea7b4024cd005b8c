"""The page of one entry."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, count
from typing import Any

from compatcheck.environment.paths import distribution_of
from compatcheck.report.pages.markup import Html, impact_mark, joined, link, listed, section, tag
from compatcheck.report.pages.site._frame import page
from compatcheck.report.pages.site._record import record_page_part
from compatcheck.report.pages.site._release_bars import bar
from compatcheck.report.pages.site._source import Entry, Source
from compatcheck.report.subjects.explanation import condition_in_words

_MOST_RELATED = 6
_KINDS = {
    "upstream-fix": "fix upstream",
    "maintainer": "maintainer",
    "source": "source code",
    "documentation": "documentation",
    "report": "report",
    "reproduction": "measured here",
}


def render(entry: Entry, related: Iterable[Entry], source: Source, footer: str) -> str:
    """The page of an entry, to lie in a folder below the site's own."""
    return page(
        f"{entry['id']} {entry['title']}",
        tag("h1", entry["title"]),
        _facts(entry),
        section("What you see", tag("p", entry["summary"].strip()), _error_lines(entry)),
        section("Why", tag("p", entry["mechanism"].strip())),
        section("What to do, best first", listed(map(_remedy, entry["remedies"]), "ol", class_="remedies")),
        section("Misleading advice", listed(entry.get("misleading", ()))),
        section("Who is affected", *_affected(entry, source)),
        section("Evidence", listed(_evidence(each, source) for each in entry["evidence"])),
        section("Reproduction", *_reproduction(entry, source)),
        section("Related entries", listed(map(_related, related))),
        root="../",
        footer=footer,
    )


def render_withdrawn(entry: Entry, footer: str) -> str:
    """The page that stays of an entry that is withdrawn, to lie where the entry's own did."""
    withdrawn = entry["withdrawn"]
    return page(
        f"{entry['id']} {entry['title']}",
        tag("h1", entry["title"]),
        tag("p", tag("strong", f"Withdrawn on {withdrawn['on']}: "), withdrawn["reason"], class_="withdrawn"),
        section("Replaced by", listed(link(f"{each}.html", each) for each in withdrawn.get("successors", ()))),
        root="../",
        footer=footer,
    )


def _facts(entry: Entry) -> Html:
    rows = [
        ("Entry", tag("code", entry["id"])),
        ("Impact", impact_mark(entry["impact"])),
        ("Confidence", Html(tag("span", entry["confidence"]))),
        ("Packages", Html(tag("span", ", ".join(entry["packages"])))),
        ("Published", tag("time", entry["published"])),
        ("Reviewed", tag("time", entry["reviewed"])),
    ]
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")


def _error_lines(entry: Entry) -> Html:
    lines = [tag("pre", tag("code", pattern["example"])) for pattern in entry.get("error_patterns", ())]
    return joined((tag("p", "In a log or traceback:"), *lines)) if lines else Html()


def _affected(entry: Entry, source: Source) -> Iterator[Html]:
    tables = entry["affected"]
    keys = (f"range-{number}" for number in count(1))
    if len(tables) > 1:
        yield tag("p", f"Any one of these {len(tables)} cases; within a case every condition holds.")
    for number, table in enumerate(tables, 1):
        yield tag("h3", f"Case {number}") if len(tables) > 1 else Html()
        yield listed(tag("code", condition_in_words(path, condition)) for path, condition in table.items())
        for path, condition in table.items():
            name = distribution_of(path)
            if name and isinstance(condition, str) and condition[:1] in "<>=":
                yield bar(name, condition, source.history(name), source.within, next(keys))


def _remedy(remedy: Mapping[str, Any]) -> Html:
    lines = [f"{name}{specifier}" for name, specifier in remedy.get("pins", {}).items()]
    lines += [f"export {name}={value}" for name, value in remedy.get("environ", {}).items()]
    lines += [remedy["code"]] if remedy.get("code") else []
    settings = (f"Set {path} to {json.dumps(value)}." for path, value in remedy.get("config", {}).items())
    words = [*settings, *filter(None, [remedy.get("action")])]
    copied = tag("pre", tag("code", "\n".join(lines)), class_="copied") if lines else None
    return joined((copied, *(tag("p", each, class_="step") for each in words), tag("p", remedy["why"])))


def _evidence(evidence: Mapping[str, Any], source: Source) -> Html:
    url = evidence["url"]
    kind = f"{_KINDS[evidence['kind']]}, for {', '.join(evidence['supports'])}"
    note = f": {evidence['note']}" if evidence.get("note") else ""
    if url.startswith("https://"):
        where = link(url, url.removeprefix("https://"))
    else:
        where = link(f"../{url}", url) if url in source.records else tag("code", f"matrix/{url}")
    return joined((where, tag("br"), tag("small", f"{kind}{note}")))


def _reproduction(entry: Entry, source: Source) -> Iterator[Html]:
    if entry.get("probe"):
        name = entry["probe"]["name"]
        measured = source.probes.get(name)
        yield tag("p", "Probe ", tag("code", name), f": {measured}" if measured else "")
    if entry.get("reproduce"):
        built = entry["reproduce"]
        yield tag("p", f"Two environments with Python {built['python']}, in which the probe must fail and pass:")
        yield listed(joined((tag("b", side), ": ", tag("code", " ".join(built[side])))) for side in ("bad", "good"))
        yield tag("pre", tag("code", f"compatcheck matrix reproduce {entry['id']}"), class_="copied")
    cited = [each["url"] for each in entry["evidence"] if each["url"].startswith("records/")]
    for url in dict.fromkeys(cited):
        yield record_page_part(url, source.records.get(url))


def _related(other: Entry) -> Html:
    described = tag("small", f"{other['id']}, {other['impact']}")
    return joined((link(f"{other['id']}.html", other["title"]), " ", described))


def related_entries(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """For each entry those that share most of its packages, of the same impact first."""
    order = sorted(range(len(entries)), key=lambda at: str(entries[at]["id"]))
    rank = {at: number for number, at in enumerate(order)}
    by_package: dict[str, list[int]] = {}
    for at, entry in enumerate(entries):
        for name in set(entry["packages"]):
            by_package.setdefault(name, []).append(at)
    for at, entry in enumerate(entries):
        shared = Counter(chain.from_iterable(by_package[name] for name in set(entry["packages"])))
        del shared[at]
        keys = ((-count, entries[near]["impact"] != entry["impact"], rank[near]) for near, count in shared.items())
        yield [entries[order[number]] for _, _, number in nsmallest(_MOST_RELATED, keys)]
