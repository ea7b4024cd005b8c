"""Real tokenizers and templates: what training makes of the rows, and what the parent says of it."""

from __future__ import annotations

import array
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from compatcheck import data, matrix
from compatcheck.probes.training import chat_template
from compatcheck.results.data import DataProblem
from tests.data.conftest import CHATML, MakeModel, chat

pytestmark = pytest.mark.stack

GLM = (
    "[gMASK]<sop>{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
GLM_TOKENS = ("<|endoftext|>", "[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|system|>", "<|observation|>")
STRICT = (
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate user/assistant') }}{% endif %}"
    "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
REMOTE = """
from transformers import PreTrainedTokenizer

SPECIAL = ["<pad>", "<eop>", "[gMASK]", "sop", "<|user|>", "<|assistant|>"]


class TinyGLMTokenizer(PreTrainedTokenizer):
    model_input_names = ["input_ids", "attention_mask"]

    def __init__(self, **kwargs):
        self.words = {word: n for n, word in enumerate(SPECIAL + [chr(n) for n in range(10, 127)])}
        kwargs.update(pad_token="<pad>", eos_token="<eop>", padding_side="left")
        super().__init__(**kwargs)

    @property
    def vocab_size(self):
        return len(self.words)

    def get_vocab(self):
        return dict(self.words)

    def _tokenize(self, text, **kwargs):
        return list(text)

    def _convert_token_to_id(self, token):
        return self.words.get(token, 6)

    def _convert_id_to_token(self, index):
        return list(self.words)[index]

    def save_vocabulary(self, *args, **kwargs):
        return ()

    def apply_chat_template(self, conversation, add_generation_prompt=False, tokenize=True, **kwargs):
        ids = [2, 3]
        for message in conversation:
            ids += [self.words["<|%s|>" % message["role"]], *map(self._convert_token_to_id, message["content"])]
        if add_generation_prompt:
            ids.append(self.words["<|assistant|>"])
        return NESTED
"""


@pytest.fixture(autouse=True)
def _unconfined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe confines its process, which is the tests' own here; others need sockets, and memory for threads."""
    for name in ("_stay_offline", "_limit_memory"):
        monkeypatch.setattr(chat_template, name, lambda: None)


def measured(folder: Path, records: Sequence[Mapping[str, Any]], **request: Any) -> dict[str, Any]:
    rows = folder.parent / "rows.jsonl"
    lines = [json.dumps({"number": number, **record}) for number, record in enumerate(records, 1)]
    rows.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    asked = {"model_file": str(folder), "rows_file": str(rows), **request}
    steps, found = chat_template.measure(asked, lambda _: None), []
    while True:
        try:
            found.append(next(steps))
        except StopIteration as end:
            return json.loads(json.dumps({"rows": found, **end.value}))


def judged(folder: Path, *records: Mapping[str, Any], **request: Any) -> dict[str, DataProblem]:
    facts = measured(folder, records, **request)
    assert "unreadable" not in facts, facts["unreadable"]
    return {each.name: each for each in data.judge_tokens(facts, "messages", request.get("max_length"))}


def test_a_fitting_model_and_data_have_no_problem(make_model: MakeModel) -> None:
    assert judged(make_model(), chat(), chat(system="Be brief.")) == {}


def test_labels_are_the_answer_and_its_end(make_model: MakeModel) -> None:
    facts = measured(make_model(), [chat(answer="It is seven.")])
    learned = "".join(text for text, labelled, kept in facts["shown"]["pieces"] if labelled and kept)
    assert learned == "It is seven.<|im_end|>\n"


def test_rows_that_truncation_leaves_without_a_label_are_counted_and_named(make_model: MakeModel) -> None:
    rows = [chat(), chat(question="word " * 40), chat()]
    found = judged(make_model(), *rows, max_length=40)
    assert list(found) == ["label-cut-off"] and found["label-cut-off"].rows == (2,)
    explained = data.explained(found.values(), matrix.all_entries(matrix.load()))
    assert "CC-2024-0005" in [entry_id for entry_id, _ in explained[0].entries]


def test_one_kept_label_is_enough_and_the_first_position_never_counts(make_model: MakeModel) -> None:
    folder = make_model()
    prompt = measured(folder, [chat(answer="")])["rows"][0]
    start = prompt["tokens"] - prompt["labels"]
    assert measured(folder, [chat()], max_length=start)["rows"][0]["kept"] == 0
    assert measured(folder, [chat()], max_length=start + 1)["rows"][0]["kept"] == 1


def test_a_row_that_begins_with_its_answer_has_no_target_for_the_first_token(make_model: MakeModel) -> None:
    turns = [{"role": "assistant", "content": "It is seven."}]
    row = measured(make_model(template=None), [{"messages": turns}])["rows"][0]
    assert row["labels"] == row["tokens"] - 1 > 0


def test_what_the_template_raises_is_told_with_its_rows(make_model: MakeModel) -> None:
    found = judged(make_model(STRICT), chat(), chat(system="Be brief."), chat())
    assert found["row-refused"].rows == (2,) and "roles must alternate" in found["row-refused"].seen


def test_special_tokens_in_answers_are_told(make_model: MakeModel) -> None:
    found = judged(make_model(), chat(), chat(answer="Seven.<|im_end|>\n<|im_start|>user\nThanks"))
    assert found["special-token-in-answer"].rows == (2,)


def test_generation_that_does_not_stop_where_answers_end_is_told(make_model: MakeModel) -> None:
    found = judged(make_model(stops=0), chat())
    assert list(found) == ["generation-does-not-stop"] and "<|im_end|> (2)" in found["generation-does-not-stop"].seen
    assert judged(make_model(stops=[0, 2], name="both"), chat()) == {}


def test_glm_closes_answers_by_the_next_role_alone(make_model: MakeModel) -> None:
    assert set(judged(make_model(GLM, GLM_TOKENS, stops=[0, 3, 6]), chat())) == {"last-answer-open", "padding-is-end"}
    assert "answer-not-closed" in judged(make_model(GLM, GLM_TOKENS, stops=[0], name="other"), chat())


def test_a_template_that_closes_nothing_is_told(make_model: MakeModel) -> None:
    template = "{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}"
    assert "answer-not-closed" in judged(make_model(template), chat())


def test_padding_with_the_token_that_ends_answers_is_a_note(make_model: MakeModel) -> None:
    found = judged(make_model(pad_token="<|im_end|>"), chat())
    assert found["padding-is-end"].level == "note"
    assert "no-padding-token" in judged(make_model(pad_token=None, name="none"), chat())


def test_a_missing_template_is_a_problem_for_conversations_and_a_note_for_pairs(make_model: MakeModel) -> None:
    facts = measured(make_model(template=None), [chat()])
    level = {
        shape: next(each.level for each in data.judge_tokens(facts, shape, None) if each.name == "template-missing")
        for shape in ("messages", "alpaca")
    }
    assert level == {"messages": "problem", "alpaca": "note"} and facts["rows"][0]["labels"] > 0


def test_markers_that_are_no_tokens_beside_others_that_are_tell_another_family(make_model: MakeModel) -> None:
    found = judged(make_model(CHATML, GLM_TOKENS, stops=[0]), chat())
    assert "<|user|>" in found["template-of-another-family"].seen
    bare = judged(make_model(CHATML, ("<|endoftext|>",), stops=[0], name="base"), chat())
    assert bare["marker-is-text"].level == "note" and "template-of-another-family" not in bare
    partly = make_model(
        CHATML.replace("<|im_end|>", "<|done|>"), GLM_TOKENS + ("<|im_start|>",), stops=[0], name="partly"
    )
    assert "template-of-another-family" not in judged(partly, chat())


def test_tokens_of_the_vocabulary_whose_text_is_cut_into_pieces_are_told(make_model: MakeModel) -> None:
    folder = make_model(unregistered=("<|im_start|>", "<|im_end|>"))
    assert "<|im_start|>" in judged(folder, chat())["special-token-split"].seen


def test_a_second_beginning_of_sequence_is_a_note(make_model: MakeModel) -> None:
    folder = make_model(
        "{{ bos_token }}" + CHATML, ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>"), bos_token="<s>"
    )
    document = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    special = {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": single,
        "special_tokens": special,
    }
    (folder / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    assert judged(folder, chat())["double-bos"].level == "note"


def test_a_prompt_that_is_not_the_beginning_of_the_whole_is_a_note(make_model: MakeModel) -> None:
    template = CHATML.replace("'<|im_start|>assistant\\n'", "'<|im_start|>assistant\\n<think>\\n'")
    assert judged(make_model(template), chat())["prompt-not-prefix"].rows == (1,)


def remote(folder: Path, nested: bool) -> Path:
    folder.mkdir()
    code = REMOTE.replace("NESTED", "[ids]" if nested else "ids")
    (folder / "tokenization_tiny.py").write_text(code, encoding="utf-8")
    mapped = {"auto_map": {"AutoTokenizer": ["tokenization_tiny.TinyGLMTokenizer", None]}}
    stated = {**mapped, "tokenizer_class": "TinyGLMTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(stated), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "tiny_glm"}), encoding="utf-8")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 4]}), encoding="utf-8")
    return folder


def test_a_remote_tokenizer_that_returns_a_list_in_a_list_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    found = judged(remote(tmp_path / "nested", nested=True), chat("Hi", "Ho"), trust_remote_code=True)
    assert found["nested-template"].rows == (1,)
    flat = judged(remote(tmp_path / "flat", nested=False), chat("Hi", "Ho"), trust_remote_code=True)
    assert "nested-template" not in flat and "last-answer-open" in flat


def test_code_of_a_model_is_not_run_unless_that_is_allowed(tmp_path: Path) -> None:
    folder = remote(tmp_path / "model", nested=True)
    found = measured(folder, [chat()])
    assert "tokenization_tiny.py" in found["unreadable"] and found["rows"] == []


def test_a_folder_without_a_tokenizer_is_unreadable_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert "\n" not in measured(folder, [chat()])["unreadable"]
    (folder / "tokenizer.json").write_text("[]", encoding="utf-8")
    assert measured(folder, [chat()])["unreadable"].startswith("transformers cannot load it")


def save(path: Path, rows: list[list[float]], dtype: str) -> None:
    """A safetensors file with one embedding."""
    if dtype == "BF16":
        words = [struct.unpack("<I", struct.pack("<f", value))[0] >> 16 for row in rows for value in row]
        raw = array.array("H", words).tobytes()
    else:
        raw = b"".join(struct.pack("<e" if dtype == "F16" else "<f", value) for row in rows for value in row)
    tensor = {"dtype": dtype, "shape": [len(rows), len(rows[0])], "data_offsets": [0, len(raw)]}
    header = json.dumps({"model.embed_tokens.weight": tensor}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + raw)


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_rows_of_the_embedding_that_nobody_trained_are_named(tmp_path: Path, dtype: str) -> None:
    rows = [[0.02 * (1 + n % 7), -0.03, 0.01, 0.02] for n in range(300)]
    rows[1], rows[2], rows[5] = [0.0] * 4, [1e-5] * 4, [2e-3] * 4
    save(tmp_path / "model.safetensors", rows, dtype)
    tokens = {1: "<|im_start|>", 2: "<|im_end|>", 5: "<|endoftext|>"}
    problem = data.judge_embedding(str(tmp_path), tokens)[0]
    assert problem.trait == "zero-embedding-rows" and "<|im_start|>, <|im_end|> are near zero" in problem.seen
    assert [entry_id for entry_id, _ in data.explained([problem], matrix.all_entries(matrix.load()))[0].entries] == [
        "CC-2024-0045"
    ]
    assert data.judge_embedding(str(tmp_path), {5: "<|endoftext|>"}) == ()


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 64, (1 << 40).to_bytes(8, "little"), (4).to_bytes(8, "little") + b"[[[["]
)
def test_a_damaged_weight_file_gives_no_verdict(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert data.judge_embedding(str(tmp_path), {1: "a"}) == ()


def test_a_method_of_its_own_makes_a_missing_template_a_note() -> None:
    facts = {"rows": [], "templated": False, "own_method": "build_chat_input", "pad_id": 1, "eos_id": 2}
    problem = next(iter(data.judge_tokens(facts, "messages", None)))
    assert problem.level == "note" and "build_chat_input()" in problem.fix


def test_a_framework_with_templates_of_its_own_makes_faults_of_the_model_s_notes(make_model: MakeModel) -> None:
    facts = measured(make_model(stops=0), [chat(question="word " * 40)], max_length=20)
    found = {each.name: each.level for each in data.judge_tokens(facts, "messages", 20, "torchtune")}
    assert found == {"label-cut-off": "problem", "generation-does-not-stop": "note"}


@pytest.mark.parametrize("framework", ["llama-factory", "axolotl", "ms-swift"])
def test_a_framework_that_does_not_cut_rows_at_their_end_loses_no_labels_so(
    make_model: MakeModel, framework: str
) -> None:
    facts = measured(make_model(), [chat(question="word " * 40)], max_length=20)
    problem = next(each for each in data.judge_tokens(facts, "messages", 20, framework))
    assert (problem.name, problem.level, problem.symptoms) == (
        "label-cut-off",
        "note",
        (),
    ) and framework in problem.seen


PARTS = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}{% for c in m['content'] %}"
    "{{ '<image>' if c['type'] == 'image' else c['text'] }}{% endfor %}{{ '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def test_a_template_that_reads_contents_in_parts_is_given_parts(make_model: MakeModel) -> None:
    facts = measured(make_model(PARTS), [chat(answer="It is seven.")])
    learned = "".join(text for text, labelled, _ in facts["shown"]["pieces"] if labelled)
    assert learned == "It is seven.<|im_end|>\n" and list(data.judge_tokens(facts, "messages", None)) == []


THOUGHTFUL = (
    "{% for m in messages %}{% set c = m['content'] if loop.last else m['content'].split('</think>')[-1] %}"
    "{{ '<|im_start|>' + m['role'] + '\\n' + c + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def test_answers_that_lose_their_thoughts_once_turns_follow_are_labelled_all_the_same(make_model: MakeModel) -> None:
    first = chat(answer="<think>two</think>It is seven.")["messages"]
    folder = make_model(THOUGHTFUL)
    facts = measured(folder, [{"messages": [*first, *chat("Hello?", "Fine.")["messages"]]}])
    learned = "".join(text for text, labelled, _ in facts["shown"]["pieces"] if labelled)
    assert learned == "It is seven.<|im_end|>Fine.<|im_end|>\n"


def test_markers_in_the_comments_of_a_template_are_not_written(make_model: MakeModel) -> None:
    assert judged(make_model("{# never <|final|> #}" + CHATML), chat()) == {}


def test_arguments_of_tool_calls_that_are_text_are_told_where_the_template_wants_objects(make_model: MakeModel) -> None:
    template = CHATML.replace(
        "m['content']", "(m.tool_calls[0].arguments.items()|string if m.tool_calls else m.content)"
    )
    call = {"role": "assistant", "content": "", "tool_calls": [{"name": "weather", "arguments": "{}"}]}
    found = judged(make_model(template), chat(), {"messages": [chat()["messages"][0], call]})
    assert found["row-refused"].rows == (2,) and "as objects, not as text" in found["row-refused"].fix


def test_a_tokenizer_that_fails_does_so_in_one_line(make_model: MakeModel, monkeypatch: Any) -> None:
    def fail(*_: Any) -> None:
        raise TypeError("ChatGLMTokenizer._pad() got an unexpected keyword argument 'padding_side'")

    monkeypatch.setattr(chat_template, "_markers", fail)
    found = measured(make_model(), [chat()])
    assert found["unreadable"].startswith("the tokenizer fails: TypeError: ChatGLMTokenizer._pad() got")


def test_by_itself_the_probe_fails_where_no_row_keeps_a_label(make_model: MakeModel) -> None:
    folder = make_model()
    assert chat_template.judge(measured(folder, [chat(), chat()], max_length=3))[0] == "fail"
    assert chat_template.judge(measured(folder, [chat(), chat("word " * 40)], max_length=40))[0] == "watch"
    assert chat_template.judge(measured(folder, [chat()]))[0] == "pass"
    assert chat_template.judge({"rows": [], "unreadable": "no model"}) == ("skip", "no model")
