"""The flags of shell scripts and one-line commands that start a training; nothing of them is run.

Variables that the script itself sets are filled in. The flags go to the reader of the framework that the command
starts, over the configuration it names. Several trainings in one script decide what they agree on.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from compatcheck.environment import Environment, Location, Unknown
from compatcheck.environment.paths import merge, nest
from compatcheck.errors import InputError
from compatcheck.packages.frameworks import frameworks
from compatcheck.project.python_values import Open
from compatcheck.project.script_calls.calls import CommandLine
from compatcheck.project.scripts.settings.accelerate import LAUNCHER_MAY_SET
from compatcheck.project.scripts.settings.deepspeed import FROM_ARGUMENTS
from compatcheck.project.training import readers, trains
from compatcheck.project.training._environ import is_read
from compatcheck.project.training._launchers import Launch, command_line, launch_of, world_size
from compatcheck.project.training._paths import File, existing, folders_of
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._shell import Word, commands, is_open
from compatcheck.project.training.agreement import agreed_configuration, given, over_accelerate
from compatcheck.project.training.document import Configuration, Document, Keys
from compatcheck.project.training.formats import accelerate, python_script, training_arguments, verl

TITLE = "a launch script"
SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch")
ROLE = "script"
MARKS = (
    *("torchrun", "deepspeed", "accelerate", "torch.distributed", "python"),
    *(mark for framework in frameworks().values() for mark in framework.marks),
)

Opener = Callable[[str], "tuple[str, Document] | None"]

_OVER_THE_TRAINER = ("transformers", "trl", "llama-factory")
"""What reads its arguments as the Trainer does: DeepSpeed and FSDP come from these, or from accelerate's launcher."""
_OVERRIDES = {
    "batch_size": "training.per_device_train_batch_size",
    "accumulative_counts": "training.gradient_accumulation_steps",
    "max_length": "training.max_length",
    "lr": "training.learning_rate",
    "max_norm": "training.max_grad_norm",
    "max_epochs": "training.num_train_epochs",
    "dtype": "training.dtype",
}
_ALONE = {"training.gradient_accumulation_steps": 1, "training.mixed_precision": "no"}
_CONFIGURATIONS = (".yaml", ".yml", ".json")
_CONFIG_FLAGS = ("config", "config_file")
_DEEPSPEED_FLAGS = ("deepspeed", "deepspeed_config")
_PARSERS = re.compile(r"\b(?:HfArgumentParser|TrlParser|H4ArgumentParser|parse_(?:json|yaml)_file)\b")
_ACCELERATE_SECTIONS = {"fsdp_": "fsdp_config", "dynamo_": "dynamo_config"}
_OF_DEEPSPEED = (
    *("zero_stage", "offload_optimizer_device", "offload_param_device", "gradient_clipping", "zero3_save_16bit_model"),
    *("deepspeed_config_file", "gradient_accumulation_steps", "zero3_init_flag"),
)


def _nothing(path: str) -> tuple[str, Document] | None:
    return None


def recognises(document: Document) -> bool:
    """Whether a script starts a training of a kind known here."""
    return document.value is None and bool(_launches(document.text, document.path))


def read(document: Document, opened: Opener = _nothing) -> Configuration:
    """What the trainings of a script decide; ``opened`` gives the file that a path in it means, where there is one."""
    launches = _launches(document.text, document.path)
    told = [_read_launch(launch, document, opened) for launch in launches]
    lines = ", ".join(str(launch.line) for launch in launches)
    said = agreed_configuration(told, f"the trainings at lines {lines:.80} of {document.path} set different values")
    if all(each.names.get("deepspeed") == said.names.get("deepspeed") for each in told):
        return said
    why = f"the trainings of {document.path} use different DeepSpeed configurations"
    return said._replace(facts=said.facts._replace(reasons={**said.facts.reasons, "training.deepspeed": why}))


