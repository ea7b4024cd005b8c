"""The command as people and CI type it: what its flags choose, what it prints where, and its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, run_command

MACHINES = ROOT / "tests" / "machines"
GLM, OVERLAP, REDUCE = "CC-2024-0001", "CC-2024-0021", "CC-2023-0020"
BAD = str(MACHINES / "glm-4-batch-2-torch-2.5.0.json")
TWO = str(MACHINES / "xtuner-llama-3-zero2-deepspeed-0.14.2.json")
CLEAN = str(MACHINES / "glm-4-batch-2-torch-2.5.1.json")
GLM_RUN = [
    *("--assume", "training.attention=sdpa", "--assume", "training.per_device_train_batch_size=2"),
    *("--assume", "cuda.runtime=12.4", "--assume", "gpu.compute_capability=8.0"),
    *("--assume", "training.dtype=bfloat16"),
]
posix = pytest.mark.skipif(os.name == "nt", reason="signals, shells and venvs are those of POSIX")


def typed(value: object) -> str | None:
    """The id of a test's arguments: the words as they are typed."""
    return " ".join(Path(word).name for word in value) if isinstance(value, list) else None


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, *arguments, cwd=cwd)


def piped(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compatcheck", *arguments]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, encoding="utf-8", check=False)


def found(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {finding["id"]: finding["status"] for finding in json.loads(done.stdout)["findings"]}


def refused(done: subprocess.CompletedProcess[str], *named: str) -> None:
    """Exit status 2, one line that names what was wrong, and nothing on standard output."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1 and all(name in done.stderr for name in named), done.stderr


@pytest.fixture
def possible(tmp_path: Path) -> str:
    """A machine of which one entry is possible and none is worse."""
    path = tmp_path / "possible.json"
    path.write_text('{"schema_version": 1, "distributions": {"deepspeed": "0.14.4"}}', encoding="utf-8")
    assert "possible" in set(found(run("check", "--snapshot", str(path), "--format", "json")).values())
    return str(path)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A venv that lists torch 2.5.0, so that an entry names a probe, and in which torch cannot be imported."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (site,) = tmp_path.glob("venv/lib/python*/site-packages")
    (site / "torch-2.5.0.dist-info").mkdir()
    (site / "torch-2.5.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.0\n")
    return tmp_path / "venv"


@pytest.mark.parametrize(
    ("machine", "options", "status"),
    [
        (CLEAN, "", 0),
        (BAD, "", 1),
        (BAD, "--fail-on possible", 1),
        (BAD, "--fail-on affected", 1),
        (BAD, "--fail-on confirmed", 0),
        (BAD, "--fail-on never", 0),
        (BAD, "--no-probe", 1),
        (BAD, "--budget 0", 1),
        (BAD, f"--ignore {GLM}", 0),
        (BAD, f"--select {OVERLAP}", 0),
        (BAD, f"--select {GLM} --ignore {GLM}", 0),
        (CLEAN, "--require-probe", 0),
        (BAD, "--require-probe", 4),
        (BAD, "--require-probe --fail-on never", 4),
        (BAD, "--require-probe --fail-on confirmed", 4),
        (BAD, f"--require-probe --ignore {GLM}", 0),
        (TWO, "--require-probe", 1),
    ],
)
def test_exit_status(machine: str, options: str, status: int) -> None:
    done = run("check", "--snapshot", machine, *options.split())
    assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize(("fail_on", "status"), [("possible", 1), ("affected", 0), ("confirmed", 0), ("never", 0)])
def test_exit_status_where_all_is_merely_possible(possible: str, fail_on: str, status: int) -> None:
    assert run("check", "--snapshot", possible, "--fail-on", fail_on).returncode == status


@posix
@pytest.mark.parametrize(
    ("options", "status", "outcome"),
    [
        ("", 1, "skip"),
        ("--require-probe", 4, "skip"),
        ("--fail-on confirmed", 0, "skip"),
        ("--fail-on confirmed --require-probe", 4, "skip"),
        ("--fail-on confirmed --require-probe --no-probe", 4, None),
        ("--fail-on confirmed --require-probe --budget 0", 4, "skip"),
    ],
)
def test_exit_status_where_the_probe_cannot_run(venv: Path, options: str, status: int, outcome: str | None) -> None:
    done = run("check", "--python", str(venv), "--format", "json", *GLM_RUN, *options.split())
    report = json.loads(done.stdout)
    (finding,) = (each for each in report["findings"] if each["id"] == GLM)
    assert (done.returncode, finding["probe"] and finding["probe"]["outcome"]) == (status, outcome), done.stderr
    assert (GLM in report["exit_reason"]) == (status == 4)


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ([], {OVERLAP, REDUCE}),
        (["--select", OVERLAP], {OVERLAP}),
        (["--select", OVERLAP, "--select", REDUCE], {OVERLAP, REDUCE}),
        (["--select", OVERLAP.lower()], {OVERLAP}),
        (["--ignore", OVERLAP], {REDUCE}),
        (["--ignore", OVERLAP.lower()], {REDUCE}),
        (["--ignore", OVERLAP, "--ignore", REDUCE], set()),
        (["--select", GLM], set()),
    ],
)
def test_select_and_ignore(options: list[str], left: set[str]) -> None:
    assert set(found(run("check", "--snapshot", TWO, "--format", "json", *options))) == left


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("name", ["CC-1999-0001", "overlap", "CC-2024-001"])
def test_an_id_that_no_entry_has_is_refused(option: str, name: str) -> None:
    refused(run("check", "--snapshot", BAD, option, GLM, option, name), name)


def test_the_json_report_is_all_there_is_on_standard_output() -> None:
    done = run("check", "--snapshot", BAD, "--format", "json")
    assert found(done) == {GLM: "affected"}
    assert json.loads(done.stdout)["exit_reason"] and done.stderr == ""


@posix
def test_progress_does_not_soil_standard_output(venv: Path) -> None:
    done = run("check", "--python", str(venv), "--format", "json", *GLM_RUN)
    assert GLM in found(done) and "attention_masked" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--snapshot", BAD],
        ["check", "--snapshot", BAD, "--format", "json"],
        ["demo"],
        ["explain", GLM],
        ["env", "--python", sys.executable],
    ],
    ids=typed,
)
def test_output_goes_to_the_file_instead(tmp_path: Path, arguments: list[str]) -> None:
    shown = run(*arguments)
    done = run(*arguments, "-o", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (shown.returncode, "")
    assert (tmp_path / "out").read_text(encoding="utf-8") == shown.stdout != ""


def test_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    refused(run("check", "--snapshot", CLEAN, "-o", str(tmp_path / "no" / "out")), str(tmp_path / "no" / "out"))


def without_origins(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The report without where its facts were read: a snapshot has another name, and does not know what was assumed."""
    report: dict[str, Any] = json.loads(done.stdout)
    del report["areas"]
    for finding in report["findings"]:
        finding["because"] = [(held["fact"], held["value"]) for held in finding["because"]]
    return report


@posix
def test_the_snapshot_of_an_environment_gives_its_findings(venv: Path) -> None:
    choice = ["--python", str(venv), *GLM_RUN]
    snapshot = run("env", *choice)
    replayed = piped(snapshot.stdout, "check", "--snapshot", "-", "--format", "json")
    judged = run("check", *choice, "--no-probe", "--format", "json")
    assert found(replayed)[GLM] == "affected"
    assert without_origins(replayed) == without_origins(judged)


@pytest.mark.parametrize("path", sorted(MACHINES.glob("*.json")), ids=lambda path: path.stem)
def test_the_environment_of_a_report_is_a_snapshot_with_the_same_findings(path: Path) -> None:
    first = run("check", "--snapshot", str(path), "--format", "json")
    again = piped(json.dumps(json.loads(first.stdout)["environment"]), "check", "--snapshot", "-", "--format", "json")
    assert without_origins(again) == without_origins(first) and again.returncode == first.returncode


@pytest.mark.parametrize("stated", [{}, {"distributions": {}}, {"gpus": []}, {"unknown": {"gpus": "no driver"}}])
def test_a_snapshot_that_states_nothing_is_status_3(stated: dict[str, Any]) -> None:
    done = piped(json.dumps({"schema_version": 1, **stated}), "check", "--snapshot", "-")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["check", "--nosuch"], "--nosuch"),
        (["check", "--fail-on", "bad"], "--fail-on"),
        (["check", "--format", "xml"], "--format"),
        (["check", "--budget", "soon"], "--budget"),
        (["matrix", "nosuch"], "nosuch"),
        (["matrix", "search"], "WORDS"),
        (["explain"], "ID"),
    ],
    ids=typed,
)
def test_bad_usage_is_status_2(arguments: list[str], named: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["probe", "nosuch"], "nosuch"),
        (["probe", "--request", "[1]"], "--request"),
        (["probe", "--request", "{"], "--request"),
        (["explain", "CC-1999-0001"], "CC-1999-0001"),
        (["check", "--snapshot", "/nowhere.json"], "/nowhere.json"),
        (["check", "/nowhere"], "/nowhere"),
        (["check", "--python", "/nowhere/python"], "/nowhere/python"),
        (["matrix", "lint", "tests"], "tests"),
    ],
    ids=typed,
)
def test_what_does_not_exist_is_refused_by_name(arguments: list[str], named: str) -> None:
    refused(run(*arguments), named)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("torch", "torch"),
        ("=1", "=1"),
        ("training.=1", "training."),
        ("nosuch.key=1", "nosuch.key"),
        ("training.nosuch=1", "training.nosuch"),
        ("gpu.compute_capability=new", "compute_capability"),
        ("training.packing=yes", "training.packing"),
        ("training.attention=fast", "training.attention"),
        ("training.deepspeed=2", "training.deepspeed"),
        ("gpus=abc", "gpus"),
        ("gpus=[1]", "gpus"),
        ("platform=x", "platform"),
        ("distributions=torch", "distributions"),
    ],
)
def test_a_malformed_assumption_is_refused_by_its_key(statement: str, named: str) -> None:
    refused(run("check", "--snapshot", BAD, "--assume", statement), named)


