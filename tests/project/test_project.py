from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compatcheck.environment import Environment, Unknown
from compatcheck.errors import InputError
from compatcheck.project.overlay import with_paths
from compatcheck.project.reading import read_paths
from compatcheck.project.sources import Source


def lay_deepspeed(path: Path, stage: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"zero_optimization": {"stage": stage}}))
    return str(path)


def test_a_folder_is_searched_for_what_we_read(tmp_path: Path) -> None:
    deepspeed = lay_deepspeed(tmp_path / "configs" / "zero2.json", 2)
    (tmp_path / "requirements-dev.txt").write_text("torch==2.5.0\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "glm"}')
    (tmp_path / "package.json").write_text("{}")
    for skipped in (".git/a.json", "node_modules/b.json", "a/b/c/d.json", "env2/lib/e.json"):
        lay_deepspeed(tmp_path / skipped, 3)
    (tmp_path / "env2" / "pyvenv.cfg").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path)
    reading = read_paths([str(tmp_path)])
    assert set(reading.sources) == {
        Source("deepspeed", deepspeed),
        Source("model", str(tmp_path / "model")),
        Source("requirements_txt", str(tmp_path / "requirements-dev.txt")),
    }
    assert reading.environment.get("training.deepspeed.zero_stage") == 2
    assert reading.environment.get("model.type") == "glm"
    assert reading.environment.get("distributions.torch") == "2.5.0"


def test_two_configurations_in_a_folder_decide_nothing_until_one_is_named(tmp_path: Path) -> None:
    two = lay_deepspeed(tmp_path / "zero2.json", 2)
    three = lay_deepspeed(tmp_path / "zero3.json", 3)
    reading = read_paths([str(tmp_path)])
    unknown = reading.environment.get("training.deepspeed.zero_stage")
    assert isinstance(unknown, Unknown)
    assert two in (unknown.reason or "") and three in (unknown.reason or "")
    named = read_paths([str(tmp_path), three])
    assert named.environment.get("training.deepspeed.zero_stage") == 3
    assert named.sources == (Source("deepspeed", three),)
    assert "training.deepspeed" not in named.environment.reasons


@pytest.mark.parametrize(
    ("name", "content", "seen"),
    [
        ("notes.md", "hello", "unrecognised file; `compatcheck formats` lists what is supported"),
        ("other.json", "{}", "unrecognised file"),
        ("broken.json", "{", "line 1, column 2"),
        (None, None, "there is no such file or folder"),
    ],
)
def test_a_named_file_that_is_none_of_ours(tmp_path: Path, name: str | None, content: str, seen: str) -> None:
    path = tmp_path / (name or "gone")
    if name:
        path.write_text(content)
    with pytest.raises(InputError, match=seen):
        read_paths([str(path)])


def test_a_file_that_is_not_there_is_told_with_what_stands_beside_it(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("accelerate launch train.py\n")
    with pytest.raises(InputError, match=r"trian.sh: there is no such file or folder; did you mean .*train.sh\?$"):
        read_paths([str(tmp_path / "trian.sh")])
    with pytest.raises(InputError, match=r"there is no such file or folder; check the path"):
        read_paths([str(tmp_path / "other" / "train.sh")])


def test_broken_files_met_on_the_way_are_passed_over_unless_their_name_says_deepspeed(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "other.json").write_text("{")
    (folder / "config.json").write_text("[1, 2")
    for path in (tmp_path, folder):
        assert read_paths([str(path)]).sources == ()
    (folder / "ds_config.json").write_text('{"a": 1,}')
    with pytest.raises(InputError, match=r"ds_config.json: line 1, column \d+: a comma"):
        read_paths([str(tmp_path)])


def test_a_broken_configuration_in_a_model_folder_that_is_named_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="config.json: line 1"):
        read_paths([str(tmp_path)])


def test_a_model_folder_and_its_config_name_the_same(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "glm"}')
    for path in (tmp_path, tmp_path / "config.json"):
        assert read_paths([str(path)]).sources == (Source("model", str(tmp_path)),)


def test_pins_take_the_place_of_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.5.0\n")
    environment = Environment(
        {
            "python": "3.11.7",
            "target": {"prefix": "/venv"},
            "distributions": {"torch": "2.4.0", "numpy": "2.0"},
            "distributions_complete": True,
            "unmet_requirements": [],
            "unresolved_imports": [],
            "torch_build": {"cuda": "12.1"},
            "cuda": {"runtime": "12.1", "driver": "550.1"},
        },
        {"torch_build.architectures": "why", "gpus": "none here"},
    )
    pinned = with_paths(environment, [str(tmp_path)])
    assert pinned.without("requirements").facts == {
        "python": "3.11.7",
        "distributions": {"torch": "2.5.0"},
        "distributions_complete": False,
        "cuda": {"driver": "550.1"},
    }
    assert pinned.reasons["gpus"] == "none here" and "torch_build.architectures" not in pinned.reasons
    kept = with_paths(environment, [str(tmp_path)], pins="ignored")
    assert kept.facts == environment.facts
    merged = with_paths(environment, [str(tmp_path)], pins="over")
    assert merged.without("requirements").facts == {
        "python": "3.11.7",
        "target": {"prefix": "/venv"},
        "distributions": {"torch": "2.5.0", "numpy": "2.0"},
        "distributions_complete": True,
        "cuda": {"driver": "550.1"},
    }


