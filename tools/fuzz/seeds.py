"""What each target starts from: the real inputs of the tests, a few made here, and each input that once found a fault.

The files in ``corpus/<target>`` are inputs as the target takes them.
"""

from __future__ import annotations

import ast
import functools
import gzip
import hashlib
import importlib
import json
import struct
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path

from tools.fuzz.case import packed

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
_TESTS = ROOT / "tests"
_LARGEST = 12_000


@functools.cache
def of(target: str) -> list[bytes]:
    """The seeds of a target, each once, the small ones first."""
    found = [*_SEEDS[target](), *(path.read_bytes() for path in sorted((CORPUS / target).glob("*")))]
    return sorted(dict.fromkeys(found), key=len)


_SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {}


def _entered(make: Callable[[], Iterator[bytes]]) -> Callable[[], Iterator[bytes]]:
    _SEEDS[make.__name__] = make
    return make


def _texts(*places: str, holds: str = "", lines: int = 2) -> Iterator[str]:
    """The longer texts in the source of some tests, in which a word stands."""
    for place in places:
        for path in sorted(_TESTS.glob(place)):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and holds in text and text.count("\n") >= lines and len(text) < _LARGEST:
                    yield text


def _alone(name: str, text: str | bytes) -> bytes:
    return packed({name: text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text})


@_entered
def requirements() -> Iterator[bytes]:
    for path in sorted((_TESTS / "project/requirements/samples").iterdir()):
        others = {"more.txt": b"numpy\n"} if "requirements" in path.name else {}
        yield packed({path.name: path.read_bytes(), **others})
    yield _alone("requirements.txt", "torch==2.5.0 ; python_version < '3.12'\n-r more.txt\n-c c.txt\n-e ./x[a,b]\n")
    for text in _texts("project/requirements/test_*.py", holds="FROM "):
        yield _alone("Dockerfile", text)


@_entered
def pinned() -> Iterator[bytes]:
    for path in sorted((_TESTS / "project/requirements/samples").glob("*")):
        if path.name in ("pyproject.toml", "requirements-exported.txt", "pylock.toml"):
            yield _alone(path.name, path.read_bytes())
    yield packed(
        {
            "requirements.txt": b"torch>=2.1,<3 # keep\n./pkg\n-e ./pkg\na @ file:///x\n",
            "pkg/pyproject.toml": b"[project]\nname='p'\n",
        }
    )


@_entered
def uv_answers() -> Iterator[bytes]:
    yield b"torch==2.5.0\n    # via\n    #   a\n    #   b\nnumpy==1.26.4  # via torch, peft\n./local\n"
    yield (_TESTS / "project/requirements/samples/pylock.toml").read_bytes()
    yield b'warning: `a==1.0` is yanked (reason: "bad")\n  x No solution found when resolving dependencies:\n'
    for text in _texts("advice/*.py", lines=1):
        yield text.encode("utf-8", "surrogatepass")


@_entered
def configurations() -> Iterator[bytes]:
    samples = importlib.import_module("tests.project.training.test_odd_values").SAMPLES
    for files in samples.values():
        for name, text in files.items():
            yield _alone(name, text)
    yield packed(
        {
            "train.yaml": b"bf16: true\ndeepspeed: ds.json\nmodel_name_or_path: m\n",
            "ds.json": b'{"zero_optimization": {"stage": 3}}',
        }
    )


