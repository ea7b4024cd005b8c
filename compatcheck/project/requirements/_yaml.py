"""YAML files of package managers: every scalar is its text with its line, as ``1.10`` is a version and no number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import OversizeError, read_text

_DOING = "reading YAML from"


class Scalar(str):
    """A text and the line it stands on."""

    line: int | None = None


def read_yaml(path: str) -> dict[str, Any]:
    """The mapping in a file; raises `InputError` with the line where there is none."""
    import yaml

    text = read_text(path, limits.TEXT_BYTES)
    _require_shallow(text, path)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        seen = f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}" if mark else str(error.problem)
        raise InputError(_DOING, path, seen, "correct the file, or regenerate it if it is truncated") from None
    except yaml.YAMLError as error:
        raise InputError(_DOING, path, str(error).splitlines()[0], "correct it") from None
    except RecursionError:
        raise OversizeError(_DOING, path, "the content is nested too deeply", "pass an ordinary file") from None
    value = None if node is None else _plain(node, path, iter(range(len(text) + limits.YAML_ALIASED_VALUES)), 0)
    if not isinstance(value, dict):
        raise InputError(
            _DOING, path, "the file contains no mapping of keys to values", "pass a file of keys and values"
        )
    return value


def _require_shallow(text: str, path: str) -> None:
    """Brackets opened one in the other by the thousand overrun the parser's own stack, which nothing can catch."""
    depth = deepest = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    if deepest > 1000:
        raise OversizeError(_DOING, path, "the content is nested too deeply", "pass an ordinary file")


def _plain(node: Any, path: str, budget: Iterator[int], depth: int) -> Any:
    """The plain value of a node; aliases are followed as often as they stand, within a bound."""
    import yaml

    if next(budget, None) is None or depth > limits.YAML_DEPTH:
        raise OversizeError(
            _DOING, path, "the aliases expand too far, or the file is nested too deeply", "pass an ordinary file"
        )
    if isinstance(node, yaml.MappingNode):
        return {
            str(key.value): _plain(value, path, budget, depth + 1)
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode)
        }
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each, path, budget, depth + 1) for each in node.value]
    scalar = Scalar(node.value)
    scalar.line = node.start_mark.line + 1
    return scalar


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def line_of(value: object) -> int | None:
    """The line of a scalar, or of the first one in a mapping."""
    if isinstance(value, Mapping):
        return next((line_of(each) for each in value.values()), None)
    return value.line if isinstance(value, Scalar) else None
