"""Write matrix/tables/excluded-afterwards.toml: which versions a package's next releases excluded.

    python tools/tables/excluded_afterwards.py FOLDER... > matrix/tables/excluded-afterwards.toml

The folders hold metadata as `_metadata` reads it; the days of the releases are asked of the index.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tools.tables import _metadata, _toml, release_history

EXCLUDING = [
    "accelerate",
    "auto-gptq",
    "autoawq",
    "autotrain-advanced",
    "axolotl",
    "bitsandbytes",
    "colbert-ai",
    "colpali-engine",
    "compressed-tensors",
    "datasets",
    "deepspeed",
    "diffusers",
    "evaluate",
    "flagembedding",
    "fms-hf-tuning",
    "fschat",
    "gptqmodel",
    "gradio",
    "huggingface-hub",
    "instructlab-training",
    "lightning",
    "liger-kernel",
    "litgpt",
    "llamafactory",
    "llm-foundry",
    "llmcompressor",
    "lm-eval",
    "lmdeploy",
    "lmflow",
    "mergekit",
    "mmengine",
    "modelscope",
    "mosaicml",
    "ms-swift",
    "nemo-toolkit",
    "open-clip-torch",
    "openrlhf",
    "optimum",
    "oumi",
    "peft",
    "pytorch-lightning",
    "ray",
    "rerankers",
    "safetensors",
    "sentence-transformers",
    "setfit",
    "sglang",
    "timm",
    "tokenizers",
    "torchao",
    "torchmetrics",
    "torchtune",
    "transformers",
    "trl",
    "unsloth",
    "unsloth-zoo",
    "verl",
    "vllm",
    "wandb",
    "whisperx",
    "xformers",
    "xinference",
    "xtuner",
]
SOON = timedelta(days=180)
"""How long after a release an exclusion still speaks of it: later, the code is another."""
_WHAT = """What the next releases of a package excluded of another that the earlier ones accept: the first and the last
release that accept it, the lowest and the highest version excluded (none where it is a bound for all that came
later), the release that excludes it with its demand, and the first later one that accepts what was out on that day."""

Days = Mapping[Version, date]


class Exclusion(NamedTuple):
    """Versions from ``lowest`` on, up to ``highest`` if any, which release ``by`` excludes and earlier ones accept."""

    lowest: Version
    highest: Version | None
    by: Version
    demand: str
    accepted_from: Version | None


def exclusions(demands: Mapping[Version, str], days: Days, others: Days) -> Iterator[tuple[Version, Exclusion]]:
    """For each release the exclusion that follows it soonest: by an upper bound or by name, of what was out that day.

    A demand for one version alone says nothing of the others, and a floor that rises nothing of earlier releases.
    """
    accepted = {
        text: frozenset(version for version in others if SpecifierSet(text).contains(version))
        for text in set(demands.values())
    }
    ordered = sorted(version for version in demands if version in days)
    for at, release in enumerate(ordered):
        mine = demands[release]
        if _is_exact(mine):
            continue
        for by in ordered[at + 1 :]:
            text = demands[by]
            if days[by] - days[release] > SOON or text == mine or not text or _is_exact(text) or not accepted[text]:
                continue
            ruled_out = accepted[mine] - accepted[text]
            out = sorted(each for each in ruled_out if each > min(accepted[text]) and others[each] <= days[by])
            if out:
                again = (each for each in ordered if each > by and out[-1] in accepted[demands[each]])
                highest = None if _is_bounded(text, out) else out[-1]
                yield release, Exclusion(out[0], highest, by, text, next(again, None))
                break


def _is_exact(demand: str) -> bool:
    return any(clause.operator in ("==", "===") for clause in SpecifierSet(demand))


def _is_bounded(demand: str, versions: Sequence[Version]) -> bool:
    """Whether an upper bound, and not a name, excludes one of the versions."""
    bounds = SpecifierSet(",".join(str(clause) for clause in SpecifierSet(demand) if clause.operator in ("<", "<=")))
    return any(not bounds.contains(version) for version in versions)


@cache
def _days(name: str) -> Days:
    return {
        version: date.fromisoformat(day) for version, day in release_history.releases(release_history.files_of(name))
    }


def _rows(demands: Mapping[Version, str], days: Days, others: Days) -> list[list[str]]:
    rows: list[list[str]] = []
    for release, found in exclusions(demands, days, others):
        row = [str(found.lowest), str(found.highest or ""), str(found.by), found.demand, str(found.accepted_from or "")]
        if rows and rows[-1][2:] == row:
            rows[-1][1] = str(release)
        else:
            rows.append([str(release), str(release), *row])
    return rows


def render(folders: Sequence[Path]) -> str:
    """The table as TOML."""
    parts = [_toml.header(_WHAT, "python tools/tables/excluded_afterwards.py FOLDER...", _metadata.SOURCES)]
    declared = _metadata.read(folders)
    for package in EXCLUDING:
        releases = declared[package]
        found = {}
        for other in sorted({name for required in releases.values() for name in required} - {package}):
            demands = {version: required.get(other, "") for version, required in releases.items()}
            if any("<" in text or "!=" in text for text in demands.values()):
                found[other] = _rows(demands, _days(package), _days(other))
        rows = {other: each for other, each in found.items() if each}
        parts += [_toml.section(package, rows)] if rows else []
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render([Path(folder) for folder in sys.argv[1:]]))
