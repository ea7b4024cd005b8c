from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.environment import Environment, Location
from compatcheck.environment.schema import schema
from compatcheck.environment.snapshot import load_snapshot, read_snapshot
from compatcheck.errors import InputError

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
names = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)?", fullmatch=True)
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": words,
    "boolean": st.booleans(),
    "integer": st.integers(-(2**60), 2**60),
    "number": st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False),
    "null": st.none(),
}


def values(shape: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Whatever a schema lets through, with keys that it does not name."""
    if "enum" in shape:
        return st.sampled_from(shape["enum"])
    types = [shape["type"]] if isinstance(shape["type"], str) else shape["type"]
    return st.one_of(_of_type(each, shape) for each in types)


def _of_type(name: str, shape: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if shape.get("format") == "date" and name == "string":
        return st.dates().map(str)
    if "pattern" in shape and name == "string":
        return st.from_regex(shape["pattern"], fullmatch=True)
    if name == "array":
        return st.lists(values(shape["items"]) if "items" in shape else words, max_size=2)
    if name != "object":
        return _SCALARS[name]
    if "additionalProperties" in shape:
        return st.dictionaries(names, values(shape["additionalProperties"]), max_size=3)
    fields = {key: values(each) for key, each in shape.get("properties", {}).items()}
    required = {key: fields.pop(key) for key in shape.get("required", ())}
    return (
        st.lists(st.sampled_from(sorted(fields)), max_size=3).flatmap(
            lambda some: st.fixed_dictionaries({**required, **{key: fields[key] for key in some}})
        )
        if fields
        else st.fixed_dictionaries({**required, "of_another_release": words})
    )


files = words.filter(lambda text: "\0" not in text)
_FACTS = {"properties": {k: v for k, v in schema()["properties"].items() if k not in ("unknown", "locations")}}
environments = st.builds(
    Environment,
    values({**_FACTS, "type": "object"}),
    st.dictionaries(words, words, max_size=3),
    st.dictionaries(words, st.builds(Location, files, st.none() | _SCALARS["integer"]), max_size=3),
)


@settings(deadline=None)
@given(environments)
def test_what_is_dumped_is_loaded_again(environment: Environment) -> None:
    assert load_snapshot(json.dumps(environment.dump()), "a test") == environment


@pytest.mark.parametrize(
    ("document", "seen"),
    [
        ({}, "the file has no schema_version; this compatcheck reads version 1"),
        ({"schema_version": 2}, "the schema_version is 2; this compatcheck reads version 1"),
        ({"schema_version": True}, "the schema_version is True"),
        ({"schema_version": 1, "python": 3.1}, "python: .*string, not 3.1"),
        ({"schema_version": 1, "distributions": {"torch": 2.5}}, "distributions.torch: .*string, not 2.5"),
        ({"schema_version": 1, "distributions": ["torch"]}, "distributions: .*dictionary"),
        ({"schema_version": 1, "gpus": [{"memory_mib": "80"}]}, r"gpus\.0\.memory_mib: .*not '80'"),
        ({"schema_version": 1, "training": {"deepspeed": {"overlap_comm": "yes"}}}, "training.deepspeed.overlap_comm"),
        ({"schema_version": 1, "locations": {"a": 1}}, "locations.a"),
        ({"schema_version": 1, "report": {"newest": ["torch"]}}, "report.newest: .*dictionary"),
        ([], "the file contains a list"),
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
    assert read_snapshot(str(path)).dump() == document
