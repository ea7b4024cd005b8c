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

_QUOTE = r"(?:\\{0,3}(?:\"\"\"|'''|[\"'`])|&quot;|&apos;|&#0?3[49];|&#[xX]2[27];)"
_NAME = (
    r"(?:(?<![A-Za-z])(?:hf|hub|hugging_?face(?:_hub)?|auth|access|api|bearer|session|refresh|bot|deploy|git(?:hub|lab)?"
    r"|gh|ci|job|registry|pypi|twine|wandb|slack|login|user|kaggle|modelscope|ms|npm|vault|security|personal|tracking"
    r"|databricks|codecov|service|read|write)[_-]?token|api[_-]?key|access[_-]?key(?:[_-]?id)?|account[_-]?key"
    r"|secret(?:[_-]?(?:access[_-]?)?key)?|private[_-]?key|(?:encryption|openai|wandb|storage|subscription)[_-]key"
    r"|(?<!etc/)passw(?:or)?d|passphrase|credentials?|(?-i:[A-Z]_(?:PASS|PWD)\b))"
)
_REFERENCE = (
    r"(?!(?:true|false|none|null|yes|no|str|bytes|optional)(?![\w-])|\d{1,3}(?![\w-])"
    r"|[$%]\w+(?![\w-])|[$%]?[{<(\[]|\$\$|%%|os\.(?:environ|getenv)|env[.(\[]|environ\b|\*\*\*"
    r"|[|>][+-]?\d?[ \t]*\n|!!?\w{1,20}\s|&\w{1,40}\s)"
)
_WHOLE_REFERENCE = (
    r"(?!(?:true|false|none|null|yes|no|\d{1,3}|[$%]\w+%?|[$%]?\{[^\"'`\n]*\}|\$\([^\"'`\n]*\)"
    r"|(?:<|&lt;)[^\"'`\n<>]*(?:>|&gt;)|\[[^\"'`\n]*\]|\*\*\*)(?P=quote))"
)
_QUOTED = rf"{_WHOLE_REFERENCE}(?:(?!(?P=quote))(?:[^\n\"'`<>\\]|\\[^\n\"'`])){{1,400}}(?=(?P=quote))"
_VALUE = rf"{_REFERENCE}[^\s\"'`,;&<>\\(){{}}\[\]]+"
_SEPARATOR = (
    rf"(?:{_QUOTE}?\]?\s*(?:[:?]?={{1,2}}>?|->|:)|\s+\|(?=\s)|(?:{_QUOTE}?\s*,)?\s*{_QUOTE}?\bvalue{_QUOTE}?\s*[:=]"
    rf"|{_QUOTE}\s*,(?!\s*{_QUOTE}?value\b))"
    r"\s*(?:!!?\w{1,20}\s+|&\w{1,40}\s+|[|>][+-]?\d?[ \t]*\n\s*)?"
)
_RANDOM = r"(?=[A-Za-z/+_.=~-]{0,60}\d)(?=[\d/+_.=~-]{0,60}[A-Za-z])[A-Za-z0-9/+_=~-]{12,}(?![\w(.\[])"
"""Long, with letters and digits: what a word of a language model is not."""
_QUERY_KEY = r"[\w.%-]{0,40}(?:token|key|secret|passw|signature|sig|credential|auth)[\w.%-]{0,40}"
_SHAPES = (
    r"(?<![_-])hf_(?=[A-Za-z0-9]*[A-Z0-9])[A-Za-z0-9]{10,}",
    r"hf_(?=[A-Za-z0-9]*[A-Z0-9])[A-Za-z0-9]{30,}",
    r"gh[opsur]_[A-Za-z0-9]{12,}",
    r"github_pat_\w{20,}",
    r"gl(?:pat|rt|dt|ptt|cbt|soat|agent)-[\w-]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"pypi-AgE[\w-]{16,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"nvapi-[\w-]{20,}",
    r"AIza[\w-]{35}",
    r"(?<![_-])sk-[\w-]{20,}",
    r"(?<![_-])eyJ[\w-]{6,}\.eyJ[\w-]{6,}(?:\.[\w-]*)?",
)
_RULES = (
    # an address: its user information, and what its query names
    LazyPattern(
        r"(:(?:\\?/){2})(?!git@)(?:[^\s/?#\"<>\\]+(?=@)|[^\s/?#@:\[\"'<>\\]*:(?!\d{1,5}/)[^\s\"'<>\\]{1,200}(?=@))",
        marks=("://", r":\/"),
    ),
    LazyPattern(
        rf"(proxy{_QUOTE}?\s*[:=]\s*{_QUOTE}?)[\w.%+-]{{1,60}}:(?!/)[^\s\"'<>\\/]{{1,200}}(?=@)",
        re.IGNORECASE,
        marks=("proxy",),
    ),
    LazyPattern(rf"([?&;]{_QUERY_KEY}=)[^\s&\"'<>#\\;]+", re.IGNORECASE, marks=("=",)),
    LazyPattern(r"(hooks\.slack\.com/services/)[\w/]+", marks=("hooks.slack.com",)),
    # a header
    LazyPattern(
        rf"((?:authorization|x-api-key|private-token){_QUOTE}?\s*[:=]\s*{_QUOTE}?(?:[A-Za-z][\w-]{{3,20}}[ \t]+)?"
        r"|\bbearer\s+(?=[^\s]{12}))[^\s\"'<>\\,&]+",
        re.IGNORECASE,
        marks=("authorization", "bearer", "x-api-key", "private-token"),
    ),
    LazyPattern(
        r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)(?:[\w+/=:,. \t\r\n]|\\[nr]|-(?!----))+",
        marks=("private key-----",),
    ),
    # a setting whose name says that it is secret; ``token`` alone is a word of language models too
    LazyPattern(
        rf"({_NAME}{_SEPARATOR}[rbf]?(?P<quote>{_QUOTE})){_QUOTED}",
        re.IGNORECASE,
        marks=("token", "key", "secret", "pass", "pwd", "credential"),
    ),
    LazyPattern(
        rf"({_NAME}{_SEPARATOR}(?:[rbf]?{_QUOTE})?|(?<![\w-])--(?:[\w-]{{1,40}}[_-])?{_NAME}\s+{_QUOTE}?"
        rf"|\b(?:env|arg|setenv|setx)\s+(?:\w{{1,40}}_)?{_NAME}\s+{_QUOTE}?|(?<![\w.])token\s*=\s*{_QUOTE}"
        rf"|\blogin\(\s*(?:\w{{1,20}}\s*=\s*)?{_QUOTE}){_VALUE}",
        re.IGNORECASE,
        marks=("token", "key", "secret", "pass", "pwd", "credential", "login("),
    ),
    LazyPattern(
        rf"((?<![\w-])--token[=\s]\s*{_QUOTE}?|(?<![\w.-])(?<!\w )token{_QUOTE}?\s*[:=]\s*{_QUOTE}?"
        rf"|(?-i:[A-Z\d]_(?:TOKEN|KEY|PAT))(?:{_QUOTE}?\]?\s*[:=]\s*|[ \t]+){_QUOTE}?){_RANDOM}",
        re.IGNORECASE,
        marks=("token", "_key", "_pat"),
    ),
    # what looks like one wherever it stands
    LazyPattern(
        rf"()(?<![A-Za-z0-9])(?:{'|'.join(_SHAPES)})(?![A-Za-z0-9])",
        marks=("hf_", "gh", "gl", "akia", "asia", "xox", "pypi-age", "npm_", "nvapi-", "aiza", "sk-", "eyj"),
    ),
)


def masked(text: str) -> str:
    """The text with `HIDDEN` in place of each credential: in addresses, headers and settings, and by its shape.

    Text that is escaped for a format, such as Markdown, is masked before: an escape changes names and shapes.
    """
    for rule in _RULES:
        text = rule.sub(_hidden, text)
    return text


def _hidden(found: re.Match[str]) -> str:
    """What marks the credential, and `HIDDEN`; the text keeps its number of lines."""
    return f"{found[1]}{HIDDEN}" + "\n" * found[0].count("\n", len(found[1]))


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
    return isinstance(name, str) and re.search(rf"{_NAME}\Z", name, re.IGNORECASE) is not None
