"""The process that analyses, started with PARENT FOLDER.

torch_npu changes how its process starts others, starts some itself, and refuses to work in a
daemon, so this is a process of its own. It ends, with all in its session, when its parent is gone.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

_TICK_S = 0.5


def main(argv: list[str]) -> int:
    """Analyse one folder."""
    parent, folder = argv
    threading.Thread(target=_watch, args=(int(parent),), daemon=True).start()
    try:
        from torch_npu.profiler.profiler import analyse
    except ImportError as exc:
        print(f"[ERROR] torch_npu cannot be imported here: {exc}", flush=True)  # noqa: T201 -- its log
        return 1
    analyse(str(Path(folder)), max_process_number=1)
    return 0


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_TICK_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)  # the session is our own
