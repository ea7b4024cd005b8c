"""Versions as files: what the user wrote stays, and a second run changes nothing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.pylock import Pylock
from packaging.requirements import Requirement

from compatcheck.advice import formats, wanted
from compatcheck.advice.model import Move, Solution, Wanted
from tests.advice.tiny_wheels import write_wheel

LINUX = {"python_version": "3.11", "python_full_version": "3.11.7", "sys_platform": "linux"}
SOLUTION = Solution(
    {"torch": "2.5.1+cu118", "peft": "0.14.0", "numpy": "1.26.4", "torchvision": "0.20.1"},
    {"numpy": ("torchvision", "torch"), "torchvision": ()},
)
MOVES = {"torch": Move("2.5.0+cu118", ("CC-2024-0001", "CC-2024-0002")), "torchvision": Move("0.20.0")}
FILE = """\
# the stack

--index-url https://host/simple  # ours
Torch == 2.5.0+cu118  # by hand  # compatcheck: CC-2020-0001, was 2.4.0
peft[dev]>=0.14 ; python_version >= '3.8'   # adapters

colorama==0.4.6 ; sys_platform == 'win32'
own @ git+https://host/own.git@main
"""
PINNED = """\
# the stack

--index-url https://host/simple  # ours
Torch==2.5.1+cu118  # by hand  # compatcheck: CC-2024-0001, CC-2024-0002, was 2.5.0+cu118
peft[dev]==0.14.0 ; python_version >= '3.8'  # adapters

colorama==0.4.6 ; sys_platform == 'win32'
own @ git+https://host/own.git@main

# compatcheck: dependencies of the packages above
numpy==1.26.4  # via torch, torchvision
torchvision==0.20.1  # via the requirements  # compatcheck: with CC-2024-0001, CC-2024-0002, was 0.20.0
"""
PROJECT = """\
# a project
[project]
name = "mine"
version = "1"  # first
dependencies = [
    # the stack
    "Torch==2.5.0+cu118",   # by hand
    'peft[dev]>=0.14 ; python_version >= "3.8"', "own @ git+https://host/own.git@main" # ours

    # and no more
]  # end
requires-python = ">=3.10"

[dependency-groups]
dev = ["colorama==0.4.6; sys_platform=='win32'", {include-group = "vision"}]
vision = ["torchvision==0.20.0"]
docs = ["sphinx==8.0.0"]

[tool.ruff]
line-length = 120
"""
LOCK = """\
lock-version = "1.0"
created-by = "uv"

[[packages]]
name = "numpy"
version = "1.26.4"
wheels = [{ url = "https://host/numpy-1.26.4-py3-none-any.whl", hashes = { sha256 = "00" } }]

