"""What a run answers with, beside its times: whether it is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from kernbench_core.compute.on_demand import BranchValues, HostReads
from kernbench_core.memory.hazard import ORDERS
from kernbench_core.memory.outside import count_outside
from kernbench_core.runs.listing import listed
from kernbench_core.units import finite

if TYPE_CHECKING:
    from kernbench_core.compute.backends import ComputedBy
    from kernbench_core.compute.verification import Verification
    from kernbench_core.memory.hazard import Hazard
    from kernbench_core.memory.outside import OutsideAccess
    from kernbench_core.runs.verdicts import PythonReads

Styled = tuple[str, str]
"""A piece of a line, and how a terminal shows it: "" as everything else."""
_GOOD, _BAD, _OPEN = "bold green", "bold red", "yellow"


class GivenByCorrectness:
    """What a result has from its `Correctness`, beside what it declares, for type checkers."""

    __slots__ = ()

    verified: bool | None
    ops_verified: bool | None
    right: bool
    max_abs_error: float | None
    verification: Verification | None
    op_verification: Verification | None
    failures: tuple[str, ...]
    hazards: tuple[Hazard, ...]
    outside: tuple[OutsideAccess, ...]
    branch_values: BranchValues
    host_reads: HostReads
    python_reads: PythonReads | None
    computed_by: ComputedBy | None


@attrs.frozen
class Correctness:
    """What is known of whether a run is right.

    `verification` is None when the data was not verified, `op_verification` unless ops were to be. `hazards` are uses
    of memory that nothing orders, found with and without data; `outside` are accesses to elements outside of tensors,
    where these are no errors. `branch_values` says how many values kernels branched on that only phase 2 knows, and
    how many it confirmed, `host_reads` the same of what the host read before the end. `python_reads` says what of
    loaded data kernels read into Python, whose arithmetic is not timed; None where they read nothing. `computed_by`
    says what computed data, None where nothing did. `uncompared` are the words of a kind of program for data that is
    compared with nothing, or that `failed`, `orders` what would order uses of memory that are hazards.
    """

    GIVES: ClassVar = tuple(GivenByCorrectness.__annotations__)

    verification: Verification | None = None
    op_verification: Verification | None = None
    hazards: tuple[Hazard, ...] = attrs.field(default=(), converter=listed)
    outside: tuple[OutsideAccess, ...] = attrs.field(default=(), converter=listed)
    branch_values: BranchValues = attrs.field(factory=BranchValues)
    host_reads: HostReads = attrs.field(factory=HostReads)
    python_reads: PythonReads | None = None
    computed_by: ComputedBy | None = None
    uncompared: str = ""
    failed: bool = False
    orders: str = ORDERS

    @property
    def verified(self) -> bool | None:
        """Whether every checked tensor is right; None when that was not asked for, or no tensor is checked."""
        return self.verification.ok if self.verification is not None and self.verification.checked else None

    @property
    def ops_verified(self) -> bool | None:
        """Whether every op gives what it gives when computed anew by itself; None when that was not asked for."""
        return None if self.op_verification is None else self.op_verification.ok

    @property
    def right(self) -> bool:
        """Whether nothing that was verified is wrong, and the program did not fail."""
        return self.verified is not False and self.ops_verified is not False and not self.failed

    @property
    def max_abs_error(self) -> float | None:
        """The largest absolute difference from what was expected; None when nothing was compared."""
        return self.verification.max_abs_error if self.verification is not None and self.verification.checked else None

    @property
    def failures(self) -> tuple[str, ...]:
        """What of the data and of the ops is wrong, in words."""
        return tuple(
            failure
            for each in (self.verification, self.op_verification)
            for failure in (() if each is None else each.failures)
        )

    def data_json(self) -> dict[str, Any]:
        """Return what was checked, what of it is wrong, and how."""
        found = self.verification
        if found is None:
            return {"checked": 0, "wrong": 0, "failures": []}
        return {"checked": found.checked, "wrong": found.wrong, "failures": list(found.failures)}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types: the verdict on data and ops."""
        ops = self.op_verification
        return {
            "verified": self.verified,
            "max_abs_error": finite(self.max_abs_error),
            **self.data_json(),
            "ops_verified": self.ops_verified,
            "ops_checked": 0 if ops is None else ops.checked,
            "ops_wrong": 0 if ops is None else ops.wrong,
            "op_failures": [] if ops is None else list(ops.failures),
            "computed_by": None if self.computed_by is None else attrs.asdict(self.computed_by),
        }

    def reads_json(self) -> dict[str, Any]:
        """Return plain JSON types: what was read before it was computed, and uses of memory that must not be."""
        return {
            "branch_values": attrs.asdict(self.branch_values),
            "host_reads": attrs.asdict(self.host_reads),
            **({} if self.python_reads is None else {"python_reads": self.python_reads.to_json()}),
            "hazards": [attrs.asdict(hazard) for hazard in self.hazards],
            "outside": [attrs.asdict(each) for each in self.outside],
        }


