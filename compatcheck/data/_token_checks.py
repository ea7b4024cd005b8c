"""What the tokenizer and the chat template made of the sample, judged; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compatcheck.packages.frameworks import frameworks
from compatcheck.results.data import DataProblem

_MASKED = ("loss-zero", "grad-norm-zero")
_SELF_TALK = ("self-talk",)
_MOST_NAMED = 16
_WANTS_OBJECTS = ("has no attribute 'items'", "item pairs from a mapping")
_TEMPLATE_PROBLEMS = (
    *("template-unread", "template-missing", "template-refuses", "template-of-another-family", "row-refused"),
    *("nested-template", "special-token-split", "generation-does-not-stop", "answer-not-closed", "double-bos"),
)
Rows = Sequence[Mapping[str, Any]]


def judge(
    measured: Mapping[str, object], shape: str, limit: int | None, framework: str | None = None
) -> Iterator[DataProblem]:
    """The problems of what the child measured on rows of this shape.

    ``limit`` is the length rows are cut to. A framework that writes chats by templates of its own meets no fault of
    the model's, and one that does not cut rows at their end loses no labels so: such a fault is only a note there.
    """
    known = frameworks().get(framework or "")
    for problem in _problems(measured, shape, limit):
        does = None
        if known and known.own_templates and problem.name in _TEMPLATE_PROBLEMS:
            does = "formats chats with its own templates"
        elif known and problem.name == "label-cut-off":
            does = known.long_rows
        if does:
            problem = problem._replace(level="note", seen=f"{problem.seen} ({framework} {does})", symptoms=())
        yield problem


def _problems(measured: Mapping[str, Any], shape: str, limit: int | None) -> Iterator[DataProblem]:
    rows: Rows = measured["rows"]
    yield from _template(measured, shape)
    yield from _rows(rows, limit)
    yield from _markers(measured)
    if measured.get("closing") is not None:
        yield from _ending(measured)
    if measured.get("double_bos"):
        yield _note(
            "double-bos",
            "the template writes the beginning-of-sequence token and the tokenizer adds another to rendered text",
            "tokenize rendered text with add_special_tokens=False",
        )
    yield from _padding(measured)


def _template(measured: Mapping[str, object], shape: str) -> Iterator[DataProblem]:
    if measured.get("template_file_unread"):
        yield _problem(
            "template-unread",
            f"transformers {measured['transformers']} does not read the model's chat_template.jinja",
            "install transformers>=4.51, or copy the template into tokenizer_config.json",
            symptoms=_SELF_TALK,
        )
    elif not measured["templated"]:
        seen = "the model has no chat template"
        fix = "use a template of the same model family, or the plain prompts of a base model"
        if shape in ("alpaca", "prompt-completion", "text"):
            yield _note("template-missing", f"{seen}: prompt and answer were concatenated unchanged", fix)
        elif measured.get("own_method"):
            seen, fix = (
                f"{seen}, but formats chats with its own method",
                f"build inputs with {measured['own_method']}()",
            )
            yield _note(
                "template-missing",
                seen,
                f"{fix}, as the model's own script does; the pieces below do not use this method",
            )
        else:
            yield _problem("template-missing", f"{seen}, although the data are conversations", fix, symptoms=_SELF_TALK)
    elif measured.get("refused"):
        yield _problem(
            "template-refuses", f"the chat template rejects a plain question and answer: {measured['refused']}",
            "use the model's files and a transformers release from the same date",
        )  # fmt: skip


def _rows(rows: Rows, limit: int | None) -> Iterator[DataProblem]:
    refused = [row for row in rows if row.get("error")]
    if refused:
        seen = f"the chat template rejects {_share(refused, rows)}: {refused[0]['error']}"
        fix = "correct the rows, or use a template that supports their roles"
        if any(words in refused[0]["error"] for words in _WANTS_OBJECTS):
            fix = "write the arguments of tool calls as objects, not as text, if the rows contain any; else " + fix
        yield _problem("row-refused", seen, fix, refused)
    nested = [row for row in rows if row.get("nested")]
    if nested:
        yield _problem(
            "nested-template",
            f"the template returns a nested list ({_share(nested, rows)}): scripts that slice it keep no label",
            "use [0] of the result of apply_chat_template, or tokenizer files and a script from the same date",
            nested,
            _MASKED,
        )
    unlabelled = [row for row in rows if not row.get("error") and not row["labels"]]
    if unlabelled:
        seen = f"no token of {_share(unlabelled, rows)} has a label: there is no answer in the template's output"
        yield _problem("no-label", seen, "check that the template writes the answers", unlabelled, _MASKED)
    cut = [row for row in rows if row["labels"] and not row["kept"]]
    if cut:
        seen = (
            f"{_share(cut, rows)} have no label left after the cut to {limit} tokens: the prompt "
            "alone fills that length"
        )
        yield _problem("label-cut-off", seen, "raise the length, or shorten or drop these rows", cut, _MASKED)
    special = [row for row in rows if row.get("specials")]
    if special:
        word = special[0]["specials"][0]
        seen = f"special tokens such as {word} appear as text in the answers of {_share(special, rows)}"
        yield _problem("special-token-in-answer", seen, "remove them; the template writes them", special, _SELF_TALK)
    apart = [row for row in rows if row.get("prefix") is False]
    if apart:
        seen = f"the generation prompt is not a prefix of the full text in {_share(apart, rows)}"
        yield _note(
            "prompt-not-prefix", seen, "labels that rely on the prompt are off by some tokens; check the pieces", apart
        )


def _markers(measured: Mapping[str, Any]) -> Iterator[DataProblem]:
    markers = measured.get("markers") or ()
    used = [each for each in markers if each["in_template"]]
    split = [each for each in used if each["id"] is not None and each["pieces"] != 1]
    if split:
        yield _problem(
            "special-token-split",
            (f"{_words(split)} of the template are tokens of the vocabulary, but their text is split into pieces"),
            f"build inputs with {own}(), which writes the tokens themselves"
            if (own := measured.get("own_method"))
            else "use the tokenizer files that came with the model, or list them under added_tokens",
            symptoms=_SELF_TALK,
        )
    foreign = [each for each in used if each["id"] is None]
    of_family = [each for each in markers if not each["in_template"] and each["id"] is not None]
    if foreign and of_family and len(foreign) == len(used):
        yield _problem(
            "template-of-another-family",
            f"the template writes {_words(foreign)}, which are not tokens here; the vocabulary has {_words(of_family)}",
            "use the chat template that came with this revision of the model",
            symptoms=_SELF_TALK,
        )
    elif foreign:
        seen = f"{_words(foreign)} of the template are plain text in this vocabulary"
        yield _note(
            "marker-is-text",
            seen,
            "harmless if the model was trained this way; otherwise add them as tokens and train them",
        )
    beside = [each for each in of_family if each["pieces"] != 1 and not foreign and not split]
    if beside:
        seen = f"written as text, {_words(beside)} are split into pieces"
        yield _note("marker-split-in-text", seen, "build inputs with apply_chat_template, not from rendered text")


def _ending(measured: Mapping[str, Any]) -> Iterator[DataProblem]:
    """What closes an answer must be where generation stops."""
    closing, following = measured["closing"], measured["next_turn"]
    stops, where = measured["stops"] or [measured["eos_id"]], measured["stops_in"]
    if closing:
        number, word = closing[0]
        if not any(each[0] in stops for each in closing):
            yield _problem(
                "generation-does-not-stop",
                f"answers end with {word} ({number}), but {where} stops at {', '.join(map(str, stops))}",
                f"add {number} to eos_token_id of generation_config.json",
                symptoms=_SELF_TALK,
            )
    elif following and following[0][0] in stops:
        yield _note(
            "last-answer-open",
            f"only the next turn's {following[0][1]} ends an answer, so the last answer of each row is never closed",
            f"append {measured['eos']} to the labels of the last answer, as the model's own script does",
        )
    else:
        yield _problem(
            "answer-not-closed",
            "the template does not end answers with a special token, so the model does not learn to stop",
            f"append {measured['eos'] or 'an end token'} to every answer, or use the chat model's own template",
            symptoms=_SELF_TALK,
        )


def _padding(measured: Mapping[str, Any]) -> Iterator[DataProblem]:
    pad = measured["pad_id"]
    ends = {each[0] for each in measured.get("closing") or ()} or {measured["eos_id"]}
    if pad is None:
        seen = "the tokenizer has no padding token"
        yield _note(
            "no-padding-token", seen, "set a padding token that no answer ends with before you batch several rows"
        )
    elif pad in ends:
        yield _note(
            "padding-is-end",
            "the padding token also ends answers: a collator that masks padding by its id masks every end token",
            "use another padding token, or a collator that pads labels with -100",
        )._replace(symptoms=_SELF_TALK)


def untrained(words: Sequence[str]) -> DataProblem:
    """The template's tokens whose embedding rows are near zero."""
    return _problem(
        "untrained-token",
        f"the embedding rows of {', '.join(words[:6])} are near zero: they are untrained",
        ("train embed_tokens and lm_head too, start from the chat model, or set these rows to the mean of the others"),
    )._replace(trait="zero-embedding-rows")


def _share(some: Rows, rows: Rows) -> str:
    return f"{len(some)} of {len(rows)} sampled rows"


def _words(markers: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(each["text"] for each in markers[:4])


def _problem(name: str, seen: str, fix: str, rows: Rows = (), symptoms: tuple[str, ...] = ()) -> DataProblem:
    numbers = tuple(row["number"] for row in rows[:_MOST_NAMED])
    return DataProblem(name, "problem", seen, fix, len(rows), numbers, symptoms)


def _note(name: str, seen: str, fix: str, rows: Rows = ()) -> DataProblem:
    return _problem(name, seen, fix, rows)._replace(level="note")
