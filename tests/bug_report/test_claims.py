"""How a report mentions a fact: decided by the clause, whatever stands around it."""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.bug_report import read_account, read_report
from compatcheck.environment import Unknown
from compatcheck.results.cases import FACTUAL, Account


class Clause(NamedTuple):
    text: str
    package: str
    version: str
    how: str


CLAUSES = (
    Clause("torch 2.6.0 is installed", "torch", "2.6.0", "stated"),
    Clause("we use transformers 4.48.3", "transformers", "4.48.3", "stated"),
    Clause("my numpy version is 2.1.0", "numpy", "2.1.0", "stated"),
    Clause("saving fails with peft 0.19.0", "peft", "0.19.0", "failed"),
    Clause("it works with trl 0.14.0", "trl", "0.14.0", "worked"),
    Clause("the readme says deepspeed 0.15.1", "deepspeed", "0.15.1", "advised"),
    Clause("a colleague has accelerate 1.2.0", "accelerate", "1.2.0", "elsewhere"),
    Clause("datasets 3.1.0 会报错", "datasets", "3.1.0", "failed"),
    Clause("vllm 0.8.1 没问题", "vllm", "0.8.1", "worked"),
    Clause("同事用的是 bitsandbytes 0.45.0", "bitsandbytes", "0.45.0", "elsewhere"),
    Clause("建议用 flash-attn 2.7.0", "flash-attn", "2.7.0", "advised"),
    Clause("我的 triton 版本是 3.1.0", "triton", "3.1.0", "stated"),
)
SEPARATORS = (", ", "，", "; ", "；", "。", "\n", "\n- ", "、")
PLEAS = (
    *("please help", "how to fix it?", "any ideas?", "need help", "thanks in advance", "can somebody help me?"),
    *("求助", "求解决", "请问怎么解决？", "怎么办", "谢谢大佬", "I follow the official demo", "用的是官方的代码"),
)


def hows(account: Account) -> dict[str, str]:
    return {said.path.removeprefix("distributions."): said.how for said in account.said if said.doubt is None}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=6, unique=True), st.data())
def test_clauses_keep_their_manner_in_any_order(clauses: list[Clause], data: st.DataObject) -> None:
    text = clauses[0].text
    for clause in clauses[1:]:
        text += data.draw(st.sampled_from(SEPARATORS)) + clause.text
    account = read_account(text, "report")
    assert {each.package: each.how for each in clauses} == hows(account), text
    for each in clauses:
        known = account.environment.get(f"distributions.{each.package}")
        assert known == each.version if each.how in FACTUAL else isinstance(known, Unknown), (text, each)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=3, unique=True),
    st.sampled_from(PLEAS),
    st.sampled_from(SEPARATORS),
    st.booleans(),
)
def test_a_plea_takes_nothing_away(clauses: list[Clause], plea: str, separator: str, first: bool) -> None:
    text = separator.join(each.text for each in clauses)
    with_plea = separator.join((plea, text) if first else (text, plea))
    plain, pleading = read_account(text, "report"), read_account(with_plea, "report")
    assert pleading.environment.facts == plain.environment.facts, with_plea
    assert hows(pleading) == hows(plain), with_plea


class Mention(NamedTuple):
    text: str
    path: str
    value: Any
    how: str


