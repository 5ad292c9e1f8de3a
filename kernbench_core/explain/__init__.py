"""Why a run took its time: causes, critical paths, where messages queued, use against peak, and where data went wrong.

In: what the recorder saw of a session. Out: explanations as data. Runs call it, when they are asked why.
"""
