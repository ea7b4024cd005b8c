"""Leaves without a word of farewell."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    import os
    import sys

    sys.stderr.write("the last words\n")
    sys.stderr.flush()
    os._exit(7)
