"""rlprof on Ray: the driver opens the windows, its actors and rollout replicas follow.

    fleet = rlprof_ray.Fleet("profile.yaml")
    actors = [Actor.options(runtime_env=fleet.launch("actor", r).runtime_env).remote()
              for r in range(8)]
    fleet.attach(actor=actors)
    with fleet:
        for step in fleet.steps(range(1000)):
            with fleet.phase("update_actor"):
                ray.get([actor.update.remote() for actor in actors])

What a driver calls: `_fleet`, `_replica`. Who takes part: `_roll` all roles, `_attach` what was
given for one, `_crew` its members, `_member` one actor, `_clocks` their clocks. What is asked of
them: `_window` one that is open on all, `_messages` the words, `_inside` what is called in the
actor, `_loop` the event loop of an async one. Phases outside of
windows: `_history`, from `_calls`; `_unrecorded` members without a session, `_waits` who waits for
whom. Where Ray ends first: `_tie`, `_rest`. What lies on other nodes: `_collect` all of them,
`_visit` one, `_agent` what runs there, `_landing` where files arrive, `_paths` which names they may
have, `_command` is `rlprof collect`. A run that others have started: `attaching`, `rlprof attach`.
"""

from __future__ import annotations

from rlprof_ray._fleet import Fleet
from rlprof_ray._replica import Replica

__all__ = ["Fleet", "Replica"]
