"""The place in the user's own files that a finding points at."""

from __future__ import annotations

import pytest

from compatcheck.environment import Environment, Location
from compatcheck.matrix import _location
from compatcheck.matrix.matching.match import Verdict

AT = {
    "distributions.torch": Location("requirements.txt", 1),
    "model.type": Location("config.json"),
    "training.deepspeed": Location("ds.json", 3),
    "training.deepspeed.zero_stage": Location("ds.json", 4),
    "training.dtype": Location("sft.yaml", 7),
    "training.framework": Location("sft.yaml", 1),
    "training.lora.r": Location("sft.yaml", 12),
    "training.lora.lora_alpha": Location("sft.yaml", 11),
    "model.traits.past-extracted": Location("modeling.py", 90),
}


@pytest.mark.parametrize(
    ("paths", "place"),
    [
        (("distributions.torch", "training.dtype"), Location("sft.yaml", 7)),
        (("training.framework", "training.dtype"), Location("sft.yaml", 7)),
        (("distributions.torch", "model.type"), Location("config.json")),
        (("distributions.torch",), Location("requirements.txt", 1)),
        (("distributions.deepspeed",), None),
        (("training.deepspeed.contiguous_gradients", "distributions.torch"), Location("ds.json", 3)),
        (("training.deepspeed.contiguous_gradients", "training.dtype"), Location("sft.yaml", 7)),
        (("training.lora", "model.type"), Location("sft.yaml", 11)),
        (("model.traits.past-extracted", "traits", "distributions.torch"), Location("modeling.py", 90)),
        (("training.dtype", "model.traits.past-extracted"), Location("modeling.py", 90)),
        (("model.traits.declared-unmet", "traits", "distributions.torch"), Location("requirements.txt", 1)),
        (("model.traits.declared-unmet", "traits", "gpu.name"), None),
        (("gpu.name", "training.world_size"), None),
    ],
)
def test_a_trait_comes_first_then_a_setting_the_model_a_version(paths: tuple[str, ...], place: Location | None) -> None:
    assert _location(Verdict(True, paths=paths), None, Environment({}, {}, AT)) == place
