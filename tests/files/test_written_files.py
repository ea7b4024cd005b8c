"""Every file that a command writes is whole or as it was: killed, on a full disk, written by two, not to be written."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.import_check.conftest import install

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of files, mounts and users are Linux's here")

UNFINISHED = "*.compatcheck-unfinished"
CONTROL = """\
import os, resource, signal, sys
target, fault = os.environ["TARGET"], os.environ["FAULT"]
def spoil(event, arguments):
    made = str(arguments[0]) if event == "open" else ""
    if made.endswith(".compatcheck-unfinished") and target in made and fault != "killed before the end":
        if fault == "killed while writing":
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (5, resource.RLIM_INFINITY))
    if event == "os.rename" and fault == "killed before the end":
        folder = os.readlink(f"/proc/self/fd/{arguments[3]}") if arguments[3] >= 0 else ""
        if target in os.path.join(folder, str(arguments[1])):
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(spoil)
import runpy
runpy.run_module("compatcheck", run_name="__main__", alter_sys=True)
"""
"""Starts the command with a fault before it: the kernel ends it, or refuses its write, after five bytes of the file."""
FAULTS = {"killed while writing": -signal.SIGXFSZ, "killed before the end": -signal.SIGKILL, "full": 2}


class Writer(NamedTuple):
    """A command and the file that it writes; ``lay`` makes its inputs, others for each edition."""

    command: tuple[str, ...]
    file: str
    lay: Callable[[Path, int], None]
    is_note: bool = False

    @property
    def mark(self) -> str:
        """What is in the path of that file, and of the unfinished one beside it."""
        folder, star, _ = self.file.partition("*")
        return folder.rpartition("/")[0] if star else Path(self.file).name


def requirements(folder: Path, edition: int) -> None:
    (folder / "requirements.txt").write_text(f"torch==2.{edition}.0\n", encoding="utf-8")


def log(folder: Path, edition: int) -> None:
    text = f"torch 2.{edition}.0\n{{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-5, 'epoch': 0.2}}\n"
    (folder / "train.log").write_text(text, encoding="utf-8")


def rows(folder: Path, edition: int) -> None:
    (folder / "rows.jsonl").write_text('{"prompt": "a", "completion": "b"}\n' * edition, encoding="utf-8")


def local_project(folder: Path, edition: int) -> None:
    for number in range(edition):
        name = f"part{number}"
        (folder / name).mkdir(exist_ok=True)
        text = f"[project]\nname = '{name}'\nversion = '1.0'\n"
        (folder / name / "pyproject.toml").write_text(text, encoding="utf-8")
    lines = "".join(f"./part{number}\n" for number in range(edition))
    (folder / "requirements.txt").write_text(lines, encoding="utf-8")


def zero2(folder: Path, edition: int) -> None:
    value = {"stage": 2, "overlap_comm": True, "contiguous_gradients": True, "reduce_bucket_size": edition * 10**8}
    text = json.dumps({"zero_optimization": value, "bf16": {"enabled": True}}, indent=2)
    if not (folder / "ds.json").exists() or '"overlap_comm": false' in (folder / "ds.json").read_text(encoding="utf-8"):
        (folder / "ds.json").write_text(text, encoding="utf-8")
    (folder / "train.sh").write_text("deepspeed train.py --deepspeed ds.json --bf16 True\n", encoding="utf-8")


def project(folder: Path, edition: int) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.other]\nedition = {edition}\n", encoding="utf-8")


def repository(folder: Path, edition: int) -> None:
    """Another trusted folder is there already in each edition but the first, as a user has it."""
    trusted = folder / "data/compatcheck/trusted.json"
    trusted.parent.mkdir(parents=True, exist_ok=True)
    trusted.write_text(json.dumps([f"/home/other{edition}"]), encoding="utf-8")
    requirements(folder, edition)


def model(folder: Path, edition: int) -> None:
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model/config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    weights = folder / "model/tokenizer.model"
    weights.write_bytes(b"\0" * (edition + (8 << 20)))
    os.utime(weights, (1e9, 1e9))


def environment(folder: Path, edition: int) -> None:
    packages = folder / "venv/lib/python3.11/site-packages"
    shutil.rmtree(folder / "venv", ignore_errors=True)
    packages.mkdir(parents=True)
    (folder / "venv/pyvenv.cfg").write_text("version = 3.11.7\n", encoding="utf-8")
    (folder / "venv/bin").mkdir()
    (folder / "venv/bin/python").touch()
    install(packages, "trl", "0.7.1", {"trl/__init__.py": "from peft import PeftModel\n"})
    names = "prepare_model_for_int8_training", "prepare_model_for_kbit_training"
    code = "".join(f"def {name}(model): ...\n" for name in names)
    install(packages, "peft", "99.0", {"peft/__init__.py": code, "peft/more.py": f"x = {edition}\n" * edition})


CHECK = ("check", "--no-probe", "--isolated", "requirements.txt")
OF_VENV = ("check", "--no-probe", "--isolated", "--python", "venv")
FIX = (
    "check",
    "--no-probe",
    "--isolated",
    ".",
    "--assume",
    "distributions.deepspeed=0.14.4",
    "--select",
    "CC-2024-0021",
)
WRITERS = {
    "report": Writer((*CHECK, "--format", "json", "-o", "out.json"), "out.json", requirements),
    "second report": Writer((*CHECK, "--report", "html=out.html"), "out.html", requirements),
    "snapshot": Writer(("env", "requirements.txt", "-o", "out.json"), "out.json", requirements),
    "facts of a log": Writer(("diagnose", "train.log", "--snapshot-out", "out.json"), "out.json", log),
    "rows": Writer(("data", "rows.jsonl", "--format", "json", "-o", "out.json"), "out.json", rows),
    "pins": Writer(("pin", "--isolated", "--offline", "requirements.txt", "-o", "out.txt"), "out.txt", local_project),
    "node": Writer(("cluster", "--record", "nodes"), "nodes/*.json", requirements),
    "fix": Writer((*FIX, "--fix", "--unsafe-fixes", "--write"), "ds.json", zero2),
    "ignore": Writer(("ignore", "CC-2024-0001", "--reason", "r", "--until", "2099-01-01"), "pyproject.toml", project),
    "trust": Writer((*CHECK, "--trust"), "data/compatcheck/trusted.json", repository),
    "hashes": Writer(("model", "model"), "cache/compatcheck/hashes.json", model, is_note=True),
    "imports": Writer((*OF_VENV, "--imports"), "cache/compatcheck/imports/*.json", environment, is_note=True),
    "interfaces": Writer(OF_VENV, "cache/compatcheck/interfaces/peft-*.json", environment, is_note=True),
    "catalogue": Writer(
        (*CHECK, "--lang", "zh"), "cache/compatcheck/checkouts/*/catalogue.mo", requirements, is_note=True
    ),
}


class Place(NamedTuple):
    """A folder to work in, with a home of its own, and the matrix compiled beforehand."""

    folder: Path
    compiled: Path

    def start(self, writer: Writer, *before: str, **environ: str) -> subprocess.Popen[str]:
        kept = ("PATH", "LANG", "UV_FIND_LINKS", "UV_CACHE_DIR")
        places = {"XDG_CACHE_HOME": str(self.folder / "cache"), "XDG_DATA_HOME": str(self.folder / "data")}
        how = ["-c", CONTROL] if "FAULT" in environ else ["-m", "compatcheck"]
        return subprocess.Popen(
            [*before, sys.executable, "-B", *how, *writer.command],
            cwd=self.folder,
            env={**{key: os.environ[key] for key in kept if key in os.environ}, **places, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, writer: Writer, *before: str, **environ: str) -> tuple[int, str]:
        process = self.start(writer, *before, **environ)
        _, errors = process.communicate(timeout=300)
        assert "Traceback" not in errors, errors
        return process.returncode, errors

    def content(self, writer: Writer) -> Mapping[str, bytes]:
        return {str(path): path.read_bytes() for path in self.folder.glob(writer.file)}

    def unfinished(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.match(UNFINISHED)]

    def forget(self, writer: Writer) -> None:
        """Of a note that is found by its name: that the next run has something to write."""
        for path in self.folder.glob(writer.file) if "*" in writer.file else ():
            path.unlink()


@pytest.fixture(scope="module")
def compiled() -> Iterator[Path]:
    """The cache's form of the matrix of this checkout, which takes seconds to make, where every user may read it."""
    folder = Path(tempfile.mkdtemp(prefix="compatcheck-compiled-"))
    folder.chmod(0o755)
    (folder / "requirements.txt").write_text("torch==2.5.0\n", encoding="utf-8")
    assert Place(folder, folder).run(WRITERS["report"])[0] in (0, 1)
    for each in folder.rglob("*"):
        each.chmod(0o755)
    yield folder / "cache/compatcheck/checkouts"
    shutil.rmtree(folder)


