"""Reports as GitHub's own tools give them: the text is that of a paste, the day and the repository come along."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compatcheck.bug_report import is_thread, read_report
from compatcheck.bug_report._names import distribution_of

BODY = "I pip installed deepspeed.\n\n- numpy 2.0.0\n"
BY_GH = {
    "title": "Import fails",
    "url": "https://github.com/microsoft/DeepSpeed/issues/5671",
    "createdAt": "2024-06-17T10:00:00Z",
    "author": {"login": "reporter"},
    "body": BODY,
    "comments": [
        {"author": {"login": "helper"}, "body": "With torch==2.3.1 I cannot see it."},
        {"author": {"login": "reporter"}, "body": "Python version: 3.9.18"},
    ],
}
BY_API = {
    "title": "Import fails",
    "url": "https://api.github.com/repos/pytorch/vision/issues/12",
    "html_url": "https://github.com/pytorch/vision/issues/12",
    "created_at": "2025-03-20T01:02:03Z",
    "user": {"login": "reporter"},
    "body": BODY,
    "comments": 2,
}


def read(document: Any) -> dict[str, Any]:
    return dict(read_report(json.dumps(document), "issue.json").facts)


def test_what_gh_prints_is_read_with_its_day_its_package_and_what_the_reporter_added() -> None:
    assert read(BY_GH) == {
        "report": {"date": "2024-06-17", "repository": "microsoft/DeepSpeed"},
        "distribution_ranges": {"deepspeed": ""},
        "distributions": {"numpy": "2.0.0"},
        "python": "3.9.18",
    }


def test_the_form_of_the_rest_api_is_read_too() -> None:
    assert read(BY_API) == {
        "report": {"date": "2025-03-20", "repository": "pytorch/vision"},
        "distribution_ranges": {"torchvision": ""},
        "distributions": {"numpy": "2.0.0"},
    }


def test_what_the_text_says_of_itself_stands_beside_the_day() -> None:
    assert read({**BY_GH, "body": "It fails with the latest numpy."})["report"] == {
        "date": "2024-06-17",
        "repository": "microsoft/DeepSpeed",
        "newest": {"numpy": True},
    }


def test_lines_are_those_of_its_text() -> None:
    found = read_report(json.dumps(BY_GH), "issue.json")
    assert str(found.locations["distributions.numpy"]) == "issue.json:5"


@pytest.mark.parametrize(
    ("repository", "package"),
    [
        ("Dao-AILab/flash-attention", "flash-attn"),
        ("HazyResearch/flash-attention", "flash-attn"),
        ("hiyouga/LLaMA-Factory", "llamafactory"),
        ("pytorch/ao", "torchao"),
        ("NVIDIA/Megatron-LM", "megatron-core"),
        ("VikParuchuri/surya", "surya-ocr"),
        ("lm-sys/FastChat", "fschat"),
        ("QwenLM/Qwen3", None),
    ],
)
def test_a_repository_has_its_package_by_whatever_owner(repository: str, package: str | None) -> None:
    assert distribution_of(repository) == package


@pytest.mark.parametrize(
    "document",
    [
        {**BY_GH, "url": "https://example.org/issues/1", "createdAt": "yesterday", "author": None},
        {**BY_GH, "url": "https://example.org/issues/1", "createdAt": "2024-13-45T00:00:00Z", "author": None},
        {"body": BODY, "createdAt": None, "comments": [None, 3, {"body": 5}]},
        {"body": BODY, "title": ["a"], "url": {"x": 1}, "comments": "none"},
    ],
)
def test_without_a_day_or_a_place_it_is_a_report_all_the_same(document: dict[str, Any]) -> None:
    found = read(document)
    assert found["distributions"] == {"numpy": "2.0.0"}
    assert found["report"] == {} and "distribution_ranges" not in found


@pytest.mark.parametrize("text", ['{"body": "x"', '{"body": ' * 100_000, "{torch 2.5.0}", '{"numpy": "2.0.0"}', "[1]"])
def test_what_is_no_issue_is_read_as_plain_text(text: str) -> None:
    assert "date" not in read_report(f"{text}\n\ntorch==2.5.0\n", "report.txt").facts["report"]


def test_a_text_that_states_nothing_is_no_report() -> None:
    assert read_report("It does not work.", "report.txt").facts == {}


@pytest.mark.parametrize(
    ("document", "thread"),
    [
        (BY_GH, True),
        ([BY_API], True),
        ({"data": {"repository": {"discussion": {"title": "a", "body": "b"}}}}, True),
        ({"log_history": [{"loss": 1.0}]}, False),
        ({"zero_optimization": {"stage": 2}}, False),
        ([1, "a"], False),
    ],
)
def test_a_thread_is_told_from_other_json(document: Any, thread: bool) -> None:
    assert is_thread(document) is thread