@_entered
def launch_scripts() -> Iterator[bytes]:
    for text in _texts("project/training/test_*.py", holds="torchrun"):
        yield _alone("run.sh", text)
    yield _alone(
        "train.yaml",
        """deepspeed: '{"zero_optimization": {"stage": 2}}'\n"""
        """gradient_checkpointing_kwargs: '{"use_reentrant": false}'\n"""
        "bf16: true\nper_device_train_batch_size: 2\ngradient_checkpointing: true\noutput_dir: o\n",
    )
    given = """--gradient_checkpointing_kwargs '{"use_reentrant": false}' --fsdp_config '{"min_num_params": 1}'"""
    yield _alone("run.sh", f"torchrun --nproc_per_node 2 train.py {given} --optim adamw_torch --deepspeed '{{}}'\n")
    yield packed(
        {
            "run.sh": b"deepspeed --num_gpus 8 train.py --deepspeed ds.json --bf16 True ${EXTRA:-a} $((2*3))\n",
            "train.py": b"import sys\nfrom transformers import HfArgumentParser, TrainingArguments, Trainer\n"
            b"args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\nTrainer(args=args).train()\n",
            "ds.json": b'{"train_batch_size": "auto", "zero_optimization": {"stage": 2}}',
        }
    )
    yield _alone(
        "run.sh",
        "swift sft --model a/b --train_type lora\ntrl sft --model_name_or_path a\ntune run lora --config c.yaml\n",
    )


@_entered
def scripts() -> Iterator[bytes]:
    head = importlib.import_module("tests.project.scripts.test_settings").HEAD
    for text in _texts("project/scripts/test_*.py", "project/script_calls/test_calls.py", lines=1):
        yield _alone("train.py", text if "import" in text else head + text)
    for text in _texts("project/training/test_xtuner.py", holds="import"):
        yield _alone("config.py", text)
    rules = importlib.import_module("tests.project.scripts.test_rules")
    for method in rules.OF.values():
        yield _alone("train.py", rules.own(method))
    for text in rules.MADE.values():
        yield _alone("train.py", f"{rules.FROM}{text}\n")
    loaded = 'model = AutoModelForCausalLM.from_pretrained("a/b").to(torch.bfloat16)\nmodel.half()\n'
    helper = b"from transformers import TrainingArguments\ndef arguments(): return TrainingArguments('o', bf16=True)\n"
    main = f"{head}from helper import arguments\n{loaded}Trainer(model=model, args=arguments()).train()\n"
    yield packed({"train.py": main.encode(), "helper.py": helper})


