from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.environment import Environment, Location, dump
from compatcheck.environment.snapshot import load_snapshot, read_snapshot
from compatcheck.errors import InputError

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
names = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)?", fullmatch=True)
maybe = st.none() | words
numbers = st.integers(-(2**60), 2**60)
versions = st.none() | st.from_regex(r"[0-9]+\.[0-9]+(\+cu118)?", fullmatch=True)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


known = some(
    python=words,
    platform=some(system=maybe, machine=maybe, libc=maybe) | st.none(),
    distributions=st.dictionaries(names, versions, max_size=4),
    distributions_complete=st.booleans(),
    distribution_problems=st.lists(st.fixed_dictionaries({"path": words, "problem": words}), max_size=2),
    unmet_requirements=st.lists(
        st.fixed_dictionaries({"distribution": names, "requirement": words, "installed": maybe}), max_size=2
    ),
    cuda=some(runtime=versions, driver=versions, cudnn=versions) | st.none(),
    torch_build=some(cuda=maybe, architectures=st.lists(words, max_size=2)) | st.none(),
    gpus=st.lists(
        some(name=words, compute_capability=st.sampled_from(["8.0", "12.1"]), memory_mib=numbers), max_size=2
    ),
    environ=st.dictionaries(names, maybe, max_size=2),
    model=some(
        name=maybe,
        type=maybe,
        traits=st.lists(words, max_size=2),
        files=st.dictionaries(words, some(sha256=words, size=numbers), max_size=2),
    ),
    training=some(
        framework=maybe,
        dtype=st.sampled_from(["bfloat16", "float16", None]),
        deepspeed=some(zero_stage=numbers, overlap_comm=st.booleans(), offload=maybe) | st.none(),
    ),
    target=st.fixed_dictionaries({"prefix": words, "selected_by": words}),
    from_the_future=st.lists(words, max_size=2),
)
environments = st.builds(
    Environment,
    known,
    st.dictionaries(words, words, max_size=3),
    st.dictionaries(words, st.builds(Location, words, st.none() | numbers), max_size=3),
)


@given(environments)
def test_what_is_dumped_is_loaded_again(environment: Environment) -> None:
    assert load_snapshot(json.dumps(dump(environment)), "a test") == environment


@pytest.mark.parametrize(
    ("document", "seen"),
    [
        ({}, "it has no schema_version; this compatcheck reads version 1"),
        ({"schema_version": 2}, "its schema_version is 2; this compatcheck reads version 1"),
        ({"schema_version": True}, "its schema_version is True"),
        ({"schema_version": 1, "python": 3.1}, "python: .*string, not 3.1"),
        ({"schema_version": 1, "distributions": {"torch": 2.5}}, "distributions.torch: .*string, not 2.5"),
        ({"schema_version": 1, "distributions": ["torch"]}, "distributions: .*dictionary"),
        ({"schema_version": 1, "gpus": [{"memory_mib": "80"}]}, r"gpus\.0\.memory_mib: .*not '80'"),
        ({"schema_version": 1, "training": {"deepspeed": {"overlap_comm": "yes"}}}, "training.deepspeed.overlap_comm"),
        ({"schema_version": 1, "locations": {"a": 1}}, "locations.a"),
        ({"schema_version": 1, "report": {"newest": ["torch"]}}, "report.newest: .*dictionary"),
        ([], "it holds a list"),
        ('{"schema_version": 1,\n "python": }', "line 2, column 12"),
        ("", "line 1, column 1"),
    ],
)
def test_a_snapshot_that_is_refused(document: Any, seen: str) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    with pytest.raises(InputError, match=seen) as caught:
        load_snapshot(text, "bug.json")
    assert "\n" not in str(caught.value)
    assert "bug.json" in str(caught.value)


def test_a_dash_is_standard_input() -> None:
    code = "from compatcheck.environment.snapshot import read_snapshot; print(read_snapshot('-').facts)"
    snapshot = b'{"schema_version": 1, "python": "3.9"}'
    done = subprocess.run([sys.executable, "-c", code], input=snapshot, capture_output=True, check=True)
    assert done.stdout.strip() == b"{'python': '3.9'}"


def test_names_written_by_hand_are_normalised() -> None:
    text = '{"schema_version": 1, "distributions": {"Flash_Attn": "2.7"}}'
    assert load_snapshot(text, "x").facts["distributions"] == {"flash-attn": "2.7"}


def test_the_example_of_the_design_is_read(tmp_path: Any) -> None:
    document = {
        "schema_version": 1,
        "python": "3.10.12",
        "platform": {"system": "Linux", "machine": "x86_64", "libc": "glibc 2.35"},
        "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0", "memory_mib": 81920}],
        "model": {"revision": None, "files": {"modeling_chatglm.py": {"sha256": "440d89"}}},
        "training": {"quantization": {"bits": 4, "type": "nf4"}, "lora": {"target_modules": ["q_proj"]}},
    }
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(document))
    assert dump(read_snapshot(str(path))) == document
