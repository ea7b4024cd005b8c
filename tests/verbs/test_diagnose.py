"""`compatcheck diagnose`: what people paste, in the encodings they paste it in, and what comes out."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, run_command

REPORT = """### System Info / 系統信息

- `transformers` version: 4.48.0
- Platform: Linux-5.15.0-107-generic-x86_64-with-glibc2.31
- Python version: 3.10.14
- PyTorch version (GPU?): 2.5.0+cu118 (True)
- GPU type: NVIDIA A100-SXM4-80GB
- DeepSpeed version: 0.14.4

显卡：A100 80GB，微调 loss 为 0

### Reproduction

```json
{
  "zero_optimization": {"stage": 2, "overlap_comm": true, "contiguous_gradients": true},
  "bf16": {"enabled": true}
}
```
"""
OVERLAP = "CC-2024-0021"


def diagnose(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, "diagnose", *arguments, cwd=cwd)


def piped(raw: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "compatcheck", "diagnose", "-", *arguments]
    return subprocess.run(command, cwd=ROOT, input=raw, capture_output=True, check=False)


@pytest.fixture
def report(tmp_path: Path) -> str:
    path = tmp_path / "report.md"
    path.write_text(REPORT, encoding="utf-8")
    return str(path)


def test_a_report_is_explained_with_the_lines_that_speak_for_it(report: str) -> None:
    done = diagnose(report)
    assert done.returncode == 1, done.stderr
    assert OVERLAP in done.stdout and "deepspeed 0.14.4" in done.stdout


def test_facts_say_how_and_where_they_were_mentioned(report: str) -> None:
    found = json.loads(diagnose(report, "--format", "json").stdout)
    said = {each["path"]: each for each in found["facts"]}
    torch = said["distributions.torch"]
    assert (torch["value"], torch["how"]) == ("2.5.0+cu118", "stated")
    assert torch["location"] == {"file": report, "line": 6}
    overlap = next(each for each in found["explanations"] if each["finding"]["id"] == OVERLAP)
    assert any(each["location"] == {"file": report, "line": 16} for each in overlap["for"])


def test_the_snapshot_holds_what_the_report_states(report: str, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    assert diagnose(report, "--snapshot-out", str(snapshot)).returncode == 1
    assert json.loads(snapshot.read_text(encoding="utf-8"))["distributions"]["deepspeed"] == "0.14.4"
    assert diagnose(report, "--env").stdout == snapshot.read_text(encoding="utf-8")


def test_the_snapshot_alone_ends_clean_and_goes_where_it_is_told(report: str, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    done = diagnose(report, "--env", "-o", str(target))
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(target.read_text(encoding="utf-8"))["distributions"]["deepspeed"] == "0.14.4"


def test_an_assumed_fact_counts_over_the_report(report: str) -> None:
    found = json.loads(diagnose(report, "--assume", "distributions.deepspeed=0.19.9", "--format", "json").stdout)
    assert found["environment"]["distributions"]["deepspeed"] == "0.19.9"
    assert all(each["band"] == "long shot" for each in found["explanations"] if each["finding"]["id"] == OVERLAP)


def test_the_older_name_says_so_and_does_the_same(report: str) -> None:
    done = run_command(sys.executable, "triage", report, cwd=ROOT)
    assert (done.returncode, done.stdout) == (1, diagnose(report).stdout)
    assert done.stderr == "compatcheck: `triage` is the older name of `diagnose`\n"


@pytest.mark.parametrize(
    "raw",
    [
        REPORT.encode(),
        b"\xef\xbb\xbf" + REPORT.encode(),
        REPORT.encode("utf-16"),
        b"\xfe\xff" + REPORT.encode("utf-16-be"),
        REPORT.encode("gbk"),
        REPORT.replace("\n", "\r\n").encode(),
        REPORT.replace("PyTorch", "\x1b[1;32mPyTorch\x1b[0m").encode(),
        "".join(f"> {line}\n" for line in REPORT.splitlines()).encode(),
        "".join(f"    {line}\n" for line in REPORT.splitlines()).encode(),
    ],
    ids=["utf-8", "utf-8 with mark", "utf-16", "utf-16-be", "gbk", "crlf", "colours", "quoted", "indented"],
)
def test_a_report_reads_the_same_in_every_encoding_and_dress(raw: bytes) -> None:
    snapshot = json.loads(piped(raw, "--env").stdout)
    assert snapshot["distributions"] == {"transformers": "4.48.0", "torch": "2.5.0+cu118", "deepspeed": "0.14.4"}
    assert snapshot["locations"]["distributions.torch"] == {"file": "standard input", "line": 6}
    assert snapshot["training"]["deepspeed"]["overlap_comm"] is True
    assert [gpu["name"] for gpu in snapshot["gpus"]] == ["NVIDIA A100-SXM4-80GB"]


@pytest.mark.parametrize(
    ("raw", "status", "said"),
    [
        (b"", 3, "the input contains no version, setting, loss or error"),
        (b"Hello, please help.", 3, "the input contains no version, setting, loss or error"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 2, "images and PDFs are not read"),
        (bytes(range(1, 32)) * 40, 2, "the file is binary"),
        ((b"a" * 999 + b"\n") * 9000, 3, "the input contains no version, setting, loss or error"),
    ],
    ids=["empty", "no facts", "an image", "control characters", "large"],
)
def test_what_holds_nothing_gets_one_line(raw: bytes, status: int, said: str) -> None:
    done = piped(raw)
    assert (done.returncode, done.stdout) == (status, b""), done.stderr
    error = done.stderr.decode()
    assert error.count("\n") == 1 and said in error


def test_a_missing_file_gets_one_line(tmp_path: Path) -> None:
    name = str(tmp_path / "nowhere.md")
    done = diagnose(name)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and name in done.stderr


def test_a_gpu_alone_explains_nothing_and_is_no_error() -> None:
    assert piped(b"GPU: NVIDIA A100 80GB").returncode == 0


def test_an_image_that_a_report_names_brings_what_it_holds(tmp_path: Path) -> None:
    wheel = "flash_attn-2.5.3+cu122torch2.1cxx11abi{}-cp310-cp310-linux_x86_64.whl"
    report = tmp_path / "report.txt"
    report.write_text(f"I use nvcr.io/nvidia/pytorch:23.10-py3 on A100\n\n{wheel.format('FALSE')}\n", encoding="utf-8")
    found = json.loads(diagnose(str(report), "--format", "json").stdout)
    fits = {each["finding"]["id"]: each["fit"] for each in found["explanations"]}
    assert found["environment"]["image"]["release"] and fits["CC-2024-0620"] == "affected"


def test_the_day_and_the_repository_of_an_issue_decide_what_it_leaves_out(tmp_path: Path) -> None:
    """numpy 2 came out on 2024-06-16, and DeepSpeed 0.14.4, the first that can be imported beside it, on 2024-06-21."""
    issue = {"title": "Import fails", "body": "Since today:\n\nnumpy==2.0.0\n", "createdAt": "2024-06-17T08:00:00Z"}
    chances = {}
    for place in ("microsoft/DeepSpeed", "QwenLM/Qwen3"):
        filed = tmp_path / "issue.json"
        filed.write_text(json.dumps({**issue, "url": f"https://github.com/{place}/issues/5671"}), encoding="utf-8")
        found = json.loads(diagnose(str(filed), "--format", "json").stdout)
        assert found["environment"]["report"]["repository"] == place
        probability = {each["finding"]["id"]: each["probability"] for each in found["explanations"]}
        chances[place] = probability.get("CC-2024-0027", 0.0)
    assert chances["microsoft/DeepSpeed"] > 1.5 * chances["QwenLM/Qwen3"]


NAN_REPORT = """Every step logs loss 0.0 and grad_norm nan.

