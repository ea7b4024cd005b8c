"""What a run shows: the signature of its readings, when it began, and what is odd but no fault."""

from __future__ import annotations

import math
from collections.abc import Iterator

from compatcheck.environment import Location
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.results.logs import Crash, Curve, Moment, Run, Signature
from compatcheck.symptoms import _failures
from compatcheck.symptoms._log_growth import grows
from compatcheck.symptoms._run import Placed, RunReader, Stretch
from compatcheck.symptoms._state import groups_behind

_CONSTANT = 20
_LEAST_SCALE = 2
_UNITS = {"memory_mib": "MiB"}
_WRAPPERS = ("ChildFailedError", "CalledProcessError", "SystemExit", "KeyboardInterrupt", "RayTaskError")

HEALTHY = Signature("healthy", "healthy: the loss stays finite and the log shows no sign of a fault", benign=True)
_NO_READINGS = Signature("no-readings", "no training step was logged", benign=True)
_TOO_FEW = Signature("too-few-readings", "too few steps were logged to judge the run", benign=True)


def _signature(name: str, words: str, symptoms: str, *, benign: bool = False) -> Signature:
    return Signature(name, words, frozenset(symptoms.split()), benign)


MASKED = _signature(
    "labels-masked",
    "loss 0.0 with grad_norm exactly 0.0: no label counts (the loss is 0/0, and the Trainer's NaN filter logs 0.0)",
    "loss-zero grad-norm-zero",
)
SOMETIMES_MASKED = _signature(
    "labels-masked-sometimes",
    "single steps with loss 0.0 and grad_norm exactly 0.0: in these batches no label counts",
    "loss-zero grad-norm-zero",
)
FILTERED = _signature(
    "nan-gradients-filtered",
    "loss 0.0 with grad_norm nan: the gradients are NaN, and the Trainer's NaN filter logs the loss as 0.0",
    "loss-zero grad-norm-nan loss-nan",
)
SENTINEL = _signature(
    "deepspeed-sentinel",
    (
        "loss 0.0 with a constant grad_norm of sqrt({n}): DeepSpeed uses -1 as the norm of each "
        "parameter group whose gradients are not finite"
    ),
    "loss-zero grad-norm-constant grad-norm-nan loss-nan",
)
ZERO_ALONE = _signature(
    "loss-zero",
    ("loss 0.0 without a logged gradient norm: either the Trainer's filter hides NaN, or no label counts"),
    "loss-zero loss-nan",
)
ZERO_WITH_GRADIENT = _signature(
    "loss-zero-with-gradient",
    "loss 0.0 with gradients that are neither zero nor NaN; this is not a typical sign of NaN",
    "loss-zero",
)
ROUNDED = _signature(
    "loss-rounds-to-zero",
    "the loss fell so far that it is printed as 0.0: the model has memorised the data",
    "",
    benign=True,
)
NOT_FINITE = _signature("loss-nan", "the loss is not finite", "loss-nan")
NOT_FINITE_BOTH = _signature("loss-nan", "the loss and grad_norm are not finite", "loss-nan grad-norm-nan")
SOMETIMES_NOT_FINITE = _signature(
    "loss-nan-sometimes", "the loss is not finite at {count} of {readings} steps", "loss-nan"
)._replace(details=(marked("single steps: either a batch overflows in fp16, or no label counts in it"),))
GRADIENT_LARGE = _signature(
    "grad-norm-large", "grad_norm reaches {norm}: with gradients of this size nothing is learned", "grad-norm-large"
)
GRADIENT = _signature(
    "grad-norm-nan", "grad_norm is not finite at every step while the loss stays finite", "grad-norm-nan"
)._replace(details=(marked("in fp16, the loss scaler may only be skipping steps; check whether the loss still falls"),))
SKIPS = _signature(
    "loss-scaler-skips",
    "grad_norm is not finite at single steps while the loss continues: typical of an fp16 loss scaler that skips steps",
    "",
    benign=True,
)
GRADIENT_ZERO = _signature("grad-norm-zero", "grad_norm is exactly 0.0 while the loss is not: nothing is learned",
                           "grad-norm-zero")  # fmt: skip
