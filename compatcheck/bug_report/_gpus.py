"""GPUs by the names that drivers and people give them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from compatcheck.files import limits
from compatcheck.files.lazy_patterns import LazyPattern

_MEMORY = r"(?:[-_ ]?\d{2,3} ?g(?:i?b)?(?![a-z0-9]))?"
_FORM = r"(?:[- ](?:sxm\d?|pcie|nvl|hbm\d\w?|mig))?"
_CERTAIN = (
    r"(?:geforce )?(?:rtx|gtx) ?-?\d{3,4} ?(?:ti|super|d)?(?: super)?(?: ada)?",
    r"rtx pro \d{4}",
    r"rtx ?a\d{4}",
    r"[2345]0[5678]0 ?(?:ti|super|d)|[345]090 ?(?:ti|d)",
    r"quadro (?:rtx )?[kp]?\d{4}",
    r"titan ?(?:rtx|xp|x|v)",
    r"tesla[- ]?[tvpkm]\d{1,3}s?",
    rf"(?:a100|a800|h100|h800|h200|h20|b200|b300|gb200|gh200|v100s?|p100|a6000|a5000|l40s?){_FORM}{_MEMORY}{_FORM}",
)
_IN_CONTEXT = (
    rf"(?:t4|l4|l20|a10g?|a16|a2|a30|a40|a4000|p40|p4|k80|m40|t400|gb10){_FORM}{_MEMORY}",
    rf"(?:[2345]0[5678]0|[345]090) ?(?:ti|super|d)?{_MEMORY}",
)
_OTHERS = (
    r"(?:amd )?(?:radeon )?(?:instinct )?mi\d{2,3}[ax]?",
    r"(?:amd )?radeon (?:rx |(?:ai )?pro )?[a-z0-9]{3,8}(?: xtx?)?",
    r"(?:amd )?(?:radeon )?rx ?\d{4} ?(?:xtx|xt|gre)?",
    r"[679]\d[05]0 ?xtx?",
    r"(?:ascend|昇腾)[ -]?(?:310|910)(?:[a-z]\d[a-z]|[a-z]{1,2}\d?|_\d{4})?",
    r"(?:atlas ?)?910[abc](?:\d[a-z]?)?",
    r"310p\d?",
    r"(?:intel )?gaudi ?\d?",
    r"(?:apple )?m[1-5] (?:pro|max|ultra)",
    r"apple m[1-5]",
    r"intel arc [a-z0-9]{3,8}",
)
_BEFORE = r"(?:(?<![a-z0-9_./\\@-])|(?<=\d[x×*]))(?:nvidia[- ]?)?"
_AFTER = r"(?:(?<=\d)s(?![a-z0-9]))?(?![a-wyz0-9_/\\]|x(?!\d)|\.\w)(?!\s?(?:series|系列))"
_ANY = re.compile(
    rf"{_BEFORE}(?:(?P<other>{'|'.join(_OTHERS)})|(?P<certain>{'|'.join(_CERTAIN)})"
    rf"|(?P<loose>{'|'.join(_IN_CONTEXT)})){_AFTER}",
    re.I,
)
_CONTEXT = re.compile(
    r"\bgpus?\b|gpu[:=]|显卡|显存|\bcards?\b|\bvram\b|\bcolab\b|\bkaggle\b|\bnvidia\b|\btesla\b|\bgeforce\b|单卡|张|卡",
    re.I,
)
_SCALE = r"[x×*✕]"
_COUNT_BEFORE = re.compile(
    rf"(?<![\d.])(\d{{1,3}}) ?(?:{_SCALE} ?|(?:张|块|卡|个|片) ?|(?:gpus?|cards?)[: ]+)?(?:nvidia )?\Z", re.I
)
_COUNT_AFTER = re.compile(
    rf"\)? ?[-(]? ?(?:\d{{2,3}} ?gi?b?\)? ?)?(?:{_SCALE} ?(\d{{1,3}})(?![\d.])"
    r"|(\d{1,3}) ?(?:张|块|卡|gpus?|cards?)(?!\w))",
    re.I,
)
CANN_RELEASE = r"(\d{1,2}\.\d(?:\.\d)?(?:\.?rc\d)?)(?:(?<=rc\d)\.\d)?(?!\d|\.\d|\.?(?:rc\d|alpha|beta|t\d))"
"""A release of CANN as Ascend writes it, ``8.0.RC3``, but for alphas; the patch of a candidate is that candidate."""

_NPU = LazyPattern(
    r"(?:ascend|昇腾|atlas)?[- ]?((?:910|310)(?:[a-z]\d[a-z]|[a-z]{1,2}\d?|_\d{4})?)\Z",
    re.I,
    marks=(
        "910",
        "310",
    ),
)
_AMD = (
    (re.compile(r"(?:amd )?(?:radeon )?(?:instinct )?(mi\d{2,3}[ax]?)\Z", re.I), "AMD Instinct {}"),
    (re.compile(r"(?:amd )?(?:radeon )?(?:rx ?)?(\d{4}(?: ?(?:xtx|xt|gre))?)\Z", re.I), "AMD Radeon RX {}"),
)
_NUMBERS = {
    "single": 1,
    "one": 1,
    "单卡": 1,
    "单张": 1,
    "两张": 2,
    "双": 2,
    "two": 2,
    "dual": 2,
    "four": 4,
    "eight": 8,
    "八卡": 8,
    "两块": 2,
    "四卡": 4,
}
_PLURAL = re.compile(r"(?<=[A-Z]\d\d\d)s\Z|(?<=\d{4})s\Z")
_SPOKEN = re.compile(rf"({'|'.join(_NUMBERS)})[ -]?(?:nvidia )?\Z", re.I)


class Gpus(NamedTuple):
    """What a text says of its GPUs: one name, and how many where it says so; or several names, which settle nothing."""

    names: tuple[str, ...]
    number: int | None = None

    def value(self) -> list[dict[str, object]]:
        return listed(gpu(self.names[0]), self.number)


def listed(one: dict[str, Any], count: int | None) -> list[dict[str, Any]]:
    """The GPU as often as there are; one that is marked where nobody says how many."""
    return [one] * count if count else [{**one, "uncounted": True}]


def gpu(name: str) -> dict[str, Any]:
    """One GPU of that name. What is not NVIDIA's has no CUDA compute capability."""
    clean = " ".join(name.upper().split() if name.islower() else name.split())
    if npu := _NPU.match(clean):
        return {"name": f"Ascend {npu[1].upper()}", "compute_capability": None}
    if is_other(clean):
        return {"name": _amd(clean), "compute_capability": None}
    bare = re.match(r"(?:nvidia )?(\d{4}.*)", clean, re.I)
    if bare:
        clean = f"RTX {bare[1]}"
    clean = re.sub(r"\b(rtx|gtx)-?(?=\d)", lambda m: m[1].upper() + " ", clean, flags=re.I)
    clean = re.sub(r"(?<=\d)(ti|super)\b", r" \1", clean, flags=re.I)
    clean = re.sub(r"^(nvidia )?(a[456]000)\b", r"\1RTX \2", clean, flags=re.I)
    clean = re.sub(r"\brtx ?(a\d{4})\b", r"RTX \1", clean, flags=re.I)
    return {"name": clean}


