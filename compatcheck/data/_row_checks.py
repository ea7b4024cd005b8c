"""What the look of the rows alone says about training with them; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from compatcheck.data._survey import Survey, Tally
from compatcheck.results.data import DataProblem

Level = Literal["problem", "note"]
_MASKED = ("loss-zero", "grad-norm-zero")
_MUCH = 0.02


class _Kind(NamedTuple):
    level: Level
    seen: str
    fix: str
    symptoms: tuple[str, ...] = ()


_KINDS: dict[str, _Kind] = {
    "broken-line": _Kind("problem", "lines that are not JSON: {count} ({example})", "correct or delete them"),
    "unknown-shape": _Kind(
        "problem", "records with an unknown conversation format: {count}", "convert them to one format"
    ),
    "mixed-shapes": _Kind(
        "problem", "the rows use several conversation formats: {example}", "convert them to one format"
    ),
    "encoding": _Kind(
        "problem", "rows in {example}, although loaders expect UTF-8: {count}", "convert the file to UTF-8"
    ),
    "no-message": _Kind("problem", "rows with invalid messages: {count} ({example})", "correct or delete them"),
    "unknown-role": _Kind(
        "problem", "rows with an unusual role: {count} ({example})", "use system, user, assistant and tool"
    ),
    "no-answer": _Kind(
        "problem",
        "rows without an answer to learn from: {count} (roles: {example})",
        "add the answers or delete the rows",
        _MASKED,
    ),
    "ends-without-answer": _Kind(
        "problem", "rows that end without an answer: {count} ({example})", "cut each row after its last answer"
    ),
    "empty-answer": _Kind("problem", "rows with an empty answer: {count}", "fill or delete them", _MASKED),
    "role-order": _Kind(
        "problem", "rows with roles out of order: {count} ({example})", "alternate user and assistant messages"
    ),
    "marker-in-answer": _Kind(
        "problem",
        "rows with a chat marker as text in an answer: {count} ({example})",
        "remove the markers; the template writes them",
    ),
    "media": _Kind(
        "note",
        "rows with images, audio or video: {count}; their tokens are not counted",
        "leave room for their tokens in the length",
    ),
    "duplicate": _Kind(
        "note", "rows that are duplicates: {count}", "delete the duplicates unless their extra weight is intended"
    ),
}
_JUDGED_BETTER_BY_TOKENIZER = ("role-order", "ends-without-answer", "marker-in-answer")


def judge(survey: Survey, with_tokenizer: bool) -> Iterator[DataProblem]:
    """The problems of a survey; what the tokenizer judges better is only a note where it has run."""
    for name, kind in _KINDS.items():
        tally = survey.faults.get(name)
        if tally is None or (name == "duplicate" and tally.count < _MUCH * survey.rows):
            continue
        if name == "media" and not with_tokenizer:
            continue
        softened = with_tokenizer and name in _JUDGED_BETTER_BY_TOKENIZER
        yield _problem(name, kind._replace(level="note") if softened else kind, tally)


def _problem(name: str, kind: _Kind, tally: Tally) -> DataProblem:
    seen = kind.seen.format(count=tally.count, example=tally.example)
    rows = tuple(row for row in tally.rows if row)
    return DataProblem(name, kind.level, seen, kind.fix, tally.count, rows, kind.symptoms)
