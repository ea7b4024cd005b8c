"""Fit the weights by which `compatcheck diagnose` ranks explanations: ``matrix/tables/ranking.toml``.

    python tools/fit_ranking.py [REPORTS.jsonl ...]        cross-validate by repository, then write the table
    python tools/fit_ranking.py --dry-run [...]            cross-validate only
    python tools/fit_ranking.py --only FEATURE [...]       fit one weight, and hold the others as the table has them

Without files: the reports of `tools/labelled/reports` whose split is ``fit``. Error lines and examples of some
entries, and error lines of some parameters by the tables of releases, are fitted with them, and left out of the
figures. The model is a softmax over all entries
and one more outcome, that none explains the report; the loss is the negative logarithm of the probability of all right
entries together, or of none where no entry is right, with a ridge on the weights.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from compatcheck import matrix
from compatcheck.explanation.features import corpus
from compatcheck.explanation.ranking import NONE, weights_of
from tools.labelled.whole_texts import FOLDER, Weighed, own_answers, own_examples, own_lines, weighed, whole_texts

TABLE = Path(__file__).parents[1] / "matrix" / "tables" / "ranking.toml"
_FOLDS = 5
_RIDGE = 0.003
_STEPS = 300
_BOUNDS = (0.2, 0.5, 0.6, 0.65, 0.7, 0.8)
_LINES, _EXAMPLES, _ANSWERS = 32, 36, 300
"""One of so many error lines and examples of entries, and of parameters that came or went between releases, is fitted
as well: logs and folders that no person describes."""

_AGAINST = ("-fails", "-against", "-elsewhere", "-of-others", "-away")
_EITHER = (NONE, "often-met", "confirmed")


class Problem:
    """Reports as one tensor of features, and which outcomes are right; the last outcome is that none explains it."""

    def __init__(self, reports: Sequence[Weighed], names: Sequence[str]) -> None:
        place = {name: number for number, name in enumerate(names)}
        most = max(len(report.weighings) for report in reports)
        self.features = torch.zeros(len(reports), most + 1, len(names))
        self.right = torch.zeros(len(reports), most + 1, dtype=torch.bool)
        self.absent = torch.ones(len(reports), most + 1, dtype=torch.bool)
        for at, report in enumerate(reports):
            for entry, weighing in enumerate(report.weighings):
                for name, value in weighing.features.items():
                    if name in place:
                        self.features[at, entry, place[name]] = value
            self.right[at, : len(report.right)] = torch.tensor(report.right)
            self.absent[at, : len(report.right)] = self.absent[at, -1] = False
            self.right[at, -1] = not any(report.right)
            self.features[at, -1, place[NONE]] = 1.0

    def loss(self, weights: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        logarithms = torch.log_softmax(self._scores(weights)[chosen], dim=1)
        return -torch.logsumexp(logarithms.masked_fill(~self.right[chosen], -math.inf), dim=1).mean()

    def fit(self, chosen: torch.Tensor, ridge: float) -> torch.Tensor:
        weights = torch.zeros(self.features.shape[2], requires_grad=True)
        optimizer = torch.optim.LBFGS([weights], max_iter=_STEPS, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = self.loss(weights, chosen) + ridge * weights.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        return weights.detach()

    def fit_one(self, held: torch.Tensor, place: int, ridge: float) -> float:
        """The weight at one place, with the others held."""
        own = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.LBFGS([own], max_iter=_STEPS, line_search_fn="strong_wolfe")
        everything = torch.arange(len(self.features))

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = self.loss(held.index_put((torch.tensor([place]),), own), everything) + ridge * own.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        return own.item()

    def probabilities(self, weights: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self._scores(weights), dim=1)

    def _scores(self, weights: torch.Tensor) -> torch.Tensor:
        return (self.features @ weights).masked_fill(self.absent, -math.inf)


def meaningful(reports: Sequence[Weighed], found: Iterable[str], ridge: float) -> tuple[list[str], Problem]:
    """The features whose weight says what their name does: what speaks for an entry raises it, the rest lowers it."""
    names = [*sorted(found), NONE]
    while True:
        problem = Problem(reports, names)
        weights = dict(zip(names, problem.fit(torch.arange(len(reports)), ridge).tolist()))
        contrary = [name for name in names if weights[name] * expected_sign(name) < 0]
        if not contrary:
            return names, problem
        names.remove(min(contrary, key=lambda name: -abs(weights[name])))


def expected_sign(feature: str) -> int:
    """1 where a feature speaks for an entry, -1 where it speaks against it, 0 where it may do either."""
    if feature in _EITHER:
        return 0
    return -1 if feature.endswith(_AGAINST) or feature.startswith(("too-", "missing", "un")) else 1


def folds(reports: Sequence[Weighed]) -> list[int]:
    """A fold for each report, all of one repository in the same."""
    repositories = sorted({report.text.repository for report in reports})
    place = {name: number % _FOLDS for number, name in enumerate(repositories)}
    return [place[report.text.repository] for report in reports]


def cross_validated(problem: Problem, fold: Sequence[int], ridge: float) -> torch.Tensor:
    """The probabilities of each report by weights that were fitted without its repository."""
    of = torch.tensor(fold)
    found = torch.zeros(problem.right.shape)
    for number in range(_FOLDS):
        weights = problem.fit(torch.nonzero(of != number).flatten(), ridge)
        found[of == number] = problem.probabilities(weights)[of == number]
    return found


def figures(chances: torch.Tensor, problem: Problem) -> dict[str, Any]:
    """How often the first and one of the first three are right, and how right the first is above some probabilities."""
    count = len(chances)
    answerable = ~problem.right[:count, -1]
    order = chances[:, :-1].argsort(dim=1, descending=True, stable=True)
    right = torch.gather(problem.right[:count, :-1], 1, order)
    top = torch.gather(chances[:, :-1], 1, order)[:, 0]
    return {
        "answerable": int(answerable.sum()),
        "first": int(right[answerable, 0].sum()),
        "three": int(right[answerable, :3].any(1).sum()),
        "above": {bound: (int(right[top >= bound, 0].sum()), int((top >= bound).sum())) for bound in _BOUNDS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="only cross-validate")
    parser.add_argument("--only", metavar="FEATURE", help="fit this weight alone")
    parser.add_argument("--ridge", type=float, default=_RIDGE)
    arguments = parser.parse_args()
    known = matrix.load()
    rows = corpus(known)
    texts = whole_texts(arguments.files or sorted(FOLDER.glob("*.jsonl")))
    texts = [text for text in texts if text.split != "test" or arguments.files]
    reports = [weighed(text, known, rows) for text in texts]
    reports += [*own_lines(known, rows, _LINES), *own_examples(known, rows, _EXAMPLES)]
    reports += own_answers(known, rows, _ANSWERS)
    if arguments.only:
        weights_now = {**weights_of(known), arguments.only: 0.0}
        names = sorted(weights_now)
        held, place = torch.tensor([weights_now[name] for name in names]), names.index(arguments.only)
        weights_now[arguments.only] = round(Problem(reports, names).fit_one(held, place, arguments.ridge), 3)
        print(f"{arguments.only:24}{weights_now[arguments.only]:8.3f}")
        if not arguments.dry_run:
            write({**{name: weights_now[name] for name in names if name != NONE}, NONE: weights_now[NONE]})
        return
    found = {name for report in reports for each in report.weighings for name in each.features}
    names, problem = meaningful(reports, found, arguments.ridge)
    chances = cross_validated(problem, folds(reports), arguments.ridge)
    print(f"{len(texts)} reports", figures(chances[: len(texts)], problem))
    weights = problem.fit(torch.arange(len(reports)), arguments.ridge)
    fitted = {name: round(value, 3) for name, value in zip(names, weights.tolist())}
    for name, value in fitted.items():
        print(f"{name:24}{value:8.3f}")
    if not arguments.dry_run:
        write(fitted)


def write(weights: Mapping[str, float]) -> None:
    lines = "".join(f"{name} = {value}\n" for name, value in weights.items())
    TABLE.write_text(
        "# How much each kind of evidence counts for an explanation; tools/fit_ranking.py fits it.\n"
        f"reviewed = {date.today().isoformat()}\n\n[weights]\n{lines}",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
