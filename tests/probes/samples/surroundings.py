"""Tells what it sees of the world."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    import os
    import sys

    return {"path": sys.path, "environ": dict(os.environ), "folder": os.getcwd(), "group": os.getpgid(0) == os.getpid()}
