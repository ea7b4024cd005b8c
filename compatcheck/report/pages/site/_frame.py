"""The frame that every page of the site has."""

from __future__ import annotations

from collections.abc import Iterable

from compatcheck.report.pages.markup import tag, whole_page

_POLICY = "default-src 'none'; style-src 'self' file:; script-src 'self' file:; base-uri 'none'; form-action 'none'"
_LINKS = (("index.html", "Entries"), ("map.html", "Version map"))


def page(title: str, *body: str, root: str = "", current: str = "", footer: str, scripts: Iterable[str] = ()) -> str:
    """A whole page; ``root`` leads from it to the folder of the site, ``current`` is its place in the navigation."""
    head = (
        tag("link", rel="stylesheet", href=f"{root}style.css"),
        *(tag("script", src=f"{root}{script}", defer=True) for script in (*scripts, "script.js")),
    )
    places = [
        tag("a", words, href=f"{root}{address}", aria_current="page" if address == current else None)
        for address, words in _LINKS
    ]
    content = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#content"),
        tag("header", tag("p", "compatcheck", class_="brand"), tag("nav", *places, aria_label="Pages")),
        tag("main", *body, id="content", tabindex=-1),
        tag("footer", tag("p", footer)),
    )
    return whole_page(title, _POLICY, head, content)
