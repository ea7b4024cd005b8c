"""A draft of a matrix entry about a difference, to be finished by hand as docs/how-to/entry.md says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from packaging.version import Version

from compatcheck.results.comparisons import Cause, Comparison, Difference

_TODO = "TODO"


def text(found: Comparison, cause: Cause, today: str) -> str:
    """The entry's file as TOML, on the assumption that NEW is wrong; empty strings are never left where text is due."""
    return "\n".join(_lines(found, cause, today)) + "\n"


def _lines(found: Comparison, cause: Cause, today: str) -> Iterator[str]:
    first = found.differences[0]
    yield "# A draft that `compatcheck compare` wrote: it knows that the result changes, not which side is right."
    yield "# It takes NEW as wrong. Fill in what is marked TODO; docs/how-to/entry.md says how."
    yield f'id = "CC-{today[:4]}-{_TODO}"'
    yield f"title = {_value(f'{cause.package} {cause.first} {_TODO}: does what wrong, when')}"
    yield 'impact = "silent-wrong"'
    yield 'confidence = "reproduced"'
    yield f"summary = {_value(_summary(first, cause))}"
    yield f'mechanism = "{_TODO}: why it happens, with the function"'
    yield f"published = {today}"
    yield f"reviewed = {today}"
    yield from ("", "[[affected]]")
    yield f"# {_TODO}: the release that ends it, and the settings and models that the case below has"
    yield f"distributions.{cause.package} = {_value(_range(cause))}"
    yield f"# {_TODO}: compared in {_value(first.case)}"
    if cause.last:
        yield from ("", "[[remedies]]", f"pins = {{ {cause.package} = {_value('==' + cause.last)} }}")
        yield f"why = {_value(f'{cause.last} computes as before.')}"
    yield from ("", "[[evidence]]", f'url = "{_TODO}: a public source"', 'kind = "reproduction"')
    yield 'supports = ["affected", "summary"]'
    own = {name: found.new.versions[name] for name in ("torch", "transformers") if name in found.new.versions}
    environment = {"distributions": {**own, cause.package: cause.first}}
    yield from ("", "[[examples]]", f"environment = {_value(environment)}")
    if cause.last:
        yield from ("", "[reproduce]", *_reproduce(found, cause))


def _summary(first: Difference, cause: Cause) -> str:
    where = f" at step {first.step}" if first.step else ""
    what = f"{first.what} {first.name}".strip()
    change = f"{first.old} with {cause.last}, {first.new} with {cause.first}"
    return f"In the case {first.case!r} the {what}{where} is {change}. {_TODO}: what the user sees."


def _range(cause: Cause) -> str:
    """From the release that changes the result on; upwards to it where OLD is the newer one."""
    falls = bool(cause.last) and Version(cause.last) > Version(cause.first)
    return f"<={cause.first}" if falls else f">={cause.first}"


def _reproduce(found: Comparison, cause: Cause) -> Iterator[str]:
    held = {name: found.old.versions[name] for name in ("torch", "transformers", "accelerate", "peft", "trl")
            if name in found.old.versions and name != cause.package}  # fmt: skip
    beside = {name: new for name, (_, new) in cause.beside.items() if name in held}
    for key, version, moved in (("bad", cause.first, beside), ("good", cause.last, {})):
        pins = {**held, **moved, cause.package: version}
        yield f"{key} = {_value([f'{name}=={each}' for name, each in pins.items()])}"


def _value(given: object) -> str:
    if isinstance(given, Mapping):
        return "{ " + ", ".join(f"{name} = {_value(each)}" for name, each in given.items()) + " }"
    if isinstance(given, list):
        return "[" + ", ".join(map(_value, given)) + "]"
    return json.dumps(given, ensure_ascii=False)
