"""Pins from the real resolver, with what the matrix demands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compatcheck import matrix
from compatcheck.advice.pins import (
    Move,
    Unsolvable,
    Wanted,
    annotate,
    demands,
    installed_wanted,
    lost_labels,
    read_wanted,
    resolve,
    resolved_versions,
)
from compatcheck.check import pin
from compatcheck.errors import InputError
from compatcheck.model import Environment, Finding, Remedy, Target

SOURCES = Path(__file__).parents[2] / "matrix"
TARGET = Target(sys.executable, "{}.{}.{}".format(*sys.version_info[:3]), sys.prefix, (), "test")
GLM = {
    "cuda": {"runtime": "12.4"},
    "gpus": [{"compute_capability": "8.0"}],
    "training": {"attention": "sdpa", "per_device_train_batch_size": 2, "dtype": "bfloat16"},
}


def finding(*remedies: Remedy) -> Finding:
    return Finding("CC-2024-0001", "t", "affected", "hang", "reported", ("torch",), "s", (), remedies, ())


def test_exact_pins_are_wishes_and_ranges_are_not(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "# stack\nTorch==2.5.0+cu118  # pinned\npeft[dev]==0.14.0 ; python_version >= '3.8'\n"
        "transformers>=4.40,!=4.46.*\nnumpy==1.*\nrich==13.7.0 \\\n    --hash=sha256:00\n-r more.txt\n",
        encoding="utf-8",
    )
    wanted = read_wanted([str(path)])
    assert [line for line in wanted.lines if line] == [
        "Torch",
        "peft[dev] ; python_version >= '3.8'",
        "transformers>=4.40,!=4.46.*",
        "numpy==1.*",
        "rich",
        f"-r {tmp_path / 'more.txt'}",
    ]
    assert wanted.preferred == {"torch": "2.5.0+cu118", "peft": "0.14.0", "rich": "13.7.0"}


@pytest.mark.parametrize("content", [None, b"torch==2.5.0 # \xff\n"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "requirements.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="requirements.txt"):
        read_wanted([str(path)])


def test_the_tools_of_an_environment_are_not_pinned() -> None:
    assert installed_wanted(["torch", "pip", "compatcheck"], {}).lines == ("torch",)


def test_remedies_by_versions_are_tried_in_their_order() -> None:
    ways = demands(finding(Remedy("pins", "", {"torch": ">=2.5.1"}), Remedy("pins", "", {"torch": "<=2.4.1"})))
    assert [[move.specifier for move in way] for way in ways] == [[">=2.5.1"], ["<=2.4.1"]]
    assert demands(finding(Remedy("config", "", config={"training.attention": "eager"}))) == []


def test_every_moved_line_says_which_entry_moved_it() -> None:
    wanted = Wanted(
        ("torch", "torchvision", "peft"), {"torch": "2.5.0+cu118", "torchvision": "0.20.0", "peft": "0.14.0"}
    )
    text = annotate(
        "peft==0.14.0\ntorch==2.5.1\ntorchvision==0.20.1\n", wanted, [Move("torch", "==2.5.1", "CC-2024-0001")]
    )
    assert text.splitlines() == [
        "peft==0.14.0",
        "torch==2.5.1  # compatcheck: CC-2024-0001, was 2.5.0+cu118",
        "torchvision==0.20.1  # compatcheck: with CC-2024-0001, was 0.20.0",
    ]


def test_a_build_that_the_pins_leave_open_is_named() -> None:
    wanted = Wanted(("torch", "peft"), {"torch": "2.5.0+cu118", "peft": "0.14.0", "gone": "1.0+cpu"})
    assert lost_labels("peft==0.14.0\ntorch==2.5.1\n", wanted) == {"torch": "cu118"}
    assert lost_labels("torch==2.5.1+cu118\n", wanted) == {}


@pytest.mark.network
def test_the_glm_4_stack_moves_by_one_patch_release() -> None:
    wanted = Wanted(("torch", "transformers"), {"torch": "2.5.0", "transformers": "4.48.0"})
    result = pin(Environment(GLM), matrix.load(str(SOURCES)), wanted, TARGET)
    versions = resolved_versions(result.text)
    assert versions["torch"] == "2.5.1"
    assert versions["transformers"] == "4.48.0"
    assert "torch==2.5.1  # compatcheck: CC-2024-0001, was 2.5.0" in result.text.splitlines()
    assert not [f for f in result.report.findings if f.status == "affected"]


@pytest.mark.network
def test_a_clean_stack_stays_as_it_is() -> None:
    wanted = Wanted(("packaging", "click"), {"packaging": "24.0", "click": "8.1.7"})
    result = pin(Environment({}), matrix.load(str(SOURCES)), wanted, TARGET)
    assert resolved_versions(result.text)["packaging"] == "24.0"
    assert "compatcheck" not in result.text


@pytest.mark.network
def test_a_range_of_the_user_that_forbids_the_remedy_is_told() -> None:
    wanted = Wanted(("torch<2.5.1",), {"torch": "2.5.0"})
    result = pin(Environment(GLM), matrix.load(str(SOURCES)), wanted, TARGET)
    assert [f.id for f in result.report.findings if f.status == "affected"] == ["CC-2024-0001"]
    assert "torch" in result.causes[0] and result.causes[0].startswith("CC-2024-0001")


@pytest.mark.network
def test_contradictory_requirements_are_explained_in_one_line() -> None:
    with pytest.raises(Unsolvable) as refusal:
        resolve(Wanted(("packaging>=24", "packaging<23"), {}), (), TARGET)
    assert "packaging" in str(refusal.value) and "\n" not in str(refusal.value)
