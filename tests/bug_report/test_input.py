"""A report in whatever form it is saved: encodings, web pages, JSON of GitHub, long files, pictures."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.bug_report import read_report, read_text_of_report
from compatcheck.bug_report._encoding import decoded
from compatcheck.bug_report._html import is_html, text_of
from compatcheck.bug_report._web_page import without_furniture
from compatcheck.errors import InputError

ENGLISH = "We train with torch 2.5.1 and peft 0.14.0.\nThe loss is nan from step 3 on.\n"
CHINESE = "环境 torch 2.5.1，peft 0.14.0，显卡是 A800\n第三步以后损失就是 nan，怎么办\n"
VERSIONS = {"torch": "2.5.1", "peft": "0.14.0"}

PAGE = """<!DOCTYPE html>
<html><head><title>NaN</title><style>p {color: red}</style>
<script>var pinned = "torch==1.13.1";</script></head>
<body class="has-sidebar"><nav><a>transformers 4.30.2 docs</a> <a>Windows 11</a></nav>
<div class="page-sidebar">Drivers for GeForce RTX 4090</div>
<article>
<h1>Adapter is NaN</h1><p>peft 0.14.0 on one A800<br>with bf16</p>
<pre><code class="language-text">torch==2.5.1
numpy==1.26.4</code></pre>
</article>
<footer>CUDA 12.9 &copy; 2025</footer></body></html>
"""


def facts_of(path: Path) -> dict[str, Any]:
    return dict(read_report(*read_text_of_report(str(path))).facts)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("gb18030"),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode() + "——损失——".encode()[:-1] + b"\xff\n",
        lambda text: text.replace("torch", "\x1b[31mtorch\x1b[0m").encode(),
    ],
    ids=["gb18030", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "mark", "stray bytes", "colours"],
)
def test_every_encoding_gives_the_same_facts(tmp_path: Path, text: str, encode: Any) -> None:
    path = tmp_path / "report.txt"
    path.write_bytes(encode(text))
    assert facts_of(path)["distributions"] == VERSIONS


def test_windows_quotes_in_an_english_report_are_no_chinese() -> None:
    text = decoded(ENGLISH.encode() * 10 + b"It doesn\x92t work with \x93torch\x94 here.\n", "report")
    assert text.startswith(ENGLISH) and not any("\u4e00" <= char <= "\u9fff" for char in text)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG file"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG file"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "a WebP file"),
        (b"%PDF-1.7\n1 0 obj\n", "a PDF file"),
        (b"PK\x03\x04\x14\0", "a ZIP archive"),
        (bytes(range(1, 32)) * 40, "binary"),
        (bytes(range(256)) * 4, "binary"),
    ],
)
def test_a_picture_is_refused_with_what_to_do(raw: bytes, said: str) -> None:
    with pytest.raises(InputError) as caught:
        decoded(raw, "shot")
    message = str(caught.value)
    assert said in message and "\n" not in message and ("paste" in message or "unpack" in message)


@pytest.mark.parametrize("piped", [False, True])
def test_a_long_file_is_read_at_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piped: bool) -> None:
    monkeypatch.setattr("compatcheck.files.limits.REPORT_BYTES", 8192)
    noise = "step 1 of 2 is done\n" * 1000
    raw = f"torch==2.5.1\n{noise}torch==1.0.0\n{noise}peft==0.14.0\n".encode()
    path = tmp_path / "run.log"
    path.write_bytes(raw)
    if piped:
        stream = io.BytesIO(raw)
        stream.seekable = lambda: False  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    text, _ = read_text_of_report("-" if piped else str(path))
    assert len(text) < 9000 and "KiB in the middle are not read" in text
    assert read_report(text, "run.log").facts["distributions"] == VERSIONS


def test_a_page_is_read_without_its_surroundings() -> None:
    found = read_report(PAGE, "page.html")
    assert found.facts["distributions"] == {**VERSIONS, "numpy": "1.26.4"}
    assert [gpu["name"] for gpu in found.facts["gpus"]] == ["A800"]
    assert "platform" not in found.facts and "cuda" not in found.facts and found.reasons == {}
    lines = {path: at.line for path, at in found.locations.items()}
    assert lines["distributions.peft"] == 7 and lines["distributions.torch"] == 8


def test_a_page_in_one_line_is_read_as_its_lines() -> None:
    found = read_report(PAGE.replace("</code>", "\n</code>", 1).replace("\n<", "<"), "page.html")
    assert found.facts["distributions"] == {**VERSIONS, "numpy": "1.26.4"}


def test_a_configuration_in_a_page_of_one_line_keeps_that_line() -> None:
    yaml = "model_name_or_path: acme/bar-7b<br>stage: sft<br>do_train: true<br>finetuning_type: full<br>template: bar"
    found = read_report(f"<html><body>\n<div>{yaml}</div>\n</body></html>", "page.html")
    assert found.get("training.template") == "bar" and found.get("training.method") == "full"
    assert {at.line for at in found.locations.values()} == {2}


def test_a_page_whose_every_part_is_called_a_side_bar_is_read() -> None:
    page = f"<html><body><div class='sidebar-left'><p>{ENGLISH}</p></div></body></html>"
    assert read_report(page, "page.html").facts["distributions"] == VERSIONS


@pytest.mark.parametrize(
    "text", ["<details><summary>pip</summary>\ntorch==2.5.1\n</details>", "<Trainer object> fails", "a < b and c > d"]
)
def test_markdown_with_tags_is_no_page(text: str) -> None:
    assert not is_html(text)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.sampled_from(["<p>", "</p>", "<pre>", "<script>", "<div class=ad", "&lt", "x\n", "<!--", "\x1e", "<br/>"])
    )
)
def test_any_html_keeps_its_number_of_lines(parts: list[str]) -> None:
    html = "<html>" + "".join(parts)
    assert text_of(html).count("\n") == html.count("\n")


ISSUE = {
    "title": "NaN",
    "body": "torch==2.5.1",
    "user": {"login": "reporter"},
    "created_at": "2025-02-03T00:00:00Z",
    "html_url": "https://github.com/huggingface/peft/issues/7",
}
REPLIES = [
    {"body": "I have torch==2.4.0", "user": {"login": "other"}},
    {"body": "peft==0.14.0", "user": {"login": "reporter"}},
]


@pytest.mark.parametrize(
    "document",
    [
        [ISSUE, *REPLIES],
        {"items": [{**ISSUE, "comments": REPLIES}]},
        {"data": {"repository": {"discussion": {**ISSUE, "comments": {"nodes": REPLIES}}}}},
    ],
    ids=["list of comments", "search result", "discussion"],
)
def test_a_thread_is_what_its_reporter_wrote(document: Any) -> None:
    found = read_report(json.dumps(document), "thread.json").facts
    assert found["distributions"] == VERSIONS
    assert found["report"] == {"date": "2025-02-03", "repository": "huggingface/peft"}


def test_comments_without_their_issue_are_read() -> None:
    assert read_report(json.dumps(REPLIES[1:]), "comments.json").facts["distributions"] == {"peft": "0.14.0"}


def test_of_two_reports_only_what_both_state_is_known() -> None:
    first, second = {**ISSUE, "body": "torch==2.5.1, peft==0.14.0"}, {**ISSUE, "body": "torch==2.4.0, peft==0.14.0"}
    found = read_report(json.dumps([first, second]), "two.json")
    assert found.facts["distributions"] == {"peft": "0.14.0"}
    assert "2 reports" in found.reasons["distributions.torch"]


TEMPLATE = "### System Info\ntorch=={}, peft==0.14.0\n\n### Reproduction\nIt fails.\n"


@pytest.mark.parametrize(
    "text",
    [
        TEMPLATE.format("2.5.1") + "\n" + TEMPLATE.format("2.4.0"),
        f"=== Report 1 ===\n{TEMPLATE.format('2.5.1')}=== Report 2 ===\n{TEMPLATE.format('2.4.0')}",
        "报告1：\ntorch==2.5.1, peft==0.14.0\n报告2：\npeft==0.14.0, transformers==4.48.0\n",
    ],
    ids=["a template twice", "numbers", "numbers in Chinese"],
)
def test_of_two_reports_in_one_text_only_what_both_state_is_known(text: str) -> None:
    found = read_report(text, "two.txt")
    assert found.facts["distributions"] == {"peft": "0.14.0"}
    assert "2 reports" in found.reasons["distributions.torch"]


def test_a_report_that_is_there_twice_keeps_its_facts_and_lines() -> None:
    once, twice = read_report(TEMPLATE.format("2.5.1"), "a"), read_report(TEMPLATE.format("2.5.1") * 2, "a")
    assert twice.facts == once.facts and twice.locations == once.locations


@pytest.mark.parametrize(
    "text",
    [
        "Report 1\ntorch==2.5.1\npeft==0.14.0",
        "### Environment\ntorch==2.5.1\n### Environment\npeft==0.14.0",
        "see issue 12\ntorch==2.5.1\nsee issue 13\npeft==0.14.0",
    ],
)
def test_one_report_stays_one(text: str) -> None:
    assert read_report(text, "one.txt").facts["distributions"] == VERSIONS


FURNITURE = [
    "相关文章推荐",
    "You might also like",
    "NVIDIA GeForce 572.16 for Windows 11 x64 下载",
    "Download CUDA Toolkit 12.4 for Ubuntu 22.04",
    "Driver Download",
    "RTX 4090 Driver Downloads",
    "We use cookies on this site, also on Windows 10. Accept all cookies",
    "Home | Products | PyTorch 2.9 | Docs | Support",
    "首页 | 博客 | 下载 | torch 2.0 教程 | 登录",
    "© 2024 Example, built with torch 2.0.1",
]


@pytest.mark.parametrize("line", FURNITURE)
def test_what_stands_around_an_article_states_nothing(line: str) -> None:
    text = f"{ENGLISH}\n{line}\n"
    assert without_furniture(text) == f"{ENGLISH}\n\n"


@pytest.mark.parametrize("heading", ["热门文章", "Related articles", "Hot Network Questions", "登录后查看全文"])
def test_a_list_of_other_pages_goes_on_to_the_end(heading: str) -> None:
    found = read_report(f"{ENGLISH}{heading}\nWindows 11 with an RTX 4090\nnumpy 1.26.4 on Python 3.9\n\nC++\n", "page")
    assert found.facts["distributions"] == VERSIONS
    assert found.facts.keys() == {"distributions", "report"}


@pytest.mark.parametrize(
    "line",
    [
        "Downloading the model fails on Windows 11",
        "我从魔搭下载了模型，系统是 Windows 11",
        "Download of the shards is stuck, the system is Windows 11",
        "- Download weights with Windows 11",
        "OS: Windows 11",
        "platform | Windows 11 | x64",
    ],
)
def test_a_line_of_the_report_stays(line: str) -> None:
    assert without_furniture(line) == line


def test_what_follows_a_list_of_other_pages_is_read() -> None:
    text = f"Related articles\nWindows 11\n\n### Environment\n{ENGLISH}"
    assert read_report(text, "page").facts["distributions"] == VERSIONS


READING = "{{'loss': {0}.25, 'grad_norm': 1.{0}, 'learning_rate': 1e-05, 'epoch': 0.{0}}}"
RANK = "node{0}:71:{0} [{0}] NCCL INFO Channel 0{0}/0 : 0[0] -> 1[1] via P2P/CUMEM"


def test_a_log_that_repeats_itself_is_read_in_a_part_of_the_time() -> None:
    noise = [form.format(number) for number in range(20_000) for form in (READING, RANK)]
    text = "\n".join([*noise, "torch==2.5.1", "peft==0.14.0"])
    started = time.process_time()
    found = read_report(text, "run.log")
    assert time.process_time() - started < 4
    assert found.facts["distributions"] == VERSIONS
    assert found.locations["distributions.torch"].line == len(noise) + 1


def test_a_long_list_of_packages_is_no_repetition() -> None:
    names = [
        f"package-{'abcdefghij'[number // 50]}{'klmnopqrst'[number % 10]}{'uvwxy'[number // 10 % 5]}"
        for number in range(500)
    ]
    rows = "\n".join(f"{name}=={number}.{number % 7}.1" for number, name in enumerate(names))
    assert len(read_report(rows, "requirements.txt").facts["distributions"]) == len(set(names))


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300)
    | st.text(max_size=150).flatmap(
        lambda text: st.sampled_from(
            [text.encode(each, "ignore") for each in ("utf-8", "gb18030", "utf-16", "utf-16-le", "latin-1")]
        )
    )
)
def test_any_bytes_are_a_text_or_are_refused(raw: bytes) -> None:
    try:
        text = decoded(raw, "report")
    except InputError as refused:
        assert "\n" not in str(refused)
    else:
        read_report(text, "report")