@pytest.mark.parametrize("pins", ["ignored", "over", "instead"])
def test_ranges_alone_leave_what_is_installed(tmp_path: Path, pins: Any) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    installed = {"distributions": {"torch": "2.4.0"}, "distributions_complete": True, "unmet_requirements": []}
    found = with_paths(Environment(installed), [str(tmp_path)], pins=pins)
    assert found.without("requirements").facts == installed
    assert ("requirements" in found.facts) == (pins != "ignored")


def test_two_deepspeed_files_that_are_named_are_judged_one_at_a_time(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('{"zero_optimization": {"stage": 2}}')
    with pytest.raises(InputError, match=r"a\.json, .*b\.json: these are several"):
        read_paths([str(tmp_path / "a.json"), str(tmp_path / "b.json")])


def test_a_folder_without_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compatcheck.files.limits.FOLDER_ENTRIES", 3)
    for number in range(5):
        (tmp_path / f"{number}.log").touch()
    with pytest.raises(InputError, match="contains over 3 files"):
        read_paths([str(tmp_path)])


@pytest.mark.parametrize("content", [b"[" * 100_000 + b"]" * 100_000, b" " * ((16 << 20) + 1)])
def test_a_configuration_that_is_a_bomb_is_told_wherever_it_lies(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(
        InputError, match=r"config\.json: the (content is nested too deeply|file is larger than 16 MiB)"
    ):
        read_paths([str(tmp_path)])


OLD_LOSS = """from transformers import Trainer
class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        return model(**inputs).loss
"""
NEW_LOSS = OLD_LOSS.replace("return_outputs=False", "return_outputs=False, **kwargs")
LACKS = "compute-loss-lacks-num-items"


def test_a_script_with_a_trainer_of_its_own_is_read_and_has_its_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(OLD_LOSS, encoding="utf-8")
    (tmp_path / "other.py").write_text("print('transformers', 'class Trainer')\n", encoding="utf-8")
    for paths in ([str(script)], [str(tmp_path)]):
        reading = read_paths(paths)
        assert reading.sources == (Source("python_script", str(script)),)
        assert reading.environment.get("trainer.traits") == [LACKS]
        at = reading.environment.locations[f"trainer.traits.{LACKS}"]
        assert (at.file, at.line) == (str(script), 3)
    with pytest.raises(InputError, match="unrecognised file"):
        read_paths([str(tmp_path / "other.py")])


def test_script_that_only_imports_a_library_is_read_where_it_is_named(tmp_path: Path) -> None:
    script = tmp_path / "prepare.py"
    script.write_text("from datasets import load_metric\n", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("datasets==2.0.0\n", encoding="utf-8")
    assert read_paths([str(script)]).sources == (Source("python_script", str(script)),)
    assert "python_script" not in {source.kind for source in read_paths([str(tmp_path)]).sources}


def test_two_scripts_that_differ_are_only_suspected_until_one_is_named(tmp_path: Path) -> None:
    for name, source in (("old.py", OLD_LOSS), ("new.py", NEW_LOSS)):
        (tmp_path / name).write_text(source, encoding="utf-8")
    found = read_paths([str(tmp_path)]).environment
    why = found.reasons["trainer.script"]
    assert "old.py" in why and "new.py" in why
    assert (found.get("trainer.traits"), found.get("trainer.suspected")) == ([], [LACKS])
    named = read_paths([str(tmp_path), str(tmp_path / "new.py")]).environment
    assert named.get("trainer.traits") == []
    assert isinstance(named.get("trainer.suspected"), Unknown)


def test_a_trainer_and_the_script_that_makes_its_arguments_belong_together(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OLD_LOSS, encoding="utf-8")
    (tmp_path / "train.py").write_text(
        "from transformers import TrainingArguments\nTrainingArguments(no_cuda=True)\n", encoding="utf-8"
    )
    found = read_paths([str(tmp_path)]).environment
    assert found.get("trainer.traits") == ["arguments-gone-in-transformers-5", LACKS]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe class Trainer transformers", b"class Trainer transformers (", b"class " * 300_000]
)
def test_a_script_that_cannot_be_read_is_passed_over_in_a_folder(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.py").write_bytes(content)
    assert read_paths([str(tmp_path)]).sources == ()
