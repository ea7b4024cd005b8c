"""Locks of Python's own package managers, in samples that these tools wrote or that have their form."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.project.requirements.formats import pdm_lock, pipfile_lock, poetry_lock, pylock, uv_lock

SAMPLES = Path(__file__).parent / "samples"
UNITS = {
    "uv.lock": uv_lock,
    "pylock.toml": pylock,
    "poetry.lock": poetry_lock,
    "pdm.lock": pdm_lock,
    "Pipfile.lock": pipfile_lock,
}


def read(name: str, python: str | None = None) -> Environment:
    return UNITS[name].read(str(SAMPLES / name), python)


def versions(name: str, python: str | None = None) -> dict[str, str]:
    found: dict[str, str] = read(name, python).facts["distributions"]
    return found


@pytest.mark.parametrize("name", UNITS)
def test_each_lock_is_known_by_its_name_and_by_one_reader(name: str) -> None:
    assert [other for other, unit in UNITS.items() if unit.recognises(str(SAMPLES / name))] == [name]


def test_uv_gives_what_the_project_and_its_default_group_lead_to() -> None:
    assert versions("uv.lock", "3.11.7") == {
        "einops": "0.8.0",
        "iniconfig": "2.3.1",
        "networkx": "3.6.1",
        "numpy": "2.4.6",
        "typing-extensions": "4.16.0",
    }
    assert "sentencepiece" not in versions("uv.lock"), "an extra that nothing names"


def test_uv_and_its_exported_pylock_say_the_same() -> None:
    for python in ("3.10", "3.11", "3.12"):
        assert versions("uv.lock", python) == versions("pylock.toml", python)


@pytest.mark.parametrize(
    ("name", "python", "version"),
    [
        *(("uv.lock", python, version) for python, version in (("3.10.4", "3.4.2"), ("3.12.1", "3.7"))),
        *(("pylock.toml", python, version) for python, version in (("3.10.4", "3.4.2"), ("3.12.1", "3.7"))),
        *(("poetry.lock", python, version) for python, version in (("3.10.4", "3.4.2"), ("3.12.1", "3.5"))),
        *(("pdm.lock", python, version) for python, version in (("3.10.4", "3.4.2"), ("3.12.1", "3.5"))),
    ],
)
def test_of_several_versions_the_markers_choose(name: str, python: str, version: str) -> None:
    assert versions(name, python)["networkx"] == version


@pytest.mark.parametrize("name", ["uv.lock", "pylock.toml", "poetry.lock", "pdm.lock"])
@pytest.mark.parametrize("python", [None, "3.8.1"], ids=["unknown", "one that the lock is not for"])
def test_several_versions_stay_open_where_the_python_does_not_decide(name: str, python: str | None) -> None:
    facts = read(name, python)
    assert "networkx" not in facts.facts["distributions"]
    assert facts.reasons["distributions.networkx"].startswith(f"{name} contains 3.4.2 where python_")
    assert facts.reasons["distributions.networkx"].endswith("; it is unknown which of these applies")


def test_what_is_for_another_system_or_group_is_left_out() -> None:
    assert versions("poetry.lock", "3.11") == {"networkx": "3.5", "peft": "0.11.1", "torch": "2.5.0+cu118"}
    assert versions("pdm.lock", "3.11") == {"networkx": "3.5", "peft": "0.11.1", "torch": "2.5.0"}


def test_pipenv_gives_its_default_section() -> None:
    facts = read("Pipfile.lock")
    assert facts.facts["distributions"] == {"einops": "0.8.0", "numpy": "2.4.6"}
    assert facts.facts["distribution_ranges"] == {"colorama": ""}
    assert facts.locations["distributions.numpy"] == Location(str(SAMPLES / "Pipfile.lock"), 28)


@pytest.mark.parametrize("name", ["uv.lock", "pylock.toml", "poetry.lock", "pdm.lock"])
def test_the_line_is_that_of_the_package(name: str) -> None:
    facts = read(name, "3.11")
    lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    for path, version in facts.facts["distributions"].items():
        at = facts.locations[f"distributions.{path}"].line
        assert at is not None and lines[at - 1].startswith("[[package")
        assert lines[at : at + 2] == [f'name = "{path}"', f'version = "{version}"']


def test_poetry_1_tells_versions_apart_by_their_python_alone(tmp_path: Path) -> None:
    text = (SAMPLES / "poetry.lock").read_text(encoding="utf-8")
    old = "\n".join(line for line in text.splitlines() if not line.startswith(("markers", "groups")))
    (tmp_path / "poetry.lock").write_text(old)
    assert poetry_lock.read(str(tmp_path / "poetry.lock"), "3.10").facts["distributions"]["networkx"] == "3.4.2"
    facts = poetry_lock.read(str(tmp_path / "poetry.lock"), "3.11")
    assert "sentencepiece" not in facts.facts["distributions"], "optional, so it belongs to an extra"
    assert "networkx" not in facts.facts["distributions"]
    assert (
        facts.reasons["distributions.networkx"]
        == "poetry.lock contains 3.4.2, 3.5; it is unknown which of these applies"
    )


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_a_lock_cut_short_is_told_in_one_line_with_the_file(tmp_path: Path, name: str, share: float) -> None:
    raw = (SAMPLES / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(raw[: int(len(raw) * share)])
    try:
        found = UNITS[name].read(str(path), "3.11").facts["distributions"]
    except InputError as error:
        assert str(path) in str(error) and "line " in str(error) and "\n" not in str(error)
    else:
        # Only a cut between two packages of a format without an end can pass for whole.
        assert name in ("pylock.toml", "pdm.lock") and set(found.items()) <= set(versions(name, "3.11").items())


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock"])
def test_a_lock_cut_between_two_packages_is_told_too(tmp_path: Path, name: str) -> None:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text(text[: text.rindex("[[package]]")])
    with pytest.raises(InputError, match=r"the file ends at line \d+ without .* appears truncated"):
        UNITS[name].read(str(tmp_path / name))


HOSTILE = {
    "deep arrays": "version = 1\na = " + "[" * 100_000,
    "a package that is no table": "version = 1\npackage = [1, 2]\n",
    "a package without a name": 'version = 1\n[[package]]\nversion = "1"\n',
    "not TOML": "<<<<<<< HEAD\nversion = 1\n",
    "an empty file": "",
}


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_lock_is_told_in_one_line(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        UNITS[name].read(str(path))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", UNITS)
def test_a_lock_out_of_all_proportion_is_not_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with path.open("wb") as stream:
        stream.truncate(50 << 20)
    with pytest.raises(InputError, match="larger than 16 MiB"):
        UNITS[name].read(str(path))


@pytest.mark.parametrize("raw", ["[]", "{", '{"_meta": 1, "default": {}}', '{"_meta": {}, "default": []}'])
def test_what_is_no_pipfile_lock_is_told(tmp_path: Path, raw: str) -> None:
    path = tmp_path / "Pipfile.lock"
    path.write_text(raw)
    with pytest.raises(InputError, match="Pipfile.lock"):
        pipfile_lock.read(str(path))


WRONG = {
    "uv.lock": """
version = 1
requires-python = 3
[[package]]
name = "x"
version = 1
source = "y"
dependencies = 3
[[package]]
name = "me"
source = { virtual = "." }
dependencies = [1, { name = "x", marker = "???", extra = "z" }, { name = "x", extra = 3 }]
""",
    "poetry.lock": """
[metadata]
content-hash = 1
python-versions = 3
[[package]]
name = "x"
version = 1
groups = "main"
markers = [1]
python-versions = {}
""",
    "pdm.lock": """
[metadata]
lock_version = 4
targets = [1]
[[package]]
name = "x"
version = 1
dependencies = ["???"]
groups = 1
marker = 2
requires_python = "nonsense"
""",
}


@pytest.mark.parametrize("name", WRONG)
def test_values_of_a_wrong_type_never_break_the_reader(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(WRONG[name])
    UNITS[name].read(str(path))


def test_the_samples_are_not_changed_by_reading(tmp_path: Path) -> None:
    for name in UNITS:
        shutil.copy(SAMPLES / name, tmp_path / name)
        UNITS[name].read(str(tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(UNITS)
