"""Whether a kernel asked for its network: only where it did not does one proof hold on others too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from kernbench_ccl.catalogue import Algorithm, Catalogue, read_file
from kernbench_ccl.plugin import kernbench_algorithms
from kernbench_ccl.prove import network_of
from kernbench_ccl.prove.algorithm_check import collective_of_case, prove_case
from kernbench_ccl.prove.network_use import NetworkUse, ignores_kind
from kernbench_ccl.prove.proof_case import ProofCase
from kernbench_core.plugins import Plugins
from tests.ccl.prove.compass import by_directions

SOURCE = '''
from kernbench_ccl.contract import kernel_args as kernel_args

COLLECTIVE = "send_recv"
TOPO_NAME_TO_KIND = {{"ring": 0, "switch": 1}}
{above}

def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    if pe == 0:
        {first}
        tl.send(tl.load(in_ptr, shape=(count,)), (rank + 1) % world, wait=False)
        tl.store(out_ptr, tl.recv((count,), tl.collective.dtype, (rank - 1) % world))
'''


def written(folder: Path, first: str = "pass", above: str = "") -> Algorithm:
    """Write an algorithm whose kernel begins with a line, and return it."""
    path = folder / "shift.py"
    path.write_text(SOURCE.format(first=first, above=above))
    return read_file(path)


ASKING = {
    "its parameter": ("x = topo_kind", ""),
    "its parameter in a closure": ("x = [rank + topo_kind for _ in (1,)]", ""),
    "all locals": ("x = locals()", ""),
    "the network": ("x = tl.collective.network.name", ""),
    "a comparison of the call": ("x = tl.collective == rank or hash(tl.collective)", ""),
    "the text of the call": ("x = repr(tl.collective)", ""),
    "arguments of its own": (
        "pass",
        "from kernbench_ccl import contract\n\n\ndef kernel_args(ctx):\n    return contract.kernel_args(ctx)\n",
    ),
}


@pytest.mark.parametrize("how", ASKING)
def test_a_kernel_that_may_know_its_network_is_taken_for_one_that_does(tmp_path: Path, how: str) -> None:
    """However it asks."""
    proof, _ = prove_case(written(tmp_path, *ASKING[how]), ProofCase(network_of("ring", 3), 1, 4))
    assert (proof.faults, proof.any_network) == ((), False)


def test_a_kernel_that_does_not_ask_runs_alike_on_every_network(tmp_path: Path) -> None:
    """What else it reads of the call does not count."""
    algorithm = written(tmp_path, "x = tl.collective.tile, tl.collective.redop, tl.collective.world")
    proof, _ = prove_case(algorithm, ProofCase(network_of("ring", 3), 1, 4))
    assert (proof.faults, proof.any_network) == ((), True)


def test_a_direction_depends_on_the_network(tmp_path: Path) -> None:
    """The neighbour in it is another on another network."""
    algorithm = by_directions(tmp_path)
    proof, _ = prove_case(algorithm, ProofCase(network_of("ring", 2), 1, 4))
    assert (proof.faults, proof.any_network) == ((), False)


def test_a_watched_call_is_the_call(tmp_path: Path) -> None:
    """Every field is as it was; only reading the network is noted."""
    case = ProofCase(network_of("torus_2d", 6), 1, 4)
    collective = collective_of_case(written(tmp_path), case)
    use = NetworkUse()
    watched = use.watched(collective)
    assert (watched.world, watched.tile, watched.held_tiles, use.asked) == (6, 4, collective.held_tiles, False)
    assert (watched.network, use.asked) == (collective.network, True)
    again = NetworkUse()
    assert evolve(again.watched(collective), root=0).network == collective.network
    assert again.asked


def test_only_code_that_is_seen_ignores_its_parameter(tmp_path: Path) -> None:
    """A function that is wrapped, or is none of Python's, may do anything."""
    plain = written(tmp_path)

    def wrapped(*args: Any) -> None:
        plain.kernel(*args)

    kernels: dict[bool, list[Callable[..., Any]]] = {True: [plain.kernel], False: [wrapped, print]}
    for ignores, functions in kernels.items():
        assert [ignores_kind(evolve(plain, kernel=function)) for function in functions] == [ignores] * len(functions)


def test_what_is_shipped_for_all_networks_asks_for_none(plugins: Plugins) -> None:
    """So that each of them is proved once for all."""
    for entry in kernbench_algorithms():
        (algorithm,) = Catalogue.of(plugins).open_all(entry.name)
        assert ignores_kind(algorithm), entry.name
