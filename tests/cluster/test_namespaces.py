"""Ranks in network namespaces of their own, joined by a bridge, as nodes are by a switch."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.ranks import Rank, run

pytestmark = [pytest.mark.stack, pytest.mark.slow]

NODES = 3
NETWORK = "10.93.7"


class Switch:
    """A bridge with one namespace at each port; addresses end in the node's number, from 1 on."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def build(self) -> None:
        command(f"ip link add {self.tag}b type bridge")
        command(f"ip link set {self.tag}b up")
        for node in range(NODES):
            space = f"{self.tag}n{node}"
            command(f"ip netns add {space}")
            command(f"ip link add {self.tag}v{node} type veth peer name eth0 netns {space}")
            command(f"ip link set {self.tag}v{node} master {self.tag}b up")
            command(f"ip -n {space} addr add {NETWORK}.{node + 1}/24 dev eth0")
            command(f"ip -n {space} link set eth0 up")
            command(f"ip -n {space} link set lo up")

    def remove(self) -> None:
        for node in range(NODES):
            command(f"ip netns del {self.tag}n{node}", check=False)
        command(f"ip link del {self.tag}b", check=False)

    def cut(self, *nodes: int) -> None:
        """Let these nodes reach the others and not one another."""
        for node in nodes:
            command(f"bridge link set dev {self.tag}v{node} isolated on")

    def ranks(self) -> list[Rank]:
        return [
            Rank({"LOCAL_RANK": "0", "GROUP_RANK": str(node)}, ("ip", "netns", "exec", f"{self.tag}n{node}"))
            for node in range(NODES)
        ]


def command(text: str, check: bool = True) -> None:
    done = subprocess.run(text.split(), capture_output=True, text=True, check=False)
    if check and done.returncode:
        pytest.skip(f"no network namespaces here: {text}: {done.stderr.strip()}")


@pytest.fixture
def switch() -> Iterator[Switch]:
    if not shutil.which("ip") or os.geteuid():
        pytest.skip("network namespaces need root and ip")
    made = Switch(f"cc{os.getpid() % 10000}")
    try:
        made.build()
        yield made
    finally:
        made.remove()


def test_nodes_find_each_other_and_what_they_exchange_is_measured(switch: Switch, tmp_path: Path) -> None:
    said = run(tmp_path, switch.ranks(), "--only", "link_speed", address=f"{NETWORK}.1")
    assert said.statuses == [0, 0, 0], said
    assert "3 nodes (ranks of the environment): all alike" in said.text
    assert "3 pairs of nodes at" in said.text or "other pair" in said.text


def test_a_link_that_is_cut_is_named(switch: Switch, tmp_path: Path) -> None:
    switch.cut(1, 2)
    said = run(tmp_path, switch.ranks(), address=f"{NETWORK}.1")
    assert said.statuses == [1, 1, 1], said
    host = os.uname().nodename
    assert f"cut off ranks 1 ({host}#1) and 2 ({host}#2): {host}#1 cannot reach {host}#2 at {NETWORK}.3" in said.text
    assert "no probe was run: nodes cannot reach one another" in said.text
