"""PEFT: the adapter that the training makes, and whether a quantized model is prepared for it."""

from __future__ import annotations

from compatcheck.project.python_values import Open
from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import CALL, NOTHING, Program, argument, document, last_name, read_each
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import FLAG
from compatcheck.project.training.document import Configuration
from compatcheck.project.training.formats import peft_adapter

_CONFIGS = r"peft\.(?:[\w.]+\.)?(?!Peft)\w+Config"
_WRAPS = r"peft\.(?:[\w.]+\.)?(?:get_peft_model|inject_adapter_in_model)"
_PREPARES = r"peft\.(?:[\w.]+\.)?prepare_model_for_(?:kbit|int8)_training"
_LOADS = r"peft\.(?:[\w.]+\.)?\w*Peft\w*\.from_pretrained"
_TYPES = {
    "PrefixTuning": "PREFIX_TUNING",
    "PromptTuning": "PROMPT_TUNING",
    "PromptEncoder": "P_TUNING",
    "AdaptionPrompt": "ADAPTION_PROMPT",
    "MultitaskPromptTuning": "MULTITASK_PROMPT_TUNING",
    "LNTuning": "LN_TUNING",
}
_DEFAULTS = {"r": 8, "lora_alpha": 8, "use_dora": False, "use_rslora": False, "bias": "none", "init_lora_weights": True}
_FACTS = ("training.lora", "training.method")


def read(program: Program) -> Configuration:
    """What the configurations say that are given to a model or its Trainer, else all that are made."""
    wraps = program.calls(_WRAPS)
    given = [argument(call, "peft_config", 1) for call in wraps]
    given += [argument(call, "adapter_config", 0) for call in program.methods("add_adapter")]
    given += [call.keywords["peft_config"] for call in program.trainers if "peft_config" in call.keywords]
    made = program.calls(_CONFIGS)
    used = [call for call in made if call in given]
    adapter = read_each(used or made, _read_config)
    doubt = next((call.doubt for call in wraps if call.doubt), "")
    opened = next((value.why for value in given if isinstance(value, Open)), "")
    loads = program.calls(_LOADS)
    why = doubt or (opened if not used else "") or (f"{loads[0].at} loads an adapter" if loads else "")
    if why:
        adapter = _left_open(adapter, why)
    elif not made and not given and _is_seen_whole(program):
        adapter = _absent(program)
    return adapter.overlay(read_each(wraps, _read_wrap)).overlay(_prepared(program, bool(used)))


def _read_config(call: Call) -> Configuration:
    """As in the ``adapter_config.json`` that it would write, with the defaults that every release shares."""
    name = last_name(call).removesuffix("Config")
    said = document(call)
    kind = _TYPES.get(name, name.upper())
    origins = {**said.origins, ("peft_type",): call.at}
    sheet_of = said._replace(value={**said.value, "peft_type": kind}, origins=origins)
    read = peft_adapter.read(sheet_of)
    if kind != "LORA":
        return read
    sheet = Sheet(said)
    for fact, default in _DEFAULTS.items():
        if fact not in said.value:
            sheet.default(f"training.lora.{fact}", default)
    return sheet.configuration().overlay(read._replace(names={}))


def _read_wrap(call: Call) -> Configuration:
    sheet = Sheet(document(call, "model", "peft_config"))
    sheet.read(FLAG, "training.lora.autocast_adapter_dtype", "autocast_adapter_dtype")
    return sheet.configuration()


def _left_open(adapter: Configuration, why: str) -> Configuration:
    facts = adapter.facts.without(*_FACTS)
    return Configuration(facts._replace(reasons={**facts.reasons, **dict.fromkeys(_FACTS, why)}))


def _is_seen_whole(program: Program) -> bool:
    """Whether nothing can bring an adapter: the model of each Trainer is seen from its load on, and all it is given."""
    wrapped = program.calls(r"(?:peft|unsloth)\..*") or program.methods("add_adapter", "load_adapter", "set_adapter")
    gaps = any(call.gap for call in program.trainers)
    return program.is_traced and not wrapped and not gaps


def _absent(program: Program) -> Configuration:
    sheet = Sheet(document(program.trainers[0]))
    sheet.state("training.lora", None, CALL)
    if not program.methods("requires_grad_") and not program.last_assignment("requires_grad"):
        sheet.state("training.method", "full", CALL)
    return sheet.configuration()


def _prepared(program: Program, is_used: bool) -> Configuration:
    """A script prepares the model or does not; TRL's Trainers do it themselves where they are given a peft_config."""
    calls = program.calls(_PREPARES)
    if calls:
        return read_each(calls, _read_prepare)
    if not is_used or not program.is_traced or any(library_prepares(call) for call in program.trainers):
        return NOTHING
    sheet = Sheet(document(program.trainers[0]))
    sheet.state("training.kbit_prepared", False)
    return sheet.configuration()


def library_prepares(trainer: Call) -> bool:
    return trainer.callee.startswith(("trl.", "unsloth.")) and "peft_config" in trainer.keywords


def _read_prepare(call: Call) -> Configuration:
    """Gradient checkpointing is on by default here."""
    sheet = Sheet(document(call, "model", "use_gradient_checkpointing"))
    sheet.state("training.kbit_prepared", True, CALL)
    if sheet.read(FLAG, "training.gradient_checkpointing", "use_gradient_checkpointing") is False:
        return Configuration(sheet.facts().without("training.gradient_checkpointing"))
    sheet.default("training.gradient_checkpointing", True, CALL)
    return sheet.configuration()
