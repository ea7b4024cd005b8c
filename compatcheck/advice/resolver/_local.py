"""Which distributions of a resolution come from this machine's own folders, so that building them runs their code."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from compatcheck.advice.model import Line
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
_INDEX_OPTION = re.compile(r"(?:-f|-i|--find-links|--index-url|--extra-index-url)[\s=]*(\S+)")
_ARCHIVE = re.compile(r"(.+?)-\d[^/-]*\.(?:tar(?:\.\w+)?|tgz|tbz|txz|zip)")
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)")


def local_names(lines: Iterable[Line]) -> set[str]:
    """Names whose code lies here: in projects, archives, repositories and folders of archives.

    Those come from the lines and, as uv reads them, from the ``[tool.uv]`` and ``uv.toml`` of the working directory,
    of each local project, and of the folders above; a setting that may name local code in another way stands for
    `EVERYTHING`. Folders are followed up to `limits.FOLDER_ENTRIES`.
    """
    names: set[str] = set()
    waiting = [*_with_parents(os.getcwd())]
    for line in lines:
        asked = line.asked or line.text
        if line.name and (line.folder or _is_local(asked) or is_archive(line)):
            names.add(line.name)
        if is_archive(line) and (match := _ARCHIVE.fullmatch(os.path.basename(asked))):
            names.add(normalised(match[1]))
        if option := _INDEX_OPTION.match(asked):
            names.update(_archives(option[1].strip("\"'"), os.getcwd()))
        waiting += [line.folder] if line.folder else []
        waiting += [os.path.dirname(os.path.abspath(line.at.file))] if line.at else []
    seen: set[str] = set()
    while waiting and len(seen) < limits.FOLDER_ENTRIES:
        folder = waiting.pop()
        if folder not in seen:
            seen.add(folder)
            for document, settings in _documents(folder):
                names.update(_names(document, settings, folder))
                names.update(EVERYTHING for _ in _unknown_settings(settings))
                waiting += _folders(settings, folder)
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
    """Whether a line asks for a file of this machine that is no wheel, by its path."""
    return bool(line.asked) and os.path.isabs(line.asked or "") and ".whl" not in (line.asked or "")


def _is_local(place: object) -> bool:
    return isinstance(place, str) and "file:" in place.lower()


def _with_parents(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _documents(folder: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each file of a folder that configures uv: the whole of it, and its settings for uv."""
    from compatcheck.files.toml_text import TOMLDecodeError, parse_toml

    for name in ("pyproject.toml", "uv.toml"):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            try:
                document = parse_toml(read_text(path))
            except (InputError, TOMLDecodeError, RecursionError):
                continue
            yield document, document if name == "uv.toml" else _table(_table(document, "tool"), "uv")


def _names(document: Mapping[str, Any], settings: Mapping[str, Any], folder: str) -> Iterator[str]:
    for name, given in _table(settings, "sources").items():
        if any("path" in each or "workspace" in each or _is_local(str(each)) for each in _mappings(given)):
            yield normalised(name)
    project = _table(document, "project")
    stated = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    stated += _table(document, "dependency-groups").values()
    stated += [settings.get(f"{kind}-dependencies") for kind in ("override", "constraint", "dev")]
    for each in stated:
        for requirement in each if isinstance(each, list) else ():
            if _is_local(requirement) and (match := _NAME.match(requirement)):
                yield normalised(match[1])
    for table in (settings, _table(settings, "pip")):
        places = [table.get(key) for key in ("find-links", "index-url", "extra-index-url")]
        places += [each.get("url") for each in _mappings(table.get("index"))]
        for place in places:
            for each in place if isinstance(place, list) else [place]:
                if isinstance(each, str):
                    yield from _archives(each, folder)


def _folders(settings: Mapping[str, Any], folder: str) -> Iterator[str]:
    """The local projects that settings name."""
    for given in _table(settings, "sources").values():
        for each in _mappings(given):
            if isinstance(each.get("path"), str):
                yield os.path.normpath(os.path.join(folder, each["path"]))
    members = _table(settings, "workspace").get("members")
    for pattern in members if isinstance(members, list) else ():
        if isinstance(pattern, str):
            yield from (os.path.normpath(each) for each in glob.iglob(os.path.join(folder, pattern)))


def _archives(place: str, folder: str) -> Iterator[str]:
    """The names of the source archives in a folder that serves as an index; none for an address of the network."""
    path = unquote(urlsplit(place).path) if place.lower().startswith("file:") else place
    if "://" in path:
        return
    try:
        with os.scandir(os.path.join(folder, path)) as entries:
            for entry in entries:
                if match := _ARCHIVE.fullmatch(entry.name):
                    yield normalised(match[1])
    except (OSError, ValueError):
        return


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Mapping)]
