"""The warm parent with real processes: what it shares, what its death costs, and that nothing outlives us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Target
from compatcheck.probes import _forked_children, _run, _units
from compatcheck.results.findings import ProbeResult
from tests.probes.test_run import SAMPLES, alive, passing, unit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="children are forked on Linux alone")

KILLED = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
HANGING = "import time\ntime.sleep(60)\n"
BROKEN = "import sys\nprint('noise', file=sys.stderr)\nraise RuntimeError('module was compiled against another ABI')\n"
SPOILT = "class _C:\n    _cuda_isInBadFork = staticmethod(lambda: True)\n"

Library = Callable[[str], None]
Attempt = Callable[..., ProbeResult]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Gives the target a package `torch` with this source."""

    def written(source: str) -> None:
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "torch.py").write_text(source, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))

    return written


@pytest.fixture
def children(here: Target) -> Iterator[_forked_children.Children]:
    with _forked_children.Children(here) as opened:
        yield opened


@pytest.fixture
def attempt(children: _forked_children.Children) -> Attempt:
    """Runs a sample that needs `torch`, unless other needs are named."""

    def once(name: str, *needs: str, **request: Any) -> ProbeResult:
        asked = {"shared": "torch", **request}
        return _run.judge(
            name, children.attempt(SAMPLES / f"{name}.py", unit(*(needs or ["torch"])), asked, 20), passing
        )

    return once


def test_what_probes_share_is_imported_once_and_what_a_child_changes_is_its_own(
    library: Library, attempt: Attempt
) -> None:
    library("")
    first, second = attempt("family").measured, attempt("family").measured
    assert first["loaded"] and second["loaded"] and first["parent"] == second["parent"] != os.getpid()
    assert second["left"] is None
    assert first["adjusted"] == "1000\n"
    assert first["child"]["times"]["importing"] > second["child"]["times"]["importing"]


def test_a_probe_that_asks_for_one_gets_a_new_process(library: Library, children: _forked_children.Children) -> None:
    library("")
    fresh = unit("torch")
    fresh.__dict__["FRESH"] = True
    request = {"shared": "torch"}
    for each, loaded in ((unit("torch"), True), (fresh, False), (unit("json"), False)):
        trace = children.attempt(SAMPLES / "family.py", each, request, 20)
        assert trace.last("result")["measured"]["loaded"] is loaded


def test_where_cuda_does_not_survive_the_fork_each_child_is_a_new_process(library: Library, attempt: Attempt) -> None:
    library(SPOILT)
    result = attempt("family")
    assert (result.outcome, result.measured["loaded"]) == ("pass", False)


@pytest.mark.parametrize(("stated", "policy"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_wait_asleep_unless_the_user_says_otherwise(
    library: Library, attempt: Attempt, monkeypatch: pytest.MonkeyPatch, stated: str | None, policy: str
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if stated:
        monkeypatch.setenv("OMP_WAIT_POLICY", stated)
    library("import os\nraise RuntimeError(os.environ['OMP_WAIT_POLICY'])")
    assert attempt("needs_torch").why.endswith(f"RuntimeError: {policy}")


@pytest.mark.parametrize(
    ("source", "outcome", "why"),
    [
        (KILLED, "crash", "ended by SIGSEGV; last stage 'import torch' at"),
        (HANGING, "timeout", "no result within 1 s; last stage 'import torch' at"),
        (BROKEN, "skip", "torch cannot be imported: RuntimeError: module was compiled against another ABI"),
    ],
    ids=["killed", "hanging", "broken"],
)
def test_a_library_that_cannot_be_imported_costs_once_and_only_those_that_need_it(
    library: Library, attempt: Attempt, monkeypatch: pytest.MonkeyPatch, source: str, outcome: str, why: str
) -> None:
    monkeypatch.setattr(_forked_children, "IMPORT_LIMIT", 1.0)
    library(source)
    probe = "needs_torch"
    first = attempt(probe)
    assert first.outcome == outcome and first.why.startswith(why), first.why
    started = time.monotonic()
    second = attempt(probe)
    assert (second.outcome, second.why) == (first.outcome, first.why)
    assert time.monotonic() - started < 1.0
    assert attempt("family", "json").outcome == "pass"


def test_a_library_that_dies_costs_nothing_to_those_that_need_less(
    library: Library, attempt: Attempt, tmp_path: Path
) -> None:
    library("")
    (tmp_path / "site" / "transformers.py").write_text(KILLED, encoding="utf-8")
    assert attempt("family").outcome == "pass"
    assert attempt("family", "torch", "transformers").why.startswith(
        "ended by SIGSEGV; last stage 'import transformers'"
    )
    assert attempt("family").outcome == "pass"


def test_a_parent_that_is_killed_takes_its_child_along_and_is_replaced(library: Library, attempt: Attempt) -> None:
    library("")
    result = attempt("family", kill_parent=True)
    assert result.outcome == "crash" and "SIGKILL" in result.why
    assert attempt("family").outcome == "pass"


def test_a_probe_that_leaves_says_nothing_of_the_next(library: Library, attempt: Attempt) -> None:
    library("")
    result = attempt("family", leave_with=3)
    assert (result.outcome, "exit status 3" in result.why) == ("crash", True)
    assert attempt("family").outcome == "pass"


def test_nothing_is_left_in_the_temporary_folder(
    library: Library, here: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with _forked_children.Children(here) as children:
        for needs in (unit("torch"), unit()):
            trace = children.attempt(SAMPLES / "family.py", needs, {"shared": "torch"}, 20)
            assert trace.last("result")
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("needs", ["torch", ""], ids=["fork", "new process"])
def test_a_kill_of_ours_leaves_no_process_and_no_file(
    library: Library, here: Target, tmp_path: Path, needs: str
) -> None:
    library("")
    (tmp_path / "temporary").mkdir()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from compatcheck.environment import Target\n"
        "from compatcheck.probes._forked_children import Children\n"
        "from tests.probes.test_run import unit\n"
        f"children = Children(Target({here.executable!r}, '', '', (), ''))\n"
        f"request = {{'tell_file': {str(tmp_path / 'pids')!r}}}\n"
        f"children.attempt(Path({str(SAMPLES / 'hangs.py')!r}), unit(*{needs.split()!r}), request, 60)\n"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    ours = subprocess.Popen([here.executable, "-c", code], cwd=Path(__file__).parents[2], env=environ)
    pids = [int(pid) for pid in waited_for(tmp_path / "pids").split()]
    pids.append(parent_of(pids[0]))
    assert all(map(alive, pids)) and pids[2] != ours.pid
    os.kill(ours.pid, signal.SIGKILL)
    ours.wait()
    deadline = time.monotonic() + 10
    while (any(map(alive, pids)) or list((tmp_path / "temporary").iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_import_that_hangs_ends_where_nobody_waits_for_it(library: Library, here: Target, tmp_path: Path) -> None:
    library(HANGING)
    command = [here.executable, "-B", str(_units.FOLDER / "_child.py"), "--warm", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as parent:
        assert parent.stdin
        parent.stdin.write(b"import -4.5 torch\n")
        parent.stdin.flush()
        assert parent.wait(20) == -signal.SIGALRM


@pytest.mark.parametrize("name", ["with space", "中文", os.fsdecode(b"\xff")])
def test_a_temporary_folder_may_have_any_name(
    library: Library, attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    library("")
    (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    assert attempt("family").outcome == attempt("family", "json").outcome == "pass"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def waited_for(path: Path) -> str:
    """What another process writes to a file, within twenty seconds."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text(encoding="utf-8")).endswith("\n"):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")
