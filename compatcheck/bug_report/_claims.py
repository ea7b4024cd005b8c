"""What single lines of a report claim, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from compatcheck.environment import Environment, Location
from compatcheck.files.secrets import excerpt
from compatcheck.inference.torch_builds import minor, runtime_of
from compatcheck.packages.frameworks import foundations
from compatcheck.packages.names import normalised
from compatcheck.results.cases import FACTUAL, How, Said

_VERSIONS = ("distributions.", "python", "cuda.", "npu.", "rocm.", "torch_build.")
_CALLED = {"pytorch": "torch"}
WEAK, WORDS, FAILING, RECORD = range(4)
"""How much a claim weighs: what counts beside a contrast alone, what a sentence says, what it says of the failure or of
the present, and what code, a configuration or a program's output has."""
_MOST_VARIANTS = 4
_MOST_VALUES = 8
_CIRCUMSTANCES = (
    *("model.name", "gpus", "python", "platform.", "cuda.", "npu.", "rocm.", "training.method", "training.framework"),
    *("training.objective", "training.world_size", "training.several_ranks"),
)
_HOWS = {
    "worked": "says that the value works, not that it fails",
    "tried": "mentions an attempt without its outcome",
    "asked": "asks about the value",
    "advised": "mentions what is advised or required",
    "elsewhere": "mentions another environment",
}


class Claim(NamedTuple):
    """One fact as one line has it; ``None`` is "known to be absent".

    ``doubt`` says why the line does not settle the fact after all; its value counts for nothing then. ``stands`` is
    false for what no line says and a configuration that begins there implies. ``how`` is the way in which the line
    mentions it: only what is stated or fails is a fact of the environment at fault.
    """

    path: str
    value: Any
    line: int
    doubt: str | None = None
    stands: bool = True
    how: How = "stated"
    weight: int = RECORD


def version_claim(path: str, text: str, line: int) -> Claim:
    """The version at a path, or the doubt where the text is no version of PEP 440."""
    from packaging.version import Version

    bare = text.strip().rstrip(".,;:)'\"")
    try:
        Version(bare)
    except ValueError:
        return Claim(path, None, line, f"gives {excerpt(repr(bare), 60)}, which is not a version")
    return Claim(path, bare.removeprefix("v").removeprefix("V"), line)


def distribution_claim(name: str, text: str, line: int) -> Claim:
    return version_claim(f"distributions.{_CALLED.get(normalised(name), normalised(name))}", text, line)


def join_claims(claims: Sequence[Claim], source: str) -> tuple[Environment, tuple[Mapping[str, Any], ...]]:
    """The facts on which all lines agree, each where it is said most exactly, and the other readings of them.

    What weighs more outranks the rest. A fact that two lines state differently is unknown, and the reason names both;
    so is one that no line states.
    """
    known: dict[str, object] = {}
    reasons: dict[str, str] = {}
    locations: dict[str, Location] = {}
    others: dict[str, list[Any]] = {}
    for path, group in by_path(claims).items():
        settled = standing(group)
        if not settled:
            reasons[path] = _doubt_of(group[0])
            others[path] = values_of(path, [claim for claim in group if claim.doubt is None and claim.how in FACTUAL])
            continue
        heaviest = max(claim.weight for claim in settled)
        best = next(claim for claim in settled if claim.weight == heaviest)
        for claim in settled:
            agreed = _agreed(path, best, claim)
            if agreed is not None:
                best = agreed
            elif claim.weight == heaviest:
                reasons[path] = f"line {best.line} says {_describe(best)}, line {claim.line} says {_describe(claim)}"
                break
        else:
            known[path] = best.value
            if best.stands:
                locations[path] = Location(source, best.line)
        others[path] = [
            each for each in values_of(path, settled) if path in reasons or not same(path, each, best.value)
        ]
    _settle_sections(known, reasons, locations)
    _settle_runtime(known, reasons, locations)
    _settle_libraries(known, reasons, locations)
    sections = {path.rpartition(".")[0] for path in known}
    open_still = {path: why for path, why in reasons.items() if path not in sections}
    return Environment.from_flat(known, open_still, locations), _variants(others)


