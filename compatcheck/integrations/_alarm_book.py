"""What a guard has to say, where it says it, and what an alarm does."""

from __future__ import annotations

import os
import sys
from typing import Any

from compatcheck import language, matrix
from compatcheck.environment import Environment, Target
from compatcheck.errors import CompatcheckError
from compatcheck.installed.collect import collect
from compatcheck.installed.target import own_target
from compatcheck.integrations._diagnosis import explain, render_alarm, write_report
from compatcheck.integrations._watch import Alarm
from compatcheck.language import gettext as _
from compatcheck.pipelines.verdict import Options, Probing, Verdict, judge
from compatcheck.report import render
from compatcheck.report.subjects.check import document
from compatcheck.results.diagnoses import Diagnosis
from compatcheck.results.findings import failing

OWN_FAILURES = (
    CompatcheckError,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    AssertionError,
    ImportError,
)
"""What a damaged installation or an unusual model raises in the guard's own code: never a reason to end a training."""


class TrainingRefused(CompatcheckError):
    """The environment has a finding at or above ``fail_on``, and the guard was told to stop for that."""


class TrainingStopped(CompatcheckError):
    """An alarm says that going on is useless, and the guard was told to stop for that."""


class AlarmBook:
    """Every alarm once, with what explains it, on standard error and in a report file.

    ``speaks`` is false on other ranks than the first, ``alone`` true in a run of one process.
    """

    def __init__(self, *, stops: bool, speaks: bool, alone: bool, report: str | None, ignore: tuple[str, ...]) -> None:
        self.stops, self.speaks, self.alone, self.report, self.ignore = stops, speaks, alone, report, ignore
        self.told: list[tuple[Alarm, Diagnosis | None]] = []
        self.environment = Environment({})
        self.known: matrix.Matrix | None = None
        self.ending = False
        try:
            language.use(language.wanted((), os.environ, on_terminal=False), sys.stderr.encoding)
        except CompatcheckError as error:
            self.say(str(error))

    @property
    def alarms(self) -> list[Alarm]:
        return [alarm for alarm, _diagnosis in self.told]

    def judge_environment(self, facts: Any, *, check: bool, probes: bool, fail_on: str) -> None:
        """Judge what is installed here before the first step; ``facts`` adds those of the objects in use.

        Raises `TrainingRefused` where a finding is at or above ``fail_on`` and the guard stops.
        """
        verdict = self._verdict(facts, check, probes, fail_on)
        if verdict is None:
            return
        report = verdict.report
        bad = [finding for finding in report.findings if finding.status in failing(fail_on)]
        if not bad:
            self.say(f"{verdict.reason} among {report.matrix_entries} entries")
            return
        self.say(render(document(report), "text").rstrip())
        if self.stops:
            seen = "; ".join(f"{finding.id} {finding.title}" for finding in bad)
            raise TrainingRefused("starting", "the training", seen, "see the fixes above, or set on='warn'")

    def _verdict(self, facts: Any, check: bool, probes: bool, fail_on: str) -> Verdict | None:
        try:
            self.known = matrix.load()
            target = _this_interpreter()
            self.environment = facts(collect(target, self.known.environ))
            if not check or (probes and not self.speaks):
                return None
            return judge(self.environment, self.known, Options(fail_on=fail_on), Probing(target) if probes else None)
        except OWN_FAILURES as error:
            self.fail(_("the guard could not judge this environment"), error)
            return None

    def add(self, alarm: Alarm, *, seen_by_all: bool = False) -> bool:
        """Tell an alarm the first time its signature is met; returns whether the training has to end for it.

        An alarm that one rank alone sees ends only a run of one process, so that no rank waits for one that left.
        """
        if alarm.signature in self.ignore:
            return False
        ends = alarm.stops and self.stops and (seen_by_all or self.alone)
        if all(alarm.signature != each.signature for each in self.alarms):
            diagnosis = self._explain(alarm)
            self.told.append((alarm, diagnosis))
            if not self.ending:
                lines = render_alarm(alarm, diagnosis)
                self.say("\n".join([*lines, *self._write()]))
        if ends and not self.ending:
            self.ending = True
            self.say(_("the training ends after this step because of {signature}").format(signature=alarm.signature))
        return ends

    def _explain(self, alarm: Alarm) -> Diagnosis | None:
        """What explains an alarm; None where nothing could be looked up."""
        if not self.speaks or self.known is None:
            return None
        try:
            return explain(self.environment, self.known, alarm)
        except OWN_FAILURES as error:
            self.fail(_("the guard could not look up the alarm"), error)
            return None

    def _write(self) -> list[str]:
        if self.report is None or not self.speaks or self.known is None:
            return []
        try:
            write_report(self.report, self.told)
        except OWN_FAILURES as error:
            return [_("  the report could not be written: {error}").format(error=error)]
        return [_("  report: {path}").format(path=self.report)]

    def fail(self, what: str, error: BaseException) -> None:
        """Say that the guard itself failed."""
        self.say(f"{what}: {error or type(error).__name__}")

    def say(self, text: str) -> None:
        if self.speaks:
            print("\n".join(f"compatcheck: {line}" for line in text.splitlines()), file=sys.stderr, flush=True)


def _this_interpreter() -> Target:
    return own_target(os.environ)
