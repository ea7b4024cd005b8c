"""The pipeline of `compatcheck data`: survey the rows, run the model's tokenizer on a sample, judge both."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from compatcheck import data, matrix, probes
from compatcheck.data import Survey
from compatcheck.errors import InputError, NothingInspectedError
from compatcheck.files import leftovers, storage
from compatcheck.installed import trust
from compatcheck.installed.target import find_target
from compatcheck.matrix import Matrix
from compatcheck.pipelines.check import OnProbe
from compatcheck.project.reading import read_paths
from compatcheck.results import exit_status
from compatcheck.results.data import DataProblem, DataReport
from compatcheck.results.findings import ProbeResult
from compatcheck.results.logs import Pattern

_PROBE = "chat_template"
_NO_MODEL = "pass the model's folder with --model"
_ABOUT = ("tokenizer", "transformers", "padding_side")
_SHAPES = (
    "use messages with roles, ShareGPT, Alpaca, or prompt and completion: one JSON list, or one JSON object per line"
)

Progress = Callable[[], AbstractContextManager[OnProbe | None]]


class Options(NamedTuple):
    """What to judge a file of conversations with; ``model`` is a folder whose tokenizer runs on ``rows`` of them."""

    model: str | None = None
    training: str | None = None
    max_length: int | None = None
    rows: int = 200
    trust_remote_code: bool = False
    python: str | None = None
    timeout: float | None = None


class Verdict(NamedTuple):
    """A report, and what it comes to: the exit status and its reason."""

    report: DataReport
    exit_status: int
    reason: str


def judge(file: str, options: Options, progress: Progress = nullcontext) -> Verdict:
    """Judge training data, and run the tokenizer where a model is named.

    Raises `InputError` for what cannot be read, `NothingInspectedError` where the file holds no conversation.
    """
    training = read_paths([options.training]).environment.section("training") if options.training else {}
    options = options._replace(max_length=options.max_length or training.get("max_length"))
    found = data.survey(file, options.rows)
    if found.shape is None:
        raise NothingInspectedError("reading", file, _why_no_conversation(found), _SHAPES)
    runs = options.model is not None and bool(found.sample)
    result = _run_tokenizer(found.sample, options, progress) if runs else None
    report = _report(file, found, result, options, training.get("framework"))
    if runs and report.unread is not None:
        return Verdict(report, exit_status.REQUIRED_MISSING, f"the tokenizer could not be run: {report.unread}")
    bad = sum(problem.level == "problem" for problem in report.problems)
    return Verdict(report, exit_status.FINDINGS if bad else exit_status.CLEAN, f"{bad} problems")


def _why_no_conversation(found: Survey) -> str:
    broken = found.faults.get("broken-line")
    if not found.records:
        return "the file is empty"
    if broken:
        return f"the file contains no conversation; line {broken.rows[0]}: {broken.example}"
    return f"none of {found.records} records is a conversation"


def _run_tokenizer(sample: Sequence[tuple[int, object]], options: Options, progress: Progress) -> ProbeResult:
    model = options.model or ""
    if not os.path.isdir(model):
        raise InputError("reading the model folder", model, "there is no such folder", "pass a folder with a tokenizer")
    target = find_target(options.python, os.environ)
    trust.require(target, "running the tokenizer in", os.environ)
    with leftovers.temporary_folder("compatcheck-data-") as folder:
        path = os.path.join(folder, "rows.jsonl")
        rows = (json.dumps({"number": number, "messages": messages}) for number, messages in sample)
        storage.write(path, "".join(f"{row}\n" for row in rows))
        request = {
            "model_file": model,
            "rows_file": path,
            "max_length": options.max_length,
            "trust_remote_code": options.trust_remote_code,
        }
        with progress() as show:
            on_stage = partial(show, _PROBE) if show else None
            return probes.run(_PROBE, target, request, options.timeout, on_stage)


def _report(
    file: str, found: Survey, result: ProbeResult | None, options: Options, framework: str | None
) -> DataReport:
    model, limit, shape = options.model, options.max_length, found.shape or ""
    unread = _unread(result, model)
    problems = [*data.judge_rows(found, with_tokenizer=unread is None)]
    measured: Mapping[str, Any] = result.measured if result is not None and unread is None else {}
    if model is not None and measured:
        problems += data.judge_tokens(measured, shape, limit, framework)
        problems += data.judge_embedding(model, _special_tokens(measured))
    known = matrix.load()
    failure = tuple(_known_failure(unread or "", matrix.patterns(known)))
    explained = data.explained((*failure, *problems), _titled(known) if failure or problems else ())
    shown = measured.get("shown")
    return DataReport(
        file,
        shape,
        found.rows,
        len(measured.get("rows", ())),
        tuple(sorted(explained, key=lambda problem: problem.level != "problem")),
        unread,
        {key: measured[key] for key in _ABOUT if key in measured} | ({"max_length": limit} if measured else {}),
        _lengths(measured.get("rows", ())),
        (shown["number"], tuple(map(tuple, shown["pieces"]))) if shown else None,
    )


def _titled(known: Matrix) -> Iterator[Mapping[str, Any]]:
    """The entries, with their titles in the language in use."""
    return (matrix.in_language(known, entry) for entry in matrix.all_entries(known))


def _known_failure(unread: str, patterns: Iterable[Pattern]) -> Iterator[DataProblem]:
    """The tokenizer's failure as a problem, where entries know its error line."""
    ids = [pattern.entry for pattern in patterns if re.search(pattern.regex, unread)]
    if ids:
        seen = f"the tokenizer cannot be run: {unread}"
        yield DataProblem(
            "tokenizer-fails",
            "problem",
            seen,
            f"see compatcheck explain {ids[0]}",
            entries=tuple((entry_id, "") for entry_id in dict.fromkeys(ids)),
        )


def _unread(result: ProbeResult | None, model: str | None) -> str | None:
    if result is None:
        return _NO_MODEL if model is None else "no row of the file is a conversation with an answer to label"
    if "unreadable" in result.measured:
        hint = "; --trust-remote-code allows this code to run" if "own code" in result.why else ""
        return result.why + hint
    return None if result.outcome in ("pass", "watch", "fail") else f"{result.outcome}: {result.why}"


def _special_tokens(measured: Mapping[str, Any]) -> dict[int, str]:
    used = {number for row in measured["rows"] for number in row.get("special_ids", ())}
    named = {each["id"]: each["text"] for each in measured.get("markers") or () if each["id"] is not None}
    return {number: named.get(number, f"token {number}") for number in sorted(used)}


def _lengths(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts = sorted(row["tokens"] for row in rows if row["tokens"])
    if not counts:
        return {}
    return {"median": counts[len(counts) // 2], "p95": counts[len(counts) * 95 // 100], "longest": counts[-1]}
