"""What a subject reports, in blocks that every format renders in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from compatcheck.errors import InputError
from compatcheck.results.findings import Finding, Report
from compatcheck.terminal.lines import Line
from compatcheck.terminal.screen import WIDEST

if TYPE_CHECKING:
    from compatcheck.results.logs import Curve

STYLES = {
    **dict.fromkeys(("confirmed", "affected", "fail", "crash", "timeout", "problem", "not reproduced"), "bold red"),
    **dict.fromkeys(("possible", "watch", "note", "not tried"), "yellow"),
    **dict.fromkeys(("refuted", "pass", "reproduced"), "green"),
    "skip": "dim",
}
"""How a status, an outcome or a level looks wherever one stands."""

ENDLESS = 10**6
"""The width of a document whose rows are not folded."""


class Findings(NamedTuple):
    """Findings to be shown in full, or briefly below a ``lead`` that says what their status means.

    ``verbose`` adds where each of them is documented.
    """

    findings: tuple[Finding, ...]
    lead: str = ""
    verbose: bool = False


class Curves(NamedTuple):
    """Curves of a training run to be drawn; ``indent`` is their margin in cells."""

    curves: tuple[Curve, ...]
    title: str
    indent: int = 0


class Table(NamedTuple):
    """Cells below the names of their columns; text shows the same as ``lines``."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    lines: tuple[Line, ...]


Block = Line | Findings | Curves | Table
"""A line is a row: its head is the label, its style a tone. An empty one ends a part, a bold one begins it."""


class Exit(NamedTuple):
    """How a run ends: the reason in words, and the exit status where there is one."""

    reason: str = ""
    status: int | None = None


NO_EXIT = Exit()


class Document(NamedTuple):
    """What a subject reports.

    ``title`` is the verdict in one line. ``judged`` says what was looked at, ``body`` what was found, and ``ending``
    holds the closing parts, the verdict first; where ``repeats_title``, text shows it at both ends. ``shape`` is what
    JSON holds. ``report`` has the findings for formats that hold nothing else, None where a subject has none.
    ``page`` makes the body of the subject's own page. Text is folded to ``width``.
    """

    title: Line
    body: tuple[Block, ...]
    shape: Callable[[], Mapping[str, object]]
    ending: tuple[tuple[Line, ...], ...] = ()
    judged: tuple[Line, ...] = ()
    repeats_title: bool = False
    width: int = WIDEST
    report: Report | None = None
    exit: Exit = NO_EXIT
    page: Callable[[], Iterable[str | None]] | None = None

    @property
    def findings(self) -> Report:
        """The findings with what they were found in. Raises InputError where the subject has none."""
        if self.report is None:
            advice = "use --format text, json, markdown or html"
            raise InputError("writing", self.title.text, "this format supports only findings", advice)
        return self.report


def rows(lines: Iterable[Line]) -> Document:
    """A document of rows that are not folded, such as a quiet verb prints."""
    return Document(Line(), tuple(lines), dict, width=ENDLESS)
