"""Imports that fail in every way there is, in real children over planted packages."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment, Target
from compatcheck.import_check import _entry_points
from compatcheck.pipelines.check import check, confirm
from compatcheck.probes import run
from compatcheck.probes.imports import package_imports
from compatcheck.results.findings import ProbeResult
from tests.conftest import ROOT
from tests.probes.conftest import target

Site = Callable[..., Target]

ASKS = "from accelerate.memory import clear"
WITHOUT_NAME = {"accelerate": {"__init__": "", "memory": ""}}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An interpreter that has packages made of source texts, in versions as given."""

    def make(packages: dict[str, dict[str, str]], **versions: str) -> Target:
        folder = tmp_path / "site"
        for name, modules in packages.items():
            for module, source in modules.items():
                path = folder / name / f"{module}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(source, encoding="utf-8")
            version = versions.get(name, "1.0")
            info = folder / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            (info / "RECORD").write_text("".join(f"{name}/{module}.py,,\n" for module in modules))
        script = tmp_path / "python"
        command = shlex.join([sys.executable, "-B"])
        script.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(folder))} exec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        return target(str(script))

    return make


def importing(where: Target, *packages: str, **request: Any) -> ProbeResult:
    return run("package_imports", where, {"packages": list(packages), **request})


def test_a_missing_name_is_told_with_its_chain_and_both_versions(site: Site) -> None:
    peft = {"__init__": "\nimport peft.deep", "deep": ASKS}
    result = importing(site({**WITHOUT_NAME, "peft": peft}, peft="0.15.0", accelerate="0.31.0"), "peft", "accelerate")
    assert result.outcome == "fail"
    assert result.why == (
        "peft 0.15.0: `import peft` fails: ImportError: cannot import name 'clear' from 'accelerate.memory'; "
        "peft 0.15.0, accelerate is 0.31.0 (peft/__init__.py:2 > peft/deep.py:1)"
    ) or result.why.startswith("accelerate")
    rows = {row["package"]: row for row in result.measured["rows"]}
    assert rows["peft"]["line"] == ASKS
    assert rows["accelerate"]["outcome"] == "raised", "it has no Accelerator"


def test_the_root_is_named_where_an_exception_hides_another(site: Site) -> None:
    hiding = "try:\n import peft.deep\nexcept ImportError as error:\n raise RuntimeError('Failed to import') from error"
    result = importing(site({**WITHOUT_NAME, "peft": {"__init__": hiding, "deep": ASKS}}), "peft")
    assert "cannot import name 'clear'" in result.why and "peft/deep.py:1" in result.why
    (row,) = result.measured["rows"]
    assert [cause.partition(":")[0] for cause in row["causes"]] == ["RuntimeError", "ImportError"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", ["SIGSEGV", "deepspeed/__init__.py:2"]),
        ("import os\nos.abort()", ["SIGABRT", "deepspeed/__init__.py:2"]),
        ("import sys\nsys.exit(3)", ["ends the process with exit status 3"]),
        ("import threading\nthreading.Event().wait()", ["hangs at the same place", "threading.py"]),
        ("import ctypes\nctypes.CDLL('libnowhere.so.12')", ["libnowhere.so.12: cannot open shared object file"]),
    ],
    ids=["segfault", "abort", "exit", "hang", "library"],
)
def test_every_way_of_dying_is_told_with_the_package(site: Site, source: str, words: list[str]) -> None:
    result = importing(site({"deepspeed": {"__init__": source}}, deepspeed="0.9.9"), "deepspeed", limit=1.5)
    assert result.outcome == "fail", result.why
    assert all(word in result.why for word in ["deepspeed 0.9.9", *words]), result.why


def test_an_import_that_is_slow_and_moves_is_not_judged(site: Site) -> None:
    slow = "import time\n" + "time.sleep(0.4)\n" * 20
    result = importing(site({"deepspeed": {"__init__": slow}}), "deepspeed", limit=1.5)
    assert result.outcome == "watch"
    assert "it may only be slow" in result.why


@pytest.mark.parametrize(
    "source",
    ["import os\nos.kill(os.getpid(), 9)", "raise MemoryError", "raise OSError(28, 'No space left on device')"],
    ids=["killed", "memory", "disk"],
)
def test_what_the_machine_lacks_is_not_held_against_a_package(site: Site, source: str) -> None:
    result = importing(site({"deepspeed": {"__init__": source}}), "deepspeed")
    assert (result.outcome, "may be out of memory" in result.why) == ("watch", True), result.why


