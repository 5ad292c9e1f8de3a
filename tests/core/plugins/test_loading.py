"""Plug-ins are found, guarded, sorted, checked and frozen."""

from __future__ import annotations

import itertools
import sys

import pytest

from kernbench_core.errors import PluginError, UnknownName
from kernbench_core.plugins import Plugins, PluginSource, Provider, load_plugins
from tests.core.offered import MACHINES
from tests.core.plugin_site import Site

COMPONENT = """
from kernbench_core.plugins import ComponentEntry
def kernbench_components():
    return [ComponentEntry({name!r}, "acme.models:Model", "pe_gemm", "A model.")]
"""


#: Declares the sorts of entries of packages that are not here.
POINTS = """
from kernbench_core.plugins import AlgorithmEntry, CollectiveEntry, Point
def kernbench_points():
    return [Point(AlgorithmEntry, "Return algorithms."), Point(CollectiveEntry, "Return collectives.")]
"""


def test_no_plugins_give_empty_registries() -> None:
    """Core alone loads nothing, and says so by empty registries."""
    plugins = load_plugins(installed=False)
    assert [len(registry) for registry in (plugins.components, plugins.benches, plugins.topologies)] == [0, 0, 0]
    assert plugins.providers == ()
    assert plugins.failures == ()


def test_an_installed_distribution_is_found_with_its_version(site: Site) -> None:
    """An entry point of group kernbench is loaded; its entries know distribution and version."""
    site.distribution("acme", "1.2", "acme", COMPONENT.format(name="acme.sfu"))
    plugins = load_plugins()
    assert plugins.components["acme.sfu"].kind == "pe_gemm"
    assert plugins.components.provider("acme.sfu") == Provider("acme", "acme", "1.2")


def test_a_failing_import_is_left_out_in_one_line(site: Site) -> None:
    """A plug-in that fails to import is a one-line warning naming distribution and version."""
    site.distribution("broken", "0.3", "broken", "raise ImportError('no libfoo\\nand more')")
    plugins = load_plugins()
    assert [str(failure) for failure in plugins.failures if failure.provider.plugin == "broken"] == [
        "plug-in 'broken' (broken 0.3) is left out: ImportError: no libfoo (broken_plugin.py:2)"
    ]


def test_an_error_without_words_leaves_its_plugin_out_too(site: Site) -> None:
    """What a plug-in raises may itself raise when it is asked what it says."""
    site.distribution("broken", "0.3", "broken", "raise type('Own', (BaseException,), {'__str__': exit})")
    told = [str(failure) for failure in load_plugins().failures if failure.provider.plugin == "broken"]
    assert told == ["plug-in 'broken' (broken 0.3) is left out: Own: <exception str() failed> (broken_plugin.py:2)"]


def test_a_hook_that_raises_is_left_out_too(site: Site) -> None:
    """A plug-in whose hook raises gives nothing, not half of its entries."""
    source = COMPONENT.format(name="half.sfu") + "\ndef kernbench_benches():\n    raise ValueError('bad')\n"
    plugins = load_plugins([f"half = {site.module('half_plugin', source)}"], installed=False)
    assert [str(failure) for failure in plugins.failures] == [
        "plug-in 'half' (half_plugin (source tree)) is left out: ValueError: bad (half_plugin.py:8)"
    ]
    assert "half.sfu" not in plugins.components


@pytest.mark.parametrize(
    ("returned", "shown"),
    [("None", "None"), ("5", "5"), ("BenchEntry('g', 'm:f')", "BenchEntry(name='g', target='m:f')")],
)
def test_a_hook_that_returns_no_list_is_left_out_too(site: Site, returned: str, shown: str) -> None:
    """A forgotten return among them: the plug-in would seem to be there, and be empty."""
    source = f"from kernbench_core.plugins import BenchEntry\ndef kernbench_benches():\n    return {returned}"
    plugins = load_plugins([f"bad = {site.module('bad_plugin', source)}"], installed=False)
    assert [str(failure) for failure in plugins.failures] == [
        "plug-in 'bad' (bad_plugin (source tree)) is left out: kernbench_benches must return a list of BenchEntry "
        f"objects, not {shown}"
    ]


