"""Takes the samples: a thread, and a file of JSON lines that can be read however it ends."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import FrameType

    from rlprof_stacks._tool import StacksOptions


class Sampler(threading.Thread):
    """Samples all threads of the process; it is the window's `Recording`, too."""

    def __init__(self, file: Path, options: StacksOptions) -> None:
        super().__init__(name="rlprof-sampler", daemon=True)
        self._file: IO[str] = file.open("w", encoding="ascii")
        self._options = options
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._known: set[int] = set()
        self._phases: dict[int, list[tuple[str, int]]] = {}
        self.applied = {"hz": options.hz, "depth": options.depth}

    def start(self) -> None:
        """Write the clock and the first sample, then go on in the background."""
        before = time.time_ns()
        self._began = time.monotonic_ns()
        after = time.time_ns()
        self._write({"epoch_ns": before, "error_ns": after - before})
        self._sample()
        super().start()

    def run(self) -> None:
        """Sample until the window ends."""
        while not self._ended.wait(1 / self._options.hz):
            self._sample()

    def finish(self) -> None:
        """End the thread, then write the last sample and the line that says: this is all."""
        self._ended.set()
        if self.ident is not None:
            self.join()
        with self._file:
            self._sample()
            self._write({"end": self._now()})

    def push(self, name: str, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 -- the contract's
        """Remember when a phase began on this thread."""
        self._phases.setdefault(threading.get_ident(), []).append((name, self._now()))

    def pop(self) -> None:
        """Write down the phase that ends."""
        thread = threading.get_ident()
        name, began = self._phases[thread].pop()
        self._write({"phase": name, "thread": thread, "from": began, "to": self._now()})

    def _now(self) -> int:
        return time.monotonic_ns() - self._began

    def _sample(self) -> None:
        now, stacks = self._now(), {}
        threads = {thread.ident: thread for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():  # noqa: SLF001 -- the way there is
            thread = threads.get(ident)
            if thread is not None and thread.name.startswith("rlprof-"):
                continue
            if ident not in self._known:
                self._known.add(ident)
                native = thread.native_id if thread is not None else None
                name = thread.name if thread is not None else "not Python's"
                self._write({"new": ident, "native": native, "name": name})
            stacks[ident] = _stack(frame, self._options.depth)
        self._write({"at": now, "stacks": stacks})

    def _write(self, line: Mapping[str, Any]) -> None:
        with self._lock:
            if not self._file.closed:
                self._file.write(json.dumps(line) + "\n")
                self._file.flush()


def _stack(frame: FrameType | None, depth: int) -> list[str]:
    """Name the functions on a stack, outermost first."""
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})")
        frame = frame.f_back
    return names[::-1][:depth]