def standing(group: Sequence[Claim]) -> list[Claim]:
    """The claims on one fact that count for the environment at fault.

    What works is not at fault where something else is, and what weighs little counts only beside what works.
    """
    path = group[0].path
    settled = [claim for claim in group if claim.doubt is None]
    factual = [claim for claim in settled if claim.how in FACTUAL]
    worked = values_of(path, [claim for claim in settled if claim.how == "worked"])
    apart = [claim for claim in factual if worked and not any(same(path, claim.value, each) for each in worked)]
    strong = [claim for claim in apart if claim.how == "failed" or claim.weight > WEAK]
    if strong:
        return strong
    return [claim for claim in factual if claim.weight > WEAK]


def without_bystanders(claims: Sequence[Claim]) -> list[Claim]:
    """The claims; circumstances that a contrast names and never varies are stated, as they hold in both cases."""
    groups = by_path(claims)
    contrasts: set[int] = set()
    for path, group in groups.items():
        factual = values_of(path, [claim for claim in group if claim.doubt is None and claim.how in FACTUAL])
        worked = (claim for claim in group if claim.doubt is None and claim.how == "worked")
        contrasts |= {claim.line for claim in worked if any(not same(path, claim.value, each) for each in factual)}
    alone = {
        path
        for path, group in groups.items()
        if path.startswith(_CIRCUMSTANCES) and not any(claim.how in FACTUAL for claim in group)
    }
    return [
        claim._replace(how="stated", weight=WORDS)
        if claim.how == "worked" and claim.path in alone and claim.line in contrasts
        else claim
        for claim in claims
    ]


def values_of(path: str, claims: Iterable[Claim]) -> list[Any]:
    """The different values of claims, in their order."""
    values: list[Any] = []
    for claim in claims:
        if (
            len(values) < _MOST_VALUES
            and claim.value is not None
            and not any(same(path, each, claim.value) for each in values)
        ):
            values.append(claim.value)
    return values


def _variants(others: Mapping[str, Sequence[Any]]) -> tuple[Mapping[str, Any], ...]:
    """The other readings: the first takes the first of the other values of each fact, and so on."""
    readings = (
        {path: values[at] for path, values in others.items() if len(values) > at} for at in range(_MOST_VARIANTS)
    )
    return tuple(reading for reading in readings if reading)


def said(claims: Iterable[Claim], source: str) -> tuple[Said, ...]:
    """The mentions that lines make, in the order of the text."""
    stated = sorted((claim for claim in claims if claim.stands), key=lambda claim: claim.line)
    mentions = (Said(claim.path, claim.value, Location(source, claim.line), claim.how, claim.doubt) for claim in stated)
    return tuple(mentions)


def _doubt_of(claim: Claim) -> str:
    doubt = claim.doubt or _HOWS.get(claim.how, "mentions the value in passing, not as part of the failing environment")
    return f"line {claim.line}{'' if doubt[:1] == ':' else ' '}{doubt}"


