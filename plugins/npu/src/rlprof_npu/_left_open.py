"""A window whose thread has ended: torch_npu stops what the thread that calls it has begun.

On any other it writes its last files and leaves the rest running: what it holds in memory is lost
or lies in the next window, whose second writer can end the process.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError

if TYPE_CHECKING:
    from rlprof_npu._options import NpuOptions

_CALLS = ("stack", "module")
"""Contents for which it follows the Python calls of all threads."""
_lost: dict[str, str] = {}
"""What of its contents it cannot record in this process any more → why."""


def end_what_was_left(state: Any, options: NpuOptions) -> None:
    """End, on this thread, what another has begun and a stop here has not ended.

    This thread begins to record, nothing, and then its stop is one that counts. Not so for Python
    calls: the library would go through all threads it knew, and write to the one that is gone.
    """
    state.activities = set()
    state.with_stack = state.with_modules = False
    if any(one in options.contents for one in _CALLS):
        getattr(threading, "setprofile_all_threads", sys.setprofile)(None)  # all: from Python 3.12
        why = "a window's thread had ended before the window, and torch_npu follows its calls still"
        _lost.update(dict.fromkeys(_CALLS, f"{why}; leave out stack and module, or start anew"))
    try:
        state.start_trace()
        state.stop_trace()
    except Exception as exc:  # of a release that has this otherwise
        why = f"a window's thread had ended before the window, which torch_npu did not end: {exc}"
        _lost.update(dict.fromkeys(("cpu", "npu"), f"{why}; this process records no more windows"))


def refuse_what_was_lost(options: NpuOptions) -> None:
    """Raise CaptureError where *options* ask for what cannot be recorded any more."""
    for one in filter(_lost.__contains__, (*options.activities, *options.contents)):
        raise CaptureError(_lost[one])
