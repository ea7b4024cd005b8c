"""What a DeepSpeed JSON gives otherwise than the arguments of the transformers Trainer, which then refuses to train.

``HfTrainerDeepSpeedConfig.trainer_config_process`` and ``trainer_config_finalize`` compare the two and raise
ValueError, in ``transformers/integrations/deepspeed.py`` of 4.30 to 5.24. A key that is missing or ``"auto"`` takes the
value of the argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from compatcheck.environment import Environment, Location
from compatcheck.packages.frameworks import foundations, framework_of
from compatcheck.project.training._contradiction import Setting, contradiction
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import is_auto

_RULE = "deepspeed-json-contradicts-trainer"

_TRAINER = "transformers"
_MICRO_BATCH = "training.per_device_train_batch_size"
_ACCUMULATION = "training.gradient_accumulation_steps"
_COMPLETE = "training.arguments.complete"
_FINDS_BATCH_SIZE = "training.arguments.auto_find_batch_size"
_ARGUMENTS = {
    "train_micro_batch_size_per_gpu": _MICRO_BATCH,
    "gradient_accumulation_steps": _ACCUMULATION,
    "gradient_clipping": "training.max_grad_norm",
    "optimizer.params.lr": "training.learning_rate",
    "optimizer.params.eps": "training.arguments.adam_epsilon",
    "optimizer.params.weight_decay": "training.arguments.weight_decay",
    "scheduler.params.warmup_max_lr": "training.learning_rate",
    "scheduler.params.total_num_steps": "training.max_steps",
    "scheduler.params.warmup_num_steps": "training.warmup_steps",
}
_PRECISIONS = ("fp16", "bf16")
_COUNTS = ("training.max_steps", "training.warmup_steps")
"""Arguments that count only above zero: the Trainer derives the number of steps from the data otherwise."""
_BETAS = ("training.arguments.adam_beta1", "training.arguments.adam_beta2")
_BATCH = (_MICRO_BATCH, _ACCUMULATION, "training.world_size")


def contradictions(sheet: Sheet, trainer: Environment) -> list[dict[str, Any]]:
    """Every key of the JSON that the Trainer of these arguments refuses."""
    framework = framework_of(trainer.get("training.framework"))
    if framework is None or _TRAINER not in (framework.name, *foundations(framework.name)):
        return []
    return [
        contradiction(_RULE, Setting(key, value, sheet.document.place(tuple(key.split(".")))), argument)
        for key, argument in _arguments(trainer)
        if _is_comparable(value := sheet.get(*key.split("."))) and value != argument.value
    ]


def _arguments(trainer: Environment) -> Iterator[tuple[str, Setting]]:
    """The known arguments, by the key of the JSON that each is compared with."""
    takes_batch_size = trainer.get(_FINDS_BATCH_SIZE) is not True
    for key, path in _ARGUMENTS.items():
        value = _number(trainer, path)
        if value is not None and (takes_batch_size or path != _MICRO_BATCH) and (value >= 1 or path not in _COUNTS):
            yield key, Setting(path.rpartition(".")[2], value, trainer.locations.get(path))
    for name in _PRECISIONS:
        if switch := _precision(trainer, name):
            yield f"{name}.enabled", switch
    betas = [_number(trainer, path) for path in _BETAS]
    if None not in betas:
        yield "optimizer.params.betas", Setting("adam_beta1 and adam_beta2", betas, _first_place(trainer, _BETAS))
    batch = [_number(trainer, path) for path in _BATCH]
    if takes_batch_size and None not in batch:
        name = "per_device_train_batch_size * gradient_accumulation_steps * world size"
        yield "train_batch_size", Setting(name, math.prod(filter(None, batch)), _first_place(trainer, _BATCH))


def _precision(trainer: Environment, name: str) -> Setting | None:
    """Whether one precision is on, for training or for evaluation alone."""
    paths = [f"training.arguments.{each}" for each in (name, f"{name}_full_eval")]
    for path in paths:
        if trainer.get(path) is True:
            return Setting(path.rpartition(".")[2], True, trainer.locations.get(path))
    is_off = _number(trainer, paths[0]) is False
    return Setting(name, False, trainer.locations.get(paths[0])) if is_off else None


def _number(trainer: Environment, path: str) -> int | float | None:
    """The value of an argument that is given, or that is the default of arguments that are known whole."""
    value = trainer.get(path)
    is_certain = path in trainer.locations or trainer.get(_COMPLETE) is True
    return value if is_certain and isinstance(value, (int, float)) else None


def _first_place(trainer: Environment, paths: tuple[str, ...]) -> Location | None:
    return next((trainer.locations[path] for path in paths if path in trainer.locations), None)


def _is_comparable(value: object) -> bool:
    """Whether a value is a number, true, false, a list of numbers, or a word other than ``auto``."""
    if isinstance(value, str):
        return not is_auto(value)
    return all(isinstance(each, (int, float)) for each in (value if isinstance(value, list) else [value]))
