"""``environment.yml`` of conda, with its ``pip:`` section.

Format: https://docs.conda.io/projects/conda/en/latest/user-guide/tasks/manage-environments.html#creating-an-environment-file-manually
"""

from __future__ import annotations

import os

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_bytes
from compatcheck.project.requirements._asked import Asked, is_public_index, label_of_index, requests, with_label
from compatcheck.project.requirements._conda import CondaPackage, facts_of_conda, package_of, python_of
from compatcheck.project.requirements._markers import Place
from compatcheck.project.requirements._yaml import items, line_of, mapping, read_yaml
from compatcheck.project.requirements.formats import requirements_txt

TITLE = "a conda environment.yml"


def recognises(path: str) -> bool:
    """By name, or by content where another name ends as YAML does."""
    stem, ending = os.path.splitext(os.path.basename(path).lower())
    if ending not in (".yml", ".yaml"):
        return False
    if stem.startswith("environment") or stem.endswith("environment"):
        return _looks_like_one(path)
    return "env" in stem and _looks_like_one(path)


def _looks_like_one(path: str) -> bool:
    try:
        with open_bytes(path) as stream:
            head = stream.read(limits.HEAD_BYTES)
    except OSError:
        return False
    lines = [line.rstrip() for line in head.splitlines()]
    return b"dependencies:" in lines and not any(line.startswith((b"package:", b"metadata:")) for line in lines)


def read(path: str, python: str | None = None) -> Environment:
    """Python, distributions and CUDA of the file. Raises `InputError` where it is not what conda reads."""
    value = read_yaml(path)
    listed = value.get("dependencies")
    if not isinstance(listed, list):
        raise InputError("reading", path, "the dependencies are not a list", "write one package per line, after a dash")
    packages: list[CondaPackage] = []
    lines: list[tuple[str, Location]] = []
    for each in listed:
        at = Location(path, line_of(each))
        if isinstance(each, str):
            package = package_of(each, at)
            packages += [package] if package else []
        else:
            lines += [(str(line), Location(path, line_of(line))) for line in items(mapping(each).get("pip"))]
    asked = _pip_requirements(lines, path, Place(python_of(packages) or python))
    facts = facts_of_conda(packages, asked)
    return facts.with_fact("requirements", requests(path, asked)) if asked else facts


def _pip_requirements(lines: list[tuple[str, Location]], path: str, place: Place) -> list[Asked]:
    """The requirements of the pip section; files it includes are read."""
    asked: list[Asked] = []
    label = None
    elsewhere = False
    for line, at in lines:
        text = line.strip()
        indexes = requirements_txt.indexes_in(text)
        label = label or next(map(label_of_index, indexes), None)
        elsewhere = elsewhere or not all(map(is_public_index, indexes))
        included = requirements_txt.included(text)
        if included and not included.constraint:
            asked += requirements_txt.asked_in(os.path.join(os.path.dirname(path), included.path), place)[0]
        elif not text.startswith("-") or text.startswith(("-e", "--editable")):
            found = requirements_txt.parsed(text, at, place)
            asked += [found] if found else []
    return [with_label(each, label)._replace(elsewhere=elsewhere or each.elsewhere) for each in asked]
