"""The specification: what a topology file says, typed and in kernbench's own units, before any check of the whole.

Every class is one section of the file and every field one key. Times are ns, bandwidths B/ns, sizes bytes, lengths mm.
"""

from __future__ import annotations

import collections.abc
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

import attrs
import cattrs
from attrs import field, frozen
from cattrs.cols import list_structure_factory, mapping_structure_factory
from cattrs.errors import (
    AttributeValidationNote,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
)
from cattrs.gen import make_dict_structure_fn

from kernbench_core.config import Config, KeyPath
from kernbench_core.errors import ConfigError
from kernbench_core.link_rates import pcie_bandwidth, ucie_bandwidth
from kernbench_core.params import did_you_mean
from kernbench_core.units import parse_quantity

_T = TypeVar("_T")


@frozen
class Quantity:
    """The dimension of a key and what its value must be at least; `auto` also admits the word for None."""

    dimension: str
    positive: bool = False
    minimum: float | None = None
    auto: bool = False


Bandwidth = Annotated[float, Quantity("bandwidth", positive=True)]
Latency = Annotated[float, Quantity("time", positive=True)]
Length = Annotated[float, Quantity("length", positive=True)]
Size = Annotated[int, Quantity("size", positive=True)]
Count = Annotated[int, Quantity("int", positive=True)]
Text = Annotated[str, Quantity("str")]
AutoCount = Annotated[int | None, Quantity("int", minimum=0, auto=True)]
AutoExtent = Annotated[int | None, Quantity("int", minimum=1, auto=True)]
OptionalBandwidth = Annotated[float | None, Quantity("bandwidth", positive=True)]
OptionalLatency = Annotated[float | None, Quantity("time", positive=True)]
OptionalRate = Annotated[float | None, Quantity("transfer_rate", positive=True)]
OptionalCount = Annotated[int | None, Quantity("int", positive=True)]


@frozen
class Form:
    """Another way to give the figure `key`: by the keys `others`, from whose values `derive` makes it.

    `derive` raises a ValueError whose text starts with the key at fault.
    """

    key: str
    others: tuple[str, ...]
    derive: Callable[..., float]


@frozen
class LinkSpec:
    """A kind of wire: `latency` is its fixed part, `ns_per_mm` is added for the distance it spans.

    `payload_bytes` defaults to the chunk size and `header_bytes` to one flit.
    """

    bandwidth: Bandwidth
    latency: Latency
    ns_per_mm: Annotated[float, Quantity("time_per_length")] = 0.0
    payload_bytes: Size | None = None
    header_bytes: Annotated[int, Quantity("size")] | None = None


@frozen
class PcieSpec(LinkSpec):
    """A PCIe link, by its bandwidth or by generation and lanes."""

    FORMS: ClassVar[tuple[Form, ...]] = (Form("bandwidth", ("generation", "lanes"), pcie_bandwidth),)

    bandwidth: Bandwidth = field(default=0.0, kw_only=True)
    generation: OptionalCount = field(default=None, kw_only=True)
    lanes: OptionalCount = field(default=None, kw_only=True)


@frozen
class UcieSpec(LinkSpec):
    """A UCIe link, by bandwidth and latency or by lanes, transfer rate (GT/s) and the latency of both adapters."""

    FORMS: ClassVar[tuple[Form, ...]] = (
        Form("bandwidth", ("lanes", "rate"), ucie_bandwidth),
        Form("latency", ("adapter_latency",), float),
    )

    bandwidth: Bandwidth = field(default=0.0, kw_only=True)
    latency: Latency = field(default=0.0, kw_only=True)
    lanes: OptionalCount = field(default=None, kw_only=True)
    rate: OptionalRate = field(default=None, kw_only=True)
    adapter_latency: OptionalLatency = field(default=None, kw_only=True)


@frozen
class LinkOverrideSpec:
    """Another bandwidth or latency for the scale-up links that match a pattern of `fnmatch`."""

    match: Text
    bandwidth: OptionalBandwidth = None
    latency: OptionalLatency = None


@frozen
class NetworkSpec(LinkSpec):
    """The scale-up network: its links, the name of its shape, the columns and rows of one that is flat."""

    topology: Text = field(default="ring", kw_only=True)
    width: AutoExtent = field(default=None, kw_only=True)
    height: AutoExtent = field(default=None, kw_only=True)
    links: list[LinkOverrideSpec] = field(factory=list, kw_only=True)