def by_path(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    """The claims on each fact, in their order."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.path, []).append(claim)
    return groups


def same(path: str, one: Any, other: Any) -> bool:
    """Whether two values of a fact may be one, said more or less exactly."""
    return _agreed(path, Claim(path, one, 0), Claim(path, other, 0)) is not None


def _agreed(path: str, one: Claim, other: Claim) -> Claim | None:
    """The more exact of two claims, or None where they contradict each other."""
    if one.value == other.value:
        return one if one.stands else other
    if one.value is None or other.value is None:
        return None
    if path == "gpus":
        return _agreed_gpus(one, other)
    if path in ("missing_names", "interface_errors"):
        return one._replace(value=[*one.value, *(each for each in other.value if each not in one.value)])
    if path == "training.framework":
        return next((a for a, b in ((one, other), (other, one)) if b.value in foundations(a.value)), None)
    if path == "model.name":
        longer, shorter = sorted((one, other), key=lambda claim: len(_model_words(claim)), reverse=True)
        return longer if _model_words(longer)[: len(_model_words(shorter))] == _model_words(shorter) else None
    if path.startswith(_VERSIONS):
        for exact, loose in ((one, other), (other, one)):
            if _refines(str(exact.value), str(loose.value)):
                return exact
    return None


def _model_words(claim: Claim) -> list[str]:
    """The words of a model's name without its owner: ``GLM-4`` may be what a text calls ``zai-org/glm-4-9b-chat``."""
    import re

    name = str(claim.value).rpartition("/")[2].lower()
    return re.findall(r"\d+(?:\.\d+)?(?:b(?![a-z]))?|[a-z]+", name)


def _refines(exact: str, loose: str) -> bool:
    """Whether ``2.5.1+cu118`` may be what ``2.5.1`` or ``2.5`` stands for."""
    public, _, label = exact.partition("+")
    loose_public, _, loose_label = loose.partition("+")
    if loose_label and loose_label != label:
        return False
    if not loose_public.replace(".", "").isdigit():
        return public == loose_public
    return public == loose_public or public.startswith(f"{loose_public}.")


def _agreed_gpus(one: Claim, other: Claim) -> Claim | None:
    """Two lists of the same model of GPU: the longer one, by the fuller name."""
    words = [{frozenset(_words(gpu.get("name") or "")) for gpu in claim.value} for claim in (one, other)]
    if len(words[0]) != 1 or len(words[1]) != 1:
        return None
    first, second = next(iter(words[0])), next(iter(words[1]))
    if not (first <= second or second <= first):
        return None
    fuller, longer = max(one, other, key=lambda c: len(c.value[0])), max(one, other, key=lambda c: len(c.value))
    named = one if second <= first else other
    merged = {**fuller.value[0], **named.value[0]}
    if not (one.value[0].get("uncounted") and other.value[0].get("uncounted")):
        merged.pop("uncounted", None)
    gpus = [merged] * len(longer.value)
    return named._replace(value=gpus)


def _words(name: str) -> list[str]:
    import re

    apart = re.sub(r"(?<=910[abc])(?=\d)|(?<=310p)(?=\d)", " ", name.lower())
    words = re.findall(r"[a-z]+\d+[a-z]*|\d+|[a-z]+", apart)
    return [word for word in words if word not in ("nvidia", "geforce", "tesla", "gpu", "gb", "g")]


def _describe(claim: Claim) -> str:
    if claim.path == "gpus":
        return ", ".join(sorted({gpu.get("name") or "a GPU" for gpu in claim.value})) or "no GPU"
    return "absent" if claim.value is None else str(claim.value)


def _settle_sections(known: dict[str, Any], reasons: dict[str, str], locations: dict[str, Location]) -> None:
    """What one file has nothing of may stand in another; only where a line says that it is absent, that contradicts.

    Where one line says that something is there and another what it is, the second says both. Nothing is absent of which
    lines speak without settling what it is.
    """
    for section in [path for path, value in known.items() if value in (None, {})]:
        if section not in known:
            continue
        inside = [path for path in known if path.startswith(f"{section}.")]
        absent = known[section] is None
        if not inside and not (absent and any(path.startswith(f"{section}.") for path in reasons)):
            continue
        del known[section]
        at = locations.pop(section, None)
        if at and absent and inside:
            line = next((locations[path].line for path in inside if path in locations), None)
            reasons[section] = f"line {at.line} says that there is none, but line {line} gives a value"
            for path in inside:
                del known[path]
                locations.pop(path, None)


def _settle_runtime(known: dict[str, Any], reasons: dict[str, str], locations: dict[str, Location]) -> None:
    """The label of torch's own version decides what it was built with; a line that says otherwise is of another one."""
    torch, runtime = known.get("distributions.torch"), known.get("cuda.runtime")
    built = runtime_of({"torch": torch})
    if not isinstance(built, str):
        return
    reasons.pop("cuda.runtime", None)
    if isinstance(runtime, str) and minor(runtime) != built:
        at = locations.pop("cuda.runtime", None)
        del known["cuda.runtime"]
        reasons["cuda.runtime"] = f"line {at.line if at else 1} says {runtime}, but torch is {torch}"


def _settle_libraries(known: dict[str, object], reasons: dict[str, str], locations: dict[str, Location]) -> None:
    """cuDNN and NCCL come to torch from distributions: the one for its CUDA, else the only one there is."""
    generation = str(known.get("cuda.runtime") or "").partition(".")[0]
    for library in ("cudnn", "nccl"):
        fact, stem = f"cuda.{library}", f"distributions.nvidia-{library}-cu"
        found = [path for path in known if path.startswith(stem) and known[path]]
        fitting = [path for path in found if path == f"{stem}{generation}"] or found
        if len(fitting) == 1 and fact not in known:
            known[fact], locations[fact] = known[fitting[0]], locations[fitting[0]]
            reasons.pop(fact, None)