@pytest.fixture
def place(compiled: Path) -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="compatcheck-written-"))
    folder.chmod(0o755)
    fill(folder, compiled)
    yield Place(folder, compiled)
    shutil.rmtree(folder)


def fill(folder: Path, compiled: Path) -> None:
    """A repository, so that nothing above it counts, and a cache with the compiled matrix alone."""
    (folder / ".git").mkdir()
    checkouts = folder / "cache/compatcheck/checkouts"
    checkouts.mkdir(parents=True)
    for each in compiled.iterdir():
        if not (each / "catalogue.mo").exists():
            (checkouts / each.name).symlink_to(each)


def one_fault(errors: str) -> str:
    """The only line that tells of a fault."""
    (line,) = [line for line in errors.splitlines() if line.startswith("compatcheck: ")]
    return line


def is_whole(path: str, content: bytes) -> bool:
    """Whether it reads to its end."""
    text = content.decode("utf-8") if not path.endswith(".mo") else ""
    return bool(json.loads(text)) if path.endswith(".json") else bool(content)


@pytest.mark.parametrize("name", WRITERS)
def test_killed_or_on_a_full_disk_leaves_what_was_there(name: str, place: Place) -> None:
    writer = WRITERS[name]
    writer.lay(place.folder, 1)
    assert place.run(writer)[0] in (0, 1)
    for edition, (fault, status) in enumerate(FAULTS.items(), 2):
        writer.lay(place.folder, edition)
        place.forget(writer)
        before = place.content(writer)
        ended, errors = place.run(writer, TARGET=writer.mark, FAULT=fault)
        assert place.content(writer) == before, fault
        if writer.is_note and fault == "full":
            assert ended in (0, 1) and "compatcheck: " not in errors, errors
        else:
            assert ended == status, (fault, errors)
            assert fault != "full" or "File too large; free some space" in one_fault(errors)
        left = place.unfinished()
        assert len(left) == fault.startswith("killed"), fault
        for path in left:
            os.utime(path, (time.time() - 3600,) * 2)
    ended, errors = place.run(writer)
    after = place.content(writer)
    assert ended in (0, 1) and after != before and all(is_whole(*each) for each in after.items()), errors
    assert place.unfinished() == []


