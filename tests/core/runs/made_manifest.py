"""A manifest as a run could have left it, for tests of who writes and who reads it."""

from __future__ import annotations

from kernbench_core.runs.manifest import Manifest, kept_options
from kernbench_core.runs.options import RunOptions

MANIFEST = Manifest(
    bench={"name": "gemm"},
    params={"M": 64},
    topology="tiny",
    configuration={"sips": 1, "cube": {"pes": 4}},
    options=kept_options(RunOptions(seed=3, data=False, race_by="program", max_sim_ns=2000.0)),
    versions={"python": "3.11.0", "kernbench": "0.1.0"},
    plugins=({"plugin": "acme", "distribution": "acme-models", "version": "1.2"},),
    changes={"components": "c.yaml", "set": ["sips=1"]},
    op_log_sha256="aa",
)
