"""Yields two rows and returns a fact, some of them not finite."""

from compatcheck.probes._criterion import UNIT_ROUNDOFF

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    for number in range(2):
        stage(f"row {number}")
        yield {"number": number, "theta": float("inf")}
    return {"seed": request["seed"], "unit": UNIT_ROUNDOFF["float32"], "path": request.get("some_file")}
