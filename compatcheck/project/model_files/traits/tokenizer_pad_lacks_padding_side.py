"""``_pad`` cannot take the argument that transformers 4.45.0 and later pass.

https://github.com/zai-org/ChatGLM3/issues/1324
"""

from __future__ import annotations

from compatcheck.files.python_syntax import methods, parameters
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "tokenizer"


def find(code: Code) -> int | None:
    for node in classes(code):
        pad = methods(node).get("_pad")
        if pad and pad.args.kwarg is None and "padding_side" not in parameters(pad):
            return pad.lineno
    return None
