"""The transformers Trainer over a few steps, written down through hooks of its optimizer and its model."""

from __future__ import annotations

import inspect
import tempfile
from functools import partial
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from compatcheck.probes._criterion import Module, Request, Row, Tensors
from compatcheck.probes._recording._case import Case
from compatcheck.probes._recording._models import Subject, make, padded, sequences
from compatcheck.probes._recording._record import Record, copies

STEPS = 4
MICRO_BATCH = 2
LENGTHS = (9, 24, 17, 5, 12, 21, 7, 24)
RATE = 1e-3
_SILENT = {
    "report_to": "none",
    "disable_tqdm": True,
    "save_strategy": "no",
    "remove_unused_columns": False,
    "logging_steps": 1,
    "seed": 0,
    "dataloader_num_workers": 0,
}
_PLAIN = {
    "per_device_train_batch_size": MICRO_BATCH,
    "max_steps": STEPS,
    "learning_rate": RATE,
    "lr_scheduler_type": "constant",
    "optim": "adamw_torch",
    "max_grad_norm": 0.0,
    "weight_decay": 0.0,
    "warmup_steps": 0,
    "bf16": False,
    "fp16": False,
    "gradient_checkpointing": False,
    "label_smoothing_factor": 0.0,
}
_WHOLE = {
    "gradient_accumulation_steps": 2,
    "lr_scheduler_type": "cosine",
    "max_grad_norm": 0.5,
    "weight_decay": 0.1,
    "warmup_steps": 2,
    "adam_beta2": 0.95,
}
_TAKEN = ("lr_scheduler_type", "max_grad_norm", "weight_decay", "label_smoothing_factor", "adam_beta1", "adam_beta2")


def cases(subject: Subject, request: Request) -> Iterator[Case]:
    """The Trainer on one model: the user's settings where there are some, and those under which faults show."""
    packages = ("transformers", "accelerate")
    stated = request.get("training") or {}
    own = _own(stated)
    if own:
        narrow = "bfloat16" if own.get("bf16") else "float32"
        yield Case(f"{subject.name}, Trainer with your settings", narrow, packages, partial(_run, subject, own))
    kinds: Sequence[Tuple[str, str, Row]] = (
        ("Trainer, gradient accumulation", "float32", {"gradient_accumulation_steps": 4, "max_steps": 2}),
        ("Trainer, clipping, decay and schedule", "float32", _WHOLE),
        ("Trainer, bfloat16 and checkpointing", "bfloat16", {"bf16": True, "gradient_checkpointing": True}),
        ("Trainer, label smoothing", "float32", {"label_smoothing_factor": 0.1, "max_steps": 2}),
    )
    for label, dtype, options in kinds:
        yield Case(f"{subject.name}, {label}", dtype, packages, partial(_run, subject, options))
    bare = partial(_run, subject, {"gradient_accumulation_steps": 4, "max_steps": 2}, bare=True)
    yield Case(f"{subject.name}, Trainer, model without loss arguments", "float32", packages, bare)
    yield Case(f"{subject.name}, Trainer, resumed", "float32", packages, partial(_resume, subject))
    yield Case(f"{subject.name}, saved and loaded", "float32", packages, partial(_reload, subject))


def _own(stated: Mapping[str, Any]) -> Row:
    """The user's settings as arguments of a Trainer, with batches and lengths kept small."""
    if not stated:
        return {}
    options = {key: stated[key] for key in _TAKEN if isinstance(stated.get(key), (int, float, str))}
    accumulation = stated.get("gradient_accumulation_steps")
    if isinstance(accumulation, int) and accumulation > 0:
        options["gradient_accumulation_steps"] = min(accumulation, 4)
    if stated.get("mixed_precision") in ("bf16", "fp16") or stated.get("dtype") == "bfloat16":
        options["bf16"] = True
    if stated.get("gradient_checkpointing"):
        options["gradient_checkpointing"] = True
    if stated.get("optimizer") in ("sgd", "adamw_torch", "adafactor", "adagrad"):
        options["optim"] = stated["optimizer"]
    size = stated.get("per_device_train_batch_size")
    if isinstance(size, int) and size > 0:
        options["per_device_train_batch_size"] = min(size, 4)
    return options


def _run(subject: Subject, options: Row, record: Record, shift: float, bare: bool = False) -> None:
    model = make(subject, shift=shift)
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(without_loss_arguments(model) if bare else model, options, folder, record)
        train(trainer, record)
        metrics = trainer.evaluate()
    record.number("evaluation loss", float(metrics["eval_loss"]))


