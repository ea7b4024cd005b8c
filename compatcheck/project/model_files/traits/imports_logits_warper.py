"""The code imports ``LogitsWarper``, a name that transformers 4.49.0 no longer has.

https://github.com/huggingface/transformers/blob/v4.49.0/src/transformers/generation/logits_process.py
"""

from __future__ import annotations

from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._imports import line_of_import

TRAIT = "imports-logits-warper"
KIND = "model"


def find(code: Code) -> int | None:
    return line_of_import(code, r"transformers(\.generation(\.logits_process)?)?", ("LogitsWarper",))
