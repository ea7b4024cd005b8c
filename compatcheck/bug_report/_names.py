"""Distributions by the names that people and tools write."""

from __future__ import annotations

import re
from collections.abc import Mapping

from compatcheck.packages.frameworks import frameworks
from compatcheck.packages.names import normalised
from compatcheck.packages.shipped_tables import shipped_table

_TABLE = shipped_table("package-names")
_KNOWN = frozenset(_TABLE["known"]).union(*(each.distributions for each in frameworks().values()))
_ALIASES: Mapping[str, str] = _TABLE["aliases"] | {
    alias: each.distributions[0] for each in frameworks().values() for alias in each.aliases
}
_REPOSITORIES: Mapping[str, str] = _TABLE["repositories"] | {
    repository.rpartition("/")[2].lower(): each.distributions[0]
    for each in frameworks().values()
    for repository in each.repositories
    if each.distributions
}
_SQUEEZED = {name.replace("-", ""): name for name in _KNOWN}
_IN_PROSE = sorted({*_KNOWN, *_ALIASES}.difference(_TABLE["not_in_prose"]), key=len, reverse=True)
_NO_DISTRIBUTION = frozenset(
    (
        *("ubuntu", "debian", "centos", "rocky", "windows", "win", "macos", "linux", "cuda", "cudnn", "nccl", "driver"),
        *("gcc", "g++", "clang", "cmake", "rustc", "node", "python", "nvcc", "line", "step", "steps", "epoch"),
        *("version", "versions", "kernel", "glibc", "libc", "docker", "conda", "os", "cann", "rocm", "mig", "gpu"),
        *("gpus", "cpu", "memory", "loss", "lr", "iter", "total", "time", "rank", "size", "chapter", "section"),
        *("figure", "table", "number", "name", "package", "server", "client", "browser", "chrome", "firmware", "bios"),
        *("app", "api", "model", "dataset", "java", "git", "npm", "image", "system", "machine", "host", "toolkit"),
        *("chip", "product", "npu", "firmware", "software", "hardware", "device", "release", "build", "date", "nvidia"),
    )
)
_ONE_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9._-]{0,60}[A-Za-z0-9])?\Z")
_FILE = re.compile(
    r"\.(?:py|sh|json|jsonl|ya?ml|toml|txt|md|log|cfg|ini|csv|so|dll|cu|cpp|c|h|ipynb|pt|pth|bin|safetensors|gguf|whl"
    r"|zip|gz|png|jpg|pdf)\Z",
    re.I,
)
TRAINERS = "SFT|DPO|KTO|ORPO|CPO|BCO|GRPO|PPO|RLOO|GKD|Reward"
"""How the names of trl's trainers begin."""
_SPOKEN = [
    (name.replace("-", " ").split(), re.escape(name).replace("\\-", "[-_ ]?").replace("\\ ", "[-_ ]?"))
    for name in _IN_PROSE
]
_NO_NAME = "(?!)"


def spoken_in(text: str) -> str:
    """The alternatives of a regular expression for the names that free text may hold, of hundreds that are known."""
    lower = text.lower()
    return "|".join(regex for words, regex in _SPOKEN if all(word in lower for word in words)) or _NO_NAME


def distribution(name: str) -> str | None:
    """The distribution that a name certainly means, or None."""
    bare = normalised(name.strip().strip("`\"'*[]()")).replace("-", " ").strip()
    if bare in _ALIASES:
        return _ALIASES[bare]
    joined = bare.replace(" ", "-")
    if joined in _KNOWN:
        return joined
    return _SQUEEZED.get(joined.replace("-", "")) or (joined if re.match(r"nvidia-[a-z-]+-cu\d\d\Z", joined) else None)


def distribution_of(repository: str) -> str | None:
    """The distribution that is made from a repository, by the name that forks and moves leave as it is."""
    name = repository.rpartition("/")[2].lower()
    return distribution(name) or _REPOSITORIES.get(name)


def plausible(name: str) -> bool:
    """Whether a name that a tool prints may be that of a distribution, and is not that of a file."""
    return bool(_ONE_NAME.match(name)) and name.lower() not in _NO_DISTRIBUTION and not _FILE.search(name)
