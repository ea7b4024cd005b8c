"""Models named by a hub id: in caches, and fetched from a small server on this machine."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from compatcheck.errors import InputError
from compatcheck.files import limits
from compatcheck.project.model_files._hub import find_folder
from tests.conftest import run_command

REVISION = "5a" * 20
CONFIG = b'{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}'
WEIGHTS = b"weights that nobody reads"
FILES = {"config.json": CONFIG, "modeling_a.py": b"x = 1\n", "model.safetensors": WEIGHTS}


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as its client asks: the model's list of files, and each file."""

    requests: list[str] = []
    tokens: list[str | None] = []
    answered: Any = None

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(head=True)

    def do_GET(self) -> None:
        self.answer(head=False)

    def answer(self, head: bool) -> None:
        path = urlsplit(self.path).path
        self.requests.append(path)
        self.tokens.append(self.headers["Authorization"])
        if path in (
            "/api/models/org/tiny",
            "/api/models/org/tiny/revision/main",
            f"/api/models/org/tiny/revision/{REVISION}",
        ):
            listing = self.listing() if self.answered is None else self.answered
            return self.send(json.dumps(listing).encode(), head, {"Content-Type": "application/json"})
        name = path.partition(f"/org/tiny/resolve/{REVISION}/")[2]
        if name in FILES:
            headers = {"ETag": f'"{git_blob(FILES[name])}"', "X-Repo-Commit": REVISION}
            return self.send(FILES[name], head, headers)
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def listing(self) -> dict[str, Any]:
        siblings = [
            {"rfilename": name, "size": len(content), "blobId": git_blob(content)} for name, content in FILES.items()
        ]
        return {
            "id": "org/tiny",
            "modelId": "org/tiny",
            "sha": REVISION,
            "siblings": siblings,
            "tags": [],
            "private": False,
        }

    def send(self, content: bytes, head: bool, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if not head:
            self.wfile.write(content)


@pytest.fixture
def hub() -> Iterator[str]:
    Hub.requests, Hub.tokens, Hub.answered = [], [], None
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def compatcheck(
    tmp_path: Path, *arguments: str, endpoint: str = "http://127.0.0.1:9", **environ: str
) -> subprocess.CompletedProcess[str]:
    home = {"HF_HOME": str(tmp_path / "hf"), "MODELSCOPE_CACHE": str(tmp_path / "ms"), "HF_ENDPOINT": endpoint}
    calm = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "*", "no_proxy": "*"}
    return run_command(sys.executable, "model", *arguments, cwd=tmp_path, **{**home, **calm, **environ})


def test_the_small_files_of_a_hub_id_are_fetched_and_no_weights(tmp_path: Path, hub: str) -> None:
    done = compatcheck(tmp_path, "org/tiny", "--online", "--format", "json", endpoint=hub)
    assert done.returncode == 0, done.stderr
    model = json.loads(done.stdout)["model"]
    assert (model["name"], model["revision"], model["source"]) == ("org/tiny", REVISION, "huggingface-cache")
    assert sorted(model["files"]) == ["config.json", "modeling_a.py"]
    assert model["files"]["config.json"]["git_blob"] == git_blob(CONFIG)
    assert not any("model.safetensors" in path for path in Hub.requests)
    again = compatcheck(tmp_path, f"org/tiny@{REVISION[:8]}", "--format", "json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["model"]["revision"] == REVISION


def test_a_model_the_hub_does_not_have(tmp_path: Path, hub: str) -> None:
    done = compatcheck(tmp_path, "org/other", "--online", endpoint=hub)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith("compatcheck: fetching the model org/other:") and done.stderr.count("\n") == 1


def test_a_hub_that_cannot_be_reached(tmp_path: Path) -> None:
    done = compatcheck(tmp_path, "org/tiny", "--online")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith("compatcheck: fetching the model org/tiny:") and done.stderr.count("\n") == 1


def test_offline_a_model_that_is_not_here_is_one_line(tmp_path: Path) -> None:
    done = compatcheck(tmp_path, "org/tiny")
    assert done.returncode == 2
    assert "the model is not in the Hugging Face cache" in done.stderr and "--online" in done.stderr


@pytest.mark.parametrize("name", ["nowhere", "../a/b", "org/..", "a/b/c", "org/tiny@", "-/x y"])
def test_what_is_no_model_at_all(tmp_path: Path, name: str) -> None:
    done = compatcheck(tmp_path, "--", name)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "not a hub id" in done.stderr


def test_the_revision_that_main_names_is_taken(tmp_path: Path) -> None:
    for revision in ("a" * 40, "b" * 40):
        folder = tmp_path / "hf" / "hub" / "models--org--tiny" / "snapshots" / revision
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"model_type": "llama"}')
    done = compatcheck(tmp_path, "org/tiny")
    assert done.returncode == 2 and "holds 2 other revisions" in done.stderr
    refs = tmp_path / "hf" / "hub" / "models--org--tiny" / "refs"
    refs.mkdir()
    (refs / "main").write_text("b" * 40)
    done = compatcheck(tmp_path, "org/tiny")
    assert done.returncode == 0, done.stderr
    assert f"org/tiny, revision {'b' * 40} (main), from the Hugging Face cache" in " ".join(done.stdout.split())