@_entered
def notebooks() -> Iterator[bytes]:
    code = "!pip install torch==2.5.0\n%env A=b\nfrom transformers import Trainer, TrainingArguments\n"
    code += "Trainer(args=TrainingArguments('out', bf16=True)).train()\n"
    for source in (code, code.splitlines(keepends=True)):
        cells = [{"cell_type": "code", "source": source}, {"cell_type": "markdown", "source": "# a"}]
        yield _alone("train.ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))


@_entered
def folders() -> Iterator[bytes]:
    yield packed(
        {
            "requirements.txt": b"torch==2.5.0\ntransformers==4.48.0\n",
            "Dockerfile": b"FROM pytorch/pytorch:2.5.0-cuda12.4-cudnn9-devel\nRUN pip install -r requirements.txt\n",
            "conf/train.yaml": b"bf16: true\nper_device_train_batch_size: 2\nmodel_name_or_path: ../model\n",
            "model/config.json": b'{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}',
            "run.sh": b"torchrun train.py conf/train.yaml\n",
            "train.py": b"from transformers import Trainer, TrainingArguments as A\nTrainer(args=A('o')).train()\n",
            "pyproject.toml": b"[project]\nname = 'a'\nversion = '1'\ndependencies = ['torch>=2']\n",
        }
    )


def _safetensors(header: object) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(16)


def _zip(members: dict[str, bytes]) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, inner in members.items():
            archive.writestr(zipfile.ZipInfo(name), inner)
    return content.getvalue()


@_entered
def models() -> Iterator[bytes]:
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "torch_dtype": "bfloat16",
        "rope_scaling": None,
    }
    config |= {"auto_map": {"AutoModelForCausalLM": "modeling_a.A"}, "quantization_config": {"quant_method": "gptq"}}
    config |= {"hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 32, "transformers_version": "4.48.0"}
    weights = _safetensors(
        {
            "__metadata__": {"format": "pt"},
            "model.embed_tokens.weight": {"dtype": "BF16", "shape": [4, 2], "data_offsets": [0, 16]},
        }
    )
    gguf = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 4) + b"name" + struct.pack("<IQ", 8, 1) + b"a"
    tokenizer = {"tokenizer_class": "LlamaTokenizer", "chat_template": "{% for m in messages %}{{ m }}{% endfor %}"}
    tokenizer |= {
        "added_tokens_decoder": {"1": {"content": "<a>", "special": True}},
        "auto_map": {"AutoTokenizer": ["t.T", None]},
    }
    index = {"metadata": {"total_size": 16}, "weight_map": {"model.embed_tokens.weight": "model.safetensors"}}
    code = "from transformers import PreTrainedModel\nclass A(PreTrainedModel):\n    def forward(self, x): return x\n"
    small = {"config.json": json.dumps(config).encode()}
    whole = {
        **small,
        "model.safetensors": weights,
        "model.safetensors.index.json": json.dumps(index).encode(),
        "tokenizer_config.json": json.dumps(tokenizer).encode(),
        "tokenizer.json": json.dumps(
            {"added_tokens": [{"id": 1, "content": "<a>"}], "model": {"vocab": {"b": 2}}}
        ).encode(),
        "special_tokens_map.json": b'{"pad_token": "<a>", "additional_special_tokens": ["<b>"]}',
        "generation_config.json": b'{"eos_token_id": [1, 2]}',
        "chat_template.jinja": b"{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}",
        "modeling_a.py": code.encode(),
    }
    yield packed(whole)
    yield packed({**small, "model.safetensors": weights})
    yield packed(
        {**small, "pytorch_model.bin": _zip({"archive/data.pkl": b"\x80\x02}q\x00.", "archive/version": b"3"})}
    )
    yield packed({**small, "model.gguf": gguf, "model.safetensors.index.json": json.dumps(index).encode()})
    yield packed(
        {
            **whole,
            "old/config.json": small["config.json"],
            "old/modeling_a.py": code.encode(),
            "old/model.safetensors": weights,
        }
    )
    yield packed(
        {
            "adapter_config.json": b'{"peft_type": "LORA", "base_model_name_or_path": "a/b"}',
            "adapter_model.safetensors": weights,
        }
    )
    lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 16\n"
    yield packed(
        {
            **small,
            "model.safetensors": lfs,
            ".git/HEAD": b"ref: refs/heads/main\n",
            ".git/config": b'[remote "origin"]\n url = https://huggingface.co/a/b\n',
        }
    )
    for text in _texts("project/model_files/test_*.py", holds="class "):
        yield packed(
            {
                **small,
                "modeling_a.py": text.encode(),
                "tokenization_a.py": text.encode(),
                "configuration_a.py": text.encode(),
            }
        )
    sha = "a" * 40
    hub = {f"models--a--b/snapshots/{sha}/{name}": content for name, content in small.items()}
    yield packed({**small, **hub, "models--a--b/refs/main": sha.encode(), "models--a--b/refs/pr/1": b"b" * 40})
    scope = {f"modelscope/models/a/b/{name}": content for name, content in small.items()}
    yield packed({**small, **scope, "modelscope/models/a/b/.mv": b"Revision:master,CreatedAt:1\n"})
    yield packed({**small, ".msc": b"x", ".mv": b"Revision:master,CreatedAt:1\n", "model.safetensors": weights})


@_entered
def hub_answers() -> Iterator[bytes]:
    config = b'{"model_type": "llama"}'
    blob = hashlib.sha1(b"blob %d\0" % len(config) + config).hexdigest()
    whole = hashlib.sha256(config).hexdigest()
    for hashes in ({"blobId": blob}, {"blobId": blob, "lfs": {"sha256": whole}}, {"blobId": "b" * 40}):
        siblings = [{"rfilename": "config.json", "size": len(config), **hashes}, {"rfilename": "a/b.py", "size": 0}]
        for count in (1, 2):
            listing = {"sha": "a" * 40, "siblings": siblings[:count]}
            yield packed({"listing.json": json.dumps(listing).encode(), "config.json": config})


