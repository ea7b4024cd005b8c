"""The attention that transformers chooses by itself: the table against releases, and when it is stated."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.environment import Environment, Unknown
from compatcheck.environment.assumptions import assume
from compatcheck.packages.release_rows import rows_of

LOADED = {"calls": {"transformers.from_pretrained": ["pretrained_model_name_or_path", "torch_dtype"]}}


def environment(release: str, model_type: str, training: dict[str, Any] = LOADED, **facts: Any) -> Environment:
    facts = {"model": {"type": model_type, "remote_code": False}, **facts}
    packages = {"transformers": release, "torch": "2.5.0", **facts.pop("packages", {})}
    return Environment({"distributions": packages, "training": training, **facts})


def attention(known: matrix.Matrix, stated: Environment) -> Any:
    return matrix.infer(known, stated).view.get("training.attention")


@pytest.mark.parametrize(
    ("release", "model_type", "expected"),
    [
        ("4.35.2", "llama", "eager"),
        ("4.36.2", "llama", "sdpa"),
        ("4.36.2", "mistral", "eager"),
        ("4.37.2", "mistral", "sdpa"),
        ("4.36.2", "qwen2", Unknown()),
        ("4.40.2", "qwen2", "sdpa"),
        ("4.40.2", "gpt2", "eager"),
        ("4.46.1", "glm", "sdpa"),
        ("4.48.0", "gpt2", "sdpa"),
        ("4.46.1", "gemma2", "eager"),
        ("4.48.0", "gemma2", "sdpa"),
        ("5.24.0", "gemma2", "eager"),
        ("4.57.6", "gpt_oss", "eager"),
        ("4.46.1", "falcon", Unknown()),
        ("4.46.1", "mllama", Unknown()),
        ("4.40.2", "bert", "eager"),
        ("4.41.2", "bert", "sdpa"),
        ("4.46.1", "t5", "eager"),
        ("99.0.0", "llama", Unknown()),
    ],
)
def test_the_choice_of_a_release(known: matrix.Matrix, release: str, model_type: str, expected: object) -> None:
    assert attention(known, environment(release, model_type)) == expected


@pytest.mark.parametrize(("torch", "expected"), [("2.1.0", "eager"), ("2.1.1", "sdpa"), (None, Unknown())])
def test_sdpa_needs_a_torch_that_has_it(known: matrix.Matrix, torch: str | None, expected: object) -> None:
    stated = environment("4.40.2", "llama", packages={"torch": torch} if torch else {})
    stated = stated if torch else stated.without("distributions.torch")
    assert attention(known, stated) == expected


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"framework": "transformers", "dtype": "bfloat16"},
        {"calls": {"transformers.from_pretrained": ["attn_implementation"]}},
        {"calls": {"transformers.from_pretrained": ["config"]}},
        {**LOADED, "unsloth": True},
        {"framework": "xtuner", "attention_rule": "default"},
    ],
)
def test_what_may_choose_another_leaves_it_open(known: matrix.Matrix, training: dict[str, Any]) -> None:
    assert attention(known, environment("4.46.1", "llama", training)) == Unknown()


@pytest.mark.parametrize("model", [{"type": "llama", "remote_code": True}, {"type": "llama"}, {"remote_code": False}])
def test_a_model_with_code_of_its_own_decides_itself(known: matrix.Matrix, model: dict[str, Any]) -> None:
    assert attention(known, environment("4.46.1", "x", model=model)) == Unknown()


@pytest.mark.parametrize(
    ("packages", "model_type", "expected"),
    [
        ({"llamafactory": "0.9.1"}, "glm", "sdpa"),
        ({"llmtuner": "0.7.0"}, "llama", "sdpa"),
        ({"llmtuner": "0.6.3"}, "llama", Unknown()),
        ({}, "llama", Unknown()),
        ({"llamafactory": "0.9.1"}, "gemma2", Unknown()),
    ],
)
def test_llama_factory_leaves_the_choice_since_a_release(
    known: matrix.Matrix, packages: dict[str, str], model_type: str, expected: object
) -> None:
    training = {"framework": "llama-factory", "attention_rule": "default"}
    assert attention(known, environment("4.46.1", model_type, training, packages=packages)) == expected


def test_what_is_assumed_counts_more(known: matrix.Matrix) -> None:
    stated = assume(environment("4.46.1", "glm"), "training.attention=eager")
    assert attention(known, stated) == "eager"
    assert "training.attention" not in matrix.infer(known, stated).inferred.facts


def test_the_runs_of_a_type_do_not_overlap(known: matrix.Matrix) -> None:
    table = known.table("default-attention")
    assert len(table["attention"]) > 200
    for name, rows in table["attention"].items():
        bounds = [Version(bound) for row in rows for bound in row[:2]]
        assert bounds == sorted(bounds), name
        assert {row[2] for row in rows} <= {"eager", "sdpa"}, name


_TINY = {
    "llama": "LlamaConfig",
    "qwen2": "Qwen2Config",
    "gemma2": "Gemma2Config",
    "glm": "GlmConfig",
    "gpt2": "GPT2Config",
    "bert": "BertConfig",
    "t5": "T5Config",
    "opt": "OPTConfig",
    "mistral": "MistralConfig",
    "bloom": "BloomConfig",
}


@pytest.mark.stack
@pytest.mark.parametrize("model_type", _TINY)
def test_the_installed_transformers_chooses_what_the_table_says(known: matrix.Matrix, model_type: str) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    rows = known.table("default-attention")["attention"]
    listed = {name: row[2] for name, row in rows_of(Version(transformers.__version__), rows)}
    if not listed:
        pytest.skip(f"transformers {transformers.__version__} is newer than the table")
    config = getattr(transformers, _TINY[model_type])()
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
    assert model.config._attn_implementation == listed[model_type]
