"""The engine's own profiler: when each iteration ran, and over how many requests."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path


class Profiler:
    """Off until it is started; what it has seen is written when it is stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._began = 0
        self._wall_ns = 0
        self._iterations: list[tuple[int, int, int]] = []

    @property
    def is_active(self) -> bool:
        """Whether it records."""
        return self._folder is not None

    def now(self) -> int:
        """Read the clock of its records."""
        return time.perf_counter_ns()

    def start(self, folder: str) -> None:
        """Begin to record."""
        with self._lock:
            if self._folder is not None:
                raise RuntimeError("a profile is in progress")
            if not Path(folder).is_dir():
                raise RuntimeError(f"{folder} is no folder of this host")
            self._iterations = []
            self._wall_ns, self._began = time.time_ns(), self.now()
            self._folder = Path(folder)

    def stop(self) -> None:
        """End, and write `iterations.json` into the folder given at the start."""
        with self._lock:
            folder, self._folder = self._folder, None
            if folder is None:
                raise RuntimeError("no profile is in progress")
            found = {
                "pid": os.getpid(),
                "wall_ns": self._wall_ns,
                "iterations": [[a - self._began, b - a, n] for a, b, n in self._iterations],
            }
            (folder / "iterations.json").write_text(json.dumps(found))

    def iteration(self, began: int, requests: int) -> None:
        """Note that an iteration has ended."""
        with self._lock:
            if self._folder is not None and began >= self._began:
                self._iterations.append((began, self.now(), requests))
