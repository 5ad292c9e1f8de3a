"""What a result has of a run that was recorded: the recording, and what can be asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.errors import UsageError

if TYPE_CHECKING:
    from kernbench_builtin.native.recording import Recording
    from kernbench_builtin.native.what_if import WhatIf
    from kernbench_core.plugins import Plugins
    from kernbench_core.topology.design import Machine


@attrs.frozen(repr=False)
class RecordedRun:
    """What a run asked for, as `result.native` has it: its `recording`, and the machine that it ran on.

    `gains` is what a faster resource would gain, where that was asked for. A result that was pickled has no machine.
    """

    recording: Recording
    machine: Machine | None = attrs.field(default=None, eq=False)
    plugins: Plugins | None = attrs.field(default=None, eq=False)
    gains: WhatIf | None = None

    def what_if(self) -> WhatIf:
        """Return what the run would gain if a resource were faster; UsageError where the recording does not hold."""
        from kernbench_builtin.native.what_if import what_if

        if self.machine is None or self.plugins is None:
            raise UsageError("what_if() must be called where the run was made, as its machine was not pickled; run it.")
        return what_if(self.recording, self.machine, self.plugins)

    def asked_what_if(self) -> RecordedRun:
        """Return it with its gains."""
        return attrs.evolve(self, gains=self.what_if())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types: how many ops there are, why it does not hold for other times, if so, and gains."""
        gains = {} if self.gains is None else {"what_if": self.gains.to_json()}
        return {"ops": self.recording.ops, "causes": [*self.recording.causes], **gains}

    def __repr__(self) -> str:
        held = "" if not self.recording.causes else f", which does not hold: {self.recording.causes[0]}"
        return f"<RecordedRun of {self.recording.ops:,} ops{held}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.recording, None, None, self.gains)