def trainer_of(model: Module, options: Row, folder: str, record: Record) -> Any:
    """A Trainer whose batches come in a fixed order and are written down."""
    from transformers import Trainer, TrainingArguments

    rows = _rows(model)

    class Ordered(Trainer):  # type: ignore[misc]
        def _get_train_sampler(self, *arguments: Any, **named: Any) -> Any:
            from torch.utils.data import SequentialSampler

            return SequentialSampler(self.train_dataset)

    arguments = arguments_of(TrainingArguments, {**_PLAIN, **options, "output_dir": folder})
    return Ordered(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:3], data_collator=_collate)


def arguments_of(kind: Any, options: Row) -> Any:
    """Arguments on the CPU, without those that this release does not know."""
    known = inspect.signature(kind.__init__).parameters
    own = {key: value for key, value in {**_SILENT, **options}.items() if key in known}
    return kind(**own, **{"use_cpu" if "use_cpu" in known else "no_cuda": True})


def train(trainer: Any, record: Record, **options: Any) -> None:
    """Train, and write down what its optimizer gets and does at each step, and what is logged."""
    from transformers import TrainerCallback

    model = trainer.model
    state: Dict[str, Any] = {}

    class Listener(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, status: Any, control: Any, **given: Any) -> None:
            optimizer = given.get("optimizer") or trainer.optimizer
            optimizer = getattr(optimizer, "optimizer", optimizer)
            state["before"] = copies(model)
            state["hook"] = optimizer.register_step_pre_hook(lambda *_: _note_gradients())

        def on_step_end(self, args: Any, status: Any, control: Any, **given: Any) -> None:
            record.updates(state["before"], model)
            state["before"] = copies(model)

        def on_log(self, args: Any, status: Any, control: Any, logs: Any = None, **given: Any) -> None:
            for key, what in (("loss", "logged loss"), ("grad_norm", "logged gradient norm")):
                if key in (logs or {}):
                    record.number(what, float(logs[key]))
            if "learning_rate" in (logs or {}) and "loss" in logs:
                record.number("learning rate", float(logs["learning_rate"]))

    def _note_gradients() -> None:
        record.step += 1
        record.gradients(model)

    record.trainables(model)
    trainer.add_callback(Listener())
    trainer.train(**options)
    if "hook" in state:
        state["hook"].remove()


def _resume(subject: Subject, record: Record, shift: float) -> None:
    """The second half of a run that a checkpoint of its first half continues."""
    options = {"gradient_accumulation_steps": 2, "save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    options.update(lr_scheduler_type="linear", max_grad_norm=1.0)
    with tempfile.TemporaryDirectory() as folder:
        trainer_of(make(subject, shift=shift), options, folder, Record()).train()
        again = trainer_of(make(subject, shift=shift), options, folder, record)
        train(again, record, resume_from_checkpoint=f"{folder}/checkpoint-2")


def _reload(subject: Subject, record: Record, shift: float) -> None:
    """The logits of a model that the Trainer saved and the library loads."""
    import torch

    model = make(subject, shift=shift)
    with tempfile.TemporaryDirectory() as folder:
        trainer_of(model, {}, folder, record).save_model(folder)
        loaded = subject.model_class.from_pretrained(folder).eval()
    batch = padded(sequences(subject.vocabulary), "right")
    record.text("dtype", str(loaded.dtype))
    with torch.no_grad():
        logits = loaded.float()(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    record.tensor("logits", "", logits.masked_fill(~batch["attention_mask"].bool().unsqueeze(-1), 0.0))


def without_loss_arguments(model: Module) -> Module:
    """The model behind a forward that takes no further arguments, as the code of many models on the hub has it."""
    import torch

    class Bare(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = model
            self.config = model.config

        def forward(self, input_ids: Any = None, attention_mask: Any = None, labels: Any = None) -> Any:
            found = self.inner(input_ids=input_ids, attention_mask=attention_mask)
            logits = found.logits[:, :-1].float()
            targets = labels[:, 1:]
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
            return {"loss": loss, "logits": found.logits}

    return Bare()


def _rows(model: Module) -> List[Tensors]:
    vocabulary = int(model.config.vocab_size)
    count = STEPS * MICRO_BATCH * 4
    lengths = [LENGTHS[number % len(LENGTHS)] for number in range(count)]
    return [{"input_ids": each} for each in sequences(vocabulary, lengths, stream=2)]


def _collate(rows: Sequence[Tensors]) -> Row:
    return padded([row["input_ids"] for row in rows], "right")
