"""Environments in sentences, English or Chinese: ``cuda11.8, torch2.5.0``, ``transformers 版本 4.44.0``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import WORDS, Claim, distribution_claim, version_claim
from compatcheck.bug_report._gpus import CANN_RELEASE, Gpus, gpus_in
from compatcheck.bug_report._mentions import Phrase, manner_of, phrases
from compatcheck.bug_report._names import distribution
from compatcheck.bug_report._platform import platform_claims
from compatcheck.bug_report._versions import SAYS, Versions
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.results.cases import FACTUAL, How

_PYTHON = LazyPattern(
    rf"(?<![a-z0-9_./\\-])(?:python|py(?=3)|python revision|python interpreter){SAYS}"
    r"(3\.\d{1,2}(?:\.\d{1,2})?)(?:\.x)?(?![\d]|\.\d)",
    re.I,
    marks=("py",),
)
_CUDA = LazyPattern(
    r"(?<![a-z0-9_./\\-])(?<!\d\+)(?:torch\.version\.)?(cuda)\s{0,2}(?:-|_)?(toolkit|runtime|driver|compiler|sdk)?"
    r"(?:\(\w{1,10}\))?\s{0,2}(?:version|版本号?|ver)?\s{0,2}(?:is|为|是)?\s{0,2}[:=-]{0,3}\s{0,2}v?"
    r"(\d{1,2}\.\d)(?:\.\d{1,3})?(?![\d]|\.\d)(?:\s(driver|toolkit)\b(?!\s?[:=]))?",
    re.I,
    marks=("cuda",),
)
_OF_DRIVER = re.compile(r"driver version\b.{0,30}\bcuda version", re.I)
_SHOWS = (
    r"\s{0,2}(?:version|版本)?\s{0,2}(?:显示|shows?|says|reports|is|为|是)?"
    r"\s{0,2}(?:cuda(?: version)?)?\s{0,2}[:=]?\s{0,2}v?"
)
_NVCC = LazyPattern(rf"(?<![\w./-])nvcc(?: -V| --version)?{_SHOWS}(\d{{1,2}}\.\d)(?!\d)", re.I, marks=("nvcc",))
_SMI = LazyPattern(rf"(?<![\w./-])nvidia-smi{_SHOWS}(\d{{1,2}}\.\d)(?![\d.]*\d)", re.I, marks=("nvidia-smi",))
_DRIVER = LazyPattern(
    r"(?<![a-z])(?:driver|驱动)(?: ?version| ?版本)?\s{0,2}(?:is|为|是)?\s{0,2}[:=]?"
    r"\s{0,2}v?(\d{3}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.]*\d)",
    re.I,
    marks=(
        "driver",
        "驱动",
    ),
)
_SHOWN = re.compile(r"(?:nvcc|nvidia-smi)\W[^,;]{0,30}\Z", re.I)
_NCCL = LazyPattern(
    r"(?<![a-z0-9_.-])NCCL version:? (\d\.\d{1,2}\.\d{1,2})(?:\+cuda\d{1,2}\.\d)?(?!\d)", marks=("nccl version",)
)
_CUDNN = LazyPattern(
    r"(?<![a-z0-9_./-])cudnn\s{0,2}(?:version)?\s{0,2}[:=]?\s{0,2}v?(\d{1,2}\.\d{1,2}\.\d{1,2}\.\d{1,3})(?!\d)",
    re.I,
    marks=("cudnn",),
)
_CANN = LazyPattern(
    r"(?<![a-z0-9_./-])cann(?:[- ]?toolkit)?\s{0,2}(?:versions?|版本号?)?\s{0,2}(?:is|为|是)?\s{0,2}[:=_-]{0,2}"
    rf"\s{{0,2}}v?{CANN_RELEASE}",
    re.I,
    marks=("cann",),
)
_ROCM = LazyPattern(
    r"(?<![a-z0-9_./+-])rocm\s{0,2}(?:versions?|版本号?)?\s{0,2}(?:is|为|是)?\s{0,2}[:=]?\s{0,2}v?(\d\.\d{1,2}(?:\.\d{1,2})?)(?![\d.]*\d)",
    re.I,
    marks=("rocm",),
)
_WHEEL = LazyPattern(
    r"(?<![\w.-])([A-Za-z][\w.]{1,60})-(\d[\w.+!]{0,80}?)-(?:cp(3)(\d{1,2})"
    r"|py3)(?:-[\w.]{1,40}){0,2}(?:\.whl)?(?![\w-])",
    marks=(
        "cp",
        "py3",
    ),
)
_COMMAND = LazyPattern(
    r"\s{0,8}(?:[$!%>]\s{0,2}|\(\w{1,30}\)\s?[$#]?\s?|RUN )?(?:python3?\s-m\s|uv\s|sudo\s)?"
    r"(pip3?|conda|mamba)\s+install\s",
    marks=("install",),
)
_QUESTION = re.compile(r"\((?:[CGT]PU|accelerator)[^()]{0,30}\?\)|\?(?=\s*:)")
_DIGIT = re.compile(r"\d")
_NEWEST = re.compile(r"latest|newest|最新", re.I)
_WHICH = "is ambiguous: CUDA {} could be torch's, the driver's or the toolkit's"
_AROUND = 2
_WHEELS_PLACE = "wheel-0.0"


def spoken(lines: Iterable[Line], fenced: bool) -> list[Line]:
    """The lines that are prose, without links, paths and the names of wheels, whose words name no version.

    Of what stands in a fence, only those count that may claim something.
    """
    rest = (
        line
        for line in lines
        if not _COMMAND.match(line.text) and (not fenced or _may_claim(line.plain) or _NEWEST.search(line.plain))
    )
    return [line._replace(plain=_QUESTION.sub(" ", _without_locations(_WHEEL.sub(" ", line.plain)))) for line in rest]


def installed(block: Block, lines: Iterable[Line], given: Mapping[int, How]) -> Iterator[Claim]:
    """The claims of the names of wheels, and of commands that install something."""
    for line in lines:
        yield from _wheels(line, given)
        if _COMMAND.match(line.text):
            yield from _command(line, block, given)


def read(phrases: Sequence[Phrase], spoken: str) -> Iterator[Claim]:
    """The claims of what no format of tools recognises, each in the manner in which its phrase mentions it.

    ``spoken`` are the names of packages that the report may hold.
    """
    versions = Versions(phrases, spoken)
    for phrase in phrases:
        if _may_claim(phrase.text):
            yield from _claims(phrase, versions)


def _may_claim(text: str) -> bool:
    return _DIGIT.search(text) is not None or text.lower().startswith(("os", "system"))


def _without_locations(text: str) -> str:
    return " ".join(word for word in text.split() if not _is_location(word))


def _is_location(word: str) -> bool:
    return "://" in word or word.count("/") > 1 or word.startswith(("/", "~/", "./")) or word[1:3] in (":\\", ":/")


def _claims(phrase: Phrase, versions: Versions) -> Iterator[Claim]:
    text, number = phrase.text, phrase.line
    yield from versions.claims(phrase)
    rest = (*_of_python(text, number), *_of_system(text, number), *_cuda(text, number, versions), *_gpus(phrase))
    for claim in (*rest, *platform_claims(text, number)):
        yield claim._replace(how=phrase.how, weight=max(phrase.manner.weight, WORDS))


def _of_python(text: str, number: int) -> Iterator[Claim]:
    for match in _PYTHON.finditer(text):
        yield Versions.unless_more(text, match.end(), Claim("python", match[1], number))


def _of_system(text: str, number: int) -> Iterator[Claim]:
    for pattern, path in (
        (_NVCC, "cuda.toolkit"),
        (_SMI, "cuda.driver_api"),
        (_DRIVER, "cuda.driver"),
        (_NCCL, "cuda.nccl"),
        (_CUDNN, "cuda.cudnn"),
        (_CANN, "npu.cann"),
        (_ROCM, "rocm.version"),
    ):
        for match in pattern.finditer(text):
            yield Versions.unless_more(text, match.end(), version_claim(path, match[1].lower(), number))


def _cuda(text: str, number: int, versions: Versions) -> Iterator[Claim]:
    for match in _CUDA.finditer(text):
        kind, version = (match[2] or match[4] or "").lower(), match[3]
        if match[0].lower().startswith("torch.version"):
            yield Claim("cuda.runtime", version, number)
        elif kind in ("toolkit", "compiler", "sdk"):
            yield Claim("cuda.toolkit", version, number)
        elif kind == "driver" or _OF_DRIVER.search(text):
            yield Claim("cuda.driver_api", version, number)
        elif not (versions.is_of_torch(text, match.start()) or _SHOWN.search(text[: match.end()])):
            yield Claim("cuda.runtime", None, number, _WHICH.format(version))
            yield Claim("report.cuda", version, number)


def _gpus(phrase: Phrase) -> Iterator[Claim]:
    """The GPUs of a phrase; a number such as 3090 is one where its sentence speaks of GPUs."""
    found: Gpus | None = gpus_in(phrase.text, context=gpus_in(phrase.sentence) is not None)
    if found is None:
        return
    if len(found.names) > 1:
        yield Claim("gpus", None, phrase.line, f"names several GPUs: {', '.join(found.names)}")
    else:
        yield Claim("gpus", found.value(), phrase.line)


def _wheels(line: Line, given: Mapping[int, How]) -> Iterator[Claim]:
    """A wheel by its file name, which carries more than the version where its author put it there."""
    for match in _WHEEL.finditer(line.plain):
        name = distribution(match[1])
        if name is None:
            continue
        how = given.get(line.number) or _manner_of_wheel(line, match[0])
        claims = [distribution_claim(name, match[2].lower(), line.number)]
        if match[4] and "abi3" not in match[0]:
            claims.append(Claim("python", f"3.{match[4]}", line.number))
        yield from (claim._replace(how=how) for claim in claims)


def _manner_of_wheel(line: Line, wheel: str) -> How:
    """How the phrase mentions it in which the wheel stands."""
    there = line._replace(plain=line.plain.replace(wheel, _WHEELS_PLACE))
    return next((phrase.how for phrase in phrases([there], {}) if _WHEELS_PLACE in phrase.text), "stated")


def _command(line: Line, block: Block, given: Mapping[int, How]) -> Iterator[Claim]:
    """The versions that a command installs, mentioned as the words around it say."""
    how = given.get(line.number) or _manner_around(line, block)
    for word in line.plain.split():
        name, equals, version = word.strip("'\"").partition("=")
        version = version.lstrip("=").partition("=")[0]
        if equals and name == "pytorch-cuda":
            yield version_claim("cuda.runtime", version, line.number)._replace(how=how)
        elif equals and not name.endswith((">", "<", "~", "!")) and not name.startswith("-"):
            known = distribution(name.partition("[")[0])
            if known and version.count(".") > 0:
                yield distribution_claim(known, version, line.number)._replace(how=how)


def _manner_around(line: Line, block: Block) -> How:
    near = [other.plain for other in block.lines if abs(other.number - line.number) <= _AROUND and other is not line]
    hows = (manner_of(text) for text in near if text)
    return next((how for how in hows if how not in FACTUAL), "stated")
