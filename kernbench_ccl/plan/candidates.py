"""Which of the registered algorithms do a collective: those that can be loaded and do not refuse; why not the others.

A distribution whose algorithm cannot be loaded is no reason to do without those of the others: it is left out, with its
sentence. Who asks for it by its name is told that as an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from kernbench_ccl.catalogue import Algorithm, Catalogue
from kernbench_ccl.contract import Network
from kernbench_core.errors import KernbenchError

if TYPE_CHECKING:
    from kernbench_ccl.plan.configuration import CclConfig, Settings

__tracebackhide__ = True


@frozen
class Able:
    """Algorithms by their registered names, with their settings; and sentences by the names of the others.

    `refusals` are of those that refuse these ranks or this network, `broken` of those that cannot be used at all.
    """

    chosen: Mapping[str, tuple[Algorithm, Settings]]
    refusals: Mapping[str, str]
    broken: Mapping[str, str]

    @property
    def changed(self) -> dict[str, tuple[str, ...]]:
        """The settings that are not as where nobody says anything, of those that have such."""
        return changed_settings({name: settings for name, (_, settings) in self.chosen.items()})

    @property
    def warnings(self) -> list[str]:
        """What to say of those that cannot be used, a sentence each."""
        return [f"{name} is left out: {sentence}" for name, sentence in self.broken.items()]


def find_able(
    catalogue: Catalogue,
    config: CclConfig,
    collective: str,
    network: Callable[[str | None], Network],
    world: int | None = None,
    contributors: str = "sip",
) -> Able:
    """Load every algorithm of a collective and ask it whether it does `world` ranks (default: all of the network).

    `network` gives the network of the machine, or with a name that shape over the same SIPs.
    """
    chosen: dict[str, tuple[Algorithm, Settings]] = {}
    refusals: dict[str, str] = {}
    broken: dict[str, str] = {}
    for full in catalogue.methods_of(collective).values():
        settings = config.settings(full)
        try:
            algorithm = catalogue.open(full, collective)
            refusal = algorithm.refusal(network(settings.topology), world, contributors)
        except KernbenchError as error:
            broken[full] = first_sentence(error)
            continue
        if refusal is None:
            chosen[full] = algorithm, settings
        else:
            refusals[full] = refusal
    return Able(chosen, refusals, broken)


def changed_settings(able: Mapping[str, Settings]) -> dict[str, tuple[str, ...]]:
    """Return the settings that are not as where nobody says anything, of those algorithms that have such."""
    return {name: texts for name, settings in able.items() if (texts := settings.texts())}


def first_sentence(error: KernbenchError) -> str:
    """Return the first line of what an error says."""
    return str(error).strip().partition("\n")[0]
