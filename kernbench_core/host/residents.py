"""Tensors that are on the device before a run, as weights are: their copy is not simulated."""

from __future__ import annotations

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.units import format_bytes


@attrs.define(eq=False)
class Residents:
    """The `names` that a run gives, of which "all" means every one, and the bytes of those tensors that were made."""

    names: tuple[str, ...] = ()
    nbytes: dict[str, int] = attrs.field(factory=dict)
    _made: dict[str, None] = attrs.field(factory=dict)

    @classmethod
    def of(cls, given: str) -> Residents:
        """Read names with commas between them."""
        return cls(tuple(filter(None, given.split(","))))

    def take(self, name: str, nbytes: int, *, begun: bool) -> bool:
        """Whether a tensor that is made with data is one of them; it is noted. None is once a launch has `begun`."""
        if begun:
            return False
        self._made[name] = None
        if name not in self.names and "all" not in self.names:
            return False
        self.nbytes[name] = nbytes
        return True

    def note(self) -> str:
        """Say which there were, "" for none; UsageError for a name that no tensor with data had."""
        missing = [name for name in self.names if name != "all" and name not in self.nbytes]
        if missing:
            raise UsageError(
                f"--resident must name tensors that the run copies to the device before its launches, not "
                f"{missing[0]!r}; these are {', '.join(self._made) or 'none'}."
            )
        if not self.nbytes:
            return ""
        names, total = ", ".join(self.nbytes), format_bytes(sum(self.nbytes.values()))
        return f"On the device before the run, without a simulated copy: {names} ({total})."
