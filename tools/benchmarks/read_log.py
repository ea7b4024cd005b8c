"""Time the reading of a large training log, and what memory it takes.

    python tools/benchmarks/read_log.py --mebibytes 1024

The log is made up as real ones are: mostly progress bars that overwrite themselves, lines of a launcher, and one
reading in every few steps; it turns NaN at the end. Exit status 1 where the peak memory passes 128 MiB or the speed
falls below 20 MiB/s.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BAR, LEAST_SPEED, MOST_MEMORY = "█" * 10, 20.0, 128.0


def parts(size: int) -> Iterator[bytes]:
    rng, written, step = random.Random(1), 0, 0
    while written < size:
        rows = []
        for _ in range(2000):
            step += 1
            rows += [f"\r {step % 100:2d}%|{BAR}| {step}/9000000 [00:{k:02d}<1:02:33,  1.25s/it]" for k in range(20)]
            if step % 5 == 0:
                rows.append(
                    f"\n{{'loss': {2 + rng.random():.4f}, 'grad_norm': {rng.random():.6f}, 'epoch': {step / 1e5}}}\n"
                )
            if step % 3 == 0:
                rows.append(f"\n[2024-09-15 00:13:28,261] [INFO] [worker.py:190:run] fetched batch {step}\n" * 10)
        part = "".join(rows).encode()
        written += len(part)
        yield part
    for last in range(step + 5, step + 500, 5):
        yield f"\n{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': {last / 1e5}}}\n".encode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mebibytes", type=int, default=1024)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        with path.open("wb") as stream:
            stream.writelines(parts(asked.mebibytes << 20))
        size = path.stat().st_size / (1 << 20)
        command = [sys.executable, "-m", "compatcheck", "diagnose", str(path)]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    peak = usage.ru_maxrss / 1024
    print(f"{size:.0f} MiB in {seconds:.1f} s, {size / cpu:.0f} MiB for each second of processor time")
    print(f"peak memory {peak:.0f} MiB, exit status {process.returncode} (1: a symptom was found)")
    return int(process.returncode != 1 or peak > MOST_MEMORY or size / cpu < LEAST_SPEED)


if __name__ == "__main__":
    sys.exit(main())
