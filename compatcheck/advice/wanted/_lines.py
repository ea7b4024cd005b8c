"""One requirement with its place: is it asked for here, and can its version move?"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from compatcheck.advice.model import Line
from compatcheck.advice.requirement_text import expanded
from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.files.reading import read_text
from compatcheck.files.secrets import masked
from compatcheck.files.toml_text import TOMLDecodeError, parse_toml
from compatcheck.packages.markers import evaluate_marker
from compatcheck.packages.names import normalised
from compatcheck.packages.requirements_file import without_options

if TYPE_CHECKING:
    from packaging.markers import Marker

DOING = "reading requirements from"
_EDITABLE = re.compile(r"(?:-e\s*|--editable(?:\s*=\s*|\s+))(.+)\Z")
_VERSION_CONTROL = re.compile(r"(?:git|hg|svn|bzr)\+")
_MARKER = re.compile(r"\s+;\s*|;\s+")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)(\[[^\]]*\])?")
_HASHES = re.compile(r"\s--hash[=\s]\s*\S+")
_NAMED = re.compile(r"[\w.-]+\s*(?:\[[^\]]*\])?\s*@")
_EXTRAS = re.compile(r"\[[^\]]*\]\Z")
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tar.bz2", ".tgz")


class Read(NamedTuple):
    """A line, and whether it only limits what others ask for; ``firm`` where not even its exact pin may move."""

    line: Line
    constraint: bool = False
    firm: bool = False


def requirement(text: str, comment: str, at: Location, markers: Mapping[str, str] | None) -> Line:
    """A requirement with a name. Hashes are dropped, as they belong to a version that may move.

    Raises `InputError` with file and line where it is none.
    """
    from packaging.requirements import Requirement

    text = _HASHES.sub("", text)
    bare = without_options(text)
    try:
        parsed = Requirement(bare)
    except ValueError:
        seen = f"line {at.line}: {masked(bare)!r:.80} is not a requirement"
        raise InputError(DOING, at.file, seen, "write name==version") from None
    name = normalised(parsed.name)
    if parsed.marker is not None and not _holds(parsed.marker, markers, at):
        return Line(text, name, None, comment, at=at)
    if parsed.url is None:
        return Line(text, name, bare, comment, at=at)
    place = absolute(parsed.url, at.file)
    return Line(text, name, bare.replace(parsed.url, place, 1), comment, _why_kept(parsed.url), at, _folder(place))


def located(text: str, comment: str, at: Location, markers: Mapping[str, str] | None) -> Line | None:
    """What is installed from a place without a name in front; None where the text is no such requirement."""
    editable = _EDITABLE.match(text)
    place, *marker = _MARKER.split(editable[1] if editable else text, maxsplit=1)
    if editable is None and not _is_place(place):
        return None
    if marker and not _holds(_marker(marker[0], at), markers, at):
        return Line(text, None, None, comment, at=at)
    if editable and _VERSION_CONTROL.match(place):
        return Line(
            text, _name_of(place), " ; ".join([_name_first(place), *marker]), comment, "an editable project", at
        )
    where = absolute(place, at.file)
    asked = " ; ".join([where, *marker])
    kept = "an editable project" if editable else _why_kept(place)
    folder = _folder(where)
    name = _name_of(place) or (_stated_name(folder) if folder else None)
    return Line(text, name, f"-e {asked}" if editable else asked, comment, kept, at, folder)


def _folder(place: str) -> str | None:
    """The folder that a path or a ``file:`` address names, None where it names none."""
    try:
        path = unquote(urlsplit(place).path) if place.startswith("file:") else place
    except ValueError:
        return None
    path = _EXTRAS.sub("", path.partition("#")[0])
    return path if os.path.isdir(path) else None


def absolute(place: str, file: str) -> str:
    """A path without regard to the current folder, from which the installers reckon it; a URL as it stands."""
    if "://" in place:
        return place
    path = os.path.expanduser(expanded(place))
    beside = os.path.join(os.path.dirname(os.path.abspath(file)), path)
    bare = _EXTRAS.sub("", path)
    return os.path.normpath(path if os.path.isabs(path) else os.path.abspath(path) if os.path.exists(bare) else beside)


def _stated_name(folder: str) -> str | None:
    """The name that the project in a folder states in its pyproject.toml, which takes no build to know."""
    try:
        project = parse_toml(read_text(os.path.join(folder, "pyproject.toml"))).get("project")
    except (InputError, TOMLDecodeError, RecursionError):
        return None
    name = project.get("name") if isinstance(project, dict) else None
    return normalised(name) if isinstance(name, str) else None


def _is_place(text: str) -> bool:
    bare = _EXTRAS.sub("", text.partition("#")[0])
    if _NAMED.match(text):
        return False
    return "://" in text or bare.startswith((".", "/", "~", "${")) or os.sep in bare or bare.endswith(_ARCHIVES)


def _why_kept(place: str) -> str:
    if _VERSION_CONTROL.match(place):
        return "a version-control link"
    if "://" in place and not place.startswith("file:"):
        return "a URL"
    return "a local file" if place.partition("#")[0].endswith(_ARCHIVES) else "a local project"


def _name_first(link: str) -> str:
    """A link with the name that pip freeze puts behind it in front, as uv takes no link for an editable project."""
    egg = _EGG.search(link)
    if egg is None:
        return link
    bare, _, fragment = link.partition("#")
    rest = "&".join(part for part in fragment.split("&") if not part.startswith("egg="))
    return f"{egg[1]}{egg[2] or ''} @ {bare}" + (f"#{rest}" if rest else "")


def _name_of(place: str) -> str | None:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    egg = _EGG.search(place)
    if egg:
        return normalised(egg[1])
    try:
        return str(parse_wheel_filename(re.split(r"[/\\]", place.partition("#")[0])[-1])[0])
    except InvalidWheelFilename:
        return None


def _marker(text: str, at: Location) -> Marker:
    from packaging.markers import InvalidMarker, Marker

    try:
        return Marker(text)
    except InvalidMarker as error:
        raise _wrong_marker(at, str(error).splitlines()[0]) from None


def _holds(marker: Marker, markers: Mapping[str, str] | None, at: Location) -> bool:
    try:
        return markers is None or evaluate_marker(marker, {"extra": "", **markers})
    except ValueError as error:
        raise _wrong_marker(at, str(error)) from None


def _wrong_marker(at: Location, seen: str) -> InputError:
    return InputError(DOING, at.file, f"line {at.line}: {seen}", "write a marker such as python_version >= '3.10'")
