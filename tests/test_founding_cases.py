"""The five founding cases: each gives its entry and the right remedy, and its nearest good neighbours give nothing.

Given three ways: as a recorded machine, as the folder of a project, and as a stack that is really installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment.snapshot import read_snapshot
from compatcheck.pipelines.check import check
from compatcheck.results.findings import Finding
from tests.conftest import ROOT, run_command

MACHINES = Path(__file__).parent / "machines"
GLM, OVERLAP, REDUCE, CHECKPOINTING, ADAPTERS = (
    "CC-2024-0001",
    "CC-2024-0021",
    "CC-2023-0020",
    "CC-2024-0003",
    "CC-2024-0044",
)
EXPECTED = {
    "glm-4-batch-2-torch-2.5.0": {GLM: {"pins": {"torch": ">=2.5.1"}}},
    "glm-4-batch-2-torch-2.5.1": {},
    "glm-4-batch-1-torch-2.5.0": {},
    "glm-4-zero2-deepspeed-0.16.4": {OVERLAP: {"config": {"training.deepspeed.overlap_comm": False}}},
    "glm-4-zero2-deepspeed-0.19.3": {"CC-2026-1330": {"pins": {"torch": ">=2.4.0"}}},  # import deepspeed fails
    "glm-4-zero2-without-overlap": {},
    "glm-4-zero3": {},
    "xtuner-llama-3-zero2-deepspeed-0.14.2": {
        OVERLAP: {"config": {"training.deepspeed.overlap_comm": False}},
        REDUCE: {"config": {"training.deepspeed.overlap_comm": False}},
    },
    "xtuner-llama-3-zero3-deepspeed-0.14.2": {},
    "chatglm3-refreshed-files": {CHECKPOINTING: {"kind": "code"}},
    "chatglm3-january-files": {},
    "gemma-qlora-embeddings-peft-0.10.0": {ADAPTERS: {"config": {"training.load_dtype": "bfloat16"}}},
    "gemma-qlora-embeddings-peft-0.12.0": {},
    "gemma-qlora-attention-only-peft-0.10.0": {},
    "gemma-qlora-loaded-in-bf16-peft-0.10.0": {},
}


@pytest.fixture(scope="module")
def known() -> matrix.Matrix:
    return matrix.load(str(ROOT / "matrix"))


def affected(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.id: finding for finding in findings if finding.status in ("affected", "confirmed")}


def test_every_recorded_machine_is_expected() -> None:
    assert {path.stem for path in MACHINES.glob("*.json")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_machine(known: matrix.Matrix, name: str) -> None:
    found = affected(check(read_snapshot(str(MACHINES / f"{name}.json")), known).findings)
    assert set(found) == set(EXPECTED[name])
    for entry_id, best in EXPECTED[name].items():
        remedy = found[entry_id].remedies[0]._asdict()
        assert {key: remedy[key] for key in best} == best


def project(folder: Path, requirements: str, deepspeed: dict[str, Any] | None = None) -> Path:
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    if deepspeed:
        (folder / "ds_config.json").write_text(json.dumps(deepspeed, indent=2), encoding="utf-8")
    return folder


def report_of(folder: Path, *options: str) -> dict[str, Any]:
    done = run_command(sys.executable, "check", str(folder), "--no-probe", "--format", "json", *options, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    shape: dict[str, Any] = json.loads(done.stdout)
    return shape


def assumed(**settings: object) -> list[str]:
    pairs = (f"{key.replace('__', '.')}={json.dumps(value)}" for key, value in settings.items())
    return [word for pair in pairs for word in ("--assume", pair)]


def bad_ids(report: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in report["findings"] if finding["status"] == "affected"}


ZERO2 = {
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2, "overlap_comm": True, "contiguous_gradients": True},
}
GLM_RUN = assumed(
    gpu__compute_capability="8.0",
    training__attention="sdpa",
    training__dtype="bfloat16",
    training__per_device_train_batch_size=2,
)
GEMMA_RUN = assumed(
    training={
        "framework": "transformers",
        "quantization": {"bits": 4, "type": "nf4"},
        "load_dtype": None,
        "deepspeed": None,
        "lora": {"target_modules": ["q_proj", "embed_tokens", "lm_head"]},
    }
)
CHATGLM_CODE = """
class ChatGLMPreTrainedModel(PreTrainedModel):
    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None):
        if not self.supports_gradient_checkpointing:
            raise ValueError(self.__class__.__name__)
