"""A unit for special functions that loads its table anew for every batch of commands, and not for every command."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_core import ComponentBase, Fabric, Node, Param, Stat
from kernbench_core.units import grid_ceil
from kernbench_example.lookup_tables import LoadTable


class BatchingSfu(ComponentBase):
    """Load a table, then look up the elements of all commands that were there when the loading began.

    Models: a table of fixed rate that the unit drops when it has served what it was loaded for. One that a LoadTable \
command had loaded is there for the next batch.
    Ignores: Reading operands from the scratchpad takes no time of its own. Functions do not differ in their tables.
    Timing: of a batch, load + ceil(elements / lanes) / clock, without load where the table is there; its results are \
there together.
    Source: sizes are this example's own.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("batch", "int", 8, "Commands that are served at once, at most.", minimum=1),
        Param("load", "time", "100 ns", "Time to load the table."),
        Param("lanes", "int", 16, "Elements per cycle.", minimum=1),
        Param("clock", "frequency", "1 GHz", "Clock of the unit.", positive=True),
    )

    STATS: ClassVar[tuple[Stat, ...]] = (Stat("batches", "", "sum", "Times that the table was loaded."),)

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self.servers = self.params["batch"]  # of which reports take the unit's utilisation
        self.batches = 0
        self.loaded = False

    def receive(self, msg: Any) -> None:
        """Serve what comes to an idle unit at once, and let everything else wait for the next batch."""
        self.queue.append(msg)
        if not self.serving:
            self.load()

    def load(self) -> None:
        """Begin a batch with what waits."""
        batch: list[Any] = [self.queue.popleft() for _ in range(min(len(self.queue), self.servers))]
        for msg in batch:
            self.begin(msg)
        cycles = -(-sum(msg.elements for msg in batch) // self.params["lanes"])
        service = grid_ceil((0.0 if self.loaded else self.params["load"]) + cycles / self.params["clock"])
        self.batches += not self.loaded
        self.loaded = any(isinstance(msg, LoadTable) for msg in batch)
        self.env.call_at(self.env.now + service, batch[0], self.done)

    def done(self, first: Any) -> None:
        """End the batch that began with a message, and begin the next."""
        for msg, _ in self.serving:
            self.end(msg)
        if self.waiting:
            self.load()
