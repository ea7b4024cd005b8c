"""An entry or a probe as a page for people, and entries as a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compatcheck import symptoms
from compatcheck.language import ENGLISH, clauses, comma_list, current, marked
from compatcheck.language import gettext as _
from compatcheck.report import traits
from compatcheck.report.document import Document
from compatcheck.terminal.lines import Line

WIDTH = 88
_KINDS = {
    "upstream-fix": marked("the fix upstream"),
    "maintainer": marked("a maintainer"),
    "reproduction": marked("reproduced"),
    "source": marked("source"),
    "documentation": marked("documentation"),
    "report": marked("report"),
}
_PARTS = {
    "affected": marked("when it applies"),
    "mechanism": marked("why"),
    "summary": marked("what you see"),
    "misleading": marked("bad advice"),
    "symptoms": marked("symptoms"),
    "impact": marked("impact"),
}


def document(entry: Mapping[str, Any], probe: Sequence[str] = (), unprobed: str = "") -> Document:
    """The page of one entry, given as the plain values of its file.

    ``probe`` describes the probe it names, ``unprobed`` says why no probe can show it.
    """
    return Document(Line(), tuple(_page(entry, probe, unprobed)), lambda: {"entry": entry}, width=WIDTH)


def document_of_probe(name: str, described: tuple[str, str]) -> Document:
    """The page of one probe: its title, and what is measured, within which bound, and what a failure means."""
    title, body = _(described[0]), described[1]
    lines = [Line(title, "bold", f"{name}  ", "bold", plain=f"{name}  {title}")]
    if current() != ENGLISH:
        lines += [Line(), Line(_("The explanation is available in English only:"), "dim")]
    for paragraph in body.split("\n\n"):
        lines += [Line(), Line(paragraph)]
    return Document(Line(), tuple(lines), lambda: {"probe": name, "title": title, "about": body}, width=WIDTH)


def document_of_list(entries: Sequence[Mapping[str, object]]) -> Document:
    """A row an entry."""
    return Document(Line(), tuple(map(_row, entries)), lambda: {"entries": [_brief(entry) for entry in entries]})


def _brief(entry: Mapping[str, object]) -> Mapping[str, Any]:
    return {key: entry[key] for key in ("id", "title", "impact", "confidence", "packages", "summary")}


def _row(entry: Mapping[str, Any]) -> Line:
    plain = f"{entry['id']}  {entry['impact']:<12}  {entry['confidence']:<14}  {entry['title']}"
    head = f"{entry['id']}  {entry['impact']:<12}"
    return Line(entry["title"], "", head, "bold", 28, ((entry["id"], _source(entry)),), plain)


def _source(entry: Mapping[str, Any]) -> str:
    """Where the entry can be looked at first."""
    return next((each["url"] for each in entry["evidence"] if each["url"].startswith("http")), "")


def _page(entry: Mapping[str, Any], probe: Sequence[str], unprobed: str) -> Iterator[Line]:
    yield Line(entry["title"], "bold", entry["id"], "bold", 14)
    if "withdrawn" in entry:
        yield from _withdrawn(**entry["withdrawn"])
        return
    dates = _("published {published}, reviewed {reviewed}")
    dates = dates.format(published=entry["published"], reviewed=entry["reviewed"])
    about = clauses(_(entry["impact"]), _(entry["confidence"]))
    yield Line(_("; ").join((about, dates)), "dim")
    yield from _section(_("What you see"), [entry["summary"]])
    yield from _section(_("Why"), [entry["mechanism"]])
    yield from _section(
        _("Error lines that it explains"), [each["example"] for each in entry.get("error_patterns", ())]
    )
    yield from _conditions(entry["affected"])
    yield from _ways_out(entry["remedies"])
    yield from _section(_("Misleading advice"), entry.get("misleading", ()))
    if probe:
        yield from _section(_("Probe {name}").format(name=entry["probe"]["name"]), map(_, probe[:1]))
    yield from _section(_("Why no probe detects it"), [_(unprobed)] if unprobed else [])
    yield from _evidence(entry["evidence"])
    yield from _commands(entry, probe)


def _withdrawn(on: str, reason: str, successors: Sequence[str] = ()) -> Iterator[Line]:
    yield Line(_("WITHDRAWN on {date}: {reason}").format(date=on, reason=reason), "bold yellow")
    yield from _section(_("Replaced by"), successors)


def _section(heading: str, paragraphs: Iterable[str]) -> Iterator[Line]:
    texts = list(paragraphs)
    if not texts:
        return
    yield from (Line(), Line(heading, "bold"))
    for text in texts:
        mark = "" if len(texts) == 1 else "- "
        yield Line(text, head=f"  {mark}", indent=2 + len(mark))


def _conditions(tables: Sequence[Mapping[str, object]]) -> Iterator[Line]:
    """What must hold, each condition by itself: all of one table."""
    for number, table in enumerate(tables):
        heading = _("Applies when") if not number else _("or when")
        yield from (Line(), Line(heading, "bold"))
        yield from (Line(condition_in_words(path, condition), indent=2) for path, condition in table.items())


def condition_in_words(path: str, condition: object) -> str:
    name = path.removeprefix("distributions.")
    if path == "traits" and isinstance(condition, list):
        return _(" or ").join(map(traits.in_words, condition))
    if path == "training.observed.symptoms" and isinstance(condition, list):
        return _("you observe: {symptoms}").format(symptoms=_(" or ").join(map(symptoms.title, condition)))
    if isinstance(condition, list):
        return _("{fact} is {values}").format(fact=name, values=_(" or ").join(map(str, condition)))
    if condition == "present":
        return _("{fact} is present").format(fact=name)
    if condition == "absent":
        return _("{fact} is absent").format(fact=name)
    if isinstance(condition, str) and condition[:1] in "<>=":
        return f"{name} {condition}"
    return f"{name} = {str(condition).lower() if isinstance(condition, bool) else condition}"


def _ways_out(remedies: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """What can be done, in a row of its own to be copied, and below it why."""
    yield from (Line(), Line(_("What to do, best first"), "bold"))
    for number, remedy in enumerate(remedies, 1):
        action = _action(remedy)
        yield Line(action or remedy["why"], "green" if action else "", f"  {number}. ", "", 5)
        if action:
            yield Line(remedy["why"], indent=5)


def _action(remedy: Mapping[str, Any]) -> str:
    actions = [f"{name}{specifier}" for name, specifier in remedy.get("pins", {}).items()]
    actions += [f"{path} = {value}" for path, value in remedy.get("config", {}).items()]
    actions += [f"{name}={value}" for name, value in remedy.get("environ", {}).items()]
    actions += [remedy[key] for key in ("code", "action") if remedy.get(key)]
    return comma_list(actions)


def _evidence(evidence: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """Each source with what it bears out."""
    yield from (Line(), Line(_("Evidence"), "bold"))
    for each in evidence:
        parts = comma_list(map(_part, each["supports"]))
        yield Line(each["url"], indent=2)
        kind = _(_KINDS.get(each["kind"], each["kind"]))
        yield Line(_("{kind}; supports: {parts}").format(kind=kind, parts=parts), "dim", indent=4)
        if each.get("note") and current() == ENGLISH:
            yield Line(each["note"], "dim", indent=4)


def _part(path: str) -> str:
    """A part of the entry by the name that it has on the page."""
    name, dot, number = path.partition(".")
    if name == "remedies" and dot:
        return _("option {number}").format(number=number)
    return _(_PARTS.get(path, path))


def _commands(entry: Mapping[str, Any], probe: Sequence[str]) -> Iterator[Line]:
    """What can be run to see for oneself."""
    measured = _("{command}: what the probe measures")
    commands = [measured.format(command=f"compatcheck explain {entry['probe']['name']}")] if probe else []
    if probe and entry.get("reproduce"):
        tried = _("{command}, in a clone: where it fails, and where it passes")
        commands.append(tried.format(command=f"compatcheck matrix reproduce {entry['id']}"))
    yield from _section(_("Commands to run"), commands)
