"""Build the scale-up network of a specification."""

from __future__ import annotations

import fnmatch

from kernbench_builtin.machines.specification import Spec
from kernbench_core.errors import ConfigError, PluginError, UnknownName
from kernbench_core.params import did_you_mean, resolve_params
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.topology.configuration import Config, KeyPath
from kernbench_core.topology.networks import (
    NetworkFault,
    NetworkShape,
    ScaleUpNetwork,
    ShapeFault,
    build_network,
    find_extent,
    open_shape,
    unusual,
)
from kernbench_core.wording import brief

_WHERE: KeyPath = ("system", "network")


def read_network(config: Config, spec: Spec, networks: NetworkRegistry, countable: bool) -> ScaleUpNetwork | None:
    """Return the scale-up network of a machine; None where it has too many packages to be `countable`.

    Raises:
        ConfigError: one sentence for every fault: of the configuration, or of a shape that breaks its contract.
        PluginError: the shape raised.
    """
    written = spec.system.network
    name, problems = written.topology, list[str]()
    shape = _open(config, networks, name)
    values, faults = resolve_params(shape.params, written.params, lambda *names: config.at((*_WHERE, "params", *names)))
    problems += faults
    network = None
    try:
        extent = find_extent(name, shape, spec.system.sips, written.width, written.height, values)
        if countable and not faults:
            network = build_network(name, shape, extent, spec.sip.io_chiplets)
    except NetworkFault as fault:
        wrong = unusual(shape, fault)
        told = _unusable(config, name, networks.fault(name, wrong)) if wrong else ""
        problems.append(told or f"{config.at(_path_of(fault.key))} {fault}")
    except ShapeFault as fault:
        problems.append(_unusable(config, name, networks.fault(name, str(fault))))
    except (*INTERRUPTS, MemoryError):
        raise
    except BaseException as error:
        raise networks.raised(name, error) from error
    if network is not None:
        problems += _unmatched(config, spec, network)
    if problems:
        raise ConfigError(*problems)
    return network


def _open(config: Config, networks: NetworkRegistry, name: str) -> NetworkShape:
    """Return the shape of a name; raise ConfigError where there is none, or none that is usable."""
    try:
        return open_shape(networks, name)
    except UnknownName:
        known = ", ".join(map(repr, networks))
        hint = did_you_mean(name, networks).partition(" Known: ")[0]
        raise ConfigError(
            f"{config.at((*_WHERE, 'topology'))} must be one of {known}, not {brief(name)}.{hint}"
        ) from None
    except PluginError as fault:
        raise ConfigError(_unusable(config, name, fault)) from fault


def _unusable(config: Config, name: str, fault: PluginError) -> str:
    return f"{config.at((*_WHERE, 'topology'))} must be usable, not {brief(name)}: {fault}"


def _path_of(key: str) -> KeyPath:
    """Return the key path that a shape means by the key of a fault."""
    if key == "sips":
        return ("system", "sips")
    return (*_WHERE, key) if key in ("width", "height") else (*_WHERE, "params", key)


def _unmatched(config: Config, spec: Spec, network: ScaleUpNetwork) -> list[str]:
    """Say which patterns of `system.network.links` match no link."""
    names, problems = [name for link in network.links for name in link.names], []
    for index, override in enumerate(spec.system.network.links):
        if not fnmatch.filter(names, override.match):
            hint, at = did_you_mean(override.match, names), config.at((*_WHERE, "links", index, "match"))
            problems.append(f"{at} must match at least one link, not {brief(override.match)}.{hint}")
    return problems
