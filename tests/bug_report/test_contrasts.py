"""Two values of one fact in a report, of which one works and the other does not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.bug_report import read_account
from compatcheck.environment import Unknown
from compatcheck.packages.known_releases import releases
from compatcheck.packages.shipped_tables import shipped_table

SENTENCES = (
    "After updating {name} from version {good} to version {bad} saving fails.",
    "After upgrading {name} from {good} to {bad} I get an error.",
    "After the upgrade from {name} {good} to {bad} it crashes.",
    "Since we moved from {name} {good} to {bad}, training hangs.",
    "{name} {good} -> {bad} breaks loading.",
    "The bug appears with {name} {bad} and not with {name} {good}.",
    "The bug appears with {name} {bad} and not with {good}.",
    "It fails with {name} {bad}, but works with {good}.",
    "It works with {name} {good} and fails with {bad}.",
    "With {name} {bad} the loss is nan. This does not occur when using {name} {good}.",
    "{name} {bad} crashes, downgrading to {good} fixes it.",
    "I upgraded {name} to {bad} and now get errors; with {good} all was well.",
    "We run {name} {bad} and it hangs. Going back to {good} makes it train again.",
    "In {name} {good} there is no such problem, from {bad} on there is.",
    "{name} {good}: fine\n{name} {bad}: garbage output",
    "{good}: fine. {bad}: garbage output ({name}).",
    "Using {name} {bad} instead of {good} crashes.",
    "With {name} {good} instead of {name} {bad} it works.",
    "It only happens on {name} {bad}; on {good} I cannot reproduce it.",
    "With {name} {good} the script runs. With {bad} it does not.",
    "{name}: {good} (works) / {bad} (broken)",
    "Saving is slow with {name} {bad} compared to {good}.",
    "{name} {good} ✅ {name} {bad} ❌",
    "升级 {name} 到 {good} 就可以了，原来是 {bad}",
    "{name} 版本问题：{good} 正常；{bad} 的 loss 没有除以累积步数",
    "{name} {bad} introduced this regression, {good} is good.",
    "Old environment (works):\n{name} {good}\n\nNew environment (fails):\n{name} {bad}",
    "Before\n```\n{name}=={good}\n```\nAfter\n```\n{name}=={bad}\n```",
    "{name} 从 {good} 升级到 {bad} 之后报错",
    "从 {name} {good} 升级到 {bad} 之后 loss 变成 nan",
    "升级到 {name} {bad} 之后 loss 变成 nan，降到 {good} 就好了",
    "升级到 {name}{bad} 之后卡住，{good} 没有这个问题",
    "之前 {name} {good} 没问题，现在 {name} {bad} 不行",
    "{name}=={bad} 训练报错，换成 {good} 就正常",
    "{name} 版本问题：{good} 正常；{bad} 的 loss 一直是 0",
    "把 {name} 从 {bad} 退回到 {good} 就恢复了",
    "老版本\n{name} {good}\n\n新版本（有问题）\n{name} {bad}",
    "求助：{name}{bad} 微调，loss 是 nan，降到{good}就好了，这是为什么？",
)
PACKAGES = {
    "torch": ("2.4.1", "2.5.0"),
    "transformers": ("4.57.1", "5.5.0"),
    "peft": ("0.17.1", "0.19.0"),
    "vllm": ("0.10.0", "0.11.2"),
    "deepspeed": ("0.14.4", "0.15.1"),
}
MAJORS = {"torch": 2, "transformers": 4, "peft": 0, "vllm": 0, "deepspeed": 0}


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("name", PACKAGES)
def test_a_sentence_contrasts_what_works_with_what_fails(sentence: str, name: str) -> None:
    good, bad = PACKAGES[name]
    account = read_account(sentence.format(name=name, good=good, bad=bad), "report")
    path = f"distributions.{name}"
    assert [contrast[:3] for contrast in account.contrasts] == [(path, bad, good)], account.said
    assert account.environment.get(path) == bad


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(PACKAGES)), st.sampled_from(SENTENCES), st.data())
def test_any_two_releases_are_read(name: str, sentence: str, data: st.DataObject) -> None:
    listed = (each for each in releases(name, shipped_table) if each.major == MAJORS[name])
    known = [str(each) for each in listed if len(each.release) == 3 and not each.post]
    good, bad = data.draw(st.lists(st.sampled_from(known), min_size=2, max_size=2, unique=True))
    account = read_account(sentence.format(name=name, good=good, bad=bad), "report")
    assert [contrast[1:3] for contrast in account.contrasts] == [(bad, good)], account.said


def test_a_version_that_the_package_never_had_is_not_taken_for_one() -> None:
    account = read_account("triton 3.1.0 crashes. It fails with 9.48.0 as well.", "report")
    assert account.environment.get("distributions.triton") == "3.1.0"
    assert all(each.value != "9.48.0" for each in account.said)


class Setting(NamedTuple):
    text: str
    path: str
    failed: Any
    worked: Any


BATCH, STAGE, DTYPE = "training.per_device_train_batch_size", "training.deepspeed.zero_stage", "training.dtype"
SETTINGS = (
    Setting("Training works with batch size 1, with batch size 2 the loss is nan.", BATCH, 2, 1),
    Setting("batch_size=1没问题，batch_size设为4以后eval_loss就是nan", BATCH, 4, 1),
    Setting("Fine-tuning with ZeRO-2 hangs, with ZeRO-3 it works.", STAGE, 2, 3),
    Setting("zero3训练报错，换成zero2就正常", STAGE, 3, 2),
    Setting("用 zero2 训练 loss 是 nan，换成 zero3 正常，但是速度慢很多", STAGE, 2, 3),
    Setting("Training in bf16 instead of fp16 cures it.", DTYPE, "float16", "bfloat16"),
    Setting("全参微调，fp16，loss 是 nan。换成bf16就正常了", DTYPE, "float16", "bfloat16"),
    Setting("把 --fp16 True 改成 --bf16 True，训练就正常了", DTYPE, "float16", "bfloat16"),
    Setting("Switching from ZeRO-2 to ZeRO-3 makes training work without errors.", STAGE, 2, 3),
    Setting("LoRA training with --fp16 True dies, with --bf16 True it is fine.", DTYPE, "float16", "bfloat16"),
)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.text)
def test_a_contrast_may_be_of_a_setting(setting: Setting) -> None:
    account = read_account(setting.text, "report")
    found = [contrast[:3] for contrast in account.contrasts if contrast.path == setting.path]
    assert found == [(setting.path, setting.failed, setting.worked)], account.said
    assert account.environment.get(setting.path) == setting.failed


def test_what_works_is_never_a_fact_of_the_environment_at_fault() -> None:
    account = read_account("After downgrading torch to 2.4.1 the problem is gone.", "report")
    assert isinstance(account.environment.get("distributions.torch"), Unknown)
    assert [contrast[:3] for contrast in account.contrasts] == [("distributions.torch", None, "2.4.1")]


def test_the_known_value_is_what_fails() -> None:
    account = read_account("- torch: 2.5.0+cu118\n- peft: 0.14.0\n\nWith torch 2.4.1 the loss is fine.", "report")
    assert [contrast[:3] for contrast in account.contrasts] == [("distributions.torch", "2.5.0+cu118", "2.4.1")]
    assert account.contrasts[0].location.line == 4


@pytest.mark.parametrize(
    "text",
    [
        "It works with torch 2.5.0 on one card and fails with torch 2.5.0 on two.",
        "torch 2.5.0 fails. I tried torch 2.4.1 too, the same.",
        "torch 2.5.0 报错，降到 2.4.1 也不行",
        "torch 2.5.0 crashes, should I use 2.4.1?",
        "torch 2.5.0 crashes, the readme says 2.4.1",
        "The loss went from 1.0 to 0.3, torch 2.5.0.",
        "The driver was updated from 535.54 to 550.90, torch 2.5.0 crashes.",
        "nvcc 12.1 works and torch 2.5.0 crashes on 0.25 of the data",
    ],
)
def test_what_is_no_contrast_makes_none(text: str) -> None:
    account = read_account(text, "report")
    assert account.contrasts == ()
    assert account.environment.get("distributions.torch") == "2.5.0"


def test_what_both_sides_of_a_contrast_share_is_stated() -> None:
    account = read_account("LoRA 训练用 bf16 正常，fp16 出现 nan", "report")
    assert [contrast[:3] for contrast in account.contrasts] == [(DTYPE, "float16", "bfloat16")]
    assert account.environment.get("training.method") == "lora"


def test_several_that_work_are_several_contrasts() -> None:
    account = read_account("SFT with ZeRO-2 gives nan.\nZeRO-1 works.\nZeRO-3 works.", "report")
    assert [contrast[1:3] for contrast in account.contrasts if contrast.path == STAGE] == [(2, 1), (2, 3)]
