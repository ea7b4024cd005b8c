"""Which distributions of a resolution come from this machine's own folders, so that building them runs their code."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from compatcheck.advice.model import Line, Wanted
from compatcheck.advice.requirement_text import expanded
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import read_text
from compatcheck.packages.names import normalised

EVERYTHING = ":all:"
"""uv's word for every distribution."""
_FOLLOWED = {
    *("sources", "workspace", "pip", "index", "index-url", "extra-index-url", "find-links"),
    *("override-dependencies", "constraint-dependencies", "dev-dependencies"),
}
"""Settings of uv that may name local code, which is looked for here."""
_HARMLESS = {
    *(
        "managed",
        "package",
        "default-groups",
        "dependency-groups",
        "environments",
        "required-environments",
        "conflicts",
    ),
    *("build-backend", "exclude-dependencies", "dependency-metadata", "required-version", "cache-dir", "cache-keys"),
    *("no-cache", "offline", "no-index", "no-sources", "no-sources-package", "index-strategy", "keyring-provider"),
    *("resolution", "prerelease", "fork-strategy", "exclude-newer", "exclude-newer-package", "torch-backend"),
    *("no-binary", "no-binary-package", "no-build", "no-build-package", "only-binary", "link-mode", "compile-bytecode"),
    *("upgrade", "upgrade-package", "reinstall", "reinstall-package", "native-tls", "system-certs", "preview"),
    *("allow-insecure-host", "concurrent-builds", "concurrent-downloads", "concurrent-installs", "http-proxy"),
    *("https-proxy", "no-proxy", "python-preference", "python-downloads", "publish-url", "trusted-publishing"),
    *("check-url", "add-bounds", "extra", "all-extras", "no-extra", "group", "no-deps", "allow-empty-requirements"),
    *("strict", "no-strip-extras", "no-strip-markers", "no-annotate", "no-header", "custom-compile-command"),
    *("generate-hashes", "python-version", "python-platform", "universal", "no-emit-package", "emit-index-url"),
    *("emit-find-links", "emit-build-options", "emit-marker-expression", "emit-index-annotation", "annotation-style"),
    *("require-hashes", "verify-hashes", "python"),
}
"""Settings that neither name local code nor say where uv writes what it installs. Any other, such as
``extra-build-variables`` or one that a later uv brings, may do so."""
_INDEX_OPTION = re.compile(r"(-f|-i|--find-links|--index-url|--extra-index-url)[\s=]*(\S+)")
_INCLUDE_OPTION = re.compile(r"-r|-c|--requirement|--constraint")
_DIRECT = re.compile(r"\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*@\s*([^\s;]+)")
_PUBLIC_INDEX = re.compile(
    r"https://(?:pypi\.org|download\.pytorch\.org|pypi\.nvidia\.com|pypi\.tuna\.tsinghua\.edu\.cn|mirrors\.aliyun\.com"
    r"|mirrors\.cloud\.tencent\.com|repo\.huaweicloud\.com|(?:pypi\.)?mirrors\.ustc\.edu\.cn)(?:/|\Z)"
)
"""An index that names no file of this machine. The page of another may."""
_SOURCE = re.compile(r"(?i)(?:git|hg|svn|bzr)\+|[^?#]*\.(?:tar(?:\.\w+)?|tgz|tbz|txz|tlz|zip)(?:[?#]|\Z)")
"""What a remote link leads to that is built itself. Any other may be a wheel, which may require a local file."""
_REMOTE = re.compile(r"(?i)(?:(?:git|hg|svn|bzr)\+)?(?:https?|ssh)://")


