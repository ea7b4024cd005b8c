from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compatcheck.environment import Environment, Location, Target, Unknown
from compatcheck.environment.assumptions import assume, assume_all
from compatcheck.environment.snapshot import load_snapshot
from compatcheck.errors import InputError
from compatcheck.installed.collect import collect, join
from compatcheck.installed.declared import top_level
from tests.installed.conftest import Install


def test_one_collection_holds_every_collectors_facts(
    site: Path, target: Target, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    monkeypatch.delenv("NOT_SET", raising=False)
    install("torch-2.5.0", "sympy==1.13.1")
    (site / "~orch-2.4.0.dist-info").mkdir()
    (site / "empty-1.0.dist-info").mkdir()
    environment = collect(target, ("NCCL_P2P_DISABLE", "NOT_SET"))
    assert environment.get("python") == "3.11.7"
    assert environment.get("distributions.torch") == "2.5.0"
    assert environment.get("distributions.absent") is None
    assert environment.get("environ.NCCL_P2P_DISABLE") == "1"
    assert environment.get("environ.NOT_SET") is None
    assert isinstance(environment.get("environ.NEVER_ASKED"), Unknown)
    assert [each["path"] for each in environment.get("distribution_problems")] == [
        "~orch-2.4.0.dist-info",
        "empty-1.0.dist-info",
    ]
    assert [each["requirement"] for each in environment.get("unmet_requirements")] == ["sympy==1.13.1"]
    assert environment.facts["target"] == {
        "executable": "/nowhere/bin/python",
        "prefix": "/nowhere",
        "selected_by": "--python",
    }
    assert load_snapshot(json.dumps(environment.dump()), "itself") == environment


def test_nothing_slow_is_imported_for_an_environment_in_order(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    code = (
        "import sys; from compatcheck.installed.collect import collect, join;"
        "from compatcheck.installed.target import find_target;"
        f"collect(find_target({str(tmp_path)!r}, {{}}));"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    slow = {"subprocess", "pathlib", "pynvml", "yaml", "pydantic", "packaging.requirements", "packaging.specifiers"}
    slow |= {"ast", "hashlib", "json", "shutil", "platform", "email", "importlib.metadata", "dataclasses"}
    slow -= {"ast"} if sys.version_info >= (3, 14) else set()  # which a NamedTuple loads there
    assert not slow & set(done.stdout.split())


def test_two_collectors_may_not_state_one_fact() -> None:
    with pytest.raises(ValueError, match=r"cuda\.runtime"):
        join((Environment({"cuda": {"runtime": "12"}}), Environment({"cuda": {"runtime": "12"}})))


def test_an_overlay_replaces_facts_with_their_reasons_and_locations() -> None:
    below = Environment(
        {"training": {"dtype": "float16", "packing": True}},
        {"model.traits": "unreadable", "gpus": "no driver"},
        {"training.dtype": Location("old")},
    )
    above = Environment(
        {"training": {"dtype": "bfloat16"}, "model": {"traits": []}},
        {"training.packing": "auto", "training.method": "auto"},
        {"model.traits": Location("new", 3)},
    )
    over = below.overlay(above)
    assert over.facts == {"training": {"dtype": "bfloat16", "packing": True}, "model": {"traits": []}}
    assert over.reasons == {"gpus": "no driver", "training.method": "auto"}
    assert over.locations == {"model.traits": Location("new", 3)}
    assert below.facts == {"training": {"dtype": "float16", "packing": True}}


@pytest.mark.parametrize(
    ("statement", "path", "value"),
    [
        ("training.dtype=bfloat16", "training.dtype", "bfloat16"),
        ("training.deepspeed.overlap_comm=true", "training.deepspeed.overlap_comm", True),
        ("training.per_device_train_batch_size=2", "training.per_device_train_batch_size", 2),
        ("distributions.Flash_Attn=2.7", "distributions.flash-attn", "2.7"),
        ("distributions.torch=null", "distributions.torch", None),
        ('distributions.torch="2.5"', "distributions.torch", "2.5"),
        ("distributions.zope.interface=6.0", "distributions.zope-interface", "6.0"),
        ("python=3.10", "python", "3.10"),
        ("cuda.driver=535", "cuda.driver", "535"),
        ("image.release=23.10", "image.release", "23.10"),
        ("environ.A.B=1", "environ.A.B", "1"),
        ('model.traits=["x"]', "model.traits", ["x"]),
        ("model.name=a=b", "model.name", "a=b"),
        ("gpu.compute_capability=9.0", "gpus", [{"compute_capability": "9.0"}]),
        ("gpus=null", "gpus", None),
        ("training.deepspeed=absent", "training.deepspeed", None),
    ],
)
def test_a_fact_the_user_states(statement: str, path: str, value: object) -> None:
    before = Environment({}, {path: "not known"})
    stated = assume(before, statement)
    assert stated.get(path) == value
    assert path not in stated.reasons


def test_a_statement_on_gpus_speaks_of_each() -> None:
    before = Environment({"gpus": [{"name": "A"}, {"name": "B", "compute_capability": "8.0"}]})
    assert assume(before, "gpu.compute_capability=9.0").facts["gpus"] == [
        {"name": "A", "compute_capability": "9.0"},
        {"name": "B", "compute_capability": "9.0"},
    ]


@pytest.mark.parametrize("statement", ["trainig.dtype=x", "gpu=x", "gpu.a.b=1", "novalue", "=1", "training..a=1", ""])
def test_a_statement_of_no_fact_is_refused(statement: str) -> None:
    with pytest.raises(InputError):
        assume(Environment({}), statement)


def test_the_later_statement_counts() -> None:
    assert assume_all(Environment({}), ["python=3.9", "python=3.10"]).facts == {"python": "3.10"}


def test_top_level_is_what_nobody_asks_for(target: Target, install: Install) -> None:
    install("peft-0.11.1", "torch>=1.13", "tomli; python_version < '3'", "pytest; extra == 'dev'")
    install("torch-2.5.0")
    install("tomli-2.0")
    install("pytest-8.0")
    assert top_level(target) == ("peft", "pytest", "tomli")


def test_a_project_installed_from_a_folder_leaves_what_it_asks_for(target: Target, install: Install) -> None:
    install("torch-2.5.0")
    project = install("mine-1.0", "torch")
    (project / "direct_url.json").write_text('{"url": "file:///home/me/mine", "dir_info": {"editable": true}}')
    assert top_level(target) == ("torch",)
