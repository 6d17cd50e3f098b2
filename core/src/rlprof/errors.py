"""Every deliberate error of rlprof: *where: what is wrong; what to do*."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class RlprofError(Exception):
    """The root of all errors rlprof raises on purpose."""


class ConfigError(RlprofError):
    """A configuration that cannot work; carries every fault found, not the first one."""

    def __init__(self, faults: Sequence[str], source: str = "config") -> None:
        self.faults = tuple(faults)
        self.source = source
        count = f"{len(self.faults)} fault" + ("s" if len(self.faults) != 1 else "")
        super().__init__("\n  ".join([f"{source}: {count}", *self.faults]))


class PluginError(RlprofError):
    """A plugin that is missing, broken, or made for another core."""


class CaptureError(RlprofError):
    """A tool refuses or fails to record; raised by plugins, recorded by core."""


class RunError(RlprofError):
    """A run folder that cannot be read or written."""
