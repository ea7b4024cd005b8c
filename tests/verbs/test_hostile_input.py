"""What a stranger's files hold: secrets stay inside, nothing hangs or grows, and each fault is one line."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.advice.tiny_wheels import write_wheel
from tests.cluster import ranks
from tests.conftest import run_command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="FIFOs, process groups and /proc are Linux's here")

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial" / "project"
SECRET = "Zq3vX9SECRETk7LmW2"
REQUIREMENTS = f"""\
--index-url https://user:{SECRET}@127.0.0.1:9/simple
torch==2.5.0
transformers==4.48.0
peft @ git+https://user:{SECRET}@127.0.0.1:9/huggingface/peft.git@v0.14.0
flash-attn @ https://127.0.0.1:9/flash_attn-2.5.8-cp310-cp310-linux_x86_64.whl?token={SECRET}
"""
LAUNCH = f"""\
export WANDB_API_KEY={SECRET}
python train.py --model_name_or_path https://user:{SECRET}@hf.co/a/b --hub_token {SECRET} --bf16 True
"""
SETTINGS = f"""\
model_name_or_path: https://user:{SECRET}@hf.co/a/b
hub_token: {SECRET}
bf16: true
"""
SCRIPT = f"""\
from huggingface_hub import login
from transformers import Trainer, TrainingArguments
login(token="{SECRET}")
arguments = TrainingArguments("out", bf16=True, hub_token="{SECRET}", evaluation_strategy="steps")
"""
LOG = f"""\
HF_TOKEN={SECRET}
{{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 1e-5, 'epoch': 0.1}}
{{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-5, 'epoch': 0.2}}
Traceback (most recent call last):
  File "x.py", line 3, in <module>
    login(token="{SECRET}")
requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://user:{SECRET}@h/x?token={SECRET}
"""
SNAPSHOT = json.dumps(
    {
        "schema_version": 1,
        "distributions": {"torch": "2.5.0"},
        "training": {"hub_token": SECRET},
        "model": {"name": f"https://user:{SECRET}@hf.co/a"},
    }
)
INPUTS = {
    "requirements.txt": REQUIREMENTS,
    "train.sh": LAUNCH,
    "train.yaml": SETTINGS,
    "train.py": SCRIPT,
    "train.log": LOG,
    "node.json": SNAPSHOT,
}


def told(folder: Path, *arguments: str) -> str:
    """Everything that a command writes: both streams, and the files that it makes."""
    before = set(folder.iterdir())
    done = run_command(sys.executable, *arguments, cwd=folder)
    made = "".join(each.read_text(encoding="utf-8") for each in folder.iterdir() if each not in before)
    assert "Traceback" not in done.stderr and done.returncode in (0, 1, 2, 3), done.stderr
    return done.stdout + done.stderr + made


@pytest.mark.parametrize("name", INPUTS)
def test_a_secret_in_an_input_is_in_no_output(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(INPUTS[name], encoding="utf-8")
    if name.endswith(".log"):
        commands = [["diagnose", name, "--all", "--format", each] for each in ("text", "json", "html", "markdown")]
        commands.append(["diagnose", name, "--snapshot-out", "facts.json"])
    else:
        given = ["--snapshot", name] if name == "node.json" else [name]
        check = ["check", "--no-probe", "--isolated", *given]
        commands = [[*check, "--format", each] for each in ("text", "json", "html", "sarif", "markdown")]
        commands += [
            [*check, "--fix", "--unsafe-fixes"],
            [*check, "-v"],
            *([] if name == "node.json" else [["env", name, "-o", "facts.json"]]),
        ]
    for command in commands:
        assert SECRET not in told(tmp_path, *command), command


def test_markdown_masks_names_and_shapes_that_it_escapes(tmp_path: Path) -> None:
    token = "hf_AbSECRETdEfGhIjKlMnOpQrSt"
    report = f"The loss is NaN with {token} and hub_token={SECRET}\n\ntorch 2.5.0\n"
    (tmp_path / "x.md").write_text(report, encoding="utf-8")
    output = told(tmp_path, "diagnose", "x.md", "--format", "markdown")
    assert "NaN with" in output and "SECRET" not in output


def test_a_diff_of_fixes_shows_no_credential(tmp_path: Path) -> None:
    shutil.copytree(TUTORIAL, tmp_path / "tune")
    requirements = tmp_path / "tune" / "requirements.txt"
    kept = requirements.read_text(encoding="utf-8")
    requirements.write_text(f"--index-url https://user:{SECRET}@127.0.0.1:9/simple\n{kept}", encoding="utf-8")
    facts = ("--assume", "gpu.compute_capability=8.0", "--assume", "cuda.runtime=12.4")
    output = told(tmp_path / "tune", "check", ".", "--no-probe", "--fix", *facts)
    assert "+torch==2.5.1" in output and SECRET not in output and "`git apply` rejects it" in output


def test_a_diff_of_fixes_holds_no_command_of_a_workflow(tmp_path: Path) -> None:
    shutil.copytree(TUTORIAL, tmp_path / "tune")
    requirements = tmp_path / "tune" / "requirements.txt"
    kept = requirements.read_text(encoding="utf-8")
    requirements.write_text(f"# ##[error]pwn ##vso[task.complete]\n# \x1b[31m\n{kept}", encoding="utf-8")
    facts = ("--assume", "gpu.compute_capability=8.0", "--assume", "cuda.runtime=12.4")
    output = told(tmp_path / "tune", "check", ".", "--no-probe", "--fix", *facts)
    assert "+torch==2.5.1" in output and "pwn" in output and "`git apply` rejects it" in output
    assert "##[" not in output and "##vso[" not in output and "\x1b" not in output


def test_pins_name_a_folder_without_its_commands(tmp_path: Path) -> None:
    folder = tmp_path / "##[error]a"
    folder.mkdir()
    (folder / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    done = run_command(sys.executable, "pin", "##[error]a", "--offline", "--python", "3.11", cwd=tmp_path)
    assert "error]a" in done.stderr and "##[" not in done.stderr


def test_a_fix_follows_no_folder_that_links_out(tmp_path: Path) -> None:
    shutil.copytree(TUTORIAL, tmp_path / "elsewhere")
    (tmp_path / "tune").mkdir()
    (tmp_path / "tune" / "conf").symlink_to("../elsewhere")
    before = (tmp_path / "elsewhere" / "requirements.txt").read_bytes()
    facts = ("--assume", "gpu.compute_capability=8.0", "--assume", "cuda.runtime=12.4")
    files = ("conf/requirements.txt", "conf/train.sh")
    told(tmp_path / "tune", "check", *files, "--no-probe", "--fix", "--write", "--unsafe-fixes", *facts)
    assert (tmp_path / "elsewhere" / "requirements.txt").read_bytes() == before


@pytest.mark.parametrize("name", ["::error::pwn.yaml", "##[error]pwn.yaml", "a\n::error::pwn.yaml"])
@pytest.mark.parametrize("format_name", ["text", "concise", "markdown", "html", "junit", "json", "sarif", "gitlab"])
def test_no_line_of_a_report_is_a_command_of_a_workflow(format_name: str, name: str, tmp_path: Path) -> None:
    settings = "stage: sft\nfinetuning_type: lora\nmodel_name_or_path: x\ntemplate: qwen\nbf16: true\nfp16: true\n"
    (tmp_path / name).write_text(settings, encoding="utf-8")
    output = told(tmp_path, "check", "--no-probe", "--isolated", "--format", format_name, "--", name)
    assert "pwn.yaml" in output and "##[" not in output
    assert not [line for line in output.splitlines() if line.lstrip().startswith("::")]


@pytest.mark.parametrize(
    "files",
    [
        {**{f"{level}.txt": f"-r {level + 1}.txt\n" * 40 for level in range(8)}, "8.txt": ""},
        {"0.txt": "".join(f"package{number}==1.{number}\n" for number in range(150_000))},
        {"0.txt": "torch" + ",".join(f"!=2.{number}" for number in range(200_000))},
    ],
    ids=["includes", "lines", "specifiers"],
)
def test_a_list_of_requirements_without_end_is_refused(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in {**files, "requirements.txt": "-r 0.txt\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for verb in (("check", "--no-probe", "--isolated"), ("pin", "--offline")):
        done = run_command(sys.executable, *verb, "requirements.txt", cwd=tmp_path)
        assert done.returncode == 2 and "more than" in done.stderr and "Traceback" not in done.stderr


# Linux counts the memory of whoever starts a process as that process's own peak, so a small parent starts it.
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, used.ru_maxrss, used.ru_utime)
"""


