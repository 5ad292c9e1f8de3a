"""What a run asked of its machine, apart from all times: a recording, which can be timed on other machines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np

from kernbench_builtin.machines.figures.columns_file import write_arrays
from kernbench_core.errors import UsageError
from kernbench_core.topology.naming import pe_prefix

if TYPE_CHECKING:
    from kernbench_core.topology.design import Machine

FORM: Final = "kernbench recording 2"

#: What a program of a PE asked for: a command, one that it waited for, commands to wait for, its end; what became of a
#: block of the scratchpad: it was handed out, lent as a slot of a queue, dropped, or freed at once; what room it found.
ISSUE, ISSUE_BLOCKING, WAIT, END, BORN, LENT, DROPPED, FREED, ROOM = range(9)
#: What the DMA of a PE is to do.
READ, WRITE, ATOMIC = range(3)
#: The units of commands, in the order of engine/commands.hpp.
UNITS: Final = ("pe_dma", "pe_gemm", "pe_math", "pe_scheduler", "pe_ipcq")
Fields: TypeAlias = "tuple[Any, ...]"


@attrs.frozen(eq=False)
class Recording:
    """Hold what a run asked for.

    `causes` say why it does not hold for other timings; () where it does. `looked_at` are times that its program asked
    for, and may have done otherwise if they had been others. `structure` is the digest of what it depends
    on in the machine, `params_read` what its program read of it. Physical ranges are rows of (base, row bytes, rows,
    pitch), and the block of memory that they lie in: its start, end and number; `lists` name ranges that are moved
    together. `commands` are rows of (PE, number, bytes, unit, the command that it needs or -1, then what its
    unit is to do); `plans` are the tiles of composites, `works` what products and math ops are. `streams` hold, by
    launch and PE, what programs asked for in order. `requests` are the host's, `program` says when it submitted each
    (from 0 on) and waited for it (-1 for the first …).
    """

    structure: str
    params_read: Sequence[Fields]
    causes: tuple[str, ...]
    looked_at: tuple[str, ...]
    ranges: Sequence[Fields]
    lists: Sequence[Sequence[int]]
    works: Sequence[Mapping[str, Any]]
    plans: Sequence[Sequence[Fields]]
    queues: Sequence[Fields]
    commands: Sequence[Fields]
    holds: Sequence[Sequence[int]]
    streams: Sequence[tuple[int, int, Sequence[int]]]
    requests: Sequence[Mapping[str, Any]]
    program: Sequence[int]

    @property
    def ops(self) -> int:
        """How many commands there are."""
        return len(self.commands)

    @property
    def why_not(self) -> tuple[str, ...]:
        """Why it does not hold for other times: its causes, and the times that its program looked at."""
        return *self.causes, *[f"a program that asks for {call}" for call in self.looked_at]

    def save(self, path: Path) -> None:
        """Write it into a new file: numbers as columns, all else as JSON."""
        plain = attrs.asdict(self, recurse=False)
        columns = {name: plain.pop(name) for name in ("ranges", "commands")}
        asks = plain.pop("streams")
        plain["streams"] = [(launch, pe, len(fields)) for launch, pe, fields in asks]
        flat = [field for _, _, fields in asks for field in fields]
        text = json.dumps({"form": FORM, **plain})
        arrays = {name: _column(rows, _WIDTH[name]) for name, rows in columns.items()}
        arrays |= {"text": np.frombuffer(text.encode(), np.uint8), "asks": np.array(flat, np.int64)}
        with path.open("xb") as file:
            write_arrays(file, arrays)

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read one; UsageError for a file that is none."""
        try:
            with np.load(path, allow_pickle=False) as found:
                text = json.loads(found["text"].tobytes())
                if text.pop("form") != FORM:
                    raise ValueError
                asks, at, streams = found["asks"].tolist(), 0, []
                for launch, pe, number in text.pop("streams"):
                    streams.append((launch, pe, asks[at : at + number]))
                    at += number
                rows: dict[str, Any] = {name: [tuple(row) for row in found[name].tolist()] for name in _WIDTH}
                causes, looked_at = tuple(text.pop("causes")), tuple(text.pop("looked_at"))
                return cls(**text, **rows, streams=streams, causes=causes, looked_at=looked_at)
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(
                f"{path} must be a recording of this version, which `kernbench run … --record --out` writes; make one."
            ) from None


_WIDTH: Final = {"ranges": 7, "commands": 9}


def _column(rows: Sequence[Fields], width: int) -> Any:
    """Return rows of integers as an array, short ones with zeros behind."""
    return np.array([(*row, *(0,) * (width - len(row))) for row in rows], np.int64).reshape(-1, width)


#: Kinds of nodes outside of PEs that streams depend on. They do not on the way between these: the fabric may differ.
_ENDS: Final = ("host", "io_cpu", "m_cpu", "hbm_ctrl", "sram")


def structure_of(machine: Machine) -> str:
    """Return the digest of what streams depend on in a machine: its PEs, memories, sizes, addresses and queues."""
    design = machine.design
    told = [
        [(n.id, n.kind, n.impl) for n in machine.nodes.values() if n.kind in _ENDS or pe_prefix(n.id) is not None],
        attrs.asdict(attrs.evolve(design, network=None)),
        None if design.network is None else repr(design.network),
        [
            tuple(node.params.get(name) for name in ("slots", "slot_bytes", "tier"))
            for node in machine.nodes.values()
            if node.kind == "pe_ipcq"
        ],
    ]
    return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()
