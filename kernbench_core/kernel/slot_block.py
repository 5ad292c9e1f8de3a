"""A slot of a queue, lent to the kernel that received a message in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import KernelError
from kernbench_core.memory.hazard import RECYCLED_SLOT, Hazard, HazardUse
from kernbench_core.memory.scratchpad import Birth, TcmBlock
from kernbench_core.values.region import Region

if TYPE_CHECKING:
    from kernbench_core.kernel.commands import KernelCommand
    from kernbench_core.memory.hazards import Hazards


class SlotBlock(TcmBlock):
    """A slot of a queue in the scratchpad, lent to a kernel; it goes back to the sender when nothing refers to it.

    `tl.free` gives it back at once; using it after that is a hazard, because the sender may write the next message.
    `name` is what the hazard calls it, `hazards` are told.
    """

    __slots__ = ("_back", "_hazards", "freed_ns", "name", "pe")

    def __init__(
        self,
        region: Region,
        offset: int,
        birth: Birth,
        back: Callable[[], None],
        name: str = "a slot",
        pe: int = 0,
        hazards: Hazards | None = None,
    ) -> None:
        self._table = None
        self.address = region.base
        self.offset = offset
        self.region = region
        self.birth = birth
        self.users = 0
        self.freed_at = None
        self.freed_ns = 0.0
        self.name = name
        self.pe = pe
        self._hazards = hazards
        self._back: Callable[[], None] | None = back

    def free(self, site: CallSite) -> None:
        """Give the slot back now; called by `tl.free` only."""
        if self.freed_at is not None:
            raise KernelError(
                f"tl.free at {describe_site(site)} must be given a slot once, and {self} was given back at "
                f"{describe_site(self.freed_at)}; free it once."
            )
        self.freed_at = site
        if self._hazards is not None:
            self.freed_ns = self._hazards.now
        self._release()

    def in_flight(self, command: KernelCommand, site: CallSite) -> None:
        """Note that `command` still uses the slot while `tl.free` at `site` gives it back."""
        if self._hazards is not None:
            now = self._hazards.now
            first = HazardUse(command.op_id, command.call, *self._place(command.site), command.born, None)
            self._hazard(first, HazardUse(None, "tl.free", *self._place(site), now, None))

    def refuse(self, use: str, site: CallSite) -> None:
        """Note a use after the slot was given back; nothing stops it, and nothing orders it before the next message."""
        if self._hazards is not None and self.freed_at is not None:
            first = HazardUse(None, "tl.free", *self._place(self.freed_at), self.freed_ns, None)
            self._hazard(first, HazardUse(None, use, *self._place(site), self._hazards.now, None))

    def _place(self, site: CallSite) -> tuple[str, str]:
        assert self._hazards is not None
        return self._hazards.name_of(self.pe), describe_site(site)

    def _hazard(self, first: HazardUse, second: HazardUse) -> None:
        assert self._hazards is not None
        self._hazards.add(Hazard(RECYCLED_SLOT, self.name, None, self.offset, self.region.nbytes, first, second, 1))

    def _release(self) -> None:
        back, self._back = self._back, None
        if back is not None:
            back()
