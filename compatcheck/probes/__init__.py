"""Stage 3, the door: small numeric experiments run in the target's own interpreter."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compatcheck.errors import InputError
from compatcheck.probes._run import run, run_all

__all__ = ["describe", "names", "parse_request", "require", "run", "run_all"]


def names() -> tuple[str, ...]:
    """Every probe, sorted: the plain file names of this folder."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py")))


def describe(name: str) -> tuple[str, str]:
    """A probe's title and explanation: first line and rest of its docstring."""
    source = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    title, _, body = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    return title, body.strip()


def parse_request(text: str) -> dict[str, Any]:
    """What the user asks of a probe, as a JSON object. Raises InputError where it is none."""
    try:
        request = json.loads(text)
    except ValueError as error:
        raise InputError("reading --request", text, str(error), 'give JSON such as {"dtype": "float16"}') from None
    if not isinstance(request, dict):
        raise InputError("reading --request", text, "it is not an object", 'give JSON such as {"dtype": "float16"}')
    return request


def require(names_: Iterable[str]) -> tuple[str, ...]:
    """The probes named, or all of them where none is. Raises InputError for a name that no probe has."""
    chosen, existing = tuple(names_), names()
    for name in chosen:
        if name not in existing:
            raise InputError(
                "running the probe", name, "there is none of this name", f"choose from {', '.join(existing)}"
            )
    return chosen or existing
