"""The verdict on many machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from compatcheck.environment import Unknown
from compatcheck.language import clauses, comma_list, ngettext
from compatcheck.language import gettext as _
from compatcheck.report.areas import NAMED_DISTRIBUTIONS
from compatcheck.report.document import STYLES, Document, Exit
from compatcheck.report.shapes import finding_shape, inferred_shape, matrix_shape, probe_shape
from compatcheck.report.steps import step_text
from compatcheck.report.subjects._environment import described, head, stale
from compatcheck.results.cluster import ClusterReport, Difference, Failure, Group, Link, Member
from compatcheck.results.findings import BAD, STATUSES, Finding, Report
from compatcheck.terminal.lines import Line

_MOST_NODES = 16
_MOST_DIFFERENCES = 40
_HASH = 64


def document(report: ClusterReport, exit: Exit) -> Document:
    verdict = tuple(_verdict(report))
    return Document(
        verdict[0],
        (*_lines(report), Line()),
        partial(_shape, report, exit),
        (verdict,),
        report=_findings_report(report),
        exit=exit,
    )


def _findings_report(report: ClusterReport) -> Report:
    """The findings of all groups, with the environment of the largest."""
    judge = (report.matrix_revision, report.matrix_entries, report.matrix_date, report.matrix_stale)
    shown = tuple(finding for finding in report.findings if finding.status != "refuted")
    return Report(report.groups[0].environment, shown, *judge)


def _lines(report: ClusterReport) -> Iterator[Line]:
    yield head(report)
    yield _labelled(_("cluster"), _size(report))
    if len(report.groups) > 1:
        for group in report.groups:
            size = _ranks(len(group.members)) if group.split else _node_count(len(group.nodes))
            yield _labelled("", f"{size} {group.label}: {_nodes(group)}")
    else:
        yield _labelled("", _node_names(report.groups[0].nodes))
    for label, text in described(report.groups[0].inferred.judged(report.groups[0].environment)):
        if label != _("environment"):
            several = len(report.groups) > 1
            yield _labelled(_("{label} of A").format(label=label) if several else label, text)
    yield from _differences(report.differences)
    yield from _failures(report.failures)
    yield from _findings(report.shared, _("on every node") if report.nodes > 1 else _("on every rank"))
    for group in report.groups:
        yield from _findings(
            group.findings, _("only in {label}: {nodes}").format(label=group.label, nodes=_nodes(group))
        )
    yield from _tried(report)


def _ranks(count: int) -> str:
    return ngettext("{count} rank", "{count} ranks", count).format(count=count)


def _node_count(count: int) -> str:
    return ngettext("{count} node", "{count} nodes", count).format(count=count)


def _size(report: ClusterReport) -> str:
    ranks = sum(len(group.members) for group in report.groups)
    nodes = _node_count(report.nodes)
    sizes = (nodes, _ranks(ranks)) if ranks != report.nodes else (nodes,)
    size = f"{clauses(*sizes)} ({report.launcher})"
    if report.world > ranks:
        size += _(", {count} missing").format(count=report.world - ranks)
    groups = len(report.groups)
    return f"{size}: {_('all alike') if groups == 1 else _('{count} groups').format(count=groups)}"


def _differences(differences: Sequence[Difference]) -> Iterator[Line]:
    if not differences:
        return
    yield Line()
    yield Line(_("the nodes differ in"), "bold yellow")
    shown = sorted(differences, key=_is_minor)[:_MOST_DIFFERENCES]
    paths = [".".join(difference.path) for difference in shown]
    width = min(max(map(len, paths)), 40) + 4
    for path, difference in zip(paths, shown):
        values = _("; ").join(
            f"{comma_list(labels)}: {_value(value, difference)}" for value, labels in difference.values
        )
        yield Line(values, "", f"  {path}", "", width)
    if len(differences) > _MOST_DIFFERENCES:
        more = _("and {count} more, see --format json").format(count=len(differences) - _MOST_DIFFERENCES)
        yield Line(more, "dim", indent=2)


def _is_minor(difference: Difference) -> bool:
    """Whether it is one of the many packages that training does not stand on."""
    return difference.path[0] == "distributions" and difference.path[-1] not in NAMED_DISTRIBUTIONS


def _value(value: object, difference: Difference) -> str:
    if isinstance(value, Unknown):
        return _("not known")
    if value is None:
        return {"environ": _("not set"), "distributions": _("not installed")}.get(difference.path[0], _("none"))
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:12] if len(text) == _HASH and difference.path[-1] == "sha256" else text


def _failures(failures: Sequence[Failure]) -> Iterator[Line]:
    if failures:
        yield Line()
    for failure in failures:
        yield Line(f"{members(failure.members)}: {_(failure.what)}", "", _(failure.fault), "bold red", 15)


def members(of: Sequence[Member]) -> str:
    """Ranks with their nodes in words: ``rank 3 (node07)``, ``ranks 0, 1 (node01) and 8 (node02)``."""
    more = _(" and {count} more").format(count=len(of) - _MOST_NODES) if len(of) > _MOST_NODES else ""
    by_node: dict[str, list[int]] = {}
    for member in of[:_MOST_NODES]:
        if member.rank is not None:
            by_node.setdefault(member.node, []).append(member.rank)
    if not by_node:
        return comma_list(member.node for member in of[:_MOST_NODES]) + more
    ranks_of_nodes = _(" and ").join(f"{comma_list(map(str, ranks))} ({node})" for node, ranks in by_node.items())
    return ngettext("rank {ranks}", "ranks {ranks}", len(of)).format(ranks=ranks_of_nodes) + more


def _findings(findings: Sequence[Finding], where: str) -> Iterator[Line]:
    shown = [finding for finding in findings if finding.status != "refuted"]
    if not shown:
        return
    yield Line()
    yield Line(where, "bold")
    for finding in shown:
        brief = finding.status == "possible"
        yield Line(
            finding.title,
            "" if brief else "bold",
            f"{finding.status:<10}{finding.id}",
            STYLES[finding.status],
            24,
        )
        if brief:
            missing = comma_list(dict.fromkeys(finding.missing))
            text = _("missing: {facts}").format(facts=missing) if missing else _("reported, not yet confirmed")
            yield Line(text, "dim", indent=24)
            continue
        yield Line(finding.summary, indent=10)
        for remedy in finding.remedies[:1]:
            for step in remedy.steps:
                yield Line(step_text(step), "green", f"{'':10}{_('fix')}", "green", 17)


def _tried(report: ClusterReport) -> Iterator[Line]:
    if report.trials or report.links:
        yield Line()
    for trial in report.trials:
        text = f"{trial.probe}, {trial.seconds:.1f} s: {_(trial.why)}"
        yield Line(text, "", trial.outcome, STYLES[trial.outcome], 9)
    slow = [link for link in report.links if link.slow]
    for text in _slow(report.links):
        yield Line(text, "", _("slow link"), "bold red", 11)
    rest = [link.speed for link in report.links if not link.slow]
    if rest:
        lowest, highest = _speed(min(rest)), _speed(max(rest))
        spread = _("{lowest} to {highest}").format(lowest=lowest, highest=highest) if len(rest) > 1 else lowest
        if slow:
            pairs = ngettext("{count} other pair", "{count} other pairs", len(rest)).format(count=len(rest))
        else:
            pairs = ngettext("{count} pair", "{count} pairs", len(rest)).format(count=len(rest))
        text = _("{pairs} of nodes at {speed} each way").format(pairs=pairs, speed=spread)
        yield Line(text, "dim", _("links"), "dim", 9)
    for limit in report.limits:
        yield Line(_(limit), "dim")


def _slow(links: Sequence[Link]) -> Iterator[str]:
    """The slow pairs; a node all of whose links are slow is told once."""
    of_node: dict[str, list[Link]] = {}
    for link in links:
        for node in link.nodes:
            of_node.setdefault(node, []).append(link)
    lame = {node for node, own in of_node.items() if len(own) > 1 and all(link.slow for link in own)}
    for node in sorted(lame):
        speed = _speed(max(link.speed for link in of_node[node]))
        yield _("every link of {node}: at most {speed} in each direction").format(node=node, speed=speed)
    pairs = [link for link in links if link.slow and not lame & set(link.nodes)]
    for link in pairs[:_MOST_NODES]:
        yield _("{nodes}: {speed} each way").format(nodes=" - ".join(link.nodes), speed=_speed(link.speed))
    if len(pairs) > _MOST_NODES:
        yield _("{count} more pairs, see --format json").format(count=len(pairs) - _MOST_NODES)


def _speed(speed: float) -> str:
    return f"{speed / 1e9:.2f} GB/s" if speed >= 1e9 else f"{speed / 1e6:.1f} MB/s"


def _verdict(report: ClusterReport) -> Iterator[Line]:
    counted = Counter(finding.status for finding in report.findings)
    parts = [f"{counted[status]} {_(status)}" for status in STATUSES if counted[status]]
    faults = list(_fault_counts(report))
    bad = [finding for finding in report.findings if finding.status in BAD]
    if report.cut_short:
        until = [*parts, *faults] or [_("no fault found until then")]
        yield Line(clauses(_("ended early"), *until), "bold red")
    elif bad or faults:
        yield Line(clauses(*parts, *faults), "bold red")
    else:
        yield Line(_("no known fault on these machines") + (f" ({comma_list(parts)})" if parts else ""), "bold green")
    if bad:
        yield Line(_("next: {command}").format(command=f"compatcheck explain {bad[0].id}"), "dim")
    yield from stale(report)


def _fault_counts(report: ClusterReport) -> Iterator[str]:
    """What is wrong beyond the findings of the matrix."""
    differences, failures = len(report.differences), len(report.failures)
    failed = sum(trial.outcome in ("fail", "crash", "timeout") for trial in report.trials)
    slow = sum(link.slow for link in report.links)
    if differences:
        text = ngettext("{count} difference between nodes", "{count} differences between nodes", differences)
        yield text.format(count=differences)
    if failures:
        yield ngettext("{count} failure", "{count} failures", failures).format(count=failures)
    if failed:
        yield ngettext("{count} failed probe", "{count} failed probes", failed).format(count=failed)
    if slow:
        yield ngettext("{count} slow link", "{count} slow links", slow).format(count=slow)


def _nodes(group: Group) -> str:
    whole = [node for node in group.nodes if node not in group.split]
    parts = (
        f"{node} ({ngettext('rank {ranks}', 'ranks {ranks}', len(ranks)).format(ranks=_few(ranks))})"
        for node, ranks in group.split.items()
    )
    return _node_names([*whole, *parts])


def _node_names(nodes: Sequence[str]) -> str:
    more = _(" and {count} more").format(count=len(nodes) - _MOST_NODES) if len(nodes) > _MOST_NODES else ""
    return comma_list(nodes[:_MOST_NODES]) + more


def _few(ranks: Sequence[int]) -> str:
    return comma_list(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")


def _labelled(label: str, text: str) -> Line:
    return Line(text, "dim", label, "dim", 15)


def _shape(report: ClusterReport, exit: Exit) -> Mapping[str, object]:
    return {
        "matrix": matrix_shape(report),
        "launcher": report.launcher,
        "world": report.world,
        "groups": [
            {
                "label": group.label,
                "digest": group.digest,
                "nodes": group.nodes,
                "ranks": [member.rank for member in group.members],
                "environment": group.environment.dump(),
                "inferred": inferred_shape(group.inferred),
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
        "exit_reason": exit.reason,
    }


def _difference_shape(difference: Difference) -> dict[str, object]:
    """A value that nobody knows has no ``value``; null is known to be absent."""
    values = [
        {"groups": labels, **({} if isinstance(value, Unknown) else {"value": value})}
        for value, labels in difference.values
    ]
    return {"path": list(difference.path), "values": values}
