"""Ask an interpreter that no file describes for its version and folders."""

from __future__ import annotations

from typing import Any, NamedTuple

from compatcheck.errors import NothingInspectedError

_SECONDS = 20.0
_LARGEST = 1 << 20
_QUESTION = """
import json, site, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3] + {
        "alpha": "a%d", "beta": "b%d", "candidate": "rc%d"
    }.get(sys.version_info[3], "%.0s") % sys.version_info[4],
    "executable": sys.executable,
    "prefix": sys.prefix,
    "folders": list(dict.fromkeys(site.getsitepackages() + [paths["purelib"], paths["platlib"]])),
}))
"""


class Description(NamedTuple):
    """What an interpreter says of itself."""

    version: str
    executable: str
    prefix: str
    site_folders: tuple[str, ...]


def describe(executable: str) -> Description:
    """Start the interpreter once, isolated and without ``site``, so that none of the user's hooks run.

    Raises `NothingInspectedError` where it cannot be started, hangs or does not answer.
    """
    answer = _answer(executable, _output(executable))
    return Description(
        answer["version"], answer["executable"] or executable, answer["prefix"], tuple(answer["folders"])
    )


def _output(executable: str) -> bytes:
    import subprocess

    command = [executable, "-I", "-S", "-c", _QUESTION]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise _failure(executable, f"it did not answer within {_SECONDS:.0f} s") from None
    except OSError as error:
        raise _failure(executable, f"it cannot be started ({error.strerror or error})") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1][:200]}" if lines else ""
        raise _failure(executable, f"it ended with status {done.returncode}{last}")
    return done.stdout[:_LARGEST]


def _answer(executable: str, output: bytes) -> dict[str, Any]:
    import json

    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or not {"version", "executable", "prefix", "folders"} <= answer.keys():
        raise _failure(executable, "it does not answer as Python does")
    return answer


def _failure(executable: str, seen: str) -> NothingInspectedError:
    advice = "give a working Python 3.8 or later with --python"
    return NothingInspectedError("asking the interpreter", executable, seen, advice)
