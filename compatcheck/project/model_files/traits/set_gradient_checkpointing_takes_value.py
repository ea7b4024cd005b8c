"""``_set_gradient_checkpointing(self, module, value)``, the form of transformers before 4.35.

Releases 4.35.0 to 4.35.2 call it with ``enable=`` and fail with a TypeError; from 4.36.0 a fallback calls it as it
wants to be, and ignores ``gradient_checkpointing_kwargs``: https://github.com/hiyouga/LlamaFactory/issues/1366
"""

from __future__ import annotations

from compatcheck.files.python_syntax import methods, parameters
from compatcheck.project.model_files.traits._code import Code, classes

KIND = "model"


def find(code: Code) -> int | None:
    for node in classes(code):
        own = methods(node)
        setter = own.get("_set_gradient_checkpointing")
        overridden = "gradient_checkpointing_enable" in own
        if setter and not overridden and setter.args.kwarg is None and _is_old(parameters(setter)):
            return setter.lineno
    return None


def _is_old(names: list[str]) -> bool:
    return "value" in names and "enable" not in names and "gradient_checkpointing_func" not in names
