"""The real uv on tiny wheels: what is preferred, what is demanded, and what a failure tells the user."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from compatcheck.advice import formats, resolver
from compatcheck.advice._credentials import redacted, without_credentials
from compatcheck.advice.model import Demands, Line, Place, Solution, Unsolvable, Wanted
from compatcheck.advice.wanted import read
from compatcheck.environment import Location
from compatcheck.errors import InputError

from .tiny_wheels import write_wheel

ROOT = Path(__file__).parents[2]
HERE = Place(sys.executable)
SETTINGS = """
{}
[pip]
no-annotate = true
generate-hashes = true
annotation-style = "split"
emit-find-links = true
universal = true
upgrade = true
no-header = false
no-strip-extras = true
"""
LINKS = "no-index = true\nfind-links = ['links']"


@pytest.fixture(autouse=True)
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels as the only source, and a user whose settings of uv ask for another style of output."""
    for version in ("2.5.0+cu118", "2.5.1+cu118", "2.6.0"):
        write_wheel(tmp_path / "links", "torch", version)
    for version, torch in (("0.20.0", "2.5.0"), ("0.20.1", "2.5.1"), ("0.21.0", "2.6.0")):
        write_wheel(tmp_path / "links", "torchvision", version, [f"torch=={torch}", "numpy"])
    for version in ("1.26.4", "2.0.0"):
        write_wheel(tmp_path / "links", "numpy", version)
    write_wheel(tmp_path / "links", "peft", "0.12.0", ["torch>=2.5.0", "numpy<2"])
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    (tmp_path / "uv.toml").write_text(SETTINGS.format(LINKS), encoding="utf-8")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "links"


def wanted(*asked: str, preferred: Mapping[str, str] | None = None, constraints: tuple[str, ...] = ()) -> Wanted:
    lines = (
        Line(text, text.split()[0].rstrip("<>=.0123456789"), text, at=Location("requirements.in", number))
        for number, text in enumerate(asked, 1)
    )
    return Wanted(tuple(lines), preferred or {}, constraints)


def versions(solution: Solution) -> dict[str, str]:
    return dict(solution.versions)


def test_what_is_preferred_stays_and_the_rest_is_the_newest() -> None:
    solution = resolver.resolve(wanted("torchvision", preferred={"torchvision": "0.20.0"}), Demands(), HERE)
    assert versions(solution) == {"torchvision": "0.20.0", "torch": "2.5.0+cu118", "numpy": "2.0.0"}
    assert solution.parents == {"torchvision": (), "torch": ("torchvision",), "numpy": ("torchvision",)}


@pytest.mark.parametrize(
    "preferred, expected",
    [
        ("2.5.0+cu118", "2.5.0+cu118"),
        ("2.6.0+cu118", "2.6.0"),
        ("1.13.1", "2.6.0"),
        ("2.5.0-unknown-build", "2.6.0"),
    ],
)
def test_a_build_is_kept_where_it_is_served_and_its_release_otherwise(preferred: str, expected: str) -> None:
    solution = resolver.resolve(wanted("torch", preferred={"torch": preferred}), Demands(), HERE)
    assert versions(solution) == {"torch": expected}


def test_a_demand_moves_what_is_preferred_to_the_newest_it_allows_and_its_companion_follows() -> None:
    before = {"torch": "2.5.0+cu118", "torchvision": "0.20.0", "numpy": "1.26.4"}
    solution = resolver.resolve(
        wanted("torch", "torchvision", preferred=before), Demands({"torch": ">=2.5.1,<2.6"}), HERE
    )
    assert versions(solution) == {"torch": "2.5.1+cu118", "torchvision": "0.20.1", "numpy": "1.26.4"}


def test_pre_releases_count_where_a_line_allows_them(links: Path) -> None:
    write_wheel(links, "numpy", "2.1.0rc1")
    assert versions(resolver.resolve(wanted("numpy"), Demands(), HERE)) == {"numpy": "2.0.0"}
    assert versions(resolver.resolve(wanted("numpy", "--pre"), Demands(), HERE)) == {"numpy": "2.1.0rc1"}


