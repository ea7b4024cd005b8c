"""The entry model: TOML is parsed here, once, and trusted afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from compatcheck.environment.paths import distribution_of, flatten, merge, parts, without_value
from compatcheck.environment.vocabulary import kind_of
from compatcheck.matrix._regex import check_regex
from compatcheck.packages.versions import is_range, number_in_range, parse_range

Impact = Literal["silent-wrong", "divergence", "hang", "crash", "import-fail", "install-fail", "oom", "slow"]
Confidence = Literal["reported", "corroborated", "reproduced", "upstream-fixed"]
EvidenceKind = Literal["upstream-fix", "maintainer", "source", "documentation", "report", "reproduction"]
Expectation = Literal["affected", "unaffected", "undetermined"]
RemedyKind = Literal["pins", "config", "environ", "code", "driver", "rebuild"]


def _check_conditions(table: Any) -> dict[str, Any]:
    if not isinstance(table, Mapping) or not table:
        raise ValueError("an affected table needs at least one key")
    conditions = dict(flatten(table))
    for path, condition in conditions.items():
        _check_condition(path, condition)
    return conditions


def _check_condition(path: str, condition: Any) -> None:
    kind = kind_of(path)
    if kind is None:
        raise ValueError(f"unknown condition key {path!r}")
    name = distribution_of(path)
    if name is not None and name != canonicalize_name(name):
        raise ValueError(f"{path!r}: write the normalised name {canonicalize_name(name)!r}")
    if condition in ("present", "absent"):
        return
    if kind == "version" and not (isinstance(condition, str) and is_range(condition)):
        raise ValueError(f"{path!r}: a version is compared with a range such as '>=2.5.0', in quotes")
    if kind == "flag" and not isinstance(condition, bool):
        raise ValueError(f"{path!r}: a flag is compared with true or false")
    values = condition if isinstance(condition, list) else [condition]
    if kind in ("text", "labels") and not all(isinstance(value, str) for value in values):
        raise ValueError(f"{path!r}: this fact is compared with words")
    if kind == "number" and not all(
        isinstance(v, (int, float)) or (isinstance(v, str) and is_range(v)) for v in values
    ):
        raise ValueError(f"{path!r}: this fact is compared with numbers or a range such as '>=2'")
    if isinstance(condition, str) and is_range(condition):
        if kind not in ("version", "number"):
            raise ValueError(f"{path!r}: a {kind} fact has no order; give the values it may have")
        if kind == "number":
            number_in_range(condition, 0)
        else:
            parse_range(condition)


def _with_absences(table: Any) -> Any:
    """TOML has no null: in an example the word ``absent`` says that a fact is known not to be there."""
    if isinstance(table, Mapping):
        return {key: _with_absences(value) for key, value in table.items()}
    if isinstance(table, list):
        return [_with_absences(each) for each in table]
    return None if table == "absent" else table


def _check_specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a version specifier") from None
    return text


Conditions = Annotated[dict[str, Any], BeforeValidator(_check_conditions)]
Specifier = Annotated[str, AfterValidator(_check_specifier)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RemedyEntry(_Part):
    """One way out, the best first."""

    why: str = Field(min_length=1, description="why the remedy helps, or what it costs")
    pins: dict[str, Specifier] = Field(
        {}, description="distributions with a specifier that names a known-good version: `>=2.5.1`, `<=4.44.2`"
    )
    config: dict[str, Any] = Field({}, description="settings by fact path, such as `training.packing`")
    environ: dict[str, str] = Field({}, description="environment variables")
    code: str | None = Field(None, description="code or a command to paste, without other text")
    action: str | None = Field(None, description="a manual step, as a sentence that starts with a verb")
    kind: RemedyKind | None = Field(
        None, description="only for `driver` and `rebuild`; the others follow from their key"
    )

    @field_validator("pins")
    @classmethod
    def _names(cls, pins: dict[str, str]) -> dict[str, str]:
        for name in pins:
            if name != canonicalize_name(name):
                raise ValueError(f"{name!r}: write the normalised name {canonicalize_name(name)!r}")
        return pins


class Evidence(_Part):
    """A public source, or a record of what was measured, by its path below the matrix folder."""

    url: str = Field(pattern=r"^(https://|records/)\S+$", description="`https://...`, or `records/NAME.json`")
    kind: EvidenceKind = Field(description="kind of source")
    supports: list[str] = Field(
        min_length=1,
        description="parts of the entry that the source supports: `affected`, `summary`, `mechanism`, `impact`,"
        " `symptoms`, `misleading`, `probe`, or one by number: `remedies.1`",
    )
    note: str | None = Field(None, description="where in a long source to look")


class Change(_Part):
    """An environment by what sets it apart from an example's own: facts that differ, and those that are not stated."""

    model_config = ConfigDict(extra="allow")

    without: list[str] = Field([], description="paths of facts that the environment does not state")
    note: str | None = Field(None, description="whose environment it is, or what it shows")

    @model_validator(mode="before")
    @classmethod
    def _absences(cls, stated: Any) -> Any:
        return _with_absences(stated)

    def of(self, environment: Mapping[str, Any]) -> dict[str, Any]:
        """The environment that it makes of another one."""
        for path in self.without:
            environment = without_value(environment, parts(path))
        changed: dict[str, Any] = merge(environment, self.model_extra or {})
        return changed


class Case(NamedTuple):
    """An environment, and what the entry must say of it."""

    expect: Expectation
    environment: Mapping[str, Any]
    note: str | None = None