@pytest.mark.parametrize(
    ("statement", "affected"),
    [
        ("training.attention=eager", set()),
        ("training.per_device_train_batch_size=1", set()),
        ("distributions.torch=2.5.1", set()),
        ("distributions.torch=null", set()),
        ("gpu.compute_capability=7.5", {"CC-2023-0317"}),
        ("gpu.compute_capability=9.0", {GLM}),
        ("environ.CUDA_VISIBLE_DEVICES=0", {GLM}),
    ],
)
def test_an_assumption_overrides_the_snapshot(statement: str, affected: set[str]) -> None:
    done = run("check", "--snapshot", BAD, "--format", "json", "--assume", statement)
    assert {each for each, status in found(done).items() if status == "affected"} == affected


MAYBE = [
    {"gpus": [{"name": None}]},
    {"gpus": [{"compute_capability": None, "memory_mib": None}]},
    {"distributions": {"torch": None, "deepspeed": "0.14.4"}},
    {"distributions": {"torch": "2.junk"}},
    {"distributions": {"torch": "no version"}},
    {"target": None},
    {"target": {"prefix": "/x", "selected_by": "--python"}},
    {"model": None, "training": None, "cuda": None, "platform": None, "environ": None, "torch_build": None},
    {"model": {"traits": None, "files": None}},
    {"torch_build": {"architectures": None}, "gpus": [{"compute_capability": "9.0"}]},
    {"training": {"lora": {"target_modules": None}, "deepspeed": {"bf16": None}}},
    {"cuda": {"driver": None, "runtime": None}},
    {"unmet_requirements": None},
    {"unmet_requirements": [{"distribution": "peft", "requirement": "torch>=2"}]},
    {"python": None},
]
WRONG = [
    {"gpus": [{"compute_capability": "new"}]},
    {"gpus": [None]},
    {"gpus": {"name": "A100"}},
    {"gpus": [{"name": 1}]},
    {"target": {"executable": "/x/bin/python"}},
    {"target": {"prefix": None, "selected_by": None}},
    {"target": "/x"},
    {"distribution_problems": ["torch is broken"]},
    {"distribution_problems": {"torch": "broken"}},
    {"distribution_problems": [{"path": "/x"}]},
    {"distribution_problems": None},
    {"unmet_requirements": ["peft"]},
    {"unmet_requirements": [{"distribution": "peft"}]},
    {"distributions": {"torch": 2.5}},
    {"distributions": ["torch"]},
    {"cuda": {"driver": "new"}},
    {"cuda": "12.4"},
    {"model": {"traits": "remote"}},
    {"model": {"files": {"config.json": None}}},
    {"training": {"deepspeed": []}},
    {"training": {"lora": {"target_modules": "q_proj"}}},
    {"environ": {"RANK": 0}},
    {"unknown": None},
    {"locations": {"gpus": {"line": 1}}},
    {"distributions_complete": None},
]


