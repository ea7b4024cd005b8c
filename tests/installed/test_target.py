from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compatcheck.errors import InputError, NothingInspectedError
from compatcheck.installed.distributions import scan
from compatcheck.installed.target import NoEnvironmentError, find_target, own_target

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the trees are laid out as on POSIX")


def lay_venv(prefix: Path, settings: str, python: str = "python3.9") -> Path:
    """A venv as far as files go, whose interpreter would fail if it were started."""
    site = prefix / "lib" / python / "site-packages"
    site.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").write_text("#!/bin/sh\nexit 77\n")
    (prefix / "bin" / "python").chmod(0o755)
    (prefix / "pyvenv.cfg").write_text(settings)
    return site


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    lay_venv(tmp_path / "venv", "home = /opt/base/bin\nversion = 3.9.18\n")
    return tmp_path / "venv"


def test_a_venv_is_read_without_starting_python(venv: Path) -> None:
    target = find_target(str(venv), {})
    assert target == (
        str(venv / "bin" / "python"),
        "3.9.18",
        str(venv),
        (str(venv / "lib/python3.9/site-packages"),),
        "--python",
    )
    assert find_target(str(venv / "bin" / "python"), {}) == target


@pytest.mark.parametrize(
    ("written", "version"),
    [("version_info = 3.9.18.final.0", "3.9.18"), ("version = 3.9.0rc1", "3.9.0rc1"), ("version_info = 3.9", "3.9")],
)
def test_virtualenv_and_uv_write_the_version_their_own_way(tmp_path: Path, written: str, version: str) -> None:
    lay_venv(tmp_path / "v", f"home = /x/bin\n{written}\n")
    assert find_target(str(tmp_path / "v"), {}).version == version


def test_the_active_environment_is_selected(venv: Path, tmp_path: Path) -> None:
    assert find_target(None, {"VIRTUAL_ENV": str(venv), "CONDA_PREFIX": "/x"}).selected_by == "VIRTUAL_ENV"
    conda = tmp_path / "conda"
    site = lay_venv(conda, "", "python3.10")
    (conda / "pyvenv.cfg").unlink()
    (conda / "conda-meta").mkdir()
    (conda / "conda-meta" / "python-3.10.13-h955ad1f_0.json").write_text("{}")
    user = tmp_path / "user/lib/python3.10/site-packages"
    user.mkdir(parents=True)
    target = find_target(None, {"CONDA_PREFIX": str(conda), "PYTHONUSERBASE": str(tmp_path / "user")})
    assert (target.version, target.selected_by) == ("3.10.13", "CONDA_PREFIX")
    assert target.search_path == (str(user), str(site))


def test_our_own_interpreter_is_only_taken_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoEnvironmentError, match=r"no environment is active, and there is no \.venv"):
        find_target(None, {})
    target = own_target({})
    assert target.selected_by == "the interpreter compatcheck runs in"
    assert target.prefix == sys.prefix
    assert target.version == ".".join(map(str, sys.version_info[:3]))
    assert "pytest" in {found.name for found in scan(target).installed}


def test_our_own_prefix_asked_for_by_name_agrees_with_importlib() -> None:
    from importlib.metadata import distributions

    from packaging.utils import canonicalize_name

    target = find_target(sys.prefix, {})
    theirs = {canonicalize_name(each.metadata["Name"]) for each in distributions(path=list(target.search_path))}
    assert {found.name for found in scan(target).installed} == theirs


def test_the_search_path_is_in_import_order(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "lib/python3.9/site-packages").mkdir(parents=True)
    site = lay_venv(tmp_path / "v", f"home = {base}/bin\nversion = 3.9.1\ninclude-system-site-packages = true\n")
    user, given, named, relative = (tmp_path / name for name in ("user", "given", "named", "v/lib/relative"))
    for folder in (user / "lib/python3.9/site-packages", given, named, relative, site / "import this"):
        folder.mkdir(parents=True)
    (site / "x.pth").write_text(
        f"# comment\nimport os; os.abort()\nimport this\n{named}\n/not/there\n../../relative\nimport\tsys\n\0bad\n"
    )
    environ = {"PYTHONPATH": f"{given}{os.pathsep}/not/there", "PYTHONUSERBASE": str(user)}
    assert find_target(str(tmp_path / "v"), environ).search_path == (
        str(given),
        str(site),
        str(named),
        str(relative),
        str(user / "lib/python3.9/site-packages"),
        str(base / "lib/python3.9/site-packages"),
    )


