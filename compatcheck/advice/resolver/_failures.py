"""What uv said when it failed, in one line and in the user's terms."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compatcheck.advice import _uv
from compatcheck.advice._credentials import redacted
from compatcheck.advice.model import Demands, Place, Unsolvable, Wanted
from compatcheck.advice.requirement_text import pin_in
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.packages.names import normalised

_EXACT = re.compile(r"==[^,*]+")
_ERROR = re.compile(r"^(?:error:|[ \t]*×)", re.MULTILINE)
_MARKS = re.compile(r"^[ \t]*(?:[×│]|error:)?[ \t]*", re.MULTILINE)
_CAUSE = re.compile(r"\s*\n[ \t]*(?:cause:|Caused by:|[├╰]─▶)[ \t]*")
_BUILD = re.compile(r"Failed to (?:download and )?build `([A-Za-z0-9._-]+)(?:==|\s*@)")
_NOT_BUILT = re.compile(r"Building source distributions for `([A-Za-z0-9._-]+)` is disabled")
_BUILDS_DISABLED = re.compile(r"building from source is disabled for\b")
NO_BUILD = "allow builds with `compatcheck pin --build`, which runs the code of these packages"
_NO_SOLUTION = re.compile(r"No solution found when resolving dependencies(?: for split[^:\n]*)?:?")
_CONTRADICTION = re.compile(
    r"Because you require \S+ and \S+, we can conclude that your requirements are unsatisfiable\.?"
)
_ADDRESS = re.compile(r"[`(]?(\w+://[^\s`)]+)[`)]?")
_REFUSED = re.compile(r"An index(?: URL)? \((\S+)\) (?:could not be queried due to|returned) (.+?)(?:\.\s|\.?$)")
_UNREACHED = ("error sending request", "client error (", "server error (", "Request failed after", "timed out")
_NOT_THERE = "HTTP status client error"
_POSITION = re.compile(r"`?-`? at (position|line) (\d+)")
_NOT_CACHED = re.compile(r"(?<![\w.-])([\w.-]+) was not found in the cache")
_LAST_WORDS = re.compile(r"^\s*(\w+(?:Error|Exception)\b.*)$", re.MULTILINE)


class IndexDown(InputError):
    """An index did not answer, or did not let us in; or it may not be asked, and uv's cache does not know the rest."""


def failure(done: _uv.Done, wanted: Wanted, demands: Demands, place: Place) -> CompatcheckError:
    """The error that uv's words stand for: no solution, an index that does not answer, or anything else."""
    error = _ERROR.search(done.stderr)
    text = redacted(done.stderr[error.start() :] if error else done.stderr)
    if refused := _REFUSED.search(_one_line(text)):
        return IndexDown("asking", refused[1], refused[2], "give uv the credentials of this index")
    unsolvable = _NO_SOLUTION.search(text) is not None
    if not unsolvable and _unreached(text):
        return _index_down(text, place)
    explanation = _one_line(_NO_SOLUTION.sub("", text))
    if not unsolvable:
        placed = _speaker(explanation, wanted) + _POSITION.sub(
            lambda match: _place_of(wanted, match[1], int(match[2])), explanation
        )
        advice = "fix the problem that uv reports, then run this command again"
        if _NOT_BUILT.search(text):
            advice = NO_BUILD
        return InputError(
            "resolving the requirements with", "uv", _uv.shortened(placed or f"status {done.status}"), advice
        )
    uncached = dict.fromkeys(_NOT_CACHED.findall(explanation))
    if uncached and place.offline and not demands.specifiers:
        advice = "run this once without --offline with access to the index, or pass a folder with --find-links"
        return IndexDown("resolving from", "uv's cache", f"the cache contains no file of {', '.join(uncached)}", advice)
    sources = tuple(dict.fromkeys(_sources(explanation, wanted, demands)))
    advice = "relax one of these requirements"
    if _BUILDS_DISABLED.search(text):
        advice = NO_BUILD
    if "network was disabled" in text:
        advice = "run this without --offline with access to the index"
    if len(sources) > 1 and _CONTRADICTION.fullmatch(explanation):
        return Unsolvable("resolving", "the requirements", " and ".join(sources), advice)
    behind = f" ({', '.join(sources)})" if sources else ""
    return Unsolvable("resolving", "the requirements", explanation.rstrip(".") + behind, advice)


def unbuildable(stderr: str) -> tuple[str | None, str]:
    """The distribution whose metadata could not be had by building it, and why; no name where that is not at fault."""
    refused = _NOT_BUILT.search(stderr)
    if refused:
        return normalised(refused[1]), (
            f"the requirements of {refused[1]} are known only after a build; allow it with --build"
        )
    match = _BUILD.search(stderr)
    if match is None or "build backend" not in stderr.lower():
        return None, ""
    last = _LAST_WORDS.findall(stderr)
    seen = f" ({redacted(last[-1]).strip():.200})" if last else ""
    return normalised(match[1]), f"the requirements of {match[1]} are known only after a build, which fails here{seen}"


def _unreached(text: str) -> bool:
    return any(mark in text for mark in _UNREACHED) and _NOT_THERE not in text


def _index_down(text: str, place: Place) -> IndexDown:
    address = _ADDRESS.search(text)
    causes = [_ADDRESS.sub("", cause).removesuffix(" for url ") for cause in _CAUSE.split(text)[1:]]
    seen = _one_line(causes[-1]) if causes else "the server does not answer"
    advice = "check the network and uv's index settings"
    return IndexDown(
        "fetching",
        address[1] if address else "a distribution",
        seen,
        advice if place.offline else f"{advice}, or use uv's cache with --offline",
    )


def _one_line(text: str) -> str:
    return " ".join(_MARKS.sub("", _CAUSE.sub(": ", text.strip())).split()).removeprefix(": ")


def _place_of(wanted: Wanted, unit: str, position: int) -> str:
    """Where the user wrote what stands at a position of our input, a byte from 0 or a line from 1."""
    left = position if unit == "position" else position - 1
    for line in wanted.lines:
        if line.asked is not None:
            left -= len((line.asked + "\n").encode()) if unit == "position" else 1
            if left < 0:
                return line.where
    return "the requirements"


def _speaker(explanation: str, wanted: Wanted) -> str:
    """Where the address stands that uv speaks of without a position; nothing where it gives one."""
    for line in wanted.lines:
        address = redacted(line.asked or "").partition(" ; ")[0].split()[-1:]
        if address and "/" in address[0] and address[0] in explanation and not _POSITION.search(explanation):
            return f"{line.where}: "
    return ""


def _sources(explanation: str, wanted: Wanted, demands: Demands) -> Iterator[str]:
    """Who asks for what the explanation speaks of; uv itself tells neither files nor the matrix apart."""
    for name, specifier in demands.specifiers.items():
        if specifier and not _EXACT.fullmatch(specifier) and _speaks_of(explanation, name):
            yield f"the matrix requires {name}{specifier}"
    for line in wanted.lines:
        limit = demands.specifiers.get(line.name or "", "")
        stated = line.asked if pin_in(line.text) is None or not limit else line.text
        if pin_in(line.text) and limit and not _EXACT.fullmatch(limit):
            continue
        if line.name and line.at and stated and stated.strip() != line.name and _speaks_of(explanation, line.name):
            yield f"{line.where} has the requirement {redacted(stated)}"


def _speaks_of(explanation: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", explanation, re.IGNORECASE) is not None
