"""Which interpreter is judged, and where its distributions lie; a venv is read without starting it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from compatcheck.environment import Target
from compatcheck.errors import InputError, NothingInspectedError
from compatcheck.files import limits
from compatcheck.files.reading import open_text
from compatcheck.installed._pth import with_pth_folders
from compatcheck.language import marked

_WINDOWS = os.name == "nt"
_VERSION_ASKED = re.compile(r"\d+(\.\d+){0,2}t?\Z")
_LIBRARY_FOLDER = re.compile(r"(?:python|pypy)(\d+\.\d+)t?\Z")
_ACTIVATED = ("VIRTUAL_ENV", "CONDA_PREFIX")
_VENVS = (".venv", "venv")
_DOING = "selecting the interpreter"
_FOUND = marked("found in the project")
_FOUND_ABOVE = marked("found in a parent folder")
_NONE = marked("no environment is active, and there is no .venv")
_GIVE = marked("activate an environment, or pass one with --python")


class NoEnvironmentError(NothingInspectedError):
    """No environment is named, active or found."""


def find_target(python: str | None, environ: Mapping[str, str], folders: Sequence[str] = (os.curdir,)) -> Target:
    """The interpreter to judge: ``python``, else the active venv or conda environment, else the venv of the project.

    That venv is found as uv does: in the working directory and its parents, before these in ``folders`` and their
    parents; it is read, not started. Our own interpreter counts only where one of these leads to it.

    Raises `InputError` where what was asked for is no interpreter, `NoEnvironmentError` where there is none, and
    `NothingInspectedError` where the selected environment is broken.
    """
    if python:
        return _named_target(python, environ)
    variable = _active(environ)
    if variable and not _is_base(variable, environ):
        return _prefix_target(os.path.abspath(environ[variable]), environ, variable)
    venv = None if _is_of_a_hook(environ) else _find_venv(folders)
    if venv:
        near = os.path.dirname(venv) in map(os.path.abspath, folders)
        return _found_target(venv, environ, _FOUND if near else _FOUND_ABOVE)
    if variable:
        return _prefix_target(os.path.abspath(environ[variable]), environ, variable)
    raise NoEnvironmentError(_DOING, os.path.abspath(folders[0] if folders else os.curdir), _NONE, _GIVE)


def own_target(environ: Mapping[str, str]) -> Target:
    """The interpreter that compatcheck runs in."""
    return _ourselves(environ, marked("the interpreter compatcheck runs in"))


def is_active(environ: Mapping[str, str]) -> bool:
    """Whether somebody has activated an environment; the one that pre-commit makes for a hook does not count."""
    return _active(environ) is not None


def _active(environ: Mapping[str, str]) -> str | None:
    """The variable that names the active environment."""
    variables = _ACTIVATED[1:] if _is_of_a_hook(environ) else _ACTIVATED
    return next((variable for variable in variables if environ.get(variable)), None)


def _is_of_a_hook(environ: Mapping[str, str]) -> bool:
    """Whether the active venv is the one that pre-commit makes for a hook.

    https://pre-commit.com/#python: it is named ``py_env-`` and its Python, and ``PRE_COMMIT`` is set while hooks run.
    """
    name = os.path.basename(environ.get("VIRTUAL_ENV", "").rstrip("/\\"))
    return name.startswith("py_env-") and bool(environ.get("PRE_COMMIT"))


def _is_base(variable: str, environ: Mapping[str, str]) -> bool:
    """Whether conda's base environment is active, as it is in every shell; a venv of the project counts before it."""
    return variable == "CONDA_PREFIX" and environ.get("CONDA_DEFAULT_ENV") in ("base", "root")


def _find_venv(folders: Sequence[str]) -> str | None:
    """The nearest venv at or above the folders, then at or above the working directory.

    A folder ``.venv`` counts even if it is broken, ``venv`` only with a ``pyvenv.cfg``.
    """
    here = _with_parents(os.getcwd())
    above = [each for folder in folders for each in _with_parents(os.path.abspath(folder)) if each not in here]
    for folder in (*above, *here):
        for name in _VENVS:
            venv = os.path.join(folder, name)
            is_meant = os.path.isdir(venv) if name == ".venv" else os.path.isfile(os.path.join(venv, "pyvenv.cfg"))
            if is_meant:
                return venv
    return None


def _with_parents(folder: str) -> list[str]:
    folders = [folder]
    while os.path.dirname(folders[-1]) != folders[-1]:
        folders.append(os.path.dirname(folders[-1]))
    return folders