def test_the_user_folder_is_left_out_of_a_venv_and_where_it_is_switched_off(tmp_path: Path, venv: Path) -> None:
    user = tmp_path / "user/lib/python3.9/site-packages"
    user.mkdir(parents=True)
    environ = {"PYTHONUSERBASE": str(tmp_path / "user")}
    assert str(user) not in find_target(str(venv), environ).search_path
    settings = "home = /x/bin\nversion = 3.9.1\ninclude-system-site-packages = true\n"
    (venv / "pyvenv.cfg").write_text(settings)
    assert str(user) in find_target(str(venv), environ).search_path
    assert str(user) not in find_target(str(venv), {**environ, "PYTHONNOUSERSITE": "1"}).search_path


def test_debian_keeps_its_distributions_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from compatcheck.installed import target as _target

    assert _target._site_folders("/usr", "3.11.2")[:2] == [
        "/usr/local/lib/python3.11/dist-packages",
        "/usr/lib/python3/dist-packages",
    ]


def test_windows_keeps_its_distributions_under_lib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from compatcheck.installed import target as _target

    monkeypatch.setattr(_target, "_WINDOWS", True)
    (tmp_path / "Scripts").mkdir()
    (tmp_path / "Scripts" / "python.exe").write_text("")
    (tmp_path / "Lib" / "site-packages").mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text("home = C:\\Python311\nversion = 3.11.7\n")
    target = find_target(str(tmp_path), {})
    assert target.executable == str(tmp_path / "Scripts" / "python.exe")
    assert target.search_path == (str(tmp_path / "Lib" / "site-packages"),)


def test_a_dangling_interpreter_is_told_in_one_line(venv: Path) -> None:
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/opt/gone/python3.9")
    for asked, environ in ((str(venv), {}), (None, {"VIRTUAL_ENV": str(venv)}), (str(venv / "bin/python"), {})):
        with pytest.raises(NothingInspectedError, match="dangling link") as caught:
            find_target(asked, environ)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("asked", ["/not/there", "no-such-python", "9.99", "folder/that/is/not"])
def test_no_such_interpreter(asked: str) -> None:
    with pytest.raises(InputError, match="there is no such interpreter"):
        find_target(asked, dict(os.environ))


