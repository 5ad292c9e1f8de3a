"""Names are found by what one remembers of them."""

from __future__ import annotations

import pytest

from kernbench_builtin.machines.cli.search import matching, nothing_found

NAMES = (
    "builtin.pe_gemm", "builtin.pe_gemm_systolic", "builtin.io_cpu", "builtin.pe_cpu", "acme.Pe_math", "gemm-sweep",
)  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("builtin.pe_gemm", ["builtin.pe_gemm"]),  # the name itself, though another one begins with it
        ("pe_gemm", ["builtin.pe_gemm"]),
        ("PE-GEMM", ["builtin.pe_gemm"]),
        ("gemm", ["builtin.pe_gemm"]),
        ("systolic", ["builtin.pe_gemm_systolic"]),
        ("cpu", ["builtin.io_cpu", "builtin.pe_cpu"]),
        ("sys", ["builtin.pe_gemm_systolic"]),
        ("pe_m", ["acme.Pe_math"]),
        ("gem", ["builtin.pe_gemm", "builtin.pe_gemm_systolic", "gemm-sweep"]),
        ("sweep", ["gemm-sweep"]),
        ("builtin", ["builtin.io_cpu", "builtin.pe_cpu", "builtin.pe_gemm", "builtin.pe_gemm_systolic"]),
        ("emm_s", ["builtin.pe_gemm_systolic", "gemm-sweep"]),
        ("none", []),
        ("", []),
    ],
)
def test_the_nearest_sort_of_match_is_taken(wanted: str, found: list[str]) -> None:
    """The whole name before its end, its end before a part of it; all that match in that way, sorted."""
    assert list(matching(wanted, NAMES)) == found
    assert list(matching(wanted, reversed(NAMES))) == found


@pytest.mark.parametrize(
    ("wanted", "or_else", "sentence"),
    [
        (
            "gemn", "",
            "component must be a registered name or a part of one, not 'gemn'. Did you mean 'builtin.pe_gemm'?",
        ),
        (
            "xyz", "or a path",
            "component must be a registered name, a part of one, or a path, not 'xyz'. Known: acme.Pe_math, "
            "builtin.io_cpu, builtin.pe_cpu, builtin.pe_gemm, builtin.pe_gemm_systolic, gemm-sweep.",
        ),
        (
            "Sweeep", "",
            "component must be a registered name or a part of one, not 'Sweeep'. Did you mean 'gemm-sweep'?",
        ),
    ],
)  # fmt: skip
def test_what_nothing_matches_is_answered_with_the_nearest_name(wanted: str, or_else: str, sentence: str) -> None:
    """The last words of a name are compared too, so that the vendor need not be typed."""
    assert str(nothing_found("component", wanted, NAMES, or_else)) == sentence