def _amd(name: str) -> str:
    """The name as AMD's own tools print it; any other as it is."""
    for pattern, full in _AMD:
        if match := pattern.match(name):
            return full.format(re.sub(r"(?<=\d) ?(?=XT|GRE)", " ", match[1].upper()))
    return name


def is_other(name: str) -> bool:
    """Whether a name is that of an accelerator which is not NVIDIA's."""
    return re.match(rf"(?:{'|'.join(_OTHERS)})(?!\w)|amd |ascend|apple |intel ", name.strip(), re.I) is not None


def gpus_in(text: str, context: bool = False) -> Gpus | None:
    """The GPUs that a piece of text names; ``context`` says that it is known to speak of GPUs."""
    in_context = context or _CONTEXT.search(text) is not None
    names: list[str] = []
    count: int | None = None
    for match in _ANY.finditer(text[:2000]):
        before = _COUNT_BEFORE.search(text[max(0, match.start() - 12) : match.start()])
        after = _COUNT_AFTER.match(text[match.end() : match.end() + 16])
        spoken = _SPOKEN.search(text[max(0, match.start() - 16) : match.start()])
        plural = _PLURAL.search(match[0]) is not None
        counted = after or (before and (plural or not before[0].strip().isdigit())) or (spoken and plural)
        if match["loose"] and not (in_context or counted):
            continue
        name = _PLURAL.sub("", re.sub(r"\s+", " ", match[0]).strip(" -"))
        if gpu(name)["name"].lower() not in [gpu(each)["name"].lower() for each in names]:
            names.append(name)
        number = next(filter(None, (before and before[1], after and (after[1] or after[2]))), None)
        stated = int(number) if number else _NUMBERS[spoken[1].lower()] if spoken else 0
        count = max(count or 0, stated) if 0 < stated <= limits.GPUS else count
    return Gpus(tuple(names), count) if names else None
