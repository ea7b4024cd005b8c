from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Unknown
from compatcheck.errors import InputError
from compatcheck.project import model_files
from compatcheck.project.reading import read_paths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "chatglm3-6b"
    path.mkdir()
    (path / "config.json").write_text(
        json.dumps({"model_type": "chatglm", "architectures": ["ChatGLMModel"], "torch_dtype": "float16"})
    )
    return path


def model(folder: Path, weights: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = model_files.read(str(folder), weights).facts["model"]
    return found


def test_what_the_configuration_says(folder: Path) -> None:
    found = model(folder)
    assert {key: found[key] for key in ("name", "revision", "type", "architectures", "torch_dtype")} == {
        "name": "chatglm3-6b",
        "revision": None,
        "type": "chatglm",
        "architectures": ["ChatGLMModel"],
        "torch_dtype": "float16",
    }
    assert (found["remote_code"], found["traits"]) == (False, [])
    digest = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    assert found["files"] == {"config.json": {"sha256": digest, "size": (folder / "config.json").stat().st_size}}


def test_what_it_does_not_say_stays_unknown(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "x", "dtype": "bfloat16", "_name_or_path": "org/name"}')
    facts = model_files.read(str(folder))
    assert facts.facts["model"]["torch_dtype"] == "bfloat16"
    assert facts.facts["model"]["name"] == "org/name"
    assert isinstance(Environment(facts.facts).get("model.architectures"), Unknown)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, {"method": "gptq", "bits": 4}),
        ({"quantization_config": {"load_in_4bit": True, "load_in_8bit": False}}, {"method": "bitsandbytes", "bits": 4}),
        ({"quantization_config": {"quant_method": "fp8", "bits": "8"}}, {"method": "fp8"}),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, {"method": "compressed-tensors"}),
        ({"quantization_config": {"quant_method": 3}}, None),
        ({"quantization_config": ["gptq"]}, None),
        ({}, None),
    ],
    ids=str,
)
def test_how_stored_weights_are_quantised(
    folder: Path, stated: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **stated}))
    facts = model_files.read(str(folder))
    assert facts.section("training").get("quantization") == expected
    assert ("training.quantization" in facts.locations) is (expected is not None)


def test_what_the_weights_are_goes_before_what_a_training_leaves_out(folder: Path, tmp_path: Path) -> None:
    config = {"model_type": "llama", "quantization_config": {"quant_method": "awq", "bits": 4}}
    (folder / "config.json").write_text(json.dumps(config))
    (tmp_path / "sft.yaml").write_text("stage: sft\nfinetuning_type: lora\nmodel_name_or_path: chatglm3-6b\n")
    environment = read_paths([str(tmp_path)]).environment
    assert environment.get("training.quantization") == {"method": "awq", "bits": 4}


@pytest.mark.parametrize(
    "code", [b"def broken(:\n", b"\xff\xfe", b"x = " + b"(" * 5000, b"a\0b"], ids=["syntax", "bytes", "nested", "nul"]
)
def test_code_that_cannot_be_parsed_leaves_the_traits_unknown(folder: Path, code: bytes) -> None:
    (folder / "modeling_a.py").write_bytes(code)
    facts = model_files.read(str(folder))
    assert "traits" not in facts.facts["model"]
    assert "modeling_a.py" in facts.reasons["model.traits"]


def test_code_is_never_run(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (folder / "modeling_a.py").write_text(f"open({str(mark)!r}, 'w')\n")
    model(folder)
    assert not mark.exists()


def test_code_in_another_repository_is_unknown(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "x", "auto_map": {"AutoModel": "org/other--modeling_x.X"}}')
    facts = model_files.read(str(folder))
    assert facts.facts["model"]["remote_code"] is True
    assert "org/other" in facts.reasons["model.traits"]


def test_a_hugging_face_cache_names_model_revision_and_blobs(tmp_path: Path) -> None:
    repository = tmp_path / "models--THUDM--chatglm3-6b"
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    (snapshot / "config.json").write_text('{"model_type": "chatglm"}')
    blob = repository / "blobs" / ("e7" * 32)
    blob.write_bytes(b"not what the name says")
    (snapshot / "tokenizer.model").symlink_to(blob)
    small = repository / "blobs" / ("c5" * 20)
    small.write_bytes(b"code")
    (snapshot / "modeling_chatglm.py").symlink_to(small)
    found = model(snapshot)
    assert found["files"]["modeling_chatglm.py"]["sha256"] == hashlib.sha256(b"code").hexdigest()
    assert (found["name"], found["revision"]) == ("THUDM/chatglm3-6b", "a" * 40)
    assert found["files"]["tokenizer.model"]["sha256"] == "e7" * 32
    assert found["files"]["modeling_chatglm.py"]["git_blob"] == "c5" * 20
    assert (found["source"], found["refs"]) == ("huggingface-cache", [])


@pytest.mark.parametrize(
    ("name", "content", "seen"),
    [
        ("adapter_config.json", '{"base_model_name_or_path": "org/base"}', "this is an adapter of org/base"),
        ("model_index.json", "{}", "this is a diffusers pipeline"),
        ("model-q4.gguf", "GGUF", "the folder contains GGUF files"),
    ],
)
def test_a_folder_that_is_something_else_is_told_as_what_it_is(
    tmp_path: Path, name: str, content: str, seen: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=seen):
        model(tmp_path)


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"", "line 1, column 1"),
        (b"[]", "the file contains a list"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b" " * ((16 << 20) + 1), "larger than 16 MiB"),
        (b"\xff", "not UTF-8"),
        (b'{"architectures": "Llama"}', "architectures is 'Llama'"),
        (None, "there is no config.json in the folder"),
    ],
)
def test_a_configuration_that_is_refused(folder: Path, content: bytes | None, seen: str) -> None:
    if content is None:
        (folder / "config.json").unlink()
    else:
        (folder / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=seen) as caught:
        model(folder)
    assert "\n" not in str(caught.value)


