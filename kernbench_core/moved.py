"""Where modules went that lay elsewhere before: logs that were saved, and plug-ins, may still name the old places."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import Final

from kernbench_core.package import GROUP


def current(target: str) -> str:
    """Return what a "module:attr" is called now."""
    module, colon, attribute = target.partition(":")
    return MOVED.get(module, module) + colon + attribute


def hint(module: str | None) -> str:
    """Say where a module is that could not be imported from its old place, else nothing.

    The module's own package is asked first, then all that have an installed plug-in: a module may have gone from one
    to the other.
    """
    if not isinstance(module, str):
        return ""
    roots = {point.value.partition(".")[0] for point in importlib.metadata.entry_points(group=GROUP)}
    for root in (module.partition(".")[0], *sorted(roots)):
        moved = _moved_of(root)
        if module in moved:
            return f"; {module} is now {moved[module]}"
    return ""


def _moved_of(root: str) -> Mapping[str, str]:
    """Return what the package `root` says of its modules in its own `moved`; nothing where it has none that will do."""
    try:
        moved = importlib.import_module(f"{root}.moved").MOVED
    except KeyboardInterrupt:
        raise
    except BaseException:
        return {}
    return moved if isinstance(moved, Mapping) else {}


MOVED: Final[Mapping[str, str]] = {
    "kernbench_core.address": "kernbench_core.topology.address",
    "kernbench_core.alarm": "kernbench_core.process.interrupt",
    "kernbench_core.allocator": "kernbench_core.memory.allocator",
    "kernbench_core.arguments": "kernbench_core.kernel.arguments",
    "kernbench_core.batches": "kernbench_core.compute.batches",
    "kernbench_core.bench": "kernbench_core.host.bench",
    "kernbench_core.bound": "kernbench_core.engine.bound",
    "kernbench_core.bridge": "kernbench_core.kernel.bridge",
    "kernbench_core.bundle": "kernbench_core.runs.bundle",
    "kernbench_core.canonical": "kernbench_core.oplog.encoding",
    "kernbench_core.causes": "kernbench_core.explain.causes",
    "kernbench_core.ceilings": "kernbench_core.host.ceilings",
    "kernbench_core.chunking": "kernbench_core.values.chunking",
    "kernbench_core.clocks": "kernbench_core.memory.clocks",
    "kernbench_core.commands": "kernbench_core.kernel.commands",
    "kernbench_core.composite": "kernbench_core.kernel.composite",
    "kernbench_core.composite_call": "kernbench_core.kernel.tl.composite_call",
    "kernbench_core.compute": "kernbench_core.compute.functions",
    "kernbench_core.compute.math_functions": "kernbench_core.compute.ops",
    "kernbench_core.compute.ops.of_plugins": "kernbench_core.compute.ops.plugin_ops",
    "kernbench_core.compute_math": "kernbench_core.compute.ops",
    "kernbench_core.compute_types": "kernbench_core.compute.result_types",
    "kernbench_core.config": "kernbench_core.topology.configuration",
    "kernbench_core.context": "kernbench_core.fabric",
    "kernbench_core.critical_path": "kernbench_core.explain.critical_path",
    "kernbench_core.deadlock": "kernbench_core.host.deadlock",
    "kernbench_core.descriptors": "kernbench_core.kernel.descriptors",
    "kernbench_core.design": "kernbench_core.topology.checking",
    "kernbench_core.device_tensor": "kernbench_core.host.device_tensor",
    "kernbench_core.dispatch": "kernbench_core.kernel.tl.dispatch",
    "kernbench_core.dma_commands": "kernbench_core.kernel.dma_commands",
    "kernbench_core.dtypes": "kernbench_core.values.dtypes",
    "kernbench_core.elements": "kernbench_core.memory.elements",
    "kernbench_core.engine": "kernbench_core.host.session",
    "kernbench_core.engine.machine": "kernbench_core.engine.hardware",
    "kernbench_core.executor": "kernbench_core.compute.executor",
    "kernbench_core.explain": "kernbench_core.explain.explanation",
    "kernbench_core.explain_report": "kernbench_core.runs.explanation_report",
    "kernbench_core.faults": "kernbench_core.engine.faults",
    "kernbench_core.files": "kernbench_core.process.whole_files",
    "kernbench_core.foreign": "kernbench_core.compute.foreign_records",
    "kernbench_core.hazard": "kernbench_core.memory.hazard",
    "kernbench_core.hazards": "kernbench_core.memory.hazards",
    "kernbench_core.host_program": "kernbench_core.host.host_program",
    "kernbench_core.host_tensors": "kernbench_core.host.host_tensors",
    "kernbench_core.implementations": "kernbench_core.topology.implementations",
    "kernbench_core.index": "kernbench_core.kernel.index",
    "kernbench_core.inputs": "kernbench_core.host.inputs",
    "kernbench_core.kernel.dispatch": "kernbench_core.kernel.tl.dispatch",
    "kernbench_core.kernel.tl.descriptors": "kernbench_core.kernel.descriptors",
    "kernbench_core.kernel.tl.dtype_names": "kernbench_core.values.dtypes",
    "kernbench_core.kernel.tl.index": "kernbench_core.kernel.index",
    "kernbench_core.kernel.tl.pointers": "kernbench_core.kernel.pointers",
    "kernbench_core.language": "kernbench_core.kernel.tl.language",
    "kernbench_core.language_math": "kernbench_core.kernel.tl.math",
    "kernbench_core.language_queues": "kernbench_core.kernel.tl.queue_calls",
    "kernbench_core.language_shapes": "kernbench_core.kernel.tl.shapes",
    "kernbench_core.last_actions": "kernbench_core.host.last_actions",
    "kernbench_core.launch_names": "kernbench_core.host.launch_names",
    "kernbench_core.launching": "kernbench_core.host.launch_arguments",
    "kernbench_core.layout": "kernbench_core.topology.layout",
    "kernbench_core.ledger": "kernbench_core.explain.ledger",
    "kernbench_core.lifeline": "kernbench_core.process.lifeline",
    "kernbench_core.link_rates": "kernbench_core.topology.link_rates",
    "kernbench_core.loads_in_flight": "kernbench_core.values.loads_in_flight",
    "kernbench_core.lost": "kernbench_core.host.lost_messages",
    "kernbench_core.machine": "kernbench_core.engine.hardware",
    "kernbench_core.manifest": "kernbench_core.runs.manifest",
    "kernbench_core.memory": "kernbench_core.memory.device_memory",
    "kernbench_core.memory_uses": "kernbench_core.memory.memory_uses",
    "kernbench_core.mesh": "kernbench_core.topology.mesh",
    "kernbench_core.naming": "kernbench_core.topology.naming",
    "kernbench_core.network_view": "kernbench_core.cli.network_view",
    "kernbench_core.networks": "kernbench_core.topology.networks",
    "kernbench_core.on_demand": "kernbench_core.compute.on_demand",
    "kernbench_core.op_description": "kernbench_core.oplog.description",
    "kernbench_core.oplog": "kernbench_core.oplog.log",
    "kernbench_core.oplog_columns": "kernbench_core.oplog.columns",
    "kernbench_core.oplog_file": "kernbench_core.compute.saved_run",
    "kernbench_core.oplog_params": "kernbench_core.oplog.parameters",
    "kernbench_core.oplog_spill": "kernbench_core.oplog.spill",
    "kernbench_core.page_table": "kernbench_core.memory.page_table",
    "kernbench_core.painting": "kernbench_core.values.strided_copies",
    "kernbench_core.placement": "kernbench_core.memory.placement",
    "kernbench_core.pointers": "kernbench_core.kernel.pointers",
    "kernbench_core.progress": "kernbench_core.runs.progress",
    "kernbench_core.promotion": "kernbench_core.compute.promotion",
    "kernbench_core.provenance": "kernbench_core.explain.provenance",
    "kernbench_core.queue_commands": "kernbench_core.kernel.queue_commands",
    "kernbench_core.queues": "kernbench_core.kernel.queues",
    "kernbench_core.recompute": "kernbench_core.compute.recomputation",
    "kernbench_core.recompute_math": "kernbench_core.compute.math_recomputation",
    "kernbench_core.region_pages": "kernbench_core.values.region_pages",
    "kernbench_core.regions": "kernbench_core.values.region",
    "kernbench_core.report": "kernbench_core.runs.text_report",
    "kernbench_core.reruns": "kernbench_core.runs.reruns",
    "kernbench_core.result": "kernbench_core.runs.result",
    "kernbench_core.roofline": "kernbench_core.explain.roofline",
    "kernbench_core.routing": "kernbench_core.topology.routing",
    "kernbench_core.rows": "kernbench_core.host.rows",
    "kernbench_core.run_files": "kernbench_core.runs.run_folder",
    "kernbench_core.runner": "kernbench_core.kernel.runner",
    "kernbench_core.runs": "kernbench_core.runs.bench_run",
    "kernbench_core.runtime": "kernbench_core.host.runtime",
    "kernbench_core.sanity": "kernbench_core.host.sanity",
    "kernbench_core.sources": "kernbench_core.host.sources",
    "kernbench_core.spec": "kernbench_core.topology.specification",
    "kernbench_core.spec_reader": "kernbench_core.topology.specification_reader",
    "kernbench_core.spelling": "kernbench_core.units",
    "kernbench_core.store": "kernbench_core.values.memory_store",
    "kernbench_core.store_index": "kernbench_core.values.store_index",
    "kernbench_core.substitution": "kernbench_core.compute.substitution",
    "kernbench_core.supervision": "kernbench_core.process.supervision",
    "kernbench_core.tcm": "kernbench_core.memory.scratchpad",
    "kernbench_core.tcm_map": "kernbench_core.memory.scratchpad_map",
    "kernbench_core.tensor": "kernbench_core.kernel.tl.tensor",
    "kernbench_core.terminal": "kernbench_core.process.terminal",
    "kernbench_core.timing": "kernbench_core.host.timing",
    "kernbench_core.topology": "kernbench_core.topology.compilation",
    "kernbench_core.topology_view": "kernbench_core.cli.topology_view",
    "kernbench_core.trace": "kernbench_core.runs.trace",
    "kernbench_core.triton_names": "kernbench_core.kernel.tl.triton_names",
    "kernbench_core.typenames": "kernbench_core.values.dtypes",
    "kernbench_core.unit_op": "kernbench_core.kernel.tl.unit_op",
    "kernbench_core.usage": "kernbench_core.explain.usage",
    "kernbench_core.value_graph": "kernbench_core.values.value_graph",
    "kernbench_core.values": "kernbench_core.values.value",
    "kernbench_core.values.painting": "kernbench_core.values.strided_copies",
    "kernbench_core.verification": "kernbench_core.compute.verification",
    "kernbench_core.verify_ops": "kernbench_core.compute.op_verification",
    "kernbench_core.wait_graph": "kernbench_core.host.wait_graph",
    "kernbench_core.waits": "kernbench_core.wire",
    "kernbench_core.watchdog": "kernbench_core.engine.watchdog",
    "kernbench_core.wiring": "kernbench_core.topology.wiring",
    "kernbench_core.wrong_data": "kernbench_core.explain.wrong_data",
}
"""New places by old ones."""
