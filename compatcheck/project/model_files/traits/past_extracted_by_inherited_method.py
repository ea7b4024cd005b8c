"""Generation calls the inherited ``_extract_past_from_model_output``, which transformers 4.49.0 no longer has.

https://github.com/zai-org/GLM-4/issues/715
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._inherited import line_of_inherited

KIND = "model"


def find(code: Code) -> int | None:
    return line_of_inherited(code, "_extract_past_from_model_output")
