"""How pages look: one palette, light and dark, and what the site and the report share of style and script."""

from __future__ import annotations

import re
from importlib.resources import files

_LIGHT = """
--page: #fdfdfc; --ink: #1b1d21; --soft: #55595f; --rule: #cfd2d6; --raised: #f1f2f4; --link: #0b4f9c;
--wrong: #7a0c2e; --on-wrong: #ffffff; --stop: #b4441c; --on-stop: #ffffff; --slow: #6b5a00; --on-slow: #ffffff;
--may: #fbe7b5; --on-may: #4a3500; --good: #d5ecd9; --on-good: #0f4a20; --focus: #0b4f9c;
"""
_DARK = """
--page: #15171a; --ink: #e7e8ea; --soft: #a9aeb6; --rule: #3d4249; --raised: #202328; --link: #8fc0ff;
--wrong: #ff9fb8; --on-wrong: #33000f; --stop: #ffab86; --on-stop: #341000; --slow: #dcc86a; --on-slow: #2b2400;
--may: #4d3d10; --on-may: #ffe3a0; --good: #1d4428; --on-good: #c6f0d0; --focus: #8fc0ff;
"""


def palette(root: str = ":root", light: str = "", dark: str = "") -> str:
    """The colours, as the reader's system wants them; ``light`` and ``dark`` select a root in a place with a theme."""
    rules = [
        f"{root} {{ color-scheme: light dark; {_LIGHT} }}",
        f"@media (prefers-color-scheme: dark) {{ {root} {{ {_DARK} }} }}",
        f"{light} {{ color-scheme: light; {_LIGHT} }}" if light else "",
        f"{dark} {{ color-scheme: dark; {_DARK} }}" if dark else "",
        f"@media print {{ {root} {{ color-scheme: light; {_LIGHT} }} }}",
    ]
    return "".join(f"{rule}\n".replace("\n", " ").strip() + "\n" for rule in rules if rule)


def style() -> str:
    """Type, tables, marks and signs."""
    return _text("look.css")


def copy_script() -> str:
    """A button beside each ``pre.copied``, which selects the text where it may not copy it."""
    return _text("copy.js")


def scoped(style: str, root: str) -> str:
    """The rules of a style sheet for what lies below ``root`` alone; at-rules stay as they are."""

    def below(rule: re.Match[str]) -> str:
        if rule[2].startswith("@"):
            return rule[0]
        return rule[1] + ", ".join(f"{root} {each.strip()}" for each in rule[2].split(",")) + " {"

    return re.sub(r"(\s*)([^{}]+?)\s*\{", below, style)


def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