def judge(stated: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    snapshot = {"schema_version": 1, "distributions": {"torch": "2.5.0", "torchvision": "0.19.1"}, **stated}
    return piped(json.dumps(snapshot), "check", "--snapshot", "-", *options)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("stated", MAYBE, ids=json.dumps)
def test_a_snapshot_that_leaves_things_open_is_judged(stated: dict[str, Any], form: str) -> None:
    done = judge(stated, "--format", form)
    assert done.returncode in (0, 1) and done.stdout and done.stderr == "", done.stderr


@pytest.mark.parametrize("stated", WRONG, ids=json.dumps)
def test_a_snapshot_of_another_shape_is_refused_by_its_key(stated: dict[str, Any]) -> None:
    refused(judge(stated), "standard input", next(iter(stated)))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00", '{"schema_version": 2}', "[" * 100_000])
def test_a_snapshot_that_is_none_is_refused(text: str) -> None:
    refused(piped(text, "check", "--snapshot", "-"), "standard input")


def test_explain_takes_a_probe() -> None:
    assert "8 sqrt(K) a (|y| + |t|)" in run("explain", "matmul").stdout


def test_explain_takes_an_id_in_any_case() -> None:
    whole = run("explain", GLM)
    assert whole.returncode == 0 and GLM in whole.stdout and "https://github.com/pytorch/pytorch" in whole.stdout
    assert run("explain", GLM.lower()).stdout == whole.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "holds", "lacks"),
    [
        (["list"], 0, {GLM, OVERLAP, REDUCE}, set()),
        (["list", "--package", "torch"], 0, {GLM}, {OVERLAP}),
        (["list", "--package", "deepspeed"], 0, {OVERLAP, REDUCE}, {GLM}),
        (["search", "overlap_comm"], 0, {OVERLAP, REDUCE}, {GLM}),
        (["search", "cuDNN", "padding"], 0, {GLM}, {OVERLAP}),
        (["search", "CUDNN", "Padding"], 0, {GLM}, {OVERLAP}),
        (
            ["search", "[rank0]: ValueError: Either a revision or a version must be specified."],
            0,
            {"CC-2026-0790"},
            {GLM},
        ),
        (["search", "no-such-word-anywhere"], 1, set(), {"CC-"}),
    ],
    ids=typed,
)
def test_the_matrix_is_listed_and_searched(arguments: list[str], status: int, holds: set[str], lacks: set[str]) -> None:
    done = run("matrix", *arguments)
    assert done.returncode == status
    assert all(each in done.stdout for each in holds) and not any(each in done.stdout for each in lacks)