def test_a_variable_that_names_nothing(tmp_path: Path) -> None:
    with pytest.raises(NothingInspectedError, match="VIRTUAL_ENV names a folder that does not exist"):
        find_target(None, {"VIRTUAL_ENV": str(tmp_path / "gone")})


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ("exit 3", "ended with status 3"),
        ("echo hello", "does not respond as Python does"),
        ("echo '[1]'", "does not respond as Python does"),
        ("echo broken >&2; exit 1", "status 1: broken"),
        ("sleep 60", "did not answer within"),
    ],
)
def test_an_executable_that_is_no_python(
    tmp_path: Path, script: str, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compatcheck.files.limits.ANSWER_SECONDS", 0.5)
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    with pytest.raises(NothingInspectedError, match=seen) as caught:
        find_target(str(fake), {})
    assert "\n" not in str(caught.value)


def test_another_interpreter_is_asked_without_running_the_users_hooks(tmp_path: Path) -> None:
    """Its site folders hold a ``.pth`` that leaves a mark when Python runs it."""
    prefix = tmp_path / "real"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    mark = tmp_path / "mark"
    site = prefix / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (site / "hook.pth").write_text(f"import pathlib; pathlib.Path({str(mark)!r}).touch()\n")
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\nexec {prefix}/bin/python "$@"\n')
    wrapper.chmod(0o755)
    target = find_target(str(wrapper), {})
    assert not mark.exists()
    assert (target.prefix, target.search_path) == (str(prefix), (str(site),))
    subprocess.run([str(wrapper), "-c", ""], check=True)
    assert mark.exists()


def test_a_name_on_path_and_a_version(tmp_path: Path) -> None:
    site = tmp_path / "lib"
    answer = {"version": "3.12.1", "executable": "/x/python3.12", "prefix": "/x", "folders": [str(site)]}
    site.mkdir()
    (tmp_path / "python3.12").write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    (tmp_path / "python3.12").chmod(0o755)
    environ = {"PATH": str(tmp_path), "PYTHONNOUSERSITE": "1"}
    for asked in ("python3.12", "3.12"):
        assert find_target(asked, environ) == ("/x/python3.12", "3.12.1", "/x", (str(site),), "--python")


@pytest.mark.parametrize("name", [".venv", "venv"])
def test_the_venv_of_the_project_is_found_from_a_folder_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lay_venv(tmp_path / name, "home = /opt/base/bin\nversion = 3.9.18\n")
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path)
    found = find_target(None, {})
    assert (found.prefix, found.selected_by) == (str(tmp_path / name), "found in the project")
    monkeypatch.chdir(tmp_path / "configs")
    assert find_target(None, {}).selected_by == "found in a parent folder"
    assert find_target(None, {}, [str(tmp_path)]).selected_by == "found in the project"


def test_the_venv_of_the_folder_at_hand_comes_before_that_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (".", "a", "a/.venv/x", "../elsewhere"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    lay_venv(tmp_path / "venv", "version = 3.9.1\n")
    lay_venv(tmp_path / "b" / ".venv", "version = 3.9.2\n")
    lay_venv(tmp_path / "b" / "venv", "version = 3.9.3\n")
    monkeypatch.chdir(tmp_path)
    assert find_target(None, {}, ["b"]).version == "3.9.2"
    assert find_target(None, {}, ["b/configs"]).version == "3.9.2"
    assert find_target(None, {}, ["../elsewhere"]).version == "3.9.1"
    assert find_target(None, {"VIRTUAL_ENV": str(tmp_path / "b" / "venv")}, ["b"]).version == "3.9.3"


def test_conda_s_base_counts_after_the_venv_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: Path
) -> None:
    base = tmp_path / "conda"
    lay_venv(base, "", "python3.10")
    (base / "pyvenv.cfg").unlink()
    (base / "conda-meta").mkdir()
    (base / "conda-meta" / "python-3.10.13-h955ad1f_0.json").write_text("{}")
    environ = {"CONDA_PREFIX": str(base), "CONDA_DEFAULT_ENV": "base"}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_target(None, environ).prefix == str(venv)
    assert find_target(None, {**environ, "CONDA_DEFAULT_ENV": "train"}).version == "3.10.13"
    venv.rename(tmp_path / "elsewhere" / "renamed")
    assert find_target(None, environ).selected_by == "CONDA_PREFIX"


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        (None, "the folder has no pyvenv.cfg, so it is not a venv"),
        ("home = /x/bin\n", "pyvenv.cfg has no Python version"),
    ],
)
def test_nothing_is_started_in_a_venv_that_nobody_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str | None, seen: str
) -> None:
    lay_venv(tmp_path / ".venv", settings or "")
    (tmp_path / ".venv" / "bin" / "python").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    if settings is None:
        (tmp_path / ".venv" / "pyvenv.cfg").unlink()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NothingInspectedError, match=seen):
        find_target(None, {})
    assert not (tmp_path / "started").exists()


def test_the_environment_of_a_hook_is_not_the_active_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: Path
) -> None:
    monkeypatch.chdir(venv.parent)
    with pytest.raises(NoEnvironmentError):
        find_target(None, {"VIRTUAL_ENV": "/cache/repo1/py_env-python3.11", "PRE_COMMIT": "1"})
