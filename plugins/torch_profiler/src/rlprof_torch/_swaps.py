"""`torch.utils.swap_tensors` within a window: it fails while the profiler knows the tensor.

With shapes, flops or stacks torch's profiler holds weak references of tensors until its events are
freed, and `swap_tensors` then raises: "Expected no weakrefs" (torch 2.13, bare as well). Training
calls it as it moves a model of DTensors, or buffers, to another device.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CONTENTS = frozenset({"shapes", "flops", "stack"})
"""Contents for which the profiler refers to tensors."""


class SwapGuard:
    """Calls a function before tensors are swapped, until it is taken away."""

    def __init__(self, torch: Any, before: Callable[[], None]) -> None:
        self._utils, self._before = torch.utils, before
        self._inner = inner = torch.utils.swap_tensors

        @functools.wraps(inner)
        def swap_tensors(*args: Any, **kwargs: Any) -> Any:
            self._call()
            return inner(*args, **kwargs)

        self._put = torch.utils.swap_tensors = swap_tensors

    def _call(self) -> None:
        with contextlib.suppress(Exception):  # training swaps, whatever happens to the trace
            self._before()

    def take_away(self) -> None:
        """Put torch's function back, unless another has wrapped ours."""
        if self._utils.swap_tensors is self._put:
            self._utils.swap_tensors = self._inner
        self._before = _nothing


def _nothing() -> None:
    pass
