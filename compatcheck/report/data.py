"""What a look at training data has to say."""

from __future__ import annotations

import json
from collections.abc import Iterator

from compatcheck.report.json import finite
from compatcheck.results.data import DataProblem, DataReport
from compatcheck.terminal.lines import Line, unfolded, written
from compatcheck.terminal.screen import PLAIN, Screen

SCHEMA_VERSION = 1
_CUT = "the rest is cut off"
_STYLES = {"problem": "bold red", "note": "yellow"}


def render(report: DataReport, format_name: str, exit_reason: str, screen: Screen = PLAIN) -> str:
    """The report as text or JSON, ending in a newline."""
    if format_name == "json":
        return json.dumps(finite(_shape(report, exit_reason)), indent=2, ensure_ascii=False) + "\n"
    return written(_lines(report), screen)


def render_failing(report: DataReport, screen: Screen = PLAIN) -> str:
    """A row for each problem and nothing else, with its file and first line first, as editors read it."""
    rows = (
        Line(f"{each.name}: {each.seen}", "", f"{report.file}:{each.rows[0] if each.rows else 1}: ")
        for each in report.problems
        if each.level == "problem"
    )
    return written(rows, unfolded(screen))


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


def _lines(report: DataReport) -> Iterator[Line]:
    yield Line(f"{report.file}: {report.rows} rows of the shape {report.shape}", "dim")
    if report.tokenizer:
        parts = [f"{key.replace('_', ' ')} {value}" for key, value in report.tokenizer.items() if value is not None]
        yield Line(f"{report.sampled} rows sampled, {', '.join(parts)}", "dim")
    if report.lengths:
        yield Line("tokens: " + ", ".join(f"{name} {count}" for name, count in report.lengths.items()), "dim")
    for problem in report.problems:
        yield Line()
        yield from _told(problem)
    if report.shown and report.problems:
        yield Line()
        yield _pieces(report)
    yield Line()
    if report.unread:
        yield Line(f"what the tokenizer makes of the rows ({report.unread})", "dim", "not known:", "dim", 11)
    count = sum(problem.level == "problem" for problem in report.problems)
    notes = len(report.problems) - count
    if report.problems:
        yield Line(f"{_counted(count, 'problem')}, {_counted(notes, 'note')}", "bold red" if count else "bold yellow")
    else:
        yield Line("nothing wrong was found", "bold green")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _told(problem: DataProblem) -> Iterator[Line]:
    yield Line(f"{problem.name}: {problem.seen}", "", problem.level, _STYLES[problem.level], 9)
    if problem.rows:
        more = ", ..." if problem.total > len(problem.rows) else ""
        yield _labelled("rows", ", ".join(map(str, problem.rows)) + more)
    for entry_id, title in problem.entries:
        yield _labelled("see", f"{entry_id} {title}")
    yield _labelled("fix", problem.fix, "green")


def _labelled(label: str, text: str, style: str = "") -> Line:
    return Line(text, style, f"{'':9}{label}", style, 16)


def _pieces(report: DataReport) -> Line:
    """One row around its first label: what is learned stands in brackets."""
    assert report.shown is not None
    row, pieces = report.shown
    text, cut = [], False
    for piece, labelled, kept in pieces:
        if not kept and not cut:
            text.append(f"({_CUT}:)")
            cut = True
        text.append(f"[{piece}]" if labelled and kept else piece)
    shown = " ".join(_visible(piece) for piece in text)
    return Line(f"row {row}, learned in brackets: {shown}")


def _visible(piece: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in piece)
