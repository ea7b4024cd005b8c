"""Time the hashing of model files against ``sha256sum``, in pairs within one run.

    python tools/benchmarks/hash_model.py [--folder FOLDER] [--rounds N]

Without a folder, files of random bytes are made, one for each core and one more. For each number of workers up to the
cores, both sides hash the same files with as many workers (``xargs -P`` beside our threads), turn by turn, with the
files in the page cache. Exit status 1 where the median ratio falls below 90 %.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compatcheck.project.model_files import _hashing

_BUDGET = 0.9


def made(folder: Path, count: int, mib: int) -> list[str]:
    block = os.urandom(1 << 20)
    paths = []
    for number in range(count):
        path = folder / f"model-{number}.safetensors"
        with path.open("wb") as stream:
            for _ in range(mib):
                stream.write(block)
        paths.append(str(path))
    return paths


def ours(paths: list[str], workers: int, cache: str) -> float:
    _hashing.cores = lambda: workers
    start = time.perf_counter()
    hashes = _hashing.hash_files(paths, cache=cache)
    taken = time.perf_counter() - start
    assert not hashes.errors
    return taken


def theirs(paths: list[str], workers: int) -> float:
    listed = "\0".join(paths).encode()
    command = ["xargs", "-0", "-n", "1", "-P", str(workers), "sha256sum"]
    start = time.perf_counter()
    subprocess.run(command, input=listed, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="hash the safetensors of this folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256, help="the size of each file that is made")
    options = parser.parse_args()
    cores = _hashing.cores()
    with tempfile.TemporaryDirectory() as folder:
        if options.folder:
            paths = [str(path) for path in sorted(options.folder.glob("*.safetensors"))]
        else:
            paths = made(Path(folder), cores + 1, options.mib)
        size = sum(os.path.getsize(path) for path in paths)
        print(f"{len(paths)} files, {size / 1e9:.2f} GB, {cores} cores")
        missed = False
        for workers in range(1, cores + 1):
            pairs = []
            for number in range(options.rounds + 1):
                pair = (
                    theirs(paths, workers),
                    ours(paths, workers, str(Path(folder) / f"cache{workers}{number}.json")),
                )
                if number:
                    pairs.append(pair)
            ratio = statistics.median(their / our for their, our in pairs)
            their, our = (statistics.median(each) for each in zip(*pairs))
            missed = missed or ratio < _BUDGET
            print(
                f"{workers} workers: sha256sum {size / their / 1e6:.0f} MB/s, ours {size / our / 1e6:.0f} MB/s, "
                f"{100 * ratio:.0f} % of sha256sum: {'kept' if ratio >= _BUDGET else 'MISSED'}"
            )
        again = ours(paths, cores, str(Path(folder) / f"cache{cores}1.json"))
        print(f"remembered: {again * 1000:.1f} ms")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
