"""``TrainingArguments`` of transformers and the configurations that TRL and others derive from them."""

from __future__ import annotations

from compatcheck.project.script_calls.calls import Call
from compatcheck.project.scripts._program import ARGUMENTS, CALL, Program, document, framework, last_name, read_each
from compatcheck.project.training._sheet import Sheet
from compatcheck.project.training._values import RESUME
from compatcheck.project.training.document import Configuration
from compatcheck.project.training.formats import training_arguments

_ASKS_FOR_BFLOAT16 = ("is_bf16_supported", "is_bfloat16_supported", "is_torch_bf16_gpu_available")
_RESUMED = "resume_from_checkpoint"


def read(program: Program) -> Configuration:
    """What the arguments say that a Trainer is given; of arguments alone, what they all say."""
    made = program.calls(ARGUMENTS)
    used = [
        call for call in made if any(call in (*each.keywords.values(), *each.positional) for each in program.trainers)
    ]
    trained = [call for call in program.methods("train") if call.owner in program.trainers]
    arguments = read_each(used or made, _read_arguments, needed=bool(program.trainers))
    return arguments.overlay(read_each(trained, _read_train, needed=True))


def _read_arguments(call: Call) -> Configuration:
    """PPOConfig was a class of its own up to TRL 0.11, with other defaults."""
    given = document(call, "output_dir")
    if last_name(call) == "PPOConfig" and not given.partial:
        given = given._replace(partial="the defaults of PPOConfig changed between releases of TRL")
    said = training_arguments.read_call(given, framework(call))
    asked = call.keywords.get("bf16")
    if isinstance(asked, Call) and last_name(asked) in _ASKS_FOR_BFLOAT16 and "fp16" in call.keywords:
        sheet = Sheet(given)
        sheet.state("training.dtype_rule", "bfloat16-if-supported", ("bf16",))
        return said.overlay(sheet.configuration())
    return said


def _read_train(call: Call) -> Configuration:
    """Read the argument of ``train`` that resumes; the one of TrainingArguments is only for the user's own script."""
    sheet = Sheet(document(call, _RESUMED))
    sheet.read(RESUME, f"training.{_RESUMED}", _RESUMED)
    sheet.default(f"training.{_RESUMED}", False, CALL)
    return sheet.configuration()
