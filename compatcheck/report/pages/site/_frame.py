"""The frame that every page of the site has."""

from __future__ import annotations

from collections.abc import Iterable

from compatcheck.report.pages.markup import tag

_POLICY = "default-src 'none'; style-src 'self' file:; script-src 'self' file:; base-uri 'none'; form-action 'none'"
_LINKS = (("index.html", "Entries"), ("map.html", "Version map"))


def page(title: str, *body: str, root: str = "", current: str = "", footer: str, scripts: Iterable[str] = ()) -> str:
    """A whole page; ``root`` leads from it to the folder of the site, ``current`` is its place in the navigation."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} – compatcheck"),
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
    return f'<!DOCTYPE html>\n<html lang="en">{head}{content}</html>\n'
