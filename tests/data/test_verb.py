"""The command as people type it: what it says, its exit statuses, and files made to harm it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_command
from tests.data.conftest import CHATML, MakeModel, Write, chat

needs_stack = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="no transformers here")
ENDLESS = CHATML + "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, "data", *map(str, arguments), "--python", sys.executable, cwd=cwd)


def test_without_a_model_the_rows_are_judged_and_the_rest_is_not_known(write: Write, tmp_path: Path) -> None:
    clean = run(write(chat(), chat("Hello?")), cwd=tmp_path)
    assert clean.returncode == 0 and "pass the model's folder with --model" in clean.stdout
    done = run(write(chat(), '{"messages": [', chat(answer="")), cwd=tmp_path)
    assert done.returncode == 1
    assert "broken-line: lines that are not JSON: 1 (column" in done.stdout and "rows   2" in done.stdout
    assert "empty-answer" in done.stdout and "rows   3" in done.stdout and "CC-2024-0005" in done.stdout


@pytest.mark.parametrize(
    ("content", "seen"), [("", "the file is empty"), ("{'a': 1}\n", "line 1"), ('{"a": 1}\n', "none of 1 records")]
)
def test_a_file_with_no_conversation_exits_with_3_and_one_line(tmp_path: Path, content: str, seen: str) -> None:
    (tmp_path / "file.jsonl").write_text(content, encoding="utf-8")
    done = run("file.jsonl", cwd=tmp_path)
    assert done.returncode == 3 and seen in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


def test_wrong_usage_exits_with_2(write: Write, tmp_path: Path) -> None:
    assert run("none.jsonl", cwd=tmp_path).returncode == 2
    done = run(write(chat()), "--model", tmp_path / "none", cwd=tmp_path)
    assert done.returncode == 2 and "there is no such folder" in done.stderr


def training_file(folder: Path, **values: Any) -> Path:
    path = folder / "train.yaml"
    text = "output_dir: out\nlearning_rate: 0.0001\nnum_train_epochs: 1\nper_device_train_batch_size: 2\n"
    path.write_text(text + "".join(f"{key}: {value}\n" for key, value in values.items()), encoding="utf-8")
    return path


@needs_stack
def test_a_problem_is_told_with_rows_entry_pieces_and_fix(write: Write, make_model: MakeModel, tmp_path: Path) -> None:
    file = write(chat(), chat(question="word " * 60), chat("Hello?"))
    done = run(file, "--model", make_model(), "--training", training_file(tmp_path, max_length=40), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "label-cut-off: 1 of 3 sampled rows have no label left after the cut to 40 tokens" in done.stdout
    assert "CC-2024-0005" in done.stdout and "row 2, trained tokens in brackets:" in done.stdout
    assert "(the rest is cut off:)" in " ".join(done.stdout.split()) and "1 problem, 0 notes" in done.stdout


@needs_stack
def test_a_clean_file_exits_with_0_and_json_holds_the_same(write: Write, make_model: MakeModel, tmp_path: Path) -> None:
    done = run(write(chat()), "--model", make_model(), "--format", "json", cwd=tmp_path)
    shape = json.loads(done.stdout)
    assert done.returncode == 0 and shape["problems"] == [] and shape["sampled"] == 1 and shape["unread"] is None
    assert shape["tokenizer"]["transformers"] and shape["lengths"]["median"] > 0


@needs_stack
def test_a_tokenizer_that_cannot_be_run_exits_with_4_and_the_rows_are_told_all_the_same(
    write: Write, make_model: MakeModel, tmp_path: Path
) -> None:
    file = write(chat(), '{"messages": [')
    done = run(file, "--model", make_model(ENDLESS), "--timeout", 2, cwd=tmp_path)
    assert done.returncode == 4 and "timeout: no result within 2 s" in done.stdout and "broken-line" in done.stdout


@needs_stack
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what a process has taken")
@pytest.mark.parametrize("bomb", ["{{ ('x' * 3000000000)|length }}", "{% set a = ['x' * 1000] * 400000000 %}"])
def test_a_template_that_takes_gigabytes_is_a_problem_of_its_rows(
    bomb: str, write: Write, make_model: MakeModel, tmp_path: Path
) -> None:
    done = run(write(chat()), "--model", make_model(CHATML + bomb), cwd=tmp_path)
    assert done.returncode == 1 and "MemoryError" in done.stdout, done.stdout + done.stderr


def test_plain_text_needs_no_tokenizer_and_is_no_failure(write: Write, tmp_path: Path) -> None:
    done = run(write({"text": "once"}, {"text": "upon"}), "--model", tmp_path, cwd=tmp_path)
    assert done.returncode == 0 and "no row of the file is a conversation" in done.stdout


def test_a_folder_and_an_object_over_several_lines_are_told_as_what_they_are(tmp_path: Path) -> None:
    done = run(".", cwd=tmp_path)
    assert done.returncode == 2 and "this is a folder; pass one file of the folder" in done.stderr
    (tmp_path / "one.json").write_text(json.dumps(chat(), indent=2), encoding="utf-8")
    done = run("one.json", cwd=tmp_path)
    assert done.returncode == 3 and "the object does not end on the line where it starts" in done.stderr


@needs_stack
def test_a_template_and_a_pickle_that_would_run_code_do_not(
    write: Write, make_model: MakeModel, tmp_path: Path
) -> None:
    mark = tmp_path / "was-here"
    escape = "{{ cycler.__init__.__globals__.os.system('touch MARK') }}".replace("MARK", str(mark))
    folder = make_model(CHATML + "{% if messages|length > 3 %}" + escape + "{% endif %}")
    (folder / "vocab.pkl").write_bytes(b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR.")
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR.")
    twice = {"messages": 2 * chat()["messages"]}
    done = run(write(chat(), twice), "--model", folder, cwd=tmp_path)
    assert not mark.exists() and "row-refused: the chat template rejects 1 of 2" in done.stdout
    assert done.returncode == 1


def test_memory_stays_bounded_on_a_huge_line(tmp_path: Path) -> None:
    file = tmp_path / "huge.jsonl"
    with file.open("wb") as stream:
        stream.write(b'{"messages": "')
        stream.seek(400 << 20)
        stream.write(b'"}\n' + json.dumps(chat()).encode() + b"\n")
    code = (
        "import re, sys; from compatcheck import data; found = data.survey(sys.argv[1], 9); "
        "peak = int(re.search('VmHWM: *([0-9]+)', open('/proc/self/status').read().replace(chr(9), ' '))[1]) >> 10; "
        "print(found.rows, found.faults['broken-line'].rows, peak)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    rows, broken, mib = done.stdout.split()
    assert (rows, broken) == ("1", "[1]") and int(mib) < 120
