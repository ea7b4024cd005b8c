"""The model's own tokenizer and chat template, run on rows of the user's data.

The probe loads the tokenizer of a model folder with transformers, offline, and writes each conversation with its chat
template, as fine-tuning does. For each row it measures: how many tokens have a label (the tokens of the answers); how
many labels are left after truncation; whether the template returns a list in a list; whether it rejects the roles;
whether the prompt is the beginning of the whole text; and which special tokens appear in answers as text. Once, it
measures what ends an answer, where generation stops, and whether the markers of the template are tokens of this
vocabulary.

`compatcheck data` passes the rows and judges them one by one. On its own, the probe fails if no row keeps a label, and
gives a watch if some rows keep no label; without rows it is skipped. Code that comes with the model runs only if the
request allows it, and network connections are refused even then.

Request: model_file (the folder), rows_file (JSON lines with `number` and `messages`), max_length, trust_remote_code.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from compatcheck.probes._criterion import Measured, Measuring, Request, Row, Stage, Tensor

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: dict[str, str] = {}
TIMEOUT: float = 180.0
PROFILE: str = "deep"
SECONDS: float = 5.0
ASKED_BY: Tuple[str, ...] = ("model_file",)
SEEDED = False

MOST_ANSWERS = 16
MOST_PIECES = 48
TEMPLATE_BYTES = 1 << 30
TEMPLATE_ERRORS = (
    *(ValueError, TypeError, KeyError, AttributeError, IndexError, AssertionError, RuntimeError),
    *(MemoryError, OverflowError),
)
LOADING_ERRORS = (OSError, ImportError, *TEMPLATE_ERRORS)
MARKER = re.compile(r"<\|[^|<>\s]{1,40}\|>|<(?:start|end)_of_turn>")
ROLE_MARKERS = (
    *("<|user|>", "<|assistant|>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>"),
    *("<|eot_id|>", "<start_of_turn>", "<end_of_turn>", "<|turn|>", "<|header_start|>"),
)
OWN_METHODS = ("build_chat_input", "build_single_message", "build_prompt")
COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
ASKED = {"role": "user", "content": "2 + 5?"}
OTHER = {"role": "assistant", "content": "0"}
ANSWERS = ({"role": "assistant", "content": "7"}, {"role": "assistant", "content": "yes"})


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each conversation; then the tokenizer, its template and one row in pieces."""
    if not (request.get("model_file") and request.get("rows_file")):
        return {"unreadable": "no model folder and no rows were given"}
    folder = str(request["model_file"])
    stage("import transformers")
    _stay_offline()
    tokenizer, why = _tokenizer(folder, bool(request.get("trust_remote_code")))
    if tokenizer is None:
        return {"unreadable": why}
    _limit_memory()
    stage("template")
    special = _special_ids(tokenizer)
    try:
        about = _about(tokenizer, special, folder)
    except TEMPLATE_ERRORS as error:
        return {"unreadable": "the tokenizer fails: %s: %s" % (type(error).__name__, _first_line(error))}
    limit = request.get("max_length")
    worst: Optional[Tuple[int, Row]] = None
    with open(str(request["rows_file"]), encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            stage("row %s" % row["number"])
            found = _Row(tokenizer, special, row, about["templated"], about.get("in_parts", False))
            found.cut(limit)
            yield found.facts
            badness = 2 * bool(found.facts.get("nested") or not found.facts["kept"]) + bool(found.facts["specials"])
            if found.ids and (worst is None or badness > worst[0]):
                worst = badness, {"number": row["number"], "pieces": found.pieces(limit)}
    return {**about, "shown": worst[1] if worst else None}


def judge(measured: Measured) -> tuple[Outcome, str]:
    """The short form; `compatcheck data` says more, and says it of rows."""
    if "unreadable" in measured:
        return "skip", str(measured["unreadable"])
    rows = measured["rows"]
    refused = [row["number"] for row in rows if row.get("error")]
    empty = [row["number"] for row in rows if not row["kept"] and not row.get("error")]
    if not rows:
        return "skip", "no rows were given"
    if refused or empty:
        seen = (
            f"{len(empty)} of {len(rows)} rows have no label left, {len(refused)} are rejected; first "
            f"{(refused or empty)[0]}"
        )
        return "fail" if len(empty) + len(refused) == len(rows) else "watch", seen
    return "pass", f"each of {len(rows)} rows has a label to learn from"


def _stay_offline() -> None:
    """No hub, no sockets, and copies of remote code in the folder that goes with this child."""
    import socket

    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_MODULES_CACHE=os.path.abspath("hf_modules"))
    os.environ.pop("TRUST_REMOTE_CODE", None)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("the data check works offline")

    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, refuse)


