"""A small machine whose components exist on paper only: a topology text and the catalogue that declares it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from kernbench_core.errors import UsageError
from kernbench_core.graph import Graph
from kernbench_core.params import Param
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.topology.compilation import compile_topology
from tests.core.offered import LAYERING, offered
from tests.core.topology.text_config import parse_config

KINDS = (
    *("host", "pcie_ep", "io_noc", "io_cpu", "io_ucie", "link", "switch"),
    *("router", "ucie", "m_cpu", "sram", "hbm_ctrl"),
    *("pe_cpu", "pe_scheduler", "pe_dma", "pe_ipcq", "pe_mmu", "pe_tcm", "pe_fetch_store", "pe_gemm", "pe_math"),
)

TEXT = """\
system:
  sips: 1
  network: {topology: ring, bandwidth: 10 GB/s, latency: 100 ns}
host:
  pcie: {bandwidth: 10 GB/s, latency: 50 ns, payload_bytes: 256 B, header_bytes: 24 B}
sip:
  mesh: {width: 2, height: 2}
  noc: {bandwidth: 100 GB/s, latency: 1 ns}
  ucie:
    bandwidth: 100 GB/s
    latency: 2 ns
cube:
  pes: 4
  noc: {bandwidth: 50 GB/s, latency: 1 ns, ns_per_mm: 0.1 ns/mm}
  hbm: {capacity: 4 MiB, link: {bandwidth: 50 GB/s, latency: 1 ns}}
  sram: {capacity: 64 KiB, link: {bandwidth: 50 GB/s, latency: 1 ns}}
  command: {bandwidth: 8 GB/s, latency: 1 ns}
pe:
  tcm: {capacity: 128 KiB}
  links:
    control: {bandwidth: 8 GB/s, latency: 1 ns}
    data: {bandwidth: 200 GB/s, latency: 1 ns}
    dma: {bandwidth: 50 GB/s, latency: 1 ns}
components:
""" + "".join(f"  {kind}: {{impl: test.{kind}}}\n" for kind in KINDS)

DECLARED: Mapping[str, tuple[Param, ...]] = {
    **{
        f"test.{kind}": (
            Param("overhead", "time", "5 ns", "Latency of the unit."),
            Param("servers", "int", 1, "Workers.", minimum=1),
        )
        for kind in KINDS
    },
    "test.array": (
        Param("rows", "int", None, "Rows of the array.", minimum=1),
        Param("columns", "int", 16, "Columns of the array.", minimum=1),
    ),
    "test.sfu": (Param("lanes", "int", 4, "Lanes.", minimum=1),),
}


class Catalogue:
    """Declare the parameters of the classes above."""

    def declared(self, impl: str) -> tuple[Param, ...]:
        if impl not in DECLARED:
            error = UsageError(f"nothing is registered as {impl!r}.")
            error.suggestions = tuple(difflib.get_close_matches(impl, DECLARED, n=99))  # type: ignore[attr-defined]
            raise error
        return DECLARED[impl]

    def made_for(self, impl: str) -> tuple[str, ...]:
        """Return the kind in the name, but for the two units that fit in anywhere."""
        kind = impl.removeprefix("test.")
        return (kind,) if kind in KINDS else ()


def machine(text: str = TEXT, sets: Sequence[str] = (), networks: NetworkRegistry | None = None) -> Graph:
    """Compile the small machine, or another text, with settings over it, on networks of core or those given."""
    others = {} if networks is None else {"networks": networks}
    return compile_topology(parse_config(text, "m.yaml", sets=sets, layering=LAYERING), offered(Catalogue(), **others))
