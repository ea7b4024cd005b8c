from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from compatcheck.errors import InputError
from compatcheck.facts import model_files
from compatcheck.model import Environment, Unknown, lookup

OLD_FORM = """
class ChatGLMPreTrainedModel(PreTrainedModel):
    def _set_gradient_checkpointing(self, module, value=False):
        if isinstance(module, GLMTransformer):
            module.gradient_checkpointing = value
"""
NO_OP = """
class ChatGLMPreTrainedModel(PreTrainedModel):
    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None):
        if not self.supports_gradient_checkpointing:
            raise ValueError(f"{self.__class__.__name__} does not support gradient checkpointing.")
"""


def override(body: str, also: str = "pass") -> str:
    return f"class A(B):\n    def gradient_checkpointing_enable(self, kwargs=None):\n        {body}\n    {also}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "chatglm3-6b"
    path.mkdir()
    (path / "config.json").write_text(
        json.dumps({"model_type": "chatglm", "architectures": ["ChatGLMModel"], "torch_dtype": "float16"})
    )
    return path


def model(folder: Path, weights: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = model_files.read(str(folder), weights).known["model"]
    return found


def test_what_the_configuration_says(folder: Path) -> None:
    found = model(folder)
    assert {key: found[key] for key in ("name", "revision", "type", "architectures", "torch_dtype")} == {
        "name": "chatglm3-6b",
        "revision": None,
        "type": "chatglm",
        "architectures": ["ChatGLMModel"],
        "torch_dtype": "float16",
    }
    assert (found["remote_code"], found["traits"]) == (False, [])
    digest = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    assert found["files"] == {"config.json": {"sha256": digest, "size": (folder / "config.json").stat().st_size}}


def test_what_it_does_not_say_stays_unknown(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "x", "dtype": "bfloat16", "_name_or_path": "org/name"}')
    facts = model_files.read(str(folder))
    assert facts.known["model"]["torch_dtype"] == "bfloat16"
    assert facts.known["model"]["name"] == "org/name"
    assert isinstance(lookup(Environment(facts.known), "model.architectures"), Unknown)


@pytest.mark.parametrize(
    ("name", "code", "traits"),
    [
        ("modeling_chatglm.py", NO_OP, ["gradient-checkpointing-noop"]),
        ("modeling_chatglm.py", OLD_FORM, []),
        ("modeling_chatglm.py", NO_OP + OLD_FORM.partition("Model):")[2], []),
        ("modeling_a.py", override("self.gradient_checkpointing = True"), []),
        ("modeling_a.py", override("self.encoder.layer.gradient_checkpointing = True"), []),
        ("modeling_a.py", override("super().gradient_checkpointing_enable(kwargs)"), []),
        ("modeling_a.py", override("self.model.gradient_checkpointing_enable()"), []),
        ("modeling_a.py", override("self.apply(partial(self._set_gradient_checkpointing, value=True))"), []),
        ("modeling_a.py", override("setattr(self, 'gradient_checkpointing', True)"), []),
        ("modeling_a.py", override("self.ready = True"), ["gradient-checkpointing-noop"]),
        ("modeling_a.py", override("return self.gradient_checkpointing"), ["gradient-checkpointing-noop"]),
        ("configuration_a.py", NO_OP, []),
        (
            "tokenization_a.py",
            "class T:\n def _pad(self, x, max_length=None): ...\n",
            ["tokenizer-pad-lacks-padding-side"],
        ),
        ("tokenization_a.py", "class T:\n def _pad(self, x, padding_side=None): ...\n", []),
        ("tokenization_a.py", "class T:\n def _pad(self, x, *, padding_side=None): ...\n", []),
        ("tokenization_a.py", "class T:\n def _pad(self, x, **kwargs): ...\n", []),
        ("tokenization_a.py", "class T:\n def pad(self, x): ...\n", []),
        (
            "modeling_a.py",
            "class AForCausalLM:\n def forward(self, x, labels=None): ...\n",
            ["forward-takes-no-kwargs"],
        ),
        ("modeling_a.py", "class AForCausalLM:\n def forward(self, x, labels=None, **kwargs): ...\n", []),
        ("modeling_a.py", "class AForCausalLM:\n def forward(self, x): ...\n", []),
        ("modeling_a.py", "class ALayer:\n def forward(self, x, labels=None): ...\n", []),
    ],
)
def test_traits_of_the_models_own_code(folder: Path, name: str, code: str, traits: list[str]) -> None:
    (folder / name).write_text(code)
    assert model(folder)["traits"] == traits


@pytest.mark.parametrize(
    "code", [b"def broken(:\n", b"\xff\xfe", b"x = " + b"(" * 5000, b"a\0b"], ids=["syntax", "bytes", "nested", "nul"]
)
def test_code_that_cannot_be_parsed_leaves_the_traits_unknown(folder: Path, code: bytes) -> None:
    (folder / "modeling_a.py").write_bytes(code)
    facts = model_files.read(str(folder))
    assert "traits" not in facts.known["model"]
    assert "modeling_a.py" in facts.reasons["model.traits"]


def test_code_is_never_run(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (folder / "modeling_a.py").write_text(f"open({str(mark)!r}, 'w')\n")
    model(folder)
    assert not mark.exists()


def test_code_in_another_repository_is_unknown(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "x", "auto_map": {"AutoModel": "org/other--modeling_x.X"}}')
    facts = model_files.read(str(folder))
    assert facts.known["model"]["remote_code"] is True
    assert "org/other" in facts.reasons["model.traits"]


def test_a_hugging_face_cache_names_model_revision_and_blobs(tmp_path: Path) -> None:
    repository = tmp_path / "models--THUDM--chatglm3-6b"
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    (snapshot / "config.json").write_text('{"model_type": "chatglm"}')
    blob = repository / "blobs" / ("e7" * 32)
    blob.write_bytes(b"not what the name says")
    (snapshot / "tokenizer.model").symlink_to(blob)
    small = repository / "blobs" / ("c5" * 20)
    small.write_bytes(b"code")
    (snapshot / "modeling_chatglm.py").symlink_to(small)
    found = model(snapshot)
    assert found["files"]["modeling_chatglm.py"]["sha256"] == hashlib.sha256(b"code").hexdigest()
    assert (found["name"], found["revision"]) == ("THUDM/chatglm3-6b", "a" * 40)
    assert found["files"]["tokenizer.model"]["sha256"] == "e7" * 32


def safetensors(header: bytes, data: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + data


TENSOR = b'{"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (safetensors(TENSOR, bytes(8)), None),
        (safetensors(TENSOR, bytes(7)), "truncated: "),
        (safetensors(TENSOR, bytes(9)), "1 bytes too long"),
        (safetensors(TENSOR)[:20], "its header alone takes"),
        (b"", "truncated: 0 bytes"),
    ],
)
def test_the_length_of_weights(folder: Path, content: bytes, problem: str | None) -> None:
    (folder / "model.safetensors").write_bytes(content)
    assert "model.safetensors" not in model(folder)["files"]
    found = model(folder, weights=True)
    assert found["files"]["model.safetensors"]["sha256"] == hashlib.sha256(content).hexdigest()
    if problem is None:
        assert "file_problems" not in found
    else:
        assert problem in found["file_problems"][0]["problem"]


@pytest.mark.parametrize(
    "content",
    [
        (1 << 63).to_bytes(8, "little") + b"{}",
        safetensors(b"[]"),
        safetensors(b'{"w": {}}'),
        safetensors(b'{"w": {"data_offsets": [0, "8"]}}'),
        safetensors(b'{"a":' * 100_000),
    ],
    ids=["length", "list", "no offsets", "text", "nested"],
)
def test_a_hostile_safetensors_header_is_refused(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="model.safetensors") as caught:
        model(folder, weights=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"", "line 1, column 1"),
        (b"[]", "it holds a list"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b" " * ((16 << 20) + 1), "larger than 16 MiB"),
        (b"\xff", "not UTF-8"),
        (b'{"architectures": "Llama"}', "architectures is 'Llama'"),
        (None, "there is no such file"),
    ],
)
def test_a_configuration_that_is_refused(folder: Path, content: bytes | None, seen: str) -> None:
    if content is None:
        (folder / "config.json").unlink()
    else:
        (folder / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=seen) as caught:
        model(folder)
    assert "\n" not in str(caught.value)


def test_a_header_beyond_any_model_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compatcheck.facts._weights._LARGEST_HEADER", 50)
    (folder / "model.safetensors").write_bytes(safetensors(TENSOR, bytes(8)))
    with pytest.raises(InputError, match=f"its header claims {len(TENSOR)} bytes"):
        model(folder, weights=True)


def test_links_that_go_in_a_circle_are_no_files(folder: Path) -> None:
    (folder / "a.json").symlink_to(folder / "b.json")
    (folder / "b.json").symlink_to(folder / "a.json")
    (folder / "loop").symlink_to(folder)
    assert set(model(folder)["files"]) == {"config.json"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_has_a_reason(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer.json").chmod(0)
    facts = model_files.read(str(folder))
    assert "cannot be read" in facts.reasons["model.files.tokenizer.json"]