def local_names(wanted: Wanted) -> set[str]:
    """Names whose code is on this machine: in projects, archives, repositories and folders of archives.

    They come from the requirements, the constraints and, as uv reads them, from the ``[tool.uv]`` and ``uv.toml`` of
    the working directory, of each local project, and of the folders above. Only an address of the network is remote.
    `EVERYTHING` stands for what may bring any name: a setting or a file that is not understood, a list at an address,
    an index with folders, a wheel that is named by its place, an index or a page of links of the network that is not a
    well-known one, as its links may lead to this machine, and more than `limits.FOLDER_ENTRIES` folders.
    """
    names: set[str] = set()
    waiting = [os.getcwd()]
    for line in wanted.lines:
        asked = line.asked or line.text
        if line.folder or is_archive(line):
            names.update([line.name] if line.name else _first_words(os.path.basename(asked)))
            waiting += [line.folder] if line.folder else []
        if line.asked and (_place(line.asked).endswith(".whl") or _is_remote_wheel(_target(line.asked))):
            names.add(EVERYTHING)
        if option := _INDEX_OPTION.match(asked):
            names.update(_archives(option[2].strip("\"'"), os.getcwd(), is_flat=option[1] in ("-f", "--find-links")))
        waiting += [os.path.dirname(os.path.abspath(line.at.file))] if line.at else []
    for text in (*(line.asked or line.text for line in wanted.lines), *wanted.constraints):
        found, folders = _direct(text, os.getcwd())
        names.update(found)
        names.update([EVERYTHING] if _INCLUDE_OPTION.match(text) else [])
        waiting += folders
    seen: set[str] = set()
    while waiting:
        if len(seen) >= limits.FOLDER_ENTRIES:
            return {EVERYTHING}
        for folder in _with_parents(waiting.pop()):
            if folder in seen:
                break
            seen.add(folder)
            for document, settings in _documents(folder):
                found, folders = _names(document, settings, folder)
                names.update(found)
                waiting += folders
    return names


def require_known_settings() -> None:
    """Raise InputError where a setting of uv that came with the working directory may steer an installation."""
    for folder in _with_parents(os.getcwd()):
        for _, settings in _documents(folder):
            for name in _unknown_settings(settings):
                seen = f"its setting {name} in {folder} may run local code or write elsewhere"
                raise InputError("installing with", "uv", seen, "remove the setting, or work in another folder")


def _unknown_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    for prefix, table in (("", settings), ("pip.", _table(settings, "pip"))):
        yield from (prefix + name for name in table if name not in _FOLLOWED | _HARMLESS)


def is_archive(line: Line) -> bool:
    """Whether a line without a name in front is a file of this machine that is no wheel."""
    asked = line.asked or ""
    place = _place(asked)
    is_path = (os.path.isabs(place) and not asked.startswith("-e ")) or "file:" in place.lower()
    return is_path and not line.folder and not place.endswith(".whl")


def _place(asked: str) -> str:
    """What a requirement is taken from on this machine, without its name, marker and fragment; empty for an option."""
    if asked.startswith("-") and not asked.startswith("-e "):
        return ""
    place = _target(asked)
    return "" if _is_remote(place) else place.partition("#")[0].strip()


def _target(asked: str) -> str:
    direct = _DIRECT.match(asked)
    return direct[2] if direct else asked.removeprefix("-e ").partition(" ;")[0]


def _is_remote_wheel(place: str) -> bool:
    return _is_remote(place) and not _SOURCE.match(expanded(place))


def _is_remote(place: str) -> bool:
    return _REMOTE.match(expanded(place)) is not None