[[packages]]
name = "torch"
version = "2.5.1+cu118"
wheels = [{ url = "https://host/torch-2.5.1%2Bcu118-py3-none-any.whl", hashes = { sha256 = "11" } }]
"""


def read(folder: Path, text: str, name: str = "requirements.txt", markers: Mapping[str, str] | None = LINUX) -> Wanted:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return wanted.read([str(path)], markers)


def rendered(
    name: str,
    of: Wanted,
    moves: Mapping[str, Move] | None = None,
    previous: str | None = None,
    locked: str | None = None,
    solution: Solution = SOLUTION,
) -> str:
    return formats.render(name, of, solution, moves or {}, locked, previous)


def test_the_users_lines_stay_in_their_order_with_what_they_say(tmp_path: Path) -> None:
    assert rendered("requirements", read(tmp_path, FILE), MOVES) == PINNED


def test_own_output_as_input_comes_out_the_same(tmp_path: Path) -> None:
    again = read(tmp_path, PINNED)
    assert again.preferred == {**SOLUTION.versions}
    assert [line.asked for line in again.lines if line.name in ("numpy", "torchvision")] == [None, None]
    assert rendered("requirements", again) == rendered("requirements", again, previous=PINNED) == PINNED


def test_a_mark_of_the_old_output_stays_with_the_version_it_speaks_of(tmp_path: Path) -> None:
    of = read(tmp_path, "torch>=2.4\npeft\n")
    assert "torch==2.5.1+cu118  # compatcheck: CC-2024-0001" in rendered("requirements", of, previous=PINNED)
    other = SOLUTION._replace(versions={**SOLUTION.versions, "torch": "2.6.0"})
    assert "torch==2.6.0\n" in rendered("requirements", of, previous=PINNED, solution=other)


def test_what_is_added_below_the_brought_ones_is_asked_for(tmp_path: Path) -> None:
    of = read(tmp_path, PINNED + "datasets==3.0\n")
    assert [line.asked for line in of.lines][-1] == "datasets"
    solution = SOLUTION._replace(versions={**SOLUTION.versions, "datasets": "3.0"})
    once = rendered("requirements", of, solution=solution)
    assert once.index("datasets") < once.index("dependencies of the packages above")
    assert rendered("requirements", read(tmp_path, once), solution=solution) == once


@pytest.mark.parametrize(
    ("move", "complete", "mark"),
    [
        (Move(None, ("CC-2024-0001",)), False, "# compatcheck: CC-2024-0001"),
        (Move(None), True, "# compatcheck: the requirements, new"),
        (Move("2.4.0"), False, "# compatcheck: the requirements, was 2.4.0"),
    ],
)
def test_a_mark_says_what_moved_the_line_and_from_where(move: Move, complete: bool, mark: str) -> None:
    of = wanted.installed(["torch"], {})._replace(complete=complete)
    assert rendered("requirements", of, {"torch": move}).startswith(f"torch==2.5.1+cu118  {mark}\n")


def test_pins_under_markers_that_nobody_can_judge_stay_as_they_stand(tmp_path: Path) -> None:
    text = "torch==2.5.0 ; sys_platform=='linux'\ntorch==2.4.0 ; sys_platform=='darwin'\n"
    of = read(tmp_path, text, markers=None)
    assert rendered("requirements", of, solution=Solution({"torch": "2.5.0"})) == text


def test_notes_stand_above_and_once(tmp_path: Path) -> None:
    for name in ("requirements", "pyproject"):
        file = "requirements.txt" if name == "requirements" else "pyproject.toml"
        once = formats.render(name, read(tmp_path, FILE), SOLUTION, {}, None, None, ["mind the gap"])
        assert once.startswith("# compatcheck: mind the gap\n") and once.count("mind") == 1
        assert formats.render(name, read(tmp_path, once, file), SOLUTION, {}, None, once, ["mind the gap"]) == once


def test_constraints_are_names_and_versions_only(tmp_path: Path) -> None:
    of = read(tmp_path, FILE)
    once = rendered("constraints", of, MOVES)
    assert once == (
        "colorama==0.4.6 ; sys_platform == 'win32'\nnumpy==1.26.4\npeft==0.14.0 ; python_version >= '3.8'\n"
        "Torch==2.5.1+cu118  # compatcheck: CC-2024-0001, CC-2024-0002, was 2.5.0+cu118\n"
        "torchvision==0.20.1  # compatcheck: with CC-2024-0001, CC-2024-0002, was 0.20.0\n"
    )
    assert rendered("constraints", of, previous=once) == once
    assert [said.partition(": ")[2] for said in formats.left_out("constraints", of, None, once)] == [
        "--index-url https://host/simple is not part of constraints",
        "own @ git+https://host/own.git@main is not part of constraints",
    ]


def test_a_project_keeps_its_form_and_gets_a_group_for_what_is_brought(tmp_path: Path) -> None:
    once = rendered("pyproject", read(tmp_path, PROJECT, "pyproject.toml"), MOVES, PROJECT)
    assert once == PROJECT.replace(
        '    "Torch==2.5.0+cu118",   # by hand\n',
        '    "Torch==2.5.1+cu118",  # by hand  # compatcheck: CC-2024-0001, CC-2024-0002, was 2.5.0+cu118\n',
    ).replace(
        "    'peft[dev]>=0.14 ; python_version >= \"3.8\"', \"own @ git+https://host/own.git@main\" # ours\n",
        "    'peft[dev]==0.14.0 ; python_version >= \"3.8\"',\n    \"own @ git+https://host/own.git@main\",  # ours\n",
    ).replace(
        'vision = ["torchvision==0.20.0"]\ndocs = ["sphinx==8.0.0"]\n',
        "vision = [\n"
        '    "torchvision==0.20.1",  # compatcheck: with CC-2024-0001, CC-2024-0002, was 0.20.0\n]\n'
        'docs = ["sphinx==8.0.0"]\ncompatcheck = [\n    "numpy==1.26.4",  # via torch, torchvision\n]\n',
    )  # fmt: skip
    again = read(tmp_path, once, "pyproject.toml")
    assert again.preferred == {"numpy": "1.26.4", "torch": "2.5.1+cu118", "torchvision": "0.20.1"} | {"peft": "0.14.0"}
    assert rendered("pyproject", again, previous=once) == rendered("pyproject", again) == once


def test_requirements_become_a_fragment_or_join_the_project_that_is_there(tmp_path: Path) -> None:
    of = read(tmp_path, FILE)
    fragment = tomlkit.parse(rendered("pyproject", of)).unwrap()
    assert fragment["project"]["dependencies"] == [
        "Torch==2.5.1+cu118",
        "peft[dev]==0.14.0 ; python_version >= '3.8'",
        "colorama==0.4.6 ; sys_platform == 'win32'",
        "own @ git+https://host/own.git@main",
    ]
    there = '[project]\nname = "mine"\ndependencies = ["torch>=2", "rich"]\n[tool.ruff]\nx = 1\n'
    once = rendered("pyproject", of, previous=there)
    joined = tomlkit.parse(once).unwrap()
    assert [Requirement(each).name for each in joined["project"]["dependencies"]] == [
        *("torch", "rich", "peft", "colorama", "own"),
    ]
    assert joined["tool"] == {"ruff": {"x": 1}} and rendered("pyproject", of, previous=once) == once


def test_a_lock_says_in_its_tool_tables_what_moved() -> None:
    of = Wanted((), {})
    once = rendered("pylock", of, MOVES, locked=LOCK)
    packages = {package.name: package for package in Pylock.from_dict(tomlkit.parse(once).unwrap()).packages}
    moved = {"moved_by": ["CC-2024-0001", "CC-2024-0002"], "was": "2.5.0+cu118"}
    assert packages["torch"].tool == {"compatcheck": moved} and packages["numpy"].tool is None
    assert [line for line in once.splitlines() if not line.startswith("tool = ")] == LOCK.splitlines()
    assert rendered("pylock", of, locked=LOCK, previous=once) == once
    assert rendered("pylock", of, locked=LOCK, previous="torch==2.5.0\n") == LOCK


SECRETS = (
    "--index-url https://user:secret@host/simple\n"
    "--extra-index-url https://${USER}:${TOKEN}@host/simple\n"
    "--find-links https://host/w?sig=secret&x=1\n"
    "a @ git+https://secret@host/a.git@main#egg=a\n"
    "b @ git+ssh://git:secret@host/b.git\n"
    "-e git+ssh://git@host/c.git#egg=c\n"
    "# see https://user:se@cret@host/\n"
)


def test_no_credential_reaches_a_new_file(tmp_path: Path) -> None:
    of = read(tmp_path, SECRETS)
    bare = (
        "--index-url https://host/simple\n"
        "--extra-index-url https://${USER}:${TOKEN}@host/simple\n"
        "--find-links https://host/w\n"
        "a @ git+https://host/a.git@main#egg=a\n"
        "b @ git+ssh://git@host/b.git\n"
        "-e git+ssh://git@host/c.git#egg=c\n"
        "# see https://host/\n"
    )
    nothing = Solution({})
    assert rendered("requirements", of, solution=nothing) == bare
    assert rendered("requirements", of, previous=SECRETS, solution=nothing) == SECRETS
    for name in formats.names():
        told = formats.left_out(name, of, None, "")
        assert "cret" not in rendered(name, of, solution=nothing, locked="") + "".join(told)
    told = formats.left_out("requirements", of, None, bare)
    places = [said.partition(" ")[0].rpartition("requirements.txt:")[2] for said in told]
    assert places == ["1:", "3:", "4:", "5:", "7:"]
    assert formats.left_out("requirements", of, SECRETS, SECRETS) == ()


def test_pip_and_uv_take_the_hashed_file(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    write_wheel(wheels, "tiny-a", "1.0", ["tiny-b"])
    write_wheel(wheels, "tiny-b", "2.0")
    source = f"--no-index\n--find-links {wheels}\ntiny-a==0.9  # mine\ncolorama==0.4.6 ; sys_platform == 'win32'\n"
    of = read(tmp_path, source)
    solution = Solution({"tiny-a": "1.0", "tiny-b": "2.0"}, {"tiny-b": ("tiny-a",)})
    locked = uv(
        "pip", "compile", "-", "--generate-hashes", "--no-header", "--find-links", str(wheels), given="tiny-a\n"
    )
    moves = {"tiny-a": Move("0.9", ("CC-2024-0001",))}
    path = tmp_path / "hashed.txt"
    path.write_text(rendered("requirements", of, moves, locked=locked, solution=solution), encoding="utf-8")
    assert path.read_text(encoding="utf-8").count("--hash=sha256:") == 2
    options = ["--dry-run", "--require-hashes", "-r", str(path)]
    pip = subprocess.run([sys.executable, "-m", "pip", "install", *options], capture_output=True, text=True)
    assert "Would install tiny-a-1.0 tiny-b-2.0" in pip.stdout, pip.stderr
    uv("pip", "install", "--python", sys.executable, *options)
    again = wanted.read([str(path)], LINUX)
    assert rendered("requirements", again, locked=locked, solution=solution) == path.read_text(encoding="utf-8")


def test_hashes_stay_where_they_were_or_are_required(tmp_path: Path) -> None:
    plain = read(tmp_path, "torch==2.5.0\n")
    hashed = "torch==2.5.0 \\\n    --hash=sha256:00\n"
    assert not formats.holds_hashes("requirements", plain, "torch==2.5.0\n")
    assert formats.holds_hashes("requirements", plain, hashed)
    assert not formats.holds_hashes("constraints", plain, hashed)
    assert formats.holds_hashes("requirements", read(tmp_path, "torch\n--require-hashes\n"), None)


def test_what_no_hash_is_known_of_is_told_where_others_have_one(tmp_path: Path) -> None:
    of = read(
        tmp_path, "-i https://host/simple\ncolorama ; sys_platform == 'win32'\nown @ git+https://u:p@host/own.git\n"
    )
    locked = "torch==2.5.1+cu118 \\\n    --hash=sha256:00\n"
    once = rendered("requirements", of, locked=locked, solution=Solution({"torch": "2.5.1+cu118"}))
    told = formats.left_out("requirements", of, once, once)
    assert told[1:] == ("own @ git+https://host/own.git has no hash, so pip refuses the file with --require-hashes",)
    assert not formats.left_out("requirements", read(tmp_path, "torch\n"), None, "torch==2.5.1\n")


def uv(*arguments: str, given: str = "") -> str:
    from uv import find_uv_bin

    done = subprocess.run([find_uv_bin(), *arguments, "--no-index"], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


NAMES = st.sampled_from(["Torch", "peft", "my_pkg", "zope.interface", "a"])
VERSIONS = st.sampled_from(["1.0", "2.5.0+cu118", "2.7.4.post1", "1!3.0rc1"])
REQUIREMENTS = st.builds(
    "{}{}{}{}{}".format,
    NAMES,
    st.sampled_from(["", "[x]", " [x, y]"]),
    st.one_of(
        VERSIONS.map("=={}".format), VERSIONS.map(" == {}".format), st.sampled_from(["", ">=1", ">=1,!=1.4.*", "~=1.0"])
    ),
    st.sampled_from(["", " ; python_version >= '3.8'", "; sys_platform=='win32'"]),
    st.sampled_from(["", "  # why", " #", " # compatcheck: CC-2020-0001, was 0.1", "  # via peft"]),
)
LINES = st.lists(
    st.one_of(REQUIREMENTS, st.sampled_from(["", "# a comment", "    # via torch", "--pre", "git+https://h/x@main"])),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(LINES, st.dictionaries(NAMES, VERSIONS), st.booleans(), st.sampled_from([LINUX, None]))
def test_what_is_read_back_says_the_same(
    lines: list[str], versions: dict[str, str], moved: bool, markers: Mapping[str, str] | None
) -> None:
    solution = Solution({name.lower().replace("_", "-").replace(".", "-"): each for name, each in versions.items()})
    moves = {name: Move("0.5", ("CC-2024-0001",)) for name in solution.versions} if moved else {}
    with tempfile.TemporaryDirectory() as folder:
        of = read(Path(folder), "\n".join(lines), markers=markers)
        once = rendered("requirements", of, moves, solution=solution)
        back = read(Path(folder), once, markers=markers)
        twice = rendered("requirements", back, solution=solution)
    assert twice == once
    assert rendered("requirements", of, moves, previous=once, solution=solution) == once
    assert substance(back)[: len(substance(of))] == substance(of)
    applying = {line.name for line in of.lines if line.asked is not None}
    for line in back.lines:
        if line.name in solution.versions and line.name not in applying and line.asked is not None:
            assert f"=={solution.versions[line.name]}" in line.text


def substance(of: Wanted) -> list[tuple[object, ...]]:
    """What must outlive a round: names, extras, markers and the user's own comments."""
    lines = [line for line in of.lines if line.name is None or line.kept or not line.comment.startswith("# via ")]
    parsed = [(line, Requirement(line.text) if line.name else None) for line in lines]
    found = [
        (
            line.name or line.text,
            tuple(sorted(requirement.extras)) if requirement else (),
            str(requirement.marker) if requirement and requirement.marker else "",
            line.comment.partition("# compatcheck: ")[0].strip(),
        )
        for line, requirement in parsed
    ]
    while found and not any(found[-1]):
        found.pop()
    return found


