"""Laying out releases: which file of which release, and what of it lies where."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

from compatcheck.environment import Target
from compatcheck.installed.distributions import scan
from tools.tables import lay_out
from tools.tables.lay_out import File

METADATA = "Metadata-Version: 2.1\nName: peft\nVersion: 0.1\n"


def wheel(path: Path, **contents: str) -> File:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return File(path.name, path.as_uri(), path.stat().st_size)


def sources(path: Path, contents: dict[str, str]) -> File:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return File(path.name, path.as_uri(), path.stat().st_size)


def laid_out(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("configuration", "environment", "address"),
    [
        ([], {}, lay_out.PYPI),
        (["global.timeout='60'", "global.extra-index-url='https://b.example/simple'"], {}, lay_out.PYPI),
        (["global.index-url='https://a.example/simple/'"], {}, "https://a.example/simple"),
        (
            ["global.index-url='https://a.example/simple'", ":env:.index-url='https://c.example/s?x=1'"],
            {},
            "https://c.example/s?x=1",
        ),
        (["global.index-url='https://a.example/simple'"], {"PIP_INDEX_URL": "https://d.example"}, "https://d.example"),
    ],
)
def test_the_index_is_the_one_that_pip_asks(
    configuration: list[str], environment: dict[str, str], address: str
) -> None:
    assert lay_out.index_of(configuration, environment) == address


def test_of_each_final_release_the_file_is_taken_that_is_read_most_easily() -> None:
    names = (
        *("vllm-0.1.tar.gz", "vllm-0.1-cp39-cp39-manylinux1_x86_64.whl", "vllm-0.1-cp311-cp311-manylinux1_x86_64.whl"),
        *("vllm-0.2-cp38-abi3-win_amd64.whl", "vllm-0.2.tar.gz", "vllm-0.3rc1.tar.gz", "vllm-0.4.exe", "vllm-0.10.zip"),
        *("vllm-0.10-py3-none-any.whl", "vllm-0.9-cp38-abi3-macosx_11_0_arm64.whl", "old.tar.gz"),
    )
    files = [{"filename": name, "url": f"../../files/{name}", "size": 1} for name in names]
    files.append({"filename": "vllm-0.5.tar.gz", "url": "x", "yanked": "broken"})
    found = lay_out.best(files, "https://a.example/simple/vllm/")
    assert {str(version): file.filename for version, file in found.items()} == {
        "0.1": "vllm-0.1-cp311-cp311-manylinux1_x86_64.whl",
        "0.2": "vllm-0.2.tar.gz",
        "0.10": "vllm-0.10-py3-none-any.whl",
    }
    assert found[Version("0.2")].url == "https://a.example/files/vllm-0.2.tar.gz"


@pytest.mark.parametrize(
    ("listed", "newer", "every", "expected"),
    [
        ([], False, 0, "0.1.0 0.1.9 0.2 1.0.0 1.0.1"),
        ([], False, 2, "0.1.0 0.1.6 0.1.9 0.2 1.0.0 1.0.1"),
        (["0.1.5", "0.1.7", "0.2.0"], False, 0, "0.1.5 0.2.0"),
        (["0.1.5", "0.2"], True, 1, "0.1.5 0.2 1.0.0 1.0.1"),
    ],
)
def test_the_releases_that_the_table_lists_or_both_ends_of_each_minor(
    listed: list[str], newer: bool, every: int, expected: str
) -> None:
    versions = [Version(each) for each in ("0.1.0", "0.1.5", "0.1.6", "0.1.9", "0.2", "1.0.0", "1.0.1")]
    assert " ".join(map(str, lay_out.chosen(versions, listed, newer, every))) == expected


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("peft/__init__.py", "peft/__init__.py"),
        ("peft-0.1.data/purelib/peft/a.py", "peft/a.py"),
        ("peft-0.1.data/scripts/run.py", None),
        ("peft/_C.abi3.so", "peft/_C.abi3.so"),
        ("peft/kernel.cu", None),
        ("../peft/a.py", None),
        ("/etc/a.py", None),
    ],
)
def test_only_modules_are_laid_out_and_within_the_folder(name: str, place: str | None) -> None:
    assert lay_out.module_file(name) == place


def test_a_wheel_lies_as_installers_lay_it_out(tmp_path: Path) -> None:
    contents = {"peft/__init__.py": "a = 1\n", "peft/_C.so": "binary", "peft/data.json": "{}"}
    file = wheel(tmp_path / "peft-0.1-py3-none-any.whl", **contents, **{"peft-0.1.dist-info/METADATA": METADATA})
    assert lay_out.lay_out(tmp_path / "laid", "peft", Version("0.1"), file) == ""
    place = tmp_path / "laid" / "peft" / "0.1"
    info = "peft-0.1.dist-info"
    assert laid_out(place) == [f"{info}/METADATA", f"{info}/RECORD", "peft/_C.so", "peft/__init__.py"]
    assert (place / "peft" / "_C.so").read_bytes() == b""
    (found,) = scan(Target("", "3.11.7", "", (str(place),), "")).installed
    assert (found.name, found.version) == ("peft", "0.1")


@pytest.mark.parametrize("inside", ["", "src/", "python/"])
def test_sources_lie_as_they_would_be_installed(tmp_path: Path, inside: str) -> None:
    contents = {
        f"peft-0.1/{inside}peft/__init__.py": "a = 1\n",
        "peft-0.1/setup.py": "",
        "peft-0.1/tests/peft/test_a.py": "",
        "peft-0.1/PKG-INFO": f"{METADATA}\nText\n",
        f"peft-0.1/{inside}peft.egg-info/requires.txt": "accelerate>=0.21\n\n[test]\npytest\n",
    }
    file = sources(tmp_path / "peft-0.1.tar.gz", contents)
    assert lay_out.lay_out(tmp_path / "laid", "peft", Version("0.1"), file) == ""
    place = tmp_path / "laid" / "peft" / "0.1"
    assert laid_out(place) == ["peft-0.1.dist-info/METADATA", "peft-0.1.dist-info/RECORD", "peft/__init__.py"]
    text = (place / "peft-0.1.dist-info" / "METADATA").read_text()
    assert text == f"{METADATA}Requires-Dist: accelerate>=0.21\n\nText\n"


def test_what_holds_no_module_or_is_broken_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    file = wheel(tmp_path / "peft-0.1-py3-none-any.whl", **{"peft-0.1.dist-info/METADATA": METADATA})
    broken = tmp_path / "peft-0.2-py3-none-any.whl"
    broken.write_bytes(b"nothing")
    assert "holds no module" in lay_out.lay_out(tmp_path / "laid", "peft", Version("0.1"), file)
    told = lay_out.lay_out(tmp_path / "laid", "peft", Version("0.2"), File(broken.name, broken.as_uri(), 7))
    assert "BadZipFile" in told
    assert laid_out(tmp_path / "laid") == []


def test_of_a_large_wheel_pieces_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "peft-0.1-py3-none-any.whl"
    large = "x" * (4 << 20)
    file = wheel(path, **{"peft/a.so": large, "peft/__init__.py": "a = 1\n", "peft-0.1.dist-info/METADATA": METADATA})
    content, sent = path.read_bytes(), []

    class Answer(io.BytesIO):
        status = 206

    def answer(request: lay_out.urllib.request.Request, timeout: float) -> Answer:
        first, last = map(int, request.get_header("Range").removeprefix("bytes=").split("-"))
        sent.append(last + 1 - first)
        return Answer(content[first : last + 1])

    monkeypatch.setattr(lay_out.urllib.request, "urlopen", answer)
    monkeypatch.setattr(lay_out, "LARGE", 1 << 20)
    monkeypatch.setattr(lay_out, "PIECE", 1 << 16)
    assert lay_out.lay_out(tmp_path / "laid", "peft", Version("0.1"), file) == ""
    assert (tmp_path / "laid" / "peft" / "0.1" / "peft" / "__init__.py").read_text() == "a = 1\n"
    assert sum(sent) < len(content) / 2
