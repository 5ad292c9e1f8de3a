"""What stands above a table of `kernbench ccl`, beside what nccl-tests has: network, algorithms and how they ran."""

from __future__ import annotations

import math
import re

from attrs import define, field, frozen

_BEGIN = re.compile(r"([a-z_]+): ([0-9]{1,7}) ranks, the (SIPs|PEs) of (.*)")
_NETWORK = re.compile(r"([\w-]+)(?: of ([0-9]{1,7}) x ([0-9]{1,7}))?, .* a link and direction")
_SPAN = r"(?:(?:up to (?P<size>[0-9]{1,12}(?:\.[0-9]+)?) (?P<unit>B|[KMGT]iB)|above|all sizes): )?"
_HOW = re.compile(
    _SPAN + r"(?:(?P<entry>[^\s,:]+): )?(?P<name>[^\s,:]+), (?P<way>pipelined|step by step), messages of .*"
)
_ROUNDED = 1.0006
"""Sizes that algorithms change at are printed with four digits."""


@frozen
class Ran:
    """An algorithm that ran sizes of up to so many bytes, by the name of its entry if it had one.

    `way` is pipelined or step by step.
    """

    algorithm: str
    entry: str | None
    way: str
    up_to: float


@define
class Heading:
    """What a log says of itself; `place` is its file and line. `network` is a name, with columns and rows if it has."""

    place: str
    collective: str
    ranks: int
    of_pes: bool
    idealised: bool
    network: str | None = None
    grid: tuple[int, int] | None = None
    ran: list[Ran] = field(factory=list)

    @classmethod
    def begun(cls, place: str, line: str) -> Heading | None:
        """Return the heading that a line begins; None for another line."""
        match = _BEGIN.fullmatch(line)
        if match is None:
            return None
        return cls(place, match[1], int(match[2]), match[3] == "PEs", match[4].endswith(", idealised"))

    def see(self, line: str) -> None:
        """Take one more line of it."""
        if how := _HOW.match(line):
            up_to = (
                math.inf
                if how["size"] is None
                else float(how["size"]) * 1024 ** "BKMGT".index(how["unit"][0]) * _ROUNDED
            )
            self.ran.append(Ran(how["name"], how["entry"], how["way"], up_to))
        elif network := _NETWORK.fullmatch(line):
            self.network = network[1]
            self.grid = None if network[2] is None else (int(network[2]), int(network[3]))

    def of(self, nbytes: int) -> Ran | None:
        """Return what ran a size; None where nothing says."""
        return next((one for one in self.ran if nbytes <= one.up_to), None)

    @property
    def shape(self) -> str:
        """The network in words."""
        return f"{self.network}{'' if self.grid is None else f' of {self.grid[0]} x {self.grid[1]}'}"

    @property
    def sets(self) -> str:
        """What gives a machine the network."""
        keys = {"topology": self.network, **dict(zip(("width", "height"), self.grid or (), strict=False))}
        return " ".join(f"--set system.network.{key}={value}" for key, value in keys.items())

    @property
    def faults(self) -> list[str]:
        """Say why such a table cannot be fitted."""
        found = []
        if self.of_pes:
            found.append("the vectors of a table to fit must be those of SIPs, not of PEs; measure by SIPs.")
        if self.idealised:
            found.append("a table to fit must be of a machine as it is, not idealised; measure without --idealised.")
        return [f"{self.place}: {one}" for one in found]
