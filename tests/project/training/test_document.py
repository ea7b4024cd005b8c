from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.project.reading import read_paths
from compatcheck.project.training.document import open_document

ALIAS_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)
MERGE_BOMB = "a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(9)) + "}\n"
MERGE_BOMB += "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12))
SIZES = "output_dir: o\nlearning_rate: 1e-4\nsave_steps: 5\n"


def document(tmp_path: Path, content: str | bytes, name: str = "c.yaml") -> Any:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_document(str(path))


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (ALIAS_BOMB, "with its aliases expanded, the file contains more than 50000 values"),
        ("a: &a [*a]\n", "line|nested too deeply"),
        ("a:\n\tb: 1\n", r"line 2, column 1: found character '\\t'"),
        ("a: [1, 2\nb: 3\n", r"line \d, column \d"),
        ("- 1\n- 2\n", "the file contains no mapping of keys to values"),
        ("? [a, b]\n: 1\n", "line 1: a key is not a word"),
        ("a: 1\n---\nb: 2\n", "found another document"),
        ("a: !!python/name:os.system x\n", "could not determine a constructor"),
        ("a: *gone\n", "undefined alias"),
        ("a: {<<: 3}\n", "<< does not name a mapping"),
        ("a: 1\n".encode("utf-16"), "not UTF-8; save it as UTF-8"),
        (b"a: \x00\n", "special characters|unacceptable"),
        ("a: 2001-99-99\n", "reading YAML"),
        ("[" * 20_000, "nested too deeply"),
        (b"#" * ((4 << 20) + 1), "larger than 4 MiB"),
    ],
    ids=range(15),
)
def test_a_yaml_file_that_is_refused_in_one_line(tmp_path: Path, content: str | bytes, seen: str) -> None:
    with pytest.raises(InputError, match=seen) as caught:
        document(tmp_path, content)
    assert "\n" not in str(caught.value)
    assert "c.yaml" in str(caught.value)


def test_a_chain_of_merges_stays_small(tmp_path: Path) -> None:
    assert document(tmp_path, MERGE_BOMB).value["a11"] == {f"k{n}": 1 for n in range(9)}


@pytest.mark.parametrize(
    "text",
    [
        "base: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}\n",
        "a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b]}\n",
        "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {y: 9, <<: *b}\n",
        "a: 1\na: 2\n",
        "2: x\ntrue: y\nnull: z\n",
    ],
)
def test_values_are_those_of_pyyaml(tmp_path: Path, text: str) -> None:
    expected = {key if isinstance(key, str) else str(key): value for key, value in yaml.safe_load(text).items()}
    found = document(tmp_path, text).value
    assert {str(key): value for key, value in found.items()} == expected


KEYS = st.text(alphabet="abc_", min_size=1, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(alphabet="xyz :#", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.booleans())
@settings(max_examples=100, deadline=None)
def test_what_was_written_is_read_and_each_key_has_its_line(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], crlf: bool
) -> None:
    text = yaml.safe_dump(value, sort_keys=False)
    raw = b"\xef\xbb\xbf" + (text.replace("\n", "\r\n") if crlf else text).encode()
    found = document(tmp_path_factory.mktemp("y"), raw)
    assert found.value == value
    lines = text.splitlines()
    for key in value:
        assert lines[found.place((key,)).line - 1].lstrip("'\"").startswith(key)


@pytest.mark.parametrize("kind", ["folder", "loop", "fifo"])
def test_what_is_no_file_is_told_or_passed_over(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "sft.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        os.mkfifo(path)
    assert read_paths([str(tmp_path)]).sources == ()
    if kind != "folder":
        with pytest.raises(InputError, match="sft.yaml: this is not a regular file"):
            read_paths([str(path)])


@pytest.mark.parametrize(
    "content",
    [ALIAS_BOMB, "per_device_train_batch_size: [\n", SIZES.encode("utf-16"), b"\x80per_device_train_batch_size"],
)
def test_a_broken_file_that_was_only_met_is_none_of_ours(tmp_path: Path, content: str | bytes) -> None:
    (tmp_path / "c.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert read_paths([str(tmp_path)]).sources == ()


def test_a_broken_file_with_the_words_of_a_run_is_why_the_training_is_not_known(tmp_path: Path) -> None:
    broken, other = tmp_path / "sft.yaml", tmp_path / "chart.yaml"
    broken.write_text("per_device_train_batch_size: 2\n bf16: true\n")
    other.write_text("{{ a template }}: [\n")
    found = read_paths([str(tmp_path)])
    assert found.sources == ()
    assert found.environment.reasons["training"] == f"{broken}: line 2, column 6: mapping values are not allowed here"
    (tmp_path / "run.yaml").write_text(SIZES + "per_device_train_batch_size: 2\n")
    found = read_paths([str(tmp_path)])
    assert [source.path for source in found.sources] == [str(tmp_path / "run.yaml")]
    assert "training" not in found.environment.reasons


def test_a_pickle_of_arguments_is_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "training_args.bin"
    path.write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(InputError, match="this is a pickle, and loading a pickle can run any code"):
        read_paths([str(path)])


TOML = """\
dump = "out"

[training]
local_batch_size = 8
'quoted' = 1
mixed.param = "bfloat16"

[parallelism.sizes]
data = -1
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("dump",), 1),
        (("training",), 3),
        (("training", "local_batch_size"), 4),
        (("training", "quoted"), 5),
        (("training", "mixed", "param"), 6),
        (("parallelism", "sizes", "data"), 9),
        (("training", "nothing"), None),
    ],
)
def test_toml_keys_have_their_line(tmp_path: Path, keys: tuple[str, ...], line: int | None) -> None:
    path = tmp_path / "run.toml"
    path.write_text(TOML)
    document = open_document(str(path))
    assert document.value["training"]["mixed"] == {"param": "bfloat16"}
    assert document.place(keys) == Location(str(path), line)


@pytest.mark.parametrize("text", ["a = \n", "a = " + "[" * 100_000])
def test_broken_toml_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(InputError, match="run.toml: "):
        open_document(str(path))