OVERFLOWS = _signature(
    "overflow-at-every-step",
    "every step is skipped because gradients overflow at every loss scale",
    "grad-norm-nan loss-nan",
)
EVALUATION = _signature("eval-loss-nan", "eval_loss is not finite, but the training loss is finite", "eval-loss-nan")
DIVERGED = _signature("divergence", "the loss rose and stayed far above its lowest value", "loss-diverges")
CONSTANT = _signature("loss-constant", "the loss is the same number at every step", "loss-constant")
GROWTH = _signature("memory-growth", "memory grows with every reading and does not settle", "memory-growth")


def run_of(reader: RunReader, crashes: tuple[Crash, ...], path: str) -> Run:
    """The run that a reader has seen to its end, with the crash that ended it."""
    crash = _ending(reader, crashes)
    signature, onset = _reader_signature(reader)
    if signature.benign and reader.not_finite is not None:
        signature, onset = _sometimes_not_finite(reader), reader.not_finite
    bad = reader.bad_evaluation
    if bad is not None and signature.symptoms and signature is not EVALUATION:
        said = (*signature.details, _("eval_loss is not finite either, from line {number} on").format(number=bad.line))
        signature = signature._replace(symptoms=signature.symptoms | EVALUATION.symptoms, details=said)
    notes = tuple(_notes(reader, signature))
    if signature.benign and crash is not None:
        failure = _failures.of_kind(crash.kind)
        out_of_memory = "out-of-memory" in failure.symptoms
        details = tuple(_failures.memory_details(crash.text)) if out_of_memory else ()
        if signature not in (HEALTHY, _NO_READINGS, _TOO_FEW):
            notes = (signature, *notes)
        signature = Signature(crash.kind, failure.words, failure.symptoms, details=details)
    at, axis = onset and onset.x, "step" if reader.by_step else "reading"
    curves = tuple(
        Curve(name.removesuffix("_mib"), _UNITS.get(name, ""), series.all_points(), at, axis)
        for name, series in reader.series.items()
        if series.count > 1
    )
    return Run(
        signature,
        reader.first_line,
        max(reader.last_line, reader.first_line),
        reader.readings,
        _moment(onset, path),
        _moment(_last_healthy(reader, onset), path) if not signature.benign else None,
        _moment(reader.last, path),
        notes,
        curves,
        crash,
    )


def _last_healthy(reader: RunReader, onset: Placed | None) -> Placed | None:
    """The last healthy reading before the symptom began, of those that were kept."""
    stretches = (*reader.ended, *((reader.stretch,) if reader.stretch else ()))
    kept = [reader.healthy, reader.healthy_before, *reader.before, *(stretch.before for stretch in stretches)]
    earlier = [each for each in kept if each and (onset is None or each.ordinal < onset.ordinal)]
    return max(earlier, key=lambda each: each.ordinal, default=None)


def _ending(reader: RunReader, crashes: tuple[Crash, ...]) -> Crash | None:
    """The exception that ended the run: one after which it went on was caught. Launchers only repeat another's."""
    after = [crash for crash in crashes if crash.location.line is None or crash.location.line >= reader.last_line]
    own = [crash for crash in after if crash.text.partition(":")[0].rpartition(".")[2] not in _WRAPPERS]
    return next(iter(own), None)


def _reader_signature(reader: RunReader) -> tuple[Signature, Placed | None]:
    stretch = reader.stretch
    if stretch is not None and (found := _stretch_signature(reader, stretch)):
        return found, stretch.first
    scale = reader.loss_scale
    if reader.skipped_in_row >= 5 and reader.skipped > reader.readings and scale is not None and scale <= _LEAST_SCALE:
        return OVERFLOWS, None
    masked = [s for s in reader.ended if s.states["zero-without-gradient"] == s.length]
    if masked:
        return SOMETIMES_MASKED, masked[0].first
    if reader.not_finite is not None:
        return _sometimes_not_finite(reader), reader.not_finite
    if reader.bad_evaluation is not None:
        return EVALUATION, reader.bad_evaluation
    if reader.same_loss >= _CONSTANT and reader.learning:
        return CONSTANT, reader.same_since
    if _diverged(reader):
        return DIVERGED, None
    if grows(reader.series["memory_mib"].finite()) is not None:
        return GROWTH, None
    if reader.large_gradient is not None:
        norm = f"{reader.large_gradient.reading.grad_norm:.3g}"
        return GRADIENT_LARGE._replace(words=_(GRADIENT_LARGE.words).format(norm=norm)), reader.large_gradient
    readings = reader.readings + reader.evaluations
    return (_NO_READINGS if not readings else _TOO_FEW if readings - reader.told < 2 else HEALTHY), None


