"""Where the modules of this package lay before, some of them in core: plug-ins may still name the old places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MOVED: Final[Mapping[str, str]] = {
    "kernbench_builtin.channelled_memory": "kernbench_builtin.components.channelled_memory",
    "kernbench_builtin.chrome_trace": "kernbench_builtin.exporters.chrome_trace",
    "kernbench_builtin.compute_unit": "kernbench_builtin.components.compute_unit",
    "kernbench_builtin.forwarding": "kernbench_builtin.components.forwarding",
    "kernbench_builtin.hbm_bank_channel": "kernbench_builtin.components.banks.channel",
    "kernbench_builtin.hbm_bank_mapping": "kernbench_builtin.components.banks.mapping",
    "kernbench_builtin.hbm_ctrl": "kernbench_builtin.components.hbm_ctrl",
    "kernbench_builtin.hbm_ctrl_bank": "kernbench_builtin.components.hbm_ctrl_bank",
    "kernbench_builtin.host": "kernbench_builtin.components.host",
    "kernbench_builtin.io_cpu": "kernbench_builtin.components.io_cpu",
    "kernbench_builtin.launch_fan_out": "kernbench_builtin.components.launch_fan_out",
    "kernbench_builtin.m_cpu": "kernbench_builtin.components.m_cpu",
    "kernbench_builtin.math_costs": "kernbench_builtin.components.math_costs",
    "kernbench_builtin.pcie_ep": "kernbench_builtin.components.pcie_ep",
    "kernbench_builtin.pe_cpu": "kernbench_builtin.components.pe_cpu",
    "kernbench_builtin.pe_dma": "kernbench_builtin.components.pe_dma",
    "kernbench_builtin.pe_fetch_store": "kernbench_builtin.components.pe_fetch_store",
    "kernbench_builtin.pe_gemm": "kernbench_builtin.components.pe_gemm",
    "kernbench_builtin.pe_gemm_systolic": "kernbench_builtin.components.pe_gemm_systolic",
    "kernbench_builtin.pe_ipcq": "kernbench_builtin.components.pe_ipcq",
    "kernbench_builtin.pe_math": "kernbench_builtin.components.pe_math",
    "kernbench_builtin.pe_mmu": "kernbench_builtin.components.pe_mmu",
    "kernbench_builtin.pe_scheduler": "kernbench_builtin.components.pe_scheduler",
    "kernbench_builtin.pe_tcm": "kernbench_builtin.components.pe_tcm",
    "kernbench_builtin.queue_ends": "kernbench_builtin.components.queues.ends",
    "kernbench_builtin.queue_messages": "kernbench_builtin.components.queues.messages",
    "kernbench_builtin.register_file": "kernbench_builtin.components.tiles.register_file",
    "kernbench_builtin.rehearsal": "kernbench_builtin.components.rehearsal",
    "kernbench_builtin.sram": "kernbench_builtin.components.sram",
    "kernbench_builtin.tile_token": "kernbench_builtin.components.tiles.token",
    "kernbench_builtin.tiling": "kernbench_builtin.components.tiles.plan",
    "kernbench_core.cli.probe": "kernbench_builtin.probe.command",
    "kernbench_core.cli.probe_dram": "kernbench_builtin.probe.dram_command",
    "kernbench_core.cli.probe_paths": "kernbench_builtin.probe.transfers_command",
    "kernbench_core.cli.probe_traffic": "kernbench_builtin.probe.traffic_command",
    "kernbench_core.dram": "kernbench_builtin.components.dram",
    "kernbench_core.probe": "kernbench_builtin.probe.transfers",
    "kernbench_core.probe_checks": "kernbench_builtin.probe.checks",
    "kernbench_core.probe_dram": "kernbench_builtin.probe.dram_driver",
    "kernbench_core.probe_load": "kernbench_builtin.probe.load",
    "kernbench_core.traffic": "kernbench_builtin.probe.traffic",
    "kernbench_core.traffic_patterns": "kernbench_builtin.probe.traffic_patterns",
    "kernbench_core.traffic_view": "kernbench_builtin.probe.traffic_view",
}
"""New places by old ones."""

NAMES: Final[Mapping[str, str]] = {
    "kernbench_builtin.components.queues.messages:Progress": (
        "kernbench_builtin.components.queues.messages:TransferProgress"
    ),
    "kernbench_builtin.probe.traffic:Traffic": "kernbench_builtin.probe.traffic:TrafficSetup",
    "kernbench_builtin.probe.transfers:Measured": "kernbench_builtin.probe.transfers:MeasuredTransfer",
}
"""New places, as "module:name", of names that are not where their modules went, or are called anew; by old ones."""
