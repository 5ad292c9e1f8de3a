"""Where modules went that lay elsewhere before: logs that were saved, and plug-ins, may still name the old places."""

from __future__ import annotations

import dis
import importlib
import importlib.metadata
import importlib.util
from collections import ChainMap
from collections.abc import Mapping
from types import CodeType, ModuleType
from typing import Any, Final

from kernbench_core.package import GROUP


def current(target: str) -> str:
    """Return what a "module:attr" is called now."""
    module, colon, attribute = target.partition(":")
    return MOVED.get(module, module) + colon + attribute


def hint(error: BaseException) -> str:
    """Say where that is what could not be imported, or got of a module, from its old place; else nothing.

    A place is told only where it has all the names that were asked for; of others, each name's own is.
    """
    found: object = getattr(error, "name", None)
    if isinstance(error, ImportError) and isinstance(found, str):
        module, names = found, _wanted(error)
    elif isinstance(error, AttributeError) and isinstance(error.obj, ModuleType) and isinstance(found, str):
        module, names = error.obj.__name__, (found,)
    else:
        return ""
    moved, renamed = _tables(module)
    if module in moved and all(_has(moved[module], name) for name in names):
        return f"; {module} is now {moved[module]}"
    told = [_named(module, name, moved, renamed) for name in names]
    return "".join(f"; {sentence}" for sentence in told if sentence)


def _named(module: str, name: str, moved: Mapping[str, str], renamed: Mapping[str, str]) -> str:
    """Say where a name of a module is, "" where nobody knows."""
    now = moved.get(module, module)
    if f"{module}.{name}" in moved:
        return f"{module}.{name} is now {moved[f'{module}.{name}']}"
    target = renamed.get(f"{module}:{name}") or renamed.get(f"{now}:{name}")
    if target is None and now != module and _has(now, name):
        target = f"{now}:{name}"
    there, _, called = (target or "").partition(":")
    return f"{name} of {module} is now {called} of {there}" if target and _has(there, called) else ""


def _has(module: str, name: str) -> bool:
    """Tell whether a module can be imported and has a name."""
    try:
        found = importlib.import_module(module)
        return hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None
    except KeyboardInterrupt:
        raise
    except BaseException:
        return False


def _wanted(error: ImportError) -> tuple[str, ...]:
    """Return the names that the line asked for at which an import failed; none where it asked for the module alone."""
    line: tuple[CodeType, int] | None = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith("<frozen importlib"):
            line = code, traceback.tb_lasti
        traceback = traceback.tb_next
    if line is None:
        return ()
    before: Any = None
    for instruction in dis.get_instructions(line[0]):
        if instruction.offset == line[1]:
            if instruction.opname == "IMPORT_FROM":
                return (instruction.argval,)
            names = before.argval if instruction.opname == "IMPORT_NAME" and before is not None else None
            return tuple(name for name in names if name != "*") if isinstance(names, tuple) else ()
        if instruction.opname != "EXTENDED_ARG":
            before = instruction
    return ()


