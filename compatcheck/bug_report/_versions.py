"""The versions of distributions in a phrase; one that stands alone is of the package that was just spoken of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from compatcheck.bug_report._claims import Claim, distribution_claim
from compatcheck.bug_report._cues import READINGS
from compatcheck.bug_report._mentions import Phrase, opposite
from compatcheck.bug_report._names import distribution
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.packages.known_releases import standing
from compatcheck.packages.shipped_tables import shipped_table
from compatcheck.results.cases import FACTUAL

SAYS = (
    r"(?:['\"\]),]{0,2}\s{0,2}(?:[库包]的?)?(?:\(?(?:version|versions|ver|版本号?|release)\)?)?\s{0,2}(?:居然|竟然"
    r"|现在|目前|当前"
    r"|装的|用的){0,2}(?:is|was|为|是|=>|-{1,2}>|@|\()?"
    r"(?:\s?(?:now\s)?(?:pinned\s)?at\b|\swent to\b)?"
    r"(?:[^\d\s,.;:]{0,6}\s?\w{0,6}\s?(?-i:[\u4e00-\u9fff]){0,4}装的|最新的)?"
    r"\s{0,2}[:=-]{0,3}\s{0,2}['\"]?v?)"
)
_VERSION = (
    r"(\d{1,4}(?:\.\d{1,5}){1,3}(?:[-_.]?(?:a|b|rc|alpha|beta)\.?\d{1,3})?(?:\.?post\d{1,2})?(?:\.?dev\d{0,12})?"
    r"(?:\+(?!(?:python|torch|cuda|transformers|py\d|[a-z]{3,14}\d+\.\d+\.\d)[\w.]{0,12})[a-z0-9][a-z0-9.]{0,50})?)"
)
_AFTER = r"(?![\w]*[a-z]\d{3,}|\.\d|\d|x\d|\.(?:py|sh|log|txt|json|ya?ml|md|ipynb|pth?|bin|out|err)\b)"
_PINNED = re.compile(rf"(?<![\w./\\@:-])([A-Za-z][\w.-]{{1,60}})(?:\[[\w,]{{1,40}}\])?={{2,3}}{_VERSION}{_AFTER}", re.I)
_MORE = re.compile(
    r"\s{0,2}(?:/|,|、|~|-{1,2}>?|→|to|and|or|&|和|或|到|至|以及)\s{0,2}v?\d{1,2}\.\d{1,3}(?:\.\d|\b)"
    r"(?!\s?(?:gib?|gb?|g|m|b|%|h)\b)",
    re.I,
)
_BUILT_WITH = LazyPattern(
    r"\s{0,2}[+(（]\s{0,2}(?:with\s)?(?:cuda|cu)[ =:]{0,2}(\d{1,2})\.?(\d)(?!\d)|\s{1,2}(?:with\s)?cu(\d{2})(\d)(?!\d)",
    re.I,
    marks=("cu",),
)
_MODULE_VERSION = LazyPattern(
    r"(?:print\()?\s{0,2}([a-z_]{3,30})\.__version__\)?\s{0,4}(?:#|:|=>?|->)?\s{0,4}['\"]?v?(\d[\w.+]{1,60})['\"]?",
    re.I,
    marks=(".__version__",),
)
_BARE = r"v?(\d{1,4}(?:\.\d{1,3}){1,3}(?:\.?(?:post|dev|rc)\d{0,3})?(?:\+cu\d{2,3})?)"
_UNITS = (
    r"(?![A-Za-z0-9_]|\.\d|\s?[<>]|\s?(?:%|gi?b|[gm]b|[gms]\b|tb|h\b|hours?|epochs?|x\b|b\b|it/s|e-?\d|times"
    r"|张|块|卡|个|倍|小时|秒))"
)
_TO = (
    r"\s?(?:版本?)?\s?(?:\bto\b|-{1,2}>|→|=>|升级?[到至为]|更新[到至为]"
    r"|降级?[到至为]|退回到?|回退到?|换[成到为]|改[成为]|到|至)\s?"
)
_PAIR = LazyPattern(
    rf"(?:(\bfrom|从|由)\s{{0,2}})?(?:(?<![\w.])|(?<=[a-z])|(?<=(?-i:[\u4e00-\u9fff])))(?:versions?\s|版本\s?)?{_BARE}{_TO}"
    rf"(?:([A-Za-z][\w-]{{1,30}})\s)?(?:versions?\s|版本\s?)?{_BARE}{_UNITS}",
    re.I,
    marks=(".",),
)
_LONE = re.compile(
    r"(?:(?P<origin>\bfrom|从|\binstead of|\brather than|\bcompared (?:to|with)|而不是|比)|\b(?:to|with|on|using"
    r"|under|in|versions?|than|is"
    r"|for|at|of|until"
    r"|since|by|and|or|both|when|use|put|got|have|installed|before|after)|[到至用为成在是的回本了或和从时与,、(:/;]"
    r"|\A)[^\w<>=!~]{0,2}(?:versions?\s"
    r"|版本\s?)?"
    rf"{_BARE}{_UNITS}",
    re.I | re.A,
)
_HAVING = re.compile(
    r"(?:装了?|装的是?|(?:显示|看到)的?[^\d,;]{0,6}|用的是?|我(?:这里|这边|的|的版本)?是|\bi(?:'m| am) on"
    r"|\b(?:installed|have"
    r"|got))\s?"
    rf"(?:最新的?\s?|版本\s?|version )?{_BARE}{_UNITS}",
    re.I,
)
_LEADING = re.compile(rf"\W{{0,3}}(?:with |in |on )?{_BARE}{_UNITS}", re.I)
_PARALLEL = re.compile(rf"(?:\A|:)\W{{0,3}}(?:with |in |on )?{_BARE}{_UNITS}", re.I)
_UPWARDS = re.compile(r"\s(?:on|onwards?|upwards?|and (?:up|later|newer))\b", re.I)
_ORIGIN = re.compile(
    r"(?:(\bfrom|从|由)|\binstead of|\brather than|\bcompared (?:to|with)|\bthan(?: with| in| on)?|\bunlike(?: with"
    r"| in)?"
    r"|而不是|比)\s{0,2}(?:the |versions? )?\Z",
    re.I,
)
_OTHERS = re.compile(
    r"(?:python|(?<![a-z])py|cuda|cudnn|nccl|driver|驱动|nvcc|nvidia-smi|gcc|libc|ubuntu|debian|centos|linux|windows"
    r"|macos|kernel"
    r"|rocm|cann|capability|toolkit|node(?:js)?|sm|epochs?|速度|显存)[^\d,;]{0,16}\d[\d.]*",
    re.I,
)
_CUDA_ALONE = re.compile(r"(?:9|1\d)\.\d\Z")
_FOREIGN = re.compile(
    r"(?:\b(?:driver|cuda|cudnn|rocm|cann|gcc|glibc|kernel|ubuntu|linux|firmware)\b|驱动|固件)\D*\Z", re.I | re.A
)
_NOTHING = ("cuda", "python", "cudnn", "version", "nvcc")
_NEAR = 200
_RECENT = 12


class _Recent(NamedTuple):
    name: str
    version: str
    line: int


class _Names(NamedTuple):
    """The names of packages, those with a version behind them, and those with a range."""

    name: re.Pattern[str]
    versioned: re.Pattern[str]
    ranged: re.Pattern[str]


@lru_cache(16)
def _names(spoken: str) -> _Names:
    return _Names(
        re.compile(rf"(?<![a-z0-9_./\\@-])(?:{spoken})(?![a-z0-9_./-]*[a-z])", re.I),
        re.compile(rf"(?<![a-z0-9_./\\@:-])({spoken}|nvidia-[a-z-]{{3,20}}-cu\d\d){SAYS}{_VERSION}{_AFTER}", re.I),
        re.compile(
            rf"(?<![a-z0-9_./\\@-])({spoken})\s{{0,2}}(?:\[[\w,]{{1,40}}\])?"
            r"\s{0,2}(>=|<=|>|<|~=|!=|≥|≤)\s{0,2}v?\d",
            re.I,
        ),
    )


class Versions:
    """The reader of versions in the phrases of one block; it remembers of which packages these spoke.

    ``spoken`` are the names that its text may hold, as `spoken_in` gives them.
    """

    def __init__(self, phrases: Sequence[Phrase], spoken: str) -> None:
        self._names = _names(spoken)
        self._lines: dict[int, str] = {}
        for phrase in phrases:
            self._lines[phrase.line] = f"{self._lines.get(phrase.line, '')} {phrase.text}"
        self._recent: list[_Recent] = []
        self._judged = 0

    def claims(self, phrase: Phrase) -> Iterator[Claim]:
        """The claims of a phrase, in the manner in which it mentions them."""
        text, found = self._without_pairs(phrase)
        spans = []
        for match, claim in self._named(text, phrase.line):
            spans.append(match.span())
            changed = _ORIGIN.search(text, max(0, match.start() - 30), match.start())
            turned = changed and (not changed[1] or (phrase.manner.moves and not _UPWARDS.match(text, match.end())))
            how = opposite(phrase.how) if turned else phrase.how
            one = claim._replace(how=how, weight=phrase.manner.weight)
            found.append(self.unless_more(text, match.end(), one) if how in FACTUAL else one)
        found += self._ranged(text, phrase.line)
        self._remember(found)
        judged = phrase.how != "stated" or phrase.manner.moves
        if judged or (self._judged == phrase.line and _LEADING.match(text)) or _HAVING.search(text):
            spans += [match.span() for pattern in (READINGS, _OTHERS) for match in pattern.finditer(text)]
            lone = [*self._lone(_blanked(text, spans), phrase)]
            self._remember(lone)
            found += lone
        self._judged = phrase.line if judged and found and _PARALLEL.search(text) else self._judged
        yield from found
        if any(claim.path == "distributions.torch" for claim in found):
            yield from self._built_with(text, phrase)

    @staticmethod
    def unless_more(text: str, end: int, claim: Claim) -> Claim:
        """The claim on the version that ends there; one that another follows (``4.44 or 4.45``) decides nothing."""
        if claim.doubt is None and _MORE.match(text, end):
            return claim._replace(doubt=f"names several versions, {claim.value} and another")
        return claim

    def _remember(self, claims: list[Claim]) -> None:
        self._recent += [
            _Recent(claim.path.partition(".")[2], str(claim.value), claim.line)
            for claim in claims
            if claim.value and claim.path.startswith("distributions.")
        ]
        del self._recent[:-_RECENT]

    def _without_pairs(self, phrase: Phrase) -> tuple[str, list[Claim]]:
        """The text without ``0.17.1 to 0.19.0``, and what that claims where the one came in place of the other."""
        text, claims, spans = phrase.text, list[Claim](), list[tuple[int, int]]()
        if not (phrase.manner.moves or phrase.how in ("failed", "worked")):
            return text, claims
        for match in _PAIR.finditer(_blanked(text, [match.span() for match in READINGS.finditer(text)])):
            outcome = phrase.how in ("failed", "worked") and ("->" in match[0] or "→" in match[0] or match[1])
            if not (phrase.manner.moves or outcome):
                continue
            name = distribution(match[3] or "") or self._subject(phrase, match[2], match.start())
            if name is None:
                continue
            spans.append(match.span())
            for version, how in ((match[2], opposite(phrase.how)), (match[4], phrase.how)):
                claim = distribution_claim(name, version, phrase.line)
                claims.append(claim._replace(how=how, weight=phrase.manner.weight))
        return _blanked(text, spans), claims

    def _lone(self, text: str, phrase: Phrase) -> Iterator[Claim]:
        """The versions without a name: they are of the package before, else of the one that the line names at last."""
        for match in _LONE.finditer(text):
            name = self._subject(phrase, match[2], match.start())
            if name:
                how = opposite(phrase.how) if match["origin"] and _turns(match["origin"], phrase) else phrase.how
                claim = distribution_claim(name, match[2], phrase.line)
                yield claim._replace(how=how, weight=phrase.manner.weight)

    def _subject(self, phrase: Phrase, version: str, start: int) -> str | None:
        """The package of a version that stands without a name, None where that is not clear."""
        if not version.strip("0.") or _FOREIGN.search(phrase.text[max(0, start - _NEAR) : start]):
            return None
        before = [
            distribution(each[0]) for each in self._names.name.finditer(phrase.text, max(0, start - _NEAR), start)
        ]
        fitting = (name for name in reversed(before) if name and self._fits(name, version))
        if name := next(fitting, None):
            return name
        known = [each for each in reversed(self._recent) if _may_be(each.name, version)]
        alike = [each for each in known if _alike(each.version, version)]
        closest = [each for each in alike if each.version.split(".")[:2] == version.split(".")[:2]]
        names = [each.name for each in closest or alike]
        if names:
            return names[0] if self._is_clear(names) else None
        line = self._lines.get(phrase.line, "")
        at = max(line.find(phrase.text), 0)
        earlier = " ".join(self._lines.get(phrase.line - back, "")[-_NEAR:] for back in (3, 2, 1))
        for part, last in ((line[max(0, at - _NEAR) : at], True), (earlier, True), (line[at : at + _NEAR], False)):
            spoken = [distribution(each[0]) for each in self._names.name.finditer(part)]
            fits = [name for name in (reversed(spoken) if last else spoken) if name and self._fits(name, version)]
            if fits:
                return fits[0]
        return "torch" if "+cu" in version and _may_be("torch", version) else None

    def _fits(self, name: str, version: str) -> bool:
        """Whether a version may be of a package, as far as others of it are known."""
        known = [each.version for each in self._recent if each.name == name]
        return _may_be(name, version) and (not known or any(_alike(each, version) for each in known))

    def _is_clear(self, names: list[str]) -> bool:
        """Whether the package is the only one that fits, or was spoken of in a line of its own."""
        lines = {each.name: each.line for each in self._recent if each.name in names}
        return len({*names}) == 1 or [*lines.values()].count(lines[names[0]]) == 1

    def _named(self, text: str, number: int) -> Iterator[tuple[re.Match[str], Claim]]:
        seen: set[int] = set()
        for pattern in (self._names.versioned, _PINNED, _MODULE_VERSION):
            for match in pattern.finditer(text):
                name = distribution(match[1]) or match[1]
                if match.start() not in seen and name.lower() not in _NOTHING and not _is_of_cuda(name, match[2]):
                    seen.add(match.start())
                    yield match, distribution_claim(name, match[2], number)

    def _ranged(self, text: str, number: int) -> Iterator[Claim]:
        for match in self._names.ranged.finditer(text):
            name = distribution(match[1]) or match[1]
            yield Claim(f"distributions.{name}", None, number, "gives a range, not a version")

    def _built_with(self, text: str, phrase: Phrase) -> Iterator[Claim]:
        """The CUDA that a version of torch was built with, where it stands behind that."""
        for match in self._names.versioned.finditer(text):
            built = _BUILT_WITH.match(text, match.end()) if distribution(match[1]) == "torch" else None
            if built:
                runtime = f"{built[1] or built[3]}.{built[2] or built[4]}"
                yield Claim("cuda.runtime", runtime, phrase.line, how=phrase.how, weight=phrase.manner.weight)

    def is_of_torch(self, text: str, start: int) -> bool:
        """Whether the CUDA at this place is the one that a version of torch just before it was built with."""
        before = text[max(0, start - 90) : start + 20]
        return any(_BUILT_WITH.match(before, match.end()) for match in self._names.versioned.finditer(before))


def _may_be(name: str, version: str) -> bool:
    """Whether a package may have a release of that number."""
    return standing(name, version, shipped_table) not in ("missing", "unlisted")


def _turns(origin: str, phrase: Phrase) -> bool:
    return phrase.manner.moves or origin.lower() not in ("from", "从")


def _alike(one: str, other: str) -> bool:
    """Whether two versions may be of one package: the same major, or the next."""
    first, second = int(one.partition(".")[0]), int(other.partition(".")[0])
    return first == second or (abs(first - second) == 1 and min(first, second) > 0 and max(first, second) < 100)


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in spans:
        text = f"{text[:start]}{chr(0) * (end - start)}{text[end:]}"
    return text


def _is_of_cuda(name: str, version: str) -> bool:
    """Whether a version beside torch is that of the CUDA it was built with, as in ``PyTorch (11.7)``."""
    return name == "torch" and _CUDA_ALONE.match(version) is not None
