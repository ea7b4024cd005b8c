"""No English sentence is left in what ``--lang zh`` prints; code, names, quoted lines and ids stay as they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from compatcheck import matrix
from compatcheck.advice import formats
from compatcheck.cli import cli
from compatcheck.report import FORMATS, PAGE_FORMATS
from tests.advice.index import write_index
from tests.conftest import ROOT
from tests.report.page import Page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="the commands run in forks")]

MACHINES = sorted((ROOT / "tests" / "machines").glob("*.json"))
LOGS = sorted((ROOT / "tests" / "symptoms" / "logs").glob("*.log"))
HEALTHY = sorted((ROOT / "tests" / "symptoms" / "logs" / "healthy").glob("*.log"))
NODES = ROOT / "docs" / "how-to" / "nodes"
PROJECTS = [ROOT / "docs" / "tutorial" / name for name in ("project", "script")]
WORDS = (
    *("the", "a", "an", "of", "is", "are", "was", "with", "without", "and", "or", "not", "no", "from", "for", "to"),
    *("in", "on", "by", "this", "that", "which", "where", "it", "its", "be", "has", "have", "as", "at", "only"),
    *("than", "into", "if", "does", "cannot"),
)
_KEPT = re.compile(
    r"""`[^`]*`|"[^"]*"|“[^”]*”|'[^'\n]*'|https?://\S+|compatcheck[ \w-]+|--[\w-]+(=\S+)?|CC-[\d-]+"""
    r"""|\S*[./_=(){}\[\]<>\\&@]\S*"""
)
_WORD = rf"(?:{'|'.join(WORDS)})"
_ENGLISH = re.compile(rf"(?<![\w-])(?:{_WORD} [A-Za-z][\w-]*|[A-Za-z][\w-]* {_WORD} [A-Za-z][\w-]*)(?![\w-])")
_IGNORED = ["--reason", "x", "--until", "2090-01-01", "--path", "a.yaml"]
_FOLDED = re.compile(r"\n {10,}(?=\S)")
_QUOTING = "报错 "
_FACTS = ("evidence", "environment", "inferred", "facts", "unknown", "code", "steps", "causes", "symptoms", "crash")
"""What JSON holds for programs: facts with their reasons, sources with their notes, and code."""


class Output(NamedTuple):
    command: str
    text: str


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[Output]:
    """What each of the commands prints to both streams."""
    folder = _inputs(tmp_path_factory.mktemp("inputs"))
    cases = [{"argv": [*argv, "--lang", "zh"], "cwd": str(cwd)} for argv, cwd in _commands(folder)]
    with pytest.MonkeyPatch.context() as patch:
        write_index(folder, patch)
        done = subprocess.run(
            [sys.executable, "-m", "tests.language.forked"],
            input=json.dumps(cases),
            capture_output=True,
            encoding="utf-8",
            cwd=ROOT,
            env={**os.environ, "NO_COLOR": "1", "COMPATCHECK_LANG": "zh", "COLUMNS": "500"},
            check=True,
        )
    results = zip(cases, json.loads(done.stdout))
    return [Output(" ".join(case["argv"]), _prose(case["argv"], out) + err) for case, (_, out, err) in results]


def _inputs(folder: Path) -> Path:
    rows = [{"messages": [{"role": "user", "content": "a"}, {"role": "robot", "content": ""}]}, {"messages": []}, 3]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "requirements.txt").write_text("transformers==4.49.0\ntorch==2.5.0\n", encoding="utf-8")
    (folder / "notes.txt").write_text("hello\n", encoding="utf-8")
    (folder / "broken.json").write_text('{"a": 1,}', encoding="utf-8")
    settings = '[tool.compatcheck]\nfailon = "affected"\n'
    (folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    (folder / "oom.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n")
    return folder


def _commands(folder: Path) -> Iterator[tuple[list[str], Path]]:
    for machine, each in zip(MACHINES, cycle(FORMATS)):
        yield ["check", "--snapshot", str(machine), "-v"], ROOT
        yield ["check", "--snapshot", str(machine), "--format", each], ROOT
    for project in PROJECTS:
        yield from ((["check", ".", "--no-probe", "--isolated", "--format", each], project) for each in FORMATS)
        yield ["check", ".", "--no-probe", "-v"], project
        yield ["check", ".", "--no-probe", "--fix", "--unsafe-fixes"], project
        yield ["hook", "requirements.txt"], project
    yield from ((["diagnose", str(log), "-v"], ROOT) for log in (*LOGS, *HEALTHY[::6], folder / "oom.log"))
    yield from ((["diagnose", str(log), "--format", each], ROOT) for log, each in zip(cycle(LOGS), FORMATS))
    yield from ((["triage", str(log), "--format", each], ROOT) for log, each in zip(cycle(LOGS), FORMATS))
    yield from ((["cluster", "--snapshots", str(NODES), "--format", each], ROOT) for each in FORMATS)
    yield from ((["demo", "--format", each], ROOT) for each in FORMATS)
    yield from ((["model", str(PROJECTS[1] / "model"), "--format", each], ROOT) for each in FORMATS)
    yield from ((["data", "rows.jsonl", "--format", each], folder) for each in PAGE_FORMATS)
    yield from ((["explain", "CC-2024-0001", "--format", each], ROOT) for each in PAGE_FORMATS)
    yield from (
        (["pin", "requirements.txt", "--format", each, "-o", f"pins.{each}"], folder) for each in formats.names()
    )
    yield from ((["pin", "requirements.txt", "--report", f"{each}=-"], folder) for each in PAGE_FORMATS)
    yield from ((["matrix", "diff", "--base", "HEAD", "--format", each], ROOT) for each in PAGE_FORMATS)
    yield ["matrix", "lint", "matrix", "--select", "CC-2024-0001"], ROOT
    yield ["matrix", "export", "--format", "csv", "-o", "matrix.csv"], folder
    yield ["matrix", "search", "爆显存"], ROOT
    yield from ((["explain", each], ROOT) for each in ("CC-2024-2824", "CC-2025-0028"))
    yield from (([*path, option], ROOT) for path in _verbs(cli) for option in ("--help", "--help-all"))
    yield from (([], ROOT), (["formats"], ROOT), (["probe", "--list"], ROOT))
    yield from ((["ignore", "CC-2024-0001", *rest], _empty(folder)) for rest in (_IGNORED, ["--remove"]))
    yield from ((argv, folder) for argv in _refused())


def _verbs(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words that call each group and each verb, the program itself with none."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            verb = command.get_command(context, name)
            assert verb is not None
            yield from _verbs(verb, (*path, name))


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir(exist_ok=True)
    (folder / "empty" / "pyproject.toml").touch()
    return folder / "empty"


def _refused() -> Iterator[list[str]]:
    """What is wrong on the command line or in a file."""
    yield from (["check", "nosuch.yaml"], ["check", "notes.txt", "--isolated"], ["check", "broken.json", "--isolated"])
    yield from (["check", "."], ["check", "--snapshot", "broken.json", "--isolated"], ["chek"], ["check", "--formt"])
    yield from (["check", "--format"], ["check", "--format", "pdf"], ["explain"], ["explain", "foo"])
    yield from (["explain", "a", "b"], ["pin", "--budget", "x"], ["check", "--assume", "nothing"])
    yield from (["check", "--assume", "gpu.nothing=1", "--isolated"], ["ignore", "CC-2024-0001"])
    yield from (["ignore", "CC-2024-0001", "--reason", "x", "--until", "2020-01-01"], ["diagnose", "notes.txt"])
    yield from (["cluster", "--snapshots", "nosuch"], ["matrix", "search", "zzzzzzzz"], ["probe", "nosuch"])


def _prose(argv: Collection[str], out: str) -> str:
    """What of an output people read."""
    if "html" in argv:
        bare = re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>|<(code|pre|svg)\b.*?</\1>", "·", out)
        return "\n".join(Page(bare).words)
    if {"json", "sarif", "gitlab"} & set(argv):
        return "\n".join(_texts(json.loads(out)))
    return out


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (text for key, each in value.items() if key not in _FACTS for text in _texts(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in _texts(each))
    elif isinstance(value, str):
        yield value


def english(text: str, codes: Collection[str] = ()) -> list[str]:
    """The lines of a text, folded ones made whole, that hold an English sentence beside code and quoted lines."""
    for code in codes:
        text = text.replace(code, "·")
    left = (line for line in _FOLDED.sub(" ", text).splitlines() if not line.startswith(_QUOTING))
    return [line.strip() for line in left if _ENGLISH.search(_KEPT.sub(" · ", line))]


@pytest.fixture(scope="module")
def codes() -> list[str]:
    """The code of every remedy and the error lines of every entry, as they are printed."""
    entries = matrix.all_entries(matrix.load())
    code = {remedy["code"] for entry in entries for remedy in entry["remedies"] if remedy.get("code")}
    lines = {pattern["example"] for entry in entries for pattern in entry.get("error_patterns", ())}
    printed = {re.sub(r"\s+", " ", each) for each in (code | lines)}
    escaped = {re.sub(r"([\\|\[\]<>`*_~#])", r"\\\1", each) for each in printed}
    return sorted((each for each in code | printed | escaped if " " in each), key=len, reverse=True)


def test_no_english_sentence_is_left(said: list[Output], codes: list[str]) -> None:
    left = {output.command: lines for output in said if (lines := english(_FOLDED.sub(" ", output.text), codes))}
    assert not left, json.dumps(left, ensure_ascii=False, indent=1)


def test_the_commands_print_something_in_chinese(said: list[Output]) -> None:
    of_programs = ("--format gitlab", "--format json", "--format csv")
    for_people = (output for output in said if not any(each in output.command for each in of_programs))
    assert not [output.command for output in for_people if not re.search(r"[\u4e00-\u9fff]", output.text)]


def test_an_english_sentence_is_seen() -> None:
    text = '它报错 "the file is not here"\n解决 remove the file of the model\n在 flash attention 之前\n'
    assert english(text) == ["解决 remove the file of the model"]