def _tables(module: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return what the packages say of their modules, and of single names.

    The module's own package comes first, then all that have an installed plug-in: what was in one may have gone to
    another.
    """
    roots = {point.value.partition(".")[0] for point in importlib.metadata.entry_points(group=GROUP)}
    own = module.partition(".")[0]
    tables = [_said(root) for root in (own, *sorted(roots - {own}))]
    return ChainMap(*(moved for moved, _ in tables)), ChainMap(*(names for _, names in tables))


def _said(root: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the package `root` says in its own `moved`; nothing where it has none that will do."""
    try:
        said = importlib.import_module(f"{root}.moved")
    except KeyboardInterrupt:
        raise
    except BaseException:
        return {}, {}
    tables = (getattr(said, "MOVED", None), getattr(said, "NAMES", None))
    moved, names = (dict(table) if isinstance(table, Mapping) else {} for table in tables)
    return moved, names


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

NAMES: Final[Mapping[str, str]] = {
    "kernbench_core.cli:PluginGroup": "kernbench_core.cli.command:PluginGroup",
    "kernbench_core.cli:kernbench": "kernbench_core.cli.command:kernbench",
    "kernbench_core.cli:shell_of": "kernbench_core.cli.command:shell_of",
    "kernbench_core.compute.math_recomputation:comparable": "kernbench_core.compute.ops.second_way:comparable",
    "kernbench_core.compute.math_recomputation:error_of_sum": "kernbench_core.compute.ops.second_way:error_of_sum",
    "kernbench_core.compute.math_recomputation:rounded": "kernbench_core.compute.ops.second_way:rounded",
    "kernbench_core.compute.ops:Array": "kernbench_core.values:Array",
    "kernbench_core.compute.ops:Cost": "kernbench_core.compute.ops:LaneCost",
    "kernbench_core.compute.ops:MathFunction": "kernbench_core.compute.ops.record:MathFunction",
    "kernbench_core.compute.ops:Params": "kernbench_core.compute.ops.record:Params",
    "kernbench_core.compute.result_types:broadcast": "kernbench_core.compute.ops.shape_rules:broadcast",
    "kernbench_core.engine:ENTRY": "kernbench_core.engine.engine:ENTRY",
    "kernbench_core.fabric:Layout": "kernbench_core.fabric:MachineLayout",
    "kernbench_core.fabric:RunContext": "kernbench_core.fabric:Fabric",
    "kernbench_core.graph:Design": "kernbench_core.topology.design:Design",
    "kernbench_core.host.rows:Cell": "kernbench_core.host.rows:Scalar",
    "kernbench_core.kernel.composite:Layout": "kernbench_core.kernel.composite:MatrixLayout",
    "kernbench_core.kernel.composite:Work": "kernbench_core.kernel.composite:CompositeWork",
    "kernbench_core.kernel.descriptors:Addresses": "kernbench_core.fabric:Addresses",
    "kernbench_core.kernel.queues:SlotBlock": "kernbench_core.kernel.slot_block:SlotBlock",
    "kernbench_core.kernel.tl.dispatch:PeState": "kernbench_core.kernel.pe_state:PeState",
    "kernbench_core.memory.device_memory:Segment": "kernbench_core.memory.device_memory:TensorSegment",
    "kernbench_core.memory:Segment": "kernbench_core.memory.device_memory:TensorSegment",
    "kernbench_core.oplog.parameters:Params": "kernbench_core.oplog.parameters:PackedParams",
    "kernbench_core.oplog.parameters:Plan": "kernbench_core.oplog.parameters:ParamPlan",
    "kernbench_core.registry:Failure": "kernbench_core.registry:PluginFailure",
    "kernbench_core.runs:require_path": "kernbench_core.runs.options:require_path",
    "kernbench_core.testing:Machine": "kernbench_core.testing:Harness",
    "kernbench_core.topology.address:AddressResolver": "kernbench_core.topology.resolver:AddressResolver",
    "kernbench_core.topology.configuration:ALIAS_BUDGET": "kernbench_core.topology.strict_yaml:ALIAS_BUDGET",
    "kernbench_core.topology.configuration:MAX_DEPTH": "kernbench_core.topology.strict_yaml:MAX_DEPTH",
    "kernbench_core.topology.mesh:compile_mesh": "kernbench_core.topology.compilation:compile_topology",
    "kernbench_core.topology.mesh:is_mesh": "kernbench_core.topology:require_kernels",
    "kernbench_core.topology.networks:NETWORKS": "kernbench_core.topology.network_shapes:NETWORKS",
    "kernbench_core.topology.networks:Network": "kernbench_core.topology.networks:ScaleUpNetwork",
    "kernbench_core.topology.networks:Port": "kernbench_core.topology.networks:LinkEnd",
    "kernbench_core.topology.networks:Shape": "kernbench_core.topology.networks:NetworkShape",
    "kernbench_core.topology.specification:Form": "kernbench_core.topology.specification:Derivation",
    "kernbench_core.topology:Network": "kernbench_core.topology:ScaleUpNetwork",
    "kernbench_core.topology:Shape": "kernbench_core.topology:NetworkShape",
    "kernbench_core.topology:compile_mesh": "kernbench_core.topology.compilation:compile_topology",
    "kernbench_core.topology:cube_origin": "kernbench_core.topology.packages:cube_origin",
    "kernbench_core.topology:finish": "kernbench_core.topology.packages:finish",
    "kernbench_core.topology:place": "kernbench_core.topology.packages:place",
    "kernbench_core.values.store_index:Entry": "kernbench_core.values.store_index:WrittenRegion",
    "kernbench_core.values:ground": "kernbench_core.values.views:ground",
    "kernbench_core.values:view_of": "kernbench_core.values.views:view_of",
}
"""New places, as "module:name", of names that are not where their modules went, or are called anew; by old ones."""
