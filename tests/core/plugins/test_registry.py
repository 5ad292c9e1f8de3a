"""A registry maps names to lazily imported things, never changes, and says what is missing."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import pytest

from kernbench_core.errors import PluginError, UnknownName
from kernbench_core.params import Param, resolve_params
from kernbench_core.plugins import (
    AlgorithmEntry,
    BenchEntry,
    ComponentEntry,
    ComponentRegistry,
    DefaultsRegistry,
    NetworkEntry,
    PluginFailure,
    Provider,
    Registry,
    load_plugins,
)

ACME = Provider("acme", "acme-models", "1.2")


def benches(*names: str, failures: tuple[PluginFailure, ...] = ()) -> Registry[BenchEntry]:
    return Registry("bench", [(BenchEntry(name, "math:sqrt"), ACME) for name in names], failures)


def test_names_come_sorted() -> None:
    """Iteration is by name, whatever the order of registration."""
    assert list(benches("softmax", "gemm", "add")) == ["add", "gemm", "softmax"]


def test_load_imports_what_the_entry_points_at() -> None:
    """`load` returns the object behind "module:attr", nested attributes too."""
    assert benches("root").load("root") is math.sqrt
    nested = Registry("bench", [(BenchEntry("x", "collections:OrderedDict.fromkeys"), ACME)])
    assert list(nested.load("x")("ab")) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "sentence", "suggestions"),
    [
        ("gem", "'gem'. Did you mean 'gemm'?", ("gemm",)),
        ("xyz", "'xyz'. Known: gemm, softmax.", ()),
    ],
)
def test_an_unknown_name_is_a_sentence(name: str, sentence: str, suggestions: tuple[str, ...]) -> None:
    """The error names what was asked for, the closest registered name, and that a bench may be a file."""
    with pytest.raises(UnknownName) as caught:
        benches("softmax", "gemm")[name]
    assert str(caught.value) == f"bench must be a registered name or the path of a .py file, not {sentence}"
    assert caught.value.suggestions == suggestions
    assert caught.value.exit_code == 2


def test_all_close_names_are_suggested() -> None:
    """Who knows more of what is wanted chooses among them."""
    close = {"gemm-a", "gemm-b", "gemm-c", "gemm-d", "gemm-e"}
    with pytest.raises(UnknownName) as caught:
        benches("softmax", *close)["gemm-x"]
    assert set(caught.value.suggestions) == close


def test_a_bare_name_may_be_of_a_failed_plugin() -> None:
    """A bench has no vendor: its absence mentions the plug-ins that were left out."""
    with pytest.raises(UnknownName) as caught:
        benches("gemm", failures=(PluginFailure(ACME, "ImportError: no libfoo"),)).load("fft")
    assert str(caught.value) == (
        "bench must be a registered name or the path of a .py file, not 'fft'. Known: gemm. "
        "It may belong to a plug-in that was left out: 'acme' (acme-models 1.2)."
    )


def test_a_vendor_name_of_a_failed_plugin_is_its_failure() -> None:
    """A name with a failed vendor gives that plug-in's reason."""
    registry = ComponentRegistry("component", [], (PluginFailure(ACME, "ImportError: no libfoo"),))
    with pytest.raises(PluginError) as caught:
        registry.declared("acme.sfu")
    assert str(caught.value) == (
        "component 'acme.sfu' belongs to plug-in 'acme' (acme-models 1.2), which could not be loaded: "
        "ImportError: no libfoo"
    )


def test_a_target_without_its_attribute_is_a_sentence() -> None:
    """An entry whose module lacks the attribute names provider, target and cause."""
    registry = Registry("bench", [(BenchEntry("x", "math:nothing"), ACME)])
    with pytest.raises(PluginError) as caught:
        registry.load("x")
    assert str(caught.value) == (
        "bench 'x' of acme-models 1.2 must be importable from 'math:nothing', but that raised AttributeError: "
        "module 'math' has no attribute 'nothing'; repair or reinstall acme-models."
    )


