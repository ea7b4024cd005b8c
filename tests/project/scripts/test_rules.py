"""The rules over scripts that train: each on code that has the trait and on neighbours that have not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from compatcheck.project import scripts
from compatcheck.project.scripts._reading import rules

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


MADE = {
    "evaluation-strategy-given": 'args = TrainingArguments("out", evaluation_strategy="steps")',
    "trainer-given-tokenizer": "trainer = Trainer(model=model, tokenizer=tokenizer)",
    "arguments-gone-in-transformers-5": 'args = TrainingArguments("out", overwrite_output_dir=True)',
}
FROM = "from transformers import Trainer, TrainingArguments\n\n"


def own(*methods: str, imports: str = "from transformers import Trainer", base: str = "Trainer") -> str:
    return f"{imports}\n\nclass Mine({base}):\n" + "".join(f"    {method}\n" for method in (*methods, "pass"))


@pytest.mark.parametrize(("trait", "method"), OF.items())
def test_an_override_for_an_older_trainer_is_found_at_its_line(trait: str, method: str) -> None:
    assert scripts.traits_in(own(method)) == {trait: 4}


@pytest.mark.parametrize(
    "source",
    [
        own(LOSS, imports="import transformers", base="transformers.Trainer"),
        own(LOSS, imports="import transformers as hf", base="hf.Seq2SeqTrainer"),
        own(LOSS, imports="from transformers.trainer import Trainer as HFTrainer", base="HFTrainer"),
        own(LOSS, imports="from transformers import Trainer\nclass Base(Trainer): pass", base="Base"),
        own(imports=f"from transformers import Trainer\nclass Base(Trainer):\n    {LOSS}", base="Base"),
    ],
)
def test_the_trainer_is_known_by_any_name(source: str) -> None:
    assert list(scripts.traits_in(source) or ()) == ["compute-loss-lacks-num-items"]


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
    assert scripts.traits_in(own(method)) == {}


@pytest.mark.parametrize(
    "methods",
    [
        (LOSS, "def training_step(self, model, inputs, items=None): return self.compute_loss(model, inputs)"),
        (STEP, "def _inner_training_loop(self, **kwargs): return None"),
        (LOG, "def _maybe_log_save_evaluate(self, *args): self.log({})"),
        (SAVE, "def _maybe_log_save_evaluate(self, *args): self._save_checkpoint(None, None)"),
        (SAMPLER, "def get_train_dataloader(self): return self._get_train_sampler()"),
        (LOG, "def train(self): self.log({})"),
        (STEP, "def _run_epoch(self, **kwargs): return None"),
    ],
)
def test_what_the_users_own_code_calls_is_let_be(methods: tuple[str, ...]) -> None:
    assert scripts.traits_in(own(*methods)) == {}


@pytest.mark.parametrize(
    "source",
    [
        own(LOSS, base="Mixin, Trainer"),
        own("@takes_more", LOSS),
        own(LOSS) + "Mine.compute_loss = newer",
        own(LOSS) + "class Newer(Mine):\n    def compute_loss(self, *args, **kwargs): return None",
        own(LOSS) + "class Mine(Trainer):\n    def compute_loss(self, *args, **kwargs): return None",
        own(LOSS, imports="from transformers import Trainer\nfrom adapters import AdapterTrainer as Trainer"),
        own("def _save_checkpoint(self, model, trial, *args): super()._save_checkpoint(model, trial, *args)"),
        f"{FROM}class TrainingArguments(TrainingArguments):\n    no_cuda = 0\nTrainingArguments(no_cuda=True)",
    ],
)
def test_what_another_class_may_put_right_is_let_be(source: str) -> None:
    assert not scripts.traits_in(source)


@pytest.mark.parametrize(
    "asked",
    [
        "NEW = version.parse(transformers.__version__) >= version.parse('4.46')",
        "from transformers.utils import is_transformers_version",
        "PARAMETERS = inspect.signature(Trainer.__init__).parameters",
    ],
)
def test_a_script_that_asks_what_is_installed_may_suit_any_release(asked: str) -> None:
    assert scripts.traits_in(f"{own(LOSS)}{asked}") is None


def test_code_that_means_harm_takes_no_time() -> None:
    for test in ("a" + "+a" * 900, "version"):
        branches = "".join(f"elif {test} == {number}:\n    pass\n" for number in range(900))
        scripts.traits_in(f"{FROM}if {test}:\n    pass\n{branches if test == 'version' else ''}")
    started = time.process_time()
    scripts.traits_in(f"{FROM}if v:\n    pass\n" + "".join(f"elif v == {n}:\n    pass\n" for n in range(400)))
    assert time.process_time() - started < 2


def test_a_step_that_goes_on_to_the_trainers_own_still_hands_over_the_number_of_items() -> None:
    step = "def training_step(self, model, inputs, items=None): return super().training_step(model, inputs, items)"
    assert scripts.traits_in(own(LOSS, step)) == {"compute-loss-lacks-num-items": 4}


def test_a_checkpoint_that_hands_metrics_on_under_a_condition_may_be_for_older_releases() -> None:
    for guard in ("if OLD: ", "try: "):
        body = f"{guard}super()._save_checkpoint(model, trial, metrics)"
        tail = "\n        except TypeError: pass" if guard == "try: " else ""
        method = f"def _save_checkpoint(self, model, trial, metrics=None):\n        {body}{tail}"
        assert scripts.traits_in(own(method)) == {}
    demanded = "def _save_checkpoint(self, model, trial, metrics): self.save_model()"
    assert scripts.traits_in(own(demanded)) == {"checkpoint-saved-with-metrics": 4}


@pytest.mark.parametrize(("trait", "line"), MADE.items())
def test_what_a_script_gives_is_found_at_its_line(trait: str, line: str) -> None:
    assert scripts.traits_in(FROM + line) == {trait: 3}
    assert scripts.traits_in(f"{FROM}if __name__ == '__main__':\n    {line}") == {trait: 4}


@pytest.mark.parametrize(
    "source",
    [
        FROM + 'args = TrainingArguments("out", eval_strategy="steps", warmup_ratio=0.1)',
        FROM + "trainer = Trainer(model=model, processing_class=tokenizer)",
        FROM + "args = TrainingArguments(**options)",
        f"{FROM}Trainer(model)\ntry:\n    {MADE['trainer-given-tokenizer']}\nexcept TypeError:\n    pass",
        "from trl import SFTTrainer, SFTConfig  # transformers\nSFTTrainer(model, SFTConfig(), tokenizer=tokenizer)",
        "import transformers\npipe = transformers.pipeline(tokenizer=tokenizer)\ntransformers.Trainer(model)",
    ],
)
def test_what_every_release_takes_or_what_is_caught_is_not(source: str) -> None:
    assert scripts.traits_in(source) == {}


def test_the_configurations_of_trl_are_training_arguments() -> None:
    source = "import transformers\nfrom trl import SFTConfig\nSFTConfig(evaluation_strategy='no', no_cuda=True)"
    assert scripts.traits_in(source) == {"evaluation-strategy-given": 3, "arguments-gone-in-transformers-5": 3}


@pytest.mark.parametrize(
    "source",
    [
        "",
        own(LOSS, imports="from mine import Trainer  # not of transformers"),
        own(LOSS, imports="from .transformers import Trainer"),
        own(LOSS, imports="from lightning import Trainer\nimport transformers"),
        "from transformers import AutoModel  # and no Trainer",
        "class Mine(Trainer):  # transformers, and broken\n  def (",
    ],
)
def test_a_file_that_does_not_train_has_no_traits(source: str) -> None:
    assert scripts.traits_in(source) is None


def test_every_rule_keeps_its_contract() -> None:
    for rule in rules().values():
        assert rule.__doc__ and "https://" in rule.__doc__ and rule.READS in ("trainers", "calls")
    assert set(rules()) == {*OF, *MADE}


@pytest.mark.stack
@pytest.mark.parametrize("library", ["peft", "deepspeed", "accelerate", "datasets"])
def test_installed_code_gives_no_false_alarm(library: str) -> None:
    package = pytest.importorskip(library)
    for path in Path(package.__file__).parent.rglob("*.py"):
        assert not scripts.traits_in(path.read_text(encoding="utf-8")), path
