"""The command: which stacks are left, building and probing them one by one, and the page."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from compatcheck import probes
from compatcheck.installed.target import find_target
from tools import sweep
from tools.sweep import _build, _kinds, _page, _records, _stacks
from tools.sweep._stacks import TRIALS, Stack


def main() -> int:
    options = _options()
    if options.page:
        _page.write()
        return 0
    folder = Path(options.folder or tempfile.mkdtemp(prefix="sweep-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if options.kinds:
        version, *kinds = options.kinds
        records = _kinds.scan(version, kinds, options.columns, options.again, options.limit, folder)
        failed = [_tell(record) for record in records]
        return int(any(failed))
    planned = _stacks.newest(_build.latest) if options.newest else _stacks.plan()
    stacks = [stack for stack in planned if all(word in stack.name for word in options.only.split(","))]
    ends = time.monotonic() + options.limit
    failed = False
    for stack in stacks:
        wanted = [column for column in stack.columns if not options.columns or column in options.columns]
        columns = _records.columns_left(stack.name, wanted, options.again)
        if columns and time.monotonic() < ends:
            record = run(stack, columns, folder)
            _records.keep(record)
            failed |= _tell(record)
    return int(failed)


def run(stack: Stack, columns: Sequence[str], folder: Path) -> _records.Record:
    """Build the stack, probe it in processes of its own, and delete it."""
    record: _records.Record = {"stack": stack.name, "date": date.today().isoformat(), "hardware": _records.hardware()}
    try:
        python = _build.build(stack, folder / "stack")
        target = find_target(str(python), os.environ)
        trials = [TRIALS.get(column, (column, {})) for column in columns]
        asked = [(name, {**request, "device": "cpu"}) for name, request in trials]
        found = probes.run_all(asked, target)
        record["packages"] = _build.versions(python)
        record["probes"] = {column: _records.row(column, result) for column, result in zip(columns, found)}
    except _build.Unbuildable as error:
        record |= {"packages": {"torch": stack.torch}, "unbuildable": str(error), "probes": {}}
    finally:
        shutil.rmtree(folder / "stack", ignore_errors=True)
    return record


def _tell(record: _records.Record) -> bool:
    """Print a record; whether a probe failed in it."""
    for column, row in record["probes"].items():
        print(f"{record['stack']}: {column}: {row['outcome']} ({row['seconds']} s): {row.get('why', '')}", flush=True)
    if "unbuildable" in record:
        print(f"{record['stack']}: cannot be built: {record['unbuildable']}", flush=True)
    return any(row["outcome"] in _page.FAILED for row in record["probes"].values())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.sweep", description=sweep.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--newest", action="store_true", help="only the last release of each package")
    parser.add_argument(
        "--kinds", nargs="+", metavar="WORD", help="a release of transformers, then model kinds; default: all"
    )
    parser.add_argument("--only", default="", help="stacks whose name holds all of these words, parted by commas")
    parser.add_argument("--columns", nargs="+", default=[], help="only these columns")
    parser.add_argument("--again", action="store_true", help="also what has been run with the present probes")
    parser.add_argument("--folder", help="build stacks in this folder; default: a temporary one")
    parser.add_argument("--limit", type=float, default=8 * 3600, help="start no stack after this many seconds")
    parser.add_argument("--page", action="store_true", help="write docs/reference/sweep.md and run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
