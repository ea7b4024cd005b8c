"""What newer releases ask of the matrix, from an index that answers as PyPI does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from compatcheck.errors import InputError
from compatcheck.report import render
from tools.matrix.pages import due as pages
from tools.matrix.values import Due, Watched
from tools.matrix.watch import PYPI, question, watch

from ..conftest import ROOT, run_command
from ..matrix.test_entries import ENTRY

Answers = dict[str, tuple[int, bytes]]
Listing = Callable[..., None]


class _Recorded(BaseHTTPRequestHandler):
    """Answers by path, whatever else is asked."""

    def __init__(self, answers: Answers, *rest: Any) -> None:
        self.answers = answers
        super().__init__(*rest)

    def do_GET(self) -> None:
        status, body = self.answers.get(self.path, (404, b"{}"))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def answers() -> Answers:
    return {}


@pytest.fixture
def index(answers: Answers) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Recorded, answers))
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


@pytest.fixture
def listing(answers: Answers) -> Listing:
    """A package with its releases by the day of their upload, and what the newest requires."""

    def put(name: str, releases: dict[str, str | None], requires: tuple[str, ...] = (), yanked: str = "") -> None:
        files = [
            {
                "filename": f"{name}-{version}-py3-none-any.whl",
                "yanked": version == yanked,
                **({"upload-time": f"{day}T10:00:00.000000Z"} if day else {}),
            }
            for version, day in releases.items()
        ]
        answers[f"/simple/{name}/"] = 200, json.dumps({"name": name, "files": files}).encode()
        info = {"version": list(releases)[-1], "requires_dist": list(requires)}
        answers[f"/pypi/{name}/json"] = 200, json.dumps({"info": info}).encode()

    return put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A matrix of one open entry on torch, reviewed on 2026-11-21, and the tables by release of torch."""
    shutil.copytree(ROOT / "matrix" / "tables", tmp_path / "matrix" / "tables")
    (tmp_path / "matrix" / "interfaces").mkdir()
    shutil.copy(ROOT / "matrix" / "interfaces" / "index.json", tmp_path / "matrix" / "interfaces")
    write(tmp_path / "matrix", ENTRY.replace(">=2.5.0,<2.5.1", ">=2.5.0"))
    return tmp_path / "matrix"


def write(folder: Path, text: str) -> None:
    (folder / "torch").mkdir(exist_ok=True)
    (folder / "torch" / "CC-2026-9999.toml").write_text(text, encoding="utf-8")


def due(folder: Path, index: str, kind: str) -> list[str]:
    return [f"{each.subject} {each.why}" for each in watch(question(str(folder)), index).due if each.kind == kind]


def test_an_open_range_is_due_once_a_release_is_younger_than_its_review(
    folder: Path, index: str, listing: Listing
) -> None:
    listing("torch", {"2.13.0": "2026-07-01"})
    assert due(folder, index, "range") == []
    listing("torch", {"2.13.0": "2026-07-01", "2.16.0": "2026-12-01"})
    told = "is open to newer releases; torch 2.16.0 of 2026-12-01 was released after its review on 2026-11-21"
    assert due(folder, index, "range") == [f"CC-2026-9999 {told}"]


def test_a_range_that_ends_at_the_last_release_seen_is_due_with_the_next(
    folder: Path, index: str, listing: Listing
) -> None:
    write(folder, ENTRY.replace(">=2.5.0,<2.5.1", ">=2.5.0,<=2.13.0"))
    listing("torch", {"2.13.0": "2026-07-01", "2.13.1": "2026-12-01"})
    assert due(folder, index, "range")[0].startswith("CC-2026-9999 ends at 2.13.0, the last one seen; torch 2.13.1 of")
    listing("torch", {"2.13.0": "2026-07-01", "2.13.1": "2026-10-01", "2.14.0": "2026-12-01"})
    assert due(folder, index, "range") == [], "the reviewer had seen 2.13.1"
    write(folder, ENTRY)
    assert due(folder, index, "range") == [], "a fix is known"


def test_releases_that_do_not_count(folder: Path, index: str, listing: Listing) -> None:
    listing("torch", {"2.13.0": "2026-07-01", "2.16.0rc1": "2026-12-01", "2.17.0": "2026-12-02"}, yanked="2.17.0")
    assert due(folder, index, "range") == []


def test_without_upload_times_a_release_newer_than_any_named_is_due(folder: Path, index: str, listing: Listing) -> None:
    listing("torch", {"2.5.1": None})
    assert due(folder, index, "range") == []
    listing("torch", {"2.5.1": None, "2.6.0": None})
    assert len(due(folder, index, "range")) == 1


