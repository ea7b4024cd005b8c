"""No model class that the configuration names calls ``self.post_init()``.

transformers 5.0.0 makes ``all_tied_weights_keys`` there and needs it when weights are loaded:
https://github.com/AnswerDotAI/rerankers/issues/77
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls, methods
from compatcheck.project.model_files.traits._code import Code, classes, lineage

KIND = "model"


def find(code: Code) -> int | None:
    """The line of such a class, where all model classes that are named leave the call out: one of them is loaded."""
    named = [each for each in classes(code) if each.name in code.entry_points and not each.name.endswith("Config")]
    lacking = [each.lineno for each in named if _never_calls(code, each)]
    return lacking[0] if lacking and len(lacking) == len(named) else None


def _never_calls(code: Code, node: ast.ClassDef) -> bool:
    """Whether neither the class nor what it inherits calls it; one with an ancestor that is not here is let be."""
    family, outside = lineage(code, node)
    if "PreTrainedModel" not in outside or outside - {"PreTrainedModel", "GenerationMixin", "ABC"}:
        return False
    starts = any("__init__" in methods(each) for each in family)
    return starts and not any(list(calls(each, "post_init")) for each in family)
