"""A processor of LLaVA that was saved before transformers 4.45 knew the setting ``patch_size``.

A file that cannot be read decides nothing. https://github.com/hiyouga/LlamaFactory/issues/7517
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

_STATED_IN = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
_CLASSES = ("LlavaNextProcessor", "LlavaProcessor")


def find(files: Files) -> bool:
    stated = {name: files.json(name) for name in _STATED_IN}
    if None in stated.values():
        return False
    for_llava = any(each.get("processor_class") in _CLASSES for each in stated.values() if each)
    return for_llava and (stated["processor_config.json"] or {}).get("patch_size") is None
