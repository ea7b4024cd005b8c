"""Releases that do not link: what breaks, as violations that the search has to answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.version import Version

from compatcheck.advice import search
from compatcheck.advice.model import Demands, Violation
from compatcheck.interfaces.link_text import describe
from compatcheck.interfaces.links import Link, broken_links
from compatcheck.packages.versions import final_release
from compatcheck.pipelines.pin._task import Task


def violations_of_links(task: Task, versions: Mapping[str, str]) -> Iterator[tuple[Violation, Link]]:
    """What these versions ask of each other in vain; of links with the same releases on both sides the first.

    The id of each violation is the sentence that names both lines. Its ways are complete: the provider where it has
    what is asked, or the package where it does not ask.
    """
    releases = {name: release for name, text in versions.items() if (release := final_release(text))}
    seen = set()
    for link in sorted(broken_links(task.known.table, releases, _python(task)), key=_imports_first):
        key = (link.package, link.provider, link.asks, link.accepts)
        if key not in seen:
            seen.add(key)
            yield Violation(describe(link, releases), "", tuple(_ways(link))), link


def _imports_first(link: Link) -> tuple[str, str, bool]:
    return link.package, link.provider, link.kind != "import"


def _ways(link: Link) -> Iterator[Demands]:
    yield from (Demands({link.provider: run}) for run in reversed(link.accepts))
    yield from (Demands({link.package: left}) for left in search.outside_all(link.asks))


def _python(task: Task) -> Version | None:
    stated = task.place.python_version or task.environment.facts.get("python")
    return final_release(stated) if isinstance(stated, str) else None
