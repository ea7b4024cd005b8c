"""A language-model head whose ``forward`` takes labels and no ``**kwargs``.

The Trainer of transformers 4.46 and later tells by these whether the model divides the loss itself:
https://github.com/huggingface/transformers/pull/35438
"""

from __future__ import annotations

from compatcheck.files.python_syntax import methods, parameters
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "model"
_HEADS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")


def find(code: Code) -> int | None:
    for node in classes(code):
        forward = methods(node).get("forward") if node.name.endswith(_HEADS) else None
        if forward and "labels" in parameters(forward) and forward.args.kwarg is None:
            return forward.lineno
    return None
