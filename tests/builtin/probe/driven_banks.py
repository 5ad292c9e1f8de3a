"""The probe of memory on the model with banks, for tests of its closed forms and of its bounds."""

from __future__ import annotations

from kernbench_builtin.probe.dram_driver import DramProbe
from kernbench_core.graph import Node
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins

BANK = "builtin.hbm_ctrl_bank"
CLOCK = 0.625


def driven(plugins: Plugins, **params: object) -> DramProbe:
    given = {"channels": 2, "refresh": "none", **params}
    values, problems = resolve_params(plugins.components.declared(BANK), given, str)
    assert problems == []
    return DramProbe(Node("hbm_ctrl0", "hbm_ctrl", BANK, values), plugins.components)
