"""Shapes as projects publish them, faults that a look at the rows shows, and the sample."""

from __future__ import annotations

from typing import Any

import pytest

from compatcheck.data import _row_checks
from compatcheck.data._records import Record
from compatcheck.data._shapes import recognise
from compatcheck.data._survey import survey
from tests.data.conftest import chat

ASKED = {"role": "user", "content": "q"}
ANSWERED = {"role": "assistant", "content": "a"}
PLAIN = [ASKED, ANSWERED]


@pytest.mark.parametrize(
    ("record", "shape", "messages"),
    [
        ({"messages": PLAIN}, "messages", PLAIN),
        (PLAIN, "messages", PLAIN),
        ({"conversations": PLAIN}, "messages in conversations", PLAIN),
        ({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}, "sharegpt", PLAIN),
        (
            {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "system": "s"},
            "sharegpt",
            [{"role": "system", "content": "s"}, *PLAIN],
        ),
        ({"instruction": "q", "input": "", "output": "a"}, "alpaca", PLAIN),
        (
            {"instruction": "q", "input": "i", "output": "a", "history": [["q", "a"]]},
            "alpaca",
            [*PLAIN, {"role": "user", "content": "q\ni"}, ANSWERED],
        ),
        ({"instruction": "q", "input": "", "output": "a", "history": 3}, "alpaca", PLAIN),
        ({"prompt": "q", "completion": "a"}, "prompt-completion", PLAIN),
        ({"prompt": [ASKED], "completion": [ANSWERED]}, "prompt-completion", PLAIN),
        ({"query": "q", "response": "a"}, "prompt-completion", PLAIN),
        ({"content": "q", "summary": "a"}, "prompt-completion", PLAIN),
        ({"prompt": "q", "chosen": "a", "rejected": "b"}, "preference", PLAIN),
        ({"chosen": PLAIN, "rejected": PLAIN}, "preference", PLAIN),
        (
            {"conversation": [{"system": "s", "input": "q", "output": "a"}]},
            "xtuner",
            [{"role": "system", "content": "s"}, *PLAIN],
        ),
        (
            {
                "conversations": [{"from": "human", "value": "q"}],
                "chosen": {"from": "gpt", "value": "a"},
                "rejected": {},
            },
            "preference",
            PLAIN,
        ),
        ({"messages": [ASKED], "chosen": ANSWERED, "rejected": {}}, "preference", PLAIN),
        ({"instruction": "q", "input": "", "output": ["a", "b"]}, "preference", PLAIN),
        ({"text": "once"}, "text", []),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image"}]}, ANSWERED]},
            "messages",
            PLAIN,
        ),
    ],
)
def test_each_shape_becomes_the_same_messages(record: Any, shape: str, messages: list[Any]) -> None:
    row = recognise(record)
    assert row is not None and (row.shape, row.messages, row.odd) == (shape, messages, None)


@pytest.mark.parametrize("record", [{}, [], 3, None, "text", {"messages": "none"}, {"conversations": [3]}, {"a": 1}])
def test_what_has_no_known_shape_is_none(record: Any) -> None:
    assert recognise(record) is None


def test_glm_4_tools_and_observations_are_taken_over_whole() -> None:
    turns = [
        {"role": "system", "content": "", "tools": [{"type": "function", "function": {"name": "weather"}}]},
        ASKED,
        {"role": "assistant", "content": 'weather\n{"city": "Beijing"}'},
        {"role": "observation", "content": "22"},
        ANSWERED,
    ]
    row = recognise({"messages": turns})
    assert row is not None and row.messages == turns and problems(turns) == {}


def problems(*conversations: list[Any], with_tokenizer: bool = False) -> dict[str, Any]:
    found = survey([Record(number, {"messages": turns}) for number, turns in enumerate(conversations, 1)], 9)
    return {problem.name: problem for problem in _row_checks.judge(found, with_tokenizer)}


@pytest.mark.parametrize(
    ("turns", "name"),
    [
        ([ASKED], "no-answer"),
        ([*PLAIN, ASKED], "ends-without-answer"),
        ([ASKED, {"role": "assistant", "content": " "}], "empty-answer"),
        ([ANSWERED, ASKED, ANSWERED], "role-order"),
        ([ASKED, ASKED, ANSWERED], "role-order"),
        ([*PLAIN, {"role": "system", "content": "s"}, *PLAIN], "role-order"),
        ([ASKED, {"role": "observation", "content": "o"}, ANSWERED], "role-order"),
        ([ASKED, {"role": "teacher", "content": "o"}, ANSWERED], "unknown-role"),
        ([ASKED, {"role": "assistant", "content": "a<|user|>q"}], "marker-in-answer"),
        ([ASKED, {"role": "assistant"}], "no-message"),
        ([ASKED, {"content": "a"}], "no-message"),
    ],
)
def test_a_row_tells_its_fault_and_its_number(turns: list[Any], name: str) -> None:
    assert problems(PLAIN, turns)[name].rows == (2,) and name not in problems(PLAIN, PLAIN)