def test_tables_that_miss_a_release(folder: Path, index: str, listing: Listing) -> None:
    listing("torch", {"2.13.0": "2026-07-01", "2.99.0": "2026-12-01", "2.99.1": "2026-12-02"})
    listing("bitsandbytes", {"0.50.2": "2026-08-27"})
    told = due(folder, index, "table")
    names = {line.split()[0] for line in told}
    assert {"torch-companions", "torch-cuda-builds", "torch-architectures"} <= names
    read = [line for line in told if line.startswith("interfaces/torch ")]
    assert len(read) == 1 and read[0].endswith("; there is torch 2.99.1")
    assert all("there is torch" in line and "2.99.0, 2.99.1" in line for line in told if line not in read)
    assert "bitsandbytes-libraries" not in names
    listing("bitsandbytes", {"0.50.2": "2026-08-27", "0.99.0": "2026-12-01"})
    assert any(line.startswith("bitsandbytes-libraries was last reviewed on") for line in due(folder, index, "table"))


def test_a_new_cap_against_what_an_entry_advises(folder: Path, index: str, listing: Listing) -> None:
    write(folder, ENTRY.replace("training.packing = true\n\n[[rem", 'distributions.peft = "<0.20"\n\n[[rem'))
    listing("torch", {"2.4.0": "2025-01-01", "2.5.1": "2025-02-01"})
    listing("peft", {"0.20.0": "2026-12-01"}, ("torch>=1.13", "numpy; extra == 'x'"))
    assert due(folder, index, "cap") == []
    listing("peft", {"0.20.0": "2026-12-01"}, ("torch>=1.13,<2.5", "not a requirement"))
    told = "CC-2026-9999 advises torch>=2.5.1, and peft 0.20.0 requires torch<2.5,>=1.13"
    assert due(folder, index, "cap") == [told]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((503, b""), "the index answers 503"),
        ((200, b"<html>"), "the index sends no JSON"),
        ((200, b"[]"), "JSON with an unexpected structure"),
        ((200, b'{"files": [{"filename": "x"}, {}, 3]}'), "no final release"),
    ],
)
def test_a_package_that_the_index_does_not_give_is_unknown_with_the_reason(
    folder: Path, index: str, answers: Answers, listing: Listing, answer: tuple[int, bytes], told: str
) -> None:
    listing("torch", {"2.13.0": "2026-07-01"})
    answers["/simple/bitsandbytes/"] = answer
    watched = watch(question(str(folder)), index)
    assert told in watched.unknown["bitsandbytes"] and watched.asked == ("torch",)
    assert "unknown\n" in render(pages.document(watched), "text")


def test_what_people_type(folder: Path, index: str, listing: Listing, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(sys.executable, "matrix", "watch", str(folder), *arguments, cwd=tmp_path, UV_INDEX_URL=index)

    listing("torch", {"2.16.0": "2026-12-01"})
    done = run("--format", "json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and {each["subject"] for each in told["due"]} >= {"CC-2026-9999", "torch-companions"}
    assert (told["address"], told["asked"]) == (index, ["torch"])
    assert re.fullmatch(r"asking the index for \d+ packages\n", done.stderr)
    down = run("--index-url", "http://who:secret@127.0.0.1:1/simple")
    assert down.returncode == 3 and "no answer for any package; accelerate" in down.stderr
    assert "secret" not in down.stderr + down.stdout


def test_a_list_to_tick_off() -> None:
    watched = Watched("https://i/simple", ("torch",), (), {"peft": "the index answers 404"})
    assert render(pages.document(watched), "markdown").splitlines()[0] == (
        "### compatcheck: :white_check_mark: 1 packages checked at https://i/simple: 0 to review, 1 unknown"
    )


def test_a_package_of_which_nothing_is_open_and_no_address_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="nothing to review for it"):
        question(str(folder), ("tabulate",))
    with pytest.raises(InputError, match="not a web address"):
        watch(question(str(folder)), "file:///etc/passwd")


@pytest.mark.network
def test_the_real_index_answers() -> None:
    watched = watch(question(None, ("bitsandbytes", "peft")), PYPI)
    assert watched.asked == ("bitsandbytes", "peft")
    assert not any(name in watched.unknown for name in watched.asked)


@pytest.mark.parametrize("name", ["torch", "torch-rocm-architectures"])
def test_name_of_any_length_is_separate_from_the_text(name: str) -> None:
    watched = Watched(PYPI, ("torch",), (Due("table", name, "torch", "2.13.0", "its newest row is 2.12.0"),), {})
    assert re.search(rf"^  {name} +its newest row is 2\.12\.0$", render(pages.document(watched), "text"), re.MULTILINE)
