"""Templates in the style of well-known families, on vocabularies with their markers: nothing is called a problem."""

from __future__ import annotations

from typing import NamedTuple

import pytest

pytest.importorskip("transformers")

from compatcheck import data
from compatcheck.probes.training import chat_template
from tests.data.conftest import MakeModel, chat
from tests.data.test_templates import measured

pytestmark = pytest.mark.stack


class Family(NamedTuple):
    """Template, special tokens (the first is the end of sequence), and where generation stops."""

    template: str
    special: tuple[str, ...]
    stops: object
    notes: frozenset[str] = frozenset()
    config: tuple[tuple[str, str], ...] = (("pad_token", "<pad>"),)


FAMILIES = {
    "llama 3": Family(
        "{% for m in messages %}{% set c = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' "
        " + m['content'] | trim + '<|eot_id|>' %}"
        "{% if loop.first %}{% set c = bos_token + c %}{% endif %}{{ c }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
        ("<|eot_id|>", "<|end_of_text|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<pad>"),
        [0, 1],
        config=(("bos_token", "<|begin_of_text|>"), ("pad_token", "<pad>")),
    ),
    "mistral": Family(
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}"
        "{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}",
        ("</s>", "<s>", "<pad>"),
        0,
        config=(("bos_token", "<s>"), ("pad_token", "<pad>")),
    ),
    "gemma": Family(
        "{{ bos_token }}{% for m in messages %}{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
        "{{ '<start_of_turn>' + role + '\\n' + m['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
        ("<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>", "<pad>"),
        [0, 3],
        config=(("bos_token", "<bos>"), ("pad_token", "<pad>")),
    ),
    "zephyr, whose markers are text": Family(
        "{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + eos_token + '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}",
        ("</s>", "<s>", "<pad>"),
        0,
        frozenset({"marker-is-text"}),
    ),
    "phi 3": Family(
        "{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + '<|end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}",
        ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<pad>"),
        [0, 4],
    ),
    "qwen 2.5, which adds a system turn": Family(
        "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are Qwen.<|im_end|>\\n' }}{% endif %}"
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
        ("<|im_end|>", "<|im_start|>", "<|endoftext|>"),
        [0, 2],
        config=(("pad_token", "<|endoftext|>"),),
    ),
    "qwen 3, which adds an empty thought to the last answer": Family(
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}{% if loop.last and m['role'] == 'assistant' %}"
        "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{{ m['content'] + '<|im_end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
        ("<|im_end|>", "<|im_start|>", "<|endoftext|>"),
        [0, 2],
        config=(("pad_token", "<|endoftext|>"),),
    ),
    "an answer after a thought that the prompt opens": Family(
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '<|User|>' + m['content'] }}"
        "{% else %}{{ '<|Assistant|>' + m['content'] + eos_token }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|Assistant|><think>\\n' }}{% endif %}",
        ("<|end|>", "<|begin|>", "<|User|>", "<|Assistant|>", "<pad>"),
        0,
        frozenset({"prompt-not-prefix"}),
        config=(("bos_token", "<|begin|>"), ("pad_token", "<pad>")),
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_no_family_has_a_problem_with_ordinary_rows(
    name: str, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for confining in ("_stay_offline", "_limit_memory"):
        monkeypatch.setattr(chat_template, confining, lambda: None)
    family = FAMILIES[name]
    folder = make_model(family.template, family.special, family.stops, **dict(family.config))
    long = {"messages": [*chat()["messages"], *chat("Hello there, how are you?", "Fine.")["messages"]]}
    facts = measured(folder, [chat(), long], max_length=400)
    found = list(data.judge_tokens(facts, "messages", 400))
    assert {each.name for each in found if each.level == "problem"} == set()
    assert {each.name for each in found} == family.notes
    assert all(row["kept"] == row["labels"] > 2 for row in facts["rows"])
