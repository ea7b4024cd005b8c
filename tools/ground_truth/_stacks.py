"""Stacks as a fresh install gave them on a day of the past, and mixtures of several days.

``uv pip install --exclude-newer DATE`` sees the package index as it stood on that day.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from packaging.utils import canonicalize_name
from uv import find_uv_bin

from tools.ground_truth._recipes import RECIPES


def build(name: str, folder: Path, ends: float) -> Path:
    """The interpreter of a stack, installed if it is not there yet; raises where its requirements conflict."""
    recipe, venv = RECIPES[name], folder / name
    python = venv / "bin" / "python"
    if (venv / "built").exists():
        return python
    shutil.rmtree(venv, ignore_errors=True)
    _uv("venv", "-p", "3.11", str(venv), ends=ends)
    _uv("pip", "install", "--python", str(python), f"torch=={recipe.torch}", ends=ends)
    listed = _uv("pip", "list", "--python", str(python), "--format", "json", ends=ends)
    torch = next(each["version"] for each in json.loads(listed) if each["name"] == "torch")
    constraint = venv / "constraint"
    constraint.write_text(f"torch=={torch}\n", encoding="utf-8")
    options = ("--exclude-newer", recipe.until, "--constraint", str(constraint), "--only-binary", "av,vllm")
    requirements = ("numpy", "setuptools", *recipe.requirements)
    _uv("pip", "install", "--python", str(python), *options, *requirements, ends=ends)
    if recipe.upgraded:
        later = ("--exclude-newer", recipe.upgraded_on, *options[2:], "--upgrade-package", recipe.upgraded)
        _uv("pip", "install", "--python", str(python), *later, recipe.upgraded, ends=ends)
    (venv / "built").touch()
    return python


def installed(python: Path) -> dict[str, importlib.metadata.Distribution]:
    """The distributions of an environment by their normalised names."""
    (folder,) = python.parent.parent.glob("lib/python3.*/site-packages")
    found = importlib.metadata.distributions(path=[str(folder)])
    return {canonicalize_name(each.metadata["Name"]): each for each in found}


def _uv(*arguments: str, ends: float) -> str:
    done = subprocess.run([find_uv_bin(), *arguments], capture_output=True, text=True, timeout=ends - time.monotonic())
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    return done.stdout


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The options of a script that builds stacks, one after another."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}")
    parser.add_argument("--folder", type=Path, help="where the environments are built; else a temporary folder")
    parser.add_argument("--keep", action="store_true", help="leave the environments for another run")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for one stack, its installation included")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options as given, with every stack where none is named, and a folder that is there."""
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in RECIPES]
    if unknown:
        parser.error(f"no stack is called {unknown[0]}")
    options.names = options.names or list(RECIPES)
    options.folder = (options.folder or Path(tempfile.mkdtemp(prefix="stacks-"))).resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    return options
