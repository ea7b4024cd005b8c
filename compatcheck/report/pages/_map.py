"""The version map around where the environment is, as a table that needs no script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compatcheck.language import comma_list, marked
from compatcheck.language import gettext as _
from compatcheck.report.pages import map_symbols
from compatcheck.report.pages.markup import Html, impact_mark, joined, listed, section, tag
from compatcheck.results.findings import BAD, Status, VersionMap

_VERDICTS: tuple[tuple[tuple[str, ...], str], ...] = ((BAD, marked("known bad")), (("possible",), marked("may be bad")))
_ALIKE = {
    "none": marked("No nearby version of {names} has a known fault."),
    "may": marked("All nearby versions of {names} may also be bad."),
}
_ALL_BAD = marked("All nearby versions of {names} are also known bad.")


def render(maps: tuple[VersionMap, ...]) -> Html:
    return section(_("Nearby versions"), *map(_map, maps)) if maps else Html()


def _map(drawn: VersionMap) -> Html:
    names = _(" and ").join(drawn.names)
    kinds = {kind_of(cell, drawn) for cells in drawn.cells for cell in cells}
    if len(kinds) == 1:
        return tag("p", _(_ALIKE.get(min(kinds), _ALL_BAD)).format(names=names))
    lead = _("What the matrix says about other versions of {names}, with everything else unchanged.").format(
        names=names
    )
    marks = [("here", "", _("your versions"))] + (
        [("advised", "→", _("recommended versions"))] if drawn.advised else []
    )
    frames = [
        joined((tag("span", sign, class_=f"cell {kind}", aria_hidden="true"), f" {words}"))
        for kind, sign, words in marks
    ]
    return tag(
        "div",
        tag("h3", names),
        tag("p", lead, " ", _goal(drawn)),
        map_symbols.legend(kinds, _),
        listed(frames, class_="legend", aria_label=_("Frames")),
        tag("div", _table(drawn), class_="wide"),
        _entries(drawn),
        class_="map",
    )


def _goal(drawn: VersionMap) -> str:
    if drawn.advised is None:
        return ""
    goal = _(" and ").join(f"{name} {version}" for name, version in zip(drawn.names, drawn.advised))
    text = (
        _("Recommended: {goal}.")
        if _is_bad(drawn, drawn.advised)
        else _("Nearest version without a known fault: {goal}.")
    )
    return text.format(goal=goal)


def _is_bad(drawn: VersionMap, place: tuple[str, str]) -> bool:
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
    text = _("{column} in columns, {row} in rows, the newest first").format(column=column, row=row)
    caption = tag("caption", text)
    return tag("table", caption, tag("thead", tag("tr", corner, *heads)), tag("tbody", *body), class_="grid")


def _cell(drawn: VersionMap, place: tuple[str, str], cell: Mapping[str, Status]) -> Html:
    kind = kind_of(cell, drawn)
    frames = [("here", _("you are here")), ("advised", _("go here"))]
    framed = [each for each in frames if getattr(drawn, each[0]) == place]
    text = _("; ").join((*dict(framed).values(), *_verdicts(cell))) or _("nothing known")
    symbol = map_symbols.symbol(kind).strip() or ("→" if "advised" in dict(framed) else "")
    sign = tag("span", symbol, aria_hidden="true")
    classes = " ".join(("cell", kind, *dict(framed)))
    return tag("td", tag("span", sign, tag("span", text, class_="unseen"), class_=classes, title=text))


def _verdicts(cell: Mapping[str, Status]) -> Iterator[str]:
    for statuses, words in _VERDICTS:
        entries = [entry for entry, status in cell.items() if status in statuses]
        if entries:
            yield f"{_(words)}: {comma_list(entries)}"


def _entries(drawn: VersionMap) -> Html:
    seen = {entry for cells in drawn.cells for cell in cells for entry in cell}
    rows = [
        joined(
            (
                impact_mark(drawn.entries[entry][1], _(drawn.entries[entry][1])),
                " ",
                drawn.entries[entry][0],
                " ",
                tag("small", entry),
            )
        )
        for entry in sorted(seen)
    ]
    return (
        tag(
            "details",
            tag("summary", _("Entries for these symbols ({count})").format(count=len(rows))),
            listed(rows),
        )
        if rows
        else Html()
    )
