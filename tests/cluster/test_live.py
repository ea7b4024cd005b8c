"""`compatcheck cluster` with real ranks on this machine: what is wrong is named, and everybody ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.ranks import COMMAND, Rank, planted, run

pytestmark = [pytest.mark.stack, pytest.mark.slow]

COLLECTIVES = ("--only", "collectives", "--budget", "1")
PLANT = """
import importlib.abc, importlib.util, os, sys

def break_it(module):
    original = module.all_reduce
{code}
    module.all_reduce = all_reduce

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "torch.distributed":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (run(module), break_it(module))
        return spec

sys.meta_path.insert(0, Finder())
"""
ONE_TOO_MUCH = """
    def all_reduce(tensor, *args, **options):
        original(tensor, *args, **options)
        tensor[-1] += 1
"""
SLEEPS = """
    def all_reduce(tensor, *args, **options):
        import time
        time.sleep(600)
"""
DIES = """
    def all_reduce(tensor, *args, **options):
        os._exit(7)
"""
KILLS_ITS_RANK = """
    def all_reduce(tensor, *args, **options):
        os.kill(os.getppid(), 9)
"""


def broken(folder: Path, code: str) -> Rank:
    return planted(folder, PLANT.format(code=code))


def torchrun(folder: Path, world: int, *options: str) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
    return subprocess.run(
        [*launcher, "-m", "compatcheck", "cluster", *options],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_ranks_of_torchrun_train_under_the_users_deepspeed_settings(tmp_path: Path) -> None:
    pytest.importorskip("deepspeed")
    section = {"stage": 2, "overlap_comm": True, "contiguous_gradients": True, "reduce_bucket_size": 500000000}
    settings = {"zero_optimization": section, "bf16": {"enabled": True}, "gradient_accumulation_steps": 2}
    (tmp_path / "ds.json").write_text(json.dumps(settings), encoding="utf-8")
    done = torchrun(tmp_path, 2, "ds.json", "--only", "zero_training", "--format", "json", "--fail-on", "confirmed")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["launcher"], report["world"], len(report["groups"])) == ("torchrun", 2, 1)
    (probe,) = report["probes"]
    assert probe["outcome"] == "pass", probe["why"]
    variants = {(row["variant"], row["dtype"]) for row in probe["measured"]["rows"] if not row.get("control")}
    assert variants == {("ZeRO-2, own settings", "float32"), ("ZeRO-2, own settings", "bfloat16")}
    assert "a race may not appear" in probe["why"]


def test_four_ranks_of_torchrun_agree(tmp_path: Path) -> None:
    done = torchrun(tmp_path, 4, *COLLECTIVES, "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert [len(group["ranks"]) for group in report["groups"]] == [4]
    (probe,) = report["probes"]
    assert probe["outcome"] == "pass", probe["why"]
    assert "4 ranks over gloo: 15 operations and dtypes are exact or within rounding" in probe["why"]
    judged = [row for row in probe["measured"]["rows"] if not row.get("control")]
    assert len({(row["case"], row["dtype"]) for row in judged}) == 15
    assert all(row["sizes"][0]["bus_bytes_per_second"] > 0 for row in judged if "recorded" not in row)
    assert any("no streams" in limit for limit in report["limits"])


def test_a_rank_whose_sums_are_wrong_is_named(tmp_path: Path) -> None:
    said = run(tmp_path, [Rank(), broken(tmp_path, ONE_TOO_MUCH)], *COLLECTIVES)
    assert said.statuses == [1, 1], said
    assert "all_reduce of 1 KiB in float32 is wrong on rank 1: 1 of 256 elements, the first 3 for 2" in said.text
    assert "passing there: one process" in said.text


def test_a_rank_that_sleeps_is_named_with_where_it_is(tmp_path: Path) -> None:
    said = run(tmp_path, [Rank(), broken(tmp_path, SLEEPS)], *COLLECTIVES, "--timeout", "6")
    assert said.statuses == [1, 1], said
    assert "hung rank 1 (" in said.text
    assert re.search(
        r"did not pass all_reduce of 1 KiB, float32, round 1, where the others wait, within \d+ s", said.text
    ), said.text
    assert "the rank is in all_reduce, line 9 of sitecustomize.py" in said.text


def test_a_process_that_dies_is_named_with_what_it_was_at(tmp_path: Path) -> None:
    said = run(tmp_path, [Rank(), broken(tmp_path, DIES)], *COLLECTIVES)
    assert said.statuses == [1, 1], said
    assert "the process of probe collectives ended with exit status 7 at all_reduce of 1 KiB" in said.text


def test_a_rank_that_is_killed_is_named_and_the_others_end(tmp_path: Path) -> None:
    said = run(tmp_path, [Rank(), broken(tmp_path, KILLS_ITS_RANK)], *COLLECTIVES)
    assert said.statuses == [1, -9], said
    assert "dead rank 1 (" in said.text
    assert "gone when collectives" in said.text


def test_what_differs_between_ranks_is_named(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        (folder / "model").mkdir(parents=True)
        (folder / "model" / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
        (folder / "model" / "modeling.py").write_text(f"# {folder.name}\n", encoding="utf-8")
    older = environment(tmp_path / "another", torch="2.5.0")
    other = Rank({"NCCL_IB_DISABLE": "1"}, folder=folders[1], options=("--python", str(older)))
    said = run(tmp_path, [Rank(folder=folders[0]), other, Rank(folder=folders[0])], "model", "--no-probe")
    assert said.statuses == [1, 1, 1], said
    assert "2 ranks A:" in said.text
    assert "environ.NCCL_IB_DISABLE A: not set; B: 1" in said.text
    assert "distributions.torch A: 2." in said.text and "B: 2.5.0" in said.text
    assert "model.files.modeling.py.sha256 A:" in said.text


def test_ranks_that_are_absent_without_torch_or_of_another_version_are_named(tmp_path: Path) -> None:
    version = "import compatcheck\ncompatcheck.__version__ = '0.0.9'\n"
    poor = Rank(options=("--python", str(environment(tmp_path / "another", numpy="2.0.0"))))
    ranks = [Rank(), Rank(), poor, planted(tmp_path, version)]
    said = run(tmp_path, ranks, "--no-probe", "--timeout", "8", absent=[1])
    assert said.statuses == [1, 1, 1], said
    assert "absent rank 1 (node unknown): did not connect within 8 s" in said.text
    assert "no torch rank 2 (" in said.text
    assert "other version rank 3 (" in said.text
    assert "this rank runs compatcheck 0.0.9 and rank 0" in said.text


def test_a_rank_that_finds_nobody_says_so(tmp_path: Path) -> None:
    said = run(tmp_path, [Rank(), Rank()], "--timeout", "1", absent=[0])
    assert said.statuses == [2]
    assert "rank 1: finding rank 0 at 127.0.0.1" in said.errors[0]


def test_a_file_that_no_rank_has_is_told_once_and_ends_all(tmp_path: Path) -> None:
    said = run(tmp_path, [Rank(), Rank()], "gone.json", "--no-probe")
    assert said.statuses == [3, 3]
    told = [error for error in said.errors if error]
    assert len(told) == 1 and "gone.json: there is no such file or folder" in told[0], said.errors
    assert "hearing rank 0" not in told[0]


def test_what_is_recorded_is_judged_as_what_is_said(tmp_path: Path) -> None:
    command = [*COMMAND, "--record", "there"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env={**os.environ, "NCCL_DEBUG": "INFO"})
    (written,) = (tmp_path / "there").glob("*.json")
    assert json.loads(written.read_text())["environ"]["NCCL_DEBUG"] == "INFO"
    done = subprocess.run([*COMMAND, "--snapshots", "there"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert f"1 node (snapshots in there): all alike {json.loads(written.read_text())['node']['name']}" in " ".join(
        done.stdout.split()
    )


def test_without_a_launcher_the_way_to_start_it_is_told(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "start it with torchrun, srun or mpirun" in done.stderr


def environment(folder: Path, **distributions: str) -> Path:
    """A virtual environment that says it holds these distributions."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name, version in distributions.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    return folder / "bin" / "python"