@pytest.mark.parametrize(
    ("hook", "shown"),
    [
        ("kernbench_ops = 3", "3"),
        ("kernbench_ops = None", "None"),
        ("class kernbench_ops:\n    'A class.'", "<class 'bad_plugin.kernbench_ops'>"),
        ("import functools\nkernbench_ops = functools.partial(list)", "functools.partial(<class 'list'>)"),
        ("def kernbench_ops(plugins):\n    return []", "kernbench_ops(plugins)"),
        ("def kernbench_ops(*, plugins):\n    return []", "kernbench_ops(*, plugins)"),
    ],
)
def test_a_hook_that_cannot_be_called_without_arguments_leaves_its_plugin_out(
    site: Site, hook: str, shown: str
) -> None:
    """One sentence that says whose it is, which, and what it must be; nothing of it is passed over."""
    source = f"{COMPONENT.format(name='bad.sfu')}\n{hook}\n"
    plugins = load_plugins([f"bad = {site.module('bad_plugin', source)}"], installed=False)
    assert [str(failure) for failure in plugins.failures] == [
        "plug-in 'bad' (bad_plugin (source tree)) is left out: kernbench_ops must be a function without arguments that "
        f"returns a list of OpEntry objects, not {shown}"
    ]
    assert "bad.sfu" not in plugins.components


@pytest.mark.parametrize("signature", ["", "name='x'", "*rest", "**more"])
def test_a_hook_may_have_arguments_that_need_not_be_given(site: Site, signature: str) -> None:
    """It is called without any."""
    source = f"def kernbench_ops({signature}):\n    return []\n"
    assert load_plugins([f"good = {site.module('good_plugin', source)}"], installed=False).failures == ()


def test_a_module_that_changes_is_looked_through_again(site: Site) -> None:
    """Between two loads of one process: another function, another answer of the same one, and what is no function."""
    source = f"{COMPONENT.format(name='acme.sfu')}\nNAMES = ['acme.one']\n"
    extra = [f"acme = {site.module('acme_plugin', source)}"]
    assert list(load_plugins(extra, installed=False).components) == ["acme.sfu"]
    module = sys.modules["acme_plugin"]
    entries = "[ComponentEntry(name, 'acme:M', 'pe_gemm', 'A model.') for name in NAMES]"
    exec(f"def kernbench_components():\n    return {entries}", vars(module))
    assert list(load_plugins(extra, installed=False).components) == ["acme.one"]
    vars(module)["NAMES"].append("acme.two")
    assert list(load_plugins(extra, installed=False).components) == ["acme.one", "acme.two"]
    vars(module)["kernbench_ops"] = 3
    (failure,) = load_plugins(extra, installed=False).failures
    assert str(failure).endswith("that returns a list of OpEntry objects, not 3")


def test_naming_something_of_a_failed_plugin_is_an_error(site: Site) -> None:
    """The configuration may not name what a left-out plug-in would have given."""
    site.distribution("broken", "0.3", "broken", "raise ImportError('no libfoo')")
    with pytest.raises(PluginError) as caught:
        load_plugins().components.load("broken.sfu")
    assert str(caught.value) == (
        "component 'broken.sfu' belongs to plug-in 'broken' (broken 0.3), which could not be loaded: "
        "ImportError: no libfoo (broken_plugin.py:2)"
    )


def test_duplicate_names_name_both_distributions(site: Site) -> None:
    """Two plug-ins that register one name are a warning, and an error where it is used; each has its vendor's name."""
    source = (
        "from kernbench_core.plugins import BenchEntry\ndef kernbench_benches():\n    return [BenchEntry('g', 'm:f')]"
    )
    site.distribution("one", "1.0", "one", source)
    site.distribution("two", "2.0", "two", source)
    plugins = load_plugins()
    told = (
        "bench 'g' is left out: it must be registered once, not by one 1.0 and by two 2.0; uninstall all but one, or "
        "write 'one:g' or 'two:g'"
    )
    assert [str(failure) for failure in plugins.failures if failure.entry] == [told]
    assert "g" in plugins.benches
    for use in (plugins.benches.load, plugins.benches.provider, plugins.benches.__getitem__):
        with pytest.raises(PluginError) as caught:
            use("g")
        assert str(caught.value) == f"{told}."
    assert [(name, str(plugins.benches.provider(name))) for name in plugins.benches if name.endswith("g")] == [
        ("one:g", "one 1.0"), ("two:g", "two 2.0"),
    ]  # fmt: skip


