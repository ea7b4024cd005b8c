"""A model that lies inside another one is to generate, and inherits that from ``PreTrainedModel`` alone.

From transformers 4.52 on that is no longer so; the auto classes make up for it for the outer model, not for one inside:
https://github.com/OpenGVLab/InternVL/issues/1068
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import methods
from compatcheck.project.model_files.traits._code import Code, classes, lineage

KIND = "model"


def find(code: Code) -> int | None:
    """The line of such a class, in a file none of whose classes the configuration names."""
    here = classes(code)
    if not code.entry_points or any(each.name in code.entry_points for each in here):
        return None
    return next((node.lineno for node in here if _is_to_generate(code, node)), None)


def _is_to_generate(code: Code, node: ast.ClassDef) -> bool:
    family, outside = lineage(code, node)
    if "prepare_inputs_for_generation" not in methods(node) or "PreTrainedModel" not in outside:
        return False
    return not any("Generation" in name for name in outside) and not any("generate" in methods(each) for each in family)
