"""The verdict on many machines, as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from compatcheck.environment import Unknown, dump
from compatcheck.report.json import SCHEMA_VERSION, finding_shape, finite, matrix_shape, probe_shape
from compatcheck.report.steps import step_text
from compatcheck.report.text import NAMED_DISTRIBUTIONS, described, head, stale
from compatcheck.results.cluster import ClusterReport, Difference, Failure, Group, Link, Member
from compatcheck.results.findings import Finding, Outcome, Status
from compatcheck.terminal.lines import Line, written
from compatcheck.terminal.screen import PLAIN, Screen

_STYLES: dict[Status, str] = {"confirmed": "bold red", "affected": "bold red", "possible": "yellow", "refuted": "green"}
_OUTCOMES: dict[Outcome, str] = {"pass": "green", "watch": "yellow", "skip": "dim"}
_MOST_NODES = 16
_MOST_DIFFERENCES = 40
_HASH = 64


def render(report: ClusterReport, format_name: str, *, exit_reason: str, screen: Screen = PLAIN) -> str:
    if format_name == "json":
        return json.dumps(finite(_shape(report, exit_reason)), indent=2, ensure_ascii=False) + "\n"
    return written(_lines(report, exit_reason), screen)


def _lines(report: ClusterReport, exit_reason: str) -> Iterator[Line]:
    yield head(report)
    yield _told("cluster", _size(report))
    if len(report.groups) > 1:
        for group in report.groups:
            size = _counted(len(group.members), "rank") if group.split else _counted(len(group.nodes), "node")
            yield _told("", f"{size} {group.label}: {_nodes(group)}")
    else:
        yield _told("", _named(report.groups[0].nodes))
    for label, text in described(report.groups[0].environment):
        if label != "environment":
            yield _told(label if len(report.groups) == 1 else f"{label} of A", text)
    yield from _differences(report.differences)
    yield from _failures(report.failures)
    yield from _findings(report.shared, f"on every {'node' if report.nodes > 1 else 'rank'}")
    for group in report.groups:
        yield from _findings(group.findings, f"only in {group.label}: {_nodes(group)}")
    yield from _tried(report)
    yield Line()
    yield from _verdict(report, exit_reason)


def _size(report: ClusterReport) -> str:
    ranks = sum(len(group.members) for group in report.groups)
    told = f"{_counted(report.nodes, 'node')}, {_counted(ranks, 'rank')}" if ranks != report.nodes else ""
    told = told or _counted(report.nodes, "node")
    missing = report.world - ranks
    alike = "all alike" if len(report.groups) == 1 else f"{len(report.groups)} groups"
    return f"{told} ({report.launcher}){f', {missing} missing' if missing > 0 else ''}: {alike}"


def _differences(differences: Sequence[Difference]) -> Iterator[Line]:
    if not differences:
        return
    yield Line()
    yield Line("the nodes differ in", "bold yellow")
    shown = sorted(differences, key=_is_minor)[:_MOST_DIFFERENCES]
    paths = [".".join(difference.path) for difference in shown]
    width = min(max(map(len, paths)), 40) + 4
    for path, difference in zip(paths, shown):
        values = "; ".join(f"{', '.join(labels)}: {_value(value, difference)}" for value, labels in difference.values)
        yield Line(values, "", f"  {path}", "", width)
    if len(differences) > _MOST_DIFFERENCES:
        yield Line(f"and {len(differences) - _MOST_DIFFERENCES} more, see --format json", "dim", indent=2)


def _is_minor(difference: Difference) -> bool:
    """Whether it is one of the many packages that training does not stand on."""
    return difference.path[0] == "distributions" and difference.path[1] not in NAMED_DISTRIBUTIONS


def _value(value: Any, difference: Difference) -> str:
    if isinstance(value, Unknown):
        return "not known"
    if value is None:
        return {"environ": "not set", "distributions": "not installed"}.get(difference.path[0], "none")
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:12] if len(text) == _HASH and difference.path[-1] == "sha256" else text


def _failures(failures: Sequence[Failure]) -> Iterator[Line]:
    if failures:
        yield Line()
    for failure in failures:
        yield Line(f"{members(failure.members)}: {failure.what}", "", failure.fault, "bold red", 15)


def members(of: Sequence[Member]) -> str:
    """Ranks with their nodes in words: ``rank 3 (node07)``, ``ranks 0, 1 (node01) and 8 (node02)``."""
    more = f" and {len(of) - _MOST_NODES} more" if len(of) > _MOST_NODES else ""
    by_node: dict[str, list[int]] = {}
    for member in of[:_MOST_NODES]:
        if member.rank is not None:
            by_node.setdefault(member.node, []).append(member.rank)
    if not by_node:
        return ", ".join(member.node for member in of[:_MOST_NODES]) + more
    told = [f"{', '.join(map(str, ranks))} ({node})" for node, ranks in by_node.items()]
    return f"rank{'s' if len(of) > 1 else ''} {' and '.join(told)}{more}"


def _findings(findings: Sequence[Finding], where: str) -> Iterator[Line]:
    shown = [finding for finding in findings if finding.status != "refuted"]
    if not shown:
        return
    yield Line()
    yield Line(where, "bold")
    for finding in shown:
        brief = finding.status == "possible"
        yield Line(finding.title, "" if brief else "bold", f"{finding.status:<10}{finding.id}", _style(finding), 24)
        if brief:
            missing = ", ".join(dict.fromkeys(finding.missing))
            yield Line(f"missing: {missing}" if missing else "reported, not yet confirmed", "dim", indent=24)
            continue
        yield Line(finding.summary, indent=10)
        for remedy in finding.remedies[:1]:
            for step in remedy.steps:
                yield Line(step_text(step), "green", f"{'':10}fix", "green", 17)


def _style(finding: Finding) -> str:
    return _STYLES[finding.status]


def _tried(report: ClusterReport) -> Iterator[Line]:
    if report.trials or report.links:
        yield Line()
    for trial in report.trials:
        style = _OUTCOMES.get(trial.outcome, "bold red")
        yield Line(f"{trial.probe}, {trial.seconds:.1f} s: {trial.why}", "", trial.outcome, style, 9)
    slow = [link for link in report.links if link.slow]
    for text in _slow(report.links):
        yield Line(text, "", "slow link", "bold red", 11)
    rest = [link.speed for link in report.links if not link.slow]
    if rest:
        spread = _speed(min(rest)) + (f" to {_speed(max(rest))}" if len(rest) > 1 else "")
        pairs = _counted(len(rest), f"{'other ' if slow else ''}pair")
        yield Line(f"{pairs} of nodes at {spread} each way", "dim", "links", "dim", 9)
    for limit in report.limits:
        yield Line(limit, "dim")


def _slow(links: Sequence[Link]) -> Iterator[str]:
    """The slow pairs; a node all of whose links are slow is told once."""
    of_node: dict[str, list[Link]] = {}
    for link in links:
        for node in link.nodes:
            of_node.setdefault(node, []).append(link)
    lame = {node for node, own in of_node.items() if len(own) > 1 and all(link.slow for link in own)}
    for node in sorted(lame):
        yield f"every link of {node}: {_speed(max(link.speed for link in of_node[node]))} each way at most"
    pairs = [link for link in links if link.slow and not lame & set(link.nodes)]
    for link in pairs[:_MOST_NODES]:
        yield f"{' - '.join(link.nodes)}: {_speed(link.speed)} each way"
    if len(pairs) > _MOST_NODES:
        yield f"{len(pairs) - _MOST_NODES} more pairs, see --format json"


def _speed(speed: float) -> str:
    return f"{speed / 1e9:.2f} GB/s" if speed >= 1e9 else f"{speed / 1e6:.1f} MB/s"


def _verdict(report: ClusterReport, exit_reason: str) -> Iterator[Line]:
    bad = [finding for finding in report.findings if finding.status in ("confirmed", "affected")]
    failed = [trial for trial in report.trials if trial.outcome in ("fail", "crash", "timeout")]
    slow = [link for link in report.links if link.slow]
    counted = Counter(finding.status for finding in report.findings)
    parts = [f"{counted[status]} {status}" for status in _STYLES if counted[status]]
    parts += [f"{_counted(len(report.differences), 'difference')} between nodes"] if report.differences else []
    parts += [_counted(len(report.failures), "failure")] if report.failures else []
    parts += [f"{_counted(len(failed), 'failed probe')}"] if failed else []
    parts += [_counted(len(slow), "slow link")] if slow else []
    wrong = bool(bad or report.differences or report.failures or failed or slow)
    if report.cut_short:
        yield Line(", ".join(["cut short", *(parts or ["no fault until then"])]), "bold red")
    elif wrong:
        yield Line(", ".join(parts), "bold red")
    else:
        yield Line("no known fault" + (f" ({', '.join(parts)})" if parts else ""), "bold green")
    if bad:
        yield Line(f"next: compatcheck explain {bad[0].id}", "dim")
    yield from stale(report)


def _nodes(group: Group) -> str:
    whole = [node for node in group.nodes if node not in group.split]
    parts = [f"{node} (rank{'' if len(ranks) == 1 else 's'} {_few(ranks)})" for node, ranks in group.split.items()]
    return _named([*whole, *parts])


def _named(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    return ", ".join(nodes[:_MOST_NODES]) + more


def _few(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _told(label: str, text: str) -> Line:
    return Line(text, "dim", label, "dim", 15)


def _shape(report: ClusterReport, exit_reason: str) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "matrix": matrix_shape(report),
        "launcher": report.launcher,
        "world": report.world,
        "groups": [
            {
                "label": group.label,
                "digest": group.digest,
                "nodes": group.nodes,
                "ranks": [member.rank for member in group.members],
                "environment": dump(group.environment),
                "findings": [finding_shape(finding) for finding in group.findings],
            }
            for group in report.groups
        ],
        "differences": [_difference_shape(difference) for difference in report.differences],
        "findings": [finding_shape(finding) for finding in report.shared],
        "failures": [
            {"fault": each.fault, "members": [member._asdict() for member in each.members], "what": each.what}
            for each in report.failures
        ],
        "probes": [probe_shape(trial) for trial in report.trials],
        "links": [link._asdict() for link in report.links],
        "limits": report.limits,
        "cut_short": report.cut_short,
        "exit_reason": exit_reason,
    }


def _difference_shape(difference: Difference) -> dict[str, Any]:
    """A value that nobody knows has no ``value``; null is known to be absent."""
    values = [
        {"groups": labels, **({} if isinstance(value, Unknown) else {"value": value})}
        for value, labels in difference.values
    ]
    return {"path": list(difference.path), "values": values}
