"""Imports of the training packages.

Every installed training package is imported in a separate process, together with the modules that a training run loads
lazily (`Trainer`, the auto classes, LoRA, `SFTTrainer` and so on). The operators of torchvision are called once. As in
a training run, packages share one process while no import fails. This process starts from the parent process of the
probes, which has imported torch and transformers for the other probes. A package that raises an error, dies, hangs or
is ended is imported again alone in a fresh process, and this result counts. The probe needs only the standard library,
so it can also name a broken torch.

There is no number and no bound: an import works or it does not. A failure names the statement, the exception and the
chain of files that led to it, with the distribution that imports and the version of the imported distribution. An
undefined symbol means a binary built for another release, `cannot import name` means two releases that do not fit
together, and a missing library means an incomplete environment. A fatal signal is also a failure, and so is an import
that stays at one place for half a minute. Not judged are: an import that is slow but advances, or that waits for a
process of its own (a compiler); an import that the system ends or that finds no free memory or disk; and an import
that fails because there is no GPU. A package that only warns passes.

Request: packages (names of distributions; default every installed training package), modules (dotted names that are
also imported), statements (import statements instead of the packages), error (a regular expression: a failure with
another message is shown and not judged), limit (seconds for each package, default 150), alone (true: a fresh process
for every package).
"""

from __future__ import annotations

import ast
import ctypes
import faulthandler
import importlib.util
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from compatcheck.probes._clock import CAP, Clock, is_runnable
from compatcheck.probes._criterion import Measured, Measuring, Request, Row, Stage
from compatcheck.probes.imports import _importing
from compatcheck.probes.imports._import_chain import failure_row, stands_still, top_level, versions

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: dict[str, str] = {}
TIMEOUT: float = 420.0
PROFILE = "quick"
SECONDS = 14.0
WARM = True
LASTING = False

LIMIT = 150.0
POLL_SECONDS = 0.05
DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_importing.py")

PACKAGES: Dict[str, Tuple[str, ...]] = {
    "torch": ("import torch",),
    "numpy": ("import numpy",),
    "triton": ("import triton",),
    "tokenizers": ("import tokenizers",),
    "safetensors": ("import safetensors",),
    "huggingface-hub": ("import huggingface_hub",),
    "torchvision": (
        "import torchvision",
        "import torch, torchvision.ops; torchvision.ops.nms(torch.eye(4)[:2], torch.ones(2), 0.5)",
    ),
    "torchaudio": ("import torchaudio",),
    "transformers": (
        "import transformers",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "from transformers import Trainer, TrainingArguments",
        "from transformers import LlamaForCausalLM",
        "from transformers import DataCollatorForSeq2Seq",
        "from transformers import BitsAndBytesConfig",
    ),
    "accelerate": ("from accelerate import Accelerator",),
    "peft": ("import peft", "from peft import LoraConfig, get_peft_model"),
    "deepspeed": ("import deepspeed",),
    "datasets": ("import datasets",),
    "bitsandbytes": ("import bitsandbytes",),
    "trl": ("import trl", "from trl import SFTTrainer", "from trl import DPOTrainer"),
    "flash-attn": ("import flash_attn",),
    "xformers": ("import xformers.ops",),
    "apex": ("import apex",),
    "transformer-engine": ("import transformer_engine.pytorch",),
    "torchao": ("import torchao",),
    "evaluate": ("import evaluate",),
    "optimum": ("import optimum",),
    "auto-gptq": ("import auto_gptq",),
    "gptqmodel": ("import gptqmodel",),
    "autoawq": ("import awq",),
    "liger-kernel": ("import liger_kernel.transformers",),
    "sentence-transformers": ("import sentence_transformers",),
    "diffusers": ("import diffusers", "from diffusers import UNet2DConditionModel"),
    "lightning": ("import lightning",),
    "pytorch-lightning": ("import pytorch_lightning",),
    "torchmetrics": ("import torchmetrics",),
    "timm": ("import timm",),
    "open-clip-torch": ("import open_clip",),
    "mmengine": ("import mmengine",),
    "xtuner": ("import xtuner.model",),
    "torchtune": ("import torchtune",),
    "mpi4py": ("import mpi4py",),
    "scipy": ("import scipy",),
    "scikit-learn": ("import sklearn",),
    "pandas": ("import pandas",),
    "pyarrow": ("import pyarrow",),
    "ms-swift": ("import swift.cli.sft", "from swift.trainers import Seq2SeqTrainer"),
    "llamafactory": ("from llamafactory.train.tuner import run_exp",),
    "axolotl": ("import axolotl.train",),
    "vllm": ("import vllm",),
    "unsloth": ("import unsloth",),
}
WANTS_GPU = re.compile(
    r"libcuda\.so|accelerator|active drivers|driver|no (?:nvidia|cuda|gpu)|(?:nvidia|cuda|gpu)\S* (?:is )?not", re.I
)
NAMES = re.compile(r"cannot import name|No module named|has no attribute|undefined symbol")

KILLED = re.compile(
    r"by SIG(?:KILL|TERM)|MemoryError|Cannot allocate memory|No space left on device|Too many open files|Disk quota"
)

