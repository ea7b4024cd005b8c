"""The one list of what reads a stranger's bytes. A target takes an input and may raise `CompatcheckError` alone.

Each works in an emptied folder that is the working directory. What it reads is said to be right by the checks that
every result passes: facts are those of a snapshot, JSON is JSON, and an error is one line.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from compatcheck import bug_report, data, delivery, language, matrix, report, settings, symptoms
from compatcheck.environment import Environment, Target
from compatcheck.environment.assumptions import assume_all
from compatcheck.environment.snapshot import load_snapshot, read_snapshot
from compatcheck.errors import CompatcheckError, InputError
from compatcheck.project.reading import read_paths
from compatcheck.report.document import NO_EXIT, Exit
from compatcheck.terminal.cells import visible
from compatcheck.terminal.messages import one_line
from tools.fuzz.case import laid_out


class FuzzTarget(NamedTuple):
    """A reader: what runs on an input, whether inputs are folders, and the most bytes of one."""

    run: Callable[[bytes, list[str]], object]
    packed: bool
    largest: int


TARGETS: dict[str, FuzzTarget] = {}


def target(*, packed: bool = True, largest: int = 1 << 15) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Enter a function into the list, under its name."""

    def enter(run: Callable[..., object]) -> Callable[..., object]:
        TARGETS[run.__name__] = FuzzTarget(run, packed, largest)
        return run

    return enter


def read(name: str, content: bytes) -> None:
    """Let a target read an input in the working directory; raises what is a fault."""
    one = TARGETS[name]
    names = laid_out(content, os.curdir) if one.packed else laid_out(b"", os.curdir)
    try:
        found = one.run(content, names)
    except CompatcheckError as error:
        line = one_line(language.error_line(error))
        if "\n" in line or line != visible(line):
            raise AssertionError(f"an error of several lines or with control characters: {line!r}") from None
    else:
        _check(found)


def _check(found: object) -> None:
    """That facts are what a snapshot may hold, and read back from one."""
    if isinstance(found, Environment):
        load_snapshot(json.dumps(found.dump()), "the facts that were read")


@functools.cache
def known() -> matrix.Matrix:
    return matrix.load()


@functools.cache
def _patterns() -> tuple[Any, ...]:
    return matrix.patterns(known())


@target()
def requirements(content: bytes, names: list[str]) -> object:
    """Lists of packages and lock files, Dockerfiles: each file by the reader that knows its name."""
    from compatcheck.project import requirements as lists

    found = Environment()
    for name in names:
        kind = lists.identify(name)
        if kind is not None:
            found = found.overlay(lists.readers()[kind].read(name, (None, "3.11.7")[len(content) % 2]))
    return found


@target()
def pinned(content: bytes, names: list[str]) -> None:
    """What `pin` reads and rewrites: requirements and project files, and what it wrote before."""
    from compatcheck.advice import wanted

    chosen = [name for name in names if name.endswith((".txt", ".toml"))]
    wanted.read(chosen, {"python_version": "3.11", "sys_platform": "linux"})
    for name in chosen:
        wanted.pins_in(name)


@target(packed=False)
def uv_answers(content: bytes, names: list[str]) -> None:
    """What uv says: a solution, a lock, and the ways it fails."""
    from compatcheck.advice._uv import Done
    from compatcheck.advice.environment import _room
    from compatcheck.advice.model import Demands, Place, Wanted
    from compatcheck.advice.resolver import _compile, _failures

    said = content.decode("utf-8", "replace")
    _compile._solution(said)
    _compile._yanked(said)
    _failures.unbuildable(said)
    _failures.failure(Done(1, "", said), Wanted((), {}), Demands(), Place("python"))
    _room.needed_bytes(said, offline=True)


def _project(names: list[str]) -> Environment:
    """The first file as one that is named, else the folder as one that is."""
    if len(names) == 1 or names and not os.path.dirname(names[0]):
        return read_paths([names[0]], python="3.11.7").environment
    return read_paths([os.curdir], python="3.11.7").environment


@target()
def configurations(content: bytes, names: list[str]) -> object:
    """Training configurations in YAML, JSON, TOML and Python."""
    return _project(names)


