"""One pass over a log: readings into runs, exceptions, lines that entries know, facts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from compatcheck.environment import Environment, Location
from compatcheck.files import limits
from compatcheck.files.units import units
from compatcheck.results.logs import ERROR_MARKS, Crash, Hit, Pattern
from compatcheck.symptoms import _facts, _failures
from compatcheck.symptoms._known_lines import KnownLines, Line, one_line
from compatcheck.symptoms._reading import Reading
from compatcheck.symptoms._run import RunReader
from compatcheck.symptoms._source_code import quoted
from compatcheck.symptoms._stream import Batch, batches, head
from compatcheck.symptoms._tracebacks import Raised, Tracebacks
from compatcheck.symptoms.formats import tensorboard, trainer_state

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_BAR = re.compile(r"\A\s*\d+%\|[^|]*\|\s*(\d+)/(\d+) \[")
_BEGINS = "***** Running training *****"
_MOST_UNTOLD = 5_000
_SAMPLED, _OFTEN, _MOST_ALIKE = 11, 20, 10_000
_HEAD = "Traceback (most"
_NO_DIGITS = str.maketrans("", "", "0123456789")
_SPECIAL = (_BEGINS, _HEAD, "%|")
_SHORT = 100_000
"""Characters of a text of which every line is tried for errors; in longer ones the marks of errors decide."""


class LineFormat(Protocol):
    """A module for one log format. A line that holds none of ``MARKS`` is not of it."""

    MARKS: tuple[str, ...]

    def read(self, text: str) -> Reading | None: ...


class Scanned(NamedTuple):
    runs: tuple[tuple[RunReader, tuple[Crash, ...]], ...]
    crashes: tuple[Crash, ...]
    hits: tuple[Hit, ...]
    facts: Environment
    notes: tuple[str, ...]


def line_formats() -> tuple[LineFormat, ...]:
    """The formats that are read line by line, in the order of their names, what reads anybody's lines last."""
    lined = [unit for unit in units("compatcheck.symptoms.formats").values() if hasattr(unit, "MARKS")]
    return tuple(sorted(lined, key=lambda unit: hasattr(unit, "FALLBACK")))


def scan(path: str, patterns: Sequence[Pattern], chunk: int | None = None) -> Scanned:
    """Read a log of any size to its end. Raises InputError where it cannot be read."""
    start = head(path)
    scanner = Scanner(path, patterns)
    if tensorboard.recognises(path, start):
        scanner.take(tensorboard.read(path))
        return scanner.result()
    notes = scanner.notes
    stream = batches(path, notes=notes) if chunk is None else batches(path, chunk, notes)
    first = next(iter(stream), None)
    if first is None:
        return scanner.result()
    everything = _again(first, stream)
    if trainer_state.recognises(first.text):
        scanner.take(trainer_state.read(everything))
    else:
        scanner.read(everything)
    return scanner.result()


def scan_text(text: str, source: str, patterns: Sequence[Pattern]) -> Scanned:
    """What a text shows that is in memory already."""
    scanner = Scanner(source, patterns)
    if trainer_state.recognises(text):
        scanner.take(trainer_state.read(iter((Batch(1, text),))))
    else:
        scanner.read((Batch(1, text),))
    return scanner.result()


def _again(first: Batch, rest: Iterator[Batch]) -> Iterator[Batch]:
    yield first
    yield from rest


class _Present(NamedTuple):
    """The marks that a block holds, so that each of its lines is searched for these alone."""

    formats: tuple[tuple[LineFormat, tuple[str, ...]], ...]
    facts: tuple[str, ...]
    errors: tuple[str, ...]