def _limit_memory() -> None:
    """A template is a stranger's program: where Linux tells what is taken, it gets a GiB more and no further."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as stream:
            taken = next(int(line.split()[1]) << 10 for line in stream if line.startswith("VmData:"))
    except (OSError, StopIteration):
        return
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (taken + TEMPLATE_BYTES, resource.RLIM_INFINITY))


def _tokenizer(folder: str, trusted: bool) -> Tuple[Any, str]:
    own = _json(folder, "tokenizer_config.json").get("auto_map")
    named = own.get("AutoTokenizer") if isinstance(own, dict) else own
    if named and not trusted:
        return None, "the tokenizer needs the model's own code, %s" % _code_of(named)
    try:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(folder, trust_remote_code=trusted, local_files_only=True), ""
    except LOADING_ERRORS as error:
        return None, "transformers cannot load it: %s" % _first_line(error)


def _code_of(named: Any) -> str:
    first = next((each for each in named if each), "") if isinstance(named, list) else named
    return str(first).rpartition("--")[2].partition(".")[0] + ".py"


def _json(folder: str, name: str) -> Row:
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _about(tokenizer: Any, special: Mapping[int, str], folder: str) -> Row:
    import transformers

    source = getattr(tokenizer, "chat_template", None)
    if isinstance(source, dict):
        source = source.get("default")
    own = not type(tokenizer).apply_chat_template.__module__.startswith("transformers.")
    named = os.path.isfile(os.path.join(folder, "chat_template.jinja"))
    generation, config = _json(folder, "generation_config.json"), _json(folder, "config.json")
    stops = generation.get("eos_token_id", config.get("eos_token_id"))
    about = {
        "tokenizer": type(tokenizer).__name__,
        "transformers": transformers.__version__,
        "templated": bool(source) or own,
        "template_file_unread": named and not source,
        "padding_side": getattr(tokenizer, "padding_side", None),
        "pad_id": tokenizer.pad_token_id,
        "eos": tokenizer.eos_token,
        "eos_id": tokenizer.eos_token_id,
        "stops": [each for each in (stops if isinstance(stops, list) else [stops]) if isinstance(each, int)],
        "stops_in": "generation_config.json" if "eos_token_id" in generation else "config.json",
        "own_method": next((name for name in OWN_METHODS if hasattr(tokenizer, name)), None),
    }
    endings = _endings(tokenizer, special) if about["templated"] else {}
    rendered = endings.pop("rendered", "")
    written = "" if own else "%s %s" % (COMMENT.sub("", source or ""), rendered)
    return {**about, **endings, "markers": _markers(tokenizer, written)}


def _markers(tokenizer: Any, written: str) -> List[Row]:
    """Markers of the template, and of known families in the vocabulary: ids, and how many pieces each makes."""
    vocabulary = tokenizer.get_vocab()
    named = dict.fromkeys(MARKER.findall(written))
    named.update((marker, None) for marker in ROLE_MARKERS if _id_of(tokenizer, vocabulary, marker) is not None)
    return [
        {
            "text": marker,
            "id": _id_of(tokenizer, vocabulary, marker),
            "pieces": len(tokenizer.encode(marker, add_special_tokens=False)),
            "in_template": marker in written,
        }
        for marker in named
    ]


def _id_of(tokenizer: Any, vocabulary: Mapping[str, int], text: str) -> Optional[int]:
    if text in vocabulary:
        return vocabulary[text]
    added = getattr(tokenizer, "added_tokens_encoder", {})
    if text in added:
        return int(added[text])
    return _own_tokens(tokenizer).get(text)


def _own_tokens(tokenizer: object) -> Dict[str, int]:
    """The special tokens that the ChatGLM family keeps beside what transformers knows of."""
    found = [getattr(each, "special_tokens", None) for each in (tokenizer, getattr(tokenizer, "tokenizer", None))]
    pairs = [pair for each in found if isinstance(each, dict) for pair in each.items()]
    return {text: number for text, number in pairs if isinstance(text, str) and isinstance(number, int)}


def _endings(tokenizer: Any, special: Mapping[int, str]) -> Row:
    """What follows an answer whatever it says: its closing tokens; and the first token of the turn after it."""
    in_parts = _wants_parts(tokenizer)
    one, other = ([ASKED, answer] for answer in ANSWERS)
    try:
        first, second = (_flat(_written(tokenizer, turns, in_parts=in_parts)) for turns in (one, other))
        continued = _flat(_written(tokenizer, [*one, ASKED], in_parts=in_parts))
        rendered = tokenizer.apply_chat_template(_split_content(one) if in_parts else one, tokenize=False)
    except _refusals() as error:
        return {"refused": _first_line(error)}
    shared = _common(first[::-1], second[::-1])
    closing = [each for each in first[len(first) - shared :] if each in special]
    after = [each for each in continued[_common(first, continued) :] if each in special]
    bos = tokenizer.bos_token_id
    twice = isinstance(rendered, str) and bos is not None and list(tokenizer(rendered)["input_ids"][:2]) == [bos, bos]
    return {
        "closing": [[each, _word(tokenizer, each)] for each in closing[:2]],
        "next_turn": [[each, _word(tokenizer, each)] for each in after[:1]],
        "double_bos": twice,
        "rendered": rendered if isinstance(rendered, str) else "",
        "in_parts": in_parts,
    }


def _special_ids(tokenizer: Any) -> Dict[int, str]:
    """Special tokens by their ids; tokens that are not marked special but are the markers of a chat count too."""
    found = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens))
    vocabulary = tokenizer.get_vocab()
    found.update({vocabulary[marker]: marker for marker in ROLE_MARKERS if marker in vocabulary})
    for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items():
        if getattr(token, "special", False) or MARKER.fullmatch(str(token)):
            found[int(number)] = str(token)
    found.update({number: text for text, number in _own_tokens(tokenizer).items()})
    return found


def _word(tokenizer: Any, number: int) -> str:
    try:
        return str(tokenizer.convert_ids_to_tokens(number))
    except TEMPLATE_ERRORS:
        return "<%d>" % number


def _decoded(tokenizer: Any, number: int) -> str:
    """The text of a token; part of a character has none and is shown as the vocabulary spells it."""
    try:
        text = str(tokenizer.decode([number]))
    except TEMPLATE_ERRORS:
        return _word(tokenizer, number)
    return text if text and "\ufffd" not in text else _word(tokenizer, number)


def _written(tokenizer: Any, messages: List[Row], prompt: bool = False, in_parts: bool = False) -> Any:
    turns = _split_content(messages) if in_parts else messages
    found = tokenizer.apply_chat_template(turns, tokenize=True, add_generation_prompt=prompt, return_dict=False)
    return found.tolist() if hasattr(found, "tolist") else found


def _wants_parts(tokenizer: Any) -> bool:
    """Whether a template writes contents only where they come as lists of parts, as some of models for images do."""
    written = []
    for in_parts in (False, True):
        try:
            one, other = (_flat(_written(tokenizer, [ASKED, answer], in_parts=in_parts)) for answer in ANSWERS)
            written.append(one != other)
        except _refusals():
            written.append(False)
    return written == [False, True]


def _split_content(messages: List[Row]) -> List[Row]:
    return [{**each, "content": [{"type": "text", "text": each["content"]}]} for each in messages]


def _nested(ids: Tensor) -> bool:
    return isinstance(ids, list) and bool(ids) and isinstance(ids[0], list)


def _flat(ids: Tensor) -> List[int]:
    return list(ids[0]) if _nested(ids) else list(ids)


def _common(one: List[int], other: List[int]) -> int:
    """How many ids the two begin with alike."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _refusals() -> Tuple[Any, ...]:
    try:
        from jinja2.exceptions import TemplateError
    except ImportError:
        return TEMPLATE_ERRORS
    return (TemplateError, *TEMPLATE_ERRORS)


