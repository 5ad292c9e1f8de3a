"""What a run is asked for, written down once.

A field of `RunCall` is an argument of `kb.run`. One with an `Option` is an option of `kernbench run` as well, and one
whose option is `kept` stands in the manifest, from which a rerun takes it.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import attrs

from kernbench_core.errors import UsageError, in_words
from kernbench_core.process.whole_files import LONGEST_PATH
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.engine.watchdog import Limits, Progress
    from kernbench_core.host.parameters.grid import LaunchGrid
    from kernbench_core.plugins import Plugins

_MOST_DIGITS = 18
_OPTIONS_OF: "dict[type, Mapping[str, Option]]" = {}
#: The groups of options in the help of `kernbench run`; parts of runs may have others.
GROUPS = BENCH, MACHINE, ANALYSIS, OUTPUT, DATA, KERNELS, LIMITS, CACHE = (
    "Bench", "Machine", "Analysis", "Output", "Data and checks", "Kernels", "Limits", "Cache",
)  # fmt: skip
#: What the help shows for options that are paths.
_PATHS = ("FILE", "DIR")


@attrs.frozen
class Option:
    """How a field of an `OptionRecord` stands on the command line, and whether a manifest keeps it.

    `help` is its sentence, `metavar` stands there for its value. It is called as the field, unless it has a `name`; a
    bool that is true by default is turned off by `--no-NAME`. Where the default is a number, so is what is given; an
    integer is `least` or more. A time is given with its unit, as the `example`; the field is in a unit of which an ns
    is `per_ns`. All else is text. One with a `bare` number has that where the command line gives no value. The
    help lists it under the title `group`.
    """

    help: str
    metavar: str | None = None
    kept: bool = False
    name: str | None = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    example: str | None = None
    per_ns: float = 1.0
    bare: int | None = None
    group: str | None = None

    @property
    def choice(self) -> str:
        """The choices in words."""
        return " or ".join(map(repr, self.choices))


def _is_flag(given: object) -> bool:
    """Whether it is a truth value: a bool, of numpy's too, or 0 or 1."""
    return given in (0, 1) if isinstance(given, int) else type(given).__name__ in ("bool", "bool_")


def _settings(given: Iterable[str] | Mapping[str, object]) -> tuple[str, ...] | dict[str, object]:
    if isinstance(given, Mapping):
        return dict(given)
    texts = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"set must be a list of 'key.path=value' texts, or a mapping of 'key.path' to values, not {brief(given)}."
        )
    return texts


def _places(given: Any) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else given
    named = isinstance(texts, tuple | list) and all(isinstance(text, str) for text in texts)
    if not named or not all(0 < len(text) <= LONGEST_PATH for text in texts):
        raise UsageError(f"depends must be files, patterns of files or $VARIABLES, as texts, not {brief(given)}.")
    return tuple(texts)


def _names(given: Any) -> str:
    texts = given.split(",") if isinstance(given, str) else given
    named = isinstance(texts, tuple | list) and all(isinstance(text, str) for text in texts)
    if not named or (given != "" and not all(text.strip() for text in texts)):
        raise UsageError(f"resident must be names of tensors, as 'weights' or 'k,v', or 'all', not {brief(given)}.")
    return ",".join(dict.fromkeys(text.strip() for text in texts))


def _grid(given: object) -> str | None:
    """Return a grid as the command line has it; UsageError for what has no such form."""
    if given is None or isinstance(given, str):
        return given
    extents: list[Any] = list(given) if isinstance(given, tuple | list) else [given]
    numbers = [isinstance(n, Integral) and not isinstance(n, bool) for n in extents]
    if not extents or not all(numbers) or not all(0 < int(n) < 10**_MOST_DIGITS for n in extents):
        raise UsageError(f"grid must be one to three positive integers, as 64 or 8,4, not {brief(given)}.")
    return ",".join(str(int(n)) for n in extents)


@attrs.frozen(kw_only=True)
class OptionRecord:
    """The options of one thing; raise UsageError for a value that none can have.

    A field with an `Option` is an option of the command line, too.
    """

    def __attrs_post_init__(self) -> None:
        options = command_options(type(self))
        for field in attrs.fields(type(self)):
            option, given = options.get(field.name), getattr(self, field.name)
            if isinstance(field.default, bool) and not _is_flag(given):
                raise UsageError(f"{field.name} must be True or False, not {brief(given)}.")
            if option is None:
                continue
            kind = {int: Integral, float: Real}.get(type(field.default)) if option.least is None else None
            if kind is not None and not isinstance(given, kind):
                must = "an integer" if kind is Integral else "a number"
                raise UsageError(f"{field.name} must be {must}, not {brief(given)}.")
            if option.metavar in _PATHS and field.default is None and given is not None:
                require_path(field.name, given, "a path, as text or a Path, or None")
            if option.choices and (not isinstance(given, str) or given not in option.choices):
                raise UsageError(f"{field.name} must be {option.choice}, not {brief(given)}.")


