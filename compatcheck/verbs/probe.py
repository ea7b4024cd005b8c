"""`compatcheck probe`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from compatcheck.results import exit_status
from compatcheck.verbs import _help, _options
from compatcheck.verbs._output import progress, screen_of, write, write_reports

if TYPE_CHECKING:
    from compatcheck.results.findings import ProbeResult

_Command = TypeVar("_Command", bound=Callable[..., object])


def _profile(name: str, explanation: str) -> Callable[[_Command], _Command]:
    return click.option(f"--{name}", "profile", flag_value=name, help=explanation)


SECTION = "judge"
EXAMPLES = (
    "compatcheck probe --smoke",
    "compatcheck probe attention_masked --model merged/ --device cuda",
)


@_help.verb()
@click.argument("names", nargs=-1, metavar="[PROBE]...")
@_help.option(
    "--list", "listed", is_flag=True, help="List all probes, or the probes that would run, without running any."
)
@_profile("smoke", "Run probes that take a few seconds in total.")
@_profile("quick", "Run probes that take at most a minute in total (default).")
@_profile("deep", "Run all probes, including those that compile or train on several processes.")
@_options.python
@_options.trust
@_options.device
@_options.model
@_options.one_config(_options.SETTINGS_OF_A_RUN)
@_options.trust_remote_code
@_help.option(
    "--request",
    rare=True,
    metavar="JSON",
    default="{}",
    help='Extra options for the probes, such as {"dtype": "float16"}.',
)
@_options.budget("Start no probe after this many seconds. Default: no limit.", rare=True)
@_options.fresh
@_options.require_probe
@_options.page_format
@_options.output
@_options.page_reports
@_options.quiet
@_options.verbose("Also print how long each step of a probe took.")
def command(
    names: tuple[str, ...],
    listed: bool,
    profile: str | None,
    python: str | None,
    device: str,
    model: str | None,
    training: str | None,
    trust_remote_code: bool,
    request: str,
    budget: float | None,
    fresh: bool,
    require_probe: bool,
    format_name: str,
    output: str | None,
    reports: tuple[tuple[str, str], ...],
    quiet: bool,
    verbose: bool,
) -> NoReturn:
    """Test the numerics of this machine with small experiments.

    Runs the named probes, or a profile, in the target's interpreter. A probe is a small numeric experiment with a
    derived error bound; --model and --config run it on your architecture and settings. Results from the same
    environment are reused unless --fresh is given. Exits with 1 if a probe fails, with 4 if one crashed or none could
    run. After Ctrl-C, prints what finished and exits with 130.
    """
    from compatcheck import probes
    from compatcheck.pipelines import probe as probing
    from compatcheck.report import render
    from compatcheck.report.subjects import probes as subject

    parsed = probes.parse_request(request)
    given = {"device": device, "profile": profile or "quick", "trust_remote_code": trust_remote_code}
    asked = {**given, **probing.context(model, training), **parsed}
    probes.require_device(asked["device"])
    chosen = probes.choose(names, profile or ("deep" if listed else "quick"), asked)
    if listed:
        cards = subject.document_of_cards([probes.card(name) for name in chosen])
        write(render(cards, format_name, screen_of(output)), output)
        sys.exit(exit_status.CLEAN)
    with progress() as show:
        results = probing.probe(chosen, asked, python, budget_seconds=budget, fresh=fresh, on_probe=show)
    status = _exit_status(results, require_probe)
    write_reports(subject.document(results), reports)
    if quiet and format_name == "text":
        unmet = {"crash", "timeout"} | ({"fail"} if status == exit_status.FINDINGS else {"fail", "skip"})
        failing = [each for each in results if status != exit_status.CLEAN and each.outcome in unmet]
        write(render(subject.failing(failing), format_name, screen_of(output)), output)
    else:
        write(render(subject.document(results, verbose=verbose), format_name, screen_of(output)), output)
    sys.exit(status)


def _exit_status(results: Sequence[ProbeResult], require_probe: bool) -> int:
    if any(result.interrupted for result in results):
        return exit_status.INTERRUPTED
    outcomes = {result.outcome for result in results}
    if require_probe and outcomes & {"crash", "timeout", "skip"}:
        return exit_status.REQUIRED_MISSING
    if "fail" in outcomes:
        return exit_status.FINDINGS
    ran = outcomes & {"pass", "watch"} and not outcomes & {"crash", "timeout"}
    return exit_status.CLEAN if ran else exit_status.REQUIRED_MISSING
