"""Why a run took its time: causes, critical paths, where messages queued, use against peak; what scratchpads held."""
