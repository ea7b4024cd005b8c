"""Markup that cannot be broken out of: plain text is escaped wherever it is put."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape

from compatcheck.files.json_text import without_unseen
from compatcheck.terminal.cells import spelled_out

_VOID = {"meta", "link", "input", "br"}


class Html(str):
    """Text that is markup already."""


def tag(name: str, /, *children: str | None, **attributes: str | float | bool | None) -> Html:
    """An element. A trailing underscore of an attribute's name is dropped, other ones become hyphens.

    An attribute of None or False is left out, one of True stands without a value.
    """
    stated = "".join(
        f" {_attribute(key)}" if value is True else f' {_attribute(key)}="{escape(spelled_out(str(value)))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{stated}>" if name in _VOID else f"<{name}{stated}>{joined(children)}</{name}>")


def _attribute(key: str) -> str:
    return "viewBox" if key == "view_box" else key.rstrip("_").replace("_", "-")


def joined(children: Iterable[str | None]) -> Html:
    return Html(
        "".join(
            each if isinstance(each, Html) else escape(spelled_out(each), quote=False)
            for each in children
            if each is not None
        )
    )


def link(address: str, *children: str) -> Html:
    """A link to a page of the site, or to a source on the web; anything else is shown as text."""
    if not address.startswith(("https://", "http://", "#")) and ":" in address:
        return tag("span", *children)
    return tag("a", *children, href=address)


def section(heading: str, *children: str | None, **attributes: str) -> Html:
    return tag("section", tag("h2", heading), *children, **attributes) if any(children) else Html()


def listed(items: Iterable[str], kind: str = "ul", **attributes: str) -> Html:
    rows = [tag("li", item) for item in items]
    return tag(kind, *rows, **attributes) if rows else Html()


def impact_mark(impact: str, name: str = "") -> Html:
    return tag("span", name or impact, class_=f"impact impact-{impact}")


def whole_page(title: str, policy: str, head: Iterable[str], body: Html, language: str = "en") -> str:
    """A page that loads only what its policy allows, with the elements that every head has before those of ``head``."""
    every = (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} – compatcheck"),
    )
    return f'<!DOCTYPE html>\n<html lang="{language}">{tag("head", *every, *head)}{body}</html>\n'


def data_block(identifier: str, value: object) -> Html:
    """JSON that a script of the page reads; no text in it can end the element."""
    return Html(f'<script type="application/json" id="{identifier}">{in_script(value)}</script>')


def in_script(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return without_unseen(text)
