"""`compatcheck mcp`, asked by the client of the official SDK."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compatcheck.verbs.mcp import _shown, explain

mcp = pytest.importorskip("mcp")
ROOT = Path(__file__).parents[2]


COMMAND = (sys.executable, "-m", "compatcheck", "mcp")


def ask(
    folder: Path, *calls: tuple[str, dict[str, Any]], command: Sequence[str] = COMMAND
) -> tuple[list[str], list[Any]]:
    """The names of the tools, and the answers to some calls: JSON, or the text of an error."""

    async def talk() -> tuple[list[str], list[Any]]:
        server = mcp.StdioServerParameters(command=command[0], args=list(command[1:]), cwd=str(folder))
        async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            results = [await session.call_tool(name, arguments) for name, arguments in calls]
        return names, [each.content[0].text if each.is_error else json.loads(each.content[0].text) for each in results]

    return asyncio.run(talk())


def test_an_agent_gets_what_the_command_prints(tmp_path: Path) -> None:
    project = tmp_path / "finetune"
    shutil.copytree(ROOT / "docs" / "tutorial" / "script", project)
    log = project / "train.log"
    log.write_text("ValueError: The generation config instance is invalid -- `.validate()` throws warnings\n")
    names, (checked, explained, diagnosed) = ask(
        project,
        ("check", {"paths": ["."]}),
        ("explain", {"name": "CC-2024-1429"}),
        ("diagnose", {"inputs": ["train.log", "requirements.txt"]}),
    )
    assert sorted(names) == ["check", "compare", "diagnose", "explain", "pin", "probe"]
    assert checked["exit_status"] == 1
    assert "CC-2024-1429" in {each["id"] for each in checked["report"]["findings"] if each["status"] == "affected"}
    assert explained["report"]["entry"]["id"] == "CC-2024-1429"
    assert "CC-2024-1429" in json.dumps(diagnosed["report"])


def test_modules_of_the_present_folder_are_not_imported(tmp_path: Path) -> None:
    """Not those that compatcheck imports either: the folder may be a stranger's."""
    for name in ("compatcheck", "click", "packaging", "json", "sitecustomize"):
        text = f"open({str(tmp_path / 'started')!r}, 'w').close()\nraise SystemExit(7)\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    program = shutil.which("compatcheck", path=str(Path(sys.executable).parent))
    _, (explained,) = ask(tmp_path, ("explain", {"name": "CC-2024-1429"}), command=[str(program), "mcp"])
    assert explained["report"]["entry"]["id"] == "CC-2024-1429"
    assert not (tmp_path / "started").exists()


def test_bad_input_is_an_error_of_one_line(tmp_path: Path) -> None:
    _, (unknown, option) = ask(tmp_path, ("explain", {"name": "CC-2024-99999"}), ("check", {"paths": ["--help"]}))
    assert "the matrix has no such entry" in unknown and unknown.count("\n") == 0
    assert "there is no such file" in option


def test_an_argument_that_no_process_takes_is_named(tmp_path: Path) -> None:
    _, (null, long) = ask(tmp_path, ("explain", {"name": "a\0"}), ("explain", {"name": "x" * 300_000}))
    assert null.endswith("compatcheck: starting explain: embedded null byte")
    assert "compatcheck: starting explain: " in long and "too long" in long


def test_an_agent_gets_pins_without_credentials() -> None:
    pins = b"--index-url https://user:Zq3vX9SECRET@host/simple\ntorch==2.5.1\n"
    assert _shown(pins) == "--index-url https://***@host/simple\ntorch==2.5.1\n"


def test_few_calls_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = 0, 0

    async def run_process(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return subprocess.CompletedProcess((), 0, b"{}", b"")

    async def ask_many() -> list[str]:
        return await asyncio.gather(*(explain("CC-2024-0040") for _ in range(20)))

    monkeypatch.setattr("anyio.run_process", run_process)
    assert len(asyncio.run(ask_many())) == 20
    assert most == 4
