"""What a release is made of: its version, its notes, its files, and the one file that needs no installation."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from compatcheck import __version__
from compatcheck.matrix.compile import read_entries
from tests.advice.tiny_wheels import write_wheel
from tests.conftest import ROOT, Wheel, bare_environment, build

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ZIPAPP = ROOT / ".github" / "build_zipapp.py"
NOTES = ROOT / ".github" / "release_notes.py"
CHANGELOG = "# Changelog\n\n## 0.2.0 (2026-12-01)\n\n- New.\n\n## 0.1.0\n\nFirst.\n\n- Old.\n"


def script(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(path), *arguments], capture_output=True, encoding="utf-8", check=False)


def checkout(folder: Path, version: str, changelog: str = CHANGELOG) -> Path:
    """As much of a checkout as the notes are cut from; gives the script in it."""
    for name, text in (("compatcheck/__init__.py", f'__version__ = "{version}"\n'), ("CHANGELOG.md", changelog)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / ".github").mkdir()
    return Path(shutil.copy(NOTES, folder / ".github"))


def test_the_changelog_tells_of_this_version() -> None:
    done = script(NOTES, f"v{__version__}")
    assert done.returncode == 0 and "compatcheck check" in done.stdout, done.stderr


@pytest.mark.parametrize(("version", "notes"), [("0.2.0", "- New.\n"), ("0.1.0", "First.\n\n- Old.\n")])
def test_notes_are_the_section_of_the_version(tmp_path: Path, version: str, notes: str) -> None:
    assert script(checkout(tmp_path, version), f"v{version}").stdout == notes


@pytest.mark.parametrize(
    ("version", "tag", "changelog", "said"),
    [
        ("0.2.0", "v0.1.0", CHANGELOG, "the tag is v0.1.0, the version is 0.2.0"),
        ("0.2.0", "0.2.0", CHANGELOG, "the tag is 0.2.0"),
        ("0.3.0", "v0.3.0", CHANGELOG, "no text below '## 0.3.0'"),
        ("0.1", "v0.1", CHANGELOG, "no text below '## 0.1'"),
        ("0.3.0", "v0.3.0", "## 0.3.0\n\n## 0.2.0\n\n- New.\n", "no text below '## 0.3.0'"),
    ],
)
def test_what_is_no_release_is_refused(tmp_path: Path, version: str, tag: str, changelog: str, said: str) -> None:
    done = script(checkout(tmp_path, version, changelog), tag)
    assert done.returncode == 1 and said in done.stderr and not done.stdout


@pytest.mark.slow
def test_the_same_sources_give_the_same_bytes_and_the_sdist_the_same_wheel(tmp_path: Path) -> None:
    """Wherever they lie, whoever may read them, and in whatever time zone."""
    names = ("compatcheck", "matrix", "tests/__init__.py", ".github", "pyproject.toml", "README.md", "CHANGELOG.md")
    for name in (*names, "LICENSE"):
        source, target = ROOT / name, tmp_path / "elsewhere" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    epoch = {"SOURCE_DATE_EPOCH": "1700000000"}
    here = build(ROOT, tmp_path / "here", "--wheel", **epoch)
    there = build(tmp_path / "elsewhere", tmp_path / "there", TZ="Asia/Tokyo", **epoch)
    assert [path.suffix for path in there] == [".whl", ".gz"], "the wheel of `there` was built from its sdist"
    assert digest(here[0]) == digest(there[0])
    linked = _size_of_interfaces(here[0])
    assert 0 < linked < 8 << 20, "8 MB for what releases define and ask"
    entries = len(list((ROOT / "matrix").glob("*/CC-*.toml")))
    assert here[0].stat().st_size - linked < 2_900 * entries, "2.9 kB an entry"


def _size_of_interfaces(wheel: Path) -> int:
    """What the interface tables take of a wheel, in bytes."""
    with zipfile.ZipFile(wheel) as archive:
        names = ("compatcheck/matrix/data/tables/interfaces/", "compatcheck/matrix/data/tables/links/")
        return sum(each.compress_size for each in archive.infolist() if each.filename.startswith(names))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Zipapp:
    """The file, run by an interpreter that holds nothing, away from the sources."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
        done = script(
            ZIPAPP,
            str(wheel),
            "--python",
            mine,
            "--platform",
            _platform(),
            "--out",
            str(folder),
        )
        assert done.returncode == 0, done.stderr
        self.path = Path(done.stdout.strip())
        self.python = bare_environment(folder / "bare")
        self.root = folder / "unpacked"

    def run(self, *arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "SYSTEMROOT", "TMPDIR") if key in os.environ}
        return subprocess.run(
            [str(self.python), str(self.path), *arguments],
            cwd=cwd,
            env={**kept, "NO_COLOR": "1", "SHIV_ROOT": str(self.root), **environ},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )


def _platform() -> str:
    system = {"linux": "linux", "darwin": "macos", "win32": "windows"}[sys.platform]
    machine = os.uname().machine if hasattr(os, "uname") else "x86_64"
    return f"{system}-{machine}"