def test_a_misspelt_hook_leaves_its_plugin_out(site: Site) -> None:
    """A function that looks like a hook and is none is told with a suggestion."""
    module = site.module("typo_plugin", "def kernbench_componets():\n    return []\n")
    assert [str(failure) for failure in load_plugins([f"typo = {module}"], installed=False).failures] == [
        "plug-in 'typo' (typo_plugin (source tree)) is left out: its hooks must be among kernbench_components, "
        "kernbench_benches, kernbench_programs, kernbench_topologies, kernbench_networks, kernbench_machines, "
        "kernbench_ops, kernbench_language, kernbench_backends, kernbench_commands, kernbench_run_parts, "
        "kernbench_pictures, kernbench_diagnoses, kernbench_points, not "
        "'kernbench_componets'; perhaps 'kernbench_components' is meant"
    ]


def test_a_decorated_hook_that_does_not_exist_leaves_its_plugin_out(site: Site) -> None:
    """`check_pending` catches hooks that were marked with pluggy's decorator under another name."""
    source = "import pluggy\n@pluggy.HookimplMarker('kernbench')\ndef components():\n    return []\n"
    plugins = load_plugins([f"marked = {site.module('marked_plugin', source)}"], installed=False)
    (failure,) = plugins.failures
    assert str(failure).startswith(
        "plug-in 'marked' (marked_plugin (source tree)) is left out: unknown hook 'components' in plugin"
    )


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ("", "must be 1, and is missing; write 'kernbench_api = 1' into it"),
        ("kernbench_api = 2", "must be 1, which kernbench 0.1.0 has, not 2; use a newer kernbench"),
        ("kernbench_api = 0", "must be 1, and is 0; write 'kernbench_api = 1' into it"),
        ("kernbench_api = True", "must be 1, and is True; write 'kernbench_api = 1' into it"),
        ("kernbench_api = '1'", "must be 1, and is '1'; write 'kernbench_api = 1' into it"),
    ],
)
def test_a_plugin_for_other_hooks_is_left_out(site: Site, written: str, what: str) -> None:
    """Without asking any of its hooks: what they return may mean something else."""
    source = f"{written}\ndef kernbench_benches():\n    raise ValueError('was asked')\n"
    (site.folder / "other_plugin.py").write_text(source)
    plugins = load_plugins(["other = other_plugin"], installed=False)
    assert [str(failure) for failure in plugins.failures] == [
        "plug-in 'other' (other_plugin (source tree)) is left out: kernbench_api of module 'other_plugin', the version "
        f"of the hooks that it is written for, {what}"
    ]


def test_components_carry_the_vendor(site: Site) -> None:
    """A component is named vendor.thing, the vendor being the entry point's name."""
    module = site.module("rogue_plugin", COMPONENT.format(name="acme.sfu"))
    plugins = load_plugins([f"rogue = {module}"], installed=False)
    told = (
        "component 'acme.sfu' is left out: plug-in 'rogue' (rogue_plugin (source tree)) must name its components "
        "'rogue.<thing>', not 'acme.sfu'; rename the component or the entry point"
    )
    assert ([str(failure) for failure in plugins.failures], list(plugins.components)) == ([told], [])
    with pytest.raises(PluginError) as caught:
        plugins.components.load("acme.sfu")
    assert str(caught.value) == f"{told}."