def costs(command: list[str], folder: Path) -> tuple[int, int, float]:
    """The exit status of a command, its peak of memory in KiB, and its seconds of processor time."""
    done = subprocess.run([sys.executable, "-c", PEAK, *command], cwd=folder, capture_output=True, check=True)
    status, peak_kib, seconds = done.stdout.split()
    return int(status), int(peak_kib), float(seconds)


def test_a_folder_of_thousands_of_scripts_costs_little(tmp_path: Path) -> None:
    script = "from transformers import Trainer, TrainingArguments\nTrainer(args=TrainingArguments('x')).train()\n"
    for number in range(2000):
        (tmp_path / f"train{number}.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "compatcheck", "check", "--no-probe", "--isolated", "."]
    _status, peak_kib, seconds = costs(command, tmp_path)
    assert peak_kib < 500 << 10 and seconds < 10


def test_a_snapshot_shows_no_line_of_a_file(tmp_path: Path) -> None:
    recorded = json.loads((TUTORIAL.parents[2] / "compatcheck" / "demo" / "glm-4.json").read_text(encoding="utf-8"))
    (tmp_path / "private").write_text(f"torch {SECRET}\n", encoding="utf-8")
    at = {"file": str(tmp_path / "private"), "line": 1}
    places = dict.fromkeys(("distributions.torch", "training.attention", "training.framework", "model.type"), at)
    (tmp_path / "node.json").write_text(json.dumps({**recorded, "locations": places}), encoding="utf-8")
    output = told(tmp_path, "check", "--snapshot", "node.json", "--no-probe", "-v")
    assert "private:1" in output and SECRET not in output


def test_a_credential_is_masked_before_its_text_is_cut(tmp_path: Path) -> None:
    address = f"https://user:{'hunter2' * 20}@host/"
    (tmp_path / "args.yaml").write_text(
        f"output_dir: x\nlearning_rate: '{address}'\nbf16: '{address}'\n", encoding="utf-8"
    )
    snapshot = {"schema_version": "1.0", "distributions": [address]}
    (tmp_path / "snapshot.json").write_text(json.dumps(snapshot), encoding="utf-8")
    for line in ("check --no-probe -v args.yaml", "env args.yaml", "check --no-probe --snapshot snapshot.json"):
        done = run_command(sys.executable, *line.split(), cwd=tmp_path)
        assert "hunter2" not in done.stdout + done.stderr, line


def test_a_node_without_distributions_is_a_difference(tmp_path: Path) -> None:
    node = json.loads(run_command(sys.executable, "env", "--python", sys.executable, cwd=tmp_path).stdout)
    (tmp_path / "nodes").mkdir()
    for name, changed in (("a", node), ("b", {**node, "distributions": None, "environ": {"HF_TOKEN": ["hunter2"]}})):
        (tmp_path / f"nodes/{name}.json").write_text(json.dumps(changed), encoding="utf-8")
    done = run_command(sys.executable, "cluster", "--snapshots", "nodes", cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "hunter2" not in done.stdout, done.stderr


def test_a_null_byte_in_a_place_of_a_snapshot_is_one_line(tmp_path: Path) -> None:
    at = {"distributions.torch": {"file": "a\0b", "line": 1}}
    snapshot = {"schema_version": 1, "distributions": {"torch": "2.5.0"}, "locations": at}
    (tmp_path / "node.json").write_text(json.dumps(snapshot), encoding="utf-8")
    done = run_command(sys.executable, "check", "--snapshot", "node.json", "--format", "sarif", cwd=tmp_path)
    assert done.returncode == 2 and "null byte" in done.stderr and done.stderr.count("\n") == 1


def test_json_that_is_nested_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(f'{{"zero_optimization": {"[" * 900}{"]" * 900}}}', encoding="utf-8")
    done = run_command(sys.executable, "check", "--no-probe", "--isolated", "ds.json", cwd=tmp_path)
    assert done.returncode == 2 and "nested too deeply" in done.stderr and "Traceback" not in done.stderr


def test_an_error_line_masks_and_spells_out_and_shortens(tmp_path: Path) -> None:
    for name in (f"https://user:{SECRET}@h", "no\x1b]0;pwn\x07such.yaml", "a\nb.yaml", "z" * 5000):
        done = run_command(sys.executable, "check", "--no-probe", name, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and len(done.stderr) < 600
        assert SECRET not in done.stderr and "\x1b" not in done.stderr


def interpreter(folder: Path, body: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "body",
    [
        "print('[' * 200000)",
        "import json; print(json.dumps({'version': '3.11.1', 'executable': '', 'prefix': '', 'folders': None}))",
        "import json; print(json.dumps({'version': 3, 'executable': 4, 'prefix': 5, 'folders': [6]}))",
        "import sys; sys.stderr.write('\\x1b]0;pwn\\x07 bad'); sys.exit(3)",
        "import json; print(json.dumps({'version': '3', 'executable': 'a\\0b', 'prefix': '', 'folders': []}))",
    ],
)
def test_an_interpreter_that_answers_wrongly_is_one_line(body: str, tmp_path: Path) -> None:
    python = interpreter(tmp_path, body)
    done = run_command(sys.executable, "check", "--no-probe", "--isolated", "--python", str(python), cwd=tmp_path)
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
    assert "\x1b" not in done.stderr and "pass a working Python" in done.stderr


def test_an_interpreter_that_never_stops_writing_costs_no_memory(tmp_path: Path) -> None:
    python = interpreter(tmp_path, "while True: print('x' * 100000)")
    command = [sys.executable, "-m", "compatcheck", "check", "--no-probe", "--isolated", "--python", str(python)]
    status, peak_kib, _seconds = costs(command, tmp_path)
    assert status == 3
    assert peak_kib < 1 << 18


def test_what_an_interpreter_starts_ends_with_it(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    start = "child = subprocess.Popen(['sleep', '300'])"
    body = f"import subprocess, sys\n{start}\nopen({str(noted)!r}, 'w').write(str(child.pid))\nsys.exit(1)"
    run_command(
        sys.executable, "check", "--no-probe", "--isolated", "--python", str(interpreter(tmp_path, body)), cwd=tmp_path
    )
    deadline = time.monotonic() + 5
    while is_alive(int(noted.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(int(noted.read_text()))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_named_pipes_and_null_bytes_beside_packages_are_passed_over(tmp_path: Path) -> None:
    packages = tmp_path / "venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (tmp_path / "venv/pyvenv.cfg").write_text("version = 3.11.7\n", encoding="utf-8")
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").touch()
    os.mkfifo(packages / "x.pth")
    os.mkfifo(packages / "foo.egg-link")
    (packages / "bar.egg-link").write_text("a\0b\n", encoding="utf-8")
    (packages / "torch-2.5.0.dist-info").mkdir()
    (packages / "torch-2.5.0.dist-info/METADATA").write_text("Name: torch\nVersion: 2.5.0\n", encoding="utf-8")
    command = [sys.executable, "-m", "compatcheck", "check", "--no-probe", "--isolated", "--python", "venv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "torch 2.5.0" in done.stdout, done.stderr


def test_a_distribution_that_declares_a_hundred_thousand_requirements_costs_seconds(tmp_path: Path) -> None:
    about = tmp_path / "venv/lib/python3.11/site-packages/torch-2.5.0.dist-info"
    about.mkdir(parents=True)
    (tmp_path / "venv/pyvenv.cfg").write_text("version = 3.11.7\n", encoding="utf-8")
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").touch()
    lines = "".join(f"Requires-Dist: a{number}>1,<2\n" for number in range(100_000))
    (about / "METADATA").write_text(f"Name: torch\nVersion: 2.5.0\n{lines}", encoding="utf-8")
    code = "import resource; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)"
    start = "import subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
    command = [sys.executable, "-m", "compatcheck", "env", "--python", "venv"]
    done = subprocess.run([sys.executable, "-c", start + code, *command], cwd=tmp_path, capture_output=True, check=True)
    assert float(done.stdout) < 10


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "torch=={}\n"),
        ("requirements.txt", "torch>=2.{}\n"),
        ("pyproject.toml", "[project]\nname = 'a'\nversion = '1'\n[tool.poetry]\nx = {}\n"),
        ("train.toml", "per_device_train_batch_size = {}\n"),
        ("train.yaml", "per_device_train_batch_size: {}\nbf16: true\n"),
        ("train.json", '{{"per_device_train_batch_size": {}, "bf16": true}}'),
        ("train.py", "x = {}\n"),
        ("node.json", '{{"schema_version": {}}}'),
        ("report.md", "torch {0}\nTypeError: f() takes {0} positional arguments but 3 were given\n"),
        ("rows.jsonl", '{{"instruction": "a", "output": "b", "history": {}}}\n'),
        ("rows.jsonl", '{{"instruction": "a", "output": "b", "history": 5}}\n'),
    ],
)
def test_numbers_of_thousands_of_digits_are_no_bug(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text.format("9" * 5000), encoding="utf-8")
    verb = {"report.md": ["diagnose"], "rows.jsonl": ["data"], "node.json": ["check", "--no-probe", "--snapshot"]}
    command = verb.get(name, ["check", "--no-probe", "--isolated"])
    done = run_command(sys.executable, *command, name, cwd=tmp_path)
    assert done.returncode in (0, 1, 2, 3) and "Traceback" not in done.stderr, done.stderr
    assert len(done.stderr) < 800


def test_a_zip_that_claims_gigabytes_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    size = 5 << 30
    with (tmp_path / "pytorch_model.bin").open("wb") as stream:
        stream.write(b"PK\x03\x04")
        stream.truncate(size + 56 + 20 + 22)
        stream.seek(size)
        stream.write(struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, size - 4096, 4096))
        stream.write(struct.pack("<4sLQL", b"PK\x06\x07", 0, size, 1))
        stream.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))
    done = run_command(sys.executable, "model", ".", cwd=tmp_path)
    assert done.returncode == 1 and "its zip listing claims" in done.stdout, done.stdout + done.stderr


def test_a_project_file_of_another_shape_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = true\n", encoding="utf-8")
    done = run_command(sys.executable, "ignore", "CC-2024-0001", "--reason", "r", "--until", "2099-01-01", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert (tmp_path / "pyproject.toml").read_text(encoding="utf-8") == "tool = true\n"


def test_a_version_of_several_lines_breaks_no_markdown(tmp_path: Path) -> None:
    version = "4.48.0\n```\n<img src=x onerror=alert(1)>\n::error::pwn\x1b[31m"
    snapshot = {"schema_version": 1, "distributions": {"torch": "2.3.1", "transformers": version}}
    (tmp_path / "node.json").write_text(json.dumps(snapshot), encoding="utf-8")
    check = ("check", "--no-probe", "--snapshot", "node.json", "--format")
    for name in ("markdown", "text", "github"):
        done = run_command(sys.executable, *check, name, cwd=tmp_path)
        assert "\x1b" not in done.stdout and "\n::error::pwn" not in done.stdout and "\n<img" not in done.stdout, name


ASLEEP = """\
import os, subprocess, time
subprocess.Popen(["sleep", "300"])
open({marker!r}, "w").close()
time.sleep(300)
"""
"""What a stranger's package or interpreter may do: start others, and never end."""


@pytest.mark.parametrize(
    "format_name", ["text", "json", "html", "markdown", "sarif", "github", "gitlab", "junit", "csv"]
)
def test_no_output_holds_a_character_that_steers_or_turns_text_round(format_name: str, tmp_path: Path) -> None:
    odd = "\x1b[31m\x9b31m\u202egnp\u2066\x7f"
    (tmp_path / "model").mkdir()
    config = {"model_type": f"llama{odd}", "_name_or_path": odd, "torch_dtype": odd}
    (tmp_path / "model/config.json").write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
    (tmp_path / "requirements.txt").write_text(f"torch==2.5.0\npeft{odd}==1 # {odd}\n", encoding="utf-8")
    (tmp_path / "l.log").write_text(f"ImportError: cannot import name 'x{odd}' from 'transformers'\n", encoding="utf-8")
    (tmp_path / f"{odd}.yaml").write_text(f"bf16: true\noptim: '{odd[5:]}'\n", encoding="utf-8")
    check, given = ("check", "--no-probe", "--isolated"), ("--format", format_name)
    for command in (
        (*check, "."),
        (*check, "model", "requirements.txt"),
        ("model", "model"),
        ("diagnose", "l.log", "."),
    ):
        done = run_command(sys.executable, *command, *given, cwd=tmp_path)
        text = done.stdout + done.stderr
        assert done.returncode in (0, 1, 2, 3) and not set(odd) & set(text) - set("[31mgnp"), (command, text)
    done = run_command(sys.executable, "env", "model", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout) and not set(odd) & set(done.stdout) - set("[31mgnp")


@pytest.mark.parametrize(
    "name", ["train.log", "trainer_state.json", "notes.txt", "report.md", "requirements.txt", "x.py"]
)
def test_a_link_that_leads_nowhere_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to("nowhere")
    for verb in ("diagnose", "check"):
        done = run_command(sys.executable, verb, name, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def test_a_line_that_unpacks_to_gigabytes_is_no_log(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "train.log.gz", "wb", 1) as stream:
        for _ in range(2000):
            stream.write(b" " * 1_000_000)
    done = run_command(sys.executable, "diagnose", "train.log.gz", cwd=tmp_path)
    assert done.returncode == 2 and "line 1 is longer than 256 MiB" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
@pytest.mark.parametrize(
    "command",
    [
        ("probe", "matmul", "--python", "venv", "--fresh"),
        ("probe", "package_imports", "--python", "venv", "--fresh"),
        ("data", "rows.jsonl", "--model", "model", "--python", "venv"),
        ("check", "--no-probe", "--isolated", "--python", "./python"),
    ],
    ids=" ".join,
)
def test_ended_while_it_waits_for_another_process_leaves_nothing(
    command: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    marker, folder = tmp_path / "asleep", tmp_path / "temporary"
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    for name in ("torch", "transformers"):
        (site / f"{name}.py").write_text(ASLEEP.format(marker=str(marker)), encoding="utf-8")
        (site / f"{name}-4.0.dist-info").mkdir()
        (site / f"{name}-4.0.dist-info/METADATA").write_text(f"Name: {name}\nVersion: 4.0\n", encoding="utf-8")
    interpreter(tmp_path, ASLEEP.format(marker=str(marker)))
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('{"messages": [{"role": "user", "content": "a"}]}\n', encoding="utf-8")
    environ = {
        **os.environ,
        "TMPDIR": str(folder),
        "XDG_DATA_HOME": str(tmp_path),
        "VIRTUAL_ENV": str(tmp_path / "venv"),
    }
    line = [sys.executable, "-m", "compatcheck", *command]
    quiet = subprocess.DEVNULL
    if number in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # a shell's background job ignores it, and so would its children
    running = subprocess.Popen(line, cwd=tmp_path, env=environ, stdin=quiet, stdout=quiet, stderr=quiet)
    deadline = time.monotonic() + 60
    while not marker.exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    started = descendants(running.pid)
    assert len(started) >= 3, "the program, what it starts, and the one that removes them"
    running.send_signal(number)
    assert running.wait(30) in (128 + number, -number)
    deadline = time.monotonic() + 2
    while (any(map(is_alive, started)) or any(folder.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [each for each in started if is_alive(each)] and not [*folder.iterdir()]


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text(encoding="utf-8").split():
            found += [int(child), *descendants(int(child))]
    return found


BACKEND = """\
import os
open({marker!r}, "w").close()
def prepare_metadata_for_build_wheel(folder, settings=None):
    os.makedirs(folder + "/stranger-1.0.dist-info")
    with open(folder + "/stranger-1.0.dist-info/METADATA", "w") as stream:
        stream.write("Metadata-Version: 2.1\\nName: stranger\\nVersion: 1.0\\n")
    return "stranger-1.0.dist-info"
"""
PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "stranger"
dynamic = ["version", "dependencies"]
"""


@pytest.mark.parametrize("line", ["stranger @ {address}", "./stranger", "-e ./stranger", "./nameless"])
def test_a_local_project_is_built_only_where_that_is_asked_for(line: str, tmp_path: Path) -> None:
    marker = tmp_path / "built"
    for name in ("stranger", "nameless"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "backend.py").write_text(BACKEND.format(marker=str(marker)), encoding="utf-8")
        project = PROJECT if name == "stranger" else PROJECT.partition("[project]")[0]
        (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    text = line.format(address=(tmp_path / "stranger").as_uri())
    (tmp_path / "requirements.txt").write_text(f"{text}\n", encoding="utf-8")
    pin = ("pin", "--isolated", "--offline", "requirements.txt")
    done = run_command(sys.executable, *pin, cwd=tmp_path)
    assert not marker.exists() and "Traceback" not in done.stderr
    assert done.returncode == 0 and text in done.stdout, done.stderr
    done = run_command(sys.executable, *pin, "--build", cwd=tmp_path)
    assert marker.exists() and done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["diagnose", "check --no-probe --isolated", "check --snapshot", "data"])
def test_a_file_without_an_end_is_one_line(command: str, tmp_path: Path) -> None:
    for path in ("/dev/zero", "/dev/tty", "/proc/kmsg"):
        line = [sys.executable, "-m", "compatcheck", *command.split(), path]
        done = subprocess.run(
            line, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def test_calls_beyond_the_limit_are_named_once(tmp_path: Path) -> None:
    calls = "".join(f"torch.call{number}()\n" for number in range(6000))
    (tmp_path / "train.py").write_text(f"import torch\n{calls}", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    done = run_command(
        sys.executable, "check", "--no-probe", "--isolated", "train.py", "requirements.txt", cwd=tmp_path
    )
    assert done.stderr.count("not compared with releases") == 1, done.stderr


LOCAL_PLACES = {
    "named archive by its path": ("requirements.txt", "stranger @ ./dist/stranger-1.0.tar.gz\n"),
    "archive below a folder called .whl": ("requirements.txt", "./x.whl/stranger-1.0.tar.gz\n"),
    "constraint": ("requirements.txt", "-c constraints.txt\nstranger\n"),
    "variable in find-links": ("requirements.txt", "--no-index\n--find-links file://${PWD}/dist\nstranger\n"),
    "version of another form": ("requirements.txt", "--no-index\n--find-links odd\nstranger\n"),
    "index with folders": ("requirements.txt", "--index-url ./simple\nstranger\n"),
    "page of links": ("requirements.txt", "--no-index\n--find-links ./simple/stranger/index.html\nstranger\n"),
    "wheel that requires it": ("requirements.txt", "./x-1.0-py3-none-any.whl\n"),
    "workspace above a project": ("requirements.txt", "-e ./space/member\n"),
    "settings of a later TOML": (
        "uv.toml",
        'override-dependencies = ["stranger @ ADDRESS"]\npip = {\n strict = true,\n}\n',
    ),
    "settings of megabytes": (
        "uv.toml",
        'override-dependencies = ["stranger @ ADDRESS"]\n' + ("#" * 999 + "\n") * 17000,
    ),
    "repository": ("requirements.txt", "git+ADDRESS\n"),
}


@pytest.mark.parametrize("command", [("pin", "--isolated", "--offline"), ("check", "--no-probe", "--resolve")])
@pytest.mark.parametrize("name", LOCAL_PLACES)
def test_no_way_to_name_local_code_builds_it(name: str, command: tuple[str, ...], tmp_path: Path) -> None:
    marker = tmp_path / "built"
    folder = tmp_path / "stranger"
    folder.mkdir()
    (folder / "backend.py").write_text(BACKEND.format(marker=str(marker)), encoding="utf-8")
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    if name == "repository":
        for line in ("init -q", "add -A", "-c user.name=a -c user.email=a@b.c commit -qm a"):
            subprocess.run(["git", *line.split()], cwd=folder, check=True)
    for archive in ("dist/stranger-1.0", "x.whl/stranger-1.0", "odd/stranger-v1.0", "simple/stranger/stranger-1.0"):
        path = tmp_path / f"{archive}.tar.gz"
        path.parent.mkdir(parents=True)
        with tarfile.open(path, "w:gz") as stream:
            stream.add(folder, "stranger-1.0")
            about = tarfile.TarInfo("stranger-1.0/PKG-INFO")
            content = b"Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n"
            about.size = len(content)
            stream.addfile(about, io.BytesIO(content))
    page = '<html><body><a href="stranger-1.0.tar.gz">stranger-1.0.tar.gz</a></body></html>'
    member = '[project]\nname = "member"\nversion = "1"\ndependencies = ["stranger"]\n'
    space = '[tool.uv.workspace]\nmembers = ["member"]\n[tool.uv.sources]\nstranger = { path = "../stranger" }\n'
    (tmp_path / "space/member").mkdir(parents=True)
    for path, text in {
        "simple/stranger/index.html": page,
        "space/pyproject.toml": space,
        "space/member/pyproject.toml": member,
        "constraints.txt": f"stranger @ {folder.as_uri()}\n",
        "requirements.txt": "stranger\n",
        LOCAL_PLACES[name][0]: LOCAL_PLACES[name][1].replace("ADDRESS", folder.as_uri()),
    }.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "x-1.0-py3-none-any.whl", "w") as wheel:
        about_wheel = f"Metadata-Version: 2.1\nName: x\nVersion: 1.0\nRequires-Dist: stranger @ {folder.as_uri()}\n"
        wheel.writestr("x-1.0.dist-info/METADATA", about_wheel)
        wheel.writestr("x-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("x-1.0.dist-info/RECORD", "")
    done = run_command(sys.executable, *command, "requirements.txt", cwd=tmp_path, PWD=str(tmp_path), UV_OFFLINE="1")
    assert not marker.exists() and "Traceback" not in done.stderr, done.stderr
    if command[0] == "pin":
        run_command(sys.executable, *command, "--build", "requirements.txt", cwd=tmp_path, PWD=str(tmp_path))
        assert marker.exists()


def test_a_version_of_a_snapshot_adds_no_requirement(tmp_path: Path) -> None:
    marker = tmp_path / "built"
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger/backend.py").write_text(BACKEND.format(marker=str(marker)), encoding="utf-8")
    (tmp_path / "stranger/pyproject.toml").write_text(PROJECT, encoding="utf-8")
    version = f"2.5.0\nstranger @ {(tmp_path / 'stranger').as_uri()}"
    snapshot = {"schema_version": 1, "distributions": {"torch": version, "transformers": "4.48.0"}}
    (tmp_path / "node.json").write_text(json.dumps(snapshot), encoding="utf-8")
    done = run_command(sys.executable, "compare", "node.json", "node.json", cwd=tmp_path, UV_OFFLINE="1")
    assert not marker.exists() and done.returncode == 2 and "has a line break" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [("pin", "--isolated"), ("check", "--no-probe", "--isolated", "--resolve")])
@pytest.mark.parametrize(
    "lines",
    [
        "--no-index\n--find-links ADDRESS/links.html\nstranger\n",
        "--index-url ADDRESS/simple\nstranger\n",
        "x @ ADDRESS/x-1.0-py3-none-any.whl\n",
    ],
    ids=["page of links", "index", "wheel"],
)
def test_no_page_of_the_network_builds_local_code(lines: str, command: tuple[str, ...], tmp_path: Path) -> None:
    marker = tmp_path / "built"
    archive = tmp_path / "project/stranger-1.0.tar.gz"
    archive.parent.mkdir()
    contents = {
        "backend.py": BACKEND.format(marker=str(marker)),
        "pyproject.toml": PROJECT,
        "PKG-INFO": "Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n",
    }
    with tarfile.open(archive, "w:gz") as stream:
        for name, text in contents.items():
            about = tarfile.TarInfo(f"stranger-1.0/{name}")
            about.size = len(text)
            stream.addfile(about, io.BytesIO(text.encode()))
    pages = tmp_path / "pages"
    write_wheel(pages, "x", "1.0", [f"stranger @ {archive.as_uri()}"])
    for path in (pages / "links.html", pages / "simple/stranger/index.html"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<html><body><a href="{archive.as_uri()}">stranger-1.0.tar.gz</a></body></html>')
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=pages))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    text = lines.replace("ADDRESS", f"http://127.0.0.1:{server.server_address[1]}")
    (archive.parent / "requirements.txt").write_text(text, encoding="utf-8")
    own = {"UV_CACHE_DIR": str(tmp_path / "cache"), "NO_PROXY": "*", "no_proxy": "*"}
    done = run_command(sys.executable, *command, "requirements.txt", cwd=archive.parent, **own)
    assert not marker.exists() and "--build" in done.stderr and "Traceback" not in done.stderr, done.stderr
    if command[0] == "pin":
        run_command(sys.executable, *command, "--build", "requirements.txt", cwd=archive.parent, **own)
        assert marker.exists()
    server.shutdown()


@pytest.mark.parametrize("line", ["stranger @ ${A_PASSWORD}/x", "--index-url https://localhost:1/${A_PASSWORD}/simple"])
def test_errors_of_uv_show_no_variable_with_the_name_of_a_secret(line: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}\ntorch\n", encoding="utf-8")
    done = run_command(
        sys.executable, "pin", "--isolated", "requirements.txt", cwd=tmp_path, A_PASSWORD="hunter2 of us"
    )
    assert done.returncode == 2 and "hunter2" not in done.stdout + done.stderr, done.stderr


SOURCES_OF_LOCAL_CODE = {
    "source": 'dependencies = ["stranger"]\n[tool.uv.sources]\nstranger = { path = "stranger" }\n',
    "editable source": (
        'dependencies = ["stranger"]\n[tool.uv.sources]\nstranger = [{ path = "stranger", editable = true }]\n'
    ),
    "override": 'dependencies = ["stranger"]\n[tool.uv]\noverride-dependencies = ["stranger @ ADDRESS"]\n',
    "find-links": 'dependencies = ["stranger"]\n[tool.uv]\nfind-links = ["dist"]\n',
    "index": 'dependencies = ["stranger"]\n[[tool.uv.index]]\nurl = "dist"\nformat = "flat"\n',
    "archive": 'dependencies = ["stranger @ ARCHIVE"]\n',
    "source of a source": 'dependencies = ["middle"]\n[tool.uv.sources]\nmiddle = { path = "middle" }\n',
}


@pytest.mark.parametrize("name", SOURCES_OF_LOCAL_CODE)
def test_no_place_of_local_code_is_built_unasked(name: str, tmp_path: Path) -> None:
    marker = tmp_path / "built"
    for folder in ("stranger", "middle", "dist"):
        (tmp_path / folder).mkdir()
    (tmp_path / "stranger/backend.py").write_text(BACKEND.format(marker=str(marker)), encoding="utf-8")
    (tmp_path / "stranger/pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "middle/pyproject.toml").write_text(
        '[project]\nname = "middle"\nversion = "1"\ndependencies = ["stranger"]\n'
        '[tool.uv.sources]\nstranger = { path = "../stranger" }\n',
        encoding="utf-8",
    )
    archive = tmp_path / "dist/stranger-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as stream:
        stream.add(tmp_path / "stranger", "stranger-1.0")
        about = tarfile.TarInfo("stranger-1.0/PKG-INFO")
        content = b"Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n"
        about.size = len(content)
        stream.addfile(about, io.BytesIO(content))
    stated = SOURCES_OF_LOCAL_CODE[name].replace("ADDRESS", (tmp_path / "stranger").as_uri())
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "p"\nversion = "1"\n{stated.replace("ARCHIVE", archive.as_uri())}', encoding="utf-8"
    )
    pin = ("pin", "--isolated", "--offline", "pyproject.toml")
    done = run_command(sys.executable, *pin, cwd=tmp_path)
    assert not marker.exists() and "Traceback" not in done.stderr, done.stderr
    run_command(sys.executable, *pin, "--build", cwd=tmp_path)
    assert marker.exists()


@pytest.mark.parametrize("name", ["uv.toml", "pyproject.toml"])
def test_settings_of_the_folder_do_not_move_the_cache_of_uv(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    head = "[tool.uv]\n" if name == "pyproject.toml" else ""
    outside = tmp_path / "outside"
    (tmp_path / name).write_text(f'{head}cache-dir = "{outside}"\n', encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    pin = ("pin", "--isolated", "--offline", "requirements.txt")
    done = run_command(sys.executable, *pin, cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "Traceback" not in done.stderr and not outside.exists(), done.stderr
    assert (tmp_path / "cache" / "uv").is_dir()


def test_a_package_that_only_a_build_gives_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/stranger-1.0.tar.gz").write_bytes(b"")
    (tmp_path / "uv.toml").write_text('find-links = ["dist"]\n', encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("stranger\n", encoding="utf-8")
    done = run_command(sys.executable, "pin", "--isolated", "--offline", "requirements.txt", cwd=tmp_path)
    assert done.returncode and "--build" in done.stderr, done.stderr


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A folder with a venv whose interpreter leaves a mark beside it, and files that make verbs start one."""
    folder = tmp_path / "clone"
    packages = folder / ".venv/lib/python3.11/site-packages"
    for name, version in (("torch", "2.5.0"), ("transformers", "4.48.0")):
        about = packages / f"{name}-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n", encoding="utf-8")
    (folder / ".venv/pyvenv.cfg").write_text("version = 3.11.7\n", encoding="utf-8")
    (folder / ".venv/bin").mkdir()
    (folder / ".venv/bin/python").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", encoding="utf-8")
    (folder / ".venv/bin/python").chmod(0o755)
    (folder / "model").mkdir()
    (folder / "model/config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (folder / "rows.jsonl").write_text('{"prompt": "a", "completion": "b"}\n', encoding="utf-8")
    (folder / "requirements.txt").write_text("torch==2.5.0\ntransformers==4.48.0\n", encoding="utf-8")
    return folder


FACTS = {
    "gpus": [{"compute_capability": "8.0"}],
    "training": {"attention": "sdpa", "dtype": "bfloat16", "per_device_train_batch_size": 2},
}
CHECK = ("check", "--isolated", "--fresh", *(f"--assume={name}={json.dumps(value)}" for name, value in FACTS.items()))


@pytest.mark.parametrize(
    "command",
    [
        CHECK,
        (*CHECK, "."),
        (*CHECK, "--python", ".venv"),
        ("probe", "attention_masked"),
        ("data", "rows.jsonl", "--model", "model"),
        ("pin", "requirements.txt", "--offline"),
        ("pin", "--offline"),
        ("env", "."),
        ("diagnose", "requirements.txt", "--python", ".venv"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("linked", [False, True])
def test_no_verb_starts_the_interpreter_of_the_folder_unasked(
    command: tuple[str, ...], linked: bool, evil: Path, tmp_path: Path
) -> None:
    if linked:
        (evil / ".venv").rename(evil / "hidden")
        (evil / ".venv").symlink_to("hidden")
    done = run_command(sys.executable, *command, cwd=evil, XDG_DATA_HOME=str(tmp_path / "data"))
    assert not (tmp_path / "started").exists() and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("command", [("pin", "requirements.txt", "--verify"), ("probe", "matmul")], ids=" ".join)
def test_what_needs_the_interpreter_of_the_folder_names_the_option(
    command: tuple[str, ...], evil: Path, tmp_path: Path
) -> None:
    done = run_command(sys.executable, *command, cwd=evil, XDG_DATA_HOME=str(tmp_path / "data"))
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "--trust" in done.stderr, done.stderr
    assert not (tmp_path / "started").exists()


def test_ranks_of_a_cluster_do_not_start_the_interpreter_of_the_folder(evil: Path, tmp_path: Path) -> None:
    said = ranks.run(evil, [ranks.Rank(environ={"XDG_DATA_HOME": str(tmp_path / "data")})] * 2)
    assert not (tmp_path / "started").exists()
    assert "no probe was run" in said.text and "pass --trust" in said.errors[0], said


def test_a_trusted_folder_s_interpreter_is_started_from_then_on(evil: Path, tmp_path: Path) -> None:
    started, home = tmp_path / "started", {"XDG_DATA_HOME": str(tmp_path / "data")}
    done = run_command(sys.executable, *CHECK, cwd=evil, **home)
    assert not started.exists() and "pass --probe to start its interpreter once" in done.stderr
    for more in (["--probe"], ["--trust"], []):
        run_command(sys.executable, *CHECK, *more, cwd=evil, **home)
        assert started.exists(), more
        started.unlink()
    run_command(sys.executable, *CHECK, cwd=evil, VIRTUAL_ENV=str(evil / ".venv"), XDG_DATA_HOME=str(tmp_path))
    assert started.exists(), "it is active"
