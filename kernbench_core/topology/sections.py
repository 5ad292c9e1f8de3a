"""Sections of a configuration as classes: every field is one key, and its annotation says what its value must be.

A text in the annotation says what the key is. Times are ns, bandwidths B/ns, sizes bytes, lengths mm. Each kind of
machine has sections of its own; those that name components are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from attrs import field, frozen

from kernbench_core.topology.configuration import KeyPath


@frozen
class Quantity:
    """The dimension of a key and what its value must be; `auto` also admits the word for None."""

    dimension: str
    positive: bool = False
    minimum: float | None = None
    auto: bool = False
    choices: tuple[object, ...] = ()
    maximum: float | None = None


Bandwidth = Annotated[float, Quantity("bandwidth", positive=True)]
Latency = Annotated[float, Quantity("time", positive=True)]
Length = Annotated[float, Quantity("length", positive=True)]
Frequency = Annotated[float, Quantity("frequency", positive=True)]
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
class Derivation:
    """Another way to give the figure `key`: by the keys `others`, from whose values `derive` makes it.

    `derive` raises a ValueError whose text starts with the key at fault.
    """

    key: str
    others: tuple[str, ...]
    derive: Callable[..., float]


@frozen
class ComponentSpec:
    """The implementation of a node kind and its parameters, as written: the class declares what they mean."""

    impl: Annotated[Text, "Component that serves these nodes."]
    params: Mapping[str, object] = field(factory=dict)


@frozen
class OverrideSpec:
    """Another implementation or other parameters for the nodes whose id matches a pattern of `fnmatch`."""

    match: Annotated[Text, "Pattern of node ids: sip0.cube*.pe0.pe_gemm, *.hbm_ctrl[01]."]
    impl: Annotated[Text | None, "Component that serves these nodes instead."] = None
    params: Mapping[str, object] = field(factory=dict)


@frozen
class Choices:
    """The sections that name implementations: kinds, overrides by pattern, and further kinds of node with theirs.

    A configuration names the further kinds, `units`, below the key path `units_at`, where its kind of machine has such.
    """

    components: Mapping[str, ComponentSpec]
    overrides: list[OverrideSpec]
    units: Mapping[str, ComponentSpec] = field(factory=dict)
    units_at: KeyPath = ()
