"""Eight short sequences of unequal length, one by one, padded on either side, or packed in one row."""

from __future__ import annotations

from typing import Any, List, Sequence

from compatcheck.probes._criterion import Row, Tensor, Tensors

LENGTHS = (23, 64, 7, 41, 33, 64, 12, 50)
IGNORED = -100
REPEATED = 1
"""The sequence half of whose tokens are equal, so that one embedding row takes many gradients."""


def sequences(vocabulary: int, special_ids: Sequence[int] = (), seed: int = 0) -> List[Tensor]:
    """One vector of token ids for each of LENGTHS, without special tokens."""
    import torch

    ordinary = torch.tensor([token for token in range(vocabulary) if token not in set(special_ids)])
    generator = torch.Generator().manual_seed(seed + 1)
    drawn = [ordinary[torch.randint(len(ordinary), (length,), generator=generator)] for length in LENGTHS]
    drawn[REPEATED][::2] = drawn[REPEATED][0].clone()
    return drawn


def singles(chosen: Sequence[Tensor]) -> List[Row]:
    """A batch of one for each sequence."""
    return [padded([sequence], "right", 0) for sequence in chosen]


def padded(chosen: Sequence[Tensor], side: str, pad_id: int, label_first: bool = False) -> Row:
    """One batch: input_ids, attention_mask and labels, with no label on padding.

    The first token of a sequence has no label either (with padding on the left its padding would predict it, which
    a sequence alone has nothing for) unless ``label_first``.
    """
    import torch

    length = max(len(sequence) for sequence in chosen)
    ids = torch.full((len(chosen), length), pad_id, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for row, sequence in enumerate(chosen):
        start = length - len(sequence) if side == "left" else 0
        place = slice(start, start + len(sequence))
        ids[row, place], mask[row, place], labels[row, place] = sequence, 1, sequence
        if not label_first:
            labels[row, start] = IGNORED
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def packed(chosen: Sequence[Tensor], with_mask: bool = False) -> Row:
    """One row of all sequences, their position_ids restarting; ``with_mask`` adds an attention_mask of ones."""
    import torch

    ids = torch.cat(list(chosen)).reshape(1, -1)
    positions = torch.cat([torch.arange(len(sequence)) for sequence in chosen]).reshape(1, -1)
    labels = torch.where(positions == 0, torch.full_like(ids, IGNORED), ids)
    batch = {"input_ids": ids, "position_ids": positions, "labels": labels}
    return {**batch, "attention_mask": torch.ones_like(ids)} if with_mask else batch


def predicted(batch: Tensors) -> int:
    """Number of tokens whose prediction enters the loss."""
    return int((batch["labels"][:, 1:] != IGNORED).sum())


def on(batch: Tensors, device: Any) -> Row:
    """The batch on a device."""
    return {key: value.to(device) for key, value in batch.items()}
