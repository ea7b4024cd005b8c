"""Lowest versions that stand in a library's code, read release by release."""

from __future__ import annotations

from pathlib import Path

from tools.tables import code_floors

CODE = """
import packaging.version
{name} = "{bound}"
SOMETHING_VERSION = "9.9"
def is_torchao_available():
    TORCHAO_MINIMUM_VERSION = packaging.version.parse("0.4.0")
"""


def test_each_constant_has_a_run_for_each_of_its_values(tmp_path: Path) -> None:
    for version, name, bound in (
        ("4.44.2", "ACCELERATE_MIN_VERSION", "0.21.0"),
        ("4.45.0", "ACCELERATE_MIN_VERSION", "0.26.0"),
        ("4.57.6", "ACCELERATE_MIN_VERSION", "0.26.0"),
        ("5.0.0", "MIN_PEFT_VERSION", "0.18.0"),
        ("5.1.0rc1", "MIN_PEFT_VERSION", "9.9"),
    ):
        package = tmp_path / version / "transformers"
        (package / "models").mkdir(parents=True)
        (package / "utils.py").write_text(CODE.format(name=name, bound=bound))
        (package / "models" / "old.py").write_text('DETR_MIN_VERSION = "1.0"\n')
        (tmp_path / version / f"transformers-{version}.dist-info").mkdir()
    printed = code_floors.render([tmp_path]).partition("\n[transformers]\n")[2]
    assert printed == (
        '"utils.ACCELERATE_MIN_VERSION" = [\n'
        '    ["4.44.2", "4.44.2", "0.21.0"],\n'
        '    ["4.45.0", "4.57.6", "0.26.0"],\n'
        "]\n"
        '"utils.MIN_PEFT_VERSION" = [\n    ["5.0.0", "5.0.0", "0.18.0"],\n]\n'
        '"utils.TORCHAO_MINIMUM_VERSION" = [\n    ["4.44.2", "5.0.0", "0.4.0"],\n]\n'
    )
