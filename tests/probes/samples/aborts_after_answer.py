"""Answers, and aborts when the interpreter is torn down."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    import atexit
    import os

    atexit.register(os.abort)
    return {"answer": 42}
