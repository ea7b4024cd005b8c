"""`--fix` of `check` and `hook`: what is edited, what is left alone, and what is put back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_command

SCRIPT = """\
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer

model = AutoModelForCausalLM.from_pretrained("gpt2")
# this comment stays
args = SFTConfig(
    output_dir="out",
    evaluation_strategy="no",  # so does this one
)
trainer = SFTTrainer(model=model, args=args, tokenizer=None)
trainer.train()
"""
DEEPSPEED = """\
{
  "train_micro_batch_size_per_gpu": "auto",
  "zero_optimization": { "stage": 2, "overlap_comm": true,
    "contiguous_gradients": true },
  "bf16": {"enabled": true}
}
"""
CONFIG = """\
### model
model_name_or_path: THUDM/glm-4-9b
stage: sft
do_train: true
finetuning_type: full
template: glm4
deepspeed: ds.json   # ZeRO-2
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
"""
OVERLAP = "CC-2024-0021"
TRAINS = """
from transformers import Trainer

Trainer(model=None).train()
"""


MACHINE = ("--assume", "gpu.compute_capability=8.0", "--assume", "cuda.runtime=12.4")


def lay(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def fix(folder: Path, *options: str, verb: tuple[str, ...] = (".", "--no-probe")) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, *verb, "--fix", *options, cwd=folder)


def bad(folder: Path) -> list[str]:
    return run_command(sys.executable, ".", "--no-probe", "-q", cwd=folder).stdout.splitlines()


def test_keywords_get_their_new_name_and_comments_stay(tmp_path: Path) -> None:
    lay(tmp_path, train__py=SCRIPT, requirements__txt="torch==2.7.0\ntransformers==4.57.1\ntrl==0.24.0\n")
    before = len(bad(tmp_path))
    shown = fix(tmp_path)
    assert shown.returncode == 1 and (tmp_path / "train.py").read_text() == SCRIPT
    applied = subprocess.run(["git", "apply", "--check", "-"], cwd=tmp_path, input=shown.stdout, text=True, check=False)
    assert applied.returncode == 0
    assert fix(tmp_path, "--write").returncode == 0
    wanted = SCRIPT.replace("evaluation_strategy=", "eval_strategy=").replace("tokenizer=", "processing_class=")
    assert (before, (tmp_path / "train.py").read_text(), bad(tmp_path)) == (2, wanted, [])


REFUSED = """\
from transformers import Trainer, TrainingArguments

args = TrainingArguments(
    "out",
    no_cuda=True,  # an old name
    # the rate stays
    learning_rate=1e-4, half_precision_backend="auto",
    use_cpu=(
        True
    ), tf32=False,
    overwrite_output_dir=bool(
        1
    ),
    jit_mode_eval=False)
Trainer(model=None, args=args).train()
"""


def test_refused_keywords_leave_a_long_call(tmp_path: Path) -> None:
    lay(tmp_path, train__py=REFUSED, requirements__txt="transformers==5.24.0\n")
    assert fix(tmp_path, "--write").returncode == 1 and (tmp_path / "train.py").read_text() == REFUSED
    fix(tmp_path, "--write", "--unsafe-fixes")
    wanted = REFUSED.replace("    no_cuda=True,  # an old name\n", "").replace(' half_precision_backend="auto",', "")
    wanted = wanted.replace("    overwrite_output_dir=bool(\n        1\n    ),\n", "")
    wanted = wanted.replace(",\n    jit_mode_eval=False)", ")")
    assert (tmp_path / "train.py").read_text() == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (
            "from transformers.deepspeed import HfDeepSpeedConfig  # ZeRO 3\n",
            "from transformers.integrations import HfDeepSpeedConfig  # ZeRO 3\n",
        ),
        (
            "from transformers.deepspeed import HfDeepSpeedConfig as C, HfTrainerDeepSpeedConfig\n",
            "from transformers.integrations import HfTrainerDeepSpeedConfig\n"
            "from transformers.integrations import HfDeepSpeedConfig as C\n",
        ),
        (
            "from transformers import (\n    AutoConfig,  # the first\n    AutoModelForVision2Seq,\n"
            "    AutoTokenizer,\n)\n",
            "from transformers import (\n    AutoConfig,  # the first\n    AutoTokenizer,\n)\n"
            "from transformers import AutoModelForImageTextToText as AutoModelForVision2Seq\n",
        ),
        ("from transformers import AutoTokenizer, AdamW; print(1)\n", None),
    ],
    ids=["alone", "two of a module that is gone", "of several lines", "another statement on the line"],
)
def test_an_import_follows_its_name(written: str, wanted: str | None, tmp_path: Path) -> None:
    lay(tmp_path, train__py=written + TRAINS, requirements__txt="transformers==5.24.0\n")
    shown = fix(tmp_path, "--write", "--unsafe-fixes", verb=("check", ".", "--no-probe"))
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == (wanted or written) + TRAINS, shown.stdout
    assert wanted is None or "CC-2026-3125" not in bad(tmp_path)


def test_an_optimizer_of_another_package_is_taken_only_if_unsafe_fixes_are_allowed(tmp_path: Path) -> None:
    script = "from transformers import AdamW, AutoModel\n" + TRAINS
    lay(tmp_path, train__py=script, requirements__txt="transformers==5.24.0\n")
    assert fix(tmp_path, "--write").returncode == 1
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == script
    assert "weight_decay=0.0" in run_command(sys.executable, ".", "--no-probe", cwd=tmp_path).stdout
    lay(tmp_path, requirements__txt="torch==2.13.0\ntransformers==5.24.0\n")
    fix(tmp_path, "--write", "--unsafe-fixes")
    wanted = "from transformers import AutoModel\nfrom torch.optim import AdamW\n"
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == wanted + TRAINS


def test_a_pin_moves_to_the_repaired_release(tmp_path: Path) -> None:
    """The founding case of the tutorial, with the machine stated."""
    shutil.copytree(ROOT / "docs/tutorial/project", tmp_path, dirs_exist_ok=True)
    (tmp_path / "requirements.txt").chmod(0o640)
    done = fix(tmp_path, "--write", *MACHINE)
    assert done.returncode == 0, done.stdout
    pins = (tmp_path / "requirements.txt").read_text(encoding="utf-8")
    assert pins == "torch==2.5.1\ntransformers==4.48.3\naccelerate==1.2.1\npeft==0.14.0\n"
    assert os.name == "nt" or (tmp_path / "requirements.txt").stat().st_mode & 0o777 == 0o640


def test_a_setting_is_changed_only_if_unsafe_fixes_are_allowed(tmp_path: Path) -> None:
    """In the environment judged here deepspeed is installed and no file pins it, so that only a setting can change."""
    lay(tmp_path, ds__json=DEEPSPEED, sft__yaml=CONFIG)
    options = ("--assume", "distributions.deepspeed=0.14.4", "--select", OVERLAP)
    safe = fix(tmp_path, *options)
    assert safe.stdout == "" and "allow it with --unsafe-fixes" in safe.stderr and safe.returncode == 1
    assert fix(tmp_path, "--unsafe-fixes", "--write", *options).returncode == 0
    assert (tmp_path / "ds.json").read_text() == DEEPSPEED.replace('"overlap_comm": true', '"overlap_comm": false')
    assert (tmp_path / "sft.yaml").read_text() == CONFIG


@pytest.mark.skipif(os.name == "nt", reason="links")
@pytest.mark.parametrize("is_outside", [True, False])
def test_a_link_that_leads_out_of_the_folder_is_left_alone(is_outside: bool, tmp_path: Path) -> None:
    """The folder may be a stranger's, and what it links to somebody else's."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "inside").mkdir()
    place = lay(tmp_path if is_outside else project / "inside", ds__json=DEEPSPEED)
    (project / "ds.json").symlink_to(place / "ds.json")
    lay(project, sft__yaml=CONFIG)
    options = ("--assume", "distributions.deepspeed=0.14.4", "--select", OVERLAP, "--unsafe-fixes", "--write")
    done = fix(project, *options, verb=("ds.json", "sft.yaml", "--no-probe"))
    assert ((place / "ds.json").read_text() == DEEPSPEED) is is_outside, done.stderr
    assert done.returncode == int(is_outside) and (project / "ds.json").is_symlink()


