"""Times of trials in the user's cache, under all that they depend on: machine, code, call, algorithm and settings."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from kernbench_ccl.plan.machine_key import machine_digest
from kernbench_ccl.plan.trial_choice import TrialTime
from kernbench_core.cache import Cache, NotCacheable, code_digests, digest_of

if TYPE_CHECKING:
    from kernbench_ccl.measure.trial import AlgorithmTrial
    from kernbench_core.graph import Graph
    from kernbench_core.plugins import Plugins

SCHEMA: Final = "kernbench.trial/1"
_FILE: Final = "time.json"
_OF_SETTINGS: Final = ("algorithm", "slots", "slot_bytes", "tier", "chunk", "pipeline", "pes", "topology")


@frozen(eq=False)
class TrialStore:
    """What is kept of trials on one machine with some plug-ins.

    A cache that may hold no byte is off; so it is with a plug-in that is a lone file, beside which nobody knows what it
    reads: what is kept is taken unasked.
    """

    graph: Graph
    plugins: Plugins
    cache: Cache

    @cached_property
    def _same(self) -> list[Any] | None:
        """What the keys of all trials have in common; None where nothing can be kept."""
        if not self.cache.most_bytes or any(source.file for source in self.plugins.sources):
            return None
        try:
            code = code_digests(self.plugins)
        except NotCacheable:
            return None
        libraries = [metadata.version("simpy"), *sys.version_info[:3]]
        return [SCHEMA, machine_digest(self.graph), sorted(code.items()), libraries]

    def get(self, trial: AlgorithmTrial) -> TrialTime | None:
        """Return the time that is kept of a trial; None where there is none, or none that can be one."""
        key = self._key(trial)
        entry = None if key is None else self.cache.get(key)
        if entry is None:
            return None
        try:
            found = json.loads(entry[1][_FILE])
            time = TrialTime(float(found["ns"]), float(found["busy_ns"]))
        except (KeyError, TypeError, ValueError):
            return None
        return time if 0 < time.ns < math.inf and 0 <= time.busy_ns <= time.ns else None

    def put(self, trial: AlgorithmTrial, time: TrialTime) -> None:
        """Keep the time of a trial."""
        key = self._key(trial)
        if key is not None:
            call = trial.call
            about = {"what": "trial", "algorithm": trial.algorithm.name, "count": trial.count, "dtype": call.dtype}
            self.cache.put(key, {_FILE: json.dumps({"ns": time.ns, "busy_ns": time.busy_ns}).encode()}, about)

    def _key(self, trial: AlgorithmTrial) -> str | None:
        if self._same is None:
            return None
        call, group = trial.call, trial.call.group
        asked = [
            call.kind.name, call.dtype, call.redop, call.root, call.contributors, trial.count, trial.algorithm.name,
            digest_of(trial.algorithm.file),
            None if group is None else [group.sips, group.pes],
            [getattr(trial.settings, name) for name in _OF_SETTINGS],
        ]  # fmt: skip
        text = json.dumps([self._same, asked], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
