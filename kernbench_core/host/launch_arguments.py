"""What `rt.launch` makes of its arguments: the PEs, their programs, and what the kernel is called with."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernbench_core.errors import KernelError, UsageError
from kernbench_core.host.device_tensor import TensorPart
from kernbench_core.kernel.arguments import replace_nested
from kernbench_core.values.masks import NO_MASK, has_mask
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.graph import PeSite

#: Programs that one launch may have: to simulate more would take hours.
MOST_PROGRAMS = 2**24


def choose_pes(
    pes: tuple[PeSite, ...], device: int | str | Iterable[int] | None, call: str = "rt.launch"
) -> tuple[PeSite, ...]:
    """Return those of `pes` that are on the SIPs of `device`: a number, numbers, "sip:N", or "all" (as None).

    An iterable is gone through once. Raise UsageError for anything else, and for a SIP that no PE is on; `call` is who
    was asked.
    """
    if device is None or device == "all":
        return pes
    wanted = _sips(device, call)
    known = {site.sip for site in pes}
    if not wanted or not known.issuperset(wanted):
        raise UsageError(
            f"{call}: device must name SIPs of this run, not {brief(wanted)}; this run has {sorted(known)}."
        )
    chosen = set(wanted)
    return tuple(site for site in pes if site.sip in chosen)


def pick_pes(
    sites: tuple[PeSite, ...], positions: Iterable[int] | None, call: str = "rt.launch"
) -> tuple[PeSite, ...]:
    """Return the PEs at `positions` among `sites`, in PE order; all of them for None.

    Raise UsageError for a position that is none, or given twice, and for no position at all.
    """
    if positions is None:
        return sites
    several = isinstance(positions, Iterable) and not isinstance(positions, str)
    given: list[Any] = list(positions) if several else [positions]
    right = all(hasattr(at, "__index__") and not isinstance(at, bool) and 0 <= at < len(sites) for at in given)
    if not given or not right or len({int(at) for at in given}) < len(given):
        shown = positions if isinstance(positions, Sequence) or not several else given
        raise UsageError(
            f"{call}: pes must be different positions among the {len(sites)} PEs, from 0 to {len(sites) - 1}, not "
            f"{brief(shown)}; name at least one."
        )
    return tuple(sites[at] for at in sorted(int(at) for at in given))


def _sips(device: object, call: str) -> list[int]:
    """Return the SIP numbers that `device` names; raise UsageError when it has no form that can."""
    found: list[Any] | None = None
    if isinstance(device, str):
        kind, _, number = device.partition(":")
        if kind == "sip" and number.isdecimal():
            return [int(number)]
    elif isinstance(device, Iterable):
        found = list(device)
    else:
        found = [device]
    if found is None or any(isinstance(sip, bool) or not hasattr(sip, "__index__") for sip in found):
        shown = device if found is None or isinstance(device, Sequence) else found
        raise UsageError(
            f"{call}: device must be the number of a SIP, several of them, 'sip:N' or 'all', not {brief(shown)}."
        )
    return [int(sip) for sip in found]


def deal_programs(
    pes: Sequence[int], grid: tuple[int, ...] | None
) -> tuple[dict[int, tuple[tuple[int, int, int], ...]], tuple[int, int, int]]:
    """Deal the programs of `grid` to `pes` round-robin, x fastest; one per PE where there is no grid."""
    if grid is None:
        return {pe: ((i, 0, 0),) for i, pe in enumerate(pes)}, (len(pes), 1, 1)
    x, y, z = full_grid(grid)
    dealt: dict[int, list[tuple[int, int, int]]] = {}
    for number in range(math.prod((x, y, z))):
        dealt.setdefault(pes[number % len(pes)], []).append((number % x, number // x % y, number // (x * y)))
    return {pe: tuple(ids) for pe, ids in dealt.items()}, (x, y, z)


def full_grid(grid: object, call: str = "rt.launch") -> tuple[int, int, int]:
    """Return the three extents of a grid; UsageError where it is none, or has more than `MOST_PROGRAMS` programs."""
    given = list(grid) if isinstance(grid, tuple | list) else []
    if not 1 <= len(given) <= 3 or any(not isinstance(n, int | np.integer) or n < 1 for n in given):
        raise UsageError(
            f"{call}: grid must be a tuple of one to three positive integers, not {brief(grid)}; write grid=(x, y)."
        )
    x, y, z = (*map(int, given), 1, 1)[:3]
    if x * y * z > MOST_PROGRAMS:
        raise UsageError(
            f"{call}: grid must have at most {MOST_PROGRAMS:,} programs, not {brief(grid)}; let each program do more."
        )
    return x, y, z


def bind_arguments(
    kernel: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, object], call: str = "rt.launch"
) -> dict[str, object]:
    """Match arguments to the kernel's parameters by name, `tl` left out; raise UsageError when they do not fit.

    `*rest` is bound to a tuple and `**more` to a dict, as by `inspect.Signature.bind`; defaults are filled in. `call`
    is who was asked.
    """
    rest = kernel_signature(kernel, call)
    name = name_of(kernel)
    if "tl" in kwargs:
        raise UsageError(f"{call}: argument 'tl' of kernel {name!r} must be left out; every program has its own.")
    try:
        bound = rest.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{call}: the arguments do not fit kernel {name!r}{rest}: {error}.") from None
    bound.apply_defaults()
    for parameter, value in bound.arguments.items():
        replace_nested(value, TensorPart, TensorPart.refuse)
        if has_mask(value):
            raise UsageError(f"{call}: argument {parameter!r} of kernel {name!r} must be {NO_MASK}.")
    return dict(bound.arguments)


def kernel_signature(kernel: Callable[..., Any], call: str = "rt.launch") -> inspect.Signature:
    """Return the parameters of a kernel but for `tl`; UsageError where it is no function, KernelError without `tl`."""
    if not callable(kernel):
        raise UsageError(f"{call}: the kernel must be a function, not {brief(kernel)}; give it first.")
    signature = inspect.signature(kernel)
    own = signature.parameters.get("tl")
    if own is None or own.kind in (own.VAR_POSITIONAL, own.VAR_KEYWORD):
        instead = "add it, last by custom"
        if hasattr(kernel, "fn"):  # of a decorator such as triton.jit
            instead += ", and drop its decorator; `kernbench triton FILE.py` runs a script written in Triton as it is"
        raise KernelError(f"kernel {name_of(kernel)!r} must have a parameter named 'tl'; {instead}.")
    return signature.replace(parameters=[p for n, p in signature.parameters.items() if n != "tl"])


def name_of(kernel: Callable[..., Any]) -> str:
    """Return what messages call a kernel."""
    return str(getattr(kernel, "__name__", repr(kernel)))
