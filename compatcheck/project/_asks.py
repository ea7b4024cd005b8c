"""What a file of the user's Python asks of packages, as facts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from compatcheck.files import limits
from compatcheck.interfaces.scripts import asked_by
from compatcheck.interfaces.summary import Ask
from compatcheck.language import gettext as _
from compatcheck.terminal.messages import say


def asks(tree: ast.Module, file: str, loaded: bool = False) -> Iterator[dict[str, Any]]:
    """Each import, attribute and call with its line; code that is ``loaded`` imports within functions as it likes.

    Of code that asks more different things than any program does, the rest is left out, with a line that says so.
    """
    questions: set[Ask] = set()
    for ask, given, lines in asked_by(tree, loaded):
        questions.add(ask._replace(line=0))
        if len(questions) > limits.ASKS:
            text = _("{file}:{line}: this import, attribute or call and those after it are not compared with releases")
            say(text.format(file=file, line=ask.line))
            return
        if len(ask.keywords) > limits.ASKED_KEYWORDS:
            continue
        if loaded and ask.kind == "import" and ask.scope:
            continue
        facts = {
            "name": ask.name,
            "places": ask.places,
            "keywords": list(ask.keywords),
            "conditions": list(ask.conditions),
            "given": list(given),
            "lines": list(lines) if set(lines) - {ask.line} else [],
        }
        stated = {key: value for key, value in facts.items() if value}
        yield {"kind": ask.kind, "target": ask.target, **stated, "file": file, "line": ask.line}