def test_an_empty_demand_brings_a_distribution() -> None:
    assert versions(resolver.resolve(wanted("numpy"), Demands({"peft": ""}), HERE))["peft"] == "0.12.0"


def test_constraints_of_the_user_limit_beside_those_of_uv_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs.txt").write_text("torch<2.6\n", encoding="utf-8")
    monkeypatch.setenv("UV_CONSTRAINT", "theirs.txt")
    solution = resolver.resolve(wanted("torchvision", constraints=("numpy<2",)), Demands({"torch": "!=2.5.1"}), HERE)
    assert versions(solution) == {"torchvision": "0.20.0", "torch": "2.5.0+cu118", "numpy": "1.26.4"}


def test_what_has_no_version_is_said_to_have_none(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "elsewhere", "mine", "1.0", ["numpy<2"])
    solution = resolver.resolve(wanted(f"mine @ {wheel.as_uri()}"), Demands(), HERE)
    assert versions(solution) == {"numpy": "1.26.4"}
    assert solution.unversioned == (f"mine @ {wheel.as_uri()}",) and solution.parents["numpy"] == ("mine",)


def test_another_machine_has_its_own_wheels(links: Path) -> None:
    write_wheel(links, "kernels", "2.0", tag="cp312-cp312-manylinux_2_28_aarch64")
    write_wheel(links, "kernels", "1.0")
    aarch64 = HERE._replace(python_version="3.12", platform="aarch64-manylinux_2_28")
    assert versions(resolver.resolve(wanted("kernels"), Demands(), aarch64)) == {"kernels": "2.0"}
    x86_64 = HERE._replace(python_version="3.12", platform="x86_64-manylinux_2_28")
    assert versions(resolver.resolve(wanted("kernels"), Demands(), x86_64)) == {"kernels": "1.0"}


def test_a_conflict_names_the_users_line_and_the_matrix() -> None:
    with pytest.raises(Unsolvable) as caught:
        resolver.resolve(wanted("numpy", "torch<2.5.1"), Demands({"torch": ">=2.5.1"}), HERE)
    assert str(caught.value) == (
        "resolving the requirements: the matrix requires torch>=2.5.1 and requirements.in:2 has the requirement "
        "torch<2.5.1; relax one of these requirements"
    )


def test_a_line_that_uv_cannot_read_is_named_by_its_place() -> None:
    with pytest.raises(InputError, match=r"requirements\.in:2: Expected one of") as caught:
        resolver.resolve(wanted("numpy", "tor ch"), Demands(), HERE)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"requirements\.in:2: .*x\.zip.*: Remote archives cannot be editable"):
        resolver.resolve(wanted("numpy", "-e https://host/x.zip"), Demands(), HERE)


@pytest.mark.parametrize(
    "line",
    [
        "--index-url bob:Sup3rS3cret@127.0.0.1/simple",
        "--index-url http://tok:Sup3r/S3cret@host/simple",
        "torch @ https://tok:Sup3r/S3cret@host/torch-1.0-py3-none-any.whl",
        "--find-links bob:Sup3rS3cret@host/links",
    ],
)
def test_no_secret_is_in_what_uv_says_of_an_address_that_is_none(line: str) -> None:
    Path("uv.toml").write_text(SETTINGS.format(""), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        resolver.resolve(wanted("numpy", line), Demands(), HERE)
    assert "requirements.in:2" in str(caught.value)
    assert "****@" in str(caught.value) and not re.search("S(up3r|3cret)", str(caught.value))


def test_an_editable_link_is_built_like_any_other(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "pyproject.toml").write_text('[project]\nname = "mine"\nversion = "1"\ndependencies = ["numpy<2"]\n')
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(source))
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *command], check=True)
    path = tmp_path / "requirements.txt"
    path.write_text(f"-e git+file://{source}#egg=mine\n", encoding="utf-8")
    solution = resolver.resolve(read([str(path)], None), Demands(), HERE)
    assert versions(solution) == {"numpy": "1.26.4"}
    assert solution.unversioned[0].startswith(f"mine @ git+file://{source}@")


