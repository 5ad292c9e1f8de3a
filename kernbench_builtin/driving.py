"""Work for models of all kinds of nodes: kernels that use every unit of a PE, memories, the processors and the host.

`kernbench plugins check` puts a model into the preset `tiny` by it, in place of all nodes of the model's kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kernbench_core.testing import ModelTestbench

_EDGE: Final = 32


def run_kernels(testbench: ModelTestbench) -> None:
    """Run two launches on the preset `tiny`: loads, products, math, messages, composites, stores, and copies."""
    testbench.run(_bench, "tiny")


def run_kernels_on_two(testbench: ModelTestbench) -> None:
    """Run them on two packages of that size, whose PEs send to each other."""
    testbench.run(_bench, "tiny", {"system.sips": 2})


def run_kernels_with_sram(testbench: ModelTestbench) -> None:
    """Run them with queues whose slots lie in the SRAM."""
    testbench.run(_bench, "tiny", {"components.pe_ipcq.params.tier": "sram"})


def _kernel(x: Any, y: Any, z: Any, out: Any, n: int, tl: Any) -> None:
    me, of = tl.program_id(0), tl.num_programs(0)
    a, b = tl.load(x, shape=(n, n)), tl.load(y, shape=(n, n), wait=False)
    c = tl.exp(tl.dot(a, b))
    sent = tl.send(c, (me + 1) % of, wait=False)
    tl.store(z + me * n * n, c + tl.recv((n, n), "f32", (me - 1) % of))
    tl.wait(sent)
    row = tl.sum(a, axis=0)
    for _ in range(6):  # more than a queue has slots: credits must come back
        sent = tl.send(row, (me + 1) % of, wait=False)
        tl.recv((n,), "f32", (me - 1) % of)
        tl.wait(sent)
    product = tl.ref(out + me * n * n, shape=(n, n))
    tl.composite(op="gemm", a=tl.ref(x, shape=(n, n)), b=tl.ref(y, shape=(n, n)), out=product,
                 tile_m=n // 2, tile_n=n // 2, tile_k=n // 2)  # fmt: skip
    tl.store(z + me * n * n, row + b)


def _bench(rt: Any) -> None:
    """Use all that a machine has."""
    n, pes = _EDGE, rt.n_pes
    x, y = rt.zeros((n, n), "f32", name="x"), rt.zeros((n, n), "f32", name="y")
    z, out = rt.empty((pes * n, n), "f32", name="z"), rt.empty((pes * n, n), "f32", name="out")
    for _ in range(2):
        rt.launch(_kernel, x, y, z, out, n)
    rt.copy_to_host(z)
    rt.copy_to_host(out)
