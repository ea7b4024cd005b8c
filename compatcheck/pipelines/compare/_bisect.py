"""The one package and release that changes the result, found by building environments between OLD and NEW."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from packaging.version import Version

from compatcheck import matrix, probes
from compatcheck.advice import resolver
from compatcheck.advice.model import Demands, Line, Solution, Wanted
from compatcheck.errors import CompatcheckError
from compatcheck.packages.known_releases import releases
from compatcheck.pipelines.compare._search import change
from compatcheck.pipelines.compare._sides import PRIMARY, Bench, Probing, Stack, pinned
from compatcheck.results.comparisons import Cause, Difference, Trial

Versions = Mapping[str, str]

_WEIGHTS = {"transformers": 8.0, "trl": 5.0, "peft": 5.0, "torch": 3.0, "accelerate": 3.0}
_PART, _NO_PART = 1.0, 0.1
"""How likely a package is the cause: more so where the case that differs goes through it."""


class Found(NamedTuple):
    """A cause, or why there is none; and what was tried."""

    cause: Cause | None
    unexplained: str
    trials: tuple[Trial, ...]


class Bisection:
    """Trials of one difference: environments with some packages of OLD moved towards NEW."""

    def __init__(
        self,
        old: Stack,
        new: Stack,
        row: Mapping[str, Any],
        difference: Difference,
        request: Mapping[str, object],
        bench: Bench,
        probing: Probing,
        deadline: float | None = None,
    ) -> None:
        self.old, self.new, self.row, self.difference = old, new, row, difference
        self.request = {**request, "only": [difference.case], "spread": False}
        self.bench, self.probing, self.deadline = bench, probing, deadline
        self.trials: list[Trial] = []
        self.answers: dict[frozenset[tuple[str, str]], bool | None] = {}

    def like_new(self, moved: Versions) -> bool | None:
        """Whether OLD with these packages moved computes as NEW does; None where that cannot be tried."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            return None
        started = time.monotonic()
        try:
            pins = self.solved(moved)
            key = frozenset(pins.items())
            if key not in self.answers:
                answer, why = self._tried(pins)
                self.answers[key] = answer
                shown = {name: version for name, version in pins.items() if self._is_move(name, version)}
                self.trials.append(Trial(shown, answer, why, round(time.monotonic() - started, 1)))
            return self.answers[key]
        except CompatcheckError as error:
            self.trials.append(Trial(dict(moved), None, str(error), round(time.monotonic() - started, 1)))
            return None

    def solved(self, moved: Versions) -> dict[str, str]:
        """The pins of OLD with some packages moved, and with them only what has to move as well."""
        held = {name: f"=={_release(version)}" for name, version in moved.items()}
        for name in PRIMARY:
            if name in self.old.pins and name not in held:
                held[name] = f"=={_release(self.old.pins[name])}"
        names = sorted({*held, *(name for name in self._roots() if name in self.old.pins)})
        wanted = Wanted(tuple(Line(name, name, name) for name in names), dict(self.old.pins))
        backend = (self.new if "torch" in moved else self.old).torch_backend
        solution: Solution = resolver.resolve(wanted, Demands(held, backend), self.old.place)
        return pinned(solution)

    def _roots(self) -> tuple[str, ...]:
        return (*PRIMARY, "datasets", "numpy", "tokenizers", "safetensors")

    def _is_move(self, name: str, version: str) -> bool:
        return _release(self.old.pins.get(name, "")) != _release(version)

    def _tried(self, pins: Versions) -> tuple[bool | None, str]:
        moved = (
            " ".join(f"{name}=={version}" for name, version in pins.items() if self._is_move(name, version)) or "OLD"
        )
        stack = Stack(moved, None, pins, self.old.place, self.old.torch_backend)
        recording = self.bench.recording(stack, moved, self.request, self.probing)
        row = next((row for row in recording.rows if row["case"] == self.difference.case), None)
        if row is None or "values" not in row:
            return None, recording.failure or (
                str(row["error"]) if row else "the case does not run in that environment"
            )
        theta = probes.theta_at(self.row, row, self.difference)
        if theta is None:
            return None, "the value that differs does not exist in that environment"
        return theta > probes.FAIL_THETA, ""


