"""One step of a trainer of TRL on a tiny random model, against the same step written out in float64.

The trainer is the installed release's own, made from texts as its users make it. An optimiser that only notes the
gradients it is handed takes the step; its learning rate plays no part. Settings that a release does not know are left
out, with the case where that needs them.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from compatcheck.probes._criterion import FAIL_THETA, UNIT_ROUNDOFF, Module, Row, Tensor, Tensors, Unusable
from compatcheck.probes.training._exact import float64_everywhere
from compatcheck.probes.training._logits import attempted
from compatcheck.probes.training._model import BUILD_ERRORS, plain_name

PAD, START, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
PAD_ID, START_ID, END_ID, UNKNOWN_ID = 0, 1, 2, 3
WORDS = tuple(f"w{number}" for number in range(28))
LLAMA = {
    "vocab_size": 4 + len(WORDS),
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.2,
    "pad_token_id": PAD_ID,
    "bos_token_id": START_ID,
    "eos_token_id": END_ID,
}
GRADIENT_ROUNDINGS = 64
LOSS_ROUNDINGS = 64
CONTROL = "formula in float32"
Loss = Callable[[Module], Tensor]
"""The loss of a step as a formula of the model."""


class Step(NamedTuple):
    """What a trainer did: the loss it told, and the gradient of each parameter that it trains, in float64."""

    loss: float
    gradients: Tensors


class Refused(Exception):
    """A release cannot be asked for this case; the message says why."""


def tokenizer() -> Any:
    """One token for each word, and no token that is added by itself."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate((PAD, START, END, UNKNOWN, *WORDS))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        unk_token=UNKNOWN,
        model_max_length=128,
        model_input_names=["input_ids", "attention_mask"],
    )


def words(count: int, generator: Any) -> str:
    """So many random words, the last of WORDS not among them."""
    import torch

    return " ".join(WORDS[place] for place in torch.randint(len(WORDS) - 1, (count,), generator=generator).tolist())


def ids_of(text: str) -> List[int]:
    """The tokens of a text."""
    known = {word: number for number, word in enumerate((PAD, START, END, UNKNOWN, *WORDS))}
    return [known[word] for word in text.replace(END, f" {END}").split()]


