"""The training in the words of a sentence, English or Chinese: ``LoRA with ZeRO-2 on 8 GPUs``, ``全参微调``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compatcheck.bug_report._blocks import Block, Line
from compatcheck.bug_report._claims import Claim
from compatcheck.bug_report._cues import ADVISED, hypothetical
from compatcheck.bug_report._names import TRAINERS
from compatcheck.packages.frameworks import frameworks

_LONGEST = 2_000
_PARTS = re.compile(r"[.。](?=\s|\Z|[\u4e00-\u9fff])|[;；!！?？]")
_NOT = re.compile(
    r"(?:\b(?:no|not|non|without|w/o|neither|nor|never|instead of|disabl\w+|turn(?:ed|ing)? off|remov\w+)\b[\w ]{0,16}"
    r"|n't [\w ]{0,16}|(?:不用|不开|没有?|关闭|关掉|未|无)\s?\w{0,6})\Z",
    re.I,
)
_OFF = re.compile(r"\W{1,3}(?:is |was |are )?(?:off|disabled|false)\b|(?:关闭|关掉|没开|未开)", re.I)
_TRAINED = re.compile(
    r"(?:prompt|prefix|p)[- _]?tuning"
    r"|(?<!was )(?<!were )(?<!pre)(?<!pre-)train|fine-?tun|\bsft\b|\bdpo\b|\bgrpo\b|(?<![a-z])q?-?lora\b"
    r"|accelerate launch|zero-?[123]\b|deepspeed|fsdp|\bddp\b|(?<!预)训练|微调|精调|全参|\btensor[ _-]parallel",
    re.I,
)
_TRAINING_FACTS = (
    *("training.method", "training.dtype", "training.world_size", "training.several_ranks", "training.framework"),
)
_PART_OF_THEM = re.compile(r"\b(?:each|per node|nodes?|only|when)\b|多机|[二两三四2-9]机|每台|只用", re.I)
_WITH = re.compile(
    r"(?:\A|\b(?:with|using|uses?|used|enabl\w{0,3}|turn(?:ed|ing)? on|through|via|in|under|on|and|plus)"
    r"|[,+/&，、用开启使])\s{0,2}\Z",
    re.I,
)
_LONGEST_WITH = 12
_USING = re.compile(
    r"(?<!issues )(?<!issue )(?<!problems )(?<!problem )(?<!compatible )(?<!bug )(?<!error )(?<!conflicts )"
    r"(?:\b(?:with|using|uses?|used|enabl\w{0,3}|through|via)\s{1,2}|(?:使用|启用|开启|用)\s{0,2})\Z",
    re.I,
)
"""Before what is a package as well, and may be no more than named in a list or at the head of a sentence."""

_IS = r"(?: of| is| ?[:=为是])?\s{0,2}"
_WHOLE = r"(\d{1,4})(?![\d.])"
_NOT_OF_WEIGHTS = r"\b(?! (?:model|weights|checkpoint))"
_TENSOR_PARALLEL = r"(?:(?<![\w-])(?:--?)?tp|tensor[ _-]parallel(?:ism)?)(?:[ _-]size)?"
_PRESENCE = object()
"""In place of a value: a sentence says no more than that the section is there."""

_STATEMENTS: tuple[tuple[str, str, object], ...] = (
    ("training.method", r"(?<![\w-])q-?lora(?![\w.-])", "qlora"),
    ("training.method", r"(?<![\w-])lora(?![\w.-])", "lora"),
    ("training.method", r"(?<![\w-])prompt[- _]?tuning|(?<![\w-])soft[- ]?prompts?(?!\w)", "prompt_tuning"),
    ("training.method", r"(?<![\w-])prefix[- _]?tuning", "prefix_tuning"),
    ("training.method", r"(?<![\w-])p-tuning(?![- ]?v2)(?![\w.-])", "p_tuning"),
    ("training.method", r"\bfull[- ](?:parameter |model )?(?:fine-?tun|sft)|全参|全量(?:参数)?(?:微调|训练)", "full"),
    ("training.deepspeed.zero_stage", r"(?<![a-z])zero[\s_-]{0,2}(?:stage[\s_-]{0,2})?([123])(?![a-z\d_.]|\s?/)", int),
    ("training.deepspeed.zero_stage", r"\bdeepspeed\W{1,3}stage[\s_-]{0,2}([123])(?![\d.]|\s?/)", int),
    ("training.deepspeed.zero_stage", r"(?<![\w.])deepspeed_stage_([123])(?:_offload)?(?!\w)", int),
    ("training.deepspeed.overlap_comm", r"\boverlap_comm(?!\w)", True),
    (
        "training.deepspeed.offload_optimizer_device",
        r"(?<![a-z])zero[\s_-]{0,2}(?:stage[\s_-]{0,2})?[23][\s_+-]{1,3}(?:with |and )?(?:(?:cpu|optimizer)[\s_-])?"
        r"off-?load(?!.{0,40}(?:nvme|disk))",
        "cpu",
    ),
    ("training.fsdp.version", r"\bfsdp[ -]?v?([12])\b(?!\.)", int),
    ("training.gradient_checkpointing", r"开.{0,4}梯度检查点", True),
    (
        "training.gradient_accumulation_steps",
        r"(?:\bgrad(?:ient)?[ _.-]accum(?:ulation)?(?:[ _]steps?)?|\baccumulation steps|梯度累[积加计](?:步数)?)"
        rf"{_IS}{_WHOLE}",
        int,
    ),
    (
        "training.per_device_train_batch_size",
        rf"\b(?:per[- ](?:device|gpu) (?:train )?batch[- ]?size|micro[- ]?batch(?:[- ]?size)?){_IS}{_WHOLE}",
        int,
    ),
    ("training.per_device_train_batch_size", rf"\b(?:batch[- _]?size|bs){_IS}(1)(?![\d.])", int),
    ("training.use_vllm", r"\bcolocated? vllm\b|\bvllm (?:in )?colocat", True),
    *(("training.framework", each, name) for name, known in frameworks().items() for each in known.statements),
    ("training.predict_with_generate", r"\bpredict_with_generate\b", True),
    (
        "training.world_size",
        r"(?:\A|[,，用在]|\b(?:on|with|using|across|over))\s{0,2}(\d{1,3})(?: ?[x×*] ?| )"
        r"(?:gpus?|cards|\d{2,3} ?gi?b|[avhl]\d{2,3}s?)\b",
        int,
    ),
    ("training.world_size", r"(?<![\d.])(\d{1,3}) ?(?:张|块)?(?:卡|显卡)", int),
    *(
        (
            "training.world_size",
            rf"\b(?:on|with|using|across|over)\s{{1,2}}{word} (?:\w{{1,10}} )?(?:gpus|cards)\b",
            count,
        )
        for word, count in (("two", 2), ("four", 4), ("eight", 8))
    ),
    ("training.world_size", r"\bsingle[- ]gpu\b|\bone gpu\b|单卡", 1),
    (
        "training.several_ranks",
        r"\bmulti(?:ple)?[ -](?:\w{1,10} )?(?:gpu|card|node)s?\b|\bseveral (?:\w{1,10} )?gpus\b"
        r"|多机|多张?(?:显卡|卡|gpu)|(?<![\w-])(?:--)?multi_gpu\b",
        True,
    ),
    ("training.several_ranks", rf"{_TENSOR_PARALLEL}(?: of)?[= :]{{1,3}}(?:[2-9](?![\d.])|[1-9]\d|> ?1)", True),
    ("training.several_ranks", r"\btensor[ -]parallel(?:ism)?\b(?![ -]size)(?! ?[=:]? ?\d)", True),
)
_PHRASES: tuple[tuple[str, str, object], ...] = (
    ("training.gradient_checkpointing", r"gradient checkpointing\b", True),
    ("training.torch_compile", r"torch\.compile\b", True),
    ("training.attention", r"flash[-_ ]?att(?:ention|n)[-_ ]?2(?![\d.])", "flash_attention_2"),
    ("training.attention", r"sdpa\b", "sdpa"),
    ("training.attention", r"flex[-_ ]?attention\b", "flex_attention"),
    ("training.attention", r"eager attention\b", "eager"),
    ("training.dtype", rf"(?:bf16|bfloat16){_NOT_OF_WEIGHTS}", "bfloat16"),
    ("training.dtype", rf"(?:fp16|float16){_NOT_OF_WEIGHTS}", "float16"),
    ("training.several_ranks", r"ddp\b", True),
    *(("training.framework", each, name) for name, known in frameworks().items() for each in known.phrases),
    ("training.deepspeed", r"deepspeed\b(?![ :=]{0,4}v?\d|[-_/.][a-z])", _PRESENCE),
    ("training.fsdp", r"fsdp\b(?!['/.-])", _PRESENCE),
)
"""What is a statement only behind a word like *with* or at the beginning."""

_PATTERNS = tuple(
    (path, re.compile(pattern, re.I), value, behind)
    for rows, behind in ((_STATEMENTS, False), (_PHRASES, True))
    for path, pattern, value in rows
)
_TRAINER = re.compile(rf"\b({TRAINERS})Trainer\b")


def read(block: Block, lines: Iterable[Line]) -> Iterator[Claim]:
    """The claims of the sentences outside of fences; one on what was tried or advised settles nothing."""
    if block.fenced:
        return
    for line in lines:
        for sentence in _PARTS.split(line.plain[:_LONGEST]):
            claims = [*_sentence(sentence, line.number)]
            doubt = ADVISED if claims and hypothetical(sentence) else None
            yield from (claim._replace(doubt=doubt) for claim in claims)


def _sentence(text: str, number: int) -> Iterator[Claim]:
    """A batch size above 1 may be of all GPUs, and a number of GPUs of one node: these are left."""
    trained, part = _TRAINED.search(text), _PART_OF_THEM.search(text)
    for path, pattern, value, behind in _PATTERNS:
        if (path in _TRAINING_FACTS and not trained) or (path == "training.world_size" and part):
            continue
        for match in pattern.finditer(text):
            start = match.start()
            if behind and not _WITH.search(text, max(start - _LONGEST_WITH, 0), start):
                continue
            if value is _PRESENCE and not (_USING.search(text[:start]) and _TRAINED.search(text.replace(match[0], ""))):
                continue
            off = bool(_NOT.search(text[:start]) or _OFF.match(text, match.end()))
            if value is True:
                yield Claim(path, not off, number)
            elif value is _PRESENCE:
                yield Claim(path, None if off else {}, number)
            elif not off:
                yield Claim(path, int(match[1]) if value is int else value, number)
    for match in _TRAINER.finditer(text):
        yield Claim("training.framework", "trl", number)
        yield Claim("training.objective", match[1].lower(), number)
