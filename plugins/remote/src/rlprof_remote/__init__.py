"""Windows that another process decides on: the driver of a fleet, or the process of an engine.

- `leader`: the process that decides, and whether it still lives.
- `follower`: a process that opens the windows it is given.
- `order`: how an engine's plugin tells the engine's own processes what to record.
- `closing`: a session that closes waits for these processes.
"""

from __future__ import annotations

from rlprof_remote.follower import Follower, follow
from rlprof_remote.leader import Leader
from rlprof_remote.order import Order, write

__all__ = ["Follower", "Leader", "Order", "follow", "write"]
