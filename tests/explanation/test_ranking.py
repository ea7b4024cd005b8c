"""The ranking as a whole: its probabilities, its order, its weights, and what each kind of evidence does."""

from __future__ import annotations

import random
from typing import Any

import pytest

from compatcheck import matrix
from compatcheck.environment import Environment, Location
from compatcheck.explanation.features import corpus
from compatcheck.explanation.ranking import NONE, Ranked, band_of, probabilities, rank, ranked, weighings, weights_of
from compatcheck.pipelines.diagnose import case_of_text
from compatcheck.results.cases import Case, Contrast, Sighting
from tools.fit_ranking import expected_sign

HERE = Location("report.txt", 1)
GLM, OVERLAP = "CC-2024-0001", "CC-2024-0021"


def chances(case: Case, known: matrix.Matrix) -> dict[str, float]:
    return {each.weighing.row.id: each.probability for each in rank(case, known)[1]}


def environment(**versions: str) -> Environment:
    return Environment.from_flat({f"distributions.{name}": version for name, version in versions.items()})


def case(facts: Environment, **parts: Any) -> Case:
    text = " ".join(facts.section("distributions"))
    return Case(facts, texts=(("report.txt", text),), **parts)


def test_probabilities_of_all_entries_and_none_add_up_to_one() -> None:
    found = probabilities([1.0, 2.0, -700.0], 3.0)
    none = probabilities([3.0, 1.0, 2.0, -700.0], -900.0)[0]
    assert sum(found) + none == pytest.approx(1.0) and found[1] > found[0] > found[2] >= 0.0


def test_the_order_does_not_depend_on_that_of_entries(known: matrix.Matrix) -> None:
    text = "torch 2.5.0, transformers 4.48.0, loss 0.0 and grad_norm nan with batch size 2 in bf16 on an A100"
    _, weighed = weighings(case_of_text(text, "report.txt", known), known, corpus(known))
    mixed = list(weighed)
    random.Random(7).shuffle(mixed)
    weights = weights_of(known)

    def ids(found: list[Ranked]) -> list[str]:
        return [each.weighing.row.id for each in found]

    assert ids(ranked(weighed, weights)) == ids(ranked(mixed, weights))


def test_a_symptom_raises_the_entries_that_cause_it(known: matrix.Matrix) -> None:
    facts = environment(torch="2.5.0", transformers="4.48.0")
    sighting = Sighting("eval-loss-nan", "eval_loss is nan", HERE, "words")
    assert chances(case(facts, sightings=(sighting,)), known)[GLM] > 2 * chances(case(facts), known)[GLM]


def test_a_contrast_raises_what_it_tells_apart_and_lowers_what_it_does_not(known: matrix.Matrix) -> None:
    facts = environment(torch="2.5.0", transformers="4.48.0")
    plain = chances(case(facts), known)[GLM]
    explained = Contrast("distributions.torch", "2.5.0", "2.4.1", HERE)
    elsewhere = Contrast("distributions.transformers", "4.48.0", "4.47.0", HERE)
    assert chances(case(facts, contrasts=(explained,)), known)[GLM] > plain
    assert chances(case(facts, contrasts=(elsewhere,)), known)[GLM] <= plain


def test_a_version_that_does_not_meet_the_conditions_lowers_an_entry(known: matrix.Matrix) -> None:
    bad, good = (environment(torch=version, transformers="4.48.0") for version in ("2.5.0", "2.6.0"))
    assert chances(case(bad), known)[GLM] > 2 * chances(case(good), known)[GLM]


def test_an_own_error_line_outranks_a_shared_error_class(known: matrix.Matrix) -> None:
    entries = [raw for raw in matrix.all_entries(known) if raw.get("error_patterns")]
    lines = [line for raw in entries if not (line := raw["error_patterns"][0]["example"])[0].isspace()]
    sample, first = lines[::23], 0
    for line in sample:
        found = rank(case_of_text(f"{line}\n", "log.txt", known), known)[1]
        hits = [each for each in found if each.weighing.hits]
        assert hits, line
        first += bool(found[0].weighing.hits)
    assert first >= 0.97 * len(sample)


def test_the_weights_are_few_and_say_what_their_names_do(known: matrix.Matrix) -> None:
    weights = weights_of(known)
    assert len(weights) <= 40 and NONE in weights
    assert [name for name, weight in weights.items() if weight * expected_sign(name) < 0] == []


@pytest.mark.parametrize(
    "text",
    [
        'File "/app/views.py", line 12, in get\n    book = Book.objects.get(pk=pk)\nbooks.models.Book.DoesNotExist: '
        "Book matching query does not exist.",
        "KeyError: 'price'\nThe above exception was the direct cause of this one:\npandas 2.2, df['price']",
        'ValueError: Input 0 of layer "dense" is incompatible with the layer: expected axis -1 of input shape to '
        "have value 784 but received input with shape (None, 28, 28)  (keras 3)",
        "requests.exceptions.SSLError: HTTPSConnectionPool(host='intranet', port=443): Max retries exceeded",
        "sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server failed: FATAL: password",
    ],
)
def test_tracebacks_of_other_fields_get_no_likely_explanation(known: matrix.Matrix, text: str) -> None:
    found = rank(case_of_text(text, "log.txt", known), known)[1]
    assert not found or band_of(found[0]) != "likely"
