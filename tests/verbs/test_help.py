"""What `--help` shows of each verb, and what a misspelt word is answered with."""

from __future__ import annotations

import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest

from compatcheck.cli import cli
from compatcheck.terminal.cells import cells
from compatcheck.verbs._help import MOST_SHOWN, Verb
from tests.conftest import run_command


def _verbs(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Verb]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _verbs(command, (*path, name))
        else:
            assert isinstance(command, Verb), name
            yield " ".join((*path, name)), command


VERBS = dict(_verbs(cli))


def shown(*arguments: str, **environ: str) -> str:
    done = run_command(sys.executable, *arguments, cwd=Path(), COLUMNS="100", **environ)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def rows(text: str, heading: str) -> list[str]:
    """The first words of the rows of a section."""
    section = re.search(rf"^{heading}:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  (\S.*?)(?:  |$)", section[1], re.M) if section else []


def test_verbs_are_listed_by_purpose() -> None:
    text = shown("--help")
    assert {"check", "hook", "probe"} <= {*rows(text, "Check")}
    assert {"pin", "ignore"} == {*rows(text, "Fix")}
    assert {"diagnose", "explain", "compare"} <= {*rows(text, "Understand")}
    assert {"cluster", "env"} == {*rows(text, "Many machines")}
    assert rows(text, "The matrix") == ["matrix"]
    listed = re.findall(r"^  ([a-z]+) +[A-Z]", text, re.M)
    assert sorted(listed) == sorted({name.split()[0] for name in VERBS} - {"triage"})
    assert not re.search(r"^ {6,}", text, re.M), "a summary takes more than one line"


def test_a_verb_shows_few_options_and_all_on_request() -> None:
    text, everything = shown("check", "--help"), shown("check", "--help-all")
    few = [*rows(text, "Options"), *rows(text, "Common options")]
    every = [*rows(everything, "Options"), *rows(everything, "Common options")]
    assert len(few) <= MOST_SHOWN and {*few} < {*every}
    assert f"{len(every) - len(few)} more options: compatcheck check --help-all" in text
    assert "--baseline FILE" in every and "--baseline" not in text


@pytest.mark.parametrize("name", VERBS)
def test_at_most_twelve_options_are_shown(name: str) -> None:
    context = click.Context(VERBS[name], info_name=name)
    text = VERBS[name].get_help(context)
    assert 1 <= len([*rows(text, "Options"), *rows(text, "Common options")]) <= MOST_SHOWN


def test_an_option_means_the_same_in_every_verb() -> None:
    taken = defaultdict(set)
    for command in VERBS.values():
        for each in command.params:
            if isinstance(each, click.Option):
                taken[each.opts[-1]].add((each.metavar, each.is_flag, getattr(each, "common", False)))
    once = {"--format", "--config", "--output", "--package", "--model", "--online"}
    assert {name: kinds for name, kinds in taken.items() if len(kinds) > 1 and name not in once} == {}
    assert taken["--report"] == {("FORMAT=FILE", False, True)} and taken["--probe"] == {(None, True, True)}
    assert {common for name in once - {"--output", "--package", "--model", "--online"} for *_, common in taken[name]}


@pytest.mark.parametrize("name", VERBS)
def test_help_ends_with_examples_that_parse(name: str) -> None:
    verb, path = VERBS[name], name.split()
    assert len(verb.examples) >= 2
    assert verb.get_help(click.Context(verb)).endswith("\n".join(f"  {example}" for example in verb.examples))
    for example in verb.examples:
        words = shlex.split(example)
        words = words[words.index("compatcheck") + 1 :]
        rest = list(takewhile(lambda word: word not in ("|", ">"), words))
        assert rest[: len(path)] == path
        verb.make_context(path[-1], rest[len(path) :])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("chek", "check"),
        ("matrix serch", "search"),
        ("check --formt json", "--format"),
        ("hook --falion never", "--fail-on"),
        ("explain CC-2024-001", "CC-2024-"),
        ("check --select CC-2024-00001 requirements.txt", "CC-2024-0001"),
        ("explain atention_masked", "attention_masked"),
        ("probe atention_masked", "attention_masked"),
        ("matrix list --package transfomers", "transformers"),
        ("check --assume training.atention=sdpa requirements.txt", "training.attention"),
        ("check --require gpus", "gpu"),
        ("check requirement.txt", "requirements.txt"),
    ],
)
def test_what_was_meant_is_named(typed: str, meant: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    done = run_command(sys.executable, *typed.split(), cwd=tmp_path)
    assert f"did you mean {meant}" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 4


def test_older_names_of_options_are_taken_and_not_shown(tmp_path: Path) -> None:
    done = run_command(sys.executable, "probe", "--list", "--training", "/nowhere.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "/nowhere.yaml" in done.stderr
    assert "--training" not in shown("probe", "--help-all") and "--target" not in shown("pin", "--help-all")


def test_help_is_chinese_throughout() -> None:
    text = shown("check", "--help-all", "--lang", "zh")
    assert not re.search(r"[A-Za-z]+( [a-z]+){3}", text.partition("示例")[0]), text


@pytest.mark.parametrize("words", [(), ("diagnose",), ("pin",)], ids=lambda words: " ".join(words) or "all")
def test_chinese_help_fits_in_eighty_columns(words: tuple[str, ...]) -> None:
    done = run_command(
        sys.executable, *words, "--help-all" if words else "--help", "--lang", "zh", cwd=Path(), COLUMNS="80"
    )
    text, _heading, examples = done.stdout.partition("示例：")
    assert examples and "选项：" in text
    rows = text.splitlines()
    assert all(cells(row) <= 80 for row in rows), text
    assert not any(row.lstrip()[:1] in set("，。；、）") for row in rows if row.strip()), text
    assert all(row[:1] in (" ", "") or row.endswith("：") or "compatcheck" in row for row in rows), text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("check -q -v", "错误：--quiet 与 --verbose 不能同时使用"),
        ("probe --only x", "错误：没有选项 --only；`compatcheck probe --help-all` 列出全部选项"),
        ("check requirements-wrong.txt --isolated", "第 1 行：'torch=2.5' 不是依赖声明；请写成 name==version"),
        ("check requirements.txt", "可用的设置有 `assume`、`baseline`、"),
    ],
)
def test_errors_are_chinese_and_name_options_as_they_are(typed: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.compatcheck]\nfoo = 1\n", encoding="utf-8")
    (tmp_path / "requirements-wrong.txt").write_text("torch=2.5\n", encoding="utf-8")
    done = run_command(sys.executable, *typed.split(), "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr, done.stderr