def test_a_project_whose_tables_are_apart_is_edited_all_the_same(tmp_path: Path) -> None:
    text = (
        '[project]\nname = "mine"\n[tool.a]\nx = 1\n[project.optional-dependencies]\nall = ["""torch==2.5.0"""]\n'
        '[tool.b]\ny = 2\n[dependency-groups]\ndev = ["mine[all]"]\n'
    )
    once = rendered(
        "pyproject", read(tmp_path, text, "pyproject.toml"), previous=text, solution=Solution({"torch": "2.5.1"})
    )
    assert once == text.replace('"""torch==2.5.0"""', '"torch==2.5.1"')


def test_a_line_for_elsewhere_stays_though_the_name_is_brought_along_here(tmp_path: Path) -> None:
    line = "colorama==0.4.6 ; sys_platform == 'win32'  # via click"
    solution = Solution({"colorama": "0.4.5"}, {"colorama": ("tqdm",)})
    once = rendered("requirements", read(tmp_path, line + "\n"), solution=solution)
    assert once == f"{line}\n\n# compatcheck: dependencies of the packages above\ncolorama==0.4.5  # via tqdm\n"
    assert rendered("requirements", read(tmp_path, once), solution=solution) == once


def test_a_credential_of_another_line_is_no_leave_to_write_this_one(tmp_path: Path) -> None:
    of = read(tmp_path, "-i https://user:secret@host/simple\n")
    assert "secret" not in rendered("requirements", of, previous="-i https://user:other@host/simple\n")


