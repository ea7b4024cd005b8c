"""`compatcheck model` as people type it, on folders as they lie on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_command

OLD_CODE = """
import torch
class TinyPreTrainedModel(PreTrainedModel):
    supports_gradient_checkpointing = True
    def _set_gradient_checkpointing(self, module, value=False):
        if isinstance(module, Encoder):
            module.gradient_checkpointing = value
class Encoder(torch.nn.Module):
    def forward(self, hidden):
        "Runs the layers."
        for layer in self.layers:
            hidden = torch.utils.checkpoint.checkpoint(layer, hidden)
        return hidden
class TinyForCausalLM(TinyPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.post_init()
"""
NEW_CODE = OLD_CODE.replace(
    """    def _set_gradient_checkpointing(self, module, value=False):
        if isinstance(module, Encoder):
            module.gradient_checkpointing = value
""",
    """    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None):
        if not self.supports_gradient_checkpointing:
            raise ValueError
""",
).replace("checkpoint(layer, hidden)", "checkpoint(layer, hidden, use_reentrant=False)")


def revision(
    folder: Path, code: str = OLD_CODE, dtype: str = "float16", shape: tuple[int, ...] = (4, 2), template: str = ""
) -> Path:
    folder.mkdir(exist_ok=True)
    config = {
        "model_type": "tiny",
        "architectures": ["TinyForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "modeling_tiny.TinyForCausalLM"},
        "torch_dtype": dtype,
        "num_layers": 28,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "modeling_tiny.py").write_text(code)
    size = shape[0] * shape[1] * (4 if dtype == "float32" else 2)
    kind = {"float16": "F16", "float32": "F32"}[dtype]
    tensor = {"dtype": kind, "shape": shape, "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "embed.weight": tensor}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(size))
    tokenizer = {"tokenizer_class": "TinyTokenizer", "eos_token": "</s>"}
    stated = {**tokenizer, "chat_template": template} if template else tokenizer
    (folder / "tokenizer_config.json").write_text(json.dumps(stated))
    return folder


def run(tmp_path: Path, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return run_command(sys.executable, "model", *map(str, arguments), cwd=tmp_path, **environ)


def compared(tmp_path: Path, old: Path, new: Path) -> dict[str, Any]:
    done = run(tmp_path, old, "--against", new, "--format", "json")
    assert done.returncode == 0, done.stderr
    shape: dict[str, Any] = json.loads(done.stdout)
    return shape


def test_one_model_as_text(tmp_path: Path) -> None:
    revision(tmp_path / "new", NEW_CODE, template="{{ '<|user|>' }}")
    done = run(tmp_path, "new")
    assert done.returncode == 0, done.stderr
    flat = " ".join(done.stdout.split())
    for part in (
        "model new, from a folder",
        "type tiny, TinyForCausalLM, dtype float16",
        "remote code needed (trust_remote_code), modeling_tiny.py",
        "weights 1 safetensors, 0.00 billion parameters, 0.00 GB: F16 0.00 GB",
        "tokenizer TinyTokenizer",
        "chat template tokenizer_config.json, sha256",
        "the model's own gradient checkpointing switch does nothing new/modeling_tiny.py:5",
        "possible CC-2024-0003",
        "missing: training.gradient_checkpointing",
    ):
        assert part in flat, part


def test_what_is_assumed_beside_the_model_decides(tmp_path: Path) -> None:
    revision(tmp_path / "new", NEW_CODE)
    done = run(tmp_path, "new", "--assume", "training.gradient_checkpointing=true", "--format", "json")
    assert done.returncode == 1
    shape = json.loads(done.stdout)
    assert [(each["id"], each["status"]) for each in shape["findings"]] == [("CC-2024-0003", "affected")]
    location = shape["findings"][0]["location"]
    assert (Path(location["file"]).name, location["line"]) == ("modeling_tiny.py", 5)


def test_findings_that_do_not_hang_on_the_model_are_left_out(tmp_path: Path) -> None:
    revision(tmp_path / "old", "x = 1\n")
    done = run(tmp_path, "old", "--assume", "training.deepspeed.zero_stage=2", "--assume", "distributions.torch=2.5.0")
    assert done.returncode == 0 and "the matrix has no entry about these files" in done.stdout


def test_a_damaged_file_makes_the_status_1(tmp_path: Path) -> None:
    weights = revision(tmp_path / "old") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    done = run(tmp_path, "old")
    assert done.returncode == 1
    assert "problems model.safetensors: truncated:" in " ".join(done.stdout.split())
    assert run(tmp_path, "old", "--against", "old").returncode == 1


def test_what_the_chatglm3_reporter_found_by_hand(tmp_path: Path) -> None:
    old, new = revision(tmp_path / "january"), revision(tmp_path / "february", NEW_CODE)
    shape = compared(tmp_path, old, new)
    changes = shape["changes"]
    assert [(each["change"], each["trait"]) for each in changes["traits"]] == [
        ("gained", "checkpoints-without-reentry"),
        ("gained", "gradient-checkpointing-noop"),
        ("lost", "set-gradient-checkpointing-takes-value"),
    ]
    assert [(each["change"], each["name"]) for each in changes["definitions"]] == [
        ("removed", "TinyPreTrainedModel._set_gradient_checkpointing"),
        ("changed", "Encoder.forward"),
        ("added", "TinyPreTrainedModel.gradient_checkpointing_enable"),
    ]
    assert changes["tensors"]["counts"] == {"added": 0, "removed": 0, "changed": 0}
    assert [each["file"] for each in changes["files"]] == ["modeling_tiny.py"]
    assert any("the activations of all 28 layers are kept" in each for each in shape["memory"])
    text = run(tmp_path, old, "--against", new)
    assert text.returncode == 0
    flat = " ".join(text.stdout.split())
    assert "gained: the model's own gradient checkpointing switch does nothing" in flat and "modeling_tiny.py:5" in flat
    assert "the same names, shapes and dtypes" in text.stdout


def test_settings_template_tokens_and_tensors(tmp_path: Path) -> None:
    old = revision(tmp_path / "old", template="{{ '<|user|>' }}\n{{ messages }}")
    new = revision(tmp_path / "new", dtype="float32", shape=(4, 3), template="{{ '[INST]' }}\n{{ messages }}")
    (new / "special_tokens_map.json").write_text('{"pad_token": {"content": "<pad>"}, "eos_token": "<|end|>"}')
    (new / "generation_config.json").write_text('{"top_p": 0.8}')
    (new / "extra.py").write_text("")
    shape = compared(tmp_path, old, new)
    changes = shape["changes"]
    assert {"file": "config.json", "key": "torch_dtype", "old": "float16", "new": "float32"} in changes["settings"]
    assert {"file": "generation_config.json", "key": "top_p", "new": 0.8} in changes["settings"]
    assert changes["tokens"] == [{"role": "pad_token", "old": None, "new": "<pad>"}]
    assert changes["chat_template"]["diff"] == [
        "@@ -1,2 +1,2 @@",
        "-{{ '<|user|>' }}",
        "+{{ '[INST]' }}",
        " {{ messages }}",
    ]
    assert changes["tensors"]["changed"] == [{"name": "embed.weight", "old": "F16 [4, 2]", "new": "F32 [4, 3]"}]
    assert {"file": "extra.py", "change": "added", "name": None, "line": None} in changes["definitions"]
    assert any("loaded this way, weights take 2 times the memory" in each for each in shape["memory"])
    assert any("3.00 times" in each for each in shape["memory"])
    text = " ".join(run(tmp_path, old, "--against", new).stdout.split())
    assert "no longer writes <|user|>" in text and "now writes [INST]" in text


def test_a_revision_against_itself_differs_in_nothing(tmp_path: Path) -> None:
    folder = revision(tmp_path / "a", template="x")
    shape = compared(tmp_path, folder, folder)
    changes = shape["changes"]
    assert not any(changes[key] for key in ("traits", "definitions", "settings", "tokens", "chat_template", "files"))
    assert shape["memory"] == []
    assert "no difference in anything that compatcheck reads" in run(tmp_path, folder, "--against", folder).stdout


def test_comments_and_documentation_are_no_change_of_behaviour(tmp_path: Path) -> None:
    old = revision(tmp_path / "old")
    new = revision(tmp_path / "new", OLD_CODE.replace('"Runs the layers."', '"Says more."  # and more'))
    changes = compared(tmp_path, old, new)["changes"]
    assert changes["definitions"] == [] and [each["file"] for each in changes["files"]] == ["modeling_tiny.py"]


def test_unreadable_code_leaves_the_traits_of_both_uncompared(tmp_path: Path) -> None:
    old, new = revision(tmp_path / "old"), revision(tmp_path / "new", "def broken(:")
    shape = compared(tmp_path, old, new)
    assert shape["changes"]["traits"] == [] and "modeling_tiny.py" in shape["unknown"][1]["model.traits"]


def test_a_tokenizer_that_was_never_downloaded_leaves_the_tokens_uncompared(tmp_path: Path) -> None:
    revision(tmp_path / "old")
    new = revision(tmp_path / "new", template="x")
    (new / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    done = run(tmp_path, "old", "--against", "new", "--format", "json")
    shape = json.loads(done.stdout)
    assert done.returncode == 1 and "new/tokenizer.json" in shape["unknown"][1]["changes.tokens"]
    assert shape["changes"]["tokens"] == [] and shape["changes"]["chat_template"]["change"] == "added"


def test_the_command_to_copy_is_not_broken_in_a_long_path(tmp_path: Path) -> None:
    (tmp_path / ("long-" * 25)).mkdir()
    folder = revision(tmp_path / ("long-" * 25) / "model")
    assert f" {folder}\n" in run(tmp_path, folder).stdout


def test_a_cached_snapshot_is_identified_without_reading_its_weights(tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--org--tiny"
    snapshot = repository / "snapshots" / ("a" * 40)
    (repository / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    revision(snapshot)
    blob = repository / "blobs" / ("4d" * 32)
    (snapshot / "model.safetensors").replace(blob)
    (snapshot / "model.safetensors").symlink_to(Path("..") / ".." / "blobs" / blob.name)
    done = run(tmp_path, snapshot, "--hash-weights", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"]["files"]["model.safetensors"]["sha256"] == "4d" * 32


def test_a_loop_of_links_in_the_folder_ends(tmp_path: Path) -> None:
    folder = revision(tmp_path / "a")
    (folder / "modeling_loop.py").symlink_to("modeling_loop.py")
    (folder / "inner").symlink_to(folder)
    (folder / "tokenizer.json").symlink_to("gone")
    done = run(tmp_path, folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_cache_entry_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    folder = revision(tmp_path / "a")
    (folder / "modeling_tiny.py").chmod(0)
    done = run(tmp_path, folder)
    assert done.returncode == 0 and "modeling_tiny.py" in done.stdout and "not known" in done.stdout


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1, "a": 2}'])
def test_a_broken_configuration_is_one_line(tmp_path: Path, content: str) -> None:
    folder = revision(tmp_path / "a")
    (folder / "config.json").write_text(content)
    done = run(tmp_path, folder)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "config.json" in done.stderr


def test_an_interruption_while_weights_are_hashed(tmp_path: Path) -> None:
    folder = revision(tmp_path / "a")
    with (folder / "pytorch_model.bin").open("wb") as stream:
        stream.write(b"\x80\x02")
        stream.truncate(1 << 36)
    command = [sys.executable, "-m", "compatcheck", "model", str(folder), "--hash-weights"]
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("hashing ")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, "") and "Traceback" not in error
    assert not list((tmp_path / "cache").rglob("*.json"))
