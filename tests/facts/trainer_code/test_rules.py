"""The rules over a Trainer of the user's own: each on code that has the trait and on neighbours that have not."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.facts import trainer_code
from compatcheck.facts.trainer_code._reading import rules
from compatcheck.matrix._traits import READ_FROM_TRAINERS

LOSS = "def compute_loss(self, model, inputs, return_outputs=False): return model(**inputs).loss"
STEP = "def training_step(self, model, inputs): return super().training_step(model, inputs)"
LOG = "def log(self, logs): super().log(logs)"
SAVE = "def _save_checkpoint(self, model, trial, metrics=None): super()._save_checkpoint(model, trial, metrics)"
SAMPLER = "def _get_train_sampler(self): return None"
OF = {
    "compute-loss-lacks-num-items": LOSS,
    "training-step-lacks-num-items": STEP,
    "trainer-log-lacks-start-time": LOG,
    "checkpoint-saved-with-metrics": SAVE,
    "train-sampler-takes-no-dataset": SAMPLER,
}


def own(*methods: str, imports: str = "from transformers import Trainer", base: str = "Trainer") -> str:
    return f"{imports}\n\nclass Mine({base}):\n" + "".join(f"    {method}\n" for method in (*methods, "pass"))


@pytest.mark.parametrize(("trait", "method"), OF.items())
def test_an_override_for_an_older_trainer_is_found_at_its_line(trait: str, method: str) -> None:
    assert trainer_code.traits_in(own(method)) == {trait: 4}


@pytest.mark.parametrize(
    "source",
    [
        own(LOSS, imports="import transformers", base="transformers.Trainer"),
        own(LOSS, imports="import transformers as hf", base="hf.Seq2SeqTrainer"),
        own(LOSS, imports="from transformers.trainer import Trainer as HFTrainer", base="HFTrainer"),
        own(LOSS, imports="from transformers import Trainer\nclass Base(Trainer): pass", base="Base"),
        own(imports=f"from transformers import Trainer\nclass Base(Trainer):\n    {LOSS}", base="Base"),
        own(LOSS, base="Mixin, Trainer"),
    ],
)
def test_the_trainer_is_known_by_any_name(source: str) -> None:
    assert list(trainer_code.traits_in(source) or ()) == ["compute-loss-lacks-num-items"]


@pytest.mark.parametrize(
    "method",
    [
        "def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None): return 0",
        "def compute_loss(self, model, inputs, **kwargs): return model(**inputs).loss",
        "def training_step(self, model, inputs, num_items_in_batch=None): return None",
        "def training_step(self, *args): return super().training_step(*args)",
        "def log(self, logs, start_time=None): super().log(logs, start_time)",
        "def log(self, logs, *args): super().log(logs, *args)",
        "def _save_checkpoint(self, model, trial, metrics=None): super()._save_checkpoint(model, trial)",
        "def _save_checkpoint(self, model, trial): super()._save_checkpoint(model, trial)",
        "def _get_train_sampler(self, train_dataset=None): return None",
        "def evaluate(self): return None",
    ],
)
def test_one_that_takes_what_is_handed_over_is_not(method: str) -> None:
    assert trainer_code.traits_in(own(method)) == {}


@pytest.mark.parametrize(
    "methods",
    [
        (LOSS, "def training_step(self, model, inputs, items=None): return self.compute_loss(model, inputs)"),
        (STEP, "def _inner_training_loop(self, **kwargs): return None"),
        (LOG, "def _maybe_log_save_evaluate(self, *args): self.log({})"),
        (SAVE, "def _maybe_log_save_evaluate(self, *args): self._save_checkpoint(None, None)"),
        (SAMPLER, "def get_train_dataloader(self): return self._get_train_sampler()"),
    ],
)
def test_what_the_users_own_code_calls_is_let_be(methods: tuple[str, ...]) -> None:
    assert trainer_code.traits_in(own(*methods)) == {}


def test_a_step_that_goes_on_to_the_trainers_own_still_hands_over_the_number_of_items() -> None:
    step = "def training_step(self, model, inputs, items=None): return super().training_step(model, inputs, items)"
    assert trainer_code.traits_in(own(LOSS, step)) == {"compute-loss-lacks-num-items": 4}


def test_a_checkpoint_that_hands_metrics_on_under_a_condition_may_be_for_older_releases() -> None:
    for guard in ("if OLD: ", "try: "):
        body = f"{guard}super()._save_checkpoint(model, trial, metrics)"
        tail = "\n        except TypeError: pass" if guard == "try: " else ""
        method = f"def _save_checkpoint(self, model, trial, metrics=None):\n        {body}{tail}"
        assert trainer_code.traits_in(own(method)) == {}
    demanded = "def _save_checkpoint(self, model, trial, metrics): self.save_model()"
    assert trainer_code.traits_in(own(demanded)) == {"checkpoint-saved-with-metrics": 4}


@pytest.mark.parametrize(
    "source",
    [
        "",
        own(LOSS, imports="from mine import Trainer  # not of transformers"),
        own(LOSS, imports="from .transformers import Trainer"),
        own(LOSS, imports="from lightning import Trainer\nimport transformers"),
        "from transformers import Trainer\ntrainer = Trainer(model)  # no class ",
        "class Mine(Trainer):  # transformers, and broken\n  def (",
    ],
)
def test_a_file_without_a_trainer_of_its_own_has_no_traits(source: str) -> None:
    assert trainer_code.traits_in(source) is None


def test_every_rule_keeps_its_contract() -> None:
    for rule in rules():
        assert rule.__doc__ and "https://" in rule.__doc__
    assert {rule.TRAIT for rule in rules()} == set(READ_FROM_TRAINERS) == set(OF)


@pytest.mark.stack
def test_the_librarys_own_trainers_give_no_false_alarm() -> None:
    transformers = pytest.importorskip("transformers")
    for path in Path(transformers.__file__).parent.glob("*trainer*.py"):
        assert not trainer_code.traits_in(path.read_text(encoding="utf-8")), path
