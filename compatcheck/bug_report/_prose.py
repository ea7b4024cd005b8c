"""Environments in sentences, English or Chinese: ``cuda11.8, torch2.5.0``, ``transformers 版本 4.44.0``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim, distribution_claim, version_claim, with_doubt
from compatcheck.bug_report._cues import announces, hypothetical
from compatcheck.bug_report._gpus import Gpus, gpus_in
from compatcheck.bug_report._names import SPOKEN, distribution
from compatcheck.bug_report._platform import platform_claims

_SAYS = (
    r"(?:['\"\]),]{0,2}\s{0,2}(?:\(?(?:version|versions|ver|版本号?|release)\)?)?\s{0,2}(?:is|was|为|是|=>|@|\()?"
    r"\s{0,2}[:=-]{0,3}\s{0,2}['\"]?v?)"
)
_VERSION = (
    r"(\d{1,4}(?:\.\d{1,5}){1,3}(?:[-_.]?(?:a|b|rc|alpha|beta)\.?\d{1,3})?(?:\.?post\d{1,2})?(?:\.?dev\d{0,12})?"
    r"(?:\+(?!(?:python|torch|cuda|transformers|py\d|[a-z]{3,14}\d+\.\d+\.\d)[\w.]{0,12})[a-z0-9][a-z0-9.]{0,50})?)"
)
_AFTER = r"(?![\w]*[a-z]\d{3,}|\.\d|\d|x\d|\.(?:py|sh|log|txt|json|ya?ml|md|ipynb|pth?|bin|out|err)\b)"
_NAMED = re.compile(rf"(?<![a-z0-9_./\\@:-])({SPOKEN}|nvidia-[a-z-]{{3,20}}-cu\d\d){_SAYS}{_VERSION}{_AFTER}", re.I)
_PINNED = re.compile(rf"(?<![\w./\\@:-])([A-Za-z][\w.-]{{1,60}})(?:\[[\w,]{{1,40}}\])?={{2,3}}{_VERSION}{_AFTER}", re.I)
_RANGED = re.compile(
    rf"(?<![a-z0-9_./\\@-])({SPOKEN})\s{{0,2}}(?:\[[\w,]{{1,40}}\])?\s{{0,2}}(>=|<=|>|<|~=|!=|≥|≤)\s{{0,2}}v?\d", re.I
)
_MORE = re.compile(
    r"\s{0,2}(?:/|,|、|~|-{1,2}>?|→|to|and|or|&|和|或|到|至|以及)\s{0,2}v?\d{1,2}\.\d{1,3}(?:\.\d|\b)"
    r"(?!\s?(?:gib?|gb?|g|m|b|%|h)\b)",
    re.I,
)
_PYTHON = re.compile(
    rf"(?<![a-z0-9_./\\-])(?:python|py(?=3)|python revision|python interpreter){_SAYS}"
    r"(3\.\d{1,2}(?:\.\d{1,2})?)(?:\.x)?(?![\d]|\.\d)",
    re.I,
)
_CUDA = re.compile(
    r"(?<![a-z0-9_./\\-])(?<!\d\+)(?:torch\.version\.)?(cuda)\s{0,2}(?:-|_)?(toolkit|runtime|driver|compiler|sdk)?"
    r"(?:\(\w{1,10}\))?\s{0,2}(?:version|版本号?|ver)?\s{0,2}(?:is|为|是)?\s{0,2}[:=-]{0,3}\s{0,2}v?"
    r"(\d{1,2}\.\d)(?:\.\d{1,3})?(?![\d]|\.\d)(?:\s(driver|toolkit)\b(?!\s?[:=]))?",
    re.I,
)
_OF_DRIVER = re.compile(r"driver version\b.{0,30}\bcuda version", re.I)
_SHOWS = (
    r"\s{0,2}(?:version|版本)?\s{0,2}(?:显示|shows?|says|reports|is|为|是)?"
    r"\s{0,2}(?:cuda(?: version)?)?\s{0,2}[:=]?\s{0,2}v?"
)
_NVCC = re.compile(rf"(?<![\w./-])nvcc(?: -V| --version)?{_SHOWS}(\d{{1,2}}\.\d)(?!\d)", re.I)
_SMI = re.compile(rf"(?<![\w./-])nvidia-smi{_SHOWS}(\d{{1,2}}\.\d)(?![\d.]*\d)", re.I)
_DRIVER = re.compile(
    r"(?<![a-z])(?:driver|驱动)(?: ?version| ?版本)?\s{0,2}(?:is|为|是)?\s{0,2}[:=]?"
    r"\s{0,2}v?(\d{3}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.]*\d)",
    re.I,
)
_SHOWN = re.compile(r"(?:nvcc|nvidia-smi)\W[^,;]{0,30}\Z", re.I)
_NCCL = re.compile(r"(?<![a-z0-9_.-])NCCL version:? (\d\.\d{1,2}\.\d{1,2})(?:\+cuda\d{1,2}\.\d)?(?!\d)")
_CUDNN = re.compile(
    r"(?<![a-z0-9_./-])cudnn\s{0,2}(?:version)?\s{0,2}[:=]?\s{0,2}v?(\d{1,2}\.\d{1,2}\.\d{1,2}\.\d{1,3})(?!\d)", re.I
)
_BUILT_WITH = re.compile(
    r"\s{0,2}[+(（]\s{0,2}(?:with\s)?(?:cuda|cu)[ =:]{0,2}(\d{1,2})\.?(\d)(?!\d)|\s{1,2}(?:with\s)?cu(\d{2})(\d)(?!\d)",
    re.I,
)
_WHEEL = re.compile(
    r"(?<![\w.-])([A-Za-z][\w.]{1,60})-(\d[\w.+!]{0,80}?)-(?:cp(3)(\d{1,2})|py3)(?:-[\w.]{1,40}){0,2}(?:\.whl)?(?![\w-])"
)
_COMMAND = re.compile(
    r"\s{0,8}(?:[$!%>]\s{0,2}|\(\w{1,30}\)\s?[$#]?\s?|RUN )?(?:python3?\s-m\s|uv\s|sudo\s)?"
    r"(pip3?|conda|mamba)\s+install\s"
)
_MODULE_VERSION = re.compile(
    r"(?:print\()?\s{0,2}([a-z_]{3,30})\.__version__\)?\s{0,4}(?:#|:|=>?|->)?\s{0,4}['\"]?v?(\d[\w.+]{1,60})['\"]?",
    re.I,
)
_QUESTION = re.compile(r"\((?:[CGT]PU|accelerator)[^()]{0,30}\?\)|\?(?=\s*:)")
_SENTENCES = re.compile(r"(?<=[。!！;；?？])|(?<=\.)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)\s+(?=[A-Za-z\u4e00-\u9fff])")
_BENCHMARK = re.compile(r"\bbenchmark(?:s|ed|ing)?\b[^.;]{0,40}\bon\b", re.I)
_DIGIT = re.compile(r"\d")
_ITEM = re.compile(r"\s{0,12}(?:[-*+•]|\d{1,2}[.)、])\s")
_WHICH = "is ambiguous: CUDA {} could be torch's, the driver's or the toolkit's"
_OTHER = "speaks of {} in a sentence on what was tried, advised or asked for"


def read(block: Block, lines: Iterable[Line]) -> Iterator[Claim]:
    """The claims of what no format of tools recognises, sentence by sentence."""
    advised = _advised(block)
    for line in lines:
        if not _DIGIT.search(line.plain) and not line.plain.lower().startswith(("os", "system")):
            continue
        yield from _wheels(line)
        line = line._replace(plain=_WHEEL.sub(" ", line.plain))
        if _COMMAND.match(line.text):
            yield from _command(line, block)
            continue
        text = _QUESTION.sub(" ", _without_locations(line.plain))
        for sentence in _SENTENCES.split(text):
            claims = _sentence(sentence.strip(), line.number)
            if line.number in advised or hypothetical(sentence):
                claims = (claim._replace(doubt=_OTHER.format(_subject(claim))) for claim in claims)
            yield from claims


def _advised(block: Block) -> frozenset[int]:
    """The items of lists whose announcement says that they are what was tried or advised."""
    found, above = set(), ""
    for line in block.lines:
        if not _ITEM.match(line.text):
            above = line.plain
        elif announces(above) and hypothetical(above):
            found.add(line.number)
    return frozenset(found)


def _without_locations(text: str) -> str:
    """The text without links and paths, whose words name no version."""
    return " ".join(word for word in text.split() if not _is_location(word))


def _is_location(word: str) -> bool:
    return "://" in word or word.count("/") > 1 or word.startswith(("/", "~/", "./")) or word[1:3] in (":\\", ":/")


def _subject(claim: Claim) -> str:
    return claim.path.partition(".")[2] if claim.path.startswith("distributions.") else claim.path


def _sentence(text: str, number: int) -> Iterator[Claim]:
    yield from _distributions(text, number)
    for match in _PYTHON.finditer(text):
        yield _unless_more(text, match, Claim("python", match[1], number))
    for pattern, path in (
        (_NVCC, "cuda.toolkit"),
        (_SMI, "cuda.driver_api"),
        (_DRIVER, "cuda.driver"),
        (_NCCL, "cuda.nccl"),
        (_CUDNN, "cuda.cudnn"),
    ):
        for match in pattern.finditer(text):
            yield _unless_more(text, match, version_claim(path, match[1], number))
    yield from _cuda(text, number)
    yield from _gpus(text, number)
    yield from platform_claims(text, number)


def _distributions(text: str, number: int) -> Iterator[Claim]:
    seen: set[int] = set()
    for pattern in (_NAMED, _PINNED, _MODULE_VERSION):
        for match in pattern.finditer(text):
            name = distribution(match[1]) or match[1]
            if match.start() in seen or name.lower() in ("cuda", "python", "cudnn", "version"):
                continue
            seen.add(match.start())
            yield _unless_more(text, match, distribution_claim(name, match[2], number))
            built = _BUILT_WITH.match(text, match.end()) if name == "torch" else None
            if built:
                yield Claim("cuda.runtime", f"{built[1] or built[3]}.{built[2] or built[4]}", number)
    for match in _RANGED.finditer(text):
        name = distribution(match[1]) or match[1]
        yield Claim(f"distributions.{name}", None, number, "gives a range, not a version")


def _unless_more(text: str, match: re.Match[str], claim: Claim) -> Claim:
    """A version that another follows (``4.44 or 4.45``) decides nothing."""
    if claim.doubt is None and _MORE.match(text, match.end()):
        return claim._replace(doubt=f"names several versions, {claim.value} and another")
    return claim


def _cuda(text: str, number: int) -> Iterator[Claim]:
    for match in _CUDA.finditer(text):
        kind, version = (match[2] or match[4] or "").lower(), match[3]
        if match[0].lower().startswith("torch.version"):
            yield Claim("cuda.runtime", version, number)
        elif kind in ("toolkit", "compiler", "sdk"):
            yield Claim("cuda.toolkit", version, number)
        elif kind == "driver" or _OF_DRIVER.search(text):
            yield Claim("cuda.driver_api", version, number)
        elif not (_is_of_torch(text, match.start()) or _SHOWN.search(text[: match.end()])):
            yield Claim("cuda.runtime", None, number, _WHICH.format(version))
            yield Claim("report.cuda", version, number)


def _is_of_torch(text: str, start: int) -> bool:
    """Whether the CUDA at this place is the one that a version of torch just before it was built with."""
    before = text[max(0, start - 90) : start + 20]
    return any(_BUILT_WITH.match(before, match.end()) for match in _NAMED.finditer(before))


def _gpus(text: str, number: int) -> Iterator[Claim]:
    found: Gpus | None = gpus_in(text)
    if found is None or _BENCHMARK.search(text):
        return
    if len(found.names) > 1:
        yield Claim("gpus", None, number, f"names several GPUs: {', '.join(found.names)}")
    else:
        yield Claim("gpus", found.value(), number)


def _wheels(line: Line) -> Iterator[Claim]:
    """A wheel by its file name, which carries more than the version where its author put it there."""
    for match in _WHEEL.finditer(line.plain):
        name = distribution(match[1])
        if name is None:
            continue
        claims = [distribution_claim(name, match[2].lower(), line.number)]
        if match[4] and "abi3" not in match[0]:
            claims.append(Claim("python", f"3.{match[4]}", line.number))
        bare = line.plain.replace(match[0], " ")
        yield from with_doubt(claims, _OTHER.format(name)) if hypothetical(bare) else claims


def _command(line: Line, block: Block) -> Iterator[Claim]:
    """The versions that a command installs, unless the words around it make it advice."""
    around = [other.plain for other in block.lines if abs(other.number - line.number) <= 2 and other is not line]
    advised = any(hypothetical(text) for text in (block.lead, *around))
    claims: list[Claim] = []
    for word in line.plain.split():
        name, equals, version = word.strip("'\"").partition("=")
        version = version.lstrip("=").partition("=")[0]
        if equals and name == "pytorch-cuda":
            claims.append(version_claim("cuda.runtime", version, line.number))
        elif equals and not name.endswith((">", "<", "~", "!")) and not name.startswith("-"):
            known = distribution(name.partition("[")[0])
            claims += [distribution_claim(known, version, line.number)] if known and version.count(".") > 0 else []
    yield from with_doubt(claims, _OTHER.format("a version")) if advised else claims
