"""Training data, beside the other stages: what a file of conversations holds, and what training will make of it.

The parent reads the file and judges; the tokenizer itself runs in the target's interpreter as the probe
``chat_template``, because the process that runs a model's own files must be one that can be ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compatcheck.data import _embedding, _token_checks
from compatcheck.data._records import read
from compatcheck.data._row_checks import judge as judge_rows
from compatcheck.data._survey import Survey
from compatcheck.data._survey import survey as survey_records
from compatcheck.data._token_checks import judge as judge_tokens
from compatcheck.results.data import DataProblem

__all__ = ["Survey", "explained", "judge_embedding", "judge_rows", "judge_tokens", "survey"]


def survey(path: str, wanted: int) -> Survey:
    """What a file holds, and a sample of at most ``wanted`` rows. Raises `InputError` where it cannot be opened."""
    return survey_records(read(path), wanted)


def judge_embedding(folder: str, tokens: Mapping[int, str]) -> tuple[DataProblem, ...]:
    """Whether the model has trained these tokens; nothing where its weights are not at hand."""
    rows = _embedding.untrained(folder, tokens)
    return (_token_checks.untrained([tokens[row] for row in rows]),) if rows else ()


def explained(problems: Iterable[DataProblem], entries: Iterable[Mapping[str, object]]) -> tuple[DataProblem, ...]:
    """The problems with the entries that name all of their symptoms, or their trait."""
    known = list(entries)
    return tuple(problem._replace(entries=tuple(_entries_of(problem, known))) for problem in problems)


def _entries_of(problem: DataProblem, entries: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    stated = {entry_id for entry_id, _ in problem.entries}
    for entry in entries:
        traits = [trait for table in entry["affected"] for trait in table.get("traits") or ()]
        shown = problem.symptoms and set(problem.symptoms) <= set(entry.get("symptoms") or ())
        named = entry["id"] in stated or (problem.trait is not None and problem.trait in traits)
        if shown or named:
            yield entry["id"], entry["title"]
