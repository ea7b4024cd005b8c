"""What a model's folder says of its processor for images."""

from __future__ import annotations

import os

from compatcheck.errors import InputError
from compatcheck.files.json_text import read_json_object

_STATED_IN = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
_CLASSES = ("LlavaNextProcessor", "LlavaProcessor")


def traits(folder: str, names: list[str]) -> list[str]:
    """``processor-lacks-patch-size``: a processor of LLaVA that was saved before transformers 4.45 knew the setting.

    A file that cannot be read decides nothing. https://github.com/hiyouga/LlamaFactory/issues/7517
    """
    try:
        stated = {name: read_json_object(os.path.join(folder, name)) for name in _STATED_IN if name in names}
    except InputError:
        return []
    of_llava = any(each.get("processor_class") in _CLASSES for each in stated.values())
    known = stated.get("processor_config.json", {}).get("patch_size") is not None
    return ["processor-lacks-patch-size"] if of_llava and not known else []
