"""The training in the words of a sentence, English or Chinese: ``LoRA with ZeRO-2 on 8 GPUs``, ``全参微调``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compatcheck.bug_report._claims import WEAK, Claim
from compatcheck.bug_report._mentions import Phrase, opposite, sides
from compatcheck.bug_report._names import TRAINERS
from compatcheck.files.lazy_patterns import LazyPattern
from compatcheck.packages.frameworks import frameworks

_NOT = re.compile(
    r"(?:\b(?:no|not|non|without|w/o|neither|nor|never|instead of|disabl\w+|turn(?:ed|ing)? off|remov\w+)\b[\w ]{0,16}"
    r"|n't [\w ]{0,16}|(?:不用|不开|没有?|关闭|关掉|未|无)\s?\w{0,6})\Z",
    re.I | re.A,
)
_INSTEAD = LazyPattern(
    r"(?:\b(?:instead of|rather than)\b|而不是)[\w ]{0,16}\Z",
    re.I | re.A,
    marks=(
        "instead of",
        "rather than",
        "而不是",
    ),
)
_OFF = LazyPattern(
    r"\W{1,3}(?:is |was |are )?(?:off|disabled|false)\b|(?:关闭|关掉|没开|未开)",
    re.I | re.A,
    marks=(
        "off",
        "disabled",
        "false",
        "关闭",
        "关掉",
        "没开",
        "未开",
    ),
)
_TRAINED = re.compile(
    r"(?:prompt|prefix|p)[- _]?tuning"
    r"|(?<!was )(?<!were )(?<!pre)(?<!pre-)train|fine-?tun|\bsft\b|\bdpo\b|\bgrpo\b|(?<![a-z])q?-?lora\b"
    r"|accelerate launch|zero-?[123]\b|deepspeed|fsdp|\bddp\b|target_modules|loraconfig|(?<!预)训练|微调|精调|全参"
    r"|\btensor[ _-]parallel",
    re.I | re.A,
)
_TRAINING_FACTS = (
    *("training.method", "training.dtype", "training.world_size", "training.several_ranks", "training.framework"),
)
_PART_OF_THEM = LazyPattern(
    r"\b(?:each|per node|nodes?|only|when)\b|多机|[二两三四2-9]机|每台|只用",
    re.I | re.A,
    marks=(
        "each",
        "node",
        "only",
        "when",
        "机",
        "每台",
        "只用",
    ),
)
_WITH = re.compile(
    r"(?:\A|\b(?:with|using|uses?|used|enabl\w{0,3}|turn(?:ed|ing)? on|through|via|in|under|on|and|or|plus|to"
    r"|instead of|rather than)"
    r"|[,+/&，、用开启使成到或者和是做以])\s{0,2}\Z",
    re.I | re.A,
)
_LONGEST_WITH = 14
_LARGEST_OF_ONE = 8
_ENDS = " .,;!?。、"
_DTYPES = {"bf16": "bfloat16", "bfloat16": "bfloat16", "fp16": "float16", "float16": "float16"}
_USING = re.compile(
    r"(?<!issues )(?<!issue )(?<!problems )(?<!problem )(?<!compatible )(?<!bug )(?<!error )(?<!conflicts )"
    r"(?:\b(?:with|using|uses?|used|enabl\w{0,3}|through|via)\s{1,2}|(?:使用|启用|开启|用)\s{0,2})\Z",
    re.I | re.A,
)
"""Before what is a package as well, and may be no more than named in a list or at the head of a sentence."""

_IS = r"(?: of| is| ?[:=为是])?\s{0,2}"
_WHOLE = r"(\d{1,4})(?![\d.])"
_NOT_OF_WEIGHTS = r"\b(?! (?:model|weights|checkpoint))"
_TENSOR_PARALLEL = r"(?:(?<![\w-])(?:--?)?tp|tensor[ _-]parallel(?:ism)?)(?:[ _-]size)?"
_SET = r"(?: of| is| to| was| set to|\s?(?:设[为成置]{0,2}|到|调[到成为大]{1,2}|改[成为]|[=:为是])){0,2}\s{0,2}"
_WEIGHTS = r"(?=.*(?:nf4|fp4|bnb|bitsandbytes|quanti|qlora|load_in|量化|加载))"
_MODULE = r"(?:[a-z]{1,12}_proj|embed_tokens|lm_head|query_key_value|qkv|c_attn|wte)"
_ANY_TEXT = ("",)
"""In place of words of which every match has one."""

_SEVERAL = object()
"""In place of a value: the number counts beside a contrast alone."""
_PRESENCE = object()
"""In place of a value: a sentence says no more than that the section is there."""

_ABSENCE = object()
"""In place of a value: a sentence says that it is not set."""

_STATEMENTS: tuple[tuple[str, str, object, tuple[str, ...]], ...] = (
    ("training.method", r"(?<![\w-])q-?lora(?![\w.-])", "qlora", ("lora",)),
    ("training.method", r"(?<![\w-])lora(?![\w.-])", "lora", ("lora",)),
    (
        "training.method",
        r"(?<![\w-])prompt[- _]?tuning|(?<![\w-])soft[- ]?prompts?(?!\w)",
        "prompt_tuning",
        ("prompt",),
    ),
    ("training.method", r"(?<![\w-])prefix[- _]?tuning", "prefix_tuning", ("prefix",)),
    ("training.method", r"(?<![\w-])p-tuning(?![- ]?v2)(?![\w.-])", "p_tuning", ("p-tuning",)),
    (
        "training.method",
        r"\bfull[- ](?:parameter |model )?(?:fine-?tun|sft)|全参|全量(?:参数)?(?:微调|训练)",
        "full",
        ("full", "全参", "全量"),
    ),
    (
        "training.deepspeed.zero_stage",
        r"(?<![a-z])zero[\s_-]{0,2}(?:stage[\s_-]{0,2})?([123])(?![a-z\d_.]|\s?/)",
        int,
        ("zero",),
    ),
    ("training.deepspeed.zero_stage", r"\bdeepspeed\W{1,3}stage[\s_-]{0,2}([123])(?![\d.]|\s?/)", int, ("deepspeed",)),
    (
        "training.deepspeed.zero_stage",
        r"(?<![\w.])deepspeed_stage_([123])(?:_offload)?(?!\w)",
        int,
        ("deepspeed_stage_",),
    ),
    (
        "training.deepspeed.zero_stage",
        r"(?<![a-z])(?:(?:ds|deepspeed)[_-]?)?z(?:ero)?[_-]?([123])(?:[_-]?(?:config|offload)){0,2}\.json(?!\w)",
        int,
        (".json",),
    ),
    ("training.deepspeed.zero_stage", r"(?<![a-z])ds_z([123])(?:_offload)?_config(?!\w)", int, ("_config",)),
    ("training.deepspeed.overlap_comm", r"\boverlap_comm(?!\w)", True, ("overlap_comm",)),
    (
        "training.deepspeed.offload_optimizer_device",
        r"(?<![a-z])zero[\s_-]{0,2}(?:stage[\s_-]{0,2})?[23][\s_+-]{1,3}(?:with |and )?(?:(?:cpu|optimizer)[\s_-])?"
        r"off-?load(?!.{0,40}(?:nvme|disk))",
        "cpu",
        ("zero",),
    ),
    ("training.fsdp.version", r"\bfsdp[ -]?v?([12])\b(?!\.)", int, ("fsdp",)),
    ("training.gradient_checkpointing", r"开.{0,4}梯度检查点", True, ("梯度检查点",)),
    (
        "training.quantization.bits",
        rf"\A{_WEIGHTS}(?=.*?(?<![a-z\d_])([48])[- ]?(?:bit|位)(?!\w|[- ](?:adam|optim)))",
        int,
        ("bit", "位"),
    ),
    ("training.quantization.type", r"(?<!\w)(nf4|fp4)(?!\w)", str.lower, ("nf4", "fp4")),
    (
        "training.quantization.compute_dtype",
        r"(?:\bcompute(?:[ _-]?dtype)?|计算(?:数据)?类型)\W{0,3}(?:is |为|是|用)?(bf16|bfloat16|fp16|float16)(?!\w)",
        _DTYPES.get,
        ("compute", "计算"),
    ),
    (
        "training.load_dtype",
        r"(?:没有?(?:设置?|写|传|指定|给|加)|未(?:设置?|指定)|\b(?:without|no|not set(?:ting)?|unset)(?: a| any"
        r"| the)?)\s{0,2}"
        r"torch_dtype(?!\w)",
        _ABSENCE,
        ("torch_dtype",),
    ),
    (
        "training.lora.target_modules",
        rf"\b(?:lora|target[_ ]modules)(?!\w)[^,.;\d]{{0,24}}?((?<!\w){_MODULE}(?:(?:[\s,、/+]{{1,3}}|和"
        rf"|and\s){{1,2}}{_MODULE}){{1,12}})",
        re.compile(_MODULE).findall,
        ("lora", "modules"),
    ),
    (
        "training.gradient_accumulation_steps",
        r"(?:\bgrad(?:ient)?[ _.-]accum(?:ulation)?(?:[ _]steps?)?|\baccumulation steps|梯度累[积加计](?:步数)?)"
        rf"{_IS}{_WHOLE}",
        int,
        ("accum", "梯度累"),
    ),
    (
        "training.per_device_train_batch_size",
        rf"\b(?:per[- ](?:device|gpu) (?:train )?batch[- ]?size|micro[- ]?batch(?:[- ]?size)?){_IS}{_WHOLE}",
        int,
        ("batch", "micro"),
    ),
    ("training.per_device_train_batch_size", rf"\b(?:batch[- _]?size|bs){_SET}(1)(?![\d.])", int, ("batch", "bs")),
    (
        "training.per_device_train_batch_size",
        rf"\b(?:batch[- _]?size|bs){_SET}([2-9]|[1-9]\d)(?![\d.])",
        _SEVERAL,
        ("batch", "bs"),
    ),
    ("training.use_vllm", r"\bcolocated? vllm\b|\bvllm (?:in )?colocat", True, ("colocat",)),
    *(
        ("training.framework", each, name, _ANY_TEXT)
        for name, known in frameworks().items()
        for each in known.statements
    ),
    (
        "training.framework",
        r"(?:\b(?:moved|switched|migrated|changed) to|转[到用]|换[成到]|改用)\s?swift(?![a-z0-9_./-])",
        "ms-swift",
        ("swift",),
    ),
    ("training.predict_with_generate", r"\bpredict_with_generate\b", True, ("predict_with_generate",)),
    (
        "training.world_size",
        r"(?:\A|[,，用在]|\b(?:on|with|using|across|over))\s{0,2}(\d{1,3})(?: ?[x×*] ?| )"
        r"(?:gpus?|cards|\d{2,3} ?gi?b|[avhl]\d{2,3}s?)\b",
        int,
        _ANY_TEXT,
    ),
    ("training.world_size", r"(?<![\d.])(\d{1,3}) ?(?:张|块)?(?:卡(?![住死在顿])|显卡)", int, ("卡",)),
    *(
        (
            "training.world_size",
            rf"\b(?:on|with|using|across|over)\s{{1,2}}{word} (?:\w{{1,10}} )?(?:gpus|cards)\b",
            count,
            ("gpus", "cards"),
        )
        for word, count in (("two", 2), ("four", 4), ("eight", 8))
    ),
    ("training.world_size", r"\bsingle[- ]gpu\b|\bone gpu\b|单卡", 1, ("single", "one gpu", "单卡")),
    (
        "training.several_ranks",
        r"\bmulti(?:ple)?[ -](?:\w{1,10} )?(?:gpu|card|node)s?\b|\bseveral (?:\w{1,10} )?gpus\b"
        r"|多机|多张?(?:显卡|卡|gpu)|(?<![\w-])(?:--)?multi_gpu\b",
        True,
        ("multi", "several ", "多"),
    ),
    (
        "training.several_ranks",
        rf"{_TENSOR_PARALLEL}(?: of)?[= :]{{1,3}}(?:[2-9](?![\d.])|[1-9]\d|> ?1)",
        True,
        ("tp", "parallel"),
    ),
    ("training.several_ranks", r"\btensor[ -]parallel(?:ism)?\b(?![ -]size)(?! ?[=:]? ?\d)", True, ("parallel",)),
)
_PHRASES: tuple[tuple[str, str, object, tuple[str, ...]], ...] = (
    ("training.gradient_checkpointing", r"gradient checkpointing\b", True, ("gradient checkpointing",)),
    ("training.torch_compile", r"torch\.compile\b", True, ("torch.compile",)),
    ("training.attention", r"flash[-_ ]?att(?:ention|n)[-_ ]?2(?![\d.])", "flash_attention_2", ("flash",)),
    ("training.attention", r"sdpa\b", "sdpa", ("sdpa",)),
    ("training.attention", r"flex[-_ ]?attention\b", "flex_attention", ("attention",)),
    ("training.attention", r"eager attention\b", "eager", ("eager attention",)),
    ("training.dtype", rf"(?:bf16|bfloat16){_NOT_OF_WEIGHTS}", "bfloat16", ("bf",)),
    ("training.dtype", rf"(?:fp16|float16){_NOT_OF_WEIGHTS}", "float16", ("p16", "loat16")),
    ("training.several_ranks", r"ddp\b", True, ("ddp",)),
    *(("training.framework", each, name, _ANY_TEXT) for name, known in frameworks().items() for each in known.phrases),
    ("training.deepspeed", r"deepspeed\b(?![ :=]{0,4}v?\d|[-_/.][a-z])", _PRESENCE, ("deepspeed",)),
    ("training.fsdp", r"fsdp\b(?!['/.-])", _PRESENCE, ("fsdp",)),
)
"""What is a statement only behind a word like *with* or at the beginning."""

_PATTERNS = tuple(
    (path, LazyPattern(pattern, re.I | re.A, marks=marks), value, behind)
    for rows, behind in ((_STATEMENTS, False), (_PHRASES, True))
    for path, pattern, value, marks in rows
)
_TRAINER = LazyPattern(rf"\b({TRAINERS})Trainer\b", marks=("trainer",))


def read(phrases: Iterable[Phrase]) -> Iterator[Claim]:
    """The claims of phrases of prose, in the manner in which each mentions them."""
    for phrase in phrases:
        for side in sides(phrase):
            yield from _claims(side)


def _claims(phrase: Phrase) -> Iterator[Claim]:
    """A batch size above 1 may be of all GPUs, and a number of GPUs of one node: these count little or are left."""
    text, number, how, weight = phrase.text.rstrip(_ENDS), phrase.line, phrase.how, phrase.manner.weight
    judged = how in ("failed", "worked") and phrase.manner.moves
    trained, part = judged or _TRAINED.search(phrase.sentence), _PART_OF_THEM.search(phrase.sentence)
    for path, pattern, value, behind in _PATTERNS:
        if (path in _TRAINING_FACTS and not trained) or (path == "training.world_size" and part):
            continue
        for match in pattern.finditer(text):
            start = match.start()
            if behind and not _WITH.search(text, max(start - _LONGEST_WITH, 0), start):
                continue
            others = phrase.sentence.replace(match[0], "")
            if value is _PRESENCE and not (_USING.search(text[:start]) and _TRAINED.search(others)):
                continue
            instead = _INSTEAD.search(text[:start])
            off = not instead and bool(_NOT.search(text[:start]) or _OFF.match(text, match.end()))
            said = Claim(path, None, number, how=opposite(how) if instead else how, weight=weight)
            if value is True:
                yield said._replace(value=not off)
            elif value is _PRESENCE:
                yield said._replace(value=None if off else {})
            elif value is _ABSENCE:
                yield said
            elif value is _SEVERAL:
                certain = how == "failed" and int(match[1]) <= _LARGEST_OF_ONE
                yield said._replace(value=int(match[1]), weight=weight if certain else WEAK)
            elif not off:
                yield said._replace(value=value(match[1]) if callable(value) else value)
    for match in _TRAINER.finditer(text):
        yield Claim("training.framework", "trl", number, how=how, weight=weight)
        yield Claim("training.objective", match[1].lower(), number, how=how, weight=weight)
