"""Traits of prebuilt extensions, by their labels, and of CANN beside torch-npu."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment
from compatcheck.matrix._traits import trait_finder

LISTED = {"distributions_complete": True}


@pytest.mark.parametrize(
    ("trait", "facts", "holds"),
    [
        ("extension-of-another-cuda", {"flash-attn": "2.8.3+cu12torch2.8cxx11abitrue", "cuda": "13.0"}, True),
        ("extension-of-another-cuda", {"flash-attn": "2.8.3+cu12torch2.8cxx11abitrue", "cuda": "12.8"}, None),
        ("extension-of-another-cuda", {"torch-scatter": "2.1.2+pt26cu118", "cuda": "12.4"}, True),
        ("extension-of-another-cuda", {"mamba-ssm": "2.2.4", "cuda": "12.4"}, None),
        ("extension-of-another-cuda", {"mamba-ssm": "2.2.4", "cuda": None}, False),
        ("extension-of-another-cuda", {"transformers": "4.50.0", "cuda": "12.4", **LISTED}, False),
        ("extension-of-another-cuda", {"transformers": "4.50.0", "cuda": "12.4"}, None),
        ("extension-of-another-torch", {"causal-conv1d": "1.4.0+cu122torch2.3cxx11abifalse", "torch": "2.4.0"}, True),
        ("extension-of-another-torch", {"causal-conv1d": "1.4.0+cu122torch2.4cxx11abifalse", "torch": "2.4.1"}, None),
        ("extension-of-another-torch", {"torch-sparse": "0.6.18+pt25cu121", "torch": "2.5.1", **LISTED}, False),
        ("extension-of-another-torch", {"torch-sparse": "0.6.18+pt210cu128", "torch": "2.10.0", **LISTED}, False),
        ("extension-of-another-torch", {"torch-sparse": "0.6.18+pt25cu121", "torch": "2.6.0.dev20241201"}, None),
        (
            "extension-of-another-torch",
            {"flash-attn": "2.7.4+cu12torch2.5cxx11abitrue", "torch": "2.6.0", **LISTED},
            False,
        ),
        ("cann-older-than-torch-npu", {"torch-npu": "2.3.1.post2", "cann": "8.0.RC2.alpha001"}, True),
        ("cann-older-than-torch-npu", {"torch-npu": "2.3.1.post2", "cann": "8.0.RC3"}, False),
        ("cann-older-than-torch-npu", {"torch-npu": "2.3.1.post2", "cann": "8.1.RC1.beta1"}, False),
        ("cann-older-than-torch-npu", {"torch-npu": "2.3.1.post3", "cann": "7.0.0"}, None),
        ("cann-older-than-torch-npu", {"torch-npu": "2.3.1"}, None),
        ("cann-older-than-torch-npu", {"torch-npu": None, "cann": "7.0.0"}, False),
        ("vllm-built-for-cuda-12", {"vllm": "0.16.0"}, True),
        ("vllm-built-for-cuda-12", {"vllm": "0.16.0+cu129"}, True),
        ("vllm-built-for-cuda-12", {"vllm": "0.16.0+cu130"}, False),
        ("vllm-built-for-cuda-12", {"vllm": "0.11.0+582e4e37.nv25.11"}, False),
        ("vllm-built-for-cuda-12", {"vllm": None}, False),
        ("vllm-built-for-cuda-12", {"transformers": "4.50.0"}, None),
    ],
)
def test_extension_and_its_runtime(known: matrix.Matrix, trait: str, facts: dict[str, Any], holds: bool | None) -> None:
    rest = {key: facts[key] for key in facts if key not in ("cuda", "cann", "distributions_complete")}
    environment: dict[str, Any] = {"distributions": rest}
    if "cuda" in facts:
        environment["cuda"] = {"runtime": facts["cuda"]}
    if "cann" in facts:
        environment["npu"] = {"cann": facts["cann"]}
    if "distributions_complete" in facts:
        environment["distributions_complete"] = True
    assert trait_finder(known.table)(trait, Environment(environment)).holds is holds


def test_older_cann_names_the_fitting_post_release(known: matrix.Matrix) -> None:
    facts = {"distributions": {"torch-npu": "2.1.0.post10"}, "npu": {"cann": "8.0.RC1"}}
    verdict = trait_finder(known.table)("cann-older-than-torch-npu", Environment(facts))
    assert [occurrence.pins for occurrence in verdict.occurrences] == [{"torch-npu": "==2.1.0.post4"}]
