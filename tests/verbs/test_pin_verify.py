"""`compatcheck pin --verify` as people type it: what is built, what it shows, and what a failure leaves alone.

Two stacks of the founding cases are really built; the rest has a matrix of two entries and wheels of a few hundred
bytes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.real_stacks import TRAINER, built

from ..advice.tiny_wheels import write_wheel
from ..conftest import run_command
from .test_matrix_reproduce import COMMAND

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ENTRY = """
id = "{id}"
title = "{name} before 1.1 is at fault"
impact = "import-fail"
confidence = "corroborated"
summary = "s"
mechanism = "m"
packages = ["{name}"]
published = 2026-01-01
reviewed = 2026-01-01
affected = [{{ distributions.{name} = "<1.1" }}]
remedies = [{{ pins = {{ {name} = ">=1.1" }}, why = "w" }}]
evidence = [{{ url = "https://example.org/", kind = "report", supports = ["affected"] }}]
examples = [{{ expect = "affected", environment = {{ distributions = {{ {name} = "1.0" }} }} }}]
{probe}
"""
PROBE = 'probe = { name = "package_imports", request = { statements = ["import evaluate"] } }'
GLM = {
    "model_type": "glm",
    "architectures": ["GlmForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 512,
    "max_position_embeddings": 256,
    "partial_rotary_factor": 0.5,
    "attention_bias": True,
    "pad_token_id": 0,
    "torch_dtype": "float32",
}
BROKEN = "import nothing_of_this_name\n"
ASLEEP = "import pathlib, time\npathlib.Path('begun').touch()\ntime.sleep(600)\n"
ASKED = "# mine\nevaluate==1.0\n"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder with a matrix, wheels and a configuration of uv; no environment of ours may be left in it afterwards."""
    write_wheel(tmp_path / "links", "evaluate", "1.0", code=BROKEN)
    write_wheel(tmp_path / "links", "helper", "1.0")
    write_wheel(tmp_path / "links", "helper", "1.1")
    (tmp_path / "uv.toml").write_text("no-index = true\nfind-links = ['links']\n", encoding="utf-8")
    (tmp_path / "matrix" / "tables").mkdir(parents=True)
    for entry, name, probe in (("CC-2099-0001", "evaluate", PROBE), ("CC-2099-0002", "helper", "")):
        (tmp_path / "matrix" / name).mkdir()
        text = ENTRY.format(id=entry, name=name, probe=probe)
        (tmp_path / "matrix" / name / f"{entry}.toml").write_text(text, encoding="utf-8")
    (tmp_path / "cache" / "compatcheck").mkdir(parents=True)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "requirements.txt").write_text(ASKED, encoding="utf-8")
    yield tmp_path
    assert not list(tmp_path.rglob("compatcheck-*"))


