"""The versions that a package's sources ask of others, read from git at each release tag.

Only text is read, with git's own commands: nothing of the repository is run.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

DECLARING = re.compile(
    r"(?:.*/)?(setup\.py|setup\.cfg|pyproject\.toml|dependency_versions_table\.py)\Z"
    r"|(?:[\w.-]+/)?requirements[\w.-]*\.txt\Z|requirements/[\w.-]+\.txt\Z"
)
APART = re.compile(r"(^|/)(tests?|examples?|docs?|benchmarks?|templates?|blogs?)/")
"""What lies there is asked for by nobody who installs the package."""
CHECKS = r"require_version|check_version|version\.parse\(|_MIN(IMUM)?_VERSION *=|is_[a-z_]+_available\([^)]*[0-9]"
_TAG = re.compile(r"v?(\d+(?:\.\d+)+(?:\.post\d+)?)\Z")
_QUOTED = re.compile(r"[\"']([A-Za-z][\w.-]*(?:\[[^\]\"']*\])?\s*\(?(?:~=|[<>=!]=|[<>])[^\"';#]+)")
_PLAIN = re.compile(r"^\s*([A-Za-z][\w.-]*(?:\[[^\]]*\])?\s*(?:~=|[<>=!]=|[<>])[^;#\n]+)", re.MULTILINE)
_COMPARED = re.compile(
    r"version\.parse\(.*?(?:version\([\"'](?P<name>[\w.-]+)[\"']\)|(?P<module>\w+)\.__version__).*?"
    r"(?P<op>[<>=!]=|[<>])\s*(?:packaging\.)?version\.parse\([\"'](?P<bound>\d[\w.]*)[\"']\)"
)
_CONSTANT = re.compile(r"\b_?([A-Z0-9_]+?)_MIN(?:IMUM)?_VERSION\s*=\s*[\w.]*\(?[\"'](\d[\w.]*)[\"']")
_AVAILABLE = re.compile(r"\bis_([a-z0-9_]+?)_available\((?:min_version\s*=\s*)?[\"'](\d[\w.]*)[\"']")


class Constraint(NamedTuple):
    """One clause on another package: metadata declares it, code requires it, or code compares and does either."""

    name: str
    clause: str
    kind: Literal["declares", "requires", "compares"]


class Commit(NamedTuple):
    hash: str
    date: str
    subject: str


def git(repository: Path, *arguments: str) -> str:
    """What a git command prints, nothing where it finds nothing. Raises CalledProcessError on any other failure."""
    done = subprocess.run(
        ["git", "--git-dir", str(repository), *arguments], capture_output=True, text=True, errors="replace"
    )
    if done.returncode not in (0, 1):
        done.check_returncode()
    return done.stdout


def release_tags(repository: Path) -> dict[str, Version]:
    """The tags of final releases, oldest first."""
    found = {tag: Version(match[1]) for tag in git(repository, "tag").split() if (match := _TAG.match(tag))}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def constraints(repository: Path, tag: str) -> dict[Constraint, str]:
    """Each constraint at a tag with the file that states it first."""
    found: dict[Constraint, str] = {}
    for path in git(repository, "ls-tree", "-r", "--name-only", tag).splitlines():
        if DECLARING.match(path) and not APART.search(path):
            for constraint in declared(git(repository, "show", f"{tag}:{path}"), plain=path.endswith((".txt", ".cfg"))):
                found.setdefault(constraint, path)
    for line in git(repository, "grep", "-E", "-e", CHECKS, tag, "--", "*.py").splitlines():
        path, _, code = line.removeprefix(f"{tag}:").partition(":")
        if not APART.search(path):
            for constraint in checked(code):
                found.setdefault(constraint, path)
    return found


def declared(text: str, *, plain: bool) -> Iterator[Constraint]:
    """Requirements with a version: one to a line in plain files, quoted in the others."""
    for match in (_PLAIN if plain else _QUOTED).finditer(text):
        yield from _clauses(match[1], "declares")


def checked(line: str) -> Iterator[Constraint]:
    """What a line of code compares: a requirement it names, two versions, or a constant with the lowest version."""
    if re.search(r"\b(require|check)_version\w*\(", line):
        for match in _QUOTED.finditer(line):
            yield from _clauses(match[1], "requires")
    for compared in _COMPARED.finditer(line):
        yield Constraint(_name(compared["name"] or compared["module"]), compared["op"] + compared["bound"], "compares")
    for pattern in (_CONSTANT, _AVAILABLE):
        for least in pattern.finditer(line):
            yield Constraint(_name(least[1]), f">={least[2]}", "requires")


def _name(text: str) -> str:
    return canonicalize_name(text.strip("_").replace("importlib_metadata", ""))


def _clauses(text: str, kind: Literal["declares", "requires"]) -> Iterator[Constraint]:
    try:
        requirement = Requirement(text.strip().rstrip(",").rstrip())
    except InvalidRequirement:
        return
    for clause in requirement.specifier:
        yield Constraint(canonicalize_name(requirement.name), str(clause), kind)


def introducing(repository: Path, constraint: Constraint, path: str, between: tuple[str, str]) -> Commit | None:
    """The first commit between two tags that changes a line with the name and the version."""
    operator = re.match(r"[<>=!~]+", constraint.clause)
    bound = constraint.clause[operator.end() if operator else 0 :]
    pattern = re.escape(bound)
    log = git(repository, "log", "--reverse", "--format=%H%x09%cs%x09%s", "-G", pattern, "..".join(between), "--", path)
    for line in log.splitlines():
        return Commit(*line.split("\t", 2))
    return None
