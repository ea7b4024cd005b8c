"""What differs between two matrices, and what newer releases make due; frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from compatcheck.results.findings import BAD, Status


class VerdictChange(NamedTuple):
    """What an entry says of an environment before and after; None is nothing.

    ``is_proven`` says that a real install of the environment fails that way.
    """

    environment: str
    source: str
    entry: str
    title: str
    before: Status | None
    after: Status | None
    is_proven: bool = False

    @property
    def is_alarm(self) -> bool:
        return not self.is_proven and self.after in BAD and self.before not in BAD


class Comparison(NamedTuple):
    """Two matrices on the same environments; ``added``, ``removed`` and ``edited`` are ids of entries."""

    revisions: tuple[str, str]
    entries: tuple[int, int]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]
    environments: int
    changes: tuple[VerdictChange, ...]

    @property
    def alarms(self) -> tuple[VerdictChange, ...]:
        return tuple(change for change in self.changes if change.is_alarm)


class Due(NamedTuple):
    """Something in the matrix that newer releases ask to be looked at again.

    ``kind`` says of what sort it is: a ``range`` that is open or ended at what was newest when it was reviewed, a
    ``table`` that misses releases, or a ``cap`` in newer metadata against what a remedy advises.
    """

    kind: Literal["range", "table", "cap"]
    subject: str
    package: str
    newest: str
    why: str


class Watched(NamedTuple):
    """What is due after an index was asked for packages; ``unknown`` is why others could not be asked, by name."""

    address: str
    asked: tuple[str, ...]
    due: tuple[Due, ...]
    unknown: Mapping[str, str]
