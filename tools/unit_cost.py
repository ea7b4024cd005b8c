"""Print how many files one more unit of each kind touches: in the past, and in a dry run on a copy of the tree.

    python tools/unit_cost.py

The past is the median over the commits that added one unit of a kind, merges left out. The dry run writes the files
that `docs/explanation/architecture.md` names into a copy, and fails where the new unit is not live then.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_COPIED = ("compatcheck", "matrix")


class Kind(NamedTuple):
    """A kind of unit: the files that adding one writes, a program that shows it is live, and where units of it lay.

    A file is written as the text of another one of the tree, with some words replaced.
    """

    files: Mapping[str, tuple[str, Mapping[str, str]]]
    live: str
    past: str


_ENTRY = "matrix/nvidia-driver/CC-2026-0001.toml"
_NEW_ENTRY = "matrix/nvidia-driver/CC-2999-0001.toml"
KINDS = {
    "entry": Kind(
        {_NEW_ENTRY: (_ENTRY, {"CC-2026-0001": "CC-2999-0001"})},
        "from compatcheck import matrix; matrix.find_entry(matrix.load(), 'CC-2999-0001')",
        r"matrix/[^/]+/CC-[\d-]+\.toml",
    ),
    "framework": Kind(
        {"matrix/frameworks/dry-run.toml": ("matrix/frameworks/torchtune.toml", {"torchtune": "dry-run"})},
        "from compatcheck.packages.frameworks import frameworks; frameworks()['dry-run']",
        r"matrix/frameworks/[^/]+\.toml",
    ),
    "reader": Kind(
        {
            "compatcheck/project/training/formats/dry_run.py": (
                "compatcheck/project/training/formats/torchtune.py",
                {"torchtune": "dry_run", "(.yaml": "(.toml", '(".yaml", ".yml")': '(".toml",)'},
            ),
            "tests/project/training/test_dry_run.py": (
                "tests/project/training/test_torchtune.py",
                {"torchtune": "dry_run"},
            ),
            "matrix/frameworks/dry-run.toml": ("matrix/frameworks/torchtune.toml", {"torchtune": "dry_run"}),
            "docs/explanation/limits.md": ("docs/explanation/limits.md", {"torchtune,": "torchtune, dry_run,"}),
        },
        "from compatcheck.project import training as t;"
        "from compatcheck.project.training.document import parse_document;"
        "part = '[{}]\\n_component_ = \"{}\"\\n'.format;"
        "text = 'batch_size = 2\\n' + part('model', 'dry_run.models.a') + part('optimizer', 'torch.optim.SGD');"
        "document = parse_document('run.toml', text); reader = t.readers()[t.reader_of(document)];"
        "assert reader.read(document).facts.get('training.framework') == 'dry_run'",
        r"compatcheck/(facts|project)/training/(formats/)?[a-z]\w*\.py",
    ),
    "trait": Kind(
        {
            "compatcheck/matrix/traits/dry_run.py": ("compatcheck/matrix/traits/driver_below_cuda_floor.py", {}),
            "tests/matrix/test_dry_run.py": ("tests/matrix/test_platform_traits.py", {}),
            _NEW_ENTRY: (_ENTRY, {"CC-2026-0001": "CC-2999-0001", "driver-below-cuda-floor": "dry-run"}),
        },
        "import compatcheck;"
        "facts = {'distributions': {'torch': '2.11.0'}, 'cuda': {'runtime': '13.0', 'driver': '550.54.14'}};"
        "report = compatcheck.check(snapshot={'schema_version': 1, **facts});"
        "assert 'CC-2999-0001' in {each.id for each in report.findings}",
        r"compatcheck/(matrix/traits|(facts|project)/model_files/(file_)?traits|facts/trainer_code|project/scripts/rules)"
        r"/[a-z]\w*\.py",
    ),
    "probe": Kind(
        {
            "compatcheck/probes/operators/dry_run.py": ("compatcheck/probes/operators/gradient_clipping.py", {}),
            "compatcheck/probes/README.md": ("compatcheck/probes/README.md", {}),
            "tests/probes/test_dry_run.py": ("tests/probes/test_operators.py", {}),
            "tools/faults/dry_run.py": ("tools/faults/reductions.py", {}),
        },
        "from compatcheck import probes; assert 'dry_run' in probes.names(); probes.describe('dry_run')",
        r"compatcheck/probes/(operators|training|distributed|imports)/[a-z]\w*\.py",
    ),
    "format of a report": Kind(
        {
            "compatcheck/report/formats/dry_run.py": ("compatcheck/report/formats/json.py", {}),
            "tests/report/test_dry_run.py": ("tests/report/test_code_hosts.py", {}),
        },
        "from compatcheck.report import FORMATS; assert 'dry_run' in FORMATS",
        r"compatcheck/report/(formats/)?(\w+/)?[a-z]\w*\.py",
    ),
}


def history(pattern: str) -> list[int]:
    """The number of files in each commit that added exactly one unit."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "-M", "--name-status", "--format=%x00"]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts = []
    for commit in log.split("\0"):
        lines = [line.split("\t") for line in commit.splitlines() if "\t" in line]
        added = [path for status, *_, path in lines if status == "A" and re.fullmatch(pattern, path)]
        if len(added) == 1:
            counts.append(len(lines))
    return counts


def dry_run(kind: Kind) -> str | None:
    """Write the files of one more unit into a copy of the tree; why it is not live there, or None."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in _COPIED:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "data", "records"))
        for place, (model, words) in kind.files.items():
            text = (ROOT / model).read_text(encoding="utf-8")
            for old, new in words.items():
                text = text.replace(old, new)
            (copy / place).parent.mkdir(parents=True, exist_ok=True)
            (copy / place).write_text(text, encoding="utf-8")
        shutil.copytree(ROOT / "compatcheck" / "data", copy / "compatcheck" / "data")
        environ = {"PYTHONPATH": folder, "XDG_CACHE_HOME": str(copy / "cache"), "PATH": ""}
        done = subprocess.run(
            [sys.executable, "-P" if sys.version_info >= (3, 11) else "-B", "-c", kind.live],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def rows() -> Iterator[tuple[str, str, str]]:
    for name, kind in KINDS.items():
        counts = history(kind.past)
        past = f"{statistics.median(counts):g} in {len(counts)} commits" if counts else "none yet"
        why = dry_run(kind)
        yield name, past, str(len(kind.files)) if why is None else f"more than {len(kind.files)}: {why}"


if __name__ == "__main__":
    print(f"{'one more':<20} {'past':<22} today")
    found = list(rows())
    for name, past, today in found:
        print(f"{name:<20} {past:<22} {today}")
    sys.exit(any(not today.isdigit() for _, _, today in found))
