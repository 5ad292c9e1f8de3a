"""Check a specification as a whole: what holds together becomes a plan, with a design and the layout of its cubes."""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import frozen

from kernbench_builtin.machines import naming
from kernbench_builtin.machines.layout import CubeLayout, LayoutFault, lay_out_cube
from kernbench_builtin.machines.network_reader import read_network
from kernbench_builtin.machines.specification import Spec
from kernbench_core.errors import ConfigError
from kernbench_core.graph import PeSite
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.topology.address import CUBE_BITS, INDEX_BITS, OFFSET_BITS, SIP_BITS, TCM_ALIGNMENT, AddressMap
from kernbench_core.topology.configuration import Config, KeyPath, dotted
from kernbench_core.topology.design import Design
from kernbench_core.topology.naming import cube_unit, hbm_ctrl, pe_unit
from kernbench_core.topology.naming import pe as pe_name
from kernbench_core.topology.networks import ScaleUpNetwork
from kernbench_core.units import format_bytes
from kernbench_core.wording import brief

IO_KINDS = ("pcie_ep", "io_noc", "io_cpu", "io_ucie")
PE_KINDS = (
    "pe_cpu", "pe_scheduler", "pe_dma", "pe_ipcq", "pe_mmu", "pe_tcm", "pe_fetch_store", "pe_gemm", "pe_math",
)  # fmt: skip
KINDS = ("host", *IO_KINDS, "link", "switch", "router", "ucie", "m_cpu", "sram", "hbm_ctrl", *PE_KINDS)
"""Every kind of node that the compiler places; `pe.units` adds more."""
MAX_PES = 2**16
"""Largest machine that is compiled."""
_KIND = re.compile(r"[a-z][a-z0-9_]*")
_Report = Callable[[KeyPath, str], None]


@frozen
class Plan:
    """A specification that has been checked, with everything that the later stages place and wire."""

    spec: Spec
    layout: CubeLayout
    network: ScaleUpNetwork
    design: Design

    @property
    def pe_kinds(self) -> tuple[str, ...]:
        """Kinds of the units of every PE."""
        return (*PE_KINDS, *self.spec.pe.units)


def check(config: Config, spec: Spec, networks: NetworkRegistry) -> Plan:
    """Check a specification as a whole and lay out its cubes.

    Raises:
        ConfigError: one sentence for every fault.
    """
    problems: list[str] = []

    def report(path: KeyPath, text: str) -> None:
        problems.append(f"{config.at(path)} {text}")

    network = _check_network(config, spec, networks, problems)
    _check_counts(spec, report)
    _check_sizes(spec, report)
    _check_units(spec, report)
    layout = None
    if spec.cube.pes <= 2**INDEX_BITS:
        try:
            layout = lay_out_cube(spec.cube, spec.sip.ucie.bandwidth)
        except LayoutFault as fault:
            path: KeyPath = ("cube", "mesh", fault.key) if fault.key else ("cube", "mesh")
            problems.append(f"{config.latest(path, *_ROOM_KEYS)}: {dotted(path)} {fault}")
    if problems or layout is None or network is None:
        raise ConfigError(*problems)
    return Plan(spec, layout, network, _design(spec, network))


_ROOM_KEYS: tuple[KeyPath, ...] = (("cube", "pes"), ("cube", "mesh"))
"""What decides whether a cube's mesh has room; a fault is shown where one of these was written last."""


def _check_network(config: Config, spec: Spec, networks: NetworkRegistry, problems: list[str]) -> ScaleUpNetwork | None:
    """Build the scale-up network, of a machine whose counts fit; report what is wrong with it."""
    countable = spec.system.sips <= 2**SIP_BITS and spec.sip.io_chiplets <= len(naming.SIDES)
    try:
        return read_network(config, spec, networks, countable)
    except ConfigError as faults:
        problems.extend(faults.problems)
        return None


