"""The texts that were given, with the passages marked that were read, each leading to the explanations that use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compatcheck.files.secrets import masked
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.report.pages.markup import Html, joined, section, tag
from compatcheck.results.diagnoses import Diagnosis, Explanation

_WHOLE = 60
"""Lines up to which a text is shown whole; of a longer one what was read is shown, and the lines around it."""

_AROUND = 2
_MOST_LINES = 400
_LONGEST = 600
_KINDS = {
    "fact": marked("a fact"),
    "contrast": marked("a comparison"),
    "symptom": marked("a symptom"),
    "error": marked("an error line"),
}


def texts(diagnosis: Diagnosis, shown: Sequence[Explanation]) -> Html:
    """Each text; its lines lead to those of the explanations ``shown`` that use them."""
    marks, uses = _marks(diagnosis), _uses(shown)
    parts = []
    for source, text in diagnosis.case.texts:
        ours = {line: kind for (file, line), kind in marks.items() if file == source}
        used = {line: numbers for (file, line), numbers in uses.items() if file == source}
        if ours or used:
            parts += [
                tag("h3", source),
                tag("pre", *_lines(text, ours, used), class_="read", tabindex="0", role="region", aria_label=source),
            ]
    legend = tag("p", *_legend(), class_="meta")
    return section(_("What was read"), legend, *parts) if parts else Html()


def _legend() -> Iterator[str]:
    for kind, words in _KINDS.items():
        yield joined((tag("mark", _(words), class_=f"{kind}-mark"), " "))
    yield _("The number after a line links to the explanation that uses it.")


def _marks(diagnosis: Diagnosis) -> dict[tuple[str, int | None], str]:
    """The kind of what was read at each place; an error line counts over a symptom, and that over a fact."""
    case = diagnosis.case
    found: dict[tuple[str, int | None], str] = {}
    for kind, each in (
        ("fact", case.said),
        ("contrast", case.contrasts),
        ("symptom", case.sightings),
        ("error", case.hits),
    ):
        found.update(((read.location.file, read.location.line), kind) for read in each)
    if diagnosis.run and diagnosis.run.crash:
        at = diagnosis.run.crash.location
        found[at.file, at.line] = "error"
    return found


def _uses(shown: Sequence[Explanation]) -> Mapping[tuple[str, int | None], list[int]]:
    """The numbers of the explanations that name each place."""
    found: dict[tuple[str, int | None], list[int]] = {}
    for number, explanation in enumerate(shown, 1):
        for each in (*explanation.speaks_for, *explanation.against):
            if each.location and number not in found.setdefault((each.location.file, each.location.line), []):
                found[each.location.file, each.location.line].append(number)
    return found


def _lines(text: str, marks: Mapping[int | None, str], uses: Mapping[int | None, list[int]]) -> Iterator[Html]:
    lines = masked(text).split("\n")
    read = {line for line in (*marks, *uses) if line is not None}
    numbers = list(range(1, len(lines) + 1))
    if len(lines) > _WHOLE:
        near = {number for line in read for number in range(line - _AROUND, line + _AROUND + 1)}
        numbers = [number for number in numbers if number in near][:_MOST_LINES]
    last = 0
    for number in numbers:
        if number > last + 1:
            yield tag("span", "…\n", class_="number")
        last = number
        yield _line(number, lines[number - 1], marks.get(number), uses.get(number, []))
    if last < len(lines):
        yield tag("span", "…\n", class_="number")


def _line(number: int, text: str, kind: str | None, uses: list[int]) -> Html:
    shown = text[:_LONGEST] + ("…" if len(text) > _LONGEST else "")
    body = tag("mark", shown, class_=f"{kind}-mark", title=_(_KINDS[kind])) if kind and shown.strip() else shown
    links = (joined((" ", tag("a", f"[{each}]", href=f"#explanation-{each}"))) for each in uses)
    return joined((tag("span", f"{number:>5} ", class_="number"), body, *links, "\n"))
