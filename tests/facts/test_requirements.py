from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.errors import InputError
from compatcheck.facts import requirements
from compatcheck.model import Location

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
vllm @ https://example.org/vllm.whl
./local
-e .
-c constraints.txt
-r more.txt
"""


def test_pins_ranges_and_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(TEXT)
    (tmp_path / "more.txt").write_text("numpy===1.26.4\ntorch==1.0\n")
    facts = requirements.read(str(path))
    assert facts.known == {
        "distributions": {"torch": "2.5.0+cu118", "flash-attn": "2.7.4.post1", "peft": "0.11.1", "numpy": "1.26.4"},
        "distributions_complete": False,
    }
    assert facts.reasons == {
        "distributions.transformers": "requirements.txt asks for >=4.40, which is not one version",
        "distributions.deepspeed": "requirements.txt gives no version",
        "distributions.accelerate": "requirements.txt asks for ==1.*, which is not one version",
        "distributions.trl": "requirements.txt installs it from a location",
        "distributions.vllm": "requirements.txt installs it from https://example.org/vllm.whl",
    }
    assert facts.locations["distributions.torch"] == Location(str(path), 2)
    assert facts.locations["distributions.peft"] == Location(str(path), 6)
    assert facts.locations["distributions.transformers"] == Location(str(path), 4)
    assert facts.locations["distributions.numpy"] == Location(str(tmp_path / "more.txt"), 1)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("torch=2.5.0\n", "line 1"),
        ("ok\n\n!!!\n", "line 3"),
        ("-r requirements.txt\n", "go round in a circle"),
        ("-r gone.txt\n", "gone.txt: there is no such file"),
    ],
)
def test_a_file_that_is_refused(tmp_path: Path, text: str, seen: str) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=seen) as caught:
        requirements.read(str(path))
    assert "\n" not in str(caught.value)


def test_includes_are_followed_to_a_depth(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(f"-r {number + 1}.txt\n")
    with pytest.raises(InputError, match="too deep"):
        requirements.read(str(tmp_path / "0.txt"))
