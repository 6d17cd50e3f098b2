"""rlprof: one switch that profiles a whole RL post-training step.

    import rlprof

    with rlprof.open("profile.yaml", role="actor") as prof:
        for step in prof.steps(range(1000)):
            with prof.phase("rollout"):
                ...
            with prof.phase("update_actor"):
                ...

Then `rlprof ls RUN` and `rlprof export RUN --to timeline`.

This package, of the distribution rlprof-core, has all that a training process needs: `config` (what
to record), `schedule` (when), `session` (the recording), `rundir` (the run folder). Plugins and
core meet in `hookspecs` and `plugins`; `types` has the values they share.

Other distributions offer more under names of this package: `rlprof.read` and its values come from
rlprof-run, `rlprof.follow` and its values from rlprof-remote, `rlprof.doctor` from rlprof-cli,
`rlprof.testing` from rlprof-testing.

Names and modules are imported on first use, so that `import rlprof` costs next to nothing while
rlprof is off; `__init__.pyi` lists them for type checkers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_OWN = {
    "answers": ("Advice", "Ready"),
    "errors": ("CaptureError", "ConfigError", "PluginError", "RlprofError", "RunError"),
    "hookspecs": ("hookimpl",),
    "plugins": ("register",),
    "session._annotate": ("annotate",),
    "session._off": ("Off", "span", "trajectory"),
    "session._open": ("launch", "open"),
    "session._session": ("Session",),
    "types": (
        "Artifact", "Capture", "Clock", "Launch", "Recording", "Target", "Window", "Workers",
        "safe_name",
    ),
}  # fmt: skip

_MODULE_OF = {name: f"rlprof.{module}" for module, names in _OWN.items() for name in names}

_ELSEWHERE = {
    "Follower": "rlprof_remote", "Leader": "rlprof_remote", "Order": "rlprof_remote",
    "follow": "rlprof_remote", "Run": "rlprof_run", "Selection": "rlprof_run", "read": "rlprof_run",
}  # fmt: skip
"""Name → the package of another distribution that offers it."""

_MODULES = ("control", "doctor", "hookspecs", "testing", "types")
"""Modules that need no separate import: `rlprof.doctor.findings()`."""

__all__ = list({**_MODULE_OF, **_ELSEWHERE})


def __getattr__(name: str) -> Any:
    value: Any
    if name in _MODULES:
        return import_module(f"rlprof.{name}")  # which leaves it here as an attribute
    if name == "__version__":
        from rlprof.plugins import core_version

        value = core_version()
    elif name in _ELSEWHERE:
        from rlprof.distributions import load

        value = getattr(load(_ELSEWHERE[name], asked=name), name)
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    else:
        raise AttributeError(f"module 'rlprof' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES, "__version__"})
