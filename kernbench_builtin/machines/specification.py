"""The specification: what a topology file says, typed and in kernbench's own units, before any check of the whole.

Every class is one section of the file and every field one key; a text in its annotation says what it is. Times are ns,
bandwidths B/ns, sizes bytes, lengths mm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from attrs import field, frozen

from kernbench_builtin.machines.link_rates import PCIE_GENERATIONS, PCIE_LANES, pcie_bandwidth, ucie_bandwidth
from kernbench_core.topology.sections import (
    AutoCount,
    AutoExtent,
    Bandwidth,
    ComponentSpec,
    Count,
    Derivation,
    Latency,
    Length,
    OptionalBandwidth,
    OptionalCount,
    OptionalLatency,
    OptionalRate,
    OverrideSpec,
    Quantity,
    Size,
    Text,
)


@frozen
class LinkSpec:
    """A kind of wire; `payload_bytes` defaults to the chunk size and `header_bytes` to one flit."""

    bandwidth: Annotated[Bandwidth, "Bytes that the wire carries in a time, in one direction."]
    latency: Annotated[Latency, "Fixed part of the time from one end to the other."]
    payload_bytes: Annotated[Size | None, "Payload of a packet; default: the chunk size."] = None
    header_bytes: Annotated[
        Annotated[int, Quantity("size")] | None, "Header of a packet, at least one a message; default: one flit."
    ] = None


@frozen
class SpanSpec(LinkSpec):
    """A kind of wire whose ends the layout places: `ns_per_mm` is added to its latency for the distance it spans."""

    ns_per_mm: Annotated[float, Quantity("time_per_length"), "Added to the latency for the distance spanned."] = 0.0


@frozen
class PcieSpec(LinkSpec):
    """A PCIe link, by its bandwidth or by generation and lanes."""

    FORMS: ClassVar[tuple[Derivation, ...]] = (Derivation("bandwidth", ("generation", "lanes"), pcie_bandwidth),)

    bandwidth: Annotated[Bandwidth, "Bytes that the link carries in a time; or give generation and lanes."] = field(
        default=0.0, kw_only=True
    )
    generation: Annotated[
        int | None, Quantity("int", positive=True, choices=tuple(PCIE_GENERATIONS)), "PCIe generation, beside lanes."
    ] = field(default=None, kw_only=True)
    lanes: Annotated[
        int | None, Quantity("int", positive=True, choices=PCIE_LANES), "Lanes of the link, beside generation."
    ] = field(default=None, kw_only=True)


@frozen
class UcieSpec(SpanSpec):
    """A UCIe link, by bandwidth and latency or by lanes, transfer rate (GT/s) and the latency of both adapters."""

    FORMS: ClassVar[tuple[Derivation, ...]] = (
        Derivation("bandwidth", ("lanes", "rate"), ucie_bandwidth),
        Derivation("latency", ("adapter_latency",), float),
    )

    bandwidth: Annotated[Bandwidth, "Bytes that the link carries in a time; or give lanes and rate."] = field(
        default=0.0, kw_only=True
    )
    latency: Annotated[Latency, "Time from die to die; or give adapter_latency."] = field(default=0.0, kw_only=True)
    lanes: Annotated[OptionalCount, "Lanes of the link, beside rate."] = field(default=None, kw_only=True)
    rate: Annotated[OptionalRate, "Transfer rate of a lane, beside lanes."] = field(default=None, kw_only=True)
    adapter_latency: Annotated[OptionalLatency, "Latency of both adapters and PHYs, instead of latency."] = field(
        default=None, kw_only=True
    )


@frozen
class LinkOverrideSpec:
    """Another bandwidth or latency for the scale-up links that match a pattern of `fnmatch`."""

    match: Annotated[Text, "Pattern of the ends of a link, or of a port: sip0-sip1, *.link_e."]
    bandwidth: Annotated[OptionalBandwidth, "Bandwidth of these links."] = None
    latency: Annotated[OptionalLatency, "Latency of these links."] = None


@frozen
class NetworkSpec(LinkSpec):
    """The scale-up network: its links, the name of its shape with parameters, columns and rows of one that is flat."""

    topology: Annotated[Text, "Shape of the network."] = field(default="ring", kw_only=True)
    width: Annotated[AutoExtent, "Columns of a mesh or torus; auto: the most square."] = field(
        default=None, kw_only=True
    )
    height: Annotated[AutoExtent, "Rows of a mesh or torus; auto: the most square."] = field(default=None, kw_only=True)
    params: Mapping[str, object] = field(factory=dict, kw_only=True)
    links: list[LinkOverrideSpec] = field(factory=list, kw_only=True)


@frozen
class SystemSpec:
    """The whole machine: packages, how they are joined, and the granularities of transfers."""

    sips: Annotated[Count, "Number of packages."]
    network: NetworkSpec
    chunk_bytes: Annotated[Size, "Largest fabric transaction of a DMA."] = 4096
    page_bytes: Annotated[Size, "Page of the virtual address space, a power of two."] = 4096
    flit_bytes: Annotated[Size, "Default header of a link."] = 32


@frozen
class HostSpec:
    """The host and its links to the packages."""

    pcie: PcieSpec


@frozen
class CubeMeshSpec:
    """How many cubes a package has from west to east and from north to south."""

    width: Annotated[Count, "Cubes from west to east."]
    height: Annotated[Count, "Cubes from north to south."]


@frozen
class SipSpec:
    """One package: IO chiplets, each with a NoC, and a mesh of cubes joined by UCIe."""

    mesh: CubeMeshSpec
    noc: LinkSpec
    ucie: UcieSpec
    io_chiplets: Annotated[Count, "IO chiplets, at most 4: north, south, west, east of the cubes."] = 1


@frozen
class ZoneSpec:
    """Rows and columns in the middle of the router mesh that HBM covers; `auto` is about half of each."""

    rows: Annotated[AutoCount, "Rows that HBM covers."] = None
    columns: Annotated[AutoCount, "Columns that HBM covers."] = None


@frozen
class RouterMeshSpec:
    """Rows and columns of routers; `auto` is the smallest mesh with room for the PEs, m_cpu and sram."""

    rows: Annotated[AutoCount, "Rows of routers."] = None
    columns: Annotated[AutoCount, "Columns of routers."] = None
    hbm_zone: ZoneSpec = ZoneSpec()


@frozen
class HbmSpec:
    """The HBM stack of a cube, split into one slice per PE; `link` joins a slice's controller to its router."""

    capacity: Annotated[Size, "Bytes of the stack, split evenly into one slice per PE."]
    link: LinkSpec


