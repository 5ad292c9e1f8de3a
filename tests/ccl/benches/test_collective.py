"""The bench of one collective against the table of `kernbench ccl`, which measures in another way, and numpy."""

from __future__ import annotations

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_ccl.measure import time_collective
from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.units import parse_quantity

CASES = [
    ("all_reduce", "auto", "4 KiB", {}), ("broadcast", "ring", "1000 B", {"root": 1}),
    ("reduce", "direct", "3 KiB", {"root": 2, "redop": "max", "dtype": "f32"}), ("all_to_all", "pairwise", "6 KiB", {}),
    ("gather", "auto", "6 KiB", {"root": 1}), ("send_recv", "auto", "2 KiB", {"dtype": "int32"}),
    ("reduce_scatter", "ring_bidirectional", "12 KiB", {"redop": "avg"}), ("all_gather", "ring", "6 KiB", {}),
    ("scatter", "direct", "6 KiB", {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("collective", "algo", "size", "more"),
    CASES,
)
def test_a_run_is_a_row_of_the_table(
    collective: str, algo: str, size: str, more: dict[str, object], plugins: Plugins
) -> None:
    """Time, bandwidths, algorithm and size out of place; what every rank ends with is right, to the last bit."""
    params = {"collective": collective, "algo": algo, "size": size, **more}
    result = kb.run("collective", "tiny", params, set={"system.sips": 3}, verify_data=True, plugins=plugins)
    nbytes = int(parse_quantity(size, "size"))
    (row,) = time_collective(
        collective, [nbytes], "tiny", algo=algo, ranks=3, plugins=plugins, check=False, **more,  # type: ignore[arg-type]
    )  # fmt: skip
    measured = row.out_of_place
    assert result.verified and not result.hazards
    assert result.rows == (
        {
            "algorithm": row.algorithm, "size_bytes": row.size, "time_ns": measured.time_ns,
            "algbw_gb_per_s": measured.algbw, "busbw_gb_per_s": measured.busbw,
        },
    )  # fmt: skip


def test_what_auto_simulated_is_noted(plugins: Plugins) -> None:
    """On a machine that is in no table; where a table holds nothing is."""
    params = {"collective": "all_to_all", "size": "1 KiB"}
    sets: dict[str, object] = {"system.sips": 3}
    assert kb.run("collective", "default", params, set=sets, plugins=plugins).warnings == ()
    (told,) = kb.run("collective", "tiny", params, set=sets, plugins=plugins).warnings
    assert told.startswith("all_to_all: auto took ccl.")
    assert told.endswith(" for 3 ranks here, by closed forms, checked by 2 short simulations of up to 1 KiB.")


def test_wrong_data_is_found(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ranks bring is changed behind the back of what is expected of them."""
    from kernbench_ccl.benches import collective

    right = collective._right
    monkeypatch.setattr(collective, "_right", lambda *asked: right(*asked) + np.float16(1))
    result = kb.run("collective", "tiny", {"size": "64 B"}, set={"system.sips": 2}, verify_data=True, plugins=plugins)
    assert result.verified is False


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"collective": "al_reduce"}, "parameter 'collective' must be a collective that moves data, not 'al_reduce'. "
         "Did you mean 'all_reduce'?"),
        ({"collective": "barrier"}, "parameter 'collective' must be a collective that moves data, not 'barrier'."),
        ({"size": "3 GB/s"}, "parameter 'size' must be a positive size, not '3 GB/s'. Did you mean '3 B'?"),
        ({"root": 2}, "parameter 'root' must be a rank from 0 to 1, not 2."),
    ],
)  # fmt: skip
def test_what_is_no_collective_is_told(params: dict[str, object], told: str, plugins: Plugins) -> None:
    """In a sentence that names the parameter."""
    with pytest.raises(UsageError) as caught:
        kb.run("collective", "tiny", params, set={"system.sips": 2}, plugins=plugins)
    assert str(caught.value).startswith(told)
