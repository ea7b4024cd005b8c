"""Questions of `diagnose --ask`, one by one on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from compatcheck import matrix
from compatcheck.environment.assumptions import assume
from compatcheck.errors import InputError
from compatcheck.language import gettext as _
from compatcheck.pipelines.diagnose import Reading, explain
from compatcheck.results.diagnoses import Answer, Ask, Diagnosis

_YES, _NO, _STOP = ("y", "yes", "是"), ("n", "no", "否"), ("q", "quit")


def require_terminal(paths: Sequence[str]) -> None:
    """Raise InputError where nobody can answer."""
    if "-" in paths or not (sys.stdin and sys.stdin.isatty()):
        seen = "standard input is not a terminal" if "-" not in paths else "standard input is the log to diagnose"
        raise InputError("asking", "--ask", seen, "run this command on a terminal, or supply facts with --assume")


def ask(found: Diagnosis, reading: Reading, known: matrix.Matrix) -> Diagnosis:
    """Ask what divides best and rank anew, until an explanation is likely, nothing divides or the user stops."""
    answers: list[Answer] = []
    while not (found.explanations and found.explanations[0].band == "likely"):
        question = found.best_question(skip=[each.fact for each in answers])
        if question is None:
            break
        said = _said(question)
        if said in _STOP:
            break
        if said in (*_YES, *_NO) and not isinstance(question.condition, bool):
            answers.append(Answer(question.fact, question.condition, said in _YES))
        elif said:
            value = _value(question, said)
            try:
                reading = _with_fact(reading, f"{question.fact}={value}")
            except InputError as error:
                click.echo(f"  {_(error.seen)}{_('; ')}{_(error.advice)}", err=True)
                continue
        else:
            answers.append(Answer(question.fact, question.condition, None))
        found = explain(reading, known, found.inputs, answers)
    return found


def _said(question: Ask) -> str:
    """What is typed, in lower case where it is yes or no; the end of the input stops."""
    click.echo(f"{question.text} {_('[y, n, a value, Enter: not known, q: stop]')} ", err=True, nl=False)
    line = sys.stdin.readline()
    if not line:
        click.echo(err=True)
        return "q"
    said = line.strip()
    return said.lower() if said.lower() in (*_YES, *_NO, *_STOP) else said


def _value(question: Ask, said: str) -> str:
    if said in (*_YES, *_NO):
        return str((said in _YES) is question.condition).lower()
    return said


def _with_fact(reading: Reading, statement: str) -> Reading:
    environment = assume(reading.case.environment, statement)
    return reading._replace(case=reading.case._replace(environment=environment))
