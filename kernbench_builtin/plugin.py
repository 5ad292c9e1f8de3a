"""What the built-in machine is made of: one line for each hardware model and preset. Its features are plug-ins each.

This is the same door that any other plug-in uses; deleting a file and its line here deletes the thing.
"""

from __future__ import annotations

from typing import Any, Final

from kernbench_core.plugins import (
    ComponentEntry,
    DefaultsRegistry,
    KitEntry,
    LanguageEntry,
    MemoryStandardEntry,
    Point,
    TopologyEntry,
)

HERE = "kernbench_builtin"
NODE = f"{HERE}.components"

#: The version of the hooks that this module is written for.
kernbench_api = 1

#: What `standard` of `builtin.hbm_ctrl_bank` chooses among.
MEMORY_STANDARDS: Final = Point(
    MemoryStandardEntry,
    "Return the standards that `standard` of a controller with banks names, named `vendor.thing`.",
    DefaultsRegistry,
)


def kernbench_points() -> list[Point[Any]]:
    """Return the sorts of entries that models choose among."""
    return [MEMORY_STANDARDS]


def kernbench_components() -> list[ComponentEntry]:
    """Return the hardware models of the built-in machine."""
    return [
        ComponentEntry("builtin.host", f"{NODE}.host:Host", "host", "The host: where requests enter and answers end."),
        ComponentEntry("builtin.pcie_ep", f"{NODE}.pcie_ep:PcieEp", "pcie_ep", "The PCIe end point of a SIP."),
        ComponentEntry(
            "builtin.forwarding",
            f"{NODE}.forwarding:Forwarding",
            "router, ucie, io_ucie, io_noc, link, switch, interface",
            "A pipelined hop: router, UCIe port, NoC.",
        ),
        ComponentEntry(
            "builtin.router_vc",
            f"{NODE}.router_vc:RouterVc",
            "router, ucie, io_ucie, io_noc, link, switch, interface",
            "A hop with virtual channels, finite buffers and credits.",
        ),
        ComponentEntry("builtin.io_cpu", f"{NODE}.io_cpu:IoCpu", "io_cpu", "The launch processor of an IO chiplet."),
        ComponentEntry("builtin.m_cpu", f"{NODE}.m_cpu:MCpu", "m_cpu", "The management processor of a cube."),
        ComponentEntry("builtin.hbm_ctrl", f"{NODE}.hbm_ctrl:HbmCtrl", "hbm_ctrl", "A controller of one HBM slice."),
        ComponentEntry(
            "builtin.hbm_ctrl_bank",
            f"{NODE}.hbm_ctrl_bank:HbmCtrlBank",
            "hbm_ctrl",
            "The same with banks, rows, queues and refresh.",
        ),
        ComponentEntry("builtin.sram", f"{NODE}.sram:Sram", "sram", "The shared on-die memory of a cube."),
        ComponentEntry("builtin.pe_cpu", f"{NODE}.pe_cpu:PeCpu", "pe_cpu", "The processor that runs a PE's kernels."),
        ComponentEntry(
            "builtin.pe_scheduler", f"{NODE}.pe_scheduler:PeScheduler", "pe_scheduler", "Feeds the tiles of composites."
        ),
        ComponentEntry("builtin.pe_dma", f"{NODE}.pe_dma:PeDma", "pe_dma", "The DMA engine of a PE."),
        ComponentEntry("builtin.pe_ipcq", f"{NODE}.pe_ipcq:PeIpcq", "pe_ipcq", "The queues between PEs."),
        ComponentEntry("builtin.pe_mmu", f"{NODE}.pe_mmu:PeMmu", "pe_mmu", "Translates a PE's virtual addresses."),
        ComponentEntry("builtin.pe_tcm", f"{NODE}.pe_tcm:PeTcm", "pe_tcm", "The scratchpad of a PE."),
        ComponentEntry(
            "builtin.pe_fetch_store",
            f"{NODE}.pe_fetch_store:PeFetchStore",
            "pe_fetch_store",
            "Moves tiles between scratchpad and registers.",
        ),
        ComponentEntry("builtin.pe_gemm", f"{NODE}.pe_gemm:PeGemm", "pe_gemm", "The matrix unit of a PE."),
        ComponentEntry(
            "builtin.pe_gemm_systolic",
            f"{NODE}.pe_gemm_systolic:PeGemmSystolic",
            "pe_gemm",
            "A systolic array, counted cycle by cycle.",
        ),
        ComponentEntry("builtin.pe_math", f"{NODE}.pe_math:PeMath", "pe_math", "The vector unit of a PE."),
    ]


