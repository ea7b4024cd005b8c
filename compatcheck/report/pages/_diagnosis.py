"""What a log shows: the symptom and its step, the curves with it marked, and the entries that explain it."""

from __future__ import annotations

from collections.abc import Iterator

from compatcheck.report import curves
from compatcheck.report.pages import _environment, _findings
from compatcheck.report.pages._verdict import Judge, Verdict, banner, footer
from compatcheck.report.pages.markup import Html, joined, listed, section, tag
from compatcheck.report.subjects.diagnosis import FITS, moment_in_words
from compatcheck.results.logs import Diagnosis, Dropped, Explanation, Run

_LONGEST_LINE = 600
_SIGNS = {"affected": ("bad", "×"), "possible": ("may", "?"), "open": ("none", "–")}
_NO_ENVIRONMENT = (
    "No environment was named: --python, --snapshot or --config with that of the run decides between the explanations."
)


def body(diagnosis: Diagnosis) -> Iterator[str | None]:
    yield banner(verdict(diagnosis))
    yield section("What the log shows", _facts(diagnosis), _error(diagnosis.run), _curves(diagnosis.run))
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
    words = diagnosis.run.signature.words
    words = words[:1].upper() + words[1:]
    details = tuple(tag("p", detail) for detail in diagnosis.run.signature.details)
    if diagnosis.healthy and not diagnosis.explanations:
        kind = "may" if diagnosis.run.signature.name == "no-readings" else "good"
        return Verdict(words, "may" if kind == "may" else "good", details)
    first = [each.finding.title for each in diagnosis.explanations[:1] if each.fit != "open" or each.line]
    return Verdict(words, "bad", (*details, *(tag("p", "Explained by: ", title) for title in first)))


def _facts(diagnosis: Diagnosis) -> Html:
    run, path = diagnosis.run, diagnosis.log.path
    rows = [("Log", path)]
    if run.onset and not run.signature.benign:
        rows.append(("Began", moment_in_words(run.onset, path)))
    if run.healthy:
        rows.append(("Last healthy", moment_in_words(run.healthy, path)))
    elif run.onset and run.readings and not run.signature.benign:
        rows.append(("Last healthy", "none: present from the first reading"))
    if run.last:
        rows.append(("Last reading", f"{moment_in_words(run.last, path)}, the last of {run.readings}"))
    rows += [("Also", note.words) for note in run.notes]
    rows += [("Note", note) for note in diagnosis.log.notes]
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")


def _error(run: Run) -> Html:
    if run.crash is None:
        return Html()
    place = run.crash.location
    ranks = f", on ranks {', '.join(run.crash.ranks)}" if len(run.crash.ranks) > 1 else ""
    frames = "".join(f"\n  at {frame}" for frame in run.crash.frames[-4:])
    text = f"{run.crash.text[:_LONGEST_LINE]}{frames}"
    return joined((tag("h3", "The error"), tag("p", f"{place}{ranks}", class_="meta"), tag("pre", tag("code", text))))


def _curves(run: Run) -> Html:
    drawing = curves.embedded(run.curves, run.signature.words)
    said = "A mark at the upper edge stands for a value that is not finite, a dashed line for where the symptom began."
    return tag("figure", Html(drawing), tag("figcaption", said, class_="meta")) if drawing else Html()


def _explained(diagnosis: Diagnosis) -> Html:
    if diagnosis.healthy and not diagnosis.explanations:
        return Html()
    known = "" if diagnosis.environment_given else ", as far as it is known"
    none = None if diagnosis.explanations else tag("p", f"No entry of the matrix explains this{known}.")
    more = tag("p", f"{diagnosis.more} weaker matches not shown.") if diagnosis.more else None
    hint = None if diagnosis.environment_given else tag("p", _NO_ENVIRONMENT, class_="meta")
    return section("What explains it", none, hint, *map(_explanation, diagnosis.explanations), more)


def _explanation(explanation: Explanation) -> Html:
    finding = explanation.finding
    kind, symbol = _SIGNS[explanation.fit]
    parts = (
        _findings.section_of("Why it fits", listed(explanation.why)),
        _findings.section_of("What would decide", listed(explanation.tells_apart)),
        _findings.section_of("Advice that misleads", listed(explanation.misleading)),
    )
    mark = tag("span", symbol, class_=f"sign {kind}-sign", aria_hidden="true")
    return _findings.explained(finding, mark, FITS[explanation.fit], parts, kind)


def _ruled_out(dropped: tuple[Dropped, ...]) -> Html:
    rows = [
        joined(
            (
                each.title,
                " ",
                tag("small", f"{each.id}: {', '.join(each.against) or 'a known fact'} speaks against it"),
                _yet(each),
            )
        )
        for each in dropped
    ]
    if not rows:
        return Html()
    return section(
        "What the known facts rule out", tag("details", tag("summary", f"{len(rows)} entries"), listed(rows))
    )


def _yet(dropped: Dropped) -> Html | None:
    if dropped.line is None:
        return None
    place = f"{dropped.line.location}: {dropped.line.text[:_LONGEST_LINE]}"
    return tag("p", f"Yet its error line stands in {place}. Is this the environment that wrote the log?")


def _other_runs(diagnosis: Diagnosis) -> Html:
    rows = [
        f"{log.path}, lines {run.first_line} to {run.last_line}: {run.signature.words}"
        for log in diagnosis.logs
        for run in log.runs
        if run is not diagnosis.run
    ]
    if not rows:
        return Html()
    return section("Other runs", tag("details", tag("summary", f"{len(rows)} in these logs"), listed(rows)))
