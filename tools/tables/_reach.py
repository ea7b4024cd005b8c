"""What a release asks of other packages where a training run surely gets to.

A run starts at the statements that people write and at the calls that every training makes. From there modules are
followed through their imports, and functions through the calls that stand in no condition that nobody can tell.
"""

from __future__ import annotations

import ast
import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from compatcheck.interfaces.conditions import AVAILABLE, NEVER, OWN, OWN_MORE, UNTOLD, distribution
from compatcheck.interfaces.release import Release
from compatcheck.interfaces.summary import Ask
from compatcheck.packages.frameworks import framework_of_distribution
from tools.tables._interface_packages import tops_of
from tools.tables._statements import STATEMENTS

_CALLED = (
    *("__init__", "__post_init__", "__call__", "train", "fit", "evaluate", "compute_loss", "training_step", "log"),
    *("prediction_step", "get_train_dataloader", "get_eval_dataloader", "create_optimizer", "create_scheduler"),
    *("create_optimizer_and_scheduler", "_prepare_dataset", "forward", "torch_call", "from_pretrained", "prepare"),
    *("save_pretrained", "save_model", "_save", "_save_checkpoint", "generate", "backward", "step", "merge_and_unload"),
    *("_inner_training_loop", "_maybe_log_save_evaluate", "evaluation_loop", "num_examples", "floating_point_ops"),
    *("encode", "collate", "map", "concatenated_forward", "get_batch_loss_metrics", "_get_train_sampler"),
)
"""Methods that a training run calls on the objects of the classes below."""

_PATHS = {
    "transformers": (
        *("Trainer", "TrainingArguments", "Seq2SeqTrainer", "PreTrainedModel", "AutoModelForCausalLM", "AutoTokenizer"),
        *("AutoConfig", "PreTrainedTokenizerBase", "PreTrainedTokenizerFast", "LlamaForCausalLM", "LlamaConfig"),
        *("DataCollatorForSeq2Seq", "DataCollatorForLanguageModeling", "DataCollatorWithPadding", "GenerationMixin"),
        *("BitsAndBytesConfig", "LlamaModel"),
    ),
    "peft": (
        *("get_peft_model", "PeftModel", "PeftModelForCausalLM", "LoraConfig", "LoraModel"),
        "prepare_model_for_kbit_training",
    ),
    "trl": ("SFTTrainer", "SFTConfig", "DPOTrainer", "DPOConfig", "GRPOTrainer", "GRPOConfig", "RewardTrainer"),
    "accelerate": ("Accelerator", "PartialState", "DeepSpeedPlugin", "FullyShardedDataParallelPlugin"),
    "deepspeed": ("initialize", "init_distributed"),
    "datasets": ("load_dataset", "Dataset", "DatasetDict", "load_from_disk"),
    "sentence-transformers": (
        *("SentenceTransformer", "SentenceTransformerTrainer", "SentenceTransformerTrainingArguments", "CrossEncoder"),
        "InputExample",
    ),
    "setfit": ("SetFitModel", "Trainer", "TrainingArguments", "SetFitTrainer"),
    "lightning": ("Trainer",),
    "pytorch-lightning": ("Trainer",),
    "evaluate": ("load",),
    "bitsandbytes": (),
    "torchmetrics": (),
    "timm": ("create_model",),
    "open-clip-torch": ("create_model_and_transforms", "create_model"),
    "diffusers": ("UNet2DConditionModel", "AutoencoderKL", "DDPMScheduler", "DiffusionPipeline"),
    "optimum": (),
    "auto-gptq": ("AutoGPTQForCausalLM",),
    "autoawq": ("AutoAWQForCausalLM",),
    "gptqmodel": ("GPTQModel",),
    "flagembedding": ("FlagModel", "BGEM3FlagModel", "FlagReranker"),
    "unsloth": ("FastLanguageModel",),
    "adapters": ("AutoAdapterModel", "AdapterTrainer"),
    "simpletransformers": ("ClassificationModel",),
    "lm-eval": ("simple_evaluate",),
    "tokenizers": ("Tokenizer",),
    "spacy-transformers": (),
}


class Reached(NamedTuple):
    """A scope that a run gets to, what has to be installed for that, and the first entry that leads there."""

    module: str
    scope: str
    conditions: frozenset[str]
    entry: str