def cause(bisection: Bisection, moved: Mapping[str, tuple[str | None, str | None]], known: matrix.Matrix) -> Found:
    """The package and release that changes the result; ``moved`` are the packages with their versions on both sides."""
    packages = {name: (was, becomes) for name, (was, becomes) in moved.items() if becomes is not None}
    order = sorted(packages, key=lambda name: (PRIMARY.index(name) if name in PRIMARY else len(PRIMARY), name))
    if not order:
        return _none(bisection, "no package that takes part has a different version")
    targets = {name: str(packages[name][1]) for name in order}
    took_part = set(bisection.row.get("packages", ())) | {"torch"}
    weights = [_weight(name, took_part) for name in order]

    def ask(count: int) -> bool | None:
        return bisection.like_new({name: targets[name] for name in order[:count]})

    low, high = change(weights, ask)
    suspects = order[low:high]
    package = max(suspects, key=lambda name: weights[order.index(name)])
    base = {name: targets[name] for name in order[:high] if name != package}
    if high == len(order) and not _confirms(bisection, {**base, package: targets[package]}):
        return _none(
            bisection, "the packages of NEW on the Python of OLD compute the same as OLD, or could not be built"
        )
    was = packages[package][0]
    beside = {name: packages[name] for name in suspects if name != package}
    if was is None:
        return Found(Cause(package, "", targets[package], _moves(beside)), "", tuple(bisection.trials))
    between = _between(package, was, targets[package], known)
    steps = [*between, targets[package]]
    base = {name: targets[name] for name in order[:low]}
    first, last = change([1.0] * len(steps), lambda count: bisection.like_new({**base, package: steps[count - 1]}))
    line = [was, *steps]
    forced = _forced(bisection, {**base, package: line[last]}, package)
    found = Cause(package, line[first], line[last], {**_moves(beside), **forced}, tuple(line[first + 1 : last]))
    return Found(found, "", tuple(bisection.trials))


def _none(bisection: Bisection, why: str) -> Found:
    return Found(None, why, tuple(bisection.trials))


def _weight(name: str, took_part: set[str]) -> float:
    return _WEIGHTS.get(name, _PART) * (1.0 if name in took_part else _NO_PART)


def _confirms(bisection: Bisection, moved: Versions) -> bool:
    """Whether all packages moved together give NEW's result, so that the search has an end to it."""
    return bisection.like_new(moved) is True


def _moves(beside: Mapping[str, tuple[str | None, str | None]]) -> dict[str, tuple[str | None, str]]:
    return {name: (was, str(becomes)) for name, (was, becomes) in beside.items()}


def _forced(bisection: Bisection, moved: Versions, package: str) -> dict[str, tuple[str | None, str]]:
    """The packages whose versions the release that changes the result does not leave as they were."""
    try:
        pins = bisection.solved(moved)
    except CompatcheckError:
        return {}
    old = bisection.old.pins
    return {
        name: (old.get(name), version)
        for name, version in pins.items()
        if name != package and name not in moved and name in old and _release(old[name]) != _release(version)
    }


def _between(package: str, was: str, becomes: str, known: matrix.Matrix) -> list[str]:
    """The releases between two versions, from the one towards the other."""
    try:
        low, high = sorted((Version(_release(was)), Version(_release(becomes))))
    except ValueError:
        return []
    found: Sequence[Version] = [each for each in releases(package, known.table) if low < each < high]
    ordered = sorted(found, reverse=Version(_release(was)) > Version(_release(becomes)))
    return [str(each) for each in ordered]


def _release(version: str) -> str:
    return version.partition("+")[0]
