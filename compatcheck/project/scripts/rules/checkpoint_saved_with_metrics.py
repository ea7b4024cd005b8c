"""``_save_checkpoint`` of its own that hands ``metrics`` on, or demands it, which 4.47.0 no longer takes or gives.

https://github.com/huggingface/transformers/blob/v4.47.0/src/transformers/trainer.py
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import inside
from compatcheck.project.scripts._script import OwnTrainer, Script, calls_inherited, undecorated

READS = "trainers"


def find(script: Script) -> int | None:
    return script.first(_line)


def _line(trainer: OwnTrainer) -> int | None:
    """A call that stands under a condition or is tried may be for older releases alone."""
    own = undecorated(trainer, "_save_checkpoint")
    if own is None or "_maybe_log_save_evaluate" in trainer.methods:
        return None
    demanded = len(own.args.args) - len(own.args.defaults)
    if demanded > 3:
        return own.lineno
    guarded = inside(each for each in ast.walk(own) if isinstance(each, (ast.If, ast.IfExp, ast.Try)))
    for call in calls_inherited(own):
        named = any(keyword.arg == "metrics" for keyword in call.keywords)
        if id(call) not in guarded and (named or sum(not isinstance(each, ast.Starred) for each in call.args) > 2):
            return call.lineno
    return None
