"""A requirement of one package on a line: requirements, constraints, pyproject.toml, environment.yml, a Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Callable

_SPEC = r"(?:===|[=<>!~]=|[<>=])\s*[^\s,;#'\"\])\\]+"
_HASHED = "--hash"


def named_version(specifier: str) -> str | None:
    """The version that a specifier names as good: that of `>=`, `==`, `~=` or `<=`."""
    found = re.findall(r"(>=|==|~=|<=)\s*([^\s,]+)", specifier)
    order = {"==": 0, ">=": 1, "~=": 1, "<=": 2}
    best = min(found, key=lambda each: order[each[0]], default=None)
    return best[1] if best else None


def pinned(line: int | None, name: str, version: str, specifier: str) -> Callable[[str], str | None]:
    """Pin the package on the line to the version, or to the range where it had one. A hashed pin is left alone."""

    def apply(text: str) -> str | None:
        lines = text.splitlines(keepends=True)
        at = _line_of(lines, line, name)
        if at is None or _HASHED in "".join(lines[at : at + 2]):
            return None
        found = _requirement(name).search(lines[at])
        assert found is not None
        old = found["specs"].strip()
        exact = re.fullmatch(r"(===?\s*|=)[^,*]+", old)
        new = f"{exact[1]}{version}" if exact else specifier
        start, end = found.span("specs")
        lines[at] = lines[at][:start] + new + lines[at][end:]
        return "".join(lines)

    return apply


def _requirement(name: str) -> re.Pattern[str]:
    spelled = re.sub(r"[-_.]+", "[-_.]+", re.escape(name).replace(r"\-", "-"))
    return re.compile(
        rf"(?<![\w.-]){spelled}(?:\[[^\]]*\])?(?P<specs>(?:\s*\(?{_SPEC}(?:\s*,\s*{_SPEC})*)?)(?![\w-])", re.I
    )


def _line_of(lines: list[str], line: int | None, name: str) -> int | None:
    pattern = _requirement(name)
    if line is not None and line <= len(lines) and pattern.search(lines[line - 1]):
        return line - 1
    found = [at for at, each in enumerate(lines) if pattern.match(each.lstrip(" -\"'"))]
    return found[0] if len(found) == 1 else None
