"""The version map: what is known of torch beside another package, for every GPU, training setup and model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, product
from typing import Any

from compatcheck.packages.releases import minors
from compatcheck.report.pages.map_symbols import legend
from compatcheck.report.pages.markup import Html, data_block, tag
from compatcheck.report.pages.site._frame import page
from compatcheck.report.pages.site._scenarios import GPUS, SETUPS, UNSTATED, Scenario, models
from compatcheck.report.pages.site._source import Choice, Source, Surveyed

TORCH = "torch"
BESIDE = ("transformers", "deepspeed", "peft", "accelerate", "trl", "numpy")
_MARKS = {"affected": "a", "possible": "p"}


def render(source: Source, footer: str) -> str:
    return page(
        "Version map",
        tag("h1", "Version map"),
        tag(
            "p",
            (
                "Each cell shows the verdict of the matrix for the newest patch of the two minor "
                "releases, with the build of torch that the package index serves on Linux. Select a GPU, "
                "a setup or a model to get a clear answer for cells that may be bad."
            ),
        ),
        tag("noscript", tag("p", "The map needs JavaScript; the entries do not.")),
        _controls(source),
        legend(),
        tag("p", "", id="count", role="status", aria_live="polite"),
        tag(
            "div",
            tag("div", class_="wide", id="grid", tabindex=-1),
            tag("section", tag("h2", "Choose a cell"), id="cell", tabindex=-1),
            class_="beside",
        ),
        data_block("map", _data(source)),
        current="map.html",
        footer=footer,
    )


def _controls(source: Source) -> Html:
    chosen = (
        ("beside", "torch with", [Scenario(name) for name in BESIDE if source.history(name)]),
        ("gpu", "GPU", (UNSTATED, *GPUS)),
        ("setup", "Training setup", (UNSTATED, *SETUPS)),
        ("model", "Model type", (UNSTATED, *models(source.entries))),
    )
    return tag(
        "form",
        *(
            tag(
                "div",
                tag("label", words, for_=name),
                tag("select", *(tag("option", each.label, value=each.label) for each in scenarios), id=name, name=name),
            )
            for name, words, scenarios in chosen
        ),
        id="choose",
        class_="controls needs-script",
    )


def _data(source: Source) -> dict[str, object]:
    torch = minors(source.history(TORCH))
    places = {entry["id"]: place for place, entry in enumerate(source.entries)}
    shared = [
        [_torch(version, source.runtimes.get(minor)) for minor, version in torch],
        *([UNSTATED.facts, *(each.facts for each in some)] for some in (GPUS, SETUPS, models(source.entries))),
    ]
    rows = {name: minors(source.history(name)) for name in BESIDE}
    rows = {name: lines for name, lines in rows.items() if lines}
    added = [[{"distributions": {name: version}} for _, version in lines] for name, lines in rows.items()]
    beside = {
        name: {
            "rows": rows[name],
            "told": [_compact(each, places, [*shared, own]) for each in entries],
            "measured": list(_measured(source, name, torch, rows[name], places)),
        }
        for name, own, entries in zip(rows, added, source.survey(shared, added))
    }
    return {
        "torch": torch,
        "sizes": [len(choices) for choices in shared],
        "beside": beside,
        "entries": [[entry["id"], entry["title"], entry["impact"]] for entry in source.entries],
    }


def _torch(version: str, runtime: str | None) -> Choice:
    facts: dict[str, Any] = {
        "distributions": {TORCH: version},
        "platform": {"system": "Linux", "machine": "x86_64"},
    }
    return {**facts, "cuda": {"runtime": runtime}} if runtime else facts


def _compact(surveyed: Surveyed, places: Mapping[str, int], dimensions: Sequence[Sequence[Choice]]) -> list[object]:
    """The entry's place, the dimensions that make a difference, and the status of each combination as run lengths."""
    sizes = [len(dimensions[at]) for at in surveyed.dimensions]
    kept = [at for at in range(len(sizes)) if not _is_flat(surveyed.statuses, at, sizes[at])]
    statuses = {tuple(place[at] for at in kept): status for place, status in surveyed.statuses.items()}
    marks = (_MARKS.get(statuses.get(place, ""), ".") for place in product(*(range(sizes[at]) for at in kept)))
    return [places[surveyed.id], [surveyed.dimensions[at] for at in kept], "".join(_runs(marks))]


def _is_flat(statuses: Mapping[tuple[int, ...], str], at: int, size: int) -> bool:
    """Whether the choice at one place of a combination never makes a difference."""
    return all(
        statuses.get((*place[:at], choice, *place[at + 1 :])) == status
        for place, status in statuses.items()
        for choice in range(size)
    )


def _runs(marks: Iterable[str]) -> Iterator[str]:
    for mark, group in groupby(marks):
        length = sum(1 for _ in group)
        yield mark if length == 1 else f"{length}{mark}"


def _measured(
    source: Source, name: str, torch: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], places: Mapping[str, int]
) -> Iterator[list[object]]:
    """Column, row, the entry's place, whether its probe passed, and the versions it was measured with."""
    columns = {minor: place for place, (minor, _) in enumerate(torch)}
    lines = {minor: place for place, (minor, _) in enumerate(rows)}
    for record in source.records.values():
        for side in ("bad", "good"):
            built = record.get(side)
            if record.get("verdict") != "reproduced" or record.get("entry") not in places or not built:
                continue
            versions = [str(built["distributions"].get(each, "")).partition("+")[0] for each in (TORCH, name)]
            at = [".".join(version.split(".")[:2]) for version in versions]
            if at[0] in columns and at[1] in lines:
                yield [columns[at[0]], lines[at[1]], places[record["entry"]], int(side == "good"), *versions]
