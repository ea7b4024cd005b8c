"""`compatcheck data`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from compatcheck.verbs import _options, _status
from compatcheck.verbs._output import progress, screen_of, write

if TYPE_CHECKING:
    from compatcheck.results.data import DataProblem, DataReport
    from compatcheck.results.findings import ProbeResult
    from compatcheck.results.logs import Pattern

_NO_MODEL = "name the model's folder with --model"
_ABOUT = ("tokenizer", "transformers", "padding_side")


@click.command()
@click.argument("file")
@click.option("--model", metavar="DIR", help="The model's folder: its tokenizer and chat template are run on a sample.")
@click.option("--training", metavar="FILE", help="Training configuration that states the length rows are cut to.")
@click.option("--max-length", type=click.IntRange(min=1), metavar="TOKENS", help="State that length here.")
@click.option("--rows", type=click.IntRange(min=1), default=200, show_default=True, help="Size of the sample.")
@click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model, offline all the same.")
@click.option("--timeout", type=click.FloatRange(min=1), metavar="SECONDS", help="End the tokenizer after this long.")
@_options.python
@_options.format_name
@_options.output
@_options.quiet
def command(
    file: str,
    model: str | None,
    training: str | None,
    max_length: int | None,
    rows: int,
    trust_remote_code: bool,
    timeout: float | None,
    python: str | None,
    format_name: str,
    output: str | None,
    quiet: bool,
) -> NoReturn:
    """Look at training data: broken rows, rows with nothing to learn, templates and tokens that do not fit.

    FILE holds conversations as JSON or JSON lines, also gzipped: messages with roles, ShareGPT, Alpaca, prompt and
    completion, preference pairs.
    """
    from compatcheck import data
    from compatcheck.errors import NothingInspectedError
    from compatcheck.report import data as data_report

    stated = _stated(training)
    limit = max_length or stated.get("max_length")
    found = data.survey(file, rows)
    if found.shape is None:
        seen = _nothing(found)
        advice = "give messages with roles, ShareGPT, Alpaca, or prompt and completion: one list, or one object a line"
        raise NothingInspectedError("reading", file, seen, advice)
    result = None
    if model is not None and found.sample:
        result = _run(found.sample, model, limit, trust_remote_code, python, timeout)
    report = _report(file, found, result, model, limit, stated.get("framework"))
    bad = sum(problem.level == "problem" for problem in report.problems)
    unrun = model is not None and bool(found.sample) and report.unread is not None
    reason = f"the tokenizer could not be run: {report.unread}" if unrun else f"{bad} problems"
    screen = screen_of(output)
    if quiet and format_name == "text":
        write(data_report.render_failing(report, screen) + (f"{file}: {reason}\n" if unrun else ""), output)
    else:
        write(data_report.render(report, format_name, reason, screen), output)
    sys.exit(_status.PROBE_MISSING if unrun else _status.FINDINGS if bad else _status.CLEAN)


def _stated(training: str | None) -> Mapping[str, Any]:
    """What the training configuration says; raises `InputError` where it is none."""
    from compatcheck.project.reading import read_paths

    return read_paths([training]).environment.facts.get("training") or {} if training else {}


def _nothing(found: Any) -> str:
    broken = found.faults.get("broken-line")
    if not found.records:
        return "it is empty"
    if broken:
        return f"no conversation is in it; line {broken.rows[0]}: {broken.example}"
    return f"none of {found.records} records has the shape of a conversation"


def _run(
    sample: Sequence[tuple[int, Any]],
    model: str,
    limit: int | None,
    trusted: bool,
    python: str | None,
    timeout: float | None,
) -> ProbeResult:
    import json
    import tempfile

    from compatcheck import probes
    from compatcheck.errors import InputError
    from compatcheck.files import storage
    from compatcheck.installed.target import find_target

    if not os.path.isdir(model):
        raise InputError("reading the model folder", model, "there is no such folder", "give a folder with a tokenizer")
    target = find_target(python, os.environ)
    with tempfile.TemporaryDirectory(prefix="compatcheck-data-", ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "rows.jsonl")
        rows = (json.dumps({"number": number, "messages": messages}) for number, messages in sample)
        storage.write(path, "".join(f"{row}\n" for row in rows))
        request = {"model_file": model, "rows_file": path, "max_length": limit, "trust_remote_code": trusted}
        with progress() as show:
            return probes.run(
                "chat_template", target, request, timeout, on_stage=lambda stage, _: show("chat_template", stage)
            )


def _report(
    file: str, found: Any, result: ProbeResult | None, model: str | None, limit: int | None, framework: str | None
) -> DataReport:
    from compatcheck import data, matrix
    from compatcheck.results.data import DataReport

    unread = _unread(result, model)
    problems = data.judge_rows(found, with_tokenizer=unread is None)
    measured: Mapping[str, Any] = result.measured if result is not None and unread is None else {}
    if model is not None and measured:
        problems += data.judge_tokens(measured, found.shape, limit, framework)
        problems += data.judge_embedding(model, _special_tokens(measured))
    known = matrix.load()
    failure = tuple(_known_failure(unread or "", matrix.patterns(known)))
    explained = data.explained((*failure, *problems), matrix.all_entries(known) if failure or problems else ())
    shown = measured.get("shown")
    return DataReport(
        file,
        found.shape,
        found.rows,
        len(measured.get("rows", ())),
        tuple(sorted(explained, key=lambda problem: problem.level != "problem")),
        unread,
        {key: measured[key] for key in _ABOUT if key in measured} | ({"max_length": limit} if measured else {}),
        _lengths(measured.get("rows", ())),
        (shown["number"], tuple(map(tuple, shown["pieces"]))) if shown else None,
    )


def _known_failure(unread: str, patterns: Iterable[Pattern]) -> Iterator[DataProblem]:
    """The tokenizer's failure as a problem, where entries know its error line."""
    import re

    from compatcheck.results.data import DataProblem

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
        hint = "; --trust-remote-code allows it" if "own code" in result.why else ""
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
