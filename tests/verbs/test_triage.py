"""`compatcheck triage`: what people paste, in the encodings they paste it in, and what comes out."""

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


def triage(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, "triage", *arguments, cwd=cwd)


def piped(raw: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "compatcheck", "triage", "-", *arguments]
    return subprocess.run(command, cwd=ROOT, input=raw, capture_output=True, check=False)


@pytest.fixture
def report(tmp_path: Path) -> str:
    path = tmp_path / "report.md"
    path.write_text(REPORT, encoding="utf-8")
    return str(path)


def test_a_report_is_judged_as_check_does_with_the_line_of_what_is_at_fault(report: str) -> None:
    done = triage(report)
    assert done.returncode == 1, done.stderr
    assert OVERLAP in done.stdout and f"{report}:16" in done.stdout
    assert "line 6  distributions.torch" in done.stdout and "2.5.0+cu118" in done.stdout
    assert "NVIDIA A100-SXM4-80GB" in done.stdout and "1 x" not in done.stdout  # nobody says how many


def test_json_is_the_report_alone(report: str) -> None:
    said = json.loads(triage(report, "--format", "json").stdout)
    finding = next(each for each in said["findings"] if each["id"] == OVERLAP)
    assert (finding["status"], finding["location"]) == ("affected", {"file": report, "line": 16})


def test_the_snapshot_of_a_report_is_judged_alike(report: str, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    first = triage(report, "--format", "json", "--snapshot-out", str(snapshot), cwd=tmp_path)
    second = run_command(sys.executable, "check", "--snapshot", str(snapshot), "--format", "json", cwd=tmp_path)
    assert json.loads(first.stdout)["findings"] == json.loads(second.stdout)["findings"]
    assert triage(report, "--env").stdout == snapshot.read_text(encoding="utf-8")


def test_the_snapshot_alone_ends_clean_and_goes_where_it_is_told(report: str, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    done = triage(report, "--env", "-o", str(target))
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(target.read_text(encoding="utf-8"))["distributions"]["deepspeed"] == "0.14.4"


def test_a_stated_fact_counts_over_the_report(report: str) -> None:
    assert triage(report, "--assume", "distributions.deepspeed=0.19.9", "--select", OVERLAP).returncode == 0


def test_what_lines_contradict_is_left_open_and_told(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_text("torch 2.5.0, transformers 4.44.0\n\nit runs on torch 2.4.1 there\n", encoding="utf-8")
    done = triage(str(path))
    assert "Unclear" in done.stdout
    assert "line 1 says 2.5.0, line 3 says 2.4.1" in done.stdout
    assert "line 1  distributions.transformers" in done.stdout


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
        (b"", 3, "nothing in it is a fact"),
        (b"It does not train, please help.", 3, "nothing in it is a fact"),
        (b"works with torch 2.4.1", 3, "no fact in it is certain; distributions.torch is unknown: line 1 "),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 2, "images and PDFs are not read"),
        (bytes(range(1, 32)) * 40, 2, "it is binary"),
        (b"torch 2.5.0 \xff\xfe\xfd", 2, "neither UTF-8, UTF-16 nor GBK"),
        ((b"a" * 999 + b"\n") * 9000, 3, "nothing in it is a fact"),
    ],
    ids=["empty", "no facts", "advice alone", "an image", "control characters", "broken bytes", "too large"],
)
def test_what_is_no_report_gets_one_line(raw: bytes, status: int, said: str) -> None:
    done = piped(raw)
    assert (done.returncode, done.stdout) == (status, b""), done.stderr
    error = done.stderr.decode()
    assert error.count("\n") == 1 and said in error and "standard input" in error


def test_a_missing_file_gets_one_line(tmp_path: Path) -> None:
    for name in (str(tmp_path / "nowhere.md"), str(tmp_path)):
        done = triage(name)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and name in done.stderr


def test_only_a_gpu_is_too_little_to_judge() -> None:
    done = piped(b"GPU: NVIDIA A100 80GB")
    assert done.returncode == 3 and b"no package, model or setting is known" in done.stderr


def test_an_image_that_a_report_names_brings_what_it_holds(tmp_path: Path) -> None:
    wheel = "flash_attn-2.5.3+cu122torch2.1cxx11abi{}-cp310-cp310-linux_x86_64.whl"
    report = tmp_path / "report.txt"
    report.write_text(f"I use nvcr.io/nvidia/pytorch:23.10-py3 on A100\n\n{wheel.format('FALSE')}\n", encoding="utf-8")
    done = triage(str(report))
    assert done.returncode == 1, done.stderr
    assert "line 1  image.release" in done.stdout
    assert "torch 2.1.0a0+32f93b1 (inferred)" in " ".join(done.stdout.split()) and "CC-2024-0620" in done.stdout
    report.write_text(report.read_text().replace("FALSE", "TRUE"), encoding="utf-8")
    done = triage(str(report))
    assert done.returncode == 0, done.stdout


def test_a_report_that_leaves_packages_out_gets_what_one_of_them_would_make_possible(tmp_path: Path) -> None:
    report, snapshot = tmp_path / "report.txt", tmp_path / "snapshot.json"
    report.write_text(
        "ImportError at start\n\n- transformers version: 4.47.1\n- PyTorch version: 2.5.1\n", encoding="utf-8"
    )
    said = json.loads(triage(str(report), "--format", "json", "--snapshot-out", str(snapshot)).stdout)["findings"]
    plain = run_command(sys.executable, "check", "--snapshot", str(snapshot), "--format", "json", cwd=tmp_path).stdout
    further = [each for each in said if each not in json.loads(plain)["findings"]]
    assert len(further) == 3
    assert all(any(path.startswith("distributions.") for path in each["missing"]) for each in further)


def test_the_day_and_the_repository_of_an_issue_decide_what_it_leaves_out(tmp_path: Path) -> None:
    """numpy 2 came out on 2024-06-16, and DeepSpeed 0.14.4, the first that can be imported beside it, on 2024-06-21."""
    numpy_2 = "CC-2024-0027"
    issue = {"title": "Import fails", "body": "Since today:\n\nnumpy==2.0.0\n", "createdAt": "2024-06-17T08:00:00Z"}
    for place, told in (("microsoft/DeepSpeed", True), ("QwenLM/Qwen3", False)):
        filed = tmp_path / "issue.json"
        filed.write_text(json.dumps({**issue, "url": f"https://github.com/{place}/issues/5671"}), encoding="utf-8")
        done = triage(str(filed), cwd=tmp_path)
        shown = " ".join(done.stdout.split())
        assert ("0.14.3 was the newest on 2024-06-17" in shown) is told
        assert (numpy_2 in done.stdout) is told and f"report.repository {place}" in shown
