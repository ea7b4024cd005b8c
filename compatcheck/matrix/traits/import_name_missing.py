"""A package imports a name or a module that the installed versions do not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compatcheck.environment import Environment, Unknown
from compatcheck.interfaces.history import Interfaces
from compatcheck.interfaces.summary import Ask
from compatcheck.language import marked
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._answered import by_distance
from compatcheck.packages.versions import final_release

_WHY = marked("the releases that have the name")


def find(environment: Environment, table: Table) -> TraitVerdict:
    unresolved = environment.get("unresolved_imports")
    if isinstance(unresolved, Unknown):
        return TraitVerdict(None, missing=("unresolved_imports",))
    return TraitVerdict(bool(unresolved), tuple(_occurrence(each, table) for each in unresolved or ()))


def _occurrence(unresolved: Mapping[str, Any], table: Table) -> Occurrence:
    importer = " ".join(filter(None, (unresolved.get("distribution"), unresolved.get("version"))))
    at = f"{unresolved.get('file') or 'its code'}:{unresolved.get('line') or '?'}"
    chain = unresolved.get("chain") or ()
    way = f", imported through {' < '.join(chain[1:])}" if len(chain) > 1 else ""
    summary = (
        f"`{unresolved['statement']}` fails: {importer or at} {_wants(unresolved)} ({at}{way}). {_advice(unresolved)}"
    )
    packages = dict.fromkeys(filter(None, (unresolved.get("provider"), unresolved.get("distribution"))))
    return Occurrence(summary, tuple(packages), _pins(unresolved, table), why=_WHY)


def _pins(unresolved: Mapping[str, Any], table: Table) -> dict[str, str]:
    """The releases of the provider that are known to have the name, where this one is known not to."""
    module, release = unresolved["module"], final_release(unresolved.get("provider_version"))
    interfaces = Interfaces(table)
    package = interfaces.package_of(module) if module else None
    if package is None or release is None:
        return {}
    ask = Ask("import", module, unresolved.get("name") or "", 0, (), "", (), unresolved.get("line") or 0)
    refusal = interfaces.refusal(ask, {package: release})
    if refusal is None or not refusal.accepts:
        return {}
    return {package: by_distance(refusal.accepts, release, interfaces.releases(package))[0]}


def _wants(unresolved: Mapping[str, Any]) -> str:
    module, name = unresolved["module"], unresolved.get("name")
    provider = " ".join(filter(None, (unresolved.get("provider"), unresolved.get("provider_version"))))
    if not module:
        return f"fails on import: {unresolved.get('says') or 'nothing'}"
    if unresolved.get("error") == "NameError":
        return f"uses {name} in {module}, but with these versions the import that defines it is skipped"
    if name:
        return f"imports {name} from {module}, which {provider or module} does not have"
    if unresolved.get("provider_version"):
        return f"imports {module}, which {provider} does not have"
    return f"imports {module}, which is not installed"


def _advice(unresolved: Mapping[str, object]) -> str:
    provider, importer = unresolved.get("provider"), unresolved.get("distribution") or "that code"
    what = unresolved.get("name") or unresolved["module"]
    if not what:
        return f"Install the versions that {importer} requires"
    if provider and unresolved.get("provider_version") and provider != unresolved.get("distribution"):
        return f"Install a version of {provider} that has {what}, or a version of {importer} that no longer uses it"
    if provider == unresolved.get("distribution"):
        return f"Reinstall {importer}: its files come from different versions"
    return f"Install the package that provides {what}, or a version of {importer} that does not need it"
