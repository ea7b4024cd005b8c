"""How often `compatcheck diagnose` explains labelled reports rightly, by language, style and band.

    python tools/score_reports.py                     the test half of tools/labelled/reports
    python tools/score_reports.py REPORTS.jsonl ...   all reports of these files

An explanation is *right* where it speaks of a package of the settled cause or fix and one of its remedies agrees with
the fix. *First* and *three* count the reports whose first explanation, or one of the first three, is right; *silent*
those with no explanation to show. A band is how an explanation that comes first is called: ``likely`` is to be right
nine times in ten.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from compatcheck import matrix
from compatcheck.explanation.features import corpus
from compatcheck.explanation.ranking import band, ranked, weights_of
from compatcheck.pipelines.diagnose import LEAST
from tools.labelled.whole_texts import FOLDER, Weighed, WholeText, weighed, whole_texts

_SHOWN = 3


class Score(NamedTuple):
    """What became of one report: the band and rightness of each explanation shown."""

    text: WholeText
    shown: tuple[tuple[str, float, str, bool], ...]
    possible: bool

    @property
    def first(self) -> bool:
        return bool(self.shown) and self.shown[0][3]

    @property
    def among(self) -> bool:
        return any(right for *_, right in self.shown)


def score(report: Weighed, known: matrix.Matrix) -> Score:
    right = {each.row.id: is_right for each, is_right in zip(report.weighings, report.right)}
    found = ranked(report.weighings, weights_of(known))[:_SHOWN]
    shown = tuple(
        (each.weighing.row.id, each.probability, band(each.probability), right[each.weighing.row.id])
        for each in found
        if each.probability >= LEAST
    )
    return Score(report.text, shown, any(report.right))


def table(scores: Sequence[Score], by: Callable[[Score], str]) -> list[str]:
    """A row of figures for each group, and one for all."""
    groups: dict[str, list[Score]] = defaultdict(list)
    for each in scores:
        groups[by(each)].append(each)
    return [_row(name, group) for name, group in sorted(groups.items())]


def _row(name: str, group: Sequence[Score]) -> str:
    asked = [each for each in group if each.text.has_cause]
    if not asked:
        return f"{name:<12} {len(group):>4} without a cause: {_called(group, 'likely')} called likely"
    total = len(asked)
    first, among = sum(each.first for each in asked), sum(each.among for each in asked)
    silent = sum(not each.shown for each in asked)
    return (
        f"{name:<12} {total:>4}  first {first:>3} ({first / total:4.0%})  three {among:>3} ({among / total:4.0%})"
        f"  silent {silent:>3} ({silent / total:4.0%})  in the matrix {sum(each.possible for each in asked):>3}"
    )


def _called(group: Sequence[Score], name: str) -> int:
    return sum(bool(each.shown) and each.shown[0][2] == name for each in group)


def bands(scores: Sequence[Score]) -> list[str]:
    rows = []
    for name in ("likely", "plausible", "long shot"):
        called = [each for each in scores if each.shown and each.shown[0][2] == name]
        right = sum(each.first for each in called)
        rows.append(f"{name:<12} {len(called):>4}  right {right:>3} ({right / max(len(called), 1):4.0%})")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--each", action="store_true", help="also print what each report gets")
    arguments = parser.parse_args()
    known = matrix.load()
    rows = corpus(known)
    texts = whole_texts(arguments.files or sorted(FOLDER.glob("*.jsonl")))
    if not arguments.files:
        texts = [text for text in texts if text.split == "test"]
    scores = [score(weighed(text, known, rows), known) for text in texts]
    print("\n".join(table(scores, lambda each: "all" if each.text.has_cause else "no cause")))
    for by in (lambda each: each.text.language, lambda each: each.text.style):
        print("\n" + "\n".join(table([each for each in scores if each.text.has_cause], by)))
    print("\n" + "\n".join(bands(scores)))
    if arguments.each:
        for each in scores:
            print(
                f"\n{each.text.id}  {'right' if each.first else 'among three' if each.among else '-'}"
                f"{'' if each.possible else '  not in the matrix'}"
            )
            for entry, chance, name, right in each.shown:
                print(f"   {'*' if right else ' '} {entry} {chance:.2f} {name}")


if __name__ == "__main__":
    main()
