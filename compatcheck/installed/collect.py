"""Run the collectors on one target; the order is fixed and the search path is scanned once."""

from __future__ import annotations

from collections.abc import Iterable

from compatcheck.environment import Environment, Target
from compatcheck.environment.merge import merged
from compatcheck.installed import declared, distributions, driver, environ, host, toolkit, torch_build


def collect(target: Target, environ_names: Iterable[str] = (), architectures: bool = True) -> Environment:
    """What is here, for one target: nothing of it is imported or run.

    ``environ_names`` are the variables to report; ``architectures`` is whether to look inside torch's
    library for the GPU architectures it was compiled for.
    """
    inventory = distributions.scan(target)
    return merged(
        (
            host.collect(target),
            distributions.collect(target, inventory),
            declared.collect(target, inventory),
            torch_build.collect(target, inventory, architectures),
            driver.collect(target),
            toolkit.collect(target),
            environ.collect(target, environ_names),
        )
    )