@_entered
def logs() -> Iterator[bytes]:
    for path in sorted(path for path in (_TESTS / "symptoms/logs").rglob("*") if path.is_file()):
        raw = path.read_bytes()[:8000]
        yield raw
        yield gzip.compress(raw[:3000], mtime=0)
    for text in _texts("symptoms/test_*.py"):
        yield text.encode("utf-8", "surrogatepass")
    yield "".join(f"{line}\n" for _, line, _ in importlib.import_module("tests.symptoms.test_formats").LINES).encode()
    yield 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: 显存\n'.encode("utf-16")


@_entered
def event_files() -> Iterator[bytes]:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    content = BytesIO()
    writer = RecordWriter(content)
    writer.write(Event(wall_time=1.0, file_version="brain.Event:2").SerializeToString())
    for step, loss in enumerate((2.5, float("nan"), 1.0)):
        event = Event(wall_time=2.0, step=step)
        event.summary.value.add(tag="train/loss", simple_value=loss)
        value = event.summary.value.add(tag="train/grad_norm")
        value.tensor.dtype = 1
        value.tensor.float_val.append(loss)
        writer.write(event.SerializeToString())
    yield content.getvalue()


@_entered
def reports() -> Iterator[bytes]:
    for sample in importlib.import_module("tests.bug_report.test_samples").SAMPLES[::2]:
        yield sample.text.encode("utf-8", "surrogatepass")
    for path in sorted((_TESTS / "tools/issues").iterdir()):
        yield path.read_bytes()
    for text in islice(_texts("bug_report/test_*.py", "interfaces/test_failures.py"), 0, None, 4):
        yield text.encode("utf-8", "surrogatepass")
    yield json.dumps(
        {"title": "a", "body": "torch 2.5.0", "comments": [{"body": "b", "user": {"login": "c"}}]}
    ).encode()
    yield b"<!DOCTYPE html><html><body><pre>torch==2.5.0</pre><table><tr><td>CUDA</td><td>12.4</table></html>"


@_entered
def diagnoses() -> Iterator[bytes]:
    report = b"With torch 2.5.0 and transformers 4.48.0 the loss is nan from step 16.\n"
    log = (_TESTS / "symptoms/logs/transformers-4.48-nan-from-step-16.log").read_bytes()[:3000]
    yield packed({"report.md": report})
    yield packed(
        {
            "report.md": report,
            "train.log": log,
            "requirements.txt": b"torch==2.5.0\n",
            "train.yaml": b"bf16: true\noptim: adamw\n",
        }
    )
    for path in sorted((_TESTS / "machines").glob("glm*.json"))[:2]:
        yield packed(
            {"node.json": path.read_bytes(), "trainer_state.json": b'{"log_history": [{"loss": NaN, "step": 1}]}'}
        )
    for path in sorted((ROOT / "matrix/transformers").glob("CC-*.toml"))[:10]:
        text = path.read_text(encoding="utf-8")
        examples = [line.partition("=")[2].strip(" \"'") for line in text.splitlines() if line.startswith("example =")]
        if examples:
            yield packed({"train.log": f"Traceback (most recent call last):\n{examples[0]}\n".encode()})


@_entered
def snapshots() -> Iterator[bytes]:
    for path in sorted((_TESTS / "machines").glob("*.json"))[::4]:
        yield path.read_bytes()
    every = {
        "schema_version": 1,
        "distributions": {"torch": "2.5.0+cu124"},
        "distribution_ranges": {"peft": ">=0.1"},
        "unknown": {"model": "a"},
    }
    every |= {
        "locations": {"training.dtype": {"file": "a.yaml", "line": 3}},
        "training": {"dtype": "bfloat16", "deepspeed": {"zero_stage": 3}},
    }
    every |= {
        "gpus": [{"name": "A100", "compute_capability": "8.0", "memory_mib": 81920}],
        "model": {"name": "a", "traits": ["x"]},
    }
    yield json.dumps(every).encode()