@pytest.mark.parametrize(
    "turns",
    [
        [{"role": "system", "content": "s"}, *PLAIN, *PLAIN],
        [ASKED, ANSWERED, ANSWERED],
        [
            ASKED,
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": "r"},
            ANSWERED,
        ],
        [ASKED, {"role": "assistant", "content": "if a <b> then |x| < 3"}],
        [
            ASKED,
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "r"},
            ANSWERED,
        ],
        [ASKED, {"role": "tool", "name": "f", "parameters": {"a": 1}, "observation": 22}, ANSWERED],
        [ASKED, {"role": "tool_call", "content": "{}"}, {"role": "tool_response", "content": "r"}, ANSWERED],
    ],
)
def test_healthy_conversations_have_no_fault(turns: list[Any]) -> None:
    assert problems(turns) == {}


def test_a_tokenizer_that_accepts_the_roles_makes_their_order_and_end_a_note() -> None:
    for name, turns in (("role-order", [ASKED, ASKED, ANSWERED]), ("ends-without-answer", [*PLAIN, ASKED])):
        assert problems(turns)[name].level == "problem"
        assert problems(turns, with_tokenizer=True)[name].level == "note"


def test_an_answer_that_is_no_text_is_not_called_empty_as_well() -> None:
    found = survey([Record(1, {"instruction": "q", "output": 3})], 9)
    assert [each.name for each in _row_checks.judge(found, False)] == ["no-message"]


@pytest.mark.parametrize(
    "record",
    [{**chat(), "images": ["a.png"]}, {"messages": [{"role": "user", "content": [{"type": "image"}]}, ANSWERED]}],
)
def test_images_are_a_note_where_tokens_are_counted(record: dict[str, Any]) -> None:
    found = survey([Record(1, record), Record(2, chat())], 9)
    assert [(each.name, each.level, each.rows) for each in _row_checks.judge(found, True)] == [("media", "note", (1,))]
    assert list(_row_checks.judge(found, False)) == []


def test_empty_and_missing_answers_carry_the_symptoms_of_masked_labels() -> None:
    assert problems([ASKED])["no-answer"].symptoms == ("loss-zero", "grad-norm-zero")


def test_copies_are_a_note_where_they_are_many() -> None:
    few = [chat(f"q{n}")["messages"] for n in range(200)]
    assert problems(*few, few[0]) == {}
    many = problems(*few, *few[:50])["duplicate"]
    assert (many.level, many.total, many.rows[0]) == ("note", 50, 201)


def test_rows_that_differ_in_their_images_or_calls_alone_are_no_copies() -> None:
    call = {"role": "assistant", "content": None}
    rows = [{**chat(), "images": [f"{n}.png"]} for n in range(9)]
    rows += [{"messages": [ASKED, {**call, "tool_calls": [{"id": str(n)}]}]} for n in range(9)]
    assert "duplicate" not in survey([Record(n, row) for n, row in enumerate(rows, 1)], 9).faults


def test_the_sample_is_spread_over_the_file_and_no_larger_than_asked() -> None:
    found = survey((Record(n, chat(f"q{n}")) for n in range(1, 10_001)), 50)
    numbers = [number for number, _ in found.sample]
    gaps = [after - before for before, after in zip(numbers, numbers[1:])]
    assert len(numbers) == 50 and numbers[0] == 1 and numbers[-1] > 9000 and max(gaps) <= 2 * min(gaps)


def test_a_small_file_is_its_own_sample() -> None:
    assert len(survey((Record(n, chat()) for n in range(7)), 50).sample) == 7


def test_several_shapes_in_one_file_are_told() -> None:
    found = survey([Record(1, chat()), Record(2, chat()), Record(3, {"instruction": "q", "output": "a"})], 9)
    assert found.shape == "messages" and found.rows == 3
    assert (
        next(_row_checks.judge(found, False)).seen
        == "the rows use several conversation formats: 2 of messages, 1 of alpaca"
    )
