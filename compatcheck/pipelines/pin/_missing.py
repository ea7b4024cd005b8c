"""A version or a name that no index has is refused; nobody asked for its neighbour."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compatcheck.advice import resolver
from compatcheck.advice.model import Missing, Unsolvable
from compatcheck.language import gettext as _
from compatcheck.language.suggestion import did_you_mean
from compatcheck.packages.names import normalised
from compatcheck.pipelines.pin._task import Task

_NO_VERSION = re.compile(r"there is no version of ([\w.-]+?)(?:\[[^\]]*\])?==([^\s,]+)")
_NO_NAME = re.compile(r"Because ([\w.-]+) was not found in the (?:package registry|provided package locations)")


def require_existing(task: Task, error: Unsolvable) -> None:
    """Raise Missing where a line of the user names what does not exist, with the nearest that does.

    A version that exists as a post-release only is no such: that is a patch away.
    """
    places = {line.name: line.where for line in task.wanted.lines if line.name and line.asked}
    for name, version in _NO_VERSION.findall(error.seen):
        name = normalised(name)
        if name in task.wanted.stated and version == _release(task.wanted.preferred.get(name, "")):
            near = resolver.around(name, version, task.place)
            if not any(_release(each) == version for each in near):
                seen = _("{name} has no version {version}").format(name=name, version=version)
                raise Missing("pinning", places.get(name, name), seen, _advice(name, near))
    for name in map(normalised, _NO_NAME.findall(error.seen)):
        if name in places:
            seen = _("no package is called {name}").format(name=name)
            raise Missing("pinning", places[name], seen, _nearest_name(name, task))


def _release(version: str) -> str:
    """The version without a local label and without the number of a post-release, which repeats the release."""
    return re.sub(r"\.post\d+\Z", "", version.partition("+")[0])


def _advice(name: str, near: Sequence[str]) -> str:
    if not near:
        return _("correct the version")
    return _("the nearest are {versions}").format(versions=_(" and ").join(f"{name}=={each}" for each in near))


def _nearest_name(name: str, task: Task) -> str:
    known = {*task.known.table("package-names")["known"], *task.known.guards}
    return did_you_mean(name, sorted(known), _("correct the name"))
