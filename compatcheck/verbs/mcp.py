"""`compatcheck mcp`."""

from __future__ import annotations

import functools
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from compatcheck import __version__
from compatcheck.errors import InputError
from compatcheck.files import leftovers
from compatcheck.files.reading import open_bytes
from compatcheck.files.secrets import masked
from compatcheck.language import gettext as _
from compatcheck.verbs import _help

if TYPE_CHECKING:
    import anyio

EXAMPLES = (
    "compatcheck mcp",
    "compatcheck mcp --lang zh",
)
_LONGEST_SECONDS = 1800
_MOST_AT_ONCE = 4
"""Commands that run at once; more would each be slower, and a thousand calls would take all memory."""
_PROGRAM = "import sys; sys.path[:] = {path}; from compatcheck.cli import main; main()"
"""With our own search path: `-m` and `-c` put the present folder first, where a stranger's modules may lie."""
_NO_NETWORK = {"UV_OFFLINE": "1", "PIP_NO_INDEX": "1", "HF_HUB_OFFLINE": "1"}


@_help.verb()
def command() -> None:
    """Serve agents over the Model Context Protocol.

    The server offers `check`, `diagnose`, `explain`, `pin`, `probe` and `compare` on standard input and output. Each
    tool runs the command of the same name without network access and returns its exit status and JSON.
    """
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        advice = "install compatcheck[mcp]"
        raise InputError("starting", "compatcheck mcp", "the MCP SDK is not installed", advice) from None
    server = MCPServer("compatcheck", version=__version__, log_level="WARNING")
    for tool in (check, diagnose, explain, pin, probe, compare):
        server.tool(structured_output=False)(tool)
    server.run()


async def check(
    paths: Sequence[str], python: str = "", assume: Sequence[str] = (), probe: bool = False, imports: bool = False
) -> str:
    """Judge a training project and its environment for combinations known to crash, diverge or train wrongly.

    paths: the project's folder, or its requirements, training configuration, script and model folder.
    python: the interpreter or environment folder to inspect. assume: facts such as "gpu.compute_capability=9.0".
    probe: also run numeric probes in that interpreter, which starts it. imports: follow every import.
    """
    flags = ["--probe" if probe else "--no-probe", *(["--imports"] if imports else [])]
    return await _run("check", [*flags, *_option("--python", python), *_each("--assume", assume)], paths)


async def diagnose(inputs: Sequence[str], python: str = "", assume: Sequence[str] = ()) -> str:
    """Explain a failed or suspicious training run from its logs, tracebacks, reports, scripts and environment.

    inputs: files or folders, all about one case. python: the environment it ran in. assume: further facts.
    """
    return await _run("diagnose", [*_option("--python", python), *_each("--assume", assume)], inputs)


async def explain(name: str) -> str:
    """Show an entry, such as CC-2024-0040, or a probe in full: cause, evidence, affected versions and fixes."""
    return await _run("explain", [], [name])


async def pin(
    inputs: Sequence[str],
    python: str = "",
    python_version: str = "",
    assume: Sequence[str] = (),
    strict: bool = False,
    online: bool = False,
) -> str:
    """Find the version pins closest to the current ones that leave no affected finding. Writes nothing.

    inputs: requirements, lock file or project folder. strict: also avoid possible findings. online: ask the package
    index; without it only what uv has in its cache can be chosen.
    """
    options = [*_option("--python", python), *_option("--python-version", python_version)]
    flags = [*([] if online else ["--offline"]), *(["--strict"] if strict else [])]
    return await _run("pin", [*flags, *options, *_each("--assume", assume)], inputs, writes_pins=True, online=online)


async def probe(
    names: Sequence[str] = (),
    python: str = "",
    model: str = "",
    training: str = "",
    profile: Literal["smoke", "quick", "deep"] = "smoke",
    budget_seconds: float = 300,
) -> str:
    """Try the arithmetic of this machine in the target's interpreter: does training compute what it should.

    names: probes to run instead of a profile. model: a model folder to use its architecture in miniature. training: a
    configuration or script to use its settings.
    """
    options = [*_option("--python", python), *_option("--model", model), *_option("--config", training)]
    chosen = [] if names else [f"--{profile}"]
    return await _run("probe", [*chosen, *options, "--budget", str(budget_seconds)], names)


async def compare(old: str, new: str, model: str = "", training: str = "", bisect: bool = False) -> str:
    """Train the same small model in two environments, and name the first module and step whose results differ.

    old, new: interpreters or environment folders. bisect: also find the release that changes the result, where uv has
    what it needs in its cache.
    """
    options = [*_option("--model", model), *_option("--config", training), *([] if bisect else ["--no-bisect"])]
    return await _run("compare", options, [old, new])


def _option(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value else []


def _each(name: str, values: Sequence[str]) -> list[str]:
    return [f"{name}={value}" for value in values]


async def _run(
    verb: str, options: Sequence[str], arguments: Sequence[str], *, writes_pins: bool = False, online: bool = False
) -> str:
    """The JSON of a verb, which runs as a process of its own; raises ToolError with its error line.

    One that ``writes_pins`` prints these, and its JSON goes to a file.
    """
    import anyio
    from mcp.server.mcpserver.exceptions import ToolError

    with leftovers.temporary_folder("compatcheck-mcp-") as folder:
        file = os.path.join(folder, "report.json")
        form = ["--report", f"json={file}"] if writes_pins else ["--format", "json"]
        line = [sys.executable, "-c", _PROGRAM.format(path=sys.path), verb, *form, *options, "--", *arguments]
        try:
            async with _turn():
                with anyio.fail_after(_LONGEST_SECONDS):
                    done = await anyio.run_process(
                        line,
                        stdin=subprocess.DEVNULL,  # ours is the agent's own connection
                        check=False,
                        env={**os.environ, **({} if online else _NO_NETWORK)},
                    )
        except (OSError, ValueError) as error:  # an argument with a null byte, or longer than the system allows
            raise ToolError(f"compatcheck: starting {verb}: {error}") from None
        try:
            with open_bytes(file) if writes_pins else io.BytesIO(done.stdout) as stream:
                answer = {"exit_status": done.returncode, "report": json.load(stream)}
        except (OSError, ValueError):
            raise ToolError(done.stderr.decode(errors="replace").strip() or _("no answer")) from None
    return json.dumps({**answer, **({"pins": _shown(done.stdout)} if writes_pins else {})}, ensure_ascii=False)


@functools.cache
def _turn() -> anyio.Semaphore:
    import anyio

    return anyio.Semaphore(_MOST_AT_ONCE)


def _shown(pins: bytes) -> str:
    """The pins without the credentials that an agent would hand on; `pin` itself keeps them in the user's own file."""
    return masked(pins.decode(errors="replace"))