@pytest.fixture
def small_disk(place: Place) -> Iterator[Place]:
    """A disk of 48 MiB mounted over the place."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=755", "tmpfs", str(place.folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    fill(place.folder, place.compiled)
    yield place
    subprocess.run(["umount", "--lazy", str(place.folder)], check=True)


@pytest.mark.parametrize("name", WRITERS)
def test_disk_without_a_free_byte_leaves_what_was_there(name: str, small_disk: Place) -> None:
    place, writer = small_disk, WRITERS[name]
    writer.lay(place.folder, 1)
    assert place.run(writer)[0] in (0, 1)
    writer.lay(place.folder, 2)
    place.forget(writer)
    before, filler = place.content(writer), place.folder / "filler"
    with filler.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(b"x" * 4096)
    ended, errors = place.run(writer)
    assert place.content(writer) == before and place.unfinished() == []
    if not writer.is_note:
        assert ended == 2 and "No space left on device" in one_fault(errors)
    else:
        assert ended in (0, 1) and "compatcheck: " not in errors, errors


@pytest.mark.parametrize("name", WRITERS)
def test_several_at_once_leave_a_whole_file(name: str, place: Place) -> None:
    writer = WRITERS[name]
    writer.lay(place.folder, 1)
    running = [place.start(writer) for _ in range(3)]
    done = 0
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert "Traceback" not in errors, errors
        done += process.returncode in (0, 1)
        assert process.returncode in (0, 1) or "the file changed " in one_fault(errors)
    assert done
    content = place.content(writer)
    assert content and all(is_whole(*each) for each in content.items()) and place.unfinished() == []


UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Root as any other user: what the permissions of a folder say counts."""


@pytest.mark.parametrize("name", WRITERS)
def test_folder_without_permission_to_write_stays_as_it_is(name: str, place: Place) -> None:
    writer = WRITERS[name]
    writer.lay(place.folder, 1)
    assert place.run(writer)[0] in (0, 1)
    writer.lay(place.folder, 2)
    place.forget(writer)
    before = place.content(writer)
    folders = [place.folder, *filter(Path.is_dir, place.folder.rglob("*"))]
    for folder in folders:
        folder.chmod(0o555)
    ended, errors = place.run(writer, *(() if os.geteuid() else UNPRIVILEGED))
    for folder in folders:
        folder.chmod(0o755)
    assert place.content(writer) == before and place.unfinished() == []
    if not writer.is_note:
        assert ended == 2 and "Permission denied" in one_fault(errors)
    else:
        assert ended in (0, 1) and "compatcheck: " not in errors, errors


UNKNOWN = ("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")


@pytest.mark.parametrize(("home", "user"), [(None, UNKNOWN), ("/nowhere", UNKNOWN), ("relative", ())])
def test_without_a_home_folder_nothing_is_kept_in_the_present_one(
    home: str | None, user: tuple[str, ...], place: Place
) -> None:
    """The user without a name, as in a container, has no home in the system's list either."""
    if user and os.geteuid():
        pytest.skip("only root may become another user")
    if user and subprocess.run([*user, sys.executable, "-c", ""], capture_output=True).returncode:
        pytest.skip("nobody else may start this interpreter")
    requirements(place.folder, 1)
    place.folder.chmod(0o777)
    before = sorted(place.folder.iterdir())
    environ = {"XDG_CACHE_HOME": "", "XDG_DATA_HOME": "", **({"HOME": home} if home is not None else {})}
    process = place.start(WRITERS["report"]._replace(command=CHECK), *user, **environ)
    out, errors = process.communicate(timeout=300)
    assert process.returncode in (0, 1) and "packages" in out and errors == ""
    process = place.start(WRITERS["trust"], *user, **environ)
    _, errors = process.communicate(timeout=300)
    assert "Traceback" not in errors
    assert process.returncode in (0, 1) or one_fault(errors)
    assert sorted(place.folder.iterdir()) == before
