"""Frozen values that travel between the rooms of this stage; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compatcheck.environment import Location
from compatcheck.errors import CompatcheckError


class Line(NamedTuple):
    """One logical line of what the user asks for, in its place.

    ``text`` is what stands there, without the comment behind it; ``comment`` is that comment with its ``#``, or empty.
    ``name`` is the normalised name of the distribution, None where the line names none. ``asked`` is what the resolver
    gets: an exact pin without its version, any other requirement as it stands, None where the line asks for nothing.
    ``kept`` says why the line stays as it is and its version is not judged (a URL, a version-control link, an editable
    or local project), None where it is judged. ``folder`` is that of a local project.
    """

    text: str
    name: str | None = None
    asked: str | None = None
    comment: str = ""
    kept: str | None = None
    at: Location | None = None
    folder: str | None = None

    @property
    def where(self) -> str:
        """Its place in words."""
        return str(self.at) if self.at else "the requirements"


class Wanted(NamedTuple):
    """What the user asks for, and the exact versions, local labels included, to stay with where possible.

    ``stated`` are the names that the user's own lines pin. ``constraints`` only limit what is asked for. ``complete``
    holds where ``preferred`` is all there is, so that any other distribution of a solution is new.
    """

    lines: tuple[Line, ...]
    preferred: Mapping[str, str]
    constraints: tuple[str, ...] = ()
    complete: bool = False
    stated: frozenset[str] = frozenset()


class Place(NamedTuple):
    """The interpreter and the machine that versions are resolved for.

    ``python_version`` and ``platform``, as uv names them, are given where they are not those of ``interpreter``.
    ``builds`` allows the build of a local project, which runs its code.
    """

    interpreter: str
    python_version: str | None = None
    platform: str | None = None
    offline: bool = False
    builds: bool = False


class Demands(NamedTuple):
    """What a resolution is held to besides the user's own requirements.

    ``specifiers`` limit distributions by name; ``torch_backend`` is the build of torch as uv names it (``cu126``), None
    for the one that the user's own indexes serve. ``by_hand`` are the ids of findings that no version is to clear, but
    the user: by a setting, in the code, on the machine.
    """

    specifiers: Mapping[str, str] = {}
    torch_backend: str | None = None
    by_hand: tuple[str, ...] = ()


class Solution(NamedTuple):
    """One set of versions by normalised name.

    ``parents`` names for each distribution what asks for it, without the user. ``unversioned`` are the lines of the
    resolver that have no version: what comes from a URL or a folder. ``kept`` says, for each distribution that had to
    be left out of the resolution, why; its version, if it has one, is the one that was there.
    """

    versions: Mapping[str, str]
    parents: Mapping[str, tuple[str, ...]] = {}
    unversioned: tuple[str, ...] = ()
    kept: Mapping[str, str] = {}
    yanked: Mapping[str, str] = {}


class Violation(NamedTuple):
    """A finding that a solution must lose, and the ways to lose it, the advised ones first; none: versions cannot.

    A link between two packages that does not hold has no title: its ``id`` is the sentence that names both lines.
    """

    id: str
    title: str
    ways: tuple[Demands, ...]


class Move(NamedTuple):
    """Why a distribution is not at the version it had: the entries and links that moved it, or what the resolver said.

    ``links`` are sentences: what one package asks of another in vain.
    """

    was: str | None
    entries: tuple[str, ...] = ()
    why: str = ""
    links: tuple[str, ...] = ()


class Missing(CompatcheckError):
    """A requirement names a distribution or a version that no index has; exit status 2, as for any wrong input."""


class Unsolvable(CompatcheckError):
    """The resolver found no set of versions; exit status 1, as the environment stays at fault."""

    exit_status = 1
