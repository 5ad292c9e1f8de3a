"""The address of a scheduler."""

from __future__ import annotations

import gc
import importlib.util
from typing import Any

import pytest

from kernbench_builtin.sweeps.executors.cluster.executor import ClusterError, ClusterExecutor, check_address
from kernbench_core.errors import UsageError


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tls://host.local:1", "tcp://[::1]:8786", "ws://h:80"])
def test_an_address_is_taken(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    "address",
    ["", "host:8786", "tcp://host", "tcp://:8786", "http://host:8786", "tcp://h:x", "tcp://h:700000", "tcp://h:1/x"],
)
def test_another_text_is_refused(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_address(address)
    assert str(caught.value) == (
        f"--scheduler must be the address of a Dask scheduler, as tcp://host:8786, not {address!r}; `dask scheduler` "
        "prints it."
    )


def test_it_is_said_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str, *rest: Any) -> None:
        assert name == "distributed"

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(UsageError) as caught:
        check_address("tcp://h:1")
    assert str(caught.value) == (
        "--scheduler needs the package distributed, which is not installed; pip install 'kernbench[cluster]'."
    )


def test_a_scheduler_that_cannot_be_talked_to_is_told_of_at_once() -> None:
    """Dask's configuration has no certificates."""
    pytest.importorskip("distributed")
    told = ""
    try:
        next(ClusterExecutor("tls://127.0.0.1:1", b"", 60.0).run([]))
    except ClusterError as error:  # gone behind this, which `pytest.raises` would not let it
        told = str(error)
    gc.collect()  # Dask's client waits for its thread where it ends: not in a process that another test forks
    assert told.startswith("scheduler tls://127.0.0.1:1 cannot be reached: TypeError: ")
