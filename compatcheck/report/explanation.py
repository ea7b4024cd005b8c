"""An entry or a probe as a page for people, and entries as a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compatcheck._terminal import PLAIN, Screen
from compatcheck.report._lines import Line, unfolded, written

WIDTH = 88
_KINDS = {"upstream-fix": "the fix upstream", "maintainer": "a maintainer", "reproduction": "reproduced"}
_PARTS = {"affected": "when it applies", "mechanism": "why", "summary": "what you see", "misleading": "bad advice"}


def render(entry: Mapping[str, Any], probe: Sequence[str] = (), screen: Screen = PLAIN) -> str:
    """The page of one entry, given as the plain values of its file; ``probe`` describes the probe it names."""
    return written(_page(entry, probe), _fitted(screen))


def render_probe(name: str, described: tuple[str, str], screen: Screen = PLAIN) -> str:
    """The page of one probe: its title, and what is measured, within which bound, and what a failure means."""
    title, body = described
    lines = [Line(title, "bold", f"{name}  ", "bold")]
    for paragraph in body.split("\n\n"):
        lines += [Line(), Line(paragraph)]
    return written(lines[:1], unfolded(screen)) + written(lines[1:], _fitted(screen))


def render_list(entries: Iterable[Mapping[str, Any]], screen: Screen = PLAIN) -> str:
    """A row an entry; on a terminal folded to it."""
    if not screen.is_terminal:
        return "".join(f"{e['id']}  {e['impact']:<12}  {e['confidence']:<14}  {e['title']}\n" for e in entries)
    return written(
        (Line(e["title"], "", f"{e['id']}  {e['impact']:<12}", "bold", 28, ((e["id"], _source(e)),)) for e in entries),
        screen,
    )


def _source(entry: Mapping[str, Any]) -> str:
    """Where the entry can be looked at first."""
    return next((each["url"] for each in entry["evidence"] if each["url"].startswith("http")), "")


def _fitted(screen: Screen) -> Screen:
    """The screen, no wider than a page is read easily."""
    return screen._replace(width=min(screen.width, WIDTH))


def _page(entry: Mapping[str, Any], probe: Sequence[str]) -> Iterator[Line]:
    yield Line(entry["title"], "bold", entry["id"], "bold", 14)
    yield Line(
        f"{entry['impact']}, {entry['confidence']}; published {entry['published']}, reviewed {entry['reviewed']}", "dim"
    )
    if entry.get("withdrawn"):
        yield Line(f"WITHDRAWN on {entry['withdrawn']['on']}: {entry['withdrawn']['reason']}", "bold yellow")
    yield from _section("What you see", [entry["summary"]])
    yield from _section("Why", [entry["mechanism"]])
    yield from _section("Error lines that it explains", [each["example"] for each in entry.get("error_patterns", ())])
    yield from _conditions(entry["affected"])
    yield from _ways_out(entry["remedies"])
    yield from _section("Advice that misleads", entry.get("misleading", ()))
    if probe:
        yield from _section(f"Probe {entry['probe']['name']}", probe[:1])
    yield from _evidence(entry["evidence"])
    yield from _commands(entry, probe)


def _section(heading: str, paragraphs: Iterable[str]) -> Iterator[Line]:
    texts = list(paragraphs)
    if not texts:
        return
    yield from (Line(), Line(heading, "bold"))
    for text in texts:
        mark = "" if len(texts) == 1 else "- "
        yield Line(text, head=f"  {mark}", indent=2 + len(mark))


def _conditions(tables: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """What must hold, each condition by itself: all of one table."""
    for number, table in enumerate(tables):
        heading = "Applies when" if not number else "or when"
        yield from (Line(), Line(heading, "bold"))
        yield from (Line(condition_in_words(path, condition), indent=2) for path, condition in table.items())


def condition_in_words(path: str, condition: Any) -> str:
    name = path.removeprefix("distributions.")
    if isinstance(condition, list):
        return f"{name} is {' or '.join(map(str, condition))}"
    if condition in ("present", "absent") or (isinstance(condition, str) and condition[:1] in "<>="):
        return f"{name} {condition}"
    return f"{name} = {str(condition).lower() if isinstance(condition, bool) else condition}"


def _ways_out(remedies: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """What can be done, in a row of its own to be copied, and below it why."""
    yield from (Line(), Line("What to do, the best first", "bold"))
    for number, remedy in enumerate(remedies, 1):
        yield Line(_action(remedy), "green", f"  {number}. ", "", 5)
        yield Line(remedy["why"], indent=5)


def _action(remedy: Mapping[str, Any]) -> str:
    actions = [f"{name}{specifier}" for name, specifier in remedy.get("pins", {}).items()]
    actions += [f"{path} = {value}" for path, value in remedy.get("config", {}).items()]
    actions += [f"{name}={value}" for name, value in remedy.get("environ", {}).items()]
    actions += [remedy["code"]] if remedy.get("code") else []
    return ", ".join(actions) or str(remedy.get("kind"))


def _evidence(evidence: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """Each source with what it bears out."""
    yield from (Line(), Line("Evidence", "bold"))
    for each in evidence:
        note = f": {each['note']}" if each.get("note") else ""
        parts = ", ".join(map(_part, each["supports"]))
        yield Line(each["url"], indent=2)
        yield Line(f"{_KINDS.get(each['kind'], each['kind'])}, on {parts}{note}", "dim", indent=4)


def _part(path: str) -> str:
    """A part of the entry by the name that it has on the page."""
    name, _, number = path.partition(".")
    return f"way out {number}" if name == "remedies" and number else _PARTS.get(path, path)


def _commands(entry: Mapping[str, Any], probe: Sequence[str]) -> Iterator[Line]:
    """What can be run to see for oneself."""
    commands = [f"compatcheck explain {entry['probe']['name']}: what the probe measures"] if probe else []
    if probe and entry.get("reproduce"):
        commands.append(f"compatcheck matrix reproduce {entry['id']}: where it fails, and where it passes")
    yield from _section("See for yourself", commands)
