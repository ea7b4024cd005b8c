"""Install a stack, and delete it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from packaging.version import Version
from uv import find_uv_bin

from compatcheck.installed.collect import collect
from compatcheck.installed.target import find_target
from tools.sweep._stacks import Stack

PYTHON = "3.11"
LONGEST = 300
SHOWN = ("torch", "transformers", "accelerate", "peft", "trl", "deepspeed", "bitsandbytes", "datasets", "numpy")


class Unbuildable(Exception):
    """What the installer says of requirements that do not go together, in one line."""


def build(stack: Stack, folder: Path) -> Path:
    """The interpreter of the stack in ``folder``, which is emptied first; raises Unbuildable."""
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin" / "python"
    _uv("venv", "--python", PYTHON, str(folder))
    _uv("pip", "install", "--python", str(python), f"torch=={stack.torch}")
    constraint = folder / "constraint"
    old = "numpy<2\n" if Version(stack.torch) < Version("2.3") else ""
    constraint.write_text(f"torch=={versions(python)['torch']}\n{old}", encoding="utf-8")
    dated = ("--exclude-newer", stack.until.isoformat()) if stack.until else ()
    _uv("pip", "install", "--python", str(python), *dated, "--constraint", str(constraint), *stack.requirements)
    _compile_torch(python, stack.torch, folder.parent / "bytecode")
    return python


def _compile_torch(python: Path, torch: str, folder: Path) -> None:
    """Let children find torch's bytecode, made once for each release; that of others is not kept, as sources vary."""
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / torch)
    if (folder / torch).exists():
        return
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([str(python), "-c", "import torch, torch._dynamo"], env=environ, capture_output=True, check=False)
    packages = python.parent.parent.resolve().glob("lib/python3*/site-packages")
    for package in (folder / torch).joinpath(*next(packages).parts[1:]).iterdir():
        if package.name not in ("torch", "sympy"):
            shutil.rmtree(package) if package.is_dir() else package.unlink()


def latest(package: str) -> str:
    """The last release that the index has for our Python."""
    told = _uv(
        "pip", "compile", "--no-deps", "--no-header", "--no-annotate", "--python-version", PYTHON, "-", given=package
    )
    return told.partition("==")[2].strip()


def versions(python: Path) -> dict[str, str]:
    """The versions of the packages that the records name."""
    installed = collect(find_target(str(python), os.environ), architectures=False).facts["distributions"]
    return {name: str(installed[name]) for name in SHOWN if name in installed}


def _uv(*arguments: str, given: str = "") -> str:
    environ = {**os.environ, "DS_BUILD_OPS": "0"}
    command = [find_uv_bin(), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, env=environ, check=False)
    if done.returncode:
        lines = [line.strip(" ×╰─▶│") for line in done.stderr.splitlines()]
        raise Unbuildable(" ".join(filter(None, lines))[:LONGEST])
    return done.stdout
