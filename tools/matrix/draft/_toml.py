"""A draft as the text of an entry's file. What the reporter wrote stands in strings and never breaks out of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.matrix.draft._evidence import TODO, Draft

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def text(draft: Draft, entry_id: str) -> str:
    return "\n".join(_lines(draft, entry_id)) + "\n"


def _lines(draft: Draft, entry_id: str) -> Iterator[str]:
    yield "# A draft. Fill in what is marked TODO, hold every line against its source, and drop these comments:"
    yield "# matrix/README.md says how, `compatcheck matrix lint` what is missing."
    yield f"id = {value(entry_id)}"
    for name in ("title", "impact"):
        yield f"{name} = {value(getattr(draft, name))}"
    yield 'confidence = "reported"'
    yield f"summary = {value(draft.summary)}"
    yield f'mechanism = "{TODO}: why it happens"'
    yield f"published = {draft.published.isoformat()}  # the day of the first public report or fix"
    yield f"reviewed = {draft.published.isoformat()}"
    yield ""
    yield "[[affected]]"
    yield from (f"# {TODO}: {each}" for each in draft.range.open)
    yield f"distributions.{_key(draft.package)} = {value(draft.range.text or TODO)}"
    if draft.hints:
        yield "# The report also says this. Keep what the fault needs, with an example that shows it; drop the rest."
    yield from (f"# {_path(path)} = {value(condition)}" for path, condition in draft.hints.items())
    for remedy in draft.remedies:
        yield from ("", "[[remedies]]", *(f"{key} = {value(each)}" for key, each in remedy.items()))
    if draft.error:
        yield from ("", "[[error_patterns]]", f"# {TODO}: put .{{0,60}} where names and numbers differ from run to run")
        yield f"regex = {value(draft.error[0])}"
        yield f"example = {value(draft.error[1])}"
    for url in draft.urls or (f"{TODO}: a public source",):
        yield from ("", "[[evidence]]", f"url = {value(url)}", 'kind = "report"', 'supports = ["affected", "summary"]')
    if draft.example:
        yield from ("", "[[examples]]", f"environment = {value(draft.example)}")


def value(given: Any) -> str:
    """The value in one line of TOML."""
    if isinstance(given, str):
        return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(given, Mapping):
        inner = ", ".join(f"{_key(key)} = {value(each)}" for key, each in given.items() if each is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(given, (list, tuple)):
        return f"[{', '.join(value(each) for each in given)}]"
    return json.dumps(given)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else value(name)


def _path(path: str) -> str:
    head, dot, rest = path.partition(".")
    return f"{head}{dot}{_key(rest)}" if head == "distributions" else path
