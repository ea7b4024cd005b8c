"""Findings and what a check reports of them; frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.files import repository
from compatcheck.inference.inferred import Inferred, Judged
from compatcheck.results.areas import Area

Status = Literal["confirmed", "affected", "possible", "refuted"]


STATUSES: tuple[Status, ...] = ("confirmed", "affected", "possible", "refuted")


BAD: tuple[Status, ...] = ("confirmed", "affected")


Outcome = Literal["pass", "watch", "fail", "skip", "crash", "timeout"]


StepKind = Literal["pin", "install", "set", "export", "code", "words"]


class Step(NamedTuple):
    """One thing to do for a remedy: the lines of ``what`` are to be copied into ``file``, where that is known.

    ``value`` is what a setting called ``what`` is to become, for files that are not edited by copying a line. A step of
    the kind ``words`` only explains itself.
    """

    kind: StepKind
    what: tuple[str, ...]
    file: str = ""
    value: str = ""


class Remedy(NamedTuple):
    """One way out of a finding; the fields that do not apply are empty.

    ``action`` is what to do by hand, in words; ``steps`` are what to do in the user's own files.
    """

    kind: str
    why: str
    pins: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}
    environ: Mapping[str, str] = {}
    code: str | None = None
    action: str | None = None
    steps: tuple[Step, ...] = ()


class ByDesign(NamedTuple):
    """A result that differs from the exact one as the library documents it.

    ``case`` is what was computed, ``meaning`` what the library computes instead, ``difference`` the relative distance.
    """

    case: str
    meaning: str
    difference: float

    def __str__(self) -> str:
        return f"differs by design by {self.difference:.0%} ({self.case}): {self.meaning}"


class ProbeResult(NamedTuple):
    """What came of running one probe; ``measured`` is the probe's own JSON."""

    probe: str
    outcome: Outcome
    why: str
    measured: Mapping[str, Any] = {}
    seconds: float = 0.0

    @property
    def unusable(self) -> str:
        """Why what the probe measures could not be built or run, so that it fails without a measurement."""
        return str(self.measured.get("unusable", ""))

    @property
    def interrupted(self) -> bool:
        """Whether the run was ended from the keyboard before this probe had a result."""
        return bool(self.measured.get("interrupted"))

    @property
    def by_design(self) -> tuple[ByDesign, ...]:
        """Where the libraries compute something else than the probe's reference, and say so: the largest of each."""
        rows = self.measured.get("rows")
        rows = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
        found = [
            ByDesign(str(row["case"]), str(row["by_design"]), float(row["difference"]))
            for row in rows
            if "by_design" in row and "case" in row and isinstance(row.get("difference"), (int, float))
        ]
        largest = {each.meaning: each for each in sorted(found, key=lambda each: each.difference)}
        return tuple(each for each in found if each is largest[each.meaning])


class HeldFact(NamedTuple):
    """A fact on which a finding rests; None is known to be absent.

    ``why`` says where it comes from if no file states it: a reason for what is inferred, ``--assume``, ``installed``.
    """

    fact: str
    value: Any
    location: Location | None = None
    why: str = ""


class Finding(NamedTuple):
    """One entry of the matrix that speaks of this environment.

    ``summary`` is what the user sees, ``mechanism`` why it happens. ``partly`` says, for a missing version of which a
    range is asked for, which part of that is affected. ``ranges`` holds, for each condition of the entry that brought
    it here, the versions by name that it speaks of. ``seen`` tells that the summary is of one place, where a trait was
    seen, and not what the entry says of all. ``because`` holds the facts that make it speak of this environment.
    """

    id: str
    title: str
    status: Status
    impact: str
    confidence: str
    packages: tuple[str, ...]
    summary: str
    missing: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    evidence: tuple[str, ...]
    probe_name: str | None = None
    probe_request: Mapping[str, object] = {}
    probe: ProbeResult | None = None
    location: Location | None = None
    partly: Mapping[str, str] = {}
    ranges: tuple[Mapping[str, str], ...] = ()
    mechanism: str = ""
    seen: bool = False
    because: tuple[HeldFact, ...] = ()


class Suppressed(NamedTuple):
    """A finding that the user has set aside, by an ``ignore`` with its reason or because a ``baseline`` holds it."""

    finding: Finding
    by: Literal["ignore", "baseline"]
    why: str


class Remark(NamedTuple):
    """Something about the user's own files that wants a look, such as an ignore that has expired."""

    text: str
    location: Location | None = None

    def __str__(self) -> str:
        return f"{self.location}: {self.text}" if self.location else self.text


class VersionMap(NamedTuple):
    """What the matrix says of an environment with other versions of two of its packages.

    ``names`` are the package of the columns and that of the rows, ``cells`` hold for each row and column the statuses
    by entry, ``entries`` the title and impact of each of these. ``here`` are the two versions at hand, ``advised``
    those to go to.
    """

    names: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[Mapping[str, Status], ...], ...]
    entries: Mapping[str, tuple[str, str]]
    here: tuple[str, str]
    advised: tuple[str, str] | None = None


class Report(NamedTuple):
    """What one check has to say; ``findings`` are the worst first and hold nothing that is ``suppressed``.

    ``environment`` is as it was stated, and ``inferred`` what follows from it. ``maps`` are drawn for a reader of pages
    alone. ``areas`` says what was judged.
    """

    environment: Environment
    findings: tuple[Finding, ...]
    matrix_revision: str
    matrix_entries: int
    matrix_date: str = ""
    matrix_stale: bool = False
    suppressed: tuple[Suppressed, ...] = ()
    remarks: tuple[Remark, ...] = ()
    maps: tuple[VersionMap, ...] = ()
    inferred: Inferred = Inferred()
    areas: tuple[Area, ...] = ()

    @property
    def judged(self) -> Judged:
        """The environment with what follows from it."""
        return self.inferred.judged(self.environment)

    @property
    def bad(self) -> tuple[Finding, ...]:
        """What is confirmed or affected."""
        return tuple(finding for finding in self.findings if finding.status in BAD)


def failing(fail_on: str) -> tuple[Status, ...]:
    """The statuses at or above one, which make a run fail; none where that is ``never``."""
    return STATUSES[: STATUSES.index(fail_on) + 1] if fail_on in STATUSES else ()


def fingerprint(finding: Finding) -> str:
    """What makes a finding the same in another run: its entry and its file, not the line or the status."""
    from hashlib import sha256

    file = repository.below(finding.location.file, repository.root()) if finding.location else ""
    return sha256(f"{finding.id}\n{file}".encode(errors="surrogateescape")).hexdigest()[:32]
