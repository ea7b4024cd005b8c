"""Small real tokenizers, built with the tokenizers library, in folders as models come in."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
CHATML_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEXT = (
    "user assistant system The capital of France is Paris. What is two and five? It is seven. Hello there, how are you?"
)

MakeModel = Callable[..., Path]
Write = Callable[..., Path]


@pytest.fixture
def make_model(tmp_path: Path) -> MakeModel:
    """Writes a model folder: a byte-level BPE tokenizer with these special tokens and this template."""

    def make(
        template: str | None = CHATML,
        special: Sequence[str] = CHATML_TOKENS,
        stops: object = 2,
        name: str = "model",
        unregistered: Sequence[str] = (),
        **config: Any,
    ) -> Path:
        tokenizers = pytest.importorskip("tokenizers")
        pytest.importorskip("transformers")
        folder = tmp_path / name
        folder.mkdir()
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=400, special_tokens=list(special), initial_alphabet=alphabet
        )
        tokenizer.train_from_iterator([TEXT], trainer)
        document = json.loads(tokenizer.to_str())
        document["added_tokens"] = [each for each in document["added_tokens"] if each["content"] not in unregistered]
        (folder / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
        stated = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": special[0],
            "pad_token": special[0],
            "chat_template": template,
            **config,
        }
        stated = {key: value for key, value in stated.items() if value is not None}
        (folder / "tokenizer_config.json").write_text(json.dumps(stated), encoding="utf-8")
        (folder / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": stops}), encoding="utf-8")
        return folder

    return make


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes records as JSON lines."""

    def lines(*records: Any, name: str = "train.jsonl") -> Path:
        path = tmp_path / name
        text = "".join(
            (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)) + "\n" for each in records
        )
        path.write_text(text, encoding="utf-8")
        return path

    return lines


def chat(question: str = "What is two and five?", answer: str = "It is seven.", system: str = "") -> dict[str, Any]:
    turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"messages": [{"role": "system", "content": system}, *turns] if system else turns}
