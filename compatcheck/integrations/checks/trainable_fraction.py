"""What trains is what was asked: the adapter of PEFT, the fraction the caller names, the stages a backbone freezes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compatcheck.integrations._training_run import TrainingRun
from compatcheck.integrations._watch import Alarm
from compatcheck.integrations.checks._check import QuietCheck
from compatcheck.language import gettext as _

_FULL = 0.99
_LORA = "lora_"
_FACTOR = 2.0


class Check(QuietCheck):
    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        self.done = False

    def before_step(self, optimizer: Any, looks: bool) -> Iterable[Alarm]:
        if self.done:
            return
        self.done = True
        trained = total = 0
        for each in self.run.parameters():
            if each.parameter.is_floating_point():
                total += each.parameter.numel()
                trained += each.parameter.numel() * each.parameter.requires_grad
        fraction = trained / total if total else 0.0
        self.run.notes["trainable"] = f"{trained:,} of {total:,} elements are trainable ({100 * fraction:.3g} %)"
        for root in self.run.roots:
            yield from self._adapter(root)
            yield from self._stages(root)
        yield from self._asked(fraction)

    def _adapter(self, root: Any) -> Iterator[Alarm]:
        """A LoRA model none of whose adapter weights train, as after `PeftModel.from_pretrained` for inference."""
        adapters = getattr(root, "peft_config", None)
        weights = [parameter for name, parameter in root.named_parameters() if _LORA in name]
        if isinstance(adapters, Mapping) and weights and not any(each.requires_grad for each in weights):
            seen = _(
                "none of the {count} LoRA weights is trainable; load the adapter with is_trainable=True, or call"
                " model.set_adapter"
            ).format(count=len(weights))
            symptoms = ("wrong-trainable-parameters", "nothing-learned")
            yield self.alarm("adapter-frozen", seen, *symptoms, stops=True)

    def _stages(self, root: Any) -> Iterator[Alarm]:
        """A backbone of the OpenMMLab family that was told to freeze stages, and has no frozen parameter."""
        for name, module in root.named_modules():
            stages = getattr(module, "frozen_stages", None)
            if not isinstance(stages, int) or isinstance(stages, bool) or stages < 1:
                continue
            parameters = list(module.parameters())
            if parameters and all(each.requires_grad for each in parameters):
                seen = _(
                    "{name} has frozen_stages={stages}, but all its {count} parameters train; call "
                    "model.train() before the optimizer is built"
                ).format(name=name or type(module).__name__, stages=stages, count=len(parameters))
                symptoms = ("wrong-trainable-parameters", "setting-ignored")
                yield self.alarm("stages-not-frozen", seen, *symptoms)

    def _asked(self, fraction: float) -> Iterator[Alarm]:
        asked = self.run.trainable
        if asked is None:
            return
        if asked == "lora":
            others = [
                each.name
                for each in self.run.parameters()
                if each.parameter.requires_grad and _LORA not in each.name and "modules_to_save" not in each.name
            ]
            wrong = bool(others) or fraction == 0
            seen = _("LoRA was requested, but {count} other parameters are also trained, such as {names}").format(
                count=len(others), names=", ".join(others[:1]) or "-"
            )
        elif asked == "full":
            wrong = fraction < _FULL
            seen = _("all parameters should train, but only {share} % of the elements do").format(
                share=f"{100 * fraction:.3g}"
            )
        else:
            share = float(asked)
            wrong = not share / _FACTOR <= fraction <= min(1.0, share * _FACTOR)
            seen = _("{asked} % of the elements should train, but {share} % do").format(
                asked=f"{100 * share:.3g}", share=f"{100 * fraction:.3g}"
            )
        if wrong:
            yield self.alarm("trainable-fraction", seen, "wrong-trainable-parameters", stops=False)