@pytest.fixture(scope="module")
def zipapp(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Zipapp:
    return Zipapp(tmp_path_factory.mktemp("zipapp"), wheel.path)


@pytest.mark.slow
def test_the_zipapp_shows_the_demo_and_the_matrix(zipapp: Zipapp, tmp_path: Path) -> None:
    assert zipapp.path.name == f"compatcheck-{__version__}-{_platform()}.pyz"
    demo = zipapp.run("demo", "--format", "json", cwd=tmp_path)
    assert demo.returncode == 1, demo.stderr
    assert [each["id"] for each in json.loads(demo.stdout)["findings"]] == ["CC-2024-0001"]
    listed = {line.split()[0] for line in zipapp.run("matrix", "list", cwd=tmp_path).stdout.splitlines()}
    in_force = {entry.id for entry in read_entries(ROOT / "matrix").values()}
    assert listed >= in_force


@pytest.mark.slow
def test_the_zipapp_probes_another_environment(zipapp: Zipapp, stack: Path, tmp_path: Path) -> None:
    done = zipapp.run(*("probe", "softmax", "--smoke", "--python", str(stack), "--format", "json"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)["probes"][0]
    assert (result["name"], result["outcome"]) == ("softmax", "pass")


@pytest.mark.slow
def test_the_zipapp_says_that_uv_is_not_in_it(zipapp: Zipapp, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy==1.26.4\n", encoding="utf-8")
    done = zipapp.run("pin", "requirements.txt", cwd=tmp_path, PATH=str(tmp_path))
    assert done.returncode == 2 and "uv" in done.stderr and "Traceback" not in done.stderr


def tiny(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script with tiny wheels in the place of the index."""
    environ = {**os.environ, "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(folder)}
    command = [sys.executable, str(ZIPAPP), *arguments, "--out", str(folder)]
    return subprocess.run(command, env=environ, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize("is_tampered_with", [False, True])
def test_a_dependency_with_another_hash_is_refused(is_tampered_with: bool, tmp_path: Path) -> None:
    wheel = write_wheel(
        tmp_path, "compatcheck", "0.1.0", code="def main():\n    import helper\n    print(helper.__version__)\n"
    )
    with zipfile.ZipFile(wheel, "a") as archive:
        points = "[console_scripts]\ncompatcheck = compatcheck:main\n"
        archive.writestr("compatcheck-0.1.0.dist-info/entry_points.txt", points)
    helper = write_wheel(tmp_path, "helper", "1.0")
    pinned = tmp_path / "pinned.txt"
    pinned.write_text(f"helper==1.0 --hash=sha256:{digest(helper)}\n", encoding="utf-8")
    if is_tampered_with:
        write_wheel(tmp_path, "helper", "1.0", code="print('a stranger')\n")
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    given = ("--pinned", str(pinned), "--python", mine, "--platform", _platform())
    done = tiny(tmp_path, str(wheel), *given)
    if is_tampered_with:
        assert done.returncode == 1 and "Hash mismatch for `helper==1.0`" in done.stderr
        assert not [*tmp_path.glob("*.pyz")]
    else:
        (made,) = tmp_path.glob("*.pyz")
        run = subprocess.run(
            [sys.executable, str(made)], env={"SHIV_ROOT": str(tmp_path)}, capture_output=True, text=True
        )
        assert run.stdout == "1.0\n", done.stderr + run.stderr


def test_each_dependency_of_the_zipapp_is_pinned_by_hash() -> None:
    pins, pinned = {}, (ROOT / ".github" / "zipapp-requirements.txt").read_text(encoding="utf-8")
    for line in pinned.replace("\\\n", "").splitlines()[1:]:
        requirement, _, hashes = line.partition(" --hash=sha256:")
        assert hashes, line
        pins[Requirement(requirement).name] = next(iter(Requirement(requirement).specifier)).version
    with (ROOT / "pyproject.toml").open("rb") as stream:
        asked = [Requirement(each) for each in tomllib.load(stream)["project"]["dependencies"]]
    for each in asked:
        name = each.name.lower().replace("_", "-")
        assert each.specifier.contains(pins[name]), f"{each}: build_zipapp.py --lock"


def test_the_bill_of_materials_lists_each_pin_with_its_hashes(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py")
    done = script(ZIPAPP, "dist/compatcheck-1.2.3-py3-none-any.whl", "--sbom", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "compatcheck-1.2.3.cdx.json").read_text(encoding="utf-8"))
    about = made["metadata"]["component"]
    assert (made["bomFormat"], about["name"], about["version"]) == ("CycloneDX", "compatcheck", "1.2.3")
    parts = {each["name"]: each for each in made["components"]}
    assert {"click", "pydantic-core", "pyyaml"} <= {*parts} and not {"uv", "hf-xet"} & {*parts}
    assert parts["click"]["purl"].startswith("pkg:pypi/click@")
    (place,) = parts["click"]["externalReferences"]
    assert all(len(each["content"]) == 64 for each in place["hashes"])
    assert str(tmp_path) not in json.dumps(made)
