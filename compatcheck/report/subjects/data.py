"""What is wrong with training data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from compatcheck.language import clauses, comma_list, marked, ngettext
from compatcheck.language import gettext as _
from compatcheck.report.document import STYLES, Document, Exit, rows
from compatcheck.results.data import DataProblem, DataReport
from compatcheck.terminal.lines import Line

_ABOUT = {"padding_side": marked("padding side"), "max_length": marked("max length")}


def document(report: DataReport, exit: Exit) -> Document:
    title = _verdict(report)
    return Document(title, tuple(_lines(report)), partial(_shape, report, exit), ((title,),), exit=exit)


def failing(report: DataReport) -> Document:
    """A row for each problem, with its file and first line first, as editors read it."""
    return rows(
        Line(f"{each.name}: {_(each.seen)}", "", f"{report.file}:{each.rows[0] if each.rows else 1}: ")
        for each in report.problems
        if each.level == "problem"
    )


def _shape(report: DataReport, exit: Exit) -> Mapping[str, object]:
    return {
        "file": report.file,
        "shape": report.shape,
        "rows": report.rows,
        "sampled": report.sampled,
        "tokenizer": dict(report.tokenizer),
        "unread": report.unread and _(report.unread),
        "lengths": dict(report.lengths),
        "problems": [_problem_shape(problem) for problem in report.problems],
        "shown": _row_shape(report),
        "exit_reason": exit.reason,
    }


def _problem_shape(problem: DataProblem) -> dict[str, object]:
    entries = [{"id": entry_id, "title": title} for entry_id, title in problem.entries]
    return {**problem._asdict(), "seen": _(problem.seen), "fix": _(problem.fix), "entries": entries}


def _row_shape(report: DataReport) -> dict[str, object] | None:
    if report.shown is None:
        return None
    row, pieces = report.shown
    named = [{"text": text, "labelled": labelled, "kept": kept} for text, labelled, kept in pieces]
    return {"row": row, "pieces": named}


def _lines(report: DataReport) -> Iterator[Line]:
    yield Line(
        _("{file}: {count} rows in the format {shape}").format(file=report.file, count=report.rows, shape=report.shape),
        "dim",
    )
    if report.tokenizer:
        parts = [f"{_(_ABOUT.get(key, key))} {value}" for key, value in report.tokenizer.items() if value is not None]
        sampled = _("{count} rows sampled").format(count=report.sampled)
        yield Line(clauses(sampled, *parts), "dim")
    if report.lengths:
        lengths = comma_list(f"{_(name)} {count}" for name, count in report.lengths.items())
        yield Line(_("tokens: {lengths}").format(lengths=lengths), "dim")
    for problem in report.problems:
        yield Line()
        yield from _problem_rows(problem)
    if report.shown and report.problems:
        yield Line()
        yield _pieces(report)
    yield Line()
    if report.unread:
        unread = _("how the tokenizer splits the rows ({reason})").format(reason=_(report.unread))
        yield Line(unread, "dim", _("not known:"), "dim", 11)


def _verdict(report: DataReport) -> Line:
    if not report.problems:
        return Line(_("nothing wrong was found"), "bold green")
    bad = sum(problem.level == "problem" for problem in report.problems)
    notes = len(report.problems) - bad
    problems = ngettext("{count} problem", "{count} problems", bad).format(count=bad)
    noted = ngettext("{count} note", "{count} notes", notes).format(count=notes)
    return Line(clauses(problems, noted), "bold red" if bad else "bold yellow")


def _problem_rows(problem: DataProblem) -> Iterator[Line]:
    yield Line(f"{problem.name}: {_(problem.seen)}", "", _(problem.level), STYLES[problem.level], 9)
    if problem.rows:
        more = ", ..." if problem.total > len(problem.rows) else ""
        yield _labelled(_("rows"), comma_list(map(str, problem.rows)) + more)
    for entry_id, title in problem.entries:
        yield _labelled(_("see"), f"{entry_id} {title}")
    yield _labelled(_("fix"), _(problem.fix), "green")


def _labelled(label: str, text: str, style: str = "") -> Line:
    return Line(text, style, f"{'':9}{label}", style, 16)


def _pieces(report: DataReport) -> Line:
    """One row around its first label: what is learned stands in brackets."""
    assert report.shown is not None
    row, pieces = report.shown
    text, cut = [], False
    for piece, labelled, kept in pieces:
        if not kept and not cut:
            text.append(f"({_('the rest is cut off')}:)")
            cut = True
        text.append(f"[{piece}]" if labelled and kept else piece)
    shown = " ".join(_visible(piece) for piece in text)
    return Line(_("row {row}, trained tokens in brackets: {text}").format(row=row, text=shown))


def _visible(piece: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in piece)
