"""Credentials, by the names and shapes that they have: no report, snapshot or error line holds one.

Shapes: https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github,
https://huggingface.co/docs/hub/security-tokens,
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html,
https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1 (user information of an address) and
https://www.rfc-editor.org/rfc/rfc7519 (JSON Web Tokens). Every expression takes time linear in the text.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import Any

from compatcheck.files.lazy_patterns import LazyPattern

HIDDEN = "***"

_KEYS_OF_ACCOUNTS = ("key", "token", "pw")
_HARMLESS_UP_TO = 999

_QUOTE = r"(?:\\{0,3}(?:\"\"\"|'''|[\"'`])|&quot;|&apos;|&#0?3[49];|&#[xX]2[27];)"
_NAME = (
    r"(?:(?<![A-Za-z])(?:hf|hub|hugging_?face(?:_hub)?|auth|access|api|bearer|session|refresh|bot|deploy|git(?:hub|lab)?"
    r"|gh|ci|job|registry|pypi|twine|wandb|slack|login|user|kaggle|modelscope|ms|npm|vault|security|personal|tracking"
    r"|databricks|codecov|service|read|write)[_-]?token|(?<![A-Za-z])(?:api|auth|access)\.token|api[._-]?key"
    r"|access[._-]?key(?:[_-]?id)?|account[_-]?key"
    r"|secret(?:[_-]?(?:access[_-]?)?key)?|private[_-]?key|(?:encryption|openai|wandb|storage|subscription|signing|deploy"
    r"|license|master|webhook|swanlab|comet|anthropic|azure)[_-]key"
    r"|(?<!etc/)passw(?:or)?d|passphrase|credential|(?-i:[A-Z]_(?:PASS|PWD)\b))(?:s|_?\d{1,2})?"
)
_REFERENCE = (
    r"(?!(?:true|false|none|null|yes|no|str|bytes|optional)(?![\w-])|\d{1,3}(?![\w-])"
    r"|[$%]\w+(?![\w-])|[$%]?[{<(\[]|\$\$|%%|os\.(?:environ|getenv)|env[.(\[]|environ\b|\*\*\*"
    r"|-\s|[|>][+-]?\d?[ \t]*\n|!!?\w{1,20}\s|&\w{1,40}\s)"
)
_WHOLE_REFERENCE = (
    r"(?!(?:true|false|none|null|yes|no|\d{1,3}|[$%]\w+%?|[$%]?\{[^\"'`\n]*\}|\$\([^\"'`\n]*\)"
    r"|(?:<|&lt;)[^\"'`\n<>]*(?:>|&gt;)|\[[^\"'`\n]*\]|\*\*\*)(?P=quote))"
)
_QUOTED = rf"{_WHOLE_REFERENCE}(?:(?!(?P=quote))(?:[^\n\"'`<>\\]|\\[^\n\"'`])){{1,400}}(?=(?P=quote))"
_VALUE = rf"{_REFERENCE}[^\s\"'`,;&<>\\(){{}}\[\]]+"
_SEPARATOR = (
    rf"(?:{_QUOTE}?\]?\s*(?:[:?]?={{1,2}}>?|->|:[-+?]?(?![-+?])|[\uff1a\uff1d])|\s+\|(?=\s)"
    rf"|(?:{_QUOTE}?\s*,|{_QUOTE}(?=\s))?\s*{_QUOTE}?\bvalue{_QUOTE}?\s*[:=]"
    rf"|{_QUOTE}\s*,(?!\s*{_QUOTE}?value\b)|{_QUOTE}\)\s*or(?=\s))"
    r"\s*(?:!!?\w{1,20}\s+|&\w{1,40}\s+|[|>][+-]?\d?[ \t]*\n\s*)?"
)
_DEFAULT = (
    r"(?:\$\{(?:oc\.env:)?\w{1,60}(?::?[-=+]|,)\s*"
    rf"|\$\(\s*(?:echo|printf)\s+(?:-\w{{1,4}}\s+)?(?:{_QUOTE}?%s{_QUOTE}?\s+)?)"
)
"""What stands before a value that a reference holds, as in ``${X:-value}`` and ``$(echo value)``."""
_RANDOM = r"(?=[A-Za-z/+_.=~-]{0,60}\d)(?=[\d/+_.=~-]{0,60}[A-Za-z])[A-Za-z0-9/+_=~-]{12,}(?![\w(.\[])"
"""Long, with letters and digits: what a word of a language model is not."""
_DENSE = r"(?=[A-Za-z+=]{0,60}\d)(?=[\d+=]{0,60}[A-Za-z])[A-Za-z0-9+=]{16,}(?![\w(./\[-])"
"""The same without a mark between words: the value of a name that many harmless things have."""
_LOGIN = r"(?:wandb|swanlab|clearml|comet|neptune|modelscope|kaggle|huggingface-cli|hf(?:[ \t]+auth)?)[ \t]+login"
_ACCOUNT = r"(?:api|auth|openai|anthropic|azure|wandb|swanlab|comet|neptune|hub|huggingface|kaggle|modelscope|s3|aws)"
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
    r"(?:gsk_|xai-|r8_|pplx-)(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{20,}",
    r"dckr_[po]at_[\w-]{20,}",
    r"AIza[\w-]{35}",
    r"ya29\.[\w.-]{20,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    r"(?<![_-])sk-[\w-]{20,}",
    r"(?<![_-])eyJ[\w-]{6,}\.eyJ[\w-]{6,}(?:\.[\w-]*)?",
)
_SHAPED = LazyPattern(
    rf"()(?<![A-Za-z0-9])(?:{'|'.join(_SHAPES)})(?![A-Za-z0-9])",
    marks=(
        *("hf_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "glrt-", "gldt-", "glptt-"),
        *("glcbt-", "glsoat-", "glagent-", "akia", "asia", "xox", "pypi-age", "npm_", "nvapi-", "aiza", "sk-"),
        *("gsk_", "xai-", "r8_", "pplx-", "dckr_", "eyj", "ya29.", "sg."),
    ),
)
"""What looks like a credential wherever it stands."""
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
    LazyPattern(
        r"(hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/\d{1,30}/|/open-apis/bot/v2/hook/)[\w/-]+",
        marks=("hooks.slack.com", "/api/webhooks/", "/open-apis/bot/"),
    ),
    # a command that logs in
    LazyPattern(
        rf"((?:(?<![\w-])(?:-u|--user|--proxy-user|-U)[ \t=]{{1,4}}|\bcurl[ \t]+(?:-[A-Za-z]{{1,8}}[ \t]+)?-u){_QUOTE}?"
        r"[\w.@+%-]{1,60}:)(?!\d{1,6}(?!\w)|[$%{(/]|\*\*\*)[^\s\"'<>\\]+",
        marks=("-u", "--user", "--proxy-user"),
    ),
    LazyPattern(
        rf"(\b{_LOGIN}(?:[ \t]+(?:--?[\w-]{{1,40}}(?:=[^\s]{{1,200}})?|https?://[^\s]{{1,200}})){{0,8}}"
        rf"[ \t]+{_QUOTE}?)"
        r"(?=\S{0,60}\d)[\w-]{16,}",
        re.IGNORECASE,
        marks=("login",),
    ),
    LazyPattern(
        rf"(\b(?:(?:docker|podman|helm|skopeo|crane)\b[^\n]{{0,200}}?[ \t]-p[ \t=]|sshpass[ \t]+-p[ \t]?"
        rf"|(?:mysql|mariadb)\w{{0,20}}\b[^\n]{{0,200}}?[ \t]-p|redis-cli\b[^\n]{{0,200}}?[ \t]-a[ \t]"
        rf"|curl\b[^\n]{{0,200}}?[ \t](?:-b|--cookie)[ \t=]){_QUOTE}?)"
        r"(?![$%{(]|\*\*\*|\d{1,5}:\d{1,5}(?!\w))[^\s\"'<>\\]+",
        marks=("-p", "-a", "-b", "--cookie"),
    ),
    LazyPattern(
        rf"(\becho[ \t]+(?:-n[ \t]+)?{_QUOTE}?)(?![$%{{(]|\*\*\*)[^\s\"'|<>\\]+"
        rf"(?={_QUOTE}?[ \t]*\|[^\n|]{{0,200}}(?:--password-stdin|\blogin\b))",
        marks=("login", "--password-stdin"),
    ),
    LazyPattern(
        rf"(\blogin[ \t]+[^\s]{{1,80}}\s+password\s+"
        rf"|\b(?:configure|config)[ \t]+set[ \t]+(?:[\w./:-]{{1,60}}[._:])?{_NAME}[ \t]+{_QUOTE}?"
        rf"|(?:\bauth\s*=\s*|HTTP(?:Basic|Digest)Auth)\(\s*{_QUOTE}[^\"'\n\\]{{0,80}}{_QUOTE}\s*,\s*{_QUOTE})"
        r"(?![$%{(]|\*\*\*)[^\s\"'<>\\]+",
        re.IGNORECASE,
        marks=("password", " set ", "auth"),
    ),
    # a header
    LazyPattern(
        rf"((?:authorization|x-api-key|private-token){_QUOTE}?\s*[:=]\s*{_QUOTE}?(?:[A-Za-z][\w-]{{3,20}}[ \t]+)?"
        r"|\bbearer[\s:]+(?=[^\s]{12}))[^\s\"'<>\\,&]+",
        re.IGNORECASE,
        marks=("authorization", "bearer", "x-api-key", "private-token"),
    ),
    LazyPattern(
        rf"(\b(?:set-)?cookie2?{_QUOTE}?[ \t]*[:=][ \t]*{_QUOTE}?)(?!\*\*\*)[^\s\"'<>\\{{(\[][^\n\"'<>\\]*",
        re.IGNORECASE,
        marks=("cookie",),
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
        rf"({_NAME}{_SEPARATOR}(?:[rbf]?{_QUOTE})?(?:{_DEFAULT}{_QUOTE}?)?|oc\.env:(?:\w{{1,40}}_)?{_NAME},\s*{_QUOTE}?"
        rf"|(?<![\w-])--(?:[\w.-]{{1,40}}[._-])?{_NAME}\s+{_QUOTE}?"
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
    LazyPattern(
        rf"((?<![\w.-])_?(?:key|pass|pwd|auth|sig){_QUOTE}?[ \t]*[:=][ \t]*{_QUOTE}?){_DENSE}",
        re.IGNORECASE,
        marks=("key", "pass", "pwd", "auth", "sig"),
    ),
    LazyPattern(
        rf"((?:密码|口令|密钥|私钥)(?:[ \t]*[:=\uff1a\uff1d]|[ \t]*[是为][:\uff1a]?)[ \t]*{_QUOTE}?)"
        rf"(?=[!-~]{{6}}){_REFERENCE}(?:(?![\"'`,;&<>\\(){{}}\[\]])[!-~])+",
        marks=("密码", "口令", "密钥", "私钥"),
    ),
    LazyPattern(
        rf"(令牌(?:[ \t]*[:=\uff1a\uff1d]|[ \t]*[是为][:\uff1a]?)[ \t]*{_QUOTE}?){_RANDOM}",
        marks=("令牌",),
    ),
    # an element of XML with such a name or key
    LazyPattern(
        rf"((?:<|&lt;)(?:\w{{1,20}}\s+(?:key|name|id)\s*=\s*{_QUOTE})?[\w.:-]{{0,40}}?{_NAME}{_QUOTE}?(?:\s[^<>\n]{{0,100}})?"
        rf"(?:>|&gt;)\s*)(?!\*\*\*)(?:(?!&lt;){_REFERENCE}[^<>\n&]|&amp;)(?:[^<>\n&]|&(?!lt;)){{0,400}}(?=(?:<|&lt;)/)",
        re.IGNORECASE,
        marks=("</", "&lt;/"),
    ),
    # a list or a table under such a name, and what stands below the name of a service
    LazyPattern(
        rf"((?:{_NAME}|(?<![A-Za-z])cookies){_QUOTE}?\]?\s*[:=]\s*(?:[\[(](?=[^\[\](){{}}\w$]{{0,40}}\w)"
        rf"|\{{(?=\s*{_QUOTE}[^\"'\n{{}}]{{1,60}}{_QUOTE}\s*:)))(?!\*\*\*)[^\[\](){{}}]{{1,4000}}(?=[\])}}])",
        re.IGNORECASE,
        marks=("token", "key", "secret", "pass", "pwd", "credential", "cookies"),
    ),
    LazyPattern(
        rf"((?<![\w-]){_ACCOUNT}{_QUOTE}?[ \t]*:(?:[ \t]*\n(?:[ \t]+[^\n]{{0,200}}\n){{0,12}}?[ \t]+"
        rf"|[ \t]*\{{[^{{}}]{{0,400}}?(?<![\w-])){_QUOTE}?(?:key|token|pw){_QUOTE}?[ \t]*:[ \t]*{_QUOTE}?){_VALUE}",
        re.IGNORECASE,
        marks=("key", "token", "pw"),
    ),
    _SHAPED,
)


_SECRET_NAME = (
    rf"{_NAME}\Z|(?-i:[A-Z\d]_(?:TOKEN|KEY|PAT)\Z)|密码\Z|口令\Z|密钥\Z|\A(?:set-)?cookies?\Z"
    r"|\A(?:proxy-)?authorization\Z"
)
_MAYBE_SECRET_NAME = re.compile(r"(?:token|key|pass|pwd|auth|sig|_pat)\d*\Z", re.IGNORECASE)
_SHORTEST_SHAPE = 12
_BLOCKS = LazyPattern(
    rf"{_NAME}{_QUOTE}?[ \t]*:[ \t]*\n(?:(?:[ \t]*-[ \t]+[^\n]*(?:\n|\Z)){{1,200}}"
    r"|(?P<indent>[ \t]+)[^\s-][^\n]*(?:\n(?P=indent)[^\n]*){0,40})",
    re.IGNORECASE,
    marks=("token", "key", "secret", "pass", "pwd", "credential"),
)
_EXCERPT_CHARACTERS = 4096
_ITEM = re.compile(r"^([ \t]*-[ \t]+)(?!\*\*\*|[$%{]|\w+[ \t]*:(?:[ \t]|$))[^\n]+", re.MULTILINE)
_MEMBER = re.compile(rf"^([ \t]+[\w\"'.-]{{1,60}}[ \t]*:[ \t]*{_QUOTE}?){_RANDOM}", re.MULTILINE)


def masked(text: str) -> str:
    """The text with `HIDDEN` in place of each credential: in addresses, headers and settings, and by its shape.

    Text that is escaped for a format, such as Markdown, is masked before: an escape changes names and shapes.
    """
    lower = text.lower()
    text = _BLOCKS.sub(_hide_block, text, lower=lower)
    for rule in _RULES:
        text = rule.sub(_hidden, text, lower=lower)
    return text


def without_shapes(text: str) -> str:
    """The text with `HIDDEN` in place of what looks like a credential whatever stands around it."""
    return _SHAPED.sub(_hidden, text)


def excerpt(text: str, characters: int) -> str:
    """The beginning of a text, `masked` before it is cut: a credential that is cut has no form to recognise."""
    return masked(text[:_EXCERPT_CHARACTERS])[:characters]


def _hide_block(found: re.Match[str]) -> str:
    """The lines below a secret name: each item of a list, and each member of a table that looks like a credential."""
    return (_MEMBER if found["indent"] else _ITEM).sub(_hidden, found[0])


def _hidden(found: re.Match[str]) -> str:
    """What marks the credential, and `HIDDEN`; the text keeps its number of lines."""
    return f"{found[1]}{HIDDEN}" + "\n" * found[0].count("\n", len(found[1]))


def without_secrets(value: Any, name: object = None) -> Any:
    """A tree of mappings and lists with every text `masked`, and `HIDDEN` for what a secret name leads to.

    ``name`` is that of the value, if it has one.
    """
    if is_secret_name(name):
        return _hidden_leaves(value)
    if isinstance(value, str):
        return _masked_below(name, value) if isinstance(name, str) else _masked_value(value)
    if isinstance(value, Mapping):
        is_account = "username" in value or (isinstance(name, str) and re.fullmatch(_ACCOUNT, name, re.IGNORECASE))
        named = value.get("name", value.get("key"))
        return {
            _masked_key(key): _hidden_leaves(inner)
            if (is_account and key in _KEYS_OF_ACCOUNTS) or (key == "value" and is_secret_name(named))
            else without_secrets(inner, key)
            for key, inner in value.items()
        }
    return [without_secrets(inner) for inner in value] if isinstance(value, (list, tuple)) else value


@functools.lru_cache(maxsize=1 << 14)
def _masked_value(text: str) -> str:
    """The text `masked`, once for all snapshots of a cluster: most of their texts are the same."""
    return masked(text)


def _masked_below(name: str, value: str) -> str:
    """The value as it is `masked` behind its name in a text: ``token: `` hides what looks random."""
    if not _MAYBE_SECRET_NAME.search(name):
        return _masked_value(value)
    before = f"{name.rpartition('.')[2].rstrip('0123456789')}="
    text = _masked_value(before + value)
    return text[len(before) :] if text.startswith(before) else HIDDEN


def _masked_key(key: Any) -> Any:
    return _masked_value(key) if isinstance(key, str) and len(key) >= _SHORTEST_SHAPE else key


def _hidden_leaves(value: Any) -> Any:
    """The value with `HIDDEN` for each text and each long number in it."""
    if isinstance(value, Mapping):
        return {key: _hidden_leaves(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_hidden_leaves(inner) for inner in value]
    is_long = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) > _HARMLESS_UP_TO
    return HIDDEN if isinstance(value, str) or is_long else value


def without_homes(text: str) -> str:
    """The text with ``~`` for the home folder of anybody, and so without the name of its user."""
    own = re.escape(os.path.expanduser("~").rstrip("/"))
    places = [
        r"/(?:home|Users)/[^/\s\"':]+",
        r"[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)[^\\/\s\"':]+",
        *filter(None, (own,)),
    ]
    return re.sub(rf"(?:{'|'.join(places)})(?=[/\\\s\"':]|\Z)", "~", text)


def is_secret_name(name: object) -> bool:
    return isinstance(name, str) and re.search(_SECRET_NAME, name, re.IGNORECASE) is not None
