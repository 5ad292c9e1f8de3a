"""The names of torch.distributed that kernbench refuses, and what to use in their place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kernbench_core.errors import UnsupportedError

__tracebackhide__ = True


class UnsupportedName(UnsupportedError, AttributeError):
    """A name of torch.distributed that kernbench refuses; for `hasattr` it is not there."""


_OBJECTS = "Python objects are host data, which costs no simulated time: share them through the args of dist.spawn"
_STORES = "ranks find each other inside one simulation: dist.spawn starts them, and no store is needed"
_COALESCED = "call the collective once for each tensor, with async_op=True to let them overlap"
_OPTIONS = "options are keyword arguments of the call, and settings are in ccl.yaml"
_MESH = "use the placements of rt.tensor inside a SIP, and dist.new_group for each row or column of SIPs"
_BACKEND = "there is one backend, the simulated PEs; name an algorithm in ccl.yaml instead"

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "all_gather_coalesced": _COALESCED,
        "all_gather_into_tensor_coalesced": _COALESCED,
        "all_reduce_coalesced": _COALESCED,
        "reduce_scatter_coalesced": _COALESCED,
        "reduce_scatter_tensor_coalesced": _COALESCED,
        "all_gather_object": _OBJECTS,
        "broadcast_object_list": _OBJECTS,
        "gather_object": _OBJECTS,
        "scatter_object_list": _OBJECTS,
        "send_object_list": _OBJECTS,
        "recv_object_list": _OBJECTS,
        "monitored_barrier": "every barrier is monitored: one that never ends is a deadlock report; use dist.barrier",
        "new_subgroups": "call dist.new_group for each group",
        "new_subgroups_by_enumeration": "call dist.new_group for each group",
        "split_group": "call dist.new_group for each group",
        "Backend": _BACKEND,
        "BackendConfig": _BACKEND,
        "get_backend_config": _BACKEND,
        "is_backend_available": _BACKEND,
        "is_gloo_available": _BACKEND,
        "is_mpi_available": _BACKEND,
        "is_nccl_available": _BACKEND,
        "is_ucc_available": _BACKEND,
        "is_xccl_available": _BACKEND,
        "register_rendezvous_handler": _STORES,
        "rendezvous": _STORES,
        "Store": _STORES,
        "FileStore": _STORES,
        "HashStore": _STORES,
        "PrefixStore": _STORES,
        "TCPStore": _STORES,
        "is_torchelastic_launched": _STORES,
        "get_node_local_rank": "every SIP is a rank of its own on one host; use dist.get_rank",
        "get_pg_count": "groups are what dist.new_group returned; count these",
        "GroupMember": "dist.new_group gives every rank the group; ask dist.get_rank(group), which is -1 outside it",
        "group": "leave the argument group out for all ranks",
        "reduce_op": "torch has deprecated it; use dist.ReduceOp",
        "supports_complex": "there are no complex dtypes; use real ones",
        "AllreduceCoalescedOptions": _OPTIONS,
        "AllreduceOptions": _OPTIONS,
        "AllToAllOptions": _OPTIONS,
        "BarrierOptions": _OPTIONS,
        "BroadcastOptions": _OPTIONS,
        "GatherOptions": _OPTIONS,
        "ReduceOptions": _OPTIONS,
        "ReduceScatterOptions": _OPTIONS,
        "ScatterOptions": _OPTIONS,
        "default_pg_timeout": "a run that hangs ends at once with a deadlock report; kernbench run has --timeout",
        "DebugLevel": "calls that do not fit are always found; there is no level to choose",
        "get_debug_level": "calls that do not fit are always found; there is no level to choose",
        "set_debug_level": "calls that do not fit are always found; there is no level to choose",
        "set_debug_level_from_env": "calls that do not fit are always found; there is no level to choose",
        "init_device_mesh": _MESH,
        "DeviceMesh": _MESH,
        "breakpoint": "use Python's breakpoint(), which works in every rank's program",
        "is_available": "kernbench always has collectives; leave the question out",
    }
)
"""Name -> what to use, as the end of a sentence."""

BACKENDS: Final = ("nccl", "gloo", "mpi", "ucc", "xccl")
"""torch's backends: what names one is taken for the simulated PEs, as there is nothing else to take."""

REFUSED_OPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "BAND": "gather the tensors, and combine them in a kernel of your own",
        "BOR": "gather the tensors, and combine them in a kernel of your own",
        "BXOR": "gather the tensors, and combine them in a kernel of your own",
        "PREMUL_SUM": "multiply in a kernel of your own, then use ReduceOp.SUM",
    }
)
"""The reduce operations of torch that kernbench refuses."""