@frozen
class SramSpec:
    """The scratchpad that a cube's PEs share."""

    capacity: Annotated[Size, "Bytes of the scratchpad."]
    link: SpanSpec


@frozen
class CubeSpec:
    """One HBM cube: PEs, router mesh, memories, and the wires of its management processor to the PEs."""

    pes: Annotated[Count, "PEs of a cube, at most 256."]
    noc: SpanSpec
    hbm: HbmSpec
    sram: SramSpec
    command: SpanSpec
    mesh: RouterMeshSpec = RouterMeshSpec()
    width: Annotated[Length, "Size of the die from west to east."] = 10.0
    height: Annotated[Length, "Size of the die from north to south."] = 10.0


@frozen
class TcmSpec:
    """The scratchpad of a PE."""

    capacity: Annotated[Size, "Bytes of the scratchpad."]


@frozen
class PeLinksSpec:
    """Wires inside a PE: `control` carries commands and tokens, `data` operands, `dma` joins pe_dma to its router."""

    control: LinkSpec
    data: LinkSpec
    dma: LinkSpec


@frozen
class UnitSpec(ComponentSpec):
    """A further unit of every PE, wired both ways to the unit it attaches to, pe_scheduler and pe_cpu."""

    attach: Annotated[Text, "Unit of the PE that it attaches to."] = field(default="pe_tcm", kw_only=True)


@frozen
class PeSpec:
    """One PE: scratchpad, wires, further units."""

    tcm: TcmSpec
    links: PeLinksSpec
    units: Mapping[str, UnitSpec] = field(factory=dict)


@frozen
class Spec:
    """A topology file as a whole."""

    system: SystemSpec
    host: HostSpec
    sip: SipSpec
    cube: CubeSpec
    pe: PeSpec
    components: Mapping[str, ComponentSpec]
    overrides: list[OverrideSpec] = field(factory=list)
    title: Annotated[Text, "What results and pictures call the machine."] = ""