class Walk:
    """Follows one release from its entries."""

    def __init__(self, release: Release, package: str) -> None:
        self.release, self.package = release, package
        self.top = next((each for each in tops_of(package) if each in release.names), _top(release))
        self.tops = {each.partition(".")[0] for each in release.modules}
        self.seen: dict[tuple[str, str], Reached] = {}
        self._queue: list[tuple[int, int, Reached]] = []
        self._order = count()

    def run(self) -> dict[tuple[str, str], Reached]:
        statements = STATEMENTS.get(self.package) or _of_framework(self.package) or (f"import {self.top}",)
        for statement in statements:
            for module, name in _imported(statement):
                self._push(module, "", frozenset(), statement)
                if name:
                    self._follow(f"{module}.{name}", frozenset(), statement)
            self._drain()
        for name in _PATHS.get(self.package, ()):
            found = self.release.named(self.top, name)
            self._follow(f"{self.top}.{name}", frozenset(), f"from {self.top} import {name}")
            self._drain()
            if found.kind == "function":
                self._push(found.module, found.name, frozenset(), name)
            elif found.kind == "class":
                for method in _CALLED:
                    self._method(found.module, found.name, method, frozenset(), name)
            self._drain()
        return self.seen

    def _push(self, module: str, scope: str, conditions: frozenset[str], entry: str) -> None:
        parent = module.rpartition(".")[0]
        if parent and not scope:
            self._push(parent, "", conditions, entry)
        known = self.seen.get((module, scope))
        if module not in self.release.modules or (known and known.conditions <= conditions):
            return
        if known and len(known.conditions) <= len(conditions):
            return
        reached = Reached(module, scope, conditions, known.entry if known else entry)
        self.seen[module, scope] = reached
        heapq.heappush(self._queue, (len(conditions), next(self._order), reached))

    def _drain(self) -> None:
        while self._queue:
            _, _, reached = heapq.heappop(self._queue)
            if self.seen[reached.module, reached.scope] == reached:
                self._visit(reached)

    def _visit(self, reached: Reached) -> None:
        read = self.release.modules[reached.module]
        if reached.scope:
            self._push(reached.module, "", reached.conditions, reached.entry)
        for own in read.loads:
            conditions = settled(self.release, reached.conditions.union(own.conditions))
            if own.scope == reached.scope and conditions is not None:
                module, _, name = own.target.partition(":")
                self._push(module, "", conditions, reached.entry)
                if name:
                    self._follow(f"{module}.{name}", conditions, reached.entry)
        for origin in read.taken if not reached.scope and not read.lazy else ():
            self._push(origin, "", reached.conditions, reached.entry)
        for ask in read.asks:
            conditions = settled(self.release, reached.conditions.union(ask.conditions))
            is_own = ask.kind == "import" and ask.target.partition(".")[0] in self.tops
            if ask.scope == reached.scope and is_own and conditions is not None:
                self._push(ask.target, "", conditions, reached.entry)
        for own in read.calls:
            conditions = settled(self.release, reached.conditions.union(own.conditions))
            if own.scope == reached.scope and conditions is not None:
                self._call(reached, own.target, conditions)

    def _follow(self, dotted: str, conditions: frozenset[str], entry: str) -> None:
        """Load the module that a name comes from, as lazy packages do on demand."""
        found = self.release.find(dotted)
        if found.kind in ("module", "class", "function", "value"):
            self._push(found.module, "", conditions, entry)

    def _call(self, reached: Reached, target: str, conditions: frozenset[str]) -> None:
        first, _, rest = target.partition(".")
        if first in ("self", "super") and rest:
            owner, _, method = rest.rpartition(".")
            if first == "self":
                self._method(reached.module, owner, method, conditions, reached.entry)
            else:
                for base in self.release.bases(reached.module, owner):
                    if base.kind == "class":
                        self._method(base.module, base.name, method, conditions, reached.entry)
            return
        found = self.release.find(target)
        if found.kind == "function" and not found.rest:
            self._push(found.module, found.name, conditions, reached.entry)
        elif found.kind == "class" and not found.rest:
            for method in ("__init__", "__post_init__"):
                self._method(found.module, found.name, method, conditions, reached.entry)
        elif found.kind == "class" and len(found.rest) == 1:
            self._method(found.module, found.name, found.rest[0], conditions, reached.entry)

    def _method(self, module: str, owner: str, method: str, conditions: frozenset[str], entry: str) -> None:
        for each in self.release.line(module, owner):
            known = self.release.class_(each.module, each.name) if each.kind == "class" else None
            if known is None:
                return
            if method in known.methods:
                self._push(each.module, f"{each.name}.{method}", conditions, entry)
                return


