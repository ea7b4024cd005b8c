"""From whatever a person has to its explanations: as people type it, with and without an environment."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from compatcheck import matrix
from compatcheck.pipelines.diagnose import Given, diagnose
from compatcheck.report import render
from compatcheck.report.subjects import diagnosis
from compatcheck.terminal.screen import PLAIN
from tests.conftest import ROOT, run_command

LOGS = ROOT / "tests" / "symptoms" / "logs"
MACHINES = ROOT / "tests" / "machines"
MASKED = LOGS / "transformers-5-labels-masked.log"
NAN = LOGS / "transformers-4.48-nan-from-step-16.log"
STATE = LOGS / "trainer_state-nan-from-step-16.json"
HEALTHY = LOGS / "transformers-5-healthy.log"
LABELS, GLM, OVERLAP, REDUCE = "CC-2024-0005", "CC-2024-0001", "CC-2024-0021", "CC-2023-0020"


def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, "diagnose", *map(str, arguments), cwd=cwd)


@cache
def matrix_of_the_checkout() -> matrix.Matrix:
    return matrix.load()


def shape(*inputs: object, snapshot: Path | None = None, assume: tuple[str, ...] = ()) -> Any:
    """The JSON report, from within this process."""
    given = Given(tuple(map(str, inputs)), None, str(snapshot) if snapshot else None, assume)
    return json.loads(render(diagnosis.document(diagnose(given, matrix_of_the_checkout())), "json"))


def explained(found: Any) -> dict[str, str]:
    """The band of each explanation, the most probable first."""
    return {each["finding"]["id"]: each["band"] for each in found["explanations"]}


def sentinel_log(folder: Path, before: int = 20) -> Path:
    path = folder / "zero2.log"
    rows = [{"loss": 2.0 - n / 50, "grad_norm": 1.1, "learning_rate": 1e-5, "step": n + 1} for n in range(before)]
    rows += [
        {"loss": 0.0, "grad_norm": 1.4142135623730951, "learning_rate": 1e-5, "step": n + 1} for n in range(before, 40)
    ]
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_a_masked_run_is_explained_with_no_other_fact() -> None:
    done = run(MASKED)
    assert done.returncode == 1, done.stderr
    found = shape(MASKED)
    first = found["explanations"][0]
    assert (first["finding"]["id"], first["band"], first["fit"]) == (LABELS, "likely", "possible")
    assert list(explained(found).values()).count("likely") == 1 and first["finding"]["missing"] == [
        "training.objective"
    ]
    assert any("ZeRO-2 is not at fault" in text for text in first["misleading"])
    assert found["run"]["signature"] == "labels-masked"
    assert "began     " in done.stdout and "line 13" in done.stdout and LABELS in done.stdout


def test_a_healthy_run_is_said_to_be_healthy() -> None:
    done = run(HEALTHY)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\nhealthy\n") and "CC-" not in done.stdout


def test_what_holds_nothing_is_refused_with_its_own_status(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind\n", encoding="utf-8")
    done = run(path)
    assert (done.returncode, done.stdout) == (3, "") and done.stderr.count("\n") == 1
    assert run(tmp_path / "absent.log").returncode == 2


def test_the_environment_decides_between_the_explanations() -> None:
    assert "likely" not in explained(shape(STATE)).values()
    glm = shape(STATE, snapshot=MACHINES / "glm-4-batch-2-torch-2.5.0.json")
    assert next(iter(explained(glm).items())) == (GLM, "likely")
    cured = shape(STATE, snapshot=MACHINES / "glm-4-batch-2-torch-2.5.1.json")
    assert explained(cured).get(GLM, "long shot") == "long shot"


def test_the_sentinel_of_zero_2_finds_the_overlap_entries(tmp_path: Path) -> None:
    log = sentinel_log(tmp_path)
    found = shape(log, snapshot=MACHINES / "xtuner-llama-3-zero2-deepspeed-0.14.2.json")
    first = {each["finding"]["id"]: each["fit"] for each in found["explanations"][:3]}
    assert first[OVERLAP] == first[REDUCE] == "affected"
    assert found["run"]["onset"]["step"] == 21
    assert found["run"]["last_healthy"]["step"] == 20


def test_facts_that_the_log_states_count_and_the_users_word_over_them(tmp_path: Path) -> None:
    log = sentinel_log(tmp_path)
    banner = "[2024-07-15 10:00:00,1] [INFO] [config.py:997:print]   "
    stated = [
        "[2024-07-15 10:00:00,1] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.14.2, git-hash=x",
        f"{banner}zero_config .................. stage=2 contiguous_gradients=True reduce_scatter=True "
        "reduce_bucket_size=500000000 use_multi_rank_bucket_allreduce=True overlap_comm=True",
        f"{banner}zero_optimization_stage ...... 2",
        f"{banner}world_size ................... 8",
    ]
    log.write_text("\n".join(stated) + "\n" + log.read_text(encoding="utf-8"), encoding="utf-8")
    found = shape(log)
    first = next(each for each in found["explanations"] if each["finding"]["id"] == REDUCE)
    assert first["fit"] in ("affected", "possible")
    assert any(each["location"] == {"file": str(log), "line": 1} for each in first["for"])
    fixed = shape(log, assume=("training.deepspeed.overlap_comm=false",))
    assert all(each["fit"] is None for each in fixed["explanations"] if each["finding"]["id"] == REDUCE)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (
            "[rank1]: TypeError: ChatGLM4Tokenizer._pad() got an unexpected keyword argument 'padding_side'",
            "CC-2024-0004",
        ),
        ("ImportError: cannot import name 'BUFSIZE' from 'numpy' (/opt/numpy/__init__.py)", "CC-2024-0027"),
        ("RuntimeError: operator torchvision::nms does not exist", "CC-2026-0003"),
    ],
)
def test_a_known_error_line_finds_its_entry_with_no_environment(line: str, entry: str, tmp_path: Path) -> None:
    path = tmp_path / "err.txt"
    path.write_text(f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n{line}\n', encoding="utf-8")
    found = shape(path)
    first = {each["finding"]["id"]: each["for"][0]["location"] for each in found["explanations"]}
    assert first[entry] == {"file": str(path), "line": 3}


def test_a_missing_name_is_explained_by_the_releases_that_have_it(tmp_path: Path) -> None:
    path = tmp_path / "err.txt"
    path.write_text("ImportError: cannot import name 'EncoderDecoderCache' from 'transformers'\n", encoding="utf-8")
    found = shape(path, assume=("distributions.transformers=4.40.0",))
    first = next(each for each in found["explanations"] if each["finding"]["id"] == "CC-2026-3124")
    assert first["fit"] == "affected" and first["for"][0]["location"] == {"file": str(path), "line": 1}
    assert any("transformers" in remedy["pins"] for remedy in first["finding"]["remedies"])


def test_the_second_line_of_a_state_dict_error_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "err.txt"
    key = '"model.text_branch.embeddings.position_ids". '
    said = f"RuntimeError: Error(s) in loading state_dict for CLAP:\n\tUnexpected key(s) in state_dict: {key}\n"
    path.write_text(f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n{said}', encoding="utf-8")
    first = shape(path)["explanations"][0]
    assert (first["finding"]["id"], first["for"][0]["location"]["line"]) == ("CC-2023-3446", 4)


def test_an_error_line_and_a_symptom_of_one_log_are_both_explained(tmp_path: Path) -> None:
    path = tmp_path / "both.log"
    rows = "".join(f"{{'loss': 0.0, 'grad_norm': 0.0, 'step': {n}}}\n" for n in range(5))
    path.write_text(f"{rows}ImportError: cannot import name 'BUFSIZE' from 'numpy'\n", encoding="utf-8")
    assert {"CC-2024-0027", LABELS} <= set(explained(shape(path)))


def test_an_error_that_many_faults_share_accuses_no_entry_without_facts(tmp_path: Path) -> None:
    path = tmp_path / "err.txt"
    path.write_text("ImportError: cannot import name 'anything' from 'somewhere'\n", encoding="utf-8")
    found = shape(path)
    assert found["run"]["signature"] == "cannot-import-name" and set(explained(found).values()) <= {"long shot"}


def test_a_fact_that_speaks_against_an_entry_stands_below_its_error_line(tmp_path: Path) -> None:
    path = tmp_path / "err.txt"
    path.write_text("ImportError: cannot import name 'BUFSIZE' from 'numpy'\n", encoding="utf-8")
    explanations = shape(path, assume=("distributions.deepspeed=0.16.0",))["explanations"]
    (own,) = (each for each in explanations if each["finding"]["id"] == "CC-2024-0027")
    assert own["fit"] is None
    assert "deepspeed >=0.5.7,<0.14.4" in own["against"][0]["text"]


def test_a_release_from_after_the_report_is_not_advised(tmp_path: Path) -> None:
    path = tmp_path / "err.txt"
    path.write_text("ImportError: cannot import name 'BUFSIZE' from 'numpy'\n", encoding="utf-8")

    def pins(*assume: str) -> list[Any]:
        findings = [each["finding"] for each in shape(path, assume=assume)["explanations"]]
        return [remedy["pins"] for each in findings if each["id"] == "CC-2024-0027" for remedy in each["remedies"]]

    assert {"deepspeed", "numpy"} == {name for each in pins() for name in each}
    assert [list(each) for each in pins("report.date=2024-06-18")] == [["numpy"]]


def test_files_of_the_project_count_over_a_snapshot(tmp_path: Path) -> None:
    snapshot = MACHINES / "glm-4-batch-2-torch-2.5.0.json"
    (tmp_path / "requirements.txt").write_text("torch==2.5.1\n", encoding="utf-8")
    done = run(STATE, "--snapshot", snapshot)
    assert done.returncode == 1 and f"likely     {GLM}" in done.stdout
    done = run(STATE, "--snapshot", snapshot, "--config", tmp_path / "requirements.txt")
    assert f"likely     {GLM}" not in done.stdout


def test_project_files_can_stand_for_the_environment(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.5.1\ndeepspeed==0.19.3\n", encoding="utf-8")
    found = shape(STATE, tmp_path / "requirements.txt")
    assert found["environment"]["distributions"] == {"torch": "2.5.1", "deepspeed": "0.19.3"}
    assert explained(found).get(GLM, "long shot") == "long shot"


def test_several_logs_are_read_and_the_faulty_one_is_judged() -> None:
    done = run(HEALTHY, MASKED)
    assert done.returncode == 1
    found = shape(HEALTHY, MASKED)
    assert found["log"] == str(MASKED) and [each["path"] for each in found["logs"]] == [str(HEALTHY), str(MASKED)]


def test_a_log_can_come_through_a_pipe() -> None:
    command = [sys.executable, "-m", "compatcheck", "diagnose", "-", "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, input=NAN.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["run"]["signature"] == "nan-gradients-filtered"


def test_the_curves_are_drawn_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "curves.svg"
    run(NAN, "--svg", path)
    assert ElementTree.parse(path).getroot().get("role") == "img"


def test_json_is_strict_and_keeps_its_shape() -> None:
    text = run(STATE, "--format", "json").stdout
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    keys = "schema_version matrix environment inferred facts contrasts symptoms log healthy run logs mismatch"
    assert set(found) == {*keys.split(), "explanations", "next_steps"}
    assert set(found["explanations"][0]) == {
        *("probability", "band", "fit", "for", "against", "asks", "misleading", "finding")
    }
    assert found["run"]["last"]["values"]["grad_norm"] == "nan"


def test_colour_changes_nothing_but_the_colour() -> None:
    found = diagnose(Given((str(NAN),)), matrix_of_the_checkout())
    coloured = render(diagnosis.document(found), "text", PLAIN._replace(colour=True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(diagnosis.document(found), "text")


def test_an_error_is_shown_by_its_line_and_a_loss_by_its_readings(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    rows = [{"loss": loss, "grad_norm": 0.9, "epoch": n / 10} for n, loss in enumerate((2.0, 1.9, "nan", "nan"))]
    readings = "".join(f"{row}\n".replace("'nan'", "nan") for row in rows)
    error = "Traceback (most recent call last):\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    shown = {}
    for text in (readings + error, error):
        log.write_text(text, encoding="utf-8")
        case = diagnose(Given((str(log),)), matrix_of_the_checkout()).case
        shown |= {each.symptom: (each.origin, each.location.line) for each in case.sightings if each.origin != "words"}
    assert shown == {"loss-nan": ("readings", 3), "out-of-memory": ("error", 2)}


TOKENIZER = "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'tokenizer'"
RENAMED = "CC-2026-3124"
IN_JSON = json.dumps({"title": "SFTTrainer", "body": f"fails at once\n\n```\n{TOKENIZER}\n```\n", "comments": []})
IN_HTML = f"<html><body><h1>SFTTrainer</h1><p>it fails</p><pre>{TOKENIZER}</pre><p>and more text</p></body></html>"


@pytest.mark.parametrize(("name", "text", "line"), [("issue.json", IN_JSON, 6), ("page.html", IN_HTML, 1)])
def test_an_error_in_json_or_in_one_line_of_html_is_read_alone(name: str, text: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found = shape(path)
    evidence = next(each for each in found["explanations"] if each["finding"]["id"] == RENAMED)["for"][0]
    assert "no parameter tokenizer of SFTTrainer()" in evidence["text"] and evidence["location"]["line"] == line


@pytest.mark.parametrize("line", ["KeyError: 'label'", "ValueError: Input shape (None, 28) is not (None, 784)"])
def test_the_class_of_an_exception_alone_brings_up_no_entry(line: str, tmp_path: Path) -> None:
    path = tmp_path / "paste.txt"
    path.write_text(f'Traceback (most recent call last):\n  File "prep.py", line 9, in <module>\n{line}\n', "utf-8")
    done = run(path)
    assert done.returncode == 1 and "CC-" not in done.stdout and "less probable: --all" in done.stdout
    assert "CC-" in run(path, "--all").stdout


def test_the_command_of_a_question_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "paste.txt"
    path.write_text("ImportError: cannot import name 'triu' from 'scipy.linalg'\n", encoding="utf-8")
    asks = [ask for each in shape(path)["explanations"] for ask in each["asks"] if "--request" in ask["command"]]
    requests = [shlex.split(ask["command"])[-1] for ask in asks]
    assert any("'" in json.loads(request)["error"] for request in requests)


@pytest.mark.parametrize(("gpu", "offered"), [("V100", False), ("T4", False), ("A100", True), ("", True)])
def test_bfloat16_is_advised_only_on_gpus_that_have_it(gpu: str, offered: bool, tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text(
        f"Qwen2-7B with fp16 on one {gpu} GPU: the loss is 0 and grad_norm is nan from the start.\n", "utf-8"
    )
    found = [each["finding"] for each in shape(path)["explanations"]]
    advised = [
        remedy["config"].get("training.dtype")
        for finding in found
        if finding["id"] == "CC-2021-0861"
        for remedy in finding["remedies"]
    ]
    assert ("bfloat16" in advised) == offered and "float32" in advised


@pytest.mark.parametrize("named", ["vllm 0.5.0", "auto-gptq 0.5.0"])
def test_a_line_of_several_entries_makes_none_likely_whose_package_is_not_known(named: str, tmp_path: Path) -> None:
    path = tmp_path / "paste.txt"
    error = "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"
    path.write_text(f"{error}\n{named}, torch 2.1.2+cu118\n", encoding="utf-8")
    assert (explained(shape(path)).get("CC-2023-1682") == "likely") == named.startswith("auto-gptq")
