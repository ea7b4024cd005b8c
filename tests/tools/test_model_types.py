"""Reading model types out of a wheel, in the forms that releases of transformers write them."""

from __future__ import annotations

import io
import zipfile

import pytest
from packaging.version import Version

from tools.tables.model_types import Release, first_and_last, known_in, write

MANY = ", ".join(f'("type{number}", "Type{number}Config")' for number in range(60))
PAIRS = f"CONFIG_MAPPING_NAMES = OrderedDict([{MANY}])\nOTHER = OrderedDict([('other', 'OtherConfig')])\n"
UPDATED = 'from .auto_mappings import CONFIG_MAPPING_NAMES\nCONFIG_MAPPING_NAMES.update({"added": "AddedConfig"})\n'
UPDATED += 'CONFIG_MAPPING_NAMES = OrderedDict(**{"late": "LateConfig"}, **CONFIG_MAPPING_NAMES)\n'


def wheel(**files: str) -> zipfile.ZipFile:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"transformers/models/{name.replace('__', '/')}.py", text)
    return zipfile.ZipFile(stream)


def test_a_list_of_pairs() -> None:
    found = known_in(wheel(auto__configuration_auto=PAIRS, llama__configuration_llama="class LlamaConfig(A): ..."))
    assert len(found.types) == 60 and found.types["type3"] == "Type3Config"
    assert found.classes == {"LlamaConfig"}


def test_a_module_of_its_own_that_is_added_to() -> None:
    found = known_in(wheel(auto__auto_mappings=PAIRS, auto__configuration_auto=UPDATED))
    assert found.types["added"] == "AddedConfig" and found.types["late"] == "LateConfig" and len(found.types) == 62


def test_a_form_that_is_new_is_refused() -> None:
    with pytest.raises(ValueError, match="0 model types"):
        known_in(wheel(auto__configuration_auto="CONFIG_MAPPING_NAMES = load()"))


def test_first_and_last_release_of_a_type() -> None:
    known = {
        Version("4.1.0"): Release({"a": "A", "b": "B"}, frozenset({"A", "B", "C"})),
        Version("4.2.0"): Release({"a": "A", "b": "B", "c": "C", "d": "D"}, frozenset({"A", "B", "C", "D"})),
        Version("5.0.0"): Release({"a": "A", "d": "D"}, frozenset({"A", "D"})),
    }
    first, last = first_and_last(known)
    assert first == {"a": "4.1.0", "b": "4.1.0", "d": "4.2.0"}
    assert last == {"b": "4.2.0", "c": "4.2.0"}
    assert '"d" = "4.2.0"' in write(known)
