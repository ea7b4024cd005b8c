"""Interpreters for probe children: this one, one with torch, and ones with a planted defect."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from compatcheck.environment import Target

Plant = Callable[[str], Target]


def target(executable: str) -> Target:
    return Target(executable, "", "", (), "the tests name it")


@pytest.fixture
def here() -> Target:
    """The interpreter that runs the tests; it need not have torch."""
    return target(sys.executable)


@pytest.fixture(scope="session")
def stack() -> Target:
    """An interpreter with torch: COMPATCHECK_TEST_PYTHON, or this one."""
    named = os.environ.get("COMPATCHECK_TEST_PYTHON")
    if named is None and importlib.util.find_spec("torch") is None:
        pytest.skip("no torch here, and COMPATCHECK_TEST_PYTHON names no interpreter that has it")
    return target(named or sys.executable)


@pytest.fixture
def needs(stack: Target) -> Callable[..., None]:
    """Skips the test where the stack lacks a package."""

    def check(*packages: str) -> None:
        code = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
        if subprocess.run([stack.executable, "-c", code, *packages], check=False).returncode:
            pytest.skip(f"the test stack lacks one of {', '.join(packages)}")

    return check


@pytest.fixture
def plant(stack: Target, tmp_path: Path) -> Plant:
    """Makes an interpreter that runs some code before the child: a stack with that defect.

    It is a shell script in the place of the interpreter, so that the product knows nothing of it.
    """

    def planted(code: str) -> Target:
        launcher = tmp_path / "launcher.py"
        run_child = "import runpy, sys\nsys.argv = sys.argv[2:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
        launcher.write_text(textwrap.dedent(code) + run_child, encoding="utf-8")
        script = tmp_path / "python"
        command = shlex.join([stack.executable, "-B", str(launcher)])
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        return target(str(script))

    return planted
