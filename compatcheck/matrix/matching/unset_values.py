"""Which values of an environment variable act like an unset one, by `matrix/tables/environment-variables.toml`."""

from __future__ import annotations

from compatcheck.environment import Environment
from compatcheck.packages.shipped_tables import shipped_table
from compatcheck.packages.versions import contains, parse_range, parse_version


def acts_like_unset(variable: str, value: object, environment: Environment) -> bool:
    """Whether the variable with this value has the effect of an unset variable in the environment."""
    table = shipped_table("environment-variables")
    if not _is_read(table["read_by"].get(variable, {}), environment):
        return True
    if variable in table["effective"]:
        return value not in table["effective"][variable]
    return value in table["default"].get(variable, ())


def _is_read(readers: dict[str, str], environment: Environment) -> bool:
    """Whether no stated release of the packages that read the variable is outside the range that does."""
    for package, releases in readers.items():
        stated = environment.get(f"distributions.{package}")
        version = parse_version(stated) if isinstance(stated, str) else None
        if version is not None and not contains(parse_range(releases), version):
            return False
    return True
