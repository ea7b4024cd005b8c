"""`compatcheck pin` as people type it: what is written, what is only looked at, and what a failure leaves alone."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck.verbs import pin as verb
from tests.advice.index import write_index
from tests.conftest import run_command

PADDED = (
    "--assume=gpu.compute_capability=8.0",
    "--assume=cuda.driver=550.54.15",
    "--assume=training.attention=sdpa",
    "--assume=training.per_device_train_batch_size=2",
    "--assume=training.dtype=bfloat16",
)
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    write_index(tmp_path, monkeypatch)
    return lambda *arguments: run_command(sys.executable, "pin", *arguments, cwd=tmp_path)


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text("# the stack\ntransformers==4.49.0\ntorch==2.5.0  # as on the cluster\n", encoding="utf-8")
    return path


def test_pins_go_to_standard_output_and_what_moved_beside_it(run: Run, asked: Path) -> None:
    done = run("requirements.txt", *PADDED)
    assert done.returncode == 0, done.stderr
    command = f"compatcheck pin requirements.txt {' '.join(PADDED)}"
    assert done.stdout.splitlines()[:4] == [
        f"# This file was made by {command}",
        "# the stack",
        "transformers==4.49.0",
        "torch==2.5.1  # as on the cluster  # compatcheck: CC-2024-0001, was 2.5.0",
    ]
    assert "2.5.0 -> 2.5.1" in done.stderr and "no closer set is clean" in done.stderr


def test_what_the_project_assumes_steers_and_what_it_ignores_does_not(run: Run, asked: Path, tmp_path: Path) -> None:
    stated = ", ".join(f'"{each.removeprefix("--assume=")}"' for each in PADDED)
    ignore = '[[tool.compatcheck.ignore]]\nid = "{}"\nreason = "known"\nuntil = {}\n'
    project = tmp_path / "pyproject.toml"
    for ignored, moved in (
        ("", True),
        (ignore.format("CC-2024-0001", "2999-01-01"), False),
        (ignore.format("CC-2024-0001", "2020-01-01"), True),
        (ignore.format("CC-2024-0001", "2999-01-01") + 'paths = ["configs/*"]\n', True),
    ):
        project.write_text(f"[tool.compatcheck]\nassume = [{stated}]\n{ignored}", encoding="utf-8")
        done = run("requirements.txt")
        assert done.returncode == 0 and ("torch==2.5.1" in done.stdout) is moved, done.stderr
    assert "torch==2.5.0" in run("requirements.txt", "--isolated").stdout
    project.write_text("[tool.compatcheck]\n" + ignore.format("CC-1999-0001", "2999-01-01"), encoding="utf-8")
    unknown = run("requirements.txt")
    assert unknown.returncode == 2 and "pyproject.toml" in unknown.stderr and "CC-1999-0001" in unknown.stderr


def test_a_file_is_written_once_and_then_up_to_date(run: Run, asked: Path) -> None:
    assert run("requirements.txt", *PADDED, "-o", "requirements.txt").returncode == 0
    first = asked.read_bytes()
    assert run("requirements.txt", *PADDED, "--check").returncode == 0
    assert run("requirements.txt", *PADDED, "-o", "requirements.txt").returncode == 0
    assert asked.read_bytes() == first


def test_a_file_that_is_out_of_date_is_told_and_left(run: Run, asked: Path) -> None:
    before = asked.read_bytes()
    done = run("requirements.txt", *PADDED, "--check")
    assert done.returncode == 1 and "requirements.txt is out of date" in done.stderr
    shown = run("requirements.txt", *PADDED, "--diff")
    assert shown.returncode == 0 and "-torch==2.5.0" in shown.stdout and "+torch==2.5.1" in shown.stdout
    assert asked.read_bytes() == before


def test_contradictory_requirements_end_with_1_and_touch_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.in").write_text("torch>=2.6\ntorch<2.5\n", encoding="utf-8")
    (tmp_path / "out.txt").write_text("mine\n", encoding="utf-8")
    done = run("requirements.in", "-o", "out.txt")
    assert done.returncode == 1 and "torch" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "mine\n"


def test_an_index_that_does_not_answer_is_named_without_its_password(run: Run, asked: Path, tmp_path: Path) -> None:
    (tmp_path / "uv.toml").write_text('index-url = "http://me:s3cret@127.0.0.1:9/simple"\n', encoding="utf-8")
    done = run("requirements.txt", *PADDED, "-o", "out.txt")
    assert done.returncode == 2 and "127.0.0.1" in done.stderr
    assert "s3cret" not in done.stdout + done.stderr
    assert not (tmp_path / "out.txt").exists()


def test_a_file_that_was_edited_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("mine\n", encoding="utf-8")
    with pytest.raises(verb.InputError, match="changed in the meantime"):
        verb._deliver("new\n", {str(path): "before\n"}, str(path), {"only_diff": False, "only_check": False})
    assert path.read_text(encoding="utf-8") == "mine\n"


def test_what_is_taken_as_it_is_is_said_to_be_unchecked(run: Run, tmp_path: Path) -> None:
    wheel = next((tmp_path / "links").glob("peft-*"))
    lines = f"torch==2.6.0\npeft @ {wheel.as_uri()}\n"
    (tmp_path / "requirements.in").write_text(lines, encoding="utf-8")
    done = run("requirements.in")
    assert done.returncode == 0, done.stderr
    assert "requirements.in:2: peft is" in done.stderr and "unchecked" in done.stderr
    assert lines.splitlines()[1] in done.stdout


def test_a_snapshot_is_pinned_for_from_another_machine(run: Run, tmp_path: Path) -> None:
    snapshot = {
        "schema_version": 1,
        "python": "3.10.12",
        "platform": {"system": "Linux", "machine": "aarch64", "libc": "glibc 2.35"},
        "distributions": {"torch": "2.5.0", "transformers": "4.49.0"},
        "gpus": [{"compute_capability": "9.0"}],
        "cuda": {"driver": "550.54.15"},
        "training": {"attention": "sdpa", "per_device_train_batch_size": 2, "dtype": "bfloat16"},
    }
    (tmp_path / "node.json").write_text(json.dumps(snapshot), encoding="utf-8")
    done = run("--snapshot", "node.json", "--report", "json=report.json")
    assert done.returncode == 0, done.stderr
    assert "torch==2.5.1" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [(each["name"], each["now"]) for each in report["moved"] if each["was"]] == [("torch", "2.5.1")]
    assert report["proven"] is True and report["left"] == [] and report["trials"] is None
    run("--target", "node.json", "--report", "html=report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>" in page and "torch==2.5.1" in page and "go here" in page


@pytest.mark.parametrize("format_name", ["constraints", "pylock", "pyproject"])
def test_other_formats_say_the_same_versions(run: Run, asked: Path, format_name: str) -> None:
    done = run("requirements.txt", *PADDED, "--format", format_name)
    assert done.returncode == 0, done.stderr
    assert "2.5.1" in done.stdout and "CC-2024-0001" in done.stdout


def test_check_without_a_file_to_compare_is_a_usage_error(run: Run) -> None:
    done = run("--check")
    assert done.returncode == 2 and "-o FILE" in done.stderr


def test_the_command_that_check_names_writes_the_very_file(run: Run, asked: Path) -> None:
    advice = run("requirements.txt", *PADDED, "--check").stderr.partition("with compatcheck ")[2]
    verb, *arguments = shlex.split(advice.splitlines()[0])
    assert verb == "pin"
    assert run(*arguments).returncode == 0
    assert run("requirements.txt", *PADDED, "--check").returncode == 0


@pytest.mark.parametrize("name", ["train.sh", "notes.md", "report.json"])
def test_a_file_of_another_kind_is_never_written_over(run: Run, asked: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine\n", encoding="utf-8")
    done = run("requirements.txt", "-o", name)
    assert done.returncode == 2 and name in done.stderr
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine\n"


def test_a_pyproject_stays_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    text = '[project]\nname = "x"\nversion = "1"\n# the stack\ndependencies = ["torch==2.5.0"]\n'
    path.write_text(text, encoding="utf-8")
    assert run("pyproject.toml", *PADDED, "-o", "pyproject.toml").returncode == 0
    written = path.read_text(encoding="utf-8")
    assert written.startswith(text.partition("dependencies")[0]) and "torch==2.5.1" in written
    assert run("pyproject.toml", *PADDED, "--check").returncode == 0


def test_nothing_to_pin_is_told_and_is_not_compatcheck_itself(run: Run, tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text('{"schema_version": 1, "distributions": {}}', encoding="utf-8")
    done = run("--target", "node.json", "-o", "out.txt")
    assert done.returncode == 3 and "nothing to pin" in done.stderr
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--target", "x.json", "--python", "3.11"), "--snapshot"),
        (("requirements.txt", "--report", "json=requirements.txt"), "--report"),
        (("requirements.txt", "--report", "moves.json"), "FORMAT=FILE"),
        (("requirements.txt", "-o", "gone/out.txt"), "no folder"),
        (("requirements.txt", "--format", "pylock", "-o", "requirements.txt"), "another file"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_work(
    run: Run, asked: Path, arguments: tuple[str, ...], told: str
) -> None:
    before = asked.read_bytes()
    done = run(*arguments)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert asked.read_bytes() == before


def test_time_that_ran_out_writes_no_file(run: Run, asked: Path) -> None:
    before = asked.read_bytes()
    done = run("requirements.txt", *PADDED, "--budget", "0", "-o", "requirements.txt")
    assert done.returncode == 1 and "--budget" in done.stderr
    assert asked.read_bytes() == before


def test_what_is_only_possible_is_told(run: Run, asked: Path) -> None:
    done = run("requirements.txt", *(each for each in PADDED if "batch_size" not in each))
    assert "possible, and not avoided: CC-2024-0001" in done.stderr
    assert "torch==2.5.0" in done.stdout


def test_a_difference_shows_no_password(run: Run, tmp_path: Path) -> None:
    lines = "--extra-index-url http://me:s3cret@127.0.0.1:9/simple\ntorch==2.5.0\n"
    (tmp_path / "requirements.txt").write_text(lines, encoding="utf-8")
    done = run("requirements.txt", *PADDED, "--diff")
    assert "s3cret" not in done.stdout + done.stderr
