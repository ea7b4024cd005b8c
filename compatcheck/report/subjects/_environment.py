"""The rows that say which matrix judged what, and what is not known of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compatcheck import __version__
from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Judged
from compatcheck.language import gettext as _
from compatcheck.language import ngettext
from compatcheck.results.findings import Report
from compatcheck.terminal.lines import Line

if TYPE_CHECKING:
    from compatcheck.results.cluster import ClusterReport
    from compatcheck.results.logs import Diagnosis

NAMED_DISTRIBUTIONS = ("torch", "transformers", "deepspeed", "peft", "accelerate", "bitsandbytes")


def head(judged: Report | Diagnosis | ClusterReport) -> Line:
    """Which compatcheck and which matrix have judged."""
    dated = _(" of {date}").format(date=judged.matrix_date) if judged.matrix_date else ""
    matrix = _("matrix {revision}{dated}, {count} entries")
    matrix = matrix.format(revision=judged.matrix_revision, dated=dated, count=judged.matrix_entries)
    return Line(f"compatcheck {__version__}, {matrix}", "dim")


def stale(judged: Report | Diagnosis | ClusterReport) -> Iterator[Line]:
    """That nobody has looked at the matrix for long, and what to do about it; nothing where somebody has."""
    if judged.matrix_stale:
        text = _("the matrix was last reviewed on {date}, more than 90 days ago: compatcheck matrix update")
        yield Line(text.format(date=judged.matrix_date), "dim")


def described(judged: Judged) -> Iterator[tuple[str, str]]:
    """What was judged: the environment, its host and its packages, each behind its label."""
    environment = judged.stated
    target = environment.facts.get("target")
    if target:
        yield _("environment"), f"{_(target['prefix'])} ({_(target['selected_by'])})"
    platform = environment.section("platform")
    host = " ".join(str(platform[key]) for key in ("system", "machine", "libc") if platform.get(key))
    python = environment.facts.get("python")
    parts = (python and f"Python {python}", host, *_devices(environment))
    yield _("host"), ", ".join(part for part in parts if part)
    distributions = judged.view.section("distributions")
    named = [_version(judged, name) for name in NAMED_DISTRIBUTIONS if distributions.get(name)]
    ranges = environment.section("distribution_ranges")
    asked = [name for name in NAMED_DISTRIBUTIONS if name in ranges and not distributions.get(name)]
    stated = environment.section("distributions")
    others = len(stated) - sum(bool(stated.get(name)) for name in NAMED_DISTRIBUTIONS)
    named += [f"{name} {ranges[name] or _('of any version')}" for name in asked]
    if others or not named:
        rest = _("{count} more") if named else ngettext("{count} distribution", "{count} distributions", others)
        named.append(rest.format(count=others))
    yield _("packages"), ", ".join(named)
    pinned = {at.file for path, at in environment.locations.items() if path.startswith("distributions.")}
    if pinned:
        yield _("read from"), ", ".join(sorted(pinned))


def _version(judged: Judged, name: str) -> str:
    path = f"distributions.{name}"
    shown = f"{name} {judged.view.get(path)}"
    return _("{fact} (inferred)").format(fact=shown) if path in judged.inferred.facts else shown


def _devices(environment: Environment) -> Iterator[str]:
    driver, gpus = environment.get("cuda.driver"), environment.get("gpus")
    if isinstance(driver, str):
        yield _("driver {version}").format(version=driver)
    if not isinstance(gpus, Unknown):
        counted = Counter((gpu.get("name") or "GPU", bool(gpu.get("uncounted"))) for gpu in gpus or ())
        names = [name if uncounted else f"{count} x {name}" for (name, uncounted), count in counted.items()]
        yield ", ".join(names) or _("no GPU")
