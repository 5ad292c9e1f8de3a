"""Commands that plug-ins define, plain subclasses of `Command`: what stands for one where kernels run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import KernelError
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.messages import ISSUED, Command
from kernbench_core.values.value import OpId
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.kernel.pe_state import PeState


class PlainCommand(KernelCommand):
    """Stand for a plain `Command`, the `message` that its unit is sent, and be complete when that one is.

    Kernels wait for it as for those of the language; it uses no memory that anybody knows of.
    """

    __slots__ = ("_kind", "_message")

    def __init__(self, message: Command, op_id: OpId, site: CallSite) -> None:
        super().__init__(op_id, ISSUED, site, (), message.nbytes)
        self._message, self.serves = message, message.serves
        message.op_id, message.call, message.site = op_id, ISSUED, site
        self.done = message.done

    @property
    def serves(self) -> str:
        """The kind of unit that serves the message."""
        return self._kind

    @serves.setter
    def serves(self, kind: str) -> None:
        self._kind = kind

    @property
    def awaits(self) -> tuple[int, ...]:
        """The PEs that the message awaits."""
        return self._message.awaits

    @property
    def message(self) -> Command:
        """What the unit is sent: the plug-in's own."""
        return self._message

    def at_issue(self, state: PeState, now: float) -> None:
        """Note when it is complete, which the message alone is told."""
        super().at_issue(state, now)
        assert self.done.callbacks is not None, "it was not sent before"
        self.done.callbacks.append(self._landed)

    def _landed(self, _: object) -> None:
        self.state.last = self.call, self.site, self._message.tail


def refuse_other_commands(command: object, site: CallSite) -> None:
    """Raise KernelError for what is no `Command` that can be sent, and for one that was sent before."""
    here = f"{ISSUED} at {describe_site(site)} must be given"
    if not isinstance(command, Command):
        what = f"the class {command.__name__}" if isinstance(command, type) else type(command).__name__
        raise KernelError(f"{here} a command, a kernbench_core.Command, not {what}; make one.")
    name = type(command).__name__
    if getattr(command, "done", None) is None:
        raise KernelError(f"{here} a command that was made whole, not this {name}; call super().__init__() in its own.")
    if command.site is not None:
        raise KernelError(
            f"{here} a command that was not sent before, not the {name} of {describe_site(command.site)}; make "
            "another one."
        )
    if not isinstance(command.serves, str) or not command.serves:
        raise KernelError(
            f"{here} a command whose serves names the kind of unit that serves it, not {brief(command.serves)}; write "
            f"serves = 'pe_sfu', say, into class {name}."
        )
