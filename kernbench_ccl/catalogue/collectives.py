"""The collectives that plug-ins registered, each checked when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain

from attrs import evolve

from kernbench_ccl.catalogue.checked_answers import call_faults, checked, field_faults
from kernbench_ccl.catalogue.names import COMMANDS, meant
from kernbench_ccl.collectives import COLLECTIVES, CollectiveKind
from kernbench_core.errors import KernbenchError
from kernbench_core.plugins import CollectiveEntry, Provider, Registry


class Collectives(Mapping[str, CollectiveKind]):
    """The registered collectives by their names: those that come with kernbench first, in the order of lists."""

    def __init__(self, registry: Registry[CollectiveEntry], own: Provider | None = None) -> None:
        self._registry = registry
        self._own = own
        shipped = list(COLLECTIVES)
        self._names = sorted(registry, key=lambda n: (shipped.index(n) if n in shipped else len(shipped), n))
        self._known: dict[str, CollectiveKind] = {}

    def __getitem__(self, name: str) -> CollectiveKind:
        """Import and check a record; KeyError for a name that is none, PluginError for a record that will not do."""
        if name not in self._registry:
            raise KeyError(name)
        name = self._whole(name)
        if name not in self._known:
            self._known[name] = self._checked(name)
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._registry

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def sentence(self, name: str) -> str:
        """Return what a registered collective does."""
        return self._registry[name].sentence

    def usable(self) -> tuple[dict[str, CollectiveKind], dict[str, str]]:
        """Return the records that can be used, and by the names of the others what is wrong with them."""
        found: dict[str, CollectiveKind] = {}
        broken: dict[str, str] = {}
        for name in self:
            try:
                found[name] = self[name]
            except KernbenchError as error:
                broken[name] = str(error).partition("\n")[0]
        return found, broken

    def seen_by(self, provider: Provider) -> Collectives:
        """Return these as a plug-in names them: of two with one name its own is meant, where one of them is."""
        return Collectives(self._registry, provider)

    def whole_name(self, name: str) -> str:
        """Return what a collective is called here, with its vendor where two have its name; itself for what is none."""
        try:
            return self._whole(name) if name in self._registry else name
        except KernbenchError:
            return name

    def _whole(self, name: str) -> str:
        """Return the name of this mapping for one that may be written; PluginError for one that two have."""
        own = self._own
        for vendor in () if own is None or name in self._names else (own.plugin, own.distribution):
            if f"{vendor}:{name}" in self._names:
                return f"{vendor}:{name}"
        entry = self._registry[name]
        return name if name in self._names else next(each for each in self._names if self._registry[each] is entry)

    def _checked(self, name: str) -> CollectiveKind:
        kind = self._registry.load(name)
        bare = self._registry[name].name
        if not isinstance(kind, CollectiveKind) or kind.name != bare:
            raise self._registry.fault(name, f"must be a CollectiveKind of that name, not {kind!r}")
        faults = field_faults(kind)
        if name != bare:  # as another has it, too
            vendor = name.removesuffix(bare)
            kind = evolve(kind, name=name, spelling=kind.spelling and f"{vendor}{kind.spelling}")
        fault = next(chain(faults, self._taken(kind)), None)
        if fault is not None:
            raise self._registry.fault(name, fault)
        tried = checked(kind, partial(self._registry.fault, name))
        fault = next(call_faults(tried), None)
        if fault is not None:
            raise self._registry.fault(name, fault)
        return kind if kind is COLLECTIVES.get(name) else tried  # what comes with kernbench its tests have checked

    def _taken(self, kind: CollectiveKind) -> Iterator[str]:
        """Yield which name of a record is that of another command; of two such records the first in order keeps it."""
        before = self._names[: self._names.index(kind.name)]
        others = [name for name in self._names if name != kind.name]
        for word, names in ((kind.name, before), (kind.spelling, others)):
            must = f"must have a command of its own, not {word!r}"
            if meant(word, COMMANDS) is not None:
                yield f"{must}, which is another command of kernbench ccl"
            other = meant(word, names) or (self._spelt(word, before) if word else None)
            if other is not None:
                yield f"{must}, which is that of collective {other!r} of {self._registry.provider(other)}"

    def _spelt(self, word: str, names: list[str]) -> str | None:
        """Return which of the collectives has this spelling; those that cannot be used have none."""
        for name in names:
            try:
                spelling = self[name].spelling
            except KernbenchError:
                continue
            if meant(word, (spelling,)) is not None:
                return name
        return None
