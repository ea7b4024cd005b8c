"""Which command of a script starts a training: its launcher, its number of processes, its framework and flags.

Launchers: ``torchrun`` (torch/distributed/run.py), ``deepspeed`` (deepspeed/launcher/runner.py), ``accelerate launch``
(accelerate/commands/launch.py), and the commands and scripts of the known frameworks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from compatcheck.environment import Location
from compatcheck.packages.frameworks import LaunchCommand, frameworks
from compatcheck.project.python_values import Open
from compatcheck.project.script_calls.calls import CommandLine
from compatcheck.project.training._shell import OPEN, Command, Word, is_open
from compatcheck.project.training._values import parse_number

_WRAPPERS = frozenset(
    (
        *("nohup", "srun", "env", "time", "eval", "exec", "sudo", "mpirun", "uv", "uvx", "poetry", "conda", "mamba"),
        *("stdbuf", "numactl", "nice", "singularity", "apptainer", "pdsh", "pixi", "micromamba", "bash", "sh"),
        "ray",
    )
)
_GENERAL_LAUNCHERS = ("torchrun", "deepspeed", "accelerate", "python")
_SCHEDULERS = frozenset(("srun", "mpirun", "pdsh"))
_BARE = {
    "torchrun": ("standalone", "no_python", "run_path", "m", "module", "use_env"),
    "deepspeed": ("module", "no_python", "no_local_rank", "no_ssh", "force_multi", "save_pid", "elastic_training"),
    "accelerate": (
        *("multi_gpu", "use_deepspeed", "use_fsdp", "cpu", "use_cpu", "tpu", "same_network", "debug", "m", "module"),
        *("no_python", "quiet", "q", "use_megatron_lm", "enable_cpu_affinity", "dynamo_use_fullgraph"),
        *("dynamo_use_dynamic", "use_xpu", "use_parallelism_config", "no_ssh"),
    ),
    "python": ("u", "O", "B", "E", "s", "S", "I", "OO", "v", "q"),
}
_OF_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
}
_TRAINER = frozenset(
    (
        *("per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs", "learning_rate", "bf16"),
        *(
            "output_dir",
            "gradient_checkpointing",
            "deepspeed",
            "lr_scheduler_type",
            "fp16",
            "save_strategy",
            "max_steps",
        ),
    )
)
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_CONFIG_ENDINGS = (".yaml", ".yml", ".json", ".py")


class Launch(NamedTuple):
    """One training as a command starts it.

    ``verb`` is what the ``framework`` is to do, ``config`` the file or name it is given, and ``flags`` the rest, with
    the line of each. ``options`` are the launcher's own. It is ``spread`` where a scheduler starts it on several nodes.
    ``script`` is the user's own Python that it runs, with the ``words`` that this is given; it is ``sure`` that it
    trains where the command alone shows it.
    """

    launcher: str
    framework: str
    verb: str | None
    config: Word | None
    flags: Mapping[str, Any]
    lines: Mapping[str, int]
    options: Mapping[str, Word]
    environ: Mapping[str, Word]
    line: int
    spread: bool = False
    script: Word | None = None
    words: Sequence[Word] = ()
    sure: bool = True


@cache
def _commands() -> Mapping[str, tuple[str, LaunchCommand]]:
    """The commands of frameworks, each with the framework that it starts."""
    return {command.name: (name, command) for name, each in frameworks().items() for command in each.commands}


@cache
def _scripts() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), name) for name, each in frameworks().items() for pattern in each.scripts)


def launch_of(command: Command) -> Launch | None:
    """The training that a command starts, if it starts one of a kind known here."""
    found = _launch_of(command)
    return found and found._replace(spread=any(_name(word) in _SCHEDULERS for word in command.words[:1]))


def _launch_of(command: Command) -> Launch | None:
    words = _from_launcher(command.words)
    if not words:
        return None
    launcher, line, rest = _name(words[0]), words[0].line, words[1:]
    if launcher == "python":
        options, rest = _options(rest, "python", stop_at_module=True)
        if rest and rest[0].text in _OF_MODULES:
            launcher, rest = _OF_MODULES[rest[0].text], rest[1:]
            if launcher == "accelerate":
                rest = (Word("launch", line), *rest)
    if launcher in _commands():
        return _from_command(launcher, launcher, rest, {}, command, line)
    if launcher == "accelerate":
        if not rest or rest[0].text != "launch":
            return None
        rest = rest[1:]
    options, rest = ({}, rest) if launcher == "python" else _options(rest, launcher)
    if not rest:
        return None
    return _from_script(launcher, rest, options, command, line)


def _from_launcher(words: Sequence[Word]) -> tuple[Word, ...]:
    """The words from the launcher on, past what only wraps it."""
    if not words:
        return ()
    if _name(words[0]) in _WRAPPERS:
        starts = [number for number, word in enumerate(words) if _is_launcher(word)]
        return tuple(words[starts[0] :]) if starts else ()
    return tuple(words) if _is_launcher(words[0]) else ()


def _is_launcher(word: Word) -> bool:
    name = _name(word)
    return name in _GENERAL_LAUNCHERS or name in _commands()


def _name(word: Word) -> str:
    name = os.path.basename(word.text)
    return "python" if re.fullmatch(r"python3?(\.\d+)?", name) else name


def _options(
    words: Sequence[Word], launcher: str, stop_at_module: bool = False
) -> tuple[dict[str, Word], tuple[Word, ...]]:
    """The launcher's own options, and the words from the script on."""
    options: dict[str, Word] = {}
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        name, equals, value = words[at].text.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if stop_at_module and name == "m":
            return options, tuple(words[at + 1 :])
        if equals:
            options[name] = Word(value, words[at].line)
            at += 1
        elif name in _BARE[launcher] or at + 1 >= len(words):
            options[name] = Word("true", words[at].line)
            at += 1
        else:
            options[name] = Word(words[at + 1].text, words[at].line)
            at += 2
    return options, tuple(words[at:])