def _with_parents(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _documents(folder: str) -> Iterator[tuple[Mapping[str, Any] | None, Mapping[str, Any]]]:
    """Each file of a folder that configures uv: the whole of it, None where it cannot be read, and its settings."""
    from compatcheck.files.toml_text import TOMLDecodeError, parse_toml

    for name in ("pyproject.toml", "uv.toml"):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            try:
                document = parse_toml(read_text(path))
            except (InputError, TOMLDecodeError, RecursionError):
                yield None, {}
                continue
            yield document, document if name == "uv.toml" else _table(_table(document, "tool"), "uv")


def _names(document: Mapping[str, Any] | None, settings: Mapping[str, Any], folder: str) -> tuple[set[str], list[str]]:
    """The names that a file takes from this machine, and the folders of local projects that it names."""
    if document is None or any(_unknown_settings(settings)):
        return {EVERYTHING}, []
    names: set[str] = set()
    folders: list[str] = []
    for name, given in _table(settings, "sources").items():
        for each in _mappings(given):
            if path := each.get("path"):
                names.add(EVERYTHING if str(path).endswith(".whl") else normalised(name))
                folders.append(os.path.normpath(os.path.join(folder, str(path))))
            elif "workspace" in each or not _is_remote(str(each.get("url", each.get("git", "https://")))):
                names.add(normalised(name))
            elif "url" in each and _is_remote_wheel(str(each["url"])):
                names.add(EVERYTHING)
    project = _table(document, "project")
    stated = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    stated += _table(document, "dependency-groups").values()
    stated += [settings.get(f"{kind}-dependencies") for kind in ("override", "constraint", "dev")]
    for requirements in stated:
        for requirement in requirements if isinstance(requirements, list) else ():
            found, paths = _direct(requirement, folder) if isinstance(requirement, str) else ((), [])
            names.update(found)
            folders += paths
    for table in (settings, _table(settings, "pip")):
        names.update(_of_indexes(table, folder))
    members = _table(settings, "workspace").get("members")
    for pattern in members if isinstance(members, list) else ():
        if glob.has_magic(os.path.dirname(str(pattern))) or "**" in str(pattern):
            names.add(EVERYTHING)
        else:
            folders += map(os.path.normpath, glob.iglob(os.path.join(folder, str(pattern))))
    return names, folders


def _direct(text: str, folder: str) -> tuple[set[str], list[str]]:
    """The name of a requirement that is taken from a place on this machine, and the folder of that project."""
    match = _DIRECT.match(text)
    if match is None or _is_remote(match[2]):
        return ({EVERYTHING} if match and _is_remote_wheel(match[2]) else set()), []
    place = expanded(match[2]).partition("#")[0]
    if place.endswith(".whl"):
        return {EVERYTHING}, []
    return {normalised(match[1])}, [os.path.normpath(os.path.join(folder, _path(place)))]


def _path(place: str) -> str:
    """The path of an address of a file, or the path as it is."""
    bare = place.partition("+")[2] if "+file:" in place.lower() else place
    return unquote(bare[5:].removeprefix("//").removeprefix("localhost")) if bare.lower().startswith("file:") else bare


def _of_indexes(table: Mapping[str, Any], folder: str) -> Iterator[str]:
    for key in ("find-links", "index-url", "extra-index-url"):
        given = table.get(key)
        for place in given if isinstance(given, list) else [given]:
            if isinstance(place, str):
                yield from _archives(place, folder, is_flat=key == "find-links")
    for index in _mappings(table.get("index")):
        yield from _archives(str(index.get("url", "https://pypi.org")), folder, is_flat=index.get("format") == "flat")


def _archives(place: str, folder: str, *, is_flat: bool) -> Iterator[str]:
    """The names of what an index may build from this machine; none for a well-known one.

    The pages of an index that is not flat are in folders, and may name any file. So may those of the network.
    """
    if _is_remote(place):
        if not _PUBLIC_INDEX.match(expanded(place)):
            yield EVERYTHING
        return
    try:
        with os.scandir(os.path.join(folder, _path(expanded(place)))) as entries:
            for entry in entries:
                if entry.is_dir() and not is_flat:
                    yield EVERYTHING
                elif not entry.name.endswith(".whl"):
                    yield from _first_words(entry.name)
    except (OSError, ValueError):
        yield EVERYTHING


def _first_words(file: str) -> Iterator[str]:
    """Every name that the file of an archive may have, as its version may be written in many ways."""
    words = file.split("-")
    yield from (normalised("-".join(words[:count])) for count in range(1, len(words)))


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Mapping)]
