"""The rules over a model's files other than its code: each on files that have the trait and on near neighbours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compatcheck.cli import cli
from compatcheck.environment import Location
from compatcheck.project import model_files

CONTRADICTS = "generation-settings-contradict"
GENERATION: dict[str, tuple[dict[str, Any], bool]] = {
    "sampling is off": ({"do_sample": False, "temperature": 0.6}, True),
    "sampling is not spoken of": ({"top_p": 0.9}, True),
    "sampling is on": ({"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 20}, False),
    "neutral values": ({"do_sample": False, "temperature": 1, "top_p": 1.0, "top_k": 50}, False),
    "no values": ({"do_sample": False, "temperature": None, "top_p": None}, False),
    "greedy by temperature": ({"do_sample": False, "temperature": 0.0}, True),
    "few candidates": ({"top_k": 10}, True),
    "contrastive search": ({"top_k": 4, "penalty_alpha": 0.6}, False),
    "beams unused": ({"length_penalty": 2.0}, True),
    "beams": ({"length_penalty": 2.0, "early_stopping": True, "num_beams": 4}, False),
    "neither": ({"repetition_penalty": 1.1, "max_new_tokens": 64, "pad_token_id": 0}, False),
}

TRAITS: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]]]] = {
    "rope-scaled-as-llama3": (
        "config.json",
        {"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        [{"model_type": "llama", "rope_scaling": None}, {"model_type": "mllama", "rope_scaling": {"type": "llama3"}}],
    ),
    "rope-scaled-as-longrope": (
        "config.json",
        {"model_type": "phi3", "rope_scaling": {"type": "longrope"}},
        [{"model_type": "phi3", "rope_scaling": {"type": "su"}}],
    ),
    "rope-scaled-by-type": (
        "config.json",
        {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 4}},
        [{"model_type": "llama", "rope_scaling": {"rope_type": "linear", "type": "linear", "factor": 4}}],
    ),
    "t5-with-own-output-layer": (
        "config.json",
        {"model_type": "t5", "tie_word_embeddings": False},
        [{"model_type": "t5"}, {"model_type": "mt5", "tie_word_embeddings": False}],
    ),
    "attention-dropout": (
        "config.json",
        {"model_type": "granite", "attention_dropout": 0.1},
        [{"model_type": "granite", "attention_dropout": 0.0}, {"model_type": "granite"}],
    ),
    "output-router-logits": (
        "config.json",
        {"model_type": "mixtral", "output_router_logits": True},
        [{"model_type": "mixtral", "output_router_logits": False}, {"model_type": "mixtral"}],
    ),
    "sliding-window-of-4096": (
        "config.json",
        {"model_type": "mistral", "sliding_window": 4096},
        [{"model_type": "mistral", "sliding_window": None}, {"model_type": "qwen2", "sliding_window": 4096}],
    ),
    "tokenizer-saved-by-transformers-5": (
        "tokenizer_config.json",
        {"tokenizer_class": "TokenizersBackend"},
        [{"tokenizer_class": "LlamaTokenizerFast"}, {}],
    ),
    "tokenizer-class-of-early-llama": (
        "tokenizer_config.json",
        {"tokenizer_class": "LLaMATokenizer"},
        [{"tokenizer_class": "LlamaTokenizer"}],
    ),
    "image-size-in-pixels": (
        "preprocessor_config.json",
        {"image_processor_type": "Qwen2VLImageProcessor", "size": {"min_pixels": 3136, "max_pixels": 12845056}},
        [
            {"image_processor_type": "Qwen2VLImageProcessor", "size": {"shortest_edge": 3136, "longest_edge": 9999}},
            {"image_processor_type": "CLIPImageProcessor", "size": {"min_pixels": 1}},
        ],
    ),
}


def traits(folder: Path, name: str, content: dict[str, Any]) -> dict[str, Location]:
    """The traits of a folder with such a file, each with its place."""
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (folder / name).write_text(json.dumps(content))
    read = model_files.read(str(folder))
    return {trait: read.locations[f"model.traits.{trait}"] for trait in read.section("model")["traits"]}


@pytest.mark.parametrize(("content", "contradicts"), GENERATION.values(), ids=GENERATION)
def test_generation_settings(tmp_path: Path, content: dict[str, Any], contradicts: bool) -> None:
    name = "generation_config.json"
    place = Location(str(tmp_path / name))
    assert traits(tmp_path, name, content) == ({CONTRADICTS: place} if contradicts else {})


@pytest.mark.stack
@pytest.mark.parametrize("content", [content for content, contradicts in GENERATION.values() if contradicts])
def test_transformers_refuses_the_same_settings(content: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers")
    with pytest.raises(ValueError, match="GenerationConfig is invalid"):
        transformers.GenerationConfig.from_dict(content).validate(strict=True)


@pytest.mark.parametrize("trait", TRAITS)
def test_trait_and_neighbours(tmp_path: Path, trait: str) -> None:
    name, shows, neighbours = TRAITS[trait]
    assert traits(tmp_path, name, shows) == {trait: Location(str(tmp_path / name))}
    for neighbour in neighbours:
        assert trait not in traits(tmp_path, name, {"model_type": "gpt2", **neighbour})


def project(folder: Path, generation: dict[str, Any]) -> list[dict[str, Any]]:
    """What a full fine-tuning of a local model finds about saving it."""
    model = folder / "base"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}')
    (model / "generation_config.json").write_text(json.dumps(generation))
    (folder / "full.yaml").write_text(
        "model_name_or_path: base\nstage: sft\ndo_train: true\nfinetuning_type: full\ntemplate: qwen\nbf16: true\n"
    )
    (folder / "requirements.txt").write_text("torch==2.5.1\ntransformers==4.48.0\nllamafactory==0.9.2\n")
    result = CliRunner().invoke(cli, [str(folder), "--no-probe", "--format", "json"])
    return [each for each in json.loads(result.output)["findings"] if each["id"] == "CC-2024-1429"]


def test_file_of_the_folder_is_a_finding(tmp_path: Path) -> None:
    (found,) = project(tmp_path, {"do_sample": False, "temperature": 0.2})
    assert found["status"] == "affected"
    assert found["location"]["file"].endswith("generation_config.json")


def test_mended_file_is_none(tmp_path: Path) -> None:
    assert project(tmp_path, {"do_sample": True, "temperature": 0.2}) == []