def _from_command(
    launcher: str, name: str, words: Sequence[Word], options: Mapping[str, Word], command: Command, line: int
) -> Launch | None:
    """The training that a framework's own command starts, by itself or under another launcher."""
    framework, own = _commands()[name]
    if not words or words[0].text not in own.verbs:
        return None
    verb, words = words[0].text, words[1:]
    if own.processes == "torchrun":
        options, words = _options(words, "torchrun")
        if not words:
            return None
        launcher, verb, words = "torchrun", words[0].text, words[1:]
    return _launch(launcher, framework, verb, words, options, command, line)


def _from_script(
    launcher: str, words: Sequence[Word], options: Mapping[str, Word], command: Command, line: int
) -> Launch | None:
    script, rest = words[0], words[1:]
    if launcher != "python" and _name(script) in _commands():
        return _from_command(launcher, _name(script), rest, options, command, line)
    for pattern, name in _scripts():
        match = pattern.search(script.text)
        if match:
            verb = match[1] if pattern.groups else None
            found = _launch(launcher, name, verb, rest, options, command, line)
            own = frameworks()[name].reader == "training_arguments"
            return found._replace(script=script, words=rest) if own else found
    found = _launch(launcher, "transformers", None, rest, options, command, line)
    for name, framework in frameworks().items():
        if framework.own_flags and found.flags.keys() >= {*framework.own_flags}:
            return found._replace(framework=name)
    trains = len(_TRAINER & set(found.flags)) >= 2 or (
        found.config and found.config.text != OPEN and launcher != "python"
    )
    sure = bool(trains) and "no_trainer" not in script.text
    return found._replace(script=script, words=rest, sure=sure)


def _launch(
    launcher: str,
    framework: str,
    verb: str | None,
    words: Sequence[Word],
    options: Mapping[str, Word],
    command: Command,
    line: int,
) -> Launch:
    flags, lines, positional = _flags(words)
    config = next((word for word in positional if word.text.endswith(_CONFIG_ENDINGS) or framework == "xtuner"), None)
    if config is None:
        config, flags = _configuration(flags, lines, framework)
    return Launch(launcher, framework, verb, config, flags, lines, options, command.environ, line)


def command_line(launch: Launch, path: str) -> CommandLine:
    """What the command gives to the user's own script; ``path`` is the file that the command stands in."""
    flags, lines, positional = _flags(launch.words)
    places: dict[int | str, Location] = {name: Location(path, line) for name, line in lines.items()}
    places |= {number: Location(path, word.line) for number, word in enumerate(positional)}
    return CommandLine(flags, tuple(_scalar(word.text) for word in positional), places)


def _configuration(
    flags: dict[str, Any], lines: Mapping[str, int], framework: str
) -> tuple[Word | None, dict[str, Any]]:
    """The configuration that a flag names, and the other flags."""
    for name in frameworks()[framework].config_flags:
        value = flags.get(name)
        file = value[0] if isinstance(value, list) else value
        if isinstance(file, (str, Open)):
            rest = {other: each for other, each in flags.items() if other != name}
            return Word(OPEN if isinstance(file, Open) else file, lines[name]), rest
    return None, flags


