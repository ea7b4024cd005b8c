"""Eight steps of the transformers Trainer, without a break or from the checkpoint of the fourth.

Each step takes two micro-batches of two rows, and an epoch has six steps: the break falls into the middle of the first
epoch, and the last two steps into the second. Rows differ in length, their order is drawn, the learning rate falls in
every step and attention drops out, so that data, order, rates, moments and random numbers all have to go on.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, Dict, List, NamedTuple, Sequence

from compatcheck.probes._criterion import Module, Row, Tensor

STEPS, BREAK = 8, 4
ROWS, BATCH, ACCUMULATED = 24, 2, 2
VOCABULARY, PAD, IGNORED = 32, 0, -100
RATE, DROPOUT = 1e-2, 0.2


class End(NamedTuple):
    """Weights in float64 when the break would be and at the end, and every learning rate."""

    middle: Tensor
    end: Tensor
    rates: List[float]


def trained(seed: int, device: str, folder: str, resume: bool = False) -> End:
    """The end of the eight steps. With ``resume`` they go on from the checkpoint that lies in the folder."""
    import torch
    from transformers import Trainer, TrainerCallback

    torch.manual_seed(seed + resume)
    model = _model()
    middle: List[Tensor] = []
    rates: Dict[int, float] = {}

    class Noting(TrainerCallback):  # type: ignore[misc]
        """Notes the weights when the fifth step begins, and the rate of every step."""

        def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if state.global_step == BREAK:
                middle.append(_weights(given["model"]))
            rates[state.global_step] = float(given["optimizer"].param_groups[0]["lr"])

    trainer = Trainer(
        model=model,
        args=_arguments(folder, seed, device),
        train_dataset=_rows(seed),
        data_collator=_padded,
        callbacks=[Noting()],
    )
    checkpoint = os.path.join(folder, "checkpoint-%d" % BREAK)
    trainer.train(**({"resume_from_checkpoint": checkpoint} if resume else {}))
    return End(middle[0], _weights(model), [rates.get(step, 0.0) for step in range(STEPS)])


def _model() -> Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=64,
            pad_token_id=PAD,
            bos_token_id=1,
            eos_token_id=2,
            attention_dropout=DROPOUT,
        )
    ).float()


def _rows(seed: int) -> List[Row]:
    import torch

    generator = torch.Generator().manual_seed(seed + 1)
    lengths = torch.randint(4, 16, (ROWS,), generator=generator).tolist()
    return [{"input_ids": torch.randint(3, VOCABULARY, (length,), generator=generator)} for length in lengths]


def _padded(rows: Sequence[Row]) -> Row:
    import torch

    pad = torch.nn.utils.rnn.pad_sequence
    ids = pad([row["input_ids"] for row in rows], batch_first=True, padding_value=PAD)
    mask = (ids != PAD).long()
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, IGNORED)}


def _arguments(folder: str, seed: int, device: str) -> Any:
    """Spelt as every Trainer since 4.31 knows them; one GPU at most."""
    import torch
    from transformers import TrainingArguments

    known = inspect.signature(TrainingArguments.__init__).parameters
    on_cpu = device == "cpu" or not torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=ACCUMULATED,
        max_steps=STEPS,
        learning_rate=RATE,
        lr_scheduler_type="linear",
        weight_decay=0.1,
        seed=seed,
        report_to="none",
        disable_tqdm=True,
        save_strategy="steps",
        save_steps=BREAK,
        logging_strategy="no",
        remove_unused_columns=False,
        **{"use_cpu" if "use_cpu" in known else "no_cuda": on_cpu},
    )
    if arguments.device.type == "cuda":
        arguments._n_gpu = 1
    return arguments


def _weights(model: Module) -> Tensor:
    import torch

    return torch.cat([value.detach().double().cpu().flatten() for value in model.parameters()])
