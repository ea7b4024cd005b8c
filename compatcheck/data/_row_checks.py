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
    "broken-line": _Kind("problem", "lines that are no JSON: {count} ({example})", "correct or delete them"),
    "unknown-shape": _Kind(
        "problem", "records that are no conversation of a known shape: {count}", "bring them to one shape"
    ),
    "mixed-shapes": _Kind("problem", "the rows have several shapes: {example}", "bring them to one shape"),
    "encoding": _Kind("problem", "rows in {example} where loaders expect UTF-8: {count}", "convert the file to UTF-8"),
    "no-message": _Kind("problem", "rows that hold what is no message: {count} ({example})", "correct or delete them"),
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
        "problem", "rows that end without an answer: {count} ({example})", "cut them after the last answer"
    ),
    "empty-answer": _Kind("problem", "rows with an empty answer: {count}", "fill or delete them", _MASKED),
    "role-order": _Kind(
        "problem", "rows whose roles are out of turn: {count} ({example})", "let user and assistant take turns"
    ),
    "marker-in-answer": _Kind(
        "problem",
        "rows with a chat marker as text in an answer: {count} ({example})",
        "take the markers out: the template writes them",
    ),
    "media": _Kind(
        "note",
        "rows with images, sound or film: {count}; what these add to the tokens is not counted",
        "leave room for them in the length",
    ),
    "duplicate": _Kind("note", "rows that are copies of others: {count}", "delete them unless the weight is meant"),
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