class Example(_Part):
    """A small environment, what the entry must say of it, and of others that differ from it in little."""

    expect: Expectation = Field("affected", description="expected result for the environment")
    environment: Annotated[dict[str, Any], BeforeValidator(_with_absences)] = Field(
        description="part of a snapshot as `compatcheck env` prints it; `absent` means known to be absent"
    )
    note: str | None = Field(None, description="whose environment it is, or what it shows")
    affected: list[Change] = Field([], description="changes that must be affected: the facts that differ")
    unaffected: list[Change] = Field([], description="changes that must be unaffected")
    undetermined: list[Change] = Field([], description="changes with an undetermined result")

    def cases(self) -> Iterator[Case]:
        """Its own environment and those that differ from it, each whole."""
        yield Case(self.expect, self.environment, self.note)
        changes: tuple[tuple[Expectation, list[Change]], ...] = (
            ("affected", self.affected),
            ("unaffected", self.unaffected),
            ("undetermined", self.undetermined),
        )
        for expect, changed in changes:
            yield from (Case(expect, change.of(self.environment), change.note) for change in changed)


class ErrorPattern(_Part):
    """A regular expression for the error line that this entry explains, a line it matches, and lines it must not."""

    regex: Annotated[str, AfterValidator(check_regex)] = Field(
        min_length=8,
        description="searched in each line, ignoring case; without the exception's name and nested repeats",
    )
    example: str = Field(
        min_length=8,
        description=(
            "a line that the pattern must match; the line contains a word such as Error, or is "
            "indented like a traceback frame"
        ),
    )
    not_examples: list[str] = Field([], description="lines that the pattern must not match")


class Probe(_Part):
    """The probe that can confirm or refute the entry on a machine."""

    name: str = Field(description="a name from `compatcheck probe --list`")
    request: dict[str, Any] = Field({}, description="the request, in addition to the user's settings")


class Reproduce(_Part):
    """Two environments that are really built: the probe must fail in the bad one and pass in the good one.

    What is named ``_afterwards`` is installed over it without regard to what others declare, as a second install by
    hand leaves many an environment; so a pair that no resolver would give can be tried too.
    """

    python: str = Field(description="a Python that uv can find or download, such as `3.11`")
    bad: list[str] = Field(min_length=1, description="requirements of the environment in which the probe fails")
    good: list[str] = Field(min_length=1, description="requirements of the environment in which the probe passes")
    bad_afterwards: list[str] = Field(
        [], description="installed into the bad environment afterwards, without their dependencies"
    )
    good_afterwards: list[str] = Field(
        [], description="installed into the good environment afterwards, without their dependencies"
    )


class Withdrawn(_Part):
    """An entry that turned out wrong: it matches nothing any more, and its id is never used again."""

    on: date = Field(description="the day on which the entry was withdrawn")
    reason: str = Field(min_length=1, description="what was wrong")
    successors: list[str] = Field([], description="entries that replace this entry")


_ID = Field(
    pattern=r"^CC-\d{4}-\d{4}$",
    description="`CC-YYYY-NNNN`: the fault's year, the next free number; never reused",
)
_TITLE = Field(min_length=1, max_length=100, description="the fault, not the fix, in one line")


class WithdrawnEntry(_Part):
    """What is kept of an entry that is withdrawn."""

    id: str = _ID
    title: str = _TITLE
    withdrawn: Withdrawn = Field(description="date and reason of the withdrawal")


class Entry(_Part):
    """One known-bad combination, as a file under ``matrix/`` states it."""

    id: str = _ID
    title: str = _TITLE
    impact: Impact = Field(description="the worst outcome for a user")
    confidence: Confidence = Field(description="strength of the evidence")
    summary: str = Field(min_length=1, description="what the user sees, in up to three sentences")
    mechanism: str = Field(min_length=1, description="why the fault happens, so that unreported cases are covered too")
    symptoms: list[str] = Field([], description="symptoms: names in `tables/symptoms.toml`")
    misleading: list[str] = Field([], description="common advice that does not help, and why")
    packages: list[str] = Field([], description="packages at fault; default: each distribution with a version range")
    published: date = Field(description="date of the first public report or fix")
    reviewed: date = Field(description="date of the last review against the sources")
    affected: list[Conditions] = Field(
        min_length=1, description="tables of conditions: keys within one are AND, tables are OR"
    )
    remedies: list[RemedyEntry] = Field(min_length=1, description="fixes, best first")
    overlaps: dict[str, str] = Field(
        {},
        description=("entries of the same packages that apply wherever this entry applies, and what each of them adds"),
    )
    probe: Probe | None = Field(None, description="the probe that decides the entry")
    unprobed: str | None = Field(None, description="why no probe can show the fault: a name in `tables/unprobed.toml`")
    error_patterns: list[ErrorPattern] = Field([], description="error lines that the entry explains")
    evidence: list[Evidence] = Field(min_length=1, description="public sources and records, and what each supports")
    examples: list[Example] = Field(
        [], description="affected environments, and changes after which the entry no longer holds"
    )
    reproduce: Reproduce | None = Field(None, description="two environments that `matrix reproduce` builds and probes")

    @model_validator(mode="after")
    def _dates_agree(self) -> Entry:
        if self.reviewed < self.published:
            raise ValueError("reviewed lies before published")
        return self

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The environments of all examples, each whole."""
        return tuple(case for example in self.examples for case in example.cases())

    @property
    def distributions(self) -> tuple[str, ...]:
        """Who is at fault: as stated, else every distribution whose version a table bounds."""
        bounded = dict.fromkeys(
            path.removeprefix("distributions.")
            for table in self.affected
            for path, condition in table.items()
            if path.startswith("distributions.") and condition not in ("present", "absent")
        )
        return tuple(self.packages or bounded)
