"""Command lines run one after the other in forks of one process, which has read the matrix already.

Standard input holds a list of ``{"argv", "cwd"}``, standard output gets a list of ``[exit status, stdout, stderr]``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import NoReturn

from compatcheck import cli, matrix


def run(argv: list[str], cwd: str) -> tuple[int, str, str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            _become(argv, cwd)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return status, out.read().decode("utf-8"), err.read().decode("utf-8")


def _become(argv: list[str], cwd: str) -> NoReturn:
    status = 99
    try:
        os.chdir(cwd)
        sys.argv = ["compatcheck", *argv]
        sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w", encoding="utf-8") for number in (1, 2))
        cli.main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    cases = json.load(sys.stdin)
    matrix.load()
    json.dump([run(case["argv"], case["cwd"]) for case in cases], sys.stdout)
