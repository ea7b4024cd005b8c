"""Reads address 0 after a row."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    import ctypes

    yield {"number": 0}
    stage("reading")
    ctypes.string_at(0)
