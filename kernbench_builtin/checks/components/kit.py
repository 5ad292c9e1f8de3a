"""The kit for hardware models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernbench_builtin.checks.components.component_under_test import ComponentUnderTest
from kernbench_builtin.checks.components.declared_checks import (
    documents_itself,
    has_a_short_repr,
    refuses_wrong_parameters,
)
from kernbench_builtin.checks.components.other_processes import OtherProcesses, logs_the_same_in_another_process
from kernbench_builtin.checks.components.served_checks import (
    agrees_with_its_other_style,
    answers_alike_when_asked_again,
    conserves_messages_and_bytes,
    counts_what_it_served,
    drains,
    keeps_messages_in_order,
    leaves_messages_and_parameters_alone,
    never_exceeds_its_peak,
    never_undercuts_its_bound,
    serves_without_errors,
    takes_finite_times,
    takes_time,
    uses_declared_parameters_only,
)
from kernbench_builtin.checks.components.statistics_checks import sums_what_it_counts
from kernbench_core.plugins import Plugins
from kernbench_core.testing.kit import kit_of


def _open(plugins: Plugins, name: str) -> ComponentUnderTest:
    """Open a registered model; raise CheckFailed for what is none."""
    return _open_together(plugins, (name,))(name)


def _open_together(plugins: Plugins, names: Sequence[str]) -> Callable[[str], ComponentUnderTest]:
    """Return what opens models of which other processes are asked together: to start one takes longest."""
    other_processes = OtherProcesses(plugins, names)
    return lambda name: ComponentUnderTest(name, plugins, logs_elsewhere=other_processes.logs)


KIT = kit_of(
    _open, documents_itself, refuses_wrong_parameters, serves_without_errors, uses_declared_parameters_only,
    takes_finite_times, conserves_messages_and_bytes, keeps_messages_in_order, drains, answers_alike_when_asked_again,
    never_undercuts_its_bound, never_exceeds_its_peak,
    takes_time, counts_what_it_served, sums_what_it_counts, leaves_messages_and_parameters_alone, has_a_short_repr,
    agrees_with_its_other_style, logs_the_same_in_another_process,
    together=_open_together,
)  # fmt: skip
