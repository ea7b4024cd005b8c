"""Finds no memory."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    raise MemoryError("could not allocate 8 bytes")
