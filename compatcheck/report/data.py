"""What a look at training data has to say."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from compatcheck.model import DataProblem, DataReport
from compatcheck.report.json import finite

SCHEMA_VERSION = 1
_WIDTH = 100
_CUT = "the rest is cut off"


def render(report: DataReport, format_name: str, exit_reason: str) -> str:
    """The report as text or JSON, ending in a newline."""
    if format_name == "json":
        return json.dumps(finite(_shape(report, exit_reason)), indent=2, ensure_ascii=False) + "\n"
    return "".join(line.rstrip() + "\n" for line in _lines(report))


def _shape(report: DataReport, exit_reason: str) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "file": report.file,
        "shape": report.shape,
        "rows": report.rows,
        "sampled": report.sampled,
        "tokenizer": dict(report.tokenizer),
        "unread": report.unread,
        "lengths": dict(report.lengths),
        "problems": [_problem(problem) for problem in report.problems],
        "shown": _shown(report),
        "exit_reason": exit_reason,
    }


def _problem(problem: DataProblem) -> dict[str, object]:
    entries = [{"id": entry_id, "title": title} for entry_id, title in problem.entries]
    return {**problem._asdict(), "entries": entries}


def _shown(report: DataReport) -> dict[str, object] | None:
    if report.shown is None:
        return None
    row, pieces = report.shown
    named = [{"text": text, "labelled": labelled, "kept": kept} for text, labelled, kept in pieces]
    return {"row": row, "pieces": named}


def _lines(report: DataReport) -> Iterator[str]:
    yield f"{report.file}: {report.rows} rows of the shape {report.shape}"
    if report.tokenizer:
        parts = [f"{key.replace('_', ' ')} {value}" for key, value in report.tokenizer.items() if value is not None]
        yield f"{report.sampled} rows sampled, {', '.join(parts)}"
    if report.lengths:
        yield "tokens: " + ", ".join(f"{name} {count}" for name, count in report.lengths.items())
    for problem in report.problems:
        yield ""
        yield from _told(problem)
    if report.shown and report.problems:
        yield ""
        yield from _pieces(report)
    yield ""
    if report.unread:
        yield from _folded("not known: ", f"what the tokenizer makes of the rows ({report.unread})")
    count = sum(problem.level == "problem" for problem in report.problems)
    notes = len(report.problems) - count
    yield f"{_counted(count, 'problem')}, {_counted(notes, 'note')}" if report.problems else "nothing wrong was found"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _told(problem: DataProblem) -> Iterator[str]:
    yield from _folded(f"{problem.level:<9}", f"{problem.name}: {problem.seen}")
    if problem.rows:
        more = ", ..." if problem.total > len(problem.rows) else ""
        yield from _folded(f"{'':9}rows   ", ", ".join(map(str, problem.rows)) + more)
    for entry_id, title in problem.entries:
        yield from _folded(f"{'':9}see    ", f"{entry_id} {title}")
    yield from _folded(f"{'':9}fix    ", problem.fix)


def _pieces(report: DataReport) -> Iterator[str]:
    """One row around its first label: what is learned stands in brackets."""
    assert report.shown is not None
    row, pieces = report.shown
    text, cut = [], False
    for piece, labelled, kept in pieces:
        if not kept and not cut:
            text.append(f"({_CUT}:)")
            cut = True
        text.append(f"[{piece}]" if labelled and kept else piece)
    yield from _folded(f"row {row}, learned in brackets: ", " ".join(_visible(piece) for piece in text))


def _visible(piece: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in piece)


def _folded(head: str, text: str) -> Iterator[str]:
    rows = textwrap.wrap(text, _WIDTH - min(len(head), 16), break_on_hyphens=False) or [""]
    yield head + rows[0]
    yield from (f"{'':16}{row}" for row in rows[1:])
