"""What of the matrix is due for a new look: for a person, for scripts, and for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator

from compatcheck.report.json import SCHEMA_VERSION
from compatcheck.terminal.lines import Line, written
from compatcheck.terminal.screen import PLAIN, Screen
from tools.matrix.values import Watched

_TITLES = {
    "range": "ranges that newer releases fall into, or just beyond",
    "table": "tables that miss a release",
    "cap": "advice that newer metadata forbids",
}


def render(watched: Watched, format_name: str, screen: Screen = PLAIN) -> str:
    """The result as ``text``, ``json`` or ``markdown``."""
    if format_name == "json":
        shape = {
            "schema_version": SCHEMA_VERSION,
            "address": watched.address,
            "asked": list(watched.asked),
            "due": [each._asdict() for each in watched.due],
            "unknown": dict(watched.unknown),
        }
        return json.dumps(shape, indent=2, ensure_ascii=False) + "\n"
    if format_name == "markdown":
        return "\n".join(_markdown(watched)) + "\n"
    return written(_lines(watched), screen)


def _lines(watched: Watched) -> Iterator[Line]:
    for kind, title in _TITLES.items():
        found = [each for each in watched.due if each.kind == kind]
        if found:
            yield Line(title, "bold")
        for each in found:
            yield Line(each.why, "", f"  {each.subject}", "yellow", 26)
    if watched.unknown:
        yield Line("not known", "bold")
    for name, why in watched.unknown.items():
        yield Line(f"{name}: {why}", "", "", "", 2)
    yield Line(_summary(watched), "bold yellow" if watched.due else "bold green")


def _markdown(watched: Watched) -> Iterator[str]:
    yield _summary(watched)
    for kind, title in _TITLES.items():
        found = [each for each in watched.due if each.kind == kind]
        if found:
            yield from ("", f"### {title[0].upper()}{title[1:]}", "")
        yield from (f"- [ ] `{each.subject}` {each.why}" for each in found)
    if watched.unknown:
        yield from ("", "### Not known", "")
    yield from (f"- `{name}` {why}" for name, why in watched.unknown.items())


def _summary(watched: Watched) -> str:
    due = f"{len(watched.due)} to look at again" if watched.due else "nothing is due"
    unknown = f", {len(watched.unknown)} not known" if watched.unknown else ""
    return f"{len(watched.asked)} packages asked for at {watched.address}: {due}{unknown}"
