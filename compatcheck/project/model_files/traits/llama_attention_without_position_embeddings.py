"""The code puts Llama's attention into layers of its own and gives it no ``position_embeddings``.

transformers 4.48.0 and later cannot do without: https://github.com/deepseek-ai/DeepSeek-VL2/issues/106
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import calls
from compatcheck.project.model_files.traits._code import Code

KIND = "model"
_CLASSES = ("LlamaAttention", "LlamaFlashAttention2", "LlamaSdpaAttention")


def find(code: Code) -> int | None:
    """The line of a call of ``self_attn`` without them, in a file that names them nowhere."""
    imported = {
        each.name
        for node in code.nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("transformers.models.llama")
        for each in node.names
    }
    if imported.isdisjoint(_CLASSES) or any(map(_names_them, code.nodes)):
        return None
    return min((each.lineno for each in calls(code.tree, "self_attn")), default=None)


def _names_them(node: ast.AST) -> bool:
    return "position_embeddings" in (
        getattr(node, "arg", None),
        getattr(node, "id", None),
        getattr(node, "value", None),
    )