def test_an_entry_that_proves_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "tables").symlink_to(ROOT / "matrix" / "tables")
    (tmp_path / "torch").mkdir()
    text = (ROOT / "matrix" / "torch" / f"{GLM}.toml").read_text(encoding="utf-8")
    (tmp_path / "torch" / f"{GLM}.toml").write_text(text.replace(">=2.5.0,<2.5.1", ">=2.5.0,<2.5.2"), encoding="utf-8")
    done = run("matrix", "lint", str(tmp_path))
    assert done.returncode == 1 and GLM in done.stdout


def test_an_entry_is_proved_alone_and_without_a_folder_one_of_the_checkout(tmp_path: Path) -> None:
    done = run("matrix", "lint", "--only", GLM, "--only", "CC-2026-0912")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "2 entries, 0 faults\n")
    (tmp_path / "tables").symlink_to(ROOT / "matrix" / "tables")
    folder = tmp_path / "torch"
    folder.mkdir()
    for each in (GLM, "CC-2026-0912"):
        text = (ROOT / "matrix" / "torch" / f"{each}.toml").read_text(encoding="utf-8")
        (folder / f"{each}.toml").write_text(text.replace(">=2.5.0,<2.5.1", ">=2.5.0,<2.5.2"), encoding="utf-8")
    done = run("matrix", "lint", str(tmp_path), "--only", "CC-2026-0912")
    assert (done.returncode, done.stderr) == (0, "1 entries, 0 faults\n")
    done = run("matrix", "lint", str(tmp_path), "--only", GLM)
    assert done.returncode == 1 and done.stderr.startswith("1 entries, ")
    done = run("matrix", "lint", str(tmp_path), "--only", "CC-2026-9999")
    assert done.returncode == 2 and "there is no CC-2026-9999" in done.stderr