@target()
def launch_scripts(content: bytes, names: list[str]) -> object:
    """Shell scripts with the files that they start."""
    return _project(names)


@target()
def scripts(content: bytes, names: list[str]) -> object:
    """Python scripts that train, and the modules beside them."""
    from compatcheck.project import scripts as trainers
    from compatcheck.project.script_calls.reader import read_calls

    trainers.read([name for name in names if name.endswith(".py")])
    read_calls(names[0] if names else "missing.py", None)
    return _project(names)


@target(largest=1 << 16)
def notebooks(content: bytes, names: list[str]) -> object:
    """Notebooks that train."""
    return _project(names)


@target(largest=1 << 16)
def folders(content: bytes, names: list[str]) -> object:
    """Whole project folders: which files count, and how they go together."""
    return read_paths([os.curdir], python="3.11.7").environment


@target(largest=1 << 16)
def models(content: bytes, names: list[str]) -> object:
    """Model folders: configuration, tokenizer, headers of weights, code, and what changed from another."""
    from compatcheck.project import model_files
    from compatcheck.project.model_files import model

    found = model.read_model(os.curdir, weights=len(content) % 4 == 0)
    for folder in {os.path.dirname(name) for name in names if name.endswith("/config.json")}:
        model.read_model(os.path.abspath(folder))
    model.model_config(os.curdir)
    model_files.code_files(os.curdir)
    if os.path.isdir("old"):
        json.dumps(model.compare_models("old", os.curdir))
    data.judge_embedding(os.curdir, {1: "<a>", 2: "<b>"})
    return found


@target(packed=False, largest=1 << 16)
def logs(content: bytes, names: list[str]) -> object:
    """Logs of any kind, plain or gzip, and trainer_state.json."""
    Path("train.log").write_bytes(content)
    return symptoms.read("train.log", _patterns()).facts


@target(packed=False, largest=1 << 14)
def event_files(content: bytes, names: list[str]) -> object:
    """TensorBoard's event files."""
    Path("events.out.tfevents.1.host").write_bytes(content)
    return symptoms.read("events.out.tfevents.1.host").facts


@target(packed=False, largest=1 << 15)
def reports(content: bytes, names: list[str]) -> object:
    """Pasted reports, web pages, and what GitHub's API gives."""
    Path("report.md").write_bytes(content)
    text, source = bug_report.read_text_of_report("report.md")
    symptoms.read_words(bug_report.lines_of_text(text), source)
    return bug_report.read_account(text, source).environment


@target(largest=1 << 15)
def diagnoses(content: bytes, names: list[str]) -> object:
    """`diagnose` on any mix of files, to the end, in one format after another."""
    from compatcheck.pipelines.diagnose import Given, explain, read_case
    from compatcheck.report.subjects import diagnosis

    reading = read_case(Given(tuple(names)), known())
    found = explain(reading, known(), tuple(names))
    _rendered(diagnosis.document(found, verbose=True, everything=True), content)
    return reading.case.environment


@target(packed=False, largest=1 << 15)
def snapshots(content: bytes, names: list[str]) -> object:
    """Snapshots: read, compared with the whole matrix, and shown in one format after another."""
    from compatcheck.pipelines import verdict
    from compatcheck.report.subjects import check

    Path("node.json").write_bytes(content)
    environment = read_snapshot("node.json")
    judged = verdict.judge(environment, known(), verdict.Options())
    exit = Exit(judged.reason, judged.exit_status)
    _rendered(check.document(judged.report, exit, refuted=True, verbose=True), content)
    return environment


def _rendered(document: Any, content: bytes) -> None:
    format_name = report.FORMATS[len(content) % len(report.FORMATS)]
    text = report.render(document, format_name)
    if format_name in ("json", "sarif", "gitlab"):
        json.loads(text)
    if "\x1b" in text or "\0" in text:
        raise AssertionError(f"a control character in {format_name}")


@target(packed=False, largest=1 << 12)
def assumptions(content: bytes, names: list[str]) -> object:
    """What `--assume` states."""
    return assume_all(Environment(), content.decode("utf-8", "surrogateescape").split("\n"))


