"""Points: sorts of entries that plug-ins declare, and others add to."""

from __future__ import annotations

import math

from kernbench_core.plugins import load_plugins
from tests.core.plugin_site import Site


def test_a_point_is_declared_by_a_plugin_and_used_by_another(site: Site) -> None:
    """Without the one that declares it the other works as well; two cannot declare one sort."""
    site.module(
        "alarms",
        "from kernbench_core.plugins import Entry, Point\n"
        "class AlarmEntry(Entry):\n    KIND, NOUN = 'acme_alarms', 'alarm'\n"
        "ALARMS = Point(AlarmEntry, 'Return what rings.')\n"
        "def kernbench_points():\n    return [ALARMS]\n",
    )
    site.module(
        "bells",
        "from alarms import AlarmEntry\ndef kernbench_acme_alarms():\n    return [AlarmEntry('bell', 'math:pi')]\n",
    )
    both = load_plugins(["bells = bells", "alarms = alarms"], installed=False)
    alarms = both.points["acme_alarms"]
    assert both.failures == () and both.of(alarms).load("bell") == math.pi
    alone = load_plugins(["bells = bells"], installed=False)
    assert alone.failures == () and "acme_alarms" not in alone.registries
    assert [source.name for source in alone.sources] == ["bells"] and not alone.of(alarms)
    site.module("zz", "from alarms import AlarmEntry, Point\ndef kernbench_points(): return [Point(AlarmEntry, '')]\n")
    twice = load_plugins(["alarms = alarms", "z = zz"], installed=False)
    assert [str(each) for each in twice.failures] == [
        "plug-in 'z' (zz (source tree)) is left out: it must not declare 'acme_alarms', which another plug-in does; "
        "rename it"
    ]
    site.module("wrong", "def kernbench_points(): return [3]\n")
    assert [str(each) for each in load_plugins(["w = wrong"], installed=False).failures] == [
        "plug-in 'w' (wrong (source tree)) is left out: kernbench_points must return Point objects, each of a class "
        "with a KIND, not 3"
    ]
