"""One pass over a data file: its shape, what is wrong with rows by their look alone, and a sample spread over it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compatcheck.data._records import Record
from compatcheck.data._shapes import KNOWN_ROLES, Messages, Row, has_media, recognise
from compatcheck.files import limits

_MOST_NAMED = 16
_MARKER = re.compile(
    r"<\|(?:user|assistant|system|observation|im_start|im_end|start_header_id|end_header_id|eot_id|endoftext|end_of_text|begin_of_text)\|>|<(?:start|end)_of_turn>|\[gMASK\]"
)
_ANSWERS_FOLLOW = ("user", "tool", "observation", "function", "ipython")


class Tally:
    """How often something was met, and on which rows first."""

    def __init__(self) -> None:
        self.count = 0
        self.rows: list[int] = []
        self.example = ""

    def add(self, row: int, example: str = "") -> None:
        self.count += 1
        self.example = self.example or example
        if len(self.rows) < _MOST_NAMED:
            self.rows.append(row)


class Survey(NamedTuple):
    """What a file holds: rows of its main shape, broken and foreign ones, faults by name, and the sample."""

    shape: str | None
    rows: int
    records: int
    faults: dict[str, Tally]
    sample: list[tuple[int, Messages]]


def survey(records: Iterable[Record], wanted: int) -> Survey:
    """Read every record once; the sample holds at most ``wanted`` rows, evenly spread."""
    faults: dict[str, Tally] = {}
    shapes: Counter[str] = Counter()
    sample = _Sample(wanted)
    seen: set[bytes] = set()
    count = 0
    for record in records:
        count += 1
        if record.encoding:
            _add(faults, "encoding", record.number, record.encoding)
        row = None if record.fault else recognise(record.value)
        if row is None:
            _add(faults, "broken-line" if record.fault else "unknown-shape", record.number, record.fault or "")
            continue
        shapes[row.shape] += 1
        for name, example in _faults_of(row):
            _add(faults, name, record.number, example)
        media = has_media(record.value)
        if media:
            _add(faults, "media", record.number)
        if row.shape != "text":
            if not media and _is_repeat(row, seen):
                _add(faults, "duplicate", record.number)
            sample.offer(record.number, row)
    main = shapes.most_common(1)
    if len(shapes) > 1:
        told = ", ".join(f"{number} of {name}" for name, number in shapes.most_common())
        faults.setdefault("mixed-shapes", Tally()).add(0, told)
    return Survey(main[0][0] if main else None, shapes.total(), count, faults, sample.rows)


def _add(faults: dict[str, Tally], name: str, row: int, example: str = "") -> None:
    faults.setdefault(name, Tally()).add(row, example)


def _is_repeat(row: Row, seen: set[bytes]) -> bool:
    text = json.dumps(row.messages)
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    if digest in seen:
        return True
    if len(seen) < limits.ROW_HASHES:
        seen.add(digest)
    return False


def _faults_of(row: Row) -> Iterator[tuple[str, str]]:
    if row.shape == "text":
        return
    if row.odd:
        yield "no-message", row.odd
    roles = [message["role"] for message in row.messages]
    answers = [message for message in row.messages if message["role"] == "assistant"]
    unknown = [role for role in roles if role not in KNOWN_ROLES]
    if unknown:
        yield "unknown-role", unknown[0]
    if not answers:
        yield "no-answer", " ".join(roles[:6])
    elif roles[-1] != "assistant":
        yield "ends-without-answer", f"the last message is from {roles[-1]}"
    if not row.odd and any(not message["content"].strip() and not message.get("tool_calls") for message in answers):
        yield "empty-answer", ""
    order = _disorder(roles)
    if order:
        yield "role-order", order
    markers = [found[0] for message in answers if (found := _MARKER.search(message["content"]))]
    if markers:
        yield "marker-in-answer", markers[0]


def _disorder(roles: list[str]) -> str | None:
    """The first place where the roles do not take turns; several answers or tool results in a row are no fault."""
    opening = ("system", "developer")
    for before, role in zip([None, *roles], roles):
        if role in opening and before not in (None, *opening):
            return f"{role} after {before}"
        if role == "assistant" and before in (None, *opening):
            return f"assistant after {before or 'nothing'}"
        if role == before == "user":
            return "user after user"
        if role in _ANSWERS_FOLLOW[1:] and before in (None, "user", *opening):
            return f"{role} after {before or 'nothing'}"
    return None


class _Sample:
    """Every k-th row, k doubling whenever twice as many as wanted are held."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.step, self.offered = wanted, 1, 0
        self.kept: list[tuple[int, Messages]] = []

    def offer(self, number: int, row: Row) -> None:
        due = self.offered % self.step == 0
        self.offered += 1
        if not due or not row.messages or sum(len(m["content"]) for m in row.messages) > limits.SAMPLED_CHARACTERS:
            return
        self.kept.append((number, row.messages))
        if len(self.kept) >= 2 * self.wanted:
            self.kept, self.step = self.kept[::2], 2 * self.step

    @property
    def rows(self) -> list[tuple[int, Messages]]:
        if len(self.kept) <= self.wanted:
            return self.kept
        return [self.kept[at * len(self.kept) // self.wanted] for at in range(self.wanted)]
