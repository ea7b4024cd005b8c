"""The pipeline of `compatcheck pin`: resolve, judge, refine, and prove what came out.

subject = what is asked for           of files, or of an environment
plan    = search(resolve, violations) versions that the matrix calls clean, as near as can be to those at hand
proof   = probes before and after     the same experiments where the fault was and where it should be gone
"""

from compatcheck.pipelines.pin._plan import Plan, noted, plan, solved, with_maps
from compatcheck.pipelines.pin._proof import prove
from compatcheck.pipelines.pin._task import BY_HAND_COSTS, Subject, Task, subject
from compatcheck.pipelines.pin._text import left_out, written

__all__ = [
    "BY_HAND_COSTS",
    "Plan",
    "Subject",
    "Task",
    "left_out",
    "noted",
    "plan",
    "prove",
    "solved",
    "subject",
    "with_maps",
    "written",
]