@pytest.mark.parametrize("asked", [{"limit": "soon"}, {"error": "("}, {"packages": 3}, {"statements": 7}])
def test_a_request_that_makes_no_sense_is_skipped(site: Site, asked: dict[str, Any]) -> None:
    assert run("package_imports", site({"deepspeed": {"__init__": ""}}), asked).outcome == "skip"


def test_the_packages_after_a_dead_one_are_still_imported(site: Site) -> None:
    dead = "import os\nos.abort()"
    where = site({"datasets": {"__init__": dead}, "evaluate": {"__init__": ""}, "timm": {"__init__": ""}})
    result = importing(where, "evaluate", "datasets", "timm")
    outcomes = {row["package"]: row["outcome"] for row in result.measured["rows"]}
    assert outcomes == {"evaluate": "imported", "datasets": "died", "timm": "imported"}
    assert "also failing" not in result.why


def test_a_package_that_fails_only_after_another_is_not_convicted(site: Site) -> None:
    clash = "import sys\nif 'datasets' in sys.modules: raise ImportError('clash')"
    result = importing(site({"datasets": {"__init__": ""}, "evaluate": {"__init__": clash}}), "datasets", "evaluate")
    assert result.outcome == "watch"
    assert result.why == "evaluate 1.0 imports alone, but after other packages: fails: ImportError: clash"


def test_a_warning_is_a_pass(site: Site) -> None:
    warns = "import sys, warnings\nwarnings.warn('old')\nprint('no GPU', file=sys.stderr)"
    result = importing(site({"bitsandbytes": {"__init__": warns}}, bitsandbytes="0.50"), "bitsandbytes")
    assert (result.outcome, result.why.startswith("bitsandbytes 0.50 imports")) == ("pass", True)


@pytest.mark.parametrize(
    ("source", "pattern", "outcome"),
    [
        ("raise ImportError('cannot import name BUFSIZE')", "BUFSIZE", "fail"),
        ("raise ImportError('cannot import name other')", "BUFSIZE", "watch"),
        ("", "BUFSIZE", "pass"),
    ],
)
def test_only_the_failure_asked_about_is_judged(site: Site, source: str, pattern: str, outcome: str) -> None:
    result = importing(site({"deepspeed": {"__init__": source}}), "deepspeed", error=pattern)
    assert result.outcome == outcome, result.why


def test_what_is_not_installed_is_skipped(site: Site) -> None:
    result = importing(site({}), "apex")
    assert (result.outcome, result.why) == ("skip", "apex: not installed here")


def test_statements_and_modules_are_imported_and_nothing_else_is_run(site: Site, tmp_path: Path) -> None:
    where = site({"mine": {"__init__": "", "deep": "from mine import nothing"}})
    assert run("package_imports", where, {"modules": ["mine.deep"]}).outcome == "fail"
    assert run("package_imports", where, {"statements": ["from mine import deep"]}).outcome == "fail"
    trick = f"import os; open({str(tmp_path / 'made')!r}, 'w')"
    assert run("package_imports", where, {"statements": [trick]}).outcome == "skip"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        ({"undecided": "there is no GPU driver"}, "watch"),
        ({"outcome": "slow", "undecided": "it may only be slow"}, "watch"),
        ({"outcome": "died", "what": "is ended by SIGSEGV"}, "fail"),
    ],
)
def test_judgement_of_rows(row: dict[str, Any], outcome: str) -> None:
    given = {
        "package": "flash-attn", "version": "2.8", "statement": "import flash_attn", "outcome": "raised",
        "what": "fails: no driver", "chain": [], "undecided": "", **row,
    }  # fmt: skip
    assert package_imports.judge({"rows": [given], "not_reached": []})[0] == outcome


def test_it_imports_what_the_static_check_follows() -> None:
    for package, statements in _entry_points._STATEMENTS.items():
        assert package_imports.PACKAGES[package][: len(statements)] == statements


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("raise ImportError(\"cannot import name 'BUFSIZE' from 'numpy' (/x/numpy/__init__.py)\")", "confirmed"),
        ("", "refuted"),
        ("raise ImportError('something else')", "affected"),
    ],
)
def test_a_finding_is_decided_by_the_import(site: Site, source: str, status: str) -> None:
    where = site({"deepspeed": {"__init__": source}}, deepspeed="0.14.3")
    known = matrix.load(str(ROOT / "matrix"))
    facts = {"distributions": {"deepspeed": "0.14.3", "numpy": "2.0.2"}, "distributions_complete": True}
    report = confirm(check(Environment(facts), known, select=["CC-2024-0027"]), where, fresh=True)
    (finding,) = report.findings
    assert finding.status == status, finding.probe


@pytest.mark.stack
def test_torch_and_numpy_import_here(stack: Target) -> None:
    result = importing(stack, "torch", "numpy")
    assert result.outcome == "pass", result.why
