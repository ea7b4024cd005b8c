"""A constructor reads a setting of generation off the configuration, where transformers 5.0.0 no longer has defaults.

https://github.com/zai-org/GLM-4-Voice/issues/181
"""

from __future__ import annotations

import ast

from compatcheck.files.python_syntax import attributes_set, base_names, is_self, last_name, methods
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "model"

_SETTINGS = ("do_sample", "forced_bos_token_id", "forced_eos_token_id", "max_length", "min_length", "num_beams")


def find(code: Code) -> int | None:
    """The first line; an attribute that the code sets itself, or names in a string as for ``getattr``, is let be."""
    let_be = {each.value for each in code.nodes if isinstance(each, ast.Constant)}
    let_be |= {*code.configured, *attributes_set(code.tree)}
    lines = [
        each.lineno
        for node in classes(code)
        for each in _attributes_of_constructor(node)
        if each.attr in _SETTINGS
        and each.attr not in let_be
        and (last_name(each.value) == "config" or (is_self(each.value) and _is_config(node)))
    ]
    return min(lines, default=None)


def _attributes_of_constructor(node: ast.ClassDef) -> list[ast.Attribute]:
    constructor = methods(node).get("__init__")
    inner = ast.walk(constructor) if constructor is not None else ()
    return [each for each in inner if isinstance(each, ast.Attribute)]


def _is_config(node: ast.ClassDef) -> bool:
    return any(name.endswith("Config") for name in base_names(node))
