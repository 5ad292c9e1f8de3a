"""Cut a program down for as long as it shows the same mismatch."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.reference.harness import Mismatch, compare
from tests.reference.programs import Node, Program
from tests.reference.tiles import UndeterminedError


def shrink(program: Program, mismatch: Mismatch, seconds: float = 60.0) -> tuple[Program, Mismatch]:
    """Give the smallest program found in the time that shows a mismatch of the same kind, and the mismatch."""
    end = time.monotonic() + seconds
    again = True
    while again:
        again = False
        for candidate in _smaller(program):
            if time.monotonic() > end:
                return program, mismatch
            found = _mismatch(candidate)
            if found is not None and found.kind == mismatch.kind:
                program, mismatch, again = candidate, found, True
                break
    return program, mismatch


def _mismatch(program: Program) -> Mismatch | None:
    try:
        return compare(program)
    except UndeterminedError:
        return None


def _smaller(program: Program) -> Iterator[Program]:
    """Yield programs that are smaller by one step, great steps first."""
    for index in range(len(program.launches)):
        launches = program.launches[:index] + program.launches[index + 1 :]
        if launches:
            yield replace(program, launches=launches)
    if program.topology != "tiny":
        yield replace(program, topology="tiny")
    for index, launch in enumerate(program.launches):
        for nodes in _fewer(launch.nodes):
            yield _pruned(program.with_nodes(index, nodes))
    for index, launch in enumerate(program.launches):
        for nodes in _each(launch.nodes, _simpler):
            yield _pruned(program.with_nodes(index, nodes))
    for index, tensor in enumerate(program.tensors):
        if tensor.placement != "None":
            plain = replace(tensor, placement="None")
            yield replace(program, tensors=(*program.tensors[:index], plain, *program.tensors[index + 1 :]))


def _fewer(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """Leave out stretches of statements, of half of them down to one, here and in blocks."""
    size = len(nodes) // 2
    while size:
        for start in range(len(nodes) - size, -1, -size):
            yield nodes[:start] + nodes[start + size :]
        size //= 2
    for i, node in enumerate(nodes):
        if node.body:
            yield nodes[:i] + node.body + nodes[i + 1 :]
            yield nodes[:i] + node.orelse + nodes[i + 1 :]
            for body in _fewer(node.body):
                if body:
                    yield (*nodes[:i], replace(node, body=body), *nodes[i + 1 :])
            for orelse in _fewer(node.orelse):
                yield (*nodes[:i], replace(node, orelse=orelse), *nodes[i + 1 :])


def _each(
    nodes: tuple[Node, ...], change: Callable[[Node, tuple[Node, ...]], Iterator[Node]]
) -> Iterator[tuple[Node, ...]]:
    """Yield the statements with one of them changed, here and in blocks."""
    for i in range(len(nodes) - 1, -1, -1):
        for node in change(nodes[i], nodes[:i]):
            yield (*nodes[:i], node, *nodes[i + 1 :])
        for body in _each(nodes[i].body, change):
            yield (*nodes[:i], replace(nodes[i], body=body), *nodes[i + 1 :])


def _simpler(node: Node, earlier: tuple[Node, ...]) -> Iterator[Node]:
    """Yield simpler statements in place of one: a constant, its operand, fewer options."""
    if node.plain is not None and node.text not in (node.plain, "{0}"):
        yield Node(node.plain, (), node.target, plain=node.plain)
        for other in earlier:
            if other.plain == node.plain and other.target is not None:
                yield Node("{0}", (other.target,), node.target, plain=node.plain)
    for pattern, less in ((r", wait=False", ""), (r"range\([2-9]\)", "range(1)"), (r", mask=.*(?=\)$)", "")):
        text = re.sub(pattern, less, node.text)
        if text != node.text:
            yield replace(node, text=text)


def _pruned(program: Program) -> Program:
    """Leave out assignments of what nothing uses."""
    for index, launch in enumerate(program.launches):
        nodes = _renamed(launch.nodes)
        while True:
            used = set(_used(nodes))
            kept = _kept(nodes, used)
            if kept == nodes:
                break
            nodes = kept
        program = program.with_nodes(index, nodes)
    return program


def _renamed(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Say a tile's first name instead of a second one, where neither changes."""
    for node in nodes:
        if node.text == "{0}" and node.target and not node.before:
            targets = list(_targets(nodes))
            if targets.count(node.target) == targets.count(node.args[0]) == 1:
                rest = tuple(each for each in nodes if each is not node)
                return _renamed(_with_names(rest, {node.target: node.args[0]}))
    return nodes


def _targets(nodes: tuple[Node, ...]) -> Iterator[str]:
    for node in nodes:
        yield from [node.target] if node.target else []
        yield from _targets(node.body + node.orelse)


def _with_names(nodes: tuple[Node, ...], names: dict[str, str]) -> tuple[Node, ...]:
    return tuple(
        replace(
            node,
            args=tuple(names.get(arg, arg) for arg in node.args),
            body=_with_names(node.body, names),
            orelse=_with_names(node.orelse, names),
        )
        for node in nodes
    )


def _used(nodes: tuple[Node, ...]) -> Iterator[str]:
    for node in nodes:
        for line in node.lines():
            right = (
                line.split(" = ", 1)[1] if node.target is not None and line.startswith(f"{node.target} = ") else line
            )
            yield from re.findall(r"\b(?:v\d+|pid|world)\b", right)


def _kept(nodes: tuple[Node, ...], used: set[str]) -> tuple[Node, ...]:
    return tuple(
        replace(node, body=_kept(node.body, used), orelse=_kept(node.orelse, used)) if node.body else node
        for node in nodes
        if node.target is None or node.target in used or node.before
    )