@target()
def project_settings(content: bytes, names: list[str]) -> None:
    """The table of `pyproject.toml`, and `ignore` that writes into it."""
    from datetime import date

    with contextlib.suppress(InputError):
        settings.read("pyproject.toml")
    ignore = settings.Ignore("CC-2024-0001", "batch size is 1", date(2099, 1, 1))
    edited = settings.with_ignore(os.curdir, ignore)
    Path("pyproject.toml").write_text(edited.text, encoding="utf-8", errors="surrogateescape")
    if not any(each.id == "CC-2024-0001" for each in settings.read("pyproject.toml").ignores):
        raise AssertionError("the ignore was written and is not read")
    settings.without_ignore(os.curdir, "CC-2024-0001", ())


@target(packed=False)
def baselines(content: bytes, names: list[str]) -> None:
    """An earlier report as a baseline."""
    Path("baseline.json").write_bytes(content)
    settings.hold_against(_report(), "baseline.json")


@functools.cache
def _report() -> Any:
    from compatcheck.pipelines.check import check

    facts = {"distributions": {"torch": "2.5.0", "transformers": "4.48.0"}, "training": {"dtype": "float16"}}
    return check(Environment(facts), known())


@target(packed=False, largest=1 << 16)
def rows(content: bytes, names: list[str]) -> None:
    """Files of conversations, plain or gzip."""
    Path("rows.jsonl").write_bytes(content)
    found = data.survey("rows.jsonl", 20)
    for problem in data.judge_rows(found, with_tokenizer=False):
        json.dumps(problem._asdict(), default=str)


@target(packed=False)
def interpreter_answers(content: bytes, names: list[str]) -> None:
    """What an interpreter says of itself."""
    from compatcheck.installed import _interpreter

    answer = _interpreter._answer("python", content)
    _interpreter.Description(answer["version"], answer["executable"], answer["prefix"], tuple(answer["folders"]))


@target(largest=1 << 16)
def environments(content: bytes, names: list[str]) -> object:
    """Installed distributions: metadata, records, links and path files of a venv, and the modules of a release."""
    from compatcheck import import_check
    from compatcheck.import_check import _child
    from compatcheck.installed import read_releases
    from compatcheck.installed.collect import collect
    from compatcheck.installed.declared import movable, top_level
    from compatcheck.installed.distributions import scan
    from compatcheck.installed.modules import modules_of, record_of
    from compatcheck.installed.target import find_target

    found = find_target(os.path.abspath("venv"), {})
    environment = collect(found, known().environ)
    movable(found, top_level(found))
    read_releases.with_read_releases(known().table, found)
    import_check.with_imports(environment, found)
    for each in scan(found).installed:
        with contextlib.suppress(InputError):
            code, stubs = modules_of(each, record_of(each), lambda module: None)
            for held in (code, stubs):
                for name in [*held][:3]:
                    held.get(name), held.is_written(name)
    with contextlib.redirect_stdout(StringIO()):
        _child._failures(found, ())
    return environment


@target(largest=1 << 16)
def modules(content: bytes, names: list[str]) -> None:
    """Python files of installed packages, as `--imports` follows them."""
    from keyword import iskeyword

    from compatcheck.files.python_syntax import parse_code
    from compatcheck.files.reading import start_of
    from compatcheck.import_check import _lazy
    from compatcheck.import_check._finder import Finder
    from compatcheck.import_check._interpreter import Interpreter
    from compatcheck.interfaces.scripts import asked_by

    found = Target("python", "3.11.7", os.getcwd(), (os.getcwd(),), "fuzz")
    follower = Interpreter(Finder(found), "3.11.7")
    for name in names:
        module = name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        if name.endswith(".py") and all(part.isidentifier() and not iskeyword(part) for part in module.split(".")):
            follower.statement(f"import {module}")
            follower.statement(f"from {module} import a, b")
            tree = parse_code(start_of(name) or "")
            if tree is not None:
                asked_by(tree)
        elif name.endswith(".so") and name.partition(".")[0].isidentifier():
            follower.statement(f"from {name.partition('.')[0]} import a, b")
    _lazy.structure_of(os.getcwd(), "a")