def test_a_sentence_that_an_import_raises_ends_before_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No full stop stands within it."""
    (tmp_path / "says_why.py").write_text("raise ValueError('n must be at least 1, not 0.')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError) as caught:
        Registry("bench", [(BenchEntry("x", "says_why:x"), ACME)]).load("x")
    assert str(caught.value) == (
        "bench 'x' of acme-models 1.2 must be importable from 'says_why:x', but that raised ValueError: n must be at "
        "least 1, not 0; repair or reinstall acme-models."
    )


def test_files_that_call_things_alike_are_tried_all_the_same(tmp_path: Path) -> None:
    """As installed plug-ins are: their vendors tell them apart; with strict it is an error."""
    text = "from kernbench_core import BenchEntry\nkernbench_api = 1\n"
    text += "def kernbench_benches(): return [BenchEntry('idle', 'math:sqrt')]\n"
    files = [tmp_path / "first.py", tmp_path / "second.py"]
    for file in files:
        file.write_text(text)
    plugins = load_plugins(map(str, files), installed=False)
    assert list(plugins.benches) == ["first:idle", "second:idle"]
    (failure,) = plugins.failures
    assert f"{failure}.".endswith("uninstall all but one, or write 'first:idle' or 'second:idle'.")
    with pytest.raises(PluginError) as caught:
        load_plugins(map(str, files), installed=False, strict=True)
    assert str(caught.value) == f"{failure}."
    files[1].write_text(text.replace("'idle', 'math:sqrt'", "'idle', 'math'"))
    with pytest.raises(PluginError, match="must write the target of bench 'idle' as 'module:attr', not 'math'"):
        load_plugins(map(str, files), installed=False)


def test_a_registry_is_frozen() -> None:
    """There is no way to register later."""
    registry = benches("gemm")
    with pytest.raises(TypeError):
        registry["other"] = BenchEntry("other", "math:sqrt")  # type: ignore[index]
    assert not hasattr(registry, "register")
    assert repr(registry) == "<Registry of 1 bench entries>"


def test_components_declare_their_parameters() -> None:
    """The component registry is the catalogue that topologies are compiled against."""
    entry = ComponentEntry("acme.base", "kernbench_core.component:ComponentBase", "router", "A base.")
    assert ComponentRegistry("component", [(entry, ACME)]).declared("acme.base") == ()


@pytest.mark.parametrize(
    ("make", "noun"),
    [
        (lambda: ComponentEntry("acme.Sfu", "m:f", "pe_math", "A unit."), "component"),
        (lambda: AlgorithmEntry("acme.Sfu", "m:f", "A ring."), "algorithm"),
        (lambda: NetworkEntry("acme.Sfu", "m:f", "A ring."), "network"),
    ],
)
def test_a_vendor_name_in_upper_case_is_a_sentence(make: Callable[[], object], noun: str) -> None:
    """What is wrong is the case, not the vendor."""
    with pytest.raises(PluginError) as caught:
        make()
    assert str(caught.value) == (
        f"{noun} 'acme.Sfu' must have a name in lower case; call it 'acme.sfu', and write the name of the plug-in's "
        "entry point in lower case too."
    )


class Choosy:
    """Be a model whose parameter `set` chooses among entries, and `rate` follows it."""

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("set", "str", "own", "Where the rate is from.", choices=("own",), entries="rates"),
        Param("rate", "int", 3, "How many.", follows=("set", {"own": 3})),
    )


def choosing(*failures: PluginFailure, **rates: object) -> ComponentRegistry:
    """Return a registry with that model, and with sets of defaults in a module of a test."""
    vars(module := ModuleType("choosy_rates")).update(rates, Choosy=Choosy)
    sys.modules[module.__name__] = module
    entries = [(BenchEntry(f"acme.{name}", f"choosy_rates:{name}"), ACME) for name in (*rates, "absent")]
    found = ComponentRegistry("component", [(ComponentEntry("acme.choosy", "choosy_rates:Choosy", "", "It."), ACME)])
    found.choosable = {"rates": DefaultsRegistry("set of rates", entries, failures)}
    return found


def test_a_parameter_chooses_among_entries_and_others_follow_it() -> None:
    """Each is imported when it is named; what cannot be had is not listed as a default, and fails who names it."""
    fast, bare = SimpleNamespace(defaults={"rate": 9}), SimpleNamespace(defaults={})
    declared = choosing(fast=fast, bare=bare).declared("acme.choosy")
    assert declared[0].choices == ("own", "acme.absent", "acme.bare", "acme.fast")
    assert declared[1].follows is not None
    assert dict(declared[1].follows[1]) == {"own": 3, "acme.fast": 9}
    assert "acme.bare" in declared[1].follows[1]
    for given, rate in (({}, 3), ({"set": "acme.fast"}, 9), ({"set": "acme.fast", "rate": 5}, 5)):
        values, wrong = resolve_params(declared, given, str)
        assert (values["rate"], wrong) == (rate, [])
    with pytest.raises(PluginError) as caught:
        resolve_params(declared, {"set": "acme.bare"}, str)
    assert str(caught.value) == (
        "set of rates 'acme.bare' of acme-models 1.2 must have a default of 'rate', which it lacks; repair or "
        "reinstall acme-models."
    )
    with pytest.raises(PluginError, match=r"^set of rates 'acme\.absent' of acme-models 1\.2 must be importable"):
        resolve_params(declared, {"set": "acme.absent"}, str)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("acme.fst", " Did you mean 'acme.fast'?"),
        ("slow", " It may belong to a plug-in that was left out: 'broken' (broken 3)."),
        ("broken.fast", " set of rates 'broken.fast' belongs to plug-in 'broken' (broken 3), which could not be "
         "loaded: ImportError."),
    ],
)  # fmt: skip
def test_a_name_that_is_no_entry_is_told_with_those_there_are(name: str, hint: str) -> None:
    """And with the plug-in whose it may be."""
    failure = PluginFailure(Provider("broken", "broken", "3"), "ImportError")
    declared = choosing(failure, fast=SimpleNamespace(defaults={"rate": 9})).declared("acme.choosy")
    _, wrong = resolve_params(declared, {"set": name}, str)
    assert wrong == [f"set must be one of 'own', 'acme.absent', 'acme.fast', not {name!r}.{hint}"]
