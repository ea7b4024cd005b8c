"""What stands around an article or a thread on a web page that was copied whole: menus, adverts, lists of others.

None of it is about the reporter's machine: ``for Microsoft Windows x64 下载`` is the title of something else.
"""

from __future__ import annotations

import re

from compatcheck.bug_report._html import BREAK
from compatcheck.files.lazy_patterns import LazyPattern

_LONGEST = 400
_LISTS = re.compile(
    r"\W{0,12}(?:"
    r"(?:related|similar|suggested|recommended|popular|trending|recent|latest|featured|more)"
    r" (?:articles?|posts?|topics?|questions?|reading|content|stories|projects?|videos?|downloads?)"
    r"|(?:recommended|more|just|top picks) for you|you (?:may|might) also (?:like|be interested in)"
    r"|hot network questions|more from (?:\w+ ?){1,4}|people also (?:ask|viewed|search for)|who viewed this"
    r"|advertisements?|sponsored"
    r"|(?:driver|software|free) downloads?|footer(?: navigation)?|site map"
    r"|(?:登录|登陆|注册)后(?:查看|阅读|复制).{0,8}|(?:热门|相关|最新|精选|猜你|更多|优质|为你|为您|推荐"
    r"|热点)[^\s，。,:：]{0,6}"
    r"(?:推荐|文章|阅读|内容|项目|喜欢|专栏|评论|问答|资源|博客|课程|下载|资讯)|项目优选|大家(?:都)?在看|延伸阅读"
    r"|分类专栏|文章标签|热搜|广告"
    r")[^\w:：]{0,12}\Z",
    re.I,
)
"""Headings of lists that go on to the end of the page, or to where something else plainly begins."""

_GOES_ON = re.compile(
    r"#{1,6}\s|\s{0,8}(?:`{3}|~{3})|Traceback \(most|\s{0,8}\{['\"]|\s{0,8}[-*]?\s?[\w. -]{2,40} version\s?[:=]\s?v?\d"
    r"|\s{0,8}[A-Za-z][\w.-]{1,40}==\d|\s{0,8}\S{1,40}Error: |\s{0,8}[$>%] \S",
)
_BARS = re.compile(
    r"\b(?:(?:we|this (?:site|website)|our (?:site|partners)) uses? cookies|(?:accept|reject|manage)(?: all)? cookies"
    r"|cookie (?:policy|settings|preferences|notice)|privacy (?:policy|statement|notice)"
    r"|terms (?:of|and) (?:service|use|conditions)|all rights reserved|subscribe to (?:our|the|this)"
    r"|sign up for (?:free|our)|join our newsletter"
    r"|skip to (?:main )?content|toggle (?:navigation|menu))\b|版权(?:声明|所有)|ICP备|公网安备|©\s?\d{4}"
    r"|转载请注明|扫码|关注公众号|点赞\s{0,4}收藏|立即(?:下载|注册|登录|购买)",
    re.I,
)
_MENU = re.compile(
    r"(?<![\w-])(?:home|about(?: us)?|contact(?: us)?|blog|pricing|log ?in|sign (?:in|up)|register|products|solutions"
    r"|support|careers|community|resources|downloads?|docs|documentation|search|menu|news|shop|store|forums?"
    r"|首页|登录|登陆|注册|博客|下载|关于我们|联系我们|社区|论坛|会员|商城|学习|问答|课程)(?![\w-])",
    re.I,
)
_FEWEST_OF_MENU = 4
_BETWEEN = re.compile(r"\s{2,}|[|/·•›»>\t,]|\s-\s")
_TITLE = LazyPattern(
    r"\W{0,6}(?:(?:free |official |click to )?downloads? (?!the\b|a\b|it\b)(?:[^.,;]|\.(?=\d)){0,120}"
    r"\b(?:for (?:windows|linux|mac|macos|ubuntu|android|ios|pc)|drivers?|installer|setup|free|now)\b"
    r"(?:[^.,;]|\.(?=\d)){0,40}"
    r"|[^，。,;；！？!?]{2,120}\bdownloads?(?: now| center| page| free)?"
    r"|[^，。,;；！？!?]{0,120}(?:免费|资源|官方|高速|驱动)下载[^，。,;；！？!?]{0,80}"
    r"|[^，。,;；！？!?]{4,120}下载(?:地址|链接|介绍|指南|安装包?|专区|中心|页面)?)\W{0,6}\Z",
    re.I,
    marks=(
        "download",
        "下载",
    ),
)
_TOLD = re.compile(
    r"\b(?:i|my|we|our|fails?|failed|error|cannot|can't|when|after|during|while|slow|stuck|is|are|was|to)\b"
    r"|我|从|在|无法|失败|报错|自动|手动|正在|已经|不了|之后|后|重新|没有|来自",
    re.I,
)
_FENCE = re.compile(r"\s{0,12}(?:[-*]\s)?(?:`{3,}|~{3,})")


def without_furniture(text: str) -> str:
    """The text with every line blank that belongs to the page and not to what it says; numbers of lines stay true."""
    page = _Page()
    return "\n".join(BREAK.join(map(page.kept, line.split(BREAK))) for line in text.split("\n"))


class _Page:
    """Reads lines in their order, and knows whether the next one stands in a fence or in a list of other pages."""

    def __init__(self) -> None:
        self._fenced = self._listing = False

    def kept(self, line: str) -> str:
        """The line, or nothing in place of it."""
        short = line[: _LONGEST + 1]
        if _FENCE.match(short):
            self._fenced, self._listing = not self._fenced, False
        elif self._fenced or not short.strip():
            return line
        elif _LISTS.match(short):
            self._listing = True
            return ""
        elif self._listing and _GOES_ON.match(short):
            self._listing = False
        elif self._listing or (len(short) <= _LONGEST and _is_furniture(short)):
            return ""
        return line


def _is_furniture(line: str) -> bool:
    """A notice, a menu, or the title of something to download."""
    if _BARS.search(line) or (_TITLE.match(line) and not _TOLD.search(line)):
        return True
    items = [item.strip() for item in _BETWEEN.split(line.strip(" |")) if item.strip()]
    return len(items) >= _FEWEST_OF_MENU and 2 * sum(_MENU.fullmatch(item) is not None for item in items) >= len(items)
