"""`compatcheck diagnose`: what people paste, in the encodings they paste it in, and what comes out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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
    assert (torch["value"], torch["how"], torch["file"], torch["line"]) == ("2.5.0+cu118", "stated", report, 6)
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
        (b"", 3, "no version, setting, loss or error is in it"),
        (b"Hello, please help.", 3, "no version, setting, loss or error is in it"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 2, "images and PDFs are not read"),
        (bytes(range(1, 32)) * 40, 2, "it is binary"),
        ((b"a" * 999 + b"\n") * 9000, 3, "no version, setting, loss or error is in it"),
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
