"""What is known of one environment: a nested mapping of facts, why others are unknown, and where each was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from compatcheck.environment import paths
from compatcheck.files.secrets import without_secrets

SNAPSHOT_SCHEMA_VERSION = 1
Result = TypeVar("Result")
_NOT_FACTS = ("schema_version", "unknown", "locations")


class Location(NamedTuple):
    """Where a fact stands in the user's own files, in words ``file:line``; ``line`` counts from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class RecordedLocation(Location):
    """A place that a snapshot names: it may have been written by anybody, and no file is read because of it."""

    __slots__ = ()


class Target(NamedTuple):
    """The interpreter whose environment is judged.

    ``search_path`` lists the folders distributions are looked for in, in import order.
    ``selected_by`` says in words why this interpreter was chosen.
    """

    executable: str
    version: str
    prefix: str
    search_path: tuple[str, ...]
    selected_by: str


class Environment(NamedTuple):
    """What is known of one environment, or the part of it that one collector found.

    ``facts`` is nested as in a snapshot: ``None`` means "known to be absent", and a key that is missing means
    "unknown". ``reasons`` says, by path, why what was looked for is unknown; ``locations`` says where a fact was read.
    """

    facts: Mapping[str, Any] = {}
    reasons: Mapping[str, str] = {}
    locations: Mapping[str, Location] = {}

    @classmethod
    def from_flat(
        cls, flat: Mapping[str, Any], reasons: Mapping[str, str] = {}, locations: Mapping[str, Location] = {}
    ) -> Environment:
        """The environment of facts by path."""
        return cls(paths.nest(flat), reasons, locations)

    @classmethod
    def from_snapshot(cls, document: Mapping[str, Any]) -> Environment:
        """The environment that a snapshot states, unchecked; `snapshot.load_snapshot` checks it.

        Credentials in it go no further, and its places are `RecordedLocation`.
        """
        facts = {key: without_secrets(value) for key, value in document.items() if key not in _NOT_FACTS}
        places = document.get("locations", {})
        locations = {path: RecordedLocation(at["file"], at.get("line")) for path, at in places.items()}
        return cls(facts, document.get("unknown", {}), locations)

    def dump(self) -> dict[str, Any]:
        """The environment as a snapshot: JSON that `snapshot.load_snapshot` reads back to the same value.

        Credentials are left out: a snapshot is made to be sent.
        """
        whole = {
            "schema_version": SNAPSHOT_SCHEMA_VERSION,
            **self.facts,
            **({"unknown": dict(self.reasons)} if self.reasons else {}),
            **({"locations": {path: at._asdict() for path, at in self.locations.items()}} if self.locations else {}),
        }
        without: dict[str, Any] = without_secrets(whole)
        return without

    def get(self, path: str) -> Any:
        """The fact at a path: its value, ``None`` where it is known to be absent, or `Unknown`.

        A distribution that is missing from a complete list is known to be absent, unless a range of it is stated;
        below an absent parent everything is absent.
        """
        value: Any = self.facts
        for part in paths.parts(path):
            if value is None:
                return None
            if not isinstance(value, (dict, Mapping)) or part not in value:  # a dict is far quicker to tell
                return None if self._lacks(path) else Unknown(self._reason(path))
            value = value[part]
        return value

    def section(self, path: str) -> Mapping[str, Any]:
        """What stands below a path; nothing, where it is unknown or absent."""
        value = self.get(path)
        return value if isinstance(value, Mapping) else {}

    def flat(self) -> dict[str, object]:
        """Each fact by its path."""
        return dict(paths.flatten(self.facts))

    def with_fact(self, path: str, value: object, at: Location | None = None) -> Environment:
        """The environment with this value in place of what stands at the path, read at this location."""
        rest = self.without(path)
        locations = rest.locations if at is None else {**rest.locations, path: at}
        return Environment(paths.with_value(self.facts, paths.parts(path), value), rest.reasons, locations)

    def without(self, *gone: str) -> Environment:
        """The environment less what stands at these paths and below them, with its reasons and locations."""
        facts = self.facts
        for path in gone:
            facts = paths.without_value(facts, paths.parts(path))

        def kept(path: str) -> bool:
            return not any(paths.is_within(path, each) for each in gone)

        reasons = {path: why for path, why in self.reasons.items() if kept(path)}
        return Environment(facts, reasons, {path: at for path, at in self.locations.items() if kept(path)})

    def overlay(self, above: Environment) -> Environment:
        """The environment with these facts in place of its own; their reasons count where nothing is known."""
        known = Environment(paths.merge(self.facts, above.facts))
        reasons = {path: why for path, why in self.reasons.items() if not above.states(path)}
        reasons.update((path, why) for path, why in above.reasons.items() if not known.states(path))
        locations = {path: at for path, at in self.locations.items() if not above.states(path)}
        return Environment(known.facts, reasons, {**locations, **above.locations})

    def states(self, path: str) -> bool:
        """Whether the fact at a path is known, if only to be absent."""
        return not isinstance(self.get(path), Unknown)

    def once(self, name: str, function: Callable[[], Result]) -> Result:
        """The result of a function of this environment.

        An environment that stands for many calls it once for all those in which it reads the same; the ``name`` tells
        the function from others.
        """
        return function()

    def _lacks(self, path: str) -> bool:
        section, _, name = path.partition(".")
        if section != "distributions" or not self.facts.get("distributions_complete"):
            return False
        return name not in (self.facts.get("distribution_ranges") or {})

    def _reason(self, path: str) -> str | None:
        """The reason recorded for the path or for the nearest of its parents."""
        while path and self.reasons:
            if path in self.reasons:
                return self.reasons[path]
            path = path.rpartition(".")[0]
        return None


class Unknown(NamedTuple):
    """The value of a fact nobody knows, with the reason where there is one."""

    reason: str | None = None