@attrs.frozen(kw_only=True)
class RunOptions(OptionRecord):
    """How one run is to be made; `kb.run` says what each option does.

    Raise UsageError for a value that no run can have, and for options that exclude each other.
    """

    components: Annotated[
        str | Path | None,
        Option("A YAML file merged over the topology, to replace components.", "FILE", group=MACHINE),
    ] = None
    set: Annotated[
        tuple[str, ...] | Mapping[str, object],
        Option("Set one configuration key; repeatable.", "KEY=VALUE", group=MACHINE),
    ] = attrs.field(default=(), converter=_settings)
    device: Annotated[str, Option("The PEs that run programs.", "all|sip:N", kept=True, group=MACHINE)] = "all"
    seed: Annotated[int, Option("Seed of the bench's random inputs.", "N", kept=True, least=0, group=BENCH)] = 0
    grid: Annotated[
        str | None,
        Option("Grid of a kernel without a bench: 64, 8,4 or 'cdiv(n, BLOCK)'.", "X[,Y[,Z]]", kept=True, group=BENCH),
    ] = attrs.field(default=None, converter=_grid)
    data: Annotated[bool, Option("Simulate shapes only: times without data.", kept=True, group=DATA)] = True
    verify_data: Annotated[
        bool, Option("Compute the data, and compare it with the bench's reference.", kept=True, group=DATA)
    ] = False
    verify_ops: Annotated[
        bool, Option("Compute each op again, and name the first wrong one.", kept=True, group=DATA)
    ] = False
    backend: Annotated[
        str,
        Option("Compute data with numpy, or with a plug-in (torch:cuda).", "NAME[:DEVICE]", kept=True, group=DATA),
    ] = "numpy"
    strict_races: Annotated[bool, Option("Exit with 7 when memory accesses race (hazards).", group=KERNELS)] = False
    strict_python: Annotated[
        bool, Option("Exit with 7 if Python reads over 256 elements and over 1 % of the loads.", group=KERNELS)
    ] = False
    race_by: Annotated[
        str,
        Option(
            "Accesses of one PE, or only of one program, are ordered within a launch.",
            kept=True,
            choices=("pe", "program"),
            group=KERNELS,
        ),
    ] = "pe"
    materialize: Annotated[
        str,
        Option(
            "Let kernels read loaded data and results of earlier launches (determined), or any result (on_demand).",
            "WHAT",
            kept=True,
            choices=("determined", "on_demand"),
            group=KERNELS,
        ),
    ] = "determined"
    oob: Annotated[
        str,
        Option(
            "Accesses outside a tensor are errors, or they read poison and drop writes.",
            kept=True,
            choices=("error", "poison"),
            group=KERNELS,
        ),
    ] = "error"
    pipeline_loops: Annotated[
        bool,
        Option(
            "Do not prefetch in the loops of Triton kernels, whatever num_stages says.",
            kept=True,
            group=KERNELS,
        ),
    ] = True
    placement: Annotated[
        str,
        Option(
            "Place the arrays of Triton kernels near the programs, in equal blocks on all PEs, or by 4 KiB in turn.",
            kept=True,
            choices=("near", "blocks", "interleaved"),
            group=KERNELS,
        ),
    ] = "near"
    resident: Annotated[
        str,
        Option(
            "These tensors are on the device before the run: no copy of them is simulated.",
            "NAME[,NAME]|all",
            kept=True,
            group=BENCH,
        ),
    ] = attrs.field(default="", converter=_names)
    out: Annotated[
        str | Path | None, Option("Save manifest, result and op log in this folder.", "DIR", group=OUTPUT)
    ] = None
    outputs: Annotated[bool, Option("Compute what kernels wrote; --out saves it as .npy files.", group=DATA)] = False
    depends: Annotated[
        tuple[str, ...],
        Option("File, pattern or $VARIABLE that the bench reads, for --cached; repeatable.", "FILE", group=CACHE),
    ] = attrs.field(default=(), converter=_places)
    max_events: Annotated[
        int | None, Option("Stop after this many simulator events.", "N", kept=True, least=1, group=LIMITS)
    ] = None
    max_sim_ns: Annotated[
        float | None,
        Option("Stop at this simulated time ('5 ms').", "TIME", kept=True, name="max-sim-time", example="5 ms",
               group=LIMITS),
    ] = None  # fmt: skip
    timeout_s: Annotated[
        float | None,
        Option("Stop after this wall time ('60 s').", "TIME", kept=True, name="timeout", example="60 s", per_ns=1e-9,
               group=LIMITS),
    ] = None  # fmt: skip

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        _ = self.limits  # which raises for one that is none
        if not isinstance(self.seed, int) or self.seed < 0:
            raise UsageError(f"the seed must be an integer of at least 0, not {brief(self.seed)}; give another --seed.")
        _ = self.launch_grid
        for wanted, option in ((self.verify_data, "--verify-data"), (self.verify_ops, "--verify-ops")):
            if wanted and not self.data:
                raise UsageError(f"verifying data needs data; leave out either {option} or --no-data.")
        if self.outputs and not self.data:
            raise UsageError("outputs need data; leave out either --outputs or --no-data.")

    @property
    def launch_grid(self) -> "LaunchGrid | None":
        """The grid of a kernel that is run alone; UsageError for what is none."""
        if self.grid is None:
            return None
        from kernbench_core.host.parameters.grid import LaunchGrid

        return LaunchGrid(self.grid)

    @property
    def limits(self) -> "Limits":
        """When the run is to be stopped; UsageError for a limit that is none."""
        from kernbench_core.engine.watchdog import Limits

        return Limits(self.max_events, self.max_sim_ns, self.timeout_s)


