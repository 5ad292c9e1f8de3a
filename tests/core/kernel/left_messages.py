"""What is said of messages that nobody received, for tests of queues alone and on the machine."""

from __future__ import annotations

REMEDY = (
    "each must be received once. Receive it there, or do not send it: a queue outlives its launch, so what one launch "
    "leaves in it the next takes for its own, and the message left at last may be of a later launch than the fault."
)
