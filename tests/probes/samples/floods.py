"""Writes 64 MiB to either stream and then answers."""

NEEDS = {}
TIMEOUT = 30


def measure(request, stage):
    import sys

    for _ in range(64):
        sys.stdout.write("o" * (1 << 20))
        sys.stderr.write("e" * (1 << 20))
    return {"written": 64}