def test_an_array_that_says_the_same_keeps_its_form(tmp_path: Path) -> None:
    text = '[project]\ndependencies = [ "rich" ,"torch == 2.5.0"  ]\n'
    once = rendered("pyproject", read(tmp_path, text, "pyproject.toml"), solution=Solution({"torch": "2.5.0"}))
    assert once == text


PLAIN = st.lists(
    st.one_of(
        REQUIREMENTS.filter(lambda text: "# compatcheck" not in text),
        st.sampled_from(["", "", "# a comment", "# another", "--pre", "-e git+https://h/x#egg=x"]),
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PLAIN, min_size=2, max_size=3), st.integers(0, 2), st.dictionaries(NAMES, VERSIONS), st.booleans())
def test_a_file_that_is_read_and_written_over_comes_out_the_same_the_next_time(
    files: list[list[str]], written: int, versions: dict[str, str], moved: bool
) -> None:
    solution = Solution({name.lower().replace("_", "-").replace(".", "-"): each for name, each in versions.items()})
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.txt") for number in range(len(files))]
        for path, lines in zip(paths, files):
            path.write_text("\n".join(lines), encoding="utf-8")
        output = paths[written % len(paths)]
        of = wanted.read(list(map(str, paths)), LINUX)
        moving = [name for name, each in solution.versions.items() if moved or of.preferred.get(name, each) != each]
        moves = {name: Move("0.5", ("CC-2024-0001",)) for name in moving}
        once = rendered("requirements", of, moves, solution=solution)
        output.write_text(once, encoding="utf-8")
        again = wanted.read(list(map(str, paths)), LINUX)
        assert rendered("requirements", again, previous=once, solution=solution) == once


