"""How often an error of names, parameters or methods gets its packages and its pin from `compatcheck diagnose`.

    python tools/score_interface_errors.py                   the labelled reports with such an error line
    python tools/score_interface_errors.py CASES.jsonl ...   these, and the reports of further files
    python tools/score_interface_errors.py --each            also what each report of the fit half gets

*Packages* counts the reports whose first explanation names a package of the settled cause, *all* those where it names
every one of them, and *pin* those where one of its pins or settings agrees with the fix; *right* is packages and pin.
*Tables* counts those where the answer from the tables of releases would be right, whichever explanation comes first.
A report that stands in several files counts once. Reports of the test half are counted and never shown.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from compatcheck import matrix
from compatcheck.errors import NothingInspectedError
from compatcheck.packages.names import normalised
from compatcheck.pipelines.diagnose import Given, diagnose
from compatcheck.results.diagnoses import Explanation
from tools.labelled.agreement import agrees_with
from tools.labelled.whole_texts import FOLDER

TABLES = "CC-2026-3124"
"""The entry that answers from the tables of releases."""
KINDS = {
    "unexpected keyword": r"got an unexpected keyword argument",
    "missing argument": r"missing \d+ required (?:positional|keyword-only) arguments?",
    "positional arguments": r"takes (?:from \d+ to )?\d+ positional arguments? but \d+ (?:was|were) given",
    "no attribute": r"has no attribute",
    "cannot import": r"cannot import name",
    "no module": r"No module named",
    "wrong kind": r"object is not (?:subscriptable|callable|iterable)",
}


class Report(NamedTuple):
    """A report with such an error line; ``split`` is empty where no half was chosen."""

    id: str
    kind: str
    text: str
    cause: tuple[str, ...]
    fix: Mapping[str, Any]
    split: str


class Score(NamedTuple):
    """What the first explanation of a report is worth; without one, ``entry`` is empty."""

    report: Report
    entry: str = ""
    band: str = ""
    named: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    packages: bool = False
    all: bool = False
    pin: bool = False
    tables: bool = False

    @property
    def right(self) -> bool:
        return self.packages and self.pin


def kind_of(text: str) -> str | None:
    """The kind of the error line that comes last, which is the one that ended the run."""
    found = {name: [each.start() for each in re.finditer(expression, text)] for name, expression in KINDS.items()}
    return max((name for name, at in found.items() if at), key=lambda name: found[name][-1], default=None)


def reports(files: Iterable[Path]) -> Iterator[Report]:
    """The reports of these files with such an error line and a settled cause, each id once."""
    seen: set[str] = set()
    halves: dict[str, str] = {}
    for path in files:
        for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            half = halves.setdefault(row["id"], row.get("split", ""))
            text = _text(row)
            kind = kind_of(text)
            if kind and row["cause"]["packages"] and row["id"] not in seen:
                seen.add(row["id"])
                cause = tuple(normalised(name) for name in row["cause"]["packages"])
                yield Report(row["id"], kind, text, cause, row["fix"], half)


def _text(row: Mapping[str, Any]) -> str:
    """A report as it was written, or its environment and its error."""
    if "text" in row:
        return str(row["text"])
    return "\n\n".join(filter(None, (row.get("env_block"), (row.get("symptom") or {}).get("message"))))


def score(report: Report, known: matrix.Matrix) -> Score:
    """What `compatcheck diagnose report.md` gives first."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.md"
        path.write_text(report.text, encoding="utf-8")
        try:
            found = diagnose(Given((str(path),)), known).explanations
        except NothingInspectedError:
            found = ()
    own = next((_judged(report, each) for each in found if each.finding.id == TABLES and each.finding.seen), None)
    return _judged(report, found[0])._replace(tables=own is not None and own.right) if found else Score(report)


def _judged(report: Report, first: Explanation) -> Score:
    finding = first.finding
    pins = {normalised(name): pin for remedy in finding.remedies for name, pin in remedy.pins.items()}
    named = {*map(normalised, finding.packages), *pins}
    return Score(
        report,
        finding.id,
        first.band,
        tuple(sorted(named)),
        tuple(f"{name}{pin}" for name, pin in pins.items()),
        bool(named & set(report.cause)),
        named >= set(report.cause),
        any(agrees_with(each, report.fix) for each in finding.remedies),
    )


def _print(scores: Iterable[Score]) -> None:
    held = list(scores)
    groups = {"all reports": held}
    groups |= {name: [each for each in held if each.report.kind == name] for name in KINDS}
    groups |= {f"{half} half": [each for each in held if each.report.split == half] for half in ("fit", "test")}
    for name, group in groups.items():
        counts = {
            word: sum(getattr(each, word) for each in group) for word in ("packages", "all", "pin", "right", "tables")
        }
        words = "  ".join(f"{word} {count:>2} ({count / max(len(group), 1):4.0%})" for word, count in counts.items())
        print(f"{name:<21} {len(group):>3}  {words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="further files of reports")
    parser.add_argument("--each", action="store_true", help="also print what each report gets, less the test half")
    arguments = parser.parse_args()
    known = matrix.load()
    scores = [score(each, known) for each in reports([*sorted(FOLDER.glob("*.jsonl")), *arguments.files])]
    _print(scores)
    for each in scores if arguments.each else ():
        if each.report.split != "test":
            word = "right" if each.right else "packages" if each.packages else "pin" if each.pin else "-"
            print(f"\n{each.report.id}  [{each.report.kind}]  {word}")
            print(f"    label  {', '.join(each.report.cause)}  {json.dumps(each.report.fix, ensure_ascii=False)}")
            print(f"    tables {'right' if each.tables else '-'}")
            print(f"    first  {each.entry or 'none'} {each.band}  {', '.join(each.named)}  {', '.join(each.pins)}")


if __name__ == "__main__":
    main()
