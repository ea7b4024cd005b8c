"""The loss that a language model reports is the one that its logits and labels give.

The loss is compared with the mean cross entropy in its right form and in wrong ones that are known; it is judged only
where it equals a wrong one and not the right one. Anything else, such as an added router loss, stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compatcheck.integrations._samples import unwrapped
from compatcheck.integrations._training_run import TrainingRun, untraced
from compatcheck.integrations._watch import Alarm
from compatcheck.integrations.checks._check import QuietCheck
from compatcheck.language import gettext as _

_IGNORED = -100
_PASSES = 3
_MOST_ELEMENTS = 1 << 28
_TOLERANCE = 2e-3
_APART = 2e-2
_LEAST_PADDING = 0.02


class Check(QuietCheck):
    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        self.passes = 0
        self.found: list[Alarm] = []
        self.padded: list[bool] = []
        self.handles = [
            root.register_forward_hook(untraced(self._look), with_kwargs=True) for root in map(unwrapped, run.models)
        ]

    def after_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        found, self.found = self.found, []
        yield from found
        if self.passes >= _PASSES and self.handles:
            if len(self.padded) >= _PASSES and all(self.padded[-_PASSES:]):
                seen = _("padding positions have labels other than -100 and count in the loss")
                yield self.alarm("padding-in-labels", seen, "loss-too-low", "wrong-data", stops=False)
            self.close()

    def close(self) -> Iterable[Alarm]:
        for handle in self.handles:
            handle.remove()
        self.handles = []
        return ()

    def _look(self, module: Any, args: Any, kwargs: Mapping[str, Any], output: Any) -> None:
        import torch

        if not module.training or not isinstance(output, Mapping) or self.passes >= _PASSES:
            return
        loss: Any = output.get("loss")
        logits: Any = output.get("logits")
        labels: Any = kwargs.get("labels")
        if not all(type(each) is torch.Tensor for each in (loss, logits, labels)):
            return
        self.passes += 1
        self.padded.append(_counts_padding(module, kwargs, labels))
        if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
            return
        if loss.numel() != 1 or logits.numel() > _MOST_ELEMENTS or not _is_causal(module):
            return
        with torch.no_grad():
            self.found.extend(self._judge(float(loss), logits.detach(), labels, kwargs))

    def _judge(self, loss: float, logits: Any, labels: Any, kwargs: Mapping[str, Any]) -> Iterator[Alarm]:
        items = kwargs.get("num_items_in_batch")
        right = _mean_loss(logits[:, :-1], labels[:, 1:], items)
        if right is None or _equal(loss, right):
            return
        wrong = (
            ("labels-shifted-twice", _("labels that were already shifted once"), logits[:, :-2], labels[:, 2:]),
            ("labels-not-shifted", _("labels that are not shifted relative to the logits"), logits, labels),
        )
        for signature, words, scores, targets in wrong:
            value = _mean_loss(scores, targets, items)
            if value is not None and _equal(loss, value) and abs(value - right) > _APART * abs(right):
                seen = _("the loss {loss} matches {labels}; the logits and labels of the batch give {right}").format(
                    loss=f"{loss:.4g}", labels=words, right=f"{right:.4g}"
                )
                yield self.alarm(signature, seen, "loss-too-low", "wrong-data", stops=False)
                return
        self.run.unknown["loss"] = f"the loss {loss:.4g} is not the plain cross entropy {right:.4g}"


def _mean_loss(logits: Any, labels: Any, items: Any) -> float | None:
    import torch.nn.functional as functional

    kept = labels != _IGNORED
    if not bool(kept.any()):
        return None
    total = functional.cross_entropy(logits[kept].float(), labels[kept].to(logits.device), reduction="sum")
    count = float(items) if items is not None else float(kept.sum())
    return float(total) / count if count else None


def _equal(first: float, second: float) -> bool:
    return abs(first - second) <= _TOLERANCE * max(abs(first), abs(second))


def _is_causal(module: Any) -> bool:
    base = module.get_base_model() if hasattr(module, "get_base_model") else module
    configuration = getattr(base, "config", None)
    named = any(each.__name__.endswith(("ForCausalLM", "LMHeadModel")) for each in type(base).__mro__)
    return named and not getattr(configuration, "is_encoder_decoder", False)


def _counts_padding(module: Any, kwargs: Mapping[str, Any], labels: Any) -> bool:
    """Whether labels count where the attention mask is 0, in more than a few positions."""
    mask = kwargs.get("attention_mask")
    if mask is None or getattr(mask, "shape", None) != labels.shape or not _is_causal(module):
        return False
    counted = ((mask == 0) & (labels != _IGNORED)).float().mean()
    return bool(counted > _LEAST_PADDING)
