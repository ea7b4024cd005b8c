"""One model by its folder or hub id: the facts of its files, its configuration, and what changed from another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment
from compatcheck.files.json_text import read_json_object
from compatcheck.project import model_files
from compatcheck.project.model_files import _hub, _revisions


def read_model(model: str, *, online: bool = False, weights: bool = False) -> Environment:
    """What the files of one model say: a folder, or a hub id that is in a local cache or, ``online``, on the hub."""
    return model_files.read(_hub.find_folder(model, online), weights)


def model_config(model: str) -> tuple[dict[str, object], str | None]:
    """The configuration of a model, and its absolute folder: that, a ``config.json`` alone, or a hub id in a cache.

    Raises `InputError` where it cannot be read, is too large, or is no JSON object.
    """
    if os.path.isfile(model):
        return read_json_object(model), None
    folder = os.path.abspath(_hub.find_folder(model))
    return read_json_object(os.path.join(folder, "config.json")), folder


def compare_models(old: str, new: str, *, online: bool = False, weights: bool = False) -> Mapping[str, Any]:
    """What changed from one model, folder or hub id, to another; see `_revisions.compare`."""
    return _revisions.compare(_hub.find_folder(old, online), _hub.find_folder(new, online), weights)