def read_pasted(document: Document, opened: Opener) -> Configuration | None:
    """What the commands of a text decide that is no file: nothing on this machine is looked up.

    ``opened`` gives the pieces of the text for the files that its commands name. Of a command that may train or not,
    only what it gives its launcher counts. None where no command decides anything.
    """
    launches = [found for command in commands(document.text, document.path) if (found := launch_of(command))]
    told = [said for launch in launches if (said := _read_pasted(launch, document, opened))]
    lines = ", ".join(str(launch.line) for launch in launches)
    return agreed_configuration(told, f"the trainings at lines {lines:.80} set different values") if told else None


def _read_pasted(launch: Launch, document: Document, opened: Opener) -> Configuration | None:
    script = opened(launch.script.text) if launch.script and not is_open(launch.script.text) else None
    if script and script[0] == "python_script":
        said = python_script.read(script[1], _given(launch, document, script[1], opened))
        if said.facts.facts:
            said = _with_deepspeed_flag(said, launch, document)
            if _leaves_to_launcher(said.facts):
                said = _without_launcher(_completed(said, launch, document, True), launch)
            return _with_launcher(said, launch, document, opened)
    if launch.sure:
        said = _with_launcher(_read_trainer(launch, document, opened), launch, document, opened)
        return said._replace(facts=_with_framework(said.facts, launch, document))
    named = next((file for flag in _DEEPSPEED_FLAGS if isinstance(file := launch.flags.get(flag), str)), None)
    names = {"deepspeed": named} if named else {}
    if launch.launcher == "python" or not launch.options:
        return Configuration(Environment({}), names) if names else None
    said = _with_launcher(Configuration(Environment({})), launch, document, opened)
    facts = given(said.facts)
    if "use_fsdp" in launch.options and not facts.states("training.fsdp"):
        facts = facts.overlay(Environment({"training": {"fsdp": {}}}))
    return said._replace(facts=facts._replace(reasons={}), names={**said.names, **names})


def _with_framework(facts: Environment, launch: Launch, document: Document) -> Environment:
    """With the framework that a command of its own starts, where the configuration that says the rest is not here."""
    if launch.framework == "transformers" or facts.states("training.framework"):
        return facts
    at = Location(document.path, launch.line)
    return facts.overlay(Environment({"training": {"framework": launch.framework}}, {}, {"training.framework": at}))


@functools.lru_cache(maxsize=4)
def _launches(text: str, path: str) -> tuple[Launch, ...]:
    """The trainings of a script; a command that starts the user's own Python is one if that trains."""
    found = (launch_of(command) for command in commands(text, path))
    return tuple(launch for launch in found if launch is not None and (launch.sure or _program_of(launch, path)))


def _program_of(launch: Launch, path: str) -> str | None:
    """The user's own script that a command in this file starts, where it is here and trains."""
    if launch.script is None or is_open(launch.script.text) or not os.path.isfile(path):
        return None
    name = launch.script.text
    name = name if name.endswith(".py") else f"{name.replace('.', '/')}.py"
    found = existing(name, folders_of([File("launch_script", path)]))
    return found[0] if len(found) == 1 and trains(found[0]) else None


def _read_launch(launch: Launch, document: Document, opened: Opener) -> Configuration:
    program = _program_of(launch, document.path)
    said = _read_program(program, launch, document, opened) if program else None
    said = said or _read_trainer(launch, document, opened)
    return _with_launcher(said, launch, document, opened)


def _with_launcher(said: Configuration, launch: Launch, document: Document, opened: Opener) -> Configuration:
    """With the processes, the variables and the settings that the launcher gives to a training."""
    sheet = Sheet(document._replace(lines={("command",): launch.line}, value={}))
    sheet.state("training.launcher", launch.launcher, ("command",))
    count, why, line = world_size(launch)
    if count is not None and not (launch.launcher == "python" and said.facts.states("training.world_size")):
        sheet.document = document._replace(lines={("processes",): line})
        sheet.state("training.world_size", count, ("processes",))
    elif isinstance(said.facts.get("training.world_size"), Unknown):
        sheet.unknown("training.world_size", why)
    for name, word in launch.environ.items():
        if is_read(name) and not is_open(word.text):
            sheet.document = document._replace(lines={(name,): word.line})
            sheet.state(f"environ.{name}", word.text, (name,))
    if launch.launcher == "accelerate":
        said = over_accelerate(_read_accelerate(launch, document, opened), said)
    return said._replace(facts=said.facts.overlay(sheet.facts()))


