"""Exceptions in logs: whose they are, what they mean, and when the run went on."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck import matrix, symptoms
from compatcheck.results.logs import Log

LOSS = "{'loss': %s, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': %s}\n"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB "
    "of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the "
    "allocated memory 70.10 GiB is allocated by PyTorch, and 5.50 GiB is reserved by PyTorch but unallocated.\n"
)


def traceback(*, error: str, prefix: str = "") -> str:
    rows = [
        "Traceback (most recent call last):",
        '  File "/opt/run/train.py", line 12, in <module>',
        "    main()",
        '  File "/opt/run/train.py", line 7, in main',
        "    trainer.train()",
        "    ^^^^^^^^^^^^^^^",
        error,
    ]
    return "".join(f"{prefix}{row}\n" for row in rows)


def read(text: str, tmp_path: Path) -> Log:
    path = tmp_path / "train.log"
    path.write_text(text, encoding="utf-8")
    return symptoms.read(str(path))


@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "(TaskRunner pid=123) ", "2024-05-01 10:00:00 ", "node-1: "])
def test_a_traceback_is_found_behind_any_prefix(prefix: str, tmp_path: Path) -> None:
    log = read(
        "start\n" + traceback(error="ValueError: Attempting to unscale FP16 gradients.", prefix=prefix), tmp_path
    )
    (crash,) = log.crashes
    assert (crash.kind, crash.text) == ("unscale-fp16-gradients", "ValueError: Attempting to unscale FP16 gradients.")
    assert crash.location.line == 8
    assert crash.frames[-1] == "/opt/run/train.py:7 in main"
    assert log.runs[0].signature.name == "unscale-fp16-gradients"


def test_ranks_that_fail_alike_at_once_are_one_crash(tmp_path: Path) -> None:
    one, two = (
        traceback(error="RuntimeError: boom", prefix=f"[rank{rank}]: ").splitlines(keepends=True) for rank in (0, 1)
    )
    (crash,) = read("".join(line for pair in zip(one, two) for line in pair), tmp_path).crashes
    assert crash.ranks == ("0", "1") and len(crash.frames) == 2


def test_tracebacks_with_and_without_a_prefix_do_not_mix(tmp_path: Path) -> None:
    ranked = traceback(error="RuntimeError: of rank 1", prefix="[rank1]: ").splitlines(keepends=True)
    own = traceback(error="ValueError: of nobody").splitlines(keepends=True)
    log = read("".join(line for pair in zip(own, ranked) for line in pair), tmp_path)
    assert {(crash.text, crash.ranks) for crash in log.crashes} == {
        ("RuntimeError: of rank 1", ("1",)),
        ("ValueError: of nobody", ()),
    }
    assert all(len(crash.frames) == 2 for crash in log.crashes)


def test_a_prefix_may_tell_the_time(tmp_path: Path) -> None:
    rows = traceback(error="RuntimeError: boom").splitlines(keepends=True)
    (crash,) = read("".join(f"2024-05-01 10:00:{n:02d} {row}" for n, row in enumerate(rows)), tmp_path).crashes
    assert crash.text == "RuntimeError: boom" and len(crash.frames) == 2


def test_a_launchers_own_error_does_not_hide_the_cause(tmp_path: Path) -> None:
    text = traceback(error="RuntimeError: CUDA error: an illegal memory access was encountered") + traceback(
        error="torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    )
    assert read(text, tmp_path).runs[0].signature.name == "illegal-memory-access"


def test_an_exception_after_which_the_run_goes_on_is_no_crash(tmp_path: Path) -> None:
    text = LOSS % (2.0, 0.1) + traceback(error="ConnectionError: the tracker is away") + LOSS % (1.9, 0.2)
    log = read(text, tmp_path)
    assert log.crashes and log.runs[0].signature.name == "healthy"


def test_out_of_memory_is_told_with_its_numbers(tmp_path: Path) -> None:
    run = read(LOSS % (2.0, 0.1) + OOM, tmp_path).runs[0]
    assert run.signature.name == "cuda-oom"
    assert run.signature.details == (
        "asked for 2.00 GiB",
        "the device has 79.15 GiB",
        "free 1.20 GiB",
        "reserved but unused 5.50 GiB",
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ImportError: cannot import name 'x' from 'transformers'", "cannot-import-name"),
        ("ModuleNotFoundError: No module named 'triton.ops'", "module-not-found"),
        ("E   TypeError: f() got an unexpected keyword argument 'y'", "unexpected-keyword-argument"),
        ("flash_attn_2_cuda.cpython-310.so: undefined symbol: _ZN2at4_ops9_pad_enum4callE", "undefined-symbol"),
        (
            "[rank1]:[E1121 10:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
            "timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600010 milliseconds",
            "nccl-timeout",
        ),
        ("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", "probabilities-not-finite"),
        (" exitcode  : -9 (pid: 4112)", "killed"),
    ],
)
def test_a_message_that_stands_alone_is_recognised(text: str, kind: str, tmp_path: Path) -> None:
    assert read(text + "\n", tmp_path).runs[0].signature.name == kind


def test_an_interrupted_run_is_no_failure(tmp_path: Path) -> None:
    text = LOSS % (2.0, 0.1) + LOSS % (1.9, 0.2) + traceback(error="KeyboardInterrupt")
    assert read(text, tmp_path).runs[0].signature.name == "healthy"


def test_a_nan_signature_is_not_hidden_by_the_error_that_follows_from_it(tmp_path: Path) -> None:
    text = "".join(LOSS % ("nan", n / 10) for n in range(5))
    run = read(text + traceback(error="RuntimeError: probability tensor contains either `inf`"), tmp_path).runs[0]
    assert run.signature.name == "loss-nan" and run.crash is not None


def test_a_text_without_anything_of_a_run_gives_no_run(tmp_path: Path) -> None:
    assert read("hello\nworld, nothing here\n", tmp_path).runs == ()


def test_every_line_that_an_entry_explains_is_found_in_a_log(tmp_path: Path) -> None:
    known = matrix.load()
    lines = [
        (entry["id"], pattern["example"])
        for entry in matrix.all_entries(known)
        for pattern in entry.get("error_patterns", ())
    ]
    log = tmp_path / "train.log"
    log.write_text(
        "".join(f"[rank1]: Traceback (most recent call last):\n[rank1]: {line}\n" for _, line in lines),
        encoding="utf-8",
    )
    assert {entry for entry, _ in lines} - {
        hit.entry for hit in symptoms.read(str(log), matrix.patterns(known)).hits
    } == set()