def kernbench_language() -> list[LanguageEntry]:
    """Return how kernels hand tiles to the scheduler of their PE."""
    at = f"{HERE}.composites.language"
    return [
        LanguageEntry("composite", f"{at}:composite", "A tiled GEMM or elementwise pipeline with an epilogue."),
        LanguageEntry("epilogue", f"{at}:epilogue", "One step of a composite's epilogue."),
    ]


def kernbench_memory_standards() -> list[MemoryStandardEntry]:
    """Return the standards of memories."""
    at = f"{HERE}.memory_standards"
    return [
        MemoryStandardEntry("hbm2_2000", f"{at}:HBM2_2000", "HBM2 of 2 Gb a channel, 64 bit at 2 Gb/s."),
        MemoryStandardEntry("hbm3_6400", f"{at}:HBM3_6400", "HBM3, 32 bit at 6.4 Gb/s, a stack ID of 16 banks."),
        MemoryStandardEntry("hbm3_6400_8hi", f"{at}:HBM3_6400_8HI", "HBM3, 8 dies of 8 Gb: 2 stack IDs of 16 banks."),
        MemoryStandardEntry("hbm4_8000", f"{at}:HBM4_8000", "HBM4, 32 bit at 8 Gb/s, a stack ID of 16 banks."),
        MemoryStandardEntry("hbm4_8000_8hi", f"{at}:HBM4_8000_8HI", "HBM4, 8 dies of 32 Gb: 2 stack IDs of 16 banks."),
    ]


def kernbench_topologies() -> list[TopologyEntry]:
    """Return the topology presets."""
    return [
        TopologyEntry("tiny", f"{HERE}:topologies/tiny.yaml", "1 SIP of 1 cube with 4 PEs, for tests."),
        TopologyEntry("default", f"{HERE}:topologies/default.yaml", "2 SIPs of 2x2 cubes with 8 PEs each."),
        TopologyEntry("full", f"{HERE}:topologies/full.yaml", "4 SIPs of 4x4 cubes with 8 PEs each: 512 PEs."),
        TopologyEntry("a100_node", f"{HERE}:topologies/a100_node.yaml", "8 A100 GPUs on NVSwitches."),
        TopologyEntry("tpu7x_slice", f"{HERE}:topologies/tpu7x_slice.yaml", "4 TPU7x chips of a 2x2x1 torus."),
        TopologyEntry("u280_hbm", f"{HERE}:topologies/u280_hbm.yaml", "The HBM2 of an Alveo U280, for probe --dram."),
        TopologyEntry("mesh", f"{HERE}:topologies/mesh.yaml", "A mesh of 8x8 routers on its own, for probe --traffic."),
    ]


def kernbench_kits() -> list[KitEntry]:
    """Return what drives models of our kinds of nodes where they are checked."""
    kinds = (
        "hbm_ctrl", "host", "io_cpu", "io_noc", "io_ucie", "m_cpu", "pcie_ep", "pe_cpu", "pe_dma", "pe_fetch_store",
        "pe_gemm", "pe_ipcq", "pe_math", "pe_mmu", "pe_scheduler", "pe_tcm", "router", "ucie",
    )  # fmt: skip
    return [
        *(KitEntry(f"components.{kind}", f"{HERE}.driving:run_kernels", "Kernels on tiny.") for kind in kinds),
        KitEntry("components.link", f"{HERE}.driving:run_kernels_on_two", "Kernels on two packages."),
        KitEntry("components.sram", f"{HERE}.driving:run_kernels_with_sram", "Kernels whose queues are in the SRAM."),
    ]
