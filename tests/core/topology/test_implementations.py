"""Another implementation keeps the parameters that it declares; the others are dropped, and named."""

from __future__ import annotations

import pytest

from kernbench_core.errors import ConfigError
from kernbench_core.graph import Graph
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.configuration import Config
from kernbench_core.topology.implementations import settle
from tests.core.offered import offered
from tests.core.small_machine import TEXT, Catalogue
from tests.core.topology.text_config import parse_config

GIVEN = TEXT.replace(
    "  pe_gemm: {impl: test.pe_gemm}\n", "  pe_gemm: {impl: test.array, params: {rows: 3, columns: 5}}\n"
).replace("  pe_math: {impl: test.pe_math}\n", "  pe_math: {impl: test.pe_math, params: {servers: 4}}\n")
LINE = GIVEN.splitlines().index("  pe_gemm: {impl: test.array, params: {rows: 3, columns: 5}}") + 1
ROWS, COLUMNS = f"m.yaml:{LINE}:40", f"m.yaml:{LINE}:49"
MATH = f"m.yaml:{LINE + 1}:42"


def config(*sets: str) -> Config:
    return parse_config(GIVEN, "m.yaml", sets=sets)


def compiled(*sets: str) -> Graph:
    return compile_topology(config(*sets), offered(Catalogue()))


def params(graph: Graph, node: str) -> tuple[str, dict[str, object]]:
    found = graph.nodes[f"sip0.cube0.{node}"]
    return found.impl, dict(found.params)


def test_parameters_that_the_new_class_lacks_are_dropped_and_named() -> None:
    """One warning for each kind, with the place of each parameter; the defaults of the new class hold."""
    graph = compiled("components.pe_gemm.impl=test.pe_gemm")
    assert params(graph, "pe0.pe_gemm") == ("test.pe_gemm", {"overhead": 5, "servers": 1})
    assert graph.warnings == (
        f"components.pe_gemm: test.pe_gemm has no parameter 'rows' that {ROWS} gave and no 'columns' that {COLUMNS} "
        "gave; they are dropped.",
    )
    one = compiled("components.pe_math.impl=test.sfu")
    assert one.warnings == (
        f"components.pe_math: test.sfu has no parameter 'servers' that {MATH} gave; it is dropped.",
    )


def test_parameters_that_the_new_class_declares_are_kept() -> None:
    """Unless a layer above gives them itself; nothing is told of them. Through two changes, too."""
    back = compiled("components.pe_gemm.impl=test.pe_gemm", "components.pe_gemm.impl=test.array")
    assert (params(back, "pe0.pe_gemm"), back.warnings) == (("test.array", {"rows": 3, "columns": 5}), ())
    other = compiled("components.pe_gemm={impl: test.sfu, params: {lanes: 2}}", "components.pe_gemm.impl=test.array",
                     "components.pe_gemm.params.rows=7")  # fmt: skip
    assert params(other, "pe0.pe_gemm") == ("test.array", {"rows": 7, "columns": 5})
    assert other.warnings == (
        "components.pe_gemm: test.array has no parameter 'lanes' that --set components.pe_gemm={impl: test.sfu, "
        "params: {lanes: 2}} gave; it is dropped.",
    )


def test_many_are_named_without_the_place_of_each() -> None:
    """That of the first is told, so that the file and the section are known."""
    text = GIVEN.replace("{servers: 4}", "{servers: 4, overhead: 1 ns, queue: 3}")
    other = parse_config(text, "m.yaml", sets=("components.pe_math.impl=test.sfu",))
    graph = compile_topology(other, offered(Catalogue()))
    assert graph.warnings == (
        "components.pe_math: test.sfu has none of the parameters 'servers', 'overhead' and 'queue' that were given "
        f"(the first at {MATH}); they are dropped.",
    )


@pytest.mark.parametrize(
    "sets",
    [
        ("components.pe_gemm={impl: test.pe_gemm, params: {}}",),
        ("components.pe_gemm.impl=test.pe_gemm", "components.pe_gemm.params={}"),
    ],
)
def test_an_empty_mapping_says_that_they_are_to_go(sets: tuple[str, ...]) -> None:
    """Then nothing is told, and what they were is forgotten."""
    assert compiled(*sets).warnings == ()
    back = compiled(*sets, "components.pe_gemm={impl: test.array, params: {rows: 9}}")
    assert params(back, "pe0.pe_gemm") == ("test.array", {"rows": 9, "columns": 16})
    again = compiled("components.pe_gemm.params={}")
    assert params(again, "pe0.pe_gemm") == ("test.array", {"rows": 3, "columns": 5})


@pytest.mark.parametrize(
    "written",
    [
        "components.pe_gemm={impl: test.sfu, params: {lanes: 2}}",
        "overrides=[{match: '*.pe0.pe_gemm', impl: test.sfu, params: {lanes: 2}}]",
    ],
)
def test_of_who_gives_parameters_of_the_new_class_nothing_is_told(written: str) -> None:
    """What the new class lacks is dropped all the same."""
    graph = compiled(written)
    assert params(graph, "pe0.pe_gemm") == ("test.sfu", {"lanes": 2})
    assert graph.warnings == settle(config(written), Catalogue()).warnings == ()


def test_a_later_layer_that_only_names_another_class_is_told_all() -> None:
    """Also of what the layer before it dropped in silence."""
    first = "components.pe_gemm={impl: test.sfu, params: {lanes: 2}}"
    graph = compiled(first, "components.pe_gemm.impl=test.pe_gemm")
    assert params(graph, "pe0.pe_gemm") == ("test.pe_gemm", {"overhead": 5, "servers": 1})
    assert graph.warnings == (
        "components.pe_gemm: test.pe_gemm has none of the parameters 'rows', 'columns' and 'lanes' that were given "
        f"(the first at {ROWS}); they are dropped.",
    )


