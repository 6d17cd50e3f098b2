"""For who writes the fleet of another framework: what a driver and its members are made of.

The driver's session gets a `Track` for each role, whose windows open on all members at once; what
it asks of the `Instruments` of a process, it asks of whatever it was given instead. Each member is
a `Follower`, and knows by its `Leader` when nobody is left to close a window.
"""

from __future__ import annotations

from rlprof.rundir import Leader
from rlprof.session._begin import DRIVER
from rlprof.session._follow import Follower, leader
from rlprof.session._track import Track

__all__ = ["DRIVER", "Follower", "Leader", "Track", "leader"]
