"""What a log shows: the symptom and its step, the curves with it marked, and the entries that explain it."""

from __future__ import annotations

from collections.abc import Iterator

from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.report import curves
from compatcheck.report.pages import _environment, _findings
from compatcheck.report.pages._verdict import Judge, Verdict, banner, footer
from compatcheck.report.pages.markup import Html, joined, listed, section, tag
from compatcheck.report.subjects.diagnosis import FITS, moment_in_words
from compatcheck.results.logs import Diagnosis, Dropped, Explanation, Run

_LONGEST_LINE = 600
_SIGNS = {"affected": ("bad", "×"), "possible": ("may", "?"), "open": ("none", "–")}
_NO_ENVIRONMENT = marked(
    "No environment was named: --python, --snapshot or --config with that of the run decides between the explanations."
)


def body(diagnosis: Diagnosis) -> Iterator[str | None]:
    yield banner(verdict(diagnosis))
    yield section(_("What the log shows"), _facts(diagnosis), _error(diagnosis.run), _curves(diagnosis.run))
    yield _explained(diagnosis)
    yield _ruled_out(diagnosis.dropped)
    yield _other_runs(diagnosis)
    if diagnosis.environment.facts:
        yield _environment.glance(diagnosis.judged)
        yield _environment.everything(diagnosis.environment, diagnosis.inferred)
    yield footer(
        Judge(diagnosis.matrix_revision, diagnosis.matrix_entries, diagnosis.matrix_date, diagnosis.matrix_stale)
    )


def verdict(diagnosis: Diagnosis) -> Verdict:
    words = _(diagnosis.run.signature.words)
    words = words[:1].upper() + words[1:]
    details = tuple(tag("p", _(detail)) for detail in diagnosis.run.signature.details)
    if diagnosis.healthy and not diagnosis.explanations:
        return Verdict(words, "good" if diagnosis.run.signature.judged else "may", details)
    first = [each.finding.title for each in diagnosis.explanations[:1] if each.fit != "open" or each.line]
    return Verdict(words, "bad", (*details, *(tag("p", _("Explained by: "), title) for title in first)))


def _facts(diagnosis: Diagnosis) -> Html:
    run, path = diagnosis.run, diagnosis.log.path
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
    rows += [(_("Note"), note) for note in diagnosis.log.notes]
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")


def _error(run: Run) -> Html:
    if run.crash is None:
        return Html()
    place = run.crash.location
    ranks = ", " + _("on ranks {ranks}").format(ranks=", ".join(run.crash.ranks)) if len(run.crash.ranks) > 1 else ""
    frames = "".join(f"\n  {_('at {frame}').format(frame=frame)}" for frame in run.crash.frames[-4:])
    text = f"{run.crash.text[:_LONGEST_LINE]}{frames}"
    return joined(
        (tag("h3", _("The error")), tag("p", f"{place}{ranks}", class_="meta"), tag("pre", tag("code", text)))
    )


def _curves(run: Run) -> Html:
    drawing = curves.embedded(run.curves, _(run.signature.words))
    legend = _("A mark at the upper edge is a value that is not finite, a dashed line is where the symptom began.")
    return tag("figure", Html(drawing), tag("figcaption", legend, class_="meta")) if drawing else Html()


def _explained(diagnosis: Diagnosis) -> Html:
    if diagnosis.healthy and not diagnosis.explanations:
        return Html()
    unexplained = _("no entry of the matrix explains this")
    if not diagnosis.environment_given:
        unexplained = _("no entry of the matrix explains this, as far as it is known")
    none = None if diagnosis.explanations else tag("p", unexplained)
    more = tag("p", _("{count} weaker matches not shown").format(count=diagnosis.more)) if diagnosis.more else None
    hint = None if diagnosis.environment_given else tag("p", _(_NO_ENVIRONMENT), class_="meta")
    return section(_("What explains it"), none, hint, *map(_explanation, diagnosis.explanations), more)


def _explanation(explanation: Explanation) -> Html:
    finding = explanation.finding
    kind, symbol = _SIGNS[explanation.fit]
    parts = (
        _findings.section_of(_("Why it fits"), listed(explanation.why)),
        _findings.section_of(_("What would decide"), listed(explanation.tells_apart)),
        _findings.section_of(_("Advice that misleads"), listed(explanation.misleading)),
    )
    mark = tag("span", symbol, class_=f"sign {kind}-sign", aria_hidden="true")
    return _findings.explained(finding, mark, _(FITS[explanation.fit]), parts, kind)


def _ruled_out(dropped: tuple[Dropped, ...]) -> Html:
    rows = [
        joined(
            (
                each.title,
                " ",
                tag("small", f"{each.id}: {_against(each)}"),
                _yet(each),
            )
        )
        for each in dropped
    ]
    if not rows:
        return Html()
    return section(
        _("What the known facts rule out"),
        tag("details", tag("summary", _("{count} entries").format(count=len(rows))), listed(rows)),
    )


def _against(dropped: Dropped) -> str:
    return _("ruled out by {facts}").format(facts=", ".join(dropped.against) or _("a known fact"))


def _yet(dropped: Dropped) -> Html | None:
    if dropped.line is None:
        return None
    place = f"{dropped.line.location}: {dropped.line.text[:_LONGEST_LINE]}"
    text = _("Yet its error line is in {place}. Is this the environment that wrote the log?")
    return tag("p", text.format(place=place))


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