@_entered
def assumptions() -> Iterator[bytes]:
    yield b"gpu.compute_capability=9.0\ntraining.dtype=bfloat16\ntraining.deepspeed=null\ndistributions.torch=2.5.0"
    yield b'gpus=[{"compute_capability": "8.0"}]\ntraining.world_size=8\nmodel.traits=["a"]\npython=3.11'


@_entered
def project_settings() -> Iterator[bytes]:
    ours = '[tool.compatcheck]\nfail-on = "possible"\nassume = ["training.dtype=bfloat16"]\nbaseline = "b.json"\n'
    yield _alone(
        "pyproject.toml",
        ours + '\n[[tool.compatcheck.ignore]]\nid = "CC-2024-0002"\nreason = "r"\nuntil = 2099-01-01\npaths = ["a"]\n',
    )
    yield _alone(
        "pyproject.toml", '[tool]\ncompatcheck.ignore = [{ id = "CC-2024-0002", reason = "r", until = 2099-01-01 }]\n'
    )
    for text in _texts("settings/*.py", holds="tool.compatcheck"):
        yield _alone("pyproject.toml", text)


@_entered
def baselines() -> Iterator[bytes]:
    finding = {
        "id": "CC-2024-0001",
        "title": "t",
        "status": "affected",
        "fingerprint": "a",
        "location": {"file": "a", "line": 1},
    }
    yield json.dumps(
        {"schema_version": 1, "findings": [finding], "set_aside": [{"id": "CC-2024-0002", "by": "baseline"}]}
    ).encode()
    yield json.dumps(
        {"schema_version": 1, "projects": [{"schema_version": 1, "findings": [finding], "ignored": [finding]}]}
    ).encode()


@_entered
def rows() -> Iterator[bytes]:
    shapes = (
        {
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
            ]
        },
        {
            "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
            "system": "s",
            "tools": "[]",
        },
        {"instruction": "a", "input": "b", "output": "c", "history": [["d", "e"]]},
        {"prompt": [{"role": "user", "content": "a"}], "chosen": [], "rejected": [], "images": ["x.png"]},
        {"prompt": "a", "completion": "b"},
    )
    yield "\n".join(map(json.dumps, shapes)).encode()
    yield json.dumps(shapes).encode()
    yield gzip.compress("\n".join(map(json.dumps, shapes)).encode(), mtime=0)
    yield json.dumps(shapes, indent=1).encode("utf-16")


@_entered
def interpreter_answers() -> Iterator[bytes]:
    yield json.dumps({"version": "3.11.7", "executable": "/a/python", "prefix": "/a", "folders": ["/a/lib"]}).encode()


_VENV = {
    "venv/pyvenv.cfg": b"home = /usr/bin\nversion_info = 3.11.7.final.0\ninclude-system-site-packages = false\n",
    "venv/bin/python": b"",
}


