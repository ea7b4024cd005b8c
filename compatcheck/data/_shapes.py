"""The shapes conversations come in, and each as role and content messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Messages = list[dict[str, Any]]

_KEPT = ("tools", "tool_calls", "metadata", "name", "tool_call_id")
_CONVERSATIONS = ("messages", "conversations", "conversation")
_MEDIA = ("image", "images", "video", "videos", "audio", "audios")
_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "tool_call": "assistant",
    "function_response": "tool",
    "tool_response": "tool",
}
KNOWN_ROLES = ("system", "developer", "user", "assistant", "tool", "observation", "function", "ipython")
_PAIRS = (
    ("prompt", "completion"),
    ("prompt", "response"),
    ("query", "response"),
    ("question", "answer"),
    ("input", "output"),
    ("content", "summary"),
)


class Row(NamedTuple):
    """One record as a conversation; ``odd`` names what in it is no message."""

    shape: str
    messages: Messages
    odd: str | None = None


def has_media(value: object) -> bool:
    """Whether a record brings images, sound or film along, beside its texts or among them."""
    if not isinstance(value, Mapping):
        return False
    turns = next((value[key] for key in _CONVERSATIONS if isinstance(value.get(key), list)), ())
    contents = [turn.get("content") for turn in turns if isinstance(turn, Mapping)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(value.get(key) for key in _MEDIA) or any(
        isinstance(part, Mapping) and part.get("type", "text") != "text" for part in parts
    )


def recognise(value: object) -> Row | None:
    """The conversation that a record holds, or None where it has none of the known shapes."""
    if isinstance(value, list):
        return _row_of_turns("messages", value) if _has_roles(value) else None
    if not isinstance(value, Mapping):
        return None
    if "chosen" in value and "rejected" in value:
        return _preference(value)
    for key in _CONVERSATIONS:
        if isinstance(value.get(key), list):
            return _conversation(key, value)
    if "instruction" in value and ("output" in value or "response" in value):
        return _alpaca(value)
    for question, answer in _PAIRS:
        if question in value and answer in value:
            return _paired(value, question, answer)
    return Row("text", [], None) if isinstance(value.get("text"), str) else None


def _conversation(key: str, value: Mapping[str, Any]) -> Row | None:
    turns = value[key]
    if not turns or _has_roles(turns):
        row = _row_of_turns("messages" if key == "messages" else f"messages in {key}", turns)
    elif isinstance(turns[0], Mapping) and "from" in turns[0]:
        row = _row_of_turns("sharegpt", turns, "from", "value")
    elif isinstance(turns[0], Mapping) and "input" in turns[0]:
        row = Row(
            "xtuner", [message for turn in turns if isinstance(turn, Mapping) for message in _xtuner_messages(turn)]
        )
    else:
        return None
    system = value.get("system")
    if isinstance(system, str) and system and row.messages and row.messages[0]["role"] != "system":
        row = row._replace(messages=[{"role": "system", "content": system}, *row.messages])
    return row


def _xtuner_messages(turn: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    for role, key in (("system", "system"), ("user", "input"), ("assistant", "output")):
        if isinstance(turn.get(key), str) and (turn[key] or role == "assistant"):
            yield {"role": role, "content": turn[key]}


def _has_roles(turns: list[object]) -> bool:
    return bool(turns) and isinstance(turns[0], Mapping) and "role" in turns[0]


def _row_of_turns(shape: str, turns: list[Any], role_key: str = "role", content_key: str = "content") -> Row:
    messages: Messages = []
    odd = None if turns else "the list of messages is empty"
    for number, turn in enumerate(turns, 1):
        role = turn.get(role_key) if isinstance(turn, Mapping) else None
        if not isinstance(role, str):
            return Row(shape, messages, f"message {number} has no {role_key}")
        if role == "tool" and "observation" in turn and content_key not in turn:
            messages += _chatglm3_messages(turn)
            continue
        content = _text(turn.get(content_key))
        kept = {key: turn[key] for key in _KEPT if turn.get(key)}
        if isinstance(turn.get("function_call"), Mapping):
            kept["tool_calls"] = [{"type": "function", "function": turn["function_call"]}]
        if content is None and "tool_calls" not in kept:
            odd = odd or f"message {number} has no text under {content_key}"
        messages.append({"role": _ROLES.get(role.lower(), role), "content": content or "", **kept})
    return Row(shape, messages, odd)


def _chatglm3_messages(turn: Mapping[str, object]) -> Messages:
    """A call and what it returned, which ChatGLM3 writes as one message.

    https://github.com/zai-org/ChatGLM3/tree/main/finetune_demo
    """
    call = {"name": turn.get("name"), "arguments": turn.get("parameters") or {}}
    asked = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]}
    return [asked, {"role": "tool", "content": str(turn["observation"])}]


def _text(content: object) -> str | None:
    """The text of a message, also where it comes in parts beside images."""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _preference(value: Mapping[str, Any]) -> Row | None:
    chosen = value["chosen"]
    if isinstance(chosen, list):
        row = _row_of_turns("preference", chosen)
        prompt = value.get("prompt")
        before = _row_of_turns("preference", prompt).messages if isinstance(prompt, list) else []
        return row._replace(messages=[*before, *row.messages])
    if isinstance(chosen, Mapping):
        key = "messages" if isinstance(value.get("messages"), list) else "conversations"
        before = value[key] if isinstance(value.get(key), list) else []
        whole = _conversation(key, {**value, key: [*before, chosen]})
        return whole and whole._replace(shape="preference")
    prompt = _text(value.get("prompt") or value.get("instruction")) or ""
    return Row("preference", _turns(prompt, chosen))


def _alpaca(value: Mapping[str, Any]) -> Row:
    asked = _text(value["instruction"]) or ""
    more = _text(value.get("input")) or ""
    answer = value["output"] if "output" in value else value["response"]
    if isinstance(answer, list) and len(answer) > 1:
        return _alpaca({**value, "output": answer[0]})._replace(shape="preference")
    odd = None if isinstance(answer, str) else "the output is not text"
    rounds = value.get("history")
    past = [pair for pair in rounds if isinstance(pair, list) and len(pair) == 2] if isinstance(rounds, list) else []
    history = [message for question, reply in past for message in _turns(str(question), reply)]
    system = _text(value.get("system"))
    messages = [*history, *_turns("\n".join(part for part in (asked, more) if part), answer)]
    return Row("alpaca", [{"role": "system", "content": system}, *messages] if system else messages, odd)


def _paired(value: Mapping[str, Any], question: str, answer: str) -> Row:
    if isinstance(value[question], list):
        asked = _row_of_turns("prompt-completion", value[question])
        replies = value[answer] if isinstance(value[answer], list) else []
        reply = _row_of_turns("prompt-completion", replies)
        return Row("prompt-completion", [*asked.messages, *reply.messages], asked.odd or reply.odd)
    odd = None if isinstance(value[answer], str) else f"{answer} is not text"
    return Row("prompt-completion", _turns(_text(value[question]) or "", value[answer]), odd)


def _turns(question: str, answer: object) -> Messages:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": _text(answer) or ""}]
