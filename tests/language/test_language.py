"""Which language is spoken, and that English costs nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compatcheck import language, matrix
from compatcheck.errors import InputError
from compatcheck.language import checkout, po_files
from compatcheck.matrix import loading
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
    with pytest.raises(
        InputError, match=r"reading COMPATCHECK_LANG: there is no translation for 'fr'; set it to en or zh"
    ):
        language.wanted((), {"COMPATCHECK_LANG": "fr"}, on_terminal=True)


@pytest.mark.parametrize(
    "arguments",
    [("--lang", "zh", "explain", "CC-1"), ("--lang=zh", "explain", "CC-1"), ("explain", "CC-1", "--lang", "zh")],
)
def test_every_verb_takes_the_language_before_its_name_and_after(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run_command(sys.executable, *arguments, cwd=tmp_path)
    said = "compatcheck: 查找 CC-1：矩阵中没有这个条目；可用 `compatcheck matrix search` 查找条目\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_without_a_verb_the_language_still_comes_before_the_paths(tmp_path: Path) -> None:
    done = run_command(sys.executable, "--lang", "zh", "no-such-file", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "compatcheck: 读取 no-such-file：没有这个文件或文件夹；请检查路径\n")


def test_formats_are_listed_in_the_language(tmp_path: Path) -> None:
    done = run_command(sys.executable, "formats", "--lang", "zh", cwd=tmp_path)
    assert "\n  启动脚本\n" in done.stdout and "  a " not in done.stdout and "  the " not in done.stdout


def test_a_text_in_a_variable_is_translated(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("Hello", encoding="utf-8")
    done = run_command(sys.executable, "diagnose", "report.md", "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 3 and "诊断 report.md：其中没有版本、设置、loss 或错误；" in done.stderr


def test_an_unknown_language_is_a_usage_error(tmp_path: Path) -> None:
    done = run_command(sys.executable, "demo", "--lang", "fr", cwd=tmp_path)
    assert done.returncode == 2 and "'fr' is not one of 'en', 'zh'" in done.stderr


def test_an_output_that_cannot_show_it_gets_english_and_is_told_once(tmp_path: Path) -> None:
    english = run_command(sys.executable, "demo", cwd=tmp_path)
    done = run_command(sys.executable, "demo", "--lang", "zh", cwd=tmp_path, PYTHONIOENCODING="cp1252")
    assert done.stdout == english.stdout.replace("✓", "+")
    assert done.stderr.startswith("compatcheck: using English: output encoded as cp1252 cannot show 'zh'")
    assert done.stderr.count("\n") == 1


def test_english_loads_no_catalogue(tmp_path: Path) -> None:
    """Once the matrix of a checkout is compiled, which reads the translations."""
    run_command(sys.executable, "demo", cwd=tmp_path)
    code = "import sys; sys.argv[1:] = ['demo']; from compatcheck.cli import main; import atexit\n"
    code += "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.split()
    assert "compatcheck.language" in loaded
    assert not {"babel", "compatcheck.language.po_files"} & set(loaded)


def test_the_wheel_speaks_chinese_without_the_tools_of_translators(wheel: Wheel, tmp_path: Path) -> None:
    done = wheel.run("demo", "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 1 and "torch 2.5.0" in done.stdout and done.stderr == ""
    assert "梯度" in done.stdout


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a requirements file that fails, and a log of a run whose gradients are NaN."""
    folder = tmp_path_factory.mktemp("chinese")
    (folder / "requirements.txt").write_text("deepspeed==0.14.0\nnumpy==2.1.0\ntorch==2.3.1\n", encoding="utf-8")
    steps = "".join(
        f"{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.0{n}}}\n" for n in range(1, 9)
    )
    (folder / "train.log").write_text(steps, encoding="utf-8")
    return folder


