"""Options that several commands of `kernbench ccl` have."""

from __future__ import annotations

from typing import Final

from kernbench_ccl.cli.completion import dtypes, networks
from kernbench_core.cli.options import Declared
from kernbench_core.runs import MACHINE

DTYPE: Final = Declared(
    "-d",
    "--dtype",
    metavar="DTYPE",
    default="f16",
    shell_complete=dtypes,
    help="f16, bf16, f32, int32 or another dtype.",
)
NETWORK: Final = Declared(
    "--network", metavar="NAME", shell_complete=networks,
    help="ring, mesh_2d, torus_2d, fully_connected, switch or a plug-in's. [default: the topology's]", panel=MACHINE,
)  # fmt: skip
LINK_BW: Final = Declared(
    "--link-bw", metavar="BANDWIDTH", help="Scale-up bandwidth, each way ('100 GB/s').", panel=MACHINE
)
LINK_LATENCY: Final = Declared("--link-latency", metavar="TIME", help="Scale-up latency ('500 ns').", panel=MACHINE)
CONFIG: Final = Declared("--config", metavar="FILE", help="A ccl.yaml, merged over the defaults.")


class OptionSetting(str):
    """A setting `KEY=VALUE` that an option stands for; `place` is what a message about it begins with."""

    place: str

    @classmethod
    def of(cls, option: str, key: str, value: object) -> OptionSetting:
        """Make the setting that an option stands for."""
        made = cls(f"{key}={value}")
        made.place = f"option {option}"
        return made
