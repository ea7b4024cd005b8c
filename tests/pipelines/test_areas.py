"""What the report says it judged, what its verdict rests on, and what a missing area does: through the command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import compatcheck
from tests.conftest import run_command

PINS = "torch==2.5.1\ntransformers==4.49.0\naccelerate==1.4.0\n"
SCRIPT = """torchrun train.py --model_name_or_path model --bf16 True --optim adamw_torch \\
  --per_device_train_batch_size 1 --learning_rate 1e-4 --output_dir out
"""
MODEL = '{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}'
A100 = ("--assume", "gpu.compute_capability=8.0")
ALL = (PINS, SCRIPT, MODEL)
OTHERS = ("flask==3.0.0\n", SCRIPT, MODEL)
FAULTY = SCRIPT.replace("batch_size 1", "batch_size 2 --gradient_accumulation_steps 4")

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / "model").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def command(folder: Path) -> Command:
    """`compatcheck check --no-probe` with these arguments, in the folder."""

    def call(*arguments: str, verb: tuple[str, ...] = ("check", "--no-probe")) -> subprocess.CompletedProcess[str]:
        return run_command(sys.executable, *verb, *arguments, cwd=folder)

    return call


def write(folder: Path, pins: str = "", script: str = "", model: str = "") -> None:
    for name, text in (("requirements.txt", pins), ("train.sh", script), ("model/config.json", model)):
        if text:
            (folder / name).write_text(text, encoding="utf-8")


def areas(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[bool, str]]:
    """Each area of a text report by its label: whether it has a tick, and what stands beside it."""
    rows = done.stdout.splitlines()[2:]
    head = rows[: next(at for at, row in enumerate(rows) if not row)]
    return {row[2:15].strip(): (row[0] == "✓", row[15:]) for row in head if row[0] != " "}


def test_each_area_says_where_it_was_read(folder: Path, command: Command) -> None:
    write(folder, pins=f"{PINS}peft\n", script=SCRIPT, model=MODEL)
    found = areas(command(".", *A100))
    assert found == {
        "packages": (True, "requirements.txt (3 of 4 pinned): torch 2.5.1, transformers 4.49.0"),
        "driver, GPU": (True, "--assume: 1 x GPU of compute capability 8.0"),
        "settings": (True, "train.sh: transformers, bfloat16"),
        "model files": (True, "model: llama"),
        "imports": (False, "not followed: this environment is not installed here"),
        "numerics": (True, "no probe applies"),
    }


def test_each_area_says_why_it_was_not_judged(folder: Path, command: Command) -> None:
    write(folder, pins="flask==3.0.0\n", script=SCRIPT.replace("model ", "Qwen/Qwen2-7B "))
    found = areas(command("."))
    assert found["packages"] == (False, "not judged: the matrix has no entry about any of these packages")
    assert found["driver, GPU"][0] is False
    assert found["model files"] == (False, "not judged: only the name of the model is known: Qwen/Qwen2-7B")
    (folder / "train.sh").unlink()
    write(folder, pins=PINS)
    found = areas(command("."))
    assert found["settings"] == (False, "not judged: no training configuration in .")
    assert found["model files"] == (False, "not judged: no model folder in .")


def test_an_unreadable_configuration_is_named(folder: Path, command: Command) -> None:
    write(folder, pins=PINS)
    (folder / "train.yaml").write_text("learning_rate: [", encoding="utf-8")
    judged, why = areas(command("."))["settings"]
    assert not judged and "train.yaml" in why


def test_a_snapshot_is_the_source(folder: Path, command: Command) -> None:
    write(folder, pins=PINS, script=SCRIPT, model=MODEL)
    (folder / "node.json").write_text(command(".", *A100, verb=("env",)).stdout, encoding="utf-8")
    shape = json.loads(command("--snapshot", "node.json", "--format", "json").stdout)
    judged = {each["name"]: [source["name"] for source in each["sources"]] for each in shape["areas"] if each["judged"]}
    assert judged["gpu"] == judged["training"] == ["node.json"]


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (ALL, A100, "judged, nothing known: packages, GPU, settings, model files"),
        (ALL, (), "no known fault in packages, settings, model files; not judged: GPU"),
        (ALL[:2], (), "no known fault in packages, settings; not judged: GPU, model files"),
        (ALL[:1], A100, "too few facts to judge: nothing known in packages, GPU; not judged: settings, model files"),
        (OTHERS, A100, "1 possible, but too few facts to judge; not judged: packages"),
    ],
    ids=["everything", "no GPU", "no model", "packages alone", "no packages"],
)
def test_the_verdict_says_what_it_rests_on(
    folder: Path, command: Command, given: tuple[str, ...], options: tuple[str, ...], said: str
) -> None:
    write(folder, *given)
    done = command(".", *options)
    assert done.returncode == 0 and f"\n{said}\n" in done.stdout
    assert "no known fault\n" not in done.stdout


def test_what_is_set_aside_is_not_called_clean(folder: Path, command: Command) -> None:
    write(folder, pins=PINS.replace("4.49.0", "4.48.0"), script=FAULTY, model=MODEL)
    before = command(".", "--format", "json")
    assert before.returncode == 1
    (folder / "before.json").write_text(before.stdout, encoding="utf-8")
    count = len(json.loads(before.stdout)["findings"])
    done = command(".", "--baseline", "before.json")
    assert done.returncode == 0
    assert f"nothing new in packages, settings, model files, {count} suppressed; not judged: GPU" in done.stdout


@pytest.mark.parametrize(
    ("required", "status", "said"),
    [
        ("packages,training", 0, ""),
        ("model", 4, "model files required: no model folder in .; pass the model folder"),
        ("training,gpu", 4, "driver, GPU required: "),
        ("imports", 4, "imports required: not followed: this environment is not installed here; check an installed"),
        ("numerics", 0, ""),
        ("fonts", 2, "there is no such area; packages, gpu, training, model, imports, numerics"),
    ],
)
def test_a_required_area_that_is_missing_exits_with_4(
    folder: Path, command: Command, required: str, status: int, said: str
) -> None:
    write(folder, pins=PINS, script=SCRIPT.replace("--model_name_or_path model ", ""))
    done = command(".", "--require", required)
    assert done.returncode == status and said in done.stdout + done.stderr
    quiet = command(".", "-q", "--require", required)
    assert quiet.returncode == status and said in quiet.stdout + quiet.stderr


def test_the_project_can_require_areas(folder: Path, command: Command) -> None:
    write(folder, pins=PINS)
    (folder / "pyproject.toml").write_text('[tool.compatcheck]\nrequire = ["training", "imports"]\n', encoding="utf-8")
    done = command(".")
    assert done.returncode == 4 and "settings required: no training configuration in ." in done.stdout
    assert command(".", "--isolated").returncode == 0
    (folder / "pyproject.toml").write_text('[tool.compatcheck]\n\nrequire = ["fonts"]\n', encoding="utf-8")
    refused = command(".")
    assert refused.returncode == 2 and "pyproject.toml:3: require holds fonts" in refused.stderr


def test_the_hook_requires_what_files_can_give(folder: Path, command: Command) -> None:
    write(folder, pins=PINS, script=SCRIPT)
    (folder / "pyproject.toml").write_text('[tool.compatcheck]\nrequire = ["packages", "imports"]\n', encoding="utf-8")
    assert command("train.sh", verb=("hook",)).returncode == 0
    (folder / "requirements.txt").unlink()
    done = command("train.sh", verb=("hook",))
    assert done.returncode == 4 and "packages required" in done.stdout


def test_the_interface_for_scripts_requires_areas(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, pins=PINS)
    monkeypatch.chdir(folder)
    judged = compatcheck.check("requirements.txt", probe=False)
    missing = compatcheck.check("requirements.txt", probe=False, require=["training"])
    assert judged.ok and not missing.ok and "settings required" in missing.exit_reason
    assert [area.name for area in missing.areas if not area.judged][:2] == ["gpu", "training"]
    with pytest.raises(compatcheck.CompatcheckError, match="fonts"):
        compatcheck.check("requirements.txt", require=["fonts"])  # type: ignore[list-item]


def because(command: Command, *arguments: str, entry: str) -> list[dict[str, Any]]:
    shape = json.loads(command(*arguments, "--format", "json").stdout)
    return next(each["because"] for each in shape["findings"] if each["id"] == entry)


def test_a_finding_names_the_facts_with_their_lines(folder: Path, command: Command) -> None:
    write(folder, pins=f"# pins\n{PINS.replace('2.5.1', '2.5.0')}", script=FAULTY, model=MODEL)
    (folder / "args.yaml").write_text("attn_implementation: sdpa\n", encoding="utf-8")
    (folder / "train.sh").write_text(
        "torchrun train.py \\\n  --attn_implementation sdpa \\\n  --per_device_train_batch_size 2 --bf16 True\n"
    )
    held = because(command, ".", *A100, "--assume", "cuda.runtime=12.4", entry="CC-2024-0001")
    shown = {each["fact"]: (each["value"], each["file"], each["line"], each["why"]) for each in held}
    assert shown["distributions.torch"] == ("2.5.0", "requirements.txt", 2, "")
    assert shown["training.attention"] == ("sdpa", "train.sh", 2, "")
    assert shown["gpu.compute_capability"] == ("8.0", None, None, "--assume")
    assert shown["cuda.runtime"] == ("12.4", None, None, "--assume")
    assert shown["training.cudnn_sdp"][3] == "default of torch"
    text = command(".", *A100, "--assume", "cuda.runtime=12.4").stdout
    assert "because torch 2.5.0 (requirements.txt:2), attention sdpa (train.sh:2), " in " ".join(text.split())


def test_a_possible_finding_names_what_holds_and_what_is_missing(folder: Path, command: Command) -> None:
    write(folder, pins=PINS.replace("2.5.1", "2.5.0"))
    told = " ".join(command(".").stdout.split())
    assert "known: torch 2.5.0 (requirements.txt:1); missing: " in told


def test_settings_of_a_deepspeed_file_and_a_yaml_have_their_lines(folder: Path, command: Command) -> None:
    write(folder, pins="torch==2.5.1\ntransformers==4.49.0\ndeepspeed==0.14.4\n")
    (folder / "ds.json").write_text(
        '{\n  "zero_optimization": {\n    "stage": 2,\n    "overlap_comm": true\n  }\n}\n', encoding="utf-8"
    )
    (folder / "sft.yaml").write_text(
        "output_dir: out\nper_device_train_batch_size: 4\nbf16: true\ndeepspeed: ds.json\n"
    )
    held = because(command, "sft.yaml", "requirements.txt", entry="CC-2024-0021")
    lines = {each["fact"]: f"{each['file']}:{each['line']}" for each in held if each["file"]}
    assert lines["training.deepspeed.overlap_comm"] == "ds.json:4"
    assert lines["distributions.deepspeed"] == "requirements.txt:3"


def test_a_snapshot_keeps_the_lines_of_a_yaml(folder: Path, command: Command) -> None:
    write(folder, pins=PINS.replace("4.49.0", "4.48.0"), model=MODEL)
    run = "output_dir: out\nbf16: true\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 4\n"
    (folder / "sft.yaml").write_text(run, encoding="utf-8")
    (folder / "node.json").write_text(command("sft.yaml", ".", verb=("env",)).stdout, encoding="utf-8")
    held = because(command, "--snapshot", "node.json", entry="CC-2024-0040")
    lines = {each["fact"]: (each["value"], each["file"], each["line"]) for each in held}
    assert lines["training.gradient_accumulation_steps"] == (4, "sft.yaml", 4)
    assert lines["distributions.transformers"] == ("4.48.0", "requirements.txt", 2)


@pytest.mark.parametrize("form", ["text", "markdown", "html", "sarif", "junit", "gitlab", "github"])
def test_every_format_says_why_a_finding_concerns_the_reader(folder: Path, command: Command, form: str) -> None:
    write(folder, pins=PINS.replace("4.49.0", "4.48.0"), script=FAULTY, model=MODEL)
    assert "transformers 4.48.0 (requirements.txt:2)" in command(".", "--format", form).stdout


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json", "sarif", "junit"])
def test_formats_show_the_areas(folder: Path, command: Command, form: str) -> None:
    write(folder, pins=PINS, script=SCRIPT, model=MODEL)
    told = command(".", "--format", form).stdout
    assert "not followed: this environment is not installed here" in told
    assert "requirements.txt" in told


def test_a_log_is_explained_by_the_same_facts(folder: Path, command: Command) -> None:
    write(folder, pins=PINS.replace("2.5.1", "2.5.0"), script=FAULTY)
    steps = (f"{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.0{n}}}\n" for n in range(1, 9))
    (folder / "train.log").write_text("".join(steps), encoding="utf-8")
    done = command("train.log", "--config", ".", "--assume", "training.attention=sdpa", verb=("diagnose",))
    assert "torch 2.5.0 (requirements.txt:1)" in " ".join(done.stdout.split())


def test_a_chinese_report_has_no_english_line(folder: Path, command: Command) -> None:
    write(folder, pins=PINS.replace("4.49.0", "4.48.0"), script=FAULTY, model=MODEL)
    told = [command(".", "--lang", "zh", *options).stdout for options in ((), A100, ("--require", "imports"))]
    rows = [row for text in told for row in text.splitlines()[1:] if row.strip()]
    excerpts = re.compile(r"\s*(\d+ )?\|")
    letters = [
        row for row in rows if not excerpts.match(row) and not any("\u4e00" <= letter <= "\u9fff" for letter in row)
    ]
    assert [row for row in letters if len(row.split()) > 6] == []


def test_a_terminal_without_unicode_gets_plain_signs(folder: Path) -> None:
    write(folder, pins=PINS)
    done = run_command(sys.executable, "check", "--no-probe", ".", cwd=folder, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.stdout.splitlines()[2].startswith("+ packages     requirements.txt (3 pinned)")