def _read_program(path: str, launch: Launch, document: Document, opened: Opener) -> Configuration | None:
    """What the user's own script makes of the flags."""
    program = opened(os.path.abspath(path))
    if program is None:
        return None
    said = python_script.read(program[1], _given(launch, document, program[1], opened))
    if not said.facts.facts:
        return None
    said = _with_model(_with_deepspeed_flag(said, launch, document), launch, document)
    if not _leaves_to_launcher(said.facts):
        return said
    return _without_launcher(_completed(said, launch, document, True), launch)


def _with_deepspeed_flag(said: Configuration, launch: Launch, document: Document) -> Configuration:
    """The file that DeepSpeed's own parser takes, where ``initialize`` is given only what was parsed."""
    named = launch.flags.get("deepspeed_config")
    if not isinstance(named, str) or said.facts.get("training.deepspeed") != Unknown(FROM_ARGUMENTS):
        return said
    at = Location(document.path, launch.lines["deepspeed_config"])
    return said._replace(names={**said.names, "deepspeed": named}, places={**said.places, "deepspeed": at})


def _without_launcher(said: Configuration, launch: Launch) -> Configuration:
    """What an Accelerator does by itself, where accelerate's launcher does not start it."""
    facts = said.facts
    for fact, value in _ALONE.items() if launch.launcher in ("python", "torchrun") else ():
        if facts.get(fact) == Unknown(LAUNCHER_MAY_SET):
            facts = facts.with_fact(fact, value)
    return said._replace(facts=facts)


def _leaves_to_launcher(facts: Environment) -> bool:
    """Whether a program that was seen whole brings no DeepSpeed itself."""
    why = facts.get("training.deepspeed")
    if why == Unknown():
        return bool(facts.get("training.framework") == "accelerate")
    return bool(why == Unknown(training_arguments.LAUNCHER_DECIDES))


def _with_model(said: Configuration, launch: Launch, document: Document) -> Configuration:
    """The one model folder that the command gives to a script, where the script's own use of it is not followed."""
    bases = folders_of([File("launch_script", document.path)])
    if existing(said.names.get("model", ""), bases):
        return said
    found = [path for word in launch.words if not is_open(word.text) for path in existing(word.text, bases)]
    folders = {path for path in found if os.path.isfile(os.path.join(path, "config.json"))}
    return said._replace(names={**said.names, "model": folders.pop()}) if len(folders) == 1 else said


def _given(launch: Launch, document: Document, program: Document, opened: Opener) -> CommandLine:
    """The flags, over the YAML or JSON that they name where the script's parser reads such files."""
    line = command_line(launch, document.path)
    named = [*(line.flags.get(flag) for flag in _CONFIG_FLAGS), *line.positional]
    path = next((each for each in named if isinstance(each, str) and each.endswith(_CONFIGURATIONS)), None)
    config = opened(path) if path and _PARSERS.search(program.text) else None
    if config is None or not isinstance(config[1].value, dict):
        return line
    given = {str(key): value for key, value in config[1].value.items()}
    places: dict[int | str, Location] = {key: config[1].place((key,)) for key in given}
    flags = {name: value for name, value in line.flags.items() if name not in _CONFIG_FLAGS or value != path}
    return line._replace(flags={**given, **flags}, places={**places, **line.places})


def _read_trainer(launch: Launch, document: Document, opened: Opener) -> Configuration:
    """What the framework makes of the configuration and the flags."""
    config = opened(launch.config.text) if launch.config and not is_open(launch.config.text) else None
    config = config if config and config[0] else None
    reader = frameworks()[launch.framework].reader
    if config and isinstance(config[1].value, dict) and any(config[0] == each.reader for each in frameworks().values()):
        reader = config[0]
    if reader is None or (launch.framework == "xtuner" and not config):
        return _bare(launch, document)
    if launch.framework == "xtuner" and config:
        return _read_xtuner(launch, document, config[1])
    merged = _merged(launch, document, config[1] if config else None)
    try:
        said = _read(reader, merged, launch)
    except InputError:
        if not any(isinstance(value, Open) for value in launch.flags.values()):
            raise
        why = f"some flags in line {launch.line} come from variables that the script does not set"
        return Configuration(Environment({}, {"training": why}))
    if launch.config and not config:
        facts = given(said.facts)
        said = said._replace(facts=facts._replace(reasons={**facts.reasons, "training": merged.partial}))
    if reader == "training_arguments" and launch.flags.get("deepspeed") is True:
        return _without_defaults(said, launch)
    return _completed(said, launch, document, bool(config))