def test_what_is_given_for_the_new_class_must_be_declared() -> None:
    """By the layer that names it, or one above: an error as ever, not a warning."""
    for sets in (
        ("components.pe_gemm={impl: test.sfu, params: {rows: 1}}",),
        ("components.pe_gemm.impl=test.sfu", "components.pe_gemm.params.rows=1"),
    ):
        with pytest.raises(ConfigError) as caught:
            compiled(*sets)
        assert caught.value.problems == (
            f"--set {sets[-1]}: components.pe_gemm.params.rows must be a declared parameter. Known: lanes.",
        )


def test_an_override_keeps_and_drops_likewise() -> None:
    """The parameters of the kind, and of the overrides below, are kept where its class declares them.

    Where the override has parameters for its class, nothing is told of those that are not.
    """
    overrides = (
        "overrides=[{match: '*.pe1.pe_gemm', impl: test.pe_gemm, params: {servers: 2}}, "
        "{match: '*.cube0.pe1.pe_gemm', impl: test.array}]"
    )
    graph = compiled(overrides)
    assert params(graph, "pe0.pe_gemm") == ("test.array", {"rows": 3, "columns": 5})
    assert params(graph, "pe1.pe_gemm") == ("test.array", {"rows": 3, "columns": 5})
    assert dict(graph.nodes["sip0.cube1.pe1.pe_gemm"].params) == {"overhead": 5, "servers": 2}
    assert graph.warnings == (
        f"overrides.1: test.array has no parameter 'servers' that --set {overrides} gave; it is dropped.",
    )
    plain = "overrides=[{match: '*.pe1.pe_gemm', impl: test.pe_gemm}]"
    assert compiled(plain).warnings == (
        f"overrides.0: test.pe_gemm has no parameter 'rows' that {ROWS} gave and no 'columns' that {COLUMNS} gave; "
        "they are dropped.",
    )


def test_a_settled_configuration_holds_what_is_used() -> None:
    """So a manifest, which keeps no places, can be run again; the warning stays with it, and is told once."""
    found = settle(config("components.pe_gemm.impl=test.pe_gemm"), Catalogue())
    assert found.data["components"]["pe_gemm"] == {"impl": "test.pe_gemm", "params": {}}
    assert found.data["components"]["pe_math"] == {"impl": "test.pe_math", "params": {"servers": 4}}
    graph, again = (compile_topology(each, offered(Catalogue())) for each in (found, dict(found.data)))
    assert [graph.nodes[n].params for n in sorted(graph.nodes)] == [again.nodes[n].params for n in sorted(again.nodes)]
    assert graph.warnings == compiled("components.pe_gemm.impl=test.pe_gemm").warnings == found.warnings
    assert again.warnings == ()


@pytest.mark.parametrize("wrong", ["impl=0.5", "impl=[a]", "impl.deeper=1", "impl=null"])
def test_an_implementation_that_is_no_text_is_left_to_the_compiler(wrong: str) -> None:
    """It is no name that could be looked up; the parameters stay as they are."""
    written = config(f"components.pe_gemm.{wrong}")
    assert settle(written, Catalogue()).data == written.data
    with pytest.raises(ConfigError) as caught:
        compiled(f"components.pe_gemm.{wrong}")
    assert "components.pe_gemm.impl must be text, not " in caught.value.problems[0]


def test_an_unknown_implementation_is_left_to_the_compiler() -> None:
    """Settling says nothing of it, and drops nothing."""
    found = settle(config("components.pe_gemm.impl=test.nothing"), Catalogue())
    assert found.data["components"]["pe_gemm"] == {"impl": "test.nothing", "params": {"rows": 3, "columns": 5}}
    with pytest.raises(ConfigError, match=r"components\.pe_gemm\.impl must be a registered component"):
        compile_topology(found, offered(Catalogue()))


@pytest.mark.parametrize(
    ("setting", "place", "hint"),
    [
        ("components.pe_gemm.impl=test.pe_mat", "components.pe_gemm.impl", " Did you mean 'test.pe_gemm'?"),
        ("components.pe_math.impl=test.pe_mat", "components.pe_math.impl", " Did you mean 'test.pe_math'?"),
        ("components.pe_math.impl=test.arry", "components.pe_math.impl", " Did you mean 'test.array'?"),
        ("components.pe_math.impl=test.hbm_ctr", "components.pe_math.impl", " See 'kernbench components'; "
         "--plugin FILE.py, or a package that is installed, adds more."),
        ("overrides=[{match: 'sip0.cube*.pe0.pe_gemm', impl: test.pe_mat}]", "overrides.0.impl",
         " Did you mean 'test.pe_gemm'?"),
        ("overrides=[{match: 'sip0.*.hbm_ctrl0', impl: test.hbm_ct}]", "overrides.0.impl",
         " Did you mean 'test.hbm_ctrl'?"),
        ("overrides=[{match: 'sip0.*', impl: test.pe_mat}]", "overrides.0.impl", " Did you mean 'test.pe_math'?"),
    ],
)  # fmt: skip
def test_what_is_suggested_fits_the_node(setting: str, place: str, hint: str) -> None:
    """The closest name of all may be of a model that would be refused next; a model for any kind fits."""
    with pytest.raises(ConfigError) as caught:
        compiled(setting)
    impl = setting.rpartition("test.")[2].rstrip("}]")
    assert caught.value.problems[0].endswith(f"{place} must be a registered component, not 'test.{impl}'.{hint}")
