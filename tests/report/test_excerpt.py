"""The line of a file that a report shows below a finding."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conftest import run_command

SCRIPT = """\
torchrun --nproc_per_node 8 train.py \\
    --model_name_or_path model \\
    --bf16 True --hub_token hf_abcdefghijklmnopqrstuvwxyzabcdefgh {flags}\\
    --output_dir out
"""


def report(folder: Path, flags: str, **environ: str) -> list[str]:
    (folder / "requirements.txt").write_text("torch==2.5.0\ntransformers==4.48.0\n", encoding="utf-8")
    (folder / "train.sh").write_text(SCRIPT.format(flags=flags), encoding="utf-8")
    options = ("--no-probe", "--assume", "model.type=llama")
    return run_command(sys.executable, ".", *options, cwd=folder, **environ).stdout.splitlines()


def test_the_setting_at_fault_is_underlined(tmp_path: Path) -> None:
    lines = report(tmp_path, "--gradient_accumulation_steps 4 ")
    (at,) = (number for number, line in enumerate(lines) if line.lstrip().startswith("3 | "))
    source, carets = lines[at : at + 2]
    assert source[carets.index("^") : carets.rindex("^") + 1] == "--gradient_accumulation_steps 4"
    assert carets.strip(" |^") == "" and "train.sh:3" in lines[at - 1]


def test_a_long_line_is_cut_to_what_is_at_fault(tmp_path: Path) -> None:
    lines = report(tmp_path, f"--run_name {'x' * 300} --gradient_accumulation_steps 4 --report_to {'y' * 200} ")
    (at,) = (number for number, line in enumerate(lines) if line.lstrip().startswith("3 | "))
    assert max(map(len, lines[at : at + 2])) <= 100 and "--gradient_accumulation_steps 4" in lines[at]


def test_no_secret_of_the_line_is_shown(tmp_path: Path) -> None:
    text = "\n".join(report(tmp_path, "--gradient_accumulation_steps 4 "))
    assert "3 | " in text and "hf_abcdef" not in text
