"""Credentials, by the names and shapes that they have: no report, snapshot or error line holds one.

Shapes: https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github,
https://huggingface.co/docs/hub/security-tokens,
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html,
https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1 (user information of an address) and
https://www.rfc-editor.org/rfc/rfc7519 (JSON Web Tokens). Every expression takes time linear in the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from compatcheck.files.lazy_patterns import LazyPattern

HIDDEN = "***"

_QUOTE = r"(?:\\{0,3}[\"'`]|&quot;|&apos;|&#0?3[49];|&#[xX]2[27];)"
_NAME = (
    r"(?:(?:hf|hub|hugging_?face(?:_hub)?|auth|access|api|bearer|session|refresh|bot|deploy|git(?:hub|lab)?|gh|ci|job"
    r"|registry|pypi|twine|wandb|slack|login|user|kaggle|modelscope|ms)[_-]?token"
    r"|api[_-]?key|access[_-]?key(?:[_-]id)?|secret(?:[_-](?:access[_-])?key)?|private[_-]key"
    r"|passw(?:or)?d|passphrase|credentials?)"
)
_REFERENCE = r"(?!(?:true|false|none|null|yes|no|str|bytes|optional)\b|[$%{<(\[]|os\.|env|\*\*\*|\d{1,3}\b)"
_VALUE = rf"{_REFERENCE}[^\s\"'`,;&<>\\(){{}}\[\]]+"
_QUERY_KEY = r"[\w.%-]{0,40}(?:token|key|secret|passw|signature|sig|credential|auth)[\w.%-]{0,40}"
_SHAPES = (
    r"hf_(?=[A-Za-z0-9]*[A-Z0-9])[A-Za-z0-9]{10,}",
    r"gh[opsur]_[A-Za-z0-9]{12,}",
    r"github_pat_\w{20,}",
    r"glpat-[\w-]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"pypi-AgE[\w-]{16,}",
    r"nvapi-[\w-]{20,}",
    r"AIza[\w-]{35}",
    r"sk-[\w-]{20,}",
    r"eyJ[\w-]{6,}\.eyJ[\w-]{6,}\.[\w-]*",
)
_RULES = (
    # an address: its user information, and what its query names
    LazyPattern(r"(://)(?!git@)[^\s/?#@\"'<>\\]+(?=@)", marks=("://",)),
    LazyPattern(rf"([?&;]{_QUERY_KEY}=)[^\s&\"'<>#\\;]+", re.IGNORECASE, marks=("=",)),
    LazyPattern(r"(hooks\.slack\.com/services/)[\w/]+", marks=("hooks.slack.com",)),
    # a header
    LazyPattern(
        rf"((?:authorization|x-api-key|private-token){_QUOTE}?\s*[:=]\s*{_QUOTE}?(?:(?:bearer|basic|token)\s+)?"
        r"|\bbearer\s+(?=[^\s]{12}))[^\s\"'<>\\,&]+",
        re.IGNORECASE,
        marks=("authorization", "bearer", "x-api-key", "private-token"),
    ),
    LazyPattern(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL, marks=("private key-----",)),
    # a setting whose name says that it is secret; ``token`` alone is a word of language models too
    LazyPattern(
        rf"((?<![A-Za-z]){_NAME}{_QUOTE}?\]?\s*[=:,]\s*(?:[rbf]?{_QUOTE})?|(?<![\w-])--(?:[\w-]{{1,40}}[_-])?{_NAME}\s+{_QUOTE}?"
        rf"|\b(?:env|arg|setenv)\s+(?:\w{{1,40}}_)?{_NAME}\s+{_QUOTE}?|(?<![\w.])token\s*=\s*{_QUOTE}"
        rf"|\blogin\(\s*(?:\w{{1,20}}\s*=\s*)?{_QUOTE}){_VALUE}",
        re.IGNORECASE,
        marks=("token", "key", "secret", "passw", "passphrase", "credential", "login("),
    ),
    # what looks like one wherever it stands
    LazyPattern(
        rf"()(?<![\w-])(?:{'|'.join(_SHAPES)})(?![A-Za-z0-9])",
        marks=("hf_", "gh", "glpat-", "akia", "asia", "xox", "pypi-age", "nvapi-", "aiza", "sk-", "eyj"),
    ),
)


def masked(text: str) -> str:
    """The text with `HIDDEN` in place of each credential: in addresses, headers and settings, and by its shape."""
    for rule in _RULES:
        text = rule.sub(rf"\1{HIDDEN}", text)
    return text


def without_secrets(value: Any) -> Any:
    """A tree of mappings and lists with every text `masked`, and `HIDDEN` for a text under a secret name."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if isinstance(inner, str) and _is_secret(key) else without_secrets(inner)
            for key, inner in value.items()
        }
    return [without_secrets(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def without_homes(text: str) -> str:
    """The text with ``~`` for the home folder of anybody, and so without the name of its user."""
    own = re.escape(os.path.expanduser("~").rstrip("/"))
    places = [
        r"/(?:home|Users)/[^/\s\"':]+",
        r"[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)[^\\/\s\"':]+",
        *filter(None, (own,)),
    ]
    return re.sub(rf"(?:{'|'.join(places)})(?=[/\\\s\"':]|\Z)", "~", text)


def _is_secret(name: object) -> bool:
    return isinstance(name, str) and re.search(rf"(?<![A-Za-z]){_NAME}\Z", name, re.IGNORECASE) is not None
