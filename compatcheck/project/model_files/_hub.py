"""From what a user calls a model to a folder on this machine: a path, or a hub id looked up in the local caches."""

from __future__ import annotations

import os
import re
from typing import NoReturn

from compatcheck.errors import InputError
from compatcheck.files.reading import open_text

_DOING = "looking for the model"
_ID = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?\Z")


def find_folder(model: str, online: bool = False) -> str:
    """The folder of a model: a local one, or the cached snapshot of ``org/name`` or ``org/name@revision``.

    With ``online`` the small files of a hub id are brought into the Hugging Face cache first; weights never are.
    Raises `InputError` where there is no such model here, or the hub cannot be asked.
    """
    if os.path.isdir(model):
        return model
    named = _ID.match(model)
    if os.path.lexists(model) or named is None or ".." in model:
        seen = "this is not a folder" if os.path.lexists(model) else "there is no such folder, and it is not a hub id"
        raise InputError(_DOING, model, seen, "pass a model folder, or org/name or org/name@revision")
    name, revision = named[1], named[2]
    if online:
        from compatcheck.project.model_files import _download

        return _download.fetch(name, revision, _home(), os.path.dirname(_snapshots(name)))
    found = _find_in_huggingface_cache(name, revision) or (None if revision else _find_in_modelscope_cache(name))
    if found is None:
        _tell_missing(name, revision)
    return found


def _find_in_huggingface_cache(name: str, revision: str | None) -> str | None:
    """The snapshot's folder. Without a revision that of ``main``, or the only one there is."""
    known = _commit(name, revision or "main")
    if os.path.isfile(os.path.join(_snapshots(name), known, "config.json")):
        return os.path.join(_snapshots(name), known)
    revisions = _revisions(name)
    if revision is None and len(revisions) == 1:
        return os.path.join(_snapshots(name), revisions[0])
    matching = [each for each in revisions if revision and len(revision) >= 7 and each.startswith(revision)]
    return os.path.join(_snapshots(name), matching[0]) if len(matching) == 1 else None


def _commit(name: str, revision: str) -> str:
    """The commit of a branch or a tag, as the cache has it; any other revision as it is."""
    try:
        with open_text(os.path.join(os.path.dirname(_snapshots(name)), "refs", revision)) as stream:
            return stream.read(64).strip()
    except (OSError, ValueError):
        return revision


def _snapshots(name: str) -> str:
    hub = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(_home(), "hub")
    return os.path.join(os.path.expandvars(os.path.expanduser(hub)), f"models--{name.replace('/', '--')}", "snapshots")


def _home() -> str:
    """https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    return os.path.expanduser(os.environ.get("HF_HOME") or os.path.join(cache, "huggingface"))


def _revisions(name: str) -> list[str]:
    try:
        return sorted(os.listdir(_snapshots(name)))
    except OSError:
        return []


def _find_in_modelscope_cache(name: str) -> str | None:
    """https://github.com/modelscope/modelscope: a dot in a name is written as three underscores."""
    root = os.environ.get("MODELSCOPE_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "modelscope")
    for part in (os.path.join("hub", "models"), "models", "hub"):
        folder = os.path.join(root, part, *name.replace(".", "___").split("/"))
        if os.path.isfile(os.path.join(folder, "config.json")):
            return folder
    return None


def _tell_missing(name: str, revision: str | None) -> NoReturn:
    wanted = f"{name}@{revision}" if revision else name
    revisions = _revisions(name)
    if revisions:
        seen = (
            f"the Hugging Face cache holds {len(revisions)} other revisions of the model: {', '.join(revisions)[:200]}"
        )
        raise InputError(_DOING, wanted, seen, "choose one of these revisions, or pass --online")
    seen = f"the model is not in the Hugging Face cache {os.path.dirname(os.path.dirname(_snapshots(name)))}"
    raise InputError(_DOING, wanted, seen, "pass the folder of the model, or --online to fetch its small files")
