"""A slow tokenizer whose added tokens do not all come after its vocabulary.

One from 0 on, a gap or an extra id of T5 shows it. A file that cannot be read decides nothing, and where there is a
fast tokenizer the file is not read. https://github.com/01-ai/Yi/issues/350
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

_ADDED, _FAST = "added_tokens.json", "tokenizer.json"


def find(files: Files) -> bool:
    if _FAST in files.names:
        return False
    stated = files.json(_ADDED) or {}
    numbers = sorted(each for each in stated.values() if isinstance(each, int))
    if not numbers:
        return False
    has_gap = len(set(numbers)) != numbers[-1] - numbers[0] + 1
    return numbers[0] == 0 or has_gap or any(name.startswith("<extra_id_") for name in stated)
