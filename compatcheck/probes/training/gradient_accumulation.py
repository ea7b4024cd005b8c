"""Gradient accumulation of the transformers Trainer.

One SGD step of a tiny random model at learning rate 1, without clipping and decay, is compared with the same step in
plain torch on the whole batch: the gradient of the mean over all tokens that are predicted. The Trainer takes it twice,
from one batch and from as many micro-batches of one sequence, whose label counts are equal or unequal.
Losses that are summed but not divided, divided twice, or averaged per micro-batch give another update.

A failure means that the relative distance of the two updates is above 4 times its bound of
64 u (1 + |p| / |update|), u = 2^-24 for float32: 64 roundings of each gradient, and the rounding of
the stored parameters, from which the updates are read. Healthy stacks give 2e-7 where the bound is
4e-5; faults give 3, 0.75 or 0.2. The control is a loop in plain torch over the same micro-batches, each
weighted by its tokens: where that misses the reference too, the Trainer is not to blame.
Known: every release before 4.46 takes the mean of the micro-batches' means, so that a token of a short answer weighs
more (huggingface/transformers#34191); the update is multiplied by the number of micro-batches for models without
`**kwargs` from 4.46.0 to 4.47.1 and for Llama itself in 4.47.0 and 4.48.0 (#34263, #35207, #35438), and divided by it
once too often from 5.2.0 to 5.5.3 (#45349).

Models: loss_kwargs is LlamaForCausalLM as it stands; no_kwargs is a wrapper whose forward takes no
`**kwargs`, as ChatGLM and other remote code; own is the user's architecture, small, in place of the two where
a config is given. ignored_kwargs takes them and does nothing with them,
whose update is multiplied too (4.46.0 to 5.23.0, where tried): that says something about the model, so
it is run only where the request names it.
Differs by design: from 4.46 on the Trainer says which models take the number of tokens (`model_accepts_loss_kwargs`);
for the others it documents the mean of means. Where the update is that, the size of the difference is reported.

Request: seed, device, config, models (default loss_kwargs and no_kwargs, or own), gradient_accumulation_steps
(default 4, at most 8).
"""

from __future__ import annotations

import inspect
import math
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from compatcheck.probes._criterion import (
    UNIT_ROUNDOFF,
    Measured,
    Measuring,
    Module,
    Request,
    Row,
    Stage,
    Tensor,
    Tensors,
    Unusable,
    judge_rows,
    verdict,
)
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._model import BUILD_ERRORS, Unbuildable, build, instance

if TYPE_CHECKING:
    from compatcheck.results.findings import Outcome

NEEDS: Dict[str, str] = {"torch": ">=1.13", "transformers": ">=4.31", "accelerate": ">=0.20"}
TIMEOUT: float = 180.0
PROFILE = "deep"
SECONDS: float = 6.0
ASKED_BY: Tuple[str, ...] = ("training.gradient_accumulation_steps",)

Make = Callable[[], Module]

VOCABULARY = 32
IGNORED = -100
MODELS = ("loss_kwargs", "no_kwargs")
ROUNDINGS = 64
MEAN_OF_MEANS = "the Trainer averages micro-batches with equal weight for models that do not accept a token count"
LLAMA = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


class Update(NamedTuple):
    """Parameters before and after one step at learning rate 1, as flat float64 vectors on the CPU."""

    before: Tensor
    after: Tensor

    @property
    def change(self) -> Tensor:
        return self.after - self.before


class Trial(NamedTuple):
    """One model and the sequences of one step; ``name`` is the model's."""

    make: Make
    name: str
    lengths: str
    samples: List[Tensors]
    device: str

    @property
    def steps(self) -> int:
        return len(self.samples)