- PyTorch version: 2.5.0+cu124
- transformers version: 4.48.0
- GPU type: NVIDIA A100-SXM4-80GB

TrainingArguments(bf16=True, per_device_train_batch_size=2)
AutoModelForCausalLM.from_pretrained("THUDM/glm-4-9b-hf", attn_implementation="sdpa")
"""


def written(folder: Path, **texts: str) -> list[str]:
    """Files by their stems, in the order given."""
    paths = [folder / f"{name}.txt" for name in texts]
    for path, text in zip(paths, texts.values()):
        path.write_text(text, encoding="utf-8")
    return list(map(str, paths))


def found_in(*arguments: str) -> Any:
    return json.loads(diagnose(*arguments, "--format", "json").stdout)


def test_inputs_of_every_kind_make_one_case(tmp_path: Path) -> None:
    report, packages, log = written(
        tmp_path,
        report="torch 2.5.0 on 8 x A100",
        packages="deepspeed==0.14.2\n",
        log="".join(f"{{'loss': 0.0, 'grad_norm': nan, 'step': {n}}}\n" for n in range(1, 6)),
    )
    (tmp_path / "train.sh").write_text(
        "torchrun train.py --bf16 True --per_device_train_batch_size 2\n", encoding="utf-8"
    )
    packed = tmp_path / "old.log.gz"
    packed.write_bytes(gzip.compress(b"{'loss': 2.5, 'grad_norm': 1.0, 'step': 1}\n" * 9))
    found = found_in(report, packages, log, str(tmp_path / "train.sh"), str(packed))
    environment = found["environment"]
    assert environment["distributions"] == {"deepspeed": "0.14.2", "torch": "2.5.0"}
    assert environment["training"]["per_device_train_batch_size"] == 2 and len(environment["gpus"]) == 8
    assert found["log"] == log and {each["path"] for each in found["logs"]} >= {report, log, str(packed)}


def test_a_file_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    (report,) = written(tmp_path, report=NAN_REPORT)
    once, twice = found_in(report), found_in(report, str(tmp_path / ".." / tmp_path.name / "report.txt"))
    assert [each["path"] for each in twice["logs"]] == [report] and twice["facts"] == once["facts"]


@pytest.mark.parametrize(
    ("packages", "mismatch"),
    [
        ("torch==2.4.1\n", "the given environment has torch 2.4.1, but the input was written with 2.5.0+cu124"),
        ("torch==2.5.0\n", None),
        ("torch==2.5.0+cu118\n", None),
        ("torch>=2.4\n", None),
        ("transformers==4.48\n", None),
        ("peft==0.14.0\n", None),
    ],
)
def test_an_environment_that_cannot_be_meant_comes_first(tmp_path: Path, packages: str, mismatch: str | None) -> None:
    done = diagnose(*written(tmp_path, report=NAN_REPORT, packages=packages))
    verdict, second = done.stdout.splitlines()[:2]
    assert second.startswith("mismatch  " if mismatch else "compatcheck "), done.stdout
    assert mismatch is None or verdict == mismatch and mismatch in second


def test_a_path_of_another_python_does_not_fit_the_named_one(tmp_path: Path) -> None:
    frame = '  File "/opt/env/lib/python{}/site-packages/x/y.py", line 3, in f\n    g()\n'
    snapshot = tmp_path / "node.json"
    snapshot.write_text('{"schema_version": 1, "python": "3.11.7"}', encoding="utf-8")
    for version, fits in (("3.12", False), ("3.11", True)):
        text = f"Traceback (most recent call last):\n{frame.format(version)}RuntimeError: some reason\n"
        found = found_in(*written(tmp_path, trace=text), "--snapshot", str(snapshot))
        assert (found["mismatch"] == []) is fits


def test_an_error_line_that_the_named_versions_rule_out_comes_first(tmp_path: Path) -> None:
    line = "Exception: cublasLt ran into an error!\n"
    for release, fits in (("0.45.0", False), ("0.44.1", True)):
        found = found_in(*written(tmp_path, trace=line, packages=f"bitsandbytes=={release}\n"))
        assert (found["mismatch"] == []) is fits
    ruled_out = diagnose(*written(tmp_path, trace=line, packages="bitsandbytes==0.45.0\n")).stdout
    assert "CC-2023-0604" in ruled_out.split("\n")[0]


def test_a_folder_of_several_projects_asks_for_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    done = diagnose(str(tmp_path))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "choose one of these projects" in done.stderr


def test_a_folder_with_nothing_in_it_is_nothing_read(tmp_path: Path) -> None:
    done = diagnose(str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "") and done.stderr.count("\n") == 1


def test_where_nothing_is_plausible_facts_and_a_next_step_are_printed(tmp_path: Path) -> None:
    capacity = "GPU 0 has a total capacity of 79.15 GiB"
    text = f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {capacity}\nsomelib 1.2.3\n"
    done = diagnose(*written(tmp_path, trace=text))
    shown = " ".join(done.stdout.split())
    assert done.returncode == 1 and "no plausible explanation for this input" in shown
    assert "probe memory_fit" in shown and "81050" in shown


def test_a_version_alone_asks_for_what_goes_wrong(tmp_path: Path) -> None:
    done = diagnose(*written(tmp_path, report="python 3.10.12\n"))
    assert done.returncode == 0
    assert "read      python 3.10.12" in done.stdout and "describe what goes wrong" in done.stdout


def test_verbose_lists_each_mention_with_how_it_is_said(tmp_path: Path) -> None:
    text = "It fails with torch 2.5.0.\nIt works with torch 2.4.1.\n"
    rows = diagnose(*written(tmp_path, report=text), "-v").stdout.splitlines()
    assert any("line 1: failed: distributions.torch 2.5.0" in row for row in rows)
    assert any("line 2: worked: distributions.torch 2.4.1" in row for row in rows)


def test_questions_need_a_terminal(tmp_path: Path) -> None:
    done = diagnose(*written(tmp_path, report=NAN_REPORT), "--ask")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1 and "--ask" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a pseudo-terminal is one of POSIX")
@pytest.mark.parametrize(("typed", "asked"), [("q\n", 1), ("\n\nq\n", 3), ("no such thing\nq\n", 2)])
def test_questions_are_asked_one_by_one_until_the_user_stops(tmp_path: Path, typed: str, asked: int) -> None:
    text = "ImportError: cannot import name 'anything' from 'transformers'\ntorch 2.6.0\n"
    status, printed = answering([*written(tmp_path, report=text), "--ask"], typed)
    assert status in (0, 1) and 1 <= printed.count("Enter: not known") <= asked


def answering(arguments: list[str], typed: str) -> tuple[int, str]:
    """The exit status and what is printed on a terminal where a person types."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "compatcheck", "diagnose", *arguments]
    running = subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.write(ours, typed.encode())
    printed, _ = running.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    return running.returncode, printed.decode()