def start(project: Path, *arguments: str) -> subprocess.Popen[str]:
    scrubbed = {key: value for key, value in os.environ.items() if not key.startswith(("UV_", "VIRTUAL_ENV"))}
    here = {"XDG_CACHE_HOME": "cache", "TMPDIR": "temporary", "UV_CACHE_DIR": "cache/uv"}
    own = {name: str(project / folder) for name, folder in here.items()}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "pin", *arguments, "--verify", "--build"],
        cwd=project,
        env={**scrubbed, **own, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def run(project: Path, *arguments: str) -> tuple[int, str]:
    process = start(project, "requirements.txt", "-o", "requirements.txt", *arguments)
    _, stderr = process.communicate(timeout=120)
    return process.returncode, " ".join(stderr.split()) if process.returncode != 2 else stderr


def asked(project: Path) -> str:
    """The file without the line that names the command."""
    text = (project / "requirements.txt").read_text(encoding="utf-8")
    return text.partition("\n")[2] if text.startswith("# This file was made by ") else text


def outcomes(report: dict[str, Any], entry: str | None) -> tuple[str, str]:
    """What the probe of an entry said before and after; of no entry, the imports."""
    trial = next(trial for trial in report["trials"] if trial["entry"] == entry)
    return trial["before"]["outcome"], trial["after"]["outcome"]


def test_the_file_is_written_once_the_probe_that_failed_before_passes(project: Path) -> None:
    write_wheel(project / "links", "evaluate", "1.1")
    status, stderr = run(project, "--report", "json=report.json")
    assert status == 0, stderr
    assert asked(project) == "# mine\nevaluate==1.1  # compatcheck: CC-2099-0001, was 1.0\n"
    report = json.loads((project / "report.json").read_text(encoding="utf-8"))
    assert report["verified"] is True and report["unverified"] is None
    assert outcomes(report, "CC-2099-0001") == outcomes(report, None) == ("fail", "pass")
    assert (
        "verified: the pinned set was built and every probe passes in it, 2 of these probes failed before the change"
        in stderr
    )


def test_a_probe_that_fails_in_the_new_set_as_well_leaves_the_file_alone(project: Path) -> None:
    write_wheel(project / "links", "evaluate", "1.1", code=BROKEN)
    status, stderr = run(project, "--report", "json=report.json")
    assert status == 1 and "NOT verified" in stderr
    assert asked(project) == ASKED
    report = json.loads((project / "report.json").read_text(encoding="utf-8"))
    assert report["verified"] is False and outcomes(report, "CC-2099-0001") == ("fail", "fail")


def test_an_entry_without_a_probe_leaves_the_set_unverified(project: Path) -> None:
    write_wheel(project / "links", "evaluate", "1.1")
    (project / "requirements.txt").write_text("evaluate==1.1\nhelper==1.0\n", encoding="utf-8")
    status, stderr = run(project)
    assert status == 4 and "NOT verified: no probe can verify CC-2099-0002" in stderr
    assert "helper==1.1" in asked(project)


def test_a_probe_of_a_later_version_leaves_the_set_unverified(project: Path) -> None:
    write_wheel(project / "links", "evaluate", "1.1")
    entry = project / "matrix" / "evaluate" / "CC-2099-0001.toml"
    entry.write_text(entry.read_text(encoding="utf-8").replace("package_imports", "of_tomorrow"), encoding="utf-8")
    status, stderr = run(project)
    assert status == 4 and "NOT verified: no probe can verify CC-2099-0001" in stderr


def test_a_set_that_cannot_be_built_is_told_in_one_line_and_written_nowhere(project: Path) -> None:
    to_be_built(project / "links", "1.1", "raise SystemExit('no compiler here')\n")
    status, stderr = run(project)
    assert status == 2 and asked(project) == ASKED
    assert stderr.splitlines()[-1].startswith("compatcheck: installing with uv: ") and "Traceback" not in stderr


def test_an_old_set_that_cannot_be_built_is_told_and_the_new_one_is_still_tried(project: Path) -> None:
    write_wheel(project / "links", "evaluate", "1.1")
    (project / "links" / "evaluate-1.0-py3-none-any.whl").unlink()
    to_be_built(project / "links", "1.0", "raise SystemExit('no compiler here')\n")
    status, stderr = run(project)
    assert status == 0 and "the versions as they were could not be tried: installing with uv: " in stderr
    assert stderr.rstrip().endswith("verified: the pinned set was built and every probe passes in it")


def test_entries_that_ask_the_same_of_a_probe_share_one_run_of_it(project: Path) -> None:
    write_wheel(project / "links", "evaluate", "1.1")
    text = ENTRY.format(id="CC-2099-0003", name="evaluate", probe=PROBE)
    (project / "matrix" / "evaluate" / "CC-2099-0003.toml").write_text(text, encoding="utf-8")
    status, stderr = run(project, "--report", "json=report.json")
    assert status == 0, stderr
    report = json.loads((project / "report.json").read_text(encoding="utf-8"))
    first, second = (trial["after"] for trial in report["trials"] if trial["entry"])
    assert first["outcome"] == "pass" and first == second


@pytest.mark.parametrize("number, expected", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
@pytest.mark.parametrize("moment", ["building", "probing"])
def test_a_request_to_stop_leaves_no_environment_no_process_and_the_file_alone(
    project: Path, moment: str, number: signal.Signals, expected: int
) -> None:
    begun = project / "begun"
    asleep = ASLEEP.replace("'begun'", repr(str(begun)))
    if moment == "building":
        to_be_built(project / "links", "1.1", asleep)
    else:
        write_wheel(project / "links", "evaluate", "1.1", code=asleep)
    process = start(project, "requirements.txt", "-o", "requirements.txt")
    deadline = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(project.rglob("compatcheck-environment-*"))
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == expected and "Traceback" not in stderr, stderr
    assert asked(project) == ASKED
    deadline = time.monotonic() + 2
    while (running(project) or left_below(project)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not running(project) and not left_below(project)


def left_below(folder: Path) -> list[str]:
    """Temporary files and folders of ours; what is removed meanwhile is passed over."""
    names = (name for _, folders, files in os.walk(folder) for name in (*folders, *files))
    return [name for name in names if name.startswith("compatcheck-")]


@pytest.mark.network
def test_adapters_in_float16_move_peft_and_the_optimiser_step_is_finite_then(tmp_path: Path) -> None:
    """A requirements file. UV_FIND_LINKS may name a folder with a small build of torch, here and below."""
    pins = ("torch==2.13.0", "transformers==4.40.2", "accelerate==0.30.1", "peft==0.10.0", "numpy<2")
    train = TRAINER + " --use_peft --lora_r 8 --torch_dtype float16 --fp16 --load_in_4bit False --load_in_8bit False"
    (tmp_path / "requirements.txt").write_text("\n".join(pins) + "\n", encoding="utf-8")
    (tmp_path / "train.sh").write_text(train.replace("path model", "path google/gemma-2b"), encoding="utf-8")
    report = verified(tmp_path, "requirements.txt", "train.sh")
    assert [(each["name"], each["now"]) for each in report["moved"] if each["entries"]] == [("peft", "0.12.0")]
    assert outcomes(report, "CC-2024-0041") == ("fail", "pass") and outcomes(report, None) == ("pass", "pass")
    assert "peft==0.12.0  # compatcheck: CC-2024-0041, was 0.10.0" in asked(tmp_path)


@pytest.mark.network
def test_glm_4_moves_transformers_for_two_entries_and_both_probes_pass_then(tmp_path: Path) -> None:
    """What is installed, with a build of torch whose own index may be out of reach."""
    installed = ("torch==2.13.0", "transformers==4.48.0", "accelerate==1.4.0", "numpy<2")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(GLM), encoding="utf-8")
    (tmp_path / "train.sh").write_text(TRAINER + " --attn_implementation sdpa", encoding="utf-8")
    python = built(installed, tmp_path)
    if not list(python.parents[1].glob("lib/*/site-packages/torch-*+cpu.dist-info")):
        pytest.skip("needs a build of torch for CPUs: UV_FIND_LINKS or UV_TORCH_BACKEND=cpu")
    padded = "--assume=training.padding_side=left"
    report = verified(tmp_path, "train.sh", "model", padded, "--python", str(python), "--trust")
    moved = [(each["name"], each["entries"]) for each in report["moved"] if each["entries"]]
    assert moved == [("transformers", ["CC-2024-0040", "CC-2026-0007"])]
    assert outcomes(report, "CC-2024-0040") == outcomes(report, "CC-2026-0007") == ("fail", "pass")


def verified(folder: Path, *arguments: str) -> dict[str, Any]:
    """The report of pins that are written and verified."""
    options = ("--verify", "-o", "requirements.txt", "--report", "json=report.json")
    done = run_command(sys.executable, "pin", *arguments, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["verified"] is True and report["proven"] is True
    return report


def to_be_built(links: Path, version: str, code: str) -> None:
    """A release of evaluate in source, whose build runs the code; what it depends on is known without."""
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": "def build_wheel(*arguments, **options):\n" + textwrap.indent(code, "    "),
        "PKG-INFO": f"Metadata-Version: 2.2\nName: evaluate\nVersion: {version}\n",
    }
    with tarfile.open(links / f"evaluate-{version}.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"evaluate-{version}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def running(project: Path) -> list[str]:
    """The commands at work that name the folder; none on a system that does not list them as files."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = path.read_bytes().decode(errors="replace")
            found += [command] if str(project) in command else []
    return found
