"""Build the components and wires of one run from a graph; the engine and the test kit share it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from kernbench_core.callsite import user_traceback
from kernbench_core.component import ComponentBase, Port
from kernbench_core.engine.faults import of_provider
from kernbench_core.errors import ComponentError, KernbenchError, blamed, in_words
from kernbench_core.process.interrupt import INTERRUPTS

if TYPE_CHECKING:
    from kernbench_core.context import RunContext
    from kernbench_core.registry import Provider


class ComponentClasses(Protocol):
    """Where component classes come from: the component registry, or anything with its `load`."""

    def load(self, name: str) -> Any:
        """Return the class registered as `name`; called once for each `impl` of the graph."""


def build_machine(ctx: RunContext, classes: ComponentClasses) -> None:
    """Create every component of `ctx.graph`, join them by wires, connect them and start their workers.

    Edge ids follow sorted (source, destination); internal wires, made by components, come after them.
    """
    loaded: dict[str, type[ComponentBase]] = {}
    provider = getattr(classes, "provider", None)  # a plain mapping of classes has none
    edges = sorted(ctx.graph.edges)
    ctx.reserve_edges(len(edges))
    for node_id in sorted(ctx.graph.nodes):
        node = ctx.graph.nodes[node_id]
        if node.impl not in loaded:
            loaded[node.impl] = classes.load(node.impl)
            if provider is not None:
                ctx.providers[node.impl] = provider(node.impl)
        with _blame(node_id, loaded[node.impl], "__init__", ctx.providers.get(node.impl)):
            ctx.components[node_id] = loaded[node.impl](node, ctx)
    for edge_id, key in enumerate(edges, 1):
        _join(ctx, edge_id, *key)
    for component in ctx.components.values():
        with _blame(component.id, type(component), "connect", ctx.providers.get(component.node.impl)):
            component.connect()
    for component in ctx.components.values():
        component.start()


@contextmanager
def _blame(node_id: str, cls: type, method: str, provider: Provider | None) -> Iterator[None]:
    """Turn what a model's own method raises into a ComponentError that names node, class, line and distribution."""
    try:
        yield
    except (KernbenchError, *INTERRUPTS):
        raise
    except BaseException as error:
        told = (
            f"{node_id}: {cls.__module__}.{cls.__qualname__}.{method} raised {in_words(error)} before "
            f"simulated time 0.\n{user_traceback(error)}"
        )
        raise of_provider(blamed(error, ComponentError)(told), provider) from error


def _join(ctx: RunContext, edge_id: int, source: str, destination: str) -> None:
    edge = ctx.graph.edges[source, destination]
    sender, receiver = ctx.components[source], ctx.components[destination]
    sender.out_ports[destination] = ctx.new_wire(
        f"{source}->{destination}",
        edge.bandwidth,
        edge.latency,
        arrive=receiver.arrive,
        on_head=receiver.head_rule(),
        payload_bytes=edge.payload_bytes,
        header_bytes=edge.header_bytes,
        edge_id=edge_id,
    )
    receiver.in_ports[source] = Port(ctx.env, source, receiver.arrive)