def measure(request: Request, stage: Stage) -> Measuring:
    """A row for each update: its ratio to the exact one, and their relative distance over its bound."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    if (request.get("training") or {}).get("gradient_accumulation_steps") == 1 and not request.get("models"):
        return {"unsupported": "the training file does not accumulate gradients"}
    steps = min(max(int(request.get("gradient_accumulation_steps") or 4), 2), 8)
    seed = int(request["seed"])
    stage("models")
    try:
        models = _models(request)
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    for name in request.get("models") or (("own",) if "own" in models else MODELS):
        for lengths in ("equal", "unequal"):
            stage(f"{name} {lengths}")
            yield from _rows(Trial(models[name], name, lengths, _samples(lengths, steps, seed), device))
    return {"device": device}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The judged row furthest above its bound decides, and fails only where plain torch meets the reference."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    return judge_rows(measured["rows"])


def _rows(trial: Trial) -> Iterator[Row]:
    """The control's row, and those of the Trainer with one batch and with micro-batches."""
    batches, shares = _micro_batches(trial.samples)
    exact = _plain_update(trial, [_pad(trial.samples)], [1.0])
    row: Row = {"case": _case(trial), "dtype": "float32", "tensor": "update", "model": trial.name}
    plain = _plain_update(trial, batches, shares)
    yield {**row, "variant": "plain torch loop", "control": True, **_compare(plain, exact)}
    single, _ = _trained(trial, 1)
    yield {**row, "variant": "Trainer, one batch", **_told(_compare(single, exact), "one batch")}
    accumulated, weighs_means = _trained(trial, trial.steps)
    found = {**row, "variant": "Trainer, micro-batches", **_compare(accumulated, exact)}
    if weighs_means and verdict(found["theta"]) != "pass":
        means = _plain_update(trial, batches, [1 / trial.steps] * trial.steps)
        if verdict(_compare(accumulated, means)["theta"]) == "pass":
            found.update(by_design=MEAN_OF_MEANS, difference=found["distance"])
    yield _told(found, f"accumulating {trial.steps} micro-batches")


def _case(trial: Trial) -> str:
    model = "your architecture" if trial.name == "own" else trial.name
    return f"{model}, {trial.lengths} lengths"


def _told(row: Row, what: str) -> Row:
    """The row with its finding in words: theta is no rounding error."""
    ratio, distance, bound = (float(row[key]) for key in ("ratio", "distance", "bound"))
    says = f"{what} gives {ratio:.4g} times the exact update, relative distance {distance:.2g} (bound {bound:.1g})"
    return {**row, "says": says}


def _models(request: Request) -> Dict[str, Make]:
    """Makers of equal models by name; ``own`` only where the request has a config."""
    import torch
    from torch.nn.functional import cross_entropy
    from transformers import LlamaConfig, LlamaForCausalLM

    class NoKwargs(LlamaForCausalLM):  # type: ignore[misc]
        """Computes its own loss, as remote code does."""

        def forward(self, input_ids: Tensor = None, attention_mask: Tensor = None, labels: Tensor = None) -> Row:
            hidden = self.model(input_ids=input_ids, attention_mask=attention_mask)[0]
            logits = self.lm_head(hidden).float()
            targets = labels[:, 1:].reshape(-1)
            return {"loss": cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), targets), "logits": logits}

    class IgnoredKwargs(NoKwargs):
        def forward(
            self, input_ids: Tensor = None, attention_mask: Tensor = None, labels: Tensor = None, **kwargs: object
        ) -> Row:
            return super().forward(input_ids, attention_mask, labels)

    def maker(model_class: Any) -> Make:
        def make() -> Module:
            torch.manual_seed(int(request["seed"]))
            return model_class(LlamaConfig(**LLAMA)).float()

        return make

    classes = {"loss_kwargs": LlamaForCausalLM, "no_kwargs": NoKwargs, "ignored_kwargs": IgnoredKwargs}
    models = {name: maker(model_class) for name, model_class in classes.items()}
    if request.get("config"):
        built = build(request)
        models["own"] = lambda: instance(built, "float32")
    return models


def _samples(lengths: str, count: int, seed: int) -> List[Tensors]:
    import torch

    generator = torch.Generator().manual_seed(seed + 1)
    sizes = [12] * count if lengths == "equal" else [4 * (number + 1) for number in range(count)]
    return [{"input_ids": torch.randint(3, VOCABULARY, (size,), generator=generator)} for size in sizes]


