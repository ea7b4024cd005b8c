"""Who this rank is and where rank 0 is found, from the variables that torchrun, srun or mpirun set."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import NamedTuple

from compatcheck.errors import InputError

_DOING = "joining the other ranks"
_TORCH_PORT = 29500
_PORTS_TRIED = 16
_FIRST_JOB_PORT, _JOB_PORTS = 20000, 20000
# rank, world size, rank on the node, number of the node: the first row whose rank is set counts.
_LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", ""),
    "MPI": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", ""),
    "srun": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NODEID"),
}
OWN_OF_RANKS = frozenset(name for rank, _, local, node in _LAUNCHERS.values() for name in (rank, local, node) if name)
_JOBS = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE", "PMI_ID")
_ONE_NODE = (("OMPI_COMM_WORLD_LOCAL_SIZE", ""), ("MPI_LOCALNRANKS", ""), ("SLURM_NNODES", "1"))


class Launch(NamedTuple):
    """One rank of ``world``; ``node`` is the name of its machine and ``place`` that machine's number, if told.

    Rank 0 listens at ``address`` on the first of ``ports`` that is free; ``job`` tells this run from others there.
    """

    launcher: str
    rank: int
    world: int
    local_rank: int
    node: str
    place: str
    address: str
    ports: tuple[int, ...]
    job: str


def launch(environ: Mapping[str, str]) -> Launch:
    """Raises InputError where no launcher has started this process, or none tells where rank 0 is."""
    launcher, names = next(
        ((name, names) for name, names in _LAUNCHERS.items() if names[0] in environ and names[1] in environ),
        ("", ("", "", "", "")),
    )
    if not launcher:
        advice = "start it with torchrun, srun or mpirun, or pass a folder with --snapshots"
        raise InputError(_DOING, "of this run", "no launcher has set RANK and WORLD_SIZE", advice)
    rank, world = _number(environ, names[0], 0), _number(environ, names[1], 1)
    if rank >= world:
        raise InputError(
            _DOING, names[0], f"the value is {rank}, but {names[1]} is {world}", "correct the launcher's variables"
        )
    port = _port(environ)
    first = port + 1 if environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else port  # the agent listens at port
    job = next((environ[name] for name in _JOBS if environ.get(name)), "")
    return Launch(
        "ranks of the environment" if launcher == "torchrun" and "TORCHELASTIC_RUN_ID" not in environ else launcher,
        rank,
        world,
        _number(environ, names[2], 0) if names[2] in environ else 0,
        environ.get("SLURMD_NODENAME") or socket.gethostname(),
        environ.get(names[3], ""),
        _address(environ, world),
        tuple(each for each in range(first, first + _PORTS_TRIED) if each < 65536),
        f"{job}:{port}:{world}",
    )


def _number(environ: Mapping[str, str], name: str, least: int) -> int:
    text = environ[name]
    if not re.fullmatch(r"\d{1,7}", text) or int(text) < least:
        raise InputError(_DOING, name, f"the value is {text!r:.40}", f"set it to a whole number of at least {least}")
    return int(text)


def _port(environ: Mapping[str, str]) -> int:
    """MASTER_PORT; without it one that follows from the job's number, else torch's own."""
    if environ.get("MASTER_PORT"):
        return _number(environ, "MASTER_PORT", 1)
    job = environ.get("SLURM_JOB_ID", "")
    return _FIRST_JOB_PORT + int(job) % _JOB_PORTS if job.isdigit() else _TORCH_PORT


def _address(environ: Mapping[str, str], world: int) -> str:
    """MASTER_ADDR; without it the first node of the Slurm job, or this machine where all ranks are on it."""
    if environ.get("MASTER_ADDR"):
        return environ["MASTER_ADDR"]
    if any(environ.get(name) == (value or str(world)) for name, value in _ONE_NODE):
        return "127.0.0.1"
    listed = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST")
    if listed:
        return first_node(listed)
    advice = "set it to the address of the machine that runs rank 0"
    raise InputError(_DOING, "at MASTER_ADDR", "the address is not set", advice)


def first_node(listed: str) -> str:
    """The first name of a Slurm node list such as ``gpu[003-007,012],login``."""
    match = re.match(r"([^,\[]+)(?:\[([^\]-]+?)[,\]-])?", listed)
    return match[1] + (match[2] or "") if match else listed
