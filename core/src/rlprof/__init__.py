"""rlprof: one switch that profiles a whole RL post-training step.

    import rlprof

    with rlprof.open("profile.yaml", role="actor") as prof:
        for step in prof.steps(range(1000)):
            with prof.phase("rollout"):
                ...
            with prof.phase("update_actor"):
                ...

Then `rlprof ls RUN` and `rlprof export RUN --to timeline`.

The house has four rooms: `config` (what is asked), `schedule` (when to record), `session` (who
records), `rundir` (where it goes). Plugins meet core in `hookspecs` and `plugins`; all speak in
the words of `types`.
"""

from __future__ import annotations

from rlprof.errors import CaptureError, ConfigError, PluginError, RlprofError, RunError
from rlprof.hookspecs import hookimpl
from rlprof.plugins import register
from rlprof.rundir import Run, read
from rlprof.session import Off, Session, annotate, open  # noqa: A004
from rlprof.types import (
    Artifact,
    Capture,
    Clock,
    Launch,
    Recording,
    Target,
    Window,
    safe_name,
)

__all__ = [
    "Artifact",
    "Capture",
    "CaptureError",
    "Clock",
    "ConfigError",
    "Launch",
    "Off",
    "PluginError",
    "Recording",
    "RlprofError",
    "Run",
    "RunError",
    "Session",
    "Target",
    "Window",
    "annotate",
    "hookimpl",
    "open",
    "read",
    "register",
    "safe_name",
]