def test_a_shape_of_the_network_carries_the_vendor(site: Site) -> None:
    """It stands beside those of kernbench, whose bare names nobody else may take."""
    source = (
        "from kernbench_core.plugins import NetworkEntry\n"
        "def kernbench_networks():\n    return [NetworkEntry({name!r}, 'acme.nets:CUBE', 'A cube.')]\n"
    )
    cube = site.module("cube_plugin", source.format(name="acme.cube"))
    ring = site.module("ring_plugin", source.format(name="ring"))
    plugins = load_plugins([f"acme = {cube}", MACHINES], installed=False)
    assert str(plugins.networks.provider("acme.cube")) == "cube_plugin (source tree)"
    assert len(plugins.networks) == 6
    plugins = load_plugins([f"acme = {ring}", MACHINES], installed=False)
    assert [str(failure) for failure in plugins.failures] == [
        "network 'ring' is left out: plug-in 'acme' (ring_plugin (source tree)) must name its networks 'acme.<thing>', "
        "not 'ring'; rename the network or the entry point"
    ]
    assert str(plugins.networks.provider("ring")) == "kernbench_builtin (source tree)"


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("BenchEntry('g', 'm.f')", "must write the target of bench 'g' as 'module:attr', not 'm.f'."),
        ("BenchEntry('G g', 'm:f')", "must name its benches in lower-case letters, digits, '-' and '_', not 'G g'."),
    ],
)
def test_a_bad_entry_is_a_sentence(site: Site, returned: str, sentence: str) -> None:
    """What a hook returns is checked when it is collected."""
    source = f"from kernbench_core.plugins import BenchEntry\ndef kernbench_benches():\n    return [{returned}]\n"
    plugins = load_plugins([f"bad = {site.module('bad_plugin', source)}"], installed=False)
    name = "G g" if "G g" in returned else "g"
    assert [f"{failure}." for failure in plugins.failures] == [
        f"bench {name!r} is left out: plug-in 'bad' (bad_plugin (source tree)) {sentence}"
    ]
    assert not list(plugins.benches)


@pytest.mark.parametrize("returned", ["['gemm']", "'gemm'", "iter(['gemm'])"])
def test_what_is_no_entry_leaves_its_plugin_out(site: Site, returned: str) -> None:
    """As a hook that raises does: everything else goes on."""
    source = COMPONENT.format(name="bad.sfu") + f"\ndef kernbench_benches():\n    return {returned}\n"
    plugins = load_plugins([f"bad = {site.module('bad_plugin', source)}"], installed=False)
    told = "gemm" if returned != "'gemm'" else "g"
    assert [str(failure) for failure in plugins.failures] == [
        "plug-in 'bad' (bad_plugin (source tree)) is left out: kernbench_benches must return BenchEntry objects, not "
        f"{told!r}"
    ]
    assert list(plugins.components) == []


def test_the_order_of_loading_changes_nothing(site: Site) -> None:
    """Any order of the same plug-ins gives the same registries."""
    given = [f"{n} = {site.module(f'{n}_plugin', COMPONENT.format(name=f'{n}.sfu'))}" for n in ("a", "b", "c")]

    def seen(plugins: Plugins) -> object:
        return plugins.providers, [(name, entry, plugins.components.provider(name)) for name, entry in
                                   plugins.components.items()]  # fmt: skip

    results = [seen(load_plugins(order, installed=False)) for order in itertools.permutations(given)]
    assert all(result == results[0] for result in results)


def test_an_extra_plugin_that_is_installed_counts_once(site: Site) -> None:
    """Giving an installed plug-in again is not a duplicate."""
    site.distribution("acme", "1.2", "acme", COMPONENT.format(name="acme.sfu"))
    plugins = load_plugins(["acme = acme_plugin", PluginSource("other", "acme", "acme_plugin")])
    assert str(plugins.components.provider("acme.sfu")) == "acme 1.2"


def test_loading_imports_no_target(site: Site) -> None:
    """Filling the registries imports plug-in modules only, never what their entries point at."""
    site.module("models", "raise AssertionError('imported')")
    source = COMPONENT.format(name="lazy.sfu").replace("acme.models:Model", "models:Model")
    plugins = load_plugins([f"lazy = {site.module('lazy_plugin', source)}"], installed=False)
    assert "models" not in sys.modules
    with pytest.raises(PluginError) as caught:
        plugins.components.load("lazy.sfu")
    assert str(caught.value) == (
        "component 'lazy.sfu' of lazy_plugin (source tree) must be importable from 'models:Model', but that raised "
        "AssertionError: imported; repair or reinstall lazy_plugin (source tree)."
    )


