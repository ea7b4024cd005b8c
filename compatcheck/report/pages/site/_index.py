"""The page of all entries, and what its search reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compatcheck.report.pages.markup import Html, impact_mark, in_script, link, tag
from compatcheck.report.pages.site._frame import page
from compatcheck.report.pages.site._scenarios import GPUS
from compatcheck.report.pages.site._source import CONFIDENCES, IMPACTS, Entry, Source

_SORTS = (("published", "newest first"), ("impact", "worst impact first"), ("id", "by id"))


def render(source: Source, footer: str) -> str:
    shown = sorted(source.entries, key=lambda entry: (str(entry["published"]), entry["id"]), reverse=True)
    possible = {gpu.label: source.suspected(gpu.facts) for gpu in GPUS}
    return page(
        "Entries",
        tag("h1", "Combinations that break language-model training"),
        tag("p", "Find an entry by words, or paste the lines of an error.", class_="lead"),
        _controls(shown),
        tag("p", f"{len(shown)} entries", id="count", aria_live="polite", role="status"),
        tag("ol", *(_card(entry, possible) for entry in shown), id="entries", class_="entries"),
        current="index.html",
        footer=footer,
        scripts=("search.js",),
    )


def search_data(source: Source) -> str:
    """A script with what the search reads beyond the text of the page, by id.

    That is words, and for each error line the expression and its flags as a browser reads them (empty where it
    cannot), and a text that stands in every match in some letter case.
    """
    held = {
        entry["id"]: [
            _words(entry),
            [(*js_regex(regex), literal) for regex, literal in source.patterns(entry["id"])],
        ]
        for entry in source.entries
    }
    return f"window.compatcheckSearch = {in_script(held)};\n"


def _controls(entries: Sequence[Entry]) -> Html:
    packages = Counter(name for entry in entries for name in entry["packages"])
    most = sorted(packages, key=lambda name: (-packages[name], name))
    return tag(
        "form",
        tag(
            "div",
            tag("label", "Search", for_="q"),
            tag("textarea", id="q", name="q", rows=1, autocomplete="off", spellcheck="false", maxlength=4000),
            class_="wide-control",
        ),
        _choice("package", "Package", [(name, f"{name} ({packages[name]})") for name in most]),
        _choice("impact", "Impact", _present(entries, "impact", IMPACTS)),
        _choice("gpu", "Affected hardware", [(gpu.label, gpu.label) for gpu in GPUS]),
        _choice("confidence", "Confidence", _present(entries, "confidence", CONFIDENCES)),
        _choice("sort", "Order", _SORTS, everything=None),
        tag("button", "Clear", type="reset"),
        id="filter",
        class_="controls needs-script",
        role="search",
    )


def _present(entries: Iterable[Entry], field: str, order: Iterable[str]) -> list[tuple[str, str]]:
    counted = Counter(entry[field] for entry in entries)
    return [(value, f"{value} ({counted[value]})") for value in order if counted[value]]


def _choice(name: str, words: str, options: Iterable[tuple[str, str]], everything: str | None = "all") -> Html:
    rows = [*([("", everything)] if everything else []), *options]
    control = tag("select", *(tag("option", label, value=value) for value, label in rows), id=name, name=name)
    return tag("div", tag("label", words, for_=name), control)


def _card(entry: Entry, possible: Mapping[str, set[str]]) -> Html:
    packages = entry["packages"]
    gpus = [label for label, ids in possible.items() if entry["id"] in ids]
    return tag(
        "li",
        tag("h2", link(f"entries/{entry['id']}.html", entry["title"])),
        tag(
            "p",
            impact_mark(entry["impact"]),
            f" {entry['confidence']}, {', '.join(packages)}, ",
            tag("time", entry["published"]),
            " ",
            tag("code", entry["id"]),
            class_="meta",
        ),
        tag("p", entry["summary"].strip()),
        data_id=entry["id"],
        data_impact=entry["impact"],
        data_confidence=entry["confidence"],
        data_packages="|".join(packages),
        data_gpus="|".join(gpus) if len(gpus) < len(possible) else None,
        data_published=entry["published"],
    )


def _words(entry: Entry) -> str:
    lines = [pattern["example"] for pattern in entry.get("error_patterns", ())]
    return " ".join((entry["mechanism"], *entry.get("symptoms", ()), *lines))


def js_regex(regex: str) -> tuple[str, str]:
    """A safe expression of ours in the syntax of browsers, and its flags; empty where the two part ways."""
    flags = ""
    leading = re.match(r"\(\?([ims]+)\)", regex)
    if leading:
        flags, regex = leading[1], regex[leading.end() :]
    text = "".join(_translated(regex))
    unescaped = re.sub(r"\\.", "_", text, flags=re.DOTALL)
    foreign = re.search(r"\(\?[^:=!<]|\[\^?\]|[*+?}]\+", unescaped)
    return ("", "") if foreign else (text, flags)


def _translated(regex: str) -> Iterator[str]:
    for part in re.findall(r"\\.|\{,\d+\}|.", regex, re.DOTALL):
        if part in (r"\A", r"\Z"):
            yield "^" if part == r"\A" else "$"
        elif part.startswith("{,"):
            yield "{0" + part[1:]
        else:
            yield part