def _config_name(config: Word) -> str:
    return "the configuration" if is_open(config.text) else config.text


def _without_defaults(said: Configuration, launch: Launch) -> Configuration:
    """A bare ``--deepspeed`` is that of DeepSpeed's own parser (the Trainer's takes a value): no default is known."""
    facts = given(said.facts)
    why = f"the code that line {launch.line} starts configures DeepSpeed itself"
    open_facts = ("training.framework", "training.deepspeed", "training.dtype")
    return said._replace(facts=Environment(facts.facts, dict.fromkeys(open_facts, why), facts.locations))


def _read(reader: str, merged: Document, launch: Launch) -> Configuration:
    if reader == "training_arguments":
        if launch.framework != "trl":
            return training_arguments.read(merged, _framework_of(merged))
        read_by_trl = training_arguments.read(merged, "trl", complete=launch.verb in training_arguments.OBJECTIVES)
        return _with_call_of_verb(read_by_trl, merged, launch.verb)
    if reader == "verl":
        return verl.read(merged, processes=world_size(launch)[0])
    said: Configuration = readers()[reader].read(merged)
    return said


def _with_call_of_verb(said: Configuration, merged: Document, verb: str | None) -> Configuration:
    """With the arguments that TRL's command gives to the class of its verb, where all of them are at hand."""
    if merged.partial or verb not in training_arguments.OBJECTIVES:
        return said
    class_ = "Reward" if verb == "reward" else verb.upper()
    return said._replace(facts=said.facts.with_fact(f"training.calls.trl.{class_}Config", sorted(merged.value)))


def _framework_of(merged: Document) -> str | None:
    """A plain script with TrainingArguments; its own flags may be called as TRL's are."""
    return None if merged.path.endswith((".yaml", ".yml", ".json")) else "transformers"


def _merged(launch: Launch, document: Document, config: Document | None) -> Document:
    """The configuration with the flags over it, each with the place it really has."""
    origins, flags = _origins(launch, document), dict(launch.flags)
    if frameworks()[launch.framework].dotted_flags:
        origins, flags = {tuple(str(name).split(".")): at for (name,), at in origins.items()}, nest(flags)
    if config is None or not isinstance(config.value, Mapping):
        why = (
            f"{_config_name(launch.config)}, which line {launch.config.line} names, was not found"
            if launch.config
            else ""
        )
        return Document(document.path, document.text, flags, {}, origins, partial=why)
    value = merge(config.value, flags) if frameworks()[launch.framework].dotted_flags else {**config.value, **flags}
    return config._replace(value=value, origins={**config.origins, **origins})


def _origins(launch: Launch, document: Document) -> dict[Keys, Location]:
    return {(name,): Location(document.path, line) for name, line in launch.lines.items()}


def _bare(launch: Launch, document: Document) -> Configuration:
    """A training of which no more is read than its framework and its DeepSpeed configuration."""
    lines: dict[Keys, int] = {("command",): launch.line}
    sheet = Sheet(Document(document.path, document.text, dict(launch.flags), lines, _origins(launch, document)))
    sheet.state("training.framework", launch.framework, ("command",))
    named = launch.flags.get("deepspeed")
    if isinstance(named, str):
        sheet.name("deepspeed", named)
    elif "deepspeed" not in launch.flags and launch.framework == "xtuner" and launch.config:
        sheet.unknown("training.deepspeed", f"{_config_name(launch.config)}, which may bring its own, was not found")
    return sheet.configuration()