def _check_counts(spec: Spec, report: _Report) -> None:
    cubes = spec.sip.mesh.width * spec.sip.mesh.height
    for path, count, most in (
        (("system", "sips"), spec.system.sips, 2**SIP_BITS),
        (("sip", "mesh"), cubes, 2**CUBE_BITS),
        (("cube", "pes"), spec.cube.pes, 2**INDEX_BITS),
        (("sip", "io_chiplets"), spec.sip.io_chiplets, len(naming.SIDES)),
    ):
        if count > most:
            report(path, f"must be at most {most}, not {count}; the address fields or the package have no room.")
    total = spec.system.sips * cubes * spec.cube.pes
    if total > MAX_PES:
        report(("system", "sips"), f"must give at most {MAX_PES} PEs, not {total}; model a smaller machine.")


def _check_sizes(spec: Spec, report: _Report) -> None:
    pes, page = spec.cube.pes, spec.system.page_bytes
    capacity = spec.cube.hbm.capacity
    if capacity % (pes * page):
        report(
            ("cube", "hbm", "capacity"),
            f"must split into {pes} slices of whole pages of {format_bytes(page)}, not {format_bytes(capacity)}.",
        )
    for path, size in (
        (("cube", "hbm", "capacity"), capacity // pes),
        (("cube", "sram", "capacity"), spec.cube.sram.capacity),
        (("pe", "tcm", "capacity"), spec.pe.tcm.capacity),
    ):
        if size > 2**OFFSET_BITS:
            report(path, f"must be at most {format_bytes(2**OFFSET_BITS)} for one unit, not {format_bytes(size)}.")
    if spec.pe.tcm.capacity < TCM_ALIGNMENT:
        line, given = format_bytes(TCM_ALIGNMENT), format_bytes(spec.pe.tcm.capacity)
        report(("pe", "tcm", "capacity"), f"must be at least a line of a scratchpad, {line}, not {given}.")
    if page & (page - 1) or page < 8:
        report(("system", "page_bytes"), f"must be a power of two of at least 8 B, the widest element, not {page} B.")


def _check_units(spec: Spec, report: _Report) -> None:
    kinds = [*PE_KINDS, *spec.pe.units]
    for kind, unit in spec.pe.units.items():
        path: KeyPath = ("pe", "units", kind)
        if kind in KINDS:
            report(path, f"must be a new kind of unit, not {brief(kind)}; use components to replace an existing one.")
        elif _KIND.fullmatch(kind) is None:
            report(path, f"must be named in lower-case letters, digits and '_', not {brief(kind)}.")
        others = [other for other in kinds if other != kind]
        if unit.attach not in others:
            hint = did_you_mean(unit.attach, others)
            report((*path, "attach"), f"must be another unit of the PE, not {brief(unit.attach)}.{hint}")


def _design(spec: Spec, network: ScaleUpNetwork) -> Design:
    system, cubes, pes = spec.system, spec.sip.mesh.width * spec.sip.mesh.height, spec.cube.pes
    sites = (
        (sip, cube, pe, pe_name(sip, cube, pe))
        for sip in range(system.sips)
        for cube in range(cubes)
        for pe in range(pes)
    )
    return Design(
        sips=system.sips,
        cubes_per_sip=cubes,
        pes_per_cube=pes,
        chunk_bytes=system.chunk_bytes,
        page_bytes=system.page_bytes,
        pes=tuple(
            PeSite(
                index=index,
                sip=sip,
                cube=cube,
                pe=pe,
                prefix=prefix,
                pe_cpu=pe_unit(prefix, "pe_cpu"),
                hbm_ctrl=hbm_ctrl(sip, cube, pe),
                m_cpu=cube_unit(sip, cube, "m_cpu"),
                io_cpu=naming.io_unit(sip, 0, "io_cpu"),
            )
            for index, (sip, cube, pe, prefix) in enumerate(sites)
        ),
        address_map=AddressMap(
            system.sips, cubes, pes, spec.cube.hbm.capacity // pes, spec.cube.sram.capacity, spec.pe.tcm.capacity
        ),
        mesh_width=spec.sip.mesh.width,
        mesh_height=spec.sip.mesh.height,
        network=network,
    )
