"""Counters over time: memory, devices, engines; read on a separate thread.

A driver or an engine that does not answer blocks only this thread.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from mmap import PAGESIZE
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import Journal, as_line
from rlprof_live._nvml import open_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof.config import Counters
    from rlprof.types import Target

    Read = Callable[[], Mapping[str, float]]

_JOIN_S = 0.5
"""How long closing waits for a running reading."""


class Sampler:
    """Writes the counters of one process and of its engines."""

    def __init__(
        self,
        file: Path,
        rule: Counters,
        report: Callable[[str], object],
        is_recording: Callable[[], bool] = lambda: False,
    ) -> None:
        self._rule = rule
        self._report = report
        self._is_recording = is_recording
        """Whether a window is open: then it reads more often."""
        self._file = Journal(file)
        self._sources: dict[Target | None, Read] = {None: _memory}
        self._wake = threading.Event()
        self._has_ended = False
        self._thread = threading.Thread(target=self._live, name="rlprof-counters", daemon=True)
        self._thread.start()

    def add(self, target: Target, plugin: type[Any], handle: Any) -> None:
        """Read the counters of an engine from now on, if its plugin has any."""
        if hasattr(plugin, "counters"):
            self._sources[target] = partial(plugin().counters, handle)

    def hurry(self) -> None:
        """Read now: a window has opened."""
        self._wake.set()

    def close(self) -> None:
        """End the thread."""
        self._has_ended = True
        self._wake.set()
        self._thread.join(_JOIN_S)

    def _live(self) -> None:
        read_devices = open_devices()
        if read_devices is not None:
            self._sources[None] = lambda: {**_memory(), **read_devices()}
        rule = self._rule
        while not self._has_ended:
            with suppress(OSError):  # a full disk: it waits in memory, and is counted
                self._file.write(self._looked())
            if self._file.given > rule.bytes:
                self._report(f"counters end here: they fill counters.bytes ({rule.bytes:,})")
                break
            self._wake.wait(rule.in_window_s if self._is_recording() else rule.every_s)
            self._wake.clear()
        self._file.close()

    def _looked(self) -> list[bytes]:
        lines = []
        for target, read in list(self._sources.items()):
            line: dict[str, Any] = {"mono": time.monotonic_ns()}
            try:
                line["values"] = dict(read())
            except Exception as exc:  # a stranger's code
                self._sources.pop(target, None)
                self._report(f"counters of {target or 'the process'}: {type(exc).__name__}: {exc}")
                continue
            if target is not None:
                line["target"] = attrs.asdict(target)
            if line["values"]:
                lines.append(as_line(line))
        return lines


def _memory() -> dict[str, float]:
    return {"rss_bytes": int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE}