@_entered
def environments() -> Iterator[bytes]:
    site = "venv/lib/python3.11/site-packages"

    def about(name: str, version: str, *more: str) -> dict[str, bytes]:
        head = "\n".join((f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *more))
        return {f"{site}/{name}-{version}.dist-info/METADATA": f"{head}\n\nText\n".encode()}

    torch = about("torch", "2.5.0", "Requires-Dist: numpy>=1.2 ; extra == 'a'", "Requires-Python: >=3.8")
    torch[f"{site}/torch/version.py"] = (
        b"__version__ = '2.5.0+cu124'\ncuda: Optional[str] = '12.4'\ngit_version = 'a'\nhip = None\n"
    )
    torch[f"{site}/torch/lib/libtorch_python.so"] = b"\x7fELF\0sm_80 sm_90 compute_90\0"
    yield packed({**_VENV, **torch})
    more = about("transformers", "9.99.0", "Requires-Dist: torch>=99 ; python_version >= '3'")
    more[f"{site}/transformers-9.99.0.dist-info/RECORD"] = b"transformers/__init__.py,,\ntransformers/a.py,sha256=x,3\n"
    more[f"{site}/transformers-9.99.0.dist-info/direct_url.json"] = (
        b'{"url": "file:///src", "dir_info": {"editable": true}}'
    )
    more[f"{site}/transformers-9.99.0.dist-info/entry_points.txt"] = b"[console_scripts]\na = transformers.a:main\n"
    more[f"{site}/transformers/__init__.py"] = b"from .a import main\nfrom peft import gone\n__all__ = ['main']\n"
    more[f"{site}/transformers/a.py"] = (
        b"import torch\ndef main(x, *, y=1): ...\nclass Trainer:\n    def train(self): ...\n"
    )
    yield packed({**_VENV, **torch, **more})
    links = {f"{site}/x.pth": b"/elsewhere\nimport os\n../y\n", f"{site}/foo.egg-link": b"src\n.\n"}
    links[f"{site}/bar.egg-info"] = b"Name: bar\nVersion: 1.0\n"
    links[f"{site}/baz-1.0.egg-info/PKG-INFO"] = b"Name: baz\nVersion: 1.0\n"
    links[f"{site}/baz-1.0.egg-info/requires.txt"] = b"numpy\n[a]\npeft>=0.1\n"
    links[f"{site}/baz-1.0.egg-info/SOURCES.txt"] = b"a.py\n"
    links[f"{site}/__editable___q_1_finder.py"] = b"MAPPING: dict[str, str] = {'q': '/src/q'}\nNAMESPACES = {}\n"
    links[f"{site}/_q.pth"] = b"/src\n"
    yield packed({**_VENV, **torch, **links})
    conda = {"venv/conda-meta/python-3.11.7-h_0.json": b"{}", "venv/conda-meta/history": b"", "venv/bin/python": b""}
    yield packed({**conda, **torch})


@_entered
def modules() -> Iterator[bytes]:
    for text in _texts("import_check/test_*.py", "interfaces/test_*.py", lines=1):
        yield packed({"a/__init__.py": text.encode("utf-8", "surrogatepass"), "b.py": b"from a import *\nimport a.c\n"})
    torch = {"t/__init__.py": b"from t._C import *\n", "t/_C.cpython-311-x86_64-linux-gnu.so": b"\x7fELF"}
    yield packed(
        {**torch, "t/_C/x.pyi": b"def c(): ...\n", "t/lib/libtorch_python.so": b"\0a\0", "b.py": b"import t\n"}
    )
    lazy = b"import sys\n_s = {'c': ['D']}\nsys.modules[__name__] = _LazyModule(__name__, globals()['__file__'], _s)\n"
    yield packed({"a/__init__.py": lazy, "a/c.py": b"class D: pass\n", "b.py": b"from a import D, E\n"})
    yield packed(
        {
            "a.cpython-311-x86_64-linux-gnu.so": b"\x7fELF",
            "a.pyi": b"def f(x: int) -> int: ...\n",
            "b.py": b"from a import f, g\n",
        }
    )


@_entered
def archives() -> Iterator[bytes]:
    yield _zip({"about.json": b"{}", "entries.jsonl": b"{}\n", "tables/a.json": b"{}"})


@_entered
def stored_matrices() -> Iterator[bytes]:
    from tempfile import TemporaryDirectory

    from compatcheck.matrix.compile import write_compiled

    with TemporaryDirectory() as folder:
        source, made = Path(folder, "source"), Path(folder, "made")
        (source / "deepspeed").mkdir(parents=True)
        (source / "tables").mkdir()
        (source / "tables/small.toml").write_text("reviewed = 2024-01-01\n", encoding="utf-8")
        for path in sorted((ROOT / "matrix/deepspeed").glob("CC-*.toml"))[:2]:
            (source / "deepspeed" / path.name).write_bytes(path.read_bytes())
        write_compiled(source, made)
        files = {
            f"new/{path.relative_to(made)}": path.read_bytes() for path in sorted(made.rglob("*")) if path.is_file()
        }
    about = json.loads(files["new/about.json"])
    pointer = {**about, "folder": "new-1", "url": "https://a/b", "previous": None}
    yield packed({**files, "compatcheck/matrix/current.json": json.dumps(pointer).encode()})