def test_a_modelscope_cache_is_looked_into_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "ms" / "hub" / "models" / "org" / "tiny-1___5"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    done = compatcheck(tmp_path, "org/tiny-1.5")
    assert done.returncode == 0, done.stderr
    assert "type llama" in done.stdout


def sibling(**changed: object) -> dict[str, object]:
    name = "config.json"
    return {"rfilename": name, "size": len(CONFIG), "blobId": git_blob(CONFIG), **changed}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([1], "malformed"),
        ({"siblings": [{"rfilename": 5}], "sha": "a" * 40}, "malformed"),
        ({"siblings": [{}], "sha": "a" * 40}, "malformed"),
        ({"siblings": [], "sha": "../../../outside"}, "names no commit"),
        ({"siblings": [], "sha": 5}, "malformed"),
        ({"siblings": [sibling(rfilename="../../../outside.json")], "sha": REVISION}, "malformed"),
        ({"siblings": [sibling(rfilename="/outside.json")], "sha": REVISION}, "malformed"),
        ({"siblings": [sibling(blobId="../../../outside")], "sha": REVISION}, "malformed"),
        ({"siblings": [sibling(size=-1)], "sha": REVISION}, "malformed"),
        ({"siblings": [sibling(size=True)], "sha": REVISION}, "malformed"),
        ({"siblings": [sibling(), sibling(rfilename="config.json/a.json")], "sha": REVISION}, "malformed"),
        ({"siblings": [sibling(), sibling()], "sha": REVISION}, "malformed"),
        ({"siblings": [sibling(size=1 << 40)], "sha": REVISION}, "1 small files with"),
        ({"siblings": [sibling(size=20)], "sha": REVISION}, "more than 20 bytes"),
        ({"siblings": [sibling(blobId="b" * 40)], "sha": REVISION}, "does not have the hash"),
    ],
)
def test_an_answer_of_a_hub_that_cannot_be_is_one_line(answer: object, words: str, hub: str, tmp_path: Path) -> None:
    Hub.answered = answer
    done = compatcheck(tmp_path, "org/tiny", "--online", endpoint=hub)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not [*tmp_path.rglob("outside*")] and not [*tmp_path.rglob("config.json")]
    assert not [*tmp_path.rglob(".compatcheck-*")]


def test_a_cache_that_cannot_be_written_is_one_line(hub: str, tmp_path: Path) -> None:
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf/hub").write_text("", encoding="utf-8")
    done = compatcheck(tmp_path, "org/tiny", "--online", endpoint=hub)
    assert done.returncode == 2 and done.stderr.startswith("compatcheck: writing "), done.stderr
    assert "Errno" not in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["headers", "content"])
@pytest.mark.parametrize(("part", "pause"), [(b"x" * (1 << 20), 0.0), (b"x", 0.02)], ids=["endless", "dripping"])
def test_a_hub_without_end_is_given_up(
    start: bytes, part: bytes, pause: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve() -> None:
        connection = listener.accept()[0]
        with connection, suppress(OSError):
            connection.sendall(start)
            while True:
                connection.sendall(part)
                time.sleep(pause)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("HF_HOME", str(tmp_path))
        monkeypatch.setenv("NO_PROXY", "*")
        monkeypatch.setattr(limits, "DOWNLOAD_SECONDS", 1.0)
        with pytest.raises(InputError, match=r"fetching the model org/tiny"):
            find_folder("org/tiny", online=True)


@pytest.mark.parametrize(("token", "sent"), [("hf_AbCdEf", "Bearer hf_AbCdEf"), ("a\nb", None)])
def test_the_token_of_the_user_goes_to_the_hub(token: str, sent: str | None, tmp_path: Path, hub: str) -> None:
    (tmp_path / "token").write_text(f"{token}\n", encoding="utf-8")
    done = compatcheck(
        tmp_path, "org/tiny", "--online", endpoint=hub, HF_TOKEN="", HF_TOKEN_PATH=str(tmp_path / "token")
    )
    assert done.returncode == 0 and set(Hub.tokens) == {sent}
