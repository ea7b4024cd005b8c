from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.environment import Location
from compatcheck.errors import InputError
from compatcheck.project.requirements.formats import requirements_txt

TEXT = """\
# the stack
torch==2.5.0+cu118  # as tested
Flash_Attn == 2.7.4.post1 ; python_version >= "3.8"
transformers>=4.40
deepspeed
peft[extra]==0.11.1 \\
    --hash=sha256:abc \\
    --hash=sha256:def
--extra-index-url https://example.org/simple
tomli==2.0; python_version < "3"
accelerate==1.*
git+https://github.com/org/name#egg=trl
vllm @ https://example.org/vllm.tar.gz
xformers @ https://example.org/xformers-0.0.28.post3-cp311-cp311-manylinux_2_28_x86_64.whl
./local
-e .
-c constraints.txt
-r more.txt
"""


def test_pins_ranges_and_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(TEXT)
    (tmp_path / "more.txt").write_text("numpy===1.26.4\ntorch==1.0\n")
    facts = requirements_txt.read(str(path))
    assert facts.without("requirements").facts == {
        "distributions": {
            "torch": "2.5.0+cu118",
            "flash-attn": "2.7.4.post1",
            "peft": "0.11.1",
            "xformers": "0.0.28.post3",
            "numpy": "1.26.4",
        },
        "distributions_complete": False,
        "distribution_ranges": {
            "transformers": ">=4.40",
            "deepspeed": "",
            "accelerate": "==1.*",
            "trl": "",
            "vllm": "",
        },
    }
    assert facts.reasons == {
        "distributions.transformers": "requirements.txt requires >=4.40, which is not one version",
        "distributions.deepspeed": "requirements.txt has no version",
        "distributions.accelerate": "requirements.txt requires ==1.*, which is not one version",
        "distributions.trl": "requirements.txt installs the package from a location",
        "distributions.vllm": "requirements.txt installs the package from https://example.org/vllm.tar.gz",
    }
    assert facts.locations["distributions.torch"] == Location(str(path), 2)
    assert facts.locations["distributions.peft"] == Location(str(path), 6)
    assert facts.locations["distributions.transformers"] == Location(str(path), 4)
    assert facts.locations["distributions.numpy"] == Location(str(tmp_path / "more.txt"), 1)


def test_constraints_narrow_what_is_asked_for_and_add_nothing(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch>=2.4\ntransformers\npeft>=0.10\n-c limits/constraints.txt\n")
    (tmp_path / "limits").mkdir()
    limits = tmp_path / "limits" / "constraints.txt"
    limits.write_text("transformers==4.48.0\ntorch<2.6,!=2.5.0\ndeepspeed==0.14.4\n-r further.txt\n")
    (tmp_path / "limits" / "further.txt").write_text("peft<0.12\n")
    facts = requirements_txt.read(str(path))
    assert facts.facts["distributions"] == {"transformers": "4.48.0"}
    assert facts.facts["distribution_ranges"] == {"torch": ">=2.4,<2.6,!=2.5.0", "peft": ">=0.10,<0.12"}
    assert facts.locations["distributions.transformers"] == Location(str(limits), 1)
    assert facts.locations["distributions.torch"] == Location(str(path), 1)


def test_a_constraint_that_may_not_apply_limits_nothing(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch>=2.4\n-c constraints.txt\n")
    (tmp_path / "constraints.txt").write_text("torch==2.5.0; python_version < '3.11'\n")
    assert requirements_txt.read(str(path)).facts["distribution_ranges"] == {"torch": ">=2.4"}
    assert requirements_txt.read(str(path), "3.10").facts["distributions"] == {"torch": "2.5.0"}


@pytest.mark.parametrize(
    ("encoding", "newline"), [("utf-8-sig", "\r\n"), ("utf-16", "\r\n"), ("utf-16", "\n"), ("utf-8", "\r\n")]
)
def test_what_windows_tools_write_is_read(tmp_path: Path, encoding: str, newline: str) -> None:
    path = tmp_path / "requirements.txt"
    path.write_bytes(newline.join(["torch==2.5.0", "peft==0.11.1", ""]).encode(encoding))
    assert requirements_txt.read(str(path)).facts["distributions"] == {"torch": "2.5.0", "peft": "0.11.1"}


@pytest.mark.parametrize(
    ("option", "version"),
    [
        ("--index-url https://download.pytorch.org/whl/cu118", "2.5.0+cu118"),
        ("--extra-index-url=https://download.pytorch.org/whl/cpu", "2.5.0+cpu"),
        ("-i https://example.org/whl/cu118", "2.5.0"),
        ("--index-url https://download.pytorch.org/whl/nightly/cu121", "2.5.0"),
    ],
)
def test_the_index_of_a_build_of_torch_names_the_build_that_a_pin_means(
    tmp_path: Path, option: str, version: str
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"{option}\ntorch==2.5.0\ntransformers==4.48.0\ntorchvision>=0.20\n")
    facts = requirements_txt.read(str(path))
    assert facts.facts["distributions"] == {"torch": version, "transformers": "4.48.0"}
    assert facts.facts["distribution_ranges"] == {"torchvision": ">=0.20"}


SEVERAL = "numpy==1.26.4 ; python_version < '3.12'\nnumpy==2.1.0 ; python_version >= '3.12'\n"


@pytest.mark.parametrize(("python", "version"), [("3.11.7", "1.26.4"), ("3.12", "2.1.0"), ("3.13.1", "2.1.0")])
def test_markers_are_judged_by_the_python_that_is_known(tmp_path: Path, python: str, version: str) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(SEVERAL)
    assert requirements_txt.read(str(path), python).facts["distributions"] == {"numpy": version}


def test_markers_that_depend_on_an_unknown_python_leave_it_open(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(SEVERAL + "tomli>=2; python_version < '3.11'\n")
    facts = requirements_txt.read(str(path))
    assert facts.facts == {"distributions": {}, "distributions_complete": False}
    assert facts.reasons["distributions.numpy"] == (
        'requirements.txt requires ==1.26.4 where python_version < "3.12"; ==2.1.0 where python_version >= "3.12"; '
        "it is unknown which of these applies"
    )


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("torch=2.5.0\n", "line 1"),
        ("ok\n\n!!!\n", "line 3"),
        ("-r requirements.txt\n", "form a cycle"),
        ("-c requirements.txt\n", "form a cycle"),
        ("-r gone.txt\n", "requirements.txt: line 1 names gone.txt"),
    ],
)
def test_a_file_that_is_refused(tmp_path: Path, text: str, seen: str) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=seen) as caught:
        requirements_txt.read(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "raw", [b"torch==2.5.0\n\xff\xfe", b"\xff\xfet\x00o\x00r", "torch==2.5.0 # é".encode("latin-1")]
)
def test_bytes_that_are_no_text_are_told_in_one_line(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "requirements.txt"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="is not UTF-") as caught:
        requirements_txt.read(str(path))
    assert "\n" not in str(caught.value)


def test_includes_are_followed_to_a_depth(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(f"-r {number + 1}.txt\n")
    with pytest.raises(InputError, match="too deep"):
        requirements_txt.read(str(tmp_path / "0.txt"))