Package = Row


class Run(NamedTuple):
    """What one process told: the packages that it imported, and how the one after them ended (None: all went well)."""

    imported: List[Row]
    end: Optional[Row]


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each package: how its import ended, after how many seconds, and by which chain it failed."""
    installed = versions()
    try:
        pending = _chosen(request, installed)
        limit = float(request.get("limit") or LIMIT)
        error = re.compile(str(request["error"])) if request.get("error") else None
    except (SyntaxError, TypeError, ValueError, re.error) as mistake:
        return {"unsupported": str(mistake)}
    if not pending:
        named = ", ".join(map(str, request.get("packages") or ())) or "no training package"
        return {"unsupported": "%s: not installed here" % named}
    clock = Clock(TIMEOUT - 30, os.getpid)
    gpu = _driver_is_here()
    together_failed: Dict[str, str] = {}
    compiled = tempfile.TemporaryDirectory()
    environ = _environ(pending[0], compiled.name)
    while pending and not clock.is_over():
        alone = request.get("alone") or pending[0]["package"] in together_failed
        batch = pending[:1] if alone else list(pending)
        warm = not alone and any(name in sys.modules for name in PACKAGES)
        run = _run(batch, min(limit, max(clock.limit - clock.counted, 1.0)), environ, stage, _Fork if warm else _start)
        for row in run.imported:
            pending.pop(0)
            row["version"] = installed.get(row["package"])
            if row["package"] in together_failed:
                row["together"] = together_failed[row["package"]]
            yield row
        if run.end is None:
            continue
        ended = failure_row(run.end, installed)
        if run.imported or warm:
            together_failed[pending[0]["package"]] = ended["what"]
            continue
        pending.pop(0)
        ended["version"] = installed.get(ended["package"])
        ended["undecided"] = _undecided(ended, gpu, error)
        yield ended
    compiled.cleanup()
    return {"gpu": gpu, "not_reached": [each["package"] for each in pending], "error": request.get("error")}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The first failing import decides; every other failure is named."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    rows = list(measured["rows"])
    failed = [row for row in rows if row["outcome"] != "imported"]
    judged = [row for row in failed if not row["undecided"]]
    if judged:
        return "fail", _sentence(judged[0]) + _others(judged[0], failed)
    if failed:
        first = failed[0]
        return "watch", "%s; %s%s" % (_sentence(first), first["undecided"], _others(first, failed))
    unsettled = [row for row in rows if "together" in row]
    if unsettled:
        row = unsettled[0]
        return "watch", "%s imports alone, but after other packages: %s" % (_label(row), row["together"])
    if measured["not_reached"]:
        return "watch", "out of time before %s" % ", ".join(measured["not_reached"])
    if len(rows) == 1:
        return "pass", "%s imports (%.1f s)" % (_label(rows[0]), rows[0]["seconds"])
    return "pass", "%d packages import (%.1f s)" % (len(rows), sum(row["seconds"] for row in rows))


def _sentence(row: Measured) -> str:
    chain = list(row["chain"])
    way = " > ".join([chain[0], "...", *chain[-2:]] if len(chain) > 4 else chain)
    return "%s: `%s` %s%s%s" % (
        _label(row),
        row["statement"],
        row["what"],
        "; %s" % row["asks"] if row.get("asks") else "",
        " (%s)" % way if way else "",
    )


def _label(row: Measured) -> str:
    return " ".join(str(part) for part in (row["package"], row.get("version")) if part)


def _undecided(row: Measured, gpu: bool, error: Optional[Any]) -> str:
    """Why a failure says nothing of the packages, empty where it does."""
    what = row["what"]
    if row["outcome"] == "slow":
        return "it may only be slow"
    if KILLED.search(what):
        return "the machine may be out of memory or disk space"
    if not gpu and WANTS_GPU.search(what) and not NAMES.search(what):
        return "there is no GPU driver"
    if error is not None and not error.search("\n".join(row["causes"]) or what):
        return "a different failure from the one expected"
    return ""


def _others(first: Measured, failed: Sequence[Measured]) -> str:
    others = [row for row in failed if row is not first]
    same = [_label(row) for row in others if row["what"] == first["what"]]
    rest = [_label(row) for row in others if row["what"] != first["what"]]
    told_same = "; the same error stops %s" % ", ".join(same) if same else ""
    return told_same + ("; also failing: %s" % ", ".join(rest) if rest else "")


def _chosen(request: Request, installed: Mapping[str, str]) -> List[Package]:
    """What is to be imported, what others build on first."""
    chosen = [
        {"package": _import_statement(text), "statements": [_import_statement(text)]}
        for text in request.get("statements") or ()
    ]
    modules = [str(name) for name in request.get("modules") or ()]
    chosen += [{"package": name, "statements": [_import_statement("import " + name)]} for name in modules]
    named = [re.sub(r"[-_.]+", "-", str(name)).lower() for name in request.get("packages") or ()]
    if not chosen or named:
        names = [name for name in PACKAGES if name in named or not named] + [n for n in named if n not in PACKAGES]
        chosen += [
            {"package": name, "statements": list(PACKAGES.get(name) or ["import " + each for each in top_level(name)])}
            for name in names
            if name in installed
        ]
    return [each for each in chosen if each["statements"]]


def _import_statement(text: object) -> str:
    """The text, if it is import statements and nothing else. Raises ValueError where it is more."""
    parsed = ast.parse(str(text)).body
    if not parsed or not all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in parsed):
        raise ValueError("not an import statement: %s" % str(text)[:80])
    return str(text)


def _driver_is_here() -> bool:
    """Whether NVIDIA's or AMD's driver is loaded on this machine."""
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd"):
        return True
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


def _environ(first: Package, compiled: str) -> Dict[str, str]:
    """The environment of the imports: where nothing is compiled yet, it is compiled once, into a folder of ours."""
    name = first["statements"][0].split()[1].partition(".")[0].rstrip(",")
    spec = importlib.util.find_spec(name)
    folder = os.path.dirname(spec.origin or "") if spec else ""
    if not folder or os.path.isdir(os.path.join(folder, "__pycache__")):
        return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": compiled}


class _Fork:
    """A fork of this process that imports; has of `subprocess.Popen` what is used here."""

    def __init__(self, folder: str, environ: Mapping[str, str], said: Any) -> None:
        self.returncode: Optional[int] = None
        faulthandler.cancel_dump_traceback_later()  # its thread holds a lock that nobody would release in the fork
        self.pid = os.fork()
        if self.pid == 0:
            _import_and_end(folder, environ, said)
        faulthandler.dump_traceback_later(CAP * TIMEOUT, exit=True)

    def poll(self) -> Optional[int]:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return self.returncode

    def wait(self, seconds: float = math.inf) -> Optional[int]:
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("import", seconds)
            time.sleep(POLL_SECONDS / 5)
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _import_and_end(folder: str, environ: Mapping[str, str], said: Any) -> None:
    """Be what `_importing.py` is as a process of its own."""
    status = 1
    try:
        os.environ.clear()
        os.environ.update(environ)
        sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environ
        sys.pycache_prefix = environ.get("PYTHONPYCACHEPREFIX")
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
        _importing.main(folder)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        raised = sys.exc_info()
        if raised[1] is not None:
            sys.excepthook(*raised)
        os._exit(status)


def _start(folder: str, environ: Mapping[str, str], said: Any) -> Any:
    """A fresh process that imports."""
    command = [sys.executable, DRIVER, folder]
    return subprocess.Popen(command, env=dict(environ), stdin=subprocess.DEVNULL, stdout=said, stderr=said)


def _run(packages: List[Package], limit: float, environ: Mapping[str, str], stage: Stage, start: Any) -> Run:
    """Import the packages in one process, ended when one of them takes longer than the limit."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "order.json"), "w", encoding="utf-8") as stream:
            json.dump({"limit": limit, "packages": packages}, stream)
        with open(os.path.join(folder, "said.txt"), "wb") as said:
            process = start(folder, environ, said)
            try:
                slow = _wait(process, folder, limit, stage)
                working = slow is not None and _has_children(process.pid)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        events = _events(folder)
        imported = [
            {"package": event["package"], "outcome": "imported", "seconds": event["seconds"]}
            for event in events
            if event["event"] == "end"
        ]
        if len(imported) == len(packages):
            return Run(imported, None)
        begun = [event for event in events if event["event"] == "begin"]
        last = begun[-1] if begun else {"package": packages[0]["package"], "statement": packages[0]["statements"][0]}
        end = {**last, "status": process.returncode, "slow": slow, "working": working}
        if events and events[-1]["event"] == "raised":
            end["raised"] = events[-1]
        end["stack"] = _text(folder, "crash.txt")
        end["said"] = _text(folder, "said.txt")
        return Run(imported, end)


def _wait(process: Any, folder: str, limit: float, stage: Stage) -> Optional[float]:
    """Seconds of the package that took longer than the limit or stands still, None where all ended; announces each."""
    current, since, clock = "", time.monotonic(), Clock(limit + 0.5, lambda: int(process.pid))
    while True:
        try:
            process.wait(POLL_SECONDS)
            return None
        except subprocess.TimeoutExpired:
            pass
        begun = [event["package"] for event in _events(folder) if event["event"] == "begin"]
        if begun and begun[-1] != current:
            current, since, clock = begun[-1], time.monotonic(), Clock(limit + 0.5, lambda: int(process.pid))
            stage("import " + current)
        still = stands_still(_text(folder, "crash.txt")) and not is_runnable(process.pid)
        if clock.is_over() or still and not _has_children(process.pid):
            return round(time.monotonic() - since, 1)


def _has_children(pid: int) -> bool:
    """Whether the process runs others, such as a compiler, where the system tells."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as stream:
            return bool(stream.read().strip())
    except OSError:
        return False


def _events(folder: str) -> List[Row]:
    return [json.loads(line) for line in _text(folder, "told.jsonl").split("\n")[:-1]]


def _text(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""
