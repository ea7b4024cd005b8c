"""A fault that two entries tell is shown once, and of many possible findings those that matter and one question."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.conftest import run_command

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2", attn_implementation="flash_attention_2")
Trainer(model=model, args=TrainingArguments("out", bf16=True), train_dataset=rows).train()
"""
ASSUMED = (
    *("--assume", "distributions.flash-attn=absent", "--assume", "cuda.runtime=12.1"),
    *("--assume", "cuda.toolkit=11.8"),
)
MANY = "torch==2.5.0\ntransformers==4.48.0\ndeepspeed==0.14.0\npeft==0.10.0\ntrl==0.12.0\nbitsandbytes==0.43.0\n"


def check(folder: Path, *arguments: str) -> str:
    return run_command(sys.executable, ".", "--no-probe", "--isolated", *arguments, cwd=folder).stdout


def test_two_entries_with_one_fix_are_one_block(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.3.1\ntransformers==4.48.0\n", encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    told = check(tmp_path, *ASSUMED)
    assert re.findall(r"^affected  (\S+)", told, re.M) == ["CC-2023-0316"]
    assert "also   CC-2023-0963" in told and "the same fix applies" in told
    assert told.count("attn_implementation='sdpa'") == 1
    both = check(tmp_path, *ASSUMED, "--verbose")
    assert re.findall(r"^affected  (\S+)", both, re.M) == ["CC-2023-0316", "CC-2023-0963"]


def test_many_possible_findings_are_folded_to_one_question(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(MANY, encoding="utf-8")
    told, every = check(tmp_path), check(tmp_path, "--verbose")
    listed = [re.findall(r"^ {10}(CC-\d{4}-\d{4}) ", text, re.M) for text in (told, every)]
    assert len(listed[0]) == 5 and len(listed[1]) > 5
    assert re.search(rf"^ {{10}}{len(listed[1]) - 5} more: --verbose$", told, re.M)
    asked = re.search(r"^ {10}ask +(\d+) of (\d+) depend on (\S+): --assume \3=VALUE", told, re.M)
    assert asked and int(asked[2]) == len(listed[1])
    missing = re.findall(r"missing: ([^\n]*)", re.sub(r"\n {24}", " ", every))
    assert sum(asked[3] in each for each in missing) == int(asked[1]) >= 2