def _read_xtuner(launch: Launch, document: Document, config: Document) -> Configuration:
    named = launch.flags.get("deepspeed")
    said: Configuration = readers()["xtuner"].launched(config, named if isinstance(named, str) else None)
    changed = launch.flags.get("cfg_options", [])
    keys = [each.partition("=")[0].split(".")[-1] for each in ([changed] if isinstance(changed, str) else changed)]
    facts = said.facts.without(*(_OVERRIDES[key] for key in keys if key in _OVERRIDES))
    reasons = {_OVERRIDES[key]: "--cfg-options changes it" for key in keys if key in _OVERRIDES}
    places = {"deepspeed": Location(document.path, launch.lines["deepspeed"])} if "deepspeed" in launch.lines else {}
    return said._replace(facts=facts._replace(reasons={**facts.reasons, **reasons}), places={**said.places, **places})


def _completed(said: Configuration, launch: Launch, document: Document, configured: bool) -> Configuration:
    """What the launcher and the verb add: the objective, and that nothing else can bring DeepSpeed."""
    sheet = Sheet(document._replace(lines={("command",): launch.line}))
    environment = said.facts
    verb = {"pt": "pretrain", "rm": "reward"}.get(launch.verb or "", launch.verb)
    objectives = (*training_arguments.OBJECTIVES, "pretrain")
    if verb in objectives and isinstance(environment.get("training.objective"), Unknown):
        sheet.state("training.objective", verb, ("command",))
    alone = launch.launcher not in ("accelerate", "deepspeed") and launch.framework in _OVER_THE_TRAINER
    if alone and (configured or not launch.config):
        silent = not any("deepspeed" in name or name.startswith("ds_") for name in launch.flags)
        undecided = isinstance(environment.get("training.deepspeed"), Unknown) and not said.inlined
        if silent and undecided and "deepspeed" not in said.names:
            sheet.state("training.deepspeed", None)
        if environment.get("training.fsdp") == Unknown():
            sheet.state("training.fsdp", None)
    return said._replace(facts=environment.overlay(sheet.facts()))


def _read_accelerate(launch: Launch, document: Document, opened: Opener) -> Configuration:
    """What ``accelerate launch`` is told: its config file, and its own flags over that."""
    file = launch.options.get("config_file")
    config = opened(file.text) if file and not is_open(file.text) else None
    config = config if config and config[0] else None
    value: dict[str, Any] = dict(config[1].value) if config and isinstance(config[1].value, dict) else {}
    origins: dict[Keys, Location] = {}
    if "use_deepspeed" in launch.options:
        value["distributed_type"] = "DEEPSPEED"
        value.setdefault("deepspeed_config", {})
    elif "use_fsdp" in launch.options:
        value["distributed_type"] = "FSDP"
    for name, word in launch.options.items():
        if not is_open(word.text):
            _lay(value, origins, name, word.text, Location(document.path, word.line))
    if not value.get("distributed_type"):
        why = "accelerate uses the configuration of the machine if no file is passed"
        if file:
            why = f"{file.text}, which is passed to accelerate, was not found" if not is_open(file.text) else why
        flags = Document(document.path, document.text, {**value, "distributed_type": "unknown"}, {}, origins)
        facts = accelerate.read(flags).facts.without("training.deepspeed", "training.fsdp")
        return Configuration(facts._replace(reasons={**facts.reasons, "training.deepspeed": why}))
    base = config[1] if config else Document(document.path, document.text, {}, {})
    return accelerate.read(base._replace(value=value, origins=origins))


def _lay(value: dict[str, object], origins: dict[Keys, Location], name: str, text: str, at: Location) -> None:
    """Put a flag where accelerate's configuration has it."""
    section = "deepspeed_config" if name in _OF_DEEPSPEED else None
    section = section or next((to for head, to in _ACCELERATE_SECTIONS.items() if name.startswith(head)), None)
    if section is None:
        value[name] = text
        origins[(name,)] = at
        return
    inner = value.get(section)
    value[section] = {**(inner if isinstance(inner, Mapping) else {}), name: text}
    origins[(section, name)] = at
