"""Lines of drivers, kernels, launchers and accelerators, and what each means."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from compatcheck import matrix, probes, symptoms
from compatcheck.cli import cli
from compatcheck.symptoms import _failures

LINES = [
    # GPUs, as the kernel logs them
    ("[ 812.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.", "xid-79", "device-lost"),
    ("kernel: NVRM: Xid (PCI:0000:af:00): 31, pid=88, name=python, MMU Fault", "xid-31", "illegal-memory-access"),
    ("NVRM: Xid (PCI:0000:18:00): 94, pid=1, Contained ECC error", "xid-ecc", "memory-defect"),
    ("NVRM: Xid (PCI:0000:18:00): 63, Row Remapper: New row marked", "xid-remap", "memory-defect"),
    ("NVRM: Xid (PCI:0000:18:00): 119, pid=7, Timeout waiting for RPC from GSP", "xid-firmware", "device-lost"),
    ("NVRM: Xid (PCI:0000:18:00): 74, NVLink: fatal error detected on link 3", "xid-nvlink", "communication-failure"),
    ("NVRM: Xid (PCI:0000:18:00): 8, pid=9", "xid-other", "device-error"),
    # CUDA errors by name and by code
    ("RuntimeError: CUDA error: an illegal memory access was encountered", "illegal-memory-access", None),
    ("Error 804: forward compatibility was attempted on non supported HW", "cuda-compatibility", "driver-too-old"),
    ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment", "cuda-unknown", None),
    ("RuntimeError: Unexpected error. Error 802: system not yet initialized", "cuda-fabric", "cuda-unavailable"),
    ("Failed to initialize NVML: Driver/library version mismatch", "cuda-driver-mismatch", "cuda-unavailable"),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "cuda-ecc", "memory-defect"),
    ("RuntimeError: CUDA error: unspecified launch failure", "cuda-launch-failure", "device-error"),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED", "cublas-failure", "library-failure"),
    ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "library-not-initialised", "library-failure"),
    ("RuntimeError: GET was unable to find an engine to execute this computation", "cudnn-no-plan", None),
    # memory
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "cuda-oom", "out-of-memory"),
    ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB)", "npu-oom", "out-of-memory"),
    ("RuntimeError: MPS backend out of memory (MPS allocated: 17 GB)", "mps-oom", "out-of-memory"),
    ("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 1 GiB", "xpu-oom", "out-of-memory"),
    ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1 GiB", "cuda-oom", "out-of-memory"),
    ("Out of memory: Killed process 4321 (python) total-vm:90000000kB", "host-oom", "host-out-of-memory"),
    ("oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=77", "host-oom", "host-out-of-memory"),
    ("RuntimeError: unable to open shared memory object </torch_77_1> in read-write mode", "shared-memory", None),
    ("Unexpected bus error in worker, might be caused by insufficient shared memory (shm).", "shared-memory", None),
    # collectives
    ("RuntimeError: NCCL error in: x.cpp:1, unhandled cuda error, NCCL version 2.20.5", "nccl-failure", None),
    ("node1: NCCL WARN Cuda failure 1 'invalid argument'", "nccl-failure", "communication-failure"),
    ("ncclRemoteError: A call failed possibly due to a network error", "nccl-remote-error", None),
    ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", "nccl-duplicate-gpu", None),
    ("[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout", "nccl-timeout", "hang"),
    ("EI0002: The wait execution of the Notify register times out.", "hccl-timeout", "collective-timeout"),
    ("ERR02200 DIST call hccl api failed.", "hccl-failure", "communication-failure"),
    ("EI0006: Getting socket times out.", "hccl-connection", "communication-failure"),
    # Ascend
    ("EZ9999: Inner Error! The error from device(chipId:0)", "cann-failure", "device-error"),
    ("rtStreamSynchronize failed, error code is 507015", "npu-kernel-failure", "device-error"),
    ("synchronize stream failed, ret = 507046", "npu-stream-timeout", "hang"),
    ("RuntimeError: aclnnCast: input not implemented for DT_BFLOAT16", "npu-operator-missing", "operator-missing"),
    # ROCm
    ("RuntimeError: HIP error: invalid device function", "no-kernel-image", None),
    ("Memory access fault by GPU node-1 on address 0x7f. Reason: Unknown.", "illegal-memory-access", None),
    # models, tensors and classes of errors
    ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x2)", "shape-mismatch", "shape-mismatch"),
    ("RuntimeError: Error(s) in loading: size mismatch for lm_head.weight", "shape-mismatch", "shape-mismatch"),
    ("RuntimeError: expected scalar type Half but found Float", "dtype-mismatch", "dtype-mismatch"),
    ("RuntimeError: Expected all tensors to be on the same device, but found cuda:0", "device-mismatch", None),
    ("NotImplementedError: Cannot copy out of meta tensor; no data!", "meta-tensor", "meta-tensor"),
    ("ValueError: Image features and image tokens do not match: tokens: 3, features 9", "image-token-mismatch", None),
    ("RuntimeError: Trying to backward through the graph a second time", "backward-twice", "backward-twice"),
    ("_pickle.UnpicklingError: Weights only load failed.", "unpickling-error", "load-failure"),
    ("ValueError: max_length must be positive", "value-error", "value-error"),
    ("KeyError: 'rope_scaling'", "key-error", "key-error"),
    ("RuntimeError: something of our own", "runtime-error", "runtime-error"),
    ("KeyboardInterrupt", "error", None),
    # ends of processes
    ("[2024] [INFO] [launch.py:325:sigkill_handler] main process exits with return code = -9", "killed", None),
    (" exitcode  : -11 (pid: 99)", "segmentation-fault", "process-crash"),
    ("Signal 7 (SIGBUS) received by PID 99", "bus-error", "process-crash"),
    ("Aborted (core dumped)", "aborted", "process-crash"),
    ("Illegal instruction (core dumped)", "illegal-instruction", "process-crash"),
]

OTHER_LINES = [
    "step 507015 of 600000: loss 1.2",
    "downloaded 207001 bytes",
    "exit code 0",
    "main process exits with return code = 0",
    "saved checkpoint-700",
    "NCCL INFO Connected all rings",
    "NCCL version 2.20.5+cuda12.4",
    "CUDA error checks are on",
]


@pytest.mark.parametrize(("line", "kind", "symptom"), LINES, ids=[line[:60] for line, _, _ in LINES])
def test_line_of_a_machine_is_named(line: str, kind: str, symptom: str | None) -> None:
    failure = _failures.kind_of(line)
    assert failure.kind == kind
    assert symptom is None or symptom in failure.symptoms


@pytest.mark.parametrize("line", OTHER_LINES)
def test_number_or_notice_is_no_failure(line: str) -> None:
    assert _failures.kind_of(line).kind == "error"
    assert _failures.fatal_line(line) is None


@pytest.mark.parametrize("filling", [0, 60_000])
def test_kernel_line_ends_a_run_in_logs_of_any_size(filling: int, tmp_path: Path) -> None:
    path = tmp_path / "dmesg.log"
    notices = "".join(f"[ {n}.0] usb 1-1: new device number {n}\n" for n in range(filling))
    path.write_text(notices + "[ 9.1] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n", encoding="utf-8")
    run = symptoms.read(str(path)).runs[0]
    assert run.signature.name == "xid-79" and "Xid 79" in run.signature.words


def test_only_a_gpu_is_called_one(tmp_path: Path) -> None:
    words = {}
    for device in ("CUDA", "NPU", "XPU"):
        path = tmp_path / f"{device}.log"
        path.write_text(f"RuntimeError: {device} out of memory. Tried to allocate 2.00 GiB\n", encoding="utf-8")
        words[device] = symptoms.read(str(path)).runs[0].signature.words
    assert words == {
        "CUDA": "a GPU ran out of memory",
        "NPU": "an NPU ran out of memory",
        "XPU": "an Intel GPU ran out of memory",
    }


def test_every_mark_and_symptom_of_the_table_holds(known: matrix.Matrix) -> None:
    rows = known.table("failures")["failures"]
    names = known.table("symptoms")["symptoms"]
    assert len({row["kind"] for row in rows}) == len(rows)
    for row in rows:
        assert row["marks"] and set(row["symptoms"]) <= names.keys(), row["kind"]
        re.compile(row["regex"])


def test_memory_of_the_line_goes_into_the_probe() -> None:
    line = "CUDA out of memory. GPU 0 has a total capacity of 23.69 GiB of which 1 GiB is free."
    (step,) = symptoms.next_steps(["out-of-memory"], line)
    assert "probe memory_fit" in step and '{"memory_mib": 24259}' in step
    assert "--request" not in symptoms.next_steps(["out-of-memory"])[0]


@pytest.mark.parametrize(
    ("names", "commands"),
    [
        (["hang"], ["compatcheck cluster", "TORCH_NCCL_TRACE_BUFFER_SIZE", "py-spy"]),
        (["loss-zero"], ["probe labels_masked"]),
        (["loss-nan"], ["probe --deep"]),
        (["import-error"], ["check --imports"]),
        (["loss-zero", "grad-norm-zero"], ["probe labels_masked"]),
        (["loss-normal"], []),
        ([], []),
    ],
)
def test_next_steps_name_the_command(names: list[str], commands: list[str]) -> None:
    steps = symptoms.next_steps(names)
    assert len(steps) == len(commands)
    assert all(command in step for step, command in zip(steps, commands))


def test_every_command_and_probe_of_the_advice_exists(known: matrix.Matrix) -> None:
    names, context = known.table("symptoms")["symptoms"], click.Context(cli)
    for row in known.table("symptoms")["advice"]:
        assert set(row["symptoms"]) <= names.keys(), row
        for command, rest in re.findall(r"`compatcheck (\w+)([^`]*)`", row["text"]):
            verb = cli.get_command(context, command)
            assert verb is not None, command
            options = {option for each in verb.params for option in each.opts}
            for word in rest.replace("{memory}", "").split("--request")[0].split():
                if word.startswith("--"):
                    assert word in options, (command, word)
                elif command == "probe" and word.islower():
                    assert word in probes.names(), word