def test_links_that_go_in_a_circle_are_no_files(folder: Path) -> None:
    (folder / "a.json").symlink_to(folder / "b.json")
    (folder / "b.json").symlink_to(folder / "a.json")
    (folder / "loop").symlink_to(folder)
    assert set(model(folder)["files"]) == {"config.json"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_has_a_reason(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer.json").chmod(0)
    facts = model_files.read(str(folder))
    assert "cannot be read" in facts.reasons["model.files.tokenizer.json"]


def test_the_refs_that_point_at_a_cached_revision_are_named(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--a"
    for name, revision in (("main", "b"), ("v1.0", "a"), ("pr/4", "a")):
        file = repository / "refs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(revision * 40)
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text('{"model_type": "x"}')
    assert model(snapshot)["refs"] == ["pr/4", "v1.0"]


def test_a_modelscope_cache_names_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "modelscope" / "hub" / "models" / "Qwen" / "Qwen2___5-7B"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "qwen2"}')
    (folder / ".mv").write_text("Revision:v1.0.2,CreatedAt:1726675044")
    found = model(folder)
    assert (found["name"], found["revision"], found["source"]) == ("Qwen/Qwen2.5-7B", "v1.0.2", "modelscope-cache")


def test_each_trait_has_the_line_that_shows_it(folder: Path) -> None:
    code = "class A(B):\n    x = 1\n    def gradient_checkpointing_enable(self):\n        pass\n"
    (folder / "modeling_a.py").write_text(code)
    at = model_files.read(str(folder)).locations["model.traits.gradient-checkpointing-noop"]
    assert (at.file, at.line) == (str(folder / "modeling_a.py"), 3)


def test_only_code_that_the_configuration_leads_to_counts(folder: Path) -> None:
    (folder / "config.json").write_text('{"auto_map": {"AutoModelForCausalLM": "modeling_a.AModel"}}')
    (folder / "modeling_a.py").write_text("from .modeling_parts import Part\nfrom . import extra\n")
    (folder / "modeling_parts.py").write_text("Part = 1\n")
    (folder / "extra.py").write_text("x = 1\n")
    (folder / "modeling_unused.py").write_text("class A:\n def gradient_checkpointing_enable(self): ...\n")
    (folder / "tokenization_a.py").write_text("class T: ...\n")
    assert model(folder)["traits"] == []
    listed = [Path(path).name for path in model_files.code_files(str(folder))]
    assert listed == ["extra.py", "modeling_a.py", "modeling_parts.py", "modeling_unused.py", "tokenization_a.py"]
    (folder / "modeling_parts.py").write_text("class A:\n def gradient_checkpointing_enable(self): ...\n")
    assert model(folder)["traits"] == ["gradient-checkpointing-noop"]


def test_code_outside_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("class A:\n def gradient_checkpointing_enable(self): ...\n")
    (folder / "config.json").write_text('{"auto_map": {"AutoModel": "../evil.A", "AutoTokenizer": ["..evil.A", null]}}')
    assert model(folder)["traits"] == []
    assert model_files.code_files(str(folder)) == ()


@pytest.mark.parametrize(
    ("preprocessor", "processor", "traits"),
    [
        ('{"processor_class": "LlavaProcessor"}', None, ["processor-lacks-patch-size"]),
        ("{}", '{"processor_class": "LlavaNextProcessor"}', ["processor-lacks-patch-size"]),
        ("{}", '{"processor_class": "LlavaNextProcessor", "patch_size": 14}', []),
        ('{"processor_class": "Qwen2VLProcessor"}', None, []),
        ('{"processor_class": "LlavaProcessor"}', "no JSON", []),
    ],
)
def test_what_the_processors_files_say(
    folder: Path, preprocessor: str, processor: str | None, traits: list[str]
) -> None:
    (folder / "preprocessor_config.json").write_text(preprocessor)
    if processor is not None:
        (folder / "processor_config.json").write_text(processor)
    assert model(folder)["traits"] == traits


def test_what_the_tokenizers_files_say(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ '<|user|>' }}{{ '[INST]' }}"})
    )
    (folder / "tokenizer.json").write_text('{"model": {"type": "BPE", "merges": [["a", "b"]]}}')
    found = model(folder)
    template = found["tokenizer"]["chat_template"]
    assert (found["tokenizer"]["class"], found["tokenizer"]["merges"]) == ("PreTrainedTokenizerFast", "pairs")
    assert (template["source"], template["tokens"]) == ("tokenizer_config.json", ["<|user|>", "[INST]"])
    assert found["traits"] == ["tokenizer-merges-as-pairs"]
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "tokenizer.json").write_text('{"model": {"type": "BPE", "merges": ["a b"]}}')
    found = model(folder)
    assert found["tokenizer"]["chat_template"]["source"] == "chat_template.jinja"
    assert (found["tokenizer"]["merges"], found["traits"]) == ("strings", [])


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}}, True),
        ({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "llama3", "factor": 8.0}}, True),
        ({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, False),
        ({"rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}, "rope_theta": 1000000.0}, False),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1000000.0, "rope_type": "default"}}}, False),
        ({"rope_parameters": ["rope_theta"]}, False),
        ({"rope_theta": 1000000.0}, False),
    ],
)
def test_a_rotary_base_that_only_transformers_5_reads(folder: Path, stated: dict[str, Any], told: bool) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", **stated}))
    assert model(folder)["traits"] == (["rotary-settings-of-transformers-5"] if told else [])


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"tokenizer_config.json": {"model_max_length": 8192}}, False),
        ({"tokenizer_config.json": {"pad_token": "<pad>"}}, True),
        ({"tokenizer_config.json": {"pad_token": None}}, False),
        ({"special_tokens_map.json": {"pad_token": {"content": "<pad>"}}}, True),
        ({"tokenizer_config.json": {"pad_token": "<pad>", "added_tokens_decoder": {"5": {"content": "<pad>"}}}}, False),
        ({"tokenizer_config.json": []}, False),
    ],
)
def test_a_tokenizer_that_asks_for_its_special_tokens_only(folder: Path, files: dict[str, Any], named: bool) -> None:
    (folder / "tokenization_a.py").write_text(
        "class ATokenizer(PreTrainedTokenizer):\n"
        "    def __init__(self, **kwargs):\n"
        "        super().__init__(**kwargs)\n"
        "        self.known = ('<pad>',)\n"
        "    def get_vocab(self): return {}\n"
        "    def _add_tokens(self, new_tokens, special_tokens=False):\n"
        "        for token in new_tokens: assert token in self.known\n"
    )
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    assert ("tokenizer-filled-after-init" in model(folder)["traits"]) is named


