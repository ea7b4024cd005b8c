"""What `pip freeze`, `uv pip freeze` and `pip list --format=freeze` print: `name==version`, a line each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.bug_report._names import plausible
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.packages.names import normalised

TITLE = "pip freeze"
TYPED = True
_NAME = r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,60}[A-Za-z0-9])?)"
_PIN = LazyPattern(
    rf"\s*(?:[-*]\s)?`?{_NAME}(?:\[[\w,.-]{{0,60}}\])?\s?===?\s?([\w.+!-]{{1,80}})`?\s*(?:;.*|\s#.*|\s--[a-z].*)?\Z",
    marks=("==",),
)
_PLACE = re.compile(rf"\s*{_NAME}\s@\s(\S{{0,300}}/\S{{0,300}})\s*\Z")
_EDITABLE = LazyPattern(r"\s*-e\s+\S{1,300}[#&]egg=([A-Za-z0-9._-]{1,60})", marks=("egg=",))
_UNCONTROLLED = LazyPattern(
    rf"\s*#\s*Editable install.{{0,80}}\({_NAME}==([\w.+!-]{{1,80}})\)", marks=("editable install",)
)
_WHEEL = LazyPattern(r".*/([A-Za-z0-9_.]+)-([0-9][\w.+!%]*)-[\w.]+-[\w.]+-[\w.]+\.whl(?:[#?].*)?\Z", marks=(".whl",))


def recognises(block: Block) -> tuple[Line, ...]:
    forms = (_PIN, _PLACE, _EDITABLE, _UNCONTROLLED)
    return tuple(line for line in block.short() if any(form.match(line.text) for form in forms))


def read(lines: Sequence[Line]) -> Iterator[Claim]:
    for line in lines:
        pin = _PIN.match(line.text) or _UNCONTROLLED.match(line.text)
        place = _PLACE.match(line.text)
        editable = _EDITABLE.match(line.text)
        if pin and pin[1].lower() == "python":
            yield Claim("python", pin[2], line.number)
        elif pin and plausible(pin[1]):
            yield distribution_claim(pin[1], pin[2], line.number)
        elif place:
            yield _url_claim(place[1], place[2], line.number)
        elif editable:
            yield _unversioned(editable[1], "a checkout", line.number)


def _url_claim(name: str, url: str, number: int) -> Claim:
    wheel = _WHEEL.match(url)
    if wheel and normalised(wheel[1]) == normalised(name):
        return distribution_claim(name, wheel[2].replace("%2B", "+").replace("%2b", "+"), number)
    return _unversioned(name, url.partition("://")[0] or "a path", number)


def _unversioned(name: str, whence: str, number: int) -> Claim:
    return Claim(
        f"distributions.{normalised(name)}", None, number, f"lists it as installed from {whence}, without a version"
    )
