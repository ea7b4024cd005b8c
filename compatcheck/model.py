"""Frozen values that travel between the stages; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

SNAPSHOT_SCHEMA_VERSION = 1

Status = Literal["confirmed", "affected", "possible", "refuted"]
STATUSES: tuple[Status, ...] = ("confirmed", "affected", "possible", "refuted")
BAD: tuple[Status, ...] = ("confirmed", "affected")

Outcome = Literal["pass", "watch", "fail", "skip", "crash", "timeout"]


class Location(NamedTuple):
    """Where a fact stands in the user's own files, in words ``file:line``; ``line`` counts from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


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


class Facts(NamedTuple):
    """What one collector found.

    ``known`` is a part of the snapshot: a nested mapping in which ``None`` means "known to be
    absent" and a key that is missing means "unknown". ``reasons`` says why, by dotted path, for
    what was looked for and could not be told; ``locations`` says where a fact was read.
    """

    known: Mapping[str, Any]
    reasons: Mapping[str, str] = {}
    locations: Mapping[str, Location] = {}


class Environment(NamedTuple):
    """One environment as the snapshot states it; all collectors' facts merged."""

    facts: Mapping[str, Any]
    reasons: Mapping[str, str] = {}
    locations: Mapping[str, Location] = {}


class Unknown(NamedTuple):
    """The value of a fact nobody knows, with the reason where there is one."""

    reason: str | None = None


class Remedy(NamedTuple):
    """One way out of a finding; the fields that do not apply are empty.

    ``steps`` says what to do in the words of the user's own files.
    """

    kind: str
    why: str
    pins: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}
    environ: Mapping[str, str] = {}
    code: str | None = None
    steps: tuple[str, ...] = ()


class ProbeResult(NamedTuple):
    """What came of running one probe; ``measured`` is the probe's own JSON."""

    probe: str
    outcome: Outcome
    why: str
    measured: Mapping[str, Any] = {}
    seconds: float = 0.0


class Finding(NamedTuple):
    """One entry of the matrix that speaks of this environment.

    ``summary`` is what the user sees, ``mechanism`` why it happens. ``partly`` says, for a missing version of which a
    range is asked for, which part of that is affected. ``ranges`` holds, for each condition of the entry that brought
    it here, the versions by name that it speaks of. ``seen`` tells that the summary is of one place, where a trait was
    seen, and not what the entry says of all.
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
    probe_request: Mapping[str, Any] = {}
    probe: ProbeResult | None = None
    location: Location | None = None
    partly: Mapping[str, str] = {}
    ranges: tuple[Mapping[str, str], ...] = ()
    mechanism: str = ""
    seen: bool = False


class Suppressed(NamedTuple):
    """A finding that the user has set aside, by an ``ignore`` with its reason or because a ``baseline`` holds it."""

    finding: Finding
    by: Literal["ignore", "baseline"]
    why: str


class Remark(NamedTuple):
    """Something about the user's own settings that wants a look, such as an ignore that has expired."""

    text: str
    location: Location | None = None


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

    ``maps`` are drawn for a reader of pages alone.
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

    @property
    def bad(self) -> tuple[Finding, ...]:
        """What is confirmed or affected."""
        return tuple(finding for finding in self.findings if finding.status in BAD)


def failing(fail_on: str) -> tuple[Status, ...]:
    """The statuses at or above one, which make a run fail; none where that is ``never``."""
    return STATUSES[: STATUSES.index(fail_on) + 1] if fail_on in STATUSES else ()


def dump(environment: Environment) -> dict[str, Any]:
    """The environment as a snapshot: JSON that `compatcheck.facts.load` reads back to the same value."""
    return {
        "schema_version": SNAPSHOT_SCHEMA_VERSION,
        **environment.facts,
        **({"unknown": dict(environment.reasons)} if environment.reasons else {}),
        **({"locations": {k: v._asdict() for k, v in environment.locations.items()}} if environment.locations else {}),
    }


def lookup(environment: Environment, path: str) -> Any:
    """The fact at a dotted path: its value, ``None`` where it is known to be absent, or `Unknown`.

    A distribution that is missing from a complete list is known to be absent, unless a range of it is asked for; below
    an absent parent everything is absent.
    """
    value: Any = environment.facts
    parts = path.split(".", 1) if path.startswith(("distributions.", "environ.")) else path.split(".")
    for part in parts:
        if value is None:
            return None
        if not isinstance(value, Mapping) or part not in value:
            asked = environment.facts.get("distribution_ranges") or {}
            if parts[0] == "distributions" and part not in asked and environment.facts.get("distributions_complete"):
                return None
            return Unknown(_reason(environment, path))
        value = value[part]
    return value


def _reason(environment: Environment, path: str) -> str | None:
    """The reason recorded for the path or for the nearest of its parents."""
    while path:
        if path in environment.reasons:
            return environment.reasons[path]
        path = path.rpartition(".")[0]
    return None


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
    tokenizer: Mapping[str, Any] = {}
    lengths: Mapping[str, int] = {}
    shown: tuple[int, tuple[tuple[str, bool, bool], ...]] | None = None


class Moved(NamedTuple):
    """A distribution that pins move from ``was`` (None: it is new) to ``now``, with the entries that ask for it.

    ``cost`` is 1 for a patch, 10 for each minor and 100 for each major step.
    """

    name: str
    was: str | None
    now: str
    entries: tuple[str, ...] = ()
    cost: int = 0


class Choice(NamedTuple):
    """A finding that other versions clear, and settings as well: ``by_versions`` tells which way was taken."""

    entry: str
    moved: tuple[Moved, ...]
    settings: tuple[str, ...]
    by_versions: bool


class Trial(NamedTuple):
    """One probe in the environment as it is and in the one the pins build; without ``entry``: the imports of both.

    ``before`` is None where there is no such environment to try.
    """

    entry: str | None
    title: str
    before: ProbeResult | None
    after: ProbeResult


class PinReport(NamedTuple):
    """What became of a request for pins, after ``resolutions`` tries.

    ``distance`` is the cost of all moves that count; ``proven`` tells that nothing nearer exists, ``unfinished`` that
    time ran out before a clean set was found, ``latest`` that moves are counted from the newest versions. ``left`` are
    the findings that these pins do not clear, ``possible`` those that lack facts and steered nothing. ``trials`` is
    what the built environment showed, None where none was built; ``unverified`` says why the set may then not be called
    verified.
    """

    moved: tuple[Moved, ...]
    titles: Mapping[str, str]
    distance: int
    resolutions: int
    proven: bool
    unfinished: bool = False
    latest: bool = False
    choices: tuple[Choice, ...] = ()
    left: tuple[Finding, ...] = ()
    possible: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    trials: tuple[Trial, ...] | None = None
    unverified: str | None = None
    maps: tuple[VersionMap, ...] = ()

    @property
    def verified(self) -> bool:
        return self.trials is not None and self.unverified is None

    @property
    def refuted(self) -> bool:
        """Whether a probe shows a fault in the very set that was to be clean."""
        return any(trial.after.outcome in ("fail", "crash", "timeout") for trial in self.trials or ())


class VerdictChange(NamedTuple):
    """What an entry says of an environment before and after; None is nothing."""

    environment: str
    source: str
    entry: str
    title: str
    before: Status | None
    after: Status | None

    @property
    def is_alarm(self) -> bool:
        return self.after in BAD and self.before not in BAD


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