@frozen
class SystemSpec:
    """The whole machine: packages, how they are joined, and the granularities of transfers."""

    sips: Count
    network: NetworkSpec
    chunk_bytes: Size = 4096
    page_bytes: Size = 4096
    flit_bytes: Size = 32


@frozen
class HostSpec:
    """The host and its links to the packages."""

    pcie: PcieSpec


@frozen
class CubeMeshSpec:
    """How many cubes a package has from west to east and from north to south."""

    width: Count
    height: Count


@frozen
class SipSpec:
    """One package: IO chiplets, each with a NoC, and a mesh of cubes joined by UCIe."""

    mesh: CubeMeshSpec
    noc: LinkSpec
    ucie: UcieSpec
    io_chiplets: Count = 1


@frozen
class ZoneSpec:
    """Rows and columns in the middle of the router mesh that HBM covers; `auto` is about half of each."""

    rows: AutoCount = None
    columns: AutoCount = None


@frozen
class RouterMeshSpec:
    """Rows and columns of routers; `auto` is the smallest mesh with room for the PEs, m_cpu and sram."""

    rows: AutoCount = None
    columns: AutoCount = None
    hbm_zone: ZoneSpec = ZoneSpec()


@frozen
class HbmSpec:
    """The HBM stack of a cube, split into one slice per PE; `link` joins a slice's controller to its router."""

    capacity: Size
    link: LinkSpec


@frozen
class SramSpec:
    """The scratchpad that a cube's PEs share."""

    capacity: Size
    link: LinkSpec


@frozen
class CubeSpec:
    """One HBM cube: PEs, router mesh, memories, and the wires of its management processor to the PEs."""

    pes: Count
    noc: LinkSpec
    hbm: HbmSpec
    sram: SramSpec
    command: LinkSpec
    mesh: RouterMeshSpec = RouterMeshSpec()
    width: Length = 10.0
    height: Length = 10.0


@frozen
class TcmSpec:
    """The scratchpad of a PE."""

    capacity: Size


@frozen
class PeLinksSpec:
    """Wires inside a PE: `control` carries commands and tokens, `data` operands, `dma` joins pe_dma to its router."""

    control: LinkSpec
    data: LinkSpec
    dma: LinkSpec


@frozen
class ComponentSpec:
    """The implementation of a node kind and its parameters, as written: the class declares what they mean."""

    impl: Text
    params: Mapping[str, object] = field(factory=dict)


@frozen
class UnitSpec(ComponentSpec):
    """A further unit of every PE, wired both ways to the unit it attaches to, pe_scheduler and pe_cpu."""

    attach: Text = field(default="pe_tcm", kw_only=True)


@frozen
class OverrideSpec:
    """Another implementation or other parameters for the nodes whose id matches a pattern of `fnmatch`."""

    match: Text
    impl: Text | None = None
    params: Mapping[str, object] = field(factory=dict)


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
    title: Text = ""


@frozen
class Choices:
    """The sections that name implementations: kinds, overrides by pattern, further units of a PE."""

    components: Mapping[str, ComponentSpec]
    overrides: list[OverrideSpec]
    units: Mapping[str, UnitSpec]

    @classmethod
    def of(cls, spec: Spec) -> Choices:
        """Take them from a whole specification."""
        return cls(spec.components, spec.overrides, spec.pe.units)


def read_choices(config: Config) -> Choices:
    """Read these sections alone, for messages about them when other sections are wrong; a wrong one reads as empty."""
    converter, pe = _converter(), config.data.get("pe")

    def section(value: Any, kind: Any, empty: Any) -> Any:
        try:
            return converter.structure(value, kind)
        except (ClassValidationError, IterableValidationError, ValueError):
            return empty

    return Choices(
        section(config.data.get("components"), Mapping[str, ComponentSpec], {}),
        section(config.data.get("overrides"), list[OverrideSpec], []),
        section(pe.get("units") if isinstance(pe, Mapping) else None, Mapping[str, UnitSpec], {}),
    )


def read_spec(config: Config) -> Spec:
    """Type the merged configuration.

    Raises:
        ConfigError: one sentence for every unknown or missing key and every value that does not fit.
    """
    return structure(config, Spec)


def structure(config: Config, kind: type[_T]) -> _T:
    """Type the merged configuration as a class of sections; raise ConfigError with every fault."""
    try:
        return _converter().structure(config.data, kind)
    except ClassValidationError as faults:
        problems = [f"{config.at(path)} {text}" for path, text in _flatten(faults, ())]
        raise ConfigError(*dict.fromkeys(problems)) from None


