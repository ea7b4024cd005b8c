"""The words by which a clause says how a fact is mentioned, English or Chinese; a plea takes nothing away."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_PLEAS = re.compile(
    r"\b(?:please )?(?:(?:can|could) (?:any|some)(?:one|body) )?help(?: me)?(?: out)?(?= ?(?:[:,.!?]|please"
    r"|with this|needed|\Z))|\bneeds? (?:some |your )?help|\bhelp (?:needed|wanted|please)|\b(?:anyone"
    r"|anybody)(?: else)?\b[^,.;?]{0,30}\?+|\b(?:any (?:help|ideas?|suggestions?|workarounds?|fix|hints?|advice)"
    r"|thanks?(?: you)?)\b[^,.;?]{0,40}\??|\bhow (?:to|do i|can i|should i|do we|can we) (?:fix|solve|resolve"
    r"|get rid of)[^,.;?]{0,40}\??|\b(?:what (?:should|can) (?:i|we) do|please (?:advise|fix"
    r"|look))\b[^,.;?]{0,30}\??|\bsuccessfully (?:un)?installed\b|\binstall(?:s|ed) (?:fine|ok|successfully"
    r"|correctly)\b|安装(?:都|也)?(?:成功|正常)|装好了|\bnothing (?:else )?(?:was |has )?changed"
    r"|\bnothing changes|\bhad (?:always |been )?work(?:ed|ing)\b|\bofficial(?:ly)?\b|\bpretrained\b|\bworking (?:on"
    r"|with|dir\w*)\b|\bexpected behaviou?r\b|(?:求助|求解决?|跪求|请问|请教|求教|求指[点教]|急|官方的?|谢谢|感谢"
    r"|帮忙|麻烦|大佬们?|各位)|(?:请?问?(?:怎么|如何|怎样)(?:才能)?(?:解决|处理|办|修复?)|怎么办|有没有(?:解决"
    r"|人遇到过)[^,。?]{0,10})(?:呢|啊)?\??",
    re.I | re.A,
)
READINGS = re.compile(
    r"(?:loss|grad_?norm|lr|rate|acc|accuracy|steps?|epochs?|ppl"
    r"|perplexity)(?![a-z])[^\d,;.]{0,16}\d[\d.e-]*(?:\s?(?:to|->|→|变成|降?到)\s?\d[\d.e-]*)?"
    r"|\d{1,4}[-/]\d{1,2}[-/]\d{1,4}",
    re.I | re.A,
)
_MENTION = re.compile(
    r"\d+\.\d+(?!\d|\s?(?:%|gi?b\b|g\b|m\b|s\b|it/s))|==|(?<![a-z])(?:fp|bf|int|float|bfloat)\d{1,2}\b"
    r"|zero[\s_-]{0,2}(?:stage[\s_-]{0,2})?[0-3]|(?<![a-z])(?:q-?lora|lora|deepspeed|fsdp|ddp|sdpa|flash[-_ ]?att\w*"
    r"|eager|gradient checkpointing|packing|torch\.compile|swift|xtuner|axolotl|verl|openrlhf)(?![a-z])"
    r"|llama[-_ ]?factory|batch[\s_-]?size|\b\d+ ?(?:gpus?|cards?)\b|\d ?张?卡|单卡|多卡"
    r"|(?<![a-z\d])[avhlb]\d{2,3}s?(?![a-z])",
    re.I | re.A,
)

_FAILS_TO_WORK = re.compile(
    r"\b(?:(?:does|did|do|is|are|was|were|could|can|would|will|has|have)(?: not|n'?t)|cannot|can't|never|no longer"
    r"|not|stopp?(?:s|ed))(?: \w{1,12}){0,2} (?:work(?:s|ed|ing)?|fix(?:ed)?|help(?:ed|s)?|solved?|resolved?|succeed"
    r"|support(?:s|ed)?|compatible|fine|ok|correct(?:ly)?|converge\w*|accept(?:ed)?|load(?:ed)?|train|run|import"
    r"|start|finish|possible|usable)\b|\b(?:does|do|did|is|are|was|were)(?: not|n'?t)\W{0,2}\Z|(?:不|没有?|无法|未"
    r"|不太|不能)(?:再|够)?(?:支持|兼容|可以|能[跑用]?|正常|成功|解决|可行|行(?!数)|收敛)",
    re.I | re.A,
)
_FAILS_NOT = re.compile(
    r"\b(?:cannot|can'?t|could(?: not|n'?t)|unable to|not able to) reproduce|\bnot reproducible|\b(?:fix(?:e[sd])?"
    r"|solve[sd]?|resolve[sd]?|cure[sd]?|rid of|avoid(?:s|ed)?|eliminat\w+|prevent(?:s|ed)?)\b[^,;]{0,40}\b(?:nans?"
    r"|errors?|crash\w*|hangs?|oom|problems?|issues?|bugs?|leaks?|failures?|deadlocks?)\b|\b(?:no|without(?: any)?"
    r"|not any|free of|never)(?: \w{1,12}){0,2} (?:issues?|problems?|errors?|nans?|crash\w*|hangs?|failures?|bugs?"
    r"|oom|warnings?)\b|\b(?:does|did|do|is|are|was|were|has|have|will|would)(?: not"
    r"|n'?t)(?: \w{1,12}){0,2} (?:occur|happen|appear|fail|crash|hang|show|exist|arise|reproduce|present|there|oom"
    r"|break|affected)\b|\b(?:errors?|problems?|issues?|bugs?|nans?|crash(?:es)?|hangs?"
    r"|leaks?)(?: \w{1,10}){0,2} (?:(?:is|are|was) gone|disappear\w*|vanish\w*|went away|goes away)\b|(?:不|没有?|未"
    r"|无|不会|不再)(?:再|会|再?出现|有|发生|任何|这个|该|此|什么){0,3}(?:报错|出错|错误|问题|异常|崩溃?|卡[住死]"
    r"|nan|溢出|oom|爆显存|出现|复现|发生)|(?:错误|问题|报错|现象)(?:就|也|都)?(?:得到|被)?(?:消失|没了|不见|解决)"
    r"|(?:一点|任何|毫无|丝毫)\S{0,2}问题(?:都|也)?没有?|(?:避免|消除|规避)[^,;]{0,24}(?:问题|错误|异常)",
    re.I | re.A,
)
_WORKS = re.compile(
    r"(?<=[\w)] )(?:trains|runs|loads|starts)(?=\s?(?:[.,;]|too|again|\Z))|\b(?:works?|worked|working|(?:runs?|ran"
    r"|trains?|trained|goes|went|behaves?) (?:fine|well|through|smoothly)|fine(?![- ]?(?:tun|grain))|okay|ok"
    r"|succeed(?:s|ed)?|success(?:ful(?:ly)?)?|normal(?:ly)?|fix(?:ed|es)|solve[sd]|resolve[sd]|cure[sd]?|help(?:s"
    r"|ed)|healthy|(?:all|everything) (?:is|was) (?:well|good)|as expected|(?:is|are|was|were) good|(?:i|we) (?:can"
    r"|could)(?! ?not| only"
    r"|(?: also| still)? (?:reproduce|see|confirm))|was able|(?:loads?|imports?|trains?|runs?|starts?) again"
    r"|properly|(?:has|have|contains?|includes?|with) (?:the|a) fix|correctly)\b|(?:: ?|\b(?:is|was|ran|runs"
    r"|stays) )(?:fast|flat)\b|[✅✔√]|(?<!不)正常|就好|好了|好用|可行|就行|成功|解决了?|能跑|能用|跑通|即可"
    r"|就没(?!法)|恢复|没事|可以(?:了|跑|训练|正常)|就可以|(?<!不)(?:就|都)?可以\W{0,3}\Z",
    re.I | re.A,
)
_FAILS = re.compile(
    r"\b(?:fail(?:s|ed|ing)?|crash\w*|errors?|\w{2,40}error|exceptions?|breaks?|broken?|nans?|inf|oom|out of memory"
    r"|hangs?|hung|stuck|freez\w+|frozen|garbage|gibberish|wrong|die[sd]|raise[sd]?|throws?|segfault\w*|diverg\w+"
    r"|explod\w+|refuses?|rejects?|undefined|mismatch\w*|incompatible|unable|cannot|can't|could(?: not|n'?t)"
    r"|traceback|leak\w*|deadlock\w*|tim(?:ed|es) ?out|higher|regress\w*|stays|lost|missing|zero loss)\b|[❌✗✘]|报错"
    r"|出错|错误|失败|不行|无法|不能|崩|卡[住死在]|挂[了掉]|溢出|爆显存|[爆炸]了|就炸|异常|nan|乱码|变慢|就成了|变成"
    r"|变得|[为是]\s?0(?!\.\d*[1-9])|一直\s?0|有问题|泄[漏露]|很[高大慢]|[oO]{2}[mM]|(?<!不)不(?:下降|收敛)"
    r"|卡[^,]{0,4}不动|一动不动|没有下降",
    re.I | re.A,
)
_SLOW = re.compile(r"\bslow(?:er|s|ed)?\b|慢(?![慢速])", re.I | re.A)
_TROUBLE = re.compile(
    r"\b(?:bugs?|issues?|problems?|happens?|reproduce[sd]?|still (?:see|get|have|there|present|occurs))\b|问题"
    r"|(?<![不再])报(?!告)",
    re.I | re.A,
)
_TROUBLES = re.compile(
    r"\b(?:errors?|problems?|issues?|bugs?|crash(?:es)?|nans?|exceptions?|warnings?|hangs?|failures?)\b|报错|错误"
    r"|问题|异常",
    re.I,
)
_STILL = re.compile(
    r"\b(?:still|also|too|as well|again|stays?|persists?|remains?|either|neither|same|no (?:change|difference|effect"
    r"|luck))\b|依然|仍|还是|同样|一样|没用|没效果|无效|也(?=不行|报|是|会|出|有|卡|崩|爆)|没有?(?:变化|改善|区别)",
    re.I | re.A,
)
_ALSO = re.compile(r"\b(?:also|too|as well|again|either|neither)\b|也|同样", re.I | re.A)
_MOVES = re.compile(
    r"\b(?:upgrad\w+|updat(?:ed?|ing)|downgrad\w+|bump\w*|switch(?:ed|ing)?|mov(?:ed|ing"
    r"|e)(?= (?:[\w.-]+ ){0,3}(?:to|from|back))|revert\w*|roll(?:ed|ing)?[ -]?back|rollback|(?:go|going|went"
    r"|gone) (?:back|straight|up|down|from)|chang(?:ed?|ing)|replac\w+|migrat\w+|pinn(?:ed|ing)|forc(?:ed|ing)"
    r"|back to|put(?:ting)? (?:[\w.=-]{1,30} ){1,3}back|[\d.]{3,12} put back|set(?:ting)? it to)\b|升级?[到至为了]"
    r"|升级|降级|降[到至回为]|退回|退到|回退|回滚|换[成到回为用]|(?<![转交兑替])换(?=\s?(?:zero|[bf][fp]\d"
    r"|[A-Za-z_-]{2,20}\s?\d))|改[成为用到]|更新[到至了]?|重装|转[到用](?!换)|切[换到]",
    re.I | re.A,
)
_AFTER = re.compile(
    r"\b(?:after|until|till|since|once|when|upon|with|following)\W(?:\w+ ){0,3}?(?:upgrad\w+|updat\w+|bump\w*"
    r"|switch\w*|mov\w+|chang\w+|migrat\w+)|以后|之后|(?<=[\da-z\s到])后(?![端面续台处])",
    re.I | re.A,
)
_UP = re.compile(r"\b(?:upgrad\w+|updat\w+|bump\w*)\b|升|更新", re.I | re.A)
_DOWN = re.compile(
    r"\b(?:downgrad\w*|revert\w*|roll\w*[ -]?back|rollback|back (?:to|on))\b|(?:go|going|went|gone) back|降|退[回到]"
    r"|回退|回滚|换回",
    re.I | re.A,
)
_VERSION = r"(?:[\w.-]{2,30} )?(?:version |release )?v?\d+\.\d"
_SINCE = re.compile(
    rf"\b(?:since|starting (?:with|from|in|at)|as of)\s(?={_VERSION})(?!{_VERSION}[\w.+]*\s(?:to|->))"
    rf"|从\s?[\w. -]{2, 40}\s?(?:版本)?(?:开始|起)|\d\s?(?:版本?)?(?:开始|起)(?!来)",
    re.I | re.A,
)
_FROM_ON = re.compile(rf"\b(?:from|starting from)\s{_VERSION}[\w.]*\s(?:on|onwards?|upwards?)\b", re.I | re.A)
_UNTIL = re.compile(rf"\b(?:before|prior to|earlier than|older than)\s(?={_VERSION})", re.I | re.A)
_NOW = re.compile(
    r"\b(?:now|currently|at the moment|at present|recently|just|so (?:i|we) (?:use|used|took|installed|went))\b"
    r"|所以(?:就)?(?:用|装|换)|现在|目前|当前|如今|最近|刚",
    re.I | re.A,
)
_BEFORE = re.compile(
    r"\b(?:previously|originally|formerly|earlier|used to|in the past|once ran|before(?=\s*(?:[,.;)]|\Z|and\b"
    r"|with\b))|old(?:er)? (?:env\w*|setup|releases?|versions?))\b|之前|以前|原来|原本|原先|此前|早先|旧版|老版",
    re.I | re.A,
)
_ADVISED = re.compile(
    r"\b(?:requires?|required|need(?:s|ed)?|must (?:use|have|install|upgrade|be (?:at|on|version|compiled))|should"
    r"|recommend\w*|suggest\w*|support(?:s|ed)|advis\w+|at least (?=(?:[\w-]+ )?v?\d)|minimum|or (?:later|higher"
    r"|newer|above|lower)|and (?:later|higher|above|up|newer)|introduced|added in|removed in|deprecated|fixed in"
    r"|fix in|will be (?:fixed|supported|removed|released)|e\.g\.|for example|such as|built (?:for|against)"
    r"|built with(?= (?:the )?torch)|compiled (?:for|with|against)|expects?|expected|can use|could use|to use"
    r"|could (?:solve|fix|help|work)|might|may (?:help|fix|work)|would (?:help|fix|work)|will (?:help|fix|work)"
    r"|pull request|release notes|changelog|compatib\w*|compar\w+|vs\.?|versus|try(?! to\b)|please (?:use|try"
    r"|install|upgrade|downgrade|update|set|check|make)|instead(?! of)|workaround|no way out|no option|not an option"
    r"|(?:somebody|someone|people) (?:said|says?|suggest\w*|recommend\w*|told|claim\w*|wrote)|according to"
    r"|docs? (?:says?|states?|recommends?)|readme)\b|建议|推荐|应该|必须|需要|要求|至少|最低|最高|\d\s?及?以[上下]"
    r"|适配(?=的|版本|了?\s?(?:torch|cuda|transformers|python))|(?<![不])支持|(?<!申)请(?=用|使用|安装|升级|更换|换"
    r"|降|把|将|检查|确认)|不要|例如|比如|试试|试一下|文档(?:里|中|上)?(?:说|写|要求|推荐|建议)|有人说|网上|据说"
    r"|听说|才能|得用|对比|可以(?=用|使用|试|换|装|升|降)",
    re.I | re.A,
)
_CHECKED = re.compile(
    r"(?:检查|确认|核对|确保|\b(?:check|verify|ensure)\b)[^()]{0,40}\(v?\d+(?:\.\d+){1,3}[\w.+]*\)", re.I | re.A
)
"""A version in brackets behind what is to be checked is the one that is there."""

_IMPERATIVE = re.compile(
    r"\A\W{0,3}(?:just |then |so |maybe |simply )?(?:use|install|reinstall|set|run|make sure|ensure|check|pin"
    r"|downgrade|upgrade)\b",
    re.I | re.A,
)
_TRIED = re.compile(
    r"\b(?:tried(?! to)|trying(?! to)|attempt\w*|tested?|experiment\w*)\b|试过|尝试|试了|测试了|测过", re.I | re.A
)
_ASKED = re.compile(
    r"是否|能否|能不能|可不可以|是不是|要不要|会不会|哪个版本|什么版本|(?:吗|嘛|么)\s*[?。]?\s*\Z|\b(?:which"
    r"|what) version|\bcould (?:it|this|that|the)\b|\b(?:can'?t|cannot|could not|won'?t) (?:just |simply )?(?:go"
    r"|move|upgrade|downgrade|switch|use)\b|\bwonder\w*|\bnot sure\b|\bmaybe\b|\bperhaps\b|\bsuspect\w*|怀疑|可能是"
    r"|估计是",
    re.I | re.A,
)
_WHY = re.compile(
    r"\bwhy\b|\bhow come\b|\bwhat (?:is|causes|could)|为什么|为何|咋|怎么(?:回事|会)|什么(?:原因|情况|问题)|啥", re.I
)
_ELSEWHERE = re.compile(
    r"\b(?:colleagues?|coworkers?|(?:an)?other (?:machine|server|pc|computer|host|node|environment|env|box)"
    r"|some users|others|(?:a|the|my|our) (?:second|other|different) (?:machine|server|pc|computer|host|node"
    r"|environment|env|box)|benchmark\w*|on the other)\b|同事|另一台|另外一台|别的机器|其他机器|别人|其他人",
    re.I | re.A,
)
_MINE = re.compile(
    r"\b(?:my|our) (?:[\w.-]{1,20} ){0,3}(?:is|are)\b|\b(?:i|we)(?:'m| am|'re| are)? (?:use|using|have|run|running"
    r"|on)\b|我(?:的|用的|这边|使用的)[^,]{0,20}(?:是|为|:)|版本(?:是|为|:)",
    re.I | re.A,
)
_OPENS = re.compile(
    r"\A\W{0,3}(?:but |and |so |also |even |only |then |again )?(?:(?:with|using|under|on|in|at|when|if|once|after"
    r"|as soon as|by|for|because)\b|用|使用|在|当|如果|若|把|将|只要|单条)|(?:时候?|的话|情况下|后)\W{0,2}\Z",
    re.I | re.A,
)
_FLIPS = re.compile(r"\A\W{0,3}(?:and |but )?not (?:with|in|on|under|for|when|using|at)\b", re.I | re.A)
_TURNS = re.compile(
    r"\A\W{0,3}(?:but|however|yet|while|then|later|afterwards|after (?:a|some|that|\d)|之后|后来|随后|但|不过|可是"
    r"|然而|而)",
    re.I | re.A,
)
_STAGES = re.compile(
    r"\A\W{0,3}(?:推理|训练|保存|评估|验证|生成|加载|导出|多卡|多机|inference|training|saving|evaluat|generat"
    r"|loading|resum|multi)",
    re.I | re.A,
)
_ENDS = re.compile(r"\A\W{0,3}(?:until|till)\b", re.I | re.A)
_THEREUPON = re.compile(
    r"\A\W{0,3}(?:and |but )?(?:now|then|it|this|that|which|everything|all|the (?:error|problem|issue|loss|bug"
    r"|training|run|same|job|crash)|same|still|no|works?|fails?|nothing|然后|结果|就|现在|还是|依然|仍|一切|问题|但"
    r"|却|都|全|loss|不|没)",
    re.I | re.A,
)
_FILLER = re.compile(
    r"[A-Za-z][\w.-]{0,30}(?:[ =:@-]{1,3})v?\d[\w.+]*|\S*\d\S*|(?<![a-z])(?:and|with|plus|on|the|a|version|versions"
    r"|gpus?|cards?|lora|torch|cuda|python|deepspeed|linux|ubuntu|or)(?![a-z])|版本|显卡|和|与|用|或者?|卡|单卡|多卡",
    re.I | re.A,
)
_LETTER = re.compile(r"[^\W\d_]")
_STARTS = re.compile(r"\A\W{0,3}(?:[A-Za-z][\w-]{1,30}[ =:]{0,3})?v?\d+\.\d", re.I | re.A)


class Signs(NamedTuple):
    """What the words of one clause tell; of the words on an outcome, those that are denied count as their opposite."""

    mentions: bool
    works: bool
    fails: bool
    slow: bool
    trouble: bool
    still: bool
    also: bool
    moves: bool
    after: bool
    up: bool
    down: bool
    since: bool
    until: bool
    now: bool
    before: bool
    mine: bool
    advised: bool
    tried: bool
    asked: bool
    elsewhere: bool
    opens: bool
    flips: bool
    turns: bool
    stages: bool
    ends: bool
    thereupon: bool
    bare: bool
    starts: bool


@lru_cache(2048)
def signs(clause: str) -> Signs:
    """The signs in a clause; what it says in a plea is left out."""
    text = _PLEAS.sub(" ", clause)
    broken = _FAILS_TO_WORK.search(text) is not None
    rest = _FAILS_TO_WORK.sub(" ", text) if broken else text
    spared = _FAILS_NOT.search(rest) is not None
    outcome = _TROUBLES.sub(" ", _FAILS_NOT.sub(" ", rest)) if spared else rest
    question = "?" in text
    mine = _MINE.search(text) is not None or _CHECKED.search(text) is not None
    fails = broken or _FAILS.search(outcome) is not None
    slow = _SLOW.search(outcome) is not None
    mention = _MENTION.search(READINGS.sub(" ", text)) is not None
    return Signs(
        mentions=mention,
        works=spared or _WORKS.search(outcome) is not None,
        fails=fails or slow,
        slow=slow and not fails,
        trouble=_TROUBLE.search(outcome) is not None,
        still=_STILL.search(text) is not None,
        also=_ALSO.search(text) is not None,
        moves=_MOVES.search(text) is not None,
        after=_AFTER.search(text) is not None,
        up=_UP.search(text) is not None,
        down=_DOWN.search(text) is not None,
        since=_SINCE.search(text) is not None or _FROM_ON.search(text) is not None,
        until=_UNTIL.search(text) is not None,
        now=_NOW.search(text) is not None,
        before=_BEFORE.search(text) is not None,
        mine=mine,
        advised=not mine and (_ADVISED.search(rest) is not None or _IMPERATIVE.match(text) is not None),
        tried=_TRIED.search(text) is not None,
        asked=not _WHY.search(text) and (question or _ASKED.search(text) is not None) and not mine,
        elsewhere=_ELSEWHERE.search(text) is not None,
        opens=_OPENS.search(text) is not None,
        flips=_FLIPS.match(text) is not None,
        stages=_STAGES.match(text) is not None,
        ends=_ENDS.match(text) is not None,
        turns=_TURNS.match(text) is not None,
        thereupon=_THEREUPON.match(text) is not None,
        bare=mention and not _LETTER.search(_FILLER.sub(" ", text)),
        starts=_STARTS.match(text) is not None,
    )