def _found_target(venv: str, environ: Mapping[str, str], selected_by: str) -> Target:
    """The target of a venv that nobody named, which must therefore be readable without starting anything in it."""
    advice = "recreate it, or pass another environment with --python"
    if not os.path.isfile(os.path.join(venv, "pyvenv.cfg")) and not _conda_version(venv):
        raise NothingInspectedError(_DOING, venv, "the folder has no pyvenv.cfg, so it is not a venv", advice)
    if not _conda_version(venv) and not _venv_version(venv):
        raise NothingInspectedError(_DOING, venv, "pyvenv.cfg has no Python version", advice)
    return _prefix_target(venv, environ, selected_by)


def _named_target(python: str, environ: Mapping[str, str]) -> Target:
    path = os.path.abspath(os.path.expanduser(python))
    if os.path.isdir(path):
        return _prefix_target(path, environ, "--python")
    if not os.path.isfile(path) or _VERSION_ASKED.match(python):
        if os.path.islink(path):
            raise NothingInspectedError(_DOING, path, "this is a dangling link", "recreate the environment")
        path = _on_path(python, environ)
    prefix = os.path.dirname(os.path.dirname(path))
    if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
        return _prefix_target(prefix, environ, "--python", path)
    return _executable_target(path, environ, "--python")


def _on_path(python: str, environ: Mapping[str, str]) -> str:
    import shutil

    name = f"python{python}" if _VERSION_ASKED.match(python) else python
    separators = [os.sep, os.altsep] if os.altsep else [os.sep]
    found = None
    if not any(separator in name for separator in separators):
        found = shutil.which(name, path=environ.get("PATH", os.defpath))
    if found is None:
        advice = "pass an executable, a venv folder, a name on PATH or a version such as 3.11"
        raise InputError(_DOING, python, "there is no such interpreter", advice)
    return os.path.abspath(found)


def _prefix_target(prefix: str, environ: Mapping[str, str], selected_by: str, executable: str = "") -> Target:
    """The target of a folder: a venv, a conda environment or an installation of Python."""
    if not os.path.isdir(prefix):
        raise NothingInspectedError(
            _DOING, prefix, f"{selected_by} names a folder that does not exist", "activate an environment that exists"
        )
    if os.path.realpath(prefix) == os.path.realpath(sys.prefix):
        return _ourselves(environ, selected_by)
    executable = executable or _executable_in(prefix)
    if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
        return _venv_target(prefix, executable, environ, selected_by)
    version = _conda_version(prefix)
    if version:
        folders = _site_folders(prefix, version)
        user = _user_folders(version, environ)
        return _target(executable, version, prefix, folders, user, environ, selected_by)
    return _executable_target(executable, environ, selected_by)


def _executable_in(prefix: str) -> str:
    names = ("Scripts/python.exe", "python.exe") if _WINDOWS else ("bin/python", "bin/python3")
    paths = [os.path.join(prefix, *name.split("/")) for name in names]
    for path in paths:
        if os.path.isfile(path):
            return path
    dangling = any(map(os.path.islink, paths))
    seen = "the interpreter is a dangling link" if dangling else "there is no interpreter in the environment"
    raise NothingInspectedError(_DOING, prefix, seen, "recreate the environment or pass another with --python")


def _venv_target(prefix: str, executable: str, environ: Mapping[str, str], selected_by: str) -> Target:
    settings = _settings(os.path.join(prefix, "pyvenv.cfg"))
    version = _venv_version(prefix)
    if not version:
        return _executable_target(executable, environ, selected_by)
    folders = _site_folders(prefix, version)
    later: list[str] = []
    if settings.get("include-system-site-packages", "").lower() == "true":
        base = os.path.dirname(settings.get("home", "")) or prefix
        later = [*_user_folders(version, environ), *_site_folders(base, version)]
    return _target(executable, version, prefix, [*folders, *later], [], environ, selected_by)


def _venv_version(prefix: str) -> str:
    settings = _settings(os.path.join(prefix, "pyvenv.cfg"))
    return _plain(settings.get("version") or settings.get("version_info") or "")


def _settings(path: str) -> dict[str, str]:
    """The keys of a ``pyvenv.cfg``, in lower case."""
    try:
        with open_text(path, encoding="utf-8-sig") as stream:
            pairs = (line.partition("=") for line in stream.read(limits.HEAD_BYTES).splitlines())
    except OSError as error:
        raise NothingInspectedError(
            "reading", path, str(error.strerror or error), "make it readable or pass another with --python"
        ) from None
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