def _quantity_hook(kind: Any) -> Callable[[Any, Any], Any]:
    quantity = next(mark for mark in get_args(kind)[1:] if isinstance(mark, Quantity))

    def structure(value: Any, _: Any) -> Any:
        if quantity.auto and value in ("auto", None):
            return None
        try:
            return parse_quantity(value, quantity.dimension, positive=quantity.positive, minimum=quantity.minimum)
        except ValueError as error:
            if quantity.auto:
                raise ValueError(str(error).replace(", not ", " or auto, not ", 1)) from None
            raise

    return structure


def _is_quantity(kind: Any) -> bool:
    return get_origin(kind) is Annotated and any(isinstance(mark, Quantity) for mark in get_args(kind)[1:])


def _is_params(kind: Any) -> bool:
    return get_origin(kind) is collections.abc.Mapping and get_args(kind) == (str, object)


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping of keys to values, not {value!r}.")
    return dict(value)


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"must be a list, not {value!r}.")
    return value


@functools.cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    converter.register_structure_hook_factory(_is_quantity, _quantity_hook)
    converter.register_structure_hook_func(_is_params, lambda value, _: dict(_mapping(value)))
    for applies, factory in (
        (attrs.has, _section_hook),
        (_is_mapping_of_sections, mapping_structure_factory),
        (_is_list, list_structure_factory),
    ):
        converter.register_structure_hook_factory(applies, _guarded(factory, converter))
    return converter


def _section_hook(cls: type[Any], converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    inner = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)
    forms: tuple[Form, ...] = getattr(cls, "FORMS", ())
    return (lambda value, target: _with_forms(forms, value, inner(value, target))) if forms else inner


class _KeyFault(ValueError):
    """A fault of one key of a section, found once the section was read; `text` starts with the key."""

    def __init__(self, text: str) -> None:
        self.key, _, rest = text.partition(" ")
        super().__init__(rest)


def _with_forms(forms: tuple[Form, ...], given: Mapping[str, object], read: Any) -> Any:
    """Complete a section that was read: each figure is given by itself or by its other form, never by both."""
    for form in forms:
        others = [key for key in form.others if key in given]
        names = " and ".join(form.others)
        if form.key in given and others:
            raise _KeyFault(f"{others[0]} must not stand beside {form.key}: give {form.key}, or {names}, not both.")
        if form.key not in given and len(others) < len(form.others):
            raise ValueError(f"must have {form.key}, or {names}; add what is missing, or start from a preset.")
        if others:
            try:
                figure = form.derive(*(getattr(read, key) for key in form.others))
            except ValueError as fault:
                raise _KeyFault(str(fault)) from None
            read = attrs.evolve(read, **{form.key: figure})
    return read


def _guarded(factory: Any, converter: cattrs.Converter) -> Callable[[Any], Callable[[Any, Any], Any]]:
    """Refuse a value of the wrong shape with a sentence before cattrs takes it apart."""

    def make(kind: Any) -> Callable[[Any, Any], Any]:
        inner = factory(kind, converter)
        check: Callable[[object], object] = _list if _is_list(kind) else _mapping
        return lambda value, target: inner(check(value), target)

    return make


def _is_list(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is list


def _is_mapping_of_sections(kind: Any) -> bool:
    arguments = get_args(kind)
    return get_origin(kind) is collections.abc.Mapping and attrs.has(arguments[1])


def _flatten(faults: BaseException, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield (key path, rest of the sentence) for every fault inside a cattrs exception group."""
    if isinstance(faults, ClassValidationError | IterableValidationError):
        with_notes, without = faults.group_exceptions()
        for fault, note in with_notes:
            key: Any = note.name if isinstance(note, AttributeValidationNote) else note.index
            if isinstance(fault, KeyError):
                yield path, f"must have the key {key!r}; add it, or start from a preset with 'base:'."
            else:
                yield from _flatten(fault, (*path, key))
        for fault in without:
            yield from _flatten(fault, path)
    elif isinstance(faults, ForbiddenExtraKeysError):
        known = [a.name for a in attrs.fields(faults.cl)] + ["base"] * (not path)
        for key in sorted(faults.extra_fields):
            yield (*path, key), f"must be a known key.{did_you_mean(key, known)}"
    elif isinstance(faults, _KeyFault):
        yield (*path, faults.key), str(faults)
    else:
        yield path, str(faults)
