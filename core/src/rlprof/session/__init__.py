"""The session of a process: it takes steps and phases in, and records with tools.

The files from what training calls down to what a plugin's hooks see:

- `_open`, `_begin`: from a config to a session, and the needs of a process before it exists;
  `_off`: the session that does nothing, and `rlprof.span`.
- `_session`: steps and spans; `_targets`: what it records, and the phases that open windows;
  `_scope`, `_trajectory`: their context managers, and those of agent loops; `_annotate`: functions
  as phases; `_current`: the open session.
- `_engines`: the track of an attached engine; `_loops`: its handle, and event loops.
- `_track`: one target and its windows; `_demands`: what rlprof-live asks of it; `_instruments`: its
  recorders, and the open window; `_elsewhere`: members of a fleet in the place of recorders.
- `_recorder`: one plugin; `_calls`: its hooks, their threads and deadlines; `_boundary`: catches
  what plugins raise.
- `_listeners`: plugins that hear of steps and windows; `_notice`: lines on stderr.
- `_scribe`: the helper thread; `_job`: a capture to export; `_exports`, `export_process`,
  `_artifacts`: raw data to artifacts; `interpreter`: starts processes.
- `_unrecorded`: why less was recorded than was asked for.

`_context` is what they share. Nothing is imported here: a process that is off needs `_off` alone.
"""

from __future__ import annotations
