"""A report as one file that loads nothing, or as a part of a page of somebody else's, such as a notebook."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from compatcheck import __version__
from compatcheck.language import current
from compatcheck.report.pages import styles
from compatcheck.report.pages.markup import Html, tag, whole_page

_ROOT = ".compatcheck"
_ROOT_ELSEWHERE = _ROOT * 3
"""The same element, so that our rules count more than those of the page around it."""
_RESET = f"{_ROOT_ELSEWHERE} :where(:not(svg, svg *)) {{ all: revert; }}\n"
_LIGHT_PLACES = ("[data-jp-theme-light=true]", ".vscode-light", "html[theme=light]")
_DARK_PLACES = ("[data-jp-theme-light=false]", ".vscode-dark", "html[theme=dark]")
"""How JupyterLab, Visual Studio Code and Colab mark their themes, which need not be that of the system."""


def page(title: str, *body: str | None) -> str:
    """A whole page with its style and script inside, to be opened from a file."""
    style, script = Html(_style(_ROOT) + _own("page.css")), Html(styles.copy_script())
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    head = (
        tag("meta", name="generator", content=f"compatcheck {__version__}"),
        tag("style", style),
        tag("script", script),
    )
    return whole_page(title, policy, head, tag("body", tag("main", *body), class_="compatcheck"), current())


def element(*body: str | None) -> str:
    """The same without a script and without ids, so that several can stand on one page.

    Where a notebook strips the style, headings, lists and tables are left to the notebook's own.
    """
    return tag("div", tag("style", Html(_RESET + _style(_ROOT_ELSEWHERE))), *body, class_="compatcheck")


@cache
def _style(root: str) -> str:
    light, dark = (", ".join(f"{each} {root}" for each in places) for places in (_LIGHT_PLACES, _DARK_PLACES))
    of_root = _own("root.css").replace(_ROOT, root)
    return styles.palette(root, light, dark) + of_root + styles.scoped(styles.style() + _own("report.css"), root)


def _own(name: str) -> str:
    return files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a policy allows a style or script by: https://www.w3.org/TR/CSP3/#grammardef-hash-source."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
