"""Each file in ``matrix/frameworks/`` holds together, and what is said there is what readers do."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from compatcheck.environment.vocabulary import kind_of
from compatcheck.errors import InputError
from compatcheck.matrix.compile import read_frameworks
from compatcheck.packages.frameworks import Framework, foundations, framework_of, frameworks
from compatcheck.probes.imports.package_imports import PACKAGES
from compatcheck.project.training import readers
from tests.conftest import ROOT

EACH = list(frameworks().values())


@pytest.mark.parametrize("framework", EACH, ids=lambda each: each.name)
def test_a_framework_names_what_exists(framework: Framework) -> None:
    assert framework.name not in foundations(framework.name)
    assert set(framework.runs_on) <= set(frameworks())
    assert framework.reader is None or framework.reader in readers()
    assert all(source.startswith("https://") for source in framework.sources) and framework.sources
    assert all(repository.count("/") == 1 for repository in framework.repositories) and framework.repositories
    assert framework.distributions or not (framework.aliases or framework.imports)
    assert all(kind_of(path) for path in framework.never_sets)


@pytest.mark.parametrize("field", ["also", "distributions", "repositories", "aliases", "frames", "scripts"])
def test_two_frameworks_share_nothing(field: str) -> None:
    values = [getattr(each, field) for each in EACH if getattr(each, field)]
    listed = values if field == "frames" else list(chain.from_iterable(values))
    assert len(listed) == len(set(listed))


def test_the_probe_of_imports_runs_the_same_statements() -> None:
    """Its file runs in the target's interpreter with nothing of ours, so that it holds the statements once more."""
    for framework in EACH:
        if framework.imports:
            assert PACKAGES.get(framework.distributions[0]) in (None, tuple(framework.imports))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("axolotl/core/trainers/base.py", "axolotl"),
        ("lightning/pytorch/trainer/trainer.py", "lightning"),
        ("llamafactory/train/sft/workflow.py", "llama-factory"),
        ("recipes/full_finetune_distributed.py", "torchtune"),
        ("recipes/qat_distributed.py", "torchtune"),
        ("recipes/qat_lora_finetune_distributed.py", "torchtune"),
        ("sentence_transformers/cross_encoder/trainer.py", "sentence-transformers"),
        ("setfit/trainer_distillation.py", "setfit"),
        ("swift/llm/train/sft.py", "ms-swift"),
        ("swift/rlhf_trainers/grpo_trainer.py", "ms-swift"),
        ("transformers/trainer.py", "transformers"),
        ("trl/experimental/gfpo/gfpo_trainer.py", "trl"),
        ("trl/trainer/sft_trainer.py", "trl"),
        ("verl/trainer/ppo/ray_trainer.py", "verl"),
        ("xtuner/v1/train/trainer.py", "xtuner"),
    ],
)
def test_a_file_of_a_trainer_belongs_to_its_framework(path: str, name: str) -> None:
    assert [each.name for each in EACH if each.frames and re.match(each.frames, path)] == [name]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("alignment-handbook/scripts/run_orpo.py", "trl"),
        ("examples/scripts/ppo.py", "trl"),
        ("openrlhf.cli.train_ppo_ray", "openrlhf"),
        ("scripts/run_grpo.py", None),
        ("src/train_bash.py", "llama-factory"),
        ("swift/cli/rlhf.py", "ms-swift"),
        ("trl/scripts/grpo.py", "trl"),
        ("verl.trainer.sft_trainer", "verl"),
        ("xtuner/tools/train.py", "xtuner"),
    ],
)
def test_a_script_belongs_to_its_framework(path: str, name: str | None) -> None:
    found = [each.name for each in EACH if any(re.search(script, path) for script in each.scripts)]
    assert found == ([name] if name else [])


def test_a_command_belongs_to_one_framework() -> None:
    names = [command.name for each in EACH for command in each.commands]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("llama-factory", {"trl": {}, "transformers": {}, "accelerate": {"transformers": ">=4.30"}}),
        (
            "setfit",
            {
                "sentence-transformers": {"setfit": ">=1.1"},
                "transformers": {"setfit": ">=1.1", "sentence-transformers": ">=3.0"},
                "accelerate": {"setfit": ">=1.1", "sentence-transformers": ">=3.0", "transformers": ">=4.30"},
            },
        ),
        ("verl", {}),
        ("unheard-of", {}),
    ],
)
def test_foundations_are_followed_to_the_end(name: str, below: dict[str, dict[str, str]]) -> None:
    assert foundations(name) == below


@pytest.mark.parametrize(
    ("value", "name"), [("lightning", "lightning"), ("pytorch-lightning", "lightning"), ("?", None)]
)
def test_a_value_means_one_framework(value: str, name: str | None) -> None:
    found = framework_of(value)
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("launched = true", "launched: Extra inputs are not permitted"),
        ("program = 3", "program: Input should be a valid boolean, unable to interpret input"),
        ("runs_on = ['trl']", "runs_on: Input should be a valid dictionary"),
        ("[[commands]]\nname = 'x'\nverbs = ['train']\nprocesses = 'many'", "processes: Input should be"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, line: str, fault: str) -> None:
    (tmp_path / "frameworks").mkdir()
    head = "title = 'X'\nsources = ['https://example.org']\nreviewed = 2026-11-28\n"
    (tmp_path / "frameworks" / "x.toml").write_text(f"{head}{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"reading the framework .*x\.toml") as caught:
        read_frameworks(tmp_path)
    assert fault in str(caught.value)


def test_every_shipped_file_is_valid() -> None:
    assert set(read_frameworks(ROOT / "matrix")) == set(frameworks())
