"""An entry as a page for people, and entries as a list."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

WIDTH = 88


def render(entry: Mapping[str, Any], probe: Sequence[str] = ()) -> str:
    """The page of one entry, given as the plain values of its file; ``probe`` describes the probe it names."""
    return "\n".join(_page(entry, probe)) + "\n"


def render_probe(name: str, described: tuple[str, str]) -> str:
    """The page of one probe: its title, and what is measured, within which bound, and what a failure means."""
    title, body = described
    rows = (row for paragraph in body.split("\n\n") for row in ("", *_wrapped(paragraph, "")))
    return "\n".join((f"{name}  {title}", *rows)) + "\n"


def render_list(entries: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{e['id']}  {e['impact']:<12}  {e['confidence']:<14}  {e['title']}\n" for e in entries)


def _page(entry: Mapping[str, Any], probe: Sequence[str]) -> Iterator[str]:
    yield f"{entry['id']}  {entry['title']}"
    yield f"{entry['impact']}, {entry['confidence']}; published {entry['published']}, reviewed {entry['reviewed']}"
    if entry.get("withdrawn"):
        yield f"WITHDRAWN on {entry['withdrawn']['on']}: {entry['withdrawn']['reason']}"
    yield from _section("What you see", [entry["summary"]])
    yield from _section("Why", [entry["mechanism"]])
    yield from _section("Applies when", _conditions(entry["affected"]))
    yield from _section("What to do, the best first", map(_remedy, entry["remedies"]))
    yield from _section("Advice that misleads", entry.get("misleading", ()))
    if probe:
        yield from _section(f"Probe {entry['probe']['name']}", probe[:1])
    yield from ("", "Evidence")
    for evidence in entry["evidence"]:
        note = f": {evidence['note']}" if evidence.get("note") else ""
        yield f"  {evidence['url']}"
        yield from _wrapped(f"{evidence['kind']}, for {', '.join(evidence['supports'])}{note}", "    ")


def _section(heading: str, paragraphs: Iterable[str]) -> Iterator[str]:
    texts = list(paragraphs)
    if not texts:
        return
    yield from ("", heading)
    for text in texts:
        yield from _wrapped(text, "  ", "- " if len(texts) > 1 else "")


def _wrapped(text: str, indent: str, bullet: str = "") -> list[str]:
    flat = " ".join(text.split())
    return textwrap.wrap(
        flat,
        WIDTH,
        initial_indent=indent + bullet,
        subsequent_indent=indent + " " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _conditions(tables: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for table in tables:
        yield " and ".join(condition_in_words(path, condition) for path, condition in table.items())


def condition_in_words(path: str, condition: Any) -> str:
    name = path.removeprefix("distributions.")
    if isinstance(condition, list):
        return f"{name} is {' or '.join(map(str, condition))}"
    if condition in ("present", "absent") or (isinstance(condition, str) and condition[:1] in "<>="):
        return f"{name} {condition}"
    return f"{name} = {str(condition).lower() if isinstance(condition, bool) else condition}"


def _remedy(remedy: Mapping[str, Any]) -> str:
    actions = [f"{name}{specifier}" for name, specifier in remedy.get("pins", {}).items()]
    actions += [f"{path} = {value}" for path, value in remedy.get("config", {}).items()]
    actions += [f"{name}={value}" for name, value in remedy.get("environ", {}).items()]
    actions += [remedy["code"]] if remedy.get("code") else []
    return f"{', '.join(actions) or remedy.get('kind')}: {remedy['why']}"