@_entered
def entries() -> Iterator[bytes]:
    for package in ("deepspeed", "transformers", "torch"):
        for path in sorted((ROOT / "matrix" / package).glob("CC-*.toml"))[:6]:
            yield packed({path.name: path.read_bytes()})


@_entered
def messages() -> Iterator[bytes]:
    from compatcheck.cluster import _messages as of

    said = (
        of.Greeting(protocol=1, job="j", seen="127.0.0.1"),
        of.Hello(rank=1, local_rank=0, node="n", place="p", version="1", port=3),
        of.Snapshot(digest="d", snapshot={"schema_version": 1, "distributions": {}}),
        of.Reach(peers={1: ("a", 2)}, seconds=1.0),
        of.Said(turn=1, event={"event": "stage"}),
        of.Over(status=0),
    )
    yield b"".join(map(of.encoded, said))


@_entered
def recorded_nodes() -> Iterator[bytes]:
    node = {
        "schema_version": 1,
        "distributions": {"torch": "2.5.0"},
        "node": {"name": "a", "rank": 0},
        "environ": {"NCCL_DEBUG": "INFO"},
    }
    other = {
        **node,
        "distributions": {"torch": "2.5.1"},
        "node": {"name": "b", "rank": 1},
        "gpus": [{"name": "A100", "uuid": "u"}],
    }
    yield packed(
        {"a.json": json.dumps(node).encode(), "b.json": json.dumps(other).encode(), "c.json": json.dumps(node).encode()}
    )


@_entered
def probe_events() -> Iterator[bytes]:
    said = (
        {"event": "stage", "name": "import", "at": 1.0},
        {"event": "row", "row": {"a": 1}},
        {"event": "result", "measured": {"rows": []}},
    )
    yield "".join(json.dumps(each) + "\n" for each in said).encode()
    yield b'{"event": "error", "type": "ValueError", "message": "m"}\n{"event": "missing", "what": "torch"}\n'
    yield b'{"event": "unusable", "what": "w"}\n{"event": "environment", "peak_mib": 3}\n'


@_entered
def caches() -> Iterator[bytes]:
    yield _alone("a", json.dumps({"state": "s", "when": "w", "outcome": "pass", "why": "y", "measured": {"a": 1}}))
    yield _alone("b", json.dumps({"schema": 1, "files": {"/a": ["key", "sha"]}}))
    yield _alone("c", json.dumps([["name", "torch", "x", True]]))
    yield _alone(
        "imports/a.json",
        json.dumps({"state": "s", "unresolved_imports": [{"distribution": "a", "module": "b", "statement": "c"}]}),
    )


@_entered
def machines() -> Iterator[bytes]:
    yield packed(
        {
            "nodes/1/properties": b"gfx_target_version 90010\ndrm_render_minor 128\n",
            "nodes/1/mem_banks/0/properties": b"size_in_bytes 68702699520\n",
            "cards/renderD128/device/product_name": b"Instinct MI250X\n",
            "rocm/.info/version": b"6.2.0-66\n",
            "dev/davinci0": b"",
            "Ascend/driver/version.info": b"Version=23.0.3\n",
            "Ascend/ascend-toolkit/latest/version.cfg": b"runtime_running_version=[7.5.0.1:8.0.RC3]\n",
            "cuda/version.json": b'{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}',
            "cuda/include/cuda.h": b"#define CUDA_VERSION 12040\n",
            "version": b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n",
            "torch/lib/libtorch_python.so": b"\x7fELF\2\1\1" + bytes(57) + b"\0sm_80 sm_90\0",
        }
    )


def listed() -> tuple[str, ...]:
    """The targets that have seeds."""
    return tuple(_SEEDS)


__all__ = ["CORPUS", "ROOT", "listed", "of"]
