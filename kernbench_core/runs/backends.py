"""What computes the data of a run, by the names that plug-ins gave it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.plugins.points import BACKENDS
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.compute.backends import Backend


def require_backend(plugins: Plugins, name: object) -> tuple[str, str]:
    """Return a backend and its device, "" without one, of NAME[:DEVICE]; UsageError for one that nobody registers."""
    backends = plugins.of(BACKENDS)
    library, colon, device = name.partition(":") if isinstance(name, str) else ("", "", "")
    if colon and library in backends and not backends[library].devices:
        raise UsageError(f"backend {library!r} has no device, as in {brief(name)}; give --backend {library}.")
    if library not in backends or (colon and not device):
        known = [each for own in backends for each in (own, *(f"{own}:{at}" for at in backends[own].devices))]
        must = f"{', '.join(known[:-1])} or {known[-1]}" if len(known) > 1 else known[0]
        advice = "give one of these" if len(known) > 1 else "leave it out"
        raise UsageError(f"a backend must be {must}, not {brief(name)}; {advice}.{backends.left_out}")
    return library, device


def open_backend(plugins: Plugins, name: object) -> Backend:
    """Return what computes by the name NAME[:DEVICE].

    Raises:
        UsageError: nobody registers it, or it cannot be had on this machine.
        PluginError: what its plug-in registers is none, or raises.
    """
    library, device = require_backend(plugins, name)
    found = backend_class(plugins, library)
    try:
        return found.on(device)
    except (KernbenchError, *INTERRUPTS, MemoryError):
        raise
    except BaseException as error:
        raise plugins.of(BACKENDS).raised(library, error) from error


def backend_class(plugins: Plugins, library: str) -> type[Backend]:
    """Import a backend; PluginError for what is none."""
    from kernbench_core.compute.backends import Backend

    backends = plugins.of(BACKENDS)
    found = backends.load(library)
    if not (isinstance(found, type) and issubclass(found, Backend)):
        raise backends.fault(library, f"must be a Backend class of kernbench_core.compute, not {found!r}")
    return found
