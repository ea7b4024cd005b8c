"""What nobody could tell about an environment, as every report says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compatcheck.environment import Environment, Unknown

_ASKED_FOR = ("gpus", "cuda.driver", "training", "model")


def unstated(environment: Environment) -> list[str]:
    """What most entries ask for and nothing says."""
    return [path for path in _ASKED_FOR if isinstance(environment.get(path), Unknown)]


def by_reason(environment: Environment) -> dict[str, list[str]]:
    """Why something that was looked for is unknown, and every fact that this reason covers."""
    paths: dict[str, list[str]] = {}
    for path, reason in environment.reasons.items():
        paths.setdefault(reason, []).append(path)
    return paths


def without_reason(environment: Environment) -> list[str]:
    return [path for path in unstated(environment) if path not in environment.reasons]


def problems(environment: Environment) -> Iterator[tuple[str, str]]:
    """Files of packages and of the model that could not be read as they should, each with what is wrong."""
    model = environment.section("model")
    for problem in (*(environment.facts.get("distribution_problems") or ()), *(model.get("file_problems") or ())):
        if isinstance(problem, Mapping):
            yield str(problem["path"]), str(problem["problem"])