_VERSION = re.compile(
    r"(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)(?!\d)(?:\.?(a|alpha|b|beta|c|rc|candidate)\.?(\d{1,3}))?", re.ASCII
)


def _plain(version: str) -> str:
    """``3.11.7.final.0``, as virtualenv writes it, becomes ``3.11.7``."""
    match = _VERSION.match(version)
    if not match:
        return ""
    short = {"alpha": "a", "beta": "b", "c": "rc", "candidate": "rc"}
    stage = match[2] or ""
    return match[1] + (short.get(stage, stage) + match[3] if stage else "")


def _conda_version(prefix: str) -> str:
    """The Python of a conda environment, from the name of its package record."""
    try:
        names = os.listdir(os.path.join(prefix, "conda-meta"))
    except OSError:
        return ""
    for name in names:
        match = re.match(r"python-(\d+\.\d+\.\d+\w*)-.*\.json\Z", name)
        if match:
            return match[1]
    return ""


def _site_folders(prefix: str, version: str) -> list[str]:
    """The site folders of one prefix as Windows, POSIX and Debian lay them out; no linked ``lib64``."""
    if _WINDOWS:
        return [os.path.join(prefix, "Lib", "site-packages")]
    short = ".".join(version.split(".")[:2])
    folders = [
        os.path.join(prefix, library, name, "site-packages")
        for library in ("lib", "lib64")
        if not os.path.islink(os.path.join(prefix, library))
        for name in _library_names(os.path.join(prefix, library), short)
    ]
    if prefix == "/usr":
        folders = [f"/usr/local/lib/python{short}/dist-packages", "/usr/lib/python3/dist-packages", *folders]
    return folders


def _library_names(folder: str, short: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    matches = (_LIBRARY_FOLDER.match(name) for name in names)
    return sorted(match.string for match in matches if match and match[1] == short)


def _user_folders(version: str, environ: Mapping[str, str]) -> list[str]:
    if environ.get("PYTHONNOUSERSITE"):
        return []
    major, minor = version.split(".")[:2]
    if _WINDOWS:
        base = environ.get("PYTHONUSERBASE") or os.path.join(environ.get("APPDATA", ""), "Python")
        return [os.path.join(base, f"Python{major}{minor}", "site-packages")]
    home = environ.get("HOME") or os.path.expanduser("~")
    base = environ.get("PYTHONUSERBASE") or os.path.join(home, ".local")
    folders = [os.path.join(base, "lib", f"python{major}.{minor}", "site-packages")]
    if sys.platform == "darwin":
        library = os.path.join(home, "Library", "Python", f"{major}.{minor}", "lib", "python")
        folders.append(os.path.join(library, "site-packages"))
    return folders


def _ourselves(environ: Mapping[str, str], selected_by: str) -> Target:
    import site

    version = _plain(sys.version.split()[0])
    user = _user_folders(version, environ) if site.ENABLE_USER_SITE else []
    folders = site.getsitepackages()
    if sys.prefix != sys.base_prefix:
        own = [folder for folder in folders if folder.startswith(sys.prefix + os.sep)]
        user = [*own, *user]
    return _target(sys.executable, version, sys.prefix, folders, user, environ, selected_by)


def _executable_target(executable: str, environ: Mapping[str, str], selected_by: str) -> Target:
    """An interpreter that no file describes: it is asked, and what stands behind a wrapper is the target."""
    from compatcheck.installed._interpreter import describe

    said = describe(executable)
    behind = os.path.dirname(os.path.dirname(said.executable))
    if os.path.isfile(os.path.join(behind, "pyvenv.cfg")):
        return _prefix_target(behind, environ, selected_by, said.executable)
    if os.path.realpath(said.prefix) == os.path.realpath(sys.prefix):
        return _ourselves(environ, selected_by)
    user = _user_folders(said.version, environ)
    return _target(said.executable, said.version, said.prefix, said.site_folders, user, environ, selected_by)


def _target(
    executable: str,
    version: str,
    prefix: str,
    folders: Iterable[str],
    earlier: Iterable[str],
    environ: Mapping[str, str],
    selected_by: str,
) -> Target:
    """The folders in Python's own order: PYTHONPATH, then each site folder and what its ``.pth`` add."""
    given = [os.path.abspath(part) for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    on_path = dict.fromkeys(folder for folder in given if os.path.isdir(folder))
    on_path.update(dict.fromkeys(with_pth_folders([*earlier, *folders])))
    return Target(executable, version, prefix, tuple(on_path), selected_by)