def test_an_include_that_is_written_over_is_not_said_twice(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("# the stack\ntorch==2.5.0\n\npeft\n", encoding="utf-8")
    solution = Solution({"torch": "2.5.1", "peft": "0.14.0", "numpy": "1.26.4"}, {"numpy": ("torch",)})
    of = read(tmp_path, "-r base.txt\npeft>=0.1\n# of mine\ntorch==2.5.0\n", "dev.txt")
    once = rendered("requirements", of, {"torch": Move("2.5.0", ("CC-2024-0001",))}, solution=solution)
    assert once.splitlines()[:5] == [
        "# the stack",
        "torch==2.5.1  # compatcheck: CC-2024-0001, was 2.5.0",
        "",
        "peft==0.14.0",
        "# of mine",
    ]
    (tmp_path / "base.txt").write_text(once, encoding="utf-8")
    again = wanted.read([str(tmp_path / "dev.txt")], LINUX)
    assert again.preferred == solution.versions and [line.asked for line in again.lines if line.asked][0] == "torch"
    assert rendered("requirements", again, solution=solution, previous=once) == once


def test_a_new_project_is_one_that_uv_locks(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    write_wheel(wheels, "tiny-a", "1.0", ["tiny-b"])
    write_wheel(wheels, "tiny-b", "2.0")
    solution = Solution({"tiny-a": "1.0", "tiny-b": "2.0"}, {"tiny-b": ("tiny-a",)})
    text = rendered("pyproject", read(tmp_path, "tiny-a\n"), solution=solution)
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    uv("lock", "--project", str(tmp_path), "--find-links", str(wheels))
    locked = tomlkit.parse((tmp_path / "uv.lock").read_text(encoding="utf-8")).unwrap()["package"]
    assert {(each["name"], each["version"]) for each in locked} >= {("tiny-a", "1.0"), ("tiny-b", "2.0")}
    again = wanted.read([str(tmp_path / "pyproject.toml")], LINUX)
    assert rendered("pyproject", again, solution=solution, previous=text) == text


PRIVATE = """\
[project]
name = "mine"
version = "1"
dependencies = ["torch"]

[project.scripts]
token = "mine:main"

[project.optional-dependencies]
docs = ["sphinx"]

[[tool.uv.index]]
url = "https://user:s3cret@host/simple"

[tool.upload]
password = "s3cret"
token = "${TOKEN}"
retries = 3

[[tool.other]]
api-key = "s3cret"
"""


def test_the_secrets_of_other_tables_stay_in_their_file(tmp_path: Path) -> None:
    of, solution = read(tmp_path, PRIVATE, "pyproject.toml"), Solution({"torch": "2.5.1"})
    text = rendered("pyproject", of, solution=solution)
    assert "s3cret" not in text and "https://host/simple" in text and "retries = 3" in text
    assert '"mine:main"' in text and "${TOKEN}" in text
    assert formats.left_out("pyproject", of, None, text) == (
        "tool.upload.password is left out, as it may be a secret",
        "tool.other.0.api-key is left out, as it may be a secret",
        "tool.uv.index.0.url: its credentials are omitted, keep them in a .netrc file or a keyring",
        "project.optional-dependencies.docs is neither resolved nor checked for known faults",
    )
    same = rendered("pyproject", of, solution=solution, previous=PRIVATE)
    assert same == PRIVATE.replace('"torch"', '"torch==2.5.1"')
    assert formats.left_out("pyproject", of, PRIVATE, same) == (
        "project.optional-dependencies.docs is neither resolved nor checked for known faults",
    )
