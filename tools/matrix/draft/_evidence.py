"""From a filled-in form to the parts of an entry: nothing is claimed beyond what the reporter says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment.paths import flatten
from compatcheck.environment.vocabulary import kind_of
from compatcheck.packages.names import normalised
from compatcheck.results.logs import ERROR_MARKS
from tools.matrix.draft._issue import Issue
from tools.matrix.draft._versions import Range, range_of, versions_of

TODO = "TODO"
_CARRIED = ("torch", "transformers", "accelerate", "peft", "trl", "deepspeed", "bitsandbytes", "flash-attn", "numpy")
_URL = re.compile(r"https://[^\s<>\"'`)\]]+")
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_MOST_LINKS = 20
_LONGEST_SUMMARY = 700
_LONGEST_PATTERN = 160
_MOST_HINTS = 14


class Draft(NamedTuple):
    """The parts of an entry, as plain values; ``hints`` are conditions that may belong into the affected table.

    ``open`` says in words what is still to be filled in.
    """

    package: str
    title: str
    impact: str
    summary: str
    published: date
    range: Range
    hints: Mapping[str, Any]
    remedies: tuple[Mapping[str, Any], ...]
    error: tuple[str, str] | None
    urls: tuple[str, ...]
    example: Mapping[str, Any] | None
    open: tuple[str, ...]


def drafted(issue: Issue, package: str, title: str | None, today: date) -> Draft:
    fields, known = issue.fields, issue.environment.facts
    installed = known.get("distributions") or {}
    others = {*installed, *_CARRIED, "python", "cuda"} - {package}
    now = versions_of(installed.get(package) or "", package, ())
    works = versions_of(fields["works"], package, others)
    span = range_of(versions_of(fields["fails"], package, others), works, now[0] if now else None)
    stack = _stack(installed, package, " ".join(fields[name] for name in ("title", "summary", "error", "helps")))
    hints = dict(_hints(known, stack))
    urls = tuple(dict.fromkeys(url.rstrip(".,;:") for url in _URL.findall(f"{issue.url} {fields['evidence']}")))
    impact = re.split(r"[:\s]", fields["impact"], maxsplit=1)[0]
    impact = impact if impact in matrix.impacts() else TODO
    parts = {"title": _line(title or fields["title"], 100), "summary": _line(fields["summary"], _LONGEST_SUMMARY)}
    return Draft(
        package,
        parts["title"] or f"{TODO}: the fault in one line",
        impact,
        parts["summary"] or f"{TODO}: what the user sees",
        today,
        span,
        hints,
        tuple(_remedies(package, span, fields["helps"])),
        _error(fields["error"]),
        urls[:_MOST_LINKS],
        _example(package, span, known, stack, hints),
        tuple(_open(parts, impact, span, fields, urls)),
    )


def _line(text: str, longest: int) -> str:
    """The text in one line, cut at a word where it is too long."""
    joined = " ".join(text.split())
    return joined if len(joined) <= longest else joined[: longest - 1].rsplit(" ", 1)[0][: longest - 1] + "…"


def _open(
    parts: Mapping[str, str], impact: str, span: Range, fields: Mapping[str, str], urls: tuple[str, ...]
) -> Iterator[str]:
    yield from (name for name, text in parts.items() if not text)
    if impact == TODO:
        yield "impact"
    yield "mechanism: why it happens"
    yield from (f"affected: {told}" for told in span.open)
    if not span.above and not fields["helps"]:
        yield "remedies: what helps"
    if not urls:
        yield "evidence: a public source"


def _hints(known: Mapping[str, Any], stack: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """What the reporter's environment says that a condition may speak of: versions last."""
    gpus = known.get("gpus") or ()
    facts = {**{name: known.get(name) for name in ("training", "model", "cuda")}, "gpu": gpus[0] if gpus else {}}
    paths = [(path, value) for path, value in flatten(facts) if value not in (None, {})]
    paths = paths[:_MOST_HINTS] + [(f"distributions.{name}", version) for name, version in stack.items()]
    for path, value in paths:
        kind = kind_of(path)
        if kind == "version" and isinstance(value, str) and re.match(r"\d", value):
            yield path, f"=={value.partition('+')[0]}"
        elif kind in ("text", "flag", "number", "labels") and isinstance(value, (str, bool, int, float, list)):
            yield path, [value] if kind == "text" else value


def _stack(installed: Mapping[str, str | None], package: str, told: str) -> dict[str, str]:
    """The versions beside the package at fault: of what the reporter speaks of, and of what training rests on."""
    words = {normalised(word.strip(".")) for word in re.findall(r"[A-Za-z0-9][\w.-]*", told)}
    spoken = [name for name in installed if name in words][:_MOST_HINTS]
    names = dict.fromkeys([*spoken, *_CARRIED])
    return {name: version for name in names if name != package and (version := installed.get(name))}


def _remedies(package: str, span: Range, helps: str) -> Iterator[Mapping[str, Any]]:
    if span.above:
        yield {"pins": {package: f">={span.above}"}, "why": f"reported to work with {span.above}"}
    elif span.below:
        yield {"pins": {package: f"<={span.below}"}, "why": f"reported to work with {span.below}"}
    if helps:
        yield {"action": _line(helps, _LONGEST_SUMMARY), "why": "the reporter says that it helps"}
    elif not (span.above or span.below):
        yield {"action": f"{TODO}: what helps", "why": f"{TODO}: why it helps"}


def _error(text: str) -> tuple[str, str] | None:
    """The last line that reads as an error, and an expression that finds just it."""
    lines = [line.strip() for line in text.splitlines() if any(mark in line for mark in ERROR_MARKS)]
    told = next((line for line in reversed(lines) if len(line) >= 8), "")
    line = told[:_LONGEST_PATTERN]
    return (_SPECIAL.sub(r"\\\g<0>", line), told[: 2 * _LONGEST_PATTERN]) if line else None


def _example(
    package: str, span: Range, known: Mapping[str, Any], stack: Mapping[str, str], hints: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The reporter's environment as far as the entry may speak of it; the linter makes its neighbours."""
    if not span.bad:
        return None
    shown = {key: known[key] for key in ("python", "cuda", "training", "model") if known.get(key)}
    shown |= {"gpus": known["gpus"][:1]} if known.get("gpus") else {}
    told = {key: value for key, value in shown.items() if key == "python" or any(h.startswith(key[:3]) for h in hints)}
    mine = (known.get("distributions") or {}).get(package) or span.bad
    bad = mine if Version(mine.partition("+")[0]) == Version(span.bad) else span.bad
    return {**told, "distributions": {package: bad, **stack}}
