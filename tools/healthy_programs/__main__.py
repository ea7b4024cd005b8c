"""Run every healthy program under the guard, and count those in which it raises an alarm.

python -m tools.healthy_programs [--seed 0] [--rounds 1] [--only NAME]
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import ModuleType

from tools.healthy_programs import huggingface, loops, ranks
from tools.healthy_programs.draw import Draw, Program

_MODULES = (ranks, loops, huggingface)
"""Those that fork come first, before any other has started threads."""


def programs(modules: tuple[ModuleType, ...] = _MODULES) -> dict[str, Program]:
    """The programs by name: the public functions of the modules."""
    return {
        name: found
        for module in modules
        for name, found in vars(module).items()
        if inspect.isfunction(found) and found.__module__ == module.__name__ and not name.startswith("_")
    }


def alarms_of(program: Program, seed: int) -> list[str]:
    """What the guards of one run say."""
    with tempfile.TemporaryDirectory(prefix="compatcheck-", ignore_cleanup_errors=True) as folder:
        draw = Draw(seed, Path(folder))
        program(draw)
        for guard in draw.guards:
            getattr(guard, "close", lambda: None)()
        return [f"{alarm.signature}: {alarm.seen}" for guard in draw.guards for alarm in guard.alarms]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first round; default 0")
    parser.add_argument("--rounds", type=int, default=1, help="times each program runs, drawn anew; default 1")
    parser.add_argument("--only", help="run the programs whose name holds this")
    options = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.simplefilter("ignore")
    chosen = {name: program for name, program in programs().items() if (options.only or "") in name}
    runs = wrong = 0
    started = time.monotonic()
    for number in range(options.rounds):
        for name, program in chosen.items():
            try:
                told = alarms_of(program, options.seed + number)
            except ImportError as error:
                print(f"skipped  {name}: {error}")
                continue
            runs += 1
            wrong += bool(told)
            print(
                f"{'ALARM' if told else 'quiet'}    {name}" + "".join(f"\n         {line}" for line in told), flush=True
            )
    print(f"{wrong} of {runs} runs of {len(chosen)} programs with an alarm, {time.monotonic() - started:.0f} s")
    return 1 if wrong or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