def _flags(words: Sequence[Word]) -> tuple[dict[str, Any], dict[str, int], list[Word]]:
    """Flags by name with their values, and what stands without one; ``key=value`` is a flag too."""
    values: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    positional: list[Word] = []
    name = None
    for word in words:
        key = re.match(r"(--?)?\+{0,2}([A-Za-z_][\w.-]*)(?:=(.*))?\Z", word.text, re.DOTALL | re.ASCII)
        if key and (key[1] or (key[3] is not None and name is None)):
            name = key[2].replace("-", "_")
            values[name], lines[name] = ([] if key[3] is None else [key[3]]), word.line
            name = name if key[1] and key[3] is None else None
        elif name is not None:
            values[name].append(word.text)
        else:
            positional.append(word)
    flags = {name: _typed(given) for name, given in values.items()}
    for name in [name for name in flags if name.rpartition(".")[2].startswith("no_") and flags[name] is True]:
        positive = re.sub(r"(.*\.)?no_", r"\1", name, count=1)
        flags.setdefault(positive, False)
        lines.setdefault(positive, lines[name])
    return flags, lines, positional


def _typed(values: list[str]) -> object:
    if not values:
        return True
    return _scalar(values[0]) if len(values) == 1 else [_scalar(value) for value in values]


def _scalar(text: str) -> object:
    if is_open(text):
        return Open("a variable or command of the script sets the value")
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text in ("None", "null"):
        return None
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    number = parse_number(text) if re.match(r"[-+.\d]", text) else None
    return text if number is None else number


def world_size(launch: Launch) -> tuple[int | None, str, int]:
    """The number of processes with the line that gives it, or ``None`` with the reason."""
    unknown = "the script does not show how many processes it starts"
    if launch.launcher == "python" and frameworks()[launch.framework].by_ray:
        return None, "Ray starts the processes", launch.line
    if launch.launcher == "accelerate":
        count = _count(launch.options.get("num_processes"))
        return count, "accelerate's own configuration or the machine sets the value", _line(launch, "num_processes")
    if launch.launcher in ("torchrun", "deepspeed"):
        return _count_processes(launch)
    if launch.launcher == "python":
        return None if launch.spread else 1, unknown, launch.line
    per_node, nodes = launch.environ.get("NPROC_PER_NODE"), launch.environ.get("NNODES")
    _, command = _commands()[launch.launcher]
    if command.processes is None:
        return None, unknown, launch.line
    silent = 1 if command.processes == "one" else _visible(launch)
    processes = silent if per_node is None else _count(per_node)
    machines = 1 if nodes is None else _count(nodes)
    line = per_node.line if per_node else launch.line
    return (processes * machines if processes and machines else None), unknown, line


def _count_processes(launch: Launch) -> tuple[int | None, str, int]:
    """``torchrun`` starts one process on one node unless told otherwise, ``deepspeed`` one for each GPU it sees."""
    why = "the script does not show how many processes it starts"
    if launch.launcher == "torchrun":
        per_node = launch.options.get("nproc_per_node")
        nodes = launch.options.get("nnodes")
        everywhere = per_node is not None and per_node.text in ("gpu", "auto")
        processes = _visible(launch) if everywhere else 1 if per_node is None else _count(per_node)
        machines = _count(nodes) if nodes or launch.spread else 1
        line = _line(launch, "nproc_per_node")
    else:
        included = launch.options.get("include")
        listed = re.fullmatch(r"[\w.-]+:(\d+(?:,\d+)*)", included.text) if included else None
        processes = len(listed[1].split(",")) if listed else _count(launch.options.get("num_gpus"))
        if processes is None and not included:
            processes = _visible(launch)
        nodes = launch.options.get("num_nodes")
        spread = "hostfile" in launch.options or "H" in launch.options
        machines = None if spread and nodes is None else 1 if nodes is None else _count(nodes)
        line = _line(launch, "include" if included else "num_gpus")
    return (processes * machines if processes and machines else None), why, line


def _count(word: Word | None) -> int | None:
    return int(word.text) if word and re.fullmatch(r"[1-9]\d{0,5}", word.text) else None


def _visible(launch: Launch) -> int | None:
    """How many devices a launch is shown, where a variable of their makers lists them."""
    words = [launch.environ[name] for name in _VISIBLE if name in launch.environ]
    lists = [re.fullmatch(r"\d+(?:,\d+)*", word.text.replace(" ", "")) for word in words]
    counts = {len(listed[0].split(",")) if listed else None for listed in lists}
    return counts.pop() if len(counts) == 1 else None


def _line(launch: Launch, option: str) -> int:
    return launch.options[option].line if option in launch.options else launch.line
