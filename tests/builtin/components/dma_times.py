"""What the DMA of a PE takes as the presets have it, for tests of its times in memory and in scratchpads."""

from __future__ import annotations

DMA = "sip0.cube0.pe0.pe_dma"
#: Set-up of a descriptor and of a chunk, look-up and walk of one page, in ns, as the presets have them.
DESCRIPTOR, SETUP, LOOK_UP, WALK = 16.0, 4.0, 2.0, 100.0
CHUNK = 4096
NO_WALK = "components.pe_mmu.params.walk_time=0 ns"


def scratchpad_ns(sim, op: str, nbytes: int = CHUNK) -> float:
    """Return what the scratchpad adds to a lone chunk: its bytes go in, or come out, at the pace of the fabric."""
    tcm = DMA.replace("pe_dma", "pe_tcm")
    there, back = sim.graph.edges[DMA, tcm], sim.graph.edges[tcm, DMA]
    access = sim.graph.nodes[tcm].params["overhead"] + sim.graph.nodes[tcm].params["latency"]
    return there.latency + access + (0.0 if op == "read" else there.header_bytes / there.bandwidth + back.latency)
