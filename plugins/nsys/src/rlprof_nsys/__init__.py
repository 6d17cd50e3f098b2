"""rlprof's tool `nsys`: Nsight Systems records windows and writes one finished report for each.

`launcher` runs the program under nsys: `_keeper` starts nsys for it, and `_launch` has nsys launch
the stand-in `_shim` · `_nsys` is the tool, `_options` its options · `_arguments`: what tool and
launcher pass to each other · `_session` opens and closes a window, `_shared` shares the window
among the processes of a session, `_report` waits for the report and keeps notes on it · `_ranges`
and `_self_test`: NVTX ranges · `_program`: the installed nsys · `_processes`: other processes ·
`_export` exports a report: `_sqlite` reads its SQLite row by row, `_host_events` and
`_device_events` turn rows into events, `_tracks` assigns their tracks, `_trace` writes the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlprof_nsys._nsys import Nsys as Nsys

__all__ = ["Nsys"]


def __getattr__(name: str) -> Any:
    """Import the tool on first use: the launcher does not need it."""
    if name != "Nsys":
        raise AttributeError(f"module 'rlprof_nsys' has no attribute {name!r}")
    from rlprof_nsys._nsys import Nsys

    globals()[name] = Nsys
    return Nsys
