"""No secret of a URL reaches a new file."""

from __future__ import annotations

import re

_URL = re.compile(r"[A-Za-z][\w+.-]*://[^\s\"'<>]+")
_USER = re.compile(r"([\w+.-]+://)([^/]*)@")
_QUERY = re.compile(r"\?([^#]*)")
_SECRET_KEY = re.compile(r"(?i)(?:^|&)[^=&]*(?:token|sig|secret|passw|key|credential|auth)[^=&]*=(?!\$\{\w+\}(?:&|$))")
_REFERENCE = re.compile(r"\$\{[A-Z0-9_]+\}")


def without_credentials(text: str, known: str | None) -> str:
    """The text with its URLs bare, but for those that stand in ``known`` already.

    A reference to an environment variable is no secret, nor is the user of a remote shell.
    """
    return _URL.sub(lambda found: found[0] if known and found[0] in known else _bare(found[0]), text)


def _bare(url: str) -> str:
    bare = _USER.sub(_without_user, url, count=1)
    query = _QUERY.search(bare)
    return bare.replace(query[0], "", 1) if query and _SECRET_KEY.search(query[1]) else bare


def _without_user(found: re.Match[str]) -> str:
    user, _, password = found[2].partition(":")
    if _REFERENCE.fullmatch(password or user):
        return found[0]
    if found[1].endswith("ssh://"):
        return f"{found[1]}{user}@"
    return found[1]
