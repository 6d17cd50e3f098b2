"""rlprof on Ray: the driver opens the windows, its actors and rollout replicas follow.

    fleet = rlprof_ray.Fleet("profile.yaml")
    actors = [Actor.options(runtime_env=fleet.launch("actor", r).runtime_env).remote()
              for r in range(8)]
    fleet.attach(actor=actors)
    with fleet:
        for step in fleet.steps(range(1000)):
            with fleet.phase("update_actor"):
                ray.get([actor.update.remote() for actor in actors])

`_fleet` what a driver calls · `_crew` the members of a role · `_window` a window that is open on
them · `_member` one actor, seen from the driver · `_inside` what is called in it · `_replica` a
rollout engine and the way to it · `_clocks` whose is how far ahead · `_tie` whether Ray is still
there · `_rest` what it left when it was not.
"""

from __future__ import annotations

from rlprof_ray._fleet import Fleet
from rlprof_ray._replica import Replica

__all__ = ["Fleet", "Replica"]