def count_hazards(hazards: Sequence[Hazard]) -> str:
    """Say how many hazards there are."""
    return "1 hazard" if len(hazards) == 1 else f"{len(hazards)} hazards"


def words_of(correctness: Correctness, interrupted: bool = False, unwritten: Sequence[str] = ()) -> Iterator[Styled]:
    """Say in words whether the data is right, and how many hazards there are, each piece with its style."""
    if interrupted:
        yield f"interrupted: everything here covers only what ran{_unwritten(unwritten)}", "bold yellow"
    else:
        yield from _of_data(correctness)
    ops = correctness.op_verification
    if ops is not None:
        yield ", ", ""
        yield ("ops verified", _GOOD) if ops.ok else ("OPS ARE WRONG", _BAD)
        yield (f": {ops.checked:,}" if ops.ok else f": {ops.wrong:,} of {ops.checked:,}"), ""
    if correctness.hazards:
        yield ", ", ""
        count = len(correctness.hazards)
        yield "1 RACE" if count == 1 else f"{count} RACES", _BAD
    if correctness.outside:
        yield ", ", ""
        yield count_outside(correctness.outside), _BAD
    if correctness.python_reads is not None and correctness.python_reads.many:
        yield ", ", ""
        yield correctness.python_reads.words, _BAD


def _of_data(correctness: Correctness) -> Iterator[Styled]:
    found, host = correctness.verification, correctness.host_reads
    if correctness.uncompared and not (found is not None and found.checked):
        style = "" if host.read and host.confirmed == host.read else _OPEN
        yield correctness.uncompared, _BAD if correctness.failed else style
    elif found is None:
        yield "data not verified (--verify-data does)", _OPEN
    elif found.checked:
        tensors = f"{found.checked} tensor{'' if found.checked == 1 else 's'}"
        yield ("data verified", _GOOD) if found.ok else ("DATA IS WRONG", _BAD)
        of = tensors if found.ok else f"{found.wrong} of {tensors}"
        yield f"{_by(correctness.computed_by)}: {of}, largest error {found.max_abs_error:.3g}", ""
    elif host.read:
        yield host.words, _GOOD if host.confirmed == host.read else _OPEN
        yield "; the run compares no tensor with a reference", ""
    else:
        yield "data not verified: nothing compares it with a reference (rt.check does)", _OPEN


def _by(found: ComputedBy | None) -> str:
    """Say what computed the data where that is not numpy: " by torch:cpu (...)"."""
    return "" if found is None or found.backend == "numpy" else f" by {found.words}"


def _unwritten(options: Sequence[str]) -> str:
    """Say of files that were asked for that they are not written: "; --out and --trace are not written"."""
    if not options:
        return ""
    names = " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))
    return f"; {names} {'is' if len(options) == 1 else 'are'} not written"