def test_a_misspelt_verb_is_told_unless_a_file_is_called_that(tmp_path: Path) -> None:
    done = run("explian", GLM, cwd=tmp_path)
    assert done.returncode == 2 and "no command or file named explian; did you mean explain?" in done.stderr
    (tmp_path / "explian").write_text("accelerate launch --mixed_precision bf16 train.py\n", encoding="utf-8")
    assert "did you mean" not in run("explian", cwd=tmp_path).stderr


def test_without_a_verb_check_is_meant() -> None:
    assert run("--snapshot", BAD).stdout == run("check", "--snapshot", BAD).stdout != ""


@posix
@pytest.mark.parametrize("verb", ["matrix list", f"explain {GLM}", "demo --format json", f"check --snapshot {BAD}"])
def test_a_reader_that_leaves_is_no_fault(verb: str) -> None:
    shell = f"{sys.executable} -u -m compatcheck {verb} | true"
    done = subprocess.run(["bash", "-c", f"{shell}; exit ${{PIPESTATUS[0]}}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1) and done.stderr == ""


HANGING = """
import os, time
with open({!r}, "w") as stream:
    stream.write(f"{{os.getpid()}}\\n")
time.sleep(60)
"""


@posix
def test_an_interrupt_ends_the_probe_and_is_status_130(venv: Path, tmp_path: Path) -> None:
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "torch.py").write_text(HANGING.format(str(tmp_path / "pid")), encoding="utf-8")
    command = [sys.executable, "-m", "compatcheck", "check", "--python", str(venv), *GLM_RUN]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child = int(waited_for(tmp_path / "pid"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and out.startswith("1 affected\ncompatcheck ") and "interrupted" in out + err
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def waited_for(path: Path) -> str:
    """The first line of a file that another process writes, within twenty seconds."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text(encoding="utf-8")).endswith("\n"):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def test_formats_lists_what_check_reads(tmp_path: Path) -> None:
    done = run_command(sys.executable, "formats", cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == [
        "training",
        "models",
        "packages",
        "reports",
        "logs",
    ]
    assert {
        "  a DeepSpeed JSON",
        "  a model folder with config.json",
        "  a uv.lock",
        "  nvidia-smi",
        "  a TensorBoard event file",
    } <= {*lines}
