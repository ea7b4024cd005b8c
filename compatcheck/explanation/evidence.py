"""What in the input speaks for an entry and against it, in words and with its place."""

from __future__ import annotations

from collections.abc import Iterator

from compatcheck import symptoms
from compatcheck.environment import Location
from compatcheck.environment.paths import distribution_of
from compatcheck.explanation.features import Context, Weighing
from compatcheck.inference.inferred import Judged
from compatcheck.language import gettext as _
from compatcheck.matrix.matching.held_facts import held_facts
from compatcheck.report import because, traits
from compatcheck.results.cases import Contrast, Sighting
from compatcheck.results.diagnoses import Evidence
from compatcheck.results.findings import HeldFact

_LONGEST = 200
_ERRORS = ("missing_names", "interface_errors")
"""Facts that say no more than the error line that they were read from."""


def speaks_for(weighing: Weighing, context: Context) -> tuple[Evidence, ...]:
    """The error line first, then symptoms, contrasts and facts."""
    return tuple(_speaks_for(weighing, context))


def speaks_against(weighing: Weighing, context: Context) -> tuple[Evidence, ...]:
    """The facts that fail, contrasts that the entry does not explain, and lines that are another's."""
    return tuple(_against(weighing, context))


def _speaks_for(weighing: Weighing, context: Context) -> Iterator[Evidence]:
    for hit in weighing.hits[:1]:
        yield Evidence(_("an error line of this fault: {line}").format(line=shortened(hit.text)), hit.location)
    yield from _symptoms(weighing)
    for contrast in weighing.contrasts_for:
        yield Evidence(_contrast(contrast), contrast.location)
    for fact in held_facts(weighing.verdict, context.judged) if weighing.verdict.holds is not False else ():
        if fact.value is not None and fact.fact not in _ERRORS and not fact.fact.startswith("training.observed."):
            text = because.held((fact._replace(location=None),))
            yield Evidence(text, fact.location, fact=True, common=_is_common(fact))


def _is_common(fact: HeldFact) -> bool:
    """Whether most cases have such a fact: a package in some version, or the default of one."""
    return distribution_of(fact.fact) is not None or not (fact.location or fact.fact.startswith("model."))


def _symptoms(weighing: Weighing) -> Iterator[Evidence]:
    """The symptoms that the entry causes, those of one line together."""
    together: dict[tuple[bool, Location], list[Sighting]] = {}
    for sighting in weighing.symptoms:
        if sighting.origin != "error" or not weighing.hits:
            together.setdefault((sighting.origin == "words", sighting.location), []).append(sighting)
    for (is_described, location), sightings in together.items():
        titles = _("; ").join(dict.fromkeys(symptoms.title(each.symptom) for each in sightings))
        if is_described:
            words = _("this fault causes the described symptom: {symptom}").format(symptom=titles)
        else:
            words = _("this fault causes a symptom in the log: {symptom}").format(symptom=titles)
        yield Evidence(words, location, common=all(symptoms.is_error_class(each.symptom) for each in sightings))


def shortened(text: str) -> str:
    """A line with its beginning and its end, where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 60]} … {text[-57:]}"


def _contrast(contrast: Contrast) -> str:
    name = _name(contrast.path)
    if contrast.worked is None:
        return _("fails with {name} {failed}").format(name=name, failed=contrast.failed)
    if contrast.failed is None:
        return _("works with {name} {worked}").format(name=name, worked=contrast.worked)
    text = _("fails with {name} {failed} and works with {worked}")
    return text.format(name=name, failed=contrast.failed, worked=contrast.worked)


def _against(weighing: Weighing, context: Context) -> Iterator[Evidence]:
    for path in weighing.weighed.failed():
        yield Evidence(_failing(path, weighing, context.judged), _place(path, context.judged))
    for contrast in weighing.contrasts_against:
        yield Evidence(_("does not explain why it {contrast}").format(contrast=_contrast(contrast)), contrast.location)
    if context.hits and not weighing.hits:
        first = next(iter(context.hits.values()))[0]
        yield Evidence(_("the error line belongs to another entry: {entry}").format(entry=first.entry), first.location)


def _failing(path: str, weighing: Weighing, judged: Judged) -> str:
    asked = weighing.conditions.get(path)
    value = judged.view.get(path) if path not in ("gpu", "traits") else None
    shown = value if isinstance(value, (str, int, float, bool)) else None
    if path == "traits":
        needed = _(" or ").join(map(traits.in_words, asked if isinstance(asked, list) else ()))
        return _("the entry needs, and this is not the case: {traits}").format(traits=needed)
    if shown is None:
        return _("{fact} does not meet the conditions of the entry").format(fact=_name(path))
    return _("the entry needs {name} {asked}, but the value is {value}").format(
        name=_name(path), asked=_words(asked), value=shown
    )


def _words(condition: object) -> str:
    return "/".join(map(str, condition)) if isinstance(condition, list) else str(condition)


def _name(path: str) -> str:
    return distribution_of(path) or path.removeprefix("training.")


def _place(path: str, judged: Judged) -> Location | None:
    return judged.view.locations.get("gpus" if path == "gpu" else path)
