"""No secret of a URL reaches a new file or the screen."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from compatcheck.files.secrets import is_secret_name, without_shapes

_URL = re.compile(r"[A-Za-z][\w+.-]*://[^\s\"'`<>]+")
_USER = re.compile(r"([\w+.-]+://)([^/]*(?=@)|[^/:@\[]*:(?!\d{1,5}/).*(?=@))@")
"""What stands before the host: up to the first slash, or with one in a password, which no port number is."""
_WITHOUT_SCHEME = re.compile(r"(?<![\w./:@%+-])[\w.%+-]+:(?!//)[^\s\"'`<>]+@(?=[\w\[])")
_QUERY = re.compile(r"\?([^#]*)")
_SECRET_KEY = re.compile(r"(?i)(?:^|&)[^=&]*(?:token|sig|secret|passw|key|credential|auth)[^=&]*=(?!\$\{\w+\}(?:&|$))")
_REFERENCE = re.compile(r"\$\{[A-Z0-9_]+\}")
OMITTED = "# compatcheck: the credentials of URLs are omitted, keep them in a .netrc file or a keyring"
_SHORTEST = 4
"""Characters of what counts as a secret by the name of its variable."""


def redacted(text: str) -> str:
    """The text with ``****`` in the place of the credentials and the query of every URL in it, with a scheme or not.

    So is what a variable with the name of a secret contains: a list of requirements may refer to it anywhere.
    """
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and is_secret_name(name):
            text = text.replace(value, "****").replace(quote(value), "****")
    text = _URL.sub(lambda url: _QUERY.sub("?****", _USER.sub(lambda user: _bare_user(user, "****@"), url[0])), text)
    return _WITHOUT_SCHEME.sub("****@", text)


def without_credentials(text: str, known: str | None = None) -> str:
    """The text with its URLs bare, but for those that stand in ``known`` already.

    A reference to an environment variable is no secret, nor is the user of a remote shell.
    """
    return _URL.sub(lambda url: url[0] if known and url[0] in known else _bare(url[0]), text)


def _bare(url: str) -> str:
    bare = _USER.sub(_bare_user, url)
    query = _QUERY.search(bare)
    if query and (_SECRET_KEY.search(query[1]) or without_shapes(query[1]) != query[1]):
        bare = bare.replace(query[0], "", 1)
    return without_shapes(bare)


def _bare_user(found: re.Match[str], hidden: str = "") -> str:
    user, _, password = found[2].partition(":")
    if _REFERENCE.fullmatch(password or user):
        return found[0]
    return found[1] + (f"{user}@" if found[1].endswith("ssh://") else hidden)
