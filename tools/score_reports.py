"""How often `compatcheck diagnose` explains labelled reports rightly, by language, style and band.

    python tools/score_reports.py                     the test half of tools/labelled/reports
    python tools/score_reports.py REPORTS.jsonl ...   all reports of these files
    python tools/score_reports.py --page              the test half, into docs/explanation/accuracy.md and its plot

An explanation is *right* where it speaks of a package of the settled cause or fix and one of its remedies agrees with
the fix. *First* and *three* count the reports whose first explanation, or one of the first three, is right; *silent*
those with no explanation to show. A band is how an explanation that comes first is called: ``likely`` is to be right
nine times in ten. *Known* counts the reports that any entry of the matrix is right about.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

sys.path.insert(0, str(Path(__file__).parents[1]))

from compatcheck import matrix
from compatcheck.explanation.features import corpus
from compatcheck.explanation.ranking import band_of, ranked, weights_of
from compatcheck.pipelines.diagnose import LEAST
from compatcheck.results.diagnoses import Band
from tools.labelled.whole_texts import FOLDER, Weighed, WholeText, weighed, whole_texts

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "accuracy.md"
PLOT = ROOT / "docs" / "assets" / "calibration.svg"
_BEGIN, _END = "<!-- figures -->", "<!-- end -->"
_SHOWN = 3
_BINS = 5


class Shown(NamedTuple):
    """One explanation that a report gets."""

    entry: str
    probability: float
    band: str
    right: bool


class Score(NamedTuple):
    """What became of one report; ``known`` tells that an entry of the matrix is right about it."""

    text: WholeText
    shown: tuple[Shown, ...]
    known: bool

    @property
    def first(self) -> bool:
        return bool(self.shown) and self.shown[0].right

    @property
    def among(self) -> bool:
        return any(each.right for each in self.shown)


class Figures(NamedTuple):
    """The counts of a group of reports that have a cause."""

    total: int
    first: int
    among: int
    silent: int
    known: int


def scores(texts: Iterable[WholeText], known: matrix.Matrix) -> list[Score]:
    """What becomes of each report."""
    rows = corpus(known)
    return [_score(weighed(text, known, rows), known) for text in texts]


def _score(report: Weighed, known: matrix.Matrix) -> Score:
    right = {each.row.id: is_right for each, is_right in zip(report.weighings, report.right)}
    found = ranked(report.weighings, weights_of(known))[:_SHOWN]
    shown = (
        Shown(each.weighing.row.id, each.probability, band_of(each), right[each.weighing.row.id])
        for each in found
        if each.probability >= LEAST
    )
    return Score(report.text, tuple(shown), any(report.right))


def figures(group: Iterable[Score]) -> Figures:
    asked = [each for each in group if each.text.has_cause]
    return Figures(
        len(asked),
        sum(each.first for each in asked),
        sum(each.among for each in asked),
        sum(not each.shown for each in asked),
        sum(each.known for each in asked),
    )


def groups(found: Sequence[Score], by: Callable[[WholeText], str]) -> Iterator[tuple[str, Figures]]:
    """The figures of each group, in the order of their names."""
    held: dict[str, list[Score]] = defaultdict(list)
    for each in found:
        held[by(each.text)].append(each)
    for name, group in sorted(held.items()):
        if (counted := figures(group)).total:
            yield name, counted


def of_bands(found: Sequence[Score]) -> Iterator[tuple[str, int, int]]:
    """For each band how many reports have a first explanation of it, and how many of those are right."""
    for name in get_args(Band):
        called = [each for each in found if each.shown and each.shown[0].band == name]
        yield name, len(called), sum(each.first for each in called)


def _rows(found: Sequence[Score]) -> Iterator[tuple[str, Figures]]:
    yield "all", figures(found)
    yield from groups(found, lambda text: {"en": "English", "zh": "Chinese"}.get(text.language, "-"))
    yield from groups(found, lambda text: text.origin)
    yield from groups(found, lambda text: text.style)


def _print(found: Sequence[Score]) -> None:
    for name, each in _rows(found):
        total = max(each.total, 1)
        print(
            f"{name:<12} {each.total:>4}  first {each.first:>3} ({each.first / total:4.0%})"
            f"  three {each.among:>3} ({each.among / total:4.0%})"
            f"  silent {each.silent:>3} ({each.silent / total:4.0%})  known {each.known:>3}"
        )
    for name, called, right in of_bands(found):
        print(f"{name:<12} {called:>4}  right {right:>3} ({right / max(called, 1):4.0%})")


def markdown(found: Sequence[Score]) -> str:
    """The figures as tables of the page."""
    lines = [
        "| reports | number | right first | right among three | silent | known to the matrix |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, each in _rows(found):
        total = max(each.total, 1)
        cells = (f"{each.first / total:.0%}", f"{each.among / total:.0%}", f"{each.silent / total:.0%}")
        lines.append(f"| {name} | {each.total} | {' | '.join(cells)} | {each.known / total:.0%} |")
    lines += ["", "| the first explanation is called | reports | right |", "|---|--:|--:|"]
    lines += [f"| {name} | {called} | {right / max(called, 1):.0%} |" for name, called, right in of_bands(found)]
    return "\n".join(lines)


def calibration(found: Sequence[Score]) -> list[tuple[float, float, int]]:
    """Of the first explanations, by bins of probability: its mean, the share that is right, and how many they are."""
    bins: list[list[Shown]] = [[] for _ in range(_BINS)]
    for each in found:
        if each.shown:
            bins[min(int(each.shown[0].probability * _BINS), _BINS - 1)].append(each.shown[0])
    return [
        (sum(each.probability for each in held) / len(held), sum(each.right for each in held) / len(held), len(held))
        for held in bins
        if held
    ]


def plot(points: Sequence[tuple[float, float, int]]) -> str:
    """The calibration as SVG: a dot on the diagonal is as often right as it claims, and its area is how many it is."""
    size, margin = 320, 44

    def x(share: float) -> float:
        return round(margin + share * size, 1)

    def y(share: float) -> float:
        return round(margin / 2 + (1 - share) * size, 1)

    ticks = "".join(
        f'<text x="{x(at)}" y="{y(0) + 16}" text-anchor="middle">{at:.0%}</text>'
        f'<text x="{x(0) - 6}" y="{y(at) + 4}" text-anchor="end">{at:.0%}</text>'
        for at in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    dots = "".join(
        f'<circle cx="{x(said)}" cy="{y(right)}" r="{round(3 + count**0.5, 1)}">'
        f"<title>{count} reports: said {said:.0%}, right {right:.0%}</title></circle>"
        for said, right, count in points
    )
    width, height = size + 2 * margin, size + 2 * margin
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="Calibration: probability of the first explanation against how often it is right">'
        "<style>text{font:12px sans-serif;fill:#444}circle{fill:#2a6fb0;fill-opacity:.75}</style>"
        f'<rect x="{x(0)}" y="{y(1)}" width="{size}" height="{size}" fill="none" stroke="#bbb"/>'
        f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}" stroke="#bbb" stroke-dasharray="4 4"/>'
        f"{ticks}{dots}"
        f'<text x="{x(0.5)}" y="{y(0) + 36}" text-anchor="middle">probability of the first explanation</text>'
        f'<text x="12" y="{y(0.5)}" text-anchor="middle" transform="rotate(-90 12 {y(0.5)})">share that is right</text>'
        "</svg>\n"
    )


def write_page(found: Sequence[Score]) -> None:
    """Put the figures between the marks of the page, and draw the plot."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    PAGE.write_text(f"{before}{_BEGIN}\n\n{markdown(found)}\n\n{_END}{after}", encoding="utf-8")
    PLOT.write_text(plot(calibration(found)), encoding="utf-8")


def held_out() -> list[WholeText]:
    """The labelled reports that no weight was fitted on."""
    return [text for text in whole_texts(sorted(FOLDER.glob("*.jsonl"))) if text.split == "test"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--each", action="store_true", help="also print what each report gets")
    parser.add_argument("--page", action="store_true", help="write the figures into the documentation")
    arguments = parser.parse_args()
    known = matrix.load()
    found = scores(whole_texts(arguments.files) if arguments.files else held_out(), known)
    _print(found)
    if arguments.page:
        write_page(found)
    for each in found if arguments.each else ():
        word = "right" if each.first else "among three" if each.among else "-" if each.known else "not in the matrix"
        print(f"\n{each.text.id}  {word}")
        for shown in each.shown:
            print(f"   {'*' if shown.right else ' '} {shown.entry} {shown.probability:.2f} {shown.band}")


if __name__ == "__main__":
    main()
