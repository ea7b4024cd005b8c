"""From a log to what it shows: the signature of its runs, where it began, its exceptions, and what it states.

A log format is one file of `formats`; the rest reads logs of any size in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compatcheck.results.cases import Sighting
    from compatcheck.results.logs import Log, Pattern
    from compatcheck.symptoms._scan import Scanned


def read(path: str, patterns: Sequence[Pattern] = (), chunk: int | None = None) -> Log:
    """What a log shows; ``-`` is standard input. ``chunk`` is how much is read at once, in bytes.

    Raises `compatcheck.errors.InputError` where it cannot be read.
    """
    from compatcheck.symptoms import _scan

    return _log(_scan.scan(path, patterns, chunk), "standard input" if path == "-" else path)


def is_packed(path: str) -> bool:
    """Whether a file holds TensorBoard events or a compressed log, which only `read` understands."""
    from compatcheck.symptoms import _stream
    from compatcheck.symptoms.formats import tensorboard

    start = _stream.head(path)
    return start.startswith(b"\x1f\x8b") or tensorboard.recognises(path, start)


def read_text(text: str, source: str, patterns: Sequence[Pattern] = ()) -> Log:
    """What a text shows: a log, or a report with lines of one."""
    from compatcheck.symptoms import _scan

    return _log(_scan.scan_text(text, source, patterns), source)


def _log(scanned: Scanned, source: str) -> Log:
    from compatcheck.results.logs import Log
    from compatcheck.symptoms import _observed, _signature

    runs = tuple(_signature.run_of(reader, crashes, source) for reader, crashes in scanned.runs)
    last = runs[-1] if runs else None
    reading = scanned.runs[-1][0].last if scanned.runs else None
    normal = reading is not None and reading.reading.zero_is_normal
    facts = _observed.with_observed(scanned.facts, last, zero_is_normal=normal)
    return Log(source, runs, scanned.crashes, scanned.hits, facts, scanned.notes)


def read_words(text: str, source: str) -> tuple[Sighting, ...]:
    """The symptoms that a person describes in words, English or Chinese, in the order of the text."""
    from compatcheck.symptoms import words

    return words.read(text, source)


def next_steps(names: Iterable[str], text: str = "") -> tuple[str, ...]:
    """What to do next about symptoms that no entry explains; ``text`` is the error line, for the numbers in it."""
    from compatcheck.symptoms import _next_steps

    return _next_steps.next_steps(names, text)


def title(name: str) -> str:
    """A symptom in words."""
    from compatcheck.language import gettext as _
    from compatcheck.packages.shipped_tables import shipped_table

    return _(shipped_table("symptoms")["symptoms"][name]["title"])


def is_error_class(name: str) -> bool:
    """Whether a symptom is only the class of an exception."""
    from compatcheck.packages.shipped_tables import shipped_table

    kind: str = shipped_table("symptoms")["symptoms"][name]["kind"]
    return kind == "error-class"


def observed(name: str) -> Mapping[str, Any]:
    """What a symptom in words says of the last readings of a run: facts below ``training.observed``."""
    from compatcheck.packages.shipped_tables import shipped_table

    readings: Mapping[str, Any] = shipped_table("symptoms")["symptoms"][name].get("observed", {})
    return readings
