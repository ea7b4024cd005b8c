"""Plant a fault, run a probe on it, tell what came of it.

Most faults are planted in this process: a context manager changes the library, `measure` runs, `judge` decides.
`altered` changes operators below autograd, so that a backward pass meets the fault too; `replaced` changes an
attribute. A fault that ends its process, or that lives in processes a probe starts, is planted by a
`sitecustomize.py` on PYTHONPATH and goes through the real runner.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import os
import sys
import tempfile
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from compatcheck.environment import Target
from compatcheck.probes import _units, run
from compatcheck.probes._criterion import RANK, verdict
from compatcheck.results.findings import ProbeResult

Plant = Callable[[], contextlib.AbstractContextManager[Any]]
CPU = {"device": "cpu"}
CAUGHT, WATCHED, MISSED = "caught", "watched", "missed"
WORDS = {"fail": CAUGHT, "crash": CAUGHT, "timeout": CAUGHT, "watch": WATCHED, "pass": MISSED}
START_UP = """
import importlib.abc, importlib.machinery, sys

class _After(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != {module!r}:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            plant()
        spec.loader.exec_module = exec_module
        return spec

import importlib.util
sys.meta_path.insert(0, _After())

def plant():
"""


class Fault(NamedTuple):
    """One fault: what it does in words, the probe that has to find it, and what is expected of it.

    ``plant`` changes this process; ``start_up`` is instead (module, code), run in every Python process of
    the stack as soon as the module has been imported. ``below`` says why a fault that is not caught does no
    harm. ``seconds`` is the runner's limit. ``quick`` faults are tried in every test run.
    """

    name: str
    probe: str
    plant: Plant | None = None
    request: Mapping[str, Any] = {}
    expect: str = CAUGHT
    dtype: str = ""
    below: str = ""
    start_up: tuple[str, str] = ("", "")
    seconds: float | None = None
    needs: tuple[str, ...] = ()
    quick: bool = False


class Seen(NamedTuple):
    """What one trial gave; ``errors`` holds (theta, rho) of the worst judged row of each dtype."""

    word: str
    why: str
    errors: Mapping[str, tuple[float, float]] = {}


def try_fault(fault: Fault, seed: int) -> Seen:
    """Plant the fault, measure, judge. ``skipped`` where the probe could not run."""
    request = {**CPU, "seed": seed, **fault.request}
    if fault.start_up[0]:
        with started_up(*fault.start_up):
            result = run(fault.probe, this_target(), request, timeout=fault.seconds)
        return _seen(result.outcome, result.why, result.measured or {})
    with fault.plant() if fault.plant else contextlib.nullcontext():
        result = in_process(fault.probe, request)
    return _seen(result.outcome, result.why, result.measured or {})


def in_process(probe: str, request: Mapping[str, Any]) -> ProbeResult:
    """The probe's own two halves, without a child; a failure is not repeated with another seed."""
    unit = _units.unit(probe)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        measured = unit.measure({"seed": 0, **request}, lambda stage: None)
        if isinstance(measured, types.GeneratorType):
            measured = _drain(measured)
    outcome, why = unit.judge(measured)
    return ProbeResult(probe, outcome, why, measured)


def this_target() -> Target:
    return Target(sys.executable, "", "", (), "the fault table runs in it")


def worst(seen: Sequence[Seen]) -> str:
    """One word for several seeds: caught only where every seed is."""
    order = ("skipped", MISSED, WATCHED, CAUGHT)
    return min((each.word for each in seen), key=order.index)


@contextlib.contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """``owner.name`` is ``make(original)`` inside; ``original`` of a class method takes the class first."""
    before = inspect.getattr_static(owner, name)
    is_own = name in vars(owner)
    if isinstance(before, classmethod):
        setattr(owner, name, classmethod(make(before.__func__)))
    else:
        setattr(owner, name, make(getattr(owner, name)))
    try:
        yield
    finally:
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


class Call(NamedTuple):
    """One call of an aten operator and what it returned; tensors are real and below autograd."""

    func: Any
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    out: Any

    def again(self, *args: Any) -> Any:
        """The operator's own answer to other arguments."""
        return self.func(*args, **self.kwargs)


def altered(operators: Sequence[str], alter: Callable[[Call], Any], dtype: str = "") -> Plant:
    """A plant: ``alter(call)`` takes the place of what the named aten operators return, backward too.

    ``dtype`` chooses calls whose first tensor has it; float64, in which exact values are computed, is never touched.
    """

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        chosen = (getattr(torch, dtype),) if dtype else (torch.float32, torch.bfloat16, torch.float16)

        class Alter(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                kwargs = kwargs or {}
                out, name = func(*args, **kwargs), str(func).split(".")[1]
                if name in operators and _first_tensor(args).dtype in chosen:
                    return alter(Call(func, name, args, kwargs, out))
                return out

        with Alter():
            yield

    return plant


def _first_tensor(args: Any) -> Any:
    for each in args:
        if isinstance(each, (list, tuple)) and each:
            each = each[0]
        if hasattr(each, "is_floating_point") and each.is_floating_point():
            return each
    return types.SimpleNamespace(dtype=None)


@contextlib.contextmanager
def started_up(module: str, code: str) -> Iterator[None]:
    """Every Python process started inside runs ``code`` once it has imported ``module``."""
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory() as folder:
        text = START_UP.format(module=module) + textwrap.indent(textwrap.dedent(code), "    ")
        (Path(folder) / "sitecustomize.py").write_text(text, encoding="utf-8")
        os.environ["PYTHONPATH"] = folder
        try:
            yield
        finally:
            os.environ.pop("PYTHONPATH")
            if before is not None:
                os.environ["PYTHONPATH"] = before


def _seen(outcome: str, why: str, measured: Mapping[str, Any]) -> Seen:
    errors: dict[str, tuple[float, float]] = {}
    for row in measured.get("rows", ()):
        if not isinstance(row, Mapping) or "recorded" in row or "by_design" in row or row.get("control"):
            continue
        dtype, found = str(row.get("dtype", "")), _errors(row)
        if found is not None and _rank(found) > _rank(errors.get(dtype, (-1.0, -1.0))):
            errors[dtype] = found
    return Seen(WORDS.get(outcome, "skipped"), why, errors)


def _rank(found: tuple[float, float]) -> tuple[int, float, float]:
    return RANK[verdict(*found)], *found


def _errors(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """theta and rho of a row, where it has them."""
    if isinstance(row.get("error"), str):
        return math.inf, math.inf
    return (float(row["theta"]), float(row.get("rho", 0.0))) if "theta" in row else None


def _drain(rows: Any) -> dict[str, Any]:
    collected = []
    while True:
        try:
            collected.append(next(rows))
        except StopIteration as end:
            return {"rows": collected, **(end.value or {})}