def test_a_malformed_extra_is_a_sentence() -> None:
    """An extra plug-in is written as in a pyproject."""
    with pytest.raises(PluginError) as caught:
        load_plugins(["acme.plugin"], installed=False)
    assert str(caught.value) == (
        "an extra plug-in must be written 'name = package.module', or be the path of a .py file, not 'acme.plugin'."
    )


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("AlgorithmEntry('ring2', 'm:kernel', 'No vendor.')",
         "algorithm 'ring2' is left out: plug-in 'acme' (acme_plugin (source tree)) must name its algorithms "
         "'acme.<thing>', not 'ring2'; rename the algorithm or the entry point"),
        ("AlgorithmEntry('acme.ring2', 'm', 'No module.')",
         "algorithm 'acme.ring2' is left out: plug-in 'acme' (acme_plugin (source tree)) must write the target of "
         "algorithm 'acme.ring2' as 'module:attr', not 'm'"),
    ],
)  # fmt: skip
def test_an_algorithm_with_a_wrong_entry_is_left_out_alone(site: Site, entry: str, told: str) -> None:
    """The others of its plug-in are there, and naming it says what is registered."""
    source = (
        f"{POINTS}"
        "def kernbench_algorithms():\n"
        f"    return [{entry}, AlgorithmEntry('acme.line_all_reduce', 'm:kernel', 'Up and down.')]\n"
    )
    plugins = load_plugins([f"acme = {site.module('acme_plugin', source)}"], installed=False)
    assert [str(failure) for failure in plugins.failures] == [told]
    algorithms = plugins.registries["algorithms"]
    assert list(algorithms) == ["acme.line_all_reduce"]
    with pytest.raises(UnknownName) as caught:
        algorithms.load("acme.lin_all_reduce")
    assert str(caught.value) == (
        "algorithm must be a registered name, not 'acme.lin_all_reduce'. Did you mean 'acme.line_all_reduce'?"
    )


def test_an_entry_that_cannot_be_made_leaves_its_plugin_out(site: Site) -> None:
    """As any hook that raises does: the sentence is that of the entry."""
    source = (
        f"{POINTS}"
        "def kernbench_algorithms():\n    return [AlgorithmEntry('acme.Line', 'm:kernel', 'Up and down.')]\n"
    )
    plugins = load_plugins([f"acme = {site.module('acme_plugin', source)}"], installed=False)
    assert [str(failure) for failure in plugins.failures] == [
        "plug-in 'acme' (acme_plugin (source tree)) is left out: algorithm 'acme.Line' must have a name in lower case; "
        "call it 'acme.line', and write the name of the plug-in's entry point in lower case too"
    ]


COLLECTIVE = """
from kernbench_core.plugins import CollectiveEntry
def kernbench_collectives():
    return [CollectiveEntry({name!r}, "acme.collectives:RECORD", "Everybody swaps.")]
"""


def test_a_collective_is_registered_by_its_bare_name(site: Site) -> None:
    """Its record is not imported for that; of two with one name either is called by its vendor."""
    site.distribution("owner", "1.0", "owner", POINTS)
    site.distribution("acme", "1.0", "acme", COLLECTIVE.format(name="swap"))
    found = load_plugins(installed=True).registries["collectives"]
    assert (found["swap"].target, found["swap"].sentence) == ("acme.collectives:RECORD", "Everybody swaps.")
    assert str(found.provider("swap")) == "acme 1.0" and "acme.collectives" not in sys.modules
    site.distribution("other", "2.0", "other", COLLECTIVE.format(name="swap"))
    plugins = load_plugins(installed=True)
    assert [str(failure) for failure in plugins.failures if failure.entry] == [
        "collective 'swap' is left out: it must be registered once, not by acme 1.0 and by other 2.0; uninstall all "
        "but one, or write 'acme:swap' or 'other:swap'"
    ]
    assert "swap" not in list(plugins.registries["collectives"])


def test_a_collective_with_a_vendor_in_its_name_is_refused(site: Site) -> None:
    """Names of algorithms end with it."""
    module = site.module("dotted_plugin", POINTS + COLLECTIVE.format(name="acme.swap"))
    plugins = load_plugins([f"acme = {module}"], installed=False)
    assert [str(failure) for failure in plugins.failures] == [
        "collective 'acme.swap' is left out: plug-in 'acme' (dotted_plugin (source tree)) must name its collectives in "
        "lower-case letters, digits, '-' and '_', not 'acme.swap'"
    ]
