"""What a model's name tells, and what it does not."""

from __future__ import annotations

import re
from datetime import date

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment, Unknown
from compatcheck.inference.model_families import family_of, type_of_class
from compatcheck.matrix._traits import trait_finder
from compatcheck.matrix.matching.match import TraitVerdict
from compatcheck.project import trait_names


@pytest.mark.parametrize(
    ("name", "model_type"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2"),
        ("Qwen1.5", "qwen2"),
        ("Qwen2-7B-Instruct-GPTQ-Int4", "qwen2"),
        ("unsloth/Qwen2.5-VL-7B-Instruct-unsloth-bnb-4bit", "qwen2_5_vl"),
        ("mlx-community/Qwen2-VL-7B-Instruct-8bit", "qwen2_vl"),
        ("Qwen3-30B-A3B", "qwen3_moe"),
        ("Qwen3-4B-Instruct-2507", "qwen3"),
        ("qwen2.5-vl", "qwen2_5_vl"),
        ("Qwen-14B-Chat", "qwen"),
        ("glm4-9b-chat", "chatglm"),
        ("THUDM/glm-4-9b-chat-hf", "glm"),
        ("zai-org/GLM-4-9B-0414", "glm4"),
        ("ChatGLM3-6B", "chatglm"),
        ("Llama 3.1 8B", "llama"),
        ("Llama-3.2-11B-Vision-Instruct", "mllama"),
        ("google/gemma-3-1b-it", "gemma3_text"),
        ("Gemma-3", "gemma3"),
        ("google/t5-v1_1-base", "t5"),
        ("mt5", "mt5"),
        ("deepseek-vl2-tiny", "deepseek_vl_v2"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2"),
        ("openbmb/MiniCPM-V-2_6", "minicpmv"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral"),
        ("Qwen", None),
        ("llama", None),
        ("GLM-4", None),
        ("Qwen2-Embedding", None),
        ("Alibaba-NLP/gte-Qwen2-7B-instruct", None),
        ("InternViT-6B + LLaVA", None),
        ("Phi-2 / Mistral 7B / Mixtral 8x7B", None),
        ("vidore/colqwen2-v1.0, vidore/colqwen2.5-v0.2", None),
        ("/data/models/Qwen2-7B", None),
        ("./Qwen2-7B", None),
        ("models\\Qwen2-7B", None),
        ("32B", None),
        ("", None),
    ],
)
def test_a_name_gives_its_family(known: matrix.Matrix, name: str, model_type: str | None) -> None:
    family = family_of(name, known.table("model-families"))
    assert (family or {}).get("type") == model_type


@pytest.mark.parametrize(
    ("name", "model_type"),
    [
        ("LlamaForCausalLM", "llama"),
        ("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl"),
        ("GPT2LMHeadModel", "gpt2"),
        ("GPTNeoXForCausalLM", "gpt_neox"),
        ("InternLM2ForCausalLM", None),
        ("ForCausalLM", None),
        ("Llama 2", None),
    ],
)
def test_a_class_gives_its_type(known: matrix.Matrix, name: str, model_type: str | None) -> None:
    assert type_of_class(name, known.table("transformers-model-types")) == model_type
    model = matrix.infer(known, Environment({"model": {"name": name}})).view.facts["model"]
    assert model_type is None or model["type"] == model_type


def test_quantised_weights_have_another_dtype(known: matrix.Matrix) -> None:
    table = known.table("model-families")
    assert (family_of("Qwen2-7B", table) or {})["torch_dtype"] == "bfloat16"
    assert "torch_dtype" not in (family_of("Qwen2-7B-AWQ", table) or {"torch_dtype": None})


def test_the_table_names_traits_that_exist_and_no_pattern_twice(known: matrix.Matrix) -> None:
    families = known.table("model-families")["families"]
    published = known.table("model-families")["published"]
    patterns = [pattern for family in families for pattern in family["names"]]
    assert len(patterns) == len(set(patterns))
    in_code = {*trait_names.from_code(), *known.table("imported-names")["traits"]}
    for family in [*families, *published]:
        assert set(family.get("traits", ())) <= in_code | trait_names.from_files()
        assert not set(family.get("weights", ())) & in_code
        assert set(family.get("until", ())) <= set(family.get("traits", ()))
        assert all(date.fromisoformat(str(day)) < date.today() for day in family.get("until", {}).values())
        sources = [*family.get("traits", {}).values(), *family.get("weights", {}).values()]
        assert all(re.match(r"https://github\.com/\S+(?:/\d+|\.py)$", source) for source in sources)
    for family in families:
        for pattern in family["names"]:
            plain = pattern.replace("{size}", "7b").replace("{active}", "a3b")
            assert family_of(plain, {**known.table("model-families"), "families": families}) is not None


def test_a_name_alone_is_completed(known: matrix.Matrix) -> None:
    completed = matrix.infer(known, Environment({"model": {"name": "glm-4-9b-chat"}})).view
    assert completed.facts["model"] == {
        "name": "glm-4-9b-chat",
        "type": "chatglm",
        "remote_code": True,
        "torch_dtype": "bfloat16",
    }


@pytest.mark.parametrize(
    "model",
    [
        {"name": "Qwen2-7B", "type": "llama"},
        {"name": "Qwen2-7B", "files": {"config.json": {}}},
        {"name": "Qwen2-7B", "source": "folder"},
        {"name": "my-model"},
        {"type": "qwen2"},
    ],
)
def test_what_is_known_otherwise_is_left_alone(known: matrix.Matrix, model: dict[str, object]) -> None:
    assert matrix.infer(known, Environment({"model": model})).view.facts["model"] == model


def findings(known: matrix.Matrix, facts: dict[str, object]) -> dict[str, tuple[str, tuple[str, ...]]]:
    findings = matrix.judge(known, Environment(facts)).findings
    return {each.id: (each.status, each.missing) for each in findings}


def told(known: matrix.Matrix, name: str, transformers: str | None, **more: object) -> dict[str, str]:
    versions = {"distributions": {"transformers": transformers}} if transformers else {}
    return {id: status for id, (status, _) in findings(known, {"model": {"name": name}, **versions, **more}).items()}


def test_a_trait_of_some_revisions_is_possible_and_names_what_is_missing(known: matrix.Matrix) -> None:
    found = findings(known, {"model": {"name": "glm-4-9b-chat"}, "distributions": {"transformers": "4.45.2"}})
    assert found["CC-2024-0004"] == ("possible", ("model.traits",))
    assert "CC-2024-0004" not in told(known, "glm-4-9b-chat", "4.44.2")
    assert "CC-2024-0004" not in told(known, "glm-4-9b-chat", None)
    assert "CC-2024-0004" not in told(known, "Qwen2-7B", "4.45.2")


@pytest.mark.parametrize(
    ("day", "verdict"),
    [
        ("2024-08-10", TraitVerdict(True)),
        ("2024-08-11", TraitVerdict(None, missing=("model.traits",), suspected=True)),
        (None, TraitVerdict(None, missing=("model.traits",), suspected=True)),
    ],
)
def test_a_trait_of_every_revision_up_to_a_day_is_certain_in_a_report_of_before(
    day: str | None, verdict: TraitVerdict
) -> None:
    habit = "past-extracted-in-standard-format"
    family = {"names": ["glm 4 9b"], "traits": {habit: "https://example.org"}, "until": {habit: "2024-08-10"}}
    table = {"neutral": ["chat"], "quantised": [], "families": [family]}
    told = {"model": {"name": "glm-4-9b-chat"}, **({"report": {"date": day}} if day else {})}
    assert trait_finder(lambda name: table)(habit, Environment(told)) == verdict


@pytest.mark.parametrize(("day", "status"), [("2024-08-09", "affected"), ("2024-08-13", "possible")])
def test_the_day_of_a_report_tells_whether_glm_4_was_mended(known: matrix.Matrix, day: str, status: str) -> None:
    """Its new files came out on 2024-08-12, three weeks after transformers 4.44."""
    generates = {"training": {"predict_with_generate": True}, "report": {"date": day}}
    assert told(known, "THUDM/glm-4-9b-chat", "4.44.0", **generates)["CC-2026-3701"] == status


def test_files_that_were_read_decide_over_what_the_name_tells(known: matrix.Matrix) -> None:
    facts = {"model": {"name": "glm-4-9b-chat", "type": "chatglm", "remote_code": True, "traits": []}}
    assert "CC-2024-0004" not in findings(known, {**facts, "distributions": {"transformers": "4.45.2"}})


def test_a_suspicion_alone_is_not_told_while_a_setting_is_missing(known: matrix.Matrix) -> None:
    assert "CC-2024-0003" not in told(known, "chatglm3-6b", "4.40.0")
    switched_on = {"training": {"gradient_checkpointing": True}}
    assert told(known, "chatglm3-6b", "4.40.0", **switched_on)["CC-2024-0003"] == "possible"
    assert "CC-2026-3701" not in told(known, "chatglm3-6b", "4.35.0")
    assert told(known, "chatglm3-6b", "4.35.0", **switched_on)["CC-2026-3701"] == "possible"


def test_what_the_weights_are_like_holds_for_all_revisions(known: matrix.Matrix) -> None:
    in_float16 = {"training": {"dtype": "float16"}}
    assert told(known, "THUDM/glm-4-9b-chat", None, **in_float16)["CC-2024-0046"] == "affected"
    assert told(known, "google/mt5-small", None, **in_float16)["CC-2021-0510"] == "affected"
    assert told(known, "Llama 3.1", "4.42.3")["CC-2024-0513"] == "affected"
    assert told(known, "Qwen2-7B-Instruct", None, **in_float16)["CC-2024-0512"] == "possible"
    assert "CC-2024-0512" not in told(known, "Qwen1.5-7B", None, **in_float16)
    assert "CC-2024-0513" not in told(known, "Llama 3", "4.42.3")


def test_a_model_alone_is_no_suspicion(known: matrix.Matrix) -> None:
    for name in ("Qwen2-7B-Instruct", "google/mt5-small", "gemma3", "glm-4-9b-chat", "Qwen2.5-VL"):
        assert told(known, name, None) == {}


def test_a_model_without_code_of_its_own_has_no_trait_of_code(known: matrix.Matrix) -> None:
    completed = matrix.infer(known, Environment({"model": {"name": "Qwen2.5-7B"}})).view
    assert completed.get("model.remote_code") is False
    assert completed.get("model.traits") == Unknown()
    ids = told(known, "Qwen2.5-7B", "5.0.0", training={"gradient_checkpointing": True, "predict_with_generate": True})
    assert not {"CC-2024-0003", "CC-2026-0064", "CC-2026-3701"} & set(ids)


@pytest.mark.parametrize(
    ("name", "in_fp8"),
    [
        ("deepseek-ai/DeepSeek-V3-Base", True),
        ("Qwen/Qwen3-8B-FP8", True),
        ("DeepSeek-V3.1-Base-BF16", False),
        ("DeepSeek-R1-Zero-AWQ", False),
        ("DeepSeek-R1-0528-int4", False),
    ],
)
def test_a_copy_in_other_weights_is_not_in_fp8(known: matrix.Matrix, name: str, in_fp8: bool) -> None:
    family = family_of(name, known.table("model-families"))
    assert family and family["type"] in ("deepseek_v3", "qwen3")
    assert ("stored-in-fp8" in family.get("weights", {})) is in_fp8


def test_the_files_of_a_folder_count_before_its_published_name(known: matrix.Matrix) -> None:
    trait, name = "rope-scaled-as-llama3", "meta-llama/Llama-3.1-8B"
    find = trait_finder(known.table)
    assert find(trait, Environment({"model": {"name": name}})).holds is True
    assert trait_finder(known.table)(trait, Environment({"model": {"name": name, "traits": []}})).holds is False
