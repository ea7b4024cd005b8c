"""A project as it lies on disk, judged from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LLAMA_FACTORY = """\
### model
model_name_or_path: models/glm
trust_remote_code: true

### method
stage: sft
do_train: true
finetuning_type: full
deepspeed: ds/zero2.json

### dataset
dataset: ours
template: glm4
cutoff_len: 1024

### train
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
learning_rate: 2.0e-5
fp16: true
"""
ZERO_2 = """\
{
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto",
  "fp16": {"enabled": "auto"},
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true
  }
}
"""
REQUIREMENTS = "torch==2.5.0\ntransformers==4.48.0\ndeepspeed==0.14.2\naccelerate==1.2.1\n"
MACHINE = {
    "schema_version": 1,
    "python": "3.10.12",
    "platform": {"system": "Linux", "machine": "x86_64", "libc": "glibc 2.35"},
    "cuda": {"driver": "550.54.15", "driver_api": "12.4", "runtime": "12.4"},
    "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "memory_mib": 81920}] * 4,
}


def judge(folder: Path, snapshot: Path, machine: dict[str, Any] = MACHINE, *more: str) -> dict[str, Any]:
    snapshot.write_text(json.dumps(machine))
    command = [sys.executable, "-m", "compatcheck", "check", ".", "--no-probe", "--snapshot", str(snapshot)]
    done = subprocess.run(
        [*command, "--format", "json", *more], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in {
        "sft.yaml": LLAMA_FACTORY,
        "ds/zero2.json": ZERO_2,
        "models/glm/config.json": '{"model_type": "glm", "architectures": ["GlmForCausalLM"], "hidden_size": 64}',
        "models/glm/tokenizer_config.json": "{}",
        "requirements.txt": REQUIREMENTS,
        ".git/HEAD": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_each_finding_has_the_file_and_line_of_the_setting_it_speaks_of(project: Path, tmp_path: Path) -> None:
    report = judge(project, tmp_path / "node.json")
    found = {finding["id"]: finding for finding in report["findings"]}
    affected = {number: each["location"] for number, each in found.items() if each["status"] == "affected"}
    assert affected["CC-2023-0020"] == {"file": "ds/zero2.json", "line": 6}
    assert all(place and place["line"] for place in affected.values()), affected
    training = report["environment"]["training"]
    assert training["framework"] == "llama-factory"
    assert training["dtype"] == "float16"
    assert training["deepspeed"]["zero_stage"] == 2
    assert report["environment"]["model"]["type"] == "glm"
    assert training["gradient_accumulation_steps"] == 4


def test_the_finding_goes_when_the_line_it_names_is_changed(project: Path, tmp_path: Path) -> None:
    (project / "ds/zero2.json").write_text(ZERO_2.replace('"overlap_comm": true', '"overlap_comm": false'))
    report = judge(project, tmp_path / "node.json")
    assert "CC-2023-0020" not in {finding["id"] for finding in report["findings"]}


@pytest.mark.parametrize(("gpu", "dtype"), [("NVIDIA A100-SXM4-80GB", "bfloat16"), ("Tesla V100-SXM2-32GB", "float16")])
def test_xtuner_takes_the_dtype_that_the_gpus_can(tmp_path: Path, gpu: str, dtype: str) -> None:
    folder = tmp_path / "xtuner"
    folder.mkdir()
    (folder / "run.sh").write_text(
        "NPROC_PER_NODE=8 xtuner train llama3_8b_full_alpaca_e3 --deepspeed deepspeed_zero2\n"
    )
    machine = {**MACHINE, "gpus": [{"name": gpu}] * 8, "distributions": {"deepspeed": "0.14.2", "torch": "2.2.2"}}
    report = judge(folder, tmp_path / "node.json", machine)
    assert report["inferred"]["training.dtype"]["value"] == dtype
    found = {finding["id"]: finding for finding in report["findings"]}
    assert found["CC-2023-0020"]["status"] == "affected"
    assert found["CC-2023-0020"]["location"] == {"file": "run.sh", "line": 1}


def test_what_is_read_of_a_project_is_the_same_from_its_snapshot(project: Path, tmp_path: Path) -> None:
    report = judge(project, tmp_path / "node.json")
    (tmp_path / "empty").mkdir()
    again = judge(tmp_path / "empty", tmp_path / "again.json", report["environment"])
    ours = [(each["id"], each["status"], each["location"]) for each in report["findings"]]
    assert [(each["id"], each["status"], each["location"]) for each in again["findings"]] == ours
