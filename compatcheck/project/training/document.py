"""One file of a training configuration, parsed once, with the line of each of its keys."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.json_text import json_object, line_of
from compatcheck.files.python_syntax import parse_code
from compatcheck.files.reading import OversizeError, read_text

_LARGEST_OF = {".py": limits.SCRIPT_BYTES, ".ipynb": limits.NOTEBOOK_BYTES}
_DOING = "reading YAML from"
_TOML_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]")
_TOML_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_TOML_PART = re.compile(r"[\w-]+")
Keys = tuple[str | int, ...]


class Document(NamedTuple):
    """A file and what it says: the mapping of a JSON, YAML or TOML file, the module of a Python file, else ``None``.

    ``lines`` gives the line of each key where the parser told it. ``origins`` says which keys another file gave, as
    the flags of a script do over a configuration, and ``under`` where a section that is read alone stands in its file.
    ``partial`` is why a key that it lacks may still be given elsewhere, as in a configuration that is not here.
    """

    path: str
    text: str
    value: Any
    lines: Mapping[Keys, int] | None = None
    origins: Mapping[Keys, Location] = {}
    under: Keys = ()
    partial: str = ""

    def place(self, keys: Keys) -> Location:
        """Where the value at nested keys is given."""
        whole = (*self.under, *keys)
        for length in range(len(whole), 0, -1):
            if whole[:length] in self.origins:
                return self.origins[whole[:length]]
        if self.lines is not None:
            shorter = (whole[:length] for length in range(len(whole), max(len(self.under), 1) - 1, -1))
            known = (self.lines[each] for each in (shorter if self.under else (whole,)) if each in self.lines)
            return Location(self.path, next(known, None))
        return Location(self.path, line_of(self.text, [key for key in whole if isinstance(key, str)]))

    def section(self, keys: Keys, value: object) -> Document:
        """What stands at nested keys as a document of its own, with the places it has here."""
        return self._replace(value=value, under=(*self.under, *keys))


class Configuration(NamedTuple):
    """What a configuration says, and the other files it names, by kind, as ``deepspeed``.

    ``inlined`` are those that are written out in it, and ``places`` where the names stand.
    """

    facts: Environment
    names: Mapping[str, str] = {}
    inlined: Mapping[str, Document] = {}
    places: Mapping[str, Location] = {}

    def overlay(self, above: Configuration) -> Configuration:
        """This configuration with another one over it."""
        return Configuration(
            self.facts.overlay(above.facts),
            {**self.names, **above.names},
            {**self.inlined, **above.inlined},
            {**self.places, **above.places},
        )


def open_document(path: str) -> Document:
    """The document in a file, parsed by the ending of its name; nothing of it is run.

    Raises `InputError` where it cannot be read or parsed, and `OversizeError` where it is out of all proportion.
    """
    return parse_document(path, read_text(path, largest_of(path)))


def largest_of(path: str) -> int:
    """The size in bytes up to which a file of this name is parsed."""
    return _LARGEST_OF.get(os.path.splitext(path)[1].lower(), limits.CONFIGURATION_BYTES)


def parse_document(path: str, text: str) -> Document:
    """The document that a text of this name is; errors as for `open_document`."""
    ending = os.path.splitext(path)[1].lower()
    if ending == ".json":
        return Document(path, text, json_object(text, path))
    if ending in (".yaml", ".yml"):
        return _yaml(path, text)
    if ending == ".toml":
        return _toml(path, text)
    if ending == ".py":
        return Document(path, text, _module(path, text))
    return Document(path, text, None)


def _module(path: str, text: str) -> ast.Module:
    try:
        return parse_code(text) or ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        seen = f"line {line}: {error.args[0]}" if line else str(error)
        raise InputError("reading Python from", path, seen, "correct it there") from None
    except (RecursionError, MemoryError):
        raise OversizeError(
            "reading Python from", path, "the content is nested too deeply", "pass an ordinary file"
        ) from None


def _toml(path: str, text: str) -> Document:
    from compatcheck.files.toml_text import TOMLDecodeError, parse_toml

    try:
        return Document(path, text, parse_toml(text), _toml_lines(text))
    except TOMLDecodeError as error:
        raise InputError("reading TOML from", path, str(error), "correct it there") from None
    except RecursionError:
        raise OversizeError(
            "reading TOML from", path, "the content is nested too deeply", "pass an ordinary file"
        ) from None


def _toml_lines(text: str) -> Mapping[Keys, int]:
    """The line of each table and of each key that begins a line, by its nested keys."""
    lines: dict[Keys, int] = {}
    table: Keys = ()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _TOML_HEADER.match(line), _TOML_KEY.match(line)
        if header:
            table = tuple(_TOML_PART.findall(header[1]))
        elif not key:
            continue
        lines.setdefault((*table, *(_TOML_PART.findall(key[1]) if key and not header else ())), number)
    return lines


def _yaml(path: str, text: str) -> Document:
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        lines: dict[Keys, int] = {}
        value = None if node is None else _construct(loader, node, (), lines, _Merges(path, {}))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        seen = f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}" if mark else str(error.problem)
        raise InputError(_DOING, path, seen, "correct it there") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(_DOING, path, str(error).splitlines()[0], "correct it") from None
    except RecursionError:
        raise OversizeError(_DOING, path, "the content is nested too deeply", "pass an ordinary file") from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise InputError(
            _DOING, path, "the file contains no mapping of keys to values", "pass a file of keys and values"
        )
    return Document(path, text, value, lines)


class _Merges(NamedTuple):
    """The entries of each mapping with what it merges in, by the identity of its node."""

    path: str
    entries: dict[int, list[tuple[object, object]]]

    def of(self, node: Any) -> list[tuple[Any, Any]]:
        """Key and value nodes with ``<<`` carried out: a mapping's own keys count, then the first merged in.

        PyYAML's own way of doing this repeats what is merged in, and a chain of merges then fills the memory.
        """
        import yaml

        known = self.entries.get(id(node))
        if known is not None:
            return known
        self.entries[id(node)] = []
        own: list[tuple[Any, Any]] = []
        merged: list[Any] = []
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                own.append((key, value))
                continue
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
        given = {key.value for key, _ in own if isinstance(key, yaml.ScalarNode)}
        below: list[tuple[Any, Any]] = []
        for each in merged:
            if not isinstance(each, yaml.MappingNode):
                raise InputError(
                    _DOING, self.path, f"line {each.start_mark.line + 1}: << does not name a mapping", "correct it"
                )
            for key, value in self.of(each):
                if not isinstance(key, yaml.ScalarNode) or key.value not in given:
                    below.append((key, value))
                    given.add(key.value if isinstance(key, yaml.ScalarNode) else id(key))
        self.entries[id(node)] = [*below, *own]
        return self.entries[id(node)]


def _construct(loader: Any, node: Any, keys: Keys, lines: dict[Keys, int], merges: _Merges) -> Any:
    """The plain value of a node; aliases are followed as often as they stand, within a bound."""
    import yaml

    path = merges.path
    if len(lines) > limits.CONFIGURATION_VALUES:
        raise OversizeError(
            _DOING,
            path,
            f"with its aliases expanded, the file contains more than {limits.CONFIGURATION_VALUES} values",
            "pass an ordinary file",
        )
    lines.setdefault(keys, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        result: dict[Any, Any] = {}
        for key_node, value_node in merges.of(node):
            key = loader.construct_object(key_node, deep=True)
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise InputError(
                    _DOING, path, f"line {key_node.start_mark.line + 1}: a key is not a word", "correct it"
                )
            inner = (*keys, key if isinstance(key, int) and not isinstance(key, bool) else str(key))
            lines[inner] = key_node.start_mark.line + 1
            result[key if isinstance(key, str) else inner[-1]] = _construct(loader, value_node, inner, lines, merges)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_construct(loader, each, (*keys, i), lines, merges) for i, each in enumerate(node.value)]
    return loader.construct_object(node)
