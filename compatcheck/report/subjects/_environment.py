"""The rows that say which matrix judged what, and what is not known of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compatcheck import __version__
from compatcheck.environment import Environment
from compatcheck.inference.inferred import Judged
from compatcheck.language import clauses, comma_list, ngettext
from compatcheck.language import gettext as _
from compatcheck.report.areas import NAMED_DISTRIBUTIONS, devices, named_packages
from compatcheck.results.findings import Report
from compatcheck.terminal.lines import Line

if TYPE_CHECKING:
    from compatcheck.results.cluster import ClusterReport
    from compatcheck.results.diagnoses import Diagnosis


def head(judged: Report | Diagnosis | ClusterReport) -> Line:
    """Which compatcheck and which matrix have judged."""
    dated = _(" of {date}").format(date=judged.matrix_date) if judged.matrix_date else ""
    matrix = _("matrix {revision}{dated}, {count} entries")
    matrix = matrix.format(revision=judged.matrix_revision, dated=dated, count=judged.matrix_entries)
    return Line(clauses(f"compatcheck {__version__}", matrix), "dim")


def stale(judged: Report | Diagnosis | ClusterReport) -> Iterator[Line]:
    """That nobody has looked at the matrix for long, and what to do about it; nothing where somebody has."""
    if judged.matrix_stale:
        text = _("the matrix was last reviewed on {date}, more than 90 days ago; run compatcheck matrix update")
        yield Line(text.format(date=judged.matrix_date), "dim")


def host(environment: Environment) -> str:
    """The system, the machine and its C library, as far as they are known."""
    platform = environment.section("platform")
    return " ".join(str(platform[key]) for key in ("system", "machine", "libc") if platform.get(key))


def described(judged: Judged) -> Iterator[tuple[str, str]]:
    """What was judged: the environment, its host and its packages, each behind its label."""
    environment = judged.stated
    target = environment.facts.get("target")
    if target:
        yield _("environment"), f"{_(target['prefix'])} ({_(target['selected_by'])})"
    python = environment.facts.get("python")
    parts = (python and f"Python {python}", host(environment), *devices(environment))
    yield _("host"), comma_list(part for part in parts if part)
    named = list(named_packages(judged))
    stated = environment.section("distributions")
    others = len(stated) - sum(bool(stated.get(name)) for name in NAMED_DISTRIBUTIONS)
    if others or not named:
        rest = _("{count} more") if named else ngettext("{count} distribution", "{count} distributions", others)
        named.append(rest.format(count=others))
    yield _("packages"), comma_list(named)
    pinned = {at.file for path, at in environment.locations.items() if path.startswith("distributions.")}
    if pinned:
        yield _("read from"), comma_list(sorted(pinned))
