"""Budgets and contracts of the code base, held by a machine."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from compatcheck import probes
from compatcheck.probes import PROFILES, _units

PACKAGE = Path(__file__).parents[1] / "compatcheck"
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ("torch", "transformers", "deepspeed", "peft", "accelerate", "pydantic", "httpx", "pynvml", "yaml")
PARENT_SIDE = {"__init__.py", "_process.py", "_run.py", "_forked_children.py", "_time_left.py", "_result_cache.py"}
BROAD_HANDLERS = {"cli.py", "_child.py"}


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in MODULES:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def room(module: Sequence[str]) -> str:
    """The first folder below the package; the command line belongs to the verbs."""
    return {"cli": "verbs"}.get(module[1], module[1]) if len(module) > 1 else ""


def imported(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    """The parts of each module that is imported, in functions as well, and of each name that is taken from one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, "imports name the whole path"
            yield from (tuple(f"{node.module}.{alias.name}".split(".")) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)


def is_module(parts: Sequence[str]) -> bool:
    path = PACKAGE.parent.joinpath(*parts)
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_no_room_imports_a_private_module_of_another() -> None:
    """A module with an underscore is private to its room, wherever in the room it lies."""
    taken = [
        (relative(path), ".".join(parts))
        for path, tree in trees()
        for parts in imported(tree)
        if parts[0] == PACKAGE.name
        and room(parts) != room(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        and any(part.startswith("_") and is_module(parts[: depth + 1]) for depth, part in enumerate(parts))
    ]
    assert not taken


def test_the_package_imports_neither_tools_nor_tests() -> None:
    assert not [relative(path) for path, tree in trees() if {"tools", "tests"} & {parts[0] for parts in imported(tree)}]


def test_broad_handlers_are_in_two_places_only() -> None:
    broad = [
        path.name
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")))
    ]
    assert sorted(broad) == sorted(BROAD_HANDLERS)


def test_module_names_say_the_subject() -> None:
    vague = {"utils", "common", "misc", "helpers", "core", "base"}
    assert not [relative(path) for path in MODULES if path.stem.strip("_") in vague]


@pytest.mark.parametrize("units", ["matrix/traits/[!_]*.py", "probes/[!_]*/[!_]*.py", "report/**/[!_]*.py"])
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


OPENS = {
    "files/_remover.py": "what the system tells of a process",
    "files/reading.py": "where it is made safe",
    "files/storage.py": "a file that it makes",
    "files/keyed_rows.py": "a table of ours",
    "packages/shipped_tables.py": "a table of ours",
    "language/__init__.py": "a catalogue of ours",
    "language/checkout.py": "a catalogue of ours",
    "language/po_files.py": "a catalogue of ours",
    "cluster/_network.py": "files of the kernel",
    "integrations/_passes.py": "a file of the kernel",
    "advice/environment/__init__.py": "a lock that it makes",
    "advice/resolver/_compile.py": "what uv wrote into a folder of ours",
}
"""Where a file is opened without `open_bytes` or `open_text`, and why no pipe can make that wait."""


def test_a_stranger_s_file_is_opened_without_waiting_for_it() -> None:
    """``open`` waits at a named pipe until somebody writes to it, and reads a device for ever."""
    found = {
        relative(path)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
        if not any(isinstance(each, ast.Constant) and str(each.value)[:1] in "wax" for each in node.args[1:2])
        if room(path.relative_to(PACKAGE.parent).with_suffix("").parts) != "probes"
    }
    assert found == {*OPENS}


WRITERS = {
    "files/storage.py": "writes whole or not at all",
    "cli.py": "a standard error that is closed",
    "delivery/_archive.py": "into a new folder, to which a pointer is turned when all is there",
    "report/pages/site/_folder.py": "into a new folder, which is moved into place when all is there",
    "matrix/compile.py": "the same",
    "matrix/_build_hook.py": "into the folder of a build",
    "advice/resolver/_compile.py": "into a temporary folder, for uv",
    "project/model_files/_download.py": "into a temporary folder, from which a file with the right hash is moved",
    "integrations/_running.py": "into a temporary folder",
}
"""Where something is written without `storage.write`, and why nobody finds it half written."""


def test_files_are_written_whole_or_not_at_all() -> None:
    """What probes write lies in the temporary folder of their process."""
    found = {
        relative(path)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and room(path.relative_to(PACKAGE.parent).with_suffix("").parts) != "probes"
        if (isinstance(node.func, ast.Attribute) and node.func.attr in ("write_bytes", "copy2", "copyfile", "move"))
        or (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "write_text"
            and relative(path) not in ("verbs/_help.py", "terminal/help_formatter.py")
        )
        or (
            isinstance(node.func, ast.Name)
            and node.func.id == "open"
            and any(isinstance(each, ast.Constant) and str(each.value)[:1] in "wxa" for each in node.args[1:2])
        )
    }
    assert found - {"delivery/_lock.py"} == {*WRITERS}


_LIMITS_OF_OUTPUT = (
    *("report", "explanation", "integrations", "terminal", "verbs", "probes", "matrix", "interfaces", "cluster"),
)


def test_limits_on_input_are_in_one_table() -> None:
    """Sizes, depths and times have their names in ``files/limits.py``; what a report shows is another matter."""
    elsewhere = [
        f"{relative(path)}: {name.id}"
        for path, tree in trees()
        if relative(path) != "files/limits.py" and path.relative_to(PACKAGE).parts[0] not in _LIMITS_OF_OUTPUT
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_number(node.value)
        for name in node.targets
        if isinstance(name, ast.Name) and re.search(r"LARGEST(?!_OF_ONE)|DEEPEST|^_SECONDS$|LIMIT|_BYTES", name.id)
    ]
    assert elsewhere == []


def _is_number(node: ast.expr) -> bool:
    leaves = [each for each in ast.walk(node) if not isinstance(each, ast.BinOp | ast.operator)]
    return all(isinstance(each, ast.Constant) and isinstance(each.value, int | float) for each in leaves)
