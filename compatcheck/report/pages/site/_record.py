"""What a record says, in the few lines that an entry's page has room for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.report.pages.markup import Html, joined, link, tag

_MOST_WORDS = 600


def record_page_part(path: str, record: Mapping[str, Any] | None) -> Html:
    """Date, machine, versions and outcome of a record, and where the whole of it is."""
    if record is None:
        return tag("p", "The record is in the sources of the matrix: ", tag("code", f"matrix/{path}"))
    sides = [(side, record[side]) for side in ("bad", "good") if _is_side(record.get(side))]
    heading = record.get("verdict") or record.get("question") or "measured"
    head = tag("h3", f"{record.get('date', 'undated')}: {_short(heading)}")
    rows = [tag("p", tag("small", _machine(record))), _short_part("Method: ", record.get("method"))]
    if sides:
        rows.append(_table(sides))
    rows.append(tag("p", link(f"../{path}", f"The whole record, {path.rpartition('/')[2]}")))
    return joined((head, *rows))


def _is_side(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("probe"), Mapping)


def _machine(record: Mapping[str, object]) -> str:
    platform = record.get("platform")
    if not isinstance(platform, Mapping):
        return f"Machine: {platform or 'not recorded'}"
    words = [f"{name} {value}" for name, value in platform.items() if value is not None]
    return f"Machine: {', '.join(words)}" + ("; no GPU" if platform.get("gpu", 0) is None else "")


def _short_part(label: str, text: Any) -> Html:
    return tag("p", label, _short(text)) if isinstance(text, str) else Html()


def _short(text: object) -> str:
    flat = " ".join(str(text).split())
    return flat if len(flat) <= _MOST_WORDS else f"{flat[:_MOST_WORDS].rpartition(' ')[0]} …"


def _table(sides: list[tuple[str, Mapping[str, Any]]]) -> Html:
    head = tag("tr", *(tag("th", words, scope="col") for words in ("environment", "built from", "probe", "seen")))
    rows = [
        tag(
            "tr",
            tag("th", side, scope="row"),
            tag("td", tag("code", " ".join(map(str, built.get("requirements", ()))))),
            tag("td", str(built["probe"].get("outcome"))),
            tag("td", _short(built["probe"].get("why", ""))),
        )
        for side, built in sides
    ]
    return tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", *rows)),
        class_="wide",
        tabindex=0,
        role="region",
        aria_label="Outcomes",
    )