class Scanner:
    """The state of one pass."""

    def __init__(self, path: str, patterns: Sequence[Pattern]) -> None:
        self._path = "standard input" if path == "-" else path
        self._formats = line_formats()
        self._known = KnownLines(self._path, patterns)
        self._lines: list[Line] = []
        self._quoted: Collection[int] = ()
        self._alike: Counter[str] = Counter()
        self._repeated: set[str] = set()
        self._marks = tuple(dict.fromkeys(mark for unit in self._formats for mark in unit.MARKS))
        self._tracebacks = Tracebacks()
        self._stated = _facts.StatedFacts(self._path)
        self._runs: list[RunReader] = [RunReader(1)]
        self._crashes: list[tuple[int, Crash]] = []
        self._bar: str | None = None
        self._total: str | None = None
        self._lower: list[tuple[Reading, int, float | None, bool]] = []
        self._mentioned: Raised | None = None
        self._untold = _MOST_UNTOLD
        self._pieces = 0
        self._fatal_marks = _failures.fatal_marks()
        self._error_marks = _fewest((*ERROR_MARKS, *_failures.line_marks()))
        self._present = self._marks_in(None)
        self.notes: list[str] = []

    def take(self, readings: Iterable[tuple[int, Reading]]) -> None:
        """Readings that a whole-file format gives."""
        for line, reading in readings:
            self._reading(reading, line)

    def read(self, stream: Iterable[Batch]) -> None:
        batches = iter(stream)
        begun: list[Batch] = []
        while sum(len(batch.text) for batch in begun) <= _SHORT:
            batch = next(batches, None)
            if batch is None:
                self._read_short(begun)
                return
            begun.append(batch)
        self._read_long(chain(begun, batches))

    def _read_short(self, batches: Iterable[Batch]) -> None:
        """Every line of a text that somebody may have written, whatever it holds."""
        lines = [(number, piece) for first, block in batches for number, piece in enumerate(block.split("\n"), first)]
        code = quoted([_ANSI.sub("", text) for _, text in lines])
        self._quoted = {lines[index][0] for index in code}
        for number, text in lines:
            self._line(number, text, every=True)
        raised = {line.number for line in self._lines if line.raised}
        self._lines = []
        self._known.search_closely(
            [
                Line(number, piece, number in raised, code.get(index))
                for index, (number, text) in enumerate(lines)
                for piece in _ANSI.sub("", text).split("\r")
            ]
        )

    def _marks_in(self, block: str | None) -> _Present:
        """The marks in a block; all of them for None. An escape sequence may split a mark."""
        if block is not None and "\x1b" in block:
            block = _ANSI.sub("", block)

        def present(marks: Iterable[str]) -> tuple[str, ...]:
            return tuple(mark for mark in marks if block is None or mark in block)

        formats = tuple((unit, marks) for unit in self._formats if (marks := present(unit.MARKS)))
        return _Present(formats, present(_facts.MARKS), present((*self._error_marks, _HEAD)))

    def _read_long(self, stream: Iterable[Batch]) -> None:
        wanted = _fewest((*self._marks, *self._error_marks, *_facts.MARKS, *_SPECIAL))
        for first, block in stream:
            text, numbers = self._without_repeated(first, block)
            self._present = self._marks_in(text)
            marked = _marked_lines(text, wanted)
            index = start = 0
            while start <= len(text):
                if not (self._tracebacks or self._stated):
                    following = next((at for at in marked if at >= start), -1)
                    if following < 0:
                        break
                    index += text.count("\n", start, following)
                    start = following
                end = text.find("\n", start)
                end = len(text) if end < 0 else end
                self._count_alike(numbers[index], text[start:end])
                self._line(numbers[index], text[start:end])
                index, start = index + 1, end + 1
            self._search_lines()

    def _without_repeated(self, first: int, block: str) -> tuple[str, Sequence[int]]:
        """The lines of a block with their numbers, without those that were read often enough but for other digits."""
        if not self._repeated or self._tracebacks or self._stated or _HEAD in block or not block.isascii():
            return block, range(first, first + block.count("\n") + 1)
        lines, shapes = block.split("\n"), block.translate(_NO_DIGITS).split("\n")
        kept = [index for index, shape in enumerate(shapes) if shape not in self._repeated]
        return "\n".join([lines[index] for index in kept]), [first + index for index in kept]

    def _count_alike(self, number: int, text: str) -> None:
        """Notice lines that differ in digits alone, by a sample; those of readings or tracebacks are all read."""
        if number % _SAMPLED or self._tracebacks or self._stated or len(self._alike) >= _MOST_ALIKE:
            return
        shape = text.translate(_NO_DIGITS)
        self._alike[shape] += 1
        if self._alike[shape] == _OFTEN and not any(mark in text for mark in (*self._marks, *_SPECIAL)):
            self._repeated.add(shape)

    def _search_lines(self) -> None:
        if self._lines:
            self._known.search(self._lines)
            self._lines = []

    def _line(self, number: int, text: str, *, every: bool = False) -> None:
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        if "\r" in text:
            for piece in self._overwritten(text):
                if piece[-1:] == "]" and "%|" in piece and "oss" not in piece:
                    if piece.lstrip()[:1].isdigit():
                        self._bar = piece
                elif piece and not piece.isspace():
                    self._piece(number, piece, every)
        else:
            self._piece(number, text, every)

    def _overwritten(self, text: str) -> Sequence[str]:
        """The pieces of a line that overwrote one another; of very many, the last, unless one is an error."""
        pieces = text.split("\r")
        self._pieces += len(pieces)
        if self._pieces <= limits.OVERWRITTEN_PIECES or any(mark in text for mark in self._present.errors):
            return pieces
        return pieces[-limits.LAST_PIECES :]

    def _piece(self, number: int, text: str, every: bool) -> None:
        if "%|" in text:
            text = self._after_bar(text)
        if _BEGINS in text:
            self._begin(number)
        for unit, marks in self._present.formats:
            for mark in marks:
                if mark in text:
                    found = unit.read(text[: limits.MATCHED_CHARACTERS])
                    if found is not None:
                        self._reading(found, number)
                        return
                    break
        if self._stated or any(mark in text for mark in self._present.facts):
            self._stated.feed(number, text[: limits.MATCHED_CHARACTERS])
        self._stated.pass_by(number, text[: limits.MATCHED_CHARACTERS])
        if every or self._tracebacks or any(mark in text for mark in self._present.errors):
            self._error(number, text[: limits.MATCHED_CHARACTERS])

    def _after_bar(self, text: str) -> str:
        """Keep a bare progress bar for the step it tells; what is printed behind it is a text of its own."""
        match = _BAR.match(text)
        if match is None:
            return text
        self._keep_bar(text)
        return text[match.end() :]

    def _keep_bar(self, text: str) -> None:
        """A bar with a name before it is of something else, such as loading shards."""
        if text.lstrip()[:1].isdigit():
            self._bar = text

    def _step(self) -> float | None:
        """The step of the Trainer's bar: the first bare one of a run; an evaluation's has another total."""
        match = _BAR.match(self._bar) if self._bar else None
        if match is None:
            return None
        if self._total is None:
            self._total = match[2]
        return float(match[1]) if match[2] == self._total else None

    def _reading(self, reading: Reading, line: int) -> None:
        step, about = reading.step, False
        if step is None and not reading.skipped:
            step = self._step()
            about = step is not None
        run = self._runs[-1]
        way = run.way_to(reading.epoch, step)
        if way is None or way > 0 or reading.loss is None:
            self._settle(line)
            self._runs[-1].add(reading, line, step, about)
        elif way == 0:
            run.add(reading, line, step, about)
        else:
            self._lower.append((reading, line, step, about))
            if len(self._lower) > 1:
                self._restart()

    def _settle(self, line: int) -> None:
        """A lone reading of an earlier step, as another rank prints it late, belongs to the run at hand."""
        for reading, at, step, about in self._lower:
            self._runs[-1].add(reading, at, step, about)
        self._lower = []

    def _restart(self) -> None:
        """Two readings in a row of earlier steps: the run was started again."""
        waiting, self._lower = self._lower, []
        self._next_run(waiting[0][1])
        self._total = None
        for reading, at, step, about in waiting:
            self._runs[-1].add(reading, at, step, about)

    def _begin(self, number: int) -> None:
        self._settle(number)
        self._bar = self._total = None
        run = self._runs[-1]
        if run.readings or (self._crashes and self._crashes[-1][0] == run.number):
            self._next_run(number)

    def _next_run(self, line: int) -> None:
        """Of a log that is started again and again, the last runs are kept."""
        self._runs = [*self._runs[1 - limits.LOG_RUNS :], RunReader(line, self._runs[-1].number + 1)]

    def _error(self, number: int, text: str) -> None:
        raised = self._tracebacks.feed(number, text)
        if raised:
            self._crash(raised)
        inside = self._tracebacks.inside
        self._lines.append(Line(number, text, raised is not None, "frame" if inside else None))
        if inside or number in self._quoted:
            return
        fatal = raised is None and any(mark in text for mark in self._fatal_marks)
        if fatal and (failure := _failures.fatal_line(text)):
            self._crash(Raised("", one_line(text), number, (), None), failure)
        if self._mentioned is None and self._untold:
            self._untold -= 1
            if _failures.kind_of(text).kind != _failures.UNKNOWN.kind:
                self._mentioned = Raised("", one_line(text), number, (), None)

    def _crash(self, raised: Raised, failure: _failures.Failure | None = None) -> None:
        text = ": ".join(part for part in (raised.name, raised.message) if part)
        failure = failure or _failures.kind_of(text)
        run = self._runs[-1].number
        for at, (of_run, crash) in enumerate(self._crashes):
            if of_run == run and (crash.text == text or crash.kind == failure.kind and not raised.name):
                ranks = tuple(dict.fromkeys((*crash.ranks, *((raised.rank,) if raised.rank else ()))))
                self._crashes[at] = (run, crash._replace(ranks=ranks))
                return
        ranks = (raised.rank,) if raised.rank else ()
        crash = Crash(failure.kind, text, Location(self._path, raised.line), raised.frames, ranks)
        self._crashes = [*self._crashes[1 - limits.LOG_CRASHES :], (run, crash)]

    def result(self) -> Scanned:
        self._settle(0)
        self._search_lines()
        hits = self._known.hits()
        if self._mentioned and not (self._crashes or hits or self._runs[-1].readings):
            self._crash(self._mentioned)
        crashes = tuple(crash for _, crash in self._crashes)
        runs = tuple(
            (run, tuple(crash for of_run, crash in self._crashes if of_run == run.number))
            for run in self._runs
            if run.readings or run.evaluations or run.skipped or any(of == run.number for of, _ in self._crashes)
        )
        return Scanned(runs, crashes, hits, self._stated.facts(), tuple(self.notes))


def _marked_lines(block: str, marks: Iterable[str]) -> Iterator[int]:
    """Where the lines start that hold one of the marks, in their order."""
    starts: set[int] = set()
    for mark in marks:
        at = block.find(mark)
        while at >= 0:
            starts.add(block.rfind("\n", 0, at) + 1)
            end = block.find("\n", at)
            at = block.find(mark, end) if end >= 0 else -1
    return iter(sorted(starts))


def _fewest(marks: Iterable[str]) -> list[str]:
    """The marks without those that hold another: where they stand, the other does."""
    fewest: list[str] = []
    for mark in sorted(dict.fromkeys(marks), key=len):
        if not any(shorter in mark for shorter in fewest):
            fewest.append(mark)
    return fewest