def test_a_verdict_is_read_in_chinese_from_its_head_to_its_next_step(tmp_path: Path) -> None:
    done = run_command(sys.executable, "demo", "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr == ""
    assert "✓ 软件包       记录下来的环境，12 个软件包：Python 3.10.12、torch 2.5.0+cu118" in done.stdout
    assert "- 导入         未跟踪：该环境未安装在本机" in done.stdout
    assert "affected  CC-2024-0001  torch 2.5.0 上带掩码的注意力产生 NaN 梯度" in done.stdout
    assert "          解决   固定版本 'torch>=2.5.1'\n                 2.5.1 把 cuDNN 注意力改回" in done.stdout
    assert done.stdout.endswith("1 affected（受影响）\n下一步：compatcheck explain CC-2024-0001\n")


def test_a_failing_check_keeps_its_status_and_its_json_keys(chinese: Path) -> None:
    told = {
        language: run_command(
            sys.executable, "check", "requirements.txt", "--format", "json", "--lang", language, cwd=chinese
        )
        for language in ("en", "zh")
    }
    english, translated = (json.loads(done.stdout) for done in told.values())
    assert [done.returncode for done in told.values()] == [1, 1]
    assert english.keys() == translated.keys() and english["findings"][0].keys() == translated["findings"][0].keys()
    for mine, theirs in zip(english["findings"], translated["findings"]):
        assert {mine[key] == theirs[key] for key in ("id", "status", "impact", "confidence", "packages")} == {True}
    numpy = next(finding for finding in translated["findings"] if finding["id"] == "CC-2024-0027")
    assert numpy["title"] == "DeepSpeed 0.14.4 之前的版本在 numpy 2 下无法导入"


def test_a_diagnosis_is_read_in_chinese(chinese: Path) -> None:
    done = run_command(sys.executable, "diagnose", "train.log", "--lang", "zh", cwd=chinese)
    assert done.returncode == 1
    assert "表现      loss 0.0 且 grad_norm 为 nan：梯度是 NaN" in done.stdout
    assert "\n依据 " in done.stdout and "\nfor " not in done.stdout


def test_an_entry_is_explained_in_chinese_and_found_by_chinese_words(tmp_path: Path) -> None:
    explained = run_command(sys.executable, "explain", "CC-2024-0003", "--lang", "zh", cwd=tmp_path)
    assert "怎么办（最好的办法在前）" in explained.stdout and "梯度检查点已开启" in explained.stdout
    found = run_command(sys.executable, "matrix", "search", "梯度检查点", "显存", cwd=tmp_path)
    assert found.returncode == 0 and "CC-2024-0003" in found.stdout


@pytest.mark.parametrize(
    ("words", "symptom", "least"),
    [
        (["显存溢出"], "out-of-memory", 20),
        (["爆显存"], "out-of-memory", 20),
        (["损失为0"], "loss-zero", 10),
        (["训练卡住"], "hang", 10),
        (["deepspeed", "卡住"], "hang", 3),
    ],
)
def test_a_symptom_is_searched_in_chinese(words: list[str], symptom: str, least: int, tmp_path: Path) -> None:
    done = run_command(sys.executable, "matrix", "search", *words, "--lang", "zh", cwd=tmp_path)
    found = re.findall(r"^CC-\d{4}-\d{4}", done.stdout, re.M)
    entries = {entry["id"]: entry for entry in matrix.all_entries(matrix.load())}
    assert done.returncode == 0 and len(found) >= least
    assert sum(symptom in entries[each].get("symptoms", ()) for each in found) >= least
    assert words[0] != "deepspeed" or all("deepspeed" in json.dumps(entries[each]).lower() for each in found)


def test_help_is_read_in_chinese(tmp_path: Path) -> None:
    done = run_command(sys.executable, "matrix", "search", "--help", "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 0 and "按词语、症状或报错行搜索条目" in done.stdout and "--lang [en|zh]" in done.stdout


def test_a_sentence_that_was_edited_is_told_in_english(tmp_path: Path) -> None:
    texts = {"a title": "一个标题"}
    entry = {"title": "a title", "summary": "new words", "mechanism": "m", "remedies": [{"why": "w"}]}
    known = matrix.load()._replace(texts=lambda language: texts)
    told = loading.in_language(known, entry, "zh")
    assert (told["title"], told["summary"], told["remedies"]) == ("一个标题", "new words", [{"why": "w"}])


def test_a_checkout_compiles_its_catalogue_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again when its source changes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source, original, read = tmp_path / "some.po", po_files.compiled, []

    def compile_once(path: str) -> bytes:
        read.append(path)
        return original(path)

    monkeypatch.setattr(po_files, "compiled", compile_once)
    for word in ("one", "one more"):
        source.write_text(f'msgid ""\nmsgstr ""\n\nmsgid "1"\nmsgstr "{word}"\n', encoding="utf-8")
        assert checkout.compiled(str(source)) == checkout.compiled(str(source)) == original(source)
    assert len(read) == 2
