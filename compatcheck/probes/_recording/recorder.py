"""Record the cases of `compatcheck compare` in the interpreter under trial.

Request: config (the user's, else standard models), training, model_folder, trust_remote_code, only and without (names
of cases), spread (whether each case is run again with its weights moved by one rounding, which says how far rounding
carries).
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Dict, Iterator, List

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Measuring, Request, Row, Stage

if TYPE_CHECKING:
    from compatcheck.probes._recording._case import Case

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31"}
TIMEOUT: float = 600.0


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each case: its values, or what it raised."""
    import logging
    import warnings

    import torch
    import transformers

    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    only, without = request.get("only"), request.get("without", ())
    for case in _cases(request):
        if case.name in without or (only is not None and case.name not in only):
            continue
        stage(case.name)
        _forget_settings()
        yield _recorded(case, bool(request.get("spread")))
    return {"distributions": _loaded_distributions(), "memory_mib": _peak()}


def _cases(request: Request) -> Iterator[Case]:
    from importlib.util import find_spec

    from compatcheck.probes._recording import _adapters, _forward, _loop, _models, _preferences, _trainer

    found = _models.subjects(request)
    for subject in found:
        yield from _forward.cases(subject, request, all_attentions=subject is found[0])
    yield from _trainer.cases(found[0], request)
    for package, cases in (("accelerate", _loop.cases), ("peft", _adapters.cases), ("trl", _preferences.cases)):
        if find_spec(package) is not None:
            yield from cases(found[0], request)


def _recorded(case: Case, spread: bool) -> Row:
    from pickle import UnpicklingError

    from compatcheck.probes._recording._record import Record
    from compatcheck.probes.training._model import config_errors

    started = time.monotonic()
    row: Row = {"case": case.name, "dtype": case.dtype, "packages": list(case.packages)}
    try:
        record = Record()
        case.run(record, 0.0)
        row["values"] = record.values
        if spread:
            _forget_settings()
            moved = Record()
            case.run(moved, UNIT_ROUNDOFF[case.dtype])
            row["moved"] = [value.get("sketch") for value in moved.values]
    except (*config_errors(), UnpicklingError) as error:
        lines = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip().splitlines()
        row["error"] = f"{type(error).__name__}: {lines[0][:200] if lines else ''}"
    row["seconds"] = round(time.monotonic() - started, 3)
    return row


def _forget_settings() -> None:
    """Undo what the case before set for the whole process: accelerate keeps its precision in a shared state."""
    import os
    import sys

    for name in [name for name in os.environ if name.startswith("ACCELERATE_")]:
        del os.environ[name]
    state = sys.modules.get("accelerate.state")
    for name in ("AcceleratorState", "GradientState", "PartialState"):
        reset = getattr(getattr(state, name, None), "_reset_state", None)
        if reset is not None:
            reset()


def _loaded_distributions() -> List[str]:
    """The distributions of which a module was imported; the others can have had no part in it."""
    import sys
    from importlib import metadata

    loaded = {name.partition(".")[0] for name in sys.modules}
    found = set()
    for each in metadata.distributions():
        name = each.metadata["Name"]
        tops = {str(file).replace("\\", "/").split("/")[0] for file in each.files or ()}
        modules = {top[: -len(".py")] if top.endswith(".py") else top.partition(".")[0] for top in tops}
        if name and modules & loaded:
            found.add(name)
    return sorted(found)


def _peak() -> float:
    """The most memory that this process has held, in MiB."""
    import resource

    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
