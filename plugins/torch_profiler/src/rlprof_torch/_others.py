"""Profilers that training starts itself: torch has room for one, and that of training goes first.

Two at once crash as they stop, also if one is only prepared, as in the warm-up of a schedule
(torch 2.13, bare as well). Where one records a single thread, torch raises.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof_torch._recording import TorchRecording

_MARKERS = (("profiler", "emit_itt"), ("profiler", "emit_nvtx"), ("profiler_legacy", "profile"))
"""Classes of `torch.autograd` that are entered without being prepared."""


class Others:
    """The torch profilers of this process that are no window's, and the window that is open."""

    def __init__(self) -> None:
        self.recording: TorchRecording | None = None
        self.lock = threading.RLock()
        """Held while a window begins, and while it ends early."""
        self._prepared: Callable[[], Any] = _nothing
        self._watches = False
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self.recording, self.lock = None, threading.RLock()  # the window is the parent's

    def is_busy(self, torch: Any) -> bool:
        """Whether a profiler records or is prepared, of a window or of training."""
        return bool(
            self.recording is not None
            or self._prepared() is not None
            or torch.autograd.profiler._is_profiler_enabled
            or torch._C._autograd._profiler_enabled()
        )

    def watch(self, torch: Any) -> None:
        """Notice from now on, and once for a process, what training prepares and starts."""
        profile = torch.autograd.profiler.profile
        known = hasattr(profile, "_prepare_trace") and hasattr(profile, "_start_trace")
        if self._watches or not known:
            return
        self._watches = True
        for one in gc.get_objects():  # one that was prepared earlier
            if type(one) is profile and one.entered and _never_started(one):
                self._prepared = weakref.ref(one)
        profile._prepare_trace = self._preparing(profile._prepare_trace)
        profile._start_trace = self._starting(profile._start_trace)
        for module, name in _MARKERS:
            marker = getattr(getattr(torch.autograd, module, None), name, None)
            if marker is not None:
                marker.__enter__ = self._entering(marker.__enter__)

    def _preparing(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def _prepare_trace(profile: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_ours(profile):
                return inner(profile, *args, **kwargs)
            self._prepared = weakref.ref(profile)  # first, so that no window begins meanwhile
            self._make_way()
            try:
                return inner(profile, *args, **kwargs)
            except BaseException:
                self._prepared = _nothing
                raise

        return _prepare_trace

    def _starting(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def _start_trace(profile: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return inner(profile, *args, **kwargs)
            finally:
                if not self._is_ours(profile):
                    self._prepared = _nothing

        return _start_trace

    def _entering(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def enter(marker: Any) -> Any:
            if getattr(marker, "enabled", True):
                self._make_way()
            return inner(marker)

        return enter

    def _is_ours(self, profile: Any) -> bool:
        return self.recording is not None and self.recording.drives(profile)

    def _make_way(self) -> None:
        with contextlib.suppress(Exception), self.lock:  # training's starts, whatever ours does
            if self.recording is not None:
                self.recording.finish("closed early: training started its own profiler")


def _never_started(profile: Any) -> bool:
    return getattr(profile, "profiling_start_time_ns", None) == 0


def _nothing() -> None:
    pass


OTHERS = Others()
"""Those of this process."""