@attrs.frozen
class RunCall(RunOptions):
    """The arguments of `kb.run`: what is run, where, and how."""

    bench: str | Path | Callable[..., object]
    topology: Annotated[
        str | Path | Mapping[str, object], Option("The machine to simulate.", "PRESET|FILE", group=MACHINE)
    ] = "default"
    params: Mapping[str, object] | None = None
    on_progress: "Callable[[Progress], None] | None" = attrs.field(default=None, kw_only=True)
    plugins: "Plugins | None" = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not (callable(self.bench) or hasattr(self.bench, "host_program")):
            require_path("bench", self.bench, "a registered name, the path of a .py file, or a function")
        if not isinstance(self.topology, Mapping):
            require_path("topology", self.topology, "a preset, the path of a file, or a mapping as YAML would give it")
        if not isinstance(self.params, Mapping | None):
            raise UsageError(f"params must be a mapping of names to values, not {brief(self.params)}.")


def command_options(record: type[OptionRecord]) -> Mapping[str, Option]:
    """Return the options that the command line has of an `OptionRecord`, by field, positional ones first."""
    found = _OPTIONS_OF.get(record)
    if found is None:
        fields = sorted(attrs.fields(record), key=lambda field: field.kw_only)
        kinds = {field.name: _annotation(record, field.name, field.type) for field in fields}
        found = {name: option for name, kind in kinds.items() for option in getattr(kind, "__metadata__", ())}
        _OPTIONS_OF[record] = found
    return found


def _annotation(record: type, name: str, kind: Any) -> Any:
    """Return the annotation of a field, also of a module that defers them; TypeError for one that cannot be read."""
    if not (isinstance(kind, str) and "Annotated" in kind):
        return kind
    owner = next((each for each in record.__mro__ if name in vars(each).get("__annotations__", ())), record)
    try:
        written = SimpleNamespace(__annotations__={name: kind})
        return get_type_hints(written, vars(sys.modules[owner.__module__]), include_extras=True)[name]
    except Exception as error:
        must = "must have an annotation of what its module imports when it runs"
        raise TypeError(f"{name!r} of {record.__name__} {must}, not {kind!r}: {in_words(error)}") from None


def require_path(what: str, given: object, must_be: str) -> None:
    """Raise UsageError when `given` cannot be a path."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or len(path) > LONGEST_PATH:
        raise UsageError(f"{what} must be {must_be}, not {brief(given)}.")


def signature_of(record: Callable[..., object], *more: type[OptionRecord]) -> inspect.Signature:
    """Return the signature of a function that takes what a record takes, and the fields of some more by name."""
    arguments = [*inspect.signature(record).parameters.values()]
    arguments += [each for options in more for each in inspect.signature(options).parameters.values()]
    return inspect.Signature([each.replace(annotation=plain_annotation(each.annotation)) for each in arguments])


def plain_annotation(annotation: Any) -> Any:
    """Return an annotation without what the command line has to know."""
    return annotation.__origin__ if get_origin(annotation) is Annotated else annotation
