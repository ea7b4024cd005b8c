"""What nobody could tell about an environment, as every report says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compatcheck.environment import Environment, Unknown
from compatcheck.environment.paths import is_within
from compatcheck.language import gettext as _
from compatcheck.results.areas import AreaName

_ASKED_FOR = ("gpus", "cuda.driver", "training", "model")
_AREAS: Mapping[str, AreaName] = {
    "distributions": "packages",
    "gpus": "gpu",
    "cuda.driver": "gpu",
    "cuda.driver_api": "gpu",
    "training": "training",
    "unresolved_imports": "imports",
}


def area_of(path: str) -> AreaName | None:
    """The area that a fact stands for: why it is unknown is why the area was not judged."""
    return "model" if is_within(path, "model") else _AREAS.get(path)


def by_reason(environment: Environment) -> dict[str, list[str]]:
    """Why something that was looked for is unknown, and every fact that this reason covers."""
    paths: dict[str, list[str]] = {}
    for path, reason in environment.reasons.items():
        paths.setdefault(_(reason), []).append(path)
    return paths


def without_reason(environment: Environment) -> list[str]:
    """What most entries ask for and nothing says."""
    unknown = (path for path in _ASKED_FOR if isinstance(environment.get(path), Unknown))
    return [path for path in unknown if path not in environment.reasons]


def problems(environment: Environment) -> Iterator[tuple[str, str]]:
    """Files of packages and of the model that could not be read as they should, each with what is wrong."""
    model = environment.section("model")
    for problem in (*(environment.facts.get("distribution_problems") or ()), *(model.get("file_problems") or ())):
        if isinstance(problem, Mapping):
            yield str(problem["path"]), str(problem["problem"])