MENTIONS = (
    Mention("Flash-attn 2.6.3 does not support this card.", "distributions.flash-attn", "2.6.3", "failed"),
    Mention("PyTorch 2.9.1+cu130, as of this spring.", "distributions.torch", "2.9.1+cu130", "stated"),
    Mention("The loss is nan, torch 2.6.0, how do I fix this?", "distributions.torch", "2.6.0", "stated"),
    Mention("torch2.6.0 transformers4.48.0，请问怎么解决？", "distributions.torch", "2.6.0", "stated"),
    Mention("环境：torch 2.6.0，python 3.11", "distributions.torch", "2.6.0", "stated"),
    Mention("依赖：transformers==4.48.0", "distributions.transformers", "4.48.0", "stated"),
    Mention("我的 torch 版本是 2.6.0，会不会是它的问题？", "distributions.torch", "2.6.0", "stated"),
    Mention("my torch version is 2.6.0, could that be the reason?", "distributions.torch", "2.6.0", "stated"),
    Mention("I tried a lower rate, no change, torch is 2.6.0.", "distributions.torch", "2.6.0", "stated"),
    Mention("试过别的学习率，没用，torch 是 2.6.0", "distributions.torch", "2.6.0", "stated"),
    Mention("用官方脚本 torch 2.6.0 怎么解决？", "distributions.torch", "2.6.0", "stated"),
    Mention("Any suggestions for torch 2.6.0?\nWe have torch 2.6.0.", "distributions.torch", "2.6.0", "stated"),
    Mention("official demo with torch 2.6.0 needs help", "distributions.torch", "2.6.0", "stated"),
    Mention("用 torch 2.6.0 训练没问题，推理的时候报错", "distributions.torch", "2.6.0", "failed"),
    Mention("torch 2.6.0 as required by the wheel", "distributions.torch", "2.6.0", "stated"),
    Mention("It was fixed in torch 2.5.1, but I still see it with 2.6.0.", "distributions.torch", "2.6.0", "failed"),
    Mention("8卡 zero3 卡住", "training.world_size", 8, "failed"),
    Mention("torch 2.6.0 安装成功，但是 vllm 编译失败", "distributions.torch", "2.6.0", "stated"),
    Mention("昨天更新了 torch（2.6.0），之后 loss 不下降", "distributions.torch", "2.6.0", "stated"),
    Mention("torch>=2.7 才有这个函数，我的是 2.6.0", "distributions.torch", "2.6.0", "stated"),
    Mention("Would torch 2.7.1 help?", "distributions.torch", "2.7.1", "asked"),
    Mention("要不要换成 torch 2.7.1？", "distributions.torch", "2.7.1", "asked"),
    Mention("Why does torch 2.6.0 give nan?", "distributions.torch", "2.6.0", "failed"),
    Mention("You should install torch 2.7.1.", "distributions.torch", "2.7.1", "advised"),
    Mention("It needs torch 2.7.1 to run.", "distributions.torch", "2.7.1", "advised"),
    Mention("有人说用 torch 2.7.1", "distributions.torch", "2.7.1", "advised"),
    Mention("On another machine there is torch 2.7.1.", "distributions.torch", "2.7.1", "elsewhere"),
    Mention("I went from torch 2.5.1 down to 2.4.1.", "distributions.torch", "2.4.1", "tried"),
    Mention("The error vanishes in torch 2.7.1.", "distributions.torch", "2.7.1", "worked"),
    Mention("The error does not occur with torch 2.7.1.", "distributions.torch", "2.7.1", "worked"),
    Mention("With torch 2.7.1, everything works.", "distributions.torch", "2.7.1", "worked"),
    Mention("With torch 2.6.0, training starts fine, but then it crashes.", "distributions.torch", "2.6.0", "failed"),
    Mention("torch 2.6.0 推理正常，但是训练报错", "distributions.torch", "2.6.0", "failed"),
    Mention("降到 torch 2.4.1 之后就好了", "distributions.torch", "2.4.1", "worked"),
    Mention("降到 torch 2.4.1，还是一样报错", "distributions.torch", "2.4.1", "failed"),
    Mention("torch 是源码装的 2.6.0", "distributions.torch", "2.6.0", "stated"),
    Mention("torch went to 2.6.0 over night", "distributions.torch", "2.6.0", "stated"),
    Mention("检查 transformers 库版本（4.48.0）是否合适", "distributions.transformers", "4.48.0", "stated"),
    Mention("Fine-tuning in bf16 instead of fp16 fixes the nan.", "training.dtype", "bfloat16", "worked"),
    Mention("训练命令里用的是 ds_z3_config.json", "training.deepspeed.zero_stage", 3, "stated"),
    Mention("I trained with LLaMA-Factory before, now with ms-swift.", "training.framework", "ms-swift", "stated"),
    Mention("原本用 llama-factory 训练，现在换到了 swift", "training.framework", "llama-factory", "elsewhere"),
)


@pytest.mark.parametrize("mention", MENTIONS, ids=lambda mention: mention.text)
def test_a_mention_has_the_manner_of_its_clause(mention: Mention) -> None:
    account = read_account(mention.text, "report")
    found = [(each.value, each.how) for each in account.said if each.path == mention.path]
    assert (mention.value, mention.how) in found, account.said


@pytest.mark.parametrize(
    "text",
    [
        "Nan again\nSolutions\n- use 4-bit quantisation\n- load with torch 2.7.1",
        "分析\n一些文字\n解决方案\n- 使用 torch 2.7.1\n- 尝试 4bit 量化（bnb）",
        "What I tried:\n- torch 2.7.1\n- peft 0.15.0",
        "You could use this:\n```\ntorch==2.7.1\n```",
    ],
)
def test_advice_and_trials_in_lists_are_no_facts(text: str) -> None:
    facts = read_report(text, "report").facts
    assert "distributions" not in facts and "training" not in facts


