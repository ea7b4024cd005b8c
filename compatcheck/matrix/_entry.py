"""The entry model: TOML is parsed here, once, and trusted afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from compatcheck.matrix._keys import kind_of
from compatcheck.matrix._order import is_range, number_in_range, parse_range
from compatcheck.matrix._regex import check_regex
from compatcheck.model import Remedy

Impact = Literal["silent-wrong", "divergence", "hang", "crash", "import-fail", "install-fail", "oom", "slow"]
Confidence = Literal["reported", "corroborated", "reproduced", "upstream-fixed"]
EvidenceKind = Literal["upstream-fix", "maintainer", "source", "documentation", "report", "reproduction"]
Expectation = Literal["affected", "unaffected", "undetermined"]
RemedyKind = Literal["pins", "config", "environ", "code", "driver", "rebuild"]


def flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths of a nested table's leaves."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


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
    if path.startswith("distributions.") and path[14:] != canonicalize_name(path[14:]):
        raise ValueError(f"{path!r}: write the normalised name {canonicalize_name(path[14:])!r}")
    if condition in ("present", "absent"):
        return
    if kind == "version" and not (isinstance(condition, str) and is_range(condition)):
        raise ValueError(f"{path!r}: a version is compared with a range such as '>=2.5.0', in quotes")
    if kind == "flag" and not isinstance(condition, bool):
        raise ValueError(f"{path!r}: a flag is compared with true or false")
    values = condition if isinstance(condition, list) else [condition]
    if kind in ("text", "labels") and not all(isinstance(value, str) for value in values):
        raise ValueError(f"{path!r}: it is compared with words")
    if kind == "number" and not all(
        isinstance(v, (int, float)) or (isinstance(v, str) and is_range(v)) for v in values
    ):
        raise ValueError(f"{path!r}: it is compared with numbers or a range such as '>=2'")
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
    return None if table == "absent" else table


def _check_specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"{text!r} is not a version specifier") from None
    return text


Conditions = Annotated[dict[str, Any], BeforeValidator(_check_conditions)]
Specifier = Annotated[str, AfterValidator(_check_specifier)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RemedyEntry(_Part):
    """One way out, the best first."""

    why: str = Field(min_length=1)
    pins: dict[str, Specifier] = {}
    config: dict[str, Any] = {}
    environ: dict[str, str] = {}
    code: str | None = None
    kind: RemedyKind | None = None

    @property
    def form(self) -> RemedyKind:
        stated: dict[RemedyKind, object] = {
            "pins": self.pins,
            "config": self.config,
            "environ": self.environ,
            "code": self.code,
        }
        return next((kind for kind, content in stated.items() if content), self.kind or "code")

    def remedy(self) -> Remedy:
        return Remedy(self.form, self.why, self.pins, self.config, self.environ, self.code)


class Evidence(_Part):
    """A public source, or a record of what was measured, by its path below the matrix folder."""

    url: str = Field(pattern=r"^(https://|records/)\S+$")
    kind: EvidenceKind
    supports: list[str] = Field(min_length=1)
    note: str | None = None


class Example(_Part):
    expect: Expectation
    environment: Annotated[dict[str, Any], BeforeValidator(_with_absences)]
    note: str | None = None


class ErrorPattern(_Part):
    """A regular expression for the error line that this entry explains, a line it matches, and lines it must not."""

    regex: Annotated[str, AfterValidator(check_regex)] = Field(min_length=8)
    example: str = Field(min_length=8)
    not_examples: list[str] = []


class Probe(_Part):
    name: str
    request: dict[str, Any] = {}


class Reproduce(_Part):
    """Two environments that are really built: the probe must fail in the bad one and pass in the good one.

    What is named ``_afterwards`` is installed over it without regard to what others declare, as a second install by
    hand leaves many an environment; so a pair that no resolver would give can be tried too.
    """

    python: str
    bad: list[str] = Field(min_length=1)
    good: list[str] = Field(min_length=1)
    bad_afterwards: list[str] = []
    good_afterwards: list[str] = []


class Withdrawn(_Part):
    on: date
    reason: str = Field(min_length=1)


class Entry(_Part):
    """One known-bad combination, as a file under ``matrix/`` states it."""

    id: str = Field(pattern=r"^CC-\d{4}-\d{4}$")
    title: str = Field(min_length=1, max_length=100)
    impact: Impact
    confidence: Confidence
    summary: str = Field(min_length=1)
    mechanism: str = Field(min_length=1)
    symptoms: list[str] = []
    misleading: list[str] = []
    packages: list[str] = []
    published: date
    reviewed: date
    withdrawn: Withdrawn | None = None
    affected: list[Conditions] = Field(min_length=1)
    remedies: list[RemedyEntry] = Field(min_length=1)
    probe: Probe | None = None
    error_patterns: list[ErrorPattern] = []
    evidence: list[Evidence] = Field(min_length=1)
    examples: list[Example] = Field(min_length=1)
    reproduce: Reproduce | None = None

    @model_validator(mode="after")
    def _dates_agree(self) -> Entry:
        if self.reviewed < self.published:
            raise ValueError("reviewed lies before published")
        return self

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
