"""Messages that are neither answered nor held by anybody, once nothing is left to happen: who had each last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernbench_core.kernel.commands import AnyOf, command_of
from kernbench_core.messages import MsgBase, Transaction

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware

#: Messages that are told.
_MOST = 4


def lost_messages(hardware: Hardware) -> list[str]:
    """Return a sentence for each of the first lost messages: the component that had it last, what it was, for whom."""
    found = list(_lost(hardware))
    told = [_describe(hardware, msg) for msg in found[:_MOST]]
    return [*told, f"and {len(found) - _MOST} more"] if len(found) > _MOST else told


def _lost(hardware: Hardware) -> Iterator[MsgBase]:
    """Yield messages that somebody waits for, or that must arrive, and that are not where they are told to be.

    Where a run ended before everything had come to rest, those on their way are not lost.
    """
    now = hardware.env.now
    asked = [msg for component in hardware.components.values() for msg in component.awaiting()]
    waiting = [component.waits_in_words() for component in hardware.components.values()]
    awaited = [command for each in waiting if each is not None for command in each.commands]
    commands = [one for command in awaited for one in (command.commands if isinstance(command, AnyOf) else (command,))]
    posted = hardware.under_way
    for msg in (*asked, *posted, *commands):
        node = hardware.components.get(msg.path[msg.hop]) if msg.path else None
        if node is None or any(True for _ in node.awaiting()):
            continue  # it waits in turn for what the message made it ask for
        if msg.head <= now and msg not in node.waiting and all(msg is not served for served, _ in node.serving):
            yield msg


def _describe(hardware: Hardware, msg: MsgBase) -> str:
    node = hardware.components[msg.path[msg.hop]]
    source, destination = (msg.path[-1], msg.path[0]) if msg.reply else (msg.path[0], msg.path[-1])
    what = msg.op if isinstance(msg, Transaction) else msg.sort or type(msg).__name__
    what += f" of {msg.total if isinstance(msg, Transaction) else msg.nbytes} B"
    command = command_of(msg)
    whom = "" if command is None else f", for {command.in_words}"
    lost = f"{'the answer to ' if msg.reply else ''}the {what} from {source} to {destination}{whom}"
    return f"{node.id} ({node.node.impl}) was the last to have {lost}"
