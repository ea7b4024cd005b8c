"""Every causal language model of a release of transformers, small and with random weights, probed like a stack."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from compatcheck import probes
from compatcheck.installed.target import find_target
from tools.sweep import _build, _records
from tools.sweep._records import ROOT, Record
from tools.sweep._stacks import NEWEST, TRIALS, stack_of

SCANNED = ROOT / "matrix" / "records" / "kinds-swept.json"
COLUMNS = ("packed_sequences, padding-free", "save_reload", "gradient_checkpointing", "micro_training, padded left")
TOGETHER = 6
"""Kinds that share the warm parent of their probes; what has run is kept after each of these groups."""
LIST = "from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as m; print(*m)"
DECODERS = (
    *("bert", "bert-generation", "big_bird", "camembert", "data2vec-text", "electra", "ernie", "megatron-bert"),
    *("rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "xlm-roberta", "xlm-roberta-xl", "xmod"),
)
"""Encoders, which see later tokens unless their configuration makes them decoders."""
NOT_PACKED = "does not pass position_ids to the mask"
EXPLAINED: dict[str, str] = {
    **dict.fromkeys(("gpt_oss", "afmoe", "biogpt", "opt", "bloom", "mpt", "xglm"), "CC-2026-4832"),
    **dict.fromkeys(("jamba", "mamba", "falcon_mamba", "recurrent_gemma", "minimax"), "CC-2026-4894"),
    **dict.fromkeys(("falcon_h1", "inkling_text", "inkling2_text", "inkling2_loop_text"), "documented: needs seq_idx"),
    **dict.fromkeys(DECODERS, NOT_PACKED),
    "blenderbot-small": "positions count padding, as in BART",
    "cpmant": "the probe takes the ids of prompts for tokens",
}
"""What a failure of a kind was traced to: an entry, or why it is none."""


def scan(
    version: str, kinds: Sequence[str], columns: Sequence[str], again: bool, limit: float, folder: Path
) -> Iterator[Record]:
    """Build the release with the newest packages, and yield the record of each kind once it is kept."""
    ends = time.monotonic() + limit
    try:
        python = _build.build(stack_of("transformers", version, NEWEST), folder / "stack")
        shared = {"date": date.today().isoformat(), "hardware": _records.hardware()}
        shared["packages"] = _build.versions(python)
        left = _left(version, kinds or _all(python), columns or COLUMNS, again)
        for start in range(0, len(left), TOGETHER):
            if time.monotonic() < ends:
                for record in _probe(version, python, dict(left[start : start + TOGETHER])):
                    _records.keep({**record, **shared}, SCANNED)
                    yield record
    finally:
        shutil.rmtree(folder / "stack", ignore_errors=True)


def _all(python: Path) -> list[str]:
    return subprocess.run([str(python), "-c", LIST], capture_output=True, text=True, check=True).stdout.split()


def _left(version: str, kinds: Sequence[str], columns: Sequence[str], again: bool) -> list[tuple[str, list[str]]]:
    """The kinds with the columns that have no current result."""
    left = [(kind, _records.columns_left(_name(version, kind), columns, again, SCANNED)) for kind in kinds]
    return [(kind, wanted) for kind, wanted in left if wanted]


def _probe(version: str, python: Path, left: Mapping[str, Sequence[str]]) -> Iterator[Record]:
    asked = [(kind, column) for kind, columns in left.items() for column in columns]
    trials = [(TRIALS.get(column, (column, {})), config(kind)) for kind, column in asked]
    requests = [
        (probe, {**request, "config": own, "device": "cpu", "dtype": "float32"}) for (probe, request), own in trials
    ]
    found = dict(zip(asked, probes.run_all(requests, find_target(str(python), os.environ))))
    for kind, columns in left.items():
        rows = {column: _records.row(column, found[kind, column]) for column in columns}
        yield {"stack": _name(version, kind), "probes": {column: _short(row) for column, row in rows.items()}}


def config(kind: str) -> dict[str, Any]:
    """The configuration of a kind: its defaults, as a decoder."""
    return {"model_type": kind, **({"is_decoder": True} if kind in DECODERS else {})}


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """Without the words of a pass."""
    return {name: value for name, value in row.items() if name != "why" or row["outcome"] != "pass"}


def _name(version: str, kind: str) -> str:
    return f"transformers {version}, {kind}"


def kind_of(record: Record) -> str:
    """The model kind of a record."""
    return str(record["stack"].partition(", ")[2])
