"""The training frameworks that are known: each is one file in ``matrix/frameworks/``, read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple

from compatcheck.packages.shipped_tables import shipped_table


class LaunchCommand(NamedTuple):
    """A command that starts a training by one of its verbs.

    ``processes`` is how many it starts on a node where ``NPROC_PER_NODE`` is not set: one, one for each visible GPU, or
    what torchrun's own options say. Left out, it is unknown.
    """

    name: str
    verbs: Sequence[str]
    processes: Literal["one", "visible", "torchrun"] | None = None


class Framework(NamedTuple):
    """What is known of a framework, by the name that ``training.framework`` has for it.

    - ``title`` is its name in sentences, ``also`` further values of ``training.framework`` that mean it;
    - ``distributions`` are its packages, the present one first, ``aliases`` their names in prose;
    - ``repositories`` are its places on GitHub, ``owner/name``, former ones included;
    - ``program``: people run it as it is or build on it alone, so that a report seldom leaves it out;
    - ``library``: others train with its package, so that a report in its repository need not be of its own trainer;
    - ``runs_on``: the frameworks whose loop or engine it trains by, each with the releases of its own package that do;
    - ``reader`` is the module in ``project/training/formats/`` that reads its settings;
    - ``commands``, ``scripts`` (regular expressions on the path of a script, with the verb as group 1), ``own_flags``
      (together they are those of no other) and ``marks`` (a launch script holds one of them) show who starts a
      training; ``by_ray``: Ray starts the processes;
    - ``config_flags`` name the configuration file, and with ``dotted_flags`` the flag ``--a.b`` is key ``b`` of its
      table ``a``;
    - ``frames`` matches the path of its trainer in a traceback, from a folder on, with the objective as group 1;
    - ``phrases`` name it in prose behind a word like "with", ``statements`` anywhere;
    - ``images`` are container images that are tagged with the release of its package;
    - ``imports`` are statements on its present package whose failure ends a run;
    - ``needs`` are packages that its runs require though its package only recommends them, ``does_without`` those that
      it goes on without where a setting asks for them, ``never_sets`` the facts that no setting
      of it changes;
    - ``default_attention`` is the range of its releases in which transformers chooses the attention that no setting
      names, but for the model types in ``chooses_attention_of``;
    - ``long_rows`` is what it does with rows that are too long, other than to cut their end, and ``own_templates``
      says that it writes chats without the model's template.
    """

    name: str
    title: str
    sources: Sequence[str]
    reviewed: str
    repositories: Sequence[str] = ()
    also: Sequence[str] = ()
    distributions: Sequence[str] = ()
    aliases: Sequence[str] = ()
    program: bool = False
    library: bool = False
    runs_on: Mapping[str, str] = {}
    reader: str | None = None
    commands: Sequence[LaunchCommand] = ()
    scripts: Sequence[str] = ()
    own_flags: Sequence[str] = ()
    marks: Sequence[str] = ()
    by_ray: bool = False
    config_flags: Sequence[str] = ("config",)
    dotted_flags: bool = False
    frames: str | None = None
    phrases: Sequence[str] = ()
    statements: Sequence[str] = ()
    images: Sequence[str] = ()
    imports: Sequence[str] = ()
    needs: Sequence[str] = ()
    does_without: Sequence[str] = ()
    never_sets: Sequence[str] = ()
    default_attention: str | None = None
    chooses_attention_of: Sequence[str] = ()
    long_rows: str | None = None
    own_templates: bool = False


@cache
def frameworks() -> Mapping[str, Framework]:
    """Every framework by its name, in the order of the names."""
    return {name: _framework(name, row) for name, row in shipped_table("frameworks").items()}


def _framework(name: str, row: Mapping[str, object]) -> Framework:
    found = Framework(name=name, **row)  # type: ignore[arg-type]
    return found._replace(commands=tuple(LaunchCommand(**command) for command in row.get("commands", ())))  # type: ignore[attr-defined]


def framework_of(value: object) -> Framework | None:
    """The framework that a value of ``training.framework`` means; None for one that is unknown or no framework."""
    return _framework_by_value().get(value) if isinstance(value, str) else None


@cache
def _framework_by_value() -> Mapping[str, Framework]:
    return {value: each for name, each in frameworks().items() for value in (name, *each.also)}


@cache
def framework_of_distribution(name: str) -> Framework | None:
    return next((each for each in frameworks().values() if name in each.distributions), None)


@cache
def foundations(name: str) -> Mapping[str, Mapping[str, str]]:
    """The frameworks that one runs on, directly or through another, each with the releases of packages it takes."""
    found: dict[str, Mapping[str, str]] = {}
    framework = frameworks().get(name)
    for below, releases in framework.runs_on.items() if framework else ():
        own = {framework.distributions[0]: releases} if framework and releases else {}
        for each, further in {below: {}, **foundations(below)}.items():
            found.setdefault(each, {**own, **further})
    return found
