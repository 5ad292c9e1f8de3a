"""`ccl.yaml`: which algorithm serves a collective, and how it runs, with errors like those of all configuration.

The file that comes with the package holds the defaults; the user's is merged over it, and `--set`-like texts over that.
An *entry* under `algorithms` gives an algorithm other settings; what it leaves out it takes from `defaults`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import evolve, field, frozen

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.plan.auto import AutoSettings
from kernbench_ccl.plan.machine_tuning import MachineTuning, read_machine_tuning
from kernbench_core.errors import ConfigError, PluginError, UsageError
from kernbench_core.params import Param, did_you_mean, resolve_params
from kernbench_core.peers import SLOT_ALIGNMENT
from kernbench_core.process import is_file
from kernbench_core.topology import Config, KeyPath, load_config
from kernbench_core.units import parse_quantity
from kernbench_core.wording import brief

AUTO = "auto"
TIERS = ("tcm", "sram", "hbm")
"""Where the slots of a queue may lie."""
NO_TABLE = "none"
"""What stands where a table of the machine could be named."""
SECTIONS = ("defaults", "algorithms", "collectives", "auto")


@frozen
class Auto(Param):
    """A parameter that may also be `auto`, which becomes None."""

    def convert(self, value: object) -> Any:
        """Return None for auto, else what the parameter makes of it; raise ValueError("must be …")."""
        if value == AUTO:
            return None
        try:
            return super().convert(value)
        except ValueError as fault:
            if self.choices:
                listed = ", ".join(repr(choice) for choice in (AUTO, *self.choices))
                raise ValueError(f"must be one of {listed}, not {brief(value)}.") from None
            raise ValueError(str(fault).replace(", not ", " or auto, not ", 1)) from None


@frozen
class Switch(Param):
    """A parameter that is on or off (or true or false)."""

    def convert(self, value: object) -> bool:
        """Return whether it is on; raise ValueError("must be …")."""
        if value in ("on", True):
            return True
        if value in ("off", False):
            return False
        raise ValueError(f"must be on or off, not {brief(value)}.")


@frozen
class SlotBytes(Auto):
    """A size of slots, whose bytes are whole lines of a scratchpad."""

    def convert(self, value: object) -> Any:
        """Return bytes, None for auto; raise ValueError("must be …")."""
        found = super().convert(value)
        if found is not None and found % SLOT_ALIGNMENT:
            raise ValueError(f"must be a multiple of {SLOT_ALIGNMENT} B, a line of a scratchpad, not {brief(value)}.")
        return found


SETTINGS: tuple[Param, ...] = (
    Param("algorithm", "str", AUTO, "The registered algorithm, the entry, or auto: what was measured to be best."),
    Auto("slots", "int", AUTO, "Slots of a queue between two PEs; auto: as pe_ipcq says.", minimum=1),
    SlotBytes("slot_bytes", "size", AUTO, "Bytes of a slot; auto: as pe_ipcq says.", positive=True),
    Auto("tier", "str", AUTO, "The memory that the slots lie in; auto: as pe_ipcq says.", choices=TIERS),
    Param("chunk", "size", "16 KiB", "Bytes of a message between two PEs, at most those of a queue.", positive=True),
    Switch("pipeline", "str", "on", "Whether a step may begin before the step before has ended."),
    Auto("pes", "int", AUTO, "PEs of each rank that take part; auto: what the message feeds and the links need.",
         minimum=1),
    Auto("topology", "str", AUTO, "The network that the algorithm lays over the ranks; auto: the machine's own."),
)  # fmt: skip
"""Every key of `defaults` and of an entry."""
_NAMES = tuple(setting.name for setting in SETTINGS)
OF_AUTO: tuple[Param, ...] = (
    Switch("simulate", "str", "on", "Whether algorithms are tried where no table was measured; off: the nearest one."),
    Param("tuning", "str", NO_TABLE, "The table of this machine that kernbench ccl tune wrote; none: no such table."),
)
"""Every key of the section `auto`."""


@frozen
class Settings:
    """How an algorithm runs: `algorithm` a registered name (or auto), sizes in bytes; None is auto.

    `name` is that of the entry, or of the algorithm where it has none.
    """

    name: str
    algorithm: str
    slots: int | None
    slot_bytes: int | None
    tier: str | None
    chunk: int
    pipeline: bool
    pes: int | None
    topology: str | None
    pes_at: str = field(default="pes", eq=False)
    """Where `pes` is written, and its name there."""

    def texts(self) -> tuple[str, ...]:
        """Return what is not as where nobody says anything, as `KEY=VALUE` that `load_ccl` reads."""
        sizes = {name: f"{value} B" for name in ("slot_bytes", "chunk") if (value := getattr(self, name)) is not None}
        given = {**sizes, "slots": self.slots, "tier": self.tier, "pes": self.pes, "topology": self.topology}
        told = [f"{name}={value}" for name, value in given.items() if value not in (None, "16384 B")]
        return tuple(told if self.pipeline else [*told, "pipeline=off"])

    def check_pes(self, most: int) -> None:
        """Raise ConfigError where it asks for more than the `most` PEs of a SIP."""
        if self.pes is not None and self.pes > most:
            raise ConfigError(f"{self.pes_at} must be at most {most}, the PEs of a SIP, not {self.pes}; give fewer.")

    def tile(self, itemsize: int) -> int:
        """Return the elements of a message, at least one."""
        return max(1, self.chunk // itemsize)


@frozen
class CclConfig:
    """A `ccl.yaml` that was read and checked. `entries` are settings by the name of their entry."""

    defaults: Settings
    entries: Mapping[str, Settings]
    collectives: Mapping[str, str]
    sources: tuple[str, ...] = ()
    auto: AutoSettings = field(factory=AutoSettings)
    catalogue: Catalogue = field(factory=Catalogue, eq=False, repr=False)

    def chosen(self, collective: str) -> str:
        """Return the algorithm or entry that serves a collective where the caller names none; may be "auto"."""
        return self.collectives.get(collective, self.defaults.algorithm)

    def without_trials(self) -> CclConfig:
        """Return the same, by which auto tries nothing."""
        return evolve(self, auto=evolve(self.auto, simulate=False))

    def files(self) -> list[str]:
        """Return the paths of the `.py` files that are named as algorithms, and of the table that `auto` goes by."""
        named = (self.defaults.algorithm, *(entry.algorithm for entry in self.entries.values()))
        tables = [] if self.auto.tuning is None else [self.auto.tuning.source]
        return sorted({*tables, *(name for name in (*named, *self.collectives.values()) if name.endswith(".py"))})

    def settings(self, name: str) -> Settings:
        """Return the settings of an entry, or of an algorithm by its registered name.

        An algorithm has those of the entry of its name, else of the only entry that runs it, else the defaults.
        """
        if name in self.entries:
            return self.entries[name]
        running = [entry for entry in self.entries.values() if name in self.catalogue.named(entry.algorithm)]
        if len(running) == 1:
            return running[0]
        return evolve(self.defaults, name=name, algorithm=name)


def load_ccl(
    path: str | Path | None = None, *, catalogue: Catalogue | None = None, sets: Iterable[str] = ()
) -> CclConfig:
    """Read the defaults, the file at `path` merged over them, and `KEY=VALUE` texts over that.

    `catalogue` has the registered algorithms; where it is given, a name that is none of them is an error.

    Raises:
        ConfigError: every fault, each with its place.
        UsageError: there is no file at `path`.
    """
    if path is not None and not is_file(Path(path)):
        raise UsageError(f"--config must be a ccl.yaml file, not {str(path)!r}; 'docs/collectives.md' shows one.")
    own = Path(str(resources.files("kernbench_ccl") / "ccl.yaml"))
    overlays = () if path is None else (path,)
    return read_ccl(load_config(own, overlays=overlays, sets=tuple(sets), defer=True), catalogue)


def read_ccl(config: Config, catalogue: Catalogue | None = None) -> CclConfig:
    """Check a merged configuration as a whole; see `load_ccl`."""
    reader = _Reader(config, catalogue)
    found = reader.read()
    if config.faults or reader.problems:
        raise ConfigError(*sorted(dict.fromkeys((*config.faults, *reader.problems)), key=_place))
    return found


def _place(problem: str) -> tuple[bool, str, int, int]:
    """Return what sorts problems by file, line and column, and settings behind them."""
    found = re.match(r"(.+?):(\d+):(\d+): ", problem)
    return (True, "", 0, 0) if found is None else (False, found[1], int(found[2]), int(found[3]))


class _Reader:
    """One reading; collects every fault."""

    def __init__(self, config: Config, catalogue: Catalogue | None) -> None:
        self.problems: list[str] = []
        self._config, self._catalogue = config, catalogue or Catalogue()
        self._algorithms = None if catalogue is None else tuple(catalogue.algorithms)
        self._misspelt: set[str | int] = set()
        """Entries that have a fault that may be why they name no algorithm."""

    def read(self) -> CclConfig:
        for key in self._config.data:
            if key not in SECTIONS:
                self._report((key,), f"must be a known key.{did_you_mean(key, SECTIONS)}")
        written = self._mapping(("defaults",))
        defaults = self._settings(("defaults",), "defaults", written, {})
        entries = {}
        for name in self._mapping(("algorithms",)):
            path = ("algorithms", name)
            own = self._mapping(path)
            entries[name] = self._settings(path, name, {"algorithm": name, **own}, written)
        self._check_names(defaults, entries)
        collectives = self._collectives(entries)
        return CclConfig(
            defaults, MappingProxyType(entries), MappingProxyType(collectives), self._config.sources, self._auto(),
            self._catalogue,
        )  # fmt: skip

    def _auto(self) -> AutoSettings:
        """Read what `auto` may do, and the table that it is to go by."""
        given = self._mapping(("auto",))
        known = tuple(param.name for param in OF_AUTO)
        for key in given:
            if key not in known:
                self._report(("auto", key), f"must be a known key.{did_you_mean(key, known)}")
        own = {key: value for key, value in given.items() if key in known}
        values, problems = resolve_params(OF_AUTO, own, lambda key, *_: self._config.at(("auto", key)))
        self.problems.extend(problems)
        name = values.get("tuning", NO_TABLE)
        table = None if name == NO_TABLE else self._table(name)
        return AutoSettings(values.get("simulate", True), table)

    def _table(self, name: str) -> MachineTuning | None:
        """Read a table of times, whose path is seen from the file that names it; report what is wrong."""
        path = Path(self._seen_from(self._config.where(("auto", "tuning")), name))
        if not is_file(path):
            told = f"must be a table that kernbench ccl tune wrote, and there is no {str(path)!r}."
            self._report(("auto", "tuning"), told)
            return None
        try:
            return read_machine_tuning(path)
        except (ValueError, OSError) as fault:
            self._report(("auto", "tuning"), str(fault))
            return None

    def _mapping(self, path: KeyPath) -> Mapping[str, object]:
        value: Any = self._config.data
        for part in path:
            value = value.get(part)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._report(path, f"must be a mapping of keys to values, not {brief(value)}.")
            self._misspelt.add(path[-1])
            return {}
        return value

    def _settings(self, path: KeyPath, name: str, own: Mapping[str, object], below: Mapping[str, object]) -> Settings:
        """Complete the keys of one section by those of `defaults`, whose faults are reported there, once."""
        inherited = {key: value for key, value in below.items() if key in _NAMES and key not in own}

        def where(key: str, *_: str) -> str:
            return self._config.at(("defaults", key) if key in inherited else (*path, key))

        for key in own:
            if key not in _NAMES:
                self._report((*path, key), f"must be a known key.{did_you_mean(key, _NAMES)}")
                self._misspelt.add(name)
        values, problems = resolve_params(SETTINGS, {**inherited, **{k: own[k] for k in own if k in _NAMES}}, where)
        self.problems.extend(problems)
        topology, networks = values.get("topology"), self._catalogue.networks
        if topology is not None and topology not in networks:
            listed = ", ".join(map(repr, (AUTO, *networks)))
            self.problems.append(f"{where('topology')} must be one of {listed}, not {brief(topology)}.")
        if "algorithm" in values:
            values["algorithm"] = self._file(where("algorithm"), values["algorithm"])
        fallback = {setting.name: setting.default_value for setting in SETTINGS}
        return Settings(name=name, pes_at=where("pes"), **{**fallback, **values})

    def _check_names(self, defaults: Settings, entries: Mapping[str, Settings]) -> None:
        known = (AUTO, *entries)
        self._check_algorithm(("defaults", "algorithm"), defaults.algorithm, known)
        for name, entry in entries.items():
            path: KeyPath = ("algorithms", name, "algorithm")
            if entry.algorithm == AUTO:
                self._report(path, "must be a registered algorithm, not 'auto'; name the one that the entry is for.")
            elif path in self._config.places:
                self._check_algorithm(path, entry.algorithm, ())
            elif self._algorithms is not None and name not in self._misspelt and not self._meant(name):
                self._report(path[:2], f"must have the key 'algorithm', as {name!r} is no registered algorithm itself.")

    def _file(self, place: str, given: str) -> str:
        """Return the path of a `.py` file as seen from here: in a file it is seen from that file."""
        return self._seen_from(place, given) if given.endswith(".py") else given

    def _seen_from(self, place: str, given: str) -> str:
        """Return a path that was written at a place as seen from here."""
        written = Path(place.partition(": ")[0].rsplit(":", 2)[0])
        return str(written.parent / given) if is_file(written) else given

    def _meant(self, given: str, collective: str | None = None) -> list[str]:
        """Return the registered algorithms that may be meant, of one collective as far as names tell."""
        catalogue = self._catalogue
        found = [] if self._algorithms is None else catalogue.named(given)
        return [name for name in found if collective is None or catalogue.collective_of(name) in ("", collective)]

    def _check_algorithm(self, path: KeyPath, given: str, others: Iterable[str], collective: str | None = None) -> None:
        if given.endswith(".py"):
            if not is_file(Path(given)):
                self._report(path, f"must be a registered algorithm or a .py file, and there is no file {given!r}.")
            return
        if self._algorithms is None or given in others or self._meant(given):
            return
        or_entry = ", an entry of 'algorithms' or auto" if others else ""
        spelt = {name: self._catalogue.spellings(name) for name in self._algorithms}
        short = dict.fromkeys(word for name, words in spelt.items() for word in words if word != name)
        close = did_you_mean(given, (*self._algorithms, *short, *others)).partition(" Known: ")
        does = self._catalogue.collective_of
        methods = sorted({words[-1] for name, words in spelt.items() if collective in (None, does(name))})
        known = f" Known: {', '.join(methods)}." if methods else ""
        self._report(path, f"must be a registered algorithm{or_entry}, not {brief(given)}.{close[0] or known}")

    def _collectives(self, entries: Mapping[str, Settings]) -> dict[str, str]:
        found = {}
        for name, given in self._mapping(("collectives",)).items():
            path: KeyPath = ("collectives", name)
            if name not in self._catalogue.collectives:
                self._report(path, f"must be a collective.{did_you_mean(name, self._catalogue.collectives)}")
                continue
            try:
                name = self._catalogue.collectives[name].name  # of one of two, with its vendor
                found[name] = parse_quantity(given, "str")
            except (ValueError, PluginError) as fault:
                self._report(path, str(fault))
                continue
            found[name] = self._file(self._config.where(path), found[name])
            self._check_algorithm(path, found[name], (AUTO, *entries), name)
            self._check_does(path, found[name], entries, name)
        return found

    def _check_does(self, path: KeyPath, given: str, entries: Mapping[str, Settings], collective: str) -> None:
        """Report an algorithm, or an entry of one, that does other collectives only."""
        target = entries[given].algorithm if given in entries else given
        meant = self._meant(target)
        if not meant or self._meant(target, collective):
            return
        does = f"does {' and '.join(dict.fromkeys(self._catalogue.collective_of(name) for name in meant))}"
        which = does if target == given else f"runs {target} and {does}"
        self._report(path, f"must be an algorithm that does {collective}, not {brief(given)}, which {which}.")

    def _report(self, path: KeyPath, text: str) -> None:
        self.problems.append(f"{self._config.at(path)} {text}")