def _pad(samples: Sequence[Tensors]) -> Row:
    """One batch padded on the right; the first token, which nothing predicts, has no label."""
    import torch

    length = max(len(sample["input_ids"]) for sample in samples)
    ids = torch.zeros(len(samples), length, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for row, sample in enumerate(samples):
        size = len(sample["input_ids"])
        ids[row, :size], mask[row, :size] = sample["input_ids"], 1
        labels[row, 1:size] = sample["input_ids"][1:]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def _micro_batches(samples: Sequence[Tensors]) -> Tuple[List[Row], List[float]]:
    """A batch for each sequence, and the share of the labels that each has."""
    batches = [_pad([sample]) for sample in samples]
    counts = [int((batch["labels"] != IGNORED).sum()) for batch in batches]
    return batches, [count / sum(counts) for count in counts]


def _trained(trial: Trial, steps: int) -> Tuple[Update, bool]:
    """The Trainer's update, and whether it documents the mean of means for such a model.

    Raises Unusable where the Trainer cannot be built or does not train.
    """
    import torch

    model = trial.make()
    before = _flat(model)
    doing = "built"
    with tempfile.TemporaryDirectory() as folder:
        try:
            from transformers import Trainer

            arguments = _arguments(folder, trial.steps // steps, steps, trial.device)
            trainer = Trainer(model=model, args=arguments, train_dataset=trial.samples, data_collator=_pad)
            doing = "run"
            trainer.train()
        except torch.cuda.OutOfMemoryError:
            raise
        except BUILD_ERRORS as error:
            raise Unusable(f"the Trainer cannot be {doing}", error) from error
    return Update(before, _flat(model)), getattr(trainer, "model_accepts_loss_kwargs", None) is False


def _plain_update(trial: Trial, batches: Sequence[Row], shares: Sequence[float]) -> Update:
    """The same step by a loop over batches, each loss weighted by its share."""
    import torch

    model = trial.make().to(trial.device).train()
    before = _flat(model)
    for batch, share in zip(batches, shares):
        output = model(**{name: value.to(trial.device) for name, value in batch.items()})
        (output["loss"] * share).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(parameter.grad)
    return Update(before, _flat(model))


def _arguments(folder: str, batch_size: int, steps: int, device: str) -> object:
    """Arguments spelt as every Trainer since 4.31 knows them; one GPU at most."""
    import torch
    from transformers import TrainingArguments

    known = inspect.signature(TrainingArguments.__init__).parameters
    on_cpu = device == "cpu" or not torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=batch_size,
        gradient_accumulation_steps=steps,
        max_steps=1,
        learning_rate=1.0,
        lr_scheduler_type="constant",
        optim="sgd",
        max_grad_norm=0.0,
        weight_decay=0.0,
        report_to="none",
        disable_tqdm=True,
        save_strategy="no",
        remove_unused_columns=False,
        **{"use_cpu" if "use_cpu" in known else "no_cuda": on_cpu},
    )
    if arguments.device.type == "cuda":
        arguments._n_gpu = 1
    return arguments


def _flat(model: Module) -> Tensor:
    import torch

    return torch.cat([parameter.detach().double().cpu().flatten() for parameter in model.parameters()])


def _compare(update: Update, exact: Update) -> Row:
    """Ratio and relative distance of two updates, the bound of the latter, and theta, their quotient."""
    size = float(exact.change.norm())
    distance = float((update.change - exact.change).norm()) / size
    bound = ROUNDINGS * UNIT_ROUNDOFF["float32"] * (1 + float(exact.before.norm()) / size)
    return {
        "ratio": float(update.change.norm()) / size,
        "distance": distance,
        "bound": bound,
        "theta": distance / bound if math.isfinite(distance) else math.inf,
        "rho": 0.0,
        "nonfinite": int(not math.isfinite(distance)),
    }
