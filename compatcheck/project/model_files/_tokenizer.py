"""What a model's folder says of its tokenizer: the class, the chat template and how the merges are written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.json_text import json_object, read_json_object
from compatcheck.files.reading import open_bytes, read_text

_CONFIG, _FAST, _SPECIAL = "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json"
_PIECE, _OVERLAP = 1 << 20, 256
_MERGES = re.compile(rb'"merges"\s*:\s*\[\s*(["\[])')
_MARKED = re.compile(r"<\|[^|<>\s]{1,40}\|>|\[/?[A-Z]{2,12}\]|</?s>|<(?:start|end)_of_turn>")


class Template(NamedTuple):
    """One chat template: the file it stands in, its name where a file has several, and its text."""

    source: str
    name: str
    text: str

    @property
    def sha256(self) -> str:
        import hashlib

        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    @property
    def tokens(self) -> list[str]:
        """The special tokens that it writes, as their usual forms show."""
        return sorted(set(_MARKED.findall(self.text)))


def read(folder: str, names: list[str], reasons: dict[str, str]) -> dict[str, Any]:
    """``tokenizer`` of the model, where the folder has one; a file that cannot be read is told by a reason."""
    if not {_CONFIG, _FAST} & set(names) and not any(name.startswith("tokeniz") for name in names):
        return {}
    tokenizer: dict[str, object] = {}
    try:
        config = read_json_object(os.path.join(folder, _CONFIG)) if _CONFIG in names else {}
        if isinstance(config.get("tokenizer_class"), str):
            tokenizer["class"] = config["tokenizer_class"]
        found = list(templates(folder, names))
        tokenizer["chat_template"] = (
            {"source": found[0].source, "sha256": found[0].sha256, "tokens": found[0].tokens} if found else None
        )
    except InputError as error:
        reasons["model.tokenizer"] = str(error)
    merges = _merges(folder, names)
    if merges:
        tokenizer["merges"] = merges
    return {"tokenizer": tokenizer}


def templates(folder: str, names: list[str]) -> Iterator[Template]:
    """The chat templates, the one that transformers uses first: a file of its own counts before the configuration.

    https://huggingface.co/docs/transformers/chat_templating_writing
    """
    if "chat_template.jinja" in names:
        yield Template("chat_template.jinja", "default", read_text(os.path.join(folder, "chat_template.jinja")))
    for name in ("chat_template.json", _CONFIG):
        if name in names:
            stated = read_json_object(os.path.join(folder, name)).get("chat_template")
            if isinstance(stated, str):
                yield Template(name, "default", stated)
            for each in stated if isinstance(stated, list) else ():
                if isinstance(each, dict) and isinstance(each.get("template"), str):
                    yield Template(name, str(each.get("name"))[:80], each["template"])


def special_tokens(folder: str, names: list[str]) -> dict[str, str]:
    """The special tokens by their role, and those added by their number."""
    tokens = _stated_tokens(folder, names)
    for value in _fast(folder, names).get("added_tokens") or ():
        if isinstance(value, dict) and isinstance(value.get("content"), str):
            tokens[f"token {value.get('id')}"] = value["content"]
    return tokens


def names_special_tokens(folder: str, names: list[str]) -> bool:
    """Whether a slow tokenizer's files give a role to a token that is not among the added ones."""
    try:
        tokens = _stated_tokens(folder, names)
    except InputError:
        return False
    added = {text for role, text in tokens.items() if role.startswith("token ")}
    return any(text not in added for role, text in tokens.items() if role.endswith("_token"))


def _stated_tokens(folder: str, names: list[str]) -> dict[str, str]:
    tokens: dict[str, str] = {}
    for name in (_SPECIAL, _CONFIG):
        stated = read_json_object(os.path.join(folder, name)) if name in names else {}
        for role, value in stated.items():
            text = value.get("content") if isinstance(value, dict) else value
            if role.endswith("_token") and isinstance(text, str):
                tokens[role] = text
        added = stated.get("added_tokens_decoder")
        for number, value in added.items() if isinstance(added, dict) else ():
            if isinstance(value, dict) and isinstance(value.get("content"), str):
                tokens[f"token {number}"] = value["content"]
    return tokens


def _fast(folder: str, names: list[str]) -> dict[str, Any]:
    if _FAST not in names:
        return {}
    path = os.path.join(folder, _FAST)
    return json_object(read_text(path, limits.TOKENIZER_BYTES), path)


def _merges(folder: str, names: list[str]) -> str | None:
    """``pairs`` or ``strings``: how the merges of a BPE tokenizer are written; None where there are none.

    tokenizers 0.20.0 began to write pairs: https://github.com/huggingface/tokenizers/releases/tag/v0.20.0
    """
    if _FAST not in names:
        return None
    try:
        with open_bytes(os.path.join(folder, _FAST)) as stream:
            return _form_of_merges(stream)
    except OSError:
        return None


def _form_of_merges(stream: BinaryIO) -> str | None:
    """The vocabulary before the merges may take tens of MB, so the file is read in pieces and not parsed."""
    tail = b""
    while piece := stream.read(_PIECE):
        found = _MERGES.search(tail + piece)
        if found:
            return "pairs" if found[1] == b"[" else "strings"
        tail = piece[-_OVERLAP:]
    return None