def test_a_tokenizer_without_a_template_is_known_to_have_none(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{}")
    assert model(folder)["tokenizer"] == {"chat_template": None}
    (folder / "tokenizer_config.json").write_text("{")
    facts = model_files.read(str(folder))
    assert "chat_template" not in facts.facts["model"]["tokenizer"]
    assert "tokenizer_config.json" in facts.reasons["model.tokenizer"]


@pytest.mark.parametrize("before", [0, (1 << 20) - 40, (1 << 20) - 30, 3 << 20])
def test_the_form_of_the_merges_is_found_behind_any_vocabulary(folder: Path, before: int) -> None:
    vocabulary = json.dumps({"x" * before: 0})
    (folder / "tokenizer.json").write_text(f'{{"model": {{"vocab": {vocabulary}, "merges" : [\n ["a", "b"]]}}}}')
    assert model(folder)["tokenizer"]["merges"] == "pairs"


@pytest.mark.parametrize(
    ("added", "others", "told"),
    [
        ('{"</s>": 2, "<s>": 1, "<unk>": 0}', (), True),
        ('{"<unk>": 0}', (), True),
        ('{"</s>": 2, "<pad>": 32000}', (), True),
        ('{"<extra_id_0>": 32099, "<extra_id_1>": 32098}', (), True),
        ('{"<pad>": 32000, "<new>": 32001}', (), False),
        ('{"<unk>": 0}', ("tokenizer.json",), False),
        ("{}", (), False),
        ("[]", (), False),
        ('{"<unk>": "0"}', (), False),
    ],
)
def test_added_tokens_that_lie_inside_the_vocabulary(
    folder: Path, added: str, others: tuple[str, ...], told: bool
) -> None:
    (folder / "added_tokens.json").write_text(added)
    for name in others:
        (folder / name).write_text("{}")
    assert ("added-tokens-inside-vocabulary" in model(folder)["traits"]) is told
