"""What `kernbench topology` lists: shapes of networks, and kinds of machine."""

from __future__ import annotations

import json
from types import ModuleType

import pytest

from kernbench_core.cli import main

OURS = "kernbench_builtin (source tree)"


def call(toy: ModuleType, *args: str) -> int:
    return main(args, toy.plugins)


def test_the_shapes_of_the_network_are_listed(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """With a sentence each, and who brings them."""
    assert call(toy, "topology", "networks") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "network", "fully_connected", "mesh_2d", "ring", "switch", "torus_2d",
    ]  # fmt: skip
    assert call(toy, "topology", "networks", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "kernbench.networks/1"
    assert found["networks"][3] == {
        "name": "switch", "sentence": "Each package is linked with one switch.", "provider": OURS,
    }  # fmt: skip


def test_the_kinds_of_machine_are_listed(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """By the section that each owns."""
    assert call(toy, "topology", "machines") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["machine", "mesh", "system"]
    assert call(toy, "topology", "machines", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": "kernbench.machines/1",
        "machines": [
            {"name": "mesh", "sentence": "Routers in rows and columns, to drive synthetic traffic over.",
             "provider": OURS},
            {"name": "system", "sentence": "A host and packages of PEs, which kernels run on.",
             "provider": OURS},
        ],
    }  # fmt: skip


def test_what_models_require_of_their_parameters_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """As a run would, which builds the machine."""
    of_hbm = "components.hbm_ctrl.params.efficiency=1.5"
    assert main(["topology", "validate", "tiny", "--set", of_hbm]) == 3
    assert capsys.readouterr().err == "sip0.cube0.hbm_ctrl0: efficiency must be at most 1, not 1.5; correct it.\n"
    assert main(["topology", "validate", "mesh"]) == 0