def sdist(folder: Path, name: str, version: str, setup: str) -> None:
    """A source distribution whose metadata only its own ``setup.py`` can tell."""
    import io
    import tarfile

    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
        texts = {"setup.py": setup, "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
        for path, text in texts.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


def test_what_cannot_be_built_keeps_its_version_and_says_why(links: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("uv.toml").write_text(SETTINGS.format(""), encoding="utf-8")
    monkeypatch.setenv("UV_FIND_LINKS", str(links))
    sdist(links, "flash_attn", "2.5.8", "import torch")
    asked = wanted("flash-attn", "numpy<=2.0.0", preferred={"flash-attn": "2.5.8"})
    first = resolver.resolve(asked, Demands(), HERE)
    assert versions(first) == {"flash-attn": "2.5.8", "numpy": "2.0.0"}
    assert "are known only after a build" in first.kept["flash-attn"]
    moved = resolver.resolve(asked, Demands({"flash-attn": ">=2.6.0"}), HERE, first.kept)
    assert versions(moved)["flash-attn"] == "2.6.0"
    with pytest.raises(Unsolvable, match="flash-attn<2.5"):
        resolver.resolve(asked, Demands({"flash-attn": "<2.5"}), HERE, first.kept)
    assert "flash" not in resolver.lock(asked, first, Demands(), HERE, "requirements.txt")


def test_a_lock_holds_the_very_solution(links: Path) -> None:
    write_wheel(links, "numpy", "1.26.4+mkl")
    asked = wanted("torchvision")
    solution = Solution({"numpy": "1.26.4", "torch": "2.5.0+cu118", "torchvision": "0.20.0"})
    hashed = resolver.lock(asked, solution, Demands(), HERE, "requirements.txt")
    assert hashed.split()[::3] == ["numpy==1.26.4", "torch==2.5.0+cu118", "torchvision==0.20.0"]
    assert hashed.count("--hash=sha256:") == 3
    pylock = resolver.lock(asked, solution, Demands(), HERE, "pylock.toml")
    assert re.findall(r'^version = "(.+)"', pylock, re.MULTILINE) == list(solution.versions.values())


def test_an_index_that_does_not_answer_is_named_without_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("uv.toml").write_text(SETTINGS.format(""), encoding="utf-8")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://user:s3cret@127.0.0.1:9/simple")
    with pytest.raises(
        resolver.IndexDown, match=r"fetching http://127\.0\.0\.1:9/simple/einops/: .*--offline"
    ) as caught:
        resolver.resolve(wanted("einops"), Demands(), HERE)
    assert "s3cret" not in str(caught.value)


def test_an_empty_cache_is_no_contradiction() -> None:
    Path("uv.toml").write_text(SETTINGS.format(""), encoding="utf-8")
    cold = HERE._replace(offline=True)
    with pytest.raises(
        resolver.IndexDown, match=r"uv's cache: the cache contains no file of .*einops.*; run this once"
    ) as caught:
        resolver.resolve(wanted("einops", "numpy"), Demands(), cold)
    assert caught.value.exit_status == 2
    with pytest.raises(Unsolvable, match="without --offline with access to the index"):
        resolver.resolve(wanted("einops"), Demands({"einops": ">=1"}), cold)


class PrivateIndex(BaseHTTPRequestHandler):
    """Serves the folder of wheels to those who know the password, and otherwise asks for it."""

    folder: Path

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != "Basic dXNlcjpzM2NyZXQ=":
            self._send(401, b"", **{"WWW-Authenticate": 'Basic realm="wheels"'})
        elif self.path.endswith(".whl"):
            self._send(200, (self.folder / Path(self.path).name).read_bytes())
        else:
            names = [path.name for path in self.folder.iterdir() if path.name.startswith(Path(self.path).name + "-")]
            page = "".join(f'<a href="/files/{name}">{name}</a>' for name in names)
            self._send(200, page.encode(), **{"Content-Type": "text/html"})

    do_HEAD = do_GET

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def index(links: Path) -> str:
    """The address of a private index, without credentials."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Index", (PrivateIndex,), {"folder": links}))
    Thread(target=server.serve_forever, daemon=True).start()
    Path("uv.toml").write_text(SETTINGS.format(""), encoding="utf-8")
    return f"127.0.0.1:{server.server_address[1]}"


def test_credentials_pass_through_uv_and_come_out_nowhere(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://user:s3cret@{index}/simple")
    asked = wanted("peft", f"torch @ http://user:s3cret@{index}/files/torch-2.6.0-py3-none-any.whl")
    solution = resolver.resolve(asked, Demands(), HERE)
    assert versions(solution) == {"peft": "0.12.0", "numpy": "1.26.4"}
    assert solution.unversioned == (f"torch @ http://****@{index}/files/torch-2.6.0-py3-none-any.whl",)
    locks = [resolver.lock(asked, solution, Demands(), HERE, form) for form in ("requirements.txt", "pylock.toml")]
    assert not any("s3cret" in text for text in (str(solution), *locks))
    nothing = Wanted((), {})
    pylock = formats.render("pylock", nothing, solution, {}, locks[1], None)
    assert pylock.startswith("# compatcheck: the credentials of URLs are omitted")
    assert formats.left_out("pylock", nothing, None, pylock) == (
        "pylock.toml: its credentials are omitted, keep them in a .netrc file or a keyring",
    )


def test_no_url_of_a_new_file_holds_what_looks_like_a_token() -> None:
    token = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
    text = without_credentials(f"https://host/{token}/a.whl?x=1 https://host/a.whl?t={token} https://host/a.whl?t=1")
    assert text == "https://host/***/a.whl?x=1 https://host/a.whl https://host/a.whl?t=1"


def test_an_index_that_lets_nobody_in_is_told_apart_from_a_missing_package(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://user:wr0ng@{index}/simple")
    with pytest.raises(resolver.IndexDown, match=r"401 Unauthorized.*credentials") as caught:
        resolver.resolve(wanted("peft"), Demands(), HERE)
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("at https://user:p@ss@host/x and http://token@host", "at https://****@host/x and http://****@host"),
        ("at http://tok:Sup3r/S3cret@host/simple", "at http://****@host/simple"),
        ("URL: bob:s3cret@127.0.0.1/simple", "URL: ****@127.0.0.1/simple"),
        ("git+https://host:8443/x.git@v1 a.txt:3: b @ http://[::1]:80/a@b", None),
        ("git+ssh://git@host/x.git", "git+ssh://git@host/x.git"),
        ("https://host/x.whl?X-Signature=abc#sha256=00", "https://host/x.whl?****#sha256=00"),
        ("torch @ file:///tmp/a@b", "torch @ file:///tmp/a@b"),
    ],
)
def test_what_is_redacted(text: str, expected: str | None) -> None:
    assert redacted(text) == (expected or text)


def gone(pid: int) -> bool:
    """Whether the process has ended; whoever adopted it may take a moment to notice."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


HANGING = """
import sys
from compatcheck.advice import resolver
from compatcheck.advice.model import *
resolver.resolve(Wanted((Line("slow", "slow", "slow"),), {}), Demands(), Place(sys.executable))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_ends_uv_and_what_it_started_and_leaves_no_file(
    links: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """The build of a source distribution runs below uv, and writes down who it is."""
    sdist(
        links,
        "slow",
        "1.0",
        f"import os, time; os.symlink(str(os.getpid()), {str(tmp_path / 'pid')!r}); time.sleep(600)",
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environ = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    Path("uv.toml").unlink()  # building needs setuptools
    environ["UV_FIND_LINKS"] = str(links)
    process = subprocess.Popen([sys.executable, "-c", HANGING], env=environ, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").is_symlink() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGINT), stderr
    assert gone(int(os.readlink(tmp_path / "pid")))
    assert not [path for path in temporary.iterdir() if path.name.startswith("compatcheck")]
