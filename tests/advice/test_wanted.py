"""What the user asks for, read from the files that people have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from compatcheck.advice import wanted
from compatcheck.environment import Location
from compatcheck.errors import InputError

LINUX = {"python_version": "3.11", "python_full_version": "3.11.7", "sys_platform": "linux"}
PROJECT = """\
[project]
name = "My_Project"
dependencies = [
    # the stack
    "torch==2.5.0",  # mine
    'peft[dev]>=0.14 ; python_version >= "3.8"', "local",
]

[project.optional-dependencies]
Test = ["pytest==8.0.0"]
never = ["sphinx"]

[dependency-groups]
dev = ["my-project[test]", {include-group = "Lint"}, "colorama==0.4.6; sys_platform=='win32'"]
lint = ["ruff==0.6.0"]
docs = ["furo"]
compatcheck = [
    "filelock==3.16.1",  # via torch
]

[tool.uv]
constraint-dependencies = ["numpy==1.26.4"]

[tool.uv.sources]
local = { path = "libs/local" }
"""


def write(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def read(folder: Path, content: str | bytes, markers: Mapping[str, str] | None = None) -> wanted.Wanted:
    return wanted.read([write(folder, "requirements.in", content)], markers)


def asked(of: wanted.Wanted) -> list[str]:
    return [line.asked for line in of.lines if line.asked is not None]


def test_exact_pins_are_preferences_and_ranges_are_not(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "# stack\n\nTorch==2.5.0+cu118  # pinned\npeft[dev] == 0.14.0 ; python_version >= '3.8'\n"
        "transformers>=4.40,!=4.46.*\nnumpy==1.*\naccelerate (==1.0)\nidna===3.4\nodd===not-a-version\n"
        "rich==13.7.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11  # hashed\n",
        LINUX,
    )
    assert asked(found) == [
        "Torch",
        "peft[dev] ; python_version >= '3.8'",
        "transformers>=4.40,!=4.46.*",
        "numpy==1.*",
        "accelerate",
        "idna",
        "odd===not-a-version",
        "rich",
    ]
    pins = {"torch": "2.5.0+cu118", "peft": "0.14.0", "accelerate": "1.0", "idna": "3.4", "rich": "13.7.0"}
    assert found.preferred == pins and not found.complete
    assert [(line.text, line.comment) for line in found.lines[:3]] == [
        ("", "# stack"),
        ("", ""),
        ("Torch==2.5.0+cu118", "# pinned"),
    ]
    assert found.lines[-1].text == "rich==13.7.0" and found.lines[-1].comment == "# hashed"
    assert found.lines[-1].at == Location(str(tmp_path / "requirements.in"), 10)


def test_includes_stand_in_place_and_constraints_only_limit(tmp_path: Path) -> None:
    write(tmp_path, "more/base.txt", "--find-links wheels\n-c limits.txt\ndatasets\n")
    write(tmp_path, "more/limits.txt", "fsspec<2026 # old\ndill==0.3.8\ntorch==2.4.0\nwin==1; sys_platform=='win32'\n")
    found = read(tmp_path, "torch==2.5.0\n-r more/base.txt\n-c https://host/c.txt\npeft\n", LINUX)
    assert asked(found) == ["torch", f"--find-links {tmp_path / 'more' / 'wheels'}", "datasets", "peft"]
    assert found.constraints == ("-c https://host/c.txt", "fsspec<2026")
    assert found.preferred == {"dill": "0.3.8", "torch": "2.5.0"}
    assert "--find-links more/wheels" in [line.text for line in found.lines]


@pytest.mark.parametrize(
    ("markers", "left", "preferred"),
    [
        (LINUX, ["torch ; sys_platform=='linux'"], {"torch": "2.5.0"}),
        (None, ["torch==2.5.0 ; sys_platform=='linux'", "torch==2.4.0 ; sys_platform=='darwin'"], {}),
    ],
)
def test_two_pins_under_markers_stand_unless_only_one_holds(
    tmp_path: Path, markers: Mapping[str, str] | None, left: list[str], preferred: dict[str, str]
) -> None:
    text = "torch==2.5.0 ; sys_platform=='linux'\ntorch==2.4.0 ; sys_platform=='darwin'\n"
    found = read(tmp_path, text, markers)
    assert asked(found) == left and found.preferred == preferred


def test_what_has_no_version_is_kept_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("WHEELS", str(tmp_path / "w"))
    write(tmp_path, "sub/requirements.txt", "")
    lines = {
        "-e ./here[dev]": ("an editable project", None, f"-e {tmp_path}/here[dev]"),
        "--editable=git+https://host/x.git@main#egg=X_y": (
            "an editable project",
            "x-y",
            "X_y @ git+https://host/x.git@main",
        ),
        "-e git+https://host/x.git#egg=x[a]&subdirectory=b ; python_version > '3'": (
            "an editable project",
            "x",
            "x[a] @ git+https://host/x.git#subdirectory=b ; python_version > '3'",
        ),
        "-e git+https://host/x.git@main": ("an editable project", None, "git+https://host/x.git@main"),
        "git+https://host/z.git": ("a version-control link", None, "git+https://host/z.git"),
        "pkg @ https://host/pkg-1.tar.gz ; python_version > '3'": (
            "a URL",
            "pkg",
            "pkg @ https://host/pkg-1.tar.gz ; python_version > '3'",
        ),
        "six @ file:///w/six-1.0-py3-none-any.whl": ("a local file", "six", "six @ file:///w/six-1.0-py3-none-any.whl"),
        "./w/six-1.0-py3-none-any.whl": ("a local file", "six", f"{tmp_path}/sub/w/six-1.0-py3-none-any.whl"),
        "${WHEELS}/six-1.0-py3-none-any.whl": ("a local file", "six", f"{tmp_path}/w/six-1.0-py3-none-any.whl"),
        "../here": ("a local project", None, f"{tmp_path}/here"),
    }
    path = write(tmp_path, "sub/requirements.txt", "".join(f"{line}\n" for line in lines))
    found = wanted.read([path], LINUX)
    assert [line.text for line in found.lines] == list(lines)
    assert [(line.kept, line.name, line.asked) for line in found.lines] == list(lines.values())
    assert not found.preferred


def test_options_are_for_the_resolver_or_for_pip(tmp_path: Path) -> None:
    text = "-i https://u:p@host/simple # ours\n--pre\n--trusted-host host\nx==1 --config-settings a=b\n"
    found = read(tmp_path, text)
    assert asked(found) == ["-i https://u:p@host/simple", "--pre", "x"]
    assert [line.text for line in found.lines] == [
        "-i https://u:p@host/simple",
        "--pre",
        "--trusted-host host",
        "x==1 --config-settings a=b",
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_of_windows_editors_are_read(tmp_path: Path, encoding: str) -> None:
    found = read(tmp_path, "torch==2.5.0\r\npeft\r\n".encode(encoding))
    assert asked(found) == ["torch", "peft"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        (b"torch==2.5.0 # \xff\n", "byte 15 is not UTF-8"),
        (b"peft\ntorch=>2.5\n", "line 2: 'torch=>2.5' is not a requirement; write name==version"),
        (b"peft; os == 'x'\n", "line 1: .*; write name==version"),
        (b"./x.whl ; os == 'x'\n", "line 1: .*; write a marker such as"),
        (b"--upgrade\n", "line 1: --upgrade is not an option"),
        (b"\n-r gone.txt\n", "line 2 names gone.txt, which is not a file"),
        (b"-r c3.txt\n", "c3.txt: line 2 names nope.txt, which is not a file"),
        (b"-r requirements.in\n", "form a cycle"),
        (b"x @ https://user:secret@host/a b\n", "line 1: (?!.*secret)"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, content: bytes | None, words: str) -> None:
    write(tmp_path, "c3.txt", "peft\n-r nope.txt\n")
    if content is not None:
        write(tmp_path, "requirements.in", content)
    with pytest.raises(InputError, match=words) as refusal:
        wanted.read([str(tmp_path / "requirements.in")], LINUX)
    named = "c3.txt" if "c3.txt" in words else "requirements.in"
    assert named in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_project_asks_for_its_dependencies_default_groups_and_own_extras(tmp_path: Path) -> None:
    path = write(tmp_path, "pyproject.toml", PROJECT)
    found = wanted.read([path], LINUX)
    assert asked(found) == [
        "torch",
        'peft[dev]>=0.14 ; python_version >= "3.8"',
        f"local @ file://{tmp_path}/libs/local",
        "ruff",
        "pytest",
    ]
    assert found.preferred == {"filelock": "3.16.1", "torch": "2.5.0", "ruff": "0.6.0", "pytest": "8.0.0"}
    assert found.constraints == ("numpy==1.26.4",)
    lines = {line.name: line for line in found.lines}
    assert (lines["torch"].comment, lines["torch"].at) == ("# mine", Location(path, 5))
    assert lines["pytest"].at == Location(path, 10)
    assert lines["local"].kept == "a uv path source" and lines["colorama"].asked is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[project\n", "line 1"),
        ("[project]\ndependencies = ['torch=>2']\n", "line 2: 'torch=>2' is not a requirement"),
        ("[project]\ndynamic = ['dependencies']\n", "are dynamic; pass the file"),
        ("[tool.poetry.dependencies]\ntorch = '^2.5'\n", "Poetry's own format; pass the output of `poetry export`"),
        ("[project]\ndependencies = 'torch'\n", r"no list of \[project\]"),
        ("tool = 1\nproject = []\ndependency-groups = 2\n", r"no list of \[project\]"),
        ("[dependency-groups]\ndev = 5\n[tool.uv]\ndefault-groups = 2\nsources = 3\n", r"no list of \[project\]"),
        ("[tool.ruff]\n", r"no list of \[project\] dependencies; add the dependencies"),
    ],
)
def test_a_project_without_readable_dependencies_is_refused(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        wanted.read([write(tmp_path, "pyproject.toml", content)], None)


def test_the_tools_of_an_environment_are_not_asked_for() -> None:
    found = wanted.installed(["torch", "pip", "uv", "compatcheck", "setuptools"], {"torch": "2.5.0", "pip": "24"})
    assert asked(found) == ["setuptools", "torch"] and found.complete
    assert found.preferred == {"torch": "2.5.0", "pip": "24"}


def test_pins_of_the_old_output_count_where_the_input_names_none(tmp_path: Path) -> None:
    found = wanted.preferring(read(tmp_path, "torch==2.5.0\npeft\n"), {"torch": "2.4.0", "peft": "0.14.0"})
    assert found.preferred == {"torch": "2.5.0", "peft": "0.14.0"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("requirements.txt", "-i https://x/\nTorch[a]==2.5.0+cu118 \\\n --hash=sha256:0  # via x\npeft>=1\nx @ https://x\n"),
        ("pylock.toml", "lock-version = '1.0'\npackages = [{name = 'torch', version = '2.5.0+cu118'}, {name = 'x'}]\n"),
        ("pyproject.toml", "[dependency-groups]\ncompatcheck = ['torch==2.5.0+cu118', 'x', {include-group = 'y'}]\n"),
        ("requirements.txt", "torch==2.5.0+cu118\na==1 ; x\na==2 ; y\nb==1.*\nc==1,<2\n"),
    ],
)  # fmt: skip
def test_the_pins_of_a_file_of_any_format(tmp_path: Path, name: str, content: str) -> None:
    assert wanted.pins_in(write(tmp_path, name, content)) == {"torch": "2.5.0+cu118"}
    assert wanted.pins_in(str(tmp_path / "absent.txt")) == {}


@pytest.mark.parametrize(
    ("first", "second", "preferred"),
    [
        ("torch==2.5.1  # compatcheck: CC-2024-0001, was 2.5.0", "torch==2.5.0", {"torch": "2.5.1"}),
        ("torch==2.5.0", "torch==2.5.1  # compatcheck: CC-2024-0001, was 2.5.0", {"torch": "2.5.1"}),
        ("torch==2.5.1  # compatcheck: A, was 2.5.0", "torch==2.6.0  # compatcheck: B, was 2.5.0", {}),
    ],
)
def test_what_was_moved_counts_before_the_other_files_pin_that_it_was_moved_from(
    tmp_path: Path, first: str, second: str, preferred: dict[str, str]
) -> None:
    paths = [write(tmp_path, "a.txt", first), write(tmp_path, "b.txt", second)]
    found = wanted.read(paths, LINUX)
    assert found.preferred == preferred and asked(found) == ["torch", "torch"]
