"""The registry of commands: core's own, whichever plug-ins there are, and the plug-ins'."""

from __future__ import annotations

from kernbench_core.registry import CommandEntry, Registry

_CLI = "kernbench_core.cli"


class CommandRegistry(Registry[CommandEntry]):
    """Keep the names of core's own commands, which the command line has without asking, from plug-ins."""

    NOUN = "command"
    OWN = (
        CommandEntry("run", f"{_CLI}.run:run", "Run a bench."),
        CommandEntry("rerun", f"{_CLI}.run:rerun", "Do a run again."),
        CommandEntry("diff", f"{_CLI}.diff.command:diff", "Tell what moved from one run to another."),
        CommandEntry("sweep", f"{_CLI}.sweep.command:sweep", "Run a bench over many machines and parameters."),
        CommandEntry("report", f"{_CLI}.report:report", "Write pages of saved runs."),
        CommandEntry("trace", f"{_CLI}.trace:trace", "Write the timeline of a saved run."),
        CommandEntry("web", f"{_CLI}.web:web", "Show saved runs in a browser."),
        CommandEntry("triton", f"{_CLI}.triton.command:triton", "Run files written in Triton."),
        CommandEntry("list", f"{_CLI}.catalogue:list_benches", "List the benches."),
        CommandEntry("components", f"{_CLI}.catalogue:components", "List the hardware models."),
        CommandEntry("topology", f"{_CLI}.topology:topology", "Look at machines."),
        CommandEntry("cache", f"{_CLI}.cache.command:cache_group", "Look at kept results, and make room."),
        CommandEntry("plugins", f"{_CLI}.plugin.command:plugin_group", "Look at the plug-ins."),
    )
