"""The components of one run on their fabric, built from a graph; the engine and the test kit share it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from kernbench_core.callsite import user_traceback
from kernbench_core.component import ComponentBase, defines
from kernbench_core.errors import ComponentError, ConfigError, KernbenchError, blamed, in_words
from kernbench_core.events.faults import unusable
from kernbench_core.fabric import Fabric, SharedPart
from kernbench_core.params import Param, closest
from kernbench_core.process.collection import no_automatic_collection
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.reporting import Stat
from kernbench_core.wire import Port
from kernbench_core.wording import is_async

if TYPE_CHECKING:
    from kernbench_core.plugins import Provider


#: The methods that say how long service takes.
_STYLES: Final = ("overhead", "run", "receive")


class ComponentClasses(Protocol):
    """Where component classes come from: the component registry, or anything with its `load`."""

    def load(self, name: str) -> Any:
        """Return the class registered as `name`; called once for each `impl` of the graph."""


class Hardware(Fabric):
    """The fabric of one run with the components that stand on it.

    `providers` names the distribution of each `impl` whose class comes from a registry.
    """

    components: dict[str, ComponentBase]
    providers: dict[str, Provider]

    @no_automatic_collection()
    def build(self, classes: ComponentClasses) -> None:
        """Create every component of the graph, join them by wires, connect them and start their workers.

        Edge ids follow sorted (source, destination); internal wires, made by components, come after them. ConfigError
        when a component needs what this session does not have.
        """
        self.components, self.providers = {}, {}
        provider = getattr(classes, "provider", None)  # a plain mapping of classes has none
        loaded: dict[str, type[ComponentBase]] = {}
        edges = sorted(self.graph.edges)
        asked = _Asked("__init__")
        with _blame(asked):
            for node_id in sorted(self.graph.nodes):
                node = self.graph.nodes[node_id]
                if node.impl not in loaded:
                    loaded[node.impl] = classes.load(node.impl)
                    if provider is not None:
                        self.providers[node.impl] = provider(node.impl)
                    self._require(node_id, loaded[node.impl], self.providers.get(node.impl))
                asked.node_id, asked.cls, asked.provider = node_id, loaded[node.impl], self.providers.get(node.impl)
                made = self.components[node_id] = asked.cls(node, self)
                if getattr(made, "arrive", None) is None:
                    raise TypeError("super().__init__(node, fabric) must be called by its __init__, and was not")
        self.own_names = {component.id: component.id for component in self.components.values()}
        for edge_id, key in enumerate(edges, 1):
            self._join(edge_id, *key)
        asked = _Asked("connect")
        with _blame(asked):
            for component in self.components.values():
                asked.node_id, asked.cls = component.id, type(component)
                asked.provider = self.providers.get(component.node.impl)
                component.connect()
                _refuse_other_arrival(component)
                _refuse_figures(component)
        for component in self.components.values():
            component.start()

    def _require(self, node_id: str, cls: type[ComponentBase], provider: Provider | None) -> None:
        """Raise ConfigError for a class that declares what it cannot, or needs what this session does not have."""
        name = f"{node_id}: {cls.__module__}.{cls.__qualname__}"
        of = "" if provider is None else f" of {provider}"
        for what, kind, kinds in (("needs", type, "classes"), ("STATS", Stat, "Stats"), ("PARAMS", Param, "Params")):
            declared = getattr(cls, what)
            if not isinstance(declared, tuple) or not all(isinstance(each, kind) for each in declared):
                raise ConfigError(f"{name}.{what}{of} must be a tuple of {kinds}, not {declared!r}; correct it.")
            names = [str(getattr(each, "name", number)) for number, each in enumerate(declared)]
            twice = next((each for each in names if names.count(each) > 1), None)
            if twice is not None:
                must = f"must name each of its {kinds} once, not {twice!r} twice"
                raise ConfigError(f"{name}.{what}{of} {must}; rename one.")
        for what in ("ON_HEAD", "bound_is_exact", "back_pressure"):
            if not isinstance(flag := getattr(cls, what), bool):
                raise ConfigError(f"{name}.{what}{of} must be True or False, not {flag!r}; correct it.")
        for what in ("__init__", "connect", "overhead", "interval", "receive", "run", "split", "pick", "emit"):
            if is_async(getattr(cls, what)):
                must = "a generator of SimPy events" if what == "run" else "a plain function"
                raise ConfigError(f"{name}.{what}{of} must be {must}, without async; it would never run.")
        _require_service(cls, name, of)
        if type(cls.servers) is not int or cls.servers < 1:
            raise ConfigError(f"{name}.servers{of} must be an integer of at least 1, not {cls.servers!r}; correct it.")
        needed = [each for need in cls.needs for each in (need.needs if issubclass(need, SharedPart) else (need,))]
        missing = [need.__name__ for need in dict.fromkeys(needed) if need not in self.parts]
        if missing:
            raise ConfigError(
                f"{node_id} must be part of a whole machine, as {cls.__module__}.{cls.__qualname__} needs its "
                f"{' and '.join(missing)}, which this one does not have; compile it from a topology instead."
            )

    def _join(self, edge_id: int, source: str, destination: str) -> None:
        edge = self.graph.edges[source, destination]
        sender, receiver = self.components[source], self.components[destination]
        sender.out_ports[receiver.id] = self.new_wire(
            f"{source}->{destination}",
            edge.bandwidth,
            edge.latency,
            arrive=receiver.arrive,
            on_head=receiver.head_rule(),
            payload_bytes=edge.payload_bytes,
            header_bytes=edge.header_bytes,
            edge_id=edge_id,
        )
        receiver.in_ports[source] = Port(self.env, source, receiver.arrive)


def _require_service(cls: type[ComponentBase], name: str, of: str) -> None:
    """Raise ConfigError for a class whose only word on how long service takes is misspelt, or a `run` nobody calls."""
    own = [base for base in cls.__mro__ if base not in ComponentBase.__mro__]
    if not any(defines(cls, style) for style in _STYLES):
        methods = (name for base in own for name, found in vars(base).items() if callable(found))
        for method, style in ((method, closest(method, _STYLES)) for method in methods):
            if style:
                must = f"must define {' or '.join(_STYLES)}, and has none but {method!r}"
                raise ConfigError(f"{name}{of} {must}. Did you mean {style!r}?")
    reactive = next((base for base in own if "receive" in vars(base) and issubclass(base, ComponentBase)), cls)
    serves = defines(reactive, "run") or "serve" in getattr(getattr(reactive.receive, "__code__", None), "co_names", ())
    if defines(cls, "run") and reactive is not cls and not serves:
        must = f"be called by {reactive.__qualname__}.receive, which serves by events of its own"
        raise ConfigError(f"{name}.run{of} must {must}; define receive too, or derive it from ComponentBase.")


def _refuse_other_arrival(component: ComponentBase) -> None:
    """Raise for a model that put something else where wires deliver: they have `receive`, or never hear of it."""
    if component.arrive not in (component.receive, component._service):
        raise ComponentError(
            f"{component.id}: {type(component).__module__}.{type(component).__qualname__} must leave self.arrive as it "
            "is; define receive(self, msg), which takes what comes."
        )


def _refuse_figures(component: ComponentBase) -> None:
    """Raise for numbers of its own that a model declares and nothing can be made of."""
    if type(servers := component.servers) is not int or servers < 1:
        raise unusable(component, "servers", "be an integer of at least 1", servers)
    peak: Any = component.peak_bandwidth
    if not isinstance(peak, Real) or not 0.0 <= float(peak) < math.inf:
        raise unusable(component, "peak_bandwidth", "be a finite number of bytes/ns, at least 0", peak)


@attrs.define
class _Asked:
    """Which method of which model is called, of which node."""

    method: str
    node_id: str = ""
    cls: type = object
    provider: Provider | None = None


@contextmanager
def _blame(asked: _Asked) -> Iterator[None]:
    """Turn what a model's own method raises into a ComponentError that names node, class, line and distribution."""
    try:
        yield
    except ComponentError as error:
        raise of_provider(error, asked.provider) from None
    except (KernbenchError, *INTERRUPTS):
        raise
    except BaseException as error:
        told = (
            f"{asked.node_id}: {asked.cls.__module__}.{asked.cls.__qualname__}.{asked.method} raised "
            f"{in_words(error)} before simulated time 0.\n{user_traceback(error)}"
        )
        raise of_provider(blamed(error, ComponentError)(told), asked.provider) from error


def of_provider(error: KernbenchError, provider: Provider | None) -> KernbenchError:
    """Return an error of a model with the distribution that the model is of, where that is known."""
    if provider is not None:
        error.add_note(f"The model is of {provider}.")
    return error
