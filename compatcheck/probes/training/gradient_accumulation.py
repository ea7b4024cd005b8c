"""Gradient accumulation of the transformers Trainer.

One SGD step of a tiny random model on four micro-batches of one sequence is compared with one on a
single batch of the same four sequences, which is the reference: same weights, no clipping, no decay.
Losses that are summed but not divided, or divided twice, make the accumulated update larger or
smaller by the number of micro-batches.

A failure means that the relative distance of the two updates is above 4 times its bound of
64 u (1 + |p| / |update|), u = 2^-24 for float32: 64 roundings of each gradient, and the rounding of
the stored parameters, from which the updates are read. Healthy stacks give 2e-7 where the bound is
4e-5; faults give 3 or 0.75. The control is a loop in plain torch over the same model and sequences, each
micro-batch weighted by its tokens: where that misses the reference too, the Trainer is not to blame.
Known: transformers multiplies the update by the number of micro-batches for models without
`**kwargs` from 4.46.0 to 4.47.1 and for Llama itself in 4.47.0 and 4.48.0; 4.45.2 and 4.48.1 are right
(measured with this probe; huggingface/transformers#34263, #35207, #35438).

Models: loss_kwargs is LlamaForCausalLM as it stands; no_kwargs is a wrapper whose forward takes no
`**kwargs`, as ChatGLM and other remote code; own is the user's architecture, small, in place of the two where
a config is given. ignored_kwargs takes them and does nothing with them,
whose update is multiplied too (4.46.0 to 5.23.0, where tried): that says something about the model, so
it is run only where the request names it.
Sequences of unequal length: where the model takes no loss arguments, the mean of per-micro-batch means
is the documented result and is recorded, not judged; so are those of the user's own code.

Request: seed, device, config, models (default loss_kwargs and no_kwargs, or own), gradient_accumulation_steps
(default 4, at most 8).
"""

from __future__ import annotations

import inspect
import math
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple

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
    verdict,
)
from compatcheck.probes._device import NO_DEVICE, device_of
from compatcheck.probes.training._model import Unbuildable, build, instance

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


def measure(request: Request, stage: Stage) -> Measuring:
    """Rows of the ratio and the relative distance (error) of the two updates, with the bound of the latter."""
    device = device_of(request)
    if device is None:
        return {"unsupported": NO_DEVICE}
    if (request.get("training") or {}).get("gradient_accumulation_steps") == 1 and not request.get("models"):
        return {"unsupported": "the training file accumulates nothing"}
    steps = min(max(int(request.get("gradient_accumulation_steps") or 4), 2), 8)
    seed = int(request["seed"])
    stage("models")
    try:
        models = _models(request)
    except Unbuildable as reason:
        return {"unsupported": str(reason)}
    for name in request.get("models") or (("own",) if "own" in models else MODELS):
        for lengths in ("equal", "unequal"):
            samples = _samples(lengths, steps, seed)
            case = {
                "model": name,
                "lengths": lengths,
                "steps": steps,
                "judged": _is_normalised(models[name], name, lengths),
            }
            stage(f"{name} {lengths}")
            large = _update(models[name], samples, 1, device)
            small = _update(models[name], samples, steps, device)
            plain = _plain_update(models[name], samples, steps, device)
            yield {**case, **_compare(small, large), "plain": _compare(plain, large)}
    return {"device": device}


def judge(measured: Measured) -> Tuple[Outcome, str]:
    """The judged row furthest above its bound decides, and fails only where plain torch meets the reference."""
    if "unsupported" in measured:
        return "skip", str(measured["unsupported"])
    judged = [row for row in measured["rows"] if row["judged"]]
    if not judged:
        return "skip", "no case was chosen that can be judged"
    worst = max(judged, key=_excess)
    outcome: Outcome = verdict(_excess(worst))
    model = "your architecture" if worst["model"] == "own" else worst["model"]
    why = (
        f"accumulating {worst['steps']} micro-batches gives {float(worst['ratio']):.4g} times the update of one batch, "
        f"relative distance {float(worst['error']):.2g} (bound {float(worst['bound']):.1g}; "
        f"{model}, {worst['lengths']} lengths)"
    )
    if outcome == "fail" and verdict(_excess(worst["plain"])) == "fail":
        return "watch", why + "; plain torch misses that update too, so the model or the probe itself is suspect"
    return outcome, why


def _excess(row: Measured) -> float:
    """The distance of two updates over its bound."""
    error = float(row["error"])
    return error / float(row["bound"]) if math.isfinite(error) else math.inf


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


def _is_normalised(make: Make, name: str, lengths: str) -> bool:
    """Unequal lengths only where the model is known to pass on the number of tokens."""
    parameters = inspect.signature(type(make()).forward).parameters.values()
    takes = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return lengths == "equal" or (takes and name != "own")


def _samples(lengths: str, count: int, seed: int) -> List[Tensors]:
    import torch

    generator = torch.Generator().manual_seed(seed + 1)
    sizes = [12] * count if lengths == "equal" else [4 * (number + 1) for number in range(count)]
    return [{"input_ids": torch.randint(3, VOCABULARY, (size,), generator=generator)} for size in sizes]


def _pad(samples: List[Tensors]) -> Row:
    import torch

    length = max(len(sample["input_ids"]) for sample in samples)
    ids = torch.zeros(len(samples), length, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for row, sample in enumerate(samples):
        size = len(sample["input_ids"])
        ids[row, :size], mask[row, :size], labels[row, :size] = sample["input_ids"], 1, sample["input_ids"]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def _update(make: Make, samples: List[Tensors], steps: int, device: str) -> Tuple[Tensor, Tensor]:
    """Parameters before and after one step at learning rate 1, as flat float64 vectors on the CPU."""
    from transformers import Trainer

    model = make()
    before = _flat(model)
    with tempfile.TemporaryDirectory() as folder:
        arguments = _arguments(folder, len(samples) // steps, steps, device)
        Trainer(model=model, args=arguments, train_dataset=samples, data_collator=_pad).train()
    return before, _flat(model)


def _plain_update(make: Make, samples: List[Tensors], steps: int, device: str) -> Tuple[Tensor, Tensor]:
    """The same step by a loop over the micro-batches, each loss weighted by its share of the tokens."""
    import torch

    model = make().to(device).train()
    before = _flat(model)
    size = len(samples) // steps
    batches = [_pad(samples[start : start + size]) for start in range(0, len(samples), size)]
    counts = [int((batch["labels"][:, 1:] != IGNORED).sum()) for batch in batches]
    for batch, count in zip(batches, counts):
        output = model(**{name: value.to(device) for name, value in batch.items()})
        (output["loss"] * (count / sum(counts))).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(parameter.grad)
    return before, _flat(model)


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


def _compare(small: Tuple[Tensor, Tensor], large: Tuple[Tensor, Tensor]) -> Dict[str, float]:
    update, reference = small[1] - small[0], large[1] - large[0]
    size = float(reference.norm())
    bound = ROUNDINGS * UNIT_ROUNDOFF["float32"] * (1 + float(large[0].norm()) / size)
    return {
        "ratio": float(update.norm()) / size,
        "error": float((update - reference).norm()) / size,
        "bound": bound,
    }
