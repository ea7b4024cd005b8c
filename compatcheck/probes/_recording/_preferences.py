"""The SFT and DPO trainers of trl on text, with a tokenizer of a word for each token."""

from __future__ import annotations

import inspect
import tempfile
from functools import partial
from typing import Any, Dict, Iterator, List

from compatcheck.probes._criterion import Request, Row
from compatcheck.probes._recording._case import Case
from compatcheck.probes._recording._models import Subject, make
from compatcheck.probes._recording._record import Record
from compatcheck.probes._recording._sketch import counters
from compatcheck.probes._recording._trainer import _PLAIN, arguments_of, train

_LENGTH = 32
_FIRST_WORD = 10
_SFT_LENGTHS = (9, 24, 17, 5, 12, 21, 7, 24)
_DPO_LENGTHS = ((4, 9, 5), (6, 5, 12), (3, 14, 8), (7, 6, 6), (5, 20, 3), (4, 8, 17), (6, 11, 4), (3, 7, 9))


def cases(subject: Subject, request: Request) -> Iterator[Case]:
    """SFT plain, packed and on prompts with completions, and DPO, with and without accumulation."""
    packages = ("transformers", "accelerate", "trl")
    plain: Row = {"gradient_accumulation_steps": 2, "max_steps": 2}
    for label, options in (("SFT", {}), ("SFT, padding-free", {"padding_free": True})):
        run = partial(_sft, subject, {**plain, **options}, False)
        yield Case(f"{subject.name}, {label}", "float32", packages, run)
    completions = partial(_sft, subject, plain, True)
    yield Case(f"{subject.name}, SFT on prompts with completions", "float32", packages, completions)
    yield Case(f"{subject.name}, DPO", "float32", packages, partial(_dpo, subject, plain))


def _sft(subject: Subject, options: Row, with_prompts: bool, record: Record, shift: float) -> None:
    import trl

    rows: List[Row] = []
    for number, length in enumerate(_SFT_LENGTHS):
        text = _text(subject, length, number)
        if with_prompts:
            words = text.split(" ")
            rows.append({"prompt": " ".join(words[:3]), "completion": " " + " ".join(words[3:])})
        else:
            rows.append({"text": text})
    lengths = {"max_length": _LENGTH, "max_seq_length": _LENGTH, "dataset_text_field": "text", "packing": False}
    _run(trl.SFTTrainer, trl.SFTConfig, make(subject, shift=shift), subject, rows, {**options, **lengths}, record)


def _dpo(subject: Subject, options: Row, record: Record, shift: float) -> None:
    import trl

    rows = []
    for number, (prompt, chosen, rejected) in enumerate(_DPO_LENGTHS):
        texts = (_text(subject, length, 100 + 3 * number + at) for at, length in enumerate((prompt, chosen, rejected)))
        rows.append(dict(zip(("prompt", "chosen", "rejected"), texts)))
    own = {"beta": 0.1, "max_length": _LENGTH, "max_prompt_length": 16, "loss_type": "sigmoid"}
    model, reference = make(subject, shift=shift), make(subject, seed=1)
    _run(trl.DPOTrainer, trl.DPOConfig, model, subject, rows, {**options, **own}, record, ref_model=reference)


def _run(
    kind: Any, config: Any, model: Any, subject: Subject, rows: List[Row], options: Row, record: Record, **given: Any
) -> None:
    """Train with a trainer of trl, whose batches come in a fixed order."""
    import datasets

    datasets.disable_progress_bars()

    class Ordered(kind):  # type: ignore[misc]
        def _get_train_sampler(self, *arguments: Any, **named: Any) -> Any:
            from torch.utils.data import SequentialSampler

            return SequentialSampler(self.train_dataset)

    model.warnings_issued = getattr(model, "warnings_issued", {})
    with tempfile.TemporaryDirectory() as folder:
        asked: Dict[str, Any] = {**_PLAIN, **options, "output_dir": folder, "dataset_num_proc": None}
        arguments = arguments_of(config, asked)
        known = inspect.signature(kind.__init__).parameters
        role = "processing_class" if "processing_class" in known else "tokenizer"
        data = datasets.Dataset.from_list(rows)
        trainer = Ordered(model=model, args=arguments, train_dataset=data, **{role: _tokenizer(subject)}, **given)
        batch = next(iter(trainer.get_train_dataloader()))
        for name in sorted(batch):
            if hasattr(batch[name], "shape") and batch[name].dtype.is_floating_point is False:
                record.tensor("batch", name, batch[name].double())
        train(trainer, record)


def _text(subject: Subject, length: int, stream: int) -> str:
    numbers = counters(length, 5000 + stream) % (subject.vocabulary - 40)
    return " ".join(f"w{int(number) + _FIRST_WORD}" for number in numbers)


def _tokenizer(subject: Subject) -> Any:
    """Each word is a token, in the ids of the model, with the special tokens below them."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3}
    words.update((f"w{number}", number) for number in range(_FIRST_WORD, subject.vocabulary))
    inner = Tokenizer(WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=inner, padding_side="right", **names)
