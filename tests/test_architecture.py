"""Budgets and contracts of the code base, held by a machine."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from compatcheck import probes
from compatcheck.probes import PROFILES, _units

PACKAGE = Path(__file__).parents[1] / "compatcheck"
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ("torch", "transformers", "deepspeed", "peft", "accelerate", "pydantic", "httpx", "rich", "pynvml", "yaml")
PARENT_SIDE = {"__init__.py", "_process.py", "_run.py", "_forked_children.py", "_time_left.py", "_result_cache.py"}
BROAD_HANDLERS = {"cli.py", "_child.py"}


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_modules_and_functions_stay_small(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, f"{node.name} is too long"


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_broad_handlers_stand_in_two_places_only(module: Path) -> None:
    broad = [
        node
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")))
    ]
    assert not broad or (module.name in BROAD_HANDLERS and len(broad) == 1)


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_names_tell_the_subject(module: Path) -> None:
    assert module.stem.strip("_") not in {"utils", "common", "misc", "helpers", "core", "base"}


@pytest.mark.parametrize("units", ["matrix/traits/[!_]*.py", "probes/[!_]*/[!_]*.py", "report/[!_]*.py"])
def test_units_import_without_the_libraries_they_speak_of(units: str) -> None:
    names = [
        ".".join(("compatcheck", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in sorted(PACKAGE.glob(units))
    ]
    code = f"import sys, importlib; [importlib.import_module(n) for n in {names}]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & {"torch", "transformers", "deepspeed", "peft", "accelerate"}


@pytest.mark.parametrize("path", sorted((PACKAGE / "matrix" / "traits").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_traits_keep_their_contract(path: Path) -> None:
    assert callable(importlib.import_module(f"compatcheck.matrix.traits.{path.stem}").find)


@pytest.mark.parametrize("name", probes.names())
def test_probes_keep_their_contract(name: str) -> None:
    unit = _units.unit(name)
    assert unit.__doc__ and isinstance(unit.NEEDS, dict) and unit.TIMEOUT > unit.SECONDS > 0
    assert unit.PROFILE in PROFILES
    assert all(isinstance(key, str) for key in (*unit.NEEDS, *getattr(unit, "ASKED_BY", ())))
    assert isinstance(getattr(unit, "ASKED_BY", ()), tuple)
    assert {getattr(unit, name, True) for name in ("FRESH", "SEEDED", "LASTING")} <= {True, False}
    assert callable(unit.measure) and callable(unit.judge)


@pytest.mark.parametrize("path", sorted((PACKAGE / "probes").rglob("*.py")), ids=relative)
def test_what_runs_in_the_target_is_written_in_the_syntax_of_python_3_8(path: Path) -> None:
    if path.name not in PARENT_SIDE:
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_the_command_line_starts_light() -> None:
    modules = "compatcheck.cli, compatcheck.pipelines.check, compatcheck.pipelines.environment"
    code = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & set(HEAVY)


def test_a_check_without_probes_loads_none_of_their_code() -> None:
    code = """
import sys
from compatcheck.cli import main
sys.argv = ["compatcheck", "check", "--no-probe", "--python", sys.executable]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.split()
    assert "compatcheck.pipelines.check" in loaded
    assert "compatcheck.probes" not in loaded