@pytest.mark.parametrize(
    "text",
    [
        "I train with these settings, may I change the batch size?\n```\ntorch==2.6.0\npeft==0.14.0\n```",
        "It works on one GPU and hangs on eight:\n```\ntorch==2.6.0\npeft==0.14.0\n```",
    ],
)
def test_a_question_or_a_failure_before_a_fence_leaves_it_the_reporters_own(text: str) -> None:
    assert read_report(text, "report").get("distributions.torch") == "2.6.0"


RANKS = (
    ("- torch: 2.6.0\n- peft: 0.14.0\n\nI think it is torch 2.5.1 here.", "2.6.0"),
    ("torch 2.5.1 is what we use.\nWith torch 2.6.0 it crashes.", "2.6.0"),
    ("之前用 torch 2.5.1，现在 torch 2.6.0 不行", "2.6.0"),
    ("torch 2.5.1\n\nNow we are on torch 2.6.0.", "2.6.0"),
    ("- torch: 2.5.1\n- peft: 0.14.0\n\nWith torch 2.6.0 the loss is nan, torch 2.5.1 is fine.", "2.6.0"),
)


@pytest.mark.parametrize(("text", "torch"), RANKS)
def test_what_weighs_more_outranks_the_rest(text: str, torch: str) -> None:
    assert read_report(text, "report").get("distributions.torch") == torch


def test_what_contradicts_is_unknown_and_kept_as_readings() -> None:
    account = read_account("torch 2.6.0, peft 0.14.0\n\nit runs on torch 2.5.1 and peft 0.13.2 there", "report")
    assert isinstance(account.environment.get("distributions.torch"), Unknown)
    assert account.environment.reasons["distributions.torch"] == "line 1 says 2.6.0, line 3 says 2.5.1"
    assert account.variants == (
        {"distributions.torch": "2.6.0", "distributions.peft": "0.14.0"},
        {"distributions.torch": "2.5.1", "distributions.peft": "0.13.2"},
    )


def test_at_most_four_readings_are_kept() -> None:
    account = read_account("\n".join(f"it runs on torch 2.{minor}.0" for minor in range(9)), "report")
    assert [reading["distributions.torch"] for reading in account.variants] == ["2.0.0", "2.1.0", "2.2.0", "2.3.0"]


def test_what_is_only_named_as_a_bound_is_a_reading_and_no_fact() -> None:
    account = read_account("The bug exists since trl 0.12.0.", "report")
    assert isinstance(account.environment.get("distributions.trl"), Unknown)
    assert account.variants == ({"distributions.trl": "0.12.0"},)


@pytest.mark.parametrize(("day", "torch"), [("2024-09-30", None), ("2024-10-18", "2.5.0")])
def test_a_release_from_after_the_day_of_the_report_is_no_fact(day: str, torch: str | None) -> None:
    document = {"title": "nan", "body": "torch 2.5.0 gives nan", "createdAt": f"{day}T10:00:00Z", "author": None}
    known = read_report(json.dumps(document), "issue.json").get("distributions.torch")
    assert known == torch if torch else isinstance(known, Unknown)


def test_every_mention_is_told_with_its_line() -> None:
    account = read_account("torch 2.6.0\n\nit works with peft 0.13.2\nyou need trl 0.14.0", "report")
    told = [(each.path, each.value, each.how, each.location.line) for each in account.said]
    assert told == [
        ("distributions.torch", "2.6.0", "stated", 1),
        ("distributions.peft", "0.13.2", "worked", 3),
        ("distributions.trl", "0.14.0", "advised", 4),
    ]


@pytest.mark.parametrize(
    "separator", [", ", "，", "、", ": ", "；", "; ", " but ", " - ", "(a)", "?", " 中 中", "\n", "。"]
)
@pytest.mark.parametrize("before", ["", "torch 2.6.0 works", "降到 torch 2.4.1"])
def test_100_000_separators_take_less_than_a_second(separator: str, before: str) -> None:
    text = before + separator * (100_000 // len(separator))
    started = time.process_time()
    read_account(text, "report")
    assert time.process_time() - started < 1


def test_clauses_that_differ_take_time_in_proportion() -> None:
    def seconds(count: int) -> float:
        text = "\n".join(f"it works with torch 2.{n % 9}.{n}, and fails with peft 0.{n}.0" for n in range(count))
        started = time.process_time()
        read_account(text, "report")
        return time.process_time() - started

    seconds(10)
    assert seconds(1600) < 6 * max(seconds(400), 0.05)
