"""The releases of packages that rules ask for."""

from __future__ import annotations

from packaging.version import Version

from compatcheck.environment import Environment
from compatcheck.packages.versions import final_release


def release_in(view: Environment, package: str) -> Version | None:
    """The final release of a package that is installed, where one is known."""
    version = view.get(f"distributions.{package}")
    return final_release(version) if isinstance(version, str) else None
