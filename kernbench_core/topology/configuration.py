"""Merged configuration: a file with its bases, then overlays, then settings, with the place of every key.

A file may say `base: NAME_OR_FILE`; overlays and `KEY=VALUE` settings are merged over it in the order they are given.
A mapping may stand for the file, with what YAML would give, and one of keys to values for the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import evolve, field, frozen

from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.process.whole_files import is_file
from kernbench_core.topology.strict_yaml import MAX_BYTES, Located, plain, read_objects, read_yaml
from kernbench_core.wording import brief, in_a_line

KeyPath = tuple[str | int, ...]

@frozen
class Layering:
    """How a section is laid over the one below it, where that is not key by key.

    `forms` are pairs of keys that say one thing in two forms: what a layer says in one replaces the other below it.
    Where `params` are of nothing that an `impl` beside them names, `params: {}` drops those below.
    """

    forms: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    drops_params: bool = False


_BY_KEY = Layering()


def by_key(path: KeyPath) -> Layering:
    """Return how a section is laid over another of which no kind of machine says more."""
    return _BY_KEY


@frozen(repr=False)
class Config:
    """Merged configuration: plain data, the place of every key path, and the names of the files it came from.

    `faults` are what is wrong with the text though it could be read on: `compile_topology` reports them with the rest.
    `inherited` are the key paths of parameters that were given for another implementation than the one that holds,
    `replaced` those of them that nobody misses, as what chose the new one gives parameters for it, too.
    """

    data: Mapping[str, Any]
    places: Mapping[KeyPath, str]
    sources: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    inherited: frozenset[KeyPath] = frozenset()
    replaced: frozenset[KeyPath] = frozenset()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Config of {', '.join(self.sources)[:200] or 'a mapping'}: {', '.join(self.data)[:200]}>"

    def where(self, path: KeyPath) -> str:
        """Return `file:line:column`, or the `--set` text, of a key path, or of its nearest parent that was written.

        Of what came from Python objects it is "topology.cube.pes" and "set cube.pes".
        """
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, self.sources[-1] if self.sources else "<configuration>")

    def latest(self, path: KeyPath, *others: KeyPath) -> str:
        """Return where `path`, one of `others` or a key below was written last: a `--set`, the file, or its bases."""
        written = [
            place
            for part, place in self.places.items()
            if any(part[: len(wanted)] == wanted for wanted in (path, *others))
        ]
        own = [f"{self.sources[0]}:", f"{self.sources[0]}."] if self.sources else []
        for starts in (("--set ", "set "), tuple(own)):
            for place in reversed(written):
                if place.startswith(starts):
                    return place
        return self.where(path)

    def at(self, path: KeyPath) -> str:
        """Return what a sentence about a key path starts with: its place and its dotted name."""
        return f"{self.where(path)}: {dotted(path)}"


def dotted(path: KeyPath) -> str:
    """Write a key path with dots, list items by index: `overrides.0.impl`."""
    return ".".join(str(part) for part in path) or "configuration"


def load_config(
    source: str | Path | Mapping[str, object],
    *,
    presets: Mapping[str, Path] | None = None,
    overlays: Sequence[str | Path] = (),
    sets: Sequence[str] | Mapping[str, object] = (),
    defer: bool = False,
    left_out: str = "",
    layering: Callable[[KeyPath], Layering] = by_key,
) -> Config:
    """Read a preset or file with its bases, then overlay files, then `KEY=VALUE` settings.

    Args:
        source: a name in `presets`, the path of a file, or a mapping, which messages call "topology".
        presets: preset names and the files that hold them; `base:` may name them too.
        overlays: presets or files merged over the result, in order (the `--components` option).
        sets: `dotted.key=value` texts merged last, whose value is read as YAML, or a mapping of dotted keys to values.
        defer: keep faults that reading can go on after, such as duplicate keys, in `Config.faults`.
        left_out: what to add where a name is neither: that it may be a preset of a plug-in which is not there.
        layering: how the section at a key path is laid over the one below it.

    Raises:
        ConfigError: every fault of every file and setting, each with its place.
        UsageError: the source or an overlay is neither a preset nor a file.
    """
    reader = _Reader(presets or {}, [] if defer else None, left_out=left_out, layering=layering)
    first = reader.mapping_layer(source, "topology") if isinstance(source, Mapping) else reader.layer(source)
    layers = [first, *(reader.layer(name, what="overlay (--components)") for name in overlays)]
    if isinstance(sets, Mapping):
        layers.extend(reader.attempt(partial(_read_value, key, value)) for key, value in sets.items())
    else:
        layers.extend(reader.attempt(partial(_read_setting, text)) for text in sets)
    return reader.finish(layers)


@frozen
class _Reader:
    """One reading: follows `base:`, collects faults of all files before it raises."""

    presets: Mapping[str, Path]
    deferred: list[str] | None = None
    problems: list[str] = field(factory=list)
    sources: list[str] = field(factory=list)
    left_out: str = ""
    layering: Callable[[KeyPath], Layering] = by_key

    def attempt(self, read: Any) -> Located:
        try:
            result: Located = read()
            return result
        except ConfigError as fault:
            self.problems.extend(fault.problems)
            return Located({}, "")

    def layer(
        self, name: str | Path, seen: tuple[Path, ...] = (), folder: Path | None = None, what: str = "topology"
    ) -> Located:
        path = self.presets.get(str(name)) or (folder or Path()) / name
        if not is_file(path):
            raise UsageError(self._not_there(what, str(name)))
        if path in seen:
            self.problems.append(f"{path}: base must not lead back to {path.name!r}; drop it.")
            return Located({}, str(path))
        size = path.stat().st_size
        if size > MAX_BYTES:
            self.problems.append(f"{path}: file must be at most 4 MiB, not {size} B; split it with 'base:'.")
            return Located({}, str(path))
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as fault:
            wrong = fault.object[fault.start : fault.end]
            self.problems.append(f"{path}: file must be UTF-8 text, not bytes like {wrong!r}.")
            return Located({}, str(path))
        return self.text_layer(text, str(path), path.parent, (*seen, path))

    def text_layer(self, text: str, name: str, folder: Path, seen: tuple[Path, ...]) -> Located:
        self.sources.append(name)
        tree = self.attempt(lambda: read_yaml(text, name, deferred=self.deferred))
        return self.based(tree, name, folder, seen)

    def mapping_layer(self, given: Mapping[str, object], name: str) -> Located:
        self.sources.append(name)
        return self.based(self.attempt(lambda: read_objects(given, name)), name, Path(), ())

    def based(self, tree: Located, name: str, folder: Path, seen: tuple[Path, ...]) -> Located:
        """Lay a tree over its base, if it names one."""
        if not isinstance(tree.value, dict):
            self.problems.append(f"{name}:1:1: configuration must be a mapping, not {brief(plain(tree))}.")
            return Located({}, name)
        base = tree.value.get("base")
        if base is None:
            return tree
        tree = evolve(tree, value={key: item for key, item in tree.value.items() if key != "base"})
        if not isinstance(base.value, str):
            self.problems.append(f"{base.place}: base must be a preset or a file name, not {brief(plain(base))}.")
            return tree
        try:
            return merge(self.layer(base.value, seen, folder), tree, layering=self.layering)
        except UsageError:
            self.problems.append(f"{base.place}: {self._not_there('base', base.value)}")
            return tree

    def _not_there(self, what: str, name: str) -> str:
        """Say that there is no file of this name, or for this preset."""
        if name in self.presets:
            return (
                f"{what} must have a file, and that of preset {name!r}, {str(self.presets[name])!r}, is not there; "
                "reinstall the plug-in that offers it."
            )
        hint = f"{did_you_mean(name, self.presets)}{self.left_out}"
        return f"{what} must be a preset or a file, not {brief(name)}.{hint}"

    def finish(self, layers: Iterable[Located]) -> Config:
        if self.problems:
            raise ConfigError(*self.problems, *(self.deferred or ()))
        tree = Located({}, "")
        for layer in layers:
            tree = merge(tree, layer, layering=self.layering)
        items = list(_items(tree, ()))
        places = MappingProxyType({path: item.place for path, item in items})
        sources, faults = tuple(self.sources), tuple(self.deferred or ())
        inherited = frozenset(path for path, item in items if item.inherited)
        replaced = frozenset(path for path, item in items if item.replaced)
        return Config(MappingProxyType(plain(tree)), places, sources, faults, inherited, replaced)


def merge(
    base: Located,
    over: Located,
    path: KeyPath = (),
    layering: Callable[[KeyPath], Layering] = by_key,
) -> Located:
    """Lay one tree over another: mappings merge key by key, `overrides` are appended, everything else is replaced.

    The parameters below a mapping that names another `impl` are kept as `inherited` ones: `implementations.settle`
    knows which of them the new class has; an empty mapping beside that `impl`, or above it, drops them. What else a
    section does, `layering` says of its path. `path` is where the trees hang.
    """
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    below, above, params = base.value.get("impl"), over.value.get("impl"), base.value.get("params")
    merged = dict(base.value)
    if below is not None and above is not None and below.value != above.value and params is not None:
        merged["params"] = _inherited(params, replaced=bool(plain(over).get("params")))
    laid = layering(path)
    for forms in laid.forms:
        for form, other in (forms, forms[::-1]):
            if form & over.value.keys():
                merged = {key: item for key, item in merged.items() if key not in other}
    for key, item in over.value.items():
        old = merged.get(key)
        if old is None:
            merged[key] = item
        elif key == "overrides" and isinstance(old.value, list) and isinstance(item.value, list):
            merged[key] = evolve(item, value=[*old.value, *item.value])
        elif key == "params" and item.value == {} and isinstance(old.value, dict):
            kept = {} if laid.drops_params else old.value
            merged[key] = evolve(item, value={name: one for name, one in kept.items() if not one.inherited})
        else:
            merged[key] = merge(old, item, (*path, key), layering)
    return evolve(base if base.place else over, value=merged, inherited=False, replaced=False)


def _inherited(params: Located, replaced: bool) -> Located:
    if not isinstance(params.value, dict):
        return params
    items = {name: evolve(item, inherited=True, replaced=replaced) for name, item in params.value.items()}
    return evolve(params, value=items)


def _items(tree: Located, path: KeyPath) -> Iterator[tuple[KeyPath, Located]]:
    if path:
        yield path, tree
    items: Iterable[tuple[str | int, Located]] = ()
    if isinstance(tree.value, dict):
        items = tree.value.items()
    elif isinstance(tree.value, list):
        items = enumerate(tree.value)
    for key, item in items:
        yield from _items(item, (*path, key))


def _read_setting(setting: str) -> Located:
    place = getattr(setting, "place", "") or f"--set {in_a_line(setting)}"
    key, equals, text = setting.partition("=")
    parts = key.split(".")
    if not equals or not all(part.strip() for part in parts):
        raise ConfigError(f"{place}: setting must be KEY=VALUE with a dotted key, not {brief(setting)}.")
    tree = read_yaml(text.strip() or "null", place, positions=False)
    for part in reversed(parts):
        tree = Located({part.strip(): tree}, place)
    return tree


def _read_value(key: object, value: object) -> Located:
    parts = key.split(".") if isinstance(key, str) else [""]
    if not all(part.strip() for part in parts):
        raise ConfigError(f"set: key must be dotted text, as in 'cube.pes', not {brief(key)}.")
    place = f"set {in_a_line(str(key))}"
    tree = read_objects(value, place)
    for part in reversed(parts):
        tree = Located({part.strip(): tree}, place)
    return tree
