"""What one reader has read so far: facts with their places, what stays open and why, and the files it names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment, Location
from compatcheck.files.secrets import excerpt
from compatcheck.project.python_values import Open
from compatcheck.project.training._values import Kind, Value, explain_mismatch, is_auto, is_placeholder
from compatcheck.project.training.document import Configuration, Document, Keys


class Sheet:
    """The facts of one document; paths of facts are whole, as ``training.dtype``, and keys are those of the file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._known: dict[str, object] = {}
        self._reasons: dict[str, str] = {}
        self._locations: dict[str, Location] = {}
        self._names: dict[str, str] = {}
        self._inlined: dict[str, Document] = {}
        self._places: dict[str, Location] = {}

    def get(self, *keys: str | int) -> Any:
        """What the file gives at nested keys, or ``None``; `Open` for a placeholder and below what has no parts."""
        value: Any = self.document.value
        for depth, key in enumerate(keys):
            if isinstance(value, Mapping):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
                value = value[key]
            elif value is None or isinstance(value, Open):
                break
            else:
                return Open(explain_mismatch(".".join(map(str, keys[:depth])), value, "not a mapping"))
        return Open(f"{excerpt(repr(value), 60)} is filled in elsewhere") if is_placeholder(value) else value

    def has(self, *keys: str | int) -> bool:
        """Whether the file names the key at all, were it only to give null."""
        parent = self.get(*keys[:-1]) if len(keys) > 1 else self.document.value
        return isinstance(parent, Mapping) and keys[-1] in parent

    def state(self, fact: str, value: object, keys: Keys | None = None) -> None:
        """A fact, read at these keys of the file; without keys it follows from what the file does not say."""
        self._known[fact] = value
        self._reasons.pop(fact, None)
        self._locations.pop(fact, None)
        if keys is not None:
            self._locations[fact] = self.document.place(keys)

    def default(self, fact: str, value: object, keys: Keys | None = None) -> None:
        """A fact that holds where the file is silent, unless it is decided or the document is only a part.

        Keys are those of what the value follows from, where the silence of one key does not decide it alone.
        """
        if self.is_decided(fact):
            return
        if self.document.partial:
            self.unknown(fact, self.document.partial)
        else:
            self.state(fact, value, keys)

    def unknown(self, fact: str, why: str, keys: Keys | None = None) -> None:
        """A fact that the file leaves open, with the reason in words; keys give the place of what leaves it so."""
        self._known.pop(fact, None)
        self._locations.pop(fact, None)
        if keys is not None:
            place = self.document.place(keys)
            at = f":{place.line}" if place.line else ""
            why = f"{why} ({os.path.basename(place.file)}{at})"
        self._reasons[fact] = why

    def fact(self, fact: str) -> Any:
        """The value stated for a fact so far, or ``None``."""
        return self._known.get(fact)

    def is_stated(self, fact: str) -> bool:
        """Whether a fact has been stated so far, were it only to be absent."""
        return fact in self._known

    def is_decided(self, fact: str) -> bool:
        """Whether a fact has been stated or left open so far."""
        return fact in self._known or fact in self._reasons

    def reason(self, fact: str) -> str | None:
        """Why a fact has been left open so far."""
        return self._reasons.get(fact)

    def read(self, kind: Kind[Value], fact: str, *keys: str | int) -> Value | None:
        """State the value at nested keys where it is of this kind, and leave the fact open where it is not."""
        value = self.get(*keys)
        if value is None:
            return None
        result = None if is_auto(value) or isinstance(value, Open) else kind.parse(value)
        if result is None:
            self.leave_open(fact, keys, kind.mismatch)
        else:
            self.state(fact, result, keys)
        return result

    def leave_open(self, fact: str, keys: Keys, mismatch: str) -> None:
        """Leave a fact open because of the value at these keys, with what that is not."""
        self.unknown(fact, explain_mismatch(".".join(map(str, keys)), self.get(*keys), mismatch), keys)

    def name(self, kind: str, path: object, keys: Keys | None = None) -> None:
        """Another file, folder or hub id that this one names, as it is written there; by default under its kind."""
        if isinstance(path, str) and path.strip():
            self._names[kind] = path
            self._places[kind] = self.document.place(keys or (kind,))

    def inline(self, kind: str, keys: Keys, value: Mapping[str, object]) -> None:
        """A file of another kind that is written out at these keys."""
        self._inlined[kind] = self.document.section(keys, value)

    def place_inlined(self, kind: str, places: Mapping[Keys, Location]) -> None:
        """Where the values of a file that is written out here really stand."""
        self._inlined[kind] = self._inlined[kind]._replace(origins=places)

    def include(self, other: Sheet) -> None:
        """Take over what another sheet has read."""
        self._known.update(other._known)
        self._reasons.update(other._reasons)
        self._locations.update(other._locations)
        self._names.update(other._names)
        self._inlined.update(other._inlined)
        self._places.update(other._places)

    def facts(self) -> Environment:
        """The facts in the nested form of the snapshot."""
        return Environment.from_flat(self._known, dict(self._reasons), dict(self._locations))

    def configuration(self) -> Configuration:
        """The facts with the other files that are named."""
        return Configuration(self.facts(), dict(self._names), dict(self._inlined), dict(self._places))
