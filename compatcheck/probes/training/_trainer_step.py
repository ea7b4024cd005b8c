"""One step of the transformers Trainer on a tiny random model, and the same step in plain torch.

SGD at learning rate 1, without clipping and decay: the update is the gradient. Two updates are compared by their
relative distance, whose bound is 64 u (1 + |p| / |update|), u = 2^-24 for float32: 64 roundings of each gradient, and
the rounding of the stored parameters, from which the updates are read. Healthy stacks give 2e-7 where the bound is
4e-5.
"""

from __future__ import annotations

import inspect
import math
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from compatcheck.probes._criterion import UNIT_ROUNDOFF, Module, Request, Row, Settings, Tensor, Tensors, Unusable
from compatcheck.probes.training._model import BUILD_ERRORS, build, instance

Make = Callable[[], Module]

VOCABULARY = 32
IGNORED = -100
MODELS = ("loss_kwargs", "no_kwargs")
ROUNDINGS = 64
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


class Trained(NamedTuple):
    """The Trainer's update, and the sequences of each micro-batch that this process took for it.

    ``averages``: the Trainer documents the mean of the micro-batches' means for such a model.
    """

    update: Update
    taken: List[List[Tensors]]
    averages: bool


def models(request: Request) -> Dict[str, Make]:
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


def case(name: str, lengths: str) -> str:
    """A model and its sequences in words."""
    return f"{'your architecture' if name == 'own' else name}, {lengths} lengths"


def samples(lengths: str, count: int, seed: int) -> List[Tensors]:
    import torch

    generator = torch.Generator().manual_seed(seed + 1)
    sizes = [12] * count if lengths == "equal" else [4 * (number + 1) for number in range(count)]
    return [{"input_ids": torch.randint(3, VOCABULARY, (size,), generator=generator)} for size in sizes]


def pad(samples: Sequence[Tensors]) -> Row:
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


def micro_batches(samples: Sequence[Tensors]) -> Tuple[List[Row], List[float]]:
    """A batch for each sequence, and the share of the labels that each has."""
    batches = [pad([sample]) for sample in samples]
    counts = [int((batch["labels"] != IGNORED).sum()) for batch in batches]
    return batches, [count / sum(counts) for count in counts]


def trainer() -> Any:
    """The class; raises Unusable with the error that its import ends in, which transformers raises as another."""
    try:
        from transformers import Trainer
    except BUILD_ERRORS as error:
        raise Unusable("the Trainer cannot be imported", error.__cause__ or error) from error
    return Trainer


def trained(trial: Trial, batch_size: int, steps: int, **options: Any) -> Trained:
    """One step over ``steps`` micro-batches; ``options`` are more TrainingArguments.

    Raises Unusable where the Trainer cannot be built or does not train.
    """
    import torch

    model = trial.make()
    before = _flat(model)
    trainer_class, doing = trainer(), "built"
    taken: List[List[Tensors]] = []

    def collate(samples: Sequence[Tensors]) -> Row:
        taken.append(list(samples))
        return pad(samples)

    with tempfile.TemporaryDirectory() as folder:
        try:
            arguments = _arguments(folder, batch_size, steps, trial.device, options)
            built = trainer_class(model=model, args=arguments, train_dataset=trial.samples, data_collator=collate)
            doing = "run"
            built.train()
        except torch.cuda.OutOfMemoryError:
            raise
        except BUILD_ERRORS as error:
            raise Unusable(f"the Trainer cannot be {doing}", error) from error
    averages = getattr(built, "model_accepts_loss_kwargs", None) is False
    return Trained(Update(before, _flat(model)), taken, averages)


def plain_update(trial: Trial, batches: Sequence[Row], shares: Sequence[float]) -> Update:
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


def _arguments(folder: str, batch_size: int, steps: int, device: str, options: Settings) -> object:
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
        **options,
    )
    if arguments.device.type == "cuda":
        arguments._n_gpu = 1
    return arguments


def _flat(model: Module) -> Tensor:
    import torch

    return torch.cat([parameter.detach().double().cpu().flatten() for parameter in model.parameters()])


def compare(update: Update, exact: Update) -> Row:
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


def told(row: Row, what: str) -> Row:
    """The row with its finding in words: theta is no rounding error."""
    ratio, distance, bound = (float(row[key]) for key in ("ratio", "distance", "bound"))
    says = f"{what} gives {ratio:.4g} times the exact update, relative distance {distance:.2g} (bound {bound:.1g})"
    return {**row, "says": says}
