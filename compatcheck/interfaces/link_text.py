"""A link that does not hold, as a sentence that names both lines of code."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from compatcheck.interfaces.links import Link
from compatcheck.language import gettext as _

_OVERRIDE = "override-"


def describe(link: Link, releases: Mapping[str, Version]) -> str:
    """What the package asks and where, what the provider's release answers, and the releases that answer otherwise."""
    text = _sentence(link.kind).format(
        package=f"{link.package} {releases[link.package]}",
        provider=f"{link.provider} {releases[link.provider]}",
        target=link.target,
        name=link.name,
        file=link.file,
    )
    if not link.accepts:
        return text
    works = _(" or ").join(link.accepts)
    other = _("{package} {range} does not") if link.kind == "missing" else _("{package} {range} does")
    if link.kind.startswith(_OVERRIDE):
        other = _("{package} {range} fits")
    return f"{text}; {other.format(package=link.provider, range=works)}"


def _sentence(kind: str) -> str:
    if kind == "import":
        return _("{package} imports {target} ({file}), which {provider} does not have")
    if kind in ("attribute", "member"):
        return _("{package} uses {target} ({file}), which {provider} does not have")
    if kind == "keyword":
        return _("{package} passes {name} to {target} ({file}), which {provider} does not accept")
    if kind == "missing":
        return _("{package} calls {target} without {name} ({file}), which {provider} requires")
    if kind == "positional":
        return _("{package} passes more positional arguments to {target} ({file}) than {provider} accepts")
    if kind == "twice":
        return _("{package} passes {name} twice to {target} ({file}), which {provider} does not accept")
    return _("{package} overrides {target} ({file}) with a signature that does not fit the calls of {provider}")