def _sometimes_not_finite(reader: RunReader) -> Signature:
    words = _(SOMETIMES_NOT_FINITE.words)
    counted = words.format(count=reader.states["loss-not-finite"], readings=reader.readings)
    return SOMETIMES_NOT_FINITE._replace(words=counted)


def _stretch_signature(reader: RunReader, stretch: Stretch) -> Signature | None:
    """The signature of the bad stretch with which the run ends; what is graver decides where states are mixed."""
    states = stretch.states
    if states["loss-not-finite"]:
        return NOT_FINITE_BOTH if _gradient_bad(stretch, reader) else NOT_FINITE
    if states["zero-with-nan-gradient"]:
        return FILTERED
    if states["zero-with-gradient"]:
        groups = {groups_behind(gradient) for gradient in stretch.gradients if gradient}
        repeated = stretch.length > 1 or reader.readings == 1
        if len(stretch.gradients - {0.0}) == 1 and None not in groups and repeated:
            return SENTINEL._replace(words=_(SENTINEL.words).format(n=groups.pop()))
        before = reader.healthy.reading.loss if reader.healthy else None
        return ROUNDED if before is not None and abs(before) < 0.05 else ZERO_WITH_GRADIENT
    if states["zero-without-gradient"]:
        return MASKED
    if states["zero-alone"]:
        before = reader.healthy.reading.loss if reader.healthy else None
        return ROUNDED if before is not None and abs(before) < 0.05 else ZERO_ALONE
    if states["gradient-not-finite"]:
        return GRADIENT if stretch.length >= 3 or not reader.healthy else None
    return GRADIENT_ZERO if stretch.length >= 3 else None


def _gradient_bad(stretch: Stretch, reader: RunReader) -> bool:
    last = reader.last.reading.grad_norm if reader.last else None
    return last is not None and not math.isfinite(last) or bool(stretch.states["gradient-not-finite"])


def _diverged(reader: RunReader) -> bool:
    """The last readings lie at twice the lowest smoothed loss and above where the run began."""
    values = reader.series["loss"].finite()
    if len(values) < 40:
        return False
    width = max(5, len(values) // 20)
    from statistics import median

    smoothed = [median(values[at : at + width]) for at in range(0, len(values) - width + 1, width)]
    lowest, tail = min(smoothed), median(values[-width:])
    return lowest > 0 and tail > 2 * lowest and tail > 1.2 * smoothed[0] and tail - lowest > 0.5


def _notes(reader: RunReader, signature: Signature) -> Iterator[Signature]:
    isolated = reader.states["gradient-not-finite"] and any(s.states["gradient-not-finite"] for s in reader.ended)
    waiting = signature.name == HEALTHY.name and reader.stretch and reader.stretch.states["gradient-not-finite"]
    if isolated or waiting:
        yield SKIPS
    if signature.name != GROWTH.name and grows(reader.series["memory_mib"].finite()) is not None:
        yield GROWTH
    if reader.skipped and signature.name != OVERFLOWS.name:
        words = _(
            "{count} steps were skipped for overflow; in fp16 the first few skipped steps of a run find the loss scale"
        )
        yield Signature("overflow-skips", words.format(count=reader.skipped), benign=True)


def _moment(placed: Placed | None, path: str) -> Moment | None:
    if placed is None:
        return None
    names = ("loss", "grad_norm", "eval_loss", "learning_rate", "memory_mib")
    values = {name: getattr(placed.reading, name) for name in names}
    known = {name: value for name, value in values.items() if value is not None}
    return Moment(Location(path, placed.line), placed.step, placed.reading.epoch, known, placed.about)
