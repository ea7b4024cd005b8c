"""Has something that is installed and does not work."""

import sys

from compatcheck.probes._criterion import Unusable

NEEDS = {}


def measure(request, stage):
    yield {"case": "first", "by_design": "another meaning", "difference": 0.25}
    assert sys.modules[__name__].measure is measure
    stage("building")
    raise Unusable("the Trainer cannot be built", TypeError("no argument of that name\nand more"))
