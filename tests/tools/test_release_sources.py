"""Keeping the sources of releases: which file of which release, and what of it is kept."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

from tools.tables import _index
from tools.tables._index import File
from tools.tables.release_sources import keep, wanted

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


def kept(folder: Path) -> dict[str, str]:
    with zipfile.ZipFile(folder / "peft" / "0.1.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.mark.parametrize(
    ("configuration", "environment", "address"),
    [
        ([], {}, _index.PYPI),
        (["global.timeout='60'", "global.extra-index-url='https://b.example/simple'"], {}, _index.PYPI),
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
    assert _index.index_of(configuration, environment) == address


def test_of_each_final_release_the_file_is_taken_that_is_read_most_easily() -> None:
    names = (
        *("vllm-0.1.tar.gz", "vllm-0.1-cp39-cp39-manylinux1_x86_64.whl", "vllm-0.1-cp311-cp311-manylinux1_x86_64.whl"),
        *("vllm-0.2-cp38-abi3-win_amd64.whl", "vllm-0.2.tar.gz", "vllm-0.3rc1.tar.gz", "vllm-0.4.exe", "vllm-0.10.zip"),
        *("vllm-0.10-py3-none-any.whl", "vllm-0.9-cp38-abi3-macosx_11_0_arm64.whl", "old.tar.gz"),
    )
    files = [{"filename": name, "url": f"../../files/{name}", "size": 1} for name in names]
    files.append({"filename": "vllm-0.5.tar.gz", "url": "x", "yanked": "broken"})
    found = _index.best(files, "https://a.example/simple/vllm/")
    assert {str(version): file.filename for version, file in found.items()} == {
        "0.1": "vllm-0.1-cp311-cp311-manylinux1_x86_64.whl",
        "0.2": "vllm-0.2.tar.gz",
        "0.5": "vllm-0.5.tar.gz",
        "0.10": "vllm-0.10-py3-none-any.whl",
    }
    assert found[Version("0.2")].url == "https://a.example/files/vllm-0.2.tar.gz"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("peft/__init__.py", "peft/__init__.py"),
        ("peft/part.pyi", "peft/part.pyi"),
        ("peft-0.1.data/purelib/peft/a.py", "peft/a.py"),
        ("peft-0.1.data/scripts/run.py", None),
        ("peft-0.1.dist-info/METADATA", "peft-0.1.dist-info/METADATA"),
        ("peft-0.1.dist-info/RECORD", None),
        ("peft/_C.abi3.so", "peft/_C.abi3.so"),
        ("peft/tests/test_a.py", None),
        ("peft/kernel.cu", None),
        ("../peft/a.py", None),
        ("/etc/a.py", None),
    ],
)
def test_modules_stubs_and_metadata_are_kept(name: str, place: str | None) -> None:
    assert wanted(name) == place


def test_of_a_wheel_the_text_of_modules_is_kept_and_of_compiled_ones_the_name(tmp_path: Path) -> None:
    contents = {"peft/__init__.py": "a = 1\n", "peft/_C.so": "binary", "peft/data.json": "{}"}
    file = wheel(tmp_path / "peft-0.1-py3-none-any.whl", **contents, **{"peft-0.1.dist-info/METADATA": METADATA})
    assert keep(tmp_path, "peft", Version("0.1"), file) == ""
    assert kept(tmp_path) == {"peft/__init__.py": "a = 1\n", "peft/_C.so": "", "peft-0.1.dist-info/METADATA": METADATA}


@pytest.mark.parametrize("inside", ["", "src/", "python/"])
def test_sources_are_kept_as_they_would_be_installed(tmp_path: Path, inside: str) -> None:
    contents = {
        f"peft-0.1/{inside}peft/__init__.py": "a = 1\n",
        "peft-0.1/setup.py": "",
        "peft-0.1/tests/peft/test_a.py": "",
        "peft-0.1/PKG-INFO": METADATA,
    }
    file = sources(tmp_path / "peft-0.1.tar.gz", contents)
    assert keep(tmp_path, "peft", Version("0.1"), file) == ""
    assert kept(tmp_path) == {"peft/__init__.py": "a = 1\n", "sdist.dist-info/METADATA": METADATA}


def test_what_holds_no_module_or_is_broken_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    file = wheel(tmp_path / "peft-0.1-py3-none-any.whl", **{"peft-0.1.dist-info/METADATA": METADATA})
    broken = tmp_path / "peft-0.2-py3-none-any.whl"
    broken.write_bytes(b"nothing")
    assert "holds no module" in keep(tmp_path, "peft", Version("0.1"), file)
    assert "BadZipFile" in keep(tmp_path, "peft", Version("0.2"), File(broken.name, broken.as_uri(), 7))
    assert not list((tmp_path / "peft").iterdir())


def test_of_a_large_wheel_pieces_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "peft-0.1-py3-none-any.whl"
    large = "x" * (4 << 20)
    file = wheel(path, **{"peft/a.so": large, "peft/__init__.py": "a = 1\n", "peft-0.1.dist-info/METADATA": METADATA})
    content, sent = path.read_bytes(), []

    class Answer(io.BytesIO):
        status = 206

    def answer(request: _index.urllib.request.Request, timeout: float) -> Answer:
        first, last = map(int, request.get_header("Range").removeprefix("bytes=").split("-"))
        sent.append(last + 1 - first)
        return Answer(content[first : last + 1])

    monkeypatch.setattr(_index.urllib.request, "urlopen", answer)
    monkeypatch.setattr(_index, "LARGE", 1 << 20)
    monkeypatch.setattr(_index, "PIECE", 1 << 16)
    assert keep(tmp_path, "peft", Version("0.1"), file) == ""
    assert kept(tmp_path)["peft/__init__.py"] == "a = 1\n"
    assert sum(sent) < len(content) / 2
