"""The version map around where the environment is, as a table that needs no script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compatcheck.report.pages import map_symbols
from compatcheck.report.pages.markup import Html, impact_mark, joined, listed, section, tag
from compatcheck.results.findings import BAD, Status, VersionMap

_TOLD: tuple[tuple[tuple[str, ...], str], ...] = ((BAD, "known bad"), (("possible",), "may be bad"))
_ALIKE = {"none": "have nothing known against them", "may": "may be bad as well"}


def render(maps: tuple[VersionMap, ...]) -> Html:
    return section("The versions around yours", *map(_map, maps)) if maps else Html()


def _map(drawn: VersionMap) -> Html:
    column, row = drawn.names
    kinds = {kind_of(cell, drawn) for cells in drawn.cells for cell in cells}
    if len(kinds) == 1:
        known = _ALIKE.get(min(kinds), "are known bad as well")
        return tag(
            "p", f"All other versions of {column} and {row} around yours {known}, with everything else as it is."
        )
    told = f"Other versions of {column} and {row} with everything else as it is, as the matrix judges them."
    marks = [("here", "", "where you are")] + ([("advised", "→", "where to go")] if drawn.advised else [])
    frames = [
        joined((tag("span", sign, class_=f"cell {kind}", aria_hidden="true"), f" {words}"))
        for kind, sign, words in marks
    ]
    return tag(
        "div",
        tag("h3", f"{column} and {row}"),
        tag("p", told, _goal(drawn)),
        map_symbols.legend(kinds),
        listed(frames, class_="legend", aria_label="Frames"),
        tag("div", _table(drawn), class_="wide"),
        _entries(drawn),
        class_="map",
    )


def _goal(drawn: VersionMap) -> str:
    if drawn.advised is None:
        return ""
    goal = " and ".join(f"{name} {version}" for name, version in zip(drawn.names, drawn.advised))
    return f" Nearest with nothing bad known of it: {goal}." if not _at(drawn, drawn.advised) else f" Advised: {goal}."


def _at(drawn: VersionMap, place: tuple[str, str]) -> bool:
    cell = drawn.cells[drawn.rows.index(place[1])][drawn.columns.index(place[0])]
    return any(status in BAD for status in cell.values())


def kind_of(cell: Mapping[str, Status], drawn: VersionMap) -> str:
    return map_symbols.kind_of(
        (drawn.entries[entry][1] for entry, status in cell.items() if status in BAD), "possible" in cell.values()
    )


def _table(drawn: VersionMap) -> Html:
    column, row = drawn.names
    heads = [tag("th", version.partition("+")[0], scope="col", class_="version") for version in drawn.columns]
    body = [
        tag(
            "tr",
            tag("th", version, scope="row", class_="version"),
            *(_cell(drawn, (at, version), cell) for at, cell in zip(drawn.columns, cells)),
        )
        for version, cells in zip(drawn.rows, drawn.cells)
    ]
    corner = tag("td", f"{row} \\ {column}", class_="corner")
    caption = tag("caption", f"{column} in columns, {row} in rows, the newest first")
    return tag("table", caption, tag("thead", tag("tr", corner, *heads)), tag("tbody", *body), class_="grid")


def _cell(drawn: VersionMap, place: tuple[str, str], cell: Mapping[str, Status]) -> Html:
    kind = kind_of(cell, drawn)
    frames = [("here", "you are here"), ("advised", "go here")]
    framed = [each for each in frames if getattr(drawn, each[0]) == place]
    said = "; ".join((*(words for _, words in framed), *_said(cell))) or "nothing known"
    symbol = map_symbols.symbol(kind).strip() or ("→" if ("advised", "go here") in framed else "")
    sign = tag("span", symbol, aria_hidden="true")
    classes = " ".join(("cell", kind, *(name for name, _ in framed)))
    return tag("td", tag("span", sign, tag("span", said, class_="unseen"), class_=classes, title=said))


def _said(cell: Mapping[str, Status]) -> Iterator[str]:
    for statuses, words in _TOLD:
        entries = [entry for entry, status in cell.items() if status in statuses]
        if entries:
            yield f"{words}: {', '.join(entries)}"


def _entries(drawn: VersionMap) -> Html:
    seen = {entry for cells in drawn.cells for cell in cells for entry in cell}
    rows = [
        joined((impact_mark(drawn.entries[entry][1]), " ", drawn.entries[entry][0], " ", tag("small", entry)))
        for entry in sorted(seen)
    ]
    return (
        tag("details", tag("summary", f"The entries behind these signs ({len(rows)})"), listed(rows))
        if rows
        else Html()
    )
