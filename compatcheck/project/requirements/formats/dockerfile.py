"""A Dockerfile: the image its last stage starts from, what its ``RUN`` lines install, and its ``ENV``.

No shell is run: what a command installs is read off its words, in their order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from compatcheck.environment import Environment, Location
from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.files.reading import open_bytes, read_text
from compatcheck.packages.container_images import contents_of
from compatcheck.packages.versions import pinned
from compatcheck.project.requirements._asked import (
    Asked,
    facts_of,
    is_public_index,
    label_of_index,
    requests,
    with_label,
)
from compatcheck.project.requirements._conda import facts_of_conda, package_of, python_of
from compatcheck.project.requirements._installs import Install, installs_in
from compatcheck.project.requirements._markers import Place, in_range
from compatcheck.project.requirements._stages import Build, Instruction, assignments, build_of, expand
from compatcheck.project.requirements.formats import requirements_txt

TITLE = "a Dockerfile"
_NAME = re.compile(r"(?:(?:docker|container)file(?:[._-].*)?|.*\.(?:docker|container)file)\Z", re.I)
_OTHERS = (".py", ".md", ".rst", ".sh", ".yml", ".yaml", ".json", ".html", ".dockerignore")
_FROM = re.compile(rb"^\s*FROM\s", re.M | re.I)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL", re.I)
_BRINGS_TORCH = frozenset(("vllm", "sglang", "lmdeploy", "xformers", "torchvision", "torchaudio", "torchtext"))
_CONDITION = "a shell condition holds"


def recognises(path: str) -> bool:
    """By its name, and by a ``FROM`` in it."""
    name = os.path.basename(path)
    if not _NAME.match(name) or name.lower().endswith(_OTHERS):
        return False
    try:
        with open_bytes(path) as stream:
            return _FROM.search(stream.read(limits.DOCKERFILE_BYTES)) is not None
    except OSError:
        return False


def read(path: str, python: str | None = None) -> Environment:
    """Python, distributions, CUDA and ``environ`` of the image that the file builds.

    Raises `InputError` where it has no ``FROM``, or a requirements file it installs is broken.
    """
    build = build_of(read_text(path, limits.DOCKERFILE_BYTES))
    if build is None:
        raise InputError("reading", path, "the file has no FROM line", "pass a Dockerfile")
    return _Reading(path, build).facts()


class _Reading:
    """One pass over the instructions, which build on one another as the image does."""

    def __init__(self, path: str, build: Build) -> None:
        self.path = path
        self.build = build
        self.at = Location(path, build.line)
        self.contents = contents_of(build.image)
        self.place = Place(self.contents.python, linux=True)
        self.asked: dict[str, Asked] = {
            name: Asked(name, f"=={version}", self.at) for name, version in self.contents.distributions.items()
        }
        self.reasons: dict[str, str] = {}
        self.cuda: dict[str, Any] = {}
        self.places: dict[str, Location] = {}
        self.environ: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.copies: list[tuple[str, str]] = []
        self.requests: list[dict[str, object]] = []
        self.python = self.contents.python
        if self.contents.reason:
            self.reasons["distributions.torch"] = self.contents.reason

    def facts(self) -> Environment:
        for key, version in (("runtime", self.contents.runtime), ("toolkit", self.contents.toolkit)):
            if version:
                self.cuda[key], self.places[f"cuda.{key}"] = version, self.at
        if self.python:
            self.places["python"] = self.at
        image = {"name": self.contents.image, "release": self.contents.release} if self.contents.image else None
        if image:
            self.places["image"] = self.at
        for instruction in self.build.instructions:
            self._follow(instruction)
        if "torch" in self.asked:
            self.reasons.pop("distributions.torch", None)
        found = facts_of(self.asked.values())
        known = {
            **found.facts,
            **({"requirements": self.requests} if self.requests else {}),
            **({"python": self.python} if self.python else {}),
            **({"cuda": self.cuda} if self.cuda else {}),
            **({"image": image} if image else {}),
            **({"environ": self.environ} if self.environ else {}),
            "platform": {"system": "Linux"},
        }
        return Environment(known, {**self.reasons, **found.reasons}, {**found.locations, **self.places})

    def _follow(self, instruction: Instruction) -> None:
        at = Location(self.path, instruction.line)
        if instruction.word == "ARG":
            for name, value in assignments(instruction.text, self.variables):
                stated = self.build.arguments.get(name) if value is None else value
                if stated is not None and name not in self.environ:
                    self.variables[name] = stated
        elif instruction.word == "ENV":
            for name, value in assignments(instruction.text, self.variables):
                if value is not None:
                    self.variables[name] = value
                    if not _SECRET.search(name):
                        self.environ[name], self.places[f"environ.{name}"] = value, at
        elif instruction.word in ("COPY", "ADD") and "--from" not in instruction.text:
            words = [word for word in expand(instruction.text, self.variables).split() if not word.startswith("--")]
            self.copies += [(source, words[-1]) for source in words[:-1]]
        elif instruction.word == "RUN":
            try:
                for install in installs_in(expand(instruction.text, self.variables)):
                    self._install(install, at)
            except ValueError:
                self.reasons.setdefault(
                    "distributions", f"{os.path.basename(self.path)} line {at.line} is not a shell line"
                )

    def _install(self, install: Install, at: Location) -> None:
        if install.tool == "conda":
            self._install_conda(install, at)
            return
        label = next(filter(None, map(label_of_index, install.indexes)), None)
        asked = [each for text in install.requirements for each in self._requirement(text, at)]
        constraints: list[Asked] = []
        for file, constraint in install.files:
            inner = None if constraint else self._find_in_context(file)
            if inner is not None:
                listed, limits = requirements_txt.asked_in(inner, self.place)
                asked += listed
                constraints += limits
            elif not constraint:
                self.reasons.setdefault(
                    "distributions", f"{file}, which line {at.line} installs, is not next to the file"
                )
        self._request(asked, constraints, install, at)
        self._override([with_label(each, label) for each in asked], install)

    def _request(self, asked: list[Asked], constraints: list[Asked], install: Install, at: Location) -> None:
        """Keep what the command lists, unless the shell may pass it over."""
        if install.conditional:
            return
        elsewhere = not all(map(is_public_index, install.indexes)) or any("INDEX" in name for name in self.variables)
        found = [each._replace(elsewhere=elsewhere or each.elsewhere) for each in asked]
        command = f"{at} {len(self.requests)}"
        self.requests += requests(command, found, constraints, resolved_together=install.with_dependencies)

    def _requirement(self, text: str, at: Location) -> Iterable[Asked]:
        if "$" in text:
            name = re.match(r"[A-Za-z0-9][\w.-]*", text)
            return [Asked(name[0].lower(), None, at, f"what {text} stands for")] if name else []
        try:
            found = requirements_txt.parsed(text, at, self.place)
        except InputError:
            return []
        return [found] if found else []

    def _override(self, asked: list[Asked], install: Install) -> None:
        """Put a command's requirements over what is there; a range that is met already changes nothing."""
        names = {each.name for each in asked}
        for each in asked:
            there = self.asked.get(each.name)
            version = pinned((there.specifier if there else "") or "")
            met = version is not None and each.specifier is not None and in_range(version, each.specifier)
            met = met or (self._is_from_image(each.name) and each.specifier == "")
            if met and not install.upgrade:
                continue
            if install.conditional:
                each = each._replace(marker=_CONDITION)
            self.asked[each.name] = each
            if each.name == "torch":
                self.cuda.pop("runtime", None)
                self.places.pop("cuda.runtime", None)
        bringer = next((name for name in sorted(names & _BRINGS_TORCH) if install.with_dependencies), None)
        if bringer and "torch" not in names and ("torch" in self.asked or self._is_from_image("torch")):
            there = self.asked.get("torch") or Asked("torch", None, next(each.at for each in asked))
            self.asked["torch"] = there._replace(specifier=None, source=f"what {bringer} depends on")

    def _is_from_image(self, name: str) -> bool:
        """Whether torch is still the one of an image whose contents the matrix lists."""
        return name == "torch" and self.contents.image is not None and name not in self.asked

    def _install_conda(self, install: Install, at: Location) -> None:
        found = [package for text in install.requirements if (package := package_of(text, at))]
        facts = facts_of_conda(found)
        self.python = python_of(found) or self.python
        self.place = self.place._replace(python=self.python)
        self.cuda.update(facts.section("cuda"))
        self.places.update({path: place for path, place in facts.locations.items() if path.startswith("cuda.")})
        versions: Mapping[str, str] = facts.facts["distributions"]
        ranges: Mapping[str, str] = facts.section("distribution_ranges")
        pins = {name: f"=={version}" for name, version in versions.items()}
        self._override([Asked(name, wanted, at) for name, wanted in {**ranges, **pins}.items()], install)

    def _find_in_context(self, file: str) -> str | None:
        """A file of the image in the folder it is copied from: that of the Dockerfile, or the one above."""
        sources = [file]
        for source, target in self.copies:
            name = os.path.basename(source)
            if target in (file, f"./{file}") or os.path.join(target, name) == file or os.path.basename(file) == name:
                sources.append(source)
        folder = os.path.dirname(os.path.abspath(self.path))
        for context in (folder, os.path.dirname(folder)):
            for source in sources:
                inner = os.path.normpath(os.path.join(context, source.lstrip("/")))
                if inner.startswith(context + os.sep) and os.path.isfile(inner):
                    return inner
        return None
