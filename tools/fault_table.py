"""Plant every documented fault over several seeds and print what the probes made of it.

Run: python tools/fault_table.py [--seeds 3] [--only WORDS] [--keep FILE] [--write]
The table goes to standard output; --write puts it into compatcheck/probes/README.md, where faults that were not tried,
or whose packages are not installed, keep the line they have. What stands in the file given
with --keep is not tried again, so that a long run can be cut and taken up.
Leaves with status 1 where a fault came out otherwise than the suite states.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from tools.faults import all_faults  # noqa: E402
from tools.faults._plant import Fault, Seen, try_fault, worst  # noqa: E402
from tools.probe_notes import README, part, replace_part  # noqa: E402

HEADER = "| planted fault | in | probe | outcome | theta and rho in float32 | in 16 bits |\n|---|---|---|---|---|---|"


class Line(NamedTuple):
    """A fault and what every seed gave."""

    fault: Fault
    seen: tuple[Seen, ...]

    @property
    def outcome(self) -> str:
        return worst(self.seen)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="faults whose name or probe holds these words")
    parser.add_argument("--keep", help="a file of what was tried, read first and added to")
    parser.add_argument("--write", action="store_true", help="put the table into the README of the probes")
    options = parser.parse_args()
    chosen = [fault for fault in all_faults() if options.only in fault.name or options.only in fault.probe]
    lines = []
    for fault in chosen:
        known = kept(options.keep)
        seen = known.get(key(fault)) or tried(fault, options.seeds)
        lines.append(Line(fault, seen))
        if options.keep and key(fault) not in known:
            with open(options.keep, "a", encoding="utf-8") as stream:
                stream.write(json.dumps([key(fault), [each._asdict() for each in seen]]) + "\n")
    print("\n" + table([row(line) for line in lines]))
    if options.write:
        replace_part(README, "faults", table(merged(lines)))
    wrong = [line for line in lines if line.outcome not in (line.fault.expect, "skipped")]
    for line in wrong:
        print(f"not as stated: {line.fault.name} is {line.outcome}, not {line.fault.expect}", file=sys.stderr)
    return int(bool(wrong))


def key(fault: Fault) -> str:
    return f"{fault.probe}: {fault.name} {fault.dtype}"


def kept(path: str | None) -> dict[str, tuple[Seen, ...]]:
    """What an earlier run wrote down, by fault."""
    if path is None or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        return {name: tuple(Seen(**each) for each in seen) for name, seen in map(json.loads, stream)}


def tried(fault: Fault, seeds: int) -> tuple[Seen, ...]:
    missing = [name for name in fault.needs if importlib.util.find_spec(name) is None]
    if missing:
        return (Seen("skipped", f"{missing[0]} is not installed"),)
    started = time.monotonic()
    chosen = range(1 if fault.start_up[0] else seeds)  # the runner repeats a failure with another seed
    seen = tuple(try_fault(fault, seed) for seed in chosen)
    told = f"{worst(seen):8} {fault.probe}: {fault.name} ({time.monotonic() - started:.1f} s): {seen[0].why}"
    print(told, file=sys.stderr, flush=True)
    return seen


def row(line: Line) -> str:
    """Markdown; theta and rho span the seeds."""
    reason = f": {line.fault.below}" if line.fault.below else ""
    return f"{head(line.fault)} {line.outcome}{reason} | {figures(line, 'float32')} | {figures(line, 'bfloat16')} |"


def head(fault: Fault) -> str:
    """The cells that tell which fault a row is about."""
    return f"| {fault.name} | {fault.dtype} | `{fault.probe}` |"


def merged(lines: Sequence[Line]) -> list[str]:
    """The rows of what was tried, and the present ones of all other faults, in the order of the suite."""
    present = part(README, "faults").splitlines()
    tried_now = {key(line.fault): line for line in lines}
    rows = []
    for fault in all_faults():
        line, old = tried_now.get(key(fault)), [each for each in present if each.startswith(head(fault))]
        absent = line is None or (line.outcome == "skipped" and fault.expect != "skipped")
        rows += old if absent and old else [row(line)] if line is not None else []
    return rows


def table(rows: Sequence[str]) -> str:
    outcomes = [each.split(" | ")[3].partition(":")[0] for each in rows]
    counts = {word: outcomes.count(word) for word in ("caught", "watched", "missed", "skipped")}
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return "\n".join([HEADER, *rows, "", f"{len(rows)} faults: {told}."])


def figures(line: Line, dtype: str) -> str:
    """theta and rho of rows of this dtype, where the fault touches it; rows that state none are float32."""
    if line.fault.dtype not in ("", dtype):
        return ""
    names = (dtype, "") if dtype == "float32" else (dtype,)
    found = [seen.errors[name] for seen in line.seen for name in names if name in seen.errors]
    if not found:
        return ""
    thetas, rhos = zip(*found)
    return f"{span(thetas)}, {span(rhos)}"


def span(values: Sequence[float]) -> str:
    """The least and the greatest value, to two figures; empty where there is none."""
    known = [value for value in values if value == value]
    if not known:
        return ""
    least, most = (f"{value:.2g}" for value in (min(known), max(known)))
    return least if least == most else f"{least}–{most}"


if __name__ == "__main__":
    sys.exit(main())
