"""Input that means harm, or that no terminal ever printed, costs no time and invents no fact."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.bug_report import read_report
from tests.bug_report.test_samples import SAMPLES

LENGTH = 200_000
PIECES = [
    *(
        " ",
        "1",
        "1.",
        "a",
        ">",
        "`",
        "| ",
        ":",
        "version:",
        "\x1b[",
        "\x1b]",
        "<!--",
        "<details ",
        "- ",
        "* ",
        "{",
        "[",
    ),
    *("aFor", "AutoModel.from_pretrained(", "'a/b'", "--model a/", "model: A-"),
    *("latest torch, ", "latest of ", "torch 最新 ", "最新版的", f"{'torch, ' * 50} latest\n"),
    *("with ", "no a ", "zero stage ", "8 x ", "gradient accumulation ", "flash attention ", "用", "全参"),
    *("torch ", "torch==", "torch (", "torch version ", "torch 2.5.1 / ", "torch 2.5+", "cuda ", "cuda1", "RTX 3090 x"),
    *("A100-", "8 x ", "flash_attn-2.5-", "a-1", "/a", "lib/python3.10/site-packages/", "NVIDIA-SMI ", "does not "),
    *(
        "pip install torch==2.5 ",
        "Successfully installed a-1.0 ",
        "from ",
        "this ",
        "my ",
        "显卡",
        "从",
        "ﷺ",
        "\r",
        "\0",
    ),
    *("<html>", "<html><p>", "</div>", "<html><pre>", "&amp;", "Related articles\n", "下载", "相关", "download "),
    *("swift sft --a ", "with deepspeed x.py ", "用accelerate launch -m a ", 'x {"stage": ', '{"zero_optimization": {'),
    *("Qwen-", "llama 3 ", "glm-4-9b ", "models--a--b/", "modelscope/a/b-7b ", "/a/b"),
    *("CANN 8.0.", "CANN ", "npu-smi 1.0 Version: ", "| 0 910B ", "version=8.", "ascend", "8x", "3090s ", "rx 7900 "),
    *("https://a", "[a](http://b", "-cann-toolkit_", '[{"body": "torch 2.5"},', "\x1e", "```\x1e"),
    *(
        "x.__version__",
        ">>> torch.__version__ ",
        "bf16=",
        "--bf16 ",
        "GPU 0: ",
        "but found a==",
        "requires a, but you have ",
    ),
]


def _seconds(text: str) -> float:
    started = time.process_time()
    read_report(text, "report")
    return time.process_time() - started


@pytest.mark.parametrize("piece", PIECES, ids=repr)
@pytest.mark.parametrize("before", ["", "torch 2.5.0 ", "```\n"], ids=["bare", "behind a fact", "in a fence"])
def test_a_line_of_200_000_characters_takes_less_than_a_second(piece: str, before: str) -> None:
    text = before + piece * (LENGTH // len(piece))
    assert any(_seconds(text) < 1 for _ in range(3)), "the first reading compiles, and others use the processor"


@pytest.mark.parametrize("line", [" " * 390 + "x", "torch " * 60, "- " * 190, "{", "```", "a: b", "> " * 100])
def test_many_lines_take_time_in_proportion(line: str) -> None:
    started = time.process_time()
    read_report(f"{line}\n" * 4000, "report")
    assert time.process_time() - started < 4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([line for sample in SAMPLES for line in sample.text.split("\n")]), max_size=30))
def test_lines_in_any_order_give_facts_that_hold_together(lines: list[str]) -> None:
    """Whatever is mixed: no fact has a reason to be unknown, and every fact is one that a line of the text gives."""
    from compatcheck.environment import Unknown

    environment = read_report("\n".join(lines), "report")
    for path in environment.reasons:
        assert isinstance(environment.get(path), Unknown), path
    for path, at in environment.locations.items():
        assert 1 <= (at.line or 0) <= max(len(lines), 1), path


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400))
def test_no_text_makes_it_fail(text: str) -> None:
    read_report(text, "report")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_report_said_twice_says_the_same(sample: object) -> None:
    """Repeating a report, as a thread that quotes it does, changes no fact."""
    text = sample.text  # type: ignore[attr-defined]
    once, twice = read_report(text, "report"), read_report(f"{text}\n\n---\n\n{text}", "report")
    assert twice.facts == once.facts
    assert twice.locations == once.locations
