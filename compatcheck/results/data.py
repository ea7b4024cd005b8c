"""What a look at training data reports; frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class DataProblem(NamedTuple):
    """Something wrong with training data: on how many rows, the first of them (lines or places in an array, from 1).

    ``level`` is ``problem`` where training suffers, ``note`` where it may. ``symptoms`` and ``trait`` are what it shows
    as in the matrix; ``entries`` are the ids and titles that explain it.
    """

    name: str
    level: Literal["problem", "note"]
    seen: str
    fix: str
    total: int = 0
    rows: tuple[int, ...] = ()
    symptoms: tuple[str, ...] = ()
    trait: str | None = None
    entries: tuple[tuple[str, str], ...] = ()


class DataReport(NamedTuple):
    """What a look at a data file has to say; ``unread`` is why the tokenizer could not be run, None where it was.

    ``shown`` is one row in pieces: each token's text, whether it is labelled, and whether truncation keeps it.
    """

    file: str
    shape: str
    rows: int
    sampled: int
    problems: tuple[DataProblem, ...]
    unread: str | None = None
    tokenizer: Mapping[str, object] = {}
    lengths: Mapping[str, int] = {}
    shown: tuple[int, tuple[tuple[str, bool, bool], ...]] | None = None