class _Row:
    """One conversation as its tokens, with a label on those of the answers."""

    def __init__(self, tokenizer: Any, special: Mapping[int, str], row: Row, templated: bool, in_parts: bool) -> None:
        self.tokenizer = tokenizer
        self.in_parts = in_parts
        self.special = special
        self.messages = row["messages"]
        self.ids: List[int] = []
        self.labelled: List[bool] = []
        self.facts: Row = {"number": row["number"], "tokens": 0, "labels": 0, "kept": 0}
        self.facts["specials"] = self._specials()
        try:
            self._label() if templated else self._join()
        except _refusals() as error:
            self.facts["error"] = _first_line(error)
        self.facts["special_ids"] = sorted(set(self.ids) & set(special))

    def cut(self, limit: Optional[int]) -> None:
        """Count what is learned, and what of it truncation keeps; the first position is never a target."""
        learned = [at for at, label in enumerate(self.labelled) if label and at]
        self.facts["tokens"], self.facts["labels"] = len(self.ids), len(learned)
        self.facts["kept"] = sum(1 for at in learned if limit is None or at < limit)

    def _label(self) -> None:
        whole = _written(self.tokenizer, self.messages, in_parts=self.in_parts)
        if _nested(whole):
            self.facts["nested"] = True
        self.ids = _flat(whole)
        self.labelled = [False] * len(self.ids)
        answers = [at for at, message in enumerate(self.messages) if message["role"] == "assistant"]
        for at in [*answers[: MOST_ANSWERS - 1], *answers[MOST_ANSWERS - 1 :][-1:]]:
            prompt = self._begun(at, prompt=True) if at else []
            start, end = _common(prompt, self.ids), len(self.ids)
            if at == len(self.messages) - 1:
                self.facts["prefix"] = start == len(prompt)
            else:
                alone = self._begun(at + 1)
                end = _common(alone, self.ids)
                if end < len(alone) - 1:
                    start, end = self._within(at, alone) or (start, end)
            self.labelled[start:end] = [True] * max(end - start, 0)

    def _begun(self, upto: int, prompt: bool = False) -> List[int]:
        return _flat(_written(self.tokenizer, self.messages[:upto], prompt, self.in_parts))

    def _within(self, at: int, alone: List[int]) -> Optional[Tuple[int, int]]:
        """Where an answer stands that is written otherwise once turns follow it: what changes where it does."""
        turns = [*self.messages[:at], OTHER, *self.messages[at + 1 :]]
        try:
            other = _flat(_written(self.tokenizer, turns, in_parts=self.in_parts))
        except _refusals():
            return None
        start = _common(self.ids, other)
        end = max(len(self.ids) - _common(self.ids[::-1], other[::-1]), start)
        while end < len(self.ids) and self.ids[end] in self.special and self.ids[end] in alone[-2:]:
            end += 1
        return start, end

    def _join(self) -> None:
        """Without a template: the texts one after another, closed by the end-of-sequence token."""
        for message in self.messages:
            ids = list(self.tokenizer.encode(str(message["content"]), add_special_tokens=not self.ids))
            answer = message["role"] == "assistant"
            if answer and self.tokenizer.eos_token_id is not None:
                ids.append(self.tokenizer.eos_token_id)
            self.ids += ids
            self.labelled += [answer] * len(ids)

    def _specials(self) -> List[str]:
        texts = [str(m.get("content") or "") for m in self.messages if m["role"] == "assistant"]
        words = {str(word) for word in self.special.values() if len(str(word)) > 2}
        return sorted(word for word in words if any(word in text for text in texts))[:4]

    def pieces(self, limit: Optional[int]) -> List[List[object]]:
        """The tokens around the first label, each with whether it is labelled and kept."""
        first = self.labelled.index(True) if True in self.labelled else 0
        start = max(0, min(first - MOST_PIECES // 2, len(self.ids) - MOST_PIECES))
        return [
            [_decoded(self.tokenizer, self.ids[at]), self.labelled[at], limit is None or at < limit]
            for at in range(start, min(start + MOST_PIECES, len(self.ids)))
        ]


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].strip()[:300] if lines else type(error).__name__