def settled(release: Release, conditions: frozenset[str], depth: int = 4) -> frozenset[str] | None:
    """The conditions with what functions of the package return put in place of their calls; None where that is open.

    Where a text tells all that `is_x_available` requires, no distribution is guessed by its name: none is called
    ``training``.
    """
    found: set[str] = set()
    guessed: set[str] = set()
    for atom in conditions:
        if atom[0] not in (OWN, OWN_MORE):
            found.add(atom)
            continue
        function = release.find(atom[1:])
        read = release.modules.get(function.module) if function.kind == "function" and not function.rest else None
        more = read.tests.get(function.name, ()) if read else ()
        inner = settled(release, frozenset(more) - {UNTOLD}, depth - 1) if more and depth else None
        if inner is not None:
            found |= inner
        if atom[0] == OWN and (inner is None or UNTOLD in more):
            return None
        named = AVAILABLE.fullmatch(function.name.lower())
        guess = distribution(named[1]) if named else ""
        if inner and UNTOLD not in more and not any(_is_about(each, guess) for each in inner):
            guessed.add(f"+{guess}")
    return None if NEVER in found else frozenset(found - guessed)


def _is_about(atom: str, package: str) -> bool:
    return re.split(r"[<>=!]", atom.lstrip("+-"))[0] == package


def _of_framework(package: str) -> tuple[str, ...]:
    own = framework_of_distribution(package)
    return tuple(own.imports) if own else ()


def _top(release: Release) -> str:
    return min(release.modules, key=len)


def _imported(statement: str) -> Iterator[tuple[str, str]]:
    for node in ast.parse(statement).body:
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, each.name) for each in node.names)


def asked(release: Release, reached: Mapping[tuple[str, str], Reached], own: str) -> Iterator[tuple[Ask, Reached]]:
    """What the scopes that a run gets to ask of other packages, with all that has to be installed for it."""
    for (module, scope), where in reached.items():
        for ask in release.modules[module].asks:
            if ask.scope != scope:
                continue
            conditions = settled(release, where.conditions.union(ask.conditions))
            if conditions is None:
                continue
            conditions -= {f"+{own}"}
            for each in _at_foreign_bases(release, ask):
                yield each._replace(conditions=tuple(sorted(conditions))), where
    for module, where in ((module, each) for (module, scope), each in reached.items() if not scope):
        for name in release.modules[module].classes:
            for ask in _overrides(release, module, name):
                needed = tuple(sorted(where.conditions - {f"+{own}"}))
                yield ask._replace(conditions=needed), where._replace(entry=name)


def _at_foreign_bases(release: Release, ask: Ask) -> Iterator[Ask]:
    """Where a class of the package itself does not have the method, it is asked of the foreign class above."""
    if ask.kind not in ("super", "method", "member") or ask.target.partition(".")[0] != _top(release):
        yield ask
        return
    found = release.find(ask.target)
    if found.kind == "class" and not found.rest:
        signature, base = release.method(found.module, found.name, ask.name)
        if signature is None and base is not None and base.kind == "foreign":
            yield ask._replace(target=base.module)


def _overrides(release: Release, module: str, name: str) -> Iterator[Ask]:
    """The methods of a class below a foreign one; ``keywords`` are the signature and the other methods."""
    line = list(release.line(module, name))
    if not line or line[-1].kind != "foreign" or len(line) > 6:
        return
    methods: dict[str, str] = {}
    for each in line[:-1]:
        known = release.class_(each.module, each.name)
        for method, signature in known.methods.items() if known else ():
            methods.setdefault(method, signature)
    own = release.class_(module, name)
    for method in own.methods if own else ():
        if not method.startswith("__"):
            words = " ".join(methods[method].split()[1:]) if methods[method] != "?" else "?"
            others = tuple(sorted(methods))
            yield Ask("override", line[-1].module, method, 0, (words, *others), name, (), 0)


def self_calls(
    release: Release, reached: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], list[tuple[int, tuple[str, ...], str]]]:
    """By class and method how the class's own code calls it, where a run gets to, and in which method."""
    found: dict[tuple[str, str], list[tuple[int, tuple[str, ...], str]]] = {}
    for module, scope in reached:
        for call in release.modules[module].self_calls:
            if call.scope == scope and "?" not in call.conditions:
                scopes = found.setdefault((f"{module}:{call.owner}", call.method), [])
                scopes.append((call.places, call.keywords, scope.rpartition(".")[2]))
    return found
