"""What really breaks of scripts in an environment, found by importing and binding there what they use."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tools.example_scripts.uses import Use

_WORKER = Path(__file__).with_name("_worker.py")
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}
_VERSIONS = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"

State = Literal["works", "breaks", "open"]


class Outcome(NamedTuple):
    """What came of a use of ``target``, or of a part of it; ``text`` is the error, or why the outcome is open.

    A use that breaks ``inside`` fails because a package of the environment does not work with another one.
    """

    line: int
    end: int
    target: str
    name: str
    state: State
    kind: str = ""
    text: str = ""


Truth = Mapping[str, tuple[Outcome, ...]]
"""The outcomes of each script by its file, those that work among them."""


def versions(python: Path) -> dict[str, str]:
    """The distributions of an environment."""
    done = subprocess.run([str(python), "-c", _VERSIONS], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return {name.lower().replace("_", "-"): version for name, version in found.items()}


def run(python: Path, scripts: Mapping[str, Sequence[Use]], limit: float = 1800) -> Truth:
    """The outcomes of the uses of scripts, all in one process, or in one more for each script that ends it."""
    left = dict(scripts)
    found: dict[str, tuple[Outcome, ...]] = {}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results")
        while left:
            requests = Path(folder, "requests")
            requests.write_text(json.dumps([{"file": file, "uses": [*map(_request, left[file])]} for file in left]))
            results.write_text("")
            command = [str(python), "-W", "ignore", str(_WORKER), str(requests), str(results)]
            environ = {**os.environ, **_QUIET}
            done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=limit)
            begun = ""
            for row in map(json.loads, results.read_text().splitlines()):
                begun = row.get("begins", begun)
                if "outcomes" in row:
                    found[begun] = tuple(_outcomes(left.pop(begun), row["outcomes"]))
            if left and begun not in left:
                raise RuntimeError(done.stderr[-1500:])
            if left:
                found[begun] = tuple(_outcomes(left.pop(begun), ["the process ended"] * len(scripts[begun])))
    return found


def _request(use: Use) -> dict[str, Any]:
    return {
        **use._asdict(),
        **use.reference._asdict(),
        "keywords": [each._asdict() for each in use.keywords],
    }


def _outcomes(uses: Sequence[Use], raw: Sequence[Any]) -> Iterator[Outcome]:
    for use, result in zip(uses, raw, strict=True):
        module, chain, _ = use.reference
        target, name = ".".join((module, *chain)), chain[-1] if chain else module
        if not isinstance(result, list):
            names = [name, *(each.name for each in use.keywords)]
            unknown, why = (names, result) if isinstance(result, str) else ((result or {}).get("open", []), "")
            for each in names:
                state: State = "open" if each in unknown else "works"
                yield Outcome(use.line, use.end, target, each, state, use.kind, why)
            continue
        for each in result:
            yield Outcome(use.line, use.end, target, each["name"], "breaks", each["kind"], each["text"])
        broken = {each["name"] for each in result}
        for keyword in use.keywords:
            if keyword.name not in broken:
                yield Outcome(use.line, use.end, target, keyword.name, "works", use.kind)


def dump(truth: Truth) -> dict[str, list[list[Any]]]:
    """The outcomes as JSON."""
    return {file: [list(each) for each in outcomes] for file, outcomes in truth.items()}


def load(recorded: Mapping[str, Sequence[Sequence[Any]]]) -> Truth:
    """The outcomes that `dump` wrote."""
    return {file: tuple(Outcome(*each) for each in rows) for file, rows in recorded.items()}
