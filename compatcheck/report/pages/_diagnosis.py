"""What a case shows: what was read, the symptom and its step, its curves, and the entries that explain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compatcheck.language import comma_list
from compatcheck.language import gettext as _
from compatcheck.report import curves
from compatcheck.report.pages import _environment, _findings, _texts
from compatcheck.report.pages._verdict import Judge, Verdict, banner, footer
from compatcheck.report.pages.markup import Html, joined, listed, section, tag
from compatcheck.report.subjects.diagnosis import (
    first_explanations,
    moment_in_words,
    placed,
    question_text,
    verdict_words,
)
from compatcheck.results.diagnoses import Diagnosis, Evidence, Explanation
from compatcheck.results.logs import Run

_LONGEST_LINE = 600
_SIGNS = {"likely": ("bad", "×"), "plausible": ("may", "?"), "long shot": ("none", "–")}


def body(diagnosis: Diagnosis) -> Iterator[str | None]:
    yield banner(verdict(diagnosis))
    if diagnosis.mismatch:
        yield section(
            _("Where the input and the environment differ"),
            listed(placed(each, diagnosis) for each in diagnosis.mismatch),
        )
    run = diagnosis.run
    if run is not None:
        yield section(_("What the log shows"), _facts(diagnosis, run), _error(run), _curves(run))
    yield tag("div", _explained(diagnosis), _texts.texts(diagnosis, first_explanations(diagnosis)), class_="beside")
    yield _other_runs(diagnosis)
    if diagnosis.environment.facts:
        yield _environment.glance(diagnosis.judged)
        yield _environment.everything(diagnosis.environment, diagnosis.inferred)
    yield footer(
        Judge(diagnosis.matrix_revision, diagnosis.matrix_entries, diagnosis.matrix_date, diagnosis.matrix_stale)
    )


def verdict(diagnosis: Diagnosis) -> Verdict:
    words = verdict_words(diagnosis)
    words = words[:1].upper() + words[1:]
    details = tuple(tag("p", _(detail)) for detail in diagnosis.run.signature.details) if diagnosis.run else ()
    if not diagnosis.shows_fault:
        is_good = diagnosis.healthy and diagnosis.run and diagnosis.run.signature.judged
        return Verdict(words, "good" if is_good else "may", details)
    first = [each.finding.title for each in diagnosis.explanations[:1] if each.band != "long shot"]
    return Verdict(words, "bad", (*details, *(tag("p", _("Explained by: "), title) for title in first)))


def _facts(diagnosis: Diagnosis, run: Run) -> Html:
    path = diagnosis.log.path if diagnosis.log else ""
    rows = [(_("Log"), path)]
    if run.onset and not run.signature.benign:
        rows.append((_("Began"), moment_in_words(run.onset, path)))
    if run.healthy:
        rows.append((_("Last healthy"), moment_in_words(run.healthy, path)))
    elif run.onset and run.readings and not run.signature.benign:
        rows.append((_("Last healthy"), _("none: present from the first reading")))
    if run.last:
        text = _("{moment}, the last of {count} readings")
        rows.append((_("Last reading"), text.format(moment=moment_in_words(run.last, path), count=run.readings)))
    rows += [(_("Also"), _(note.words)) for note in run.notes]
    rows += [(_("Note"), note) for note in (diagnosis.log.notes if diagnosis.log else ())]
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")


def _error(run: Run) -> Html:
    if run.crash is None:
        return Html()
    place = run.crash.location
    ranks = ", " + _("on ranks {ranks}").format(ranks=comma_list(run.crash.ranks)) if len(run.crash.ranks) > 1 else ""
    frames = "".join(f"\n  {_('at {frame}').format(frame=frame)}" for frame in run.crash.frames[-4:])
    text = f"{run.crash.text[:_LONGEST_LINE]}{frames}"
    return joined(
        (tag("h3", _("The error")), tag("p", f"{place}{ranks}", class_="meta"), tag("pre", tag("code", text)))
    )


def _curves(run: Run) -> Html:
    drawing = curves.embedded(run.curves, _(run.signature.words))
    legend = _("A mark at the upper edge is a non-finite value. A dashed line marks where the symptom began.")
    return tag("figure", Html(drawing), tag("figcaption", legend, class_="meta")) if drawing else Html()


def _explained(diagnosis: Diagnosis) -> Html:
    if diagnosis.healthy and not diagnosis.shows_fault:
        return Html()
    plausible = any(each.band != "long shot" for each in diagnosis.explanations)
    none = None if plausible else tag("p", _("no plausible explanation for this input"))
    general = listed(diagnosis.general) if diagnosis.general else None
    shown = (_explanation(number, each, diagnosis) for number, each in enumerate(first_explanations(diagnosis), 1))
    return section(_("Possible causes"), none, general, *shown)


def _explanation(number: int, explanation: Explanation, diagnosis: Diagnosis) -> Html:
    finding = explanation.finding
    kind, symbol = _SIGNS[explanation.band]
    parts = (
        _findings.section_of(_("Evidence for it"), _listed(explanation.speaks_for, diagnosis)),
        _findings.section_of(_("Evidence against it"), _listed(explanation.against, diagnosis)),
        _findings.section_of(
            _("Facts needed to decide"),
            listed(map(question_text, explanation.asks)),
        ),
        _findings.section_of(_("Misleading advice"), listed(explanation.misleading)),
    )
    mark = tag("span", symbol, class_=f"sign {kind}-sign", aria_hidden="true")
    words = f"[{number}] {_(explanation.band)}"
    return tag("div", _findings.explained(finding, mark, words, parts, kind), id=f"explanation-{number}")


def _listed(evidence: Sequence[Evidence], diagnosis: Diagnosis) -> Html:
    return listed(placed(each, diagnosis) for each in evidence)


def _lines_of(run: Run) -> str:
    return _("lines {first}-{last}").format(first=run.first_line, last=run.last_line)


def _other_runs(diagnosis: Diagnosis) -> Html:
    rows = [
        f"{log.path}, {_lines_of(run)}: {_(run.signature.words)}"
        for log in diagnosis.logs
        for run in log.runs
        if run is not diagnosis.run
    ]
    if not rows:
        return Html()
    return section(
        _("Other runs"),
        tag("details", tag("summary", _("{count} in these logs").format(count=len(rows))), listed(rows)),
    )
