"""The one vocabulary of symptoms: whatever names one names one that is there."""

from __future__ import annotations

from compatcheck import matrix
from compatcheck.results.logs import Signature
from compatcheck.symptoms import _failures, _signature


def test_every_signature_and_failure_has_symptoms_of_the_vocabulary(known: matrix.Matrix) -> None:
    signatures = [value for value in vars(_signature).values() if isinstance(value, Signature)]
    used = {word for each in (*signatures, *_failures.failures()) for word in each.symptoms}
    assert len(used) > 20 and used <= known.table("symptoms")["symptoms"].keys()