def model(seed: int, dropout: float = 0.0, scores: bool = False) -> Module:
    """A small Llama, the same for the same seed; ``scores``: with one number for each sequence in place of logits.

    Raises Unusable where it cannot be built.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

    torch.manual_seed(seed)
    kind = LlamaForSequenceClassification if scores else LlamaForCausalLM
    more = {"num_labels": 1} if scores else {}
    try:
        return kind(LlamaConfig(**LLAMA, attention_dropout=dropout, **more)).float()
    except BUILD_ERRORS as error:
        raise Unusable("a Llama cannot be built", error) from error


def measured(name: str, seed: int, work: Callable[[], Row]) -> Row:
    """What ``work`` gives for a case; where it raises, the error and a formula that holds: the trainer then fails."""
    found = attempted({"case": name, "variant": "trainer", "dtype": "float32"}, work)
    if "error" not in found:
        return found
    exact, plain = (written_out(model(seed), _likelihood, each) for each in (True, False))
    return {"rows": [found, *rows_of(name, CONTROL, plain, exact, True)]}


def _likelihood(scored: Module) -> Tensor:
    return -log_probabilities(scored, range(START_ID, UNKNOWN_ID + 1 + len(WORDS)), 1).mean()


def step_of(trainer: Any) -> Step:
    """What the trainer does in its first step."""
    import torch

    seen: List[Tensors] = []
    names = {id(value): plain_name(name) for name, value in trainer.model.named_parameters()}

    class Noting(torch.optim.SGD):  # type: ignore[misc]
        def step(self, closure: Any = None) -> None:
            held = [value for group in self.param_groups for value in group["params"] if value.grad is not None]
            seen.append({names.get(id(value), "?"): value.grad.detach().double().clone() for value in held})

    trainer.optimizer = Noting([value for value in trainer.model.parameters() if value.requires_grad], lr=0.0)
    told = trainer.train()
    return Step(float(told.training_loss), seen[0])


def settings(folder: str) -> Dict[str, Any]:
    """Those of every trainer here: one step, without clipping, in float32."""
    return {"output_dir": folder, **COMMON}


def lora() -> Any:
    """Adapters on two layers of the attention."""
    from peft import LoraConfig

    return LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")


def adapted(base: Module, trained: Module) -> Module:
    """The base with adapters of the same weights as those of the trained model."""
    from peft import get_peft_model

    copied = get_peft_model(base, lora())
    weights = {name: value for name, value in trained.state_dict().items() if ".lora_" in name}
    copied.load_state_dict({name: value.float() for name, value in weights.items()}, strict=False)
    return copied


def move_adapters(trained: Module, seed: int) -> None:
    """Give both factors of each adapter random values, as after some training."""
    import torch

    generator = torch.Generator().manual_seed(seed + 2)
    with torch.no_grad():
        for name, value in trained.named_parameters():
            if ".lora_" in name:
                value.copy_(torch.randn(value.shape, generator=generator) * 0.2)


def like(fixed: Module, other: Module) -> Module:
    """A copy of a model in the precision of another, without dropout."""
    copied = copy.deepcopy(fixed).to(next(other.parameters()).dtype).eval()
    copied.config._attn_implementation = "eager"
    return copied


COMMON: Dict[str, Any] = {
    "max_steps": 1,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "max_grad_norm": 0.0,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "bf16": False,
    "seed": 0,
}


def made(trainer: Any, config: Any, settings: Mapping[str, Any], needs: Sequence[str] = (), **given: Any) -> Any:
    """A trainer of a class with a configuration of a class: each setting goes where the release takes it.

    Raises Refused where neither takes one that is needed.
    """
    known, taken = _parameters(config), _parameters(trainer)
    missing = [name for name in needs if name not in known and name not in taken]
    if missing:
        raise Refused(f"this release has no {missing[0]}")
    on_cpu = {"use_cpu" if "use_cpu" in known else "no_cuda": True}
    arguments = config(**{name: value for name, value in {**settings, **on_cpu}.items() if name in known})
    others = {name: value for name, value in settings.items() if name in taken and name not in known}
    given = {
        "processing_class" if name == "tokenizer" and name not in taken else name: each for name, each in given.items()
    }
    return trainer(args=arguments, **{name: each for name, each in given.items() if each is not None}, **others)


def _parameters(call: Any) -> Mapping[str, Any]:
    return inspect.signature(call.__init__).parameters


def written_out(candidate: Module, loss: Loss, exact: bool) -> Step:
    """The loss and its gradients as the formula gives them, in float64 (``exact``) or in float32."""
    reference = copy.deepcopy(candidate)
    reference.config._attn_implementation = "eager"
    reference = (reference.double() if exact else reference.float()).eval()
    with float64_everywhere() if exact else contextlib.nullcontext():
        value = loss(reference)
        value.backward()
    trained = {
        name: each for name, each in reference.named_parameters() if each.requires_grad and each.grad is not None
    }
    return Step(float(value.detach()), {plain_name(name): each.grad.double() for name, each in trained.items()})


def log_probabilities(scored: Module, tokens: Sequence[int], start: int, temperature: float = 1.0) -> Tensor:
    """Of each token from place ``start`` on, given those before it."""
    import torch

    ids = torch.tensor([list(tokens)])
    logits = scored(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, :-1] / temperature
    chosen = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    return chosen[start - 1 :] if start else chosen


def rows_of(case: str, variant: str, told: Step, exact: Step, control: bool = False) -> List[Row]:
    """A row for the gradients and one for the loss."""
    unit = UNIT_ROUNDOFF["float32"]
    common = {
        "case": case,
        "variant": variant,
        "dtype": "float32",
        "rho": 0.0,
        **({"control": True} if control else {}),
    }
    error = abs(told.loss - exact.loss) / max(1.0, abs(exact.loss))
    loss = {"tensor": "loss", "theta": error / (LOSS_ROUNDINGS * unit), "nonfinite": int(not math.isfinite(told.loss))}
    lost = sorted(set(exact.gradients) - set(told.gradients))
    if lost:
        says = f"{len(lost)} of {len(exact.gradients)} parameters get no gradient, such as {lost[0]}"
        gradient: Row = {"theta": math.inf, "nonfinite": 0, "says": says}
    else:
        gradient = _distance(told.gradients, exact.gradients, unit)
    return [{**common, "tensor": "gradient", **gradient}, {**common, **loss, "exact": exact.loss, "told": told.loss}]


def _distance(told: Tensors, exact: Tensors, unit: float) -> Row:
    import torch

    flat, truth = (torch.cat([part[name].flatten() for name in sorted(exact)]) for part in (told, exact))
    size = float(truth.norm())
    error = float((flat - truth).norm()) / size
    ratio = float(flat.norm()) / size
    share = float(torch.dot(flat, truth)) / size**2
    row: Row = {"theta": error / (GRADIENT_ROUNDINGS * unit), "nonfinite": int((~torch.isfinite(flat)).sum())}
    row.update(share=share, ratio=ratio)
    if row["theta"] > 1:
        row["says"] = f"the gradient differs by {error:.2g} of its size ({ratio:.3g} times the right length)"
    return row


def compared(case: str, told: Step, reference: Module, formulas: Sequence[Loss]) -> List[Row]:
    """Rows of a case: the trainer against the nearest formula, and this formula in float32 as the control.

    A gradient that is only too long or too short is nearer than one that points elsewhere.
    """
    found = []
    for formula in formulas:
        exact, plain = written_out(reference, formula, True), written_out(reference, formula, False)
        rows = rows_of(case, "trainer", told, exact)
        found.append((_nearness(rows[0]), rows + rows_of(case, CONTROL, plain, exact, True)))
    return min(found, key=lambda each: each[0])[1]


def _nearness(gradient: Row) -> Tuple[bool, float]:
    theta = float(gradient["theta"])
    if "ratio" not in gradient:
        return True, theta
    across = math.sqrt(max(float(gradient["ratio"]) ** 2 - float(gradient["share"]) ** 2, 0.0))
    bound = FAIL_THETA * GRADIENT_ROUNDINGS * UNIT_ROUNDOFF["float32"]
    return not across <= bound * float(gradient["ratio"]), theta
