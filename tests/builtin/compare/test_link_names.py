"""Folded names stand for just the names that were given, and for few where a machine repeats itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.compare.figures import RunFigures
from kernbench_builtin.compare.link_names import folded, unfolded
from kernbench_core.errors import UsageError
from tests.builtin.compare.runs_by_hand import links, run

NODES = st.builds(".".join, st.lists(st.from_regex(r"(sip|cube|pe|r)[0-9]{1,2}(c[0-9])?", fullmatch=True), max_size=3,
                                     min_size=1))  # fmt: skip
WIRES = st.builds("{}->{}".format, NODES, NODES)
ODD = st.text("ab01[]-()=#.>\0", max_size=9)


@given(st.lists(st.one_of(WIRES, NODES, ODD), max_size=8))
def test_any_names_come_back(names: list[str]) -> None:
    """Each once, whatever is in them; and the same texts for the same names in another order."""
    texts = folded(names)
    assert sorted(unfolded(texts)) == sorted(set(names))
    assert folded(reversed(names)) == texts
    assert len(texts) <= len(set(names))


def test_a_regular_machine_folds_to_few_texts() -> None:
    """What is the same in every place stands once, with the numbers of the places; gaps stay gaps."""
    names = [
        f"sip{sip}.cube{cube}.pe{pe}.pe_dma->sip{sip}.cube{cube}.pe{pe}.pe_tcm"
        for sip in range(2) for cube in range(4) for pe in range(12) if pe != 5
    ]  # fmt: skip
    names += [f"sip0.cube{cube}.hbm_ctrl{at}#pc{pc}" for cube in range(2) for at in range(8) for pc in range(4)]
    assert folded([*names, "host->sip0.io0.pcie_ep", "sip0.pe07"]) == [
        "=sip0.pe07",
        "host->sip0.io0.pcie_ep",
        "sip0.cube[0-1].hbm_ctrl[0-7]#pc[0-3]",
        "sip[0-1].cube[0-3].pe[0-4].(pe_dma->pe_tcm)",
        "sip[0-1].cube[0-3].pe[6-11].(pe_dma->pe_tcm)",
    ]


def test_a_text_for_too_many_links_is_refused() -> None:
    """Before they fill the memory."""
    found = run(tables={"link": links(a_b=(1.0, 2.0, 3, 4, 5.0, 6.0))}).to_json()
    row = found["tables"]["link"]["rows"].pop("a->b")
    found["tables"]["link"]["rows"]["a[0-99999999].b[0-99999999]"] = row
    with pytest.raises(UsageError, match=re.escape("g.json must hold the links of a machine, not more than 4,194,304 "
                                                   "links; make it again.")):  # fmt: skip
        RunFigures.from_json(found, "g.json")
