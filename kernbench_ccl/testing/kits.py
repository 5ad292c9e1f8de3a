"""The kits: how a registered algorithm or collective is opened, and its checks in their order."""

from __future__ import annotations

from typing import Final

from kernbench_ccl.testing import collective_checks, proof_checks, timed_checks
from kernbench_ccl.testing.algorithm_under_test import AlgorithmUnderTest
from kernbench_ccl.testing.collective_checks import CollectiveUnderTest
from kernbench_core.testing import Kit, kit_of

ALGORITHMS: Final[Kit[AlgorithmUnderTest]] = kit_of(
    AlgorithmUnderTest.of,
    proof_checks.refuses_in_words,
    proof_checks.never_waits_for_ever,
    proof_checks.does_only_what_it_may,
    proof_checks.loses_no_contribution,
    proof_checks.counts_nothing_twice,
    proof_checks.receives_all_that_is_sent,
    proof_checks.orders_its_uses_of_memory,
    proof_checks.leaves_inputs_alone,
    proof_checks.waits_for_everyone,
    proof_checks.takes_any_count,
    proof_checks.works_in_place,
    proof_checks.works_step_by_step,
    proof_checks.does_every_reduction,
    proof_checks.takes_any_root,
    proof_checks.takes_uneven_splits,
    proof_checks.runs_on_each_of_its_networks,
    timed_checks.computes_right_data,
    timed_checks.does_not_beat_its_bound,
    timed_checks.takes_the_time_of_its_form,
    timed_checks.serves_groups_of_ranks,
    timed_checks.logs_the_same_twice,
    timed_checks.logs_the_same_under_every_hash_seed,
)
"""What an algorithm must keep."""

COLLECTIVES: Final[Kit[CollectiveUnderTest]] = kit_of(
    CollectiveUnderTest.of,
    *collective_checks.CHECKS,
)
"""What a collective must keep."""