@target()
def hub_answers(content: bytes, names: list[str]) -> None:
    """What a hub answers: its listing of a model, then the content of each file."""
    import httpx

    from compatcheck.project.model_files import _download

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/models/")
        name = "listing.json" if path != request.url.path else path.rpartition("/")[2]
        return httpx.Response(200, content=iter([Path(name).read_bytes()])) if name in names else httpx.Response(404)

    with (
        httpx.Client(transport=httpx.MockTransport(answer)) as client,
        contextlib.suppress(ValueError, OSError, httpx.HTTPError),
    ):
        _download._fetch(client, "a/b", "main", {}, os.path.abspath("cache"))


@target(packed=False, largest=1 << 16)
def archives(content: bytes, names: list[str]) -> None:
    """The archive of a matrix, as if a key had leaked."""
    Path("matrix.zip").write_bytes(content)
    os.mkdir("new")
    delivery.unpack(delivery.Archive("matrix.zip", "matrix.zip"), "new")


@target(largest=1 << 16)
def stored_matrices(content: bytes, names: list[str]) -> None:
    """A compiled matrix that was stored, whatever became of its files since, and the pointer to it."""
    from compatcheck.delivery import _adopt
    from compatcheck.matrix import fetched

    os.environ["XDG_DATA_HOME"] = os.getcwd()
    fetched.read_pointer()
    _adopt._require_readable("new")


@target()
def entries(content: bytes, names: list[str]) -> None:
    """Entries and tables of a matrix, as their authors write them."""
    from compatcheck.matrix.compile import read_entry, read_tables

    for name in names:
        read_entry(Path(name))
    read_tables(Path.cwd())


@target(packed=False)
def messages(content: bytes, names: list[str]) -> None:
    """What another machine of a job says over the network, and one of its snapshots."""
    from compatcheck.cluster import _messages

    for line in content.split(b"\n"):
        said = _messages.decoded(line)
        if said is not None:
            _messages.encoded(said)


@target()
def recorded_nodes(content: bytes, names: list[str]) -> None:
    """Snapshots that machines left in a folder."""
    from compatcheck.pipelines import cluster
    from compatcheck.report.subjects import cluster as subject

    found = cluster.recorded(os.curdir, known())
    _rendered(subject.document(found, NO_EXIT), content)


@target(packed=False)
def probe_events(content: bytes, names: list[str]) -> None:
    """What a probe's process leaves behind, in an interpreter that is a stranger's."""
    from compatcheck.probes import _process, _run

    Path("events.jsonl").write_bytes(content)
    events = _process.Events(Path.cwd()).all()
    trace = _process.Trace(events, -9 if len(content) % 2 else 0, None, content[:500].decode("utf-8", "replace"))
    result = _run.judge("attention_masked", trace, lambda measured: ("pass", str(measured)))
    json.dumps(result._asdict(), default=str)


@target(largest=1 << 14)
def caches(content: bytes, names: list[str]) -> None:
    """What commands remember, after something else has written there."""
    from compatcheck import import_check
    from compatcheck.installed import read_releases
    from compatcheck.probes import _result_cache
    from compatcheck.project.model_files import _hashing

    os.environ["XDG_CACHE_HOME"] = os.getcwd()
    found = Target("python", "3.11.7", os.getcwd(), (), "fuzz")
    import_check.remembered(found)
    for name in names:
        _hashing._load(name)
        read_releases._recall(name)
    path = _result_cache._path("attention_masked", found, {})
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if names and os.path.isfile(names[0]):
        os.replace(names[0], path)
    _result_cache.recall("attention_masked", found, {}, "")


@target(largest=1 << 14)
def machines(content: bytes, names: list[str]) -> object:
    """Files by which a machine says what it is, as a container may have put others in their place."""
    from compatcheck.installed import _architectures, ascend, driver, rocm, toolkit

    found = rocm.from_folders("nodes", "cards", {"ROCM_PATH": "rocm"}) if os.path.isdir("nodes") else Environment()
    npus = ascend.from_folders("dev", "Ascend", {})
    driver.kernel_module_version("missing", "version")
    _architectures.compiled_architectures("torch")
    cuda = toolkit.from_environment({"CUDA_HOME": "cuda"})
    return found.overlay(cuda).overlay(npus)
