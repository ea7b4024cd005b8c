"""A publisher with real keys, a real server that can be told to misbehave, and a client with a matrix of its own."""

from __future__ import annotations

import contextlib
import functools
import io
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from compatcheck.errors import CompatcheckError
from compatcheck.matrix import loading
from compatcheck.matrix.compile import write_compiled
from compatcheck.verbs import matrix as verbs
from tests.conftest import ROOT
from tools import sign_matrix as SIGN

SOURCES = ROOT / "matrix"
ENTRIES = sorted((SOURCES / "deepspeed").glob("CC-*.toml"))[:3]
IDS = [path.stem for path in ENTRIES]
Misbehaviour = Callable[[SimpleHTTPRequestHandler, bytes], None]


def sources(folder: Path, count: int) -> Path:
    """A matrix of the first so many entries, reviewed on the first of the month of that number."""
    (folder / "deepspeed").mkdir(parents=True)
    (folder / "tables").mkdir()
    (folder / "tables" / "small.toml").write_text("reviewed = 2024-01-01\n", encoding="utf-8")
    for path in ENTRIES[:count]:
        text = "".join(
            "published = 2024-01-01\n"
            if line.startswith("published")
            else f"reviewed = 2026-{count:02}-01\n"
            if line.startswith("reviewed")
            else line
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        )
        (folder / "deepspeed" / path.name).write_text(text, encoding="utf-8")
    return folder


class Publisher:
    """Who signs the matrix: two root keys, one for the matrix and one for the dates."""

    def __init__(self, folder: Path, matrices: dict[int, Path]) -> None:
        self.repo = folder / "repo"
        self.keys = folder / "keys"
        self.keys.mkdir(parents=True)
        self.matrices = matrices
        for name in ("one", "two", "targets", "online"):
            self.key(name)
        self.root(
            "--root-key", self.pub("one"), self.pub("two"), "--threshold", "2",
            "--targets-key", self.pub("targets"), "--online-key", self.pub("online"),
        )  # fmt: skip

    def run(self, *arguments: object) -> int:
        return int(SIGN.main([str(argument) for argument in arguments]))

    def key(self, name: str) -> Path:
        path = self.keys / name
        assert self.run("key", path) == 0
        return path

    def pub(self, name: str) -> Path:
        return self.keys / f"{name}.pub"

    def root(self, *arguments: object, signers: tuple[str, ...] = ("one", "two")) -> Path:
        assert self.run("root", self.repo, *arguments) == 0
        for name in signers:
            assert self.run("sign", self.repo, "--key", self.keys / name) == 0
        return self.root_file

    @property
    def root_file(self) -> Path:
        return self.repo / "metadata" / "1.root.json"

    def publish(self, count: int, *days: str, online: str | None = "online") -> None:
        """The matrix of so many entries."""
        held = [part for day in days for part in ("--days", day)]
        keys = ["--targets-key", self.keys / "targets", *(("--online-key", self.keys / online) if online else ())]
        assert self.run("publish", self.repo, "--matrix", self.matrices[count], *keys, *held) == 0


class Server(ThreadingHTTPServer):
    """Serves a folder; what is asked for under a path that ends as a key of ``misbehave`` is sent by that function."""

    folder: Path
    misbehave: dict[str, Misbehaviour]
    asked: list[str]
    daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/matrix"


class Handler(SimpleHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        path = self.server.folder / self.path.removeprefix("/matrix/")
        for ending, send in self.server.misbehave.items():
            if self.path.endswith(ending):
                with contextlib.suppress(ConnectionError):
                    send(self, path.read_bytes() if path.is_file() else b"")
                self.close_connection = True
                return
        if path.is_file():
            answer(self, path.read_bytes())
        else:
            self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


def answer(handler: SimpleHTTPRequestHandler, content: bytes, length: int | None = None) -> None:
    """An answer of status 200 that announces ``length`` bytes, by default as many as it has."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


class Answer(NamedTuple):
    status: int
    text: str


class Client:
    """`compatcheck matrix update` and `list`, as an installation with a matrix of one entry has them."""

    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self.root = root

    def update(self, *arguments: str) -> Answer:
        return run("update", *(arguments or ("--url", self.url, "--root", str(self.root))))

    def listed(self) -> list[str]:
        return [line.split()[0] for line in run("list").text.splitlines()]


def run(*arguments: str) -> Answer:
    """A verb of `compatcheck matrix`, its exit status, and all that it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            verbs.command.main(list(arguments), standalone_mode=False)
            status = 0
        except CompatcheckError as error:
            click.echo(str(error))
            status = error.exit_status
    return Answer(status, printed.getvalue())


@pytest.fixture(scope="session")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    return {count: sources(tmp_path_factory.mktemp("sources") / "matrix", count) for count in (1, 2, 3)}


@pytest.fixture(scope="session")
def first_edition(matrices: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> Publisher:
    """A publisher whose repository holds the matrix of two entries; not to be changed."""
    made = Publisher(tmp_path_factory.mktemp("publisher"), matrices)
    made.publish(2)
    return made


@pytest.fixture
def publisher(first_edition: Publisher, tmp_path: Path) -> Publisher:
    """The same with folders of its own."""
    made = Publisher.__new__(Publisher)
    made.repo = Path(shutil.copytree(first_edition.repo, tmp_path / "repo"))
    made.keys = Path(shutil.copytree(first_edition.keys, tmp_path / "keys"))
    made.matrices = first_edition.matrices
    return made


@pytest.fixture
def server(publisher: Publisher) -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), functools.partial(Handler))
    made.folder, made.misbehave, made.asked = publisher.repo, {}, []
    thread = threading.Thread(target=functools.partial(made.serve_forever, poll_interval=0.02), daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="session")
def bundled(matrices: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled matrix of one entry, as a wheel carries it; not to be changed."""
    folder = tmp_path_factory.mktemp("bundled")
    write_compiled(matrices[1], folder)
    return folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the client keeps what it fetches."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "compatcheck" / "matrix"


@pytest.fixture
def client(server: Server, publisher: Publisher, bundled: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(loading, "_COMPILED", str(bundled))
    for name in ("COMPATCHECK_MATRIX_URL", "COMPATCHECK_MATRIX_ROOT", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(bundled))  # reading the real certificates takes longer than the rest
    return Client(server.url, publisher.root_file)
