"""Every public name of torch.distributed works or is refused with a sentence."""

from __future__ import annotations

import pytest

import kernbench_ccl.distributed as dist
from kernbench_core.errors import UnsupportedError, in_words

#: torch.distributed's public names (2.x: distributed_c10d, and those that the package adds), and coalesced forms.
TORCH = tuple("""
Backend BackendConfig GroupMember P2POp all_gather all_gather_coalesced all_gather_object all_reduce
all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv broadcast send_object_list recv_object_list
broadcast_object_list destroy_process_group gather gather_object get_backend_config get_backend get_rank get_world_size
get_pg_count group init_process_group irecv is_gloo_available is_initialized is_mpi_available is_backend_available
is_nccl_available is_torchelastic_launched is_ucc_available is_xccl_available isend monitored_barrier new_group
new_subgroups new_subgroups_by_enumeration recv reduce reduce_scatter scatter scatter_object_list send supports_complex
AllreduceCoalescedOptions AllreduceOptions AllToAllOptions BarrierOptions BroadcastOptions GatherOptions PrefixStore
ProcessGroup ReduceOp ReduceOptions ReduceScatterOptions ScatterOptions Store DebugLevel get_debug_level Work
default_pg_timeout get_group_rank get_global_rank get_process_group_ranks reduce_op all_gather_into_tensor
reduce_scatter_tensor get_node_local_rank split_group FileStore HashStore TCPStore is_available set_debug_level
set_debug_level_from_env init_device_mesh DeviceMesh breakpoint rendezvous register_rendezvous_handler
all_gather_into_tensor_coalesced reduce_scatter_coalesced reduce_scatter_tensor_coalesced
""".split())  # noqa: SIM905 - a table, not a list of literals


def test_every_name_of_torch_is_there_or_refused() -> None:
    """Nothing of torch is an AttributeError; what is refused, and what is there but for two, are names of torch."""
    for name in TORCH:
        if name in dist.__all__:
            assert getattr(dist, name) is not None
            continue
        assert not hasattr(dist, name)
        with pytest.raises(UnsupportedError) as caught:
            getattr(dist, name)
        assert str(caught.value) == f"torch.distributed.{name} is not there in kernbench; {dist.REFUSED[name]}."
    assert set(dist.REFUSED) | (set(dist.__all__) - {"spawn", "collective"}) == set(TORCH)
    with pytest.raises(AttributeError) as unknown:
        dist.all_redcue  # noqa: B018 - looking is what is tested
    assert str(unknown.value) == (
        "module 'kernbench_ccl.distributed' has no attribute 'all_redcue'. Did you mean 'all_reduce'?"
    )
    with pytest.raises(AttributeError) as unknown:
        dist.ReduceOp.PROD  # noqa: B018 - looking is what is tested
    assert str(unknown.value) == "type object 'ReduceOp' has no attribute 'PROD'. Did you mean 'PRODUCT'?"


def test_an_import_of_what_is_refused_says_what_to_use() -> None:
    """Where somebody tells of it: Python hides what the module says."""
    with pytest.raises(ImportError) as caught:
        from kernbench_ccl.distributed import rendezvous  # noqa: F401 - what is tested
    assert in_words(caught.value) == (
        f"ImportError: cannot import name 'rendezvous' from 'kernbench_ccl.distributed' ({dist.__file__}); "
        "torch.distributed.rendezvous is not there in kernbench; ranks find each other inside one simulation: "
        "dist.spawn starts them, and no store is needed"
    )
    with pytest.raises(ImportError) as caught:
        from kernbench_ccl.distributed import all_redcue  # noqa: F401 - what is tested
    assert in_words(caught.value) == (
        f"ImportError: cannot import name 'all_redcue' from 'kernbench_ccl.distributed' ({dist.__file__})"
    )


def test_other_reductions_are_refused_by_name() -> None:
    """What to do in their place is said."""
    for name in ("BAND", "BOR", "BXOR", "PREMUL_SUM"):
        assert not hasattr(dist.ReduceOp, name)
        with pytest.raises(UnsupportedError) as caught:
            getattr(dist.ReduceOp, name)
        told = {"PREMUL_SUM": "multiply in a kernel of your own, then use ReduceOp.SUM"}
        rest = told.get(name, "gather the tensors, and combine them in a kernel of your own")
        assert str(caught.value) == f"ReduceOp.{name} is not there in kernbench; {rest}."
