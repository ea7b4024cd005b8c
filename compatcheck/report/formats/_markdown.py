"""Text as Markdown that shows it and does nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compatcheck.files.secrets import masked
from compatcheck.report.steps import step_text, to_copy
from compatcheck.results.findings import Finding, Remedy
from compatcheck.terminal.cells import visible


def cell(text: str) -> str:
    """The text as one line, or one cell of a table, that can neither end its row, nor link, nor call anybody."""
    return "".join(f"\\{each}" if each in "\\|[]<>`*_~#" else each for each in visible(masked(text))).replace(
        "@", "@\u200b"
    )


def code(text: str) -> str:
    """The text as code within a line; in a table as well."""
    flat = visible(masked(text)).replace("|", "\\|")
    fence = _fence(flat, 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def block(text: str, language: str = "") -> Iterator[str]:
    """The text as lines of code to copy."""
    fence = _fence(text, 3)
    yield f"{fence}{language}"
    yield text.rstrip("\n")
    yield fence


def _fence(text: str, least: int) -> str:
    return "`" * max(least, *(len(run) + 1 for run in re.findall("`+", text)), least)


def ways_out(finding: Finding) -> Iterator[str]:
    """Each remedy, the best first: why it helps, and below it what is to be copied."""
    for number, remedy in enumerate(finding.remedies, start=1):
        yield f"{number}. {cell(remedy.why)}" if remedy.why else f"{number}."
        yield ""
        yield from (f"   {line}" if line else "" for line in _to_copy(remedy))


def _to_copy(remedy: Remedy) -> Iterator[str]:
    words = [to_copy(step) for step in remedy.steps if step.kind == "words" and step.what != (remedy.why,)]
    yield from (line for each in words for line in (cell(each), ""))
    text, language = _copied(remedy)
    if text:
        for line in block(text, language):
            yield from line.split("\n")
        yield ""


def _copied(remedy: Remedy) -> tuple[str, str]:
    if remedy.pins and not remedy.config:
        return "\n".join(f"{name}{versions}" for name, versions in remedy.pins.items()), "text"
    if remedy.environ:
        return "\n".join(f"export {name}={value}" for name, value in remedy.environ.items()), "sh"
    if remedy.code:
        return remedy.code, "python" if "(" in remedy.code else "text"
    return "\n".join(step_text(step) for step in remedy.steps if step.kind != "words"), "text"


def evidence(addresses: Iterable[str]) -> Iterator[str]:
    """What the finding stands on: addresses as links, records of the matrix by their name."""
    yield from (f"- <{each}>" if each.startswith("https://") else f"- {code(each)}" for each in addresses)
