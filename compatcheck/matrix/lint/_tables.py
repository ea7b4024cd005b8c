"""The tables beside the entries: what in them can have no effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from compatcheck.environment.vocabulary import keys, kind_of
from compatcheck.matrix._traits import Table


def idle_relevance(table: Table) -> Iterator[str]:
    """A path that no condition can have, or a value that its fact cannot, says nothing."""
    known = table("relevance")
    sections = {section for path in keys() for section in (path, path.rpartition(".")[0])}
    suggesting = (path for paths in known["off_unless_asked"].values() for path in paths)
    for path in (*known["off_unless_asked"], *suggesting, *known["chosen_by_few"], *known["switches"].values()):
        if kind_of(path) is None:
            yield f"there is no fact {path}"
    yield from (f"there is no fact below {path}" for path in known["own_settings"].values() if path not in sections)
    for path, values in known["chosen_by_few"].items():
        numeric = kind_of(path) == "number"
        yield from (f"{path} cannot be {value!r}" for value in values if numeric != isinstance(value, int))


def ambiguous_symptoms(table: Table) -> Iterator[str]:
    """A word replaced twice, or still in use, an implied symptom that is not there, and an unknown fact."""
    known = table("symptoms")["symptoms"]
    replaced = Counter(word for symptom in known.values() for word in symptom.get("replaces", ()))
    yield from (f"{word!r} is replaced twice" for word, count in replaced.items() if count > 1)
    yield from (f"{word!r} is a symptom and cannot be replaced" for word in replaced if word in known)
    implied = {word for symptom in known.values() for word in symptom.get("implies", ())}
    yield from (f"there is no symptom {word!r} to imply" for word in sorted(implied - known.keys()))
    facts = {f"training.observed.{name}" for symptom in known.values() for name in symptom.get("observed", ())}
    yield from (f"there is no fact {path}" for path in sorted(facts) if kind_of(path) is None)
