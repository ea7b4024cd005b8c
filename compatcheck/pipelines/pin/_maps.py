"""The versions around what is pinned."""

from __future__ import annotations

from compatcheck.pipelines.pin._plan import Plan, solved
from compatcheck.pipelines.version_maps import maps_of_pins


def with_maps(planned: Plan) -> Plan:
    """The plan with maps of the pinned environment, from the versions there were to those that are pinned."""
    task = planned.task
    environment = solved(task.environment, planned.solution)
    maps = maps_of_pins(environment, task.known, planned.first.versions, planned.solution.versions)
    return planned._replace(report=planned.report._replace(maps=maps))
