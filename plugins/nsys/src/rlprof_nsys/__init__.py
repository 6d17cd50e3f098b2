"""rlprof's tool `nsys`: windows recorded by Nsight Systems, each a finished report of its own.

`launcher` becomes the program under nsys: `_keeper` has nsys ready for it, `_launch` has nsys
launch the stand-in `_shim` · `_nsys` the tool, with `_options` what it can be asked · `_session`
begins and ends a window, `_shared` lets the processes of one session have it together, `_report`
waits for its file, `_notes` is what is written down of it · `_ranges` and `_self_test` the NVTX
ranges · `_program` the installed nsys · `_mark` what the launcher tells the tool · `_export` what
becomes of a report: `_convert` has nsys turn it into SQLite and tables, `_sqlite` reads that row by
row, `_host_events` and `_device_events` make events of the rows, on the tracks of `_tracks`, and
`_trace` writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlprof_nsys._nsys import Nsys as Nsys

__all__ = ["Nsys"]


def __getattr__(name: str) -> Any:
    """Import the tool when it is asked for: the launcher of a process does without it."""
    if name != "Nsys":
        raise AttributeError(f"module 'rlprof_nsys' has no attribute {name!r}")
    from rlprof_nsys._nsys import Nsys

    globals()[name] = Nsys
    return Nsys
