"""The pipeline of pins on real entries: what moves, how far, what is left to the user, and what stands in the way."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from compatcheck import matrix
from compatcheck.advice import search, wanted
from compatcheck.advice.model import Demands, Move, Place, Solution
from compatcheck.environment import Environment
from compatcheck.interfaces.links import broken_links
from compatcheck.pipelines import pin
from compatcheck.pipelines.pin import _plan
from compatcheck.results.pins import PinReport
from tests.advice.index import CUDA, write_index
from tests.advice.tiny_wheels import write_wheel

PADDED = {
    "cuda": {"driver": "550.54.15"},
    "gpus": [{"compute_capability": "8.0"}],
    "training": {"attention": "sdpa", "per_device_train_batch_size": 2, "dtype": "bfloat16"},
}
OVERLAPPING = {
    "gpus": [{"compute_capability": "8.0"}] * 2,
    "training": {"world_size": 2, "deepspeed": {"zero_stage": 2, "overlap_comm": True}, "dtype": "bfloat16"},
}


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_index(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def known() -> matrix.Matrix:
    return matrix.load(str(Path(__file__).parents[2] / "matrix"))


def task(
    known: matrix.Matrix, versions: Mapping[str, str], said: Mapping[str, Any], *lines: str, **how: Any
) -> pin.Task:
    """What is installed, with the CUDA runtime of the release; or with ``lines`` what these ask for."""
    cuda = CUDA.get(versions["torch"])
    versions = {**versions, "nvidia-cuda-runtime-cu12": f"{cuda}.1"} if cuda and float(cuda) < 13 else versions
    asked = wanted.installed(versions, versions)
    if lines:
        Path("requirements.in").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        asked = wanted.preferring(wanted.read(["requirements.in"], None), versions)
    return pin.Task(Environment({**said, "distributions": versions}), known, asked, Place(sys.executable), **how)


def planned(asked: pin.Task) -> pin.Plan:
    found = pin.plan(asked, lambda: False)
    assert isinstance(found, pin.Plan), search.explain(found)
    return found


def told(report: PinReport) -> list[tuple[str, str | None, str]]:
    return [(each.name, each.was, each.now) for each in report.moved if each.was]


def test_the_glm_4_stack_moves_by_one_patch_and_takes_its_companion_along(known: matrix.Matrix) -> None:
    found = planned(task(known, {"torch": "2.5.0", "torchvision": "0.20.0", "transformers": "4.49.0"}, PADDED))
    assert told(found.report) == [("torch", "2.5.0", "2.5.1"), ("torchvision", "0.20.0", "0.20.1")]
    assert found.moves["torch"].entries == ("CC-2024-0001",)
    assert found.report.distance == 2 and found.report.proven
    assert found.report.resolutions <= 4
    assert found.report.left == ()


def test_a_clean_stack_stays_and_is_resolved_once(known: matrix.Matrix) -> None:
    found = planned(task(known, {"torch": "2.6.0", "transformers": "4.49.0"}, PADDED))
    assert found.moves == {} and found.report.resolutions == 1 and found.report.proven


def test_lines_do_not_move_for_the_sake_of_what_is_installed(known: matrix.Matrix) -> None:
    installed = {"torch": "2.6.0", "torchvision": "0.21.0"}
    found = planned(task(known, installed, PADDED, "torchvision==0.19.1"))
    assert found.solution.versions["torchvision"] == "0.19.1" and found.solution.versions["torch"] == "2.4.1"
    assert found.moves == {} and found.report.resolutions == 1


@pytest.mark.parametrize(("prefer", "moves"), [("nearest", False), ("config", False), ("pins", True)])
def test_what_advises_a_setting_and_no_version_moves_versions_only_where_these_are_preferred(
    known: matrix.Matrix, prefer: str, moves: bool
) -> None:
    offloading = {
        "cuda": {"driver": "580.65.06", "toolkit": "13.0"},
        "training": {"deepspeed": {"zero_stage": 2, "overlap_comm": False, "offload_optimizer_device": "cpu"}},
        "environ": {"DS_SKIP_CUDA_CHECK": None},
    }
    write_wheel(Path("links"), "deepspeed", "0.12.3", ["torch"])
    installed = {"torch": "2.4.1", "deepspeed": "0.14.5"}
    found = planned(task(known, installed, offloading, by_hand_cost=pin.BY_HAND_COSTS[prefer]))
    assert "CC-2023-0962" in found.causes
    assert bool(told(found.report)) == moves
    assert [finding.id for finding in found.report.left] == ([] if moves else ["CC-2023-0962"])


def test_a_range_of_the_user_leaves_the_older_side(known: matrix.Matrix) -> None:
    versions = {"torch": "2.5.0"}
    found = planned(task(known, versions, PADDED, "torch<2.5.1", by_hand_cost=pin.BY_HAND_COSTS["pins"]))
    assert ("torch", "2.5.0", "2.4.1") in told(found.report)


def test_where_no_version_is_left_a_setting_clears_it_and_the_finding_stays_told(known: matrix.Matrix) -> None:
    found = planned(task(known, {"torch": "2.5.0"}, PADDED, "torch>=2.5.0,<2.5.1"))
    assert found.moves == {}
    assert [finding.id for finding in found.report.left] == ["CC-2024-0001"]
    assert "attn_implementation" in found.report.choices[0].settings[0].what[0]
    assert found.report.notes[0] == (
        "no nearby versions fix CC-2024-0001: the matrix requires torch==2.5.*,>=2.5.1 and requirements.in:1 "
        "has the requirement torch>=2.5.0,<2.5.1"
    )


def test_a_fault_that_only_a_setting_would_clear_is_no_conflict(known: matrix.Matrix) -> None:
    strict = task(known, {"torch": "2.5.0"}, {**PADDED, "training": {}}, "torch>=2.5.0,<2.5.1", strict=True)
    assert isinstance(pin.plan(strict, lambda: False), pin.Plan)


@pytest.mark.parametrize(("prefer", "moved"), [("pins", ["deepspeed"]), ("config", [])])
def test_the_user_says_whether_versions_or_settings_are_to_change(
    known: matrix.Matrix, prefer: str, moved: list[str]
) -> None:
    asked = task(known, {"torch": "2.3.1", "deepspeed": "0.13.5"}, OVERLAPPING, by_hand_cost=pin.BY_HAND_COSTS[prefer])
    found = planned(asked)
    assert [each.name for each in found.report.moved if not each.links] == moved
    choices = [choice for choice in found.report.choices if choice.settings]
    assert choices and all(choice.by_versions == (prefer == "pins") for choice in choices)
    assert bool(found.report.left) == (prefer == "config")


def test_a_driver_that_is_too_old_keeps_torch_on_a_build_that_runs(known: matrix.Matrix) -> None:
    old = {"cuda": {"driver": "535.104.05"}, "platform": {"system": "Linux", "machine": "x86_64"}}
    found = planned(task(known, {"torch": "2.11.0"}, {**PADDED, **old}))
    assert found.solution.versions["torch"] == "2.10.0"
    assert found.moves["torch"].entries == ("CC-2026-0001",)


def test_another_build_of_torch_marks_its_companion_and_tells_what_was_refused(known: matrix.Matrix) -> None:
    old = {"cuda": {"driver": "535.104.05"}, "platform": {"system": "Linux", "machine": "x86_64"}}
    asked = task(known, {"torch": "2.11.0", "torchvision": "0.26.0", "peft": "0.14.0"}, {**PADDED, **old})
    built = Solution({"torch": "2.11.0+cu126", "torchvision": "0.26.0+cu126", "peft": "0.14.0"})
    found = search.Found(built, Demands(torch_backend="cu126"), {"torch": ("CC-2026-0001",)}, True, 2)
    assert _plan._moves(asked, _plan._scale(asked, None), found) == {
        "torch": Move("2.11.0", ("CC-2026-0001",)),
        "torchvision": Move("0.26.0"),
    }
    assert list(_plan._refusals(asked, found)) == [
        "the cu130 build of torch cannot run here: needs driver 580.65.06 or newer, this machine has 535.104.05"
    ]


def test_the_newest_set_is_held_back_only_where_an_entry_asks(known: matrix.Matrix, index: Path) -> None:
    for wheel in index.glob("torch-2.[16]*"):
        wheel.unlink()
    (index / "torch-2.5.1-py3-none-any.whl").unlink()
    found = planned(task(known, {"torch": "2.4.1", "transformers": "4.47.1"}, PADDED, latest=True))
    assert found.solution.versions == {
        "torch": "2.4.1",
        "transformers": "5.0.0",
        "nvidia-cuda-runtime-cu12": "12.1.1",
    }
    assert told(found.report)[-1] == ("torch", "2.5.0", "2.4.1")


def test_an_ignored_entry_steers_nothing(known: matrix.Matrix) -> None:
    assert planned(task(known, {"torch": "2.5.0"}, PADDED, ignore={"CC-2024-0001"})).moves == {}


def test_time_that_runs_out_gives_what_there_is_and_says_so(known: matrix.Matrix) -> None:
    found = pin.plan(task(known, {"torch": "2.5.0"}, PADDED), lambda: True)
    assert isinstance(found, pin.Plan) and not found.report.proven
    assert [finding.id for finding in found.report.left] == ["CC-2024-0001"]


def test_what_is_read_of_files_that_are_replaced_counts_no_more(known: matrix.Matrix) -> None:
    before = Environment(
        {
            "distributions": {"torch": "2.5.0"},
            "torch_build": {"architectures": ["sm_80"]},
            "cuda": {"runtime": "12.4", "driver": "550.54.15"},
            "unmet_requirements": ["x"],
        }
    )
    after = pin.solved(before, Solution({"torch": "2.5.1"}))
    assert after.facts["cuda"] == {"driver": "550.54.15"}
    assert after.facts["distributions_complete"] is True
    assert not {"torch_build", "unmet_requirements"} & set(after.facts)
    same = pin.solved(before, Solution({"torch": "2.5.0"}, unversioned=("pkg @ file:///x",)))
    assert same.facts["cuda"]["runtime"] == "12.4" and same.facts["distributions_complete"] is False
    assert same.dump()


def test_a_build_whose_index_is_out_of_reach_is_pinned_unseen_and_judged_as_that_build(
    known: matrix.Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uv.toml").write_text("find-links = ['links']\n[pip]\nno-index = false\n", encoding="utf-8")
    for name, value in (("HTTPS_PROXY", "http://127.0.0.1:9"), ("UV_HTTP_RETRIES", "0"), ("NO_PROXY", "")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "empty").as_uri())
    (tmp_path / "empty").mkdir()
    old = {"cuda": {"driver": "470.82.01"}, "platform": {"system": "Linux", "machine": "x86_64"}}
    asked = task(known, {"torch": "2.4.1+cu118"}, {**PADDED, **old}, torch_backend="cu118")
    found = planned(asked)
    assert found.solution.versions["torch"] == "2.4.1+cu118"
    assert not any(name.startswith("nvidia-") for name in found.solution.versions)
    assert found.report.left == () and "download.pytorch.org" in found.report.notes[0]
    assert "torch==2.4.1+cu118" in pin.written(found, "requirements", None, False)


@pytest.fixture
def trl_beside_peft(index: Path) -> None:
    """Releases whose declared requirements allow what does not link."""
    for version in ("0.7.1", "0.7.2", "0.8.6"):
        write_wheel(index, "trl", version, ["transformers"])
    for version in ("0.9.0", "0.10.0"):
        write_wheel(index, "peft", version, ["transformers"])
    next(index.glob("peft-0.14.0-*")).unlink()
    write_wheel(index, "transformers", "4.36.2")


LINK = (
    "trl 0.7.1 imports peft.prepare_model_for_int8_training (trl/models/modeling_base.py), which peft 0.10.0 does not "
    "have; peft >=0.2.0,<0.10.0 does"
)
OLD = ("torch==2.5.1", "transformers==4.36.2")
UNASKED = ("CC-2026-1330",)
"""What is said of these releases, set aside to see what the links alone do."""


def links_of(found: pin.Plan) -> list[Any]:
    releases = {name: Version(version) for name, version in found.solution.versions.items()}
    return list(broken_links(found.task.known.table, releases, Version("3.11")))


@pytest.mark.usefixtures("trl_beside_peft")
def test_free_package_is_held_where_the_pinned_one_links(known: matrix.Matrix) -> None:
    asked = task(known, {"torch": "2.5.1"}, PADDED, *OLD, "trl==0.7.1", "peft", ignore=UNASKED)
    found = planned(asked)
    assert (found.solution.versions["trl"], found.solution.versions["peft"]) == ("0.7.1", "0.9.0")
    assert links_of(found) == [] and found.report.resolutions == 2
    assert found.moves["peft"].links == (LINK,)
    assert LINK in pin.written(found, "requirements", None, False)


@pytest.mark.usefixtures("trl_beside_peft")
def test_of_two_pinned_packages_that_do_not_link_the_nearest_moves(known: matrix.Matrix) -> None:
    asked = task(known, {"torch": "2.5.1"}, PADDED, *OLD, "trl==0.7.1", "peft==0.10.0", ignore=UNASKED)
    found = planned(asked)
    assert told(found.report) == [("trl", "0.7.1", "0.7.2")] and found.report.proven
    assert links_of(found) == []
    assert [each.links for each in found.report.moved] == [(LINK,)]


@pytest.mark.usefixtures("trl_beside_peft")
def test_ranges_without_a_set_that_links_say_what_it_takes(known: matrix.Matrix) -> None:
    lines = (*OLD, "trl<=0.7.1", "peft>=0.10")
    conflict = pin.plan(task(known, {"torch": "2.5.1"}, PADDED, *lines, ignore=UNASKED), lambda: False)
    assert isinstance(conflict, search.Conflict)
    sentence = f"{LINK} cannot be fixed; that would require peft>=0.2.0,<0.10.0 or trl>=0.7.2 or trl<0.4.2"
    assert sentence in search.explain(conflict)