CHINESE = "单机四卡训练，torch 2.5.0，第一步开始 loss 一直是 0，grad_norm 显示 nan，换了学习率也没有用。\n"


@pytest.mark.parametrize(
    ("text", "options", "environment", "is_chinese"),
    [
        (CHINESE, [], {}, True),
        (CHINESE, [], {"LC_ALL": "C.UTF-8"}, True),
        (CHINESE + "RuntimeError: expected all tensors on one device\n" * 9, [], {}, True),
        (CHINESE, ["--lang", "en"], {}, False),
        (CHINESE, [], {"COMPATCHECK_LANG": "en"}, False),
        (CHINESE, [], {"LANG": "de_DE.UTF-8"}, False),
        (NAN_REPORT, [], {}, False),
        ("### System Info / 系統信息\n" + NAN_REPORT, [], {}, False),
    ],
)
def test_a_chinese_text_is_answered_in_chinese(
    tmp_path: Path, text: str, options: list[str], environment: dict[str, str], is_chinese: bool
) -> None:
    unset = {"LANG": "", "LC_ALL": "", "LC_MESSAGES": "", "COMPATCHECK_LANG": ""}
    arguments = ["diagnose", *written(tmp_path, report=text), *options]
    done = run_command(sys.executable, *arguments, cwd=ROOT, **{**unset, "PYTHONUTF8": "1", **environment})
    assert ("\n依据 " in done.stdout) is is_chinese and ("\nfor " in done.stdout) is not is_chinese, done.stdout


def test_an_environment_alone_is_an_input_and_nothing_is_not() -> None:
    snapshot = str(ROOT / "tests" / "machines" / "glm-4-batch-2-torch-2.5.0.json")
    found = found_in("--snapshot", snapshot)
    assert found["environment"]["distributions"]["torch"].startswith("2.5.0") and found["explanations"]
    done = diagnose()
    assert (done.returncode, done.stdout) == (2, "") and "INPUT" in done.stderr


def test_an_error_of_another_field_shows_nothing_that_nothing_speaks_for(tmp_path: Path) -> None:
    frame = '  File "/usr/lib/python3.10/site-packages/django/db/utils.py", line 9, in connect\n    open_it()\n'
    text = f"Traceback (most recent call last):\n{frame}django.db.utils.OperationalError: no such table: users\n"
    done = diagnose(*written(tmp_path, trace=text))
    shown = re.split(r"(?m)^ \d\. ", done.stdout)[1:]
    assert all("\nfor " in each for each in shown) and "likely" not in done.stdout
    assert "describe what goes wrong" not in done.stdout
