from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compatcheck.project import model_files

YARN = {
    "attention_factor": 1.2079441541679836,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "factor": 8.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "yarn",
}
PLAIN = {"rope_theta": 500000, "rope_type": "default"}
BY_KIND, FLAT = "rotary-settings-by-layer-type", "rotary-settings-of-transformers-5"
BASE, SCALING = "rotary-base-of-all-layers", "rotary-scaling-of-all-layers"


def by_kind(full: dict[str, Any], sliding: dict[str, Any]) -> dict[str, Any]:
    return {"rope_parameters": {"full_attention": full, "sliding_attention": sliding}}


def plain(base: float) -> dict[str, Any]:
    return {"rope_theta": base, "rope_type": "default"}


def traits(folder: Path, config: dict[str, Any]) -> list[str]:
    (folder / "config.json").write_text(json.dumps(config))
    found: list[str] = model_files.read(str(folder)).facts["model"]["traits"]
    return found


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"rope_theta": 500000, "rope_scaling": YARN}, [SCALING]),
        ({"rope_theta": 500000, "rope_scaling": None}, []),
        ({"rope_theta": 1000000, "rope_scaling": None}, [BASE]),
        ({"rope_parameters": {"rope_theta": 500000, **YARN}}, [BASE, FLAT]),
        ({"rope_parameters": PLAIN}, [FLAT]),
        ({"rope_parameters": plain(1000000)}, [BASE, FLAT]),
        ({"rope_parameters": plain(10000)}, [BASE]),
        (by_kind({"rope_theta": 500000, **YARN}, plain(500000.0)), [BY_KIND]),
        (by_kind(PLAIN, PLAIN), [BY_KIND]),
        (by_kind(plain(10000), plain(10000.0)), []),
        ({**by_kind({"rope_theta": 500000, **YARN}, PLAIN), "rope_theta": 500000, "rope_scaling": YARN}, [SCALING]),
        ({**by_kind(PLAIN, PLAIN), "rope_theta": 500000}, []),
        ({"rope_parameters": None, "rope_theta": 500000}, []),
        ({"rope_parameters": {"full_attention": "default"}}, []),
        ({"rope_parameters": ["full_attention"]}, []),
    ],
)
def test_the_forms_in_which_releases_save_olmo_3(tmp_path: Path, stated: dict[str, Any], told: list[str]) -> None:
    assert traits(tmp_path, {"model_type": "olmo3", **stated}) == told


@pytest.mark.parametrize(
    ("kind", "stated", "told"),
    [
        ("gemma3_text", by_kind({**plain(1000000.0), "rope_type": "linear", "factor": 8.0}, plain(10000.0)), True),
        ("gemma3_text", by_kind(plain(1000000.0), plain(10000.0)), False),
        ("gemma3_text", {"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": YARN}, False),
        ("modernbert", by_kind(plain(160000.0), plain(10000.0)), False),
        ("modernbert", by_kind(plain(160000.0), plain(160000.0)), True),
        ("modernbert", {**by_kind(plain(160000.0), plain(160000.0)), "local_rope_theta": 160000.0}, False),
        ("laguna", by_kind({"rope_theta": 500000.0, **YARN}, plain(10000.0)), False),
    ],
)
def test_settings_by_kind_of_layer_that_transformers_4_would_not_take_by_itself(
    tmp_path: Path, kind: str, stated: dict[str, Any], told: bool
) -> None:
    assert traits(tmp_path, {"model_type": kind, **stated}) == ([BY_KIND] if told else [])


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({}, True),
        ({"rope_scaling": None}, True),
        ({"rope_parameters": PLAIN}, True),
        ({"rope_scaling": YARN}, False),
        ({"text_config": {"rope_scaling": {"type": "linear", "factor": 2.0}}}, False),
    ],
)
def test_a_scaled_model_does_not_look_up_the_default(tmp_path: Path, stated: dict[str, Any], told: bool) -> None:
    code = "class A:\n    def __init__(self, kind='default'):\n        self.f = ROPE_INIT_FUNCTIONS[kind]\n"
    (tmp_path / "modeling_a.py").write_text(code, encoding="utf-8")
    assert ("looks-up-default-rope" in traits(tmp_path, {"model_type": "a", **stated})) is told


def test_a_model_of_text_and_images_has_the_settings_in_its_text_part(tmp_path: Path) -> None:
    linear = by_kind({**plain(1000000.0), "rope_type": "linear", "factor": 8.0}, plain(10000.0))
    assert traits(tmp_path, {"model_type": "gemma3", "text_config": linear}) == [BY_KIND]
    assert traits(tmp_path, {"model_type": "gemma3", "text_config": "gemma3_text"}) == []