def test_a_generation_setting_is_changed_in_the_model_folder(tmp_path: Path) -> None:
    project = ROOT / "docs/tutorial/script"
    shutil.copytree(project, tmp_path, dirs_exist_ok=True)
    assert fix(tmp_path, "--write").returncode == 0
    text = (project / "model/generation_config.json").read_text(encoding="utf-8")
    assert (tmp_path / "model/generation_config.json").read_text(encoding="utf-8") == text.replace("false", "true")


def test_an_edit_that_brings_a_new_finding_is_not_kept(tmp_path: Path) -> None:
    """torch alone cannot move: this xformers declares its torch."""
    script = (ROOT / "docs/tutorial/project/train.sh").read_text(encoding="utf-8")
    pins = "torch==2.5.0\nxformers==0.0.28.post2\ntransformers==4.48.3\n"
    lay(tmp_path, requirements__txt=pins, train__sh=script)
    done = fix(tmp_path, *MACHINE)
    assert done.returncode == 1 and "-torch==2.5.0" not in done.stdout
    assert "not fixed: CC-2024-0001 (train.sh:6)" in done.stderr


def test_torchvision_goes_with_torch(tmp_path: Path) -> None:
    script = (ROOT / "docs/tutorial/project/train.sh").read_text(encoding="utf-8")
    pins = "torch==2.5.0\ntorchvision==0.20.0  # images\ntransformers==4.48.3\n"
    lay(tmp_path, requirements__txt=pins, train__sh=script)
    assert fix(tmp_path, "--write", *MACHINE).returncode == 0
    moved = pins.replace("torch==2.5.0", "torch==2.5.1").replace("0.20.0", "0.20.1")
    assert (tmp_path / "requirements.txt").read_text(encoding="utf-8") == moved


def test_a_hashed_pin_is_left_alone(tmp_path: Path) -> None:
    pins = f"transformers==4.48.0 \\\n    --hash=sha256:{'0' * 64}\n"
    shutil.copytree(ROOT / "docs/tutorial/project", tmp_path, dirs_exist_ok=True)
    done = fix(lay(tmp_path, requirements__txt=pins))
    assert done.stdout == "" and "not fixed: CC-2024-0040" in done.stderr


def test_hook_fixes_the_files_of_a_commit(tmp_path: Path) -> None:
    lay(tmp_path, train__py=SCRIPT, requirements__txt="torch==2.7.0\ntransformers==4.57.1\ntrl==0.24.0\n")
    verb = ("hook", "train.py", "requirements.txt")
    assert "+    eval_strategy=" in fix(tmp_path, verb=verb).stdout
    assert fix(tmp_path, "--write", verb=verb).returncode == 0
    assert "eval_strategy=" in (tmp_path / "train.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--write",), "--write requires --fix"),
        (("--unsafe-fixes",), "--unsafe-fixes requires --fix"),
        (("--fix", "--snapshot", "x.json"), "--fix and --snapshot"),
        (("--fix", "--format", "json"), "--format requires --fix --write"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, options: tuple[str, ...], named: str) -> None:
    done = run_command(sys.executable, "check", *options, cwd=tmp_path)
    assert done.returncode == 2 and named in done.stderr
