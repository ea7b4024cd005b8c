"""Words by which a sentence speaks of another environment than the one that failed: what worked, what was advised."""

from __future__ import annotations

import re

ADVISED = "stands among words on what was tried, advised or asked for"
"""Why a line that speaks so settles nothing."""

_NEGATED = re.compile(
    r"\b(?:(?:does|did|do|is|are|was|were|could|can|would|will)(?: ?n[o']?t|n'?t)|cannot|never|no longer|stopp?ed"
    r"|without)(?: \w{1,12})? (?:work(?:s|ing)?|fix(?:ed)?|help|solved?|resolved?|support(?:ed)?|compatible|fine|ok"
    r"|correct(?:ly)?)\b",
    re.I,
)
_ENGLISH = re.compile(
    r"\b(?:works?|worked|working(?! (?:with|on)\b)|fine(?![- ]?tun)|okay|ok|succeed(?:s|ed)?|success(?:ful(?:ly)?)?"
    r"|normal(?:ly)?|no (?:issues?|problems?|errors?)|tried|try(?! to\b)|trying (?!to\b)|tested?|downgrad\w*|upgrad\w*"
    r"|updat(?:ed?|ing) to|bump\w*|switch(?:ed|ing)? to|revert\w*|roll(?:ed|ing)? ?back|rollback|chang(?:ed?|ing) to"
    r"|fix(?:ed|es|ing)?|solv\w*|resolv\w*|workaround|support(?:s|ed)?|compatib\w*|incompatib\w*|requires?|required"
    r"|need(?:s|ed)?|must|should|would|recommend\w*|suggest\w*|since|until|before|prior|earlier|older|newer|above|below"
    r"|at least|or (?:later|higher|lower|newer|above)|and (?:later|higher|above|up)|starting (?:with|from|in)"
    r"|introduced|added in|removed in|deprecated|as of|from version|instead|rather than|vs\.?|versus|compar\w*"
    r"|previous(?:ly)?|used to|originally|colleague|another machine|other machine|e\.g\.|for example|example of|such as"
    r"|built (?:for|with|against)|compiled (?:for|with|against)|expects?|expected|can use|could use|to use|please"
    r"|pull request|release notes|changelog|will be (?:fixed|supported|removed|released)|regression"
    r"|bisect\w*|README|docs?|documentation|official)\b"
    r"|\b(?:with|of|using) v?\d[\d.]* (?:it|everything|all|training) ",
    re.I,
)
_IMPERATIVE = re.compile(
    r"\A(?:just |then |so |maybe |simply )?(?:use|install|reinstall|set|run|make sure|ensure|check|pin)\b", re.I
)
_CHINESE = re.compile(
    r"升级|升到|升至|降级|降到|降至|降低|降回|换成|换到|换回|改成|改为|改用|换用|更换|试过|尝试|试了|试试|试一下|要求|需要|支持"
    r"|以上|以下|及以上|可以|能跑|能用|能正常|可行|就行|就好|就没|即可|解决|没问题|没有问题|无问题|没事|正常|成功|之前|以前|原来|此前"
    r"|建议|推荐|应该|必须|请|适配|兼容|最低|最高|至少|不要|回退|退回|回滚|旧版|新版|老版本|高版本|低版本|更新到|更新至|重装|重新安装"
    r"|文档|官方|例如|比如|另一台|别的机器|同事|对比|从.{1,20}到"
)
_CHINESE_NEGATED = re.compile(r"(?:不|没|无法|未|不太)(?:支持|兼容|可以|能|能跑|能用|正常|成功|解决|可行)")


def hypothetical(sentence: str) -> bool:
    """Whether a sentence may speak of versions that were tried, advised or asked for, not of those that are there."""
    if "?" in sentence:
        return True
    rest = _CHINESE_NEGATED.sub(" ", _NEGATED.sub(" ", sentence))
    return bool(_ENGLISH.search(rest) or _IMPERATIVE.match(rest.strip()) or _CHINESE.search(rest))


def announces(sentence: str) -> bool:
    """Whether a sentence speaks of the lines that follow it."""
    return sentence.endswith(":") or _BELOW.search(sentence) is not None


_BELOW = re.compile(r"\b(?:below|following|these)\b|如下|下面|以下", re.I)
_HELPED = re.compile(
    r"\b(?:this|that|it|these|which|now|everything)\b.{0,40}\b(?:works?|worked|fixed|solved|resolved|helped)\b"
    r"|\bfixed it\b|\bworks (?:fine|well|for me)|解决|可以了|没问题|正常了|跑通",
    re.I,
)
_GIVEN = re.compile(
    r"\b(?:my|our|current|the)\b.{0,30}\b(?:env\w*|versions?|setup|set-up|system|list)\b|我的|环境|版本信息", re.I
)


def advises(lead: str, tail: str, small: bool) -> bool:
    """Whether the words around a fence make its content advice, or what helped in the end."""
    if small and _HELPED.search(tail):
        return True
    return bool(lead) and not _GIVEN.search(lead) and hypothetical(lead)