"""


@pytest.mark.parametrize(
    ("torch", "expected"), [("2.5.0+cu118", {GLM}), ("2.5.1+cu118", set()), ("2.4.1+cu118", set())]
)
def test_project_of_the_glm_4_run(tmp_path: Path, torch: str, expected: set[str]) -> None:
    folder = project(tmp_path, f"torch=={torch}\ntransformers==4.48.0\n")
    assert bad_ids(report_of(folder, *GLM_RUN)) == expected


@pytest.mark.parametrize(
    ("deepspeed", "stage", "overlap", "expected"),
    [
        ("0.14.2", 2, True, {OVERLAP, REDUCE}),
        ("0.16.4", 2, True, {OVERLAP}),
        ("0.16.4", 2, False, set()),
        ("0.16.4", 3, True, set()),
        ("0.19.3", 2, True, {"CC-2026-1330"}),
        ("0.12.3", 2, True, {REDUCE}),
    ],
)
def test_project_with_a_deepspeed_json(
    tmp_path: Path, deepspeed: str, stage: int, overlap: bool, expected: set[str]
) -> None:
    zero = {**ZERO2["zero_optimization"], "stage": stage, "overlap_comm": overlap}
    folder = project(tmp_path, f"torch==2.3.1\ndeepspeed=={deepspeed}\n", {**ZERO2, "zero_optimization": zero})
    report = report_of(folder, *assumed(training__torch_compile=False))
    assert bad_ids(report) == expected
    for finding in report["findings"]:
        if finding["id"] in expected:
            place = finding["location"]
            assert Path(place["file"]).name in ("ds_config.json", "requirements.txt")
            step = finding["remedies"][0]["steps"][0]
            if finding["id"] == "CC-2026-1330":
                assert Path(place["file"]).name == "requirements.txt" and "torch>=2.4.0" in step
                continue
            assert '"zero_optimization": {"overlap_comm": false}' in step and "ds_config.json" in step


@pytest.mark.parametrize("body", ["pass", "super().gradient_checkpointing_enable(gradient_checkpointing_kwargs)"])
def test_project_with_chatglm3_files(tmp_path: Path, body: str) -> None:
    folder = project(tmp_path, "torch==2.1.2\ntransformers==4.37.2\n")
    model = folder / "chatglm3-6b"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "chatglm", "auto_map": {"AutoModel": "modeling_chatglm.A"}}')
    (model / "modeling_chatglm.py").write_text(CHATGLM_CODE + f"        {body}\n")
    report = report_of(folder, *assumed(training__gradient_checkpointing=True))
    assert bad_ids(report) == ({CHECKPOINTING} if body == "pass" else set())


@pytest.mark.parametrize(("peft", "expected"), [("0.10.0", {ADAPTERS}), ("0.12.0", set())])
def test_project_of_the_gemma_run(tmp_path: Path, peft: str, expected: set[str]) -> None:
    lines = f"torch==2.3.0+cu121\ntransformers==4.40.2\nbitsandbytes==0.43.1\npeft=={peft}\n"
    assert bad_ids(report_of(project(tmp_path, lines), *GEMMA_RUN)) == expected


@pytest.fixture(scope="session")
def old_stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A really installed stack of early 2025, with the adapters and the DeepSpeed of 2024."""
    folder = tmp_path_factory.mktemp("old-stack") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q"]
    stack = ["torch==2.13.0", "transformers==4.48.0", "peft==0.11.1", "accelerate==1.2.1", "numpy<2", "psutil"]
    subprocess.run([*install, *stack, "setuptools<82", "wheel"], check=True)
    return python


def probed(python: Path | str, cwd: Path, *options: str) -> dict[str, str]:
    done = run_command(
        sys.executable, "check", "--python", str(python), "--format", "json", "--show-refuted", *options, cwd=cwd
    )
    assert done.returncode in (0, 1), done.stderr
    return {finding["id"]: finding["status"] for finding in json.loads(done.stdout)["findings"]}


CPU_RUN = assumed(
    training={
        "framework": "transformers",
        "attention": "sdpa",
        "padding_side": "left",
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 4,
        "deepspeed": None,
        "quantization": None,
        "load_dtype": "float16",
        "dtype": "float32",
        "optimizer": "adamw_torch",
        "lora": {"target_modules": ["q_proj"], "modules_to_save": None, "autocast_adapter_dtype": None},
    },
    model={"type": "llama", "traits": []},
)


@pytest.mark.slow
@pytest.mark.network
def test_old_stack_that_is_really_installed_is_convicted_by_its_probes(old_stack: Path, tmp_path: Path) -> None:
    found = probed(old_stack, tmp_path, *CPU_RUN)
    convicted = {entry_id for entry_id, status in found.items() if status == "confirmed"}
    assert {"CC-2026-0007", "CC-2024-0040", "CC-2024-0041"} <= convicted


@pytest.mark.stack
def test_current_stack_is_clean_under_the_same_settings(stack: Path, tmp_path: Path) -> None:
    found = probed(stack, tmp_path, *CPU_RUN)
    assert [entry_id for entry_id, status in found.items() if status in ("affected", "confirmed")] == []
