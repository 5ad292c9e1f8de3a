"""The shapes of networks that come with kernbench, by name."""

from __future__ import annotations

from kernbench_core.topology import open_shape
from tests.core.offered import OFFERED

NETWORKS = {name: open_shape(OFFERED.networks, name) for name in OFFERED.networks}
