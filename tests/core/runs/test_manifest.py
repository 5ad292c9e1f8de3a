"""A manifest is plain JSON that names inputs by hash and nothing by absolute path."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from kernbench_core.host.bench import Bench
from kernbench_core.host.sources import read_sources
from kernbench_core.runs.manifest import (
    array_files,
    array_sha256,
    current_versions,
    describe_bench,
    describe_params,
)
from tests.core.runs.made_manifest import MANIFEST


def test_the_configuration_hash_ignores_the_order_of_keys() -> None:
    """Equal configurations have equal hashes, and others not."""
    turned = attrs.evolve(MANIFEST, configuration={"cube": {"pes": 4}, "sips": 1})
    other = attrs.evolve(MANIFEST, configuration={"cube": {"pes": 8}, "sips": 1})
    text = b'{"cube":{"pes":4},"sips":1}'
    assert turned.configuration_sha256 == MANIFEST.configuration_sha256 == hashlib.sha256(text).hexdigest()
    assert other.configuration_sha256 != MANIFEST.configuration_sha256


def test_arrays_are_named_by_the_hash_of_their_file(tmp_path: Path) -> None:
    """The hash is that of the .npy file; absolute paths are not recorded."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = tmp_path / "a.npy"
    np.save(path, array)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert array_sha256(array) == digest
    for given, copied, file in [
        ({"a": str(path)}, False, {"file": "a.npy"}),
        ({"a": "in/a.npy"}, False, {"file": "in/a.npy"}),
        ({"a": array}, False, {"file": "params/a.npy"}),
        ({"a": str(path)}, True, {"file": "params/a.npy", "given": "a.npy"}),
        ({"a": "in/a.npy"}, True, {"file": "params/a.npy", "given": "in/a.npy"}),
        ({"a": array}, True, {"file": "params/a.npy"}),
    ]:
        described = describe_params({"a": array, "n": 3}, given, copied=copied)
        assert described == {"a": {**file, "sha256": digest, "shape": [2, 3]}, "n": 3}
    assert list(array_files({"a": array, "n": 3})) == ["params/a.npy"]


def test_benches_are_named_by_name_file_or_function(tmp_path: Path) -> None:
    """A file is named by its hash, with the modules beside it, and without its folder when it is absolute."""

    def fn(rt: Any) -> None: ...

    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    digest = hashlib.sha256(b"x = 1\n").hexdigest()
    assert describe_bench(Bench("gemm", fn, "", (), None, True), copied=True) == {"name": "gemm"}
    mine = Bench("mine", fn, "", (), read_sources(path))
    assert describe_bench(mine, copied=False) == {"file": "mine.py", "sha256": digest}
    assert describe_bench(mine, copied=True) == {"file": "bench/mine.py", "given": "mine.py", "sha256": digest}
    path.write_text("import helper\n")
    (tmp_path / "helper.py").write_text("x = 1\n")
    digests = {"sha256": hashlib.sha256(b"import helper\n").hexdigest(), "modules": {"helper.py": digest}}
    mine = attrs.evolve(mine, sources=read_sources(path))
    assert describe_bench(mine, copied=False) == {"file": "mine.py", **digests}
    assert describe_bench(Bench("fn", fn, "", ()), copied=False) == {"function": f"{__name__}:{fn.__qualname__}"}


def test_versions_name_what_takes_part_in_a_run() -> None:
    """Python, kernbench and the libraries that compute."""
    assert set(current_versions()) == {"python", "kernbench", "attrs", "greenlet", "ml_dtypes", "numpy", "simpy"}
