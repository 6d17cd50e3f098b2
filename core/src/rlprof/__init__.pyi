# For type checkers: `__init__.py` imports each name when it is first used.
from rlprof import control as control
from rlprof import doctor as doctor
from rlprof import hookspecs as hookspecs
from rlprof import testing as testing
from rlprof import types as types
from rlprof.answers import Advice, Ready
from rlprof.errors import CaptureError, ConfigError, PluginError, RlprofError, RunError
from rlprof.hookspecs import hookimpl
from rlprof.plugins import register
from rlprof.session._annotate import annotate
from rlprof.session._off import Off, span, trajectory
from rlprof.session._open import launch, open  # noqa: A004 -- rlprof.open, as one says it
from rlprof.session._session import Session
from rlprof.types import (
    Artifact,
    Capture,
    Clock,
    Launch,
    Recording,
    Target,
    Window,
    Workers,
    safe_name,
)
from rlprof_remote import Follower, Leader, Order, follow
from rlprof_run import Run, Selection, read

__version__: str

__all__ = [
    "Advice",
    "Artifact",
    "Capture",
    "CaptureError",
    "Clock",
    "ConfigError",
    "Follower",
    "Launch",
    "Leader",
    "Off",
    "Order",
    "PluginError",
    "Ready",
    "Recording",
    "RlprofError",
    "Run",
    "RunError",
    "Selection",
    "Session",
    "Target",
    "Window",
    "Workers",
    "annotate",
    "follow",
    "hookimpl",
    "launch",
    "open",
    "read",
    "register",
    "safe_name",
    "span",
    "trajectory",
]
