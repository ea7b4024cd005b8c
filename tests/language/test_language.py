"""Which language is spoken, and that English costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compatcheck import language
from compatcheck.errors import InputError
from tests.conftest import Wheel, run_command

CHINESE_LOCALE = {"LANG": "zh_CN.UTF-8"}


@pytest.mark.parametrize(
    ("arguments", "environ", "on_terminal", "expected"),
    [
        ((), {}, True, "en"),
        (("--lang", "zh", "demo"), {}, False, "zh"),
        (("demo", "--lang=zh"), {}, False, "zh"),
        (("demo", "--lang", "en"), {"COMPATCHECK_LANG": "zh", **CHINESE_LOCALE}, True, "en"),
        (("demo", "--lang"), {}, True, "en"),
        ((), {"COMPATCHECK_LANG": "zh"}, False, "zh"),
        ((), {"COMPATCHECK_LANG": "en", **CHINESE_LOCALE}, True, "en"),
        ((), CHINESE_LOCALE, True, "zh"),
        ((), CHINESE_LOCALE, False, "en"),
        ((), {"LANG": "zh_CN.GBK@pinyin"}, True, "zh"),
        ((), {"LC_ALL": "C.UTF-8", **CHINESE_LOCALE}, True, "en"),
        ((), {"LC_MESSAGES": "zh_CN", "LANG": "de_DE.UTF-8"}, True, "zh"),
        ((), {"LANG": "zh_TW.UTF-8"}, True, "en"),
    ],
)
def test_what_chooses_the_language(
    arguments: tuple[str, ...], environ: dict[str, str], on_terminal: bool, expected: str
) -> None:
    assert language.wanted(arguments, environ, on_terminal=on_terminal) == expected


def test_a_language_without_texts_is_refused() -> None:
    with pytest.raises(InputError, match=r"reading COMPATCHECK_LANG: no texts are in 'fr'; set it to en or zh"):
        language.wanted((), {"COMPATCHECK_LANG": "fr"}, on_terminal=True)


@pytest.mark.parametrize(
    "arguments",
    [("--lang", "zh", "explain", "CC-1"), ("--lang=zh", "explain", "CC-1"), ("explain", "CC-1", "--lang", "zh")],
)
def test_every_verb_takes_the_language_before_its_name_and_after(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run_command(sys.executable, *arguments, cwd=tmp_path)
    said = "compatcheck: 查找 CC-1：矩阵中没有这个条目；请用 compatcheck matrix list 查看\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_without_a_verb_the_language_still_comes_before_the_paths(tmp_path: Path) -> None:
    done = run_command(sys.executable, "--lang", "zh", "no-such-file", cwd=tmp_path)
    assert done.returncode == 2 and "no-such-file：" in done.stderr


def test_an_unknown_language_is_a_usage_error(tmp_path: Path) -> None:
    done = run_command(sys.executable, "demo", "--lang", "fr", cwd=tmp_path)
    assert done.returncode == 2 and "'fr' is not one of 'en', 'zh'" in done.stderr


def test_an_output_that_cannot_show_it_gets_english_and_is_told_once(tmp_path: Path) -> None:
    english = run_command(sys.executable, "demo", cwd=tmp_path)
    done = run_command(sys.executable, "demo", "--lang", "zh", cwd=tmp_path, PYTHONIOENCODING="cp1252")
    assert done.stdout == english.stdout
    assert done.stderr.startswith("compatcheck: speaking English: an output in cp1252 cannot show the texts in 'zh'")
    assert done.stderr.count("\n") == 1


def test_english_loads_no_catalogue() -> None:
    code = "import sys; sys.argv[1:] = ['demo']; from compatcheck.cli import main; import atexit\n"
    code += "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.split()
    assert "compatcheck.language" in loaded
    assert not {"babel", "compatcheck.language._source"} & set(loaded)


def test_the_wheel_speaks_chinese_without_the_tools_of_translators(wheel: Wheel, tmp_path: Path) -> None:
    done = wheel.run("demo", "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 1 and "torch 2.5.0" in done.stdout and done.stderr == ""
    assert "梯度" in done.stdout
