"""What would tell explanations apart: the one fact or probe whose answer moves the most probability.

A fact that an entry still lacks either meets its condition or not. The question is worth what the two answers differ
in, summed over the explanations that ask for it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from compatcheck.explanation.ranking import Ranked
from compatcheck.language import gettext as _
from compatcheck.results.diagnoses import Ask
from compatcheck.results.findings import Finding

_MOST = 3
_SETTLED = 0.02
"""Probability below which it makes no difference what an answer decides."""


def asks(finding: Finding, ranked: Ranked, others: Sequence[Ranked]) -> tuple[Ask, ...]:
    """The questions that would decide about an explanation, the one that divides best first."""
    lacking = _lacking(ranked)
    share: dict[str, float] = defaultdict(float)
    for other in others:
        for path, asked in _lacking(other).items():
            if path in lacking and asked != lacking[path] or path not in lacking:
                continue
            share[path] += other.probability
    divided = {path: ranked.probability * (1 - min(share[path] - ranked.probability, 1.0)) for path in lacking}
    found = [_question(path, lacking[path], divided[path]) for path in sorted(divided, key=lambda p: -divided[p])]
    if finding.probe_name:
        request = f" --request '{json.dumps(finding.probe_request)}'" if finding.probe_request else ""
        command = f"compatcheck probe {finding.probe_name}{request}"
        text = _("run {command} in the environment that failed").format(command=command)
        found.append(Ask(text, command, divides=ranked.probability))
    return tuple(found[:_MOST])


def _lacking(ranked: Ranked) -> dict[str, object]:
    """The conditions of an entry of which the facts are not known."""
    weighing = ranked.weighing
    return {
        path: weighing.conditions[path]
        for path in dict.fromkeys(weighing.verdict.missing)
        if path in weighing.conditions and path != "traits"
    }


def _question(path: str, asked: object, divides: float) -> Ask:
    value = asked[0] if isinstance(asked, list) and asked else asked
    words = "/".join(map(str, asked)) if isinstance(asked, list) else str(asked)
    name = path.removeprefix("training.").removeprefix("distributions.")
    if value == "present":
        text, example = _("is {name} there?").format(name=name), f"{path}=..."
    elif value == "absent":
        text, example = _("is {name} absent?").format(name=name), f"{path}=absent"
    else:
        text = _("is {name} {condition}?").format(name=name, condition=words)
        example = f"{path}={value}" if isinstance(value, (bool, int)) or str(value)[:1] not in "<>=!" else f"{path}=..."
    text = f"{text} --assume {str(example).lower() if isinstance(value, bool) else example}"
    return Ask(text, "", path, divides)
