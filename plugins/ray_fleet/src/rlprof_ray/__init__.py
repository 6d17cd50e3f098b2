"""rlprof on Ray: the driver opens the windows, its actors and rollout replicas follow.

    fleet = rlprof_ray.Fleet("profile.yaml")
    actors = [Actor.options(runtime_env=fleet.launch("actor", r).runtime_env).remote()
              for r in range(8)]
    fleet.attach(actor=actors)
    with fleet:
        for step in fleet.steps(range(1000)):
            with fleet.phase("update_actor"):
                ray.get([actor.update.remote() for actor in actors])

A driver calls `_fleet` and `_replica`. Members: `_roll` (all roles), `_attach` (arguments of
`attach`), `_crew`, `_post` (members of a role), `_member` (one actor), `_clocks` (their clocks).
Windows: `_window` (one window on all members), `_messages`, `_inside` (functions called in the
actor), `_loop` (the event loop of an async actor). Phases outside of windows: `_history`, from
`_calls`; `_unrecorded` (members without a session), `_waits` (waits for the slowest member). A Ray
that ends first: `_tie`. Files on other nodes: `_collect`, `_command` (`rlprof collect`). Runs
started without rlprof: `attaching` (`rlprof attach`).
"""

from __future__ import annotations

from rlprof_ray._fleet import Fleet, runtime_env
from rlprof_ray._replica import Replica

__all__ = ["Fleet", "Replica", "runtime_env"]
